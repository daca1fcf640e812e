"""Findings: what a person should know about a promise besides its numbers, as data; and the verdict that follows.

Certificate, warnings, command line and report show the same findings, and all of them ask ``verdict`` whether to
publish. Texts are for people: nothing is ever decided by their words.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ..errors import FindingWarning, InputError
from ..text import listed, shown

Severity: TypeAlias = Literal["high", "medium", "low", "note"]
Verdict: TypeAlias = Literal["publish", "publish with care", "do not publish"]

#: From the worst to the least: what a finding is called, and what that means.
SEVERITIES: dict[Severity, tuple[str, str]] = {
    "high": ("do not publish", "the promise is void until this is settled or, where it can be, accepted"),
    "medium": ("with care", "the promise is kept, but readers may learn more than it seems"),
    "low": ("to be answered", "only you can know; the promise counts on it"),
    "note": ("note", "nothing is given away; good to know"),
}
_ORDER = list(SEVERITIES)

#: Questions that need not be asked any more where there is an answer.
_ANSWERS = {"parameters-from-sensitive-rows": "parameters-unknown"}

#: The finding on records that are hardly hidden, and what that means in a few words.
RAW_RECORDS, BARE = "raw-records", "records in the region go out almost as they are"

#: Outputs that look related and are protected as if they were not; priors that a rehearsal or an audit found beaten.
ONE_BY_ONE, PRIOR_BEATEN = "protected-one-by-one", "prior-beaten"

#: High findings that an owner may accept by their code, and what they mean in a few words. The promise holds in spite
#: of them; what breaks it can never be accepted.
ACCEPTABLE = {
    RAW_RECORDS: BARE,
    ONE_BY_ONE: "outputs that look related are protected one by one",
    PRIOR_BEATEN: "other models come much closer than this prior says is possible",
    "values-on-a-grid": "who knows to what step values were rounded takes the noise off",
    "audit-far-below-floor": "readers who use all that is published get far below the floor",
}

#: What readers are told of findings that were made with the owner's data: a sentence without any number.
_TOLD = {
    PRIOR_BEATEN: (
        "On the owner's data another model came at least twice as close as this prior says is possible. Readers with "
        "such a model may know more than is promised."
    ),
    "prior-doubtful": (
        "On the owner's data another model came closer than this prior says is possible. Readers with such a model may "
        "know a little more than is promised."
    ),
    "no-look-alike": "The data have no region like this one to try the prior on.",
}
_NOT_TOLD = "The owner found something on the data, of which only its code is published."

#: What f is, where records carry errors of their own.
NOT_ANY_RECORD = "the typical value at given inputs, not any single record"

#: Findings of these severities change the verdict; ``protect`` warns of them, and of those that an owner would regret:
#: much more noise than needed, another noise than was asked for, a floor that is larger than the data's own spread,
#: values that the prior does not expect, predictions that are none the better. None breaks a promise.
ALARMING: tuple[Severity, ...] = ("high", "medium")
REGRETTED = (
    "noise-above-least",
    "least-noise-instead",
    "floor-above-spread",
    "values-far-from-prior",
    "predictions-not-better",
)


@dataclass(frozen=True)
class Finding:
    """One thing to know about a promise or a release.

    ``code`` says what it is, in a few words that never change; scripts may rely on it. ``severity`` is one of

    ======== ==========================================================================================
    "high"   do not publish: the promise is void until this is settled or, where it can be, accepted
    "medium" publish with care: the promise is kept, but readers may learn more than it seems
    "low"    a question that only the owner can answer, and that the promise counts on
    "note"   good to know: how the proof was made, or what the promise costs; nothing is given away
    ======== ==========================================================================================

    ``text`` says it in sentences, and ``remedy`` what to do ("" where there is nothing to do). ``accepted``: the owner
    knows of it and publishes all the same. It then counts as "medium"; a broken promise counts as "high" all the same.

    >>> found = Finding("rows-only", "medium", "Only the rows are protected.", 'Use cover="auto".')
    >>> print(found)
    Only the rows are protected. Use cover="auto".
    >>> found.title
    'Rows only'
    """

    code: str
    severity: Severity
    text: str
    remedy: str = ""
    accepted: bool = False

    @property
    def stops(self) -> bool:
        """Whether nothing may be published because of it."""
        return self.severity == "high" and not (self.accepted and self.code in ACCEPTABLE)

    @property
    def label(self) -> str:
        """What it is called in a list."""
        return "accepted" if self.accepted and not self.stops else SEVERITIES[self.severity][0]

    @property
    def title(self) -> str:
        """The code as a heading."""
        return self.code.replace("-", " ").capitalize()

    def __str__(self) -> str:
        return shown(f"{self.text} {self.remedy}".strip())


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, the worst first; no question that another finding answers."""
    found = dict.fromkeys(findings)
    answered = {_ANSWERS.get(one.code) for one in found}
    return tuple(sorted((one for one in found if one.code not in answered), key=lambda one: _ORDER.index(one.severity)))


def worse_than_found(claimed: Iterable[Finding], found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Alarming findings that an owner admits to and that could not be ``found`` again.

    No good news in a file is believed. Bad news is kept: the owner may know what the file alone cannot show, such as
    where the parameters of the prior come from.
    """
    known = {one.code: _ORDER.index(one.severity) for one in reversed(in_order(found))}
    worse = [one for one in claimed if _ORDER.index(one.severity) < known.get(one.code, len(_ORDER))]
    return tuple(one for one in worse if one.severity in ALARMING)


def accepting(findings: Iterable[Finding], codes: Collection[str]) -> tuple[Finding, ...]:
    """The findings, with those accepted that have one of the ``codes`` and that can be."""
    return tuple(
        replace(one, accepted=True) if one.code in codes and one.code in ACCEPTABLE else one for one in findings
    )


def asked_acceptance(accept: Any) -> tuple[str, ...]:
    """The codes of findings that an owner accepts, each of which can be."""
    if not isinstance(accept, (str, tuple, list, set, frozenset)):
        raise InputError(f'accept is {str(accept)[:60]!r}; give the codes of findings, as in accept=("raw-records",).')
    codes = (accept,) if isinstance(accept, str) else tuple(accept)
    for code in codes:
        if not isinstance(code, str) or code not in ACCEPTABLE:
            raise InputError(
                f"accept names {str(code)[:60]!r}, which cannot be accepted or need not be. These can: "
                f"{listed(list(ACCEPTABLE))}. A promise that does not hold can never be accepted."
            )
    return codes


def check_accepted(codes: Iterable[str], findings: Iterable[Finding], later: Collection[str] = ()) -> None:
    """Refuse to accept what was not found; ``later`` are the codes of what only the values can show."""
    there = list(dict.fromkeys(one.code for one in findings if one.severity == "high"))
    for code in codes:
        if code not in there and code not in later:
            found = f"What was found: {listed(there)}" if there else "There is nothing that would have to be accepted"
            raise InputError(f"accept names {code!r}, which was not found here; leave it out. {found}.")


def told_to_readers(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings on the owner's data as they may be published: no text or number that was made with the data."""
    return tuple(replace(one, text=_TOLD.get(one.code, _NOT_TOLD), remedy="") for one in findings)


def how_to_accept(stopping: Iterable[Finding]) -> str:
    """What an owner does who publishes in spite of these findings, or that nothing can be done."""
    codes = list(dict.fromkeys(one.code for one in stopping))
    if not all(code in ACCEPTABLE for code in codes):
        return "That cannot be accepted."
    given = ", ".join(f'"{code}"' for code in codes) + "," * (len(codes) == 1)
    asked = " ".join(f"--accept {code}" for code in codes)
    return f"To publish all the same, accept it by its code: accept=({given}), {asked}."


def verdict(holds: bool, findings: Iterable[Finding]) -> Verdict:
    """Whether to publish: the one place where that is decided."""
    found = tuple(findings)
    if not holds or any(one.stops for one in found):
        return "do not publish"
    return "publish with care" if any(one.severity in ALARMING for one in found) else "publish"


def verdict_in_words(holds: bool, findings: Iterable[Finding], proved: bool, about: str = "") -> str:
    """The verdict as a heading, whether the promise is ``proved``, and, where that is not all, what it is ``about``."""
    found = tuple(findings)
    kept = f"The promise holds. It is {'proved' if proved else 'searched, not all of it is proved'}"
    kept += f". It is about {about}" if about else ""
    accepted = dict.fromkeys(one.code for one in found if one.severity == "high" and not one.stops)
    stopping = dict.fromkeys(one.code for one in found if one.stops)
    why = "the promise is void" if holds else "the promise does not hold"
    if holds and all(code in ACCEPTABLE for code in stopping):
        why = "; ".join(ACCEPTABLE[code] for code in stopping)
    return {
        "publish": kept,
        "publish with care": f"{kept}. Publish with care" + (f": accepted {listed(list(accepted))}" * bool(accepted)),
        "do not publish": f"Do not publish: {why}",
    }[verdict(holds, found)]


def warn_of(findings: Iterable[Finding]) -> None:
    """A ``FindingWarning``, which is a ``GuaranteeWarning``, for each alarming finding that is not accepted."""
    for one in findings:
        if (one.severity in ALARMING or one.code in REGRETTED) and not one.accepted:
            warnings.warn(str(one), FindingWarning, stacklevel=3)
