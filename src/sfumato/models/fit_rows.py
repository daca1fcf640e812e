"""The rows that a prior is fitted to, in memory or stored, all at once or some at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array, Index
from ..data import Inputs, StoredColumn, sample_places


def least_outside(features: int) -> int:
    """How many rows there must be outside a region for a prior to be fitted to them alone."""
    return 2 * (features + 3)


@dataclass(frozen=True, eq=False)
class Block:
    """Inputs and outputs of some rows, the noise that is given, and the column that noise is learnt by."""

    X: Array
    y: Array
    noise: Array
    by: Array

    def select(self, places: Index) -> Block:
        return Block(self.X[places], self.y[places], self.noise[places], self.by[places])


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows at the places ``used`` of ``inputs``, with what is known of all rows: outputs, noise, a column."""

    inputs: Inputs
    outputs: Array | StoredColumn
    noise: Array
    by: Array
    used: Index

    def __len__(self) -> int:
        return len(self.used)

    def some(self, count: int) -> FitRows:
        """So many of them, spread evenly."""
        return replace(self, used=self.used[sample_places(len(self), count)])

    def without(self, others: FitRows) -> FitRows:
        return replace(self, used=np.setdiff1d(self.used, others.used, assume_unique=True))

    def read(self) -> Block:
        """All of them, in memory."""
        stored = isinstance(self.outputs, StoredColumn)
        X = self.inputs.select(self.used).values if stored else self.inputs.values[self.used]
        y = self.outputs.select(self.used) if isinstance(self.outputs, StoredColumn) else self.outputs[self.used]
        return Block(X, y, self._share(self.noise, self.used), self._share(self.by, self.used))

    def blocks(self, size: int) -> Iterator[Block]:
        """All of them, at most ``size`` at a time."""
        for part in self.inputs.parts({"y": self.outputs}):
            first, last = np.searchsorted(self.used, [part.start, part.start + part.rows])
            if first == last:
                continue
            X, y = part.inputs(), part.column("y")
            for start in range(first, last, size):
                places = self.used[start : min(start + size, last)]
                own = places - part.start
                yield Block(X[own], y[own], self._share(self.noise, places), self._share(self.by, places))

    @staticmethod
    def _share(values: Array, places: Index) -> Array:
        return np.broadcast_to(values, len(places)) if values.ndim == 0 else values[places]
