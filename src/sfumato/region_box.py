"""Boxes: bounds on some columns, by position or by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from .errors import InputError
from .inputs import Array, Inputs, Mask, default_names
from .low_discrepancy import deal, fill_cube, fill_interval
from .region_interface import (
    Region,
    at_least_one,
    column_position,
    distinct,
    items,
    name_text,
    number_text,
    real,
    rows,
    same_dimension,
    shown,
    unbound,
)

Free: TypeAlias = Literal["combinations", "ranges"]


@dataclass(frozen=True)
class Binding:
    """Where the columns of a box are in the data."""

    positions: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, init=False, repr=False)
class Box(Region):
    """All inputs between ``lower`` and ``upper``, borders included.

    Bounds are numbers (one feature), sequences (one entry for each feature) or a dictionary from column names to pairs;
    None or ±inf leaves a side open, which then ends where the data end. ``free`` says what the columns without any
    bound range over: the "combinations" that rows of the data have in them (people who could exist), or their observed
    "ranges".

    >>> from sfumato.regions import Box
    >>> Box(1, 2).in_words(("t",))
    '1 ≤ t ≤ 2'
    >>> Box({"AGEP": (75, 100), "PUMA": (None, 2000)})
    Box({'AGEP': (75, 100), 'PUMA': (None, 2000)})
    """

    columns: tuple[str, ...] | None
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    free: Free
    binding: Binding | None = field(compare=False)

    def __init__(self, lower: Any, upper: Any = None, free: str = "combinations") -> None:
        if free not in ("combinations", "ranges"):
            raise InputError(f'free is {shown(free)}; give "combinations" or "ranges".')
        if isinstance(lower, Mapping):
            if upper is not None:
                raise InputError(
                    f"upper is {shown(upper)}, but the first argument is a dictionary with both bounds; "
                    'leave upper out (and write free="ranges" with its name).'
                )
            columns, low, high = _named_bounds(lower)
        else:
            columns = None
            low = tuple(-np.inf if v is None else real(v, "lower", infinite=True) for v in items(lower, "lower"))
            high = tuple(np.inf if v is None else real(v, "upper", infinite=True) for v in items(upper, "upper"))
            if len(low) != len(high):
                raise InputError(
                    f"lower has {len(low)} value(s) and upper has {len(high)}; give one pair for each feature."
                )
        for name, a, b in zip(columns or default_names(len(low)), low, high, strict=True):
            if a > b or a == np.inf or b == -np.inf:
                raise InputError(
                    f"the region is empty: {name} has lower = {number_text(a)} and upper = {number_text(b)}; "
                    "give lower ≤ upper (None leaves a side open)."
                )
        if not any(np.isfinite(low + high)):
            raise InputError("the box bounds nothing; give at least one finite bound, or use Everywhere().")
        self._set(columns, low, high, cast(Free, free), None)

    def _set(
        self,
        columns: tuple[str, ...] | None,
        lower: tuple[float, ...],
        upper: tuple[float, ...],
        free: Free,
        binding: Binding | None,
    ) -> None:
        values = {"columns": columns, "lower": lower, "upper": upper, "free": free, "binding": binding}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def bound_to(self, binding: Binding) -> Box:
        """This box with its columns at the given positions."""
        box = object.__new__(Box)
        box._set(self.columns, self.lower, self.upper, self.free, binding)
        return box

    def resolve(self, inputs: Inputs) -> Box:
        if self.columns is not None:
            return self.bound_to(Binding(tuple(column_position(c, inputs) for c in self.columns), inputs.names))
        names = inputs.names
        remedy = f"give one bound for each, or name the columns, as in Box({{{names[0]!r}: (lower, upper)}})."
        same_dimension(self, len(self.lower), inputs, remedy)
        return self.bound_to(Binding(tuple(range(inputs.dimension)), names))

    def closed(self, inputs: Inputs) -> Box:
        if self.binding is None:
            raise unbound(self)
        observed = inputs.values[:, list(self.binding.positions)]
        lower, upper = np.array(self.lower), np.array(self.upper)
        free = np.isinf(lower) & np.isinf(upper)
        low = np.where(np.isinf(lower) & ~free, np.minimum(observed.min(axis=0), upper), lower)
        high = np.where(np.isinf(upper) & ~free, np.maximum(observed.max(axis=0), lower), upper)
        box = object.__new__(Box)
        box._set(self.columns, tuple(low.tolist()), tuple(high.tolist()), self.free, self.binding)
        return box

    def limits(self, dimension: int) -> tuple[Array, Array]:
        if self.binding is None:
            raise unbound(self)
        if len(self.binding.names) != dimension:
            raise InputError(
                f"{shown(self)} is bound to {len(self.binding.names)} feature(s), not {dimension}; bind it again."
            )
        lower, upper = np.full(dimension, -np.inf), np.full(dimension, np.inf)
        lower[list(self.binding.positions)] = self.lower
        upper[list(self.binding.positions)] = self.upper
        return lower, upper

    def meets(self, lower: Array, upper: Array) -> bool:
        low, high = self.limits(lower.size)
        return bool(np.all((low <= upper) & (high >= lower)))

    def contains(self, A: Array) -> Mask:
        if self.binding is None:
            raise unbound(self)
        values = rows(A, len(self.binding.names))[:, list(self.binding.positions)]
        return np.asarray(np.all((values >= self.lower) & (values <= self.upper), axis=1), dtype=np.bool_)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        lower, upper, kept = self._spans(inputs)
        return spread(lower, upper, kept, at_least_one(count), inputs, turn)

    @property
    def points(self) -> Array | None:
        return None

    def moves(self, dimension: int) -> Mask:
        lower, upper = self.limits(dimension)
        free = np.isinf(lower) & np.isinf(upper)
        return np.asarray((lower < upper) & (~free | (self.free == "ranges")), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        lower, upper, kept = self._spans(inputs)
        values = np.array(rows(A, inputs.dimension))
        values[:, ~kept] = np.clip(values[:, ~kept], lower[~kept], upper[~kept])
        return values

    def _spans(self, inputs: Inputs) -> tuple[Array, Array, Mask]:
        """Finite bounds, those of free columns from the observed range, and which keep observed combinations."""
        lower, upper = self.closed(inputs).limits(inputs.dimension)
        free = np.isinf(lower) & np.isinf(upper)
        low = np.where(free, inputs.values.min(axis=0), lower)
        high = np.where(free, inputs.values.max(axis=0), upper)
        return low, high, free & (self.free == "combinations")

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        if self.columns is not None:
            own = self.columns
        elif names is not None and len(names) == len(self.lower):
            own = names
        else:
            own = self.binding.names if self.binding is not None else default_names(len(self.lower))
        parts = (_span_text(name_text(n), a, b) for n, a, b in zip(own, self.lower, self.upper, strict=True))
        return " and ".join(part for part in parts if part)

    def to_tree(self) -> dict[str, Any]:
        return {
            "kind": "box",
            "columns": None if self.columns is None else list(self.columns),
            "lower": [None if np.isinf(v) else v for v in self.lower],
            "upper": [None if np.isinf(v) else v for v in self.upper],
            "free": self.free,
        }

    def __repr__(self) -> str:
        low, high = [_side_text(v) for v in self.lower], [_side_text(v) for v in self.upper]
        if self.columns is not None:
            bounds = (
                "{" + ", ".join(f"{c!r}: ({a}, {b})" for c, a, b in zip(self.columns, low, high, strict=True)) + "}"
            )
        elif len(low) == 1:
            bounds = f"{low[0]}, {high[0]}"
        else:
            bounds = f"[{', '.join(low)}], [{', '.join(high)}]"
        return f"Box({bounds})" if self.free == "combinations" else f"Box({bounds}, free={self.free!r})"


def spread(lower: Array, upper: Array, kept: Mask, count: int, inputs: Inputs, turn: int) -> Array:
    """About ``count`` points between the bounds; the columns ``kept`` take combinations that rows of the data have."""
    wide = np.flatnonzero(~kept & (lower < upper))
    if not kept.any() and lower.size == 1 and wide.size:
        cube = fill_interval(count, turn)[:, None]
    elif wide.size:
        copies = max(1, count // 6 // 2 ** min(wide.size, 6)) if kept.any() else 1
        cube = fill_cube(count, wide.size, turn, copies)
    else:
        cube = np.empty((count if kept.any() else 1, 0))
    points = np.tile(lower, (cube.shape[0], 1))
    # A weighted mean, not lower + u (upper − lower): it hits both ends exactly and cannot overflow.
    points[:, wide] = np.clip(lower[wide] * (1.0 - cube) + upper[wide] * cube, lower[wide], upper[wide])
    if kept.any():
        combinations = np.unique(inputs.values[:, kept], axis=0)
        points[:, kept] = combinations[deal(combinations.shape[0], points.shape[0], wide.size, turn)]
    return distinct(points)


def _named_bounds(bounds: Mapping[Any, Any]) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    if not bounds:
        raise InputError("the box bounds nothing; give at least one column, as in Box({'AGEP': (75, 100)}).")
    low, high = [], []
    for column, pair in bounds.items():
        if not isinstance(column, str):
            raise InputError(f"the column name {shown(column)} is not text; write Box({{'AGEP': (75, 100)}}).")
        if isinstance(pair, (str, bytes, Mapping, set, frozenset)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(
                f"the bounds of {column!r} are {shown(pair)}; give a pair (lower, upper), None for an open side."
            )
        first, last = pair
        low.append(-np.inf if first is None else real(first, f"the lower bound of {column!r}", infinite=True))
        high.append(np.inf if last is None else real(last, f"the upper bound of {column!r}", infinite=True))
        if np.isinf(low[-1]) and np.isinf(high[-1]) and low[-1] < high[-1]:
            raise InputError(f"the box bounds nothing in {column!r}; give a finite bound, or leave the column out.")
    return tuple(bounds), tuple(low), tuple(high)


def _span_text(name: str, lower: float, upper: float) -> str:
    if lower == upper:
        return f"{name} = {number_text(lower)}"
    if np.isinf(lower):
        return "" if np.isinf(upper) else f"{name} ≤ {number_text(upper)}"
    return (
        f"{name} ≥ {number_text(lower)}" if np.isinf(upper) else f"{number_text(lower)} ≤ {name} ≤ {number_text(upper)}"
    )


def _side_text(value: float) -> str:
    return "None" if np.isinf(value) else number_text(value)
