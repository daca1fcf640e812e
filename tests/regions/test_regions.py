"""What every region promises, and what each kind adds."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.data.inputs import Inputs, Outputs, as_inputs, stacked_inputs
from sfumato.errors import FormatError, InputError
from sfumato.linalg.low_discrepancy import halton
from sfumato.regions import (
    Ball,
    Box,
    Everywhere,
    Intersection,
    OutputRegion,
    Points,
    Region,
    Union,
    region_from_tree,
)


def line(count: int = 31) -> Inputs:
    return as_inputs(np.linspace(0.0, 3.0, count))


def census(count: int = 200) -> Inputs:
    grid = halton(count, 3)
    return as_inputs(
        pd.DataFrame(
            {
                "AGEP": np.round(20 + 74 * grid[:, 0]),
                "PUMA": np.round(100 + 4000 * grid[:, 1]),
                "SEX": np.round(1 + grid[:, 2]),
            }
        )
    )


def two_outputs() -> Inputs:
    """Rows of the census about the first of two outputs alone."""
    return stacked_inputs({"income": census()}, Outputs.several(["income", "hours"]))


@dataclass(frozen=True)
class Case:
    """A region, the data it is bound to, and whether it is a list of points."""

    make: Callable[[], Region]
    data: Callable[[], Inputs] = census
    finite: bool = False

    def bound(self) -> Region:
        return self.make().bind(self.data())


#: A new kind of region adds a line here.
CASES = {
    "interval": Case(lambda: Box(1, 2), line),
    "half line": Case(lambda: Box(None, 1.5), line),
    "named box": Case(lambda: Box({"AGEP": (75, 100), "PUMA": (None, 2000)})),
    "named box over ranges": Case(lambda: Box({"AGEP": (75, 100)}, free="ranges")),
    "positional box": Case(lambda: Box([30, 500, None], [40, 600.5, None])),
    "wide box": Case(lambda: Box([-1.0] * 9, [1.0] * 9), lambda: as_inputs(halton(50, 9))),
    "ball": Case(lambda: Ball([50, 2000, 1.5], 30.25)),
    "ball on a line": Case(lambda: Ball(1.1, 0.3), line),
    "ball far from the origin": Case(
        lambda: Ball([1e9, -1e9], 1e-3), lambda: as_inputs([[1e9, -1e9], [1e9 + 1, -1e9 + 1]])
    ),
    "points": Case(lambda: Points([[50, 2000, 1], [60, 300, 2], [0, 0, 0]]), finite=True),
    "everywhere": Case(lambda: Everywhere()),
    "union of kinds": Case(lambda: Box({"AGEP": (75, 100)}) | Ball([50, 2000, 1.5], 30) | Points([[50, 300, 2]])),
    "union of points": Case(lambda: Points([[50, 2000, 1]]) | Points([[50, 2000, 1], [60, 300, 2]]), finite=True),
    "intersection of ball and box": Case(lambda: Ball([50, 2000, 1.5], 30) & Box({"AGEP": (60, None)})),
    "intersection of balls": Case(lambda: Ball([1, 1], 1) & Ball([2, 1], 1), lambda: as_inputs(3 * halton(40, 2))),
    "intersection with a union": Case(
        lambda: (Box({"AGEP": (20, 30)}) | Box({"AGEP": (80, 90)})) & Box({"PUMA": (1000, 2000)})
    ),
    "intersection with points": Case(
        lambda: Points([[50, 2000, 1], [60, 300, 2]]) & Box({"AGEP": (55, None)}), finite=True
    ),
    "intersection of unions": Case(
        lambda: (
            (Box({"AGEP": (20, 50)}) | Ball([80, 2000, 1.5], 20.5) | Points([[85, 900, 2]]))
            & (Box({"SEX": (1, 1.5)}) | Box({"PUMA": (None, 2000)}, free="ranges"))
        )
    ),
    "outputs": Case(
        lambda: OutputRegion({1: Box({"AGEP": (75, 100)}), 0: Ball([50, 2000, 1.5], 30) | Points([[50, 300, 2]])}),
        two_outputs,
    ),
    "points of an output": Case(lambda: OutputRegion({1: Points([[50, 300, 2]])}), two_outputs, finite=True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
class TestContract:
    """What every region promises."""

    @pytest.mark.parametrize("count", [1, 2, 3, 10, 64, 500])
    @pytest.mark.parametrize("batch", [0, 1, 7])
    def test_probes_are_inside(self, case: Case, count: int, batch: int) -> None:
        region, inputs = case.bound(), case.data()
        found = region.probes(count, inputs, batch)
        assert found.dtype == np.float64
        assert found.ndim == 2
        assert found.shape[0] >= 1
        assert found.shape[1] == inputs.dimension
        assert np.all(np.isfinite(found))
        assert np.all(region.contains(found))

    def test_probes_are_about_as_many_as_asked(self, case: Case) -> None:
        if not case.finite:
            assert 0.5 * 400 <= case.bound().probes(400, case.data()).shape[0] <= 2 * 400

    def test_probes_are_the_same_each_time(self, case: Case) -> None:
        first, second = (case.bound().probes(50, case.data(), batch=3) for _ in range(2))
        np.testing.assert_array_equal(first, second)

    def test_batches_give_fresh_probes(self, case: Case) -> None:
        if case.finite:
            return
        sets = [{row.tobytes() for row in case.bound().probes(400, case.data(), batch)} for batch in (0, 1, 2)]
        for one, other in ((0, 1), (0, 2), (1, 2)):
            assert len(sets[one] - sets[other]) > 0.4 * len(sets[one])

    def test_no_probes_is_an_error(self, case: Case) -> None:
        with pytest.raises(InputError, match="count is 0"):
            case.bound().probes(0, case.data())

    def test_tree_round_trip_keeps_the_region(self, case: Case) -> None:
        region, inputs = case.make(), case.data()
        again = region_from_tree(json.loads(json.dumps(region.to_tree(), allow_nan=False)))
        assert again == region
        assert repr(again) == repr(region)
        look = np.concatenate([inputs.values, region.bind(inputs).probes(100, inputs)])
        np.testing.assert_array_equal(again.bind(inputs).contains(look), region.bind(inputs).contains(look))
        np.testing.assert_array_equal(
            again.bind(inputs).probes(99, inputs, 1), region.bind(inputs).probes(99, inputs, 1)
        )

    def test_tree_of_a_bound_region_can_be_read_too(self, case: Case) -> None:
        region, inputs = case.bound(), case.data()
        again = region_from_tree(json.loads(json.dumps(region.to_tree(), allow_nan=False))).bind(inputs)
        look = np.concatenate([inputs.values, region.probes(100, inputs)])
        np.testing.assert_array_equal(again.contains(look), region.contains(look))

    def test_words_say_something(self, case: Case) -> None:
        assert case.make().in_words()
        assert case.bound().in_words(case.data().names)

    def test_repr_reads_like_the_call(self, case: Case) -> None:
        names = {kind.__name__: kind for kind in (Ball, Box, Everywhere, Intersection, OutputRegion, Points, Union)}
        assert eval(repr(case.make()), names) == case.make()

    def test_unbound_regions_ask_to_be_bound(self, case: Case) -> None:
        inputs = case.data()
        for call in (
            lambda region: region.contains(inputs.values),
            lambda region: region.probes(10, inputs),
            lambda region: region.varying_columns(inputs.dimension),
            lambda region: region.project(inputs.values, inputs),
            lambda region: region.boxes(inputs),
            lambda region: region.meets(inputs.values, inputs.values),
        ):
            with pytest.raises(InputError, match="bind"):
                call(case.make())

    def test_binding_twice_is_fine(self, case: Case) -> None:
        once = case.bound()
        twice = once.bind(case.data())
        np.testing.assert_array_equal(once.contains(case.data().values), twice.contains(case.data().values))

    def test_wrong_width_is_refused(self, case: Case) -> None:
        wide = np.zeros((2, case.data().dimension + 1))
        with pytest.raises(InputError, match="shape"):
            case.bound().contains(wide)
        with pytest.raises(InputError, match="shape"):
            case.bound().meets(wide, wide)

    def test_varying_columns_is_a_mask_of_the_columns(self, case: Case) -> None:
        moves = case.bound().varying_columns(case.data().dimension)
        assert moves.dtype == np.bool_
        assert moves.shape == (case.data().dimension,)
        assert not (case.finite and moves.any())

    def test_points_are_given_just_for_finite_regions(self, case: Case) -> None:
        points = case.bound().points
        assert (points is not None) == case.finite
        if points is not None:
            assert np.all(case.bound().contains(points))

    def test_projection_of_probes_stays_inside(self, case: Case) -> None:
        region, inputs = case.bound(), case.data()
        found = region.probes(60, inputs)
        assert np.all(region.contains(region.project(found, inputs)))

    @pytest.mark.parametrize("count", [1, 40, 700])
    @pytest.mark.parametrize("batch", [0, 3])
    def test_boxes_are_finite_and_hold_every_probe(self, case: Case, count: int, batch: int) -> None:
        region, inputs = case.bound(), case.data()
        if region.is_everywhere:
            with pytest.raises(InputError, match="everywhere"):
                region.boxes(inputs)
            return
        boxes, found = region.boxes(inputs), region.probes(count, inputs, batch)
        assert np.all(np.isfinite(boxes.lower) & np.isfinite(boxes.upper) & (boxes.lower <= boxes.upper))
        assert all(np.any(np.all((boxes.lower <= row) & (row <= boxes.upper), axis=1)) for row in found)
        assert np.all(region.meets(boxes.lower, boxes.upper))
        still = ~region.varying_columns(inputs.dimension)
        np.testing.assert_array_equal(boxes.lower[:, still], boxes.upper[:, still])

    def test_a_box_that_holds_an_input_of_the_region_meets_it(self, case: Case) -> None:
        region, inputs = case.bound(), case.data()
        found = region.probes(500, inputs)
        sides = np.random.default_rng(1).exponential(size=(2, *found.shape)) * np.ptp(inputs.values, axis=0)
        for width in (0.0, 1e-16, 1e-3, 1.0):
            assert np.all(region.meets(found - width * sides[0], found + width * sides[1]))

    def test_a_box_far_away_does_not_meet_it(self, case: Case) -> None:
        region, inputs = case.bound(), case.data()
        bounded = np.flatnonzero(np.isfinite(region.bounding_box(inputs.dimension)[0]))
        assert bounded.size or region.is_everywhere or "or" in region.in_words()
        found = region.probes(20, inputs)
        for column in bounded:
            for side in (-1e4, 1e4):
                away = np.array(found)
                away[:, column] += side
                assert not np.any(region.meets(away - 1.0, away + 1.0))

    def test_copies_are_equal(self, case: Case) -> None:
        assert copy.deepcopy(case.make()) == case.make()
        assert hash(copy.deepcopy(case.make())) == hash(case.make())


class TestConstruction:
    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Box(2, 1), "empty: x has lower = 2 and upper = 1"),
            (lambda: Box({"t": (2, 1)}), "empty: t has"),
            (lambda: Box(math.nan, 1), "lower is nan"),
            (lambda: Box(0, "b"), "upper is 'b'"),
            (lambda: Box([0, 1], [1]), "2 value"),
            (lambda: Box([[0, 1]], [[1, 2]]), "lower is"),
            (lambda: Box([], []), "lower is empty"),
            (lambda: Box(None, None), "bounds nothing"),
            (lambda: Box({}), "bounds nothing"),
            (lambda: Box({"t": (None, None)}), "bounds nothing in 't'"),
            (lambda: Box({"t": 3}), "give a pair"),
            (lambda: Box({3: (1, 2)}), "not text"),
            (lambda: Box({"t": (1, 2)}, "ranges"), "leave upper out"),
            (lambda: Box(math.inf, math.inf), "empty"),
            (lambda: Box(0, 1, free="all"), "free is 'all'"),
            (lambda: Box(0, 1, free=["combinations"]), "free is"),  # type: ignore[arg-type]
            (lambda: Box(True, 2), "lower is True"),
            (lambda: Ball(0, 0), "radius is 0"),
            (lambda: Ball(0, -1), "radius is -1"),
            (lambda: Ball(0, math.inf), "radius is inf"),
            (lambda: Ball([0, math.nan], 1), "centre is nan"),
            (lambda: Ball("a", 1), "centre is 'a'"),
            (lambda: Ball(1e10, 1e-9), "cannot be told from 0"),
            (lambda: Points([]), "points has no rows"),
            (lambda: Points([math.nan]), "points has 1 value"),
            (lambda: Points([[[1]]]), "points has shape"),
            (lambda: Union([]), "at least one"),
            (lambda: Union([1]), "takes regions"),  # type: ignore[list-item]
            (lambda: Intersection(Box(0, 1)), "takes a list"),  # type: ignore[arg-type]
            (lambda: Box(0, 1) & Box(2, 3), "empty"),
        ],
    )
    def test_bad_regions_are_refused_with_the_reason(self, make: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            make()

    def test_only_regions_combine(self) -> None:
        with pytest.raises(TypeError):
            Box(0, 1) | 3  # type: ignore[operator]
        with pytest.raises(TypeError):
            Box(0, 1) & "t < 3"  # type: ignore[operator]

    def test_regions_are_frozen(self) -> None:
        with pytest.raises(AttributeError):
            Box(0, 1).lower = (1.0,)  # type: ignore[misc]
        with pytest.raises(ValueError, match="read-only"):
            Points([1.0]).values[0] = 2.0

    def test_what_can_be_built_can_be_read_back(self) -> None:
        region: Region = Box(0, 1)
        for _ in range(7):
            region = (region | Ball(0, 1)) & Ball(0, 2)
        assert region_from_tree(region.to_tree()) == region
        with pytest.raises(InputError, match="nested 17 deep"):
            (region | Ball(0, 1)) & Ball(0, 2)  # one level more than can be read


class TestBinding:
    def test_an_unknown_column_is_named_with_the_closest_one(self) -> None:
        with pytest.raises(InputError, match=r"'AGE'.*AGEP, PUMA, SEX.*Did you mean 'AGEP'"):
            Box({"AGE": (1, 2)}).bind(census())

    def test_names_need_named_data_or_the_default_names(self) -> None:
        inputs = as_inputs(census().values)
        assert Box({"x0": (75, 100)}).bind(inputs).contains(inputs.values).any()
        with pytest.raises(InputError, match="no column names"):
            Box({"AGEP": (75, 100)}).bind(inputs)

    @pytest.mark.parametrize("region", [Box(30, 40), Ball(30, 1), Points([30, 40])])
    def test_the_dimension_has_to_match(self, region: Region) -> None:
        with pytest.raises(InputError, match=r"1 feature\(s\), but X has 3"):
            region.bind(census())

    @pytest.mark.parametrize(
        "region",
        [
            Box(10, 20),
            Box(3.5, None),
            Ball(5, 1.5),
            Points([-4, 7]),
            Box(10, 20) | Ball(5, 1.5),
            Box(10, 20) & Ball(9, 3),
        ],
    )
    def test_a_region_away_from_all_data_is_refused(self, region: Region) -> None:
        with pytest.raises(InputError, match=r"(?s)outside the data.*0 ≤ x ≤ 3.*units"):
            region.bind(line())

    @pytest.mark.parametrize("region", [Box(3, 20), Ball(5, 2), Points([-1, 2.9]), Box(10, 20) | Box(1, 2)])
    def test_a_region_that_touches_the_data_is_fine(self, region: Region) -> None:
        region.bind(line())

    def test_an_empty_intersection_is_refused(self) -> None:
        with pytest.raises(InputError, match="empty"):
            (Ball(1, 0.2) & Ball(2, 0.2)).bind(line())
        with pytest.raises(InputError, match="empty"):
            (Points([1, 2]) & Box(2.5, 3)).bind(line())
        square = as_inputs(halton(40, 2))
        corners_only = (Ball([0, 0], 0.6) & Ball([0.9, 0.9], 0.6)).bind(square)
        with pytest.raises(InputError, match="the region is empty"):
            corners_only.probes(100, square)

    def test_points_of_a_frame_follow_the_names(self) -> None:
        frame = pd.DataFrame({"SEX": [1.0], "AGEP": [30.0], "PUMA": [500.0], "other": [0.0]})
        np.testing.assert_array_equal(Points(frame).bind(census()).points, [[30.0, 500.0, 1.0]])
        with pytest.raises(InputError, match="no column 'PUMA'"):
            Points(frame[["SEX", "AGEP", "other"]]).bind(census())


class TestShapes:
    def test_one_feature_gets_an_even_grid_with_both_ends(self) -> None:
        region = Box(1, 2).bind(line())
        np.testing.assert_allclose(region.probes(11, line())[:, 0], np.linspace(1, 2, 11), atol=1e-15)
        for batch in range(1, 6):
            fresh = np.sort(region.probes(101, line(), batch)[:, 0])
            assert fresh[0] == 1.0
            assert fresh[-1] == 2.0
            assert np.diff(fresh).max() <= 1.01 / 99

    def test_borders_belong_to_the_region(self) -> None:
        np.testing.assert_array_equal(
            Box(1, 2).bind(line()).contains(np.array([[1.0], [2.0], [2.0 + 1e-15]])), [1, 1, 0]
        )
        np.testing.assert_array_equal(Ball(1, 0.5).bind(line()).contains(np.array([[0.5], [1.5], [1.51]])), [1, 1, 0])
        np.testing.assert_array_equal(Points([0.0]).bind(line()).contains(np.array([[-0.0], [1e-300]])), [1, 0])

    def test_probes_of_a_box_have_its_corners_and_faces(self) -> None:
        inputs = as_inputs(halton(30, 3))
        region = Box([0.0, 0.2, 0.4], [1.0, 0.6, 0.8]).bind(inputs)
        found = region.probes(400, inputs)
        corners = {(a, b, c) for a in (0.0, 1.0) for b in (0.2, 0.6) for c in (0.4, 0.8)}
        assert corners <= {tuple(row) for row in found.tolist()}
        on_border = (found == [0.0, 0.2, 0.4]) | (found == [1.0, 0.6, 0.8])
        for column in range(3):
            assert np.sum(found[:, column] == [0.0, 0.2, 0.4][column]) > 10
            assert np.sum(found[:, column] == [1.0, 0.6, 0.8][column]) > 10
        assert np.sum(on_border.sum(axis=1) == 2) > 10
        assert np.mean(~on_border.any(axis=1)) > 0.5

    def test_open_sides_end_where_the_data_end(self) -> None:
        inputs = census()
        found = Box({"PUMA": (None, 2000)}).bind(inputs).probes(300, inputs)
        assert found[:, 1].min() == inputs.values[:, 1].min()
        assert found[:, 1].max() == 2000

    def test_free_columns_take_every_observed_combination_equally_often(self) -> None:
        inputs = as_inputs(np.array([[t, c // 2, 10 * c] for t in range(5) for c in range(13)], dtype=float))
        found = Box({"x0": (1, 2)}).bind(inputs).probes(1300, inputs)
        combinations, counts = np.unique(found[:, 1:], axis=0, return_counts=True)
        np.testing.assert_array_equal(combinations, np.unique(inputs.values[:, 1:], axis=0))
        assert counts.max() <= 1.3 * counts.min()
        for combination in combinations:
            along = np.sort(found[np.all(found[:, 1:] == combination, axis=1), 0])
            assert np.diff(along, prepend=1.0, append=2.0).max() < 0.08

    def test_free_columns_can_take_their_ranges(self) -> None:
        inputs = census()
        region = Box({"AGEP": (75, 100)}, free="ranges").bind(inputs)
        found = region.probes(300, inputs)
        assert np.unique(found[:, 2]).size > 100
        assert np.all(found[:, 1:] >= inputs.values[:, 1:].min(axis=0))
        assert np.all(found[:, 1:] <= inputs.values[:, 1:].max(axis=0))

    def test_varying_columns_are_the_columns_that_vary_continuously(self) -> None:
        inputs = census()
        assert Box({"AGEP": (75, 100)}).bind(inputs).varying_columns(3).tolist() == [True, False, False]
        assert Box({"AGEP": (75, 100)}, free="ranges").bind(inputs).varying_columns(3).tolist() == [True, True, True]
        assert Box({"AGEP": (75, 75)}).bind(inputs).varying_columns(3).tolist() == [False, False, False]
        either = Box({"AGEP": (75, 100)}) | Box({"SEX": (1, 2)})
        assert either.bind(inputs).varying_columns(3).tolist() == [True, False, True]

    def test_a_single_value_is_a_region(self) -> None:
        np.testing.assert_array_equal(Box(2, 2).bind(line()).probes(100, line()), [[2.0]])
        inputs = census()
        found = Box({"AGEP": (75, 75)}).bind(inputs).probes(10_000, inputs)
        assert found.shape[0] == np.unique(inputs.values[:, 1:], axis=0).shape[0]

    def test_everywhere_is_a_tenth_wider_than_the_data(self) -> None:
        found = Everywhere().bind(line()).probes(50, line())
        np.testing.assert_allclose([found.min(), found.max()], [-0.3, 3.3])

    def test_boxes_that_meet_become_one_box(self) -> None:
        both = Box({"AGEP": (75, 100)}) & Box({"AGEP": (None, 90), "SEX": (1, 1)})
        assert both == Box({"AGEP": (75, 90), "SEX": (1, 1)})
        assert Box(0, 2) & Box(1, 3) == Box(1, 2)
        mixed = (Box({"AGEP": (75, 100)}) & Box([None, 200, None], [80, 900, None])).bind(census())
        assert mixed == Box({"AGEP": (75, 80), "PUMA": (200, 900)})
        assert isinstance(mixed.bind(census()), Box)

    def test_everywhere_changes_nothing_in_an_intersection(self) -> None:
        assert Everywhere() & Box(0, 1) == Box(0, 1)
        assert Box(0, 1) & Everywhere() == Box(0, 1)

    def test_intersections_agree_with_their_members(self) -> None:
        inputs = as_inputs(3 * halton(200, 2))
        region = (Ball([1, 1], 1) & Ball([2, 1], 1)).bind(inputs)
        expected = [math.hypot(a - 1, b - 1) <= 1 and math.hypot(a - 2, b - 1) <= 1 for a, b in inputs.values]
        assert region.contains(inputs.values).tolist() == expected
        found = region.probes(500, inputs)
        assert found[:, 1].max() > 1.8
        assert found[:, 1].min() < 0.2

    def test_projection_is_the_nearest_point(self) -> None:
        inputs = as_inputs(3 * halton(40, 2))
        away = np.array([[5.0, 1.0], [1.2, 1.1]])
        np.testing.assert_allclose(Ball([1, 1], 1).bind(inputs).project(away, inputs), [[2.0, 1.0], [1.2, 1.1]])
        np.testing.assert_allclose(Box([0, 0], [1, 1]).bind(inputs).project(away, inputs), [[1, 1], [1, 1]])
        either = (Ball([1, 1], 1) | Box([2, 2], [3, 3])).bind(inputs)
        np.testing.assert_allclose(either.project(np.array([[3.5, 2.5], [1, 1]]), inputs), [[3.0, 2.5], [1.0, 1.0]])

    def test_extreme_bounds_do_not_overflow(self) -> None:
        inputs = as_inputs([[0.0, 0.0], [1.0, 1.0]])
        for region in (Box([-1e308, 0], [1e308, 1]), Ball([0, 0], 1e300)):
            bound = region.bind(inputs)
            assert np.all(bound.contains(bound.probes(50, inputs)))

    @pytest.mark.parametrize(
        ("region", "words"),
        [
            (Box(1, 2), "1 ≤ t ≤ 2"),
            (Box({"AGEP": (75, 100), "PUMA": (None, 2000)}), "75 ≤ AGEP ≤ 100 and PUMA ≤ 2000"),
            (Box({"two words": (0.5, None)}), "`two words` ≥ 0.5"),
            (Box(3, 3), "t = 3"),
            (Ball([1, 2], 0.5), "within 0.5 of (1, 2)"),
            (Points([1, 2, 3]), "3 points"),
            (Points([1]), "1 point"),
            (Everywhere(), "everywhere"),
            (Box(1, 2) | Ball(0, 1), "(1 ≤ t ≤ 2) or (within 1 of 0)"),
            (Box(1, 2) & Ball(0, 1), "(1 ≤ t ≤ 2) and (within 1 of 0)"),
        ],
    )
    def test_words_are_those_of_the_reader(self, region: Region, words: str) -> None:
        assert region.in_words(("t",)) == words


numbers = st.one_of(st.floats(), st.integers(), st.none(), st.booleans())
json_values = st.recursive(
    st.one_of(numbers, st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
    max_leaves=10,
)
field_values = st.one_of(
    numbers, st.lists(numbers, max_size=3), st.lists(st.lists(numbers, max_size=2), max_size=3), json_values
)
leaves = st.fixed_dictionaries(
    {"kind": st.sampled_from(["box", "ball", "points", "everywhere"])},
    optional=dict.fromkeys(
        ("columns", "lower", "upper", "centre", "radius", "points", "members", "extra"), field_values
    )
    | {"free": st.one_of(st.sampled_from(["combinations", "ranges"]), json_values)},
)
boxes = st.fixed_dictionaries(
    {
        "kind": st.just("box"),
        "columns": st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=3)),
        "lower": st.lists(numbers, max_size=3),
        "upper": st.lists(numbers, max_size=3),
        "free": st.sampled_from(["combinations", "ranges"]),
    }
)
trees = st.recursive(
    st.one_of(leaves, boxes, json_values),
    lambda inner: st.fixed_dictionaries(
        {"kind": st.sampled_from(["union", "intersection"]), "members": st.lists(inner, max_size=3)}
    ),
    max_leaves=6,
)


class TestTrees:
    @settings(max_examples=300, deadline=None)
    @given(trees)
    def test_any_json_is_a_region_or_a_format_error(self, tree: object) -> None:
        try:
            region = region_from_tree(tree)
        except FormatError:
            return
        assert region_from_tree(region.to_tree()) == region

    @pytest.mark.parametrize(
        "tree",
        [
            None,
            [],
            {"kind": ["box"]},
            {"kind": "everywhere", "extra": 1},
            {"kind": "everywhere", 3: 1},
            {"kind": "ball", "centre": [10**400], "radius": 1},
            {"kind": "ball", "centre": [10**5000], "radius": 1},
            {"kind": "ball", "centre": [1], "radius": "1"},
            {"kind": "ball", "centre": [True], "radius": 1},
            {"kind": "points", "columns": None, "points": [[1], [1, 2]]},
            {"kind": "points", "columns": None, "points": [[math.nan]]},
            {"kind": "points", "columns": ["a", "b"], "points": [[1]]},
            {"kind": "box", "columns": ["a", "a"], "lower": [1, 1], "upper": [2, 2], "free": "ranges"},
            {"kind": "box", "columns": [["a"]], "lower": [1], "upper": [2], "free": "ranges"},
            {"kind": "box", "columns": None, "lower": [math.inf], "upper": [2], "free": "ranges"},
            {"kind": "box", "columns": None, "lower": [1], "upper": [2], "free": {}},
            {"kind": "union", "members": []},
            {"kind": "union", "members": [{"kind": "everywhere"}] * 1000},
        ],
    )
    def test_bad_trees_are_refused(self, tree: object) -> None:
        with pytest.raises(FormatError):
            region_from_tree(tree)

    @pytest.mark.parametrize("kinds", [("union", "union"), ("union", "intersection")])
    def test_deep_trees_are_refused(self, kinds: tuple[str, str]) -> None:
        tree: dict[str, Any] = {"kind": "everywhere"}
        for level in range(100_000):
            tree = {"kind": kinds[level % 2], "members": [tree]}
        with pytest.raises(FormatError, match="16 deep"):
            region_from_tree(tree)
        while "members" in tree:  # taken apart step by step: freeing it in one go would recurse
            tree = tree.pop("members")[0]
