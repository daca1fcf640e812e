"""Rows that are read where they are needed: inputs and outputs of any number, in memory one part after the other.

Parquet files are checked as tables are, and never in memory all at once.
"""

from __future__ import annotations

import glob
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Index, Mask, frozen
from ..errors import InputError
from ..progress import Progress
from ..text import one_line, shown
from .columns import asked_columns, require_columns
from .encoding import Column, Encoding, from_moments
from .inputs import Inputs, MemoryInputs, Outputs, sample_places
from .parts import LARGEST_NUMBER, ROWS, Engine, Here, Part, TablePart
from .tables import PARQUET, need_pyarrow


@dataclass(frozen=True, eq=False)
class StoredColumn(np.lib.mixins.NDArrayOperatorsMixin):
    """A number for each row, such as its output, under ``name`` in each of the ``parts``.

    ``np.asarray`` and arithmetic read all of it; a slice and ``select`` read the parts with these rows.
    """

    parts: tuple[Part, ...]
    name: str

    def __len__(self) -> int:
        return _count(self.parts)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def select(self, keep: Mask | Index) -> Array:
        return _selected(self.parts, keep, lambda part: part.column(self.name), ())

    def __getitem__(self, key: Any) -> Any:
        return self.select(np.arange(len(self))[key]) if isinstance(key, slice) else np.asarray(self)[key]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = np.concatenate([part.column(self.name) for part in self.parts])
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *arguments: Any, **options: Any) -> Any:
        read = (np.asarray(value) if isinstance(value, StoredColumn) else value for value in arguments)
        return getattr(ufunc, method)(*read, **options)

    def __repr__(self) -> str:
        return shown(f"<{len(self)} stored values of {self.name}>")


@dataclass(frozen=True, eq=False, repr=False)
class StoredInputs(Inputs):
    """Rows that are read part after part."""

    stored: tuple[Part, ...]
    sample: MemoryInputs
    index: None = None

    @cached_property
    def columns(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return self.sample.columns

    @cached_property
    def outputs(self) -> Outputs:  # type: ignore[override]
        return self.sample.outputs

    @property
    def encoding(self) -> Encoding | None:  # type: ignore[override]
        return self.sample.encoding

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        return frozen(np.concatenate([part.inputs() for part in self.stored]))

    def __len__(self) -> int:
        return _count(self.stored)

    def select(self, keep: Mask | Index) -> MemoryInputs:
        chosen = _selected(self.stored, keep, lambda part: part.inputs(), (self.dimension,))
        return MemoryInputs(chosen, self.columns, self.outputs, encoding=self.encoding)

    def column(self, name: str) -> StoredColumn:
        """What else the parts know of each row."""
        return StoredColumn(self.stored, name)

    def parts(self, columns: Mapping[str, Any] | None = None) -> Sequence[Part]:
        """The rows part after part, each with its share of ``columns``: arrays, or stored columns of the same parts."""
        columns, cuts = columns or {}, [part.places for part in self.stored]
        for name, values in columns.items():
            same = not isinstance(values, StoredColumn) or [part.places for part in values.parts] == cuts
            if len(values) != len(self) or not same:
                raise InputError(f"{name} has {len(values)} values, in other parts than the {len(self)} rows of X.")

        def share(values: Any, part: Part) -> Array | str:
            return values.name if isinstance(values, StoredColumn) else values[part.places]

        return [replace(p, more={name: share(values, p) for name, values in columns.items()}) for p in self.stored]

    def published_as(self, name: str) -> StoredInputs:
        sample = self.sample.published_as(name)
        return self if sample is self.sample else replace(self, sample=sample)

    def __getstate__(self) -> dict[str, Any]:
        # what has been read into memory is not sent to others
        return {"stored": self.stored, "sample": self.sample}

    def __repr__(self) -> str:
        return shown(f"<{len(self)} stored rows of {', '.join(self.names)} in {len(self.stored)} parts>")


def scanned(
    parts: Sequence[TablePart],
    names: Sequence[str],
    output: str | None,
    step: Progress,
    engine: Engine | None = None,
    encoding: Encoding | None = None,
) -> StoredInputs:
    """All rows of ``parts`` as inputs, after one pass that makes sure that they and their outputs can be read.

    The pass keeps the same sample as if the rows were in memory (``Inputs.sample``).
    """
    total = _count(parts)
    step.stage("reading the rows")
    found = (engine or Here()).each(partial(_scan, output, total), parts, step.counter(total))
    places, values = (np.concatenate(each) for each in zip(*found, strict=True))
    keep = np.isin(places, sample_places(total))
    keep[values.argmin(axis=0)] = True
    keep[values.argmax(axis=0)] = True
    return StoredInputs(tuple(parts), MemoryInputs(frozen(values[keep]), tuple(names), encoding=encoding))


def _scan(output: str | None, total: int, part: Part) -> tuple[Index, Array]:
    """All rows of ``part`` and ``output`` are read; those in the sample or extreme come back, after their places."""
    table = cast(TablePart, part)
    X = table.read(table.names if output is None else (*table.names, output))[:, : len(table.names)]
    chosen = sample_places(total) - part.start
    chosen = chosen[(chosen >= 0) & (chosen < part.rows)]
    places = np.unique(np.concatenate([chosen, X.argmin(axis=0), X.argmax(axis=0)]))
    return places + part.start, X[places]


def _count(parts: Sequence[Part]) -> int:
    return sum(part.rows for part in parts)


def _selected(
    parts: Sequence[Part], keep: Mask | Index, read: Callable[[Part], Array], shape: tuple[int, ...]
) -> Array:
    """What ``read`` finds of the rows in ``keep``; parts without any of them are not read."""
    rows: Index = np.flatnonzero(keep) if keep.dtype == np.bool_ else np.asarray(keep, dtype=np.intp)
    if rows.size and not 0 <= rows.min() <= rows.max() < _count(parts):
        raise IndexError(f"rows {rows.min()} to {rows.max()} are asked for, but there are {_count(parts)}")
    chosen = np.empty((len(rows), *shape))
    for part in parts:
        here = np.flatnonzero((part.start <= rows) & (rows < part.start + part.rows))
        if here.size:
            chosen[here] = read(part)[rows[here] - part.start]
    return frozen(chosen)


#: How many rows are decoded at a time: those of a row group before the first that is wanted are dropped.
_BATCH = 1 << 16


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """All Parquet files that ``paths`` name: files, folders with files at any depth, and patterns; sorted."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            # other programs keep summaries and unfinished files under names that begin with a dot or a dash below
            hidden = re.compile(r"(^|/)[._]").search
            visible = [file for file in path.rglob("*") if not hidden(file.relative_to(path).as_posix())]
            more = [file for file in visible if file.suffix.lower() in PARQUET]
            remedy = "has no Parquet files in it; give a folder with .parquet files."
        else:
            more = [path] if path.is_file() else [Path(name) for name in glob.glob(str(path), recursive=True)]
            remedy = "does not exist; give a Parquet file, a folder of them or a pattern."
        if not more:
            raise InputError(f"{path} {remedy}")
        found += [file for file in more if file.is_file()]
    wrong = [path for path in found if path.suffix.lower() not in PARQUET]
    if wrong:
        raise InputError(f"{wrong[0]} does not end in .parquet or .pq; only Parquet files are read part after part.")
    files = sorted(path.resolve() for path in found)
    twice = [path for path, following in itertools.pairwise(files) if path == following]
    if twice:
        raise InputError(f"{twice[0]} is given more than once; its rows would be counted twice.")
    return files


def fingerprint(files: Sequence[Path]) -> list[list[str | int]]:
    """By which it is noticed that some of ``files`` were replaced or written to: their names, sizes and times."""
    try:
        return [[str(file), about.st_size, about.st_mtime_ns] for file in files for about in [file.stat()]]
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read any more: {error.strerror}. Put it back.") from error


@dataclass(frozen=True, eq=False)
class ParquetPart(TablePart):
    """Rows of one file: whole row groups, or ``rows`` rows of one of them after the first ``skip``.

    ``first`` is where they begin in the file. Guarantee: what is read is finite float64 or an ``InputError``.
    """

    path: str
    groups: tuple[int, ...]
    skip: int
    first: int
    names: tuple[str, ...]

    def read(self, names: Sequence[str]) -> Array:
        import pyarrow as pa
        import pyarrow.parquet as pq

        values = np.empty((self.rows, len(names)))
        before, done = self.skip, 0
        try:
            with pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20) as file:
                groups = [group for group in self.groups if group < file.num_row_groups]
                for batch in file.iter_batches(_BATCH, row_groups=groups, columns=list(names)):
                    rows = batch.slice(min(before, batch.num_rows), self.rows - done)
                    before = max(before - batch.num_rows, 0)
                    for place, name in enumerate(names):
                        values[done : done + rows.num_rows, place] = _in_numbers(rows.column(name))
                    done += rows.num_rows
                    if done == self.rows:
                        break
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
            raise _unreadable(self.path, error) from error
        if done != self.rows:
            raise InputError(f"{self.path} has changed while it was being read; start again.")
        if not -LARGEST_NUMBER < values.min() <= values.max() < LARGEST_NUMBER:
            row, place = np.argwhere(~(np.abs(values) < LARGEST_NUMBER))[0]
            value = values[row, place]
            what = "a missing value" if np.isnan(value) else f"{value:g}, which is infinite or too large,"
            raise InputError(
                f"{self.path}, column {names[place]!r}: {what} in row {self.first + row + 1} (counted from 1); leave "
                "such rows out of the file, or fill them in. --drop-missing is for tables that fit in memory."
            )
        return values


def _unreadable(path: str | Path, error: Exception) -> InputError:
    why = one_line(error).rstrip(".")
    return InputError(
        f"{path} cannot be read as a Parquet file: {why}. If it is damaged, or has changed, write it again."
    )


def _in_numbers(column: Any) -> Array:
    """A column of a Parquet file as float64, NaN where a value is missing; dates as days since 1970-01-01."""
    import pyarrow as pa

    if not pa.types.is_temporal(column.type):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    # NumPy rounds to microseconds as for rows in memory, and Arrow before 1970 the other way
    moments = column.to_numpy(zero_copy_only=False)
    return np.where(np.isnat(moments), np.nan, from_moments(moments, "days"))


def rows_of_parquet(
    paths: Sequence[str | Path] | str | Path,
    inputs: Sequence[str],
    output: str | None = None,
    step: Progress | None = None,
    *,
    engine: Engine | None = None,
    rows: int = ROWS,
) -> StoredInputs:
    """The rows of all files, in the order of their names, with the columns ``inputs`` as inputs.

    ``paths`` are files, folders of files and patterns, or one of them. Columns of dates count in days.

    One pass over these columns and ``output`` makes sure that all values are finite numbers; it takes as much memory
    as one part, which has at most ``rows`` rows.
    """
    need_pyarrow()
    places = [Path(paths)] if isinstance(paths, (str, Path)) else [Path(path) for path in paths]
    step = Progress() if step is None else step
    asked_columns(inputs, output)
    parts: list[ParquetPart] = []
    kinds: list[tuple[Column, ...]] = []
    for file in parquet_files(places):
        start = parts[-1].start + parts[-1].rows if parts else 0
        kinds.append(_kinds(file, tuple(inputs), output))
        if kinds[-1] != kinds[0]:
            raise InputError(f"{file} has dates in other columns than the files before it; make them alike.")
        parts += _parts_of_file(file, start, tuple(inputs), rows)
    if not parts:
        raise InputError(f"{', '.join(map(str, places))} has no rows; give at least one.")
    dates = any(column.kind == "date" for column in kinds[0])
    return scanned(parts, inputs, output, step, engine, Encoding(kinds[0]) if dates else None)


def _kinds(file: Path, inputs: tuple[str, ...], output: str | None) -> tuple[Column, ...]:
    """What the input columns of ``file`` are: numbers or dates; all else is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import types

    try:
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    require_columns(file, asked_columns(inputs, output), schema.names)
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    columns = []
    for name in asked_columns(inputs, output):
        kind = schema.field(name).type
        if name != output and (types.is_timestamp(kind) or types.is_date(kind)):
            columns.append(Column(name, "date", "days", utc=getattr(kind, "tz", None) is not None))
            continue
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if not any(check(kind) for check in checks):
            text = types.is_string(kind) or types.is_large_string(kind)
            advice = "give a column of 0 and 1 for each level" if text else "encode the column as numbers"
            where = " Text and categories are inputs of tables that fit in memory." if text and name != output else ""
            raise InputError(
                f"{file}, column {name!r}: it holds {kind}, not numbers; {advice}, or leave it out.{where}"
            )
        columns.append(Column(name))
    return tuple(columns[: len(inputs)])


def _parts_of_file(file: Path, start: int, names: tuple[str, ...], most: int) -> list[ParquetPart]:
    """The rows of ``file``, at most ``most`` in a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.num_row_groups)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(file, error) from error
    parts: list[ParquetPart] = []
    first = 0
    for groups, skip, rows in _portions(sizes, most):
        parts.append(ParquetPart(start + first, rows, str(file), groups, skip, first, names))
        first += rows
    return parts


def _portions(sizes: Sequence[int], most: int) -> list[tuple[tuple[int, ...], int, int]]:
    """Row groups together up to ``most`` rows, and the portions of those that are larger: (groups, skip, rows)."""
    found: list[tuple[tuple[int, ...], int, int]] = []
    for group, size in enumerate(sizes):
        for skip in range(0, size, most):
            groups, _, held = found[-1] if found else ((), 0, most)
            if held + size <= most and sizes[groups[-1]] <= most:
                found[-1] = ((*groups, group), 0, held + size)
            else:
                found.append(((group,), skip, min(most, size - skip)))
    return found
