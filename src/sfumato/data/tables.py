"""Tables: columns that are there and hold numbers, values that belong to their rows, and the files they come from.

Files are CSV or Parquet, checked column by column and written in one move.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..files import replacing
from ..text import close_match, one_line, some_of

CSV = (".csv",)
PARQUET = (".parquet", ".pq")

#: What is said of a column of dates in a file.
DATES = "dates are not numbers; turn them into days since a date of your choice."

# Before 3.1 pandas reads the last digit of a number wrongly unless it is asked not to; since then it warns when asked.
_OLD = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}


def asked_columns(inputs: Sequence[str], output: str | None) -> list[str]:
    """The names of all columns that are to be read."""
    if isinstance(inputs, str) or not inputs:
        raise InputError(f"inputs is {inputs!r}; give the names of the input columns in a list.")
    return [*inputs, *([] if output is None else [output])]


def require_columns(source: object, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Make sure that each of ``wanted`` is asked for once, and is ``there`` once in the table ``source``."""
    for name in wanted:
        if name not in there:
            remedy = close_match(name, map(str, there)) or f" It must have {some_of(wanted, 20)}."
            raise InputError(f"{source} has no column {name!r}; it has {some_of(there, 20)}.{remedy}")
        if wanted.count(name) > 1:
            raise InputError(f"the column {name!r} is asked for more than once; name each column once.")
    require_once(source, [name for name in there if name in wanted])


def require_once(source: object, names: Sequence[Any]) -> None:
    """Refuse a table ``source`` with two columns of one name."""
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{source} has the column {twice[0]!r} more than once; give each column its own name.")


def require_numbers(dtype: Any, title: str, written: str) -> None:
    """Refuse a column of a ``dtype`` that is no number and not yes or no, with advice on what to do with it.

    ``title`` is what a message calls the column, ``written`` how its owner would write it in a program.
    """
    types = pd.api.types
    if isinstance(dtype, pd.PeriodDtype) or types.is_datetime64_any_dtype(dtype):
        dates = f"{written}.dt.to_timestamp()" if isinstance(dtype, pd.PeriodDtype) else written
        advice = (
            "turn dates into numbers first, for example days since a date of your choice: "
            f"({dates} - pd.Timestamp('2000-01-01')) / pd.Timedelta(days=1)."
        )
    elif types.is_timedelta64_dtype(dtype):
        advice = f"turn durations into numbers first, for example into days: {written} / pd.Timedelta(days=1)."
    elif types.is_complex_dtype(dtype):
        advice = "give the real and the imaginary part as two columns."
    elif types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype):
        return
    else:
        advice = (
            f"encode it as numbers first: {written}.astype(float) if it holds numbers, one 0/1 column for each "
            "category (pd.get_dummies) if it holds names, or leave it out."
        )
    raise InputError(f"{title} is not numeric (dtype {dtype}); {advice}")


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


def read_table(path: Path) -> pd.DataFrame:
    """The table in ``path``, in CSV or Parquet after the ending of its name."""
    parquet = _is_parquet(path)
    if not path.is_file():
        raise InputError(f"{path} {'is not a file' if path.exists() else 'does not exist'}; give the path of a table.")
    try:
        if parquet:
            return pd.read_parquet(path, engine="pyarrow")
        # pandas would rename a second column t to t.1 without a word
        header = pd.read_csv(path, header=None, nrows=1, dtype=str, skipinitialspace=True).iloc[0].tolist()
        table: pd.DataFrame = pd.read_csv(path, skipinitialspace=True, low_memory=False, **_EXACT)
    except (ValueError, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}") from error
    require_once(path, header)
    return table


def select_numbers(
    table: pd.DataFrame,
    columns: list[str],
    source: Path,
    drop_missing: bool = False,
    as_they_are: Sequence[str] = (),
) -> pd.DataFrame:
    """The named columns of ``table`` as float64; rows with missing values are refused or, if asked, left out.

    Columns ``as_they_are`` come along, such as labels; anything may stand in them, or nothing.
    """
    require_columns(source, [*columns, *as_they_are], list(table.columns))
    chosen = pd.DataFrame({column: _numbers(table[column], column, source) for column in columns})
    absent = chosen.isna()
    rows = absent.any(axis=1).to_numpy()
    if rows.any() and not drop_missing:
        places = [str(i + 1) for i in rows.nonzero()[0]]
        empty = [column for column in columns if absent[column].any()]
        raise InputError(
            f"{source} has {len(places)} of {len(chosen)} rows with missing values in {some_of(empty, 5)} "
            f"(rows {some_of(places, 8)}, counted from 1 below the header); "
            "fill them in, or leave these rows out with --drop-missing."
        )
    kept: pd.DataFrame = chosen.join(table[list(as_they_are)]).loc[~rows].reset_index(drop=True)
    if kept.empty:
        raise InputError(f"{source} has no rows{' without missing values' if rows.any() else ''}; give at least one.")
    return kept


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write ``table`` beside ``path`` first and move it into place, so that nobody ever sees half a file."""
    parquet = _is_parquet(path)
    with replacing(path) as file:
        if parquet:
            table.to_parquet(file, index=False)
        else:
            table.to_csv(file, index=False, mode="wb")


def _is_parquet(path: Path) -> bool:
    if path.suffix.lower() in PARQUET:
        need_pyarrow()
        return True
    if path.suffix.lower() not in CSV:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'!r}; tables are .csv or .parquet files.")
    return False


def need_pyarrow() -> None:
    """Say how to install what reads and writes Parquet, where it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet tables need pyarrow; install it with: pip install 'sfumato[parquet]'") from None


def _numbers(values: pd.Series, column: str, source: Path) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        raise InputError(f"{source}, column {column!r}: {DATES}")
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = (numbers.isna() & values.notna()).to_numpy()
    if wrong.any():
        first = int(wrong.nonzero()[0][0])
        raise InputError(
            f"{source}, column {column!r}: {values.iloc[first]!r} in row {first + 1} (counted from 1 below the header) "
            f"is not a number; {int(wrong.sum())} such value(s). Encode the column as numbers, or leave it out."
        )
    return numbers.astype("float64")
