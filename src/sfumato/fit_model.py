"""What is asked of a fit, what comes back, and the model whose likelihood is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import gpytorch
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from linear_operator.utils.cholesky import psd_safe_cholesky

from .inputs import Array


@dataclass(frozen=True)
class Adam:
    """A fixed number of gradient steps, as in the paper's census study."""

    epochs: int
    learning_rate: float
    decay: tuple[int, float] | None
    weight_decay: float


@dataclass(frozen=True)
class Question:
    """What is known and what is asked: rows to fit, and a value for everything that is not to be learnt.

    ``kernel`` is a name or a GPyTorch kernel, ``mean`` is "constant", a number or a GPyTorch mean, ``noise`` is
    "learn" or one variance for each row.
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    kernel: str | Kernel
    mean: str | float | Mean
    noise: str | Array
    lengthscale: Array | None


@dataclass(frozen=True)
class Answer:
    """The most likely values that were found, in the user's units."""

    kernel: Kernel | None
    lengthscales: Array
    variance: float
    mean: float | Mean
    noise: float | None
    converged: bool
    messages: tuple[str, ...]
    starts: int


class GP(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: Any, mean: Mean, kernel: Kernel) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = mean
        self.covar_module = kernel

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


class LogDensity(torch.autograd.Function):
    """log N(r; 0, C) with its gradient written out, ½(ααᵀ − C⁻¹): several times faster than through the factor."""

    @staticmethod
    def forward(ctx: Any, covariance: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        lower = psd_safe_cholesky(covariance)
        alpha = torch.cholesky_solve(residual[:, None], lower)[:, 0]
        ctx.save_for_backward(lower, alpha)
        log_determinant = 2.0 * lower.diagonal().log().sum()
        value: torch.Tensor = -0.5 * (residual @ alpha + log_determinant + len(residual) * math.log(2.0 * math.pi))
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        lower, alpha = ctx.saved_tensors
        slope = torch.outer(alpha, alpha) - torch.cholesky_inverse(lower)
        return 0.5 * up[0] * slope, -up[0] * alpha


class OwnMean(Mean):
    """The user's mean, read at scaled inputs and given in scaled outputs."""

    def __init__(self, mean: Mean, x_offset: torch.Tensor, x_scale: torch.Tensor, y_scale: float) -> None:
        super().__init__()
        self.own = mean
        self.x_offset, self.x_scale, self.y_scale = x_offset, x_scale, y_scale

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.own(X * self.x_scale + self.x_offset) / self.y_scale
        return values
