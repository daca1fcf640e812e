"""The Gaussian processes of the satellite study: as the paper's text has them, and as its scripts had them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..fit import fit_prior
from ..inputs import Array, Mask
from ..model_tree import build_kernel
from ..prior import Prior
from ..regions import Box
from .satellite import LENGTHSCALE, SENSITIVE

Settings = Literal["paper", "authors"]
MeanChoice = Literal["constant", "zero"]

REGION = Box(*SENSITIVE)

# The scripts gave l = 1/400 to a kernel that squares it: neighbours 0.05 apart are unrelated under it.
AUTHORS_LENGTHSCALE = 1 / 400
AUTHORS_FACTOR = 15.0
AUTHORS_SMALL = 1e-4
AUTHORS_NOISE = 1e-8


@dataclass(frozen=True, eq=False)
class Models:
    """Priors for one output, all in the units of the data: the owner's, and those that two rivals start from.

    ``unit`` is what differential privacy takes for the most that one output can change: a standard deviation of y.
    """

    owner: Prior
    cloaking: Prior
    dropout: Prior
    unit: float


def hidden(times: Array) -> Mask:
    """Which of the times lie in the private orbit, both ends included."""
    return np.asarray((times >= SENSITIVE[0]) & (times <= SENSITIVE[1]))


def models(settings: Settings, times: Array, y: Array, mean: MeanChoice = "constant") -> Models:
    """The priors for outputs ``y`` at ``times``, their mean and variance by maximum likelihood.

    =========== =============================== ==============================================================
    model       "paper"                         "authors"
    =========== =============================== ==============================================================
    owner       lengthscale 0.05                0.0025; variances below 1e-4 are multiplied by 15
    cloaking    the owner's                     0.0025 standard deviations of t, noise 1e-8 (normalised)
    dropout     the owner's, fitted to the      the same as for cloaking, normalised and fitted on the kept rows
                rows that are kept
    =========== =============================== ==============================================================

    With ``mean="zero"`` no mean is estimated; the scripts did so in the owner's model alone.
    """
    keep = ~hidden(times)
    unit = float(np.std(y, ddof=1))
    if settings == "paper":
        owner = fit_prior(times, y, "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        kept = fit_prior(times[keep], y[keep], "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        return Models(owner, owner, kept, unit)
    owner = fit_prior(times, y, "rbf", mean, 0.0, lengthscale=AUTHORS_LENGTHSCALE)
    return Models(_enlarged(owner), _normalised(times, y), _normalised(times[keep], y[keep]), unit)


def _enlarged(prior: Prior) -> Prior:
    """``prior`` with 15 times the variance where it was below 1e-4, whatever the unit of y is."""
    here = np.zeros((1, 1))
    variance = float(prior.variance(here)[0])
    if variance >= AUTHORS_SMALL:
        return prior
    base = {"kind": "rbf", "lengthscale": [AUTHORS_LENGTHSCALE]}
    kernel = build_kernel({"kind": "scale", "variance": AUTHORS_FACTOR * variance, "kernel": base})
    return Prior(kernel, float(prior.mean_at(here)[0]), 0.0)


def _normalised(times: Array, y: Array) -> Prior:
    """What a fit to standardised times and outputs means in the units of the data."""
    lengthscale = AUTHORS_LENGTHSCALE * float(np.std(times, ddof=1))
    fitted = fit_prior(times, y, "rbf", "constant", 0.0, lengthscale=lengthscale)
    return Prior(fitted.kernel, fitted.mean, AUTHORS_NOISE * float(np.var(y, ddof=1)))
