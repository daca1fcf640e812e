"""Pictures of a release over one input: what was published, what readers conclude, and what they cannot know.

Those of other kinds (maps, slices, paths, ledgers, comparisons) have files of their own and are all found here.
Every function draws on the axes it is given, or on a new figure of its own, and returns the axes; pyplot's global
state is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from ..arrays import Array
from ..data import as_outputs
from ..errors import InputError
from ..release import Prediction, Release
from .style import BAND, FLOOR, PUBLISHED, READER, REGION, TRUTH

GRID_POINTS = 601


@dataclass(frozen=True, eq=False)
class _View:
    """A release over one input, or one of its outputs (``of``) where it has several."""

    release: Release
    of: str | None

    def __post_init__(self) -> None:
        rows = self.release.design.inputs
        rows.outputs.number(self.of, "of")
        if rows.features != 1:
            raise InputError(
                f"the release has {rows.features} inputs ({', '.join(rows.plain.names)}); "
                "this picture is for one. Use plot_std_map (two inputs), plot_floor_along or plot_slices."
            )

    @property
    def name(self) -> str:
        return self.release.design.inputs.outputs.names[self.number]

    @property
    def published(self) -> tuple[Array, Array]:
        """Inputs and published values."""
        return self.release.rows_of(self.name)

    @cached_property
    def sensitive(self) -> Array:
        """The sensitive inputs."""
        points = self.release.design.sensitive
        return np.asarray(points[self.release.design.inputs.outputs.numbers(points) == self.number])

    @cached_property
    def grid(self) -> Array:
        # Sensitive inputs may lie beyond the data; they are where the promise is tight, so the grid goes through them.
        known = np.concatenate([self.release.inputs[:, 0], self.sensitive[:, 0]])
        at = np.union1d(np.linspace(known.min(), known.max(), GRID_POINTS), known).reshape(-1, 1)
        return self.release.design.inputs.outputs.rows(at, self.number)

    @property
    def number(self) -> int:
        """The number of the output."""
        return self.release.design.inputs.outputs.number(self.of, "of")

    def seen(self) -> Prediction:
        """What readers conclude on the grid."""
        return self.release.predict(self.grid[:, :1], self.of)


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
    view = _View(release, of)
    grid = view.grid
    at = grid[:, 0]
    ax = _axes(ax)
    _shade_region(ax, release, grid)
    seen = view.seen()
    ax.fill_between(
        at,
        seen.mean - BAND * seen.std,
        seen.mean + BAND * seen.std,
        color=READER,
        alpha=0.22,
        linewidth=0,
        label="reader's 95 % band",
    )
    ax.plot(at, seen.mean, color=READER, linewidth=1.6, label="reader's mean")
    if truth is not None:
        where = np.asarray(truth[0], dtype=np.float64).reshape(-1)
        ax.plot(
            where,
            as_outputs(truth[1], where.size, "truth"),
            color=TRUTH,
            linewidth=1.3,
            linestyle=(0, (4, 1.5)),
            label="truth (secret in the region)",
        )
    where, values = view.published
    ax.plot(
        where[:, 0],
        values,
        linestyle="none",
        marker="o",
        markersize=3.6,
        markerfacecolor=PUBLISHED,
        markeredgecolor="white",
        markeredgewidth=0.5,
        label="published",
    )
    return _finish(ax, release, label or view.name)


def plot_floor(release: Release, ax: Axes | None = None, label: str | None = None, of: str | None = None) -> Axes:
    """The reader's standard deviation against the promised floor, with the worst input of the region marked.

    ``of`` is the output to draw, where there are several.
    """
    view = _View(release, of)
    grid = view.grid
    at = grid[:, 0]
    ax = _axes(ax)
    _shade_region(ax, release, grid)
    ax.plot(
        at,
        np.sqrt(release.prior.variance(grid)),
        color="0.45",
        linewidth=1.0,
        linestyle=":",
        label="knows only the prior",
    )
    ax.plot(at, view.seen().std, color=READER, linewidth=1.6, label="reader's standard deviation")
    _draw_floor(ax, view)
    worst = release.certificate
    here = release.design.inputs.outputs.numbers(worst.worst_input[None])[0] == view.number
    if here and np.isfinite(worst.worst_std):
        ax.plot(
            np.ravel(worst.worst_input)[:1],
            [worst.worst_std],
            linestyle="none",
            marker="v",
            markersize=7,
            markerfacecolor=PUBLISHED,
            markeredgecolor="black",
            markeredgewidth=0.6,
            label=f"worst input: {worst.floor_ratio:.4f} × floor",
            zorder=5,
        )
    ax.set_ylim(bottom=0.0)
    top = ax.get_ylim()[1]
    ax.set_ylim(0.0, 1.08 * top)
    return _finish(ax, release, label or f"std of {view.name}")


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


def _axes(ax: Axes | None) -> Axes:
    return ax if ax is not None else Figure(figsize=(7.2, 3.8), layout="constrained").subplots()


def _shade_region(ax: Axes, release: Release, grid: Array) -> None:
    inside = release.region.contains(grid)
    if not inside.any():
        return
    ax.fill_between(
        grid[:, 0],
        0,
        1,
        where=inside,
        transform=ax.get_xaxis_transform(),
        color=REGION,
        linewidth=0,
        label=f"region: {release.region.in_words(release.columns)}",
        zorder=0,
    )


def _draw_floor(ax: Axes, view: _View) -> None:
    release, grid = view.release, view.grid
    inside = release.region.contains(grid)
    # Between the rows of cover="rows" nothing is promised, and a matrix or a table knows its own points only.
    everywhere = release.design.cover in ("greedy", "exchange", "everywhere")
    try:
        if not everywhere or inside.sum() < 2:
            raise InputError("promised at single inputs")
        floor = np.full(grid.shape[0], np.nan)
        floor[inside] = release.tolerance.floor(release.prior, grid[inside])
        ax.fill_between(grid[:, 0], 0, floor, color=FLOOR, alpha=0.25, linewidth=0, label="no reader gets here")
        ax.plot(grid[:, 0], floor, color=FLOOR, linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor")
    except InputError:
        points = view.sensitive
        if not len(points):
            return
        floor = release.tolerance.floor(release.prior, points)
        ax.plot(points[:, 0], floor, color=FLOOR, linestyle="none", marker="_", markersize=9, label="promised floor")


def _finish(ax: Axes, release: Release, label: str) -> Axes:
    ax.set_xlabel(release.columns[0])
    ax.set_ylabel(label)
    ax.margins(x=0.015)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    # 1.0525 can be read; 5e-4 + 1.052 cannot.
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    ax.grid(True, axis="y", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncol=3,
        frameon=False,
        fontsize=8.5,
        borderaxespad=0.2,
        handlelength=2.2,
    )
    return ax
