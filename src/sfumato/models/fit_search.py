"""The search for the most likely hyper-parameters, on data brought to a common scale.

Positive parameters are searched on a log scale between wide but finite bounds. All likelihoods come from Cholesky
factors in float64, so nothing here is left to chance: the same data give the same prior.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import numpy as np
import scipy
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning

from ..arrays import Array, Index
from ..data import sample_places
from ..errors import InputError
from ..linalg import Whitening
from ..progress import Progress, alive
from .fit_rows import Block
from .kernel_text import KernelText
from .learnt_noise import LearntNoise
from .likelihoods import LogDensity
from .periods import periods_in
from .prior import Prior
from .searched_kernels import Bounds, OwnKernel, Remarks, Scale, SearchedKernel, StartingPeriods, TextKernel
from .trends import Trend

#: Limits in variances of y.
LEAST_NOISE, MOST_NOISE = 1e-6, 1e2
#: Fixed noise below this share of the variance of y is raised to it while searching: K alone may be singular.
NUGGET = 1e-8
#: A parameter this close to a bound, in logarithms, has ended on it.
ON_BOUND = 1e-3

#: Most steps of a search, and when it is at a maximum: for good, and where the end is only a start for more rows.
STEPS = 500
CLOSE, COARSE = {"ftol": 1e-12, "gtol": 1e-6}, {"ftol": 1e-8, "gtol": 1e-4}
#: So many rows tell what the starts are worth.
TELLING = 512
#: Parameters whose logarithms are this close will end at the same place.
NEAR = 0.02
#: The loss where there is none.
LOST = 1e10
#: A largest slope (of the log likelihood a row) that counts as a maximum; Adam is judged ten times as mildly.
FLAT = 1e-4

#: Start values, as multiples of the spread of a column and of the variance of y; combined in turn.
START_LENGTHSCALES = (1.0, 0.2, 0.06, 3.0, 10.0)
START_NOISES = (0.1, 0.5, 0.001, 0.01)
MOST_STARTS = len(START_LENGTHSCALES) * len(START_NOISES)
#: The paper's start values for Adam, and its least noise.
ADAM_LENGTHSCALE, ADAM_NOISE, ADAM_LEAST_NOISE = 1.2, 0.1, 1e-4


@dataclass(frozen=True)
class Adam:
    """A fixed number of gradient steps, as in the paper's census study."""

    epochs: int
    learning_rate: float
    decay: tuple[int, float] | None
    weight_decay: float


@dataclass(frozen=True)
class Question:
    """What is known and what is asked: rows to fit, and a value for everything that is not to be learnt.

    ``kernel`` is a text that was read or a GPyTorch kernel, ``mean`` is a trend to be fitted, a number or a GPyTorch
    mean, ``noise`` says what is learnt of it: None where the rows have it. ``owners`` are the columns of a table that
    the columns came from: those of a category share a lengthscale.
    """

    rows: Block
    names: tuple[str, ...]
    kernel: KernelText | Kernel
    mean: Trend | float | Mean
    noise: LearntNoise | None
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows on the common scale; ``basis`` is what the trend spans; ``noise`` their variances, or what gives them."""

    X: torch.Tensor
    y: torch.Tensor
    basis: torch.Tensor | None
    noise: torch.Tensor


@dataclass(frozen=True, eq=False)
class End:
    """Where a search ended, with the bounds that it had."""

    loss: float
    vector: Array
    bounds: Bounds


class _Reached(Exception):  # noqa: N818 - no error
    """A search has come to where another one ended."""

    def __init__(self, end: End) -> None:
        super().__init__()
        self.end = end


@dataclass(frozen=True)
class Fitted:
    """A prior for the fitted rows and what there is to say about it; alarms also become warnings.

    ``bound`` is a lower bound of the log likelihood of all rows, where there are too many for the exact one.
    """

    prior: Prior
    method: str
    converged: bool = True
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    starts: int = 0
    noise_levels: Array | None = None
    bound: float | None = None


class OwnMean(Mean):
    """The user's mean, read at scaled inputs and given in scaled outputs."""

    def __init__(self, mean: Mean, x_offset: torch.Tensor, x_scale: torch.Tensor, y_scale: float) -> None:
        super().__init__()
        self.own = mean
        self.x_offset, self.x_scale, self.y_scale = x_offset, x_scale, y_scale

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.own(X * self.x_scale + self.x_offset) / self.y_scale
        return values


class Search:
    """One question on a common scale, and the parameters that are free in it."""

    def __init__(self, question: Question, logarithmic: bool) -> None:
        self.question, self.logarithmic = question, logarithmic
        self.alarms: list[str] = []
        X, y, mean = question.rows.X, question.rows.y, question.mean
        own = isinstance(question.kernel, Kernel)
        spread = X.std(axis=0, ddof=1)
        still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        owners = question.owners or question.names
        for owner in {name for name in owners if owners.count(name) > 1}:
            levels = np.array([name == owner for name in owners])
            spread[levels], still[levels] = np.sqrt(np.mean(spread[levels] ** 2)), still[levels].all()
        # A trend is near its least squares fit; numbers near that lose fewer digits.
        self.near = mean.least_squares(X, y) if isinstance(mean, Trend) else np.zeros(0)
        level = self.level_at(X)
        # With a known mean the process has to explain the distance from it, not only the spread.
        centre = float(y.mean()) if isinstance(mean, Mean) else level
        self.y_scale = float(np.sqrt(np.mean((y - centre) ** 2)))
        self.least_noise = max(LEAST_NOISE * float(np.var(y - level)) / self.y_scale**2, 1e-2 * NUGGET)
        self.scale = Scale(
            names=question.names,
            offset=np.zeros(X.shape[1]) if own else X.mean(axis=0),
            spread=np.ones(X.shape[1]) if own else np.where(still, 1.0, spread),
            still=still,
            y_scale=self.y_scale,
            owners=owners,
        )
        #: The periods that the rows show along a column, found when they are first asked for.
        self.periods = StartingPeriods(X, question.names, self._scan, self.alarms.append)
        self._build()

    def _build(self) -> None:
        self.rows = self.on_scale(self.question.rows)
        self.searched, self.mean = self._searched(self.rows.X), self._mean()
        #: The logarithms of the levels of the noise, or what softplus makes a noise of.
        self.raw_noise: torch.nn.Parameter | None = None
        if self.question.noise is not None:
            self.raw_noise = torch.nn.Parameter(torch.zeros(self.question.noise.size, dtype=torch.float64))
        self.given = [copy.deepcopy(module.state_dict()) for module in (self.searched.kernel, self.mean)]
        #: The bounds of free parameters by their id, for the start that was last.
        self.bounds: Bounds = {}

    def level_at(self, X: Array) -> Array:
        """A known mean, or what a trend is near to, at the rows of ``X``."""
        mean = self.question.mean
        if isinstance(mean, Trend):
            return mean.at(X, self.near)
        return np.full(len(X), 0.0 if isinstance(mean, Mean) else mean)

    def on_scale(self, block: Block, features: bool = False) -> Rows:
        """Rows on the common scale, with an orthonormal basis of the trend, or with its ``features`` as they are."""
        trend, basis = self.question.mean, None
        if isinstance(trend, Trend) and not self._steps_in_mean():
            basis = torch.from_numpy(trend.features(block.X) if features else trend.directions(block.X))
        learnt = self.question.noise
        noise = np.maximum(block.noise / self.y_scale**2, NUGGET) if learnt is None else learnt.basis(block.by)
        return Rows(
            X=torch.from_numpy((block.X - self.scale.offset) / self.scale.spread),
            y=torch.from_numpy((block.y - self.level_at(block.X)) / self.y_scale),
            basis=basis,
            noise=torch.from_numpy(noise),
        )

    def to(self, device: str) -> None:
        """Bring the parameters to a device; the rows stay where they are."""
        for module in (self.searched.kernel, self.mean):
            module.to(device)
        if self.raw_noise is not None:
            self.raw_noise.data = self.raw_noise.data.to(device)

    def _searched(self, X: torch.Tensor) -> SearchedKernel:
        kernel = self.question.kernel
        if isinstance(kernel, Kernel):
            return OwnKernel(kernel, X, self.y_scale, self.logarithmic)
        return TextKernel(kernel, self.scale, self.periods, self.logarithmic)

    def _scan(self, column: int) -> tuple[float, ...]:
        question, noise = self.question, self.question.rows.noise
        known = None if question.noise is not None or np.any(noise == 0.0) else noise
        return periods_in(question.rows.X[:, column], question.rows.y - self.level_at(question.rows.X), known)

    def _mean(self) -> Mean:
        mean = self.question.mean
        if isinstance(mean, Mean):
            offset, scale = torch.from_numpy(self.scale.offset), torch.from_numpy(self.scale.spread)
            return OwnMean(copy.deepcopy(mean).double().cpu(), offset, scale, self.y_scale)
        return ConstantMean().double() if self._steps_in_mean() else ZeroMean()

    def _steps_in_mean(self) -> bool:
        """Adam, as in the paper, takes steps in the constant too; elsewhere a trend follows from the kernel."""
        mean = self.question.mean
        return isinstance(mean, Trend) and mean.degree == 0 and not self.logarithmic

    # ------------------------------------------------------------ what is free

    def free(self) -> list[torch.nn.Parameter]:
        modules = (self.searched.kernel, self.mean)
        found = [one for module in modules for one in module.parameters() if one.requires_grad]
        return found if self.raw_noise is None else [*found, self.raw_noise]

    def vector(self) -> Array:
        """The free parameters, one after the other; what is shared is there once."""
        places = self._places()
        vector = np.empty(places.max(initial=-1) + 1)
        vector[places] = _flat([one.detach() for one in self.free()])
        return vector

    def slopes(self) -> Array:
        """The slopes of what was followed last by the entries of the vector."""
        each, places = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.free()], self._places()
        return np.bincount(places, weights=_flat(each)).astype(np.float64)

    def _places(self) -> Index:
        """For each entry of the free parameters its place in the vector."""
        found = np.zeros(0, dtype=np.intp)
        for one in self.free():
            own = np.unique(self.searched.shared(one), return_inverse=True)[1]
            found = np.append(found, found.max(initial=-1) + 1 + own)
        return found

    def put(self, vector: Array) -> None:
        place, values = 0, vector[self._places()]
        with torch.no_grad():
            for one in self.free():
                one.copy_(torch.from_numpy(values[place : place + one.numel()]).reshape(one.shape))
                place += one.numel()

    def limits(self) -> list[tuple[float, float]]:
        """The bounds of each entry of the vector."""
        free, places = (-math.inf, math.inf), self._places()
        each = [self.bounds.get(id(one), free) for one in self.free() for _ in range(one.numel())]
        return [each[place] for place in np.unique(places, return_index=True)[1]]

    def start(self, turn: int) -> None:
        """Put the free parameters on the start values number ``turn``."""
        for module, state in zip((self.searched.kernel, self.mean), self.given, strict=True):
            module.load_state_dict(state)
        stretch = START_LENGTHSCALES[turn % len(START_LENGTHSCALES)] if self.logarithmic else ADAM_LENGTHSCALE
        if self.raw_noise is not None and self.logarithmic:
            self.raw_noise.data.fill_(math.log(max(START_NOISES[turn % len(START_NOISES)], 2 * self.least_noise)))
        elif self.raw_noise is not None:
            self.raw_noise.data.fill_(math.log(math.expm1(ADAM_NOISE - ADAM_LEAST_NOISE)))
        self.searched.start(turn, stretch)
        if self.logarithmic:
            self.bounds = self.searched.bounds()
            if self.raw_noise is not None:
                self.bounds[id(self.raw_noise)] = math.log(self.least_noise), math.log(MOST_NOISE)

    def noise(self, rows: Rows) -> torch.Tensor:
        """The noise variance of each row, on the common scale."""
        if self.raw_noise is None:
            return rows.noise
        weights = rows.noise.to(self.raw_noise.device)
        if self.logarithmic:
            return torch.exp(weights @ self.raw_noise)
        return ADAM_LEAST_NOISE + weights @ torch.nn.functional.softplus(self.raw_noise)

    def typical_noise(self) -> float:
        """The geometric mean of the noise of the rows, on the common scale."""
        with torch.no_grad():
            return float(self.noise(self.rows).log().mean().exp())

    def loss(self, rows: Rows) -> torch.Tensor:
        """Minus the log likelihood (and the log priors on a kernel of the user's, if it has any), for each row."""
        covariance = self.searched.covariance(rows.X, rows.X)
        value: torch.Tensor = LogDensity.apply(covariance, rows.y - self.mean(rows.X), rows.basis, self.noise(rows))
        return -(value + self.log_priors()) / len(rows.y)

    def log_priors(self) -> torch.Tensor | float:
        total: Any = 0.0
        for part in (self.searched.kernel, self.mean):
            for _, module, prior, closure, _ in part.named_priors():
                total = total + prior.log_prob(closure(module)).sum()
        return total  # type: ignore[no-any-return]

    def loss_and_slopes(self, rows: Rows, vector: Array) -> tuple[float, Array]:
        """``LOST`` and no slopes where the covariance of the rows is not positive definite."""
        alive()
        self.put(vector)
        for one in self.free():
            one.grad = None
        try:
            loss = self.loss(rows)
            loss.backward()
        except (NotPSDError, NanError):
            return LOST, np.zeros(len(vector))
        found, value = self.slopes(), float(loss.detach())
        return (value, found) if math.isfinite(value) and np.all(np.isfinite(found)) else (LOST, np.zeros(len(vector)))

    def steepest(self, vector: Array, slopes: Array) -> float:
        """The largest slope that a further step could follow."""
        low, high = np.array(self.limits()).T
        blocked = ((vector <= low + ON_BOUND) & (slopes > 0)) | ((vector >= high - ON_BOUND) & (slopes < 0))
        return float(np.abs(np.where(blocked, 0.0, slopes)).max())

    # ------------------------------------------------------------ ways to look

    def run(self, adam: Adam | None, restarts: int, bar: Progress) -> Fitted:
        """The prior that is found: by Adam, or else by the best of several starts."""
        if not self.free():
            given = self.rows.basis is None
            known = ("every value was given.",) if given else ("kernel and noise were given.",)
            return self._fitted("nothing to fit" if given else "least squares", True, 0, known)
        return self._by_lbfgs(restarts, bar) if adam is None else self._by_adam(adam, bar)

    def _by_lbfgs(self, restarts: int, bar: Progress) -> Fitted:
        """The best of several deterministic starts, each followed by L-BFGS-B to a maximum.

        Of many rows some tell what the starts are worth; all of them are climbed from the best end only.
        """
        some = self._telling_rows()
        ends: list[End] = []
        with exactly():
            for turn in range(restarts):
                bar.stage(f"fitting the prior, start {turn + 1} of {restarts}")
                self.start(turn)
                ends.append(self._descend(some, ends, CLOSE if some is self.rows else COARSE))
            found = [end for end in ends if end.loss < LOST]
            if found and some is not self.rows:
                bar.stage(f"fitting the prior to {len(self.rows.y)} rows")
                found = [replace(end, loss=self.loss_and_slopes(self.rows, end.vector)[0]) for end in _different(found)]
                self._take(min(found, key=lambda end: end.loss))
                found = [self._descend(self.rows, (), CLOSE)]
            if not found or min(end.loss for end in found) >= LOST:
                raise InputError(
                    "no start gave a finite likelihood: the covariance of the data is not positive definite. Give "
                    'noise="learn" or a larger noise, or check the kernel.'
                )
            self._take(min(found, key=lambda end: end.loss))
            slope = self.steepest(self.vector(), self.loss_and_slopes(self.rows, self.vector())[1])
        lost = sum(end.loss >= LOST for end in ends)
        if lost:
            self.alarms.append(f"{lost} of {restarts} starts gave no finite likelihood and were left out.")
        return self.ended("L-BFGS", slope, restarts)

    def ended(self, method: str, slope: float, starts: int, beta: Array | None = None) -> Fitted:
        """What is found where the parameters are; ``beta`` is what the trend has besides what it is near to."""
        alarms, remarks = list(self.alarms), self.remarks()
        if slope > FLAT:
            alarms.append(
                f"the search stopped before a maximum (largest slope {slope:.2g} a row); try more restarts or "
                "another kernel."
            )
        return self._fitted(method, slope <= FLAT, starts, remarks.notes, (*alarms, *remarks.alarms), beta)

    def _telling_rows(self) -> Rows:
        """All rows, or of many some: half of them spread evenly, the others next to these.

        Neighbours tell short lengthscales from noise.
        """
        n = len(self.rows.y)
        if n <= 2 * TELLING:
            return self.rows
        X, places = self.rows.X.numpy(), sample_places(n, TELLING // 2)
        _, near = scipy.spatial.cKDTree(X).query(X[places], k=2)
        return self.on_scale(self.question.rows.select(np.unique([places, near[:, 0], near[:, 1]])))

    def _take(self, end: End) -> None:
        self.put(end.vector)
        self.bounds = end.bounds

    def _descend(self, rows: Rows, known: Sequence[End], options: dict[str, float]) -> End:
        """Where L-BFGS-B ends from where the parameters are; next to an end that is known it need not go on."""
        near = [end for end in known if end.loss < LOST] if self.searched.smooth else []

        def value(vector: Array) -> tuple[float, Array]:
            for end in near:
                if np.abs(vector - end.vector).max() < NEAR:
                    raise _Reached(end)
            return self.loss_and_slopes(rows, vector)

        try:
            found = scipy.optimize.minimize(
                value,
                self.vector(),
                jac=True,
                method="L-BFGS-B",
                bounds=self.limits(),
                options={"maxiter": STEPS, **options},
            )
        except _Reached as reached:
            return reached.end
        return End(float(found.fun), np.asarray(found.x), self.bounds)

    def _by_adam(self, adam: Adam, bar: Progress) -> Fitted:
        """A fixed number of Adam steps from the paper's start values."""
        self.start(0)
        optimiser = torch.optim.Adam(self.free(), lr=adam.learning_rate, weight_decay=adam.weight_decay)
        schedule = None if adam.decay is None else torch.optim.lr_scheduler.StepLR(optimiser, *adam.decay)
        bar.stage(f"fitting the prior, {adam.epochs} epochs")
        with exactly():
            for epoch in range(adam.epochs):
                optimiser.zero_grad()
                try:
                    loss = self.loss(self.rows)
                    loss.backward()
                except (NotPSDError, NanError):
                    loss = torch.tensor(math.nan)
                if not math.isfinite(float(loss.detach())):
                    raise InputError(
                        f"the likelihood is no longer finite after {epoch} epochs; give a smaller learning_rate than "
                        f'{adam.learning_rate:g}, or use optimizer="lbfgs".'
                    )
                optimiser.step()
                if schedule is not None:
                    schedule.step()
                bar.update((epoch + 1) / adam.epochs)
            slope = self.steepest(self.vector(), self.loss_and_slopes(self.rows, self.vector())[1])
        converged = slope <= 10 * FLAT
        alarms = (
            []
            if converged
            else [
                f"Adam stopped after {adam.epochs} epochs while the likelihood was still rising (largest slope "
                f'{slope:.2g} a row); give more epochs, or use optimizer="lbfgs" for the maximum.'
            ]
        )
        return self._fitted(f"Adam, {adam.epochs} epochs", converged, 1, alarms=(*self.alarms, *alarms))

    # ------------------------------------------------------------ the way back

    def _fitted(
        self,
        method: str,
        converged: bool,
        starts: int,
        notes: tuple[str, ...] = (),
        alarms: tuple[str, ...] = (),
        beta: Array | None = None,
    ) -> Fitted:
        """What was found, in the user's units."""
        question = self.question
        if question.noise is None and np.any(question.rows.noise < NUGGET * self.y_scale**2):
            notes += (
                f"while searching, noise below {NUGGET:g} of the variance of y was raised to that; the prior has the "
                "noise that was given.",
            )
        with torch.no_grad():
            noise: Any = question.rows.noise
            if question.noise is not None:
                noise = question.noise.of(question.noise.basis(question.rows.by), self.noise_levels())
            kernel = self.searched.found()
            found = self._found_mean(kernel, noise, beta)
        levels = None if question.noise is None else self.noise_levels()
        return Fitted(Prior(kernel, found, noise), method, converged, alarms, notes, starts, levels)

    def noise_levels(self) -> Array:
        """The noise variances that were learnt, in the user's units."""
        assert self.raw_noise is not None
        with torch.no_grad():
            each = Rows(self.rows.X, self.rows.y, None, torch.eye(len(self.raw_noise), dtype=torch.float64))
            return np.asarray(self.noise(each).numpy() * self.y_scale**2)

    def _found_mean(self, kernel: Kernel, noise: Any, beta: Array | None) -> float | Mean:
        question, trend = self.question, self.question.mean
        if not isinstance(trend, Trend):
            return self.mean.own if isinstance(trend, Mean) else trend
        if beta is not None:
            return trend.mean(self.near + self.y_scale * beta)
        if self.rows.basis is None:
            return float(self.near[0]) + self.y_scale * float(self.mean.constant)
        searched = np.maximum(np.broadcast_to(noise, len(question.rows.y)), NUGGET * self.y_scale**2)
        covariance = Prior(kernel).covariance(question.rows.X) + np.diag(searched)
        return trend.mean(trend.generalised_least_squares(question.rows.X, question.rows.y, Whitening.of(covariance)))

    def remarks(self) -> Remarks:
        """What it means where parameters ended on a bound."""
        ended = {}
        for one in self.free():
            if id(one) in self.bounds:
                values = one.detach().reshape(-1)
                low, high = (
                    [bool(gap <= ON_BOUND) for gap in (values - bound).abs()] for bound in self.bounds[id(one)]
                )
                ended[id(one)] = low, high
        noise = ended.pop(id(self.raw_noise), ([], []))
        remarks = self.searched.remarks(ended)
        alarms: list[str] = []
        if self.question.noise is not None:
            variances = self.noise_levels()
            for place, (at_least, at_most) in enumerate(zip(*noise, strict=True)):
                which, value = self.question.noise.words(place), variances[place]
                if at_least:
                    alarms.append(
                        f"the noise{which} ended at its lower limit ({value:.3g}): the data look free of noise. Give "
                        "noise=0.0 or the noise that you know."
                    )
                if at_most:
                    alarms.append(f"the noise{which} ended at its upper limit ({value:.3g}); check y.")
        return Remarks((*alarms, *remarks.alarms), remarks.notes)


def _different(ends: Sequence[End]) -> list[End]:
    """Each end once."""
    kept: list[End] = []
    for end in ends:
        if all(np.abs(end.vector - other.vector).max() >= NEAR for other in kept):
            kept.append(end)
    return kept


def _flat(tensors: Sequence[torch.Tensor]) -> Array:
    return np.concatenate([tensor.cpu().reshape(-1).numpy() for tensor in tensors]) if tensors else np.zeros(0)


@contextmanager
def exactly() -> Iterator[None]:
    """Plain matrices with gradients, and no remarks about jitter while searching."""
    with (
        torch.enable_grad(),
        gpytorch.settings.lazily_evaluate_kernels(False),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", NumericalWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
