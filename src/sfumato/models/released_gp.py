"""What a reader of a release knows, as a GPyTorch model that BoTorch can work with.

GPyTorch's own Gaussian likelihoods know one variance, or one a row. Noise that protects a region is correlated, and a
model that is told its diagonal alone draws wrong conclusions: ``FullNoiseLikelihood`` has a full covariance matrix over
the rows that were published.
"""

from __future__ import annotations

import copy
from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods.gaussian_likelihood import _GaussianLikelihoodBase
from gpytorch.likelihoods.noise_models import Noise
from gpytorch.means import Mean
from gpytorch.models import ExactGP
from linear_operator import to_linear_operator
from linear_operator.operators import DiagLinearOperator, LinearOperator

from ..arrays import Array
from ..errors import InputError
from .kernel_values import DifferentiableKernel, require_features


class FullNoise(Noise):
    """The noise covariance ``covariance`` at the published ``inputs``, and V (``own``) at any others.

    GPyTorch and BoTorch hand over the inputs of their data as a list, and inputs at which they ask for a new
    measurement as a tensor: a new measurement at a published input has the noise V.
    """

    def __init__(self, inputs: torch.Tensor, covariance: torch.Tensor, own: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("inputs", inputs)
        self.register_buffer("covariance", covariance)
        self.register_buffer("own", own)
        #: The variances of rows that were added later, and whether rows were added with V.
        self.later: torch.Tensor | None = None
        self.added = False

    def forward(self, *params: Any, shape: torch.Size, noise: torch.Tensor | None = None, **_: Any) -> LinearOperator:
        if noise is not None:
            return DiagLinearOperator(noise.expand(shape))
        if not self._is_data(params, shape):
            return DiagLinearOperator(self._at_new_inputs(shape))
        rows, later = len(self.covariance), self.later
        matrix = self.covariance.new_zeros(*shape, shape[-1])
        matrix[..., :rows, :rows] = self.covariance
        if later is not None:
            matrix.diagonal(dim1=-2, dim2=-1)[..., rows : rows + later.shape[-1]] = later
            rows += later.shape[-1]
        if rows < shape[-1]:
            rest = torch.Size((*shape[:-1], shape[-1] - rows))
            matrix.diagonal(dim1=-2, dim2=-1)[..., rows:] = self._at_new_inputs(rest)
        return to_linear_operator(matrix)

    def _is_data(self, params: tuple[Any, ...], shape: torch.Size) -> bool:
        """Whether this is asked about the published rows, with rows below them that were added later."""
        rows = len(self.covariance)
        if not params:
            return bool(self.training) and shape[-1] == rows
        listed = isinstance(params[0], (list, tuple))
        asked = params[0][0] if listed else params[0]
        if not (listed or self.training) or asked.shape[-2] < rows or asked.shape[-1] != self.inputs.shape[-1]:
            return False
        return bool((asked[..., :rows, :] == self.inputs).all())

    def _at_new_inputs(self, shape: torch.Size) -> torch.Tensor:
        if self.own.dim() > 0:
            raise InputError(
                f"the noise of a new measurement is not known: the prior has one variance for each of its "
                f"{len(self.own)} rows. Leave observation_noise out, or give noise= (a variance for each new input)."
            )
        own: torch.Tensor = self.own.expand(shape)
        return own

    def with_rows(self, noise: torch.Tensor | None) -> FullNoise:
        """This noise with more rows below the published ones, of variances ``noise`` or of V."""
        more = copy.deepcopy(self)
        if noise is None:
            more.added = True
            return more
        if self.added:
            raise InputError("noise is given for these rows, but was left out for rows before; give it for all.")
        if self.later is not None:
            noise = torch.cat([self.later.expand(*noise.shape[:-1], -1), noise], dim=-1)
        more.later = noise
        return more


class FullNoiseLikelihood(_GaussianLikelihoodBase):
    """``y = f(X) + e`` with ``e ~ N(0, covariance)`` at the published rows, V at new inputs."""

    def __init__(self, inputs: torch.Tensor, covariance: torch.Tensor, own: torch.Tensor) -> None:
        super().__init__(noise_covar=FullNoise(inputs, covariance, own))

    @property
    def noise(self) -> torch.Tensor:
        """V: one variance, or one for each published row; without what was added to protect them."""
        own: torch.Tensor = self.noise_covar.own
        return own

    def get_fantasy_likelihood(self, noise: torch.Tensor | None = None, **_: Any) -> FullNoiseLikelihood:
        more = copy.copy(self)
        more._modules = {**self._modules, "noise_covar": self.noise_covar.with_rows(noise)}
        return more


class ReleasedGP(ExactGP, GPyTorchModel, FantasizeMixin):  # type: ignore[misc]
    """A prior given published outputs whose noise is a full matrix; everything is in the user's units.

    The conclusions are those of ``release.predict``; as a model they can be differentiated, sampled from and handed to
    acquisition functions that look for the largest value.

    Parameters are fixed (``requires_grad`` is off): they are those of the release.
    """

    _num_outputs = 1

    def __init__(self, kernel: Kernel, mean: Mean, own: Any, inputs: Array, outputs: Array, noise: Array) -> None:
        """``own`` is V; ``noise`` is V, what was added to protect, and the rounding of ``outputs``, as a matrix."""
        X, y, covariance, V = (
            torch.from_numpy(np.array(part, dtype=np.float64)) for part in (inputs, outputs, noise, own)
        )
        require_features(kernel, X.shape[-1])
        super().__init__(X, y, FullNoiseLikelihood(X, covariance, V))
        self.mean_module = copy.deepcopy(mean)
        self.covar_module = copy.deepcopy(kernel)
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
