"""What pictures ask of a release with any number of inputs: its rows, its region, and what readers conclude where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..data import ONE_OUTPUT, Inputs, as_inputs
from ..errors import InputError
from ..models import OutputsKernel
from ..promise import Design
from ..release import Prediction, Release

#: Steps along a column.
STEPS = 201


@dataclass(frozen=True, eq=False)
class View:
    """A design, or one of its outputs (``of``) where it has several."""

    design: Design
    of: str | None = None

    def __post_init__(self) -> None:
        kernel = self.design.prior.kernel
        if isinstance(kernel, OutputsKernel) and not kernel.takes_input(self.number):
            raise InputError(f"of is {self.of!r}, which is one quantity without inputs; ask release.predict for it.")

    @cached_property
    def number(self) -> int:
        """The number of the output; a design of one does not know its name yet."""
        outputs = self.design.inputs.outputs
        return outputs.number(self.of, "of") if outputs.numbered else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The input columns."""
        return self.design.inputs.names[: self.design.inputs.features]

    @cached_property
    def rows(self) -> Array:
        """The inputs of the rows about this output, or a sample where there are very many."""
        sample = self.design.inputs.sample
        plain, own = sample.plain.values, sample.outputs.numbers(sample.values) == self.number
        return np.asarray(plain[own]) if own.any() else plain

    def about(self, points: Array) -> Array:
        """``points`` as rows about this output."""
        return self.design.inputs.outputs.rows(points, self.number)

    def inside(self, points: Array) -> Mask:
        return self.design.region.contains(self.about(points))

    def prior_std(self, points: Array) -> Array:
        return np.sqrt(self.design.prior.variance(self.about(points)))

    def floor(self, points: Array) -> Array:
        """The promised floor at ``points``; NaN outside the region, and where it is promised at single inputs only."""
        floor = np.full(len(points), np.nan)
        inside = self.inside(points)
        if inside.any() and self.design.cover in ("greedy", "exchange", "everywhere"):
            try:
                floor[inside] = self.design.tolerance.floor(self.design.prior, self.about(points[inside]))
            except InputError:  # a table knows its own points only
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

    def along(self, place: int, at: Array, count: int = STEPS) -> Array:
        """Inputs through ``at`` that differ in one column, from end to end."""
        low, high = self.span(place)
        steps = np.union1d(np.linspace(low, high, count), [at[place]])
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
        like = Inputs(self.rows[:1], self.names)
        found = as_inputs(at if isinstance(at, pd.DataFrame) else np.atleast_2d(at), "at", like=like)
        if len(found) != 1:
            raise InputError(f"at has {len(found)} rows; give one input.")
        return np.array(found.values[0])


@dataclass(frozen=True, eq=False)
class Seen(View):
    """A release as its readers see it."""

    release: Release | None = None

    @classmethod
    def by_readers(cls, release: Release, of: str | None) -> Seen:
        if not isinstance(release, Release):
            raise InputError(f"release is a {type(release).__name__}; give what mechanism.release(y) or sf.load gave.")
        release.design.inputs.outputs.number(of, "of")
        return cls(release.design, of, release)

    @property
    def name(self) -> str:
        assert self.release is not None
        return self.of or self.release.output_name

    def predict(self, points: Array) -> Prediction:
        assert self.release is not None
        return self.release.predict(points, self.of)
