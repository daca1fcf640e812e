"""A release in the words of differential privacy: the record-level (ε, δ) of a Gaussian mechanism (MATH.md 13)."""

from __future__ import annotations

import numpy as np
import scipy
from scipy.special import log_ndtr

#: ε above this is no privacy that anybody means; it is still given, as far as float64 goes.
LARGEST_EPSILON = 1e6


class PrivacyLoss(float):
    """ε, as a number; ``delta`` and ``mu`` go with it, and ``text`` says what it means."""

    delta: float
    mu: float
    text: str

    def __new__(cls, epsilon: float, delta: float, mu: float, text: str) -> PrivacyLoss:
        made = super().__new__(cls, epsilon)
        made.delta, made.mu, made.text = delta, mu, text
        return made

    @property
    def epsilon(self) -> float:
        return float(self)

    def __str__(self) -> str:
        return self.text


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε) of a mechanism that is μ-GDP: ``Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)``.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(first) * -np.expm1(min(second - first, 0.0)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε such that a μ-GDP mechanism is (ε, δ)-differentially private."""
    if mu == 0.0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # the tail bound: ε = μ²/2 + μ √(2 log 1/δ) is always enough
    enough = mu**2 / 2 + mu * np.sqrt(2.0 * np.log(1.0 / delta))
    if not enough < LARGEST_EPSILON:
        return float(enough)
    return float(
        scipy.optimize.brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, enough, xtol=1e-12, rtol=1e-12)
    )


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest μ for which a μ-GDP mechanism is (ε, δ)-differentially private."""
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2.0
    return float(
        scipy.optimize.brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-12, high, xtol=1e-14, rtol=1e-12)
    )
