"""One demand of the best predictions along the path: its multiplier Λ and its slack ``S = I − ŨᵀQŨ`` (predictions.py).

Where a demand is joint both are matrices; where it is pointwise, the diagonals of such.
"""

from __future__ import annotations

import numpy as np
import torch

from ..linalg import least_eigenvalue
from .demand import symmetric

#: Demands are met with this much to spare, which round-off in their use may take.
SPARE = 1e-10


class DemandOnPath:
    """One demand along the way: Λ and the slack S, and both seen from the eigenvectors of X.

    Joint demands are turned to the singular vectors of Ũ; directions below ``negligible`` = d² are left to the last
    shrinking, and so are columns that no Q breaks.
    """

    multiplier: torch.Tensor
    slack: torch.Tensor
    seen: torch.Tensor
    scaled: torch.Tensor
    scaling: torch.Tensor
    size: torch.Tensor
    root: torch.Tensor
    turn: torch.Tensor

    def __init__(self, root: torch.Tensor, joint: bool, negligible: float, size: float) -> None:
        self.all, self.joint, self.count = root, joint, root.shape[1]
        #: What may be learnt, less what Z does not see of Ũ.
        self.level = 1.0 - SPARE - max(0.0, size - float(torch.sum(root * root)))
        if joint:
            left, values, right = torch.linalg.svd(root, full_matrices=False)
            wanted = values**2 > (negligible if self.count and float(values[0]) > 1.0 - SPARE else torch.inf)
            self.turn, self.root = right.mT[:, wanted], left[:, wanted] * values[wanted]
        else:
            self.index = torch.nonzero(torch.sum(root * root, dim=0) > 1.0 - SPARE)[:, 0]
            self.root = root[:, self.index]
        self.multiplier = root.new_zeros((self.free, self.free) if joint else self.free)

    @property
    def free(self) -> int:
        return int(self.root.shape[1])

    def begin(self, level: float) -> None:
        """Λ on the path at ``level`` = μ for C = 0, where it is known: one equation for each singular value."""
        squares = torch.sum(self.root * self.root, dim=0)
        low, high = torch.zeros_like(squares), torch.full_like(squares, 30.0)
        for _ in range(50):
            middle = (low + high) / 2
            inside = barrier_share(-squares * middle.exp()) * squares + (-middle).exp() > 1.0
            low, high = torch.where(inside, middle, low), torch.where(inside, high, middle)
        self.multiplier = self.diagonal(level * high.exp())

    def begin_at(self, R: torch.Tensor, least: float) -> None:
        """Λ from the witness of a similar program, moved inside by ``least``."""
        if self.joint:
            turned = self.turn.mT @ R
            self.multiplier = turned @ turned.mT + least * torch.eye(self.free).to(turned)
        else:
            self.multiplier = R[self.index, 0] ** 2 + least

    def on_path(self, level: float) -> None:
        """S on the path: μ Λ⁻¹."""
        self.slack = level * (symmetric(torch.linalg.inv(self.multiplier)) if self.joint else 1.0 / self.multiplier)

    def pull(self) -> torch.Tensor:
        """``Ũ Λ Ũᵀ``."""
        return (self.root @ self.multiplier if self.joint else self.root * self.multiplier) @ self.root.mT

    def price(self) -> float:
        return float(self.multiplier.trace() if self.joint else self.multiplier.sum())

    def left(self, Q: torch.Tensor) -> torch.Tensor:
        """``I − ŨᵀQŨ``, or its diagonal, for Q as V sees it."""
        image = Q @ self.seen
        if self.joint:
            return torch.eye(self.free).to(image) - symmetric(self.seen.mT @ image)
        return 1.0 - torch.sum(self.seen * image, dim=0)

    def priced(self, Q: torch.Tensor, H: torch.Tensor) -> float:
        """``Tr Λ Ũᵀ(Q − H Hᵀ)Ũ``, as V sees Q and H."""
        image, lost = Q @ self.seen, H.mT @ self.seen
        if self.joint:
            return float(torch.sum(self.multiplier * (self.seen.mT @ image - lost.mT @ lost)))
        return float(self.multiplier @ (torch.sum(self.seen * image, dim=0) - torch.sum(lost**2, dim=0)))

    def astray(self, Q: torch.Tensor, level: float) -> float:
        """How far S is from the slack of Q, in units of μ Λ⁻¹."""
        away = self.slack - self.left(Q)
        return float(torch.linalg.norm(away @ self.multiplier if self.joint else away * self.multiplier)) / (
            level * float(np.sqrt(self.free))
        )

    def scale(self, basis: torch.Tensor | None) -> None:
        """Coordinates in which Λ and S are the same diagonal matrix, ``size``; ``basis`` is that of Q, if not V."""
        seen = self.seen if basis is None else basis.mT @ self.seen
        if self.joint:
            lower = torch.linalg.cholesky(self.multiplier)
            values, turn = torch.linalg.eigh(lower.mT @ self.slack @ lower)
            values = values.clamp(min=1e-300)
            self.scaling = lower @ (turn * values**-0.25)
            self.size = values.sqrt()
            self.scaled = seen @ self.scaling
        else:
            self.scaling = (self.multiplier / self.slack).sqrt()
            self.size = (self.multiplier * self.slack).sqrt()
            self.scaled = seen

    def inward(self, S: torch.Tensor) -> torch.Tensor:
        """A slack in the scaled coordinates."""
        return self.scaling.mT @ S @ self.scaling if self.joint else self.scaling * S

    def diagonal(self, numbers: torch.Tensor) -> torch.Tensor:
        return torch.diag(numbers) if self.joint else numbers

    def second(self, D: torch.Tensor, change: torch.Tensor) -> torch.Tensor:
        """What a step of Λ and one of S together add to their product, to second order."""
        return second_order(D, change, self.size) if self.joint else D * change / self.size

    def least(self, D: torch.Tensor) -> float:
        """The least eigenvalue of a step of Λ or S, in units of Λ or S."""
        if self.joint:
            return least_step(D, self.size)
        return float((D / self.size).min())

    def move(self, D: torch.Tensor, change: torch.Tensor, far: float) -> None:
        """Λ and S go ``far`` of their steps."""
        if self.joint:
            self.multiplier = self.multiplier + far * symmetric(self.scaling @ D @ self.scaling.mT)
            half = torch.linalg.solve(self.scaling.mT, change)
            self.slack = self.slack + far * symmetric(torch.linalg.solve(self.scaling.mT, half.mT))
        else:
            self.multiplier = self.multiplier + far * self.scaling * D
            self.slack = self.slack + far * change / self.scaling

    def shrunk(self, Q: torch.Tensor, H: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """H with columns added until ``Q − H Hᵀ`` meets this demand: locally, so that it stays positive."""
        seen = vectors.mT @ self.all
        if self.joint:
            image = Q @ seen - H @ (H.mT @ seen)
            found, turn = torch.linalg.eigh(symmetric(seen.mT @ image))
            over = found > self.level
            weights = ((found[over] - self.level) / found[over] ** 2).sqrt()
            return torch.hstack([H, image @ (turn[:, over] * weights)])
        image = Q @ seen - H @ (H.mT @ seen)
        learnt = torch.sum(seen * image, dim=0)
        for _ in range(4 * self.count):
            worst = int(torch.argmax(learnt))
            value = float(learnt[worst])
            if value <= self.level:
                break
            column = seen[:, worst]
            less = (Q @ column - H @ (H.mT @ column)) * float(np.sqrt((value - self.level) / value**2))
            H = torch.hstack([H, less[:, None]])
            learnt = learnt - (less @ seen) ** 2
        return H

    def witness(self, multiplier: torch.Tensor) -> torch.Tensor:
        """R of the whole demand for Λ of its part."""
        if self.joint:
            values, vectors = torch.linalg.eigh(multiplier)
            R: torch.Tensor = self.turn @ (vectors * values.clamp(min=0.0).sqrt())
            return R
        R = self.root.new_zeros(self.count, 1)
        R[self.index, 0] = multiplier.sqrt()
        return R


def barrier_share(scaled: torch.Tensor) -> torch.Tensor:
    """q with ``1/(1 − q) − 1/q = scaled``: the share that the barrier of 0 ⪯ Q ⪯ I gives an eigenvalue of X/μ."""
    root = (scaled * scaled + 4.0).sqrt()
    return torch.where(scaled > 0.0, (scaled + root) / (scaled + root + 2.0), 2.0 / (2.0 + root - scaled))


def second_order(step: torch.Tensor, change: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    """M with ``size M + M size`` twice the symmetric part of ``step change``."""
    product = step @ change
    return (product + product.mT) / (size[:, None] + size)


def least_step(step: torch.Tensor, size: torch.Tensor) -> float:
    """The least eigenvalue of a ``step`` in units of the diagonal matrix ``size``, or a little less."""
    root = size.sqrt()
    return least_eigenvalue(step / root[:, None] / root)
