"""Features: what they have of f is never more than there is, with round-off counted, and the rest is a covariance."""

from __future__ import annotations

import pickle

import gpytorch
import mpmath
import numpy as np
import pytest
import torch

import sfumato as sf
from kernels import matern, rbf
from oracles import DIGITS, exact, forward50, rbf50
from sfumato.proof.features import ROWS_ON_CPU, Features

KERNELS = {
    "rbf": rbf([0.3, 0.4], 1.7),
    "matern12": matern([0.3, 0.4], 1.7, 0.5),
    "matern32": matern([0.3, 0.4], 1.7, 1.5),
    "matern52": matern([0.3, 0.4], 1.7, 2.5),
    "sum": rbf([0.2, 0.9], 0.5) + matern([0.5, 0.3], 2.0, 2.5),
    "product": gpytorch.kernels.RBFKernel(active_dims=[0]).double()
    * gpytorch.kernels.RQKernel(active_dims=[1]).double(),
}


def prior_with(kernel, noise=0.01):
    return sf.Prior(kernel=kernel, noise=noise)


def grid_features(spacing):
    """Forty centres on a line under an RBF kernel with lengthscale 1: the closer, the worse conditioned."""
    return Features.around(prior_with(rbf(1.0)), spacing * np.arange(40.0)[:, None])


def whitened50(features):
    """L⁻¹ K_ZZ L⁻ᵀ for the float64 L as it is: the identity, but for round-off."""
    kernel = features.prior.kernel
    parameters = float(kernel.base_kernel.lengthscale), float(kernel.outputscale)
    with mpmath.workdps(DIGITS):
        lower = exact(features.lower)
        half = forward50(lower, rbf50(features.centres, features.centres, *parameters))
        return mpmath.matrix(forward50(lower, mpmath.matrix(half.T.tolist())).tolist())


def is_positive50(matrix):
    with mpmath.workdps(DIGITS):
        try:
            mpmath.cholesky(matrix)
        except ValueError:
            return False
        return True


@pytest.mark.parametrize("name", list(KERNELS))
def test_what_is_left_out_is_a_covariance(name):
    rng = np.random.default_rng(0)
    prior, X = prior_with(KERNELS[name]), rng.random((120, 2))
    features = Features.around(prior, rng.random((25, 2)))
    values = features.at(X)
    rest = prior.covariance(X) - values @ values.T
    assert np.linalg.eigvalsh(rest)[0] >= -1e-9 * prior.variance(X).max()
    left = features.left_out(X)
    assert np.all(left >= 0)
    np.testing.assert_allclose(left, np.diag(rest), rtol=0, atol=1e-6 * prior.variance(X).max())


@pytest.mark.parametrize("spacing", [1.0, 0.6, 0.45, 0.4])
def test_the_shares_cover_the_round_off_of_close_centres(spacing):
    # Φ Diag(shares) Φᵀ ⪯ K_XX for any rows if and only if Diag(1/shares) ⪰ L⁻¹ K_ZZ L⁻ᵀ
    features = grid_features(spacing)
    with mpmath.workdps(DIGITS):
        counted = mpmath.diag([1 / mpmath.mpf(float(share)) for share in features.shares])
    assert is_positive50(counted - whitened50(features))


def test_without_the_shares_round_off_would_count_for_the_promise():
    features = grid_features(0.4)
    assert np.linalg.cond(features.prior.covariance(features.centres)) > 1e12
    assert not is_positive50(mpmath.eye(40) - whitened50(features))


def test_the_shares_cover_round_off_under_other_units_and_far_from_the_origin():
    centres = 1e3 + 0.45 * np.pi / 10 * np.arange(30.0)[:, None]
    features = Features.around(prior_with(rbf(np.pi / 10, 1e7 / 3)), centres)
    with mpmath.workdps(DIGITS):
        counted = mpmath.diag([1 / mpmath.mpf(float(share)) for share in features.shares])
    assert is_positive50(counted - whitened50(features))


def test_features_with_their_shares_stay_below_the_kernel_in_fifty_digits():
    features = grid_features(0.45)
    X = np.sort(np.random.default_rng(1).uniform(-2.0, 20.0, 12))
    with mpmath.workdps(DIGITS):
        values = forward50(exact(features.lower), rbf50(features.centres, X, 1.0))
        counted = (values.T * np.array([mpmath.mpf(float(s)) for s in features.shares])).dot(values)
        rest = rbf50(X, X, 1.0) - mpmath.matrix(counted.tolist())
        assert is_positive50(rest + mpmath.mpf(10) ** -30 * mpmath.eye(len(X)))


@pytest.mark.parametrize(("spacing", "lost"), [(1.0, 1e-12), (0.6, 1e-9), (0.45, 1e-5)])
def test_shares_cost_little(spacing, lost):
    assert 1 - lost <= grid_features(spacing).shares.min() <= 1


def test_at_a_centre_the_features_have_all_of_f():
    prior, centres = prior_with(KERNELS["matern32"]), np.random.default_rng(2).random((30, 2))
    features = Features.around(prior, centres)
    np.testing.assert_allclose(features.at(centres), features.lower, atol=1e-12)
    assert features.left_out(centres).max() < 1e-9


def test_amplification_is_that_of_the_inverse():
    features = grid_features(1.0)
    np.testing.assert_allclose(features.inverse @ features.lower, np.eye(40), atol=1e-12)
    np.testing.assert_allclose(features.amplification, np.sum(np.linalg.inv(features.lower) ** 2, axis=1), rtol=1e-9)


def test_rows_may_come_in_blocks_or_one_by_one():
    features = Features.around(prior_with(rbf(0.2)), np.linspace(0, 1, 7)[:, None])
    X = np.random.default_rng(3).random((ROWS_ON_CPU + 3, 1))
    values = features.at(X)
    assert values.shape == (ROWS_ON_CPU + 3, 7)
    np.testing.assert_allclose(values[-2:], features.at(X[-2:]), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(features.block(torch.from_numpy(X[:5])).numpy(), values[:5], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(features.left_out(X[:9], values[:9]), features.left_out(X[:9]), rtol=1e-12, atol=1e-16)


def test_features_travel_to_other_processes():
    features = grid_features(1.0)
    features.at(np.zeros((1, 1)))
    again = pickle.loads(pickle.dumps(features))
    assert len(again) == 40
    np.testing.assert_array_equal(again.at(np.ones((2, 1))), features.at(np.ones((2, 1))))
    np.testing.assert_array_equal(again.shares, features.shares)
