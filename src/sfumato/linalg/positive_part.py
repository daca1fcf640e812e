"""The positive part of a symmetric matrix, as a factor."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch

from ..inputs import Array


def positive_part_factor(B: Array, rank: int | None = None) -> Array:
    """F with ``F Fᵀ = B⁺``, one column for each positive eigenvalue of the symmetric matrix ``B``.

    All positive eigenpairs are computed: a solver that stops early leaves positive directions uncovered and so
    breaks a promise silently. ``rank`` is an upper bound for their number, where one is known; it only chooses the
    quicker of two direct solvers.
    """
    if rank is not None and 3 * rank < B.shape[0]:
        values, vectors = scipy.linalg.eigh(B, driver="evr", subset_by_value=(0.0, np.inf), check_finite=False)
    else:
        values, vectors = scipy.linalg.eigh(B, driver="evd", check_finite=False)
    positive = values > 0.0
    return np.asarray(vectors[:, positive] * np.sqrt(values[positive]))


def positive_part_there(B: torch.Tensor) -> torch.Tensor:
    """As ``positive_part_factor``, on the device where ``B`` is."""
    values, vectors = torch.linalg.eigh(B)
    positive = values > 0.0
    factor: torch.Tensor = vectors[:, positive] * values[positive].sqrt()
    return factor
