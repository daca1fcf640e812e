"""Which rows tell most: the insiders that an audit tries are the worst that it finds.

An insider holds the y of some rows. What the release tells them is measured by what they keep: the least
``Var(v|y_H, W) / Var(v|y_H)`` of a sensitive value v that is not among their rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array, Index
from ..linalg import Whitening
from .target import KNOWN, Target

#: A row is known already where less than this share of its variance is left.
_SHOWN = 1e-12


class _Unknown:
    """Covariances of the sensitive values and of y given what is known so far, which ``learn`` adds rows to."""

    def __init__(self, variance: Array, cross: Array, data: Array) -> None:
        self.variance, self.cross, self.data = np.array(variance), np.array(cross), np.array(data)
        self._least = _SHOWN * np.max(np.diag(data))

    def left(self) -> Array:
        """What each row leaves of the variance of each value, once it is known: values × rows."""
        own = np.diag(self.data)
        told = np.where(own > self._least, self.cross**2 / np.maximum(own, self._least), 0.0)
        return np.asarray(self.variance[:, None] - told)

    def learn(self, row: int) -> None:
        own, column, about = self.data[row, row], self.data[:, row].copy(), self.cross[:, row].copy()
        if own > self._least:
            self.variance -= about**2 / own
            self.cross -= np.outer(about, column) / own
            self.data -= np.outer(column, column) / own

    def left_by(self, rows: Index) -> Array:
        """What a group of rows leaves of each value."""
        own = self.data[np.ix_(rows, rows)]
        white = Whitening.of(own + self._least * np.eye(len(rows))).apply(self.cross[:, rows].T)
        return np.asarray(self.variance - np.sum(white**2, axis=0))


def _before_and_after(target: Target) -> tuple[_Unknown, _Unknown]:
    """Without the release, and with it."""
    prior, rows = target.prior, target.rows
    data = prior.covariance(rows)
    data[np.diag_indices_from(data)] += target.own_noise
    cross = prior.covariance(rows, target.inputs) if target.records is None else data[:, target.records]
    before = _Unknown(target.before**2, cross.T, data)
    whiten = Whitening.of(data + target.noise).apply
    white, about = whiten(data), whiten(cross)
    variance = before.variance - np.sum(about**2, axis=0)
    return before, _Unknown(variance, cross.T - about.T @ white, data - white.T @ white)


def worst_rows(target: Target, most: int) -> Index:
    """``most`` rows that tell much together, the worst first: greedily, whoever holds the first k of them."""
    before, after = _before_and_after(target)
    whole, chosen = before.variance.copy(), list[int]()
    for _ in range(min(most, len(target.rows))):
        kept = _kept(before.left(), after.left(), whole[:, None])
        kept[:, chosen] = np.inf
        row = int(np.argmin(np.min(kept, axis=0)))
        chosen.append(row)
        before.learn(row)
        after.learn(row)
    return np.array(chosen, dtype=np.intp)


def worst_group(target: Target, groups: Sequence[Index]) -> int:
    """The number of the group whose rows tell most."""
    before, after = _before_and_after(target)
    whole = before.variance
    least = [np.min(_kept(before.left_by(rows), after.left_by(rows), whole)) for rows in groups]
    return int(np.argmin(least))


def _kept(before: Array, after: Array, whole: Array) -> Array:
    """The share that is kept; infinite where a value was known before."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(before > KNOWN * whole, np.maximum(after, 0.0) / before, np.inf)
