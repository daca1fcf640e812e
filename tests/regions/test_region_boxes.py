"""The boxes of a region: exactly as many as its words say, and never one input of it lost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato.data.inputs import Inputs, MemoryInputs, Outputs, as_inputs
from sfumato.errors import InputError
from sfumato.regions import Ball, Box, Intersection, OutputRegion, Points, Region, Union
from sfumato.regions.boxes import Boxes

#: Three columns of whole numbers; not every combination of them was observed.
OBSERVED = as_inputs(np.array([[0, 0, 0], [1, 2, 0], [2, 1, 3], [3, 3, 3], [3, 0, 1], [1, 2, 0]], dtype=float))

#: A grid with the values between them, on which regions are compared input by input.
GRID = np.array(list(itertools.product(np.arange(-0.5, 4.0, 0.5), repeat=3)))


def held(boxes: Boxes, points: np.ndarray) -> np.ndarray:
    inside = (boxes.lower[:, None] <= points[None]) & (points[None] <= boxes.upper[:, None])
    return np.any(np.all(inside, axis=2), axis=0)


def sides(boxes: Boxes) -> set[tuple[tuple[float, ...], tuple[float, ...]]]:
    return {(tuple(low), tuple(high)) for low, high in zip(boxes.lower.tolist(), boxes.upper.tolist(), strict=True)}


class TestFreeColumns:
    def test_there_is_one_box_for_each_observed_combination(self) -> None:
        boxes = Box({"x1": (0.5, 2.5)}).bind(OBSERVED).boxes(OBSERVED)
        pairs = {(0, 0), (1, 0), (2, 3), (3, 3), (3, 1)}
        assert sides(boxes) == {((a, 0.5, b), (a, 2.5, b)) for a, b in pairs}
        assert len(boxes) == len(pairs)

    def test_more_than_are_wanted_are_none(self) -> None:
        one = Box({"x1": (0.5, 2.5)})
        for region, count in [(one, 5), (one | Box({"x1": (1, 2)}), 10), (one & (one | Box({"x1": (1, 2)})), 10)]:
            bound = region.bind(OBSERVED)
            assert len(bound.boxes(OBSERVED, count)) == count
            assert bound.boxes(OBSERVED, count - 1) is None

    def test_ranges_are_one_box(self) -> None:
        boxes = Box({"x1": (None, 2.5)}, free="ranges").bind(OBSERVED).boxes(OBSERVED)
        assert sides(boxes) == {((0, 0, 0), (3, 2.5, 3))}

    def test_members_bound_columns_for_each_other(self) -> None:
        both = Box({"x0": (0, 1)}) & (Box({"x1": (1, 2)}) | Box({"x2": (2, 3)}))
        expected = {((0, 1, c), (1, 2, c)) for c in (0, 1, 3)} | {((0, b, 2), (1, b, 3)) for b in (0, 1, 2, 3)}
        assert sides(both.bind(OBSERVED).boxes(OBSERVED)) == expected

    def test_one_member_with_ranges_makes_all_ranges(self) -> None:
        both = Box({"x0": (0, 1)}, free="ranges") & (Box({"x1": (1, 2)}) | Box({"x2": (2, 3)}))
        assert sides(both.bind(OBSERVED).boxes(OBSERVED)) == {((0, 1, 0), (1, 2, 3)), ((0, 0, 2), (1, 3, 3))}

    def test_members_of_a_union_keep_their_own(self) -> None:
        either = Box({"x0": (0, 1), "x1": (0, 1)}, free="ranges") | Box({"x0": (0, 1), "x1": (0, 1)})
        boxes = either.bind(OBSERVED).boxes(OBSERVED)
        assert sides(boxes) == {((0, 0, 0), (1, 1, 3)), *(((0, 0, c), (1, 1, c)) for c in (0.0, 1.0, 3.0))}


class TestSets:
    def test_points_that_lie_outside_the_others_drop_out(self) -> None:
        points = Points([[1, 1, 1], [2, 2, 2], [0, 3, 0]])
        region = ((points | Box([3, 3, 3], [3.5, 3.5, 3.5])) & Ball([1.5, 1.5, 1.5], 1)).bind(OBSERVED)
        assert sides(region.boxes(OBSERVED)) == {((1, 1, 1), (1, 1, 1)), ((2, 2, 2), (2, 2, 2))}

    def test_balls_that_only_their_boxes_share_have_a_box_there(self) -> None:
        lens = (Ball([1, 1, 1], 1) & Ball([2, 1, 1], 1)).bind(OBSERVED).boxes(OBSERVED)
        np.testing.assert_allclose(lens.lower, [[1, 0, 0]], atol=1e-14)
        np.testing.assert_allclose(lens.upper, [[2, 2, 2]], atol=1e-14)
        with pytest.raises(InputError, match="empty"):
            (Union([Ball([0, 0, 0], 0.1), Ball([3, 3, 3], 0.1)]) & Ball([1.5, 1.5, 1.5], 0.1)).bind(OBSERVED).boxes(
                OBSERVED
            )

    def test_outputs_keep_to_their_number(self) -> None:
        inputs = MemoryInputs(np.array([[0.0, 0.0], [2.0, 0.0]]), ("t", "output"), Outputs.several(["r", "v", "a"]))
        region = OutputRegion({1: Box(0, 1), 2: Points([[0.5]])}).bind(inputs)
        assert sides(region.boxes(inputs)) == {((0, 1), (1, 1)), ((0.5, 2), (0.5, 2))}
        low = np.array([[0.4, 0.0], [0.4, 1.0], [0.4, 2.0], [0.6, 2.0], [0.6, 1.0], [0.4, 0.0]])
        high = np.array([[0.9, 0.0], [0.9, 1.0], [0.9, 2.0], [0.9, 2.0], [0.9, 2.0], [0.9, 2.0]])
        assert region.meets(low, high).tolist() == [False, True, True, False, True, True]

    def test_meetings_of_many_unions_stay_few(self) -> None:
        rng = np.random.default_rng(0)
        inputs = as_inputs(rng.uniform(0, 10, size=(50, 3)))
        unions = []
        for _ in range(6):
            corners = rng.uniform(0, 8, size=(120, 3))
            ends = corners + rng.uniform(0, 6, size=(120, 3))
            named = [
                Box({f"x{c}": (low[c], high[c]) for c in rng.permutation(3)[:2]})
                for low, high in zip(corners, ends, strict=True)
            ]
            unions.append(Union(named))
        region = Intersection(unions).bind(inputs)
        boxes = region.boxes(inputs)
        assert len(boxes) <= 10_000 * len(inputs)
        found = region.probes(300, inputs)
        assert all(np.any(np.all((boxes.lower <= row) & (row <= boxes.upper), axis=1)) for row in found)


whole = st.integers(0, 6).map(lambda number: number / 2)
spans = st.tuples(whole, whole).map(sorted)
named_boxes = st.builds(
    lambda bounds, free: Box({name: tuple(span) for name, span in bounds.items()}, free=free),
    st.dictionaries(st.sampled_from(["x0", "x1", "x2"]), spans, min_size=1),
    st.sampled_from(["combinations", "combinations", "ranges"]),
)
lists_of_points = st.lists(st.tuples(whole, whole, whole), min_size=1, max_size=4).map(Points)
balls = st.builds(Ball, st.tuples(whole, whole, whole), st.sampled_from([0.5, 1.0, 1.25, 2.0]))
regions = st.recursive(
    st.one_of(named_boxes, named_boxes, lists_of_points, balls),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(Union), st.lists(inner, min_size=1, max_size=3).map(Intersection)
    ),
    max_leaves=6,
)


def observed(region: Region, inputs: Inputs) -> np.ndarray:
    """Inputs of the grid that the region is promised at, by going through its parts one input at a time."""

    def bounded(part: Region, row: np.ndarray) -> list[tuple[frozenset[int], bool]]:
        """The ways in which ``row`` lies in ``part``: which columns are bounded, and whether the others have ranges."""
        if isinstance(part, Union):
            return [way for member in part.members for way in bounded(member, row)]
        if isinstance(part, Intersection):
            ways = [bounded(member, row) for member in part.members]
            return [
                (frozenset().union(*(columns for columns, _ in chosen)), part.free_over_ranges())
                for chosen in itertools.product(*ways)
            ]
        if not part.contains(row[None])[0]:
            return []
        columns = frozenset(np.flatnonzero(np.isfinite(part.bounding_box(3)[0])).tolist())
        return [(columns, part.free_over_ranges())]

    def free(row: np.ndarray, columns: frozenset[int], ranges: bool) -> bool:
        others = [column for column in range(3) if column not in columns]
        values = inputs.values[:, others]
        if ranges:
            return bool(np.all((values.min(axis=0) <= row[others]) & (row[others] <= values.max(axis=0))))
        return bool(np.any(np.all(values == row[others], axis=1)))

    return np.array([any(free(row, *way) for way in set(bounded(region, row))) for row in GRID])


class TestAgainstBruteForce:
    @settings(max_examples=60, deadline=None)
    @given(regions)
    def test_boxes_hold_what_is_promised_and_without_balls_nothing_else(self, region: Region) -> None:
        try:
            bound = region.bind(OBSERVED)
            boxes, found = bound.boxes(OBSERVED), bound.probes(30, OBSERVED)
        except InputError:
            event("empty, or away from the data")
            return
        promised, inside = observed(bound, OBSERVED), held(boxes, GRID)
        assert not np.any(promised & ~inside)
        assert np.all(held(boxes, found))
        if not any(isinstance(part, Ball) for _, part in bound.walk()):
            np.testing.assert_array_equal(promised, inside)

    @settings(max_examples=60, deadline=None)
    @given(regions, st.integers(0, 10_000))
    def test_a_box_that_holds_an_input_meets(self, region: Region, seed: int) -> None:
        try:
            bound = region.bind(OBSERVED)
        except InputError:
            return
        rng = np.random.default_rng(seed)
        lower = rng.integers(-2, 8, size=(40, 3)) / 2
        upper = lower + rng.integers(0, 4, size=(40, 3)) / 2
        found = GRID[bound.contains(GRID)]
        reached = Boxes(lower, upper).hold_any(found)
        assert not np.any(reached & ~bound.meets(lower, upper))
        if bound.points is not None:
            np.testing.assert_array_equal(reached, bound.meets(lower, upper))

    @settings(max_examples=50, deadline=None)
    @given(st.integers(1, 4), st.integers(0, 30), st.integers(0, 10_000))
    def test_points_in_boxes_are_counted_exactly(self, dimension: int, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        points = rng.integers(0, 5, size=(count, dimension)).astype(float)
        lower = rng.integers(0, 5, size=(25, dimension)).astype(float)
        upper = lower + rng.integers(-1, 3, size=(25, dimension))
        expected = [
            any(np.all((low <= p) & (p <= high)) for p in points) for low, high in zip(lower, upper, strict=True)
        ]
        assert Boxes(lower, upper).hold_any(points).tolist() == expected

    @settings(max_examples=80, deadline=None)
    @given(
        st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6),
        st.floats(-3, 9),
        st.integers(0, 10_000),
    )
    def test_no_border_input_of_a_ball_is_lost_to_round_off(self, centre: list[float], size: float, seed: int) -> None:
        radius = 10.0**size
        if radius < 1e-13 * max(map(abs, centre)):
            return
        inputs = as_inputs(np.array([centre, np.array(centre) + 1.0]))
        ball, rng = Ball(centre, radius).bind(inputs), np.random.default_rng(seed)
        directions = rng.normal(size=(200, len(centre)))
        directions[: len(centre)] = np.eye(len(centre))[: len(directions)]
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        border = np.array(centre) + radius * (1.0 + 1e-15 * rng.integers(-8, 9, size=(200, 1))) * directions
        border = border[ball.contains(border)]
        assert np.all(held(ball.boxes(inputs), border))
        outward = border + np.sign(directions[0]) * radius
        assert np.all(ball.meets(border, border))
        assert np.all(ball.meets(np.minimum(border, outward), np.maximum(border, outward)))
