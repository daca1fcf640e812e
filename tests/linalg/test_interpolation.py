"""Interpolation at Chebyshev nodes and Bernstein coefficients: against 50 digits and against many places."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.arrays import UNIT
from sfumato.linalg import (
    halves,
    interpolation_nodes,
    interpolation_weights,
    lebesgue,
    pairs,
    quadratic,
    smooth_error,
    values_to_bernstein,
)

DEGREES = [1, 2, 3, 4, 5, 6, 8]
DENSE = np.linspace(-1.0, 1.0, 20_001)


def bernstein(coefficients, x):
    """The polynomial with these coefficients on [0, 1], in mpmath."""
    degree = len(coefficients) - 1
    terms = (c * mpmath.binomial(degree, k) * x**k * (1 - x) ** (degree - k) for k, c in enumerate(coefficients))
    return mpmath.fsum(terms)


def weights50(degree, x):
    """The Lagrange polynomials of the nodes, as they are in float64, at x."""
    own = [mpmath.mpf(float(node)) for node in interpolation_nodes(degree)]
    return [
        mpmath.fprod((x - other) / (node - other) for other in own if other != node) if len(own) > 1 else mpmath.mpf(1)
        for node in own
    ]


@pytest.mark.parametrize("degree", DEGREES)
def test_neighbouring_boxes_share_their_nodes(degree):
    own = interpolation_nodes(degree)
    assert own[0] == -1.0
    assert own[-1] == 1.0
    assert np.array_equal(own, -own[::-1])
    with mpmath.workdps(50):
        exact = [float(-mpmath.cos(mpmath.pi * j / degree)) for j in range(degree + 1)]
    assert own == pytest.approx(exact, abs=2 * UNIT)


@pytest.mark.parametrize("degree", DEGREES)
def test_weights_are_those_of_the_polynomial_through_the_nodes(degree):
    places = np.append(np.linspace(-1.0, 1.0, 7), interpolation_nodes(degree))
    with mpmath.workdps(50):
        exact = np.array([[float(w) for w in weights50(degree, mpmath.mpf(float(x)))] for x in places])
    assert interpolation_weights(degree, places) == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("degree", DEGREES)
def test_the_lebesgue_constant_bounds_the_weights_and_is_hardly_more(degree):
    largest = float(np.max(np.sum(np.abs(interpolation_weights(degree, DENSE)), axis=1)))
    assert largest * (1 - 1e-14) <= lebesgue(degree) <= largest * 1.001


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("half", [0.3, 1.0, 2.0])
def test_the_error_bound_is_attained_by_the_next_power(degree, half):
    """x^{m+1} has the derivative (m+1)!, and nothing has a larger error for its derivative."""
    nodes, dense = half * interpolation_nodes(degree), half * DENSE
    error = np.abs(dense ** (degree + 1) - interpolation_weights(degree, DENSE) @ nodes ** (degree + 1))
    bound = smooth_error(degree, half, float(np.prod(np.arange(1.0, degree + 2.0))))
    assert float(np.max(error)) * (1 - 1e-13) <= bound <= float(np.max(error)) * 1.001


@settings(max_examples=30)
@given(st.sampled_from(DEGREES), st.floats(0.05, 3.0), st.floats(0.5, 6.0), st.floats(0.0, 6.0))
def test_waves_keep_within_the_error_bound(degree, half, frequency, phase):
    nodes, dense = half * interpolation_nodes(degree), half * DENSE
    error = np.abs(
        np.sin(frequency * dense + phase) - interpolation_weights(degree, DENSE) @ np.sin(frequency * nodes + phase)
    )
    assert float(np.max(error)) <= smooth_error(degree, half, frequency ** (degree + 1)) + 1e-14


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_bernstein_coefficients_of_products_of_weights_are_right_to_the_round_off_that_is_said(degree, count):
    """Those of the degree that they have, and where there is time of a higher one."""
    found = quadratic(degree, count, 2 * degree + (3 if degree < 5 else 0))
    with mpmath.workdps(50):
        for part in range(count):
            for number, (i, j) in enumerate(zip(*pairs(degree), strict=True)):
                coefficients = [mpmath.mpf(float(c)) for c in found.maps[part][:, number]]
                for share in ("0", "0.21", "0.5", "0.94", "1"):
                    x = -1 + (2 * part + 2 * mpmath.mpf(share)) / mpmath.mpf(count)
                    w = weights50(degree, x)
                    wrong = abs(bernstein(coefficients, mpmath.mpf(share)) - w[i] * w[j])
                    assert wrong <= found.rounding * found.growth


@pytest.mark.parametrize(("degree", "raised"), [(0, 2), (1, 2), (2, 2), (2, 8), (4, 6), (6, 16)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_bernstein_coefficients_of_values_are_right_to_the_round_off_that_is_said(degree, raised, count):
    found = values_to_bernstein(degree, count, raised)
    with mpmath.workdps(50):
        for part in range(count):
            for node in range(degree + 1):
                coefficients = [mpmath.mpf(float(c)) for c in found.maps[part][:, node]]
                for share in ("0", "0.3", "1"):
                    x = -1 + (2 * part + 2 * mpmath.mpf(share)) / mpmath.mpf(count)
                    wrong = abs(bernstein(coefficients, mpmath.mpf(share)) - weights50(degree, x)[node])
                    assert wrong <= found.rounding * found.growth


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_errors_of_a_matrix_grow_no_more_than_is_said(degree, count):
    found = quadratic(degree, count, 2 * degree)
    first, second = pairs(degree)
    twice = np.where(first == second, 1.0, 2.0)
    assert np.max(np.abs(found.maps) @ twice) <= found.growth
    # every entry of an error matrix is at most 1 in size
    rng = np.random.default_rng(degree)
    wrong = rng.uniform(-1.0, 1.0, (200, degree + 1, degree + 1))
    folded = wrong[:, first, second] + np.where(first == second, 0.0, wrong[:, second, first])
    assert np.max(np.abs(folded @ found.flat.T)) <= found.growth


@settings(max_examples=30)
@given(st.sampled_from(DEGREES), st.sampled_from([1, 2, 4]), st.integers(0, 10_000))
def test_a_polynomial_lies_between_its_coefficients_and_equals_those_at_the_ends(degree, count, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((degree + 1, 2))
    matrix = root @ root.T
    first, second = pairs(degree)
    folded = matrix[first, second] * np.where(first == second, 1.0, 2.0)
    coefficients = (quadratic(degree, count, 2 * degree).flat @ folded).reshape(count, -1)
    lower, upper = halves(coefficients, 1)
    for own, parts in ((coefficients, count), (np.stack([lower, upper], axis=1).reshape(2 * count, -1), 2 * count)):
        for part, ends in enumerate(own):
            places = -1.0 + (2.0 * part + 2.0 * np.linspace(0.0, 1.0, 401)) / parts
            w = interpolation_weights(degree, places)
            values = np.einsum("ij,jk,ik->i", w, matrix, w)
            scale = 1e-11 * np.max(np.abs(matrix))
            assert np.min(ends) - scale <= np.min(values)
            assert np.max(values) <= np.max(ends) + scale
            assert ends[[0, -1]] == pytest.approx(values[[0, -1]], abs=scale)


def test_an_interval_that_is_too_long_for_numbers_has_an_infinite_error():
    assert smooth_error(4, 1e200, 1.0) == np.inf
