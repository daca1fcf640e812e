"""How one output follows from another, written as text, such as ``v = d(r)/d(t)``: a parser.

Grammar::

    relation   = name "=" (derivative | mean | integral)
    derivative = "d" "(" name ")" "/" "d" "(" name ")"
    mean       = "mean" "(" name ["where" region] ")"
    integral   = "integral" "(" name "from" corner "to" corner ")"
    corner     = number | name "=" number ("," name "=" number)*
    number     = ["+" | "-"] digits

A region is what ``parse_region`` reads. Names that are not plain words go in backticks or double quotes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from ..data import as_inputs
from ..errors import InputError
from ..regions import Box, Region, Token, Tokens, parse_region
from .functionals import Average, Derivative, Functional, Integral

EXAMPLES = '"v = d(r)/d(t)", "m = mean(r where 1 <= t <= 2)" or "q = integral(r from 0 to 1)"'

#: A corner of a box: one number, or one for each named column.
Corner = float | dict[str, float]


@dataclass(frozen=True)
class Relation(ABC):
    """What ``text`` says: the quantity ``name`` follows from the output ``of``."""

    name: str
    of: str
    text: str = field(compare=False)

    @property
    @abstractmethod
    def takes_input(self) -> bool:
        """Whether the quantity has a value at every input; a mean or an integral is one number."""

    @abstractmethod
    def functional(self, X: pd.DataFrame) -> Functional:
        """As a functional of the function behind ``of``; ``X`` has the inputs of the data."""

    @abstractmethod
    def where(self, X: pd.DataFrame) -> Region | None:
        """Where it looks at that function (None: everywhere): rows in there tell of it."""

    def wrong(self, expected: str) -> InputError:
        return InputError(f"the relation {self.text!r} is wrong: {expected}")

    def known_column(self, column: str, columns: Sequence[str]) -> str:
        if column not in columns:
            raise self.wrong(f"{column!r} is not an input; the inputs are {', '.join(columns)}.")
        return column


@dataclass(frozen=True)
class DerivativeOf(Relation):
    """``v = d(r)/d(t)``."""

    column: str = ""

    takes_input = True

    def functional(self, X: pd.DataFrame) -> Functional:
        return Derivative(self.known_column(self.column, list(X.columns)))

    def where(self, X: pd.DataFrame) -> Region | None:
        return None


@dataclass(frozen=True)
class MeanOf(Relation):
    """``m = mean(r where 1 <= t <= 2)``: over the rows of the data in the region, or over all of them."""

    region: str | None = None

    takes_input = False

    def functional(self, X: pd.DataFrame) -> Functional:
        where = self.where(X)
        if where is None:
            return Average(X)
        inputs = as_inputs(X)
        inside = where.bind(inputs).contains(inputs.values)
        if not inside.any():
            raise self.wrong(f"no row of the data is in the region {self.region}; give a region with some.")
        return Average(inputs.select(inside))

    def where(self, X: pd.DataFrame) -> Region | None:
        if self.region is None:
            return None
        try:
            return parse_region(self.region, list(X.columns))
        except InputError as error:
            raise self.wrong(str(error)) from error


@dataclass(frozen=True)
class IntegralOf(Relation):
    """``q = integral(r from 0 to 1)``."""

    lower: Corner = 0.0
    upper: Corner = 1.0

    takes_input = False

    def functional(self, X: pd.DataFrame) -> Functional:
        lower, upper = (self._corner(corner, list(X.columns)) for corner in (self.lower, self.upper))
        try:
            return Integral([lower], [upper])
        except InputError as error:
            raise self.wrong(str(error)) from error

    def where(self, X: pd.DataFrame) -> Region | None:
        columns = list(X.columns)
        return Box(self._corner(self.lower, columns), self._corner(self.upper, columns))

    def _corner(self, corner: Corner, columns: list[str]) -> list[float]:
        if isinstance(corner, float):
            if len(columns) > 1:
                asked = ",".join(f"{name}=0" for name in columns)
                raise self.wrong(f"there are {len(columns)} inputs; give a bound for each, as in `from {asked} to …`.")
            return [corner]
        for name in corner:
            self.known_column(name, columns)
        missing = [name for name in columns if name not in corner]
        if missing:
            raise self.wrong(f"it gives no bound for the input {missing[0]!r}; give one for each of them.")
        return [corner[name] for name in columns]


def parse_relation(text: str) -> Relation:
    """The relation that ``text`` describes.

    >>> parse_relation("v = d(r)/d(t)").column
    't'
    >>> parse_relation("m = mean(r where 1 <= t <= 2)").region
    '1 <= t <= 2'
    >>> parse_relation("q = integral(r from a=0,b=0 to a=1,b=2)").upper
    {'a': 1.0, 'b': 2.0}
    """
    return _Parser(Tokens(text, "relation text", EXAMPLES)).read()


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.text = tokens, tokens.text

    def read(self) -> Relation:
        name = self._name("the name of the new quantity")
        self._mark("=", "after the name")
        kind = self.tokens.take()
        if kind.is_word("d"):
            relation = self._derivative(name)
        elif kind.is_word("mean"):
            relation = self._mean(name)
        elif kind.is_word("integral"):
            relation = self._integral(name)
        else:
            raise self._unexpected(kind, "`d(…)/d(…)`, `mean(…)` or `integral(…)`")
        last = self.tokens.take()
        if last.kind != "end":
            raise self._unexpected(last, "the end")
        return relation

    def _derivative(self, name: str) -> Relation:
        of = self._in_parentheses("the name of an output")
        self._mark("/", "as in d(r)/d(t)")
        token = self.tokens.take()
        if not token.is_word("d"):
            raise self._unexpected(token, "`d(…)` with the name of an input, as in d(r)/d(t)")
        return DerivativeOf(name, of, self.text, self._in_parentheses("the name of an input"))

    def _mean(self, name: str) -> Relation:
        self._mark("(", "after mean")
        of = self._name("the name of an output")
        if not self.tokens.peek.is_word("where"):
            self._mark(")", "or `where` with a region")
            return MeanOf(name, of, self.text)
        self.tokens.take()
        return MeanOf(name, of, self.text, self._region())

    def _integral(self, name: str) -> Relation:
        self._mark("(", "after integral")
        of = self._name("the name of an output")
        self._word("from")
        lower = self._corner()
        self._word("to")
        upper = self._corner()
        self._mark(")", "at the end")
        if isinstance(lower, dict) and isinstance(upper, dict) and lower.keys() != upper.keys():
            raise InputError(f"the relation {self.text!r} is wrong: its two corners name different inputs.")
        return IntegralOf(name, of, self.text, lower, upper)

    def _region(self) -> str:
        """The text up to the parenthesis that closes the mean; what it says is for ``parse_region`` to judge."""
        start, depth = self.tokens.peek.place, 0
        while depth >= 0:
            token = self.tokens.take()
            if token.kind == "end":
                raise self._unexpected(token, "a closing parenthesis")
            depth += token.is_mark("(") - token.is_mark(")")
        region = self.text[start : token.place].strip()
        if not region:
            raise self._unexpected(token, "a region after `where`, such as 1 <= t <= 2")
        return region

    def _corner(self) -> Corner:
        if self.tokens.peek.kind in ("number", "sign"):
            return self._number()
        corner: dict[str, float] = {}
        while True:
            token = self.tokens.peek
            column = self._name("a number, or the name of an input as in t=1")
            if column in corner:
                raise self._unexpected(token, "each input once")
            self._mark("=", f"and a number after {column!r}")
            corner[column] = self._number()
            if not self.tokens.peek.is_mark(","):
                return corner
            self.tokens.take()

    def _number(self) -> float:
        sign = -1.0 if self.tokens.peek.kind == "sign" and self.tokens.peek.text != "+" else 1.0
        if self.tokens.peek.kind == "sign":
            self.tokens.take()
        token = self.tokens.take()
        if not math.isfinite(token.number):
            raise self._unexpected(token, "a number")
        return sign * token.number

    def _in_parentheses(self, what: str) -> str:
        self._mark("(", f"and {what}")
        name = self._name(what)
        self._mark(")", f"after {name!r}")
        return name

    def _name(self, what: str) -> str:
        token = self.tokens.take()
        if token.kind != "name":
            raise self._unexpected(token, what)
        return token.text

    def _word(self, word: str) -> None:
        token = self.tokens.take()
        if not token.is_word(word):
            raise self._unexpected(token, f"`{word}`")

    def _mark(self, mark: str, where: str) -> None:
        token = self.tokens.take()
        if not token.is_mark(mark):
            raise self._unexpected(token, f"`{mark}` {where}")

    def _unexpected(self, token: Token, expected: str) -> InputError:
        return self.tokens.unexpected(token, f"{expected} (write for example {EXAMPLES})")
