"""Spectral integrals by mpmath, from textbook densities; nothing here imports sfumato."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

Density = Callable[[mp.mpf], mp.mpf]


def rbf(lengthscale: float, d: int, variance: float = 1.0) -> Density:
    ell = mp.mpf(lengthscale)
    return lambda w: variance * (ell**2 / (2 * mp.pi)) ** mp.mpf(d / 2) * mp.exp(-(ell**2) * w**2 / 2)


def matern(nu: float, lengthscale: float, d: int, variance: float = 1.0) -> Density:
    nu, kappa2 = mp.mpf(nu), 2 * mp.mpf(nu) / mp.mpf(lengthscale) ** 2
    half = mp.mpf(d) / 2
    norm = variance * mp.gamma(nu + half) / mp.gamma(nu) / mp.pi**half * kappa2**nu
    return lambda w: norm * (kappa2 + w**2) ** (-nu - half)


def rational_quadratic(alpha: float, lengthscale: float, d: int, variance: float = 1.0) -> Density:
    """(1 + r²/2αℓ²)^{-α} is the mean of RBFs with ℓ²α/s, s ~ Gamma(α): one integral of Gaussian densities."""
    alpha, ell, half = mp.mpf(alpha), mp.mpf(lengthscale), mp.mpf(d) / 2

    def density(w: mp.mpf) -> mp.mpf:
        b = alpha * ell**2 * w**2 / 2
        integral = 2 * b ** ((alpha - half) / 2) * mp.besselk(alpha - half, 2 * mp.sqrt(b))
        return variance * (alpha * ell**2 / (2 * mp.pi)) ** half / mp.gamma(alpha) * integral

    return density


def radial_transform(psi: Density, d: int, r: float, scale: float = 1.0, cut: float = 0.0) -> float:
    """∫ ψ(|ω|) e^{iω·x} dω over ℝᵈ, |x| = r, for d = 1, 2, 3; ``scale`` is where ψ has its mass.

    ``cut`` is where a density that falls off exponentially has ended; without one the oscillating tail is extrapolated.
    """
    with mp.workdps(20):
        if cut:
            area = {1: 2, 2: 2 * mp.pi, 3: 4 * mp.pi}[d]
            wave = {1: mp.cos, 2: lambda z: mp.besselj(0, z), 3: mp.sinc}[d]
            breaks = [0, *(cut / 2**k for k in range(12, -1, -1))]
            return float(area * mp.quad(lambda w: psi(w) * w ** (d - 1) * wave(w * r), breaks, maxdegree=5))
        if r == 0.0:
            area = {1: 2, 2: 2 * mp.pi, 3: 4 * mp.pi}[d]
            breaks = [0, scale / 8, scale, 8 * scale, 64 * scale, mp.inf]
            return float(area * mp.quad(lambda w: psi(w) * w ** (d - 1), breaks))
        r = mp.mpf(r)
        if d == 1:
            return float(2 * mp.quadosc(lambda w: psi(w) * mp.cos(w * r), [0, mp.inf], omega=r))
        if d == 2:
            zeros = lambda n: mp.besseljzero(0, n) / r  # noqa: E731
            return float(2 * mp.pi * mp.quadosc(lambda w: psi(w) * w * mp.besselj(0, w * r), [0, mp.inf], zeros=zeros))
        return float(4 * mp.pi / r * mp.quadosc(lambda w: psi(w) * w * mp.sin(w * r), [0, mp.inf], omega=r))
