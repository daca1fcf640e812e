"""An input as a chart shows it: where its values stand, how its axis is named, and what a drag over it means.

Numbers and dates stand where they are. Levels of a category stand at 0, 1, 2, … on an axis of numbers, so that none of
them is taken for a number or a date.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import product
from typing import Any

import numpy as np

from ..arrays import Array
from ..data import Column, Inputs, from_moments, to_moments
from ..errors import InputError
from ..regions import Region, region_text
from ..text import shown

#: How far from its place a level is drawn: rows are spread over this, and a drag that reaches it means the level.
REACH = 0.35

#: A chart is about so many pixels wide, at most.
_PIXELS = 1000

#: Days, hours, minutes and seconds in microseconds: what the ends of dates are rounded to.
_STEPS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000)

#: What Plotly would take for markup, an entity, a template or a formula.
_MARKS = re.compile(r"[&<>%$\\]")


def escaped(text: object, most: int = 44) -> str:
    """A name as Plotly shows it: letter for letter, whatever it holds; cut after ``most`` letters, which "…" says.

    >>> escaped("<b>a & b</b> 5 %{x} $y$")
    '&#60;b&#62;a &#38; b&#60;/b&#62; 5 &#37;{x} &#36;y&#36;'
    """
    said = shown(text)
    said = said if len(said) <= most else f"{said[: most - 1]}…"
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", said)


@dataclass(frozen=True)
class Axis:
    """One input of the table, where its columns of numbers are, and the ends of a chart of it."""

    column: Column
    place: slice
    low: float
    high: float
    #: Whether all dates are days.
    whole_days: bool = False

    @classmethod
    def of(cls, inputs: Inputs, name: str) -> Axis:
        """The axis of the input that is called ``name``."""
        if inputs.encoding is not None:
            found = inputs.encoding.column(name)
        else:
            at = inputs.sources.index(name) if name in inputs.sources else -1
            found = None if at < 0 else (Column(name), slice(at, at + 1))
        if found is None:
            raise InputError(f"{name!r} is no input; choose one of {', '.join(map(repr, inputs.sources))}.")
        column, place = found
        if column.kind == "category":
            return cls(column, place, -0.5 - REACH / 2, len(column.levels) - 0.5 + REACH / 2)
        values = inputs.sample.values[:, place.start]
        low, high = float(values.min()), float(values.max())
        margin = 0.03 * (high - low) or 0.03 * abs(low) or 1.0
        days = column.kind == "date" and column.unit == "days" and bool(np.all(values == np.floor(values)))
        return cls(column, place, low - margin, high + margin, days)

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def is_category(self) -> bool:
        return self.column.kind == "category"

    def positions(self, rows: Array) -> Array:
        """Where rows of numbers stand on the axis."""
        own = rows[:, self.place]
        return own.argmax(axis=1).astype(np.float64) if self.is_category else np.asarray(own[:, 0])

    def numbers(self, positions: Array) -> Array:
        """The columns of numbers that belong to ``positions``."""
        if self.is_category:
            return np.eye(len(self.column.levels))[positions.astype(np.intp)]
        return positions[:, None]

    def steps(self, count: int, more: Sequence[float] = ()) -> Array:
        """``count`` positions from end to end, and ``more`` of them; one for each level of a category."""
        if self.is_category:
            return np.arange(len(self.column.levels), dtype=np.float64)
        kept = [value for value in more if self.low < value < self.high]
        return np.union1d(np.linspace(self.low, self.high, count), kept)

    def drawn(self, positions: Sequence[float] | Array) -> list[Any]:
        """Positions as Plotly takes them: numbers, or texts of dates."""
        values = np.asarray(positions, dtype=np.float64)
        if self.column.kind != "date":
            return [None if math.isnan(value) else value for value in values.tolist()]
        found: list[Any] = np.datetime_as_string(to_moments(np.nan_to_num(values), self.column.unit), "ms").tolist()
        return [None if gap else text for text, gap in zip(found, np.isnan(values).tolist(), strict=True)]

    def layout(self, upright: bool = False) -> dict[str, Any]:
        """This axis in a Plotly layout; few levels that stand ``upright`` leave room on a narrow screen."""
        utc = " (UTC)" if self.column.utc else ""
        found: dict[str, Any] = {
            "title": {"text": f"{escaped(self.name)}{utc}", "standoff": 8},
            "range": self.drawn([self.low, self.high]),
            "type": "date" if self.column.kind == "date" else "linear",
        }
        found["autotickangles"] = [0, 30]
        if self.is_category:
            levels = self.column.levels
            turned = upright and len(levels) <= 6
            found |= {"tickvals": [*range(len(levels))], "tickangle": -90 if turned else "auto"}
            found["ticktext"] = [escaped(level, 11 if turned else 16) for level in levels]
        return found

    def value(self, position: float) -> str:
        """A position for people: a number, a date, a level."""
        return str(self.column.value_in_words(self.numbers(np.array([position]))[0], 6, "m"))

    def spans(self, lower: Array, upper: Array) -> list[tuple[float, float]]:
        """What of this axis a box takes, between rows of numbers; sides beyond the chart end there."""
        low, high = lower[self.place], upper[self.place]
        if not self.is_category:
            span = (max(float(low[0]), self.low), min(float(high[0]), self.high))
            return [span] if span[0] <= span[1] else []
        if np.all(np.isinf(low) & np.isinf(high)):
            return [(self.low, self.high)]
        others = np.array([np.all(np.delete(low, k) <= 0.0) for k in range(len(low))])
        return [(k - 0.5, k + 0.5) for k in np.flatnonzero(others & (low <= 1.0) & (high >= 1.0)).tolist()]

    def dragged(self, first: object, last: object) -> tuple[Any, Any] | list[str]:
        """The bounds that a drag from ``first`` to ``last`` means: a pair of numbers or moments, or levels.

        Guarantee: they hold all between the two; they are rounded outwards, by about a pixel at most.
        """
        low, high = sorted((self._position(first), self._position(last)))
        pixel = (self.high - self.low) / _PIXELS
        if self.is_category:
            levels = self.column.levels
            return [one for k, one in enumerate(levels) if low <= k + REACH and high >= k - REACH]
        if self.column.kind == "date":
            return self._dates(low, high, pixel)
        step = Decimal(1).scaleb(math.floor(math.log10(pixel)))
        below = (Decimal(low) / step).to_integral_value(ROUND_FLOOR) * step
        above = (Decimal(high) / step).to_integral_value(ROUND_CEILING) * step
        # Decimal has 28 digits: where a step is too small for them the ends stay as they are
        return min(float(below), low) + 0.0, max(float(above), high) + 0.0

    def _dates(self, low: float, high: float, pixel: float) -> tuple[Any, Any]:
        moments = to_moments(np.array([low, high, pixel]), self.column.unit)
        first, last, wide = moments.astype(np.int64).tolist()
        step = next((size for size in _STEPS if size <= wide), 1)
        # numbers stand for moments to about a microsecond
        below, above = (first - 1) // step * step, -(-(last + 1) // step) * step
        return np.datetime64(below, "us"), np.datetime64(above, "us")

    def _position(self, given: object) -> float:
        """A place that Plotly names: a number, or the text of a date."""
        try:
            if self.column.kind == "date" and isinstance(given, str):
                return float(from_moments(np.datetime64(given.replace(" ", "T"), "us"), self.column.unit))
            position = float(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            position = math.nan
        if not math.isfinite(position):
            raise InputError(
                f"the chart says {str(given)[:40]!r} of {self.name!r}, which is no place on it; drag again."
            )
        return position


def drawn_text(axes: Sequence[Axis], ends: Sequence[tuple[object, object]], columns: Sequence[str]) -> str:
    """The text of the region that was drawn from end to end of each axis; ``columns`` are those of the table.

    Empty where no level of a category lies between the ends.
    """
    bounds = {axis.name: axis.dragged(*side) for axis, side in zip(axes, ends, strict=True)}
    return "" if any(not said for said in bounds.values()) else region_text(bounds, columns)


def outlines(
    region: Region, inputs: Inputs, axes: Sequence[Axis], through: Array | None = None
) -> list[tuple[tuple[float, float], ...]]:
    """What the region takes of each axis, box by box: where it lies in the chart, whatever else it says.

    Of a chart ``through`` an input there are only the boxes that this input, moved along the axes, comes into.
    """
    boxes = region.spans(inputs)
    held = np.ones(inputs.features, dtype=np.bool_)
    for axis in axes:
        held[axis.place] = False
    found = [
        sides
        for lower, upper in zip(boxes.lower, boxes.upper, strict=True)
        if through is None or np.all((lower <= through) & (through <= upper) | ~held)
        for sides in product(*(axis.spans(lower, upper) for axis in axes))
    ]
    found = list(dict.fromkeys(found))
    return found if len(axes) > 1 else [(side,) for side in _merged([side for (side,) in found])]


def _merged(sides: list[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(sides):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
