"""Pivoted Cholesky: the rows of a covariance matrix in the order in which they matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..inputs import Array


@dataclass(frozen=True, eq=False)
class Pivots:
    """``order`` lists the picked rows; ``largest[k]`` is the largest variance left once k rows are picked."""

    order: npt.NDArray[np.intp]
    largest: Array

    def prefix(self, tolerance: float) -> npt.NDArray[np.intp]:
        """The shortest start of ``order`` that leaves no variance above ``tolerance`` (all of it if none does)."""
        reached = np.flatnonzero(self.largest <= tolerance)
        return self.order[: int(reached[0])] if reached.size else self.order


def pivoted_cholesky(diagonal: Array, column: Callable[[int], Array], tolerance: float, limit: int) -> Pivots:
    """Pick rows of a PSD matrix greedily, always the one with the largest variance left given those before.

    ``column(i)`` is the i-th column of the matrix. Stops when the largest variance left is at most ``tolerance``, or
    after ``limit`` rows.
    """
    left = np.array(diagonal, dtype=np.float64)
    size = left.shape[0]
    limit = min(limit, size)
    factor = np.zeros((size, limit))
    order: list[int] = []
    largest = [float(left.max())]
    while largest[-1] > tolerance and len(order) < limit:
        k, pivot = len(order), int(np.argmax(left))
        direction = column(pivot) - factor[:, :k] @ factor[pivot, :k]
        direction /= np.sqrt(left[pivot])
        factor[:, k] = direction
        left = np.maximum(left - direction**2, 0.0)
        left[pivot] = 0.0
        order.append(pivot)
        largest.append(float(left.max()))
    return Pivots(np.array(order, dtype=np.intp), np.array(largest))
