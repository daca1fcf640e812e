"""A picture of an audit: what each adversary knows, in multiples of the floor that was promised."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from .attacks.audit import OWNER_ONLY, Audit
from .attacks.outcome import Outcome
from .plots import FLOOR, PUBLISHED, READER, TRUTH

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
    _finish(ax, audit, places, shown)
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


def _finish(ax: Axes, audit: Audit, places: list[float], shown: list[Outcome]) -> None:
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
