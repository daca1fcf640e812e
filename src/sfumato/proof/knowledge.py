"""What a reader knows from a release: one who is told everything, and favoured by round-off.

``M = A + Σ`` is the covariance of the published values. What round-off could hide in it is subtracted before it is
inverted (never added, as a jitter would be), and bounds for the other terms' round-off count against the promise
(roundoff.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch

from ..arrays import Array
from ..linalg import Matrix, as_array, as_tensor, cholesky_in_place, inverse_norm, squared_norms, units
from ..noise import ErrorCovariance
from ..programs import needed_everywhere
from ..promise import Design, Reader, SensitiveValues
from .roundoff import DELTA_TO_SPARE, ESTIMATED_INVERSE, FACTORED, SOLVED, UNIT

#: Combinations of sensitive values with less than this share of the largest tolerance are left out of an estimate.
SMALLEST_SHARE = 1e-8

#: So many numbers of L⁻¹K_XP are made at a time: 160 megabytes.
SOLVED_AT_ONCE = 20_000_000


class Knowledge(ABC):
    """What one reader of a design knows, from the safe side. ``allowance`` is the round-off that was subtracted."""

    design: Design
    reader: Reader
    allowance: float

    @property
    def unknown(self) -> SensitiveValues:
        """What is sensitive, as the reader sees it before the release."""
        return self.reader.function

    @property
    @abstractmethod
    def is_singular(self) -> bool:
        """Whether M is singular to working precision, so that nothing can be said."""

    @abstractmethod
    def deviations(self, points: Array) -> Array:
        """A lower bound for the reader's standard deviation at each point."""

    @abstractmethod
    def joint_ratio(self) -> float:
        """λ_max(Δ^{-1/2} K_SX M⁻¹ K_XS Δ^{-1/2}), from above.

        Where only single values are promised it is an estimate, over combinations that have a tolerance worth the name.
        """

    def floors(self, points: Array) -> Array:
        """The standard deviation that this reader must keep at each point (0: none)."""
        return self.design.tolerance.floor(self.unknown, points)

    def floor_ratios(self, points: Array) -> Array:
        """std(f(s)|W) / floor(s), from below; infinite where nothing is promised."""
        floors = self.floors(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(floors > 0, self.deviations(points) / floors, np.inf)
        return np.where(np.isnan(floors) | np.isnan(ratios), 0.0, ratios)

    def undetermined(self, points: Array) -> float:
        """The largest share of a standard deviation left at ``points`` once f at the sensitive inputs is known."""
        prior, sensitive = self.reader.prior, self.design.sensitive
        cross = prior.covariance(sensitive, points)
        known = np.einsum("ij,ij->j", cross, scipy.linalg.lstsq(prior.covariance(sensitive), cross)[0])
        return float(np.sqrt(np.max(np.clip(1.0 - known / prior.variance(points), 0.0, 1.0))))


class ExactKnowledge(Knowledge):
    """What follows from the rows themselves, where ``error`` stands between the data and what was published.

    One n × n matrix is live, the Cholesky factor of M, on ``device`` (None: the CPU). ``lower`` is None where M is
    singular to working precision. Rows are taken in units (``scale``, powers of two, so that nothing is rounded) in
    which M has about 1 on its diagonal: outputs may be in very different units, and a Cholesky factor does not care.
    """

    def __init__(self, design: Design, reader: Reader, error: ErrorCovariance, device: str | None = None) -> None:
        self.design, self.reader, self.error, self.device = design, reader, error, device
        rows = len(design.inputs)
        self.lower: Matrix | None = None
        total = error.add_to(reader.data_covariance(design.inputs, device))
        self.scale = units(as_array(total.diagonal()))
        scale = as_tensor(self.scale, device)
        total.div_(scale).div_(scale[:, None])
        self.largest = float(total.diagonal().max())
        self._slack = FACTORED * rows * UNIT * self.largest
        self.allowance = self._slack * float(np.max(self.scale)) ** 2
        total.diagonal().sub_(self._slack)
        try:
            lower = cholesky_in_place(total)
        except np.linalg.LinAlgError:
            return
        self.lower = lower
        known = float(np.min((reader.prior.noise_variance(rows) + error.least) / self.scale**2)) - self._slack
        self.least = max(1.0 / (ESTIMATED_INVERSE * inverse_norm(lower)), known, UNIT * self.largest)

    @property
    def is_singular(self) -> bool:
        return self.lower is None

    def deviations(self, points: Array) -> Array:
        if self.lower is None:
            return np.zeros(points.shape[0])
        inputs = self.design.inputs
        result = np.empty(points.shape[0])
        chunk = max(1, SOLVED_AT_ONCE // len(inputs))
        for start in range(0, points.shape[0], chunk):
            part = points[start : start + chunk]
            variance = self.unknown.variance(part)
            explained = self._whiten(self.lower, self.unknown.with_data(inputs, part, self.device))
            norm = np.sqrt(squared_norms(explained))
            slack = SOLVED * UNIT * np.sqrt(len(inputs) * variance * self.largest / self.least)
            left = variance * (1 - SOLVED * UNIT) - (norm + slack) ** 2
            result[start : start + chunk] = np.sqrt(np.maximum(left, 0.0))
        return result

    def joint_ratio(self) -> float:
        if self.lower is None:
            return float("inf")
        if self.design.cover == "everywhere":
            return self._joint_ratio_everywhere()
        promised = promised_values(self.design, self.unknown)
        if promised is None:
            return float("inf")
        sensitive, root, most, least, uncertain = promised
        cross = self.unknown.with_data(self.design.inputs, sensitive, self.device)
        explained = self._whiten(self.lower, cross @ as_tensor(root, self.device))
        top = np.sqrt(max(float(scipy.linalg.eigvalsh(as_array(explained.T @ explained))[-1]), 0.0))
        slack = SOLVED * UNIT * np.sqrt(len(self.design.inputs) * most * self.largest / (self.least * least))
        return float((top + slack) ** 2 * (1 + uncertain))

    def _whiten(self, lower: Matrix, block: torch.Tensor) -> torch.Tensor:
        """L⁻¹ ``block``, where M = L Lᵀ."""
        scaled = block / as_tensor(self.scale, self.device)[:, None]
        solved: torch.Tensor = torch.linalg.solve_triangular(as_tensor(lower, self.device), scaled, upper=False)
        return solved

    def _joint_ratio_everywhere(self) -> float:
        needed = needed_everywhere(self.reader.prior, self.design.tolerance, self.design.inputs)
        excess = self.error.add_to(self.reader.data_covariance(self.design.inputs, self.device))
        excess -= as_tensor(needed, self.device)
        scale = as_tensor(self.scale, self.device)
        excess.div_(scale).div_(scale[:, None])
        trace = float(np.sum(np.diag(needed) / self.scale**2))
        if self.device is None:
            least = float(scipy.linalg.eigvalsh(as_array(excess), check_finite=False)[0])
        else:
            least = float(torch.linalg.eigvalsh(excess)[0])
        spare = least - self._slack
        return 1.0 - spare / trace if spare >= 0 else 1.0 - spare / self.least


class PromisedValues(NamedTuple):
    """``root`` is a root of Δ⁻¹ at the ``sensitive`` inputs.

    In units in which these have a variance of about 1, ``largest`` is their largest variance, ``least`` the least
    eigenvalue of Δ, and ``uncertain`` the share of it that round-off may hide.
    """

    sensitive: Array
    root: Array
    largest: float
    least: float
    uncertain: float


def promised_values(design: Design, unknown: SensitiveValues) -> PromisedValues | None:
    """What the joint promise is about; None where nothing, or something else than the region, carries it."""
    sensitive, region = design.sensitive, design.region
    if sensitive.shape[0] == 0 or not np.all(region.contains(sensitive)):
        return None
    if design.guarantee == "pointwise":
        # an estimate should not depend on which inputs the owner names
        spread = region.points if region.points is not None else region.probes(64, design.representatives, batch=1)
        sensitive = np.unique(np.vstack([sensitive, spread]), axis=0)
    variance = unknown.variance(sensitive)
    scale = units(variance)
    delta = design.tolerance.matrix(unknown, sensitive) / np.outer(scale, scale)
    values, vectors = scipy.linalg.eigh(delta, check_finite=False)
    if design.guarantee == "pointwise":
        kept = values > SMALLEST_SHARE * values[-1]
        values, vectors = values[kept], vectors[:, kept]
    # how far round-off in the kernel values may move Δ
    largest, least = float(np.max(variance / scale**2)), float(values[0])
    uncertain = UNIT * np.sqrt(len(values)) * largest
    if least <= DELTA_TO_SPARE * uncertain:
        return None
    return PromisedValues(sensitive, vectors / np.sqrt(values) / scale[:, None], largest, least, uncertain / least)
