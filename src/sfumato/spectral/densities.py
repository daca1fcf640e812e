"""Spectral densities of radial kernels: ``K(x, x′) = k(|x − x′|) = ∫ k̂(ω) e^{iω·(x − x′)} dω`` on ℝᵈ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special

from ..inputs import Array
from .log_bessel import log_bessel_k
from .matern_series import MaternSeries, divide_series, log_gamma_ratio
from .radial_quadrature import RadialDensity, total_mass

#: Terms of the series that follows an algebraic tail.
TERMS = 10
#: How much larger than g(0) the terms of that series may be: each factor of ten costs a digit.
MOST_CANCELLATION = 1.0e3


@dataclass(frozen=True)
class RadialKernel:
    """A radial kernel of variance one; ``number`` is ν of a Matérn and α of a rational quadratic kernel."""

    kind: str
    number: float
    lengthscale: float

    @property
    def frequency(self) -> float:
        """κ = √(2ν)/ℓ of a Matérn kernel, 1/ℓ of an RBF, 1/(√(2α) ℓ) of a rational quadratic."""
        if self.kind == "matern":
            return math.sqrt(2.0 * self.number) / self.lengthscale
        return 1.0 / self.lengthscale if self.kind == "rbf" else 1.0 / self.rate

    @property
    def rate(self) -> float:
        """A rational quadratic kernel has a spectrum that falls off like e^{-rate·ρ}."""
        return math.sqrt(2.0 * self.number) * self.lengthscale

    def log_density(self, rho: Array, dimension: int) -> Array:
        """log k̂ at the frequencies ``rho`` > 0."""
        d, nu = dimension, self.number
        if self.kind == "rbf":
            norm = d / 2.0 * math.log(self.lengthscale**2 / (2.0 * math.pi))
            return np.asarray(norm - (self.lengthscale * rho) ** 2 / 2.0)
        if self.kind == "matern":
            kappa = self.frequency
            norm = log_gamma_ratio(nu, d) - d * math.log(math.sqrt(math.pi) * kappa)
            return np.asarray(norm - (nu + d / 2.0) * np.log1p((rho / kappa) ** 2))
        # a Gamma mixture of Gaussians
        z = self.rate * rho
        norm = d / 2.0 * math.log(nu * self.lengthscale**2 / (2.0 * math.pi)) - math.lgamma(nu) + math.log(2.0)
        return np.asarray(norm + (nu - d / 2.0) * np.log(z / 2.0) + log_bessel_k(abs(nu - d / 2.0), z))

    def tail_series(self, frequency: float, dimension: int, terms: int) -> Array:
        """Coefficients of k̂/u^{ν+d/2} in powers of u = κ₀²/(κ₀² + ρ²), κ₀ = ``frequency`` (Matérn only)."""
        power = self.number + dimension / 2.0
        norm = log_gamma_ratio(self.number, dimension) - dimension * math.log(math.sqrt(math.pi) * self.frequency)
        # κ² + ρ² = (κ₀² + ρ²)(1 − e u) with e = 1 − κ²/κ₀²
        e = 1.0 - (self.frequency / frequency) ** 2
        j = np.arange(terms)
        scale = math.exp(norm + 2.0 * power * math.log(self.frequency / frequency))
        return np.asarray(scale * scipy.special.poch(power, j) / scipy.special.factorial(j) * e**j)


#: H within one block: weights and radial kernels.
Mixture = Sequence[tuple[float, RadialKernel]]


def spectral_ratio(first: RadialKernel, second: RadialKernel, below: Mixture, dimension: int) -> RadialDensity:
    """``k̂₁ k̂₂ / ĥ`` with ĥ the mixture ``below``."""
    everything = [first, second, *(kernel for _, kernel in below)]
    logs = np.log([weight for weight, _ in below])

    def density(rho: Array) -> Array:
        parts = [log + kernel.log_density(rho, dimension) for log, (_, kernel) in zip(logs, below)]
        above = first.log_density(rho, dimension) + second.log_density(rho, dimension)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(above - np.logaddexp.reduce(parts, axis=0)))

    frequencies = [kernel.frequency for kernel in everything]
    low, high = min(frequencies), max(frequencies)
    mixtures = [kernel.number for kernel in everything if kernel.kind == "rational_quadratic"]
    slow = None
    if first.kind == second.kind == "matern":
        slow = _slow_part(first, second, below, dimension, total_mass(density, dimension, low, high))
    return RadialDensity(
        density,
        dimension,
        low,
        high,
        cusp=bool(mixtures),
        slow=None if slow is None else slow.density,
        slow_function=slow,
        slow_amplitude=0.0 if slow is None else slow.size(),
        # the logarithms of a rational quadratic spectrum are differences of numbers of size α log α
        log_size=64.0 + 16.0 * sum(number * math.log1p(number) for number in mixtures),
    )


def _slow_part(first: RadialKernel, second: RadialKernel, below: Mixture, dimension: int, mass: float) -> MaternSeries:
    """The algebraic tail of ``k̂₁ k̂₂ / ĥ`` as a series of Matérn densities of one frequency.

    The larger that frequency, the smaller the terms of the series; the smaller, the sooner the rest dies out.
    """
    matern = [(weight, kernel) for weight, kernel in below if kernel.kind == "matern"]
    roughest = min(kernel.number for _, kernel in matern)
    base = max(kernel.frequency for kernel in (first, second, *(kernel for _, kernel in matern)))
    tried = []
    for doubling in range(24):
        frequency = base * 2.0**doubling
        under = np.zeros(TERMS)
        for weight, kernel in matern:
            shift = round(kernel.number - roughest)
            under[shift:] += weight * kernel.tail_series(frequency, dimension, TERMS)[: TERMS - shift]
        over = first.tail_series(frequency, dimension, TERMS)
        over = np.convolve(over, second.tail_series(frequency, dimension, TERMS))[:TERMS]
        nu = first.number + second.number - roughest
        tried.append(MaternSeries(frequency, nu, divide_series(over, under), dimension))
        if tried[-1].size() <= MOST_CANCELLATION * mass:
            break
    return min(tried, key=MaternSeries.size)
