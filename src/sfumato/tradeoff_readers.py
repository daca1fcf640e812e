"""What readers know inside and outside a region under a design: expected errors that need no values, and measured ones.

The expected error is the root of the mean posterior variance, which depends on inputs, prior and noise alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy.spatial import cKDTree

from .compressed_posterior import CompressedPosterior
from .design import Design
from .engine.here import Here
from .errors import InputError
from .functional_noise import FunctionalNoise
from .inputs import Array, Index, Inputs, Mask, as_inputs
from .noise import Noise, no_noise
from .prior import Prior
from .regions import Region
from .tolerance import Tolerance

#: At how many inputs outside and inside the region errors are averaged.
OUTSIDE, INSIDE = 400, 200

#: Parts that held-out errors are measured with.
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Places:
    """The inputs at which readers are looked at, outside and inside the region."""

    outside: Array
    inside: Array

    @property
    def all(self) -> Array:
        return np.vstack([self.outside, self.inside])

    def split(self, values: Array) -> tuple[Array, Array]:
        """``values`` at all of them, as those outside and those inside."""
        return values[: len(self.outside)], values[len(self.outside) :]


def places_to_look(inputs: Inputs, region: Region, X_test: Any = None) -> Places:
    """``X_test``, or a spread of inputs that follows the data; ``region`` is bound to ``inputs``.

    Over one input that is an even grid of their range; over several it is the rows outside, and halfway from each to
    the row next to it. Inside it is a spread of the region, wherever the data are.
    """
    if X_test is not None:
        given = as_inputs(X_test, "X_test", like=inputs).values
        within = region.contains(given)
        if not within.any():
            raise InputError(
                f"X_test has {len(given)} rows, none of them in the region; give some inside too, or leave it out."
            )
        return Places(given[~within], given[within])
    sample = inputs.sample
    points = region.points
    inside = points if points is not None else region.candidates(INSIDE, sample, turn=0)
    if inputs.dimension == 1:
        low, high = float(sample.values.min()), float(sample.values.max())
        spread = np.linspace(low, high, OUTSIDE + INSIDE)[:, None]
    else:
        spread = _rows_and_between(sample.values[~region.contains(sample.values)])
    return Places(np.asarray(spread[~region.contains(spread)]), np.asarray(inside[:: max(1, len(inside) // INSIDE)]))


def _rows_and_between(rows: Array) -> Array:
    if len(rows) < 2:
        return rows
    size = np.ptp(rows, axis=0)
    scaled = rows / np.where(size > 0, size, 1.0)
    _, near = cKDTree(scaled).query(scaled, k=2)
    both = np.vstack([rows, (rows + rows[near[:, 1]]) / 2])
    return both[np.unique(np.linspace(0, len(both) - 1, min(len(both), OUTSIDE)).astype(np.intp))]


def plain_design(prior: Prior, inputs: Inputs, region: Region, tolerance: Tolerance) -> Design:
    """The data as they are: no noise, no promise."""
    return Design(prior, inputs, region, tolerance, "points", inputs.values[:0], no_noise(len(inputs)))


def everything(design: Design) -> Design:
    """The same rows without noise."""
    return replace(design, noise=_nothing_like(design.noise, design.inputs))


def without_rows(design: Design, kept: Mask) -> Design:
    """The rows ``kept`` alone, without noise."""
    inputs = design.inputs.select(kept)
    prior = design.prior
    if not isinstance(prior.noise, float):
        prior = replace(prior, noise=prior.noise[kept])
    return replace(design, prior=prior, inputs=inputs, noise=_nothing_like(design.noise, inputs))


def _nothing_like(noise: Noise, inputs: Inputs) -> Noise:
    """No noise, in the form that readers of ``noise`` are computed with."""
    if isinstance(noise, FunctionalNoise):
        return replace(noise, mixing=np.zeros_like(noise.mixing), inputs=inputs, known_trace=0.0)
    return no_noise(len(inputs))


def variances(design: Design, points: Array) -> Array:
    """The posterior variance at each of ``points`` (from above, where the noise is compressed)."""
    prior, inputs = design.prior, design.inputs
    if len(inputs) == 0:
        return prior.variance(points)
    if isinstance(design.noise, FunctionalNoise):
        mean = prior.mean_at(inputs)
        reader = CompressedPosterior.of(design, mean, 0.0, Here(), None, lambda rows: None)
        return np.asarray(reader.predict(as_inputs(points, like=inputs)).std ** 2)
    return prior.condition(inputs, prior.mean_at(inputs), _blur(design)).variance(points)


def measured_error(design: Design, y: Array, tested: Index) -> float:
    """The held-out error against ``y`` at the rows numbered ``tested``, in the mean over the noise that may be drawn.

    Each tenth of them is predicted from the published values of all other rows. The errors of y itself are in it.
    """
    if isinstance(design.noise, FunctionalNoise) or not len(tested) or len(tested) == len(design.inputs) == 1:
        return float("nan")
    prior, noise = design.prior, design.noise.covariance()
    covariance, mean = prior.covariance(design.inputs), prior.mean_at(design.inputs)
    total = covariance + _blur(design)
    squares = []
    for fold in range(min(FOLDS, len(tested))):
        out = tested[fold::FOLDS]
        rest = np.setdiff1d(np.arange(len(y)), out)
        if not rest.size:
            return float("nan")
        weights = scipy.linalg.solve(total[np.ix_(rest, rest)], covariance[np.ix_(rest, out)], assume_a="sym").T
        bias = mean[out] + weights @ (y[rest] - mean[rest]) - y[out]
        squares.append(bias**2 + np.einsum("ij,jk,ik->i", weights, noise[np.ix_(rest, rest)], weights, optimize=True))
    return float(np.sqrt(np.mean(np.concatenate(squares))))


def _blur(design: Design) -> Array:
    rows = len(design.inputs)
    blur = design.noise.covariance()
    blur[np.diag_indices(rows)] += design.prior.noise_variance(rows)
    return blur
