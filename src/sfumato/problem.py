"""The problem that a design solves: data with a known covariance, a region, and what may be learnt there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .inputs import Array, Inputs
from .noise import Noise
from .prior import Prior
from .programs.joint import explaining_root, joint_noise_factor
from .regions import Region
from .tolerance import Tolerance


@dataclass(frozen=True, eq=False)
class Look:
    """Inputs that are watched during a search, with all that does not depend on the noise."""

    points: Array
    cross: Array
    variance: Array
    floor: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Solves for the least noise at given sensitive inputs, and says what a reader of it would know."""

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    weights: Array | None

    @cached_property
    def data_covariance(self) -> Array:
        """A = K_XX + V."""
        return self.prior.covariance(self.inputs) + np.diag(self.prior.noise_variance(len(self.inputs)))

    @cached_property
    def rows_inside(self) -> Array:
        return np.asarray(self.inputs.values[self.region.contains(self.inputs.values)])

    def look(self, points: Array) -> Look:
        return Look(
            points,
            self.prior.covariance(self.inputs, points),
            self.prior.variance(points),
            self.tolerance.floor(self.prior, points),
        )

    def root(self, sensitive: Array) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX``."""
        cross = self.prior.covariance(self.inputs, sensitive)
        return explaining_root(cross, self.tolerance.matrix(self.prior, sensitive))

    def noise(self, root: Array, tightening: float) -> Noise:
        """The least noise for Δ′ = ``tightening`` · Δ."""
        return self.noise_above(root @ root.T / tightening)

    def noise_above(self, G: Array) -> Noise:
        """The least noise with ``Σ ⪰ G − A``.

        Where A is singular to working precision, round-off decides the smallest directions of M; a shift that is far
        above it and far below anything visible is then drawn and published with the rest.
        """
        A = self.data_covariance
        largest = max(float(np.max(np.diag(G))), float(np.max(np.diag(A))))
        level = len(self.inputs) * float(np.finfo(float).eps) * largest
        shift = 0.0 if self._positive_without(64 * level) else 256 * level
        return Noise(joint_noise_factor(A, G, self.weights), shift)

    def ratios(self, noise: Noise, look: Look) -> Array:
        """std(f(s)|W) / floor(s) at the watched inputs, for a reader of data with this noise."""
        lower = scipy.linalg.cholesky(self.data_covariance + noise.covariance(), lower=True, check_finite=False)
        explained = scipy.linalg.solve_triangular(lower, look.cross, lower=True, check_finite=False)
        left = look.variance - np.einsum("ij,ij->j", explained, explained)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(look.floor > 0, np.sqrt(np.maximum(left, 0.0)) / look.floor, np.inf)

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
