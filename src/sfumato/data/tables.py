"""Tables as they come from files: CSV or Parquet, checked column by column, written in one move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import InputError
from ..files import replacing
from ..text import one_line, some_of
from .columns import require_columns

CSV = (".csv",)
PARQUET = (".parquet", ".pq")

# Before 3.1 pandas reads the last digit of a number wrongly unless it is asked not to; since then it warns when asked.
_OLD = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}


def read_table(path: Path) -> pd.DataFrame:
    """The table in ``path``, in CSV or Parquet after the ending of its name."""
    _check_ending(path)
    if not path.is_file():
        raise InputError(f"{path} {'is not a file' if path.exists() else 'does not exist'}; give the path of a table.")
    try:
        if path.suffix.lower() not in PARQUET:
            return _read_csv(path)
        need_pyarrow()
        return pd.read_parquet(path, engine="pyarrow")
    except InputError:
        raise
    except (ValueError, OSError, UnicodeError) as error:
        raise InputError(f"{path} cannot be read as a table: {one_line(error)}") from error


def select_numbers(table: pd.DataFrame, columns: list[str], source: Path, drop_missing: bool = False) -> pd.DataFrame:
    """The named columns of ``table`` as float64; rows with missing values are refused or, if asked, left out."""
    require_columns(source, columns, list(table.columns))
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
    kept: pd.DataFrame = chosen.loc[~rows].reset_index(drop=True)
    if kept.empty:
        raise InputError(f"{source} has no rows{' without missing values' if rows.any() else ''}; give at least one.")
    return kept


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write ``table`` beside ``path`` first and move it into place, so that nobody ever sees half a file."""
    _check_ending(path)
    with replacing(path) as file:
        if path.suffix.lower() in PARQUET:
            need_pyarrow()
            table.to_parquet(file, index=False)
        else:
            table.to_csv(file, index=False, mode="wb")


def _check_ending(path: Path) -> None:
    if path.suffix.lower() not in CSV + PARQUET:
        raise InputError(f"{path} ends in {path.suffix or 'nothing'!r}; tables are .csv or .parquet files.")


def _read_csv(path: Path) -> pd.DataFrame:
    # pandas would rename a second column t to t.1 without a word.
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, skipinitialspace=True).iloc[0].tolist()
    twice = sorted({str(name) for name in header if header.count(name) > 1})
    if twice:
        raise InputError(f"{path} has the column {twice[0]!r} more than once; give each column its own name.")
    table: pd.DataFrame = pd.read_csv(path, skipinitialspace=True, low_memory=False, **_EXACT)
    return table


def need_pyarrow() -> None:
    """Say how to install what reads and writes Parquet, where it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise InputError("Parquet tables need pyarrow; install it with: pip install 'sfumato[parquet]'") from None


def _numbers(values: pd.Series, column: str, source: Path) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        raise InputError(
            f"{source}, column {column!r}: dates are not numbers; turn them into days since a date of your choice."
        )
    numbers = pd.to_numeric(values, errors="coerce")
    wrong = (numbers.isna() & values.notna()).to_numpy()
    if wrong.any():
        first = int(wrong.nonzero()[0][0])
        raise InputError(
            f"{source}, column {column!r}: {values.iloc[first]!r} in row {first + 1} (counted from 1 below the header) "
            f"is not a number; {int(wrong.sum())} such value(s). Encode the column as numbers, or leave it out."
        )
    return numbers.astype("float64")
