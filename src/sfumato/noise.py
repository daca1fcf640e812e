"""The noise that is added: ``Z ~ N(0, Σ)`` with ``Σ = F Fᵀ + shift · I``, PSD by construction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .inputs import Array


@dataclass(frozen=True, eq=False)
class Noise:
    """A Gaussian noise covariance in factored form.

    ``factor`` is F, with one row for each row of data and one column for each independent source.
    ``shift`` is a tiny independent noise variance on every row, there only where the data's own
    covariance is singular to working precision; it is drawn and published like the rest.
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
        """How many independent sources the factor has (the shift not counted)."""
        return int(self.factor.shape[1])

    @property
    def trace(self) -> float:
        return float(np.sum(self.factor**2) + self.rows * self.shift)

    @property
    def normals_needed(self) -> int:
        """How many independent standard normals one draw uses."""
        return self.rank + (self.rows if self.shift > 0 else 0)

    def variance(self) -> Array:
        """The diagonal of Σ: how much each row is blurred."""
        return np.asarray(np.einsum("ij,ij->i", self.factor, self.factor) + self.shift)

    def covariance(self) -> Array:
        """Σ as a matrix."""
        return np.asarray(self.factor @ self.factor.T + self.shift * np.eye(self.rows))

    def draw(self, normals: Array) -> Array:
        """Z made from ``normals_needed`` standard normals."""
        drawn = self.factor @ normals[: self.rank]
        if self.shift > 0:
            drawn = drawn + np.sqrt(self.shift) * normals[self.rank :]
        return np.asarray(drawn)
