"""What an attack claims, and what it really achieves under the owner's prior."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..inputs import Array
from .target import Evidence, Target, root_mean_square

Severity = Literal["none", "low", "medium", "high", "critical"]

#: Round-off that a ratio of standard deviations may have.
SLACK = 1e-6

#: A reader with a prior of its own is closer than promised below this share of the floor and of the Bayes error.
CLOSER = 0.8


@dataclass(frozen=True, eq=False)
class Attempt:
    """An attack's estimate of f at the sensitive inputs, with the error bars that it believes in.

    ``evidence`` is all that the estimate was computed from, as the owner knows it to be. ``covered``: whether the
    promise is about this adversary. ``harm``: how bad it is when such an adversary gets below the floor. ``did`` and
    ``remedy`` are half-sentences for people. An ``own_prior`` may be nearer to the truth than the owner's: errors
    expected under the owner's prior then say little, and the error on these data has to be looked at.
    """

    name: str
    mean: Array
    std: Array
    evidence: Evidence
    covered: bool
    harm: Severity
    did: str
    remedy: str
    own_prior: bool = False


@dataclass(frozen=True)
class Skipped:
    """An attack that could not be tried, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Outcome:
    """What one attack achieved at the sensitive inputs S; root means of squares over S, in the units of y.

    Guarantee: an estimate f̂(s) that is any function of evidence E, linear or not, has under the owner's prior

        E[(f̂(s) − f(s))² | E] = Var(f(s) | E) + (f̂(s) − E[f(s) | E])² ≥ Var(f(s) | E).

    ``actual`` is the root of the left side, exactly, for the values that were published. Where the evidence is the
    release alone, Var(f(s)|E) is the posterior variance that the certificate bounds; so while the certificate holds,
    ``ratio ≥ 1`` for every attack on the release alone, however it was computed.

    ============ =====================================================================================
    ``rmse``     the distance from the owner's best knowledge of f(S), on these data
    ``claimed``  the standard deviation that the attacker believes in
    ``actual``   the error to be expected under the owner's prior, given the evidence
    ``floor``    what was promised
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

    @property
    def below(self) -> bool:
        """It got below the floor, by what it knows or by what turned out."""
        return self.beaten or self.closer

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(target: Target, attempt: Attempt) -> Outcome:
    """Compare an attempt with the truth, with its own claims and with the promise."""
    known = attempt.evidence.seen_by(target.prior)
    squares = known.variance(target.inputs) + (attempt.mean - known.mean_at(target.inputs)) ** 2
    promised = target.floor > 0
    ratios = np.sqrt(squares[promised]) / target.floor[promised]
    ratio = float(np.min(ratios, initial=np.inf))
    rmse, floor = target.error(attempt.mean), root_mean_square(target.floor)
    beaten = ratio < 1 - SLACK
    closer = attempt.own_prior and rmse < CLOSER * min(floor, target.bayes_error)
    severity: Severity = "none" if attempt.covered else "low"
    if beaten or closer:
        severity = "critical" if beaten and attempt.covered else attempt.harm
    actual = root_mean_square(np.sqrt(squares))
    return Outcome(
        attempt.name,
        rmse,
        root_mean_square(attempt.std),
        actual,
        floor,
        ratio,
        attempt.covered,
        beaten,
        closer,
        severity,
        _words(attempt, beaten, closer, rmse if closer else actual, floor, ratio),
    )


def _words(attempt: Attempt, beaten: bool, closer: bool, reached: float, floor: float, ratio: float) -> str:
    verb = "on these data it is off by" if closer else "it knows f to within"
    result = f"{attempt.did}: {verb} ± {reached:.3g} where ± {floor:.3g} is promised"
    if beaten:
        result += f", at worst {ratio:.2g} of the floor"
    if beaten or closer:
        return f"{result}. Remedy: {attempt.remedy}."
    return f"{result}." + ("" if attempt.covered else f" If you fear it: {attempt.remedy}.")
