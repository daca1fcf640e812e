"""A reader who knows some true values of f next to the region."""

from __future__ import annotations

import numpy as np

from ..inputs import Mask
from .outcome import Attempt, Skipped
from .target import Target

SHARE = 0.1


def knows_values(target: Target) -> Attempt | Skipped:
    """f is known exactly at a tenth of the rows outside the region, those nearest to it.

    Not covered: the promise counts what the release tells, not what is known besides. Where the owner has measurement
    errors, the owner's best estimate stands for the true values.
    """
    name = "knows nearby values"
    if np.all(target.rows_inside):
        return Skipped(name, "there are no rows outside the region")
    known = _nearest(target)
    rows, count = target.rows[known], int(known.sum())
    values = target.owner.mean_at(rows)
    nothing = np.zeros((count, count)), np.zeros((len(target.rows), count))
    evidence = target.evidence.and_also(rows, values, *nothing)
    seen = evidence.seen_by(target.prior)
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        evidence,
        False,
        "high",
        f"A reader who knows f exactly at the {count} rows next to the region",
        "make the region larger, so that it has all inputs whose values others may know, or choose a larger floor",
    )


def _nearest(target: Target) -> Mask:
    """The rows outside that are nearest to the region, in units of the columns' spreads."""
    inputs = target.design.inputs
    spread = np.std(target.rows, axis=0)
    moved = target.design.region.project(target.rows, inputs) - target.rows
    distance = np.sqrt(np.sum((moved / np.where(spread > 0, spread, 1.0)) ** 2, axis=1))
    distance[target.rows_inside] = np.inf
    count = int(np.ceil(SHARE * np.sum(~target.rows_inside)))
    known = np.zeros(len(target.rows), dtype=np.bool_)
    known[np.argsort(distance, kind="stable")[:count]] = True
    return known
