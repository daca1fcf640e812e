"""The paper's Figure 2: the four states of the satellite over time, and its orbit in the plane."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..inputs import Array, Mask
from ..plots import PUBLISHED, TRUTH
from .satellite import ORBIT_RADIUS, SENSITIVE, STATES, simulate
from .satellite_panels import LABELS, dress

EXAGGERATION = 200
"""How much the orbit's deviation from the circle is enlarged: the real one is thinner than any line."""


def draw_trajectory() -> Figure:
    """Four states over three orbits, with the second one marked as private; and the orbits as seen from above."""
    figure = Figure(figsize=(12.0, 6.6), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1.25, 1.0))
    panels = [figure.add_subplot(grid[row, 0]) for row in range(4)]
    orbit = simulate(np.arange(1201) / 400)
    at = orbit["t"].to_numpy()
    private = (at >= SENSITIVE[0]) & (at <= SENSITIVE[1])
    for ax, state in zip(panels, STATES, strict=True):
        _draw_state(dress(ax), at, orbit[state].to_numpy(), private, LABELS[state])
    panels[-1].set_xlabel("t (orbits)")
    for ax in panels[:-1]:
        ax.tick_params(labelbottom=False)
    figure.align_ylabels(panels)
    _draw_orbit(
        figure.add_subplot(grid[:, 1], projection="polar"), orbit["r"].to_numpy(), orbit["theta"].to_numpy(), private
    )
    return figure


def _draw_state(ax: Axes, at: Array, values: Array, private: Mask, label: str) -> None:
    ax.plot(at, values, color=TRUTH, linewidth=1.5)
    ax.plot(at[private], values[private], color=PUBLISHED, linewidth=2.4)
    ax.set_ylabel(label.replace(" (", "\n("), fontsize=9)


def _draw_orbit(ax: Axes, r: Array, theta: Array, private: Mask) -> None:
    circle = r[0]
    enlarged = circle + EXAGGERATION * (r - circle)
    turns = np.linspace(0.0, 2 * np.pi, 361)
    ax.fill_between(turns, 0.0, 0.25, color="0.8", linewidth=0)
    ax.plot(turns, np.full_like(turns, circle), color="0.45", linewidth=1.0, linestyle=":", label="circle")
    ax.plot(theta[private], enlarged[private], color=PUBLISHED, linewidth=4.0, label="second orbit: private")
    # the three orbits lie on top of each other; a break keeps the first from being joined to the third
    others = np.where(private, np.nan, enlarged)
    ax.plot(theta, others, color=TRUTH, linewidth=1.2, linestyle=(0, (5, 2)), label="first and third orbit")
    ax.annotate("Earth\n(not to scale)", (0.0, 0.0), ha="center", va="center", fontsize=9)
    ax.set_yticks([])
    ax.set_title(
        f"the orbit from above; its distance from the circle\n({ORBIT_RADIUS:,.0f} km) is drawn {EXAGGERATION} times "
        "too large",
        fontsize=10,
    )
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, -0.16), ncol=2, frameon=False, fontsize=9)
