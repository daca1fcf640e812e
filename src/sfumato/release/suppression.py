"""What is published in place of combinations of the rows that are suppressed: what the others predict for them.

Let N span the suppressed combinations, and M be the covariance of ``W = y + Z``. What is left out has no bound in the
span of N, so the others are those that ``P = M⁻¹ − M⁻¹N(NᵀM⁻¹N)⁻¹NᵀM⁻¹`` looks at: ``P N = 0``. Published is
``m + M P (W − m)``: W itself, but for its part in the span of N, which is the one that the prior expects given the
others. Rows are taken in units (powers of two) in which M has about 1 on its diagonal, because several outputs may be
in very different ones; M P does not depend on units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array
from ..linalg import units
from ..promise import Design

#: Values in place of suppressed ones add no more to a row than this many standard deviations, or than the others do.
FURTHEST = 6.0

#: Where less than this share of a standard deviation is shown of a combination, it is round-off.
NOTHING_SHOWN = 1e-6

#: Rounding moves a value by half a step, and by last bits.
HALF_A_STEP = 0.51

#: M is raised by this many n · 2.2e-16 before it is factored: any M will do to predict with, as long as it can be.
RAISED = 4.0


class Shown(NamedTuple):
    """How much published values show of what is suppressed, in standard deviations of readers who are not shown it.

    ``deviations`` is 0 where rounding explains it: up to ``unseen`` nobody can tell one from the other.
    """

    deviations: float
    unseen: float


def units_of_rows(variances: Array) -> Array:
    """Powers of two in which rows have about the variance 1; those that are known have the unit 1."""
    return np.where(variances > 0.0, units(variances), 1.0)


@dataclass(frozen=True, eq=False)
class Suppression:
    """How to fill in what a design suppresses, in units of the rows (``scale``) about the prior's ``mean``.

    ``basis`` are the orthonormal columns of N, and with ``L⁻¹N = Q T`` and ``M = L Lᵀ``, ``upper`` is T and ``looks``
    L⁻ᵀQ: of published values, ``looksᵀ(W − m)`` is 0 where the filled-in ones are as expected, and has the covariance
    I where they are those of ``y + Z``.
    """

    mean: Array
    scale: Array
    basis: Array
    upper: Array
    looks: Array

    @classmethod
    def of(cls, design: Design) -> Suppression:
        inputs, prior = design.inputs, design.prior
        total = _published(design)
        scale = units_of_rows(np.diag(total))
        total /= scale
        total /= scale[:, None]
        total[np.diag_indices_from(total)] += RAISED * len(total) * UNIT
        basis = np.linalg.qr(design.noise.suppressed / scale[:, None])[0]
        lower = scipy.linalg.cholesky(total, lower=True, overwrite_a=True, check_finite=False)
        orthonormal, upper = np.linalg.qr(scipy.linalg.solve_triangular(lower, basis, lower=True, check_finite=False))
        looks = scipy.linalg.solve_triangular(lower, orthonormal, lower=True, trans="T", check_finite=False)
        return cls(prior.mean_at(inputs), scale, basis, upper, looks)

    def fill(self, values: Array) -> Array:
        """``values`` with what the others predict in place of what is suppressed.

        Guarantee: values that differ by suppressed combinations alone give the same, up to rounding: these are taken
        out first, and all that follows is computed from the rest.
        """
        kept, filled, _ = self._parts(values)
        return np.asarray(self.mean + self.scale * (kept + self.basis @ filled))

    def shown(self, outputs: Array, steps: Array) -> Shown:
        """How much published ``outputs`` show of what is suppressed, beyond their rounding to ``steps``."""
        _, filled, share = self._parts(outputs)
        seen = np.abs(self.upper @ (self.basis.T @ ((outputs - self.mean) / self.scale) - filled))
        rounding = HALF_A_STEP * np.abs(self.looks).T @ (steps / self.scale)
        if share < 1.0:  # the share depends on all rows
            rounding = rounding + np.sqrt(len(outputs)) * np.linalg.norm(rounding)
        deviations = np.where(seen <= rounding + NOTHING_SHOWN, 0.0, seen)
        return Shown(float(np.max(deviations, initial=0.0)), float(np.max(rounding, initial=0.0)))

    def _parts(self, values: Array) -> tuple[Array, Array, float]:
        """What is kept of ``values``, the coefficients of what is filled in, and which share of the expected it is."""
        kept = (values - self.mean) / self.scale
        for _ in range(2):  # once more for what rounding leaves
            kept = kept - self.basis @ (self.basis.T @ kept)
        expected = -scipy.linalg.solve_triangular(self.upper, self.looks.T @ kept, check_finite=False)
        furthest = float(np.max(np.abs(self.basis @ expected), initial=0.0))
        most = max(FURTHEST, float(np.max(np.abs(kept))))
        share = most / furthest if furthest > most else 1.0
        return kept, share * expected, share


def _published(design: Design) -> Array:
    """The covariance M of ``y + Z``."""
    rows = len(design.inputs)
    total = torch.from_numpy(design.prior.covariance(design.inputs))
    total.diagonal().add_(torch.from_numpy(np.array(design.prior.noise_variance(rows))))
    return np.asarray(design.noise.add_to(total).numpy())
