"""Several releases of one secret, as readers with one prior see them together (MATH.md 8).

Releases may speak of different outputs of one process, at new inputs or at old ones. Rows are told apart by their
input, their output and how often these occur in one release: two rows that agree in all of that show the same
measurement, with the same error, unless it is said that they were measured anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .composed_noise import ComposedNoise, Shown
from .design import Design
from .errors import InputError
from .functional_noise import FunctionalNoise
from .inputs import Array, Index, Inputs
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

    def knows_all_of(self, disclosure: Disclosure) -> bool:
        return len(self.rows_of(disclosure)[1]) == len(disclosure.design.inputs)

    def rows_of(self, disclosure: Disclosure) -> tuple[Array, Index]:
        """The rows of a release as this prior speaks of them, and which they are; it is silent about other outputs."""
        theirs, values = disclosure.design.inputs, disclosure.design.inputs.values
        plain = values[:, :-1] if theirs.outputs is not None else values
        if plain.shape[1] != self.inputs.features:
            raise InputError(
                f"X has {self.inputs.features} column(s), but the ledger has a release with {plain.shape[1]} "
                f"({', '.join(theirs.plain.names)}); a ledger is about one secret: use one for each."
            )
        numbers = values[:, -1].astype(np.intp) if theirs.outputs is not None else np.zeros(len(values), dtype=np.intp)
        ours = np.array([self.outputs.index(name) if name in self.outputs else -1 for name in disclosure.outputs])
        own = ours[numbers]
        kept = np.flatnonzero(own >= 0)
        rows = plain[kept]
        return (np.column_stack([rows, own[kept].astype(np.float64)]) if self.joint else rows), kept

    def stacked(self, rows: Array) -> Inputs:
        columns = self.inputs.columns
        if columns is None and self.joint:
            columns = (*self.inputs.plain.names, column_name(self.inputs.plain.names))
        return Inputs(rows, columns, self.inputs.outputs)


@dataclass(frozen=True, eq=False)
class Composition:
    """All that was published, as one set of noisy values: ``prior`` has no noise of its own, ``noise`` has all of it.

    ``latest`` has the number of the last measurement of each row that was ever released.
    """

    prior: Prior
    inputs: Inputs
    noise: ComposedNoise
    latest: Mapping[bytes, int]

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
    latest: dict[bytes, int] = {}
    levels: list[float] = []
    shown: dict[Any, Shown] = {}
    rows: dict[int, Array] = {}
    total = 0.0
    for disclosure in disclosures:
        own, which = speech.rows_of(disclosure)
        if not len(which):
            continue
        numbers = []
        for name, level in zip(row_names(own), error_variances(prior, speech, disclosure)[which], strict=True):
            if disclosure.remeasured or name not in latest:
                latest[name] = len(levels)
                levels.append(0.0)
            levels[latest[name]] = float(level)
            numbers.append(latest[name])
        rows |= dict(zip(numbers, own, strict=True))
        part = Shown(np.array(numbers, dtype=np.intp), _restricted(disclosure.design.noise, which))
        key = frozenset(numbers) if taken_together else len(shown)
        shown[key] = part if key not in shown else shown[key].again(part)
        total += disclosure.design.noise.trace
    noise = ComposedNoise(tuple(shown.values()), np.array(levels, dtype=np.float64), total)
    stacked = np.array([rows[int(number)] for number in noise.measurements]).reshape(-1, speech.inputs.dimension)
    return Composition(replace(prior, noise=0.0), speech.stacked(stacked), noise, latest)


def _restricted(noise: Noise, rows: Index) -> Noise:
    """The noise of some rows alone."""
    if len(rows) == noise.rows:
        return noise
    if isinstance(noise, IndependentNoise):
        return IndependentNoise(noise.variances[rows])
    return CorrelatedNoise(noise.factor[rows], noise.shift)


def error_variances(prior: Prior, speech: Speech, disclosure: Disclosure) -> Array:
    """V at the rows of a release, as readers with ``prior`` take it to be; as recorded, where it differs by row."""
    rows = len(disclosure.design.inputs)
    if isinstance(prior.noise, float) and not speech.joint:
        return np.full(rows, prior.noise)
    return disclosure.design.prior.noise_variance(rows)


def row_names(rows: Array) -> list[bytes]:
    """A name for each row: its input and output, and how often it occurred before."""
    seen: Counter[bytes] = Counter()
    names = []
    for row in np.ascontiguousarray(rows) + 0.0:
        key = row.tobytes()
        names.append(key + seen[key].to_bytes(8, "little"))
        seen[key] += 1
    return names
