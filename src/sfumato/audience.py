"""Readers who hold one prior: what they could learn from data with a given noise, as fast as a search needs it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .inputs import Array, Inputs, Mask
from .linalg.triangular import solve_lower
from .noise import Noise
from .prior import Prior
from .programs.joint import explaining_root
from .tolerance import Tolerance

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Watch:
    """Inputs that one audience is watched at, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then ``own``:
    what is explained without any noise). ``budget`` is what may be explained.
    """

    block: Array
    own: Array | None
    budget: Array

    def usage(self, explained: Array) -> Array:
        """What a release explains, as a share of what it may: the floor is kept where this is at most 1."""
        return explained / self.budget

    def where(self, keep: Mask) -> Watch:
        return Watch(self.block[:, keep], None if self.own is None else self.own[keep], self.budget[keep])

    def joined(self, other: Watch) -> Watch:
        return Watch(
            np.hstack([self.block, other.block]),
            None if self.own is None or other.own is None else np.concatenate([self.own, other.own]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Audience:
    """All readers who hold ``prior``, and what they may learn."""

    prior: Prior
    inputs: Inputs
    tolerance: Tolerance

    @cached_property
    def data_covariance(self) -> Array:
        """A = K_XX + V."""
        covariance = self.prior.covariance(self.inputs)
        covariance[np.diag_indices_from(covariance)] += self.prior.noise_variance(len(self.inputs))
        return covariance

    @cached_property
    def data_root(self) -> Array | None:
        """The lower Cholesky factor of A where A is well-conditioned."""
        least = float(np.min(self.prior.noise_variance(len(self.inputs))))
        if least <= WELL_CONDITIONED * float(np.max(np.diag(self.data_covariance))):
            return None
        return np.asarray(scipy.linalg.cholesky(self.data_covariance, lower=True, check_finite=False))

    def root(self, sensitive: Array, joint: bool) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX`` (joint), or the columns ``k_s/√δ_s`` (each value by itself)."""
        cross = self.prior.covariance(self.inputs, sensitive)
        if joint:
            return explaining_root(cross, self.tolerance.matrix(self.prior, sensitive))
        return cross / np.sqrt(self.tolerance.budget(self.prior, sensitive))

    def watch(self, points: Array) -> Watch:
        block, own = self.prior.covariance(self.inputs, points), None
        if self.data_root is not None:
            block = solve_lower(self.data_root, block)
            own = np.einsum("ij,ij->j", block, block)
        budget = self.tolerance.budget(self.prior, points)
        if np.any(budget <= 0):
            # a floor that varies may pass the prior's own spread between the inputs that were looked at first
            self.tolerance.check(self.prior, points, self.inputs.names)
        return Watch(block, own, budget)

    def usage(self, noise: Noise, watch: Watch) -> Array:
        """What is explained at the watched inputs by data with this noise, as a share of what may be."""
        if watch.own is None or self.data_root is None:
            total = self.data_covariance + noise.covariance()
            explained = solve_lower(scipy.linalg.cholesky(total, lower=True, check_finite=False), watch.block)
            return watch.usage(np.einsum("ij,ij->j", explained, explained))
        H = solve_lower(self.data_root, noise.factor)
        if 2 * H.shape[1] > H.shape[0]:
            inner = scipy.linalg.cholesky(np.eye(H.shape[0]) + H @ H.T, lower=True, check_finite=False)
            explained = solve_lower(inner, watch.block)
            return watch.usage(np.einsum("ij,ij->j", explained, explained))
        # Woodbury: kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|² for e = L⁻¹k and H = L⁻¹F
        inner = scipy.linalg.cholesky(np.eye(H.shape[1]) + H.T @ H, lower=True, check_finite=False)
        saved = solve_lower(inner, H.T @ watch.block)
        return watch.usage(watch.own - np.einsum("ij,ij->j", saved, saved))

    def rough_usage(self, root: Array, watch: Watch) -> Array:
        """Nearly the ``usage`` of the least noise, without an n × n eigenproblem; for a well-conditioned A.

        The noise ``L (Ũ Ũᵀ − I)⁺ Lᵀ``, ``Ũ = L⁻¹U``, keeps the joint promise too: it is the one with the least Tr A⁻¹Σ.
        """
        assert watch.own is not None
        assert self.data_root is not None
        whitened = solve_lower(self.data_root, root)
        values, vectors = scipy.linalg.eigh(whitened.T @ whitened, check_finite=False)
        keep = values > 1.0
        directions = whitened @ (vectors[:, keep] / np.sqrt(values[keep]))
        saved = (1.0 - 1.0 / values[keep]) @ (directions.T @ watch.block) ** 2
        return watch.usage(watch.own - saved)

    def positive_without(self, level: float) -> bool:
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
