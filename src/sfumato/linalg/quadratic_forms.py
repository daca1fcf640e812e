"""How likely a sum of weighted squares of normal numbers is to be as small as it is."""

from __future__ import annotations

import math

import numpy as np
import scipy

from ..arrays import UNIT, Array

#: A sum is this many times as large as its mean with no chance that a number could show.
CERTAIN = 1e4

#: Standard deviations of the sum around its mean within which the saddle point's formula has no value of its own.
_FLAT = 1e-3


def chance_below(weights: Array, total: float) -> float:
    """The probability that Σ wᵢ zᵢ² ≤ ``total`` for independent standard normal zᵢ and wᵢ ≥ 0.

    By the saddle point (Lugannani and Rice), whose relative error is a few per cent, in the far tail too.

    >>> import numpy as np
    >>> round(chance_below(np.array([2.0, 1.0, 0.5]), 0.1), 3)
    0.008
    """
    w = np.asarray(weights, dtype=np.float64)
    w = w[w > len(w) * UNIT * max(float(w.max(initial=0.0)), 0.0)]
    if not len(w) or not math.isfinite(total):
        return 1.0
    if total <= 0.0:
        return 0.0
    w, total = w / w.mean(), total / float(w.mean())
    if len(w) == 1 or np.ptp(w) <= 1e-9:
        return float(scipy.stats.chi2(len(w)).cdf(total / float(w[0])))
    mean, spread = float(w.sum()), math.sqrt(2.0 * float(w @ w))
    if total > CERTAIN * mean:
        return 1.0
    if abs(total - mean) < _FLAT * spread:
        low, high = (chance_below(w, mean + side * 2.0 * _FLAT * spread) for side in (-1.0, 1.0))
        return (low + high) / 2.0
    t = _saddle(w, total)
    growth = -0.5 * float(np.log1p(-2.0 * w * t).sum())
    bend = 2.0 * float(np.sum((w / (1.0 - 2.0 * w * t)) ** 2))
    signed = math.copysign(math.sqrt(max(2.0 * (t * total - growth), 0.0)), t)
    scaled = t * math.sqrt(bend)
    # Barndorff-Nielsen's form: a probability whatever the numbers are
    return float(scipy.stats.norm.cdf(signed + math.log(scaled / signed) / signed))


def _saddle(w: Array, total: float) -> float:
    """Where the slope of the log of the moment generating function is ``total``."""

    def slope(t: float) -> float:
        return float(np.sum(w / (1.0 - 2.0 * w * t))) - total

    high = (1.0 - 1e-12) / (2.0 * float(w.max()))
    low = -1.0
    while slope(low) > 0.0:
        low *= 4.0
    return float(scipy.optimize.brentq(slope, low, high, xtol=1e-300, rtol=1e-13, maxiter=500))
