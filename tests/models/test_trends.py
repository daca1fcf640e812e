"""Polynomial means: fitted with the kernel, held by files, moved to other units; coefficients public or unknown."""

from __future__ import annotations

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.stats
import torch

import sfumato as sf
from sfumato.errors import InputError
from sfumato.models.gpytorch_models import Units, _mean
from sfumato.models.trees import build_kernel, describe_kernel, describe_mean
from sfumato.models.trends import PolynomialMean, Trend
from sfumato.models.units import ColumnMap, mean_before

RNG = np.random.default_rng(4)


def prior_of(tree):
    return sf.Prior(build_kernel(tree))


def years(n=70, noise=0.3):
    """Rows in years around 1987, a cubic, and residuals that go together."""
    t = 1974.0 + 27.0 * np.sort(np.random.default_rng(1).random(n))
    u = (t - 1987.0) / 13.0
    rest = np.exp(-0.5 * ((t[:, None] - t) / 1.5) ** 2) + noise**2 * np.eye(n)
    wave = np.linalg.cholesky(rest) @ np.random.default_rng(2).standard_normal(n)
    return pd.DataFrame({"t": t}), 340.0 + 20.0 * u + 3.0 * u**2 - 1.5 * u**3 + wave


def powers(X, places, degree):
    u = (X - np.array(places["centre"])) / np.array(places["width"])
    return np.column_stack([np.ones(len(X)), *(u[:, j] ** p for j in range(X.shape[1]) for p in range(1, degree + 1))])


def test_coefficients_are_those_of_generalised_least_squares():
    X = np.column_stack([RNG.uniform(1990, 2010, 50), RNG.uniform(-1, 1, 50)])
    y = 3 * (X[:, 0] - 2000) ** 2 + X[:, 1] ** 3 + np.sin(X[:, 0]) + RNG.normal(0, 0.1, 50)
    prior = sf.fit_prior(X, y, "matern52", "cubic")
    tree = describe_mean(prior.mean)
    C = prior.covariance(X) + prior.noise * np.eye(50)
    H = powers(X, tree, 3)
    expected = np.linalg.solve(H.T @ np.linalg.solve(C, H), H.T @ np.linalg.solve(C, y))
    assert [tree["constant"], *np.ravel(tree["coefficients"])] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    density = scipy.stats.multivariate_normal(H @ expected, C).logpdf(y)
    assert prior.fit_report.log_likelihood == pytest.approx(density, abs=1e-4)


def test_no_other_kernel_and_coefficients_together_are_more_likely():
    X, y = years()
    t = X["t"].to_numpy()
    prior = sf.fit_prior(X, y, "rbf", "cubic")
    H, gaps = powers(t[:, None], describe_mean(prior.mean), 3), (t[:, None] - t) ** 2

    def loss(z):
        C = np.exp(z[0]) * np.exp(-0.5 * gaps / np.exp(2 * z[1])) + np.exp(z[2]) * np.eye(len(t))
        return -scipy.stats.multivariate_normal(H @ z[3:], C).logpdf(y)

    tree = describe_mean(prior.mean)
    kernel = describe_kernel(prior.kernel)
    best = [kernel["variance"], kernel["kernel"]["lengthscale"][0], prior.noise]
    start = np.array([*np.log(best), tree["constant"], *tree["coefficients"][0]])
    assert loss(start) == pytest.approx(-prior.fit_report.log_likelihood, abs=1e-5)
    found = scipy.optimize.minimize(loss, start, method="Nelder-Mead", options={"maxiter": 600})
    assert found.fun >= loss(start) - 1e-3


def test_a_closed_form_has_a_trend_too():
    t = np.linspace(0.0, 3.0, 30)
    y = 2.0 + t**2 + np.sin(9 * t)
    closed = sf.fit_prior(t, y, "matern32", "quadratic", 0.0, lengthscale=0.2)
    searched = sf.fit_prior(t, y, "matern32", "quadratic", 0.0, lengthscale=0.2, optimizer="lbfgs")
    assert closed.fit_report.method == "closed form"
    np.testing.assert_allclose(closed.mean_at(t), searched.mean_at(t), rtol=1e-4)
    np.testing.assert_allclose(closed.variance(t), searched.variance(t), rtol=1e-4)


def test_a_column_has_no_more_powers_than_its_values_can_tell():
    X = pd.DataFrame({"age": RNG.uniform(20, 70, 40), "sex": np.arange(40) % 2, "still": 3.0})
    y = 0.1 * X["age"] + 2.0 * X["sex"] + RNG.normal(0, 0.1, 40)
    prior = sf.fit_prior(X, y, "rbf(lengthscale=20)", "cubic")
    coefficients = np.array(describe_mean(prior.mean)["coefficients"])
    assert np.all(coefficients[1, 1:] == 0.0)
    assert coefficients[1, 0] == pytest.approx(1.0, abs=0.2)  # u is -1 or 1
    assert np.all(coefficients[2] == 0.0)
    (said,) = [m for m in prior.fit_report.messages if "trend" in m]
    assert "Of sex, still it has fewer powers" in said
    assert "no products of columns" in said


def test_the_trend_of_years_is_as_exact_as_that_of_shares():
    X, y = years()
    far = sf.fit_prior(X, y, "rbf", "cubic")
    near = sf.fit_prior((X - 1987.0) / 13.0, y, "rbf", "cubic")
    np.testing.assert_allclose(far.mean_at(X), near.mean_at((X - 1987.0) / 13.0), rtol=1e-7)


@pytest.mark.parametrize("coefficients", ["published", "integrated"])
def test_a_release_with_a_trend_and_a_season_is_proved_and_survives_a_file(coefficients, tmp_path):
    X, y = years()
    y = y + 2.0 * np.sin(2 * np.pi * X["t"] / 3.0)
    region = sf.Box({"t": (1985.0, 1988.0)})
    kernel = "rbf + periodic(period=3) * rbf(lengthscale=30)"
    prior = sf.fit_prior(X, y, kernel, "cubic", coefficients=coefficients, exclude=region, restarts=2)
    mechanism = sf.protect(prior, X, region, floor=0.5, progress=False)
    assert mechanism.certificate.holds
    assert mechanism.certificate.evidence == "proved"
    release = mechanism.release(y)
    release.save(tmp_path / "a.sfumato")
    again = sf.load(tmp_path / "a.sfumato")
    at = pd.DataFrame({"t": np.linspace(1970.0, 2005.0, 40)})
    before, after = release.predict(at), again.predict(at)
    np.testing.assert_array_equal(before.mean, after.mean)
    np.testing.assert_array_equal(before.std, after.std)
    assert again.certify().holds
    model = release.to_gpytorch()
    with torch.no_grad():
        np.testing.assert_allclose(model.posterior(torch.tensor(at.to_numpy())).mean[:, 0], before.mean, rtol=1e-6)


def test_unknown_coefficients_have_a_prior_as_wide_as_they_are():
    X, y = years()
    known = sf.fit_prior(X, y, "rbf", "cubic")
    unknown = sf.fit_prior(X, y, "rbf", "cubic", coefficients="integrated")
    own, trend = describe_kernel(unknown.kernel)["kernels"]
    np.testing.assert_allclose(prior_of(own).covariance(X), known.covariance(X), rtol=1e-12)
    sizes = np.abs(describe_mean(known.mean)["coefficients"][0])
    assert np.sqrt(trend["variance"]) >= sizes.max()
    assert np.sqrt(trend["variance"]) <= 1.5 * sizes.max()
    assert describe_mean(unknown.mean) == {"kind": "constant", "value": describe_mean(known.mean)["constant"]}
    # a reader with the data predicts the same
    at = pd.DataFrame({"t": np.linspace(1976.0, 1999.0, 9)})
    a, b = (prior.condition(X, y).mean_at(at) for prior in (known, unknown))
    np.testing.assert_allclose(a, b, atol=0.05)
    assert any("integrated out" in message for message in unknown.fit_report.messages)
    assert any("public mean" in message for message in known.fit_report.messages)


def test_words_name_the_trend_and_its_column():
    X, y = years()
    said = str(sf.fit_prior(X, y, "rbf", "quadratic"))
    assert "mean quadratic in t: 3" in said
    assert "u², u = (t - 1" in said
    assert "lengthscale" in said
    assert "(t)" in said


def test_a_mean_in_other_units_is_the_same_mean():
    mean = PolynomialMean(2.0, [[0.5, -1.0, 0.25], [3.0, 0.0, 1.0]], [1.0, -2.0], [0.5, 4.0])
    scaling = ColumnMap((2, 0), (10.0, -1.0), (-3.0, 0.2))
    X = RNG.normal(size=(5, 3))
    with torch.no_grad():
        expected = mean(torch.from_numpy(scaling.apply(X))).numpy()
    moved = sf.Prior(gpytorch.kernels.RBFKernel(), mean).before(scaling, 3)
    np.testing.assert_allclose(moved.mean_at(X), expected, rtol=1e-12)
    assert mean_before(describe_mean(mean), scaling, 3) == describe_mean(moved.mean)
    units = Units(ColumnMap((0, 1), (10.0, -1.0), (-3.0, 0.2)), 7.0, 100.0)
    with torch.no_grad():
        seen = mean(torch.from_numpy(units.columns.apply(X[:, :2]))).numpy()
        np.testing.assert_allclose(_mean(mean, units)(torch.from_numpy(X[:, :2])), 7.0 + 100.0 * seen, rtol=1e-12)


def test_a_kernel_of_a_trend_in_other_units_is_the_same_kernel():
    tree = {"kind": "trend", "power": 3, "centre": [0.3, 1.0], "width": [2.0, 0.5]}
    scaling = ColumnMap((2, 0), (10.0, -1.0), (-3.0, 0.2))
    X = RNG.normal(size=(5, 3))
    moved = prior_of(tree).before(scaling, 3)
    np.testing.assert_allclose(moved.covariance(X), prior_of(tree).covariance(scaling.apply(X)), rtol=1e-10)


def test_the_derivative_of_a_polynomial_is_a_mean_of_its_own():
    mean = PolynomialMean(2.0, [[0.5, -1.0, 0.25]], [1.0], [0.5])
    prior = sf.Prior(gpytorch.kernels.RBFKernel(), mean)
    joint = sf.JointPrior.of(prior, {"f": sf.Value(), "slope": sf.Derivative()})
    at = np.array([[0.2, 1.0], [1.7, 1.0]])
    step = 1e-6
    slopes = [(prior.mean_at([x + step]) - prior.mean_at([x - step]))[0] / (2 * step) for x in (0.2, 1.7)]
    np.testing.assert_allclose(joint.prior_on(["t"]).mean_at(at), slopes, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coefficients": "secret"}, r"coefficients is 'secret'; give one of 'published', 'integrated'"),
        ({"mean": "constant", "coefficients": "integrated"}, r"but mean is 'constant', which has none"),
        ({"mean": "quartic"}, r"mean is 'quartic'; give \"constant\", \"zero\", \"linear\", \"quadratic\", \"cubic\""),
        ({"y": np.arange(9.0) ** 3}, r"y equals a polynomial of that degree in all rows"),
        (
            {"X": np.arange(4.0), "y": [1.0, 0.0, 2.0, 5.0]},
            r"mean has 4 coefficients over 1 column\(s\), too many for 4",
        ),
    ],
    ids=str,
)
def test_wrong_use_is_explained(options, message):
    rows = {"X": np.arange(9.0), "y": np.cos(np.arange(9.0)), "mean": "cubic"}
    with pytest.raises(InputError, match=message):
        sf.fit_prior(**{**rows, **options})


def test_least_squares_do_not_mind_columns_that_say_the_same():
    X = RNG.normal(size=(20, 1))
    both = np.column_stack([X, 2.0 * X + 1.0])
    trend = Trend.of(2, both)
    assert trend.directions(both).shape == (20, 3)
    y = X[:, 0] ** 2
    np.testing.assert_allclose(trend.at(both, trend.least_squares(both, y)), y, atol=1e-9)
