"""Claims about the smallest ellipsoid, beside a conic solver, brute force and 50-digit arithmetic."""

from __future__ import annotations

import cvxpy as cp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import exact, forward50
from sfumato.errors import InputError
from sfumato.linalg import ellipsoid as design
from sfumato.linalg.ellipsoid import interior_design, smallest_ellipsoid


def random_columns(p: int, m: int, rank: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((p, rank)) @ rng.standard_normal((rank, m)) * np.exp(rng.standard_normal(m))


def smooth_columns(rows: int, new: int, lengthscale: float, noise: float = 0.05) -> np.ndarray:
    """K_*X (K_XX + V)⁻¹ of a smooth process: columns that lie close together."""
    x, z = np.linspace(0.0, 1.0, rows), np.linspace(0.0, 1.0, new)
    near = lambda a, b: np.exp(-((a[:, None] - b) ** 2) / (2 * lengthscale**2))  # noqa: E731
    return near(z, x) @ np.linalg.inv(near(x, x) + noise * np.eye(rows))


def log_det_on(columns: np.ndarray, matrix: np.ndarray) -> float:
    """log det of a matrix on the span of the columns."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    U = U[:, s > 1e-9 * s[0]]
    return float(np.linalg.slogdet(U.T @ matrix @ U)[1])


@pytest.mark.parametrize(("p", "m", "rank"), [(3, 9, 3), (5, 8, 5), (6, 10, 4), (4, 30, 4)])
def test_a_conic_solver_finds_the_same_ellipsoid(p, m, rank):
    C = random_columns(p, m, rank, seed=p * m)
    _, s, W = np.linalg.svd(C, full_matrices=False)
    W = W[:rank]
    weights = cp.Variable(m, nonneg=True)
    problem = cp.Problem(cp.Maximize(cp.log_det(W @ cp.diag(weights) @ W.T)), [cp.sum(weights) == rank])
    problem.solve(solver=cp.CLARABEL)
    found = smallest_ellipsoid(C)
    assert found.log_det == pytest.approx(problem.value + 2 * np.log(s[:rank]).sum(), abs=1e-6)
    np.testing.assert_allclose(found.matrix(), (C * weights.value) @ C.T, atol=1e-3 * np.abs(C).max() ** 2)


def test_no_ellipse_of_a_fine_grid_is_smaller():
    C = np.random.default_rng(3).standard_normal((2, 15))
    turn, aspect = np.meshgrid(np.linspace(0, np.pi, 721), np.exp(np.linspace(-4, 4, 801)))
    along = np.cos(turn)[..., None] * C[0] + np.sin(turn)[..., None] * C[1]
    across = -np.sin(turn)[..., None] * C[0] + np.cos(turn)[..., None] * C[1]
    smallest = 2 * np.log(np.max(along**2 / aspect[..., None] + across**2 * aspect[..., None], axis=-1)).min()
    found = smallest_ellipsoid(C)
    assert found.log_det - 1e-7 <= smallest <= found.log_det + 1e-2


@pytest.mark.parametrize(("p", "m"), [(5, 3), (4, 4), (331, 24)])
def test_independent_columns_have_weight_one_without_a_search(p, m):
    C = random_columns(p, m, m, seed=p + m)
    found = smallest_ellipsoid(C)
    assert found.iterations == 0
    assert found.gap == 0.0
    assert found.weights.tolist() == [1.0] * m
    np.testing.assert_array_equal(found.matrix(), C @ C.T)
    assert found.log_det == pytest.approx(log_det_on(C, C @ C.T), abs=1e-9)


def test_the_closed_form_is_what_the_search_finds():
    W = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    weights, _ = design.optimal_design(W, 1e-9)
    np.testing.assert_allclose(weights, 1.0, rtol=1e-12)
    np.testing.assert_allclose(interior_design(W, 1e-9)[0], 1.0, atol=1e-6)


CASES = {
    "random": random_columns(5, 20, 5, seed=1),
    "more inputs than rank": random_columns(40, 24, 12, seed=2),
    "smooth": smooth_columns(60, 8, 0.2),
    "smooth, rank lost in round-off": smooth_columns(25, 30, 0.4),
    "rows of very different size": random_columns(4, 12, 4, seed=4) * np.array([[1e-6], [1.0], [1e3], [1e6]]),
    "large": 1e150 * random_columns(3, 8, 3, seed=5),
    "small": 1e-150 * random_columns(3, 8, 3, seed=6),
    "one row": np.array([[0.5, -3.0, 2.0]]),
    "a zero column": np.array([[1.0, 0.0, 2.0, 1.0], [0.0, 0.0, 1.0, 1.0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_column_lies_inside_in_50_digits(name):
    C = CASES[name]
    found = smallest_ellipsoid(C)
    assert 0.0 <= found.gap <= 1e-7
    assert np.all(found.weights >= 0.0)
    assert found.weights.sum() == pytest.approx(found.rank, abs=1e-6)
    with mpmath.workdps(50):
        size = mpmath.mpf(np.abs(C).max())
        F = exact(found.factor) / size
        M = F * F.T + mpmath.mpf(found.shift) / size**2 * mpmath.eye(C.shape[0])
        white = forward50(mpmath.cholesky(M), exact(C) / size)
        assert max(np.sum(white**2, axis=0)) <= 1


def test_the_shift_is_far_below_the_noise():
    found = smallest_ellipsoid(CASES["more inputs than rank"])
    assert 0.0 < found.shift < 1e-9 * np.trace(found.matrix()) / 40


@pytest.mark.parametrize("name", ["random", "smooth", "more inputs than rank"])
def test_a_coarse_gap_is_a_true_bound(name):
    C = CASES[name]
    best, rough = smallest_ellipsoid(C, accuracy=1e-9), smallest_ellipsoid(C, accuracy=0.3)
    assert best.log_det - 1e-9 <= rough.log_det <= best.log_det + rough.gap
    assert 1e-4 < rough.gap <= 0.3
    assert rough.reach(C) <= 1.0


@given(st.integers(0, 10**6))
def test_units_of_the_predictions_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    C = random_columns(3, 9, 3, seed)
    A = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    plain, moved = smallest_ellipsoid(C, 1e-9), smallest_ellipsoid(A @ C, 1e-9)
    assert moved.log_det == pytest.approx(plain.log_det + 2 * np.linalg.slogdet(A)[1], abs=1e-7)
    size = np.abs(moved.matrix()).max()
    np.testing.assert_allclose(moved.matrix(), A @ plain.matrix() @ A.T, atol=1e-3 * size)


def test_duplicates_and_signs_change_nothing():
    C = random_columns(4, 9, 4, seed=8)
    doubled = np.hstack([C, -C[:, ::-1], 0.5 * C])
    np.testing.assert_allclose(smallest_ellipsoid(doubled).matrix(), smallest_ellipsoid(C).matrix(), rtol=1e-3)
    assert smallest_ellipsoid(doubled).log_det == pytest.approx(smallest_ellipsoid(C).log_det, abs=2e-7)
    pair = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])
    np.testing.assert_allclose(smallest_ellipsoid(pair).matrix(), np.diag([1.0, 4.0]), rtol=1e-7)


def test_newton_steps_close_the_gap_where_exchanges_creep():
    x = np.random.default_rng(1).uniform(size=(200, 2))
    z = np.random.default_rng(2).uniform(size=(40, 2))
    near = lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1) / 0.08)  # noqa: E731
    C = near(z, x) @ np.linalg.inv(near(x, x) + 0.05 * np.eye(200))
    W = np.linalg.svd(C, full_matrices=False)[2]
    exchanged, _ = design._exchange(W, 1e-7, 400)
    finished, steps = interior_design(W, 1e-7)
    assert design.design_gap(W, exchanged) > 1e-4
    assert design.design_gap(W, finished) <= 1e-7
    assert steps < 30
    assert smallest_ellipsoid(C).gap <= 1e-7


def test_exchanges_alone_reach_the_gap_on_scattered_columns():
    W = np.linalg.svd(random_columns(12, 24, 12, seed=0), full_matrices=False)[2]
    weights, steps = design._exchange(W, 1e-7, 2000)
    assert steps < 2000
    assert design.design_gap(W, weights) <= 1e-7
    np.testing.assert_allclose(weights, interior_design(W, 1e-10)[0], atol=1e-3)


def test_reach_is_infinite_off_the_span_and_zero_for_nothing():
    found = smallest_ellipsoid([[1.0], [0.0]])
    assert found.reach([[2.0], [0.0]]) == pytest.approx(4.0)
    assert found.reach([[1.0], [1e-3]]) == np.inf
    assert found.reach([[0.0], [0.0]]) == 0.0


def test_nothing_to_hold_needs_no_ellipsoid():
    found = smallest_ellipsoid(np.zeros((3, 2)))
    assert found.rank == 0
    assert found.matrix().tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize("columns", [[1.0, 2.0], np.zeros((0, 3)), [[np.nan]], "columns", [[1.0], [2.0, 3.0]]])
def test_what_is_not_a_matrix_is_refused_by_name(columns):
    with pytest.raises(InputError, match="columns"):
        smallest_ellipsoid(columns)


def test_an_impossible_accuracy_is_refused():
    with pytest.raises(InputError, match="accuracy is 0"):
        smallest_ellipsoid([[1.0]], accuracy=0.0)
