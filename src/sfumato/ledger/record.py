"""What one release revealed, as an entry of a ledger: the design that it was made with, and back.

A record is what later releases are weighed against. It holds neither y nor the published outputs nor a key; of the
outputs it has a digest, so that the release it speaks of can be found. Weights and witness are left out: they say how
the noise was chosen, and nothing about what it reveals.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from typing import Any

import numpy as np

from ..arrays import Array
from ..data import LARGEST_NUMBER
from ..errors import FormatError, InputError
from ..promise import Design
from ..release import (
    LONGEST_NAME,
    Shapes,
    Tensors,
    build_design,
    build_inputs,
    compare_shapes,
    describe_design,
    design_shapes,
)
from .chained_file import is_hash

KIND, VERSION = "release", 1
_LONGEST_TIME = 100
_KEYS = {"arrays", "design", "kind", "name", "outputs_digest", "version", "when"}
_DESIGN_KEYS = {"columns", "cover", "guarantee", "others", "output_names", "prior", "region"}
_DESIGN_KEYS |= {"shift", "structure", "tolerance"}
#: All arrays of a record take at most this many bytes, and no byte of zlib's stands for more than so many.
_LARGEST = 1 << 32
_DENSEST = 1032


def describe_record(design: Design, *, name: str, outputs_digest: str, when: str) -> dict[str, Any]:
    """A record of a release called ``name``, made at the time ``when``; ``digest_outputs`` makes the digest.

    Guarantee: it depends on the design, and on y through ``outputs_digest`` alone; ``record_design`` can read it.
    """
    if design.noise.compressed:
        raise InputError(
            'compressed releases cannot be composed exactly; protect with method="subspace" or "eigh" for a release '
            "that a ledger is to record."
        )
    tree, arrays = describe_design(design)
    arrays["inputs"] = design.inputs.values
    record = {
        "arrays": {key: encode_array(array) for key, array in arrays.items()},
        "design": tree,
        "kind": KIND,
        "name": name,
        "outputs_digest": outputs_digest,
        "version": VERSION,
        "when": when,
    }
    try:
        _read(record)
    except FormatError as error:
        raise InputError(f"this release cannot be recorded: {error}") from error
    return record


def record_design(record: dict[str, Any]) -> Design:
    """The design that ``describe_record`` wrote down, its arrays bit for bit; ``FormatError`` where it is damaged."""
    try:
        return _read(record)
    except FormatError as error:
        raise FormatError(f"a record of a release is damaged: {error}") from error
    except Exception as error:  # whatever it upsets in the layers below is the record's fault
        raise FormatError(f"the parts of a record do not fit together, or are too large: {error}") from error


def _read(record: dict[str, Any]) -> Design:
    _check_keys(record)
    tree, arrays = record["design"], record["arrays"]
    shapes = {key: _shape(array) for key, array in arrays.items()}
    if 8 * sum(math.prod(shape) for shape in shapes.values()) > _LARGEST:
        raise FormatError(f"its arrays take more than {_LARGEST >> 20} MiB.")
    _check_shapes(tree, shapes)
    tensors: Tensors = {key: decode_array(array) for key, array in arrays.items()}
    return build_design(tree, tensors, build_inputs(tensors["inputs"], tree["columns"], tree["output_names"]))


def _check_keys(record: dict[str, Any]) -> None:
    if not isinstance(record, dict) or record.keys() != _KEYS or record["kind"] != KIND:
        raise FormatError("it does not have the parts of one.")
    if record["version"] != VERSION:
        raise FormatError(f"it has version {record['version']!r:.40}, but this sfumato reads version {VERSION}.")
    for key, longest in (("name", LONGEST_NAME), ("when", _LONGEST_TIME)):
        if not isinstance(record[key], str) or not 0 < len(record[key]) <= longest:
            raise FormatError(f"its {key} is {str(record[key])[:80]!r}, not a text of 1 to {longest} characters.")
    if not is_hash(record["outputs_digest"]):
        raise FormatError(f"its outputs_digest is {str(record['outputs_digest'])[:80]!r}, not 64 hexadecimal digits.")
    tree, arrays = record["design"], record["arrays"]
    if not isinstance(tree, dict) or tree.keys() != _DESIGN_KEYS or not isinstance(arrays, dict):
        raise FormatError("its design does not have the parts of one.")


def _check_shapes(tree: dict[str, Any], shapes: Shapes) -> None:
    """The arrays must be those of a design that a ledger records, before any of them is unpacked."""
    rows, dimension = shapes["inputs"] if len(shapes.get("inputs", ())) == 2 else (0, 0)
    if "noise_mixing" in shapes or "weights" in shapes or "witness" in shapes:
        raise FormatError("it has arrays that a record does not have.")
    compare_shapes(shapes, {"inputs": (rows, dimension)} | design_shapes(tree, shapes, rows, dimension))


def encode_array(array: Array) -> dict[str, Any]:
    """An array as plain JSON: its shape, and its bytes packed by zlib and written as base64."""
    # doubles hardly pack: more effort than the least takes long for nothing
    packed = zlib.compress(np.ascontiguousarray(array, dtype="<f8").tobytes(), 1)
    return {"float64": base64.b64encode(packed).decode("ascii"), "shape": list(array.shape)}


def decode_array(tree: dict[str, Any]) -> Array:
    """The array of ``encode_array``, bit for bit and read-only. No more is unpacked than its shape asks for."""
    shape = _shape(tree)
    size = 8 * math.prod(shape)
    try:
        packed = base64.b64decode(tree["float64"].encode("ascii"), validate=True)
        if size > _DENSEST * len(packed):
            raise FormatError(f"an array of shape {shape} is written in {len(packed)} bytes, which is too few.")
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(packed, size + 1)
    except (binascii.Error, UnicodeError, zlib.error) as error:
        raise FormatError(f"an array cannot be unpacked ({error}).") from error
    if len(raw) != size or not unpacker.eof or unpacker.unused_data:
        raise FormatError(f"an array of shape {shape} does not have {size} bytes.")
    values = np.frombuffer(raw, "<f8").reshape(shape).astype(np.float64, copy=False)
    if not np.all(np.abs(values) < LARGEST_NUMBER):
        raise FormatError("an array has values that are NaN or infinite, or too large to be squared.")
    return values


def _shape(tree: Any) -> tuple[int, ...]:
    if not isinstance(tree, dict) or tree.keys() != {"float64", "shape"} or not isinstance(tree["float64"], str):
        raise FormatError("an array does not have the parts of one.")
    shape = tree["shape"]
    if not isinstance(shape, list) or len(shape) not in (1, 2) or any(type(v) is not int for v in shape):
        raise FormatError(f"an array has the shape {str(shape)[:40]!r}, which is none.")
    if min(shape) < 0 or max(shape) > _LARGEST or 8 * math.prod(shape) > _LARGEST:
        raise FormatError(f"an array has the shape {shape}, which is impossible or over {_LARGEST >> 20} MiB.")
    return tuple(shape)
