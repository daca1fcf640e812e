"""Matérn functions of half-integer smoothness, and sums of them that follow the tail of a spectral density.

In d dimensions the Matérn function of smoothness ν and frequency κ = √(2ν)/ℓ, one at zero, has the spectral density
``c(ν) π^{-d/2} κ^{2ν} (κ² + ρ²)^{-ν-d/2}`` with ``c(ν) = Γ(ν + d/2)/Γ(ν)``. With ``u = κ²/(κ² + ρ²)`` the powers
``u^{ν+j+d/2}``, j = 0, 1, …, are therefore the spectra of Matérn functions with one κ: a density with an algebraic tail
is a power series in u, and its slow part needs no quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..inputs import Array

#: e^{-z} is zero in float64 long before; powers of a larger z could overflow.
FAR = 800.0


def half_integer_matern(nu: float, z: Array) -> Array:
    """The Matérn function of smoothness ν = m + 1/2 at ``z`` = κr: a polynomial of degree m times e^{-z}.

    >>> import numpy as np
    >>> half_integer_matern(1.5, np.array([0.0, 1.0])).round(6)
    array([1.      , 0.735759])
    """
    m = round(nu - 0.5)
    if m < 0 or abs(nu - 0.5 - m) > 1e-12:
        raise ValueError(f"nu is {nu}; it must be 1/2, 3/2, 5/2, …")
    z = np.minimum(z, FAR)
    total = np.zeros_like(z)
    for i in range(m, -1, -1):
        numerator = math.factorial(m) * math.factorial(2 * m - i) * 2**i
        total = total * z + numerator / (math.factorial(2 * m) * math.factorial(m - i) * math.factorial(i))
    return np.asarray(total * np.exp(-z))


def log_gamma_ratio(nu: float, dimension: int) -> float:
    """log c(ν), c(ν) = Γ(ν + d/2)/Γ(ν)."""
    return math.lgamma(nu + dimension / 2.0) - math.lgamma(nu)


@dataclass(frozen=True, eq=False)
class MaternSeries:
    """``Σ_j c_j u^{ν+j+d/2}`` with ``u = κ²/(κ² + ρ²)``, as a spectral density and as the function that has it."""

    frequency: float
    nu: float
    weights: Array
    dimension: int

    def density(self, rho: Array) -> Array:
        """The sum at the frequencies ρ."""
        u = 1.0 / (1.0 + (rho / self.frequency) ** 2)
        power = u ** (self.nu + self.dimension / 2.0)
        return np.asarray(np.polynomial.polynomial.polyval(u, self.weights) * power)

    def amplitudes(self) -> Array:
        """What each term is at r = 0."""
        # π^{d/2} κ^d / c(ν + j): the integral of u^{ν+j+d/2} over all frequencies
        volume = self.dimension * math.log(math.sqrt(math.pi) * self.frequency)
        logs = [volume - log_gamma_ratio(self.nu + j, self.dimension) for j in range(len(self.weights))]
        return np.asarray(self.weights * np.exp(np.array(logs)))

    def size(self) -> float:
        """The sum of the sizes of the terms at r = 0."""
        return float(np.sum(np.abs(self.amplitudes())))

    def __call__(self, r: Array) -> Array:
        """The function with this spectral density, at the distances ``r``."""
        z = self.frequency * np.asarray(r)
        terms = [a * half_integer_matern(self.nu + j, z) for j, a in enumerate(self.amplitudes()) if a != 0.0]
        return np.asarray(np.sum(terms, axis=0))


def divide_series(numerator: Array, denominator: Array) -> Array:
    """The power series ``numerator / denominator`` to as many terms as ``numerator`` has."""
    quotient = np.zeros_like(numerator)
    for j in range(len(numerator)):
        known = np.dot(quotient[:j], denominator[1 : j + 1][::-1])
        quotient[j] = (numerator[j] - known) / denominator[0]
    return quotient
