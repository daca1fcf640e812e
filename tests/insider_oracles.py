"""What readers who hold rows learn of f and of records, from the textbook: covariances of (z, W, y_H), and no more.

Nothing here imports sfumato.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
import numpy as np

from oracles import DIGITS

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Secret:
    """Rows ``X`` with errors of variance ``V``; sensitive are f at ``S`` and the records ``R``."""

    kernel: Kernel
    X: np.ndarray
    V: np.ndarray
    S: np.ndarray
    R: np.ndarray
    alpha: float
    protects: str

    @property
    def data(self) -> np.ndarray:
        """A."""
        return self.kernel(self.X, self.X) + np.diag(self.V)

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cov(z), Cov(y, z) and what is each value's own, for z = f(S), (f(S), y_R) or y_R."""
        S = self.S if self.protects != "records" else self.S[:0]
        R = self.R if self.protects != "function" else self.R[:0]
        at, own = np.concatenate([S, self.X[R]]), np.concatenate([np.zeros(len(S)), self.V[R]])
        cross = self.kernel(self.X, at)
        cross[R, len(S) + np.arange(len(R))] += self.V[R]
        return self.kernel(at, at) + np.diag(own), cross, own

    def unknown_to(self, rows: Sequence[int]) -> np.ndarray:
        """Which values are not the group's own, nor determined by its rows."""
        covariance, cross, _ = self.values
        rows = list(rows)
        left = np.diag(covariance)
        if rows:
            left = left - np.einsum(
                "ij,ij->j", cross[rows], np.linalg.solve(self.data[np.ix_(rows, rows)], cross[rows])
            )
        known = left <= 1e-8 * np.diag(covariance)
        if self.protects != "function":
            known[len(known) - len(self.R) :] |= np.isin(self.R, rows)
        return np.flatnonzero(~known)

    def kept(self, before: np.ndarray, own: np.ndarray) -> np.ndarray:
        """What a reader must be left with who was left with ``before``."""
        return (1 - self.alpha) * (before if self.protects != "records" else np.diag(own))

    def demand(self, rows: Sequence[int]) -> np.ndarray:
        """B_H = U_H Δ_H⁻¹ U_Hᵀ − A_H: the noise must be above it."""
        rows, unknown = list(rows), self.unknown_to(rows)
        covariance, cross, own = self.values
        covariance, cross, own = covariance[np.ix_(unknown, unknown)], cross[:, unknown], own[unknown]
        A = self.data
        weights = np.linalg.solve(A[np.ix_(rows, rows)], A[rows]) if rows else np.zeros((0, len(A)))
        left, both = A - A[:, rows] @ weights, cross - weights.T @ cross[rows]
        if rows:
            covariance = covariance - cross[rows].T @ np.linalg.solve(A[np.ix_(rows, rows)], cross[rows])
        if not len(unknown):
            return -left
        delta = covariance - self.kept(covariance, own)
        return both @ np.linalg.solve(delta, both.T) - left

    def left(self, rows: Sequence[int], sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cov(z|y_H) and Cov(z|y_H, W): who has y_H and W has y_H, the noise Z_H, and W elsewhere."""
        rows, unknown = list(rows), self.unknown_to(rows)
        covariance, cross, _ = self.values
        A, U = self.data, cross[:, unknown]
        prior = covariance[np.ix_(unknown, unknown)]
        noisy = [row for row in rows if sigma[row, row] > 0]
        rest = np.setdiff1d(np.arange(len(A)), rows)
        held, noise = A[np.ix_(rows, rows)], sigma[np.ix_(noisy, noisy)]
        seen = np.block(
            [
                [held, np.zeros((len(rows), len(noisy))), A[np.ix_(rows, rest)]],
                [np.zeros((len(noisy), len(rows))), noise, sigma[np.ix_(noisy, rest)]],
                [A[np.ix_(rest, rows)], sigma[np.ix_(rest, noisy)], (A + sigma)[np.ix_(rest, rest)]],
            ]
        )
        told = np.vstack([U[rows], np.zeros((len(noisy), len(unknown))), U[rest]])
        scale = 1 / np.sqrt(np.diag(seen))
        inverse = np.linalg.pinv(scale[:, None] * seen * scale, rcond=1e-13, hermitian=True)
        told = scale[:, None] * told
        before = prior - U[rows].T @ np.linalg.solve(held, U[rows]) if rows else prior
        return before, prior - told.T @ inverse @ told

    def ratio(self, rows: Sequence[int], sigma: np.ndarray, joint: bool = True) -> float:
        """What a group learns as a share of what it may; more than 1: the promise to them is broken."""
        before, after = self.left(rows, sigma)
        if not len(before):
            return 0.0
        allowed = before - self.kept(before, self.values[2][self.unknown_to(rows)])
        learnt = before - after
        if not joint:
            return float(np.max(np.diag(learnt) / np.diag(allowed)))
        lower = np.linalg.cholesky(allowed)
        white = np.linalg.solve(lower, np.linalg.solve(lower, learnt).T)
        return float(np.linalg.eigvalsh((white + white.T) / 2)[-1])

    def ratio50(self, rows: Sequence[int], sigma: mpmath.matrix, kernel50: Callable, joint: bool = True) -> float:
        """The same in 50 digits; ``sigma`` and ``kernel50`` are in 50 digits too."""
        with mpmath.workdps(DIGITS):
            rows, unknown = list(rows), self.unknown_to(rows)
            n, S = len(self.X), self.S if self.protects != "records" else self.S[:0]
            R = self.R if self.protects != "function" else self.R[:0]
            at = np.concatenate([S, self.X[R]])
            V = [mpmath.mpf(float(one)) for one in self.V]
            A, U, C = kernel50(self.X, self.X), kernel50(self.X, at), kernel50(at, at)
            own = mpmath.matrix(len(at), len(at))
            for i in range(n):
                A[i, i] += V[i]
            for place, row in enumerate(R):
                U[row, len(S) + place] += V[row]
                own[len(S) + place, len(S) + place] = V[row]
            C = C + own
            size = len(rows) + n
            seen, told = mpmath.matrix(size, size), mpmath.matrix(size, len(unknown))
            index = [*rows, *range(n)]
            for i, a in enumerate(index):
                for j, b in enumerate(index):
                    seen[i, j] = A[a, b] + (sigma[a, b] if i >= len(rows) and j >= len(rows) else 0)
                for j, b in enumerate(unknown):
                    told[i, j] = U[a, int(b)]
            prior, own = (_part(one, unknown) for one in (C, own))
            after = prior - told.T * _solve(seen, told)
            held = _part(A, rows)
            first = told[: len(rows), :] if rows else None
            before = prior - first.T * _solve(held, first) if rows else prior
            share = 1 - mpmath.mpf(self.alpha)
            allowed = before - share * (own if self.protects == "records" else before)
            learnt = before - after
            if not joint:
                return float(max(learnt[i, i] / allowed[i, i] for i in range(len(unknown))))
            inverse = mpmath.cholesky(allowed) ** -1
            white = inverse * learnt * inverse.T
            return float(max(mpmath.eigsy((white + white.T) / 2, eigvals_only=True)))


def _part(matrix: mpmath.matrix, rows: Sequence[int]) -> mpmath.matrix:
    return mpmath.matrix([[matrix[int(i), int(j)] for j in rows] for i in rows])


def _solve(matrix: mpmath.matrix, block: mpmath.matrix) -> mpmath.matrix:
    return matrix**-1 * block
