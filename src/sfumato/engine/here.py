"""The engine of one machine: part after part, in this process; a part's own work uses all cores, or the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..parts import Part
from .engine import Done, Engine, Result, Totals, added


class Here(Engine):
    """Works on the parts one after the other."""

    def total(self, work: Callable[[Part], Totals], parts: Sequence[Part], done: Done) -> Totals:
        total: Totals | None = None
        for part in parts:
            found = work(part)
            total = found if total is None else added(total, found)
            done(part.rows)
        assert total is not None
        return total

    def each(self, work: Callable[[Part], Result], parts: Sequence[Part], done: Done) -> Iterator[Result]:
        for part in parts:
            result = work(part)
            done(part.rows)
            yield result
