"""How a certificate is made: proof from the published objects alone that a promise is kept.

Nothing here knows how Σ was found. What decides is one formula: a reader's standard deviation, from ``M = A + Σ``
(knowledge.py, or sums.py for many rows), with round-off counted against the promise (roundoff.py). Shared with designs
are the covariances themselves (the readers of ``promise``, features and sums), dense linear algebra (``linalg``), the
matrix that a promise about every input needs (``programs.needed_everywhere``). Over a region the floor is proved
(region.py); where that is not possible it is searched (search.py), and the certificate says so. Lower bounds on the
noise (optimality.py) do not bear on whether the promise is kept. A test lists all of it
(tests/proof/test_certificate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import scipy

from ..arrays import Array, Index
from ..data import Done, Engine, Here
from ..linalg import as_array
from ..models import Prior, PriorFamily
from ..noise import no_noise
from ..promise import Composition, Design, Finding, Reader
from .certificate import Certificate
from .changes import change_from_sums, change_variance
from .cost import cost_of_check
from .findings import (
    finding_on_promise,
    findings_on_check,
    findings_on_compression,
    findings_on_design,
    findings_on_evidence,
    findings_on_families,
    findings_on_gap,
    findings_on_insiders,
    findings_on_records,
)
from .insiders import InsidersKnown, insiders_known
from .knowledge import ExactKnowledge, Knowledge, KnowledgeFromSums
from .optimality import Optimality, compressed_optimality, optimality, served_share
from .promise_words import promise_in_words
from .records import RecordsFromSums, RecordsKnown
from .region import CLOSENESS, Effort, Pieces, Proof, Prover, Reason, pieces_of
from .roundoff import TOLERANCE
from .search import inputs_to_look_at, worse_inputs
from .sums import Summary, published_sums, summary_of

#: A floor that came as a table must be listed as densely as this many inputs lie that are spread evenly; inputs that
#: differ by no more than this share of their extent are the same.
LISTED, SAME_INPUT = 1000, 1e-6

#: Of the worst inputs that a proof saw, so many are looked at exactly, to name the worst.
LOOKED_AT = 64

#: Rows that are promised jointly must be determined by the sensitive inputs to this share of their standard deviation.
MOST_UNDETERMINED = 1e-4

#: At so many inputs of a region it is looked what insiders learn between the sensitive ones.
BETWEEN = 256

#: How many rows are looked at together, and how many of the worst of them all are kept.
ROWS_AT_ONCE, MOST_MISSED = 1 << 14, 64


@dataclass(frozen=True, eq=False)
class Examination:
    """What was found out about a design: whether its promise holds, and where it falls short.

    ``short`` are inputs of the region where it does, with ``learnt``: what readers learn there as a share of what they
    may; ``most`` is the most that they were seen to learn anywhere. ``open`` are the parts of the region, for each
    reader, that are not proved, ``close`` those that are not far from the floor, and ``is_searched`` says that some of
    it cannot be. ``promises_joint`` says whether ``joint_ratio`` counts. ``insiders`` is what these learn. The
    certificate, with lower bounds on the noise, is made when it is asked for.
    """

    holds: bool
    joint_ratio: float
    promises_joint: bool
    promised_ratio: float
    short: Array
    learnt: Array
    most: float
    open: tuple[Pieces, ...] | None
    close: tuple[Pieces, ...] | None
    is_searched: bool
    insiders: InsidersKnown | None
    make: Callable[[], Certificate]

    @property
    def worst(self) -> float:
        """The most that is learnt of anything that is promised, where anything falls short."""
        of_combinations = self.joint_ratio if self.promises_joint else 0.0
        return max(float(np.max(self.learnt, initial=0.0)), self.most, of_combinations)

    def certificate(self) -> Certificate:
        """It is made once: of compressed designs that takes another pass over the rows."""
        return self._certificate

    @cached_property
    def _certificate(self) -> Certificate:
        return self.make()


def certify(
    design: Design,
    engine: Engine | None = None,
    device: str | None = None,
    done: Done | None = None,
    effort: Effort | None = None,
) -> Certificate:
    """Check the promise of ``design`` from its published objects alone."""
    cost_of_check(design, device).require(device)
    if design.noise.compressed:
        summary = summary_of(design, engine or Here(device), device, done or (lambda rows: None))
        return examine_sums(design, summary, effort=effort, engine=engine, device=device).certificate()
    return examine(design, device, effort=effort).certificate()


def knowledge_of(design: Design) -> list[Knowledge]:
    """What a reader knows from ``design``, for each of its priors."""
    cost_of_check(design).require(None)
    readers = [Reader(prior) for prior in design.examined]
    if not design.noise.compressed:
        return [ExactKnowledge(design, reader, design.noise) for reader in readers]
    summary = summary_of(design, Here(), None, lambda rows: None)
    return [KnowledgeFromSums(design, reader, summary, place) for place, reader in enumerate(readers)]


def examine(
    design: Design,
    device: str | None = None,
    needed: Sequence[Pieces] | None = None,
    effort: Effort | None = None,
) -> Examination:
    """What can be said of the promise of ``design``.

    ``needed`` is the part of the region, for each prior, that is not proved without noise: noise
    only adds to what readers do not know, so the rest need not be looked at again. ``effort`` is that of a proof.
    """
    knowledge = [ExactKnowledge(design, Reader(prior), design.noise, device) for prior in design.examined]
    insiders = _insiders(design, knowledge)

    @cache
    def records() -> RecordsKnown:
        return RecordsKnown.of(design, knowledge)

    def make(check: _Check) -> Certificate:
        check = replace(check, records=records())
        spill = _spill(design, change_variance(knowledge[0]))
        findings = (*findings_on_design(design, spill), *findings_on_records(design, records()))
        return check.certificate(optimality(design, knowledge[: len(design.priors)]), spill, findings)

    # where nothing is promised of records, what readers know of them is for the certificate alone
    promised = None if design.protects == "function" else records()
    return _Check.of(design, knowledge, needed, effort, promised, insiders).examination(make)


def _insiders(design: Design, knowledge: Sequence[ExactKnowledge]) -> InsidersKnown | None:
    """What insiders learn, also at inputs of a region between the sensitive ones; None where none were asked for."""
    if design.insiders is None:
        return None
    between = None if _is_finite(design) else design.region.probes(BETWEEN, design.inputs, batch=0)
    return insiders_known(design, knowledge, between)


def examine_sums(
    design: Design,
    summary: Summary,
    needed: Sequence[Pieces] | None = None,
    effort: Effort | None = None,
    engine: Engine | None = None,
    device: str | None = None,
) -> Examination:
    """The same for noise that is a random function, from sums over any number of rows (sums.py).

    What readers know of single records takes another pass over the rows. A promise about records alone rests on it;
    else it is made for the certificate only: what a design needs to know of them is among the sums.
    """
    readers = [Reader(prior) for prior in design.priors]
    knowledge = [KnowledgeFromSums(design, one, summary, place) for place, one in enumerate(readers)]

    @cache
    def records() -> RecordsFromSums:
        return RecordsFromSums.of(design, knowledge, engine or Here(device), device)

    check = _Check.of(design, knowledge, needed, effort, None if design.protects_function else records())
    if not design.protects_function:
        # readers who know f learn this of what is each record's own, and of all combinations
        check = replace(check, joint_ratio=max(1.0, records().most_of_own))
    if check.is_searched:
        # inputs are looked for around a sample of the rows; none of the others may be forgotten
        check = check.with_points(_worst_of_all_rows(design, check.ratios_at))

    def make(check: _Check) -> Certificate:
        check = replace(check, records=records())
        least, cost = compressed_optimality(
            design,
            summary,
            check.joint_ratio,
            records(),
            lambda: published_sums(design, summary, engine or Here(device), device),
        )
        spill = _spill(design, change_from_sums(knowledge[0]))
        on_compression = findings_on_compression(design, summary, cost, check.proved_share == 1.0)
        findings = (*on_compression, *findings_on_design(design, spill), *findings_on_records(design, records()))
        return check.certificate(least, spill, findings, cost)

    return check.examination(make)


@np.errstate(all="ignore")  # a ledger's numbers may come from anyone; nothing is proved with what overflows
def examine_together(
    design: Design,
    composition: Composition,
    promised: Index,
    also: Sequence[Array] = (),
    effort: Effort | None = None,
) -> Examination:
    """The same for all that several releases tell together: do they keep the promise of ``design``?

    The records of the ``promised`` measurements are sensitive. ``also`` are other sensitive inputs that the same joint
    promise was made for. Each release had as little noise as the earlier ones allowed, so nothing is said about how
    little there could be.
    """
    together = replace(
        design,
        prior=composition.prior,
        inputs=composition.inputs,
        noise=no_noise(len(composition)),  # all there is belongs to the error
        weights=None,
        structure="full",
        others=(),
        families=(),
        binding=(),
        witness=None,
        insiders=None,  # what they learn of several releases is not composed
        designed_for=(),
    )
    cost_of_check(together, records=len(promised)).require(None)
    reader, error, sensitive = Reader(composition.prior), composition.error, composition.records(promised)
    knowledge = ExactKnowledge(together, reader, error, records=sensitive)
    records = RecordsKnown.together(knowledge, composition, promised)
    check = _Check.of(together, [knowledge], effort=effort, records=records)
    if design.guarantee == "joint" and also:
        each = [replace(together, sensitive=one, promised=len(one)) for one in also]
        others = [ExactKnowledge(one, reader, error, records=sensitive).joint_ratio() for one in each]
        check = replace(check, joint_ratio=max(check.joint_ratio, *others))

    def make(check: _Check) -> Certificate:
        least = Optimality(composition.trace, 0.0, np.nan, explained=served_share(knowledge))
        findings = findings_on_records(together, records)
        suppressed = np.sum(as_array(knowledge.suppressed[0]) ** 2, axis=1)
        certificate = check.certificate(least, _spill(together, error.noise_variance() + suppressed), findings)
        levels, inputs = error.levels[error.measurements], composition.inputs
        held = replace(composition.prior, noise=levels if np.ptp(levels) > 0 else float(levels[0]))
        words = held.in_words(inputs.names, inputs.outputs)
        return replace(certificate, prior=words, suppressed=error.suppressed.shape[1])

    return check.examination(make)


def _is_finite(design: Design) -> bool:
    """Whether the promise is made at finitely many inputs, or by a formula that needs none."""
    finite = design.region.points is not None or design.tolerance.listed_at is not None
    return finite or design.cover in ("rows", "everywhere") or not design.protects_function


@dataclass(frozen=True, eq=False)
class _Check:
    """What readers of a design know at ``points``; ``ratios`` are the least of them to the floor.

    ``proofs`` say for each reader what is proved of the region; there are none where the promise is finite. They may
    have been ``insisted`` on.
    """

    design: Design
    knowledge: Sequence[Knowledge]
    joint_ratio: float
    points: Array
    ratios: Array
    proofs: tuple[Proof, ...] = ()
    insisted: bool = False
    records: RecordsKnown | RecordsFromSums | None = None
    insiders: InsidersKnown | None = None

    @classmethod
    def of(
        cls,
        design: Design,
        knowledge: Sequence[Knowledge],
        needed: Sequence[Pieces] | None = None,
        effort: Effort | None = None,
        records: RecordsKnown | RecordsFromSums | None = None,
        insiders: InsidersKnown | None = None,
    ) -> _Check:
        nothing = design.inputs.sample.values[:0]
        # readers of a family are promised each value by itself
        jointly = [one for one in knowledge if one.reader.is_promised_averages]
        joint = max((_joint_ratio(design, one) for one in jointly), default=0.0)
        insisted = effort is not None and effort.insist
        check = cls(
            design, knowledge, joint, nothing, np.zeros(0), insisted=insisted, records=records, insiders=insiders
        )
        if records is not None and not design.protects_function:
            return replace(check, points=records.places, ratios=records.ratios)
        if not check.is_finite:
            check = check._proved(needed, effort)
        if not check.is_finite and not check.is_searched:
            return check
        listed = design.tolerance.listed_at
        check = check.with_points(inputs_to_look_at(design) if listed is None else listed)
        if design.region.points is not None or listed is not None:
            return check
        return check.with_points(worse_inputs(design, check.points, check.ratios, check.ratios_at))

    def _proved(self, needed: Sequence[Pieces] | None, effort: Effort | None) -> _Check:
        """With what can be proved of the region, and what readers know at the worst inputs that were seen."""
        whole = pieces_of(self.design) if needed is None else None
        if needed is None and whole is None:
            return self
        pieces = [whole] * len(self.knowledge) if needed is None else needed
        # where noise is needed, little is left to spare
        levels = CLOSENESS if needed is None else CLOSENESS[1:]
        proofs = tuple(
            Prover(self.design, one, effort).prove(own, levels)
            for one, own in zip(self.knowledge, pieces, strict=True)
            if own is not None
        )
        if whole is not None:
            proofs = tuple(
                self._in_two_steps(one, whole, first, effort) for one, first in zip(self.knowledge, proofs, strict=True)
            )
        # where noise is needed, sensitive inputs are where readers come close to the floor
        places = np.vstack([self.design.sensitive, *(proof.worst(LOOKED_AT) for proof in proofs)])
        inside = places[self.design.region.contains(places)]
        return replace(self, proofs=proofs).with_points(np.unique(inside, axis=0) if len(inside) else places)

    def _in_two_steps(self, knowledge: Knowledge, whole: Pieces, first: Proof, effort: Effort | None) -> Proof:
        """The proof ``first``, or where it stopped just short another one, in the steps of a design.

        A design proves what it can without noise, and with noise the rest. Patches are then others, and so is how
        close to the floor they can be proved: what a design has proved is to be found proved again.
        """
        if not isinstance(knowledge, ExactKnowledge) or knowledge.error is not self.design.noise:
            return first
        if first.reasons != ("short",) or np.any(knowledge.floor_ratios(first.short) < 1.0):
            return first
        bare = ExactKnowledge(self.design, knowledge.reader, no_noise(knowledge.size), knowledge.device)
        rest = Prover(self.design, bare, effort).prove(whole).open
        second = Prover(self.design, knowledge, effort).prove(rest, CLOSENESS[1:])
        return first if len(second.open) else second

    def _with_worst_named(self) -> _Check:
        """With where a few walks end: a proof need not look where readers come closest to the floor."""
        if not self.proofs or self.reasons:
            return self
        return self.with_points(worse_inputs(self.design, self.points, self.ratios, self.ratios_at, few=True))

    @property
    def is_finite(self) -> bool:
        return _is_finite(self.design)

    @property
    def _insiders_are_searched(self) -> bool:
        """Whether something is promised to insiders that is only looked at: f between the sensitive inputs."""
        return self.insiders is not None and not self.is_finite

    @property
    def _some_are_searched(self) -> bool:
        """Whether something is promised to readers who are only tried."""
        return self._insiders_are_searched or not all(family.is_proved for family in self.design.families)

    @property
    def proved_share(self) -> float:
        """How much of the region is proved for all readers."""
        if not self.design.protects_function:
            return 1.0
        if self.is_finite:
            return 1.0 if self.design.tolerance.listed_at is None or self.design.region.points is not None else 0.0
        return max(0.0, 1.0 - sum(1.0 - proof.share for proof in self.proofs)) if self.proofs else 0.0

    def ratios_at(self, points: Array) -> Array:
        return np.asarray(np.min([one.floor_ratios(points) for one in self.knowledge], axis=0))

    def with_points(self, points: Array) -> _Check:
        if not len(points):
            return self
        ratios = np.concatenate([self.ratios, self.ratios_at(points)])
        return replace(self, points=np.vstack([self.points, points]), ratios=ratios)

    @cached_property
    def floor_ratio(self) -> float:
        return float(np.min(self.ratios))

    @property
    def is_searched(self) -> bool:
        """Whether a part of the region is neither proved nor seen to be close to the floor, or below it."""
        seen = bool(self.proofs) and self.reasons in ((), ("short",))
        return not (self.is_finite or seen or bool(np.any(self.ratios < 1 - TOLERANCE)))

    @cached_property
    def promised_ratio(self) -> float:
        """The least ratio where the floor is promised."""
        at_rows = self.design.cover == "rows" and self.design.region.points is None and self.design.protects_function
        return _least_at_rows(self.design, self.ratios_at) if at_rows else self.floor_ratio

    @cached_property
    def listed(self) -> bool:
        return _floor_is_listed(self.design)

    @property
    def promises_joint(self) -> bool:
        # nobody can look at every input there is: everywhere, the formula is the proof
        return self.design.guarantee == "joint" or self.design.cover == "everywhere"

    @property
    def holds(self) -> bool:
        joint_kept = not self.promises_joint or self.joint_ratio <= 1 + TOLERANCE
        records_kept = self.records is None or not self.records.ratio < 1 - TOLERANCE
        insiders_kept = self.insiders is None or self.insiders.ratio <= 1 + TOLERANCE
        kept = joint_kept and records_kept and insiders_kept
        return bool(kept and self.promised_ratio >= 1 - TOLERANCE and self.listed)

    def examination(self, make: Callable[[_Check], Certificate]) -> Examination:
        below = np.flatnonzero((self.ratios < 1 - TOLERANCE) & self.design.protects_function)
        seen = self.points[below]
        told = np.max([one.learnt(seen) for one in self.knowledge], axis=0) if below.size else np.zeros(0)
        return Examination(
            self.holds,
            self.joint_ratio,
            self.promises_joint,
            self.promised_ratio,
            np.vstack([seen, *(proof.short for proof in self.proofs)]),
            np.concatenate([told, *(proof.learnt for proof in self.proofs)]),
            max(self._most_learnt_of_function, self._most_learnt_of_records, self._most_learnt_by_insiders),
            tuple(proof.open for proof in self.proofs) or None,
            tuple(proof.close for proof in self.proofs) or None,
            not self.is_finite and self.reasons != ("short",) and self.proved_share < 1.0,
            self.insiders,
            lambda: make(self._with_worst_named()),
        )

    @cached_property
    def _most_learnt_of_function(self) -> float:
        if not self.design.protects_function:
            return 0.0
        return float(np.max([one.learnt(self.points) for one in self.knowledge], initial=0.0))

    @property
    def _most_learnt_of_records(self) -> float:
        """As a share of what may be, where a record falls short."""
        if self.records is None or not self.records.ratio < 1 - TOLERANCE:
            return 0.0
        return float(np.max(2.0 - self.records.ratios))

    @property
    def _most_learnt_by_insiders(self) -> float:
        return 0.0 if self.insiders is None else self.insiders.ratio

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """Why a part of the region is not proved."""
        return tuple(dict.fromkeys(reason for proof in self.proofs for reason in proof.reasons))

    def certificate(
        self, least: Optimality, spill: float, findings: Iterable[Finding], cost: float = 0.0
    ) -> Certificate:
        design, points, knowledge = self.design, self.points, self.knowledge
        worst = int(np.argmin(self.ratios))
        place = points[worst : worst + 1]
        records, of_records = self.records, not design.protects_function
        assert records is not None
        closest = min(knowledge, key=lambda one: float(one.floor_ratios(place)[0]))
        names, outputs, share = design.inputs.names, design.inputs.outputs, self.proved_share
        certificate = Certificate(
            promise=promise_in_words(design, points, records),
            prior="; or the ".join(one.in_words(names, outputs) for one in _believed(design)),
            guarantee=design.guarantee,
            structure=design.structure,
            cover=design.cover,
            holds=self.holds,
            evidence="proved" if self.holds and share == 1.0 and not self._some_are_searched else "searched",
            proved_share=share,
            joint_ratio=self.joint_ratio,
            floor_ratio=self.floor_ratio,
            promised_ratio=self.promised_ratio,
            worst_input=np.array(points[worst]),
            worst_std=float(records.deviations[worst] if of_records else closest.deviations(place)[0]),
            worst_floor=float(records.floors[worst] if of_records else closest.floors(place)[0]),
            trace=least.trace,
            trace_lower=least.lower,
            gap=least.gap,
            objective=design.objective,
            explained=least.explained,
            explained_upper=least.upper,
            suppressed=design.noise.suppressed_count,
            spill=spill,
            protects=design.protects,
            records=records.count,
            raw_records=records.raw,
            record_noise=records.least_noise,
            record_ratio=records.ratio,
            record_learnt=records.most_learnt,
            record_sensitivity=records.sensitivity,
            insider_ratio=self.insiders.ratio if self.insiders else np.nan,
            insider_group=self.insiders.worst_group if self.insiders else -1,
            compression=cost,
            sensitive=len(design.inputs) if design.cover == "everywhere" else int(design.sensitive.shape[0]),
            checked=len(points) + sum(proof.nodes for proof in self.proofs),
            allowance=max(one.allowance for one in knowledge),
            columns=names,
            outputs=outputs.names if outputs.numbered else (),
            findings=(),
            encoding=design.inputs.encoding,
        )
        return certificate.with_findings(
            *([] if self.listed else [_FLOOR_NOT_LISTED]),
            *([] if certificate.holds else [finding_on_promise(self.promised_ratio, self.joint_ratio)]),
            *findings_on_evidence(design, certificate.holds, share, self.reasons, self.insisted),
            *findings_on_families(design),
            *findings_on_gap(design, least.gap),
            *(findings_on_insiders(design, self.insiders, self._insiders_are_searched) if self.insiders else ()),
            *(
                findings_on_check(design, knowledge, points, points[worst], self.floor_ratio, self.joint_ratio)
                if design.protects_function
                else ()
            ),
            *findings,
        )


def _believed(design: Design) -> list[Prior | PriorFamily]:
    """What readers may believe, each once: a family says what the prior in it is."""
    first = [] if any(family.prior is design.prior for family in design.families) else [design.prior]
    return [*first, *design.families, *design.others]


def _joint_ratio(design: Design, reader: Knowledge) -> float:
    """The joint ratio over all inputs for which the joint promise was made; infinite where these are not all listed."""
    if design.guarantee == "joint" and not design.lists_all_it_promised:
        return float("inf")
    # of compressed rows there are too many to promise more about than the sensitive inputs, which the words name
    of_rows = design.cover == "rows" and design.protects_function
    if design.guarantee == "joint" and of_rows and not design.noise.compressed:
        rows = design.rows_inside() if design.region.points is None else design.region.points
        if len(rows) and reader.undetermined(np.unique(rows, axis=0)) > MOST_UNDETERMINED:
            return float("inf")
    return reader.joint_ratio()


def _rows_of_region(design: Design, moved: bool) -> Iterator[Array]:
    """The rows of the data inside the region, some at a time; ``moved``: all of them, each moved into it."""
    for part in design.inputs.parts():
        rows = part.inputs()
        rows = np.asarray(design.region.project(rows, design.representatives) if moved else rows)
        rows = design.region.promised_at_rows(rows)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            yield rows[start : start + ROWS_AT_ONCE]


def _worst_of_all_rows(design: Design, ratios_at: Callable[[Array], Array]) -> Array:
    """Of all rows, moved into the region if it leaves columns to the data, the inputs that come closest to a floor."""
    kept, worst = design.inputs.sample.values[:0], np.zeros(0)
    for rows in _rows_of_region(design, moved=bool(np.any(design.free_columns))):
        ratios = np.concatenate([worst, ratios_at(rows)])
        least = np.argsort(ratios, kind="stable")[:MOST_MISSED]
        kept, worst = np.vstack([kept, rows])[least], ratios[least]
    return kept


def _least_at_rows(design: Design, ratios_at: Callable[[Array], Array]) -> float:
    """The least ratio at the rows of the data inside the region; 0 where there is none."""
    least = [float(np.min(ratios_at(rows))) for rows in _rows_of_region(design, moved=False)]
    return min(least, default=0.0)


def _spill(design: Design, variance: Array) -> float:
    """The share of the change, of this ``variance`` at each representative row, that falls outside the region."""
    if design.inputs.outputs.numbered:  # in different units
        if design.weights is not None and design.weights.ndim == 1:
            variance = variance * design.weights
        elif design.serves is not None:
            variance = variance / design.prior.variance(design.representatives)
    total = float(np.sum(variance))
    inside = design.region.contains_for_any_output(design.representatives.values)
    return float(np.sum(variance[~inside])) / total if total > 0 else 0.0


_FLOOR_NOT_LISTED = Finding(
    "floor-not-listed",
    "high",
    "The file gives the floor at some inputs of the region only, so the promise cannot be checked.",
    "Ask its owner for a file that release.save wrote.",
)


def _floor_is_listed(design: Design) -> bool:
    """Whether a floor that came as a table is listed all over the region: the promise is made where it is listed.

    It must be listed at every point of a finite region, at every row of the data inside the region, and, in the columns
    that vary, near every input: as densely as ``LISTED`` inputs lie that are spread evenly.
    """
    region, rows, table = design.region, design.representatives, design.tolerance.listed_at
    if table is None:
        return True
    if region.points is not None:
        return _lies_near(region.points, table, SAME_INPUT)
    inside = rows.values[region.contains(rows.values)]
    columns = np.flatnonzero(region.varying_columns(rows.dimension))
    if not columns.size:
        return _lies_near(inside, table, SAME_INPUT)
    anywhere = region.probes(LISTED, rows, batch=1)[:, columns]
    spacing = 2.0 * LISTED ** (-1.0 / columns.size)
    return _lies_near(inside, table, SAME_INPUT) and _lies_near(anywhere, table[:, columns], spacing)


def _lies_near(points: Array, table: Array, share: float) -> bool:
    """Whether each of ``points`` is no more than this share of their extent from one of ``table``, in any column."""
    if not len(points):
        return True
    scale = np.maximum(np.ptp(np.vstack([points, table]), axis=0), np.finfo(float).tiny)
    distance, _ = scipy.spatial.cKDTree(table / scale).query(points / scale, p=np.inf)
    return bool(np.max(distance) <= share)
