"""Boxes, balls, everywhere, and a region of several outputs: a shape for each sensitive one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np

from ..arrays import UNIT, Array, Mask
from ..data import Column, Encoding, Inputs, default_names, from_moments
from ..errors import InputError
from ..linalg import fill_ball
from ..text import close_match, number_text, some_of, span_text
from .boxes import Boxes, distinct, within_data
from .conditions import (
    Condition,
    Dates,
    Levels,
    Meant,
    as_meant,
    inward,
    is_empty,
    levels_text,
    numbers_text,
)
from .region import (
    Region,
    Union,
    at_least_one,
    changed,
    column_position,
    items,
    name_text,
    real,
    reals,
    rows,
    same_dimension,
    set_fields,
    shown,
    spread,
    unbound,
    wider_than_data,
)

Free: TypeAlias = Literal["combinations", "ranges"]

#: A region, and a file, may have this many outputs.
MOST_OUTPUTS = 64

#: A box over levels of categories falls into at most this many, one for each combination of them.
MOST_COMBINATIONS = 200


@dataclass(frozen=True)
class Binding:
    """Where the columns of a box are in the data, and how those of a table became numbers."""

    positions: tuple[int, ...]
    names: tuple[str, ...]
    encoding: Encoding | None = None


@dataclass(frozen=True, init=False, repr=False)
class Box(Region):
    """All inputs between ``lower`` and ``upper``, borders included.

    Bounds are numbers (one feature), sequences (one entry for each feature) or a dictionary from column names to pairs;
    None or ±inf leaves a side open, which then ends where the data end. ``free`` says what the columns without any
    bound range over: the "combinations" that rows of the data have in them (people who could exist), or their observed
    "ranges".

    Columns of a table that are dates have dates as bounds, and a category has a level or a list of levels:
    ``Box({"date": ("1985-01-01", "1988-01-01"), "species": "Adelie"})``.

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
    meant: tuple[tuple[str, Meant], ...]
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
            columns, low, high, meant = _named_bounds(lower)
        else:
            columns, meant = None, ()
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
        if not meant and not any(np.isfinite(low + high)):
            raise InputError("the box bounds nothing; give at least one finite bound, or use Everywhere().")
        set_fields(self, columns=columns, lower=low, upper=high, free=free, meant=meant, binding=None)

    def on_columns_of(self, inputs: Inputs) -> Region:
        names = inputs.names
        if self.columns is not None and inputs.encoding is not None:
            return self._in_numbers(inputs, inputs.encoding)
        for column, meant in self.meant:
            column_position(column, inputs)
            what = "a date" if isinstance(meant, Dates) else f"the text {shown(meant)}"
            raise InputError(
                f"the region compares {column!r} with {what}, but X has numbers there; give numbers, or X as a "
                f"DataFrame in which {column!r} is a column of dates or of text."
            )
        if self.columns is not None:
            positions = tuple(column_position(column, inputs) for column in self.columns)
            return changed(self, binding=Binding(positions, names))
        remedy = f"give one bound for each, or name the columns, as in Box({{{inputs.sources[0]!r}: (lower, upper)}})."
        same_dimension(self, len(self.lower), inputs, remedy)
        return changed(self, binding=Binding(tuple(range(inputs.dimension)), names, inputs.encoding))

    def _in_numbers(self, inputs: Inputs, encoding: Encoding) -> Region:
        """This box over the columns of numbers that a table became: several, where a category has several levels."""
        lower, upper = np.full(inputs.dimension, -np.inf), np.full(inputs.dimension, np.inf)
        chosen: dict[str, tuple[slice, list[int]]] = {}
        if self.free == "ranges":  # between two levels there is nothing
            chosen = {c.name: (at, list(range(len(c.levels)))) for c, at in encoding.parts if c.kind == "category"}
        for name, condition in self._conditions().items():
            found = encoding.column(name)
            if found is None:
                place = column_position(name, inputs)  # of a level's own column, or of none
                if not isinstance(condition, tuple):
                    raise InputError(f"the region compares {name!r}, which is 0 or 1, with {condition}; give numbers.")
                lower[place], upper[place] = condition
            elif found[0].kind == "category":
                chosen[name] = found[1], _levels_of(found[0], condition)
            else:
                lower[found[1]], upper[found[1]] = _sides_of(found[0], condition)
        count = int(np.prod([len(levels) for _, levels in chosen.values()])) if chosen else 1
        if count > MOST_COMBINATIONS:
            if self.free == "ranges":
                raise InputError(f'free is "ranges", and the categories have {count} combinations; bound some of them.')
            raise InputError(f"the region falls into {count} boxes, one for each combination of levels; name fewer.")
        binding, boxes = Binding(tuple(range(inputs.dimension)), inputs.names, encoding), []
        for levels in product(*(levels for _, levels in chosen.values())):
            low, high = lower.copy(), upper.copy()
            for (own, _), level in zip(chosen.values(), levels, strict=True):
                low[own] = high[own] = np.eye(own.stop - own.start)[level]
            boxes.append(changed(Box(low, high, free=self.free), binding=binding))
        return boxes[0] if len(boxes) == 1 else Union(boxes)

    def _conditions(self) -> dict[str, Condition]:
        """What the box says of each column that it names."""
        sides = zip(self.lower, self.upper, strict=True)
        return {**dict(zip(self.columns or (), sides, strict=True)), **dict(self.meant)}

    def closed(self, inputs: Inputs) -> Box:
        lower, upper = within_data(*self.bounding_box(inputs.dimension), inputs)
        positions = list(self._bound().positions)
        free = np.isinf(self.lower) & np.isinf(self.upper)
        low, high = np.where(free, self.lower, lower[positions]), np.where(free, self.upper, upper[positions])
        return changed(self, lower=tuple(low.tolist()), upper=tuple(high.tolist()))

    def _bound(self) -> Binding:
        if self.binding is None:
            raise unbound(self)
        return self.binding

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        names, positions = self._bound().names, list(self._bound().positions)
        if len(names) != dimension:
            raise InputError(f"{shown(self)} is bound to {len(names)} feature(s), not {dimension}; bind it again.")
        lower, upper = np.full(dimension, -np.inf), np.full(dimension, np.inf)
        lower[positions], upper[positions] = self.lower, self.upper
        return lower, upper

    def spans(self, inputs: Inputs) -> Boxes:
        lower, upper = self.bounding_box(inputs.dimension)
        return Boxes(lower[None], upper[None])

    def meets(self, lower: Array, upper: Array) -> Mask:
        dimension = len(self._bound().names)
        low, high = self.bounding_box(dimension)
        reached = (low <= rows(upper, dimension)) & (high >= rows(lower, dimension))
        return np.asarray(np.all(reached, axis=1), dtype=np.bool_)

    def holds(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(self.contains(lower) & self.contains(upper), dtype=np.bool_)

    def contains(self, A: Array) -> Mask:
        binding = self._bound()
        values = rows(A, len(binding.names))[:, list(binding.positions)]
        return np.asarray(np.all((values >= self.lower) & (values <= self.upper), axis=1), dtype=np.bool_)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        lower, upper, kept = self._spans(inputs)
        return spread(lower, upper, kept, at_least_one(count), inputs, batch)

    def varying_columns(self, dimension: int) -> Mask:
        lower, upper = self.bounding_box(dimension)
        free = np.isinf(lower) & np.isinf(upper)
        return np.asarray((lower < upper) & (~free | (self.free == "ranges")), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        lower, upper, kept = self._spans(inputs)
        values = np.array(rows(A, inputs.dimension))
        values[:, ~kept] = np.clip(values[:, ~kept], lower[~kept], upper[~kept])
        return values

    def _spans(self, inputs: Inputs) -> tuple[Array, Array, Mask]:
        """Finite bounds, those of free columns from the observed range, and which keep observed combinations."""
        lower, upper = self.bounding_box(inputs.dimension)
        kept = np.isinf(lower) & np.isinf(upper) & (self.free == "combinations")
        return *within_data(lower, upper, inputs), kept

    def free_over_ranges(self) -> bool:
        return self.free == "ranges"

    def simple_intersection(self, other: Region) -> Box | None:
        """One box for two whose columns can be compared; "ranges" wins over "combinations": it protects more."""
        if not isinstance(other, Box) or self.meant or other.meant:
            return None  # dates and levels meet when they are numbers
        together = self.binding is not None and other.binding is not None and self.binding.names == other.binding.names
        if not together and (self.binding is not None or other.binding is not None):
            return None
        # Explicit "ranges" of one box would be lost otherwise for the columns that neither bounds.
        free = "ranges" if "ranges" in (self.free, other.free) else "combinations"
        if self.columns is None and other.columns is None:
            if len(self.lower) != len(other.lower):
                return None
            box = Box(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper), free=free)
            return changed(box, binding=self.binding)
        if not together and (self.columns is None or other.columns is None):
            return None
        bounds = self._by_name()
        for column, (lower, upper) in other._by_name().items():
            old = bounds.get(column, (-np.inf, np.inf))
            bounds[column] = (max(lower, old[0]), min(upper, old[1]))
        box = Box(bounds, free=free)
        if self.binding is None:
            return box
        names = self.binding.names
        positions = tuple(names.index(column) for column in bounds)
        return changed(box, binding=Binding(positions, names, self.binding.encoding))

    def _by_name(self) -> dict[str, tuple[float, float]]:
        names = self.columns if self.columns is not None else self._bound().names
        sides = zip(names, self.lower, self.upper, strict=True)
        return {name: (lower, upper) for name, lower, upper in sides if np.isfinite(lower) or np.isfinite(upper)}

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        if self._in_table() is not None:
            return words_of_table([self])
        if self.columns is not None:
            own = self.columns
        elif names is not None and len(names) == len(self.lower):
            own = names
        else:
            own = self.binding.names if self.binding is not None else default_names(len(self.lower))
        sides = list(zip(self.lower, self.upper, strict=True))
        sides = sides if self.binding is None else [inward(*pair) for pair in sides]
        parts = [numbers_text(name_text(n), a, b) for n, (a, b) in zip(own, sides, strict=True)]
        parts += [meant.in_words(name_text(name)) for name, meant in self.meant]
        return " and ".join(part for part in parts if part)

    def _in_table(self) -> Encoding | None:
        return None if self.binding is None else self.binding.encoding

    def words_with(self, others: Sequence[Region]) -> str | None:
        boxes = [one for one in (self, *others) if isinstance(one, Box)]
        same = len({one._in_table() for one in boxes}) == 1 and len(boxes) == 1 + len(others)
        return words_of_table(boxes) if same and self._in_table() is not None else None

    def to_tree(self) -> dict[str, Any]:
        if self.meant:
            raise unbound(self)
        columns, lower, upper = self.columns, self.lower, self.upper
        if self.binding is not None and self.binding.encoding is not None:
            # in numbers, column by column: a date under its name would be one in words
            columns, sides = None, self.bounding_box(len(self.binding.names))
            lower, upper = (tuple(side.tolist()) for side in sides)
        return {
            "kind": "box",
            "columns": None if columns is None else list(columns),
            "lower": [None if np.isinf(v) else v for v in lower],
            "upper": [None if np.isinf(v) else v for v in upper],
            "free": self.free,
        }

    def __repr__(self) -> str:
        low, high = [_side_text(v) for v in self.lower], [_side_text(v) for v in self.upper]
        if self.columns is not None:
            parts = [f"{c!r}: ({a}, {b})" for c, a, b in zip(self.columns, low, high, strict=True)]
            bounds = "{" + ", ".join([*parts, *(f"{c!r}: {meant!r}" for c, meant in self.meant)]) + "}"
        elif len(low) == 1:
            bounds = f"{low[0]}, {high[0]}"
        else:
            bounds = f"[{', '.join(low)}], [{', '.join(high)}]"
        return f"Box({bounds})" if self.free == "combinations" else f"Box({bounds}, free={self.free!r})"


def _named_bounds(
    bounds: Mapping[Any, Any],
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...], tuple[tuple[str, Meant], ...]]:
    """The columns bounded by numbers, their bounds, and what is said of other columns."""
    if not bounds:
        raise InputError("the box bounds nothing; give at least one column, as in Box({'AGEP': (75, 100)}).")
    columns, low, high, meant = [], [], [], []
    for column, pair in bounds.items():
        if not isinstance(column, str):
            raise InputError(f"the column name {shown(column)} is not text; write Box({{'AGEP': (75, 100)}}).")
        in_table = as_meant(pair, f"the bounds of {column!r}")
        if in_table is not None:
            if is_empty(in_table):
                raise InputError(f"the region is empty: {column} has the bounds {in_table}; give the earlier first.")
            meant.append((column, in_table))
            continue
        if isinstance(pair, (bytes, Mapping, set, frozenset)) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise InputError(
                f"the bounds of {column!r} are {shown(pair)}; give a pair (lower, upper), None for an open side. Dates "
                'are pairs too, and a category has a level: "Adelie".'
            )
        first, last = pair
        columns.append(column)
        low.append(-np.inf if first is None else real(first, f"the lower bound of {column!r}", infinite=True))
        high.append(np.inf if last is None else real(last, f"the upper bound of {column!r}", infinite=True))
        if np.isinf(low[-1]) and np.isinf(high[-1]) and low[-1] < high[-1]:
            raise InputError(f"the box bounds nothing in {column!r}; give a finite bound, or leave the column out.")
    return tuple(columns), tuple(low), tuple(high), tuple(meant)


def _levels_of(column: Column, condition: Condition) -> list[int]:
    """The numbers of the levels that a condition on a category asks for."""
    if isinstance(condition, tuple) and condition[0] == condition[1]:  # levels may be numbers, "01" and "1" the same
        same = [level for level in column.levels if _number_of(level) == condition[0]]
        condition = Levels(tuple(same) or (number_text(condition[0]),))
    if not isinstance(condition, Levels):
        raise InputError(
            f"the region gives {column.name!r} an order, but it is a category ({some_of(column.levels, 8)}); name "
            f"levels, as in {levels_text(name_text(column.name), column.levels[:1])}."
        )
    for name in condition.names:
        if name not in column.levels:
            raise InputError(
                f"the region asks for {column.name} = {name}, but {column.name!r} has the levels "
                f"{some_of(column.levels, 20)}.{close_match(name, column.levels)}"
            )
    return [column.levels.index(name) for name in condition.names]


def _number_of(level: str) -> float:
    try:
        return float(level)
    except ValueError:
        return math.nan


def _sides_of(column: Column, condition: Condition) -> tuple[float, float]:
    """The bounds of a column of numbers, or of dates in its unit."""
    if isinstance(condition, Levels):
        kind = "dates" if column.kind == "date" else "numbers"
        raise InputError(f"the region compares {column.name!r} with {condition}, but it has {kind}; give {kind}.")
    if isinstance(condition, Dates) != (column.kind == "date"):
        if column.kind == "date":
            raise InputError(
                f"the region compares {column.name!r}, which has dates, with a number; write dates, as in "
                f"{name_text(column.name)} >= 1985-01-31."
            )
        raise InputError(f"the region compares {column.name!r}, which has numbers, with a date; give numbers.")
    if isinstance(condition, tuple):
        return condition
    lower, upper = (
        None if s is None else float(from_moments(s, column.unit)) for s in (condition.lower, condition.upper)
    )
    return -np.inf if lower is None else lower, np.inf if upper is None else upper


def words_of_table(boxes: Sequence[Box]) -> str:
    """What boxes over columns of numbers say of a table; all combinations of some levels are said as one."""
    each = [_said_of_table(box) for box in boxes]
    apart = {name: list(dict.fromkeys(told.get(name) for told in each)) for told in each for name in told}
    apart = {name: found for name, found in apart.items() if len(found) > 1}
    levels = {name: [one for one in found if isinstance(one, Levels)] for name, found in apart.items()}
    combinations = math.prod(map(len, levels.values()))
    if apart and levels == apart and combinations == len({tuple(told.items()) for told in each}):
        joined = {name: Levels(tuple(n for one in found for n in one.names)) for name, found in levels.items()}
        each = [{**each[0], **joined}]
    texts = [
        " and ".join(part if isinstance(part, str) else part.in_words(name_text(name)) for name, part in told.items())
        for told in each
    ]
    return texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)


def _said_of_table(box: Box) -> dict[str, str | Levels]:
    """What a box says of each column of the table that it bounds: the level of a category, or a text."""
    encoding, said = box._bound().encoding, dict[str, str | Levels]()
    lower, upper = box.bounding_box(len(box._bound().names))
    for column, place in encoding.parts if encoding is not None else ():
        low, high, name = lower[place], upper[place], name_text(column.name)
        if column.kind == "category" and np.array_equal(low, high) and np.sum(low) == np.max(low) == 1.0:
            said[column.name] = Levels((column.levels[int(low.argmax())],))
            continue
        if column.kind == "date":
            sides = (None if np.isinf(side[0]) else column.date_in_words(float(side[0])) for side in (low, high))
            texts = [span_text(name, *sides)]
        else:
            each = zip(column.names, low.tolist(), high.tolist(), strict=True)
            texts = [numbers_text(name_text(own), *inward(a, b)) for own, a, b in each]
        if any(texts):
            said[column.name] = " and ".join(text for text in texts if text)
    return said


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
        set_fields(self, centre=middle, radius=size, bound=False)

    def on_columns_of(self, inputs: Inputs) -> Ball:
        if inputs.encoding is not None:
            raise InputError(
                f"{shown(self)} is a distance over all inputs, and some of them are dates or categories "
                f"({inputs.encoding.in_words}); use a Box."
            )
        remedy = "give the centre one number for each feature, or use a Box on some columns."
        same_dimension(self, len(self.centre), inputs, remedy)
        return changed(self, bound=True)

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        centre = self._bound_centre()
        with np.errstate(over="ignore"):
            return centre - self.radius, centre + self.radius

    def spans(self, inputs: Inputs) -> Boxes:
        centre, most = self._bound_centre(), np.finfo(np.float64).max
        # Six operations lie between a column of an input and the distance that ``contains`` looks at.
        reach = self.radius * (1.0 + (self._slack() + 6.0) * UNIT)
        with np.errstate(over="ignore"):
            lower, upper = np.nextafter(centre - reach, -np.inf), np.nextafter(centre + reach, np.inf)
        return Boxes(np.maximum(lower, -most)[None], np.minimum(upper, most)[None])

    def meets(self, lower: Array, upper: Array) -> Mask:
        centre = self._bound_centre()
        nearest = np.clip(centre, rows(lower, centre.size), rows(upper, centre.size))
        # No input of the box is nearer. Sums over columns may be taken in another order than in ``contains``.
        return self._within(nearest, self._slack() + centre.size)

    def holds(self, lower: Array, upper: Array) -> Mask:
        centre = self._bound_centre()
        low, high = rows(lower, centre.size), rows(upper, centre.size)
        farthest = np.where(np.abs(low - centre) > np.abs(high - centre), low, high)
        return self._within(farthest, 0.0)

    def contains(self, A: Array) -> Mask:
        return self._within(rows(A, self._bound_centre().size), self._slack())

    def _within(self, values: Array, slack: float) -> Mask:
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.linalg.norm((values - self._bound_centre()) / self.radius, axis=1)
        return np.asarray(distance <= 1.0 + slack * UNIT, dtype=np.bool_)

    def _slack(self) -> float:
        """A border point is rounded to the grid of floats at the centre; that must not put it outside (in ``UNIT``)."""
        centre = np.abs(self._bound_centre())
        return float(np.sqrt(centre.size) * (centre.max() / self.radius + 1.0) + centre.size + 4.0)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        centre = self._bound_centre()
        return distinct(centre + self.radius * fill_ball(at_least_one(count), centre.size, batch))

    def varying_columns(self, dimension: int) -> Mask:
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


@dataclass(frozen=True)
class Everywhere(Region):
    """Every input; candidates come from the range of the data, a tenth wider on each side."""

    dimension: int | None = field(default=None, init=False, repr=False, compare=False)

    is_everywhere = True

    def on_columns_of(self, inputs: Inputs) -> Everywhere:
        return changed(self, dimension=inputs.dimension)

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        return np.full(dimension, -np.inf), np.full(dimension, np.inf)

    def spans(self, inputs: Inputs) -> Boxes:
        lower, upper = self.bounding_box(self._bound_dimension())
        return Boxes(lower[None], upper[None])

    def boxes(self, inputs: Inputs, most: int | None = None) -> Boxes | None:
        self._bound_dimension()
        raise InputError("the region is everywhere, which no finite boxes hold; give a Box for a bounded part.")

    def meets(self, lower: Array, upper: Array) -> Mask:
        return self.contains(lower)

    def holds(self, lower: Array, upper: Array) -> Mask:
        return self.contains(lower)

    def contains(self, A: Array) -> Mask:
        return np.ones(rows(A, self._bound_dimension()).shape[0], dtype=np.bool_)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        self._bound_dimension()
        plain, share = inputs.plain, -(-at_least_one(count) // len(inputs.outputs))
        kept = np.zeros(plain.dimension, dtype=np.bool_)
        places = spread(*wider_than_data(plain), kept, share, plain, batch)
        return np.vstack([inputs.outputs.rows(places, number) for number in range(len(inputs.outputs))])

    def varying_columns(self, dimension: int) -> Mask:
        return np.ones(self._bound_dimension(), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        return np.clip(rows(A, self._bound_dimension()), *wider_than_data(inputs))

    def _bound_dimension(self) -> int:
        if self.dimension is None:
            raise unbound(self)
        return self.dimension

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return "everywhere"

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "everywhere"}


@dataclass(frozen=True, init=False, repr=False)
class OutputRegion(Region):
    """Inputs whose last column is the number of an output, ``parts`` the region of each sensitive one.

    ``labels`` are the names of all outputs, once the region is bound to data.

    Guarantee: it protects the outputs that it names where it says, and says nothing of the others.
    """

    parts: tuple[tuple[int, Region], ...]
    labels: tuple[str, ...] | None

    def __init__(self, parts: Mapping[int, Region], labels: tuple[str, ...] | None = None) -> None:
        if not parts or len(parts) > MOST_OUTPUTS:
            raise InputError(f"region names {len(parts)} outputs; give at least one, and at most {MOST_OUTPUTS}.")
        for number, part in parts.items():
            nested = any(isinstance(inner, OutputRegion) for _, inner in part.walk())
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_OUTPUTS or nested:
                raise InputError(f"region has {shown(part)} for the output {number!r}; give an output's number first.")
        set_fields(self, parts=tuple(sorted(parts.items())), labels=labels)

    @property
    def sensitive(self) -> tuple[int, ...]:
        """The numbers of the outputs that are protected somewhere."""
        return tuple(number for number, _ in self.parts)

    def on_columns_of(self, inputs: Inputs) -> OutputRegion:
        if not inputs.outputs.numbered:
            raise InputError("region is one of several outputs, but X has one; give a region of the inputs alone.")
        if max(self.sensitive) >= len(inputs.outputs):
            raise InputError(
                f"region names output {max(self.sensitive)}, but there are {len(inputs.outputs)}, counted from 0."
            )
        return OutputRegion(
            {number: part.on_columns_of(inputs.plain) for number, part in self.parts}, inputs.outputs.names
        )

    def closed(self, inputs: Inputs) -> OutputRegion:
        return OutputRegion({number: part.closed(inputs.plain) for number, part in self.parts}, self.labels)

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(part.bounding_box(dimension - 1) for _, part in self.parts), strict=True)
        least, most = float(self.sensitive[0]), float(self.sensitive[-1])
        return np.append(np.min(lower, axis=0), least), np.append(np.max(upper, axis=0), most)

    def spans(self, inputs: Inputs) -> Boxes:
        return Boxes.joined([part.spans(inputs.plain).with_column(number) for number, part in self.parts])

    def boxes(self, inputs: Inputs, most: int | None = None) -> Boxes | None:
        each = [(number, part.boxes(inputs.plain, most)) for number, part in self.parts]
        return Boxes.at_most([None if one is None else one.with_column(number) for number, one in each], most)

    def meets(self, lower: Array, upper: Array) -> Mask:
        found = np.zeros(len(lower), dtype=np.bool_)
        for number, part in self.parts:
            about = (lower[:, -1] <= number) & (number <= upper[:, -1])
            found |= about & part.meets(lower[:, :-1], upper[:, :-1])
        return found

    def holds(self, lower: Array, upper: Array) -> Mask:
        found = np.zeros(len(lower), dtype=np.bool_)
        for number, part in self.parts:
            about = (lower[:, -1] == number) & (number == upper[:, -1])
            found |= about & part.holds(lower[:, :-1], upper[:, :-1])
        return found

    def lies_near(self, inputs: Inputs) -> bool:
        # A sensitive output need have no rows of its own: others may tell of it.
        return any(part.lies_near(inputs.plain) for _, part in self.parts)

    def contains(self, A: Array) -> Mask:
        inside = np.zeros(len(A), dtype=np.bool_)
        for number, part in self.parts:
            own = np.flatnonzero(A[:, -1] == number)
            inside[own] = part.contains(A[own, :-1])
        return inside

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        share, plain = -(-at_least_one(count) // len(self.parts)), inputs.plain
        return np.vstack([_about(part.probes(share, plain, batch), number) for number, part in self.parts])

    @property
    def points(self) -> Array | None:
        listed = [(number, part.points) for number, part in self.parts]
        found = [_about(points, number) for number, points in listed if points is not None]
        return np.vstack(found) if len(found) == len(listed) else None

    def varying_columns(self, dimension: int) -> Mask:
        moving = np.any([part.varying_columns(dimension - 1) for _, part in self.parts], axis=0)
        return np.append(np.asarray(moving, dtype=np.bool_), False)

    def project(self, A: Array, inputs: Inputs) -> Array:
        """Rows about a sensitive output stay with it; the others go to the first one."""
        values, plain = np.array(rows(A, inputs.dimension)), inputs.plain
        values[~np.isin(values[:, -1], self.sensitive), -1] = self.sensitive[0]
        for number, part in self.parts:
            own = np.flatnonzero(values[:, -1] == number)
            if own.size:
                values[own, :-1] = part.project(values[own, :-1], plain)
        return values

    def promised_at_rows(self, A: Array) -> Array:
        """Every sensitive output at the inputs of all rows, whichever output these are about."""
        plain, found = distinct(A[:, :-1]), []
        for number, part in self.parts:
            points = part.points if part.points is not None else plain[part.contains(plain)]
            found.append(_about(points, number))
        return np.vstack(found)

    def contains_for_any_output(self, A: Array) -> Mask:
        return np.asarray(np.any([part.contains(A[:, :-1]) for _, part in self.parts], axis=0), dtype=np.bool_)

    def project_into_parts(self, A: Array, inputs: Inputs) -> Array:
        values, plain = rows(A, inputs.dimension)[:, :-1], inputs.plain
        return np.vstack([_about(part.project(values, plain), number) for number, part in self.parts])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        plain = None if names is None else names[:-1]
        return "; ".join(f"{self._label(number)}: {part.in_words(plain)}" for number, part in self.parts)

    def _label(self, number: int) -> str:
        return f"output {number}" if self.labels is None else self.labels[number]

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "outputs", "parts": [[number, part.to_tree()] for number, part in self.parts]}

    def __repr__(self) -> str:
        return f"OutputRegion({{{', '.join(f'{number}: {part!r}' for number, part in self.parts)}}})"


def _about(A: Array, number: int) -> Array:
    """Rows about one output."""
    return np.column_stack([A, np.full(len(A), float(number))])
