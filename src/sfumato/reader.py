"""A reader of published data who is told everything and favoured by round-off.

``M = K_XX + V + Σ`` is the covariance of the published values. What round-off could hide in it is subtracted before it
is inverted (never added, as a jitter would be), and bounds for the other terms' round-off count against the promise.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import torch

from .design import Design
from .inputs import Array
from .prior import Prior
from .programs.everywhere import needed_everywhere

#: Ratios are promised to within this much; it is far above round-off and far below anything one can see.
TOLERANCE = 1e-9

_UNIT = float(np.finfo(np.float64).eps)

#: Combinations of sensitive values with less than this share of the largest tolerance are left out of an estimate.
_TINY = 1e-8


class Reader:
    """What the worst reader of a design who holds ``prior`` learns, from the safe side."""

    def __init__(self, design: Design, prior: Prior) -> None:
        self.design, self.prior = design, prior
        rows = len(design.inputs)
        self.data_covariance = prior.covariance(design.inputs)
        self.data_covariance[np.diag_indices(rows)] += prior.noise_variance(rows)
        self.lower: Array | None = None
        total = design.noise.covariance()
        total += self.data_covariance
        self.largest = float(np.max(np.diag(total)))
        self.allowance = 2.0 * rows * _UNIT * self.largest
        total[np.diag_indices(rows)] -= self.allowance
        lower, failed = torch.linalg.cholesky_ex(torch.from_numpy(total))
        if failed or not torch.isfinite(lower.diagonal()).all():
            return
        self.lower = np.asarray(lower.numpy())
        norm = float(np.max(np.sum(np.abs(self.lower), axis=1)) * np.max(np.sum(np.abs(self.lower), axis=0)))
        reciprocal, _ = scipy.linalg.lapack.dpocon(self.lower, norm, uplo="L")
        # dpocon estimates the norm of the inverse from below, within a factor of three in practice.
        known = float(np.min(prior.noise_variance(rows))) + design.noise.least - self.allowance
        self.least = max(reciprocal * norm / 3.0, known, _UNIT * self.largest)

    def whiten(self, block: Array) -> Array:
        """L⁻¹ block, where M = L Lᵀ."""
        assert self.lower is not None
        solved = torch.linalg.solve_triangular(torch.from_numpy(self.lower), torch.from_numpy(block), upper=False)
        return np.asarray(solved.numpy())

    def deviations(self, points: Array) -> Array:
        """A lower bound for the reader's standard deviation at each point."""
        if self.lower is None:
            return np.zeros(points.shape[0])
        prior, inputs = self.prior, self.design.inputs
        result = np.empty(points.shape[0])
        chunk = max(1, 20_000_000 // len(inputs))
        for start in range(0, points.shape[0], chunk):
            part = points[start : start + chunk]
            variance = prior.variance(part)
            explained = self.whiten(prior.covariance(inputs, part))
            norm = np.sqrt(np.einsum("ij,ij->j", explained, explained))
            slack = 4 * _UNIT * np.sqrt(len(inputs) * variance * self.largest / self.least)
            left = variance * (1 - 4 * _UNIT) - (norm + slack) ** 2
            result[start : start + chunk] = np.sqrt(np.maximum(left, 0.0))
        return result

    def floors(self, points: Array) -> Array:
        """The standard deviation that this reader must keep at each point (0: none)."""
        return self.design.tolerance.floor(self.prior, points)

    def floor_ratios(self, points: Array) -> Array:
        """std(f(s)|W) / floor(s), from below; infinite where nothing is promised."""
        floors = self.floors(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(floors > 0, self.deviations(points) / floors, np.inf)
        return np.where(np.isnan(floors) | np.isnan(ratios), 0.0, ratios)

    def joint_ratio(self) -> float:
        """λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), from above.

        Where only single values are promised it is an estimate, over combinations that have a tolerance worth the name.
        """
        if self.lower is None:
            return float("inf")
        if self.design.cover == "everywhere":
            return self._joint_ratio_everywhere()
        sensitive, region = self.design.sensitive, self.design.region
        if sensitive.shape[0] == 0 or not np.all(region.contains(sensitive)):
            # nothing, or something else than the region, carries the joint promise
            return float("inf")
        if self.design.guarantee == "pointwise":
            # an estimate should not depend on which inputs the owner names
            spread = region.points if region.points is not None else region.candidates(64, self.design.inputs, turn=1)
            sensitive = np.unique(np.vstack([sensitive, spread]), axis=0)
        delta = self.design.tolerance.matrix(self.prior, sensitive)
        values, vectors = scipy.linalg.eigh(delta, check_finite=False)
        if self.design.guarantee == "pointwise":
            values, vectors = values[values > _TINY * values[-1]], vectors[:, values > _TINY * values[-1]]
        # how far round-off in the kernel values may move Δ
        uncertain = _UNIT * np.sqrt(len(values)) * float(np.max(self.prior.variance(sensitive)))
        if values[0] <= 4 * uncertain:
            return float("inf")
        root = vectors / np.sqrt(values)
        explained = self.whiten(self.prior.covariance(self.design.inputs, sensitive) @ root)
        top = np.sqrt(max(float(scipy.linalg.eigvalsh(explained.T @ explained)[-1]), 0.0))
        entries = np.sqrt(len(self.design.inputs)) * np.max(np.sqrt(self.prior.variance(sensitive)))
        slack = 4 * _UNIT * entries * np.sqrt(self.largest / (self.least * values[0]))
        return float((top + slack) ** 2 * (1 + uncertain / values[0]))

    def undetermined(self, points: Array) -> float:
        """The largest share of a standard deviation left at ``points`` once f at the sensitive inputs is known."""
        sensitive = self.design.sensitive
        cross = self.prior.covariance(sensitive, points)
        known = np.einsum("ij,ij->j", cross, scipy.linalg.lstsq(self.prior.covariance(sensitive), cross)[0])
        return float(np.sqrt(np.max(np.clip(1.0 - known / self.prior.variance(points), 0.0, 1.0))))

    def _joint_ratio_everywhere(self) -> float:
        needed = needed_everywhere(self.prior, self.design.tolerance, self.design.inputs)
        excess = self.data_covariance + self.design.noise.covariance() - needed
        values = scipy.linalg.eigvalsh(excess, check_finite=False)
        spare = float(values[0]) - self.allowance
        return 1.0 - spare / float(np.trace(needed)) if spare >= 0 else 1.0 - spare / self.least
