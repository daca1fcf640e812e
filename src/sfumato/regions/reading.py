"""Regions read from text that people write, and from plain trees, which may come from an untrusted file.

Text, such as ``75 <= AGEP <= 100 and PUMA <= 2000``, is cut into tokens that know their place and read by a
recursive-descent parser. Its grammar::

    either     = both ("or" both)*
    both       = part ("and" part)*
    part       = "(" either ")" | operand (comparison operand)+ | column "in" "(" value ("," value)* ")"
    operand    = value | column
    value      = ["+" | "-"] number | date | level
    comparison = "<" | "<=" | "≤" | ">" | ">=" | "≥" | "=" | "=="

A date is ``1985-01-31`` or ``1985-01-31T12:30``. A word, bare or in quotes, that is no column is a level of a category;
in single quotes it is always one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..data import MemoryInputs, end_of_day, moment_text
from ..errors import FormatError, InputError
from ..text import close_match, number_text, span_text
from ..tree_checks import items, matrix, node, number, positive, text, texts, whole
from .conditions import Condition, Dates, Levels, is_empty, level_text, met
from .region import MOST_DEPTH, MOST_NODES, Intersection, Points, Region, Union, name_text, shown
from .shapes import MOST_OUTPUTS, Ball, Box, Everywhere, OutputRegion

#: Longer texts are refused unread.
_MOST_CHARACTERS = 20_000

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9])(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?)
      | (?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+\-−]?[0-9]+)?)
      | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
      | (?P<level>'(?:[^']|'')*')
      | (?P<name>[^\W\d][\w.]*)
      | (?P<comparison><=|>=|==|!=|<>|=<|=>|[<>=≤≥≠])
      | (?P<sign>[+\-−])
      | (?P<mark>[(),/])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)

_MOST_PARENTHESES, _MOST_BOXES = 40, 200

_SAME = {"<": "≤", "<=": "≤", "≤": "≤", ">": "≥", ">=": "≥", "≥": "≥", "=": "=", "==": "="}
_TURNED = {"≤": "≥", "≥": "≤", "=": "="}
_HINTS = {
    "&": "write `and`.",
    "|": "write `or`.",
    ",": "write `and` between conditions, and numbers without commas, as in 2000 or 2_000.",
    "!": "`!` is not part of the language; turn the comparison round, as in `t <= 1`.",
    "`": "the backtick is never closed.",
    '"': "the quotation mark is never closed.",
    "'": "the quotation mark is never closed.",
}

Bounds: TypeAlias = dict[str, Condition]
#: A column by its name, or what it is compared with.
Operand: TypeAlias = str | float | np.datetime64 | Levels

#: The entries that each kind of region has in a tree.
_ENTRIES = {
    "box": ("columns", "lower", "upper", "free"),
    "ball": ("centre", "radius"),
    "points": ("columns", "points"),
    "everywhere": (),
    "union": ("members",),
    "intersection": ("members",),
    "outputs": ("parts",),
}

#: A file may name columns of this many characters, and points of this many rows and columns.
_LONGEST_NAME, _MOST_POINTS, _MOST_COLUMNS = 1000, 1_000_000, 10_000


@dataclass(frozen=True)
class Token:
    """A piece of a text: its kind is number, date, name, level, comparison, sign, mark, other or end."""

    kind: str
    text: str
    place: int
    quoted: bool = False

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words of the language, and not a name in quotes."""
        return self.kind == "name" and not self.quoted and self.text.casefold() in words

    def is_mark(self, *marks: str) -> bool:
        return self.kind in ("mark", "comparison") and self.text in marks

    @property
    def number(self) -> float:
        """What a number says; NaN where it is none that floats have."""
        try:
            return float(self.text.replace("−", "-")) if self.kind == "number" else math.nan
        except ValueError:  # underscores at odd places
            return math.nan


class Tokens:
    """The tokens of ``text``, taken one after the other; ``what`` it is called in messages."""

    def __init__(self, text: str, what: str, example: str) -> None:
        if not isinstance(text, str):
            raise InputError(f"the {what} is {shown(text)}; give text, as in {example}.")
        if not text.strip():
            raise InputError(f"the {what} is empty; write one such as {example}.")
        if len(text) > _MOST_CHARACTERS:
            raise InputError(f"the {what} has {len(text)} characters; at most {_MOST_CHARACTERS} are read.")
        self.text, self.what = text, what
        self._tokens = _cut(text)
        self._next = 0

    @property
    def peek(self) -> Token:
        """The next token, which stays where it is."""
        return self._tokens[self._next]

    def take(self) -> Token:
        token = self.peek
        self._next += token.kind != "end"
        return token

    def mistake(self, place: int, message: str) -> InputError:
        """An error that shows ``place`` in the text."""
        start, stop = max(place - 60, 0), place + 60
        # a letter for a letter, so that the mark below stands under its place
        window = "".join(c if c.isprintable() else " " for c in self.text[start:stop])
        before, after = "…" if start > 0 else "", "…" if stop < len(self.text) else ""
        caret = " " * (len(before) + place - start) + "^"
        return InputError(
            f"the {self.what} is wrong at character {place + 1}: {message}",
            f"  {before}{window}{after}",
            f"  {caret}",
        )

    def unexpected(self, token: Token, expected: str) -> InputError:
        found = "the text ends" if token.kind == "end" else f"found {token.text[:60]!r}"
        return self.mistake(token.place, f"expected {expected}, but {found}.")


def _cut(text: str) -> list[Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, found = str(match.lastgroup), match.group()
        if kind == "quoted":
            tokens.append(Token("name", found[1:-1].replace(found[0] * 2, found[0]), match.start(), quoted=True))
        elif kind == "level":
            tokens.append(Token("level", found[1:-1].replace("''", "'"), match.start(), quoted=True))
        elif kind != "space":
            tokens.append(Token(kind, found, match.start()))
    return [*tokens, Token("end", "", len(text))]


def parse_region(
    text: str, columns: Sequence[str], free: str = "combinations", *, outputs: Sequence[str] = ()
) -> Region:
    """The region that ``text`` describes, over inputs with the given column names.

    Comparisons and chains of them are joined by ``and``, ``or`` and parentheses; names that are not plain words go in
    backticks or double quotes. Borders always belong to a region: ``<`` is read as ``<=``, which protects a
    little more than was asked, never less. ``free`` goes to the boxes (see ``Box``). Dates are written as
    ``1985-01-31``, and levels of a category as words: ``species = Adelie``, ``species in (Adelie, "Gentoo")``.
    ``outputs`` are names that a message may know: a region is about inputs.

    >>> parse_region("75 <= AGEP <= 100 and PUMA <= 2000", ["AGEP", "PUMA", "SEX"])
    Box({'AGEP': (75, 100), 'PUMA': (None, 2000)})
    >>> parse_region("t < 1 or t > 2", ["t"]).in_words()
    '(t ≤ 1) or (t ≥ 2)'
    >>> parse_region("1985-01-01 <= date < 1988-01-01 and species = Adelie", ["date", "species"]).in_words()
    '1985-01-01 ≤ date ≤ 1988-01-01 and species = Adelie'
    """
    if isinstance(columns, (str, bytes)) or not all(isinstance(c, str) for c in columns):
        raise InputError(f"columns is {shown(columns)}; give a list of column names.")
    tokens = Tokens(text, "region text", '"1 <= t <= 2"')
    regions = [Box(bounds, free=free) for bounds in _Parser(tokens, tuple(columns), tuple(outputs)).read()]
    return regions[0] if len(regions) == 1 else Union(regions)


def region_text(bounds: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> str:
    """The text that ``parse_region`` reads as the box with these ``bounds``, over inputs with these ``columns``.

    A column has a pair of numbers or moments, None for an open side, or a list of the levels of a category.

    >>> region_text({"date": (np.datetime64("1985-01-01"), None), "site": ["A", "site", "7"]}, ["date", "site"])
    "date ≥ 1985-01-01 and site in (A, 'site', '7')"
    """
    parts = []
    for column, said in bounds.items():
        if isinstance(said, list):
            levels = [_level_apart(level, columns) for level in said]
            of = name_text(column)
            parts.append(f"{of} = {levels[0]}" if len(levels) == 1 else f"{of} in ({', '.join(levels)})")
        else:
            low, high = (None if side is None else _side_text(side) for side in said)
            parts.append(span_text(name_text(column), low, high))
    return " and ".join(part for part in parts if part)


def _level_apart(level: str, columns: Sequence[str]) -> str:
    """A level that cannot be taken for a column or a number."""
    bare = level not in columns and level_text(level) == level and not level[:1].isdigit()
    return level if bare else "'" + level.replace("'", "''") + "'"


def _side_text(side: Any) -> str:
    return moment_text(side) if isinstance(side, np.datetime64) else number_text(side)


class _Parser:
    """Reads one text; every rule returns the boxes (bounds by column) whose union it describes."""

    def __init__(self, tokens: Tokens, columns: tuple[str, ...], outputs: tuple[str, ...] = ()) -> None:
        self.tokens, self.columns, self.outputs = tokens, columns, outputs
        self.depth = 0

    def read(self) -> list[Bounds]:
        boxes = self._either()
        token = self._peek()
        if token.is_mark(")"):
            raise self._mistake(token, "this parenthesis closes nothing; remove it, or open one before.")
        if token.kind != "end":
            raise self.tokens.unexpected(token, "`and`, `or` or the end")
        return boxes

    def _either(self) -> list[Bounds]:
        boxes = self._both()
        while self._peek().is_word("or"):
            word = self.tokens.take()
            boxes += [box for box in self._both() if box not in boxes]
            self._limit(len(boxes), word)
        return boxes

    def _both(self) -> list[Bounds]:
        boxes = self._part()
        while self._peek().is_word("and"):
            self.tokens.take()
            first = self._peek()
            more = self._part()
            self._limit(len(boxes) * len(more), first)
            boxes = self._meet(boxes, more, first)
        return boxes

    def _part(self) -> list[Bounds]:
        if not self._peek().is_mark("("):
            return self._chain()
        opening = self.tokens.take()
        self.depth += 1
        if self.depth > _MOST_PARENTHESES:
            raise self._mistake(
                opening, f"parentheses are nested more than {_MOST_PARENTHESES} deep; write it with fewer."
            )
        boxes = self._either()
        closing = self._peek()
        if closing.kind == "end":
            raise self._mistake(opening, "this parenthesis is never closed.")
        if not closing.is_mark(")"):
            raise self.tokens.unexpected(closing, "`and`, `or` or a closing parenthesis")
        self.tokens.take()
        self.depth -= 1
        return boxes

    def _chain(self) -> list[Bounds]:
        start = self._peek()
        left, boxes = self._operand(), [Bounds()]
        if self._peek().is_word("in"):
            return self._listed(start, left)
        if self._peek().kind != "comparison":
            column = self._column(start) if isinstance(left, Levels) else left
            what = f"the column {column!r}" if isinstance(column, str) else f"the value {start.text}"
            raise self._mistake(self._peek(), f"{what} is compared with nothing; expected <=, >= or == after it.")
        first = start
        while self._peek().kind == "comparison":
            sign = self._comparison()
            second = self._peek()
            right = self._operand()
            if isinstance(left, str) == isinstance(right, str):
                for token, operand in ((first, left), (second, right)):
                    if isinstance(operand, Levels):
                        self._column(token)
                if not isinstance(left, str):
                    raise self._mistake(second, "two numbers or dates are compared; compare a column with one.")
                raise self._mistake(
                    second, "two columns are compared; compare a column with a number, or put a level in single quotes."
                )
            if isinstance(left, str):
                said = {left: self._condition(sign, right, second)}
            else:
                said = {str(right): self._condition(_TURNED[sign], left, first)}
            boxes = self._meet(boxes, [said], start)
            left, first = right, second
        return boxes

    def _listed(self, start: Token, column: Operand) -> list[Bounds]:
        """``column in (value, …)``: one box for all levels, or one for each number or date."""
        word = self.tokens.take()
        if not isinstance(column, str):
            column = self._column(start)
        if not self._peek().is_mark("("):
            raise self.tokens.unexpected(self._peek(), f"a list of values after `in`, as in {column} in (a, b)")
        opening, conditions = self.tokens.take(), list[Condition]()
        while True:
            token = self._peek()
            value = self._operand()
            given = Levels((value,)) if isinstance(value, str) else value  # a level may be called like a column
            conditions.append(self._condition("=", given, token))
            after = self.tokens.take()
            if after.is_mark(")"):
                break
            if after.kind == "end":
                raise self._mistake(opening, "this parenthesis is never closed.")
            if not after.is_mark(","):
                raise self.tokens.unexpected(after, "a comma or a closing parenthesis")
        self._limit(len(conditions), word)
        names = [name for condition in conditions if isinstance(condition, Levels) for name in condition.names]
        others = [Bounds({column: one}) for one in dict.fromkeys(conditions) if not isinstance(one, Levels)]
        return [*([Bounds({column: Levels(tuple(dict.fromkeys(names)))})] if names else []), *others]

    def _condition(self, sign: str, value: Operand, token: Token) -> Condition:
        if isinstance(value, Levels):
            if sign != "=":
                if not token.quoted:
                    self._column(token, " A level of a category has no order: write =.")
                raise self._mistake(token, f"{token.text!r} is a level of a category, which has no order; write =.")
            return value
        if isinstance(value, np.datetime64):
            last = end_of_day(value) if sign == "=" else value  # a day by itself is all of it
            return Dates(None if sign == "≤" else value, None if sign == "≥" else last)
        assert isinstance(value, float)
        return (-math.inf if sign == "≤" else value, math.inf if sign == "≥" else value)

    def _operand(self) -> Operand:
        token = self.tokens.take()
        if token.kind == "sign":
            if self._peek().kind != "number":
                raise self._mistake(token, "expected a number after the sign.")
            value = self._number(self.tokens.take())
            return value if token.text == "+" else 0.0 - value
        if token.kind == "number":
            return self._number(token)
        if token.kind == "date":
            return self._date(token)
        if token.is_word("not"):
            raise self._mistake(token, "`not` is not part of the language; turn the comparison round, as in `t <= 1`.")
        if token.kind == "name" and not token.is_word("and", "or", "in"):
            return token.text if token.text in self.columns else self._level(token)
        if token.kind == "level":
            return Levels((token.text,))
        raise self.tokens.unexpected(token, "a number or a column name")

    def _level(self, token: Token) -> Levels:
        if token.text.casefold() in ("inf", "infinity", "nan") and not token.quoted:
            raise self._mistake(token, f"{token.text} is not a number here; leave this side of the comparison out.")
        return Levels((token.text,))

    def _date(self, token: Token) -> np.datetime64:
        try:
            return np.datetime64(token.text, "us")
        except ValueError:
            raise self._mistake(token, f"{token.text} is no date; dates are written as in 1985-01-31.") from None

    def _comparison(self) -> str:
        token = self.tokens.take()
        if token.text in ("!=", "<>", "≠"):
            raise self._mistake(
                token,
                "a region cannot leave out single values; use <=, >= or ==, joined by `or`, or levels: `in (a, b)`.",
            )
        if token.text not in _SAME:
            raise self._mistake(token, f"{token.text} is not a comparison; write {token.text[::-1]}.")
        return _SAME[token.text]

    def _number(self, token: Token) -> float:
        after = self.tokens.peek
        if after.kind == "name" and not after.quoted and after.place == token.place + len(token.text):
            raise self._mistake(
                after, f"{token.text}{after.text} is neither a number nor a name; put names in backticks."
            )
        if math.isnan(token.number):
            raise self._mistake(token, f"{token.text} is not a number; underscores go between digits.")
        if math.isinf(token.number):
            raise self._mistake(token, f"{token.text} is too large; leave this side of the comparison out.")
        return token.number

    def _column(self, token: Token, more: str = "") -> str:
        if token.text in self.columns and token.kind == "name":
            return token.text
        if token.kind == "level":
            raise self._mistake(token, f"{token.text!r} is a level; put column names in backticks or double quotes.")
        known = ", ".join(name_text(c) for c in self.columns)
        if token.text in self.outputs:
            raise self._mistake(
                token,
                f"{token.text!r} is the output, and regions are about inputs ({known}): whether a row is protected "
                "must not depend on its secret value. Say which inputs are sensitive.",
            )
        hint = close_match(token.text, self.columns)
        raise self._mistake(token, f"unknown column {token.text!r}; known: {known}.{hint}{more}")

    def _meet(self, first: list[Bounds], second: list[Bounds], token: Token) -> list[Bounds]:
        """``and`` distributed over two unions of boxes; pairs of boxes that do not meet drop out."""
        found: list[Bounds] = []
        for one in first:
            for other in second:
                box = dict(one)
                for column, condition in other.items():
                    both = met(box.get(column, condition), condition)
                    if both is None:
                        raise self._mistake(
                            token, f"{column!r} is compared with a number here and with a date or a level there."
                        )
                    box[column] = both
                if not any(is_empty(condition) for condition in box.values()) and box not in found:
                    found.append(box)
        if not found:
            raise self._mistake(
                token, "the region is empty: no input meets this condition and those before it; did you mean `or`?"
            )
        return found

    def _limit(self, boxes: int, token: Token) -> None:
        if boxes > _MOST_BOXES:
            raise self._mistake(
                token, f"the region falls into more than {_MOST_BOXES} boxes; write it with fewer alternatives."
            )

    def _peek(self) -> Token:
        token = self.tokens.peek
        if token.kind == "other" or token.is_mark(",", "/"):
            unknown = f"{token.text!r} is not part of the language; names that hold it go in backticks."
            raise self._mistake(token, _HINTS.get(token.text, unknown))
        return token

    def _mistake(self, token: Token, message: str) -> InputError:
        return self.tokens.mistake(token.place, message)


def region_from_tree(tree: object) -> Region:
    """The region that ``Region.to_tree`` wrote; anything else raises ``FormatError``, and no other exception."""
    try:
        return _Reader().region(tree, 1)
    except InputError as error:  # what our own classes refuse is, in a file, damage
        raise FormatError(f"the region is wrong: {error}") from None


@dataclass
class _Reader:
    """Reads one tree and counts its nodes."""

    nodes: int = field(default=0, init=False)

    def region(self, tree: object, depth: int) -> Region:
        self.nodes += 1
        if depth > MOST_DEPTH or self.nodes > MOST_NODES:
            raise FormatError(f"the region is nested more than {MOST_DEPTH} deep or has more than {MOST_NODES} parts.")
        kind, entries = node(tree, "region", _ENTRIES)
        if kind in ("union", "intersection"):
            members = [self.region(member, depth + 1) for member in items(entries["members"], "members", least=1)]
            return Union(members) if kind == "union" else Intersection(members)
        if kind == "outputs":
            return self._by_output(entries["parts"], depth)
        return _SHAPES[kind](entries)

    def _by_output(self, listed: object, depth: int) -> Region:
        parts: dict[int, Region] = {}
        for pair in items(listed, "parts", least=1, most=MOST_OUTPUTS):
            given, part = items(pair, "an output and its region", 2, 2)
            output = whole(given, "the number of an output", 0, MOST_OUTPUTS - 1)
            if output in parts:
                raise FormatError(f"the region names output {output} twice.")
            parts[output] = self.region(part, depth + 1)
        return OutputRegion(parts)


def _box(entries: dict[str, Any]) -> Region:
    lower, upper = (_bounds(entries[side], f"{side} bounds") for side in ("lower", "upper"))
    columns, free = _columns(entries), text(entries["free"], "free", longest=20)
    if columns is None:
        return Box(lower, upper, free=free)
    if len(columns) != len(lower) or len(columns) != len(upper):
        raise FormatError(f"the box has {len(columns)} columns, {len(lower)} lower and {len(upper)} upper bounds.")
    return Box(dict(zip(columns, zip(lower, upper, strict=True), strict=True)), free=free)


def _bounds(values: object, what: str) -> list[float | None]:
    return [None if value is None else number(value, what) for value in items(values, what, least=1)]


def _ball(entries: dict[str, Any]) -> Region:
    centre = [number(value, "centre") for value in items(entries["centre"], "centre", least=1)]
    return Ball(centre, positive(entries["radius"], "radius"))


def _points(entries: dict[str, Any]) -> Region:
    values = Points(matrix(entries["points"], "points", _MOST_POINTS, _MOST_COLUMNS)).values
    columns = _columns(entries)
    if columns is not None and len(columns) != values.shape[1]:
        raise FormatError(f"the points have {values.shape[1]} numbers each, but {len(columns)} columns.")
    return Points(MemoryInputs(values, columns))


def _columns(entries: dict[str, Any]) -> tuple[str, ...] | None:
    columns = entries["columns"]
    return None if columns is None else texts(columns, "columns", _LONGEST_NAME, distinct=True)


_SHAPES = {"box": _box, "ball": _ball, "points": _points, "everywhere": lambda _: Everywhere()}
