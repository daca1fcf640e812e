"""Rivals predict what a textbook can predict, from the values that they are given and from nothing else."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest

import sfumato as sf
from sfumato.evaluate.predictors import MOST_TOLD, Neighbours, Refit, Trend, periods, rivals

t = np.linspace(0.0, 10.0, 240)
X = t[:, None]
hidden = (t > 4.0) & (t < 5.5)
curve = 3.0 + t - 0.1 * t**2 + np.sin(2 * np.pi * t) + 0.5 * np.cos(4 * np.pi * t)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def error(rival, values, noise=None):
    return np.abs(rival.predict(X[~hidden], values[~hidden], noise, X[hidden]) - curve[hidden]).max()


def test_a_polynomial_with_harmonics_is_found_with_its_period():
    (found,) = periods(X[~hidden], curve[~hidden])
    assert found.length == pytest.approx(1.0, rel=2e-3)
    best = min(error(rival, curve) for rival in rivals(X[~hidden], curve[~hidden]))
    assert best < 0.05
    assert error(Trend("", 1), curve) < 1e-4


def test_no_period_is_seen_in_noise(rng):
    assert sum(bool(periods(X, rng.standard_normal(len(t)))) for _ in range(50)) <= 2


def test_knowing_the_noise_takes_it_off(rng):
    """Large noise of two sources, each shared by many rows, as published noise is."""
    source = np.column_stack([np.exp(-((t - 2.0) ** 2)), np.exp(-((t - 7.0) ** 2))])
    noise = 400.0 * source @ source.T
    values = curve + 20.0 * source @ rng.standard_normal(2)
    outside = noise[np.ix_(~hidden, ~hidden)]
    assert error(Trend("", 1), values) > 0.5
    assert error(Trend("", 1, knows_noise=True), values, outside) < 0.01
    assert error(Refit("", "rbf", True), values, outside) < 0.3


@pytest.mark.parametrize("kernel", ["rbf", "matern32", "matern52", "rq"])
def test_a_refit_predicts_draws_about_as_well_as_their_own_process(kernel, rng):
    kinds = {
        "rbf": gpytorch.kernels.RBFKernel(),
        "matern32": gpytorch.kernels.MaternKernel(nu=1.5),
        "matern52": gpytorch.kernels.MaternKernel(nu=2.5),
        "rq": gpytorch.kernels.RQKernel(),
    }
    kinds[kernel].lengthscale = 0.8
    truth = sf.Prior(kinds[kernel], noise=0.01)
    values = np.linalg.cholesky(truth.covariance(X) + 0.01 * np.eye(len(t))) @ rng.standard_normal(len(t))
    rival = Refit("", kernel)
    few = X[:150]
    fitted, likelihood = rival.fitted(few, values[:150], None)
    root = np.linalg.cholesky(truth.covariance(few) + 0.01 * np.eye(150))
    white = np.linalg.solve(root, values[:150])
    own = -0.5 * (white @ white + 150 * np.log(2 * np.pi)) - np.log(np.diag(root)).sum()
    assert likelihood > own - 1e-3  # the most likely model is at least as likely as the true one
    assert float(fitted.noise) == pytest.approx(0.01, rel=0.5)
    best = truth.condition(X[~hidden], values[~hidden]).mean_at(X[hidden])
    found = rival.predict(X[~hidden], values[~hidden], None, X[hidden])
    assert np.sqrt(np.mean((found - best) ** 2)) < 0.5


def test_neighbours_are_as_many_as_leaving_rows_out_suggests(rng):
    places, at = rng.uniform(size=(80, 2)), rng.uniform(size=(5, 2))
    values = places @ [1.0, -2.0] + 0.3 * rng.standard_normal(80)
    scaled, scaled_at = places / places.std(axis=0), at / places.std(axis=0)

    def mean(rows, inputs, own, count):
        far = np.linalg.norm(scaled[rows] - inputs, axis=1)
        return own[np.argsort(far)[:count]].mean()

    def left_out(count):
        others = [np.arange(80) != i for i in range(80)]
        return sum((mean(o, scaled[i], values[o], count) - values[i]) ** 2 for i, o in enumerate(others))

    best = min((1, 2, 3, 5, 8, 13, 21, 34), key=left_out)
    expected = [mean(np.ones(80, bool), place, values, best) for place in scaled_at]
    assert Neighbours().predict(places, values, None, at) == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    ("count", "columns"),
    [(2, 1), (5, 1), (40, 3), pytest.param(MOST_TOLD + 700, 2, marks=pytest.mark.slow)],
    ids=["two", "five", "three columns", "many"],
)
def test_every_rival_predicts_for_any_size_and_is_the_same_each_time(count, columns, rng):
    places = rng.uniform(size=(count, columns))
    places[:, -1] = np.where(columns == 3, 1.0, places[:, -1])  # a column that says nothing
    values = np.sin(20.0 * places[:, 0]) + 0.1 * rng.standard_normal(count)
    noise = None if count == 5 else np.full(count, 0.01) * rng.uniform(0.5, 1.0, count)
    found = rivals(places, values, noise)
    assert len({one.name for one in found}) == len(found) >= 9
    for rival in found:
        first = rival.predict(places, values, noise, places[:3] + 0.01)
        assert first.shape == (min(count, 3),)
        assert np.all(np.isfinite(first)), rival.name
        if count < 100:
            assert np.array_equal(first, rival.predict(places, values, noise, places[:3] + 0.01)), rival.name
