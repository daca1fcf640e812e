"""Independent noise: the least total variance ``Σ c_i d_i`` such that ``Σ = Diag(d)`` meets every demand.

Some systems can only add noise to each row on its own. The optimum has no closed form; an interior point method finds
it together with a witness (demand.py), and d is then raised by the few parts in 10¹⁰ that it takes to meet every demand
with room for round-off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import GuaranteeError, InputError
from ..inputs import Array
from ..solvers.interior_point import ROUND_OFF, interior_point
from ..solvers.sifting import sift
from .demand import Demand, lower_bound

#: From this many rows on it pays to look for those that need no noise first.
LARGE = 100


@dataclass(frozen=True, eq=False)
class DiagonalSolution:
    """Variances d that meet the demands, and a witness Y for each demand, which proves that ``Σ c_i d_i ≥ lower``."""

    variances: Array
    witness: tuple[Array, ...]
    lower: float


def diagonal_noise(
    demands: Sequence[Demand],
    weights: Array | None = None,
    accuracy: float = 1e-7,
    say: Callable[[str], None] | None = None,
) -> DiagonalSolution:
    """The d ≥ 0 of least ``Σ c_i d_i`` with ``Diag(d)`` meeting all ``demands``; ``weights`` is c > 0, or None for 1.

    Guarantee: every demand is met, whatever accuracy was reached; and ``Σ c_i d_i`` exceeds the least possible value by
    at most its difference to ``lower``, which is at most ``accuracy · Σ c_i d_i`` unless round-off is in the way.

    >>> import numpy as np
    >>> solution = diagonal_noise([Demand(np.eye(2), np.array([[2.0], [1.0]]), joint=True)])
    >>> solution.variances.round(4).tolist(), round(solution.lower, 4)
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
        return DiagonalSolution(np.zeros(n), nothing, 0.0)
    # in the units c d every row counts the same
    root = np.sqrt(costs)
    scaled = list(demands) if weights is None else [_in_units(demand, root) for demand in demands]
    if n < LARGE:
        point = interior_point(scaled, accuracy / 2, say)
        d, witness = point.d, point.witness()
    else:
        d, witness = sift(scaled, accuracy / 2, say)
    lower = lower_bound(scaled, witness, diagonal=True)
    variances = _feasible(demands, d / costs, costs, accuracy)
    return DiagonalSolution(variances, tuple(root[:, None] * part for part in witness), lower)


def _in_units(demand: Demand, root: Array) -> Demand:
    return Demand(root[:, None] * demand.covariance * root, root[:, None] * demand.root, demand.joint)


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
    room = 1.0 - 8.0 * ROUND_OFF * d.shape[0]
    extra, step, worst = 0.0, 1e-3 * accuracy, _worst(demands, d)
    while not worst <= room:
        extra += step
        if extra > limit:
            return None
        before, worst = worst, _worst(demands, d + extra * lift)
        # the ratio is convex in ε, so that the next raise has to be a little longer than this one makes believe
        needed = 1.2 * step * (worst - room) / (before - worst) if worst < before < np.inf else np.inf
        step = min(max(step, needed), 16.0 * step)
    return d + extra * lift
