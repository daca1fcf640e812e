"""Attacks on releases with suppressed combinations: what is taken off, what is not, and a release that shows them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.evaluate.audits import adversaries
from sfumato.evaluate.mechanical_attacks import _normals, averaging, find_seed, guesses_seed, reads_suppressed
from sfumato.evaluate.statistical_attacks import bayes
from sfumato.evaluate.target import judge, target_for

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

X = np.linspace(0.0, 3.0, 40)
PRIOR = sf.Prior(matern(0.5, nu=2.5), noise=0.05)


def protected(times: np.ndarray) -> sf.Mechanism:
    made = sf.protect(PRIOR, times, sf.Box(1.2, 1.8), alpha=0.3, objective="predictions", progress=False)
    assert made.noise.suppressed.shape[1] > 0
    assert made.noise.rank > 0
    return made


@pytest.fixture(scope="module")
def mechanism() -> sf.Mechanism:
    return protected(X)


def values(times: np.ndarray = X) -> np.ndarray:
    """y as the prior has it."""
    rng, rows = np.random.default_rng(1), times[:, None]
    root = np.linalg.cholesky(PRIOR.covariance(rows) + PRIOR.noise * np.eye(len(times)))
    return root @ rng.normal(size=len(times))


def test_what_stands_in_place_of_suppressed_combinations_tells_nothing(mechanism: sf.Mechanism) -> None:
    target = target_for(mechanism.release(values()), values())
    tried = {one.name: one for one in adversaries(target)}
    outcome = judge(tried["what is suppressed"], reads_suppressed(target))
    assert outcome.covered
    assert outcome.ratio == judge(tried["Bayes reader"], bayes(target)).ratio >= 1.0
    # more releases take noise off, and nothing else
    again = judge(tried["averages 20 releases"], averaging(target, 100))
    assert again.ratio > 0.99


def test_a_release_that_shows_what_it_says_to_leave_out_breaks_the_promise(mechanism: sf.Mechanism) -> None:
    y, honest = values(), mechanism.release(values())
    drawn = mechanism.noise.factor @ np.random.default_rng(2).normal(size=mechanism.noise.rank)
    target = target_for(replace(honest, outputs=np.round(y + drawn, 8)), y)
    outcome = judge(
        next(one for one in adversaries(target) if one.name == "what is suppressed"), reads_suppressed(target)
    )
    assert (outcome.severity, outcome.ratio < 0.5) == ("critical", True)
    assert outcome.rmse < 0.5 * outcome.floor


def test_a_seed_is_found_behind_what_is_filled_in_and_takes_the_noise_off_alone() -> None:
    # enough noise to tell a seed by: 400 of 400 were found
    times = np.linspace(0.0, 3.0, 200)
    mechanism, y, rows = protected(times), values(times), times[:, None]
    target = target_for(mechanism.release(y, unsafe_seed=7), y)
    assert find_seed(target, 50) == 7
    assert find_seed(target_for(mechanism.release(y), y), 50) is None
    # nothing is drawn where all that is protected is left out
    silent = replace(mechanism.noise, factor=np.zeros((len(times), 0)))
    release = replace(target.release, design=replace(mechanism.design, noise=silent))
    assert find_seed(target_for(release, y), 50) is None
    estimate = guesses_seed(target, 50)
    assert "which is taken off" in estimate.did
    noise = mechanism.noise
    # the same from the textbook: kept combinations without noise
    kept = np.linalg.svd(noise.suppressed)[0][:, noise.suppressed.shape[1] :]
    seen = np.array(target.release.outputs) - noise.factor @ _normals(target, 7)[: noise.rank]
    A = PRIOR.covariance(rows) + PRIOR.noise * np.eye(len(times))
    mean = PRIOR.covariance(target.inputs, rows) @ kept @ np.linalg.solve(kept.T @ A @ kept, kept.T @ seen)
    np.testing.assert_allclose(estimate.mean, mean, atol=1e-3 * float(np.max(np.abs(mean))))
