"""A fit to more rows than the exact likelihood can take: the collapsed bound, and what it is worth.

The search begins where an exact fit to some rows ended, and climbs the bound of all rows. A bound that is loose draws
the values away from the likely ones: it is left where rows that had no part in the exact fit are less likely with it,
unless it rose by more than it can be expected to be below the likelihood where it began.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..progress import Progress
from .collapsed import CollapsedBound, climbed, inducing_inputs
from .fit_rows import FitRows
from .fit_search import Fitted, Search, exactly

#: Known noise below this share of the variance of y leaves no bound worth having.
LEAST_NOISE = 1e-6
#: Values that make rows less likely by at most this, in logarithms, are as good as others.
NEARLY = 2.0
#: Of more than four times as many rows so many are climbed first.
MANY = 1 << 16


def why_not_bounded(search: Search) -> str:
    """Why there is no bound for many rows; "" where there is one."""
    question = search.question
    if isinstance(question.kernel, Kernel):
        return "there is no bound for a kernel of your own"
    if isinstance(question.mean, Mean):
        return "there is no bound for a mean of your own"
    if question.noise is None and np.any(question.rows.noise < LEAST_NOISE * search.y_scale**2):
        return "there is no bound without noise"
    return ""


def fitted_to_many(search: Search, first: Fitted, rows: FitRows, few: FitRows, device: str, bar: Progress) -> Fitted:
    """What makes the bound of all ``rows`` largest, or ``first``, if other rows are more likely under it.

    Of very many rows some are climbed first: where their bound misleads already, that of all would.
    """
    began = search.vector()
    others = rows.without(few).some(len(few))
    fresh, places = search.on_scale(others.read()), inducing_inputs(search, device)
    with exactly(), torch.no_grad():
        before = -float(search.loss(fresh))
    for part in [rows.some(MANY), rows] if len(rows) > 4 * MANY else [rows]:
        bar.stage(f"fitting the prior to {len(part):,} rows")
        search.to(device)
        with exactly():
            bound = CollapsedBound(search, part, places, device, bar.counter(len(part)))
            vector, slope = climbed(bound) if len(began) else (began, 0.0)
            search.put(began)
            at_first = bound.value()
            search.put(vector)
            found = bound.value()
        search.to("cpu")
        with exactly(), torch.no_grad():
            below = CollapsedBound(search, others, places).value().value / len(others)
            exact = -float(search.loss(fresh))
        gained = found.value - at_first.value - at_first.slack
        gap = f"{len(others)} other rows have a log likelihood of {exact:.4g} each, and the bound says {below:.4g}"
        if gained <= 0.0 and len(others) * (before - exact) > NEARLY:
            note = (
                f"values that make a bound for {len(part):,} rows largest were left: with them {gap}; with these they "
                f"have {before:.4g}."
            )
            search.put(began)
            return replace(first, notes=(*first.notes, note))
    method = f"L-BFGS on a bound with {len(places)} inducing inputs"
    fitted = search.ended(method, slope, first.starts, found.beta)
    notes = [f"the log likelihood is a lower bound (collapsed, of all rows): {gap}."]
    if gained > 0.0:
        notes.append(
            f"all rows are more likely than with values fitted to {len(few)} of them, by {gained:.4g} after what the "
            "bound is expected to leave."
        )
    value = found.value - len(rows) * math.log(search.y_scale)
    return replace(fitted, notes=(*fitted.notes, *notes), bound=value)
