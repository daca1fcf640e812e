"""How much tighter the sensitive inputs must be held so that all that is watched keeps its floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .inputs import Array
from .problem import Look, Problem, Solution

#: Sensitive inputs that would have to be held tighter than this stand for their region too badly.
LOWEST = 0.3


def tighten(
    problem: Problem,
    roots: Sequence[Array],
    look: Look,
    limit: float,
    loosest: float,
    known: tuple[Solution, float] | None = None,
) -> tuple[Solution, float] | None:
    """The noise for the largest tightening t ≤ ``loosest`` with no usage of ``look`` above ``limit``, and t.

    ``known`` is the noise at ``loosest`` with its largest usage, where that has been computed already.
    """

    def attempt(t: float, start: Solution | None) -> tuple[Solution, float]:
        solution = problem.solve(roots, t, start)
        return solution, float(np.max(problem.usage(solution.noise, look)))

    best, usage = attempt(loosest, None) if known is None else known
    if usage <= limit:
        return best, loosest
    low, high, over = loosest, loosest, usage - limit
    spare = -1.0
    while spare < 0:
        # what is explained grows about like t; a little more than that, then ever larger steps
        low *= 0.5 if low < high else max(0.5, 1.0 - 1.3 * over)
        if low < LOWEST:
            return None
        best, usage = attempt(low, best)
        spare = limit - usage
        if spare < 0:
            high, over = low, -spare
    for _ in range(8):
        if spare <= 1e-5 or high - low <= 1e-3 * low:
            break
        # between the ends usage is nearly linear in t; stay off the ends so that both keep moving
        middle = low + (high - low) * float(np.clip(spare / (spare + over), 0.1, 0.9))
        solution, usage = attempt(middle, best)
        if usage <= limit:
            low, best, spare = middle, solution, limit - usage
        else:
            high, over = middle, usage - limit
    return best, low
