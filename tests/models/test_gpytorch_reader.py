"""A release as a GPyTorch model: the same conclusions, with gradients, and good enough for BoTorch."""

from __future__ import annotations

import pickle
import sys
import warnings

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorMean,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.models.gpytorch import GPyTorchModel
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.kernels import LinearKernel, MaternKernel, PeriodicKernel, RBFKernel, RQKernel, ScaleKernel

import sfumato as sf
from kernels import matern, rbf

RNG = np.random.default_rng(11)
T = np.linspace(0.0, 3.0, 31)
X2 = RNG.uniform(0.0, 3.0, (40, 2))


def release_of(kernel, X, y, region, noise=0.05, mean=2.0, **options):
    prior = sf.Prior(kernel=kernel, mean=mean, noise=noise)
    return sf.protect(prior, X, region, alpha=0.3, progress=False, **options).release(y, unsafe_seed=1)


def line(**options):
    return release_of(rbf(0.4, 1.5), T, 2.0 + np.sin(2.0 * T), sf.Box(1.0, 2.0), **options)


def plane(kernel=None, **options):
    y = 2.0 + np.sin(2.0 * X2[:, 0]) * np.cos(X2[:, 1])
    return release_of(kernel or matern([0.8, 1.2], 1.5, nu=2.5), X2, y, sf.Points(X2[:3]), **options)


LINE, PLANE = line(), plane()


def product():
    return ScaleKernel(RBFKernel(active_dims=[0]) * PeriodicKernel(active_dims=[1])).double()


def total():
    return ScaleKernel(RQKernel()).double() + MaternKernel(nu=0.5, active_dims=[1]).double() + LinearKernel().double()


RELEASES = {
    "one column": lambda: LINE,
    "two columns": lambda: PLANE,
    "far from 0": lambda: release_of(
        rbf(0.4, 1.5), 2020.0 + T, 2.0 + np.sin(2.0 * T), sf.Box(2021.0, 2022.0)
    ),
    "independent noise": lambda: line(structure="diagonal"),
    "noise for each row": lambda: line(noise=np.linspace(0.01, 0.2, 31)),
    "a product": lambda: plane(product()),
    "a sum": lambda: plane(total()),
    "a linear mean": lambda: line(mean=gpytorch.means.LinearMean(1)),
}  # fmt: skip


def asked(release, rows=13):
    lower, upper = release.inputs.min(axis=0) - 0.3, release.inputs.max(axis=0) + 0.3
    return np.random.default_rng(5).uniform(lower, upper, (rows, release.inputs.shape[1]))


@pytest.mark.parametrize("name", RELEASES)
def test_the_model_concludes_what_the_release_does(name):
    release = RELEASES[name]()
    model, new = release.to_gpytorch(), asked(release)
    seen = release.predict(new)
    assert isinstance(model, gpytorch.models.ExactGP)
    assert isinstance(model, GPyTorchModel)
    with torch.no_grad():
        direct, posterior = model(torch.from_numpy(new)), model.posterior(torch.from_numpy(new))
        plain = direct.mean.numpy(), direct.covariance_matrix.numpy()
        botorch = posterior.mean[:, 0].numpy(), posterior.distribution.covariance_matrix.numpy()
    for mean, covariance in (plain, botorch):
        np.testing.assert_allclose(mean, seen.mean, rtol=1e-8)
        np.testing.assert_allclose(np.sqrt(np.diag(covariance)), seen.std, rtol=1e-8)
        np.testing.assert_allclose(covariance, seen.covariance(), rtol=0, atol=1e-8 * np.max(seen.std) ** 2)


def test_without_botorch_it_is_a_gpytorch_model_and_its_prior_can_be_read(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "botorch"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "sfumato.models.botorch_models", raising=False)
    monkeypatch.setitem(sys.modules, "botorch", None)
    model = LINE.to_gpytorch()
    assert not isinstance(model, GPyTorchModel)
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.from_numpy(asked(LINE))).mean, LINE.predict(asked(LINE)).mean, rtol=1e-8)
    np.testing.assert_allclose(sf.Prior.from_gpytorch(model).covariance(T), LINE.prior.covariance(T))


def test_only_the_whole_noise_gives_these_conclusions():
    """A likelihood with the diagonal of the noise, which is what GPyTorch offers, concludes something else."""
    variances = LINE.noise.variance() + 0.05
    wrong = LINE.prior.condition(T, LINE.outputs, variances)
    assert np.max(np.abs(wrong.mean_at(T) - LINE.predict(T).mean)) > 0.05


def test_questions_at_published_inputs_are_answered_without_a_warning():
    with torch.no_grad():
        seen = LINE.to_gpytorch()(torch.from_numpy(T[:, None]))
    np.testing.assert_allclose(seen.mean.numpy(), LINE.predict(T).mean, rtol=1e-8)


def test_more_rows_than_gpytorch_solves_exactly():
    rows = np.random.default_rng(0).uniform(0.0, 60.0, 900)
    release = release_of(matern(1.0, 1.0), rows, np.sin(rows), sf.Points([[30.0]]), mean=0.0, method="eigh")
    new = np.linspace(28.0, 33.0, 7)
    with torch.no_grad():
        seen = release.to_gpytorch()(torch.from_numpy(new[:, None]))
    np.testing.assert_allclose(seen.mean.numpy(), release.predict(new).mean, rtol=1e-8)
    np.testing.assert_allclose(seen.stddev.numpy(), release.predict(new).std, rtol=1e-8)


def test_a_new_measurement_has_the_noise_of_the_prior_also_at_a_published_input():
    model, new = LINE.to_gpytorch(), torch.from_numpy(T[:4, None])
    with torch.no_grad():
        f, y = model.posterior(new), model.posterior(new, observation_noise=True)
        given = model.posterior(new, observation_noise=torch.full((4, 1), 0.5).double())
    np.testing.assert_allclose((y.variance - f.variance).numpy(), 0.05, rtol=1e-9)
    np.testing.assert_allclose((given.variance - f.variance).numpy(), 0.5, rtol=1e-9)
    np.testing.assert_array_equal(y.mean.numpy(), f.mean.numpy())
    known_by_row = RELEASES["noise for each row"]().to_gpytorch()
    known_by_row.posterior(new)
    with pytest.raises(sf.InputError, match="noise of a new measurement is not known"):
        known_by_row.posterior(new, observation_noise=True)


def test_the_likelihood_of_the_data_counts_the_whole_noise():
    model = PLANE.to_gpytorch()
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        found = float(mll(model(*model.train_inputs), model.train_targets)) * 40
        listed = float(mll(model(*model.train_inputs), model.train_targets, list(model.train_inputs))) * 40
    total = PLANE.prior.covariance(X2) + PLANE.noise.covariance() + np.eye(40) * (0.05 + PLANE.resolution**2 / 12)
    expected = scipy.stats.multivariate_normal(np.full(40, 2.0), total).logpdf(PLANE.outputs)
    assert found == pytest.approx(expected, rel=1e-8)
    assert listed == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", ["one column", "two columns", "a product", "a sum"])
def test_gradients_are_those_of_the_predictions(name):
    release = RELEASES[name]()
    model, new, step = release.to_gpytorch(), asked(release, 3), 1e-5
    points = torch.from_numpy(new).requires_grad_(True)
    posterior = model.posterior(points)
    slope_mean, slope_variance = (
        torch.autograd.grad(values.sum(), points, retain_graph=True)[0].numpy()
        for values in (posterior.mean, posterior.variance)
    )
    for column in range(new.shape[1]):
        move = step * np.eye(new.shape[1])[column]
        above, below = release.predict(new + move), release.predict(new - move)
        np.testing.assert_allclose(slope_mean[:, column], (above.mean - below.mean) / (2 * step), atol=1e-6)
        np.testing.assert_allclose(slope_variance[:, column], (above.std**2 - below.std**2) / (2 * step), atol=1e-6)


def test_gradients_at_a_published_input_are_finite():
    points = torch.from_numpy(X2[:2].copy()).requires_grad_(True)
    variance = PLANE.to_gpytorch().posterior(points).variance.sum()
    assert torch.isfinite(torch.autograd.grad(variance, points)[0]).all()


ACQUISITIONS = {
    "log expected improvement": lambda model: LogExpectedImprovement(model, best_f=2.5),
    "upper confidence bound": lambda model: UpperConfidenceBound(model, beta=2.0),
    "expected improvement of two": lambda model: qLogExpectedImprovement(
        model, best_f=2.5, sampler=SobolQMCNormalSampler(torch.Size([32]), seed=0)
    ),
    "noisy expected improvement": lambda model: qLogNoisyExpectedImprovement(
        model,
        X_baseline=model.train_inputs[0],
        sampler=SobolQMCNormalSampler(torch.Size([32]), seed=0),
        prune_baseline=True,
    ),
}


# BoTorch draws all published rows together, whose covariance is singular to working precision for a smooth kernel. A
# search that stops for it begins again, once; what it finds is checked below.
@pytest.mark.filterwarnings("ignore:A not p.d., added jitter:linear_operator.utils.warnings.NumericalWarning")
@pytest.mark.filterwarnings("ignore:Optimization failed:RuntimeWarning")
@pytest.mark.parametrize("name", ["one column", "two columns"])
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_botorch_finds_where_to_measure_next(acquisition, name):
    model = RELEASES[name]().to_gpytorch()
    columns = model.train_inputs[0].shape[-1]
    bounds = torch.tensor([[0.0] * columns, [3.0] * columns]).double()
    several = 2 if "two" in acquisition else 1
    torch.manual_seed(0)
    function = ACQUISITIONS[acquisition](model)
    best, value = optimize_acqf(
        function, bounds, q=several, num_restarts=6, raw_samples=512, options={"maxiter": 100, "seed": 0}
    )
    assert best.shape == (several, columns)
    assert torch.all((best >= 0) & (best <= 3))
    tried = torch.rand(200, several, columns, generator=torch.Generator().manual_seed(1)).double() * 3.0
    with torch.no_grad():
        assert float(value) >= float(function(tried).max()) - 1e-3


def test_the_largest_mean_is_found_where_the_release_sees_it():
    best, value = optimize_acqf(
        PosteriorMean(LINE.to_gpytorch()), torch.tensor([[0.0], [3.0]]).double(), q=1, num_restarts=4, raw_samples=32
    )
    grid = np.linspace(0.0, 3.0, 3001)
    means = LINE.predict(grid).mean
    assert float(value) == pytest.approx(means.max(), abs=1e-5)
    assert float(best) == pytest.approx(grid[means.argmax()], abs=2e-2)


def test_more_measurements_are_added_below_the_published_rows():
    """BoTorch imagines measurements to see what they would tell; the published noise stays a full matrix."""
    model = PLANE.to_gpytorch()
    more, values, new = RNG.uniform(0, 3, (3, 2)), np.array([1.0, 2.0, 3.0]), asked(PLANE)
    model.posterior(torch.from_numpy(new))
    blur = np.zeros((43, 43))
    blur[:40, :40] = PLANE.noise.covariance() + np.eye(40) * (0.05 + PLANE.resolution**2 / 12)
    for variances in (None, np.array([0.3, 0.2, 0.1])):
        given = None if variances is None else torch.from_numpy(variances)[:, None]
        extended = model.condition_on_observations(
            torch.from_numpy(more), torch.from_numpy(values)[:, None], noise=given
        )
        blur[40:, 40:] = np.diag([0.05] * 3 if variances is None else variances)
        exact = PLANE.prior.condition(np.vstack([X2, more]), np.r_[PLANE.outputs, values], blur)
        with torch.no_grad():
            found = extended.posterior(torch.from_numpy(new))
        np.testing.assert_allclose(found.mean[:, 0].numpy(), exact.mean_at(new), rtol=1e-8)
        np.testing.assert_allclose(found.variance[:, 0].numpy(), exact.variance(new), rtol=1e-8)
        with torch.no_grad():  # once more from the data, without what was updated
            extended.prediction_strategy = None
            again = extended.posterior(torch.from_numpy(new))
        np.testing.assert_allclose(again.mean[:, 0].numpy(), exact.mean_at(new), rtol=1e-8)
    without = model.condition_on_observations(torch.from_numpy(more[:1]), torch.from_numpy(values[:1])[:, None])
    with pytest.raises(sf.InputError, match="noise is given for these rows"):
        without.condition_on_observations(
            torch.from_numpy(more[1:]), torch.from_numpy(values[1:])[:, None], noise=torch.ones(2, 1).double()
        )


def test_the_knowledge_gradient_can_be_asked():
    model = LINE.to_gpytorch()
    model.posterior(torch.zeros(1, 1).double())
    function = qKnowledgeGradient(model, num_fantasies=4)
    points = torch.rand(2, 5, 1, generator=torch.Generator().manual_seed(0)).double().mul(3.0).requires_grad_(True)
    value = function(points)
    assert value.shape == (2,)
    assert torch.isfinite(torch.autograd.grad(value.sum(), points)[0]).all()


@pytest.mark.parametrize("name", RELEASES)
def test_there_and_back_is_the_same_prior(name):
    release = RELEASES[name]()
    model, new = release.to_gpytorch(), asked(release)
    again = sf.Prior.from_gpytorch(model)
    np.testing.assert_allclose(again.covariance(new), release.prior.covariance(new), rtol=1e-8)
    np.testing.assert_allclose(again.mean_at(new), release.prior.mean_at(new), rtol=1e-8)
    np.testing.assert_array_equal(again.noise, release.prior.noise)


def test_the_model_shares_nothing_with_the_release():
    model = LINE.to_gpytorch()
    before = LINE.predict(T).mean
    model.covar_module.outputscale = 7.0
    model.train_targets.zero_()
    model.likelihood.noise_covar.covariance.zero_()
    np.testing.assert_array_equal(LINE.predict(T).mean, before)
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_a_model_can_be_made_from_a_file(tmp_path):
    PLANE.save(tmp_path / "plane.sfumato")
    new = torch.from_numpy(asked(PLANE))
    with torch.no_grad():
        found = sf.load(tmp_path / "plane.sfumato").to_gpytorch().posterior(new)
        expected = PLANE.to_gpytorch().posterior(new)
    np.testing.assert_array_equal(found.mean.numpy(), expected.mean.numpy())


def test_predictions_of_a_release_stay_possible_after_a_model_was_made():
    PLANE.to_gpytorch()
    assert len(pickle.dumps(PLANE)) > 0


def test_compressed_and_joint_releases_are_refused_with_words():
    compressed = release_of(rbf(0.4, 1.5), T, np.sin(T), sf.Box(1.0, 2.0), mean=0.0, method="compressed")
    with pytest.raises(sf.InputError, match=r"compressed.*31 rows.*release\.predict"):
        compressed.to_gpytorch()
    joint = sf.JointPrior.of(sf.Prior(rbf(0.4, 1.5), noise=0.05), {"r": sf.Value(), "v": sf.Derivative("t")})
    X = pd.DataFrame({"t": T})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        mechanism = sf.protect(joint, X, {"r": sf.Box(1.0, 2.0)}, alpha=0.3, progress=False)
        both = mechanism.release({"r": np.sin(T), "v": np.cos(T)}, unsafe_seed=1)
    with pytest.raises(sf.InputError, match=r"several outputs.*release\.predict\(X, output"):
        both.to_gpytorch()
