"""Columns that are not numbers, and how to make numbers of them."""

from __future__ import annotations

from typing import Any

import pandas as pd


def advice_for(dtype: Any, column: str) -> str | None:
    """What to do with a ``column`` (as one writes it) of this ``dtype``; None where it holds numbers or yes and no."""
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
