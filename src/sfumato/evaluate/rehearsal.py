"""Rehearsal: is a prior any good as a promise? Look-alikes of the region are hidden, and rivals predict them.

A promise is as good as its prior. Where a rival, who sees the same rows, is closer to what is hidden than the prior
says that anyone can be, readers of a release may be closer than the promise says.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ..arrays import Array, Index, evenly
from ..data import Encoding, as_outputs
from ..errors import InputError
from ..models import Prior, PriorFamily
from ..progress import AskedProgress, Progress
from ..progress import progress as show_progress
from ..promise import ALARMING, Finding, Verdict, verdict
from ..regions import Region
from ..text import aligned, counted, plain, shown_lines, wrapped
from ..views import boxed_table, pictures
from .advice import Advice, advice
from .claims import Claims, HiddenRows, Unexpected, unexpected_period
from .comparison import checked_problem
from .look_alikes import LookAlike, look_alikes
from .predictors import Rival, rivals
from .tradeoffs import short

#: A rival as close as this share of what the prior claims is "prior-beaten"; closer than the claim, "prior-doubtful".
BEATEN = 0.5

#: How often data that the prior is right about may be called beaten by a rival, periodic, or known by their mean.
BY_RIVAL, BY_PERIOD, BY_MEAN = 0.02, 0.005, 0.005

#: A mean that was learnt tells of f where f is known around it to this share of the prior's standard deviation.
TELLING = 0.75

#: At most this many rows take part: spread evenly, they show what all of them would. A level is taken from more.
MOST_ROWS, MOST_FOR_LEVEL = 1000, 3000

#: Rivals that take long to fit do so once for each of so many parts of the look-alikes, all of which they do not see.
PARTS = 3

#: What the prior itself is called among the rivals: its prediction from the rows, and its mean without any.
ITSELF, ITS_MEAN = "this prior", "this prior's mean"


@dataclass(frozen=True)
class Result:
    """How near a rival came to f at the hidden rows.

    ``error`` is the root mean square error about f, in the owner's units; what V explains is taken off, and less than
    ``least`` cannot be told from V. ``floors`` is the error in multiples of the ``floor``, ``share`` in multiples of
    what the prior ``claimed``. ``chance`` bounds how likely any of the rivals is to come as near, if the prior is
    right.
    """

    name: str
    error: float
    least: float
    floor: float
    claimed: float
    chance: float
    uses_periods: bool = False

    @property
    def floors(self) -> float:
        return self.error / max(self.floor, 1e-300)

    @property
    def share(self) -> float:
        return self.error / max(self.claimed, 1e-300)

    @property
    def sure(self) -> bool:
        """Whether it is nearer than the prior claims, beyond chance."""
        return self.chance <= BY_RIVAL and self.share < 1.0

    def as_dict(self) -> dict[str, Any]:
        """In plain Python types."""
        return {**vars(self), "floors": self.floors, "share": self.share}


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What rivals make of look-alikes of a region: ``results``, the nearest first.

    ``claimed`` is how near anyone can come to f at the hidden rows, from the other rows, if the prior is right;
    ``floor`` what the promise keeps from readers. ``findings`` are "prior-beaten" (high), "prior-doubtful" (medium) and
    "no-look-alike" (low); ``passes`` says that there is none of the first two. ``advice`` is a prior to use instead,
    ready to copy, and ``advised`` the same as a value.

    It is the owner's: it was made from true values. It says nothing of readers who know what no row outside tells.
    """

    region: str
    alpha: float | None
    floor: float
    claimed: float
    look_alikes: tuple[LookAlike, ...]
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]
    advised: Advice | None
    notes: tuple[str, ...]
    stage: Stage | None

    @property
    def best(self) -> Result | None:
        """The rival that came nearest to f, measured by what the prior claims; None where there is no look-alike."""
        return self.results[0] if self.results else None

    @property
    def passes(self) -> bool:
        """Whether nothing speaks against the prior as a promise. Without look-alikes nothing can."""
        return not any(one.severity in ALARMING for one in self.findings)

    @property
    def verdict(self) -> Verdict:
        """What follows for a release, as everywhere."""
        return verdict(True, self.findings)

    def sentence(self, about: str = "") -> str:
        """What it has shown, in a sentence for the owner; ``about`` what, if that must be said."""
        head = f"Rehearsal{about}"
        if self.best is None:
            return f"{head}: the region cannot be moved to other rows, so the prior was not tried."
        best = self.best
        said = (
            f"at {counted(len(self.look_alikes), 'look-alike')} of the region {best.name} is off by {best.floors:.2g} "
            f"floors, where the prior claims {best.claimed / best.floor:.2g}"
        )
        luck = ", which may be chance" if self.passes and best.share < 1.0 else ""
        return f"{head}: {'passed' if self.passes else self.verdict}; {said}{luck}."

    @property
    def advice(self) -> str:
        """The prior to use instead, as a call and as options of the command; empty where none is needed or found."""
        return "" if self.advised is None else str(self.advised)

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain Python types, without any row."""
        found: dict[str, Any] = plain(
            {
                "owner_only": True,
                "region": self.region,
                "alpha": self.alpha,
                "floor": self.floor,
                "claimed": self.claimed,
                "look_alikes": [
                    {"where": one.where, "rows": len(one.hidden), "size": one.size} for one in self.look_alikes
                ],
                "results": [one.as_dict() for one in self.results],
                "findings": [vars(one) for one in self.findings],
                "passes": self.passes,
                "verdict": self.verdict,
                "advice": None if self.advised is None else self.advised.as_dict(),
                "notes": list(self.notes),
            }
        )
        return found

    def table(self, most: int = 7) -> list[tuple[str, ...]]:
        """The nearest rivals, and the prior itself, as cells under ``REHEARSAL_HEADER``."""
        kept = [one for place, one in enumerate(self.results) if place < most or one.name == ITSELF]
        return [_cells(one) for one in kept]

    def __str__(self) -> str:
        head = f"Rehearsal of {self.region}"
        if not self.results:
            return shown_lines([head, *_wrapped(self.findings, True), *self.notes])
        sizes = [len(one.hidden) for one in self.look_alikes]
        rows = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else f"{sizes[0]}"
        head += f": {counted(len(sizes), 'look-alike')} of {rows} rows"
        table = [REHEARSAL_HEADER, *self.table()]
        claimed, floor = short(self.claimed), short(self.floor)
        said = f"The prior claims that nobody can be nearer than {claimed}; the floor is {floor}."
        good = ["No rival came nearer than the prior claims, beyond chance."]
        end = _wrapped(self.findings, not self.advice) if self.findings else good
        advised = self.advice.split("\n") if self.advice else []
        return shown_lines([head, *aligned(table), said, *self.notes, "", *end, *advised])

    def _repr_html_(self) -> str:
        said = [*map(str, self.findings), *([f"Use instead: {self.advised.call}"] if self.advised is not None else [])]
        heading = "The prior passes its rehearsal" if self.passes else f"This prior: {self.verdict}"
        title, header = f"Rehearsal of {self.region}", REHEARSAL_HEADER if self.results else ()
        return boxed_table(self.verdict, title, heading, self.table(), header, said)

    def plot(self, axes: Any = None) -> Any:
        """The look-alikes with what the prior claims of them and what the best rival predicts."""
        return pictures().plot_rehearsal(self, axes)


#: The columns of ``Rehearsal.table``.
REHEARSAL_HEADER = ("rival", "error", "of floor", "of claim", "chance")


@dataclass(frozen=True, eq=False)
class Stage:
    """What a picture shows: the rows, the prior's claims, what each rival predicted, and boxes that hold the region."""

    names: tuple[str, ...]
    rows: HiddenRows
    claims: Claims
    predictions: dict[str, Array]
    lower: Array
    upper: Array
    encoding: Encoding | None = None


def rehearse(
    prior: Prior | PriorFamily,
    X: Any,
    y: Any,
    region: Region,
    alpha: float | None = None,
    *,
    floor: float | None = None,
    advise: bool = True,
    progress: AskedProgress = True,
) -> Rehearsal:
    """How well ``prior`` does as a promise about ``region``: rivals predict look-alikes of it, hidden in turn.

    Look-alikes are the region's shape, moved to other rows. Rivals are regressions on powers and on harmonics of the
    periods that the data show, processes of other kernels, nearest neighbours, boosted trees: what a reader with a
    textbook does. None sees what is hidden; no value inside the region is used. Errors stand in multiples of the floor
    (of ``alpha``, or ``floor`` in the units of y; without either the prior's standard deviation) and of what the prior
    claims. A rival who is nearer than claimed, by more than chance, is a finding, and with ``advise`` a better prior is
    looked for, which takes longer than the rehearsal itself.

    A family of priors passes if one of its members does, for the promise is made to all of them.

    Guarantee: if the prior is right, it is called beaten or doubtful in less than 5 % of all cases.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0, 6, 73)
    >>> y = np.sin(2 * np.pi * t)
    >>> region = sf.Box(2.5, 3.5)
    >>> prior = sf.fit_prior(t, y, lengthscale=0.05, noise=1e-4, exclude=region)
    >>> found = sf.rehearse(prior, t, y, region, alpha=0.1)
    >>> found.verdict, found.findings[0].code
    ('do not publish', 'prior-beaten')
    """
    central = prior.prior if isinstance(prior, PriorFamily) else prior
    inputs, bound = checked_problem(central, X, region)
    outputs = as_outputs(y, inputs)
    _check_level(alpha, floor)
    V, notes = central.noise_variance(len(inputs)), []
    words, more = bound.in_words(inputs.names), None
    if len(inputs) > MOST_ROWS:
        own = np.flatnonzero(~bound.contains(inputs.values))
        own = own[evenly(len(own), MOST_FOR_LEVEL)]
        more = inputs.values[own], outputs[own], V[own]
        keep = evenly(len(inputs), MOST_ROWS)
        notes.append(f"{MOST_ROWS:,} of {len(inputs):,} rows, spread evenly, took part.")
        inputs, outputs, V = inputs.select(keep), outputs[keep], V[keep]
    found = look_alikes(bound, inputs)
    if not found:
        return Rehearsal(words, alpha, math.nan, math.nan, (), (), (_no_look_alike(words),), None, tuple(notes), None)
    if any(one.size < 1.0 for one in found):
        notes.append("There was no room for the whole region elsewhere: some are smaller.")
    outside = np.flatnonzero(~bound.contains(inputs.values))
    place = np.full(len(inputs), -1)
    place[outside] = np.arange(len(outside))
    hidden = tuple(place[one.hidden] for one in found)
    rows = HiddenRows(inputs.values[outside], outputs[outside], V[outside], hidden, more)
    # errors of one size are learnt by the rivals themselves
    noise = rows.V if np.ptp(V) > 0 else None
    with warnings.catch_warnings(), show_progress(progress) as step:
        warnings.simplefilter("ignore", RuntimeWarning)
        predictions = _predictions(rows, noise, step)
        said = [judge(one, own, predictions, alpha, floor) for one, own in _members(prior, rows)]
        judged = min(said, key=lambda one: one.severity)
        advised = None
        if advise and not judged.passes:

            def judged_instead(other: Prior) -> Judged:
                own = replace(rows, V=other.noise_variance(len(rows.y)), all=None)
                return judge(other, own, predictions, alpha, floor)

            advised = advice(rows, "learn" if noise is None else noise, judged_instead, step)
    findings = tuple(replace(one, remedy=_remedy(one, advised)) for one in judged.findings)
    spans = bound.spans(inputs)
    drawn = {one.name: predicted for one, predicted in predictions.items()}
    stage = Stage(inputs.names, rows, judged.claims, drawn, spans.lower, spans.upper, inputs.encoding)
    return Rehearsal(
        words,
        alpha,
        judged.floor,
        judged.claims.claimed,
        found,
        judged.results,
        findings,
        advised,
        tuple(notes),
        stage,
    )


@dataclass(frozen=True, eq=False)
class Judged:
    """A prior compared with what rivals predicted."""

    claims: Claims
    floor: float
    results: tuple[Result, ...]
    findings: tuple[Finding, ...]

    @property
    def passes(self) -> bool:
        return not self.findings

    @property
    def severity(self) -> int:
        """2 for a prior that is beaten, 1 for one that is doubtful, 0 for one that passes."""
        return max(({"medium": 1}.get(one.severity, 2) for one in self.findings), default=0)


def _members(prior: Prior | PriorFamily, rows: HiddenRows) -> list[tuple[Prior, HiddenRows]]:
    """The prior, or those of a family that differ most, the one in their middle first; each with its own V."""
    if isinstance(prior, Prior):
        return [(prior, rows)]
    ranges = (prior.lengthscale, prior.variance, prior.noise)
    corners = [tuple(math.sqrt(low * high) for low, high in ranges), *product(*(sorted(set(one)) for one in ranges))]
    return [(prior.member(*factors), rows.with_errors(factors[2])) for factors in corners]


def judge(
    prior: Prior, rows: HiddenRows, predictions: dict[Rival, Array], alpha: float | None, floor: float | None
) -> Judged:
    """What the prior claims of the hidden rows, beside what each rival predicted there."""
    claims = Claims.of(prior, rows)
    height = float(floor) if floor is not None else math.sqrt(1.0 - (alpha or 0.0)) * claims.claimed_before
    values, count = rows.y[rows.every], len(predictions) + 2

    def result(name: str, predicted: Array, before: bool = False, periods: bool = False) -> Result:
        errors = values - predicted
        claimed, chance = (
            (claims.claimed_before, claims.chance_before(errors)) if before else (claims.claimed, claims.chance(errors))
        )
        error, chance = rows.error_of_f(errors), min(count * chance, 1.0)
        return Result(name, error, rows.least_error, height, claimed, chance, periods)

    results = [result(one.name, predicted, periods=one.uses_periods) for one, predicted in predictions.items()]
    results += [result(ITSELF, claims.means), result(ITS_MEAN, claims.before, before=True)]
    learnt = claims.level.chance <= BY_MEAN and claims.level.share <= TELLING and claims.spread_shows
    finding = _finding(results, learnt, unexpected_period(prior, rows.X, rows.y, rows.V))
    # the one that the finding is about first, then those that are sure, then the nearest
    guilty = "" if finding is None else finding[0]
    results.sort(key=lambda one: (one.name != guilty, not one.sure, one.share))
    return Judged(claims, height, tuple(results), () if finding is None else (finding[1],))


def _predictions(rows: HiddenRows, noise: Array | None, step: Progress) -> dict[Rival, Array]:
    """What each rival predicts at the hidden rows, one turn after the other."""
    tried = rivals(rows.X, rows.y, noise)
    turns, found = len(rows.hidden), dict[Rival, Array]()
    for place, rival in enumerate(tried):
        step.stage(f"{rival.name} predicts look-alikes")
        predicted: dict[int, Array] = {}
        for part in range(min(PARTS, turns)):
            own = range(part, turns, PARTS)
            step.update((place + len(predicted) / turns) / len(tried))
            learnt = rival.learnt(*_of(rows, noise, rows.seen(*own)))
            for turn in own:
                step.update((place + len(predicted) / turns) / len(tried))
                told = _of(rows, noise, rows.seen(turn))
                predicted[turn] = learnt.predict(*told, rows.X[rows.hidden[turn]])
        found[rival] = np.concatenate([predicted[turn] for turn in range(turns)])
    return found


def _of(rows: HiddenRows, noise: Array | None, seen: Index) -> tuple[Array, Array, Array | None]:
    return rows.X[seen], rows.y[seen], None if noise is None else noise[seen]


# ---------------------------------------------------------------- findings


def _finding(results: Sequence[Result], learnt: bool, period: Unexpected | None) -> tuple[str, Finding] | None:
    """The worst that can be said of the prior, and the rival that it is about.

    ``learnt``: the mean was, from rows that do not tell how far f can be from it.
    """
    sure = sorted((one for one in results if one.sure), key=lambda one: one.share)
    mean = next(one for one in results if one.name == ITS_MEAN)
    periodic = min((one for one in results if one.uses_periods), key=lambda one: one.share, default=None)
    if sure and sure[0].share <= BEATEN:
        return sure[0].name, Finding("prior-beaten", "high", _nearer(sure[0], "at least twice as near as"))
    if learnt and mean.share <= BEATEN:
        return ITS_MEAN, Finding("prior-beaten", "high", _mean_tells(mean))
    if sure:
        return sure[0].name, Finding("prior-doubtful", "medium", _nearer(sure[0], "nearer than"))
    if learnt and mean.share < TELLING:
        return ITS_MEAN, Finding("prior-doubtful", "medium", _mean_tells(mean))
    if period is not None and period.chance <= BY_PERIOD and periodic is not None and periodic.share < 1.0:
        return periodic.name, Finding("prior-doubtful", "medium", _periodic(period, periodic))
    return None


def _nearer(rival: Result, how: str) -> str:
    said = "anyone can be who sees the same rows" if rival.name != ITS_MEAN else "f is to its mean"
    return (
        f"At look-alikes of the region, {rival.name} is {how} the prior says that {said}: off by {_cells(rival)[1]}, "
        f"where {short(rival.claimed)} is claimed; that is {_cells(rival)[2]} times the floor. If the prior were "
        f"right, this would happen with a chance of {_chance(rival.chance)}. Readers who do the same may know the "
        "region better than the promise says."
    )


def _mean_tells(mean: Result) -> str:
    return (
        "The mean of the prior was learnt from rows outside and is published. At look-alikes of the region f is within "
        f"{_cells(mean)[1]} of it, where the prior says {short(mean.claimed)}: {_cells(mean)[2]} times the floor. The "
        "rows outside do not tell how far f can be from its mean, and the promise counts on a large number."
    )


def _periodic(period: Unexpected, best: Result) -> str:
    return (
        f"The rows outside the region show a period of about {short(period.length)} that the prior does not expect "
        f"(chance {_chance(period.chance)}). Readers who use it may know the region better than the promise says; at "
        f"look-alikes {best.name} is off by {_cells(best)[1]}, where {short(best.claimed)} is claimed."
    )


def _remedy(finding: Finding, advised: Advice | None) -> str:
    if finding.severity not in ALARMING:
        return finding.remedy
    if advised is None:
        return "Use a prior that knows what the rival knows, or add it to priors=."
    return f"Use another prior: {advised.call}" + ("" if advised.passes else " (nearer, but it does not pass either)")


def _no_look_alike(region: str) -> Finding:
    return Finding(
        "no-look-alike",
        "low",
        f"The shape of the region ({region}) cannot be moved to other rows, so the prior could not be tried on any.",
        "Ask yourself what a reader who knows the subject would predict there, and give such readers among priors=.",
    )


def _cells(one: Result) -> tuple[str, ...]:
    """Errors that V hides are shown as bounds."""
    sign, seen = ("< ", one.least) if one.error < one.least else ("", one.error)
    shares = (f"{sign}{seen / max(unit, 1e-300):.2g}" for unit in (one.floor, one.claimed))
    return (one.name, f"{sign}{short(seen)}", *shares, _chance(one.chance))


def _chance(chance: float) -> str:
    return f"{chance:.1g}" if chance >= 1e-12 else "< 1e-12"


def _wrapped(findings: Sequence[Finding], remedies: bool) -> list[str]:
    texts = [f"{one.severity.upper()}: {one if remedies else one.text}" for one in findings]
    return [line for text in texts for line in wrapped(text)]


def _check_level(alpha: Any, floor: Any) -> None:
    if alpha is not None and floor is not None:
        raise InputError(f"alpha is {alpha!r} and floor is {floor!r}; give one of them.")
    for name, value, most in (("alpha", alpha, 1.0), ("floor", floor, math.inf)):
        wrong = isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value < most
        if value is not None and wrong:
            said = (
                "a number between 0 and 1, such as 0.1" if name == "alpha" else "a positive number, in the units of y"
            )
            raise InputError(f"{name} is {value!r}; give {said}.")
