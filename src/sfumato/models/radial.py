"""The kernels that are fitted most, with their slopes written out: a few products of matrices."""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel

from .kernel_kinds import EXACT_DISTANCES


class RadialCorrelation(torch.autograd.Function):
    """c(|a − b|) for all rows a of A and b of B; c is RBF (``nu`` infinite) or Matérn 1/2, 3/2 or 5/2.

    The slope by a is Σ_b 2 w (a − b) with w = up · dc/d|a − b|²: two products of matrices.
    """

    @staticmethod
    def forward(ctx: Any, A: torch.Tensor, B: torch.Tensor, nu: float) -> torch.Tensor:
        r = torch.cdist(A, B, compute_mode=EXACT_DISTANCES)
        if math.isinf(nu):
            value = r.square_().mul_(-0.5).exp_()
            slope = value * -0.5
        elif nu == 0.5:
            value = torch.exp(-r)
            # rows at the same place have no slope
            slope = torch.where(r > 0.0, value / (-2.0 * r), 0.0)
        else:
            s = r.mul_(math.sqrt(2.0 * nu))
            decay = torch.exp(-s)
            slope = (s + 1.0).mul_(decay)
            if nu == 1.5:
                value, slope = slope, decay.mul_(-1.5)
            else:
                value = s.square_().mul_(decay).mul_(1.0 / 3.0).add_(slope)
                slope.mul_(-5.0 / 6.0)
        ctx.save_for_backward(A, B, slope)
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        A, B, slope = ctx.saved_tensors
        weights = slope * up[0]
        by_A = 2.0 * (A * weights.sum(dim=1, keepdim=True) - weights @ B)
        by_B = 2.0 * (B * weights.sum(dim=0)[:, None] - weights.T @ A)
        return by_A, by_B, None


def radial_values(kernel: Kernel, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor | None:
    """K(A, B) with slopes that cost little; None where the kernel is not one of those."""
    kind = type(kernel)
    if kind not in (RBFKernel, MaternKernel):
        return None
    nu = math.inf if kind is RBFKernel else float(kernel.nu)
    ell = kernel.lengthscale.reshape(1, -1)
    value: torch.Tensor = RadialCorrelation.apply(A / ell, B / ell, nu)
    return value
