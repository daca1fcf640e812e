"""The charts of the page: thinned and said so, every name as text, dates and categories on axes of their own."""

from __future__ import annotations

import html
import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.data import as_inputs
from sfumato.evaluate.comparison import Line
from sfumato.regions import parse_region, region_text
from sfumato.studio.axes import Axis, drawn_text, escaped, outlines
from sfumato.studio.charts import MOST_POINTS, by_width, data_chart, known_chart, places_to_ask, tradeoff_chart
from sfumato.text import shown

WILD = '<img src=x onerror=alert(1)> & %{x} $y$ `it\'s` "q"'
LEVELS = ["Adelie", "Gentoo, <i>", "7", "site", "it's"]


def table(rows: int = 60) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "date": pd.date_range("1985-01-01", periods=rows, freq="7D"),
            "site": [LEVELS[i % 5] for i in range(rows)],
            WILD: np.linspace(-3.0, 5.0, rows),
        }
    )


def texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=40))
def test_a_name_is_shown_letter_for_letter(name: str) -> None:
    said = escaped(name)
    assert html.unescape(said) == shown(name) if len(shown(name)) <= 44 else html.unescape(said).endswith("…")
    assert not re.search(r"[<>$%\\]|&(?!#\d+;)", said)


def test_nothing_of_a_name_is_left_for_plotly_to_read() -> None:
    inputs = as_inputs(table())
    region = parse_region(region_text({WILD: (0.0, 2.0)}, inputs.sources), inputs.sources).bind(inputs)
    for across, up in ((WILD, None), ("site", WILD), ("date", "site")):
        chart = data_chart(inputs, np.arange(60.0), f"mass {WILD} [<b>]", region, across, up)
        for text in texts(chart.figure):
            assert not re.search(r"<(?!br>)|%\{|\$", text)
        json.dumps(chart.figure, allow_nan=False)


def test_many_rows_are_thinned_evenly_and_the_chart_says_so() -> None:
    x = np.arange(50_000.0)
    chart = data_chart(as_inputs(x), x, "y")
    drawn = np.sort([value for trace in chart.figure["data"] for value in trace["x"]])
    assert len(drawn) == MOST_POINTS
    assert np.max(np.diff(drawn)) < 3 * 50_000 / MOST_POINTS
    assert chart.note == "The chart shows 2,000 of 50,000 rows, spread evenly; everything else uses all of them."
    assert "50,000 rows" in chart.label
    assert data_chart(as_inputs(x[:2000]), x[:2000], "y").note == ""


def test_rows_inside_are_told_by_shape_and_the_region_by_hatching() -> None:
    inputs = as_inputs(pd.DataFrame({"t": np.arange(10.0)}))
    region = parse_region("2 <= t <= 3 or t >= 8", ["t"]).bind(inputs)
    shaded, outside, inside = data_chart(inputs, np.ones(10), "y", region).figure["data"]
    assert shaded["fillpattern"]["shape"] == "/"
    assert shaded["x"] == [2, 2, 3, 3, 2, None, 8, 8, 9, 9, 8]
    assert inside["x"] == [2, 3, 8, 9]
    assert inside["marker"]["symbol"] != outside["marker"]["symbol"]


def test_dates_have_a_date_axis_and_levels_one_place_each() -> None:
    inputs = as_inputs(table())
    layout = data_chart(inputs, np.ones(60), "y", None, "date", "site").figure["layout"]
    assert layout["xaxis"]["type"] == "date"
    assert layout["xaxis"]["range"][0].startswith("1984-12-19")
    assert layout["yaxis"]["type"] == "linear"
    assert [html.unescape(text) for text in layout["yaxis"]["ticktext"]] == sorted(LEVELS)


def test_a_union_over_levels_is_outlined_level_by_level() -> None:
    inputs = as_inputs(table())
    region = parse_region("site in (Adelie, 'site') and date >= 1986-01-01", inputs.sources).bind(inputs)
    levels = Axis.of(inputs, "site").column.levels
    expected = {(levels.index(one) - 0.5, levels.index(one) + 0.5) for one in ("Adelie", "site")}
    assert {side[1] for side in outlines(region, inputs, [Axis.of(inputs, n) for n in ("date", "site")])} == expected
    (across,) = outlines(region, inputs, [Axis.of(inputs, "date")])
    moments = Axis.of(inputs, "date").drawn(across[0])
    assert moments[0].startswith("1986-01-01T00:00")


ends = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))


@settings(deadline=None, max_examples=60)
@given(ends, ends, st.sampled_from([("date", WILD), ("site", "date"), (WILD, "site")]))
def test_what_was_dragged_is_read_back_and_nothing_of_it_falls_out(first, second, names) -> None:
    frame = table()
    inputs = as_inputs(frame)
    axes = [Axis.of(inputs, name) for name in names]
    sides = [
        sorted(axis.low + share * (axis.high - axis.low) for share in pair)
        for axis, pair in zip(axes, (first, second), strict=True)
    ]
    text = drawn_text(axes, [tuple(axis.drawn(side)) for axis, side in zip(axes, sides, strict=True)], inputs.sources)
    dragged = np.ones(len(frame), dtype=bool)
    near = np.ones(len(frame), dtype=bool)
    for axis, (low, high) in zip(axes, sides, strict=True):
        at, pixel = axis.positions(inputs.values), (axis.high - axis.low) / 1000
        reach = 0.35 if axis.is_category else 0.0
        # Plotly tells dates to the tenth of a millisecond, and the test to the millisecond
        slack = 1e-8 if axis.column.kind == "date" else 0.0
        dragged &= (at >= low - reach + slack) & (at <= high + reach - slack)
        near &= (at >= low - reach - 1.01 * pixel - 1e-8) & (at <= high + reach + 1.01 * pixel + 1e-8)
    if not text:
        assert not dragged.any()
        return
    inside = parse_region(text, inputs.sources).on_columns_of(inputs).contains(inputs.values)
    assert np.all(inside[dragged])
    assert np.all(near[inside])


@pytest.mark.parametrize(
    ("low", "high", "text"), [(1.2345678, 2.3456789, "1.23 ≤ t ≤ 2.35"), (-0.001, 9, "-0.01 ≤ t ≤ 9")]
)
def test_a_dragged_range_has_as_many_digits_as_one_can_see(low: float, high: float, text: str) -> None:
    axis = Axis.of(as_inputs(pd.DataFrame({"t": np.arange(11.0)})), "t")
    assert drawn_text([axis], [(high, low)], ["t"]) == text


def test_a_drag_that_is_no_place_is_refused() -> None:
    axis = Axis.of(as_inputs(table()), "date")
    for given_by_browser in (None, "x", float("nan"), {}, "1985-99-99"):
        with pytest.raises(sf.InputError, match="drag again"):
            axis.dragged(given_by_browser, "1986-01-01")


def test_what_readers_know_is_drawn_through_the_region_and_says_what_is_held() -> None:
    inputs = as_inputs(table())
    region = parse_region("1985-06-01 <= date <= 1985-12-01 and site = Adelie", inputs.sources).bind(inputs)
    places = places_to_ask(inputs, region, "date")
    assert places.inside.any()
    assert not places.inside.all()
    assert "site = Adelie" in places.held
    std = np.where(places.inside, 3.0, 1.0)
    floor = np.where(places.inside, 2.5, np.nan)
    chart = known_chart(places, "mass [g]", std, floor=floor, unprotected=std / 2, prior=np.full(len(std), 4.0))
    named = {trace["name"]: trace for trace in chart.figure["data"] if trace.get("name")}
    assert list(named) == ["sensitive", "prior alone", "unprotected", "readers", "floor"]
    assert {value for value in named["floor"]["y"] if value is not None} == {2.5}
    assert len({trace["line"].get("dash") for trace in named.values()} - {None}) == 4 - 1
    assert "±3 g or more, and the floor is ±2.5 g" in chart.label
    assert "site = Adelie" in chart.note
    json.dumps(chart.figure, allow_nan=False)
    over = places_to_ask(inputs, region, "date", "site")
    std = np.arange(float(len(over.values)))
    grid = known_chart(over, "mass [g]", std, floor=std, unprotected=std, prior=std)
    heat = grid.figure["data"][0]
    assert np.shape(heat["z"]) == (5, 31)
    assert heat["z"][1][0] == 1.0  # the second level at the first date
    json.dumps(grid.figure, allow_nan=False)


def test_a_part_of_the_region_that_the_line_does_not_meet_is_not_drawn_on_it() -> None:
    inputs = as_inputs(pd.DataFrame({"educ": np.arange(40.0) % 20, "exper": np.arange(40.0)}))
    region = parse_region("educ >= 16 or (exper <= 3 and educ <= 8)", inputs.sources).bind(inputs)
    places = places_to_ask(inputs, region, "educ")
    for ((low, high),) in places.outlines:
        within = (low <= places.steps[0]) & (places.steps[0] <= high)
        assert places.inside[within].all()
    assert "other parts of the region are not here" in places.held


def line(alpha: float, error: float, holds: bool | None, way: str = "joint") -> Line:
    return Line(way, alpha, 5.0, holds, 0.1, 5.0, 6.0, error, 0.2, 3.0, 0.1)


def test_the_tradeoff_has_the_chosen_place_and_errors_in_units() -> None:
    rows = (line(0.1, 20.0, True), line(0.5, 10.0, False))
    bare = line(math.nan, 4.0, None, "everything")
    found = sf.Tradeoff(rows, bare, 30.0, "t", by_floor=False, sensitivity=1.0, output="mass [g]")
    chart = tradeoff_chart(found, 0.3, 12.0)
    curve, star = chart.figure["data"][0], chart.figure["data"][-1]
    assert (star["x"], star["y"]) == ([0.3], [12.0])
    assert curve["y"] == [20.0, 10.0]
    assert curve["marker"]["color"][1] == "#ffffff"
    assert "does not hold" in curve["hovertext"][1]
    assert "from 20 g at α = 0.1 to 10 g at 0.5; without protection it is 4 g" in chart.label
    assert "Chosen: α = 0.3, error 12 g" in chart.label
    assert chart.figure["layout"]["yaxis"]["title"]["text"] == "error outside [g]"
    json.dumps(chart.figure, allow_nan=False)
    nowhere = sf.Tradeoff((line(0.1, math.nan, True),), bare, 30.0, "t", by_floor=False, sensitivity=1.0)
    assert tradeoff_chart(nowhere, 0.1, None).note == "There is no elsewhere to compare."


def test_a_few_values_far_off_do_not_take_the_colours_and_that_is_said() -> None:
    inputs = as_inputs(pd.DataFrame({"a": np.arange(200.0), "b": np.arange(200.0) % 7}))
    y = np.arange(200.0)
    y[[3, 50]] = 1e6
    chart = data_chart(inputs, y, "income [$]", None, "a", "b")
    assert chart.figure["data"][0]["marker"]["cmax"] < 1000
    assert "rows beyond them look the same" in chart.note
    assert data_chart(inputs, np.arange(200.0), "income [$]", None, "a", "b").note == ""


def test_values_that_no_chart_can_show_are_left_out() -> None:
    y = np.arange(10.0)
    y[4] = np.inf
    chart = data_chart(as_inputs(np.arange(10.0)), y, "y")
    json.dumps(chart.figure, allow_nan=False)
    assert chart.note.startswith("The chart shows 9 of 10 rows")


def test_records_alone_have_no_floor_to_draw() -> None:
    inputs = as_inputs(np.arange(10.0))
    region = sf.Box(2, 4).bind(inputs)
    places = places_to_ask(inputs, region)
    std = np.ones(len(places.values))
    chart = known_chart(places, "y", std, floor=np.full(len(std), np.nan), unprotected=std, prior=std)
    assert "floor" not in [trace["name"] for trace in chart.figure["data"]]


def test_the_first_curve_is_along_the_input_that_the_region_bounds_most_clearly() -> None:
    frame = pd.DataFrame({"free": np.arange(50.0), "thin": np.arange(50.0) % 3, "wide": np.arange(50.0) % 10})
    inputs = as_inputs(frame)
    region = parse_region("thin = 2 and 3 <= wide <= 7", inputs.sources).bind(inputs)
    assert by_width(inputs, region) == ["wide", "thin", "free"]
