"""Claims about differentially private predictions: what they promise, what they spend, how they draw."""

from __future__ import annotations

import dataclasses
import math

import mpmath
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern, rbf
from oracles import exact, forward50
from sfumato.data.orbit import STATES, simulate, training_grid
from sfumato.evaluate.rivals import Budget, cloak, function_norms, prediction_map, standard_dp
from sfumato.linalg.ellipsoid import smallest_ellipsoid

T = np.linspace(0.0, 3.0, 31)
NEW = np.linspace(0.2, 2.8, 9)
REGION = sf.Box(1.0, 2.0)
BUDGET = Budget(epsilon=0.5, delta=0.01, sensitivity=2.0, calibration="classical")
PRIOR = sf.Prior(matern(0.4, 1.5), mean=0.3, noise=0.05)
Y = np.sin(2 * T) + 0.3


def spent_delta(covariance: np.ndarray, change: np.ndarray, epsilon: float) -> float:
    """The δ at which N(0, covariance) hides a change, from the definition."""
    with mpmath.workdps(40):
        white = forward50(mpmath.cholesky(exact(covariance)), exact(change[:, None]))
        far = mpmath.sqrt(np.sum(white**2))
        return float(mpmath.ncdf(far / 2 - epsilon / far) - mpmath.exp(epsilon) * mpmath.ncdf(-far / 2 - epsilon / far))


def test_the_map_is_the_posterior_mean_and_variance():
    prediction, posterior = prediction_map(PRIOR, T, NEW), PRIOR.condition(T, Y)
    np.testing.assert_allclose(prediction.predict(Y), posterior.mean_at(NEW), rtol=1e-10)
    np.testing.assert_allclose(prediction.variance, posterior.variance(NEW), atol=1e-10)


@pytest.mark.parametrize("calibration", ["classical", "hall", "analytic"])
@pytest.mark.parametrize("rival", [cloak, standard_dp])
def test_moving_any_private_output_stays_within_epsilon_and_delta(rival, calibration):
    made = rival(PRIOR, T, NEW, REGION, dataclasses.replace(BUDGET, calibration=calibration))
    base = made.prediction.predict(Y)
    deltas = []
    for row in np.flatnonzero((T >= 1) & (T <= 2)):
        for sign in (1, -1):
            moved = Y + sign * 2.0 * (np.arange(31) == row)
            deltas.append(spent_delta(made.noise.covariance(), made.prediction.predict(moved) - base, 0.5))
    assert max(deltas) <= 0.01
    if rival is cloak and calibration == "analytic":
        assert max(deltas) > 0.01 * (1 - 1e-5)


def test_with_fewer_predictions_than_private_rows_the_ellipsoid_beats_noise_on_the_outputs():
    made = cloak(PRIOR, T, [1.1, 1.3, 1.5, 1.7, 1.9], REGION, BUDGET)
    C = made.prediction.matrix[:, made.private]
    on_outputs = (made.budget.sensitivity * made.budget.multiplier) ** 2 * C @ C.T
    assert smallest_ellipsoid(C).iterations > 0
    assert np.linalg.slogdet(made.noise.covariance())[1] < np.linalg.slogdet(on_outputs)[1] - 0.1


def test_independent_columns_mean_noise_on_the_outputs():
    new = np.linspace(0.0, 3.0, 50)
    made = cloak(PRIOR, T, new, REGION, BUDGET)
    C = made.prediction.matrix[:, made.private]
    assert smallest_ellipsoid(C).iterations == 0
    np.testing.assert_allclose(
        made.noise.covariance(), (2.0 * made.budget.multiplier) ** 2 * C @ C.T, rtol=1e-10, atol=1e-12
    )


def test_the_noise_follows_the_units_of_y():
    metres = cloak(PRIOR, T, NEW, REGION, BUDGET)
    in_km = sf.Prior(matern(0.4, 1.5e-6), mean=0.3e-3, noise=0.05e-6)
    kilometres = cloak(in_km, T, NEW, REGION, dataclasses.replace(BUDGET, sensitivity=2e-3))
    np.testing.assert_allclose(kilometres.noise.covariance(), 1e-6 * metres.noise.covariance(), rtol=1e-4, atol=1e-11)


def test_only_private_rows_cost_noise():
    some = cloak(PRIOR, T, NEW, REGION, BUDGET)
    every = cloak(PRIOR, T, NEW, np.ones(31, dtype=bool), BUDGET)
    assert some.noise.trace < 0.6 * every.noise.trace


def test_a_mask_and_a_region_are_the_same():
    by_mask = cloak(PRIOR, T, NEW, (T >= 1) & (T <= 2), BUDGET)
    np.testing.assert_array_equal(by_mask.noise.factor, cloak(PRIOR, T, NEW, REGION, BUDGET).noise.factor)


def test_columns_of_frames_are_matched_by_name():
    frame = pd.DataFrame({"t": T})
    made = cloak(PRIOR, frame, pd.DataFrame({"other": NEW, "t": NEW}), sf.Box({"t": (1, 2)}), BUDGET)
    np.testing.assert_array_equal(made.noise.factor, cloak(PRIOR, T, NEW, REGION, BUDGET).noise.factor)


def test_the_matrix_of_the_scripts_leaves_changes_without_noise():
    new = np.linspace(0.0, 3.0, 50)
    with pytest.warns(sf.GuaranteeWarning, match=r'matrix is "private".*no \(ε, δ\) is promised.*matrix="all"'):
        made = cloak(PRIOR, T, new, REGION, BUDGET, matrix="private")
    inside = (T >= 1) & (T <= 2)
    K = PRIOR.covariance(T[inside])
    C = PRIOR.covariance(new, T[inside]) @ np.linalg.inv(K)
    np.testing.assert_allclose(
        made.noise.covariance(), (2.0 * made.budget.multiplier) ** 2 * C @ C.T, rtol=1e-6, atol=1e-9
    )
    assert not made.holds
    assert made.epsilon_spent() == math.inf


def test_the_published_satellite_row_is_a_hundred_averaged_draws():
    """RMSE 0.8878 / 0.5327 / 0.2663 over the four outputs; the kernel of the scripts is the identity, x is scaled."""
    orbit = simulate(training_grid())
    t = orbit["t"].to_numpy()
    prior = sf.Prior(rbf(0.0025 * t.std(ddof=1)))
    for epsilon, published, effective in ((0.3, 0.8878, 2.08), (0.5, 0.5327, 4.15), (1.0, 0.2663, 11.13)):
        expected = []
        for state in STATES:
            y = orbit[state].to_numpy()
            made = cloak(prior, t, t, REGION, Budget(epsilon, 0.01, y.std(ddof=1)), matrix="private")
            assert made.holds
            assert made.epsilon_spent(100) == pytest.approx(effective, abs=0.01)
            expected.append(math.sqrt(np.mean(made.noise.variance() / 100)))
        assert np.mean(expected) == pytest.approx(published, rel=0.01)


def test_averages_shrink_the_noise_and_say_what_it_costs():
    made = cloak(PRIOR, T, NEW, REGION, BUDGET)
    exact = made.prediction.predict(Y)
    drawn = np.array([made.draw(Y, unsafe_seed=seed, draws=100) for seed in range(300)])
    np.testing.assert_allclose(np.sqrt(np.mean((drawn - exact) ** 2, 0)), np.sqrt(made.noise.variance()) / 10, rtol=0.2)
    assert made.epsilon_spent(4) > 1.5 * made.epsilon_spent()
    assert made.epsilon_spent(1) == made.epsilon_spent() < 0.5
    with pytest.raises(sf.InputError, match="draws is 0"):
        made.epsilon_spent(0)


@pytest.mark.parametrize("rival", [cloak, standard_dp])
def test_draws_have_the_noise_they_claim(rival):
    made = rival(PRIOR, T, NEW, REGION, BUDGET)
    drawn = np.array([made.draw(Y, unsafe_seed=seed) for seed in range(3000)]) - made.prediction.predict(Y)
    lower = np.linalg.cholesky(made.noise.covariance())
    white = np.linalg.solve(lower, drawn.T)
    assert np.abs(white @ white.T / 3000 - np.eye(9)).max() < 5 * math.sqrt(2 / 3000)
    assert np.abs(white.mean(axis=1)).max() < 5 / math.sqrt(3000)
    np.testing.assert_allclose(made.std() ** 2, made.noise.variance() + made.prediction.variance)
    np.testing.assert_array_equal(made.draw(Y, unsafe_seed=7), made.draw(Y.tolist(), unsafe_seed=7))


def test_the_norm_of_a_change_is_that_of_the_function():
    """The norm is the least upper bound of g(T)ᵀ K_TT⁻¹ g(T): never passed, and reached at the rows themselves."""
    inside = (T >= 1) & (T <= 2)
    norms = function_norms(PRIOR, prediction_map(PRIOR, T, NEW), inside)
    few, rows = prediction_map(PRIOR, T, NEW).matrix, prediction_map(PRIOR, T, T).matrix
    seen = np.sqrt(np.diag(few.T @ np.linalg.solve(PRIOR.covariance(NEW), few)))[inside]
    full = np.sqrt(np.diag(rows.T @ np.linalg.solve(PRIOR.covariance(T), rows)))[inside]
    assert np.all(seen <= norms)
    np.testing.assert_allclose(full, norms, rtol=1e-8)


def test_standard_noise_is_the_kernel_and_needs_more_than_cloaking():
    made = standard_dp(PRIOR, T, NEW, REGION, BUDGET)
    scale = (2.0 * np.max(function_norms(PRIOR, made.prediction, made.private)) * made.budget.multiplier) ** 2
    np.testing.assert_allclose(made.noise.covariance(), scale * PRIOR.covariance(NEW), rtol=1e-10, atol=1e-12)
    cloaked = cloak(PRIOR, T, NEW, REGION, BUDGET)
    assert cloaked.noise.trace < 0.5 * made.noise.trace
    assert np.linalg.slogdet(cloaked.noise.covariance())[1] < np.linalg.slogdet(made.noise.covariance())[1]


def test_a_kernel_that_is_singular_to_working_precision_is_served():
    smooth = sf.Prior(rbf(2.0))
    for rival in (cloak, standard_dp):
        made = rival(smooth, T, np.linspace(0, 3, 40), REGION, BUDGET)
        assert np.all(np.isfinite(made.draw(Y, unsafe_seed=1)))
        C = made.prediction.matrix[:, made.private]
        values, vectors = np.linalg.eigh(made.noise.covariance())
        squares = np.sum((vectors.T @ C) ** 2 / np.maximum(values, 1e-300)[:, None], axis=0)
        assert np.max(squares) * (2.0 * made.budget.multiplier) ** 2 < 1.01


@pytest.mark.parametrize("rival", [cloak, standard_dp])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 2.0}, "epsilon is 2.*analytic"),
        ({"delta": 0.0}, "delta is 0"),
        ({"sensitivity": 0.0}, "sensitivity is 0"),
        ({"sensitivity": "one"}, "sensitivity is 'one'.*units of y"),
        ({"calibration": "best"}, "calibration is 'best'"),
        ({"private": sf.Box(1.01, 1.02)}, "private holds none of the 31 rows"),
        ({"private": [1, 2, 3]}, "private is .*True or False"),
        ({"private": sf.Box(7.0, 8.0)}, "outside the data"),
        ({"X_new": [[1.0, 2.0]]}, "X_new has 2 feature"),
    ],
)
def test_wrong_use_is_refused_with_the_argument_and_the_remedy(rival, change, message):
    budget = {**dataclasses.asdict(BUDGET), **change}
    new, private = budget.pop("X_new", NEW), budget.pop("private", REGION)
    with pytest.raises(sf.InputError, match=message):
        rival(PRIOR, T, new, private, Budget(**budget))


def test_an_unknown_matrix_and_a_short_y_are_refused():
    with pytest.raises(sf.InputError, match="matrix is 'public'"):
        cloak(PRIOR, T, NEW, REGION, BUDGET, matrix="public")
    with pytest.raises(sf.InputError, match="y has 3 values"):
        cloak(PRIOR, T, NEW, REGION, BUDGET).draw([1.0, 2.0, 3.0], unsafe_seed=1)
