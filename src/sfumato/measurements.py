"""Which rows of several releases show the same measurement."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.spatial import cKDTree

from .inputs import Array, Index

#: Inputs that differ by less than this share of their range are the same: they went through a file, or were computed
#: again.
SAME = 1e-6


class Measurements:
    """The measurements that were released so far, by their numbers; ``rows`` has the input and output of each."""

    def __init__(self, dimension: int) -> None:
        self.rows = np.zeros((0, dimension))
        self._latest: dict[bytes, int] = {}

    def record(self, rows: Array, remeasured: bool) -> Index:
        """The numbers of the measurements that ``rows`` show; those that are new get new ones."""
        rows = self._snapped(rows)
        numbers: list[int] = []
        fresh: list[Array] = []
        for name, row in zip(row_names(rows), rows, strict=True):
            if remeasured or name not in self._latest:
                self._latest[name] = len(self.rows) + len(fresh)
                fresh.append(row)
            numbers.append(self._latest[name])
        if fresh:
            self.rows = np.vstack([self.rows, np.array(fresh)])
        return np.array(numbers, dtype=np.intp)

    def known(self, rows: Array) -> Index:
        """The numbers of the last measurements of ``rows``; −1 where there is none."""
        return np.array([self._latest.get(name, -1) for name in row_names(self._snapped(rows))], dtype=np.intp)

    def _snapped(self, rows: Array) -> Array:
        """``rows``, those that are almost one that is known with its very inputs."""
        if not len(self.rows) or not len(rows):
            return rows
        both = np.vstack([self.rows, rows])
        spread = np.ptp(both, axis=0)
        scale = np.where(spread > 0, spread, np.maximum(np.max(np.abs(both), axis=0), np.finfo(np.float64).tiny))
        # the tree looks for the nearest row in the largest difference of any column
        distance, nearest = cKDTree(self.rows / scale).query(rows / scale, p=np.inf)
        return np.where((distance <= SAME)[:, None], self.rows[nearest], rows)


def row_names(rows: Array) -> list[bytes]:
    """A name for each row: its input and output, and how often it occurred before."""
    seen: Counter[bytes] = Counter()
    names = []
    for row in np.ascontiguousarray(rows) + 0.0:
        key = row.tobytes()
        names.append(key + seen[key].to_bytes(8, "little"))
        seen[key] += 1
    return names
