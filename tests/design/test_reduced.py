"""Rows in few directions: what a look says of a design is what dense algebra says of it, and its noise is enough."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
import scipy.linalg

import sfumato as sf
from sfumato.design import SharedWork, asked_problem
from sfumato.noise import CorrelatedNoise, IndependentNoise

KERNELS: dict[str, Any] = {
    "rbf": gpytorch.kernels.RBFKernel(),
    "matern52": gpytorch.kernels.MaternKernel(2.5),
    "matern12": gpytorch.kernels.MaternKernel(0.5),
}


def problem(name: str, columns: int, own_noise: bool) -> tuple[sf.Prior, Any, sf.Region, Any]:
    random = np.random.default_rng(columns)
    X = random.uniform(0.0, 3.0, (120, columns))
    kernel = KERNELS[name]
    kernel.lengthscale = 0.7
    V = random.uniform(0.02, 0.2, len(X)) if own_noise else 0.05
    return sf.Prior(kernel, noise=V), X, sf.Box([1.0] * columns, [2.0] * columns), np.broadcast_to(V, len(X))


@pytest.mark.parametrize("protects", ["both", "function"])
@pytest.mark.parametrize(
    ("name", "columns", "own_noise"), [("matern52", 1, True), ("rbf", 2, False), ("matern12", 1, False)]
)
def test_a_look_is_what_dense_algebra_says(name: str, columns: int, own_noise: bool, protects: Any) -> None:
    prior, X, region, V = problem(name, columns, own_noise)
    work = SharedWork(asked_problem(prior, X, region, 0.5), "auto")
    points = np.random.default_rng(9).uniform(0.0, 3.0, (50, columns))
    A = prior.covariance(X) + np.diag(V)
    for alpha in (0.2, 0.7):
        asked = asked_problem(prior, X, region, alpha, protects=protects)
        look = work.looked_at(asked, lambda words: None)
        assert look.seen.holds
        assert any(shared is not None for shared in work._reduced.values())
        total = A + look.design.noise.covariance()
        told = work.told(look.design.noise)
        assert told is not None
        cross = prior.covariance(X, points)
        left = prior.variance(points) - np.sum(cross * np.linalg.solve(total, cross), axis=0)
        np.testing.assert_allclose(told.left_at(points), left, rtol=1e-6, atol=1e-9)
        inside = asked.rows_inside
        rows = np.flatnonzero([np.any(np.all(row == inside, axis=1)) for row in X])
        known = np.diag(A - A @ np.linalg.solve(total, A))[rows]
        np.testing.assert_allclose(told.left_of_records(rows), known, rtol=1e-6)
        # no combination of the sensitive values is learnt better than allowed
        values = np.vstack([look.design.sensitive, inside]) if protects == "both" else look.design.sensitive
        count = len(look.design.sensitive)
        own = np.concatenate([np.zeros(count), V[rows] if protects == "both" else []])
        U = prior.covariance(X, values)
        if protects == "both":
            U[rows, count + np.arange(len(rows))] += V[rows]
        covariance = prior.covariance(values) + np.diag(own)
        explained = U.T @ np.linalg.solve(total, U)
        assert scipy.linalg.eigh(explained, alpha * covariance, eigvals_only=True)[-1] <= 1.0 + 1e-9
        # and there is no more noise than 1 % above the least for these inputs, held as tight
        least = np.linalg.eigvalsh(U @ np.linalg.solve(alpha * look.tightening * covariance, U.T) - A)
        assert look.design.noise.trace <= 1.01 * np.sum(np.maximum(least, 0.0))
        assert look.design.noise.trace >= (1.0 - 1e-9) * np.sum(np.maximum(least, 0.0))


def test_noise_that_lies_elsewhere_is_told_from_all_rows() -> None:
    prior, X, region, V = problem("matern52", 1, False)
    work = SharedWork(asked_problem(prior, X, region, 0.5), "auto")
    work.looked_at(asked_problem(prior, X, region, 0.5, protects="both"), lambda words: None)
    random, points = np.random.default_rng(3), np.linspace(0.0, 3.0, 20)[:, None]
    cross = prior.covariance(X, points)
    for noise in (CorrelatedNoise(random.standard_normal((len(X), 3))), IndependentNoise(random.uniform(0, 1, len(X)))):
        total = prior.covariance(X) + np.diag(V) + noise.covariance()
        told = work.told(noise)
        assert told is not None
        left = prior.variance(points) - np.sum(cross * np.linalg.solve(total, cross), axis=0)
        np.testing.assert_allclose(told.left_at(points), left, rtol=1e-8)
