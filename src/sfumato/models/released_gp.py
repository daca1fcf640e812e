"""What a reader of a release knows, as a GPyTorch model that BoTorch can work with."""

from __future__ import annotations

import copy
from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from gpytorch.distributions import MultivariateNormal
from gpytorch.models import ExactGP

from ..arrays import Array
from .full_noise import FullNoiseLikelihood
from .kernel_values import DifferentiableKernel, require_features
from .prior import Prior


class ReleasedGP(ExactGP, GPyTorchModel, FantasizeMixin):  # type: ignore[misc]
    """A prior given published outputs whose noise is a full matrix; everything is in the user's units.

    The conclusions are those of ``release.predict``; as a model they can be differentiated, sampled from and handed to
    acquisition functions that look for the largest value.

    Parameters are fixed (``requires_grad`` is off): they are those of the release.
    """

    _num_outputs = 1

    def __init__(self, prior: Prior, inputs: Array, outputs: Array, noise: Array) -> None:
        """``noise`` is the covariance of ``outputs`` about f at ``inputs``: V, what was added, and the rounding."""
        X, y, covariance = (torch.from_numpy(np.array(part, dtype=np.float64)) for part in (inputs, outputs, noise))
        own = torch.as_tensor(np.array(prior.noise), dtype=torch.float64)
        require_features(prior.kernel, X.shape[-1])
        super().__init__(X, y, FullNoiseLikelihood(X, covariance, own))
        self.mean_module = copy.deepcopy(prior.mean)
        self.covar_module = copy.deepcopy(prior.kernel)
        self.requires_grad_(False)
        self.eval()

    def forward(self, X: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(X), DifferentiableKernel(self.covar_module)(X))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.training:
            return super().__call__(*args, **kwargs)
        settings = gpytorch.settings
        # GPyTorch would solve with more than 800 rows to two digits, and warn about questions at published inputs
        with settings.fast_computations(False, False, False), settings.debug(False):
            return super().__call__(*args, **kwargs)
