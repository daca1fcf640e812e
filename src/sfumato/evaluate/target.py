"""What is attacked (a release, the owner's truth, the sensitive values), who attacks, and what an attack achieves.

An attack turns a ``Target`` into an ``Estimate`` of f at the sensitive inputs, or of records there. ``judge`` compares
that with the truth, with what the adversary claims, and with the promise.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..arrays import Array, Index, Mask, evenly
from ..data import among, as_inputs, stacked_outputs, without_labels
from ..errors import InputError
from ..linalg import Whitening
from ..models import GaussianProcess, Posterior, Prior
from ..progress import alive
from ..promise import Design, Reader, RowsHeld
from ..release import Release, steps_of
from .rivals import unsafe_normals

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
        alive()
        if target.records is None:
            seen = self.seen_by(prior)
            return seen.mean_at(target.inputs), seen.variance(target.inputs)
        own, whiten, white = self._about_records(target, prior)
        mean = prior.mean_at(target.inputs) + white.T @ whiten(self.values - prior.mean_at(self.inputs))
        variance = prior.variance(target.inputs) + own - np.sum(white**2, axis=0)
        return mean, np.maximum(variance, 0.0)

    def unknown(self, target: Target, prior: Prior) -> Array:
        """The covariance of what ``target`` judges, for someone who holds ``prior``."""
        if target.records is None:
            return self.seen_by(prior).covariance(target.inputs)
        own, _, white = self._about_records(target, prior)
        return np.asarray(prior.covariance(target.inputs) + np.diag(own) - white.T @ white)

    def _about_records(self, target: Target, prior: Prior) -> tuple[Array, Callable[[Array], Array], Array]:
        """The variances of the records' own parts, what whitens the evidence, and the records against it, white."""
        assert target.records is not None
        own = np.asarray(prior.noise_variance(len(target.rows))[target.records])
        cross = prior.covariance(self.inputs, target.inputs) + own * (self.records[:, None] == target.records)
        whiten = Whitening.of(prior.covariance(self.inputs) + self.blur).apply
        return own, whiten, whiten(cross)


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
    def possible_truths(self) -> Array:
        """What the truth may be, under the prior and for all that the release tells: draws, one a row."""
        unknown = self.evidence.unknown(self, self.prior)
        if self.records is None:  # the truth is the owner's best knowledge, not f itself
            unknown = unknown - self.owner.covariance(self.inputs)
        values, vectors = np.linalg.eigh((unknown + unknown.T) / 2)
        normals = unsafe_normals(_SEED, _DRAWS * len(values)).reshape(_DRAWS, -1)
        spread = normals @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return np.asarray(self.evidence.about(self, self.prior)[0] + spread)

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


Severity = Literal["none", "medium", "high", "critical"]

#: Below this share of the floor it is high what a reader knows, and medium up to the floor.
HIGH_BELOW = 0.5

#: A floor below this share of the largest is none: whoever holds rows may know f there anyway.
KNOWN = 1e-6

#: Round-off that a ratio of standard deviations may have.
SLACK = 1e-6

#: A reader with a prior of its own is closer than promised if so close is chance at most this often, under the prior.
CHANCE = 0.02

#: From how many possible truths that is counted, always the same ones.
_DRAWS, _SEED = 2000, 1


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

    ``attack`` makes the estimate, or raises ``NotTriedError``. ``remedy`` is what to do when they get there, in words.
    ``covered``: whether the promise is about this adversary. An ``own_prior`` may be nearer to the truth than the
    owner's: errors expected under the owner's prior then say little, and the error on these data has to be looked at.
    ``supposed``: it is only supposed that they have what they use, such as some of the secret rows.
    """

    name: str
    attack: Callable[[], Estimate]
    remedy: str
    covered: bool = False
    own_prior: bool = False
    supposed: bool = False


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
    ``chance``   of one with a prior of its own: how often, under the owner's prior and given what is published, one of
                 them comes as close as this by chance (NaN: not asked)
    ``closer``   its rmse is below the floor, and its ``chance`` at most 2 %: on these data its prior is the better one
    ``supposed`` it is only supposed that it has what it uses, such as some of the secret rows
    ``severity`` by what it achieved, beaten or closer: "medium" below the floor, "high" below half of it, else "none";
                 beaten though covered is always "critical"
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
    chance: float = float("nan")
    supposed: bool = False

    @property
    def share(self) -> float:
        """How close it got, in multiples of the floor, by what it knows or by what turned out; 1 if not below."""
        known, turned_out = self.ratio if self.beaten else 1.0, self.rmse / self.floor if self.closer else 1.0
        return min(known, turned_out)

    @property
    def below(self) -> bool:
        """It got below the floor, by what it knows or by what turned out."""
        return self.beaten or self.closer

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def chances(target: Target, estimates: Sequence[Estimate]) -> Array:
    """How often, under the prior and given the release, the truth is as close to one of the estimates as it is to each.

    The estimates are functions of the release, so given it they are fixed, and the truth is a draw from what the Bayes
    reader believes. Whoever tries many models is close with one of them sooner or later: for each possible truth the
    most surprising of them counts (Westfall and Young 1993). Where a promise is made for several priors, the one counts
    under which it is least surprising.
    """
    found = _chances(target, estimates)
    for prior in target.design.priors[1:]:
        if np.all(found > CHANCE):
            break
        found = np.maximum(found, _chances(replace(target, prior=prior), estimates))
    return found


def _chances(target: Target, estimates: Sequence[Estimate]) -> Array:
    possible = target.possible_truths
    far = np.array([np.mean((possible - one.mean) ** 2, axis=1) for one in estimates])
    here = np.array([np.mean((target.truth - one.mean) ** 2) for one in estimates])
    ordered = np.sort(far, axis=1)
    surprise = np.array([np.searchsorted(row, value, "right") for row, value in zip(ordered, here, strict=True)])
    of_draws = np.array([np.searchsorted(row, values, "right") for row, values in zip(ordered, far, strict=True)])
    least = np.min(of_draws, axis=0)
    return np.asarray((np.sum(least <= surprise[:, None], axis=1) + 1.0) / (len(least) + 1.0))


def judge(adversary: Adversary, estimate: Estimate, chance: float | None = None) -> Outcome:
    """Compare an estimate with the truth, with its own claims and with the promise.

    ``chance`` is that of ``chances`` where the adversary is one of several with priors of their own.
    """
    target = estimate.target
    mean, variance = estimate.evidence.about(target, target.prior)
    squares = variance + (estimate.mean - mean) ** 2
    # what a reader knows already is nothing that could be kept
    promised = target.floor > KNOWN * np.max(target.floor)
    ratio = float(np.min(np.sqrt(squares[promised]) / target.floor[promised], initial=np.inf))
    rmse, floor = target.error(estimate.mean), root_mean_square(target.floor)
    beaten = ratio < 1 - SLACK
    if adversary.own_prior and chance is None:
        chance = float(chances(target, [estimate])[0])
    closer = chance is not None and rmse < floor and chance <= CHANCE
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
        severity="none",
        words="",
        before=root_mean_square(target.before),
        about="f" if target.records is None else "records",
        chance=float("nan") if chance is None else chance,
        supposed=adversary.supposed,
    )
    words = _words(outcome, estimate.did, adversary.remedy, target.promised)
    return replace(outcome, severity=_severity(outcome), words=words)


def _severity(outcome: Outcome) -> Severity:
    """How bad it is, by what was achieved."""
    if outcome.covered and outcome.beaten:
        return "critical"
    return "high" if outcome.share < HIGH_BELOW else "medium" if outcome.below else "none"


def _words(outcome: Outcome, did: str, remedy: str, promised: bool) -> str:
    reached = f"it knows {'f' if outcome.about == 'f' else 'records'} to within ± {outcome.actual:.3g}"
    if outcome.closer:
        reached = f"on these data it is off by ± {outcome.rmse:.3g}"
    result = f"{did}: {reached} where ± {outcome.floor:.3g} is {'promised' if promised else 'their own spread'}"
    if outcome.beaten:
        result += f", at worst {outcome.ratio:.2g} of the floor"
    if outcome.below:
        return f"{result}. Remedy: {remedy}."
    if outcome.chance > CHANCE and outcome.rmse < outcome.floor:
        result += f"; on these data ± {outcome.rmse:.3g}, which may be chance ({outcome.chance:.0%} under the prior)"
    return f"{result}." + ("" if outcome.covered else f" If you fear it: {remedy}.")
