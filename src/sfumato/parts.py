"""Rows of data that are worked on part after part, so that they never have to be in memory all at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .inputs import Array, Inputs

#: How many rows a part of an array has; what is summed over a part is not divided any further between workers.
ROWS = 1 << 20


class Part(ABC):
    """Some rows that follow each other. It can be sent to another process, and is read where it is worked on."""

    start: int
    rows: int

    @abstractmethod
    def inputs(self) -> Array:
        """The inputs of these rows, ``rows`` × d."""

    @abstractmethod
    def column(self, name: str) -> Array:
        """What else is known of each row, such as its output."""


@dataclass(frozen=True, eq=False)
class ArrayPart(Part):
    """Rows of arrays in memory."""

    start: int
    rows: int
    values: Array
    columns: Mapping[str, Array] = field(default_factory=dict)

    def inputs(self) -> Array:
        return self.values

    def column(self, name: str) -> Array:
        return self.columns[name]


def parts_of(inputs: Inputs, columns: Mapping[str, Array] | None = None, rows: int = ROWS) -> Sequence[Part]:
    """``inputs`` part after part, with what else is known of each row under its name."""
    own = getattr(inputs, "parts", None)
    if own is not None:
        return list(own(dict(columns or {})))
    each = []
    for start in range(0, len(inputs), rows):
        stop = min(start + rows, len(inputs))
        more = {name: values[start:stop] for name, values in (columns or {}).items()}
        each.append(ArrayPart(start, stop - start, inputs.values[start:stop], more))
    return each
