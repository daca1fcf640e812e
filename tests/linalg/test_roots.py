"""Whitening, triangular solves, and the parallel sum of noises, against dense inverses and inverses in 50 digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import DIGITS, exact
from sfumato.linalg.roots import Whitening, parallel_sum_factor
from sfumato.linalg.tensors import solve_lower


def covariance(rank: int, size: int = 8) -> np.ndarray:
    factor = np.random.default_rng(rank).standard_normal((size, rank))
    return factor @ factor.T


@pytest.mark.parametrize("rank", [8, 5, 1])
def test_whitening_is_the_root_of_the_pseudoinverse(rank):
    M, B = covariance(rank), np.random.default_rng(0).standard_normal((8, 3))
    whitening = Whitening.of(M)
    white = whitening.apply(B)
    assert whitening.rank == rank
    np.testing.assert_allclose(white.T @ white, B.T @ np.linalg.pinv(M) @ B, rtol=1e-9)
    kept = np.linalg.eigvalsh(M)[-rank:]
    assert whitening.log_determinant == pytest.approx(np.log(kept).sum(), rel=1e-9)


@pytest.mark.parametrize("rank", [8, 5])
def test_what_is_left_over_lies_outside_the_range(rank):
    M = covariance(rank)
    whitening = Whitening.of(M)
    np.testing.assert_allclose(whitening.leftover(M @ np.ones(8)), 0.0, atol=1e-12)
    assert (np.linalg.norm(whitening.leftover(np.ones(8))) > 1e-3) == (rank < 8)


def test_nothing_is_kept_of_a_covariance_that_is_zero():
    assert Whitening.of(np.zeros((3, 3))).rank == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_triangular_solves_are_those_of_the_dense_inverse(order):
    lower = np.asarray(np.linalg.cholesky(covariance(20, 12) + np.eye(12)), order=order)
    block = np.random.default_rng(5).standard_normal((12, 7))
    assert solve_lower(lower, block) == pytest.approx(np.linalg.solve(lower, block), abs=1e-10)


def random_noise(rng, n, rank, size):
    factor = rng.normal(size=(n, rank)) * size
    return factor @ factor.T


@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), size=st.floats(1e-3, 1e3))
@settings(max_examples=50, deadline=None)
def test_the_parallel_sum_is_the_inverse_of_the_sum_of_inverses(seed, n, size):
    rng = np.random.default_rng(seed)
    A, B = random_noise(rng, n, n + 3, 1.0), random_noise(rng, n, n + 3, size)
    factor, error = parallel_sum_factor(A, B)
    with mpmath.workdps(DIGITS):
        wanted = mpmath.inverse(mpmath.inverse(exact(A)) + mpmath.inverse(exact(B)))
        wanted = np.array(wanted.tolist(), dtype=float)
    off = np.linalg.norm(factor @ factor.T - wanted, 2)
    assert off <= error


@given(seed=st.integers(0, 2**32), n=st.integers(2, 8), first=st.integers(0, 8), second=st.integers(0, 8))
@settings(max_examples=50, deadline=None)
def test_where_one_has_no_noise_the_sum_has_none(seed, n, first, second):
    rng = np.random.default_rng(seed)
    A, B = random_noise(rng, n, min(first, n), 1.0), random_noise(rng, n, min(second, n), 1.0)
    factor, error = parallel_sum_factor(A, B)
    together = factor @ factor.T
    # never more than either, to within the error that is admitted
    for noise in (A, B):
        assert np.linalg.eigvalsh(noise - together)[0] >= -error
    known = np.linalg.svd(A)[0][:, np.linalg.matrix_rank(A, tol=1e-9) :]
    assert np.linalg.norm(known.T @ together @ known) <= 10 * error + 1e-12


def test_two_copies_tell_a_reader_what_one_with_the_parallel_sum_does():
    rng = np.random.default_rng(3)
    n = 6
    K = random_noise(rng, n, n, 1.0)
    A, B = random_noise(rng, n, 3, 1.0) + 0.1 * np.eye(n), random_noise(rng, n, 2, 2.0) + 0.05 * np.eye(n)
    stacked = np.block([[K + A, K], [K, K + B]])
    both = np.hstack([K, K])
    factor, _ = parallel_sum_factor(A, B)
    one = K - K @ np.linalg.solve(K + factor @ factor.T, K)
    assert K - both @ np.linalg.solve(stacked, both.T) == pytest.approx(one, abs=1e-10)


def test_no_noise_at_all_stays_none():
    factor, error = parallel_sum_factor(np.zeros((3, 3)), np.eye(3))
    assert np.allclose(factor @ factor.T, 0.0)
    assert error < 1e-13
