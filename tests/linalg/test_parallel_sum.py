"""The parallel sum of noises, against inverses in 50 digits and against what a reader of both copies knows."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import DIGITS, exact
from sfumato.linalg.roots import parallel_sum_factor


def random_noise(rng, n, rank, size):
    factor = rng.normal(size=(n, rank)) * size
    return factor @ factor.T


@given(seed=st.integers(0, 2**32), n=st.integers(1, 8), size=st.floats(1e-3, 1e3))
@settings(max_examples=50, deadline=None)
def test_it_is_the_inverse_of_the_sum_of_inverses(seed, n, size):
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
