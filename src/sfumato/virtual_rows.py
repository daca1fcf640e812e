"""The p virtual rows that stand for all rows of the data, in units in which each of them costs the same.

With ``ΦᵀCΦ = E Eᵀ`` the virtual data are ``Eᵀ(u + noise)``. Noise of covariance T on them is noise ``Φ S Φᵀ`` on the
rows, ``S = E⁻ᵀ T E⁻¹``, and ``Tr C ΦSΦᵀ = Tr T``. A reader who is given what the features leave out learns from
all rows exactly what the virtual rows tell: ``K_SX (A′ + Σ)⁻¹ K_XS`` is the same for both, ``A′ = ΦΦᵀ + V ⪯ A``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .inputs import Array
from .linalg.triangular import solve_lower
from .summary import Summary, inverse


@dataclass(frozen=True, eq=False)
class VirtualRows:
    """Covariances of the virtual rows, as readers with each prior see them."""

    summary: Summary

    def __len__(self) -> int:
        return len(self.summary)

    @cached_property
    def basis(self) -> Array:
        """E, lower triangular."""
        level = float(np.trace(self.summary.cost)) / float(np.trace(self.summary.plain))
        cost = self.summary.cost + np.diag(level * self.summary.allowance)
        return np.asarray(scipy.linalg.cholesky(cost, lower=True, check_finite=False))

    def noise(self, place: int) -> Array:
        """V as the virtual rows have it: ``Eᵀ(ΦᵀV⁻¹Φ)⁻¹E``."""
        known = self.summary.noises[place]
        if known is not None and "cost" not in self.summary.totals:
            return known * np.eye(len(self))
        half = solve_lower(self.basis, self.summary.information(place))
        return inverse(_symmetric(solve_lower(self.basis, half.T)))

    def spread(self, place: int) -> Array:
        """``E⁻¹(ΦᵀC V CΦ)E⁻ᵀ``: at least ``noise``, and the same where V and C are multiples of the identity."""
        half = solve_lower(self.basis, self.summary.spread(place))
        return _symmetric(solve_lower(self.basis, half.T))

    def process(self, place: int) -> Array:
        """The covariance of Eᵀu: what ΦΦᵀ is for the rows."""
        features, own = self.summary.features[place], self.basis[self.summary.slices[place]]
        return np.asarray(own.T @ (features.shares[:, None] * own))

    def cross(self, place: int, values: Array) -> Array:
        """The covariance of the virtual rows with f, as far as the features have it; ``values`` has φ in its rows."""
        features, own = self.summary.features[place], self.basis[self.summary.slices[place]]
        return np.asarray(own.T @ (values * features.shares).T)

    def coefficients(self, factor: Array) -> Array:
        """c with ``Σ = Φ c cᵀ Φᵀ`` for noise ``factor · factorᵀ`` on the virtual rows.

        Symmetric, so that it changes little where the sums change little: the same key must give the same noise
        wherever they are taken, and the columns of a factor could turn.
        """
        own = scipy.linalg.solve_triangular(self.basis, factor, lower=True, trans="T", check_finite=False)
        vectors, values, _ = scipy.linalg.svd(own, full_matrices=False, check_finite=False)
        return np.asarray((vectors * values) @ vectors.T)

    def mixing(self, coefficients: Array) -> Array:
        """C with ``k(x, Z) C = φ(x)ᵀ c``."""
        blocks = [
            scipy.linalg.solve_triangular(f.lower, coefficients[own], lower=True, trans="T", check_finite=False)
            for f, own in zip(self.summary.features, self.summary.slices, strict=True)
        ]
        return np.vstack(blocks)


def _symmetric(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2.0)
