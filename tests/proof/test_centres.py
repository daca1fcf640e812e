"""Centres leave out as little as asked, at the rows and in the region, and there are few of them."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.proof.features import Centres, Features, choose_centres

KERNELS = {"rbf": rbf([0.2, 0.3], 2.0), "matern32": matern([0.2, 0.3], 2.0), "matern12": matern([0.2, 0.3], 2.0, 0.5)}
PLANE = np.random.default_rng(0).random((300, 2))


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
