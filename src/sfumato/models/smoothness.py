"""How smooth f is along one column under a kernel, in numbers that a proof can stand on.

A stationary kernel along a line has a spectral measure, and the standard deviation of the j-th derivative of f is the
root of its 2j-th moment, ``E ω^{2j}``. Moments add up for sums of kernels; those of a product are the moments of a sum
of independent frequencies. A Matérn kernel has finitely many of them: ν = 5/2 two, ν = 3/2 one, ν = 1/2 none.
Linear and polynomial kernels are not stationary, but their functions are polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import numpy as np
from gpytorch.kernels import Kernel

from ..arrays import Array
from ..errors import InputError
from .functionals import Derivative, Value
from .kernel_terms import RADIAL, Leaf, ProductTerm, kernel_terms
from .outputs import OutputsKernel
from .stretch import stretch_derivatives
from .trees import describe_kernel

#: Derivatives up to this order are asked for.
MOST_DERIVATIVES = 10

#: What the kind of the stretch of a kernel ends with (stretch.py).
_STRETCH = "_stretch"


@dataclass(frozen=True, eq=False)
class Part:
    """One independent part of f along a column: a stationary process times a polynomial that is independent of it.

    ``moments`` are the even spectral moments of the process, infinite where it has no such derivative. The polynomial
    is ``Σ_j c_j (x − c)^j`` around any place c of the box; ``coefficients`` are bounds of the norms of the c_j.
    The process is uncorrelated with itself a step δ away by a share of at most ``rough·δ + bend·δ²/2``. ``still`` says
    that nothing depends on where the box is, in any column. The part is a product over columns, but for columns that
    are ``tied`` together. ``kernel`` bounds the derivatives of the process's covariance in δ, for any δ but 0.
    """

    moments: Array
    kernel: Array
    coefficients: tuple[float, ...] = (1.0,)
    rough: float = 0.0
    bend: float = 0.0
    still: bool = True
    tied: tuple[tuple[int, ...], ...] = ()

    @property
    def degree(self) -> int | None:
        """Of the polynomial, where the part is nothing else; None else."""
        return len(self.coefficients) - 1 if np.all(self.moments[1:] == 0.0) else None

    def derivative(self, order: int) -> float:
        """A bound for the standard deviation of the derivative of this order at any place of the box."""
        total = 0.0
        for taken, size in enumerate(self.coefficients[: order + 1]):
            moment = float(self.moments[order - taken])
            if size > 0.0 and moment > 0.0:
                total += math.perm(order, taken) * size * math.sqrt(moment)
        return total

    def step(self, gap: float) -> float:
        """A bound for the standard deviation of f(x) − f(x + δ) for any |δ| ≤ ``gap`` that stays in the box."""
        most, moved = math.sqrt(float(self.moments[0])), 2.0 * gap * (self.rough + self.bend * gap / 2.0)
        lifted = sum(size * gap**power for power, size in enumerate(self.coefficients) if power)
        return most * (math.sqrt(moved) * self.coefficients[0] + lifted)

    def kernel_derivative(self, order: int) -> float:
        """A bound for this derivative in y of the covariance of the part at x and at y, different places of the box."""
        total = 0.0
        for taken, size in enumerate(self.coefficients[: order + 1]):
            bound = float(self.kernel[order - taken])
            if size > 0.0 and bound > 0.0:
                total += math.perm(order, taken) * self.coefficients[0] * size * bound
        return total

    def times(self, other: Part) -> Part:
        """The product with another part that is independent of it."""
        return Part(
            _of_sum(self.moments, other.moments),
            _of_product_rule(self.kernel, other.kernel),
            tuple(np.convolve(self.coefficients, other.coefficients).tolist()),
            self.rough + other.rough,
            self.bend + other.bend,
            self.still and other.still,
            self.tied + other.tied,
        )

    def scaled(self, variance: float) -> Part:
        return replace(self, moments=variance * self.moments, kernel=variance * self.kernel)


@dataclass(frozen=True, eq=False)
class AlongColumn:
    """f along one column, everything else fixed: a sum of parts whose variances, and all others, add up at most.

    ``slope`` is the same for the derivative of f along the column, where that is known.
    """

    parts: tuple[Part, ...]
    slope: tuple[Part, ...] | None = None

    def derivative(self, order: int) -> float:
        """A bound for std(f^(order)) at any place of the box; infinite where f has none."""
        if order > MOST_DERIVATIVES:
            return math.inf
        return math.hypot(*(part.derivative(order) for part in self.parts))

    def kernel_derivative(self, order: int) -> float:
        """A bound for this derivative in y of ``Cov(f(x), f(y))``, at any two different places of the box."""
        return math.inf if order > MOST_DERIVATIVES else sum(part.kernel_derivative(order) for part in self.parts)

    def step(self, gap: float) -> float:
        """A bound for std(f(x) − f(x + δ)), |δ| ≤ ``gap``."""
        return math.hypot(*(part.step(gap) for part in self.parts))

    def step_of_slope(self, gap: float) -> float:
        """The same for the derivative of f."""
        if self.slope is None:
            return math.inf
        return math.hypot(*(part.step(gap) for part in self.slope))

    def is_stationary_but_for(self, degree: int) -> bool:
        """Whether all that depends on where the box is are polynomials of at most this degree."""
        return all(part.still or (part.degree is not None and part.degree <= degree) for part in self.parts)

    def is_product(self, columns: Sequence[int]) -> bool:
        """Whether each part is a product of what depends on one of these columns each."""
        ties = [tie for part in self.parts for tie in part.tied]
        return all(len(set(tie) & set(columns)) < 2 for tie in ties)

    @property
    def is_stationary(self) -> bool:
        return all(part.still for part in self.parts)

    @property
    def variance_degree(self) -> int:
        """The degree of the polynomial that the variance of f is along the line."""
        return 2 * max((len(part.coefficients) - 1 for part in self.parts), default=0)


def along_column(kernel: Kernel, column: int, output: int | None, lower: Array, upper: Array) -> AlongColumn | None:
    """How smooth f is along ``column`` in the box from ``lower`` to ``upper``; None where that is not known.

    ``output`` is the number of the output that f is, where the kernel is one of several.
    """
    line = _Line(column, np.asarray(lower), np.asarray(upper))
    if isinstance(kernel, OutputsKernel):
        parts = None if output is None else _of_output(kernel, output, line)
        slope = None
    else:
        parts, slope = _of_kernel(kernel, None, line), _of_kernel(kernel, column, line)
    if parts is None:
        return None
    return AlongColumn(tuple(parts), None if slope is None else tuple(slope))


@dataclass(frozen=True, eq=False)
class _Line:
    """Along ``column``, in the box from ``lower`` to ``upper``."""

    column: int
    lower: Array
    upper: Array

    @property
    def reach(self) -> Array:
        """How far the box reaches from 0 in each column."""
        return self.reach_from(np.zeros(len(self.lower)))

    def reach_from(self, places: Array) -> Array:
        return np.maximum(np.abs(self.lower - places), np.abs(self.upper - places))


def _of_output(kernel: OutputsKernel, output: int, line: _Line) -> list[Part] | None:
    """An output is a sum over independent terms; of several entries of one term the norms add up."""
    found: list[Part] = []
    for term in kernel.terms:
        own = [(place, functional) for place, (number, functional) in enumerate(term.entries) if number == output]
        for place, functional in own:
            if not isinstance(functional, (Value, Derivative)):
                return None
            by = functional.column if isinstance(functional, Derivative) else None
            parts = _of_kernel(term.kernel, by, line)  # type: ignore[arg-type]
            if parts is None:
                return None
            weight = len(own) * float(np.sum(term.mixing[place] ** 2))
            found += [part.scaled(weight) for part in parts]
    return found


def _of_kernel(kernel: Kernel, by: int | None, line: _Line) -> list[Part] | None:
    """f, or with ``by`` its derivative by that column."""
    found: list[Part] = []
    terms = _terms(kernel, len(line.reach))
    if terms is None:
        return None
    for term in terms:
        if any(len(set(leaf.columns)) < len(leaf.columns) for leaf in term.leaves):
            return None
        parts = _of_product(term, line) if by is None else _derivative_of_product(term, by, line)
        if parts is None:
            return None
        found += [part.scaled(term.weight) for part in parts]
    return found


@lru_cache(maxsize=64)
def _terms(kernel: Kernel, columns: int) -> list[ProductTerm] | None:
    """Those of a prior's own copy of a kernel, which does not change; None where they are too many, or not known."""
    try:
        return kernel_terms(describe_kernel(kernel), range(columns))
    except InputError:
        return None


def _of_product(term: ProductTerm, line: _Line) -> list[Part] | None:
    factors = [_factor(leaf, line) for leaf in term.leaves]
    known = [one for one in factors if one is not None]
    return [_product(known)] if len(known) == len(factors) else None


def _derivative_of_product(term: ProductTerm, by: int, line: _Line) -> list[Part] | None:
    """Leibniz' rule: a part for each factor that depends on ``by``."""
    factors = [_factor(leaf, line) for leaf in term.leaves]
    touched = [place for place, leaf in enumerate(term.leaves) if by in leaf.columns]
    found: list[Part] = []
    for place in touched:
        others = [*factors[:place], _slope(term.leaves[place], by, line), *factors[place + 1 :]]
        known = [one for one in others if one is not None]
        if len(known) < len(others):
            return None
        found.append(_product(known))
    if len(touched) < 2:
        return found
    everything = (tuple(range(len(line.reach))),)
    if not all(term.leaves[place].stationary for place in touched):
        return [replace(part.scaled(len(touched)), tied=everything) for part in found]  # norms add up
    if by != line.column:
        # frequencies in different columns are uncorrelated, by symmetry
        return [replace(part, tied=everything) for part in found]
    # the derivative of one process along its own line; how rough it is follows from norms that add up
    whole = _product([one for one in factors if one is not None])
    sizes = [float(part.moments[0]) for part in found]
    rough = len(found) * sum(size * part.rough for size, part in zip(sizes, found, strict=True)) / sum(sizes)
    bend = len(found) * sum(size * part.bend for size, part in zip(sizes, found, strict=True)) / sum(sizes)
    moments = _raised(whole.moments)
    return [replace(whole, moments=moments, kernel=_spectral(moments), rough=rough, bend=bend, tied=everything)]


def _product(factors: Sequence[Part]) -> Part:
    return reduce(Part.times, factors, _constant())


_ORDERS = np.arange(MOST_DERIVATIVES + 2)
#: The even moments of a standard normal frequency: products of odd numbers.
_NORMAL = np.cumprod(np.append(1.0, 2.0 * _ORDERS[1:] - 1.0))
#: How often even powers come up in an even power of a sum.
_EVEN = np.array([[float(math.comb(2 * n, 2 * k)) for k in _ORDERS] for n in _ORDERS])
#: How often each derivative comes up in one of a product.
_ALL = np.array([[float(math.comb(n, k)) for k in _ORDERS] for n in _ORDERS])


def _constant(variance: float = 1.0) -> Part:
    moments = np.where(_ORDERS == 0, variance, 0.0)
    return Part(moments, moments)


def _spectral(moments: Array) -> Array:
    """Bounds for the derivatives of a covariance: ``E|ω|^j`` is at most the root of ``E ω^{2j}``, times that of E 1."""
    return np.asarray(np.sqrt(moments[0]) * np.sqrt(moments))


def _of_sum(first: Array, second: Array) -> Array:
    """The even moments of a sum of two independent frequencies with symmetric distributions."""
    return _binomial(_EVEN, first, second)


def _of_product_rule(first: Array, second: Array) -> Array:
    """Bounds for the derivatives of a product."""
    return _binomial(_ALL, first, second)


def _binomial(weights: Array, first: Array, second: Array) -> Array:
    """``Σ_k weights[n, k] first[k] second[n − k]`` for each n; what is infinite does not count where it meets 0."""
    total = np.zeros(len(_ORDERS))
    for n in _ORDERS:
        a, b = first[: n + 1], second[n::-1]
        both = (a > 0.0) & (b > 0.0)
        total[n] = np.sum(weights[n, : n + 1][both] * a[both] * b[both])
    return total


def _factor(leaf: Leaf, line: _Line) -> Part | None:
    """One factor of a product along the line; None where it is not known."""
    if leaf.kind in ("linear", "polynomial", "trend"):
        return replace(_constant(), coefficients=_coefficients(leaf, line), still=False, tied=(leaf.columns,))
    if leaf.kind == "cosine" and len(leaf.columns) > 1:
        return None  # it is no covariance in several columns
    moments = _moments(leaf, line.column)
    if moments is None:
        return None
    found = _process(moments, 1.0, leaf, line.column)
    if leaf.kind.startswith("matern") and line.column in leaf.columns:
        scale = leaf.lengthscales[leaf.columns.index(line.column)]
        if leaf.kind == "matern":
            return replace(found, kernel=_matern_derivatives(leaf.numbers[0], scale))
        frequency = math.sqrt(2.0 * leaf.numbers[0]) / scale
        known = stretch_derivatives(leaf.numbers[0], frequency, len(_ORDERS)) if len(leaf.columns) == 1 else math.inf
        return replace(found, kernel=np.broadcast_to(known, len(_ORDERS)))
    return found


def _matern_derivatives(nu: float, lengthscale: float) -> Array:
    """Bounds for the derivatives of a Matérn kernel on either side of 0: polynomials times e^{−z}, largest at z = 0."""
    j = _ORDERS
    if nu == 0.5:
        largest = np.ones(len(j))
    elif nu == 1.5:
        # (1 + z)e^{−z} has the derivatives ±(z + 1 − j)e^{−z}
        largest = np.maximum(np.abs(1.0 - j), 1.0)
    else:
        # (1 + z + z²/3)e^{−z} has ±(z²/3 + (1 − 2j/3)z + 1 − j + j(j − 1)/3)e^{−z}
        largest = np.maximum(np.maximum(np.abs(1.0 - j + j * (j - 1.0) / 3.0), np.abs(1.0 - 2.0 * j / 3.0)), 1.0)
    return np.asarray(largest * (math.sqrt(2.0 * nu) / lengthscale) ** j)


def _slope(leaf: Leaf, by: int, line: _Line) -> Part | None:
    """The derivative of one factor by ``by``, along the line."""
    column = line.column
    if leaf.kind == "linear":
        return _constant(leaf.rows[leaf.columns.index(by)][0])
    if leaf.kind in ("polynomial", "trend"):
        slope = _slope_of_polynomial(leaf, by, line)
        return replace(_constant(), coefficients=slope, still=False, tied=(leaf.columns,))
    own, along = _moments(leaf, by), _moments(leaf, column)
    if own is None or along is None or not np.isfinite(own[1]) or leaf.kind.endswith(_STRETCH):
        return None
    if column == by:
        return _process(_raised(own), 2.0 * math.sqrt(3.0), leaf, column)
    if leaf.kind in RADIAL and column in leaf.columns:
        # frequencies have no preferred direction: E ω₁^{2j} ω₂² = E ω₁^{2j+2}/(2j + 1) for equal lengthscales
        ratio = leaf.lengthscales[leaf.columns.index(column)] / leaf.lengthscales[leaf.columns.index(by)]
        return _process(_raised(along) / (2.0 * _ORDERS + 1.0) * ratio**2, math.sqrt(3.0), leaf, column)
    return _process(own[1] * along, 1.0, leaf, column)


def _process(moments: Array, rough: float, leaf: Leaf, column: int) -> Part:
    """A stationary process. One without a derivative (of Matérn kernels) is so ``rough`` for a lengthscale of 1."""
    stretch = leaf.kind.endswith(_STRETCH)
    tied = (leaf.columns,) if stretch or (leaf.kind in RADIAL and leaf.kind != "rbf") else ()
    if np.isinf(moments[1]):
        scale = leaf.lengthscales[leaf.columns.index(column)]
        # 1 − (1 − z/d)e^{−z} is at most (1 + 1/d)z
        rough = rough + 1.0 / len(leaf.columns) if stretch else rough
        return Part(moments, _spectral(moments), rough=rough / scale, tied=tied)
    return Part(moments, _spectral(moments), bend=float(moments[1] / moments[0]), tied=tied)


def _raised(moments: Array) -> Array:
    """Those of the derivative; the last is not known."""
    return np.append(moments[1:], math.inf)


def _moments(leaf: Leaf, column: int) -> Array | None:
    """The even spectral moments of a stationary kernel along ``column``; None where they are not known."""
    if column not in leaf.columns:
        return _constant().moments
    if leaf.kind.endswith(_STRETCH):
        of_kernel = _moments(replace(leaf, kind=leaf.kind.removesuffix(_STRETCH)), column)
        # the moment of order 2j is proportional to ℓ^{−2j}
        return None if of_kernel is None else of_kernel * (1.0 + 2.0 * _ORDERS / len(leaf.columns))
    row = leaf.rows[leaf.columns.index(column)] if leaf.rows else ()
    if leaf.kind == "rbf":
        return np.asarray(_NORMAL / row[0] ** (2.0 * _ORDERS))
    if leaf.kind == "rational_quadratic":
        # a mixture of RBF kernels: 1/ℓ² has a gamma distribution of mean 1
        rising = np.cumprod(np.append(1.0, 1.0 + _ORDERS[:-1] / leaf.numbers[0]))
        return np.asarray(_NORMAL * rising / row[0] ** (2.0 * _ORDERS))
    if leaf.kind == "matern":
        known = {0.5: (1.0,), 1.5: (1.0, 3.0), 2.5: (1.0, 5.0 / 3.0, 25.0)}[leaf.numbers[0]]
        moments = np.append(known, np.full(len(_ORDERS) - len(known), math.inf))
        return np.asarray(moments / row[0] ** (2.0 * _ORDERS))
    if leaf.kind == "cosine":
        return np.asarray((math.pi / leaf.numbers[0]) ** (2.0 * _ORDERS))
    if leaf.kind == "periodic":
        return _periodic_moments(*row)
    if leaf.kind == "spectral_mixture":
        return _mixture_moments(leaf.numbers, row)
    return None


def _periodic_moments(lengthscale: float, period: float) -> Array:
    """``exp((cos(2πδ/p) − 1)/λ)``: the frequency is 2π/p times the difference of two Poisson numbers of mean 1/(2λ).

    All even cumulants of the difference are 1/λ.
    """
    moments = np.ones(len(_ORDERS))
    for n in _ORDERS[1:]:
        counts = [math.comb(2 * int(n) - 1, 2 * k - 1) for k in range(1, n + 1)]
        moments[n] = np.dot(counts, moments[n - 1 :: -1][:n]) / lengthscale
    return np.asarray(moments * (2.0 * math.pi / period) ** (2.0 * _ORDERS))


def _mixture_moments(weights: Sequence[float], row: Sequence[float]) -> Array:
    """Frequencies are 2π times normal ones around ± a mean, one for each component."""
    total = np.zeros(len(_ORDERS))
    for weight, mean, scale in zip(weights, row[: len(weights)], row[len(weights) :], strict=True):
        waves = np.asarray((2.0 * math.pi * mean) ** (2.0 * _ORDERS), dtype=np.float64)
        total += weight * _of_sum(waves, _NORMAL * (2.0 * math.pi * scale) ** (2.0 * _ORDERS))
    return total


def _coefficients(leaf: Leaf, line: _Line) -> tuple[float, ...]:
    """Bounds of the norms of the coefficients, around any place of the box, of what such a kernel's functions are."""
    column, reach = line.column, line.reach
    if leaf.kind == "linear":
        scales = {c: row[0] for c, row in zip(leaf.columns, leaf.rows, strict=True)}
        size = math.sqrt(sum(scale * reach[c] ** 2 for c, scale in scales.items()))
        return (size, math.sqrt(scales[column])) if column in scales else (size,)
    if leaf.kind == "trend":
        return _of_trend(leaf, line)
    offset, power = leaf.numbers  # sorted by name
    return tuple(np.sqrt(_squares(offset, int(power), leaf.columns, line)).tolist())


def _reach_of_trend(leaf: Leaf, line: _Line) -> dict[int, tuple[float, float]]:
    """The largest |u| in each column of the kernel, and its width."""
    places = np.zeros(len(line.lower))
    places[list(leaf.columns)] = [centre for centre, _ in leaf.rows]
    reach = line.reach_from(places)
    return {c: (float(reach[c] / width), width) for c, (_, width) in zip(leaf.columns, leaf.rows, strict=True)}


def _of_trend(leaf: Leaf, line: _Line) -> tuple[float, ...]:
    """The coefficient of power j is Σ_p g_p (p choose j) u^{p−j} / w^j, g independent; other columns are in j = 0."""
    degree, reach = int(leaf.numbers[0]), _reach_of_trend(leaf, line)
    size = sum(u ** (2 * p) for c, (u, _) in reach.items() for p in range(1, degree + 1) if c != line.column)
    if line.column not in reach:
        return (math.sqrt(size),)
    u, width = reach[line.column]
    squares = [
        sum((math.comb(p, j) * u ** (p - j)) ** 2 for p in range(max(j, 1), degree + 1)) / width ** (2 * j)
        for j in range(degree + 1)
    ]
    return tuple(np.sqrt(np.array(squares) + size * (np.arange(degree + 1) == 0)).tolist())


def _slope_of_polynomial(leaf: Leaf, by: int, line: _Line) -> tuple[float, ...]:
    """The same for its derivative by ``by``."""
    if by == line.column:
        return tuple(order * size for order, size in enumerate(_coefficients(leaf, line)))[1:]
    if leaf.kind == "trend":
        # no column of a trend has a say in another: its derivative is the same all along the line
        u, width, degrees = *_reach_of_trend(leaf, line)[by], np.arange(1, int(leaf.numbers[0]) + 1)
        return (float(np.sqrt(np.sum((degrees * u ** (degrees - 1)) ** 2)) / width),)
    # the derivative of (c + x·y)^p by x_b and y_b is p (c + x·y)^{p−1} + p(p − 1) x_b y_b (c + x·y)^{p−2}
    offset, power = leaf.numbers[0], int(leaf.numbers[1])
    total = power * _squares(offset, power - 1, leaf.columns, line)
    if power > 1:
        less = _squares(offset, power - 2, leaf.columns, line)
        total[: len(less)] += power * (power - 1) * line.reach[by] ** 2 * less
    return tuple(np.sqrt(total).tolist())


def _squares(offset: float, power: int, columns: Sequence[int], line: _Line) -> Array:
    """The squared norms of the coefficients of the functions of (offset + x·y)^power along the line."""
    inner = np.float64(offset + sum(line.reach[c] ** 2 for c in columns))
    if line.column not in columns:
        return np.array([inner**power])
    # (a + b(s + t) + st)^p at x = c + s and y = c + t: the square for s^j is the coefficient of s^j t^j
    slope, found = np.float64(line.reach[line.column]), np.zeros(power + 1)
    for order in range(power + 1):
        for single in range(min(order, power - order) + 1):
            both, rest = order - single, power - order - single
            ways = math.comb(power, both) * math.comb(power - both, single) * math.comb(power - both - single, single)
            found[order] += float(ways) * slope ** (2 * single) * inner**rest
    return found
