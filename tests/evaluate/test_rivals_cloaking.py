"""Claims about differentially private predictions: what they promise, what they spend, how they draw."""

from __future__ import annotations

import copy
import math
import pickle
import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern, rbf
from oracles import exact, forward50
from sfumato.data.orbit import STATES, simulate, training_grid
from sfumato.evaluate.baselines import prediction_map
from sfumato.evaluate.differential_privacy import average_as_the_scripts_did, cloak, function_norms, standard_dp

T = np.linspace(0.0, 3.0, 31)
NEW = np.linspace(0.2, 2.8, 9)
REGION = sf.Box(1.0, 2.0)
BUDGET = {"epsilon": 0.5, "delta": 0.01, "sensitivity": 2.0}
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
    made = rival(PRIOR, T, NEW, REGION, calibration=calibration, **BUDGET)
    base = made.prediction.predict(Y)
    deltas = []
    for row in np.flatnonzero((T >= 1) & (T <= 2)):
        for sign in (1, -1):
            moved = Y + sign * 2.0 * (np.arange(31) == row)
            deltas.append(spent_delta(made.noise_covariance(), made.prediction.predict(moved) - base, 0.5))
    assert max(deltas) <= 0.01
    if rival is cloak and calibration == "analytic":
        assert max(deltas) > 0.01 * (1 - 1e-5)


def test_with_fewer_predictions_than_private_rows_the_ellipsoid_beats_noise_on_the_outputs():
    made = cloak(PRIOR, T, [1.1, 1.3, 1.5, 1.7, 1.9], REGION, **BUDGET)
    C = made.prediction.matrix[:, made.private]
    on_outputs = (made.sensitivity * made.multiplier) ** 2 * C @ C.T
    assert made.ellipsoid.iterations > 0
    assert made.gap <= 1e-7
    assert np.linalg.slogdet(made.noise_covariance())[1] < np.linalg.slogdet(on_outputs)[1] - 0.1


def test_independent_columns_mean_noise_on_the_outputs():
    new = np.linspace(0.0, 3.0, 50)
    made = cloak(PRIOR, T, new, REGION, **BUDGET)
    C = made.prediction.matrix[:, made.private]
    assert made.ellipsoid.iterations == 0
    np.testing.assert_allclose(made.noise_covariance(), (2.0 * made.multiplier) ** 2 * C @ C.T, rtol=1e-10, atol=1e-12)


def test_the_noise_follows_the_units_of_y():
    metres = cloak(PRIOR, T, NEW, REGION, **BUDGET)
    in_km = sf.Prior(matern(0.4, 1.5e-6), mean=0.3e-3, noise=0.05e-6)
    kilometres = cloak(in_km, T, NEW, REGION, epsilon=0.5, delta=0.01, sensitivity=2e-3)
    np.testing.assert_allclose(kilometres.noise_covariance(), 1e-6 * metres.noise_covariance(), rtol=1e-4, atol=1e-11)


def test_only_private_rows_cost_noise():
    some = cloak(PRIOR, T, NEW, REGION, **BUDGET)
    every = cloak(PRIOR, T, NEW, np.ones(31, dtype=bool), **BUDGET)
    assert some.noise.trace < 0.6 * every.noise.trace


def test_a_mask_and_a_region_are_the_same():
    by_mask = cloak(PRIOR, T, NEW, (T >= 1) & (T <= 2), **BUDGET)
    np.testing.assert_array_equal(by_mask.noise.factor, cloak(PRIOR, T, NEW, REGION, **BUDGET).noise.factor)


def test_columns_of_frames_are_matched_by_name():
    frame = pd.DataFrame({"t": T})
    made = cloak(PRIOR, frame, pd.DataFrame({"other": NEW, "t": NEW}), sf.Box({"t": (1, 2)}), **BUDGET)
    np.testing.assert_array_equal(made.noise.factor, cloak(PRIOR, T, NEW, REGION, **BUDGET).noise.factor)


def test_the_matrix_of_the_scripts_leaves_changes_without_noise():
    new = np.linspace(0.0, 3.0, 50)
    with pytest.warns(sf.GuaranteeWarning, match=r'matrix is "private".*no \(ε, δ\) is promised.*matrix="all"'):
        made = cloak(PRIOR, T, new, REGION, matrix="private", **BUDGET)
    inside = (T >= 1) & (T <= 2)
    K = PRIOR.covariance(T[inside])
    C = PRIOR.covariance(new, T[inside]) @ np.linalg.inv(K)
    np.testing.assert_allclose(made.noise_covariance(), (2.0 * made.multiplier) ** 2 * C @ C.T, rtol=1e-6, atol=1e-9)
    assert not made.holds
    assert made.exact_epsilon == math.inf
    assert "DOES NOT HOLD" in str(made)


def test_the_published_satellite_row_is_a_hundred_averaged_draws():
    """RMSE 0.8878 / 0.5327 / 0.2663 over the four outputs; the kernel of the scripts is the identity, x is scaled."""
    orbit = simulate(training_grid())
    t = orbit["t"].to_numpy()
    prior = sf.Prior(rbf(0.0025 * t.std(ddof=1)))
    for epsilon, published, effective in ((0.3, 0.8878, 2.08), (0.5, 0.5327, 4.15), (1.0, 0.2663, 11.13)):
        expected = []
        for state in STATES:
            y = orbit[state].to_numpy()
            made = cloak(
                prior, t, t, REGION, epsilon=epsilon, delta=0.01, sensitivity=y.std(ddof=1), matrix="private",
                calibration="hall",
            )  # fmt: skip
            averaged = average_as_the_scripts_did(made, y, unsafe_seed=1)
            assert made.holds
            assert averaged.effective_epsilon == pytest.approx(effective, abs=0.01)
            expected.append(math.sqrt(np.mean(averaged.prediction.noise_std**2)))
        assert np.mean(expected) == pytest.approx(published, rel=0.01)


def test_averages_shrink_the_noise_and_say_what_it_costs():
    made = cloak(PRIOR, T, NEW, REGION, **BUDGET)
    exact = made.prediction.predict(Y)
    draws = np.array([average_as_the_scripts_did(made, Y, unsafe_seed=s).prediction.mean for s in range(300)])
    np.testing.assert_allclose(np.sqrt(np.mean((draws - exact) ** 2, 0)), np.sqrt(made.noise.variance()) / 10, rtol=0.2)
    averaged = average_as_the_scripts_did(made, Y, 4, unsafe_seed=1)
    assert averaged.nominal_epsilon == 0.5
    assert averaged.effective_epsilon > 1.5 * made.exact_epsilon
    assert average_as_the_scripts_did(made, Y, 1, unsafe_seed=1).effective_epsilon == made.exact_epsilon < 0.5
    with pytest.raises(sf.InputError, match="draws is 0"):
        average_as_the_scripts_did(made, Y, 0, unsafe_seed=1)


@pytest.mark.parametrize("rival", [cloak, standard_dp])
def test_draws_have_the_noise_they_claim(rival):
    made = rival(PRIOR, T, NEW, REGION, **BUDGET)
    drawn = np.array([made.draw(Y, unsafe_seed=seed).mean for seed in range(3000)]) - made.prediction.predict(Y)
    lower = np.linalg.cholesky(made.noise_covariance())
    white = np.linalg.solve(lower, drawn.T)
    assert np.abs(white @ white.T / 3000 - np.eye(9)).max() < 5 * math.sqrt(2 / 3000)
    assert np.abs(white.mean(axis=1)).max() < 5 / math.sqrt(3000)
    one = made.draw(Y, unsafe_seed=0)
    assert one.unsafe
    assert len(one) == 9
    np.testing.assert_allclose(one.noise_std**2, made.noise.variance())
    np.testing.assert_allclose(one.std**2, one.noise_std**2 + made.prediction.variance)


@pytest.mark.parametrize("rival", [cloak, standard_dp])
def test_asking_again_gives_the_same_draw_and_other_data_a_warning(rival):
    made = rival(PRIOR, T, NEW, REGION, **BUDGET)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, again = made.draw(Y), copy.deepcopy(made).draw(Y.tolist())
    np.testing.assert_array_equal(first.mean, again.mean)
    assert not first.unsafe
    with pytest.warns(sf.GuaranteeWarning, match="2 different data sets"):
        other = made.draw(Y + 1e-6)
    assert np.abs(other.mean - first.mean).max() > 1e-3
    assert np.abs(rival(PRIOR, T, NEW, REGION, **BUDGET).draw(Y).mean - first.mean).max() > 1e-3


def test_a_cloak_keeps_its_key_to_itself():
    made = cloak(PRIOR, T, NEW, REGION, **BUDGET)
    made.draw(Y)
    assert "key" not in repr(made)
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(made._source)


def test_published_values_are_rounded_far_below_the_noise():
    one = cloak(PRIOR, T, NEW, REGION, **BUDGET).draw(Y)
    np.testing.assert_allclose(one.mean / one.resolution, np.rint(one.mean / one.resolution), atol=1e-6)
    assert one.resolution < 1e-5 * one.noise_std.max()


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
    made = standard_dp(PRIOR, T, NEW, REGION, calibration="classical", **BUDGET)
    scale = (made.function_sensitivity * made.multiplier) ** 2
    np.testing.assert_allclose(made.noise_covariance(), scale * PRIOR.covariance(NEW), rtol=1e-10, atol=1e-12)
    cloaked = cloak(PRIOR, T, NEW, REGION, **BUDGET)
    assert cloaked.noise.trace < 0.5 * made.noise.trace
    assert np.linalg.slogdet(cloaked.noise_covariance())[1] < np.linalg.slogdet(made.noise_covariance())[1]


def test_a_kernel_that_is_singular_to_working_precision_is_served():
    smooth = sf.Prior(rbf(2.0))
    for rival in (cloak, standard_dp):
        made = rival(smooth, T, np.linspace(0, 3, 40), REGION, **BUDGET)
        assert np.all(np.isfinite(made.draw(Y, unsafe_seed=1).mean))
        C = made.prediction.matrix[:, made.private]
        values, vectors = np.linalg.eigh(made.noise_covariance())
        squares = np.sum((vectors.T @ C) ** 2 / np.maximum(values, 1e-300)[:, None], axis=0)
        assert np.max(squares) * (2.0 * made.multiplier) ** 2 < 1.01


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
    arguments = {"X_new": NEW, "private": REGION, **BUDGET, **change}
    new, private = arguments.pop("X_new"), arguments.pop("private")
    with pytest.raises(sf.InputError, match=message):
        rival(PRIOR, T, new, private, **arguments)


def test_an_unknown_matrix_and_a_short_y_are_refused():
    with pytest.raises(sf.InputError, match="matrix is 'public'"):
        cloak(PRIOR, T, NEW, REGION, matrix="public", **BUDGET)
    with pytest.raises(sf.InputError, match="y has 3 values"):
        cloak(PRIOR, T, NEW, REGION, **BUDGET).draw([1.0, 2.0, 3.0])
