"""Rows part after part, so that they never have to be in memory all at once, and engines that work on all parts.

``Here`` works in this process: one part after the other, where a part's own work uses all cores, or some parts at a
time, where that is done by a GPU.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np

from ..arrays import Array

#: How many rows a part of an array has; what is summed over a part is not divided any further between workers.
ROWS = 1 << 20

#: No number of a table or a file may be larger: squares and sums of them must stay finite.
LARGEST_NUMBER = 1e150


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """Some rows that follow each other. It can be sent to another process, and is read where it is worked on.

    ``more`` is what else is known of each row by name: values, or what the part itself calls such a column.
    """

    start: int
    rows: int
    more: Mapping[str, Array | str] = field(default_factory=dict, kw_only=True)

    @property
    def places(self) -> slice:
        """Where these rows are among all."""
        return slice(self.start, self.start + self.rows)

    @abstractmethod
    def inputs(self) -> Array:
        """The inputs of these rows, ``rows`` × d."""

    def own_column(self, name: str) -> Array:
        """A column that is stored beside the inputs."""
        raise KeyError(name)

    def column(self, name: str) -> Array:
        """What else is known of each row, such as its output."""
        known = self.more.get(name, name)
        return self.own_column(known) if isinstance(known, str) else known


@dataclass(frozen=True, eq=False)
class ArrayPart(Part):
    """Rows of arrays in memory."""

    values: Array

    @classmethod
    def of(cls, values: Array, columns: Mapping[str, Array], rows: int = ROWS) -> list[Part]:
        """All rows of ``values`` and ``columns``, ``rows`` in each part."""
        cuts = [slice(start, start + rows) for start in range(0, len(values), rows)]
        return [
            cls(cut.start, len(values[cut]), values[cut], more={name: column[cut] for name, column in columns.items()})
            for cut in cuts
        ]

    def inputs(self) -> Array:
        return self.values


class TablePart(Part):
    """Rows of a table of which any columns can be read; ``names`` are the columns that are inputs."""

    names: tuple[str, ...]

    @abstractmethod
    def read(self, names: Sequence[str]) -> Array:
        """The columns ``names``, rows × columns: finite numbers of usual size, or an error."""

    def inputs(self) -> Array:
        return self.read(self.names)

    def own_column(self, name: str) -> Array:
        return np.ascontiguousarray(self.read((name,))[:, 0])


Result = TypeVar("Result")

#: What is summed over all rows, by name.
Totals: TypeAlias = dict[str, Array]

#: Is told how many more rows are done.
Done: TypeAlias = Callable[[int], None]


class Engine(ABC):
    """Where the parts of a data set are worked on.

    ``work`` is a value that can be sent to another process. Parts are never split and results do not depend on where
    they are worked on, except for the order in which sums are taken.
    """

    @abstractmethod
    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        """The sum of ``work(part)`` over all parts, of which there is at least one."""

    @abstractmethod
    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        """``work(part)`` for each part, in their order."""


#: So many parts are read while a GPU works on others, which takes less time than to read one.
AT_ONCE = 8


class Here(Engine):
    """Works on the parts here: one after the other, or on a GPU, ``device``, with the next few on their way."""

    def __init__(self, device: str | None = None) -> None:
        self.device = None if device == "cpu" else device
        self.at_once = 1 if self.device is None else min(AT_ONCE, os.cpu_count() or 1)

    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        results = self.each(work, parts, done)
        total = next(results)
        for found in results:
            for name, values in found.items():
                total[name] += values
        return total

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        if self.at_once == 1:
            for part in parts:
                result = work(part)
                done(part.rows)
                yield result
            return
        to_do, under_way = iter(parts), deque[tuple[Part, Future[Result]]]()
        with ThreadPoolExecutor(self.at_once, initializer=_own_stream, initargs=(self.device,)) as pool:
            try:
                while True:
                    more = itertools.islice(to_do, self.at_once - len(under_way))
                    under_way.extend((part, pool.submit(work, part)) for part in more)
                    if not under_way:
                        return
                    part, future = under_way.popleft()
                    result = future.result()
                    done(part.rows)
                    yield result
            finally:
                pool.shutdown(cancel_futures=True)


def _own_stream(device: str | None) -> None:
    """What this thread asks of a GPU does not wait for what others ask: copies go on while it calculates."""
    import torch

    if device is not None and torch.cuda.is_available():
        torch.cuda.set_stream(torch.cuda.Stream(device))
