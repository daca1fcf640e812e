"""What a reader concludes at new inputs.

From rows that fit in memory it is the exact posterior. From any number of rows with functional noise it is one with
bounds for what compression costs. There the reader works with ``f ≈ φᵀu`` around their own centres, finer than the
noise's. Let L(s) be the variance that they compute for φ(s)ᵀu. The exact posterior variance is at least L(s): that
would be it if what the features leave out (g) were known. And it is at most the error that the reader's estimate has,
``L(s) + E(g(s) − aᵀg(X))² ≤ L(s) + (√left_out(s) + √(λ |a|²))²``, with a its weights, ``|a|² ≤ L(s)/min V``, and
λ the trace of what is left out at the rows, which is at least its largest eigenvalue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.linalg
import torch

from ..arrays import UNIT, Array
from ..data import Done, Engine, Inputs, MemoryInputs, among
from ..errors import FormatError
from ..linalg import solve_lower
from ..machine import product_rate, require_memory, warn_of_time
from ..models import GaussianProcess, Prior, seconds_a_value
from ..noise import FunctionalNoise
from ..promise import Design
from ..proof import (
    MOST_CENTRES,
    Features,
    Summary,
    choose_centres,
    noise_coefficients,
    sources_of,
    summarise,
    without_functions,
)

#: Doubles that one block of cross-covariances may take while predicting (32 MiB).
_BLOCK = 1 << 22

#: So many rows are a matter of seconds.
QUICK_ROWS = 10_000

#: m × m matrices that there are while the covariance at m inputs is made, and blocks of these with all rows.
MATRICES_OF_ASKED, BLOCKS_WITH_ASKED = 4.5, 3.0


@dataclass(frozen=True, eq=False)
class Prediction:
    """Mean and standard deviation of the function f (not of a new noisy measurement) at the asked inputs.

    ``std_lower`` is ``std`` itself, except for compressed releases: there the exact standard deviation lies between
    ``std_lower`` and ``std``, so that error bars are never too short. ``index`` has the row labels of the asked inputs,
    if they were a DataFrame.
    """

    mean: Array
    std: Array
    _covariance: Callable[[], Array] = field(repr=False)
    _rows: int = field(repr=False)
    std_lower: Array | None = None
    index: pd.Index[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.std_lower is None:
            object.__setattr__(self, "std_lower", self.std)

    def covariance(self) -> Array:
        """The covariance matrix of f at the m asked inputs, m × m; computed when asked for."""
        asked = float(len(self))
        require_memory(
            8.0 * (MATRICES_OF_ASKED * asked**2 + BLOCKS_WITH_ASKED * self._rows * asked),
            f"the covariance of predictions at {len(self):,} inputs",
            "ask for fewer inputs at a time; mean and std need far less.",
        )
        return self._covariance()

    def to_frame(self) -> pd.DataFrame:
        """Mean and standard deviation as a table, with the row labels of the asked inputs.

        Where the standard deviation is known between bounds (compressed releases), ``std_lower`` is a third column.
        """
        columns = {"mean": self.mean, "std": self.std}
        if self.std_lower is not None and self.std_lower is not self.std:
            columns["std_lower"] = self.std_lower
        return pd.DataFrame(columns, index=self.index)

    def __len__(self) -> int:
        return int(self.mean.shape[0])


def predict_with(process: GaussianProcess, new: Inputs, rows: int) -> Prediction:
    """The prediction of ``process``, which was conditioned on ``rows`` rows, block by block so memory stays bounded."""
    mean, std = np.empty(len(new)), np.empty(len(new))
    step = max(128, _BLOCK // max(rows, 1))
    for start in range(0, len(new), step):
        block = MemoryInputs(new.values[start : start + step], new.columns, new.outputs, encoding=new.encoding)
        mean[start : start + step] = process.mean_at(block)
        std[start : start + step] = np.sqrt(process.variance(block))
    return Prediction(mean, std, lambda: process.covariance(new), rows, index=new.index)


#: Error bars allow for this many √n·u·‖M‖ of round-off in the matrix M that is factored.
FACTORED = 64.0

#: What the features may leave out at all rows together, as a share of V: about twice that is what error bars lose.
SHARE_LEFT_OUT = 0.02


def _require_memory(design: Design, noise: FunctionalNoise) -> None:
    """Raise where the posterior would not fit in memory, with as many centres as there may be."""
    size = float(sum(map(len, noise.centres)) + MOST_CENTRES)
    taken = (2.0 + 2.0 * torch.get_num_threads()) * size**2 + 5.0 * (size + noise.sources) ** 2
    require_memory(8.0 * taken, _work(design, size), "use a machine with more memory.")


def _warn_of_time(design: Design, centres: int) -> None:
    """Warn where one pass over the rows takes long."""
    rows = float(len(design.inputs))
    # fewer are a matter of seconds
    if rows > QUICK_ROWS:
        values = rows * centres * seconds_a_value(design.prior.kernel, design.inputs.sample.values)
        seconds = values + 4.0 * rows * float(centres) ** 2 / product_rate()
        warn_of_time(seconds, _work(design, centres), "predict with fewer rows, or on a faster machine.")


def _work(design: Design, centres: float) -> str:
    return f"the posterior given {len(design.inputs):,} rows and {centres:,.0f} centres"


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
        noise, prior = design.noise.as_function(), design.prior
        _require_memory(design, noise)
        rounded = replace(prior, noise=prior.noise + resolution**2 / 12)
        least = float(np.min(rounded.noise))
        wanted = SHARE_LEFT_OUT * least / len(design.inputs)
        chosen = choose_centres(
            prior, design.representatives, design.region, wanted, MOST_CENTRES, noise.centres[0], device, 0.0
        )
        first, *rest = noise.centres
        added = chosen.places[~among(chosen.places, first)]
        own = Features.around(rounded, np.vstack([first, added]))
        others = [Features.around(other, places) for other, places in zip(noise.priors[1:], rest, strict=True)]
        _warn_of_time(design, sum(map(len, (own, *others))))
        counted, step = (prior, resolution**2 / 12) if noise.records else (rounded, 0.0)
        summary = summarise(
            [counted],
            [own, *others],
            design.inputs,
            None,
            engine,
            device,
            done,
            outputs,
            blurred=noise.records,
            rounding=step,
        )
        # the noise written with these centres, of which those that are new have no part in it
        mixing, suppressing = (
            np.insert(part, [len(first)] * len(added), 0.0, axis=0) for part in (noise.mixing, noise.suppressing)
        )
        widened = replace(noise, centres=(own.centres, *rest), mixing=mixing, suppressing=suppressing)
        coefficients = noise_coefficients(widened, [own, *others])
        sources = sources_of(summary, coefficients)
        suppressed = noise_coefficients(widened, [own, *others], widened.suppressing)
        precision, projection = without_functions(summary.precision(0), suppressed, summary.projection)
        total = sources.T @ precision @ sources
        error = FACTORED * UNIT * np.sqrt(len(total)) * float(np.linalg.norm(total, ord=np.inf))
        total[np.diag_indices_from(total)] += 1.0
        try:
            lower = scipy.linalg.cholesky(total, lower=True, check_finite=False)
        except np.linalg.LinAlgError as singular:
            raise FormatError(
                "nothing can be predicted from this release: beside its noise the rows are lost in rounding. See "
                "certify(), and ask its owner whether it is damaged."
            ) from singular
        weights = scipy.linalg.cho_solve((lower, True), sources.T @ projection, check_finite=False)
        return cls(rounded, summary, np.asarray(lower), np.asarray(weights), least, min(error, 0.5))

    @property
    def features(self) -> Features:
        return self.summary.features[0]

    def predict(self, new: Inputs) -> Prediction:
        """Mean and standard deviation; ``std`` is an upper bound and ``std_lower`` a lower bound of the exact one."""
        count, mean = len(new), np.array(self.prior.mean_at(new))
        variance, left = np.empty(count), np.empty(count)
        step = max(128, _BLOCK // len(self.lower))
        for some in (slice(start, start + step) for start in range(0, count, step)):
            block, left[some] = self._block(new.values[some])
            mean[some] += block.T @ self.weights
            known = solve_lower(self.lower, block)
            variance[some] = np.einsum("ij,ij->j", known, known)
        return Prediction(
            mean,
            np.sqrt(self._upper(variance, left)),
            lambda: self._covariance(new),
            len(self.lower),
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
