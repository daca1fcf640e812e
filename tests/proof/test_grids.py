"""Grids of nodes on boxes: how close the polynomial through them is to f, and that patches leave no gap."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import sfumato as sf
from sfumato.linalg import interpolation_weights
from sfumato.models import Derivative, build_kernel
from sfumato.proof.grids import Interpolation
from sfumato.regions import Boxes

RBF = {"kind": "rbf", "lengthscale": [0.5, 0.9, 0.7]}
MATERN = {"kind": "matern", "lengthscale": [0.5, 0.9, 0.7]}
ROUGH = {**MATERN, "nu": 0.5, "lengthscale": 0.8, "active_dims": [0]}
PERIODIC = {"kind": "periodic", "lengthscale": [1.5, 2.0, 1.0], "period_length": [2.0, 3.0, 2.5]}
WAVE = {"kind": "cosine", "period_length": 0.9, "active_dims": [0]}
FAST_WAVE = {**WAVE, "period_length": 1e-4}
LINEAR = {"kind": "linear", "variance": [0.5, 1.0, 2.0]}
IN_SECOND = {"kind": "linear", "variance": 4.0, "active_dims": [1]}
MIXTURE = {
    "kind": "spectral_mixture",
    "mixture_weights": [0.7, 0.3],
    "mixture_means": [[0.3, 0.1, 0.2], [0.6, 0.0, 0.1]],
    "mixture_scales": [[0.2, 0.3, 0.2], [0.1, 0.2, 0.3]],
}


def product(*parts):
    return {"kind": "product", "kernels": list(parts)}


def total(*parts):
    return {"kind": "sum", "kernels": list(parts)}


def scaled(variance, part):
    return {"kind": "scale", "variance": variance, "kernel": part}


KERNELS = {
    "rbf": RBF,
    "rational quadratic": {"kind": "rational_quadratic", "alpha": 0.7, "lengthscale": [0.5, 0.9, 0.7]},
    "periodic": PERIODIC,
    "mixture": MIXTURE,
    "matern 5/2": {**MATERN, "nu": 2.5},
    "matern 3/2": {**MATERN, "nu": 1.5},
    "matern 3/2 times periodic": product({**MATERN, "nu": 1.5}, PERIODIC),
    "matern 3/2 plus a wave": total({**MATERN, "nu": 1.5}, scaled(0.5, WAVE)),
    "matern 3/2 plus linear": total({**MATERN, "nu": 1.5}, LINEAR),
    "rbf times linear": product(RBF, LINEAR),
    "sum of rbf and periodic": total(RBF, scaled(2.0, PERIODIC)),
    "matern 5/2 times linear in the second column": product({**MATERN, "nu": 2.5}, IN_SECOND),
}


def errors(prior, grid, boxes, count=400):
    """std(f − p) at inputs of the patches of all boxes, from covariances: f against what the nodes say."""
    rng = np.random.default_rng(0)
    moving, width = grid.columns, boxes.lower.shape[1]
    nodes, members = grid.nodes(boxes), grid.members()
    split = grid.split(boxes, slice(None))
    patches = Boxes(split.lower.reshape(len(boxes), -1, width), split.upper.reshape(len(boxes), -1, width))
    found = []
    for box in range(len(boxes)):
        for patch in {0, len(members) // 2, len(members) - 1}:
            shares = rng.random((count, len(moving)))
            shares[: count // 4] = 0.5 + 0.5 * np.cos(np.pi * (rng.integers(0, 2, (count // 4, len(moving))) + 0.5) / 2)
            low, high = patches.lower[box, patch], patches.upper[box, patch]
            points = np.tile(low, (count, 1))
            points[:, moving] = low[moving] * (1 - shares) + high[moving] * shares
            weights = np.ones((count, 1))
            for place, axis in enumerate(grid.axes):
                own = interpolation_weights(axis.degree, 2.0 * shares[:, place] - 1.0)
                weights = (weights[:, :, None] * own[:, None, :]).reshape(count, -1)
            own = nodes[box, members[patch]]
            squared = prior.variance(points) - 2.0 * np.sum(weights * prior.covariance(points, own), axis=1)
            squared += np.sum((weights @ prior.covariance(own)) * weights, axis=1)
            found.append(np.sqrt(np.maximum(squared, 0.0)))
    return np.concatenate(found)


@pytest.mark.parametrize("name", list(KERNELS))
@pytest.mark.parametrize("moving", [1, 2, 3])
@pytest.mark.parametrize("closeness", [0.1, 3e-3])
def test_the_polynomial_is_as_close_as_the_grid_says(name, moving, closeness):
    """For boxes that differ in the columns that do not vary: what is not stationary is larger in one of them."""
    prior = sf.Prior(kernel=build_kernel(KERNELS[name], 3))
    lower = np.array([[0.0, 0.1, 0.3], [0.2, 0.6, 1.0], [-0.4, 0.4, 0.2]])
    extent = np.where(np.arange(3) < moving, [0.5, 0.4, 0.3], 0.0) / (1.0 if closeness > 0.01 else 3.0)
    boxes = Boxes(lower, lower + extent)
    grid = Interpolation(prior, False).grid(boxes, closeness, 100)
    assert grid is not None
    seen = errors(prior, grid, boxes)
    assert np.max(seen) <= grid.error + 1e-7
    assert grid.error <= closeness * (1.05 if grid.deviations is not None else 1.0)
    if moving == 1:
        assert np.max(seen) >= 0.1 * grid.error


@pytest.mark.parametrize(
    "tree",
    [
        ROUGH,
        total(ROUGH, scaled(0.3, WAVE)),
        total(ROUGH, scaled(0.3, FAST_WAVE)),
        total(scaled(0.1, ROUGH), LINEAR),
        product(ROUGH, WAVE),
    ],
)
def test_functions_without_a_derivative_are_known_along_one_column(tree):
    """A wave that is faster than the places at which errors are looked up is not overlooked."""
    prior = sf.Prior(kernel=build_kernel(tree, 3))
    boxes = Boxes(np.array([[0.3, 0.1, 0.2]]), np.array([[0.5, 0.1, 0.2]]))
    grid = Interpolation(prior, False).grid(boxes, 0.2, 100)
    if "0.0001" in str(tree):
        assert grid is None or grid.axes[0].count > 1000
        return
    assert np.max(errors(prior, grid, boxes)) <= grid.error + 1e-7


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_rough_functions_that_are_not_the_same_everywhere_are_compared_with_chords(nu):
    tree = product({**MATERN, "nu": nu}, LINEAR)
    lower = np.array([[0.2, 0.1, 1.0], [1.0, 0.4, 0.3]])
    boxes = Boxes(lower, lower + np.array([0.1, 0.0, 0.0]))
    prior = sf.Prior(kernel=build_kernel(tree, 3))
    grid = Interpolation(prior, False).grid(boxes, 0.1, 100)
    seen = np.max(errors(prior, grid, boxes))
    assert 0.1 * grid.error <= seen <= grid.error + 1e-7


@pytest.mark.parametrize("nu", [1.5, 2.5, None])
@pytest.mark.parametrize("output", [0, 1])
def test_values_and_derivatives_are_known_each_by_itself(nu, output):
    leaf = {"kind": "rbf", "lengthscale": [0.5, 0.9]}
    leaf = leaf if nu is None else {"kind": "matern", "nu": nu, "lengthscale": [0.5, 0.9]}
    wave = {**PERIODIC, "lengthscale": 1.5, "period_length": 2.0}
    prior = sf.Prior(kernel=build_kernel(product(leaf, wave), 2))
    joint = sf.JointPrior.of(prior, {"r": sf.Value(), "v": Derivative(0)}).prior_on(["s", "t"])
    for extent in ([0.2, 0.0], [0.2, 0.3]):
        lower = np.array([[0.0, 0.1, output], [1.0, -0.5, output]])
        boxes = Boxes(lower, lower + np.array([*extent, 0.0]))
        grid = Interpolation(joint, True).grid(boxes, 0.2, 100)
        assert grid is not None
        assert np.max(errors(joint, grid, boxes)) <= grid.error + 1e-7


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_nodes_far_from_zero_are_misplaced_by_no_more_than_is_said(offset):
    """Functions without a derivative change by the root of what a place is rounded by, in lengthscales."""
    prior = sf.Prior(kernel=build_kernel({"kind": "matern", "nu": 0.5, "lengthscale": 0.01}, 1))
    boxes = Boxes(np.array([[offset]]), np.array([[offset + 0.1]]))
    grid = Interpolation(prior, False).grid(boxes, 0.2, 100)
    with mpmath.workdps(50):
        low, high = (mpmath.mpf(float(one[0, 0])) for one in (boxes.lower, boxes.upper))
        own = [(1 - mpmath.cos(mpmath.pi * j / grid.axes[0].degree)) / 2 for j in range(grid.axes[0].degree)]
        shares = [(patch + share) / grid.axes[0].count for patch in range(grid.axes[0].count) for share in own]
        exact = [low + (high - low) * share for share in [*shares, mpmath.mpf(1)]]
        found = [mpmath.mpf(float(place)) for place in grid.nodes(boxes)[0, :, 0]]
        moved = max(mpmath.sqrt(-2 * mpmath.expm1(-abs(a - b) / mpmath.mpf(0.01))) for a, b in zip(exact, found))
    assert float(moved) <= grid.misplaced


@pytest.mark.parametrize("moving", [1, 2, 3])
def test_patches_leave_no_gap_and_share_their_nodes(moving):
    prior = sf.Prior(kernel=build_kernel(RBF, 3))
    lower = np.array([[0.1, 0.7, 0.3], [1e3, 0.7, -0.1]])
    boxes = Boxes(lower, lower + np.where(np.arange(3) < moving, 1 / 3, 0.0))
    grid = Interpolation(prior, False).grid(boxes, 1e-3, 10)
    patches = grid.split(boxes, slice(None))
    counts = [axis.count for axis in grid.axes]
    low = patches.lower.reshape(2, *counts, 3)
    high = patches.upper.reshape(2, *counts, 3)
    for place, column in enumerate(grid.columns):
        first, last = np.moveaxis(low[..., column], 1 + place, 0), np.moveaxis(high[..., column], 1 + place, 0)
        assert np.array_equal(first[1:], last[:-1])
        assert np.all(first[0].reshape(2, -1) == boxes.lower[:, column : column + 1])
        assert np.all(last[-1].reshape(2, -1) == boxes.upper[:, column : column + 1])
    nodes = grid.nodes(boxes)[:, grid.members()]
    inside = (nodes >= patches.lower.reshape(2, -1, 1, 3)) & (nodes <= patches.upper.reshape(2, -1, 1, 3))
    assert np.all(inside)
    assert nodes.min(axis=2) == pytest.approx(patches.lower.reshape(2, -1, 3))
    assert nodes.max(axis=2) == pytest.approx(patches.upper.reshape(2, -1, 3))
    assert nodes.shape[2] == grid.patch_size
