"""A primal–dual interior point method for diagonal noise: few Newton steps, and the distance to the optimum at each.

What is learnt, ``G(d) = Uᵀ(A + Diag d)⁻¹U``, is convex in d, so ``min Σ d_i`` with ``d ≥ 0`` and ``G(d) ⪯ I`` is a
convex program. It has one multiplier T for each demand and one number z_i for each row:

    diag(Σ V T Vᵀ) + z = 1,    T (I − G(d)) = 0,    z_i d_i = 0,    with V = (A + Diag d)⁻¹ U.

The method puts μ in the place of 0 and lets it fall (Mehrotra's predictor and corrector, both from one Cholesky factor
of an n × n matrix). A demand has a slack ``R ≻ 0`` that ought to be ``I − G`` and need not be on the way, which is what
makes long steps possible. Moving d by δ changes it by ``Vᵀ Diag(δ) V``; a multiplier X is felt in row i as
``(V X Vᵀ)_ii``, and ``Λ = V T Vᵀ`` is the witness (demand.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from scipy.linalg import blas, lapack

from ..arrays import UNIT, Array
from ..linalg import least_by_products, one_thread
from .demand import Demand, inner, root_of, symmetric, times


class LearntMultiplier:
    """One demand at a point d: T prices ``G(d) ⪯ I``. It has the slack R, its inverse W, and ``missing = I − G − R``.

    R is ``slack``, or all that there is; T is not known before ``price``. With one exception (``curvature``) the
    formulas for a joint demand and for a pointwise one, where R and T are vectors, are the same.
    """

    def __init__(self, demand: Demand, d: Array, slack: Array | None = None) -> None:
        self.joint = demand.joint and demand.root.shape[1] > 0
        self.lower = cholesky_in_place(plus_diagonal(demand.covariance.copy(), d))
        self.V = solve(self.lower, demand.root)
        self.learnt = symmetric(inner(demand.root, self.V, self.joint))
        one = np.eye(len(self.learnt)) if self.joint else np.ones(len(self.learnt))
        self.slack = one - self.learnt if slack is None else slack
        self.missing = one - self.learnt - self.slack
        self.slack_root = root_of(self.slack)
        self.inverse = solve(self.slack_root, one) if self.joint else 1.0 / self.slack

    def price(self, multiplier: Array) -> Array:
        """Sets T; returns the diagonal of Λ = V T Vᵀ."""
        self.multiplier = symmetric(multiplier)
        self.root = root_of(self.multiplier)
        return np.asarray(np.sum(self.witness() ** 2, axis=1)) if self.joint else self.felt(multiplier)

    def curvature(self) -> Array:
        """``2 Λ∘M⁻¹ + Λ∘(V W Vᵀ)``, the second derivative of the price; only its upper triangle counts.

        Where only single values are priced the second term is ``Σ_s t_s w_s (v_s∘v_s)(v_s∘v_s)ᵀ``.
        """
        priced = self.witness()
        witness, twice = priced @ priced.T, 2.0 * inverse_of(self.lower)
        if self.joint:
            sharp = solve_half(self.slack_root, self.V.T)
            return np.asarray(witness * (twice + sharp.T @ sharp))
        sharp = self.V**2 * np.sqrt(self.multiplier * self.inverse)
        return np.asarray(witness * twice + sharp @ sharp.T)

    def felt(self, X: Array) -> Array:
        """The diagonal of V X Vᵀ."""
        return np.asarray(np.einsum("ij,ij->i", self.V @ X, self.V) if self.joint else self.V**2 @ X)

    def relief(self, step: Array) -> Array:
        """``Vᵀ Diag(step) V``: how much less is learnt, to first order."""
        return np.asarray((self.V.T * step) @ self.V if self.joint else step @ self.V**2)

    def between(self, *pairs: tuple[Array, Array]) -> Array:
        """The symmetric part of X Y W, or of a sum of such products; Y is a change of R."""
        return symmetric(times(_total(times(X, Y) for X, Y in pairs), self.inverse))

    def felt_between(self, X: Array, Y: Array) -> Array:
        """How that is felt in each row."""
        return self.felt(self.between((X, Y)))

    def left(self, first: float, change: Array, second: float, answer: Array) -> float:
        """⟨R, T⟩ after steps of these lengths."""
        return float(np.sum((self.slack + first * change) * (self.multiplier + second * answer)))

    def moved(self, demand: Demand, d: Array, step: Array) -> LearntMultiplier:
        """The same at d, with ``step`` more slack."""
        return LearntMultiplier(demand, d, self.slack + step)

    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        """How far R can go along ``change``, and T along ``answer``."""
        return longest(self.slack, self.slack_root, change), longest(self.multiplier, self.root, answer)

    def shortfall(self) -> float:
        """``⟨Diag(d) − B, Λ⟩``: what the bound loses because not everything that may be learnt is."""
        return float(np.sum((self.learnt - times(self.learnt, self.learnt)) * self.multiplier))

    @property
    def size(self) -> float:
        """⟨A + Diag d, Λ⟩, by which round-off is measured."""
        return float(np.sum(self.learnt * self.multiplier))

    def witness(self) -> Array:
        """Y with Λ = Y Yᵀ; for a pointwise demand one column for each of U."""
        return times(self.V, self.root)


class WholeMultiplier:
    """Λ ⪰ 0 itself prices ``R = Diag(d) − B ⪰ 0``, n × n: cheaper where γ is not small against n.

    The same formulas as in ``LearntMultiplier`` with V = I. R is linear in d, so nothing is ever missing, and only its
    diagonal changes: such a change is a vector here. ``needed`` is −B, if it is at hand.
    """

    def __init__(self, demand: Demand, d: Array, needed: Array | None = None) -> None:
        self.demand, self.d = demand, d
        self.needed = demand.covariance - demand.root @ demand.root.T if needed is None else needed
        self.slack = plus_diagonal(self.needed.copy(), d)
        self.missing = np.zeros_like(d)
        self.slack_root = cholesky_in_place(self.slack.copy())
        self.inverse = inverse_of(self.slack_root)
        np.copyto(self.inverse, self.inverse.T, where=np.tri(len(d), k=-1, dtype=np.bool_))

    def price(self, multiplier: Array) -> Array:
        self.multiplier = multiplier
        self._root = cholesky_in_place(multiplier.copy())
        return np.diag(self.multiplier).copy()

    def curvature(self) -> Array:
        return self.multiplier * self.inverse

    def felt(self, X: Array) -> Array:
        return np.diag(X).copy()

    def relief(self, step: Array) -> Array:
        return step

    def between(self, *pairs: tuple[Array, Array]) -> Array:
        return symmetric(_total(X * y for X, y in pairs) @ self.inverse)

    def felt_between(self, X: Array, Y: Array) -> Array:
        return np.asarray(np.einsum("ij,j,ij->i", X, Y, self.inverse))

    def left(self, first: float, change: Array, second: float, answer: Array) -> float:
        at_diagonal = np.diag(self.multiplier) + second * np.diag(answer)
        now, then = np.vdot(self.slack, self.multiplier), np.vdot(self.slack, answer)
        return float(now + second * then + first * (change @ at_diagonal))

    def moved(self, demand: Demand, d: Array, step: Array) -> WholeMultiplier:
        return WholeMultiplier(demand, d, self.needed)

    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        return longest(self.slack, self.slack_root, change), longest(self.multiplier, self._root, answer)

    def shortfall(self) -> float:
        return float(np.vdot(self.slack, self.multiplier))

    @property
    def size(self) -> float:
        return float(np.vdot(self.demand.covariance, self.multiplier) + self.d @ np.diag(self.multiplier))

    @property
    def root(self) -> Array:
        """What V is multiplied by to give the witness: at the optimum R Λ = 0, so that Λ = V Uᵀ Λ."""
        return np.asarray(self.demand.root.T @ self.witness())

    def witness(self) -> Array:
        return np.tril(self._root)


Multiplier = LearntMultiplier | WholeMultiplier


def multiplier_of(demand: Demand, d: Array) -> Multiplier:
    """The multiplier that suits ``demand``."""
    rows, columns = demand.root.shape
    whole = demand.joint and 2 * columns > rows
    return WholeMultiplier(demand, d) if whole else LearntMultiplier(demand, d)


def plus_diagonal(matrix: Array, d: Array) -> Array:
    """``matrix`` itself, after d has been added to its diagonal."""
    np.einsum("ii->i", matrix)[...] += d
    return matrix


def cholesky_in_place(matrix: Array) -> Array:
    """The lower Cholesky factor of a symmetric matrix of which only the upper triangle counts; it is overwritten."""
    factor, failed = lapack.dpotrf(np.ascontiguousarray(matrix).T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"the leading minor of order {failed} is not positive")
    return np.asarray(factor)


def inverse_of(lower: Array) -> Array:
    """``(lower lowerᵀ)⁻¹``; only its upper triangle counts."""
    return np.asarray(lapack.dpotri(lower, lower=1)[0].T)


def solve(lower: Array, block: Array) -> Array:
    """``(lower lowerᵀ)⁻¹ block``; LAPACK is called directly here because SciPy's own checks take longer than it."""
    return np.asarray(lapack.dpotrs(lower, block, lower=1)[0])


def solve_half(lower: Array, block: Array) -> Array:
    """``lower⁻¹ block``."""
    return np.asarray(lapack.dtrtrs(lower, block, lower=1)[0])


#: Up to this size an eigenvalue is found as quickly as a few steps of Lanczos take, and to the last digit.
ROWS_FOR_EIGENVALUES = 200
LANCZOS_STEPS = 12


def farthest(x: Array, step: Array) -> float:
    """The largest α with ``x + α step ≥ 0``, for x > 0."""
    steepest = float(np.max(-step / x, initial=0.0))
    return 1.0 / steepest if steepest > 0.0 else np.inf


def longest(X: Array, root: Array, step: Array) -> float:
    """The largest α with ``X + α step`` positive, for X = R Rᵀ, R = ``root``; where X is large, about that.

    A vector ``step`` of a matrix X is a change of its diagonal.
    """
    if X.ndim == 1:
        return farthest(X, step)
    if len(X) <= ROWS_FOR_EIGENVALUES:
        whole = np.diag(step) if step.ndim == 1 else step
        least = float(np.linalg.eigvalsh(solve_half(root, solve_half(root, whole).T))[0])
    else:
        least = least_eigenvalue(root, step)
    return -1.0 / least if least < 0.0 else np.inf


def least_eigenvalue(root: Array, step: Array) -> float:
    """About the least eigenvalue of ``R⁻¹ step R⁻ᵀ``, rather less than more."""

    def product(vector: torch.Tensor) -> torch.Tensor:
        image = blas.dtrsv(root, vector.numpy(), lower=1, trans=1)
        return torch.from_numpy(blas.dtrsv(root, step * image if step.ndim == 1 else step @ image, lower=1))

    return least_by_products(product, torch.from_numpy(root[0]), LANCZOS_STEPS)


#: Steps at most, steps without a better bound at most, and how often a step is shortened when too much would be learnt.
MOST_STEPS, MOST_STEPS_WITHOUT_GAIN, MOST_SHORTENINGS = 80, 8, 5


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
        total = 0.0
        for part in self.parts:
            # one unit of slack less in every direction costs the trace of T
            cost = np.trace(part.multiplier) if part.multiplier.ndim == 2 else np.sum(part.multiplier)
            total += float(np.max(np.abs(part.missing), initial=0.0) * cost)
        return total

    @property
    def missing(self) -> float:
        """The largest number in any ``I − G(d) − R``."""
        return max(float(np.max(np.abs(part.missing), initial=0.0)) for part in self.parts)

    @property
    def blur(self) -> float:
        """The round-off in ``bound``, a difference of ``⟨U Uᵀ, Λ⟩`` and ``⟨A, Λ⟩``."""
        return UNIT * sum(part.size for part in self.parts)

    @property
    def slackness(self) -> float:
        """``Σ z_i d_i + Σ ⟨R, T⟩``, which is 0 at the optimum."""
        return float(self.d @ self.z) + sum(float(np.vdot(part.slack, part.multiplier)) for part in self.parts)

    @property
    def wrong(self) -> float:
        """How far the other equations are from holding, in the same units."""
        rows = float(self.d @ np.abs(1.0 - self.priced - self.z))
        learnt = (part for part in self.parts if isinstance(part, LearntMultiplier))
        return rows + sum(abs(float(np.sum(part.missing * part.multiplier))) for part in learnt)

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


#: Up to this many rows one thread is faster: NumPy, SciPy and PyTorch have threads of their own, which wait busily.
ROWS_FOR_ONE_THREAD = 1500


def interior_point(demands: Sequence[Demand], accuracy: float, say: Callable[[str], None] | None = None) -> Point:
    """A point with ``objective − bound ≤ accuracy · objective``, or the best one where round-off ends the way to it.

    Its d meets the demands to first order; what that lacks costs at most ``accuracy / 10`` of the objective to mend.
    """
    with one_thread(when=len(demands[0].covariance) <= ROWS_FOR_ONE_THREAD):
        return _interior_point(demands, accuracy, say)


def _interior_point(demands: Sequence[Demand], accuracy: float, say: Callable[[str], None] | None) -> Point:
    point = start(demands)
    best, least, waited = point, np.inf, 0
    for step in range(MOST_STEPS):
        gap, violation = point.objective - point.bound, point.violation
        error = max(gap, violation) / point.objective
        if say is not None:
            say(f"independent noise, step {step}: {point.objective:.6g}, gap {max(gap, 0.0) / point.objective:.0e}")
        # far from the optimum the bound may stand still for a while
        waited = 0 if error < 0.5 * least or error > 1e-2 else waited + 1
        if error < least:
            best, least = point, error
        enough = max(gap, 10.0 * violation) <= max(accuracy * point.objective, point.blur)
        if enough or waited == MOST_STEPS_WITHOUT_GAIN:
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
    # the prices in every row stay below its cost 1, so that the witness is admissible from the start
    scale = 0.8 / float(np.max(_total(part.felt(part.inverse) for part in parts)))
    priced = _total(part.price(scale * part.inverse) for part in parts)
    return Point(d, 1.0 - priced, parts, priced)


def newton(point: Point, demands: Sequence[Demand]) -> Point:
    """One predictor–corrector step."""
    d, z, parts = point.d, point.z, point.parts
    factor = cholesky_in_place(plus_diagonal(_total(part.curvature() for part in parts), z / d))
    felt = _total(part.felt(part.inverse) for part in parts)
    missing = _total(part.felt_between(part.multiplier, part.missing) for part in parts)

    def towards(goal: float, ahead: Direction | None) -> Direction:
        """The step to ``T R = goal``, ``z d = goal``, with the terms of second order that a step ``ahead`` shows."""
        force = goal * (felt + 1.0 / d) - 1.0 - missing
        row_terms = np.zeros_like(d) if ahead is None else ahead.d * ahead.z / d
        terms = [] if ahead is None else list(zip(ahead.multipliers, ahead.slacks, strict=True))
        for part, term in zip(parts, terms, strict=False):
            force -= part.felt_between(*term)
        move = solve(factor, force - row_terms)
        slacks = [part.relief(move) + part.missing for part in parts]
        multipliers = [
            goal * part.inverse - part.multiplier - part.between((part.multiplier, slack), *terms[place : place + 1])
            for place, (part, slack) in enumerate(zip(parts, slacks, strict=True))
        ]
        return Direction(move, (goal - z * move) / d - z - row_terms, slacks, multipliers)

    ahead = towards(0.0, None)
    first, second = (min(1.0, length) for length in ahead.reach(point))
    left = float((d + first * ahead.d) @ (z + second * ahead.z)) + sum(
        part.left(first, slack, second, multiplier)
        for part, slack, multiplier in zip(parts, ahead.slacks, ahead.multipliers, strict=True)
    )
    slackness = point.slackness
    # if μ ran ahead of what is still wrong, the steps would be those of an active set that is not the right one
    centring = min(1.0, max((max(left, 0.0) / slackness) ** 3, 0.1 * point.wrong / slackness, 1e-6))
    count = len(d) + sum(len(part.slack) for part in parts)
    final = towards(centring * slackness / count, ahead)

    first, second = final.reach(point)
    caution = 0.9 + 0.09 * min(1.0, first, second)
    first, second = min(1.0, caution * first), min(1.0, caution * second)
    for _ in range(MOST_SHORTENINGS):
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
        part.moved(demand, d, first * slack)
        for demand, part, slack in zip(demands, point.parts, direction.slacks, strict=True)
    )
    priced = _total(
        new.price(part.multiplier + second * multiplier)
        for new, part, multiplier in zip(parts, point.parts, direction.multipliers, strict=True)
    )
    return Point(d, point.z + second * direction.z, parts, priced)


def _total(arrays: Iterable[Array]) -> Array:
    return reduce(np.add, arrays)
