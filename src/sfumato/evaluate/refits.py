"""A reader who trusts no published parameter: refits all of them, tries other kernels, and keeps the most likely."""

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
from .target import Attempt, Skipped, Target

# The paper's adversary: takes the published values for plain data and refits a stationary process to them.

#: More rows than this do not change a fit, and take long.
MOST_FITTED = 400


def fitted_rows(rows: int) -> slice:
    """Some of the rows, spread evenly, that stand for all of them in a fit."""
    return slice(None, None, -(-rows // MOST_FITTED))


def stationary(target: Target) -> Attempt | Skipped:
    """Lengthscales, variance, mean and one noise variance for all rows, fitted to W; Σ is ignored.

    Covered: whatever is computed from W alone is no better than the Bayes reader under the owner's prior. Where it is
    closer to the truth all the same, the data speak against the owner's prior.
    """
    name = "plain stationary GP"
    few = fitted_rows(len(target.rows))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            fitted = stationary_model(target.rows[few], target.published[few]).process
            seen = fitted.condition(target.rows, target.published)
    except InputError as error:
        return Skipped(name, f"no plain process fits the published values: {error}")
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence,
        True,
        "medium",
        "A plain GP refitted to the published values, as if they had no added noise",
        "the prior does not fit; fit another kernel, or name the priors that you fear: protect(..., priors=[...])",
        own_prior=True,
    )


#: Lengthscales (in standard deviations of a column), variances and noise (in variances of W), shapes.
_BOUNDS = {"lengthscale": (1e-2, 1e2), "variance": (1e-3, 1e3), "noise": (1e-8, 1e1), "shape": (1e-1, 1e2)}
_STARTS = (1.0, 0.1)
_STEPS = 60

#: r² ↦ correlation, with a shape that only the rational quadratic has.
_CORRELATIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "rbf": lambda squares, shape: torch.exp(-0.5 * squares),
    "matern12": lambda squares, shape: torch.exp(-_root(squares)),
    "matern32": lambda squares, shape: (1 + _root(3 * squares)) * torch.exp(-_root(3 * squares)),
    "matern52": lambda squares, shape: (1 + _root(5 * squares) + 5 / 3 * squares) * torch.exp(-_root(5 * squares)),
    "rational_quadratic": lambda squares, shape: torch.exp(-shape * torch.log1p(squares / (2 * shape))),
}
_TREES: dict[str, dict[str, Any]] = {
    "rbf": {"kind": "rbf"},
    "matern12": {"kind": "matern", "nu": 0.5},
    "matern32": {"kind": "matern", "nu": 1.5},
    "matern52": {"kind": "matern", "nu": 2.5},
    "rational_quadratic": {"kind": "rational_quadratic"},
}


@dataclass(frozen=True, eq=False)
class Refitted:
    """A model that was fitted to W, with or without the published Σ, and its log likelihood."""

    kernel: str
    knows_noise: bool
    prior: Prior
    log_likelihood: float


def refit(target: Target) -> Attempt | Skipped:
    """Every parameter by maximum likelihood, for five kernels, with and without Σ; the most likely model predicts.

    Covered: it knows W and Σ only, so under the owner's prior it is no better than the Bayes reader. Where it is closer
    to the truth all the same, the data speak against the owner's prior.
    """
    if float(np.std(target.published)) == 0.0:
        return Skipped("refits everything", "the published values are all the same, so there is nothing to fit")
    best = max(refits(target), key=lambda fitted: fitted.log_likelihood)
    blur = np.diag(best.prior.noise_variance(len(target.rows))) + (target.noise if best.knows_noise else 0.0)
    seen = best.prior.condition(target.rows, target.published, blur)
    how = "with" if best.knows_noise else "without"
    return Attempt(
        "refits everything",
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence,
        True,
        "medium",
        f"Five kernels refitted to the published values; the most likely is {best.kernel}, {how} the published noise",
        "the prior does not fit; fit another kernel, or name the priors that you fear: protect(..., priors=[...])",
        own_prior=True,
    )


def refits(target: Target) -> list[Refitted]:
    """All models that this reader tries."""
    few = fitted_rows(len(target.rows))
    noise = target.noise[few, few]
    return [
        _fitted(kernel, knows, target.rows[few], target.published[few], noise)
        for knows in (True, False)
        for kernel in _CORRELATIONS
    ]


def _fitted(kernel: str, knows_noise: bool, X: Array, W: Array, noise: Array) -> Refitted:
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
        covariance = free[-3] * _CORRELATIONS[kernel](squares, free[-1]) + added + free[-2] * torch.eye(len(values))
        density = LogDensity.apply(covariance, values - raw[-1])
        density.backward()
        assert raw.grad is not None
        return -float(density.detach()), -raw.grad.numpy()

    found = []
    for start in _STARTS:
        begin = np.log(np.array([start] * X.shape[1] + [1.0, 1e-2, 1.0, 1.0]))
        begin[-1] = 0.0
        found.append(
            scipy.optimize.minimize(
                slope, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS}
            )
        )
    best = min(found, key=lambda result: float(result.fun))
    numbers = np.exp(best.x[:-1])
    base = {**_TREES[kernel], "lengthscale": (numbers[: X.shape[1]] * x_scale).tolist()}
    if kernel == "rational_quadratic":
        base["alpha"] = float(numbers[-1])
    tree = {"kind": "scale", "variance": float(numbers[-3]) * scale**2, "kernel": base}
    prior = Prior(build_kernel(tree), offset + scale * float(best.x[-1]), float(numbers[-2]) * scale**2)
    return Refitted(kernel, knows_noise, prior, -float(best.fun) - len(values) * math.log(scale))


def _root(squares: torch.Tensor) -> torch.Tensor:
    # the root has no slope at 0
    return torch.sqrt(squares + 1e-24)
