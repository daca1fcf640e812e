"""A reader of published data who is told everything and favoured by round-off.

``M = K_XX + V + Σ`` is the covariance of the published values. What round-off could hide in it is subtracted before it
is inverted (never added, as a jitter would be), and bounds for the other terms' round-off count against the promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch

from ..arrays import Array
from ..data import Inputs
from ..linalg import Matrix, as_array, as_tensor, cholesky_in_place, inverse_norm, squared_norms, units
from ..models import Prior, kernel_matrix, require_features
from ..noise import Noise
from ..programs import needed_everywhere
from ..promise import Design

# Covariances under one prior as tensors on one device: where matrices are n × n, they are made where they are used.

#: A block of rows has about this many entries; evaluating a kernel takes a few times its memory.
BLOCK = 1 << 25


@dataclass(frozen=True, eq=False)
class Covariances:
    """K, and A = K_XX + V, as ``prior`` has them, in float64 on ``device``."""

    prior: Prior
    device: str = "cpu"

    def between(self, A: Array, B: Array) -> torch.Tensor:
        """K(A, B)."""
        return self._kernel(self._tensor(A), self._tensor(B))

    def of_data(self, inputs: Inputs) -> torch.Tensor:
        """A. One n × n matrix is live, and one block of rows; it is symmetric to the last bit."""
        X = self._tensor(inputs.values)
        result = X.new_empty(len(X), len(X))
        for start, stop in _blocks(len(X)):
            own = self._kernel(X[start:stop], X[start:stop])
            result[start:stop, start:stop] = (own + own.T) / 2.0
            if start:
                result[start:stop, :start] = self._kernel(X[start:stop], X[:start])
                result[:start, start:stop] = result[start:stop, :start].T
        result.diagonal().add_(as_tensor(self.prior.noise_variance(len(X)), self.device))
        return result

    def data_times(self, inputs: Inputs, block: torch.Tensor) -> torch.Tensor:
        """A ``block``, without A: only a block of its rows is ever there."""
        X = self._tensor(inputs.values)
        result = as_tensor(self.prior.noise_variance(len(X)), self.device)[:, None] * block
        for start, stop in _blocks(len(X)):
            result[start:stop] += self._kernel(X[start:stop], X) @ block
        return result

    def _kernel(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return kernel_matrix(self.prior.kernel_on(self.device), A, B)

    def _tensor(self, values: Array) -> torch.Tensor:
        require_features(self.prior.kernel, values.shape[1])
        return torch.tensor(values, dtype=torch.float64, device=self.device)


def add_noise(matrix: torch.Tensor, noise: Noise) -> torch.Tensor:
    """``matrix`` itself, with Σ added to it in place."""
    return noise.add_to(matrix)


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // max(1, rows))
    for start in range(0, rows, step):
        yield start, min(rows, start + step)


#: Ratios are promised to within this much; it is far above round-off and far below anything one can see.
TOLERANCE = 1e-9

_UNIT = float(np.finfo(np.float64).eps)

#: Combinations of sensitive values with less than this share of the largest tolerance are left out of an estimate.
_TINY = 1e-8


class Promised(NamedTuple):
    """``root`` is a root of Δ⁻¹ at the ``sensitive`` inputs.

    In units in which these have a variance of about 1, ``largest`` is their largest variance, ``least`` the least
    eigenvalue of Δ, and ``uncertain`` the share of it that round-off may hide.
    """

    sensitive: Array
    root: Array
    largest: float
    least: float
    uncertain: float


class Reader:
    """What the worst reader of a design who holds ``prior`` learns, from the safe side.

    One n × n matrix is live, the Cholesky factor of M, on ``device`` (None: the CPU). ``lower`` is None where M is
    singular to working precision. Rows are taken in units (``scale``, powers of two, so that nothing is rounded) in
    which M has about 1 on its diagonal: outputs may be in very different units, and a Cholesky factor does not care.
    """

    def __init__(self, design: Design, prior: Prior, device: str | None = None) -> None:
        self.design, self.prior, self.device = design, prior, device
        self.covariances = Covariances(prior, device or "cpu")
        rows = len(design.inputs)
        self.lower: Matrix | None = None
        total = design.noise.add_to(self.covariances.of_data(design.inputs))
        self.scale = units(as_array(total.diagonal()))
        scale = as_tensor(self.scale, device)
        total.div_(scale).div_(scale[:, None])
        self.largest = float(total.diagonal().max())
        self._slack = 2.0 * rows * _UNIT * self.largest
        self.allowance = self._slack * float(np.max(self.scale)) ** 2
        total.diagonal().sub_(self._slack)
        try:
            lower = cholesky_in_place(total)
        except np.linalg.LinAlgError:
            return
        self.lower = lower
        # the norm of the inverse is estimated from below
        known = float(np.min((prior.noise_variance(rows) + design.noise.least) / self.scale**2)) - self._slack
        self.least = max(1.0 / (3.0 * inverse_norm(lower)), known, _UNIT * self.largest)

    def whiten(self, block: Matrix) -> torch.Tensor:
        """L⁻¹ block, where M = L Lᵀ."""
        assert self.lower is not None
        scaled = as_tensor(block, self.device) / as_tensor(self.scale, self.device)[:, None]
        solved: torch.Tensor = torch.linalg.solve_triangular(as_tensor(self.lower, self.device), scaled, upper=False)
        return solved

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
            explained = self.whiten(self.covariances.between(inputs.values, part))
            norm = np.sqrt(squared_norms(explained))
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
        promised = self.promised()
        if promised is None:
            return float("inf")
        sensitive, root, most, least, uncertain = promised
        cross = self.covariances.between(self.design.inputs.values, sensitive)
        explained = self.whiten(cross @ as_tensor(root, self.device))
        top = np.sqrt(max(float(scipy.linalg.eigvalsh(as_array(explained.T @ explained))[-1]), 0.0))
        slack = 4 * _UNIT * np.sqrt(len(self.design.inputs) * most * self.largest / (self.least * least))
        return float((top + slack) ** 2 * (1 + uncertain))

    def promised(self) -> Promised | None:
        """What the joint promise is about; None where nothing, or something else than the region, carries it."""
        sensitive, region = self.design.sensitive, self.design.region
        if sensitive.shape[0] == 0 or not np.all(region.contains(sensitive)):
            return None
        if self.design.guarantee == "pointwise":
            # an estimate should not depend on which inputs the owner names
            spread = region.points if region.points is not None else region.probes(64, self.design.lookout, batch=1)
            sensitive = np.unique(np.vstack([sensitive, spread]), axis=0)
        variance = self.prior.variance(sensitive)
        scale = units(variance)
        delta = self.design.tolerance.matrix(self.prior, sensitive) / np.outer(scale, scale)
        values, vectors = scipy.linalg.eigh(delta, check_finite=False)
        if self.design.guarantee == "pointwise":
            values, vectors = values[values > _TINY * values[-1]], vectors[:, values > _TINY * values[-1]]
        # how far round-off in the kernel values may move Δ
        largest, least = float(np.max(variance / scale**2)), float(values[0])
        uncertain = _UNIT * np.sqrt(len(values)) * largest
        if least <= 4 * uncertain:
            return None
        return Promised(sensitive, vectors / np.sqrt(values) / scale[:, None], largest, least, uncertain / least)

    def undetermined(self, points: Array) -> float:
        """The largest share of a standard deviation left at ``points`` once f at the sensitive inputs is known."""
        sensitive = self.design.sensitive
        cross = self.prior.covariance(sensitive, points)
        known = np.einsum("ij,ij->j", cross, scipy.linalg.lstsq(self.prior.covariance(sensitive), cross)[0])
        return float(np.sqrt(np.max(np.clip(1.0 - known / self.prior.variance(points), 0.0, 1.0))))

    def _joint_ratio_everywhere(self) -> float:
        needed = needed_everywhere(self.prior, self.design.tolerance, self.design.inputs)
        excess = self.design.noise.add_to(self.covariances.of_data(self.design.inputs))
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
