"""The release file: what a release is made of, as a readable manifest and arrays, and back.

Where a release is too large for one file, inputs and published outputs are in row files beside it (Parquet), each with
a digest in the manifest. A file may come from anyone. Nothing in it is run, every part is checked, and no claim in it
is trusted: ``Release.certify`` computes the certificate again.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast, get_args

import numpy as np

from .. import tree_checks as check
from ..arrays import Array
from ..data import LARGEST_NUMBER, ONE_OUTPUT, ROWS, Encoding, Inputs, StoredInputs, TablePart, need_pyarrow, scanned
from ..errors import FormatError, InputError
from ..files import replacing
from ..noise import of_prior
from ..progress import Progress, progress
from ..promise import SEVERITIES, Design, Finding
from ..proof import Certificate, Evidence
from .container import Shapes, Tensors, container, read_container
from .design_tree import (
    DESIGN_KEYS,
    LONGEST_NAME,
    OPTIONAL_KEYS,
    build_design,
    build_encoding,
    build_inputs,
    check_shapes,
    describe_design,
    size,
)

#: What the folder of a large release has in it: all but the rows, and the folder of the row files.
MANIFEST, ROW_FOLDER = "release.sfumato", "rows"

#: A row file with more rows than this was not written by sfumato.
MOST_ROWS = 16 * ROWS

_LONGEST_TEXT = 20_000
#: The entries of a certificate in a file, with their types. How columns became numbers is told of the inputs.
_CLAIMS = {part.name: str(part.type) for part in fields(Certificate) if part.name != "encoding"}
_MANIFEST_KEYS = [*DESIGN_KEYS, "certificate", "output_name", "resolution", "unsafe", "versions"]


@dataclass(frozen=True)
class RowFile:
    """A file with some of the rows, as the manifest lists it."""

    name: str
    rows: int
    sha256: str


class Contents(NamedTuple):
    """What a release file holds. The outputs of a folder are read where they are needed (``StoredColumn``)."""

    design: Design
    certificate: Certificate
    outputs: Array
    resolution: float | tuple[float, ...]
    unsafe: bool
    output_name: str


def write_release(
    contents: Contents,
    path: str | os.PathLike[str],
    row_files: Sequence[RowFile] | None = None,
    rows: StoredInputs | None = None,
) -> None:
    """Write a release file, or with ``row_files``, which hold the ``rows``, the manifest of a folder.

    Guarantee: the same contents give the same bytes, and a failure leaves the old file.
    """

    def check_written(written: str) -> None:
        try:
            read_release(written, rows)
        except FormatError as error:
            raise InputError(f"this release cannot be written to a file that others could read: {error}") from error

    with replacing(path, check_written) as file:
        file.write(encode(contents, row_files))


def encode(release: Contents, row_files: Sequence[RowFile] | None = None) -> bytes:
    """The file; with ``row_files``, which hold the rows, it is the manifest of a folder."""
    design = release.design
    described, tensors = describe_design(design)
    if row_files is None:
        tensors |= {"inputs": design.inputs.values, "outputs": np.asarray(release.outputs)}
    for place, witness in enumerate(design.witness or ()):
        tensors[of_prior("witness", place)] = witness
    if design.weights is not None:
        tensors["weights"] = design.weights
    manifest: dict[str, Any] = described | {
        "certificate": {name: _plain(getattr(release.certificate, name)) for name in _CLAIMS},
        "output_name": release.output_name,
        "resolution": _plain(release.resolution),
        "unsafe": bool(release.unsafe),
        "versions": {name: _version_of(name) for name in ("gpytorch", "numpy", "sfumato", "torch")},
    }
    if row_files is not None:
        manifest["row_files"] = [list(astuple(file)) for file in row_files]
    return container(manifest, tensors)


def _version_of(package: str) -> str:
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return "0"


def _plain(value: Any) -> Any:
    """``value`` as strict JSON has it: lists for arrays and tuples, text for the numbers that JSON lacks."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, Finding):
        told = asdict(value)
        return told if value.accepted else {name: part for name, part in told.items() if name != "accepted"}
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
        manifest, tensors = read_container(path, _check_shapes)
        return _build(manifest, tensors, Path(path).parent / ROW_FOLDER, rows)
    except PermissionError as error:
        raise InputError(f"path is {str(path)!r}, which cannot be opened: {error.strerror}.") from error
    except (FormatError, OSError):
        raise
    except Exception as error:  # untrusted: whatever it upsets in the layers below is the file's fault
        said = " ".join(str(error).split())
        said = said if len(said) <= 300 else f"{said[:100]} … {said[-200:]}"
        raise FormatError(f"the parts of the file do not fit together, or are too large: {said}") from error


def _check_shapes(version: str, manifest: dict[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The manifest, as the newest version has it.

    The arrays must be those that it names, in shapes that belong together (None: any length).
    """
    if version in ("4", "5"):
        manifest = _from_version_5(manifest, shapes)
    if version in ("4", "5", "6"):
        manifest = _from_version_6(manifest)
    if version in ("4", "5", "6", "7", "8"):
        manifest = _from_version_8(manifest, shapes)
    if version in ("4", "5", "6", "7") and "encoding" in manifest:
        raise FormatError("the file's manifest is not that of its version; it is damaged.")
    check.fields(manifest, "manifest", _MANIFEST_KEYS, ["row_files", *OPTIONAL_KEYS])
    if "row_files" in manifest:
        stored = sum(file.rows for file in _row_files(manifest)), len(manifest["columns"])
        check_shapes(manifest, shapes, False, stored)
    else:
        check_shapes(manifest, shapes, True)
    return manifest


def _row_files(manifest: dict[str, Any]) -> list[RowFile]:
    """The files in which a folder has its rows."""
    check.texts(manifest["columns"], "the list of columns", LONGEST_NAME)
    files = []
    for entry in check.items(manifest["row_files"], "the row files", 1):
        name, rows, sha256 = check.items(entry, "a row file", 3, 3)
        rows = check.whole(rows, "its rows", 1, MOST_ROWS)
        files.append(RowFile(check.text(name, "a row file", 100), rows, check.text(sha256, "its digest", 64)))
    return files


def _build(manifest: dict[str, Any], tensors: Tensors, folder: Path, rows: StoredInputs | None) -> Contents:
    inputs, outputs = _rows(manifest, tensors, folder, rows)
    if not isinstance(manifest["unsafe"], bool):
        raise FormatError("the file's unsafe mark is neither true nor false.")
    check.texts([*manifest["versions"].values()], "the list of versions", LONGEST_NAME)
    design = build_design(manifest, tensors, inputs)
    certificate, steps = _certificate(manifest["certificate"], inputs), manifest["resolution"]
    several = tuple(size(step, "resolution") for step in (steps if isinstance(steps, list) else [steps]))
    name = check.text(manifest["output_name"], "the name of the output", LONGEST_NAME)
    resolution = several if isinstance(steps, list) else several[0]
    return Contents(design, certificate, outputs, resolution, manifest["unsafe"], name)


def _rows(manifest: dict[str, Any], tensors: Tensors, folder: Path, known: StoredInputs | None) -> tuple[Inputs, Array]:
    """Inputs and outputs."""
    if "row_files" not in manifest:
        return build_inputs(tensors["inputs"], manifest), tensors["outputs"]
    if manifest["output_names"] is not None:
        raise FormatError("the folder is about several outputs, which only files hold.")
    columns = check.texts(manifest["columns"], "the list of columns", LONGEST_NAME, distinct=True)
    output = check.text(manifest["output_name"], "the name of the output", LONGEST_NAME)
    if known is None:
        with progress(True) as step:
            encoding = build_encoding(manifest, columns, ONE_OUTPUT)
            known = released_rows(folder, _row_files(manifest), columns, output, step, encoding)
    return known, cast(Array, known.column(released_name(output, known.names)))


def _certificate(tree: Any, inputs: Inputs) -> Certificate:
    """The certificate as the owner claims it."""
    check.fields(tree, "certificate", list(_CLAIMS))
    read: dict[str, Callable[[Any], Any]] = {
        "float": _claim,
        "Evidence": _evidence,
        "Array": lambda value: np.array([_claim(number) for number in value]),
        "tuple[Finding, ...]": lambda value: tuple(_finding(entry) for entry in value),
        "tuple[str, ...]": lambda value: check.texts(value, "a list of the certificate", _LONGEST_TEXT),
    }
    values: dict[str, Any] = {}
    for name, kind in _CLAIMS.items():
        value = tree[name]
        if kind not in read and (type(value).__name__ != kind or (kind == "str" and len(value) > _LONGEST_TEXT)):
            check.wrong(f"the certificate's {name}", value, f"a {kind} of usual length")
        values[name] = read[kind](value) if kind in read else value
    if not len(values["worst_input"]) == len(values["columns"]) == inputs.dimension:
        raise FormatError("the file's certificate has other columns than the inputs.")
    return Certificate(**values, encoding=inputs.encoding)


def _evidence(value: Any) -> str:
    if value not in get_args(Evidence):
        check.wrong("the certificate's evidence", value, f"one of {', '.join(get_args(Evidence))}")
    return str(value)


def _finding(tree: Any) -> Finding:
    texts = ("code", "severity", "text", "remedy")
    check.fields(tree, "finding", texts, ["accepted"])
    check.texts([tree[name] for name in texts], "a finding", _LONGEST_TEXT)
    if type(tree.get("accepted", False)) is not bool:
        check.wrong("whether a finding is accepted", tree["accepted"], "true or false")
    if tree["severity"] not in SEVERITIES:
        check.wrong("the severity of a finding", tree["severity"], f"one of {', '.join(SEVERITIES)}")
    return Finding(**tree)


#: How version 4 began a note that a ledger alone could write; it was the code of that note.
_ONE_BY_ONE = "PROTECTED ONE BY ONE"


def _from_version_5(manifest: dict[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The manifest of a file of version 4 or 5: the promise is made for the inputs that it lists, and was searched."""
    certificate = manifest.get("certificate")
    if not isinstance(certificate, dict) or "promised" in manifest:
        raise FormatError("the file's manifest is not that of its version; it is damaged.")
    if "notes" in certificate:
        certificate = _from_version_4(certificate)
    sensitive = shapes.get("sensitive", (0,))[0]
    return manifest | {
        "promised": sensitive,
        "certificate": certificate | {"evidence": "searched", "proved_share": 0.0},
    }


def _from_version_6(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest of a file whose promise is about f, and to outsiders; of records it says nothing."""
    certificate = manifest.get("certificate")
    if not isinstance(certificate, dict) or "protects" in manifest:
        raise FormatError("the file's manifest is not that of its version; it is damaged.")
    numbers = ("record_noise", "record_ratio", "record_learnt", "record_sensitivity", "insider_ratio")
    unsaid: dict[str, Any] = {"protects": "function", "records": 0, "raw_records": 0, "insider_group": -1}
    unsaid |= dict.fromkeys(numbers, "nan")
    return manifest | {
        "protects": "function",
        "insiders": None,
        "designed_for": [],
        "record_noise": None,
        "certificate": certificate | unsaid,
    }


def _from_version_8(manifest: dict[str, Any], shapes: Shapes) -> dict[str, Any]:
    """The manifest of a file whose noise is the least, and that publishes all combinations of its rows."""
    certificate = manifest.get("certificate")
    if (
        not isinstance(certificate, dict)
        or "objective" in certificate
        or {"served", "noise_suppressed"} & shapes.keys()
    ):
        raise FormatError("the file's manifest is not that of its version; it is damaged.")
    unsaid = {"objective": "noise", "explained": "nan", "explained_upper": "nan", "suppressed": 0}
    return manifest | {"certificate": certificate | unsaid}


def _from_version_4(tree: dict[str, Any]) -> dict[str, Any]:
    """The certificate of a file of version 4, which had a text for each finding."""
    findings = []
    for note in check.texts(tree["notes"], "the list of notes", _LONGEST_TEXT):
        kind = {"code": "noted-by-version-4", "severity": "note"}
        if note[: len(_ONE_BY_ONE)] == _ONE_BY_ONE:
            kind = {"code": "protected-one-by-one", "severity": "high"}
        findings.append(kind | {"text": note, "remedy": ""})
    return {name: value for name, value in tree.items() if name != "notes"} | {"findings": findings}


def _claim(value: Any) -> float:
    if type(value) not in (int, float) and value not in ("nan", "inf", "-inf"):
        check.wrong("a number of the certificate", value, "a number")
    return float(value)


def file_name(number: int) -> str:
    """The name of the row file at place ``number``."""
    return f"part-{number:05d}.parquet"


def released_name(output: str, inputs: Sequence[str]) -> str:
    """What the published output is called beside the inputs: inputs called x and y are common."""
    return output if output not in inputs else f"{output} (released)"


def write_rows(path: Path, names: Sequence[str], values: Array) -> RowFile:
    """Write ``values`` (rows × columns) under ``names``.

    Guarantee: there is a complete file at ``path`` afterwards or none; the same values give the same bytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = [pa.array(np.ascontiguousarray(column)) for column in values.T]
    schema = pa.schema([pa.field(name, pa.float64(), nullable=False) for name in names])
    with replacing(path) as file:
        pq.write_table(pa.table(columns, schema=schema), file)
        file.seek(0)
        digest = sha256_of(file)
    return RowFile(path.name, len(values), digest)


def sha256_of(file: BinaryIO) -> str:
    """The digest of the rest of ``file``."""
    state = hashlib.sha256()
    while block := file.read(1 << 20):
        state.update(block)
    return state.hexdigest()


@dataclass(frozen=True, eq=False)
class ReleasedPart(TablePart):
    """The rows of one row file. Guarantee: what is read comes from bytes with the digest of the manifest."""

    path: str
    sha256: str
    names: tuple[str, ...]
    output: str

    def read(self, names: Sequence[str]) -> Array:
        try:
            return self._parse(self._bytes(), names)
        except FormatError:
            raise
        except Exception as error:  # untrusted: whatever it upsets in the reader of Parquet is the file's fault
            raise FormatError(f"{self.path} cannot be read: {' '.join(str(error).split())[:200]}") from error

    def _bytes(self) -> bytes:
        try:
            about = os.lstat(self.path)
        except OSError as error:
            raise FormatError(f"{self.path} is missing or cannot be opened; get the release again.") from error
        largest = (len(self.names) + 1) * (16 * self.rows + (4 << 20))
        if not stat.S_ISREG(about.st_mode) or about.st_size > largest:
            raise FormatError(f"{self.path} is not a file, or too large for {self.rows} rows.")
        with open(self.path, "rb") as file:
            data = file.read(largest + 1)
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise FormatError(f"{self.path} does not match its digest; it was damaged or edited, get it again.")
        return data

    def _parse(self, data: bytes, names: Sequence[str]) -> Array:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(pa.BufferReader(data)) as file:
            schema = file.schema_arrow
            expected = [*self.names, self.output]
            if schema.names != expected or any(field.type != pa.float64() for field in schema):
                raise FormatError(f"{self.path} does not have the float64 columns {', '.join(expected)[:200]}.")
            if file.metadata.num_rows != self.rows:
                raise FormatError(f"{self.path} has {file.metadata.num_rows} rows, not {self.rows}.")
            table: Any = file.read(columns=list(names), use_threads=False)
        values = np.column_stack([table.column(name).to_numpy() for name in names])
        if values.shape != (self.rows, len(names)) or not np.all(np.abs(values) < LARGEST_NUMBER):
            raise FormatError(f"{self.path} has values that are missing, infinite, or too large to be squared.")
        return np.ascontiguousarray(values, dtype=np.float64)


def released_rows(
    folder: Path,
    files: Sequence[RowFile],
    names: Sequence[str],
    output: str,
    step: Progress,
    encoding: Encoding | None = None,
) -> StoredInputs:
    """The rows of a release in ``folder``, after one pass in which every file is checked."""
    if not files:
        raise FormatError("the release has no rows; it is damaged.")
    need_pyarrow()
    parts: list[ReleasedPart] = []
    start = 0
    for number, file in enumerate(files):
        if file.name != file_name(number) or not 0 < file.rows <= MOST_ROWS:
            raise FormatError(f"the release names a row file {file.name[:40]!r} that it cannot have.")
        path = str(folder / file.name)
        parts.append(ReleasedPart(start, file.rows, path, file.sha256, tuple(names), released_name(output, names)))
        start += file.rows
    return scanned(parts, names, released_name(output, names), step, encoding=encoding)
