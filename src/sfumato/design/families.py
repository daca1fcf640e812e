"""Designs for families of priors: of the processes that stand for a family only those that bind are designed for.

A design is made for the prior alone first. The process whose readers then fall shortest joins, and so on, until the
promise is kept for all of them; the certificate examines them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..models import MOST_CELLS, FamilyMember, PriorFamily
from ..promise import Design, FractionTolerance, Reader, can_be_promised_to_families, members_of
from ..proof import Certificate, ExactKnowledge, Examination
from ..regions import Everywhere
from .loop import Attempt
from .problem import Problem
from .sensitive import Say
from .solver import Solver
from .units import dense_rows

#: Cells are as many as it takes that what may be learnt shrinks by no more than this share; by more where these would
#: be too many.
SHRINKS, SHRINKS_AT_MOST = 0.1, 0.5

#: At so many inputs of a region it is looked which process falls short, by more than this share.
LOOKS, SLIGHTLY = 256, 1e-7

#: How far above the least a noise may be, as a share, while members are still added.
COARSE = 1e-2


def check_families(problem: Problem, look: Array) -> Problem:
    """``problem`` with as many cells in its families as its promise needs; refuses what cannot be promised to them.

    ``look`` are inputs of the region.
    """
    if not problem.families:
        return problem
    if problem.insiders is not None:
        raise InputError("insiders is given with a family of priors; name priors=[family.member(...), …] instead.")
    if isinstance(problem.region, Everywhere):
        raise InputError("region is sf.Everywhere(), and the prior is a family; bound the region.")
    if not can_be_promised_to_families(problem.tolerance):
        raise InputError(
            f"tolerance is a {type(problem.tolerance).__name__}, and the prior is a family, whose members know "
            "different amounts beforehand; give alpha or floor."
        )
    return replace(problem, families=tuple(_with_cells(problem, family, look) for family in problem.families))


def _with_cells(problem: Problem, family: PriorFamily, look: Array) -> PriorFamily:
    least = family.member(family.lengthscale[1], family.variance[0], family.noise[0])
    tolerance = problem.tolerance
    if isinstance(tolerance.alone, FractionTolerance):
        share = tolerance.alone.alpha
    else:
        tolerance.check(least, look, problem.inputs)
        share = float(np.min(tolerance.budget(least, look) / least.variance(look)))
    for shrinks in (SHRINKS, SHRINKS_AT_MOST):
        cells = family.cells_for(problem.inputs.features, (1.0 - share) / (1.0 - (1.0 - shrinks) * share))
        if cells <= MOST_CELLS:
            return replace(family, cells=cells)
    low, high = family.lengthscale
    raise InputError(
        f"lengthscale is a range from {low:g} to {high:g}, which takes {cells} priors to cover in "
        f"{problem.inputs.features} column(s) where a share of {share:.2g} may be learnt; at most {MOST_CELLS} are "
        "used. Give a narrower range, or a weaker promise (a larger alpha, a lower floor), or some members: priors=[…]."
    )


def designed_for_families(
    problem: Problem,
    attempt_at: Callable[[Problem, Attempt | None], Attempt],
    examine: Callable[[Design], Examination],
    say: Say,
) -> tuple[Design, Certificate]:
    """The design and the certificate; ``attempt_at`` is for a problem without families, from an earlier attempt on."""
    family = _Family(problem, say)
    attempt, left = attempt_at(family.without(()), None), list(range(len(family.members)))
    binding: tuple[int, ...] = ()
    while True:
        while short := family.short(attempt, left):
            worst = min(short, key=lambda number: short[number])
            binding += (worst,)
            left.remove(worst)
            attempt = family.roughly(attempt, binding)
        if binding:
            attempt = attempt_at(family.without(binding), attempt)
        attempt = family.with_witness(attempt, binding)
        design = replace(attempt.design, others=problem.others, families=problem.families, binding=binding)
        if family.short(attempt, left) and attempt.seen.holds:
            continue
        seen = examine(design)
        if seen.holds or not left or not attempt.seen.holds:
            return design, seen.certificate()
        # it falls short between the inputs that were looked at
        kept = {number: examine(family.alone(attempt, number)).holds for number in left}
        if all(kept.values()):
            return design, seen.certificate()
        binding += (next(number for number in left if not kept[number]),)
        left.remove(binding[-1])


@dataclass(frozen=True, eq=False)
class _Family:
    """The processes that stand for the families of a problem."""

    problem: Problem
    say: Say

    @cached_property
    def members(self) -> tuple[FamilyMember, ...]:
        asked = self.problem
        return members_of(asked.families, asked.tolerance, asked.protects, asked.inputs.features)

    def without(self, binding: Sequence[int]) -> Problem:
        """The problem for these members, and for no family."""
        others = (*self.problem.others, *(self.members[number] for number in binding))
        return replace(self.problem, others=others, families=())

    def alone(self, attempt: Attempt, number: int) -> Design:
        """The design as if all readers were those that one member stands for."""
        return replace(attempt.design, prior=self.members[number], others=(), witness=None)

    def roughly(self, attempt: Attempt, binding: Sequence[int]) -> Attempt:
        """About the noise for these members too, at the same sensitive inputs."""
        self.say(f"noise for {len(binding)} of the {len(self.members)} priors that stand for the family")
        rows = dense_rows(self.without(binding))
        start = attempt.solution if attempt.solution.noise.rank else None
        solution = Solver(rows).program(attempt.sensitive).solve(attempt.tightening, start, COARSE)
        design = rows.published(attempt.cover, attempt.sensitive, solution)
        return replace(attempt, design=design, solution=solution)

    def with_witness(self, attempt: Attempt, binding: Sequence[int]) -> Attempt:
        """With what proves how little noise there could be; records, which only ask for more, are left out of that."""
        if attempt.design.witness is not None or not binding:
            return attempt
        program = Solver(dense_rows(self.without(binding))).program(attempt.sensitive, with_records=False)
        try:
            witness = program.solve(1.0, accuracy=COARSE).witness
        except np.linalg.LinAlgError:
            return attempt
        if witness is None:
            return attempt
        records = np.zeros((len(self.problem.inputs), len(attempt.design.records)))
        each = [part if part.shape[1] != len(attempt.sensitive) else np.hstack([part, records]) for part in witness]
        return replace(attempt, design=replace(attempt.design, witness=tuple(each)))

    def short(self, attempt: Attempt, left: Sequence[int]) -> dict[int, float]:
        """Those members ``left`` whose readers know more than they may at some inputs, and how far from it they are."""
        if not self.problem.protects_function:
            return {}
        region, found = self.problem.region, {}
        places = region.points if region.points is not None else region.probes(LOOKS, self.problem.inputs)
        for number in left:
            reader = Reader(self.members[number])
            known = ExactKnowledge(self.alone(attempt, number), reader, attempt.design.noise, self.problem.plan.device)
            ratio = float(np.min(known.floor_ratios(np.vstack([places, attempt.sensitive]))))
            if ratio < 1.0 - SLIGHTLY:
                found[number] = ratio
        return found
