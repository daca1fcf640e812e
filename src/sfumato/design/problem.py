"""The problem that a design solves: what is asked, and the data as each reader sees it.

``Problem`` is what is asked, ``Solution`` what was found. A ``BackEnd`` says on which rows it is worked out: those of
the data, virtual ones, or rows that follow earlier releases. For each reader it has an ``Exposure``: A = Cov(y|past)
and U = Cov(y, sensitive|past) Δ^{-1/2}. solver.py puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from ..arrays import Array, Index, Mask
from ..data import Inputs
from ..errors import InputError
from ..linalg import Matrix, as_array, as_tensor, cholesky_in_place
from ..models import Prior, PriorFamily
from ..noise import Noise
from ..programs import promised_root
from ..promise import (
    Cover,
    Design,
    FunctionAndRecords,
    Guarantee,
    Insiders,
    Protects,
    Reader,
    Records,
    SensitiveValues,
    Served,
    Structure,
    Tolerance,
    promised_records,
)
from ..regions import Region
from .closed_form import DataCovariance
from .plan import Plan, Size

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7

#: A stays positive definite without this many times the round-off in B, or a shift of four times as much is added.
#: There is more to spare after earlier releases: later ones, whose noise is larger, must not hide this one's.
SPARE, SPARE_AFTER_RELEASES = 64.0, 1024.0


@dataclass(frozen=True, eq=False)
class Solution:
    """A noise, and what proves that it could hardly be less (programs/demand.py); a closed form needs no proof.

    Where it is the noise with the best predictions, ``explained`` is the share that readers explain at the served
    inputs, and the witness proves that no noise explains more than ``most`` (programs/predictions.py). ``more`` makes
    a noise that lets through whatever else the sensitive values allow, and says what that explains.
    """

    noise: Noise
    witness: tuple[Array, ...] | None = None
    explained: float | None = None
    most: float = float("inf")
    more: Callable[[], tuple[Noise, float]] | None = None

    def raised(self) -> Solution:
        """The one that lets ``more`` through."""
        if self.more is None:
            return self
        noise, explained = self.more()
        return replace(self, noise=noise, explained=explained, more=None)

    def pulls(self, count: int) -> Array | None:
        """How much each of the first ``count`` sensitive values asks for; None where nothing says it."""
        if self.witness is None:
            return None
        axis = 0 if self.explained is None else 1
        return np.asarray(np.sum([np.sum(part**2, axis=axis)[:count] for part in self.witness], axis=0))

    def keeping(self, kept: Mask) -> Solution:
        """The same noise where of the first sensitive values only those that are ``kept`` are named."""
        assert self.witness is not None
        axis = 1 if self.explained is None else 0
        first = np.flatnonzero(kept)
        each = (np.concatenate([first, np.arange(len(kept), part.shape[axis])]) for part in self.witness)
        parts = (np.take(part, own, axis=axis) for part, own in zip(self.witness, each, strict=True))
        return replace(self, witness=tuple(parts))


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked: the least noise on rows such that readers learn no more about a region than a tolerance allows.

    With ``serves``, the noise with the best predictions at these inputs is asked for instead (predictions.py).
    ``plan`` says how it is worked out (plan.py).
    """

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    weights: Array | None = None
    guarantee: Guarantee = "joint"
    structure: Structure = "full"
    others: tuple[Prior, ...] = ()
    plan: Plan = field(default_factory=Plan)
    protects: Protects = "function"
    insiders: Insiders | None = None
    families: tuple[PriorFamily, ...] = ()
    serves: Served | None = None

    @property
    def priors(self) -> tuple[Prior, ...]:
        """All priors that it is designed for; families are left to families.py."""
        return (self.prior, *self.others)

    @property
    def joint(self) -> bool:
        return self.guarantee == "joint"

    @property
    def protects_function(self) -> bool:
        """Whether anything is promised about f itself."""
        return self.protects != "records"

    @property
    def size(self) -> Size:
        """What decides how it is worked out."""
        named = self.region.points
        return Size(
            len(self.inputs),
            len(self.priors),
            self.joint and self.structure == "full" and not self.others and not self.families,
            self.weights is not None,
            not isinstance(self.prior.noise, float),
            named=0 if named is None else len(named),
            serves=self.serves is not None,
        )

    @cached_property
    def rows_inside(self) -> Array:
        return self.region.promised_at_rows(self.inputs.values)

    @cached_property
    def records(self) -> Index:
        """The rows whose records are sensitive."""
        return promised_records(self.protects, self.priors, self.region, self.inputs)

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        """The design that has this solution's noise."""
        return Design(
            self.prior,
            self.inputs,
            self.region,
            self.tolerance,
            cover,
            sensitive,
            solution.noise,
            self.weights,
            self.guarantee,
            self.structure,
            self.others,
            solution.witness,
            protects=self.protects,
            serves=self.serves,
        )


def no_rows_inside(problem: Problem) -> InputError:
    """What is said where records are to be protected and there is none in the region."""
    return InputError(
        f'protects is "records", but no row of the data has {problem.region.in_words(problem.inputs.names)}; give a '
        'region with rows in it, or protects="function".'
    )


class Exposure(DataCovariance, Protocol):
    """What the rows of a release tell one reader as long as no noise is on them: A, and U for any sensitive inputs.

    n × n matrices live on ``device`` (None: the CPU), what comes back is small and NumPy's.
    """

    @property
    def reader(self) -> Reader: ...

    @property
    def unknown(self) -> SensitiveValues:
        """What is sensitive, as this reader sees it."""

    @property
    def tolerance(self) -> Tolerance:
        """How much of it this reader may still learn."""

    @property
    def joint(self) -> bool:
        """Whether they may learn no more of all values together, or of each by itself."""

    @property
    def largest(self) -> float:
        """The largest variance of the data before anything was known."""

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX`` (joint), or the columns ``k_s/√δ_s`` (each value by itself).

        The sensitive values are f at the ``sensitive`` inputs and, unless they are left out, the sensitive records.
        """

    def cross(self, points: Array) -> Matrix:
        """Cov(y, f(points)|past)."""

    def at(self, points: Array) -> tuple[Matrix, Array]:
        """Cov(y, f(points)|past), and how much of the variance of f may be explained at each of ``points``."""

    def shift(self, level: float) -> float:
        """The independent noise to add so that round-off of size ``level`` in B cannot decide; 0 where there is none.

        Where A is singular to working precision round-off decides the smallest directions of M. A shift that is far
        above it and far below anything visible is then drawn and published with the rest.
        """


class BackEnd(Protocol):
    """On which rows a problem is worked out, and how what is found is published."""

    @property
    def problem(self) -> Problem: ...

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """The data as each reader sees it."""

    @property
    def given(self) -> Array:
        """Inputs that must be among the sensitive ones."""

    def admissible(self, points: Array) -> Array:
        """Inputs that may be sensitive ones and stand for ``points``."""

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        """The design that has this solution's noise, as it was asked for."""

    def jointly(self) -> BackEnd | None:
        """The same with the joint promise; None where it cannot be compared with."""


@dataclass(frozen=True, eq=False)
class RowsExposure:
    """The rows of the data themselves.

    Where A is well-conditioned one n × n matrix stays, its Cholesky factor, and A is made only when needed; else
    A stays, and ``learnt`` has a copy of it while it runs. ``like`` shows the same rows to the same reader under
    another tolerance: its matrices are taken.
    """

    reader: Reader
    inputs: Inputs
    tolerance: Tolerance
    joint: bool = True
    device: str | None = None
    records: Records | None = None
    like: Exposure | None = None

    @property
    def unknown(self) -> SensitiveValues:
        return self.reader.function

    @property
    def size(self) -> int:
        return len(self.inputs)

    @cached_property
    def data_covariance(self) -> Matrix:
        if self.like is not None:
            return self.like.data_covariance
        return self.reader.data_covariance(self.inputs, self.device)

    @cached_property
    def data_root(self) -> Matrix | None:
        if self.like is not None:
            return self.like.data_root
        if self.reader.past.may_show_rows or self._least_noise <= WELL_CONDITIONED * self.largest:
            return None
        return cholesky_in_place(self.reader.data_covariance(self.inputs, self.device))

    @cached_property
    def largest(self) -> float:
        prior = self.reader.prior
        return float(np.max(prior.variance(self.inputs) + prior.noise_variance(self.size)))

    @property
    def _least_noise(self) -> float:
        return float(np.min(self.reader.prior.noise_variance(self.size)))

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        values = self.reader.values(self.inputs, np.zeros(0, dtype=np.intp))
        if self.records is not None and with_records:
            values = FunctionAndRecords(self.reader, self.records)
        places = values.places(sensitive[self.tolerance.applies_to(sensitive)])
        if not len(places):
            return np.zeros((self.size, 0))
        cross = as_array(values.with_data(self.inputs, places, self.device))
        return promised_root(cross, self.tolerance, values, places, self.joint)

    def cross(self, points: Array) -> Matrix:
        return self.unknown.with_data(self.inputs, points, self.device)

    def at(self, points: Array) -> tuple[Matrix, Array]:
        budget = budget_at(self, self.inputs, points)
        return self.cross(points), budget

    def shift(self, level: float) -> float:
        past = self.reader.past.may_show_rows
        spare = (SPARE_AFTER_RELEASES if past else SPARE) * level
        if not past and self._least_noise > 2 * spare:
            return 0.0
        reduced = as_tensor(self.data_covariance, self.device).clone()
        reduced.diagonal().sub_(spare)
        try:
            cholesky_in_place(reduced)
        except np.linalg.LinAlgError:
            return 4 * spare
        return 0.0


@dataclass(frozen=True, eq=False)
class DenseRows:
    """The rows of the data, for readers who have seen nothing yet.

    ``like`` are the same rows for the same readers, under another promise: what does not depend on it is taken.
    """

    problem: Problem
    like: DenseRows | None = None

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        asked, readers = self.problem, [Reader(prior) for prior in self.problem.priors]
        same = (None,) * len(readers) if self.like is None else self.like.exposures
        return tuple(
            RowsExposure(
                reader,
                asked.inputs,
                asked.tolerance,
                asked.joint and reader.is_promised_averages,
                asked.plan.device,
                reader.records(asked.inputs, asked.records),
                like,
            )
            for reader, like in zip(readers, same, strict=True)
        )

    @property
    def given(self) -> Array:
        return np.asarray(self.problem.inputs.values[:0])

    def admissible(self, points: Array) -> Array:
        return points

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        return self.problem.published(cover, sensitive, solution)

    def jointly(self) -> DenseRows:
        return DenseRows(replace(self.problem, guarantee="joint"))


def budget_at(exposure: Exposure, inputs: Inputs, points: Array) -> Array:
    """How much of the variance of f may be explained at each of ``points``."""
    budget = exposure.tolerance.budget(exposure.unknown, points)
    if np.any(budget <= 0):
        # a floor that varies may pass the prior's own spread between the inputs that were probed first
        exposure.tolerance.check(exposure.unknown, points, inputs)
    return budget
