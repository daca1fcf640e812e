"""The path to the best predictions in few dimensions: an interior point method (predictions.py says which)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch

from ..linalg import least_eigenvalue, numpys_errors
from .demand import symmetric
from .predictions_demand import DemandOnPath
from .predictions_space import Space
from .predictions_steps import Newton, Point

#: The share of the way to the boundary that a step goes.
INWARD = 0.9

#: Directions with 1 − q below one of these are taken as q = 1, if that costs little.
NEARLY_ONE = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

#: What is neglected of C may be this share of the gap that is aimed at.
MOST_NEGLECTED = 0.3

#: More steps than any problem has needed; after so many that gain nothing round-off is in the way.
MOST_STEPS, IN_VAIN = 100, 5

#: How far S may be from the slack of Q, in units of μ Λ⁻¹, if Q is taken as a diagonal matrix in V.
ASTRAY = 10.0

#: A start is near the path where S is this near to the slack of Q, in units of μ Λ⁻¹.
NEAR_PATH = 3.0


class Path:
    """The program in a small space, and a way to its optimum.

    Demands that some Q breaks are ``active``. Q, Z and Y are seen from V, the eigenvectors of
    ``X = C − Σ ŨΛŨᵀ = Y − Z``. On the path they are diagonal there.
    """

    def __init__(self, space: Space, demands: Sequence[DemandOnPath]) -> None:
        self.demands, self.space, gain = list(demands), space, space.gain
        self.active = [one for one in demands if one.free]
        self.matrix = gain @ gain.mT
        self.total = float(torch.sum(gain * gain))
        self.decompositions = 0
        self.upper, self.explained = np.inf, -1.0
        self.best: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    @property
    def gap(self) -> float:
        return 1.0 - self.explained / self.upper if self.total > 0.0 else 0.0

    def follow(self, accuracy: float, start: Sequence[torch.Tensor] | None) -> None:
        """Steps until the gap is ``accuracy``."""
        largest = -least_eigenvalue(-self.matrix) if self.total > 0.0 else 1.0
        if start is None or not self._begin_at(start, largest, accuracy):
            for one in self.active:
                one.begin(largest / 2.0)
            self._look()
            self._begin(largest / 2.0)
        least, in_vain = np.inf, 0
        with suppress(np.linalg.LinAlgError), numpys_errors():
            for _ in range(MOST_STEPS):
                self._keep()
                in_vain = 0 if self.gap < least else in_vain + 1
                least = min(least, self.gap)
                if not self.active or self.gap <= accuracy or in_vain == IN_VAIN:
                    break
                if self.space.neglected > MOST_NEGLECTED * accuracy * self.upper:
                    break
                self._step()

    def _look(self) -> None:
        """X seen from its eigenvectors, and the bound that it proves."""
        X = self.matrix.clone()
        for one in self.active:
            X -= one.pull()
        self.values, self.vectors = torch.linalg.eigh(X)
        self.decompositions += 1
        for one in self.active:
            one.seen = self.vectors.mT @ one.root
        upper = sum(one.price() for one in self.active) + float(self.values.clamp(min=0.0).sum())
        upper += self.space.neglected + self.space.outside
        if upper < self.upper:
            self.upper, self.multipliers = upper, [one.multiplier for one in self.demands]

    def _begin(self, level: float) -> None:
        """The point at ``level`` = μ for this X, with Q low enough for each S to be inside."""
        self.at = Point.on_path(self.values, level)
        for one in self.active:
            left = one.left(self.at.Q)
            most = 1.0 - float(torch.linalg.eigvalsh(left)[0] if one.joint else left.min())
            if most > INWARD:
                Q = self.at.Q * (INWARD / most)
                self.at = replace(self.at, Q=Q, P=torch.eye(len(Q)).to(Q) - Q)
        for one in self.active:
            one.slack = one.left(self.at.Q)

    def _begin_at(self, start: Sequence[torch.Tensor], largest: float, accuracy: float) -> bool:
        """The same at the witness of a similar program, for the least μ at which it is near the path; False if none."""
        for one, R in zip(self.demands, start, strict=True):
            if one.free:
                one.begin_at(R, 1e-2 * accuracy * (float(torch.sum(R * R)) / one.free + 1e-6 * largest))
        self._look()
        found = None
        for fall in range(24):
            level = largest / 2.0**fall
            at = Point.on_path(self.values, level)
            for one in self.active:
                one.on_path(level)
            if all(one.astray(at.Q, level) < NEAR_PATH for one in self.active):
                found, self.at = level, at
        if found is None:
            return False
        for one in self.active:
            one.on_path(found)
        return True

    def _step(self) -> None:
        """One step of Mehrotra's kind, with one look at X."""
        at, newton = self.at, Newton(self.at, self.values, self.active)
        self.decompositions += newton.decompositions
        first = newton.direction(0.0, None)
        target = newton.level * max(1e-3, (1.0 - newton.reach(first, 1.0)) ** 3)
        second = newton.direction(target, first)
        far = newton.reach(second, INWARD)
        for one, D, change in zip(self.active, second.multipliers, second.slacks, strict=True):
            one.move(D, change, far)
        moved = (
            at.Q + far * second.Q,
            at.P - far * second.Q,
            at.low + far * newton.first.out(second.low),
            at.high + far * newton.second.out(second.high),
        )
        before = self.vectors
        self._look()
        turn = before.mT @ self.vectors
        images = [matrix @ turn for matrix in moved]
        diagonals = [torch.diag(torch.sum(turn * image, dim=0)) for image in images]
        level = (1.0 - far) * newton.level + far * target
        flat = far > 0.5 and all(one.astray(diagonals[0], level) < ASTRAY for one in self.active)
        Q, P, low, high = diagonals if flat else [symmetric(turn.mT @ image) for image in images]
        self.at = Point(Q, P, low, high, flat)

    def _keep(self) -> None:
        """Remember this Q, shrunk to meet all demands, if it is the best."""
        Q = self.at.Q if self.active else torch.eye(len(self.at.Q)).to(self.at.Q)
        H, explained = self._shrunk(Q)
        if explained > self.explained:
            self.explained, self.best = explained, (self.vectors, Q, H)

    def _shrunk(self, Q: torch.Tensor) -> tuple[torch.Tensor, float]:
        """H such that ``Q − H Hᵀ`` meets all demands, and what that explains."""
        H = Q[:, :0]
        for one in self.demands:
            if one.count:
                H = one.shrunk(Q, H, self.vectors)
        # C = X + Σ ŨΛŨᵀ, seen from V
        explained = float(self.values @ (Q.diagonal() - torch.sum(H * H, dim=1)))
        for one in self.active:
            explained += one.priced(Q, H)
        return H, explained + self.space.outside

    def sharpen(self, cost: float) -> None:
        """Take shares that the barrier alone holds below 1 as 1, as far as that costs at most ``cost``.

        Then only few directions are held back. It may also gain: such a Q is no longer inside.
        """
        if not self.active:
            return
        for below in NEARLY_ONE:
            keep = (self.at.P.diagonal() >= below).to(self.at.Q)
            Q = self.at.Q * torch.outer(keep, keep) + torch.diag(1.0 - keep)
            H, explained = self._shrunk(Q)
            if explained >= self.explained - cost:
                self.explained, self.best = explained, (self.vectors, Q, H)
                break

    def witness(self) -> list[torch.Tensor]:
        """R for each demand, of the least upper bound."""
        found = [one.witness(multiplier) for one, multiplier in zip(self.demands, self.multipliers, strict=True)]
        return found if self.total > 0.0 else [torch.zeros_like(R) for R in found]

    def held_back(self) -> tuple[torch.Tensor, torch.Tensor]:
        """``I − Q`` of the best Q as eigenvalues above zero and their eigenvectors."""
        assert self.best is not None
        vectors, Q, H = self.best
        less = Q.diagonal() < 1.0
        inner, turn = torch.linalg.eigh(torch.eye(int(less.sum())).to(Q) - Q[less][:, less])
        factor = torch.hstack([vectors[:, less] @ (turn * inner.clamp(min=0.0).sqrt()), vectors @ H])
        frame = None
        if factor.shape[1] < factor.shape[0]:
            frame, factor = torch.linalg.qr(factor)
        found, turn = torch.linalg.eigh(factor @ factor.mT)
        kept = found > 1e-13
        turn = turn[:, kept] if frame is None else frame @ turn[:, kept]
        return found[kept].clamp(max=1.0), turn
