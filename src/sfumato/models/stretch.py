"""Kernels of what changes in f when all its lengthscales are stretched by one factor.

With ``t = ℓ²`` and d columns, ``stretch = k − (1/d) ∂k/∂log ℓ`` is a kernel of variance 1 for RBF, Matérn and rational
quadratic k. Spectral densities say why: with x = t|ω|²/(2ν) that of a Matérn kernel is proportional to
``t^{d/2}(1 + x)^{−q}``, q = ν + d/2, so that of the stretch is ``(2q/d) x/(1 + x)`` times as much, which is nowhere
negative; an RBF is the limit of large ν, and a rational quadratic a mixture of RBFs. below.py says what it is for.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, RQKernel


class RBFStretch(RBFKernel):
    """``(1 − r²/d) e^{−r²/2}``."""

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **params: Any) -> torch.Tensor:
        return _forward(self, x1, x2, diag)

    def stretched(self, squares: torch.Tensor, columns: int) -> torch.Tensor:
        return torch.exp(-squares / 2.0) * (1.0 - squares / columns)


class RQStretch(RQKernel):
    """``(1 + r²/2α)^{−α} (1 − (r²/d)/(1 + r²/2α))``."""

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **params: Any) -> torch.Tensor:
        return _forward(self, x1, x2, diag)

    def stretched(self, squares: torch.Tensor, columns: int) -> torch.Tensor:
        growth = squares / (2.0 * self.alpha)
        values: torch.Tensor = torch.exp(-self.alpha * torch.log1p(growth)) * (1.0 - squares / columns / (1.0 + growth))
        return values


class MaternStretch(MaternKernel):
    """With z = √(2ν) r: ``e^{−z}`` times 1 − z/d, 1 + z − z²/d, or 1 + z + z²/3 − z²(1 + z)/(3d)."""

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **params: Any) -> torch.Tensor:
        return _forward(self, x1, x2, diag)

    def stretched(self, squares: torch.Tensor, columns: int) -> torch.Tensor:
        z = torch.sqrt(squares) * math.sqrt(2.0 * self.nu)
        if self.nu == 0.5:
            shape = 1.0 - z / columns
        elif self.nu == 1.5:
            shape = 1.0 + z - z.square() / columns
        else:
            shape = 1.0 + z + z.square() / 3.0 * (1.0 - (1.0 + z) / columns)
        return torch.exp(-z) * shape


#: Each kernel whose lengthscales may be stretched, and the kernel of its stretch.
STRETCHES: dict[type[Kernel], type[Kernel]] = {
    RBFKernel: RBFStretch,
    MaternKernel: MaternStretch,
    RQKernel: RQStretch,
}


def _forward(kernel: Any, A: torch.Tensor, B: torch.Tensor, diag: bool) -> torch.Tensor:
    if diag:
        return A.new_ones(len(A))
    gaps = (A[:, None, :] - B[None, :, :]) / kernel.lengthscale
    values: torch.Tensor = kernel.stretched(gaps.square().sum(dim=-1), A.shape[1])
    return values


def stretch_derivatives(nu: float, frequency: float, orders: int) -> list[float]:
    """Bounds for the derivatives of a Matérn stretch over one column, on either side of 0; ``frequency`` is √(2ν)/ℓ.

    They are polynomials times e^{−z}, and z^i e^{−z} is at most (i/e)^i.
    """
    shape = {0.5: [1.0, -1.0], 1.5: [1.0, 1.0, -1.0], 2.5: [1.0, 1.0, 0.0, -1.0 / 3.0]}[nu]
    bounds = []
    for order in range(orders):
        largest = sum(abs(c) * (i / math.e) ** i if i else abs(c) for i, c in enumerate(shape))
        bounds.append(largest * frequency**order)
        slope = [*(i * c for i, c in enumerate(shape) if i), 0.0]
        shape = [s - c for s, c in zip(slope, shape, strict=True)]
    return bounds
