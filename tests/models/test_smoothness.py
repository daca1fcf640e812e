"""How smooth f is along a column: against derivatives of the kernel in 50 digits and more."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_oracles import kernel50
from sfumato.models import Derivative, Value, along_column, build_kernel
from sfumato.models.outputs import OutputsKernel, Term

#: Digits of kernels; differences are taken in more of them, as many as their order needs.
DIGITS = 40

RBF = {"kind": "rbf", "lengthscale": [0.7, 1.9]}
RQ = {"kind": "rational_quadratic", "lengthscale": [0.8, 0.4], "alpha": 0.6}
SMOOTH_RQ = {"kind": "rational_quadratic", "lengthscale": 1.3, "alpha": 1e7}
MATERN12, MATERN32, MATERN52 = ({"kind": "matern", "nu": nu, "lengthscale": [0.6, 1.1]} for nu in (0.5, 1.5, 2.5))
PERIODIC = {"kind": "periodic", "lengthscale": [0.5, 2.0], "period_length": [1.5, 0.9]}
SHARP = {"kind": "periodic", "lengthscale": 1e-3, "period_length": 2.0}
COSINE = {"kind": "cosine", "period_length": 1.2, "active_dims": [0]}
MIXTURE = {
    "kind": "spectral_mixture",
    "mixture_weights": [0.6, 1.1],
    "mixture_means": [[0.3, 0.1], [1.2, 0.0]],
    "mixture_scales": [[0.2, 0.5], [0.05, 0.4]],
}
LINEAR = {"kind": "linear", "variance": [0.4, 2.5]}
POLYNOMIAL = {"kind": "polynomial", "offset": 0.7, "power": 3}
TREND = {"kind": "trend", "centre": [-0.6, 0.1], "width": [0.8, 1.7], "power": 3}
INNER_TREND = {"kind": "trend", "centre": [0.7, 1.0], "width": [0.8, 1.7], "power": 3}

ANALYTIC = [RBF, RQ, SMOOTH_RQ, PERIODIC, SHARP, COSINE, MIXTURE]
LOWER, UPPER = np.array([-0.5, 0.2]), np.array([1.0, 1.4])


def product(*parts):
    return {"kind": "product", "kernels": list(parts)}


def total(*parts):
    return {"kind": "sum", "kernels": list(parts)}


def scaled(variance, part):
    return {"kind": "scale", "variance": variance, "kernel": part}


def along(tree, column):
    return along_column(build_kernel(tree, 2), column, None, LOWER, UPPER)


def covariance_of_derivatives(tree, column, order, x, y, by=None):
    """Cov(D f(x), D f(y)), where D takes ``order`` derivatives in ``column`` and one in ``by``."""

    def at(s, t, a=0, b=0):
        first, second = list(x), list(y)
        first[column], second[column] = first[column] + s, second[column] + t
        if by is not None:
            first[by], second[by] = first[by] + a, second[by] + b
        return kernel50(tree, first, second)

    if by is None:
        return mpmath.diff(at, (0, 0), (order, order))
    return mpmath.diff(at, (0, 0, 0, 0), (order, order, 1, 1))


def spectral_moment(tree, column, order):
    """The derivative of order 2·``order`` of k(δ) at δ = 0, from the right: a Matérn kernel bends there."""
    rows = [[mpmath.mpf(0)] * 2, [mpmath.mpf(0)] * 2]

    def value(gap):
        rows[1][column] = gap
        return kernel50(tree, *rows)

    return (-1) ** order * mpmath.diff(value, 0, 2 * order, direction=1)


kernels = st.deferred(
    lambda: (
        st.sampled_from(ANALYTIC)
        | st.builds(product, kernels, kernels)
        | st.builds(total, kernels, kernels)
        | st.builds(scaled, st.floats(0.1, 5.0), kernels)
    )
)


@settings(max_examples=20)
@given(kernels, st.integers(0, 1), st.sampled_from([0, 1, 2, 5, 9]))
def test_standard_deviations_of_derivatives_are_roots_of_spectral_moments(tree, column, order):
    with mpmath.workdps(DIGITS):
        exact = float(mpmath.sqrt(spectral_moment(tree, column, order)))
    found = along(tree, column)
    assert found.derivative(order) == pytest.approx(exact, rel=1e-12)
    assert found.is_stationary
    assert found.variance_degree == 0


@pytest.mark.parametrize(("tree", "orders"), [(MATERN12, 1), (MATERN32, 2), (MATERN52, 3)])
@pytest.mark.parametrize("with_others", [False, True])
def test_rough_kernels_have_as_many_derivatives_as_they_have(tree, orders, with_others):
    tree = total(product(tree, RBF, PERIODIC), scaled(0.3, COSINE)) if with_others else tree
    found = along(tree, 0)
    for order in range(orders):
        with mpmath.workdps(DIGITS):
            exact = float(mpmath.sqrt(spectral_moment(tree, 0, order)))
        assert found.derivative(order) == pytest.approx(exact, rel=1e-12)
    assert all(found.derivative(order) == math.inf for order in range(orders, 11))


@pytest.mark.parametrize(
    "tree",
    [
        LINEAR,
        POLYNOMIAL,
        product(LINEAR, POLYNOMIAL),
        product(LINEAR, RBF),
        total(product(POLYNOMIAL, PERIODIC), scaled(0.5, RQ)),
        {**LINEAR, "variance": 0.7, "active_dims": [1]},
        TREND,
        product(INNER_TREND, PERIODIC),
    ],
)
@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_polynomials_are_bounded_at_every_place_of_the_box(tree, order):
    found = along(tree, 0)
    assert not found.is_stationary
    worst = 0.0
    with mpmath.workdps(DIGITS):
        for x in (LOWER, UPPER, [UPPER[0], UPPER[1]], [0.3, 0.9], [LOWER[0], UPPER[1]]):
            place = [mpmath.mpf(float(value)) for value in x]
            worst = max(worst, float(mpmath.sqrt(abs(covariance_of_derivatives(tree, 0, order, place, place)))))
    assert worst <= found.derivative(order) * (1 + 1e-12) + 1e-30
    # a polynomial by itself is largest at the corner that is farthest from its centre
    if tree in (LINEAR, POLYNOMIAL, TREND):
        assert found.derivative(order) == pytest.approx(worst, rel=1e-12)


@pytest.mark.parametrize(
    "tree",
    [LINEAR, POLYNOMIAL, TREND, product(LINEAR, RBF), total(product(POLYNOMIAL, COSINE), scaled(0.5, RQ)), MATERN32],
)
def test_the_variance_is_a_polynomial_of_the_degree_that_is_said(tree):
    degree = along(tree, 0).variance_degree
    places = np.linspace(LOWER[0], UPPER[0], degree + 2)
    with mpmath.workdps(DIGITS):
        points = [[mpmath.mpf(place), mpmath.mpf("0.9")] for place in places]
        values = np.array([float(kernel50(tree, point, point)) for point in points])
    fitted = np.polynomial.Polynomial.fit(places, values, degree)
    assert fitted(places) == pytest.approx(values, rel=1e-10)
    if degree:
        lower = np.polynomial.Polynomial.fit(places, values, degree - 1)
        assert np.max(np.abs(lower(places) - values)) > 1e-6


OF_OUTPUTS = [
    RBF,
    RQ,
    PERIODIC,
    MIXTURE,
    MATERN52,
    LINEAR,
    POLYNOMIAL,
    TREND,
    product(INNER_TREND, RBF),
    product(RBF, PERIODIC),
    product(MATERN52, COSINE),
    product(LINEAR, RBF),
    total(product(POLYNOMIAL, RBF, PERIODIC), RQ),
]


def of_derivative(tree, column, by):
    term = Term(build_kernel(tree, 2), ((0, Value()), (1, Derivative(by))), np.array([[1.0], [0.6]]))
    return along_column(OutputsKernel([term]), column, 1, LOWER, UPPER)


@pytest.mark.parametrize("tree", OF_OUTPUTS)
@pytest.mark.parametrize("by", [0, 1])
def test_an_output_that_is_a_derivative_is_bounded_along_any_column(tree, by):
    """A product of kernels of the same column has mixed terms; leaving them out once made this too small."""
    rough = "matern" in str(tree)
    found = of_derivative(tree, 0, by)
    place = [mpmath.mpf(float(value)) for value in UPPER]
    for order in (0, 1) if rough else (0, 2):
        with mpmath.workdps(DIGITS):
            step = [0, 0] if not rough else [mpmath.mpf(10) ** -30, 0]
            other = [a + b for a, b in zip(place, step)]
            exact = 0.6 * float(mpmath.sqrt(abs(covariance_of_derivatives(tree, 0, order, place, other, by))))
        assert exact <= found.derivative(order) * (1 + 1e-12)
        if tree in (RBF, RQ, PERIODIC, MIXTURE, MATERN52) or (tree == product(RBF, PERIODIC) and by == 0):
            assert found.derivative(order) == pytest.approx(exact, rel=1e-9)


def test_what_an_output_is_not_known_to_be_is_not_known():
    assert along_column(build_kernel(RBF, 2), 0, None, LOWER, UPPER) is not None
    other = {"kind": "cosine", "period_length": 1.2}
    assert along(other, 0) is None


@settings(max_examples=60)
@given(
    st.sampled_from([MATERN12, MATERN32, RBF, COSINE, SHARP, product(MATERN12, COSINE), total(MATERN12, LINEAR)]),
    st.floats(-7.0, 0.5),
)
def test_f_moves_no_more_than_a_step_says(tree, power):
    gap = 10.0**power
    found = along(tree, 0)
    with mpmath.workdps(DIGITS):
        for share in (0.1, 0.5, 1.0):
            x = [mpmath.mpf("-0.5"), mpmath.mpf(1)]
            y = [x[0] + mpmath.mpf(min(gap, 1.5)) * share, x[1]]
            moved = kernel50(tree, x, x) + kernel50(tree, y, y) - 2 * kernel50(tree, x, y)
            assert float(mpmath.sqrt(abs(moved))) <= found.step(gap) * (1 + 1e-12)


@pytest.mark.parametrize("tree", [MATERN32, product(MATERN32, RBF), product(MATERN32, MATERN32), MATERN52])
@pytest.mark.parametrize("by", [0, 1])
@pytest.mark.parametrize("gap", [1e-6, 1e-2, 0.7])
def test_a_rough_derivative_moves_no_more_than_a_step_says(tree, by, gap):
    found = of_derivative(tree, 0, by)

    with mpmath.workdps(DIGITS):
        tiny = mpmath.mpf(10) ** -30
        x = [mpmath.mpf("0.1"), mpmath.mpf("0.5")]

        def covariance(distance):
            return covariance_of_derivatives(tree, 0, 0, x, [x[0] + distance, x[1]], by)

        moved = 2 * (covariance(tiny) - covariance(mpmath.mpf(gap)))
        assert 0.6 * float(mpmath.sqrt(abs(moved))) <= found.step(gap) * (1 + 1e-9)


def test_products_over_columns_are_told_from_others():
    assert along(total(product(RBF, PERIODIC), MIXTURE), 0).is_product([0, 1])
    for tied in (RQ, MATERN52, LINEAR, POLYNOMIAL):
        assert not along(total(RBF, product(tied, PERIODIC)), 0).is_product([0, 1])
        assert along(total(RBF, product(tied, PERIODIC)), 0).is_product([0])


@pytest.mark.parametrize(
    "tree",
    [
        MATERN12,
        MATERN32,
        MATERN52,
        RBF,
        product(MATERN12, COSINE, RQ),
        total(MATERN32, LINEAR),
        product(MATERN52, POLYNOMIAL),
        product(MATERN12, LINEAR, POLYNOMIAL),
    ],
)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 5, 8])
def test_covariances_have_derivatives_on_either_side_of_zero(tree, order):
    """Whatever f is: its covariance with a row is smooth where the row is not."""
    bound = along(tree, 0).kernel_derivative(order)
    with mpmath.workdps(DIGITS):
        for start in ("-0.5", "0.1"):
            x = [mpmath.mpf(start), mpmath.mpf("1.4")]
            for gap in ("1e-9", "0.02", "0.3", "0.9"):
                found = mpmath.diff(lambda t, x=x: kernel50(tree, x, [x[0] + t, x[1]]), mpmath.mpf(gap), order)
                assert abs(float(found)) <= bound * (1 + 1e-12)
