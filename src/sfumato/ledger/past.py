"""Earlier releases, as the next release sees them (MATH.md 8).

With ``A₂ = Cov(y₂|past)``, ``U₂ = Cov(y₂, f(S)|past)`` and what is left of the tolerance,
``Δ₂ = Δ − [K_SS − Cov(f(S)|past)]``, the next release keeps the promise of all together exactly if
``U₂ᵀ(A₂ + Σ₂)⁻¹U₂ ⪯ Δ₂``: what both explain of f(S) is what the past explains, and what the next one explains of the
rest. The same holds of records: one that was published before has the same error in every release that shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array, Index, Mask
from ..data import Inputs
from ..design import RowsExposure
from ..errors import BudgetError
from ..linalg import Matrix, as_array, as_tensor, solve_lower, units, whitened_span
from ..models import Prior
from ..noise import Noise
from ..promise import (
    Composition,
    FunctionAndRecords,
    Past,
    Reader,
    Records,
    Revealed,
    RowLayout,
    SensitiveValues,
    Tolerance,
    Uncertain,
    compose,
    error_variances,
    same_measurement,
)
from ..proof import FACTORED
from ..regions import Region
from .promises import Promise

#: Eigenvalues of Cov(y|past) below this many n·u of the prior's largest are taken for round-off of a difference.
ROUND_OFF = 64.0

#: A tolerance of which less than this share is left is used up.
LEAST_LEFT = 1e-4


@dataclass(frozen=True, eq=False)
class Published:
    """Everything that was published so far, for readers with one prior; round-off is on their side."""

    composition: Composition

    @classmethod
    def by(cls, prior: Prior, layout: RowLayout, releases: Sequence[Revealed]) -> Published:
        """What ``releases`` tell readers with ``prior``, composed in whichever way round-off allows."""
        for merge in (True, False):
            published = cls(compose(prior, layout, releases, merge))
            if not len(published.composition) or published._root is not None:
                return published
        raise BudgetError(
            "what was published before is singular to working precision (some of it has no noise, or that of a known "
            "seed), so that nothing more can be certified; publish nothing more about this secret."
        )

    @cached_property
    def _root(self) -> tuple[Array, Array, Array] | None:
        """L and scale with ``L Lᵀ = M/scale − allowance``: what round-off could hide is given to the reader.

        With an orthonormal basis of L⁻¹N, where N are the combinations that were not published. None where M is
        singular to working precision.
        """
        composed = self.composition
        total = composed.prior.covariance(composed.inputs) + composed.error.covariance()
        scale = units(np.diag(total))
        with np.errstate(all="ignore"):  # what a file says may be too large for that, and then has no root
            total /= np.outer(scale, scale)
            total[np.diag_indices_from(total)] -= FACTORED * len(total) * UNIT * float(np.max(np.diag(total)))
        try:
            lower = np.asarray(scipy.linalg.cholesky(total, lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            return None
        return lower, scale, as_array(whitened_span(lower, composed.error.suppressed / scale[:, None]))

    def about(self, points: Array) -> Array:
        """``M^{-1/2} Cov(W_past, f(points))``: its squared column norms are what the past explains."""
        return self.whitened(self.cross(points))

    def values(self, releases: Sequence[Revealed], by: Sequence[int]) -> FunctionAndRecords:
        """f, and the records that the ``releases`` with these numbers promised, before anything was published."""
        composed = self.composition
        return FunctionAndRecords(Reader(composed.prior), composed.records(composed.promised(releases, by)))

    def cross(self, points: Array) -> Array:
        """Cov(W_past, f(points))."""
        if not len(self.composition) or not len(points):
            return np.zeros((len(self.composition), len(points)))
        return self.composition.prior.covariance(self.composition.inputs, points)

    def whitened(self, block: Array) -> Array:
        """``M^{-1/2}`` ``block``."""
        if not len(block):
            return block
        assert self._root is not None
        lower, scale, suppressed = self._root
        solved = solve_lower(lower, block / scale[:, None])
        return np.asarray(solved - suppressed @ (suppressed.T @ solved))


@dataclass(frozen=True, eq=False)
class EarlierReleases(Past):
    """What was ``published`` before a release whose ``rows`` these are.

    ``again`` has the numbers of its measurements that were published before (−1: new), ``errors`` the variances of
    all their errors.
    """

    published: Published
    rows: Array
    again: Index
    errors: Array

    @classmethod
    def of(cls, prior: Prior, layout: RowLayout, releases: Sequence[Revealed], following: Revealed) -> EarlierReleases:
        """``following`` is the next release; its noise does not matter here."""
        rows, which = layout.rows_of(following)
        errors = error_variances(prior, layout, following)[which]
        published = Published.by(prior, layout, releases)
        measurements = published.composition.measurements
        again = measurements.known(rows)
        if following.remeasured:
            again = np.full(len(rows), -1, dtype=np.intp)
        if np.any(again >= 0):
            rows = np.where((again >= 0)[:, None], measurements.rows[again], rows)
        return cls(published, rows, again, errors)

    @property
    def may_show_rows(self) -> bool:
        return True

    def about(self, points: Array) -> Array:
        return self.published.about(points)

    def about_data(self) -> Array:
        return self._about_data

    def records(self, promised: Index, rows: Index) -> Records:
        """The records of the ``promised`` measurements that were published before, and of these ``rows``."""
        composed, again = self.published.composition, self.again[rows]
        before, new = np.union1d(promised, again[again >= 0]), rows[again < 0]
        own = np.concatenate([composed.error.levels[before], self.errors[new]])
        places = np.vstack([composed.measurements.rows[before], self.rows[new]])
        # a row that shows a measurement again decides what is its own, as it does for the data
        of_row, shown = np.nonzero(same_measurement(self.again, before))
        own[shown] = self.errors[of_row]
        of_row, shown = np.concatenate([of_row, new]), np.concatenate([shown, len(before) + np.arange(len(new))])
        numbers = np.concatenate([before, np.full(len(new), -1, dtype=np.intp)])
        seen = self.published.cross(places) + same_measurement(composed.error.measurements, numbers) * own
        found = Records(places, own, of_row, shown, self.published.whitened(seen))
        return found.among(np.flatnonzero(composed.has_own(places, own)))

    @cached_property
    def _about_data(self) -> Array:
        shown = same_measurement(self.published.composition.error.measurements, self.again)
        return self.published.whitened(self.published.cross(self.rows) + shown * self.errors)


def most_used(known: Array, whole: Array) -> float:
    """The largest share of Δ = ``whole`` that ``known``ᵀ ``known`` is, over all combinations.

    All of it (1) where Δ is too close to singular to be sure.
    """
    scale = units(np.diag(whole))
    try:
        delta = whole / np.outer(scale, scale)
        return float(scipy.linalg.eigh(known.T @ known / np.outer(scale, scale), delta, eigvals_only=True)[-1])
    except np.linalg.LinAlgError:
        return 1.0


@dataclass(frozen=True, eq=False)
class RemainingTolerance(Tolerance):
    """``share`` of what their past has left a reader of a tolerance; of f only in ``region`` (None: nowhere).

    ``records`` are promised beside f.
    """

    tolerance: Tolerance
    region: Region | None
    share: float
    records: Records

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        values = _with_past(unknown)
        known = values.known(S)
        return self.share * (self.tolerance.matrix(values.before, S) - known.T @ known)

    def beside_records(self, unknown: Uncertain, S: Array) -> Array | None:
        if not len(self.records):
            return None
        values, count = FunctionAndRecords(_with_past(unknown).reader, self.records), len(S)
        delta = self.matrix(values, values.places(S))
        lower = np.asarray(np.linalg.cholesky(delta[count:, count:]), dtype=np.float64)
        taken = solve_lower(lower, delta[count:, :count])
        return delta[:count, :count] - taken.T @ taken

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        whole, used = self._whole_and_used(unknown, S)
        return self.share * (whole - used)

    def _whole_and_used(self, unknown: Uncertain, S: Array) -> tuple[Array, Array]:
        """How much of the variance of each value may be told (infinity: all of it), and how much of it was told."""
        values = _with_past(unknown)
        whole, used, asked = np.full(len(S), np.inf), np.zeros(len(S)), self.applies_to(S)
        if isinstance(values, FunctionAndRecords):
            asked[len(S) - len(values.records) :] = True  # that they are inside was seen when they were promised
        if np.any(asked):
            whole[asked] = self.tolerance.budget(values.before, S[asked])
            used[asked] = np.sum(values.known(S[asked]) ** 2, axis=0)
        return whole, used

    def applies_to(self, S: Array) -> Mask:
        return np.zeros(len(S), dtype=np.bool_) if self.region is None else self.region.contains(S)

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        if not len(S):
            return
        whole, used = self._whole_and_used(unknown, S)
        worst = int(np.argmin(1.0 - used / whole))
        if used[worst] > (1.0 - LEAST_LEFT) * whole[worst]:
            values = _with_past(unknown)
            variance = values.variance_before(S)[worst]
            of_record = "of the record " if values.own_variance(S)[worst] > 0 else ""
            raise BudgetError(
                f"nothing is left {of_record}at {inputs.in_words(S[worst])}: what was published "
                f"before tells {used[worst] / variance:.4g} of the variance there, and the promise "
                f"({self.tolerance.in_words()}) allows {whole[worst] / variance:.4g}. Nothing more can be published "
                "that tells of it."
            )

    def check_together(self, unknown: Uncertain, S: Array) -> None:
        """Raise ``BudgetError`` where some combination of the values at ``S`` has nothing left."""
        values = _with_past(unknown)
        used = most_used(values.known(S), self.tolerance.matrix(values.before, S))
        if used > 1.0 - LEAST_LEFT:
            raise BudgetError(
                f"nothing is left: what was published before tells a weighted average of the {len(S)} sensitive "
                f"values {used:.6g} times as well as the promise allows ({self.tolerance.in_words()}). Nothing more "
                "can be published that tells of it."
            )

    def least_left(self, unknown: Uncertain, S: Array) -> float:
        """The least share of the tolerance that is left at ``S``."""
        whole, used = self._whole_and_used(unknown, S)
        return float(np.min(1.0 - used / whole, initial=1.0))

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return f"{self.share:g} of what is left of: {self.tolerance.in_words(outputs)}"


def _with_past(unknown: Uncertain) -> SensitiveValues:
    """What a reader has a past about: what was seen of a prior alone is not known."""
    assert isinstance(unknown, SensitiveValues)
    return unknown


@dataclass(frozen=True, eq=False)
class Commitment:
    """A promise to one reader as it binds the next release, which exposes its rows to them."""

    promise: Promise
    exposure: RowsExposure
    tolerance: RemainingTolerance
    values: FunctionAndRecords

    @classmethod
    def of(cls, promise: Promise, revealed: Sequence[Revealed], following: Revealed, share: float) -> Commitment:
        """To a reader who has seen what is ``revealed``, when ``following`` may use ``share`` of what is left."""
        past, design = EarlierReleases.of(promise.prior, promise.layout, revealed, following), promise.design
        reader = Reader(replace(promise.prior, noise=past.errors), past)
        inputs = promise.layout.inputs_of(past.rows)
        own = following.design.records if len(revealed) in promise.by else following.design.records[:0]
        new = np.flatnonzero(np.isin(promise.layout.rows_of(following)[1], own))
        records = past.records(past.published.composition.promised(revealed, promise.by), new)
        region = design.region if design.protects_function else None
        left = RemainingTolerance(design.tolerance, region, share, records)
        exposure = RowsExposure(reader, inputs, left, design.guarantee == "joint", records=records)
        return cls(promise, exposure, left, FunctionAndRecords(reader, records))

    def places(self, points: Array) -> Array:
        """Those of ``points`` that are sensitive, and where the records lie."""
        return self.values.places(points[self.tolerance.applies_to(points)])

    def most_told(self, points: Array) -> float:
        """The largest share of its whole tolerance that the next release could tell at ``points`` without any noise."""
        places = self.places(points)
        if not len(places):
            return 0.0
        exposure = self.exposure
        cross = as_array(self.values.with_data(exposure.inputs, places))
        values, vectors = scipy.linalg.eigh(as_array(exposure.data_covariance), check_finite=False)
        floor = ROUND_OFF * len(values) * UNIT * exposure.largest
        seen = (vectors.T @ cross) / np.sqrt(np.maximum(values, floor))[:, None]
        return float(np.max(np.sum(seen**2, axis=0) / self.tolerance.tolerance.budget(self.values.before, places)))

    def told_of_records(self, noise: Noise) -> float:
        """The largest share of what may be told of any record that the next release tells with this ``noise``."""
        exposure, places = self.exposure, self.values.records.places
        if not len(places):
            return 0.0
        cross = as_array(self.values.with_data(exposure.inputs, places))
        total = as_array(noise.add_to(as_tensor(exposure.data_covariance).clone()))
        lower = np.asarray(np.linalg.cholesky(total), dtype=np.float64)
        suppressed = as_array(whitened_span(lower, noise.suppressed))
        told = solve_lower(lower, cross)
        told = told - suppressed @ (suppressed.T @ told)
        return float(np.max(np.sum(told**2, axis=0) / self.tolerance.budget(self.values, places)))

    def check_left(self, points: Array) -> None:
        """Raise ``BudgetError`` where the past has left nothing of the promise, at ``points`` or of averages."""
        exposure, sensitive = self.exposure, self.promise.design.sensitive
        places = self.places(points)
        if len(places):
            self.promise.design.tolerance.check(self.values.before, places, exposure.inputs)
        self.tolerance.check(self.values, places, exposure.inputs)
        together = self.places(sensitive)
        if exposure.joint and len(together):
            self.tolerance.check_together(self.values, together)

    def least_left(self, points: Array) -> float:
        """The least share of the tolerance that is left, at ``points`` and of records."""
        return self.tolerance.least_left(self.values, self.places(points))


@dataclass(frozen=True, eq=False)
class OtherReader:
    """An exposure to a reader who lays out inputs otherwise: what is promised to them is promised where it was before.

    Whatever sensitive inputs a design is made for, here they are those of ``commitment`` itself, and its records.
    """

    commitment: Commitment

    @property
    def _own(self) -> RowsExposure:
        return self.commitment.exposure

    @property
    def reader(self) -> Reader:
        return self._own.reader

    @property
    def unknown(self) -> SensitiveValues:
        return self._own.unknown

    @property
    def tolerance(self) -> Tolerance:
        """Of inputs that are laid out as they are for other readers, nothing is asked."""
        return replace(self.commitment.tolerance, region=None)

    @property
    def joint(self) -> bool:
        return self._own.joint

    @property
    def device(self) -> str | None:
        return self._own.device

    @property
    def size(self) -> int:
        return self._own.size

    @property
    def data_covariance(self) -> Matrix:
        return self._own.data_covariance

    @property
    def data_root(self) -> Matrix | None:
        return self._own.data_root

    @property
    def largest(self) -> float:
        return self._own.largest

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        return self._own.root(self.commitment.promise.design.sensitive, with_records)

    def cross(self, points: Array) -> Matrix:
        return self._own.cross(points)

    def at(self, points: Array) -> tuple[Matrix, Array]:
        return np.zeros((self.size, len(points))), np.full(len(points), np.inf)

    def shift(self, level: float) -> float:
        return self._own.shift(level)
