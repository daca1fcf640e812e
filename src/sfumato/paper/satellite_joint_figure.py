"""The figure of the satellite's states, protected one by one and together."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ..plots import FLOOR, PUBLISHED, READER
from .satellite_joint import SHOWN, Both
from .satellite_panels import dress, one_legend

_SYMBOLS = {"r": "$r$", "r_dot": r"$\dot{r}$"}


def draw_joint(found: Sequence[Both]) -> Figure:
    """What is left of the prior variance of r and ṙ, for a reader who knows that one is the other's derivative.

    θ and θ̇ look the same: their prior differs by a factor only.
    """
    figure = Figure(figsize=(3.3 * len(found), 5.2), layout="constrained")
    panels = figure.subplots(2, len(found), sharex=True, sharey=True, squeeze=False)
    for column, both in enumerate(found):
        for row, state in enumerate(_SYMBOLS):
            ax = dress(panels[row][column])
            ax.plot(SHOWN, both.one_by_one[state], color=PUBLISHED, linewidth=1.3, label="protected one by one")
            ax.plot(SHOWN, both.together[state], color=READER, linewidth=1.5, label="protected together")
            ax.plot(
                [1.0, 2.0], [both.promised] * 2, color=FLOOR, linewidth=2.2, linestyle=(0, (4, 1.5)), label="promised"
            )
            worst = both.least(both.one_by_one)[state]
            ax.annotate(
                f"leaks: {worst:.2g} left",
                xy=(1.0, worst),
                xytext=(0.04, 0.90 if both.promised < 0.8 else 0.45),
                textcoords="axes fraction",
                fontsize=8.5,
                color=PUBLISHED,
                arrowprops={"arrowstyle": "-", "color": PUBLISHED, "linewidth": 0.8},
            )
            ax.set_ylim(-0.03, 1.05)
            if row == 0:
                ax.set_title(f"α = {both.alpha:g}: {both.promised:g} promised", fontsize=10)
            if column == 0:
                ax.set_ylabel(f"variance of {_SYMBOLS[state]} left", fontsize=9.5)
            if row == 1:
                ax.set_xlabel("time (orbits)", fontsize=9.5)
    one_legend(figure, panels[0][0], 4)
    return figure
