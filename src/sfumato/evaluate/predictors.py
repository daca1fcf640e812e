"""Rivals: what readers with a textbook predict at some inputs from values at others.

None of them knows the owner's prior. A regression on powers and harmonics, processes that are fitted afresh, nearest
neighbours, boosted trees, a line, a constant. ``rivals`` says which are worth a try for given data.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import scipy
import torch

from ..arrays import Array, Index, evenly
from ..linalg import one_thread
from ..models import LogDensity, Prior, build_kernel
from ..progress import alive

#: More rows than this do not change a fit, and take long.
MOST_FITTED = 180

#: A fitted process is told at most so many rows: half of them the nearest, half of them spread evenly.
MOST_TOLD = 1200

#: The powers of a column and the harmonics of a period that a regression may be made of.
POWERS, HARMONICS = 3, 3

#: What regressions with seasons are called, and of how many periods they have harmonics.
SEASONS = (("season", 1), ("periods", 4))

#: A regression has at most this share of the rows as coefficients.
COEFFICIENTS = 0.25

#: The shares of the values' variance that a regression may leave unexplained, where it knows the noise.
UNEXPLAINED = tuple(10.0 ** np.arange(-8.0, 0.1, 1.0))

#: The numbers of neighbours that are tried.
NEIGHBOURS = (1, 2, 3, 5, 8, 13, 21, 34)


#: Rows of a block, weighed so that what is not explained has variance 1.
Weigh: TypeAlias = Callable[[Array], Array]


class Rival(ABC):
    """A reader who predicts from values at rows, without the owner's prior.

    Guarantee: ``predict`` depends on its arguments alone, so a value that is not given has no part in a prediction.
    """

    name: str

    @property
    def uses_periods(self) -> bool:
        """Whether it looks for periods."""
        return False

    @abstractmethod
    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        """Predictions at the rows of ``at`` from ``values`` at the rows of ``X``.

        ``noise`` is the covariance of what was added to f, as variances or as a matrix; None where it is not known.
        """

    def learnt(self, X: Array, values: Array, noise: Array | None) -> Rival:
        """This rival with what takes long to learn learnt from these rows: parameters, which serve for others too."""
        return self


def rivals(X: Array, values: Array, noise: Array | None = None) -> tuple[Rival, ...]:
    """The rivals worth a try for these data; ``noise`` as for ``predict``.

    Those with seasons are among them where ``values`` show a period. Each finds its own periods again when it predicts,
    so that it knows no values but those that it is given then.
    """
    uneven = noise is not None and (noise.ndim == 2 or bool(np.ptp(noise) > 0))
    count = max(len(periods(X, values, noise=known)) for known in ((None, noise) if uneven else (None,)))
    trends = [Trend("polynomial"), *(Trend(f"polynomial + {name}", number) for name, number in SEASONS[:count])]
    fitted = [Refit(f"refitted {kernel}", kernel) for kernel in FAMILIES]
    fitted += [Refit(f"refitted {kernel} + season", kernel, True) for kernel in ("rbf", "matern32")] if count else []
    if uneven:
        trends += [replace(one, name=f"{one.name}, noise known", knows_noise=True) for one in trends]
        fitted += [replace(one, name=f"{one.name}, noise ignored", knows_noise=False) for one in fitted]
    return (*trends, *fitted, Neighbours(), Boosting(), Line(), Constant())


# ---------------------------------------------------------------- regressions on powers and harmonics


@dataclass(frozen=True)
class Period:
    """A period that data show along a column."""

    column: int
    length: float


def periods(X: Array, values: Array, most: int = 4, noise: Array | None = None) -> list[Period]:
    """The periods that the data show beyond a cubic trend, the strongest first; not those longer than half the data.

    Each is the peak of a least-squares spectrum that is too high to be chance, one in a thousand if there were none.
    Known ``noise`` is taken off first.
    """
    keep = evenly(len(values), MOST_SCANNED)
    found: list[tuple[float, Period]] = []
    for column in range(X.shape[1]) if most else ():
        x = X[keep, column]
        if len(np.unique(x)) < FEWEST:
            continue
        trend = _powers(x, x, POWERS)
        weigh = _likeliest(values[keep], _rows_of(noise, keep), trend)
        target, functions = weigh(values[keep]), weigh(trend)
        for _ in range(most):
            left = target - functions @ np.linalg.lstsq(functions, target, rcond=1e-10)[0]
            # what is left of exact functions is round-off, and that of a period that was not quite met
            done = float(left @ left) <= 1e-8 * float(target @ target)
            best = None if done else _strongest(x, left, weigh)
            if best is None or functions.shape[1] + 2 * HARMONICS > COEFFICIENTS * len(x):
                break
            length = _refined(x, target, functions, best[1], weigh)
            found.append((best[0], Period(column, length)))
            functions = np.hstack([functions, weigh(_harmonics(x, length, HARMONICS))])
    return [period for _, period in sorted(found, key=lambda one: -one[0])[:most]]


#: A spectrum looks at most at this many rows, and is this many times as fine as the data's span.
MOST_SCANNED, FINER = 1500, 6

#: A column shows periods only where it has this many values.
FEWEST = 12


def _strongest(x: Array, left: Array, weigh: Weigh) -> tuple[float, float] | None:
    """How much of what is ``left`` the best sinusoid explains, and its period."""
    total, span = float(left @ left), float(np.ptp(x))
    lowest, highest = 2.0 / span, (len(np.unique(x)) - 1) / (2.0 * span)
    if highest <= lowest:
        return None
    grid = np.arange(lowest, highest, 1.0 / (FINER * span))
    power = (
        np.concatenate([_explained(part, x, left, weigh) for part in np.array_split(grid, -(-len(grid) // 256))])
        / total
    )
    peak = int(np.argmax(power))
    chance = len(grid) / FINER * max(1.0 - float(power[peak]), 0.0) ** ((len(x) - 5) / 2)
    return None if chance > 1e-3 else (float(power[peak]), 1.0 / float(grid[peak]))


def _explained(frequencies: Array, x: Array, left: Array, weigh: Weigh) -> Array:
    """The sum of squares that a sine and a cosine of each frequency explain."""
    alive()
    angle = 2.0 * np.pi * np.outer(x, frequencies)
    sine, cosine = weigh(np.sin(angle)), weigh(np.cos(angle))
    ss, cc, sc = (sine**2).sum(0), (cosine**2).sum(0), (sine * cosine).sum(0)
    s, c = left @ sine, left @ cosine
    determinant = np.maximum(ss * cc - sc**2, 1e-9 * (ss + cc) ** 2)
    return np.asarray((cc * s**2 - 2 * sc * s * c + ss * c**2) / determinant)


def _refined(x: Array, target: Array, functions: Array, length: float, weigh: Weigh) -> float:
    """The period near ``length`` whose harmonics, with the ``functions`` found before, leave least."""
    step = 1.0 / (FINER * float(np.ptp(x)))

    def left(frequency: float) -> float:
        columns = np.hstack([functions, weigh(_harmonics(x, 1.0 / frequency, HARMONICS))])
        return float(np.sum((target - columns @ np.linalg.lstsq(columns, target, rcond=1e-10)[0]) ** 2))

    around = (1.0 / length - step, 1.0 / length + step)
    best = scipy.optimize.minimize_scalar(left, bounds=around, method="bounded", options={"xatol": 1e-4 * step})
    return 1.0 / float(best.x)


def _powers(rows: Array, at: Array, degree: int) -> Array:
    """1, x, x², … of one column, on a scale where the rows lie between −1 and 1."""
    middle, half = (rows.max() + rows.min()) / 2.0, max(float(np.ptp(rows)) / 2.0, 1e-300)
    return np.vander((at - middle) / half, degree + 1, increasing=True)


def _harmonics(at: Array, length: float, count: int) -> Array:
    angles = 2.0 * np.pi * np.outer(at / length, np.arange(1, count + 1))
    return np.hstack([np.sin(angles), np.cos(angles)])


@dataclass(frozen=True)
class Trend(Rival):
    """Least squares on powers of each column and harmonics of up to ``seasons`` periods; how many is chosen by BIC.

    With ``knows_noise`` they are generalised: by the noise, and a share of the variance that is left unexplained.
    """

    name: str
    seasons: int = 0
    knows_noise: bool = False

    @property
    def uses_periods(self) -> bool:
        return self.seasons > 0

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        few = evenly(len(values), MOST_TOLD)
        X, values, noise = X[few], values[few], _rows_of(noise, few) if self.knows_noise else None
        whiten = _whitenings(values, noise)
        best, chosen = math.inf, np.full(len(at), float(np.mean(values)))
        weighed = [(price, weigh, weigh(values)) for price, weigh in whiten]
        found = periods(X, values, self.seasons, noise)
        for degree, used, count in _sizes(len(found)):
            functions = _functions(X, X, degree, found[:used], count)
            size = functions.shape[1]
            if size > max(COEFFICIENTS * len(values), 1):
                continue
            for price, weigh, target in weighed:
                white = weigh(functions)
                coefficients = np.linalg.lstsq(white, target, rcond=1e-10)[0]
                cost = price(float(np.sum((target - white @ coefficients) ** 2))) + size * math.log(len(values))
                if cost < best:
                    best, chosen = cost, _functions(X, at, degree, found[:used], count) @ coefficients
        return chosen


def _sizes(count: int) -> Iterator[tuple[int, int, int]]:
    """Degrees of the polynomial, numbers of periods, the strongest first, and harmonics of each."""
    for degree in range(POWERS + 1):
        yield degree, 0, 0
        yield from product([degree], range(1, count + 1), range(1, HARMONICS + 1))


def _functions(X: Array, at: Array, degree: int, seasons: Sequence[Period], count: int) -> Array:
    """1, powers of each column and harmonics of each period, at the rows of ``at``."""
    moving = [column for column in range(X.shape[1]) if np.ptp(X[:, column]) > 0]
    parts = [np.ones((len(at), 1))]
    parts += [_powers(X[:, column], at[:, column], degree)[:, 1:] for column in moving]
    parts += [_harmonics(at[:, one.column], one.length, count) for one in seasons]
    return np.hstack(parts)


def _whitenings(values: Array, noise: Array | None) -> list[tuple[Callable[[float], float], Weigh]]:
    """Ways to weigh rows: what a misfit costs, in units of BIC, and the weighing."""
    n = len(values)
    if noise is None:
        least = 1e-24 * max(float(values @ values), 1e-300)
        return [(lambda misfit: n * math.log(max(misfit, least) / n), np.asarray)]
    levels, turn = (noise, None) if noise.ndim == 1 else np.linalg.eigh(noise)
    unexplained = [share * max(float(np.var(values)), 1e-300) for share in UNEXPLAINED]
    return [_whitening(np.maximum(levels, 0.0) + level, turn) for level in unexplained]


def _whitening(total: Array, turn: Array | None) -> tuple[Callable[[float], float], Weigh]:
    logarithm, root = float(np.log(total).sum()), np.sqrt(total)

    def weigh(block: Array) -> Array:
        turned = block if turn is None else turn.T @ block
        return np.asarray((turned.T / root).T)

    return (lambda misfit: logarithm + misfit), weigh


def _likeliest(values: Array, noise: Array | None, functions: Array) -> Weigh:
    """The weighing under which a regression on ``functions`` is most likely."""

    def cost(way: tuple[Callable[[float], float], Weigh]) -> float:
        target, white = way[1](values), way[1](functions)
        return way[0](float(np.sum((target - white @ np.linalg.lstsq(white, target, rcond=1e-10)[0]) ** 2)))

    return min(_whitenings(values, noise), key=cost)[1]


@dataclass(frozen=True)
class Line(Rival):
    """Ordinary least squares on the columns as they are."""

    name: str = "linear"

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        middle, spread = X.mean(axis=0), np.where(np.std(X, axis=0) > 0, np.std(X, axis=0), 1.0)
        functions, functions_at = (np.column_stack([np.ones(len(A)), (A - middle) / spread]) for A in (X, at))
        return np.asarray(functions_at @ np.linalg.lstsq(functions, values, rcond=1e-10)[0])


@dataclass(frozen=True)
class Constant(Rival):
    """The mean of all values."""

    name: str = "constant"

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        return np.full(len(at), float(np.mean(values)))


# ---------------------------------------------------------------- processes that are fitted afresh


#: Lengthscales (in standard deviations of a column), variances and noise (in variances of the values), shapes.
_BOUNDS = {"lengthscale": (1e-2, 1e2), "variance": (1e-3, 1e3), "noise": (1e-8, 1e1), "shape": (1e-1, 1e2)}

#: Lengthscales from which a fit starts, after how many steps only the better one goes on, and the most steps in all.
_STARTS, _FIRST_STEPS, _STEPS = (1.0, 0.1), 10, 40

#: How a kernel is described, and r² ↦ its correlation, with a shape that only the rational quadratic has.
FAMILIES: dict[str, tuple[dict[str, Any], Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "rbf": ({"kind": "rbf"}, lambda squares, _: torch.exp(-0.5 * squares)),
    "matern32": (
        {"kind": "matern", "nu": 1.5},
        lambda squares, _: (1 + _root(3 * squares)) * torch.exp(-_root(3 * squares)),
    ),
    "matern52": (
        {"kind": "matern", "nu": 2.5},
        lambda squares, _: (1 + _root(5 * squares) + 5 / 3 * squares) * torch.exp(-_root(5 * squares)),
    ),
    "rq": (
        {"kind": "rational_quadratic"},
        lambda squares, shape: torch.exp(-shape * torch.log1p(squares / (2 * shape))),
    ),
}


@dataclass(frozen=True)
class Refit(Rival):
    """A process of one kernel with every parameter by maximum likelihood; if ``seasonal``, plus periodic × RBF.

    Without ``knows_noise`` it takes the values as if nothing but noise of one variance had been added to them.
    """

    name: str
    kernel: str
    seasonal: bool = False
    knows_noise: bool = True

    @property
    def uses_periods(self) -> bool:
        return self.seasonal

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        return self.learnt(X, values, noise).predict(X, values, noise, at)

    def learnt(self, X: Array, values: Array, noise: Array | None) -> Rival:
        if float(np.std(values)) == 0.0:
            return Constant(self.name)
        return Fitted(self.name, self.fitted(X, values, noise if self.knows_noise else None)[0], self.knows_noise)

    def fitted(self, X: Array, values: Array, noise: Array | None) -> tuple[Prior, float]:
        """The most likely model, and its log likelihood at the rows that it was fitted to.

        L-BFGS-B from a long and from a short lengthscale, on standardised data.
        """
        season = next(iter(periods(X, values, 1, noise)), None) if self.seasonal else None
        few = evenly(len(values), MOST_FITTED)
        X, values, known = X[few], values[few], _block(noise, few)
        d = X.shape[1]
        x_scale = np.where(np.std(X, axis=0) > 0, np.std(X, axis=0), 1.0)
        offset, scale = float(np.mean(values)), float(np.std(values))
        gaps = torch.from_numpy(np.stack([np.subtract.outer(x, x) ** 2 for x in (X / x_scale).T]))
        added, eye = torch.from_numpy(known / scale**2), torch.eye(len(values), dtype=torch.float64)
        target, correlation = torch.from_numpy((values - offset) / scale), FAMILIES[self.kernel][1]
        names = ["lengthscale"] * d + ["variance", "noise", "shape"]
        turns = None
        if season is not None:
            names += ["lengthscale", "variance", "shape"]  # how the season fades, how large and how rough it is
            x = X[:, season.column]
            turns = torch.from_numpy(np.sin(np.pi * np.subtract.outer(x, x) / season.length) ** 2)
        bounds = [(math.log(low), math.log(high)) for low, high in (_BOUNDS[name] for name in names)] + [(-10.0, 10.0)]

        def slope(at: Array) -> tuple[float, Array]:
            alive()
            raw = torch.from_numpy(np.array(at)).requires_grad_(True)
            free = torch.exp(raw[:-1])
            squares = torch.tensordot(free[:d] ** -2, gaps, dims=1)
            covariance = free[d] * correlation(squares, free[d + 2]) + added + free[d + 1] * eye
            if turns is not None:
                assert season is not None
                fading = torch.exp(-0.5 * gaps[season.column] / free[d + 3] ** 2)
                covariance = covariance + free[d + 4] * torch.exp(-2.0 * turns / free[d + 5]) * fading
            density = LogDensity.apply(covariance, target - raw[-1])
            density.backward()
            assert raw.grad is not None
            return -float(density.detach()), -raw.grad.numpy()

        def after(steps: int, start: Array) -> Any:
            options = {"maxiter": steps}
            return scipy.optimize.minimize(slope, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

        with one_thread():
            starts = [np.append(np.log(_start(length, d, season)), 0.0) for length in _STARTS]
            found = min((after(_FIRST_STEPS, start) for start in starts), key=lambda result: float(result.fun))
            best = after(_STEPS, found.x)
        numbers = np.exp(best.x[:-1])
        tree = self._tree(numbers, x_scale, scale, season)
        prior = Prior(build_kernel(tree, d), offset + scale * float(best.x[-1]), float(numbers[d + 1]) * scale**2)
        return prior, -float(best.fun) - len(values) * math.log(scale)

    def _tree(self, numbers: Array, x_scale: Array, scale: float, season: Period | None) -> dict[str, Any]:
        d = len(x_scale)
        base = {**FAMILIES[self.kernel][0], "lengthscale": (numbers[:d] * x_scale).tolist()}
        if self.kernel == "rq":
            base["alpha"] = float(numbers[d + 2])
        whole: dict[str, Any] = {"kind": "scale", "variance": float(numbers[d]) * scale**2, "kernel": base}
        if season is None:
            return whole
        column = season.column
        own = {"active_dims": [column]} if d > 1 else {}
        fading = {"kind": "rbf", "lengthscale": [float(numbers[d + 3] * x_scale[column])], **own}
        turning = {
            "kind": "periodic",
            "period_length": [season.length],
            "lengthscale": [float(numbers[d + 5])],
            **own,
        }
        both = {"kind": "product", "kernels": [turning, fading]}
        part = {"kind": "scale", "variance": float(numbers[d + 4]) * scale**2, "kernel": both}
        return {"kind": "sum", "kernels": [whole, part]}


@dataclass(frozen=True, eq=False)
class Fitted(Rival):
    """A process whose parameters are known: its posterior mean."""

    name: str
    prior: Prior
    knows_noise: bool

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        told = _told(X, at)
        blur = np.diag(self.prior.noise_variance(len(told))) + _block(noise if self.knows_noise else None, told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return self.prior.condition(X[told], values[told], blur).mean_at(at)


def _start(length: float, d: int, season: Period | None) -> list[float]:
    return [length] * d + [1.0, 1e-2, 1.0, *([] if season is None else [10.0, 0.3, 1.0])]


def _root(squares: torch.Tensor) -> torch.Tensor:
    # the root has no slope at 0
    return torch.sqrt(squares + 1e-24)


def _told(X: Array, at: Array) -> Index:
    """The rows that a fitted process is told: all of them, or the nearest to ``at`` and an even share of the others."""
    if len(X) <= MOST_TOLD:
        return np.arange(len(X))
    scale = np.where(np.std(X, axis=0) > 0, np.std(X, axis=0), 1.0)
    distance = scipy.spatial.cKDTree(at / scale).query(X / scale)[0]
    nearest = np.argsort(distance, kind="stable")[: MOST_TOLD // 2]
    return np.unique(np.concatenate([nearest, evenly(len(X), MOST_TOLD // 2)]))


def _rows_of(noise: Array | None, rows: Index) -> Array | None:
    """The covariance of the noise of some rows, in the form in which it was given."""
    if noise is None or noise.ndim == 1:
        return None if noise is None else noise[rows]
    return np.asarray(noise[np.ix_(rows, rows)])


def _block(noise: Array | None, rows: Index) -> Array:
    """The same as a matrix."""
    own = _rows_of(noise, rows)
    if own is None:
        return np.zeros((len(rows), len(rows)))
    return np.diag(own) if own.ndim == 1 else own


# ---------------------------------------------------------------- no model at all


@dataclass(frozen=True)
class Neighbours(Rival):
    """The mean of the nearest rows, in standard deviations of each column; how many is chosen by leaving rows out."""

    name: str = "nearest neighbours"

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        scale = np.where(np.std(X, axis=0) > 0, np.std(X, axis=0), 1.0)
        tree = scipy.spatial.cKDTree(X / scale)
        counts = [count for count in NEIGHBOURS if count < len(X)]
        if not counts:
            return np.full(len(at), float(np.mean(values)))
        few = evenly(len(X), MOST_TOLD)
        near = tree.query(X[few] / scale, counts[-1] + 1)[1].reshape(len(few), -1)
        own = near == few[:, None]
        # where equal rows crowd a row out of its own neighbours, the last one goes
        own[~own.any(axis=1), -1] = True
        others = values[near[~own].reshape(len(few), -1)]
        means = np.cumsum(others, axis=1) / np.arange(1, counts[-1] + 1)
        best = min(counts, key=lambda count: float(np.mean((means[:, count - 1] - values[few]) ** 2)))
        found = tree.query(at / scale, best)[1].reshape(len(at), -1)
        return np.asarray(values[found].mean(axis=1))


@dataclass(frozen=True)
class Boosting(Rival):
    """Gradient boosting with small trees, as scikit-learn has it."""

    name: str = "gradient boosting"

    def predict(self, X: Array, values: Array, noise: Array | None, at: Array) -> Array:
        from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor

        model = (
            GradientBoostingRegressor(n_estimators=50, learning_rate=0.2, random_state=0)
            if len(X) <= MOST_TOLD
            else HistGradientBoostingRegressor(random_state=0)
        )
        return np.asarray(model.fit(X, values).predict(at), dtype=np.float64)
