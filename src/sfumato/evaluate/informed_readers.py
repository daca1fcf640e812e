"""Readers who rightly believe something that the owner's prior does not know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from ..arrays import Array, Mask
from ..data import as_outputs
from ..errors import FormatError, InputError
from ..models import Prior, build_kernel, describe_kernel
from .target import Attempt, Evidence, Skipped, Target, between_rows

# The reader of the promise: knows everything but y and the noise that was drawn, and computes without mistakes.

BROKEN = "the promise is not kept, or the file was changed; protect again and look at the certificate"


def bayes(target: Target) -> Attempt:
    """The exact posterior of f given the release, as ``release.predict`` has it. Covered: certificates are about it."""
    blur = target.evidence.blur + np.diag(target.rounding)
    seen = Evidence(target.rows, target.published, blur).seen_by(target.prior)
    return Attempt(
        "Bayes reader",
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence,
        True,
        "critical",
        "The exact posterior given everything that is published",
        BROKEN,
    )


def bayes_with(target: Target, number: int, prior: Prior) -> tuple[Target, Attempt]:
    """The same with another of the priors for which the promise was made, and judged under that one. Covered."""
    other = replace(target, prior=prior)
    did = f"The exact posterior of a reader with prior {number} of those that are protected against"
    return other, replace(bayes(other), name=f"Bayes reader, prior {number}", did=did)


def looks_between_rows(target: Target) -> tuple[Target, Attempt] | Skipped:
    """The Bayes reader at inputs of the region that are no rows. Not covered where only the rows were promised."""
    name = "looks between the rows"
    if target.design.cover != "rows":
        return Skipped(name, "the floor is promised in the whole region, so this is the Bayes reader")
    between = replace(target, inputs=between_rows(target.design))
    return between, replace(
        bayes(between),
        name=name,
        covered=False,
        harm="medium",
        did="The Bayes reader asks at inputs between the rows, for which nothing was promised",
        remedy='protect the whole region with cover="auto"',
    )


# A reader who knows some true values of f next to the region.

SHARE = 0.1


def knows_values(target: Target) -> Attempt | Skipped:
    """f is known exactly at a tenth of the rows outside the region, those nearest to it.

    Not covered: the promise counts what the release tells, not what is known besides. Where the owner has measurement
    errors, the owner's best estimate stands for the true values.
    """
    name = "knows nearby values"
    if np.all(target.rows_inside):
        return Skipped(name, "there are no rows outside the region")
    known = _nearest(target)
    rows, count = target.rows[known], int(known.sum())
    values = target.owner.mean_at(rows)
    nothing = np.zeros((count, count)), np.zeros((len(target.rows), count))
    evidence = target.evidence.and_also(rows, values, *nothing)
    seen = evidence.seen_by(target.prior)
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        evidence,
        False,
        "high",
        f"A reader who knows f exactly at the {count} rows next to the region",
        "make the region larger, so that it has all inputs whose values others may know, or choose a larger floor",
    )


def _nearest(target: Target) -> Mask:
    """The rows outside that are nearest to the region, in units of the columns' spreads."""
    inputs = target.design.inputs
    spread = np.std(target.rows, axis=0)
    moved = target.design.region.project(target.rows, inputs) - target.rows
    distance = np.sqrt(np.sum((moved / np.where(spread > 0, spread, 1.0)) ** 2, axis=1))
    distance[target.rows_inside] = np.inf
    count = int(np.ceil(SHARE * np.sum(~target.rows_inside)))
    known = np.zeros(len(target.rows), dtype=np.bool_)
    known[np.argsort(distance, kind="stable")[:count]] = True
    return known


# A reader who holds some of the secret rows already: a public register, a leak, a former customer.


def holds_rows(target: Target) -> tuple[Target, Attempt] | Skipped:
    """The true y of every other row inside the region is known; judged at sensitive inputs that are none of them.

    Not covered: the promise counts what the release tells, not what is known besides. W − y at the held rows is noise,
    and noise of few sources (``release.noise.rank``) is known everywhere once it is known at as many rows.
    """
    name = "holds half of the rows"
    inside = np.flatnonzero(target.rows_inside)
    if len(inside) == 0:
        return Skipped(name, "there are no rows inside the region")
    held = np.zeros(len(target.rows), dtype=np.bool_)
    held[inside[::2]] = True
    elsewhere = target.away_from(held)
    if elsewhere is None:
        return Skipped(name, "all sensitive inputs are rows that this reader holds")
    evidence = target.evidence_with(held, target.y[held])
    seen = evidence.seen_by(target.prior)
    attempt = Attempt(
        name,
        seen.mean_at(elsewhere.inputs),
        np.sqrt(seen.variance(elsewhere.inputs)),
        evidence,
        False,
        "high",
        f"A reader who holds the true values of {int(held.sum())} of the {len(inside)} rows inside the region",
        'leave out rows that others hold, blur every row by itself (structure="diagonal"), or choose a larger floor',
    )
    return elsewhere, attempt


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
