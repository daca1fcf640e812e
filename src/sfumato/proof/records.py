"""What readers know of the records inside a region: the rows as they are published, and not f there.

A record is ``y_i = f(x_i) + e_i``. Whatever is promised, a certificate says how much noise falls on the records inside
the region, and how well the best reader knows the one that is known best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array, Index
from ..data import Engine, Part
from ..noise import IndependentNoise, Noise
from ..promise import Composition, Design, FunctionAndRecords, Records, noise_columns, noise_of_part, records_at
from .changes import change_variance
from .knowledge import ExactKnowledge, KnowledgeFromSums

#: A record whose noise is below this share of its standard deviation goes out unchanged.
UNCHANGED = 1e-6

#: Noise below this share of a record's own spread blurs nothing that people would call theirs.
LITTLE_NOISE = 0.1

#: So many of the records of compressed rows that come closest to a floor are kept, to name the worst.
MOST_KEPT = 64

#: A direction lies in the range of Σ where no more of it lies outside than this much round-off for each row.
OUTSIDE_RANGE = 64 * UNIT


@dataclass(frozen=True)
class Bare:
    """Records with noise far below their own spread: how many, the least noise and the least spread."""

    count: int
    noise: float
    own: float
    any_own: bool

    @classmethod
    def of(cls, noise: Array, own: Array) -> Bare:
        bare = (own > 0) & (noise < LITTLE_NOISE * own)
        least, spread = (float(np.min(values[bare], initial=np.inf)) for values in (noise, own))
        return cls(int(np.sum(bare)), least, spread, bool(np.any(own > 0)))

    def joined(self, other: Bare) -> Bare:
        any_own = self.any_own or other.any_own
        return Bare(self.count + other.count, min(self.noise, other.noise), min(self.own, other.own), any_own)


@dataclass(frozen=True, eq=False)
class RecordsKnown:
    """The records inside a region, as the best reader sees them.

    ``noise`` is the standard deviation of the change from each to what is published (that of the noise, where nothing
    is suppressed), ``own`` that of its own part e_i (the least that any prior says), ``learnt`` the largest share of
    its variance that any reader learns. A promise is about those at ``places``, with ``ratios``: std(y_i|W)/floor, the
    least of all readers', ``deviations`` and ``floors``; ``asked`` are the floors of every reader.
    ``published`` are the noises that were drawn, each with its rows that show any of these records.
    """

    noise: Array
    own: Array
    learnt: Array
    places: Array
    ratios: Array
    deviations: Array
    floors: Array
    asked: Array
    published: tuple[tuple[Noise, Index], ...]

    @classmethod
    def of(cls, design: Design, knowledge: Sequence[ExactKnowledge]) -> RecordsKnown:
        """Those of the rows of ``design``."""
        rows = np.flatnonzero(design.region.contains(design.inputs.values))
        inside = [one.reader.records(design.inputs, rows) for one in knowledge]
        noise = np.sqrt(change_variance(knowledge[0])[rows])
        return cls.among(knowledge, inside, np.searchsorted(rows, design.records), noise, ((design.noise, rows),))

    @classmethod
    def among(
        cls,
        knowledge: Sequence[ExactKnowledge],
        inside: Sequence[Records],
        promised: Index,
        noise: Array,
        published: tuple[tuple[Noise, Index], ...],
    ) -> RecordsKnown:
        """Those that are ``inside``, as each reader sees them; ``promised`` says which of them each reader's are."""
        count, kept = len(noise), np.full(len(noise), np.inf)
        learnt, own = np.zeros(count), np.full(count, np.inf)
        ratios, deviations, floors = (np.full(len(promised), np.inf) for _ in range(3))
        each = []
        for one, records in zip(knowledge, inside, strict=True) if count else ():
            values = FunctionAndRecords(one.reader, records)
            known = one.record_deviations(records)
            learnt = np.maximum(learnt, 1.0 - known**2 / values.variance(records.places))
            own, kept = np.minimum(own, np.sqrt(records.own)), np.minimum(kept, known)
            if len(promised):
                values = FunctionAndRecords(one.reader, one.records)
                asked = one.design.tolerance.floor(values, one.records.places)
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(asked > 0, known[promised] / asked, np.where(np.isnan(asked), 0.0, np.inf))
                closer = ratio < ratios
                deviations, floors = np.where(closer, known[promised], deviations), np.where(closer, asked, floors)
                ratios = np.minimum(ratios, ratio)
                each.append(asked)
        places = inside[0].places[promised]
        # who knows no more of a record is not shown it either: of several releases ``noise`` is that of one, and
        # combinations may be suppressed
        noise = np.maximum(noise, kept)
        return cls(noise, own, learnt, places, ratios, deviations, floors, np.array(each), published)

    @classmethod
    def together(cls, knowledge: ExactKnowledge, composition: Composition, promised: Index) -> RecordsKnown:
        """Those of all measurements that were published; records of ``promised`` ones are promised."""
        error, lies_inside = composition.error, knowledge.design.region.contains(composition.measurements.rows)
        inside = np.union1d(np.flatnonzero(lies_inside), promised)
        records = composition.records(inside)
        noise, starts = np.full(len(inside), np.inf), np.cumsum([0, *(part.noise.rows for part in error.parts)])
        np.minimum.at(noise, records.shown, error.noise_variance()[records.rows])
        published = tuple(
            (part.noise, records.rows[(records.rows >= start) & (records.rows < start + part.noise.rows)] - start)
            for part, start in zip(error.parts, starts, strict=False)
        )
        return cls.among([knowledge], [records], np.searchsorted(inside, promised), np.sqrt(noise), published)

    @property
    def count(self) -> int:
        return len(self.noise)

    @property
    def promised(self) -> int:
        """How many a promise is about."""
        return len(self.places)

    @property
    def bare(self) -> Bare:
        """Those with noise far below their own spread."""
        return Bare.of(self.noise, self.own)

    @cached_property
    def sensitivity(self) -> float:
        """By how many standard deviations of the noises a unit in one of these records moves what is published."""
        return float(np.sqrt(sum(record_sensitivity(noise, rows) ** 2 for noise, rows in self.published)))

    @cached_property
    def raw(self) -> int:
        """How many go out unchanged."""
        return unchanged(self.noise, self.own)

    @property
    def ratio(self) -> float:
        return float(np.min(self.ratios)) if len(self.ratios) else float("nan")

    @property
    def least_noise(self) -> float:
        return float(np.min(self.noise)) if len(self.noise) else float("nan")

    @property
    def most_learnt(self) -> float:
        return float(np.max(self.learnt)) if len(self.learnt) else float("nan")


def unchanged(noise: Array, own: Array) -> int:
    """How many records go out unchanged."""
    spread = np.sqrt(np.maximum(own**2, np.finfo(float).tiny))
    return int(np.sum(noise <= UNCHANGED * spread))


def record_sensitivity(noise: Noise, rows: Index) -> float:
    """The largest ``√(e_iᵀ Σ⁺ e_i)`` over ``rows``: how far a unit in a record moves a release, in deviations of Σ.

    What is published is a function of values with noise on all that is suppressed, so that counts as Σ has it.
    Infinite where some e_i does not lie in the range of Σ: then who knows all other records takes the noise off.
    """
    if not len(rows):
        return 0.0
    if noise.rank == 0 and not noise.suppressed_count:
        return 1.0 / np.sqrt(noise.shift) if noise.shift > 0 else float("inf")
    if isinstance(noise, IndependentNoise):
        least = float(np.min(noise.variances[rows]))
        return 1.0 / np.sqrt(least) if least > 0 else float("inf")
    vectors, values, _ = scipy.linalg.svd(noise.blurring, full_matrices=False, check_finite=False)
    inside = vectors[rows] ** 2
    left = np.maximum(1.0 - np.sum(inside, axis=1), 0.0)
    squares = values**2 + noise.shift
    told = inside @ (1.0 / np.maximum(squares, np.finfo(float).tiny))
    if noise.shift > 0:
        return float(np.sqrt(np.max(told + left / noise.shift)))
    return float(np.sqrt(np.max(told))) if np.all(left <= OUTSIDE_RANGE * len(vectors)) else float("inf")


@dataclass(frozen=True, eq=False)
class RecordsFromSums:
    """The same for any number of records with functional noise, which are looked at part by part.

    ``most_learnt`` is an upper bound: readers are given more than they see (sums.py). ``places``, ``ratios``,
    ``deviations`` and ``floors`` are those of the promised records that come closest to their floors;
    ``lowest_floor`` and ``highest_floor`` are those of all. ``most_of_own`` is the largest share that is learnt of what
    is a promised record's own, over the share that may be. ``variance`` is that of the independent noise on all of them
    together, ``cost`` with weights, and ``needed`` what any noise has to cost that promises each by itself.
    """

    count: int
    raw: int
    bare: Bare
    least_noise: float
    least_independent: float
    most_learnt: float
    most_of_own: float
    lowest_floor: float
    highest_floor: float
    variance: float
    cost: float
    needed: float
    needed_variance: float
    places: Array
    ratios: Array
    deviations: Array
    floors: Array

    @classmethod
    def of(
        cls, design: Design, knowledge: Sequence[KnowledgeFromSums], engine: Engine, device: str | None
    ) -> RecordsFromSums:
        """One pass over the rows."""
        columns = noise_columns(design.priors)
        if design.weights is not None:
            columns["weights"] = design.weights
        work = RecordsOfPart(design, tuple(knowledge), device)
        found = engine.each(work, design.inputs.parts(columns), lambda rows: None)
        known = reduce(cls.joined, found)
        return known if known.count else replace(known, least_noise=np.nan, most_learnt=np.nan)

    def joined(self, other: RecordsFromSums) -> RecordsFromSums:
        ratios = np.concatenate([self.ratios, other.ratios])
        worst = np.argsort(ratios, kind="stable")[:MOST_KEPT]
        return RecordsFromSums(
            self.count + other.count,
            self.raw + other.raw,
            self.bare.joined(other.bare),
            min(self.least_noise, other.least_noise),
            min(self.least_independent, other.least_independent),
            max(self.most_learnt, other.most_learnt),
            max(self.most_of_own, other.most_of_own),
            min(self.lowest_floor, other.lowest_floor),
            max(self.highest_floor, other.highest_floor),
            self.variance + other.variance,
            self.cost + other.cost,
            self.needed + other.needed,
            self.needed_variance + other.needed_variance,
            np.vstack([self.places, other.places])[worst],
            ratios[worst],
            np.concatenate([self.deviations, other.deviations])[worst],
            np.concatenate([self.floors, other.floors])[worst],
        )

    @property
    def promised(self) -> int:
        return self.count if np.isfinite(self.lowest_floor) else 0

    @property
    def asked(self) -> Array:
        return np.array([self.lowest_floor, self.highest_floor])

    @property
    def ratio(self) -> float:
        return float(np.min(self.ratios)) if len(self.ratios) else float("nan")

    @property
    def sensitivity(self) -> float:
        """An upper bound: what readers would see who know the random function."""
        if not self.count:
            return 0.0
        return 1.0 / float(np.sqrt(self.least_independent)) if self.least_independent > 0 else float("inf")


@dataclass(frozen=True, eq=False)
class RecordsOfPart:
    """The work on a part: what readers know of its records inside the region."""

    design: Design
    knowledge: tuple[KnowledgeFromSums, ...]
    device: str | None = None

    def __call__(self, part: Part) -> RecordsFromSums:
        design, noise = self.design, self.design.noise.as_function()
        X = part.inputs()
        inside = design.region.contains(X)
        X = X[inside]
        errors = [own[inside] for own in noise_of_part(design.priors, part)]
        weights = np.ones(len(X)) if design.weights is None else part.column("weights")[inside]
        independent = noise.independent_at(X, errors[0])
        told = [one.noise_told(X, self.device) for one in self.knowledge]
        deviation = np.sqrt(told[0][0] + independent)
        own = np.sqrt(np.min(errors, axis=0)) if len(X) else np.zeros(0)
        learnt, needed, of_own, low, high = np.zeros(len(X)), np.zeros(len(X)), -np.inf, np.inf, -np.inf
        promised = design.protects != "function"
        ratios, deviations, floors = (np.full(len(X) if promised else 0, np.inf) for _ in range(3))
        for one, V, (_, of_noise) in zip(self.knowledge, errors, told, strict=True):
            if not len(X):
                break
            values = FunctionAndRecords(one.reader, records_at(X, V))
            left, variance = self._left(one, X, V, independent, of_noise), values.variance(X)
            learnt = np.maximum(learnt, 1.0 - left / variance)
            if not promised:
                continue
            asked, budget = design.tolerance.floor(values, X), design.tolerance.budget(values, X)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(asked > 0, np.sqrt(left) / asked, np.where(np.isnan(asked), 0.0, np.inf))
                needed = np.maximum(needed, np.where(budget > 0, variance**2 / budget - variance, 0.0))
            closer = ratio < ratios
            deviations, floors = np.where(closer, np.sqrt(left), deviations), np.where(closer, asked, floors)
            ratios = np.minimum(ratios, ratio)
            of_own = max(of_own, self._of_own(values, X, V, independent))
            low, high = min(low, float(np.min(asked))), max(high, float(np.max(asked)))
        worst = np.argsort(ratios, kind="stable")[:MOST_KEPT]
        return RecordsFromSums(
            len(X),
            unchanged(deviation, own),
            Bare.of(deviation, own),
            float(np.min(deviation, initial=np.inf)),
            float(np.min(independent, initial=np.inf)),
            float(np.max(learnt, initial=0.0)),
            of_own,
            low,
            high,
            float(np.sum(independent)),
            float(np.sum(weights * independent)),
            float(np.sum(weights * needed)),
            float(np.sum(needed)),
            X[worst] if promised else X[:0],
            ratios[worst],
            deviations[worst],
            floors[worst],
        )

    def _left(self, one: KnowledgeFromSums, X: Array, V: Array, independent: Array, of_noise: Array) -> Array:
        """A lower bound for the reader's variance of each record; ``of_noise`` is that of the noise."""
        if self.design.protects == "function":
            return of_noise
        # to who knows f
        known = V * independent / (V + independent)
        if self.design.protects == "records":
            return np.asarray(known)
        share = np.minimum(V / np.maximum(independent, np.finfo(float).tiny), 1.0)
        return np.asarray(np.maximum(known, one.deviations(X) ** 2 + (1.0 - share) * V))

    def _of_own(self, values: FunctionAndRecords, X: Array, V: Array, independent: Array) -> float:
        """The largest share that is learnt of a record's own part, over the share that may be."""
        shares = self.design.tolerance.shares(values, X)
        if shares is None or np.any(shares[0] < 1.0):
            # nothing is promised about what is a record's own by itself
            return float("inf") if self.design.protects == "records" else -np.inf
        return float(np.max(V / (V + independent) / shares[1]))
