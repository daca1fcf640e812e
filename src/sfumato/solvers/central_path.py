"""Least trace in few dimensions: a primal-dual interior point method over all T ⪰ 0.

It follows the minimisers of ``Tr T − τ log det T − τ Σ log det ξ(T)`` as τ falls. They are where ``z ξ = τ``,
``T S = τ I`` and ``S = I − Q``, ``Q = Σ V z Vᵀ``. The multipliers z and S are steered on their own, by Newton's method,
so that τ can fall quickly. The program is convex: no starting point leads astray, and about twenty steps are enough at
any size.

The multipliers are a witness: Λ = V z Vᵀ, each singular value of V z^{1/2} above 1 cut down to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..inputs import Array
from ..linalg.conjugate_gradients import conjugate_gradients
from .barrier import Curvature, Slack, SmallDemand, symmetric
from .column_solver import ColumnSolver

STEPS = 80
"""More Newton steps than any problem has needed."""

INWARD = 0.95
"""The share of the way to the boundary that a step may go."""


@dataclass(frozen=True, eq=False)
class InteriorSolution:
    """``T = Σ tᵢ eᵢeᵢᵀ``, strictly inside, with tᵢ in ``values`` and eᵢ in ``basis``.

    ``multipliers`` has z for each demand, ``level`` is the last τ, ``gap`` what z proves of Tr T, as a share.
    """

    values: Array
    basis: Array
    multipliers: tuple[Array, ...]
    level: float
    gap: float


def least_trace(
    demands: Sequence[SmallDemand], start: Array, accuracy: float, level: float | None = None
) -> InteriorSolution:
    """The T of least trace that meets ``demands``, to a relative gap of ``accuracy`` or as near as float64 goes.

    ``start`` meets them strictly and is positive definite; ``level`` is the first τ: small where ``start`` is good.
    """
    degree = len(start) + sum(demand.count for demand in demands)
    point = _Point(demands, start, float(np.trace(start)) / degree if level is None else level)
    best, reached = point.solution(), 1.0
    for step in range(STEPS):
        if best.gap <= accuracy:
            break
        # τ falls fast after a good step, not at all while S is far from I − Q, and rises where that blocks the way
        target, least = point.share, degree * point.share
        if step and (point.astray < least or point.gap * point.total < 3.0 * least):
            target = max(target * min(0.9, max(0.1, (1.0 - reached) ** 1.5)), 0.2 * accuracy * point.total / degree)
        elif step > 1 and reached < 0.05:
            target = max(target, 0.5 * point.astray / degree)
        try:
            moved = point.step(target)
        except np.linalg.LinAlgError:
            break
        if moved is None:
            break
        point, reached = moved
        if point.gap < best.gap:
            best = point.solution()
    return best


class _Point:
    """T, z and S, seen in the basis in which T is diagonal."""

    def __init__(
        self,
        demands: Sequence[SmallDemand],
        matrix: Array,
        level: float,
        multipliers: Sequence[Array] | None = None,
        dual: Array | None = None,
    ) -> None:
        self.demands, self.matrix, self.level = demands, matrix, level
        self.values, self.basis = np.linalg.eigh(matrix)
        if not self.values[0] > 0:
            raise np.linalg.LinAlgError("T is no longer positive definite to working precision")
        self.slacks = [Slack(demand, self.basis * np.sqrt(self.values)) for demand in demands]
        if not all(np.isfinite(at.log) for at in self.slacks):
            raise np.linalg.LinAlgError("T does not meet the demands strictly to working precision")
        given = [None] * len(demands) if multipliers is None else multipliers
        self.parts = [Curvature(at, self.basis, z, level) for at, z in zip(self.slacks, given, strict=True)]
        self.dual = np.diag(level / self.values) if dual is None else symmetric(self.basis.T @ dual @ self.basis)
        self.total = float(np.sum(self.values))
        pull = sum((part.pull for part in self.parts), np.zeros_like(matrix))
        self.gap = 1.0 - self._proved(pull) / self.total
        products = float(self.values @ np.diag(self.dual)) + sum(part.complementarity for part in self.parts)
        self.share = products / (len(matrix) + sum(demand.count for demand in demands))
        root = np.sqrt(self.values)
        self.astray = float(np.linalg.norm((np.eye(len(matrix)) - pull - self.dual) * np.outer(root, root)))

    def solution(self) -> InteriorSolution:
        multipliers = tuple(part.multiplier for part in self.parts)
        return InteriorSolution(self.values, self.basis, multipliers, self.level, self.gap)

    def _proved(self, pull: Array) -> float:
        """The lower bound that the multipliers prove."""
        values, vectors = np.linalg.eigh(pull)
        clip = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        return sum(part.witness_value(clip) for part in self.parts)

    def step(self, level: float) -> tuple[_Point, float] | None:
        """One step towards the minimiser for τ = ``level``, and how much of Newton's step it is."""
        gradient = np.diag(1.0 - level / self.values) - sum(part.push(level) for part in self.parts)
        solver = ColumnSolver(self.parts, self.values, self.dual)
        D = conjugate_gradients(self._curvature, solver, -gradient, 1e-2, 300)
        moved = self._descend(D, float(np.sum(gradient * D)), level)
        if moved is None:
            return None
        matrix, forward = moved
        dual_step = np.diag(level / self.values) - self.dual - symmetric((D / self.values[:, None]) @ self.dual)
        steps = [part.multiplier_step(D, level) for part in self.parts]
        backward = _inside(self.dual, dual_step)
        for part, change in zip(self.parts, steps, strict=True):
            backward = min(backward, _inside(part.multiplier, change))
        multipliers = [part.multiplier + backward * change for part, change in zip(self.parts, steps, strict=True)]
        dual = self.basis @ (self.dual + backward * dual_step) @ self.basis.T
        return _Point(self.demands, matrix, level, multipliers, dual), min(forward, backward)

    def _curvature(self, D: Array) -> Array:
        half = 0.5 * ((D / self.values[:, None]) @ self.dual)
        return np.asarray(half + half.T + sum(part.product(D) for part in self.parts))

    def _descend(self, D: Array, slope: float, level: float) -> tuple[Array, float] | None:
        """The next T along D, strictly inside and with a lower barrier function, and how much of D it took."""
        logs = float(np.sum(np.log(self.values))) + sum(at.log for at in self.slacks)
        here = self.total - level * logs
        change = self.basis @ D @ self.basis.T
        length = _inside(np.diag(self.values), D)
        while length > 1e-10:
            there = symmetric(self.matrix + length * change)
            if _barrier(self.demands, there, level) <= here + 1e-4 * length * slope + 1e-12 * abs(here):
                return there, length
            length *= 0.85
        return None


def _barrier(demands: Sequence[SmallDemand], matrix: Array, level: float) -> float:
    """``Tr T − τ log det T − τ Σ log det ξ(T)``, infinite outside."""
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.inf
    logs = 2.0 * float(np.sum(np.log(np.diag(lower))))
    logs += sum(Slack(demand, np.asarray(lower)).log for demand in demands)
    return float(np.trace(matrix)) - level * logs


def _inside(point: Array, change: Array) -> float:
    """How much of ``change``, at most all of it, keeps ``point`` positive (definite)."""
    if point.ndim == 1:
        least = float(np.min(change / point))
    else:
        lower = np.linalg.cholesky(point)
        half = scipy.linalg.solve_triangular(lower, change, lower=True, check_finite=False)
        scaled = scipy.linalg.solve_triangular(lower, half.T, lower=True, check_finite=False)
        least = float(np.linalg.eigvalsh(symmetric(scaled))[0])
    return 1.0 if least >= -INWARD else INWARD / -least
