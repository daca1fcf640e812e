"""What pictures ask of a design, with any number of inputs: its rows, its region and its floor, for one output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..data import ONE_OUTPUT, MemoryInputs, as_inputs
from ..errors import InputError
from ..models import OutputsKernel
from ..promise import Design
from ..release import Release

#: Steps along a column: of one among several, and of the only one.
STEPS, FINE_STEPS = 201, 601


@dataclass(frozen=True, eq=False)
class View:
    """One output of a design; ``of`` is its name, None where there is only one."""

    design: Design
    of: str | None = None

    def __post_init__(self) -> None:
        kernel = self.design.prior.kernel
        if isinstance(kernel, OutputsKernel) and not kernel.takes_input(self.number):
            raise InputError(f"of is {self.of!r}, which is one quantity without inputs; ask release.predict for it.")

    @classmethod
    def of_release(cls, release: Release, of: str | None) -> View:
        """One output of a release, after a check of both."""
        if not isinstance(release, Release):
            raise InputError(f"release is a {type(release).__name__}; give what mechanism.release(y) or sf.load gave.")
        release.design.inputs.outputs.number(of, "of")
        return cls(release.design, of)

    @cached_property
    def number(self) -> int:
        """The number of the output; a design of one does not know its name yet."""
        outputs = self.design.inputs.outputs
        return outputs.number(self.of, "of") if outputs.numbered else 0

    @property
    def name(self) -> str:
        return self.of or self.design.inputs.outputs.names[self.number]

    @property
    def names(self) -> tuple[str, ...]:
        """The input columns."""
        return self.design.inputs.names[: self.design.inputs.features]

    @property
    def region_in_words(self) -> str:
        return f"region: {self.design.region.in_words(self.design.inputs.names)}"

    def check_inputs(self, count: int, picture: str, others: str) -> None:
        """Refuse a design that has not ``count`` inputs; ``picture`` needs them, ``others`` do not."""
        if len(self.names) != count:
            inputs = "1 input" if len(self.names) == 1 else f"{len(self.names)} inputs"
            raise InputError(f"the release has {inputs} ({', '.join(self.names)}); {picture}. Use {others}.")

    @cached_property
    def rows(self) -> Array:
        """The inputs of the rows about this output, or a sample where there are very many."""
        sample = self.design.inputs.sample
        plain, own = sample.plain.values, sample.outputs.numbers(sample.values) == self.number
        return np.asarray(plain[own]) if own.any() else plain

    @cached_property
    def sensitive(self) -> Array:
        """The sensitive inputs of this output."""
        points = self.design.sensitive
        return np.asarray(points[self.design.inputs.outputs.numbers(points) == self.number])

    def about(self, points: Array) -> Array:
        """``points`` as rows about this output."""
        return self.design.inputs.outputs.rows(points, self.number)

    def is_about(self, row: Array) -> bool:
        """Whether a row is about this output."""
        return bool(self.design.inputs.outputs.numbers(row[None])[0] == self.number)

    def inside(self, points: Array) -> Mask:
        return self.design.region.contains(self.about(points))

    def prior_std(self, points: Array) -> Array:
        return np.sqrt(self.design.prior.variance(self.about(points)))

    def floor(self, points: Array) -> Array:
        """The promised floor at ``points``; NaN outside the region, and where it is promised at single inputs only."""
        floor = np.full(len(points), np.nan)
        inside = self.inside(points)
        # between the rows of cover="rows" nothing is promised
        if inside.any() and self.design.cover in ("greedy", "exchange", "everywhere"):
            try:
                floor[inside] = self.design.tolerance.floor(self.design.prior, self.about(points[inside]))
            except InputError:  # a matrix or a table knows its own points only
                return floor
        return floor

    def column(self, column: str | int) -> int:
        """The place of an input column that is asked for by its name or number."""
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if not whole or not 0 <= int(column) < len(self.names):
            raise InputError(f"column is {column!r}; choose one of {', '.join(map(repr, self.names))}.")
        return int(column)

    def span(self, place: int) -> tuple[float, float]:
        """How far the data and the region go in a column."""
        lower, upper = self.design.region.bounding_box(self.design.inputs.dimension)
        known = [*self.rows[:, place], *(v for v in (lower[place], upper[place]) if np.isfinite(v))]
        if self.design.region.points is not None:
            known.extend(self.design.region.points[:, place])
        return float(min(known)), float(max(known))

    def line(self) -> Array:
        """All along the only column, through rows and sensitive inputs: there the promise is tight."""
        known = np.concatenate([self.design.inputs.sample.values[:, 0], self.sensitive[:, 0]])
        return np.union1d(np.linspace(known.min(), known.max(), FINE_STEPS), known)[:, None]

    def along(self, place: int, at: Array) -> Array:
        """Inputs through ``at`` that differ in one column, from end to end."""
        steps = np.union1d(np.linspace(*self.span(place), STEPS), [at[place]])
        points = np.tile(at, (len(steps), 1))
        points[:, place] = steps
        return points

    def in_words(self, at: Array, without: int) -> str:
        """The other columns at ``at``."""
        kept = [number for number in range(len(self.names)) if number != without]
        return ONE_OUTPUT.place_in_words([self.names[number] for number in kept], at[kept], digits=4)

    def place(self, at: Any, otherwise: Array) -> Array:
        """The input that ``at`` names, in the order of the columns; ``otherwise`` if it is None."""
        if at is None:
            return np.array(np.ravel(otherwise)[: len(self.names)], dtype=np.float64)
        if isinstance(at, pd.Series):
            at = at.to_dict()
        if isinstance(at, Mapping):
            at = pd.DataFrame({name: [value] for name, value in at.items()})
        like = MemoryInputs(self.rows[:1], self.names)
        found = as_inputs(at if isinstance(at, pd.DataFrame) else np.atleast_2d(at), "at", like=like)
        if len(found) != 1:
            raise InputError(f"at has {len(found)} rows; give one input.")
        return np.array(found.values[0])
