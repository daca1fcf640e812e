"""A picture of an audit: what each adversary knows, in multiples of the floor that was promised."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter

from ..evaluate import OWNER_ONLY, Audit, Outcome, number, share
from .style import FLOOR, PUBLISHED, PURPLE, READER, SMALL, TRUTH, legend_above, new_axes, plain_axes

if TYPE_CHECKING:
    from ..evaluate import Line, Tradeoff
    from ..ledger import Remaining


# A picture of a ledger: how much of its promises each release has used.

# Okabe and Ito's palette, told apart with any colour vision, and in grey by lightness.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")
SPENT, LIMIT = "#D55E00", "#000000"


def plot_history(remaining: Remaining, ax: Axes | None = None) -> Axes:
    """The share of each promise that was used after each release; above 100 % it is broken."""
    if ax is None:
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        ax = figure.subplots()
    count = max(len(one.history) for one in remaining.promises)
    width = 0.8 / len(remaining.promises)
    for place, one in enumerate(remaining.promises):
        at = np.arange(1, len(one.history) + 1) + (place - (len(remaining.promises) - 1) / 2) * width
        used = np.array(one.history)
        before = np.concatenate([[0.0], used[:-1]])
        colour = COLOURS[place % len(COLOURS)]
        label = f"{one.promise.design.region.in_words(one.promise.design.inputs.names)}: {one.left:.1%} left"
        ax.bar(at, before, width=0.9 * width, color=colour, alpha=0.35, linewidth=0)
        ax.bar(at, used - before, bottom=before, width=0.9 * width, color=colour, linewidth=0, label=label)
    ax.axhline(1.0, color=LIMIT, linewidth=1.2, linestyle=(0, (5, 2)), label="all that was promised")
    top = max(1.15, 1.1 * max(max(one.history, default=0.0) for one in remaining.promises))
    ax.axhspan(1.0, top, color=SPENT, alpha=0.10, linewidth=0)
    ax.set_ylim(0.0, top)
    ax.set_xlim(0.4, count + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlabel("release")
    ax.set_ylabel("of the tolerance used")
    ax.spines[["top", "right"]].set_visible(False)
    ax.text(count + 0.55, 1.02, "broken", color=SPENT, fontsize="small", ha="right", va="bottom")
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize="small")
    return ax


# A picture of a comparison: what readers lose elsewhere, against what they may learn in the region.

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


_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)

_TICK: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 11, "markeredgewidth": 2.0}
_RING: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 9,
    "markeredgewidth": 1.4,
    "markerfacecolor": "white",
}
_DOT: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
_TRIANGLE: dict[str, Any] = {"linestyle": "none", "marker": "<", "markersize": 6}

#: Height of a line and of what is above and below the lines, in inches.
_LINE, _MARGINS = 0.30, 1.75

#: Nothing is drawn further left than this: knowing f a hundred times better than promised is knowing it.
_LEAST = 0.01


def plot_audit(audit: Audit, ax: Axes | None = None) -> Figure:
    """One line for each adversary, those that the promise covers above; left of the line at 1 is below the floor.

    It was made with the truth: it is for the owner, not for publication.
    """
    covered = [outcome for outcome in audit.outcomes if outcome.covered]
    others = [outcome for outcome in audit.outcomes if not outcome.covered]
    lines = len(audit.outcomes) + 1.3
    if ax is None:
        size = (7.6, _LINE * lines + _MARGINS)
        ax = Figure(figsize=size, layout="constrained").subplots()
    places = [*range(len(covered)), *(len(covered) + 1.3 + i for i in range(len(others)))]
    shown = [*covered, *others]
    for place, outcome in zip(places, shown, strict=True):
        _draw(ax, place, outcome)
    _finish_audit(ax, audit, places, shown)
    _legend(ax)
    if others:
        _heading(ax, len(covered) + 0.5, "not covered by the promise: they know more")
    _heading(ax, -0.85, "covered by the promise: they know the release")
    figure = ax.figure
    assert isinstance(figure, Figure)
    return figure


def _draw(ax: Axes, place: float, outcome: Outcome) -> None:
    """Expected (dot), claimed (ring), on these data (tick) and at the worst input (triangle), joined by a line."""
    expected, claimed, here, worst = _multiples(outcome)
    values = [expected, claimed, here, *([worst] if outcome.beaten else [])]
    ax.plot([min(values), max(values)], [place, place], color="0.75", linewidth=1.2, zorder=2)
    colour = PUBLISHED if outcome.beaten else READER
    ax.plot(here, place, **_TICK, color=PUBLISHED if outcome.closer else TRUTH, zorder=5)
    ax.plot(claimed, place, **_RING, markeredgecolor=colour, zorder=3)
    ax.plot(expected, place, **_DOT, color=colour, zorder=4)
    if outcome.beaten:
        ax.plot(worst, place, **_TRIANGLE, color=PUBLISHED, zorder=4)


def _multiples(outcome: Outcome) -> tuple[float, float, float, float]:
    """The errors in multiples of the floor, as far left as is drawn."""
    whole = (outcome.actual / outcome.floor, outcome.claimed / outcome.floor, outcome.rmse / outcome.floor)
    expected, claimed, here, worst = (max(value, _LEAST) for value in (*whole, outcome.ratio))
    return expected, claimed, here, worst


def _legend(ax: Axes) -> None:
    nowhere: list[float] = []
    ax.plot(nowhere, nowhere, **_DOT, color=READER, label="expected error")
    ax.plot(nowhere, nowhere, **_TRIANGLE, color=PUBLISHED, label="the same at the worst input")
    ax.plot(nowhere, nowhere, **_RING, markeredgecolor="0.3", label="error it claims")
    ax.plot(nowhere, nowhere, **_TICK, color=TRUTH, label="error on these data")
    handles, labels = ax.get_legend_handles_labels()
    handles.append(Patch(color=PUBLISHED))
    labels.append("below the floor")
    figure = ax.figure
    assert isinstance(figure, Figure)
    how = {"ncol": 5, "frameon": False, "fontsize": 8.5, "handletextpad": 0.3, "columnspacing": 1.2}
    figure.legend(handles, labels, loc="outside lower center", **how)


def _finish_audit(ax: Axes, audit: Audit, places: list[float], shown: list[Outcome]) -> None:
    ax.set_xscale("log")
    reached = [value for outcome in shown for value in _multiples(outcome)[: 4 if outcome.beaten else 3]]
    left = max(_LEAST, min([0.5, *reached])) * 0.85
    ax.set_xlim(left, max([1.6, *reached]) * 1.2)
    ax.set_ylim(max(places) + 0.7, -1.3)
    ax.axvspan(left, 1.0, color=PUBLISHED, alpha=0.10, linewidth=0, zorder=0)
    ax.axvline(1.0, color=FLOOR, linewidth=2.0, zorder=1)
    ax.text(
        0.985,
        -1.38,
        "below the floor ",
        color="#00664B",
        fontsize=8.5,
        ha="right",
        va="bottom",
    )
    ax.text(1.015, -1.38, " promised", color="#00664B", fontsize=8.5, ha="left", va="bottom")
    ax.set_yticks(places, [outcome.name for outcome in shown])
    for label, outcome in zip(ax.get_yticklabels(), shown, strict=True):
        label.set_fontweight("bold" if outcome.below else "normal")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(FixedLocator(_TICKS))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel(f"error of what it concludes about {audit.output}, in multiples of the promised floor")
    ax.set_title(f"What adversaries achieve.  {OWNER_ONLY}", fontsize=9.5, loc="left", pad=20)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.grid(True, axis="x", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)


def _heading(ax: Axes, place: float, text: str) -> None:
    ax.text(
        0.005, place, text, transform=ax.get_yaxis_transform(), fontsize=8.5, style="italic", color="0.25", va="center"
    )
