"""The positive part B⁺ of a symmetric matrix, as a factor: from eigenvectors, or from the matrix sign without any.

``B⁺ = (B + |B|)/2``, ``|B| = B sign(B)``. The paper suggests a rational approximation of ``(B²)^{1/2}``. The best way
to make one is to compose small ones: ``X ← (ζX + (ζX)⁻¹)/2``, Newton's iteration for ``X² = I`` with the scaling of
Byers and Xu (2008), is after k steps a rational function of degree 2ᵏ, and for k = 9 within round-off of the sign on
``[−1, −10⁻¹⁶] ∪ [10⁻¹⁶, 1]``. A step is one matrix inverse, so that it parallelises where an eigensolver does not.

Eigenvalues at round-off level have no reliable sign. B is moved down by a shift δ of that size first, so that they
count as negative; δ is given back as ``shift``, isotropic noise that covers them and every error made on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import torch
from scipy.linalg import lapack

from ..arrays import UNIT, Array
from ..errors import InputError


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


#: ε = 2⁻⁵³, the largest relative error of one operation in float64.
EPSILON = UNIT / 2

#: The first shift is this many n·ε·‖B‖; where the proof fails with it, it is doubled (docs/roundoff.md).
FIRST_SHIFT = 4.0

#: Of Newton's steps at most; ten are enough where eigenvalues differ by a factor of 10¹⁶.
STEPS = 30


@dataclass(frozen=True, eq=False)
class SignedPart:
    """F and s with ``F Fᵀ + s I ⪰ B``, proved, and ``F Fᵀ ≈ B⁺``; ``steps`` is the number of inverses it took."""

    factor: Array
    shift: float
    steps: int


def positive_part_by_sign(B: Array) -> SignedPart:
    """F and s for the symmetric matrix ``B``; s is of the size of the round-off in B, n ε ‖B‖.

    Guarantee: ``F Fᵀ + s I ⪰ B`` holds for the float64 numbers F, s and B in exact arithmetic.

    >>> import numpy as np
    >>> part = positive_part_by_sign(np.diag([4.0, -1.0]))
    >>> (part.factor @ part.factor.T).round(9).tolist(), part.shift < 1e-12
    ([[4.0, 0.0], [0.0, 0.0]], True)
    """
    largest = float(np.max(np.abs(B), initial=0.0))
    if not np.isfinite(largest):
        raise InputError("B must consist of finite numbers")
    # an even power of two: exact, and it keeps squares from under- and overflowing
    exponent = 2 * (int(np.frexp(largest)[1]) // 2)
    part = _in_units(np.ldexp((B + B.T) / 2, -exponent))
    return SignedPart(np.ldexp(part.factor, exponent // 2), float(np.ldexp(part.shift, exponent)), part.steps)


def _in_units(B: Array) -> SignedPart:
    n = B.shape[0]
    nothing = np.zeros((n, 0))
    if covers(nothing, 0.0, B):
        return SignedPart(nothing, 0.0, 0)
    norm = min(float(np.linalg.norm(B)), float(np.max(np.sum(np.abs(B), axis=1))))
    shift = FIRST_SHIFT * n * EPSILON * norm
    while True:
        lowered = B - shift * np.eye(n)
        try:
            sign, steps = matrix_sign(lowered)
            break
        except np.linalg.LinAlgError:
            # an eigenvalue of B is δ to the last digit
            shift *= 1.5
    size = sign @ lowered
    factor = _pivoted((lowered + (size + size.T) / 2) / 2, shift)
    while not covers(factor, shift, B):
        shift *= 2.0
    return SignedPart(factor, shift, steps)


def matrix_sign(X: Array) -> tuple[Array, int]:
    """sign(X) for a symmetric X without the eigenvalue 0, and how many inverses it took."""
    inverse = np.linalg.inv(X)
    # bounds for the absolute values of all eigenvalues
    largest, least = float(np.linalg.norm(X)), 1.0 / float(np.linalg.norm(inverse))
    scale, following = 1.0 / np.sqrt(least * largest), np.sqrt(2.0 * np.sqrt(least * largest) / (least + largest))
    for step in range(1, STEPS + 1):
        X, before = (scale * X + inverse / scale) / 2, X
        X = (X + X.T) / 2
        # the error of a step is half the square of that of the step before
        if step == STEPS or np.linalg.norm(X - before) <= 1e-9 * np.linalg.norm(X):
            break
        inverse = np.linalg.inv(X)
        scale, following = following, np.sqrt(2.0 / (following + 1.0 / following))
    return X, step


def covers(factor: Array, shift: float, B: Array) -> bool:
    """True only if ``F Fᵀ + s I ⪰ B`` in exact arithmetic.

    A Cholesky factorisation that runs to its end proves ``X ⪰ −c I`` with ``c = (n + 2) ε Tr X`` (Rump 2006); c and the
    round-off in X itself are taken off first.
    """
    n, rank = factor.shape
    if not np.any(B):
        return shift >= 0.0
    X = factor @ factor.T - B
    size = float(np.sum(factor**2)) + float(np.linalg.norm(B))
    trace = float(np.trace(X)) + n * shift
    margin = 1.01 * EPSILON * ((n + 2) * max(trace, 0.0) + (rank + 4) * size + 4 * shift)
    X[np.diag_indices_from(X)] += shift - margin
    return bool(lapack.dpotrf(np.ascontiguousarray(X).T, lower=1, clean=0, overwrite_a=1)[1] == 0)


def _pivoted(P: Array, tolerance: float) -> Array:
    """F with ``F Fᵀ = P`` up to a rest with no diagonal entry above ``tolerance``, by Cholesky with pivots."""
    factor, order, rank, _ = lapack.dpstrf(P, tol=tolerance, lower=1)
    F = np.zeros((P.shape[0], rank))
    F[order - 1] = np.tril(factor)[:, :rank]
    return F
