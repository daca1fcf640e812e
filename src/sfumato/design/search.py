"""From a region to a noise: which sensitive inputs stand for the region, and how much tighter they must be held.

A finite set S₀ of sensitive inputs protects less than the region around it. So the tolerance at S₀ is tightened,
Δ′ = t Δ with t ≤ 1, until the floor holds at every input of the region that dense probes find; inputs that fall well
short are added to S₀ (exchange). Where each value is promised by itself, S₀ need not stand for the region: inputs that
fall short are added to it until there are none (cutting planes). What comes out is only a proposal: the certificate,
which probes elsewhere, decides, and what it finds is answered with more probes or larger margins, until it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import Array
from ..data import among
from ..errors import InputError
from ..linalg import Pivots, halton, pivoted_cholesky
from ..models import Prior
from ..noise import Noise, no_noise
from ..promise import Cover, Design, rows_in_reach
from ..proof import TOLERANCE, Certificate, far_apart, places_between_rows, starts, walk
from ..regions import Everywhere
from .problem import BackEnd, Probes, Program, Solution, Solver

#: Up to this many candidates it is quicker to compute their whole correlation matrix than its columns one by one.
MATRIX_CANDIDATES = 2048


def independent_subset(delta: Array, threshold: float) -> list[int]:
    """Which sensitive values to keep, in their own order, so that Δ restricted to them can be inverted.

    A value is left to the others when its tolerance given theirs is below ``threshold`` times its own. Few and well
    apart is best: a value that the others determine almost fully adds little protection, but noise to Δ⁻¹ and, under a
    smooth kernel, to rows far away.
    """
    scale = np.sqrt(np.diag(delta))
    normalised = delta / np.outer(scale, scale)
    pivots = pivoted_cholesky(np.ones(delta.shape[0]), lambda i: normalised[:, i], threshold, delta.shape[0])
    return sorted(int(i) for i in pivots.order)


def greedy_order(prior: Prior, candidates: Array, epsilon: float, limit: int) -> Pivots:
    """The certified greedy cover (MATH.md 3): always the candidate with the largest power function.

    ``largest[k]`` is max p²(s)/K(s,s) over the candidates once k of them are picked; the smallest ε
    is ``epsilon``. Any start of the order is the greedy cover for a larger ε.
    """
    scale = np.sqrt(prior.variance(candidates))
    if len(candidates) <= MATRIX_CANDIDATES:
        correlation = prior.covariance(candidates) / np.outer(scale, scale)
        return pivoted_cholesky(np.ones(len(scale)), lambda i: correlation[:, i], epsilon**2, limit)

    def column(i: int) -> Array:
        return np.asarray(prior.covariance(candidates, candidates[i : i + 1])[:, 0] / (scale * scale[i]))

    return pivoted_cholesky(np.ones(len(scale)), column, epsilon**2, limit)


#: Sensitive inputs whose tolerance would have to be tightened below this share do not represent their region.
TIGHTEST = 0.3


def tighten(
    program: Program, probes: Probes, limit: float, loosest: float, known: tuple[Solution, float] | None = None
) -> tuple[Solution, float] | None:
    """The noise for the largest tightening t ≤ ``loosest`` with no more than ``limit`` learnt at ``probes``, and t.

    ``known`` is the noise at ``loosest`` and the most that is learnt then, where that has been computed already.
    """

    def attempt(t: float, start: Solution | None) -> tuple[Solution, float]:
        solution = program.solve(t, start)
        return solution, float(np.max(program.solver.learnt(solution.noise, probes)))

    best, most = attempt(loosest, None) if known is None else known
    if most <= limit:
        return best, loosest
    low, high, over = loosest, loosest, most - limit
    spare = -1.0
    while spare < 0:
        # what is explained grows about like t; a little more than that, then ever larger steps
        low *= 0.5 if low < high else max(0.5, 1.0 - 1.3 * over)
        if low < TIGHTEST:
            return None
        best, most = attempt(low, best)
        spare = limit - most
        if spare < 0:
            high, over = low, -spare
    for _ in range(8):
        if spare <= 1e-5 or high - low <= 1e-3 * low:
            break
        # between the ends what is learnt is nearly linear in t; stay off the ends so that both keep moving
        middle = low + (high - low) * float(np.clip(spare / (spare + over), 0.1, 0.9))
        solution, most = attempt(middle, best)
        if most <= limit:
            low, best, spare = middle, solution, limit - most
        else:
            high, over = middle, most - limit
    return best, low


#: Covers of this many points or fewer are found greedily by ``cover="auto"``; beyond that exchange is better.
GREEDY_LIMIT = 128

#: ``cover="greedy"`` gives up beyond this many.
GREEDY_MOST = 512

#: The ε of the greedy cover: all of these are tried where the data is small, the middle one alone where it is not.
EPSILONS = (0.2, 0.1, 0.05, 0.02, 0.01)
EPSILONS_ROWS = 400

#: Tightening may raise the trace by about this share at a time; inputs that would need more are added to the cover.
#: A greedy cover fills the region already, so it is tightened instead.
AFFORDABLE_RISE = {"greedy": 0.1, "exchange": 0.01}

#: How many inputs of the region each batch of probes has: of one column so many for each output; else at least, at
#: most, and as many as ``PROBES_TIMES_ROWS`` over the number of rows.
PROBES_IN_ONE_COLUMN, PROBES, PROBES_TIMES_ROWS = 1001, (2048, 8192), 8_000_000

#: From how many rows places between rows are looked for.
MOST_STARTS = 384

#: How many walks to worse inputs are taken with each batch of probes: at least, at most, and as many as ``WALKS`` over
#: the number of rows.
WALKERS, WALKS = (16, 256), 50_000

#: How many steps a walk takes, and how many inputs that fall short are added to the sensitive ones at a time.
STEPS, ADDED_AT_ONCE = 24, 32

#: Cutting planes start from at most ``FIRST_MOST`` inputs, which determine the others to this share of their
#: standard deviation.
FIRST_EPSILON, FIRST_MOST = 0.3, 64

#: While inputs are added, noise is computed to this gap. It aims below the limit, by this share of the margin, so that
#: inputs between those that were added stay below the limit too.
COARSE_GAP, AIM_BELOW = 1e-3, 0.5

#: A search gives up after this many rounds of tightening, or of adding inputs; those that end well take a few.
MOST_ROUNDS, MOST_ADDITIONS = 60, 100

#: How many fresh batches of probes a rough noise is checked with; it is cheap to compute.
ROUGH_BATCHES = 6

AskedCover = Literal["auto", "greedy", "exchange", "rows"]
Say = Callable[[str], None]


class NoCover(InputError):  # noqa: N818
    """No sensitive inputs were found that stand for the region."""


@dataclass(frozen=True)
class Margins:
    """How much more than the bare promise is aimed at, so that round-off and unseen inputs fall on the safe side.

    ``joint``: the tolerance is held tighter by this share at the sensitive inputs, ``floor``: at all others.
    ``independent``: sensitive values that the others determine to this share of their variance are left out.
    """

    joint: float = 1e-9
    floor: float = 0.0
    independent: float = 1e-10


@dataclass(frozen=True, eq=False)
class Proposal:
    """A noise, the sensitive inputs it was made for, how they were found, and a witness (programs/demand.py)."""

    cover: Cover
    sensitive: Array
    solution: Solution

    @property
    def noise(self) -> Noise:
        return self.solution.noise


def propose(
    solver: Solver,
    cover: AskedCover,
    margins: Margins,
    last: Proposal | None,
    batch: int,
    say: Say,
    known: Array | None = None,
) -> Proposal:
    """The least noise found that keeps the floors of the solver's problem.

    ``last`` is an earlier proposal that did not pass, to start from, and ``known`` lists inputs where it fell short;
    ``batch`` is the first batch of the region's inputs to probe.
    """
    problem = solver.problem
    if isinstance(problem.region, Everywhere):
        say("noise for every input")
        solution = solver.program_everywhere().solve(1.0 - margins.joint - margins.floor)
        return Proposal("everywhere", problem.inputs.values[:0], solution)
    if problem.region.points is not None:
        return _for_points(solver, problem.region.points, "points", margins)
    if cover == "rows":
        if problem.rows_inside.shape[0] == 0:
            place = problem.region.in_words(problem.inputs.names)
            raise InputError(f"cover is 'rows', but no row of the data has {place}; use cover=\"auto\".")
        return _for_points(solver, problem.rows_inside, "rows", margins)
    known = problem.inputs.values[:0] if known is None else known
    return _Search(solver, margins, batch, say, known).run(cover, last)


def _for_points(solver: Solver, points: Array, cover: Cover, margins: Margins) -> Proposal:
    admissible = solver.back_end.admissible(points)
    if not solver.problem.joint:
        sensitive = np.unique(admissible + 0.0, axis=0)
        return Proposal(cover, sensitive, solver.program(sensitive).solve(1.0 - margins.joint - margins.floor))
    sensitive = independent_points(solver, admissible, margins.independent)
    program = solver.program(sensitive)
    if len(sensitive) == len(points) and margins.floor == 0.0:
        return Proposal(cover, sensitive, program.solve(1.0 - margins.joint))
    tightened = tighten(program, solver.probes(points), 1.0 - margins.floor, 1.0 - margins.joint)
    if tightened is None:
        raise InputError(
            f"the {len(points)} sensitive inputs are too close together for the kernel to tell them apart; "
            "give fewer of them, further apart."
        )
    return Proposal(cover, sensitive, tightened[0])


def independent_points(solver: Solver, points: Array, threshold: float) -> Array:
    """``points`` without those whose tolerance follows from that of the others, for any reader."""
    for exposure in solver.exposures:
        tolerance = exposure.tolerance
        own = np.flatnonzero(tolerance.applies_to(points))
        if not own.size:
            continue
        kept = own[independent_subset(tolerance.matrix(exposure.unknown, points[own]), threshold)]
        points = points[np.sort(np.concatenate([kept, np.setdiff1d(np.arange(len(points)), own)]))]
    return points


class _Search:
    """One search over a region with infinitely many inputs."""

    def __init__(self, solver: Solver, margins: Margins, batch: int, say: Say, known: Array) -> None:
        self.solver, self.margins, self.say, self.batch = solver, margins, say, batch
        self.problem = problem = solver.problem
        self.simple = problem.inputs.features == 1
        self.count = int(np.clip(PROBES_TIMES_ROWS // len(problem.inputs), *PROBES))
        if self.simple:
            self.count = PROBES_IN_ONE_COLUMN * len(problem.inputs.outputs)
        self.moving = np.flatnonzero(problem.region.varying_columns(problem.inputs.dimension))
        say("looking over the region")
        self.points = np.vstack([self.fresh(), rows_in_reach(problem.region, problem.inputs), known])
        if not self.simple:
            priors = [exposure.reader.prior for exposure in solver.exposures]
            between = [places_between_rows(prior, problem.inputs, problem.region, MOST_STARTS) for prior in priors]
            self.points = np.vstack([self.points, *between])
        self.limit = 1.0 - max(margins.floor, 1e-5 if self.simple else self.unseen())
        self.probes = solver.probes_in_need(self.points, self.limit)

    def unseen(self) -> float:
        """The share of the tolerance kept back for inputs that no probe finds: about 0.1 % of the reader's std."""
        if not self.problem.joint and self.moving.size <= 2:
            # the noise is at its limit only at single inputs, and a plane can be looked at closely
            return 1e-4
        if not self.problem.joint:
            return 4e-4
        first = self.solver.exposures[0]
        own = self.points[first.tolerance.applies_to(self.points)]
        alpha = first.tolerance.budget(first.unknown, own) / first.reader.prior.variance(own)
        return float(min(5e-3, 2e-3 * max(1.0 / np.median(alpha) - 1.0, 0.05)))

    def run(self, cover: AskedCover, last: Proposal | None) -> Proposal:
        if not len(self.probes):
            # nobody learns too much even without noise
            one = self.points[greedy_order(self.problem.prior, self.points, EPSILONS[0], 1).order]
            start = self.solver.back_end.admissible(one)
            kind: Cover = "exchange" if cover == "exchange" or not self.problem.joint else "greedy"
            return Proposal(kind, start, Solution(no_noise(self.solver.exposures[0].size)))
        if not self.problem.joint:
            return self.cut("greedy" if cover == "greedy" else "exchange", last)
        if last is not None:
            return self.settle(last.cover, last.sensitive)
        given = self.solver.back_end.given
        if len(given) and all(np.any(one.tolerance.applies_to(given)) for one in self.solver.exposures):
            return self.settle("exchange", given)
        if cover in ("auto", "greedy"):
            sensitive = self.greedy(insist=cover == "greedy")
            if sensitive is not None:
                return self.settle("greedy", self.and_given(sensitive))
        return self.settle("exchange", self.and_given(self.exchange_start()))

    def and_given(self, sensitive: Array) -> Array:
        """``sensitive`` and the inputs that must be among them."""
        given = self.solver.back_end.given
        if not len(given):
            return sensitive
        return self.independent(np.vstack([given, sensitive[~among(sensitive, given)]]))

    def fresh(self) -> Array:
        """Inputs of the region that were not probed before; never those of batch 1, which the certificate uses."""
        batch, self.batch = self.batch, self.batch + 2
        return self.problem.region.probes(self.count, self.problem.inputs, batch=batch)

    def greedy(self, insist: bool) -> Array | None:
        """The greedy cover with the ε that needs the least noise; None where it would need too many points."""
        self.say("choosing sensitive inputs")
        problem = self.problem
        # thinned out: all that is asked here is which inputs can stand for the region
        points = self.solver.back_end.admissible(self.points[:: -(-len(self.points) // MATRIX_CANDIDATES)])
        ladder = EPSILONS if len(problem.inputs) <= EPSILONS_ROWS else EPSILONS[2:3]
        pivots = greedy_order(problem.prior, points, ladder[-1], GREEDY_MOST if insist else GREEDY_LIMIT)
        reached = [epsilon for epsilon in ladder if pivots.largest[-1] <= epsilon**2]
        if not insist and EPSILONS[2] not in reached:
            return None
        if not reached:
            raise InputError(
                f"cover is 'greedy', which would need more than {GREEDY_MOST} sensitive inputs for this region and "
                'kernel; use cover="exchange" or "auto".'
            )
        sizes = sorted({len(pivots.prefix(epsilon**2)) for epsilon in reached})
        covers = [self.independent(points[pivots.order[:size]]) for size in sizes]
        if len(covers) == 1:
            return covers[0]
        best: tuple[float, Array] | None = None
        for sensitive in covers:
            self.say(f"noise for {len(sensitive)} sensitive inputs")
            tightened = self.tightened(self.solver.program(sensitive), self.loosest)
            cost = np.inf if tightened is None else self.solver.objective(tightened[0].noise)
            if tightened is not None and (best is None or cost < best[0]):
                best = cost, sensitive
        return covers[-1] if best is None else best[1]

    def exchange_start(self) -> Array:
        """Rows and inputs that together leave none short, by a rough noise that needs no n × n eigenproblem."""
        problem = self.problem
        start = problem.rows_inside if problem.rows_inside.shape[0] else self.probes.points[:MATRIX_CANDIDATES]
        sensitive = self.independent(start[greedy_order(problem.prior, start, EPSILONS[2], GREEDY_LIMIT).order])
        batches = 1
        for _ in range(MOST_ADDITIONS):
            program = self.solver.program(sensitive)
            if not program.is_well_conditioned:
                break
            learnt = program.roughly_learnt(self.loosest, self.probes)
            short = int(np.sum(learnt > self.limit))
            self.say(f"{len(sensitive)} sensitive inputs, {short} others fall short")
            grown = self.added(sensitive, learnt) if short else sensitive
            if len(grown) > len(sensitive):
                sensitive = grown
                continue
            found = self.found_short(partial(program.roughly_learnt, self.loosest), walks=False)
            if not len(found) or batches == ROUGH_BATCHES:
                break
            self.probes, batches = self.probes.joined(found), batches + 1
        return sensitive

    def independent(self, points: Array, threshold: float | None = None) -> Array:
        admissible = self.solver.back_end.admissible(points)
        return independent_points(self.solver, admissible, threshold or self.margins.independent)

    def added(self, sensitive: Array, learnt: Array) -> Array:
        """``sensitive`` and the inputs that fall short most, far apart from each other."""
        return self.independent(self.with_worst(sensitive, learnt), EPSILONS[-1] ** 2)

    def with_worst(self, sensitive: Array, learnt: Array) -> Array:
        short = learnt > self.limit
        points = self.probes.points[short]
        return np.vstack([sensitive, points[far_apart(self.problem.prior, points, learnt[short], ADDED_AT_ONCE)]])

    def settle(self, cover: Cover, sensitive: Array) -> Proposal:
        """Tighten, probe elsewhere, and add what falls well short, until fresh probes find nothing."""
        program, t = self.solver.program(sensitive), self.loosest
        solution: Solution | None = None
        for step in range(MOST_ROUNDS):
            solution = program.solve(t, solution)
            learnt = self.solver.learnt(solution.noise, self.probes)
            worst, short = float(np.max(learnt)), int(np.sum(learnt > self.limit))
            self.say(f"round {step + 1}: {len(sensitive)} sensitive inputs, {short} fall short")
            if worst > self.limit:
                cheap = worst <= 1.0 + AFFORDABLE_RISE[cover] * self.solver.price_of_tightening(solution.noise)
                grown = sensitive if cheap else self.added(sensitive, learnt)
                tightened = self.tightened(program, t, (solution, worst)) if len(grown) <= len(sensitive) else None
                if tightened is None:
                    sensitive = grown if len(grown) > len(sensitive) else self.added(sensitive, learnt)
                    program, t = self.solver.program(sensitive), self.loosest
                    continue
                solution, t = tightened
            found = self.found_short(partial(self.solver.learnt, solution.noise))
            if not len(found):
                return Proposal(cover, sensitive, solution)
            self.probes = self.probes.joined(found)
        raise self.hopeless()

    def cut(self, cover: Cover, last: Proposal | None) -> Proposal:
        """Cutting planes: the least noise for some inputs, then for those that fall short under it too, and so on."""
        solver, solution = self.solver, None if last is None else last.solution
        sensitive = self.first_cut(cover) if last is None else last.sensitive
        t, accuracy = self.limit - (1.0 - self.limit) * AIM_BELOW, COARSE_GAP
        for step in range(MOST_ADDITIONS):
            solution = solver.program(sensitive).solve(t, solution, accuracy)
            learnt = solver.learnt(solution.noise, self.probes)
            short = int(np.sum(learnt > self.limit))
            self.say(f"round {step + 1}: {len(sensitive)} sensitive inputs, {short} fall short")
            if short:
                grown = self.joined_by(sensitive, learnt)
                if len(grown) == len(sensitive):
                    # round-off: what falls short is held already
                    t -= 2.0 * (float(np.max(learnt)) - self.limit)
                sensitive = grown
                continue
            found = self.found_short(partial(solver.learnt, solution.noise))
            if len(found):
                self.probes = self.probes.joined(found)
            elif accuracy > 0:
                accuracy = 0.0
            else:
                return self.without_idle(cover, sensitive, solution)
        raise self.hopeless()

    def first_cut(self, cover: Cover) -> Array:
        inside = self.problem.rows_inside
        start = self.solver.back_end.admissible(inside if len(inside) and cover == "exchange" else self.points)
        first = start[greedy_order(self.problem.prior, start[: 4 * MATRIX_CANDIDATES], FIRST_EPSILON, FIRST_MOST).order]
        given = self.solver.back_end.given
        return np.vstack([given, first[~among(first, given)]])

    def joined_by(self, sensitive: Array, learnt: Array) -> Array:
        """``sensitive`` and the inputs that fall short most, far apart from each other; each input once."""
        both = self.solver.back_end.admissible(self.with_worst(sensitive, learnt)) + 0.0
        _, first = np.unique(both, axis=0, return_index=True)
        return np.asarray(both[np.sort(first)])

    def without_idle(self, cover: Cover, sensitive: Array, solution: Solution) -> Proposal:
        """Without the inputs that ask for nothing in the end."""
        if solution.witness is None or len(self.solver.back_end.given):
            return Proposal(cover, sensitive, solution)
        pull = np.sum([np.einsum("ij,ij->j", part, part) for part in solution.witness], axis=0)
        keep = pull > 1e-12 * max(float(np.max(pull)), np.finfo(float).tiny)
        keep[int(np.argmax(pull))] = True
        return Proposal(
            cover, sensitive[keep], Solution(solution.noise, tuple(part[:, keep] for part in solution.witness))
        )

    def hopeless(self) -> NoCover:
        return NoCover(
            "region cannot be covered to the asked floor; give a smaller region, a weaker promise, or a prior with a "
            "longer lengthscale."
        )

    def found_short(self, learnt_at: Callable[[Probes], Array], walks: bool = True) -> Probes:
        """Inputs that fall short of their floor, near the worst that are known and on a fresh set."""
        learnt = learnt_at(self.probes)
        worst = np.argsort(-learnt, kind="stable")[: 256 if self.moving.size > 1 else 16]
        share = self.count ** (-1.0 / max(self.moving.size, 1))
        here = self.probes.points[worst]
        near = [self.near(here, share), self.near(here, share / 8)]
        if walks and not self.simple and self.moving.size:
            near.append(self.walked(learnt_at, learnt))
        probes = self.solver.probes_in_need(np.vstack([*near, self.fresh()]), self.limit)
        return probes.where(learnt_at(probes) > self.limit)

    def walked(self, learnt_at: Callable[[Probes], Array], learnt: Array) -> Array:
        """Where walks from the worst inputs end, of every group of rows, with steps on the scale of the kernel."""
        problem = self.problem
        high = np.flatnonzero(learnt >= 0.8 * float(np.max(learnt)))
        many = int(np.clip(WALKS // len(problem.inputs), *WALKERS))
        points = self.probes.points[high]
        here = points[starts(problem.prior, points, learnt[high], many)]
        return walk(
            lambda at: learnt_at(self.solver.probes(at)), problem.prior, problem.inputs, problem.region, here, STEPS
        )

    def near(self, points: Array, share: float) -> Array:
        """Inputs of the region around ``points``, at most this share of the region's extent away."""
        if self.moving.size == 0:
            return points
        extent = np.ptp(self.points[:, self.moving], axis=0) * share
        offsets = 2.0 * halton(16, self.moving.size, self.batch) - 1.0
        cloud = np.repeat(points[:, None, :], len(offsets), axis=1)
        cloud[:, :, self.moving] += offsets * extent
        cloud = self.problem.region.project(cloud.reshape(-1, points.shape[1]), self.problem.inputs)
        return np.asarray(cloud[self.problem.region.contains(cloud)])

    @property
    def loosest(self) -> float:
        """The first tightening: the sensitive inputs themselves must stay within the limit too."""
        return min(1.0 - self.margins.joint, self.limit * (1.0 - 1e-6))

    def tightened(
        self, program: Program, loosest: float, known: tuple[Solution, float] | None = None
    ) -> tuple[Solution, float] | None:
        return tighten(program, self.probes, self.limit, loosest, known)


#: How often a proposal is made and checked; a search is first only told where it fell short, then keeps more back too.
MOST_ATTEMPTS = 8
PATIENT_ATTEMPTS = 4

#: A pointwise design for a region is not compared with the joint one if there are more rows and the gap is smaller.
ROWS_COMPARED, WORTH_COMPARING = 500, 2e-4

#: The certificate of a design, and the inputs at which it falls short.
Examine: TypeAlias = Callable[[Design], tuple[Certificate, Array]]


def certified_design(
    back_end: BackEnd, cover: AskedCover, examine: Examine, say: Say, margins: Margins | None = None
) -> tuple[Design, Certificate]:
    """The design with the least noise that was found, and its certificate; it holds unless eight attempts failed."""
    margins = margins or Margins()
    design, certificate = _until_it_holds(back_end, cover, examine, say, margins)
    if not back_end.problem.joint:
        design, certificate = _no_more_than_joint(back_end, cover, examine, say, margins, design, certificate)
    return design, certificate


def _until_it_holds(
    back_end: BackEnd, cover: AskedCover, examine: Examine, say: Say, margins: Margins
) -> tuple[Design, Certificate]:
    solver = Solver(back_end)
    proposal: Proposal | None = None
    short = back_end.problem.inputs.values[:0]
    for attempt in range(MOST_ATTEMPTS):
        # even batches only: the certificate probes batch 1, which a design never sees
        proposal = propose(solver, cover, margins, proposal, 100 * attempt, say, short)
        design = back_end.published(proposal.cover, proposal.sensitive, proposal.solution)
        say("checking the promise")
        certificate, found = examine(design)
        if certificate.holds:
            break
        # what was found is probed from now on; only if that does not help is more kept back
        margins = _wider(margins, certificate, patient=len(found) > 0 and attempt < PATIENT_ATTEMPTS)
        short = np.vstack([short, found])
    return design, certificate


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
        joint, _ = _until_it_holds(jointly, cover, examine, say, margins)
    except (InputError, np.linalg.LinAlgError):
        return design, certificate
    solver = Solver(back_end)
    if certificate.holds and solver.objective(joint.noise) >= solver.objective(design.noise):
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
