"""Several releases of one secret, as readers with one prior see them together (MATH.md 8).

Releases may speak of different outputs of one process, at new inputs or at old ones. Rows are told apart by their input
(inputs that agree to a millionth of their range are the same), their output and how often these occur in one release:
two rows that agree in all of that show the same measurement, with the same error, unless it is said that they were
measured anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .composed_noise import ComposedNoise, Shown
from .design import Design
from .errors import InputError
from .functional_noise import FunctionalNoise
from .inputs import Array, Index, Inputs, default_names
from .measurements import Measurements, row_names
from .noise import CorrelatedNoise, IndependentNoise, Noise
from .prior import Prior
from .stacking import column_name


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What one release revealed. ``name`` is its output's, where it has one; ``remeasured``: its rows are all new."""

    design: Design
    name: str = "y"
    remeasured: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.design.noise, FunctionalNoise):
            raise InputError(
                "this release is compressed: its noise is a function of the inputs, and a ledger composes noise on "
                'rows only. Protect with method="eigh" or "subspace".'
            )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that its prior knows of."""
        return self.design.inputs.outputs or (self.name,)


@dataclass(frozen=True, eq=False)
class Speech:
    """How a prior speaks of rows: with ``inputs`` of which kind, and which outputs it knows."""

    inputs: Inputs
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, disclosure: Disclosure) -> Speech:
        return cls(disclosure.design.inputs, disclosure.outputs)

    @property
    def joint(self) -> bool:
        """Whether the last column of a row is the number of its output."""
        return self.inputs.outputs is not None

    def rows_of(self, disclosure: Disclosure) -> tuple[Array, Index]:
        """The rows of a release as this prior speaks of them, and which they are; it is silent about other outputs."""
        theirs, values = disclosure.design.inputs, disclosure.design.inputs.values
        plain = self._in_order(theirs.plain)
        numbers = values[:, -1].astype(np.intp) if theirs.outputs is not None else np.zeros(len(values), dtype=np.intp)
        ours = np.array([self.outputs.index(name) if name in self.outputs else -1 for name in disclosure.outputs])
        own = ours[numbers]
        kept = np.flatnonzero(own >= 0)
        rows = plain[kept]
        return (np.column_stack([rows, own[kept].astype(np.float64)]) if self.joint else rows), kept

    def _in_order(self, theirs: Inputs) -> Array:
        """The columns of other inputs in the order of our own."""
        mine = self.inputs.plain
        if theirs.dimension != mine.dimension:
            raise InputError(
                f"X has {mine.dimension} column(s), but the ledger has a release with {theirs.dimension} "
                f"({', '.join(theirs.names)}); a ledger is about one secret: use one for each."
            )
        if mine.dimension == 1 and (_unnamed(mine) or _unnamed(theirs)):
            return theirs.values
        if set(mine.names) != set(theirs.names):
            raise InputError(
                f"X has the columns {', '.join(mine.names)}, but the ledger has a release with "
                f"{', '.join(theirs.names)}; give the same columns by the same names (as a DataFrame), so that they "
                "cannot be confused."
            )
        return np.asarray(theirs.values[:, [theirs.names.index(name) for name in mine.names]])

    def stacked(self, rows: Array) -> Inputs:
        columns = self.inputs.columns
        if columns is None and self.joint:
            columns = (*self.inputs.plain.names, column_name(self.inputs.plain.names))
        return Inputs(rows, columns, self.inputs.outputs)


@dataclass(frozen=True, eq=False)
class Composition:
    """All that was published, as one set of noisy values: ``prior`` has no noise of its own, ``noise`` has all of it.

    ``measurements`` knows which rows were ever released.
    """

    prior: Prior
    inputs: Inputs
    noise: ComposedNoise
    measurements: Measurements

    def __len__(self) -> int:
        return len(self.inputs)


def compose(
    prior: Prior, speech: Speech, disclosures: Sequence[Disclosure], taken_together: bool = True
) -> Composition:
    """What readers with ``prior`` see of ``disclosures`` together.

    Releases of the very same measurements are ``taken_together`` first: to a reader they are one release, with the
    parallel sum of their noises. That is quicker, but where one noise is far larger than another its round-off may
    hide the smaller one.
    """
    measurements = Measurements(speech.inputs.dimension)
    levels: dict[int, float] = {}
    shown: dict[Any, Shown] = {}
    total = 0.0
    for disclosure in disclosures:
        own, which = speech.rows_of(disclosure)
        if not len(which):
            continue
        numbers = measurements.record(own, disclosure.remeasured)
        for number, level in zip(numbers.tolist(), error_variances(prior, speech, disclosure)[which], strict=True):
            # what is smaller hides less
            levels[number] = min(float(level), levels.get(number, np.inf))
        part = Shown(numbers, _restricted(disclosure.design.noise, which))
        key = frozenset(numbers.tolist()) if taken_together else len(shown)
        shown[key] = part if key not in shown else shown[key].again(part)
        total += disclosure.design.noise.trace
    noise = ComposedNoise(tuple(shown.values()), np.array([levels[k] for k in range(len(levels))]), total)
    inputs = speech.stacked(measurements.rows[noise.measurements])
    return Composition(replace(prior, noise=0.0), inputs, noise, measurements)


def readings(disclosures: Sequence[Disclosure]) -> list[tuple[Disclosure, ...]]:
    """What may be true: that rows were measured anew where it was said, and that they were not.

    Guarantee: a promise that is kept under all of them does not depend on whether that was said rightly.
    """
    as_said = tuple(disclosures)
    if not any(one.remeasured for one in as_said):
        return [as_said]
    return [as_said, tuple(replace(one, remeasured=False) for one in as_said)]


def _unnamed(inputs: Inputs) -> bool:
    return inputs.names == default_names(inputs.dimension)


def _restricted(noise: Noise, rows: Index) -> Noise:
    """The noise of some rows alone."""
    if len(rows) == noise.rows:
        return noise
    if isinstance(noise, IndependentNoise):
        return IndependentNoise(noise.variances[rows])
    return CorrelatedNoise(noise.factor[rows], noise.shift)


def error_variances(prior: Prior, speech: Speech, disclosure: Disclosure) -> Array:
    """V at the rows of a release, as readers with ``prior`` take it to be.

    That is the prior's own, where it is one number, and at the rows that the prior was given for. Elsewhere it is
    what was recorded, or the least of the prior's own for that output, if that is less: it hides less.
    """
    if isinstance(prior.noise, float) and not speech.joint:
        return np.full(len(disclosure.design.inputs), prior.noise)
    recorded = np.array(disclosure.design.prior.noise_variance(len(disclosure.design.inputs)))
    own = prior.noise_variance(len(speech.inputs))
    known = dict(zip(row_names(speech.inputs.values), own, strict=True))
    about = speech.inputs.values[:, -1] if speech.joint else np.zeros(len(own))
    least = {number: float(np.min(own[about == number])) for number in np.unique(about)}
    rows, which = speech.rows_of(disclosure)
    for place, name, row in zip(which, row_names(rows), rows, strict=True):
        number = row[-1] if speech.joint else 0.0
        recorded[place] = known.get(name, min(recorded[place], least.get(number, np.inf)))
    return recorded
