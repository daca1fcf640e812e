"""A design for any number of rows: choose centres, sum up the rows once, and solve on virtual rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..data import Engine, Inputs, among
from ..errors import GuaranteeError, GuaranteeWarning, InputError
from ..linalg import Matrix, few_threads
from ..models import Prior
from ..noise import FunctionalNoise, RecordNoise
from ..programs import explaining_root
from ..progress import Progress
from ..promise import (
    Cover,
    Design,
    FloorTolerance,
    FractionTolerance,
    FunctionAndRecords,
    Reader,
    SensitiveValues,
    Tolerance,
    noise_columns,
    noise_of_part,
    records_at,
)
from ..proof import (
    LEAST_SHARE,
    MOST_CENTRES,
    STEPS_OF_SPARE,
    Centres,
    Certificate,
    Effort,
    Features,
    RecordSums,
    Summary,
    VirtualRows,
    choose_centres,
    examine_sums,
    summarise,
)
from ..regions import Everywhere
from .evidence import as_asked
from .loop import Margins, certified_design, rough_objective
from .plan import COMPRESSED_ACCURACY, PREDICTIONS_ACCURACY, Asked, exact_plan
from .problem import Problem, Solution, no_rows_inside
from .sensitive import EPSILON, GREEDY_LIMIT, MATRIX_CANDIDATES, AskedCover, greedy_order


@dataclass(frozen=True, eq=False)
class VirtualExposure:
    """Virtual rows in place of those of the data, for a reader who also knows what the features leave out of f.

    That can only help readers, so whatever is promised here holds for the data themselves (MATH.md, section 6.3).
    ``inputs`` are rows that stand for all of them; ``number`` says which of the priors the reader holds. ``records``
    are promised jointly with f.
    """

    reader: Reader
    inputs: Inputs
    tolerance: Tolerance
    joint: bool
    virtual: VirtualRows
    number: int
    records: RecordSums | None = None

    @property
    def unknown(self) -> SensitiveValues:
        return self.reader.function

    @property
    def device(self) -> None:
        """Virtual rows are few: they are worked on by the CPU."""
        return None

    @property
    def size(self) -> int:
        return len(self.virtual)

    @cached_property
    def data_covariance(self) -> Array:
        """A as the virtual rows have it."""
        return np.asarray(self.virtual.process(self.number) + self.virtual.noise(self.number))

    @cached_property
    def data_root(self) -> Array:
        return np.asarray(scipy.linalg.cholesky(self.data_covariance, lower=True, check_finite=False))

    @property
    def largest(self) -> float:
        return float(np.max(np.diag(self.data_covariance)))

    @property
    def features(self) -> Features:
        return self.virtual.summary.features[self.number]

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        values = self.features.at(sensitive)
        if self.records is not None and with_records and self.joint:
            directions = self.virtual.summary.promised_root(self.number, values, self.records)
            if directions is None:
                raise np.linalg.LinAlgError("records cannot be told from what the features leave out")
            return self.virtual.cross(self.number, directions.T)
        cross = self.virtual.cross(self.number, values)
        if self.joint:
            delta = self.tolerance.matrix(self.unknown, sensitive)
            return explaining_root(cross, delta - self._rest(sensitive, values))
        return cross / np.sqrt(self._budget(sensitive, values))

    def cross(self, points: Array) -> Matrix:
        return self.virtual.cross(self.number, self.features.at(points))

    def at(self, points: Array) -> tuple[Matrix, Array]:
        if np.any(self.tolerance.budget(self.unknown, points) <= 0):
            self.tolerance.check(self.unknown, points, self.inputs)
        values = self.features.at(points)
        return self.virtual.cross(self.number, values), self._budget(points, values)

    def shift(self, level: float) -> float:
        """None: data without noise are not compressed (``check_compressible``)."""
        return 0.0

    def _rest(self, points: Array, values: Array) -> Array:
        """The covariance that the features leave out; nothing at a centre."""
        beside = np.flatnonzero(~among(points, self.features.centres))
        rest, known = np.zeros((len(points), len(points))), values[beside]
        if beside.size:
            left_out = self.reader.prior.covariance(points[beside]) - (known * self.features.shares) @ known.T
            rest[np.ix_(beside, beside)] = left_out
        return rest

    def _budget(self, points: Array, values: Array) -> Array:
        """How much the virtual rows may explain, once what the features leave out is known."""
        budget = self.tolerance.budget(self.unknown, points) - self.features.left_out(points, values)
        # where the features leave out more than may be learnt nothing can be promised
        return np.asarray(np.maximum(budget, np.finfo(float).tiny))


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """Virtual rows stand for the data of ``whole``, the problem as it was asked; their weights are a part of them.

    ``problem`` is the same with few rows, which stand for all of them where the region is looked at.
    """

    problem: Problem
    virtual: VirtualRows
    whole: Problem
    records: RecordNoise | None = None
    promised: RecordSums | None = None

    @classmethod
    def of(
        cls,
        whole: Problem,
        summary: Summary,
        records: RecordNoise | None,
        promised: RecordSums | None,
        gap: float,
    ) -> CompressedRows:
        """``records`` is the noise that records carry by themselves, and ``promised`` how they are promised jointly.

        Where predictions are to be the best, they are solved for to within ``gap``.
        """
        problem = replace(
            whole,
            prior=_with_one_noise(whole.prior),
            others=tuple(_with_one_noise(prior) for prior in whole.others),
            inputs=whole.inputs.sample,
            weights=None,
        )
        virtual = VirtualRows(summary)
        plan = exact_plan(replace(problem.size, rows=len(virtual)))
        return cls(replace(problem, plan=replace(plan, gap=gap)), virtual, whole, records, promised)

    @cached_property
    def exposures(self) -> tuple[VirtualExposure, ...]:
        few = self.problem
        return tuple(
            VirtualExposure(Reader(prior), few.inputs, few.tolerance, few.joint, self.virtual, number, self.promised)
            for number, prior in enumerate(few.priors)
        )

    @property
    def given(self) -> Array:
        return np.asarray(self.problem.inputs.values[:0])

    def admissible(self, points: Array) -> Array:
        """The centres in the region that tell most of ``points``; each once.

        At a centre the features have all of f, so Δ need not be lessened by what they leave out; it could not be where
        sensitive values almost determine each other. Where each value is promised by itself that does not matter.
        """
        if not self.problem.joint:
            return points
        inside = self._centres_inside
        if len(points) == 0 or len(inside) == 0 or np.all(among(points, inside)):
            return points
        prior = self.problem.prior
        correlation = np.abs(prior.covariance(points, inside)) / np.sqrt(prior.variance(inside))
        return np.asarray(inside[np.unique(np.argmax(correlation, axis=1))])

    @cached_property
    def _centres_inside(self) -> Array:
        """The inputs of the region that are centres for every prior."""
        first, *others = (features.centres for features in self.virtual.summary.features)
        common = np.all([self.problem.region.contains(first), *(among(first, centres) for centres in others)], axis=0)
        return np.asarray(first[common])

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        virtual, summary = self.virtual, self.virtual.summary
        coefficients = virtual.coefficients(solution.noise.factor)
        noise = FunctionalNoise(
            self.whole.priors,
            tuple(features.centres for features in summary.features),
            virtual.mixing(coefficients),
            self.whole.inputs,
            records=self.records,
            # where records carry noise of their own, that is added up when it is asked for
            known_trace=None if self.records else float(np.sum(coefficients * (summary.gram @ coefficients))),
            suppressing=virtual.mixing(virtual.functions(solution.noise.suppressed)),
        )
        witness = solution.witness
        if witness is not None and solution.explained is None:
            witness = tuple(virtual.basis @ part for part in witness)
        elif witness is not None and self.promised is not None:
            witness = (self._of_function(sensitive, witness[0]),)
        return self.whole.published(cover, sensitive, Solution(noise, witness, solution.explained))

    def _of_function(self, sensitive: Array, witness: Array) -> Array:
        """What a ``witness`` about records together with f says of f alone.

        U of f spans what the first columns of U of both do (``Summary.promised_root``). Any witness proves a bound.
        """
        both, alone = self.exposures[0], replace(self.exposures[0], records=None)
        first = both.root(sensitive)[:, : len(sensitive)] @ witness[: len(sensitive)]
        return np.asarray(scipy.linalg.lstsq(alone.root(sensitive), first)[0])

    def jointly(self) -> CompressedRows:
        return replace(self, problem=replace(self.problem, guarantee="joint"))


#: How often centres are added because the gap was not reached: each time costs a pass over the rows.
PASSES = 3

#: More centres are chosen before anything is designed where these leave out this many times too much.
CLEARLY = 4.0

#: Noise is about this share of what would blur every value by itself; a first guess, to choose centres with.
FIRST_GUESS = 0.3

#: Sensitive values that the others determine to this share of their variance are left out.
INDEPENDENT = 1e-7

#: Records that are promised jointly with f carry so many times V/a of noise by themselves, where a is the share that
#: may be learnt of what is their own. With 1 nothing would be to spare for what their averages tell of f; with more
#: they are blurred more, and the function less.
JOINTLY = 1.25

#: Of what is to spare, what the features leave out of the records may take this share before there are more centres.
LEFT_OUT_OF_RECORDS = 0.5

#: V must be above this share of the prior variance: with less, round-off would decide what the rows tell.
LEAST_NOISE = 1e-9


@dataclass(frozen=True, eq=False)
class Compression:
    """How a design for many rows is found."""

    whole: Problem
    cover: AskedCover
    asked: Asked
    engine: Engine
    step: Progress

    @property
    def accuracy(self) -> float:
        usual = COMPRESSED_ACCURACY if self.whole.serves is None else PREDICTIONS_ACCURACY
        return self.asked.accuracy or usual

    @cached_property
    def first_centres(self) -> list[Centres]:
        """The centres that the first pass over the rows is made with."""
        self.step.stage("choosing centres")
        return self._centres(self._first_mean)

    def guess(self) -> int:
        """About how many centres are needed."""
        if self.whole.protects == "records":
            return 1
        return max(len(centres.places) for centres in self.first_centres)

    def design(self) -> tuple[Design, Certificate]:
        """The design and its certificate; a gap above ``accuracy`` is said with the number of centres it would need."""
        if self.whole.protects == "records":
            return self._for_records()
        mean, centres, designed = self._first_mean, self.first_centres, False
        for turn in range(PASSES):
            if turn:
                self.step.stage("choosing more centres")
                fewer, centres = centres, self._centres(mean)
                if designed and all(len(a.places) <= len(b.places) for a, b in zip(centres, fewer, strict=True)):
                    break
            features = [Features.around(p, c.places) for p, c in zip(self.whole.priors, centres, strict=True)]
            self._check_rough(features, centres)
            summary = self._summary(features)
            full = any(len(c.places) >= MOST_CENTRES for c in centres)
            taken = self._taken(summary)
            if taken > LEFT_OUT_OF_RECORDS and not full and turn < PASSES - 1:
                mean = min(mean, self._residual(summary) / summary.rows) * min(0.3, 0.5 * LEFT_OUT_OF_RECORDS / taken)
                continue
            self._check_records(taken, len(summary))
            rough = None if full or turn == PASSES - 1 else self._rough_share(summary)
            if rough is not None and rough > CLEARLY * self.accuracy:
                # a design would only show that more centres are needed
                mean = self._finer(mean, summary, rough)
                continue
            design, certificate = self._solve(summary)
            designed = True
            share = self._residual(summary) / max(certificate.trace, np.finfo(float).tiny)
            # what records carry by themselves costs the same with any number of centres
            gap = certificate.compression if self.record_noise is None else share
            if self.whole.serves is not None:
                gap = share = certificate.compression
            if gap <= self.accuracy or full or share < self.accuracy / 8 or turn == PASSES - 1:
                break
            mean = self._finer(mean, summary, share)
        design = _with_trace(design, certificate)
        insist = partial(examine_sums, design, summary, None, Effort(True, done=self.step.update), self.engine)
        certificate = as_asked(self.asked.evidence, certificate, insist, self.step.stage)
        if gap > self.accuracy and certificate.holds:
            self._warn(gap, summary, centres, design)
        return design, certificate

    @cached_property
    def record_noise(self) -> RecordNoise | None:
        """The noise that records carry by themselves."""
        whole = self.whole
        if whole.protects == "function":
            return None
        multiple = 0.0
        columns = noise_columns(whole.priors)
        for part in whole.inputs.parts(columns):
            rows = part.inputs()
            inside = whole.region.contains(rows)
            if np.any(inside):
                own = [errors[inside] for errors in noise_of_part(whole.priors, part)]
                multiple = max(multiple, self._multiple(rows[inside], own))
            if multiple > 0 and not columns and isinstance(whole.tolerance, FractionTolerance):
                # it is the same for all records
                break
        if multiple == 0 and whole.protects == "records":
            raise no_rows_inside(whole)
        # where there are no records, there is none to carry it
        return RecordNoise(whole.region, multiple or JOINTLY)

    def _multiple(self, places: Array, errors: list[Array]) -> float:
        """The noise that each of the records at ``places`` needs, in multiples of the first prior's V: the most."""
        whole, most = self.whole, 0.0
        for prior, own in zip(whole.priors, errors, strict=True):
            values = FunctionAndRecords(Reader(prior), records_at(places, own))
            shares = whole.tolerance.shares(values, places)
            assert shares is not None
            if whole.protects == "records" and np.any(shares[0] < 1.0):
                whole.tolerance.check(values, places, whole.inputs)
                raise InputError(
                    "floor is more than what is each record's own can keep (noise has a standard deviation of "
                    f'{np.sqrt(np.min(own)):.4g}), and method is "compressed"; give a smaller floor, or use '
                    'protects="both".'
                )
            alone = whole.protects == "records"
            needed = 1.0 / shares[1] - 1.0 if alone else (JOINTLY if whole.joint else 1.0) / shares[1]
            most = max(most, float(np.max(needed * own / errors[0])))
        return most

    @cached_property
    def record_sums(self) -> RecordSums | None:
        """What is summed up of records, where they are promised jointly with f."""
        whole = self.whole
        if self.record_noise is None or not whole.joint or whole.protects != "both":
            return None
        points = whole.region.points
        places = whole.region.probes(256, whole.inputs.sample) if points is None else points
        if not len(places):
            return None
        sums = RecordSums.of(self.record_noise, whole.tolerance, whole.priors, places)
        if sums is None:
            raise InputError(
                'the floor leaves readers another share of f at other inputs, and protects is "both"; with '
                'method="compressed" give alpha, or use protects="function" or guarantee="pointwise".'
            )
        return sums

    def _for_records(self) -> tuple[Design, Certificate]:
        """Noise on each record by itself: readers may know f, so nothing is compressed, whatever is to stay useful."""
        whole = self.whole
        place = whole.inputs.sample.values[:1] + 0.0
        summary = self._summary([Features.around(prior, place) for prior in whole.priors])
        count = len(whole.priors)
        noise = FunctionalNoise(
            whole.priors, (place,) * count, np.zeros((count, 0)), whole.inputs, records=self.record_noise
        )
        design = replace(whole.published("rows", place[:0], Solution(noise)), serves=None)
        self.step.stage("proving the promise")
        certificate = examine_sums(design, summary, engine=self.engine, device=self.asked.device).certificate()
        return _with_trace(design, certificate), certificate

    def _taken(self, summary: Summary) -> float:
        """What the features leave out of the records, as a share of what there is to spare."""
        if self.record_sums is None:
            return 0.0
        shares = enumerate(self.record_sums.shares)
        return max((1.0 - share) * float(summary.totals[f"record_left_out_{number}"]) for number, share in shares)

    def _check_records(self, taken: float, centres: int) -> None:
        if taken > 1.0 - 1.0 / STEPS_OF_SPARE:
            raise GuaranteeError(
                f'nothing was designed: method="compressed" has {centres} centres, which leave out {taken:.2g} times '
                "as much of combinations of records as there is room for. The prior is too rough, or has too many "
                'inputs; use protects="records" or "function", guarantee="pointwise", or an exact method.'
            )

    @cached_property
    def _first_mean(self) -> float:
        """What may be left out at a row, on average, if the noise is about as large as one guesses."""
        whole, sample = self.whole, self.whole.inputs.sample
        if whole.serves is not None:
            # what is left out costs predictions more the more rows there are to tell of it (proof/served_sums.py)
            squared = float(np.mean(whole.prior.variance(sample.values))) * float(np.min(whole.prior.noise))
            return FIRST_GUESS * self.accuracy * float(np.sqrt(squared / len(whole.inputs)))
        rows = sample.values[:: -(-len(sample) // 2048)]
        points = whole.region.points
        places = whole.region.probes(256, sample) if points is None else points[:256]
        guesses = []
        for prior in self.whole.priors:
            own, budget = prior.variance(places), whole.tolerance.budget(prior, places)
            seen = np.max(prior.covariance(rows, places) ** 2 / (own * prior.variance(rows)[:, None]), axis=1)
            blur = float(np.mean(own * np.maximum(own / budget - 1.0, 0.01)))
            guesses.append(FIRST_GUESS * float(np.mean(seen)) * blur)
        return 0.5 * self.accuracy * min(guesses)

    def _centres(self, mean: float) -> list[Centres]:
        whole = self.whole
        always = whole.region.points
        if always is not None and len(always) > MOST_CENTRES // 2:
            raise InputError(
                f"region has {len(always)} points; at most {MOST_CENTRES // 2} can be protected by "
                'method="compressed". Give fewer points, or a box around them.'
            )
        if always is None and whole.joint:
            # sensitive inputs have to be centres, so there must be some that stand for the region well
            places = whole.region.probes(MATRIX_CANDIDATES, whole.inputs.sample)
            places = places[:: -(-len(places) // MATRIX_CANDIDATES)]
            always = places[greedy_order(whole.prior, places, EPSILON, GREEDY_LIMIT).order]
        # for several priors sensitive inputs must be centres of each, also where they tell almost the same
        least = LEAST_SHARE if len(self.whole.priors) == 1 else 1e-3 * LEAST_SHARE
        rows, device = whole.inputs.sample, self.asked.device
        return [
            choose_centres(prior, rows, whole.region, mean, MOST_CENTRES, always, device, least)
            for prior in whole.priors
        ]

    def _summary(self, features: list[Features]) -> Summary:
        whole, rows = self.whole, len(self.whole.inputs)
        self.step.stage(f"summing up {rows:,} rows")
        return summarise(
            self.whole.priors,
            features,
            whole.inputs,
            whole.weights,
            self.engine,
            self.asked.device,
            self.step.counter(rows),
            records=self.record_sums,
        )

    def _solve(self, summary: Summary) -> tuple[Design, Certificate]:
        back_end = self._rows(summary)
        effort = Effort(done=self.step.update)
        with few_threads():
            return certified_design(
                back_end,
                self.cover,
                lambda design, needed, quick: examine_sums(
                    design, summary, needed, replace(effort, quick=quick), self.engine, self.asked.device
                ),
                self.step.stage,
                self._margins,
                self.asked.evidence == "proved",
            )

    def _rough_share(self, summary: Summary) -> float | None:
        """About how much of the noise what the features leave out may cost, as a share; None where it is not said."""
        if self.whole.serves is not None:
            return None
        with few_threads():
            cost = rough_objective(self._rows(summary), self.cover, self._margins, self.step.stage)
        return None if not cost else self._residual(summary) / cost

    def _rows(self, summary: Summary) -> CompressedRows:
        return CompressedRows.of(self.whole, summary, self.record_noise, self.record_sums, self.accuracy)

    def _finer(self, mean: float, summary: Summary, share: float) -> float:
        """What may be left out at a row, on average, where ``share`` of the noise was too much."""
        return min(mean, self._residual(summary) / summary.rows) * min(0.3, 0.4 * self.accuracy / share)

    @property
    def _margins(self) -> Margins:
        # what the features cost is not worth another attempt
        return Margins(joint=max(1e-9, 0.05 * self.accuracy), independent=INDEPENDENT)

    def _residual(self, summary: Summary) -> float:
        return max(summary.residual(number, weighted=False) for number in range(len(self.whole.priors)))

    def _warn(self, gap: float, summary: Summary, centres: list[Centres], design: Design) -> None:
        wanted = 0.5 * self.accuracy * design.noise.trace / summary.rows
        what = "noise"
        if self.whole.serves is not None:
            wanted, what = self._first_mean, "share that readers explain"
        needed = sum(c.needed_for(wanted) for c in centres)
        if needed > len(summary):
            reason = (
                f"about {_count(needed)} would be needed: the prior is too rough, or has too many inputs, for fewer"
            )
        elif self.whole.weights is not None or None in summary.noises:
            reason = "more would not help: rows with weights or noise variances of their own cost the rest"
        else:
            reason = "more would not help: round-off is in the way"
        warnings.warn(
            f"compression may cost up to {gap:.1e} of the {what}; accuracy {self.accuracy:g} was asked for. There are "
            f"{len(summary)} centres, and {reason}. The promise holds all the same",
            GuaranteeWarning,
            stacklevel=5,
        )

    def _check_rough(self, features: list[Features], centres: list[Centres]) -> None:
        """Raise where the features leave out more of f than may be learnt: readers are given that."""
        whole, sample = self.whole, self.whole.inputs.sample
        places = whole.region.points
        if places is None and self.cover == "rows":
            places = sample.values[whole.region.contains(sample.values)]
        if places is None:
            places = whole.region.probes(1024, sample, batch=2)
        if len(places) == 0:
            # no row is in the region: that is said where rows are taken
            return
        for prior, own, chosen in zip(self.whole.priors, features, centres, strict=True):
            budget = whole.tolerance.budget(prior, places)
            worst = float(np.max(own.left_out(places) / budget, initial=0.0))
            if worst >= 1.0:
                needed = chosen.needed_for(0.05 * float(np.mean(budget)))
                raise GuaranteeError(
                    f'nothing was designed: method="compressed" has {len(own)} centres, which leave out {worst:.2g} '
                    "times as much of f as readers may learn in the region, and what is left out is given to readers. "
                    f"The prior is too rough, or has too many inputs; about {_count(needed)} centres would be needed. "
                    'Use an exact method (method="subspace", with fewer rows), a smaller region, sf.Points, or a prior '
                    "with a longer lengthscale."
                )


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**7 else "far too many"


def _with_trace(design: Design, certificate: Certificate) -> Design:
    """With the trace of the noise, which the certificate has summed up."""
    return replace(design, noise=replace(design.noise.as_function(), known_trace=certificate.trace))


def _with_one_noise(prior: Prior) -> Prior:
    """``prior`` with one noise variance for all rows: where the region is looked at, each row's own does not matter."""
    return prior if isinstance(prior.noise, float) else replace(prior, noise=float(np.mean(prior.noise)))


def check_compressible(problem: Problem) -> None:
    """Raise where the compressed method cannot do what is asked."""
    remedy = 'use method="auto", "subspace" or "eigh"'
    if problem.insiders is not None:
        raise InputError(f'method is "compressed", which knows no insiders; {remedy}.')
    if problem.families:
        raise InputError(f'method is "compressed", which knows no families of priors; {remedy}, or priors=[…].')
    if problem.protects != "function" and not _has_shares(problem.tolerance):
        raise InputError(
            f'protects is "{problem.protects}"; with method="compressed" give alpha or one floor for all inputs, use '
            f'protects="function", or {remedy}.'
        )
    if problem.inputs.outputs.numbered:
        raise InputError(f'method is "compressed", which is for one output; with a JointPrior {remedy}.')
    if problem.structure == "diagonal":
        raise InputError(
            'structure is "diagonal", which blurs every row by itself; with method="compressed" noise is a function '
            'of the inputs. Use method="auto".'
        )
    if isinstance(problem.region, Everywhere):
        raise InputError(f'region is Everywhere, which method="compressed" cannot protect; {remedy}, or give a box.')
    if problem.weights is not None and problem.weights.ndim == 2:
        raise InputError(f'weights is a matrix; with method="compressed" give one number for each row, or {remedy}.')
    for prior in problem.priors:
        least = float(np.min(prior.noise))
        if least <= LEAST_NOISE * float(np.max(_variances(prior, problem))):
            raise InputError(
                f'noise is {least:g}; method="compressed" needs noise in the data (V > 0), above {LEAST_NOISE:g} of '
                f"the prior variance. Give its variance to the prior, or {remedy}."
            )


def _has_shares(tolerance: Tolerance) -> bool:
    """Whether it is α, or one floor: of records there are too many to write down a floor for each."""
    return isinstance(tolerance.alone, (FractionTolerance, FloorTolerance)) and not tolerance.varies


def _variances(prior: Prior, problem: Problem) -> Array:
    return prior.variance(problem.inputs.sample.values[:1024])
