"""The uniform solution: closed forms, numerical inversion, the limit of finite covers, and what is refused."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import binom

import spectral_oracles as oracle
from sfumato.errors import InputError
from sfumato.linalg.hankel import RadialDensity, half_integer_matern, invert_radial, log_bessel_k
from sfumato.models.prior import Prior
from sfumato.models.spectra import RadialKernel, spectral_ratio
from sfumato.models.trees import build_kernel
from sfumato.programs.uniform import UniformGram, uniform_gram

# ---------------------------------------------------------------- kernels as trees


def leaf(kind, lengthscale, columns=None, **shape):
    return {"kind": kind, "lengthscale": lengthscale, **shape, **({} if columns is None else {"active_dims": columns})}


def rbf(lengthscale, columns=None):
    return leaf("rbf", lengthscale, columns)


def matern(nu, lengthscale, columns=None):
    return leaf("matern", lengthscale, columns, nu=nu)


def rq(alpha, lengthscale, columns=None):
    return leaf("rational_quadratic", lengthscale, columns, alpha=alpha)


def periodic(lengthscale, period):
    return leaf("periodic", lengthscale, period_length=period)


def constant(value):
    return {"kind": "constant", "constant": value}


def scaled(variance, kernel):
    return {"kind": "scale", "variance": variance, "kernel": kernel}


def plus(*kernels):
    return {"kind": "sum", "kernels": list(kernels)}


def times(*kernels):
    return {"kind": "product", "kernels": list(kernels)}


def gram(K, H, X) -> UniformGram:
    return uniform_gram(build_kernel(K), build_kernel(H), X)


def line(*distances, d=1):
    """Inputs at these distances from the first, along the first axis."""
    X = np.zeros((len(distances), d))
    X[:, 0] = distances
    return X


def spread(rows, d, width=2.0):
    """A fixed set of scattered inputs."""
    steps = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0][:d])
    return width * np.mod(np.outer(np.arange(1, rows + 1), steps), 1.0)


# ---------------------------------------------------------------- H proportional to K

PROPORTIONAL = [
    (periodic(0.7, 1.3), "periodic"),
    ({"kind": "linear", "variance": 0.4}, "linear"),
    ({"kind": "polynomial", "offset": 0.5, "power": 3}, "polynomial"),
    (times(rbf(0.5), periodic(0.7, 1.3)), "quasi-periodic"),
    (plus(matern(0.5, 0.3), {"kind": "linear", "variance": 0.4}), "sum"),
    (rbf([0.3]), "rbf"),
]


@pytest.mark.parametrize("K", [K for K, _ in PROPORTIONAL], ids=[name for _, name in PROPORTIONAL])
def test_a_proportional_tolerance_works_for_any_kernel(K):
    X = spread(7, 1)
    result = gram(scaled(2.0, K), scaled(0.5, K), X)
    np.testing.assert_allclose(result.matrix, Prior(kernel=build_kernel(K)).covariance(X) * 8.0, rtol=1e-14)
    assert result.error == 0.0


def test_proportional_kernels_are_recognised_however_they_are_written():
    K = plus(scaled(2.0, rbf([0.5, 0.5])), times(constant(3.0), matern(1.5, [0.4, 0.7])))
    H = scaled(0.1, plus(scaled(3.0, matern(1.5, [0.4, 0.7])), rbf(0.5), times(rbf(0.5, [1]), rbf(0.5, [0]))))
    X = spread(5, 2)
    np.testing.assert_allclose(gram(K, H, X).matrix, Prior(kernel=build_kernel(K)).covariance(X) / 0.1, rtol=1e-12)


def test_a_proportional_tolerance_works_for_a_class_that_is_not_known_here():
    kernel = gpytorch.kernels.PiecewisePolynomialKernel().double()
    tolerance = gpytorch.kernels.ScaleKernel(copy.deepcopy(kernel)).double()
    tolerance.outputscale = torch.tensor(0.2, dtype=torch.float64)
    X = spread(6, 1)
    result = uniform_gram(kernel, tolerance, X)
    np.testing.assert_allclose(result.matrix, Prior(kernel=kernel).covariance(X) / 0.2, rtol=1e-12)
    other = copy.deepcopy(tolerance)
    other.base_kernel.lengthscale = 0.1
    with pytest.raises(InputError, match=r"Kernel, has parts whose spectral density is not known here"):
        uniform_gram(kernel, other, X)


def test_spectral_mixtures_are_recognised_up_to_a_factor_and_the_order_of_their_parts():
    weights, means, scales = [0.5, 1.5], [[0.3, 1.0], [0.7, 0.2]], [[0.1, 0.2], [0.3, 0.4]]

    def waves(weights, means, scales, columns):
        return {
            "kind": "spectral_mixture",
            "mixture_weights": weights,
            "mixture_means": means,
            "mixture_scales": scales,
            "active_dims": columns,
        }

    def turned(rows):
        return [row[::-1] for row in rows[::-1]]

    K = waves(weights, means, scales, [0, 1])
    H = waves([3.0 * w for w in weights[::-1]], turned(means), turned(scales), [1, 0])
    X = spread(5, 2)
    np.testing.assert_allclose(gram(K, H, X).matrix, Prior(kernel=build_kernel(K)).covariance(X) / 9.0, rtol=1e-12)
    with pytest.raises(InputError, match=r"spectral mixture part on the columns .* no inversion is known"):
        gram(K, waves(weights[::-1], means, scales, [0, 1]), X)


class Powered(gpytorch.kernels.RBFKernel):
    """A kernel with something that is neither a parameter nor a buffer."""

    def __init__(self, power):
        super().__init__()
        self._power = power

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1, x2, diag=diag, **params) ** self._power


def test_kernels_of_an_unknown_class_with_other_contents_are_not_taken_for_the_same():
    same = Prior(kernel=Powered(2)).covariance([0.0, 1.0])
    np.testing.assert_array_equal(uniform_gram(Powered(2), Powered(2), [0.0, 1.0]).matrix, same)
    with pytest.raises(InputError, match="Powered"):
        uniform_gram(Powered(2), Powered(3), [0.0, 1.0])


# ---------------------------------------------------------------- closed forms against quadrature

R = (0.0, 0.35, 0.9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_closed_form_is_the_spectral_integral(d):
    k, h = oracle.rbf(0.5, d, 1.7), oracle.rbf(0.6, d, 0.4)
    exact = [oracle.radial_transform(lambda w: k(w) ** 2 / h(w), d, r, 3.0) for r in R]
    result = gram(scaled(1.7, rbf(0.5)), scaled(0.4, rbf(0.6)), line(*R, d=d))
    np.testing.assert_allclose(result.matrix[0], exact, rtol=1e-11)
    assert result.error == 0.0


def test_gaussian_closed_form_has_its_own_lengthscale_in_each_dimension():
    ours, theirs = (0.5, 0.8, 0.3), (0.4, 1.0, 0.35)
    X = spread(5, 3)
    result = gram(scaled(1.7, rbf(list(ours))), scaled(0.4, rbf(list(theirs))), X)
    exact = 1.7**2 / 0.4
    for column, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        k, h = oracle.rbf(a, 1), oracle.rbf(b, 1)
        r = float(abs(X[0, column] - X[1, column]))
        exact *= oracle.radial_transform(lambda w, k=k, h=h: k(w) ** 2 / h(w), 1, r, 3.0)
    assert result.matrix[0, 1] == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("ell", [0.5, 0.3, 0.7])
def test_the_gaussian_closed_form_is_exact_at_the_edge_of_the_criterion(ell):
    """ℓ_G² = 2ℓ_K² − ℓ_H² is a small difference of large numbers."""
    edge = math.sqrt(2.0) * ell
    while Fraction(edge) ** 2 >= 2 * Fraction(ell) ** 2:
        edge = math.nextafter(edge, 0.0)
    while Fraction(math.nextafter(edge, 1.0)) ** 2 < 2 * Fraction(ell) ** 2:
        edge = math.nextafter(edge, 1.0)
    result = gram(rbf(ell), rbf(edge), [0.0])
    with oracle.mp.workdps(50):
        square = 2 * oracle.mp.mpf(ell) ** 2 - oracle.mp.mpf(edge) ** 2
        exact = float(oracle.mp.mpf(ell) ** 2 / (edge * oracle.mp.sqrt(square)))
    assert result.matrix[0, 0] == pytest.approx(exact, rel=1e-14)
    with pytest.raises(InputError, match="is not below √2 times"):
        gram(rbf(ell), rbf(math.nextafter(edge, 1.0)), [0.0])


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize(("nu_k", "nu_h"), [(1.5, 0.5), (2.5, 0.5), (2.5, 1.5), (1.5, 2.5)])
def test_matern_closed_form_is_the_spectral_integral(d, nu_k, nu_h):
    kappa = 2.5
    ell = [math.sqrt(2 * nu) / kappa for nu in (nu_k, nu_h)]
    k, h = oracle.matern(nu_k, ell[0], d, 1.7), oracle.matern(nu_h, ell[1], d, 0.4)
    distances = (0.0, 0.35) if d != 2 or nu_k == nu_h + 1 else (0.0,)
    exact = [oracle.radial_transform(lambda w: k(w) ** 2 / h(w), d, r, 3.0) for r in distances]
    result = gram(scaled(1.7, matern(nu_k, ell[0])), scaled(0.4, matern(nu_h, ell[1])), line(*distances, d=d))
    np.testing.assert_allclose(result.matrix[0], exact, rtol=1e-9)
    assert result.error == 0.0


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 4.5])
def test_half_integer_matern_is_the_bessel_function(nu):
    z = np.array([1e-3, 0.5, 2.0, 30.0, 1e9])
    log = (1 - nu) * math.log(2.0) - math.lgamma(nu) + nu * np.log(z) + log_bessel_k(nu, z)
    np.testing.assert_allclose(half_integer_matern(nu, z), np.exp(log), rtol=1e-12, atol=1e-300)


def test_half_integer_matern_refuses_other_smoothness():
    with pytest.raises(ValueError, match=r"nu is 2\.0"):
        half_integer_matern(2.0, np.zeros(1))


@pytest.mark.parametrize(("order", "z"), [(1000.3, 45.0), (30.2, 1e-20), (8.1, 1e-39), (300.7, 5.0), (0.3, 2.0)])
def test_log_bessel_does_not_overflow(order, z):
    exact = oracle.mp.log(oracle.mp.besselk(order, z))
    assert log_bessel_k(order, np.array([z]))[0] == pytest.approx(float(exact), rel=1e-13)


# ---------------------------------------------------------------- numerical inversion


def inverted(kernel, below, d, reach):
    return invert_radial(spectral_ratio(kernel, kernel, below, d), reach)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize(("nu_k", "nu_h"), [(1.5, 0.5), (2.5, 1.5), (0.5, 0.5)])
def test_numerical_inversion_gives_the_closed_form_within_its_own_error(d, nu_k, nu_h):
    """With one κ, once with the tail in closed form and once by quadrature alone where that converges."""
    k, h = RadialKernel("matern", nu_k, math.sqrt(2 * nu_k)), RadialKernel("matern", nu_h, math.sqrt(2 * nu_h))
    r, nu = np.linspace(0.0, 20.0, 700), 2 * nu_k - nu_h
    c = [math.gamma(v + d / 2) / math.gamma(v) for v in (nu_k, nu_h, nu)]
    exact = c[0] ** 2 / (c[1] * c[2]) * half_integer_matern(nu, r)
    density = spectral_ratio(k, k, [(1.0, h)], d)
    table = invert_radial(density, 20.0)
    assert np.max(np.abs(table(r) - exact)) <= table.error <= 1e-12 * exact[0]
    if nu > 3:
        plain = RadialDensity(density.density, d, density.low, density.high)
        table = invert_radial(plain, 20.0)
        assert np.max(np.abs(table(r) - exact)) <= table.error <= 1e-10 * exact[0]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(
    ("nu_k", "nu_h", "ratio"),
    [(1.5, 0.5, 3.0), (2.5, 0.5, 0.2), (2.5, 1.5, 10.0), (0.5, 0.5, 0.5), (1.5, 2.5, 1.3), (0.5, 0.5, 100.0)],
)
def test_two_frequencies_in_odd_dimension_are_a_finite_sum_of_matern_functions(d, nu_k, nu_h, ratio):
    """(κ_H² + ρ²)^b is a polynomial in κ_K² + ρ² when b = ν_H + d/2 is whole."""
    k = RadialKernel("matern", nu_k, math.sqrt(2 * nu_k))
    h = RadialKernel("matern", nu_h, math.sqrt(2 * nu_h) / ratio)
    r = np.concatenate([[0.0], np.geomspace(1e-6, 40.0, 999)])
    b, nu = round(nu_h + d / 2), 2 * nu_k - nu_h

    def c(v):
        return math.gamma(v + d / 2) / math.gamma(v)

    terms = [binom(b, j) * (ratio**2 - 1) ** j / c(nu + j) * half_integer_matern(nu + j, r) for j in range(b + 1)]
    exact = c(nu_k) ** 2 / c(nu_h) / ratio ** (2 * nu_h) * np.sum(terms, axis=0)
    table = inverted(k, [(1.0, h)], d, 40.0)
    assert np.max(np.abs(table(r) - exact)) <= table.error <= 1e-11 * exact[0]


@pytest.mark.parametrize(("d", "alpha"), [(1, 0.3), (1, 60.0), (2, 1.0), (2, 2.7), (3, 0.3), (3, 1.2), (6, 2.7)])
def test_inversion_follows_heavy_tails_to_any_distance(d, alpha):
    kernel = RadialKernel("rational_quadratic", alpha, 1.0)
    size = 64.0 + 16.0 * alpha * math.log1p(alpha)
    density = RadialDensity(
        lambda rho: np.exp(kernel.log_density(rho, d)), d, kernel.frequency, kernel.frequency, cusp=True, log_size=size
    )
    table = invert_radial(density, 1e5)
    r = np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 999)])
    exact = np.exp(-alpha * np.log1p(r**2 / (2 * alpha)))
    assert np.max(np.abs(table(r) - exact)) <= table.error <= 1e-11


OTHER = [
    (1, rbf(0.5), oracle.rbf(0.5, 1), matern(0.5, 0.3), oracle.matern(0.5, 0.3, 1)),
    (2, rbf(0.5), oracle.rbf(0.5, 2), matern(1.5, 0.3), oracle.matern(1.5, 0.3, 2)),
    (2, matern(2.5, 0.5), oracle.matern(2.5, 0.5, 2), matern(1.5, 0.5), oracle.matern(1.5, 0.5, 2)),
    (3, rbf(0.5), oracle.rbf(0.5, 3), matern(2.5, 0.3), oracle.matern(2.5, 0.3, 3)),
    (1, rq(1.0, 0.5), oracle.rational_quadratic(1.0, 0.5, 1), matern(0.5, 0.3), oracle.matern(0.5, 0.3, 1)),
    (3, rq(2.0, 0.5), oracle.rational_quadratic(2.0, 0.5, 3), matern(0.5, 0.3), oracle.matern(0.5, 0.3, 3)),
    (1, rbf(0.5), oracle.rbf(0.5, 1), rq(1.0, 0.5), oracle.rational_quadratic(1.0, 0.5, 1)),
    (1, rq(2.0, 0.5), oracle.rational_quadratic(2.0, 0.5, 1), rq(1.0, 0.6), oracle.rational_quadratic(1.0, 0.6, 1)),
]


@pytest.mark.parametrize(
    ("d", "K", "k", "H", "h"), OTHER, ids=[f"{K['kind']}/{H['kind']}{d}" for d, K, _, H, _ in OTHER]
)
def test_other_pairs_are_the_spectral_integral(d, K, k, H, h):
    distances = (0.0, 0.35)
    cut = 0.0 if K["kind"] == "matern" else 45.0
    exact = [oracle.radial_transform(lambda w: k(w) ** 2 / h(w), d, r, 3.0, cut) for r in distances]
    result = gram(K, H, line(*distances, d=d))
    np.testing.assert_allclose(result.matrix[0], exact, rtol=1e-9)
    assert 0.0 < result.error <= 1e-11 * exact[0]


def test_sums_in_both_kernels_are_the_spectral_integral():
    k1, k2 = oracle.rbf(0.3, 1), oracle.matern(1.5, 0.7, 1, 0.5)
    h1, h2 = oracle.matern(0.5, 0.3, 1), oracle.rbf(0.2, 1, 2.0)
    K = plus(rbf(0.3), scaled(0.5, matern(1.5, 0.7)))
    H = plus(matern(0.5, 0.3), scaled(2.0, rbf(0.2)))
    exact = [oracle.radial_transform(lambda w: (k1(w) + k2(w)) ** 2 / (h1(w) + h2(w)), 1, r, 3.0) for r in (0.0, 0.35)]
    np.testing.assert_allclose(gram(K, H, line(0.0, 0.35)).matrix[0], exact, rtol=1e-9)


def test_a_rough_part_of_h_that_is_tiny_still_decides_the_tail():
    k, h1, h2 = oracle.matern(1.5, 0.7, 1), oracle.matern(0.5, 0.3, 1, 1e-4), oracle.matern(2.5, 0.3, 1)
    exact = [oracle.radial_transform(lambda w: k(w) ** 2 / (h1(w) + h2(w)), 1, r, 30.0) for r in (0.0, 0.35)]
    result = gram(matern(1.5, 0.7), plus(scaled(1e-4, matern(0.5, 0.3)), matern(2.5, 0.3)), line(0.0, 0.35))
    np.testing.assert_allclose(result.matrix[0], exact, rtol=1e-8)


def test_a_sum_of_gaussians_over_a_gaussian_is_closed():
    k1, k2, h = oracle.rbf(0.3, 2), oracle.rbf(0.8, 2, 0.5), oracle.rbf(0.35, 2)
    exact = [oracle.radial_transform(lambda w: (k1(w) + k2(w)) ** 2 / h(w), 2, r, 3.0) for r in (0.0, 0.35)]
    result = gram(plus(rbf(0.3), scaled(0.5, rbf(0.8))), rbf(0.35), line(0.0, 0.35, d=2))
    np.testing.assert_allclose(result.matrix[0], exact, rtol=1e-10)
    assert result.error == 0.0


# ---------------------------------------------------------------- dimensions and columns


def test_a_product_over_separate_columns_is_the_product_of_the_one_dimensional_answers():
    X = spread(6, 3)
    K = times(scaled(1.3, matern(1.5, 1.0, [0])), rbf(0.9, [1]), matern(2.5, 1.0, [2]))
    H = times(scaled(0.7, matern(0.5, 1.0, [0])), rbf(0.8, [1]), matern(1.5, 0.6, [2]))
    parts = [
        gram(matern(1.5, 1.0), matern(0.5, 1.0), X[:, :1]),
        gram(rbf(0.9), rbf(0.8), X[:, 1:2]),
        gram(matern(2.5, 1.0), matern(1.5, 0.6), X[:, 2:]),
    ]
    result = gram(K, H, X)
    np.testing.assert_allclose(result.matrix, 1.3**2 / 0.7 * np.prod([p.matrix for p in parts], axis=0), rtol=1e-13)
    assert 0.0 < result.error <= 1e-11 * result.matrix[0, 0]


def test_lengthscales_in_one_ratio_are_an_isotropic_pair_in_scaled_inputs():
    X, ell = spread(6, 3), np.array([0.5, 1.0, 2.0])
    stretched = gram(matern(2.5, list(ell)), matern(1.5, list(1.2 * ell)), X * ell)
    np.testing.assert_allclose(stretched.matrix, gram(matern(2.5, 1.0), matern(1.5, 1.2), X).matrix, rtol=1e-12)


def test_kernels_on_the_same_columns_only_see_those():
    X = spread(6, 4)
    K, H = matern(1.5, [0.5, 0.6], [3, 1]), matern(0.5, [0.7, 0.84], [3, 1])
    swapped = gram(matern(1.5, [0.6, 0.5]), matern(0.5, [0.84, 0.7]), X[:, [1, 3]])
    np.testing.assert_allclose(gram(K, H, X).matrix, swapped.matrix, rtol=1e-13)


def test_parts_on_different_columns_do_not_see_each_other():
    X = spread(5, 3)
    K = plus(constant(2.0), rbf(0.5, [0]), matern(1.5, 1.0, [1, 2]))
    H = plus(constant(0.5), scaled(0.3, matern(0.5, 0.5, [0])), scaled(0.4, matern(1.5, 1.0, [1, 2])), rbf(0.2))
    expected = 2.0**2 / 0.5 + gram(rbf(0.5), scaled(0.3, matern(0.5, 0.5)), X[:, :1]).matrix
    expected = expected + gram(matern(1.5, 1.0), scaled(0.4, matern(1.5, 1.0)), X[:, 1:]).matrix
    np.testing.assert_allclose(gram(K, H, X).matrix, expected, rtol=1e-13)


def test_a_sum_in_h_may_differ_in_one_column_only():
    X = spread(5, 2)
    K = rbf([0.5, 0.6])
    H = plus(times(matern(0.5, 0.4, [0]), rbf(0.5, [1])), times(rbf(0.3, [0]), rbf(0.5, [1])))
    parts = gram(rbf(0.5), plus(matern(0.5, 0.4), rbf(0.3)), X[:, :1]), gram(rbf(0.6), rbf(0.5), X[:, 1:])
    np.testing.assert_allclose(gram(K, H, X).matrix, parts[0].matrix * parts[1].matrix, rtol=1e-12)


# ---------------------------------------------------------------- what G is for (Theorems 2 and 3)


def explained(K: Prior, H: Prior, X, S):
    """G(S₀) = K_XS H_SS⁻¹ K_SX; directions below round-off are left out, which makes it smaller."""
    values, vectors = scipy.linalg.eigh(H.covariance(S))
    keep = values > 1e-13 * values[-1]
    root = K.covariance(X, S) @ vectors[:, keep] / np.sqrt(values[keep])
    return root @ root.T


FILLED = {
    "Gaussian": (rbf(0.5), scaled(0.3, rbf(0.4)), 1e-12),
    "Matérn": (matern(2.5, math.sqrt(5) / 3), scaled(0.3, matern(1.5, math.sqrt(3) / 3)), 1e-6),
    "numerical": (rbf(0.4), matern(2.5, 0.3), 1e-8),
    "two frequencies": (scaled(2.0, matern(1.5, 0.5)), matern(0.5, 0.3), 1e-2),
    "sum": (plus(rbf(0.3), scaled(0.5, matern(2.5, 0.7))), plus(matern(0.5, 0.3), scaled(2.0, rbf(0.2))), 1e-2),
}


@pytest.mark.parametrize("name", list(FILLED))
def test_finite_covers_grow_to_the_uniform_solution_and_never_pass_it(name):
    K, H, close = FILLED[name]
    X = np.array([[0.05], [0.21], [0.48], [0.83]])
    result = gram(K, H, X)
    top = result.matrix[0, 0]
    prior, tolerance = Prior(kernel=build_kernel(K)), Prior(kernel=build_kernel(H))
    # spacings 1/16, 1/32, 1/64 over wider and wider boxes: each grid is part of the next
    covers = [np.arange(-(w * m), w * m + m + 1)[:, None] / m for w, m in ((1, 16), (2, 32), (4, 64))]
    grams = [explained(prior, tolerance, X, S) for S in covers]
    for small, large in itertools.pairwise(grams):
        assert np.linalg.eigvalsh(large - small)[0] >= -1e-11 * top
    gaps = [np.linalg.norm(result.matrix - g, 2) / top for g in grams]
    for g in grams:
        assert np.linalg.eigvalsh(g - result.matrix)[-1] <= 1e-12 * top + result.error
    assert gaps[2] <= max(gaps[1], 1e-13) <= max(gaps[0], 1e-13)
    assert gaps[2] <= close


def test_covers_of_the_plane_grow_to_the_uniform_solution():
    K, H = matern(2.5, 0.8), matern(0.5, 0.8)
    X = np.array([[0.1, 0.2], [0.4, 0.9], [0.8, 0.3]])
    result = gram(K, H, X)
    prior, tolerance = Prior(kernel=build_kernel(K)), Prior(kernel=build_kernel(H))
    gaps = []
    for w, m in ((1, 3), (2, 6)):
        axis = np.arange(-(w * m), w * m + m + 1) / m
        g = explained(prior, tolerance, X, np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2))
        assert np.linalg.eigvalsh(g - result.matrix)[-1] <= 1e-12
        gaps.append(np.linalg.norm(result.matrix - g, 2) / result.matrix[0, 0])
    assert gaps[1] < gaps[0] / 3 < 0.1


@pytest.mark.parametrize(
    ("K", "H"),
    [
        (matern(2.5, [0.5, 0.8]), scaled(0.2, matern(1.5, [0.5, 0.8]))),
        (
            plus(rbf(0.5, [0]), matern(1.5, 1.0, [1])),
            plus(scaled(0.2, matern(0.5, 0.5, [0])), scaled(0.1, matern(1.5, 1, [1]))),
        ),
        (rq(1.5, 0.7), scaled(0.3, matern(0.5, 0.5))),
    ],
    ids=["Matérn", "additive", "rational quadratic"],
)
def test_noise_up_to_g_keeps_the_promise_at_inputs_never_thought_of(K, H):
    X, S = spread(12, 2), spread(40, 2, width=3.0) - 0.5
    result = gram(K, H, X)
    prior, tolerance = Prior(kernel=build_kernel(K)), Prior(kernel=build_kernel(H))
    M = result.matrix + result.error * np.eye(len(X))
    learnt = prior.covariance(S, X) @ np.linalg.solve(M, prior.covariance(X, S))
    assert np.linalg.eigvalsh(learnt - tolerance.covariance(S))[-1] <= 1e-9


# ---------------------------------------------------------------- invariance and edge cases


@given(st.floats(0.05, 20.0), st.floats(0.05, 20.0), st.sampled_from(["closed", "numerical"]))
def test_variances_factor_out_and_units_do_not_matter(variance, unit, way):
    X = spread(5, 2)
    nu = 0.5 if way == "closed" else 1.5
    plain = gram(matern(1.5, 0.6), matern(nu, 0.6 / math.sqrt(3) if way == "closed" else 0.5), X)
    ell = unit * (0.6 / math.sqrt(3) if way == "closed" else 0.5)
    other = gram(scaled(variance, matern(1.5, 0.6 * unit)), scaled(2.0, matern(nu, ell)), X * unit)
    np.testing.assert_allclose(other.matrix, variance**2 / 2.0 * plain.matrix, rtol=1e-11)
    assert (other.error == 0.0) == (way == "closed")


def test_the_error_is_small_and_the_matrix_symmetric_and_positive_on_many_rows():
    result = gram(matern(2.5, [0.5, 0.7]), matern(1.5, [0.5, 0.7]), spread(400, 2, width=6.0))
    assert np.array_equal(result.matrix, result.matrix.T)
    assert result.error <= 1e-9 * result.matrix[0, 0]
    assert np.linalg.eigvalsh(result.matrix)[0] >= -result.error


@pytest.mark.parametrize("H", [rbf(0.4), matern(0.5, 0.4)])
def test_one_row_equal_rows_and_rows_very_far_apart(H):
    one = gram(rbf(0.5), H, [3.0]).matrix[0, 0]
    X = [3.0, 3.0, 1e7, -4e5]
    result = gram(rbf(0.5), H, X)
    np.testing.assert_allclose(result.matrix, one * np.equal.outer(X, X), atol=1e-12 * one)


def test_inputs_with_names_and_single_precision_kernels_are_fine():
    kernel, tolerance = gpytorch.kernels.RBFKernel(ard_num_dims=2), gpytorch.kernels.RBFKernel(ard_num_dims=1)
    frame = pd.DataFrame(spread(4, 2), columns=["age", "place"])
    kernel.lengthscale, tolerance.lengthscale = torch.tensor([[0.5, 0.7]]), 0.4
    expected = gram(rbf([0.5, 0.7]), rbf(0.4), frame.to_numpy())
    np.testing.assert_allclose(uniform_gram(kernel, tolerance, frame).matrix, expected.matrix, rtol=1e-5)


# ---------------------------------------------------------------- what is refused

REFUSED = [
    (rbf([0.6, 0.5]), rbf([0.6, 0.9]), 2, r"lengthscale 0\.9 of H in column x1 .* 0\.5·√2 = 0\.707107; .*shorter"),
    (rbf(1.0), rbf(math.sqrt(2.0)), 1, r"lengthscale 1\.41421 of H in column x "),
    (
        matern(0.5, 1.0),
        matern(1.5, 1.0),
        1,
        r"H has smoothness 3/2, which must be below twice .* 2·1/2 = 1; give a rough",
    ),
    (matern(0.5, 1.0), matern(2.5, 1.0), 3, r"column x0 H has smoothness 5/2"),
    (matern(2.5, 1.0), rbf(0.1), 1, r"H is RBF in column x and the prior's kernel is Matérn 5/2: .* every power"),
    (matern(2.5, 1.0), plus(rbf(0.1), rq(1.0, 0.1)), 1, r"H is RBF plus rational quadratic in column x"),
    (plus(rbf(1.0), matern(0.5, 1.0)), matern(1.5, 1.0), 1, r"H has smoothness 3/2"),
    (rq(1.0, 1.0), rbf(0.1), 1, r"H is RBF in column x and the prior's kernel is rational quadratic: .* exponentially"),
    (rq(0.5, 1.0), rq(2.0, 1.1), 1, r"√\(2·2\)·1\.1 = 2\.2, which must be below .* 2·√\(2·0\.5\)·1 = 2; "),
    (
        rq(0.2, 1.0),
        matern(0.5, 1.0),
        1,
        r"alpha = 0\.2 in column x, so it falls off too slowly .* above 0\.25 .* 1 dim",
    ),
    (rq(0.6, 1.0), matern(0.5, 1.0), 3, r"alpha must be above 0\.75 for this H in 3 dimension"),
    (
        periodic(1.0, 2.0),
        rbf(0.1),
        1,
        r"the prior's kernel has a periodic part on the column x, whose spectrum is discrete",
    ),
    (rbf(1.0), plus(rbf(0.1), {"kind": "cosine", "period_length": 2.0}), 1, r"H has a cosine part .* discrete"),
    ({"kind": "linear", "variance": 1.0}, rbf(0.1), 1, r"has a linear part on the column x, which is not stationary"),
    (rbf(1.0), {"kind": "polynomial", "offset": 1.0, "power": 2}, 1, r"H has a polynomial part .* not stationary"),
    (times(rbf(1.0), matern(0.5, 1.0)), matern(0.5, 0.1), 1, r"a product of Matérn 1/2 and RBF on the column x"),
    (
        rbf(1.0, [0]),
        rbf(0.5),
        2,
        r"a part on the column x0, but H has none on the column x0 \(it has parts on the columns x0, x1",
    ),
    (rbf(1.0), rbf(0.5, [1]), 2, r"a part on the columns x0, x1, but H has none"),
    (plus(rbf(1.0), constant(1.0)), rbf(0.5), 1, r"a part that is constant, but H has none that is constant"),
    (
        rbf([0.5, 1.0]),
        matern(0.5, 1.0),
        2,
        r"lengthscales 1, 1 \(Matérn 1/2\) and 0\.5, 1 are not in one ratio.*one multiple",
    ),
    (matern(1.5, 1.0), times(matern(0.5, 1.0, [0]), matern(0.5, 1.0, [1])), 2, r"not products over the same columns"),
    (rbf(1.0), times(matern(0.5, [1.0, 2.0], [0, 1]), rbf(0.9, [2])), 3, r"columns x0, x1 the lengthscales 1, 2 \(Mat"),
]


@pytest.mark.parametrize(("K", "H", "d", "message"), REFUSED)
def test_a_pair_outside_the_criterion_is_refused_with_the_condition_that_fails(K, H, d, message):
    with pytest.raises(InputError, match=message) as caught:
        gram(K, H, spread(3, d))
    assert str(caught.value).startswith("tolerance: ")
    assert "alpha=…" in str(caught.value)


def test_messages_name_the_columns_of_a_table():
    frame = pd.DataFrame(spread(3, 2), columns=["age", "place"])
    with pytest.raises(InputError, match="of H in column place is not below"):
        gram(rbf([0.6, 0.5]), rbf([0.6, 0.9]), frame)


def test_kernels_that_are_not_for_these_columns_are_refused():
    kernel = build_kernel(rbf(0.5))
    with pytest.raises(InputError, match="2 lengthscales, but the inputs have 1"):
        uniform_gram(kernel, build_kernel(rbf([0.5, 0.5])), [0.0])
    sums = times(*[plus(rbf(1.0), matern(0.5, 1.0 + i)) for i in range(9)])
    with pytest.raises(InputError, match="more than 256 terms when multiplied out"):
        gram(sums, rbf(0.5), [0.0])


def test_a_pair_that_needs_more_noise_than_there_are_numbers_is_refused():
    with pytest.raises(InputError, match="the spectral integral of this pair of kernels was too large to compute"):
        gram(rbf(0.03), rq(4.0, 3.0), [0.0, 1.0])


def test_an_inversion_that_does_not_converge_is_refused_not_handed_out(monkeypatch):
    monkeypatch.setattr("sfumato.models.spectra.WORST_ERROR", 1e-18)
    with pytest.raises(InputError, match=r"columns x the spectral integral .* found only to .* not enough to promise"):
        gram(rbf(0.5), matern(0.5, 0.4), [0.0, 1.0])
