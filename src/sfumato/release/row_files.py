"""The row files of a release that is too large for one file: inputs and published outputs, as Parquet.

Each file has a digest in the release's manifest. A file may come from anyone: it is checked whenever it is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..arrays import Array
from ..data import LARGEST_NUMBER, ROWS, StoredInputs, TablePart, need_pyarrow, scanned
from ..errors import FormatError
from ..files import replacing
from ..progress import Progress

#: What the folder of such a release has in it: all but the rows, and the folder of the row files.
MANIFEST, ROW_FOLDER = "release.sfumato", "rows"

#: A row file with more rows than this was not written by sfumato.
MOST_ROWS = 16 * ROWS


@dataclass(frozen=True)
class RowFile:
    """A file with some of the rows, as the manifest lists it."""

    name: str
    rows: int
    sha256: str


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
    folder: Path, files: Sequence[RowFile], names: Sequence[str], output: str, step: Progress
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
    return scanned(parts, names, released_name(output, names), step)
