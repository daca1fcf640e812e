"""Kernels that many tests use, in float64."""

from __future__ import annotations

import gpytorch
import numpy as np
import torch


def rbf(lengthscale, variance: float = 1.0) -> gpytorch.kernels.Kernel:
    return _scaled(gpytorch.kernels.RBFKernel(ard_num_dims=np.size(lengthscale)), lengthscale, variance)


def matern(lengthscale, variance: float = 1.0, nu: float = 1.5) -> gpytorch.kernels.Kernel:
    return _scaled(gpytorch.kernels.MaternKernel(nu=nu, ard_num_dims=np.size(lengthscale)), lengthscale, variance)


def _scaled(base, lengthscale, variance):
    kernel = gpytorch.kernels.ScaleKernel(base).double()
    kernel.outputscale = torch.tensor(float(variance), dtype=torch.float64)
    kernel.base_kernel.lengthscale = torch.as_tensor(np.atleast_2d(np.asarray(lengthscale, dtype=float)))
    return kernel
