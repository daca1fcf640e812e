"""A step along the path to the best predictions: Mehrotra's, in the scaling of Nesterov and Todd (predictions.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from ..linalg import conjugate_gradients
from .demand import symmetric
from .predictions_demand import DemandOnPath, barrier_share, least_step, second_order
from .predictions_equations import Equations, InformationEquations, JointEquations, PointwiseEquations

#: To this share of its right-hand side a step is solved: finer where the slack was lost; with at most so many products.
STEP_ACCURACY, FINE_ACCURACY, MOST_PRODUCTS = 1e-3, 1e-6, 300

#: Several demands that overlap are solved together, as one matrix of this size and made of so many numbers at most.
MOST_TOGETHER, MOST_NUMBERS = 1500, 1.5e7

#: Those of more demands in so few dimensions are solved for Q.
MOST_ROWS = 64


@dataclass(frozen=True, eq=False)
class Point:
    """Q, ``P = 1 − Q``, Z (``low``) and Y (``high``), seen from V; ``flat`` says that all are diagonal there."""

    Q: torch.Tensor
    P: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    flat: bool

    @classmethod
    def on_path(cls, values: torch.Tensor, level: float) -> Point:
        """The one at ``level`` = μ for X with the eigenvalues ``values``."""
        shares, others = barrier_share(values / level), barrier_share(-values / level)
        low, high = torch.diag(level / shares), torch.diag(level / others)
        return cls(torch.diag(shares), torch.diag(others), low, high, flat=True)


@dataclass(frozen=True, eq=False)
class Direction:
    """A step of Q, of Z and Y in their scaled coordinates, and of each Λ and S in theirs."""

    Q: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    multipliers: list[torch.Tensor]
    slacks: list[torch.Tensor]


class Pair:
    """Two positive matrices X and Z that are to have X Z = μ, in coordinates G in which both are diagonal, ``size``.

    ``G⁻¹XG⁻ᵀ = GᵀZG``; G is a diagonal matrix where X and Z are.
    """

    def __init__(self, X: torch.Tensor, Z: torch.Tensor, flat: bool) -> None:
        if flat:
            self.size = (X.diagonal() * Z.diagonal()).sqrt()
            self.root = torch.diag((X.diagonal() / Z.diagonal()) ** 0.25)
            self.inverse = (Z.diagonal() / X.diagonal()) ** 0.25
        else:
            lower = torch.linalg.cholesky(X)
            values, turn = torch.linalg.eigh(lower.mT @ Z @ lower)
            self.size = values.clamp(min=1e-300).sqrt()
            self.root = lower @ (turn / self.size.sqrt())
            # turnᵀ lower⁻¹ = (lower⁻ᵀ turn)ᵀ
            self.inverse = self.size.sqrt()[:, None] * torch.linalg.solve_triangular(lower.mT, turn, upper=True).mT

    def into(self, step: torch.Tensor) -> torch.Tensor:
        """A step of X as G sees it."""
        if self.inverse.ndim == 1:
            return self.inverse[:, None] * step * self.inverse
        return self.inverse @ step @ self.inverse.mT

    def out(self, step: torch.Tensor) -> torch.Tensor:
        """A step of Z that G sees as ``step``."""
        if self.inverse.ndim == 1:
            return self.inverse[:, None] * step * self.inverse
        return self.inverse.mT @ step @ self.inverse


class Newton:
    """The linear equations of a step: ``K ∘ dQ + Σ Ũ dΛ Ũᵀ = R`` in a basis T, and each dΛ and dS with ``dS = −ŨᵀdQŨ``.

    The scaling is that of Nesterov and Todd. Where Q, Z and Y are diagonal in V, T is V.
    """

    def __init__(self, at: Point, values: torch.Tensor, demands: Sequence[DemandOnPath]) -> None:
        self.values, self.demands, self.decompositions = values, demands, 0
        self.first, self.second = Pair(at.Q, at.low, at.flat), Pair(at.P, at.high, at.flat)
        products = float(torch.sum(self.first.size**2) + torch.sum(self.second.size**2))
        products += sum(float(torch.sum(one.multiplier * one.slack)) for one in demands)
        self.level = products / (2 * len(at.Q) + sum(one.free for one in demands))
        self.basis: torch.Tensor | None = None
        if at.flat:
            first, second = self.first.inverse**2, self.second.inverse**2
            self.softness = 1.0 / (torch.outer(first, first) + torch.outer(second, second))
        else:
            across = self.first.inverse @ self.second.root
            values, turn = torch.linalg.eigh(across @ across.mT)
            self.basis = self.first.root @ turn
            values = values.clamp(min=1e-300)
            self.softness = 1.0 / (1.0 + 1.0 / torch.outer(values, values))
            self.decompositions = 3
        for one in demands:
            one.scale(self.basis)
        #: those of all joint demands, and of each other one, with the numbers of their demands
        joint = [number for number, one in enumerate(demands) if one.joint]
        self.groups = [joint] * bool(joint) + [[number] for number, one in enumerate(demands) if not one.joint]
        self.equations: list[Equations] = [
            JointEquations([demands[number] for number in group], self.softness)
            if group is joint
            else PointwiseEquations(demands[group[0]], self.softness)
            for group in self.groups
        ]
        self.whole = self._together()
        rows = len(self.softness)
        several = len(demands) > 1 and self.whole is None and rows <= MOST_ROWS
        self.information = InformationEquations(self.equations, self.softness) if several else None
        self.left = [one.inward(one.left(at.Q)) for one in demands]

    def direction(self, target: float, before: Direction | None) -> Direction:
        """The step towards ``target`` = μ; ``before`` is the one to μ = 0, whose second order is counted."""
        low, high = torch.diag(target / self.first.size), torch.diag(target / self.second.size)
        goals = [one.diagonal(target / one.size) for one in self.demands]
        if before is not None:
            low = low - second_order(self.first.into(before.Q), before.low, self.first.size)
            high = high - second_order(-self.second.into(before.Q), before.high, self.second.size)
            both = zip(self.demands, goals, before.multipliers, before.slacks, strict=True)
            goals = [goal - one.second(D, change) for one, goal, D, change in both]
        R = torch.diag(self.values) + self.first.out(low) - self.second.out(high)
        if self.basis is not None:
            R = self.basis.mT @ R @ self.basis
        away = [goal - left for goal, left in zip(goals, self.left, strict=True)]
        dQ, steps = self._solve(R, away)
        if self.basis is not None:
            dQ = self.basis @ dQ @ self.basis.mT
        dQ = symmetric(dQ)
        slacks = [goal - one.diagonal(one.size) - D for one, goal, D in zip(self.demands, goals, steps, strict=True)]
        low = low - torch.diag(self.first.size) - self.first.into(dQ)
        high = high - torch.diag(self.second.size) + self.second.into(dQ)
        return Direction(dQ, low, high, steps, slacks)

    def _solve(self, R: torch.Tensor, away: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """dQ, and D of each demand, with ``dQ = softness ∘ (R − Σ spread(D))`` and ``D = away + gather(dQ)``."""
        stacks = [
            one.stacked([away[number] for number in group])
            for one, group in zip(self.equations, self.groups, strict=True)
        ]
        soft, start = self.softness * R, None
        if self.information is not None:
            start = self._gathered(stacks, self.information.solved(R - self._spread(stacks)))
        found = self._multipliers(self._gathered(stacks, soft), start)
        dQ = soft - self.softness * self._spread(found)
        steps: dict[int, torch.Tensor] = {}
        for one, group, step in zip(self.equations, self.groups, found, strict=True):
            steps |= zip(group, one.apart(step), strict=True)
        return dQ, [steps[number] for number in range(len(self.demands))]

    def _gathered(self, stacks: Sequence[torch.Tensor], M: torch.Tensor) -> list[torch.Tensor]:
        """``stacks`` + gather(M)."""
        return [stack + one.gather(M) for one, stack in zip(self.equations, stacks, strict=True)]

    def _spread(self, found: Sequence[torch.Tensor]) -> torch.Tensor:
        """``Σ Ũ dΛ Ũᵀ``."""
        first, *others = (one.spread(step) for one, step in zip(self.equations, found, strict=True))
        return sum(others, first)

    def _together(self) -> torch.Tensor | None:
        """The Cholesky factor of the equations of all demands together; None where there is one, or they are large."""
        count = sum(one.count for one in self.equations)
        if len(self.demands) < 2 or count > MOST_TOGETHER or count * self.softness.numel() > MOST_NUMBERS:
            return None
        units = torch.cat([one.units() for one in self.equations])
        matrix = (units * self.softness.reshape(-1)) @ units.mT
        matrix.diagonal().add_(1.0)
        whole: torch.Tensor = torch.linalg.cholesky(matrix)
        return whole

    def _multipliers(self, right: list[torch.Tensor], start: list[torch.Tensor] | None) -> list[torch.Tensor]:
        """D with ``D + gather(softness ∘ spread(D)) = right``, all at once or by conjugate gradients from ``start``."""
        sizes = [one.numel() for one in right]
        accuracy = STEP_ACCURACY if self.basis is None else FINE_ACCURACY

        def together(blocks: Iterable[torch.Tensor]) -> torch.Tensor:
            return torch.cat([one.reshape(-1) for one in blocks])

        def apart(numbers: torch.Tensor) -> list[torch.Tensor]:
            return [part.reshape(one.shape) for part, one in zip(numbers.split(sizes), right, strict=True)]

        def product(numbers: torch.Tensor) -> torch.Tensor:
            steps = apart(numbers)
            return together(self._gathered(steps, self.softness * self._spread(steps)))

        def nearly_solved(numbers: torch.Tensor) -> torch.Tensor:
            return together(one.nearly_solved(D) for one, D in zip(self.equations, apart(numbers), strict=True))

        if self.whole is not None:
            return apart(torch.cholesky_solve(together(right)[:, None], self.whole)[:, 0])
        begin = None if start is None else together(start)
        return apart(conjugate_gradients(product, nearly_solved, together(right), accuracy, MOST_PRODUCTS, begin))

    def reach(self, direction: Direction, inward: float) -> float:
        """How far all of Q, 1 − Q, Z, Y, Λ and S may go, 1 at most, ``inward`` of the way to the boundary."""
        least = [
            least_step(self.first.into(direction.Q), self.first.size),
            least_step(direction.low, self.first.size),
            least_step(-self.second.into(direction.Q), self.second.size),
            least_step(direction.high, self.second.size),
        ]
        for one, D, change in zip(self.demands, direction.multipliers, direction.slacks, strict=True):
            least += [one.least(D), one.least(change)]
        return min(1.0, inward / max(-min(least), 1e-300))
