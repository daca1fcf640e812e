"""The likelihood of rows, with its slopes written out: autograd would go back through every step of a factor."""

from __future__ import annotations

import math
from typing import Any

import torch
from linear_operator.utils.cholesky import psd_safe_cholesky

LOG_2_PI = math.log(2.0 * math.pi)


class LogDensity(torch.autograd.Function):
    """log N(y − Hβ; 0, C + diag(noise)), β by generalised least squares (no β where there is no H).

    The slope by C is ½(ααᵀ − C⁻¹) with α = C⁻¹(y − Hβ). That β depends on C makes no difference to it: β is where the
    density is largest.
    """

    @staticmethod
    def forward(
        ctx: Any,
        covariance: torch.Tensor,
        y: torch.Tensor,
        basis: torch.Tensor | None = None,
        noise: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if noise is not None:
            covariance = covariance.clone()
            covariance.diagonal().add_(noise)
        lower = psd_safe_cholesky(covariance)
        residual = y if basis is None else y - basis @ least_squares(lower, y, basis)
        alpha = torch.cholesky_solve(residual[:, None], lower)[:, 0]
        ctx.save_for_backward(lower, alpha)
        ctx.noisy = noise is not None
        log_determinant = 2.0 * lower.diagonal().log().sum()
        value: torch.Tensor = -0.5 * (residual @ alpha + log_determinant + len(y) * LOG_2_PI)
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None, torch.Tensor | None]:
        lower, alpha = ctx.saved_tensors
        half = 0.5 * float(up[0])
        slope = torch.cholesky_inverse(lower).addr_(alpha, alpha, beta=-half, alpha=half)
        return slope, -up[0] * alpha, None, slope.diagonal().clone() if ctx.noisy else None


def least_squares(lower: torch.Tensor, y: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    """β with the least (y − Hβ)ᵀC⁻¹(y − Hβ), C = LLᵀ."""
    both = torch.linalg.solve_triangular(lower, torch.cat([basis, y[:, None]], dim=1), upper=False)
    Q, R = torch.linalg.qr(both[:, :-1])
    found: torch.Tensor = torch.linalg.solve_triangular(R, Q.T @ both[:, -1:], upper=True)[:, 0]
    return found
