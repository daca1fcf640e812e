"""Points that fill intervals, cubes and balls evenly, without chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.linalg.low_discrepancy import deal, fill_ball, fill_cube, fill_interval, halton


@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 12])
def test_points_are_spread_evenly(dimension: int) -> None:
    points = halton(2000, dimension)
    assert np.all((points >= 0) & (points < 1))
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.01)
    for first, second in itertools.combinations(range(dimension), 2):
        counts, _, _ = np.histogram2d(points[:, first], points[:, second], bins=8, range=[[0, 1], [0, 1]])
        assert counts.min() > 0.6 * 2000 / 64


def test_batches_share_no_points() -> None:
    sets = [{row.tobytes() for row in halton(500, 2, batch)} for batch in range(6)]
    assert len(set.union(*sets)) == 6 * 500


@pytest.mark.parametrize("dimension", [2, 3])
def test_every_face_is_covered_from_end_to_end(dimension: int) -> None:
    cube = fill_cube(4000, dimension)
    for column in range(dimension):
        for side in (0.0, 1.0):
            face = np.delete(cube[cube[:, column] == side], column, axis=1)
            for along in face.T:
                assert np.diff(np.sort(along), prepend=0.0, append=1.0).max() < 0.05


def test_cubes_balls_and_intervals_stay_inside() -> None:
    for count in (1, 2, 5, 100):
        for dimension in (1, 2, 7):
            assert np.all(np.abs(fill_cube(count, dimension, 1) - 0.5) <= 0.5)
            assert np.all(np.linalg.norm(fill_ball(count, dimension, 1), axis=1) <= 1 + 1e-14)
        assert np.all(np.diff(fill_interval(count, 1)) >= 0)


@given(st.integers(1, 50), st.integers(1, 300), st.integers(1, 4), st.integers(0, 9))
def test_dealing_is_even(choices: int, count: int, dimension: int, batch: int) -> None:
    counts = np.bincount(deal(choices, count, dimension, batch), minlength=choices)
    assert counts.sum() == count
    assert counts.max() - counts.min() <= 1
