"""What readers learn at inputs that are looked at, under any noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from ..arrays import Array, Mask
from ..linalg import Matrix, as_tensor, cholesky_in_place, squared_norms, whitened_span
from ..noise import Noise
from .problem import Exposure


@dataclass(frozen=True, eq=False)
class View:
    """Probes as one reader sees them, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then
    ``bare``: what is explained without any noise); it stays on the device of A. ``budget`` is what may be explained.
    """

    block: Matrix
    bare: Array | None
    budget: Array

    @classmethod
    def of(cls, exposure: Exposure, points: Array) -> View:
        block, budget = exposure.at(points)
        if exposure.data_root is None:
            return cls(block, None, budget)
        block = solve(as_tensor(exposure.data_root, exposure.device), as_tensor(block, exposure.device))
        return cls(block, squared_norms(block), budget)

    def allowing(self, budget: Array) -> View:
        """The same probes where another ``budget`` may be explained."""
        return replace(self, budget=budget)

    def where(self, keep: Mask) -> View:
        block = as_tensor(self.block)
        kept = block[:, torch.tensor(keep, device=block.device)]
        return View(kept, None if self.bare is None else self.bare[keep], self.budget[keep])

    def joined(self, other: View) -> View:
        return View(
            torch.cat([as_tensor(self.block), as_tensor(other.block)], dim=1),
            None if self.bare is None or other.bare is None else np.concatenate([self.bare, other.bare]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Probes:
    """Inputs that are looked at during a search, as each reader sees them."""

    points: Array
    views: tuple[View, ...]

    def __len__(self) -> int:
        return len(self.points)

    def where(self, keep: Mask) -> Probes:
        return Probes(self.points[keep], tuple(view.where(keep) for view in self.views))

    def joined(self, other: Probes) -> Probes:
        views = tuple(mine.joined(theirs) for mine, theirs in zip(self.views, other.views, strict=True))
        return Probes(np.vstack([self.points, other.points]), views)


@dataclass(frozen=True, eq=False)
class Explained:
    """What data with some noise Σ = F Fᵀ explain of anything, kᵀM⁻¹k with M = A + Σ.

    Where A = L Lᵀ is well-conditioned ``noisy`` is H = L⁻¹F, ``root`` is that of I + HᵀH, and Woodbury's formula gives
    ``kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|²`` with ``e = L⁻¹k``. Else ``noisy`` is None, and ``root`` is that of M, or
    of I + HHᵀ where that is smaller. Where it is that of M, ``suppressed`` is an orthonormal basis of what is
    suppressed, whitened by it: as noise it would hide the smallest directions of M.
    """

    exposure: Exposure
    noise: Noise
    root: torch.Tensor
    noisy: torch.Tensor | None
    suppressed: torch.Tensor | None = None

    @classmethod
    def by(cls, exposure: Exposure, noise: Noise) -> Explained:
        device = exposure.device
        if exposure.data_root is None:
            root = cholesky_in_place(noise.add_to(as_tensor(exposure.data_covariance, device).clone()))
            return cls(exposure, noise, root, None, whitened_span(root, noise.suppressed))
        H = solve(as_tensor(exposure.data_root, device), as_tensor(noise.blurring, device))
        if 2 * H.shape[1] > H.shape[0]:
            return cls(exposure, noise, _raised_root(H @ H.T), None)
        return cls(exposure, noise, _raised_root(H.T @ H), H)

    def at(self, view: View) -> Array:
        """The variance that is explained at the probes of ``view``."""
        block = as_tensor(view.block, self.exposure.device)
        if self.noisy is None:
            return squared_norms(self._whitened(block))
        assert view.bare is not None
        return np.asarray(view.bare - squared_norms(solve(self.root, self.noisy.T @ block)))

    def _whitened(self, block: torch.Tensor) -> torch.Tensor:
        solved = solve(self.root, block)
        return solved if self.suppressed is None else solved - self.suppressed @ (self.suppressed.T @ solved)

    def left_at(self, view: View) -> Array:
        """The variance that is left of what may be explained at the probes."""
        return np.asarray(np.maximum(view.budget - self.at(view), 0.0))

    def left_of_records(self, factor: Array) -> Array:
        """Var(y_i|W) of the rows of ``factor``, which are some of F, where A is well-conditioned.

        It is the diagonal of A − A M⁻¹ A = F (I + HᵀH)⁻¹ Fᵀ.
        """
        exposure, device, root = self.exposure, self.exposure.device, self.root
        assert exposure.data_root is not None
        if self.noisy is None:
            H = solve(as_tensor(exposure.data_root, device), as_tensor(self.noise.blurring, device))
            root = _raised_root(H.T @ H)
        return squared_norms(solve(root, as_tensor(np.ascontiguousarray(factor.T), device)))

    def most_of(self, root: Array) -> float:
        """λ_max(UᵀM⁻¹U) for ``root`` = U: the joint promise holds where it is at most 1."""
        device = self.exposure.device
        block = as_tensor(root, device)
        if self.exposure.data_root is not None:
            block = solve(as_tensor(self.exposure.data_root, device), block)
        if self.noisy is None:
            block = self._whitened(block)
            gram = block.T @ block
        else:
            hidden = solve(self.root, self.noisy.T @ block)
            gram = block.T @ block - hidden.T @ hidden
        return float(torch.linalg.eigvalsh(gram)[-1]) if len(gram) else 0.0


def solve(lower: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    solved: torch.Tensor = torch.linalg.solve_triangular(lower, block, upper=False)
    return solved


def _raised_root(gram: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor of I + ``gram``, whose memory is used for it."""
    gram.diagonal().add_(1.0)
    return cholesky_in_place(gram)
