"""Kernels as text: what is written is what is fitted, and what cannot be read is explained."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import sfumato as sf
from kernel_oracles import kernel_values
from sfumato.errors import InputError
from sfumato.models.kernel_text import in_text, parse_kernel
from sfumato.models.trees import build_kernel, describe_kernel

COLUMNS = ("year", "month", "the rest")


@pytest.mark.parametrize(
    "text",
    [
        "rbf",
        "rbf + periodic(period=12, column=month) * rbf",
        "(rbf(lengthscale=2.5, column=[year, month]) + rq(alpha=1.5)) * matern32",
        "matern12(lengthscale=[1, 2, 3]) + linear(centre=-4, column='the rest') + cubic(column=year)",
    ],
)
def test_a_text_can_be_written_again(text):
    assert in_text(parse_kernel(text, COLUMNS), COLUMNS) == text


def test_brackets_that_change_nothing_are_left_out():
    assert in_text(parse_kernel("(rbf + (rq)) + (rbf * (periodic(column=0,period=2/8) * rq))", COLUMNS), COLUMNS) == (
        "rbf + rq + rbf * periodic(period=0.25, column=year) * rq"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gauss", r"kernel is 'gauss'; give one of rbf, matern12.*or a GPyTorch kernel"),
        ("matern", r"Did you mean 'matern\d\d'\?"),
        ("rbf + gauss", r"'gauss' is no kernel that is known.*Give one of rbf, matern12"),
        ("rbf +", r"kernel is 'rbf \+', which cannot be read; give one of rbf"),
        ("", r"kernel is '', which cannot be read"),
        ("rbf - rbf", r"'rbf - rbf' is no kernel; give one of"),
        ("2 * rbf", r"'2' is no kernel; give one of"),
        ("rbf ** 2", r"'rbf \*\* 2' is no kernel"),
        ("rbf + open('x')", r"'open' is no kernel that is known"),
        ("rbf.fit(1)", r"'rbf.fit\(1\)' is no kernel; give one of"),
        ("rbf(2.0)", r"value without a name; write for example rbf\(lengthscale=2\.0\)"),
        ("rbf(width=2)", r"rbf has no 'width'; in its brackets it may have lengthscale, column"),
        ("rbf(lengthscale=-1)", r"lengthscale of rbf is '-1'; give a positive number, in the units of X"),
        ("rbf(lengthscale=1e999)", r"lengthscale of rbf is '1e309'; give a positive number"),
        ("rbf(lengthscale=long)", r"lengthscale of rbf is 'long'; give a positive number"),
        ("rbf(lengthscale=1/0)", r"lengthscale of rbf is '1 / 0'; give a positive number"),
        ("rbf(lengthscale=[1, 2])", r"2 values for 3 column\(s\)"),
        ("rq(alpha=[1, 2, 3])", r"alpha of rq is '\[1, 2, 3\]'; give a positive number\."),
        ("rbf(column=day)", r"column is 'day', but the columns are year, month, the rest; give one of these"),
        ("rbf(column=3)", r"a number from 0 to 2"),
        ("rbf(column=[0, year])", r"give different columns"),
        ("periodic(period=1)", r"periodic needs one column, and 3 are there.*periodic\(column=year\)"),
        ("rbf + " * 400 + "rbf", r"a text of 2403 characters"),
        ("rbf * (rbf + " * 4 + "rbf" + ")" * 4, r"with brackets more than 6 deep; multiply some of them out"),
    ],
)
def test_a_text_that_cannot_be_read_is_explained(text, message):
    with pytest.raises(InputError, match=message):
        parse_kernel(text, COLUMNS)


def season(n=90, seed=3):
    rng = np.random.default_rng(seed)
    t = 1990.0 + np.sort(rng.uniform(0.0, 8.0, n))
    u = t - 1994.0
    wave = 3.0 * np.sin(2 * np.pi * t) + np.cos(4 * np.pi * t)
    return t, 30.0 + 2.0 * u + 0.3 * u**2 + wave + 0.2 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")  # it starts at the maximum
def test_the_likelihood_is_that_of_scikit_learn_and_no_search_of_its_own_is_better():
    t, y = season()
    prior = sf.fit_prior(t, y, "rbf + periodic(period=1) * rbf", 30.0)
    parts = describe_kernel(prior.kernel)["kernels"]
    trend, (wave, slow) = parts[0]["kernel"], parts[1]["kernel"]["kernels"]
    kernel = sk.ConstantKernel(parts[0]["variance"]) * sk.RBF(trend["lengthscale"][0]) + sk.ConstantKernel(
        parts[1]["variance"], (1e-3, 1e5)
    ) * sk.ExpSineSquared(wave["lengthscale"][0] ** 0.5, 1.0, periodicity_bounds="fixed") * sk.RBF(
        slow["lengthscale"][0], (1e-2, 1e6)
    )
    regressor = GaussianProcessRegressor(kernel + sk.WhiteKernel(prior.noise), optimizer=None).fit(t[:, None], y - 30.0)
    assert prior.fit_report.log_likelihood == pytest.approx(regressor.log_marginal_likelihood_value_, abs=1e-4)
    searched = GaussianProcessRegressor(kernel + sk.WhiteKernel(prior.noise)).fit(t[:, None], y - 30.0)
    assert prior.fit_report.log_likelihood >= searched.log_marginal_likelihood_value_ - 0.01
    assert wave["period_length"] == [1.0]
    assert prior.fit_report.converged


def test_columns_brackets_and_given_values_are_those_that_were_written():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"year": rng.uniform(1990, 2000, 60), "month": rng.uniform(0, 12, 60)})
    y = np.sin(X["month"] / 2) + 0.1 * X["year"] + rng.normal(0, 0.1, 60)
    text = "(rq(alpha=1.5) + rbf(lengthscale=3, column=year)) * matern52(column=1) + linear(centre=1990, column=year)"
    prior = sf.fit_prior(X, y, text, restarts=1)
    tree = describe_kernel(prior.kernel)
    product, line = tree["kernels"]
    assert line["kernel"] == {
        "kind": "trend",
        "power": 1,
        "centre": [1990.0],
        "width": line["kernel"]["width"],
        "active_dims": [0],
    }
    inner, other = product["kernel"]["kernels"]
    assert other["active_dims"] == [1]
    assert inner["kind"] == "sum"
    first, second = inner["kernels"]
    assert first["kind"] == "rational_quadratic"
    assert first["alpha"] == 1.5
    assert second["kernel"] == {"kind": "rbf", "lengthscale": [3.0], "active_dims": [0]}
    np.testing.assert_allclose(prior.covariance(X), kernel_values(tree, X.to_numpy(), X.to_numpy()), rtol=1e-9)
    density = scipy.stats.multivariate_normal(prior.mean_at(X), prior.covariance(X) + prior.noise * np.eye(60))
    assert prior.fit_report.log_likelihood == pytest.approx(density.logpdf(y), abs=1e-5)


def test_units_do_not_matter():
    t, y = season(60)
    a = sf.fit_prior(t, y, "rbf + periodic(period=1)", restarts=2)
    b = sf.fit_prior(365.0 * t - 7e5, 1e4 * y, "rbf + periodic(period=365)", restarts=2)
    np.testing.assert_allclose(b.covariance(365.0 * t - 7e5), 1e8 * a.covariance(t), rtol=2e-2)
    assert b.fit_report.log_likelihood == pytest.approx(a.fit_report.log_likelihood - 60 * np.log(1e4), abs=1e-2)


def test_a_period_that_is_not_given_is_found():
    t, y = season()
    prior = sf.fit_prior(t, y, "rbf + periodic", restarts=2)
    wave = describe_kernel(prior.kernel)["kernels"][1]["kernel"]
    assert wave["period_length"][0] == pytest.approx(1.0, abs=0.01)
    rng = np.random.default_rng(1)
    with pytest.warns(sf.FitWarning, match=r"no period stands out along x, .*give it, as in periodic\(period=1\)"):
        sf.fit_prior(t, rng.standard_normal(90), "periodic", restarts=1)


def test_a_term_that_the_data_do_not_need_is_named():
    t, y = season()
    with pytest.warns(sf.FitWarning, match=r"the variance of the term linear ended at its lower limit.*Leave it out"):
        sf.fit_prior(t, np.sin(2 * np.pi * t) + 1e-3 * y, "periodic(period=1) + linear + rbf", restarts=3)


def test_a_lengthscale_beside_a_longer_text_is_refused():
    with pytest.raises(InputError, match=r"lengthscale is given beside kernel='rbf \+ rq'; write it into the text"):
        sf.fit_prior([0.0, 1.0, 2.0], [1.0, 2.0, 0.0], "rbf + rq", lengthscale=1.0)


def test_a_product_with_nothing_but_a_variance_open_has_a_closed_form():
    t, y = season(20)
    prior = sf.fit_prior(t, y, "matern12(lengthscale=0.5) * periodic(period=1, lengthscale=1)", noise=0.0)
    assert prior.fit_report.method == "closed form"
    C = prior.covariance(t) / prior.variance(t)[0]
    one = np.ones(20)
    beta = one @ np.linalg.solve(C, y) / (one @ np.linalg.solve(C, one))
    assert prior.variance(t)[0] == pytest.approx((y - beta) @ np.linalg.solve(C, y - beta) / 20, rel=1e-9)


def test_a_file_and_words_hold_such_a_kernel():
    t, y = season(40)
    frame = pd.DataFrame({"t": t})
    prior = sf.fit_prior(frame, y, "rbf + periodic(period=1) * rbf", restarts=1)
    tree = describe_kernel(prior.kernel)
    assert describe_kernel(build_kernel(tree, 1)) == tree
    assert "period 1 (t)" in str(prior)
