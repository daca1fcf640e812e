"""What is attacked (a release, the owner's truth, the sensitive values), who attacks, and what an attack achieves.

An attack turns a ``Target`` into an ``Estimate`` of f at the sensitive inputs, or of records there. ``judge`` compares
that with the truth, with what the adversary claims, and with the promise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..arrays import Array, Index, Mask, evenly
from ..data import among, as_inputs, stacked_outputs, without_labels
from ..errors import InputError
from ..linalg import Whitening
from ..models import GaussianProcess, Posterior, Prior
from ..promise import Design, Reader, RowsHeld
from ..release import Release, steps_of

#: Knowledge is judged at this many inputs of the region at most.
MOST_INPUTS = 200

#: Attackers work with n × n matrices; beyond this many rows they would take hours.
MOST_ROWS = 4000

#: Batches 0 and 1 of a region's probes are those of designs and certificates: an audit looks elsewhere.
_BATCH = 2


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an attacker holds: ``values = f(inputs) + noise``, where the noise has the covariance ``blur``.

    A release is such evidence (blur V + Σ), and so are values known from elsewhere: everything that an attacker could
    know about f in this library has this form, so one formula judges them all. ``records`` says of which row of the
    data each value shows the record y_i, whose error is then a part of the noise (−1: of none, it shows f).
    """

    inputs: Array
    values: Array
    blur: Array
    records: Index

    def seen_by(self, prior: GaussianProcess) -> Posterior:
        """What someone who holds ``prior`` concludes from it."""
        with warnings.catch_warnings():
            # exact side information is often redundant: singular directions are nothing to worry about here
            warnings.simplefilter("ignore", RuntimeWarning)
            return prior.condition(self.inputs, self.values, self.blur)

    def and_also(self, more: Evidence, shared: Array) -> Evidence:
        """This evidence and more; ``shared`` is the covariance of the noise here with the noise there."""
        return Evidence(
            np.vstack([self.inputs, more.inputs]),
            np.concatenate([self.values, more.values]),
            np.block([[self.blur, shared], [shared.T, more.blur]]),
            np.concatenate([self.records, more.records]),
        )

    def about(self, target: Target, prior: Prior) -> tuple[Array, Array]:
        """The means and the variances of what ``target`` judges, for someone who holds ``prior``."""
        if target.records is None:
            seen = self.seen_by(prior)
            return seen.mean_at(target.inputs), seen.variance(target.inputs)
        own = prior.noise_variance(len(target.rows))[target.records]
        cross = prior.covariance(self.inputs, target.inputs) + own * (self.records[:, None] == target.records)
        whiten = Whitening.of(prior.covariance(self.inputs) + self.blur).apply
        white = whiten(cross)
        mean = prior.mean_at(target.inputs) + white.T @ whiten(self.values - prior.mean_at(self.inputs))
        variance = prior.variance(target.inputs) + own - np.sum(white**2, axis=0)
        return mean, np.maximum(variance, 0.0)


@dataclass(frozen=True, eq=False)
class Target:
    """A release, the owner's values ``y`` at its rows, and the sensitive inputs S (``inputs``) where it is judged.

    What is judged is f(S) or, with ``records``, the y of these rows, whose inputs S then are. ``prior`` is the one
    under which expected errors are computed: that of the design, or another one for which the promise was made.
    ``held`` are rows whose y the adversary has anyway: what they may learn is measured by what these leave unknown.
    Only the owner can make a target: it holds the secret.
    """

    release: Release
    y: Array
    inputs: Array
    prior: Prior
    records: Index | None = None
    held: Index = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @property
    def design(self) -> Design:
        return self.release.design

    @cached_property
    def rows(self) -> Array:
        """X, the inputs of the data."""
        return np.asarray(self.design.inputs.values)

    @cached_property
    def published(self) -> Array:
        """W."""
        return np.asarray(self.release.outputs, dtype=np.float64)

    @cached_property
    def noise(self) -> Array:
        """Σ."""
        return self.design.noise.covariance()

    @property
    def own_noise(self) -> Array:
        """The diagonal of V."""
        return self.prior.noise_variance(len(self.rows))

    @property
    def steps(self) -> Array:
        """What each row of W is a multiple of."""
        return steps_of(self.release.resolution, self.design)

    @property
    def rounding(self) -> Array:
        """The variances of the rounding errors: counted in what readers claim, never in what is promised."""
        return self.steps**2 / 12

    @cached_property
    def evidence(self) -> Evidence:
        """The release: W at X with the noise V + Σ."""
        return self.released(self.published, self.noise + np.diag(self.own_noise))

    def released(self, values: Array, blur: Array) -> Evidence:
        """``values`` at all rows of the data, blurred like this."""
        return Evidence(self.rows, values, blur, np.arange(len(self.rows)))

    def evidence_with(self, rows: Mask | Index, values: Array) -> Evidence:
        """The release, and ``values`` of y at some of its ``rows``: they share the measurement errors of W there."""
        errors, places = np.diag(self.own_noise), np.arange(len(self.rows))[rows]
        more = Evidence(self.rows[places], values, errors[np.ix_(places, places)], places)
        return self.evidence.and_also(more, errors[:, places])

    @property
    def promised(self) -> bool:
        """Whether the release promises anything about the values that are judged."""
        if self.records is None:
            return self.design.protects_function
        return bool(np.all(np.isin(self.records, self.design.records)))

    @cached_property
    def floor(self) -> Array:
        """The standard deviation that was promised of each sensitive value; of records without a promise, their own."""
        if self.records is not None and not self.promised:
            return np.asarray(np.sqrt(self.own_noise[self.records]))
        reader = Reader(self.prior, RowsHeld(self.prior, self.design.inputs, self.held)) if len(self.held) else None
        if self.records is None:
            return self.design.tolerance.floor(self.prior if reader is None else reader.function, self.inputs)
        values = (reader or Reader(self.prior)).values(self.design.inputs, self.records)
        return self.design.tolerance.floor(values, self.inputs)

    @cached_property
    def before(self) -> Array:
        """The standard deviation of each sensitive value for whoever has the rows ``held``, and no release."""
        if not len(self.held):
            own = 0.0 if self.records is None else self.own_noise[self.records]
            return np.asarray(np.sqrt(self.prior.variance(self.inputs) + own))
        known = Evidence(self.rows[self.held], self.y[self.held], np.diag(self.own_noise[self.held]), self.held)
        return np.asarray(np.sqrt(known.about(self, self.prior)[1]))

    @cached_property
    def owner(self) -> Posterior:
        """What the owner knows about f: everything that y tells."""
        return self.released(self.y, np.diag(self.own_noise)).seen_by(self.prior)

    @cached_property
    def truth(self) -> Array:
        """The records; or the owner's best knowledge of f(S): y itself at rows where it has no measurement errors."""
        return self.owner.mean_at(self.inputs) if self.records is None else self.y[self.records]

    @cached_property
    def rows_inside(self) -> Mask:
        return self.design.region.contains(self.rows)

    def error(self, mean: Array) -> float:
        """How far an estimate of the sensitive values is from the truth, root mean square."""
        return root_mean_square(mean - self.truth)

    @cached_property
    def bayes_error(self) -> float:
        """How far the reader who has the right prior is from the truth."""
        return self.error(self.evidence.about(self, self.prior)[0])

    def held_by(self, rows: Index) -> Target:
        """The same target for whoever holds these rows, judged only at sensitive values that are none of them."""
        others = ~among(self.inputs, self.rows[rows]) if self.records is None else ~np.isin(self.records, rows)
        if not np.any(others):
            raise NotTriedError("all sensitive values are rows that this reader holds")
        records = None if self.records is None else self.records[others]
        return replace(self, inputs=self.inputs[others], records=records, held=rows)

    def of_records(self) -> Target | None:
        """The same target about the records inside the region that have a part of their own; None without any."""
        records = np.flatnonzero(self.rows_inside & (self.own_noise > 0))
        return replace(self, inputs=self.rows[records], records=records) if len(records) else None


def target_for(release: Release, y: Any, sensitive: Any = None) -> Target:
    """Check what is given and choose where to judge: ``sensitive``, or a spread of the inputs of the region."""
    if not isinstance(release, Release):
        raise InputError(f"release is {str(release)[:60]!r}; give a sf.Release, for example sf.load('orbit.sfumato').")
    design = release.design
    if len(design.inputs) > MOST_ROWS:
        raise InputError(
            f"release has {len(design.inputs)} rows; attacks need matrices of that size and work up to {MOST_ROWS} "
            "rows. Protect some of the rows in the same way and audit that release."
        )
    values = stacked_outputs(design.inputs, without_labels(y, "y"))
    if not design.protects_function:
        if sensitive is not None:
            raise InputError("sensitive is given, but the release promises records, not f; leave it out.")
        records = design.records
        return Target(release, values, design.inputs.values[records], release.prior, records)
    if sensitive is None:
        chosen = judged_inputs(design)
    else:
        chosen = as_inputs(sensitive, "sensitive", like=design.inputs).values
        outside = ~design.region.contains(chosen)
        if np.any(outside):
            raise InputError(
                f"sensitive has {int(outside.sum())} input(s) outside the region "
                f"({design.region.in_words(release.columns)}), the first {chosen[outside][0].tolist()}; nothing is "
                "promised there. Give inputs of the region, or leave it out."
            )
    target = Target(release, values, chosen, release.prior)
    if not np.any(target.floor > 0):
        raise InputError(
            "release promises no floor at the sensitive inputs (its tolerance is as large as the prior's variance), so "
            "there is nothing to judge by; protect with alpha= or floor=."
        )
    return target


def judged_inputs(design: Design) -> Array:
    """Inputs for which the floor was promised: the points of the region, or rows and places between them."""
    if design.region.points is not None:
        return _some(np.asarray(design.region.points), MOST_INPUTS)
    if design.cover == "rows":
        return _some(np.unique(design.rows_inside() + 0.0, axis=0), MOST_INPUTS)
    if design.tolerance.listed_at is not None:
        return between_rows(design)
    rows = _some(design.rows_in_reach(), MOST_INPUTS // 2)
    return np.unique(np.vstack([rows, between_rows(design)]) + 0.0, axis=0)


def between_rows(design: Design) -> Array:
    """Inputs of the region that need not be rows."""
    # a floor that varies is known from a file only where it was written down
    places = design.tolerance.listed_at
    if places is None:
        places = design.region.probes(MOST_INPUTS // 2, design.representatives, batch=_BATCH)
    return _some(places[design.region.contains(places)], MOST_INPUTS // 2)


def root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _some(points: Array, most: int) -> Array:
    """At most ``most`` of the points, spread evenly."""
    return points[evenly(len(points), most)]


Severity = Literal["none", "low", "medium", "high", "critical"]

#: Below this share of the floor it is critical what a reader knows, and high, where severity follows from the share.
CRITICAL_BELOW, HIGH_BELOW = 0.1, 0.5

#: A floor below this share of the largest is none: whoever holds rows may know f there anyway.
KNOWN = 1e-6

#: Round-off that a ratio of standard deviations may have.
SLACK = 1e-6

#: A reader with a prior of its own is closer than promised below this share of the floor and of the Bayes error.
CLOSER = 0.8


@dataclass(frozen=True, eq=False)
class Estimate:
    """An adversary's estimate of what ``target`` judges, with the error bars that it believes in.

    ``evidence`` is all that the estimate was computed from, as the owner knows it to be. ``did`` says what
    was done.
    """

    target: Target
    mean: Array
    std: Array
    evidence: Evidence
    did: str

    @classmethod
    def of(cls, target: Target, seen: Posterior, did: str) -> Estimate:
        """What the posterior ``seen`` of f says, which was made of the release alone."""
        if target.records is not None:
            raise NotTriedError("it fits a function, and only records are promised")
        std = np.sqrt(seen.variance(target.inputs))
        return cls(target, seen.mean_at(target.inputs), std, target.evidence, did)

    @classmethod
    def by(cls, target: Target, held: Evidence, prior: Prior, did: str, known: Evidence | None = None) -> Estimate:
        """What someone with ``prior`` concludes from ``held``; as the owner knows it that is ``known`` (``held``)."""
        mean, variance = held.about(target, prior)
        return cls(target, mean, np.sqrt(variance), held if known is None else known, did)


class NotTriedError(Exception):
    """This attack cannot be tried on this release; the text says why."""


@dataclass(frozen=True, eq=False)
class Adversary:
    """Who attacks, and what it means when they get below the floor.

    ``attack`` makes the estimate, or raises ``NotTriedError``. ``severity`` is how bad it is when they get there
    (None: that follows from how far below), ``remedy`` what to do then, in words. ``covered``: whether the promise is
    about this adversary. An ``own_prior`` may be nearer to the truth than the owner's: errors expected under the
    owner's prior then say little, and the error on these data has to be looked at.
    """

    name: str
    attack: Callable[[], Estimate]
    severity: Severity | None
    remedy: str
    covered: bool = False
    own_prior: bool = False


@dataclass(frozen=True)
class Skipped:
    """An attack that could not be tried, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Outcome:
    """What one attack achieved at the sensitive inputs S, or against records; root means of squares, in units of y.

    Guarantee: an estimate f̂(s) that is any function of evidence E, linear or not, has under the owner's prior

        E[(f̂(s) − f(s))² | E] = Var(f(s) | E) + (f̂(s) − E[f(s) | E])² ≥ Var(f(s) | E).

    ``actual`` is the root of the left side, exactly, for the values that were published. Where the evidence is the
    release alone, Var(f(s)|E) is the posterior variance that the certificate bounds; so while the certificate holds,
    ``ratio ≥ 1`` for every attack on the release alone, however it was computed.

    ============ =====================================================================================
    ``rmse``     the distance from the owner's best knowledge of f(S), on these data
    ``claimed``  the standard deviation that the attacker believes in
    ``actual``   the error to be expected under the owner's prior, given the evidence
    ``before``   the standard deviation that it had without the release
    ``floor``    what was promised; of records about which nothing is promised, their own standard deviation √V
    ``about``    "f" or "records"
    ``ratio``    the least actual(s) / floor(s) over S: below 1, some f(s) is known better than promised
    ``covered``  whether the promise is about this adversary
    ``beaten``   ratio < 1: it knows some f(s) better than promised
    ``closer``   it has a prior of its own, and its rmse is below 0.8 of the floor and of the Bayes reader's: on these
                 data its prior is the better one
    ``severity`` "none" covered and kept; "low" not covered, but not below the floor here; "medium" to "critical"
                 beaten or closer, after who it is; beaten though covered is always "critical"
    ============ =====================================================================================
    """

    name: str
    rmse: float
    claimed: float
    actual: float
    floor: float
    ratio: float
    covered: bool
    beaten: bool
    closer: bool
    severity: Severity
    words: str
    before: float = float("nan")
    about: Literal["f", "records"] = "f"

    @property
    def below(self) -> bool:
        """It got below the floor, by what it knows or by what turned out."""
        return self.beaten or self.closer

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(adversary: Adversary, estimate: Estimate) -> Outcome:
    """Compare an estimate with the truth, with its own claims and with the promise."""
    target = estimate.target
    mean, variance = estimate.evidence.about(target, target.prior)
    squares = variance + (estimate.mean - mean) ** 2
    # what a reader knows already is nothing that could be kept
    promised = target.floor > KNOWN * np.max(target.floor)
    ratio = float(np.min(np.sqrt(squares[promised]) / target.floor[promised], initial=np.inf))
    rmse, floor = target.error(estimate.mean), root_mean_square(target.floor)
    beaten = ratio < 1 - SLACK
    closer = adversary.own_prior and rmse < CLOSER * min(floor, target.bayes_error)
    severity: Severity = "none" if adversary.covered else "low"
    if beaten or closer:
        severity = "critical" if beaten and adversary.covered else adversary.severity or severity_of(ratio)
    outcome = Outcome(
        name=adversary.name,
        rmse=rmse,
        claimed=root_mean_square(estimate.std),
        actual=root_mean_square(np.sqrt(squares)),
        floor=floor,
        ratio=ratio,
        covered=adversary.covered,
        beaten=beaten,
        closer=closer,
        severity=severity,
        words="",
        before=root_mean_square(target.before),
        about="f" if target.records is None else "records",
    )
    return replace(outcome, words=_words(outcome, estimate.did, adversary.remedy, target.promised))


def severity_of(ratio: float) -> Severity:
    """How bad it is to know a value to this share of the floor."""
    return "critical" if ratio < CRITICAL_BELOW else "high" if ratio < HIGH_BELOW else "medium"


def _words(outcome: Outcome, did: str, remedy: str, promised: bool) -> str:
    reached = f"it knows {'f' if outcome.about == 'f' else 'records'} to within ± {outcome.actual:.3g}"
    if outcome.closer:
        reached = f"on these data it is off by ± {outcome.rmse:.3g}"
    result = f"{did}: {reached} where ± {outcome.floor:.3g} is {'promised' if promised else 'their own spread'}"
    if outcome.beaten:
        result += f", at worst {outcome.ratio:.2g} of the floor"
    if outcome.below:
        return f"{result}. Remedy: {remedy}."
    return f"{result}." + ("" if outcome.covered else f" If you fear it: {remedy}.")
