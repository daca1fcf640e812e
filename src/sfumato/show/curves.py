"""Curves of a release along one input: what was published, what readers conclude, and what they cannot know.

The first three pictures are for releases over one input. The others are for any number of inputs, seen along one
column at a time. Every function draws on the axes it is given, or on a new figure of its own, and returns the axes;
pyplot's global state is never touched.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array, Mask, evenly
from ..data import ONE_OUTPUT, as_outputs
from ..errors import InputError
from ..release import Release
from .style import (
    DASHED,
    FLOOR,
    PUBLISHED,
    READER,
    SMALL,
    TRUTH,
    draw_floor,
    draw_prior,
    draw_published,
    draw_reader,
    legend_above,
    legend_entries,
    legend_of_figure,
    new_axes,
    shade_region,
    value_axes,
)
from .view import View

#: Rows that a partial dependence averages over at most, and steps along its column.
MOST_ROWS, PARTIAL_STEPS = 200, 41


def plot_release(
    release: Release,
    truth: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    label: str | None = None,
    of: str | None = None,
) -> Axes:
    """Published points and the reader's posterior with its 95 % band; ``truth`` is ``(inputs, values)``.

    Only the owner has the truth: a picture with it is not for publication. ``of`` is the output to draw, where there
    are several.
    """
    view = _over_one_input(release, of)
    points, ax = view.line(), new_axes(ax)
    shade_region(ax, points[:, 0], view.inside(points), view.region_in_words)
    seen = release.predict(points, of)
    draw_reader(ax, points[:, 0], seen.mean, seen.std)
    if truth is not None:
        where = np.asarray(truth[0], dtype=np.float64).reshape(-1)
        values = as_outputs(truth[1], where.size, "truth")
        ax.plot(where, values, color=TRUTH, linewidth=1.3, linestyle=DASHED, label="truth (secret in the region)")
    rows, published = release.rows_of(view.name)
    draw_published(ax, rows[:, 0], published)
    _name_axes(ax, view.names[0], label or view.name)
    legend_above(ax)
    return ax


def plot_floor(release: Release, ax: Axes | None = None, label: str | None = None, of: str | None = None) -> Axes:
    """The reader's standard deviation against the promised floor, with the worst input of the region marked.

    ``of`` is the output to draw, where there are several.
    """
    view = _over_one_input(release, of)
    ax = new_axes(ax)
    points = view.line()
    drawn = _draw_knowledge(ax, release, view, points, 0)
    if not drawn and len(view.sensitive):
        floor = release.tolerance.floor(release.prior, view.sensitive)
        how: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 9, "zorder": 4}
        ax.plot(view.sensitive[:, 0], floor, color=FLOOR, label="promised floor", **how)
    if view.is_about(release.certificate.worst_input):
        _mark_worst(ax, release, 0)
    _name_axes(ax, view.names[0], label or f"std of {view.name}")
    legend_above(ax)
    return ax


def plot_both(
    release: Release,
    truth: tuple[Any, Any] | None = None,
    output: str | None = None,
    over: str | None = None,
    title: str | None = None,
    of: str | None = None,
) -> Figure:
    """``plot_release`` above ``plot_floor`` in one figure; ``output`` and ``over`` label the axes, with units.

    ``of`` is the output to draw, where there are several.
    """
    figure = Figure(figsize=(7.2, 6.2), layout="constrained")
    values, spread = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    plot_release(release, truth, ax=values, label=output, of=of)
    plot_floor(release, ax=spread, label=f"std of {output or of or release.output_name}", of=of)
    values.set_xlabel("")
    if over:
        spread.set_xlabel(over)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.align_ylabels()
    return figure


def plot_floor_along(
    release: Release,
    column: str | int,
    at: Any = None,
    ax: Axes | None = None,
    of: str | None = None,
    label: str | None = None,
) -> Axes:
    """The reader's standard deviation against the promised floor along one column, through the input ``at``.

    Left out, ``at`` is the worst input of the region: the one where readers come closest to their floor. The other
    columns stay as they are there, and the title says how.
    """
    view = View.of_release(release, of)
    place = view.column(column)
    through = view.place(at, release.certificate.worst_input)
    ax = new_axes(ax)
    _draw_knowledge(ax, release, view, view.along(place, through), place)
    if at is None:
        _mark_worst(ax, release, place)
    name = view.names[place]
    if len(view.names) > 1:
        name = f"{name}\n({textwrap.fill(view.in_words(through, place), 90)})"
    _name_axes(ax, name, label or f"std of {view.name}")
    legend_above(ax)
    return ax


def plot_slices(
    release: Release,
    columns: Sequence[str | int] | None = None,
    at: Any = None,
    ax: Sequence[Axes] | Axes | None = None,
    of: str | None = None,
    label: str | None = None,
) -> list[Axes]:
    """What a reader concludes along each of ``columns`` (left out: all), one panel each, through the input ``at``.

    Left out, ``at`` is the worst input of the region. ``ax`` are the axes to draw on, one for each column.
    """
    view = View.of_release(release, of)
    asked: Sequence[str | int] = view.names if columns is None else columns
    if isinstance(asked, str) or not len(asked):
        raise InputError(f"columns is {columns!r}; give a list of columns, such as [{view.names[0]!r}].")
    places = [view.column(column) for column in asked]
    panels = _panels(ax, len(places))
    through = view.place(at, release.certificate.worst_input)
    common = f"input in common: {ONE_OUTPUT.place_in_words(view.names, through, digits=3)}"
    for panel, place in zip(panels, places, strict=True):
        points = view.along(place, through)
        shade_region(panel, points[:, place], view.inside(points), view.region_in_words)
        seen = release.predict(points, of)
        draw_reader(panel, points[:, place], seen.mean, seen.std)
        how: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
        panel.axvline(through[place], label=textwrap.fill(common, 60), **how)
        _name_axes(panel, view.names[place], label or view.name)
    limits = np.array([panel.get_ylim() for panel in panels])
    for number, panel in enumerate(panels):
        panel.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        if number % 3:
            panel.set_ylabel("")
    if ax is not None:
        entries = legend_entries(panels)
        panels[0].legend(list(entries.values()), list(entries), frameon=False, fontsize=SMALL - 1)
    else:
        figure: Any = panels[0].figure
        legend_of_figure(figure, panels, "upper left", 3)
    return panels


def plot_partial(
    release: Release, column: str | int, ax: Axes | None = None, of: str | None = None, label: str | None = None
) -> Axes:
    """Partial dependence: what a reader concludes on average over the rows, if all of them had this value in a column.

    The band is the reader's 95 % for that average; between the dashed lines are the middle 80 % of the rows' own means.
    Of many rows 200 are averaged.
    """
    view = View.of_release(release, of)
    place = view.column(column)
    rows = view.rows[evenly(len(view.rows), MOST_ROWS)]
    steps = np.linspace(*view.span(place), PARTIAL_STEPS)
    mean, std, middle = np.empty(PARTIAL_STEPS), np.empty(PARTIAL_STEPS), np.empty((2, PARTIAL_STEPS))
    inside: Mask = np.zeros(PARTIAL_STEPS, dtype=np.bool_)
    for number, step in enumerate(steps):
        points = np.array(rows)
        points[:, place] = step
        # a release over one input has the same point in every row
        seen = release.predict(np.unique(points, axis=0) if len(view.names) == 1 else points, of)
        mean[number] = np.mean(seen.mean)
        std[number] = np.sqrt(max(float(np.mean(seen.covariance())), 0.0))
        middle[:, number] = np.percentile(seen.mean, [10.0, 90.0])
        inside[number] = view.inside(points).any()
    ax = new_axes(ax)
    if len(view.names) > 1:
        for edge, text in zip(middle, ("middle 80 % of the rows' means", None), strict=True):
            ax.plot(steps, edge, color=PUBLISHED, linewidth=1.1, linestyle=(0, (4, 2)), label=text)
    draw_reader(ax, steps, mean, std, "average of the reader's means", "reader's 95 % band of the average")
    if not inside.all():
        shade_region(ax, steps, inside, "values of the region")
    _name_axes(ax, view.names[place], label or f"average of {view.name}")
    legend_above(ax)
    return ax


def _over_one_input(release: Release, of: str | None) -> View:
    view = View.of_release(release, of)
    others = "plot_std_map (two inputs), plot_floor_along or plot_slices"
    view.check_inputs(1, "this picture is for one", others)
    return view


def _draw_knowledge(ax: Axes, release: Release, view: View, points: Array, place: int) -> bool:
    """The region, what readers know of ``points`` along a column, and the floor; whether there is a floor to draw."""
    at, floor = points[:, place], view.floor(points)
    shade_region(ax, at, view.inside(points), view.region_in_words)
    draw_prior(ax, at, view.prior_std(points))
    ax.plot(at, release.predict(points, view.of).std, color=READER, linewidth=1.6, label="reader's standard deviation")
    drawn = int(np.sum(np.isfinite(floor))) > 1
    if drawn:
        draw_floor(ax, at, floor)
    ax.set_ylim(0.0, 1.08 * ax.get_ylim()[1])
    return drawn


def _mark_worst(ax: Axes, release: Release, place: int) -> None:
    """The input of the region where readers come closest to their floor."""
    worst = release.certificate
    if np.isfinite(worst.worst_std):
        how: dict[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 7, "markeredgewidth": 0.6, "zorder": 5}
        how |= {"markerfacecolor": PUBLISHED, "markeredgecolor": "black"}
        text = f"worst input: {worst.floor_ratio:.4f} × floor"
        ax.plot([np.ravel(worst.worst_input)[place]], [worst.worst_std], label=text, **how)


def _name_axes(ax: Axes, across: str, up: str) -> None:
    ax.set(xlabel=across, ylabel=up)
    value_axes(ax)


def _panels(ax: Sequence[Axes] | Axes | None, count: int) -> list[Axes]:
    if ax is not None:
        given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != count:
            raise InputError(f"ax has {len(given)} axes, but there are {count} columns; give one for each.")
        return given
    across = min(count, 3)
    down = -(-count // across)
    figure = Figure(figsize=(3.1 * across + 0.6, 2.5 * down + 0.7), layout="constrained")
    panels = list(np.ravel(figure.subplots(down, across, squeeze=False)))
    for panel in panels[count:]:
        panel.remove()
    return panels[:count]
