"""Readers who infer: the one of the promise, those who rightly know more than the prior, and those who fit a model.

More is: a better prior, true values of f next to the region, or some of the secret rows. Who trusts no published
parameter fits a model of their own to the published values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.optimize
import torch

from ..arrays import Array, Index, Mask
from ..data import as_outputs
from ..errors import FitWarning, FormatError, InputError
from ..linalg import Whitening
from ..models import LogDensity, Prior, build_kernel, describe_kernel
from .rivals import stationary as stationary_model
from .target import Estimate, Evidence, NotTriedError, Target, between_rows

#: The share of the rows outside the region at which a reader knows f: those nearest to it.
KNOWN_SHARE = 0.1

#: How many times as slowly functions vary for readers who believe in other lengthscales.
LENGTHSCALE_FACTORS = (0.5, 2.0, 3.0)

#: The share of the prior's variance that is left for what a trend does not explain.
RESIDUAL_SHARE = 0.1

#: The share of V that a reader believes in who knows of smaller measurement errors.
NOISE_SHARE = 0.1

#: Powers, and harmonics of the data's span, that a trend may be made of.
POWERS, HARMONICS = 3, 6

#: More rows than this do not change a fit, and take long.
MOST_FITTED = 400


def bayes(target: Target, did: str = "The exact posterior given everything that is published") -> Estimate:
    """The exact posterior of f given the release, as ``release.predict`` has it: the reader of the certificate."""
    return _with_prior(target, target.prior, did)


def bayes_with(target: Target, number: int, prior: Prior) -> Estimate:
    """The same with another of the priors for which the promise was made, and judged under that one. Covered."""
    did = f"The exact posterior of a reader with prior {number} of those that are protected against"
    return bayes(replace(target, prior=prior), did)


def looks_between_rows(target: Target) -> Estimate:
    """The Bayes reader at inputs of the region that are no rows. Not covered where only the rows were promised."""
    if target.design.cover != "rows" or target.records is not None:
        raise NotTriedError("the floor is promised in the whole region, so this is the Bayes reader")
    between = replace(target, inputs=between_rows(target.design))
    return bayes(between, "The Bayes reader asks at inputs between the rows, for which nothing was promised")


def knows_values(target: Target) -> Estimate:
    """f is known exactly at a tenth of the rows outside the region, those nearest to it.

    Not covered: the promise counts what the release tells, not what is known besides. Where the owner has measurement
    errors, the owner's best estimate stands for the true values.
    """
    if np.all(target.rows_inside):
        raise NotTriedError("there are no rows outside the region")
    rows = target.rows[_nearest(target)]
    count = len(rows)
    known = Evidence(rows, target.owner.mean_at(rows), np.zeros((count, count)), np.full(count, -1))
    evidence = target.evidence.and_also(known, np.zeros((len(target.rows), count)))
    did = f"A reader who knows f exactly at the {count} rows next to the region"
    return Estimate.by(target, evidence, target.prior, did)


def _nearest(target: Target) -> Mask:
    """The rows outside that are nearest to the region, in units of the columns' spreads."""
    spread = np.std(target.rows, axis=0)
    moved = target.design.region.project(target.rows, target.design.inputs) - target.rows
    distance = np.sqrt(np.sum((moved / np.where(spread > 0, spread, 1.0)) ** 2, axis=1))
    distance[target.rows_inside] = np.inf
    count = int(np.ceil(KNOWN_SHARE * np.sum(~target.rows_inside)))
    known = np.zeros(len(target.rows), dtype=np.bool_)
    known[np.argsort(distance, kind="stable")[:count]] = True
    return known


def holds_rows(target: Target, rows: Index, who: str = "") -> Estimate:
    """An insider, who has the true y of these ``rows``; judged at sensitive values that are none of them.

    A neighbour, a public register, a leak. What they may learn is measured by what they did not know: covered where
    the promise is made to them (``insiders=``). W − y at the held rows is noise, and noise of few sources
    (``release.noise.rank``) is known everywhere once it is known at as many rows.
    """
    elsewhere, inside = target.held_by(rows), int(np.sum(target.rows_inside[rows]))
    evidence = target.evidence_with(rows, target.y[rows])
    count = f"{len(rows)} row{'s' * (len(rows) > 1)}"
    did = f"A reader who holds the true values of {count}{who}, {inside} of them inside the region"
    return Estimate.by(elsewhere, evidence, target.prior, did)


def less_noise(target: Target) -> Estimate:
    """A reader who believes that the measurement errors V are a tenth of what the owner says."""
    prior = target.prior
    if not np.any(target.own_noise > 0):
        raise NotTriedError("the prior has no measurement errors (V = 0)")
    smaller = Prior(prior.kernel, prior.mean, NOISE_SHARE * np.asarray(prior.noise))
    return _with_prior(target, smaller, "A reader who believes that V is a tenth of what it is said to be")


def other_lengthscales(target: Target, factor: float) -> Estimate:
    """A reader who believes that f varies ``factor`` times as slowly."""
    prior = target.prior
    try:
        tree = describe_kernel(prior.kernel)
        changed = _scaled(tree, factor)
        if changed == tree:
            raise NotTriedError("the kernel has no lengthscale")
        other = Prior(build_kernel(changed), prior.mean, prior.noise)
    except (InputError, FormatError) as error:
        raise NotTriedError(f"the lengthscales of this kernel are not known: {error}") from error
    return _with_prior(target, other, f"A reader who believes in lengthscales {factor:g} times as long")


def _with_prior(target: Target, prior: Prior, did: str) -> Estimate:
    """What a reader concludes who knows Σ and the rounding, and believes in ``prior``."""
    blur = target.noise + np.diag(prior.noise_variance(len(target.rows)) + target.rounding)
    return Estimate.by(target, target.released(target.published, blur), prior, did, target.evidence)


def _scaled(tree: Any, factor: float) -> Any:
    """The tree of a kernel with every lengthscale multiplied, however deep it lies."""
    if isinstance(tree, list):
        return [_scaled(entry, factor) for entry in tree]
    if not isinstance(tree, dict):
        return tree
    scaled = {key: _scaled(entry, factor) for key, entry in tree.items()}
    if "lengthscale" in tree:
        scaled["lengthscale"] = (np.asarray(tree["lengthscale"]) * factor).tolist()
    return scaled


def knows_physics(target: Target, physics: Callable[[Array], Any]) -> Estimate:
    """A reader who knows the law ``physics`` that f follows, up to a tenth of the prior's variance."""
    if not callable(physics):
        raise InputError(f"physics is {physics!r}; give a function that takes an array of inputs, one a row.")
    law, law_at = (
        as_outputs(physics(np.array(X)), len(X), "what physics returned") for X in (target.rows, target.inputs)
    )
    no_trend = np.zeros((len(target.rows), 0)), np.zeros((len(target.inputs), 0))
    return _from_trend(target, law, law_at, *no_trend, "A reader who knows the given law of f")


def knows_a_trend(target: Target) -> Estimate:
    """A reader who knows that f is made of a few powers and harmonics, and finds out which, by BIC."""
    mean, mean_at = target.prior.mean_at(target.rows), target.prior.mean_at(target.inputs)
    functions, functions_at = _functions(target.rows, target.rows), _functions(target.rows, target.inputs)
    chosen = _chosen(target, target.published - mean, functions)
    trend, trend_at = (np.hstack([part[i] for i in chosen]) for part in (functions, functions_at))
    did = f"A reader who knows that f is a sum of a few powers and harmonics of the data's span, up to {HARMONICS}"
    return _from_trend(target, mean, mean_at, trend, trend_at, did)


def _functions(rows: Array, at: Array) -> list[Array]:
    """1, and for every column x, x², x³ and the sine and cosine of each harmonic of the span."""
    low, span = rows.min(axis=0), np.ptp(rows, axis=0)
    functions = [np.ones((len(at), 1))]
    for turns in ((at - low)[:, span > 0] / span[span > 0]).T:
        functions += [turns[:, None] ** power for power in range(1, POWERS + 1)]
        angles = 2 * np.pi * np.outer(turns, np.arange(1, HARMONICS + 1))
        functions += [np.column_stack([np.sin(angle), np.cos(angle)]) for angle in angles.T]
    return functions


def _chosen(target: Target, values: Array, functions: list[Array]) -> list[int]:
    """The constant, and as long as it pays by BIC the function that explains most of what is left."""
    whiten = _residual_whitening(target).apply
    white, columns = whiten(values), [whiten(function) for function in functions]
    chosen, misfit = [0], _misfit(columns[0], white)
    while len(chosen) < min(len(functions), len(values) // 6):
        left = {i: _misfit(np.hstack([columns[j] for j in (*chosen, i)]), white) for i in range(len(functions))}
        prices = {i: left[i] + columns[i].shape[1] * np.log(len(values)) for i in left if i not in chosen}
        best = min(prices, key=lambda i: prices[i])
        if prices[best] >= misfit:
            break
        chosen, misfit = [*chosen, best], left[best]
    return chosen


def _misfit(columns: Array, white: Array) -> float:
    coefficients = np.linalg.lstsq(columns, white, rcond=1e-10)[0]
    return float(np.sum((white - columns @ coefficients) ** 2))


def _residual_whitening(target: Target) -> Whitening:
    """By K/10 + V + Σ: what is not explained by a trend, and the noise."""
    total = RESIDUAL_SHARE * target.prior.covariance(target.rows) + target.noise
    total[np.diag_indices(len(total))] += target.own_noise + target.rounding
    return Whitening.of(total)


def _from_trend(target: Target, law: Array, law_at: Array, trend: Array, trend_at: Array, did: str) -> Estimate:
    """Universal kriging: generalised least squares of the trend, and a GP of a tenth of the variance for the rest."""
    if target.records is not None:
        raise NotTriedError("it fits a trend, and only records are promised")
    prior, S, whiten = target.prior, target.inputs, _residual_whitening(target).apply
    cross = whiten(RESIDUAL_SHARE * prior.covariance(target.rows, S))
    white = whiten(trend)
    # functions that tell the same (a column with two values has no cubic) share their coefficients
    inverse = np.linalg.pinv(white.T @ white, rcond=1e-12, hermitian=True)
    coefficients = inverse @ (white.T @ whiten(target.published - law))
    rest = whiten(target.published - law - trend @ coefficients)
    mean = law_at + trend_at @ coefficients + cross.T @ rest
    unexplained = trend_at - cross.T @ white
    variance = RESIDUAL_SHARE * prior.variance(S) - np.einsum("ij,ij->j", cross, cross)
    variance = variance + np.einsum("ij,jk,ik->i", unexplained, inverse, unexplained)
    return Estimate(target, mean, np.sqrt(np.maximum(variance, 0.0)), target.evidence, did)


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
