"""Every chart of the page, as a plain Plotly figure with a sentence that says what it shows.

The owner's rows with the sensitive region, what readers know, and the trade-off. All names are escaped (axes.py), and
nothing is told by colour alone: the region is hatched, rows inside are diamonds, lines have their own dashes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import GOLDEN, Array, Mask
from ..data import Inputs, sample_places
from ..errors import InputError
from ..evaluate import Tradeoff, number, share
from ..regions import Region
from ..show import FLOOR, PUBLISHED, READER, TRUTH, runs
from ..text import counted, name_and_unit, shown
from .axes import REACH, Axis, escaped, outlines

#: Rows that a chart shows at most.
MOST_POINTS = 2000

#: Places along an input, and on each side of a map, where it is asked what readers know.
STEPS, SIDE = 161, 31

#: 500,000 and not 500k.
_PLAIN_NUMBERS: dict[str, Any] = {"exponentformat": "power", "separatethousands": True, "minexponent": 7}

_GREY, _LINES, _HATCH = "#6b6b6b", "#e0e0e0", "#8a8a8a"


@dataclass(frozen=True, eq=False)
class Chart:
    """A Plotly figure, the sentence that stands for it where it is not seen, and what must be told beside it."""

    figure: dict[str, Any]
    label: str
    note: str = ""


@dataclass(frozen=True, eq=False)
class Places:
    """Inputs where it is asked what readers know: along one axis, or on a grid of two.

    ``values`` has a row for each, in numbers; ``held`` says what the other inputs are there.
    """

    axes: tuple[Axis, ...]
    steps: tuple[Array, ...]
    values: Array
    inside: Mask
    outlines: list[tuple[tuple[float, float], ...]]
    held: str


def data_chart(
    inputs: Inputs,
    y: Array,
    output: str,
    region: Region | None = None,
    across: str | None = None,
    up: str | None = None,
) -> Chart:
    """The rows: ``output`` against the input ``across``, or as colours over two inputs if ``up`` is one.

    ``region`` is bound. A drag selects a range, or a box.
    """
    axes = [Axis.of(inputs, name) for name in (across or inputs.sources[0], up) if name is not None]
    known = np.flatnonzero(np.isfinite(y))  # what is wrong with others the fit says
    places = known[sample_places(len(known), MOST_POINTS)]
    if not len(places):
        raise InputError(f"{output!r} has no finite value; choose another output.")
    values, own = inputs.values[places], np.asarray(y, dtype=np.float64)[places]
    inside = np.zeros(len(own), dtype=np.bool_) if region is None else region.contains(values)
    at = [_spread(axis, axis.positions(values), turn) for turn, axis in enumerate(axes)]
    hover = _told(axes, [axis.positions(values) for axis in axes], output, own)
    heights = _with_margin(own)
    sides = [] if region is None else outlines(region, inputs, axes)
    is_map = len(axes) == 2
    traces = [_region_trace(axes, sides, heights)] if sides else []
    colours, beyond = _colours(own, output)
    for part, name, symbol in ((~inside, "row", "circle"), (inside, "row inside", "diamond")):
        if not part.any():
            continue
        marker: dict[str, Any] = {"symbol": symbol, "size": 8 if is_map or symbol == "diamond" else 6}
        marker |= {"line": {"width": 1.2 if symbol == "diamond" else 0.4, "color": TRUTH if is_map else "#ffffff"}}
        if is_map:
            marker |= colours | {"color": own[part].tolist(), "showscale": symbol == "circle" or bool(inside.all())}
        else:
            marker |= {"color": TRUTH if symbol == "diamond" else _GREY}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": axes[0].drawn(at[0][part]),
                "y": axes[1].drawn(at[1][part]) if is_map else own[part].tolist(),
                "marker": marker,
                "hovertext": [text for text, kept in zip(hover, part.tolist(), strict=True) if kept],
                "hoverinfo": "text",
                # what was dragged is told by the region, not by points that fade
                "selected": {"marker": {"opacity": 0.85}},
                "unselected": {"marker": {"opacity": 0.85}},
                "opacity": 0.85,
            }
        )
    vertical = axes[1].layout(upright=True) if is_map else _numbers_axis(output, heights)
    figure = _figure(traces, axes[0].layout(), vertical)
    direction = {} if is_map else {"selectdirection": "h"}
    figure["layout"] |= {"dragmode": "select", "selections": [], **direction}
    figure["layout"]["newselection"] = {"line": {"color": TRUTH, "width": 2, "dash": "solid"}, "mode": "immediate"}
    note = beyond if is_map else ""
    if len(y) > len(own):
        note += f" The chart shows {len(own):,} of {len(y):,} rows, spread evenly; everything else uses all of them."
    words = f"{output} as colours over {axes[0].name} and {axes[-1].name}" if is_map else f"{output} by {axes[0].name}"
    where = "" if region is None else f"; sensitive: {region.in_words(inputs.names)}"
    return Chart(figure, shown(f"Chart of {counted(len(y), 'row')}: {words}{where}."), note.strip())


def by_width(inputs: Inputs, region: Region) -> list[str]:
    """The inputs, first the one of which the bound ``region`` takes most and yet not nearly all."""

    def share(name: str) -> float:
        axis = Axis.of(inputs, name)
        taken = sum(high - low for ((low, high),) in outlines(region, inputs, [axis])) / (axis.high - axis.low)
        return -1.0 if taken > 0.9 else taken

    return sorted(inputs.sources, key=share, reverse=True)


def places_to_ask(inputs: Inputs, region: Region, across: str | None = None, up: str | None = None) -> Places:
    """Inputs all along ``across``, or over ``across`` and ``up``, through the middle of the bound ``region``.

    The others are those of a row inside, the one nearest to the middle of all rows inside.
    """
    axes = tuple(Axis.of(inputs, name) for name in (across or inputs.sources[0], up) if name is not None)
    middle = _middle(inputs, region)
    sides = outlines(region, inputs, axes, middle)
    ends = [end for side in sides for end in side[0]]
    steps = (axes[0].steps(STEPS, ends),) if len(axes) == 1 else tuple(axis.steps(SIDE) for axis in axes)
    grid = [one.ravel() for one in np.meshgrid(*steps, indexing="ij")]
    values = np.tile(middle, (len(grid[0]), 1))
    for axis, positions in zip(axes, grid, strict=True):
        values[:, axis.place] = axis.numbers(positions)
    others = [Axis.of(inputs, name) for name in inputs.sources if name not in [axis.name for axis in axes]]
    held = ", ".join(f"{axis.name} = {axis.value(float(axis.positions(middle[None])[0]))}" for axis in others)
    if len(sides) < len(outlines(region, inputs, axes)):
        held += "; other parts of the region are not here"
    return Places(axes, steps, values, region.contains(values), sides, held)


def known_chart(
    places: Places, output: str, readers: Array, *, floor: Array, unprotected: Array, prior: Array
) -> Chart:
    """How well readers know ``output``: their std at ``places``, with the floor, and what there is to compare.

    The ``floor`` is NaN where nothing is promised. Over two inputs the chart is a map of the readers' std alone.
    """
    name, unit = name_and_unit(output)
    note = f"Here {places.held}." if places.held else ""
    least = float(np.min(readers[places.inside])) if places.inside.any() else math.nan
    words = f"inside the region it is ±{number(least)}{unit} or more" if math.isfinite(least) else "none is inside"
    is_promised = bool(np.isfinite(floor[places.inside]).any())
    if is_promised:
        words += f", and the floor is ±{number(float(np.nanmin(floor[places.inside])))}{unit}"
    over = " and ".join(axis.name for axis in places.axes)
    label = shown(f"How well readers know {name}, by {over}: their standard deviation; {words}. {note}".strip())
    if len(places.axes) == 2:
        return Chart(_known_map(places, output, readers, prior), label, note)
    axis, (steps,) = places.axes[0], places.steps
    lines: list[tuple[str, Array, dict[str, Any], str]] = [
        ("prior alone", prior, {"color": _GREY, "width": 1.5, "dash": "dot"}, "triangle-up"),
        ("unprotected", unprotected, {"color": TRUTH, "width": 1.5, "dash": "dash"}, "x"),
        ("readers", readers, {"color": READER, "width": 2.5}, "circle"),
    ]
    if is_promised:
        promised = np.where(places.inside, floor, np.nan)
        lines.append(("floor", promised, {"color": FLOOR, "width": 3, "dash": "6px,4px"}, "line-ew"))
    top = 1.08 * max(float(np.max(values[np.isfinite(values)], initial=0.0)) for _, values, _, _ in lines) or 1.0
    traces = [_region_trace([axis], places.outlines, (0.0, top))] if places.outlines else []
    for called, values, line, symbol in lines:
        trace: dict[str, Any] = {"type": "scatter", "name": called, "x": axis.drawn(steps), "y": _plain(values)}
        trace |= {"mode": "markers" if axis.is_category else "lines", "line": line, "hoverinfo": "text"}
        marked = {"color": line["color"], "width": 3 if symbol == "line-ew" else 0}
        trace["marker"] = {"color": line["color"], "symbol": symbol, "size": 10, "line": marked}
        trace["hovertext"] = [
            f"{_at(axis, at)}<br>{called}: ±{number(value)}{escaped(unit)}"
            for at, value in zip(steps.tolist(), values.tolist(), strict=True)
        ]
        if called == "floor" and not axis.is_category:
            traces += [_below(axis, steps, values, first, last) for first, last in runs(np.isfinite(values))]
        traces.append(trace)
    height = _numbers_axis(_with_unit(f"readers' std of {name}", unit), (0.0, top))
    return Chart(_figure(traces, axis.layout(), height), label, note)


def tradeoff_chart(found: Tradeoff, at: float, error: float | None) -> Chart:
    """Readers' error outside against the level of one promise, in units; the place ``at`` that is chosen, with its
    ``error`` if that is known.

    Levels whose promise does not hold have open marks.
    """
    unit = found.unit
    lines = [line for line in found.rows if math.isfinite(line.rmse_outside)]
    places = [line.floor if found.by_floor else line.alpha for line in lines]
    errors = [line.rmse_outside for line in lines]
    bare, known = found.everything.rmse_outside, [*errors, *([error] if error is not None else [])]
    top = 1.12 * max([value for value in (*known, bare) if math.isfinite(value)], default=1.0) or 1.0
    most = max([*places, at]) * 1.06 if found.by_floor else 1.0
    level = "floor" if found.by_floor else "α"
    curve: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "error outside",
        "x": places,
        "y": errors,
        "line": {"color": READER, "width": 2.5},
        "marker": {
            "size": 8,
            "color": ["#ffffff" if line.holds is False else READER for line in lines],
            "line": {"color": READER, "width": 2},
        },
        "hoverinfo": "text",
        "hovertext": [
            f"{level} = {number(x)}{escaped(unit) if found.by_floor else ''}<br>error outside "
            f"{number(line.rmse_outside)}{escaped(unit)}, {share(line.loss).replace('%', '&#37;')} of the "
            f"accuracy there lost{'<br>the promise does not hold' if line.holds is False else ''}"
            for x, line in zip(places, lines, strict=True)
        ],
    }
    traces = [curve] if lines else []
    for name, value, dash in (("unprotected", bare, "dash"), ("prior alone", found.prior_rmse, "dot")):
        if math.isfinite(value) and value <= top:
            line_of = {"color": TRUTH if dash == "dash" else _GREY, "width": 1.5, "dash": dash}
            across = {"type": "scatter", "mode": "lines", "name": name, "x": [0.0, most], "y": [value, value]}
            traces.append(across | {"line": line_of, "hoverinfo": "skip"})
    upright = {"x": [at, at], "y": [0.0, top], "line": {"color": PUBLISHED, "width": 1.5, "dash": "dashdot"}}
    chosen = {"type": "scatter", "name": "chosen", "hoverinfo": "skip", "mode": "lines"}
    traces.append(chosen | upright | {"showlegend": error is None})
    if error is not None and math.isfinite(error):
        star = {"symbol": "star", "size": 17, "color": PUBLISHED, "line": {"color": "#ffffff", "width": 1}}
        traces.append(chosen | {"mode": "markers", "x": [at], "y": [error], "marker": star})
    title = _with_unit("floor", unit) if found.by_floor else "α: share that may be learnt"
    across_axis = _numbers_axis(title, (0.0, most))
    if not found.by_floor:
        across_axis["tickformat"] = ".1f"
    figure = _figure(traces, across_axis, _numbers_axis(_with_unit("error outside", unit), (0, top)))
    said = f"What readers lose outside the region against the {'floor' if found.by_floor else 'level α'}"
    if not errors:
        return Chart(figure, f"{said}: there is no elsewhere to compare.", "There is no elsewhere to compare.")
    said += f": their error goes from {number(errors[0])}{unit} at {level} = {number(places[0])} to "
    said += f"{number(errors[-1])}{unit} at {number(places[-1])}; without protection it is {number(bare)}{unit}"
    said += f". Chosen: {level} = {number(at)}" + ("" if error is None else f", error {number(error)}{unit}")
    return Chart(figure, shown(f"{said}."))


def _below(axis: Axis, steps: Array, values: Array, first: int, last: int) -> dict[str, Any]:
    """What lies below the floor, along one piece of the region."""
    own = slice(first, last + 1)
    line: dict[str, Any] = {"type": "scatter", "x": axis.drawn(steps[own]), "y": _plain(values[own]), "mode": "none"}
    return line | {"fill": "tozeroy", "fillcolor": "rgba(0,158,115,0.18)", "showlegend": False, "hoverinfo": "skip"}


def _known_map(places: Places, output: str, readers: Array, prior: Array) -> dict[str, Any]:
    (across, up), (columns, rows) = places.axes, places.steps
    name, unit = name_and_unit(output)
    std = readers.reshape(len(columns), len(rows)).T
    most = float(np.max(np.maximum(readers, prior)))
    hover = [
        [
            f"{_at(across, x)}<br>{_at(up, y)}<br>±{number(std[j, i])}{escaped(unit)}"
            for i, x in enumerate(columns.tolist())
        ]
        for j, y in enumerate(rows.tolist())
    ]
    said = _with_unit(f"readers' std of {name}", unit)
    heat = {
        "type": "heatmap",
        "x": across.drawn(columns),
        "y": up.drawn(rows),
        "z": [_plain(row) for row in std],
        "zmin": 0.0,
        "zmax": most or 1.0,
        "colorscale": "Cividis",
        "colorbar": _bar(said),
        "hovertext": hover,
        "hoverinfo": "text",
    }
    traces = [heat]
    if places.outlines:
        border = _region_trace(places.axes, places.outlines, (0.0, 1.0), over=True)
        # white dashes on black are seen on every colour
        traces += [border, border | {"line": {"color": "#ffffff", "width": 1.5, "dash": "dash"}, "showlegend": False}]
    return _figure(traces, across.layout(), up.layout(upright=True))


def _middle(inputs: Inputs, region: Region) -> Array:
    """A row inside, the one nearest to the middle of those; without any, the middle row brought inside."""
    rows = inputs.sample.values
    inside = region.contains(rows)
    kept = rows[inside] if inside.any() else rows
    distance = np.sum(((kept - np.median(kept, axis=0)) / (np.std(rows, axis=0) + 1e-300)) ** 2, axis=1)
    row = kept[int(np.argmin(distance))]
    return np.array(row if inside.any() else region.project(row[None], inputs)[0])


def _region_trace(
    axes: Sequence[Axis],
    sides: list[tuple[tuple[float, float], ...]],
    heights: tuple[float, float],
    over: bool = False,
) -> dict[str, Any]:
    """The region, hatched and outlined; ``over`` a map its outline alone."""
    x: list[float] = []
    y: list[float] = []
    for side in sides:
        left, right = _seen(axes[0], side[0])
        bottom, top = _seen(axes[1], side[1]) if len(side) == 2 else heights
        x += [left, left, right, right, left, math.nan]
        y += [bottom, top, top, bottom, bottom, math.nan]
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": "sensitive",
        "x": axes[0].drawn(x[:-1]),
        "y": axes[1].drawn(y[:-1]) if len(axes) == 2 else _plain(np.array(y[:-1])),
        "line": {"color": TRUTH, "width": 3} if over else {"color": _HATCH, "width": 1.2, "dash": "dash"},
        "hoverinfo": "skip",
    }
    if not over:
        pattern = {"shape": "/", "size": 9, "solidity": 0.12, "fgcolor": _HATCH, "bgcolor": "rgba(0,0,0,0.06)"}
        trace |= {"fill": "toself", "fillcolor": "rgba(0,0,0,0.06)", "fillpattern": pattern}
    return trace


def _seen(axis: Axis, side: tuple[float, float]) -> tuple[float, float]:
    """A side that is wide enough to be seen."""
    short = 0.008 * (axis.high - axis.low) - (side[1] - side[0])
    return side if short <= 0.0 else (side[0] - short / 2.0, side[1] + short / 2.0)


def _spread(axis: Axis, positions: Array, turn: int) -> Array:
    """Rows of one level stand beside each other, not on each other."""
    if not axis.is_category:
        return positions
    places = (np.arange(len(positions)) * GOLDEN + 0.5 * turn) % 1.0
    return np.asarray(positions + 2.0 * (REACH - 0.05) * (places - 0.5))


def _told(axes: Sequence[Axis], at: list[Array], output: str, y: Array) -> list[str]:
    """What each row is, for those who point at it."""
    name, unit = name_and_unit(output)
    value = [f"{escaped(name)} = {number(one)}{escaped(unit)}" for one in y.tolist()]
    where = [[_at(axis, one) for one in own.tolist()] for axis, own in zip(axes, at, strict=True)]
    return ["<br>".join(lines) for lines in zip(*where, value, strict=True)]


def _at(axis: Axis, position: float) -> str:
    return f"{escaped(axis.name)} = {escaped(axis.value(position))}"


def _with_margin(values: Array) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    margin = 0.05 * (high - low) or 0.05 * abs(low) or 1.0
    return low - margin, high + margin


def _colours(y: Array, output: str) -> tuple[dict[str, Any], str]:
    """Colours for values, and a sentence where a few are so far off that they would take most of the scale."""
    low, high = (float(end) for end in np.quantile(y, [0.02, 0.98], method="nearest"))
    unit, beyond = name_and_unit(output)[1], int(np.sum((y < low) | (y > high)))
    if not np.ptp(y) > 2.0 * (high - low) > 0.0:
        low, high, beyond = float(np.min(y)), float(np.max(y)), 0
    ends = f"Colours go from {number(low)} to {number(high)}{unit}; {counted(beyond, 'row')} beyond them look the same."
    scale = {"colorscale": "Cividis", "cmin": low, "cmax": high, "colorbar": _bar(output)}
    return scale, ends if beyond else ""


def _bar(title: str) -> dict[str, Any]:
    bar: dict[str, Any] = {"thickness": 10, "len": 1.0, "xpad": 6, "ypad": 0, "outlinewidth": 0, "nticks": 6}
    return bar | {"title": {"text": escaped(title, 34), "side": "right"}, **_PLAIN_NUMBERS}


def _numbers_axis(title: str, ends: tuple[float, float]) -> dict[str, Any]:
    return {"title": {"text": escaped(title), "standoff": 8}, "range": [*ends], "type": "linear"}


def _with_unit(name: str, unit: str) -> str:
    return f"{name} [{unit.strip()}]" if unit else name


def _plain(values: Array) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _figure(traces: list[dict[str, Any]], across: dict[str, Any], up: dict[str, Any]) -> dict[str, Any]:
    """A figure that fits a telephone and a desk: legend above, nothing that drags or zooms by itself."""
    axis = {"fixedrange": True, "automargin": True, "zeroline": False, "gridcolor": _LINES, "linecolor": "#444444"}
    axis |= {"showline": True, "ticks": "outside", "tickcolor": "#444444"}
    axis |= _PLAIN_NUMBERS
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "itemclick": False, "itemdoubleclick": False}
    layout = {
        "xaxis": axis | {"nticks": 6} | across,
        "yaxis": axis | {"nticks": 7} | up,
        "legend": legend,
        "margin": {"l": 56, "r": 14, "t": 30, "b": 48},
        "font": {"family": "Roboto, sans-serif", "size": 13, "color": "#222222"},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "hoverlabel": {"namelength": -1, "align": "left"},
        "dragmode": False,
        "showlegend": len(traces) > 1,
    }
    config = {"displayModeBar": False, "displaylogo": False, "doubleClick": False, "scrollZoom": False}
    return {"data": traces, "layout": layout, "config": config}
