"""The positive part of a symmetric matrix, as a factor."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..inputs import Array


def positive_part_factor(B: Array) -> Array:
    """F with ``F Fᵀ = B⁺``, one column for each positive eigenvalue of the symmetric matrix ``B``.

    All eigenpairs are computed: a solver that stops early leaves positive directions uncovered and so
    breaks a promise silently.
    """
    values, vectors = scipy.linalg.eigh(B, driver="evd", check_finite=False)
    positive = values > 0.0
    return np.asarray(vectors[:, positive] * np.sqrt(values[positive]))
