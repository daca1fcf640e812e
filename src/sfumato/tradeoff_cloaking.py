"""DP-Cloaking beside a floor: how much of its noise it takes until no reader gets below, and which ε that is.

Cloaking blurs predictions μ = C y at chosen inputs by N(0, s M), and s follows from ε. A reader of the blurred
predictions has f | μ + z with Cov(f, μ) = Cov(μ) = A = K_*X (K_XX + V)⁻¹ K_X*, and keeps
``K(x,x) − [A (A + s M)⁻¹ A]_xx``. That grows with s, but not beyond what predictions tell whose private part is gone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .inputs import Array, Inputs, Mask
from .prior import Prior
from .rivals.dp_noise import exact_epsilon, noise_multiplier
from .rivals.ellipsoid import smallest_ellipsoid
from .rivals.prediction_map import prediction_map

#: δ of the comparison, and the ε between which noise is looked for.
DELTA = 0.01
LEAST_EPSILON, MOST_EPSILON = 1e-3, 1e6

_STEPS = 60
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Cloaked:
    """Readers of cloaked predictions at some inputs, for any size s of the noise.

    ``shape`` is the diagonal of M; what s explains at input i is Σ_k parts[k, i]² / (1 + s sizes[k]).
    ``sensitivity`` is d, the most that one private value can change.
    """

    prior_variance: Array
    parts: Array
    sizes: Array
    shape: Array
    sensitivity: float

    def variance(self, s: float) -> Array:
        """What a reader does not know, at each input."""
        explained = (1.0 / (1.0 + s * self.sizes)) @ self.parts**2
        return np.maximum(self.prior_variance - explained, 0.0)

    def epsilon(self, s: float) -> float:
        """The least ε of noise of this size; infinite without any."""
        return exact_epsilon(math.sqrt(s) / self.sensitivity, DELTA)

    def least_noise(self, floor: Array, inside: Mask) -> float | None:
        """The least s with which no reader gets below ``floor`` inside; None where there is none."""

        def enough(s: float) -> bool:
            return bool(np.all(self.variance(s)[inside] >= floor**2 * (1 - 1e-9)))

        if enough(0.0):
            return 0.0
        low, high = (
            (self.sensitivity * noise_multiplier(epsilon, DELTA)) ** 2 for epsilon in (MOST_EPSILON, LEAST_EPSILON)
        )
        if not enough(high):
            return None
        for _ in range(_STEPS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def cloaked(prior: Prior, inputs: Inputs, private: Mask, points: Array, sensitivity: float) -> Cloaked:
    """Cloaking of the predictions at ``points``, with the rows ``private`` protected."""
    prediction = prediction_map(prior, inputs, points)
    told = prediction.matrix @ prior.covariance(inputs, points)
    told = (told + told.T) / 2
    told[np.diag_indices_from(told)] += _JITTER * float(np.mean(np.diag(told)))
    shape = smallest_ellipsoid(prediction.matrix[:, private]).matrix()
    # A = L Lᵀ and L⁻¹ M L⁻ᵀ = U diag(sizes) Uᵀ: then (A + sM)⁻¹ is diagonal for every s
    lower = scipy.linalg.cholesky(told, lower=True, check_finite=False)
    half = scipy.linalg.solve_triangular(lower, shape, lower=True, check_finite=False)
    inner = scipy.linalg.solve_triangular(lower, half.T, lower=True, check_finite=False)
    sizes, vectors = scipy.linalg.eigh((inner + inner.T) / 2, check_finite=False)
    # L⁻¹ A = Lᵀ
    return Cloaked(
        prior.variance(points), vectors.T @ lower.T, np.maximum(sizes, 0.0), np.diag(shape).copy(), sensitivity
    )
