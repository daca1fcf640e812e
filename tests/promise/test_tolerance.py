"""Tolerances: Δ, its diagonal and the floor that follows, by the formulas of MATH.md 2."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import oracles
from kernels import matern, rbf
from sfumato.data.inputs import MemoryInputs
from sfumato.errors import InputError
from sfumato.models.prior import Prior
from sfumato.promise.tolerance import (
    FloorTolerance,
    FractionTolerance,
    KernelTolerance,
    MatrixTolerance,
    TabulatedFloor,
)

VARIANCE = 4.0
PRIOR = Prior(kernel=rbf(0.5, VARIANCE))
S = np.array([[0.0], [0.3], [1.1]])
INPUTS = MemoryInputs(S, ("t",))
K = oracles.rbf(S, S, 0.5, VARIANCE)


def varying(inputs):
    return 0.5 + inputs[:, 0]


def test_a_fraction_scales_the_prior():
    tolerance = FractionTolerance(0.3)
    assert tolerance.matrix(PRIOR, S) == pytest.approx(0.3 * K, rel=1e-12)
    assert tolerance.floor(PRIOR, S) == pytest.approx(np.full(3, np.sqrt(0.7 * VARIANCE)), rel=1e-12)


@pytest.mark.parametrize(("value", "floors"), [(1.2, [1.2, 1.2, 1.2]), (varying, [0.5, 0.8, 1.6])])
def test_a_floor_is_kept_exactly(value, floors):
    tolerance = FloorTolerance(value)
    fractions = 1 - np.square(floors) / VARIANCE
    assert tolerance.matrix(PRIOR, S) == pytest.approx(np.sqrt(np.outer(fractions, fractions)) * K, rel=1e-12)
    assert tolerance.floor(PRIOR, S) == pytest.approx(floors, rel=1e-12)


@pytest.mark.parametrize(
    "tolerance",
    [
        FractionTolerance(0.3),
        FloorTolerance(1.2),
        FloorTolerance(varying),
        KernelTolerance(matern(0.8, 0.9)),
        MatrixTolerance(np.diag([1.0, 2.0, 3.0])).at(S),
        FloorTolerance(varying).tabulated(lambda: S),
    ],
    ids=["fraction", "floor", "varying floor", "kernel", "matrix", "table"],
)
class TestEveryTolerance:
    def test_the_budget_is_the_diagonal(self, tolerance):
        assert tolerance.budget(PRIOR, S) == pytest.approx(np.diag(tolerance.matrix(PRIOR, S)), rel=1e-12)

    def test_floor_and_budget_make_up_the_prior_variance(self, tolerance):
        assert tolerance.floor(PRIOR, S) ** 2 + tolerance.budget(PRIOR, S) == pytest.approx(np.full(3, VARIANCE))

    def test_a_part_of_the_inputs_has_the_part_of_the_matrix(self, tolerance):
        some = [2, 0]
        assert tolerance.matrix(PRIOR, S[some]) == pytest.approx(tolerance.matrix(PRIOR, S)[np.ix_(some, some)])

    def test_it_is_positive_definite_and_accepted(self, tolerance):
        assert np.linalg.eigvalsh(tolerance.matrix(PRIOR, S))[0] > 0
        tolerance.check(PRIOR, S, INPUTS)

    def test_it_has_words_and_is_frozen(self, tolerance):
        assert "readers" in tolerance.in_words()
        field = dataclasses.fields(tolerance)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(tolerance, field, None)


def test_a_tolerance_kernel_is_evaluated_on_its_own():
    tolerance = KernelTolerance(matern(0.8, 0.9))
    assert tolerance.matrix(PRIOR, S) == pytest.approx(oracles.matern32(S, S, 0.8, 0.9), rel=1e-12)


def test_where_the_tolerance_exceeds_the_prior_nothing_is_promised():
    assert KernelTolerance(rbf(0.5, 9.0)).floor(PRIOR, S).tolist() == [0.0, 0.0, 0.0]


def test_a_floor_above_the_prior_is_refused_with_both_numbers_and_the_place():
    with pytest.raises(InputError, match=r"floor is 2\.5 at t = 0, .* ± 2; give a floor below 2"):
        FloorTolerance(2.5).check(PRIOR, S, INPUTS)
    with pytest.raises(InputError, match=r"floor is 2\.2 at t = 1\.1, .* ± 2"):
        FloorTolerance(lambda s: 2 * s[:, 0]).check(PRIOR, S[2:], INPUTS)
    with pytest.raises(InputError, match="floor is 2 at"):
        FloorTolerance(2.0).check(PRIOR, S, INPUTS)


@pytest.mark.parametrize("returned", [[1.0, 2.0], [1.0, np.nan, 1.0], [1.0, 0.0, 1.0], [-1.0]])
def test_a_floor_function_returns_one_positive_number_an_input(returned):
    with pytest.raises(InputError, match=r"floor returned .* for 3 inputs"):
        FloorTolerance(lambda _: returned).values(S)


def test_a_floor_function_cannot_change_the_inputs():
    def vandal(inputs):
        inputs[:] = 7.0
        return np.ones(len(inputs))

    points = S.copy()
    FloorTolerance(vandal).values(points)
    assert np.array_equal(points, S)


def test_a_table_knows_its_own_inputs_only():
    table = TabulatedFloor.from_table(S, varying(S))
    assert table.floor(PRIOR, S[[2, 0]]) == pytest.approx([1.6, 0.5])
    with pytest.raises(InputError, match="only at the inputs that were checked"):
        table.budget(PRIOR, S + 1e-9)


def test_a_matrix_says_nothing_about_other_points():
    tolerance = MatrixTolerance(np.eye(3))
    with pytest.raises(InputError, match=r"use it with sf\.Points"):
        tolerance.matrix(PRIOR, S)
    with pytest.raises(InputError, match="other than its own points"):
        tolerance.at(S).matrix(PRIOR, S + 0.5)
    with pytest.raises(InputError, match="same point twice"):
        tolerance.at(S[[0, 1, 0]])


def test_a_matrix_is_a_frozen_copy():
    mine = np.eye(3)
    tolerance = MatrixTolerance(mine).at(S)
    mine[0, 0] = 100.0
    assert tolerance.budget(PRIOR, S).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        tolerance.delta[0, 0] = 5.0


def test_a_matrix_that_is_symmetric_up_to_round_off_is_taken():
    delta = np.array([[1.0, 0.1 + 1e-16], [0.1, 1.0]])
    kept = MatrixTolerance(delta).delta
    assert np.array_equal(kept, kept.T)


def test_a_number_is_a_one_by_one_matrix():
    assert MatrixTolerance(0.5).delta.tolist() == [[0.5]]
