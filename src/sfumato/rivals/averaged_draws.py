"""The mean of many differentially private draws, as the paper's scripts score it, with the budget it really spends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from .cloaking import Cloak, epsilon_of_draws
from .dp_draw import NoisyPrediction, noisy_prediction, unsafe_normals


@dataclass(frozen=True, eq=False)
class AveragedPrediction:
    """The mean of ``draws`` draws; whoever can publish it has spent ``effective_epsilon``, not ``nominal_epsilon``."""

    prediction: NoisyPrediction
    draws: int
    nominal_epsilon: float
    effective_epsilon: float


def average_as_the_scripts_did(made: Cloak, y: Any, draws: int = 100, *, unsafe_seed: int) -> AveragedPrediction:
    """The mean of ``draws`` independent draws of one cloak: for reproducing the paper, never for publishing.

    The mean of k draws is a draw with σ/√k, so its exact ε at the same δ follows from the curve of dp_noise.py: this is
    composition without any loss. It takes a seed because an honest cloak draws only once.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise InputError(f"draws is {draws!r}; give a whole number of draws, at least 1.")
    noise = made.noise
    exact = made.prediction.predict(y)
    normals = unsafe_normals(unsafe_seed, int(draws) * noise.normals_needed).reshape(int(draws), -1)
    mean = exact + noise.draw(normals.mean(axis=0))
    return AveragedPrediction(
        prediction=noisy_prediction(made.prediction, mean, noise.variance() / draws, 0.0, True),
        draws=int(draws),
        nominal_epsilon=made.epsilon,
        effective_epsilon=epsilon_of_draws(made, int(draws)),
    )
