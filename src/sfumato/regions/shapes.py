"""The other plain regions: balls, lists of points, everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ..arrays import Array, Mask
from ..data import Inputs, among, as_inputs, default_names
from ..errors import InputError
from ..linalg import deal, fill_ball, fill_cube, fill_interval
from .region import (
    Region,
    at_least_one,
    column_position,
    distinct,
    items,
    name_text,
    number_text,
    real,
    reals,
    rows,
    same_dimension,
    shown,
    unbound,
)

# Boxes: bounds on some columns, by position or by name.

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


@dataclass(frozen=True, init=False, repr=False)
class Ball(Region):
    """All inputs within ``radius`` of ``centre``: Euclidean distance over all features, in the user's units."""

    centre: tuple[float, ...]
    radius: float
    bound: bool = field(compare=False)

    def __init__(self, centre: Any, radius: Any) -> None:
        middle, size = reals(centre, "centre"), real(radius, "radius")
        if size <= 0:
            raise InputError(f"radius is {number_text(size)}; give a positive distance in the units of X.")
        if size < 64 * np.finfo(np.float64).eps * max(abs(c) for c in middle):
            raise InputError(
                f"radius is {size:g}, which cannot be told from 0 so far from the origin; "
                f"use Points([{list(middle)}]), or shift X."
            )
        self._set(middle, size, False)

    def _set(self, centre: tuple[float, ...], radius: float, bound: bool) -> None:
        for name, value in (("centre", centre), ("radius", radius), ("bound", bound)):
            object.__setattr__(self, name, value)

    def resolve(self, inputs: Inputs) -> Ball:
        remedy = "give the centre one number for each feature, or use a Box on some columns."
        same_dimension(self, len(self.centre), inputs, remedy)
        ball = object.__new__(Ball)
        ball._set(self.centre, self.radius, True)
        return ball

    def limits(self, dimension: int) -> tuple[Array, Array]:
        centre = self._bound_centre()
        with np.errstate(over="ignore"):
            return centre - self.radius, centre + self.radius

    def meets(self, lower: Array, upper: Array) -> bool:
        return bool(self.contains(np.clip(self._bound_centre(), lower, upper)[None])[0])

    def contains(self, A: Array) -> Mask:
        centre = self._bound_centre()
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.linalg.norm((rows(A, centre.size) - centre) / self.radius, axis=1)
        # A border point is rounded to the grid of floats at the centre; that must not put it outside.
        slack = np.sqrt(centre.size) * (np.abs(centre).max() / self.radius + 1.0) + centre.size + 4.0
        return np.asarray(distance <= 1.0 + slack * np.finfo(np.float64).eps, dtype=np.bool_)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        centre = self._bound_centre()
        return distinct(centre + self.radius * fill_ball(at_least_one(count), centre.size, turn))

    @property
    def points(self) -> Array | None:
        return None

    def moves(self, dimension: int) -> Mask:
        return np.ones(self._bound_centre().size, dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        centre = self._bound_centre()
        offset = (rows(A, centre.size) - centre) / self.radius
        distance = np.linalg.norm(offset, axis=1, keepdims=True)
        return np.where(
            distance <= 1.0, rows(A, centre.size), centre + self.radius * offset / np.maximum(distance, 1.0)
        )

    def _bound_centre(self) -> Array:
        if not self.bound:
            raise unbound(self)
        return np.array(self.centre)

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        centre = ", ".join(number_text(c) for c in self.centre)
        return f"within {number_text(self.radius)} of {centre if len(self.centre) == 1 else f'({centre})'}"

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "ball", "centre": list(self.centre), "radius": self.radius}

    def __repr__(self) -> str:
        centre = ", ".join(number_text(c) for c in self.centre)
        return f"Ball({centre if len(self.centre) == 1 else f'[{centre}]'}, {number_text(self.radius)})"


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Points(Region):
    """A finite list of inputs, one a row; a plain list of numbers is many points of one feature."""

    values: Array
    columns: tuple[str, ...] | None
    bound: bool

    def __init__(self, S: Any) -> None:
        given = as_inputs(S, "points")
        self._set(given.values + 0.0, given.columns, False)

    def _set(self, values: Array, columns: tuple[str, ...] | None, bound: bool) -> None:
        values.setflags(write=False)
        for name, value in (("values", values), ("columns", columns), ("bound", bound)):
            object.__setattr__(self, name, value)

    def resolve(self, inputs: Inputs) -> Points:
        order = list(range(self.values.shape[1]))
        if self.columns is not None and (inputs.columns is not None or set(inputs.names) <= set(self.columns)):
            missing = [name for name in inputs.names if name not in self.columns]
            if missing:
                raise InputError(
                    f"points have no column {missing[0]!r}; they have {', '.join(self.columns)}, "
                    f"and X has {', '.join(inputs.names)}."
                )
            order = [self.columns.index(name) for name in inputs.names]
        same_dimension(self, len(order), inputs, "give each point one number for each feature, as in Points([[1, 2]]).")
        return bound_points(self.values[:, order], inputs.columns)

    def limits(self, dimension: int) -> tuple[Array, Array]:
        return self._bound_values().min(axis=0), self._bound_values().max(axis=0)

    def meets(self, lower: Array, upper: Array) -> bool:
        # Points are named one by one, so one a little beyond the data is meant; far beyond it is a wrong unit.
        values, width = self._bound_values(), upper - lower
        return bool(np.any(np.all((values >= lower - width) & (values <= upper + width), axis=1)))

    def contains(self, A: Array) -> Mask:
        values = self._bound_values()
        return among(rows(A, values.shape[1]), values)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        at_least_one(count)
        return self._bound_values().copy()

    @property
    def points(self) -> Array | None:
        return self._bound_values()

    def moves(self, dimension: int) -> Mask:
        return np.zeros(self._bound_values().shape[1], dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        values = self._bound_values()
        nearest = [int(np.argmin(np.sum((values - row) ** 2, axis=1))) for row in rows(A, values.shape[1])]
        return values[nearest]

    def _bound_values(self) -> Array:
        if not self.bound:
            raise unbound(self)
        return self.values

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return "1 point" if self.values.shape[0] == 1 else f"{self.values.shape[0]} points"

    def to_tree(self) -> dict[str, Any]:
        columns = None if self.columns is None else list(self.columns)
        return {"kind": "points", "columns": columns, "points": self.values.tolist()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Points) and self.columns == other.columns and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.columns, self.values.shape, self.values.tobytes()))

    def __repr__(self) -> str:
        first = ", ".join("[" + ", ".join(number_text(v) for v in row) + "]" for row in self.values[:5])
        more = f", … {self.values.shape[0] - 5} more" if self.values.shape[0] > 5 else ""
        return f"Points([{first}{more}])"


@dataclass(frozen=True)
class Everywhere(Region):
    """Every input; candidates come from the range of the data, a tenth wider on each side."""

    dimension: int | None = field(default=None, init=False, repr=False, compare=False)

    def resolve(self, inputs: Inputs) -> Everywhere:
        region = replace(self)
        object.__setattr__(region, "dimension", inputs.dimension)
        return region

    def limits(self, dimension: int) -> tuple[Array, Array]:
        return np.full(dimension, -np.inf), np.full(dimension, np.inf)

    def meets(self, lower: Array, upper: Array) -> bool:
        return True

    def contains(self, A: Array) -> Mask:
        return np.ones(rows(A, self._bound_dimension()).shape[0], dtype=np.bool_)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        if inputs.outputs is not None:
            plain, share = Everywhere().resolve(inputs.plain), -(-at_least_one(count) // len(inputs.outputs))
            about = [plain.candidates(share, inputs.plain, turn) for _ in inputs.outputs]
            return np.vstack([np.column_stack([A, np.full(len(A), float(o))]) for o, A in enumerate(about)])
        lower, upper = self._spans(inputs)
        return spread(lower, upper, np.zeros(lower.size, dtype=np.bool_), at_least_one(count), inputs, turn)

    @property
    def points(self) -> Array | None:
        return None

    def moves(self, dimension: int) -> Mask:
        return np.ones(self._bound_dimension(), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        return np.clip(rows(A, self._bound_dimension()), *self._spans(inputs))

    def _spans(self, inputs: Inputs) -> tuple[Array, Array]:
        self._bound_dimension()
        lower, upper = inputs.values.min(axis=0), inputs.values.max(axis=0)
        margin = 0.1 * upper - 0.1 * lower
        return lower - margin, upper + margin

    def _bound_dimension(self) -> int:
        if self.dimension is None:
            raise unbound(self)
        return self.dimension

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return "everywhere"

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "everywhere"}


def bound_points(values: Array, columns: tuple[str, ...] | None) -> Points:
    """Points that are already in the order of the data."""
    region = object.__new__(Points)
    region._set(np.array(values, dtype=np.float64), columns, True)
    return region
