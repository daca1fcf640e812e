"""The satellite, closed: together its states keep the promise, one by one they do not (MATH.md 8)."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest

import sfumato as sf
from oracles import DIGITS, exact, explained_variances50
from sfumato.data.orbit import LENGTHSCALE, STATES, training_grid
from sfumato.paper.satellite_joint import SHOWN, draw_joint, joint_table, satellite_joint


@pytest.fixture(scope="module")
def found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        return satellite_joint()


def test_one_by_one_leaks_and_together_does_not(found):
    # MATH.md 8: promised 0.90, left about 0.26; promised 0.50, left about 0.023
    table = joint_table(found).set_index(["alpha", "output"])
    assert table["left_one_by_one"][0.1, "r"] == pytest.approx(0.2525, abs=1e-3)
    assert table["left_one_by_one"][0.5, "r"] == pytest.approx(0.0215, abs=1e-3)
    assert table["holds"].all()
    for alpha in (0.1, 0.5, 0.9):
        for state in STATES:
            assert table["left_together"][alpha, state] >= 1 - alpha - 1e-9
            assert table["left_one_by_one"][alpha, state] < 0.5 * (1 - alpha)


def test_protecting_all_four_together_needs_hardly_more_noise(found):
    table = joint_table(found)
    assert (table["noise_together"] < 1.06 * table["noise_one_by_one"]).all()
    assert (table["noise_together"] > table["noise_one_by_one"]).all()


def covariance50(a, b, first, second):
    """Cov of r (0) or its derivative (1) at ``a`` with those at ``b``, for a unit variance, in 50 digits."""
    square = mpmath.mpf(LENGTHSCALE) ** 2
    block = mpmath.matrix(len(a), len(b))
    for i, s in enumerate(a):
        for j, t in enumerate(b):
            gap = mpmath.mpf(float(s)) - mpmath.mpf(float(t))
            value = mpmath.exp(-gap * gap / (2 * square))
            if first and second:
                value *= 1 / square - gap**2 / square**2
            elif first:
                value *= -gap / square
            elif second:
                value *= gap / square
            block[i, j] = value
    return block


def test_the_promise_about_r_and_its_derivative_holds_in_50_digits(found):
    mechanism = found[1].mechanism
    noise, times, numbers = mechanism.noise, training_grid(), mechanism.inputs[:, -1]
    variance = float(mechanism.prior.variance([[0.0, 0.0]])[0])
    own = np.flatnonzero(numbers < 2)
    with mpmath.workdps(DIGITS):
        n = len(times)
        M = mpmath.matrix(2 * n, 2 * n)
        factor = exact(noise.factor[own])
        blur = factor * factor.T
        for first in (0, 1):
            for second in (0, 1):
                M[first * n : (first + 1) * n, second * n : (second + 1) * n] = mpmath.mpf(variance) * covariance50(
                    times, times, first, second
                )
        M += blur
        for i in range(2 * n):
            M[i, i] += mpmath.mpf(noise.shift)
        points = np.linspace(1.0, 2.0, 21)
        count = len(points)
        cross = mpmath.matrix(2 * n, 2 * count)
        for first in (0, 1):
            for asked in (0, 1):
                cross[first * n : (first + 1) * n, asked * count : (asked + 1) * count] = mpmath.mpf(
                    variance
                ) * covariance50(times, points, first, asked)
        explained = explained_variances50(M, cross) / variance
        assert np.max(explained[:count]) <= 0.5 + 1e-9
        assert np.max(explained[count:]) * LENGTHSCALE**2 <= 0.5 + 1e-9


def test_the_figure_shows_both_ways(found):
    figure = draw_joint(found)
    assert len(figure.axes) == 6
    labels = {line.get_label() for line in figure.axes[0].get_lines()}
    assert {"protected one by one", "protected together", "promised"} <= labels
    assert len(SHOWN) == 601
