"""Features of a prior around a few centres, and how centres are chosen.

``f = φᵀu + g``: features φ around p centres, and a rest g. Centres are few, and chosen such that little of f is left
out, at the rows and in the region.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array, Index
from ..data import Inputs
from ..linalg import block_pivots, times_upper
from ..models import Prior, kernel_diagonal, kernel_matrix
from ..promise import Reader
from ..regions import Region
from .roundoff import FEATURE

#: How many rows, and how many inputs of the region, centres are taken from.
MOST_ROWS, MOST_PROBES = 4096, 1024

#: A variance that is less than this share of what it was is taken for round-off.
LEAST_SHARE = 1e-10

#: More centres than this are not taken: everything that follows is O(p³).
MOST_CENTRES = 2048

#: How many rows of features are made at a time on a CPU: few enough to stay in its caches.
ROWS_ON_CPU = 2048


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


@dataclass(frozen=True, eq=False)
class Features:
    """The features of ``prior`` around ``centres`` (Z, p × d): ``φ(x) = L⁻¹ k(Z, x)``, ``K_ZZ = L Lᵀ``; ``lower`` is L.

    What they leave out of f is its covariance once f(Z) is known, so ``Φ Φᵀ ⪯ K_XX`` for any rows X.
    ``f = φ(·)ᵀu + g`` with ``u ~ N(0, Diag(shares))`` and g a process that is independent of u. In exact arithmetic all
    shares are 1; they are less by as much as round-off in L could make φ too large.
    """

    prior: Prior
    centres: Array
    lower: Array

    @classmethod
    def around(cls, prior: Prior, centres: Array) -> Features:
        lower = scipy.linalg.cholesky(prior.covariance(centres), lower=True, check_finite=False)
        return cls(prior, centres, np.asarray(lower))

    def __len__(self) -> int:
        return int(self.centres.shape[0])

    @cached_property
    def inverse(self) -> Array:
        """L⁻¹."""
        identity = np.eye(len(self))
        return np.asarray(scipy.linalg.solve_triangular(self.lower, identity, lower=True, check_finite=False))

    @cached_property
    def amplification(self) -> Array:
        """By how much each feature amplifies round-off in k(x, Z): the squared norms of the rows of L⁻¹."""
        return np.asarray(np.einsum("ij,ij->i", self.inverse, self.inverse))

    @cached_property
    def shares(self) -> Array:
        """The prior variance of u that is counted on."""
        largest = float(np.linalg.norm(self.lower, ord=2)) ** 2
        return np.asarray(1.0 / (1.0 + FEATURE * np.sqrt(len(self)) * UNIT * largest * self.amplification))

    def at(self, X: Array) -> Array:
        """φ(x) for each row of ``X``, rows × p."""
        values = np.empty((len(X), len(self)))
        for start in range(0, len(X), ROWS_ON_CPU):
            stop = start + ROWS_ON_CPU
            values[start:stop] = self.block(torch.from_numpy(np.array(X[start:stop]))).numpy()
        return values

    def left_out(self, X: Array, values: Array | None = None) -> Array:
        """The variance at each row of ``X`` that is not counted on: all of it is given to the reader.

        ``values`` is φ there, where it is known already.
        """
        counted = (self.at(X) if values is None else values) ** 2 @ self.shares
        return np.maximum(self.prior.variance(X) - counted, 0.0)

    def block(self, X: torch.Tensor) -> torch.Tensor:
        """φ(x) for rows on any device."""
        device = str(X.device)
        with torch.no_grad():
            cross = kernel_matrix(self.prior.kernel_on(device), X, self._tensor("centres", device))
            if X.is_cuda:
                # a GPU multiplies far faster than it solves, and errs no more than the shares allow for
                return times_upper(cross, self._tensor("inverse", device))
            upper = self._tensor("upper", device)
            # in its place: new memory for it would take a fifth longer
            block: torch.Tensor = torch.linalg.solve_triangular(upper, cross, upper=True, left=False, out=cross)
            return block

    def variance(self, X: torch.Tensor) -> torch.Tensor:
        """K(x, x) for rows on any device."""
        with torch.no_grad():
            return kernel_diagonal(self.prior.kernel_on(str(X.device)), X)

    @cached_property
    def _there(self) -> dict[tuple[str, str], torch.Tensor]:
        return {}

    def _tensor(self, name: str, device: str) -> torch.Tensor:
        if (name, device) not in self._there:
            values = {"centres": self.centres, "upper": self.lower.T}.get(name)
            values = self.inverse.T if values is None else values
            self._there[name, device] = torch.from_numpy(np.array(values)).to(device)
        return self._there[name, device]

    def __getstate__(self) -> dict[str, Any]:
        # tensors on a device are made again where they are needed
        return {name: self.__dict__[name] for name in ("prior", "centres", "lower")}
