"""Checks of plain trees (objects, lists, numbers, texts) that may come from anyone.

Each function returns the value that it was asked about, or raises a ``FormatError`` of one short line, whatever the
value is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NoReturn

from .errors import FormatError

#: An integer of more bits is not written out in a message: that alone would take long.
_MOST_BITS = 200
#: The most characters of a value in a message.
_LONGEST = 60


def fields(tree: object, what: str, needed: Collection[str], optional: Collection[str] = ()) -> dict[str, object]:
    """An object with the entries ``needed``, and no others but ``optional`` ones."""
    if not isinstance(tree, dict):
        raise FormatError(f"the {what} must be an object, not {short(tree)}.")
    missing = [name for name in needed if name not in tree]
    if missing:
        raise FormatError(f"the {what} lacks {missing[0]!r}.")
    unknown = [name for name in tree if name not in needed and name not in optional]
    if unknown:
        raise FormatError(f"the {what} has the unknown entry {short(unknown[0])}.")
    return tree


def objects_in(tree: object) -> int:
    """How many objects a tree has, whatever it is; for a kernel, of how many parts it is made."""
    found, left = 0, [tree]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found += 1
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(part for part in one if isinstance(part, (dict, list)))
    return found


def kind_of(tree: object, what: str, kinds: Collection[str]) -> str:
    """The entry ``kind`` of an object, one of ``kinds``."""
    if not isinstance(tree, dict):
        raise FormatError(f"a {what} must be an object with a kind, not {short(tree)}.")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"a {what} is of the unknown kind {short(kind)}; known are {', '.join(kinds)}.")
    return kind


def node(tree: object, what: str, kinds: Mapping[str, Collection[str]]) -> tuple[str, dict[str, object]]:
    """The kind of an object and its entries, which are exactly those that ``kinds`` lists for it."""
    kind = kind_of(tree, what, kinds)
    return kind, fields(tree, f"{kind} node", ("kind", *kinds[kind]))


def items(values: object, what: str, least: int = 0, most: int | None = None) -> list[object]:
    """A list of ``least`` to ``most`` entries."""
    if not isinstance(values, list):
        raise FormatError(f"{what} must be a list, not {short(values)}.")
    if len(values) < least or (most is not None and len(values) > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise FormatError(f"{what} has {len(values)} entries; {allowed} are allowed.")
    return values


def number(value: object, what: str, least: float = -math.inf, below: float = math.inf) -> float:
    """A finite number, no less than ``least`` and less than ``below``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong(what, value, "a number")
    try:
        found = float(value)
    except OverflowError:
        wrong(what, value, "a finite number")
    if not math.isfinite(found):
        wrong(what, value, "a finite number")
    if not least <= found < below:
        wrong(what, value, f"at least {least:g}" if math.isinf(below) else f"from {least:g} to below {below:g}")
    return found


def positive(value: object, what: str) -> float:
    found = number(value, what)
    if found <= 0.0:
        wrong(what, value, "positive")
    return found


def whole(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        wrong(what, value, f"a whole number from {least} to {most}")
    return value


def choice(value: object, what: str, allowed: Collection[float]) -> float:
    found = number(value, what)
    if found not in allowed:
        wrong(what, value, f"one of {', '.join(map(str, allowed))}")
    return found


def matrix(values: object, what: str, most_rows: int, most_columns: int) -> list[list[float]]:
    """Rows of numbers, at least one, all of the same length."""
    rows = [items(row, f"a row of {what}", 1, most_columns) for row in items(values, what, 1, most_rows)]
    if len({len(row) for row in rows}) != 1:
        raise FormatError(f"{what} has rows of different lengths.")
    return [[number(value, what) for value in row] for row in rows]


def text(value: object, what: str, longest: int, shortest: int = 0) -> str:
    if not isinstance(value, str) or not shortest <= len(value) <= longest:
        wrong(what, value, f"a text of {shortest} to {longest} characters")
    return value


def texts(values: object, what: str, longest: int, distinct: bool = False) -> tuple[str, ...]:
    """A list of texts, each at most ``longest`` characters, and no two the same where they must be ``distinct``."""
    found = tuple(text(value, what, longest) for value in items(values, what))
    if distinct and len(set(found)) < len(found):
        raise FormatError(f"{what} names {short(next(name for name in found if found.count(name) > 1))} twice.")
    return found


def wrong(what: str, value: object, wanted: str) -> NoReturn:
    raise FormatError(f"{what} is {short(value)}; it must be {wanted}.")


def short(value: object) -> str:
    """A value from a file, fit for one line of an error message."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} with {len(value)} entries"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MOST_BITS:
        return "an integer of enormous size"
    shown = ascii(value)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
