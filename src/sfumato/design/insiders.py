"""Noise for insiders too: from a design that keeps the promise to outsiders to one that keeps it to every group.

Few rows, or the best predictions: by adding the groups that learn most to the demands until none learns more than it
may. Many rows: nearly all groups bind, and noise_for_insiders comes close to the least. Noise only adds: what keeps the
promise to readers with one prior keeps it beside the noise for another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..arrays import UNIT, Array, Index
from ..errors import InputError
from ..linalg import as_array
from ..noise import CorrelatedNoise
from ..programs import HeldRows, InsiderNoise, insider_root, noise_for_insiders, promised_root
from ..promise import (
    Cover,
    Design,
    FunctionAndRecords,
    Insider,
    Insiders,
    KernelTolerance,
    MatrixTolerance,
    Reader,
    RecordTolerance,
    RowsHeld,
)
from ..proof import Examination, groups_told
from ..regions import Everywhere
from .problem import BackEnd, Exposure, Problem, Solution
from .sensitive import Say, independent_points
from .solver import Solver

#: Up to this many rows the noise for insiders is the least.
ROWS_FOR_THE_LEAST = 40

#: How far above the least a noise may be, as a share, while groups are still added.
COARSE = 1e-2

#: With more rows the noise is made for this share less than may be learnt: round-off in what insiders are seen to learn
#: is counted against the promise, and a second design takes as long as the first.
SPARE = 1e-5

#: At most this many groups are added at a time.
ADDED_AT_ONCE = 16

#: A design is tightened by this much more than what was seen to be too much.
MORE = 2e-3

#: Where some input is learnt by more than this share too well it becomes a sensitive one, with at most so many others.
MUCH, PLACES_AT_ONCE = 0.02, 6

#: An input becomes a sensitive one if the others leave at least this share of what may be learnt of it.
APART = 1e-7

#: Where more than this must be tightened, round-off is what insiders seem to learn.
TIGHTEST = 0.3

#: A design is made at most this often.
MOST_DESIGNS = 12

#: A group that learns more than it may by no more than this share is not added: tightening costs less.
CLOSE = 1e-6

#: A group whose rows are known from what is sensitive to this share of their variance binds nobody: what is promised
#: about sensitive values is promised to who knows some of them.
KNOWN = 1e-8


@dataclass(frozen=True, eq=False)
class ForInsiders:
    """Designs for the ``insiders`` of a problem, at these ``sensitive`` inputs.

    Where it is ``serving``, and the problem serves inputs, they are those with the best predictions.
    A design starts from what the last one found: ``_before`` for each prior, or the ``_binding`` groups.
    """

    back_end: BackEnd
    insiders: Insiders
    cover: Cover
    sensitive: Array
    say: Say
    serving: bool = True
    _before: dict[int, InsiderNoise] = field(default_factory=dict)
    _binding: list[Insider] = field(default_factory=list)

    def solved(self, tightening: float) -> tuple[Solution, tuple[Insider, ...]]:
        """The noise with Δ tightened so much, and for whom it was made."""
        problem = self.solver.problem
        if problem.structure == "diagonal" or self.solver.serving or len(problem.inputs) <= ROWS_FOR_THE_LEAST:
            return self._by_groups(tightening)
        t, factors, shift = (1.0 - SPARE) * tightening, [], 0.0
        for number, exposure in enumerate(self.solver.exposures):
            A = np.array(as_array(exposure.data_covariance))
            # as in Program.solve: round-off must not decide
            own = exposure.shift(len(A) * UNIT * exposure.largest / t)
            A[np.diag_indices_from(A)] += own
            factors.append(self._near_least(number, A, t))
            shift = max(shift, own)
        return Solution(CorrelatedNoise(np.hstack(factors), shift)), ()

    def design(self, solution: Solution, binding: tuple[Insider, ...]) -> Design:
        """The design with this noise."""
        made = self.back_end.published(self.cover, self.sensitive, solution)
        serves = made.serves if self.serving else None
        return replace(made, insiders=self.insiders, designed_for=binding, serves=serves)

    def grown(self, points: Array) -> ForInsiders:
        """With those of ``points`` among the sensitive inputs that these do not determine."""
        sensitive = self.sensitive
        for point in points:
            both = np.vstack([sensitive, point])
            if len(independent_points(self.solver, both, APART)) == len(both):
                sensitive = both
        return replace(self, sensitive=sensitive)

    @cached_property
    def solver(self) -> Solver:
        return Solver(self.back_end, serving=self.serving and self.back_end.problem.serves is not None)

    # ---------------------------------------------------------------- group by group

    def _by_groups(self, t: float) -> tuple[Solution, tuple[Insider, ...]]:
        """The noise that is asked for, by groups that are added until none learns too much. The last is accurate."""
        program, binding = self.solver.program(self.sensitive), self._binding
        roots = [(one.prior, self._root(one, t)) for one in binding]
        solution, accuracy = program.solve(t, also=roots, accuracy=COARSE), COARSE
        while True:
            more = self._learning_too_much(solution, t, binding)
            if not more and accuracy == 0.0:
                return solution, tuple(binding)
            accuracy = COARSE if more and accuracy else 0.0
            binding += more
            roots += [(one.prior, self._root(one, t)) for one in more]
            self.say(f"noise for insiders, {len(binding)} groups")
            solution = program.solve(t, solution, accuracy, self.say, roots)

    def _learning_too_much(self, solution: Solution, t: float, binding: list[Insider]) -> list[Insider]:
        made = replace(self.back_end.published(self.cover, self.sensitive, solution), insiders=self.insiders)
        told = groups_told(made)
        ratios = {Insider(prior, group): told[prior, group] for prior, group in np.ndindex(told.shape)}
        # the noise was made for t·Δ, and round-off is counted against it
        over = [one for one, ratio in ratios.items() if ratio > t * (1.0 + CLOSE) and one not in binding]
        return sorted(over, key=lambda one: -ratios[one])[:ADDED_AT_ONCE]

    def _root(self, one: Insider, t: float) -> Array:
        problem, prior = self.solver.problem, self.solver.exposures[one.prior].reader.prior
        reader = Reader(prior, RowsHeld(prior, problem.inputs, self.insiders.groups[one.group]))
        return insider_root(reader, problem.inputs, problem.tolerance, self.sensitive, problem.records, t)

    # ---------------------------------------------------------------- many rows

    def _near_least(self, number: int, A: Array, t: float) -> Array:
        """A factor of little noise that keeps the promise to readers with one prior, and to every group of them."""
        problem, exposure = self.solver.problem, self.solver.exposures[number]
        root = self._joint_root(exposure, t)
        needed = root @ root.T
        share, safe = self._safe(exposure, A, t)
        held = self._held(A, needed, 1.0 - share)
        found = noise_for_insiders(A, root, held, safe, problem.weights, self._before.get(number), self.say)
        self._before[number] = found
        return found.factor

    def _joint_root(self, exposure: Exposure, t: float) -> Array:
        """U of the joint promise to outsiders, whichever is asked for: insiders are promised jointly."""
        values, places = self._values(exposure)
        cross = as_array(values.with_data(self.solver.problem.inputs, places))
        return np.asarray(promised_root(cross, self.solver.problem.tolerance, values, places, True) / np.sqrt(t))

    def _values(self, exposure: Exposure) -> tuple[FunctionAndRecords, Array]:
        values = exposure.reader.values(self.solver.problem.inputs, self.solver.problem.records)
        return values, values.places(self.sensitive)

    def _safe(self, exposure: Exposure, A: Array, t: float) -> tuple[float, Array]:
        """The least share of f that may be learnt, and a noise that keeps the promise to everybody.

        Noise (1/α − 1)A tells of anything no more than the share α, whatever else is known. Of records nobody learns
        more than the share α where each has noise (1/α − 1)V of its own, even who knows f.
        """
        problem, (values, places) = self.solver.problem, self._values(exposure)
        tolerance, own = problem.tolerance, values.own_variance(places)
        if isinstance(tolerance, RecordTolerance):
            of_function, of_own = (t * part for part in tolerance.shares(values, places))
            if np.min(of_function) >= t:
                safe = np.zeros(len(A))
                safe[problem.records] = (1.0 / of_own - 1.0) * own
                return float(np.min(of_function)), np.diag(safe)
            share = float(min(np.min(of_function), np.min(of_own)))
            return float(np.min(of_function)), (1.0 / share - 1.0) * A
        function = values.variance(places) - own
        plain = exposure.reader.function
        of_function = tolerance.budget(plain, places) / function
        of_records = tolerance.budget(values, places) / (function + own)
        share = t * float(min(np.min(of_function), np.min(of_records)))
        return t * float(np.min(of_function)), (1.0 / share - 1.0) * A

    def _held(self, A: Array, needed: Array, kept: float) -> list[HeldRows]:
        """What each group asks, by their sizes."""
        records = self.solver.problem.records
        by_size: dict[int, list[Index]] = {}
        for group in self.insiders.groups:
            # who knows a sensitive record is promised what everybody is
            rows = np.setdiff1d(group, records)
            if len(rows):
                by_size.setdefault(len(rows), []).append(rows)
        found = []
        for size, groups in by_size.items():
            rows = np.array(groups)
            own, told = A[rows[:, :, None], rows[:, None, :]], needed[rows[:, :, None], rows[:, None, :]]
            left = np.linalg.eigvalsh(own / (1.0 - kept) - told)[:, 0]
            binds = left > KNOWN * np.trace(own, axis1=1, axis2=2) / size
            if np.any(binds):
                rows = rows[binds]
                found.append(HeldRows.of(A[:, rows], needed[:, rows], own[binds], told[binds], kept))
        return found


def check_insiders(problem: Problem) -> None:
    """Refuse what cannot be promised to insiders."""
    if problem.insiders is None:
        return
    tolerance = problem.tolerance
    if isinstance(tolerance, (KernelTolerance, MatrixTolerance)):
        raise InputError(
            f"insiders is given, but tolerance is a {type(tolerance).__name__}, which does not say what share of what "
            "they do not know insiders may learn; give alpha or floor."
        )
    if isinstance(problem.region, Everywhere):
        raise InputError("insiders is given, but region is sf.Everywhere(); bound it, for example with sf.Box.")
    for prior in problem.priors:
        for number, rows in enumerate(problem.insiders.groups):
            if len(rows) == 1:
                continue  # its variance is positive, as that of every row
            try:
                _ = RowsHeld(prior, problem.inputs, rows).lower
            except np.linalg.LinAlgError:
                raise InputError(
                    f"insiders has {len(rows)} rows in group {number} of which some determine others under the prior "
                    "(equal inputs and noise 0, for example); leave these out of the group, or give the prior the "
                    "variance of the errors in the data (noise)."
                ) from None


def settled(
    made: ForInsiders, tightening: float, examine: Callable[[Design], Examination]
) -> tuple[Design, Examination]:
    """The loosest design of ``made`` that was found to hold, from ``tightening`` on.

    Inputs of which insiders learn well more than they may become sensitive ones; what is left is tightened.
    """
    first = tightening
    for _ in range(MOST_DESIGNS):
        solution, binding = made.solved(tightening)
        design = made.design(solution, binding)
        seen = examine(design)
        if seen.holds:
            break
        assert seen.insiders is not None
        over = seen.worst
        if not np.isfinite(over) or tightening < TIGHTEST * first:
            raise InputError(
                "insiders is given, but what they learn cannot be computed in float64: the rows that they hold "
                "determine others. Give the prior the variance of the errors in the data (noise), or fewer rows."
            )
        grown = made.grown(seen.insiders.short[:PLACES_AT_ONCE]) if over > 1.0 + MUCH else made
        if len(grown.sensitive) > len(made.sensitive):
            made = grown
        else:
            tightening *= (1.0 - MORE) / max(over, 1.0)
    if seen.holds and solution.more is not None:
        more = made.design(solution.raised(), binding)
        besides = examine(more)
        if besides.holds and len(besides.short) <= len(seen.short):
            return more, besides
    return design, seen
