"""Releases of the satellite: one mechanism, many seeds, and what readers make of each of them.

The noise of a mechanism has one covariance and predictions are linear in what is published, so that the releases of all
seeds are predicted at once. Published values are not rounded here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import GuaranteeWarning
from ..inputs import Array
from ..mechanism import Mechanism, protect
from ..noise import Noise
from ..prior import Prior
from ..rivals.cloaking import Cloak, cloak
from ..rivals.dp_draw import unsafe_normals
from ..rivals.prediction_map import solve_positive
from .satellite import STATES, training_grid
from .satellite_models import REGION, Models, Settings, hidden
from .satellite_stationary import NaiveReaders, by_adam, most_likely

Cover = Literal["auto", "rows"]

DELTA = 0.01


@dataclass(frozen=True, eq=False)
class Cell:
    """One output at one level: the mechanism, and what it published for each seed (a row of ``published``)."""

    state: str
    alpha: float
    cover: Cover
    mechanism: Mechanism
    published: Array
    seconds: float

    def means_at(self, at: Array) -> Array:
        """What readers expect, a row for each seed and a column for each time of ``at``."""
        return predict_all(self.mechanism.prior, self.mechanism.noise, self.published, at)

    def std_at(self, at: Array) -> Array:
        """How well readers know f at ``at``: the same for every seed."""
        prior, noise = self.mechanism.prior, self.mechanism.noise
        total = np.diag(prior.noise_variance(noise.rows)) + noise.covariance()
        return np.asarray(np.sqrt(prior.condition(training_grid(), self.published[0], total).variance(at)))


def released(prior: Prior, times: Array, y: Array, alpha: float, cover: Cover, state: str, seeds: int) -> Cell:
    """Design the noise for outputs ``y`` and release them with the seeds 0, 1, …, ``seeds`` − 1."""
    start = time.perf_counter()
    mechanism = design(prior, times, alpha, cover)
    first = y + draws(mechanism.noise, state, 1)
    predict_all(prior, mechanism.noise, first, times)
    seconds = time.perf_counter() - start
    return Cell(state, alpha, cover, mechanism, y + draws(mechanism.noise, state, seeds), seconds)


def naive_fit(settings: Settings) -> Callable[[Array, Array], NaiveReaders]:
    """How the naive reader of Stationary fits times and published values."""
    return most_likely if settings == "paper" else by_adam


def predict_all(prior: Prior, noise: Noise, published: Array, at: Array) -> Array:
    """The posterior means at ``at`` from each row of ``published``, data at the times of the study with ``noise``."""
    times = training_grid()
    blur = np.diag(prior.noise_variance(len(times))) + noise.covariance()
    matrix = solve_positive(prior.covariance(times) + blur, prior.covariance(times, at))
    return np.asarray(prior.mean_at(at) + (published - prior.mean_at(times)) @ matrix)


def draws(noise: Noise, state: str, seeds: int) -> Array:
    """One draw of ``noise`` a row, for each seed; the outputs have different noise, the levels the same normals."""
    count, shift = noise.normals_needed, STATES.index(state)
    normals = [unsafe_normals(len(STATES) * seed + shift, count) for seed in range(seeds)]
    return np.asarray(noise.draw(np.array(normals).T).T)


def design(prior: Prior, times: Array, alpha: float, cover: Cover) -> Mechanism:
    """The privacy-aware mechanism; the certificate, not a warning, tells what the rows alone leave open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        return protect(prior, times, REGION, alpha, cover=cover, progress=False)


def cloaked(settings: Settings, model: Models, times: Array, at: Array, epsilon: float) -> Cloak:
    """The rival's noise for predictions at ``at``, with the multiplier of Hall et al. that both texts use."""
    return cloak(
        model.cloaking,
        times,
        at,
        hidden(times),
        epsilon=epsilon,
        delta=DELTA,
        sensitivity=model.unit,
        matrix="all" if settings == "paper" else "private",
        calibration="hall",
    )
