"""The problem that a design solves: data with a known covariance, a region, and what may be learnt there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .inputs import Array, Inputs, Mask
from .linalg.triangular import solve_lower
from .noise import Noise
from .prior import Prior
from .programs.joint import explaining_root, joint_noise_factor
from .regions import Region
from .tolerance import Tolerance

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Look:
    """Inputs that are watched during a search, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then ``own``:
    what is explained without any noise).
    """

    points: Array
    block: Array
    own: Array | None
    budget: Array

    def usage(self, explained: Array) -> Array:
        """What a release explains, as a share of what it may: the floor is kept where this is at most 1."""
        return explained / self.budget

    def where(self, keep: Mask) -> Look:
        own = None if self.own is None else self.own[keep]
        return Look(self.points[keep], self.block[:, keep], own, self.budget[keep])

    def joined(self, other: Look) -> Look:
        return Look(
            np.vstack([self.points, other.points]),
            np.hstack([self.block, other.block]),
            None if self.own is None or other.own is None else np.concatenate([self.own, other.own]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Problem:
    """Solves for the least noise at given sensitive inputs, and says what a reader of it would know."""

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    weights: Array | None = None

    @cached_property
    def data_covariance(self) -> Array:
        """A = K_XX + V."""
        return self.prior.covariance(self.inputs) + np.diag(self.prior.noise_variance(len(self.inputs)))

    @cached_property
    def rows_inside(self) -> Array:
        return np.asarray(self.inputs.values[self.region.contains(self.inputs.values)])

    @cached_property
    def data_root(self) -> Array | None:
        """The lower Cholesky factor of A where A is well-conditioned."""
        least = float(np.min(self.prior.noise_variance(len(self.inputs))))
        if least <= WELL_CONDITIONED * float(np.max(np.diag(self.data_covariance))):
            return None
        return np.asarray(scipy.linalg.cholesky(self.data_covariance, lower=True, check_finite=False))

    def root(self, sensitive: Array) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX``."""
        cross = self.prior.covariance(self.inputs, sensitive)
        return explaining_root(cross, self.tolerance.matrix(self.prior, sensitive))

    def noise(self, root: Array, tightening: float) -> Noise:
        """The least noise for Δ′ = ``tightening`` · Δ."""
        return self.noise_above(root @ root.T / tightening, rank=root.shape[1])

    def noise_above(self, G: Array, rank: int | None = None) -> Noise:
        """The least noise with ``Σ ⪰ G − A``.

        Where A is singular to working precision, round-off decides the smallest directions of M; a shift that is far
        above it and far below anything visible is then drawn and published with the rest.
        """
        A = self.data_covariance
        largest = max(float(np.max(np.diag(G))), float(np.max(np.diag(A))))
        level = len(self.inputs) * float(np.finfo(float).eps) * largest
        factor = joint_noise_factor(A, G, self.weights, rank)
        if self._positive_without(64 * level):
            return Noise(factor)
        # directions below the round-off of B come from nowhere, and the shift covers them
        return Noise(factor[:, np.sum(factor**2, axis=0) > level], 256 * level)

    def look(self, points: Array) -> Look:
        """Watch ``points``."""
        block, own = self.prior.covariance(self.inputs, points), None
        if self.data_root is not None:
            block = solve_lower(self.data_root, block)
            own = np.einsum("ij,ij->j", block, block)
        return Look(points, block, own, self.tolerance.budget(self.prior, points))

    def look_where_needed(self, points: Array, limit: float) -> Look:
        """Watch those of ``points`` where data without noise would use more than ``limit``; noise only lowers that."""
        look = self.look(points)
        if look.own is None:
            return look
        needed = look.usage(look.own) > limit
        # leaving out a few would cost more than it saves
        return look if 2 * np.sum(needed) > len(needed) else look.where(needed)

    def usage(self, noise: Noise, look: Look) -> Array:
        """What is explained at the watched inputs by data with this noise, as a share of what may be."""
        if look.own is None or self.data_root is None:
            total = self.data_covariance + noise.covariance()
            lower = scipy.linalg.cholesky(total, lower=True, check_finite=False)
            explained = solve_lower(lower, look.block)
            return look.usage(np.einsum("ij,ij->j", explained, explained))
        # Woodbury: kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|² for e = L⁻¹k and H = L⁻¹F
        H = solve_lower(self.data_root, noise.factor.copy())
        inner = scipy.linalg.cholesky(np.eye(H.shape[1]) + H.T @ H, lower=True, check_finite=False)
        saved = solve_lower(inner, H.T @ look.block)
        return look.usage(look.own - np.einsum("ij,ij->j", saved, saved))

    def trace_by_tightening(self, noise: Noise) -> float:
        """By how much (a share) the tolerance can be tightened while the trace grows by the same share of itself.

        ``d Tr (G/t − A)⁺ = −Tr(P G) dt`` with P the projector on the range of Σ, and ``Tr P G = Tr Σ + Tr P A``.
        """
        if noise.rank == 0:
            return 0.0
        directions = noise.factor / np.linalg.norm(noise.factor, axis=0)
        return noise.trace / (noise.trace + float(np.sum(directions * (self.data_covariance @ directions))))

    def rough_usage(self, root: Array, look: Look) -> Array:
        """Nearly the ``usage`` of the least noise, without an n × n eigenproblem; for a well-conditioned A.

        The noise ``L (Ũ Ũᵀ − I)⁺ Lᵀ``, ``Ũ = L⁻¹U``, keeps the joint promise too: it is the one with the least Tr A⁻¹Σ.
        """
        assert look.own is not None
        assert self.data_root is not None
        whitened = solve_lower(self.data_root, root)
        values, vectors = scipy.linalg.eigh(whitened.T @ whitened, check_finite=False)
        keep = values > 1.0
        directions = whitened @ (vectors[:, keep] / np.sqrt(values[keep]))
        saved = (1.0 - 1.0 / values[keep]) @ (directions.T @ look.block) ** 2
        return look.usage(look.own - saved)

    def _positive_without(self, level: float) -> bool:
        """Whether A stays positive definite when ``level`` is taken from its diagonal."""
        if float(np.min(self.prior.noise_variance(len(self.inputs)))) > 2 * level:
            return True
        reduced = self.data_covariance.copy()
        reduced[np.diag_indices_from(reduced)] -= level
        try:
            scipy.linalg.cholesky(reduced, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        return True
