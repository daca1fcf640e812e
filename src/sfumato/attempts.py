"""Propose and certify: what round-off or a fresh look finds is answered with larger margins, until it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from .certificate import Certificate
from .design import Design
from .errors import InputError
from .inputs import Array
from .problem import Problem
from .reader import TOLERANCE
from .regions import Everywhere
from .search import AskedCover, Margins, Proposal, Say, propose

#: How often a search is only told where it fell short, before it also has to keep more back.
PATIENT = 4

#: A pointwise design for a region is not compared with the joint one if there are more rows and the gap is smaller.
FEW_ROWS, WORTH_COMPARING = 500, 2e-4

#: The certificate of a design, and the inputs at which it falls short.
Examine: TypeAlias = Callable[[Design], tuple[Certificate, Array]]


def certified_design(
    problem: Problem, cover: AskedCover, examine: Examine, say: Say, margins: Margins | None = None
) -> tuple[Design, Certificate]:
    """The design with the least noise that was found, and its certificate; it holds unless eight attempts failed."""
    margins = margins or Margins()
    design, certificate = _attempts(problem, cover, examine, say, margins)
    if not problem.joint:
        design, certificate = _no_more_than_joint(problem, cover, examine, say, margins, design, certificate)
    return design, certificate


def _attempts(
    problem: Problem, cover: AskedCover, examine: Examine, say: Say, margins: Margins
) -> tuple[Design, Certificate]:
    proposal: Proposal | None = None
    short = problem.inputs.values[:0]
    for attempt in range(8):
        # even turns only: the certificate looks at turn 1, which a design never sees
        proposal = _propose(problem, cover, margins, proposal, 100 * attempt, say, short)
        design = problem.published(proposal.cover, proposal.sensitive, proposal.solution)
        say("checking the promise")
        certificate, found = examine(design)
        if certificate.holds:
            break
        # what was found is looked at from now on; only if that does not help is more kept back
        margins = _wider(margins, certificate, patient=len(found) > 0 and attempt < PATIENT)
        short = np.vstack([short, found])
    return design, certificate


def _no_more_than_joint(
    problem: Problem,
    cover: AskedCover,
    examine: Examine,
    say: Say,
    margins: Margins,
    design: Design,
    certificate: Certificate,
) -> tuple[Design, Certificate]:
    """The noise of the joint promise instead, if it is less: it keeps the pointwise one too.

    The least pointwise noise is never more than the least joint one, but what is found is only nearly the least.
    """
    quick = problem.region.points is not None or cover == "rows" or len(problem.inputs) <= FEW_ROWS
    if certificate.holds and not quick and certificate.gap <= WORTH_COMPARING:
        return design, certificate
    jointly = problem.jointly()
    if jointly is None:
        return design, certificate
    say("comparing with the joint promise")
    try:
        joint, _ = _attempts(jointly, cover, examine, say, margins)
    except (InputError, np.linalg.LinAlgError):
        return design, certificate
    if certificate.holds and problem.objective(joint.noise) >= problem.objective(design.noise):
        return design, certificate
    other = replace(design, noise=joint.noise)
    checked, _ = examine(other)
    return (other, checked) if checked.holds else (design, certificate)


def _wider(margins: Margins, certificate: Certificate, patient: bool) -> Margins:
    above, below = certificate.joint_ratio - 1.0, 1.0 - certificate.promised_ratio
    if certificate.guarantee == "pointwise":
        above = 0.0
    if not np.isfinite(above):
        return replace(margins, independent=min(100.0 * margins.independent, 1e-2))
    if above > TOLERANCE:
        margins = replace(margins, joint=min(max(4.0 * margins.joint, margins.joint + 1.5 * above), 0.5))
    if below > TOLERANCE and not patient:
        margins = replace(margins, floor=min(max(4.0 * margins.floor, margins.floor + 4.0 * below, 1e-9), 0.5))
    return margins


def _propose(
    problem: Problem, cover: AskedCover, margins: Margins, last: Proposal | None, turn: int, say: Say, short: Array
) -> Proposal:
    if not isinstance(problem.region, Everywhere):
        return propose(problem, cover, margins, last, turn, say, short)
    say("noise for every input")
    solution = problem.solve_everywhere(1.0 - margins.joint - margins.floor)
    return Proposal("everywhere", problem.inputs.values[:0], solution)
