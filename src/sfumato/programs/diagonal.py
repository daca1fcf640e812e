"""Independent noise: the least total variance ``Σ c_i d_i`` such that ``Σ = Diag(d)`` meets every demand.

Some systems can only add noise to each row on its own. The optimum has no closed form; an interior point method finds
it together with a witness (demand.py), and d is then raised by the few parts in 10¹⁰ that it takes to meet every demand
with room for round-off.

Rows far from what is sensitive are usually published as they are, and most of a large problem is of that kind. Whoever
reads them has conditioned on them: if N are the rows without noise and F the others, then
``Uᵀ M⁻¹ U = G_N + Ũᵀ (Q + Diag d_F)⁻¹ Ũ``, where ``G_N = U_Nᵀ A_NN⁻¹ U_N`` and Q and Ũ are the covariances that are
left given N. What may still be learnt is ``I − G_N``, so the demand becomes one of the same kind on the rows F alone.
Its witness extends to all rows by ``V_N = A_NN⁻¹ (U_N − A_NF V_F)``. Where no row of that is longer than 1, N was well
chosen; rows that are longer belong to F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array, Mask
from ..errors import GuaranteeError, InputError
from .demand import Demand, lower_bound
from .diagonal_solver import Multiplier, interior_point, solve_half

#: From this many rows on it pays to look for those that need no noise first.
ROWS_WORTH_SIFTING = 100
#: The gap, as a share, at which it is clear enough which rows need noise.
SIFTING_GAP = 1e-2
#: Rows are sorted into N and F at most this often.
MOST_SIFTINGS = 12
#: A problem on more than this share of the rows is not worth the detour.
MOST_SIFTED_SHARE = 0.6
#: Room for round-off in the check that a demand is met, in units of n · 2.2e-16 (docs/roundoff.md).
CHECKED = 8.0


class Conditioned:
    """``demand`` once the rows outside ``noisy`` are published as they are: ``left`` is the demand on the rows inside.

    Raises ``LinAlgError`` where those rows alone already tell too much.
    """

    def __init__(self, demand: Demand, noisy: Mask) -> None:
        self.noisy, self.joint = noisy, demand.joint and demand.root.shape[1] > 0
        A, U, bare = demand.covariance, demand.root, ~noisy
        self.lower = scipy.linalg.cholesky(A[np.ix_(bare, bare)], lower=True, overwrite_a=True, check_finite=False)
        self.cross, self.seen = solve_half(self.lower, A[np.ix_(bare, noisy)]), solve_half(self.lower, U[bare])
        covariance, root = A[np.ix_(noisy, noisy)] - self.cross.T @ self.cross, U[noisy] - self.cross.T @ self.seen
        if self.joint:
            self.rest = scipy.linalg.cholesky(np.eye(U.shape[1]) - self.seen.T @ self.seen, lower=True)
            root = solve_half(self.rest, root.T).T
        else:
            rest = 1.0 - np.sum(self.seen**2, axis=0)
            if not np.all(rest > 0.0):
                raise np.linalg.LinAlgError("the rows without noise tell too much")
            self.rest = np.sqrt(rest)
            root = root / self.rest
        self.left = Demand(covariance, np.ascontiguousarray(root), demand.joint)

    def witness(self, part: Multiplier) -> Array:
        """The witness of the whole demand that goes with ``part``, the multiplier of ``left``."""
        inside = part.witness()
        if self.joint:
            seen = self.seen @ scipy.linalg.solve_triangular(self.rest, part.root, lower=True, trans=1)
        else:
            seen = self.seen * (part.root / self.rest)
        whole = np.empty((len(self.noisy), inside.shape[1]))
        whole[self.noisy] = inside
        whole[~self.noisy] = scipy.linalg.solve_triangular(self.lower, seen - self.cross @ inside, lower=True, trans=1)
        return whole


def sift(
    demands: Sequence[Demand], accuracy: float, say: Callable[[str], None] | None = None
) -> tuple[Array, tuple[Array, ...]]:
    """d and a witness with a gap of at most ``accuracy``; d meets the demands to first order (diagonal_solver.py)."""
    n = demands[0].covariance.shape[0]
    shares = np.max([np.sum(q.root**2, axis=1) / np.diag(q.covariance) for q in demands], axis=0)
    share, goal = 0.3, max(accuracy, SIFTING_GAP)
    noisy = shares > share
    for turn in range(MOST_SIFTINGS):
        if np.sum(noisy) > MOST_SIFTED_SHARE * n:
            break
        try:
            rest = [Conditioned(demand, noisy) for demand in demands]
            point = interior_point([each.left for each in rest], goal, say)
        except np.linalg.LinAlgError:
            share /= 2
            noisy = noisy | (shares > share)
            continue
        witness = tuple(each.witness(part) for each, part in zip(rest, point.parts, strict=True))
        gap = 1.0 - lower_bound(demands, witness, diagonal=True) / point.objective
        if gap <= accuracy:
            d = np.zeros(n)
            d[noisy] = point.d
            return d, witness
        priced = np.sum(np.hstack(witness) ** 2, axis=1)
        # rows that hardly matter leave again; only a few times, so that the choice of rows comes to an end
        noisy = priced > 0.5 if goal > accuracy and turn < MOST_SIFTINGS // 2 else noisy | (priced > 0.9)
        goal = accuracy if gap <= 2.0 * goal else goal
    point = interior_point(demands, accuracy, say)
    return point.d, point.witness()


@dataclass(frozen=True, eq=False)
class DiagonalSolution:
    """Variances d that meet the demands, and a witness Y for each demand: together Σ (Y Yᵀ)_ii ≤ c_i in each row."""

    variances: Array
    witness: tuple[Array, ...]


def diagonal_noise(
    demands: Sequence[Demand],
    weights: Array | None = None,
    accuracy: float = 1e-7,
    say: Callable[[str], None] | None = None,
) -> DiagonalSolution:
    """The d ≥ 0 of least ``Σ c_i d_i`` with ``Diag(d)`` meeting all ``demands``; ``weights`` is c > 0, or None for 1.

    Guarantee: every demand is met, whatever accuracy was reached; and ``Σ c_i d_i`` exceeds the least possible value by
    at most what the witness proves, which is at most ``accuracy · Σ c_i d_i`` unless round-off is in the way.

    >>> import numpy as np
    >>> demand = Demand(np.eye(2), np.array([[2.0], [1.0]]), joint=True)
    >>> solution = diagonal_noise([demand])
    >>> solution.variances.round(4).tolist(), round(lower_bound([demand], solution.witness, diagonal=True), 4)
    ([5.0, 2.0], 7.0)
    """
    if not demands:
        raise InputError("demands is empty: without a demand no noise is needed, and the number of rows is not known")
    n = demands[0].covariance.shape[0]
    costs = np.ones(n) if weights is None else weights
    if costs.shape != (n,) or not np.all((costs > 0.0) & np.isfinite(costs)):
        raise InputError(f"weights must be {n} positive numbers, one for each row")
    if _worst(demands, np.zeros(n)) <= 1.0:
        nothing = tuple(np.zeros((n, 0 if demand.joint else demand.root.shape[1])) for demand in demands)
        return DiagonalSolution(np.zeros(n), nothing)
    # in the units c d every row counts the same
    root = np.sqrt(costs)
    scaled = [Demand(root[:, None] * q.covariance * root, root[:, None] * q.root, q.joint) for q in demands]
    if n < ROWS_WORTH_SIFTING:
        point = interior_point(scaled, accuracy / 2, say)
        d, witness = point.d, point.witness()
    else:
        d, witness = sift(scaled, accuracy / 2, say)
    variances = _feasible(demands, d / costs, costs, accuracy)
    return DiagonalSolution(variances, tuple(root[:, None] * part for part in witness))


def _worst(demands: Sequence[Demand], d: Array) -> float:
    """The largest ratio, infinite where A + Diag(d) is not positive definite in float64."""
    try:
        return max(demand.ratio(np.diag(d)) for demand in demands)
    except np.linalg.LinAlgError:
        return np.inf


def _feasible(demands: Sequence[Demand], d: Array, costs: Array, accuracy: float) -> Array:
    """d raised until it meets the demands, with negligible rows set to 0 where that costs next to nothing."""
    typical = float(np.mean(costs * d)) / costs
    spare = np.where(d <= accuracy * typical, 0.0, d)
    tidy = _raised(demands, spare, typical, accuracy, limit=accuracy)
    if tidy is not None and costs @ tidy <= (1.0 + accuracy / 4) * (costs @ d):
        return tidy
    safe = _raised(demands, d, typical, accuracy, limit=1e6)
    if safe is None:
        raise GuaranteeError("no diagonal noise was found that meets the demands: is A positive definite and finite?")
    return safe


def _raised(demands: Sequence[Demand], d: Array, typical: Array, accuracy: float, limit: float) -> Array | None:
    """The first ``d + ε · lift``, ε ≤ ``limit``, that meets the demands with room for round-off; lift is nearly d."""
    lift = np.where(d > 0.0, 0.99 * d + 0.01 * typical, 0.0)
    room = 1.0 - CHECKED * UNIT * d.shape[0]
    extra, step, worst = 0.0, 1e-3 * accuracy, _worst(demands, d)
    while not worst <= room:
        extra += step
        if extra > limit:
            return None
        before, worst = worst, _worst(demands, d + extra * lift)
        # the ratio is convex in ε, so a linear estimate of the raise is a little too short
        needed = 1.2 * step * (worst - room) / (before - worst) if worst < before < np.inf else np.inf
        step = min(max(step, needed), 16.0 * step)
    return d + extra * lift
