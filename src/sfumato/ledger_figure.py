"""A picture of a ledger: how much of its promises each release has used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

if TYPE_CHECKING:
    from .remaining import Remaining

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
