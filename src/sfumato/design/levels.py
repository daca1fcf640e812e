"""Designs of one region at many levels, for comparisons: they share factorisations, and are looked at, not proved.

Neither A = Cov(y), nor its Cholesky factor L, nor what L⁻¹ makes of the inputs that are looked at, nor the order in
which inputs cover the region depend on what is promised there. They are worked out once. A level then costs the
positive part of U Δ⁻¹ Uᵀ − A, and a look at what readers of it know.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NoReturn

import numpy as np

from ..arrays import Array
from ..errors import GuaranteeError
from ..noise import Noise
from ..promise import Design
from ..proof import TOLERANCE, Examination, Pieces, examine
from .loop import Attempt, attempted
from .plan import check_memory, exact_plan
from .problem import DenseRows, Explained, Problem, Solver, View
from .sensitive import AskedCover, Say, Spread

#: So many sets of inputs that readers are looked at stay ready.
VIEWS_KEPT = 4


@dataclass(frozen=True, eq=False)
class SharedWork:
    """What all joint promises under one prior about one region of the same rows have in common.

    ``problem`` is any of them.
    """

    problem: Problem
    cover: AskedCover
    _views: OrderedDict[bytes, View] = field(default_factory=OrderedDict, repr=False)

    @cached_property
    def rows(self) -> DenseRows:
        plan = exact_plan(self.problem.size)
        check_memory(plan)
        return DenseRows(replace(self.problem, plan=plan))

    @cached_property
    def solver(self) -> Solver:
        return Solver(self.rows)

    @cached_property
    def spread(self) -> Spread:
        return Spread(self.solver)

    def view(self, points: Array) -> View:
        """``points`` as readers see them; all of their variance may be learnt. The last few are kept."""
        key = hashlib.sha256(points.tobytes()).digest()
        found = self._views.get(key)
        if found is None:
            exposure = self.solver.exposures[0]
            found = View.of(exposure, points).allowing(exposure.unknown.variance(points))
            self._views[key] = found
            while len(self._views) > VIEWS_KEPT:
                self._views.popitem(last=False)
        return found

    def looked_at(self, problem: Problem, say: Say) -> Attempt:
        """The least noise that was found for ``problem``, as ``protect`` finds it, but for the proof.

        Guarantee: where ``seen.holds``, the joint promise holds at the sensitive inputs and for the records, and the
        floor at every input that was looked at: all of a finite region, else thousands that are spread over it, with
        the margin that ``protect`` keeps where it cannot prove. Of a finite region, and where records alone are
        promised, the noise is that of ``protect``.
        """
        rows = DenseRows(replace(problem, plan=self.rows.problem.plan), self.rows)
        spread = Spread(Solver(rows, self.solver), self.spread)
        return attempted(rows, self.cover, partial(_look, spread), say, False, spread=spread)

    def told(self, noise: Noise) -> Explained | None:
        """What data with this noise explain; None where A is too close to singular to share its factor."""
        return Explained.by(self.solver.exposures[0], noise) if self.solver.is_well_conditioned else None


def _look(spread: Spread, design: Design, needed: Sequence[Pieces] | None, quick: bool) -> Examination:
    """What is seen of a design at the inputs of ``spread``; where these are no more than a look, that is what it is."""
    finite = design.region.points is not None or design.cover in ("rows", "everywhere") or not design.protects_function
    if finite:
        return examine(design)
    solver = spread.solver
    view = spread.probes.views[0]
    try:
        told = Explained.by(solver.exposures[0], design.noise)
    except np.linalg.LinAlgError:
        # M is singular to working precision: nothing can be said of what readers know
        learnt, joint = np.full(len(spread.points), np.inf), np.inf
    else:
        learnt = told.at(view) / view.budget
        joint = told.most_of(solver.program(design.sensitive).roots[0])
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
