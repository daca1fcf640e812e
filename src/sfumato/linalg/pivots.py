"""Pivoted Cholesky: the rows of a covariance matrix in the order in which they matter.

One row at a time, or in blocks: nearly the same rows, at the speed of matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..arrays import Array, Index
from .tensors import Matrix, as_array, as_tensor


@dataclass(frozen=True, eq=False)
class Pivots:
    """``order`` lists the picked rows; ``largest[k]`` is the largest variance left once k rows are picked."""

    order: Index
    largest: Array

    def prefix(self, tolerance: float) -> Index:
        """The shortest start of ``order`` that leaves no variance above ``tolerance`` (all of it if none does)."""
        reached = np.flatnonzero(self.largest <= tolerance)
        return self.order[: int(reached[0])] if reached.size else self.order


def pivoted_cholesky(diagonal: Array, column: Callable[[int], Array], tolerance: float, limit: int) -> Pivots:
    """Pick rows of a PSD matrix greedily, always the one with the largest variance left given those before.

    ``column(i)`` is the i-th column of the matrix. Stops when the largest variance left is at most ``tolerance``, or
    after ``limit`` rows.
    """
    order, largest, _ = _pivots(diagonal, np.ones(len(diagonal)), column, tolerance, limit)
    return Pivots(np.array(order, dtype=np.intp), np.array(largest))


def _pivots(
    variances: Array, unit: Array, column: Callable[[int], Array], tolerance: float, limit: int
) -> tuple[list[int], list[float], Array]:
    """The picked rows, the largest share of ``unit`` left before each and after all, and L with its rows."""
    left = np.array(variances, dtype=np.float64)
    limit = min(limit, len(left))
    factor = np.zeros((len(left), limit))
    order: list[int] = []
    largest = [float(np.max(left / unit))]
    while largest[-1] > tolerance and len(order) < limit:
        k, pivot = len(order), int(np.argmax(left / unit))
        direction = column(pivot) - factor[:, :k] @ factor[pivot, :k]
        direction /= np.sqrt(left[pivot])
        factor[:, k] = direction
        left = np.maximum(left - direction**2, 0.0)
        left[pivot] = 0.0
        order.append(pivot)
        largest.append(float(np.max(left / unit)))
    return order, largest, factor


#: How many rows are looked at together.
BLOCK = 64

#: Of these only those are taken that leave this share of the largest variance when the ones before them are known.
LEAST_SHARE_LEFT = 0.2


@dataclass(frozen=True, eq=False)
class BlockPivots:
    """``order``: the picked rows; ``left``: the variance that they leave at each row; ``means``: its mean after k."""

    order: Index
    left: Array
    means: Array


def block_pivots(
    diagonal: Array,
    columns: Callable[[Index], Matrix],
    enough: Callable[[Array], bool],
    limit: int,
    smallest: float,
    first: int = 0,
    smallest_first: float = 0.0,
) -> BlockPivots:
    """Pick rows of a PSD matrix with much variance left, until ``enough`` says so of what is left at each row.

    ``columns(rows)`` are columns of the matrix, as an array or a tensor on any device: the work is done there. At most
    ``limit`` rows are picked, and none that has less left than ``smallest`` times its own variance. The ``first`` rows
    are picked before all others, unless they have less left than the share ``smallest_first``.
    """
    left = np.array(diagonal, dtype=np.float64)
    limit = min(limit, len(left))
    factor: torch.Tensor | None = None
    order: list[int] = []
    means = [float(np.mean(left))]
    while len(order) < limit:
        share = left / diagonal
        waiting = np.flatnonzero(share[:first] > smallest_first)[:BLOCK]
        if waiting.size == 0 and enough(left):
            break
        block = waiting if waiting.size else np.argpartition(-share, min(BLOCK, len(left) - 1))[:BLOCK]
        block = block[np.argsort(-share[block], kind="stable")]
        block = block if waiting.size else block[share[block] > smallest]
        if block.size == 0:
            break
        k = len(order)
        least = smallest_first if waiting.size else float(share[block[0]]) * LEAST_SHARE_LEFT
        wanted = as_tensor(columns(block))
        if factor is None:
            # rows of this are columns of the factor: new ones are added at the end
            factor = wanted.new_zeros(limit, len(left))
        known = factor[:k, block]
        schur = as_array(wanted[block] - known.T @ known)
        variances, unit = np.diag(schur), diagonal[block]
        # the first of them is always taken, whatever round-off says
        least = min(least, 0.5 * float(np.max(variances / unit)))
        kept, _, triangle = _pivots(variances, unit, schur.T.__getitem__, least, limit - k)
        lower = np.tril(triangle[kept, : len(kept)])
        new = wanted[:, kept].T - known[:, kept].T @ factor[:k]
        new = torch.linalg.solve_triangular(as_tensor(lower, wanted.device), new, upper=False)
        factor[k : k + len(kept)] = new
        squares = new.square_()
        means += (means[-1] - np.cumsum(as_array(squares.mean(dim=1)))).tolist()
        left = np.maximum(left - as_array(squares.sum(dim=0)), 0.0)
        order += block[kept].tolist()
        # what round-off leaves of them is not worth picking
        left[block if waiting.size else block[kept]] = 0.0
        means[-1] = float(np.mean(left))
    return BlockPivots(np.array(order, dtype=np.intp), left, np.maximum(means, 0.0))
