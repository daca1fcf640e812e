"""Readers who hold one prior: what they could learn from data with a given noise, as fast as a search needs it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from .covariances import Covariances, add_noise
from .inputs import Array, Inputs, Mask
from .noise import Noise
from .prior import Prior
from .programs.roots import promised_root
from .tensors import Matrix, as_array, as_tensor, cholesky_in_place, squared_norms
from .tolerance import Tolerance

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Watch:
    """Inputs that one audience is watched at, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then ``own``:
    what is explained without any noise); it stays on the device of A. ``budget`` is what may be explained.
    """

    block: Matrix
    own: Array | None
    budget: Array

    def usage(self, explained: Array) -> Array:
        """What a release explains, as a share of what it may: the floor is kept where this is at most 1."""
        return explained / self.budget

    def where(self, keep: Mask) -> Watch:
        block = as_tensor(self.block)
        kept = block[:, torch.tensor(keep, device=block.device)]
        return Watch(kept, None if self.own is None else self.own[keep], self.budget[keep])

    def joined(self, other: Watch) -> Watch:
        return Watch(
            torch.cat([as_tensor(self.block), as_tensor(other.block)], dim=1),
            None if self.own is None or other.own is None else np.concatenate([self.own, other.own]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Audience:
    """All readers who hold ``prior``, and what they may learn: ``joint``, all values together, or each by itself.

    n × n matrices live on ``device`` (None: the CPU), what comes back is small and NumPy's. Where A is well-conditioned
    one of them stays, its Cholesky factor, and A is made only if it is asked for; else A stays, and ``usage`` has a
    copy of it while it runs.
    """

    prior: Prior
    inputs: Inputs
    tolerance: Tolerance
    device: str | None = None
    joint: bool = True

    @property
    def size(self) -> int:
        """How many rows A has."""
        return len(self.inputs)

    @cached_property
    def covariances(self) -> Covariances:
        return Covariances(self.prior, self.device or "cpu")

    @cached_property
    def data_covariance(self) -> Matrix:
        """A = K_XX + V."""
        return self.covariances.of_data(self.inputs)

    @cached_property
    def data_root(self) -> Matrix | None:
        """The lower Cholesky factor of A where A is well-conditioned."""
        noise = self.prior.noise_variance(len(self.inputs))
        if float(np.min(noise)) <= WELL_CONDITIONED * float(np.max(self.prior.variance(self.inputs) + noise)):
            return None
        return cholesky_in_place(self.covariances.of_data(self.inputs))

    @cached_property
    def largest(self) -> float:
        """The largest variance of the data: the largest entry of A."""
        if self.data_root is None:
            return float(self._there(self.data_covariance).diagonal().max())
        return float(torch.linalg.vector_norm(self._there(self.data_root), dim=1).max()) ** 2

    def data_trace(self, block: Array) -> float:
        """Tr ``block``ᵀ A ``block``."""
        right = self._there(block)
        if self.data_root is None:
            return float((right * (self._there(self.data_covariance) @ right)).sum())
        return float((self._there(self.data_root).T @ right).square_().sum())

    def concerned(self, points: Array) -> Mask:
        """Where something was promised to this audience."""
        return np.ones(len(points), dtype=np.bool_)

    def root(self, sensitive: Array) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX`` (joint), or the columns ``k_s/√δ_s`` (each value by itself)."""
        sensitive = sensitive[self.concerned(sensitive)]
        if not len(sensitive):
            return np.zeros((self.size, 0))
        cross = as_array(self.covariances.between(self.inputs.values, sensitive))
        return promised_root(cross, self.tolerance, self.prior, sensitive, self.joint)

    def watch(self, points: Array) -> Watch:
        block, own = self.covariances.between(self.inputs.values, points), None
        if self.data_root is not None:
            block = _solve(self._there(self.data_root), block)
            own = squared_norms(block)
        budget = self.tolerance.budget(self.prior, points)
        if np.any(budget <= 0):
            # a floor that varies may pass the prior's own spread between the inputs that were looked at first
            self.tolerance.check(self.prior, points, self.inputs)
        return Watch(block, own, budget)

    def usage(self, noise: Noise, watch: Watch) -> Array:
        """What is explained at the watched inputs by data with this noise, as a share of what may be."""
        block = self._there(watch.block)
        if watch.own is None or self.data_root is None:
            total = add_noise(self._there(self.data_covariance).clone(), noise)
            return watch.usage(squared_norms(_solve(cholesky_in_place(total), block)))
        H = _solve(self._there(self.data_root), self._there(noise.factor))
        if 2 * H.shape[1] > H.shape[0]:
            return watch.usage(squared_norms(_solve(_raised_root(H @ H.T), block)))
        # Woodbury: kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|² for e = L⁻¹k and H = L⁻¹F
        return watch.usage(watch.own - squared_norms(_solve(_raised_root(H.T @ H), H.T @ block)))

    def rough_usage(self, root: Array, watch: Watch) -> Array:
        """Nearly the ``usage`` of the least noise, without an n × n eigenproblem; for a well-conditioned A.

        The noise ``L (Ũ Ũᵀ − I)⁺ Lᵀ``, ``Ũ = L⁻¹U``, keeps the joint promise too: it is the one with the least Tr A⁻¹Σ.
        """
        assert watch.own is not None
        assert self.data_root is not None
        whitened = _solve(self._there(self.data_root), self._there(root))
        values, vectors = scipy.linalg.eigh(as_array(whitened.T @ whitened), check_finite=False)
        keep = values > 1.0
        directions = whitened @ self._there(vectors[:, keep] / np.sqrt(values[keep]))
        seen = as_array(directions.T @ self._there(watch.block))
        return watch.usage(watch.own - (1.0 - 1.0 / values[keep]) @ seen**2)

    def positive_without(self, level: float) -> bool:
        """Whether A stays positive definite when ``level`` is taken from its diagonal."""
        if float(np.min(self.prior.noise_variance(len(self.inputs)))) > 2 * level:
            return True
        reduced = self._there(self.data_covariance).clone()
        reduced.diagonal().sub_(level)
        try:
            cholesky_in_place(reduced)
        except np.linalg.LinAlgError:
            return False
        return True

    def _there(self, block: Matrix) -> torch.Tensor:
        return as_tensor(block, self.device)


def _solve(lower: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    solved: torch.Tensor = torch.linalg.solve_triangular(lower, block, upper=False)
    return solved


def _raised_root(gram: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor of I + ``gram``, whose memory is used for it."""
    gram.diagonal().add_(1.0)
    return cholesky_in_place(gram)
