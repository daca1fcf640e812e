"""A partition of a Dask DataFrame as a part of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .container import LARGEST_NUMBER
from .errors import InputError
from .inputs import Array
from .parts import Part
from .stored_inputs import PartWithMore

#: The number of rows of a partition before it has been counted.
UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class DaskPart(Part):
    """The rows of partition ``place``, with the columns ``names`` as inputs.

    ``source`` is the partition as Dask would make it, or the table itself once it is where the work is done.
    Guarantee: what is read is finite float64 and has ``rows`` rows, or there is an ``InputError``.
    """

    start: int
    rows: int
    place: int
    names: tuple[str, ...]
    source: Any = field(repr=False)

    def inputs(self) -> Array:
        return self.read(self.names)

    def column(self, name: str) -> Array:
        return np.ascontiguousarray(self.read((name,))[:, 0])

    def frame(self) -> pd.DataFrame:
        """The table; made here, if it is not there yet."""
        made = self.source if isinstance(self.source, pd.DataFrame) else self.source.compute()
        if self.rows not in (UNKNOWN, len(made)):
            raise InputError(
                f"partition {self.place} had {self.rows} rows when they were counted and has {len(made)} now; "
                "give a frame that is the same each time it is computed, for example frame.persist()."
            )
        return made

    def read(self, names: Sequence[str]) -> Array:
        """The columns ``names``, rows × columns."""
        frame = self.frame()
        values = np.empty((len(frame), len(names)))
        for place, name in enumerate(names):
            values[:, place] = self._numbers(frame[name], name)
        return values

    def _numbers(self, column: pd.Series[Any], name: str) -> Array:
        where = f"column {name!r} of partition {self.place}"
        if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)):
            raise InputError(
                f"{where} is not numeric (dtype {column.dtype}); encode it as numbers first, or leave it out."
            )
        if pd.api.types.is_complex_dtype(column.dtype):
            raise InputError(f"{where} holds complex numbers; give their real and imaginary parts as columns.")
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = np.flatnonzero(~(np.abs(numbers) < LARGEST_NUMBER))
        if wrong.size:
            raise InputError(
                f"{where} has {wrong.size} value(s) that are NaN, infinite or too large, the first in its row "
                f"{int(wrong[0])}; drop or fill these rows before."
            )
        return np.asarray(numbers)


def to_be_made(part: Part) -> Any | None:
    """What Dask has to make before a worker can work on ``part``; None where the part brings all that it needs."""
    inner = part.part if isinstance(part, PartWithMore) else part
    return inner.source if isinstance(inner, DaskPart) else None


def with_source(part: Part, source: Any) -> Part:
    """``part`` with ``source`` in place of what had to be made."""
    if isinstance(part, PartWithMore):
        return replace(part, part=with_source(part.part, source))
    assert isinstance(part, DaskPart)
    return replace(part, source=source)
