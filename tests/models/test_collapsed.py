"""Fits to many rows: the bound is below the likelihood, tight where it can be, and kept where it does not mislead."""

from __future__ import annotations

import sys

import gpytorch
import numpy as np
import pytest
from scipy.stats import multivariate_normal

import sfumato as sf
from sfumato.data import as_inputs, rows_of_parquet
from sfumato.errors import FitWarning, InputError
from sfumato.models import collapsed
from sfumato.models.fit_rows import FitRows
from sfumato.models.fit_search import Question, Search, exactly
from sfumato.models.kernel_text import parse_kernel
from sfumato.models.learnt_noise import NoiseColumn
from sfumato.models.trends import Trend

FEW = {"EXACT_ROWS": 150, "FEW_ROWS": 100}


def searched(n: int = 60, text: str = "matern52") -> tuple[Search, FitRows]:
    """A search with two noises and a linear trend."""
    rng = np.random.default_rng(2)
    X, group = rng.uniform(0.0, 3.0, (n, 2)), np.arange(n) % 2 * 1.0
    y = np.sin(2 * X[:, 0]) + X[:, 1] + (0.1 + 0.4 * group) * rng.standard_normal(n)
    inputs = as_inputs(X)
    rows = FitRows(inputs, y, np.zeros(()), group, np.arange(n))
    noise = NoiseColumn("group", group).learnt(group)
    search = Search(Question(rows.read(), inputs.names, parse_kernel(text, inputs.names), Trend.of(1, X), noise), True)
    search.start(1)
    return search, rows


@pytest.mark.parametrize("text", ["matern52", "rbf + matern32 * rq"])
def test_the_slopes_of_the_bound_are_those_of_finite_differences(monkeypatch, text):
    monkeypatch.setattr(collapsed, "BLOCK", 17)
    search, rows = searched(text=text)
    with exactly():
        bound, at = collapsed.CollapsedBound(search, rows, search.rows.X.numpy()[::4]), search.vector()
        _, slopes = bound.loss_and_slopes(at)
        steps = 1e-5 * np.eye(len(at))
        found = [(bound.loss_and_slopes(at + h)[0] - bound.loss_and_slopes(at - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(slopes, found, rtol=1e-6, atol=1e-7)


def test_the_bound_is_below_the_likelihood_and_tight_where_all_rows_are_inducing_inputs():
    search, rows = searched()
    X = search.rows.X.numpy()
    with exactly():
        exact = -float(search.loss(search.rows).detach()) * len(X)
        bounds = [collapsed.CollapsedBound(search, rows, X[:count]).value().value for count in (10, 30, 60)]
    assert bounds[0] < bounds[1] < bounds[2] < exact
    assert bounds[2] == pytest.approx(exact, abs=0.2)


@pytest.fixture
def many(monkeypatch):
    for name, value in FEW.items():
        monkeypatch.setattr(f"sfumato.models.fit.{name}", value)
    rng = np.random.default_rng(4)
    t = rng.uniform(0.0, 10.0, 700)
    return t, 5.0 + 2.0 * np.sin(t) + 0.5 * rng.standard_normal(700)


def test_many_rows_are_fitted_with_the_bound_and_it_is_said_how_far_below_it_is(many):
    t, y = many
    prior = sf.fit_prior(t, y, exclude=sf.Box(4.0, 5.0))
    outside = (t < 4) | (t > 5)
    report = prior.fit_report
    assert (report.is_bound, report.rows_used) == (True, int(outside.sum()))
    covariance = prior.covariance(t[outside]) + prior.noise * np.eye(int(outside.sum()))
    exact = multivariate_normal(prior.mean_at(t[outside]), covariance).logpdf(y[outside])
    assert exact - 0.5 < report.log_likelihood < exact
    assert f"log likelihood at least {report.log_likelihood:.6g}" in str(report)
    assert "100 other rows have a log likelihood of" in str(report)
    assert prior.noise == pytest.approx(0.25, rel=4 * np.sqrt(2 / outside.sum()))
    secret = sf.fit_prior(t, np.where(outside, y, 99.0), exclude=sf.Box(4.0, 5.0))
    assert str(secret) == str(prior)


def test_stored_rows_are_read_part_after_part(many, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.models.fit_many.MANY", 160)
    pytest.importorskip("pyarrow")
    import pandas as pd

    frame = pd.DataFrame({"t": many[0], "y": many[1]})
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=300)
    rows = rows_of_parquet([tmp_path / "rows.parquet"], ["t"], "y")
    stored, here = sf.fit_prior(rows, rows.column("y")), sf.fit_prior(frame[["t"]], frame["y"])
    assert stored.fit_report.is_bound
    assert stored.fit_report.log_likelihood == pytest.approx(here.fit_report.log_likelihood, abs=0.01)


def test_a_bound_that_misleads_is_left_for_the_fit_to_some_rows(many, monkeypatch):
    monkeypatch.setattr(collapsed, "INDUCING", 2)
    t, y = many
    report = sf.fit_prior(t, y).fit_report
    assert (report.is_bound, report.rows_used) == (False, 100)
    assert "values that make a bound for 700 rows largest were left" in str(report)


def test_where_there_is_no_bound_some_rows_are_used_and_it_is_said_why(many):
    t, y = many
    own = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    for how, why in (
        ({"kernel": own}, "for a kernel of your own"),
        ({"noise": 0.0, "lengthscale": 1.0}, "without noise"),
    ):
        y_ = np.sin(t) if "noise" in how else y
        assert (
            f"100 of 700 rows were used, spread evenly over them: there is no bound {'for ' * ('own' in why)}"
            in str(sf.fit_prior(t, y_, **how).fit_report)
        )


def test_outputs_that_go_together_are_fitted_to_some_of_many_rows(many, monkeypatch):
    for name, value in FEW.items():
        monkeypatch.setattr(sys.modules["sfumato.models.fit_correlated"], name, value)
    t, y = many
    with pytest.warns(FitWarning, match="to 100 of 700 rows"):
        sf.fit_correlated(t, {"a": y, "b": -y + np.cos(t)}, noise=0.3, restarts=1)


def test_memory_is_estimated_before_a_fit(monkeypatch):
    monkeypatch.setattr("sfumato.machine.free_memory", lambda device=None: 1e6)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"a fit to 400 rows needs about .* rows=2000"):
        sf.fit_prior(rng.uniform(size=400), rng.standard_normal(400))
