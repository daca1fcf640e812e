"""The periods that values show along one column, evenly spaced or not.

A wave is believed where it beats a background that may itself be smooth: under a cubic and a stationary process with
any lengthscale plus white noise, all of them fitted with and without the wave, the likelihood must rise by more than
the best of all frequencies would by chance. A spectrum that is compared with white noise alone would see periods in
every smooth curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import scipy.linalg

from ..arrays import Array

#: The chance, on paper, that one frequency of all that are tried seems a period without being one. Kinds of
#: backgrounds and cycles are tried too, and in practice false alarms come up in about one case of a hundred.
FALSE_ALARMS = 1e-4
#: Fewer turns than these are a bend and not a period, and fewer different places than these show nothing.
LEAST_TURNS, LEAST_PLACES = 4, 16
#: The most rows that are looked at: more of them are thinned to blocks of neighbours.
MOST_ROWS, BLOCK = 320, 32
#: Frequencies are this many times closer than the range can tell apart, and at most so many.
OVERSAMPLED, MOST_FREQUENCIES = 4, 6_000
#: How many peaks of each spectrum are tried.
PEAKS = 3
#: A period has this many harmonics. One within this share of another is the same, a cycle that comes early or late.
HARMONICS, SAME = 4, 0.25
#: How far from a whole number two periods may be for one to be a harmonic of the other, up to the sixth.
WHOLE, MOST_TURNS = 0.15, 6
#: The backgrounds: kinds of processes, so many lengthscales, shares of noise in units of the process's variance.
LENGTHSCALES = 9
#: Cycles: after how many turns they forget their phase, and the background's share in them.
TURNS, SHARES = (1.5, 4.0, 12.0), (0.0, 0.5)
#: How often lengthscales are refined where a wave seems to explain much, unless the kind is this much less likely.
REFINED, NOT_WORTH = 3, 20.0
NOISES = np.geomspace(1e-8, 1e4, 25)
BACKGROUNDS: tuple[Callable[[Array], Array], ...] = (
    lambda r: np.exp(-0.5 * r**2),
    lambda r: np.exp(-r),
    lambda r: (1.0 + math.sqrt(3.0) * r) * np.exp(-math.sqrt(3.0) * r),
    lambda r: (1.0 + math.sqrt(5.0) * r + 5.0 / 3.0 * r**2) * np.exp(-math.sqrt(5.0) * r),
)


def periods_in(t: Any, values: Any, noise: Any = None, most: int = 3) -> tuple[float, ...]:
    """The periods of ``values`` along ``t``, the clearest first, at most so many; none where none is beyond chance.

    ``noise`` is the covariance of noise that the values are known to carry, or its diagonal. A period that is the
    harmonic of another is not listed.

    >>> import numpy as np
    >>> t = np.arange(120) / 12
    >>> wave = t**2 + np.sin(2 * np.pi * t) + 0.3 * np.sin(1e4 * t**2)
    >>> [round(period, 1) for period in periods_in(t, wave)]
    [1.0]
    """
    t, values = np.asarray(t, dtype=np.float64).reshape(-1), np.asarray(values, dtype=np.float64).reshape(-1)
    places = np.unique(t)
    if len(places) < LEAST_PLACES or np.ptp(values) == 0.0:
        return ()
    span, gap = float(np.ptp(places)), float(np.median(np.diff(places)))
    highest = 0.5 / gap
    frequencies = np.arange(LEAST_TURNS / span, highest, 1.0 / (OVERSAMPLED * span))
    if len(frequencies) == 0:
        return ()
    if len(frequencies) > MOST_FREQUENCIES:
        frequencies = np.linspace(frequencies[0], highest, MOST_FREQUENCIES)
    rows = _some_rows(t)
    known = None if noise is None else np.asarray(noise, dtype=np.float64)
    few = known if known is None or known.ndim == 0 else known[rows] if known.ndim == 1 else known[np.ix_(rows, rows)]
    look = _Look(t[rows], values[rows], few)
    # so many frequencies could have been the best one by chance
    needed = math.log(max(span * (highest - frequencies[0]), 1.0) / FALSE_ALARMS)
    basis, found = _powers(t[rows]), list[float]()
    for _ in range(2 * most):
        frequency, gain = look.best(frequencies, basis, needed)
        if gain < needed:
            break
        period = 1.0 / frequency
        waves = _waves(t[rows], frequency, min(HARMONICS, int(highest / frequency) or 1))
        basis = np.column_stack([basis, waves])
        if basis.shape[1] > len(rows) // 3:
            break
        shorter = [old for old in found if old < period and _is_harmonic(old, period)]
        if any(_is_harmonic(period, old) for old in found):
            continue
        found = [old for old in found if old not in shorter] + [period]
    return tuple(_refined(t, values, period, span) for period in found[:most])


def _is_harmonic(period: float, of: float) -> bool:
    """Whether a whole number of these periods fits into ``of``, one included."""
    ratio = of / period
    if abs(ratio - 1.0) <= SAME:
        return True
    return 2 <= round(ratio) <= MOST_TURNS and abs(ratio - round(ratio)) <= WHOLE


def _some_rows(t: Array) -> Any:
    """Blocks of neighbours that tell what happens between rows, spread over the whole range."""
    order = np.argsort(t, kind="stable")
    if len(t) <= MOST_ROWS:
        return order
    blocks = MOST_ROWS // BLOCK
    starts = np.linspace(0, len(t) - BLOCK, blocks).astype(int)
    return order[np.unique((starts[:, None] + np.arange(BLOCK)).ravel())]


def _powers(t: Array) -> Array:
    u = 2.0 * (t - t.min()) / np.ptp(t) - 1.0
    return np.column_stack([np.ones(len(t)), u, u**2, u**3])


def _waves(t: Array, frequency: float, harmonics: int = 1) -> Array:
    angles = 2.0 * np.pi * frequency * (t - t.min())[:, None] * np.arange(1, harmonics + 1)
    return np.column_stack([np.cos(angles), np.sin(angles)])


@dataclass(frozen=True, eq=False)
class _Background:
    """A process that the values may come from, noise apart: its eigenvalues, and what turns rows into its axes."""

    process: Callable[[Array], Array]
    lengthscale: float
    sizes: Array
    turn: Array

    @classmethod
    def of(
        cls, process: Callable[[Array], Array], lengthscale: float, gaps: Array, whiten: Array | None
    ) -> _Background:
        white = process(gaps / lengthscale)
        if whiten is not None:
            white = whiten @ white @ whiten.T
        sizes, vectors = scipy.linalg.eigh(white * (len(gaps) / np.trace(white)), driver="evd", check_finite=False)
        turn = vectors.T if whiten is None else vectors.T @ whiten
        return cls(process, lengthscale, np.maximum(sizes, 0.0), turn)


def _cycle(turns: float, background: Callable[[Array], Array], ratio: float, share: float) -> Callable[[Array], Array]:
    """A wave that forgets its phase after so many ``turns``, on a background; gaps are in periods.

    ``ratio`` is the period over the lengthscale of the background, and ``share`` the background's part.
    """

    def values(r: Array) -> Array:
        return np.asarray((1.0 - share) * np.exp(-r / turns) * np.cos(2.0 * np.pi * r) + share * background(r * ratio))

    return values


@dataclass(frozen=True, eq=False)
class _Fit:
    """The log likelihood under a background, and the variances along its axes."""

    level: float
    background: _Background
    variances: Array


class _Look:
    """Values along t, and the backgrounds that they are compared with."""

    def __init__(self, t: Array, values: Array, noise: Array | None) -> None:
        self.t, self.values, self.gaps = t, values, np.abs(t[:, None] - t)
        self.whiten = None
        if noise is not None:
            full = np.diag(np.broadcast_to(noise, len(t))) if noise.ndim < 2 else noise
            lower = scipy.linalg.cholesky(full + 1e-10 * np.trace(full) / len(t) * np.eye(len(t)), lower=True)
            self.whiten = scipy.linalg.solve_triangular(lower, np.eye(len(t)), lower=True)
        self.plain = np.eye(len(t)) if self.whiten is None else self.whiten
        places = np.unique(t)
        shortest = float(np.median(np.diff(places)))
        lengthscales = np.geomspace(shortest, max(float(np.ptp(places)) / 2.0, 2.0 * shortest), LENGTHSCALES)
        self.step = float(lengthscales[1] / lengthscales[0])
        self.backgrounds = [self._background(process, ell) for process in BACKGROUNDS for ell in lengthscales.tolist()]

    def _background(self, process: Callable[[Array], Array], lengthscale: float) -> _Background:
        return _Background.of(process, lengthscale, self.gaps, self.whiten)

    def best(self, frequencies: Array, basis: Array, needed: float) -> tuple[float, float]:
        """The frequency whose wave explains most beyond ``basis``, and by how much the log likelihood rises."""
        without = self._most_likely(basis)
        plain = self._peaks(frequencies, basis, np.ones(len(self.t)), self.plain)
        tried = sorted({*plain, *self._peaks(frequencies, basis, without.variances, without.background.turn)})
        levels = [self._most_likely(np.column_stack([basis, _waves(self.t, f)])).level for f in tried]
        place = int(np.argmax(levels))
        gain = levels[place] - without.level
        if gain < needed:
            cycles = [self._cycles(frequency, without.background, basis) for frequency in tried]
            place = int(np.argmax([cycle.level for cycle in cycles]))
            gain = cycles[place].level - without.level
        if gain > needed:
            # a background between those that were tried may do as well without the wave
            self._refine(basis, without)
            gain += without.level - self._most_likely(basis).level
        return tried[place], gain

    def _cycles(self, frequency: float, background: _Background, basis: Array) -> _Fit:
        """The best cycle of this frequency, on the background or without it."""
        ratio = 1.0 / (frequency * background.lengthscale)
        shapes = [_cycle(turns, background.process, ratio, share) for turns in TURNS for share in SHARES]
        found = [self._background(shape, 1.0 / frequency) for shape in shapes]
        return max((self._fit(one, basis) for one in found), key=lambda fit: fit.level)

    def _refine(self, basis: Array, near: _Fit) -> None:
        """Add backgrounds around the best ones of each kind."""
        for process in BACKGROUNDS:
            own = [one for one in self.backgrounds if one.process is process]
            fits = [self._fit(one, basis) for one in own]
            best = max(fits, key=lambda fit: fit.level)
            if best.level < near.level - NOT_WORTH:
                continue
            step = self.step
            for _ in range(REFINED):
                step = math.sqrt(step)
                known = np.log([one.lengthscale for one in own])
                lengthscales = [best.background.lengthscale * by for by in (1.0 / step, step)]
                fresh = [ell for ell in lengthscales if np.min(np.abs(known - math.log(ell))) > 0.5 * math.log(step)]
                around = [self._background(process, ell) for ell in fresh]
                self.backgrounds += around
                own += around
                best = max([best, *(self._fit(one, basis) for one in around)], key=lambda fit: fit.level)

    def _most_likely(self, basis: Array) -> _Fit:
        """The best background, with ``basis`` in the mean."""
        return max((self._fit(one, basis) for one in self.backgrounds), key=lambda fit: fit.level)

    def _fit(self, background: _Background, basis: Array) -> _Fit:
        n, H, y = len(self.values), background.turn @ basis, background.turn @ self.values
        totals = background.sizes + NOISES[:, None]
        weighted = H.T[None] / totals[:, None, :]
        normal, right = weighted @ H, weighted @ y
        normal = normal + 1e-12 * np.trace(normal, axis1=1, axis2=2)[:, None, None] * np.eye(H.shape[1])
        fitted = np.linalg.solve(normal, right[..., None])[..., 0]
        rss = np.sum((y - fitted @ H.T) ** 2 / totals, axis=1)
        levels = -0.5 * (n * np.log(np.maximum(rss, 1e-300) / n) + np.log(totals).sum(axis=1))
        place = int(np.argmax(levels))
        return _Fit(float(levels[place]), background, totals[place])

    def _peaks(self, frequencies: Array, basis: Array, variances: Array, turn: Array) -> list[float]:
        """The frequencies with the largest drop of the squares by a wave, under a background."""
        root = np.sqrt(variances)[:, None]
        Q, _ = np.linalg.qr(turn @ basis / root)
        y = (turn @ self.values) / root[:, 0]
        y = y - Q @ (Q.T @ y)
        angles = 2.0 * np.pi * np.outer(self.t - self.t.min(), frequencies)
        c, s = (turn @ wave / root for wave in (np.cos(angles), np.sin(angles)))
        c, s = c - Q @ (Q.T @ c), s - Q @ (Q.T @ s)
        cc, ss, cs = (np.einsum("ij,ij->j", a, b) for a, b in ((c, c), (s, s), (c, s)))
        cy, sy = c.T @ y, s.T @ y
        determinant = cc * ss - cs**2
        fine = determinant > 1e-9 * np.maximum(cc * ss, 1e-300)
        drop = np.where(fine, (ss * cy**2 - 2.0 * cs * cy * sy + cc * sy**2) / np.where(fine, determinant, 1.0), 0.0)
        inner = np.pad(drop, 1)
        tops = np.flatnonzero((inner[1:-1] >= inner[:-2]) & (inner[1:-1] >= inner[2:]))
        return [float(frequencies[top]) for top in tops[np.argsort(drop[tops])[::-1][:PEAKS]]]


def _refined(t: Array, values: Array, period: float, span: float) -> float:
    """The period nearby that leaves the least squares of all rows, with its harmonics."""
    powers = _powers(t)

    def left(frequency: float) -> float:
        basis = np.column_stack([powers, _waves(t, frequency, 2)])
        return float(np.sum((values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]) ** 2))

    frequency = 1.0 / period
    bounds = (frequency - 0.5 / span, frequency + 0.5 / span)
    return float(1.0 / scipy.optimize.minimize_scalar(left, bounds=bounds, method="bounded").x)
