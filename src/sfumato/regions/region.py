"""What every region can do, and the sets that regions form: lists of points, unions and intersections.

The checks of what users give, and the texts for messages, are those that all regions share.
"""

from __future__ import annotations

import copy
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array, Mask, evenly
from ..data import Encoding, Inputs, among, as_inputs
from ..errors import InputError
from ..linalg import deal, fill_cube, fill_interval
from ..text import close_match, number_text
from .boxes import Boxes, distinct, within_data
from .conditions import KEYWORDS, is_plain_word

#: Regions are nested and have parts up to these numbers, so that what is built can be read back from a file.
MOST_DEPTH, MOST_NODES = 16, 1000

#: To find enough inputs of an intersection, up to this many times the asked count is drawn.
_MOST_DRAWS = 16

#: Projecting into an intersection goes through its members in turn, this often at most.
_MOST_ROUNDS = 20

#: Regions write themselves out, up to this many characters; reprlib shortens plain values further.
_LONGEST_TEXT = 200
_SHORT = reprlib.Repr()
_SHORT.maxother = _LONGEST_TEXT


class Region(ABC):
    """A closed set of inputs whose outputs are to be protected.

    A region is a public value that knows nothing of the data until ``bind`` has found its columns in them; the methods
    that take or return inputs work on bound regions only. ``a | b`` and ``a & b`` combine regions.
    """

    #: Whether this is the region of all inputs.
    is_everywhere = False

    @abstractmethod
    def on_columns_of(self, inputs: Inputs) -> Region:
        """This region with its columns found among those of ``inputs``; does not ask where the data lie."""

    @abstractmethod
    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        """The least and the greatest value in each column (±inf where there is no bound)."""

    @abstractmethod
    def spans(self, inputs: Inputs) -> Boxes:
        """Boxes that together hold the region; sides without a bound are open."""

    @abstractmethod
    def meets(self, lower: Array, upper: Array) -> Mask:
        """Which of the boxes between the rows of ``lower`` and ``upper`` the region reaches into.

        Guarantee: a box that holds an input of the region (``contains``) is among them. Others may be.
        """

    @abstractmethod
    def holds(self, lower: Array, upper: Array) -> Mask:
        """Which of the boxes lie wholly in the region.

        Guarantee: every input of these is one of the region (``contains``). Others may be as well.
        """

    @abstractmethod
    def contains(self, A: Array) -> Mask:
        """Which rows of ``A`` lie in the region (borders belong to it)."""

    @abstractmethod
    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        """About ``count`` inputs spread densely over the region, the same each time; another ``batch`` has others."""

    @abstractmethod
    def varying_columns(self, dimension: int) -> Mask:
        """Which columns may be varied continuously inside the region."""

    @abstractmethod
    def project(self, A: Array, inputs: Inputs) -> Array:
        """The rows of ``A`` moved into the region, or near it where that is not simple: check with ``contains``."""

    @abstractmethod
    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        """A phrase for certificates and reports, such as "1 ≤ t ≤ 2"."""

    @abstractmethod
    def to_tree(self) -> dict[str, Any]:
        """This region as plain JSON values; ``region_from_tree`` reads it back."""

    def boxes(self, inputs: Inputs, most: int | None = None) -> Boxes | None:
        """Finite boxes that together hold every input that the region is promised at; None if more than ``most``.

        A column that the region leaves free has one value in each of them, for each observed combination of such
        columns, or all of its observed range (``free_over_ranges``).
        """
        return self.spans(inputs).closed(self.free_over_ranges(), inputs, most)

    @property
    def points(self) -> Array | None:
        """The points, one a row, if the region is a finite list of points."""
        return None

    def promised_at_rows(self, A: Array) -> Array:
        """The inputs at which the region is promised where only the rows ``A`` of the data are."""
        return np.asarray(A[self.contains(A)])

    def contains_for_any_output(self, A: Array) -> Mask:
        """Which rows of ``A`` have inputs that lie in the region, whichever output they are about."""
        return self.contains(A)

    def project_into_parts(self, A: Array, inputs: Inputs) -> Array:
        """The rows of ``A`` moved into the region; where it has several parts, each row into each part."""
        return self.project(A, inputs)

    def free_over_ranges(self) -> bool:
        """Whether columns without a bound range over all between their ends, not over combinations in the data."""
        return False

    def walk(self, depth: int = 1) -> Iterator[tuple[int, Region]]:
        """This region and all that are nested in it, each with how deep it is."""
        yield depth, self

    def bind(self, inputs: Inputs) -> Region:
        """This region for the data ``inputs``: columns found, open sides closed, and not away from all data."""
        inputs = inputs.sample  # it has the least and the largest value of each column
        region = self.on_columns_of(inputs)
        if not region.lies_near(inputs):
            raise InputError(
                f"the region ({region.in_words(inputs.names)}) lies wholly outside the data, which have "
                f"{inputs.ranges_in_words()}; check the units and the order of the columns."
            )
        return region.closed(inputs)

    def lies_near(self, inputs: Inputs) -> bool:
        """Whether the region is about the data: it reaches into the box around them, or may."""
        return bool(self.meets(*_box_around(inputs))[0])

    def closed(self, inputs: Inputs) -> Region:
        """This bound region with open sides closed where the data end: a promise must say how far it goes."""
        return self

    def words_with(self, others: Sequence[Region]) -> str | None:
        """This region or any of ``others`` for people, where that can be said shorter than one after the other."""
        return None

    def simple_intersection(self, other: Region) -> Region | None:
        """One plain region with the inputs of this one and of ``other``, where there is one."""
        return None

    def __or__(self, other: Region) -> Region:
        if not isinstance(other, Region):
            return NotImplemented
        if self.is_everywhere:
            return self
        return other if other.is_everywhere else Union([self, other])

    def __and__(self, other: Region) -> Region:
        if not isinstance(other, Region):
            return NotImplemented
        if self.is_everywhere:
            return other
        if other.is_everywhere:
            return self
        return self.simple_intersection(other) or Intersection([self, other])


AnyRegion = TypeVar("AnyRegion", bound=Region)


def set_fields(region: Region, **values: Any) -> None:
    """Fill the fields of a frozen region that is being made."""
    for name, value in values.items():
        object.__setattr__(region, name, value)


def changed(region: AnyRegion, **values: Any) -> AnyRegion:
    """A copy of ``region`` with other fields."""
    other = copy.copy(region)
    set_fields(other, **values)
    return other


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Points(Region):
    """A finite list of inputs, one a row; a plain list of numbers is many points of one feature."""

    values: Array
    columns: tuple[str, ...] | None
    encoding: Encoding | None
    bound: bool

    def __init__(self, S: Any) -> None:
        given = as_inputs(S, "points")
        values = given.values + 0.0
        values.setflags(write=False)
        set_fields(self, values=values, columns=given.columns, encoding=given.encoding, bound=False)

    def on_columns_of(self, inputs: Inputs) -> Points:
        if self.encoding is not None:  # it may know fewer levels than the data have
            if inputs.encoding is None:
                raise InputError(f"points have dates or text ({self.encoding.in_words}), and X has numbers alone.")
            values = inputs.encoding.encode(self.encoding.decode(self.values), "points")
            return bound_points(values, inputs.columns)
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

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        return self._bound_values().min(axis=0), self._bound_values().max(axis=0)

    def spans(self, inputs: Inputs) -> Boxes:
        return Boxes(self._bound_values(), self._bound_values())

    def meets(self, lower: Array, upper: Array) -> Mask:
        values = self._bound_values()
        return Boxes(rows(lower, values.shape[1]), rows(upper, values.shape[1])).hold_any(values)

    def holds(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(np.all(lower == upper, axis=1) & self.contains(lower), dtype=np.bool_)

    def lies_near(self, inputs: Inputs) -> bool:
        # Points are named one by one, so one a little beyond the data is meant; far beyond it is a wrong unit.
        lower, upper = _box_around(inputs)
        with np.errstate(over="ignore"):
            width = upper - lower
            return bool(self.meets(lower - width, upper + width)[0])

    def contains(self, A: Array) -> Mask:
        values = self._bound_values()
        return among(rows(A, values.shape[1]), values)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        at_least_one(count)
        return self._bound_values().copy()

    @property
    def points(self) -> Array | None:
        return self._bound_values()

    def varying_columns(self, dimension: int) -> Mask:
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


def bound_points(values: Array, columns: tuple[str, ...] | None) -> Points:
    """Points that are already in the order of the data."""
    points = np.array(values, dtype=np.float64)
    points.setflags(write=False)
    region = object.__new__(Points)
    set_fields(region, values=points, columns=columns, encoding=None, bound=True)
    return region


@dataclass(frozen=True, init=False, repr=False)
class Union(Region):
    """All inputs that lie in at least one of the members."""

    members: tuple[Region, ...]

    def __init__(self, members: Sequence[Region]) -> None:
        set_fields(self, members=_checked_members(members, Union))

    def on_columns_of(self, inputs: Inputs) -> Region:
        bound = Union([member.on_columns_of(inputs) for member in self.members])
        for member in bound.members:
            if member.is_everywhere:
                return member
        points = bound.points
        return bound if points is None else bound_points(points, inputs.columns)

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(member.bounding_box(dimension) for member in self.members), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)

    def spans(self, inputs: Inputs) -> Boxes:
        return Boxes.joined([member.spans(inputs) for member in self.members])

    def boxes(self, inputs: Inputs, most: int | None = None) -> Boxes | None:
        return Boxes.at_most([member.boxes(inputs, most) for member in self.members], most)

    def meets(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(np.any([member.meets(lower, upper) for member in self.members], axis=0), dtype=np.bool_)

    def holds(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(np.any([member.holds(lower, upper) for member in self.members], axis=0), dtype=np.bool_)

    def lies_near(self, inputs: Inputs) -> bool:
        return any(member.lies_near(inputs) for member in self.members)

    def contains(self, A: Array) -> Mask:
        return np.asarray(np.any([member.contains(A) for member in self.members], axis=0), dtype=np.bool_)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        share = -(-at_least_one(count) // len(self.members))
        return distinct(np.concatenate([member.probes(share, inputs, batch) for member in self.members]))

    @property
    def points(self) -> Array | None:
        lists = [member.points for member in self.members]
        found = [points for points in lists if points is not None]
        return distinct(np.concatenate(found)) if len(found) == len(lists) else None

    def varying_columns(self, dimension: int) -> Mask:
        return _varying_columns(self.members, dimension)

    def project(self, A: Array, inputs: Inputs) -> Array:
        values = rows(A, inputs.dimension)
        moved = np.stack([member.project(values, inputs) for member in self.members])
        nearest = np.argmin(np.sum((moved - values) ** 2, axis=2), axis=0)
        return np.where(self.contains(values)[:, None], values, moved[nearest, np.arange(values.shape[0])])

    def project_into_parts(self, A: Array, inputs: Inputs) -> Array:
        return np.vstack([member.project_into_parts(A, inputs) for member in self.members])

    def free_over_ranges(self) -> bool:
        return any(member.free_over_ranges() for member in self.members)

    def walk(self, depth: int = 1) -> Iterator[tuple[int, Region]]:
        return _walk(self, self.members, depth)

    def closed(self, inputs: Inputs) -> Region:
        return Union([member.closed(inputs) for member in self.members])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        together = self.members[0].words_with(self.members[1:])
        return together or " or ".join(f"({member.in_words(names)})" for member in self.members)

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "union", "members": [member.to_tree() for member in self.members]}

    def __repr__(self) -> str:
        return f"Union([{', '.join(repr(member) for member in self.members)}])"


@dataclass(frozen=True, init=False, repr=False)
class Intersection(Region):
    """All inputs that lie in every one of the members."""

    members: tuple[Region, ...]

    def __init__(self, members: Sequence[Region]) -> None:
        set_fields(self, members=_checked_members(members, Intersection))

    def on_columns_of(self, inputs: Inputs) -> Region:
        first, *others = [member.on_columns_of(inputs) for member in self.members]
        merged = first
        for member in others:
            merged = merged & member
        points = merged.points
        if points is not None:
            return bound_points(points, inputs.columns)
        lower, upper = merged.bounding_box(inputs.dimension)
        if np.any(lower > upper):
            raise self._empty()
        return merged

    def simple_intersection(self, other: Region) -> Region | None:
        # Boxes meet early, so that t ≥ 1 & ball & t ≤ 2 keeps one box and not two.
        for place, member in enumerate(self.members):
            merged = member.simple_intersection(other)
            if merged is not None:
                return Intersection([*self.members[:place], merged, *self.members[place + 1 :]])
        return None

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(member.bounding_box(dimension) for member in self.members), strict=True)
        return np.max(lower, axis=0), np.min(upper, axis=0)

    def spans(self, inputs: Inputs) -> Boxes:
        first, *others = [member.spans(inputs) for member in self.members]
        for other in others:
            first = first.met_with(other, inputs)
        return first

    def boxes(self, inputs: Inputs, most: int | None = None) -> Boxes | None:
        found = super().boxes(inputs, most)
        if found is None:
            return None
        found = found[self.meets(found.lower, found.upper)]
        if not len(found):
            raise self._empty()
        return found

    def meets(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(np.all([member.meets(lower, upper) for member in self.members], axis=0), dtype=np.bool_)

    def holds(self, lower: Array, upper: Array) -> Mask:
        return np.asarray(np.all([member.holds(lower, upper) for member in self.members], axis=0), dtype=np.bool_)

    def lies_near(self, inputs: Inputs) -> bool:
        return all(member.lies_near(inputs) for member in self.members)

    def contains(self, A: Array) -> Mask:
        return np.asarray(np.all([member.contains(A) for member in self.members], axis=0), dtype=np.bool_)

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        count, points = at_least_one(count), self.points
        if points is not None:
            return points
        # Inputs from outside, projected, land on the borders, which are where floors fail.
        outside = self._around(max(count // 4, 8), inputs, batch)
        border = self._inside(self.project(outside, inputs), inputs)
        kept = [self._around(count, inputs, batch), *(member.probes(count, inputs, batch) for member in self.members)]
        kept = [self._inside(found, inputs) for found in kept]
        most = max(found.shape[0] for found in kept)
        inner = max(kept, key=len)
        if most < count:
            inner = distinct(np.concatenate(self._more(kept, border, count, inputs, batch)))
        found = distinct(np.concatenate([_thinned(border, max(count // 4, 1)), _thinned(inner, count)]))
        if found.shape[0] == 0:
            raise self._empty()
        return found

    def _more(self, kept: list[Array], border: Array, count: int, inputs: Inputs, batch: int) -> list[Array]:
        """Inputs inside where ``count`` drawn around the region and from each member gave too few (``kept``)."""
        most = max(found.shape[0] for found in kept)
        if most == 0 and border.shape[0] == 0:
            draws = count * _MOST_DRAWS
            drawn = [self._around(draws, inputs, batch)]
            drawn += [member.probes(draws, inputs, batch) for member in self.members]
        else:
            draws = count * min(-(-2 * count // max(most, 1)), _MOST_DRAWS)
            best = int(np.argmax([found.shape[0] for found in kept]))
            again = self.members[best - 1].probes(draws, inputs, batch) if best else self._around(draws, inputs, batch)
            # The box around what was found is often far smaller; it adds density where the others are thin.
            seen = np.concatenate([border, *kept])
            drawn = [again, self._around(draws, inputs, batch, seen)]
        return [self._inside(found, inputs) for found in drawn]

    def _around(self, count: int, inputs: Inputs, batch: int, seen: Array | None = None) -> Array:
        """Inputs in the boxes that hold the region, or in those parts of them that lie near inputs ``seen`` of it."""
        spans = self.spans(inputs)
        bounded = np.isfinite(spans.lower) | np.isfinite(spans.upper)
        if seen is not None:
            low, high = seen.min(axis=0), seen.max(axis=0)
            spare = 0.2 * high - 0.2 * low
            lower = np.where(bounded, np.maximum(spans.lower, low - spare), spans.lower)
            upper = np.where(bounded, np.minimum(spans.upper, high + spare), spans.upper)
            near = np.all(lower <= upper, axis=1)
            spans, bounded = Boxes(lower, upper)[near], bounded[near]
        if not len(spans):
            raise self._empty()
        chosen = evenly(len(spans), count)
        kept = ~bounded & (not self.free_over_ranges())
        lower, upper = within_data(spans.lower, spans.upper, inputs)
        share = -(-count // chosen.size)
        return np.concatenate([spread(lower[i], upper[i], kept[i], share, inputs, batch) for i in chosen])

    @property
    def points(self) -> Array | None:
        for member in self.members:
            points = member.points
            if points is not None:
                inside = distinct(points[self.contains(points)])
                if inside.shape[0] == 0:
                    raise self._empty()
                return inside
        return None

    def varying_columns(self, dimension: int) -> Mask:
        return _varying_columns(self.members, dimension)

    def project(self, A: Array, inputs: Inputs) -> Array:
        values = np.array(rows(A, inputs.dimension))
        for _ in range(_MOST_ROUNDS):
            outside = ~self.contains(values)
            if not outside.any():
                break
            for member in self.members:
                values[outside] = member.project(values[outside], inputs)
        return values

    def free_over_ranges(self) -> bool:
        return any(member.free_over_ranges() for member in self.members)

    def walk(self, depth: int = 1) -> Iterator[tuple[int, Region]]:
        return _walk(self, self.members, depth)

    def closed(self, inputs: Inputs) -> Region:
        return Intersection([member.closed(inputs) for member in self.members])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return " and ".join(f"({member.in_words(names)})" for member in self.members)

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "intersection", "members": [member.to_tree() for member in self.members]}

    def __repr__(self) -> str:
        return f"Intersection([{', '.join(repr(member) for member in self.members)}])"

    def _inside(self, A: Array, inputs: Inputs) -> Array:
        inside, spans = A[self.contains(A)], self.spans(inputs)
        # In one box a column is free or it is not. Where members are unions, this depends on where an input lies.
        return inside if len(spans) == 1 else inside[spans.hold(inside, self.free_over_ranges(), inputs)]

    def _empty(self) -> InputError:
        return InputError(
            f"the region is empty: no input was found that lies in all of {shown(self)}; "
            "check the bounds, or use | (or) in place of & (and)."
        )


def _checked_members(members: Sequence[Region], kind: type[Union] | type[Intersection]) -> tuple[Region, ...]:
    """The members, with members of the same kind opened up; what is built here can also be read back."""
    if isinstance(members, Region) or not isinstance(members, (list, tuple)) or not members:
        raise InputError(f"{kind.__name__} takes a list of at least one region, not {shown(members)}.")
    flat: list[Region] = []
    for member in members:
        if not isinstance(member, Region):
            raise InputError(f"{kind.__name__} takes regions, but one member is {shown(member)}.")
        flat.extend(member.members if isinstance(member, kind) else [member])
    depths = [1, *(depth for member in flat for depth, _ in member.walk(2))]
    if max(depths) > MOST_DEPTH or len(depths) > MOST_NODES:
        raise InputError(
            f"the region is nested {max(depths)} deep and has {len(depths)} parts; at most {MOST_DEPTH} and "
            f"{MOST_NODES} are allowed. Write it with fewer parts."
        )
    return tuple(flat)


def _walk(whole: Region, members: Sequence[Region], depth: int) -> Iterator[tuple[int, Region]]:
    yield depth, whole
    for member in members:
        yield from member.walk(depth + 1)


def _varying_columns(members: Sequence[Region], dimension: int) -> Mask:
    return np.asarray(np.any([member.varying_columns(dimension) for member in members], axis=0), dtype=np.bool_)


def _thinned(A: Array, count: int) -> Array:
    """At most ``count`` rows of ``A``, taken evenly."""
    if A.shape[0] <= count:
        return A
    return A[np.linspace(0, A.shape[0] - 1, count).astype(np.intp)]


def _box_around(inputs: Inputs) -> tuple[Array, Array]:
    """The box around all rows, as one row of lower and one of upper bounds."""
    return inputs.values.min(axis=0, keepdims=True), inputs.values.max(axis=0, keepdims=True)


def wider_than_data(inputs: Inputs) -> tuple[Array, Array]:
    """The range of the data, a tenth wider on each side."""
    least, most = inputs.values.min(axis=0), inputs.values.max(axis=0)
    margin = 0.1 * most - 0.1 * least
    return least - margin, most + margin


def spread(lower: Array, upper: Array, kept: Mask, count: int, inputs: Inputs, batch: int) -> Array:
    """About ``count`` points between the bounds; the columns ``kept`` take combinations that rows of the data have."""
    wide = np.flatnonzero(~kept & (lower < upper))
    if not kept.any() and lower.size == 1 and wide.size:
        cube = fill_interval(count, batch)[:, None]
    elif wide.size:
        copies = max(1, count // 6 // 2 ** min(wide.size, 6)) if kept.any() else 1
        cube = fill_cube(count, wide.size, batch, copies)
    else:
        cube = np.empty((count if kept.any() else 1, 0))
    points = np.tile(lower, (cube.shape[0], 1))
    # A weighted mean, not lower + u (upper − lower): it hits both ends exactly and cannot overflow.
    points[:, wide] = np.clip(lower[wide] * (1.0 - cube) + upper[wide] * cube, lower[wide], upper[wide])
    if kept.any():
        combinations = np.unique(inputs.values[:, kept], axis=0)
        points[:, kept] = combinations[deal(combinations.shape[0], points.shape[0], wide.size, batch)]
    return distinct(points)


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
    known = ", ".join(inputs.sources)
    if inputs.columns is None:
        raise InputError(
            f"the region names the column {column!r}, but X has no column names; give X as a DataFrame, or use {known}."
        )
    raise InputError(
        f"the region names the column {column!r}, which X does not have; it has {known}."
        f"{close_match(column, inputs.sources)}"
    )


def name_text(name: str) -> str:
    """A column name as ``parse_region`` reads it: bare where possible, else in backticks."""
    if is_plain_word(name) and name.casefold() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
