"""The container of a release file: safetensors bytes, written atomically and read with suspicion.

The header's ``__metadata__`` has the format's name and version, a manifest (JSON text) and a SHA-256 digest of all of
it. The digest finds damage; it is no signature. Any safetensors reader opens it, but the bytes are laid out here: the
safetensors package orders metadata at random, and the same release must give the same file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from ..arrays import Array
from ..data import LARGEST_NUMBER
from ..errors import FormatError, InputError

FORMAT = "sfumato-release"
VERSION = "5"
#: Version 4 had texts where version 5 has findings; all else is the same.
READABLE_VERSIONS = ("4", VERSION)
LARGEST_HEADER = 16 << 20
_LARGEST_FILE = 1 << 36
Shapes: TypeAlias = dict[str, tuple[int, ...]]
Tensors: TypeAlias = dict[str, Array]
Places: TypeAlias = dict[str, tuple[tuple[int, ...], int]]  # shape and first byte of each tensor


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


def read_container(
    file: BinaryIO, size: int, check_shapes: Callable[[dict[str, Any], Shapes], None]
) -> tuple[dict[str, Any], Tensors]:
    """The manifest and the arrays of a file of ``size`` bytes; ``check_shapes`` may refuse before arrays are read."""
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
    if version not in READABLE_VERSIONS:
        readable = " and ".join(map(repr, READABLE_VERSIONS))
        raise FormatError(f"the file has version {version!r:.40}, but this sfumato reads versions {readable}.")
    if set(about) != {"format", "version", "manifest", "digest"} or {type(text) for text in about.values()} != {str}:
        raise FormatError("the file's metadata are not those of a sfumato release; it is damaged.")
    places = _places(header, size - 8 - length)
    manifest = _parse(about["manifest"].encode(), "manifest")
    check_shapes(manifest, {name: shape for name, (shape, _) in places.items()})
    data = file.read(size - 8 - length)
    tensors = {
        name: np.frombuffer(data, "<f8", math.prod(shape), begin if math.prod(shape) else 0).reshape(shape)
        for name, (shape, begin) in places.items()
    }
    if _digest(about["version"], about["manifest"], tensors) != about["digest"]:
        raise FormatError("the file's contents do not match its digest; it was damaged or edited, get it again.")
    if not all(np.all(np.abs(array) < LARGEST_NUMBER) for array in tensors.values()):
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
