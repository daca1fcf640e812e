"""What all pictures share: one palette, plain axes, legends that fit, and the marks that mean the same everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ..arrays import Array, Mask

# Okabe and Ito's palette: told apart with any colour vision, and in grey by lightness and line style.
TRUTH = "#000000"
PUBLISHED = "#D55E00"
READER = "#0072B2"
FLOOR = "#009E73"
REGION = "0.91"
PURPLE, ORANGE, SKY, YELLOW = "#CC79A7", "#E69F00", "#56B4E9", "#F0E442"

#: Amounts go from dark to light, what has a sign goes from blue through white to red: both print in grey.
SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"

BAND = 1.959964
"""Standard deviations on either side of the mean that hold 95 %."""

#: How the truth is drawn: long dashes.
DASHED: Any = (0, (4, 1.5))

#: Points of the letters of legends.
SMALL = 8.5

#: Inches that a letter and the handle of an entry take in a small legend.
LETTER, HANDLE = 0.068, 0.5

#: How much wider axes become when a constrained layout takes away the margins that they start with.
WIDENED = 1.15


def new_axes(ax: Axes | None, width: float = 7.2, height: float = 3.8, projection: str | None = None) -> Axes:
    """The axes that were given, or those of a figure of its own."""
    if ax is not None:
        return ax
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure.add_subplot(projection=projection)


def plain_axes(ax: Axes, lines: Any = "y") -> None:
    """Two spines, and faint lines to read heights off."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis=lines, color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)


def value_axes(ax: Axes) -> None:
    """Plain axes of values: 1.0525 can be read, 5e-4 + 1.052 cannot."""
    plain_axes(ax)
    ax.margins(x=0.015)
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))


def legend_above(ax: Axes, columns: int = 3, **how: Any) -> None:
    """The legend above the axes, where it hides nothing, in at most ``columns`` columns that are no wider than they."""
    handles = how.get("handles") or ax.get_legend_handles_labels()[0]
    figure: Any = ax.figure.get_figure(root=True)
    width = ax.get_position().width * figure.get_figwidth() * (WIDENED if figure.get_layout_engine() else 1.0)
    columns = fitting_columns([str(handle.get_label()) for handle in handles], columns, width)
    options: dict[str, Any] = {"handlelength": 2.2, "borderaxespad": 0.2, "columnspacing": 1.4, "fontsize": SMALL}
    options |= {"bbox_to_anchor": (0.0, 1.0), "loc": "lower left", "frameon": False, "ncol": columns}
    ax.legend(**(options | how))


def legend_entries(panels: list[Axes]) -> dict[str, Any]:
    """What is drawn in any of the panels, by its label."""
    entries: dict[str, Any] = {}
    for panel in panels:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    return entries


def legend_of_figure(figure: Figure, panels: list[Axes], place: str, columns: int, **how: Any) -> None:
    """One legend for all ``panels``, outside of them, in columns that are no wider than the figure."""
    entries = legend_entries(panels)
    columns = fitting_columns(list(entries), columns, figure.get_figwidth())
    options: dict[str, Any] = {"loc": f"outside {place}", "ncol": columns, "frameon": False, "fontsize": SMALL}
    options["columnspacing"] = 1.4
    figure.legend(list(entries.values()), list(entries), **(options | how))


def fitting_columns(labels: list[str], most: int, width: float) -> int:
    """In how many columns a small legend with these ``labels`` is at most ``width`` inches wide."""
    lengths = [max(map(len, label.splitlines()), default=0) for label in labels]
    for columns in range(most, 1, -1):
        widest = [max(column.tolist(), default=0) for column in np.array_split(lengths, columns)]
        if sum(widest) * LETTER + columns * HANDLE <= width + HANDLE / 2:
            return columns
    return 1


def colour_bar(ax: Axes, drawn: Any, label: str) -> None:
    """A colour bar beside ``ax``, as high as they are, that says what its colours mean."""
    bar = ax.figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.set_label(label)
    bar.ax.yaxis.set_major_locator(MaxNLocator(7))
    bar.outline.set_visible(False)


def draw_band(ax: Axes, at: Array, low: Array, high: Array, label: str) -> None:
    """What readers hold possible."""
    ax.fill_between(at, low, high, color=READER, alpha=0.22, linewidth=0, label=label, zorder=1)


def draw_reader(ax: Axes, at: Array, mean: Array, std: Array, label: str = "reader's mean", band: str = "") -> None:
    """What a reader expects, with the band that holds 95 %."""
    draw_band(ax, at, mean - BAND * std, mean + BAND * std, band or "reader's 95 % band")
    ax.plot(at, mean, color=READER, linewidth=1.6, label=label)


def draw_published(ax: Axes, at: Array, values: Array) -> None:
    """Published values, as points."""
    how: dict[str, Any] = {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.5}
    ax.plot(at, values, linestyle="none", marker="o", markerfacecolor=PUBLISHED, label="published", **how)


def draw_prior(ax: Axes, at: Array, std: Array) -> None:
    """What is not known without any data."""
    ax.plot(at, std, color="0.45", linewidth=1.0, linestyle=":", label="knows only the prior")


def draw_floor(ax: Axes, at: Array, floor: Array, below: str = "no reader gets here") -> None:
    """The promised floor, and what lies below it."""
    ax.fill_between(at, 0, floor, color=FLOOR, alpha=0.25, linewidth=0, label=below)
    ax.plot(at, floor, color=FLOOR, linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor", zorder=4)


def shade_region(ax: Axes, at: Array, inside: Mask, label: str) -> None:
    """Where the region is, from the bottom to the top; nothing where there is none of it."""
    if inside.any():
        how: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "color": REGION, "linewidth": 0, "zorder": 0}
        ax.fill_between(at, 0, 1, where=inside, label=label, **how)
