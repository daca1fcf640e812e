"""Least trace in few dimensions: a primal-dual interior point method over all T ⪰ 0.

Among ``Σ = P T Pᵀ`` a demand is one about T: with ``N = (Pᵀ A⁻¹ P)⁻¹ = (RᵀR)⁻¹`` and ``U = P Ũ``,
``Uᵀ(A + Σ)⁻¹U = Ũᵀ(N + T)⁻¹Ũ = Ûᵀ(I + R T Rᵀ)⁻¹Û``, ``Û = R Ũ``. It is exact, not an approximation (MATH.md, 6.2).
Write ``M = N + T``, ``V = M⁻¹Ũ``, φ for what is learnt (its diagonal where the demand is pointwise) and ξ = I − φ for
the slack. A change D of T changes φ by ``−VᵀDV``, and the Lagrangian term ``⟨z, φ⟩`` has the curvature
``D ↦ M⁻¹DQ + QDM⁻¹`` with ``Q = V z Vᵀ``.

The method follows the minimisers of ``Tr T − τ log det T − τ Σ log det ξ(T)`` as τ falls. They are where ``z ξ = τ``,
``T S = τ I`` and ``S = I − Σ Q``. The multipliers z and S are steered on their own, by Newton's method, so that τ can
fall quickly. The program is convex, so every starting point leads to the optimum; about twenty steps are enough at any
size. The multipliers are a witness: Λ = V z Vᵀ, each singular value of V z^{1/2} above 1 cut down to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import torch

from ..arrays import Array, Index
from ..linalg import conjugate_gradients
from .demand import inner, root_of, symmetric, times


@dataclass(frozen=True, eq=False)
class SmallDemand:
    """``whitener`` is R, p × p and upper triangular; ``root`` is Û, p × m."""

    whitener: Array
    root: Array
    joint: bool

    @property
    def count(self) -> int:
        """How many inequalities it stands for: the degree of its barrier."""
        return int(self.root.shape[1])


class Slack:
    """One demand at ``T = G Gᵀ``: its slack ξ, and log det ξ, which is −∞ where the demand is not strictly met."""

    def __init__(self, demand: SmallDemand, factor: Array) -> None:
        spread = demand.whitener @ factor
        self.demand = demand
        self.lower = scipy.linalg.cholesky(np.eye(len(spread)) + spread @ spread.T, lower=True, check_finite=False)
        self.explained = scipy.linalg.solve_triangular(self.lower, demand.root, lower=True, check_finite=False)
        learnt = inner(self.explained, self.explained, demand.joint)
        self.slack = (np.eye(demand.count) if demand.joint else 1.0) - learnt
        self.log = -np.inf
        with suppress(np.linalg.LinAlgError):
            root = root_of(self.slack)
            self.log = float(2.0 * np.sum(np.log(np.diag(root))) if demand.joint else np.sum(np.log(self.slack)))


class Curvature:
    """One demand at ``T``, with multipliers z, in the basis in which T is diagonal; ``seen`` is V there."""

    def __init__(self, at: Slack, basis: Array, multiplier: Array | None, level: float) -> None:
        root = at.demand.whitener @ basis
        half = scipy.linalg.solve_triangular(at.lower, root, lower=True, check_finite=False)
        self.joint, self.slack = at.demand.joint, at.slack
        self.demand, self.basis = at.demand, basis
        inverse = np.linalg.inv(at.slack) if self.joint else 1.0 / at.slack
        self.inverse = symmetric(np.asarray(inverse, dtype=np.float64))
        self.multiplier = level * self.inverse if multiplier is None else multiplier
        self.precision = half.T @ half
        self.seen = half.T @ at.explained
        self.pull = self._spread(self.multiplier)
        self.stiffness = self._spread(self.inverse) if self.joint else None

    def _spread(self, weight: Array) -> Array:
        """V · weight · Vᵀ."""
        return symmetric(times(self.seen, weight) @ self.seen.T)

    def push(self, level: float) -> Array:
        """The barrier's gradient at ``level`` = τ: V (τ ξ⁻¹) Vᵀ."""
        return self._spread(level * self.inverse)

    def product(self, D: Array) -> Array:
        """The curvature of this demand in the direction D."""
        half = self.precision @ D @ self.pull
        if self.stiffness is not None:
            half = half + 0.5 * (self.pull @ D @ self.stiffness)
            return np.asarray(half + half.T)
        return np.asarray(half + half.T + (self.seen * self._follow(D)) @ self.seen.T)

    def _follow(self, D: Array) -> Array:
        """What D takes from the multipliers: the symmetric part of ``z (VᵀDV) ξ⁻¹``."""
        if self.joint:
            return symmetric(self.multiplier @ (self.seen.T @ D @ self.seen) @ self.inverse)
        return self.multiplier * self.inverse * inner(self.seen, D @ self.seen, joint=False)

    def multiplier_step(self, D: Array, level: float) -> Array:
        """How z has to follow D to stay at ``z ξ = level``, to first order."""
        return np.asarray(level * self.inverse - self.multiplier - self._follow(D))

    def stiff(self) -> tuple[Array, Array]:
        """v_a and κ_a of the barrier's own curvature, ``Σ_ab ½(κ_a + κ_b) (v_aᵀDv_b) v_a v_bᵀ``.

        The sum runs over a = b only where the demand is pointwise.
        """
        if not self.joint:
            return self.seen, self.multiplier * self.inverse
        lower = root_of(self.slack)
        values, vectors = np.linalg.eigh(lower.T @ self.multiplier @ lower)
        turn = scipy.linalg.solve_triangular(lower, vectors, lower=True, trans="T", check_finite=False)
        return self.seen @ turn, values

    def witness_value(self, clip: Array) -> float:
        """``⟨B, Λ⟩`` for the witness ``clip · V z^{1/2}``; see demand.py."""
        witness = self.basis @ (clip @ times(self.seen, root_of(self.multiplier)))
        image = scipy.linalg.solve_triangular(self.demand.whitener, witness, trans="T", check_finite=False)
        met = inner(self.demand.root, image, self.joint)
        return float(np.sum(met**2) - np.sum(image**2))


#: Columns with a smaller Q_jj, of 1, belong to the barrier of T ⪰ 0: there C_j is taken as diagonal.
BARRIER_COLUMN = 0.05

#: At most this many inequalities v_aᵀDv_b of joint demands are put back exactly, the stiffest first.
MOST_EXACT_INEQUALITIES = 400

#: At most this many numbers in all the C_j together, or in what the inequalities add to them.
ENTRIES = 2e7


class ColumnSolver:
    """An approximate inverse of the barrier's curvature: a symmetric, positive definite map of symmetric matrices.

    In the basis in which T is diagonal the curvature takes a symmetric D to
    ``½(T⁻¹DS + SDT⁻¹) + M⁻¹DQ + QDM⁻¹ + Σ_s κ_s (v_sᵀDv_s) v_s v_sᵀ``. Its column j is nearly ``C_j D_j`` with
    ``C_j = ½(S_jj T⁻¹ + t_j⁻¹S) + Q_jj M⁻¹ + (M⁻¹)_jj Q``: what is left out is what other columns do to column j, and
    that is no more than what is kept. The inequalities are put back by the Woodbury identity; without them the
    curvature's condition number would grow without bound near the optimum. About four steps of conjugate gradients are
    then enough.
    """

    def __init__(self, parts: Sequence[Curvature], values: Array, dual: Array) -> None:
        size = len(values)
        pairs: list[tuple[Array, Array]] = []
        stiff: list[tuple[Array, Array, bool]] = []
        joint = sum(part.joint for part in parts)
        for part in parts:
            pairs += [(part.precision, part.pull), (part.pull, part.precision)]
            seen, weight = part.stiff()
            if part.joint:
                count = min(len(weight), int(np.sqrt(2 * MOST_EXACT_INEQUALITIES / joint)))
                order = np.argsort(-np.sum(seen**2, axis=0))
                pairs += _left_over(seen, weight, order[:count])
                seen, weight = seen[:, order[:count]], weight[order[:count]]
            stiff.append((seen, weight, part.joint))
        own = np.diag(dual)
        self._diagonal = 0.5 * (own[None, :] / values[:, None] + own[:, None] / values[None, :])
        for a, b in pairs:
            self._diagonal += np.outer(np.diag(a), np.diag(b))
        weight = np.diag(sum((part.pull for part in parts), np.zeros((size, size))))
        inequalities = sum(len(each) * (len(each) + 1) // 2 if pairwise else len(each) for _, each, pairwise in stiff)
        limit = max(1, int(ENTRIES / (size * max(size, inequalities))))
        self._dense = np.sort(np.argsort(-weight)[: min(limit, int(np.sum(weight > BARRIER_COLUMN)))])
        columns = 0.5 * dual[None] / values[self._dense][:, None, None]
        index = np.arange(size)
        columns[:, index, index] += 0.5 * own[self._dense][:, None] / values[None, :]
        for a, b in pairs:
            columns += np.diag(b)[self._dense][:, None, None] * a
        self._lower = torch.from_numpy(np.linalg.cholesky(columns))
        self._inequalities(stiff)

    def _inequalities(self, stiff: Sequence[tuple[Array, Array, bool]]) -> None:
        """``L_j⁻¹ (v_s v_sᵀ)_j`` for each inequality, with ``C_j = L_j L_jᵀ``: what the Woodbury identity needs."""
        blocks, weights = [], []
        for seen, weight, joint in stiff:
            half = torch.linalg.solve_triangular(self._lower, torch.from_numpy(seen), upper=False).numpy()
            rows = seen[self._dense][:, None, :]
            if joint:
                a, b = np.triu_indices(len(weight))
                same = np.where(a == b, 0.5, 1.0)
                blocks.append((half[:, :, a] * rows[:, :, b] + half[:, :, b] * rows[:, :, a]) * same)
                weights.append((weight[a] + weight[b]) / (4.0 * same**2))
            else:
                blocks.append(half * rows)
                weights.append(weight)
        self._spread = np.concatenate(blocks, axis=2).reshape(-1, sum(map(len, weights)))
        gram = self._spread.T @ self._spread + np.diag(1.0 / np.concatenate(weights))
        self._gram = scipy.linalg.cho_factor(gram, check_finite=False)

    def __call__(self, D: Array) -> Array:
        solved = D / self._diagonal
        right = torch.from_numpy(np.ascontiguousarray(D[:, self._dense].T)[:, :, None])
        block = torch.linalg.solve_triangular(self._lower, right, upper=False)
        force = scipy.linalg.cho_solve(self._gram, self._spread.T @ block.numpy().ravel(), check_finite=False)
        block = block - torch.from_numpy((self._spread @ force).reshape(block.shape))
        block = torch.linalg.solve_triangular(self._lower.mT, block, upper=True)
        solved[:, self._dense] = block.numpy()[:, :, 0].T
        return symmetric(solved)


def _left_over(seen: Array, weight: Array, taken: Index) -> list[tuple[Array, Array]]:
    """A joint demand's curvature without the pairs of directions ``taken``: pairs (a, b) that act as D ↦ a D b.

    ``½(Q D X + X D Q)``, ``X = Σ v_a v_aᵀ``, ``Q = Σ κ_a v_a v_aᵀ``, less the same for the directions taken.
    """
    rest = np.setdiff1d(np.arange(len(weight)), taken)
    if not rest.size:
        return []
    X, Q = 0.5 * seen @ seen.T, (seen * weight) @ seen.T
    X_rest, Q_rest = 0.5 * seen[:, rest] @ seen[:, rest].T, (seen[:, rest] * weight[rest]) @ seen[:, rest].T
    return [(X, Q_rest), (X_rest, Q - Q_rest), (Q, X_rest), (Q_rest, X - X_rest)]


#: More Newton steps than any problem has needed.
STEPS = 80

#: The share of the way to the boundary that a step may go.
INWARD = 0.95


@dataclass(frozen=True, eq=False)
class InteriorSolution:
    """``T = Σ tᵢ eᵢeᵢᵀ``, strictly inside, with tᵢ in ``values`` and eᵢ in ``basis``.

    ``multipliers`` has z for each demand, ``level`` is the last τ, ``gap`` what z proves of Tr T, as a share.
    """

    values: Array
    basis: Array
    multipliers: tuple[Array, ...]
    level: float
    gap: float


def least_trace(
    demands: Sequence[SmallDemand], start: Array, accuracy: float, level: float | None = None
) -> InteriorSolution:
    """The T of least trace that meets ``demands``, to a relative gap of ``accuracy`` or as near as float64 goes.

    ``start`` meets them strictly and is positive definite; ``level`` is the first τ: small where ``start`` is good.
    """
    degree = len(start) + sum(demand.count for demand in demands)
    point = _Point(demands, start, float(np.trace(start)) / degree if level is None else level)
    best, reached = point.solution(), 1.0
    for step in range(STEPS):
        if best.gap <= accuracy:
            break
        # τ falls fast after a good step, not at all while S is far from I − Q, and rises where that blocks the way
        target, least = point.share, degree * point.share
        if step and (point.astray < least or point.gap * point.total < 3.0 * least):
            target = max(target * min(0.9, max(0.1, (1.0 - reached) ** 1.5)), 0.2 * accuracy * point.total / degree)
        elif step > 1 and reached < 0.05:
            target = max(target, 0.5 * point.astray / degree)
        try:
            moved = point.step(target)
        except np.linalg.LinAlgError:
            break
        if moved is None:
            break
        point, reached = moved
        if point.gap < best.gap:
            best = point.solution()
    return best


class _Point:
    """T, z and S, seen in the basis in which T is diagonal."""

    def __init__(
        self,
        demands: Sequence[SmallDemand],
        matrix: Array,
        level: float,
        multipliers: Sequence[Array] | None = None,
        dual: Array | None = None,
    ) -> None:
        self.demands, self.matrix, self.level = demands, matrix, level
        self.values, self.basis = np.linalg.eigh(matrix)
        if not self.values[0] > 0:
            raise np.linalg.LinAlgError("T is no longer positive definite to working precision")
        self.slacks = [Slack(demand, self.basis * np.sqrt(self.values)) for demand in demands]
        if not all(np.isfinite(at.log) for at in self.slacks):
            raise np.linalg.LinAlgError("T does not meet the demands strictly to working precision")
        given = [None] * len(demands) if multipliers is None else multipliers
        self.parts = [Curvature(at, self.basis, z, level) for at, z in zip(self.slacks, given, strict=True)]
        self.dual = np.diag(level / self.values) if dual is None else symmetric(self.basis.T @ dual @ self.basis)
        self.total = float(np.sum(self.values))
        pull = sum((part.pull for part in self.parts), np.zeros_like(matrix))
        self.gap = 1.0 - self._proved(pull) / self.total
        products = float(self.values @ np.diag(self.dual))
        products += sum(float(np.sum(part.multiplier * part.slack)) for part in self.parts)
        self.share = products / (len(matrix) + sum(demand.count for demand in demands))
        root = np.sqrt(self.values)
        self.astray = float(np.linalg.norm((np.eye(len(matrix)) - pull - self.dual) * np.outer(root, root)))

    def solution(self) -> InteriorSolution:
        multipliers = tuple(part.multiplier for part in self.parts)
        return InteriorSolution(self.values, self.basis, multipliers, self.level, self.gap)

    def _proved(self, pull: Array) -> float:
        """The lower bound that the multipliers prove."""
        values, vectors = np.linalg.eigh(pull)
        clip = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        return sum(part.witness_value(clip) for part in self.parts)

    def step(self, level: float) -> tuple[_Point, float] | None:
        """One step towards the minimiser for τ = ``level``, and how much of Newton's step it is."""
        gradient = np.diag(1.0 - level / self.values) - sum(part.push(level) for part in self.parts)
        solver = ColumnSolver(self.parts, self.values, self.dual)
        D = conjugate_gradients(self._curvature, solver, -gradient, 1e-2, 300)
        moved = self._descend(D, float(np.sum(gradient * D)), level)
        if moved is None:
            return None
        matrix, forward = moved
        dual_step = np.diag(level / self.values) - self.dual - symmetric((D / self.values[:, None]) @ self.dual)
        steps = [part.multiplier_step(D, level) for part in self.parts]
        backward = _inside(self.dual, dual_step)
        for part, change in zip(self.parts, steps, strict=True):
            backward = min(backward, _inside(part.multiplier, change))
        multipliers = [part.multiplier + backward * change for part, change in zip(self.parts, steps, strict=True)]
        dual = self.basis @ (self.dual + backward * dual_step) @ self.basis.T
        return _Point(self.demands, matrix, level, multipliers, dual), min(forward, backward)

    def _curvature(self, D: Array) -> Array:
        half = 0.5 * ((D / self.values[:, None]) @ self.dual)
        return np.asarray(half + half.T + sum(part.product(D) for part in self.parts))

    def _descend(self, D: Array, slope: float, level: float) -> tuple[Array, float] | None:
        """The next T along D, strictly inside and with a lower barrier function, and how much of D it took."""
        logs = float(np.sum(np.log(self.values))) + sum(at.log for at in self.slacks)
        here = self.total - level * logs
        change = self.basis @ D @ self.basis.T
        length = _inside(np.diag(self.values), D)
        while length > 1e-10:
            there = symmetric(self.matrix + length * change)
            if _barrier(self.demands, there, level) <= here + 1e-4 * length * slope + 1e-12 * abs(here):
                return there, length
            length *= 0.85
        return None


def _barrier(demands: Sequence[SmallDemand], matrix: Array, level: float) -> float:
    """``Tr T − τ log det T − τ Σ log det ξ(T)``, infinite outside."""
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.inf
    logs = 2.0 * float(np.sum(np.log(np.diag(lower))))
    logs += sum(Slack(demand, np.asarray(lower)).log for demand in demands)
    return float(np.trace(matrix)) - level * logs


def _inside(point: Array, change: Array) -> float:
    """How much of ``change``, at most all of it, keeps ``point`` positive (definite)."""
    if point.ndim == 1:
        least = float(np.min(change / point))
    else:
        lower = root_of(point)
        half = scipy.linalg.solve_triangular(lower, change, lower=True, check_finite=False)
        scaled = scipy.linalg.solve_triangular(lower, half.T, lower=True, check_finite=False)
        least = float(np.linalg.eigvalsh(symmetric(scaled))[0])
    return 1.0 if least >= -INWARD else INWARD / -least
