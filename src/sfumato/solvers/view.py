"""What one reader learns under low-rank noise, and the least that has to be added where it is too much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from ..inputs import Array
from ..linalg.one_thread import one_thread
from ..linalg.triangular import solve_lower


class View:
    """One demand seen through ``A = L Lᵀ``.

    With ``Σ = F Fᵀ``, ``G = L⁻¹F`` and ``W = L⁻¹U`` what is learnt is ``φ = WᵀW − WᵀG (I + GᵀG)⁻¹ GᵀW``, or its
    diagonal where the demand is pointwise.
    """

    def __init__(self, lower: Array, root: Array, joint: bool) -> None:
        self.lower, self.root, self.joint = lower, np.array(root, order="C"), joint
        self.white = solve_lower(lower, self.root)
        self.bare = self.white.T @ self.white if joint else np.einsum("ij,ij->j", self.white, self.white)

    def whiten(self, block: Array) -> Array:
        return solve_lower(self.lower, np.ascontiguousarray(block))

    def learnt(self, spread: Array) -> Array:
        """φ, for ``spread`` = G."""
        lower = np.linalg.cholesky(np.eye(spread.shape[1]) + spread.T @ spread)
        half = scipy.linalg.solve_triangular(lower, spread.T @ self.white, lower=True, check_finite=False)
        return np.asarray(self.bare - (half.T @ half if self.joint else np.einsum("ij,ij->j", half, half)))

    def learnt_with(self, learnt: Array, spread: Array, column: Array) -> Array:
        """φ once the noise has one more column c: with ``y = L⁻¹c`` = ``column``, less by a matrix of rank one."""
        gram = np.eye(spread.shape[1]) + spread.T @ spread
        left = column - spread @ scipy.linalg.solve(gram, spread.T @ column, assume_a="pos", check_finite=False)
        met = self.white.T @ left
        change = (np.outer(met, met) if self.joint else met**2) / (1.0 + column @ left)
        return np.asarray(learnt - change)

    def worst(self, learnt: Array) -> tuple[float, Array, int]:
        """The largest φ, the combination of columns of U that has it, and its number (−1 for a mixture)."""
        if self.joint:
            # all of them: with a cluster at 1 a solver for the largest alone has come back empty-handed
            values, vectors = np.linalg.eigh(learnt)
            return float(values[-1]), self.root @ vectors[:, -1], -1
        number = int(np.argmax(learnt))
        return float(learnt[number]), self.root[:, number], number


@one_thread()
def scaled_to_meet(views: Sequence[View], spreads: Sequence[Array], most: float = 2.0) -> float | None:
    """The least c ≤ ``most`` such that c·Σ meets all demands, with c − 1 to within a few percent; None if none does.

    With ``GᵀG = E diag(g) Eᵀ`` and ``X = Eᵀ GᵀW`` what is learnt is ``WᵀW − Xᵀ diag(c / (1 + c g)) X``.
    """
    parts = []
    for view, spread in zip(views, spreads, strict=True):
        values, vectors = np.linalg.eigh(spread.T @ spread)
        parts.append((view, np.maximum(values, 0.0)[:, None], vectors.T @ (spread.T @ view.white)))

    def meets(scale: float) -> bool:
        for view, values, met in parts:
            share = scale / (1.0 + scale * values)
            less = met.T @ (share * met) if view.joint else np.sum(share * met**2, axis=0)
            if view.worst(view.bare - less)[0] > 1.0:
                return False
        return True

    if meets(1.0):
        return 1.0
    low, high = 1e-16, 1e-12
    while not meets(1.0 + high):
        low, high = high, 8.0 * high
        if 1.0 + high > most:
            return None
    while high > 1.05 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if meets(1.0 + middle) else (middle, high)
    return 1.0 + high


@one_thread()
def mended(views: Sequence[View], factor: Array, margin: float) -> tuple[Array, list[set[int]]]:
    """``F`` with columns added until each φ is below 1 − margin/2, and the columns of U that were taken for it.

    Noise ``c u uᵀ`` brings ``φ = uᵀM⁻¹u`` down to ``φ/(1 + cφ)``; with ``c = 1/(1 − margin) − 1/φ`` that is 1 − margin.
    The worst column goes first: what it adds covers its neighbours too.
    """
    taken: list[set[int]] = [set() for _ in views]
    spreads = [view.whiten(factor) for view in views]
    learnt = [view.learnt(spread) for view, spread in zip(views, spreads, strict=True)]
    columns = sum(view.root.shape[1] for view in views)
    for count in range(50 * columns):
        found = [view.worst(each) for view, each in zip(views, learnt, strict=True)]
        which = max(range(len(views)), key=lambda j: found[j][0])
        value, direction, number = found[which]
        if value <= 1.0 - margin / 2:
            break
        # a small margin may drown in round-off: after each time round all columns it is doubled
        wanted = min(0.5, margin * 2.0 ** (count // columns))
        column = np.sqrt(1.0 / (1.0 - wanted) - 1.0 / value) * direction[:, None]
        if number >= 0:
            taken[which].add(number)
        factor = np.hstack([factor, column])
        for j, view in enumerate(views):
            white = view.whiten(column)
            learnt[j] = view.learnt_with(learnt[j], spreads[j], white[:, 0])
            spreads[j] = np.hstack([spreads[j], white])
    return factor, taken
