"""Standard differential privacy for functions (Hall, Rinaldo and Wasserman 2013), applied to a GP's prediction.

The prediction is a function in the space H of the kernel: μ = m + Σ_i a_i K(·, x_i) with a = A⁻¹ (y − m(X)),
A = K_XX + V. If the private output y_j moves by at most d, μ moves by at most d g_j, g_j = K(·, X) A⁻¹ e_j, and

    ‖g_j‖_H² = e_jᵀ A⁻¹ K_XX A⁻¹ e_j.

Let Δ = d max_j ‖g_j‖_H over the private rows. For any inputs T and any g in H, g(T)ᵀ K_TT⁺ g(T) ≤ ‖g‖_H² (the left side
is the norm of the smallest function with these values). So μ + Δ σ G with G ~ GP(0, K) and σ the multiplier of
dp_noise.py is (ε, δ)-differentially private at all inputs together, before anyone says at which: it hides the whole
function, where DP-Cloaking hides the values that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from ..inputs import Array, Mask
from ..noise import CorrelatedNoise
from ..prior import Prior
from .cloaking import checked_sensitivity
from .dp_draw import NoiseSource, NoisyPrediction, draw_once
from .dp_noise import Calibration, exact_epsilon, noise_multiplier
from .prediction_map import PredictionMap, prediction_map, rows_inside, solve_positive


@dataclass(frozen=True, eq=False)
class StandardDP:
    """Noise (Δ σ)² K(X_new, X_new) on predictions; ``function_sensitivity`` is Δ, ``multiplier`` is σ.

    Guarantee: one draw is (ε, δ)-differentially private for a change of any one private output by at most
    ``sensitivity``. The inputs, the prior and the public outputs are taken as known to everyone.
    """

    prediction: PredictionMap
    private: Mask
    epsilon: float
    delta: float
    sensitivity: float
    calibration: Calibration
    multiplier: float
    function_sensitivity: float
    noise: CorrelatedNoise
    _source: NoiseSource = field(default_factory=NoiseSource, repr=False)

    @property
    def exact_epsilon(self) -> float:
        """The ε that one draw really spends at this δ."""
        return exact_epsilon(self.multiplier, self.delta)

    def noise_covariance(self) -> Array:
        return self.noise.covariance()

    def draw(self, y: Any, *, unsafe_seed: int | None = None) -> NoisyPrediction:
        """The prediction from ``y`` with noise, drawn once; ``unsafe_seed`` is for experiments."""
        return draw_once(self.prediction, self.noise, self._source, y, unsafe_seed)


def standard_dp(
    prior: Prior,
    X: Any,
    X_new: Any,
    private: Any,
    *,
    epsilon: float,
    delta: float,
    sensitivity: float,
    calibration: Calibration = "hall",
) -> StandardDP:
    """The noise of standard differential privacy for predictions at ``X_new`` from outputs at ``X``.

    The arguments are those of ``cloak``. Without noise V the norm of g_j is √(K_XX⁻¹)_jj, which is large for smooth
    kernels and close rows: that is why DP-Cloaking was made.
    """
    size = checked_sensitivity(sensitivity)
    multiplier = noise_multiplier(epsilon, delta, calibration)
    prediction = prediction_map(prior, X, X_new)
    inside = rows_inside(private, prediction.inputs, "private")
    vectors, roots = _root_from_above(prior.covariance(prediction.new))
    # never above the norm but for round-off, which is then covered too
    seen = np.linalg.norm((vectors / roots).T @ prediction.matrix[:, inside], axis=0)
    norm = float(max(np.max(function_norms(prior, prediction, inside)), np.max(seen)))
    return StandardDP(
        prediction=prediction,
        private=inside,
        epsilon=float(epsilon),
        delta=float(delta),
        sensitivity=size,
        calibration=calibration,
        multiplier=multiplier,
        function_sensitivity=size * norm,
        noise=CorrelatedNoise(size * norm * multiplier * vectors * roots),
    )


def function_norms(prior: Prior, prediction: PredictionMap, inside: Mask) -> Array:
    """‖g_j‖_H for the chosen rows: how far μ moves as a function when y_j moves by 1."""
    inputs = prediction.inputs
    kernel = prior.covariance(inputs)
    noise = np.diag(prior.noise_variance(len(inputs)))
    responses = solve_positive(kernel + noise, np.eye(len(inputs))[:, inside])
    squares = np.einsum("ij,ij->j", responses, kernel @ responses)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _root_from_above(covariance: Array) -> tuple[Array, Array]:
    """Eigenvectors and roots of eigenvalues, those lost in round-off raised to its size: more noise, never less."""
    values, vectors = scipy.linalg.eigh(covariance, check_finite=False)
    floor = covariance.shape[0] * float(np.finfo(np.float64).eps) * float(values[-1])
    return np.asarray(vectors), np.asarray(np.sqrt(np.maximum(values, floor)))
