"""Conditioning against textbook formulas, and kernel values against exact distances."""

from __future__ import annotations

import warnings

import gpytorch
import numpy as np
import pytest
import torch

import oracles
from kernels import matern, rbf
from sfumato.errors import InputError
from sfumato.models.prior import Posterior, Prior

RNG = np.random.default_rng(3)
X = RNG.random((25, 2))
A, B = RNG.random((7, 2)), RNG.random((5, 2))
LENGTHSCALE, VARIANCE = np.array([0.4, 0.7]), 2.5
W = np.sin(5 * X[:, 0]) + X[:, 1]


def dense(a, b):
    return oracles.matern32(a, b, LENGTHSCALE, VARIANCE)


def prior(**options):
    return Prior(kernel=matern(LENGTHSCALE, VARIANCE), **options)


def textbook(noise, mean=lambda a: np.zeros(len(a))):
    """Mean at A, covariance of A and covariance of A with B, given W at X with this noise covariance."""
    inverse = np.linalg.inv(dense(X, X) + noise)
    gain = dense(A, X) @ inverse
    return mean(A) + gain @ (W - mean(X)), dense(A, A) - gain @ dense(X, A), dense(A, B) - gain @ dense(X, B)


def test_kernel_values_are_the_formulas():
    assert prior().covariance(A, B) == pytest.approx(dense(A, B), rel=1e-12)
    assert prior().covariance(A) == pytest.approx(dense(A, A), rel=1e-12)
    assert prior().variance(A) == pytest.approx(np.full(7, VARIANCE), rel=1e-12)


def test_a_covariance_is_exactly_symmetric():
    K = prior().covariance(X)
    assert np.array_equal(K, K.T)
    posterior = prior().condition(X, W, 0.1).covariance(A)
    assert np.array_equal(posterior, posterior.T)


FULL = np.cov(RNG.standard_normal((25, 60)))


@pytest.mark.parametrize(
    ("given", "matrix"),
    [(0.3, 0.3 * np.eye(25)), (np.linspace(0.1, 2, 25), np.diag(np.linspace(0.1, 2, 25))), (FULL, FULL)],
    ids=["number", "diagonal", "matrix"],
)
def test_conditioning_is_the_textbook_posterior(given, matrix):
    posterior = prior().condition(X, W, given)
    mean, covariance, cross = textbook(matrix)
    assert isinstance(posterior, Posterior)
    assert posterior.mean_at(A) == pytest.approx(mean, abs=1e-10)
    assert posterior.covariance(A) == pytest.approx(covariance, abs=1e-10)
    assert posterior.covariance(A, B) == pytest.approx(cross, abs=1e-10)
    assert posterior.variance(A) == pytest.approx(np.diag(covariance), abs=1e-10)


@pytest.mark.parametrize("noise", [0.3, np.linspace(0.1, 2, 25)], ids=["number", "one a row"])
def test_the_priors_own_noise_is_used_where_none_is_given(noise):
    mean, covariance, _ = textbook(np.diag(np.broadcast_to(noise, 25)))
    posterior = prior(noise=noise).condition(X, W)
    assert posterior.mean_at(A) == pytest.approx(mean, abs=1e-10)
    assert posterior.variance(A) == pytest.approx(np.diag(covariance), abs=1e-10)
    assert prior(noise=noise).noise_variance(25) == pytest.approx(np.broadcast_to(noise, 25))


def linear_mean():
    mean = gpytorch.means.LinearMean(2)
    mean.initialize(weights=torch.tensor([[2.0], [-1.0]]), bias=torch.tensor([0.5]))
    return mean


@pytest.mark.parametrize(
    ("mean", "function"),
    [
        ("zero", lambda a: np.zeros(len(a))),
        (1.5, lambda a: np.full(len(a), 1.5)),
        (np.float32(2), lambda a: np.full(len(a), 2.0)),
        (gpytorch.means.ConstantMean(), lambda a: np.zeros(len(a))),
        (linear_mean(), lambda a: 2 * a[:, 0] - a[:, 1] + 0.5),
    ],
    ids=["zero", "number", "numpy number", "constant mean", "linear mean"],
)
def test_every_kind_of_mean_goes_into_the_posterior(mean, function):
    process = prior(mean=mean)
    assert process.mean_at(A) == pytest.approx(function(A), abs=1e-12)
    expected, _, _ = textbook(0.2 * np.eye(25), function)
    assert process.condition(X, W, 0.2).mean_at(A) == pytest.approx(expected, abs=1e-10)


def test_conditioning_twice_is_conditioning_once_on_everything():
    noise = np.linspace(0.05, 0.5, 25)
    at_once = prior(mean=0.7).condition(X, W, noise)
    chained = prior(mean=0.7).condition(X[:10], W[:10], noise[:10]).condition(X[10:], W[10:], noise[10:])
    assert chained.mean_at(A) == pytest.approx(at_once.mean_at(A), abs=1e-9)
    assert chained.covariance(A, B) == pytest.approx(at_once.covariance(A, B), abs=1e-9)
    assert chained.variance(A) == pytest.approx(at_once.variance(A), abs=1e-9)


def test_without_noise_the_data_is_known_exactly():
    posterior = prior().condition(X, W, 0.0)
    assert posterior.mean_at(X) == pytest.approx(W, abs=1e-8)
    assert posterior.variance(X) == pytest.approx(np.zeros(25), abs=1e-8)


def test_a_singular_covariance_warns_and_stays_finite():
    twice = np.vstack([X[:6], X[:6]])
    with pytest.warns(RuntimeWarning, match="singular to working precision; 6 directions"):
        posterior = prior().condition(twice, np.r_[W[:6], W[:6]], 0.0)
    once = prior().condition(X[:6], W[:6], 0.0)
    assert posterior.mean_at(A) == pytest.approx(once.mean_at(A), abs=1e-7)
    assert posterior.variance(A) == pytest.approx(once.variance(A), abs=1e-7)


def test_nearly_singular_data_give_variances_that_are_never_negative():
    t = np.linspace(0, 1, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        posterior = Prior(kernel=rbf(0.5)).condition(t, np.sin(t), 0.0)
        variance, mean = posterior.variance(np.linspace(0, 1, 301)), posterior.mean_at(np.linspace(0, 1, 301))
    assert np.all(variance >= 0)
    assert mean == pytest.approx(np.sin(np.linspace(0, 1, 301)), abs=1e-3)


def test_distances_far_from_the_origin_are_exact():
    grid = np.linspace(0.0, 3.0, 61)
    K = Prior(kernel=rbf(0.0025)).covariance(grid)
    assert np.array_equal(np.diag(K), np.ones(61))
    assert np.abs(K - np.eye(61)).max() < 1e-80
    # neighbours: exp(−200), which expanded squares would miss by far more than this
    assert np.diag(K, 1) == pytest.approx(oracles.rbf(grid[:, None], grid[:, None], 0.0025)[0, 1], rel=1e-11)


def test_close_inputs_with_large_coordinates_keep_their_distance():
    t = np.array([0.0, 12345.678, 12345.789, 12346.1])  # the first is far off, so that centring does not help
    assert Prior(kernel=rbf(0.3)).covariance(t) == pytest.approx(oracles.rbf(t[:, None], t[:, None], 0.3), rel=1e-10)


def test_the_callers_kernel_is_not_changed_and_not_followed():
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    kernel.base_kernel.lengthscale = 0.3
    process = Prior(kernel=kernel)
    before = process.covariance([0.0, 0.2])
    assert next(kernel.parameters()).dtype == torch.float32
    assert all(parameter.requires_grad for parameter in kernel.parameters())
    assert kernel.training
    assert "covar_dist" not in vars(kernel)
    assert "covar_dist" not in vars(kernel.base_kernel)
    kernel.base_kernel.lengthscale = 3.0
    assert np.array_equal(process.covariance([0.0, 0.2]), before)


def test_the_callers_mean_is_not_followed():
    mean = gpytorch.means.ConstantMean()
    process = prior(mean=mean)
    mean.initialize(constant=5.0)
    assert process.mean_at(A).tolist() == [0.0] * 7


def test_float32_kernels_are_worked_on_in_float64():
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = 0.3
    process = Prior(kernel=kernel)
    t = np.linspace(0, 1, 9)
    expected = oracles.rbf(t[:, None], t[:, None], float(process.kernel.lengthscale))
    assert process.covariance(t).dtype == np.float64
    assert process.covariance(t) == pytest.approx(expected, rel=1e-13)
    assert float(process.kernel.lengthscale) == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, [0.1, -1.0], [], [[0.1]], "learn", None])
def test_noise_is_a_variance(noise):
    with pytest.raises(InputError, match=r"noise is .*give a variance ≥ 0"):
        prior(noise=noise)


@pytest.mark.parametrize("mean", ["constant", np.nan, np.inf, True, None, [1.0]])
def test_a_mean_is_zero_a_number_or_a_module(mean):
    with pytest.raises(InputError, match=r'mean is .*give "zero", a finite number'):
        prior(mean=mean)


def test_a_kernel_is_one_gpytorch_kernel():
    with pytest.raises(InputError, match="kernel is 'rbf', not a GPyTorch kernel; give"):
        Prior(kernel="rbf")
    with pytest.raises(InputError, match="batch"):
        Prior(kernel=gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2])))


@pytest.mark.parametrize("noise", [[0.1, 0.2], np.eye(3), np.nan, -1.0])
def test_a_noise_covariance_fits_the_rows_and_is_not_negative(noise):
    with pytest.raises(InputError, match="noise_covariance has"):
        prior().condition(X, W, noise)


def test_a_kernel_for_two_features_refuses_one():
    with pytest.raises((InputError, RuntimeError)):
        Prior(kernel=rbf([0.3, 0.4])).covariance([0.0, 0.3])
