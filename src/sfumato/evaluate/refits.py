"""Readers who trust no published parameter: they fit their own to the published values."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import torch

from ..arrays import Array
from ..errors import FitWarning, InputError
from ..models import LogDensity, Prior, build_kernel
from .baselines import stationary as stationary_model
from .target import Estimate, NotTriedError, Target

#: More rows than this do not change a fit, and take long.
MOST_FITTED = 400


def stationary(target: Target) -> Estimate:
    """The paper's adversary: a plain process, with one noise variance for all rows, fitted to W; Σ is ignored.

    Covered: whatever is computed from W alone is no better than the Bayes reader under the owner's prior. Where it is
    closer to the truth all the same, the data speak against the owner's prior.
    """
    few = _fitted_rows(target)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            fitted = stationary_model(target.rows[few], target.published[few]).process
            seen = fitted.condition(target.rows, target.published)
    except InputError as error:
        raise NotTriedError(f"no plain process fits the published values: {error}") from error
    return Estimate.of(target, seen, "A plain GP refitted to the published values, as if they had no added noise")


def _fitted_rows(target: Target) -> slice:
    """Some of the rows, spread evenly, that stand for all of them in a fit."""
    return slice(None, None, -(-len(target.rows) // MOST_FITTED))


#: Lengthscales (in standard deviations of a column), variances and noise (in variances of W), shapes.
_BOUNDS = {"lengthscale": (1e-2, 1e2), "variance": (1e-3, 1e3), "noise": (1e-8, 1e1), "shape": (1e-1, 1e2)}

#: Lengthscales from which a fit starts, and steps that it takes at most.
_STARTS, _STEPS = (1.0, 0.1), 60

#: How a kernel is described, and r² ↦ its correlation, with a shape that only the rational quadratic has.
_KERNELS: dict[str, tuple[dict[str, Any], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "rbf": ({"kind": "rbf"}, lambda squares, _: torch.exp(-0.5 * squares)),
    "matern12": ({"kind": "matern", "nu": 0.5}, lambda squares, _: torch.exp(-_root(squares))),
    "matern32": (
        {"kind": "matern", "nu": 1.5},
        lambda squares, _: (1 + _root(3 * squares)) * torch.exp(-_root(3 * squares)),
    ),
    "matern52": (
        {"kind": "matern", "nu": 2.5},
        lambda squares, _: (1 + _root(5 * squares) + 5 / 3 * squares) * torch.exp(-_root(5 * squares)),
    ),
    "rational_quadratic": (
        {"kind": "rational_quadratic"},
        lambda squares, shape: torch.exp(-shape * torch.log1p(squares / (2 * shape))),
    ),
}


@dataclass(frozen=True, eq=False)
class Refitted:
    """A model that was fitted to W, with or without the published Σ, and its log likelihood."""

    kernel: str
    knows_noise: bool
    prior: Prior
    log_likelihood: float


def refit(target: Target) -> Estimate:
    """Every parameter by maximum likelihood, for five kernels, with and without Σ; the most likely model predicts.

    Covered: it knows W and Σ only, so under the owner's prior it is no better than the Bayes reader. Where it is closer
    to the truth all the same, the data speak against the owner's prior.
    """
    if float(np.std(target.published)) == 0.0:
        raise NotTriedError("the published values are all the same, so there is nothing to fit")
    best = max(refits(target), key=lambda fitted: fitted.log_likelihood)
    blur = np.diag(best.prior.noise_variance(len(target.rows))) + (target.noise if best.knows_noise else 0.0)
    seen = best.prior.condition(target.rows, target.published, blur)
    how = "with" if best.knows_noise else "without"
    did = f"Five kernels refitted to the published values; the most likely is {best.kernel}, {how} the published noise"
    return Estimate.of(target, seen, did)


def refits(target: Target) -> list[Refitted]:
    """All models that this reader tries."""
    few = _fitted_rows(target)
    rows, published, noise = target.rows[few], target.published[few], target.noise[few, few]
    return [_fitted(kernel, knows, rows, published, noise) for knows in (True, False) for kernel in _KERNELS]


def _fitted(kernel: str, knows_noise: bool, X: Array, W: Array, noise: Array) -> Refitted:
    """The most likely model of one kernel: L-BFGS-B from a long and from a short lengthscale, on standardised data."""
    kind, correlation = _KERNELS[kernel]
    x_scale = np.where(np.std(X, axis=0) > 0, np.std(X, axis=0), 1.0)
    offset, scale = float(np.mean(W)), float(np.std(W))
    gaps = torch.from_numpy(np.stack([np.subtract.outer(x, x) ** 2 for x in (X / x_scale).T]))
    added = torch.from_numpy(noise / scale**2 if knows_noise else np.zeros_like(noise))
    values = torch.from_numpy((W - offset) / scale)
    names = ["lengthscale"] * X.shape[1] + ["variance", "noise", "shape"]
    bounds = [(math.log(low), math.log(high)) for low, high in (_BOUNDS[name] for name in names)] + [(-10.0, 10.0)]

    def slope(at: Array) -> tuple[float, Array]:
        raw = torch.from_numpy(np.array(at)).requires_grad_(True)
        free = torch.exp(raw[:-1])
        squares = torch.tensordot(free[: X.shape[1]] ** -2, gaps, dims=1)
        covariance = free[-3] * correlation(squares, free[-1]) + added + free[-2] * torch.eye(len(values))
        density = LogDensity.apply(covariance, values - raw[-1])
        density.backward()
        assert raw.grad is not None
        return -float(density.detach()), -raw.grad.numpy()

    how: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": {"maxiter": _STEPS}}
    starts = [np.log([start] * X.shape[1] + [1.0, 1e-2, 1.0]) for start in _STARTS]
    found = [scipy.optimize.minimize(slope, np.append(start, 0.0), **how) for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    numbers = np.exp(best.x[:-1])
    base = {**kind, "lengthscale": (numbers[: X.shape[1]] * x_scale).tolist()}
    if kernel == "rational_quadratic":
        base["alpha"] = float(numbers[-1])
    tree = {"kind": "scale", "variance": float(numbers[-3]) * scale**2, "kernel": base}
    prior = Prior(build_kernel(tree), offset + scale * float(best.x[-1]), float(numbers[-2]) * scale**2)
    return Refitted(kernel, knows_noise, prior, -float(best.fun) - len(values) * math.log(scale))


def _root(squares: torch.Tensor) -> torch.Tensor:
    # the root has no slope at 0
    return torch.sqrt(squares + 1e-24)
