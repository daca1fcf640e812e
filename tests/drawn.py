"""What a picture shows: its lines and legends, by their labels, and whether all of them are on the page."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend


def line_of(ax: Axes, label: str) -> np.ndarray:
    """The points of the one line whose label starts so."""
    found = [line for line in ax.get_lines() if str(line.get_label()).startswith(label)]
    assert len(found) == 1, label
    return np.column_stack(found[0].get_data())


def legend_of(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def legends_are_whole(figure: Figure) -> bool:
    """Whether no legend and no title of axes is cut by the edge of the figure."""
    figure.draw_without_rendering()
    shown = [*figure.findobj(Legend)]
    shown += [title for ax in figure.axes for title in (ax.title, ax._left_title) if title.get_text()]
    boxes = [one.get_window_extent() for one in shown]
    page = figure.bbox.padded(1.0)
    return all(page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1 for box in boxes)
