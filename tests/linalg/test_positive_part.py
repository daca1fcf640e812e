"""The positive part from eigenvectors and from the matrix sign: complete, and on the safe side in exact arithmetic."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from oracles import DIGITS, exact, matern32, rbf
from sfumato.errors import InputError
from sfumato.linalg.positive_part import covers, matrix_sign, positive_part_by_sign, positive_part_factor
from sfumato.programs.joint import explaining_root

UNIT = 2.0**-53


def random_psd(size, rank, seed=0):
    root = np.random.default_rng(seed).standard_normal((size, rank))
    return root @ root.T


@pytest.mark.parametrize("rank", [None, 3, 30])
@pytest.mark.parametrize("seed", range(3))
def test_the_positive_part_is_that_of_a_full_eigendecomposition(seed, rank):
    B = random_psd(30, 3, seed) - np.diag(np.random.default_rng(seed).uniform(0.5, 2.0, 30))
    values, vectors = np.linalg.eigh(B)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    F = positive_part_factor(B, rank)
    assert F.shape == (30, int(np.sum(values > 0)))
    assert np.matmul(F, F.T) == pytest.approx(positive, abs=1e-10)


@pytest.mark.parametrize("rank", [None, 21])
def test_repeated_eigenvalues_are_all_found(rank):
    """The kernel of the published satellite code is a multiple of the identity: one vector a value is not enough."""
    K = 225.0 * rbf(np.linspace(0, 3, 61)[:, None], np.linspace(0, 3, 61)[:, None], 0.0025)
    inside = slice(20, 41)
    B = K[:, inside] @ np.linalg.solve(0.1 * K[inside, inside], K[inside]) - K
    F = positive_part_factor((B + B.T) / 2, rank)
    assert F.shape == (61, 21)
    expected = np.zeros(61)
    expected[inside] = 225.0 * 9.0
    assert np.matmul(F, F.T) == pytest.approx(np.diag(expected), abs=1e-9)


@pytest.mark.parametrize("rank", [None, 1])
def test_a_negative_matrix_has_no_positive_part(rank):
    assert positive_part_factor(-random_psd(10, 12), rank).shape == (10, 0)
    assert positive_part_factor(np.zeros((10, 10)), rank).shape == (10, 0)


def test_a_bound_on_the_rank_that_is_too_low_still_finds_everything():
    B = np.diag(np.r_[np.ones(20), -np.ones(20)])
    F = positive_part_factor(B, rank=1)
    assert np.matmul(F, F.T) == pytest.approx(np.diag(np.r_[np.ones(20), np.zeros(20)]), abs=1e-12)


def with_spectrum(values, seed=0) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    B = (Q * values) @ Q.T
    return (B + B.T) / 2


def kernel_target(smooth: bool, n: int = 120) -> np.ndarray:
    X = np.random.default_rng(1).random((n, 2))
    kernel, S = (rbf, X[:6] + 0.01) if smooth else (matern32, X[:15] + 0.01)
    U = explaining_root(kernel(X, S, 0.3), 0.3 * kernel(S, S, 0.3))
    return U @ U.T - kernel(X, X, 0.3) - 1e-3 * np.eye(n)


def check(B, trace=1e-8, sizes=1e3):
    """The shift is of the size of round-off, F Fᵀ is the positive part, and together they cover B."""
    part, n = positive_part_by_sign(B), len(B)
    values, vectors = np.linalg.eigh(B)
    norm = float(np.max(np.abs(values)))
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    assert 0.0 <= part.shift <= sizes * n * UNIT * norm
    assert np.linalg.norm(part.factor @ part.factor.T - positive, 2) <= 2.0 * sizes * n * UNIT * norm
    assert np.linalg.eigvalsh(part.factor @ part.factor.T + part.shift * np.eye(n) - B)[0] >= 0.0
    assert np.sum(part.factor**2) == pytest.approx(np.sum(np.maximum(values, 0.0)), rel=trace)
    return part


@pytest.mark.parametrize("seed", range(3))
def test_random_matrices_with_a_gap(seed):
    part = check(with_spectrum(np.r_[np.linspace(0.5, 3.0, 12), -np.linspace(0.2, 5.0, 48)], seed))
    assert part.factor.shape == (60, 12)
    assert 3 <= part.steps <= 8


@pytest.mark.parametrize("smooth", [True, False])
def test_kernel_problems(smooth):
    B = kernel_target(smooth)
    part = check(B)
    F = positive_part_factor(B)
    assert part.factor.shape == F.shape
    assert part.factor @ part.factor.T == pytest.approx(F @ F.T, abs=1e-10 * np.abs(F).max() ** 2)


def test_eigenvalues_of_every_size():
    part = check(with_spectrum(np.r_[np.logspace(0, -16, 40), -np.logspace(0, -16, 40)]))
    assert part.steps <= 10


@pytest.mark.parametrize("size", [1e-9, 1e-13, 1e-16])
def test_a_cluster_of_eigenvalues_near_zero(size):
    values = np.r_[np.linspace(1.0, 2.0, 4), size * np.random.default_rng(2).standard_normal(60), -np.ones(10)]
    part = check(with_spectrum(values), trace=1e-8)
    assert size > 1e-15 or part.factor.shape[1] == 4


def test_most_eigenvalues_exactly_zero():
    root = np.random.default_rng(3).standard_normal((50, 3))
    assert check(root @ root.T).factor.shape == (50, 3)


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e200])
def test_units_do_not_matter(scale):
    B = kernel_target(False, 40)
    part, other = positive_part_by_sign(B), positive_part_by_sign(scale * B)
    assert other.shift / scale == pytest.approx(part.shift, rel=0.5)
    assert other.factor / np.sqrt(scale) == pytest.approx(part.factor, abs=1e-9)


def test_powers_of_four_change_no_digit():
    B = kernel_target(False, 30)
    part, other = positive_part_by_sign(B), positive_part_by_sign(2.0**40 * B)
    assert np.array_equal(other.factor, 2.0**20 * part.factor)
    assert other.shift == 2.0**40 * part.shift


@pytest.mark.parametrize("B", [np.zeros((4, 4)), np.array([[-2.0]]), -np.eye(5), with_spectrum(-np.arange(1.0, 9.0))])
def test_without_a_positive_part_nothing_is_added(B):
    part = positive_part_by_sign(B)
    assert part.factor.shape == (len(B), 0)
    assert part.shift == 0.0
    assert part.steps == 0


def test_a_singular_negative_matrix_takes_no_more_than_round_off():
    B = -np.ones((6, 6))
    part = positive_part_by_sign(B)
    assert part.factor.shape == (6, 0)
    assert 0.0 < part.shift <= 1e3 * 6 * UNIT * 6.0


def test_a_single_number():
    part = check(np.array([[3.0]]))
    assert part.factor == pytest.approx(np.array([[np.sqrt(3.0)]]), rel=1e-14)


def test_an_eigenvalue_that_the_shift_hits_exactly():
    """B − δI is then singular and has no sign."""
    part = check(np.diag([1.0, 8.0 * UNIT]))
    assert part.factor.shape == (2, 1)


@pytest.mark.parametrize("seed", range(6))
def test_it_covers_b_in_50_digits(seed):
    rng = np.random.default_rng(seed)
    choices = [
        rng.standard_normal(8),
        np.r_[np.ones(3), np.zeros(5)],
        np.r_[1.0, 1e-15 * rng.standard_normal(7)],
        np.logspace(0, -15, 8) * np.sign(rng.standard_normal(8)),
        np.r_[np.full(4, 1.0), np.full(4, -1.0)],
        1e-6 * rng.standard_normal(8),
    ]
    B = with_spectrum(choices[seed], seed)
    part = positive_part_by_sign(B)
    with mpmath.workdps(DIGITS):
        F = exact(part.factor)
        X = (F * F.T if F.cols else mpmath.zeros(8)) - exact(B) + mpmath.mpf(part.shift) * mpmath.eye(8)
        assert min(mpmath.eigsy(X, eigvals_only=True)) >= 0


@pytest.mark.parametrize("excess", [-1e-15, 0.0, 1e-16])
def test_cover_is_not_claimed_where_it_does_not_hold(excess):
    """Of the shifts around the right one, those that are too small never pass, and twice n u ‖B‖ more always does."""
    rng = np.random.default_rng(4)
    B = with_spectrum(rng.uniform(0.5, 2.0, 8), 4)
    with mpmath.workdps(DIGITS):
        largest = max(mpmath.eigsy(exact(B), eigvals_only=True))
        shift = float(largest) + excess
        truly = mpmath.mpf(shift) >= largest
    assert truly or not covers(np.zeros((8, 0)), shift, B)
    assert covers(np.zeros((8, 0)), shift + 400 * UNIT * 8, B)


def test_the_sign_squares_to_the_identity_and_commutes():
    X = with_spectrum(np.r_[np.logspace(-6, 0, 10), -np.logspace(-3, 0, 15)])
    sign, steps = matrix_sign(X)
    assert sign @ sign == pytest.approx(np.eye(25), abs=1e-8)
    assert sign @ X == pytest.approx(X @ sign, abs=1e-13)
    assert np.trace(sign) == pytest.approx(10 - 15, abs=1e-8)
    assert steps <= 9


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="finite"):
        positive_part_by_sign(np.array([[np.nan, 0.0], [0.0, 1.0]]))
