"""The paper's adversary: takes the published values for plain data and refits a stationary process to them."""

from __future__ import annotations

import warnings

import numpy as np

from ..errors import FitWarning, InputError
from ..rivals.baselines import stationary as stationary_model
from .outcome import Attempt, Skipped
from .target import Target

#: More rows than this do not change a fit, and take long.
MOST_FITTED = 400


def fitted_rows(rows: int) -> slice:
    """Some of the rows, spread evenly, that stand for all of them in a fit."""
    return slice(None, None, -(-rows // MOST_FITTED))


def stationary(target: Target) -> Attempt | Skipped:
    """Lengthscales, variance, mean and one noise variance for all rows, fitted to W; Σ is ignored.

    Covered: whatever is computed from W alone is no better than the Bayes reader under the owner's prior. Where it is
    closer to the truth all the same, the data speak against the owner's prior.
    """
    name = "plain stationary GP"
    few = fitted_rows(len(target.rows))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            fitted = stationary_model(target.rows[few], target.published[few]).process
            seen = fitted.condition(target.rows, target.published)
    except InputError as error:
        return Skipped(name, f"no plain process fits the published values: {error}")
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence,
        True,
        "medium",
        "A plain GP refitted to the published values, as if they had no added noise",
        "the prior does not fit; fit another kernel, or name the priors that you fear: protect(..., priors=[...])",
        own_prior=True,
    )
