"""What a prior claims of rows that are hidden in turn: how well they can be known from the others, at best.

Under a prior the hidden values, given the others, are N(m, C + V). By Anderson's inequality no predictor has smaller
squared errors than m, in distribution. So how likely the errors of m are to be as small as those of a rival bounds how
likely those are, if the prior is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy
import scipy.linalg

from ..arrays import Array, Index
from ..linalg import Whitening, chance_below
from ..models import Prior

#: A period is judged as if each value had an error of this share of the prior's variance: round-off shows no periods.
ROUND_OFF = 1e-8


@dataclass(frozen=True, eq=False)
class HiddenRows:
    """Values ``y`` with errors of variances ``V`` at ``X``, and which of them are ``hidden``, in turn.

    ``all`` are X, y and V of more rows, these among them, that a level is taken from; None where there are no more.
    """

    X: Array
    y: Array
    V: Array
    hidden: tuple[Index, ...]
    all: tuple[Array, Array, Array] | None = None

    def seen(self, *turns: int) -> Index:
        """The rows that are hidden in none of these turns."""
        return np.setdiff1d(np.arange(len(self.y)), np.concatenate([self.hidden[turn] for turn in turns]))

    @cached_property
    def every(self) -> Index:
        """All hidden rows, turn after turn."""
        return np.concatenate(self.hidden)

    def with_errors(self, factor: float) -> HiddenRows:
        """The same rows with errors of ``factor`` times these variances."""
        more = None if self.all is None else (*self.all[:2], factor * self.all[2])
        return replace(self, V=factor * self.V, all=more)

    def error_of_f(self, errors: Array) -> float:
        """The root mean square of ``errors`` in the values of all hidden rows, less what V explains of it."""
        return math.sqrt(max(float(np.mean(errors**2) - np.mean(self.V[self.every])), 0.0))

    @property
    def least_error(self) -> float:
        """An error about f below this cannot be told from V at so many rows."""
        return math.sqrt(float(np.mean(self.V[self.every])) * math.sqrt(2.0 / len(self.every)))


@dataclass(frozen=True, eq=False)
class Claims:
    """What a prior says of the hidden rows, one turn after the other.

    ``means`` are its predictions from the rows that are seen, ``stds`` those of f given these, ``covariance`` that of
    the errors y − mean of all turns, ``densities`` the log density of the values of each turn.
    ``before`` and ``covariance_before`` are the prior's mean at the hidden rows and the covariance of the values
    around it, given nothing.
    """

    rows: HiddenRows
    means: Array
    stds: Array
    covariance: Array
    densities: Array
    before: Array
    covariance_before: Array
    level: Level

    @classmethod
    def of(cls, prior: Prior, rows: HiddenRows) -> Claims:
        """Guarantee: what is said of a turn's rows depends on the values of the others alone."""
        K, mean, every = prior.covariance(rows.X), prior.mean_at(rows.X), rows.every
        A = K + np.diag(rows.V)
        parts, means, densities = [], [], []
        for turn, hidden in enumerate(rows.hidden):
            seen = rows.seen(turn)
            whiten = Whitening.of(A[np.ix_(seen, seen)])
            explained = whiten.apply(K[np.ix_(seen, hidden)])
            # errors are linear in y − mean
            error = np.zeros((len(hidden), len(rows.y)))
            error[:, hidden] = np.eye(len(hidden))
            error[:, seen] = -explained.T @ whiten.apply(np.eye(len(seen)))
            left = error @ (rows.y - mean)
            parts.append(error)
            means.append(rows.y[hidden] - left)
            densities.append(_log_density(A[np.ix_(hidden, hidden)] - explained.T @ explained, left))
        errors = np.vstack(parts)
        covariance = errors @ A @ errors.T
        stds = np.sqrt(np.maximum(np.diag(covariance) - rows.V[every], 0.0))
        # a row that is hidden twice has the same error both times
        same = np.equal.outer(every, every) * rows.V[every]
        around = K[np.ix_(every, every)] + same
        level = Level.of(prior, rows.all or (rows.X, rows.y, rows.V), rows.X[every])
        return cls(rows, np.concatenate(means), stds, covariance, np.array(densities), mean[every], around, level)

    @property
    def claimed(self) -> float:
        """The least error about f that the prior leaves anyone who sees the other rows: root mean square."""
        return float(np.sqrt(np.mean(self.stds**2)))

    @property
    def claimed_before(self) -> float:
        """The same for those who see no rows: the prior's standard deviation."""
        return float(np.sqrt(np.mean(np.diag(self.covariance_before) - self.rows.V[self.rows.every])))

    def chance(self, errors: Array) -> float:
        """How likely it is, at most, that a predictor's squared errors sum to no more than these, if it is right."""
        return chance_below(scipy.linalg.eigvalsh(self.covariance), float(errors @ errors))

    def chance_before(self, errors: Array) -> float:
        """The same for a predictor who sees no rows."""
        return chance_below(scipy.linalg.eigvalsh(self.covariance_before), float(errors @ errors))

    @property
    def spread_shows(self) -> bool:
        """Whether f varies enough, under the prior, to be told from the errors V at the hidden rows."""
        return self.claimed_before**2 >= 3.0 * self.rows.least_error**2


@dataclass(frozen=True)
class Level:
    """The level that makes the rows most likely, by generalised least squares.

    ``chance`` is how likely the prior's mean is to be as near to it as it is; a mean that was learnt from these rows
    is much nearer. ``share`` is how well f at the hidden rows is known around it, as a share of the prior's standard
    deviation, by those who take the level from the rows and know nothing else.
    """

    chance: float
    share: float

    @classmethod
    def of(cls, prior: Prior, rows: tuple[Array, Array, Array], at: Array) -> Level:
        """The level of ``rows`` (X, y and V), and what it tells of f at the inputs ``at``."""
        X, y, V = rows
        whiten = Whitening.of(prior.covariance(X) + np.diag(V))
        ones = whiten.apply(np.ones(len(y)))
        variance = 1.0 / float(ones @ ones)
        level = float(ones @ whiten.apply(y - prior.mean_at(X))) * variance
        covariance = whiten.apply(prior.covariance(X, at)).T @ ones * variance
        own = prior.variance(at)
        known = np.maximum(own - 2.0 * covariance + variance, 0.0)
        chance = float(scipy.stats.chi2(1).cdf(level**2 / variance))
        return cls(chance, float(np.sqrt(known.mean() / own.mean())))


@dataclass(frozen=True)
class Unexpected:
    """The period along a column that a prior expects least, and how likely it was to look so by chance."""

    column: int
    length: float
    chance: float


def unexpected_period(prior: Prior, X: Array, y: Array, V: Array) -> Unexpected | None:
    """The period whose sinusoid is larger than the prior expects by most; None where no column can have one.

    Under the prior the whitened amplitude of each frequency is χ² with 2 degrees; as many frequencies are looked at as
    the rows can tell apart, and the chance is that of any of them.
    """
    total = prior.covariance(X) + np.diag(V)
    total[np.diag_indices(len(y))] += ROUND_OFF * float(np.mean(np.diag(total)))
    whiten = Whitening.of(total)
    white = whiten.apply(y - prior.mean_at(X))
    found: list[tuple[float, int, float]] = []
    for column in range(X.shape[1]):
        x = X[:, column]
        span, distinct = float(np.ptp(x)), len(np.unique(x))
        if distinct < 12:
            continue
        frequencies = np.arange(2.0, distinct / 2.0, 1.0) / span
        angles = 2.0 * np.pi * np.outer(x, frequencies)
        for frequency, sine, cosine in zip(
            frequencies, whiten.apply(np.sin(angles)).T, whiten.apply(np.cos(angles)).T, strict=True
        ):
            wave = np.column_stack([sine, cosine])
            amplitude, own = wave.T @ white, np.linalg.pinv(wave.T @ wave, hermitian=True)
            found.append((float(amplitude @ own @ amplitude), column, 1.0 / float(frequency)))
    if not found:
        return None
    most, column, length = max(found)
    return Unexpected(column, length, min(len(found) * math.exp(-most / 2.0), 1.0))


def _log_density(covariance: Array, errors: Array) -> float:
    whiten = Whitening.of(covariance)
    white = whiten.apply(errors)
    return -0.5 * (float(white @ white) + whiten.log_determinant + whiten.rank * math.log(2.0 * math.pi))
