"""Curves of a release along one input: what was published, what readers conclude, and what they cannot know.

The first three pictures are for releases over one input. The next are for any number of inputs, seen along one column
at a time. The last is a path in the plane: two outputs over one input. Every function draws on the
axes it is given, or on a new figure of its own, and returns the axes; pyplot's global state is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ..arrays import Array, Mask, evenly
from ..data import Column, as_outputs
from ..errors import InputError
from ..release import Prediction, Release
from .view import (
    BAND,
    DASHED,
    FLOOR,
    LINE,
    NARROW,
    PUBLISHED,
    READER,
    SMALL,
    STEPS,
    TITLED,
    TRUTH,
    WIDE,
    View,
    axes_beside,
    draw_floor,
    draw_prior,
    draw_published,
    draw_reader,
    hold_within,
    legend_above,
    legend_entries,
    legend_of_figure,
    name_axes,
    new_axes,
    plain_axes,
    shade_region,
    show_dates,
    shows_names,
    title_over,
    value_axes,
)

#: Rows that a partial dependence averages over at most, and steps along its column.
MOST_ROWS, PARTIAL_STEPS = 200, 41


@shows_names
def plot_release(
    release: Release,
    truth: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    label: str | None = None,
    of: str | None = None,
    region_label: str | None = None,
) -> Axes:
    """Published points and the reader's posterior with its 95 % band; ``truth`` is ``(inputs, values)``.

    Only the owner has the truth: a picture with it is not for publication. ``of`` is the output to draw, where there
    are several; ``region_label`` is what the legend calls the region, if not by its description.
    """
    view = _over_one_input(release, of, region_label)
    points = view.line()
    window = _window(release, view, points, 0)
    ax = new_axes(ax, WIDE if window else NARROW)
    known = None if truth is None else _truth(view, *truth)
    _draw_release(ax, release, view, points[:, 0], known)
    _name_axes(ax, view.names[0], label or view.name, view.dates(0))
    if window and (beside := axes_beside(ax)):
        _draw_release(beside, release, view, _steps(points[:, 0], window), known)
        _name_axes(beside, _enlarged(view.names[0]), "", view.dates(0))
    legend_above(ax)
    return ax


def _truth(view: View, where: Any, values: Any) -> tuple[Array, Array]:
    at, dates = np.asarray(where).reshape(-1), view.dates(0)
    if dates is not None and not np.issubdtype(at.dtype, np.number):
        at = dates.encode(pd.Series(at), "truth", "truth[0]")[:, 0]
    at = at.astype(np.float64)
    return at, as_outputs(values, at.size, "truth")


def _draw_release(ax: Axes, release: Release, view: View, at: Array, truth: tuple[Array, Array] | None) -> None:
    """What was published, what readers conclude and the truth, as far as ``at`` goes."""
    points = at[:, None]
    shade_region(ax, at, view.inside(points), view.region_in_words)
    seen = release.predict(points, view.of)
    draw_reader(ax, at, seen.mean, seen.std)
    low, high = float(np.min(seen.mean - BAND * seen.std)), float(np.max(seen.mean + BAND * seen.std))
    if truth is not None:
        where, values = _between(at, *truth)
        ax.plot(where, values, color=TRUTH, linewidth=1.3, linestyle=DASHED, label="truth (secret in the region)")
        low, high = float(np.min(values, initial=low)), float(np.max(values, initial=high))
    rows, published = release.rows_of(view.name)
    where, values = _between(at, rows[:, 0], published)
    beyond = hold_within(ax, low, high, where, values, PUBLISHED)
    draw_published(ax, where, values, f"published (▴▾ {beyond} beyond the scale)" if beyond else "published")


def _between(at: Array, where: Array, values: Array) -> tuple[Array, Array]:
    own = (where >= at[0]) & (where <= at[-1])
    return where[own], values[own]


def _window(release: Release, view: View, points: Array, place: int) -> tuple[float, float] | None:
    """What of a column is enlarged: the region, around its worst input, where it is a sliver."""
    return view.sliver(points, place, float(np.ravel(release.certificate.worst_input)[place]))


def _steps(at: Array, window: tuple[float, float]) -> Array:
    """Fine steps through a window, and all of ``at`` that lie in it."""
    low, high = window
    return np.union1d(np.linspace(low, high, STEPS), at[(at >= low) & (at <= high)])


def _enlarged(name: str) -> str:
    return f"{name}, enlarged"


@shows_names
def plot_floor(
    release: Release,
    ax: Axes | None = None,
    label: str | None = None,
    of: str | None = None,
    region_label: str | None = None,
) -> Axes:
    """The reader's standard deviation against the promised floor, with the worst input of the region marked.

    ``of`` is the output to draw, where there are several; ``region_label`` is as in ``plot_release``.
    """
    view = _over_one_input(release, of, region_label)
    points, worst = view.line(), view.is_about(release.certificate.worst_input)
    ax = _draw_floor_along(ax, release, view, points, 0, view.names[0], worst)
    if "promised floor" not in ax.get_legend_handles_labels()[1] and len(view.sensitive):
        floor = release.tolerance.floor(release.prior, view.sensitive)
        how: dict[str, Any] = {"linestyle": "none", "marker": "_", "markersize": 9, "zorder": 4}
        ax.plot(view.sensitive[:, 0], floor, color=FLOOR, label="promised floor", **how)
    name_axes(ax, None, label or f"std of {view.name}")
    legend_above(ax)
    return ax


def _draw_floor_along(
    ax: Axes | None, release: Release, view: View, points: Array, place: int, name: str, worst: bool
) -> Axes:
    """What readers know of ``points`` along a column, with the worst input; enlarged beside it where it is a sliver."""
    window = _window(release, view, points, place)
    ax = new_axes(ax, WIDE if window else NARROW)
    parts: list[tuple[Axes | None, Array, str]] = [(ax, points, name)]
    if window:
        within = view.through(points[0], place, _steps(points[:, place], window))
        parts.append((axes_beside(ax), within, _enlarged(view.names[place])))
    for panel, seen, called in parts:
        if panel is not None:
            _draw_knowledge(panel, release, view, seen, place)
            if worst:
                _mark_worst(panel, release, place)
            _name_axes(panel, called, "", view.dates(place))
    return ax


@shows_names
def plot_both(
    release: Release,
    truth: tuple[Any, Any] | None = None,
    output: str | None = None,
    over: str | None = None,
    title: str | None = None,
    of: str | None = None,
    region_label: str | None = None,
) -> Figure:
    """``plot_release`` above ``plot_floor`` in one figure; ``output`` and ``over`` label the axes, with units.

    ``of`` is the output to draw, where there are several; ``region_label`` is as in ``plot_release``.
    """
    view = _over_one_input(release, of, region_label)
    wide = _window(release, view, view.line(), 0)
    figure = Figure(figsize=(WIDE if wide else NARROW, 6.2), layout="constrained")
    values, spread = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    plot_release(release, truth, ax=values, label=output, of=of, region_label=region_label)
    spread_label = f"std of {output or of or release.output_name}"
    plot_floor(release, ax=spread, label=spread_label, of=of, region_label=region_label)
    values.set_xlabel("")
    if over:
        name_axes(spread, over)
    if title:
        figure.suptitle(title, fontsize=11)
    figure.align_ylabels()
    return figure


@shows_names
def plot_floor_along(
    release: Release,
    column: str | int,
    at: Any = None,
    ax: Axes | None = None,
    of: str | None = None,
    label: str | None = None,
    region_label: str | None = None,
) -> Axes:
    """The reader's standard deviation against the promised floor along one column, through the input ``at``.

    Left out, ``at`` is the worst input of the region: the one where readers come closest to their floor. The other
    columns stay as they are there, and the title says how. ``region_label`` is as in
    ``plot_release``.
    """
    view = View.of_release(release, of, region_label)
    place = view.column(column)
    through = view.place(at, release.certificate.worst_input)
    name = view.names[place]
    if len(view.names) > 1:
        name = f"{name} ({view.in_words(through, [place])})"
    ax = _draw_floor_along(ax, release, view, view.along(place, through), place, name, at is None)
    name_axes(ax, None, label or f"std of {view.name}")
    legend_above(ax)
    return ax


@shows_names
def plot_slices(
    release: Release,
    columns: Sequence[str | int] | None = None,
    at: Any = None,
    ax: Sequence[Axes] | Axes | None = None,
    of: str | None = None,
    label: str | None = None,
) -> list[Axes]:
    """What a reader concludes along each of ``columns``, one panel each, through the input ``at``.

    Left out, ``columns`` are all that are numbers or dates, not levels of a category.

    Left out, ``at`` is the worst input of the region. ``ax`` are the axes to draw on, one for each column.
    """
    view = View.of_release(release, of)
    asked: Sequence[str | int] = view.scales if columns is None else columns
    if isinstance(asked, str) or not len(asked):
        raise InputError(f"columns is {columns!r}; give a list of columns, such as [{view.names[0]!r}].")
    places = [view.column(column) for column in asked]
    panels = _panels(ax, len(places))
    through = view.place(at, release.certificate.worst_input)
    common = f"input in common: {view.in_words(through)}"
    for panel, place in zip(panels, places, strict=True):
        points = view.along(place, through)
        shade_region(panel, points[:, place], view.inside(points), view.region_in_words)
        seen = release.predict(points, of)
        draw_reader(panel, points[:, place], seen.mean, seen.std)
        how: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
        panel.axvline(through[place], label=common, **how)
        _name_axes(panel, view.names[place], label or view.name, view.dates(place))
    limits = np.array([panel.get_ylim() for panel in panels])
    for number, panel in enumerate(panels):
        panel.set_ylim(limits[:, 0].min(), limits[:, 1].max())
        if number % 3:
            panel.set_ylabel("")
    if ax is not None:
        entries = legend_entries(panels)
        legend_above(panels[0], 1, handles=list(entries.values()), fontsize=SMALL - 1)
    else:
        figure: Any = panels[0].figure
        lines = legend_of_figure(figure, panels, "upper left", 3)
        figure.set_figheight(figure.get_figheight() + LINE * max(lines - 2, 0))
    return panels


@shows_names
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
    steps = np.union1d(np.linspace(*view.span(place), PARTIAL_STEPS), view.ends(place))
    mean, std, middle = np.empty(len(steps)), np.empty(len(steps)), np.empty((2, len(steps)))
    inside: Mask = np.zeros(len(steps), dtype=np.bool_)
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
    _name_axes(ax, view.names[place], label or f"average of {view.name}", view.dates(place))
    legend_above(ax)
    return ax


def _over_one_input(release: Release, of: str | None, region_label: str | None) -> View:
    view = View.of_release(release, of, region_label)
    others = "plot_std_map (two inputs), plot_floor_along or plot_slices"
    view.check_inputs(1, "this picture is for one", others)
    return view


def _draw_knowledge(ax: Axes, release: Release, view: View, points: Array, place: int) -> None:
    """The region, what readers know of ``points`` along a column, and the floor, if it is more than points."""
    at, floor, prior = points[:, place], view.floor(points), view.prior_std(points)
    shade_region(ax, at, view.inside(points), view.region_in_words)
    std = release.predict(points, view.of).std
    ax.plot(at, std, color=READER, linewidth=1.6, label="reader's standard deviation")
    if int(np.sum(np.isfinite(floor))) > 1:
        draw_floor(ax, at, floor)
    marks = evenly(len(at), 9)
    beyond = hold_within(ax, 0.0, float(np.nanmax([*std, *floor])), at[marks], prior[marks], "0.45")
    draw_prior(ax, at, prior, "knows only the prior (▴ beyond the scale)" if beyond else "knows only the prior")
    if not beyond:
        ax.set_ylim(0.0, 1.08 * ax.get_ylim()[1])


def _mark_worst(ax: Axes, release: Release, place: int) -> None:
    """The input of the region where readers come closest to their floor."""
    worst = release.certificate
    if np.isfinite(worst.worst_std):
        how: dict[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 7, "markeredgewidth": 0.6, "zorder": 5}
        how |= {"markerfacecolor": PUBLISHED, "markeredgecolor": "black"}
        what = "worst input" if release.design.protects_function else "worst record, with its own part"
        text = f"{what}: {worst.floor_ratio:.4f} × floor"
        ax.plot([np.ravel(worst.worst_input)[place]], [worst.worst_std], label=text, **how)


def _name_axes(ax: Axes, across: str, up: str, dates: Column | None) -> None:
    name_axes(ax, across, up)
    value_axes(ax)
    show_dates(ax.xaxis, dates)


def _panels(ax: Sequence[Axes] | Axes | None, count: int) -> list[Axes]:
    if ax is not None:
        given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
        if len(given) != count:
            raise InputError(f"ax has {len(given)} axes, but there are {count} columns; give one for each.")
        return given
    across = min(count, 3)
    down = -(-count // across)
    figure = Figure(figsize=(max(3.1 * across + 0.6, 5.0), 2.5 * down + 0.9), layout="constrained")
    panels = list(np.ravel(figure.subplots(down, across, squeeze=False)))
    for panel in panels[count:]:
        panel.remove()
    return panels[:count]


#: Points of a path, ellipses along it, and points on each of them.
PATH_STEPS, ELLIPSES, ROUND = 601, 37, 49

#: Two outputs are within this many standard deviations of their mean with a chance of 95 %.
PLANE = float(np.sqrt(-2.0 * np.log(0.05)))


@shows_names
def plot_trajectory(
    release: Release | Sequence[Release],
    x: str | None = None,
    y: str | None = None,
    polar: bool = False,
    truth: tuple[Any, Any] | None = None,
    ax: Axes | None = None,
    labels: tuple[str, str] | None = None,
) -> Axes:
    """The reader's path of output ``x`` against output ``y``, with ellipses that hold 95 %.

    ``release`` is one release of both outputs, whose covariance the ellipses then show, or a pair of releases, which
    are taken for independent. With ``polar``, x is a radius and y an angle in radians. ``truth`` are the true values of
    both, along the path: only the owner has them. ``labels`` name the axes, with units.
    """
    first, second = _both(release, x, y)
    times = np.linspace(*_common_span(first, second), PATH_STEPS)[:, None]
    path = np.column_stack([first.predict(times).mean, second.predict(times).mean])
    inside = first.view.inside(times) | second.view.inside(times)
    ax = new_axes(ax, 5.6, 5.2, "polar" if polar else None)
    if polar != (ax.name == "polar"):
        raise InputError(f"polar is {polar}, but ax is {'' if ax.name == 'polar' else 'not '}polar; make them agree.")
    chosen = np.unique(np.linspace(0, PATH_STEPS - 1, ELLIPSES).astype(np.intp))
    shapes = _ellipses(path[chosen], _covariances(first, second, times[chosen]))
    for mask, colour in ((~inside, READER), (inside, PUBLISHED)):
        own = [_in_plane(shape, polar) for shape, here in zip(shapes, mask[chosen], strict=True) if here]
        ax.add_collection(PolyCollection(own, facecolors=colour, alpha=0.06, edgecolors="none", zorder=2))
        ax.add_collection(PolyCollection(own, facecolors="none", alpha=0.5, edgecolors=colour, linewidths=0.6))
        line = np.where(mask[:, None], path, np.nan)
        ax.plot(*_in_plane(line, polar).T, color=colour, linewidth=1.7, zorder=3)
    reached = [*shapes, path, _draw_published(ax, first, second, polar)]
    if truth is not None:
        known = np.column_stack([np.asarray(values, dtype=np.float64).reshape(-1) for values in truth])
        ax.plot(*_in_plane(known, polar).T, color=TRUTH, linewidth=1.2, linestyle=DASHED, zorder=4)
        reached.append(known)
    named = labels or (first.view.name, second.view.name)
    _finish(ax, named, polar, np.vstack(reached))
    _legend(ax, inside, truth is not None, f"radius: {named[0]}; angle: {named[1]}" if polar else "")
    return ax


@dataclass(frozen=True, eq=False)
class _Coordinate:
    """One output of a release, over one input."""

    release: Release
    view: View

    @classmethod
    def of(cls, release: Release, name: str | None) -> _Coordinate:
        view = View.of_release(release, name)
        view.check_inputs(1, "a path runs over one, such as time", "plot_slices")
        return cls(release, view)

    def predict(self, times: Array) -> Prediction:
        return self.release.predict(times, self.view.of)


def _both(release: Any, x: str | None, y: str | None) -> tuple[_Coordinate, _Coordinate]:
    if isinstance(release, Release):
        outputs = release.design.inputs.outputs
        if not outputs.numbered:
            raise InputError(
                f"the release is about {release.output_name!r} alone, and a path has two outputs; give a release of a "
                "JointPrior, or a pair of releases."
            )
        if (x is None) != (y is None):
            raise InputError(f"x is {x!r} and y is {y!r}; give both, or neither.")
        names = (x, y) if x is not None else outputs.names[:2]
        if len(names) < 2 or names[0] == names[1]:
            raise InputError(f"x and y are {names}; choose two of {', '.join(map(repr, outputs))}.")
        return _Coordinate.of(release, names[0]), _Coordinate.of(release, names[1])
    pair = list(release) if isinstance(release, Sequence) else [release]
    if len(pair) != 2 or not all(isinstance(one, Release) for one in pair):
        raise InputError("release is neither one of several outputs nor a pair of releases; give one of these.")
    named = [name if one.design.inputs.outputs.numbered else None for one, name in zip(pair, (x, y), strict=True)]
    return _Coordinate.of(pair[0], named[0]), _Coordinate.of(pair[1], named[1])


def _common_span(first: _Coordinate, second: _Coordinate) -> tuple[float, float]:
    spans = [first.view.span(0), second.view.span(0)]
    low, high = max(span[0] for span in spans), min(span[1] for span in spans)
    if low >= high:
        raise InputError(f"the two releases have no inputs in common: {spans[0]} and {spans[1]}.")
    return low, high


def _covariances(first: _Coordinate, second: _Coordinate, times: Array) -> Array:
    """The 2 × 2 covariance of both outputs at each time, as the reader has it."""
    result = np.zeros((len(times), 2, 2))
    result[:, 0, 0] = first.predict(times).std ** 2
    result[:, 1, 1] = second.predict(times).std ** 2
    release = first.release
    if release is second.release:
        rows = len(release.design.inputs)
        blur = release.noise.covariance()
        blur[np.diag_indices(rows)] += release.prior.noise_variance(rows) + release.steps**2 / 12
        reader = release.prior.condition(release.design.inputs, release.outputs, blur)
        across = np.diag(reader.covariance(first.view.about(times), second.view.about(times)))
        result[:, 0, 1] = result[:, 1, 0] = across
    return result


def _ellipses(centres: Array, covariances: Array) -> list[Array]:
    turns = np.linspace(0.0, 2 * np.pi, ROUND)
    circle = PLANE * np.stack([np.cos(turns), np.sin(turns)])
    values, vectors = np.linalg.eigh(covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return [centre + (root @ circle).T for centre, root in zip(centres, roots, strict=True)]


def _in_plane(points: Array, polar: bool) -> Array:
    """Polar axes take the angle first."""
    return points[:, ::-1] if polar else points


def _draw_published(ax: Axes, first: _Coordinate, second: _Coordinate, polar: bool) -> Array:
    """Values that were published of both outputs at the same input."""
    at, values = first.release.rows_of(first.view.name)
    others = dict(zip(*(part.ravel().tolist() for part in second.release.rows_of(second.view.name)), strict=True))
    pairs = [(value, others[time]) for time, value in zip(at.ravel().tolist(), values, strict=True) if time in others]
    if pairs:
        style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.2, "markeredgewidth": 0.5}
        shown = _in_plane(np.array(pairs), polar)
        ax.plot(*shown.T, color="0.35", markeredgecolor="white", zorder=5, **style)
    return np.array(pairs, dtype=np.float64).reshape(-1, 2)


def _finish(ax: Axes, labels: tuple[str, str], polar: bool, reached: Array) -> None:
    across, up = labels
    low, high = np.nanmin(reached, axis=0), np.nanmax(reached, axis=0)
    margin = 0.05 * (high - low)
    if not polar:
        name_axes(ax, across, up)
        ax.set_xlim(low[0] - margin[0], high[0] + margin[0])
        ax.set_ylim(low[1] - margin[1], high[1] + margin[1])
        plain_axes(ax, "both")
        ax.ticklabel_format(useOffset=False)
        return
    # a ring: what matters is how the radius differs, not how large it is
    ax.set_ylim(low[0] - margin[0], high[0] + margin[0])
    if low[0] > 0.5 * high[0]:
        ax.set_rorigin(low[0] - 1.6 * (high[0] - low[0]))  # type: ignore[attr-defined]
    # radii one above the other, on white: anywhere else they would lie on top of each other
    ax.set_rlabel_position(90.0)  # type: ignore[attr-defined]
    ticks = [tick for tick in MaxNLocator(3).tick_values(low[0], high[0]) if low[0] <= tick <= high[0]]
    ax.set_yticks(ticks, [f"{tick:.6g}" for tick in ticks])
    for text in ax.get_yticklabels():
        text.set(backgroundcolor="white", fontsize=SMALL - 1, ha="center", va="center", zorder=9)
    ax.tick_params(axis="x", labelsize=SMALL)
    ax.grid(True, color="0.88", linewidth=0.6)


def _legend(ax: Axes, inside: Mask, truth: bool, title: str) -> None:
    handles: list[Any] = [Line2D([], [], color=READER, linewidth=1.7, label="reader's path")]
    if inside.any():
        handles.append(Line2D([], [], color=PUBLISHED, linewidth=1.7, label="reader's path in the region"))
    handles.append(Patch(facecolor="0.85", edgecolor="0.6", label="95 % of the reader"))
    handles.append(Line2D([], [], color="0.35", marker="o", markersize=3.6, linestyle="none", label="published"))
    if truth:
        handles.append(Line2D([], [], color=TRUTH, linewidth=1.2, linestyle=DASHED, label="truth (the owner's)"))
    how: dict[str, Any] = {"bbox_to_anchor": (0.0, 1.06)} if title else {}
    legend_above(ax, 3, handles=handles, title=title_over(ax, title), **TITLED, **how)
