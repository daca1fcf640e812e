"""PyTorch as a library of dense float64 matrices: in NumPy's arrays or on a device, Cholesky factors in place.

Searches and certificates share these few calls of LAPACK, and nothing else that computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

import numpy as np
import torch

from ..arrays import Array

#: A matrix of float64 in either form; a tensor may live on any device.
Matrix: TypeAlias = Array | torch.Tensor

#: A matrix in one of these forms, and what comes back in the same.
Block = TypeVar("Block", Array, torch.Tensor)


def as_tensor(block: Matrix, device: torch.device | str | None = None) -> torch.Tensor:
    """``block`` as a tensor on ``device`` (where it is if left out), copied only where that cannot be avoided."""
    if isinstance(block, torch.Tensor):
        return block if device is None else block.to(device)
    # PyTorch has no read-only tensors
    tensor = torch.from_numpy(block if block.flags.writeable else block.copy())
    return tensor if device is None else tensor.to(device)


def as_array(block: Matrix) -> Array:
    """``block`` as a NumPy array, copied only where it is not one on the CPU already."""
    return np.asarray(block.cpu().numpy()) if isinstance(block, torch.Tensor) else block


def squared_norms(block: torch.Tensor) -> Array:
    """The squared norm of every column."""
    if block.device.type == "cpu":
        # PyTorch makes a batch of tiny products of it
        return np.asarray(np.einsum("ij,ij->j", block.numpy(), block.numpy()))
    return as_array(torch.linalg.vector_norm(block, dim=0).square_())


@contextmanager
def numpys_errors() -> Iterator[None]:
    """PyTorch's ``LinAlgError``, which is a ``RuntimeError``, becomes NumPy's. It may be used as a decorator."""
    try:
        yield
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
        raise np.linalg.LinAlgError(str(error)) from error


def cholesky_in_place(matrix: torch.Tensor) -> torch.Tensor:
    """L with ``matrix = L Lᵀ``, in the memory of ``matrix``, which must be contiguous and is lost.

    Raises ``np.linalg.LinAlgError`` where the matrix is not positive definite to working precision.
    """
    # LAPACK wants columns: the transpose of a symmetric matrix has them, and no copy is made
    view = matrix.mT
    failed = torch.empty((), dtype=torch.int32, device=matrix.device)
    torch.linalg.cholesky_ex(view, out=(view, failed))
    if int(failed) != 0 or not bool(torch.isfinite(view.diagonal()).all()):
        raise np.linalg.LinAlgError(f"{int(failed)}-th leading minor of the matrix is not positive definite")
    return view


def inverse_norm(lower: torch.Tensor) -> float:
    """‖(L Lᵀ)⁻¹‖₁ estimated from below, within a factor of three in practice (Hager 1984, Higham 1988; LAPACK)."""
    n = len(lower)

    def solve(column: torch.Tensor) -> torch.Tensor:
        half = torch.linalg.solve_triangular(lower, column[:, None], upper=False)
        whole: torch.Tensor = torch.linalg.solve_triangular(lower.mT, half, upper=True)
        return whole[:, 0]

    def signs(column: torch.Tensor) -> torch.Tensor:
        return torch.where(column >= 0, 1.0, -1.0).to(lower)

    image = solve(lower.new_full((n,), 1.0 / n))
    estimate, sides = float(image.abs().sum()), signs(image)
    for _ in range(5):
        largest = int(solve(sides).abs().argmax())
        unit = lower.new_zeros(n)
        unit[largest] = 1.0
        image = solve(unit)
        size, turned = float(image.abs().sum()), signs(image)
        if size <= estimate or bool((turned == sides).all()):
            break
        estimate, sides = size, turned
    slope = 1.0 + torch.arange(n, dtype=lower.dtype, device=lower.device) / max(1, n - 1)
    slope[1::2] *= -1.0
    return max(estimate, size, 2.0 * float(solve(slope).abs().sum()) / (3.0 * n))


def solve_lower(lower: Matrix, block: Matrix) -> Array:
    """``lower⁻¹ block``; PyTorch's solver is about twice as fast as SciPy's for wide blocks."""
    return as_array(torch.linalg.solve_triangular(as_tensor(lower), as_tensor(block), upper=False))


def whitened_span(lower: Matrix, directions: Matrix) -> torch.Tensor:
    """An orthonormal basis of ``lower⁻¹ directions``: with none, it has no columns."""
    factor = as_tensor(lower)
    spanned = torch.linalg.qr(as_tensor(directions, factor.device))[0]
    basis: torch.Tensor = torch.linalg.qr(torch.linalg.solve_triangular(factor, spanned, upper=False))[0]
    return basis


def units(variances: Array) -> Array:
    """Powers of two, one for each variance, near its square root: dividing by them rounds nothing."""
    exponents = np.round(np.log2(np.maximum(variances, np.finfo(np.float64).tiny)) / 2.0)
    return np.asarray(np.exp2(exponents))
