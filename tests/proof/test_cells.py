"""Cells: what is proved of polynomials on patches, against their values at many places."""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data import as_inputs
from sfumato.linalg import interpolation_nodes, interpolation_weights
from sfumato.proof.cells import Cells, first_cells, offset_cells, prove_cells, round_off
from sfumato.proof.grids import Axis, Grid, nodes_of
from sfumato.regions import Ball, Box, Boxes

#: How many places are looked at along each column, by the number of columns.
DENSE = {1: 2001, 2: 81, 3: 21}


class Problem(NamedTuple):
    """Patches with g = b − wᵀCw, as ``cells``, and its ``values`` at many ``shares`` of each."""

    cells: Cells
    boxes: Boxes
    shares: np.ndarray
    values: np.ndarray
    blocks: np.ndarray
    offsets: np.ndarray


def grid_of(degrees, variance=None):
    axes = tuple(Axis(degree, 1, 0.0) for degree in degrees)
    return Grid(np.arange(len(degrees)), axes, tuple(variance or [0] * len(degrees)))


def weights(degrees, shares):
    """The weights of all nodes at these shares of a patch."""
    found = np.ones((len(shares), 1))
    for place, degree in enumerate(degrees):
        own = interpolation_weights(degree, 2.0 * shares[:, place] - 1.0)
        found = (found[:, :, None] * own[:, None, :]).reshape(len(shares), -1)
    return found


def everywhere(columns):
    line = np.linspace(0.0, 1.0, DENSE[columns])
    return np.stack(np.meshgrid(*[line] * columns, indexing="ij"), axis=-1).reshape(-1, columns)


def problem(degrees, seed, patches=3):
    rng = np.random.default_rng(seed)
    nodes = int(np.prod([degree + 1 for degree in degrees]))
    roots = rng.standard_normal((patches, nodes, 2)) * rng.random((patches, 1, 1))
    blocks = roots @ roots.swapaxes(1, 2)
    offsets = rng.random((patches, 1)) * 6.0
    shares = everywhere(len(degrees))
    w = weights(degrees, shares)
    values = offsets - np.einsum("ij,pjk,ik->pi", w, blocks, w)
    cells = first_cells(-blocks, grid_of(degrees))
    moved = cells.coefficients + offset_cells(offsets, grid_of(degrees))
    lower = rng.random((patches, len(degrees)))
    boxes = Boxes(lower, lower + 0.5 + rng.random((patches, len(degrees))))
    return Problem(Cells(moved, cells.patch, cells.first, cells.last), boxes, shares, values, blocks, offsets)


degrees = st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=3) | st.lists(
    st.sampled_from([6, 8]), min_size=1, max_size=1
)


@settings(max_examples=40)
@given(degrees, st.integers(0, 10_000), st.floats(-0.5, 0.9))
def test_what_is_proved_holds_and_what_holds_by_a_margin_is_proved(degrees, seed, height):
    cells, boxes, shares, values, blocks, offsets = problem(degrees, seed)
    low, high = values.min(axis=1), values.max(axis=1)
    least = low + height * (high - low) * np.array([1.0, 1e-3, -1e-2])
    found = prove_cells(cells, least, boxes, np.arange(len(degrees)), None, None)
    scale = 1e-12 * np.max(np.abs(values))
    for patch in range(len(boxes)):
        below = values[patch] < least[patch] - scale
        assert not (found.proved[patch] and np.any(below))
        # what is below lies in the part that is not proved
        inside = (shares >= found.first[patch]) & (shares <= found.last[patch])
        assert np.all(np.all(inside, axis=1)[below])
        spread = float(high[patch] - low[patch])
        if low[patch] > least[patch] + 0.05 * spread:
            assert found.proved[patch]
        # the worst input that was seen has the value that is said
        place = (found.places[patch] - boxes.lower[patch]) / (boxes.upper - boxes.lower)[patch]
        w = weights(degrees, place[None])[0]
        assert found.spare[patch] == pytest.approx(offsets[patch, 0] - w @ blocks[patch] @ w - least[patch], abs=1e-9)


@settings(max_examples=60)
@given(st.sampled_from([[1], [3], [2, 2], [1, 4], [2, 1, 2]]), st.integers(0, 10_000), st.floats(0.0, 0.9))
def test_only_the_part_that_lies_in_the_region_counts(degrees, seed, height):
    columns = len(degrees)
    cells, boxes, shares, values, *_ = problem(degrees, seed)
    inputs = as_inputs(np.random.default_rng(seed).random((20, columns)))
    ball = Ball([0.8] * columns, 0.45).on_columns_of(inputs)
    least = values.min(axis=1) + height * np.ptp(values, axis=1)
    found = prove_cells(cells, least, boxes, np.arange(columns), ball.contains, ball.meets)
    for patch in range(len(boxes)):
        places = boxes.lower[patch] + shares * (boxes.upper - boxes.lower)[patch]
        inside = ball.contains(places)
        below = (values[patch] < least[patch] - 1e-9) & inside
        assert not (found.proved[patch] and np.any(below))
        window = np.all((shares >= found.first[patch]) & (shares <= found.last[patch]), axis=1)
        assert np.all(window[below])
        if np.isfinite(found.spare[patch]):
            assert ball.contains(found.places[patch : patch + 1])[0]
        if not np.any(inside) and not ball.meets(boxes.lower[patch][None], boxes.upper[patch][None])[0]:
            assert found.proved[patch]


@given(st.sampled_from([[1], [2], [4], [2, 1], [1, 2, 1]]), st.integers(0, 10_000))
def test_offsets_are_polynomials_of_their_own_degrees(degrees, seed):
    """A variance that is a polynomial, given by its values at as few nodes as it needs."""
    rng = np.random.default_rng(seed)
    own = [int(rng.integers(0, 7)) for _ in degrees]
    grid = grid_of(degrees, own)
    powers = np.stack(np.meshgrid(*[np.arange(degree + 1) for degree in own], indexing="ij"), axis=-1)
    powers = powers.reshape(-1, len(own))
    factors = rng.standard_normal((2, len(powers)))

    def polynomial(shares):
        return factors @ np.prod(shares[:, None, :] ** powers[None], axis=2).T

    found = offset_cells(polynomial(nodes_of(own)), grid)
    if not any(own):
        assert found.reshape(2, -1) == pytest.approx(np.repeat(factors, np.prod(grid.parts), axis=1))
        return
    nothing = np.zeros((2, *[int(np.prod([degree + 1 for degree in degrees]))] * 2))
    cells = first_cells(nothing, grid)
    values, shares = Cells(found, cells.patch, cells.first, cells.last).corners()
    for cell in range(len(cells)):
        assert values[cell] == pytest.approx(polynomial(shares[cell])[cells.patch[cell]], abs=1e-10)
        # and everywhere between its coefficients
        inside = cells.first[cell] + rng.random((50, len(own))) * (cells.last[cell] - cells.first[cell])
        exact = polynomial(inside)[cells.patch[cell]]
        assert found[cell].min() - 1e-10 <= exact.min()
        assert exact.max() <= found[cell].max() + 1e-10


def test_what_is_no_number_is_not_proved():
    cells, boxes, *_ = problem([2, 1], 0)
    broken = cells.coefficients.copy()
    broken[0, 1, 1] = np.nan
    found = prove_cells(
        Cells(broken, cells.patch, cells.first, cells.last), np.full(3, -1e9), boxes, np.arange(2), None, None
    )
    assert found.proved.tolist() == [False, True, True]


def test_nothing_to_prove_is_proved():
    cells, boxes, *_ = problem([2, 1], 0)
    found = prove_cells(cells.where(np.zeros(0, dtype=int)), np.zeros(0), boxes[:0], np.arange(2), None, None)
    assert len(found.proved) == 0


def test_a_region_within_one_patch_needs_no_corner_of_it():
    """Below everywhere outside the region, and above inside it."""
    grid = grid_of([2, 2], [2, 2])
    shares = nodes_of([2, 2])
    bowl = 1.0 - 8.0 * np.sum((shares - 0.5) ** 2, axis=1)
    cells = first_cells(np.zeros((1, 9, 9)), grid)
    cells = Cells(cells.coefficients + offset_cells(bowl[None], grid), cells.patch, cells.first, cells.last)
    boxes = Boxes(np.zeros((1, 2)), np.ones((1, 2)))
    inputs = as_inputs(np.random.default_rng(0).random((9, 2)))
    for radius, kept in ((0.34, True), (0.36, False)):
        ball = Ball([0.5, 0.5], radius).on_columns_of(inputs)
        assert prove_cells(cells, np.zeros(1), boxes, np.arange(2), ball.contains, ball.meets).proved[0] == kept
    box = Box([0.26, 0.26], [0.74, 0.74]).on_columns_of(inputs)
    assert prove_cells(cells, np.zeros(1), boxes, np.arange(2), box.contains, box.meets).proved[0]


@pytest.mark.parametrize("degrees", [[1], [8], [3, 4], [2, 2, 2]])
def test_round_off_of_coefficients_is_no_more_than_is_said(degrees):
    """At corners, where a coefficient is the value, against 50 digits; and with errors of the entries."""
    rng = np.random.default_rng(1)
    grid, nodes = grid_of(degrees), int(np.prod([degree + 1 for degree in degrees]))
    block = rng.uniform(-1.0, 1.0, (nodes, nodes))
    cells = first_cells(block[None], grid)
    with mpmath.workdps(50):
        for cell in range(len(cells)):
            share = np.where(rng.random(len(degrees)) < 0.5, cells.first[cell], cells.last[cell])
            w = [mpmath.mpf(1)]
            for place, degree in enumerate(degrees):
                own = [mpmath.mpf(float(node)) for node in interpolation_nodes(degree)]
                x = 2 * mpmath.mpf(float(share[place])) - 1
                line = [mpmath.fprod((x - b) / (a - b) for b in own if b != a) for a in own]
                w = [one * other for one in w for other in line]
            exact = mpmath.fsum(
                w[i] * w[j] * mpmath.mpf(float(block[i, j])) for i in range(nodes) for j in range(nodes)
            )
            corner = tuple(0 if share[i] == cells.first[cell, i] else -1 for i in range(len(degrees)))
            assert abs(cells.coefficients[(cell, *corner)] - float(exact)) <= round_off(grid, 0.0)
    entries = 1e-10
    wrong = first_cells((block + entries * rng.uniform(-1.0, 1.0, block.shape))[None], grid)
    assert np.max(np.abs(wrong.coefficients - cells.coefficients)) <= round_off(grid, entries)
