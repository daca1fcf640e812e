"""The columns of a table: they are there, each of them once, and hold what they must."""

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
            remedy = close_match(name, map(str, there)) or f" It must have {some_of(wanted, 20)}."
            short = [text if len(text := str(one)) <= 60 else f"{text[:60]}…" for one in there]
            raise InputError(f"{source} has no column {name!r}; it has {some_of(short, 20)}.{remedy}")
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


def is_text(dtype: Any) -> bool:
    """Whether a column of this ``dtype`` may hold texts."""
    return bool(pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype))
