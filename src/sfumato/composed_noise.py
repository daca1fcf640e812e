"""The noise of several releases together: each its own, and measurement errors that they share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from .inputs import Array, Index
from .linalg.parallel_sum import parallel_sum_factor
from .noise import CorrelatedNoise, Noise
from .power_units import units


@dataclass(frozen=True, eq=False)
class Shown:
    """Values that were published at measurements with these numbers, with ``noise`` on them.

    ``uncertain`` is what round-off could hide of the noise on each row.
    """

    measurements: Index
    noise: Noise
    uncertain: Array | float = 0.0

    def again(self, other: Shown) -> Shown:
        """The same measurements shown twice, as one showing that tells as much."""
        mine, theirs = np.argsort(self.measurements), np.argsort(other.measurements)
        first = self.noise.covariance()[np.ix_(mine, mine)]
        second = other.noise.covariance()[np.ix_(theirs, theirs)]
        scale = units(np.diag(first + second))  # rows may be in different ones
        both = np.outer(scale, scale)
        factor, error = parallel_sum_factor(first / both, second / both)
        uncertain = (
            np.broadcast_to(self.uncertain, mine.shape)[mine] + np.broadcast_to(other.uncertain, mine.shape)[theirs]
        )
        noise = CorrelatedNoise(factor * scale[:, None])
        return Shown(self.measurements[mine], noise, uncertain + error * scale**2)


@dataclass(frozen=True, eq=False)
class ComposedNoise(Noise):
    """What stands between f and all that was published: ``blockdiag(Σ₁, Σ₂, …) + P V Pᵀ``.

    The noises of different releases are independent. A measurement that is released twice has one error in both: the
    numbers in ``parts`` say which measurement a row shows (P), ``levels`` is the variance of each one's error. So a
    process with this noise has none of its own (V = 0). ``trace`` is that of all releases' noises.
    """

    parts: tuple[Shown, ...]
    levels: Array
    total: float

    @cached_property
    def measurements(self) -> Index:
        return np.concatenate([np.zeros(0, dtype=np.intp), *(part.measurements for part in self.parts)])

    @property
    def rows(self) -> int:
        return len(self.measurements)

    @property
    def rank(self) -> int:
        return sum(part.noise.rank for part in self.parts)

    @property
    def shift(self) -> float:  # type: ignore[override]
        return 0.0

    @property
    def least(self) -> float:
        return 0.0

    @property
    def trace(self) -> float:
        return self.total

    @property
    def normals_needed(self) -> int:
        raise NotImplementedError("releases are drawn one by one")

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        return np.asarray(scipy.linalg.block_diag(*(part.noise.factor for part in self.parts)))

    def variance(self) -> Array:
        return np.concatenate([part.noise.variance() for part in self.parts])

    def covariance(self) -> Array:
        """All that stands between f and the published values; what round-off could hide of it is taken off."""
        blocks = [part.noise.covariance() - np.eye(part.noise.rows) * part.uncertain for part in self.parts]
        total = np.asarray(scipy.linalg.block_diag(*blocks), dtype=np.float64)
        return total + same_measurement(self.measurements, self.measurements) * self.levels[self.measurements]

    def draw(self, normals: Array) -> Array:
        raise NotImplementedError("releases are drawn one by one")


def same_measurement(first: Index, second: Index) -> Array:
    """1 where two rows show the same measurement, else 0."""
    return np.asarray(first[:, None] == second[None, :], dtype=np.float64)
