"""What a reader concludes from any number of rows with functional noise, with bounds for what compression costs.

The reader works with ``f ≈ φᵀu`` around their own centres, finer than the noise's. Let L(s) be the variance that they
compute for φ(s)ᵀu. The exact posterior variance is at least L(s): that would be it if what the features leave out (g)
were known. And it is at most the error that the reader's estimate really has,
``L(s) + E(g(s) − aᵀg(X))² ≤ L(s) + (√left_out(s) + √(λ |a|²))²``, with a its weights, ``|a|² ≤ L(s)/min V``, and
λ the trace of what is left out at the rows, which is at least its largest eigenvalue.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from .centres import MOST, choose_centres
from .compressed_reader import noise_coefficients
from .design import Design
from .engine.engine import Done, Engine
from .features import Features
from .functional_noise import FunctionalNoise
from .inputs import Array, Inputs, among
from .linalg.triangular import solve_lower
from .prediction import Prediction
from .prior import Prior
from .summary import Summary, summarise

_UNIT = float(np.finfo(np.float64).eps)

#: What the features may leave out at all rows together, as a share of V: about twice that is what error bars lose.
SHARE_LEFT_OUT = 0.02


@dataclass(frozen=True, eq=False)
class CompressedPosterior:
    """f given published outputs with functional noise."""

    prior: Prior
    summary: Summary
    lower: Array
    weights: Array
    least_noise: float
    error: float

    @classmethod
    def of(
        cls, design: Design, outputs: Array, resolution: float, engine: Engine, device: str | None, done: Done
    ) -> CompressedPosterior:
        """One pass over the rows. Rounding to ``resolution`` counts as noise."""
        noise, prior = design.noise, design.prior
        assert isinstance(noise, FunctionalNoise)
        rounded = replace(prior, noise=prior.noise + resolution**2 / 12)
        least = float(np.min(rounded.noise))
        wanted = SHARE_LEFT_OUT * least / len(design.inputs)
        chosen = choose_centres(prior, design.lookout, design.region, wanted, MOST, noise.centres[0], device, 0.0)
        own = Features.around(rounded, _first(chosen.places, noise.centres[0]))
        others = [
            Features.around(other, places) for other, places in zip(noise.priors[1:], noise.centres[1:], strict=True)
        ]
        summary = summarise([rounded], [own, *others], design.inputs, None, engine, device, done, outputs)
        widened = _widened(noise, len(own) - len(noise.centres[0]), own.centres)
        coefficients = noise_coefficients(widened, [own, *others])
        # u and the normals of the noise together, each with variance 1
        sources = np.zeros((len(summary), len(own) + coefficients.shape[1]))
        sources[: len(own), : len(own)] = np.diag(np.sqrt(own.shares))
        sources[:, len(own) :] = coefficients
        total = sources.T @ summary.told(0) @ sources
        error = 64 * _UNIT * np.sqrt(len(total)) * float(np.linalg.norm(total, ord=np.inf))
        total[np.diag_indices_from(total)] += 1.0
        lower = scipy.linalg.cholesky(total, lower=True, check_finite=False)
        weights = scipy.linalg.cho_solve((lower, True), sources.T @ summary.projection, check_finite=False)
        return cls(rounded, summary, np.asarray(lower), np.asarray(weights), least, min(error, 0.5))

    @property
    def features(self) -> Features:
        return self.summary.features[0]

    def predict(self, new: Inputs) -> Prediction:
        """Mean and standard deviation; ``std`` is an upper bound and ``std_lower`` a lower bound of the exact one."""
        block, left = self._block(new.values)
        mean = self.prior.mean_at(new) + block.T @ self.weights
        known = solve_lower(self.lower, block)
        variance = np.einsum("ij,ij->j", known, known)
        return Prediction(
            mean,
            np.sqrt(self._upper(variance, left)),
            lambda: self._covariance(new),
            np.sqrt(variance * (1.0 - self.error)),
        )

    def _block(self, points: Array) -> tuple[Array, Array]:
        """f at ``points`` in terms of the sources, as far as the features have it, and what they leave out."""
        values = self.features.at(points)
        block = np.zeros((len(self.lower), len(points)))
        block[: len(self.features)] = (values * np.sqrt(self.features.shares)).T
        return block, self.features.left_out(points, values)

    def _upper(self, variance: Array, left: Array) -> Array:
        spread = self.summary.residual(0, weighted=False) * variance / self.least_noise
        return np.asarray(variance * (1.0 + 2.0 * self.error) + (np.sqrt(left) + np.sqrt(spread)) ** 2)

    def _covariance(self, new: Inputs) -> Array:
        block, left = self._block(new.values)
        known = solve_lower(self.lower, block)
        own = block[: len(self.features)]
        covariance = np.asarray(known.T @ known + self.prior.covariance(new) - own.T @ own)
        variance = np.einsum("ij,ij->j", known, known)
        covariance[np.diag_indices_from(covariance)] = self._upper(variance, left)
        return covariance


def _first(places: Array, always: Array) -> Array:
    """``always``, then the others of ``places``."""
    return np.vstack([always, places[~among(places, always)]])


def _widened(noise: FunctionalNoise, more: int, centres: Array) -> FunctionalNoise:
    """``noise`` written with ``more`` centres for the first prior, which have no part in it."""
    count = len(noise.centres[0])
    mixing = np.insert(noise.mixing, [count] * more, 0.0, axis=0)
    return replace(noise, centres=(centres, *noise.centres[1:]), mixing=mixing)
