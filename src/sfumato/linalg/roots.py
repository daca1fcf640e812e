"""Roots of covariances, which may be singular: whitening by one, weighting by one, the parallel sum of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array

#: Eigenvalues of A + B below this many n · 2.2e-16 of the largest are round-off: no noise is counted on there.
PARALLEL_SUM = 8.0


@dataclass(frozen=True, eq=False)
class Whitening:
    """``apply`` is ``b ↦ R b`` with ``RᵀR = M⁻¹`` on the directions where M is more than rounding.

    ``lower`` is the Cholesky factor of M; where M is singular it is None, and ``values`` and ``vectors`` are the
    eigenvalues that are more than rounding and their eigenvectors. ``unbounded`` is an orthonormal basis of what R
    makes of directions that may be anything (``without``); None: there are none.
    """

    size: int
    lower: Array | None
    values: Array
    vectors: Array
    unbounded: Array | None = None

    @classmethod
    def of(cls, matrix: Array) -> Whitening:
        """Directions count whose eigenvalues are above n · 2.2e-16 of the largest."""
        cutoff = matrix.shape[0] * UNIT
        try:
            lower = np.asarray(scipy.linalg.cholesky(matrix, lower=True, check_finite=False))
            if np.min(np.diag(lower)) ** 2 > cutoff * np.max(np.diag(matrix)):
                return cls(len(matrix), lower, np.empty(0), np.empty((0, 0)))
        except np.linalg.LinAlgError:
            pass
        values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
        keep = values > cutoff * max(values[-1], 0.0)
        return cls(len(matrix), None, values[keep], vectors[:, keep])

    @property
    def rank(self) -> int:
        """How many directions are kept."""
        return self.size if self.lower is not None else len(self.values)

    @property
    def log_determinant(self) -> float:
        """Of M on the directions that are kept."""
        if self.lower is not None:
            return 2.0 * float(np.log(np.diag(self.lower)).sum())
        return float(np.log(self.values).sum())

    def without(self, directions: Array) -> Whitening:
        """``RᵀR`` is what M⁻¹ becomes where M has no bound in the span of the columns of ``directions``."""
        return replace(self, unbounded=np.linalg.qr(self.apply(np.linalg.qr(directions)[0]))[0])

    def apply(self, b: Array) -> Array:
        if self.lower is not None:
            white = np.asarray(scipy.linalg.solve_triangular(self.lower, b, lower=True, check_finite=False))
        else:
            white = np.asarray((self.vectors / np.sqrt(self.values)).T @ b)
        return white if self.unbounded is None else white - self.unbounded @ (self.unbounded.T @ white)

    def leftover(self, b: Array) -> Array:
        """What of ``b`` lies in directions that are left out."""
        return np.zeros_like(b) if self.lower is not None else np.asarray(b - self.vectors @ (self.vectors.T @ b))


class Weighting:
    """C^{1/2} and C^{-1/2} of utility weights: a diagonal, a positive definite matrix, or None for the identity.

    The least ``Tr CΣ`` is the least ``Tr Σ′`` for ``Σ′ = C^{1/2} Σ C^{1/2}``.
    """

    def __init__(self, weights: Array | None) -> None:
        self._root: Array | None = None
        self._inverse: Array | None = None
        if weights is None:
            return
        if weights.ndim == 1:
            self._root = np.sqrt(weights)
            self._inverse = 1.0 / self._root
        else:
            values, vectors = scipy.linalg.eigh(weights)
            self._root = (vectors * np.sqrt(values)) @ vectors.T
            self._inverse = (vectors / np.sqrt(values)) @ vectors.T

    def forward(self, block: Array) -> Array:
        """C^{1/2} block."""
        return _times(self._root, block)

    def backward(self, block: Array) -> Array:
        """C^{-1/2} block."""
        return _times(self._inverse, block)

    def both(self, matrix: Array) -> Array:
        """C^{1/2} matrix C^{1/2}, for a symmetric matrix."""
        return matrix if self._root is None else _times(self._root, _times(self._root, matrix).T)


def _times(root: Array | None, block: Array) -> Array:
    if root is None:
        return block
    return np.asarray(root[:, None] * block if root.ndim == 1 else root @ block)


def parallel_sum_factor(A: Array, B: Array) -> tuple[Array, float]:
    """F with ``F Fᵀ = A : B`` for positive semidefinite A and B, and a bound for its error, as a multiple of I.

    Of two copies of y, with independent noises A and B, the best combination has the noise ``A : B = (A⁻¹ + B⁻¹)⁻¹``.
    Where one of them has none in some direction, neither has the sum; ``A : B = A − A(A + B)⁺A`` covers that too. With
    ``S = A + B`` and ``T = S^{-1/2} A S^{-1/2}``, which has eigenvalues between 0 and 1, it is
    ``S^{1/2} T(I − T) S^{1/2}``: positive semidefinite whatever round-off does.

    >>> F, error = parallel_sum_factor(np.diag([2.0, 0.0, 1.0]), np.diag([2.0, 3.0, 1e9]))
    >>> (F @ F.T).diagonal().round(6).tolist(), error < 1e-5
    ([1.0, 0.0, 1.0], True)
    """
    total = (A + B + (A + B).T) / 2.0
    values, vectors = scipy.linalg.eigh(total, check_finite=False)
    error = PARALLEL_SUM * len(values) * UNIT * max(float(values[-1]), 0.0)
    keep = values > error
    root = np.sqrt(values[keep])
    whitened = (vectors[:, keep] / root).T @ A @ (vectors[:, keep] / root)
    shares, mixing = scipy.linalg.eigh((whitened + whitened.T) / 2.0, check_finite=False)
    shares = np.clip(shares, 0.0, 1.0)
    return np.asarray((vectors[:, keep] * root) @ (mixing * np.sqrt(shares * (1.0 - shares)))), error
