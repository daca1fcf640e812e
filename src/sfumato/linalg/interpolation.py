"""Polynomials on boxes: interpolation at Chebyshev nodes, its error, and lower bounds by Bernstein coefficients.

On [−1, 1] the nodes of degree m are ``cos(πj/m)``, both ends among them. On a box they form a grid, and f is
approximated by the polynomial of degree m_i in column i that agrees with it there. A polynomial lies between the least
and the largest of its Bernstein coefficients on a box, and is equal to those at the corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from ..arrays import UNIT, Array, Index

#: Polynomials are looked at in this many times as many places as their degree, to bound them everywhere.
PLACES_A_DEGREE = 64

#: Bounds of them are rounded by less than this share of them.
OF_VALUES = 1e-12

#: Entries of maps to Bernstein coefficients are rounded by less than this many u for each degree, as a share of growth.
MAP_ROUNDED = 16.0


@cache
def interpolation_nodes(degree: int) -> Array:
    """The ``degree`` + 1 nodes on [−1, 1], from left to right; the middle for a constant."""
    if degree == 0:
        return np.zeros(1)
    places = -np.cos(np.pi * np.arange(degree + 1) / degree)
    # symmetric to the last bit, so that neighbouring boxes share their nodes
    return np.asarray((places - places[::-1]) / 2.0)


@cache
def lebesgue(degree: int) -> float:
    """A bound for the largest sum of the absolute weights of an interpolation."""
    if degree < 2:
        return 1.0
    own = interpolation_nodes(degree)
    # between two nodes the sum is a polynomial
    return max(
        _largest(lambda x: np.sum(np.abs(interpolation_weights(degree, x)), axis=1), degree, low, high)
        for low, high in pairwise(own[: degree // 2 + 2])
    )


@cache
def _node_product(degree: int) -> float:
    """A bound for ``Π|x − x_j|`` on [−1, 1]."""
    if degree % 2:
        return 2.0 ** (1 - degree)
    own = interpolation_nodes(degree)
    return _largest(lambda x: np.abs(np.prod(np.subtract.outer(x, own), axis=1)), degree + 1, -1.0, 1.0)


def _largest(of: Callable[[Array], Array], degree: int, low: float, high: float) -> float:
    """A bound for a polynomial on an interval, from its values at some places (Ehlich and Zeller 1964)."""
    count = PLACES_A_DEGREE * degree
    places = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    values = of(low + (high - low) * (places + 1.0) / 2.0)
    return float(np.max(values)) / math.cos(math.pi * degree / (2.0 * count)) * (1.0 + OF_VALUES)


def smooth_error(degree: int, half: float, derivative: float) -> float:
    """How far f is from its interpolation on an interval: ``derivative`` bounds its derivative of degree + 1.

    ``|f − If| ≤ |f^(m+1)|/(m+1)! · Π|x − x_j|``, and the product is at most ``2^{1−m} half^{m+1}`` for these nodes. It
    holds for functions with values in any Hilbert space, so for standard deviations of random functions.
    """
    order = degree + 1
    try:
        return derivative * half**order * _node_product(degree) / math.factorial(order)
    except OverflowError:
        return math.inf


def interpolation_weights(degree: int, places: Array) -> Array:
    """The weights of the nodes (columns) for the polynomial's values at ``places`` (rows)."""
    own = interpolation_nodes(degree)
    signs = np.where(np.arange(degree + 1) % 2 == 0, 1.0, -1.0)
    signs[[0, -1]] *= 0.5
    gaps = np.subtract.outer(np.asarray(places), own)
    at = gaps == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = signs / gaps
        found = shares / np.sum(shares, axis=1, keepdims=True)
    return np.asarray(np.where(np.any(at, axis=1, keepdims=True), at, found), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class BernsteinMaps:
    """Bernstein coefficients on equal parts of [−1, 1], as linear maps of what a polynomial is given by.

    ``maps[part]`` takes the given numbers to the coefficients. ``growth`` is a bound for the sum of absolute entries of
    a row: errors of the numbers are amplified by no more. Entries are wrong by at most ``rounding`` of that.
    """

    maps: Array
    growth: float
    rounding: float

    @property
    def flat(self) -> Array:
        """All parts below each other."""
        return self.maps.reshape(-1, self.maps.shape[-1])


def pairs(degree: int) -> tuple[Index, Index]:
    """The numbers of two nodes, each pair once and the first no larger."""
    first, second = np.triu_indices(degree + 1)
    return np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)


@cache
def quadratic(degree: int, count: int, raised: int) -> BernsteinMaps:
    """For ``Σ c_ij w_i(x) w_j(x)`` over ``pairs``, with the weights w of an interpolation: from c to coefficients.

    They are those of the degree ``raised``, at least 2·degree.
    """
    product, (first, second) = _bernstein_product(degree), pairs(degree)
    signed, absolute = (
        _elevation(2 * degree, raised) @ np.einsum("kij,cpi,cpj->ckp", product, own[:, first], own[:, second])
        for own in _weights(degree, count)
    )
    # a pair of different nodes stands for two entries of a matrix
    growth = float(np.max(absolute @ np.where(first == second, 1.0, 2.0)))
    return BernsteinMaps(signed, growth, MAP_ROUNDED * degree * UNIT)


@cache
def values_to_bernstein(degree: int, count: int, raised: int) -> BernsteinMaps:
    """For a polynomial with given values at nodes: to the coefficients of the degree ``raised`` that it has as well."""
    signed, absolute = (_elevation(degree, raised) @ own.swapaxes(1, 2) for own in _weights(degree, count))
    growth = float(np.max(np.sum(absolute, axis=2)))
    return BernsteinMaps(signed, growth, MAP_ROUNDED * max(degree, 1) * UNIT)


@cache
def _elevation(degree: int, raised: int) -> Array:
    """Coefficients of a polynomial as one of a higher degree: means, so nothing grows."""
    more = raised - degree
    found = np.zeros((raised + 1, degree + 1))
    for k in range(raised + 1):
        for i in range(max(0, k - more), min(degree, k) + 1):
            found[k, i] = math.comb(degree, i) * math.comb(more, k - i) / math.comb(raised, k)
    return found


@cache
def _weights(degree: int, count: int) -> tuple[Array, Array]:
    """The weights of nodes on parts of [−1, 1] in Bernstein coefficients (parts × nodes × coefficients).

    They are products of linear functions, and are multiplied so. With them comes the same of the absolute values of
    the factors' coefficients: round-off is a share of that, two roundings for each factor and two for each sum.
    """
    own = interpolation_nodes(degree)
    ends = -1.0 + 2.0 * np.arange(count + 1) / count
    signed = np.ones((count, degree + 1, 1))
    absolute = np.ones((count, degree + 1, 1))
    for other in range(1, degree + 1):
        # node i is missing from its own product: it takes the last factor's place
        skipped = np.where(np.arange(degree + 1) == other, own[0], own[other])
        skipped = np.where(np.arange(degree + 1) == 0, own[other], skipped)
        low = (ends[:-1, None] - skipped) / (own - skipped)
        high = (ends[1:, None] - skipped) / (own - skipped)
        signed, absolute = _times(signed, low, high), _times(absolute, np.abs(low), np.abs(high))
    return signed, absolute


def _times(coefficients: Array, low: Array, high: Array) -> Array:
    """Bernstein coefficients of the product with linear functions that are ``low`` and ``high`` at the ends."""
    order = coefficients.shape[-1]
    raised = np.zeros((*coefficients.shape[:-1], order + 1))
    rank = np.arange(1, order + 1) / order
    raised[..., :-1] += coefficients * low[..., None] * rank[::-1]
    raised[..., 1:] += coefficients * high[..., None] * rank
    return raised


@cache
def _bernstein_product(degree: int) -> Array:
    """The coefficients of a product (k) from those of its factors (i, j): all of them are positive."""
    found = np.zeros((2 * degree + 1, degree + 1, degree + 1))
    for i in range(degree + 1):
        for j in range(degree + 1):
            found[i + j, i, j] = math.comb(degree, i) * math.comb(degree, j) / math.comb(2 * degree, i + j)
    return found


def halves(coefficients: Array, axis: int) -> tuple[Array, Array]:
    """Bernstein coefficients on the lower and the upper half along ``axis`` (de Casteljau): means, so nothing grows."""
    moved = np.moveaxis(coefficients, axis, 0)
    lower, upper = np.empty_like(moved), np.empty_like(moved)
    current = moved
    last = len(moved) - 1
    for step in range(last + 1):
        lower[step], upper[last - step] = current[0], current[-1]
        current = 0.5 * (current[:-1] + current[1:])
    return np.moveaxis(lower, 0, axis), np.moveaxis(upper, 0, axis)
