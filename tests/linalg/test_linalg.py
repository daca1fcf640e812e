"""Numerical routines against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from sfumato.linalg.pivots import pivoted_cholesky
from sfumato.linalg.positive_part import positive_part_factor
from sfumato.linalg.tensors import solve_lower
from sfumato.programs.joint import explaining_root, joint_noise_factor


def random_psd(size, rank, seed=0):
    root = np.random.default_rng(seed).standard_normal((size, rank))
    return root @ root.T


def left_given(matrix, picked):
    """The variances that are left once the values ``picked`` are known, by a dense Schur complement."""
    if len(picked) == 0:
        return np.diag(matrix)
    cross = matrix[:, picked]
    return np.diag(matrix - cross @ np.linalg.solve(matrix[np.ix_(picked, picked)], cross.T))


def test_pivots_are_the_largest_variance_left_at_every_step():
    K = random_psd(30, 40, seed=1)
    pivots = pivoted_cholesky(np.diag(K), lambda i: K[:, i], 0.0, 12)
    assert len(pivots.order) == 12
    for k, picked in enumerate(pivots.order):
        left = left_given(K, pivots.order[:k])
        assert picked == int(np.argmax(left))
        assert pivots.largest[k] == pytest.approx(left.max(), rel=1e-9)
    assert pivots.largest[-1] == pytest.approx(left_given(K, pivots.order).max(), rel=1e-9)


def test_pivots_end_at_the_rank():
    K = random_psd(25, 4, seed=2)
    pivots = pivoted_cholesky(np.diag(K), lambda i: K[:, i], 1e-10 * np.trace(K), 25)
    assert len(pivots.order) == 4
    assert left_given(K, pivots.order).max() <= 1e-9 * np.trace(K)


def test_a_prefix_is_the_shortest_start_that_reaches_the_tolerance():
    K = random_psd(20, 30, seed=3)
    pivots = pivoted_cholesky(np.diag(K), lambda i: K[:, i], 0.0, 20)
    for tolerance in np.quantile(pivots.largest, [0.13, 0.52, 0.88]):
        size = len(pivots.prefix(tolerance))
        assert left_given(K, pivots.order[:size]).max() <= tolerance * (1 + 1e-9)
        assert size == 0 or left_given(K, pivots.order[: size - 1]).max() > tolerance * (1 - 1e-9)
    assert len(pivots.prefix(-1.0)) == len(pivots.order)


def test_pivoting_looks_at_no_more_columns_than_it_picks():
    K, asked = random_psd(40, 40, seed=4), []

    def column(i):
        asked.append(i)
        return K[:, i]

    pivots = pivoted_cholesky(np.diag(K), column, 0.0, 5)
    assert asked == pivots.order.tolist()


@pytest.mark.parametrize("rank", [None, 3, 30])
@pytest.mark.parametrize("seed", range(3))
def test_the_positive_part_is_that_of_a_full_eigendecomposition(seed, rank):
    B = random_psd(30, 3, seed) - np.diag(np.random.default_rng(seed).uniform(0.5, 2.0, 30))
    values, vectors = np.linalg.eigh(B)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    F = positive_part_factor(B, rank)
    assert F.shape == (30, int(np.sum(values > 0)))
    assert np.matmul(F, F.T) == pytest.approx(positive, abs=1e-10)


@pytest.mark.parametrize("rank", [None, 21])
def test_repeated_eigenvalues_are_all_found(rank):
    """The kernel of the published satellite code is a multiple of the identity: one vector a value is not enough."""
    K = 225.0 * oracles.rbf(np.linspace(0, 3, 61)[:, None], np.linspace(0, 3, 61)[:, None], 0.0025)
    inside = slice(20, 41)
    B = K[:, inside] @ np.linalg.solve(0.1 * K[inside, inside], K[inside]) - K
    F = positive_part_factor((B + B.T) / 2, rank)
    assert F.shape == (61, 21)
    expected = np.zeros(61)
    expected[inside] = 225.0 * 9.0
    assert np.matmul(F, F.T) == pytest.approx(np.diag(expected), abs=1e-9)


@pytest.mark.parametrize("rank", [None, 1])
def test_a_negative_matrix_has_no_positive_part(rank):
    assert positive_part_factor(-random_psd(10, 12), rank).shape == (10, 0)
    assert positive_part_factor(np.zeros((10, 10)), rank).shape == (10, 0)


def test_a_bound_on_the_rank_that_is_too_low_still_finds_everything():
    B = np.diag(np.r_[np.ones(20), -np.ones(20)])
    F = positive_part_factor(B, rank=1)
    assert np.matmul(F, F.T) == pytest.approx(np.diag(np.r_[np.ones(20), np.zeros(20)]), abs=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_solves_are_those_of_the_dense_inverse(order):
    lower = np.asarray(np.linalg.cholesky(random_psd(12, 20) + np.eye(12)), order=order)
    block = np.random.default_rng(5).standard_normal((12, 7))
    assert solve_lower(lower, block) == pytest.approx(np.linalg.solve(lower, block), abs=1e-10)


def test_the_explaining_root_squares_to_what_the_sensitive_values_explain():
    cross, delta = np.random.default_rng(6).standard_normal((9, 4)), random_psd(4, 8, seed=6)
    U = explaining_root(cross, delta)
    assert np.matmul(U, U.T) == pytest.approx(cross @ np.linalg.inv(delta) @ cross.T, abs=1e-9)


@pytest.mark.parametrize("kind", ["none", "diagonal", "matrix"])
def test_joint_noise_covers_b_and_is_optimal_by_its_dual(kind):
    A, G = random_psd(8, 12, seed=7) / 4, random_psd(8, 3, seed=8)
    weights = {"none": None, "diagonal": np.linspace(0.5, 3, 8), "matrix": random_psd(8, 12, seed=9) / 8 + np.eye(8)}
    weight = weights[kind]
    F = joint_noise_factor(A, G, weight)
    C = np.eye(8) if weight is None else np.diag(weight) if weight.ndim == 1 else weight
    assert np.linalg.eigvalsh(F @ F.T - (G - A))[0] >= -1e-9
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(values)) @ vectors.T
    least = np.sum(np.maximum(np.linalg.eigvalsh(root @ (G - A) @ root), 0.0))
    assert np.trace(C @ F @ F.T) == pytest.approx(least, rel=1e-9)
