"""The floor over a region: what is proved is never found to be broken, and broken proofs are found out.

The examiner looks at many inputs, goes downhill from the worst of them, and knows nothing of the proof but its claim.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from kernel_oracles import DIGITS, kernel50, kernel_values
from kernels import matern
from oracles import explained_variances50
from sfumato.data import Here, as_inputs
from sfumato.linalg import interpolation_weights, quadratic
from sfumato.models import build_kernel
from sfumato.noise import CorrelatedNoise
from sfumato.promise import Design, FloorTolerance, FractionTolerance, KernelTolerance, Reader
from sfumato.proof import cells as cells_module
from sfumato.proof import grids as grids_module
from sfumato.proof import region as region_module
from sfumato.proof.cells import first_cells, prove_cells
from sfumato.proof.grids import Grid, Interpolation
from sfumato.proof.knowledge import ExactKnowledge, KnowledgeFromSums
from sfumato.proof.region import CLOSENESS, Prover, pieces_of
from sfumato.proof.sums import summary_of
from sfumato.regions import Boxes

#: Round-off of the examiner: what is less than this below a floor is not held against a proof.
SEEN = 1e-9


def product(*parts):
    return {"kind": "product", "kernels": list(parts)}


def total(*parts):
    return {"kind": "sum", "kernels": list(parts)}


def scaled(variance, part):
    return {"kind": "scale", "variance": variance, "kernel": part}


class Case(NamedTuple):
    """A design, and the kernel of its prior as the examiner knows it."""

    design: Design
    tree: dict[str, Any]


def case(tree, X, region, tolerance, noise=1e-2, strength=1.0, sensitive=24, shift=0.0) -> Case:
    """A design whose noise, times ``strength``, is the least for some of the region's inputs jointly."""
    inputs = as_inputs(np.asarray(X, dtype=float))
    prior = sf.Prior(kernel=build_kernel(tree, inputs.dimension), noise=noise)
    region = region.bind(inputs)
    places = region.probes(sensitive, inputs)[:sensitive]
    demanded = tolerance.matrix(prior, places)
    demanded[np.diag_indices(len(places))] *= 1.0 + 1e-6
    cross = prior.covariance(inputs.values, places)
    needed = cross @ np.linalg.solve(demanded, cross.T)
    needed -= prior.covariance(inputs.values) + np.diag(prior.noise_variance(len(inputs)))
    values, vectors = np.linalg.eigh(needed)
    kept = values > 1e-12
    factor = strength * vectors[:, kept] * np.sqrt(values[kept])
    return Case(
        Design(prior, inputs, region, tolerance, "greedy", places, CorrelatedNoise(factor, shift)),
        tree,
    )


def proved(made: Case):
    design = made.design
    return Prover(design, ExactKnowledge(design, Reader(design.prior), design.noise)).prove(pieces_of(design))


class Examiner:
    """std(f(s)|W)/floor(s), from the published numbers and the textbook."""

    def __init__(self, made: Case) -> None:
        self.design, self.tree = made
        X, noise = self.design.inputs.values, self.design.noise
        total = kernel_values(self.tree, X, X) + noise.factor @ noise.factor.T
        total[np.diag_indices(len(X))] += self.design.prior.noise_variance(len(X)) + noise.shift
        self.root = scipy.linalg.cholesky(total, lower=True)

    def variance(self, points):
        few = [points[start : start + 32] for start in range(0, len(points), 32)]
        return np.concatenate([np.diag(kernel_values(self.tree, own, own)) for own in few]) if few else np.zeros(0)

    def floor(self, points):
        tolerance, variance = self.design.tolerance, self.variance(points)
        if isinstance(tolerance, FractionTolerance):
            return np.sqrt((1.0 - tolerance.alpha) * variance)
        if isinstance(tolerance, FloorTolerance):
            return np.full(len(points), tolerance.value)
        return np.sqrt(variance - tolerance.budget(self.design.prior, points))

    def ratios(self, points):
        cross = kernel_values(self.tree, self.design.inputs.values, points)
        told = np.sum(scipy.linalg.solve_triangular(self.root, cross, lower=True) ** 2, axis=0)
        return np.sqrt(np.maximum(self.variance(points) - told, 0.0)) / self.floor(points)

    def downhill(self, start, moving):
        """Inputs on the way to a place with a smaller ratio, starting from one."""
        scale = np.ptp(self.design.inputs.values[:, moving], axis=0) + 1e-3

        def at(shift):
            point = start.copy()
            point[moving] += shift * scale
            return point

        def value(shift):
            return float(self.ratios(self.design.region.project(at(shift)[None], self.design.inputs))[0])

        found = scipy.optimize.minimize(value, np.zeros(len(moving)), method="Nelder-Mead", options={"maxiter": 120})
        return self.design.region.project(at(found.x)[None], self.design.inputs)

    def ratio50(self, point):
        """The same in 50 digits."""
        X, noise, prior = self.design.inputs.values, self.design.noise, self.design.prior
        with mpmath.workdps(DIGITS):
            rows = [[mpmath.mpf(v) for v in row] for row in X.tolist()]
            place = [mpmath.mpf(v) for v in point.tolist()]
            M = mpmath.matrix([[kernel50(self.tree, a, b) for b in rows] for a in rows])
            F = mpmath.matrix(noise.factor.tolist()) if noise.factor.size else None
            M = M if F is None else M + F * F.T
            for i, own in enumerate(prior.noise_variance(len(X))):
                M[i, i] += mpmath.mpf(float(own)) + mpmath.mpf(float(noise.shift))
            cross = mpmath.matrix([[kernel50(self.tree, a, place)] for a in rows])
            variance = kernel50(self.tree, place, place)
            explained = mpmath.mpf(float(explained_variances50(M, cross)[0]))
            if isinstance(self.design.tolerance, FractionTolerance):
                floor2 = (1 - mpmath.mpf(self.design.tolerance.alpha)) * variance
            else:
                floor2 = mpmath.mpf(float(self.floor(point[None])[0])) ** 2
            return float(mpmath.sqrt((variance - explained) / floor2))


def inside(points, boxes: Boxes):
    """Which points lie in any of the boxes."""
    found = np.zeros(len(points), dtype=bool)
    for low, high in zip(boxes.lower, boxes.upper, strict=True):
        found |= np.all((points >= low) & (points <= high), axis=1)
    return found


def looked_at(examiner: Examiner, count=1500, walks=6):
    """Inputs of the region where a reader may know most."""
    design = examiner.design
    region, inputs = design.region, design.inputs
    points = [region.probes(count, inputs, batch=5), region.project_into_parts(inputs.values, inputs)]
    boxes = region.boxes(inputs)
    rng = np.random.default_rng(3)
    which = rng.integers(0, len(boxes), count)
    shares = rng.random((count, inputs.dimension))
    shares[: count // 3] = np.round(shares[: count // 3])
    # clipped: sums of rounded numbers may lie beyond the end of a box
    points.append(np.minimum(boxes.lower[which] + shares * (boxes.upper - boxes.lower)[which], boxes.upper[which]))
    points = np.vstack(points)
    points = points[region.contains(points)]
    ratios = examiner.ratios(points)
    moving = np.flatnonzero(np.any(boxes.upper > boxes.lower, axis=0))
    if moving.size:
        starts = points[np.argsort(ratios)[: 4 * walks : 4]]
        walked = np.vstack([examiner.downhill(start, moving) for start in starts])
        points = np.vstack([points, walked[region.contains(walked)]])
    return points


def broken_claims(made: Case, proof, **how):
    """Inputs that the proof claims and the examiner finds below the floor, worst first."""
    examiner = Examiner(made)
    points = looked_at(examiner, **how)
    ratios = examiner.ratios(points)
    wrong = (ratios < 1.0 - SEEN) & ~inside(points, proof.open.boxes)
    order = np.argsort(ratios[wrong])
    return points[wrong][order]


RBF = {"kind": "rbf", "lengthscale": 0.4}
SECOND = {"kind": "linear", "variance": 1.5, "active_dims": [1]}
FIRST_RBF = {"kind": "rbf", "lengthscale": 0.4, "active_dims": [0]}
WAVES = {"kind": "periodic", "lengthscale": 1.0, "period_length": 1.3}
KERNELS = {
    "rbf": RBF,
    "rbf of a variance": scaled(3.0, RBF),
    "rational quadratic": {"kind": "rational_quadratic", "lengthscale": 0.5, "alpha": 0.8},
    "matern 3/2": {"kind": "matern", "nu": 1.5, "lengthscale": 0.8},
    "matern 5/2": {"kind": "matern", "nu": 2.5, "lengthscale": 0.6},
    "periodic": WAVES,
    "additive": total(FIRST_RBF, {**FIRST_RBF, "active_dims": [1]}),
    "rbf times periodic": product({"kind": "rbf", "lengthscale": 1.2}, WAVES),
    "rbf plus linear": total(RBF, {"kind": "linear", "variance": [0.5, 1.0]}),
    "rbf times linear in the second": product(FIRST_RBF, SECOND),
    "matern 5/2 times a square": product(
        {"kind": "matern", "nu": 2.5, "lengthscale": 0.9}, {"kind": "polynomial", "offset": 0.5, "power": 2}
    ),
    "rbf plus a cubic of each column": total(
        RBF, scaled(3.0, {"kind": "trend", "power": 3, "centre": [0.5, 0.1], "width": [0.6, 0.9]})
    ),
    "a line that a season grows along": product(
        WAVES, total(RBF, {"kind": "trend", "power": 1, "centre": 0.4, "width": 0.5, "active_dims": [0]})
    ),
    "rbf plus polynomial": total(RBF, scaled(0.2, {"kind": "polynomial", "offset": 0.5, "power": 2})),
    "mixture": {
        "kind": "spectral_mixture",
        "mixture_weights": [0.6, 0.4],
        "mixture_means": [[0.2, 0.1], [0.8, 0.5]],
        "mixture_scales": [[0.3, 0.2], [0.1, 0.3]],
    },
}
REGIONS = {
    "box": sf.Box([0.2, 0.3], [0.6, 0.8]),
    "ball": sf.Ball([0.5, 0.5], 0.3),
    "union": sf.Box([0.1, 0.1], [0.3, 0.4]) | sf.Ball([0.7, 0.6], 0.2),
    "meeting": sf.Box([0.2, 0.2], [0.7, 0.9]) & sf.Ball([0.4, 0.5], 0.35),
    "first column": sf.Box([0.2, None], [0.6, None]),
    "ranges": sf.Box([0.2, None], [0.5, None], free="ranges"),
    "points": sf.Points([[0.3, 0.4], [0.5, 0.5]]),
}


def rows(seed, count=14):
    return np.round(np.random.default_rng(seed).random((count, 2)), 2) + 0.05


tolerances = st.one_of(
    st.floats(0.05, 0.95).map(FractionTolerance),
    st.floats(0.02, 0.2).map(FloorTolerance),
    st.just(KernelTolerance(build_kernel(scaled(0.02, total(RBF, {"kind": "linear", "variance": [0.3, 0.6]})), 2))),
)


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.sampled_from(sorted(REGIONS)),
    tolerances,
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.9, 0.99, 1.0, 1.02, 1.2]),
    st.sampled_from([0.3, 1e-2, 1e-4]),
)
def test_no_proved_floor_is_broken(kernel, region, tolerance, seed, strength, noise):
    made = case(KERNELS[kernel], rows(seed), REGIONS[region], tolerance, noise, strength, sensitive=16)
    proof = proved(made)
    assert len(broken_claims(made, proof, count=400, walks=2)) == 0
    # what is said to be short is in the region, and what is left open is part of it
    if len(proof.short):
        assert np.all(made.design.region.contains(proof.short))
    assert 0.0 <= proof.share <= 1.0
    if proof.share == 1.0:
        assert not len(proof.open)


# ---------------------------------------------------------------- broken proofs are found out


def one_column(tree, alpha, X, region, noise, factor=None, shift=0.0) -> Case:
    inputs = as_inputs(np.asarray(X, dtype=float))
    prior = sf.Prior(kernel=build_kernel(tree, 1), noise=noise)
    own = np.zeros((len(inputs), 0)) if factor is None else factor
    bound = region.bind(inputs)
    noisy = CorrelatedNoise(own, shift)
    return Case(Design(prior, inputs, bound, FractionTolerance(alpha), "greedy", inputs.values[:0], noisy), tree)


def known_at_the_upper_end() -> Case:
    """Rows without noise at one end of the region, of which readers know too much there and nowhere else."""
    return one_column({"kind": "rbf", "lengthscale": 0.1}, 0.5, np.array([1.0, 1.0, 0.97]), sf.Box(0.0, 1.0), noise=0.2)


def told_what_the_polynomial_leaves_out() -> Case:
    """A release that shows f(s) less a part of what the first polynomial says of it, so that ρ is nearly attained."""
    tree, alpha, count = {"kind": "rbf", "lengthscale": 1.0}, 0.25, 8
    prior = sf.Prior(kernel=build_kernel(tree, 1))
    boxes = Boxes(np.zeros((1, 1)), np.full((1, 1), 1.5))
    for _ in range(6):
        grid = Interpolation(prior, False).grid(boxes, CLOSENESS[0] * np.sqrt(min(alpha, 1 - alpha)), count)
        nodes = grid.nodes(boxes)[0, grid.members()[0]]
        extent = float(nodes[-1, 0] - nodes[0, 0])
        dense = np.linspace(0.0, extent, 2001)[1:-1, None]
        w = interpolation_weights(grid.axes[0].degree, 2.0 * dense[:, 0] / extent - 1.0)
        K, cross = kernel_values(tree, nodes, nodes), kernel_values(tree, dense, nodes)
        left = 1.0 - 2.0 * np.sum(w * cross, axis=1) + np.sum((w @ K) * w, axis=1)
        worst = int(np.argmax(left))
        X = np.vstack([dense[worst : worst + 1], nodes])
        covariance, polynomial = kernel_values(tree, X, X), np.append(0.0, w[worst])
        best = (-1.0, 0.0, np.zeros(len(X)))
        for part in np.sqrt(left[worst]) * np.linspace(-2.0, 2.0, 401):
            told = np.append(1.0, (part - 1.0) * w[worst])
            size = np.sqrt(told @ covariance @ told)
            known, of_polynomial = abs(covariance[0] @ told) / size, abs(polynomial @ covariance @ told) / size
            if 0.2 < known < 0.7 and known - of_polynomial > best[0]:
                best = (known - of_polynomial, known, told)
        told, alpha, count = best[2], 0.998 * best[1] ** 2, len(X)
    # noise without end on all other combinations of the rows
    others = scipy.linalg.null_space(told[None])
    return one_column(tree, alpha, X, sf.Box(0.0, 1.5), 0.0, 300.0 * others, 1e-12)


def known_between_nodes() -> Case:
    """A row between two nodes of a polynomial of degree 6, and a floor that is kept but next to it."""
    tree = {"kind": "rbf", "lengthscale": 1.0}
    return one_column(tree, 0.999 / 2.5, np.array([0.31]), sf.Box(0.0, 1.5), noise=1.5)


def smaller_in_other_rows() -> Case:
    """A line in the second column times a wave in the first: each box has a variance of its own, the first the most."""
    X = np.column_stack([np.linspace(0.0, 1.0, 12), np.repeat([-3.0, -1.0, -0.2], 4)])
    tree = product({"kind": "rbf", "lengthscale": 0.5, "active_dims": [0]}, {**SECOND, "variance": 1.0})
    return case(tree, X, sf.Box([0.0, None], [1.0, None]), FractionTolerance(0.8), 0.05, 0.0)


def a_tolerance_that_bends() -> Case:
    """Next to nothing may be learnt at one end of the region, and much at the other."""
    tree, bowl = {"kind": "rbf", "lengthscale": 400.0}, {"kind": "polynomial", "offset": 0.02, "power": 4}
    made = one_column(tree, 0.5, np.array([0.0, 1.0]), sf.Box(0.0, 1.0), 2e5)
    tolerance = KernelTolerance(build_kernel(scaled(0.5, bowl), 1))
    return Case(dataclasses.replace(made.design, tolerance=tolerance), tree)


def known_inside_a_patch() -> Case:
    """A rough function that is known best at a row in the middle of the region."""
    tree = {"kind": "matern", "nu": 0.5, "lengthscale": 5.0}
    return one_column(tree, 0.999 / 2.5, np.array([0.31]), sf.Box(0.0, 1.0), noise=1.5)


def of_cells(change):
    """The proof of cells, after ``change``."""

    def prove(cells, *others):
        return prove_cells(change(cells), *others)

    return prove


def not_cut(self, pieces):
    self.cut = True
    return pieces


def without_a_patch(self, live, grid):
    for patches, blocks, told in ORIGINAL_PATCHES(self, live, grid):
        yield patches[:-1], blocks[:-1], told


def other_signs(degree, count, raised):
    found = quadratic(degree, count, raised)
    odd = np.arange(found.maps.shape[1]) % 2 == 1
    return dataclasses.replace(found, maps=np.where(odd[:, None], -found.maps, found.maps))


ORIGINAL_PATCHES, ORIGINAL_ERROR, ORIGINAL_WITHIN = Prover._patches, Grid.error.fget, region_module._Live.within

#: What shows that a proof is broken, and how it is: what is put where.
BROKEN = {
    "half of what the polynomial leaves out": (
        told_what_the_polynomial_leaves_out,
        (Grid, "error", property(lambda self: 0.5 * ORIGINAL_ERROR(self))),
    ),
    "nothing of what the polynomial leaves out": (
        told_what_the_polynomial_leaves_out,
        (Grid, "error", property(lambda self: 0.0)),
    ),
    "all cells but the last": (
        known_at_the_upper_end,
        (region_module, "prove_cells", of_cells(lambda cells: cells.where(np.arange(len(cells) - 1)))),
    ),
    "all patches but the last": (known_at_the_upper_end, (Prover, "_patches", without_a_patch)),
    "what is explained is added": (
        known_at_the_upper_end,
        (region_module, "first_cells", lambda blocks, grid: first_cells(-blocks, grid)),
    ),
    "the sign of every other coefficient": (known_between_nodes, (cells_module, "quadratic", other_signs)),
    "half of what is left of a patch": (
        told_what_the_polynomial_leaves_out,
        (
            region_module._Live,
            "within",
            lambda self, columns, first, last: ORIGINAL_WITHIN(self, columns, first, 0.5 * (first + last)),
        ),
    ),
    "rows inside patches": (known_inside_a_patch, (Prover, "_between_rows", not_cut)),
    "every box has the covariances of the first": (
        smaller_in_other_rows,
        (Interpolation, "is_stationary", lambda self, boxes, columns: True),
    ),
    "a tolerance is the same everywhere": (
        a_tolerance_that_bends,
        (Interpolation, "variance_degrees", lambda self, boxes, columns: (0,) * len(columns)),
    ),
}


@pytest.mark.parametrize("how", list(BROKEN))
def test_a_broken_proof_is_found_out(how, monkeypatch):
    make, (place, name, instead) = BROKEN[how]
    if make is known_between_nodes:
        monkeypatch.setattr(grids_module, "DEGREES", {1: (6,)})
    made = make()
    proof = proved(made)
    assert proof.share < 1.0
    assert len(broken_claims(made, proof)) == 0
    monkeypatch.setattr(place, name, instead)
    proof = proved(made)
    found = broken_claims(made, proof)
    assert len(found) > 0
    assert Examiner(made).ratio50(found[0]) < 1.0 - SEEN


# ---------------------------------------------------------------- other regions, outputs and readers


ROUGH = {
    "1/2": {"kind": "matern", "nu": 0.5, "lengthscale": 0.5},
    "3/2": {"kind": "matern", "nu": 1.5, "lengthscale": 0.3},
    "5/2": {"kind": "matern", "nu": 2.5, "lengthscale": 0.2},
    "1/2 times waves": product({"kind": "matern", "nu": 0.5, "lengthscale": 0.7}, WAVES),
    "3/2 times a line": product({"kind": "matern", "nu": 1.5, "lengthscale": 0.4}, {"kind": "linear", "variance": 0.5}),
    "1/2 times a cubic": product(
        {"kind": "matern", "nu": 0.5, "lengthscale": 0.6}, {"kind": "polynomial", "offset": 0.5, "power": 3}
    ),
    "1/2 plus a line": total({"kind": "matern", "nu": 0.5, "lengthscale": 0.4}, {"kind": "linear", "variance": 0.5}),
}


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(ROUGH)),
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.9, 0.99, 1.0, 1.03]),
    st.sampled_from([0.3, 1e-2, 1e-6]),
    st.floats(0.05, 0.95),
)
def test_rough_functions_are_proved_along_one_column(kernel, seed, strength, noise, alpha):
    """Rows in any places, some twice or next to each other, and at the ends of the region."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.random(8), [0.3, 0.7, 0.7], rng.random(2) + 1e-9])
    made = case(ROUGH[kernel], X[:, None], sf.Box(0.3, 0.7), FractionTolerance(alpha), noise, strength, sensitive=30)
    proof = proved(made)
    examiner = Examiner(made)
    points = np.concatenate([np.linspace(0.3, 0.7, 4001), X[(X >= 0.3) & (X <= 0.7)]])[:, None]
    ratios = examiner.ratios(points)
    assert np.all(inside(points[ratios < 1.0 - SEEN], proof.open.boxes))
    assert proof.nodes < 100_000
    if np.min(ratios) > 1.001 and noise > 1e-4:
        assert proof.share == 1.0


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_smooth_functions_are_proved_in_several_columns(columns):
    rng = np.random.default_rng(columns)
    X = rng.random((30, columns))
    tree = {"kind": "rbf", "lengthscale": [0.9] * columns}
    region = sf.Box([0.2] * columns, [0.7 if columns < 5 else 0.5] * columns)
    for strength, holds in ((1.03, True), (0.9, False)):
        made = case(tree, X, region, FractionTolerance(0.3), 0.1, strength, sensitive=150)
        proof = proved(made)
        assert (proof.share == 1.0) == holds
        assert len(broken_claims(made, proof, count=2000, walks=3)) == 0


def test_traps_are_seen():
    """Where searches were once led astray: additive kernels, period images, a cluster of rows, one far row."""
    additive = total({**FIRST_RBF, "lengthscale": 0.1}, {**FIRST_RBF, "lengthscale": 0.1, "active_dims": [1]})
    mixed = np.array([[0.2, 0.2], [0.2, 0.8], [0.8, 0.2]])
    image = product({"kind": "rbf", "lengthscale": 50.0, "active_dims": [0]}, {**WAVES, "active_dims": [0]})
    cluster = np.vstack([np.full((12, 2), 0.71), [[0.0, 0.0], [1.0, 1.0]]])
    traps = [
        # f at the fourth corner is a sum of three that are known
        (additive, mixed, sf.Box([0.7, 0.7], [0.9, 0.9]), 1e-4),
        (image, np.array([[0.2, 0.0], [5.2, 0.1]]), sf.Box([1.4, None], [1.6, None]), 1e-4),
        ({"kind": "rbf", "lengthscale": 0.05}, cluster, sf.Box([0.0, 0.0], [1.0, 1.0]), 0.5),
    ]
    for tree, X, region, noise in traps:
        inputs = as_inputs(X)
        prior = sf.Prior(kernel=build_kernel(tree, 2), noise=noise)
        nothing = CorrelatedNoise(np.zeros((len(X), 0)), 0.0)
        for order in (np.arange(len(X)), np.arange(len(X))[::-1]):
            design = Design(
                prior, as_inputs(X[order]), region.bind(inputs), FractionTolerance(0.6), "greedy", X[:0], nothing
            )
            proof = proved(Case(design, tree))
            assert proof.share < 1.0
            # what is short is really short, and the worst that there is is among it
            ratios = Examiner(Case(design, tree)).ratios(proof.short)
            assert np.min(ratios) < 0.99
            assert len(broken_claims(Case(design, tree), proof)) == 0


def test_named_points_are_looked_at_as_they_are():
    X = np.linspace(0.0, 1.0, 9)[:, None]
    points = np.array([[0.31], [0.31 + 1e-9], [0.9]])
    made = case({"kind": "rbf", "lengthscale": 0.2}, X, sf.Points(points), FractionTolerance(0.3), 0.01, 0.999)
    proof = proved(made)
    below = Examiner(made).ratios(points) < 1.0
    assert np.any(below)
    assert len(proof.open) == int(np.sum(below))
    assert proof.nodes == 0


JOINT = {
    "value and derivative": {"r": sf.Value(), "v": sf.Derivative(0)},
    "derivative alone": {"v": sf.Derivative(0)},
}


@cache
def of_outputs(outputs) -> Design:
    """Outputs of one process, each with a region and a tolerance of its own."""
    prior = sf.Prior(kernel=build_kernel(product({"kind": "rbf", "lengthscale": 0.6}, WAVES), 1), noise=0.02)
    joint = sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative(0)})
    X = {name: np.linspace(0.0, 1.0, 9) for name in joint.outputs}
    region = {name: sf.Box(0.3, 0.6) for name in JOINT[outputs]}
    return sf.protect(joint, X, region, alpha=dict.fromkeys(region, 0.4), progress=False).design


@pytest.mark.parametrize("outputs", list(JOINT))
@pytest.mark.parametrize("strength", [0.0, 0.97, 1.02])
def test_every_sensitive_output_is_proved_or_left_open(outputs, strength):
    design = of_outputs(outputs)
    weaker = dataclasses.replace(design, noise=CorrelatedNoise(strength * design.noise.factor, 0.0))
    knowledge = ExactKnowledge(weaker, Reader(weaker.prior), weaker.noise)
    proof = Prover(weaker, knowledge).prove(pieces_of(weaker))
    assert (proof.share == 1.0) == (strength >= 1.0)
    M = weaker.prior.covariance(weaker.inputs.values) + weaker.noise.covariance()
    M[np.diag_indices_from(M)] += weaker.prior.noise_variance(len(M))
    for number in weaker.region.sensitive:
        points = np.column_stack([np.linspace(0.3, 0.6, 2001), np.full(2001, float(number))])
        cross = weaker.prior.covariance(weaker.inputs.values, points)
        variance = weaker.prior.variance(points)
        left = variance - np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross))
        wrong = np.sqrt(np.maximum(left, 0.0) / (0.6 * variance)) < 1.0 - SEEN
        assert np.all(inside(points[wrong], proof.open.boxes))


@pytest.mark.parametrize("strength", [0.9, 1.0, 1.1])
def test_readers_of_many_rows_are_proved_through_sums(strength):
    """The reader of sums knows no less than the reader of all rows, so that neither breaks what is proved."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    tree = {"kind": "rbf", "lengthscale": 0.5}
    prior = sf.Prior(kernel=build_kernel(tree, 2), noise=0.05)
    how = {"alpha": 0.3, "protects": "function", "method": "compressed", "progress": False}
    mechanism = sf.protect(prior, X, sf.Ball([0.5, 0.5], 0.25), **how)
    noise = mechanism.noise
    design = dataclasses.replace(mechanism.design, noise=dataclasses.replace(noise, mixing=strength * noise.mixing))
    summary = summary_of(design, Here(), None, lambda rows: None)
    knowledge = KnowledgeFromSums(design, Reader(prior), summary, 0)
    proof = Prover(design, knowledge).prove(pieces_of(design))
    assert (proof.share == 1.0) == (strength >= 1.0)
    everything = dataclasses.replace(design, noise=CorrelatedNoise(design.noise.factor, 0.0))
    assert len(broken_claims(Case(everything, tree), proof)) == 0
    points = design.region.probes(2000, design.representatives, batch=3)
    wrong = knowledge.floor_ratios(points) < 1.0 - SEEN
    assert np.all(inside(points[wrong], proof.open.boxes))


@pytest.mark.parametrize(("noise", "spare"), [(0.1, 0.0), (1e-6, 0.0), (1e-10, 0.0), (0.1, 1.0), (1e-6, 1.0)])
def test_what_is_told_at_nodes_is_never_less_than_it_is(noise, spare):
    """In 50 digits, for any combination of the nodes, where M is nearly singular; in double or single precision."""
    X = np.linspace(0.0, 1.0, 16)[:, None]
    tree = {"kind": "rbf", "lengthscale": 0.3}
    made = case(tree, X, sf.Box(0.4, 0.6), FractionTolerance(0.4), noise, 0.7)
    design = made.design
    knowledge = ExactKnowledge(design, Reader(design.prior), design.noise)
    told = knowledge.told(np.array([[[0.4], [0.47], [0.6]]]), spare)
    assert (told.slack > 1e-7) == (spare > 0.0)
    block = told.blocks(np.array([[0, 1, 2]]))[0]
    for w in np.vstack([np.eye(3), [[0.5, 0.7, -0.2], [1.0, -2.0, 1.0], [-0.1, 0.9, 0.2]]]):
        with mpmath.workdps(DIGITS):
            rows = [[mpmath.mpf(v)] for v in X[:, 0].tolist()]
            nodes = [[mpmath.mpf(v)] for v in (0.4, 0.47, 0.6)]
            M = mpmath.matrix([[kernel50(tree, a, b) for b in rows] for a in rows])
            F = mpmath.matrix(design.noise.factor.tolist())
            M = M + F * F.T
            for i in range(len(X)):
                M[i, i] += mpmath.mpf(noise)
            cross = [mpmath.fsum(mpmath.mpf(own) * kernel50(tree, a, b) for own, b in zip(w, nodes)) for a in rows]
            exact = float(explained_variances50(M, mpmath.matrix([[one] for one in cross]))[0])
        rounding = told.rounding * float(np.sum(np.abs(w))) ** 2
        found = np.sqrt(max(w @ block @ w + rounding, 0.0)) + float(np.sum(np.abs(w))) * told.slack
        assert np.sqrt(exact) <= found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_no_proved_floor_is_broken_in_many_more_cases(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        kernel, shape = rng.choice(sorted(KERNELS)), rng.choice(sorted(REGIONS))
        alpha, noise = float(rng.uniform(0.02, 0.98)), float(rng.choice([0.3, 1e-2, 1e-4, 1e-8]))
        strength = float(rng.choice([0.0, 0.9, 0.99, 0.999, 1.0, 1.01, 1.1]))
        X = rows(int(rng.integers(1_000_000)), int(rng.integers(4, 25)))
        made = case(KERNELS[kernel], X, REGIONS[shape], FractionTolerance(alpha), noise, strength)
        proof = proved(made)
        found = broken_claims(made, proof, count=3000, walks=8)
        assert len(found) == 0
        if proof.share == 1.0 and len(X) < 10:
            examiner = Examiner(made)
            points = looked_at(examiner, 200, 4)
            assert examiner.ratio50(points[int(np.argmin(examiner.ratios(points)))]) >= 1.0


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_what_a_design_has_proved_is_proved_again_from_its_file(tmp_path):
    # found by the soak: patches of the whole region came less close to the floor than those of the design
    rows = [4875.71119254936, 4875.574652184708, 4876.0074408583005, 4875.173648441621, 4875.833301643302]
    kernel = matern(0.25582612992422743, 26.1111264173206, 0.5)
    X, region = np.array([*rows, rows[0], rows[0]]), sf.Box(4875.013259471539, 4875.334037411702)
    promise: Any = {"floor": 2.245360261278015, "guarantee": "pointwise", "protects": "function"}
    mechanism = sf.protect(sf.Prior(kernel, noise=0.03156947688728184), X, region, **promise)
    assert mechanism.certificate.evidence == "proved"
    mechanism.release(np.zeros(7)).save(tmp_path / "orbit.sfumato")
    found = sf.load(tmp_path / "orbit.sfumato").certify()
    assert (found.evidence, found.verdict) == ("proved", mechanism.certificate.verdict)
    # and bad news of a file that says less than can be proved are no news
    bad = sf.Finding("searched", "medium", "The promise is searched.")
    shy = dataclasses.replace(mechanism.certificate.with_findings(bad), evidence="searched", proved_share=0.5)
    less = dataclasses.replace(sf.load(tmp_path / "orbit.sfumato"), certificate=shy).certify()
    assert (less.evidence, [one.code for one in less.findings]) == ("proved", [one.code for one in found.findings])
