"""What readers learn who hold some of the rows: checked for every group, from the published objects alone (MATH.md 11).

An insider holds ``y_H`` and reads ``W = y + Z``, so they know the noise ``Z_H`` on their own rows as well. With
``M = A + Σ = L Lᵀ``, ``E = L⁻¹U`` and ``s_H = L⁻¹Σ_·H`` what they are left with of the sensitive values is
``Cov(z) − EᵀE − v D⁻¹ vᵀ`` with ``v = Cov(z, y_H|W) = Eᵀ s_H`` and ``D = Cov(y_H|W) = Σ_HH − s_Hᵀ s_H``. Before the
release they were left with ``Q = Cov(z) − Cov(z, y_H) A_HH⁻¹ Cov(y_H, z)``; of that a tolerance lets them learn Δ_H.
No matrix but L has more than γ or |H| rows on either side, and nothing cancels where the noise on held rows is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array, Index
from ..linalg import as_array, as_tensor
from ..promise import DETERMINED, Design, Reader
from .knowledge import ExactKnowledge
from .roundoff import SOLVED

#: Ratios of groups are told apart to this share; the larger is given.
ALIKE = 1e-4


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
        self.error = SOLVED * UNIT * float(np.sqrt(len(inputs) * known.largest / known.least))

    @cached_property
    def _noise(self) -> tuple[Array, Array]:
        """L⁻¹Σ, and what it shows of the sensitive values: Cov(z, y|W)."""
        noise, device = self.design.noise, self.known.device
        factor = as_tensor(noise.factor, device)
        white = self.known.whiten(factor) @ factor.T
        if noise.shift > 0.0:
            unit = torch.eye(len(factor), dtype=factor.dtype, device=factor.device)
            white += noise.shift * self.known.whiten(unit)
        return as_array(white), as_array(self.explained.T @ white)

    @cached_property
    def _noise_variance(self) -> Array:
        return self.design.noise.variance()

    @cached_property
    def _prior_of_rows(self) -> tuple[Array, Array]:
        prior, inputs = self.known.reader.prior, self.design.inputs
        return prior.variance(inputs), prior.noise_variance(len(inputs))

    def told(self, rows: Index, unless: float = 0.0) -> Told:
        """What whoever holds these rows learns; where that is surely no more than ``unless``, that."""
        given, variance = self.cross[rows], np.diag(self.covariance)
        shown = np.linalg.solve(self.covariance_of(rows), given)
        seen, left, slack = self.noise_known(rows)
        before = variance - np.sum(given * shown, axis=0)
        mine = np.isin(self.records, rows)
        kept = before > DETERMINED * variance
        kept[len(kept) - len(mine) :] &= ~mine
        index = np.flatnonzero(kept)
        determined = len(kept) - int(np.sum(mine)) - len(index)
        if not len(index):
            return Told(0.0, determined)
        if not np.isfinite(slack):
            return Told(float("inf"), determined, int(index[0]))
        tolerance, places, error = self.design.tolerance, self.places[index], slack * self.before[index]
        if not self.joint:
            after = np.diag(self.outsider) - np.einsum("pi,ij,pj->p", seen, left, seen)
            values = Given(np.diag(before[index]), self.before[index], self.own[index])
            ratios = ((before - after)[index] + error) / tolerance.budget(values, places)
            return Told(float(np.max(ratios)), determined, int(index[np.argmax(ratios)]))
        both = np.ix_(index, index)
        whole = self.covariance[both] - given[:, index].T @ shown[:, index]
        learnt = whole - self.outsider[both] + seen[index] @ left @ seen[index].T
        # an error of e in each entry, in units of standard deviations, is at most γ·e·diag of the variances
        learnt[np.diag_indices_from(learnt)] += len(index) * error
        values = Given(whole, self.before[index], self.own[index])
        return Told(_largest(learnt, tolerance.matrix(values, places), unless), determined)

    def covariance_of(self, rows: Index) -> Array:
        own = self.known.reader.prior.covariance(self.design.inputs.values[rows])
        own[np.diag_indices_from(own)] += self._prior_of_rows[1][rows]
        return own

    def noise_known(self, rows: Index) -> tuple[Array, Array, float]:
        """Cov(z, y_H|W), Cov(y_H|W)⁻¹ and the round-off; held rows without noise tell nothing that W does not."""
        noise, nothing = self.design.noise, np.zeros((len(self.places), 0))
        noisy = rows[self._noise_variance[rows] > 0.0]
        if not noisy.size:
            return nothing, np.zeros((0, 0)), 4.0 * self.error
        factor, white = noise.factor[noisy], self._noise[0][:, noisy]
        seen, gram = self._noise[1][:, noisy], white.T @ white
        total = factor @ factor.T + noise.shift * np.eye(len(noisy))
        left = total - gram
        # never more than there is: what round-off may have added is taken off
        left = (left + left.T) / 2.0 - 4.0 * self.error * np.diag(np.diag(total))
        values, vectors = scipy.linalg.eigh(left / np.sqrt(np.outer(np.diag(total), np.diag(total))))
        if values[0] <= 4.0 * self.error:
            return nothing, np.zeros((0, 0)), float("inf")
        scale = 1.0 / np.sqrt(np.diag(total))
        inverse = (scale[:, None] * vectors / values) @ (vectors.T * scale)
        return seen, inverse, 4.0 * self.error * (1.0 + 1.0 / np.sqrt(values[0]))

    def each_told(self, groups: Sequence[Index], each: bool) -> list[Told]:
        """What each group learns.

        Unless ``each`` is asked for, groups that learn less than another one before them, or hardly more, have a ratio
        just above its (``ALIKE``).
        """
        found, most = list[Told](), 0.0
        for rows in groups:
            found.append(self.told(rows, 0.0 if each else _level(most)))
            most = max(most, found[-1].ratio)
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
