"""What a reader knows, from the textbook: covariances of what is sensitive and of what was published, and no more.

Everything is computed in float64 or in 50 digits, from the published numbers alone. Nothing here imports sfumato.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .arithmetic import Array, Tree, cholesky, kernel, numbers, root, solve_lower

#: The finest step that outputs are rounded to is at least 2⁻³⁰ of the prior's standard deviation (docs/roundoff.md);
#: rounding adds step²/12 to a variance.
ROUNDED = 2.0**-30 / 12**0.5


class Process(ABC):
    """f, or several outputs: a covariance between rows."""

    @abstractmethod
    def covariance(self, A: Array, B: Array, exact: bool) -> Array: ...

    def variance(self, A: Array, exact: bool) -> Array:
        if not len(A):
            return numbers(np.zeros(0), exact)
        if not exact:
            return np.diag(self.covariance(A, A, False))
        return np.array([self.covariance(A[i : i + 1], A[i : i + 1], True)[0, 0] for i in range(len(A))])


@dataclass(frozen=True)
class One(Process):
    """One output, by the tree of its kernel."""

    tree: Tree

    def covariance(self, A: Array, B: Array, exact: bool) -> Array:
        return kernel(self.tree, A, B, exact)


@dataclass(frozen=True)
class Mixed(Process):
    """Several outputs with Cov(f_i(x), f_j(x′)) = B[i, j] k(x, x′); the last column of a row is the output's number."""

    tree: Tree
    B: Array

    def covariance(self, A: Array, B: Array, exact: bool) -> Array:
        first, second = (np.asarray(rows)[:, -1].astype(int) for rows in (A, B))
        return numbers(self.B, exact)[np.ix_(first, second)] * kernel(self.tree, A[:, :-1], B[:, :-1], exact)


@dataclass(frozen=True)
class WithSlope(Process):
    """f (output 0) with an RBF kernel over one column, and its derivative (output 1)."""

    lengthscale: float
    spread: float

    def covariance(self, A: Array, B: Array, exact: bool) -> Array:
        tree = {"kind": "scale", "variance": self.spread, "kernel": {"kind": "rbf", "lengthscale": self.lengthscale}}
        k, scale = kernel(tree, A[:, :1], B[:, :1], exact), numbers(np.array(self.lengthscale), exact)[()]
        u = (numbers(A[:, :1], exact) - numbers(B[:, :1], exact).T) / scale
        left, right = (np.asarray(rows)[:, -1] == 1 for rows in (A, B))
        k = np.where(left[:, None] & right, k * (1 - u * u) / scale / scale, k)
        k = np.where(left[:, None] & ~right, -k * u / scale, k)
        return np.where(~left[:, None] & right, k * u / scale, k)


@dataclass(frozen=True)
class Values:
    """What is sensitive: f at ``places``, or the record of the measurement with this number (−1: f)."""

    places: Array
    measurements: Array

    def __len__(self) -> int:
        return len(self.places)


def values_at(S: Array, X: Array, rows: Array) -> Values:
    """f at ``S``, and then the records of ``rows`` of X."""
    return Values(np.vstack([S, X[rows]]), np.concatenate([np.full(len(S), -1), np.asarray(rows, dtype=int)]))


@dataclass(frozen=True)
class Tolerated:
    """What may be learnt: of all of it a fraction ``alpha``, all but ``floor``, a ``tree`` of a kernel or a matrix.

    ``records``: readers may learn the function, and the promise is about what is each record's own.
    """

    alpha: float | None = None
    floor: float | None = None
    tree: Tree | None = None
    matrix: Array | None = None
    points: Array | None = None
    records: bool = False

    def shares(self, function: Array, own: Array) -> tuple[Array, Array]:
        """The shares of the function's part and of its own part that may be learnt of values with these variances."""
        ones = np.ones(len(function))
        exact = function.dtype == object
        if self.alpha is not None:
            alpha = numbers(np.array(self.alpha), exact)[()]
            return (ones * 1 if self.records else ones * alpha), ones * alpha
        kept = numbers(np.array(self.floor), exact)[()] ** 2
        of_function = np.array([max(1 - kept / f, f * 0) for f in function])
        whole = np.array([max(1 - kept / (f + v), f * 0) for f, v in zip(function, own)])
        if not self.records:
            return of_function, whole
        # as much as can be is kept of the record's own part, at most nine tenths while the function has room
        tenth = 1 - numbers(np.array(0.9), exact)[()]
        of_own = np.array([max(1 - kept / v, min(tenth, w)) if v > 0 else w for v, w in zip(own, whole)])
        rest = np.array([max(kept - (1 - s) * v, v * 0) for s, v in zip(of_own, own)])
        return np.array([min(max(1 - r / f, f * 0), 1 + f * 0) for r, f in zip(rest, function)]), of_own

    def delta(self, covariance: Array, function: Array, own: Array, places: Array) -> Array:
        """Δ for values with this ``covariance``; ``function`` and ``own`` are their variances before anything."""
        exact = covariance.dtype == object
        if self.alpha is not None and not self.records:
            return covariance * numbers(np.array(self.alpha), exact)[()]
        if self.alpha is not None or self.floor is not None:
            of_function, of_own = self.shares(function, own)
            roots = root(of_function)
            return roots[:, None] * (covariance - np.diag(own)) * roots + np.diag(of_own * own)
        if self.tree is not None:
            allowed = kernel(self.tree, places, places, exact)
        else:
            listed = [row.tobytes() for row in np.ascontiguousarray(self.points)]
            found = [listed.index(row.tobytes()) for row in np.ascontiguousarray(places)]
            allowed = numbers(self.matrix, exact)[np.ix_(found, found)]
        of_own = np.array([v * min(d / f, 1 + f * 0) for v, d, f in zip(own, np.diag(allowed), function)])
        return allowed + np.diag(of_own)

    def kept(self, function: Array, own: Array, places: Array) -> Array:
        """The variance that a reader must keep of each value."""
        exact = function.dtype == object
        if self.alpha is not None:
            return (1 - numbers(np.array(self.alpha), exact)[()]) * (own if self.records else function + own)
        if self.floor is not None:
            return np.ones(len(function)) * numbers(np.array(self.floor), exact)[()] ** 2
        if not len(places):
            return own
        return function + own - np.diag(self.delta(np.diag(function + own), function, own, places))


@dataclass(frozen=True)
class Reader:
    """Who has seen values at the rows ``X`` with ``noise`` (a matrix), and believes ``process`` and ``errors``.

    Row i shows the measurement ``shows[i]``, whose error has the variance ``errors[shows[i]]``; what is sensitive may
    be such a measurement.
    """

    process: Process
    X: Array
    errors: Array
    shows: Array
    noise: Array
    exact: bool

    @cached_property
    def lower(self) -> Array:
        """L with M = L Lᵀ."""
        return cholesky(self.seen)

    @cached_property
    def seen(self) -> Array:
        """M."""
        same = self.shows[:, None] == self.shows
        return self.process.covariance(self.X, self.X, self.exact) + same * self.errors[self.shows] + self.noise

    def own(self, values: Values) -> Array:
        nothing = numbers(np.zeros(1), self.exact)[0]
        return np.array([self.errors[m] if m >= 0 else nothing for m in values.measurements])

    def function(self, values: Values) -> Array:
        return self.process.variance(values.places, self.exact)

    def cross(self, values: Values) -> Array:
        """Cov(W, values)."""
        shown = self.shows[:, None] == values.measurements
        return self.process.covariance(self.X, values.places, self.exact) + shown * self.own(values)

    def covariance(self, values: Values) -> Array:
        return self.process.covariance(values.places, values.places, self.exact) + np.diag(self.own(values))

    def told(self, values: Values) -> Array:
        """What is explained of the values' covariance."""
        solved = solve_lower(self.lower, self.cross(values))
        return solved.T.dot(solved)

    def left(self, values: Values) -> Array:
        """The variances that the reader keeps."""
        solved = solve_lower(self.lower, self.cross(values))
        return self.function(values) + self.own(values) - (solved * solved).sum(axis=0)

    def floor_ratios(self, values: Values, tolerated: Tolerated) -> Array:
        """std/floor of each value, in float64 at last; infinite where nothing is promised."""
        if not len(values):
            return np.zeros(0)
        kept = tolerated.kept(self.function(values), self.own(values), values.places)
        left = self.left(values)
        return np.array([float(root(max(a, 0 * a) / k)) if k > 0 else np.inf for a, k in zip(left, kept)])

    def joint(self, values: Values, tolerated: Tolerated) -> tuple[Array, Array]:
        """What is told of the values and what may be: the promise is that the first is below the second."""
        covariance, own = self.covariance(values), self.own(values)
        return self.told(values), tolerated.delta(covariance, self.function(values), own, values.places)

    def predicted(self, values: Values, outputs: Array, mean: float) -> tuple[Array, Array]:
        """The mean, where the prior's is ``mean``, and the standard deviation."""
        solved, before = solve_lower(self.lower, self.cross(values)), numbers(np.array(mean), self.exact)[()]
        white = solve_lower(self.lower, numbers(np.asarray(outputs)[:, None], self.exact) - before)
        left = self.left(values)
        means = solved.T.dot(white)[:, 0] + before
        return means.astype(float), np.sqrt(np.maximum(left.astype(float), 0.0))


def insider_ratio_above(reader: Reader, held: Any, values: Values, tolerated: Tolerated, joint: bool) -> float:
    """The most that who holds the true values of the rows ``held`` is told, as a share of what they may be."""
    from .arithmetic import largest_ratio

    rows = np.asarray(held, dtype=int)
    n, k = len(reader.X), len(rows)
    data = reader.seen - reader.noise
    both = np.empty((k + n, k + n), dtype=reader.seen.dtype)
    both[:k, :k], both[:k, k:] = data[np.ix_(rows, rows)], data[rows]
    both[k:, :k], both[k:, k:] = data[:, rows], reader.seen
    # what is published is rounded: without that, who holds two rows with the same noise would learn its last bits
    typical = np.trace(data) / n
    for i in range(k, k + n):
        both[i, i] += typical * ROUNDED**2
    cross = reader.cross(values)
    before = solve_lower(cholesky(both[:k, :k]), cross[rows])
    after = solve_lower(cholesky(both), np.vstack([cross[rows], cross]))
    whole = reader.covariance(values)
    left = whole - before.T.dot(before)
    # nothing can be promised of what the rows themselves determine, nor of the rows
    known = np.array([float(a / b) <= 1.01e-8 for a, b in zip(np.diag(left), np.diag(whole))], dtype=bool)
    unknown = np.flatnonzero(~(known | np.isin(values.measurements, rows)))
    if not len(unknown):
        return 0.0
    told = (after.T.dot(after) - before.T.dot(before))[np.ix_(unknown, unknown)]
    some = Values(values.places[unknown], values.measurements[unknown])
    allowed = tolerated.delta(left[np.ix_(unknown, unknown)], reader.function(some), reader.own(some), some.places)
    if joint:
        return largest_ratio(told, allowed)
    return max(float(a / b) for a, b in zip(np.diag(told), np.diag(allowed)))
