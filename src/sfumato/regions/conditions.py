"""Bounds that a table gives a meaning to: dates, and levels of a category.

A box that names columns of a table may have them; they become numbers when the region is bound to data, whose encoding
says how.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..data import as_moment, end_of_day, moment_text
from ..errors import InputError
from ..text import number_text, span_text

#: Words of the language of regions, which are levels only in quotes.
KEYWORDS = frozenset({"and", "or", "not", "in"})


@dataclass(frozen=True)
class Dates:
    """From one date to another, both included; None is an open side."""

    lower: np.datetime64 | None
    upper: np.datetime64 | None

    @property
    def is_empty(self) -> bool:
        return self.lower is not None and self.upper is not None and bool(self.lower > self.upper)

    def in_words(self, name: str) -> str:
        return span_text(name, *(None if side is None else moment_text(side) for side in (self.lower, self.upper)))

    def __repr__(self) -> str:
        low, high = (None if side is None else moment_text(side) for side in (self.lower, self.upper))
        return f"({low!r}, {high!r})"


@dataclass(frozen=True)
class Levels:
    """One of these levels of a category."""

    names: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not self.names

    def in_words(self, name: str) -> str:
        return levels_text(name, self.names)

    def __repr__(self) -> str:
        return repr(self.names[0]) if len(self.names) == 1 else repr(list(self.names))


Meant: TypeAlias = Dates | Levels
#: What a box says of one column: numbers from the first to the second, dates, or levels.
Condition: TypeAlias = tuple[float, float] | Meant


def met(first: Condition, second: Condition) -> Condition | None:
    """What holds where both hold; None where one is about numbers, and the other about dates or levels."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return max(first[0], second[0]), min(first[1], second[1])
    if isinstance(first, Dates) and isinstance(second, Dates):
        lowers = [side for side in (first.lower, second.lower) if side is not None]
        uppers = [side for side in (first.upper, second.upper) if side is not None]
        return Dates(max(lowers, default=None), min(uppers, default=None))
    if isinstance(first, Levels) and isinstance(second, Levels):
        return Levels(tuple(name for name in first.names if name in second.names))
    return None


def is_empty(condition: Condition) -> bool:
    return condition[0] > condition[1] if isinstance(condition, tuple) else condition.is_empty


def as_meant(value: Any, what: str) -> Meant | None:
    """Dates or levels as people write them; None where ``value`` is neither.

    A date, or a pair of dates with None for an open side; a text, or a list of texts. A day by itself is all of it,
    and a month or another period goes to its end.
    """
    if isinstance(value, (Dates, Levels)):
        return value
    moment = as_moment(value, what)
    if moment is not None:
        return Dates(moment, end_of_day(as_moment(value, what, last=True) or moment))
    if isinstance(value, str):
        return Levels((value,))
    if not isinstance(value, (list, tuple, set, frozenset)) or not value:
        return None
    given = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
    sides = [None if one is None else as_moment(one, what, last=place == 1) for place, one in enumerate(given)]
    if any(side is not None for side in sides):
        if len(given) != 2 or any(side is None and one is not None for side, one in zip(sides, given, strict=True)):
            raise InputError(f"{what} are {value!r}; give two dates, None for an open side.")
        first, last = sides
        return Dates(first, end_of_day(last) if last is not None and first == last else last)
    return Levels(tuple(dict.fromkeys(given))) if all(isinstance(one, str) for one in given) else None


def numbers_text(name: str, lower: float, upper: float) -> str:
    """The same for numbers, infinite where a side is open."""
    sides = (None if math.isinf(side) else number_text(side) for side in (lower, upper))
    return span_text(name, *sides)


def inward(lower: float, upper: float) -> tuple[float, float]:
    """Bounds that a person can read, of seven digits: rounded inwards, so that no more is said than holds."""
    low, high = (_seven_digits(lower, math.ceil), _seven_digits(upper, math.floor))
    return (low, high) if low <= high else (lower, upper)


def _seven_digits(value: float, towards: Callable[[float], int]) -> float:
    if not math.isfinite(value) or value == float(f"{value:.9g}"):
        return value
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 6)
    rounded = float(f"{towards(value / step) * step:.7g}")
    return rounded if math.isfinite(rounded) else value


def levels_text(name: str, levels: Collection[str]) -> str:
    """ "species = Adelie", or "species in (Adelie, Gentoo)"."""
    texts = [level_text(level) for level in levels]
    return f"{name} = {texts[0]}" if len(texts) == 1 else f"{name} in ({', '.join(texts)})"


def level_text(level: str) -> str:
    """A level as ``parse_region`` reads it: bare where possible, else in quotes."""
    if is_plain_word(level) and level.casefold() not in KEYWORDS | {"inf", "infinity", "nan"}:
        return level
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", level) and number_text(float(level)) == level:
        return level
    return '"' + level.replace('"', '""') + '"'


def is_plain_word(text: str) -> bool:
    """Whether the language reads ``text`` as one name: not every letter of Python's identifiers is one there."""
    return text.isidentifier() and re.fullmatch(r"\w+", text) is not None
