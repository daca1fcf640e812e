"""D-optimal design by an interior point method: a dozen Newton steps, whatever the columns look like.

max log det M(λ) − Σ λ_i over λ ≥ 0 has the optimality conditions ω_i(λ) + z_i = 1, λ_i z_i = 0, z ≥ 0, and there
Σ λ_i = Σ λ_i ω_i = r by itself. The derivative of ω is −(w_iᵀ M⁻¹ w_j)², so that each step solves one m × m system.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from ..inputs import Array

_MOST_STEPS = 60
_TO_THE_BORDER = 0.99


def interior_design(W: Array, accuracy: float) -> tuple[Array, int]:
    """The weights λ, Σ λ_i = r, of smallest gap ``r log max_i ω_i`` that were met, and the number of steps.

    Mehrotra's predictor and corrector; it stops at ``accuracy``, or where round-off ends the progress.
    """
    r, m = W.shape
    # with W Wᵀ = I these weights have ω_i = ‖w_i‖² / max ‖w‖² ≤ 1
    weights = np.full(m, float(np.max(np.einsum("ij,ij->j", W, W))))
    slack = np.full(m, 0.5)
    best, least = np.full(m, r / m), math.inf
    for step in range(_MOST_STEPS):
        try:
            white = np.linalg.solve(np.linalg.cholesky((W * weights) @ W.T), W)
            cosines = white.T @ white
            leverage = np.diag(cosines)
            gap = r * math.log(max(float(leverage.max() * weights.sum()) / r, 1.0))
            if gap < least:
                best, least = r * weights / weights.sum(), gap
            if gap <= accuracy:
                return best, step
            curvature = cosines**2
            system = scipy.linalg.cho_factor(curvature + np.diag(slack / weights), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return best, step
        weights, slack = _newton(weights, slack, 1.0 - leverage - slack, curvature, system)
    return best, _MOST_STEPS


def _newton(
    weights: Array, slack: Array, residual: Array, curvature: Array, system: tuple[Array, bool]
) -> tuple[Array, Array]:
    """One step for ``1 − ω(λ) − z = 0``, λ z = μ, first for μ = 0, then for the μ that this one makes likely."""

    def direction(products: Array) -> tuple[Array, Array]:
        change = scipy.linalg.cho_solve(system, products / weights - slack - residual, check_finite=False)
        return change, residual + curvature @ change

    weight_change, slack_change = direction(np.zeros_like(weights))
    reach = min(_reach(weights, weight_change), _reach(slack, slack_change))
    now, then = float(weights @ slack), float((weights + reach * weight_change) @ (slack + reach * slack_change))
    weight_change, slack_change = direction((then / now) ** 3 * now / weights.shape[0] - weight_change * slack_change)
    reach = min(_reach(weights, weight_change), _reach(slack, slack_change))
    return weights + reach * weight_change, slack + reach * slack_change


def _reach(x: Array, dx: Array) -> float:
    """The longest step, at most 1, that keeps x positive."""
    shrinking = dx < 0.0
    return min(1.0, _TO_THE_BORDER * float(np.min(-x[shrinking] / dx[shrinking]))) if np.any(shrinking) else 1.0
