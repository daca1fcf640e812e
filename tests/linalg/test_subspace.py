"""The feasible subspace method against full eigendecompositions, and its promise in 50 digits."""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oracles import DIGITS, exact, forward50, matern32, rbf
from sfumato.linalg import subspace as module
from sfumato.linalg.subspace import FeasibleSubspace
from sfumato.programs.joint import explaining_root


def random_problem(n, columns, seed=0, scale=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n + 3))
    return torch.from_numpy(X @ X.T / n + 0.1 * np.eye(n)), torch.from_numpy(scale * rng.standard_normal((n, columns)))


def kernel_problem(n, columns, alpha=0.3, noise=1e-2, kernel=rbf, lengthscale=0.2, seed=1):
    """Inputs in the unit square, sensitive ones in a corner of it."""
    rng = np.random.default_rng(seed)
    X, S = rng.random((n, 2)), 0.4 * rng.random((columns, 2))
    A = kernel(X, X, lengthscale) + noise * np.eye(n)
    U = explaining_root(kernel(X, S, lengthscale), alpha * (kernel(S, S, lengthscale) + 1e-6 * np.eye(columns)))
    return torch.from_numpy(A), torch.from_numpy(np.ascontiguousarray(U))


def positive_part(A, U, accuracy=1e-8):
    return FeasibleSubspace.of(A).positive_part(U, accuracy)


def least(A, U):
    return float(torch.linalg.eigvalsh(U @ U.T - A).clamp_min(0.0).sum())


def ratio(A, U, factor):
    """λ_max(Uᵀ(A + F Fᵀ)⁻¹U)."""
    lower = torch.linalg.cholesky(A + factor @ factor.T)
    explained = torch.linalg.solve_triangular(lower, U, upper=False)
    return float(torch.linalg.matrix_norm(explained, 2)) ** 2 if U.shape[1] else 0.0


def check(A, U, accuracy=1e-8):
    result = positive_part(A, U, accuracy)
    assert result is not None
    optimum = least(A, U)
    tiny = 1e-12 * max(optimum, float(torch.linalg.matrix_norm(A)))
    assert result.lower_bound - tiny <= optimum <= result.trace + tiny
    assert result.trace - result.lower_bound <= accuracy * result.trace
    assert result.trace == pytest.approx(float(result.factor.square().sum()), rel=1e-12, abs=1e-300)
    assert ratio(A, U, result.factor) <= 1 + 1e-11
    return result


@pytest.mark.parametrize("columns", [1, 3, 8])
@pytest.mark.parametrize("seed", range(3))
def test_random_problems(columns, seed):
    A, U = random_problem(150, columns, seed)
    result = check(A, U)
    assert result.factor.shape == (150, columns)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize(("kernel", "noise"), [(rbf, 1e-2), (rbf, 1e-5), (matern32, 1e-2)])
def test_kernel_problems(kernel, noise, alpha):
    A, U = kernel_problem(300, 8, alpha, noise, kernel)
    result = check(A, U)
    values, vectors = torch.linalg.eigh(U @ U.T - A)
    assert result.factor.shape[1] == int((values > 0).sum())
    positive = (vectors * values.clamp_min(0.0)) @ vectors.T
    error = torch.linalg.matrix_norm(result.factor @ result.factor.T - positive, 2)
    # a trace within ε of the least leaves √ε of room for the matrix itself
    assert float(error) <= 2e-4 * result.trace


@pytest.mark.parametrize("accuracy", [1e-2, 1e-5, 1e-9])
def test_any_accuracy_can_be_asked_for(accuracy):
    rough = check(*kernel_problem(300, 8), accuracy)
    assert rough.size <= check(*kernel_problem(300, 8), 1e-10).size


@pytest.mark.parametrize("noise", [1e-2, 1e-6])
def test_every_iterate_keeps_the_promise_and_the_bounds_close_in(noise):
    A, U = kernel_problem(250, 7, noise=noise)
    optimum = least(A, U)
    iterates = list(FeasibleSubspace(A, torch.linalg.cholesky(A)).iterates(U))
    assert len(iterates) > 3
    for before, after in pairwise(iterates):
        assert after.trace <= before.trace * (1 + 1e-12)
        assert after.size > before.size
    for one in iterates:
        assert ratio(A, U, one.factor) <= 1 + 1e-11
        assert one.lower_bound <= optimum * (1 + 1e-11)
        assert optimum <= one.trace * (1 + 1e-12)


@pytest.mark.parametrize("noise", [1e-2, 1e-5])
def test_the_promise_holds_in_50_digits_for_the_numbers_as_they_are(noise):
    A, U = kernel_problem(30, 3, noise=noise)
    result = check(A, U)
    with mpmath.workdps(DIGITS):
        F = exact(result.factor)
        explained = forward50(mpmath.cholesky(exact(A) + F * F.T), exact(U))
        values = mpmath.eigsy(mpmath.matrix(explained.T.dot(explained).tolist()), eigvals_only=True)
        assert max(values) <= 1


@given(
    n=st.integers(1, 45),
    columns=st.integers(0, 50),
    scale=st.sampled_from([0.0, 1e-9, 1e-3, 0.3, 2.0, 1e3]),
    copies=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_odd_shapes(n, columns, scale, copies, seed):
    A, U = random_problem(n, columns, seed, scale)
    U = U.repeat(1, copies)
    if positive_part(A, U) is None:
        # 32 columns always fit
        assert n > module.TINY_BASIS
    else:
        check(A, U)


@pytest.mark.parametrize("columns", [0, 1, 5])
def test_nothing_is_added_where_nothing_is_needed(columns):
    A, U = random_problem(80, columns, scale=1e-3)
    assert check(A, U).factor.shape == (80, 0)
    assert check(A, torch.zeros_like(U)).factor.shape == (80, 0)


def test_columns_that_are_there_twice_cost_nothing():
    A, U = kernel_problem(200, 6)
    once, twice = check(A, U), check(A, torch.cat([U, U], dim=1) / 2**0.5)
    assert twice.size == once.size
    assert twice.trace == pytest.approx(once.trace, rel=1e-10)


def test_directions_of_u_just_above_its_round_off_are_kept():
    A, U = kernel_problem(200, 6)
    faint = 1e-11 * torch.linalg.qr(random_problem(200, 3)[1])[0]
    check(A, torch.cat([U, faint], dim=1))
    # where A is small they matter
    check(1e-18 * A, torch.cat([1e-9 * U, faint], dim=1))


def test_the_cholesky_factor_alone_is_enough():
    A, U = kernel_problem(200, 6)
    alone = FeasibleSubspace(None, torch.linalg.cholesky(A)).positive_part(U)
    assert alone.trace == pytest.approx(check(A, U).trace, rel=1e-11)
    assert ratio(A, U, alone.factor) <= 1 + 1e-11


def test_no_product_with_a_is_made_twice(monkeypatch):
    """Every column of the basis is multiplied and solved with once, and nothing else is."""
    A, U = kernel_problem(300, 8)
    solved = []
    solve = torch.linalg.solve_triangular

    def counted(matrix, block, **options):
        if matrix.shape == A.shape:
            solved.append(block.shape[1])
        return solve(matrix, block, **options)

    monkeypatch.setattr(torch.linalg, "solve_triangular", counted)
    result = positive_part(A, U)
    assert sum(solved) == result.size


def test_a_basis_serves_other_tolerances_and_further_columns():
    A, U = kernel_problem(300, 8)
    subspace = FeasibleSubspace(A, torch.linalg.cholesky(A))
    first = subspace.positive_part(U)
    again = subspace.positive_part(U / 0.97**0.5)
    assert again.size <= first.size + 8
    more = torch.cat([U, kernel_problem(300, 2, seed=9)[1]], dim=1)
    wider = subspace.positive_part(more)
    assert ratio(A, more, wider.factor) <= 1 + 1e-11
    for tried, target in ((again, U / 0.97**0.5), (wider, more)):
        assert tried.trace == pytest.approx(least(A, target), rel=2e-8)


def test_a_basis_that_is_full_is_begun_anew():
    A, U = kernel_problem(150, 6)
    subspace = FeasibleSubspace(A, torch.linalg.cholesky(A))
    for seed in range(6):
        U = kernel_problem(150, 6, seed=10 + seed, kernel=matern32)[1]
        result = subspace.positive_part(U)
        if result is not None:
            assert result.trace == pytest.approx(least(A, U), rel=2e-8)
            assert ratio(A, U, result.factor) <= 1 + 1e-11
        assert subspace.size <= module.LARGEST_SHARE * 150


def test_many_columns_are_left_to_an_eigensolver():
    A, U = random_problem(100, 40)
    assert positive_part(A, U) is None


def test_slow_convergence_is_noticed_early(monkeypatch):
    """A flat spectrum has no subspace that is nearly invariant."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    A = torch.from_numpy((Q * np.geomspace(1e-3, 10.0, 200)) @ Q.T)
    A = (A + A.T) / 2
    grown = []
    grow = FeasibleSubspace._grow
    monkeypatch.setattr(FeasibleSubspace, "_grow", lambda self, new: (grown.append(1), grow(self, new))[1])
    assert positive_part(A, torch.from_numpy(0.1 * rng.standard_normal((200, 15)))) is None
    assert len(grown) <= 3


def test_an_accuracy_below_round_off_ends_too():
    A, U = kernel_problem(60, 4)
    assert positive_part(A, U, accuracy=0.0) is None


def test_a_matrix_without_a_cholesky_factor_is_left_to_an_eigensolver():
    A, _ = random_problem(20, 2)
    assert FeasibleSubspace.of(A - 10.0 * torch.eye(20)) is None
