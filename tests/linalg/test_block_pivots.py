"""Pivots in blocks are nearly those of pivoted Cholesky, and centres chosen with them leave out as little as asked."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.linalg.pivots import BLOCK, block_pivots, pivoted_cholesky
from sfumato.proof.centres import Centres, choose_centres
from sfumato.proof.sums import Features


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


# centres -------------------------------------------------------------------------------------------------------------


def choose(prior, X, region, mean=1e-4, limit=2048, always=None):
    inputs = as_inputs(X)
    return choose_centres(prior, inputs, region.bind(inputs), mean, limit, always)


def is_among(points, places):
    return [any(np.array_equal(point, place) for place in places) for point in points]


@pytest.mark.parametrize(("name", "mean"), [("rbf", 1e-2), ("rbf", 1e-5), ("matern32", 1e-2)])
def test_centres_leave_out_no_more_than_asked_at_rows_and_in_the_region(name, mean):
    prior = sf.Prior(kernel=KERNELS[name], noise=0.1)
    region = sf.Box([0.2, 0.2], [0.9, 0.6]).bind(as_inputs(PLANE))
    centres = choose(prior, PLANE, region, mean)
    features = Features.around(prior, centres.places)
    assert len(centres.means) == len(features) + 1
    assert features.left_out(PLANE).mean() <= mean * (1 + 1e-6)
    inside = region.probes(500, as_inputs(PLANE), batch=3)
    assert features.left_out(inside).max() <= 60 * mean


def test_centres_that_must_be_there_are():
    prior = sf.Prior(kernel=KERNELS["matern32"], noise=0.1)
    always = np.vstack([PLANE[:70], [[3.0, -0.0], [-2.0, 5.0]]])
    centres = choose(prior, PLANE, sf.Box([0.2, 0.2], [0.9, 0.6]), 0.5, always=always)
    assert all(is_among(always + 0.0, centres.places))
    assert len(np.unique(centres.places, axis=0)) == len(centres.places)


def test_points_of_the_region_are_centres():
    points = np.array([[0.25, 0.5], [0.5, 0.5], [0.75, 0.5]])
    centres = choose(sf.Prior(kernel=KERNELS["rbf"]), PLANE, sf.Points(points), always=points)
    assert all(is_among(points, centres.places))


ONE = sf.Prior(kernel=rbf(0.3), noise=0.1)
ODD_ROWS = {
    "one row": np.array([[0.5]]),
    "equal rows": np.full((50, 1), 0.5),
    "rows of two kinds": np.repeat([[0.2], [0.7]], 30, axis=0),
    "rows that are also points": np.linspace(0, 1, 20)[:, None],
}


@pytest.mark.parametrize("rows", list(ODD_ROWS))
@pytest.mark.parametrize("always", [None, np.array([[0.4], [0.4], [0.6]])])
def test_odd_rows_give_centres_that_features_can_be_made_around(rows, always):
    centres = choose(ONE, ODD_ROWS[rows], sf.Box(0.4, 0.6), always=always)
    features = Features.around(ONE, centres.places)
    assert features.left_out(ODD_ROWS[rows]).mean() <= 1e-4
    assert np.all(np.isfinite(centres.means))


def test_a_constant_column_costs_no_centres():
    flat = np.c_[PLANE[:, 0], np.ones(300)]
    two = choose(sf.Prior(kernel=rbf([0.3, 0.3])), flat, sf.Box([0.4, 1.0], [0.6, 1.0]))
    one = choose(ONE, PLANE[:, :1], sf.Box(0.4, 0.6))
    assert len(two.places) == len(one.places)


def test_no_more_centres_are_taken_than_allowed():
    assert len(choose(sf.Prior(kernel=KERNELS["matern12"]), PLANE, sf.Box([0, 0], [1, 1]), 1e-9, limit=90).places) == 90


def test_features_can_be_made_around_points_that_tell_almost_the_same():
    for gap in (1e-4, 1e-3, 2e-3, 5e-3):
        for count in (8, 21, 41):
            points = 0.4 + gap * np.arange(count)[:, None]
            centres = choose(ONE, PLANE[:, :1], sf.Points(points), always=points)
            assert Features.around(ONE, centres.places).left_out(points).max() <= 1e-6


def test_the_number_of_centres_that_would_be_needed_is_read_off_or_guessed():
    means = np.exp(-np.arange(101) / 10)
    centres = Centres(np.zeros((100, 1)), means)
    assert centres.needed_for(1.0) == 0
    assert centres.needed_for(means[40]) == 40
    # what is left falls faster than any power, so a guess by the trend is on the high side
    assert 120 <= centres.needed_for(np.exp(-12.0)) < 10**6
    assert Centres(np.zeros((20, 1)), np.ones(21)).needed_for(0.5) >= 10**9
