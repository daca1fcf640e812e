"""A search for inputs that fall short, where a proof is not possible: a dense set of inputs, walks from its worst.

What is searched is not proved: an input between those that were looked at may be worse.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array
from ..promise import Design

#: How many inputs of the region are looked at: of one column so many for each output; else so many.
IN_ONE_COLUMN, IN_SEVERAL = 4001, 4096

#: How many walks are taken: at least, at most, and as many as ``WALKS_TIMES_ROWS`` over the number of rows; each has so
#: many steps. Where all is proved they only name the worst input, and a few are enough.
WALKS, WALKS_TIMES_ROWS, STEPS = (24, 128), 12_000, 40
FEW_WALKS, FEW_STEPS = 4, 12

#: Regions of more columns are searched, as a rule.
FEW_COLUMNS = 3

#: Walks start from the worst inputs, no two of them more correlated than this: each group of rows has its own.
ALIKE = 0.9

#: The first steps of walks are these shares of the extent of the data; a step that leads nowhere worse is shortened.
FIRST_STEPS, SHORTER = (0.1, 0.01), 0.4


def inputs_to_look_at(design: Design) -> Array:
    """The points of a finite region; else a dense set of it, and its inputs next to the rows of the data."""
    if design.region.points is not None:
        return design.region.points
    rows = design.representatives
    count = IN_ONE_COLUMN * len(rows.outputs) if rows.features == 1 else IN_SEVERAL
    return np.vstack([design.region.probes(count, rows, batch=1), design.rows_in_reach()])


def inputs_looked_at(design: Design) -> int:
    """How many inputs are looked at, about: those of a dense set, of walks, and the rows in reach of the region."""
    listed, region, rows = design.tolerance.listed_at, design.region, design.representatives
    if listed is not None or region.points is not None:
        return len(listed if listed is not None else region.points)  # type: ignore[arg-type]
    columns = int(np.count_nonzero(region.varying_columns(rows.dimension)))
    # with few columns a region is proved, as a rule, and walks only name the worst input
    walks, steps = (FEW_WALKS, FEW_STEPS) if columns <= FEW_COLUMNS else (_walks(len(rows)), STEPS)
    walked = walks * len(FIRST_STEPS) * 2 * columns * steps
    return IN_SEVERAL * len(rows.outputs) + 2 * len(rows) + walked


def _walks(rows: int) -> int:
    return int(np.clip(WALKS_TIMES_ROWS // max(rows, 1), *WALKS))


def worse_inputs(
    design: Design, points: Array, ratios: Array, ratios_at: Callable[[Array], Array], few: bool = False
) -> Array:
    """Where walks (or a ``few``) from the worst of ``points`` end, along the columns and inside the region."""
    region, rows = design.region, design.representatives
    walks, steps = (FEW_WALKS, FEW_STEPS) if few else (_walks(len(rows)), STEPS)
    moving = np.flatnonzero(region.varying_columns(rows.dimension))
    extent = np.ptp(rows.values[:, moving], axis=0)
    if not np.any(extent > 0):
        return points[:0]
    here = points[_worst_apart(design, points, ratios, walks)]
    step = np.repeat(FIRST_STEPS, len(here))
    here = np.tile(here, (len(FIRST_STEPS), 1))
    best = ratios_at(here)
    for _ in range(steps):
        trial = np.repeat(here[:, None, :], 2 * moving.size, axis=1)
        for place, column in enumerate(moving):
            trial[:, 2 * place, column] += step * extent[place]
            trial[:, 2 * place + 1, column] -= step * extent[place]
        flat = region.project(trial.reshape(-1, trial.shape[2]), rows)
        inside = np.flatnonzero(region.contains(flat))
        found = np.full(len(flat), np.inf)
        found[inside] = ratios_at(flat[inside])
        table = found.reshape(len(here), -1)
        choice = np.argmin(table, axis=1)
        lowest = table[np.arange(len(here)), choice]
        better = lowest < best
        here = np.where(better[:, None], flat.reshape(*trial.shape)[np.arange(len(here)), choice], here)
        best = np.where(better, lowest, best)
        step[~better] *= SHORTER
    return here


def _worst_apart(design: Design, points: Array, ratios: Array, most: int) -> list[int]:
    """The worst of ``points``, no two of them alike."""
    deviation = np.sqrt(design.prior.variance(points))
    chosen: list[int] = []
    alike = np.zeros(len(points), dtype=np.bool_)
    for place in np.argsort(ratios, kind="stable"):
        if len(chosen) == most:
            break
        if not alike[place]:
            chosen.append(int(place))
            covariance = design.prior.covariance(points, points[place : place + 1])[:, 0]
            alike |= np.abs(covariance) > ALIKE * deviation * deviation[place]
    return chosen
