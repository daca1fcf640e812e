"""How coregionalised outputs are mixed: a covariance B between outputs as W with ``W Wᵀ = B``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse.csgraph
from gpytorch.kernels import Kernel, LCMKernel, MultitaskKernel, ScaleKernel

from .errors import InputError
from .inputs import Array

#: An eigenvalue of B may be below zero by this share of the largest: that is round-off.
NEGATIVE = 1e-10


def covariance_factor(B: Any, names: Sequence[str]) -> Array:
    """W with ``W Wᵀ = B``; outputs that B does not connect share no column of it.

    >>> covariance_factor([[4.0, 0.0], [0.0, 9.0]], ("a", "b"))
    array([[2., 0.],
           [0., 3.]])
    """
    matrix = _covariance(B, names)
    columns = []
    _, labels = scipy.sparse.csgraph.connected_components(matrix != 0.0, directed=False)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        values, vectors = np.linalg.eigh(matrix[np.ix_(members, members)])
        for value, vector in zip(values, vectors.T, strict=True):
            if value > 0.0:
                column = np.zeros(len(matrix))
                # the sign of an eigenvector is free; this one does not depend on the machine
                column[members] = np.sqrt(value) * vector * (np.sign(vector[np.argmax(np.abs(vector))]))
                columns.append(column)
    return np.stack(columns, axis=1)


def _covariance(B: Any, names: Sequence[str]) -> Array:
    try:
        matrix = np.array(B.detach().cpu() if hasattr(B, "detach") else B, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"B is {str(B)[:60]!r}; give a matrix of numbers.") from None
    count = len(names)
    if matrix.shape != (count, count) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"B has shape {matrix.shape}; give a {count} × {count} matrix of finite numbers, one row for each of "
            f"{', '.join(names)}."
        )
    if np.abs(matrix - matrix.T).max() > NEGATIVE * np.abs(matrix).max():
        raise InputError("B is not symmetric, but a covariance is; give for example (B + B.T)/2.")
    matrix = (matrix + matrix.T) / 2.0
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -NEGATIVE * np.abs(values).max():
        raise InputError(f"B has the eigenvalue {values[0]:.4g}, but a covariance has none below 0; give W @ W.T.")
    if values[-1] <= 0.0:
        raise InputError("B is zero, and so are all outputs; give a covariance with a positive diagonal.")
    return matrix


def multitask_factors(kernel: Kernel, names: Sequence[str]) -> list[tuple[Kernel, Array]]:
    """The base kernels of a GPyTorch kernel for several tasks, each with the W that mixes it."""
    if type(kernel) is LCMKernel:
        return [_factor(part, names) for part in kernel.covar_module_list]
    return [_factor(kernel, names)]


def _factor(kernel: Kernel, names: Sequence[str]) -> tuple[Kernel, Array]:
    if type(kernel) is not MultitaskKernel:
        raise InputError(
            f"kernel is of class {type(kernel).__name__}; give a MultitaskKernel or an LCMKernel, or use "
            "JointPrior.coregionalised with a matrix B."
        )
    if kernel.batch_shape:
        raise InputError(f"kernel has a batch shape {tuple(kernel.batch_shape)}; give one kernel, not a batch.")
    if kernel.num_tasks != len(names):
        raise InputError(f"kernel has {kernel.num_tasks} tasks, but outputs has {len(names)} names; give one a task.")
    base = kernel.data_covar_module
    _refuse_columns(kernel)
    _refuse_columns(base)
    while isinstance(base, ScaleKernel):
        base = base.base_kernel
        _refuse_columns(base)
    tasks = copy.deepcopy(kernel.task_covar_module).double().requires_grad_(False)
    own = np.diag(np.sqrt(tasks.var.cpu().numpy()))
    return kernel.data_covar_module, np.concatenate([tasks.covar_factor.cpu().numpy(), own], axis=1)


def _refuse_columns(kernel: Kernel) -> None:
    if kernel.active_dims is not None:
        raise InputError(
            f"kernel has a {type(kernel).__name__} with active_dims={kernel.active_dims.tolist()}, which GPyTorch "
            "passes over inside a MultitaskKernel; leave active_dims out, or use JointPrior.coregionalised."
        )
