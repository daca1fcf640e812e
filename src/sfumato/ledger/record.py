"""What each release revealed, as an entry of a ledger's file: the design that it was made with, and back.

A record is what later releases are weighed against. It holds neither y nor the published outputs nor a key; of the
outputs it has a digest, so that its release can be found. Weights and witness are left out: they say how
the noise was chosen, and nothing about what it reveals.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import tree_checks as check
from ..arrays import Array
from ..data import LARGEST_NUMBER
from ..errors import FormatError, InputError
from ..promise import Design, Revealed
from ..release import (
    DESIGN_KEYS,
    LONGEST_NAME,
    Tensors,
    build_design,
    build_inputs,
    check_shapes,
    describe_design,
)
from .chained_file import ROOT, Chain, ChainedFile, is_hash

KIND, VERSION = "release", 3
_LONGEST_TIME = 100
_KEYS = ["arrays", "design", "kind", "name", "outputs_digest", "version", "when"]
#: All arrays of a record take at most this many bytes (4 GiB).
_LARGEST = 1 << 32
#: No byte of zlib's stands for more bytes than this.
_DENSEST = 1032


@dataclass(eq=False)
class Records:
    """The records in ``file``, and what was read of them last.

    Guarantee: a file that has lost lines since it was read last is refused (``FormatError``).
    """

    file: ChainedFile
    _head: str = ROOT
    _disclosed: tuple[str, tuple[Revealed, ...]] = (ROOT, ())

    def chain(self, head: str | None = None) -> Chain:
        """All lines, checked; an earlier ``head`` that was kept elsewhere must be among their hashes."""
        chain = self.file.verify(head)
        self._remember(chain)
        return chain

    def revealed(self, chain: Chain) -> tuple[Revealed, ...]:
        """What each release revealed, the first one first."""
        if self._disclosed[0] != chain.head:
            self._disclosed = chain.head, tuple(_what_it_revealed(entry.body) for entry in chain.entries)
        return self._disclosed[1]

    def append(self, made: Revealed, outputs_digest: str, check_chain: Callable[[Chain], None]) -> None:
        """Write down what was ``made``, unless it is there already or ``check_chain`` refuses it."""
        when = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        record = describe_record(made.design, name=made.name, outputs_digest=outputs_digest, when=when)

        def body(chain: Chain) -> dict[str, Any]:
            self._remember(chain)
            if any(_as_now(entry.body["record"]) | {"when": when} == record for entry in chain.entries):
                raise _AlreadyThere
            check_chain(chain)
            return {"record": record, "remeasured": made.remeasured}

        with contextlib.suppress(_AlreadyThere):
            self._head = self.file.update(body).hash

    def _remember(self, chain: Chain) -> None:
        if not chain.has(self._head):
            raise FormatError(
                f"{self.file.path} has lost lines that were there when it was read last: it was deleted, or an old "
                "copy was put in its place; restore the newest one."
            )
        self._head = chain.head


class _AlreadyThere(Exception):  # noqa: N818
    """The release is in the ledger already."""


def _what_it_revealed(body: Any) -> Revealed:
    if not isinstance(body, dict) or body.keys() != {"record", "remeasured"} or type(body["remeasured"]) is not bool:
        raise FormatError("an entry of the ledger is not that of a release; it was written by something else.")
    return Revealed(record_design(body["record"]), body["record"]["name"], body["remeasured"])


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


def _read(record: Any) -> Design:
    check.fields(record, "record", _KEYS)
    if record["kind"] != KIND:
        check.wrong("the kind of the record", record["kind"], repr(KIND))
    record = _as_now(record)
    if record["version"] != VERSION:
        raise FormatError(f"it has version {record['version']!r:.40}, but this sfumato reads versions 1 to {VERSION}.")
    check.text(record["name"], "its name", LONGEST_NAME, 1)
    check.text(record["when"], "its when", _LONGEST_TIME, 1)
    if not is_hash(record["outputs_digest"]):
        check.wrong("its outputs_digest", record["outputs_digest"], "64 hexadecimal digits")
    tree, arrays = check.fields(record["design"], "design", DESIGN_KEYS, ("encoding",)), record["arrays"]
    if not isinstance(arrays, dict):
        check.wrong("the arrays of the record", arrays, "an object")
    shapes = {key: _shape(array) for key, array in arrays.items()}
    if 8 * sum(math.prod(shape) for shape in shapes.values()) > _LARGEST:
        raise FormatError(f"its arrays take more than {_LARGEST >> 20} MiB.")
    if "noise_mixing" in shapes or "weights" in shapes or "witness" in shapes:
        raise FormatError("it has arrays that a record does not have.")
    check_shapes(tree, shapes, False)  # before any of them is unpacked
    tensors: Tensors = {key: decode_array(array) for key, array in arrays.items()}
    return build_design(tree, tensors, build_inputs(tensors["inputs"], tree))


def _as_now(record: dict[str, Any]) -> dict[str, Any]:
    """A record of an older version as one of this version.

    Version 1 did not say that the joint promise is made for the inputs that it lists. Up to version 2 promises were
    about f, and to outsiders.
    """
    design, arrays, version = record["design"], record["arrays"], record["version"]
    if version not in (1, 2) or not isinstance(design, dict) or not isinstance(arrays, dict):
        return record
    if version == 1:
        design = design | {"promised": _shape(arrays["sensitive"])[0] if "sensitive" in arrays else 0}
    unsaid: dict[str, Any] = {"protects": "function", "insiders": None, "designed_for": [], "record_noise": None}
    return record | {"version": VERSION, "design": design | unsaid}


def encode_array(array: Array) -> dict[str, Any]:
    """An array as plain JSON: its shape, and its bytes packed by zlib and written as base64."""
    # doubles hardly pack: more effort than the least takes long for nothing
    packed = zlib.compress(np.ascontiguousarray(array, dtype="<f8").tobytes(), 1)
    return {"float64": base64.b64encode(packed).decode("ascii"), "shape": list(array.shape)}


def decode_array(tree: Any) -> Array:
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
    check.fields(tree, "array", ("float64", "shape"))
    if not isinstance(tree["float64"], str):
        check.wrong("an array", tree["float64"], "written as a text")
    shape = tuple(
        check.whole(length, "a length of an array", 0, _LARGEST)
        for length in check.items(tree["shape"], "a shape", 1, 2)
    )
    if 8 * math.prod(shape) > _LARGEST:
        raise FormatError(f"an array has the shape {list(shape)}, which takes over {_LARGEST >> 20} MiB.")
    return shape
