"""How much Gaussian noise (ε, δ)-differential privacy takes, for a sensitivity of 1.

With noise N(0, σ²) on a number that one person can move by 1, the chance that the privacy loss exceeds ε is weighed by

    δ(ε, σ) = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ)

exactly (Balle and Wang 2018), and so it is for vectors with noise N(0, σ² M) whose change c has cᵀ M⁻¹ c ≤ 1.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, Literal, get_args

from scipy.special import log_ndtr

from ..errors import InputError

Calibration = Literal["classical", "hall", "analytic"]
CALIBRATIONS: tuple[str, ...] = get_args(Calibration)

_UNIT = 2.3e-16


def noise_multiplier(epsilon: float, delta: float, calibration: Calibration = "analytic") -> float:
    """σ: the standard deviation of the noise for each unit of sensitivity.

    =========== ======================= ========================================================
    calibration σ
    =========== ======================= ========================================================
    "classical" √(2 ln(1.25/δ)) / ε     Dwork and Roth 2014; proven for ε ≤ 1 only
    "hall"      √(2 ln(2/δ)) / ε        Hall et al. 2013, Smith et al. 2018; proven for ε ≤ 1 only
    "analytic"  the least that is enough Balle and Wang 2018; any ε
    =========== ======================= ========================================================

    Guarantee: noise of this size is (ε, δ)-differentially private; "analytic" is rounded up, never down.

    >>> [round(noise_multiplier(0.5, 0.01, how), 4) for how in ("classical", "hall", "analytic")]
    [6.215, 6.5105, 3.1469]
    """
    check_budget(epsilon, delta)
    if calibration not in CALIBRATIONS:
        raise InputError(f"calibration is {calibration!r}; choose one of {', '.join(map(repr, CALIBRATIONS))}.")
    if calibration == "analytic":
        return _least(lambda multiplier: log_delta(multiplier, epsilon) <= math.log(delta))
    if epsilon > 1.0:
        raise InputError(
            f'epsilon is {epsilon:g}, but the proof behind calibration="{calibration}" needs epsilon ≤ 1 (beyond, the '
            'noise can be too small); use calibration="analytic", which is exact for every epsilon.'
        )
    return math.sqrt(2.0 * math.log((1.25 if calibration == "classical" else 2.0) / delta)) / epsilon


def exact_epsilon(multiplier: float, delta: float) -> float:
    """The least ε for which noise of ``multiplier`` · sensitivity is (ε, δ)-differentially private, rounded up.

    The mean of k independent draws has ``multiplier / √k``, and tells exactly what the k draws tell together.

    >>> round(exact_epsilon(3.1469, 0.01), 4)
    0.5
    """
    check_budget(1.0, delta)
    if math.isnan(multiplier) or multiplier < 0.0:
        raise InputError(f"multiplier is {multiplier!r}; give a number ≥ 0.")
    if multiplier == 0.0:
        return math.inf
    if math.isinf(multiplier) or log_delta(multiplier, 0.0) <= math.log(delta):
        return 0.0
    return _least(lambda epsilon: log_delta(multiplier, epsilon) <= math.log(delta))


def log_delta(multiplier: float, epsilon: float) -> float:
    """log δ(ε, σ), never below the true value: bounds for round-off are added where they count."""
    half, centre = 0.5 / multiplier, epsilon * multiplier
    first = float(log_ndtr(half - centre))
    second = epsilon + float(log_ndtr(-half - centre))
    doubt = 8.0 * _UNIT * (1.0 + epsilon + (half + centre) * (1.0 + half + centre))
    apart = max(first - second, 0.0) + doubt
    # log(1 − e^{−x}), by the form that keeps its digits
    rest = math.log(-math.expm1(-apart)) if apart < math.log(2.0) else math.log1p(-math.exp(-apart))
    return min(first + doubt + rest, 0.0)


def check_budget(epsilon: Any, delta: Any) -> None:
    """Raise ``InputError`` unless 0 < ε and 0 < δ < 1 are numbers of usual size."""
    if not _is_number(epsilon) or not 1e-12 <= epsilon <= 1e12:
        raise InputError(f"epsilon is {epsilon!r}; give a positive number (1e-12 to 1e12), for example 0.5.")
    if not _is_number(delta) or not 1e-100 <= delta < 1.0:
        raise InputError(f"delta is {delta!r}; give a number between 0 and 1 (1e-100 at least), for example 0.01.")


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def _least(enough: Callable[[float], bool]) -> float:
    """The least x > 0 that is enough, by bisection; what comes back is always enough itself."""
    upper = 1.0
    while not enough(upper):
        upper *= 2.0
    lower = upper / 2.0
    while lower > 0.0 and enough(lower):
        lower, upper = lower / 2.0, lower
    while lower < (middle := lower + (upper - lower) / 2.0) < upper:
        lower, upper = (lower, middle) if enough(middle) else (middle, upper)
    return upper
