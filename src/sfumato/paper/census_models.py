"""The Gaussian processes of the census study: at the most likely values, and where the paper's scripts stopped."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import gpytorch
import numpy as np
import torch

from ..errors import FitWarning, InputError
from ..fit import fit_prior
from ..inputs import Array
from ..prior import Prior
from ..rivals.baselines import stationary
from .census_data import CensusSplit

Settings = Literal["paper", "authors"]

# Adam as in the scripts: the rate is 1e-3 after 20 epochs and 1e-10 in the last ten.
SCHEDULE: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.1, "decay": (10, 0.1), "weight_decay": 1e-4}
EPOCHS = 100
NAIVE_EPOCHS = 40
"""Those that matter: the 60 after them have rates of 1e-5 and less."""
NAIVE_LENGTHSCALE = 1.3


@dataclass(frozen=True, eq=False)
class CensusModels:
    """The owner's prior, the one that Dropout fits without the sensitive rows, and how well the first explains y.

    ``nll`` is minus the log likelihood for each row, with y in its standard deviations; ``unit`` is that standard
    deviation, which differential privacy takes for the most that one income can change.
    """

    owner: Prior
    dropout: Prior
    nll: float
    unit: float
    seconds: float
    dropout_seconds: float


def census_models(data: CensusSplit, settings: Settings) -> CensusModels:
    """Fit an RBF kernel with one lengthscale a column, its variance, the noise and a constant mean.

    "paper" is maximum likelihood. "authors" is Adam from noise 0.1, lengthscales 1.2 and variance 1 (in standard
    deviations), 100 epochs with their schedule, which stops long before the maximum. Inputs and y are standardised for
    the search in both; the priors are in the units of the data.
    """
    if settings not in get_args(Settings):
        raise InputError(f"settings is {settings!r}; choose one of {', '.join(map(repr, get_args(Settings)))}.")
    # several starts end in the same maximum here, so one is enough
    how: dict[str, Any] = {"restarts": 1} if settings == "paper" else {**SCHEDULE, "epochs": EPOCHS}
    unit = float(np.std(data.train_y, ddof=1))
    with warnings.catch_warnings():
        # that Adam stops early, and that some column tells nothing, is what the study is about
        warnings.simplefilter("ignore", FitWarning)
        start = time.perf_counter()
        owner = fit_prior(data.train, data.train_y, **how)
        middle = time.perf_counter()
        kept = fit_prior(data.train, data.train_y, exclude=data.region, **how)
        end = time.perf_counter()
    nll = -owner.fit_report.log_likelihood / len(data.train) - math.log(unit)
    return CensusModels(owner, kept, nll, unit, middle - start, end - middle)


def naive_prediction(data: CensusSplit, settings: Settings, owner: Prior, published: Array) -> Array:
    """What a reader predicts for the test rows who takes ``published`` for plain data and fits a model of their own.

    "authors" starts where the scripts did (noise 0.1, lengthscales 1.3); "paper" starts from the published prior and
    goes to the maximum of the likelihood of the published values.
    """
    centre, spread = data.train.mean(), data.train.std(ddof=1)
    level, unit = float(np.mean(published)), float(np.std(published, ddof=1))
    if settings == "paper":
        scale = owner.kernel
        lengthscales = scale.base_kernel.lengthscale.reshape(-1) / torch.tensor(list(spread), dtype=torch.float64)
        kernel, how = _kernel(lengthscales, float(scale.outputscale) / unit**2), {"restarts": 1}
    else:
        lengthscales = torch.full((data.train.shape[1],), NAIVE_LENGTHSCALE, dtype=torch.float64)
        kernel, how = _kernel(lengthscales, 1.0), {**SCHEDULE, "epochs": NAIVE_EPOCHS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        naive = stationary((data.train - centre) / spread, (published - level) / unit, kernel=kernel, **how)
    return np.asarray(level + unit * naive.mean_at((data.test - centre) / spread))


def _kernel(lengthscales: torch.Tensor, variance: float) -> gpytorch.kernels.Kernel:
    base = gpytorch.kernels.RBFKernel(ard_num_dims=lengthscales.numel())
    kernel = gpytorch.kernels.ScaleKernel(base).double()
    base.lengthscale, kernel.outputscale = lengthscales, variance
    return kernel
