"""One group of columns: K and H with densities there, cut into blocks over which the integral is a product.

With ``K = Σ_s a_s Π_b k_{s,b}`` and ``H = Π_b h_b`` over disjoint blocks b of columns,
``k̂²/ĥ = Σ_{s,t} a_s a_t Π_b k̂_{s,b} k̂_{t,b}/ĥ_b``: each pair and block is one inversion. An RBF kernel is a
product over its columns, any other radial kernel is a block. Where H is itself a sum, the columns in which its terms
differ are one block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.linalg
import scipy.special

from ..arrays import Array
from ..errors import InputError
from ..linalg import (
    MaternSeries,
    RadialDensity,
    half_integer_matern,
    invert_radial,
    log_bessel_k,
    log_gamma_ratio,
    total_mass,
)
from .kernel_kinds import KINDS
from .kernel_terms import RELATIVE, Leaf, ProductTerm, fraction

#: Terms of the series that follows an algebraic tail.
TERMS = 10
#: How much larger than g(0) the terms of that series may be: each factor of ten costs a digit.
MOST_CANCELLATION = 1.0e3


@dataclass(frozen=True)
class RadialKernel:
    """A radial kernel of variance one; ``number`` is ν of a Matérn and α of a rational quadratic kernel.

    k̂ is its spectral density: ``k(|x − x′|) = ∫ k̂(ω) e^{iω·(x − x′)} dω`` on ℝᵈ.
    """

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
        slow=slow,
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
        # the power series over / under, term by term
        ratio = scipy.linalg.solve_triangular(scipy.linalg.toeplitz(under, np.zeros(TERMS)), over, lower=True)
        tried.append(MaternSeries(frequency, nu, np.asarray(ratio), dimension))
        if tried[-1].size() <= MOST_CANCELLATION * mass:
            break
    return min(tried, key=MaternSeries.size)


#: A result whose error estimate is larger than this part of g(0) is not handed out.
WORST_ERROR = 1.0e-6


@dataclass(frozen=True, eq=False)
class Values:
    """g at all pairs of rows, a bound for its error at each (0: a closed form), and g(0)."""

    matrix: Array
    error: float
    top: float


def group_gram(K: Sequence[ProductTerm], H: Sequence[ProductTerm], X: Array, names: Sequence[str]) -> Values:
    """The stationary kernel with density k̂²/ĥ at the rows of ``X``, for terms that all act on the same columns."""
    blocks = _blocks(K, H)
    below = [_denominator(H, block, names) for block in blocks]
    above = [[_factor(term, block, names) for block in blocks] for term in K]
    for factors in above:
        for factor, under in zip(factors, below, strict=True):
            _Block(factor, factor, under, names).require_finite()
    # what is common to all terms of H is in the blocks; a single term still has its weight
    scale = 1.0 / H[0].weight if len(H) == 1 else 1.0
    total, error, top = np.zeros((len(X), len(X))), 0.0, 0.0
    for s in range(len(K)):
        for t in range(s, len(K)):
            parts = [_Block(a, b, h, names).values(X) for a, b, h in zip(above[s], above[t], below, strict=True)]
            weight = scale * K[s].weight * K[t].weight * (1.0 if s == t else 2.0)
            product = math.prod(part.top for part in parts)
            total += weight * np.prod([part.matrix for part in parts], axis=0)
            # |g| ≤ g(0) for every positive definite g
            error += weight * (math.prod(part.top + part.error for part in parts) - product)
            top += weight * product
    return Values(total, error, top)


def _blocks(K: Sequence[ProductTerm], H: Sequence[ProductTerm]) -> list[tuple[int, ...]]:
    columns = H[0].columns
    edges = [set(leaf.columns) for term in (*K, *H) for leaf in term.leaves if leaf.kind != "rbf"]
    edges.append({c for c in columns if not all(_at(term, c).equals(_at(H[0], c)) for term in H)})
    blocks = [{c} for c in columns]
    for edge in edges:
        touched = [block for block in blocks if block & edge]
        if touched:
            blocks = [block for block in blocks if not block & edge] + [set().union(*touched)]
    return sorted(tuple(sorted(block)) for block in blocks)


def _at(term: ProductTerm, column: int) -> Leaf:
    leaf = next(leaf for leaf in term.leaves if column in leaf.columns)
    return leaf.on([column]) if leaf.kind == "rbf" else leaf


def _factor(term: ProductTerm, block: tuple[int, ...], names: Sequence[str]) -> Leaf:
    """The factor of ``term`` on the columns of ``block``."""
    for leaf in term.leaves:
        on_block = leaf.on(block) if leaf.kind == "rbf" else leaf
        if on_block.columns == block:
            return on_block
    product = " times ".join(leaf.in_words() for leaf in term.leaves)
    raise InputError(
        f"tolerance: on the columns {_named(block, names)} the prior's kernel and H are not products over the same "
        f"columns (one has {product} as a product there), and no closed form is known for that pair; give H the same "
        "structure as the prior's kernel, or alpha=… (H proportional to the prior's kernel)."
    )


def _denominator(H: Sequence[ProductTerm], block: tuple[int, ...], names: Sequence[str]) -> list[tuple[float, Leaf]]:
    factors = [_factor(term, block, names) for term in H]
    if all(factor.equals(factors[0]) for factor in factors):
        return [(1.0, factors[0])]
    return [(term.weight, factor) for term, factor in zip(H, factors, strict=True)]


class _Block:
    """``k̂₁ k̂₂/ĥ`` on a few columns, in inputs divided by the lengthscales of the first kernel."""

    def __init__(self, first: Leaf, second: Leaf, below: Sequence[tuple[float, Leaf]], names: Sequence[str]) -> None:
        self.columns, self.unit, self.names = first.columns, first.lengthscales, names
        self.dimension = len(self.columns)
        self.leaves = [first, second, *(leaf for _, leaf in below)]
        self.first, self.second = self._radial(first), self._radial(second)
        self.below = [(weight, self._radial(leaf)) for weight, leaf in below]

    def _radial(self, leaf: Leaf) -> RadialKernel:
        ratios = np.array(leaf.lengthscales) / np.array(self.unit)
        if np.ptp(ratios) > RELATIVE * ratios[0]:
            raise InputError(
                f"tolerance: on the columns {_named(self.columns, self.names)} the lengthscales "
                f"{_numbers(leaf.lengthscales)} ({leaf.in_words()}) and {_numbers(self.unit)} are not in one ratio, "
                "and no closed form is known for that pair; give H lengthscales that are one multiple of the prior's "
                "in all these columns, or alpha=… (H proportional to the prior's kernel)."
            )
        return RadialKernel(leaf.kind, leaf.numbers[0] if leaf.numbers else 0.0, float(ratios[0]))

    def require_finite(self) -> None:
        """Raise unless ``∫ k̂₁²/ĥ < ∞``: else no noise keeps the promise at every input of ℝᵈ (MATH.md 4).

        The spectrum of H must not fall off too fast against that of K at high frequencies.
        """
        K, parts, column = self.first, [part for _, part in self.below], self.names[self.columns[0]]
        own, others = self.unit[0], [leaf.lengthscales[0] for leaf in self.leaves[2:]]
        kinds = " plus ".join(dict.fromkeys(KINDS[part.kind].title for part in parts))
        rough = [part.number for part in parts if part.kind == "matern"]
        slow = [(part.rate, i) for i, part in enumerate(parts) if part.kind == "rational_quadratic"]
        remedy = "give a rougher tolerance kernel there, or alpha=… (H proportional to the prior's kernel)"
        if K.kind == "matern" and not rough:
            raise InputError(
                f"tolerance: H is {kinds} in column {column} and the prior's kernel is Matérn {fraction(K.number)}: "
                "the spectrum of H falls off faster than every power, that of the prior does not, so no noise keeps "
                f"the promise at every input; {remedy}."
            )
        if K.kind == "matern" and min(rough) >= 2.0 * K.number:
            raise InputError(
                f"tolerance: in column {column} H has smoothness {fraction(min(rough))}, which must be below twice "
                f"that of the prior's kernel, 2·{fraction(K.number)} = {fraction(2.0 * K.number)}; {remedy}."
            )
        if K.kind == "rational_quadratic" and not rough and not slow:
            raise InputError(
                f"tolerance: H is {kinds} in column {column} and the prior's kernel is rational quadratic: the "
                "spectrum of H falls off like a Gaussian, that of the prior only exponentially, so no noise keeps the "
                f"promise at every input; {remedy}."
            )
        if K.kind == "rational_quadratic" and not rough and min(slow)[0] >= 2.0 * K.rate:
            alpha, other = parts[min(slow)[1]].number, others[min(slow)[1]]
            raise InputError(
                f"tolerance: in column {column} H is rational quadratic with √(2·alpha)·lengthscale = "
                f"√(2·{alpha:.4g})·{other:.6g} = {math.sqrt(2.0 * alpha) * other:.6g}, which must be below twice that "
                f"of the prior's kernel, 2·√(2·{K.number:.4g})·{own:.6g} = "
                f"{2.0 * math.sqrt(2.0 * K.number) * own:.6g}; {remedy}."
            )
        if K.kind == "rbf" and all(part.kind == "rbf" for part in parts):
            shortest = others[min(range(len(parts)), key=lambda i: parts[i].lengthscale)]
            # exactly, as the closed form does
            if Fraction(shortest) ** 2 >= 2 * Fraction(own) ** 2:
                raise InputError(
                    f"tolerance: the lengthscale {shortest:.6g} of H in column {column} is not below √2 times that of "
                    f"the prior's kernel, {own:.6g}·√2 = {own * math.sqrt(2.0):.6g}; give a tolerance kernel with a "
                    "shorter lengthscale there, or alpha=… (H proportional to the prior's kernel)."
                )
        self._require_falling(parts, column)

    def _require_falling(self, parts: Sequence[RadialKernel], column: str) -> None:
        """K itself must fall off fast enough with the distance, which only a rational quadratic one may fail to do.

        Near ρ = 0 its spectrum is like ρ^{min(0, 2α − d)}, all others are finite and positive.
        """
        d = self.dimension

        def power(part: RadialKernel) -> float:
            return min(0.0, 2.0 * part.number - d) if part.kind == "rational_quadratic" else 0.0

        least = min(power(part) for part in parts)
        if 2.0 * power(self.first) - least + d <= 0.0:
            raise InputError(
                f"tolerance: the prior's kernel is rational quadratic with alpha = {self.first.number:.4g} in column "
                f"{column}, so it falls off too slowly with the distance: alpha must be above {(d + least) / 4.0:.4g} "
                f"for this H in {d} dimension(s); give a prior with a larger alpha, a rational quadratic H with a "
                "smaller alpha, or alpha=… (H proportional to the prior's kernel)."
            )

    def values(self, X: Array) -> Values:
        kinds = {kernel.kind for kernel in (self.first, self.second, *(kernel for _, kernel in self.below))}
        if len(self.below) == 1 and kinds == {"rbf"}:
            return self._gaussian(X)
        if len(self.below) == 1 and kinds == {"matern"} and self._one_frequency():
            return self._matern(X)
        return self._numerical(X)

    def _gaussian(self, X: Array) -> Values:
        """One column: ℓ² = ℓ₁² + ℓ₂² − ℓ_H², and ℓ₁ℓ₂/(ℓ_H ℓ) at zero."""
        k1, k2, h = (leaf.lengthscales[0] for leaf in self.leaves)
        # a difference of squares that may be small: exactly
        square = float(Fraction(k1) ** 2 + Fraction(k2) ** 2 - Fraction(h) ** 2)
        top = k1 * k2 / (h * math.sqrt(square) * self.below[0][0])
        unit = k1 / math.sqrt(2.0 * square)
        return Values(top * np.exp(-self._squares(X) * unit**2), 0.0, top)

    def _matern(self, X: Array) -> Values:
        """ν = ν₁ + ν₂ − ν_H at the same κ, and c(ν₁) c(ν₂)/(c(ν_H) c(ν)) at zero."""
        k1, k2, h = self.first, self.second, self.below[0][1]
        nu, d = k1.number + k2.number - h.number, self.dimension
        logs = [log_gamma_ratio(v, d) for v in (k1.number, k2.number, h.number, nu)]
        top = math.exp(logs[0] + logs[1] - logs[2] - logs[3]) / self.below[0][0]
        z = k1.frequency * np.sqrt(self._squares(X))
        return Values(top * half_integer_matern(nu, z), 0.0, top)

    def _one_frequency(self) -> bool:
        frequencies = [kernel.frequency for kernel in (self.first, self.second, self.below[0][1])]
        return bool(np.ptp(frequencies) <= RELATIVE * frequencies[0])

    def _numerical(self, X: Array) -> Values:
        r = np.sqrt(self._squares(X))
        table = invert_radial(spectral_ratio(self.first, self.second, self.below, self.dimension), float(np.max(r)))
        top = float(table(np.zeros(1))[0])
        if not table.error <= WORST_ERROR * top:
            share = table.error / max(top, np.finfo(float).tiny)
            found = f"found only to {share:.1g} of its size, which is not enough to promise anything"
            raise InputError(
                f"tolerance: on the columns {_named(self.columns, self.names)} the spectral integral of this pair of "
                f"kernels was {found if math.isfinite(table.error) else 'too large to compute: so is the noise'}; give "
                "a tolerance kernel that is less smooth against the prior's kernel, or alpha=…."
            )
        return Values(table(r), table.error, top)

    def _squares(self, X: Array) -> Array:
        """|(x − x′)/ℓ|²: differences first, so that equal inputs are at distance zero."""
        squares = np.zeros((len(X), len(X)))
        for column, unit in zip(self.columns, self.unit, strict=True):
            squares += ((X[:, column, None] - X[None, :, column]) / unit) ** 2
        return squares


def _named(columns: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(names[c] for c in columns)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
