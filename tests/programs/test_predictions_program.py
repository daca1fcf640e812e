"""Best predictions at the same promise: as much as an SDP solver finds, every demand met, and a bound that holds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import matern32, most_explained_by_sdp, most_let_through_by_sdp, rbf
from sfumato.programs import predictions_steps
from sfumato.programs.predictions import LetThrough, WhiteDemand, best_predictions, most_explained, raised


def matrix_of(found: LetThrough, rows: int) -> np.ndarray:
    return np.eye(rows) - (found.directions * (1.0 - found.shares)) @ found.directions.T


def learnt(demand: WhiteDemand, Q: np.ndarray) -> float:
    """The largest share of what may be learnt that is learnt."""
    told = demand.root.T @ Q @ demand.root
    if not told.size:
        return 0.0
    return float(np.linalg.eigvalsh(told)[-1] if demand.joint else np.diag(told).max())


def smooth_problem(rows=40, count=6, alpha=0.3, kernel=matern32, noise=0.01, joint=True, seed=0):
    """B and a demand from textbook formulas: places in [0.4, 0.6] are sensitive, the rows beside are served."""
    X = np.sort(np.random.default_rng(seed).random(rows))[:, None]
    S, T = np.linspace(0.4, 0.6, count)[:, None], X[(X[:, 0] < 0.4) | (X[:, 0] > 0.6)]
    lower = np.linalg.cholesky(kernel(X, X, 0.2) + noise * np.eye(rows))
    told = np.linalg.solve(lower, kernel(X, S, 0.2))
    allowed = alpha * (kernel(S, S, 0.2) + 1e-9 * np.eye(count))
    root = np.linalg.solve(np.linalg.cholesky(allowed), told.T).T if joint else told / np.sqrt(alpha)
    return np.linalg.solve(lower, kernel(X, T, 0.2)) / np.sqrt(len(T)), WhiteDemand(root, joint)


def random_problem(seed: int, joints: tuple[bool, ...]):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 11))
    B = rng.normal(size=(n, int(rng.integers(1, 2 * n)))) * rng.random(n)[:, None] ** 2
    demands = []
    for joint in joints:
        root = rng.normal(size=(n, int(rng.integers(1, n + 3)))) * np.exp(rng.normal())
        demands.append(WhiteDemand(root, joint))
    return B, demands


def check(found: LetThrough, B, demands, accuracy):
    """Q is what it is said to be, meets all demands, and is within ``accuracy`` of what the witness proves."""
    Q = matrix_of(found, len(B))
    k = len(found.shares)
    assert np.abs(found.directions.T @ found.directions - np.eye(k)).max(initial=0.0) < 1e-12
    assert np.all((found.shares >= 0.0) & (found.shares < 1.0))
    assert all(learnt(demand, Q) <= 1.0 for demand in demands)
    assert found.explained == pytest.approx(float(np.trace(B.T @ Q @ B)), rel=1e-9, abs=1e-12)
    assert found.upper == most_explained(B, demands, found.witness)
    assert found.upper * (1.0 - accuracy) <= found.explained <= found.upper


@pytest.mark.parametrize("joints", [(True,), (False,), (True, True, True), (False, True), (False, False)])
@pytest.mark.parametrize("seed", range(3))
def test_as_much_is_explained_as_an_sdp_solver_finds(seed, joints):
    B, demands = random_problem(10 * seed + len(joints), joints)
    found = best_predictions(B, demands, accuracy=2e-6)
    best = most_explained_by_sdp(B, [(one.root, one.joint) for one in demands])
    assert found.upper >= best * (1.0 - 1e-7)
    assert best * (1.0 - 1e-5) <= found.explained <= best * (1.0 + 1e-7)
    assert found.upper == pytest.approx(best, rel=1e-5)
    Q = matrix_of(found, len(B))
    assert all(learnt(demand, Q) <= 1.0 for demand in demands)


@pytest.mark.parametrize(
    "limits",
    [{}, {"MOST_TOGETHER": 0}, {"MOST_TOGETHER": 0, "MOST_ROWS": 0}],
    ids=["all multipliers at once", "for Q", "by products"],
)
@pytest.mark.parametrize("joints", [(True, True, True), (False, True, True), (False, False)])
def test_however_its_steps_are_solved_the_optimum_is_the_same(limits, joints, monkeypatch):
    """Counting the steps sees to it that each way is exact: with a wrong direction there would be many more."""
    for name, value in limits.items():
        monkeypatch.setattr(predictions_steps, name, value)
    B, demands = random_problem(24, joints)
    found = best_predictions(B, demands, accuracy=2e-6)
    assert found.upper == pytest.approx(most_explained_by_sdp(B, [(one.root, one.joint) for one in demands]), rel=1e-5)
    assert found.gap < 2e-6
    assert found.decompositions < 60


@pytest.mark.parametrize("kernel", [rbf, matern32])
@pytest.mark.parametrize("alpha", [0.03, 0.3, 0.9])
@pytest.mark.parametrize("noise", [1e-6, 1e-2, 1.0])
def test_smooth_problems_are_solved_to_the_accuracy_that_is_asked_for(kernel, alpha, noise):
    for joint in (True, False):
        B, demand = smooth_problem(60, 8, alpha, kernel, noise, joint)
        check(best_predictions(B, [demand]), B, [demand], 1e-4)


@pytest.mark.parametrize(("kernel", "alpha"), [(rbf, 0.03), (matern32, 0.3)])
def test_an_accuracy_of_a_millionth_is_reached(kernel, alpha):
    B, demand = smooth_problem(80, 10, alpha, kernel)
    found = best_predictions(B, [demand], accuracy=1e-6)
    check(found, B, [demand], 1e-6)
    assert found.explained == pytest.approx(best_predictions(B, [demand]).explained, rel=1e-4)


def test_an_accuracy_beyond_round_off_ends_soon():
    B, demand = smooth_problem(60, 8)
    found = best_predictions(B, [demand], accuracy=1e-12)
    assert found.gap < 1e-6
    assert found.decompositions < 300


@given(st.integers(0, 10**6), st.floats(-3.0, 3.0))
@settings(max_examples=40, deadline=None)
def test_every_witness_proves_a_bound(seed, size):
    rng = np.random.default_rng(seed)
    B, demands = random_problem(seed, (True, False))
    witness = [np.exp(size) * rng.normal(size=(demands[0].root.shape[1], 2))]
    witness.append(np.exp(size) * rng.normal(size=(demands[1].root.shape[1], 1)))
    found = best_predictions(B, demands, accuracy=1e-2)
    assert most_explained(B, demands, witness) >= found.explained
    wide = [np.hstack([witness[0], np.zeros_like(witness[0])]), witness[1]]
    assert most_explained(B, demands, wide) == pytest.approx(most_explained(B, demands, witness), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "B", "demands"),
    [
        ("no demand", np.eye(4), []),
        (
            "a demand of no value",
            np.eye(4),
            [WhiteDemand(np.zeros((4, 0)), True), WhiteDemand(np.zeros((4, 0)), False)],
        ),
        ("a demand that nothing breaks", np.eye(4), [WhiteDemand(0.5 * np.eye(4), True)]),
        ("nothing to explain", np.zeros((4, 3)), [WhiteDemand(3.0 * np.eye(4), True)]),
        ("nobody served", np.zeros((4, 0)), [WhiteDemand(3.0 * np.eye(4), False)]),
        ("every record", np.eye(4), [WhiteDemand(3.0 * np.eye(4), True)]),
        ("the same place twice", np.eye(4), [WhiteDemand(np.tile([[2.0], [1.0], [0.0], [0.0]], 2), True)]),
        ("one served input", np.ones((4, 1)), [WhiteDemand(np.diag([3.0, 2.0, 1.0, 0.5]), True)]),
        ("a hidden direction", np.eye(4), [WhiteDemand(1e6 * np.eye(4)[:, :1], True)]),
    ],
)
def test_odd_problems_have_their_answers(name, B, demands):
    check(best_predictions(B, demands), B, demands, 1e-4)


@pytest.mark.parametrize("joints", [(True,), (False,), (True, True, True), (False, True)])
@pytest.mark.parametrize("seed", range(3))
def test_all_besides_that_the_demands_allow_is_let_through(seed, joints):
    """What is suppressed stays so. An SDP solver finds nothing more for one demand, and next to nothing for several."""
    B, demands = random_problem(10 * seed + len(joints), joints)
    found = best_predictions(B, demands, accuracy=1e-3)
    more = raised(found, B, demands)
    before, after = matrix_of(found, len(B)), matrix_of(more, len(B))
    np.testing.assert_allclose(more.directions.T @ more.directions, np.eye(len(more.shares)), atol=1e-12)
    assert np.linalg.eigvalsh(after - before)[0] > -1e-12
    assert np.linalg.eigvalsh(np.eye(len(B)) - after)[0] > -1e-12
    assert all(learnt(demand, after) <= 1.0 for demand in demands)
    assert more.explained == pytest.approx(float(np.trace(B.T @ after @ B)), rel=1e-9, abs=1e-12)
    assert more.explained >= found.explained - 1e-12
    none = found.directions[:, found.shares == 0.0]
    np.testing.assert_allclose(after @ none, 0.0, atol=1e-12)
    left = most_let_through_by_sdp(after, none, [(one.root, one.joint) for one in demands])
    assert left < (1e-5 if len(joints) == 1 else 1e-3)


@pytest.mark.parametrize("joint", [True, False])
def test_combinations_that_nothing_is_gained_by_go_out_too(joint):
    """The path leaves them half way; then little or nothing is left to draw."""
    B, demand = smooth_problem(30, 6, noise=0.1, joint=joint)
    found = best_predictions(B, [demand])
    assert np.sum((found.shares > 0.4) & (found.shares < 0.6)) >= 8
    more = raised(found, B, [demand])
    assert len(more.shares) <= 6
    check(more, B, [demand], 1e-4)


def test_numbers_that_overflow_are_refused():
    for B, root in (
        (1e200 * np.eye(4), np.eye(4)),
        (np.eye(4), 1e200 * np.eye(4)),
        (np.eye(4), 1e100 * np.eye(4)),
        (np.eye(4), np.full((4, 1), np.nan)),
    ):
        for joint in (True, False):
            with pytest.raises(np.linalg.LinAlgError, match="overflows"):
                best_predictions(B, [WhiteDemand(root, joint)])


def test_numerical_errors_are_numpys(monkeypatch):
    def gives_up(matrix):
        raise torch.linalg.LinAlgError("no eigenvalues")

    monkeypatch.setattr(torch.linalg, "eigh", gives_up)
    B, demand = smooth_problem()
    with pytest.raises(np.linalg.LinAlgError, match="no eigenvalues"):
        best_predictions(B, [demand])


def test_what_is_nearly_hidden_is_suppressed():
    B, demand = smooth_problem(60, 8, alpha=0.03)
    found = best_predictions(B, [demand])
    assert np.sum(found.shares == 0.0) >= 3
    assert found.shares[found.shares > 0.0].min() >= 1e-4


def test_the_witness_of_a_similar_program_saves_most_of_the_steps():
    B, demand = smooth_problem(200, 12)
    first = best_predictions(B, [demand])
    tighter = [WhiteDemand(demand.root * 1.01, True)]
    warm, cold = best_predictions(B, tighter, start=first.witness), best_predictions(B, tighter)
    check(warm, B, tighter, 1e-4)
    assert warm.decompositions <= 0.7 * cold.decompositions
    # another shape is no start
    assert best_predictions(B, tighter, start=[np.ones((3, 3))]).explained == cold.explained
    assert best_predictions(B, tighter, start=[]).explained == cold.explained


def test_large_problems_are_solved_in_a_small_space_with_few_decompositions():
    B, demand = smooth_problem(400, 15, kernel=matern32)
    found = best_predictions(B, [demand])
    check(found, B, [demand], 1e-4)
    assert found.decompositions <= 12
    there = best_predictions(torch.from_numpy(B), [WhiteDemand(torch.from_numpy(demand.root), True)])
    assert there.explained == found.explained


def test_rough_kernels_with_many_inputs_need_no_whole_space():
    """C decays slowly there; what the small space leaves out is counted by the bound."""
    rng = np.random.default_rng(0)
    X, S = rng.random((240, 6)), rng.random((8, 6))
    lower = np.linalg.cholesky(matern32(X, X, 1.0) + 0.1 * np.eye(240))
    B = np.linalg.solve(lower, matern32(X, X[:200], 1.0)) / np.sqrt(200)
    told = np.linalg.solve(lower, matern32(X, S, 1.0))
    root = np.linalg.solve(np.linalg.cholesky(0.2 * matern32(S, S, 1.0)), told.T).T
    found = best_predictions(B, [WhiteDemand(root, True)])
    check(found, B, [WhiteDemand(root, True)], 1e-4)
    assert len(found.shares) <= 5 * 8
