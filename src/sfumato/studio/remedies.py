"""What to do about findings, in the words of the page: its steps in place of arguments and options of the command."""

from __future__ import annotations

from collections.abc import Iterable

from ..promise import ACCEPTABLE, PRIOR_BEATEN, RAW_RECORDS, Finding
from ..text import listed

#: What only programs know: a remedy that has one of these is said in other words.
_FOR_PROGRAMS = ("--", "=", "sf.", "prior.", "fit_prior")

_PROGRAM = "for that take the program (Save and repeat, Copy as Python)"
_STRONGER = "Choose another level (step How much) or a smaller region, and check again."
_LEAST = "The least noise (step How much, What the noise is the best for)"

#: By the code of a finding.
_HERE = {
    "does-not-hold": _STRONGER,
    "insiders-learn-more": _STRONGER,
    "parameters-unknown": (
        "What was learnt here was learnt from the rows outside. Values that you gave yourself (step Model) must not "
        "come from the rows inside."
    ),
    "parameters-from-sensitive-rows": 'Tick "Fit to the rows outside the region only" (step Model).',
    "rows-held-by-others": (
        "Say who holds rows (step What is sensitive, From whom), or take rows that others hold out of the data."
    ),
    "insiders-searched": "Records alone (step What is sensitive) need no inputs between them.",
    "only-release": "Publish once, or let a ledger count all releases (step How much).",
    "better-model": (
        "Rehearse (step Model) and audit (below): both try other models on your data. The promise can be made to "
        f"several models at once; {_PROGRAM}."
    ),
    "known-elsewhere": (
        "Enlarge the region, or choose a larger floor. Related columns can be published as one; for that take the "
        "command sfumato protect."
    ),
    "smooth-kernel": "Try the kernel matern52 (step Model), and compare.",
    "measurement-errors": (
        f"When in doubt make the promise to models with a smaller and with a larger error variance at once; {_PROGRAM}."
    ),
    "searched": f"Protect a smaller region, or bound fewer columns. A proof may take longer than here; {_PROGRAM}.",
    PRIOR_BEATEN: "Use a prior that knows what the rival knows: the rehearsal (step Model) may advise one.",
    "no-look-alike": (
        "Ask yourself what a reader who knows the subject would predict there, and choose a prior that knows it (step "
        "Model)."
    ),
    "free-columns": f"Bound these columns too (step What is sensitive). They can range over all values; {_PROGRAM}.",
    "trusts-the-prior": f"Rehearse (step Model) and audit (below); when in doubt choose: {_LEAST}.",
    "predictions-not-better": f"Choose: {_LEAST}, unless you know better than these rows.",
    "least-noise-instead": f"Choose: {_LEAST}. What stood in the way is said above; {_PROGRAM}.",
    RAW_RECORDS: "Protect each record too, or records alone (step What is sensitive), where rows are people's.",
}


def remedy(one: Finding) -> str:
    """What to do about a finding, on this page; empty where there is nothing."""
    is_for_programs = any(mark in one.remedy for mark in _FOR_PROGRAMS)
    return _HERE.get(one.code, one.remedy) if is_for_programs else one.remedy


def refusal(stopping: Iterable[Finding]) -> str:
    """That nothing is published because of these findings, and where that can be changed."""
    found = tuple(stopping)
    said = " ".join(f"{one.text} {remedy(one)}".strip() for one in found)
    if not all(one.code in ACCEPTABLE for one in found):
        return f"Nothing is published. {said} That cannot be accepted."
    names = listed([one.title for one in found])
    return f"Nothing is published. {said} To publish all the same, accept in the step Check, What was found: {names}."
