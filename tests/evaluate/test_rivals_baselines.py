"""Claims about the models that a comparison needs besides."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.evaluate.rivals import dropout, stationary

T = np.linspace(0.0, 3.0, 61)
Y = np.sin(2 * np.pi * T) + 4.0
REGION = sf.Box(1.0, 2.0)
INSIDE = (T >= 1.0) & (T <= 2.0)


def test_dropout_knows_nothing_of_the_private_outputs():
    prior = sf.Prior(matern(0.3), mean=4.0, noise=0.01)
    other = np.where(INSIDE, 1e6, Y)
    np.testing.assert_array_equal(dropout(prior, T, Y, REGION).mean_at(T), dropout(prior, T, other, REGION).mean_at(T))
    np.testing.assert_array_equal(dropout(prior, T, Y, REGION).mean_at(T), dropout(prior, T, Y, INSIDE).mean_at(T))
    assert dropout(prior, T, Y, REGION).variance([1.5])[0] > 0.9 > 0.1 > dropout(prior, T, Y, REGION).variance([0.5])[0]


def test_dropout_keeps_each_row_with_its_own_noise():
    noise = np.linspace(0.01, 1.0, 61)
    prior = sf.Prior(matern(0.3), mean=4.0, noise=noise)
    expected = sf.Prior(matern(0.3), mean=4.0, noise=noise[~INSIDE]).condition(T[~INSIDE], Y[~INSIDE])
    np.testing.assert_allclose(dropout(prior, T, Y, REGION).mean_at(T), expected.mean_at(T), rtol=1e-12)


def test_dropout_promises_nothing():
    """Close neighbours outside give a smooth function away: far below the floor that α = 0.1 asks for."""
    prior = sf.Prior(rbf(1.0), mean=4.0, noise=1e-4)
    left = dropout(prior, T, Y, REGION).variance(T[INSIDE]) / prior.variance(T[INSIDE])
    assert left.max() < 0.1


def test_stationary_refits_everything_and_ignores_the_noise_that_was_published():
    rng = np.random.default_rng(1)
    fine = stationary(T, Y + 0.01 * rng.standard_normal(61))
    assert float(fine.process.noise) == pytest.approx(1e-4, rel=0.7)
    assert np.abs(fine.mean_at(T) - Y).max() < 0.05
    blurred = stationary(T, Y + np.where(INSIDE, 3.0, 0.01) * rng.standard_normal(61))
    noise = float(blurred.process.noise) * np.eye(61)
    assert np.ptp(np.diag(blurred.noise)) == 0.0
    np.testing.assert_allclose(blurred.noise, noise)
    assert noise[0, 0] > 0.3


def test_stationary_takes_the_settings_of_a_fit():
    posterior = stationary(T, Y, kernel="matern52", mean="zero", noise=0.01, lengthscale=0.4)
    assert float(posterior.process.noise) == 0.01
    assert "0.4" in str(posterior.process)
    with pytest.warns(sf.FitWarning, match="5 epochs"):
        adam = stationary(T, Y, optimizer="adam", epochs=5)
    assert adam.process.fit_report.method == "Adam, 5 epochs"


def test_wrong_use_is_refused_by_name():
    prior = sf.Prior(matern(0.3))
    with pytest.raises(sf.InputError, match="region holds all 61 rows"):
        dropout(prior, T, Y, sf.Box(0.0, 3.0))
    with pytest.raises(sf.InputError, match="region is '1 < t'"):
        dropout(prior, T, Y, "1 < t")
    with pytest.raises(sf.InputError, match="W has 2 values"):
        stationary(T, [1.0, 2.0])
