"""From a region to a noise: which sensitive inputs stand for it, and how much tighter they must be held.

A finite set S₀ protects less than the region around it. So the tolerance at S₀ is tightened, Δ′ = t Δ with t ≤ 1, until
the floor holds at every input of the region that a dense look finds; inputs that fall well short are added to
S₀ (exchange). What comes out is only a proposal: the certificate, which looks elsewhere, decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from .cover import AT_ONCE, far_apart, greedy_order, independent_subset
from .design import Cover, rows_in_reach
from .errors import InputError
from .inputs import Array
from .low_discrepancy import halton
from .noise import Noise
from .problem import Look, Problem

#: Covers of this many points or fewer are found greedily by ``cover="auto"``; beyond that exchange is better.
GREEDY_LIMIT = 128

#: ``cover="greedy"`` gives up beyond this many.
GREEDY_MOST = 512

#: The ε of the greedy cover: all of these are tried where the data is small, the middle one alone where it is not.
LADDER = (0.2, 0.1, 0.05, 0.02, 0.01)
LADDER_ROWS = 400

#: Tightening may raise the trace by about this share at a time; inputs that would need more are added to the cover.
#: A greedy cover fills the region already, so it is rather tightened.
AFFORDABLE = {"greedy": 0.1, "exchange": 0.01}

#: Sensitive inputs that would have to be held tighter than this stand for their region too badly.
LOWEST = 0.3

#: How many fresh looks a rough noise, which is cheap to have, is tried on.
ROUGH_LOOKS = 6

AskedCover = Literal["auto", "greedy", "exchange", "rows"]
Say = Callable[[str], None]


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
    """A noise, the sensitive inputs it was made for, and how they were found."""

    cover: Cover
    sensitive: Array
    noise: Noise


def propose(
    problem: Problem, cover: AskedCover, margins: Margins, last: Proposal | None, turn: int, say: Say
) -> Proposal:
    """The least noise found that keeps the floors of ``problem``.

    ``last`` is an earlier proposal that did not pass, to start from; ``turn`` is the first turn of the region's inputs
    to look at.
    """
    finite = problem.region.points
    if finite is not None:
        return _for_points(problem, finite, "points", margins)
    if cover == "rows":
        if problem.rows_inside.shape[0] == 0:
            place = problem.region.in_words(problem.inputs.names)
            raise InputError(f"cover is 'rows', but no row of the data has {place}; use cover=\"auto\".")
        return _for_points(problem, problem.rows_inside, "rows", margins)
    return _Search(problem, margins, turn, say).run(cover, last)


def _for_points(problem: Problem, points: Array, cover: Cover, margins: Margins) -> Proposal:
    keep = independent_subset(problem.tolerance.matrix(problem.prior, points), margins.independent)
    sensitive = points[keep]
    root = problem.root(sensitive)
    if len(keep) == len(points) and margins.floor == 0.0:
        return Proposal(cover, sensitive, problem.noise(root, 1.0 - margins.joint))
    tightened = _tighten(problem, root, problem.look(points), 1.0 - margins.floor, 1.0 - margins.joint)
    if tightened is None:
        raise InputError(
            f"the {len(points)} sensitive inputs are too close together for the kernel to tell them apart; "
            "give fewer of them, further apart."
        )
    return Proposal(cover, sensitive, tightened[0])


class _Search:
    """One search over a region with infinitely many inputs."""

    def __init__(self, problem: Problem, margins: Margins, turn: int, say: Say) -> None:
        self.problem, self.margins, self.say, self.turn = problem, margins, say, turn
        moves = problem.region.moves(problem.inputs.dimension)
        self.simple = problem.inputs.dimension == 1
        self.count = 1001 if self.simple else int(np.clip(8e6 // len(problem.inputs), 2048, 8192))
        self.moving = np.flatnonzero(moves)
        say("looking over the region")
        self.points = np.vstack([self.fresh(), rows_in_reach(problem.region, problem.inputs)])
        self.limit = 1.0 - max(margins.floor, 1e-5 if self.simple else self.unseen())
        self.look = problem.look_where_needed(self.points, self.limit)

    def unseen(self) -> float:
        """The share of the tolerance kept back for inputs that no look finds: about 0.1 % of the reader's std."""
        alpha = self.problem.tolerance.budget(self.problem.prior, self.points) / self.problem.prior.variance(
            self.points
        )
        return float(min(5e-3, 2e-3 * max(1.0 / np.median(alpha) - 1.0, 0.05)))

    def run(self, cover: AskedCover, last: Proposal | None) -> Proposal:
        if self.look.points.shape[0] == 0:
            # nobody learns too much even without noise
            start = self.points[greedy_order(self.problem.prior, self.points, LADDER[0], 1).order]
            return Proposal(
                "greedy" if cover != "exchange" else "exchange", start, Noise(np.zeros((len(self.problem.inputs), 0)))
            )
        if last is not None:
            return self.settle(last.cover, last.sensitive)
        if cover in ("auto", "greedy"):
            sensitive = self.greedy(insist=cover == "greedy")
            if sensitive is not None:
                return self.settle("greedy", sensitive)
        return self.settle("exchange", self.exchange_start())

    def fresh(self) -> Array:
        """Inputs of the region that were not looked at before; never those of turn 1, which the certificate uses."""
        turn, self.turn = self.turn, self.turn + 2
        return self.problem.region.candidates(self.count, self.problem.inputs, turn=turn)

    def greedy(self, insist: bool) -> Array | None:
        """The greedy cover with the ε that needs the least noise; None where it would need too many points."""
        self.say("choosing sensitive inputs")
        problem = self.problem
        # thin: it is only to be seen which few inputs stand for the region
        points = self.points[:: -(-len(self.points) // AT_ONCE)]
        ladder = LADDER if len(problem.inputs) <= LADDER_ROWS else LADDER[2:3]
        pivots = greedy_order(problem.prior, points, ladder[-1], GREEDY_MOST if insist else GREEDY_LIMIT)
        reached = [epsilon for epsilon in ladder if pivots.largest[-1] <= epsilon**2]
        if not insist and LADDER[2] not in reached:
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
            tightened = self.tighten(problem.root(sensitive), self.loosest)
            if tightened is not None and (best is None or tightened[0].trace < best[0]):
                best = tightened[0].trace, sensitive
        return covers[-1] if best is None else best[1]

    def exchange_start(self) -> Array:
        """Rows and inputs that together leave none short, by a rough noise that needs no n × n eigenproblem."""
        problem = self.problem
        start = problem.rows_inside if problem.rows_inside.shape[0] else self.look.points[:AT_ONCE]
        sensitive = self.independent(start[greedy_order(problem.prior, start, LADDER[2], GREEDY_LIMIT).order])
        if problem.data_root is None:
            return sensitive
        looks = 1
        for _ in range(100):
            root = problem.root(sensitive) / np.sqrt(self.loosest)
            usage = problem.rough_usage(root, self.look)
            short = int(np.sum(usage > self.limit))
            self.say(f"{len(sensitive)} sensitive inputs, {short} others fall short")
            grown = self.added(sensitive, usage) if short else sensitive
            if len(grown) > len(sensitive):
                sensitive = grown
                continue
            found = self.found_short(partial(problem.rough_usage, root))
            if found.points.shape[0] == 0 or looks == ROUGH_LOOKS:
                break
            self.look, looks = self.look.joined(found), looks + 1
        return sensitive

    def independent(self, points: Array, threshold: float | None = None) -> Array:
        """``points`` without those whose tolerance follows from that of the others."""
        delta = self.problem.tolerance.matrix(self.problem.prior, points)
        return np.asarray(points[independent_subset(delta, threshold or self.margins.independent)])

    def added(self, sensitive: Array, usage: Array) -> Array:
        """``sensitive`` and the inputs that fall short most, far apart from each other."""
        short = usage > self.limit
        points = self.look.points[short]
        both = np.vstack([sensitive, points[far_apart(self.problem.prior, points, usage[short], 32)]])
        return self.independent(both, LADDER[-1] ** 2)

    def settle(self, cover: Cover, sensitive: Array) -> Proposal:
        """Tighten, look again elsewhere, and add what falls well short, until a fresh look finds nothing."""
        root, t = self.problem.root(sensitive), self.loosest
        for step in range(60):
            noise = self.problem.noise(root, t)
            usage = self.problem.usage(noise, self.look)
            worst = float(np.max(usage))
            self.say(
                f"round {step + 1}: {len(sensitive)} sensitive inputs, {int(np.sum(usage > self.limit))} fall short"
            )
            if worst > self.limit:
                cheap = worst <= 1.0 + AFFORDABLE[cover] * self.problem.trace_by_tightening(noise)
                grown = sensitive if cheap else self.added(sensitive, usage)
                tightened = self.tighten(root, t, (noise, worst)) if len(grown) <= len(sensitive) else None
                if tightened is None:
                    sensitive = grown if len(grown) > len(sensitive) else self.added(sensitive, usage)
                    root, t = self.problem.root(sensitive), self.loosest
                    continue
                noise, t = tightened
            found = self.found_short(partial(self.problem.usage, noise))
            if found.points.shape[0] == 0:
                return Proposal(cover, sensitive, noise)
            self.look = self.look.joined(found)
        raise InputError(
            "region cannot be covered to the asked floor; give a smaller region, a weaker promise, or a prior with a "
            "longer lengthscale."
        )

    def found_short(self, usage_of: Callable[[Look], Array]) -> Look:
        """Inputs that fall short of their floor, near the worst that are known and on a fresh set."""
        worst = np.argsort(-usage_of(self.look), kind="stable")[: 256 if self.moving.size > 1 else 16]
        share = self.count ** (-1.0 / max(self.moving.size, 1))
        near = [self.near(self.look.points[worst], share), self.near(self.look.points[worst], share / 8)]
        look = self.problem.look_where_needed(np.vstack([*near, self.fresh()]), self.limit)
        return look.where(usage_of(look) > self.limit)

    def near(self, points: Array, share: float) -> Array:
        """Inputs of the region around ``points``, at most this share of the region's extent away."""
        if self.moving.size == 0:
            return points
        extent = np.ptp(self.points[:, self.moving], axis=0) * share
        offsets = 2.0 * halton(16, self.moving.size, self.turn) - 1.0
        cloud = np.repeat(points[:, None, :], len(offsets), axis=1)
        cloud[:, :, self.moving] += offsets * extent
        cloud = self.problem.region.project(cloud.reshape(-1, points.shape[1]), self.problem.inputs)
        return np.asarray(cloud[self.problem.region.contains(cloud)])

    @property
    def loosest(self) -> float:
        """The first tightening: the sensitive inputs themselves must stay within the limit too."""
        return min(1.0 - self.margins.joint, self.limit * (1.0 - 1e-6))

    def tighten(
        self, root: Array, loosest: float, known: tuple[Noise, float] | None = None
    ) -> tuple[Noise, float] | None:
        return _tighten(self.problem, root, self.look, self.limit, loosest, known)


def _tighten(
    problem: Problem,
    root: Array,
    look: Look,
    limit: float,
    loosest: float,
    known: tuple[Noise, float] | None = None,
) -> tuple[Noise, float] | None:
    """The noise for the largest tightening t ≤ ``loosest`` with no usage of ``look`` above ``limit``, and t.

    ``known`` is the noise at ``loosest`` with its largest usage, where that has been computed already.
    """

    def attempt(t: float) -> tuple[Noise, float]:
        noise = problem.noise(root, t)
        return noise, float(np.max(problem.usage(noise, look)))

    best, usage = attempt(loosest) if known is None else known
    if usage <= limit:
        return best, loosest
    low, high, over = loosest, loosest, usage - limit
    spare = -1.0
    while spare < 0:
        # what is explained grows about like t; a little more than that, then ever larger steps
        low *= 0.5 if low < high else max(0.5, 1.0 - 1.3 * over)
        if low < LOWEST:
            return None
        best, usage = attempt(low)
        spare = limit - usage
        if spare < 0:
            high, over = low, -spare
    for _ in range(8):
        if spare <= 1e-5 or high - low <= 1e-3 * low:
            break
        # between the ends usage is nearly linear in t; stay off the ends so that both keep moving
        middle = low + (high - low) * float(np.clip(spare / (spare + over), 0.1, 0.9))
        noise, usage = attempt(middle)
        if usage <= limit:
            low, best, spare = middle, noise, limit - usage
        else:
            high, over = middle, usage - limit
    return best, low
