"""A primal–dual interior point method for diagonal noise: few Newton steps, and the distance to the optimum at each.

What is learnt, ``G(d) = Uᵀ(A + Diag d)⁻¹U``, is convex in d, so ``min Σ d_i`` with ``d ≥ 0`` and ``G(d) ⪯ I`` is a
convex program. It has one multiplier T for each demand and one number z_i for each row:

    diag(Σ V T Vᵀ) + z = 1,    T (I − G(d)) = 0,    z_i d_i = 0,    with V = (A + Diag d)⁻¹ U.

The method puts μ in the place of 0 and lets it fall (Mehrotra's predictor and corrector, both from one Cholesky factor
of an n × n matrix). The slack of a demand need not agree with G(d) on the way, which is what makes long steps possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..inputs import Array
from ..programs.demand import Demand
from .multipliers import Multiplier, cholesky_in_place, farthest, multiplier_of, plus_diagonal, solve

#: Steps at most, steps without a better bound at most, and how often a step is shortened when too much would be learnt.
STEPS, PATIENCE, SHORTER = 80, 8, 5
ROUND_OFF = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Point:
    """d > 0, z > 0 and one multiplier for each demand; ``priced`` is the diagonal of Λ = Σ V T Vᵀ."""

    d: Array
    z: Array
    parts: tuple[Multiplier, ...]
    priced: Array

    @property
    def objective(self) -> float:
        return float(np.sum(self.d))

    @property
    def bound(self) -> float:
        """``⟨B, Λ⟩`` with Λ scaled until its diagonal is at most 1: no diagonal noise has a smaller trace."""
        value = float(self.d @ self.priced) - sum(part.shortfall() for part in self.parts)
        return value / max(1.0, float(np.max(self.priced)))

    @property
    def violation(self) -> float:
        """By how much the slacks fail to be ``I − G(d)``, at the price of mending it."""
        return sum(float(np.max(np.abs(part.missing), initial=0.0)) * part.total for part in self.parts)

    @property
    def missing(self) -> float:
        """The largest number in any ``I − G(d) − R``."""
        return max(float(np.max(np.abs(part.missing), initial=0.0)) for part in self.parts)

    @property
    def blur(self) -> float:
        """The round-off in ``bound``, a difference of ``⟨U Uᵀ, Λ⟩`` and ``⟨A, Λ⟩``."""
        return ROUND_OFF * sum(part.size for part in self.parts)

    @property
    def slackness(self) -> float:
        """``Σ z_i d_i + Σ ⟨R, T⟩``, which is 0 at the optimum."""
        return float(self.d @ self.z) + sum(float(np.sum(part.slack * part.multiplier)) for part in self.parts)

    @property
    def wrong(self) -> float:
        """How far the other equations are from holding, in the same units."""
        rows = float(self.d @ np.abs(1.0 - self.priced - self.z))
        return rows + sum(abs(float(np.sum(part.missing * part.multiplier))) for part in self.parts)

    def witness(self) -> tuple[Array, ...]:
        return tuple(part.witness() for part in self.parts)


@dataclass(frozen=True, eq=False)
class Direction:
    """Where d and z, and the slack and the multiplier of each demand, are to go."""

    d: Array
    z: Array
    slacks: list[Array]
    multipliers: list[Array]

    def reach(self, point: Point) -> tuple[float, float]:
        """How far d and the slacks, and z and the multipliers, stay positive."""
        along = zip(point.parts, self.slacks, self.multipliers, strict=True)
        lengths = [part.reach(slack, multiplier) for part, slack, multiplier in along]
        first = min([farthest(point.d, self.d), *(length for length, _ in lengths)])
        return first, min([farthest(point.z, self.z), *(length for _, length in lengths)])


def interior_point(demands: Sequence[Demand], accuracy: float, say: Callable[[str], None] | None = None) -> Point:
    """A point with ``objective − bound ≤ accuracy · objective``, or the best one where round-off ends the way to it.

    Its d meets the demands to first order; what that lacks costs at most ``accuracy / 10`` of the objective to mend.
    """
    point = start(demands)
    best, least, waited = point, np.inf, 0
    for step in range(STEPS):
        gap, violation = point.objective - point.bound, point.violation
        error = max(gap, violation) / point.objective
        if say is not None:
            say(f"independent noise, step {step}: {point.objective:.6g}, gap {max(gap, 0.0) / point.objective:.0e}")
        # far from the optimum the bound may stand still for a while
        waited = 0 if error < 0.5 * least or error > 1e-2 else waited + 1
        if error < least:
            best, least = point, error
        enough = max(gap, 10.0 * violation) <= max(accuracy * point.objective, point.blur)
        if enough or waited == PATIENCE:
            break
        try:
            point = newton(point, demands)
        except np.linalg.LinAlgError:
            break
    return best


def start(demands: Sequence[Demand]) -> Point:
    """d is twice the row sums of |B|, so that Diag(d) − B is diagonally dominant; T is a multiple of R⁻¹."""
    rows = []
    for demand in demands:
        if demand.joint:
            needed = np.sum(np.abs(demand.root @ demand.root.T - demand.covariance), axis=1)
        else:
            size = np.abs(demand.root)
            needed = np.max(size * np.sum(size, axis=0), axis=1, initial=0.0)
        rows.append(needed + 1e-3 * np.diag(demand.covariance))
    d = np.asarray(2.0 * np.max(rows, axis=0))
    parts = tuple(multiplier_of(demand, d) for demand in demands)
    # a little less than any row finds too dear, so that the witness is admissible from the start
    scale = 0.8 / float(np.max(_total(part.felt(part.inverse) for part in parts)))
    priced = _total(part.price(scale * part.inverse) for part in parts)
    return Point(d, 1.0 - priced, parts, priced)


def newton(point: Point, demands: Sequence[Demand]) -> Point:
    """One predictor–corrector step."""
    d, z, parts = point.d, point.z, point.parts
    factor = cholesky_in_place(plus_diagonal(_total(part.curvature() for part in parts), z / d))
    felt = _total(part.felt(part.inverse) for part in parts)
    missing = _total(
        part.felt(part.between(part.multiplier, part.missing)) if np.any(part.missing) else np.zeros_like(d)
        for part in parts
    )

    def towards(goal: float, row_terms: Array, terms: Sequence[Array]) -> Direction:
        """The step to ``T R = goal``, ``z d = goal`` once ``terms`` (second order) are taken off."""
        off = _total(part.felt(term) for part, term in zip(parts, terms, strict=True))
        force = goal * (felt + 1.0 / d) - 1.0 - missing - off - row_terms
        move = solve(factor, force)
        slacks = [part.relief(move) + part.missing for part in parts]
        along = zip(parts, slacks, terms, strict=True)
        multipliers = [
            goal * part.inverse - part.multiplier - part.between(part.multiplier, slack) - term
            for part, slack, term in along
        ]
        return Direction(move, (goal - z * move) / d - z - row_terms, slacks, multipliers)

    ahead = towards(0.0, np.zeros_like(d), [np.zeros_like(part.slack) for part in parts])
    first, second = (min(1.0, length) for length in ahead.reach(point))
    left = float((d + first * ahead.d) @ (z + second * ahead.z)) + sum(
        float(np.sum((part.slack + first * slack) * (part.multiplier + second * multiplier)))
        for part, slack, multiplier in zip(parts, ahead.slacks, ahead.multipliers, strict=True)
    )
    slackness = point.slackness
    # if μ ran ahead of what is still wrong, the steps would be those of an active set that is not the right one
    centring = min(1.0, max((max(left, 0.0) / slackness) ** 3, 0.1 * point.wrong / slackness, 1e-6))
    count = len(d) + sum(len(part.slack) for part in parts)
    pairs = zip(parts, ahead.multipliers, ahead.slacks, strict=True)
    terms = [part.between(multiplier, slack) for part, multiplier, slack in pairs]
    final = towards(centring * slackness / count, ahead.d * ahead.z / d, terms)

    first, second = final.reach(point)
    caution = 0.9 + 0.09 * min(1.0, first, second)
    first, second = min(1.0, caution * first), min(1.0, caution * second)
    for _ in range(SHORTER):
        try:
            moved = _moved(point, demands, final, first, second)
            if moved.missing <= max(0.5, point.missing):
                return moved
        except np.linalg.LinAlgError:
            pass
        first, second = 0.8 * first, 0.8 * second
    return _moved(point, demands, final, first, second)


def _moved(point: Point, demands: Sequence[Demand], direction: Direction, first: float, second: float) -> Point:
    d = point.d + first * direction.d
    parts = tuple(
        multiplier_of(demand, d, part.slack + first * slack)
        for demand, part, slack in zip(demands, point.parts, direction.slacks, strict=True)
    )
    priced = _total(
        new.price(part.multiplier + second * multiplier)
        for new, part, multiplier in zip(parts, point.parts, direction.multipliers, strict=True)
    )
    return Point(d, point.z + second * direction.z, parts, priced)


def _total(arrays: Iterable[Array]) -> Array:
    return reduce(np.add, arrays)
