"""Look-alikes of a region: the same shape, moved to where its owner may look, outside the region.

What is true of a prior at look-alikes is as near as one can come to what is true of it inside, without looking there.
A region between rows has look-alikes between rows; one at the end of the data has look-alikes at an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from ..arrays import Array, Index, Mask
from ..data import Inputs
from ..regions import Region
from ..text import number_text

#: As many are looked for; fewer than ``FEW`` of the region's own size, and smaller ones are taken.
MOST, FEW = 10, 3

#: The sizes that are tried, as shares of the region's.
SIZES = (1.0, 0.5, 0.25)

#: A look-alike has between this share of the rows that the region has, and its inverse.
ALIKE = 1.0 / 3.0

#: Data go on beyond a side where at least this share of the hidden rows, in number, is seen there.
BEYOND = 0.2

#: Look-alikes share at most this share of their rows with each other, and with the region.
SHARED = 0.1

#: A look-alike leaves at least this share of the rows outside the region to be seen.
SEEN = 0.5

#: Places that are tried as the middle of a look-alike.
PLACES = 400


@dataclass(frozen=True, eq=False)
class LookAlike:
    """Rows outside the region that lie as its own rows do: ``hidden``, by number; ``where`` says it in words.

    ``size`` is 1 for the shape as it is, and less where only a smaller one found a place.
    """

    hidden: Index
    shift: Array
    size: float
    where: str


def look_alikes(region: Region, inputs: Inputs) -> tuple[LookAlike, ...]:
    """Up to ten look-alikes of a bound ``region``, spread over the rows outside; none where the shape cannot be moved.

    Guarantee: no row inside the region is hidden in one, and at least half of the rows outside are left to be seen.
    """
    if region.is_everywhere:
        return ()
    search = _Search(region, inputs)
    found: list[_Candidate] = []
    for size in SIZES if search.can_shrink else SIZES[:1]:
        if len(found) < FEW:
            search.add(found, size)
    whole = [LookAlike(np.flatnonzero(one.hidden), one.shift, one.size, search.in_words(one)) for one in found]
    return tuple(sorted(whole, key=lambda one: tuple(one.shift)))


@dataclass(frozen=True, eq=False)
class _Candidate:
    hidden: Mask
    shift: Array
    size: float
    misfit: float


class _Search:
    """Moves the shape about, and looks which rows it meets."""

    def __init__(self, region: Region, inputs: Inputs) -> None:
        self.region, self.inputs, self.X = region, inputs, inputs.values
        self.inside = region.contains(self.X)
        self.points = region.points
        self.lower, self.upper, self.moving = self._extent()
        self.middle = (self.lower + self.upper) / 2.0
        self.count = max(int(self.inside.sum()), 1 if self.points is None else len(self.points))
        spread = np.std(self.X, axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        # a list of points has no size, and a column with one value none either
        self.wide = self.moving & (self.upper > self.lower)
        self.can_shrink = self.points is None and bool(self.wide.any())
        self.ends, self.thin = self._sides(self.inside, ~self.inside)

    def _extent(self) -> tuple[Array, Array, Mask]:
        """The box around the region within the data, and the columns in which the region leaves out some rows."""
        least, most = self.X.min(axis=0), self.X.max(axis=0)
        lower, upper = self.region.bounding_box(self.X.shape[1])
        spans = self.region.spans(self.inputs)
        bounded = np.any((spans.lower > least) | (spans.upper < most), axis=0)
        lower, upper = np.clip(lower, least, most), np.clip(upper, least, most)
        return lower, upper, np.asarray(bounded & (most > least), dtype=np.bool_)

    def add(self, found: list[_Candidate], size: float) -> None:
        """Look-alikes of one size that share hardly a row, each as far from the others as may be."""
        candidates = [one for shift in self._shifts() if (one := self._candidate(shift, size)) is not None]
        while len(found) < MOST:
            free = [one for one in candidates if all(_shared(one.hidden, other.hidden) <= SHARED for other in found)]
            if not free:
                return
            known = np.array([np.zeros(len(self.scale)), *(other.shift for other in found)])

            def room(one: _Candidate, known: Array = known) -> float:
                return float(np.min(np.linalg.norm((known - one.shift) / self.scale, axis=1)))

            # one that is as large as the region first, then one that is far away
            alike = [one for one in free if one.misfit <= min(other.misfit for other in free) + 0.15]
            found.append(max(alike, key=room))

    def _shifts(self) -> Iterator[Array]:
        """From the middle of the region to rows outside: along all columns that may move, and along each alone."""
        outside = np.flatnonzero(~self.inside)
        if not self.moving.any() or not len(outside):
            return
        rows = self.X[outside[np.unique(np.linspace(0, len(outside) - 1, PLACES).astype(np.intp))]]
        columns = np.flatnonzero(self.moving)
        start = self.middle if self.points is None else self.points[0]
        encoding, alone = self.inputs.encoding, [np.array([column]) for column in columns]
        if encoding is not None:  # the columns of a category move together
            alone = [
                own for at in encoding.places if (own := columns[(columns >= at.start) & (columns < at.stop)]).size
            ]
        alone = alone if len(alone) > 1 else []
        for kept in [columns, *alone]:
            shifts = np.zeros((len(rows), self.X.shape[1]))
            shifts[:, kept] = rows[:, kept] - start[kept]
            yield from np.unique(shifts, axis=0)

    def _candidate(self, shift: Array, size: float) -> _Candidate | None:
        met = self._met(shift, size)
        hidden = met & ~self.inside
        count, target = int(hidden.sum()), max(self.count * size ** int(self.wide.sum()), 1.0)
        outside = int(np.sum(~self.inside))
        if not ALIKE * target <= count <= target / ALIKE or count > (1.0 - SEEN) * outside:
            return None
        if np.sum(met & self.inside) > SHARED * count:
            return None
        ends, thin = self._sides(hidden, ~self.inside & ~hidden)
        if np.any(ends != self.ends) or np.any(thin & ~self.thin):
            return None
        # beside the region, whose rows nobody sees, a gap would be twice as wide
        if not self.ends.any() and np.any(self._met(shift, size * (1.0 + 2.0 * BEYOND)) & self.inside):
            return None
        return _Candidate(hidden, shift, size, abs(float(np.log(count / target))))

    def _met(self, shift: Array, size: float) -> Mask:
        """The rows that the moved shape meets."""
        if self.points is not None:
            return self._near_points(shift)
        back = np.array(self.X)
        middle, wide = self.middle, self.wide
        back[:, self.moving] -= shift[self.moving]
        back[:, wide] = middle[wide] + (back[:, wide] - middle[wide]) / size
        return self.region.contains(back)

    def _near_points(self, shift: Array) -> Mask:
        """The rows outside that are nearest to the moved points."""
        assert self.points is not None
        outside, tree, spacing = self.others
        distance, nearest = tree.query((self.points + shift) / self.scale)
        met = np.zeros(len(self.X), dtype=np.bool_)
        met[outside[nearest[distance <= 2.0 * spacing + 1e-9]]] = True
        return met

    @cached_property
    def others(self) -> tuple[Index, Any, float]:
        """The rows outside, a tree of them, and how far apart they usually are."""
        outside = np.flatnonzero(~self.inside)
        scaled = self.X[outside] / self.scale
        tree = scipy.spatial.cKDTree(scaled)
        return outside, tree, float(np.median(tree.query(scaled, 2)[0][:, 1])) if len(outside) > 1 else 0.0

    def _sides(self, hidden: Mask, seen: Mask) -> tuple[Index, Mask]:
        """In each column that may move, on how many sides of the hidden rows data end, and whether they thin out."""
        low, high = (
            (self.X[hidden].min(axis=0), self.X[hidden].max(axis=0)) if hidden.any() else (self.lower, self.upper)
        )
        beyond = np.array([np.sum(self.X[seen] < low, axis=0), np.sum(self.X[seen] > high, axis=0)])
        ends = np.where(self.moving, np.sum(beyond == 0, axis=0), 0)
        thin = self.moving & np.any((beyond > 0) & (beyond < BEYOND * int(hidden.sum())), axis=0)
        return ends, np.asarray(thin, dtype=np.bool_)

    def in_words(self, one: _Candidate) -> str:
        """Where it lies, in the columns that were moved: "0.25 ≤ t ≤ 0.75"."""
        if self.points is not None:
            lower, upper = self.X[one.hidden].min(axis=0), self.X[one.hidden].max(axis=0)
        else:
            half = np.where(self.wide, one.size, 1.0) * (self.upper - self.lower) / 2.0
            lower, upper = self.middle + one.shift - half, self.middle + one.shift + half
            lower, upper = (np.clip(side, self.X.min(axis=0), self.X.max(axis=0)) for side in (lower, upper))
        if self.inputs.encoding is not None:
            return ", ".join(self.inputs.encoding.ranges_in_words(lower, upper, self.moving))
        parts = []
        for column in np.flatnonzero(self.moving):
            low, high, name = _short(lower[column]), _short(upper[column]), self.inputs.names[column]
            parts.append(f"{name} = {low}" if low == high else f"{low} ≤ {name} ≤ {high}")
        return ", ".join(parts)


def _short(value: float) -> str:
    return number_text(float(f"{value:.5g}"))


def _shared(first: Mask, second: Mask) -> float:
    """The rows that two have in common, as a share of the smaller one's."""
    return float(np.sum(first & second)) / max(min(int(first.sum()), int(second.sum())), 1)
