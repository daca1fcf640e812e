"""Polynomials on boxes: interpolation at Chebyshev nodes, its error, and lower bounds by Bernstein coefficients.

On [−1, 1] the nodes of degree m are ``cos(πj/m)``, both ends among them. On a box they form a grid, and f is
approximated by the polynomial of degree m_i in column i that agrees with it there. A polynomial lies between the least
and the largest of its Bernstein coefficients on a box, and is equal to those at the corners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..arrays import Array


@cache
def interpolation_nodes(degree: int) -> Array:
    """The ``degree`` + 1 nodes on [−1, 1], from left to right."""
    places = -np.cos(np.pi * np.arange(degree + 1) / degree)
    # symmetric to the last bit, so that neighbouring boxes share their nodes
    return np.asarray((places - places[::-1]) / 2.0)


def lebesgue(degree: int) -> float:
    """A bound for the largest sum of the absolute weights of an interpolation (Ehlich and Zeller 1966)."""
    return 1.0 if degree == 1 else 1.0 + 2.0 / math.pi * math.log(degree)


def smooth_error(degree: int, half: float, derivative: float) -> float:
    """How far f is from its interpolation on an interval: ``derivative`` bounds its derivative of degree + 1.

    ``|f − If| ≤ |f^(m+1)|/(m+1)! · Π|x − x_j|``, and the product is at most ``2^{1−m} half^{m+1}`` for these nodes. It
    holds for functions with values in any Hilbert space, so for standard deviations of random functions.
    """
    order = degree + 1
    return derivative * half**order * 2.0 ** (1 - degree) / math.factorial(order)


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
class Quadratic:
    """Bernstein coefficients on ``count`` equal parts of [−1, 1] of ``w(x)ᵀ C w(x)``, as linear maps of C.

    ``maps[part]`` takes the entries of C, (degree + 1)², to the 2·degree + 1 coefficients. ``growth`` is the largest
    sum of absolute entries of a row: errors of C are amplified by no more.
    """

    degree: int
    count: int
    maps: Array
    growth: float


@cache
def quadratic(degree: int, count: int) -> Quadratic:
    """The maps for interpolations of this degree and this many parts of [−1, 1]."""
    most = 2 * degree
    inner = interpolation_nodes(most)
    to_bernstein = _inverse(_bernstein(most, (inner + 1.0) / 2.0))
    parts = []
    for part in range(count):
        places = -1.0 + (2.0 * part + 1.0 + inner) / count
        w = interpolation_weights(degree, places)
        values = w[:, :, None] * w[:, None, :]
        parts.append(to_bernstein @ values.reshape(most + 1, -1))
    maps = np.stack(parts)
    return Quadratic(degree, count, maps, float(np.max(np.sum(np.abs(maps), axis=2))))


@cache
def values_to_bernstein(degree: int, count: int) -> Array:
    """The same for a polynomial of degree 2·``degree`` from its values at the nodes of that degree."""
    most = 2 * degree
    inner = interpolation_nodes(most)
    to_bernstein = _inverse(_bernstein(most, (inner + 1.0) / 2.0))
    places = [-1.0 + (2.0 * part + 1.0 + inner) / count for part in range(count)]
    return np.stack([to_bernstein @ interpolation_weights(most, part) for part in places])


def _bernstein(degree: int, places: Array) -> Array:
    """The Bernstein polynomials of this degree (columns) at ``places`` of [0, 1] (rows)."""
    numbers = np.arange(degree + 1)
    counts = np.array([math.comb(degree, k) for k in numbers], dtype=np.float64)
    return np.asarray(counts * places[:, None] ** numbers * (1.0 - places[:, None]) ** (degree - numbers))


def _inverse(matrix: Array) -> Array:
    """The inverse, refined in the longest floats there are until its residual is round-off (Newton)."""
    exact = matrix.astype(np.longdouble)
    found = np.linalg.inv(matrix).astype(np.longdouble)
    for _ in range(2):
        found = found + found @ (np.eye(len(matrix)) - exact @ found)
    return np.asarray(found, dtype=np.float64)


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
