"""What one reader may learn, as a constraint on the noise, and what proves that noise cannot be less.

A reader whose data have the covariance A learns ``K_SX (A + Σ)⁻¹ K_XS`` about f(S). With ``U = K_XS Δ^{-1/2}`` the
joint promise is ``Uᵀ(A + Σ)⁻¹U ⪯ I``, that is ``Σ ⪰ B = U Uᵀ − A``; the pointwise promise asks it of each column u
alone, ``uᵀ(A + Σ)⁻¹u ≤ 1``, that is ``Σ ⪰ B_u = u uᵀ − A`` for every u.

Every noise program is ``min Tr Σ`` under such demands. Its dual is ``max Σ_g ⟨B_g, Λ_g⟩`` over ``Λ_g ⪰ 0`` with
``Σ_g Λ_g ⪯ I``, or with a diagonal of at most 1 where Σ is diagonal: ``Tr Σ ≥ Σ_g ⟨Σ, Λ_g⟩ ≥ Σ_g ⟨B_g, Λ_g⟩``.
So any such Λ, a *witness*, proves a lower bound, wherever it comes from.

What is learnt, its slack and its multiplier are γ × γ matrices where a demand is joint; where it is pointwise only
their diagonals count, and they are vectors. ``inner``, ``times`` and ``root_of`` serve both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..linalg import Block


@dataclass(frozen=True, eq=False)
class Demand:
    """``Uᵀ(A + Σ)⁻¹U ⪯ I`` (joint), or ``uᵀ(A + Σ)⁻¹u ≤ 1`` for each column u of U (pointwise).

    ``covariance`` is A, n × n and positive definite; ``root`` is U, n × γ.
    """

    covariance: Array
    root: Array
    joint: bool

    def ratio(self, noise: Array) -> float:
        """The largest share of what may be learnt that is learnt with ``noise`` = Σ; at most 1 where the demand is met.

        >>> import numpy as np
        >>> Demand(np.eye(2), np.array([[2.0], [0.0]]), joint=True).ratio(np.diag([3.0, 0.0]))
        1.0
        """
        lower = scipy.linalg.cholesky(self.covariance + noise, lower=True, check_finite=False)
        explained = scipy.linalg.solve_triangular(lower, self.root, lower=True, check_finite=False)
        learnt = inner(explained, explained, self.joint)
        return float(np.max(scipy.linalg.eigvalsh(learnt) if self.joint and learnt.size else learnt, initial=0.0))

    def value(self, witness: Array) -> float:
        """``Σ ⟨B, Λ⟩``: for a joint demand Λ = Y Yᵀ, for a pointwise one Λ_s = y_s y_sᵀ, one column for each of U."""
        seen = inner(self.root, witness, self.joint)
        return float(np.sum(seen**2) - np.sum(witness * (self.covariance @ witness)))


def lower_bound(demands: Sequence[Demand], witness: Sequence[Array], diagonal: bool = False) -> float:
    """A lower bound for ``Tr Σ`` over all Σ (all diagonal Σ) that meet ``demands``, proved by any ``witness``.

    ``witness`` has one matrix Y for each demand, with n rows; it is scaled down here as far as it has to be.
    """
    together = np.hstack(list(witness)) if len(witness) else np.zeros((0, 0))
    if together.shape[1] == 0:
        return 0.0
    if diagonal:
        rows = np.sqrt(np.einsum("ij,ij->i", together, together))
        scale = 1.0 / np.maximum(rows, 1.0)
        each = sum(demand.value(scale[:, None] * part) for demand, part in zip(demands, witness, strict=True))
        largest = max(1.0, float(np.max(rows)) ** 2)
    else:
        each = 0.0
        gram = together.T @ together if together.shape[1] < together.shape[0] else together @ together.T
        largest = max(1.0, float(scipy.linalg.eigvalsh(gram)[-1]))
    total = sum(demand.value(part) for demand, part in zip(demands, witness, strict=True)) / largest
    return max(0.0, total, each)


def inner(left: Array, right: Array, joint: bool) -> Array:
    """``leftᵀ right``, or its diagonal."""
    return np.asarray(left.T @ right if joint else np.einsum("ij,ij->j", left, right))


def times(block: Array, weight: Array) -> Array:
    """``block · weight``, for a weight that is a matrix or a diagonal."""
    return np.asarray(block @ weight if weight.ndim == 2 else block * weight)


def symmetric(matrix: Block) -> Block:
    """The symmetric part; a diagonal is its own."""
    return (matrix + matrix.T) / 2


def root_of(weight: Array) -> Array:
    """R with ``R Rᵀ = weight``; ``LinAlgError`` where the weight is not positive (definite)."""
    if weight.ndim == 2:
        return np.asarray(np.linalg.cholesky(weight), dtype=np.float64)
    if not np.all(weight > 0.0):
        raise np.linalg.LinAlgError("a number is not positive")
    return np.sqrt(weight)
