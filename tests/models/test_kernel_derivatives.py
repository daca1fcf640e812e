"""Derivatives of kernels are those of the textbook formulas, to the last digits, at a = b and far from the origin."""

from __future__ import annotations

import gpytorch.kernels as gk
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_oracles import jet50
from sfumato.errors import InputError
from sfumato.models.kernel_values import (
    kernel_diagonal,
    kernel_jet,
    kernel_jet_diagonal,
    kernel_matrix,
    require_derivative,
    with_exact_distances,
)
from sfumato.models.trees import build_kernel

RNG = np.random.default_rng(5)
A = RNG.uniform(-1.0, 1.5, (4, 2))
B = np.vstack([RNG.uniform(-1.0, 1.5, (2, 2)), A[:2], [[A[2, 0], 0.3]]])

RBF = {"kind": "rbf", "lengthscale": 0.7}
LEAVES = {
    "rbf": {"kind": "rbf", "lengthscale": [0.6, 1.3]},
    "matern32": {"kind": "matern", "nu": 1.5, "lengthscale": 0.8},
    "matern32 ard": {"kind": "matern", "nu": 1.5, "lengthscale": [0.5, 1.1]},
    "matern52": {"kind": "matern", "nu": 2.5, "lengthscale": [0.9, 0.4]},
    "rational quadratic": {"kind": "rational_quadratic", "alpha": 1.7, "lengthscale": [0.9, 0.4]},
    "periodic": {"kind": "periodic", "lengthscale": 0.9, "period_length": 1.3},
    "periodic ard": {"kind": "periodic", "lengthscale": [0.9, 2.0], "period_length": [1.3, 0.7]},
    "cosine": {"kind": "cosine", "period_length": 1.9},
    "spectral mixture": {
        "kind": "spectral_mixture",
        "mixture_weights": [0.7, 0.2, 1.1],
        "mixture_means": [[0.9, 0.3], [0.0, 1.4], [2.1, 0.2]],
        "mixture_scales": [[0.2, 0.5], [0.6, 0.1], [0.05, 0.3]],
    },
    "linear": {"kind": "linear", "variance": [0.3, 2.0]},
    "line": {"kind": "linear", "variance": 0.3},
    "polynomial 1": {"kind": "polynomial", "power": 1, "offset": 0.7},
    "polynomial 2": {"kind": "polynomial", "power": 2, "offset": 0.7},
    "polynomial 3": {"kind": "polynomial", "power": 3, "offset": 0.7},
    "trend 1": {"kind": "trend", "power": 1, "centre": 0.2, "width": 1.3},
    "trend 3": {"kind": "trend", "power": 3, "centre": [0.2, -1.0], "width": [1.3, 0.6]},
    "constant": {"kind": "constant", "constant": 2.0},
}
COMPOSED = {
    "scale": {"kind": "scale", "variance": 2.5, "kernel": LEAVES["rbf"]},
    "scale of one column": {"kind": "scale", "variance": 2.5, "kernel": {**RBF, "active_dims": [1]}},
    "columns swapped": {**LEAVES["rbf"], "active_dims": [1, 0]},
    "one column twice": {"kind": "rbf", "lengthscale": [0.6, 1.3], "active_dims": [0, 0]},
    "waves of one column twice": {**LEAVES["spectral mixture"], "active_dims": [0, 0]},
    "waves times a line": {
        "kind": "product",
        "kernels": [{**LEAVES["spectral mixture"], "active_dims": [1, 0]}, LEAVES["linear"]],
    },
    "columns of columns": {"kind": "sum", "active_dims": [1, 0], "kernels": [{**RBF, "active_dims": [0]}, RBF]},
    "sum": {"kind": "sum", "kernels": [RBF, LEAVES["linear"], LEAVES["constant"]]},
    "product": {"kind": "product", "kernels": [LEAVES["matern52"], LEAVES["linear"], LEAVES["periodic"]]},
    "product of other columns": {
        "kind": "product",
        "kernels": [{**RBF, "active_dims": [0]}, {"kind": "matern", "nu": 1.5, "lengthscale": 0.8, "active_dims": [1]}],
    },
    "product of sums": {
        "kind": "scale",
        "variance": 0.4,
        "kernel": {
            "kind": "product",
            "kernels": [
                {"kind": "sum", "kernels": [RBF, LEAVES["polynomial 3"]]},
                {"kind": "sum", "kernels": [LEAVES["rational quadratic"], {"kind": "constant", "constant": 0.5}]},
            ],
        },
    },
}
TREES = {**LEAVES, **COMPOSED}
SIDES = [(left, right) for left in (None, 0, 1) for right in (None, 0, 1)]


def kernel_of(tree):
    return with_exact_distances(build_kernel(tree))


def jet(tree, a, b, left, right):
    return kernel_jet(kernel_of(tree), torch.from_numpy(np.array(a)), torch.from_numpy(np.array(b)), left, right)


def close(actual, expected, tolerance=1e-12):
    assert actual.shape == expected.shape
    assert np.abs(np.asarray(actual) - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("kind", sorted(TREES))
def test_derivatives_are_those_of_the_formula(kind):
    for left, right in SIDES:
        close(jet(TREES[kind], A, B, left, right), jet50(TREES[kind], A, B, left, right))


@pytest.mark.parametrize("kind", sorted(TREES))
def test_the_diagonal_is_that_of_the_matrix(kind):
    kernel, rows = kernel_of(TREES[kind]), torch.from_numpy(A)
    for left, right in SIDES:
        diagonal = kernel_jet_diagonal(kernel, rows, left, right)
        close(diagonal, kernel_jet(kernel, rows, rows, left, right).diagonal().numpy())
        close(diagonal, np.diag(jet50(TREES[kind], A, A, left, right)))


def test_without_derivatives_it_is_the_kernel():
    kernel, a, b = kernel_of(COMPOSED["product"]), torch.from_numpy(A), torch.from_numpy(B)
    assert torch.equal(kernel_jet(kernel, a, b, None, None), kernel_matrix(kernel, a, b))
    assert torch.equal(kernel_jet_diagonal(kernel, a, None, None), kernel_diagonal(kernel, a))


@pytest.mark.parametrize("kind", ["rbf", "matern32", "matern52", "rational quadratic", "periodic", "cosine"])
def test_derivatives_are_exact_far_from_the_origin(kind):
    x = 1.7e9 + np.sort(RNG.uniform(0.0, 3.0, (6, 1)), axis=0)
    tree = dict(TREES[kind]) | {key: 0.37 for key in ("lengthscale", "period_length") if key in TREES[kind]}
    for left, right in [(0, None), (None, 0), (0, 0)]:
        close(jet(tree, x, x, left, right), jet50(tree, x, x, left, right), 1e-12)


@pytest.mark.parametrize("turns", [3.0, 1e4, 1e8])
def test_waves_are_exact_after_many_turns(turns):
    tree = {
        "kind": "spectral_mixture",
        "mixture_weights": [1.0, 0.5],
        "mixture_means": [[0.71], [0.1]],
        "mixture_scales": [[0.1 / turns], [1e-9]],
    }
    a, b = 5.0e6 + np.array([[0.0], [turns / 3.0], [turns * 1.1]]), 5.0e6 + np.array([[0.1], [turns]])
    for left, right in [(None, None), (0, None), (None, 0), (0, 0)]:
        close(jet(tree, a, b, left, right), jet50(tree, a, b, left, right), 1e-14)


def test_a_whole_number_of_periods_away_is_the_same_place():
    tree = {"kind": "periodic", "lengthscale": 1.0, "period_length": 0.75}
    x = np.array([[0.0], [0.25]])
    for left, right in [(0, None), (None, 0), (0, 0)]:
        close(jet(tree, x + 0.75 * 2**30, x, left, right), jet50(tree, x, x, left, right))


@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-170, 1e-100, 1e-9])
@pytest.mark.parametrize("kind", ["rbf", "matern32", "matern52", "rational quadratic", "cosine", "spectral mixture"])
def test_nearly_equal_inputs_give_the_limit(kind, gap):
    a, b = np.array([[gap, 0.0]]), np.zeros((1, 2))
    close(jet(LEAVES[kind], a, b, 0, 0), jet50(LEAVES[kind], np.zeros((1, 2)), b, 0, 0), 1e-7)
    close(jet(LEAVES[kind], a, b, 0, 1), np.zeros((1, 1)), 1e-12)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_a_polynomial_has_derivatives_where_it_is_zero(power):
    tree = {"kind": "polynomial", "power": power, "offset": 0.5}
    a, b = np.array([[1.0, 2.0]]), np.array([[-0.5, 0.0]])
    for left, right in SIDES:
        close(jet(tree, a, b, left, right), jet50(tree, a, b, left, right))


class _Odd(gk.RBFKernel):
    pass


@pytest.mark.parametrize(
    "kernel",
    [gk.RBFKernel(active_dims=[1]), gk.MaternKernel(nu=0.5, active_dims=[1]), _Odd(active_dims=[1])],
    ids=["smooth", "rough", "unknown"],
)
def test_a_column_that_the_kernel_does_not_look_at_has_derivative_zero(kernel):
    rows = torch.from_numpy(A)
    for left, right in [(0, None), (None, 0), (0, 0)]:
        assert torch.equal(kernel_jet(kernel.double(), rows, rows, left, right), torch.zeros(4, 4).double())
    assert kernel_jet(kernel, rows, rows, None, None).count_nonzero() == 16


def test_a_rough_factor_in_another_column_is_no_trouble():
    rough = {"kind": "matern", "nu": 0.5, "lengthscale": 0.8, "active_dims": [1]}
    tree = {"kind": "product", "kernels": [{**RBF, "active_dims": [0]}, rough]}
    close(jet(tree, A, B, 0, 0), jet50(tree, A, B, 0, 0))
    with pytest.raises(InputError, match=r"nu=0\.5"):
        jet(tree, A, B, 1, None)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (gk.MaternKernel(nu=0.5), r"nu=0\.5, whose functions have no derivative; use nu=1\.5"),
        (gk.ScaleKernel(gk.RBFKernel() * gk.MaternKernel(nu=0.5)), r"nu=0\.5"),
        (gk.SpectralDeltaKernel(num_dims=2), r"class SpectralDeltaKernel.*use RBFKernel, MaternKernel"),
        (gk.RBFKernel() + _Odd(), r"class _Odd"),
    ],
    ids=["matern12", "inside", "unknown", "subclass"],
)
def test_what_has_no_known_derivative_is_refused(kernel, words):
    rows = torch.from_numpy(A)
    for left, right in [(0, None), (None, 0), (0, 0)]:
        with pytest.raises(InputError, match=words):
            kernel_jet(kernel.double(), rows, rows, left, right)
        with pytest.raises(InputError, match=words):
            kernel_jet_diagonal(kernel.double(), rows, left, right)
    with pytest.raises(InputError, match=words):
        require_derivative(kernel, 0)


@pytest.mark.parametrize("column", [-1, 2])
def test_a_column_that_is_not_there_is_refused(column):
    with pytest.raises(InputError, match=r"column is -?\d, but the inputs have 2 feature"):
        jet(RBF, A, A, column, None)


@given(st.sampled_from(sorted(TREES)), st.sampled_from(SIDES), st.integers(1, 5), st.integers(1, 5))
def test_swapping_the_sides_transposes(kind, sides, rows, columns):
    rng = np.random.default_rng(rows * 10 + columns)
    a, b = rng.normal(size=(rows, 2)), rng.normal(size=(columns, 2))
    left, right = sides
    forth, back = jet(TREES[kind], a, b, left, right), jet(TREES[kind], b, a, right, left)
    assert forth.shape == (rows, columns)
    close(forth, back.T.numpy(), 1e-13)
