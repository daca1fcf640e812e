"""An approximate inverse of the barrier's curvature, one column at a time.

In the basis in which T is diagonal the curvature takes a symmetric D to
``½(T⁻¹DS + SDT⁻¹) + M⁻¹DQ + QDM⁻¹ + Σ_s κ_s (v_sᵀDv_s) v_s v_sᵀ``. Its column j is nearly ``C_j D_j`` with
``C_j = ½(S_jj T⁻¹ + t_j⁻¹S) + Q_jj M⁻¹ + (M⁻¹)_jj Q``: what is left out is what other columns do to column j, and that
is no more than what is kept. The inequalities are put back by the Woodbury identity; without them the curvature's
condition number would grow without bound near the optimum. About four steps of conjugate gradients are then enough.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch

from ..inputs import Array
from .barrier import Curvature, symmetric

Index = npt.NDArray[np.intp]

SMALL = 0.05
"""Columns with a smaller Q_jj, of 1, belong to the barrier of T ⪰ 0: there C_j is taken as diagonal."""

PAIRS = 400
"""At most this many inequalities v_aᵀDv_b of joint demands are put back exactly, the stiffest first."""

ENTRIES = 2e7
"""At most this many numbers in all the C_j together, or in what the inequalities add to them."""


class ColumnSolver:
    """The approximate inverse: a linear, symmetric and positive definite map of symmetric matrices."""

    def __init__(self, parts: Sequence[Curvature], values: Array, dual: Array) -> None:
        size = len(values)
        pairs: list[tuple[Array, Array]] = []
        stiff: list[tuple[Array, Array, bool]] = []
        joint = sum(part.joint for part in parts)
        for part in parts:
            pairs += [(part.precision, part.pull), (part.pull, part.precision)]
            seen, weight = part.stiff()
            if part.joint:
                count = min(len(weight), int(np.sqrt(2 * PAIRS / joint)))
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
        self._dense = np.sort(np.argsort(-weight)[: min(limit, int(np.sum(weight > SMALL)))])
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
