"""Which inputs stand for a region: sensitive inputs that are few, and for which the promise costs little noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from ..arrays import Array
from ..data import among
from ..errors import InputError
from ..linalg import Pivots, pivoted_cholesky
from ..models import Prior
from ..progress import alive
from ..promise import rows_in_reach
from .probes import Probes
from .solver import Program, Solver

AskedCover = Literal["auto", "greedy", "exchange", "rows"]
Say = Callable[[str], None]

#: Up to this many candidates it is quicker to compute their whole correlation matrix than its columns one by one.
MATRIX_CANDIDATES = 2048

#: Covers of this many inputs or fewer are found greedily by ``cover="auto"``; beyond that exchange is better.
GREEDY_LIMIT = 128

#: Shares of variances that may be learnt are the same if they differ by no more than this share.
SAME_SHARE = 1e-3

#: ``cover="greedy"`` gives up beyond this many.
GREEDY_MOST = 512

#: Greedy covers between these ε are compared, of so many sizes: a coarse one must be held tighter, a fine one asks for
#: more; not all of them, but some this far apart and then those beside the best. The best of them by a rough noise are
#: compared by their own, where there are few rows.
COARSEST, FINEST, SIZES, FIRST_STEP, COMPARED, FEW_ROWS = 0.3, 0.01, 20, 4, 4, 400

#: The ε that decides whether a region can be covered greedily; it is taken where covers cannot be compared quickly.
EPSILON = 0.05

#: How many inputs of the region are probed: of one column so many for each output; else at least, at most, and as many
#: as ``PROBES_TIMES_ROWS`` over the number of rows.
PROBES_IN_ONE_COLUMN, PROBES, PROBES_TIMES_ROWS = 1001, (2048, 8192), 8_000_000

#: How many inputs that fall short are added to the sensitive ones at a time, and how often at most.
ADDED_AT_ONCE, MOST_ADDITIONS = 32, 100

#: The tightening that a cover needs is found to this share, in at most so many steps, each a little longer than if what
#: is learnt were proportional to it.
CLOSE, MOST_STEPS, OVERSTEP = 2e-3, 15, 1.2

#: Inputs that tell almost the same as another one (a correlation above this) are not added with it.
ALMOST_THE_SAME = 0.9


def independent_subset(delta: Array, threshold: float, beside: Array | None = None) -> list[int]:
    """Which sensitive values to keep, in their own order, so that Δ restricted to them can be inverted.

    A value is left to the others when its tolerance given theirs is below ``threshold`` times its own. Few and well
    apart is best: a value that the others determine almost fully adds little protection, but noise to Δ⁻¹ and, under a
    smooth kernel, to rows far away. ``beside`` is what something else leaves of Δ, if it takes any of it.
    """
    scale = np.sqrt(np.diag(delta))
    normalised = (delta if beside is None else beside) / np.outer(scale, scale)
    left = np.ones(len(delta)) if beside is None else np.diag(normalised).copy()
    pivots = pivoted_cholesky(left, lambda i: normalised[:, i], threshold, delta.shape[0])
    return sorted(int(i) for i in pivots.order)


def independent_points(solver: Solver, points: Array, threshold: float) -> Array:
    """``points`` without those whose tolerance follows from that of the others, for any reader."""
    for exposure in solver.exposures:
        tolerance = exposure.tolerance
        own = np.flatnonzero(tolerance.applies_to(points))
        if not own.size:
            continue
        delta = tolerance.matrix(exposure.unknown, points[own])
        beside = tolerance.beside_records(exposure.unknown, points[own])
        kept = own[independent_subset(delta, threshold, beside)]
        points = points[np.sort(np.concatenate([kept, np.setdiff1d(np.arange(len(points)), own)]))]
    return points


def greedy_order(prior: Prior, candidates: Array, epsilon: float, limit: int) -> Pivots:
    """The greedy cover (MATH.md 3): always the candidate with the largest power function.

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


def far_apart(prior: Prior, points: Array, badness: Array, count: int) -> list[int]:
    """Up to ``count`` of ``points``, the worst first, no two of them telling almost the same."""
    chosen: list[int] = []
    scale = np.sqrt(prior.variance(points))
    nearest = np.zeros(points.shape[0])
    for i in np.argsort(-badness, kind="stable"):
        if len(chosen) == count:
            break
        if nearest[i] > ALMOST_THE_SAME:
            continue
        chosen.append(int(i))
        correlation = prior.covariance(points, points[i : i + 1])[:, 0] / (scale * scale[i])
        nearest = np.maximum(nearest, np.abs(correlation))
    return chosen


def _costs(sizes: Sequence[int], cost: Callable[[int], float]) -> dict[int, float]:
    """What some of ``sizes`` cost, nearly the cheapest and its neighbours among them: first some that lie apart."""
    costs: dict[int, float] = {}
    step = FIRST_STEP
    places = list(range(0, len(sizes), step))
    while True:
        costs |= {sizes[place]: cost(sizes[place]) for place in places if sizes[place] not in costs}
        best = sizes.index(min(costs, key=lambda size: costs[size]))
        beside = [place for place in (best - step, best + step) if 0 <= place < len(sizes)]
        if step == 1 and all(sizes[place] in costs for place in beside):
            return costs
        step = -(-step // 2)
        places = [place for place in (best - step, best + step) if 0 <= place < len(sizes)]


class Spread:
    """Inputs that are spread over a region, as each reader sees them.

    ``like`` is the same under another promise: all but how much may be learnt is taken from it.
    """

    def __init__(self, solver: Solver, like: Spread | None = None) -> None:
        self.solver, self.like = solver, like
        self._orders: dict[int, tuple[Array, Pivots]] = {} if like is None else like._orders

    @cached_property
    def points(self) -> Array:
        if self.like is not None:
            return self.like.points
        problem = self.solver.problem
        count = int(np.clip(PROBES_TIMES_ROWS // len(problem.inputs), *PROBES))
        if problem.inputs.features == 1:
            count = PROBES_IN_ONE_COLUMN * len(problem.inputs.outputs)
        spread = problem.region.probes(count, problem.inputs)
        return np.vstack([spread, rows_in_reach(problem.region, problem.inputs)])

    @cached_property
    def probes(self) -> Probes:
        if self.like is None:
            return self.solver.probes(self.points)
        return self.solver.allowing(self.like.probes)

    def greedy(self, most: int) -> tuple[Array, Pivots]:
        """Inputs of the region, and the order in which at most so many of them cover it."""
        if most not in self._orders:
            problem = self.solver.problem
            # evenly spread: what is thinned out of a denser set is not
            count = MATRIX_CANDIDATES if problem.inputs.features > 1 else PROBES_IN_ONE_COLUMN
            points = self.solver.back_end.admissible(problem.region.probes(count, problem.inputs))
            self._orders[most] = points, greedy_order(problem.prior, points, FINEST, most)
        return self._orders[most]


class Candidates:
    """Inputs of a region from which sensitive ones are chosen, as each reader sees them.

    ``limit`` is the share of what may be learnt that is aimed at, ``unit`` what margins are counted in, ``independent``
    how little of a value the others may leave for it to be kept.
    """

    def __init__(self, solver: Solver, spread: Spread, limit: float, unit: float, independent: float, say: Say) -> None:
        self.solver, self.limit, self.unit, self.threshold, self.say = solver, limit, unit, independent, say
        self.problem, self.spread, self.points = solver.problem, spread, spread.points
        self.probes = solver.in_need(spread.probes, limit)
        if not len(self.probes):
            self.probes = spread.probes

    def add(self, points: Array) -> None:
        """Probe these inputs as well."""
        self.probes = self.probes.joined(self.solver.probes(points))

    def stand_ins(self, cover: AskedCover) -> tuple[Literal["greedy", "exchange"], Array]:
        """The sensitive inputs to begin with, and how they were chosen."""
        given = self.solver.back_end.given
        asked = [one.tolerance.applies_to for one in self.solver.exposures]
        if len(given) and all(np.any(asks(given)) or not np.any(asks(self.points)) for asks in asked):
            return "exchange", given
        if cover == "greedy" or (cover == "auto" and self._is_one_share()):
            self.say("choosing sensitive inputs")
            found = self._greedy(insist=cover == "greedy")
            if found is not None:
                return "greedy", self._and_given(found)
        return "exchange", self._and_given(self._exchange())

    def _is_one_share(self) -> bool:
        """Whether the same share may be learnt everywhere: then little more is learnt of what the others determine.

        Where it is not (a position and its velocity, say), a value that the others determine may be learnt too well.
        """
        prior, tolerance = self.problem.prior, self.problem.tolerance
        shares = tolerance.budget(prior, self.points) / prior.variance(self.points)
        return bool(np.ptp(shares) <= SAME_SHARE * np.max(shares))

    def grown(self, sensitive: Array, points: Array, learnt: Array) -> Array:
        """``sensitive`` and those of ``points`` that fall short most, far apart from each other."""
        chosen = points[far_apart(self.problem.prior, points, learnt, ADDED_AT_ONCE)]
        if self.problem.joint:
            return self._independent(np.vstack([sensitive, chosen]), FINEST**2)
        both = self.solver.back_end.admissible(np.vstack([sensitive, chosen])) + 0.0
        _, first = np.unique(both, axis=0, return_index=True)
        return np.asarray(both[np.sort(first)])

    def first_few(self, epsilon: float, most: int) -> Array:
        """A coarse cover of the rows in the region, or of the region where there are none."""
        # in an order that does not depend on that of the rows
        inside = np.unique(self.problem.rows_inside + 0.0, axis=0)
        start = self.solver.back_end.admissible(inside if len(inside) else self.points)
        start = start[:: -(-len(start) // (4 * MATRIX_CANDIDATES))]
        first = start[greedy_order(self.problem.prior, start, epsilon, most).order]
        given = self.solver.back_end.given
        return np.vstack([given, first[~among(first, given)]])

    def _and_given(self, sensitive: Array) -> Array:
        """``sensitive`` and the inputs that must be among them."""
        given = self.solver.back_end.given
        if not len(given):
            return sensitive
        return self._independent(np.vstack([given, sensitive[~among(sensitive, given)]]))

    def _independent(self, points: Array, threshold: float | None = None) -> Array:
        return independent_points(self.solver, self.solver.back_end.admissible(points), threshold or self.threshold)

    def _greedy(self, insist: bool) -> Array | None:
        """The greedy cover, of any size, that needs the least noise; None where it would need too many inputs."""
        points, pivots = self.spread.greedy(GREEDY_MOST if insist else GREEDY_LIMIT)
        if pivots.largest[-1] > (COARSEST if insist else EPSILON) ** 2:
            if not insist:
                return None
            raise InputError(
                f"cover is 'greedy', which would need more than {GREEDY_MOST} sensitive inputs for this region and "
                'kernel; use cover="exchange" or "auto".'
            )
        smallest, largest = len(pivots.prefix(COARSEST**2)), len(pivots.order)
        few = len(self.problem.inputs) <= FEW_ROWS
        count = SIZES if few else SIZES // 2
        sizes = np.unique(np.round(np.geomspace(smallest, largest, count)).astype(int)).tolist()

        def cover(size: int) -> Array:
            return self._independent(points[pivots.order[:size]])

        def program(size: int) -> Program:
            # records ask for the same, whatever the cover
            return self.solver.program(cover(size), with_records=False)

        def rough_cost(size: int) -> float:
            made = program(size)
            return made.rough_cost(self.rough_tightening(made))

        if not self.solver.is_well_conditioned or (few and self.problem.structure == "diagonal"):
            if not few:
                return self._independent(points[pivots.prefix(EPSILON**2)])
            costs = _costs(sizes, lambda size: self._cost(program(size)))
        else:
            costs = _costs(sizes, rough_cost)
            if few:
                # a rough noise may take the best for the second best of those beside it
                best = sorted(costs, key=lambda size: costs[size])[:COMPARED]
                costs = {size: self._cost(program(size)) for size in best}
        return cover(min(sorted(costs), key=lambda size: costs[size]))

    def _cost(self, program: Program) -> float:
        """What the noise costs when the inputs of ``program`` are held as tight as the probes need it."""
        return self.solver.weighted_trace(program.solve(self.tightening(program)).noise)

    def tightening(self, program: Program) -> float:
        """About how tight the inputs of ``program`` must be held, as far as that can be said quickly."""
        if len(self.problem.inputs) <= FEW_ROWS:
            return self._tightening(lambda t: self.solver.learnt(program.solve(t).noise, self.probes))
        return self.rough_tightening(program) if self.solver.is_well_conditioned else 1.0

    def rough_tightening(self, program: Program) -> float:
        """About how tight the inputs of a well-conditioned program must be held, by its rough noise."""
        return self._tightening(program.roughly_learnt(self.probes))

    def _tightening(self, learnt_at: Callable[[float], Array]) -> float:
        """The t at which what is learnt at the probes is about what may be; it falls more slowly than t."""
        t = 1.0
        for _ in range(MOST_STEPS):
            alive()
            most = float(np.max(learnt_at(t)))
            if most <= self.limit * (1.0 + self.unit * CLOSE):
                break
            t *= (self.limit / most) ** OVERSTEP
        return t

    def _exchange(self) -> Array:
        """Rows and inputs that together leave none short, by a rough noise that needs no n × n eigenproblem."""
        sensitive = self._independent(self.first_few(EPSILON, GREEDY_LIMIT))
        for _ in range(MOST_ADDITIONS):
            program = self.solver.program(sensitive, with_records=False)
            if not self.solver.is_well_conditioned:
                break
            learnt = program.roughly_learnt(self.probes)(self.limit)
            short = learnt > self.limit
            self.say(f"{len(sensitive)} sensitive inputs, {int(np.sum(short))} others fall short")
            grown = self.grown(sensitive, self.probes.points[short], learnt[short]) if np.any(short) else sensitive
            if len(grown) <= len(sensitive):
                break
            sensitive = grown
        return sensitive
