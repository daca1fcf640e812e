"""A kernel evaluated densely, for batches of inputs and with gradients, as readers of a release need it.

The same care as in dense_kernel.py, which is faster but keeps no gradients: sums and products are not multiplied out
lazily, and inputs far from 0 are moved there before they are divided by a lengthscale.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    CosineKernel,
    Kernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from linear_operator import to_dense

from .dense_kernel import active_columns

#: Kernels of differences only.
STATIONARY = (RBFKernel, MaternKernel, RQKernel, PeriodicKernel, CosineKernel)


class DifferentiableKernel(Kernel):
    """``kernel``, with its sums, products and scales computed here."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x1: torch.Tensor, x2: torch.Tensor, diag: bool = False, **_: Any) -> torch.Tensor:
        return _values(self.kernel, x1, x2, diag, picked=False)


def _values(kernel: Kernel, A: torch.Tensor, B: torch.Tensor, diag: bool, picked: bool) -> torch.Tensor:
    A, B = active_columns(kernel, A, picked), active_columns(kernel, B, picked)
    kind = type(kernel)
    if kind is ScaleKernel:
        scaled: torch.Tensor = _values(kernel.base_kernel, A, B, diag, picked=True) * kernel.outputscale
        return scaled
    if kind in (AdditiveKernel, ProductKernel):
        first, *others = [_values(part, A, B, diag, picked=False) for part in kernel.kernels]
        for other in others:
            first = first + other if kind is AdditiveKernel else first * other
        return first
    if kind in STATIONARY:
        origin = A[..., :1, :].detach()
        A, B = A - origin, B - origin
    values: torch.Tensor = to_dense(kernel.forward(A, B, diag=diag))
    return values
