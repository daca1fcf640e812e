"""From a radial spectral density to a table of the function that has it, with an estimate of the error."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from ..inputs import Array
from .radial_quadrature import FINER, PHASE, RadialDensity, RadialIntegral

DEGREE = 24
#: A piece of the table is cut in two until it is this close to the function, relative to g(0), or there are many.
CLOSE = 2.0e-14
MOST_PIECES = 200


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
    close = max(CLOSE * integral.mass, integral.round_off)
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
