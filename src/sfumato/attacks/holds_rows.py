"""A reader who holds some of the secret rows already: a public register, a leak, a former customer."""

from __future__ import annotations

import numpy as np

from .outcome import Attempt, Skipped
from .target import Target


def holds_rows(target: Target) -> tuple[Target, Attempt] | Skipped:
    """The true y of every other row inside the region is known; judged at sensitive inputs that are none of them.

    Not covered: the promise counts what the release tells, not what is known besides. W − y at the held rows is noise,
    and noise of few sources (``release.noise.rank``) is known everywhere once it is known at as many rows.
    """
    name = "holds half of the rows"
    inside = np.flatnonzero(target.rows_inside)
    if len(inside) == 0:
        return Skipped(name, "there are no rows inside the region")
    held = np.zeros(len(target.rows), dtype=np.bool_)
    held[inside[::2]] = True
    elsewhere = target.away_from(held)
    if elsewhere is None:
        return Skipped(name, "all sensitive inputs are rows that this reader holds")
    evidence = target.evidence_with(held, target.y[held])
    seen = evidence.seen_by(target.prior)
    attempt = Attempt(
        name,
        seen.mean_at(elsewhere.inputs),
        np.sqrt(seen.variance(elsewhere.inputs)),
        evidence,
        False,
        "high",
        f"A reader who holds the true values of {int(held.sum())} of the {len(inside)} rows inside the region",
        'leave out rows that others hold, blur every row by itself (structure="diagonal"), or choose a larger floor',
    )
    return elsewhere, attempt
