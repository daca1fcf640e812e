"""Whitening: the inverse on the directions that are more than rounding, and nothing on the others."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.linalg import Whitening


def covariance(rank: int, size: int = 8) -> np.ndarray:
    factor = np.random.default_rng(rank).standard_normal((size, rank))
    return factor @ factor.T


@pytest.mark.parametrize("rank", [8, 5, 1])
def test_it_is_the_root_of_the_pseudoinverse(rank):
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
