"""Differential privacy of each record on top of a design: a part of independent noise (MATH.md 13).

The least noise has a low rank, so who knows all other records takes it off. Independent noise of variance σ² on the
records inside the region leaves ``e_iᵀ Σ⁺ e_i ≤ 1/σ²``. Noise only adds: every promise of the design stays kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..noise import CorrelatedNoise, IndependentNoise
from ..promise import Design
from ..proof import gaussian_mu, record_sensitivity

#: δ where none is given.
USUAL_DELTA = 1e-6


def asked_privacy(dp: Any) -> tuple[float, float] | None:
    """μ and the range that ``dp`` = (ε, range) or (ε, range, δ) asks for; None where nothing is."""
    if dp is None:
        return None
    numbers = isinstance(dp, (tuple, list)) and all(isinstance(one, (int, float)) for one in dp)
    if not numbers or len(dp) not in (2, 3) or not all(0.0 < one < np.inf for one in dp):
        raise InputError(f"dp is {dp!r}; give (epsilon, range) or (epsilon, range, delta), all of them positive.")
    epsilon, span, delta = (*dp, USUAL_DELTA)[:3]
    if delta >= 1.0:
        raise InputError(f"dp has the delta {delta:g}; give a small probability, such as 1e-6.")
    return gaussian_mu(float(epsilon), float(delta)), float(span)


def with_record_privacy(design: Design, mu: float, span: float) -> Design:
    """``design`` with as much independent noise on the records inside the region as makes each of them μ-private.

    ``span`` is the range that a record may lie in.
    """
    rows = np.flatnonzero(design.region.contains(design.inputs.values))
    if span * record_sensitivity(design.noise, rows) <= mu:
        return design
    own = np.zeros(len(design.inputs))
    own[rows] = (span / mu) ** 2
    if isinstance(design.noise, IndependentNoise):
        # it is as private as its least variance on a record
        return replace(design, noise=IndependentNoise(np.maximum(design.noise.variances, own)))
    factor = np.hstack([design.noise.factor, IndependentNoise(own).factor])
    return replace(design, noise=CorrelatedNoise(factor, design.noise.shift, design.noise.suppressed))
