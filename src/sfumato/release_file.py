"""The release file: what a release is made of, as a readable manifest and arrays, and back.

A file may come from anyone. Nothing in it is run, every part is checked, and no claim in it is trusted:
``Release.certify`` computes the certificate again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import astuple, fields
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from .certificate import Certificate, check_inputs
from .container import LARGEST_NUMBER, Shapes, Tensors, container, read_container, write_atomically
from .design import Cover, Design, Guarantee, Structure
from .errors import FormatError, InputError
from .functional_noise import FunctionalNoise
from .inputs import Array, Inputs
from .model_tree import build_kernel, build_mean, describe_kernel, describe_mean
from .noise import CorrelatedNoise, IndependentNoise, Noise
from .prior import Prior
from .progress import progress
from .regions import Everywhere, Region, region_from_tree
from .release_folder import MANIFEST, ROWS
from .row_files import RowFile, released_name, released_rows
from .stored_inputs import StoredInputs
from .tolerance import FloorTolerance, FractionTolerance, KernelTolerance, MatrixTolerance, TabulatedFloor, Tolerance

LONGEST_NAME = 1000
_LONGEST_TEXT = 20_000
_MANIFEST_KEYS = (
    "certificate columns cover guarantee others output_name prior region resolution shift structure tolerance unsafe "
    "versions"
)
#: Weights below this, or above one over it, overflow when they are squared or divided by.
SMALLEST_WEIGHT = 1e-100

_PRIOR_KEYS = {"kernel", "mean", "noise_variance"}

#: A file's noise may have this many centres for a prior; each reader works with matrices of their number squared.
MOST_CENTRES = 4096

#: A file may speak of this many priors; each of them costs a reader an n × n problem.
MOST_PRIORS = 64


class Contents(NamedTuple):
    """What a release file holds. The outputs of a folder are read where they are needed (``StoredColumn``)."""

    design: Design
    certificate: Certificate
    outputs: Array
    resolution: float
    unsafe: bool
    output_name: str


def write_release(contents: Contents, path: str | os.PathLike[str]) -> None:
    """Write a release file. Guarantee: the same contents give the same bytes, and a failure leaves the old file."""
    write_atomically(encode(contents), path, read_release)


def encode(release: Contents, row_files: Sequence[RowFile] | None = None) -> list[bytes]:
    """The file as a list of byte strings; with ``row_files``, which hold the rows, it is the manifest of a folder."""
    design = release.design
    tensors: Tensors = {"sensitive": design.sensitive}
    if row_files is None:
        tensors |= {"inputs": design.inputs.values, "outputs": np.asarray(release.outputs)}
    tolerance, extra = _describe_tolerance(design)
    tensors |= extra
    if isinstance(design.noise, IndependentNoise):
        tensors["noise_diagonal"] = design.noise.variances
    elif isinstance(design.noise, FunctionalNoise):
        tensors["noise_mixing"] = design.noise.mixing
        tensors |= {_of_prior("noise_centres", place): z for place, z in enumerate(design.noise.centres)}
    else:
        tensors["noise_factor"] = design.noise.factor
    for place, prior in enumerate(design.priors):
        if not isinstance(prior.noise, float):
            tensors[_of_prior("noise_variance", place)] = prior.noise
        if design.witness is not None:
            tensors[_of_prior("witness", place)] = design.witness[place]
    if design.weights is not None:
        tensors["weights"] = design.weights
    manifest: dict[str, Any] = {
        "certificate": {part.name: _plain(getattr(release.certificate, part.name)) for part in fields(Certificate)},
        "columns": None if design.inputs.columns is None else list(design.inputs.columns),
        "cover": design.cover,
        "guarantee": design.guarantee,
        "others": [_describe_prior(prior) for prior in design.others],
        "output_name": release.output_name,
        "prior": _describe_prior(design.prior),
        "region": design.region.to_tree(),
        "resolution": release.resolution,
        "shift": design.noise.shift,
        "structure": design.structure,
        "tolerance": tolerance,
        "unsafe": bool(release.unsafe),
        "versions": {name: _version_of(name) for name in ("gpytorch", "numpy", "sfumato", "torch")},
    }
    if row_files is not None:
        manifest["row_files"] = [list(astuple(file)) for file in row_files]
    return container(json.dumps(manifest, sort_keys=True, allow_nan=False), tensors)


def _of_prior(name: str, place: int) -> str:
    """The array ``name`` of the prior (place 0) or of one of the others."""
    return name if place == 0 else f"{name}_{place}"


def _describe_prior(prior: Prior) -> dict[str, Any]:
    noise = prior.noise if isinstance(prior.noise, float) else None
    return {"kernel": describe_kernel(prior.kernel), "mean": describe_mean(prior.mean), "noise_variance": noise}


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
        points = np.concatenate([design.sensitive, check_inputs(design)])
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


def read_release(path: str | os.PathLike[str], rows: StoredInputs | None = None) -> Contents:
    """Read a release that someone else may have written: a file, or a folder.

    The rows of a folder are read and checked once; with ``rows`` it is taken for granted that they are these.

    Guarantee: nothing in the file is run. A file that is damaged, truncated, of another version or not a release
    raises ``FormatError``; sizes are checked against the file before memory is taken for them.
    """
    if os.path.isdir(path):
        path = Path(path) / MANIFEST
    if not os.path.isfile(path):
        raise InputError(f"path is {str(path)!r}, which is not a file; give the name of a release file.")
    try:
        with open(path, "rb") as file:
            manifest, tensors = read_container(file, os.fstat(file.fileno()).st_size, _check_shapes)
        return _build(manifest, tensors, Path(path).parent / ROWS, rows)
    except PermissionError as error:
        raise InputError(f"path is {str(path)!r}, which cannot be opened: {error.strerror}.") from error
    except (FormatError, OSError):
        raise
    except Exception as error:  # untrusted: whatever it upsets in the layers below is the file's fault
        raise FormatError(f"the parts of the file do not fit together, or are too large: {error}") from error


def _check_shapes(manifest: dict[str, Any], shapes: Shapes) -> None:
    """The arrays must be those that the manifest speaks of, in shapes that belong together (None: any length)."""
    if " ".join(sorted(manifest.keys() - {"row_files"})) != _MANIFEST_KEYS or not isinstance(
        manifest["tolerance"], dict
    ):
        raise FormatError("the file's manifest does not have the parts of a release; it is damaged.")
    priors = [manifest["prior"], *(manifest["others"] if isinstance(manifest["others"], list) else [None])]
    if (
        not all(isinstance(prior, dict) and prior.keys() == _PRIOR_KEYS for prior in priors)
        or len(priors) > MOST_PRIORS
    ):
        raise FormatError("the file's priors do not have the parts of one; it is damaged.")
    expected: dict[str, tuple[int | None, ...]] = {}
    if "row_files" in manifest:
        rows, dimension = sum(file.rows for file in _row_files(manifest)), len(manifest["columns"])
    else:
        rows, dimension = shapes["inputs"] if len(shapes.get("inputs", ())) == 2 else (0, 0)
        expected = {"inputs": (rows, dimension), "outputs": (rows,)}
    if rows * dimension == 0:
        raise FormatError("the file has no inputs; it is damaged.")
    sensitive = shapes.get("sensitive", (0,))[0]
    expected["sensitive"] = (None, dimension)
    # what a witness has rows for: the rows of the data, or the centres of a noise that is a function
    proved = rows
    if manifest["structure"] == "diagonal":
        expected["noise_diagonal"] = (rows,)
    elif "noise_mixing" in shapes:
        names = [_of_prior("noise_centres", place) for place in range(len(priors))]
        counts = [shapes.get(name, (0,))[0] for name in names]
        if max(counts) > MOST_CENTRES:
            raise FormatError(f"the file's noise has {max(counts)} centres; at most {MOST_CENTRES} are read.")
        proved = sum(counts)
        expected |= dict.fromkeys(names, (None, dimension)) | {"noise_mixing": (proved, None)}
    else:
        expected["noise_factor"] = (rows, None)
    for place, prior in enumerate(priors):
        if prior["noise_variance"] is None:
            expected[_of_prior("noise_variance", place)] = (rows,)
        if "witness" in shapes:
            columns = sensitive if manifest["guarantee"] == "pointwise" else None
            expected[_of_prior("witness", place)] = (proved, columns)
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


def _row_files(manifest: dict[str, Any]) -> list[RowFile]:
    """The files in which a folder has its rows."""
    _texts(manifest["columns"], "columns", LONGEST_NAME)
    listed = manifest["row_files"]
    whole = isinstance(listed, list) and all(isinstance(entry, list) and len(entry) == 3 for entry in listed)
    if not whole or any([type(value) for value in entry] != [str, int, str] for entry in listed):
        raise FormatError("the file's list of row files is damaged.")
    return [RowFile(*entry) for entry in listed]


def _rows(manifest: dict[str, Any], tensors: Tensors, folder: Path, known: StoredInputs | None) -> tuple[Inputs, Array]:
    """Inputs and outputs."""
    columns = None if manifest["columns"] is None else _texts(manifest["columns"], "columns", LONGEST_NAME)
    if columns is not None and len(set(columns)) != len(columns):
        raise FormatError("the file names a column twice.")
    if "row_files" not in manifest:
        inputs = Inputs(tensors["inputs"], columns)
        if columns is not None and len(columns) != inputs.dimension:
            raise FormatError(f"the file names {len(columns)} columns for {inputs.dimension} distinct inputs.")
        return inputs, tensors["outputs"]
    (output,) = _texts([manifest["output_name"]], "output name", LONGEST_NAME)
    stored = known
    if stored is None:
        assert columns is not None
        with progress(True) as step:
            stored = released_rows(folder, _row_files(manifest), columns, output, step)
    return stored, cast(Array, stored.column(released_name(output, stored.names)))


def _build(manifest: dict[str, Any], tensors: Tensors, folder: Path, rows: StoredInputs | None) -> Contents:
    inputs, outputs = _rows(manifest, tensors, folder, rows)
    for key, known in (("cover", Cover), ("guarantee", Guarantee), ("structure", Structure)):
        if manifest[key] not in get_args(known):
            raise FormatError(f"the file's {key} is {str(manifest[key])[:40]!r}, which this version does not know.")
    if not isinstance(manifest["unsafe"], bool):
        raise FormatError("the file's unsafe mark is neither true nor false.")
    _texts([*manifest["versions"].values()], "versions", LONGEST_NAME)
    trees = (manifest["prior"], *manifest["others"])
    priors = tuple(_prior(tree, tensors, place, inputs.dimension) for place, tree in enumerate(trees))
    region = region_from_tree(manifest["region"]).bind(inputs.sample)
    witness = [tensors[_of_prior("witness", place)] for place in range(len(priors))] if "witness" in tensors else None
    design = Design(
        prior=priors[0],
        inputs=inputs,
        region=region,
        tolerance=_tolerance(manifest["tolerance"], tensors, region),
        cover=manifest["cover"],
        sensitive=tensors["sensitive"],
        noise=_noise(manifest, tensors, priors, inputs),
        weights=tensors.get("weights"),
        guarantee=manifest["guarantee"],
        structure=manifest["structure"],
        others=priors[1:],
        witness=None if witness is None else tuple(witness),
    )
    _try_out(design)
    kind = "everywhere" if isinstance(region, Everywhere) else "points" if region.points is not None else "region"
    if design.cover != kind and (kind != "region" or design.cover in ("everywhere", "points")):
        raise FormatError(f"the file's cover is {design.cover!r}, which does not go with its region.")
    if design.cover == "everywhere" and design.guarantee == "pointwise":
        raise FormatError("the file promises single values everywhere, which nobody can check.")
    if design.cover == "rows" and len(design.rows_inside()) == 0:
        raise FormatError("the file promises the rows inside its region, but there are none.")
    certificate = _certificate(manifest["certificate"], inputs.dimension)
    resolution = _number(manifest["resolution"], "resolution")
    (name,) = _texts([manifest["output_name"]], "output name", LONGEST_NAME)
    return Contents(design, certificate, outputs, resolution, manifest["unsafe"], name)


def _prior(tree: dict[str, Any], tensors: Tensors, place: int, dimension: int) -> Prior:
    name = _of_prior("noise_variance", place)
    noise = tensors[name] if name in tensors else _number(tree["noise_variance"], "V")
    return Prior(build_kernel(tree["kernel"], dimension), build_mean(tree["mean"], dimension), noise)


def _noise(manifest: dict[str, Any], tensors: Tensors, priors: tuple[Prior, ...], inputs: Inputs) -> Noise:
    shift = _number(manifest["shift"], "shift")
    if "noise_mixing" in tensors:
        if shift != 0:
            raise FormatError(
                "the file's noise is a function of the inputs, and has a shift that does not belong to it."
            )
        centres = tuple(tensors[_of_prior("noise_centres", place)] for place in range(len(priors)))
        return FunctionalNoise(priors, centres, tensors["noise_mixing"], inputs)
    if manifest["structure"] == "full":
        return CorrelatedNoise(tensors["noise_factor"], shift)
    variances = tensors["noise_diagonal"]
    if shift != 0 or np.any(variances < 0):
        raise FormatError("the file's noise has negative variances, or a shift that does not belong to it.")
    return IndependentNoise(variances)


@np.errstate(all="ignore")
def _try_out(design: Design) -> None:
    """A kernel, mean or region made for other columns must fail here and not at the reader's first prediction."""
    few = design.inputs.sample.values[:2]
    blocks = []
    for prior in design.priors:
        blocks += [prior.covariance(few), np.diag(prior.mean_at(few)), np.diag(prior.variance(few))]
    if isinstance(design.tolerance, KernelTolerance):
        blocks.append(design.tolerance.matrix(design.prior, few))
    fit = all(block.shape == (len(few),) * 2 and np.all(np.abs(block) < LARGEST_NUMBER) for block in blocks)
    if not fit or any(np.any(np.diag(b) < 0) for b in blocks[::3]) or design.region.contains(few).shape != (len(few),):
        raise FormatError("the file's prior, tolerance or region does not fit the file's inputs.")
    if isinstance(design.noise, FunctionalNoise):
        # raises where centres are the same, or tell the same
        for prior, centres in zip(design.priors, design.noise.centres, strict=True):
            np.linalg.cholesky(prior.covariance(centres))
        if any(np.min(prior.noise) <= 0 for prior in design.priors):
            raise FormatError("the file's noise is a function of the inputs, which needs noise in the data as well.")
    weights = np.ones(1) if design.weights is None else design.weights
    if weights.ndim == 2:
        np.linalg.cholesky(weights)
    each = weights if weights.ndim == 1 else np.diag(weights)
    if np.any(each < SMALLEST_WEIGHT) or np.any(each > 1 / SMALLEST_WEIGHT) or not np.array_equal(weights, weights.T):
        raise FormatError("the file's weights are not positive numbers of usual size, or not symmetric.")


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
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < LARGEST_NUMBER:
        raise FormatError(f"the file's {what} is {str(value)[:40]!r}, not a number it could be.")
    return float(value)


def _texts(values: Any, what: str, longest: int) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) and len(value) <= longest for value in values):
        raise FormatError(f"the file's {what} are not a list of texts of usual length.")
    return tuple(values)
