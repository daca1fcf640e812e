"""The folder of a release that is too large for one file.

::

    big-release/release.sfumato            manifest, prior, noise: all but the rows
    big-release/rows/part-00000.parquet …  inputs and published outputs
    big-release/.run/                      while a run is under way: its key, and the release that it makes

A release is made inside ``.run``, which only its owner can enter, and moved into place when it is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..arrays import Array
from ..data import LARGEST_NUMBER, ROWS, StoredInputs, TablePart, need_pyarrow, scanned
from ..errors import FormatError, InputError
from ..files import TEMPORARY_NAME, replacing, sync_folder
from ..progress import Progress
from .container import is_folder_manifest

# The row files of a release that is too large for one file: inputs and published outputs, as Parquet.
#
# Each file has a digest in the release's manifest. A file may come from anyone: it is checked whenever it is read.

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


@dataclass(frozen=True)
class ReleasedPart(TablePart):
    """The rows of one row file. Guarantee: what is read comes from bytes with the digest of the manifest."""

    start: int
    rows: int
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
            raise FormatError(f"the release speaks of a row file {file.name[:40]!r} that it cannot have.")
        path = str(folder / file.name)
        parts.append(ReleasedPart(start, file.rows, path, file.sha256, tuple(names), released_name(output, names)))
        start += file.rows
    return scanned(parts, names, released_name(output, names), step)


MANIFEST, ROW_FOLDER, RUN = "release.sfumato", "rows", ".run"
KEY, TASK, DESIGN, STAMP, WRITTEN = "key", "task", "design.sfumato", "stamp", "written"

#: Older versions named what a kill left after the file that it was to be.
_ROW_FILE = re.compile(rf"part-\d{{5,}}\.parquet|\.part-\d{{5,}}\.parquet\.[0-9a-f]+\.tmp|{TEMPORARY_NAME}")
_IN_RUN = re.compile(rf"{KEY}|{TASK}|{STAMP}|{WRITTEN}|{ROW_FOLDER}|.*\.sfumato|{TEMPORARY_NAME}")


def has_release(folder: Path) -> bool:
    """Whether there is a complete release in ``folder``."""
    return (folder / MANIFEST).is_file()


def prepare_folder(folder: Path) -> None:
    """Make ``folder``, if a release may be written to it."""
    check_folder(folder)
    folder.mkdir(exist_ok=True)


def check_folder(folder: Path) -> None:
    """Raise ``InputError`` if ``folder`` holds anything but what sfumato has written."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder to write the release to.")
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent} does not exist; make it first.")
    names = set(os.listdir(folder)) if folder.exists() else set()
    ours = is_folder_manifest(folder / MANIFEST) if MANIFEST in names else RUN in names
    fit = _only(folder / ROW_FOLDER, _ROW_FILE) and _only(folder / RUN, _IN_RUN)
    if names and not (ours and fit):
        raise InputError(f"{folder} has things in it that are not a release of sfumato; give a new or an empty folder.")


def _only(folder: Path, names: re.Pattern[str]) -> bool:
    """Whether ``folder`` is not there, or is a real folder with nothing but such names in it."""
    if not os.path.lexists(folder):
        return True
    return folder.is_dir() and not folder.is_symlink() and all(names.fullmatch(name) for name in os.listdir(folder))


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else writes to ``folder`` in the meantime; ``InputError`` if somebody does. A kill ends it."""
    try:
        import fcntl
    except ImportError:  # there is no such lock on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {folder}; wait for it, or give another folder.") from None
        yield
    finally:
        os.close(handle)


def publish(folder: Path) -> None:
    """Move the complete release in ``.run`` into place and forget its key.

    Guarantee: readers see the old release, none, or the new one. If it is interrupted, it can be done again.
    """
    run = folder / RUN
    if (run / ROW_FOLDER).is_dir():
        (folder / MANIFEST).unlink(missing_ok=True)
        remove_rows(folder / ROW_FOLDER)
        os.rename(run / ROW_FOLDER, folder / ROW_FOLDER)
        sync_folder(folder)
    (run / KEY).unlink(missing_ok=True)
    os.replace(run / MANIFEST, folder / MANIFEST)
    sync_folder(folder)
    shutil.rmtree(run)


def remove_rows(folder: Path) -> None:
    """Remove row files, and nothing else."""
    if folder.is_dir():
        for name in os.listdir(folder):
            if _ROW_FILE.fullmatch(name):
                (folder / name).unlink()
        folder.rmdir()


def remove_run(folder: Path) -> None:
    """Remove what an unfinished run has left, its key first."""
    (folder / RUN / KEY).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder / RUN)


def abandon(folder: Path) -> None:
    """Remove an unfinished run, and ``folder`` too if nothing else is in it."""
    remove_run(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()
