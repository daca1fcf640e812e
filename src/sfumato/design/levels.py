"""Designs of one region at many levels, for comparisons: they share factorisations, and are looked at, not proved.

Neither A = Cov(y), nor its Cholesky factor L, nor what L⁻¹ makes of the inputs that are looked at, nor the order in
which inputs cover the region depend on what is promised there. They are worked out once. A level then costs the
positive part of U Δ⁻¹ Uᵀ − A, and a look at what readers of it know.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NoReturn

import numpy as np

from ..arrays import Array, Index
from ..errors import GuaranteeError
from ..noise import Noise
from ..promise import Design
from ..proof import TOLERANCE, Examination, Pieces, examine
from .loop import Attempt, attempted
from .plan import check_memory, exact_plan
from .probes import Explained, View
from .problem import DenseRows, Problem
from .reduced import ReducedRows, Reduction
from .sensitive import AskedCover, Say, Spread
from .solver import Solver

#: So many sets of inputs that readers are looked at stay ready.
VIEWS_KEPT = 4


@dataclass(frozen=True, eq=False)
class Told:
    """What readers of some noise know of f anywhere, and of records; ``blurring`` is all that hides the data."""

    explained: Explained
    blurring: Array
    view: Callable[[Array], View]

    def left_at(self, points: Array) -> Array:
        """The variance of f that is left at ``points``."""
        return self.explained.left_at(self.view(points))

    def left_of_records(self, rows: Index) -> Array:
        """The variance that is left of the records of these rows."""
        return self.explained.left_of_records(self.blurring[rows])

    def changes(self, noise: Noise) -> Array:
        """Var(W_i − y_i) of each row, as proof/changes.py has it, from what all designs share.

        What is published is ``E(y|W) + F Fᵀ P (y + Z − m)``, and ``A − APA = G (I + HᵀH)⁻¹ Gᵀ`` with G = ``blurring`` =
        [F, S]. So it is ``F Fᵀ + A − APA``, less the same product for F alone, [F, 0] in place of G.
        """
        drawn, left = noise.variance(), self.explained.left_of_records
        if not noise.suppressed_count:
            return drawn
        own = np.hstack([noise.factor, np.zeros_like(noise.suppressed)])
        return np.asarray(np.maximum(drawn + left(self.blurring) - left(own), 0.0))


@dataclass(frozen=True, eq=False)
class SharedWork:
    """What all joint promises under one prior about one region of the same rows have in common.

    ``problem`` is any of them. Over a region designs are made on few virtual rows (reduced.py) where these are few
    indeed.
    """

    problem: Problem
    cover: AskedCover
    _reduced: dict[bool, Spread | None] = field(default_factory=dict, repr=False)
    _views: OrderedDict[tuple[int, bytes], View] = field(default_factory=OrderedDict, repr=False)

    @cached_property
    def rows(self) -> DenseRows:
        plan = exact_plan(self.problem.size)
        check_memory(plan)
        return DenseRows(replace(self.problem, plan=plan))

    @cached_property
    def spread(self) -> Spread:
        return Spread(Solver(self.rows))

    def looked_at(self, problem: Problem, say: Say) -> Attempt:
        """The least noise that was found for ``problem``, as ``protect`` finds it, but for the proof.

        Guarantee: where ``seen.holds``, the joint promise holds at the sensitive inputs and for the records, and the
        floor at every input that was looked at: all of a finite region, else thousands that are spread over it, with
        the margin that ``protect`` keeps where it cannot prove. Of a finite region, and where records alone are
        promised, the noise is that of ``protect``.
        """
        shared = self._on_virtual_rows(problem) or self.spread
        rows: DenseRows | ReducedRows
        if isinstance(shared.solver.back_end, ReducedRows):
            rows = shared.solver.back_end.under(problem)
        else:
            rows = DenseRows(replace(problem, plan=self.rows.problem.plan), self.rows)
        spread = Spread(Solver(rows, shared.solver), shared)
        return attempted(rows, self.cover, partial(_look, spread), say, False, spread=spread)

    def told(self, noise: Noise) -> Told | None:
        """What data with this noise tell; None where A is too close to singular to share its factor."""
        for shared in filter(None, self._reduced.values()):
            reduction = _reduction(shared)
            reduced = reduction.reduced(noise)
            if reduced is not None:
                explained = Explained.by(shared.solver.exposures[0], reduced)
                return Told(explained, noise.blurring, partial(self._view, reduction))
        (exposure,) = self.rows.exposures
        if exposure.data_root is None:
            return None
        return Told(Explained.by(exposure, noise), noise.blurring, partial(self._view, None))

    def _view(self, reduction: Reduction | None, points: Array) -> View:
        """``points`` as readers see them; all of their variance may be learnt. The last few are kept."""
        key = id(reduction), hashlib.sha256(points.tobytes()).digest()
        found = self._views.get(key)
        if found is None:
            (exposure,) = self.rows.exposures
            if reduction is None:
                found = View.of(exposure, points).allowing(exposure.unknown.variance(points))
            else:
                found = reduction.view(points)
            self._views[key] = found
            while len(self._views) > VIEWS_KEPT:
                self._views.popitem(last=False)
        return found

    def _on_virtual_rows(self, problem: Problem) -> Spread | None:
        """What designs for virtual rows share, where there are few of them."""
        region = problem.region
        if not problem.protects_function or region.points is not None or region.is_everywhere or self.cover == "rows":
            return None
        records = len(problem.records) > 0
        if records not in self._reduced:
            reduction = Reduction.of(DenseRows(replace(problem, plan=self.rows.problem.plan), self.rows))
            made = None if reduction is None else Spread(Solver(ReducedRows.of(problem, reduction)))
            self._reduced[records] = made
        return self._reduced[records]


def _reduction(shared: Spread) -> Reduction:
    rows = shared.solver.back_end
    assert isinstance(rows, ReducedRows)
    return rows.reduction


def _look(spread: Spread, design: Design, needed: Sequence[Pieces] | None, quick: bool) -> Examination:
    """What is seen of a design at the inputs of ``spread``; where these are no more than a look, that is what it is."""
    finite = design.region.points is not None or design.cover in ("rows", "everywhere") or not design.protects_function
    if finite:
        return examine(design)
    solver = spread.solver
    view, noise = spread.probes.views[0], design.noise
    if isinstance(solver.back_end, ReducedRows):
        noise = solver.back_end.reduction.on_virtual_rows(noise)
    try:
        told = Explained.by(solver.exposures[0], noise)
    except np.linalg.LinAlgError:
        # M is singular to working precision: nothing can be said of what readers know
        learnt, joint = np.full(len(spread.points), np.inf), np.inf
    else:
        learnt = told.at(view) / view.budget
        # without noise only the floor is asked about: what falls short needs noise anyhow
        bare = not noise.blurring.shape[1] and bool(np.any(learnt > 1.0))
        joint = np.inf if bare else told.most_of(solver.program(design.sensitive).roots[0])
    short = learnt > 1.0
    return Examination(
        holds=joint <= 1.0 + TOLERANCE and not np.any(short),
        joint_ratio=joint,
        promises_joint=True,
        promised_ratio=np.nan,
        short=spread.points[short],
        learnt=learnt[short],
        most=float(np.max(learnt)),
        open=None,
        close=None,
        is_searched=True,
        insiders=None,
        make=_not_certified,
    )


def _not_certified() -> NoReturn:
    raise GuaranteeError("a design that was only looked at has no certificate; call sf.protect at its level.")
