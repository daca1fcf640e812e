"""Kernel values are right to the last digits, far from the origin and in every composition."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from gpytorch.kernels import (
    ConstantKernel,
    CosineKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PolynomialKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
    SpectralMixtureKernel,
)

import sfumato as sf
from kernels import matern, rbf
from sfumato.models.trends import TrendKernel


def with_lengthscale(kernel, value):
    kernel = kernel.double()
    kernel.lengthscale = value
    return kernel


def linear_and_rbf():
    return LinearKernel().double() + with_lengthscale(RBFKernel(), 1.0)


def mixture():
    kernel = SpectralMixtureKernel(num_mixtures=3, ard_num_dims=2).double()
    rng = np.random.default_rng(4)
    for name, size in (("weights", 3), ("means", (3, 1, 2)), ("scales", (3, 1, 2))):
        setattr(kernel, f"mixture_{name}", torch.from_numpy(rng.uniform(0.2, 1.5, size)))
    return kernel


LEAVES = {
    "rbf": lambda: with_lengthscale(RBFKernel(ard_num_dims=2), [0.3, 0.4]),
    "matern12": lambda: with_lengthscale(MaternKernel(nu=0.5), 0.3),
    "matern32": lambda: with_lengthscale(MaternKernel(nu=1.5), 0.3),
    "matern52": lambda: with_lengthscale(MaternKernel(nu=2.5, ard_num_dims=2), [0.3, 2.0]),
    "rational quadratic": lambda: with_lengthscale(RQKernel(), 0.4),
    "periodic": lambda: PeriodicKernel().double(),
    "cosine": lambda: CosineKernel().double(),
    "spectral mixture": lambda: mixture(),
    "polynomial": lambda: PolynomialKernel(2).double(),
    "linear": lambda: LinearKernel().double(),
    "trend": lambda: TrendKernel(3).double(),
    "constant": lambda: ConstantKernel().double(),
    "scale of one column": lambda: ScaleKernel(with_lengthscale(RBFKernel(active_dims=[1]), 0.3)).double(),
    "product of a sum": lambda: (
        ScaleKernel(RBFKernel() + LinearKernel()).double() * MaternKernel(nu=0.5, active_dims=[0]).double()
    ),
}


@pytest.mark.parametrize("kind", sorted(LEAVES))
def test_values_are_those_of_gpytorch(kind):
    kernel = LEAVES[kind]()
    rng = np.random.default_rng(0)
    A, B = rng.random((7, 2)), rng.random((5, 2))
    with torch.no_grad():
        expected = kernel(torch.from_numpy(A), torch.from_numpy(B)).to_dense().numpy()
    prior = sf.Prior(kernel=kernel)
    np.testing.assert_allclose(prior.covariance(A, B), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(prior.variance(A), np.diag(prior.covariance(A)), rtol=1e-14)


def test_a_spectral_mixture_is_made_for_one_number_of_columns():
    X = np.random.default_rng(0).random((3, 3))
    for columns in (1, 2):
        kernel = SpectralMixtureKernel(num_mixtures=2, ard_num_dims=columns).double()
        with pytest.raises(sf.InputError, match=rf"spectral mixture part of {columns} column.*inputs have 3 feature"):
            sf.Prior(kernel=ScaleKernel(kernel)).covariance(X)


@pytest.mark.parametrize("rows", [5, 20, 400])
def test_products_of_sums_have_no_jitter_on_the_diagonal(rows):
    x = np.linspace(0.5, 2.0, rows)
    kernel = (linear_and_rbf() * linear_and_rbf()).double()
    variance = float(kernel.kernels[0].kernels[0].variance.detach())
    expected = (variance * np.outer(x, x) + np.exp(-0.5 * (x[:, None] - x) ** 2)) ** 2
    np.testing.assert_allclose(sf.Prior(kernel=kernel).covariance(x), expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("kind", ["rbf", "matern"])
def test_values_are_exact_far_from_the_origin(kind):
    x = 1.7e9 + np.sort(np.random.default_rng(0).uniform(0, 5, 12)) * 0.037
    prior = sf.Prior(kernel=(rbf if kind == "rbf" else matern)(0.037))
    scale = float(prior.kernel.base_kernel.lengthscale)
    with mpmath.workdps(40):

        def exact(a, b):
            r = abs(mpmath.mpf(a) - mpmath.mpf(b)) / mpmath.mpf(scale)
            if kind == "rbf":
                return mpmath.exp(-(r**2) / 2)
            return (1 + mpmath.sqrt(3) * r) * mpmath.exp(-mpmath.sqrt(3) * r)

        expected = np.array([[float(exact(a, b)) for b in x] for a in x])
    np.testing.assert_allclose(prior.covariance(x), expected, rtol=1e-13)


def test_values_are_exact_on_a_domain_of_many_lengthscales():
    x = np.sort(np.random.default_rng(1).uniform(0, 1, 12))
    x = np.concatenate([x, x + 4e5 / 3])
    prior = sf.Prior(kernel=rbf(0.3))
    scale = float(prior.kernel.base_kernel.lengthscale)
    expected = [[float(mpmath.exp(-(((mpmath.mpf(a) - b) / scale) ** 2) / 2)) for b in x] for a in x]
    np.testing.assert_allclose(prior.covariance(x), expected, rtol=1e-13, atol=1e-300)


def test_a_rational_quadratic_with_a_large_power_is_nearly_gaussian():
    kernel = with_lengthscale(RQKernel(), 0.4)
    kernel.alpha = 1e10
    x = np.linspace(0, 2, 15)
    scale = float(kernel.lengthscale.detach())
    expected = np.exp(-0.5 * ((x[:, None] - x) / scale) ** 2)
    np.testing.assert_allclose(sf.Prior(kernel=kernel).covariance(x), expected, rtol=1e-8)


def test_many_linear_parts_and_many_rows_are_no_trouble():
    kernel = (LinearKernel(active_dims=[0]) + LinearKernel(active_dims=[1]) + ConstantKernel()).double()
    X = np.random.default_rng(2).random((900, 2))
    covariance = sf.Prior(kernel=kernel).covariance(X)
    assert np.linalg.eigvalsh(covariance)[-4] < 1e-10
