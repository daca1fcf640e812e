"""The logarithm of the modified Bessel function K_ν, where the function itself would overflow or vanish."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, kve

from ..inputs import Array

#: Below it K_ν(z) is Γ(ν)(2/z)^ν/2 to round-off, if it is large at all.
SMALL = 1.0e-8


def log_bessel_k(order: float, z: Array) -> Array:
    """log K_ν(z) for ν = ``order`` ≥ 0 and z > 0.

    >>> import numpy as np
    >>> log_bessel_k(0.5, np.array([1.0])).round(6)
    array([-0.774209])
    """
    with np.errstate(over="ignore"):
        scaled = kve(order, z)
    good = np.isfinite(scaled) & (scaled > 0.0)
    result = np.log(np.where(good, scaled, 1.0)) - z
    small = ~good & (z < SMALL)
    result[small] = gammaln(order) + order * np.log(2.0 / z[small]) - np.log(2.0)
    rest = ~good & ~small
    result[rest] = _by_integral(order, z[rest])
    return np.asarray(result)


def _by_integral(order: float, z: Array) -> Array:
    """K_ν(z) = ½ ∫ exp(νt − z cosh t) dt around its saddle t₀ = arsinh(ν/z).

    Only large orders overflow, so the integrand falls off within a few widths (ν² + z²)^{-1/4}, and the trapezoidal
    rule is exact to round-off.
    """
    saddle = np.arcsinh(order / z)
    peak = np.hypot(order, z)
    step = 0.2 / np.sqrt(peak)
    t = np.arange(-400, 401)[None, :] * step[:, None]
    # cosh(t₀ + t) − cosh t₀, without the difference of two large numbers
    rise = 2.0 * np.sinh(t / 2.0) * (peak[:, None] * np.sinh(t / 2.0) + order * np.cosh(t / 2.0))
    with np.errstate(over="ignore"):
        total = np.sum(np.exp(order * t - rise), axis=1)
    return np.asarray(order * saddle - peak + np.log(step * total / 2.0))
