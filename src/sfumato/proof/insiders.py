"""What readers learn who hold some of the rows: checked for every group, from the published objects alone (MATH.md 11).

An insider holds ``y_H`` and reads ``W = y + Z``, so they know the noise ``Z_H`` on their own rows as well. With
``M = A + Σ = L Lᵀ``, ``E = L⁻¹U`` and ``s_H = L⁻¹Σ_·H`` what they are left with of the sensitive values is
``Cov(z) − EᵀE − v D⁻¹ vᵀ`` with ``v = Cov(z, y_H|W) = Eᵀ s_H`` and ``D = Cov(y_H|W) = Σ_HH − s_Hᵀ s_H``. Before the
release they were left with ``Q = Cov(z) − Cov(z, y_H) A_HH⁻¹ Cov(y_H, z)``; of that a tolerance lets them learn Δ_H.
No matrix but L has more than γ or |H| rows on either side, and nothing cancels where the noise on held rows is small.

Combinations N of the rows that are not published are projected out of L⁻¹ (knowledge.py). With ``Ñ = N(NᵀM⁻¹N)^{-1/2}``
and ``T = M⁻¹Ñ`` they add ``UᵀTÑᵀ`` to v and ``ATTᵀA − ΣTTᵀΣ`` to D, where ``AT = Ñ − ΣT``.

Where the noise on some held rows tells that on others of them (rows with equal inputs, more rows than Σ has
directions), D is singular. There groups are conditioned on from scratch: ``Z_H`` is projected out of the factor of Σ,
and ``y_H`` out of A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array, Index
from ..linalg import as_array, as_tensor
from ..noise import finest_resolution
from ..promise import DETERMINED, Design, Reader
from .knowledge import ExactKnowledge
from .roundoff import SOLVED

#: Ratios of groups are told apart to this share; the larger is given.
ALIKE = 1e-4

#: Round-off of more than this share of a variance makes it worth while to condition on a group from scratch.
IN_THE_WAY = 1e-8


@dataclass(frozen=True, eq=False)
class Given:
    """Sensitive values as an insider sees them before the release."""

    left: Array
    before: Array
    own: Array

    def covariance(self, S: Array) -> Array:
        return np.array(self.left)

    def variance(self, S: Array) -> Array:
        return np.array(np.diag(self.left))

    def variance_before(self, S: Array) -> Array:
        return self.before

    def own_variance(self, S: Array) -> Array:
        return self.own

    @property
    def stands_for(self) -> float:
        """Insiders stand for themselves alone."""
        return 1.0


@dataclass(frozen=True, eq=False)
class Told:
    """What one group learns, as a share of what it may; ``determined`` values were known to it before.

    ``place`` says of which value, where each is promised by itself.
    """

    ratio: float
    determined: int
    place: int = 0


class InsidersOfReader:
    """What readers with one prior learn who hold rows: of f at the ``sensitive`` inputs, and of ``records``.

    ``joint``: of all combinations, or of each value by itself.
    """

    def __init__(self, design: Design, known: ExactKnowledge, sensitive: Array, records: Index, joint: bool) -> None:
        self.design, self.known, self.joint, self.records = design, known, joint, records
        inputs, reader = design.inputs, known.reader
        values = reader.values(inputs, records)
        self.places = values.places(sensitive)
        cross = values.with_data(inputs, self.places, known.device)
        self.cross = as_array(cross)
        self.covariance = values.covariance(self.places)
        self.before, self.own = values.variance_before(self.places), values.own_variance(self.places)
        self.explained = known.whiten(cross)
        self.outsider = self.covariance - as_array(self.explained.T @ self.explained)
        # round-off in each whitened column, as a share of its value's standard deviation
        self.error = known.solved * UNIT * float(np.sqrt(len(inputs) * known.largest / known.least))

    @cached_property
    def _noise(self) -> tuple[Array, Array]:
        """L⁻¹Σ, and what it and what is suppressed show of the sensitive values: Cov(z, y|W)."""
        noise, device = self.design.noise, self.known.device
        factor = as_tensor(noise.factor, device)
        white = self.known.whiten(factor) @ factor.T
        if noise.shift > 0.0:
            unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
            white += noise.shift * self.known.whiten(unit)
        spanning, solved = self.known.suppressed
        seen = self.explained.T @ white + (as_tensor(self.cross, device).T @ solved) @ spanning.T
        return as_array(white), as_array(seen)

    @cached_property
    def _suppressed(self) -> tuple[Array, Array]:
        """Ñ, and ΣT with ``T = M⁻¹Ñ``: what is suppressed is left of y, and what the noise would tell of it."""
        noise, (spanning, solved) = self.design.noise, self.known.suppressed
        factor = as_tensor(noise.factor, self.known.device)
        return as_array(spanning), as_array(factor @ (factor.T @ solved) + noise.shift * solved)

    @cached_property
    def _hidden(self) -> Array:
        """The variance of the noise and of what is suppressed on each row; 0 where W shows the record as it is."""
        noise, spread = self.design.noise.variance(), np.diag(self._data)
        suppressed = np.sum(self._suppressed[0] ** 2, axis=1)
        return np.asarray(noise + np.where(suppressed > finest_resolution(0.5, 0.0) ** 2 * spread, suppressed, 0.0))

    def told(self, rows: Index, unless: float = 0.0) -> Told:
        """What whoever holds these rows learns; where that is surely no more than ``unless``, that."""
        given, variance, held = self.cross[rows], np.diag(self.covariance), self.factor_of(rows)
        if held is None:
            return Told(float("inf"), 0)
        shown = scipy.linalg.cho_solve(held, given, check_finite=False)
        before = variance - np.sum(given * shown, axis=0)
        mine = np.isin(self.records, rows)
        kept = before > DETERMINED * variance
        kept[len(kept) - len(mine) :] &= ~mine
        index = np.flatnonzero(kept)
        determined = len(kept) - int(np.sum(mine)) - len(index)
        if not len(index):
            return Told(0.0, determined)
        more, slack = self.noise_known(rows)
        scratch = slack > IN_THE_WAY
        if scratch:
            more, slack = self.from_scratch(rows, held)
        if not np.isfinite(slack):
            return Told(float("inf"), determined, int(index[0]))
        tolerance, places, error = self.design.tolerance, self.places[index], slack * self.before[index]
        if not self.joint:
            values = Given(np.diag(before[index]), self.before[index], self.own[index])
            learnt = np.sum(more**2, axis=0) if scratch else before - np.diag(self.outsider) + np.sum(more**2, axis=0)
            ratios = (learnt[index] + error) / tolerance.budget(values, places)
            return Told(float(np.max(ratios)), determined, int(index[np.argmax(ratios)]))
        both = np.ix_(index, index)
        whole = self.covariance[both] - given[:, index].T @ shown[:, index]
        learnt = more[:, index].T @ more[:, index]
        if not scratch:
            learnt += whole - self.outsider[both]
        # an error of e in each entry, in units of standard deviations, is at most γ·e·diag of the variances
        learnt[np.diag_indices_from(learnt)] += len(index) * error
        values = Given(whole, self.before[index], self.own[index])
        return Told(_largest(learnt, tolerance.matrix(values, places), unless), determined)

    def factor_of(self, rows: Index) -> tuple[Array, bool] | None:
        """The Cholesky factor of Cov(y_H); None where some of these rows determine others."""
        try:
            return np.asarray(np.linalg.cholesky(self._data[np.ix_(rows, rows)])), True
        except np.linalg.LinAlgError:
            return None

    def noise_known(self, rows: Index) -> tuple[Array, float]:
        """E with EᵀE what the noise on these rows tells beyond W, and the round-off, large where D is nearly singular.

        Held rows without noise tell nothing that W does not.
        """
        noise, nothing = self.design.noise, np.zeros((0, len(self.places)))
        noisy = rows[self._hidden[rows] > 0.0]
        if not noisy.size:
            return nothing, 4.0 * self.error
        factor, white = noise.factor[noisy], self._noise[0][:, noisy]
        seen, gram = self._noise[1][:, noisy], white.T @ white
        total, (spanning, told) = self._hidden[noisy], (one[noisy] for one in self._suppressed)
        suppressed = spanning @ spanning.T - spanning @ told.T - told @ spanning.T
        left = factor @ factor.T + noise.shift * np.eye(len(noisy)) - gram + suppressed
        # never more than there is: what round-off may have added is taken off
        left = (left + left.T) / 2.0 - 4.0 * self.error * np.diag(total)
        spread = np.sqrt(total)[:, None]  # of rows far away it can be so small that its square is 0
        values, vectors = scipy.linalg.eigh(left / spread / spread.T)
        if values[0] <= 4.0 * self.error:
            return nothing, float("inf")
        root = vectors / spread / np.sqrt(values)
        return root.T @ seen.T, 4.0 * self.error * (1.0 + 1.0 / np.sqrt(values[0]))

    def from_scratch(self, rows: Index, held: tuple[Array, bool]) -> tuple[Array, float]:
        """E with EᵀE what W tells beyond these rows, and the round-off (infinite: M_H is singular).

        ``held`` is the factor of Cov(y_H).
        """
        noise, data = self.design.noise, self._data
        others = np.setdiff1d(np.arange(len(data)), rows)
        if not others.size:
            return np.zeros((0, len(self.places))), self.error
        factor = np.hstack([noise.blurring, np.sqrt(noise.shift) * np.eye(len(data))])
        spread = np.sqrt(np.diag(data)[rows])
        _, values, known = scipy.linalg.svd(factor[rows] / spread[:, None], full_matrices=False)
        # W is rounded: nobody sees less in it than half of the finest step
        known = known[values > finest_resolution(0.5, 0.0)]
        factor = factor[others] - (factor[others] @ known.T) @ known
        through = scipy.linalg.cho_solve(held, np.hstack([data[np.ix_(rows, others)], self.cross[rows]]))
        told = np.hstack([data[np.ix_(others, others)], self.cross[others]]) - data[np.ix_(others, rows)] @ through
        total = told[:, : len(others)] + factor @ factor.T
        values, vectors = scipy.linalg.eigh((total + total.T) / 2.0)
        # what round-off may have left too much when y_H was taken out of A is taken off
        weight = 1.0 + float(np.linalg.norm(through, 2))
        lost = SOLVED * UNIT * len(data) * float(np.max(np.diag(data)) * weight**2 + values[-1])
        if values[0] <= 2.0 * lost:
            return np.zeros((0, len(self.places))), float("inf")
        explained = (vectors / np.sqrt(values - lost)).T @ told[:, len(others) :]
        return explained, 4.0 * SOLVED * UNIT * weight * float(np.sqrt(len(data) * values[-1] / values[0]))

    @cached_property
    def _data(self) -> Array:
        """A."""
        return as_array(self.known.reader.data_covariance(self.design.inputs))

    def each_told(self, groups: Sequence[Index], each: bool) -> list[Told]:
        """What each group learns.

        Unless ``each`` is asked for, groups that learn hardly more than another one before them have its ratio, and
        the largest is given with what that may leave out (``ALIKE``).
        """
        found, worst, level = list[Told](), 0, 0.0
        for place, rows in enumerate(groups):
            found.append(self.told(rows, 0.0 if each else level))
            if found[-1].ratio > level:
                worst, level = place, found[-1].ratio if each else _level(found[-1].ratio)
            elif not each:
                found[-1] = replace(found[-1], ratio=min(found[-1].ratio, found[worst].ratio))
        if found and not each:
            found[worst] = replace(found[worst], ratio=level)
        return found


@dataclass(frozen=True, eq=False)
class InsidersKnown:
    """What every group learns, as a share of what it may: the most of readers with any prior.

    ``ratios`` is about the sensitive inputs and records, and ``between`` the same at inputs that were looked at between
    them: at ``places``, each group where it learns most. ``determined`` is how many sensitive values some group knew
    before.
    """

    ratios: Array
    between: Array
    determined: int
    places: Array

    @property
    def short(self) -> Array:
        """Inputs between the sensitive ones of which some group learns more than it may, the worst first."""
        order = np.argsort(-self.between, kind="stable")
        over = order[self.between[order] > 1.0]
        _, first = np.unique(self.places[over], axis=0, return_index=True)
        return np.asarray(self.places[over][np.sort(first)])

    @property
    def ratio(self) -> float:
        return float(np.max(np.maximum(self.ratios, self.between))) if len(self.ratios) else float("nan")

    @property
    def worst_group(self) -> int:
        """The first that learns most."""
        return int(np.argmax(np.maximum(self.ratios, self.between))) if len(self.ratios) else -1


def _level(ratio: float) -> float:
    """What other groups are compared with once one has this ratio: a little more, unless that would break a promise."""
    above = ratio * (1.0 + ALIKE)
    return above if above <= 1.0 else ratio


def _largest(learnt: Array, allowed: Array, unless: float) -> float:
    """The largest λ with learnt x = λ allowed x, or ``unless`` where that is no less; infinite where Δ is singular."""
    scale = np.outer(*2 * [1.0 / np.sqrt(np.diag(allowed))])
    learnt, allowed = learnt * scale, allowed * scale
    try:
        if unless > 0.0:
            scipy.linalg.cholesky(unless * allowed - learnt, lower=True, check_finite=False)
            return unless
    except np.linalg.LinAlgError:
        pass
    try:
        last = len(learnt) - 1
        found = scipy.linalg.eigh(learnt, allowed, eigvals_only=True, subset_by_index=[last, last], check_finite=False)
    except np.linalg.LinAlgError:
        return float("inf")
    return float(found[0])


def insiders_known(
    design: Design, knowledge: Sequence[ExactKnowledge], also: Array | None = None, each: bool = False
) -> InsidersKnown:
    """What each group of insiders learns: of all sensitive values, and of f at the inputs ``also``, one by one.

    Unless ``each`` is asked for, only the largest ratio is exact.
    """
    groups = design.insiders.groups if design.insiders is not None else ()
    ratios, between, determined = np.zeros(len(groups)), np.zeros(len(groups)), 0
    places = np.zeros((len(groups), design.inputs.dimension))
    for known in knowledge:
        if known.is_singular:
            ratios[:] = np.inf
            continue
        if len(design.sensitive) + len(design.records):
            joint = design.guarantee == "joint"
            told = InsidersOfReader(design, known, design.sensitive, design.records, joint).each_told(groups, each)
            ratios = np.maximum(ratios, [one.ratio for one in told])
            determined = max([determined, *(one.determined for one in told)])
        if also is not None and len(also):
            told = InsidersOfReader(design, known, also, design.records[:0], joint=False).each_told(groups, each)
            learnt = np.array([one.ratio for one in told])
            more = np.flatnonzero(learnt > between)
            between[more], places[more] = learnt[more], also[[told[group].place for group in more]]
    return InsidersKnown(ratios, between, determined, places)


def groups_told(design: Design) -> Array:
    """What each group learns of the sensitive values as a share of what it may, a row for each prior."""
    assert design.insiders is not None
    each = []
    for prior in design.priors:
        known = ExactKnowledge(design, Reader(prior), design.noise)
        each.append(insiders_known(design, [known], each=True).ratios)
    return np.array(each)
