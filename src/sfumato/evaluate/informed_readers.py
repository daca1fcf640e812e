"""Readers who compute without mistakes: the one of the promise, and those who rightly know more than the prior does.

More is: a better prior, true values of f next to the region, or some of the secret rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Array, Mask
from ..data import as_outputs
from ..errors import FormatError, InputError
from ..linalg import Whitening
from ..models import Prior, build_kernel, describe_kernel
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


def bayes(target: Target, did: str = "The exact posterior given everything that is published") -> Estimate:
    """The exact posterior of f given the release, as ``release.predict`` has it: the reader of the certificate."""
    return _with_prior(target, target.prior, did)


def bayes_with(target: Target, number: int, prior: Prior) -> Estimate:
    """The same with another of the priors for which the promise was made, and judged under that one. Covered."""
    did = f"The exact posterior of a reader with prior {number} of those that are protected against"
    return bayes(replace(target, prior=prior), did)


def looks_between_rows(target: Target) -> Estimate:
    """The Bayes reader at inputs of the region that are no rows. Not covered where only the rows were promised."""
    if target.design.cover != "rows":
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
    no_errors = np.zeros((len(rows), len(rows))), np.zeros((len(target.rows), len(rows)))
    evidence = target.evidence.and_also(rows, target.owner.mean_at(rows), *no_errors)
    did = f"A reader who knows f exactly at the {len(rows)} rows next to the region"
    return Estimate.of(target, evidence.seen_by(target.prior), did, evidence)


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


def holds_rows(target: Target) -> Estimate:
    """The true y of every other row inside the region is known; judged at sensitive inputs that are none of them.

    A public register, a leak, a former customer. Not covered: the promise counts what the release tells, not what is
    known besides. W − y at the held rows is noise, and noise of few sources (``release.noise.rank``) is known
    everywhere once it is known at as many rows.
    """
    inside = np.flatnonzero(target.rows_inside)
    if len(inside) == 0:
        raise NotTriedError("there are no rows inside the region")
    held = np.zeros(len(target.rows), dtype=np.bool_)
    held[inside[::2]] = True
    elsewhere = target.away_from(held)
    if elsewhere is None:
        raise NotTriedError("all sensitive inputs are rows that this reader holds")
    evidence = target.evidence_with(held, target.y[held])
    did = f"A reader who holds the true values of {int(held.sum())} of the {len(inside)} rows inside the region"
    return Estimate.of(elsewhere, evidence.seen_by(target.prior), did, evidence)


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
    return Estimate.of(target, Evidence(target.rows, target.published, blur).seen_by(prior), did)


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
