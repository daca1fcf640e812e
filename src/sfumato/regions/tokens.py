"""Short texts that people write, such as regions and relations, cut into tokens that know their place."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from ..errors import InputError
from .checks import shown

#: Longer texts are refused unread.
_MOST_CHARACTERS = 20_000

_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+\-−]?[0-9]+)?)
      | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
      | (?P<name>[^\W\d][\w.]*)
      | (?P<comparison><=|>=|==|!=|<>|=<|=>|[<>=≤≥≠])
      | (?P<sign>[+\-−])
      | (?P<mark>[(),/])
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A piece of a text: its kind is number, name, comparison, sign, mark, other or end."""

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
        window = "".join(c if c.isprintable() else " " for c in self.text[start:stop])
        before, after = "…" if start > 0 else "", "…" if stop < len(self.text) else ""
        caret = " " * (len(before) + place - start) + "^"
        return InputError(
            f"the {self.what} is wrong at character {place + 1}: {message}\n  {before}{window}{after}\n  {caret}"
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
        elif kind != "space":
            tokens.append(Token(kind, found, match.start()))
    return [*tokens, Token("end", "", len(text))]
