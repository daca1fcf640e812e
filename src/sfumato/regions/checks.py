"""Checks of what users give, and texts for messages, that all regions share."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array
from ..data import Inputs
from ..errors import InputError
from ..text import close_match

#: Regions write themselves out, up to this many characters; reprlib shortens plain values further.
_LONGEST_TEXT = 200
_SHORT = reprlib.Repr()
_SHORT.maxother = _LONGEST_TEXT


def unbound(region: object) -> InputError:
    return InputError(f"{shown(region)} is not bound to data yet; call region.bind(inputs) first.")


def shown(value: object) -> str:
    """A short text for any value, however large, nested or odd it is."""
    try:
        text = _SHORT.repr(value)
    except Exception:  # a value whose repr fails must not hide the real message
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "…"


def real(value: Any, name: str, infinite: bool = False) -> float:
    """``value`` as a float, or an ``InputError`` that names it."""
    number: float | None = None
    if not isinstance(value, (bool, np.bool_, str, bytes, bytearray)) and value is not None:
        try:
            number = float(value) if np.ndim(value) == 0 else None
        except (TypeError, ValueError, OverflowError, RuntimeError):
            number = None
    if number is None:
        raise InputError(f"{name} is {shown(value)}; give a real number.")
    if np.isnan(number) or (not infinite and np.isinf(number)):
        raise InputError(f"{name} is {number}; give a {'' if infinite else 'finite '}number.")
    return number + 0.0  # -0.0 becomes 0.0


def reals(value: Any, name: str) -> tuple[float, ...]:
    """A number or a sequence of numbers as floats, all finite."""
    return tuple(real(v, name) for v in items(value, name))


def items(value: Any, name: str) -> list[Any]:
    """The entries of a sequence; a single number (or None) is a sequence of one."""
    if value is None or isinstance(value, (int, float, np.number)) or getattr(value, "ndim", None) == 0:
        return [value]
    if isinstance(value, (str, bytes, bytearray, dict, set, frozenset)) or not isinstance(value, Iterable):
        raise InputError(f"{name} is {shown(value)}; give a number, or a list with one number for each feature.")
    entries = list(value)
    if not entries:
        raise InputError(f"{name} is empty; give one number for each feature.")
    return entries


def rows(A: Any, dimension: int) -> Array:
    """``A`` as a float64 array with ``dimension`` columns."""
    values = np.asarray(A, dtype=np.float64)
    if values.ndim == 1 and dimension == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] != dimension:
        raise InputError(
            f"A has shape {values.shape}, but the region is one of {dimension} feature(s); give one row an input."
        )
    return values


def at_least_one(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
        raise InputError(f"count is {count!r}; give a whole number of inputs, at least 1.")
    return int(count)


def same_dimension(region: object, dimension: int, inputs: Inputs, remedy: str) -> None:
    if dimension != inputs.dimension:
        raise InputError(
            f"the region {shown(region)} has {dimension} feature(s), but X has {inputs.dimension} "
            f"({', '.join(inputs.names)}); {remedy}"
        )


def column_position(column: str, inputs: Inputs) -> int:
    if column in inputs.names:
        return inputs.names.index(column)
    known = ", ".join(inputs.names)
    if inputs.columns is None:
        raise InputError(
            f"the region names the column {column!r}, but X has no column names; give X as a DataFrame, or use {known}."
        )
    raise InputError(
        f"the region names the column {column!r}, which X does not have; it has {known}."
        f"{close_match(column, inputs.names)}"
    )


def name_text(name: str) -> str:
    """A column name as ``parse_region`` reads it: bare where possible, else in backticks."""
    if name.isidentifier() and name.casefold() not in {"and", "or", "not"}:
        return name
    return "`" + name.replace("`", "``") + "`"


def distinct(A: Array) -> Array:
    """The rows of ``A`` in their order, each once."""
    # pandas hashes rows; np.unique would sort them, which takes ten times as long.
    again = np.asarray(pd.DataFrame(A).duplicated(), dtype=np.bool_)
    return np.asarray(A[~again], dtype=np.float64)
