"""One look at all rows that are stored somewhere: it checks them, and keeps a sample and the bounds of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from .inputs import Array, Index, Inputs, sample_places
from .parts import Part
from .stored_inputs import StoredInputs


class Table(Protocol):
    """A part that checks what it reads; ``names`` are its inputs."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def read(self, names: Sequence[str]) -> Array: ...


@dataclass(frozen=True, eq=False)
class Scanned:
    """Of a part: every so many-eth row, and the rows where a column is least or largest, with their places."""

    places: Index
    values: Array


@dataclass(frozen=True, eq=False)
class Scan:
    """The work on a part: all values of the inputs and of ``output`` are read once, and some inputs are kept."""

    output: str | None
    total: int

    @classmethod
    def of(cls, total: int, output: str | None) -> Scan:
        return cls(output, total)

    def __call__(self, part: Part) -> Scanned:
        inputs = cast(Table, part).names
        X = cast(Table, part).read(inputs if self.output is None else (*inputs, self.output))[:, : len(inputs)]
        chosen = sample_places(self.total)
        chosen = chosen[(chosen >= part.start) & (chosen < part.start + part.rows)] - part.start
        places = np.unique(np.concatenate([chosen, X.argmin(axis=0), X.argmax(axis=0)]))
        return Scanned(places + part.start, X[places])

    def stored(self, parts: Sequence[Part], scans: Sequence[Scanned], names: tuple[str, ...]) -> StoredInputs:
        """The rows of ``parts``, with the same sample as if they were in memory (``Inputs.sample``)."""
        places, values = np.concatenate([scan.places for scan in scans]), np.vstack([scan.values for scan in scans])
        keep = np.isin(places, sample_places(self.total))
        keep[values.argmin(axis=0)] = True
        keep[values.argmax(axis=0)] = True
        sample = np.ascontiguousarray(values[keep])
        sample.setflags(write=False)
        return StoredInputs(parts, Inputs(sample, names), values.min(axis=0), values.max(axis=0))
