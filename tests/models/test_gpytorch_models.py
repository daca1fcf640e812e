"""A model that was trained elsewhere gives the prior that predicts what it predicts, in the user's units."""

from __future__ import annotations

import copy
import warnings

import gpytorch
import numpy as np
import pytest
import torch
from botorch.exceptions import InputDataWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import ModelListGP, MultiTaskGP, SingleTaskGP, SingleTaskVariationalGP
from botorch.models.transforms.input import (
    AffineInputTransform,
    ChainedInputTransform,
    InputStandardize,
    Log10,
    Normalize,
    Warp,
)
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Log, Standardize
from gpytorch.kernels import (
    CosineKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
    SpectralMixtureKernel,
)
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood

import sfumato as sf
from sfumato.models.botorch_units import units_of

RNG = np.random.default_rng(7)
# an age and an income: columns far from 0 and of different sizes
X = np.column_stack([RNG.uniform(20, 90, 30), RNG.uniform(1e4, 9e4, 30)])
Y = 40.0 + 12.0 * np.sin(X[:, 0] / 15.0) + 1e-4 * X[:, 1] + RNG.normal(0, 0.5, 30)
NEW = np.column_stack([RNG.uniform(15, 95, 11), RNG.uniform(1e4, 9e4, 11)])
TX, TY, TNEW = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(NEW)
BOUNDS = torch.tensor([[0.0, 1e4], [100.0, 1e5]], dtype=torch.float64)
TOWARDS_ZERO = torch.tensor([[0.0, 0.0], [100.0, 1e5]], dtype=torch.float64)


class PlainGP(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, mean, kernel):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = mean, kernel
        self.double()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def with_values(module, **values):
    module = module.double()
    for name, value in values.items():
        shape = getattr(module, name).shape
        setattr(module, name, torch.as_tensor(value, dtype=torch.float64).expand(shape))
    return module


def single_task(input_transform=None, **options) -> SingleTaskGP:
    with warnings.catch_warnings():
        # models without transforms are a part of what is tested
        warnings.simplefilter("ignore", InputDataWarning)
        model = SingleTaskGP(TX, TY[:, None], input_transform=input_transform, **options)
    if "covar_module" not in options:
        model.covar_module.lengthscale = torch.tensor([[0.3, 0.8]]) * (1.0 if input_transform is not None else 5e3)
    if isinstance(model.likelihood, GaussianLikelihood):
        model.likelihood.noise = 0.02
    return model


def predicted(model):
    """The mean and the covariance of f that the model gives in the user's units, by exact solves."""
    settings = gpytorch.settings
    exact = settings.fast_computations(False, False, False), settings.fast_pred_var(False), settings.debug(False)
    with torch.no_grad(), exact[0], exact[1], exact[2]:
        if hasattr(model, "posterior"):
            posterior = model.posterior(TNEW)
            return posterior.mean[:, 0].numpy(), posterior.distribution.covariance_matrix.numpy()
        model.eval()
        function = model(TNEW)
        return function.mean.numpy(), function.covariance_matrix.numpy()


def assert_the_same_conclusions(model, tolerance=1e-8):
    prior = sf.Prior.from_gpytorch(model)
    ours = prior.condition(X, Y)
    mean, covariance = predicted(model)
    np.testing.assert_allclose(ours.mean_at(NEW), mean, rtol=tolerance)
    np.testing.assert_allclose(ours.covariance(NEW), covariance, rtol=0, atol=tolerance * covariance.max())
    np.testing.assert_allclose(ours.variance(NEW), np.diag(covariance), rtol=tolerance)
    return prior


INPUT_TRANSFORMS = {
    "none": lambda: None,
    "normalize": lambda: Normalize(d=2),
    "normalize around 0": lambda: Normalize(d=2, center=0.0),
    "given bounds": lambda: Normalize(d=2, bounds=BOUNDS),
    "one column": lambda: Normalize(d=2, indices=[1], bounds=BOUNDS),
    "standardize": lambda: InputStandardize(d=2),
    "affine": lambda: AffineInputTransform(
        d=2, coefficient=torch.tensor([[-30.0, 2e4]]).double(), offset=torch.tensor([[5.0, -7.0]]).double()
    ),
    "reversed": lambda: AffineInputTransform(
        d=2, coefficient=torch.tensor([[0.02, 1e-5]]).double(), offset=torch.tensor([[0.5, 0.1]]).double(), reverse=True
    ),
    "chained": lambda: ChainedInputTransform(first=Normalize(d=2, bounds=BOUNDS), second=InputStandardize(d=2)),
}
OUTCOME_TRANSFORMS = {
    "as it is": lambda: None,
    "standardized": lambda: Standardize(m=1),
    "chained": lambda: ChainedOutcomeTransform(first=Standardize(m=1), second=Standardize(m=1)),
}


@pytest.mark.parametrize("outcome", OUTCOME_TRANSFORMS)
@pytest.mark.parametrize("transform", INPUT_TRANSFORMS)
def test_a_botorch_model_is_read_in_the_users_units(transform, outcome):
    model = single_task(INPUT_TRANSFORMS[transform](), outcome_transform=OUTCOME_TRANSFORMS[outcome]())
    if transform == "one column":
        model.covar_module.lengthscale = torch.tensor([[20.0, 0.8]])
    assert_the_same_conclusions(model)


def test_the_state_of_the_model_makes_no_difference_and_is_left_alone():
    model = single_task(Normalize(d=2))
    model.train()
    before = copy.deepcopy(model.state_dict())
    training = sf.Prior.from_gpytorch(model)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    model.eval()
    model.posterior(TNEW.clone().requires_grad_(True))
    predicting = sf.Prior.from_gpytorch(model)
    assert not model.training
    np.testing.assert_array_equal(training.covariance(NEW), predicting.covariance(NEW))
    np.testing.assert_array_equal(training.mean_at(NEW), predicting.mean_at(NEW))
    assert training.noise == predicting.noise


def test_a_fitted_model_keeps_its_conclusions_and_its_parameters_are_readable():
    model = single_task(Normalize(d=2))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    prior = assert_the_same_conclusions(model)
    ranges = np.ptp(X, axis=0)
    lengthscales = model.covar_module.lengthscale.detach().numpy()[0] * ranges
    np.testing.assert_allclose(prior.kernel.base_kernel.lengthscale.numpy()[0], lengthscales, rtol=1e-14)
    assert float(prior.kernel.outputscale) == pytest.approx(np.var(Y, ddof=1), rel=1e-12)
    assert prior.noise == pytest.approx(float(model.likelihood.noise.detach()) * np.var(Y, ddof=1), rel=1e-12)
    assert "variance" in str(prior)


def kernels():
    rbf = with_values(RBFKernel(), lengthscale=0.4)
    return {
        "rbf": rbf,
        "scaled matern": with_values(ScaleKernel(MaternKernel(nu=1.5, ard_num_dims=2)), outputscale=2.0),
        "rational quadratic": with_values(RQKernel(), lengthscale=0.5, alpha=1.3),
        "spectral mixture": with_values(
            SpectralMixtureKernel(num_mixtures=2, ard_num_dims=2),
            mixture_weights=[0.8, 0.3],
            mixture_means=[[[0.2, 0.9]], [[0.7, 0.1]]],
            mixture_scales=[[[0.3, 0.2]], [[0.1, 0.4]]],
        ),
        "periodic": with_values(PeriodicKernel(), lengthscale=0.8, period_length=0.7),
        "periodic ard": with_values(
            PeriodicKernel(ard_num_dims=2), lengthscale=[[0.8, 1.3]], period_length=[[0.7, 1.6]]
        ),
        "cosine of a column": with_values(CosineKernel(active_dims=[1]), period_length=3.0) * rbf,
        "sum over columns": ScaleKernel(MaternKernel(nu=2.5, active_dims=[0])) + RBFKernel(active_dims=[1]),
        "sum in a product": ScaleKernel((RBFKernel(active_dims=[1]) + gpytorch.kernels.ConstantKernel()) * rbf),
        "columns of columns": ScaleKernel(RBFKernel(active_dims=[1, 0], ard_num_dims=2)),
    }


@pytest.mark.parametrize("transform", ["none", "given bounds", "chained"])
@pytest.mark.parametrize("name", kernels())
def test_kernels_are_carried_over_exactly(name, transform):
    kernel = kernels()[name].double()
    if transform == "none":
        for part in kernel.modules():
            if isinstance(part, gpytorch.kernels.Kernel) and part.has_lengthscale:
                part.lengthscale = part.lengthscale.detach() * 50.0
    model = single_task(INPUT_TRANSFORMS[transform](), covar_module=kernel)
    assert_the_same_conclusions(model)


@pytest.mark.parametrize(
    ("kernel", "transform", "fits"),
    [
        (LinearKernel(), Normalize(d=2, bounds=BOUNDS), False),
        (LinearKernel(), Normalize(d=2, bounds=TOWARDS_ZERO), True),
        (LinearKernel(ard_num_dims=2), Normalize(d=2, bounds=TOWARDS_ZERO), True),
        (ScaleKernel(LinearKernel(active_dims=[0])), Normalize(d=2, bounds=BOUNDS), True),
        (PolynomialKernel(power=2), Normalize(d=2, bounds=BOUNDS), False),
        (CosineKernel(), Normalize(d=2, bounds=BOUNDS), False),
        (PiecewisePolynomialKernel(ard_num_dims=2), Normalize(d=2, bounds=BOUNDS), False),
    ],
    ids=["linear", "linear from 0", "linear ard", "linear in one column", "polynomial", "cosine", "another class"],
)
def test_what_other_units_would_change_is_refused(kernel, transform, fits):
    model = single_task(copy.deepcopy(transform), covar_module=kernel.double() + RBFKernel().double())
    if fits:
        assert_the_same_conclusions(model)
    else:
        with pytest.raises(sf.InputError, match=r"covar_module .* without input_transform"):
            sf.Prior.from_gpytorch(model)


def test_a_kernel_of_another_class_is_taken_where_inputs_stay_as_they_are():
    torch.manual_seed(0)
    kernel = PiecewisePolynomialKernel(ard_num_dims=2).double()
    kernel.lengthscale = 100.0
    model = single_task(covar_module=kernel)
    assert_the_same_conclusions(model)
    before = kernel.raw_lengthscale.dtype
    plain = PlainGP(TX, TY, GaussianLikelihood(), gpytorch.means.ConstantMean(), kernel)
    prior = sf.Prior.from_gpytorch(plain)
    assert prior.kernel is not kernel
    assert kernel.raw_lengthscale.dtype == before
    assert kernel.raw_lengthscale.requires_grad


class Wavy(gpytorch.means.Mean):
    def forward(self, x):
        return torch.sin(x[..., 0])


@pytest.mark.parametrize("transform", ["none", "given bounds", "affine"])
@pytest.mark.parametrize(
    "mean",
    [gpytorch.means.ZeroMean(), gpytorch.means.ConstantMean(), gpytorch.means.LinearMean(2), Wavy()],
    ids=["zero", "constant", "linear", "its own"],
)
def test_means_are_carried_over_exactly(mean, transform):
    mean = copy.deepcopy(mean).double()
    if isinstance(mean, gpytorch.means.ConstantMean):
        mean.constant = 0.7
    if isinstance(mean, gpytorch.means.LinearMean):
        mean.weights.data = torch.tensor([[0.5], [-0.3]]).double() * (1.0 if transform != "none" else 1e-3)
        mean.bias.data = torch.tensor([0.2]).double()
    model = single_task(INPUT_TRANSFORMS[transform](), mean_module=mean)
    prior = assert_the_same_conclusions(model)
    far = sf.Prior.from_gpytorch(model).mean_at(NEW)
    with gpytorch.settings.prior_mode(), torch.no_grad():
        expected = model.posterior(TNEW).mean[:, 0].numpy()
    np.testing.assert_allclose(far, expected, rtol=1e-10)
    assert prior.fit_report is None


def test_a_plain_gpytorch_model_is_read_as_it_is():
    kernel = with_values(ScaleKernel(RBFKernel(ard_num_dims=2)), outputscale=80.0)
    kernel.base_kernel.lengthscale = torch.tensor([[12.0, 2e4]]).double()
    mean = gpytorch.means.ConstantMean().double()
    mean.constant = 40.0
    likelihood = GaussianLikelihood().double()
    likelihood.noise = 0.3
    model = PlainGP(TX, TY, likelihood, mean, kernel)
    prior = assert_the_same_conclusions(model)
    assert prior.noise == float(likelihood.noise.detach())
    model.train()
    np.testing.assert_array_equal(sf.Prior.from_gpytorch(model).covariance(NEW), prior.covariance(NEW))
    model.set_train_data(TX[:5], TY[:5], strict=False)
    assert sf.Prior.from_gpytorch(model).noise == prior.noise
    unfed = PlainGP(None, None, likelihood, mean, kernel)
    np.testing.assert_array_equal(sf.Prior.from_gpytorch(unfed).covariance(NEW), prior.covariance(NEW))


def test_known_noise_is_one_variance_a_row_and_one_number_where_all_agree():
    variances = torch.linspace(0.1, 2.0, 30).double()
    model = single_task(Normalize(d=2), train_Yvar=variances[:, None])
    prior = assert_the_same_conclusions(model)
    np.testing.assert_allclose(prior.noise, variances.numpy(), rtol=1e-12)
    level = sf.Prior.from_gpytorch(single_task(Normalize(d=2), train_Yvar=torch.full((30, 1), 0.25).double()))
    assert level.noise == pytest.approx(0.25, rel=1e-12)
    more = FixedNoiseGaussianLikelihood(noise=variances, learn_additional_noise=True).double()
    more.second_noise = 0.5
    kernel = with_values(ScaleKernel(RBFKernel()), outputscale=80.0)
    kernel.base_kernel.lengthscale = 30.0
    both = sf.Prior.from_gpytorch(PlainGP(TX, TY, more, gpytorch.means.ZeroMean(), kernel))
    np.testing.assert_allclose(both.noise, variances.numpy() + 0.5, rtol=1e-12)


def test_single_precision_is_read_at_its_precision():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        model = SingleTaskGP(TX.float(), TY.float()[:, None], input_transform=Normalize(d=2))
    model.covar_module.lengthscale = torch.tensor([[0.3, 0.8]])
    model.likelihood.noise = 0.05
    prior = sf.Prior.from_gpytorch(model)
    assert prior.covariance(X).dtype == np.float64
    with torch.no_grad():
        mean = model.posterior(TNEW.float()).mean[:, 0].double().numpy()
    np.testing.assert_allclose(prior.condition(X, Y).mean_at(NEW), mean, rtol=1e-3)


def test_a_prior_from_a_model_protects_and_is_saved(tmp_path):
    model = single_task(Normalize(d=2))
    prior = sf.Prior.from_gpytorch(model)
    mechanism = sf.protect(prior, X, sf.Points(X[:2]), alpha=0.5, progress=False)
    release = mechanism.release(Y)
    release.save(tmp_path / "model.sfumato")
    again = sf.load(tmp_path / "model.sfumato")
    np.testing.assert_array_equal(again.predict(NEW).mean, release.predict(NEW).mean)


class Warped(PlainGP):
    def forward(self, x):
        return super().forward(torch.log(x))


class Shifted(PlainGP):
    def forward(self, x):
        function = super().forward(x)
        return gpytorch.distributions.MultivariateNormal(function.mean + 1.0, function.lazy_covariance_matrix)


@pytest.mark.parametrize("kind", [Warped, Shifted])
def test_a_model_that_does_more_than_its_parts_say_is_refused(kind):
    kernel = with_values(RBFKernel(), lengthscale=30.0)
    model = kind(TX, TY, GaussianLikelihood(), gpytorch.means.ConstantMean(), kernel)
    with pytest.raises(sf.InputError, match=r"model\.forward does not compute"):
        sf.Prior.from_gpytorch(model)


def plain(likelihood=None, mean=None, kernel=None, rows=TX):
    return PlainGP(
        rows, TY, likelihood or GaussianLikelihood(), mean or gpytorch.means.ZeroMean(), kernel or RBFKernel()
    )


def without(name):
    model = plain()
    delattr(model, name)
    return model


def multitask():
    kernel = gpytorch.kernels.MultitaskKernel(RBFKernel(), num_tasks=2)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    return PlainGP(TX, torch.stack([TY, TY], -1), likelihood, gpytorch.means.ConstantMean(), kernel)


def botorch_multitask():
    tasks = torch.arange(30).remainder(2)[:, None].double()
    return MultiTaskGP(torch.cat([TX / TX.amax(0), tasks], dim=1), (TY[:, None] - 40) / 10, task_feature=-1)


def two_outputs():
    return SingleTaskGP(TX, torch.stack([TY, -TY], -1), input_transform=Normalize(d=2))


def batch():
    return PlainGP(
        TX.expand(3, 30, 2), TY.expand(3, 30), GaussianLikelihood(), gpytorch.means.ZeroMean(),
        RBFKernel(batch_shape=torch.Size([3])),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: 5, "model is of class int"),
        (RBFKernel, r"model is a kernel; use sf\.Prior"),
        (lambda: SingleTaskVariationalGP(TX / 1e5), "model is of class SingleTaskVariationalGP"),
        (lambda: ModelListGP(single_task(Normalize(d=2))), "model is of class ModelListGP"),
        (multitask, r"several outputs.*sf\.JointPrior\.from_multitask"),
        (botorch_multitask, r"several outputs.*sf\.JointPrior\.from_multitask"),
        (two_outputs, r"several outputs.*sf\.JointPrior\.from_multitask"),
        (batch, r"batch shape \(3,\).*sf\.JointPrior\.from_multitask"),
        (lambda: without("covar_module"), r"model\.covar_module is missing"),
        (lambda: without("mean_module"), r"model\.mean_module is missing"),
        (
            lambda: plain(gpytorch.likelihoods.GaussianLikelihoodWithMissingObs()),
            r"model\.likelihood is of class GaussianLikelihoodWithMissingObs",
        ),
        (lambda: single_task(Log10(indices=[1])), r"input_transform is of class Log10.*not a change of units"),
        (lambda: single_task(Warp(d=2, indices=[0], bounds=BOUNDS)), r"input_transform is of class Warp"),
        (lambda: single_task(Normalize(d=2, transform_on_train=False)), "switched off"),
        (lambda: single_task(Normalize(d=2), outcome_transform=Log()), r"outcome_transform is of class Log"),
    ],
    ids=["number", "kernel", "variational", "list", "multitask", "botorch multitask", "two outputs", "batch",
         "no kernel", "no mean", "likelihood", "log inputs", "warped inputs", "half a transform", "log outputs"],
)  # fmt: skip
def test_what_is_no_single_prior_is_refused_with_words(make, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputDataWarning)
        model = make()
    with pytest.raises(sf.InputError, match=words):
        sf.Prior.from_gpytorch(model)


def test_a_transform_that_cannot_be_undone_is_refused():
    flat = Normalize(d=2, bounds=torch.tensor([[0.0, 1.0], [1.0, 1.0]]).double())
    with pytest.raises(sf.InputError, match="cannot be undone"):
        units_of(flat, None, 2)
