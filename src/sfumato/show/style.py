"""What all pictures share: colours that can be told apart with any colour vision, plain axes, legends outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

# Okabe and Ito's palette: told apart with any colour vision, and in grey by lightness and line style.
TRUTH = "#000000"
PUBLISHED = "#D55E00"
READER = "#0072B2"
FLOOR = "#009E73"
REGION = "0.91"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"

#: Amounts go from dark to light, what has a sign goes from blue through white to red: both print in grey.
SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"

BAND = 1.959964
"""Standard deviations on either side of the mean that hold 95 %."""

SMALL = 8.5

#: Inches that a letter and the handle of an entry take in a small legend.
LETTER, HANDLE = 0.068, 0.5


def new_axes(ax: Axes | None, width: float = 7.2, height: float = 3.8, projection: str | None = None) -> Axes:
    """The axes that were given, or those of a figure of its own."""
    if ax is not None:
        return ax
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure.add_subplot(projection=projection)


def plain_axes(ax: Axes) -> None:
    """Two spines, and faint lines to read heights off."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis="y", color="0.88", linewidth=0.6)
    ax.set_axisbelow(True)


def plain_numbers(ax: Axes) -> None:
    """1.0525 can be read; 5e-4 + 1.052 cannot."""
    ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))


def legend_above(ax: Axes, columns: int = 3, **how: Any) -> None:
    """The legend above the axes, where it hides nothing, in at most ``columns`` columns that are no wider than they."""
    handles = how.get("handles") or ax.get_legend_handles_labels()[0]
    figure: Any = ax.figure.get_figure(root=True)
    width = ax.get_position().width * figure.get_figwidth()
    columns = fitting_columns([str(handle.get_label()) for handle in handles], columns, width)
    options: dict[str, Any] = {"handlelength": 2.2, "borderaxespad": 0.2, "columnspacing": 1.4, "fontsize": SMALL}
    options |= {"bbox_to_anchor": (0.0, 1.0), "loc": "lower left", "frameon": False, "ncol": columns}
    ax.legend(**(options | how))


def fitting_columns(labels: list[str], most: int, width: float) -> int:
    """In how many columns a small legend with these ``labels`` is at most ``width`` inches wide."""
    for columns in range(most, 1, -1):
        lengths = [max(map(len, label.splitlines()), default=0) for label in labels]
        wide = [max(part, default=0) for part in (part.tolist() for part in np.array_split(lengths, columns))]
        if sum(wide) * LETTER + len(wide) * HANDLE <= width + HANDLE / 2:
            return columns
    return 1


def colour_bar(ax: Axes, drawn: Any, label: str) -> None:
    """A colour bar beside ``ax``, as high as they are, that says what its colours mean."""
    bar = ax.figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.set_label(label)
    bar.ax.yaxis.set_major_locator(MaxNLocator(7))
    bar.outline.set_visible(False)
