"""Monte Carlo truth: functions from the prior, real releases of them, and what the Bayes reader then really knows."""

from __future__ import annotations

import dataclasses
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

import sfumato as sf
from kernels import matern
from sfumato.noise.noise import CorrelatedNoise

X = np.linspace(0.0, 2.0, 21)
S = np.array([[0.8], [1.0], [1.13], [1.2]])
PRIOR = sf.Prior(matern(0.6, 4.0), mean=10.0, noise=0.05)
DRAWS = 1500
LEVELS = (0.5, 0.9, 0.95)

#: All tests of one call together fail by chance with at most this probability.
ERROR = 1e-6


class Readings(NamedTuple):
    """How wrong the reader was, in a row for each replication, at the sensitive inputs; its claims; the promise."""

    errors: np.ndarray
    std: np.ndarray
    floor: np.ndarray


@pytest.fixture(scope="module")
def mechanism() -> sf.Mechanism:
    return sf.protect(PRIOR, X, sf.Box(0.8, 1.2), alpha=0.4, progress=False)


def functions(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """f(S) and y for ``count`` functions from the prior."""
    everywhere = np.concatenate([X, S[:, 0]])
    K = PRIOR.covariance(everywhere) + 1e-10 * np.eye(len(everywhere))
    f = 10.0 + rng.standard_normal((count, len(everywhere))) @ np.linalg.cholesky(K).T
    return f[:, len(X) :], f[:, : len(X)] + np.sqrt(0.05) * rng.standard_normal((count, len(X)))


def readings(mechanism: sf.Mechanism) -> Readings:
    """Every replication goes through ``mechanism.release``: the secure key, the rounding, all of it."""
    f, y = functions(np.random.default_rng(1), DRAWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        releases = [mechanism.release(values) for values in y]
    published = np.array([release.outputs for release in releases])
    # prediction is linear in W, so 1500 readers cost no more than the columns of a matrix
    seen = releases[0].predict(S)
    offset = np.array([dataclasses.replace(releases[0], outputs=np.zeros(len(X))).predict(S).mean])
    weights = (
        np.array([dataclasses.replace(releases[0], outputs=row).predict(S).mean for row in np.eye(len(X))]) - offset
    )
    means = offset + published @ weights
    for number in (0, 1, DRAWS - 1):
        np.testing.assert_allclose(means[number], releases[number].predict(S).mean, rtol=1e-9)
    return Readings(means - f, seen.std, mechanism.tolerance.floor(PRIOR, S))


def failures(readings: Readings, error: float = ERROR) -> list[str]:
    """Which claims the replications speak against; all of them true, none is named with probability 1 − ``error``."""
    count, inputs = readings.errors.shape
    chance = error / (inputs * (1 + 2 + 2 * len(LEVELS)))
    squares = np.sum(readings.errors**2, axis=0)
    wrong = []
    if np.any(squares < readings.floor**2 * chi2.ppf(chance, count)):
        wrong.append("the mean squared error is below floor²")
    low, high = chi2.ppf(chance, count), chi2.isf(chance, count)
    if np.any((squares < readings.std**2 * low) | (squares > readings.std**2 * high)):
        wrong.append("the mean squared error is not the posterior variance")
    for level in LEVELS:
        inside = np.sum(np.abs(readings.errors) <= norm.isf((1 - level) / 2) * readings.std, axis=0)
        if np.any((inside < binom.ppf(chance, count, level)) | (inside > binom.isf(chance, count, level))):
            wrong.append(f"{level:.0%} intervals do not hold {level:.0%}")
    return wrong


def test_the_bayes_reader_knows_what_was_promised_and_no_more(mechanism: sf.Mechanism) -> None:
    """Over 1500 functions from the prior, each released for real.

    At each of four sensitive inputs: mean squared error ≥ floor² (one-sided χ²), equal to the posterior variance
    (two-sided χ²), and 50, 90 and 95 % intervals with nominal coverage (two-sided binomial): 36 tests at 1e-6/36 each,
    so that all of them together fail by chance with probability at most 1e-6. Replications are independent: functions
    from a seeded generator, noise from the mechanism's secret key, which is new in every run.
    """
    assert failures(readings(mechanism)) == []


def test_the_check_fails_for_a_mechanism_with_half_the_noise(mechanism: sf.Mechanism) -> None:
    """Half of the noise, published as such: the best reader of it gets below the floor, and the check says so."""
    noise = CorrelatedNoise(mechanism.noise.factor / 2, mechanism.noise.shift / 4)
    broken = dataclasses.replace(mechanism, design=dataclasses.replace(mechanism.design, noise=noise))
    assert failures(readings(broken)) == ["the mean squared error is below floor²"]


def test_the_check_fails_for_a_reader_who_is_told_the_wrong_noise(mechanism: sf.Mechanism) -> None:
    """Three times the noise that is published: errors are larger than claimed, and intervals hold too little."""
    noise = CorrelatedNoise(mechanism.noise.factor * 3, mechanism.noise.shift)
    loud = dataclasses.replace(mechanism, design=dataclasses.replace(mechanism.design, noise=noise))
    told = readings(mechanism)
    f, y = functions(np.random.default_rng(2), 500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        means = [dataclasses.replace(loud.release(values), design=mechanism.design).predict(S).mean for values in y]
    wrong = failures(Readings(np.array(means) - f, told.std, told.floor))
    assert "the mean squared error is not the posterior variance" in wrong
    assert "90% intervals do not hold 90%" in wrong


def test_the_noise_of_releases_is_the_noise_that_is_published(mechanism: sf.Mechanism) -> None:
    """W − y over 1500 releases has the covariance Σ: whitened, its squares are χ² (two-sided, 1e-6 in all)."""
    _, y = functions(np.random.default_rng(3), DRAWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        drawn = np.array([mechanism.release(values).outputs - values for values in y])
    values, vectors = np.linalg.eigh(mechanism.noise.covariance())
    keep = values > 1e-6 * values[-1]
    white = drawn @ vectors[:, keep] / np.sqrt(values[keep])
    chance = ERROR / (2 * keep.sum() + 1)
    squares = np.sum(white**2, axis=0)
    assert np.all(squares > chi2.ppf(chance, DRAWS))
    assert np.all(squares < chi2.isf(chance, DRAWS))
    assert np.abs(drawn @ vectors[:, ~keep]).max() < 1e-2 * np.sqrt(values[-1])
