"""The audit: all adversaries try, and the owner sees what each of them achieves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..progress import progress as show_progress
from ..release import Release, digest_outputs
from .insiders import worst_group, worst_rows
from .mechanical_attacks import GUESSES, averaging, grid_of, guesses_seed, joins, knows_grid, low_bits
from .records_told import RecordsTold, records_told
from .statistical_attacks import (
    LENGTHSCALE_FACTORS,
    bayes,
    bayes_with,
    holds_rows,
    knows_a_trend,
    knows_physics,
    knows_values,
    less_noise,
    looks_between_rows,
    other_lengthscales,
    refit,
    stationary,
)
from .target import Adversary, Estimate, NotTriedError, Outcome, Skipped, Target, judge, target_for

# What to do against each adversary; a message puts "Remedy: " in front.
_BROKEN = "the promise is not kept, or the file was changed; protect again and look at the certificate"
_NAME_PRIORS = "name the priors that you fear: protect(..., priors=[...])"
_NO_FIT = f"the prior does not fit; fit another kernel, or {_NAME_PRIORS}"
_ROUNDED = "publish what release(y) gives, which is rounded; never y plus noise as it comes"
_NO_SEED = "release without unsafe_seed, which is for experiments only"
_WHOLE_REGION = 'protect the whole region with cover="auto"'
_ONE_RELEASE = "publish one release of one secret, ever, or account for all of them in a ledger"
_NO_GRID = "release without rounding y first, name the priors that you fear, or choose a floor of several steps"
_LARGER_REGION = (
    "make the region larger, so that it has all inputs whose values others may know, or choose a larger floor"
)
_TO_INSIDERS = (
    'promise it to whoever holds rows (insiders="rows" or labels, --insiders), or leave out rows that others hold'
)
_ABOUT_RECORDS = 'protect records too: protects="both" or "records" (--protects)'

#: How many rows the insiders hold that are tried.
ROWS_HELD = (1, 2, 5)

OWNER_ONLY = "OWNER ONLY: this uses the truth; do not publish this output."


@dataclass(frozen=True)
class Audit:
    """What every adversary achieved, and which could not be tried. It was made with the truth: for the owner only.

    ``holds``: no adversary that the promise covers knows more than promised, under the owner's prior.
    ``below``: all others that got below the floor. ``records`` says what is told about records inside the region (None:
    there are none with a part of their own). ``digest`` is that of the published values it is about.
    """

    output: str
    judged: int
    outcomes: tuple[Outcome, ...]
    skipped: tuple[Skipped, ...]
    digest: str = ""
    records: RecordsTold | None = None

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
                f"{outcome.before / outcome.floor:.3g}",
                f"{outcome.actual / outcome.floor:.3g}",
                f"{outcome.rmse / outcome.floor:.3g}",
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
            "outcomes": [outcome.as_dict() for outcome in self.outcomes],
            "records": None if self.records is None else {**asdict(self.records), "severity": self.records.severity},
            "skipped": [{"name": skipped.name, "why": skipped.why} for skipped in self.skipped],
        }

    def __str__(self) -> str:
        table = [AUDIT_HEADER, *self.rows()]
        widths = [max(len(line[column]) for line in table) for column in range(len(AUDIT_HEADER))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        skipped = [f"not tried: {entry.name} ({entry.why})" for entry in self.skipped]
        title = f"Audit of {self.output!r} at {self.judged} sensitive values, in multiples of the floor"
        told = () if self.records is None else self.records.words
        return "\n".join([OWNER_ONLY, title, *(line.rstrip() for line in lines), *skipped, *told, self.verdict])

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        if not self.holds:
            names = ", ".join(outcome.name for outcome in self.outcomes if outcome.covered and outcome.beaten)
            return f"THE PROMISE IS BROKEN by adversaries that it covers: {names}."
        if not self.below:
            return "No adversary got below the floor."
        fit = [outcome.name for outcome in self.below if outcome.covered]
        more = [outcome.name for outcome in self.below if not outcome.covered]
        said = "The promise is kept, under its prior."
        if fit:
            said += f" The prior does not fit these data: closer to the truth than the floor came {', '.join(fit)}."
        if more:
            said += f" Not covered, and below the floor: {', '.join(more)}."
        return said


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
    progress: bool = True,
) -> Audit:
    """Attack a release with everything that is known, and compare with the truth ``y`` that only the owner has.

    ``sensitive``: where to judge (left out: up to 200 inputs of the region, at rows and between them). ``draws``: how
    many releases of the same values to average. ``grid``: the step that y is a multiple of (left out: guessed from y).
    ``physics``: a function of the inputs that a reader may know f to follow. ``others``: earlier releases of the same
    values.

    Guarantee: adversaries that compute from the release alone are covered, whatever they compute, and stay above the
    floor while the certificate holds. The others know more; the audit says what they would achieve.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 31)
    >>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01, exclude=sf.Box(1.0, 2.0))
    >>> release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.1).release(np.sin(t))
    >>> found = sf.audit(release, np.sin(t))
    >>> found.holds
    True
    """
    target = target_for(release, y, sensitive)
    asked = adversaries(target, draws=draws, grid=grid, physics=physics, others=others)
    records = target.of_records()
    if records is not None and target.records is None:
        asked += after_records(records)
    outcomes: list[Outcome] = []
    skipped: list[Skipped] = []
    with show_progress(progress) as bar:
        for number, adversary in enumerate(asked):
            bar.stage(f"attacking: {adversary.name}")
            bar.update(number / len(asked))
            try:
                outcomes.append(judge(adversary, adversary.attack()))
            except NotTriedError as why:
                skipped.append(Skipped(adversary.name, str(why)))
    reader = next((outcome for outcome in outcomes if outcome.about == "records"), None)
    told = None if records is None or reader is None else records_told(records, reader)
    outcomes.sort(key=lambda outcome: not outcome.covered)
    digest = digest_outputs(np.asarray(release.outputs))
    return Audit(release.output_name, len(target.inputs), tuple(outcomes), tuple(skipped), digest, told)


def adversaries(
    target: Target,
    *,
    draws: int = 20,
    grid: float | None = None,
    physics: Callable[[Array], Any] | None = None,
    others: Sequence[Release] = (),
    guesses: int = GUESSES,
) -> list[Adversary]:
    """Everyone who tries, with what they do, how bad it is when they get below the floor, and what to do then.

    Covered are those who compute from the release alone: under the owner's prior nobody of them is better than the
    Bayes reader. The promise is not about those who know more: a second release, another prior, the grid of y, values.
    """
    step = grid_of(target.y, grid)
    covered, own_prior = partial(Adversary, covered=True), partial(Adversary, own_prior=True)
    trend = own_prior("knows a trend", lambda: knows_a_trend(target), "medium", _NAME_PRIORS)
    if physics is not None:
        trend = own_prior("knows the physics", lambda: knows_physics(target, physics), "medium", _NAME_PRIORS)
    joining = Adversary(f"joins {len(others) + 1} releases", lambda: joins(target, others), "critical", _ONE_RELEASE)
    other_priors = [
        covered(f"Bayes reader, prior {number}", partial(bayes_with, target, number, prior), "critical", _BROKEN)
        for number, prior in enumerate(target.design.others, start=2)
    ]
    lengthscales = [
        own_prior(f"lengthscale × {factor:g}", partial(other_lengthscales, target, factor), "medium", _NAME_PRIORS)
        for factor in LENGTHSCALE_FACTORS
    ]
    return [
        covered("Bayes reader", lambda: bayes(target), "critical", _BROKEN),
        *other_priors,
        covered("plain stationary GP", lambda: stationary(target), "medium", _NO_FIT, own_prior=True),
        covered("refits everything", lambda: refit(target), "medium", _NO_FIT, own_prior=True),
        covered("low bits", lambda: low_bits(target, step), "critical", _ROUNDED),
        Adversary(
            "guesses the seed", lambda: guesses_seed(target, guesses), "critical", _NO_SEED, not target.release.unsafe
        ),
        Adversary("looks between the rows", lambda: looks_between_rows(target), "medium", _WHOLE_REGION),
        Adversary(f"averages {draws} releases", lambda: averaging(target, draws), "critical", _ONE_RELEASE, draws == 1),
        *([joining] if others else []),
        own_prior("knows of smaller errors V", lambda: less_noise(target), "medium", _NAME_PRIORS),
        *lengthscales,
        trend,
        own_prior("knows the grid of y", lambda: knows_grid(target, step), "medium", _NO_GRID),
        Adversary("knows nearby values", lambda: knows_values(target), "high", _LARGER_REGION),
        *_insiders(target),
    ]


def after_records(target: Target) -> list[Adversary]:
    """Who is after the records of ``target``, where f is promised too or alone: the best reader first."""
    covered, remedy = target.promised, _BROKEN if target.promised else _ABOUT_RECORDS
    reader = Adversary("records: reader", lambda: bayes(target), None, remedy, covered)
    return [reader, *_insiders(target, "records: ")]


def _insiders(target: Target, about: str = "") -> list[Adversary]:
    """Whoever holds the rows that tell most, and the worst of the groups that the promise is made to."""
    promised = target.design.insiders if target.promised else None
    worst = cache(lambda: worst_rows(target, max(ROWS_HELD)))

    def hold(count: int) -> Adversary:
        covered = count == 1 and promised is not None and promised.members is None
        name = f"{about}holds {count} row{'s' * (count > 1)}"
        return Adversary(name, lambda: holds_rows(target, worst()[:count]), None, _TO_INSIDERS, covered)

    def group() -> Estimate:
        assert promised is not None
        number = worst_group(target, promised.groups)
        return holds_rows(target, promised.groups[number], f" (group {number})")

    named = promised is not None and promised.members is not None
    return [
        *map(hold, ROWS_HELD),
        *([Adversary(f"{about}holds the worst group", group, None, _BROKEN, True)] if named else []),
    ]
