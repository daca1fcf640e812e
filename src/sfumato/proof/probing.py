"""Where to probe a region: between rows that lie close together, on the scale of the kernel; and walks to worse inputs.

A dense set of inputs misses small groups of rows in a large region, and what is learnt is largest between the rows of
a group, not at any of them. Moving from a row to the mean of the rows around it, weighted by the kernel, and again
from there (mean shift), leads to such places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array, Index
from ..data import Inputs
from ..models import Prior
from ..regions import Region

#: After how many moves a place is noted.
MOVES = (1, 2, 4, 8)


def places_between_rows(prior: Prior, inputs: Inputs, region: Region, most: int) -> Array:
    """Inputs of the region among groups of rows, found from at most ``most`` rows; each place once."""
    moving = np.flatnonzero(region.varying_columns(inputs.dimension))
    X = inputs.values
    here = np.array(region.project_into_parts(X[:: -(-len(X) // most)], inputs))
    if moving.size == 0:
        return here[:0]
    # rows that are told exactly count for more than rows with much noise
    noise = prior.noise if isinstance(prior.noise, float) or len(prior.noise) == len(X) else 0.0
    trust = 1.0 / (prior.variance(X) + noise)
    noted = []
    for move in range(1, MOVES[-1] + 1):
        pull = np.abs(prior.covariance(here, X)) * trust
        total = np.sum(pull, axis=1, keepdims=True)
        near = total[:, 0] > 0
        here[np.ix_(near, moving)] = (pull[near] @ X[:, moving]) / total[near]
        here = np.array(region.project(here, inputs))
        if move in MOVES:
            noted.append(here.copy())
    places = np.vstack(noted) + 0.0
    places = places[region.contains(places)]
    # moves that lead to the same place agree to a few digits only
    spread = np.ptp(X, axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    _, first = np.unique(np.round(places / scale, 7), axis=0, return_index=True)
    return np.asarray(places[np.sort(first)])


def kernel_steps(prior: Prior, points: Array, columns: Index, longest: Array) -> Array:
    """For each point and each of ``columns`` the step that changes f noticeably (correlation 0.9), or ``longest``."""
    lengths = np.logspace(0, -9, 40)
    steps = np.empty((len(points), len(columns)))
    for i, point in enumerate(points):
        own = float(prior.variance(point[None])[0])
        for k, column in enumerate(columns):
            moved = np.repeat(point[None], len(lengths), axis=0)
            moved[:, column] += longest[k] * lengths
            spread = np.sqrt(np.maximum(own * prior.variance(moved), np.finfo(float).tiny))
            close = prior.covariance(moved, point[None])[:, 0] / spread >= 0.9
            steps[i, k] = longest[k] * lengths[int(np.argmax(close)) if np.any(close) else -1]
    return steps


def far_apart(prior: Prior, points: Array, badness: Array, count: int) -> list[int]:
    """Up to ``count`` of ``points``, the worst first, no two of them telling almost the same.

    A point is passed over when a chosen one correlates with it by more than 0.9.
    """
    chosen: list[int] = []
    scale = np.sqrt(prior.variance(points))
    nearest = np.zeros(points.shape[0])
    for i in np.argsort(-badness, kind="stable"):
        if len(chosen) == count:
            break
        if nearest[i] > 0.9:
            continue
        chosen.append(int(i))
        correlation = prior.covariance(points, points[i : i + 1])[:, 0] / (scale * scale[i])
        nearest = np.maximum(nearest, np.abs(correlation))
    return chosen


def starts(prior: Prior, points: Array, badness: Array, count: int) -> Index:
    """Which ``points`` to walk from: a few of the very worst, the others telling different things, the worst first."""
    worst = np.argsort(-badness, kind="stable")[: count // 8]
    apart = far_apart(prior, points, badness, count - len(worst))
    return np.unique(np.concatenate([worst, np.array(apart, dtype=np.intp)]))


def walk(
    badness_at: Callable[[Array], Array], prior: Prior, inputs: Inputs, region: Region, here: Array, rounds: int
) -> Array:
    """Walk from ``here`` to worse inputs inside the region, ``rounds`` steps; where the walks end.

    Steps go along the columns and shrink where none is worse. Each start is walked from with long steps and with short
    ones, on the scale of the kernel: what is learnt can have several peaks within one lengthscale.
    """
    moving = np.flatnonzero(region.varying_columns(inputs.dimension))
    longest = 0.1 * np.maximum(np.ptp(inputs.values[:, moving], axis=0), np.finfo(float).tiny)
    step = kernel_steps(prior, here, moving, longest)
    here, step = np.vstack([here, here]), np.vstack([step, 0.3 * step])
    best = badness_at(here)
    for _ in range(rounds):
        trial = np.repeat(here[:, None, :], 2 * moving.size, axis=1)
        for k, column in enumerate(moving):
            trial[:, 2 * k, column] += step[:, k]
            trial[:, 2 * k + 1, column] -= step[:, k]
        flat = region.project(trial.reshape(-1, trial.shape[2]), inputs)
        inside = region.contains(flat)
        values = np.full(flat.shape[0], -np.inf)
        if np.any(inside):
            values[inside] = badness_at(flat[inside])
        table = values.reshape(len(here), -1)
        choice = np.argmax(table, axis=1)
        found = table[np.arange(len(here)), choice]
        better = found > best
        here = np.where(better[:, None], flat.reshape(len(here), -1, flat.shape[1])[np.arange(len(here)), choice], here)
        best = np.where(better, found, best)
        step[~better] *= 0.4
    return here
