"""Points spread evenly over cubes and balls, deterministic: the same call gives the same points.

The sequence is Halton's, with the digits of each base multiplied by a constant so that large bases do not march in
step; additive recurrences leave holes in 2-D projections from 4 columns on. A ``turn`` other than 0 rotates it by a
vector of cube roots, which gives points that no other turn has.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from ..arrays import GOLDEN, Array

_CORNER_COLUMNS = 6


def halton(count: int, dimension: int, turn: int = 0) -> Array:
    """``count`` points of the half-open unit cube."""
    points = np.zeros((count, dimension))
    primes = _first_primes(dimension)
    for column, base in enumerate(primes):
        index, scale = np.arange(1, count + 1), 1.0
        # Any number from 1 to base − 1 permutes the digits of a prime base; the golden one keeps neighbours apart.
        multiplier = max(1, round(base * GOLDEN))
        while index.any():
            scale /= base
            points[:, column] += scale * (index * multiplier % base)
            index //= base
    return np.asarray((points + (turn * np.cbrt(primes)) % 1.0) % 1.0, dtype=np.float64)


def fill_interval(count: int, turn: int = 0) -> Array:
    """An even grid of [0, 1] with both ends; other turns move the grid and keep the ends."""
    if turn == 0:
        return np.arange(max(count, 2)) / (max(count, 2) - 1.0)
    inner = max(count - 2, 1)
    offset = (turn * GOLDEN) % 1.0
    return np.concatenate([[0.0], (np.arange(inner) + offset) / inner, [1.0]])


def fill_cube(count: int, dimension: int, turn: int = 0, corner_copies: int = 1) -> Array:
    """About ``count`` points of the closed unit cube: corners, faces and edges, interior."""
    corners = np.tile(_corners(dimension, count), (corner_copies, 1))
    rest = max(count - corners.shape[0], 1)
    if dimension == 1:
        inner = fill_interval(rest + 2, turn)[1:-1, None]
        return np.concatenate([corners, inner])
    points = halton(rest, dimension + 1, turn)
    _snap_to_faces(points[: count // 4])
    return np.concatenate([corners, points[:, :-1]])


def fill_ball(count: int, dimension: int, turn: int = 0) -> Array:
    """About ``count`` points of the closed unit ball: the centre, the poles, the sphere, the interior."""
    if dimension == 1:
        return 2.0 * fill_interval(count, turn)[:, None] - 1.0
    poles = np.concatenate([np.eye(dimension), -np.eye(dimension)])[: max(count // 2, 2)]
    rest = max(count - poles.shape[0] - 1, 1)
    uniform = halton(rest, dimension + 1, turn)
    normal = ndtri(np.clip(uniform[:, :dimension], 1e-12, 1.0 - 1e-12))
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    direction = normal / np.where(length == 0.0, 1.0, length)
    radius = uniform[:, dimension:] ** (1.0 / dimension)
    radius[: count // 4] = 1.0
    return np.concatenate([np.zeros((1, dimension)), poles, radius * direction])


def deal(choices: int, count: int, dimension: int, turn: int = 0) -> npt.NDArray[np.intp]:
    """Which of ``choices`` goes with each of ``count`` points of a ``dimension``-cube, every one equally often.

    Ranks of one more coordinate of the sequence: unlike ``i mod choices``, they do not resonate with the points.
    """
    coordinate = halton(count, dimension + 1, turn)[:, -1]
    rank = np.empty(count, dtype=np.intp)
    rank[np.argsort(coordinate, kind="stable")] = np.arange(count)
    offset = int(((turn * GOLDEN) % 1.0) * choices)
    return np.asarray((rank * choices // count + offset) % choices, dtype=np.intp)


def _corners(dimension: int, count: int) -> Array:
    columns = min(dimension, _CORNER_COLUMNS)
    index = np.arange(2**columns)
    if index.size > max(count // 2, 2):
        index = index[np.linspace(0, index.size - 1, max(count // 2, 2)).astype(np.intp)]
    bits = (index[:, None] >> np.arange(columns)) & 1
    corners = np.empty((index.size, dimension))
    for column in range(dimension):
        # Beyond six columns the corners are a fraction of all: a column repeats two of the first six, added mod 2.
        first, lap = column % columns, column // columns
        corners[:, column] = bits[:, first] ^ (bits[:, (first + lap) % columns] if lap else 0)
    return corners


def _snap_to_faces(points: Array) -> None:
    """Move each point onto a face or an edge, in place; the last coordinate, spare, says which."""
    dimension = points.shape[1] - 1
    rest, first = np.modf(points[:, -1] * dimension)
    rest, depth = np.modf(rest * (dimension - 1))
    for step in range(dimension - 1):
        rest, side = np.modf(rest * 2.0)
        here = np.flatnonzero(depth >= step)
        points[here, (first[here].astype(np.intp) + step) % dimension] = side[here]


def _first_primes(count: int) -> npt.NDArray[np.int64]:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes if prime * prime <= number):
            primes.append(number)
        number += 1
    return np.array(primes, dtype=np.int64)
