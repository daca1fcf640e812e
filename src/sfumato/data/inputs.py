"""Inputs and outputs as users hand them over, checked once, at the door.

NumPy arrays, torch tensors, lists and DataFrames all become float64 arrays; the column names of a DataFrame stay with
the values, and so does how its dates and categories became numbers (encoding.py). Rows that are stored somewhere are
inputs too (stored.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import GOLDEN, Array, Index, Mask, frozen
from ..errors import InputError
from .columns import require_columns, require_numbers, require_once
from .encoding import Encoding, Finest
from .parts import LARGEST_NUMBER, ArrayPart, Part
from .tables import in_row_order

#: Of more rows than this a sample stands for the others wherever one looks for inputs of a region.
SAMPLE = 1 << 13


@dataclass(frozen=True)
class Outputs:
    """The names of the outputs that rows are about: one, which is "1 of 1", or several.

    ``numbered``: the last column of a row is the number of its output, 0, 1, … Nothing else depends on how many there
    are.
    """

    names: tuple[str, ...] = ("y",)
    numbered: bool = False

    @classmethod
    def several(cls, names: Sequence[str]) -> Outputs:
        """Outputs that are told apart by a column, as those of a JointPrior are: also where there is just one."""
        return cls(tuple(names), numbered=True)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def called(self, name: str) -> Outputs:
        """The same outputs; that of rows without numbers is called ``name``."""
        return self if self.numbered else Outputs((name,))

    def plain(self, rows: Array) -> Array:
        """The inputs of ``rows``."""
        return rows[:, :-1] if self.numbered else rows

    def numbers(self, rows: Array) -> Index:
        """Which output each of ``rows`` is about."""
        return rows[:, -1].astype(np.intp) if self.numbered else np.zeros(len(rows), dtype=np.intp)

    def rows(self, plain: Array, numbers: int | Index) -> Array:
        """Inputs as rows about the output ``numbers``: one for all of them, or one for each."""
        if not self.numbered:
            return plain
        return np.column_stack([plain, np.broadcast_to(np.asarray(numbers, dtype=np.float64), len(plain))])

    def columns(self, plain: tuple[str, ...]) -> tuple[str, ...]:
        """The names of all columns of rows whose inputs are called ``plain``: theirs, and "output" or "output_" …"""
        if not self.numbered:
            return plain
        name = "output"
        while name in plain:
            name += "_"
        return (*plain, name)

    def number(self, name: Any, argument: str = "output") -> int:
        """The number of the output that a user calls ``name``; None stands for the only one."""
        if name is None and len(self) == 1:
            return 0
        listed = ", ".join(map(repr, self.names))
        if name is None:
            raise InputError(f"{argument} is missing, and there are {len(self)} outputs; choose one of {listed}.")
        if not isinstance(name, str) or name not in self.names:
            alone = f", but this release is about {listed} alone; leave it out."
            remedy = f"; choose one of {listed}." if self.numbered else alone
            raise InputError(f"{argument} is {str(name)[:60]!r}{remedy}")
        return self.names.index(name)

    def place_in_words(
        self,
        columns: Sequence[str],
        row: Array,
        digits: int = 6,
        encoding: Encoding | None = None,
        finest: Finest = "us",
    ) -> str:
        """One row for people: "t = 1.5", or "t = 1.5, velocity" where rows are numbered."""
        row = np.ravel(row)
        if encoding is not None and np.all(np.isfinite(row)):
            said = encoding.place_in_words(row[: len(encoding.names)], digits, finest)
        else:
            said = [f"{name} = {value:.{digits}g}" for name, value in zip(columns, row, strict=False)]
            said = said[:-1] if self.numbered else said
        if self.numbered and len(row):
            number = int(row[-1]) if np.isfinite(row[-1]) else -1
            said.append(self.names[number] if 0 <= number < len(self) else f"output {row[-1]:g}")
        return ", ".join(said)


#: One output, under the name that it has if nobody gives it another.
ONE_OUTPUT = Outputs()


class Inputs(ABC):
    """n rows of d columns, with the names of the columns if they have any, and the outputs that the rows are about.

    ``values`` are all rows; those that are stored somewhere are read into memory for it. ``sample`` are rows that stand
    for all of them, spread evenly, and those where a column is least or largest. ``index`` has the labels of the rows
    of a DataFrame. It is there to bring values into the order of the rows, and is no part of a release, a file or a
    digest: labels may be names. ``encoding`` says how the columns of a table became the columns of numbers; None where
    they were numbers.
    """

    values: Array
    columns: tuple[str, ...] | None
    outputs: Outputs
    sample: MemoryInputs
    index: pd.Index[Any] | None
    encoding: Encoding | None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def select(self, keep: Mask | Index) -> MemoryInputs:
        """Some of the rows."""

    @abstractmethod
    def parts(self, columns: Mapping[str, Any] | None = None) -> Sequence[Part]:
        """The rows part after part, with what else is known of each row under its name."""

    @abstractmethod
    def published_as(self, name: str) -> Inputs:
        """The rows as readers get them: one output is called ``name``, and row labels are left out."""

    @property
    def dimension(self) -> int:
        """How many columns there are."""
        return int(self.sample.values.shape[1])

    @property
    def features(self) -> int:
        """How many columns there are besides the one that says which output a row is about."""
        return self.dimension - self.outputs.numbered

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, or x0, x1, … (just x for one feature) where there are none."""
        return self.columns if self.columns is not None else default_names(self.dimension)

    @property
    def plain(self) -> Inputs:
        """The rows without the column that says which output they are about."""
        if not self.outputs.numbered:
            return self
        columns = None if self.columns is None else self.columns[:-1]
        return MemoryInputs(frozen(self.outputs.plain(self.values)), columns, index=self.index, encoding=self.encoding)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the inputs as people have them: the columns of their table."""
        return self.names[: self.features] if self.encoding is None else self.encoding.sources

    @property
    def owners(self) -> tuple[str, ...]:
        """For each column of numbers the column of the table that it came from."""
        if self.encoding is None:
            return self.names[: self.features]
        return tuple(column.name for column in self.encoding.columns for _ in column.names)

    def frame(self) -> pd.DataFrame:
        """The inputs as people have them: dates as dates, a category as one column."""
        plain = self.outputs.plain(self.values)
        if self.encoding is not None:
            return self.encoding.decode(plain)
        return pd.DataFrame(plain, columns=list(self.names[: self.features]))

    @property
    def present(self) -> tuple[str, ...]:
        """The outputs that some row is about, in the order in which they come."""
        if not self.outputs.numbered:
            return self.outputs.names  # rows that are stored somewhere need not be read
        numbers, first = np.unique(self.outputs.numbers(self.values), return_index=True)
        return tuple(self.outputs.names[number] for number in numbers[np.argsort(first)])

    def combinations(self, columns: Mask, most: int | None = None) -> Array | None:
        """The combinations of values that rows have in ``columns``, each once; None if they are more than ``most``."""
        found = pd.DataFrame(self.sample.values[:0, columns])
        for part in self.parts():
            # pandas hashes rows; np.unique would sort all of them, which takes ten times as long
            found = pd.concat([found, pd.DataFrame(part.inputs()[:, columns])]).drop_duplicates()
            if most is not None and len(found) > most:
                return None
        return np.unique(found.to_numpy(np.float64), axis=0)

    def rows_about(self, output: str) -> Index:
        """Which rows are about ``output``."""
        number = self.outputs.number(output)
        if not self.outputs.numbered:
            return np.arange(len(self))  # nor here
        return np.flatnonzero(self.outputs.numbers(self.values) == number)

    def in_words(self, row: Array) -> str:
        """One row for people: "t = 1.5", or "t = 1.5, velocity" where there are several outputs."""
        return self.outputs.place_in_words(self.names, row, encoding=self.encoding)

    def ranges_in_words(self) -> str:
        """What rows have in each column: "1 ≤ t ≤ 2"."""
        lower, upper = self.sample.values.min(axis=0), self.sample.values.max(axis=0)
        said = [] if self.encoding is None else self.encoding.ranges_in_words(lower, upper)
        rest = list(zip(self.names, lower, upper, strict=True))[0 if self.encoding is None else self.features :]
        return ", ".join([*said, *(f"{a:.6g} ≤ {n} ≤ {b:.6g}" for n, a, b in rest)])


@dataclass(frozen=True, eq=False)
class MemoryInputs(Inputs):
    """Rows in memory."""

    values: Array
    columns: tuple[str, ...] | None = None
    outputs: Outputs = ONE_OUTPUT
    index: pd.Index[Any] | None = None
    encoding: Encoding | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def select(self, keep: Mask | Index) -> MemoryInputs:
        index = None if self.index is None else self.index[keep]
        return replace(self, values=frozen(self.values[keep]), index=index)

    @cached_property
    def sample(self) -> MemoryInputs:  # type: ignore[override]
        if len(self) <= SAMPLE:
            return self
        ends = [self.values.argmin(axis=0), self.values.argmax(axis=0)]
        return self.select(np.unique(np.concatenate([sample_places(len(self)), *ends])))

    def parts(self, columns: Mapping[str, Any] | None = None) -> Sequence[Part]:
        return ArrayPart.of(self.values, columns or {})

    def published_as(self, name: str) -> MemoryInputs:
        outputs = self.outputs.called(name)
        return self if self.index is None and outputs == self.outputs else replace(self, outputs=outputs, index=None)


def sample_places(rows: int, count: int = SAMPLE) -> Index:
    """``count`` of ``rows`` places, spread evenly but with no period: rows often alternate between sources."""
    if rows <= count:
        return np.arange(rows, dtype=np.intp)
    # as many multiples fall on different places where these are few, and on all places where they are many
    multiples = count if rows >= 3 * count else 3 * rows
    places = ((np.arange(multiples) * GOLDEN) % 1.0 * rows).astype(np.intp)
    _, first = np.unique(places, return_index=True)
    return np.sort(places[np.sort(first)[:count]])


def among(points: Array, places: Array) -> Mask:
    """Which rows of ``points`` are rows of ``places``; 0 and −0 are the same."""
    found = np.zeros(len(points), dtype=np.bool_)
    if not len(places):
        return found
    # a row has to have a value of ``places`` in each column: few rows are left to be compared as a whole
    columns = list(zip(places.T, points.T, strict=True))
    near = np.ones(len(points), dtype=np.bool_)
    for known, asked in columns:
        near &= (asked >= known.min()) & (asked <= known.max())
    left = np.flatnonzero(near)
    for known, asked in columns:
        values = np.unique(known)
        here = asked[left]
        left = left[values[np.searchsorted(values, here).clip(max=len(values) - 1)] == here]
    rows = {row.tobytes() for row in np.ascontiguousarray(places) + 0.0}
    found[left] = [row.tobytes() in rows for row in np.ascontiguousarray(points[left]) + 0.0]
    return found


def default_names(dimension: int) -> tuple[str, ...]:
    return ("x",) if dimension == 1 else tuple(f"x{i}" for i in range(dimension))


def as_inputs(X: Any, name: str = "X", like: Inputs | None = None, encoding: Encoding | None = None) -> Inputs:
    """Check ``X`` and bring it into the form ``Inputs``; a 1-D ``X`` is one feature.

    With ``like``, ``X`` must have the same features: the columns of a DataFrame are picked by
    name and put into the order of ``like``. ``encoding`` is how dates and categories become numbers; left out, it is
    that of ``like``, or follows from the table.
    """
    if like is not None:
        encoding = None if like.outputs.numbered else like.encoding
    if isinstance(X, Inputs):
        if encoding is not None and X.encoding not in (None, encoding):
            if not isinstance(X, MemoryInputs):
                said = "" if X.encoding is None else f" ({X.encoding.in_words})"
                raise InputError(
                    f"{name} is read part after part, and its columns become numbers{said} in another way than those "
                    f"that the model was made for ({encoding.in_words}); fit the model to some of these rows."
                )
            return as_inputs(X.frame(), name, like, encoding)
        if like is None or X.dimension == like.dimension:
            return X
        X = X.values
    columns, index = None, None
    if isinstance(X, (pd.DatetimeIndex, pd.PeriodIndex)) or (
        isinstance(X, np.ndarray) and X.dtype.kind == "M" and X.ndim == 1
    ):  # dates alone are one feature, as numbers are
        called = like.sources[0] if like is not None else encoding.sources[0] if encoding is not None else "x"
        X = pd.DataFrame({getattr(X, "name", None) or called: X})
    if isinstance(X, (pd.Series, pd.DataFrame)):
        frame = X.to_frame() if isinstance(X, pd.Series) else X
        X, columns, encoding = _from_frame(frame, name, like, encoding)
        index = frame.index
    values = _as_float64(X, name, columns, ndmin=1)
    wanted = like.dimension if like is not None else None if encoding is None else len(encoding.names)
    if values.ndim < 2:
        one_row = wanted is not None and wanted > 1 and values.size == wanted
        values = values.reshape(1, -1) if one_row else values.reshape(-1, 1)
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(
            f"{name} has shape {values.shape}; give one row for each input and one column for each feature."
        )
    if values.shape[0] == 0:
        raise InputError(f"{name} has no rows; give at least one.")
    if wanted is not None and values.shape[1] != wanted:
        names = like.names if like is not None else encoding.names if encoding is not None else ()
        table = "" if encoding is None else f"a DataFrame with the columns {', '.join(encoding.sources)}, or "
        raise InputError(
            f"{name} has {values.shape[1]} feature(s), but the model was made for {wanted} "
            f"({', '.join(names)}); give {table}the same features in the same order."
        )
    if like is not None:
        return MemoryInputs(frozen(values), like.columns, like.outputs, index, like.encoding)
    return MemoryInputs(frozen(values), columns if encoding is None else encoding.names, index=index, encoding=encoding)


def as_outputs(y: Any, rows: int | Inputs, name: str = "y") -> Array:
    """Check that ``y`` holds one finite number for each of the ``rows`` inputs.

    Where ``rows`` are the inputs themselves, values with labels are brought into the order of theirs.
    """
    if isinstance(y, pd.DataFrame) and y.shape[1] != 1:
        raise InputError(f"{name} has {y.shape[1]} columns; give one output column, for example y['income'].")
    if isinstance(rows, Inputs):
        y, rows = in_row_order(y, rows.index, name), len(rows)
    y = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else y
    if isinstance(y, pd.Series) and not pd.api.types.is_object_dtype(y.dtype):  # objects may be numbers
        require_numbers(y.dtype, name, name)
        y = y.to_numpy(dtype=np.float64, na_value=np.nan)
    values = _as_float64(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"{name} has shape {values.shape}; give one number for each row of X.")
    if values.shape[0] != rows:
        raise InputError(f"{name} has {values.shape[0]} values, but X has {rows} rows; give one output a row.")
    large = np.flatnonzero(np.abs(values) >= LARGEST_NUMBER)
    if large.size:
        raise InputError(
            f"{name} is {values[large[0]]:g} in row {large[0]}, too large for its square; give {name} in larger units."
        )
    return frozen(values)


def stacked_inputs(rows: Mapping[str, Inputs], outputs: Outputs) -> MemoryInputs:
    """The rows about each output, in the order of ``rows``, one below the other."""
    first = next(iter(rows.values()))
    for name, inputs in rows.items():
        if inputs.names != first.names:
            raise InputError(
                f"X has the columns {', '.join(inputs.names)} for {name!r}, but {', '.join(first.names)} for "
                f"{next(iter(rows))!r}; give all outputs inputs with the same columns."
            )
    blocks = [outputs.rows(inputs.values, outputs.number(name)) for name, inputs in rows.items()]
    labels = [inputs.index for inputs in rows.values() if inputs.index is not None]
    index = labels[0].append(labels[1:]) if len(labels) == len(blocks) else None
    return MemoryInputs(frozen(np.vstack(blocks)), outputs.columns(first.names), outputs, index, first.encoding)


def at_output(X_new: Any, inputs: Inputs, output: Any, place_of: Callable[[int], Array | None]) -> MemoryInputs:
    """``X_new`` as rows about ``output``; a quantity without inputs of its own has one place."""
    number = inputs.outputs.number(output)
    if X_new is None:
        place = place_of(number)
        if place is None:
            name = inputs.outputs.names[number]
            raise InputError(f"X_new is missing; {name!r} is a function of the inputs, so say where.")
        plain: Inputs = MemoryInputs(place[None])
    else:
        plain = as_inputs(X_new, "X_new", like=inputs.plain)
    rows = inputs.outputs.rows(plain.values, number)
    return MemoryInputs(rows, inputs.columns, inputs.outputs, plain.index, inputs.encoding)


def stacked_outputs(inputs: Inputs, y: Any) -> Array:
    """One value for each row: from a dict or DataFrame with a column for each output, a matrix, or a plain vector."""
    present = inputs.present
    if not inputs.outputs.numbered:
        return as_outputs(y, inputs)  # y may have any name
    if isinstance(y, (Mapping, pd.DataFrame)):
        given = {str(name): y[name] for name in y}
        for name in present:
            if name not in given:
                raise InputError(f"y has no values of {name!r}; give {', '.join(map(repr, present))}.")
        for name in given if isinstance(y, Mapping) else ():
            if name not in present:
                raise InputError(f"y has values of {name!r}, which is not released; give {', '.join(present)}.")
    elif np.ndim(y) == 2 and np.shape(y)[1] == len(present) and len(present) > 1:
        table = np.asarray(y, dtype=np.float64)
        given = {name: table[:, place] for place, name in enumerate(present)}
    else:
        return as_outputs(y, inputs)
    values = np.empty(len(inputs))
    for name in present:
        own = inputs.rows_about(name)
        values[own] = as_outputs(given[name], inputs.select(own), f"y[{name!r}]")
    return as_outputs(values, len(inputs))


def _from_frame(
    frame: pd.DataFrame, name: str, like: Inputs | None, encoding: Encoding | None
) -> tuple[Any, tuple[str, ...], Encoding | None]:
    """The rows in numbers, the names of their columns, and how they became numbers."""
    columns = tuple(str(c) for c in frame.columns)
    require_once(name, columns)
    known = encoding.names if encoding is not None else like.columns if like is not None else None
    in_numbers = encoding is not None and encoding.names != encoding.sources and set(encoding.names) <= set(columns)
    if encoding is not None and not in_numbers:
        return encoding.encode(frame, name), encoding.names, encoding
    if known is not None:
        require_columns(name, known, columns)
        frame, columns = frame.set_axis(list(columns), axis=1)[list(known)], known
    elif like is None:
        encoding = Encoding.of(frame, name)
        if encoding is not None:
            return encoding.encode(frame, name), encoding.names, encoding
    for column, dtype in zip(columns, frame.dtypes, strict=True):
        require_numbers(dtype, f"{name} column {column!r}", f"{name}[{column!r}]")
    return frame.to_numpy(dtype=np.float64, na_value=np.nan), columns, encoding


def _as_float64(values: Any, name: str, columns: Sequence[str] | None = None, ndmin: int = 0) -> Array:
    if np.ma.is_masked(values):
        raise InputError(f"{name} has masked values, which would be published; fill them or drop their rows first.")
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        given = np.asarray(values)
        array = None if given.dtype.kind in "USMmc" else np.array(given, dtype=np.float64, ndmin=ndmin)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as an array of numbers: {error}.") from error
    if array is None:
        raise InputError(f"{name} holds values of type {given.dtype}, not real numbers; convert it to float first.")
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        place = f"row {bad[0][0]}"
        if array.ndim == 2 and array.shape[1] > 1:
            place += f", column {columns[bad[0][1]] if columns else bad[0][1]}"
        raise InputError(
            f"{name} has {len(bad)} value(s) that are NaN or infinite, the first at {place}; "
            "drop or fill these rows first."
        )
    return array
