"""The integral that turns a radial spectral density into the function that has it.

In d dimensions ``g(r) = ∫ ψ(|ω|) e^{iω·x} dω = |S^{d-1}| ∫ ψ(ρ) ρ^{d-1} Λ_d(ρr) dρ`` with r = |x|,
``Λ_d(z) = Γ(d/2) (2/z)^{d/2-1} J_{d/2-1}(z)``: a cosine for d = 1, a Bessel function for d = 2, sin z/z for d = 3. It
is computed by Gauss–Legendre rules on intervals that are short against what ψ does there and against the oscillation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special

from ..inputs import Array

#: Points of the rule on each interval, and of the finer one that it is compared with.
POINTS, FINER = 16, 23
#: The longest phase ρr on one interval.
PHASE = 6.0
MOST_INTERVALS = 3000
#: Products of what is larger may overflow.
HUGE = 1.0e150
#: Frequencies that are left out have less of the mass than this.
NEGLIGIBLE = 1.0e-18
#: At distances r ≥ a the spectrum may be faded out by ½ erfc((ρ − c)/δ − 8), δ = STEEP/a. What is taken away is smooth
#: over lengths of SMOOTH/a, so its transform is below e^{-40} there: far distances need no more points than near ones.
STEEP, FADE, FADED, SMOOTH = 16.0, 8.0, 15.0, 60.0


@dataclass(frozen=True, eq=False)
class RadialDensity:
    """A spectral density ψ(ρ) and what is known of it.

    ``low`` and ``high`` are its least and its largest natural frequency. ``cusp`` says that it is not smooth at ρ = 0.
    ``slow`` is what an algebraic tail follows, ``slow_function`` the function whose density that is, and
    ``slow_amplitude`` the sum of the sizes of its terms. ``log_size`` bounds the logarithms that ψ is computed from: it
    is exact to that many units of round-off.
    """

    density: Callable[[Array], Array]
    dimension: int
    low: float
    high: float
    cusp: bool = False
    slow: Callable[[Array], Array] | None = None
    slow_function: Callable[[Array], Array] | None = None
    slow_amplitude: float = 0.0
    log_size: float = 64.0

    def quick(self, rho: Array) -> Array:
        """ψ without its slow part: what is left for the quadrature."""
        psi = self.density(rho)
        return psi if self.slow is None else psi - self.slow(rho)


class RadialIntegral:
    """``r ↦ g(r)``: the quick part by quadrature, the slow part in closed form.

    ``cut`` is the largest frequency that counts, ``missing`` the mass that is left out, ``round_off`` the rest of what
    the comparison of two rules cannot see, and ``finite`` says whether float64 can hold g comfortably.
    """

    def __init__(self, psi: RadialDensity) -> None:
        self.psi = psi
        self.sphere = sphere(psi.dimension)
        self.least = psi.low * (1.0e-40 if psi.cusp else 0.25)
        rho = np.geomspace(self.least, highest(psi.high, psi.dimension), 6000)
        step = self.sphere * math.log(rho[1] / rho[0])
        with np.errstate(over="ignore", invalid="ignore"):
            whole = step * psi.density(rho) * rho**psi.dimension
            quick = step * np.abs(psi.quick(rho)) * rho**psi.dimension
        noise = psi.log_size * np.finfo(float).eps
        # a difference of two equal numbers is round-off: it says nothing of where the quick part ends
        seen = quick > np.maximum(NEGLIGIBLE * np.sum(whole), 8.0 * noise * whole)
        end = int(np.flatnonzero(seen)[-1]) + 1 if np.any(seen) else 1
        self.cut = float(rho[min(end, len(rho) - 1)])
        self.mass = float(np.sum(whole))
        self.atom, doubt = self._atom() if psi.cusp else (0.0, 0.0)
        self.missing = float(np.sum(quick[end:])) + doubt
        self.round_off = noise * float(np.sum(whole) + np.sum(quick) + psi.slow_amplitude)
        self.finite = self.round_off < HUGE
        self.edges = self._edges(noise) if self.finite else np.array([0.0, self.cut])

    def _atom(self) -> tuple[float, float]:
        """The mass below the least frequency, where ψ is a power of ρ, and how far that is in doubt."""
        rho = self.least * np.array([1.0, 4.0, 16.0])
        mass = self.sphere * self.psi.quick(rho) * rho**self.psi.dimension
        if np.min(np.abs(mass)) < 1.0e-200:
            return 0.0, 0.0
        slopes = np.diff(np.log(np.abs(mass))) / math.log(4.0)
        atom = float(mass[0] / slopes[0])
        return atom, abs(atom * (slopes[1] - slopes[0]) / slopes[0])

    def _edges(self, noise: float) -> Array:
        """Ends of intervals on each of which ψ is a polynomial of low degree, to round-off: octaves, cut in two."""
        octaves = max(1, math.ceil(math.log2(self.cut / self.least)))
        first = self.least if self.psi.cusp else 0.0
        ends = self.cut * 2.0 ** -np.arange(octaves, -1.0, -1.0)
        ends = np.concatenate([[first], ends[ends > first]])
        x, _ = np.polynomial.legendre.leggauss(POINTS)
        expand = np.linalg.inv(np.polynomial.legendre.legvander(x, POINTS - 1))
        low, high = ends[:-1], ends[1:]
        done: list[float] = []
        while len(low):
            half, middle = (high - low) / 2.0, (high + low) / 2.0
            rho = middle[:, None] + half[:, None] * x
            factor = self.sphere * rho ** (self.psi.dimension - 1) * half[:, None]
            rest = np.max(np.abs((self.psi.quick(rho) * factor) @ expand.T)[:, -3:], axis=1)
            local = np.max(self.psi.density(rho) * factor, axis=1)
            rough = (rest > 1.0e-16 * self.mass) & (rest > 4.0 * noise * local)
            if len(low) + len(done) > MOST_INTERVALS:
                rough[:] = False
            done += low[~rough].tolist()
            low, high, middle = low[rough], high[rough], middle[rough]
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        return np.array([*sorted(done), self.cut])

    def __call__(self, r: Array, nearest: float, points: int = POINTS) -> Array:
        """g at ``r``, none of which is below ``nearest``."""
        start, width = self._fade(nearest)
        rho, weights = self._rule(min(self.cut, start + FADED * width), float(np.max(r)), points)
        masses = self.sphere * weights * self.psi.quick(rho) * rho ** (self.psi.dimension - 1)
        if width < math.inf:
            masses *= scipy.special.erfc((rho - start) / width - FADE) / 2.0
        total = np.full(r.shape, self.atom)
        for first in range(0, len(rho), 1 << 16):
            part = slice(first, first + (1 << 16))
            total += oscillation(self.psi.dimension, np.outer(r, rho[part])) @ masses[part]
        return total if self.psi.slow_function is None else np.asarray(total + self.psi.slow_function(r))

    def _fade(self, nearest: float) -> tuple[float, float]:
        """Where the spectrum may start to fade out for distances of at least ``nearest``, and how steeply."""
        if nearest > 0.0:
            width = STEEP / nearest
            short = np.flatnonzero((np.diff(self.edges) * nearest < SMOOTH) & (self.edges[:-1] > FADE * width))
            start = float(self.edges[short[-1] + 1]) if short.size else 0.0
            if 2.0 * (start + FADED * width) < self.cut:
                return start, width
        return self.cut, math.inf

    def _rule(self, cut: float, r: float, points: int) -> tuple[Array, Array]:
        """Points and weights up to ``cut`` that integrate oscillations up to the distance ``r``."""
        edges = np.append(self.edges[self.edges < cut], cut)
        pieces = np.maximum(1, np.ceil(np.diff(edges) * r / PHASE)).astype(int)
        fine = [np.linspace(a, b, k + 1)[:-1] for a, b, k in zip(edges[:-1], edges[1:], pieces)]
        ends = np.concatenate([*fine, edges[-1:]])
        x, w = np.polynomial.legendre.leggauss(points)
        half, middle = np.diff(ends) / 2.0, (ends[1:] + ends[:-1]) / 2.0
        return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def sphere(dimension: int) -> float:
    """|S^{d-1}|, the area of the unit sphere of directions."""
    return float(2.0 * math.pi ** (dimension / 2.0) / math.gamma(dimension / 2.0))


def highest(frequency: float, dimension: int) -> float:
    """A frequency far above ``frequency``, whose d-th power is still a number."""
    return float(frequency * 10.0 ** min(9.0, 200.0 / dimension))


def total_mass(density: Callable[[Array], Array], dimension: int, low: float, high: float) -> float:
    """g(0) to a few per cent."""
    rho = np.geomspace(1.0e-3 * low, highest(high, dimension), 2000)
    return float(sphere(dimension) * math.log(rho[1] / rho[0]) * np.sum(density(rho) * rho**dimension))


def oscillation(dimension: int, z: Array) -> Array:
    """Λ_d(z), the average of e^{iz e·s} over the unit sphere of directions s.

    >>> import numpy as np
    >>> [float(oscillation(d, np.array([np.pi]))[0].round(6)) for d in (1, 2, 3)]
    [-1.0, -0.304242, 0.0]
    """
    if dimension == 1:
        return np.cos(z)
    if dimension == 2:
        return np.asarray(scipy.special.j0(z))
    if dimension == 3:
        return np.sinc(z / np.pi)
    d = float(dimension)
    small = z < 1.0e-2
    safe = np.where(small, 1.0, z)
    large = math.gamma(d / 2.0) * (2.0 / safe) ** (d / 2.0 - 1.0) * scipy.special.jv(d / 2.0 - 1.0, safe)
    return np.asarray(np.where(small, 1.0 - z**2 / (2.0 * d) * (1.0 - z**2 / (4.0 * (d + 2.0))), large))
