"""Findings: what a person should know about a promise besides its numbers, as data; and the verdict that follows.

Certificate, warnings, command line and report show the same findings, and all of them ask ``verdict`` whether to
publish. Texts are for people: nothing is ever decided by their words.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..errors import FindingWarning

Severity: TypeAlias = Literal["high", "medium", "low", "note"]
Verdict: TypeAlias = Literal["publish", "publish with care", "do not publish"]

#: From the worst to the least: what a finding is called, and what that means.
SEVERITIES: dict[Severity, tuple[str, str]] = {
    "high": ("do not publish", "the promise is void until this is settled"),
    "medium": ("with care", "the promise is kept, but readers may learn more than it seems"),
    "low": ("to be answered", "only you can know; the promise counts on it"),
    "note": ("note", "nothing is given away; good to know"),
}
_ORDER = list(SEVERITIES)

#: Questions that need not be asked any more where there is an answer.
_ANSWERS = {"parameters-from-sensitive-rows": "parameters-unknown"}

#: The finding on records that are hardly hidden, and what that means in a few words.
RAW_RECORDS, BARE = "raw-records", "records in the region go out almost as they are"

#: What f is, where records carry errors of their own.
NOT_ANY_RECORD = "the typical value at given inputs, not any single record"

#: Findings of these severities change the verdict; ``protect`` warns of them.
ALARMING: tuple[Severity, ...] = ("high", "medium")


@dataclass(frozen=True)
class Finding:
    """One thing to know about a promise or a release.

    ``code`` says what it is, in a few words that never change; scripts may rely on it. ``severity`` is one of

    ======== ==========================================================================================
    "high"   do not publish: the promise is void until this is settled
    "medium" publish with care: the promise is kept, but readers may learn more than it seems
    "low"    a question that only the owner can answer, and that the promise counts on
    "note"   good to know: how the proof was made, or what the promise costs; nothing is given away
    ======== ==========================================================================================

    ``text`` says it in sentences, and ``remedy`` what to do ("" where there is nothing to do).

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

    @property
    def title(self) -> str:
        """The code as a heading."""
        return self.code.replace("-", " ").capitalize()

    def __str__(self) -> str:
        return f"{self.text} {self.remedy}".strip()


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


def verdict(holds: bool, findings: Iterable[Finding]) -> Verdict:
    """Whether to publish: the one place where that is decided."""
    severities = {one.severity for one in findings}
    if not holds or "high" in severities:
        return "do not publish"
    return "publish with care" if "medium" in severities else "publish"


def verdict_in_words(holds: bool, findings: Iterable[Finding], proved: bool, about: str = "") -> str:
    """The verdict as a heading, whether the promise is ``proved``, and, where that is not all, what it is ``about``."""
    found = tuple(findings)
    kept = f"The promise holds. It is {'proved' if proved else 'searched, not all of it is proved'}"
    kept += f". It is about {about}" if about else ""
    high = {one.code for one in found if one.severity == "high"}
    why = "the promise is void" if holds else "the promise does not hold"
    return {
        "publish": kept,
        "publish with care": f"{kept}. Publish with care",
        "do not publish": f"Do not publish: {BARE if holds and high == {RAW_RECORDS} else why}",
    }[verdict(holds, found)]


def warn_of(findings: Iterable[Finding]) -> None:
    """A ``FindingWarning``, which is a ``GuaranteeWarning``, for each alarming finding."""
    for one in findings:
        if one.severity in ALARMING:
            warnings.warn(str(one), FindingWarning, stacklevel=3)
