"""The container of a release file: safetensors with one entry of metadata, read with suspicion.

The entry ``sfumato-release`` is JSON text: the format's version, a manifest, and a SHA-256 digest of both and of all
arrays. The digest finds damage; it is no signature. There is one entry because safetensors orders several at random,
and the same release must give the same file. Files of version 4 have four entries.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import safetensors
import safetensors.numpy

from ..arrays import Array
from ..data import LARGEST_NUMBER
from ..errors import FormatError, InputError

FORMAT = "sfumato-release"
VERSION = "9"
#: Version 4 had other metadata, and texts for findings. Neither it nor version 5 says for how many sensitive inputs a
#: promise was made, and what it rests on. Up to version 6 all promises were about f, and to outsiders.
#: Up to version 7 all inputs were numbers. Up to version 8 the noise was the least, and no combination suppressed.
READABLE_VERSIONS = ("4", "5", "6", "7", "8", VERSION)
#: A longer description is not read (16 MiB), nor are more bytes of arrays (64 GiB).
LARGEST_HEADER, LARGEST_FILE = 16 << 20, 1 << 36

Shapes: TypeAlias = dict[str, tuple[int, ...]]
Tensors: TypeAlias = dict[str, Array]


def container(manifest: dict[str, Any], tensors: Tensors, version: str = VERSION) -> bytes:
    """A manifest and float64 arrays as a file. Guarantee: the same ones give the same bytes."""
    stored = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in tensors.items()}
    about = {"digest": digest_of(version, _text(manifest), stored), "manifest": manifest, "version": version}
    encoded: bytes = safetensors.numpy.save(stored, metadata={FORMAT: _text(about)})
    if int.from_bytes(encoded[:8], "little") > LARGEST_HEADER:
        raise InputError(f"the description of this release is over {LARGEST_HEADER >> 20} MiB; give a simpler region.")
    return encoded


def _text(tree: dict[str, Any]) -> str:
    """The one way to write ``tree``."""
    return json.dumps(tree, sort_keys=True, allow_nan=False)


def digest_of(version: str, manifest: str, tensors: Tensors) -> str:
    """The digest of what a file holds."""
    shapes = [[name, tensors[name].shape] for name in sorted(tensors)]
    state = hashlib.sha256(json.dumps([FORMAT, version, manifest, shapes]).encode())
    for name in sorted(tensors):
        state.update(np.ascontiguousarray(tensors[name], dtype="<f8").reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def read_container(
    path: str | os.PathLike[str], check_shapes: Callable[[str, dict[str, Any], Shapes], dict[str, Any]]
) -> tuple[dict[str, Any], Tensors]:
    """The manifest and the arrays of a file.

    ``check_shapes`` is told the version, and may refuse before arrays are read; it returns the manifest as the newest
    version has it.
    """
    with open(path, "rb") as opened:
        size, length = os.fstat(opened.fileno()).st_size, int.from_bytes(opened.read(8), "little")
    if size < 8 or not 2 <= length <= LARGEST_HEADER:
        raise FormatError("this is not a sfumato release: it does not start like one (empty, or another kind of file?)")
    try:
        with safetensors.safe_open(path, "numpy") as file:
            version, manifest, text, digest = _described(file.metadata())
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            for name, array in slices.items():
                if array.get_dtype() != "F64":
                    raise FormatError(f"the file's {name[:40]!r} is no array of float64 (F64), the only type it has.")
            if size > LARGEST_FILE:
                raise FormatError(f"the file takes {size} bytes; at most {LARGEST_FILE} are read.")
            manifest = check_shapes(
                version, manifest, {name: tuple(array.get_shape()) for name, array in slices.items()}
            )
            tensors: Tensors = {name: file.get_tensor(name) for name in slices}
    except safetensors.SafetensorError as error:
        raise FormatError(f"the file was truncated or damaged, get it again ({str(error)[:200]}).") from error
    if digest_of(version, text, tensors) != digest:
        raise FormatError("the file's contents do not match its digest; it was damaged or edited, get it again.")
    if not all(np.all(np.abs(array) < LARGEST_NUMBER) for array in tensors.values()):
        raise FormatError("the file's arrays have values that are NaN or infinite, or too large to be squared.")
    for array in tensors.values():
        array.setflags(write=False)
    return manifest, tensors


def _described(metadata: dict[str, str] | None) -> tuple[str, dict[str, Any], str, Any]:
    """Version, manifest, the text of it that the digest is about, and the digest."""
    metadata = metadata or {}
    before_version_5 = metadata.get("format") == FORMAT
    if not before_version_5 and FORMAT not in metadata:
        raise FormatError("this is not a sfumato release, though it may be another safetensors file.")
    about = dict[str, Any](metadata) if before_version_5 else parsed(metadata[FORMAT], "description")
    version = about.get("version")
    if version not in READABLE_VERSIONS or before_version_5 != (version == "4"):
        readable = ", ".join(map(repr, READABLE_VERSIONS))
        raise FormatError(f"the file has version {version!r:.40}, but this sfumato reads versions {readable}.")
    if about.keys() - {"format"} != {"version", "manifest", "digest"}:
        raise FormatError("the file's metadata are not those of a sfumato release; it is damaged.")
    if before_version_5:
        return version, parsed(about["manifest"], "manifest"), about["manifest"], about["digest"]
    if not isinstance(about["manifest"], dict):
        raise FormatError("the file's manifest is not an object; it is damaged.")
    return version, about["manifest"], _text(about["manifest"]), about["digest"]


def parsed(text: str, what: str) -> dict[str, Any]:
    """Strict JSON: one object, no repeated keys, no NaN, numbers of usual size, real text."""
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse,
            parse_int=lambda digits: int(digits) if len(digits) <= 20 else _refuse(digits),
            parse_float=lambda digits: value if math.isfinite(value := float(digits)) else _refuse(digits),
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


def is_folder_manifest(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` begins like the manifest of a release in a folder, of any version."""
    try:
        with safetensors.safe_open(path, "numpy") as file:
            about = file.metadata() or {}
        described = json.loads(about[FORMAT])["manifest"] if FORMAT in about else json.loads(about["manifest"])
        return "row_files" in described and FORMAT in (*about, about.get("format"))
    except (OSError, safetensors.SafetensorError, ValueError, KeyError, TypeError):
        return False
