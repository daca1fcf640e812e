"""fit_prior finds the most likely prior, says how sure it is, and keeps its hands off everything else."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import FrozenInstanceError

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.stats
import torch

from sfumato.data.orbit import simulate, training_grid
from sfumato.errors import FitWarning, InputError
from sfumato.models.fit import FitReport, fit_prior
from sfumato.models.prior import Prior
from sfumato.paper.census_data import paper_split, read_pums

T = np.linspace(0.0, 3.0, 61)


class Interval:
    """A stand-in for a region: lower ≤ first column ≤ upper."""

    def __init__(self, lower: float, upper: float) -> None:
        self.lower, self.upper = lower, upper

    def bind(self, inputs):
        return self

    def contains(self, A):
        return (A[:, 0] >= self.lower) & (A[:, 0] <= self.upper)


def simulated(n=60, d=1, lengthscale=0.4, variance=2.0, noise=0.05, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, (n, d))
    kernel = variance * np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1) / lengthscale**2)
    y = 3.0 + np.linalg.cholesky(kernel + noise * np.eye(n)) @ rng.standard_normal(n)
    truth = density(y, 3.0, kernel + noise * np.eye(n))
    return X, y, truth


def density(y, mean, covariance):
    return float(scipy.stats.multivariate_normal(np.full(len(y), mean), covariance).logpdf(y))


def values(prior):
    """lengthscales, variance, β and noise of a prior with a kernel given by name."""
    lengthscales = prior.kernel.base_kernel.lengthscale.numpy().reshape(-1)
    return (
        lengthscales,
        float(prior.kernel.outputscale),
        float(prior.mean_at(np.zeros((1, len(lengthscales))))[0]),
        prior.noise,
    )


# ---------------------------------------------------------------- closed form


@pytest.mark.parametrize("name", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("mean", ["constant", "zero", 0.7])
def test_closed_form_is_what_the_formulas_say(name, mean):
    y = 1.0 + np.sin(3 * T) + 0.3 * np.cos(11 * T)
    prior = fit_prior(T, y, name, mean, 0.0, lengthscale=0.05)
    u = np.abs(T[:, None] - T[None]) / 0.05
    C = {
        "rbf": np.exp(-0.5 * u**2),
        "matern12": np.exp(-u),
        "matern32": (1 + math.sqrt(3) * u) * np.exp(-math.sqrt(3) * u),
        "matern52": (1 + math.sqrt(5) * u + 5 / 3 * u**2) * np.exp(-math.sqrt(5) * u),
    }[name]
    one = np.ones(61)
    beta = {"zero": 0.0, "constant": one @ np.linalg.solve(C, y) / (one @ np.linalg.solve(C, one))}.get(mean, 0.7)
    variance = (y - beta) @ np.linalg.solve(C, y - beta) / 61
    _, fitted_variance, fitted_beta, noise = values(prior)
    assert fitted_beta == pytest.approx(beta, rel=1e-10, abs=1e-12)
    assert fitted_variance == pytest.approx(variance, rel=1e-10)
    assert noise == 0.0
    report = prior.fit_report
    assert report.method == "closed form"
    assert report.converged
    assert report.messages == ()
    assert report.log_likelihood == pytest.approx(density(y, beta, variance * C), rel=1e-9)


def test_no_other_mean_and_variance_are_more_likely_than_the_closed_form():
    y = np.sin(3 * T)
    prior = fit_prior(T, y, noise=0.0, lengthscale=0.05)
    _, variance, beta, _ = values(prior)
    C = prior.covariance(T) / variance
    best = density(y, beta, variance * C)
    for b, v in [(1e-3, 1), (-1e-3, 1), (0, 1.01), (0, 0.99)]:
        assert density(y, beta + b, v * variance * C) < best


def test_closed_form_and_search_agree():
    y = np.sin(3 * T)
    closed = fit_prior(T, y, noise=0.0, lengthscale=0.05)
    searched = fit_prior(T, y, noise=0.0, lengthscale=0.05, optimizer="lbfgs")
    assert searched.fit_report.method == "L-BFGS"
    for a, b in zip(values(closed), values(searched), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-8)
    assert closed.fit_report.log_likelihood == pytest.approx(searched.fit_report.log_likelihood, abs=1e-6)


def test_a_nearly_singular_correlation_matrix_is_fitted_on_its_numerical_rank():
    rng = np.random.default_rng(0)
    C = np.exp(-0.5 * (T[:, None] - T[None]) ** 2 / 0.5**2)
    w, U = scipy.linalg.eigh(C)
    y = 2.0 + U @ (np.sqrt(np.maximum(w, 0.0)) * rng.standard_normal(61)) * 3.0
    prior = fit_prior(T, y, "rbf", noise=0.0, lengthscale=0.5)
    _, variance, _, _ = values(prior)
    assert 2.0 < variance < 30.0
    assert "singular to working precision" in prior.fit_report.messages[0]
    assert "2.2e-16" in prior.fit_report.messages[0]


def test_repeated_rows_with_equal_y_change_nothing():
    y = np.sin(3 * T)
    once = fit_prior(T, y, noise=0.0, lengthscale=0.05)
    twice = fit_prior(np.r_[T, T], np.r_[y, y], noise=0.0, lengthscale=0.05)
    for a, b in zip(values(once), values(twice), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert "61 directions" in twice.fit_report.messages[0]


def test_repeated_rows_with_different_y_need_noise():
    with pytest.raises(InputError, match=r"same X \(1\) but different y.*noise=\"learn\""):
        fit_prior([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 1.5, 0.0], noise=0.0, lengthscale=0.3)


def test_data_that_the_kernel_cannot_follow_raise_a_warning():
    rough = np.random.default_rng(0).standard_normal(61)
    with pytest.warns(FitWarning, match="cannot follow the data"):
        prior = fit_prior(T, rough, "rbf", noise=0.0, lengthscale=0.5)
    assert not prior.fit_report.converged


def test_the_paper_s_satellite_values_come_out():
    orbit = simulate(training_grid())
    expected = {"r": 1.05247, "r_dot": -2e-6, "theta": 9.43277, "theta_dot": 6.28842}
    for output, beta in expected.items():
        prior = fit_prior(orbit[["t"]], orbit[output], "rbf", noise=0.0, lengthscale=0.05)
        assert values(prior)[2] == pytest.approx(beta, abs=2e-4)


# ---------------------------------------------------------------- maximum likelihood


@pytest.mark.parametrize("d", [1, 2])
def test_the_fit_is_at_least_as_likely_as_the_truth(d):
    X, y, truth = simulated(n=70, d=d, lengthscale=0.6)
    prior = fit_prior(X, y, "rbf")
    lengthscales, variance, beta, noise = values(prior)
    assert lengthscales.shape == (d,)
    u = ((X[:, None] - X[None]) ** 2 / lengthscales**2).sum(-1)
    own = density(y, beta, variance * np.exp(-0.5 * u) + noise * np.eye(len(y)))
    assert own >= truth
    assert prior.fit_report.log_likelihood == pytest.approx(own, abs=1e-6)
    assert prior.fit_report.converged
    np.testing.assert_allclose(lengthscales, 0.6, rtol=0.8)


def test_units_do_not_matter():
    X, y, _ = simulated(d=2, lengthscale=0.8)
    ell, variance, beta, noise = values(fit_prior(X, y, "rbf"))
    ell_, variance_, beta_, noise_ = values(fit_prior(X * 1000.0 + 7.0, y * 1e5 - 1e4, "rbf"))
    np.testing.assert_allclose(ell_, ell * 1000.0, rtol=1e-3)
    assert variance_ == pytest.approx(variance * 1e10, rel=1e-3)
    assert noise_ == pytest.approx(noise * 1e10, rel=1e-3)
    assert beta_ == pytest.approx(beta * 1e5 - 1e4, rel=1e-3)


def test_more_restarts_are_never_worse():
    X, y, _ = simulated(n=30)
    one, many = fit_prior(X, y, restarts=1), fit_prior(X, y, restarts=6)
    assert many.fit_report.log_likelihood >= one.fit_report.log_likelihood - 1e-6
    assert (one.fit_report.restarts, many.fit_report.restarts) == (1, 6)


def test_what_is_given_stays_as_given():
    X, y, _ = simulated(d=2)
    noise = np.linspace(0.01, 0.2, len(y))
    prior = fit_prior(X, y, "matern52", 2.5, noise, lengthscale=[0.3, 0.7])
    lengthscales, _, beta, kept = values(prior)
    np.testing.assert_array_equal(lengthscales, [0.3, 0.7])
    np.testing.assert_array_equal(kept, noise)
    assert beta == 2.5
    assert fit_prior(X, y, noise=0.05).noise == 0.05
    assert values(fit_prior(X, y, mean="zero", lengthscale=0.4))[2] == 0.0


def test_a_known_mean_far_from_the_data_is_no_obstacle():
    X, y, _ = simulated()
    prior = fit_prior(X, y + 1e6, mean="zero", lengthscale=0.4, noise=0.05)
    assert values(prior)[1] > 1e9


def test_an_own_kernel_is_fitted_from_where_it_is_and_left_alone():
    X, y, _ = simulated()
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    before = copy.deepcopy(kernel.state_dict())
    own, named = fit_prior(X, y, kernel), fit_prior(X, y, "rbf")
    assert own.fit_report.log_likelihood == pytest.approx(named.fit_report.log_likelihood, abs=1e-4)
    np.testing.assert_allclose(own.covariance(X), named.covariance(X), rtol=1e-2, atol=1e-3)
    assert all(torch.equal(before[name], value) for name, value in kernel.state_dict().items())
    assert kernel.raw_outputscale.requires_grad
    assert kernel.raw_outputscale.grad is None


def test_an_own_kernel_works_in_any_unit():
    X, y, _ = simulated()
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    a, b = fit_prior(X, y, kernel), fit_prior(X, y * 1e5, kernel)
    n = len(y)
    assert b.fit_report.log_likelihood == pytest.approx(a.fit_report.log_likelihood - n * math.log(1e5), abs=1e-3)


def test_a_prior_on_a_parameter_of_an_own_kernel_is_honoured():
    X, y, _ = simulated()
    tight = gpytorch.priors.LogNormalPrior(math.log(1.5), 0.001)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(lengthscale_prior=tight))
    prior = fit_prior(X, y, kernel)
    assert prior.kernel.base_kernel.lengthscale.item() == pytest.approx(1.5, rel=0.02)


def test_parameters_without_requires_grad_stay():
    X, y, _ = simulated()
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    kernel.base_kernel.lengthscale = 0.4
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    prior = fit_prior(X, y, kernel)
    assert prior.kernel.base_kernel.lengthscale.item() == pytest.approx(0.4, rel=1e-6)
    kernel.requires_grad_(False)
    fixed = fit_prior(X, y, kernel, 3.0, 0.05)
    assert fixed.fit_report.method == "nothing to fit"
    np.testing.assert_array_equal(fixed.covariance(X), Prior(kernel).covariance(X))


def test_a_linear_mean_is_fitted():
    X, y, _ = simulated()
    before = torch.get_rng_state()
    with torch.random.fork_rng(devices=[]):
        mean = gpytorch.means.LinearMean(1)
    mean.weights.data.fill_(0.0)
    mean.bias.data.fill_(0.0)
    prior = fit_prior(X, y + 20.0 * X[:, 0], mean=mean)
    slope = prior.mean_at([1.0])[0] - prior.mean_at([0.0])[0]
    assert slope == pytest.approx(20.0, abs=3.0)
    assert float(mean.weights.detach()[0, 0]) == 0.0
    assert torch.equal(before, torch.get_rng_state())


def test_columns_of_a_frame_are_named_in_remarks():
    X, y, _ = simulated()
    frame = pd.DataFrame({"t": X[:, 0], "room": 7.0})
    with pytest.warns(FitWarning, match="column room is constant"):
        fit_prior(frame, y)


# ---------------------------------------------------------------- Adam


def test_adam_takes_plain_steps_and_leaves_chance_out():
    X, y, _ = simulated(d=2)
    options = {"optimizer": "adam", "epochs": 100, "decay": (10, 0.1), "weight_decay": 1e-4}
    found = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        with pytest.warns(FitWarning, match="Adam stopped after 100 epochs"):
            found.append(fit_prior(X, y, **options))
    np.testing.assert_array_equal(found[0].covariance(X), found[1].covariance(X))
    assert found[0].noise == found[1].noise
    assert found[0].fit_report.method == "Adam, 100 epochs"
    assert not found[0].fit_report.converged


def test_many_adam_epochs_reach_the_maximum():
    X, y, _ = simulated()
    best = fit_prior(X, y).fit_report.log_likelihood
    report = fit_prior(X, y, optimizer="adam", epochs=600, learning_rate=0.05).fit_report
    assert report.converged
    assert report.log_likelihood == pytest.approx(best, abs=0.05)


# ---------------------------------------------------------------- side effects


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_random_numbers_default_dtype_and_gradients_of_the_caller_are_untouched(dtype):
    X, y, _ = simulated(n=25)
    normal = fit_prior(X, y, restarts=1)
    state, legacy = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    torch.set_default_dtype(dtype)
    try:
        with torch.no_grad():
            prior = fit_prior(X, y, restarts=1)
            assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == dtype
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(legacy[1], np.random.get_state()[1])  # noqa: NPY002
    np.testing.assert_allclose(prior.covariance(X), normal.covariance(X), rtol=1e-6)
    assert prior.kernel.base_kernel.lengthscale.dtype == torch.float64


def test_the_same_data_give_the_same_prior():
    X, y, _ = simulated()
    a, b = fit_prior(X, y), fit_prior(X, y)
    np.testing.assert_allclose(a.covariance(X), b.covariance(X), rtol=1e-9)


# ---------------------------------------------------------------- exclude


@pytest.mark.parametrize(
    "options",
    [{"lengthscale": 0.05, "noise": 0.0}, {"restarts": 1}, {"noise": np.linspace(0.1, 0.2, 61), "restarts": 1}],
    ids=["closed form", "search", "noise for each row"],
)
def test_excluded_rows_have_no_part_in_the_fit(options):
    y = np.sin(3 * T) + 0.1 * np.cos(40 * T)
    secret = np.where((T >= 1) & (T <= 2), 1e3 * T, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        first = fit_prior(T, y, exclude=Interval(1, 2), **options)
        second = fit_prior(T, secret, exclude=Interval(1, 2), **options)
    np.testing.assert_array_equal(first.covariance(T), second.covariance(T))
    np.testing.assert_array_equal(first.mean_at(T), second.mean_at(T))
    np.testing.assert_array_equal(first.noise, second.noise)
    assert first.fit_report == second.fit_report
    assert (first.fit_report.rows_used, first.fit_report.rows_excluded) == (40, 21)
    if isinstance(options.get("noise"), np.ndarray):
        np.testing.assert_array_equal(first.noise, options["noise"])


def test_a_real_region_can_be_excluded():
    regions = pytest.importorskip("sfumato.regions")
    prior = fit_prior(T, np.sin(3 * T), lengthscale=0.05, noise=0.0, exclude=regions.Box(1.0, 2.0))
    assert prior.fit_report.rows_excluded == 21


def test_excluding_nearly_everything_is_refused():
    with pytest.raises(InputError, match=r"exclude leaves 2 of 61 rows.*smaller region"):
        fit_prior(T, np.sin(T), exclude=Interval(0.08, 3.0))
    with pytest.raises(InputError, match="exclude is 3; give a region"):
        fit_prior(T, np.sin(T), exclude=3)


# ---------------------------------------------------------------- honesty


def test_noise_free_data_say_that_the_noise_is_at_its_limit():
    with pytest.warns(FitWarning, match=r"noise ended at its lower limit.*noise=0\.0"):
        prior = fit_prior(T, np.sin(3 * T), "matern52", lengthscale=1.0)
    assert any("lower limit" in message for message in prior.fit_report.messages)


def test_a_column_without_influence_says_that_its_lengthscale_is_at_its_limit():
    X, y, _ = simulated(n=50)
    rng = np.random.default_rng(5)
    X = np.c_[X, rng.uniform(size=50)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        prior = fit_prior(X, y)
    lengthscale = values(prior)[0][1]
    assert lengthscale > 3.0
    if lengthscale > 1e3:
        assert any("lengthscale of x1 ran off to" in str(w.message) for w in caught)


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    monkeypatch.setattr("sfumato.models.fit_search.STEPS", 1)
    X, y, _ = simulated()
    with pytest.warns(FitWarning, match="stopped before a maximum"):
        prior = fit_prior(X, y, restarts=1)
    assert not prior.fit_report.converged


def test_zero_noise_in_a_search_is_kept_in_the_prior_and_mentioned():
    prior = fit_prior(T, np.sin(9 * T) + np.abs(T - 1.2), "matern32", noise=0.0)
    assert prior.noise == 0.0
    assert any("raised" in message for message in prior.fit_report.messages)


def test_the_report_is_frozen_and_readable():
    report = FitReport("L-BFGS", -12.5, False, ("look here.",), 3, 40, 21)
    assert str(report) == (
        "fitted by L-BFGS to 40 rows (21 excluded), 3 starts: not converged, log likelihood -12.5\n  - look here."
    )
    with pytest.raises(FrozenInstanceError):
        report.converged = True


# ---------------------------------------------------------------- wrong use

X0, Y0 = np.arange(6.0), np.array([0.0, 1.0, 0.5, 2.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "gauss"}, r"kernel is 'gauss'; give one of rbf, matern12"),
        ({"kernel": 3}, r"kernel is 3; give one of"),
        ({"kernel": gpytorch.kernels.RBFKernel(ard_num_dims=3)}, r"kernel cannot be evaluated on the 1 column"),
        ({"kernel": gpytorch.kernels.RBFKernel(active_dims=(4,))}, r"kernel cannot be evaluated on the 1 column"),
        ({"kernel": gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2]))}, r"batch shape"),
        ({"mean": "none"}, r"mean is 'none'; give \"constant\", \"zero\""),
        ({"mean": math.nan}, r"mean is nan"),
        ({"mean": True}, r"mean is True"),
        ({"mean": gpytorch.means.ConstantMean(batch_shape=torch.Size([2]))}, r"mean"),
        ({"noise": "some"}, r"noise is 'some'; give \"learn\", .* a variance ≥ 0"),
        ({"noise": -1.0}, r"negative variance -1"),
        ({"noise": [0.1, 0.1, 0.1, -0.2, 0.1, 0.1]}, r"negative variance -0\.2"),
        ({"noise": [0.1, 0.2]}, r"noise has 2 values, but X has 6 rows"),
        ({"noise": math.inf}, r"noise is inf"),
        ({"noise": None}, r"noise is None"),
        ({"lengthscale": 0.0}, r"lengthscale is 0\.0; give a positive number"),
        ({"lengthscale": "long"}, r"lengthscale is 'long'; give a positive number"),
        ({"lengthscale": [1.0, 2.0]}, r"lengthscale has 2 values, but X has 1 column\(s\) \(x\)"),
        ({"lengthscale": 1.0, "kernel": gpytorch.kernels.RBFKernel()}, r"lengthscale goes with kernels given by name"),
        ({"optimizer": "sgd"}, r"optimizer is 'sgd'; give one of 'auto', 'lbfgs', 'adam'"),
        ({"optimizer": "adam"}, r"epochs is None; optimizer=\"adam\" needs"),
        ({"optimizer": "adam", "epochs": 0}, r"epochs is 0; optimizer=\"adam\" needs"),
        ({"optimizer": "adam", "epochs": 5, "learning_rate": 0.0}, r"learning_rate is 0\.0; give a positive"),
        ({"optimizer": "adam", "epochs": 5, "decay": 3}, r"decay is 3; give \(step, gamma\)"),
        ({"optimizer": "adam", "epochs": 5, "weight_decay": -1}, r"weight_decay is -1; give a number ≥ 0"),
        ({"epochs": 5}, r"epochs is 5, but only optimizer=\"adam\" uses it"),
        ({"decay": (10, 0.1)}, r"decay is \(10, 0\.1\), but only optimizer=\"adam\" uses it"),
        ({"restarts": 0}, r"restarts is 0; give a whole number from 1 to 20"),
        ({"restarts": 1.5}, r"restarts is 1\.5; give a whole number"),
        ({"X": [1.0], "y": [1.0]}, r"X has 1 row; a prior needs at least 2"),
        ({"y": np.ones(6)}, r"y is constant \(1 in all 6 rows\).*sf\.Prior\(kernel=\.\.\., mean=1\)"),
        ({"y": Y0 * math.nan}, r"y has 6 value\(s\) that are NaN"),
        ({"y": Y0[:4]}, r"y has 4 values, but X has 6 rows"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_wrong_use_is_explained(options, message):
    with pytest.raises(InputError, match=message):
        fit_prior(**{"X": X0, "y": Y0, **options})


# ---------------------------------------------------------------- the paper's census study


@pytest.fixture(scope="session")
def census(paper_data):
    """The paper's 1325 training rows: 5 columns and income in 1e5 dollars."""
    data = paper_split(read_pums(paper_data / "pums_ptx2023_sample_5000.csv"))
    return data.train, data.train_y


@pytest.mark.slow
def test_the_census_fit_reaches_the_known_maximum(census):
    X, y = census
    with pytest.warns(FitWarning, match="lengthscale of PUMA ran off to"):
        prior = fit_prior(X, y, restarts=1)
    normalised = prior.fit_report.log_likelihood + len(y) * math.log(y.std(ddof=1))
    assert -normalised / len(y) <= 1.345
    assert prior.fit_report.converged


@pytest.mark.slow
def test_the_paper_s_adam_schedule_stops_where_the_paper_s_code_does(census):
    X, y = census
    with pytest.warns(FitWarning, match="still rising"):
        prior = fit_prior(X, y, "rbf", optimizer="adam", epochs=100, decay=(10, 0.1), weight_decay=1e-4)
    normalised = prior.fit_report.log_likelihood + len(y) * math.log(y.std(ddof=1))
    assert -normalised / len(y) == pytest.approx(1.713, abs=0.02)
    assert prior.noise / y.var() == pytest.approx(0.2528, abs=0.01)


def test_rows_fits_to_that_many_rows_outside_without_looking_at_y():
    rng = np.random.default_rng(3)
    X = rng.uniform(0.0, 3.0, 400)
    y, secret = np.sin(3 * X) + 0.1 * rng.standard_normal(400), np.where((X >= 1) & (X <= 2), 5.0, 0.0)
    few, other = (fit_prior(X, outputs, exclude=Interval(1, 2), rows=60) for outputs in (y, y + secret))
    for one, two in zip(values(few), values(other), strict=True):
        np.testing.assert_array_equal(one, two)
    report = few.fit_report
    outside = int(((X < 1) | (X > 2)).sum())
    assert (report.rows_used, report.rows_excluded) == (60, 400 - outside)
    assert f"60 of {outside} rows were used" in str(report)
    with pytest.raises(InputError, match=r"rows is 2\.5"):
        fit_prior(X, y, rows=2.5)
