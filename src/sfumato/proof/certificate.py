"""The certificate: proof from the published objects alone that a promise is kept.

Nothing here knows how Σ was found. What decides is one formula: a reader's standard deviation, from ``M = A + Σ``
(knowledge.py, or sums.py for many rows), with round-off counted against the promise (roundoff.py). Shared with designs
are the covariances themselves (the readers of ``promise``, features and sums), dense linear algebra (``linalg``), the
matrix that a promise about every input needs (``programs.needed_everywhere``), and the ways to look for bad inputs
(probing.py), at other inputs than a design has seen. Lower bounds on the noise (optimality.py) do not bear on whether
the promise is kept. A test lists all of it (tests/proof/test_certificate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from ..arrays import Array
from ..data import ONE_OUTPUT, Done, Engine, Here, Outputs
from ..noise import no_noise
from ..promise import (
    ALARMING,
    SEVERITIES,
    Composition,
    Design,
    Finding,
    Reader,
    Verdict,
    in_order,
    verdict,
)
from ..text import plain
from .findings import (
    finding_on_promise,
    findings_on_check,
    findings_on_compression,
    findings_on_design,
    promise_in_words,
)
from .knowledge import ExactKnowledge, Knowledge, KnowledgeFromSums
from .optimality import Optimality, compressed_optimality, optimality
from .probing import places_between_rows, starts, walk
from .roundoff import TOLERANCE
from .sums import Summary, summary_of

#: The check probes this batch of the region's inputs; designs probe other batches.
FRESH_BATCH = 1

#: A floor that came as a table must be listed as densely as this many inputs lie that are spread evenly; inputs that
#: differ by no more than this share of their extent are the same.
LISTED, SAME_INPUT = 1000, 1e-6

#: How many inputs of the region are probed: of one column so many for each output; else at least, at most, and as many
#: as ``PROBES_TIMES_ROWS`` over the number of rows, so that a check takes about as long for any number of rows.
PROBES_IN_ONE_COLUMN, PROBES, PROBES_TIMES_ROWS = 4001, (2048, 8192), 2_500_000

#: From how many rows places between rows are looked for, and how many walks look for worse ones: at least and at most,
#: and as many as ``WALKS`` over the number of rows; the fewest where what is found is only reported.
MOST_STARTS, FEW_STARTS = 1024, 128
WALKERS, WALKS = (8, 256), 100_000

#: How many steps a walk takes; fewer where what is found is only reported.
LONG, SHORT = 40, 12

#: How many rows are looked at together, and how many of the worst of them all are kept.
ROWS_AT_ONCE, MOST_MISSED = 1 << 14, 64

_STRUCTURES = {"full": "correlated noise", "diagonal": "independent noise on every row"}


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was promised, and by how much it is kept.

    Guarantee: when ``holds`` is true, a reader who knows the inputs, the prior (any of the priors), V, Σ and every
    published value keeps a standard deviation of at least the floor at each input for which the promise was made. With
    the joint guarantee ``K_SX M⁻¹ K_XS ⪯ Δ`` holds at the sensitive inputs as well. Each is kept to within 1e-9, with
    round-off counted against it.

    ================== ===================================================================================
    ``promise``        what is promised, in words, and ``prior``: to readers with which prior or priors
    ``guarantee``      "joint" or "pointwise", and ``structure``: "full" or "diagonal" noise
    ``holds``          the promise is kept where it was made
    ``joint_ratio``    λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), at most 1, except that
                       ``guarantee="pointwise"`` does not promise it
    ``floor_ratio``    the least std(f(s)|W) / floor(s) over the whole region: at least 1, except that
                       ``cover="rows"`` does not promise it between the rows
    ``promised_ratio`` the same over the inputs for which it was promised
    ``worst_input``    where ``floor_ratio`` is reached, with ``worst_std`` and ``worst_floor``
    ``trace``          the noise: Tr Σ
    ``trace_lower``    a lower bound for any noise (of this structure) that keeps the promise at the sensitive inputs
    ``gap``            how far at most what was minimised (Tr Σ, or Tr CΣ) is from its least value, as a share
    ``spill``          the share of the noise that falls on rows outside the region
    ``compression``    how much of the noise compression costs at most, as a share (0: not compressed)
    ``sensitive``      how many sensitive inputs the noise was designed for
    ``checked``        at how many inputs the floor was checked
    ``allowance``      the round-off that was subtracted from M
    ``outputs``        the names of the outputs, where several are one process; the last column of an input is their
                       number
    ``findings``       what else a person should know (``sf.Finding``), the worst first; ``verdict`` follows from them
    ================== ===================================================================================
    """

    promise: str
    prior: str
    guarantee: str
    structure: str
    cover: str
    holds: bool
    joint_ratio: float
    floor_ratio: float
    promised_ratio: float
    worst_input: Array
    worst_std: float
    worst_floor: float
    trace: float
    trace_lower: float
    gap: float
    spill: float
    compression: float
    sensitive: int
    checked: int
    allowance: float
    columns: tuple[str, ...]
    outputs: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        """ "publish", "publish with care" or "do not publish"."""
        return verdict(self.holds, self.findings)

    def with_findings(self, *more: Finding) -> Certificate:
        """The same certificate with more findings."""
        return replace(self, findings=in_order((*self.findings, *more)))

    @property
    def worst_place(self) -> str:
        """The worst input in words."""
        outputs = Outputs.several(self.outputs) if self.outputs else ONE_OUTPUT
        return outputs.place_in_words(self.columns, self.worst_input)

    def rows(self) -> list[tuple[str, str]]:
        """The certificate as label and value, for tables."""
        floor = f"{self.floor_ratio:.9g} (at least 1)"
        if self.floor_ratio < 1 - TOLERANCE:
            floor = f"{self.floor_ratio:.9g}  BELOW 1" + (", not promised there" if self.holds else "")
        joint = f"{self.joint_ratio:.9g} (at most 1)"
        if self.guarantee == "pointwise":
            joint = f"{self.joint_ratio:.6g}, not promised"
        return [
            ("promise", self.promise),
            ("to readers with the", self.prior),
            ("holds", "yes" if self.holds else "NO"),
            ("guarantee, noise", f"{self.guarantee}, {_STRUCTURES.get(self.structure, self.structure)}"),
            ("joint ratio", joint),
            ("floor ratio over the region", floor),
            ("worst input", self.worst_place),
            ("reader's std there", f"{self.worst_std:.6g}, floor {self.worst_floor:.6g}"),
            ("trace of the noise", f"{self.trace:.6g}"),
            ("lower bound, gap", f"{self.trace_lower:.6g}, " + ("–" if np.isnan(self.gap) else f"{self.gap:.2e}")),
            ("spill outside the region", f"{self.spill:.1%}"),
            ("cover", f"{self.cover}, {self.sensitive} sensitive inputs"),
            ("inputs checked", f"{self.checked:,}"),
            *self._findings_as_rows(),
        ]

    def _findings_as_rows(self) -> list[tuple[str, str]]:
        """What is alarming, with its remedy, and what is good to know; questions to the owner are only counted."""
        told = [one for one in self.findings if one.severity != "low"]
        rows = [(SEVERITIES[one.severity][0], str(one) if one.severity in ALARMING else one.text) for one in told]
        if questions := len(self.findings) - len(told):
            rows.append((SEVERITIES["low"][0], f"{questions} questions before you publish; the report lists them"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """All fields in plain Python types; what is not finite becomes None, as JSON has it."""
        found: dict[str, Any] = plain({**asdict(self), "verdict": self.verdict})
        return found

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)


def certify(
    design: Design, engine: Engine | None = None, device: str | None = None, done: Done | None = None
) -> Certificate:
    """Check the promise of ``design`` from its published objects alone."""
    if design.noise.compressed:
        return examine_sums(design, summary_of(design, engine or Here(), device, done or (lambda rows: None)))[0]
    return examine(design, device)[0]


def examine(design: Design, device: str | None = None) -> tuple[Certificate, Array]:
    """The certificate, and the inputs that were found below their floor."""
    knowledge = [ExactKnowledge(design, Reader(prior), design.noise, device) for prior in design.priors]
    check, spill = _Check.of(design, knowledge), _spill(design, design.noise.variance())
    return check.certificate(optimality(design, knowledge), spill, findings_on_design(design, spill))


def examine_sums(design: Design, summary: Summary) -> tuple[Certificate, Array]:
    """The same for noise that is a random function, from sums over any number of rows (sums.py)."""
    readers = [Reader(prior) for prior in design.priors]
    check = _Check.of(design, [KnowledgeFromSums(design, one, summary, place) for place, one in enumerate(readers)])
    if check.may_look_elsewhere:
        # inputs are looked for around a sample of the rows; none of the others may be forgotten
        check = check.with_points(_worst_of_all_rows(design, check.ratios_at))
    least, cost = compressed_optimality(design, summary, check.joint_ratio)
    spill = _spill(design, design.noise.variance_at(design.representatives.values))
    findings = (*findings_on_compression(design, summary, cost), *findings_on_design(design, spill))
    return check.certificate(least, spill, findings, cost)


def examine_together(design: Design, composition: Composition, also: Sequence[Array] = ()) -> tuple[Certificate, Array]:
    """The same for all that several releases tell together: do they keep the promise of ``design``?

    ``also`` are other sensitive inputs that the same joint promise was made for. Each release had as little noise as
    the earlier ones allowed, so nothing is said about how little there could be.
    """
    together = replace(
        design,
        prior=composition.prior,
        inputs=composition.inputs,
        noise=no_noise(len(composition)),  # all there is belongs to the error
        weights=None,
        structure="full",
        others=(),
        witness=None,
    )
    reader, error = Reader(composition.prior), composition.error
    check = _Check.of(together, [ExactKnowledge(together, reader, error)])
    if design.guarantee == "joint":
        others = [ExactKnowledge(replace(together, sensitive=one), reader, error).joint_ratio() for one in also]
        check = replace(check, joint_ratio=max(check.joint_ratio, *others, 0.0))
    return check.certificate(Optimality(composition.trace, 0.0, np.nan), _spill(together, error.noise_variance()), ())


@dataclass(frozen=True, eq=False)
class _Check:
    """What readers of a design know at ``points``; ``ratios`` are the least of them to the floor."""

    design: Design
    knowledge: Sequence[Knowledge]
    joint_ratio: float
    points: Array
    ratios: Array

    @classmethod
    def of(cls, design: Design, knowledge: Sequence[Knowledge]) -> _Check:
        points = check_inputs(design)
        check = cls(design, knowledge, max(one.joint_ratio() for one in knowledge), points[:0], np.zeros(0))
        check = check.with_points(points)
        if not check.may_look_elsewhere:
            return check
        return check.with_points(_walk_downhill(design, check.points, check.ratios, check.ratios_at))

    @property
    def may_look_elsewhere(self) -> bool:
        """Whether there are inputs besides those of a finite region, or of the table of a floor."""
        return self.design.region.points is None and self.design.tolerance.listed_at is None

    def ratios_at(self, points: Array) -> Array:
        return np.asarray(np.min([one.floor_ratios(points) for one in self.knowledge], axis=0))

    def with_points(self, points: Array) -> _Check:
        if not len(points):
            return self
        ratios = np.concatenate([self.ratios, self.ratios_at(points)])
        return replace(self, points=np.vstack([self.points, points]), ratios=ratios)

    def certificate(
        self, least: Optimality, spill: float, findings: Iterable[Finding], cost: float = 0.0
    ) -> tuple[Certificate, Array]:
        design, points, knowledge = self.design, self.points, self.knowledge
        worst = int(np.argmin(self.ratios))
        floor_ratio = promised_ratio = float(self.ratios[worst])
        if design.cover == "rows":
            promised_ratio = _least_at_rows(design, self.ratios_at)
        # nobody can look at every input there is: everywhere, the formula is the proof
        needs_joint = design.guarantee == "joint" or design.cover == "everywhere"
        joint_kept = not needs_joint or self.joint_ratio <= 1 + TOLERANCE
        listed = _floor_is_listed(design)
        place = points[worst : worst + 1]
        closest = min(knowledge, key=lambda one: float(one.floor_ratios(place)[0]))
        names, outputs = design.inputs.names, design.inputs.outputs
        certificate = Certificate(
            promise=promise_in_words(design, points),
            prior="; or the ".join(prior.in_words(names, outputs) for prior in design.priors),
            guarantee=design.guarantee,
            structure=design.structure,
            cover=design.cover,
            holds=bool(joint_kept and promised_ratio >= 1 - TOLERANCE and listed),
            joint_ratio=self.joint_ratio,
            floor_ratio=floor_ratio,
            promised_ratio=promised_ratio,
            worst_input=np.array(points[worst]),
            worst_std=float(closest.deviations(place)[0]),
            worst_floor=float(closest.floors(place)[0]),
            trace=least.trace,
            trace_lower=least.lower,
            gap=least.gap,
            spill=spill,
            compression=cost,
            sensitive=len(design.inputs) if design.cover == "everywhere" else int(design.sensitive.shape[0]),
            checked=len(points),
            allowance=max(one.allowance for one in knowledge),
            columns=names,
            outputs=outputs.names if outputs.numbered else (),
            findings=(),
        )
        certificate = certificate.with_findings(
            *([] if listed else [_FLOOR_NOT_LISTED]),
            *([] if certificate.holds else [finding_on_promise(promised_ratio, self.joint_ratio)]),
            *findings_on_check(design, knowledge, points, points[worst], floor_ratio, self.joint_ratio),
            *findings,
        )
        return certificate, np.asarray(points[self.ratios < 1 - TOLERANCE])


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


def check_inputs(design: Design) -> Array:
    """The inputs at which the floor is checked before the search for the worst one."""
    listed = design.tolerance.listed_at
    return _dense_inputs(design) if listed is None else listed


def _dense_inputs(design: Design) -> Array:
    """The points of a finite region; else a dense set of the region, the inputs of it next to the rows, and between."""
    if design.region.points is not None:
        return design.region.points
    rows = design.representatives
    count = int(np.clip(PROBES_TIMES_ROWS // len(rows), *PROBES))
    if rows.features == 1:
        count = PROBES_IN_ONE_COLUMN * len(rows.outputs)
    dense = design.region.probes(count, rows, batch=FRESH_BATCH)
    if design.inputs.features == 1:
        return np.vstack([dense, design.rows_in_reach()])
    most = MOST_STARTS if _promises_region(design) else FEW_STARTS
    if design.noise.compressed:
        most = FEW_STARTS
    between = [places_between_rows(prior, rows, design.region, most) for prior in design.priors]
    return np.vstack([dense, design.rows_in_reach(), *between])


def _promises_region(design: Design) -> bool:
    return design.region.points is None and design.cover != "rows"


def _walk_downhill(design: Design, points: Array, ratios: Array, ratios_at: Callable[[Array], Array]) -> Array:
    """Walk from the worst inputs to worse ones inside the region; the places where the walks end."""
    moving = np.flatnonzero(design.region.varying_columns(design.inputs.dimension))
    if moving.size == 0 or not np.any(np.ptp(points[:, moving], axis=0) > 0):
        return points[:0]
    promised = _promises_region(design)
    many = int(np.clip(WALKS // len(design.representatives), *WALKERS)) if promised else WALKERS[0]
    low = np.flatnonzero(ratios <= max(1.1, 1.1 * float(np.min(ratios))))
    here = points[low[starts(design.prior, points[low], -ratios[low], many)]]
    return walk(
        lambda places: -ratios_at(places),
        design.prior,
        design.representatives,
        design.region,
        here,
        LONG if promised else SHORT,
    )


def _spill(design: Design, variance: Array) -> float:
    """The share of the noise, of this ``variance`` at each representative row, that falls outside the region."""
    if design.inputs.outputs.numbered and design.weights is not None and design.weights.ndim == 1:
        variance = variance * design.weights  # outputs in different units
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
    anywhere = region.probes(LISTED, rows, batch=FRESH_BATCH)[:, columns]
    spacing = 2.0 * LISTED ** (-1.0 / columns.size)
    return _lies_near(inside, table, SAME_INPUT) and _lies_near(anywhere, table[:, columns], spacing)


def _lies_near(points: Array, table: Array, share: float) -> bool:
    """Whether each of ``points`` is no more than this share of their extent from one of ``table``, in any column."""
    if not len(points):
        return True
    scale = np.maximum(np.ptp(np.vstack([points, table]), axis=0), np.finfo(float).tiny)
    distance, _ = cKDTree(table / scale).query(points / scale, p=np.inf)
    return bool(np.max(distance) <= share)
