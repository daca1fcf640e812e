"""Independent answers to compare with: 50-digit arithmetic, an SDP solver, and dense textbook formulas.

Nothing here imports sfumato.
"""

from __future__ import annotations

import warnings

import mpmath
import numpy as np

DIGITS = 50
#: Fixed-point numbers with this many bits after the point: exact sums and products in object arrays.
BITS = 200


def rbf50(a, b, lengthscale: float, variance: float = 1.0) -> mpmath.matrix:
    """The RBF kernel of the given float64 numbers, in 50 digits."""
    with mpmath.workdps(DIGITS):
        scale = -1 / (2 * mpmath.mpf(float(lengthscale)) ** 2)
        sigma = mpmath.mpf(float(variance))
        rows = [mpmath.mpf(float(v)) for v in np.ravel(a)]
        columns = [mpmath.mpf(float(v)) for v in np.ravel(b)]
        return mpmath.matrix([[sigma * mpmath.exp(scale * (r - c) ** 2) for c in columns] for r in rows])


def exact(matrix) -> mpmath.matrix:
    return mpmath.matrix(np.asarray(matrix, dtype=float).tolist())


def reader_covariance50(
    x, lengthscale: float, variance: float, factor, shift: float, noise: float = 0.0
) -> mpmath.matrix:
    """M = K_XX + V + F Fᵀ + shift I from the published float64 numbers, in 50 digits."""
    with mpmath.workdps(DIGITS):
        F = exact(factor)
        M = rbf50(x, x, lengthscale, variance)
        if F.cols:
            M = M + F * F.T
        for i in range(M.rows):
            M[i, i] += mpmath.mpf(float(shift)) + mpmath.mpf(float(noise))
        return M


def forward50(lower: mpmath.matrix, block: mpmath.matrix) -> np.ndarray:
    """lower⁻¹ block, by forward substitution on whole rows."""
    L = np.array(lower.tolist(), dtype=object)
    rows: list[np.ndarray] = []
    for i, row in enumerate(np.array(block.tolist(), dtype=object)):
        rest = row - L[i, :i].dot(np.array(rows)) if i else row
        rows.append(rest / L[i, i])
    return np.array(rows)


def joint_ratio50(M: mpmath.matrix, K_SX: mpmath.matrix, delta: mpmath.matrix) -> float:
    """λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}) in 50 digits."""
    with mpmath.workdps(DIGITS):
        U = forward50(mpmath.cholesky(delta), K_SX)
        E = forward50(mpmath.cholesky(M), mpmath.matrix(U.T.tolist()))
        small = E.dot(E.T) if E.shape[0] <= E.shape[1] else E.T.dot(E)
        return float(max(mpmath.eigsy(mpmath.matrix(small.tolist()), eigvals_only=True)))


def explained_variances50(M: mpmath.matrix, K_XP: mpmath.matrix) -> np.ndarray:
    """k_pᵀ M⁻¹ k_p for every column: exact where float64 would not be, by integers with 60 decimals."""
    with mpmath.workdps(DIGITS + 20):
        one = mpmath.mpf(2) ** BITS
        whitening = forward50(mpmath.cholesky(M), mpmath.eye(M.rows))
        W = np.array([[int(v * one) for v in row] for row in whitening], dtype=object)
        K = np.array([[int(v * one) for v in row] for row in K_XP.tolist()], dtype=object)
        explained = W.dot(K) >> BITS
        return np.array([float(mpmath.mpf(int(t)) / one / one) for t in (explained**2).sum(axis=0)])


def least_trace(B: np.ndarray, weights: np.ndarray | None = None) -> float:
    """min Tr CΣ subject to Σ ⪰ B, Σ ⪰ 0, by CVXPY and Clarabel."""

    import cvxpy

    n = B.shape[0]
    scale = float(np.abs(B).max())
    sigma = cvxpy.Variable((n, n), PSD=True)
    C = np.eye(n) if weights is None else (np.diag(weights) if weights.ndim == 1 else weights)
    return _solved(cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(C @ sigma)), [sigma - B / scale >> 0])) * scale


def least_noise(demands, weights: np.ndarray | None = None, diagonal: bool = False) -> float:
    """min Tr CΣ by CVXPY and Clarabel, where ``demands`` lists (A, matrices B′): Σ ⪰ B′ − A for every B′."""

    import cvxpy

    n = demands[0][0].shape[0]
    scale = max(float(np.abs(A).max()) for A, _ in demands)
    C = np.eye(n) if weights is None else (np.diag(weights) if weights.ndim == 1 else weights)
    d = cvxpy.Variable(n, nonneg=True)
    sigma = cvxpy.diag(d) if diagonal else cvxpy.Variable((n, n), PSD=True)
    limits = [sigma - (needed - A) / scale >> 0 for A, several in demands for needed in several]
    return _solved(cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(C @ sigma)), limits)) * scale


def rbf(a, b, lengthscale, variance=1.0):
    a, b = np.atleast_2d(np.asarray(a, float)), np.atleast_2d(np.asarray(b, float))
    gaps = (a[:, None, :] - b[None, :, :]) / lengthscale
    return variance * np.exp(-0.5 * np.sum(gaps**2, axis=2))


def matern32(a, b, lengthscale, variance=1.0):
    a, b = np.atleast_2d(np.asarray(a, float)), np.atleast_2d(np.asarray(b, float))
    r = np.sqrt(3 * np.sum(((a[:, None, :] - b[None, :, :]) / lengthscale) ** 2, axis=2))
    return variance * (1 + r) * np.exp(-r)


def most_explained_by_sdp(B, demands):
    """max Tr(B Bᵀ Q) with 0 ⪯ Q ⪯ I and UᵀQU ⪯ I (joint), or uᵀQu ≤ 1 for its columns, by CVXPY and Clarabel."""
    import cvxpy

    Q = cvxpy.Variable((len(B), len(B)), PSD=True)
    constraints = [np.eye(len(B)) - Q >> 0]
    for U, joint in demands:
        if joint:
            constraints.append(np.eye(U.shape[1]) - U.T @ Q @ U >> 0)
        else:
            constraints += [cvxpy.sum(cvxpy.multiply(np.outer(u, u), Q)) <= 1.0 for u in U.T]
    return _solved(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(B @ B.T, Q))), constraints))


def _solved(problem):
    with warnings.catch_warnings():
        # "may be inaccurate" means short of 1e-9, which is more than the tests ask for
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value)


def most_let_through_by_sdp(Q, suppressed, demands):
    """max Tr R with R ⪰ 0, none of it on the ``suppressed`` columns, where Q + R is at most I and meets all demands."""
    import cvxpy

    kept = np.linalg.svd(suppressed)[0][:, suppressed.shape[1] :]
    R = cvxpy.Variable((kept.shape[1], kept.shape[1]), PSD=True)
    constraints = [kept.T @ (np.eye(len(Q)) - Q) @ kept - R >> 0]
    for U, joint in demands:
        left, seen = np.eye(U.shape[1]) - U.T @ Q @ U, kept.T @ U
        if joint:
            constraints.append(left - seen.T @ R @ seen >> 0)
        else:
            more = [cvxpy.sum(cvxpy.multiply(np.outer(u, u), R)) for u in seen.T]
            constraints += [told <= max(room, 0.0) for told, room in zip(more, np.diag(left))]
    return _solved(cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(R)), constraints))
