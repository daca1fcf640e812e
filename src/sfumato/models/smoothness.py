"""How smooth f is along one column under a kernel, in numbers that a proof can stand on.

A stationary kernel along a line has a spectral measure, and the standard deviation of the j-th derivative of f is the
root of its 2j-th moment, ``E ω^{2j}``. Moments add up for sums of kernels; those of a product are the moments of a sum
of independent frequencies. A Matérn kernel has finitely many of them: ν = 5/2 two, ν = 3/2 one, ν = 1/2 none.
Linear and polynomial kernels are not stationary, but their functions are polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.special
from gpytorch.kernels import Kernel

from ..arrays import Array
from ..errors import InputError
from .functionals import Derivative, Value
from .kernel_terms import Leaf, ProductTerm, kernel_terms
from .outputs import OutputsKernel
from .trees import describe_kernel

#: Derivatives up to this order are asked for.
MOST_DERIVATIVES = 10

#: Kernels whose functions are polynomials.
POLYNOMIALS = ("linear", "polynomial")


@dataclass(frozen=True, eq=False)
class Part:
    """One independent part of f along a column: a stationary process times a polynomial.

    ``moments`` are the even spectral moments of the process, infinite where it has no such derivative. The polynomial
    is ``Σ_j c_j (x − c)^j`` around any place c of the box; ``coefficients`` are bounds of the norms of the c_j.
    """

    moments: Array
    coefficients: tuple[float, ...] = (1.0,)

    @property
    def degree(self) -> int | None:
        """Of the polynomial, where the part is nothing else; None else."""
        return len(self.coefficients) - 1 if np.all(self.moments[1:] == 0.0) else None

    def derivative(self, order: int, half: float) -> float:
        """A bound for the standard deviation of the derivative of this order, ``half`` around the place c."""
        total = 0.0
        for power, size in enumerate(self.coefficients):
            for taken in range(min(power, order) + 1):
                own = math.comb(order, taken) * math.perm(power, taken) * half ** (power - taken)
                total += size * own * math.sqrt(self.moments[order - taken])
        return total


@dataclass(frozen=True, eq=False)
class AlongColumn:
    """f along one column, everything else fixed: a sum of independent parts."""

    parts: tuple[Part, ...]

    def derivative(self, order: int, half: float) -> float:
        """A bound for std(f^(order)) within ``half`` of any place of the box; infinite where f has none."""
        if order > MOST_DERIVATIVES:
            return math.inf
        return math.sqrt(sum(part.derivative(order, half) ** 2 for part in self.parts))

    def is_stationary_but_for(self, degree: int) -> bool:
        """Whether all that is not stationary is a polynomial of at most this degree."""
        return all(
            len(part.coefficients) == 1 or (part.degree is not None and part.degree <= degree) for part in self.parts
        )

    @property
    def is_stationary(self) -> bool:
        return all(len(part.coefficients) == 1 for part in self.parts)

    @property
    def variance_degree(self) -> int:
        """The degree of the polynomial that the variance of f is along the line."""
        return 2 * max(len(part.coefficients) - 1 for part in self.parts)


def along_column(kernel: Kernel, column: int, output: int | None, lower: Array, upper: Array) -> AlongColumn | None:
    """How smooth f is along ``column`` in the box from ``lower`` to ``upper``; None where that is not known.

    ``output`` is the number of the output that f is, where the kernel is one of several.
    """
    try:
        if isinstance(kernel, OutputsKernel):
            return None if output is None else _along_of_output(kernel, column, output, lower, upper)
        parts = [_part(term, column, None, lower, upper) for term in _terms(kernel, len(lower))]
    except InputError:
        return None
    return AlongColumn(tuple(part for part in parts if part is not None)) if None not in parts else None


def _terms(kernel: Kernel, columns: int) -> list[ProductTerm]:
    return kernel_terms(describe_kernel(kernel), range(columns))


def _along_of_output(kernel: OutputsKernel, column: int, output: int, lower: Array, upper: Array) -> AlongColumn | None:
    """An output is a sum over independent terms; of several entries of one term the norms add up."""
    found: list[Part] = []
    for term in kernel.terms:
        own = [(place, part) for place, (number, part) in enumerate(term.entries) if number == output]
        for place, functional in own:
            if not isinstance(functional, (Value, Derivative)):
                return None
            by = functional.column if isinstance(functional, Derivative) else None
            weight = len(own) * float(np.sum(term.mixing[place] ** 2))
            for one in _terms(term.kernel, len(lower)):
                part = _part(one, column, by, lower, upper)  # type: ignore[arg-type]
                if part is None:
                    return None
                found.append(Part(weight * part.moments, part.coefficients))
    return AlongColumn(tuple(found))


def _part(term: ProductTerm, column: int, by: int | None, lower: Array, upper: Array) -> Part | None:
    """A product of kernels along ``column``; with ``by`` its derivative by that column."""
    if any(len(set(leaf.columns)) < len(leaf.columns) for leaf in term.leaves):
        return None
    stationary = [leaf for leaf in term.leaves if leaf.kind not in POLYNOMIALS]
    others = [leaf for leaf in term.leaves if leaf.kind in POLYNOMIALS]
    along = [_moments(leaf, column) for leaf in stationary]
    if any(one is None for one in along):
        return None
    known: list[Array] = [one for one in along if one is not None]
    coefficients = np.ones(1)
    for leaf in others:
        coefficients = np.convolve(coefficients, _polynomial(leaf, column, lower, upper))
    sizes = tuple(float(size) for size in coefficients)
    if by is None:
        return Part(term.weight * _of_sum(known), sizes)
    if others:
        return None
    moments = np.zeros(MOST_DERIVATIVES + 1)
    for place, leaf in enumerate(stationary):
        mixed = _mixed_moments(leaf, column, by)
        if mixed is None:
            return None
        moments += _of_sum([*known[:place], mixed, *known[place + 1 :]])
    return Part(term.weight * moments)


def _of_sum(moments: Sequence[Array]) -> Array:
    """The even moments of a sum of independent frequencies with symmetric distributions."""
    total = np.zeros(MOST_DERIVATIVES + 1)
    total[0] = 1.0
    for own in moments:
        grown = np.zeros_like(total)
        for order in range(len(total)):
            for taken in range(order + 1):
                if total[taken] > 0 and own[order - taken] > 0:
                    grown[order] += math.comb(2 * order, 2 * taken) * total[taken] * own[order - taken]
        total = grown
    return total


_ORDERS = np.arange(MOST_DERIVATIVES + 2)
#: The even moments of a standard normal frequency.
_NORMAL = scipy.special.factorial2(2 * _ORDERS - 1, exact=False)
_NORMAL[0] = 1.0


def _radial_moments(leaf: Leaf) -> Array | None:
    """E ω^{2j} along any column, for a lengthscale of 1."""
    if leaf.kind == "rbf":
        return np.array(_NORMAL)
    if leaf.kind == "rational_quadratic":
        # a mixture of RBF kernels: a gamma distribution of 1/ℓ² with mean 1
        alpha = leaf.numbers[0]
        rising = scipy.special.gammaln(alpha + _ORDERS) - scipy.special.gammaln(alpha) - _ORDERS * math.log(alpha)
        return np.asarray(_NORMAL * np.exp(rising))
    if leaf.kind == "matern":
        moments = np.full(len(_ORDERS), math.inf)
        known = {0.5: (1.0,), 1.5: (1.0, 3.0), 2.5: (1.0, 5.0 / 3.0, 25.0)}[leaf.numbers[0]]
        moments[: len(known)] = known
        return moments
    return None


def _moments(leaf: Leaf, column: int) -> Array | None:
    """The even spectral moments of a stationary kernel along ``column``; None where they are not known."""
    constant = np.zeros(MOST_DERIVATIVES + 1)
    constant[0] = 1.0
    if column not in leaf.columns:
        return constant
    row = leaf.rows[leaf.columns.index(column)] if leaf.rows else ()
    orders = _ORDERS[:-1]
    radial = _radial_moments(leaf)
    if radial is not None:
        return np.asarray(radial[:-1] / row[0] ** (2.0 * orders))
    if leaf.kind == "cosine":
        return np.asarray((math.pi / leaf.numbers[0]) ** (2.0 * orders)) if len(leaf.columns) == 1 else None
    if leaf.kind == "periodic":
        return _periodic_moments(*row)
    return None


def _periodic_moments(lengthscale: float, period: float) -> Array:
    """``exp(−2 sin²(πδ/p)/λ)`` is a sum of cosines with the weights of Bessel functions."""
    argument = 1.0 / lengthscale
    # beyond these frequencies the weights are below any that matters: they fall faster than a normal density
    count = 40 + int(2.0 * argument + 12.0 * math.sqrt(argument) + 4 * MOST_DERIVATIVES)
    numbers = np.arange(1, count + 1)
    weights = 2.0 * scipy.special.ive(numbers, argument)
    moments = [1.0]
    for order in range(1, MOST_DERIVATIVES + 1):
        moments.append(float(np.sum(weights * (2.0 * math.pi * numbers / period) ** (2.0 * order))) * (1 + 1e-12))
    return np.array(moments)


def _mixed_moments(leaf: Leaf, column: int, by: int) -> Array | None:
    """E ω_column^{2j} ω_by²: for the derivative by ``by`` along ``column``."""
    if by not in leaf.columns:
        return np.zeros(MOST_DERIVATIVES + 1)
    if column == by:
        longer = _moments_and_one(leaf, column)
        return None if longer is None else longer[1:]
    own, radial = _moments(leaf, by), _radial_moments(leaf)
    if own is None:
        return None
    if column not in leaf.columns:
        return np.asarray(own[1] * (_ORDERS[:-1] == 0))
    if radial is None:
        return None
    # frequencies have no preferred direction: E ω₁^{2j} ω₂² = E ω₁^{2j+2}/(2j + 1)
    scales = leaf.lengthscales
    mine, its = scales[leaf.columns.index(column)], scales[leaf.columns.index(by)]
    orders = _ORDERS[:-1]
    return np.asarray(radial[1:] / (2.0 * orders + 1.0) / mine ** (2.0 * orders) / its**2)


def _moments_and_one(leaf: Leaf, column: int) -> Array | None:
    """The moments and one more, unknown (infinite) where only as many are known."""
    radial = _radial_moments(leaf)
    if radial is not None:
        return np.asarray(radial / leaf.lengthscales[leaf.columns.index(column)] ** (2.0 * _ORDERS))
    moments = _moments(leaf, column)
    return None if moments is None else np.append(moments, math.inf)


def _polynomial(leaf: Leaf, column: int, lower: Array, upper: Array) -> Array:
    """Bounds of the norms of the coefficients, around any place of the box, of what such a kernel's functions are."""
    reach = np.maximum(np.abs(lower), np.abs(upper))
    if leaf.kind == "linear":
        scales = {c: row[0] for c, row in zip(leaf.columns, leaf.rows, strict=True)}
        size = math.sqrt(sum(scale * reach[c] ** 2 for c, scale in scales.items()))
        return np.array([size, math.sqrt(scales[column])]) if column in scales else np.array([size])
    offset, power = _polynomial_numbers(leaf)
    inner = offset + sum(reach[c] ** 2 for c in leaf.columns)
    if column not in leaf.columns:
        return np.array([inner ** (power / 2.0)])
    # (a + b(x + y) + xy)^p at x and y from c: the norm of the j-th coefficient is the root of that of x^j y^j
    slope, sizes = float(reach[column]), []
    for order in range(power + 1):
        total = 0.0
        for both in range(order + 1):
            single = order - both
            rest = power - both - 2 * single
            if rest >= 0:
                count = (
                    math.factorial(power) / math.factorial(both) / math.factorial(single) ** 2 / math.factorial(rest)
                )
                total += count * slope ** (2 * single) * inner**rest
        sizes.append(math.sqrt(total))
    return np.array(sizes)


def _polynomial_numbers(leaf: Leaf) -> tuple[float, int]:
    # sorted by name: offset, power
    offset, power = leaf.numbers
    return offset, int(power)
