"""Which centres to take: few, and such that little of f is left out, at the rows and in the region."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..arrays import Array, Index
from ..data import Inputs
from ..linalg import block_pivots
from ..models import Prior
from ..promise import Reader
from ..regions import Region

#: How many rows, and how many inputs of the region, centres are taken from.
MOST_ROWS, MOST_PROBES = 4096, 1024

#: A variance that is less than this share of what it was is taken for round-off.
LEAST_SHARE = 1e-10

#: More centres than this are not taken: everything that follows is O(p³).
MOST_CENTRES = 2048


@dataclass(frozen=True, eq=False)
class Centres:
    """``places`` (Z), and ``means``: the mean variance left out at a row when only the first k are taken."""

    places: Array
    means: Array

    def needed_for(self, mean: float) -> int:
        """About how many centres leave out no more than ``mean`` a row; beyond those at hand the trend is followed."""
        reached = np.flatnonzero(self.means <= mean)
        if reached.size:
            return int(reached[0])
        count = len(self.means) - 1
        half = count // 2
        falls = np.log(max(self.means[half], 1e-300)) - np.log(max(self.means[-1], 1e-300))
        wanted = np.log(max(self.means[-1], 1e-300)) - np.log(mean)
        if falls <= 1e-6 or half < 8:
            return 10**12
        # smooth kernels: log of what is left falls with a power of the count, at least as slowly as its logarithm
        slope = falls / np.log(count / half)
        return int(min(count * np.exp(wanted / slope), 1e12))


def choose_centres(
    prior: Prior,
    inputs: Inputs,
    region: Region,
    mean: float,
    limit: int = MOST_CENTRES,
    always: Array | None = None,
    device: str | None = None,
    least: float = LEAST_SHARE,
) -> Centres:
    """Centres that leave out at most ``mean`` of the variance at a row, on average, and in the region.

    ``inputs`` are rows that stand for all of them; ``always`` are inputs to make centres first, unless they
    have less left than the share ``least``. At most ``limit``.
    """
    rows = inputs.values[:: -(-len(inputs) // MOST_ROWS)]
    first = inputs.values[:0] if always is None else always
    inside = region.points if region.points is not None else region.probes(MOST_PROBES, inputs)
    pool = np.vstack([first, inside[:: -(-len(inside) // MOST_PROBES)], rows]) + 0.0
    _, once = np.unique(pool, axis=0, return_index=True)
    once = np.sort(once)
    of_data = once >= len(pool) - len(rows)
    first = pool[once[once < len(first)]]
    pool = pool[once]
    diagonal = prior.variance(pool)

    def enough(left: Array) -> bool:
        return bool(np.sum(left[of_data]) <= mean * len(rows) and np.max(left[~of_data], initial=0.0) <= 8.0 * mean)

    reader = Reader(prior)
    places = reader.tensor(pool, device)

    def columns(picked: Index) -> torch.Tensor:
        return reader.kernel(places, reader.tensor(pool[picked], device))

    found = block_pivots(diagonal, columns, enough, limit, LEAST_SHARE, len(first), least)
    return Centres(pool[found.order], found.means)
