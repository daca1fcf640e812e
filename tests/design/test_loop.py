"""Designs for whole regions, checked by dense formulas at inputs that no design has seen."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.design.loop import KEPT_BACK, certified_design
from sfumato.design.problem import DenseRows, Problem, Solution
from sfumato.design.solver import Solver
from sfumato.errors import InputError
from sfumato.noise.noise import CorrelatedNoise
from sfumato.promise.tolerance import FractionTolerance
from sfumato.proof.examination import examine

RNG = np.random.default_rng(8)
X = RNG.random((70, 2))
LENGTHSCALE, VARIANCE, NOISE, ALPHA = 0.35, 2.0, 0.02, 0.3
PRIOR = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)
BOX = sf.Box([0.3, 0.4], [0.7, 0.8])
LOOK, SIX, WIDE = RNG.random((40, 2)), RNG.random((6, 2)), RNG.uniform(-1, 2, (300, 2))


def kernel(a, b):
    return oracles.matern32(a, b, LENGTHSCALE, VARIANCE)


A = kernel(X, X) + NOISE * np.eye(len(X))


def problem(region=BOX, alpha=ALPHA, prior=PRIOR, inputs=X):
    bound = as_inputs(inputs)
    return Solver(DenseRows(Problem(prior, bound, region.bind(bound), FractionTolerance(alpha))))


def designed(cover, **options):
    """The design of the loop, which its certificate proves."""
    back_end = problem(**options).back_end
    design, certificate = certified_design(
        back_end, cover, lambda one, needed, quick: examine(one, None, needed), lambda text: None
    )
    assert certificate.holds
    assert certificate.evidence == "proved"
    return design


def learnt_share(sigma, points, alpha=ALPHA):
    """kᵀM⁻¹k / (α K(s,s)), dense."""
    cross = kernel(X, points)
    return np.einsum("ij,ij->j", cross, np.linalg.solve(A + sigma, cross)) / (alpha * VARIANCE)


@pytest.mark.parametrize(
    ("cover", "alpha"),
    [("greedy", 0.1), ("greedy", 0.5), ("exchange", 0.5), pytest.param("exchange", 0.1, marks=pytest.mark.slow)],
)
def test_the_floor_is_kept_on_a_fresh_dense_grid(cover, alpha):
    design = designed(cover, alpha=alpha)
    a, b = np.meshgrid(np.linspace(0.3, 0.7, 53), np.linspace(0.4, 0.8, 59))
    grid = np.column_stack([a.ravel(), b.ravel()])
    assert design.cover == cover
    assert learnt_share(design.noise.covariance(), grid, alpha).max() <= 1.0
    assert learnt_share(np.zeros_like(A), grid, alpha).max() > 1.5


@pytest.mark.parametrize("cover", ["greedy", "exchange"])
def test_sensitive_inputs_lie_in_the_region_and_keep_the_joint_promise(cover):
    design = designed(cover)
    S = design.sensitive
    assert np.all((S >= [0.3, 0.4]) & (S <= [0.7, 0.8]))
    cross = kernel(X, S)
    seen = cross.T @ np.linalg.solve(A + design.noise.covariance(), cross)
    assert np.linalg.eigvalsh(ALPHA * kernel(S, S) - seen)[0] >= -1e-9


def test_the_noise_is_the_least_for_its_own_sensitive_inputs_and_tightening():
    design = designed("greedy")
    cross = kernel(X, design.sensitive)
    explained = cross @ np.linalg.solve(ALPHA * kernel(design.sensitive, design.sensitive), cross.T)

    def trace(t):
        return np.sum(np.maximum(np.linalg.eigvalsh(explained / t - A), 0.0))

    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if trace(middle) > design.noise.trace else (low, middle)
    explained /= low
    values, vectors = np.linalg.eigh(explained - A)
    least = (vectors * np.maximum(values, 0.0)) @ vectors.T
    assert 0.5 < low <= 1.0
    assert design.noise.covariance() == pytest.approx(least, abs=1e-6)


def test_rows_are_the_rows_inside():
    design = designed("rows")
    inside = np.all((X >= [0.3, 0.4]) & (X <= [0.7, 0.8]), axis=1)
    assert np.array_equal(design.sensitive, np.unique(X[inside], axis=0))
    assert learnt_share(design.noise.covariance(), X[inside]).max() <= 1 + 1e-9


def test_rows_without_rows_are_refused():
    with pytest.raises(InputError, match=r"cover is 'rows', but no row of the data has .*; use cover=\"auto\""):
        designed("rows", region=sf.Box([0.5, 0.5], [0.5001, 0.5001]))


def test_where_nobody_learns_too_much_there_is_no_noise():
    corner = np.vstack([X, [[6.0, 6.0]]])
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)
    for cover in ("auto", "greedy", "exchange"):
        design = designed(cover, region=sf.Box([3, 3], [3.5, 3.5]), prior=prior, inputs=corner)
        assert design.noise.trace == 0.0
        assert len(design.sensitive) == 1


@pytest.mark.parametrize("floor", [0.7, 0.2, 0.05])
def test_margins_are_shares_of_the_floor_and_not_of_what_may_be_learnt(floor):
    prior = sf.Prior(matern(0.4, nu=2.5), noise=1e-4)
    made = sf.protect(
        prior, np.linspace(0, 3, 61), sf.Box(1, 2), floor=floor, protects="function", progress=False
    ).certificate
    assert made.evidence == "proved"
    assert 1.0 <= made.floor_ratio <= 1.001
    assert made.gap < 0.03


def test_what_is_learnt_by_woodbury_is_the_direct_one():
    task, points = problem(), LOOK
    noise = task.program(SIX).solve(0.8).noise
    assert noise.rank > 0
    assert task.probes(points).views[0].bare is not None
    assert task.learnt(noise, task.probes(points)) == pytest.approx(learnt_share(noise.covariance(), points), rel=1e-9)
    none = CorrelatedNoise(np.zeros((len(X), 0)))
    assert task.learnt(none, task.probes(points)) == pytest.approx(learnt_share(np.zeros_like(A), points), rel=1e-9)


def test_what_is_learnt_without_noise_in_the_data_is_the_direct_one():
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE))
    task, points = problem(prior=prior), LOOK
    noise = task.program(SIX).solve(0.8).noise
    assert task.exposures[0].data_root is None
    cross = kernel(X, points)
    M = kernel(X, X) + noise.covariance()
    direct = np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross)) / (ALPHA * VARIANCE)
    assert task.learnt(noise, task.probes(points)) == pytest.approx(direct, rel=1e-7)


def test_what_is_roughly_learnt_is_that_of_the_whitened_noise():
    task, points, S = problem(), LOOK, SIX
    L, cross = np.linalg.cholesky(A), kernel(X, S)
    U = np.linalg.solve(L, cross)
    values, vectors = np.linalg.eigh(U @ np.linalg.solve(ALPHA * kernel(S, S), U.T) - np.eye(len(X)))
    rough = L @ (vectors * np.maximum(values, 0.0)) @ vectors.T @ L.T
    found = task.program(S).roughly_learnt(task.probes(points))(1.0)
    assert found == pytest.approx(learnt_share(rough, points), rel=1e-9)
    # it keeps the joint promise too
    seen = cross.T @ np.linalg.solve(A + rough, cross)
    assert np.linalg.eigvalsh(ALPHA * kernel(S, S) - seen)[0] >= -1e-9


def test_only_inputs_that_need_noise_are_watched():
    task, points = problem(), WIDE
    bare = learnt_share(np.zeros_like(A), points)
    probes = task.in_need(task.probes(points), 0.9)
    assert np.array_equal(probes.points, points[bare > 0.9])
    assert 0 < len(probes.points) < 300


def test_the_price_of_tightening_is_the_derivative_of_the_trace():
    task = problem()
    program = task.program(SIX)
    step = 1e-5
    noise = program.solve(1.0).noise
    slope = (program.solve(1 - step).noise.trace - program.solve(1 + step).noise.trace) / (2 * step)
    assert task.price_of_tightening(Solution(noise)) == pytest.approx(noise.trace / slope, rel=1e-4)
    assert task.price_of_tightening(Solution(CorrelatedNoise(np.zeros((len(X), 0))))) == 0.0


def test_rows_just_outside_a_border_do_not_tell_too_much_on_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (30, 3))
    X[:, 0] = 0.5 + 0.024 * rng.uniform(0, 1, 30) + 1e-9
    X[0] = 0.25
    prior = sf.Prior(kernel=rbf([0.12] * 3), noise=1e-2)
    mechanism = sf.protect(prior, X, sf.Box([0.0] * 3, [0.5, 1, 1]), alpha=0.3)
    border = np.minimum(X, [0.5, 1, 1])
    cross = oracles.rbf(X, border, 0.12)
    M = oracles.rbf(X, X, 0.12) + 1e-2 * np.eye(30) + mechanism.noise.covariance()
    left = 1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross))
    assert mechanism.certificate.holds
    assert np.sqrt(left / 0.7).min() >= mechanism.certificate.floor_ratio - 1e-9


def pointwise(region=BOX, alpha=ALPHA, **options):
    return sf.protect(PRIOR, X, region, alpha=alpha, guarantee="pointwise", progress=False, **options)


@pytest.mark.slow
def test_cutting_planes_keep_the_floor_on_a_fresh_dense_grid_with_hardly_more_than_the_least_noise():
    mechanism = pointwise()
    a, b = np.meshgrid(np.linspace(0.3, 0.7, 53), np.linspace(0.4, 0.8, 59))
    grid = np.column_stack([a.ravel(), b.ravel()])
    assert mechanism.certificate.holds
    assert mechanism.certificate.evidence == "proved"
    assert learnt_share(mechanism.noise.covariance(), grid).max() <= 1.0
    assert mechanism.certificate.gap <= 1e-3


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("kernel", [matern(0.3), rbf(0.3)])
def test_on_a_line_the_pointwise_gap_is_what_a_proof_needs_and_the_joint_noise_above(kernel, structure):
    t, prior = np.linspace(0, 3, 31), sf.Prior(kernel=kernel, noise=0.01)
    options = {"structure": structure, "alpha": 0.2, "progress": False}
    each = sf.protect(prior, t, sf.Box(1, 2), guarantee="pointwise", **options)
    together = sf.protect(prior, t, sf.Box(1, 2), **options)
    assert each.certificate.holds
    assert together.certificate.holds
    assert each.certificate.evidence == together.certificate.evidence == "proved"
    assert each.certificate.gap <= 2 * KEPT_BACK
    assert each.noise.trace < together.noise.trace


def test_pointwise_rows_are_all_protected_and_the_gap_between_them_is_reported():
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows"):
        mechanism = pointwise(cover="rows")
    inside = np.all((X >= [0.3, 0.4]) & (X <= [0.7, 0.8]), axis=1)
    assert learnt_share(mechanism.noise.covariance(), X[inside]).max() <= 1 + 1e-9
    assert mechanism.certificate.floor_ratio < 1 - 1e-6


def test_one_noise_for_two_priors_keeps_a_region_for_both():
    t = np.linspace(0, 3, 25)
    first, second = sf.Prior(kernel=matern(0.3), noise=0.05), sf.Prior(kernel=matern(0.8), noise=0.05)
    both = sf.protect(first, t, sf.Box(1, 2), alpha=0.3, priors=[second], progress=False)
    assert both.certificate.holds
    grid = np.linspace(1, 2, 777)[:, None]
    for scale in (0.3, 0.8):
        cross = oracles.matern32(t[:, None], grid, scale)
        M = oracles.matern32(t[:, None], t[:, None], scale) + 0.05 * np.eye(25) + both.noise.covariance()
        assert np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross)).max() <= 0.3 + 1e-9
    alone = sf.protect(first, t, sf.Box(1, 2), alpha=0.3, progress=False)
    cross, A = oracles.matern32(t[:, None], grid, 0.8), oracles.matern32(t[:, None], t[:, None], 0.8)
    learnt = np.einsum("ij,ij->j", cross, np.linalg.solve(A + 0.05 * np.eye(25) + alone.noise.covariance(), cross))
    assert learnt.max() > 0.35


def groups(seed, dimension, count, size, lengthscale, spread):
    """Small groups of rows, far apart in the unit cube."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 1, (count, dimension))
    away = spread / np.sqrt(dimension) * rng.standard_normal((count, size, dimension))
    return (centres[:, None] + away).reshape(-1, dimension)


def least_ratio(mechanism, X, noise, lengthscale, alpha, size):
    """The least std over the floor that random descent from every group and row finds."""
    rng = np.random.default_rng(9)
    M = oracles.rbf(X, X, lengthscale) + np.diag(np.broadcast_to(noise, len(X))) + mechanism.noise.covariance()
    white = np.linalg.inv(np.linalg.cholesky(M))
    worst = np.inf
    for k in range(0, len(X), size):
        for start in [X[k : k + size].mean(axis=0), *X[k : k + size]]:
            here, value, step = np.clip(start, 0, 1), np.inf, 0.4 * lengthscale
            for _ in range(40):
                trial = np.clip(here + step * rng.standard_normal((20, len(here))), 0, 1)
                left = 1 - np.sum((white @ oracles.rbf(X, trial, lengthscale)) ** 2, axis=0)
                found = np.sqrt(left / (1 - alpha))
                if found.min() < value:
                    here, value = trial[found.argmin()], found.min()
                else:
                    step *= 0.7
            worst = min(worst, value)
    return worst


@pytest.mark.parametrize(
    ("seed", "dimension", "count", "size", "lengthscale", "noise", "options"),
    [
        pytest.param(*(0, 5, 12, 5, 0.1, 0.3, {}), marks=pytest.mark.slow),
        pytest.param(
            *(0, 3, 30, 3, 0.02, 0.3, {"guarantee": "pointwise", "structure": "diagonal"}), marks=pytest.mark.slow
        ),
        pytest.param(*(2, 5, 8, 4, 0.05, 0.3, {"guarantee": "pointwise"}), marks=pytest.mark.slow),
        (5, 3, 10, 5, 0.01, 1.0, {}),
    ],
)
def test_small_groups_of_rows_in_a_large_region_are_not_overlooked(
    seed, dimension, count, size, lengthscale, noise, options
):
    X = groups(seed, dimension, count, size, lengthscale, 0.8 * lengthscale)
    prior, cube = sf.Prior(kernel=rbf(lengthscale), noise=noise), sf.Box([0] * dimension, [1] * dimension)
    mechanism = sf.protect(prior, X, cube, alpha=0.5, progress=False, **options)
    assert mechanism.certificate.holds
    assert mechanism.certificate.floor_ratio >= 1
    worst = least_ratio(mechanism, X, noise, lengthscale, 0.5, size)
    assert worst >= 1
    assert mechanism.certificate.floor_ratio == pytest.approx(worst, abs=2e-3)


@pytest.mark.slow
def test_the_middle_of_a_ring_of_noisy_rows_is_not_overlooked():
    rng = np.random.default_rng(0)
    ring = rng.standard_normal((40, 5))
    ring /= np.linalg.norm(ring, axis=1, keepdims=True)
    X = np.vstack([0.5 + 0.045 * ring, rng.uniform(0, 1, (20, 5))])
    noise = np.r_[np.full(40, 12.0), np.full(20, 0.01)]
    prior = sf.Prior(kernel=rbf(0.05), noise=noise)
    mechanism = sf.protect(prior, X, sf.Box([0] * 5, [1] * 5), alpha=0.46, guarantee="pointwise", progress=False)
    middle = np.full((1, 5), 0.5)
    cross = oracles.rbf(X, middle, 0.05)
    M = oracles.rbf(X, X, 0.05) + np.diag(noise) + mechanism.noise.covariance()
    assert mechanism.certificate.holds
    assert np.sqrt((1 - cross.T @ np.linalg.solve(M, cross)) / 0.54).item() >= 1


@pytest.mark.parametrize(
    ("dimension", "rows", "lengthscale", "alpha"),
    [
        (3, 12, 0.2, 0.1),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in [(5, 20, 0.3, 0.1), (3, 12, 0.2, 0.5)]),
    ],
)
def test_a_pointwise_promise_never_takes_more_noise_than_the_joint_one(dimension, rows, lengthscale, alpha):
    X = np.random.default_rng(0).random((rows, dimension))
    prior, cube = sf.Prior(kernel=rbf(lengthscale), noise=0.01), sf.Box([0] * dimension, [1] * dimension)
    joint = sf.protect(prior, X, cube, alpha=alpha, progress=False)
    each = sf.protect(prior, X, cube, alpha=alpha, guarantee="pointwise", progress=False)
    assert each.certificate.holds
    assert each.noise.trace <= joint.noise.trace


def test_one_point_needs_the_same_noise_for_both_promises():
    prior = sf.Prior(kernel=rbf(0.2))
    joint = sf.protect(prior, [[0.5]], sf.Points([[0.5]]), alpha=0.001)
    each = sf.protect(prior, [[0.5]], sf.Points([[0.5]]), alpha=0.001, guarantee="pointwise")
    assert each.noise.trace <= joint.noise.trace


def test_where_round_off_leaves_no_best_predictions_the_least_noise_is_taken_and_nothing_is_claimed():
    prior, t = sf.Prior(matern(72.0, 4e4, nu=2.5), noise=0.0), np.linspace(0.0, 3.0, 61)[:, None]
    found = [
        sf.protect(prior, t, sf.Box(1.0, 2.0), 0.1, objective=objective, progress=False)
        for objective in ("noise", "predictions")
    ]
    made, codes = found[1].certificate, {one.code for one in found[1].certificate.findings}
    assert made.holds
    assert found[1].noise.trace == found[0].noise.trace
    # last bits decide whether the program breaks off, or its bound is lost, or proves that the least noise is as good
    if made.objective == "noise":
        assert "least-noise-instead" in codes
    else:
        assert ("predictions-below-best" in codes) == (made.gap >= 0.01)
        assert made.gap == pytest.approx(1.0 - made.explained / made.explained_upper)
