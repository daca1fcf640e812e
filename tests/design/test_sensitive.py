"""Which few inputs stand for many."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
import sfumato as sf
from kernels import matern, rbf
from sfumato.design.sensitive import far_apart, greedy_order, independent_subset
from sfumato.models.prior import Prior


def power(K, picked):
    """p²(s)/K(s,s) of every s given the picked ones, by dense solves."""
    if len(picked) == 0:
        return np.ones(K.shape[0])
    cross = K[:, picked]
    left = np.diag(K) - np.einsum("ij,ji->i", cross, np.linalg.solve(K[np.ix_(picked, picked)], cross.T))
    return left / np.diag(K)


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_greedy_order_reports_the_largest_power_function(dimension):
    points = np.random.default_rng(dimension).random((120, dimension))
    order = greedy_order(Prior(kernel=matern(0.4, 3.0)), points, 0.2, 200)
    K = oracles.matern32(points, points, 0.4, 3.0)
    for k in range(len(order.order) + 1):
        left = power(K, order.order[:k])
        assert order.largest[k] == pytest.approx(left.max(), abs=1e-9)
        if k < len(order.order):
            assert left[order.order[k]] == pytest.approx(left.max(), abs=1e-9)
    assert order.largest[-1] <= 0.2**2 < order.largest[-2]


def test_the_greedy_order_stops_at_the_limit():
    order = greedy_order(Prior(kernel=rbf(0.01)), np.linspace(0, 1, 200)[:, None], 0.01, 7)
    assert len(order.order) == 7
    assert order.largest[-1] > 0.01**2


def test_variances_of_different_size_are_compared_by_share():
    """A linear kernel: every value determines every other, so one is enough wherever it lies."""
    import gpytorch

    order = greedy_order(Prior(kernel=gpytorch.kernels.LinearKernel()), np.array([[0.01], [1.0], [100.0]]), 1e-3, 3)
    assert len(order.order) == 1


def test_duplicates_are_left_out_of_an_independent_subset():
    points = np.array([[0.0], [0.7], [0.0], [0.7], [1.4], [0.7]])
    delta = 0.3 * oracles.matern32(points, points, 0.5)
    assert independent_subset(delta, 1e-10) == [0, 1, 4]


def test_an_independent_subset_determines_what_it_leaves_out():
    points = np.linspace(0, 1, 80)[:, None]
    delta = oracles.rbf(points, points, 0.3, 5.0) * np.outer(np.linspace(1, 9, 80), np.linspace(1, 9, 80))
    keep = independent_subset(delta, 1e-6)
    assert keep == sorted(set(keep))
    assert 5 < len(keep) < 30
    assert power(delta, keep).max() <= 1e-6 * 1.01
    assert np.linalg.eigvalsh(delta[np.ix_(keep, keep)])[0] > 0


def test_far_apart_takes_the_worst_and_nothing_that_resembles_it():
    points, badness = np.array([[0.0], [0.05], [1.0], [2.0], [1.02]]), np.array([3.0, 5.0, 1.0, 2.0, 0.5])
    prior = Prior(kernel=rbf(0.3, 2.0))
    assert far_apart(prior, points, badness, 10) == [1, 3, 2]
    assert far_apart(prior, points, badness, 2) == [1, 3]


def test_far_apart_passes_over_exactly_what_is_correlated_above_nine_tenths():
    points = np.random.default_rng(4).random((200, 2))
    badness = np.random.default_rng(5).random(200)
    chosen = far_apart(Prior(kernel=matern(0.5, 4.0)), points, badness, 200)
    K = oracles.matern32(points, points, 0.5)
    among = np.abs(K[np.ix_(chosen, chosen)] - np.eye(len(chosen)))
    assert among.max() <= 0.9
    for i in set(range(200)) - set(chosen):
        worse = [j for j in chosen if badness[j] > badness[i]]
        assert K[i, worse].max() > 0.9


def test_where_outputs_may_be_learnt_to_different_shares_noise_is_hardly_more_than_the_least():
    t = np.linspace(0.0, 3.0, 31)
    joint = sf.JointPrior.of(
        sf.Prior(matern(0.5, nu=2.5), noise=1e-4), {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 1e-4}
    )
    made = sf.protect(joint, t, sf.Box(1, 2), floor={"r": 0.3, "v": 0.4}, progress=False).certificate
    assert made.evidence == "proved"
    assert made.gap < 0.01
