"""Earlier releases, as the next release sees them (MATH.md 8).

With ``A₂ = Cov(y₂|past)``, ``U₂ = Cov(y₂, f(S)|past)`` and what is left of the tolerance,
``Δ₂ = Δ − [K_SS − Cov(f(S)|past)]``, the next release keeps the promise of all together exactly if
``U₂ᵀ(A₂ + Σ₂)⁻¹U₂ ⪯ Δ₂``: what both explain of f(S) is what the past explains, and what the next one explains of the
rest.
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
from ..linalg import as_array, units
from ..models import Prior
from ..promise import (
    Composition,
    Past,
    Reader,
    Revealed,
    RowLayout,
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
    def _root(self) -> tuple[Array, Array] | None:
        """L and scale with ``L Lᵀ = M/scale − allowance``: what round-off could hide is given to the reader.

        None where M is singular to working precision.
        """
        composed = self.composition
        total = composed.prior.covariance(composed.inputs) + composed.error.covariance()
        scale = units(np.diag(total))
        total /= np.outer(scale, scale)
        total[np.diag_indices_from(total)] -= FACTORED * len(total) * UNIT * float(np.max(np.diag(total)))
        try:
            return np.asarray(scipy.linalg.cholesky(total, lower=True, check_finite=False)), scale
        except np.linalg.LinAlgError:
            return None

    def about(self, points: Array) -> Array:
        """``M^{-1/2} Cov(W_past, f(points))``: its squared column norms are what the past explains."""
        return self.whitened(self.cross(points))

    def cross(self, points: Array) -> Array:
        """Cov(W_past, f(points))."""
        if not len(self.composition):
            return np.zeros((0, len(points)))
        return self.composition.prior.covariance(self.composition.inputs, points)

    def whitened(self, block: Array) -> Array:
        """``M^{-1/2}`` ``block``."""
        if not len(block):
            return block
        assert self._root is not None
        lower, scale = self._root
        return np.asarray(scipy.linalg.solve_triangular(lower, block / scale[:, None], lower=True, check_finite=False))


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
    """``share`` of what the past of ``reader`` has left of a tolerance in ``region``; nothing is asked elsewhere."""

    tolerance: Tolerance
    region: Region
    reader: Reader
    share: float

    def matrix(self, unknown: Uncertain, S: Array) -> Array:
        known = self.reader.past.about(S)
        return self.share * (self.tolerance.matrix(self.reader.prior, S) - known.T @ known)

    def budget(self, unknown: Uncertain, S: Array) -> Array:
        budget, inside = np.full(len(S), np.inf), self.region.contains(S)
        if np.any(inside):
            known = np.sum(self.reader.past.about(S[inside]) ** 2, axis=0)
            budget[inside] = self.share * (self.tolerance.budget(self.reader.prior, S[inside]) - known)
        return budget

    def applies_to(self, S: Array) -> Mask:
        return self.region.contains(S)

    def check(self, unknown: Uncertain, S: Array, inputs: Inputs) -> None:
        S, prior = S[self.region.contains(S)], self.reader.prior
        if not len(S):
            return
        self.tolerance.check(prior, S, inputs)
        whole, known = self.tolerance.budget(prior, S), np.sum(self.reader.past.about(S) ** 2, axis=0)
        worst = int(np.argmin(1.0 - known / whole))
        if known[worst] > (1.0 - LEAST_LEFT) * whole[worst]:
            variance = float(prior.variance(S[worst : worst + 1])[0])
            raise BudgetError(
                f"nothing is left at {inputs.in_words(S[worst])}: what was published "
                f"before tells {known[worst] / variance:.4g} of the variance there, and the promise "
                f"({self.tolerance.in_words()}) allows {whole[worst] / variance:.4g}. Nothing more can be published "
                "that tells of it."
            )

    def check_together(self, S: Array) -> None:
        """Raise ``BudgetError`` where some combination of the values at ``S`` has nothing left."""
        used = most_used(self.reader.past.about(S), self.tolerance.matrix(self.reader.prior, S))
        if used > 1.0 - LEAST_LEFT:
            raise BudgetError(
                f"nothing is left: what was published before tells a weighted average of the {len(S)} sensitive "
                f"values {used:.6g} times as well as the promise allows ({self.tolerance.in_words()}). Nothing more "
                "can be published that tells of it."
            )

    def least_left(self, S: Array) -> float:
        """The least share of the tolerance that is left at ``S``."""
        whole = self.tolerance.budget(self.reader.prior, S)
        return float(np.min(self.budget(self.reader.function, S) / (self.share * whole)))

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return f"{self.share:g} of what is left of: {self.tolerance.in_words(outputs)}"


@dataclass(frozen=True, eq=False)
class Commitment:
    """A promise to one reader as it binds the next release, which exposes its rows to them."""

    promise: Promise
    exposure: RowsExposure
    tolerance: RemainingTolerance

    @classmethod
    def of(cls, promise: Promise, revealed: Sequence[Revealed], following: Revealed, share: float) -> Commitment:
        """To a reader who has seen what is ``revealed``, when ``following`` may use ``share`` of what is left."""
        past, design = EarlierReleases.of(promise.prior, promise.layout, revealed, following), promise.design
        reader = Reader(replace(promise.prior, noise=past.errors), past)
        left = RemainingTolerance(design.tolerance, design.region, reader, share)
        inputs = promise.layout.inputs_of(past.rows)
        return cls(promise, RowsExposure(reader, inputs, left, design.guarantee == "joint"), left)

    def most_told(self, points: Array) -> float:
        """The largest share of its whole tolerance that the next release could tell at ``points`` without any noise."""
        points = points[self.tolerance.applies_to(points)]
        if not len(points):
            return 0.0
        exposure, prior = self.exposure, self.exposure.reader.prior
        cross = as_array(exposure.unknown.with_data(exposure.inputs, points))
        values, vectors = scipy.linalg.eigh(as_array(exposure.data_covariance), check_finite=False)
        floor = ROUND_OFF * len(values) * UNIT * exposure.largest
        seen = (vectors.T @ cross) / np.sqrt(np.maximum(values, floor))[:, None]
        return float(np.max(np.sum(seen**2, axis=0) / self.promise.design.tolerance.budget(prior, points)))

    def check_left(self, points: Array) -> None:
        """Raise ``BudgetError`` where the past has left nothing of the promise, at ``points`` or of averages."""
        exposure, sensitive = self.exposure, self.promise.design.sensitive
        self.tolerance.check(exposure.unknown, points, exposure.inputs)
        if exposure.joint and len(sensitive):
            self.tolerance.check_together(sensitive)
