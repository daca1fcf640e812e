"""The smallest ellipsoid about 0 that holds given vectors: the shape of the noise of DP-Cloaking.

Among all M ⪰ 0 with ``c_iᵀ M⁺ c_i ≤ 1`` for the columns c_1 … c_m of C, the one of least log det on their span is
``M = Σ λ_i c_i c_iᵀ``, where λ is the D-optimal design (Titterington 1975). It does not depend on the units of the
rows of C. Independent columns have λ_i = 1, M = C Cᵀ: nothing is left to search for.

For the columns w_i of an r × m matrix W of rank r, write M(λ) = Σ λ_i w_i w_iᵀ and ω_i = w_iᵀ M(λ)⁻¹ w_i. The design
λ ≥ 0 with Σ λ_i = r of largest log det M(λ) is the one with ω_i ≤ 1 for all i (Kiefer and Wolfowitz 1960), and any
design is short of it by at most ``r log max_i ω_i``: that is the gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array
from ..errors import InputError

#: Exchanges tried, besides one for each column, before the gap is closed with Newton steps instead.
_PATIENCE = 200
#: The Newton steps need a matrix with this many rows at most (512 MiB).
_MOST_COLUMNS = 8192
#: Rank-one updates lose digits; after this many everything is computed again.
_REFRESH = 200
#: Newton steps at most, and the share of the way to the border that each may go.
_MOST_STEPS, _TO_THE_BORDER = 60, 0.99


def interior_design(W: Array, accuracy: float) -> tuple[Array, int]:
    """The weights λ, Σ λ_i = r, of smallest gap that were met, and the number of steps: about a dozen for any columns.

    max log det M(λ) − Σ λ_i over λ ≥ 0 has the optimality conditions ω_i(λ) + z_i = 1, λ_i z_i = 0, z ≥ 0, and there
    Σ λ_i = Σ λ_i ω_i = r by itself. The derivative of ω is −(w_iᵀ M⁻¹ w_j)², so that each step of Mehrotra's predictor
    and corrector solves one m × m system. It stops at ``accuracy``, or where round-off ends the progress.
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


def optimal_design(W: Array, accuracy: float) -> tuple[Array, int]:
    """Weights λ ≥ 0 with Σ λ_i = r whose gap is at most ``accuracy``, and how many steps it took.

    ``W`` has r ≥ 1 orthonormal rows. Few columns are settled by Wolfe–Atwood exchanges; where those are slow, as
    they are on columns that lie close together, an interior point method takes over. Beyond 8192 columns the exchanges
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


def largest_leverage(W: Array, weights: Array) -> float:
    """max_i ω_i."""
    white = np.linalg.solve(np.linalg.cholesky((W * weights) @ W.T), W)
    return float(np.einsum("ij,ij->j", white, white).max())


def design_gap(W: Array, weights: Array) -> float:
    """``r log max_i ω_i`` for weights that add up to r: how far log det M(λ) can be from the largest."""
    return int(W.shape[0]) * math.log(max(largest_leverage(W, weights), 1.0))


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


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """``M = F Fᵀ + shift · I``, which holds the columns that it was made for.

    ``weights`` is λ; ``log_det`` is that of F Fᵀ on the span of the columns (of dimension ``rank``), and is above
    the least possible by at most ``gap``. ``shift`` is 0 where it can be; otherwise it covers what round-off leaves of
    the columns outside that span, which would otherwise go without noise. As a standard deviation it is about 10⁻⁵ of
    the largest entry of the columns.
    """

    factor: Array
    shift: float
    weights: Array
    log_det: float
    gap: float
    iterations: int

    @property
    def rank(self) -> int:
        return int(self.factor.shape[1])

    def matrix(self) -> Array:
        """M."""
        return np.asarray(self.factor @ self.factor.T + self.shift * np.eye(self.factor.shape[0]))

    def reach(self, columns: Any) -> float:
        """max_i c_iᵀ M⁺ c_i: at most 1 where every column lies inside, infinite where one leaves the span."""
        C = as_columns(columns)
        size = float(np.abs(C).max(initial=0.0))
        if size == 0.0:
            return 0.0
        U, s, _ = np.linalg.svd(self.factor, full_matrices=False)
        inside = U.T @ C
        outside = np.linalg.norm(C - U @ inside, axis=0)
        squares = np.sum(inside**2 / (s[:, None] ** 2 + self.shift), axis=0)
        if self.shift > 0.0:
            return float(np.max(squares + outside**2 / self.shift))
        leaves = outside > 1e-8 * np.linalg.norm(C, axis=0)
        return math.inf if np.any(leaves) else float(np.max(squares))


def smallest_ellipsoid(columns: Any, accuracy: float = 1e-7) -> Ellipsoid:
    """The ellipsoid of least log det about 0 that holds the columns of a p × m matrix.

    Guarantee: ``c_iᵀ M⁺ c_i ≤ 1`` for every column, round-off included, whatever accuracy was reached; and
    ``log_det`` exceeds the least possible by at most ``gap``. Directions below ``max(p, m) · 2.2e-16`` of the largest
    singular value count as round-off of the others and are held by ``shift``.

    >>> ellipsoid = smallest_ellipsoid([[2.0, 0.0, 1.0], [0.0, 1.0, 0.5]])
    >>> ellipsoid.matrix().diagonal().round(5).tolist(), ellipsoid.weights.round(5).tolist()
    ([4.0, 1.0], [1.0, 1.0, 0.0])
    """
    C = as_columns(columns)
    if not 0.0 < accuracy < 1.0:
        raise InputError(f"accuracy is {accuracy!r}; give a positive number below 1, for example 1e-7.")
    p, m = C.shape
    weights = np.zeros(m)
    size = float(np.abs(C).max())
    if size == 0.0:
        return Ellipsoid(np.zeros((p, 0)), 0.0, weights, 0.0, 0.0, 0)
    there = np.any(C != 0.0, axis=0)
    scaled = C[:, there] / size
    U, s, W = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.sum(s > max(scaled.shape) * UNIT * s[0]))
    spread = 2.0 * (float(np.sum(np.log(s[:rank]))) + rank * math.log(size))
    if rank == scaled.shape[1]:
        # c_iᵀ (C Cᵀ)⁺ c_i is a diagonal entry of a projection, so it is at most 1 for any C
        weights[there] = 1.0
        return Ellipsoid(C[:, there].copy(), 0.0, weights, spread, 0.0, 0)

    W = W[:rank]
    best, iterations = optimal_design(W, accuracy / 2)
    design, axes = (W * best) @ W.T, U[:, :rank] * s[:rank]
    # what the factors leave of a column c: ‖c‖ ≤ ‖ĉ‖ + ‖c − ĉ‖ in the norm of M, so ĉ must leave room for it
    left = float(np.max(np.linalg.norm(scaled - axes @ W, axis=0))) + 2.0 * math.sqrt(rank) * UNIT
    margin = accuracy / (32.0 * rank)
    room = margin + left / (s[rank - 1] * math.sqrt(np.linalg.eigvalsh(design)[0]))
    shift = 0.0
    if rank < p or room > 1e-3:
        room, shift = 2.0 * margin, (left / margin) ** 2
    raised = largest_leverage(W, best) / (1.0 - room) ** 2
    weights[there] = raised * best
    return Ellipsoid(
        factor=size * axes @ np.linalg.cholesky(raised * design),
        shift=size**2 * shift,
        weights=weights,
        log_det=spread + float(np.linalg.slogdet(raised * design)[1]),
        gap=rank * math.log(raised),
        iterations=iterations,
    )


def as_columns(columns: Any) -> Array:
    """``columns`` as a finite p × m matrix."""
    try:
        C = np.array(columns, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"columns is {str(columns)[:60]!r}; give a matrix with one vector in each column.") from None
    if C.ndim != 2 or 0 in C.shape:
        raise InputError(f"columns has shape {C.shape}; give a matrix with one vector in each column.")
    if not np.all(np.isfinite(C)):
        raise InputError("columns has a value that is NaN or infinite; check the kernel and the noise.")
    return C
