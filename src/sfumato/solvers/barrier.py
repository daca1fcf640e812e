"""The demands in few dimensions, and the curvature of their logarithmic barrier.

Among ``Σ = P T Pᵀ`` a demand is one about T: with ``N = (Pᵀ A⁻¹ P)⁻¹ = (RᵀR)⁻¹`` and ``U = P Ũ``,
``Uᵀ(A + Σ)⁻¹U = Ũᵀ(N + T)⁻¹Ũ = Ûᵀ(I + R T Rᵀ)⁻¹Û``, ``Û = R Ũ``. It is exact, not an approximation (MATH.md, 6.2).

Write ``M = N + T``, ``V = M⁻¹Ũ``, φ for what is learnt (its diagonal where the demand is pointwise) and ξ = I − φ for
the slack. A change D of T changes φ by ``−VᵀDV``, and the Lagrangian term ``⟨z, φ⟩`` has the curvature
``D ↦ M⁻¹DQ + QDM⁻¹`` with ``Q = V z Vᵀ``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..inputs import Array


def symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2)


@dataclass(frozen=True, eq=False)
class SmallDemand:
    """``whitener`` is R, p × p and upper triangular; ``root`` is Û, p × m."""

    whitener: Array
    root: Array
    joint: bool

    @property
    def count(self) -> int:
        """How many inequalities it stands for: the degree of its barrier."""
        return int(self.root.shape[1])


class Slack:
    """One demand at ``T = G Gᵀ``: its slack ξ, and log det ξ, which is −∞ where the demand is not strictly met."""

    def __init__(self, demand: SmallDemand, factor: Array) -> None:
        spread = demand.whitener @ factor
        self.demand = demand
        self.lower = scipy.linalg.cholesky(np.eye(len(spread)) + spread @ spread.T, lower=True, check_finite=False)
        self.explained = scipy.linalg.solve_triangular(self.lower, demand.root, lower=True, check_finite=False)
        self.log = -np.inf
        if demand.joint:
            self.slack = np.eye(demand.count) - self.explained.T @ self.explained
            try:
                self.log = 2.0 * float(np.sum(np.log(np.diag(np.linalg.cholesky(self.slack)))))
            except np.linalg.LinAlgError:
                return
        else:
            self.slack = 1.0 - np.einsum("ij,ij->j", self.explained, self.explained)
            if np.min(self.slack) > 0:
                self.log = float(np.sum(np.log(self.slack)))


class Curvature:
    """One demand at ``T``, with multipliers z, in the basis in which T is diagonal."""

    def __init__(self, at: Slack, basis: Array, multiplier: Array | None, level: float) -> None:
        root = at.demand.whitener @ basis
        half = scipy.linalg.solve_triangular(at.lower, root, lower=True, check_finite=False)
        self.joint, self.slack = at.demand.joint, at.slack
        self.demand, self.basis = at.demand, basis
        self.inverse = symmetric(np.linalg.inv(at.slack)) if self.joint else 1.0 / at.slack
        self.multiplier = level * self.inverse if multiplier is None else multiplier
        self.precision = half.T @ half
        self.seen = half.T @ at.explained
        self.pull = self._spread(self.multiplier)
        self.stiffness = self._spread(self.inverse) if self.joint else None

    def _spread(self, weight: Array) -> Array:
        """V · weight · Vᵀ."""
        return symmetric((self.seen @ weight if self.joint else self.seen * weight) @ self.seen.T)

    def push(self, level: float) -> Array:
        """The barrier's gradient at ``level`` = τ: V (τ ξ⁻¹) Vᵀ."""
        return self._spread(level * self.inverse)

    @property
    def complementarity(self) -> float:
        return float(np.sum(self.multiplier * self.slack))

    def product(self, D: Array) -> Array:
        """The curvature of this demand in the direction D."""
        half = self.precision @ D @ self.pull
        if self.stiffness is not None:
            half = half + 0.5 * (self.pull @ D @ self.stiffness)
            return np.asarray(half + half.T)
        change = self.multiplier * self.inverse * np.einsum("ij,ij->j", self.seen, D @ self.seen)
        return np.asarray(half + half.T + (self.seen * change) @ self.seen.T)

    def multiplier_step(self, D: Array, level: float) -> Array:
        """How z has to follow D to stay at ``z ξ = level``, to first order."""
        if self.joint:
            change = symmetric(self.multiplier @ (self.seen.T @ D @ self.seen) @ self.inverse)
        else:
            change = self.multiplier * self.inverse * np.einsum("ij,ij->j", self.seen, D @ self.seen)
        return np.asarray(level * self.inverse - self.multiplier - change)

    def stiff(self) -> tuple[Array, Array]:
        """v_a and κ_a of the barrier's own curvature, ``Σ_ab ½(κ_a + κ_b) (v_aᵀDv_b) v_a v_bᵀ``.

        The sum runs over a = b only where the demand is pointwise.
        """
        if not self.joint:
            return self.seen, self.multiplier * self.inverse
        lower = np.linalg.cholesky(self.slack)
        values, vectors = np.linalg.eigh(lower.T @ self.multiplier @ lower)
        turn = scipy.linalg.solve_triangular(lower, vectors, lower=True, trans="T", check_finite=False)
        return self.seen @ turn, values

    def witness_value(self, clip: Array) -> float:
        """``⟨B, Λ⟩`` for the witness ``clip · V z^{1/2}``; see programs/demand.py."""
        weight = np.linalg.cholesky(self.multiplier) if self.joint else np.sqrt(self.multiplier)
        witness = self.basis @ (clip @ (self.seen @ weight if self.joint else self.seen * weight))
        image = scipy.linalg.solve_triangular(self.demand.whitener, witness, trans="T", check_finite=False)
        root = self.demand.root
        met = root.T @ image if self.joint else np.einsum("ij,ij->j", root, image)
        return float(np.sum(met**2) - np.sum(image**2))
