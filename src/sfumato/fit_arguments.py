"""The arguments of ``fit_prior``, checked before any work is done."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from .errors import InputError
from .fit_model import Adam, Question
from .inputs import Array, Inputs, Mask, as_outputs
from .model_tree import build_kernel
from .prior import Prior

KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kind": "rbf"},
    "matern12": {"kind": "matern", "nu": 0.5},
    "matern32": {"kind": "matern", "nu": 1.5},
    "matern52": {"kind": "matern", "nu": 2.5},
}
OPTIMIZERS = ("auto", "lbfgs", "adam")


def require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and math.isfinite(value)


def checked_kernel(kernel: Any, inputs: Inputs) -> str | Kernel:
    if isinstance(kernel, str) and kernel in KERNELS:
        return kernel
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}; give one of {', '.join(map(repr, KERNELS))} or a GPyTorch kernel.")
    prior = Prior(kernel)
    try:
        prior.covariance(inputs.values[:2])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise InputError(
            f"kernel cannot be evaluated on the {inputs.dimension} column(s) of X ({str(error).splitlines()[0]}); "
            "check its active_dims and ard_num_dims."
        ) from error
    return kernel


def checked_mean(mean: Any, inputs: Inputs) -> str | float | Mean:
    if isinstance(mean, str) and mean in ("constant", "zero"):
        return mean if mean == "constant" else 0.0
    if is_number(mean):
        return float(mean)
    if not isinstance(mean, Mean):
        raise InputError(f'mean is {mean!r}; give "constant", "zero", a finite number or a GPyTorch mean.')
    try:
        values = Prior(build_kernel({"kind": "constant", "constant": 1.0}), mean).mean_at(inputs.values[:2])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise InputError(
            f"mean cannot be evaluated on the {inputs.dimension} column(s) of X ({str(error).splitlines()[0]}); "
            "give it the size of X."
        ) from error
    require(values.shape == (min(2, len(inputs)),), "mean is a batch of means; give one.")
    return mean


def checked_noise(noise: Any, rows: Inputs) -> str | Array:
    if isinstance(noise, str):
        require(noise == "learn", f'noise is {noise!r}; give "learn", a variance ≥ 0, or one for each row of X.')
        return noise
    if isinstance(noise, bool) or noise is None:
        raise InputError(f'noise is {noise!r}; give "learn", a variance ≥ 0, or one for each row of X.')
    values = np.array(float(noise)) if is_number(noise) else None
    if values is None:
        if np.ndim(noise) == 0:
            raise InputError(f'noise is {noise!r}; give "learn", a finite variance ≥ 0, or one for each row of X.')
        values = as_outputs(noise, rows, "noise")
    if np.any(values < 0):
        raise InputError(f"noise has the negative variance {float(values.min()):g}; variances are ≥ 0.")
    return values


def checked_lengthscale(lengthscale: Any, kernel: str | Kernel, inputs: Inputs) -> Array | None:
    if lengthscale is None:
        return None
    if isinstance(kernel, Kernel):
        raise InputError(
            "lengthscale goes with kernels given by name; set it on your kernel and fix it there with "
            "raw_lengthscale.requires_grad_(False)."
        )
    try:
        values = np.array(lengthscale, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if isinstance(lengthscale, (bool, str)) or not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise InputError(
            f"lengthscale is {lengthscale!r}; give a positive number, or one for each column of X, in the units of X."
        )
    if values.size == 1:
        values = np.full(inputs.dimension, values[0])
    if values.size != inputs.dimension:
        raise InputError(
            f"lengthscale has {values.size} values, but X has {inputs.dimension} column(s) "
            f"({', '.join(inputs.names)}); give one number, or one for each column."
        )
    return values


def checked_adam(optimizer: Any, epochs: Any, learning_rate: Any, decay: Any, weight_decay: Any) -> Adam | None:
    require(
        isinstance(optimizer, str) and optimizer in OPTIMIZERS,
        f"optimizer is {optimizer!r}; give one of {', '.join(map(repr, OPTIMIZERS))}.",
    )
    if optimizer != "adam":
        given = {"epochs": epochs, "decay": decay, "weight_decay": weight_decay or None}
        extra = next((name for name, value in given.items() if value is not None), None)
        if extra is not None:
            raise InputError(
                f'{extra} is {given[extra]!r}, but only optimizer="adam" uses it; give that or leave it out.'
            )
        return None
    require(
        is_whole(epochs) and epochs >= 1,
        f'epochs is {epochs!r}; optimizer="adam" needs a number of epochs ≥ 1, for example epochs=100.',
    )
    require(
        is_number(learning_rate) and learning_rate > 0,
        f"learning_rate is {learning_rate!r}; give a positive number, for example 0.1.",
    )
    require(
        is_number(weight_decay) and weight_decay >= 0,
        f"weight_decay is {weight_decay!r}; give a number ≥ 0, for example 1e-4.",
    )
    if decay is not None:
        fine = isinstance(decay, (tuple, list)) and len(decay) == 2 and is_whole(decay[0]) and decay[0] >= 1
        require(
            fine and is_number(decay[1]) and 0 < decay[1] <= 1,
            f"decay is {decay!r}; give (step, gamma) with a step ≥ 1 and 0 < gamma ≤ 1, for example (10, 0.1).",
        )
        decay = (int(decay[0]), float(decay[1]))
    return Adam(int(epochs), float(learning_rate), decay, float(weight_decay))


def rows_outside(exclude: Any, inputs: Inputs) -> Mask:
    if exclude is None:
        require(len(inputs) >= 2, f"X has {len(inputs)} row; a prior needs at least 2 to be fitted.")
        return np.ones(len(inputs), dtype=np.bool_)
    if not hasattr(exclude, "bind") or not hasattr(exclude, "contains"):
        raise InputError(f"exclude is {exclude!r}; give a region, for example sf.Box(1.0, 2.0).")
    keep = ~np.asarray(exclude.bind(inputs).contains(inputs.values), dtype=np.bool_)
    left = int(keep.sum())
    if left < 3:
        raise InputError(
            f"exclude leaves {left} of {len(inputs)} rows, too few to fit a prior; give a smaller region, or use "
            "sf.Prior with values that are known without the data."
        )
    return np.asarray(keep)


def check_outputs(question: Question) -> None:
    y = question.y
    if np.ptp(y) <= 4 * np.finfo(float).eps * np.abs(y).max():
        raise InputError(
            f"y is constant ({y[0]:g} in all {len(y)} rows), so no variance can be fitted; give the values yourself, "
            f"for example sf.Prior(kernel=..., mean={y[0]:g})."
        )


def check_repeated_rows(question: Question) -> None:
    _, first, group = np.unique(question.X, axis=0, return_index=True, return_inverse=True)
    twin = first[group.reshape(-1)]
    gap = np.abs(question.y - question.y[twin])
    if gap.max() > 1e-9 * np.ptp(question.y):
        row = int(np.argmax(gap))
        raise InputError(
            f"two rows have the same X ({', '.join(f'{v:g}' for v in question.X[row])}) but different y "
            f'({question.y[twin[row]]:g} and {question.y[row]:g}), which noise=0.0 rules out; give noise="learn".'
        )
