"""A noise in factored form is the matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.noise.noise import CorrelatedNoise, IndependentNoise, no_noise

FACTOR = np.random.default_rng(0).standard_normal((6, 2))


@pytest.mark.parametrize("shift", [0.0, 0.3])
class TestFactoredForm:
    def test_all_views_are_those_of_the_matrix(self, shift):
        noise = CorrelatedNoise(FACTOR.copy(), shift)
        sigma = FACTOR @ FACTOR.T + shift * np.eye(6)
        assert noise.covariance() == pytest.approx(sigma, rel=1e-14)
        assert noise.variance() == pytest.approx(np.diag(sigma), rel=1e-14)
        assert noise.trace == pytest.approx(np.trace(sigma), rel=1e-14)
        assert (noise.rows, noise.rank) == (6, 2)

    def test_draws_are_linear_in_the_normals_and_have_exactly_the_covariance(self, shift):
        noise = CorrelatedNoise(FACTOR.copy(), shift)
        assert noise.normals_needed == (2 if shift == 0 else 8)
        root = np.column_stack([noise.draw(unit) for unit in np.eye(noise.normals_needed)])
        assert root @ root.T == pytest.approx(noise.covariance(), abs=1e-13)

    def test_no_noise_is_a_noise(self, shift):
        noise = CorrelatedNoise(np.zeros((6, 0)), shift)
        assert noise.covariance() == pytest.approx(shift * np.eye(6))
        assert noise.trace == pytest.approx(6 * shift)
        assert noise.draw(np.ones(noise.normals_needed)) == pytest.approx(np.full(6, shift**0.5))


def test_the_factor_cannot_be_changed():
    noise = CorrelatedNoise(FACTOR.astype(np.float32))
    assert noise.factor.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        noise.factor[0, 0] = 0.0


def test_the_callers_array_is_left_alone():
    mine = FACTOR.copy()
    noise = CorrelatedNoise(mine)
    mine[0, 0] += 1.0
    assert np.array_equal(noise.factor, FACTOR)


def test_independent_noise_is_its_diagonal():
    variances = np.array([0.5, 0.0, 2.0])
    noise = IndependentNoise(variances)
    assert np.array_equal(noise.covariance(), np.diag(variances))
    assert np.array_equal(noise.variance(), variances)
    assert noise.factor @ noise.factor.T == pytest.approx(np.diag(variances))
    assert (noise.rows, noise.rank, noise.trace, noise.least, noise.shift) == (3, 2, 2.5, 0.0, 0.0)
    root = np.column_stack([noise.draw(unit) for unit in np.eye(noise.normals_needed)])
    assert root @ root.T == pytest.approx(np.diag(variances))
    variances[0] = 9.0
    assert noise.variance()[0] == 0.5


def test_no_noise_has_no_source():
    assert (no_noise(4).rows, no_noise(4).rank, no_noise(4).trace, no_noise(4).normals_needed) == (4, 0, 0.0, 0)
