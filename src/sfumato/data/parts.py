"""The engine of one machine: part after part, in this process; a part's own work uses all cores, or the GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Index, Mask
from ..errors import InputError
from .inputs import Inputs, sample_places

# Rows of data that are worked on part after part, so that they never have to be in memory all at once.

#: How many rows a part of an array has; what is summed over a part is not divided any further between workers.
ROWS = 1 << 20

#: No number of a table or a file may be larger: squares and sums of them must stay finite.
LARGEST_NUMBER = 1e150


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


# Rows that are read where they are needed: inputs and outputs of any number, in memory one part after the other.


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


@dataclass(frozen=True, eq=False)
class PartWithMore(Part):
    """A part and what else is known of its rows; ``renamed`` are columns of its own under the names they go by here."""

    part: Part
    more: Mapping[str, Array]
    renamed: Mapping[str, str]

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.part.start

    @property
    def rows(self) -> int:  # type: ignore[override]
        return self.part.rows

    def inputs(self) -> Array:
        return self.part.inputs()

    def column(self, name: str) -> Array:
        return self.more[name] if name in self.more else self.part.column(self.renamed.get(name, name))


class StoredInputs(Inputs):
    """Inputs that are read part after part.

    ``sample`` are rows that stand for all of them, ``lower`` and ``upper`` the least and the largest value of each
    column. ``values`` reads everything into memory, for those who ask for it.
    """

    def __init__(self, parts: Sequence[Part], sample: Inputs, lower: Array, upper: Array) -> None:
        object.__setattr__(self, "columns", sample.columns)
        object.__setattr__(self, "outputs", sample.outputs)
        object.__setattr__(self, "_parts", tuple(parts))
        object.__setattr__(self, "_sample", sample)
        object.__setattr__(self, "_bounds", (np.array(lower), np.array(upper)))

    _parts: tuple[Part, ...]
    _sample: Inputs
    _bounds: tuple[Array, Array]

    def __len__(self) -> int:
        return _count(self._parts)

    @property
    def dimension(self) -> int:
        return self._sample.dimension

    @property
    def sample(self) -> Inputs:
        return self._sample

    @property
    def lower(self) -> Array:
        return self._bounds[0]

    @property
    def upper(self) -> Array:
        return self._bounds[1]

    @cached_property
    def values(self) -> Array:
        read = np.concatenate([part.inputs() for part in self._parts])
        read.setflags(write=False)
        return read

    def select(self, keep: Mask | Index) -> Inputs:
        return Inputs(
            _selected(self._parts, keep, lambda part: part.inputs(), (self.dimension,)), self.columns, self.outputs
        )

    def published_as(self, name: str) -> StoredInputs:
        outputs = self.outputs.called(name)
        return (
            self
            if outputs == self.outputs
            else StoredInputs(self._parts, self._sample.published_as(name), *self._bounds)
        )

    def column(self, name: str) -> StoredColumn:
        """What else the parts know of each row."""
        return StoredColumn(self._parts, name)

    def parts(self, columns: Mapping[str, Array | StoredColumn]) -> Sequence[Part]:
        """The rows part after part, each with its share of ``columns``."""
        for name, values in columns.items():
            same = not isinstance(values, StoredColumn) or _borders(values.parts) == _borders(self._parts)
            if len(values) != len(self) or not same:
                raise InputError(f"{name} has {len(values)} values, in other parts than the {len(self)} rows of X.")
        renamed = {name: values.name for name, values in columns.items() if isinstance(values, StoredColumn)}
        arrays = {name: values for name, values in columns.items() if not isinstance(values, StoredColumn)}
        if not columns:
            return self._parts
        return [
            PartWithMore(
                part, {name: values[part.start : part.start + part.rows] for name, values in arrays.items()}, renamed
            )
            for part in self._parts
        ]

    def __getstate__(self) -> dict[str, Any]:
        # what has been read into memory is not sent to others
        return {name: value for name, value in self.__dict__.items() if name != "values"}

    def __repr__(self) -> str:
        return f"<{len(self)} stored rows of {', '.join(self.names)} in {len(self._parts)} parts>"


def _borders(parts: Sequence[Part]) -> list[int]:
    return [part.start for part in parts]


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
    chosen.setflags(write=False)
    return chosen


# One look at all rows that are stored somewhere: it checks them, and keeps a sample and the bounds of the inputs.


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


# An engine does the same work on every part of the data and brings the results together.

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
