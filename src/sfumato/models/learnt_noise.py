"""Noise that is learnt: one variance for all rows, or one that differs between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array


@dataclass(frozen=True, eq=False)
class LearntNoise:
    """The logarithm of the noise variance of row i is ``basis[i] @ parameters``; ``names`` say what each is about."""

    basis: Array
    names: tuple[str, ...] = ("",)

    @classmethod
    def the_same(cls, rows: int) -> LearntNoise:
        """One variance for all rows."""
        return cls(np.ones((rows, 1)))

    @property
    def levels(self) -> int:
        return int(self.basis.shape[1])

    def of(self, variances: Array) -> float | Array:
        """``variances`` of the rows as a prior has them: one number where all are the same."""
        return float(variances[0]) if self.levels == 1 else variances

    def words(self, place: int) -> str:
        return f" of {self.names[place]}" if self.names[place] else ""
