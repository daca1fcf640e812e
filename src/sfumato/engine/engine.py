"""An engine does the same work on every part of the data and brings the results together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from ..inputs import Array
from ..parts import Part

Result = TypeVar("Result")

#: What is summed over all rows, by name.
Totals: TypeAlias = dict[str, Array]

#: Is told how many more rows are done.
Done: TypeAlias = Callable[[int], None]


def added(first: Totals, second: Totals) -> Totals:
    """The sum of two totals; the arrays of ``first`` are used again."""
    for name, values in second.items():
        first[name] += values
    return first


class Engine(ABC):
    """Where the parts of a data set are worked on.

    ``work`` is a value that can be sent to another process. Parts are never split and results do not depend on where
    they are worked on, except for the order in which sums are taken.
    """

    @abstractmethod
    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        """The sum of ``work(part)`` over all parts."""

    @abstractmethod
    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        """``work(part)`` for each part, in their order."""
