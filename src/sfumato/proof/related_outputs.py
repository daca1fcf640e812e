"""Outputs that are protected one by one but look related (MATH.md 8): then neither is protected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import torch

from ..arrays import Array, evenly
from ..data import Inputs
from ..errors import InputError
from ..models import OutputsKernel, Prior, kernel_jet
from ..promise import Design, Finding, Revealed

#: Covariances that differ by at most this share of the largest are the same.
SAME_COVARIANCE = 1e-6

#: One output looks like the slope of another if their covariances are at least as alike as this (the cosine between
#: them) and their variances differ by at most this factor.
LEAST_COSINE, MOST_VARIANCE_RATIO = 0.6, 30.0

#: The slope of one output and the values of another are taken for the same if they are correlated like this, at no
#: fewer rows than this.
LEAST_CORRELATION, FEWEST_ROWS = 0.95, 5

#: How many inputs are looked at.
MOST_INPUTS = 64

#: Values go together if they are correlated like this, and by so many standard errors: 1 in 1000 by chance.
LEAST_TOGETHER, STANDARD_ERRORS = 0.3, 3.3
#: Who knows of a correlation like this, and sees the other output, has half the error or less.
HALF_THE_ERROR = 0.75**0.5
#: At how many rows that is looked at.
MOST_ROWS = 500


#: What to say of outputs that look related.
SAY_HOW = (
    "say how they are related and protect them as one: sf.JointPrior.of or --relation where one follows from the "
    "other, sf.fit_correlated or --correlated where they only go together."
)


def _protected_one_by_one(text: str, remedy: str = SAY_HOW) -> Finding:
    return Finding(
        "protected-one-by-one",
        "high",
        f"{text}. If they are related, neither is protected.",
        f"Publish one of them only, or {remedy}",
    )


def _go_together(text: str) -> Finding:
    return Finding(
        "outputs-go-together",
        "medium",
        f"{text}. Who knows of that learns a little more of each from the other.",
        f"Publish one of them only, or {SAY_HOW}",
    )


def findings_on_outputs(design: Design) -> tuple[Finding, ...]:
    """One for each pair of outputs that the prior takes for independent although they look related under it."""
    kernel, inputs = design.prior.kernel, design.inputs
    if not isinstance(kernel, OutputsKernel):
        return ()
    plain = inputs.plain.values[:: -(-len(inputs) // MOST_INPUTS)]
    found = []
    for first, second in combinations(range(len(inputs.outputs)), 2):
        takes = kernel.takes_input(first) and kernel.takes_input(second)
        if kernel.related[first, second] or not takes:
            continue
        one, other = (design.prior.covariance(inputs.outputs.rows(plain, number)) for number in (first, second))
        why = _seem_related(one, other, plain, kernel)
        if why:
            names = f"{inputs.outputs.names[first]!r} and {inputs.outputs.names[second]!r}"
            found.append(
                _protected_one_by_one(f"{names} are protected one by one, as if they were independent, but {why}")
            )
    return tuple(found)


def one_by_one(prior: Prior, inputs: Inputs, name: str, revealed: Sequence[Revealed]) -> tuple[Finding, ...]:
    """One for each output of a ledger that the prior of the next release does not have."""
    known = {*inputs.outputs.called(name)}
    found = []
    for release in revealed:
        for other in release.outputs:
            if other in known:
                continue
            known.add(other)
            shared = ", but they share a prior" if _same_kernel(prior, release.design.prior, inputs) else ""
            found.append(
                _protected_one_by_one(
                    f"This output and {other!r} are protected one by one: the ledger has releases of {other!r}, and "
                    f"this prior does not have it{shared}"
                )
            )
    return tuple(found)


def look_alike(inputs: Inputs, values: Array, prior: Prior) -> tuple[Finding, ...]:
    """What the data themselves show, for the owner's eyes only: an output that is the slope of another one, or goes
    together with it although they are taken for independent."""
    kernel = prior.kernel
    if not isinstance(kernel, OutputsKernel):
        return ()
    found = [*_together(inputs, values, prior, kernel)]
    if inputs.features != 1:
        return tuple(found)
    for first in inputs.present:
        for second in inputs.present:
            one, other = inputs.outputs.number(first), inputs.outputs.number(second)
            if one == other or not (kernel.takes_input(one) and kernel.takes_input(other)):
                continue
            if kernel.follows[one, other] or not _is_slope(inputs, values, first, second):
                continue
            slope = f"{second!r} looks like the derivative of {first!r}, but they are"
            if not kernel.related[one, other]:
                found.append(_protected_one_by_one(f"{slope} protected one by one, as if they were independent"))
            else:
                found.append(
                    _protected_one_by_one(
                        f"{slope} taken for correlated at equal inputs, which a function and its derivative are not",
                        "say that one is the derivative of the other: sf.JointPrior.of or --relation.",
                    )
                )
    return tuple(found)


def _together(inputs: Inputs, values: Array, prior: Prior, kernel: OutputsKernel) -> Iterator[Finding]:
    """One for each pair of outputs that the prior takes for independent although their values are correlated."""
    for first, second in combinations(inputs.present, 2):
        one, other = inputs.outputs.number(first), inputs.outputs.number(second)
        if kernel.related[one, other] or not (kernel.takes_input(one) and kernel.takes_input(other)):
            continue
        correlation = _correlation(inputs, values, prior, first, second)
        if abs(correlation) > LEAST_TOGETHER:
            said = _protected_one_by_one if abs(correlation) > HALF_THE_ERROR else _go_together
            yield said(
                f"The values of {first!r} and {second!r} go together (correlation {correlation:.2f}), but they are "
                "protected one by one, as if they were independent"
            )


def _correlation(inputs: Inputs, values: Array, prior: Prior, first: str, second: str) -> float:
    """The correlation of two outputs, 0 where it may be chance.

    Neighbouring rows of smooth outputs are not independent. So both are looked at in the directions in which they
    vary more than their noise does, the same for both; there a prior knows the size of each, and they are independent.
    """
    a, b = inputs.rows_about(first), inputs.rows_about(second)
    plain = inputs.plain.values
    if len(a) != len(b) or not np.array_equal(plain[a], plain[b]):
        return 0.0
    some = evenly(len(a), MOST_ROWS)
    noise = prior.noise_variance(len(inputs))
    parts = [(prior.covariance(inputs.values[rows[some]]), rows[some]) for rows in (a, b)]
    _, directions = np.linalg.eigh(sum(K / np.trace(K) for K, _ in parts))
    coefficients, loud = [], np.ones(len(some), dtype=np.bool_)
    for K, rows in parts:
        signal = np.einsum("ij,ij->j", directions, K @ directions)
        own = (directions**2).T @ noise[rows]
        loud &= signal > np.maximum(own, SAME_COVARIANCE * signal.max())
        centred = values[rows] - prior.mean_at(inputs.values[rows])
        coefficients.append(directions.T @ centred / np.sqrt(signal + own))
    one, other = (part[loud] for part in coefficients)
    if len(one) < FEWEST_ROWS or not (one @ one > 0 and other @ other > 0):
        return 0.0
    correlation = float(one @ other / np.sqrt((one @ one) * (other @ other)))
    surely = abs(np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))) * np.sqrt(len(one) - 1) > STANDARD_ERRORS
    return correlation if surely else 0.0


def _is_slope(inputs: Inputs, values: Array, first: str, second: str) -> bool:
    a, b = inputs.rows_about(first), inputs.rows_about(second)
    at, places = np.unique(inputs.values[a, 0], return_index=True)
    if len(at) < FEWEST_ROWS:
        return False
    slope = np.gradient(values[a][places], at)
    inside = (inputs.values[b, 0] >= at[0]) & (inputs.values[b, 0] <= at[-1])
    if np.sum(inside) < FEWEST_ROWS:
        return False
    expected, seen = np.interp(inputs.values[b[inside], 0], at, slope), values[b[inside]]
    if np.std(expected) == 0 or np.std(seen) == 0:
        return False
    return bool(np.corrcoef(expected, seen)[0, 1] > LEAST_CORRELATION)


def _seem_related(first: Array, second: Array, plain: Array, kernel: OutputsKernel) -> str:
    if np.max(np.abs(first - second)) <= SAME_COVARIANCE * np.max(np.abs(first)):
        return "they share a prior"
    for term in kernel.terms:
        for column in range(plain.shape[1]):
            slopes = _slopes(term.kernel, plain, column)
            if slopes is None:
                continue
            for one, other in ((first, second), (second, first)):
                own = _values(term.kernel, plain)
                scale = one[0, 0] / own[0, 0] if own[0, 0] > 0 else 0.0
                if np.max(np.abs(one - scale * own)) > SAME_COVARIANCE * np.max(np.abs(one)):
                    continue
                if _alike(scale * slopes, other):
                    return "one of them looks like the derivative of the other under their priors"
    return ""


def _alike(first: Array, second: Array) -> bool:
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    ratio = float(np.trace(first) / np.trace(second)) if np.trace(second) > 0 else 0.0
    alike = norms > 0 and float(np.sum(first * second)) > LEAST_COSINE * norms
    return alike and 1 / MOST_VARIANCE_RATIO < ratio < MOST_VARIANCE_RATIO


def _values(kernel: torch.nn.Module, plain: Array) -> Array:
    return np.asarray(kernel_jet(kernel, torch.tensor(plain), torch.tensor(plain), None, None).detach())


def _slopes(kernel: torch.nn.Module, plain: Array, column: int) -> Array | None:
    try:
        return np.asarray(kernel_jet(kernel, torch.tensor(plain), torch.tensor(plain), column, column).detach())
    except InputError:
        return None


def _same_kernel(first: Prior, second: Prior, inputs: Inputs) -> bool:
    rows = inputs.values[:: -(-len(inputs) // MOST_INPUTS)]
    try:
        one, other = first.covariance(rows), second.covariance(rows)
    except InputError:
        return False
    return bool(np.max(np.abs(one - other)) <= SAME_COVARIANCE * np.max(np.abs(one)))
