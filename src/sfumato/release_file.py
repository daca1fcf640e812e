"""The release file: one safetensors file with a readable manifest, written atomically and read with suspicion.

The header's ``__metadata__`` has the format's name and version, the manifest (JSON text: prior, region, tolerance,
certificate, …) and a SHA-256 digest of all of it. The digest finds damage; it is no signature, so ``Release.certify``
trusts no claim in the file. Any safetensors reader opens it, but the bytes are laid out here: the safetensors package
orders metadata at random, and the same release must give the same file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable
from dataclasses import fields
from importlib import metadata
from typing import Any, BinaryIO, TypeAlias, get_args

import numpy as np

from .certificate import Certificate, check_inputs
from .design import Cover, Design
from .errors import FormatError, InputError
from .inputs import Array, Inputs
from .model_tree import build_kernel, build_mean, describe_kernel, describe_mean
from .noise import Noise
from .prior import Prior
from .regions import Region, region_from_tree
from .release import LONGEST_NAME, Release
from .tolerance import FloorTolerance, FractionTolerance, KernelTolerance, MatrixTolerance, TabulatedFloor, Tolerance

FORMAT = "sfumato-release"
VERSION = "1"
LARGEST_HEADER = 16 << 20
_LARGEST_FILE = 1 << 36
_LARGEST_NUMBER = 1e150
_LONGEST_TEXT = 20_000
_MANIFEST_KEYS = (
    "certificate columns cover kernel mean noise_variance output_name region resolution shift tolerance unsafe versions"
)
Tensors: TypeAlias = dict[str, Array]
Places: TypeAlias = dict[str, tuple[tuple[int, ...], int]]  # shape and first byte of each tensor


def write_release(release: Release, path: str | os.PathLike[str]) -> None:
    """Write ``release`` to ``path``.

    Guarantee: the same release gives the same bytes, and they appear complete or not at all: written under a temporary
    name, flushed to the disk, read back and only then moved into place. A failure leaves the old file.
    """
    parts = _encode(release)
    folder = os.path.dirname(target := os.path.realpath(os.fspath(path)))
    if os.path.isdir(target) or not os.path.isdir(folder):
        raise InputError(f"path is {str(path)!r}; give the name of a file in a folder that is there.")
    temporary = os.path.join(folder, f".sfumato-{secrets.token_hex(8)}.tmp")
    try:
        # 0o666 is narrowed by the umask, as for any file that a program makes.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        read_release(temporary)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG):
            raise InputError(f"path is {str(path)!r}, which cannot be written: {error.strerror}.") from error
        if isinstance(error, FormatError):
            raise InputError(f"this release cannot be written to a file that others could read: {error}") from error
        raise
    with contextlib.suppress(OSError):  # some systems cannot sync a folder; the file itself is on the disk already
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _encode(release: Release) -> list[bytes]:
    """The file as a list of byte strings."""
    design, prior = release.design, release.design.prior
    tensors: Tensors = {"inputs": design.inputs.values, "outputs": release.outputs, "sensitive": design.sensitive}
    tolerance, extra = _describe_tolerance(design)
    tensors |= extra | {"noise_factor": design.noise.factor}
    if not isinstance(prior.noise, float):
        tensors["noise_variance"] = prior.noise
    if design.weights is not None:
        tensors["weights"] = design.weights
    manifest = {
        "certificate": {part.name: _plain(getattr(release.certificate, part.name)) for part in fields(Certificate)},
        "columns": None if design.inputs.columns is None else list(design.inputs.columns),
        "cover": design.cover,
        "kernel": describe_kernel(prior.kernel),
        "mean": describe_mean(prior.mean),
        "noise_variance": prior.noise if isinstance(prior.noise, float) else None,
        "output_name": release.output_name,
        "region": design.region.to_tree(),
        "resolution": release.resolution,
        "shift": design.noise.shift,
        "tolerance": tolerance,
        "unsafe": bool(release.unsafe),
        "versions": {name: _version_of(name) for name in ("gpytorch", "numpy", "sfumato", "torch")},
    }
    return container(json.dumps(manifest, sort_keys=True, allow_nan=False), tensors)


def container(manifest: str, tensors: Tensors, version: str = VERSION) -> list[bytes]:
    """A manifest and float64 arrays as a safetensors file with its digest."""
    stored = {name: np.ascontiguousarray(tensors[name], dtype="<f8") for name in sorted(tensors)}
    about = {"digest": _digest(version, manifest, stored), "format": FORMAT, "manifest": manifest, "version": version}
    header: dict[str, Any] = {"__metadata__": about}
    offset = 0
    for name, array in stored.items():
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > LARGEST_HEADER:
        raise InputError(f"the description of this release is over {LARGEST_HEADER >> 20} MiB; give a simpler region.")
    return [len(encoded).to_bytes(8, "little"), encoded, *(array.tobytes() for array in stored.values())]


def _digest(version: str, manifest: str, tensors: Tensors) -> str:
    shapes = [[name, tensors[name].shape] for name in sorted(tensors)]
    state = hashlib.sha256(json.dumps([FORMAT, version, manifest, shapes]).encode())
    for name in sorted(tensors):
        state.update(np.ascontiguousarray(tensors[name], dtype="<f8").reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def _version_of(package: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return "0"


def _describe_tolerance(design: Design) -> tuple[dict[str, Any], Tensors]:
    tolerance = design.tolerance
    if isinstance(tolerance, FractionTolerance):
        return {"kind": "fraction", "alpha": tolerance.alpha}, {}
    if isinstance(tolerance, FloorTolerance) and not callable(tolerance.value):
        return {"kind": "floor", "value": tolerance.value}, {}
    if isinstance(tolerance, FloorTolerance):
        points = np.concatenate([design.sensitive, design.rows_inside(), check_inputs(design)])
        # Told apart by their bytes, as the table looks them up: 0 and −0 are two inputs there.
        unique = {row.tobytes(): row for row in np.ascontiguousarray(points, dtype=np.float64)}
        tolerance = tolerance.tabulate(np.array([unique[key] for key in sorted(unique)]))
    if isinstance(tolerance, TabulatedFloor):
        return {"kind": "table"}, {"floor_inputs": tolerance.inputs, "floor_values": tolerance.values}
    if isinstance(tolerance, KernelTolerance):
        return {"kind": "kernel", "kernel": describe_kernel(tolerance.kernel)}, {}
    if isinstance(tolerance, MatrixTolerance):
        return {"kind": "matrix"}, {"tolerance_matrix": tolerance.delta}
    raise InputError(f"tolerance is a {type(tolerance).__name__}, which a release file cannot hold.")


def _plain(value: Any) -> Any:
    """``value`` as strict JSON has it: lists for arrays and tuples, text for the numbers that JSON lacks."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_release(path: str | os.PathLike[str]) -> Release:
    """Read a release that someone else may have written.

    Guarantee: nothing in the file is run. A file that is damaged, truncated, of another version or not a release
    raises ``FormatError``; sizes are checked against the file before memory is taken for them.
    """
    if not os.path.isfile(path):
        raise InputError(f"path is {str(path)!r}, which is not a file; give the name of a release file.")
    try:
        with open(path, "rb") as file:
            return _build(*_read_container(file, os.fstat(file.fileno()).st_size))
    except PermissionError as error:
        raise InputError(f"path is {str(path)!r}, which cannot be opened: {error.strerror}.") from error
    except (FormatError, OSError):
        raise
    except Exception as error:  # untrusted: whatever it upsets in the layers below is the file's fault
        raise FormatError(f"the parts of the file do not fit together, or are too large: {error}") from error


def _read_container(file: BinaryIO, size: int) -> tuple[dict[str, Any], Tensors]:
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > LARGEST_HEADER or length < 2:
        raise FormatError("this is not a sfumato release: it does not start like one (empty, or another kind of file?)")
    if 8 + length > size:
        raise FormatError(f"the file ends inside its header ({size} bytes); it was truncated, get it again.")
    header = _parse(file.read(length), "header")
    about = header.pop("__metadata__", None)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise FormatError("this is not a sfumato release, though it may be another safetensors file.")
    version = about.get("version")
    if version != VERSION:
        raise FormatError(f"the file has version {version!r:.40}, but this sfumato reads version {VERSION!r}.")
    if set(about) != {"format", "version", "manifest", "digest"} or {type(text) for text in about.values()} != {str}:
        raise FormatError("the file's metadata are not those of a sfumato release; it is damaged.")
    places = _places(header, size - 8 - length)
    manifest = _parse(about["manifest"].encode(), "manifest")
    _check_shapes(manifest, {name: shape for name, (shape, _) in places.items()})
    data = file.read(size - 8 - length)
    tensors = {
        name: np.frombuffer(data, "<f8", math.prod(shape), begin if math.prod(shape) else 0).reshape(shape)
        for name, (shape, begin) in places.items()
    }
    if _digest(VERSION, about["manifest"], tensors) != about["digest"]:
        raise FormatError("the file's contents do not match its digest; it was damaged or edited, get it again.")
    if not all(np.all(np.abs(array) < _LARGEST_NUMBER) for array in tensors.values()):
        raise FormatError("the file's arrays have values that are NaN or infinite, or too large to be squared.")
    return manifest, {name: array.astype(np.float64, copy=False) for name, array in tensors.items()}


def _parse(raw: bytes, what: str) -> dict[str, Any]:
    """Strict JSON: one object, no repeated keys, no NaN, numbers of usual size, real text."""
    try:
        tree = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse,
            parse_int=lambda text: int(text) if len(text) <= 20 else _refuse(text),
            parse_float=lambda text: value if math.isfinite(value := float(text)) else _refuse(text),
        )
        if not isinstance(tree, dict):
            raise ValueError("it is not an object")
        json.dumps(tree, ensure_ascii=False).encode()  # refuses lone surrogates, which no text may have
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]
        raise FormatError(f"the file's {what} cannot be read ({why}); it is damaged or not a release.") from error
    return tree


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("a key appears twice")
    return tree


def _refuse(text: str) -> Any:
    raise ValueError(f"{text[:40]} is not a number that a file may hold")


def _places(header: dict[str, Any], available: int) -> Places:
    """Where each tensor lies; they must fill the rest of the file without gaps or overlaps."""
    places: Places = {}
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"} or entry["dtype"] != "F64":
            raise FormatError(f"the file's {name[:40]!r} is not an array of float64 (F64), the only type in a release.")
        shape, offsets = entry["shape"], entry["data_offsets"]
        real = _counts(shape) and _counts(offsets) and len(offsets) == 2
        if not real or offsets[1] - offsets[0] != 8 * math.prod(shape):
            raise FormatError(
                f"the file's array {name[:40]!r} has a shape that is impossible or does not fit its size."
            )
        places[name] = (tuple(shape), offsets[0])
    position = 0
    for shape, begin in sorted(places.values(), key=lambda place: (place[1], math.prod(place[0]))):
        if begin != position:
            raise FormatError("the file's arrays overlap or leave gaps; it is damaged.")
        position += 8 * math.prod(shape)
    if position != available:
        why = "too short; it was truncated, get it again" if position > available else "too long; it is damaged"
        raise FormatError(f"the file is {abs(position - available)} bytes {why}.")
    if position > _LARGEST_FILE:
        raise FormatError(f"the file's arrays take {position} bytes; at most {_LARGEST_FILE} are read.")
    return places


def _counts(values: Any) -> bool:
    return isinstance(values, list) and len(values) in (1, 2) and all(type(v) is int and 0 <= v < 2**50 for v in values)


def _check_shapes(manifest: dict[str, Any], shapes: dict[str, tuple[int, ...]]) -> None:
    """The arrays must be those that the manifest speaks of, in shapes that belong together (None: any length)."""
    if " ".join(sorted(manifest)) != _MANIFEST_KEYS or not isinstance(manifest["tolerance"], dict):
        raise FormatError("the file's manifest does not have the parts of a release; it is damaged.")
    rows, dimension = shapes["inputs"] if len(shapes.get("inputs", ())) == 2 else (0, 0)
    if rows * dimension == 0:
        raise FormatError("the file has no inputs; it is damaged.")
    expected: dict[str, tuple[int | None, ...]] = {"inputs": (rows, dimension), "outputs": (rows,)}
    expected |= {"noise_factor": (rows, None), "sensitive": (None, dimension)}
    if manifest["noise_variance"] is None:
        expected["noise_variance"] = (rows,)
    if "weights" in shapes:
        expected["weights"] = (rows,) * len(shapes["weights"])
    if manifest["tolerance"].get("kind") == "matrix":
        expected["tolerance_matrix"] = (None, None)
    if manifest["tolerance"].get("kind") == "table":
        expected |= {"floor_inputs": (None, dimension), "floor_values": (shapes.get("floor_inputs", (0,))[0],)}
    for name in shapes.keys() | expected.keys():
        found, wanted = shapes.get(name), expected.get(name, ())
        if found is None or len(found) != len(wanted) or any(w not in (None, f) for f, w in zip(found, wanted)):
            raise FormatError(f"the file's array {name[:40]!r} is missing, unknown or of a shape that does not fit.")


def _build(manifest: dict[str, Any], tensors: Tensors) -> Release:
    columns = None if manifest["columns"] is None else _texts(manifest["columns"], "columns", LONGEST_NAME)
    inputs = Inputs(tensors["inputs"], columns)
    if columns is not None and not len(set(columns)) == len(columns) == inputs.dimension:
        raise FormatError(f"the file names {len(columns)} columns for {inputs.dimension} distinct inputs.")
    if manifest["cover"] not in get_args(Cover) or not isinstance(manifest["unsafe"], bool):
        raise FormatError("the file's cover or unsafe mark is none that this version knows.")
    _texts([*manifest["versions"].values()], "versions", LONGEST_NAME)
    noise = tensors["noise_variance"] if "noise_variance" in tensors else _number(manifest["noise_variance"], "V")
    kernel, mean = build_kernel(manifest["kernel"], inputs.dimension), build_mean(manifest["mean"], inputs.dimension)
    region = region_from_tree(manifest["region"]).bind(inputs)
    design = Design(
        prior=Prior(kernel, mean, noise),
        inputs=inputs,
        region=region,
        tolerance=_tolerance(manifest["tolerance"], tensors, region),
        cover=manifest["cover"],
        sensitive=tensors["sensitive"],
        noise=Noise(tensors["noise_factor"], _number(manifest["shift"], "shift")),
        weights=tensors.get("weights"),
    )
    _try_out(design)
    certificate = _certificate(manifest["certificate"], inputs.dimension)
    resolution = _number(manifest["resolution"], "resolution")
    return Release(design, certificate, tensors["outputs"], resolution, manifest["unsafe"], manifest["output_name"])


@np.errstate(all="ignore")
def _try_out(design: Design) -> None:
    """A kernel, mean or region made for other columns must fail here and not at the reader's first prediction."""
    few = design.inputs.values[:2]
    blocks = [design.prior.covariance(few), np.diag(design.prior.mean_at(few)), np.diag(design.prior.variance(few))]
    if isinstance(design.tolerance, KernelTolerance):
        blocks.append(design.tolerance.matrix(design.prior, few))
    fit = all(block.shape == (len(few),) * 2 and np.all(np.abs(block) < _LARGEST_NUMBER) for block in blocks)
    if not fit or np.any(np.diag(blocks[0]) < 0) or design.region.contains(few).shape != (len(few),):
        raise FormatError("the file's prior, tolerance or region does not fit the file's inputs.")
    weights = np.ones(1) if design.weights is None else design.weights
    if np.any((weights if weights.ndim == 1 else np.diag(weights)) <= 0) or not np.array_equal(weights, weights.T):
        raise FormatError("the file's weights are not positive or not symmetric.")


def _tolerance(tree: dict[str, Any], tensors: Tensors, region: Region) -> Tolerance:
    builders: dict[Any, tuple[str | None, Callable[[Any], Tolerance]]] = {
        "fraction": ("alpha", lambda value: FractionTolerance(_number(value, "alpha"))),
        "floor": ("value", lambda value: FloorTolerance(_number(value, "floor"))),
        "kernel": ("kernel", lambda value: KernelTolerance(build_kernel(value))),
        "matrix": (None, lambda _: _matrix_tolerance(tensors["tolerance_matrix"], region)),
        "table": (None, lambda _: TabulatedFloor.from_table(tensors["floor_inputs"], tensors["floor_values"])),
    }
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in builders:
        raise FormatError(f"the file's tolerance is of a kind that this version does not know ({str(kind)[:40]!r}).")
    key, build = builders[kind]
    if tree.keys() - {key} != {"kind"} or np.any(tensors.get("floor_values", np.ones(1)) <= 0):
        raise FormatError("the file's tolerance is damaged.")
    return build(tree.get(key or ""))


def _matrix_tolerance(delta: Array, region: Region) -> Tolerance:
    if region.points is None:
        raise FormatError("the file has a tolerance for points, but a region that is not made of points.")
    return MatrixTolerance(delta).at(region.points)


def _certificate(tree: Any, dimension: int) -> Certificate:
    """The certificate as the owner claims it."""
    if not isinstance(tree, dict) or tree.keys() != {part.name for part in fields(Certificate)}:
        raise FormatError("the file's certificate does not have the parts of one; it is damaged.")
    values: dict[str, Any] = {}
    for part in fields(Certificate):
        value, kind = tree[part.name], str(part.type)
        if kind == "float":
            values[part.name] = _claim(value)
        elif kind == "Array":
            values[part.name] = np.array([_claim(number) for number in value])
        elif kind.startswith("tuple"):
            values[part.name] = _texts(value, part.name, _LONGEST_TEXT)
        elif type(value).__name__ != kind or (kind == "str" and len(value) > _LONGEST_TEXT):
            raise FormatError(f"the certificate's {part.name} is {str(value)[:40]!r}, which it cannot be.")
        else:
            values[part.name] = value
    if not len(values["worst_input"]) == len(values["columns"]) == dimension:
        raise FormatError("the file's certificate speaks of other columns than the inputs have.")
    return Certificate(**values)


def _claim(value: Any) -> float:
    if type(value) in (int, float) or value in ("nan", "inf", "-inf"):
        return float(value)
    raise FormatError(f"the certificate has {str(value)[:40]!r} in the place of a number.")


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _LARGEST_NUMBER:
        raise FormatError(f"the file's {what} is {str(value)[:40]!r}, not a number it could be.")
    return float(value)


def _texts(values: Any, what: str, longest: int) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) and len(value) <= longest for value in values):
        raise FormatError(f"the file's {what} are not a list of texts of usual length.")
    return tuple(values)
