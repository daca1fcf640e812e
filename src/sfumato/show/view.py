"""What all pictures share: a palette, axes, legends, marks that mean the same everywhere, and a view of a design.

A ``View`` is what pictures ask of a design, with any number of inputs: rows, region and floor of one output.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ParamSpec, TypeVar

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import Formatter, Locator, MaxNLocator, ScalarFormatter

from ..arrays import Array, Mask
from ..data import ONE_OUTPUT, Column, Encoding, MemoryInputs, as_inputs, from_moments
from ..errors import InputError
from ..models import OutputsKernel
from ..promise import Design
from ..regions import OutputRegion
from ..release import Release
from ..text import shown, shown_lines

P = ParamSpec("P")

#: What a picture gives back: axes, several of them, or a figure.
Drawn = TypeVar("Drawn", bound=Axes | Figure | list[Axes])

# Okabe and Ito's palette: told apart with any colour vision, and in grey by lightness and line style.
TRUTH = "#000000"
PUBLISHED = "#D55E00"
READER = "#0072B2"
FLOOR = "#009E73"
REGION, EDGE = "0.91", "0.84"
PURPLE, ORANGE, SKY, YELLOW = "#CC79A7", "#E69F00", "#56B4E9", "#F0E442"

#: Amounts go from dark to light, what has a sign goes from blue through white to red: both print in grey.
SEQUENTIAL, DIVERGING = "cividis", "RdBu_r"

BAND = 1.959964
"""Standard deviations on either side of the mean that hold 95 %."""

#: How the truth is drawn: long dashes.
DASHED: Any = (0, (4, 1.5))

#: Points of the letters of legends, and inches of a line of them.
SMALL, LINE = 8.5, 0.16

#: Inches that a letter and the handle of an entry take in a small legend.
LETTER, HANDLE = 0.068, 0.5

#: Inches that a letter takes in the name of an axis, and lines that a name or an entry of a legend may have.
NAME_LETTER, MOST_LINES = 0.085, 3

#: How much wider axes become when a constrained layout takes away the margins that they start with.
WIDENED = 1.15

#: A region that takes less of an axis is enlarged, in axes beside it that are so much of its width.
SLIVER, ENLARGED = 0.08, 0.62

#: Inches of a figure with a part that is enlarged, and without.
WIDE, NARROW = 10.4, 7.2

#: Values that would make all else take less of the height than one part in so many are beyond the scale.
BEYOND = 4.0


def new_axes(ax: Axes | None, width: float = NARROW, height: float = 3.8, projection: str | None = None) -> Axes:
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


#: A word, or a part of one that ends in _, / or -; a date is one.
_PIECE = re.compile(r"\s*(?:[^\s_/-]|(?<=\d)-(?=\d))*[_/-]?")


def wrapped(text: str, letters: float, lines: int = MOST_LINES) -> str:
    r"""``text`` as it may be shown, in lines of at most so many letters, broken at spaces and after ``_/-`` if it may.

    Of more than ``lines`` lines the rest is left out, which "…" says.

    >>> wrapped("mean_daily_temperature of the air", 12)
    'mean_daily_\ntemperature\nof the air'
    >>> wrapped("one two three four five", 9, lines=2)
    'one two\nthree …'
    >>> wrapped("in 2013-01-05 ≤ t", 11)
    'in\n2013-01-05\n≤ t'
    """
    most, found = max(int(letters), 6), []
    line = ""
    for piece in (piece for word in re.findall(_PIECE, shown(text)) for piece in _cut(word, most)):
        if line and len(line) + len(piece) > most:
            found.append(line.strip())
            line = ""
        line += piece
    found.append(line.strip())
    if len(found) <= lines:
        return "\n".join(found)
    last = found[lines - 1]
    return "\n".join([*found[: lines - 1], f"{last[: most - 2].rstrip() if len(last) > most - 2 else last} …"])


def _cut(word: str, most: int) -> list[str]:
    return [word[start : start + most] for start in range(0, len(word), most)]


def inches(ax: Axes) -> tuple[float, float]:
    """How wide and how high axes are, or will be after a constrained layout."""
    figure: Any = ax.figure.get_figure(root=True)
    place, widened = ax.get_position(), WIDENED if figure.get_layout_engine() else 1.0
    return float(place.width * figure.get_figwidth() * widened), float(place.height * figure.get_figheight())


def name_axes(ax: Axes, across: str | None = None, up: str | None = None) -> None:
    """Name the axes, in lines that are no longer than they; legends above take a part of the height."""
    width, height = inches(ax)
    if across is not None:
        ax.set_xlabel(wrapped(across, width / NAME_LETTER))
    if up is not None:
        ax.set_ylabel(wrapped(up, 0.75 * height / NAME_LETTER))


def dates_of(encoding: Encoding | None, place: int) -> Column | None:
    """The column of dates whose numbers are in the column ``place``, if it is one."""
    parts = () if encoding is None else encoding.parts
    return next((column for column, own in parts if column.kind == "date" and own.start == place), None)


def show_dates(axis: Axis, column: Column | None) -> None:
    """Let an axis say dates where its numbers stand for some; None: they do not."""
    if column is not None:
        scale = from_moments(np.datetime64("1970-01-02"), column.unit)
        axis.set_major_locator(_DateLocator(float(scale)))
        axis.set_major_formatter(_DateFormatter(float(scale)))


class _DateLocator(Locator):
    """Matplotlib's places for dates, on an axis with ``scale`` units a day."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self) -> Any:
        assert self.axis is not None
        low, high = np.sort(np.asarray(self.axis.get_view_interval()) / self.scale)
        places = AutoDateLocator(minticks=3, maxticks=7).tick_values(num2date(low), num2date(high))
        return np.asarray(places) * self.scale


class _DateFormatter(Formatter):
    """Matplotlib's short words for dates: what all have in common stands at the end of the axis."""

    def __init__(self, scale: float) -> None:
        self.scale, self.words = scale, ConciseDateFormatter(AutoDateLocator())

    def __call__(self, value: float, pos: int | None = None) -> str:
        return str(num2date(value / self.scale).strftime("%Y-%m-%d %H:%M:%S"))

    def format_ticks(self, values: Any) -> list[str]:
        return [str(text) for text in self.words.format_ticks(np.asarray(values) / self.scale)]

    def get_offset(self) -> str:
        return str(self.words.get_offset())


def legend_above(ax: Axes, columns: int = 3, room: float = 1.0, **how: Any) -> None:
    """The legend above the axes, where it hides nothing, in at most ``columns`` columns.

    It takes no more than the ``room`` that it has, as a share of the width of the axes.
    """
    handles = how.get("handles") or ax.get_legend_handles_labels()[0]
    columns, texts = in_columns([str(handle.get_label()) for handle in handles], columns, room * inches(ax)[0])
    options: dict[str, Any] = {"handlelength": 2.2, "borderaxespad": 0.2, "columnspacing": 1.4, "fontsize": SMALL}
    options |= {"bbox_to_anchor": (0.0, 1.0), "loc": "lower left", "frameon": False, "ncol": columns}
    ax.legend(**(options | how | {"handles": handles, "labels": texts}))


#: How the title of a legend is written.
TITLED: dict[str, Any] = {"title_fontsize": SMALL, "alignment": "left"}


def title_over(ax: Axes, *parts: str) -> str:
    """Sentences above a legend, in lines that are no longer than the axes are wide."""
    return "\n".join(wrapped(part, inches(ax)[0] / LETTER) for part in parts if part)


@contextmanager
def set_to(settings: Any) -> Iterator[None]:
    """Draw with these settings of Matplotlib. They are those of the whole program: one thread has them at a time."""
    with _SETTING, matplotlib.rc_context(settings):
        yield


_SETTING = threading.RLock()


def shows_names(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """``draw``, in whose picture names are texts: a dollar sign begins no formula, and what cannot be seen is told."""

    @functools.wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        # axes that are made here, such as enlarged ones beside others
        with set_to({"text.parse_math": False}):
            made = draw(*args, **kwargs)
        for artist in made if isinstance(made, list) else [made]:
            for text in artist.findobj(Text):
                text.set_parse_math(False)
                text.set_text(shown_lines(text.get_text().split("\n")))
        return made

    return drawn


def legend_entries(panels: list[Axes]) -> dict[str, Any]:
    """What is drawn in any of the panels, by its label."""
    entries: dict[str, Any] = {}
    for panel in panels:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    return entries


def legend_of_figure(figure: Figure, panels: list[Axes], place: str, columns: int, **how: Any) -> int:
    """One legend for all ``panels``, outside of them and no wider than the figure; about how many lines it has."""
    entries = legend_entries(panels)
    columns, texts = in_columns(list(entries), columns, figure.get_figwidth())
    options: dict[str, Any] = {"loc": f"outside {place}", "ncol": columns, "frameon": False, "fontsize": SMALL}
    options["columnspacing"] = 1.4
    figure.legend(list(entries.values()), texts, **(options | how))
    return -(-sum(len(text.splitlines()) for text in texts) // columns)


def in_columns(labels: list[str], most: int, width: float) -> tuple[int, list[str]]:
    """In how many columns a small legend is at most ``width`` inches wide, and its labels, wrapped if they must be."""
    labels = [shown(label) for label in labels]
    for columns in range(most, 1, -1):
        widest = [max(column.tolist(), default=0) for column in np.array_split([len(one) for one in labels], columns)]
        if sum(widest) * LETTER + columns * HANDLE <= width + HANDLE / 2:
            return columns, labels
    wide = 1.06 * LETTER  # letters of names are wider than those of words
    halves = [wrapped(label, (width / 2 - HANDLE) / wide) for label in labels]
    if most > 1 and len(labels) > 3 and not any(text.endswith("…") for text in halves):
        return 2, halves
    return 1, [wrapped(label, (width - HANDLE) / wide) for label in labels]


def colour_bar(ax: Axes, drawn: Any, label: str) -> None:
    """A colour bar beside ``ax``, as high as they are, that says what its colours mean."""
    bar = ax.figure.colorbar(drawn, cax=ax.inset_axes((1.03, 0.0, 0.045, 1.0)))
    bar.set_label(wrapped(label, inches(ax)[1] / NAME_LETTER))
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


def draw_published(ax: Axes, at: Array, values: Array, label: str = "published") -> None:
    """Published values, as points."""
    how: dict[str, Any] = {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.5}
    ax.plot(at, values, linestyle="none", marker="o", markerfacecolor=PUBLISHED, label=label, **how)


def draw_prior(ax: Axes, at: Array, std: Array, label: str = "knows only the prior") -> None:
    """What is not known without any data."""
    ax.plot(at, std, color="0.45", linewidth=1.0, linestyle=":", label=label)


def draw_floor(ax: Axes, at: Array, floor: Array) -> None:
    """The promised floor, and what lies below it."""
    ax.fill_between(at, 0, floor, color=FLOOR, alpha=0.25, linewidth=0, label="below the floor")
    ax.plot(at, floor, color=FLOOR, linewidth=2.2, linestyle=(0, (2, 1)), label="promised floor", zorder=4)


def shade_region(ax: Axes, at: Array, inside: Mask, label: str) -> None:
    """Where the region is, from the bottom to the top, as a line at least; nothing where there is none of it."""
    for number, (start, stop) in enumerate(runs(inside)):
        how: dict[str, Any] = {"facecolor": REGION, "edgecolor": EDGE, "linewidth": 0.7, "zorder": 0}
        ax.axvspan(at[start], at[stop], label="" if number else label, **how)


def runs(inside: Mask) -> list[tuple[int, int]]:
    """First and last place of each unbroken run of True."""
    padded = np.concatenate([[False], inside, [False]])
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    return [(int(start), int(stop) - 1) for start, stop in zip(changes[::2], changes[1::2], strict=True)]


def axes_beside(ax: Axes) -> Axes | None:
    """Axes to the right of ``ax``, which make room, for a part that is enlarged.

    None where the figure would not lay them out: then nothing is enlarged.
    """
    figure: Any = ax.figure.get_figure(root=True)
    place = ax.get_subplotspec()
    if figure.get_layout_engine() is None or place is None:
        return None
    parts = place.subgridspec(1, 2, width_ratios=(1.0, ENLARGED))
    ax.set_subplotspec(parts[0])
    beside: Axes = figure.add_subplot(parts[1])
    return beside


def hold_within(ax: Axes, low: float, high: float, at: Array, values: Array, colour: str) -> int:
    """Let the scale hold ``low`` to ``high``, and ``values`` if that leaves enough of it to see; how many it does not.

    Those beyond are triangles at the border.
    """
    bottom, top = min(low, float(np.min(values, initial=low))), max(high, float(np.max(values, initial=high)))
    if not top - bottom > BEYOND * (high - low) > 0.0:
        return 0
    bottom, top = max(bottom, low - 0.5 * (high - low)), min(top, high + 0.5 * (high - low))
    for beyond, edge, marker in ((values > top, 0.975, "^"), (values < bottom, 0.025, "v")):
        how: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "linestyle": "none", "marker": marker}
        ax.plot(at[beyond], np.full(int(beyond.sum()), edge), color=colour, markersize=4.5, zorder=6, **how)
    ax.set_ylim(bottom, top)
    return int(np.sum((values > top) | (values < bottom)))


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
        """What legends call the region: that of this output, where each has its own."""
        region, names = self.design.region, self.design.inputs.names
        if self.of is not None and isinstance(region, OutputRegion):
            own = dict(region.parts).get(self.number)
            return self.region_label or ("region" if own is None else f"region: {own.in_words(names[:-1])}")
        return self.region_label or f"region: {region.in_words(names)}"

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
        known = np.concatenate([known, np.clip(self.ends(0), known.min(), known.max())])
        return np.union1d(np.linspace(known.min(), known.max(), FINE_STEPS), known)[:, None]

    def along(self, place: int, at: Array) -> Array:
        """Inputs through ``at`` that differ in one column, from end to end."""
        return self.through(
            at, place, np.union1d(np.linspace(*self.span(place), STEPS), [at[place], *self.ends(place)])
        )

    def through(self, at: Array, place: int, values: Array) -> Array:
        """Inputs like ``at``, with these ``values`` in one column."""
        points = np.tile(at, (len(values), 1))
        points[:, place] = values
        return points

    def ends(self, place: int) -> Array:
        """Where the region begins and ends in a column, if it does, and its middle."""
        lower, upper = (float(side[place]) for side in self.design.region.bounding_box(self.design.inputs.dimension))
        return np.array([value for value in (lower, (lower + upper) / 2.0, upper) if np.isfinite(value)])

    def sliver(self, points: Array, place: int, near: float) -> tuple[float, float] | None:
        """What to enlarge of ``points`` along a column: the part of the region that holds ``near``, or else the widest.

        It has surroundings as wide as itself on either side. None where the region is no sliver of the axis.
        """
        at, found = points[:, place], runs(self.inside(points))
        lengths = [float(at[stop] - at[start]) for start, stop in found]
        if not 0.0 < sum(lengths) < SLIVER * float(at[-1] - at[0]):
            return None
        holding = [one for one in found if at[one[0]] <= near <= at[one[1]]]
        start, stop = holding[0] if holding else found[int(np.argmax(lengths))]
        width = float(at[stop] - at[start]) or max(lengths)
        return max(float(at[0]), float(at[start]) - width), min(float(at[-1]), float(at[stop]) + width)

    def in_words(self, at: Array, without: Sequence[int] = ()) -> str:
        """The input ``at`` in words, but for some columns."""
        encoding = self.design.inputs.encoding
        if encoding is None:
            kept = [number for number in range(len(self.names)) if number not in without]
            return ONE_OUTPUT.place_in_words([self.names[number] for number in kept], at[kept], digits=4)
        left_out = {*without}
        parts = [(one, own) for one, own in encoding.parts if left_out.isdisjoint(range(own.start, own.stop))]
        values = np.concatenate([np.zeros(0), *(at[own] for _, own in parts)])
        return ", ".join(Encoding(tuple(one for one, _ in parts)).place_in_words(values, 4, "m"))

    @property
    def scales(self) -> tuple[str, ...]:
        """The columns that are scales, of numbers or dates, and not levels of a category; all where none is."""
        encoding = self.design.inputs.encoding
        levels = [c.names for c in ([] if encoding is None else encoding.columns) if c.kind == "category"]
        known = {name for names in levels for name in names}
        return tuple(name for name in self.names if name not in known) or self.names

    def dates(self, place: int) -> Column | None:
        """The column of dates whose numbers are in a column; None where these are just numbers."""
        return dates_of(self.design.inputs.encoding, place)

    def place(self, at: Any, otherwise: Array) -> Array:
        """The input that ``at`` names, in the order of the columns; ``otherwise`` if it is None."""
        if at is None:
            return np.array(np.ravel(otherwise)[: len(self.names)], dtype=np.float64)
        if isinstance(at, pd.Series):
            at = at.to_dict()
        if isinstance(at, Mapping):
            at = pd.DataFrame({name: [value] for name, value in at.items()})
        like = MemoryInputs(self.rows[:1], self.names, encoding=self.design.inputs.encoding)
        found = as_inputs(at if isinstance(at, pd.DataFrame) else np.atleast_2d(at), "at", like=like)
        if len(found) != 1:
            raise InputError(f"at has {len(found)} rows; give one input.")
        return np.array(found.values[0])
