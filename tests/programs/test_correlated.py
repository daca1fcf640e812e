"""Least noise for pointwise promises, several priors and mixtures: as little as an SDP solver finds, with a proof."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from oracles import matern32, rbf
from sfumato.linalg.conjugate_gradients import conjugate_gradients
from sfumato.programs.central_path import ColumnSolver, Curvature, Slack, SmallDemand
from sfumato.programs.central_path import least_trace as least_small_trace
from sfumato.programs.correlated import CorrelatedSolution, Subspace, View, correlated_noise
from sfumato.programs.demand import Demand, lower_bound
from sfumato.programs.joint import explaining_root, joint_noise_factor


def least_trace(demands, weights=None):
    """min Tr CΣ over all Σ that meet ``demands``, by CVXPY and Clarabel."""
    import cvxpy

    n = len(demands[0].covariance)
    scale = max(float(np.abs(demand.covariance).max()) for demand in demands)
    sigma = cvxpy.Variable((n, n), PSD=True)
    C = np.eye(n) if weights is None else (np.diag(weights) if weights.ndim == 1 else weights)
    constraints = []
    for demand in demands:
        roots = [demand.root] if demand.joint else list(demand.root.T[:, :, None])
        constraints += [sigma + (demand.covariance - root @ root.T) / scale >> 0 for root in roots]
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(C @ sigma)), constraints)
    with warnings.catch_warnings():
        # "may be inaccurate" means short of 1e-9, which is more than the tests ask for
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value) * scale


def demand_at(X, S, lengthscale, share, joint, noise=0.02, kernel=rbf):
    """The demand that f(S) keeps all but ``share`` of its variance, from textbook formulas."""
    A = kernel(X, X, lengthscale) + noise * np.eye(len(X))
    cross = kernel(X, S, lengthscale)
    if joint:
        return Demand(A, explaining_root(cross, share * (kernel(S, S, lengthscale) + 1e-9 * np.eye(len(S)))), True)
    return Demand(A, cross / np.sqrt(share), False)


def objective(solution, weights=None):
    noise = solution.factor @ solution.factor.T
    if weights is None:
        return float(np.trace(noise))
    return float(np.sum((np.diag(weights) if weights.ndim == 1 else weights) * noise))


def check(solution: CorrelatedSolution, demands, accuracy, weights=None):
    """Every demand is met in float64, the witness is one, and it proves what it is said to prove."""
    noise = solution.factor @ solution.factor.T
    assert all(demand.ratio(noise) <= 1.0 for demand in demands)
    n = len(noise)
    C = np.eye(n) if weights is None else (np.diag(weights) if weights.ndim == 1 else weights)
    together = np.linalg.solve(np.linalg.cholesky(C), np.hstack(solution.witness))
    assert np.linalg.eigvalsh(together @ together.T)[-1] <= 1 + 1e-9
    value = sum(demand.value(part) for demand, part in zip(demands, solution.witness, strict=True))
    cost = objective(solution, weights)
    assert value <= cost
    assert (cost - value) / cost <= accuracy


@pytest.mark.parametrize("seed", range(5))
def test_pointwise_noise_has_the_least_trace(seed):
    rng = np.random.default_rng(seed)
    n, count = int(rng.integers(8, 13)), int(rng.integers(2, 6))
    X = rng.random((n, 2))
    S = 0.3 + 0.4 * rng.random((count, 2))
    demand = demand_at(X, S, 0.3, 0.5, joint=False, kernel=matern32 if seed % 2 else rbf)
    solution = correlated_noise([demand], accuracy=1e-6)
    check(solution, [demand], 1e-6)
    assert objective(solution) == pytest.approx(least_trace([demand]), rel=2e-6)


@pytest.mark.parametrize("seed", range(4))
def test_robust_noise_has_the_least_trace(seed):
    rng = np.random.default_rng(10 + seed)
    X, S = rng.random((int(rng.integers(8, 15)), 1)), 0.4 + 0.2 * rng.random((3, 1))
    demands = [demand_at(X, S, length, 0.4, joint=True) for length in (0.15, 0.3, 0.6)[: 2 + seed % 2]]
    solution = correlated_noise(demands, accuracy=1e-6)
    check(solution, demands, 1e-6)
    assert objective(solution) == pytest.approx(least_trace(demands), rel=2e-6)
    alone = [objective(correlated_noise([demand], accuracy=1e-6)) for demand in demands]
    assert objective(solution) > 1.001 * max(alone)


@pytest.mark.parametrize("seed", range(4))
def test_weighted_noise_of_mixed_demands_has_the_least_weighted_trace(seed):
    rng = np.random.default_rng(20 + seed)
    X = rng.random((9, 2))
    S = 0.3 + 0.4 * rng.random((3, 2))
    demands = [demand_at(X, S, 0.3, 0.5, joint=False), demand_at(X, S[:2], 0.6, 0.4, joint=True)]
    weights = rng.uniform(0.2, 5.0, 9)
    if seed % 2:
        root = rng.standard_normal((9, 9))
        weights = root @ root.T / 9 + 0.3 * np.eye(9)
    solution = correlated_noise(demands, weights, accuracy=1e-6)
    check(solution, demands, 1e-6, weights)
    assert objective(solution, weights) == pytest.approx(least_trace(demands, weights), rel=2e-6)


@pytest.mark.parametrize("rows", [12, 90])
def test_one_joint_demand_has_the_closed_form_as_its_answer(rows):
    rng = np.random.default_rng(30)
    demand = demand_at(rng.random((rows, 2)), 0.3 + 0.4 * rng.random((6, 2)), 0.3, 0.5, joint=True)
    solution = correlated_noise([demand], accuracy=1e-7)
    check(solution, [demand], 1e-7)
    closed = joint_noise_factor(demand.covariance, demand.root @ demand.root.T)
    assert objective(solution) == pytest.approx(np.sum(closed**2), rel=2e-7)
    np.testing.assert_allclose(solution.factor @ solution.factor.T, closed @ closed.T, atol=1e-3 * np.sum(closed**2))
    assert solution.factor.shape[1] == closed.shape[1]


def test_the_values_of_the_paper_example():
    x = np.linspace(0.1, 0.9, 9)[:, None]
    K, S = np.exp(-10 * (x - x.T) ** 2), [2, 4]
    cross, half = K[:, S], 0.5 * K[np.ix_(S, S)]
    found = [
        objective(correlated_noise([Demand(K, cross / np.sqrt(0.5), False)], accuracy=1e-6)),
        objective(correlated_noise([Demand(K, explaining_root(cross, half), True)], accuracy=1e-6)),
        objective(correlated_noise([Demand(K, cross / np.sqrt(0.5), True)], accuracy=1e-6)),
    ]
    assert found == pytest.approx([5.3035, 5.6043, 9.6553], abs=6e-5)


@pytest.mark.parametrize("seed", range(8))
def test_certified_gap_is_reached_on_problems_of_all_kinds(seed):
    rng = np.random.default_rng(40 + seed)
    n = int(rng.choice([6, 30, 60, 90]))
    X = rng.random((n, int(rng.integers(1, 4))))
    demands = []
    for _ in range(int(rng.integers(1, 4))):
        S = rng.uniform(0.2, 0.8, X.shape[1]) + 0.2 * rng.standard_normal((int(rng.integers(1, 20)), X.shape[1]))
        kernel = rbf if rng.random() < 0.5 else matern32
        share, noise = float(rng.choice([0.05, 0.5, 0.9])), float(rng.choice([1e-6, 0.01, 0.3]))
        demands.append(demand_at(X, S, rng.uniform(0.1, 1.0), share, bool(rng.integers(2)), noise, kernel))
    weights = rng.uniform(0.2, 5.0, n) if seed % 3 == 0 else None
    check(correlated_noise(demands, weights, accuracy=1e-6), demands, 1e-6, weights)


def test_only_a_part_of_the_columns_and_directions_is_worked_with():
    rng = np.random.default_rng(50)
    demand = demand_at(rng.random((250, 2)), 0.3 + 0.4 * rng.random((80, 2)), 0.2, 0.5, joint=False)
    heard: list[str] = []
    solution = correlated_noise([demand], accuracy=1e-4, say=heard.append)
    check(solution, [demand], 1e-4)
    words = heard[-1].split()
    assert words[0] == "round"
    assert int(words[2]) < 60
    assert int(words[5]) < 100
    used = np.any(solution.witness[0] != 0, axis=0)
    assert 0 < used.sum() < 60
    assert solution.factor.shape[1] < 20


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    rng = np.random.default_rng(60)
    X, S = rng.random((60, 2)), 0.3 + 0.4 * rng.random((12, 2))
    plain = demand_at(X, S, 0.3, 0.5, joint=False)
    scaled = Demand(scale * plain.covariance, np.sqrt(scale) * plain.root, False)
    first, second = (correlated_noise([demand], accuracy=1e-6) for demand in (plain, scaled))
    check(second, [scaled], 1e-6)
    assert objective(second) == pytest.approx(scale * objective(first), rel=1e-6)


def test_a_start_changes_the_way_and_not_the_answer():
    rng = np.random.default_rng(70)
    X, S = rng.random((100, 2)), 0.3 + 0.4 * rng.random((30, 2))
    demand, harder = demand_at(X, S, 0.25, 0.5, joint=False), demand_at(X, S, 0.25, 0.48, joint=False)
    cold, warm = [], []
    near = correlated_noise([demand], accuracy=1e-3)
    first = correlated_noise([harder], accuracy=1e-5, say=cold.append)
    second = correlated_noise([harder], accuracy=1e-5, start=near.factor, say=warm.append)
    check(second, [harder], 1e-5)
    assert objective(second) == pytest.approx(objective(first), rel=2e-5)
    assert len(warm) < len(cold)
    useless = correlated_noise([harder], accuracy=1e-5, start=10 * rng.standard_normal((100, 3)))
    check(useless, [harder], 1e-5)
    assert objective(useless) == pytest.approx(objective(first), rel=2e-5)


def test_demands_that_are_met_already_need_no_noise():
    demands = [Demand(np.eye(4), 0.9 * np.eye(4), False), Demand(2 * np.eye(4), np.eye(4)[:, :2], True)]
    solution = correlated_noise(demands)
    assert solution.factor.shape == (4, 0)
    assert [part.shape[0] for part in solution.witness] == [4, 4]


def test_demands_without_columns_ask_for_nothing():
    empty = [Demand(np.eye(3), np.zeros((3, 0)), joint) for joint in (False, True)]
    assert correlated_noise([]).witness == ()
    assert correlated_noise(empty).factor.shape == (3, 0)
    real = Demand(np.eye(3), 3 * np.eye(3)[:, ::-1], False)
    witness = correlated_noise([*empty, real], accuracy=1e-6).witness
    assert lower_bound([*empty, real], witness) == pytest.approx(24.0, rel=1e-5)


def test_a_demand_that_is_met_with_nothing_to_spare_stays_met():
    rng = np.random.default_rng(80)
    A = rbf(rng.random((20, 2)), rng.random((20, 2)), 0.5)
    A = A @ A.T + 0.01 * np.eye(20)
    U = rng.standard_normal((20, 6))
    U /= np.sqrt(np.sum(U * np.linalg.solve(A, U), axis=0))
    for scale in (1.0, 1.0 + 1e-12, np.array([1.0, 1.0, 1.0, 1.5, 1.0, 1.0 - 1e-9])):
        demand = Demand(A, U * scale, False)
        factor = correlated_noise([demand]).factor
        assert demand.ratio(factor @ factor.T) <= 1.0


def test_the_same_point_twice_is_the_same_promise():
    rng = np.random.default_rng(90)
    X, S = rng.random((30, 2)), 0.3 + 0.4 * rng.random((5, 2))
    once, twice = demand_at(X, S, 0.3, 0.5, joint=False), demand_at(X, np.vstack([S, S, S]), 0.3, 0.5, joint=False)
    first, second = (correlated_noise([demand], accuracy=1e-6) for demand in (once, twice))
    check(second, [twice], 1e-6)
    assert objective(second) == pytest.approx(objective(first), rel=2e-6)
    both = correlated_noise([once, once], accuracy=1e-6)
    assert objective(both) == pytest.approx(objective(first), rel=2e-6)


@pytest.mark.parametrize("joint", [False, True])
def test_a_nearly_singular_covariance_is_no_obstacle(joint):
    rng = np.random.default_rng(100)
    X, S = rng.random((80, 2)), 0.3 + 0.4 * rng.random((10, 2))
    demands = [demand_at(X, S, length, 0.5, joint, noise=1e-10) for length in (0.5, 0.8)]
    assert min(np.linalg.cond(demand.covariance) for demand in demands) > 1e11
    check(correlated_noise(demands, accuracy=1e-5), demands, 1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_pointwise_noise_lies_between_that_of_one_point_and_the_joint_noise(seed):
    rng = np.random.default_rng(110 + seed)
    X, S = rng.random((40, 2)), 0.3 + 0.4 * rng.random((8, 2))
    pointwise, joint = (demand_at(X, S, 0.3, 0.5, kind, kernel=matern32) for kind in (False, True))
    cost = objective(correlated_noise([pointwise], accuracy=1e-6))
    alone = [joint_noise_factor(pointwise.covariance, np.outer(u, u)) for u in pointwise.root.T]
    together = joint_noise_factor(joint.covariance, joint.root @ joint.root.T)
    assert max(np.sum(factor**2) for factor in alone) < cost < np.sum(together**2)


def small_problem(joint):
    rng = np.random.default_rng(120)
    demand = demand_at(rng.random((30, 2)), 0.3 + 0.4 * rng.random((4, 2)), 0.3, 0.5, joint)
    view = View(demand, np.linalg.cholesky(demand.covariance))
    space = Subspace([view], 30, whole=False)
    space.grow(np.hstack([demand.root, rng.standard_normal((30, 3))]))
    small = space.compress([np.arange(4)])[0][0]
    return demand, view, space, small, rng


@pytest.mark.parametrize("joint", [False, True])
def test_a_demand_on_t_is_the_demand_on_the_noise(joint):
    demand, view, space, small, rng = small_problem(joint)
    inner = rng.standard_normal((7, 7))
    factor = space.columns @ inner
    learnt = demand.root.T @ np.linalg.solve(demand.covariance + factor @ factor.T, demand.root)
    learnt = learnt if joint else np.diag(learnt)
    one = np.eye(4) if joint else np.ones(4)
    np.testing.assert_allclose(one - Slack(small, inner).slack, learnt, atol=1e-10)
    np.testing.assert_allclose(view.learnt(view.whiten(factor)), learnt, atol=1e-10)


@pytest.mark.parametrize("joint", [False, True])
def test_curvature_is_the_derivative_of_the_gradient(joint):
    _, _, _, small, rng = small_problem(joint)
    root = rng.standard_normal((7, 7))
    T = 50 * np.eye(7) + root @ root.T
    D = root + root.T
    level, step = 0.7, 1e-5

    def push(matrix):
        return Curvature(Slack(small, np.linalg.cholesky(matrix)), np.eye(7), None, level).push(level)

    at = Slack(small, np.linalg.cholesky(T))
    assert np.isfinite(at.log)
    expected = -(push(T + step * D) - push(T - step * D)) / (2 * step)
    np.testing.assert_allclose(Curvature(at, np.eye(7), None, level).product(D), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("joint", [False, True])
def test_the_column_solver_is_symmetric_positive_and_close_to_the_inverse(joint):
    small = small_problem(joint)[3]
    near = least_small_trace([small], 50 * np.eye(7), 1e-6)
    values, basis = near.values, near.basis
    part = Curvature(Slack(small, basis * np.sqrt(values)), basis, near.multipliers[0], near.level)
    dual = np.diag(near.level / values)
    solver = ColumnSolver([part], values, dual)
    units = [np.zeros((7, 7)) for _ in range(28)]
    for unit, (i, j) in zip(units, zip(*np.triu_indices(7))):
        unit[i, j] = unit[j, i] = 1.0 if i == j else np.sqrt(0.5)

    def dense(action):
        return np.array([[np.sum(a * action(b)) for b in units] for a in units])

    inverse = dense(solver)
    curvature = dense(lambda D: (D / values[:, None]) @ dual + part.product(D))
    np.testing.assert_allclose(inverse, inverse.T, rtol=1e-9, atol=1e-9 * np.abs(inverse).max())
    assert np.linalg.eigvalsh((inverse + inverse.T) / 2)[0] > 0
    spectrum = np.sort(np.linalg.eigvals(inverse @ curvature).real)
    assert np.linalg.cond(curvature) > 1e4
    assert spectrum[-1] < 10 * spectrum[0]


def test_conjugate_gradients_solve_a_matrix_equation():
    rng = np.random.default_rng(130)
    root = rng.standard_normal((6, 6))
    A, right = root @ root.T + np.eye(6), rng.standard_normal((6, 3))
    solved = conjugate_gradients(lambda X: A @ X, lambda X: X, right, 1e-12, 200)
    np.testing.assert_allclose(A @ solved, right, atol=1e-9)
    assert np.all(conjugate_gradients(lambda X: A @ X, lambda X: X, 0 * right, 1e-12, 200) == 0)


def test_a_small_demand_counts_its_columns():
    assert SmallDemand(np.eye(3), np.ones((3, 2)), True).count == 2
