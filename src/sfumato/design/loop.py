"""From a region to a noise, in a loop with the proof: design for some sensitive inputs, prove, mend what falls short.

A finite set S₀ of sensitive inputs protects less than the region around it. So the tolerance at S₀ is tightened,
Δ′ = t Δ with t ≤ 1, as far as the proof needs it; counterexamples that would need much are added to S₀. Where each
value is promised by itself, counterexamples are added until there are none. What needs no noise gets none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch

from ..arrays import Array
from ..errors import GuaranteeError, InputError
from ..noise import IndependentNoise, no_noise
from ..promise import Cover, Design
from ..proof import FAR_FROM_BEST, Certificate, Examination, Pieces
from ..regions import Everywhere
from ..text import counted
from .insiders import ForInsiders, settled
from .problem import BackEnd, Solution
from .sensitive import AskedCover, Candidates, Say, Spread
from .solver import Program, Solver

#: A search gives up after this many designs; those that end well take a few.
MOST_DESIGNS = 60

#: At how many inputs of the region the floor is compared with what may be learnt; the least unit of margins.
LOOKS, LEAST_UNIT = 256, 1e-4

#: A tightening is loosened again where readers are this share away from the tolerance (in ``_Loop.unit``, like others).
TO_SPARE = 2e-3

#: A tightening goes further than what was seen to be needed: what is learnt falls more slowly than t, and the worst
#: input is seen only nearly.
FURTHER, MORE_THAN_SEEN = 1.1, 4e-4

#: After inputs were added, the first tightening is looser by this share; fewer new inputs than this share are no help.
LOOSER, LEAST_GROWTH = 0.02, 0.02

#: Served inputs of which data without noise tell less than this share of the variance are out of reach.
NOTHING_TOLD = 1e-6

#: Letting through whatever else is allowed is tried at so many tightenings.
MOST_RAISES = 3

#: How much tighter the tolerance may be held for the sake of a proof, as a share; beyond, the region is searched.
PRICE_OF_PROOF = 0.1

#: Tightening may raise the trace by about this share at a time; inputs that would need more are added to the cover.
#: A greedy cover fills the region already, so it is tightened instead.
AFFORDABLE_RISE = {"greedy": 0.1, "exchange": 0.01}

#: Sensitive inputs that need more tightening than this are first joined by those that fall short.
FIRST_TIGHTEST = 0.85

#: Sensitive inputs whose tolerance would have to be tightened below this share do not represent their region.
TIGHTEST = 0.3

#: Cutting planes start from at most ``FIRST_MOST`` inputs, which determine the others to this share of their
#: standard deviation. While inputs are added, noise is computed to ``COARSE_GAP``.
FIRST_EPSILON, FIRST_MOST, COARSE_GAP = 0.3, 64, 1e-3

#: The share of the tolerance that is kept back where each value is promised by itself, for what a proof needs; and
#: where a region can only be searched, for inputs that were not looked at.
KEPT_BACK, KEPT_BACK_UNSEEN = 2e-4, 2e-3

#: A pointwise design for a region is not compared with the joint one if there are more rows and the gap is smaller.
ROWS_COMPARED, WORTH_COMPARING = 500, 2e-4

#: How often finitely many inputs are designed for with larger margins.
MOST_ATTEMPTS = 8

#: What the certificate finds out about a design; the pieces are those parts of the region that need noise. It may be
#: asked for a quick answer, where a proof was tried and took too long.
Examine: TypeAlias = Callable[[Design, Sequence[Pieces] | None, bool], Examination]


#: What is raised where no design is found.
NO_DESIGN = (InputError, GuaranteeError, np.linalg.LinAlgError)


class NoCover(InputError):  # noqa: N818
    """No sensitive inputs were found that stand for the region."""


@dataclass(frozen=True)
class Margins:
    """How much more than the bare promise is aimed at, so that round-off falls on the safe side.

    ``joint``: the tolerance is held tighter by this share at the sensitive inputs. ``independent``: sensitive values
    that the others determine to this share of their variance are left out.
    """

    joint: float = 1e-9
    independent: float = 1e-10


@dataclass(frozen=True, eq=False)
class Attempt:
    """A design, what was found out about it, and what it was made of."""

    design: Design
    seen: Examination
    cover: Cover
    sensitive: Array
    solution: Solution
    tightening: float

    @property
    def passes(self) -> bool:
        """Whether the promise holds, and nothing is left open that a tighter design could prove."""
        return self.seen.holds and not len(self.seen.short)


def attempted(
    back_end: BackEnd,
    cover: AskedCover,
    examine: Examine,
    say: Say,
    insist: bool,
    start: Attempt | None = None,
    spread: Spread | None = None,
) -> Attempt:
    """The design with the least noise that was found, or with the best predictions, where the problem serves inputs.

    ``start`` is one for fewer readers. ``spread`` has what was worked out for another promise on the same data.
    """
    return _Loop(back_end, cover, examine, say, Margins(), insist, start, spread).best()


def certified_design(
    back_end: BackEnd,
    cover: AskedCover,
    examine: Examine,
    say: Say,
    margins: Margins | None = None,
    insist: bool = False,
) -> tuple[Design, Certificate]:
    """The design with the least noise that was found, and its certificate; it fails only where none was found.

    A proof may cost some noise; with ``insist``, any.
    """
    margins = margins or Margins()
    try:
        attempt = _Loop(back_end, cover, examine, say, margins, insist).best()
    except NoCover:
        jointly = back_end.jointly() if not back_end.problem.joint else None
        if jointly is None:
            raise
        # the joint promise keeps the pointwise one too, and may be found where cutting planes give up
        design = _Loop(jointly, cover, examine, say, margins, insist).best().design
        alone = replace(design, guarantee="pointwise", witness=None)
        return alone, examine(alone, None, False).certificate()
    insiders = back_end.problem.insiders
    if insiders is not None:
        made = ForInsiders(back_end, insiders, attempt.cover, attempt.sensitive, say)
        if back_end.problem.serves is not None:
            return _serving_insiders(made, attempt, examine)
        design, seen = settled(made, attempt.tightening, lambda one: examine(one, None, False))
        return design, seen.certificate()
    certificate = attempt.seen.certificate()
    if back_end.problem.joint or attempt.solution.explained is not None:
        return attempt.design, certificate
    return _no_more_than_joint(back_end, cover, examine, say, margins, attempt.design, certificate)


def _serving_insiders(made: ForInsiders, attempt: Attempt, examine: Examine) -> tuple[Design, Certificate]:
    """The best predictions that were found for insiders too, from a design for outsiders on.

    Where they may be far from the best, the least noise is made as well, and taken where it serves readers better.
    """

    def found(one: ForInsiders) -> tuple[Design, Certificate]:
        design, seen = settled(one, attempt.tightening, lambda tried: examine(tried, None, False))
        return design, seen.certificate()

    least = replace(made, serving=False, _before={}, _binding=[])
    try:
        best = found(made)
    except NO_DESIGN:
        return found(least)  # it may keep the same promise
    if best[1].holds and best[1].gap <= FAR_FROM_BEST:
        return best
    made.say("comparing with the least noise")
    try:
        design, certificate = found(least)
    except NO_DESIGN:
        return best
    if not certificate.holds:
        return best
    # a bound for the same sensitive inputs is one for this noise too
    same = np.array_equal(best[0].sensitive, design.sensitive)
    witness, groups = (best[0].witness, best[0].designed_for) if same else (None, ())
    design = replace(design, serves=best[0].serves, witness=witness, designed_for=groups)
    certificate = examine(design, None, False).certificate()
    return best if best[1].holds and best[1].explained >= certificate.explained else (design, certificate)


def rough_objective(back_end: BackEnd, cover: AskedCover, margins: Margins, say: Say) -> float | None:
    """About what the noise of the joint promise over a region costs, without a design; None where that is not said."""
    problem = back_end.problem
    if not problem.joint or cover == "rows" or problem.region.points is not None or problem.region.is_everywhere:
        return None
    solver = Solver(back_end)
    candidates = Candidates(solver, Spread(solver), 1.0 - KEPT_BACK, 1.0, margins.independent, say)
    program = solver.program(candidates.stand_ins(cover)[1], with_records=False)
    return program.rough_cost(candidates.rough_tightening(program)) if solver.is_well_conditioned else None


class _Loop:
    """The loop for one problem."""

    def __init__(
        self,
        back_end: BackEnd,
        cover: AskedCover,
        examine: Examine,
        say: Say,
        margins: Margins,
        insist: bool = False,
        start: Attempt | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.back_end, self.cover, self.say, self.margins = back_end, cover, say, margins
        self.insist, self.start = insist, start
        self.solver = Solver(back_end) if spread is None else spread.solver
        self.spread = spread or Spread(self.solver)
        self.problem = back_end.problem
        self._examine = examine
        self.quick = False
        self.needed: Sequence[Pieces] | None = None
        self.close: Sequence[Pieces] | None = None

    def best(self) -> Attempt:
        """The best that was found by the problem's objective."""
        found = self.run()
        return found if self.problem.serves is None else self._with_best_predictions(found)

    def run(self) -> Attempt:
        problem = self.problem
        if problem.protects == "records":
            self.say(f"noise for {len(problem.records)} records")
            nothing = problem.inputs.values[:0]
            return self._widening("rows", nothing, self.solver.program(nothing))
        if isinstance(problem.region, Everywhere):
            self.say("noise for every input")
            return self._widening("everywhere", problem.inputs.values[:0], self.solver.program_everywhere())
        if problem.region.points is not None:
            return self._for_points("points", problem.region.points)
        if self.cover == "rows":
            if problem.rows_inside.shape[0] == 0:
                place = problem.region.in_words(problem.inputs.names)
                raise InputError(f"cover is 'rows', but no row of the data has {place}; use cover=\"auto\".")
            return self._for_points("rows", problem.rows_inside)
        return self._for_region()

    def _attempt(self, cover: Cover, sensitive: Array, solution: Solution, tightening: float) -> Attempt:
        design = self.back_end.published(cover, sensitive, solution)
        self.say(f"proving the promise, {counted(len(sensitive), 'sensitive input')}")
        # a design that falls short where the last one nearly did need not be looked at everywhere; sums are quick
        looks = [self.needed] if self.close is None or design.noise.compressed else [self.close, self.needed]
        for pieces in looks:
            seen = self._examine(design, pieces, self.quick)
            if not seen.holds:
                break
        if self.needed is not None and pieces is self.needed:
            self.close = seen.close
        return Attempt(design, seen, cover, sensitive, solution, tightening)

    # ---------------------------------------------------------------- finitely many inputs

    def _for_points(self, cover: Cover, points: Array) -> Attempt:
        sensitive = np.unique(self.back_end.admissible(points) + 0.0, axis=0)
        if self.cover == "rows" and self.problem.joint:
            # of rows that the others determine nothing more is promised jointly, and the certificate says so
            sensitive = self._independent(sensitive)
        try:
            return self._widening(cover, sensitive, self.solver.program(sensitive))
        except (np.linalg.LinAlgError, GuaranteeError) as error:
            if not self.problem.joint or len(sensitive) < 2:
                raise
            raise InputError(
                f"region has {len(points)} {cover} that are too close together to be promised jointly: the kernel "
                "cannot tell some combination of them from 0 in double precision. Give fewer points, further apart, a "
                'box around them, or guarantee="pointwise".'
            ) from error

    def _independent(self, points: Array) -> Array:
        from .sensitive import independent_points

        return independent_points(self.solver, points, self.margins.independent)

    def _widening(self, cover: Cover, sensitive: Array, program: Program) -> Attempt:
        """The noise for these inputs, with margins that grow until the promise holds."""
        margin = self.margins.joint
        for _ in range(MOST_ATTEMPTS):
            attempt = self._attempt(cover, sensitive, program.solve(1.0 - margin), 1.0 - margin)
            seen = attempt.seen
            if seen.holds:
                return attempt
            over = [seen.joint_ratio - 1.0] if self.problem.joint or cover == "everywhere" else []
            over += [float(np.max(seen.learnt, initial=1.0)) - 1.0]
            if not np.all(np.isfinite(over)):
                if self.problem.joint and cover == "points":
                    raise GuaranteeError("the joint promise cannot be checked at these inputs.")
                return attempt
            margin = min(max(4.0 * margin, margin + 1.5 * max(over)), 0.5)
        return attempt

    # ---------------------------------------------------------------- a region

    def _for_region(self) -> Attempt:
        self.say("looking over the region")
        size = self.solver.exposures[0].size
        if self.needed is None:
            bare = self._without_noise(size)
            if bare.passes:
                return bare
        kept_back = self.unit * (KEPT_BACK_UNSEEN if self.quick else KEPT_BACK)
        limit, independent = 1.0 - kept_back, self.margins.independent
        candidates = Candidates(self.solver, self.spread, limit, self.unit, independent, self.say)
        if not self.problem.joint:
            return self._cut(candidates, limit)
        return self._settle(candidates, limit if self.quick else 1.0 - self.margins.joint)

    def _with_best_predictions(self, least: Attempt) -> Attempt:
        """The best predictions that were found, from the design with the ``least`` noise on."""
        if least.solution.noise.trace == 0.0:
            return least
        told = float(torch.sum(self.solver.best_predictions(least.solution.noise.shift).benefit ** 2))
        if not told >= NOTHING_TOLD:
            raise InputError(
                f"serve has no input of which rows tell anything under the prior: {told:.1g} of the variance there, "
                'without any noise. Give inputs nearer to the rows, or objective="noise".'
            )
        self.say("looking for the best predictions")
        spread = Spread(Solver(self.back_end, self.solver, serving=True), self.spread)
        loop = _Loop(self.back_end, self.cover, self._examine, self.say, self.margins, self.insist, least, spread)
        loop.needed, loop.quick = self.needed, self.quick
        try:
            best = loop.raised(loop.run())
        except NO_DESIGN:
            # the same problem was solved for the least noise, which keeps the same promise
            return self._examined(least, replace(least.design, serves=None))
        same = np.array_equal(best.sensitive, least.sensitive)
        ours, theirs = ((one.seen.holds, one.passes) for one in (best, least))
        if ours == theirs:
            here, there = (_explained(spread.solver, one) for one in (best, least))
            # where the least noise is as good as it was asked to be, it counts on the prior less; and a tighter promise
            # may cost more than the better objective brings
            nearly_best = same and there >= (1.0 - self.problem.plan.gap) * best.solution.most
            if there <= here and not nearly_best:
                return best
        elif ours > theirs:
            return best
        # a witness is for its own sensitive inputs
        return self._examined(least, replace(least.design, witness=best.design.witness if same else None))

    def raised(self, attempt: Attempt) -> Attempt:
        """Whatever else is allowed let through, where that keeps the promise between the sensitive inputs too.

        It may have to be held a little tighter for that; readers explain no less all the same.
        """
        solution, t, explained = attempt.solution, attempt.tightening, attempt.solution.explained
        program = self.solver.program(attempt.sensitive)
        for _ in range(MOST_RAISES):
            more = solution.raised()
            if more is solution or more.explained is None or explained is None or more.explained < explained:
                break
            tried = self._attempt(attempt.cover, attempt.sensitive, more, t)
            before, now = ((one.seen.holds, one.passes) for one in (attempt, tried))
            if now >= before:
                return tried
            if not np.isfinite(tried.seen.worst):
                break
            t *= (1.0 - self.unit * MORE_THAN_SEEN) / max(tried.seen.worst, 1.0)
            solution = program.solve(t, solution)
        return attempt

    def _examined(self, attempt: Attempt, design: Design) -> Attempt:
        """An attempt with another ``design``."""
        return replace(attempt, design=design, seen=self._examine(design, None, self.quick))

    @cached_property
    def unit(self) -> float:
        """What margins are counted in, so that they are shares of the floor: the least floor² over what may be learnt.

        It is at most 1: where little may be learnt, margins are shares of that.
        """
        points, least = self.problem.region.probes(LOOKS, self.problem.inputs), 1.0
        for one in self.solver.exposures:
            own = points[one.tolerance.applies_to(points)]
            if len(own):
                budget = np.maximum(one.tolerance.budget(one.unknown, own), 0.0)
                left = np.maximum(one.unknown.variance(own) - budget, 0.0)
                least = min(least, float(np.min(left / np.maximum(budget, np.finfo(float).tiny))))
        return max(least, LEAST_UNIT)

    def _without_noise(self, size: int) -> Attempt:
        """What the data tell without noise; what is proved then stays proved."""
        start = self.problem.region.probes(1, self.problem.inputs)[:1]
        place = self.back_end.admissible(start)[:1]
        diagonal = self.problem.structure == "diagonal"
        nothing = IndependentNoise(np.zeros(size)) if diagonal else no_noise(size)
        attempt = self._attempt(self._kind(), place, Solution(nothing), 1.0)
        self.needed, self.quick = attempt.seen.open, attempt.seen.is_searched
        return attempt

    def _kind(self) -> Cover:
        return "exchange" if self.cover == "exchange" or not self.problem.joint else "greedy"

    def _settle(self, candidates: Candidates, loosest: float) -> Attempt:
        """The joint promise: tighten, or add what falls well short, until all is proved and little is to spare."""
        solution: Solution | None = None
        cover: Cover
        if self.start is None:
            cover, sensitive = candidates.stand_ins(self.cover)
            program = self.solver.program(sensitive)
            t = min(loosest, max(candidates.tightening(program), FIRST_TIGHTEST))
        else:
            cover, sensitive, solution = self.start.cover, self.start.sensitive, self.start.solution
            program, t = self.solver.program(sensitive), min(loosest, self.start.tightening)
        for _ in range(MOST_DESIGNS):
            solution = program.solve(t, solution)
            attempt = self._attempt(cover, sensitive, solution, t)
            if attempt.passes:
                break
            grown = self._grown(candidates, attempt)
            if grown is None:
                break
            sensitive, solution, t = grown, None, min(loosest, t * (1.0 + LOOSER))
            program = self.solver.program(sensitive)
        return self._tightened(program, attempt, loosest)

    def _grown(self, candidates: Candidates, attempt: Attempt) -> Array | None:
        """The sensitive inputs with those that fall well short; None where tightening costs less, or nothing helps."""
        seen, sensitive, cover = attempt.seen, attempt.sensitive, attempt.cover
        worst = seen.worst
        if not np.isfinite(worst):
            raise self._hopeless()
        if worst <= 1.0 + AFFORDABLE_RISE[cover] * self.solver.price_of_tightening(attempt.solution):
            return None
        short = seen.learnt > 1.0 + 0.2 * (worst - 1.0)
        if not np.any(short):
            return None
        grown = candidates.grown(sensitive, seen.short[short], seen.learnt[short])
        return grown if len(grown) >= len(sensitive) * (1.0 + LEAST_GROWTH) else None

    def _tightened(self, program: Program, attempt: Attempt, loosest: float) -> Attempt:
        """The loosest design for these sensitive inputs that is proved, nearly; from ``attempt`` on.

        Where a proof would cost too much noise, the loosest for which the promise seems to hold.
        """
        solution, t = attempt.solution, attempt.tightening
        proved: Attempt | None = None
        holding: Attempt | None = None
        # how loose a design may be, as far as was seen
        most = loosest
        for _ in range(MOST_DESIGNS):
            seen = attempt.seen
            if attempt.passes:
                proved = attempt
                t = min(most, t / max(seen.most, 0.5) * (1.0 - self.unit * MORE_THAN_SEEN))
            else:
                if seen.holds and (holding is None or t > holding.tightening):
                    holding = attempt
                over, kept = max(seen.worst, 1.0), 1.0 - self.unit * MORE_THAN_SEEN
                most = min(most, t / over * kept)
                t *= kept / over ** (FURTHER if proved is None else 1.0)
            if proved is not None and t <= proved.tightening * (1.0 + self.unit * TO_SPARE):
                return self._worth_it(proved, holding)
            if t < TIGHTEST:
                break
            solution = program.solve(t, solution)
            attempt = self._attempt(attempt.cover, attempt.sensitive, solution, t)
        if holding is None:
            raise self._hopeless()
        return holding

    def _worth_it(self, proved: Attempt, holding: Attempt | None) -> Attempt:
        """What is proved, unless that costs far more noise than what only seems to hold."""
        if self.insist or holding is None or proved.tightening >= holding.tightening * (1.0 - PRICE_OF_PROOF):
            return proved
        return holding

    def _cut(self, candidates: Candidates, limit: float) -> Attempt:
        """Cutting planes: the least noise for some inputs, then for those that fall short under it too, and so on."""
        solver, cover = self.solver, self._kind()
        solution = None if self.start is None else self.start.solution
        sensitive = candidates.first_few(FIRST_EPSILON, FIRST_MOST) if self.start is None else self.start.sensitive
        t, accuracy = limit, COARSE_GAP
        for _ in range(MOST_DESIGNS):
            if t <= 0.0:  # so little may be learnt that round-off is more
                break
            solution = solver.program(sensitive).solve(t, solution, accuracy)
            learnt = solver.learnt(solution.noise, candidates.probes)
            short = learnt > limit + 0.5 * (1.0 - limit)
            self.say(f"{counted(len(sensitive), 'sensitive input')}, {int(np.sum(short))} fall short")
            if np.any(short):
                grown = candidates.grown(sensitive, candidates.probes.points[short], learnt[short])
                if len(grown) > len(sensitive):
                    sensitive = grown
                    continue
                # round-off: what falls short is held already
                t -= 2.0 * (float(np.max(learnt)) - limit)
                continue
            attempt = self._attempt(cover, sensitive, solution, t)
            if not attempt.passes:
                seen = attempt.seen
                if not len(seen.short) or not np.all(np.isfinite(seen.learnt)):
                    return attempt
                worst = float(np.max(seen.learnt))
                candidates.add(seen.short)
                grown = candidates.grown(sensitive, seen.short, seen.learnt)
                if len(grown) == len(sensitive) or worst < 1.0 + 0.5 * (1.0 - limit):
                    t -= max(self.unit * 1e-5, 1.5 * (worst - 1.0))
                sensitive = grown
                continue
            if accuracy > 0:
                accuracy = 0.0
                continue
            return self._without_idle(attempt)
        raise self._hopeless()

    def _without_idle(self, attempt: Attempt) -> Attempt:
        """Without the inputs that ask for nothing in the end."""
        solution = attempt.solution
        if len(self.back_end.given):  # earlier promises have sensitive inputs of their own
            return attempt
        pulls = solution.pulls(len(attempt.sensitive))
        if pulls is None:
            return attempt
        keep = pulls > 1e-12 * max(float(np.max(pulls)), np.finfo(float).tiny)
        keep[int(np.argmax(pulls))] = True
        if np.all(keep):
            return attempt
        return self._attempt(attempt.cover, attempt.sensitive[keep], solution.keeping(keep), attempt.tightening)

    def _hopeless(self) -> NoCover:
        return NoCover(
            "region cannot be covered to the asked floor; give a smaller region, a weaker promise, or a prior with a "
            "longer lengthscale."
        )


def _explained(solver: Solver, attempt: Attempt) -> float:
    """What readers of a design explain at the served inputs; noise that records carry by themselves counts too."""
    noise = attempt.design.noise
    if noise.compressed and noise.as_function().records is not None:
        return attempt.seen.certificate().explained
    return solver.explained(attempt.solution.noise)


def _no_more_than_joint(
    back_end: BackEnd,
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
    problem = back_end.problem
    quick = problem.region.points is not None or cover == "rows" or len(problem.inputs) <= ROWS_COMPARED
    if certificate.holds and not quick and certificate.gap <= WORTH_COMPARING:
        return design, certificate
    jointly = back_end.jointly()
    if jointly is None:
        return design, certificate
    say("comparing with the joint promise")
    try:
        joint = _Loop(jointly, cover, examine, say, margins).run().design
    except (InputError, np.linalg.LinAlgError):
        return design, certificate
    solver = Solver(back_end)
    if certificate.holds and solver.weighted_trace(joint.noise) >= solver.weighted_trace(design.noise):
        return design, certificate
    other = replace(design, noise=joint.noise)
    found = examine(other, None, False).certificate()
    proved = found.evidence == "proved" or certificate.evidence == "searched"
    return (other, found) if found.holds and proved else (design, certificate)
