"""Least trace in few dimensions: a primal-dual interior point method over all T ⪰ 0.

It follows the minimisers of ``Tr T − τ log det T − τ Σ log det ξ(T)`` as τ falls. They are where ``z ξ = τ``, ``T S = τ I``
and ``S = I − Σ V z Vᵀ``; z and S are steered on their own, with Newton's steps, so that τ can fall quickly. The
program is convex: no starting point leads astray, and about twenty steps are enough whatever its size.

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
    """T = Σ tᵢ eᵢeᵢᵀ, strictly inside; ``multipliers`` has z for each demand; ``level`` is the last τ."""

    values: Array
    basis: Array
    multipliers: tuple[Array, ...]
    level: float
    gap: float
    steps: int


def least_trace(
    demands: Sequence[SmallDemand], start: Array, accuracy: float, level: float | None = None
) -> InteriorSolution:
    """The T of least trace that meets ``demands``, to a relative gap of ``accuracy`` or as near as float64 goes.

    ``start`` meets them strictly and is positive definite; ``level`` is the first τ: small where ``start`` is good.
    """
    size = len(start)
    degree = size + sum(demand.count for demand in demands)
    current = start
    multipliers: list[Array] | None = None
    dual: Array | None = None
    reached = 0.0
    level = float(np.trace(start)) / degree if level is None else level
    best: InteriorSolution | None = None
    for step in range(STEPS):
        values, basis = np.linalg.eigh(current)
        if values[0] <= 0:
            break
        slacks = [Slack(demand, basis * np.sqrt(values)) for demand in demands]
        given = [None] * len(demands) if multipliers is None else multipliers
        parts = [Curvature(at, basis, z, level) for at, z in zip(slacks, given, strict=True)]
        turned = np.diag(level / values) if dual is None else symmetric(basis.T @ dual @ basis)
        total = float(np.sum(values))
        pull = sum((part.pull for part in parts), np.zeros((size, size)))
        gap = 1.0 - _certified(parts, pull) / total
        if best is None or gap < best.gap:
            best = InteriorSolution(values, basis, tuple(part.multiplier for part in parts), level, gap, step)
        if gap <= accuracy:
            break
        share = (float(values @ np.diag(turned)) + sum(part.complementarity for part in parts)) / degree
        root = np.sqrt(values)
        astray = float(np.linalg.norm((np.eye(size) - pull - turned) * np.outer(root, root)))
        # τ falls fast after a good step, not at all while S is far from I − Q, and rises where that blocks the way
        if step and astray < degree * share:
            level = max(min(0.9, max(0.1, (1.0 - reached) ** 1.5)) * share, 0.2 * accuracy * total / degree)
        else:
            level = max(share, 0.5 * astray / degree) if step > 1 and reached < 0.05 else share
        gradient = np.diag(1.0 - level / values) - sum(part.push(level) for part in parts)
        D = _newton(parts, values, turned, gradient)
        moved = _descend(slacks, current, values, basis, D, float(np.sum(gradient * D)), level)
        if moved is None:
            break
        current, forward = moved
        dual_step = np.diag(level / values) - turned - symmetric((D / values[:, None]) @ turned)
        steps = [part.multiplier_step(D, level) for part in parts]
        backward = _inside(turned, dual_step)
        for part, change in zip(parts, steps, strict=True):
            backward = min(backward, _inside(part.multiplier, change))
        multipliers = [part.multiplier + backward * change for part, change in zip(parts, steps, strict=True)]
        dual = symmetric(basis @ (turned + backward * dual_step) @ basis.T)
        reached = min(forward, backward)
    assert best is not None
    return best


def _certified(parts: Sequence[Curvature], pull: Array) -> float:
    """The lower bound that the multipliers prove."""
    values, vectors = np.linalg.eigh(pull)
    clip = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
    return sum(part.witness_value(clip) for part in parts)


def _newton(parts: Sequence[Curvature], values: Array, dual: Array, gradient: Array) -> Array:
    def product(D: Array) -> Array:
        half = 0.5 * ((D / values[:, None]) @ dual)
        return np.asarray(half + half.T + sum(part.product(D) for part in parts))

    return conjugate_gradients(product, ColumnSolver(parts, values, dual), -gradient, 1e-2, 60)


def _descend(
    slacks: Sequence[Slack], current: Array, values: Array, basis: Array, D: Array, slope: float, level: float
) -> tuple[Array, float] | None:
    """The next T along D, strictly inside and with less of the barrier function, and how much of D it took."""
    here = float(np.sum(values)) - level * (float(np.sum(np.log(values))) + sum(at.log for at in slacks))
    change = basis @ D @ basis.T
    length = _inside(np.diag(values), D)
    while length > 1e-10:
        there = symmetric(current + length * change)
        try:
            lower = np.linalg.cholesky(there)
        except np.linalg.LinAlgError:
            length *= 0.85
            continue
        logs = 2.0 * float(np.sum(np.log(np.diag(lower)))) + sum(Slack(at.demand, lower).log for at in slacks)
        if float(np.trace(there)) - level * logs <= here + 1e-4 * length * slope + 1e-12 * abs(here):
            return there, length
        length *= 0.85
    return None


def _inside(point: Array, change: Array) -> float:
    """How much of ``change``, at most all, keeps ``point`` positive (definite)."""
    if point.ndim == 1:
        least = float(np.min(change / point))
    else:
        lower = scipy.linalg.cholesky(point, lower=True, check_finite=False)
        half = scipy.linalg.solve_triangular(lower, change, lower=True, check_finite=False)
        scaled = scipy.linalg.solve_triangular(lower, half.T, lower=True, check_finite=False)
        least = float(scipy.linalg.eigvalsh(symmetric(scaled), check_finite=False, subset_by_index=(0, 0))[0])
    return 1.0 if least >= -INWARD else INWARD / -least
