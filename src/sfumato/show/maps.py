"""Maps of a release over two inputs, and the covariance of its noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from ..arrays import Array, Mask, evenly
from ..data import Column, Outputs, sample_places
from ..design import Mechanism
from ..errors import InputError
from ..proof import changes_of
from ..release import Release
from ..text import counted, shown
from .view import (
    DIVERGING,
    NAME_LETTER,
    PUBLISHED,
    SEQUENTIAL,
    SLIVER,
    WIDE,
    View,
    axes_beside,
    colour_bar,
    inches,
    legend_above,
    name_axes,
    new_axes,
    runs,
    show_dates,
    shows_names,
    wrapped,
)

#: Where a map begins and ends, across and up.
Ends = tuple[tuple[float, float], tuple[float, float]]

#: Inputs on each side of a map, and of the finer one that the border of a region is drawn on.
SIDE, FINE = 81, 401

#: Steps of the colours of a map.
LEVELS = 24

#: Rows and columns of Σ that are drawn at most, and points of a map.
MOST_ROWS, MOST_POINTS = 1200, 2000

#: Inches of a map, with its colour bar.
_WIDTH, _HEIGHT = 5.6, 4.4

#: Rows of Σ beside the region that are enlarged with it, at least.
FEW_ROWS = 8

#: Letters of a line of the name of an output at the edge of Σ.
LONGEST_TICK = 16

#: Of the length of a side of Σ: how far its bars are from the matrix.
_EDGE = 0.022


@shows_names
def plot_std_map(
    release: Release,
    ax: Axes | None = None,
    of: str | None = None,
    label: str | None = None,
    region_label: str | None = None,
) -> Axes:
    """How well a reader knows f, over two inputs: light where they know little, with the rows and the region.

    ``of`` is the output to draw, where there are several; ``label`` names the colours, with units; ``region_label`` is
    what the legend calls the region, if not by its description.
    """
    view = View.of_release(release, of, region_label)
    _check_two_inputs(view)
    window = _sliver(view)
    ax = new_axes(ax, WIDE if window else _WIDTH, _HEIGHT)
    rows = view.rows[evenly(len(view.rows), MOST_POINTS)]
    how: dict[str, Any] = {"markersize": 2.6, "markeredgecolor": "black", "markeredgewidth": 0.35}

    def draw(panel: Axes, ends: Ends, levels: Array | None) -> Any:
        across, up = (np.linspace(*side, SIDE) for side in ends)
        std = release.predict(_grid(across, up), of).std.reshape(SIDE, SIDE)
        if levels is None:
            # from 0, where everything is known: a flat map then looks flat
            levels = np.linspace(0.0, float(std.max()) or 1.0, LEVELS + 1)
        panel.plot(*rows.T, linestyle="none", marker="o", color="white", **how)
        return panel.contourf(across, up, np.minimum(std, levels[-1]), levels=levels, cmap=SEQUENTIAL)

    drawn = draw(ax, (view.span(0), view.span(1)), None)
    if window and (beside := axes_beside(ax)):
        draw(beside, window, drawn.levels)
        _limit(beside, view, window, ", enlarged")
    colour_bar(ax, drawn, label or f"reader's std of {view.name}")
    return _finish_map(ax, view, "0.55")


@shows_names
def plot_noise_map(
    source: Mechanism | Release, ax: Axes | None = None, of: str | None = None, label: str | None = None
) -> Axes:
    """How much each row is blurred, over two inputs: the standard deviation of its noise.

    Where combinations of rows are suppressed, of the change from the true to the published value. It needs no values:
    a mechanism can be drawn before anything is released.
    """
    view = View.of_release(source, of) if isinstance(source, Release) else View(_design(source), of)
    _check_two_inputs(view)
    window = _sliver(view)
    rows, std = _noise_of_rows(view)
    if window and not _any_within(rows, window):
        window = None
    ax = new_axes(ax, WIDE if window else _WIDTH, _HEIGHT)
    order = np.argsort(std, kind="stable")  # the most blurred on top
    how: dict[str, Any] = {"s": 17, "edgecolors": "0.25", "linewidths": 0.35, "zorder": 3, "cmap": SEQUENTIAL}

    def draw(panel: Axes) -> Any:
        return panel.scatter(rows[order, 0], rows[order, 1], c=std[order], vmin=0.0, **how)

    drawn = draw(ax)
    if window and (beside := axes_beside(ax)):
        draw(beside)
        _limit(beside, view, window, ", enlarged")
    what = "change of" if view.design.noise.suppressed_count else "noise on"
    colour_bar(ax, drawn, label or f"std of the {what} {_name(source, of)}")
    return _finish_map(ax, view, "0.7")


@shows_names
def plot_covariance(
    source: Mechanism | Release, ax: Axes | None = None, by: str | int = 0, label: str | None = None
) -> Axes:
    """Σ, the covariance of the noise, as colours: red for rows that are blurred alike, blue for opposite ways.

    Rows are ordered by the input column ``by``, outputs one after the other; bars at the edges mark the region. Of many
    rows some are drawn. Combinations that are suppressed carry no noise.
    """
    design = _design(source)
    outputs = design.inputs.outputs
    if len(design.inputs) > 20 * MOST_ROWS:
        raise InputError(
            f"the design has {len(design.inputs):,} rows, too many for a picture of Σ; draw plot_noise_map, or protect "
            "a sample of them."
        )
    values = design.inputs.values
    numbers = outputs.numbers(values)
    view = View(design, outputs.names[numbers[0]])
    place = view.column(by)
    order = np.lexsort((values[:, place], numbers))
    order = order[evenly(len(order), MOST_ROWS)]
    rows = len(order)
    # of many rows only those that are drawn: independent noise has a source for each
    some = rows < len(values) and not design.noise.suppressed_count
    factor = design.noise.restricted(order).factor if some else design.noise.factor[order]
    covariance = factor @ factor.T + design.noise.shift * np.eye(rows)
    inside = design.region.contains_for_any_output(values[order])
    window = None if outputs.numbered else _rows_to_enlarge(inside)
    ax = new_axes(ax, WIDE if window else 5.8, 4.8)
    about = "" if outputs.numbered else f" on {_name(source, None)}"
    most, name = float(np.max(np.abs(covariance))) or 1.0, f"rows, by {view.names[place]}"

    def draw(panel: Axes, first: int, last: int, more: str) -> Any:
        kept = slice(first, last + 1)
        ticks, texts = _ticks_of_rows(values[order[kept]], place, outputs, view.dates(place))
        _label_rows(panel, ticks, texts)
        _mark_rows(panel, inside[kept])
        name_axes(panel, name + more, None if more else name)
        how: dict[str, Any] = {"cmap": DIVERGING, "vmin": -most, "vmax": most, "aspect": "auto"}
        return panel.imshow(covariance[kept, kept], interpolation="nearest", **how)

    if window and (beside := axes_beside(ax)):
        draw(beside, *window, ", enlarged")
    suppressed = design.noise.suppressed_count
    beside_it = f" ({counted(suppressed, 'combination')} suppressed)" if suppressed else ""
    colour_bar(ax, draw(ax, 0, rows - 1, ""), label or f"covariance of the noise{about}{beside_it}")
    # labels of rows may take a part of the width
    words = f"region: {design.region.in_words(design.inputs.names)}"
    legend_above(ax, room=0.7, handles=[_handle(words, PUBLISHED, linewidth=4)])
    return ax


def _rows_to_enlarge(inside: Mask) -> tuple[int, int] | None:
    """The first and the last row to enlarge: those in the region and as many beside them, where they are few of all."""
    within = np.flatnonzero(inside)
    if not len(within) or within[-1] - within[0] + 1 >= SLIVER * len(inside):
        return None
    more = max(int(within[-1] - within[0]) + 1, FEW_ROWS)
    return max(0, int(within[0]) - more), min(len(inside) - 1, int(within[-1]) + more)


def _label_rows(ax: Axes, ticks: list[float], texts: list[str]) -> None:
    texts = [shown(text) for text in texts]
    crowded = sum(map(len, texts)) * NAME_LETTER > 0.9 * inches(ax)[0]
    texts = [wrapped(text, LONGEST_TICK, lines=2) for text in texts] if crowded else texts
    ax.set_xticks(ticks, texts, rotation=90 if crowded else 0)
    ax.set_yticks(ticks, texts)
    ax.spines[:].set_visible(False)


def _mark_rows(ax: Axes, inside: Mask) -> None:
    """Bars along both edges of Σ, beside the rows in the region."""
    rows = len(inside)
    edge = rows * _EDGE
    for start, stop in runs(inside):
        bar, beside = [start - 0.5, stop + 0.5], [-0.5 - edge] * 2
        for x, y in ((bar, beside), (beside, bar)):
            ax.plot(x, y, color=PUBLISHED, linewidth=4, solid_capstyle="butt")
    ax.set(xlim=(-0.5 - 2 * edge, rows - 0.5), ylim=(rows - 0.5, -0.5 - 2 * edge))


def _design(source: Any) -> Any:
    if not isinstance(source, (Mechanism, Release)):
        raise InputError(f"source is a {type(source).__name__}; give a mechanism or a release.")
    return source.design


def _name(source: Mechanism | Release, of: str | None) -> str:
    return of or (source.output_name if isinstance(source, Release) else "y")


def _check_two_inputs(view: View) -> None:
    others = "plot_release and plot_floor" if len(view.names) == 1 else "plot_floor_along and plot_slices"
    view.check_inputs(2, "a map is for two", others)


def _noise_of_rows(view: View) -> tuple[Array, Array]:
    inputs, noise = view.design.inputs, view.design.noise
    if noise.compressed:
        rows, variance = inputs.sample, changes_of(view.design)
    else:
        places = sample_places(len(inputs))
        rows, variance = inputs.select(places), changes_of(view.design)[places]
    own = rows.outputs.numbers(rows.values) == view.number
    if not own.any():
        raise InputError(f"of is {view.of!r}, which is not released, so it has no noise; choose one that is.")
    return rows.plain.values[own], np.sqrt(variance[own])


def _any_within(rows: Array, ends: Ends) -> bool:
    return bool(np.any(np.all([(low <= side) & (side <= high) for side, (low, high) in zip(rows.T, ends)], axis=0)))


def _grid(across: Array, up: Array) -> Array:
    return np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)


def _outline(ax: Axes, view: View) -> None:
    points = view.design.region.points
    if points is not None:
        own = points if view.of is None else points[view.inside(points[:, :2])]
        ax.plot(own[:, 0], own[:, 1], linestyle="none", marker="X", color=PUBLISHED, markeredgecolor="black", zorder=4)
        return
    wide = [_around(view, place) for place in (0, 1)]
    inside = view.inside(_grid(wide[0], wide[1])).reshape(FINE, FINE)
    if inside.any() and not inside.all():
        ax.contour(wide[0], wide[1], inside.astype(float), levels=[0.5], colors=[PUBLISHED], linewidths=2.0, zorder=4)


def _around(view: View, place: int) -> Array:
    """Fine steps from a little before the region begins to a little after it ends, so that its border is smooth."""
    low, high = view.span(place)
    lower, upper = (float(ends[place]) for ends in view.design.region.bounding_box(view.design.inputs.dimension))
    low, high = max(low, lower), min(high, upper)
    margin = 0.01 * (high - low) or 0.01
    return np.linspace(low - margin, high + margin, FINE)


def _finish_map(ax: Axes, view: View, colour: str) -> Axes:
    """The region, the names of the inputs, and a legend in which rows have this ``colour``."""
    _limit(ax, view, (view.span(0), view.span(1)))
    finite = view.design.region.points is not None
    region = _handle(view.region_in_words, PUBLISHED, 0.0 if finite else 2.0, "X" if finite else None)
    legend_above(ax, 2, handles=[_handle("row of the data", colour, marker="o"), region])
    return ax


def _limit(ax: Axes, view: View, ends: Ends, more: str = "") -> None:
    """Outline the region, and let the map go a little further than ``ends`` in both columns, whose names it has."""
    _outline(ax, view)
    (left, right), (down, up) = ((low - 0.02 * (high - low), high + 0.02 * (high - low)) for low, high in ends)
    ax.set(xlim=(left, right), ylim=(down, up))
    name_axes(ax, view.names[0] + more, None if more else view.names[1])
    ax.spines[:].set_visible(False)
    show_dates(ax.xaxis, view.dates(0))
    show_dates(ax.yaxis, view.dates(1))


def _sliver(view: View) -> Ends | None:
    """What to enlarge of a map: the region with as much around it, where it is a sliver in one column or both."""
    spans, ends = [view.span(place) for place in (0, 1)], [view.ends(place) for place in (0, 1)]
    kept = [(own[0], own[-1]) if len(own) > 1 else span for own, span in zip(ends, spans, strict=True)]
    wide, whole = ([high - low for low, high in sides] for sides in (kept, spans))
    if view.design.region.points is not None or not any(0.0 < a < SLIVER * b for a, b in zip(wide, whole, strict=True)):
        return None
    (left, right), (down, up) = (
        (max(low - size, first), min(high + size, last))
        for (low, high), size, (first, last) in zip(kept, wide, spans, strict=True)
    )
    return (left, right), (down, up)


def _handle(label: str, colour: str, linewidth: float = 0.0, marker: str | None = None) -> Line2D:
    style: Any = "-" if linewidth else "none"
    return Line2D([], [], color=colour, linewidth=linewidth, marker=marker, linestyle=style, label=label)


def _ticks_of_rows(values: Array, place: int, outputs: Outputs, dates: Column | None) -> tuple[list[float], list[str]]:
    """About six rows with their input; with several outputs the names of these at the middle of their rows."""
    if not outputs.numbered:
        ticks = evenly(len(values), 6).tolist()
        if dates is not None:
            return ticks, [dates.date_in_words(float(values[tick, place])).partition("T")[0] for tick in ticks]
        # as many decimals as the range of the column asks for
        decimals = 2 - int(np.floor(np.log10(float(np.ptp(values[:, place])) or 1.0)))
        return ticks, [f"{round(float(values[tick, place]), decimals):g}" for tick in ticks]
    numbers = np.unique(values[:, -1])
    middles = [float(np.mean(np.flatnonzero(values[:, -1] == number))) for number in numbers]
    return middles, [outputs.names[int(number)] for number in numbers]
