"""The audit: all adversaries try, and the owner sees what each of them achieves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..files import OWNER_ONLY
from ..linalg import few_threads
from ..models import Prior
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Finding, Verdict, accepting, asked_acceptance, check_accepted
from ..proof import Certificate
from ..release import Release, digest_outputs
from ..text import listed, plain, shown_lines
from ..views import boxed_table
from .insiders import worst_group, worst_rows
from .mechanical_attacks import GUESSES, averaging, grid_of, guesses_seed, joins, knows_grid, low_bits, reads_suppressed
from .predictors import Rival
from .records_told import RecordsTold, records_told
from .statistical_attacks import (
    LENGTHSCALE_FACTORS,
    NOISE_SHARE,
    bayes,
    bayes_with,
    fits_a_model,
    holds_rows,
    knows_physics,
    knows_values,
    less_noise,
    looks_between_rows,
    models_to_try,
    other_lengthscales,
)
from .target import HIGH_BELOW, Adversary, Estimate, NotTriedError, Outcome, Skipped, Target, chances, judge, target_for

# What to do against each adversary; a message puts "Remedy: " in front.
_BROKEN = "the promise is not kept, or the file was changed; protect again and look at the certificate"
_NAME_PRIORS = "name the priors that you fear: protect(..., priors=[...])"
_NO_FIT = f"rehearse the prior (sf.rehearse, sfumato rehearse), which names a better one; or {_NAME_PRIORS}"
_ROUNDED = "publish what release(y) gives, which is rounded; never y plus noise as it comes"
_NO_SEED = "release without unsafe_seed, which is for experiments only"
_WHOLE_REGION = 'protect the whole region with cover="auto"'
_ONE_RELEASE = "publish one release of one secret, ever, or account for all of them in a ledger"
_NO_GRID = (
    "release y as it was before rounding, or blur every row by itself, which leaves nothing to round off: "
    'structure="diagonal", --structure diagonal'
)
_LARGER_REGION = (
    "make the region larger, so that it has all inputs whose values others may know, or choose a larger floor"
)
_TO_INSIDERS = (
    'promise it to whoever holds rows (insiders="rows" or labels, --insiders), or leave out rows that others hold'
)
_ABOUT_RECORDS = 'protect records too: protects="both" or "records" (--protects)'

#: Who knows to what y was rounded.
_GRID = "knows the grid of y"

#: How many rows the insiders hold that are tried.
ROWS_HELD = (1, 2, 5)

#: Up to so many rows attacks work on one thread: fits take many small matrices, and threads wait for each other.
ONE_THREAD = 1000


def _family(what: str, factor: float) -> str:
    """What to do against readers who multiply one parameter of the prior by ``factor``."""
    low, high = min(factor, 1.0), max(factor, 1.0)
    given = f"prior.family({what}=({low:g}, {high:g})) or --family {what}={low:g}:{high:g}"
    return f"promise it to them too: {given}, with the factors you fear"


@dataclass(frozen=True)
class Audit:
    """What every adversary achieved, and which could not be tried. It was made with the truth: for the owner only.

    ``holds``: no adversary that the promise covers knows more than promised, under the owner's prior.
    ``below``: all others that got below the floor. ``findings`` say what that means for publishing; they join those of
    the release in ``certificate``, and the ``verdict`` is that of all of them. ``records`` says what is told about
    records inside the region (None: there are none with a part of their own). ``digest`` is that of the published
    values it is about, ``claimed`` its certificate, and ``accepted`` are codes of findings that the owner accepts.
    """

    output: str
    judged: int
    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    claimed: Certificate
    digest: str = ""
    records: RecordsTold | None = None
    accepted: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the owner should know before publishing, in numbers that are the owner's alone."""
        return accepting(findings_on(self.outcomes), {*self.accepted, *self.claimed.accepted})

    @property
    def certificate(self) -> Certificate:
        """That of the release, with what the audit found: for the owner only."""
        return self.claimed.with_findings(*self.findings).accepting(self.accepted)

    @property
    def verdict(self) -> Verdict:
        """ "publish", "publish with care" or "do not publish": by all findings, those of the release and these."""
        return self.certificate.verdict

    @property
    def holds(self) -> bool:
        return not any(outcome.covered and outcome.beaten for outcome in self.outcomes)

    @property
    def below(self) -> tuple[Outcome, ...]:
        broken = [outcome for outcome in self.outcomes if outcome.covered and outcome.beaten]
        return tuple(outcome for outcome in self.outcomes if outcome.below and outcome not in broken)

    def rows(self) -> list[tuple[str, ...]]:
        """One line for each attack, for tables: see ``AUDIT_HEADER``."""
        return [
            (
                outcome.name,
                "yes" if outcome.covered else "no",
                _error(outcome.before / outcome.floor),
                _error(outcome.actual / outcome.floor),
                _error(outcome.rmse / outcome.floor),
                f"{outcome.ratio:.4f}",
                outcome.severity,
            )
            for outcome in self.outcomes
        ]

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain Python types."""
        return {
            "owner_only": True,
            "output": self.output,
            "judged": self.judged,
            "holds": self.holds,
            "verdict": self.verdict,
            "findings": [asdict(one) for one in self.findings],
            "outcomes": [plain(outcome.as_dict()) for outcome in self.outcomes],
            "records": None if self.records is None else {**asdict(self.records), "severity": self.records.severity},
            "skipped": [{"name": skipped.name, "why": skipped.why} for skipped in self.skipped],
        }

    def __str__(self) -> str:
        table = [AUDIT_HEADER, *self.rows()]
        widths = [max(len(line[column]) for line in table) for column in range(len(AUDIT_HEADER))]
        lines = [" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        skipped = [f"not tried: {entry.name} ({entry.why})" for entry in self.skipped]
        told = () if self.records is None else self.records.words
        said = [self.sentence, f"{self.certificate.verdict_in_words}."]
        return shown_lines([OWNER_ONLY, self._title, *(line.rstrip() for line in lines), *skipped, *told, *said])

    @property
    def _title(self) -> str:
        return f"Audit of {self.output!r} at {self.judged} sensitive values, in multiples of the floor"

    def _repr_html_(self) -> str:
        told = () if self.records is None else self.records.words
        skipped = [f"not tried: {entry.name} ({entry.why})" for entry in self.skipped]
        title, heading = f"{OWNER_ONLY} {self._title}", f"{self.certificate.verdict_in_words}."
        return boxed_table(self.verdict, title, heading, self.rows(), AUDIT_HEADER, [self.sentence, *told, *skipped])

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        if not self.holds:
            names = ", ".join(outcome.name for outcome in self.outcomes if outcome.covered and outcome.beaten)
            return f"THE PROMISE IS BROKEN by adversaries that it covers: {names}."
        if not self.below:
            return "None of these adversaries got below the floor."
        fit = [outcome.name for outcome in self.below if outcome.closer]
        more = [outcome.name for outcome in self.below if not outcome.closer]
        said = "The promise is kept, under its prior."
        if fit:
            said += " The prior does not fit these data: closer to the truth than the floor came "
            said += f"{listed(fit, between='; ')}."
        if more:
            said += f" Not covered, and below the floor: {listed(more, between='; ')}."
        return said


def _error(floors: float) -> str:
    """In multiples of the floor, in at most six letters where that can be: a table has 80."""
    return "<0.001" if floors < 0.001 else f"{floors:.3g}"


def findings_on(outcomes: Sequence[Outcome]) -> Iterator[Finding]:
    """What the outcomes mean for publishing. Severity follows from what was achieved, not from who achieved it."""
    broken = [one for one in outcomes if one.covered and one.beaten]
    if broken:
        yield Finding(
            "audit-breaks-promise",
            "high",
            f"Adversaries that the promise covers know more than promised: {_names(broken)}. {_at_best(broken)}",
            f"{_BROKEN[0].upper()}{_BROKEN[1:]}.",
        )
    closer = [one for one in outcomes if one.closer and one not in broken]
    far = [one for one in closer if one.rmse < HIGH_BELOW * one.floor]
    if grid := [one for one in far if one.name == _GRID]:
        yield Finding(
            "values-on-a-grid",
            "high",
            f"All y are multiples of one step, and a reader who knows it takes the noise off. {_at_best(grid)}",
            f"{_NO_GRID[0].upper()}{_NO_GRID[1:]}.",
        )
    far, closer = ([one for one in some if one not in grid] for some in (far, closer))
    if far:
        yield Finding(
            "prior-beaten",
            "high",
            "The prior does not fit: readers with models of their own come closer to the truth than half the floor, "
            f"{_hardly_chance(far)}: {_names(far)}. {_at_best(far)}",
            f"{_NO_FIT[0].upper()}{_NO_FIT[1:]}.",
        )
    elif closer:
        yield Finding(
            "prior-doubtful",
            "medium",
            "The prior may not fit: readers with models of their own come closer to the truth than the floor, "
            f"{_hardly_chance(closer)}: {_names(closer)}. {_at_best(closer)}",
            f"{_NO_FIT[0].upper()}{_NO_FIT[1:]}.",
        )
    # of records that are not promised the certificate says what goes out
    others = [one for one in outcomes if one.below and not one.covered and not one.closer and one.about == "f"]
    real = [one for one in others if not one.supposed]
    if any(one.share < HIGH_BELOW for one in real):
        yield Finding(
            "audit-far-below-floor",
            "high",
            f"With all that is published readers get below half the floor: {_names(real)}. {_at_best(real)}",
            "The audit says what to do against each of them.",
        )
    elif real:
        yield Finding(
            "audit-below-floor",
            "medium",
            f"With all that is published readers get below the floor: {_names(real)}. {_at_best(real)}",
            "The audit says what to do against each of them.",
        )
    lucky = [one for one in outcomes if one.covered and not one.below and one.rmse < HIGH_BELOW * one.floor]
    if lucky and not closer and not grid:
        best = min(lucky, key=lambda one: one.rmse / one.floor)
        yield Finding(
            "close-by-chance",
            "low",
            f"Could readers have guessed it? On these data {best.name} is off by ± {best.rmse:.3g} where "
            f"± {best.floor:.3g} is promised. Under the prior that may be chance: few values that vary together lie "
            "where they are expected now and then. If you expected them there, so can readers.",
            _NO_FIT[0].upper() + _NO_FIT[1:] + ".",
        )
    if supposed := [one for one in others if one.supposed]:
        yield Finding(
            "readers-who-know-more",
            "low",
            f"Could anybody have this? These would get below the floor: {_names(supposed)}.",
            "The audit says what to do against each of them.",
        )


def _hardly_chance(outcomes: Sequence[Outcome]) -> str:
    """How often any of all these readers is as close as the least surprising of ``outcomes``, if the prior is right."""
    most = max(one.chance for one in outcomes)
    return f"which chance explains in at most {100.0 * most:.2g} % of cases if it is right"


def _names(outcomes: Sequence[Outcome]) -> str:
    return listed([one.name for one in sorted(outcomes, key=lambda one: one.share)], 4, "; ")


def _at_best(outcomes: Sequence[Outcome]) -> str:
    """How close the best of them got."""
    best = min(outcomes, key=lambda one: one.share)
    error = best.rmse if best.closer else best.share * best.floor
    return f"At best ± {error:.3g} where ± {best.floor:.3g} is promised, {best.share:.2g} of the floor."


#: The columns of ``Audit.rows``; errors are in multiples of the floor: "before" without the release, "worst" of the
#: sensitive value that is known best.
AUDIT_HEADER = ("adversary", "covered", "before", "expected", "here", "worst", "severity")


def audit(
    release: Release,
    y: Any,
    *,
    sensitive: Any = None,
    draws: int = 20,
    grid: float | None = None,
    physics: Callable[[Array], Any] | None = None,
    others: Sequence[Release] = (),
    accept: Sequence[str] = (),
    progress: AskedProgress = True,
) -> Audit:
    """Attack a release with everything that is known, and compare with the truth ``y`` that only the owner has.

    ``sensitive``: where to judge (left out: up to 200 inputs of the region, at rows and between them). ``draws``: how
    many releases of the same values to average. ``grid``: the step that y is a multiple of (left out: guessed from y).
    ``physics``: a function of the inputs that a reader may know f to follow. ``others``: earlier releases of the same
    values. ``accept``: codes of high findings in spite of which you publish; those accepted in the release count too.

    Guarantee: adversaries that compute from the release alone are covered. Under the owner's prior they stay above the
    floor while the certificate holds, whatever they compute. Where one with a model of its own is closer to the truth
    all the same, more often than chance explains, the prior does not fit, and a finding says so. The others know more;
    the audit says what they would achieve.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 31)
    >>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01, exclude=sf.Box(1.0, 2.0))
    >>> release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.1).release(np.sin(t))
    >>> found = sf.audit(release, np.sin(t))
    >>> found.holds
    True
    """
    codes = asked_acceptance(accept)
    target = target_for(release, y, sensitive)
    estimates: list[tuple[Adversary, Estimate]] = []
    skipped: list[Skipped] = []
    with show_progress(progress) as bar, few_threads(*[1] * (len(target.rows) <= ONE_THREAD)):
        bar.stage("looking for adversaries")
        asked = adversaries(target, draws=draws, grid=grid, physics=physics, others=others)
        records = target.of_records()
        if records is not None and target.records is None:
            asked += after_records(records)
        for number, adversary in enumerate(asked):
            bar.stage(f"attacking: {adversary.name}")
            bar.update(number / len(asked))
            try:
                estimates.append((adversary, adversary.attack()))
            except NotTriedError as why:
                skipped.append(Skipped(adversary.name, str(why)))
        bar.stage("comparing with the truth")
        outcomes = _judged(target, estimates)
    reader = next((outcome for outcome in outcomes if outcome.about == "records"), None)
    told = None if records is None or reader is None else records_told(records, reader)
    outcomes.sort(key=lambda outcome: not outcome.covered)
    digest = digest_outputs(np.asarray(release.outputs))
    tried = tuple(outcomes), tuple(skipped)
    found = Audit(release.output_name, len(target.inputs), *tried, release.certificate, digest, told, codes)
    check_accepted(codes, found.certificate.findings)
    return found


def _judged(target: Target, estimates: Sequence[tuple[Adversary, Estimate]]) -> list[Outcome]:
    """The outcomes; those who have priors of their own are judged together, because one of many is close by chance."""
    own = [estimate for adversary, estimate in estimates if adversary.own_prior]
    chance = iter(chances(target, own).tolist() if own else [])
    return [judge(adversary, one, next(chance) if adversary.own_prior else None) for adversary, one in estimates]


def adversaries(
    target: Target,
    *,
    draws: int = 20,
    grid: float | None = None,
    physics: Callable[[Array], Any] | None = None,
    others: Sequence[Release] = (),
    guesses: int = GUESSES,
) -> list[Adversary]:
    """Everyone who tries, with what they do, and what to do when they get below the floor.

    Covered are those who compute from the release alone: under the owner's prior none of them is better than the Bayes
    reader. The promise is not about those who know more: a second release, another prior, the grid of y, values.
    """
    step = grid_of(target.y, grid)
    covered, own_prior = partial(Adversary, covered=True), partial(Adversary, own_prior=True)
    if_known = partial(Adversary, supposed=True)
    other_priors = [
        covered(f"Bayes reader, prior {number}", partial(bayes_with, target, number, prior), _BROKEN)
        for number, prior in enumerate(target.design.others, start=2)
    ]
    of_families = [
        covered(f"family reader, lengthscale × {factor:g}", partial(bayes_with, target, place, prior), _BROKEN)
        for place, (factor, prior) in enumerate(_ends_of_families(target), start=2 + len(other_priors))
    ]
    models = [
        covered(called(rival), partial(fits_a_model, target, rival), _NO_FIT, own_prior=True)
        for rival in models_to_try(target)
    ]
    lengthscales = [
        own_prior(
            f"lengthscale × {factor:g}", partial(other_lengthscales, target, factor), _family("lengthscale", factor)
        )
        for factor in LENGTHSCALE_FACTORS
    ]
    left_out = covered("what is suppressed", lambda: reads_suppressed(target), _BROKEN)
    asked = [
        covered("Bayes reader", lambda: bayes(target), _BROKEN),
        *other_priors,
        *of_families,
        *models,
        covered("low bits", lambda: low_bits(target, step), _ROUNDED),
        *([left_out] if target.design.noise.suppressed_count else []),
        Adversary("guesses the seed", lambda: guesses_seed(target, guesses), _NO_SEED, not target.release.unsafe),
        Adversary("looks between the rows", lambda: looks_between_rows(target), _WHOLE_REGION),
        if_known(f"averages {draws} releases", lambda: averaging(target, draws), _ONE_RELEASE, draws == 1),
        own_prior("knows of smaller errors V", lambda: less_noise(target), _family("noise", NOISE_SHARE)),
        *lengthscales,
        own_prior(_GRID, lambda: knows_grid(target, step), _NO_GRID),
        if_known("knows nearby values", lambda: knows_values(target), _LARGER_REGION),
        *_insiders(target),
    ]
    if others:
        asked.append(Adversary(f"joins {len(others) + 1} releases", lambda: joins(target, others), _ONE_RELEASE))
    if physics is not None:
        asked.append(own_prior("knows the physics", lambda: knows_physics(target, physics), _NAME_PRIORS))
    return asked


def called(rival: Rival) -> str:
    """A rival as an adversary: in words that leave room for numbers on a line."""
    name = rival.name
    for long, short in (("refitted", "fits"), ("noise known", "knows Σ"), ("noise ignored", "ignores Σ")):
        name = name.replace(long, short)
    return name


def _ends_of_families(target: Target) -> Iterator[tuple[float, Prior]]:
    """The readers of each family who believe in the longest and the shortest lengthscales, and in the least noise."""
    for family in target.design.families:
        for factor in dict.fromkeys(reversed(family.lengthscale)):
            yield factor, family.member(factor, family.variance[1], family.noise[0])


def after_records(target: Target) -> list[Adversary]:
    """Who is after the records of ``target``, where f is promised too or alone: the best reader first."""
    covered, remedy = target.promised, _BROKEN if target.promised else _ABOUT_RECORDS
    reader = Adversary("records: reader", lambda: bayes(target), remedy, covered)
    return [reader, *_insiders(target, "records: ")]


def _insiders(target: Target, about: str = "") -> list[Adversary]:
    """Whoever holds the rows that tell most, and the worst of the groups that the promise is made to."""
    promised = target.design.insiders if target.promised else None
    worst = cache(lambda: worst_rows(target, max(ROWS_HELD)))

    def hold(count: int) -> Adversary:
        covered = count == 1 and promised is not None and promised.members is None
        name = f"{about}holds {count} row{'s' * (count > 1)}"
        return Adversary(name, lambda: holds_rows(target, worst()[:count]), _TO_INSIDERS, covered, supposed=True)

    def group() -> Estimate:
        assert promised is not None
        number = worst_group(target, promised.groups)
        return holds_rows(target, promised.groups[number], f" (group {number})")

    named = promised is not None and promised.members is not None
    return [
        *map(hold, ROWS_HELD),
        *([Adversary(f"{about}holds the worst group", group, _BROKEN, True)] if named else []),
    ]
