"""What the figures of the satellite have in common: names with units, colours, the private orbit in grey."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from ..inputs import Array
from ..plots import REGION, TRUTH
from .satellite import SENSITIVE, STATES, simulate
from .satellite_study import StudyResult

LABELS = {
    "r": "$r$ (Earth radii)",
    "r_dot": r"$\dot{r}$ (Earth radii an orbit)",
    "theta": r"$\theta$ (radians)",
    "theta_dot": r"$\dot{\theta}$ (radians an orbit)",
}
# Two more of Okabe and Ito's colours; every line has a dash pattern of its own as well.
DROPOUT = "#CC79A7"
STATIONARY = "#E69F00"
DASHES = {"truth": (0, (4, 1.5)), "dropout": (0, (1, 1)), "stationary": (0, (5, 1.5, 1, 1.5))}

GRID_POINTS = 601


def times_to_show(result: StudyResult) -> Array:
    """A dense grid; with the authors' kernel, which knows nothing between its rows, the rows alone."""
    rows: Array = result.truth["t"].to_numpy()
    return np.union1d(np.linspace(0.0, 3.0, GRID_POINTS), rows) if result.settings == "paper" else rows


def truth_at(at: Array) -> dict[str, Array]:
    """The states of the satellite at the times ``at``."""
    orbit = simulate(at)
    return {state: orbit[state].to_numpy() for state in STATES}


def sheet(rows: int, columns: int, width: float, height: float) -> tuple[Figure, list[list[Axes]]]:
    """A figure of ``rows`` × ``columns`` panels over the same times."""
    figure = Figure(figsize=(width, height), layout="constrained")
    made = figure.subplots(rows, columns, sharex=True, squeeze=False)
    return figure, [[dress(ax) for ax in row] for row in made]


def dress(ax: Axes) -> Axes:
    """Shade the private orbit and take away what is not needed."""
    ax.axvspan(*SENSITIVE, color=REGION, linewidth=0, zorder=0, label="private orbit")
    ax.margins(x=0.015)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    # 1.0525 can be read; 5e-4 + 1.052 cannot
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
    ax.grid(True, axis="y", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=8.5)
    return ax


def draw_truth(ax: Axes, at: Array, values: Array) -> None:
    ax.plot(at, values, color=TRUTH, linewidth=1.2, linestyle=DASHES["truth"], label="truth", zorder=4)


def one_legend(figure: Figure, ax: Axes, columns: int) -> None:
    """One legend below all panels, from the labels of ``ax``."""
    handles, labels = ax.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(
        once.values(),
        once.keys(),
        loc="outside lower center",
        ncol=columns,
        frameon=False,
        fontsize=9,
        handlelength=2.6,
    )


def one_scale(row: list[Axes]) -> None:
    """The same limits for the panels of a row: that levels differ is what they show."""
    limits = [ax.get_ylim() for ax in row]
    for ax in row:
        ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def name_panels(panels: list[list[Axes]], titles: list[str]) -> None:
    """Levels above the columns, outputs beside the rows, times below."""
    for ax, title in zip(panels[0], titles, strict=True):
        ax.set_title(title, fontsize=10)
    for row, state in zip(panels, STATES, strict=True):
        row[0].set_ylabel(LABELS[state], fontsize=9.5)
    for ax in panels[-1]:
        ax.set_xlabel("t (orbits)")
