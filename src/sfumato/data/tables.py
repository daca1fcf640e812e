"""Tables: values that belong to their rows, and files.

Files are text (csv_files.py) or Parquet, checked column by column and written in one move.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..files import replacing
from ..machine import GIB, free_memory, in_bytes
from ..text import one_line, some_of
from .columns import require_columns
from .csv_files import TEXT, TableAsRead, is_text_table, read_text_table
from .spreadsheets import for_spreadsheets

CSV = (".csv",)
PARQUET = (".parquet", ".pq")

#: So many bytes may be in a file that somebody sent, unpacked.
MOST_SENT = GIB

#: What is said of a column of dates in a file.
DATES = "dates are not numbers; turn them into days since a date of your choice."


def in_row_order(y: Any, index: pd.Index[Any] | None, name: str) -> Any:
    """``y`` in the order of rows with the labels ``index``; whatever has no labels is taken as it stands.

    A table that was sorted or shuffled beside values that were not is a classic silent error: every value lands on
    another row, and what is protected is not what is sensitive.

    ========================== ==================================================================
    the labels of X and y      y is
    ========================== ==================================================================
    are equal, in one order    taken as it stands
    are equal, in other orders brought into the order of X; refused where one is just 0, 1, 2, …,
                               which may mean "the rows I labelled so" or "not labelled"
    overlap, or differ         refused; taken as it stands where one is just 0, 1, 2, … and the
                               other has none of these
    ========================== ==================================================================
    """
    if index is None or not isinstance(y, (pd.Series, pd.DataFrame)):
        return y
    own = y.index
    if len(own) != len(index) or own.equals(index):
        return y
    position = f"{name}.to_numpy() to go by position."
    unique, known = own.is_unique and index.is_unique, own.isin(index)
    if is_plain(own) or is_plain(index):
        remedy = f"give {name}.loc[X.index] to go by labels, or {position}"
        if unique and known.all():
            raise InputError(
                f"{name} and X have the same row labels in different orders, and those of "
                f"{name if is_plain(own) else 'X'} are just 0, 1, 2, …, so it is not clear which values belong "
                f"together; {remedy}"
            )
        if known.any():
            raise InputError(
                f"{name} and X have some row labels in common and others not, so that values may be on other rows than "
                f"their own; {remedy}"
            )
        return y
    if unique and known.all():
        return y.reindex(index)
    if unique:
        alone = own[~known]
        raise InputError(
            f"{name} has {len(alone)} row label(s) that X does not have, the first {str(alone[0])[:60]!r}; give both "
            f"the same index, or {position}"
        )
    raise InputError(
        f"{name} and X have different row labels, some of them more than once; give both the same index, or {position}"
    )


def without_labels(y: Any, name: str) -> Any:
    """``y`` for rows whose labels are not known (a release has none): refused where it has labels of its own."""
    tables = list(y.values()) if isinstance(y, dict) else [y]
    if any(isinstance(one, (pd.Series, pd.DataFrame)) and not is_plain(one.index) for one in tables):
        raise InputError(
            f"{name} has row labels, and a release does not (they may be names); give {name}.to_numpy(), in the order "
            "of the rows that were released."
        )
    return y


def is_plain(index: pd.Index[Any]) -> bool:
    """Whether these are the labels 0, 1, 2, … that pandas gives to rows without labels."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def read_table(
    path: str | Path,
    inputs: Sequence[str],
    output: str | Sequence[str] = (),
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    drop_missing: bool = False,
    labels: Sequence[str] = (),
) -> pd.DataFrame:
    """The named columns of a text table (also with .gz) or a Parquet file, as the command line reads them.

    Of text, separator, decimal mark, encoding and dates are found out where they are None; nothing is guessed. An
    ``output``, or several of them, are numbers. ``inputs`` are numbers, dates or text. Columns of ``labels``, such as
    households, come along as they are. Rows with missing values are refused, or left out with ``drop_missing``. A
    ``RuntimeWarning`` says how a column was read where that is not plain to see.
    """
    source, outputs = Path(path), [output] if isinstance(output, str) else list(output)
    read = open_table(source, sep, decimal, encoding)
    found = select_columns(read, inputs, outputs, source, drop_missing, labels)
    if read.names_in_doubt:
        warnings.warn(f"{source}: {read.names_in_doubt}", RuntimeWarning, stacklevel=2)
    for name in (*inputs, *outputs):
        if name in read.notes:
            warnings.warn(f"{source}, column {name!r}: {read.notes[name]}", RuntimeWarning, stacklevel=2)
    return found


def open_table(
    path: Path,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    *,
    content: bytes | None = None,
) -> TableAsRead:
    """The table in a text file or in Parquet, after the ending of its name, and how it was read.

    ``sep`` ("," or comma, semicolon, tab, pipe, space), ``decimal`` ("." or ",") and ``encoding`` are for text; what
    is None is found out, and gzip always. With ``content``, the bytes of a file that somebody sent, ``path`` is only
    what it is called; they may hold ``MOST_SENT`` bytes when they are unpacked.
    """
    parquet = _is_parquet(path, reading=True)
    if content is None and not os.path.isfile(path):  # also where no path can be so long
        state = "is not a file" if os.path.exists(path) else "does not exist"
        raise InputError(f"{path} {state}; give the path of a table.")
    most = free_memory() if content is None else min(MOST_SENT, free_memory())
    if parquet:
        return TableAsRead(_read_parquet(path, content, most))
    size = float(path.stat().st_size) if content is None else float(len(content))
    _require_room(2.0 * size, path, free_memory())
    return read_text_table(path, path.read_bytes() if content is None else content, most, sep, decimal, encoding)


def _read_parquet(path: Path, content: bytes | None, most: float) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def source() -> Any:
        return path if content is None else io.BytesIO(content)

    try:
        with pq.ParquetFile(source()) as file:
            about = file.metadata
            groups = (about.row_group(i).total_byte_size for i in range(about.num_row_groups))
            # what repeats takes no room in the file
            needed = max(8.0 * about.num_rows * about.num_columns, float(sum(groups)))
        _require_room(needed, path, most)
        table: pd.DataFrame = pd.read_parquet(source(), engine="pyarrow")
    except InputError:
        raise
    except (pa.ArrowException, ValueError, OSError, TypeError, KeyError) as error:
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}") from error
    return table.rename(columns=str)


def _require_room(needed: float, path: Path, most: float) -> None:
    if needed > most:
        raise InputError(
            f"{path} needs about {in_bytes(needed)} of memory as a table, and there is room for {in_bytes(most)}; "
            "give fewer rows or columns. Parquet data of any size are protected part after part by sfumato protect, "
            "with a folder for --out."
        )


def select_columns(
    table: TableAsRead,
    inputs: Sequence[str],
    outputs: Sequence[str],
    source: Path,
    drop_missing: bool = False,
    as_they_are: Sequence[str] = (),
    *,
    how_to_drop: str = "with drop_missing=True, --drop-missing",
) -> pd.DataFrame:
    """The named columns: numbers as float64, and in ``inputs`` dates and text as well.

    Rows with missing values are refused, in a message that says ``how_to_drop`` them, or, if asked, left out. Columns
    ``as_they_are`` come along, such as labels; anything may stand in them, or nothing.
    """
    wanted, frame = [*inputs, *outputs], table.frame
    try:
        require_columns(source, [*wanted, *as_they_are], list(frame.columns))
    except InputError as error:
        raise InputError(f"{error}{table.advice}") from None
    for name in wanted:
        if name in table.doubts:
            raise InputError(f"{source}, column {name!r}: {table.doubts[name]}.")
    chosen = pd.DataFrame({name: as_values(frame[name], name, source, name in outputs) for name in wanted})
    absent = chosen.isna()
    rows = absent.any(axis=1).to_numpy()
    if rows.any() and not drop_missing:
        places = [str(i + 1) for i in rows.nonzero()[0]]
        empty = [name for name in wanted if absent[name].any()]
        raise InputError(
            f"{source} has {len(places)} of {len(chosen)} rows with missing values in {some_of(empty, 5)} "
            f"(rows {some_of(places, 8)}, counted from 1 below the header); "
            f"fill them in, or leave these rows out {how_to_drop}."
        )
    kept: pd.DataFrame = chosen.join(frame[list(as_they_are)]).loc[~rows].reset_index(drop=True)
    if kept.empty:
        raise InputError(f"{source} has no rows{' without missing values' if rows.any() else ''}; give at least one.")
    return kept


def write_table(table: pd.DataFrame, path: Path, *, private: bool = False) -> None:
    """Write ``table`` beside ``path`` first and move it into place, so that nobody ever sees half a file.

    A ``private`` one is for its owner alone (``replacing``). Its first column is called owner_only: a line above the
    header would keep other programs from reading the table, and rows that are copied elsewhere take the column along.
    """
    parquet = _is_parquet(path)
    if private:
        table = table.assign(owner_only="yes")[["owner_only", *table.columns]]
    table = table if parquet else for_spreadsheets(table, path)
    with replacing(path, private=private) as file:
        if parquet:
            table.to_parquet(file, index=False)
        else:
            table.to_csv(file, index=False, mode="wb")


def _is_parquet(path: Path, reading: bool = False) -> bool:
    if path.suffix.lower() in PARQUET:
        need_pyarrow()
        return True
    if not (is_text_table(path) if reading else path.suffix.lower() in CSV):
        kinds = f"{', '.join(TEXT)} (also with .gz)" if reading else ".csv"
        raise InputError(f"{path} ends in {path.suffix or 'nothing'!r}; tables are {kinds} or .parquet files.")
    return False


def need_pyarrow() -> None:
    """Say how to install what reads and writes Parquet, where it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet tables need pyarrow; install it with: pip install 'sfumato[parquet]'") from None


def as_values(values: pd.Series[Any], column: str, source: object, must_be_numbers: bool) -> pd.Series[Any]:
    """A column as float64, or, unless it must be numbers, as the dates or the text that it holds."""
    dates = pd.api.types.is_datetime64_any_dtype(values.dtype)
    if dates and not must_be_numbers:
        return values
    if dates:
        raise InputError(f"{source}, column {column!r}: {DATES}")
    try:
        few = values.iloc[:1000]  # text is found out here, as a rule
        if not must_be_numbers and (pd.to_numeric(few, errors="coerce").isna() & few.notna()).any():
            return values
        numbers = pd.to_numeric(values, errors="coerce")
    except TypeError:  # lists, for example
        kind = type(values.dropna().iloc[0]).__name__
        raise InputError(
            f"{source}, column {column!r}: it holds values of the type {kind}; give numbers, dates or text, or leave "
            "the column out."
        ) from None
    wrong = (numbers.isna() & values.notna()).to_numpy()
    if not wrong.any():
        return numbers.astype("float64")
    if not must_be_numbers:
        return values
    first = int(wrong.nonzero()[0][0])
    raise InputError(
        f"{source}, column {column!r}: {values.iloc[first]!r} in row {first + 1} (counted from 1 below the header) "
        f"is not a number; {int(wrong.sum())} such value(s). Outputs are numbers: mend it, or choose another column."
    )
