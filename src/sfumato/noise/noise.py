"""The noise that is added: ``Z ~ N(0, Σ)``, with Σ kept in a form that is PSD by construction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..arrays import Array


class Noise(ABC):
    """A Gaussian noise covariance Σ over the rows of the data.

    ``Σ = F Fᵀ + shift · I``: ``factor`` is F, with a column for each independent source; ``shift`` is a tiny
    independent noise variance on every row that puts round-off on the safe side, and is 0 mostly.
    """

    factor: Array
    shift: float

    @property
    def rows(self) -> int:
        """How many rows of data the noise is for."""
        return len(self.variance())

    @property
    @abstractmethod
    def rank(self) -> int:
        """How many independent sources there are (the shift not counted)."""

    @property
    @abstractmethod
    def least(self) -> float:
        """A lower bound for the smallest eigenvalue of Σ."""

    @property
    @abstractmethod
    def normals_needed(self) -> int:
        """How many independent standard normals one draw uses."""

    @abstractmethod
    def variance(self) -> Array:
        """The diagonal of Σ: how much each row is blurred."""

    @abstractmethod
    def covariance(self) -> Array:
        """Σ as a matrix."""

    @abstractmethod
    def draw(self, normals: Array) -> Array:
        """Z made from ``normals_needed`` standard normals."""

    @property
    def trace(self) -> float:
        return float(np.sum(self.variance()))


@dataclass(frozen=True, eq=False)
class CorrelatedNoise(Noise):
    """``Σ = F Fᵀ + shift · I``.

    ``factor`` is F, with one row for each row of data and one column for each independent source.
    ``shift`` is there only where round-off could decide otherwise: where the data's own covariance is singular to
    working precision, or where F comes from an approximation. It is drawn and published like the rest.
    """

    factor: Array
    shift: float = 0.0

    def __post_init__(self) -> None:
        factor = np.array(self.factor, dtype=np.float64, order="C")
        factor.setflags(write=False)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "shift", float(self.shift))

    @property
    def rows(self) -> int:
        return int(self.factor.shape[0])

    @property
    def rank(self) -> int:
        return int(self.factor.shape[1])

    @property
    def least(self) -> float:
        return self.shift

    @property
    def normals_needed(self) -> int:
        return self.rank + (self.rows if self.shift > 0 else 0)

    @property
    def trace(self) -> float:
        return float(np.sum(self.factor**2) + self.rows * self.shift)

    def variance(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.factor, self.factor) + self.shift)

    def covariance(self) -> Array:
        covariance = self.factor @ self.factor.T
        covariance[np.diag_indices(self.rows)] += self.shift
        return np.asarray(covariance)

    def draw(self, normals: Array) -> Array:
        drawn = self.factor @ normals[: self.rank]
        if self.shift > 0:
            drawn = drawn + np.sqrt(self.shift) * normals[self.rank :]
        return np.asarray(drawn)


@dataclass(frozen=True, eq=False)
class IndependentNoise(Noise):
    """``Σ = Diag(d)``: every row is blurred by itself. ``variances`` is d."""

    variances: Array
    shift: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        variances = np.array(self.variances, dtype=np.float64)
        variances.setflags(write=False)
        object.__setattr__(self, "variances", variances)

    @property
    def rows(self) -> int:
        return int(self.variances.shape[0])

    @cached_property
    def factor(self) -> Array:  # type: ignore[override]
        blurred = np.flatnonzero(self.variances)
        factor = np.zeros((self.rows, blurred.size))
        factor[blurred, np.arange(blurred.size)] = np.sqrt(self.variances[blurred])
        return factor

    @property
    def rank(self) -> int:
        return int(np.count_nonzero(self.variances))

    @property
    def least(self) -> float:
        return float(np.min(self.variances))

    @property
    def normals_needed(self) -> int:
        return self.rows

    def variance(self) -> Array:
        return np.array(self.variances)

    def covariance(self) -> Array:
        return np.diag(self.variances)

    def draw(self, normals: Array) -> Array:
        return np.asarray(np.sqrt(self.variances) * normals)


def no_noise(rows: int) -> Noise:
    """Σ = 0."""
    return CorrelatedNoise(np.zeros((rows, 0)))
