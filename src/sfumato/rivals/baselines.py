"""What a comparison needs besides: a model without the private rows, one with everything, and a naive reader."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..errors import InputError
from ..fit import fit_prior
from ..inputs import as_inputs, as_outputs
from ..prior import Posterior, Prior
from .prediction_map import rows_inside


def unsecured(prior: Prior, X: Any, y: Any) -> Posterior:
    """The model as if nothing had to be hidden: the process given ``y`` at ``X``."""
    return prior.condition(X, y)


def dropout(prior: Prior, X: Any, y: Any, region: Any) -> Posterior:
    """The model made without the rows inside ``region`` (or where a mask is True): nothing of them is published.

    It promises nothing: the rows outside still tell about the region what the prior lets them tell.

    >>> import gpytorch, sfumato as sf
    >>> prior = sf.Prior(gpytorch.kernels.RBFKernel())
    >>> dropout(prior, [0.0, 1.0, 2.0], [5.0, 7.0, 6.0], sf.Box(0.5, 1.5)).outputs.tolist()
    [5.0, 6.0]
    """
    inputs = as_inputs(X)
    outputs = as_outputs(y, len(inputs))
    keep = ~rows_inside(region, inputs, "region")
    if not np.any(keep):
        raise InputError(f"region holds all {len(inputs)} rows of X, so no data are left; give a smaller region.")
    return prior.condition(inputs.select(keep), outputs[keep], prior.noise_variance(len(inputs))[keep])


def stationary(
    X: Any, W: Any, *, kernel: str | Kernel = "rbf", mean: str | float | Mean = "constant", **how: Any
) -> Posterior:
    """A reader who takes the published values ``W`` for plain data and ignores Σ.

    Lengthscales, noise, mean and scale are fitted to W (``how`` goes to ``fit_prior``), as one independent noise
    variance for all rows; ``posterior.process`` is the fitted prior.
    """
    inputs = as_inputs(X)
    outputs = as_outputs(W, len(inputs), "W")
    return fit_prior(inputs, outputs, kernel, mean, **{"noise": "learn", **how}).condition(inputs, outputs)
