"""A picture of a comparison: what readers lose elsewhere, against what they may learn in the region."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from .plot_style import FLOOR, PUBLISHED, PURPLE, READER, SMALL, TRUTH, legend_above, new_axes, plain_axes
from .tradeoff_words import number, share

if TYPE_CHECKING:
    from .tradeoff_result import Line, Tradeoff

#: Colour, marker and line of each way: told apart in grey too.
STYLES: dict[str, tuple[str, str, Any]] = {
    "joint": (READER, "o", "-"),
    "pointwise": (FLOOR, "s", (0, (5, 2))),
    "diagonal": (PUBLISHED, "^", (0, (1.5, 1.2))),
    "cloaking": (PURPLE, "D", (0, (4, 1.5, 1, 1.5))),
    "dropout": (TRUTH, "X", ":"),
}
LABELS = {
    "joint": "joint promise",
    "pointwise": "pointwise promise",
    "diagonal": "independent noise",
    "cloaking": "DP cloaking, to the same floor",
}


def plot_tradeoff(found: Tradeoff, ax: Axes | None = None) -> Axes:
    """The loss of accuracy elsewhere against the level, a curve for each way; leaving rows out is a single cross.

    Levels are α, with the floor in the owner's units above, or floors where these were asked for. Lower is better.
    """
    ax = new_axes(ax, 7.2, 4.4)
    for way in found.ways:
        lines = found.of(way)
        colour, marker, style = STYLES[way]
        if way == "dropout":
            line = lines[0]
            place = line.least_std if found.by_floor else line.learnt
            label = f"rows left out: no promise, readers learn {share(line.learnt)}"
            ax.axhline(line.loss, color=colour, linewidth=0.9, linestyle=style, zorder=1)
            ax.plot(
                place,
                line.loss,
                marker=marker,
                markersize=8,
                color=colour,
                linestyle="none",
                label=label,
                zorder=4,
                clip_on=False,
            )
            continue
        at = np.array([line.floor if found.by_floor else line.alpha for line in lines])
        losses = np.array([line.loss for line in lines])
        how: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5.5, "clip_on": False}
        ax.plot(at, losses, linestyle=style, linewidth=1.8, label=LABELS[way], zorder=3, **how)
        fails = np.array([line.holds is False for line in lines])
        if fails.any():
            how |= {"markerfacecolor": "white", "linestyle": "none", "zorder": 4}
            ax.plot(at[fails], losses[fails], label=f"{LABELS[way]}: certificate fails", **how)
    _finish(ax, found)
    return ax


def _finish(ax: Axes, found: Tradeoff) -> None:
    plain_axes(ax)
    top = max([line.loss for line in found.rows if math.isfinite(line.loss)], default=0.0)
    ax.set_ylim(0.0, 1.08 * top if top > 0 else 1.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.set_ylabel("loss of accuracy elsewhere")
    if found.by_floor:
        ax.set_xlabel(_wrapped(f"floor: the std of {found.output} that readers keep in {found.region}"))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    else:
        ax.set_xlim(0.0, 1.0)
        ax.set_xlabel(_wrapped(f"α: share of the variance of {found.output} that may be learnt in {found.region}"))
        _floors_above(ax, found)
    legend_above(ax, 2, bbox_to_anchor=(0.0, 1.0 if found.by_floor else 1.16))


def _floors_above(ax: Axes, found: Tradeoff) -> None:
    """A second scale with the floor that belongs to each level."""
    lines = _distinct([line for line in found.rows if math.isfinite(line.alpha)])
    if not lines:
        return
    above = ax.secondary_xaxis("top")
    shown = _apart(lines)
    above.set_xticks([line.alpha for line in shown], [f"±{number(_rounded(line.floor))}" for line in shown])
    above.tick_params(labelsize=SMALL)
    above.set_xlabel(f"floor: readers know {found.output} no better", fontsize=SMALL)
    above.spines["top"].set_visible(False)


def _wrapped(label: str) -> str:
    return textwrap.fill(label, 78)


def _distinct(lines: list[Line]) -> list[Line]:
    return list({line.alpha: line for line in sorted(lines, key=lambda line: line.alpha)}.values())


def _apart(lines: list[Line]) -> list[Line]:
    """Those whose labels do not touch."""
    shown = [lines[0]]
    for line in lines[1:]:
        if line.alpha - shown[-1].alpha >= 0.12:
            shown.append(line)
    return shown


def _rounded(value: float) -> float:
    """To three digits, for a label."""
    return float(f"{value:.3g}")
