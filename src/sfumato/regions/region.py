"""What every region can do, and the checks that all of them share."""

from __future__ import annotations

import difflib
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..data import Inputs
from ..errors import InputError

MOST_DEPTH, MOST_NODES = 16, 1000


class Region(ABC):
    """A closed set of inputs whose outputs are to be protected.

    A region is a public value that knows nothing of the data until ``bind`` has resolved its columns; the methods that
    take or return inputs work on bound regions only. ``a | b`` and ``a & b`` combine regions.
    """

    @abstractmethod
    def resolve(self, inputs: Inputs) -> Region:
        """This region with its columns resolved for ``inputs``; does not ask where the data lie."""

    @abstractmethod
    def limits(self, dimension: int) -> tuple[Array, Array]:
        """The least and the greatest value in each column (±inf where there is no bound)."""

    @abstractmethod
    def meets(self, lower: Array, upper: Array) -> bool:
        """Whether the region reaches into the box between ``lower`` and ``upper`` (True where it cannot be told)."""

    @abstractmethod
    def contains(self, A: Array) -> Mask:
        """Which rows of ``A`` lie in the region (borders belong to it)."""

    @abstractmethod
    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        """About ``count`` inputs spread densely over the region, without chance; another ``turn`` gives fresh ones."""

    @property
    @abstractmethod
    def points(self) -> Array | None:
        """The points, one a row, if the region is a finite list of points."""

    @abstractmethod
    def moves(self, dimension: int) -> Mask:
        """Which columns may be varied continuously inside the region."""

    @abstractmethod
    def project(self, A: Array, inputs: Inputs) -> Array:
        """The rows of ``A`` moved into the region, or near it where that is not simple: check with ``contains``."""

    def rows_of(self, A: Array) -> Array:
        """The inputs at which the region is promised where only the rows ``A`` of the data are."""
        return np.asarray(A[self.contains(A)])

    def surrounds(self, A: Array) -> Mask:
        """Which rows of ``A`` have inputs that lie in the region, whichever output they are about."""
        return self.contains(A)

    def reach(self, A: Array, inputs: Inputs) -> Array:
        """Where in the region the rows of ``A`` tell most: each moved into it, into every part if it has several."""
        return self.project(A, inputs)

    @abstractmethod
    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        """A phrase for certificates and reports, such as "1 ≤ t ≤ 2"."""

    @abstractmethod
    def to_tree(self) -> dict[str, Any]:
        """This region as plain JSON values; ``region_from_tree`` reads it back."""

    def bind(self, inputs: Inputs) -> Region:
        """This region for the data ``inputs``: columns resolved, open sides closed, and not away from all data."""
        inputs = inputs.sample  # it has the least and the largest value of each column
        region = self.resolve(inputs)
        lower, upper = inputs.values.min(axis=0), inputs.values.max(axis=0)
        if not region.meets(lower, upper):
            spans = ", ".join(
                f"{number_text(a)} ≤ {name_text(n)} ≤ {number_text(b)}"
                for n, a, b in zip(inputs.names, lower, upper, strict=True)
            )
            raise InputError(
                f"the region ({region.in_words(inputs.names)}) lies wholly outside the data, which have {spans}; "
                "check the units and the order of the columns."
            )
        return region.closed(inputs)

    def closed(self, inputs: Inputs) -> Region:
        """This bound region with open sides closed where the data end: a promise must say how far it goes."""
        return self

    def __or__(self, other: Region) -> Region:
        from .sets import unite

        return unite(self, other) if isinstance(other, Region) else NotImplemented

    def __and__(self, other: Region) -> Region:
        from .sets import intersect

        return intersect(self, other) if isinstance(other, Region) else NotImplemented


def unbound(region: Region) -> InputError:
    return InputError(f"{shown(region)} is not bound to data yet; call region.bind(inputs) first.")


def shown(value: object) -> str:
    """A short text for any value, however large, nested or odd it is."""
    try:
        text = repr(value) if isinstance(value, Region) else reprlib.repr(value)
    except Exception:  # a value whose repr fails must not hide the real message
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else text[:197] + "…"


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
        raise InputError(f"count is {count!r}; give a whole number of candidates, at least 1.")
    return int(count)


def same_dimension(region: Region, dimension: int, inputs: Inputs, remedy: str) -> None:
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


def close_match(word: str, known: Iterable[str]) -> str:
    """ " Did you mean …?" where a known name is close to ``word``, else nothing."""
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number."""
    value = float(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)


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
