"""Regions written as text, such as ``75 <= AGEP <= 100 and PUMA <= 2000``: a tokenizer and a recursive-descent parser.

Grammar::

    either     = both ("or" both)*
    both       = part ("and" part)*
    part       = "(" either ")" | operand (comparison operand)+
    operand    = number | column
    comparison = "<" | "<=" | "≤" | ">" | ">=" | "≥" | "=" | "=="
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..errors import InputError
from .checks import close_match, name_text, number_text, shown
from .region import Region, Union
from .shapes import Box

_MOST_PARENTHESES, _MOST_BOXES, _MOST_CHARACTERS = 40, 200, 20_000

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+\-−]?[0-9]+)?)
      | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
      | (?P<name>[^\W\d][\w.]*)
      | (?P<comparison><=|>=|==|!=|<>|=<|=>|[<>=≤≥≠])
      | (?P<sign>[+\-−])
      | (?P<open>\()
      | (?P<close>\))""",
    re.VERBOSE,
)
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


@dataclass(frozen=True)
class _Token:
    kind: str  # number, column, comparison, sign, open, close, and, or, not, end
    text: str
    place: int


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
    if not isinstance(text, str):
        raise InputError(f'the region text is {shown(text)}; give text, as in "1 <= t <= 2".')
    if isinstance(columns, (str, bytes)) or not all(isinstance(c, str) for c in columns):
        raise InputError(f"columns is {shown(columns)}; give a list of column names.")
    if not text.strip():
        raise InputError('the region text is empty; write conditions on the columns, as in "1 <= t <= 2".')
    if len(text) > _MOST_CHARACTERS:
        raise InputError(f"the region text has {len(text)} characters; at most {_MOST_CHARACTERS} are read.")
    boxes = _Parser(text, tuple(columns)).read()
    regions = [Box(bounds, free=free) for bounds in boxes]
    return regions[0] if len(regions) == 1 else Union(regions)


class _Parser:
    """Reads one text; every rule returns the boxes (bounds by column) whose union it describes."""

    def __init__(self, text: str, columns: tuple[str, ...]) -> None:
        self.text, self.columns = text, columns
        self.tokens = self._tokens()
        self.next = 0
        self.depth = 0

    def read(self) -> list[Bounds]:
        boxes = self._either()
        token = self.tokens[self.next]
        if token.kind == "close":
            raise self._mistake(token.place, "this parenthesis closes nothing; remove it, or open one before.")
        if token.kind != "end":
            raise self._mistake(token.place, f"expected `and`, `or` or the end, but found {token.text!r}.")
        return boxes

    def _either(self) -> list[Bounds]:
        boxes = self._both()
        while self._peek("or"):
            place = self._take().place
            boxes += [box for box in self._both() if box not in boxes]
            self._limit(len(boxes), place)
        return boxes

    def _both(self) -> list[Bounds]:
        boxes = self._part()
        while self._peek("and"):
            self._take()
            place = self.tokens[self.next].place
            more = self._part()
            self._limit(len(boxes) * len(more), place)
            boxes = self._meet(boxes, more, place)
        return boxes

    def _part(self) -> list[Bounds]:
        if not self._peek("open"):
            return [self._chain()]
        opening = self._take()
        self.depth += 1
        if self.depth > _MOST_PARENTHESES:
            raise self._mistake(
                opening.place, f"parentheses are nested more than {_MOST_PARENTHESES} deep; write it with fewer."
            )
        boxes = self._either()
        if self._peek("end"):
            raise self._mistake(opening.place, "this parenthesis is never closed.")
        if not self._peek("close"):
            token = self.tokens[self.next]
            raise self._mistake(
                token.place, f"expected `and`, `or` or a closing parenthesis, but found {token.text!r}."
            )
        self._take()
        self.depth -= 1
        return boxes

    def _chain(self) -> Bounds:
        start = self.tokens[self.next].place
        left, bounds = self._operand(), Bounds()
        if not self._peek("comparison"):
            what = f"the column {left!r}" if isinstance(left, str) else f"the number {number_text(left)}"
            raise self._mistake(
                self.tokens[self.next].place, f"{what} is compared with nothing; expected <=, >= or == after it."
            )
        while self._peek("comparison"):
            sign = self._comparison()
            place = self.tokens[self.next].place
            right = self._operand()
            if isinstance(left, str) and isinstance(right, str):
                raise self._mistake(place, "two columns are compared; compare a column with a number.")
            if isinstance(left, float) and isinstance(right, float):
                raise self._mistake(place, "two numbers are compared; compare a column with a number.")
            column, value = (left, right) if isinstance(left, str) else (right, left)
            relation = sign if isinstance(left, str) else _TURNED[sign]
            assert isinstance(column, str)
            assert isinstance(value, float)
            span = (-np.inf if relation == "≤" else value, np.inf if relation == "≥" else value)
            bounds = self._meet([bounds], [{column: span}], start)[0]
            left = right
        return bounds

    def _operand(self) -> str | float:
        token = self._take()
        if token.kind == "sign":
            if not self._peek("number"):
                raise self._mistake(token.place, "expected a number after the sign.")
            value = self._number(self._take())
            return value if token.text == "+" else 0.0 - value
        if token.kind == "number":
            return self._number(token)
        if token.kind == "column":
            return self._column(token)
        if token.kind == "not":
            raise self._mistake(
                token.place, "`not` is not part of the language; turn the comparison round, as in `t <= 1`."
            )
        found = "the text ends" if token.kind == "end" else f"found {token.text!r}"
        raise self._mistake(token.place, f"expected a number or a column name, but {found}.")

    def _comparison(self) -> str:
        token = self._take()
        if token.text in ("!=", "<>", "≠"):
            raise self._mistake(
                token.place, "a region cannot leave out single values; use <=, >= or ==, joined by `or`."
            )
        if token.text not in _SAME:
            raise self._mistake(token.place, f"{token.text} is not a comparison; write {token.text[::-1]}.")
        return _SAME[token.text]

    def _number(self, token: _Token) -> float:
        plain = token.text.replace("−", "-")
        try:
            value = float(plain)
        except ValueError:
            raise self._mistake(token.place, f"{token.text} is not a number; underscores go between digits.") from None
        if np.isinf(value):
            raise self._mistake(token.place, f"{token.text} is too large; leave this side of the comparison out.")
        return value

    def _column(self, token: _Token) -> str:
        if token.text in self.columns:
            return token.text
        if token.text.casefold() in ("inf", "infinity", "nan"):
            raise self._mistake(
                token.place, f"{token.text} is not a number here; leave this side of the comparison out."
            )
        known = ", ".join(name_text(c) for c in self.columns)
        raise self._mistake(
            token.place, f"unknown column {token.text!r}; known: {known}.{close_match(token.text, self.columns)}"
        )

    def _meet(self, first: list[Bounds], second: list[Bounds], place: int) -> list[Bounds]:
        """``and`` distributed over two unions of boxes; pairs of boxes that do not meet drop out."""
        met: list[Bounds] = []
        for one in first:
            for other in second:
                box = dict(one)
                for column, (lower, upper) in other.items():
                    old = box.get(column, (-np.inf, np.inf))
                    box[column] = (max(lower, old[0]), min(upper, old[1]))
                if all(lower <= upper for lower, upper in box.values()) and box not in met:
                    met.append(box)
        if not met:
            raise self._mistake(
                place, "the region is empty: no input meets this condition and those before it; did you mean `or`?"
            )
        return met

    def _limit(self, boxes: int, place: int) -> None:
        if boxes > _MOST_BOXES:
            raise self._mistake(
                place, f"the region falls into more than {_MOST_BOXES} boxes; write it with fewer alternatives."
            )

    def _peek(self, kind: str) -> bool:
        return self.tokens[self.next].kind == kind

    def _take(self) -> _Token:
        token = self.tokens[self.next]
        self.next += token.kind != "end"
        return token

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                character = self.text[place]
                hint = _HINTS.get(
                    character, f"{character!r} is not part of the language; names that hold it go in backticks."
                )
                raise self._mistake(place, hint)
            kind, text = str(match.lastgroup), match.group()
            if kind == "quoted":
                kind, text = "column", text[1:-1].replace(text[0] * 2, text[0])
            elif kind == "name":
                word = text.casefold()
                kind = word if word in ("and", "or", "not") else "column"
                if tokens and tokens[-1].kind == "number" and tokens[-1].place + len(tokens[-1].text) == place:
                    raise self._mistake(
                        place, f"{tokens[-1].text}{text} is neither a number nor a name; put names in backticks."
                    )
            if kind != "space":
                tokens.append(_Token(kind, text, place))
            place = match.end()
        return [*tokens, _Token("end", "", len(self.text))]

    def _mistake(self, place: int, expected: str) -> InputError:
        start, stop = max(place - 60, 0), place + 60
        window = "".join(c if c.isprintable() else " " for c in self.text[start:stop])
        before, after = "…" if start > 0 else "", "…" if stop < len(self.text) else ""
        caret = " " * (len(before) + place - start) + "^"
        return InputError(
            f"the region text is wrong at character {place + 1}: {expected}\n  {before}{window}{after}\n  {caret}"
        )
