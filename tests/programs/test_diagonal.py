"""Independent noise: exactly feasible, and as little as a general-purpose SDP solver finds."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest

from oracles import DIGITS, exact, forward50, matern32, rbf
from sfumato.errors import GuaranteeError, InputError
from sfumato.programs import diagonal as sifting
from sfumato.programs.demand import Demand, lower_bound
from sfumato.programs.diagonal import Conditioned, diagonal_noise, sift
from sfumato.programs.diagonal_solver import (
    LearntMultiplier,
    WholeMultiplier,
    farthest,
    interior_point,
    longest,
    newton,
    start,
)
from sfumato.programs.joint import explaining_root


def kernel_demand(rng, n, sensitive, joint=True, lengthscale=0.3, noise=0.05, alpha=0.5, smooth=False) -> Demand:
    """A demand as a region makes it: n rows in the plane, some sensitive inputs near the first ones."""
    X = rng.random((n, 2))
    S = X[:sensitive] + 0.02 * rng.standard_normal((sensitive, 2))
    kernel = rbf if smooth else matern32
    cross, inside = kernel(X, S, lengthscale), kernel(S, S, lengthscale)
    root = explaining_root(cross, alpha * inside) if joint else cross / np.sqrt(alpha)
    return Demand(kernel(X, X, lengthscale) + noise * np.eye(n), root, joint)


def random_demand(rng, n, columns, joint=True, size=2.0) -> Demand:
    """A demand with entries of either sign, which no kernel has to have."""
    orthogonal = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = (orthogonal * np.logspace(0, -2, n)) @ orthogonal.T
    return Demand((A + A.T) / 2, size * rng.standard_normal((n, columns)) / np.sqrt(n), joint)


def least_diagonal(demands, weights=None) -> float:
    """min Σ c_i d_i subject to Diag(d) ⪰ B for every B, by CVXPY and Clarabel."""
    import cvxpy

    n = demands[0].covariance.shape[0]
    roots = [r for q in demands for r in ([q.root] if q.joint else [q.root[:, [s]] for s in range(q.root.shape[1])])]
    covers = [q.covariance for q in demands for _ in range(1 if q.joint else q.root.shape[1])]
    targets = [r @ r.T - A for r, A in zip(roots, covers, strict=True)]
    scale = max(float(np.abs(B).max()) for B in targets)
    d = cvxpy.Variable(n, nonneg=True)
    constraints = [cvxpy.diag(d) - (B + B.T) / (2 * scale) >> 0 for B in targets]
    problem = cvxpy.Problem(cvxpy.Minimize((np.ones(n) if weights is None else weights) @ d), constraints)
    with warnings.catch_warnings():
        # "may be inaccurate" means short of 1e-9, which is more than the tests ask for
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(problem.value) * scale


def check(demands, weights=None, accuracy=1e-7):
    """Solves, and checks everything that is promised of any solution."""
    solution = diagonal_noise(demands, weights, accuracy)
    costs = np.ones(len(solution.variances)) if weights is None else weights
    objective = float(costs @ solution.variances)
    assert np.all(solution.variances >= 0.0)
    assert max(demand.ratio(np.diag(solution.variances)) for demand in demands) <= 1.0
    # what the witness proves, seen in units where every row counts the same
    root = np.sqrt(costs)
    scaled = [Demand(root[:, None] * q.covariance * root, root[:, None] * q.root, q.joint) for q in demands]
    seen = [part / root[:, None] for part in solution.witness]
    lower = lower_bound(scaled, seen, diagonal=True)
    assert 0.0 <= lower <= objective
    assert objective - lower <= accuracy * objective
    return solution


def test_example_one_of_the_paper():
    x = np.arange(1, 10)[:, None] / 10
    A, k = np.exp(-10 * (x - x.T) ** 2), np.exp(-10 * (x - 0.5) ** 2)
    solution = check([Demand(A, k / np.sqrt(0.5), joint=True)])
    assert float(np.sum(solution.variances)) == pytest.approx(20.0729, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_joint_noise_is_as_little_as_an_sdp_solver_finds(seed):
    rng = np.random.default_rng(seed)
    n, columns = int(rng.integers(8, 31)), int(rng.integers(1, 6))
    demands = [kernel_demand(rng, n, columns, smooth=seed == 2) if seed % 2 else random_demand(rng, n, columns)]
    assert float(np.sum(check(demands).variances)) == pytest.approx(least_diagonal(demands), rel=1e-6)


@pytest.mark.parametrize("columns", [8, 12, 20])
def test_joint_noise_for_more_sensitive_values_than_half_the_rows(columns):
    demands = [random_demand(np.random.default_rng(columns), 12, columns)]
    assert float(np.sum(check(demands).variances)) == pytest.approx(least_diagonal(demands), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_pointwise_noise_is_as_little_as_an_sdp_solver_finds(seed):
    rng = np.random.default_rng(10 + seed)
    make = kernel_demand if seed % 2 else random_demand
    demands = [make(rng, int(rng.integers(8, 16)), int(rng.integers(2, 6)), joint=False)]
    assert float(np.sum(check(demands).variances)) == pytest.approx(least_diagonal(demands), rel=1e-6)


def test_pointwise_demands_need_less_than_a_joint_one():
    rng = np.random.default_rng(20)
    X = rng.random((25, 1))
    S = np.array([[0.3], [0.5], [0.55]])
    A, cross, inside = rbf(X, X, 0.1) + 0.1 * np.eye(25), rbf(X, S, 0.1), rbf(S, S, 0.1)
    joint = check([Demand(A, explaining_root(cross, 0.5 * inside), joint=True)]).variances.sum()
    pointwise = check([Demand(A, cross / np.sqrt(0.5), joint=False)]).variances.sum()
    assert pointwise < 0.99 * joint


@pytest.mark.parametrize("seed", range(3))
def test_several_priors_at_once(seed):
    rng = np.random.default_rng(30 + seed)
    state = rng.bit_generator.state
    demands = []
    for lengthscale, joint in ((0.2, True), (0.5, False), (0.9, True)):
        rng.bit_generator.state = state
        demands.append(kernel_demand(rng, 12, 3, joint=joint, lengthscale=lengthscale, noise=0.3, alpha=0.8))
    together = float(np.sum(check(demands).variances))
    assert together == pytest.approx(least_diagonal(demands), rel=1e-6)
    assert together >= (1.0 - 1e-6) * max(float(np.sum(check([demand]).variances)) for demand in demands)


@pytest.mark.parametrize("seed", range(4))
def test_weights_move_the_noise_to_where_it_is_cheap(seed):
    rng = np.random.default_rng(40 + seed)
    demands = [random_demand(rng, 14, 3, joint=seed % 2 == 0), kernel_demand(rng, 14, 2)][: 1 + seed // 2]
    weights = 10.0 ** rng.uniform(-2, 2, 14)
    solution = check(demands, weights)
    assert weights @ solution.variances == pytest.approx(least_diagonal(demands, weights), rel=1e-6)
    assert np.max(np.sum(np.hstack(solution.witness) ** 2, axis=1) / weights) <= 1.0 + 1e-5
    assert weights @ solution.variances < weights @ check(demands).variances


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("joint", [True, False])
def test_units_do_not_matter(scale, joint):
    demand = kernel_demand(np.random.default_rng(50), 20, 3, joint=joint, noise=0.5, alpha=0.9)
    other = Demand(scale * demand.covariance, np.sqrt(scale) * demand.root, joint)
    assert check([other]).variances == pytest.approx(scale * check([demand]).variances, rel=1e-4, abs=1e-5 * scale)
    assert check([other]).variances.sum() == pytest.approx(scale * check([demand]).variances.sum(), rel=1e-7)


@pytest.mark.parametrize("joint", [True, False])
def test_where_nothing_is_learnt_there_is_no_noise_at_all(joint):
    solution = diagonal_noise([Demand(np.eye(4), 0.4 * np.ones((4, 2)) / np.sqrt(2), joint)])
    assert np.all(solution.variances == 0.0)
    assert lower_bound([Demand(np.eye(4), np.ones((4, 2)), joint)], solution.witness, diagonal=True) == 0.0


@pytest.mark.parametrize("joint", [True, False])
def test_a_demand_about_nothing_changes_nothing(joint):
    demand, empty = random_demand(np.random.default_rng(51), 9, 2), Demand(np.eye(9), np.zeros((9, 0)), joint)
    both = check([empty, demand])
    assert both.variances.sum() == pytest.approx(check([demand]).variances.sum(), rel=1e-6)
    assert both.witness[0].shape == (9, 0)
    assert np.all(diagonal_noise([empty]).variances == 0.0)


@pytest.mark.parametrize("joint", [True, False])
def test_a_single_row_needs_exactly_what_is_too_much(joint):
    solution = check([Demand(np.array([[2.0]]), np.array([[3.0]]), joint)])
    assert solution.variances == pytest.approx([7.0], rel=1e-7)


def test_rows_that_tell_nothing_get_exactly_no_noise():
    A = np.eye(6)
    solution = check([Demand(A, np.array([[2.0, 1.0, 0.0, 0.0, 0.0, 0.0]]).T, joint=True)])
    assert np.all(solution.variances[2:] == 0.0)
    assert solution.variances[:2] == pytest.approx([5.0, 2.0], rel=1e-6)


def test_two_equal_rows_get_equal_noise():
    rng = np.random.default_rng(60)
    X = rng.random((14, 1))
    X[1] = X[0]
    S = np.array([[0.4], [0.6]])
    A, cross, inside = rbf(X, X, 0.2) + 0.01 * np.eye(14), rbf(X, S, 0.2), rbf(S, S, 0.2)
    demand = Demand(A, explaining_root(cross, 0.3 * inside), joint=True)
    solution = check([demand], accuracy=1e-9)
    assert solution.variances[0] == pytest.approx(solution.variances[1], rel=1e-4, abs=1e-6)
    assert float(np.sum(solution.variances)) == pytest.approx(least_diagonal([demand]), rel=1e-6)


@pytest.mark.parametrize("joint", [True, False])
def test_rows_in_very_different_units(joint):
    rng = np.random.default_rng(61)
    demand = random_demand(rng, 16, 3, joint=joint)
    units = 10.0 ** rng.uniform(-2.5, 2.5, 16)
    check([Demand(units[:, None] * demand.covariance * units, units[:, None] * demand.root, joint)])


@pytest.mark.parametrize("noise", [1e-6, 1e-12])
@pytest.mark.parametrize("joint", [True, False])
def test_promise_holds_in_50_digits_where_a_is_almost_singular(noise, joint):
    x = np.linspace(0, 1, 13)[:, None]
    S = np.array([[0.31], [0.33]])
    A, cross, inside = rbf(x, x, 0.4) + noise * np.eye(13), rbf(x, S, 0.4), rbf(S, S, 0.4)
    assert noise > 1e-12 or np.linalg.cond(A) > 1e12
    root = explaining_root(cross, 0.5 * inside) if joint else cross / np.sqrt(0.5)
    solution = check([Demand(A, root, joint)])
    with mpmath.workdps(DIGITS):
        M = exact(A) + mpmath.diag([mpmath.mpf(float(v)) for v in solution.variances])
        explained = forward50(mpmath.cholesky(M), exact(root))
        learnt = explained.T.dot(explained)
        ratio = max(mpmath.eigsy(mpmath.matrix(learnt.tolist()), eigvals_only=True)) if joint else max(np.diag(learnt))
        assert ratio <= 1


def least_for_two(B: np.ndarray) -> float:
    """min d₁ + d₂ over Diag(d) ⪰ B, d ≥ 0, in 50 digits: d₂ is forced by d₁, and the sum is convex in d₁."""
    with mpmath.workdps(DIGITS):
        (a, b), (_, c) = [[mpmath.mpf(float(v)) for v in row] for row in B]

        def total(d1):
            return d1 + max(mpmath.mpf(0), c + b * b / (d1 - a))

        low, high = max(a, mpmath.mpf(0)) + mpmath.mpf(10) ** -30, abs(a) + abs(b) * 100 + abs(c) + 1
        for _ in range(400):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if total(left) < total(right) else (left, high)
        return float(total(low))


@pytest.mark.parametrize("seed", range(8))
def test_two_rows_against_a_search_in_50_digits(seed):
    rng = np.random.default_rng(70 + seed)
    lower = np.tril(rng.standard_normal((2, 2)))
    A, root = lower @ lower.T + 0.1 * np.eye(2), 2.0 * rng.standard_normal((2, 1 + seed % 2))
    solution = check([Demand(A, root, joint=True)])
    assert float(np.sum(solution.variances)) == pytest.approx(least_for_two(root @ root.T - A), rel=1e-7)


@pytest.mark.parametrize("joint", [True, False])
def test_rows_without_noise_are_conditioned_on(joint):
    demand, noisy = random_demand(np.random.default_rng(80), 10, 3, joint=joint), np.arange(10) < 4
    demand.root[4:] *= 0.02
    rest, met = Conditioned(demand, noisy), []
    for size in (0.1, 1.0, 10.0, 100.0):
        d = size * np.array([1.0, 2.0, 0.5, 1.5])
        met.append(demand.ratio(np.diag(np.r_[d, np.zeros(6)])) <= 1.0)
        # what is left may be learnt in full exactly when what there was may be
        assert (rest.left.ratio(np.diag(d)) <= 1.0) == met[-1]
    assert met[-1]
    assert not met[0]
    if joint:
        learnt = np.linalg.solve(rest.left.covariance + np.diag(d), rest.left.root)
        inner = rest.rest @ (rest.left.root.T @ learnt) @ rest.rest.T + rest.seen.T @ rest.seen
        M = demand.covariance + np.diag(np.r_[d, np.zeros(6)])
        assert inner == pytest.approx(demand.root.T @ np.linalg.solve(M, demand.root), abs=1e-10)


def test_rows_that_tell_too_much_cannot_go_without_noise():
    for joint in (True, False):
        with pytest.raises(np.linalg.LinAlgError):
            Conditioned(Demand(np.eye(3), 2.0 * np.eye(3), joint), np.array([True, False, True]))


@pytest.mark.parametrize("rough", [1e-2, 0.0])
@pytest.mark.parametrize("kind", ["joint", "whole", "pointwise", "both", "dense"])
def test_sifting_finds_the_optimum_of_the_whole_problem(kind, rough, monkeypatch):
    monkeypatch.setattr(sifting, "SIFTING_GAP", rough)
    rng = np.random.default_rng(81)
    X = rng.random((80, 2))
    size = {"joint": 4, "whole": 18}.get(kind, 5)
    S = X[np.argsort(np.linalg.norm(X, axis=1))[:size]]
    lengthscale, alpha = (1.0 if kind == "dense" else 0.2), (0.8 if kind == "whole" else 0.2)
    A, cross, inside = matern32(X, X, lengthscale), matern32(X, S, lengthscale), matern32(S, S, lengthscale)
    A += 0.2 * np.eye(80)
    joint, pointwise = Demand(A, explaining_root(cross, alpha * inside), True), Demand(A, 1.2 * cross, False)
    demands = {"pointwise": [pointwise], "both": [joint, pointwise]}.get(kind, [joint])
    said: list[str] = []
    d, witness = sift(demands, 1e-7, said.append)
    point = interior_point(demands, 1e-7)
    assert float(np.sum(d)) == pytest.approx(point.objective, rel=1e-6)
    assert float(np.sum(d)) - lower_bound(demands, witness, diagonal=True) <= 2e-7 * float(np.sum(d))
    assert (np.sum(d == 0.0) > 20) == (kind != "dense")
    # Λ itself was the multiplier where there are more sensitive values than half of the noisy rows
    assert (witness[0].shape[1] > size) == (kind == "whole")
    assert said


def test_a_large_problem_is_sifted_and_certified():
    demand = kernel_demand(np.random.default_rng(82), 320, 5, lengthscale=0.15, noise=0.3, alpha=0.7)
    solution = check([demand], accuracy=1e-6)
    assert np.sum(solution.variances == 0.0) > 200


def test_both_ways_to_price_a_joint_demand_agree():
    """In γ × γ and in n × n: the same slack in the same place, the same price, the same curvature up to Λ∘M⁻¹."""
    demand = random_demand(np.random.default_rng(83), 7, 3)
    d = start([demand]).d
    small, whole = LearntMultiplier(demand, d), WholeMultiplier(demand, d)
    M = demand.covariance + np.diag(d)
    outer = np.linalg.inv(M) + small.V @ small.inverse @ small.V.T
    assert whole.inverse == pytest.approx(outer, abs=1e-10)
    T = np.cov(np.random.default_rng(84).standard_normal((3, 20)))
    priced = small.price(T)
    assert whole.price(small.V @ T @ small.V.T + 1e-13 * np.eye(7)) == pytest.approx(priced, abs=1e-9)
    difference = np.triu(small.curvature() - whole.curvature())
    assert difference == pytest.approx(np.triu((small.V @ T @ small.V.T) * np.linalg.inv(M)), abs=1e-8)
    assert whole.shortfall() == pytest.approx(small.shortfall(), abs=1e-9)
    assert whole.size == pytest.approx(small.size, rel=1e-9)


def test_a_newton_step_narrows_the_gap_and_keeps_the_point_inside():
    demands = [random_demand(np.random.default_rng(85), 20, 3)]
    point = start(demands)
    for _ in range(6):
        nearer = newton(point, demands)
        assert np.all(nearer.d > 0.0)
        assert np.all(nearer.z > 0.0)
        assert nearer.slackness < point.slackness
        point = nearer
    assert point.objective - point.bound < 0.05 * point.objective


@pytest.mark.parametrize("size", [1.05, 1.5, 100.0])
@pytest.mark.parametrize("columns", [1, 20])
def test_few_steps_are_enough_for_rows_of_any_size(columns, size):
    """Each step costs two n × n Cholesky factors and an inverse; a μ that runs ahead would need many more of them."""
    rng = np.random.default_rng(90)
    demand, units = random_demand(rng, 60, columns, size=size), 10.0 ** rng.uniform(-3, 3, 60)
    said: list[str] = []
    interior_point(
        [Demand(units[:, None] * demand.covariance * units, units[:, None] * demand.root, True)], 1e-7, said.append
    )
    assert said[-1].endswith(("e-08", "e-09", "e-10", "e-11", "e-12", "e-13", "gap 0e+00"))
    assert len(said) <= 20


def test_a_long_way_down_takes_no_detour():
    """A first step that is too long for its linear prediction would let too much be learnt, and has to be mended."""
    demand = kernel_demand(np.random.default_rng(5), 120, 10, lengthscale=0.15, alpha=0.02)
    said: list[str] = []
    interior_point([demand], 1e-7, said.append)
    assert len(said) <= 10


def test_a_demand_about_everything_is_priced_in_n_by_n():
    assert isinstance(interior_point([random_demand(np.random.default_rng(91), 8, 8)], 1e-3).parts[0], WholeMultiplier)
    assert isinstance(interior_point([random_demand(np.random.default_rng(91), 8, 2)], 1e-3).parts[0], LearntMultiplier)


def test_steps_end_where_something_would_turn_negative():
    assert farthest(np.array([1.0, 2.0]), np.array([-0.5, -4.0])) == 0.5
    assert farthest(np.ones(2), np.ones(2)) == np.inf
    for size in (4, 320):
        rng = np.random.default_rng(size)
        root = np.tril(rng.standard_normal((size, size))) / np.sqrt(size) + 2.0 * np.eye(size)
        step = rng.standard_normal((size, size))
        X, step = root @ root.T, -(step @ step.T) / size - 2.0 * np.eye(size)
        length = longest(X, root, step)
        assert np.linalg.eigvalsh(X + 0.999 * length * step)[0] > 0.0
        assert np.linalg.eigvalsh(X + 1.12 * length * step)[0] < 0.0 or length > 1.0


def test_a_looser_accuracy_is_still_exactly_feasible():
    demands = [random_demand(np.random.default_rng(86), 15, 3)]
    loose, tight = check(demands, accuracy=1e-2), check(demands, accuracy=1e-9)
    assert tight.variances.sum() < loose.variances.sum() <= 1.01 * tight.variances.sum()


def test_wrong_arguments_are_named():
    demand = random_demand(np.random.default_rng(87), 5, 1)
    with pytest.raises(InputError, match="demands is empty"):
        diagonal_noise([])
    for weights in (np.ones(4), np.r_[np.ones(4), 0.0], np.r_[np.ones(4), np.inf]):
        with pytest.raises(InputError, match="weights must be 5 positive numbers"):
            diagonal_noise([demand], weights)


def test_progress_is_told():
    said: list[str] = []
    diagonal_noise([random_demand(np.random.default_rng(88), 5, 1)], say=said.append)
    assert said[0].startswith("independent noise, step 0")


def test_a_promise_that_cannot_be_kept_is_an_error(monkeypatch):
    monkeypatch.setattr(Demand, "ratio", lambda self, noise: 2.0)
    with pytest.raises(GuaranteeError, match="no diagonal noise was found"):
        diagonal_noise([random_demand(np.random.default_rng(89), 5, 1)])
