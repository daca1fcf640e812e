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

from ..arrays import Array, Index
from ..data import Inputs
from ..errors import GuaranteeError
from ..linalg import Weighting, as_array, positive_part_factor
from ..promise import DETERMINED, Reader, RowsHeld, Tolerance, Uncertain


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


def insider_root(
    reader: Reader, inputs: Inputs, tolerance: Tolerance, sensitive: Array, records: Index, tightening: float = 1.0
) -> Array:
    """The U of an insider, as if they were an outsider: ``U Uᵀ = G_H``, so that the promise is ``A + Σ ⪰ G_H``.

    With ``A_H = A − A_·H A_HH⁻¹ A_H·`` the promise ``Σ ⪰ U_H Δ_H⁻¹ U_Hᵀ − A_H`` has the columns ``A_·H A_HH^{-1/2}``
    besides those of what is sensitive to them. What their own rows show or determine is left out. ``tightening`` is
    that of Δ_H.
    """
    past = reader.past
    held = past.rows if isinstance(past, RowsHeld) else records[:0]
    others, count = np.setdiff1d(records, held), len(sensitive)
    values = reader.values(inputs, others)
    places = values.places(sensitive)
    known = values.variance(places) <= DETERMINED * values.variance_before(places)
    values = reader.values(inputs, others[~known[count:]])
    places = values.places(sensitive[~known[:count]])
    cross = as_array(values.with_data(inputs, places))
    root = promised_root(cross, tolerance, values, places, True) / np.sqrt(tightening) if len(places) else cross
    return np.hstack([root, past.about_data().T])


def promised_root(cross: Array, tolerance: Tolerance, unknown: Uncertain, sensitive: Array, joint: bool) -> Array:
    """``K_XS Δ^{-1/2}`` (joint), or the columns ``k_s/√δ_s`` (each value by itself), for ``cross`` = K_XS."""
    if joint:
        return explaining_root(cross, tolerance.matrix(unknown, sensitive))
    return np.asarray(cross / np.sqrt(something_left(tolerance.budget(unknown, sensitive))))


def something_left(budget: Array) -> Array:
    """``budget``, if readers may learn something of each value; else no noise helps, however much there is of it."""
    if not np.all(budget > 0.0):
        raise GuaranteeError(
            "no noise keeps this promise: it leaves nothing that readers may learn, because the floor is not below the "
            "standard deviation that the prior has. Promise less, or take a prior with a larger variance."
        )
    return budget
