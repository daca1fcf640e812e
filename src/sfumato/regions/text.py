"""Regions written as text, such as ``75 <= AGEP <= 100 and PUMA <= 2000``: a recursive-descent parser.

Grammar::

    either     = both ("or" both)*
    both       = part ("and" part)*
    part       = "(" either ")" | operand (comparison operand)+
    operand    = ["+" | "-"] number | column
    comparison = "<" | "<=" | "≤" | ">" | ">=" | "≥" | "=" | "=="
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ..errors import InputError
from ..text import close_match, number_text
from .checks import name_text, shown
from .region import Region, Union
from .shapes import Box
from .tokens import Token, Tokens

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
    "'": "put column names in backticks or double quotes.",
}

Bounds: TypeAlias = dict[str, tuple[float, float]]


def parse_region(text: str, columns: Sequence[str], free: str = "combinations") -> Region:
    """The region that ``text`` describes, over inputs with the given column names.

    Comparisons and chains of them are joined by ``and``, ``or`` and parentheses; names that are not plain words go in
    backticks or double quotes. Borders always belong to a region: ``<`` is read as ``<=``, which protects a
    little more than was asked, never less. ``free`` goes to the boxes (see ``Box``).

    >>> parse_region("75 <= AGEP <= 100 and PUMA <= 2000", ["AGEP", "PUMA", "SEX"])
    Box({'AGEP': (75, 100), 'PUMA': (None, 2000)})
    >>> parse_region("t < 1 or t > 2", ["t"]).in_words()
    '(t ≤ 1) or (t ≥ 2)'
    """
    if isinstance(columns, (str, bytes)) or not all(isinstance(c, str) for c in columns):
        raise InputError(f"columns is {shown(columns)}; give a list of column names.")
    tokens = Tokens(text, "region text", '"1 <= t <= 2"')
    regions = [Box(bounds, free=free) for bounds in _Parser(tokens, tuple(columns)).read()]
    return regions[0] if len(regions) == 1 else Union(regions)


class _Parser:
    """Reads one text; every rule returns the boxes (bounds by column) whose union it describes."""

    def __init__(self, tokens: Tokens, columns: tuple[str, ...]) -> None:
        self.tokens, self.columns = tokens, columns
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
            return [self._chain()]
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

    def _chain(self) -> Bounds:
        start = self._peek()
        left, bounds = self._operand(), Bounds()
        if self._peek().kind != "comparison":
            what = f"the column {left!r}" if isinstance(left, str) else f"the number {number_text(left)}"
            raise self._mistake(self._peek(), f"{what} is compared with nothing; expected <=, >= or == after it.")
        while self._peek().kind == "comparison":
            sign = self._comparison()
            second = self._peek()
            right = self._operand()
            if isinstance(left, str) and isinstance(right, float):
                bounds = self._meet([bounds], [{left: _span(sign, right)}], start)[0]
            elif isinstance(left, float) and isinstance(right, str):
                bounds = self._meet([bounds], [{right: _span(_TURNED[sign], left)}], start)[0]
            else:
                what = "columns" if isinstance(left, str) else "numbers"
                raise self._mistake(second, f"two {what} are compared; compare a column with a number.")
            left = right
        return bounds

    def _operand(self) -> str | float:
        token = self.tokens.take()
        if token.kind == "sign":
            if self._peek().kind != "number":
                raise self._mistake(token, "expected a number after the sign.")
            value = self._number(self.tokens.take())
            return value if token.text == "+" else 0.0 - value
        if token.kind == "number":
            return self._number(token)
        if token.is_word("not"):
            raise self._mistake(token, "`not` is not part of the language; turn the comparison round, as in `t <= 1`.")
        if token.kind == "name" and not token.is_word("and", "or"):
            return self._column(token)
        raise self.tokens.unexpected(token, "a number or a column name")

    def _comparison(self) -> str:
        token = self.tokens.take()
        if token.text in ("!=", "<>", "≠"):
            raise self._mistake(token, "a region cannot leave out single values; use <=, >= or ==, joined by `or`.")
        if token.text not in _SAME:
            raise self._mistake(token, f"{token.text} is not a comparison; write {token.text[::-1]}.")
        return _SAME[token.text]

    def _number(self, token: Token) -> float:
        after = self._peek()
        if after.kind == "name" and not after.quoted and after.place == token.place + len(token.text):
            raise self._mistake(
                after, f"{token.text}{after.text} is neither a number nor a name; put names in backticks."
            )
        if math.isnan(token.number):
            raise self._mistake(token, f"{token.text} is not a number; underscores go between digits.")
        if math.isinf(token.number):
            raise self._mistake(token, f"{token.text} is too large; leave this side of the comparison out.")
        return token.number

    def _column(self, token: Token) -> str:
        if token.text in self.columns:
            return token.text
        if token.text.casefold() in ("inf", "infinity", "nan"):
            raise self._mistake(token, f"{token.text} is not a number here; leave this side of the comparison out.")
        known = ", ".join(name_text(c) for c in self.columns)
        hint = close_match(token.text, self.columns)
        raise self._mistake(token, f"unknown column {token.text!r}; known: {known}.{hint}")

    def _meet(self, first: list[Bounds], second: list[Bounds], token: Token) -> list[Bounds]:
        """``and`` distributed over two unions of boxes; pairs of boxes that do not meet drop out."""
        met: list[Bounds] = []
        for one in first:
            for other in second:
                box = dict(one)
                for column, (lower, upper) in other.items():
                    old = box.get(column, (-math.inf, math.inf))
                    box[column] = (max(lower, old[0]), min(upper, old[1]))
                if all(lower <= upper for lower, upper in box.values()) and box not in met:
                    met.append(box)
        if not met:
            raise self._mistake(
                token, "the region is empty: no input meets this condition and those before it; did you mean `or`?"
            )
        return met

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


def _span(sign: str, value: float) -> tuple[float, float]:
    return (-math.inf if sign == "≤" else value, math.inf if sign == "≥" else value)
