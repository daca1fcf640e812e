"""A region of several outputs: for each sensitive one the inputs at which it is protected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array, Mask
from ..data import Inputs
from ..errors import InputError
from .checks import at_least_one, distinct, rows, shown
from .region import Region, set_fields

#: A region, and a file, may have this many outputs.
MOST_OUTPUTS = 64


@dataclass(frozen=True, init=False)
class OutputRegion(Region):
    """Inputs whose last column is the number of an output, ``parts`` the region of each sensitive one.

    ``labels`` are the names of all outputs, once the region is bound to data.

    Guarantee: it protects the outputs that it names where it says, and says nothing of the others.
    """

    parts: tuple[tuple[int, Region], ...]
    labels: tuple[str, ...] | None

    def __init__(self, parts: Mapping[int, Region], labels: tuple[str, ...] | None = None) -> None:
        if not parts or len(parts) > MOST_OUTPUTS:
            raise InputError(f"region names {len(parts)} outputs; give at least one, and at most {MOST_OUTPUTS}.")
        for number, part in parts.items():
            nested = any(isinstance(inner, OutputRegion) for _, inner in part.walk())
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < MOST_OUTPUTS or nested:
                raise InputError(f"region has {shown(part)} for the output {number!r}; give an output's number first.")
        set_fields(self, parts=tuple(sorted(parts.items())), labels=labels)

    @property
    def sensitive(self) -> tuple[int, ...]:
        """The numbers of the outputs that are protected somewhere."""
        return tuple(number for number, _ in self.parts)

    def on_columns_of(self, inputs: Inputs) -> OutputRegion:
        if not inputs.outputs.numbered:
            raise InputError("region is one of several outputs, but X has one; give a region of the inputs alone.")
        if max(self.sensitive) >= len(inputs.outputs):
            raise InputError(
                f"region names output {max(self.sensitive)}, but there are {len(inputs.outputs)}, counted from 0."
            )
        return OutputRegion(
            {number: part.on_columns_of(inputs.plain) for number, part in self.parts}, inputs.outputs.names
        )

    def closed(self, inputs: Inputs) -> OutputRegion:
        return OutputRegion({number: part.closed(inputs.plain) for number, part in self.parts}, self.labels)

    def bounding_box(self, dimension: int) -> tuple[Array, Array]:
        lower, upper = zip(*(part.bounding_box(dimension - 1) for _, part in self.parts), strict=True)
        least, most = float(self.sensitive[0]), float(self.sensitive[-1])
        return np.append(np.min(lower, axis=0), least), np.append(np.max(upper, axis=0), most)

    def may_meet_box(self, lower: Array, upper: Array) -> bool:
        return any(part.may_meet_box(lower[:-1], upper[:-1]) for _, part in self.parts)

    def contains(self, A: Array) -> Mask:
        inside = np.zeros(len(A), dtype=np.bool_)
        for number, part in self.parts:
            own = np.flatnonzero(A[:, -1] == number)
            if own.size:
                inside[own] = part.contains(A[own, :-1])
        return inside

    def probes(self, count: int, inputs: Inputs, batch: int = 0) -> Array:
        share, plain = -(-at_least_one(count) // len(self.parts)), inputs.plain
        return np.vstack([_about(part.probes(share, plain, batch), number) for number, part in self.parts])

    @property
    def points(self) -> Array | None:
        listed = [(number, part.points) for number, part in self.parts]
        found = [_about(points, number) for number, points in listed if points is not None]
        return np.vstack(found) if len(found) == len(listed) else None

    def varying_columns(self, dimension: int) -> Mask:
        moving = np.any([part.varying_columns(dimension - 1) for _, part in self.parts], axis=0)
        return np.append(np.asarray(moving, dtype=np.bool_), False)

    def project(self, A: Array, inputs: Inputs) -> Array:
        """Rows about a sensitive output stay with it; the others go to the first one."""
        values, plain = np.array(rows(A, inputs.dimension)), inputs.plain
        values[~np.isin(values[:, -1], self.sensitive), -1] = self.sensitive[0]
        for number, part in self.parts:
            own = np.flatnonzero(values[:, -1] == number)
            if own.size:
                values[own, :-1] = part.project(values[own, :-1], plain)
        return values

    def promised_at_rows(self, A: Array) -> Array:
        """Every sensitive output at the inputs of all rows, whichever output these are about."""
        plain, found = distinct(A[:, :-1]), []
        for number, part in self.parts:
            points = part.points if part.points is not None else plain[part.contains(plain)]
            found.append(_about(points, number))
        return np.vstack(found)

    def contains_for_any_output(self, A: Array) -> Mask:
        return np.asarray(np.any([part.contains(A[:, :-1]) for _, part in self.parts], axis=0), dtype=np.bool_)

    def project_into_parts(self, A: Array, inputs: Inputs) -> Array:
        values, plain = rows(A, inputs.dimension)[:, :-1], inputs.plain
        return np.vstack([_about(part.project(values, plain), number) for number, part in self.parts])

    def in_words(self, names: tuple[str, ...] | None = None) -> str:
        plain = None if names is None else names[:-1]
        return "; ".join(f"{self._label(number)}: {part.in_words(plain)}" for number, part in self.parts)

    def _label(self, number: int) -> str:
        return f"output {number}" if self.labels is None else self.labels[number]

    def to_tree(self) -> dict[str, Any]:
        return {"kind": "outputs", "parts": [[number, part.to_tree()] for number, part in self.parts]}


def _about(A: Array, number: int) -> Array:
    """Rows about one output."""
    return np.column_stack([A, np.full(len(A), float(number))])
