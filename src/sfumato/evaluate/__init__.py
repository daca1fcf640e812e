"""What readers can do, and what protection costs: attacks, audit, rehearsal, rivals, trade-off, suggestions.

It takes a release and the truth, which only its owner has; or a prior, inputs and a region before anything is
published. It gives errors of adversaries in multiples of the floor, and tables of what each level costs.
"""

from .audits import AUDIT_HEADER, Audit, audit
from .levels import Effect, Levels
from .objectives_compared import ObjectivesCompared, compare_objectives
from .predictors import Rival, rivals
from .promises_compared import compare_promises
from .rehearsal import REHEARSAL_HEADER, Rehearsal, Stage, rehearse
from .rivals import Budget, PrivatePredictions, cloak, dropout, solve_positive, standard_dp, stationary, unsafe_normals
from .suggestions import OBJECTIVES, Option, Suggestion, check_suggestion, other_objective, suggest
from .target import Outcome
from .tradeoffs import (
    TRADEOFF_HEADER,
    WIDE_ONLY,
    Tradeoff,
    cells,
    errors_outside,
    notes,
    number,
    share,
    short,
    title_of,
    tradeoff,
)
