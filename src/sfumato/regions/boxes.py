"""Boxes with sides along the columns: what a region comes down to for a proof.

Several boxes stand for all inputs that lie in at least one of them. Sides that are open are ±inf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..arrays import Array, Index, Mask
from ..data import Inputs, among

#: Where two lists of boxes meet in more boxes than this, the shorter list counts as the one box around it.
_MOST_MEETINGS = 10_000

#: Points are looked up in boxes so many at a time, so that this needs some ten megabytes for each column.
_MOST_LOOKED_UP = 1_000_000


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes between ``lower`` and ``upper``, one a row, borders included."""

    lower: Array
    upper: Array

    def __len__(self) -> int:
        return int(self.lower.shape[0])

    def __getitem__(self, keep: Mask | Index | slice) -> Boxes:
        return Boxes(self.lower[keep], self.upper[keep])

    @classmethod
    def joined(cls, lists: list[Boxes]) -> Boxes:
        """The boxes of all lists, each once."""
        sides = np.vstack([np.hstack([boxes.lower, boxes.upper]) for boxes in lists])
        lower, upper = np.hsplit(distinct(sides), 2)
        return cls(lower, upper)

    @classmethod
    def at_most(cls, lists: Sequence[Boxes | None], most: int | None) -> Boxes | None:
        """The boxes of all lists, each once; None if one of these is None or there are more than ``most``."""
        known = [boxes for boxes in lists if boxes is not None]
        found = cls.joined(known) if len(known) == len(lists) else None
        return None if found is None or (most is not None and len(found) > most) else found

    def with_column(self, value: float) -> Boxes:
        """These boxes with one more column, in which they all have ``value``."""
        column = np.full((len(self), 1), value)
        return Boxes(np.hstack([self.lower, column]), np.hstack([self.upper, column]))

    def met_with(self, other: Boxes, inputs: Inputs) -> Boxes:
        """Boxes that hold all inputs that lie in both lists of boxes: where each two of them meet.

        There are at most ``_MOST_MEETINGS``, or as many as in the longer list. Where there would be more, the shorter
        list counts as one box, which is finite in all columns that any of its boxes bounds: open sides end where the
        data end.
        """
        few, many = sorted((self, other), key=len)
        if len(few) <= _MOST_MEETINGS:
            found: list[Boxes] = []
            count = 0
            for low, high in zip(few.lower, few.upper, strict=True):
                met = Boxes(np.maximum(many.lower, low), np.minimum(many.upper, high))
                found.append(met[np.all(met.lower <= met.upper, axis=1)])
                count += len(found[-1])
                if count > max(_MOST_MEETINGS, len(many)):
                    break
            else:
                return Boxes.joined([many[:0], *found])
        return few._around(inputs).met_with(many, inputs)

    def _around(self, inputs: Inputs) -> Boxes:
        """One box that holds all of these, open only in columns where all of them are open on both sides."""
        bounded = np.any(np.isfinite(self.lower) | np.isfinite(self.upper), axis=0)
        lower, upper = within_data(self.lower, self.upper, inputs)
        low, high = np.min(lower, axis=0), np.max(upper, axis=0)
        return Boxes(np.where(bounded, low, -np.inf)[None], np.where(bounded, high, np.inf)[None])

    def closed(self, over_ranges: bool, inputs: Inputs, most: int | None = None) -> Boxes | None:
        """Finite boxes: open sides end where the data end. None if there are more than ``most``, before all are made.

        Columns that are open on both sides have the observed range, if these are to be ``over_ranges``. Else there is
        one box for each combination of values that rows of the data have in them.
        """
        found = [self[:0]]
        for kept, (lower, upper) in self._by_free_columns(over_ranges, inputs):
            if kept.any():
                combinations = inputs.combinations(kept, None if most is None else most // len(lower))
                if combinations is None:
                    return None
                count, each = len(combinations), len(lower)
                lower, upper = np.repeat(lower, count, axis=0), np.repeat(upper, count, axis=0)
                lower[:, kept] = upper[:, kept] = np.tile(combinations, (each, 1))
            found.append(Boxes(lower, upper))
        return Boxes.at_most(found, most)

    def hold(self, points: Array, over_ranges: bool, inputs: Inputs) -> Mask:
        """Which of the points lie in at least one of the boxes, once these are ``closed``."""
        found = np.zeros(len(points), dtype=np.bool_)
        for kept, (lower, upper) in self._by_free_columns(over_ranges, inputs):
            observed = among(points[:, kept], inputs.values[:, kept])
            for low, high in zip(lower[:, ~kept], upper[:, ~kept], strict=True):
                look = np.flatnonzero(observed & ~found)
                values = points[look][:, ~kept]
                found[look] = np.all((values >= low) & (values <= high), axis=1)
        return found

    def _by_free_columns(self, over_ranges: bool, inputs: Inputs) -> Iterator[tuple[Mask, tuple[Array, Array]]]:
        """Which columns take observed combinations, with the finite bounds of all boxes where these are the ones."""
        free = np.isinf(self.lower) & np.isinf(self.upper) & (not over_ranges)
        for kept in np.unique(free, axis=0) if len(self) else ():
            own = np.all(free == kept, axis=1)
            yield kept, within_data(self.lower[own], self.upper[own], inputs)

    def hold_any(self, points: Array) -> Mask:
        """Which of the boxes hold at least one of the points."""
        found = np.zeros(len(self), dtype=np.bool_)
        if not len(self) or not len(points):
            return found
        # Along one column the points are sorted, so that each box has few candidates: take the column with the fewest.
        spans = []
        for column in range(points.shape[1]):
            line = np.sort(points[:, column])
            first = np.searchsorted(line, self.lower[:, column], side="left")
            spans.append((first, np.searchsorted(line, self.upper[:, column], side="right") - first))
        best = int(np.argmin([np.maximum(counts, 0).sum() for _, counts in spans]))
        first, counts = spans[best][0], np.maximum(spans[best][1], 0)
        candidates = points[np.argsort(points[:, best])]
        turns = np.cumsum(counts) // _MOST_LOOKED_UP
        for group in np.split(np.arange(len(self)), np.flatnonzero(np.diff(turns)) + 1):
            which = np.repeat(group, counts[group])
            before = np.repeat(np.cumsum(counts[group]) - counts[group], counts[group])
            look = candidates[first[which] + np.arange(which.size) - before]
            inside = np.all((look >= self.lower[which]) & (look <= self.upper[which]), axis=1)
            found[which[inside]] = True
        return found


def within_data(lower: Array, upper: Array, inputs: Inputs) -> tuple[Array, Array]:
    """The bounds of boxes, open sides ending where the data end."""
    rows = inputs.sample.values  # it has the least and the largest value of each column
    least, most = rows.min(axis=0), rows.max(axis=0)
    low = np.where(np.isinf(lower), np.minimum(least, upper), lower)
    return low, np.where(np.isinf(upper), np.maximum(most, lower), upper)


def distinct(A: Array) -> Array:
    """The rows of ``A`` in their order, each once."""
    # pandas hashes rows; np.unique would sort them, which takes ten times as long.
    again = np.asarray(pd.DataFrame(A).duplicated(), dtype=np.bool_)
    return np.asarray(A[~again], dtype=np.float64)
