"""How far the hyper-parameters of a fitted prior can be off: ranges in which the rows stay nearly as likely.

Three factors are looked at: one for all lengthscales, one for the variance and one for the noise, those of a
``PriorFamily``. The range of one of them ends where the log likelihood, the other two and the trend fitted again, has
fallen by a given number: a profile likelihood. For each factor of the lengthscales one eigendecomposition gives the
likelihood at all variances and noises, of which only the ratio matters to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
import scipy.linalg

from ..arrays import Array
from .below import has_lengthscales, stretched
from .prior import Prior, PriorFamily

#: Ranges end at these factors where the rows do not end them before.
MOST_LENGTHSCALE, MOST_OTHERS = 10.0, 100.0
#: Lengthscales are looked at in these steps, other factors in those; ends are found to within this share.
LENGTHSCALE_STEPS, STEPS, CLOSE = 25, 161, 0.005
#: Noise below this share of the variance cannot be told from none.
LEAST_NOISE = 1e-10
#: The logarithms of the noise's factor over the variance's at which the likelihood is computed.
RATIOS = np.linspace(-math.log(1e6), math.log(1e6), 121)


@dataclass(frozen=True)
class Spread:
    """Ranges of factors, and what ended at a limit without being ended by the rows."""

    lengthscale: tuple[float, float]
    variance: tuple[float, float]
    noise: tuple[float, float]
    unbounded: tuple[str, ...]

    def of(self, prior: Prior) -> PriorFamily:
        return prior.family(self.lengthscale, self.variance, self.noise)

    def in_words(self, drop: float) -> str:
        ranges = {"all lengthscales": self.lengthscale, "the variance": self.variance, "the noise": self.noise}
        said = [f"{what} × {low:g} to {high:g}" for what, (low, high) in ranges.items() if (low, high) != (1.0, 1.0)]
        limits = f" The rows do not end the range of {' and '.join(self.unbounded)}." if self.unbounded else ""
        return (
            f"spread: the log likelihood falls by less than {drop:g}, the others fitted again, with "
            f"{', '.join(said)}.{limits}"
        )


@dataclass(frozen=True, eq=False)
class _Stretched:
    """The likelihood of the rows with all lengthscales times a factor, for any variance and noise."""

    rows: int
    log_determinant: Callable[[Array], Array]
    log_squares: Callable[[Array], Array]

    @classmethod
    def of(cls, covariance: Array, noise: Array, features: Array, y: Array) -> _Stretched:
        root = np.sqrt(noise)
        sizes, vectors = scipy.linalg.eigh(covariance / np.outer(root, root))
        sizes = np.maximum(sizes, 0.0)
        H, r = vectors.T @ (features / root[:, None]), vectors.T @ (y / root)
        determinants, squares = [], []
        for ratio in np.exp(RATIOS):
            weight = 1.0 / np.sqrt(sizes + ratio)
            left = weight * r
            if H.shape[1]:
                basis, _ = np.linalg.qr(H * weight[:, None])
                left = left - basis @ (basis.T @ left)
            determinants.append(np.log(sizes + ratio).sum())
            squares.append(math.log(max(float(left @ left), 1e-300)))
        return cls(len(y), _spline(determinants), _spline(squares))

    def level(self, variance: Array, noise: Array) -> Array:
        """The log likelihood, but for a constant, at logarithms of factors."""
        ratio = np.clip(noise - variance, RATIOS[0], RATIOS[-1])
        squares = np.exp(self.log_squares(ratio) - variance)
        return np.asarray(-0.5 * (self.rows * variance + self.log_determinant(ratio) + squares))


def _spline(values: list[float]) -> Callable[[Array], Array]:
    found: Callable[[Array], Array] = scipy.interpolate.CubicSpline(RATIOS, values)
    return found


class _Rows:
    """Rows that a prior was fitted to, and the likelihoods at factors that were asked for."""

    def __init__(self, prior: Prior, X: Array, y: Array, features: Array, learns_noise: bool) -> None:
        self.prior, self.X, self.features, self.learns_noise = prior, X, features, learns_noise
        # what the features explain is fitted again; the rest of the mean stays
        self.left = y - prior.mean_at(X)
        least = LEAST_NOISE * float(np.mean(prior.variance(X)))
        self.noise = np.maximum(prior.noise_variance(len(y)), least)
        self.known: dict[float, _Stretched] = {}
        reach = math.log(MOST_OTHERS)
        self.steps = np.linspace(-1.5 * reach, 1.5 * reach, STEPS)

    def at(self, lengthscale: float) -> _Stretched:
        """``lengthscale`` is the logarithm of a factor."""
        if lengthscale not in self.known:
            kernel = stretched(self.prior.kernel, math.exp(lengthscale))
            self.known[lengthscale] = _Stretched.of(
                Prior(kernel).covariance(self.X), self.noise, self.features, self.left
            )
        return self.known[lengthscale]

    def by_lengthscale(self, lengthscale: float) -> float:
        """The most that variance and noise can make of it."""
        one, steps = self.at(lengthscale), self.steps
        if not self.learns_noise:
            return _top(steps, one.level(steps, np.zeros(STEPS)))
        # given the ratio r of the factors, the best variance is known
        variances = one.log_squares(np.clip(steps, RATIOS[0], RATIOS[-1])) - math.log(one.rows)
        return _top(steps, one.level(variances, variances + steps))

    def by_variance(self, variance: float, lengthscales: Array) -> float:
        def best(one: _Stretched) -> float:
            if not self.learns_noise:
                return float(one.level(np.array([variance]), np.zeros(1))[0])
            return _top(self.steps, one.level(np.full(STEPS, variance), self.steps))

        return _top(lengthscales, np.array([best(self.at(a)) for a in lengthscales.tolist()]))

    def by_noise(self, noise: float, lengthscales: Array) -> float:
        def best(one: _Stretched) -> float:
            return _top(self.steps, one.level(self.steps, np.full(STEPS, noise)))

        return _top(lengthscales, np.array([best(self.at(a)) for a in lengthscales.tolist()]))


def spread_of(
    prior: Prior, X: Array, y: Array, features: Array, drop: float, lengthscale: bool = True, noise: bool = True
) -> Spread:
    """The ranges in which the log likelihood of ``y``, the other factors fitted again, falls by at most ``drop``.

    ``features`` are what is fitted again in the mean, a column each. ``lengthscale`` and ``noise`` say whether these
    were learnt: what was given has no range.
    """
    rows = _Rows(prior, X, y, features, noise)
    unbounded: list[str] = []

    def ends(what: str, profile: Callable[[float], float], most: float, steps: int) -> tuple[float, float]:
        grid = np.linspace(-math.log(most), math.log(most), steps)
        levels = np.array([profile(place) for place in grid.tolist()])
        needed = max(float(levels.max()), profile(0.0)) - drop
        inside = np.flatnonzero(levels >= needed)
        first, last = (int(inside[0]), int(inside[-1])) if inside.size else (steps // 2, steps // 2)
        if first == 0 or last == steps - 1:
            unbounded.append(what)
        low = grid[0] if first == 0 else _crossing(profile, needed, grid[first], grid[first - 1])
        high = grid[-1] if last == steps - 1 else _crossing(profile, needed, grid[last], grid[last + 1])
        return _rounded(math.exp(low), math.exp(high))

    places, lengthscales = np.zeros(1), (1.0, 1.0)
    if lengthscale and has_lengthscales(prior.kernel):
        lengthscales = ends("the lengthscales", rows.by_lengthscale, MOST_LENGTHSCALE, LENGTHSCALE_STEPS)
        # others are out of reach whatever variance and noise are
        places = np.linspace(math.log(lengthscales[0]), math.log(lengthscales[1]), LENGTHSCALE_STEPS // 2)
    variances = ends("the variance", lambda factor: rows.by_variance(factor, places), MOST_OTHERS, 33)
    noises = (1.0, 1.0)
    if noise:
        noises = ends("the noise", lambda factor: rows.by_noise(factor, places), MOST_OTHERS, 33)
    return Spread(lengthscales, variances, noises, tuple(unbounded))


def _top(places: Array, levels: Array) -> float:
    """The largest of ``levels`` on an even grid, or what a parabola makes of it between two places."""
    best = int(np.argmax(levels))
    if 0 < best < len(levels) - 1:
        before, at, after = (float(level) for level in levels[best - 1 : best + 2])
        bend = before - 2.0 * at + after
        if bend < 0.0:
            return at - (after - before) ** 2 / (8.0 * bend)
    return float(levels[best])


def _crossing(profile: Callable[[float], float], needed: float, inside: float, outside: float) -> float:
    """A place just outside of where the profile falls below ``needed``."""
    while abs(outside - inside) > CLOSE:
        middle = (inside + outside) / 2.0
        if profile(middle) >= needed:
            inside = middle
        else:
            outside = middle
    return outside


def _rounded(low: float, high: float) -> tuple[float, float]:
    """To two digits, outwards, with 1 inside."""

    def digits(value: float, up: bool) -> float:
        unit = 10.0 ** (math.floor(math.log10(value)) - 1)
        return float(f"{(math.ceil if up else math.floor)(round(value / unit, 6)) * unit:.2g}")

    return min(digits(low, False), 1.0), max(digits(high, True), 1.0)
