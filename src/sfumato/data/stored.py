"""Rows that are read where they are needed: inputs and outputs of any number, in memory one part after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Index, Mask, frozen
from ..errors import InputError
from ..progress import Progress
from .inputs import Inputs, MemoryInputs, Outputs, sample_places
from .parts import Engine, Here, Part, TablePart


@dataclass(frozen=True, eq=False)
class StoredColumn(np.lib.mixins.NDArrayOperatorsMixin):
    """A number for each row, such as its output, under ``name`` in each of the ``parts``.

    ``np.asarray`` and arithmetic read all of it; a slice and ``select`` read the parts with these rows.
    """

    parts: tuple[Part, ...]
    name: str

    def __len__(self) -> int:
        return _count(self.parts)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def select(self, keep: Mask | Index) -> Array:
        return _selected(self.parts, keep, lambda part: part.column(self.name), ())

    def __getitem__(self, key: Any) -> Any:
        return self.select(np.arange(len(self))[key]) if isinstance(key, slice) else np.asarray(self)[key]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        values = np.concatenate([part.column(self.name) for part in self.parts])
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *arguments: Any, **options: Any) -> Any:
        read = (np.asarray(value) if isinstance(value, StoredColumn) else value for value in arguments)
        return getattr(ufunc, method)(*read, **options)

    def __repr__(self) -> str:
        return f"<{len(self)} stored values of {self.name}>"


@dataclass(frozen=True, eq=False, repr=False)
class StoredInputs(Inputs):
    """Rows that are read part after part."""

    stored: tuple[Part, ...]
    sample: MemoryInputs
    index: None = None

    @cached_property
    def columns(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return self.sample.columns

    @cached_property
    def outputs(self) -> Outputs:  # type: ignore[override]
        return self.sample.outputs

    @cached_property
    def values(self) -> Array:  # type: ignore[override]
        return frozen(np.concatenate([part.inputs() for part in self.stored]))

    def __len__(self) -> int:
        return _count(self.stored)

    def select(self, keep: Mask | Index) -> MemoryInputs:
        chosen = _selected(self.stored, keep, lambda part: part.inputs(), (self.dimension,))
        return MemoryInputs(chosen, self.columns, self.outputs)

    def column(self, name: str) -> StoredColumn:
        """What else the parts know of each row."""
        return StoredColumn(self.stored, name)

    def parts(self, columns: Mapping[str, Any] | None = None) -> Sequence[Part]:
        """The rows part after part, each with its share of ``columns``: arrays, or stored columns of the same parts."""
        columns, cuts = columns or {}, [part.places for part in self.stored]
        for name, values in columns.items():
            same = not isinstance(values, StoredColumn) or [part.places for part in values.parts] == cuts
            if len(values) != len(self) or not same:
                raise InputError(f"{name} has {len(values)} values, in other parts than the {len(self)} rows of X.")

        def share(values: Any, part: Part) -> Array | str:
            return values.name if isinstance(values, StoredColumn) else values[part.places]

        return [replace(p, more={name: share(values, p) for name, values in columns.items()}) for p in self.stored]

    def published_as(self, name: str) -> StoredInputs:
        sample = self.sample.published_as(name)
        return self if sample is self.sample else replace(self, sample=sample)

    def __getstate__(self) -> dict[str, Any]:
        # what has been read into memory is not sent to others
        return {"stored": self.stored, "sample": self.sample}

    def __repr__(self) -> str:
        return f"<{len(self)} stored rows of {', '.join(self.names)} in {len(self.stored)} parts>"


def scanned(
    parts: Sequence[TablePart], names: Sequence[str], output: str | None, step: Progress, engine: Engine | None = None
) -> StoredInputs:
    """All rows of ``parts`` as inputs, after one pass that makes sure that they and their outputs can be read.

    The pass keeps the same sample as if the rows were in memory (``Inputs.sample``).
    """
    total = _count(parts)
    step.stage("reading the rows")
    found = (engine or Here()).each(partial(_scan, output, total), parts, step.counter(total))
    places, values = (np.concatenate(each) for each in zip(*found, strict=True))
    keep = np.isin(places, sample_places(total))
    keep[values.argmin(axis=0)] = True
    keep[values.argmax(axis=0)] = True
    return StoredInputs(tuple(parts), MemoryInputs(frozen(values[keep]), tuple(names)))


def _scan(output: str | None, total: int, part: Part) -> tuple[Index, Array]:
    """All rows of ``part`` and ``output`` are read; those in the sample or extreme come back, after their places."""
    table = cast(TablePart, part)
    X = table.read(table.names if output is None else (*table.names, output))[:, : len(table.names)]
    chosen = sample_places(total) - part.start
    chosen = chosen[(chosen >= 0) & (chosen < part.rows)]
    places = np.unique(np.concatenate([chosen, X.argmin(axis=0), X.argmax(axis=0)]))
    return places + part.start, X[places]


def _count(parts: Sequence[Part]) -> int:
    return sum(part.rows for part in parts)


def _selected(
    parts: Sequence[Part], keep: Mask | Index, read: Callable[[Part], Array], shape: tuple[int, ...]
) -> Array:
    """What ``read`` finds of the rows in ``keep``; parts without any of them are not read."""
    rows: Index = np.flatnonzero(keep) if keep.dtype == np.bool_ else np.asarray(keep, dtype=np.intp)
    if rows.size and not 0 <= rows.min() <= rows.max() < _count(parts):
        raise IndexError(f"rows {rows.min()} to {rows.max()} are asked for, but there are {_count(parts)}")
    chosen = np.empty((len(rows), *shape))
    for part in parts:
        here = np.flatnonzero((part.start <= rows) & (rows < part.start + part.rows))
        if here.size:
            chosen[here] = read(part)[rows[here] - part.start]
    return frozen(chosen)
