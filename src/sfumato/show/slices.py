"""Releases with many inputs, seen along one column at a time: floors, slices and partial dependence."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..arrays import Array, Mask
from ..data import ONE_OUTPUT
from ..errors import InputError
from ..release import Release
from .style import (
    BAND,
    FLOOR,
    PUBLISHED,
    READER,
    REGION,
    SMALL,
    fitting_columns,
    legend_above,
    new_axes,
    plain_axes,
    plain_numbers,
)
from .view import Seen

#: Rows that a partial dependence averages over at most, and steps along its column.
MOST_ROWS, PARTIAL_STEPS = 200, 41


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
    view = Seen.by_readers(release, of)
    place = view.column(column)
    worst = release.certificate
    through = view.place(at, worst.worst_input)
    points = view.along(place, through)
    steps = points[:, place]
    ax = new_axes(ax)
    _shade(ax, view, points, place)
    ax.plot(steps, view.prior_std(points), color="0.45", linewidth=1.0, linestyle=":", label="knows only the prior")
    ax.plot(steps, view.predict(points).std, color=READER, linewidth=1.6, label="reader's standard deviation")
    floor = view.floor(points)
    if np.any(np.isfinite(floor)):
        ax.fill_between(steps, 0, floor, color=FLOOR, alpha=0.25, linewidth=0, label="no reader gets here")
        ax.plot(steps, floor, color=FLOOR, linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor")
    if at is None and np.isfinite(worst.worst_std):
        mark: dict[str, Any] = {
            "marker": "v",
            "markersize": 7,
            "markerfacecolor": PUBLISHED,
            "markeredgecolor": "black",
        }
        text = f"worst input: {worst.floor_ratio:.4f} × floor"
        ax.plot(through[place], worst.worst_std, linestyle="none", label=text, zorder=5, **mark)
    ax.set_ylim(0.0, 1.08 * ax.get_ylim()[1])
    _finish(ax, view, place, label or f"std of {view.name}")
    _say_where(ax, view, through, place)
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
    view = Seen.by_readers(release, of)
    asked: Sequence[str | int] = view.names if columns is None else columns
    if isinstance(asked, str) or not len(asked):
        raise InputError(f"columns is {columns!r}; give a list of columns, such as [{view.names[0]!r}].")
    places = [view.column(column) for column in asked]
    panels = _panels(ax, len(places))
    through = view.place(at, release.certificate.worst_input)
    common = _wrapped(f"input in common: {ONE_OUTPUT.place_in_words(view.names, through, digits=3)}", 60)
    for panel, place in zip(panels, places, strict=True):
        points = view.along(place, through)
        _shade(panel, view, points, place)
        seen = view.predict(points)
        _draw_band(panel, points[:, place], seen.mean, seen.std, "reader's 95 % band")
        panel.plot(points[:, place], seen.mean, color=READER, linewidth=1.6, label="reader's mean")
        panel.axvline(through[place], color="0.35", linewidth=0.9, linestyle=(0, (1, 1.5)), label=common)
        _dress(panel, view, place, label or view.name)
    _one_scale(panels)
    handles: dict[str, Any] = {}
    for panel in panels:
        handles |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    if ax is not None:
        panels[0].legend(list(handles.values()), list(handles), frameon=False, fontsize=SMALL - 1)
        return panels
    figure: Any = panels[0].figure
    beside = fitting_columns(list(handles), 3, figure.get_figwidth())
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper left", ncol=beside, frameon=False, fontsize=SMALL
    )
    return panels


def plot_partial(
    release: Release, column: str | int, ax: Axes | None = None, of: str | None = None, label: str | None = None
) -> Axes:
    """Partial dependence: what a reader concludes on average over the rows, if all of them had this value in a column.

    The band is the reader's 95 % for that average; between the dashed lines are the middle 80 % of the rows' own means.
    Of many rows 200 are averaged.
    """
    view = Seen.by_readers(release, of)
    place = view.column(column)
    rows = view.rows[np.unique(np.linspace(0, len(view.rows) - 1, min(len(view.rows), MOST_ROWS)).astype(np.intp))]
    low, high = view.span(place)
    steps = np.linspace(low, high, PARTIAL_STEPS)
    mean, std = np.empty(PARTIAL_STEPS), np.empty(PARTIAL_STEPS)
    spread = np.empty((2, PARTIAL_STEPS))
    for number, step in enumerate(steps):
        points = np.array(rows)
        points[:, place] = step
        # a release over one input has the same point in every row
        seen = view.predict(np.unique(points, axis=0) if len(view.names) == 1 else points)
        mean[number] = np.mean(seen.mean)
        std[number] = np.sqrt(max(float(np.mean(seen.covariance())), 0.0))
        spread[:, number] = np.percentile(seen.mean, [10.0, 90.0])
    ax = new_axes(ax)
    if len(view.names) > 1:
        for edge, text in zip(spread, ("middle 80 % of the rows' means", None), strict=True):
            ax.plot(steps, edge, color=PUBLISHED, linewidth=1.1, linestyle=(0, (4, 2)), label=text)
    _draw_band(ax, steps, mean, std, "reader's 95 % band of the average")
    ax.plot(steps, mean, color=READER, linewidth=1.6, label="average of the reader's means")
    inside = _anywhere_inside(view, rows, place, steps)
    if inside.any() and not inside.all():
        _fill_region(ax, steps, inside, "values of the region")
    _finish(ax, view, place, label or f"average of {view.name}")
    return ax


def _draw_band(ax: Axes, steps: Array, mean: Array, std: Array, label: str) -> None:
    ax.fill_between(
        steps, mean - BAND * std, mean + BAND * std, color=READER, alpha=0.22, linewidth=0, label=label, zorder=1
    )


def _shade(ax: Axes, view: Seen, points: Array, place: int) -> None:
    inside = view.inside(points)
    if inside.any():
        _fill_region(ax, points[:, place], inside, f"region: {view.design.region.in_words(view.design.inputs.names)}")


def _fill_region(ax: Axes, steps: Array, inside: Mask, label: str) -> None:
    how: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "color": REGION, "linewidth": 0, "zorder": 0}
    ax.fill_between(steps, 0, 1, where=inside, label=label, **how)


def _anywhere_inside(view: Seen, rows: Array, place: int, steps: Array) -> Mask:
    """Which values of a column any row would be in the region with."""
    found = np.zeros(len(steps), dtype=np.bool_)
    for number, step in enumerate(steps):
        points = np.array(rows)
        points[:, place] = step
        found[number] = bool(view.inside(points).any())
    return found


def _finish(ax: Axes, view: Seen, place: int, label: str) -> None:
    _dress(ax, view, place, label)
    legend_above(ax)


def _dress(ax: Axes, view: Seen, place: int, label: str) -> None:
    ax.set_xlabel(view.names[place])
    ax.set_ylabel(label)
    ax.margins(x=0.015)
    plain_axes(ax)
    plain_numbers(ax)


def _say_where(ax: Axes, view: Seen, through: Array, place: int) -> None:
    """The other columns, under the name of this one."""
    if len(view.names) > 1:
        ax.set_xlabel(f"{view.names[place]}\n({_wrapped(view.in_words(through, place), 90)})")


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width)


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


def _one_scale(panels: Sequence[Axes]) -> None:
    limits = np.array([panel.get_ylim() for panel in panels])
    for number, panel in enumerate(panels):
        panel.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        if number % 3:
            panel.set_ylabel("")
