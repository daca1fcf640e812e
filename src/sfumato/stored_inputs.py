"""Rows that are read where they are needed: inputs and outputs of any number, in memory one part after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError
from .inputs import Array, Index, Inputs, Mask
from .parts import Part


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
        return Inputs(_selected(self._parts, keep, lambda part: part.inputs(), (self.dimension,)), self.columns)

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
