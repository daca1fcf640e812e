"""What one demand asks of a diagonal Σ = Diag(d), and the price of asking it: the parts of a Newton step.

With ``M = A + Diag d`` and ``V = M⁻¹U``, what is learnt is ``G(d) = Uᵀ M⁻¹ U``, convex in d. A demand has a slack
``R ≻ 0`` that ought to be ``I − G`` and a multiplier ``T ≻ 0`` that ought to be ``μ R⁻¹``. For a joint demand they are
γ × γ matrices; of a pointwise one only the diagonals count, and they are vectors. Moving d by δ changes the slack by
``Vᵀ Diag(δ) V``; a multiplier X is felt in row i as ``(V X Vᵀ)_ii``, and ``Λ = V T Vᵀ`` is the witness (demand.py).

Where γ is not small against n, a joint demand is taken as ``R = Diag(d) − B ≻ 0`` instead, with Λ itself as multiplier:
the same formulas with V = I.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg import lapack

from ..inputs import Array
from ..programs.demand import Demand

#: Up to this size an eigenvalue is found as quickly as a handful of Cholesky factors.
SMALL = 300


class Multiplier(ABC):
    """One demand at a point d, with slack R, its inverse W, and the multiplier T.

    ``missing`` is what is wrong with R: ``I − G(d) − R``.
    """

    slack: Array
    inverse: Array
    multiplier: Array
    missing: Array

    @abstractmethod
    def __init__(self, demand: Demand, d: Array, slack: Array | None = None) -> None:
        """R is ``slack``, or all that there is; T is not known before ``price``."""

    @abstractmethod
    def price(self, multiplier: Array) -> Array:
        """Sets T; returns the diagonal of Λ = V T Vᵀ."""

    @abstractmethod
    def curvature(self) -> Array:
        """``2 Λ∘M⁻¹ + Λ∘(V W Vᵀ)``, the second derivative of the price; only its upper triangle counts."""

    @abstractmethod
    def felt(self, X: Array) -> Array:
        """The diagonal of V X Vᵀ."""

    @abstractmethod
    def relief(self, step: Array) -> Array:
        """``Vᵀ Diag(step) V``: how much less is learnt, to first order."""

    @abstractmethod
    def between(self, X: Array, Y: Array) -> Array:
        """The symmetric part of X Y W."""

    @abstractmethod
    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        """How far R can go along ``change``, and T along ``answer``."""

    @abstractmethod
    def shortfall(self) -> float:
        """``⟨Diag(d) − B, Λ⟩``: what the bound loses because not everything that may be learnt is."""

    @property
    @abstractmethod
    def size(self) -> float:
        """⟨A + Diag d, Λ⟩, by which round-off is measured."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The trace of T: what a unit less for everyone to learn would cost."""

    @property
    @abstractmethod
    def root(self) -> Array:
        """What V is multiplied by to give the witness."""

    @abstractmethod
    def witness(self) -> Array:
        """Y with Λ = Y Yᵀ; for a pointwise demand one column for each of U."""


class JointMultiplier(Multiplier):
    """T ⪰ 0 prices ``G ⪯ I`` as a whole; γ × γ."""

    def __init__(self, demand: Demand, d: Array, slack: Array | None = None) -> None:
        self.lower = noisy_cholesky(demand.covariance, d)
        self.V = solve(self.lower, demand.root)
        learnt, identity = demand.root.T @ self.V, np.eye(demand.root.shape[1])
        self.learnt = (learnt + learnt.T) / 2
        self.slack = identity - self.learnt if slack is None else slack
        self.missing = identity - self.learnt - self.slack
        self.slack_root = np.asarray(np.linalg.cholesky(self.slack), dtype=np.float64)
        self.inverse = solve(self.slack_root, identity)

    def price(self, multiplier: Array) -> Array:
        self.multiplier = (multiplier + multiplier.T) / 2
        self.multiplier_root = np.asarray(np.linalg.cholesky(self.multiplier), dtype=np.float64)
        return np.asarray(np.sum(self.witness() ** 2, axis=1))

    def curvature(self) -> Array:
        priced, sharp = self.witness(), solve_half(self.slack_root, self.V.T)
        return np.asarray((priced @ priced.T) * (2.0 * inverse_of(self.lower) + sharp.T @ sharp))

    def felt(self, X: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.V @ X, self.V))

    def relief(self, step: Array) -> Array:
        return np.asarray((self.V.T * step) @ self.V)

    def between(self, X: Array, Y: Array) -> Array:
        product = X @ Y @ self.inverse
        return np.asarray((product + product.T) / 2)

    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        return longest(self.slack, self.slack_root, change), longest(self.multiplier, self.multiplier_root, answer)

    def shortfall(self) -> float:
        return float(np.sum((self.learnt - self.learnt @ self.learnt) * self.multiplier))

    @property
    def size(self) -> float:
        return float(np.sum(self.learnt * self.multiplier))

    @property
    def total(self) -> float:
        return float(np.trace(self.multiplier))

    @property
    def root(self) -> Array:
        return self.multiplier_root

    def witness(self) -> Array:
        return np.asarray(self.V @ self.multiplier_root)


class PointwiseMultiplier(Multiplier):
    """t_s ≥ 0 prices ``u_sᵀ M⁻¹ u_s ≤ 1``, for each column on its own."""

    def __init__(self, demand: Demand, d: Array, slack: Array | None = None) -> None:
        self.lower = noisy_cholesky(demand.covariance, d)
        self.V = solve(self.lower, demand.root)
        self.learnt = np.einsum("ij,ij->j", demand.root, self.V)
        self.slack = 1.0 - self.learnt if slack is None else slack
        self.missing = 1.0 - self.learnt - self.slack
        if not np.all(self.slack > 0.0):
            raise np.linalg.LinAlgError("a slack is not positive")
        self.inverse = 1.0 / self.slack

    def price(self, multiplier: Array) -> Array:
        self.multiplier = multiplier
        return self.felt(multiplier)

    def curvature(self) -> Array:
        priced, sharp = self.witness(), self.V**2 * np.sqrt(self.multiplier * self.inverse)
        return np.asarray((priced @ priced.T) * (2.0 * inverse_of(self.lower)) + sharp @ sharp.T)

    def felt(self, X: Array) -> Array:
        return np.asarray(self.V**2 @ X)

    def relief(self, step: Array) -> Array:
        return np.asarray(step @ self.V**2)

    def between(self, X: Array, Y: Array) -> Array:
        return X * Y * self.inverse

    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        return farthest(self.slack, change), farthest(self.multiplier, answer)

    def shortfall(self) -> float:
        return float(np.sum((self.learnt - self.learnt**2) * self.multiplier))

    @property
    def size(self) -> float:
        return float(self.learnt @ self.multiplier)

    @property
    def total(self) -> float:
        return float(np.sum(self.multiplier))

    @property
    def root(self) -> Array:
        return np.sqrt(self.multiplier)

    def witness(self) -> Array:
        return self.V * self.root


class WholeMultiplier(Multiplier):
    """Λ ⪰ 0 prices ``R = Diag(d) − B ⪰ 0``; n × n. R is linear in d, so nothing is ever missing."""

    def __init__(self, demand: Demand, d: Array, slack: Array | None = None) -> None:
        self.demand, self.d = demand, d
        self.slack = plus_diagonal(demand.covariance - demand.root @ demand.root.T, d)
        self.missing = np.zeros_like(self.slack)
        self.slack_root = np.asarray(np.linalg.cholesky(self.slack), dtype=np.float64)
        upper = inverse_of(self.slack_root)
        self.inverse = np.triu(upper) + np.triu(upper, 1).T

    def price(self, multiplier: Array) -> Array:
        self.multiplier = (multiplier + multiplier.T) / 2
        self.multiplier_root = np.asarray(np.linalg.cholesky(self.multiplier), dtype=np.float64)
        return np.asarray(np.diag(self.multiplier).copy())

    def curvature(self) -> Array:
        return self.multiplier * self.inverse

    def felt(self, X: Array) -> Array:
        return np.asarray(np.diag(X).copy())

    def relief(self, step: Array) -> Array:
        return np.diag(step)

    def between(self, X: Array, Y: Array) -> Array:
        product = (X * np.diag(Y)) @ self.inverse
        return np.asarray((product + product.T) / 2)

    def reach(self, change: Array, answer: Array) -> tuple[float, float]:
        return longest(self.slack, self.slack_root, change), longest(self.multiplier, self.multiplier_root, answer)

    def shortfall(self) -> float:
        return float(np.sum(self.slack * self.multiplier))

    @property
    def size(self) -> float:
        return float(np.sum(self.demand.covariance * self.multiplier) + self.d @ np.diag(self.multiplier))

    @property
    def total(self) -> float:
        return float(np.trace(self.multiplier))

    @property
    def root(self) -> Array:
        # at the optimum R Λ = 0, so that Λ = M⁻¹ U (Uᵀ Λ)
        return np.asarray(self.demand.root.T @ self.multiplier_root)

    def witness(self) -> Array:
        return self.multiplier_root


def multiplier_of(demand: Demand, d: Array, slack: Array | None = None) -> Multiplier:
    """The multiplier that suits ``demand``."""
    rows, columns = demand.root.shape
    if not demand.joint or columns == 0:
        return PointwiseMultiplier(demand, d, slack)
    return WholeMultiplier(demand, d, slack) if 2 * columns > rows else JointMultiplier(demand, d, slack)


def noisy_cholesky(covariance: Array, d: Array) -> Array:
    """The lower Cholesky factor of A + Diag(d)."""
    return cholesky_in_place(plus_diagonal(covariance.copy(), d))


def plus_diagonal(matrix: Array, d: Array) -> Array:
    """``matrix`` itself, after d has been added to its diagonal."""
    np.einsum("ii->i", matrix)[...] += d
    return matrix


def cholesky_in_place(matrix: Array) -> Array:
    """The lower Cholesky factor of a symmetric matrix of which only the upper triangle counts; it is overwritten."""
    factor, failed = lapack.dpotrf(np.ascontiguousarray(matrix).T, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"the leading minor of order {failed} is not positive")
    return np.asarray(factor)


def inverse_of(lower: Array) -> Array:
    """``(lower lowerᵀ)⁻¹``; only its upper triangle counts."""
    return np.asarray(lapack.dpotri(lower, lower=1)[0].T)


def solve(lower: Array, block: Array) -> Array:
    """``(lower lowerᵀ)⁻¹ block``; LAPACK is called directly here because SciPy's own checks take longer than it."""
    return np.asarray(lapack.dpotrs(lower, block, lower=1)[0])


def solve_half(lower: Array, block: Array) -> Array:
    """``lower⁻¹ block``."""
    return np.asarray(lapack.dtrtrs(lower, block, lower=1)[0])


def farthest(x: Array, step: Array) -> float:
    """The largest α with ``x + α step ≥ 0``, for x > 0."""
    steepest = float(np.max(-step / x, initial=0.0))
    return 1.0 / steepest if steepest > 0.0 else np.inf


def longest(X: Array, root: Array, step: Array) -> float:
    """The largest α with ``X + α step ⪰ 0``, for X = root rootᵀ ≻ 0; where X is large, one up to a tenth shorter."""
    if len(X) == 0:
        return np.inf
    if len(X) <= SMALL:
        least = float(np.linalg.eigvalsh(solve_half(root, solve_half(root, step).T))[0])
        return -1.0 / least if least < 0.0 else np.inf
    length = 1.1
    while length > 1e-6 and lapack.dpotrf((X + length * step).T, lower=1, clean=0, overwrite_a=1)[1] != 0:
        length *= 0.9
    return length
