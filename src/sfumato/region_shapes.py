"""The other plain regions: balls, lists of points, everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import InputError
from .inputs import Array, Inputs, Mask, among, as_inputs
from .low_discrepancy import fill_ball
from .region_box import spread
from .region_interface import Region, at_least_one, distinct, number_text, real, reals, rows, same_dimension, unbound


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
