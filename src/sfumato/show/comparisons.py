"""Pictures of comparisons: what releases use of their promises, what levels cost, what adversaries know."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, PercentFormatter

from ..evaluate import OBJECTIVES, Audit, Outcome, number, other_objective, share, short
from ..files import OWNER_ONLY
from ..text import name_and_unit, shown
from .view import (
    FLOOR,
    LETTER,
    ORANGE,
    PUBLISHED,
    PURPLE,
    READER,
    SKY,
    SMALL,
    TRUTH,
    YELLOW,
    inches,
    legend_above,
    legend_of_figure,
    name_axes,
    new_axes,
    plain_axes,
    shows_names,
    wrapped,
)

if TYPE_CHECKING:
    from ..evaluate import Suggestion, Tradeoff
    from ..ledger import Remaining


#: Colours of the promises of a ledger, one after the other.
PROMISES = (READER, ORANGE, FLOOR, PURPLE, SKY, YELLOW)

#: Colour, marker and line of each way of a trade-off: told apart in grey too.
STYLES: dict[str, tuple[str, str, Any]] = {
    "joint": (READER, "o", "-"),
    "predictions": (READER, "*", (0, (3, 1))),
    "function": (ORANGE, "v", "-"),
    "records": (FLOOR, "s", "-"),
    "pointwise": (SKY, "P", (0, (5, 2))),
    "diagonal": (PUBLISHED, "^", (0, (1.5, 1.2))),
    "cloaking": (PURPLE, "D", (0, (4, 1.5, 1, 1.5))),
    "dropout": (TRUTH, "X", ":"),
}
LABELS = {
    "joint": "function and records",
    "predictions": "function and records, best predictions",
    "function": "function only",
    "records": "records only",
    "pointwise": "both, each value by itself",
    "diagonal": "both, by independent noise",
    "cloaking": "DP cloaking, to the same floor",
}

#: The three promises are drawn wider than other ways, and the best predictions in the colour of their promise; two that
#: cost the same lie over each other.
WIDTHS = {"joint": 5.0, "predictions": 2.2, "function": 1.8, "records": 2.6}

#: Levels of a trade-off that are nearer than this have no floor each above them: their labels would touch.
APART = 0.12

#: What an audit draws of an adversary.
_EXPECTED: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
_WORST: dict[str, Any] = {"linestyle": "none", "marker": "<", "markersize": 6}
_HERE: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 11, "markeredgewidth": 2.0}
_CLAIMED: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 9, "markerfacecolor": "white"}
_CLAIMED |= {"markeredgewidth": 1.4}
_FURTHER: dict[str, Any] = {"linestyle": "none", "marker": 8, "markersize": 5, "color": TRUTH}

#: Of an audit: height of a line, and of what is above and below the lines, in inches.
_LINE, _MARGINS = 0.30, 1.95

#: Nothing is drawn further left than this: knowing f a hundred times better than promised is knowing it.
_LEAST = 0.01

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


@shows_names
def plot_history(remaining: Remaining, ax: Axes | None = None) -> Axes:
    """The share of each promise that was used after each release; above 100 % it is broken."""
    ax = new_axes(ax, 6.4, 3.8)
    count = max(len(one.history) for one in remaining.promises)
    width = 0.8 / len(remaining.promises)
    for place, one in enumerate(remaining.promises):
        at = np.arange(1, len(one.history) + 1) + (place - (len(remaining.promises) - 1) / 2) * width
        used = np.array(one.history)
        before = np.concatenate([[0.0], used[:-1]])
        colour = PROMISES[place % len(PROMISES)]
        label = f"{one.promise.design.region.in_words(one.promise.design.inputs.names)}: {one.left:.1%} left"
        ax.bar(at, before, width=0.9 * width, color=colour, alpha=0.35, linewidth=0)
        ax.bar(at, used - before, bottom=before, width=0.9 * width, color=colour, linewidth=0, label=label)
    ax.axhline(1.0, color=TRUTH, linewidth=1.2, linestyle=(0, (5, 2)), label="all that was promised")
    top = max(1.15, 1.1 * max(max(one.history, default=0.0) for one in remaining.promises))
    ax.axhspan(1.0, top, color=PUBLISHED, alpha=0.10, linewidth=0)
    ax.set_ylim(0.0, top)
    ax.set_xlim(0.4, count + 0.6)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set(xlabel="release", ylabel="of the tolerance used")
    ax.spines[["top", "right"]].set_visible(False)
    ax.text(count + 0.55, 1.02, "broken", color=PUBLISHED, fontsize="small", ha="right", va="bottom")
    legend_above(ax, 2)
    return ax


@shows_names
def plot_tradeoff(found: Tradeoff, ax: Axes | None = None) -> Axes:
    """The loss of accuracy outside against the level, a curve for each way; leaving rows out is a single cross.

    Levels are α, with the floor in the owner's units above, or floors where these were asked for. Lower is better.
    """
    ax = new_axes(ax, 7.2, 4.4)
    for way in found.ways:
        lines = found.of(way)
        colour, marker, style = STYLES[way]
        how: dict[str, Any] = {"color": colour, "marker": marker, "clip_on": False}
        if way == "dropout":
            (line,) = lines
            label = f"rows left out: no promise, readers learn {share(line.learnt)}"
            ax.axhline(line.loss, color=colour, linewidth=0.9, linestyle=style, zorder=1)
            place = line.least_std if found.by_floor else line.learnt
            ax.plot(place, line.loss, markersize=8, linestyle="none", label=label, zorder=4, **how)
            continue
        wide = WIDTHS.get(way, 1.2)
        how["markersize"] = 4.5 + wide / 2
        at = np.array([line.floor if found.by_floor else line.alpha for line in lines])
        losses = np.array([line.loss for line in lines])
        ax.plot(at, losses, linestyle=style, linewidth=wide, label=LABELS[way], zorder=3, **how)
        fails = np.array([line.holds is False for line in lines])
        if fails.any():
            how |= {"markerfacecolor": "white", "linestyle": "none", "zorder": 4}
            ax.plot(at[fails], losses[fails], label=f"{LABELS[way]}: certificate fails", **how)
    plain_axes(ax)
    top = max([line.loss for line in found.rows if math.isfinite(line.loss)], default=0.0)
    ax.set_ylim(0.0, 1.08 * top if top > 0 else 1.0)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    ax.set_ylabel("loss of accuracy outside")
    _errors_beside(ax, found)
    if found.by_floor:
        words = f"floor: the std of {found.output} that readers keep in {found.region}"
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    else:
        words = f"α: share of the variance of {found.output} that may be learnt in {found.region}"
        ax.set_xlim(0.0, 1.0)
        _floors_above(ax, found)
    name_axes(ax, words)
    legend_above(ax, 2, bbox_to_anchor=(0.0, 1.0 if found.by_floor else 1.16))
    return ax


def _errors_beside(ax: Axes, found: Tradeoff) -> None:
    """A second scale with readers' error outside, in the units of the output, that belongs to each loss."""
    widest, least = found.prior_rmse**2, found.everything.rmse_outside**2
    if not widest > least:
        return

    def error(loss: Any) -> Any:
        return np.sqrt(np.maximum(least + loss * (widest - least), 0.0))

    def loss(error: Any) -> Any:
        return (np.maximum(error, 0.0) ** 2 - least) / (widest - least)

    beside = ax.secondary_yaxis("right", functions=(error, loss))
    beside.yaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    beside.tick_params(labelsize=SMALL)
    beside.set_ylabel(f"error outside{f' ({shown(found.unit.strip())})' if found.unit else ''}", fontsize=SMALL)
    beside.spines["right"].set_visible(False)


@shows_names
def plot_suggestion(found: Suggestion, ax: Axes | None = None) -> Axes:
    """What each promise costs against its floor, a curve each; stars mark what is suggested, a line what is allowed.

    Stars that are not filled are of the other objective, at the same level. The cost is noise or the error outside
    where these were asked about, else the loss of accuracy there. Lower and further right is better.
    """
    ax = new_axes(ax, 7.2, 4.2)
    word, value = found.asked
    name, unit = name_and_unit(shown(found.output))
    cost = {"max_noise": "noise", "max_error": "rmse_outside"}.get(word, "loss")
    costs, places, other = [], [], []
    for option in found.options:
        if not option.curve:
            continue
        colour, marker, style = STYLES["joint" if option.protects == "both" else option.protects]
        floors, own = ([getattr(line, field) for line in option.curve] for field in ("floor", cost))
        costs += own
        places += floors
        label = f"{option.protects}: {f'±{short(option.floor)}{unit}' if option.affordable else 'too dear'}"
        # a curve that lies on another is narrower
        width = {"both": 3.6, "records": 2.4, "function": 1.2}[option.protects]
        size: dict[str, Any] = {"linewidth": width, "markersize": 2.5 + width}
        ax.plot(floors, own, color=colour, linestyle=style, marker=marker, label=label, **size)
        if option.affordable:
            at = own[floors.index(option.floor)]
            how: dict[str, Any] = {"marker": "*", "markersize": 12 + 2 * width, "markeredgecolor": "white", "zorder": 5}
            ax.plot(option.floor, at, color=colour, linestyle="none", clip_on=False, **how)
            if option.other is not None:
                how |= {"markerfacecolor": "white", "markeredgecolor": colour, "markersize": 9 + width}
                other.append(ax.plot(option.floor, getattr(option.other, cost), linestyle="none", **how)[0])
    if other:
        other[0].set_label(f"the same with the {OBJECTIVES[other_objective(found.options[0].objective)]}")
    plain_axes(ax)
    ax.set_ylim(0.0, None)
    ax.set_xlim(0.0, None)
    if not found.is_level:
        ax.axhline(value, color=TRUTH, linewidth=0.9, linestyle="--", zorder=1)
        allowed = f"at most {share(value) if cost == 'loss' else f'{number(value)}{unit}'}"
        behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
        how = {"ha": "left", "va": "bottom", "fontsize": SMALL, "color": TRUTH, "bbox": behind}
        ax.annotate(allowed, (0.0, value), (4, 2), ax.get_yaxis_transform(), "offset points", **how)
        # what costs many times more is of no interest
        most = min(max([*costs, value]) * 1.05, 4.0 * value)
        seen = [place for place, one in zip(places, costs, strict=True) if one <= most]
        ax.set_ylim(0.0, most)
        if len(seen) < len(places) and seen:
            ax.set_xlim(0.0, 1.05 * max(seen))
    of = f" ({unit.strip()})" if unit else ""
    said = {"noise": f"noise a row{of}", "rmse_outside": f"error outside{of}", "loss": "loss of accuracy outside"}[cost]
    told = (lambda at, _: f"{100 * at:g} %") if cost == "loss" else (lambda at, _: number(at))
    ax.yaxis.set_major_formatter(FuncFormatter(told))
    ax.set_ylabel(said)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda at, _: number(at)))
    name_axes(ax, f"floor: the std of {name} that readers keep in {found.region}{of}")
    legend_above(ax, 3)
    return ax


def _floors_above(ax: Axes, found: Tradeoff) -> None:
    """A second scale with the floor that belongs to each level, where labels do not touch."""
    of_function = [line for line in found.rows if line.way != "records"] or found.rows
    floors = {line.alpha: line.floor for line in of_function if math.isfinite(line.alpha)}
    shown: list[float] = []
    for alpha in sorted(floors):
        if not shown or alpha - shown[-1] >= APART:
            shown.append(alpha)
    if shown:
        above = ax.secondary_xaxis("top")
        above.set_xticks(shown, [f"±{number(float(f'{floors[alpha]:.3g}'))}" for alpha in shown])
        above.tick_params(labelsize=SMALL)
        words = f"floor: readers know {found.output} no better"
        above.set_xlabel(wrapped(words, inches(ax)[0] / LETTER, lines=1), fontsize=SMALL)
        above.spines["top"].set_visible(False)


@shows_names
def plot_audit(audit: Audit, ax: Axes | None = None) -> Figure:
    """One line for each adversary, those that the promise covers above; left of the line at 1 is below the floor.

    It was made with the truth: it is for the owner, not for publication.
    """
    covered = [outcome for outcome in audit.outcomes if outcome.covered]
    others = [outcome for outcome in audit.outcomes if not outcome.covered]
    ax = new_axes(ax, 7.6, _LINE * (len(audit.outcomes) + 1.3) + _MARGINS)
    heights = [*range(len(covered)), *(len(covered) + 1.3 + i for i in range(len(others)))]
    lines = dict(zip(heights, [*covered, *others], strict=True))
    for height, outcome in lines.items():
        _draw_adversary(ax, height, outcome)
    _scale_audit(ax, lines)
    headings = {-0.85: "covered by the promise, under its prior"}
    if others:
        headings[len(covered) + 0.5] = "not covered by the promise: they know more"
    for height, text in headings.items():
        how: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "style": "italic", "color": "0.25"}
        ax.text(0.005, height, text, fontsize=SMALL, va="center", **how)
    name_axes(ax, f"error of what it concludes about {audit.output}, in multiples of the promised floor")
    ax.set_title(f"What adversaries achieve.\n{OWNER_ONLY}", fontsize=9.5, loc="left", pad=20)
    figure = ax.figure
    assert isinstance(figure, Figure)
    legend_of_figure(figure, [ax], "lower center", 5, handletextpad=0.3, columnspacing=1.2)
    return figure


def _draw_adversary(ax: Axes, height: float, outcome: Outcome) -> None:
    """Expected (dot), claimed (ring), on these data (tick) and at the worst input (triangle), joined by a line."""
    expected, claimed, here, worst = _multiples(outcome)
    values = [expected, claimed, here, *([worst] if outcome.beaten else [])]
    ax.plot([min(values), max(values)], [height, height], color="0.75", linewidth=1.2, zorder=2)
    colour = PUBLISHED if outcome.beaten else READER
    ax.plot(here, height, **_HERE, color=PUBLISHED if outcome.closer else TRUTH, zorder=5)
    ax.plot(claimed, height, **_CLAIMED, markeredgecolor=colour, zorder=3)
    ax.plot(expected, height, **_EXPECTED, color=colour, zorder=4)
    if outcome.beaten:
        ax.plot(worst, height, **_WORST, color=PUBLISHED, zorder=4)
    if _is_beyond(outcome):
        ax.plot(_LEAST * 0.91, height, **_FURTHER, zorder=6)


def _multiples(outcome: Outcome) -> tuple[float, float, float, float]:
    """The errors in multiples of the floor, as far left as is drawn."""
    whole = (outcome.actual / outcome.floor, outcome.claimed / outcome.floor, outcome.rmse / outcome.floor)
    expected, claimed, here, worst = (max(value, _LEAST) for value in (*whole, outcome.ratio))
    return expected, claimed, here, worst


def _is_beyond(outcome: Outcome) -> bool:
    """Whether something of an adversary is further left than is drawn."""
    least = min(outcome.actual, outcome.claimed, outcome.rmse) / outcome.floor
    return min(least, outcome.ratio if outcome.beaten else least) < _LEAST


def _scale_audit(ax: Axes, lines: dict[float, Outcome]) -> None:
    """Multiples of the floor, logarithmic, with what is below it shaded; names of adversaries; marks for a legend."""
    reached = [value for outcome in lines.values() for value in _multiples(outcome)[: 4 if outcome.beaten else 3]]
    left = max(_LEAST, min([0.5, *reached])) * 0.85
    ax.set_xscale("log")
    ax.set_xlim(left, max([1.6, *reached]) * 1.2)
    ax.set_ylim(max(lines) + 0.7, -1.3)
    ax.axvspan(left, 1.0, color=PUBLISHED, alpha=0.10, linewidth=0, zorder=0)
    ax.axvline(1.0, color=FLOOR, linewidth=2.0, zorder=1)
    for place, text, side in ((0.985, "below the floor ", "right"), (1.015, " promised", "left")):
        ax.text(place, -1.38, text, color="#00664B", fontsize=SMALL, ha=side, va="bottom")
    ax.set_yticks(list(lines), [shown(outcome.name) for outcome in lines.values()])
    for label, outcome in zip(ax.get_yticklabels(), lines.values(), strict=True):
        label.set_fontweight("bold" if outcome.below else "normal")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(FixedLocator(_TICKS))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    plain_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    nowhere: list[float] = []
    ax.plot(nowhere, nowhere, **_EXPECTED, color=READER, label="expected error")
    ax.plot(nowhere, nowhere, **_WORST, color=PUBLISHED, label="the same at the worst input")
    ax.plot(nowhere, nowhere, **_CLAIMED, markeredgecolor="0.3", label="error it claims")
    ax.plot(nowhere, nowhere, **_HERE, color=TRUTH, label="error on these data")
    ax.plot(nowhere, nowhere, linestyle="none", marker="s", markersize=8, color=PUBLISHED, label="below the floor")
    if beyond := sum(map(_is_beyond, lines.values())):
        ax.plot(nowhere, nowhere, **_FURTHER, label=f"further left than the scale ({beyond})")
