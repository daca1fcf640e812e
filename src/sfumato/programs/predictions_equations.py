"""The equations for the multipliers of a step to the best predictions (predictions_steps.py).

A step dΛ of each demand adds ``Ũ dΛ Ũᵀ`` to X (``spread``), and Q changes by ``softness ∘`` the sum of them; the slack
of each demand sees ``Ũᵀ · Ũ`` of that (``gather``). All is in the coordinates in which Λ and S are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch

from .demand import symmetric
from .predictions_demand import DemandOnPath

#: Numbers that are worked on at a time.
CHUNK = 4e6


class JointEquations:
    """Those of all joint demands, side by side: a few large products instead of many small ones.

    Steps are stacks of matrices, padded with zeros to one size.
    """

    def __init__(self, demands: Sequence[DemandOnPath], softness: torch.Tensor) -> None:
        self.sizes = [one.free for one in demands]
        self.widest, rows = max(self.sizes), len(softness)
        #: so many equations there are, with those of the padding
        self.count = len(demands) * self.widest**2
        padded = [torch.nn.functional.pad(one.scaled, (0, self.widest - one.free)) for one in demands]
        self.wide = torch.hstack(padded)
        self.scaled = torch.stack(padded)
        # equations are nearly diagonal in the eigenvectors of what a softness of rank one would make
        weights = softness.diagonal().sqrt()[:, None]
        self.basis = torch.linalg.eigh(self.scaled.mT @ (weights * self.scaled))[1]
        squares = (self.scaled @ self.basis) ** 2
        soft = (softness @ squares.transpose(0, 1).reshape(rows, -1)).reshape(rows, len(demands), -1)
        self.stiffness = 1.0 + squares.mT @ soft.transpose(0, 1)

    def stacked(self, blocks: Sequence[torch.Tensor]) -> torch.Tensor:
        """One block for each demand, as a step."""
        return torch.stack([torch.nn.functional.pad(one, 2 * (0, self.widest - len(one))) for one in blocks])

    def apart(self, step: torch.Tensor) -> list[torch.Tensor]:
        """The block of each demand."""
        return [symmetric(one[:size, :size]) for one, size in zip(step, self.sizes, strict=True)]

    def spread(self, step: torch.Tensor) -> torch.Tensor:
        """``Σ Ũ dΛ Ũᵀ``."""
        return (self.scaled @ step).transpose(0, 1).reshape(self.wide.shape) @ self.wide.mT

    def gather(self, M: torch.Tensor) -> torch.Tensor:
        """``ŨᵀMŨ`` of each demand: the adjoint of ``spread``."""
        image = (M @ self.wide).reshape(len(M), len(self.sizes), -1).transpose(0, 1)
        return self.scaled.mT @ image

    def units(self) -> torch.Tensor:
        """``spread`` of each unit step, a row for each number of a step."""
        both = torch.einsum("gia,gjb->gabij", self.scaled, self.scaled)
        return both.reshape(self.count, -1)

    def around(self) -> torch.Tensor:
        """Matrices G with ``spread(gather(M)) = Σ G M G``."""
        return self.scaled @ self.scaled.mT

    def nearly_solved(self, step: torch.Tensor) -> torch.Tensor:
        """About the step that ``step + gather(softness ∘ spread(step))`` makes ``step`` of."""
        inner = (self.basis.mT @ step @ self.basis) / self.stiffness
        found: torch.Tensor = self.basis @ inner @ self.basis.mT
        return found


class PointwiseEquations:
    """Those of one pointwise demand; a step is a number for each of its values."""

    def __init__(self, demand: DemandOnPath, softness: torch.Tensor) -> None:
        self.scaled, self.scaling, self.count = demand.scaled, demand.scaling, demand.free
        # whole: columns for neighbouring places are nearly dependent
        matrix = torch.zeros(demand.free, demand.free).to(self.scaled)
        rows = max(1, int(CHUNK / (len(softness) * max(1, demand.free))))
        for begin in range(0, len(softness), rows):
            some = self.scaled[begin : begin + rows]
            products = (some[:, None, :] * self.scaled[None]).reshape(-1, demand.free)
            matrix += (products * softness[begin : begin + rows].reshape(-1, 1)).mT @ products
        matrix = torch.eye(demand.free).to(matrix) + self.scaling[:, None] * matrix * self.scaling
        self.lower = torch.linalg.cholesky(symmetric(matrix))

    def stacked(self, blocks: Sequence[torch.Tensor]) -> torch.Tensor:
        return blocks[0]

    def apart(self, step: torch.Tensor) -> list[torch.Tensor]:
        return [step]

    def spread(self, step: torch.Tensor) -> torch.Tensor:
        return (self.scaled * (self.scaling * step)) @ self.scaled.mT

    def gather(self, M: torch.Tensor) -> torch.Tensor:
        return self.scaling * torch.sum(self.scaled * (M @ self.scaled), dim=0)

    def units(self) -> torch.Tensor:
        both = self.scaled.mT[:, :, None] * (self.scaling[:, None] * self.scaled.mT)[:, None, :]
        return both.reshape(len(self.scaling), -1)

    def around(self) -> torch.Tensor:
        return self.units().reshape(len(self.scaling), len(self.scaled), -1)

    def nearly_solved(self, step: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.cholesky_solve(step[:, None], self.lower)[:, 0]
        return found


Equations: TypeAlias = JointEquations | PointwiseEquations


class InformationEquations:
    """The equations for dQ instead: ``dQ / softness + Σ G dQ G = R`` for symmetric dQ, solved as they are.

    There are fewer of them where many demands are about few dimensions. For the multipliers their answer is only nearly
    right: it is a small difference of large numbers.
    """

    def __init__(self, equations: Sequence[Equations], softness: torch.Tensor) -> None:
        G = torch.cat([one.around() for one in equations])
        self.rows, self.columns = torch.triu_indices(len(softness), len(softness))
        weights = torch.where(self.rows == self.columns, 0.5**0.5, 1.0).to(softness)
        matrix = torch.empty(len(self.rows), len(self.rows)).to(softness)
        for row in range(len(softness)):
            # the G_ik G_jl of all G in its rows (i, j), for one i, and any k, l
            both = (G[:, row].mT @ G.reshape(len(G), -1)).reshape(G.shape[1:] + softness.shape[1:])
            own = self.rows == row
            seen = both[:, self.columns[own]]
            matrix[own] = (seen[self.rows, :, self.columns] + seen[self.columns, :, self.rows]).mT
        #: what turns symmetric matrices into numbers of which half are not said twice, and are of one size
        self.size = softness[self.rows, self.columns].sqrt()
        self.weights, scale = weights, weights * self.size
        matrix *= scale
        matrix *= scale[:, None]
        matrix.diagonal().add_(1.0)
        self.lower = torch.linalg.cholesky(matrix)

    def solved(self, right: torch.Tensor) -> torch.Tensor:
        """dQ for R = ``right``."""
        numbers = right[self.rows, self.columns] * self.size * self.weights
        numbers = torch.cholesky_solve(numbers[:, None], self.lower)[:, 0] * self.size / self.weights
        found = torch.empty_like(right)
        found[self.rows, self.columns] = numbers
        found[self.columns, self.rows] = numbers
        return found
