"""Whitening by a covariance that may be singular to working precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..arrays import Array


@dataclass(frozen=True, eq=False)
class Whitening:
    """``apply`` is ``b ↦ R b`` with ``RᵀR = M⁻¹`` on the directions where M is more than rounding.

    ``lower`` is the Cholesky factor of M; where M is singular it is None, and ``values`` and ``vectors`` are the
    eigenvalues that are more than rounding and their eigenvectors.
    """

    size: int
    lower: Array | None
    values: Array
    vectors: Array

    @classmethod
    def of(cls, matrix: Array) -> Whitening:
        """Directions count whose eigenvalues are above n · 2.2e-16 of the largest."""
        cutoff = matrix.shape[0] * np.finfo(float).eps
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

    def apply(self, b: Array) -> Array:
        if self.lower is not None:
            return np.asarray(scipy.linalg.solve_triangular(self.lower, b, lower=True, check_finite=False))
        return np.asarray((self.vectors / np.sqrt(self.values)).T @ b)

    def leftover(self, b: Array) -> Array:
        """What of ``b`` lies in directions that are left out."""
        return np.zeros_like(b) if self.lower is not None else np.asarray(b - self.vectors @ (self.vectors.T @ b))
