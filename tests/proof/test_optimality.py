"""Least noise: the same trace as a general-purpose SDP solver finds."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from oracles import least_trace, matern32
from oracles import rbf as rbf_dense


def problem(seed: int):
    """A random problem: inputs, kernel, noise, sensitive points, alpha, and its B made by textbook formulas."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(8, 41)), int(rng.integers(1, 6))
    X = rng.random((n, d))
    lengthscale = rng.uniform(0.2, 0.8, d) * np.sqrt(d)
    variance, alpha = float(rng.uniform(0.3, 3.0)), float(rng.uniform(0.1, 0.8))
    noise = float(rng.choice([0.0, 0.01, 0.2])) if seed % 2 else 0.05
    S = X[:3] + 0.02 * rng.standard_normal((3, d))
    if seed % 3:
        kernel, dense = matern(lengthscale, variance), matern32
    else:
        kernel, dense = rbf(lengthscale, variance), rbf_dense
    A = dense(X, X, lengthscale, variance) + noise * np.eye(n)
    cross, delta = dense(X, S, lengthscale, variance), alpha * dense(S, S, lengthscale, variance)
    B = cross @ np.linalg.solve(delta, cross.T) - A
    return sf.Prior(kernel=kernel, noise=noise), X, sf.Points(S), alpha, (B + B.T) / 2


@pytest.mark.parametrize("seed", range(12))
def test_joint_noise_has_the_least_trace(seed):
    prior, X, region, alpha, B = problem(seed)
    mechanism = sf.protect(prior, X, region, alpha=alpha)
    assert mechanism.certificate.holds
    assert mechanism.noise.trace == pytest.approx(least_trace(B), rel=1e-6, abs=1e-6)
    assert mechanism.certificate.gap <= 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_weighted_noise_has_the_least_weighted_trace(seed):
    prior, X, region, alpha, B = problem(seed)
    rng = np.random.default_rng(100 + seed)
    weights = rng.uniform(0.2, 5.0, len(X))
    if seed % 2:
        root = rng.standard_normal((len(X), len(X)))
        weights = root @ root.T / len(X) + 0.3 * np.eye(len(X))
    mechanism = sf.protect(prior, X, region, alpha=alpha, weights=weights)
    C = np.diag(weights) if weights.ndim == 1 else weights
    assert mechanism.certificate.holds
    assert np.trace(C @ mechanism.noise.covariance()) == pytest.approx(least_trace(B, weights), rel=1e-6, abs=1e-6)
    assert mechanism.certificate.gap <= 1e-6


def test_a_heavy_row_gets_no_more_noise_than_the_promise_forces_on_it():
    prior, X, region, alpha, B = problem(0)
    plain = sf.protect(prior, X, region, alpha=alpha).noise.variance()
    forced = np.maximum(np.diag(B), 0.0)
    row = int(np.argmax(plain - forced))
    weights = np.ones(len(X))
    weights[row] = 1e6
    spared = sf.protect(prior, X, region, alpha=alpha, weights=weights)
    assert spared.certificate.holds
    assert plain[row] > forced[row] + 1e-2 * plain.max()
    assert spared.noise.variance()[row] == pytest.approx(forced[row], abs=1e-3 * plain.max())
    assert spared.noise.trace > plain.sum()
