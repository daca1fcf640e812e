"""Finite sets of sensitive inputs that stand for a region.

The joint promise is made for finitely many sensitive inputs S₀. Few and well apart is best: a value that the others
determine almost fully adds little protection, but noise to ``Δ⁻¹`` and, under a smooth kernel, to rows far away.
"""

from __future__ import annotations

import numpy as np

from .inputs import Array
from .linalg.pivoted_cholesky import Pivots, pivoted_cholesky
from .prior import Prior

#: Up to this many candidates their whole correlation matrix is quicker to have than column after column.
AT_ONCE = 2048


def independent_subset(delta: Array, threshold: float) -> list[int]:
    """Which sensitive values to keep, in their own order, so that Δ restricted to them can be inverted.

    A value is left to the others when its tolerance given theirs is below ``threshold`` times its own.
    """
    scale = np.sqrt(np.diag(delta))
    normalised = delta / np.outer(scale, scale)
    pivots = pivoted_cholesky(np.ones(delta.shape[0]), lambda i: normalised[:, i], threshold, delta.shape[0])
    return sorted(int(i) for i in pivots.order)


def greedy_order(prior: Prior, candidates: Array, epsilon: float, limit: int) -> Pivots:
    """The certified greedy cover (MATH.md 3): always the candidate with the largest power function.

    ``largest[k]`` is max p²(s)/K(s,s) over the candidates once k of them are picked; the smallest ε
    is ``epsilon``. Any start of the order is the greedy cover for a larger ε.
    """
    scale = np.sqrt(prior.variance(candidates))
    if len(candidates) <= AT_ONCE:
        correlation = prior.covariance(candidates) / np.outer(scale, scale)
        return pivoted_cholesky(np.ones(len(scale)), lambda i: correlation[:, i], epsilon**2, limit)

    def column(i: int) -> Array:
        return np.asarray(prior.covariance(candidates, candidates[i : i + 1])[:, 0] / (scale * scale[i]))

    return pivoted_cholesky(np.ones(len(scale)), column, epsilon**2, limit)
