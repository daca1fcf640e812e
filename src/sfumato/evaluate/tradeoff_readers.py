"""What readers know inside and outside a region under a design: expected errors that need no values, and measured ones.

The expected error is the root of the mean posterior variance, which depends on inputs, prior and noise alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
import scipy.linalg

from ..arrays import Array, Index, Mask
from ..data import Here, Inputs, as_inputs
from ..design import served_inputs
from ..errors import InputError
from ..linalg import Whitening, smallest_ellipsoid
from ..models import Prior
from ..noise import no_noise
from ..promise import Design, FractionTolerance
from ..regions import Region
from ..release import CompressedPosterior
from .rivals import exact_epsilon, noise_multiplier, prediction_map

#: δ of DP-Cloaking in a comparison, and the ε between which its noise is looked for.
DELTA = 0.01
LEAST_EPSILON, MOST_EPSILON = 1e-3, 1e6

#: Bisections of the size of its noise.
_HALVINGS = 60

#: What is added to the covariance of predictions, in units of their mean variance, so that it has a Cholesky factor.
_JITTER = 1e-10

#: At how many inputs outside and inside the region errors are averaged.
OUTSIDE, INSIDE = 400, 200

#: Parts that held-out errors are measured with.
FOLDS = 10


@dataclass(frozen=True, eq=False)
class Cloaked:
    """Readers of cloaked predictions at some inputs, for any size s of the noise.

    Cloaking blurs predictions μ = C y by N(0, s M), and s follows from ε. A reader of the blurred predictions has
    f | μ + z with Cov(f, μ) = Cov(μ) = A = K_*X (K_XX + V)⁻¹ K_X*, and keeps ``K(x,x) − [A (A + s M)⁻¹ A]_xx``. That
    grows with s, but not beyond what predictions tell whose private part is gone. In directions in which A and M are
    both diagonal, what is explained at input i is Σ_k roots[k, i]² / (1 + s sizes[k]).

    ``shape`` is the diagonal of M. ``sensitivity`` is d, the most that one private value can change.
    """

    prior_variance: Array
    roots: Array
    sizes: Array
    shape: Array
    sensitivity: float

    def variance(self, s: float) -> Array:
        """What a reader does not know, at each input."""
        explained = (1.0 / (1.0 + s * self.sizes)) @ self.roots**2
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
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def cloaked(prior: Prior, inputs: Inputs, private: Mask, points: Array, sensitivity: float) -> Cloaked:
    """Cloaking of the predictions at ``points``, with the rows ``private`` protected."""
    prediction = prediction_map(prior, inputs, points)
    predicted = prediction.matrix @ prior.covariance(inputs, points)
    predicted = (predicted + predicted.T) / 2
    predicted[np.diag_indices_from(predicted)] += _JITTER * float(np.mean(np.diag(predicted)))
    shape = smallest_ellipsoid(prediction.matrix[:, private]).matrix()
    # A = L Lᵀ and L⁻¹ M L⁻ᵀ = U diag(sizes) Uᵀ: then (A + sM)⁻¹ is diagonal for every s
    lower = scipy.linalg.cholesky(predicted, lower=True, check_finite=False)
    half = scipy.linalg.solve_triangular(lower, shape, lower=True, check_finite=False)
    inner = scipy.linalg.solve_triangular(lower, half.T, lower=True, check_finite=False)
    sizes, vectors = scipy.linalg.eigh((inner + inner.T) / 2, check_finite=False)
    # L⁻¹ A = Lᵀ
    return Cloaked(
        prior.variance(points), vectors.T @ lower.T, np.maximum(sizes, 0.0), np.diag(shape).copy(), sensitivity
    )


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
    inside = points if points is not None else region.probes(INSIDE, sample, batch=0)
    if inputs.dimension == 1:
        low, high = float(sample.values.min()), float(sample.values.max())
        spread = np.linspace(low, high, OUTSIDE + INSIDE)[:, None]
    else:
        spread = _rows_and_between(sample.values[~region.contains(sample.values)])
    return Places(np.asarray(spread[~region.contains(spread)]), np.asarray(inside[:: max(1, len(inside) // INSIDE)]))


def places_to_serve(inputs: Inputs, region: Region, serve: Any) -> Places:
    """The same, but outside those of the inputs ``serve`` that lie there, where they (or a region) are given."""
    places = places_to_look(inputs, region)
    if serve is None or region.is_everywhere:
        return places
    given = served_inputs(serve, None, inputs, region).places
    outside = given[~region.contains(given)]
    if not len(outside):
        raise InputError("serve has no inputs outside the region, where costs are told; give some, or leave it out.")
    return Places(outside, places.inside)


def _rows_and_between(rows: Array) -> Array:
    if len(rows) < 2:
        return rows
    size = np.ptp(rows, axis=0)
    scaled = rows / np.where(size > 0, size, 1.0)
    _, near = scipy.spatial.cKDTree(scaled).query(scaled, k=2)
    both = np.vstack([rows, (rows + rows[near[:, 1]]) / 2])
    return both[np.unique(np.linspace(0, len(both) - 1, min(len(both), OUTSIDE)).astype(np.intp))]


def plain_design(prior: Prior, inputs: Inputs, region: Region) -> Design:
    """The data as they are: no noise, and a tolerance that nobody relies on."""
    return Design(prior, inputs, region, FractionTolerance(0.5), "points", inputs.values[:0], no_noise(len(inputs)))


def everything(design: Design) -> Design:
    """The same rows without noise."""
    return replace(design, noise=design.noise.none_at(design.inputs))


def without_rows(design: Design, kept: Mask) -> Design:
    """The rows ``kept`` alone, without noise."""
    inputs = design.inputs.select(kept)
    prior = design.prior
    if not isinstance(prior.noise, float):
        prior = replace(prior, noise=prior.noise[kept])
    return replace(design, prior=prior, inputs=inputs, noise=design.noise.none_at(inputs))


def variance_of(design: Design) -> Callable[[Array], Array]:
    """The posterior variance at any points (from above, where the noise is compressed), for readers of ``design``."""
    prior, inputs = design.prior, design.inputs
    if len(inputs) == 0:
        return prior.variance
    if design.noise.compressed:
        mean = prior.mean_at(inputs)
        reader = CompressedPosterior.of(design, mean, 0.0, Here(), None, lambda rows: None)
        return lambda points: np.asarray(reader.predict(as_inputs(points, like=inputs)).std ** 2)
    return prior.condition(inputs, prior.mean_at(inputs), _blur(design)).variance


def variances(design: Design, points: Array) -> Array:
    """The posterior variance at each of ``points`` (from above, where the noise is compressed)."""
    return variance_of(design)(points)


def record_variances(design: Design, rows: Index) -> Array:
    """The variance that a reader keeps of the records of ``rows``: Var(y_i|W), with M and all its rows in memory."""
    prior, inputs = design.prior, design.inputs
    covariance = prior.covariance(inputs)
    covariance[np.diag_indices_from(covariance)] += prior.noise_variance(len(inputs))
    whitening = Whitening.of(covariance + design.noise.drawn_covariance()).without(design.noise.suppressed)
    explained = whitening.apply(covariance[:, rows])
    return np.asarray(np.maximum(np.diag(covariance)[rows] - np.sum(explained**2, axis=0), 0.0))


def measured_error(design: Design, y: Array, tested: Index) -> float:
    """The held-out error against ``y`` at the rows numbered ``tested``, in the mean over the noise that may be drawn.

    Each tenth of them is predicted from the published values of all other rows. The errors of y itself are in it.
    """
    if design.noise.compressed or not len(tested) or len(tested) == len(design.inputs) == 1:
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
