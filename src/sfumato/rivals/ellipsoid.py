"""The smallest ellipsoid about 0 that holds given vectors: the shape of the noise of DP-Cloaking.

Among all M ⪰ 0 with ``c_iᵀ M⁺ c_i ≤ 1`` for the columns c_1 … c_m of C, the one of least log det on their span is
``M = Σ λ_i c_i c_iᵀ``, where λ is the D-optimal design (Titterington 1975). It does not depend on the units of the
rows of C. Independent columns have λ_i = 1, M = C Cᵀ: nothing is left to search for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..inputs import Array
from .optimal_design import leverages, optimal_design

_UNIT = float(np.finfo(np.float64).eps)


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
    rank = int(np.sum(s > max(scaled.shape) * _UNIT * s[0]))
    spread = 2.0 * (float(np.sum(np.log(s[:rank]))) + rank * math.log(size))
    if rank == scaled.shape[1]:
        # c_iᵀ (C Cᵀ)⁺ c_i is a diagonal entry of a projection, so it is at most 1 for any C
        weights[there] = 1.0
        return Ellipsoid(C[:, there].copy(), 0.0, weights, spread, 0.0, 0)

    W = W[:rank]
    best, iterations = optimal_design(W, accuracy / 2)
    design, axes = (W * best) @ W.T, U[:, :rank] * s[:rank]
    # what the factors leave of a column c: ‖c‖ ≤ ‖ĉ‖ + ‖c − ĉ‖ in the norm of M, so ĉ must leave room for it
    left = float(np.max(np.linalg.norm(scaled - axes @ W, axis=0))) + 2.0 * math.sqrt(rank) * _UNIT
    margin = accuracy / (32.0 * rank)
    room = margin + left / (s[rank - 1] * math.sqrt(np.linalg.eigvalsh(design)[0]))
    shift = 0.0
    if rank < p or room > 1e-3:
        room, shift = 2.0 * margin, (left / margin) ** 2
    raised = float(leverages(W, best).max()) / (1.0 - room) ** 2
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
