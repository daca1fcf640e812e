"""Rows that need no noise, found early: most of a large problem is usually of that kind.

Rows far from what is sensitive are published as they are. Whoever reads them has conditioned on them: if N are the rows
without noise and F the others, then ``Uᵀ M⁻¹ U = G_N + Ũᵀ (Q + Diag d_F)⁻¹ Ũ``, where ``G_N = U_Nᵀ A_NN⁻¹ U_N`` and Q
and Ũ are the covariances that are left given N. What may still be learnt is ``I − G_N``, so the demand becomes one of
the same kind on the rows F alone. Its witness extends to all rows by ``V_N = A_NN⁻¹ (U_N − A_NF V_F)``. Where no row of
that is longer than 1, N was well chosen; rows that are longer belong to F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy.linalg

from ..inputs import Array, Mask
from ..programs.demand import Demand, lower_bound
from .interior_point import interior_point
from .multipliers import Multiplier, solve_half

#: The gap at which it is clear enough which rows need noise.
ROUGH = 1e-2
ROUNDS = 12
#: A problem on more than this share of the rows is not worth the detour.
MOST = 0.6


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
    """d and a witness with a gap of at most ``accuracy``; d meets the demands to first order (interior_point.py)."""
    n = demands[0].covariance.shape[0]
    shares = np.max([np.sum(q.root**2, axis=1) / np.diag(q.covariance) for q in demands], axis=0)
    share, goal = 0.3, max(accuracy, ROUGH)
    noisy = shares > share
    for turn in range(ROUNDS):
        if np.sum(noisy) > MOST * n:
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
        # rows that hardly pay leave again, but not for ever: the rows must settle
        noisy = priced > 0.5 if goal > accuracy and turn < ROUNDS // 2 else noisy | (priced > 0.9)
        goal = accuracy if gap <= 2.0 * goal else goal
    point = interior_point(demands, accuracy, say)
    return point.d, point.witness()
