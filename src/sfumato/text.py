"""Texts that every room writes alike: what may be shown, exact numbers, lists, hints at a misspelt name, JSON."""

from __future__ import annotations

import difflib
import math
import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

#: Letters and marks that Python calls printable, and that no screen shows: fillers, joiners, selectors of variants.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def shown(text: object) -> str:
    """One line that a screen, a page or a picture may show, whatever a name in it holds.

    Characters that cannot be seen, or that do something (controls, line breaks, changes of direction), are written as
    Python writes them; a space is a space. Every place that shows text calls this, so that what calls it need not.

    >>> shown("speed [m/s]"), shown("y\\nThe promise holds.\\x1b[2J")
    ('speed [m/s]', 'y\\\\nThe promise holds.\\\\x1b[2J')
    """
    text = str(text)
    if not text.isprintable():
        text = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return text if text.isascii() else _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def shown_lines(lines: Iterable[object]) -> str:
    """A text of several lines, each of them as it may be shown."""
    return "\n".join(map(shown, lines))


def number_text(value: float) -> str:
    """The shortest text that reads back as the same number.

    >>> [number_text(value) for value in (2.0, 0.1, 1e300)]
    ['2', '0.1', '1e+300']
    """
    value = float(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)


def close_match(word: str, known: Iterable[str]) -> str:
    """ " Did you mean …?" where a known name is close to ``word``, else nothing.

    >>> close_match("Agep", ["AGEP", "PUMA"])
    " Did you mean 'AGEP'?"
    """
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def some_of(words: Sequence[Any], most: int) -> str:
    """The first ``most`` words, and how many there are if that is not all.

    >>> some_of(["a", "b", "c"], 2)
    'a, b, … (3 in all)'
    """
    first = ", ".join(str(word) for word in words[:most])
    return first if len(words) <= most else f"{first}, … ({len(words)} in all)"


def listed(words: Sequence[str], most: int = 12, between: str = ", ") -> str:
    """The first ``most`` words, and how many more there are.

    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ('a, b, c', 'a, b and 1 more')
    """
    rest = len(words) - most
    return between.join(words[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(count: int, one: str) -> str:
    """
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def span_text(name: str, lower: str | None, upper: str | None) -> str:
    """What stands between two ends, with a side left out where it is open; nothing where both are.

    >>> span_text("t", "1", "2"), span_text("t", "1", "1"), span_text("t", None, "2")
    ('1 ≤ t ≤ 2', 't = 1', 't ≤ 2')
    """
    if lower is not None and lower == upper:
        return f"{name} = {lower}"
    if lower is None:
        return "" if upper is None else f"{name} ≤ {upper}"
    return f"{name} ≥ {lower}" if upper is None else f"{lower} ≤ {name} ≤ {upper}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table as lines: the first column to the left, the others to the right.

    >>> aligned([("way", "noise"), ("a", "10")])
    ['way  noise', 'a       10']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    return lines


def wrapped(text: str, width: int = 80) -> list[str]:
    """A text as lines that a small screen can show; a number and its % stay together.

    All lines but the first are indented: a long name cannot look like the start of another paragraph.

    >>> wrapped("one two 3 %", 9)
    ['one two', '  3 %']
    """
    whole = shown(text).replace(" %", "\0%")
    lines = textwrap.wrap(whole, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines] or [""]


#: A unit is what stands in brackets at the end of a name; nothing else is guessed.
_UNIT = re.compile(r"^(.*\S)\s*(?:\[([^\[\]]+)\]|\(([^()]+)\))$")


def name_and_unit(name: str) -> tuple[str, str]:
    """A name without its unit, and the unit with a space before it, to be set after a number.

    >>> name_and_unit("body mass [g]"), name_and_unit("income ($)"), name_and_unit("body_mass_g")
    (('body mass', ' g'), ('income', ' $'), ('body_mass_g', ''))
    """
    found = _UNIT.match(name)
    return (name, "") if found is None else (found[1], f" {found[2] or found[3]}")


def one_line(error: Exception) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def plain(value: Any) -> Any:
    """``value`` in numbers, texts, lists and dicts: paths and dates are texts; infinity and NaN, None.

    >>> plain({"ratio": float("nan"), "inputs": (1, 2.5)})
    {'ratio': None, 'inputs': [1, 2.5]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
