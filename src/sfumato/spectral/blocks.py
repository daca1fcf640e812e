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

from ..errors import InputError
from ..inputs import Array
from .criterion import require_finite
from .densities import RadialKernel, spectral_ratio
from .kernel_terms import RELATIVE, Leaf, Term
from .matern_series import half_integer_matern, log_gamma_ratio
from .radial_inversion import invert_radial

#: A result whose error estimate is larger than this part of g(0) is not handed out.
WORST_ERROR = 1.0e-6


@dataclass(frozen=True, eq=False)
class Values:
    """g at all pairs of rows, a bound for its error at each, g(0), and how it was found."""

    matrix: Array
    error: float
    top: float
    how: str


def group_gram(K: Sequence[Term], H: Sequence[Term], X: Array, names: Sequence[str]) -> Values:
    """The stationary kernel with density k̂²/ĥ at the rows of ``X``, for terms that all act on the same columns."""
    blocks = _blocks(K, H)
    below = [_denominator(H, block, names) for block in blocks]
    above = [[_factor(term, block, names) for block in blocks] for term in K]
    for factors in above:
        for factor, under in zip(factors, below, strict=True):
            _Block(factor, factor, under, names).require_finite()
    # what is common to all terms of H is in the blocks; a single term still has its weight
    scale = 1.0 / H[0].weight if len(H) == 1 else 1.0
    total, error, top, ways = np.zeros((len(X), len(X))), 0.0, 0.0, []
    for s in range(len(K)):
        for t in range(s, len(K)):
            parts = [_Block(a, b, h, names).values(X) for a, b, h in zip(above[s], above[t], below, strict=True)]
            weight = scale * K[s].weight * K[t].weight * (1.0 if s == t else 2.0)
            product = math.prod(part.top for part in parts)
            total += weight * np.prod([part.matrix for part in parts], axis=0)
            # |g| ≤ g(0) for every positive definite g
            error += weight * (math.prod(part.top + part.error for part in parts) - product)
            top += weight * product
            ways += [part.how for part in parts]
    return Values(total, error, top, " and ".join(dict.fromkeys(ways)))


def _blocks(K: Sequence[Term], H: Sequence[Term]) -> list[tuple[int, ...]]:
    columns = H[0].columns
    edges = [set(leaf.columns) for term in (*K, *H) for leaf in term.leaves if leaf.kind != "rbf"]
    edges.append({c for c in columns if not all(_at(term, c).equals(_at(H[0], c)) for term in H)})
    blocks = [{c} for c in columns]
    for edge in edges:
        touched = [block for block in blocks if block & edge]
        if touched:
            blocks = [block for block in blocks if not block & edge] + [set().union(*touched)]
    return sorted(tuple(sorted(block)) for block in blocks)


def _at(term: Term, column: int) -> Leaf:
    leaf = next(leaf for leaf in term.leaves if column in leaf.columns)
    return leaf.on([column]) if leaf.kind == "rbf" else leaf


def _factor(term: Term, block: tuple[int, ...], names: Sequence[str]) -> Leaf:
    """The factor of ``term`` on the columns of ``block``."""
    for leaf in term.leaves:
        on_block = leaf.on(block) if leaf.kind == "rbf" else leaf
        if on_block.columns == block:
            return on_block
    raise InputError(
        f"tolerance: on the columns {_listed(block, names)} the prior's kernel and H are not products over the same "
        f"columns (one has {_listed_kinds(term)} as a product there), and no closed form is known for that pair; give "
        "H the same structure as the prior's kernel, or alpha=… (H proportional to the prior's kernel)."
    )


def _denominator(H: Sequence[Term], block: tuple[int, ...], names: Sequence[str]) -> list[tuple[float, Leaf]]:
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
                f"tolerance: on the columns {_listed(self.columns, self.names)} the lengthscales "
                f"{_numbers(leaf.lengthscales)} ({leaf.in_words()}) and {_numbers(self.unit)} are not in one ratio, "
                "and no closed form is known for that pair; give H lengthscales that are one multiple of the prior's "
                "in all these columns, or alpha=… (H proportional to the prior's kernel)."
            )
        return RadialKernel(leaf.kind, leaf.numbers[0] if leaf.numbers else 0.0, float(ratios[0]))

    def require_finite(self) -> None:
        """Raise unless ``∫ k̂₁²/ĥ < ∞``."""
        others = [leaf.lengthscales[0] for leaf in self.leaves[2:]]
        column = self.names[self.columns[0]]
        require_finite(self.first, self.below, self.dimension, column, self.unit[0], others)

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
        return Values(top * np.exp(-self._squares(X) * unit**2), 0.0, top, "Gaussian closed form")

    def _matern(self, X: Array) -> Values:
        """ν = ν₁ + ν₂ − ν_H at the same κ, and c(ν₁) c(ν₂)/(c(ν_H) c(ν)) at zero."""
        k1, k2, h = self.first, self.second, self.below[0][1]
        nu, d = k1.number + k2.number - h.number, self.dimension
        logs = [log_gamma_ratio(v, d) for v in (k1.number, k2.number, h.number, nu)]
        top = math.exp(logs[0] + logs[1] - logs[2] - logs[3]) / self.below[0][0]
        z = k1.frequency * np.sqrt(self._squares(X))
        return Values(top * half_integer_matern(nu, z), 0.0, top, "Matérn closed form")

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
                f"tolerance: on the columns {_listed(self.columns, self.names)} the spectral integral of this pair of "
                f"kernels was {found if math.isfinite(table.error) else 'too large to compute: so is the noise'}; give "
                "a tolerance kernel that is less smooth against the prior's kernel, or alpha=…."
            )
        return Values(table(r), table.error, top, f"numerical inversion in {self.dimension} dimension(s)")

    def _squares(self, X: Array) -> Array:
        """|(x − x′)/ℓ|²: differences first, so that equal inputs are at distance zero."""
        squares = np.zeros((len(X), len(X)))
        for column, unit in zip(self.columns, self.unit, strict=True):
            squares += ((X[:, column, None] - X[None, :, column]) / unit) ** 2
        return squares


def _listed(columns: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(names[c] for c in columns)


def _listed_kinds(term: Term) -> str:
    return " times ".join(leaf.in_words() for leaf in term.leaves)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
