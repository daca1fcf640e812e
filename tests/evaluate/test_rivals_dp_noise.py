"""Claims about calibrations, beside the definition in 60-digit arithmetic."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.integrate
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.evaluate.rivals import exact_epsilon, log_delta, noise_multiplier

BUDGETS = [(0.01, 1e-6), (0.3, 0.01), (0.5, 0.01), (1.0, 0.01), (1.0, 1e-12), (4.0, 1e-5), (30.0, 1e-8), (1e-3, 0.5)]


def delta60(multiplier: float, epsilon: float) -> mpmath.mpf:
    """The δ of the definition, in 60 digits."""
    with mpmath.workdps(60):
        s, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * s) - e * s)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_the_analytic_noise_is_enough_and_no_more(epsilon, delta):
    multiplier = noise_multiplier(epsilon, delta, "analytic")
    assert delta60(multiplier, epsilon) <= delta
    assert delta60(multiplier * (1 - 1e-9), epsilon) > delta


def test_the_curve_is_the_integral_that_defines_differential_privacy():
    """δ = ∫ max(p − e^ε q, 0) for two unit normals that are 1/σ apart."""
    for epsilon, multiplier in [(0.5, 2.0), (1.0, 0.7), (3.0, 1.0)]:
        x = np.linspace(-15, 15, 600_001)
        p, q = np.exp(-(x**2) / 2), np.exp(-((x + 1 / multiplier) ** 2) / 2)
        integral = scipy.integrate.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0.0), x) / math.sqrt(2 * math.pi)
        assert math.exp(log_delta(multiplier, epsilon)) == pytest.approx(integral, rel=1e-6)


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 2.0))
def test_the_curve_is_never_below_the_truth(log_multiplier, log_epsilon):
    multiplier, epsilon = 10.0**log_multiplier, 10.0**log_epsilon
    true = delta60(multiplier, epsilon)
    with mpmath.workdps(60):
        excess = float(log_delta(multiplier, epsilon) - mpmath.log(true))
    assert 0.0 <= excess <= 1e-6 * max(1.0, abs(float(mpmath.log(true))))


@pytest.mark.parametrize("calibration", ["classical", "hall"])
def test_the_old_calibrations_are_safe_up_to_epsilon_one(calibration):
    for epsilon in (1e-3, 0.1, 0.5, 0.9, 1.0):
        for delta in (1e-12, 1e-5, 0.01, 0.3, 0.9):
            assert delta60(noise_multiplier(epsilon, delta, calibration), epsilon) <= delta


def test_beyond_epsilon_one_the_classical_noise_would_be_too_small():
    epsilon, delta = 20.0, 1e-3
    assert delta60(math.sqrt(2 * math.log(1.25 / delta)) / epsilon, epsilon) > delta


@pytest.mark.parametrize("calibration", ["classical", "hall"])
def test_the_old_calibrations_refuse_a_large_epsilon_and_name_the_remedy(calibration):
    with pytest.raises(InputError, match=r"epsilon is 1\.5.*proof.*epsilon ≤ 1.*analytic"):
        noise_multiplier(1.5, 0.01, calibration)


def test_the_factors_are_those_of_the_literature():
    assert noise_multiplier(0.5, 0.01, "classical") == pytest.approx(math.sqrt(2 * math.log(125)) / 0.5)
    assert noise_multiplier(1.0, 0.01, "hall") == pytest.approx(3.2552, abs=1e-4)


@given(st.floats(-2.0, 1.5), st.floats(-9.0, -0.5))
def test_the_exact_epsilon_undoes_the_analytic_noise(log_epsilon, log_delta_asked):
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta_asked
    assert exact_epsilon(noise_multiplier(epsilon, delta, "analytic"), delta) == pytest.approx(epsilon, rel=1e-6)


def test_a_hundred_averaged_draws_spend_many_times_the_budget():
    multiplier = noise_multiplier(1.0, 0.01, "hall")
    assert exact_epsilon(multiplier, 0.01) < 0.5
    spent = exact_epsilon(multiplier / 10, 0.01)
    assert spent > 11
    assert delta60(multiplier / 10, spent) <= 0.01 < delta60(multiplier / 10, spent - 1e-6)


def test_no_noise_spends_everything_and_endless_noise_nothing():
    assert exact_epsilon(0.0, 0.01) == math.inf
    assert exact_epsilon(math.inf, 0.01) == 0.0
    assert exact_epsilon(1e6, 0.01) == 0.0


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", True, None])
def test_a_bad_epsilon_is_named(epsilon):
    with pytest.raises(InputError, match="epsilon is"):
        noise_multiplier(epsilon, 0.01)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan, "0.1", 1e-200])
def test_a_bad_delta_is_named(delta):
    with pytest.raises(InputError, match="delta is"):
        noise_multiplier(0.5, delta)


def test_other_bad_arguments_are_named():
    with pytest.raises(InputError, match="calibration is 'exact'"):
        noise_multiplier(0.5, 0.01, "exact")
    with pytest.raises(InputError, match="multiplier is -1"):
        exact_epsilon(-1.0, 0.01)
