"""What readers know of the records inside a region: the rows as they are published, and not f there.

A record is ``y_i = f(x_i) + e_i``. Whatever is promised, a certificate says how much noise falls on the records inside
the region, and how well the best reader knows the one that is known best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array, Index
from ..noise import IndependentNoise, Noise
from ..promise import Composition, Design, FunctionAndRecords, Records
from .knowledge import ExactKnowledge

#: A record whose noise is below this share of its standard deviation goes out unchanged.
UNCHANGED = 1e-6

#: A direction lies in the range of Σ where no more of it lies outside than this much round-off for each row.
OUTSIDE_RANGE = 64 * UNIT


@dataclass(frozen=True, eq=False)
class RecordsKnown:
    """The records inside a region, as the best reader sees them.

    ``noise`` is the standard deviation of the noise on each, ``own`` that of its own part e_i (the least that any
    prior says), ``learnt`` the largest share of its variance that any reader learns. A promise is about those at
    ``places``, with ``ratios``: std(y_i|W)/floor, the least of all readers', ``deviations`` and ``floors``; ``asked``
    are the floors of every reader.
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
        noise = np.sqrt(design.noise.variance()[rows])
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
        count = len(noise)
        learnt, own = np.zeros(count), np.full(count, np.inf)
        ratios, deviations, floors = (np.full(len(promised), np.inf) for _ in range(3))
        each = []
        for one, records in zip(knowledge, inside, strict=True) if count else ():
            values = FunctionAndRecords(one.reader, records)
            known = one.record_deviations(records)
            learnt = np.maximum(learnt, 1.0 - known**2 / values.variance(records.places))
            own = np.minimum(own, np.sqrt(records.own))
            if len(promised):
                values = FunctionAndRecords(one.reader, one.records)
                asked = one.design.tolerance.floor(values, one.records.places)
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.where(asked > 0, known[promised] / asked, np.inf)
                closer = ratio < ratios
                deviations, floors = np.where(closer, known[promised], deviations), np.where(closer, asked, floors)
                ratios = np.minimum(ratios, ratio)
                each.append(asked)
        places = inside[0].places[promised]
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

    @cached_property
    def sensitivity(self) -> float:
        """By how many standard deviations of the noises a unit in one of these records moves what is published."""
        return float(np.sqrt(sum(record_sensitivity(noise, rows) ** 2 for noise, rows in self.published)))

    @cached_property
    def raw(self) -> int:
        """How many go out unchanged."""
        spread = np.sqrt(np.maximum(self.own**2, np.finfo(float).tiny))
        return int(np.sum(self.noise <= UNCHANGED * spread))

    @property
    def ratio(self) -> float:
        return float(np.min(self.ratios)) if len(self.ratios) else float("nan")

    @property
    def least_noise(self) -> float:
        return float(np.min(self.noise)) if len(self.noise) else float("nan")

    @property
    def most_learnt(self) -> float:
        return float(np.max(self.learnt)) if len(self.learnt) else float("nan")


def record_sensitivity(noise: Noise, rows: Index) -> float:
    """The largest ``√(e_iᵀ Σ⁺ e_i)`` over ``rows``: how far a unit in a record moves a release, in deviations of Σ.

    Infinite where some e_i does not lie in the range of Σ: then who knows all other records takes the noise off.
    """
    if not len(rows):
        return 0.0
    if noise.rank == 0:
        return 1.0 / np.sqrt(noise.shift) if noise.shift > 0 else float("inf")
    if isinstance(noise, IndependentNoise):
        least = float(np.min(noise.variances[rows]))
        return 1.0 / np.sqrt(least) if least > 0 else float("inf")
    vectors, values, _ = scipy.linalg.svd(noise.factor, full_matrices=False, check_finite=False)
    inside = vectors[rows] ** 2
    left = np.maximum(1.0 - np.sum(inside, axis=1), 0.0)
    squares = values**2 + noise.shift
    told = inside @ (1.0 / np.maximum(squares, np.finfo(float).tiny))
    if noise.shift > 0:
        return float(np.sqrt(np.max(told + left / noise.shift)))
    return float(np.sqrt(np.max(told))) if np.all(left <= OUTSIDE_RANGE * len(vectors)) else float("inf")
