"""Ways in which a compressed design was once made to promise too much."""

from __future__ import annotations

import dataclasses

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import rbf
from sfumato.data.inputs import SAMPLE, as_inputs, sample_places
from sfumato.noise.noise import FunctionalNoise
from sfumato.proof.examination import certify


def interleaved(rows: int) -> np.ndarray:
    """Two sources whose rows alternate, at different places."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, 2))
    X[1::2, 1] += 3.0
    return X


def test_a_sample_has_no_period():
    for rows in (SAMPLE + 1, 2 * SAMPLE, 10 * SAMPLE):
        places = sample_places(rows)
        assert 0.6 * SAMPLE <= len(places) <= SAMPLE
        assert places[-1] < rows
        for period in (2, 3, 8):
            shares = np.bincount(places % period, minlength=period) / len(places)
            assert shares == pytest.approx(np.full(period, 1 / period), abs=0.05)


def test_rows_that_alternate_between_two_sources_are_all_protected():
    X = interleaved(2 * SAMPLE)
    mechanism = sf.protect(
        sf.Prior(kernel=rbf([0.3, 0.3]), noise=0.01),
        X,
        sf.Box([0.4, None], [0.6, None]),
        alpha=0.3,
        protects="function",
        progress=False,
    )
    assert isinstance(mechanism.noise, FunctionalNoise)
    assert mechanism.certificate.holds
    inside = X[(X[:, 0] >= 0.4) & (X[:, 0] <= 0.6) & (X[:, 1] > 2.0)]
    blur = mechanism.noise.variance_at(inside)
    assert np.min(blur) > 0.5


def test_a_row_that_no_sample_has_is_looked_at():
    """A certificate from a file must not depend on which rows its reader happens to sample."""
    rng = np.random.default_rng(1)
    X = rng.random((2 * SAMPLE, 2))
    prior, region = sf.Prior(kernel=rbf([0.3, 0.3]), noise=0.01), sf.Box([0.4, None], [0.6, None])
    hidden = np.setdiff1d(np.arange(len(X)), sample_places(len(X)))[:200]
    X[hidden, 1] += 3.0
    # the least and the largest are always in the sample
    X[0, 1] = 9.0
    silent = sf.protect(
        prior, X[sample_places(len(X))], region, alpha=0.3, protects="function", method="compressed", progress=False
    )
    design = dataclasses.replace(
        silent.design,
        inputs=as_inputs(X),
        noise=dataclasses.replace(silent.noise, inputs=as_inputs(X), known_trace=None),
    )
    assert not certify(design).holds


@pytest.mark.parametrize("size", [1e3, 1e9, 1e20, 1e60])
def test_noise_that_is_only_large_is_not_counted_where_it_is_not(size):
    """Two centres of a linear kernel, and huge noise in one direction that hides nothing in the other."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 2))
    prior = sf.Prior(kernel=gpytorch.kernels.LinearKernel().double(), noise=0.01)
    design = sf.protect(
        prior,
        X,
        sf.Points([[1.0, 0.3], [0.2, 1.0]]),
        alpha=0.3,
        protects="function",
        method="compressed",
        progress=False,
    ).design
    for turn in np.linspace(0.0, np.pi, 40):
        direction = np.array([np.cos(turn), np.sin(turn)])
        mixing = size * np.linalg.lstsq(design.noise.centres[0], direction, rcond=None)[0][:1]
        mixing = np.resize(mixing, (len(design.noise.centres[0]), 1)) * np.array([[1.0], [-1.0]])[: len(mixing)]
        noise = dataclasses.replace(design.noise, mixing=np.resize(mixing, (len(design.noise.centres[0]), 1)))
        assert not certify(dataclasses.replace(design, noise=noise)).holds


def test_a_kernel_that_is_no_covariance_is_refused():
    kernel = gpytorch.kernels.CosineKernel().double()
    with pytest.raises(sf.InputError, match="no covariance"):
        sf.protect(sf.Prior(kernel=kernel, noise=0.01), interleaved(50), sf.Points([[0.5, 0.5]]), alpha=0.3)


def test_a_mechanism_that_wrote_a_folder_draws_no_second_time(tmp_path):
    rng = np.random.default_rng(3)
    pd.DataFrame({"a": rng.random(500), "y": rng.random(500)}).to_parquet(tmp_path / "data.parquet", index=False)
    rows = sf.rows_of_parquet(tmp_path / "data.parquet", ["a"], "y")
    mechanism = sf.protect(
        sf.Prior(kernel=rbf(0.3), noise=0.01), rows, sf.Box(0.2, 0.4), alpha=0.3, protects="function", progress=False
    )
    mechanism.release_to(tmp_path / "out", "y", progress=False)
    for again in (
        lambda: mechanism.release(np.asarray(rows.column("y"))),
        lambda: mechanism.release_to(tmp_path / "out", "y", progress=False),
        lambda: mechanism.release_to(tmp_path / "other", "y", progress=False),
    ):
        with pytest.raises(sf.InputError, match="released values"):
            again()


def test_a_region_between_the_rows_is_fine():
    X = np.concatenate([np.linspace(0, 0.4, 100), np.linspace(0.6, 1, 100)])
    mechanism = sf.protect(
        sf.Prior(kernel=rbf(0.2), noise=0.01),
        X,
        sf.Box(0.45, 0.55),
        alpha=0.3,
        protects="function",
        method="compressed",
        progress=False,
    )
    assert mechanism.certificate.holds
