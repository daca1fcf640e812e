"""Checks for trees from files: whatever is not exactly as expected is a ``FormatError`` in one short line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

from .errors import FormatError


def kind_and_fields(tree: object, what: str, kinds: Sequence[str]) -> tuple[dict[str, object], str]:
    if not isinstance(tree, dict):
        raise FormatError(f"a {what} must be an object with a kind, not {short(tree)}.")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise FormatError(f"a {what} is of the unknown kind {short(kind)}; known are {', '.join(kinds)}.")
    return tree, kind


def require_entries(
    fields: dict[str, object], kind: str, needed: Sequence[str], optional: Sequence[str] = ("active_dims",)
) -> None:
    missing = [name for name in needed if name not in fields]
    if missing:
        raise FormatError(f"the {kind} node lacks {missing[0]!r}.")
    unknown = [name for name in fields if name not in ("kind", *needed, *optional)]
    if unknown:
        raise FormatError(f"the {kind} node has the unknown entry {short(unknown[0])}.")


def finite(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong(what, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        wrong(what, value, "a finite number")
    if not math.isfinite(number):
        wrong(what, value, "a finite number")
    return number


def positive(value: object, what: str) -> float:
    number = finite(value, what)
    if number <= 0.0:
        wrong(what, value, "positive")
    return number


def whole(value: object, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        wrong(what, value, f"a whole number from {least} to {most}")
    return value


def choice(value: object, allowed: Sequence[float], what: str) -> float:
    number = finite(value, what)
    if number not in allowed:
        wrong(what, value, f"one of {', '.join(map(str, allowed))}")
    return number


def wrong(what: str, value: object, wanted: str) -> NoReturn:
    raise FormatError(f"{what} is {short(value)}; it must be {wanted}.")


def short(value: object) -> str:
    """A value from a file, fit for one line of an error message."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} with {len(value)} entries"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "an integer of enormous size"
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
