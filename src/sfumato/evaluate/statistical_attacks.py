"""Readers who infer: the one of the promise, those who rightly know more than the prior, and those who fit a model.

More is: a better prior, true values of f next to the region, or some of the secret rows. Who trusts no published
parameter fits a model of their own to the published values: these are the rivals of a rehearsal (predictors.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Array, Index, Mask
from ..data import as_outputs
from ..errors import FormatError, InputError
from ..linalg import Whitening
from ..models import Prior, build_kernel, describe_kernel
from .predictors import Rival, rivals
from .target import Estimate, Evidence, NotTriedError, Target, between_rows

#: The share of the rows outside the region at which a reader knows f: those nearest to it.
KNOWN_SHARE = 0.1

#: How many times as slowly functions vary for readers who believe in other lengthscales.
LENGTHSCALE_FACTORS = (0.5, 2.0, 3.0)

#: The share of the prior's variance that is left for what a law does not explain.
RESIDUAL_SHARE = 0.1

#: The share of V that a reader believes in who knows of smaller measurement errors.
NOISE_SHARE = 0.1


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
    if target.records is not None:
        raise NotTriedError("it fits a function, and only records are promised")
    law, law_at = (
        as_outputs(physics(np.array(X)), len(X), "what physics returned") for X in (target.rows, target.inputs)
    )
    # the rest of f is a process of a tenth of the variance
    whiten = _residual_whitening(target).apply
    cross = whiten(RESIDUAL_SHARE * target.prior.covariance(target.rows, target.inputs))
    variance = RESIDUAL_SHARE * target.prior.variance(target.inputs) - np.sum(cross**2, axis=0)
    mean = law_at + cross.T @ whiten(target.published - law)
    did = "A reader who knows the given law of f"
    return Estimate(target, mean, np.sqrt(np.maximum(variance, 0.0)), target.evidence, did)


def _residual_whitening(target: Target) -> Whitening:
    """By K/10 + V + Σ: what is not explained by a law, and the noise."""
    total = RESIDUAL_SHARE * target.prior.covariance(target.rows) + target.noise
    total[np.diag_indices(len(total))] += target.own_noise + target.rounding
    return Whitening.of(total)


def models_to_try(target: Target) -> tuple[Rival, ...]:
    """The rivals that are worth a try on the published values; of several outputs, on those of any."""
    if target.records is not None:
        return ()
    found = (rivals(*one) for _, one in _published(target))
    return tuple({one.name: one for each in found for one in each}.values())


def fits_a_model(target: Target, rival: Rival) -> Estimate:
    """What a rival predicts from the published values, each output by itself; it knows V + Σ, or ignores it.

    Covered: whatever is computed from W alone is no better than the Bayes reader under the owner's prior. Where it is
    closer to the truth all the same, the data speak against the owner's prior.
    """
    if float(np.std(target.published)) == 0.0:
        raise NotTriedError("the published values are all the same, so there is nothing to fit")
    outputs = target.design.inputs.outputs
    about = outputs.numbers(target.inputs) if outputs.numbered else np.zeros(len(target.inputs), dtype=np.intp)
    # of an output that is not published it says what the Bayes reader does
    mean = target.evidence.about(target, target.prior)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for number, (X, values, noise) in _published(target):
            places = outputs.plain(target.inputs[about == number])
            if len(places):
                mean[about == number] = rival.predict(X, values, noise, places)
    did = f"A reader who fits a model of their own to the published values ({rival.name})"
    return Estimate(target, mean, np.full(len(mean), np.nan), target.evidence, did)


def _published(target: Target) -> list[tuple[int, tuple[Array, Array, Array]]]:
    """For each output its number, and its inputs, published values and their whole noise."""
    outputs, blur = target.design.inputs.outputs, target.noise + np.diag(target.own_noise + target.rounding)
    numbers = outputs.numbers(target.rows) if outputs.numbered else np.zeros(len(target.rows), dtype=np.intp)
    found = []
    for number in np.unique(numbers):
        own = np.flatnonzero(numbers == number)
        found.append((int(number), (outputs.plain(target.rows[own]), target.published[own], blur[np.ix_(own, own)])))
    return found
