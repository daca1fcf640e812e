"""What all pictures share: a palette, axes, legends, marks that mean the same everywhere, and a view of a design.

A ``View`` is what pictures ask of a design, with any number of inputs: rows, region and floor of one output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from ..arrays import Array, Mask
from ..data import ONE_OUTPUT, MemoryInputs, as_inputs
from ..errors import InputError
from ..models import OutputsKernel
from ..promise import Design
from ..release import Release

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
    bar.ax.yaxis.set_major_formatter(ScalarFormatter(useOffset=False))
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


def draw_floor(ax: Axes, at: Array, floor: Array) -> None:
    """The promised floor, and what lies below it."""
    ax.fill_between(at, 0, floor, color=FLOOR, alpha=0.25, linewidth=0, label="below the floor")
    ax.plot(at, floor, color=FLOOR, linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor", zorder=4)


def shade_region(ax: Axes, at: Array, inside: Mask, label: str) -> None:
    """Where the region is, from the bottom to the top; nothing where there is none of it."""
    if inside.any():
        how: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "color": REGION, "linewidth": 0, "zorder": 0}
        ax.fill_between(at, 0, 1, where=inside, label=label, **how)


#: Steps along a column: of one among several, and of the only one.
STEPS, FINE_STEPS = 201, 601


@dataclass(frozen=True, eq=False)
class View:
    """One output of a design; ``of`` is its name, None where there is only one.

    ``region_label`` is what legends call the region; None stands for its description.
    """

    design: Design
    of: str | None = None
    region_label: str | None = None

    def __post_init__(self) -> None:
        kernel = self.design.prior.kernel
        if isinstance(kernel, OutputsKernel) and not kernel.takes_input(self.number):
            raise InputError(f"of is {self.of!r}, which is one quantity without inputs; ask release.predict for it.")

    @classmethod
    def of_release(cls, release: Release, of: str | None, region_label: str | None = None) -> View:
        """One output of a release, after a check of both."""
        if not isinstance(release, Release):
            raise InputError(f"release is a {type(release).__name__}; give what mechanism.release(y) or sf.load gave.")
        release.design.inputs.outputs.number(of, "of")
        return cls(release.design, of, region_label)

    @cached_property
    def number(self) -> int:
        """The number of the output; a design of one does not know its name yet."""
        outputs = self.design.inputs.outputs
        return outputs.number(self.of, "of") if outputs.numbered else 0

    @property
    def name(self) -> str:
        return self.of or self.design.inputs.outputs.names[self.number]

    @property
    def names(self) -> tuple[str, ...]:
        """The input columns."""
        return self.design.inputs.names[: self.design.inputs.features]

    @property
    def region_in_words(self) -> str:
        return self.region_label or f"region: {self.design.region.in_words(self.design.inputs.names)}"

    def check_inputs(self, count: int, picture: str, others: str) -> None:
        """Refuse a design that has not ``count`` inputs; ``picture`` needs them, ``others`` do not."""
        if len(self.names) != count:
            inputs = "1 input" if len(self.names) == 1 else f"{len(self.names)} inputs"
            raise InputError(f"the release has {inputs} ({', '.join(self.names)}); {picture}. Use {others}.")

    @cached_property
    def rows(self) -> Array:
        """The inputs of the rows about this output, or a sample where there are very many."""
        sample = self.design.inputs.sample
        plain, own = sample.plain.values, sample.outputs.numbers(sample.values) == self.number
        return np.asarray(plain[own]) if own.any() else plain

    @cached_property
    def sensitive(self) -> Array:
        """The sensitive inputs of this output."""
        points = self.design.sensitive
        return np.asarray(points[self.design.inputs.outputs.numbers(points) == self.number])

    def about(self, points: Array) -> Array:
        """``points`` as rows about this output."""
        return self.design.inputs.outputs.rows(points, self.number)

    def is_about(self, row: Array) -> bool:
        """Whether a row is about this output."""
        return bool(self.design.inputs.outputs.numbers(row[None])[0] == self.number)

    def inside(self, points: Array) -> Mask:
        return self.design.region.contains(self.about(points))

    def prior_std(self, points: Array) -> Array:
        return np.sqrt(self.design.prior.variance(self.about(points)))

    def floor(self, points: Array) -> Array:
        """The promised floor at ``points``; NaN outside the region, and where it is promised at single inputs only."""
        floor = np.full(len(points), np.nan)
        inside = self.inside(points)
        # between the rows of cover="rows" nothing is promised
        if inside.any() and self.design.cover in ("greedy", "exchange", "everywhere"):
            try:
                floor[inside] = self.design.tolerance.floor(self.design.prior, self.about(points[inside]))
            except InputError:  # a matrix or a table knows its own points only
                return floor
        return floor

    def column(self, column: str | int) -> int:
        """The place of an input column that is asked for by its name or number."""
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if not whole or not 0 <= int(column) < len(self.names):
            raise InputError(f"column is {column!r}; choose one of {', '.join(map(repr, self.names))}.")
        return int(column)

    def span(self, place: int) -> tuple[float, float]:
        """How far the data and the region go in a column."""
        lower, upper = self.design.region.bounding_box(self.design.inputs.dimension)
        known = [*self.rows[:, place], *(v for v in (lower[place], upper[place]) if np.isfinite(v))]
        if self.design.region.points is not None:
            known.extend(self.design.region.points[:, place])
        return float(min(known)), float(max(known))

    def line(self) -> Array:
        """All along the only column, through rows and sensitive inputs: there the promise is tight."""
        known = np.concatenate([self.design.inputs.sample.values[:, 0], self.sensitive[:, 0]])
        return np.union1d(np.linspace(known.min(), known.max(), FINE_STEPS), known)[:, None]

    def along(self, place: int, at: Array) -> Array:
        """Inputs through ``at`` that differ in one column, from end to end."""
        steps = np.union1d(np.linspace(*self.span(place), STEPS), [at[place]])
        points = np.tile(at, (len(steps), 1))
        points[:, place] = steps
        return points

    def in_words(self, at: Array, without: int) -> str:
        """The other columns at ``at``."""
        kept = [number for number in range(len(self.names)) if number != without]
        return ONE_OUTPUT.place_in_words([self.names[number] for number in kept], at[kept], digits=4)

    def place(self, at: Any, otherwise: Array) -> Array:
        """The input that ``at`` names, in the order of the columns; ``otherwise`` if it is None."""
        if at is None:
            return np.array(np.ravel(otherwise)[: len(self.names)], dtype=np.float64)
        if isinstance(at, pd.Series):
            at = at.to_dict()
        if isinstance(at, Mapping):
            at = pd.DataFrame({name: [value] for name, value in at.items()})
        like = MemoryInputs(self.rows[:1], self.names)
        found = as_inputs(at if isinstance(at, pd.DataFrame) else np.atleast_2d(at), "at", like=like)
        if len(found) != 1:
            raise InputError(f"at has {len(found)} rows; give one input.")
        return np.array(found.values[0])
