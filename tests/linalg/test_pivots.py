"""Pivoted Cholesky picks what is left of the most variance; in blocks it picks nearly the same rows."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.linalg.pivots import BLOCK, block_pivots, pivoted_cholesky


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


def covariance(kernel, X):
    return sf.Prior(kernel=kernel).covariance(X)


def pick(K, enough=lambda left: False, limit=10**6, smallest=1e-10, first=0):
    return block_pivots(np.diag(K).copy(), lambda rows: K[:, rows], enough, limit, smallest, first)


def left_dense(K, order):
    """The diagonal of the Schur complement, by least squares."""
    known = np.linalg.lstsq(K[np.ix_(order, order)], K[order], rcond=None)[0]
    return np.diag(K) - np.einsum("ij,ij->j", K[order], known)


KERNELS = {"rbf": rbf([0.2, 0.3], 2.0), "matern32": matern([0.2, 0.3], 2.0), "matern12": matern([0.2, 0.3], 2.0, 0.5)}
PLANE = np.random.default_rng(0).random((300, 2))


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("limit", [1, 40, 130])
def test_what_is_left_is_the_schur_complement(name, limit):
    K = covariance(KERNELS[name], PLANE)
    pivots = pick(K, limit=limit)
    assert len(pivots.order) == len(set(pivots.order.tolist())) == limit
    np.testing.assert_allclose(pivots.left, left_dense(K, pivots.order), atol=1e-9)
    assert pivots.means[-1] == pytest.approx(pivots.left.mean(), abs=1e-12)
    assert pivots.means[0] == pytest.approx(2.0)


@pytest.mark.parametrize("name", list(KERNELS))
def test_each_mean_is_that_of_a_prefix(name):
    K = covariance(KERNELS[name], PLANE)
    pivots = pick(K, limit=100)
    assert len(pivots.means) == 101
    assert np.all(np.diff(pivots.means) <= 1e-12)
    for count in (1, 10, 63, 64, 65, 99):
        assert pivots.means[count] == pytest.approx(left_dense(K, pivots.order[:count]).mean(), abs=1e-9)


@pytest.mark.parametrize("name", list(KERNELS))
def test_blocks_need_hardly_more_rows_than_one_pivot_at_a_time(name):
    K = covariance(KERNELS[name], PLANE)
    goal = 0.02 if name == "matern12" else 1e-4
    pivots = pick(K, enough=lambda left: bool(left.max() <= goal))
    assert pivots.left.max() <= goal
    one_by_one = pivoted_cholesky(np.diag(K).copy(), lambda i: K[:, i], goal, len(K))
    assert len(pivots.order) <= 1.3 * len(one_by_one.order) + BLOCK // 2


def test_equal_rows_are_picked_once():
    X = np.repeat(PLANE[:40], 5, axis=0)
    pivots = pick(covariance(KERNELS["matern32"], X))
    assert len(np.unique(X[pivots.order], axis=0)) == len(pivots.order) == 40
    assert pivots.left.max() < 1e-9


def test_no_more_rows_are_picked_than_there_are_directions():
    root = np.random.default_rng(1).standard_normal((200, 7))
    pivots = pick(root @ root.T, smallest=1e-9)
    assert len(pivots.order) == 7
    assert pivots.left.max() < 1e-9


def test_one_row_is_enough_for_one_row():
    pivots = pick(np.array([[3.0]]))
    assert pivots.order.tolist() == [0]
    assert pivots.left.tolist() == [0.0]
    assert pivots.means.tolist() == [3.0, 0.0]


def test_where_all_is_well_nothing_is_picked():
    pivots = pick(np.eye(5), enough=lambda left: True)
    assert pivots.order.size == 0
    assert pivots.means.tolist() == [1.0]


@pytest.mark.parametrize("first", [1, 64, 150])
def test_the_first_rows_come_first_even_where_nobody_needs_them(first):
    pivots = pick(covariance(KERNELS["matern12"], PLANE), enough=lambda left: True, first=first)
    assert sorted(pivots.order.tolist()) == list(range(first))


def test_rows_of_any_scale_are_treated_alike():
    K, scale = covariance(KERNELS["matern32"], PLANE), 10.0 ** np.random.default_rng(2).uniform(-6, 6, 300)
    scaled = pick(K * scale[:, None] * scale, limit=50)
    np.testing.assert_array_equal(scaled.order, pick(K, limit=50).order)
