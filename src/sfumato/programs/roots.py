"""U, what a promise asks the noise to hide: the same for designs, for their bounds, on rows and on virtual rows."""

from __future__ import annotations

import numpy as np

from ..inputs import Array
from ..prior import Prior
from ..tolerance import Tolerance
from .joint import explaining_root


def promised_root(cross: Array, tolerance: Tolerance, prior: Prior, sensitive: Array, joint: bool) -> Array:
    """``K_XS Δ^{-1/2}`` (joint), or the columns ``k_s/√δ_s`` (each value by itself), for ``cross`` = K_XS."""
    if joint:
        return explaining_root(cross, tolerance.matrix(prior, sensitive))
    return np.asarray(cross / np.sqrt(tolerance.budget(prior, sensitive)))
