"""A region where several outputs are one process: for each sensitive output the inputs at which it is protected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, Mask
from ..data import Inputs
from ..errors import InputError
from .region import MOST_DEPTH, MOST_NODES, Region, at_least_one, distinct, rows, shown
from .shapes import Binding, Box, Everywhere, Free, bound_points

# Unions and intersections of regions.

_MOST_DRAWS = 16  # of an intersection: how many times the asked count may be drawn to find enough inputs


@dataclass(frozen=True, init=False, repr=False)
class Union(Region):
    """All inputs that lie in at least one of the members."""

    members: tuple[Region, ...]

    def __init__(self, members: Sequence[Region]) -> None:
        object.__setattr__(self, "members", _checked_members(members, Union))

    def resolve(self, inputs: Inputs) -> Region:
        bound = Union([member.resolve(inputs) for member in self.members])
        for member in bound.members:
            if isinstance(member, Everywhere):
                return member
        points = bound.points
        return bound if points is None else bound_points(points, inputs.columns)

    def limits(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(member.limits(dimension) for member in self.members), strict=True)
        return np.min(lower, axis=0), np.max(upper, axis=0)

    def meets(self, lower: Array, upper: Array) -> bool:
        return any(member.meets(lower, upper) for member in self.members)

    def contains(self, A: Array) -> Mask:
        return np.asarray(np.any([member.contains(A) for member in self.members], axis=0), dtype=np.bool_)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        share = -(-at_least_one(count) // len(self.members))
        return distinct(np.concatenate([member.candidates(share, inputs, turn) for member in self.members]))

    @property
    def points(self) -> Array | None:
        lists = [member.points for member in self.members]
        found = [points for points in lists if points is not None]
        return distinct(np.concatenate(found)) if len(found) == len(lists) else None

    def moves(self, dimension: int) -> Mask:
        return np.asarray(np.any([member.moves(dimension) for member in self.members], axis=0), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        values = rows(A, inputs.dimension)
        moved = np.stack([member.project(values, inputs) for member in self.members])
        nearest = np.argmin(np.sum((moved - values) ** 2, axis=2), axis=0)
        return np.where(self.contains(values)[:, None], values, moved[nearest, np.arange(values.shape[0])])

    def reach(self, A: Array, inputs: Inputs) -> Array:
        return np.vstack([member.reach(A, inputs) for member in self.members])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return " or ".join(f"({member.in_words(names)})" for member in self.members)

    def closed(self, inputs: Inputs) -> Region:
        return Union([member.closed(inputs) for member in self.members])

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "union", "members": [member.to_tree() for member in self.members]}

    def __repr__(self) -> str:
        return f"Union([{', '.join(repr(member) for member in self.members)}])"


@dataclass(frozen=True, init=False, repr=False)
class Intersection(Region):
    """All inputs that lie in every one of the members."""

    members: tuple[Region, ...]

    def __init__(self, members: Sequence[Region]) -> None:
        object.__setattr__(self, "members", _checked_members(members, Intersection))

    def resolve(self, inputs: Inputs) -> Region:
        members = [member.resolve(inputs) for member in self.members]
        merged = members[0]
        for member in members[1:]:
            merged = intersect(merged, member)
        points = merged.points
        if points is not None:
            return bound_points(points, inputs.columns)
        lower, upper = merged.limits(inputs.dimension)
        if np.any(lower > upper):
            raise self._empty()
        return merged

    def closed(self, inputs: Inputs) -> Region:
        return Intersection([member.closed(inputs) for member in self.members])

    def limits(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(member.limits(dimension) for member in self.members), strict=True)
        return np.max(lower, axis=0), np.min(upper, axis=0)

    def meets(self, lower: Array, upper: Array) -> bool:
        low, high = self.limits(lower.size)
        together = bool(np.all((low <= upper) & (high >= lower)))
        return together and all(member.meets(lower, upper) for member in self.members)

    def contains(self, A: Array) -> Mask:
        return np.asarray(np.all([member.contains(A) for member in self.members], axis=0), dtype=np.bool_)

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        count, points = at_least_one(count), self.points
        if points is not None:
            return points
        around = self._surrounding_box(inputs)
        # Inputs from outside, projected, land on the borders, which are where floors fail.
        border = self._inside(self.project(around.candidates(max(count // 4, 8), inputs, turn), inputs))
        sources = [around, *self.members]
        kept = [self._inside(source.candidates(count, inputs, turn)) for source in sources]
        most = max(found.shape[0] for found in kept)
        if most < count:
            if most == 0 and border.shape[0] == 0:
                again, draws = sources, count * _MOST_DRAWS
            else:
                # The box around what was found is often far smaller; it adds density where the others are thin.
                seen = np.concatenate([border, *kept])
                best = sources[int(np.argmax([found.shape[0] for found in kept]))]
                again = [best, self._surrounding_box(inputs, seen)]
                draws = count * min(-(-2 * count // max(most, 1)), _MOST_DRAWS)
            kept = [self._inside(source.candidates(draws, inputs, turn)) for source in again]
        inner = distinct(np.concatenate(kept)) if most < count else max(kept, key=len)
        found = distinct(np.concatenate([_thinned(border, max(count // 4, 1)), _thinned(inner, count)]))
        if found.shape[0] == 0:
            raise self._empty()
        return found

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

    def moves(self, dimension: int) -> Mask:
        return np.asarray(np.any([member.moves(dimension) for member in self.members], axis=0), dtype=np.bool_)

    def project(self, A: Array, inputs: Inputs) -> Array:
        values = np.array(rows(A, inputs.dimension))
        for _ in range(20):
            outside = ~self.contains(values)
            if not outside.any():
                break
            for member in self.members:
                values[outside] = member.project(values[outside], inputs)
        return values

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        return " and ".join(f"({member.in_words(names)})" for member in self.members)

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "intersection", "members": [member.to_tree() for member in self.members]}

    def __repr__(self) -> str:
        return f"Intersection([{', '.join(repr(member) for member in self.members)}])"

    def _inside(self, A: Array) -> Array:
        return A[self.contains(A)]

    def _surrounding_box(self, inputs: Inputs, seen: Array | None = None) -> Region:
        """A box that holds the region, or one that holds the inputs ``seen`` of it with some to spare."""
        lower, upper = self.limits(inputs.dimension)
        if np.any(lower > upper):
            raise self._empty()
        bounded = np.isfinite(lower) | np.isfinite(upper)
        if not bounded.any():
            return Everywhere().resolve(inputs)
        if seen is not None:
            low, high = seen.min(axis=0), seen.max(axis=0)
            spare = 0.2 * high - 0.2 * low
            lower = np.where(bounded, np.maximum(lower, low - spare), lower)
            upper = np.where(bounded, np.minimum(upper, high + spare), upper)
        return Box(lower, upper, free=_free(self)).resolve(inputs)

    def _empty(self) -> InputError:
        return InputError(
            f"the region is empty: no input was found that lies in all of {shown(self)}; "
            "check the bounds, or use | (or) in place of & (and)."
        )


def unite(first: Region, second: Region) -> Region:
    """``first | second``."""
    for region in (first, second):
        if isinstance(region, Everywhere):
            return region
    return Union([first, second])


def intersect(first: Region, second: Region) -> Region:
    """``first & second``; two boxes become one where their columns can be compared."""
    if isinstance(first, Everywhere):
        return second
    if isinstance(second, Everywhere):
        return first
    if isinstance(first, Intersection) and isinstance(second, Box):
        # Boxes meet early, so that t ≥ 1 & ball & t ≤ 2 keeps one box and not two.
        for place, member in enumerate(first.members):
            merged = _merged(member, second) if isinstance(member, Box) else None
            if merged is not None:
                return Intersection([*first.members[:place], merged, *first.members[place + 1 :]])
    merged = _merged(first, second) if isinstance(first, Box) and isinstance(second, Box) else None
    return Intersection([first, second]) if merged is None else merged


def _merged(first: Box, second: Box) -> Box | None:
    """One box for two whose columns can be compared, else None; "ranges" wins over "combinations": it protects more."""
    # Explicit "ranges" of one box would be lost otherwise for the columns that neither bounds.
    free: Free = "ranges" if "ranges" in (first.free, second.free) else "combinations"
    together = first.binding is not None and second.binding is not None and first.binding.names == second.binding.names
    if (first.binding is not None or second.binding is not None) and not together:
        return None
    if first.columns is None and second.columns is None:
        if len(first.lower) != len(second.lower):
            return None
        box = Box(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper), free=free)
        return box.bound_to(first.binding) if first.binding is not None else box
    if not together and (first.columns is None or second.columns is None):
        return None
    bounds = _by_name(first)
    for column, (lower, upper) in _by_name(second).items():
        old = bounds.get(column, (-np.inf, np.inf))
        bounds[column] = (max(lower, old[0]), min(upper, old[1]))
    box = Box(bounds, free=free)
    if first.binding is None:
        return box
    names = first.binding.names
    return box.bound_to(Binding(tuple(names.index(column) for column in bounds), names))


def _by_name(box: Box) -> dict[str, tuple[float, float]]:
    names = box.columns if box.columns is not None else box.binding.names if box.binding is not None else ()
    sides = zip(names, box.lower, box.upper, strict=True)
    return {name: (lower, upper) for name, lower, upper in sides if np.isfinite(lower) or np.isfinite(upper)}


def _free(region: Region) -> Free:
    if isinstance(region, (Union, Intersection)):
        return "ranges" if any(_free(member) == "ranges" for member in region.members) else "combinations"
    return region.free if isinstance(region, Box) else "combinations"


def _thinned(A: Array, count: int) -> Array:
    """At most ``count`` rows of ``A``, taken evenly."""
    if A.shape[0] <= count:
        return A
    return A[np.linspace(0, A.shape[0] - 1, count).astype(np.intp)]


def _checked_members(members: Sequence[Region], kind: type[Union] | type[Intersection]) -> tuple[Region, ...]:
    """The members, with members of the same kind opened up; what is built here can also be read back."""
    if isinstance(members, Region) or not isinstance(members, (list, tuple)) or not members:
        raise InputError(f"{kind.__name__} takes a list of at least one region, not {shown(members)}.")
    flat: list[Region] = []
    for member in members:
        if not isinstance(member, Region):
            raise InputError(f"{kind.__name__} takes regions, but one member is {shown(member)}.")
        flat.extend(member.members if isinstance(member, kind) else [member])
    sizes = [_size(member) for member in flat]
    depth, nodes = max(depth for depth, _ in sizes), sum(nodes for _, nodes in sizes)
    if depth + 1 > MOST_DEPTH or nodes + 1 > MOST_NODES:
        raise InputError(
            f"the region is nested {depth + 1} deep and has {nodes + 1} parts; at most {MOST_DEPTH} and {MOST_NODES} "
            "are allowed. Write it with fewer parts."
        )
    return tuple(flat)


def _size(region: Region) -> tuple[int, int]:
    """How deep a region is nested and how many parts it has."""
    if not isinstance(region, (Union, Intersection)):
        return 1, 1
    sizes = [_size(member) for member in region.members]
    return 1 + max(depth for depth, _ in sizes), 1 + sum(nodes for _, nodes in sizes)


MOST_OUTPUTS = 64


@dataclass(frozen=True, init=False)
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
            nested = isinstance(part, OutputRegion) or (
                isinstance(part, (Union, Intersection)) and any(isinstance(m, OutputRegion) for m in part.members)
            )
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_OUTPUTS or nested:
                raise InputError(f"region has {shown(part)} for the output {number!r}; give an output's number first.")
        object.__setattr__(self, "parts", tuple(sorted(parts.items())))
        object.__setattr__(self, "labels", labels)

    @property
    def sensitive(self) -> tuple[int, ...]:
        """The numbers of the outputs that are protected somewhere."""
        return tuple(number for number, _ in self.parts)

    def resolve(self, inputs: Inputs) -> OutputRegion:
        if inputs.outputs is None:
            raise InputError("region is one of several outputs, but X has one; give a region of the inputs alone.")
        if max(self.sensitive) >= len(inputs.outputs):
            raise InputError(
                f"region names output {max(self.sensitive)}, but there are {len(inputs.outputs)}, counted from 0."
            )
        return OutputRegion({number: part.resolve(inputs.plain) for number, part in self.parts}, inputs.outputs)

    def closed(self, inputs: Inputs) -> OutputRegion:
        return OutputRegion({number: part.closed(inputs.plain) for number, part in self.parts}, self.labels)

    def limits(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(part.limits(dimension - 1) for _, part in self.parts), strict=True)
        least, most = float(self.sensitive[0]), float(self.sensitive[-1])
        return np.append(np.min(lower, axis=0), least), np.append(np.max(upper, axis=0), most)

    def meets(self, lower: Array, upper: Array) -> bool:
        return any(part.meets(lower[:-1], upper[:-1]) for _, part in self.parts)

    def contains(self, A: Array) -> Mask:
        inside = np.zeros(len(A), dtype=np.bool_)
        for number, part in self.parts:
            own = np.flatnonzero(A[:, -1] == number)
            if own.size:
                inside[own] = part.contains(A[own, :-1])
        return inside

    def candidates(self, count: int, inputs: Inputs, turn: int = 0) -> Array:
        share, plain = -(-at_least_one(count) // len(self.parts)), inputs.plain
        return np.vstack([_about(part.candidates(share, plain, turn), number) for number, part in self.parts])

    @property
    def points(self) -> Array | None:
        listed = [(number, part.points) for number, part in self.parts]
        found = [_about(points, number) for number, points in listed if points is not None]
        return np.vstack(found) if len(found) == len(listed) else None

    def moves(self, dimension: int) -> Mask:
        moving = np.any([part.moves(dimension - 1) for _, part in self.parts], axis=0)
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

    def rows_of(self, A: Array) -> Array:
        """Every sensitive output at the inputs of all rows, whichever output these are about."""
        plain, found = distinct(A[:, :-1]), []
        for number, part in self.parts:
            points = part.points if part.points is not None else plain[part.contains(plain)]
            found.append(_about(points, number))
        return np.vstack(found)

    def surrounds(self, A: Array) -> Mask:
        return np.asarray(np.any([part.contains(A[:, :-1]) for _, part in self.parts], axis=0), dtype=np.bool_)

    def reach(self, A: Array, inputs: Inputs) -> Array:
        values, plain = rows(A, inputs.dimension)[:, :-1], inputs.plain
        return np.vstack([_about(part.project(values, plain), number) for number, part in self.parts])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        plain = None if names is None else names[:-1]
        return "; ".join(f"{self._label(number)}: {part.in_words(plain)}" for number, part in self.parts)

    def _label(self, number: int) -> str:
        return f"output {number}" if self.labels is None else self.labels[number]

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "outputs", "parts": [[number, part.to_tree()] for number, part in self.parts]}


def _about(A: Array, number: int) -> Array:
    """Rows about one output."""
    return np.column_stack([A, np.full(len(A), float(number))])
