"""Several releases of one secret, as readers with one prior see them together (MATH.md 8).

Releases may be about different outputs of one process, at new inputs or at old ones. Rows are identified by their input
(inputs that agree to a millionth of their range are the same), their output and how often these occur in one release:
two rows that agree in all of that show the same measurement, with the same error, unless it is said that they were
measured anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import scipy.linalg
import torch

from ..arrays import Array, Index, Mask
from ..data import Column, Inputs, MemoryInputs, default_names
from ..errors import InputError
from ..linalg import as_tensor, parallel_sum_factor, units
from ..models import Prior
from ..noise import CorrelatedNoise, ErrorCovariance, Noise
from .design import LEAST_OWN, Design
from .readers import Records

#: Inputs that differ by less than this share of their range are the same: they went through a file, or were computed
#: again.
SAME = 1e-6


class Measurements:
    """The measurements that were released so far, by their numbers; ``rows`` has the input and output of each."""

    def __init__(self, dimension: int) -> None:
        self.rows = np.zeros((0, dimension))
        self._latest: dict[bytes, int] = {}

    def record(self, rows: Array, remeasured: bool) -> Index:
        """The numbers of the measurements that ``rows`` show; those that are new get new ones."""
        rows = self._snapped(rows)
        numbers: list[int] = []
        fresh: list[Array] = []
        for name, row in zip(row_names(rows), rows, strict=True):
            if remeasured or name not in self._latest:
                self._latest[name] = len(self.rows) + len(fresh)
                fresh.append(row)
            numbers.append(self._latest[name])
        if fresh:
            self.rows = np.vstack([self.rows, np.array(fresh)])
        return np.array(numbers, dtype=np.intp)

    def known(self, rows: Array) -> Index:
        """The numbers of the last measurements of ``rows``; −1 where there is none."""
        return np.array([self._latest.get(name, -1) for name in row_names(self._snapped(rows))], dtype=np.intp)

    def _snapped(self, rows: Array) -> Array:
        """``rows``, those that are almost one that is known with its very inputs."""
        if not len(self.rows) or not len(rows):
            return rows
        both = np.vstack([self.rows, rows])
        spread = np.ptp(both, axis=0)
        scale = np.where(spread > 0, spread, np.maximum(np.max(np.abs(both), axis=0), np.finfo(np.float64).tiny))
        # the tree looks for the nearest row in the largest difference of any column
        distance, nearest = scipy.spatial.cKDTree(self.rows / scale).query(rows / scale, p=np.inf)
        return np.where((distance <= SAME)[:, None], self.rows[nearest], rows)


def row_names(rows: Array) -> list[bytes]:
    """A name for each row: its input and output, and how often it occurred before."""
    seen: Counter[bytes] = Counter()
    names = []
    for row in np.ascontiguousarray(rows) + 0.0:
        key = row.tobytes()
        names.append(key + seen[key].to_bytes(8, "little"))
        seen[key] += 1
    return names


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """Values that were published at measurements with these numbers, with ``noise`` on them.

    ``uncertain`` is what round-off could hide of the noise on each row. ``drawn`` is the variance of what was drawn of
    the noise on each row, where some of it stands for suppressed combinations (None: all of it was).
    """

    measurements: Index
    noise: Noise
    uncertain: Array | float = 0.0
    drawn: Array | None = None

    @property
    def variance(self) -> Array:
        """How much noise was drawn on each row."""
        return self.noise.variance() if self.drawn is None else self.drawn

    def merged(self, other: NoisyRows) -> NoisyRows:
        """Two releases of the same measurements as one release, whose noise lets readers learn as much."""
        mine, theirs = np.argsort(self.measurements), np.argsort(other.measurements)
        first = self.noise.covariance()[np.ix_(mine, mine)]
        second = other.noise.covariance()[np.ix_(theirs, theirs)]
        scale = units(np.diag(first + second))  # rows may be in different ones
        both = np.outer(scale, scale)
        factor, error = parallel_sum_factor(first / both, second / both)
        uncertain = (
            np.broadcast_to(self.uncertain, mine.shape)[mine] + np.broadcast_to(other.uncertain, mine.shape)[theirs]
        )
        noise, drawn = CorrelatedNoise(factor * scale[:, None]), None
        if any(one.drawn is not None or one.noise.suppressed_count for one in (self, other)):
            drawn = np.minimum(self.variance[mine], other.variance[theirs])
        return NoisyRows(self.measurements[mine], noise, uncertain + error * scale**2, drawn)


@dataclass(frozen=True, eq=False)
class ComposedError(ErrorCovariance):
    """What stands between f and all that was published: ``blockdiag(Σ₁, Σ₂, …) + P V Pᵀ``.

    The noises of different releases are independent. A measurement that is released twice has one error in both: the
    numbers in ``parts`` say which measurement a row shows (P), ``levels`` is the variance of each one's error. So a
    process that is seen with this error has none of its own (V = 0).
    """

    parts: tuple[NoisyRows, ...]
    levels: Array

    @cached_property
    def measurements(self) -> Index:
        return np.concatenate([np.zeros(0, dtype=np.intp), *(part.measurements for part in self.parts)])

    @property
    def least(self) -> float:
        return 0.0

    def noise_variance(self) -> Array:
        """How much noise there is on each row, measurement errors apart."""
        return np.concatenate([part.variance for part in self.parts])

    @cached_property
    def suppressed(self) -> Array:  # type: ignore[override]
        """What each release suppresses, of its own rows."""
        return np.asarray(scipy.linalg.block_diag(*(part.noise.suppressed for part in self.parts)), dtype=np.float64)

    @cached_property
    def uncertain(self) -> Array:  # type: ignore[override]
        return np.concatenate([np.broadcast_to(part.uncertain, part.noise.rows) for part in self.parts])

    def covariance(self) -> Array:
        """All that stands between f and the published values, but for what is suppressed.

        What round-off could hide of it is taken off.
        """
        blocks = [part.noise.drawn_covariance() for part in self.parts]
        total = np.asarray(scipy.linalg.block_diag(*blocks), dtype=np.float64) - np.diag(self.uncertain)
        return total + same_measurement(self.measurements, self.measurements) * self.levels[self.measurements]

    def add_to(self, matrix: torch.Tensor) -> torch.Tensor:
        matrix += as_tensor(self.covariance(), matrix.device)
        return matrix


def same_measurement(first: Index, second: Index) -> Array:
    """1 where two rows show the same measurement, else 0."""
    return np.asarray(first[:, None] == second[None, :], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Revealed:
    """What one release revealed. ``name`` is its output's, where it has one; ``remeasured``: its rows are all new."""

    design: Design
    name: str = "y"
    remeasured: bool = False

    def __post_init__(self) -> None:
        if self.design.noise.compressed:
            raise InputError(
                "this release is compressed: its noise is a function of the inputs, and a ledger composes noise on "
                'rows only. Protect with method="eigh" or "subspace".'
            )

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that its prior knows of."""
        return self.design.inputs.outputs.called(self.name).names


@dataclass(frozen=True, eq=False)
class RowLayout:
    """How a prior lays out rows: with ``inputs`` of which columns, and which outputs it knows."""

    inputs: Inputs
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, release: Revealed) -> RowLayout:
        return cls(release.design.inputs, release.outputs)

    @property
    def numbered(self) -> bool:
        """Whether the last column of a row is the number of its output."""
        return self.inputs.outputs.numbered

    def rows_of(self, release: Revealed) -> tuple[Array, Index]:
        """The rows of a release in this layout, and which they are; rows about unknown outputs are left out."""
        theirs = release.design.inputs
        plain, numbers = self._in_order(theirs.plain), theirs.outputs.numbers(theirs.values)
        ours = np.array([self.outputs.index(name) if name in self.outputs else -1 for name in release.outputs])
        own = ours[numbers]
        kept = np.flatnonzero(own >= 0)
        return self.inputs.outputs.rows(plain[kept], own[kept]), kept

    def _in_order(self, theirs: Inputs) -> Array:
        """The columns of other inputs in the order of our own."""
        mine = self.inputs.plain
        if theirs.dimension != mine.dimension:
            raise InputError(
                f"X has {mine.dimension} column(s), but the ledger has a release with {theirs.dimension} "
                f"({', '.join(theirs.names)}); a ledger is about one secret: use one for each."
            )
        if _kinds(mine) != _kinds(theirs):
            said = ["numbers" if one.encoding is None else one.encoding.in_words for one in (mine, theirs)]
            raise InputError(
                f"the columns of X and of a release of the ledger became numbers in different ways ({said[0]}, and "
                f"{said[1]}); use the prior of that release, which knows the way, and a table with the same columns."
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

    def inputs_of(self, rows: Array) -> Inputs:
        columns = self.inputs.columns
        if columns is None and self.numbered:
            columns = self.inputs.outputs.columns(self.inputs.plain.names)
        return MemoryInputs(rows, columns, self.inputs.outputs, encoding=self.inputs.encoding)


@dataclass(frozen=True, eq=False)
class Composition:
    """All that was published, as one set of noisy values: ``prior`` has no noise of its own, ``error`` has all of it.

    ``measurements`` knows which rows were ever released; ``trace`` is that of all releases' noises. ``shown`` has, for
    each release, which of its rows these readers know of, and the measurements that these show.
    """

    prior: Prior
    inputs: Inputs
    error: ComposedError
    measurements: Measurements
    trace: float
    shown: tuple[tuple[Index, Index], ...]

    def __len__(self) -> int:
        return len(self.inputs)

    def promised(self, releases: Sequence[Revealed], by: Sequence[int]) -> Index:
        """The measurements whose records were promised by the ``releases`` with these numbers (later ones aside).

        Where V is next to nothing a record is f there, as for ``promised_records``.
        """
        known = [(number, *self.shown[number]) for number in by if number < len(self.shown)]
        found = [shown[np.isin(rows, releases[number].design.records)] for number, rows, shown in known]
        numbers = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *found]))
        return numbers[self.has_own(self.measurements.rows[numbers], self.error.levels[numbers])]

    def has_own(self, places: Array, levels: Array) -> Mask:
        """Whether records at these places, with errors of these variances, are more than f there."""
        if not len(places):
            return np.zeros(0, dtype=np.bool_)
        return np.asarray(levels > LEAST_OWN * self.prior.variance(places))

    def records(self, numbers: Index) -> Records:
        """The records of the measurements with these numbers, among all that was published."""
        rows, shown = np.nonzero(same_measurement(self.error.measurements, numbers))
        nothing = np.zeros((0, len(numbers)))
        return Records(self.measurements.rows[numbers], self.error.levels[numbers], rows, shown, nothing)


def compose(prior: Prior, layout: RowLayout, releases: Sequence[Revealed], merge: bool = True) -> Composition:
    """What readers with ``prior`` see of ``releases`` together.

    Releases of the very same measurements are ``merged`` first: to a reader they are one release, with the parallel
    sum of their noises. That is quicker, but where one noise is far larger than another its round-off may hide the
    smaller one.
    """
    measurements = Measurements(layout.inputs.dimension)
    levels: dict[int, float] = {}
    seen: dict[Any, NoisyRows] = {}
    shown: list[tuple[Index, Index]] = []
    trace = 0.0
    for release in releases:
        own, which = layout.rows_of(release)
        numbers = measurements.record(own, release.remeasured)
        shown.append((which, numbers))
        if not len(which):
            continue
        for number, level in zip(numbers.tolist(), error_variances(prior, layout, release)[which], strict=True):
            # what is smaller hides less
            levels[number] = min(float(level), levels.get(number, np.inf))
        part = NoisyRows(numbers, release.design.noise.restricted(which))
        key = frozenset(numbers.tolist()) if merge else len(seen)
        seen[key] = part if key not in seen else seen[key].merged(part)
        trace += release.design.noise.trace
    error = ComposedError(tuple(seen.values()), np.array([levels[k] for k in range(len(levels))]))
    inputs = layout.inputs_of(measurements.rows[error.measurements])
    return Composition(replace(prior, noise=0.0), inputs, error, measurements, trace, tuple(shown))


def interpretations(releases: Sequence[Revealed]) -> list[tuple[Revealed, ...]]:
    """What may be true: that rows were measured anew where it was said, and that they were not.

    Guarantee: a promise that is kept under all of them does not depend on whether that was said rightly.
    """
    as_said = tuple(releases)
    if not any(one.remeasured for one in as_said):
        return [as_said]
    return [as_said, tuple(replace(one, remeasured=False) for one in as_said)]


def _kinds(inputs: Inputs) -> frozenset[Column]:
    """The columns of a table that became numbers."""
    return frozenset() if inputs.encoding is None else frozenset(inputs.encoding.columns)


def _unnamed(inputs: Inputs) -> bool:
    return inputs.names == default_names(inputs.dimension)


def error_variances(prior: Prior, layout: RowLayout, release: Revealed) -> Array:
    """V at the rows of a release, as readers with ``prior`` take it to be.

    That is the prior's own, where it is one number, and at the rows that the prior was given for. Elsewhere it is
    what was recorded, or the least of the prior's own for that output, if that is less: it hides less.
    """
    if isinstance(prior.noise, float) and not layout.numbered:
        return np.full(len(release.design.inputs), prior.noise)
    recorded = np.array(release.design.prior.noise_variance(len(release.design.inputs)))
    own = prior.noise_variance(len(layout.inputs))
    known = dict(zip(row_names(layout.inputs.values), own, strict=True))
    outputs = layout.inputs.outputs
    about = outputs.numbers(layout.inputs.values)
    least = {number: float(np.min(own[about == number])) for number in np.unique(about)}
    rows, which = layout.rows_of(release)
    for place, name, number in zip(which, row_names(rows), outputs.numbers(rows), strict=True):
        recorded[place] = known.get(name, min(recorded[place], least.get(number, np.inf)))
    return recorded
