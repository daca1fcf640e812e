"""Whether two kernels of a class that we cannot describe are the same function: same class, same contents.

Such kernels may compute anything, so whatever cannot be compared counts as different.
"""

from __future__ import annotations

from typing import Any

import torch
from gpytorch.kernels import Kernel, ScaleKernel

#: What torch and GPyTorch keep in every module for their own book-keeping; none of it is part of the function.
_BOOKS = frozenset(vars(torch.nn.Module())) | frozenset(vars(Kernel()))
_CONTENTS = frozenset({"_parameters", "_buffers", "_modules", "ard_num_dims"})


def scale_between(kernel: Kernel, other: Kernel) -> float | None:
    """α with ``other = α · kernel``, where both are scaled versions of the same kernel; None where they are not."""
    (first, base), (second, other_base) = _unscaled(kernel), _unscaled(other)
    return second / first if _identical(base, other_base) else None


def _unscaled(kernel: Kernel) -> tuple[float, Kernel]:
    scale = 1.0
    while type(kernel) is ScaleKernel and kernel.outputscale.numel() == 1:
        scale, kernel = scale * float(kernel.outputscale), kernel.base_kernel
    return scale, kernel


def _identical(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and bool(torch.equal(a, b))
    if isinstance(a, torch.nn.Module):
        return _identical(_contents(a), _contents(b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_identical(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_identical, a, b))
    return isinstance(a, (bool, int, float, str, bytes, torch.Size)) and a == b


def _contents(module: torch.nn.Module) -> dict[str, Any]:
    # in which order attributes were set does not matter
    return dict(sorted((k, v) for k, v in vars(module).items() if k in _CONTENTS or k not in _BOOKS))
