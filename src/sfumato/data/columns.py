"""Columns and row labels of tables: is a column there, does it hold numbers, and which value belongs to which row?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from ..errors import InputError
from ..text import close_match, some_of


def asked_columns(inputs: Sequence[str], output: str | None) -> list[str]:
    """The names of all columns that are to be read."""
    if isinstance(inputs, str) or not inputs:
        raise InputError(f"inputs is {inputs!r}; give the names of the input columns in a list.")
    return [*inputs, *([] if output is None else [output])]


def require_columns(source: object, wanted: Sequence[str], there: Sequence[str]) -> None:
    """Make sure that each of ``wanted`` is asked for once, and is ``there`` once in the table ``source``."""
    for name in wanted:
        if name not in there:
            raise InputError(
                f"{source} has no column {name!r}; it has {some_of(there, 20)}.{close_match(name, map(str, there))}"
            )
        if there.count(name) > 1:
            raise InputError(f"{source} has the column {name!r} more than once; give each column its own name.")
        if wanted.count(name) > 1:
            raise InputError(f"the column {name!r} is asked for more than once; name each column once.")


def require_numbers(dtype: Any, title: str, written: str) -> None:
    """Refuse a column of a ``dtype`` that is no number and not yes or no, with advice on what to do with it.

    ``title`` is what a message calls the column, ``written`` how its owner would write it in a program.
    """
    advice = _advice_for(dtype, written)
    if advice is not None:
        raise InputError(f"{title} is not numeric (dtype {dtype}); {advice}")


def _advice_for(dtype: Any, column: str) -> str | None:
    types = pd.api.types
    if isinstance(dtype, pd.PeriodDtype) or types.is_datetime64_any_dtype(dtype):
        dates = f"{column}.dt.to_timestamp()" if isinstance(dtype, pd.PeriodDtype) else column
        return (
            "turn dates into numbers first, for example days since a date of your choice: "
            f"({dates} - pd.Timestamp('2000-01-01')) / pd.Timedelta(days=1)."
        )
    if types.is_timedelta64_dtype(dtype):
        return f"turn durations into numbers first, for example into days: {column} / pd.Timedelta(days=1)."
    if types.is_complex_dtype(dtype):
        return "give the real and the imaginary part as two columns."
    if types.is_numeric_dtype(dtype) or types.is_bool_dtype(dtype):
        return None
    return (
        f"encode it as numbers first: {column}.astype(float) if it holds numbers, one 0/1 column for each category "
        "(pd.get_dummies) if it holds names, or leave it out."
    )


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
    remedy = f"give {name}.loc[X.index] to go by labels, or {name}.to_numpy() to go by position."
    same = own.is_unique and index.is_unique and bool(own.isin(index).all())
    if is_plain(own) or is_plain(index):
        if same:
            raise InputError(
                f"{name} and X have the same row labels in different orders, and those of "
                f"{name if is_plain(own) else 'X'} are just 0, 1, 2, …, so it is not clear which values belong "
                f"together; {remedy}"
            )
        if bool(own.isin(index).any()):
            raise InputError(
                f"{name} and X have some row labels in common and others not, so that values may be on other rows than "
                f"their own; {remedy}"
            )
        return y
    if same:
        return y.reindex(index)
    if not (own.is_unique and index.is_unique):
        raise InputError(
            f"{name} and X have different row labels, some of them more than once; give both the same index, or "
            f"{name}.to_numpy() to go by position."
        )
    alone = own[~own.isin(index)]
    raise InputError(
        f"{name} has {len(alone)} row label(s) that X does not have, the first {str(alone[0])[:60]!r}; give both the "
        f"same index, or {name}.to_numpy() to go by position."
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
