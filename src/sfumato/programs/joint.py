"""The joint program (the paper's Theorem 1): least noise such that nothing about f(S) is learnt beyond Δ.

``K_SX (A + Σ)⁻¹ K_XS ⪯ Δ`` is, by the Schur complement, ``Σ ⪰ B = U Uᵀ − A`` with ``U = K_XS Δ^{-1/2}``. Among all
``Σ ⪰ 0`` with that, the trace is least at the positive part: for ``P`` the projector onto the positive eigenspace of
B, ``Tr Σ ≥ Tr PΣ ≥ Tr PB = Tr B⁺``, and equality forces ``Σ = B⁺``. With ``C ≻ 0`` the same argument for
``C^{1/2} Σ C^{1/2}`` gives the least ``Tr CΣ``.

U is what a promise asks the noise to hide. Designs and their lower bounds take it from here, for rows and for virtual
rows, and for pointwise promises too.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..linalg import Weighting, positive_part_factor
from ..promise import Tolerance, Uncertain


def explaining_root(cross: Array, delta: Array) -> Array:
    """U = K_XS Δ^{-1/2}, n × γ, for ``cross`` = K_XS; the only inverse in the method, and no jitter in it."""
    lower = scipy.linalg.cholesky(delta, lower=True, check_finite=False)
    return np.asarray(scipy.linalg.solve_triangular(lower, cross.T, lower=True, check_finite=False).T)


def joint_noise_factor(A: Array, G: Array, weights: Array | None = None, rank: int | None = None) -> Array:
    """F such that ``Σ = F Fᵀ`` has the least ``Tr CΣ`` among all ``Σ ⪰ G − A``, ``Σ ⪰ 0``.

    ``weights`` is C: None for the identity, a positive diagonal, or a positive definite matrix. ``rank`` is that of G:
    with A ⪰ 0, B has no more positive eigenvalues than G.
    """
    weighting = Weighting(weights)
    return weighting.backward(positive_part_factor(weighting.both(G - A), rank))


def promised_root(cross: Array, tolerance: Tolerance, unknown: Uncertain, sensitive: Array, joint: bool) -> Array:
    """``K_XS Δ^{-1/2}`` (joint), or the columns ``k_s/√δ_s`` (each value by itself), for ``cross`` = K_XS."""
    if joint:
        return explaining_root(cross, tolerance.matrix(unknown, sensitive))
    return np.asarray(cross / np.sqrt(tolerance.budget(unknown, sensitive)))
