"""The parallel sum of two noises: what is left of them for someone who sees the same values twice.

Of two copies of y, with independent noises A and B, the best combination has the noise ``A : B = (A⁻¹ + B⁻¹)⁻¹``.
Where one of them has none in some direction, neither has the sum; ``A : B = A − A(A + B)⁺A`` covers that too.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..arrays import Array


def parallel_sum_factor(A: Array, B: Array) -> tuple[Array, float]:
    """F with ``F Fᵀ = A : B`` for positive semidefinite A and B, and a bound for its error, as a multiple of I.

    With ``S = A + B`` and ``T = S^{-1/2} A S^{-1/2}``, which has eigenvalues between 0 and 1,
    ``A : B = S^{1/2} T(I − T) S^{1/2}``: positive semidefinite whatever round-off does.

    >>> F, error = parallel_sum_factor(np.diag([2.0, 0.0, 1.0]), np.diag([2.0, 3.0, 1e9]))
    >>> (F @ F.T).diagonal().round(6).tolist(), error < 1e-5
    ([1.0, 0.0, 1.0], True)
    """
    total = (A + B + (A + B).T) / 2.0
    values, vectors = scipy.linalg.eigh(total, check_finite=False)
    error = 8.0 * len(values) * float(np.finfo(np.float64).eps) * max(float(values[-1]), 0.0)
    keep = values > error
    root = np.sqrt(values[keep])
    whitened = (vectors[:, keep] / root).T @ A @ (vectors[:, keep] / root)
    shares, mixing = scipy.linalg.eigh((whitened + whitened.T) / 2.0, check_finite=False)
    shares = np.clip(shares, 0.0, 1.0)
    return np.asarray((vectors[:, keep] * root) @ (mixing * np.sqrt(shares * (1.0 - shares)))), error
