"""What can be said of each column of a table before any is chosen: what it holds, its unit, what is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from ..errors import InputError
from ..text import counted, listed, name_and_unit, number_text
from .csv_files import TableAsRead
from .encoding import Kind, as_column
from .tables import as_values

#: What columns hold, in the words of the page.
_HOLDS: dict[Kind, Literal["numbers", "dates", "text"]] = {"number": "numbers", "date": "dates", "category": "text"}

#: So many texts of a column are named.
_NAMED = 6


@dataclass(frozen=True)
class ColumnFacts:
    """A column by its ``name``: what it holds, the ``unit`` that its name ends in, and its values in a few numbers.

    ``least`` and ``largest`` are numbers, or dates as text; of text they are None, and ``examples`` has the first
    values. A ``doubt`` says why it cannot be an input as it stands; where nothing is wrong it is empty. A ``note`` says
    how it was read where that is not plain to see.
    """

    name: str
    kind: Literal["numbers", "dates", "text"]
    unit: str
    missing: int
    distinct: int
    least: float | str | None = None
    largest: float | str | None = None
    examples: tuple[str, ...] = ()
    note: str = ""
    doubt: str = ""

    @property
    def values_in_words(self) -> tuple[str, ...]:
        """For people: the least and the largest value, or, of text, how many there are and the first few."""
        if self.kind == "text":
            return (f"{counted(self.distinct, 'text')}: {listed(self.examples, _NAMED)}" if self.examples else "text",)
        return tuple(
            "–" if end is None else end if isinstance(end, str) else number_text(float(f"{end:.6g}"))
            for end in (self.least, self.largest)
        )


def column_facts(table: TableAsRead) -> tuple[ColumnFacts, ...]:
    """What each column of a table holds, decided as when it is an input."""
    frame = table.frame
    return tuple(_facts(table, str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns))


def _facts(table: TableAsRead, name: str, values: pd.Series[Any]) -> ColumnFacts:
    there = values.dropna()
    doubt = "" if len(there) else "it has no value"
    if list(map(str, table.frame.columns)).count(name) > 1:
        doubt = "another column has the same name; give each its own"
    unit, doubt = name_and_unit(name)[1].strip(), doubt or table.doubts.get(name, "")
    known: dict[str, Any] = {"missing": len(values) - len(there), "note": table.notes.get(name, "")}
    try:
        there = as_values(there, name, "the table", must_be_numbers=False)
        column = as_column(name, there, "the table")
    except InputError as error:
        texts = _texts(there)
        return ColumnFacts(name, "text", unit, distinct=len(texts), doubt=doubt or str(error), **_first(texts), **known)
    facts = ColumnFacts(name, _HOLDS[column.kind], unit, distinct=int(there.nunique()), doubt=doubt, **known)
    if column.kind == "category":
        return replace(facts, **_first(column.levels))
    if there.empty:
        return facts
    numbers = column.encode(there, f"the table, column {name!r}", name)[:, 0]
    ends = (float(numbers.min()), float(numbers.max()))
    least, largest = ends if column.kind == "number" else map(column.date_in_words, ends)
    return replace(facts, least=least, largest=largest)


def _texts(values: pd.Series[Any]) -> Any:
    """What stands in a column, once."""
    try:
        return values.unique()
    except TypeError:  # lists, for example
        return values.astype(str).unique()


def _first(texts: Any) -> dict[str, Any]:
    return {"examples": tuple(str(text)[:60] for text in texts[:_NAMED])}
