"""From a radial spectral density to a table of the function that has it, with an estimate of the error.

In d dimensions ``g(r) = ∫ ψ(|ω|) e^{iω·x} dω = |S^{d-1}| ∫ ψ(ρ) ρ^{d-1} Λ_d(ρr) dρ`` with r = |x|,
``Λ_d(z) = Γ(d/2) (2/z)^{d/2-1} J_{d/2-1}(z)``: a cosine for d = 1, a Bessel function for d = 2, sin z/z for d = 3. It
is computed by Gauss–Legendre rules on intervals that are short against what ψ does there and against the oscillation.

The Matérn function of smoothness ν and frequency κ = √(2ν)/ℓ, one at zero, has the spectral density
``c(ν) π^{-d/2} κ^{2ν} (κ² + ρ²)^{-ν-d/2}`` with ``c(ν) = Γ(ν + d/2)/Γ(ν)``. With ``u = κ²/(κ² + ρ²)`` the powers
``u^{ν+j+d/2}``, j = 0, 1, …, are therefore the spectra of Matérn functions with one κ: a density with an algebraic
tail is a power series in u, and its slow part needs no quadrature.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special

from ..arrays import UNIT, Array

#: Below it K_ν(z) is Γ(ν)(2/z)^ν/2 to round-off, if it is large at all.
SMALLEST_ARGUMENT = 1.0e-8


def log_bessel_k(order: float, z: Array) -> Array:
    """log K_ν(z) for ν = ``order`` ≥ 0 and z > 0, also where K_ν(z) itself would overflow or vanish.

    >>> import numpy as np
    >>> log_bessel_k(0.5, np.array([1.0])).round(6)
    array([-0.774209])
    """
    with np.errstate(over="ignore"):
        scaled = scipy.special.kve(order, z)
    good = np.isfinite(scaled) & (scaled > 0.0)
    result = np.log(np.where(good, scaled, 1.0)) - z
    small = ~good & (z < SMALLEST_ARGUMENT)
    result[small] = scipy.special.gammaln(order) + order * np.log(2.0 / z[small]) - np.log(2.0)
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


#: Points of the rule on each interval, and of the finer one that it is compared with.
POINTS, FINER = 16, 23
#: The longest phase ρr on one interval.
PHASE = 6.0
#: No more intervals than these are cut.
MOST_INTERVALS = 3000
#: Products of what is larger may overflow.
HUGE = 1.0e150
#: Frequencies that are left out have less of the mass than this.
NEGLIGIBLE = 1.0e-18
#: At distances r ≥ a the spectrum may be faded out by ½ erfc((ρ − c)/δ − 8), δ = FADE_WIDTH/a. What is taken away is
#: smooth over lengths of SMOOTH_LENGTH/a, so its transform is below e^{-40} there: far distances need no more points
#: than near ones.
FADE_WIDTH, FADE_START, FADE_END, SMOOTH_LENGTH = 16.0, 8.0, 15.0, 60.0


@dataclass(frozen=True, eq=False)
class RadialDensity:
    """A spectral density ψ(ρ) and what is known of it.

    ``low`` and ``high`` are its least and its largest natural frequency. ``cusp`` says that it is not smooth at ρ = 0.
    ``slow`` is what an algebraic tail follows. ``log_size`` bounds the logarithms that ψ is computed from: it is exact
    to that many units of round-off.
    """

    density: Callable[[Array], Array]
    dimension: int
    low: float
    high: float
    cusp: bool = False
    slow: MaternSeries | None = None
    log_size: float = 64.0

    def quick(self, rho: Array) -> Array:
        """ψ without its slow part: what is left for the quadrature."""
        psi = self.density(rho)
        return psi if self.slow is None else psi - self.slow.density(rho)


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
        noise = psi.log_size * UNIT
        # a difference of two equal numbers is round-off: it says nothing of where the quick part ends
        seen = quick > np.maximum(NEGLIGIBLE * np.sum(whole), 8.0 * noise * whole)
        end = int(np.flatnonzero(seen)[-1]) + 1 if np.any(seen) else 1
        self.cut = float(rho[min(end, len(rho) - 1)])
        self.mass = float(np.sum(whole))
        self.atom, doubt = self._atom() if psi.cusp else (0.0, 0.0)
        self.missing = float(np.sum(quick[end:])) + doubt
        self.round_off = noise * float(np.sum(whole) + np.sum(quick) + (0.0 if psi.slow is None else psi.slow.size()))
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
        rho, weights = self._rule(min(self.cut, start + FADE_END * width), float(np.max(r)), points)
        masses = self.sphere * weights * self.psi.quick(rho) * rho ** (self.psi.dimension - 1)
        if width < math.inf:
            masses *= scipy.special.erfc((rho - start) / width - FADE_START) / 2.0
        total = np.full(r.shape, self.atom)
        for first in range(0, len(rho), 1 << 16):
            part = slice(first, first + (1 << 16))
            total += oscillation(self.psi.dimension, np.outer(r, rho[part])) @ masses[part]
        return total if self.psi.slow is None else np.asarray(total + self.psi.slow(r))

    def _fade(self, nearest: float) -> tuple[float, float]:
        """Where the spectrum may start to fade out for distances of at least ``nearest``, and how steeply."""
        if nearest > 0.0:
            width = FADE_WIDTH / nearest
            short = np.flatnonzero(
                (np.diff(self.edges) * nearest < SMOOTH_LENGTH) & (self.edges[:-1] > FADE_START * width)
            )
            start = float(self.edges[short[-1] + 1]) if short.size else 0.0
            if 2.0 * (start + FADE_END * width) < self.cut:
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
    return np.asarray(scipy.special.hyp0f1(dimension / 2.0, -(z**2) / 4.0))


#: The degree of the Chebyshev polynomials on each piece of a table.
DEGREE = 24
#: A piece of the table is cut in two until it is this close to the function, relative to g(0), or there are many.
TABLE_ERROR, MOST_PIECES = 2.0e-14, 200


@dataclass(frozen=True, eq=False)
class RadialTable:
    """g on [0, reach]: Chebyshev coefficients on the pieces between ``knots``; ``error`` estimates the worst error."""

    knots: Array
    coefficients: Array
    error: float

    def __call__(self, r: Array) -> Array:
        flat = np.asarray(r, dtype=np.float64).ravel()
        values = np.zeros_like(flat)
        piece = np.clip(np.searchsorted(self.knots, flat, side="right") - 1, 0, len(self.knots) - 2)
        order = np.argsort(piece, kind="stable")
        ends = np.searchsorted(piece[order], np.arange(len(self.knots)))
        for k in range(len(self.knots) - 1):
            chosen = order[ends[k] : ends[k + 1]]
            low, high = self.knots[k], self.knots[k + 1]
            t = (2.0 * flat[chosen] - low - high) / (high - low)
            values[chosen] = np.polynomial.chebyshev.chebval(t, self.coefficients[k])
        return values.reshape(np.shape(r))


def invert_radial(psi: RadialDensity, reach: float) -> RadialTable:
    """g on [0, ``reach``]; where g is too large for float64 its error is infinite."""
    integral = RadialIntegral(psi)
    longest = max(reach, 1.0e-6 / psi.high)
    if not integral.finite:
        return RadialTable(np.array([0.0, longest]), np.zeros((1, 1)), math.inf)
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    between = np.cos(np.pi * np.array([0.02, 0.27, 0.51, 0.74, 0.98]))
    close = max(TABLE_ERROR * integral.mass, integral.round_off)
    # a piece that starts out too long could have the whole function between two of its nodes
    octaves = max(0, math.ceil(math.log2(longest * integral.cut / PHASE)))
    ends = [0.0, *(longest * 2.0**-k for k in range(octaves, -1, -1))]
    todo = list(itertools.pairwise(ends))[::-1]
    pieces: list[tuple[float, Array]] = []
    error = 0.0
    while todo:
        low, high = todo.pop()
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        values = integral(middle + half * nodes, low)
        coefficients = np.asarray(np.polynomial.chebyshev.chebfit(nodes, values, DEGREE), dtype=np.float64)
        # the comparison sees the finer rule, so it measures quadrature and interpolation together
        gap = np.polynomial.chebyshev.chebval(between, coefficients) - integral(middle + half * between, low, FINER)
        worst = float(np.max(np.abs(gap)))
        if worst > close and len(pieces) + len(todo) < MOST_PIECES:
            todo += [(middle, high), (low, middle)]
            continue
        pieces.append((low, coefficients))
        error = max(error, worst)
    knots = np.array([low for low, _ in pieces] + [longest])
    total = 4.0 * error + integral.missing + integral.round_off
    return RadialTable(knots, np.array([c for _, c in pieces]), total)
