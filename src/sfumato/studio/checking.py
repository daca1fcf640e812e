"""The design as it is published, its proof, and everything that speaks against it: work behind the page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..cli import rehearsed_on_few
from ..design import Mechanism, Worth
from ..errors import GuaranteeError, InputError
from ..evaluate import Effect, Levels, Rehearsal, compare_objectives, compare_promises
from ..ledger import Ledger
from ..models import Prior
from ..progress import Listener
from ..promise import PRIOR_BEATEN
from ..proof import Certificate
from ..regions import Region
from ..release import Release
from .choices import Choices

#: Findings that only an audit can make.
OF_AUDIT = ("values-on-a-grid", "audit-far-below-floor")


@dataclass(frozen=True)
class Checked:
    """What was found on a design and the owner's values: the ``certificate`` has the findings on both.

    ``release`` is what Publish writes, and what is audited. It is None where the verdict is against it (``refused``
    says why), and with a ledger, which counts a release from the moment it is drawn. ``compared`` says what other
    promises would cost, ``worth`` what the rows outside tell of the best predictions.
    """

    mechanism: Mechanism
    certificate: Certificate
    rehearsal: Rehearsal | None
    effect: Effect | None
    release: Release | None
    refused: str = ""
    compared: str = ""
    worth: Worth | None = None


class Problem(NamedTuple):
    """What work behind the page starts from; the session may change meanwhile."""

    prior: Prior
    X: pd.DataFrame
    y: pd.Series[Any]
    region: Region
    choices: Choices
    insiders: Any
    folder: Path


def rehearsed(problem: Problem, step: Listener) -> Rehearsal:
    prior, X, y, region, choices, *_ = problem
    return rehearsed_on_few(prior, X, y, region, **choices.asked, progress=step)


def checked_design(problem: Problem, levels: Levels, tried: Rehearsal | None, step: Listener) -> Checked:
    """The design of ``problem`` as it is published; ``tried`` is its rehearsal, where that was made already."""
    prior, X, y, region, choices, insiders, folder = problem
    if tried is None and choices.is_rehearsed:
        tried = rehearsed(problem, step)
    findings = () if tried is None else tried.findings
    codes = {one.code for one in findings}
    # others are accepted of the audit, which comes later
    accept = [code for code in before_audit(choices) if code != PRIOR_BEATEN or code in codes]
    how: dict[str, Any] = {"accept": accept, "findings": findings}
    if choices.ledger is not None:
        how |= {**choices.asked, "protects": choices.protects, "insiders": insiders, "objective": choices.objective}
        how |= {"output_name": choices.output, "progress": step}
        how |= {} if choices.share is None else {"share": choices.share}
        mechanism = Ledger(folder / choices.ledger).protect(prior, X, region, **how)
        return Checked(mechanism, mechanism.certificate.with_findings(*mechanism.findings_on(y)), tried, None, None)
    mechanism = levels.protect(**choices.asked, **how, progress=step)
    effect = levels.effect_of(mechanism)
    certificate = mechanism.certificate.with_findings(*mechanism.findings_on(y))
    release, refused = None, ""
    try:
        release = mechanism.release(y, output_name=choices.output)
    except (GuaranteeError, InputError) as error:
        refused = str(error)
    design = mechanism.design
    compared = compare_objectives(design, certificate) or compare_promises(design, choices.output)
    said, worth = "" if compared is None else str(compared), mechanism.worth(y)
    return Checked(mechanism, certificate, tried, effect, release, refused, said, worth)


def before_audit(choices: Choices) -> tuple[str, ...]:
    """The codes of findings that are accepted, without those that only an audit can make."""
    return tuple(code for code in choices.accept if code not in OF_AUDIT)
