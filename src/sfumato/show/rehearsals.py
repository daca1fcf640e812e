"""The picture of a rehearsal: what was hidden, what the prior claims of it, and what the best rival made of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ..evaluate import number, short
from .view import (
    BAND,
    FLOOR,
    NARROW,
    PUBLISHED,
    READER,
    REGION,
    SLIVER,
    SMALL,
    TRUTH,
    WIDE,
    axes_beside,
    dates_of,
    draw_band,
    legend_above,
    name_axes,
    new_axes,
    plain_axes,
    show_dates,
    shows_names,
    value_axes,
)

if TYPE_CHECKING:
    from ..evaluate import Rehearsal, Stage

#: Nothing is drawn further left than this: a thousandth of the floor is nothing.
_LEAST = 1e-3

#: Rivals that are drawn, the nearest first.
_MOST = 12


@shows_names
def plot_rehearsal(rehearsal: Rehearsal, ax: Axes | None = None) -> Axes:
    """The look-alikes on the data, with the band that the prior claims and what the nearest rival predicted.

    Where there are several inputs, the errors of all rivals as bars, in multiples of the floor.
    """
    stage = rehearsal.stage
    if stage is None or stage.rows.X.shape[1] > 1:
        return _bars(rehearsal, new_axes(ax, 7.2, 4.4))
    window = _sliver(stage)
    ax = new_axes(ax, WIDE if window else NARROW, 4.2)
    _draw_stage(ax, rehearsal, stage)
    _floor_bar(ax, rehearsal, stage)
    show_dates(ax.xaxis, dates_of(stage.encoding, 0))
    name_axes(ax, stage.names[0])
    if window and (beside := axes_beside(ax)):
        _draw_stage(beside, rehearsal, stage)
        _show_only(beside, stage, *window)
        show_dates(beside.xaxis, dates_of(stage.encoding, 0))
        name_axes(beside, f"{stage.names[0]}, one look-alike enlarged")
    legend_above(ax, 3)
    return ax


def _sliver(stage: Stage) -> tuple[float, float] | None:
    """What to enlarge where the region is a sliver: a look-alike in the middle, and as much on either side of it."""
    x = stage.rows.X[:, 0]
    wide = float(np.sum(np.clip(stage.upper[:, 0], x.min(), x.max()) - np.clip(stage.lower[:, 0], x.min(), x.max())))
    if not wide < SLIVER * float(np.ptp(x)):
        return None
    middle = (x.min() + x.max()) / 2.0
    hidden = x[min(stage.rows.hidden, key=lambda own: abs(float(np.mean(x[own])) - middle))]
    width = float(np.ptp(hidden))
    return (float(hidden.min()) - width, float(hidden.max()) + width) if width > 0.0 else None


def _show_only(ax: Axes, stage: Stage, low: float, high: float) -> None:
    """Cut the axes to what lies between, with as much height as rows and claims take there."""
    x, rows = stage.rows.X[:, 0], stage.rows
    every, spread = np.concatenate(rows.hidden), BAND * stage.claims.stds
    near, claimed = (x >= low) & (x <= high), (x[every] >= low) & (x[every] <= high)
    values = [*rows.y[near], *(stage.claims.means - spread)[claimed], *(stage.claims.means + spread)[claimed]]
    margin = 0.05 * float(np.ptp(values))
    ax.set(xlim=(low, high), ylim=(min(values) - margin, max(values) + margin))


def _draw_stage(ax: Axes, rehearsal: Rehearsal, stage: Stage) -> None:
    """The rows, what the prior claims of those that were hidden, and what the nearest rival made of them."""
    rows, claims, x = stage.rows, stage.claims, stage.rows.X[:, 0]
    best = next(one.name for one in rehearsal.results if one.name in stage.predictions)
    for place, (low, high) in enumerate(zip(stage.lower[:, 0], stage.upper[:, 0], strict=True)):
        ax.axvspan(low, high, color=REGION, linewidth=0, zorder=0, label="" if place else "region: not looked at")
    start = 0
    for turn, hidden in enumerate(rows.hidden):
        own = slice(start, start + len(hidden))
        start += len(hidden)
        along = np.argsort(x[hidden])
        at, mean, std = x[hidden][along], claims.means[own][along], claims.stds[own][along]
        draw_band(ax, at, mean - BAND * std, mean + BAND * std, "" if turn else "95 % band that the prior claims")
        ax.plot(at, mean, color=READER, linewidth=1.0, zorder=2)
        rival = stage.predictions[best][own][along]
        ax.plot(at, rival, color=PUBLISHED, linewidth=1.8, zorder=4, label="" if turn else f"rival: {best}")
    unseen = np.zeros(len(x), dtype=np.bool_)
    unseen[rows.every] = True
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "zorder": 3}
    ax.plot(x[~unseen], rows.y[~unseen], color="0.65", markersize=2.2, label="other rows", **dots)
    ax.plot(x[unseen], rows.y[unseen], color=TRUTH, markersize=2.6, label="hidden in turn", **dots)
    value_axes(ax)


def _floor_bar(ax: Axes, rehearsal: Rehearsal, stage: Stage) -> None:
    """The floor on both sides of the middle of the region, where the rows beside it are."""
    x, y = stage.rows.X[:, 0], stage.rows.y
    middle = float((np.max(stage.lower[0]) + np.min(stage.upper[0])) / 2.0)
    near = np.argsort(np.abs(x - middle))[: max(2, len(x) // 20)]
    how: dict[str, Any] = {
        "fmt": "none",
        "ecolor": FLOOR,
        "elinewidth": 2.0,
        "capsize": 5,
        "capthick": 2.0,
        "zorder": 3,
    }
    said = f"the floor, ± {short(rehearsal.floor)}"
    ax.errorbar([middle], [float(np.mean(y[near]))], yerr=[rehearsal.floor], label=said, **how)


def _bars(rehearsal: Rehearsal, ax: Axes) -> Axes:
    """The error of each rival in multiples of the floor, beside what the prior claims."""
    shown = sorted(rehearsal.results[:_MOST], key=lambda one: -max(one.error, one.least))
    widths = [max(max(one.error, one.least) / one.floor, _LEAST) for one in shown]
    sure = [one.sure for one in shown]
    places = np.arange(len(shown))
    left = min([_LEAST * 10, *(0.7 * width for width in widths)])
    for colour, label, wanted in ((PUBLISHED, "nearer than claimed, beyond chance", True), ("0.65", "", False)):
        own = [place for place in places if sure[place] is wanted]
        if own:
            ax.barh(own, [widths[place] - left for place in own], left=left, height=0.62, color=colour, label=label)
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    for place, (one, width) in enumerate(zip(shown, widths, strict=True)):
        bound = f"< {short(one.least)}" if one.error < one.least else short(one.error)
        ax.text(width * 1.06, place, bound, va="center", fontsize=SMALL, bbox=paper, zorder=5)
    if not math.isnan(rehearsal.claimed):
        said = f"the prior claims {short(rehearsal.claimed)}"
        ax.axvline(rehearsal.claimed / rehearsal.floor, color=READER, linewidth=1.6, label=said)
        ax.axvline(1.0, color=FLOOR, linewidth=1.6, linestyle=(0, (5, 2)), label=f"floor {short(rehearsal.floor)}")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.set_yticks(places, [one.name for one in shown])
    ax.set(xlabel="error at look-alikes, in multiples of the floor")
    plain_axes(ax, "x")
    legend_above(ax, 2)
    return ax
