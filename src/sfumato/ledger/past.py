"""What is out already, seen from the next release (MATH.md 8).

With ``A₂ = Cov(y₂|past)``, ``U₂ = Cov(y₂, f(S)|past)`` and what is left of the tolerance,
``Δ₂ = Δ − [K_SS − Cov(f(S)|past)]``, the next release keeps the promise of all together exactly if
``U₂ᵀ(A₂ + Σ₂)⁻¹U₂ ⪯ Δ₂``: what both explain of f(S) is what the past explains, and what the next one explains of the
rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import Array, Index, Mask
from ..data import Inputs
from ..design import Audience
from ..errors import BudgetError
from ..linalg import as_array, as_tensor, units
from ..models import Prior
from ..promise import Composition, Disclosure, Speech, Tolerance, compose, error_variances, same_measurement
from ..proof import Covariances
from ..regions import Region
from .promises import Promise

_UNIT = float(np.finfo(np.float64).eps)

#: A tolerance of which less than this share is left is used up.
LEAST_LEFT = 1e-4


@dataclass(frozen=True, eq=False)
class Published:
    """Everything that was published so far, for readers with one prior; round-off is on their side."""

    composition: Composition

    @classmethod
    def by(cls, prior: Prior, speech: Speech, disclosures: Sequence[Disclosure]) -> Published:
        """What ``disclosures`` tell readers with ``prior``, composed in whichever way round-off allows."""
        for taken_together in (True, False):
            published = cls(compose(prior, speech, disclosures, taken_together))
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
        total = composed.prior.covariance(composed.inputs) + composed.noise.covariance()
        scale = units(np.diag(total))
        total /= np.outer(scale, scale)
        total[np.diag_indices_from(total)] -= 2.0 * len(total) * _UNIT * float(np.max(np.diag(total)))
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
class Past:
    """What was ``published`` before a release whose ``rows`` these are.

    ``again`` has the numbers of those of its measurements that are out already (−1: new), ``errors`` the variances of
    all their errors.
    """

    published: Published
    rows: Array
    again: Index
    errors: Array

    @classmethod
    def of(cls, prior: Prior, speech: Speech, disclosures: Sequence[Disclosure], following: Disclosure) -> Past:
        """``following`` is the next release; its noise is of no account."""
        rows, which = speech.rows_of(following)
        errors = error_variances(prior, speech, following)[which]
        published = Published.by(prior, speech, disclosures)
        measurements = published.composition.measurements
        again = measurements.known(rows)
        if following.remeasured:
            again = np.full(len(rows), -1, dtype=np.intp)
        if np.any(again >= 0):
            rows = np.where((again >= 0)[:, None], measurements.rows[again], rows)
        return cls(published, rows, again, errors)

    def about(self, points: Array) -> Array:
        """What is out about f at ``points`` (``Published.about``)."""
        return self.published.about(points)

    @cached_property
    def about_rows(self) -> Array:
        """The same for the measurements of the next release: some of them may be out already."""
        shown = same_measurement(self.published.composition.noise.measurements, self.again)
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
class LeftOver(Tolerance):
    """What is left of a tolerance in ``region`` after the past, and ``share`` of it; nothing is asked elsewhere."""

    tolerance: Tolerance
    region: Region
    past: Past
    share: float

    def matrix(self, prior: Prior, S: Array) -> Array:
        known = self.past.about(S)
        return self.share * (self.tolerance.matrix(prior, S) - known.T @ known)

    def budget(self, prior: Prior, S: Array) -> Array:
        budget, inside = np.full(len(S), np.inf), self.region.contains(S)
        if np.any(inside):
            known = np.sum(self.past.about(S[inside]) ** 2, axis=0)
            budget[inside] = self.share * (self.tolerance.budget(prior, S[inside]) - known)
        return budget

    def check(self, prior: Prior, S: Array, inputs: Inputs) -> None:
        S = S[self.region.contains(S)]
        if not len(S):
            return
        self.tolerance.check(prior, S, inputs)
        whole, known = self.tolerance.budget(prior, S), np.sum(self.past.about(S) ** 2, axis=0)
        worst = int(np.argmin(1.0 - known / whole))
        if known[worst] > (1.0 - LEAST_LEFT) * whole[worst]:
            variance = float(prior.variance(S[worst : worst + 1])[0])
            raise BudgetError(
                f"nothing is left at {inputs.in_words(S[worst])}: what was published "
                f"before tells {known[worst] / variance:.4g} of the variance there, and the promise "
                f"({self.tolerance.in_words()}) allows {whole[worst] / variance:.4g}. Nothing more can be published "
                "that tells of it."
            )

    def check_together(self, prior: Prior, S: Array) -> None:
        """Raise ``BudgetError`` where some combination of the values at ``S`` has nothing left."""
        known, whole = self.past.about(S), self.tolerance.matrix(prior, S)
        used = most_used(known, whole)
        if used > 1.0 - LEAST_LEFT:
            raise BudgetError(
                f"nothing is left: what was published before tells a weighted average of the {len(S)} sensitive "
                f"values {used:.6g} times as well as the promise allows ({self.tolerance.in_words()}). Nothing more "
                "can be published that tells of it."
            )

    def in_words(self, outputs: Sequence[str] = ()) -> str:
        return f"{self.share:g} of what is left of: {self.tolerance.in_words(outputs)}"


@dataclass(frozen=True, eq=False)
class GivenPast(Covariances):
    """Covariances between the next release's measurements and f, given the past."""

    past: Past | None = None

    def between(self, A: Array, B: Array) -> torch.Tensor:
        assert self.past is not None
        assert A.shape == self.past.rows.shape
        return super().between(A, B) - as_tensor(self.past.about_rows.T @ self.past.about(B))

    def of_data(self, inputs: Inputs) -> torch.Tensor:
        assert self.past is not None
        total = super().of_data(inputs) - as_tensor(self.past.about_rows.T @ self.past.about_rows)
        return (total + total.T) / 2.0


@dataclass(frozen=True, eq=False)
class PastAudience(Audience):
    """Readers to whom something was promised, and who know what is out already."""

    promise: Promise | None = None
    past: Past | None = None

    @cached_property
    def covariances(self) -> Covariances:
        return GivenPast(self.prior, "cpu", self.past)

    @property
    def data_root(self) -> None:
        """None: what is known already leaves A₂ singular in places."""
        return None

    @cached_property
    def largest(self) -> float:
        """The largest variance before anything was known: round-off is that of a difference."""
        return float(np.max(self.prior.variance(self.inputs) + self.prior.noise_variance(len(self.inputs))))

    def concerned(self, points: Array) -> Mask:
        assert self.promise is not None
        return self.promise.design.region.contains(points)

    def positive_without(self, level: float) -> bool:
        reduced = np.array(as_array(self.data_covariance))
        reduced[np.diag_indices_from(reduced)] -= level
        try:
            scipy.linalg.cholesky(reduced, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        return True

    def most_told(self, points: Array) -> float:
        """The largest share of its whole tolerance that the next release could tell at ``points`` without any noise."""
        points = points[self.concerned(points)]
        if not len(points):
            return 0.0
        assert self.promise is not None
        cross = as_array(self.covariances.between(self.inputs.values, points))
        values, vectors = scipy.linalg.eigh(as_array(self.data_covariance), check_finite=False)
        floor = 64 * len(values) * _UNIT * self.largest
        seen = (vectors.T @ cross) / np.sqrt(np.maximum(values, floor))[:, None]
        return float(np.max(np.sum(seen**2, axis=0) / self.promise.design.tolerance.budget(self.prior, points)))
