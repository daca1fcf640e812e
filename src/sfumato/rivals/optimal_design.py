"""D-optimal design: the weights of some vectors under which the information they carry together is largest.

For the columns w_i of an r × m matrix W of rank r, write M(λ) = Σ λ_i w_i w_iᵀ and ω_i = w_iᵀ M(λ)⁻¹ w_i. The
design λ ≥ 0 with Σ λ_i = r of largest log det M(λ) is the one with ω_i ≤ 1 for all i (Kiefer and Wolfowitz 1960), and
any design is short of it by at most ``r log max_i ω_i``: that is the gap.
"""

from __future__ import annotations

import math

import numpy as np

from ..inputs import Array
from .optimal_design_newton import interior_design

#: Exchanges tried, besides one for each column, before the gap is closed with Newton steps instead.
_PATIENCE = 200
#: The Newton steps need a matrix with this many rows at most (512 MiB).
_MOST_COLUMNS = 8192
#: Rank-one updates lose digits; after so many everything is computed afresh.
_REFRESH = 200


def optimal_design(W: Array, accuracy: float) -> tuple[Array, int]:
    """Weights λ ≥ 0 with Σ λ_i = r whose gap is at most ``accuracy``, and how many steps it took.

    ``W`` has r ≥ 1 orthonormal rows. Few columns are settled by Wolfe–Atwood exchanges; where those creep, as they do
    on columns that lie close together, an interior point method takes over. Beyond 8192 columns the exchanges
    go on alone, 100 for each column, and the gap may then be larger.

    >>> weights, _ = optimal_design(np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]), 1e-9)
    >>> weights.round(6).tolist()
    [0.0, 1.0, 1.0]
    """
    r, m = W.shape
    if r == 1:
        best = np.zeros(m)
        best[np.argmax(np.abs(W[0]))] = 1.0
        return best, 0
    if m > _MOST_COLUMNS:
        return _exchange(W, accuracy, 100 * m)
    weights, steps = _exchange(W, accuracy, m + _PATIENCE)
    if design_gap(W, weights) <= accuracy:
        return weights, steps
    finished, newton_steps = interior_design(W, accuracy)
    best = min(weights, finished, key=lambda tried: design_gap(W, tried))
    return best, steps + newton_steps


def leverages(W: Array, weights: Array) -> Array:
    """ω_i = w_iᵀ M(λ)⁻¹ w_i."""
    white = np.linalg.solve(np.linalg.cholesky((W * weights) @ W.T), W)
    return np.asarray(np.einsum("ij,ij->j", white, white))


def design_gap(W: Array, weights: Array) -> float:
    """``r log max_i ω_i`` for weights that add up to r: how far log det M(λ) can be from the largest."""
    return int(W.shape[0]) * math.log(max(float(leverages(W, weights).max()), 1.0))


def _exchange(W: Array, accuracy: float, most: int) -> tuple[Array, int]:
    """Wolfe–Atwood steps: move weight to the column of largest ω, or away from the one of least ω.

    Each step is the exact maximum on its line, u ← (1 − τ) u + τ e_k with Σ u = 1 (Todd and Yıldırım 2007).
    """
    r, m = W.shape
    weight = np.full(m, 1.0 / m)
    inverse, leverage = _afresh(W, weight)
    for step in range(most):
        most_wanted = int(np.argmax(leverage))
        if r * math.log(leverage[most_wanted] / r) <= 0.5 * accuracy:
            return r * weight / weight.sum(), step
        least_wanted = int(np.argmin(np.where(weight > 0.0, leverage, np.inf)))
        towards = leverage[most_wanted] - r >= r - leverage[least_wanted]
        k = most_wanted if towards else least_wanted
        # away from a column one can go until its weight is used up
        end = -weight[k] / (1.0 - weight[k])
        share = (leverage[k] / r - 1.0) / (leverage[k] - 1.0) if leverage[k] > 1.0 else end
        empties = share <= end
        share = max(share, end)
        ratio = share / (1.0 - share)
        v = inverse @ W[:, k]
        shrink = ratio / (1.0 + ratio * leverage[k])
        inverse = (inverse - shrink * np.outer(v, v)) / (1.0 - share)
        leverage = (leverage - shrink * (v @ W) ** 2) / (1.0 - share)
        weight *= 1.0 - share
        weight[k] = 0.0 if empties else weight[k] + share
        if step % _REFRESH == _REFRESH - 1:
            weight /= weight.sum()
            inverse, leverage = _afresh(W, weight)
    return r * weight / weight.sum(), most


def _afresh(W: Array, weight: Array) -> tuple[Array, Array]:
    inverse = np.asarray(np.linalg.inv((W * weight) @ W.T), dtype=np.float64)
    return inverse, np.asarray(np.einsum("ij,ij->j", W, inverse @ W))
