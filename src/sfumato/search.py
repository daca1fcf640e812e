"""From a region to a noise: which sensitive inputs stand for it, and how much tighter they must be held.

A finite set S₀ protects less than the region around it. So the tolerance at S₀ is tightened, Δ′ = t Δ with t ≤ 1, until
the floor holds at every input of the region that a dense look finds; in many dimensions inputs that
fall short are added to S₀ first (exchange). What comes out is only a proposal: the certificate decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .cover import far_apart, greedy_order, independent_subset
from .design import Cover
from .errors import InputError
from .inputs import Array
from .noise import Noise
from .problem import Look, Problem

#: Covers of this many points or fewer are found greedily by ``cover="auto"``; beyond that exchange is better.
GREEDY_LIMIT = 128

#: The ε of the greedy cover: all of these are tried where the data is small, the middle one alone where it is not.
LADDER = (0.2, 0.1, 0.05, 0.02, 0.01)
LADDER_ROWS = 400

#: Exchange adds inputs until no ratio is below this, then tightens.
CLOSE = 0.995

AskedCover = Literal["auto", "greedy", "exchange", "rows"]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Margins:
    """How much more than the bare promise is aimed at, so that round-off and unseen inputs fall on the safe side.

    ``joint``: the tolerance is held tighter by this share. ``floor``: ratios are kept above 1 by this much.
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


def propose(problem: Problem, cover: AskedCover, margins: Margins, turn: int, say: Say) -> Proposal:
    """The least noise found that keeps the floors of ``problem``; another ``turn`` looks at other inputs."""
    finite = problem.region.points
    if finite is not None:
        return _for_points(problem, finite, "points", margins)
    if cover == "rows":
        if problem.rows_inside.shape[0] == 0:
            place = problem.region.in_words(problem.inputs.names)
            raise InputError(f"cover is 'rows', but no row of the data has {place}; use cover=\"auto\".")
        return _for_points(problem, problem.rows_inside, "rows", margins)
    say("looking over the region")
    many = problem.inputs.dimension > 1
    points = problem.region.candidates(4096 if many else 1001, problem.inputs, turn=turn)
    look = problem.look(np.vstack([points, problem.rows_inside]))
    target = 1.0 + max(margins.floor, 2e-3 if many else 1e-6)
    if cover in ("auto", "greedy"):
        proposal = _greedy(problem, look, target, margins, say, insist=cover == "greedy")
        if proposal is not None:
            return proposal
    return _exchange(problem, look, target, margins, say)


def _for_points(problem: Problem, points: Array, cover: Cover, margins: Margins) -> Proposal:
    keep = independent_subset(problem.tolerance.matrix(problem.prior, points), margins.independent)
    sensitive = points[keep]
    root = problem.root(sensitive)
    if len(keep) == len(points) and margins.floor == 0.0:
        return Proposal(cover, sensitive, problem.noise(root, 1.0 - margins.joint))
    noise = _tighten(problem, root, problem.look(points), 1.0 + margins.floor, 1.0 - margins.joint)
    if noise is None:
        raise InputError(
            f"the {len(points)} sensitive inputs are too close together for the kernel to tell them apart; "
            "give fewer of them, further apart."
        )
    return Proposal(cover, sensitive, noise)


def _greedy(
    problem: Problem, look: Look, target: float, margins: Margins, say: Say, insist: bool
) -> Proposal | None:
    """The greedy cover with the ε that needs the least noise; None where it would need too many points."""
    say("choosing sensitive inputs")
    ladder = LADDER if len(problem.inputs) <= LADDER_ROWS else LADDER[2:3]
    pivots = greedy_order(problem.prior, look.points, ladder[-1], len(look.points) if insist else GREEDY_LIMIT)
    if pivots.largest[-1] > LADDER[2] ** 2 and not insist:
        return None
    best: Proposal | None = None
    for size in sorted({len(pivots.prefix(epsilon**2)) for epsilon in ladder}):
        say(f"noise for {size} sensitive inputs")
        sensitive = look.points[pivots.order[:size]]
        noise = _tighten(problem, problem.root(sensitive), look, target, 1.0 - margins.joint)
        if noise is not None and (best is None or noise.trace < best.noise.trace):
            best = Proposal("greedy", sensitive, noise)
    return best


def _exchange(
    problem: Problem, look: Look, target: float, margins: Margins, say: Say, rounds: int = 60
) -> Proposal:
    """Add inputs that fall short until what is left can be had by tightening (MATH.md 3)."""
    start = problem.rows_inside if problem.rows_inside.shape[0] else look.points
    sensitive = start[greedy_order(problem.prior, start, LADDER[2], GREEDY_LIMIT).order]
    for step in range(rounds):
        root = problem.root(sensitive)
        noise = problem.noise(root, 1.0 - margins.joint)
        ratios = problem.ratios(noise, look)
        short = ratios < target
        say(f"exchange {step + 1}: {len(sensitive)} sensitive inputs, {int(np.sum(short))} inputs short of their floor")
        if not np.any(short):
            return Proposal("exchange", sensitive, noise)
        fresh = look.points[short][far_apart(problem.prior, look.points[short], 1.0 - ratios[short], 32)]
        both = np.vstack([sensitive, fresh])
        kept = both[independent_subset(problem.tolerance.matrix(problem.prior, both), LADDER[-1] ** 2)]
        if np.min(ratios) > CLOSE or len(kept) <= len(sensitive) or step == rounds - 1:
            tightened = _tighten(problem, root, look, target, 1.0 - margins.joint)
            if tightened is not None:
                return Proposal("exchange", sensitive, tightened)
        sensitive = kept
    raise InputError(
        "region cannot be covered to the asked floor; give a smaller region, a weaker promise, or a prior with a "
        "longer lengthscale."
    )


def _tighten(problem: Problem, root: Array, look: Look, target: float, loosest: float) -> Noise | None:
    """The noise for the largest tightening t ≤ ``loosest`` that keeps every ratio of ``look`` above ``target``."""

    def attempt(t: float) -> tuple[Noise, float]:
        noise = problem.noise(root, t)
        return noise, float(np.min(problem.ratios(noise, look)))

    best, ratio = attempt(loosest)
    if ratio >= target:
        return best
    low, high, short = loosest, loosest, target - ratio
    spare = -1.0
    while spare < 0:
        # a first guess from how far off it is, then ever larger steps
        low *= 0.5 if low < high else max(0.5, 1.0 - 20 * short)
        if low < 1e-3:
            return None
        best, ratio = attempt(low)
        spare = ratio - target
        if spare < 0:
            high, short = low, -spare
    for _ in range(8):
        if spare <= 1e-6 or high - low <= 0.02 * (1 - low):
            break
        # between the ends the ratio is nearly linear; stay off the ends so that both keep moving
        middle = low + (high - low) * float(np.clip(spare / (spare + short), 0.1, 0.9))
        noise, ratio = attempt(middle)
        if ratio >= target:
            low, best, spare = middle, noise, ratio - target
        else:
            high, short = middle, target - ratio
    return best
