"""Units in which numbers are near 1, as powers of two: going there and back rounds nothing."""

from __future__ import annotations

import numpy as np

from .inputs import Array


def units(variances: Array) -> Array:
    """Powers of two, one for each variance, near its square root: dividing by them rounds nothing."""
    exponents = np.round(np.log2(np.maximum(variances, np.finfo(np.float64).tiny)) / 2.0)
    return np.asarray(np.exp2(exponents))
