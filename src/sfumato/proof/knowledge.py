"""What a reader knows from a release: one who is told everything, and favoured by round-off.

``M = A + Σ`` is the covariance of the published values. What round-off could hide in it is subtracted before it is
inverted (never added, as a jitter would be), and bounds for the other terms' round-off count against the promise
(roundoff.py). There are two ways to it: from the rows themselves, and from sums over any number of rows (sums.py).
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array, Index
from ..data import among
from ..linalg import (
    Matrix,
    as_array,
    as_tensor,
    cholesky_in_place,
    inverse_norm,
    solve_lower,
    squared_norms,
    units,
    whitened_span,
)
from ..noise import ErrorCovariance, FunctionalNoise
from ..programs import needed_everywhere
from ..progress import alive
from ..promise import Design, FunctionAndRecords, Reader, Records, SensitiveValues, records_at
from .features import Features
from .roundoff import COEFFICIENTS, DELTA_TO_SPARE, ESTIMATED_INVERSE, FACTORED, FACTORED_SUMS, SOLVED, SOLVED_SUMS
from .sums import SURELY_SEEN, Summary, inverse, noise_coefficients, record_sums_of, seen_functions

#: Combinations of sensitive values with less than this share of the largest tolerance are left out of an estimate.
SMALLEST_SHARE = 1e-8

#: How many numbers of L⁻¹K_XP are made at a time: 40 megabytes.
SOLVED_AT_ONCE = 5_000_000

#: Where each value is promised by itself, all of them together are estimated at so many more inputs of the region.
SPREAD_FOR_AN_ESTIMATE = 64

#: The unit of round-off in single precision.
SINGLE_UNIT = 2.0**-23

#: Every reader is given this much information about everything, in units of the prior's own. It is too little to be
#: seen in a result, and keeps what follows from singular sums (fewer rows than centres) well-conditioned.
LEAST_INFORMATION = {"one prior": 1e-6, "several": 1e-4}


#: Suppressed functions of which less than this share is independent of the others are taken as published.
SMALLEST_SUPPRESSED = 1e-7


class Told(NamedTuple):
    """What a release tells of the values at the nodes of boxes, from the safe side with the rest.

    ``blocks`` gives the covariances of the nodes with these numbers (patches × nodes), for each box those of all
    patches: what is explained of them, or (``is_left``) what is left. ``slack`` is what round-off may add to the root
    of what is explained at a node; entries of blocks are wrong by at most ``rounding`` times the variance.
    """

    blocks: Callable[[Index], Array]
    is_left: bool
    slack: float
    rounding: float


class Knowledge(ABC):
    """What one reader of a design knows, from the safe side. ``allowance`` is the round-off that was subtracted."""

    design: Design
    reader: Reader
    allowance: float

    @property
    def unknown(self) -> SensitiveValues:
        """What is sensitive, as the reader sees it before the release."""
        return self.reader.function

    @property
    @abstractmethod
    def is_singular(self) -> bool:
        """Whether M is singular to working precision, so that nothing can be said."""

    @abstractmethod
    def deviations(self, points: Array) -> Array:
        """A lower bound for the reader's standard deviation at each point."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows a solve for one column has."""

    @abstractmethod
    def most_told(self, covariance: float) -> float:
        """The root of the most that is explained of something with at most this ``covariance`` with each row."""

    @abstractmethod
    def told(self, nodes: Array, spare: float = 0.0) -> Told:
        """What is told of the values at the nodes of boxes (boxes × nodes × columns).

        It may be computed in single precision where that adds no more than ``spare`` to the slack.
        """

    @abstractmethod
    def joint_ratio(self) -> float:
        """λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), from above.

        Where only single values are promised it is an estimate, over combinations whose tolerance is not negligible.
        """

    def floors(self, points: Array) -> Array:
        """The standard deviation that this reader must keep at each point (0: none)."""
        return self.design.tolerance.floor(self.unknown, points)

    def floor_ratios(self, points: Array) -> Array:
        """std(f(s)|W) / floor(s), from below; infinite where nothing is promised."""
        floors = self.floors(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(floors > 0, self.deviations(points) / floors, np.inf)
        return np.where(np.isnan(floors) | np.isnan(ratios), 0.0, ratios)

    def learnt(self, points: Array) -> Array:
        """What is explained at each point, from above, as a share of what may be (infinite where that is nothing)."""
        left = self.unknown.variance(points) - self.deviations(points) ** 2
        budget = self.design.tolerance.budget(self.unknown, points)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(budget == 0.0, np.inf, left / budget)

    def undetermined(self, points: Array) -> float:
        """The largest share of a standard deviation left at ``points`` once f at the sensitive inputs is known."""
        prior, sensitive = self.reader.prior, self.design.sensitive
        cross = prior.covariance(sensitive, points)
        known = np.einsum("ij,ij->j", cross, scipy.linalg.lstsq(prior.covariance(sensitive), cross)[0])
        return float(np.sqrt(np.max(np.clip(1.0 - known / prior.variance(points), 0.0, 1.0))))


class ExactKnowledge(Knowledge):
    """What follows from the rows themselves, where ``error`` stands between the data and what was published.

    One n × n matrix is live, the Cholesky factor of M, on ``device`` (None: the CPU). ``lower`` is None where M is
    singular to working precision. Rows are taken in units (``scale``, powers of two, so that nothing is rounded) in
    which M has about 1 on its diagonal: outputs may be in very different units, and a Cholesky factor does not care.
    ``records`` are those that are promised (left out: the design says which).
    """

    def __init__(
        self,
        design: Design,
        reader: Reader,
        error: ErrorCovariance,
        device: str | None = None,
        records: Records | None = None,
    ) -> None:
        alive()
        self.design, self.reader, self.error, self.device = design, reader, error, device
        self.records = reader.records(design.inputs, design.records) if records is None else records
        rows = len(design.inputs)
        self.lower: Matrix | None = None
        self._suppressed: torch.Tensor | None = None
        total = error.add_to(reader.data_covariance(design.inputs, device))
        self.scale = units(as_array(total.diagonal()))
        scale = as_tensor(self.scale, device)
        total.div_(scale).div_(scale[:, None])
        self.largest = float(total.diagonal().max())
        self._slack = FACTORED * rows * UNIT * self.largest
        self.allowance = self._slack * float(np.max(self.scale)) ** 2
        total.diagonal().sub_(self._slack)
        try:
            lower = cholesky_in_place(total)
        except np.linalg.LinAlgError:
            return
        self.lower = lower
        self._suppressed = self._suppressed_basis(lower)
        known = float(np.min((reader.prior.noise_variance(rows) + error.least) / self.scale**2)) - self._slack
        self.least = max(1.0 / (ESTIMATED_INVERSE * inverse_norm(lower)), known, UNIT * self.largest)

    @cached_property
    def suppressed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Ñ, which spans the combinations that are not published, with ``ÑᵀM⁻¹Ñ = I``, and M⁻¹Ñ."""
        scale = as_tensor(self.scale, self.device)[:, None]
        if self._suppressed is None or self.lower is None:
            return 2 * (scale[:, :0],)
        lower, columns = as_tensor(self.lower, self.device), as_tensor(self.error.suppressed, self.device)
        solved: torch.Tensor = torch.linalg.solve_triangular(lower.T, self._suppressed, upper=True)
        # not L times the basis: rows of which next to nothing is suppressed keep all of their digits
        turned = torch.linalg.solve_triangular(lower, columns / scale, upper=False)
        spanning: torch.Tensor = torch.linalg.solve(self._suppressed.T @ turned, columns, left=False)
        return spanning, solved / scale

    @property
    def solved(self) -> float:
        """Round-off in L⁻¹k; leaving out what is suppressed adds as much again, twice."""
        return SOLVED if self._suppressed is None else 3.0 * SOLVED

    def _suppressed_basis(self, lower: Matrix) -> torch.Tensor | None:
        """An orthonormal basis of L⁻¹N, where N are the combinations of rows that are not published; None without.

        Readers explain ``min_c |L⁻¹(k − N c)|²`` of something with the covariances k: no c makes that too little.
        """
        suppressed = self.error.suppressed
        if not suppressed.shape[1]:
            return None
        return whitened_span(as_tensor(lower, self.device), suppressed / self.scale[:, None])

    @property
    def is_singular(self) -> bool:
        return self.lower is None

    def deviations(self, points: Array) -> Array:
        if self.lower is None:
            return np.zeros(points.shape[0])
        inputs = self.design.inputs
        result = np.empty(points.shape[0])
        chunk = max(1, SOLVED_AT_ONCE // len(inputs))
        for start in range(0, points.shape[0], chunk):
            part = points[start : start + chunk]
            variance = self.unknown.variance(part)
            explained = self._whiten(self.lower, self.unknown.with_data(inputs, part, self.device))
            norm = np.sqrt(squared_norms(explained))
            slack = self.solved * UNIT * np.sqrt(len(inputs) * variance * self.largest / self.least)
            left = variance * (1 - SOLVED * UNIT) - (norm + slack) ** 2
            result[start : start + chunk] = np.sqrt(np.maximum(left, 0.0))
        return result

    @property
    def size(self) -> int:
        return len(self.design.inputs)

    def most_told(self, covariance: float) -> float:
        return float(covariance * np.linalg.norm(1.0 / self.scale) / np.sqrt(self.least))

    def told(self, nodes: Array, spare: float = 0.0) -> Told:
        assert self.lower is not None
        points = nodes.reshape(-1, nodes.shape[-1])
        variance = float(np.max(self.unknown.variance(points)))
        rounding = self.solved * np.sqrt(self.size * variance * self.largest / self.least)
        cross = self.unknown.with_data(self.design.inputs, points, self.device)
        if rounding * SINGLE_UNIT <= spare:
            slack, solved = rounding * SINGLE_UNIT, self._whiten(self._single, cross).double()
        else:
            slack, solved = rounding * UNIT, self._whiten(self.lower, cross)
        columns = solved.T.reshape(len(nodes), nodes.shape[1], -1)

        def blocks(members: Index) -> Array:
            # of a single patch all nodes are members, in their order
            own = columns[:, None] if len(members) == 1 else columns[:, torch.from_numpy(members).to(columns.device)]
            return as_array(own @ own.mT).reshape(-1, members.shape[1], members.shape[1])

        return Told(blocks, False, float(slack), self.size * UNIT)

    @cached_property
    def _single(self) -> torch.Tensor:
        """L in single precision."""
        assert self.lower is not None
        return as_tensor(self.lower, self.device).float()

    def joint_ratio(self) -> float:
        alive()
        if self.lower is None:
            return float("inf")
        if self.design.cover == "everywhere":
            return self._joint_ratio_everywhere()
        promised = self._promised
        if promised is None:
            return float("inf")
        cross = self._values.with_data(self.design.inputs, promised.places, self.device)
        explained = self._whiten(self.lower, cross @ as_tensor(promised.root, self.device))
        top = np.sqrt(max(float(torch.linalg.eigvalsh(explained.T @ explained)[-1]), 0.0))
        return float((top + self._slack_of(promised)) ** 2 * (1 + promised.uncertain))

    @property
    def promise_roundoff(self) -> float:
        """By which factor what is told may be more, or less, of what is promised jointly than it is computed to be."""
        promised = None if self.lower is None else self._promised
        return 1.0 if promised is None else float((1.0 + self._slack_of(promised)) ** 2 * (1.0 + promised.uncertain))

    @property
    def _values(self) -> FunctionAndRecords:
        return FunctionAndRecords(self.reader, self.records)

    @cached_property
    def _promised(self) -> PromisedValues | None:
        return promised_values(self.design, self._values)

    def _slack_of(self, promised: PromisedValues) -> float:
        """Round-off in the root of what is told of ``promised``."""
        size = len(self.design.inputs) * promised.largest * self.largest / (self.least * promised.least)
        return self.solved * UNIT * float(np.sqrt(size))

    def record_deviations(self, records: Records) -> Array:
        """A lower bound for the reader's standard deviation of these records."""
        if self.lower is None:
            return np.zeros(len(records))
        inputs, result = self.design.inputs, np.empty(len(records))
        chunk = max(1, SOLVED_AT_ONCE // len(inputs))
        for start in range(0, len(records), chunk):
            values = FunctionAndRecords(self.reader, records.among(np.arange(len(records))[start : start + chunk]))
            places = values.places(inputs.values[:0])
            variance = values.variance(places)
            norm = np.sqrt(squared_norms(self._whiten(self.lower, values.with_data(inputs, places, self.device))))
            slack = self.solved * UNIT * np.sqrt(len(inputs) * variance * self.largest / self.least)
            left = variance * (1 - SOLVED * UNIT) - (norm + slack) ** 2
            result[start : start + chunk] = np.sqrt(np.maximum(left, 0.0))
        return result

    def whiten(self, block: torch.Tensor) -> torch.Tensor:
        """L⁻¹ ``block``, where M = L Lᵀ and is not singular."""
        assert self.lower is not None
        return self._whiten(self.lower, block)

    def surely_told(self, block: torch.Tensor) -> float:
        """Tr ``block``ᵀ P ``block`` from below, where readers explain kᵀPk: round-off that favours them is taken off.

        What was subtracted from M, and what round-off may hide in it, is E: at most twice the slack and what the error
        is ``uncertain`` of. With P for the M of here they explain at least ``kᵀPk − kᵀPEPk``.
        """
        assert self.lower is not None
        told = self.whiten(block)
        back = torch.linalg.solve_triangular(as_tensor(self.lower, self.device).T, told, upper=True)
        hidden = 2.0 * (self._slack + as_tensor(self.error.uncertain / self.scale**2, self.device))
        return max(0.0, float(told.square().sum() - (hidden @ back.square()).sum()))

    def _whiten(self, lower: Matrix, block: torch.Tensor) -> torch.Tensor:
        """L⁻¹ ``block``, where M = L Lᵀ."""
        factor = as_tensor(lower, self.device)
        scaled = (block / as_tensor(self.scale, self.device)[:, None]).to(factor.dtype)
        solved: torch.Tensor = torch.linalg.solve_triangular(factor, scaled, upper=False)
        if self._suppressed is not None:
            suppressed = self._suppressed.to(factor.dtype)
            solved -= suppressed @ (suppressed.T @ solved)
        return solved

    def _joint_ratio_everywhere(self) -> float:
        needed = needed_everywhere(self.reader.prior, self.design.tolerance, self.design.inputs, self.design.records)
        excess = self.error.add_to(self.reader.data_covariance(self.design.inputs, self.device))
        excess -= as_tensor(needed, self.device)
        scale = as_tensor(self.scale, self.device)
        excess.div_(scale).div_(scale[:, None])
        trace = float(np.sum(np.diag(needed) / self.scale**2))
        if self.device is None:
            least = float(scipy.linalg.eigvalsh(as_array(excess), check_finite=False)[0])
        else:
            least = float(torch.linalg.eigvalsh(excess)[0])
        spare = least - self._slack
        # where M ⪰ G + spare, no eigenvalue of G M⁻¹ is above g/(g + spare), with g that of G, at most its trace
        return trace / (trace + spare) if spare >= 0 else 1.0 - spare / self.least


#: How many rows the noise is looked at together.
NOISE_AT_ONCE = 1 << 16


class KnowledgeFromSums(Knowledge):
    """What a reader knows who is also given what the features leave out. ``number`` says which prior they hold."""

    def __init__(self, design: Design, reader: Reader, summary: Summary, number: int) -> None:
        noise = design.noise.as_function()
        self.design, self.reader, self.summary, self.number = design, reader, summary, number
        self.features, self.own = summary.features[number], summary.slices[number]
        self.allowance = float(np.max(summary.allowance))
        self.lower: Array | None = None
        coefficients = noise_coefficients(noise, summary.features)
        # what round-off may have added to the noise: c cᵀ ⪰ (1 − t) ĉ ĉᵀ − e eᵀ/t for c = ĉ − e
        wrong = COEFFICIENTS * UNIT * float(np.linalg.norm(_magnitudes(noise, summary.features)))
        share = min(0.5, wrong / max(float(np.linalg.norm(coefficients)), wrong, np.finfo(float).tiny))
        least = LEAST_INFORMATION["one prior" if len(summary.features) == 1 else "several"]
        known = summary.information(number) + least * np.eye(len(summary))
        total = inverse(known) + (1.0 - share) * (coefficients @ coefficients.T)
        total[self.own, self.own] += np.diag(self.features.shares)
        # subtracted, never added: what round-off may hide when this is factored
        lost = FACTORED_SUMS * UNIT * np.diag(total) + (wrong**2 / share if share > 0 else 0.0)
        total[np.diag_indices_from(total)] -= lost
        self.coefficients = np.sqrt(1.0 - share) * coefficients
        self._solved, self._hidden = SOLVED_SUMS * UNIT * len(summary), Suppressed.nothing(len(summary))
        with contextlib.suppress(np.linalg.LinAlgError):
            self.lower = np.asarray(scipy.linalg.cholesky(total, lower=True, check_finite=False))
            if noise.suppressed_count:
                self._hidden = Suppressed.of(noise, summary.features, summary.precision(0), self.lower)
                self._solved = 3.0 * self._solved + self._hidden.slack

    @property
    def is_singular(self) -> bool:
        return self.lower is None

    def deviations(self, points: Array) -> Array:
        if self.lower is None:
            return np.zeros(len(points))
        variance = self.reader.prior.variance(points)
        known, explained = self._seen(self.lower, points)
        learnt = np.einsum("ij,ij->j", explained, explained)
        slack = self._solved * np.sqrt(variance)
        left = np.einsum("ij,ij->j", known, known) * (1 - SOLVED_SUMS * UNIT) - (np.sqrt(learnt) + slack) ** 2
        return np.asarray(np.sqrt(np.maximum(left, 0.0)))

    @property
    def size(self) -> int:
        return len(self.summary)

    def most_told(self, covariance: float) -> float:
        return float("inf")

    def told(self, nodes: Array, spare: float = 0.0) -> Told:
        assert self.lower is not None
        points = nodes.reshape(-1, nodes.shape[-1])
        known, learnt = (one.T.reshape(len(nodes), nodes.shape[1], -1) for one in self._seen(self.lower, points))

        def blocks(members: Index) -> Array:
            before, told = known[:, members], learnt[:, members]
            left = before @ before.swapaxes(2, 3) - told @ told.swapaxes(2, 3)
            return np.asarray(left.reshape(-1, members.shape[1], members.shape[1]))

        slack = self._solved * float(np.sqrt(np.max(self.unknown.variance(points))))
        return Told(blocks, True, slack, (2.0 * self.size + 2.0 * SOLVED_SUMS) * UNIT)

    def _seen(self, lower: Array, points: Array) -> tuple[Array, Array]:
        """Blocks with the prior variance of φᵀu and what is explained of it as their squared column norms."""
        features = self.features.at(points).T
        block = np.zeros((len(self.summary), len(points)))
        block[self.own] = self.features.shares[:, None] * features
        return np.sqrt(self.features.shares)[:, None] * features, self._told_of(lower, block)

    def _told_of(self, lower: Array, block: Array) -> Array:
        """L⁻¹ ``block``, less what is suppressed."""
        solved = solve_lower(lower, block)
        basis = self._hidden.basis
        return solved - basis @ (basis.T @ solved)

    def noise_told(self, X: Array, device: str | None = None) -> tuple[Array, Array]:
        """The variance of what the release changes at ``X``, and a lower bound for what readers are left with of it.

        A record is what was published less the noise, ``φᵀcω``, of which the virtual rows tell ``cω`` with u. So what
        is left of the noise is left of a record that carries no other.

        Of suppressed functions ``φᵀs`` a release changes the multiple η to what the rest predicts. With ``M = L Lᵀ``
        and s such that ``sᵀM⁻¹s = 1``, that is wrong by ``sᵀM⁻¹`` of the virtual rows, of variance 1, and of cω and η
        together readers are left with what M leaves of cω and ``|sᵀφ − sᵀM⁻¹c cᵀφ|²``.
        """
        told = solve_lower(self.lower, self.coefficients).T if self.lower is not None else self.coefficients.T
        mixing, telling = as_tensor(self.coefficients, device), as_tensor(np.ascontiguousarray(told), device)
        suppressed = as_tensor(self._hidden.functions, device)
        shared = telling @ as_tensor(self._hidden.basis, device)
        variance, learnt, unknown = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
        drawn = np.zeros(len(X))
        for start in range(0, len(X), NOISE_AT_ONCE):
            some = slice(start, start + NOISE_AT_ONCE)
            rows = torch.from_numpy(np.array(X[some])).to(mixing.device)
            block = torch.cat([features.block(rows) for features in self.summary.features], dim=1)
            seen, hidden = block @ mixing, block @ suppressed
            drawn[some] = as_array(seen.square().sum(dim=1))
            learnt[some] = as_array((seen @ telling).square_().sum(dim=1))
            both = seen @ shared
            variance[some] = drawn[some] + as_array((hidden.square() - 2.0 * hidden * both).sum(dim=1))
            unknown[some] = as_array(torch.linalg.vector_norm(hidden - both, dim=1))
        variance = np.maximum(variance, 0.0)
        if self.lower is None:
            return variance, np.zeros(len(X))
        slack = SOLVED_SUMS * UNIT * len(self.summary) * np.sqrt(drawn)
        left = drawn * (1 - SOLVED_SUMS * UNIT) - (np.sqrt(learnt) + slack) ** 2
        rounding = self._solved * np.sqrt(drawn + np.square(unknown))
        return variance, np.maximum(left, 0.0) + np.square(np.maximum(unknown - rounding, 0.0))

    def joint_ratio(self) -> float:
        if self.design.protects == "both" and self.design.guarantee == "joint":
            return self._joint_ratio_with_records()
        promised = promised_values(self.design, FunctionAndRecords(self.reader, _no_records(self.design)))
        if promised is None or self.lower is None:
            return float("inf")
        sensitive, root, largest, least, uncertain = promised
        known, explained = self._seen(self.lower, sensitive)
        learnt = explained.T @ explained + self._left_out(sensitive, known)
        top = np.sqrt(max(float(scipy.linalg.eigvalsh(root.T @ learnt @ root)[-1]), 0.0))
        slack = self._solved * largest / least
        return float((top + slack) ** 2 * (1 + uncertain))

    def _joint_ratio_with_records(self) -> float:
        """An upper bound for all combinations of f at the sensitive inputs and of the records (sums.py).

        It is at least 1: of what is each record's own a reader learns no more than they may.
        """
        records, sensitive = record_sums_of(self.design), self.design.sensitive
        inside = len(sensitive) > 0 and bool(np.all(self.design.region.contains(sensitive)))
        if self.lower is None or records is None or not inside or not np.all(among(sensitive, self.features.centres)):
            return float("inf")
        values, shares = self.features.at(sensitive), self.features.shares
        root = self.summary.promised_root(self.number, values, records)
        spread = scipy.linalg.svdvals(values * np.sqrt(shares), check_finite=False)
        if root is None or spread[-1] <= 0:
            return float("inf")
        block = np.zeros((len(self.summary), root.shape[1]))
        block[self.own] = shares[:, None] * root
        explained, share = self._told_of(self.lower, block), records.shares[self.number]
        lost = np.sqrt((1.0 - share) * (1.0 - shares))[:, None] * root
        top = np.sqrt(max(float(scipy.linalg.eigvalsh(explained.T @ explained + lost.T @ lost)[-1]), 0.0))
        # how far round-off may turn the directions across φ(S)
        turned = UNIT * np.sqrt(len(shares)) * float(spread[0] / spread[-1])
        return max(1.0, float(top + (2.0 * turned + self._solved) / share) ** 2)

    def _left_out(self, points: Array, known: Array) -> Array:
        """The covariance that the features do not have; at a centre only what round-off may take."""
        if np.all(among(points, self.features.centres)):
            lost = self.features.at(points) * np.sqrt(1.0 - self.features.shares)
            return np.asarray(lost @ lost.T)
        return self.reader.prior.covariance(points) - known.T @ known


def _no_records(design: Design) -> Records:
    return records_at(design.sensitive[:0], np.zeros(0))


@dataclass(frozen=True, eq=False)
class Suppressed:
    """What is suppressed, as the virtual rows have it: ``functions`` are coefficients s with ``sᵀM⁻¹s = 1``.

    ``basis`` is L⁻¹s, orthonormal. Readers explain ``min_c |L⁻¹(k − s c)|²`` of something with the covariances k, and
    no c makes that too little. What is computed for c is wrong by at most ``slack`` in the units of k.
    """

    functions: Array
    basis: Array
    slack: float = 0.0

    @classmethod
    def nothing(cls, size: int) -> Suppressed:
        return cls(np.zeros((size, 0)), np.zeros((size, 0)))

    @classmethod
    def of(cls, noise: FunctionalNoise, features: Sequence[Features], precision: Array, lower: Array) -> Suppressed:
        """Functions that the others nearly determine are taken as published, which only favours readers.

        They need not be taken out of published values (``seen_functions``).
        """
        functions = noise_coefficients(noise, features, noise.suppressing)
        mixed = seen_functions(precision, functions, SURELY_SEEN)
        solved = solve_lower(lower, functions @ mixed)
        size = np.linalg.norm(solved, axis=0)
        kept = np.flatnonzero((size > 0) & np.isfinite(size))
        if not kept.size:
            return cls.nothing(len(lower))
        basis, values, turned = scipy.linalg.svd(solved[:, kept] / size[kept], full_matrices=False, check_finite=False)
        some = values > SMALLEST_SUPPRESSED * np.max(values, initial=0.0)
        mixed = mixed[:, kept] @ (turned[some].T / values[some] / size[kept, None])
        # round-off in s, times |c| ≤ |L⁻¹k| in these units
        sizes = np.abs(noise.suppressing) @ np.abs(mixed)
        wrong = COEFFICIENTS * UNIT * float(np.linalg.norm(_magnitudes(noise, features, sizes)))
        slack = wrong * np.sqrt(ESTIMATED_INVERSE * inverse_norm(as_tensor(lower)))
        return cls(functions @ mixed, basis[:, some], slack)


def _magnitudes(noise: FunctionalNoise, features: Sequence[Features], of: Array | None = None) -> Array:
    """|Lᵀ||C|: round-off in c is a share of this."""
    parts, own = noise.by_prior(noise.mixing if of is None else of), features[-len(noise.centres) :]
    return np.vstack([np.abs(f.lower.T) @ np.abs(part) for f, part in zip(own, parts, strict=True)])


class PromisedValues(NamedTuple):
    """``root`` is a root of Δ⁻¹ for the values at ``places``: f at sensitive inputs, and sensitive records.

    In units in which these have a variance of about 1, ``largest`` is their largest variance, ``least`` the least
    eigenvalue of Δ, and ``uncertain`` the share of it that round-off may hide.
    """

    places: Array
    root: Array
    largest: float
    least: float
    uncertain: float


def promised_values(design: Design, values: FunctionAndRecords) -> PromisedValues | None:
    """What the joint promise is about; None where nothing, or something else than the region, carries it."""
    sensitive, region = design.sensitive, design.region
    if not np.all(region.contains(sensitive)):
        return None
    if design.guarantee == "pointwise" and design.protects_function:
        # an estimate should not depend on which inputs the owner names
        spread = region.points
        if spread is None:
            spread = region.probes(SPREAD_FOR_AN_ESTIMATE, design.representatives, batch=1)
        sensitive = np.unique(np.vstack([sensitive, spread]), axis=0)
    places = values.places(sensitive)
    if not len(places):
        return None
    variance = values.variance(places)
    scale = units(variance)
    delta = design.tolerance.matrix(values, places) / np.outer(scale, scale)
    eigenvalues, vectors = scipy.linalg.eigh(delta, check_finite=False)
    if design.guarantee == "pointwise":
        kept = eigenvalues > SMALLEST_SHARE * eigenvalues[-1]
        eigenvalues, vectors = eigenvalues[kept], vectors[:, kept]
    if not len(eigenvalues):
        return None
    # how far round-off in the kernel values may move Δ
    largest, least = float(np.max(variance / scale**2)), float(eigenvalues[0])
    uncertain = UNIT * np.sqrt(len(eigenvalues)) * largest
    if least <= DELTA_TO_SPARE * uncertain:
        return None
    root = vectors / np.sqrt(eigenvalues) / scale[:, None]
    return PromisedValues(places, root, largest, least, uncertain / least)
