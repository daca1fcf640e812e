"""Example 1 of the paper: nine inputs, one sensitive, half of its variance to be kept."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import rbf


@pytest.fixture(scope="module")
def example():
    prior = sf.Prior(kernel=rbf(20**-0.5))
    return sf.protect(prior, np.arange(1, 10) / 10, sf.Points([[0.5]]), alpha=0.5)


def test_the_trace_is_the_papers(example):
    assert example.noise.trace == pytest.approx(3.545614, abs=1e-6)
    assert example.certificate.trace == example.noise.trace


def test_the_diagonal_is_the_papers(example):
    half = [0.001848, 0.065548, 0.342827, 0.820745, 1.083677]
    assert example.noise.variance() == pytest.approx([*half, *half[-2::-1]], abs=1e-6)


def test_the_noise_has_one_source_and_no_shift(example):
    assert example.noise.factor.shape == (9, 1)
    assert example.noise.shift == 0.0


def test_the_variance_at_the_sensitive_input_is_exactly_one_half(example):
    release = example.release(np.zeros(9))
    assert release.predict([[0.5]]).std ** 2 == pytest.approx(0.5, abs=1e-6)
    assert example.certificate.holds
    assert example.certificate.worst_input == pytest.approx([0.5])


def test_the_variance_far_from_it_stays_small(example):
    release = example.release(np.zeros(9))
    assert release.predict([[0.0]]).std ** 2 == pytest.approx(0.00402, abs=1e-5)


def test_the_gap_to_the_optimum_is_round_off(example):
    assert 0.0 <= example.certificate.gap <= 1e-8
    assert example.certificate.trace_lower <= example.certificate.trace


def test_joint_tolerances_on_two_points_give_the_known_traces():
    prior = sf.Prior(kernel=rbf(20**-0.5))
    x, points = np.arange(1, 10) / 10, sf.Points([[0.3], [0.5]])
    assert sf.protect(prior, x, points, alpha=0.5).noise.trace == pytest.approx(5.6043, abs=1e-4)
    explicit = sf.protect(prior, x, points, tolerance=sf.MatrixTolerance(np.eye(2) / 2))
    assert explicit.noise.trace == pytest.approx(9.6553, abs=1e-4)
    assert explicit.certificate.holds


def test_the_least_independent_noise_is_six_times_as_much():
    prior = sf.Prior(kernel=rbf(20**-0.5))
    mechanism = sf.protect(prior, np.arange(1, 10) / 10, sf.Points([[0.5]]), alpha=0.5, structure="diagonal")
    half = [0.0, 0.9492, 2.5389, 4.1379, 4.8208]
    assert mechanism.certificate.holds
    assert mechanism.noise.trace == pytest.approx(20.0729, abs=1e-4)
    assert mechanism.noise.variance() == pytest.approx([*half, *half[-2::-1]], abs=1e-3)
    assert mechanism.certificate.gap <= 1e-6
    release = mechanism.release(np.zeros(9))
    assert release.predict([[0.5]]).std ** 2 == pytest.approx(0.5, abs=1e-4)
    assert release.predict([[0.0]]).std ** 2 == pytest.approx(0.1510, abs=1e-3)


def test_pointwise_noise_on_two_points_has_the_known_trace_and_joint_needs_more():
    prior = sf.Prior(kernel=rbf(20**-0.5))
    x, points = np.arange(1, 10) / 10, sf.Points([[0.3], [0.5]])
    pointwise = sf.protect(prior, x, points, alpha=0.5, guarantee="pointwise")
    assert pointwise.certificate.holds
    assert pointwise.noise.trace == pytest.approx(5.3035, abs=1e-4)
    assert pointwise.certificate.gap <= 1e-4
    assert pointwise.certificate.joint_ratio > 1.001


@pytest.fixture(scope="module")
def figure():
    from sfumato.paper.example import draw_figure_1
    from sfumato.paper.example import example as designed

    made = designed()
    return made, draw_figure_1(made)


def test_figure_1_shows_the_covariance_both_variances_and_what_readers_do_not_know(figure):
    made, drawn = figure
    left, middle, right = drawn.axes[:3]
    assert np.allclose(left.images[0].get_array(), made.correlated.noise.covariance())
    heights = [bar.get_height() for bar in middle.patches]
    assert heights == pytest.approx([*made.independent.noise.variance(), *made.correlated.noise.variance()])
    independent, correlated, bare = (line.get_ydata() for line in right.lines[:3])
    assert correlated[250] == pytest.approx(0.5, abs=1e-6)
    assert independent[250] == pytest.approx(0.5, abs=1e-4)
    assert np.all(bare <= correlated + 1e-9)
    assert independent[0] > 30 * correlated[0]
