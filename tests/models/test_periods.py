"""Periods that are there are found, at any spacing; smooth curves and noise show none."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.models.periods import periods_in


def co2(seed=0, months=240):
    """A cubic, a year with two harmonics, and a residual that remembers."""
    rng = np.random.default_rng(seed)
    t = 1974.0 + np.arange(months) / 12.0
    rest = np.zeros(months)
    for i in range(1, months):
        rest[i] = 0.9 * rest[i - 1] + 0.15 * rng.standard_normal()
    u = (t - 1984.0) / 10.0
    return t, 340 + 15 * u + 3 * u**2 + u**3 + 2.8 * np.sin(2 * np.pi * t) + 0.8 * np.cos(4 * np.pi * t) + rest


def test_a_year_is_found_with_its_harmonics_merged():
    assert periods_in(*co2()) == (pytest.approx(1.0, abs=2e-3),)


def test_rows_may_be_missing_and_uneven():
    t, y = co2(1)
    keep = (np.random.default_rng(1).random(len(t)) < 0.5) & ~((t > 1984) & (t < 1987))
    assert periods_in(t[keep], y[keep]) == (pytest.approx(1.0, abs=3e-3),)


def test_two_periods_are_two_and_the_clearest_comes_first():
    rng = np.random.default_rng(3)
    t = np.sort(rng.uniform(0.0, 60.0, 200))
    y = 3.0 * np.sin(2 * np.pi * t / 7.3) + np.sin(2 * np.pi * t / 3.1) + 0.4 * rng.standard_normal(200)
    assert periods_in(t, y) == (pytest.approx(7.3, rel=0.01), pytest.approx(3.1, rel=0.01))
    assert periods_in(t, y, most=1) == (pytest.approx(7.3, rel=0.01),)


def test_a_fundamental_that_is_found_after_its_harmonic_takes_its_place():
    rng = np.random.default_rng(5)
    t = np.arange(120) / 12.0
    y = 3.0 * np.sin(4 * np.pi * t) + np.sin(2 * np.pi * t) + 0.2 * rng.standard_normal(120)
    assert periods_in(t, y) == (pytest.approx(1.0, abs=0.01),)


@pytest.mark.slow
def test_a_cycle_that_comes_early_and_late_is_one_period():
    """As sunspots do: an oscillation that is pushed at random, eleven years long."""
    rng, r, turn = np.random.default_rng(2), 0.97, 2 * np.pi / 11
    x = np.zeros(350)
    for i in range(2, 350):
        x[i] = 2 * r * np.cos(turn) * x[i - 1] - r * r * x[i - 2] + rng.standard_normal()
    spots = np.maximum(30 * x[100:] / x.std() + 40, 0.0)
    (period,) = periods_in(np.arange(250), spots)
    assert period == pytest.approx(11.0, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("lengthscale", [0.0, 0.05, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("spacing", ["even", "uneven"])
def test_false_alarms_are_rare(lengthscale, spacing):
    rng = np.random.default_rng(0)
    t = np.linspace(0.0, 3.0, 80) if spacing == "even" else np.sort(rng.uniform(0.0, 3.0, 80))
    smooth = np.exp(-0.5 * ((t[:, None] - t) / lengthscale) ** 2) if lengthscale else np.zeros((80, 80))
    root = np.linalg.cholesky(smooth + (0.01 if lengthscale else 1.0) * np.eye(80))
    assert sum(bool(periods_in(t, root @ rng.standard_normal(80))) for _ in range(100)) <= 5


def test_noise_and_smooth_curves_show_no_period():
    t = np.linspace(0.0, 3.0, 60)
    rng = np.random.default_rng(7)
    assert not any(periods_in(t, rng.standard_normal(60)) for _ in range(6))
    root = np.linalg.cholesky(np.exp(-0.5 * ((t[:, None] - t) / 0.2) ** 2) + 1e-4 * np.eye(60))
    assert not any(periods_in(t, root @ rng.standard_normal(60)) for _ in range(6))


def test_noise_that_is_known_is_not_taken_for_a_period():
    """Noise that is itself a wave, as it may be where a release is protected."""
    rng = np.random.default_rng(8)
    t = np.linspace(0.0, 10.0, 100)
    wave = np.column_stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t)])
    noise = 4.0 * wave @ wave.T + 0.1 * np.eye(100)
    y = wave @ rng.normal(0.0, 2.0, 2) + 0.3 * rng.standard_normal(100)
    assert periods_in(t, y) == (pytest.approx(1.0, abs=0.01),)
    assert periods_in(t, y, noise) == ()
    assert periods_in(t, y, 0.1 * np.ones(100)) == (pytest.approx(1.0, abs=0.01),)


@pytest.mark.slow
def test_many_rows_are_looked_at_in_blocks():
    t = np.arange(3000) / 24.0
    y = np.sin(2 * np.pi * t) + 0.5 * np.random.default_rng(0).standard_normal(3000)
    assert periods_in(t, y) == (pytest.approx(1.0, abs=1e-3),)


def test_few_rows_show_nothing():
    assert periods_in(np.arange(12.0), np.sin(np.arange(12.0))) == ()
    assert periods_in(np.arange(50.0), np.ones(50)) == ()
    assert periods_in(np.zeros(50), np.arange(50.0)) == ()
