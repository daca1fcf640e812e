"""Readers who rightly believe something that the owner's prior does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ..errors import FormatError, InputError
from ..inputs import Array, as_outputs
from ..model_tree import build_kernel, describe_kernel
from ..prior import Prior
from .outcome import Attempt, Skipped
from .target import Evidence, Target

#: How much longer or shorter functions vary for readers who believe in other lengthscales.
FACTORS = (0.5, 2.0, 3.0)

#: The share of the prior's variance that is left for what a trend does not explain, and the share of V.
RESIDUAL, LESS_NOISE = 0.1, 0.1

DEGREE, HARMONICS = 3, 6

_REMEDY = "name the priors that you fear: protect(..., priors=[...])"


def better_priors(target: Target, physics: Callable[[Array], Any] | None = None) -> list[Attempt | Skipped]:
    """Smaller measurement errors, other lengthscales, and a trend or the law of nature ``physics(X)``.

    Not covered: the promise is made to readers with the given prior(s). Their errors on these data judge them; the
    errors expected under the owner's prior are still bounded, because what they know beyond W is not in it.
    """
    return [
        less_noise(target),
        *(other_lengthscales(target, factor) for factor in FACTORS),
        knows_a_trend(target) if physics is None else knows_physics(target, physics),
    ]


def less_noise(target: Target) -> Attempt | Skipped:
    """A reader who believes that the measurement errors V are a tenth of what the owner says."""
    name, prior = "knows of smaller errors V", target.prior
    if not np.any(target.own_noise > 0):
        return Skipped(name, "the prior has no measurement errors (V = 0)")
    smaller = Prior(prior.kernel, prior.mean, LESS_NOISE * np.asarray(prior.noise))
    return _with(target, smaller, name, "A reader who believes that V is a tenth of what it is said to be")


def other_lengthscales(target: Target, factor: float) -> Attempt | Skipped:
    """A reader who believes that f varies ``factor`` times as slowly."""
    name, prior = f"lengthscale × {factor:g}", target.prior
    try:
        tree = describe_kernel(prior.kernel)
        changed = _scaled(tree, factor)
        if changed == tree:
            return Skipped(name, "the kernel has no lengthscale")
        other = Prior(build_kernel(changed), prior.mean, prior.noise)
    except (InputError, FormatError) as error:
        return Skipped(name, f"the lengthscales of this kernel are not known: {error}")
    return _with(target, other, name, f"A reader who believes in lengthscales {factor:g} times as long")


def knows_physics(target: Target, physics: Callable[[Array], Any]) -> Attempt:
    """A reader who knows the law ``physics`` that f follows, up to a tenth of the prior's variance."""
    law = _values(physics, target.rows), _values(physics, target.inputs)
    no_trend = np.zeros((len(target.rows), 0)), np.zeros((len(target.inputs), 0))
    return _from_trend(target, *law, *no_trend, "knows the physics", "A reader who knows the given law of f")


def knows_a_trend(target: Target) -> Attempt:
    """A reader who knows that f is made of a few powers and harmonics, and finds out which, by BIC."""
    functions = _functions(target.rows, target.rows), _functions(target.rows, target.inputs)
    means = target.prior.mean_at(target.rows), target.prior.mean_at(target.inputs)
    did = f"A reader who knows that f is a sum of a few powers and harmonics of the data's span, up to {HARMONICS}"
    chosen = _chosen(target, target.published - means[0], functions[0])
    columns = tuple(np.hstack([part[i] for i in chosen]) for part in functions)
    return _from_trend(target, *means, columns[0], columns[1], "knows a trend", did)


def _with(target: Target, prior: Prior, name: str, did: str) -> Attempt:
    blur = target.noise + np.diag(prior.noise_variance(len(target.rows)) + target.rounding)
    seen = Evidence(target.rows, target.published, blur).seen_by(prior)
    return _attempt(target, name, seen.mean_at(target.inputs), seen.variance(target.inputs), did)


def _attempt(target: Target, name: str, mean: Array, variance: Array, did: str) -> Attempt:
    std = np.sqrt(np.maximum(variance, 0.0))
    return Attempt(name, mean, std, target.evidence, False, "medium", did, _REMEDY, own_prior=True)


def _scaled(tree: Any, factor: float) -> Any:
    """The tree with every lengthscale multiplied, however deep it lies."""
    if isinstance(tree, list):
        return [_scaled(entry, factor) for entry in tree]
    if not isinstance(tree, dict):
        return tree
    scaled = {key: _scaled(entry, factor) for key, entry in tree.items()}
    if "lengthscale" in tree:
        scaled["lengthscale"] = (np.asarray(tree["lengthscale"]) * factor).tolist()
    return scaled


def _values(physics: Callable[[Array], Any], X: Array) -> Array:
    if not callable(physics):
        raise InputError(f"physics is {physics!r}; give a function that takes an array of inputs, one a row.")
    return as_outputs(physics(np.array(X)), len(X), "what physics returned")


def _functions(rows: Array, at: Array) -> list[Array]:
    """1, and for every column x, x², x³ and the sine and cosine of each harmonic of the span."""
    low, span = rows.min(axis=0), np.ptp(rows, axis=0)
    functions = [np.ones((len(at), 1))]
    for turns in ((at - low)[:, span > 0] / span[span > 0]).T:
        functions += [turns[:, None] ** power for power in range(1, DEGREE + 1)]
        angles = 2 * np.pi * np.outer(turns, np.arange(1, HARMONICS + 1))
        functions += [np.column_stack([np.sin(angle), np.cos(angle)]) for angle in angles.T]
    return functions


def _chosen(target: Target, values: Array, functions: list[Array]) -> list[int]:
    """The constant, and as long as it pays by BIC the function that explains most of what is left."""
    whiten = _whitener(target)
    white, columns = whiten @ values, [whiten @ function for function in functions]
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


def _whitener(target: Target) -> Array:
    """R with RᵀR = (K/10 + V + Σ)⁻¹: what is not explained by a trend, and the noise."""
    total = RESIDUAL * target.prior.covariance(target.rows) + target.noise
    total[np.diag_indices(len(total))] += target.own_noise + target.rounding
    values, vectors = scipy.linalg.eigh(total)
    keep = values > len(values) * np.finfo(float).eps * values[-1]
    return np.asarray((vectors[:, keep] / np.sqrt(values[keep])).T)


def _from_trend(
    target: Target, law: Array, law_at: Array, trend: Array, trend_at: Array, name: str, did: str
) -> Attempt:
    """Universal kriging: generalised least squares of the trend, and a GP of a tenth of the variance for the rest."""
    prior, S, whiten = target.prior, target.inputs, _whitener(target)
    cross = whiten @ (RESIDUAL * prior.covariance(target.rows, S))
    white = whiten @ trend
    # functions that tell the same (a column with two values has no cubic) share their coefficients
    inverse = np.linalg.pinv(white.T @ white, rcond=1e-12, hermitian=True)
    coefficients = inverse @ (white.T @ (whiten @ (target.published - law)))
    rest = whiten @ (target.published - law - trend @ coefficients)
    mean = law_at + trend_at @ coefficients + cross.T @ rest
    unexplained = trend_at - cross.T @ white
    variance = RESIDUAL * prior.variance(S) - np.einsum("ij,ij->j", cross, cross)
    variance = variance + np.einsum("ij,jk,ik->i", unexplained, inverse, unexplained)
    return _attempt(target, name, mean, variance, did)
