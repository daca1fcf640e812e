"""The search for the most likely hyper-parameters, on data brought to a common scale.

Positive parameters are searched on a log scale between wide but finite bounds. All likelihoods come from Cholesky
factors in float64, so nothing here is left to chance: the same data give the same prior.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning

from ..arrays import Array
from ..errors import InputError
from ..linalg import Whitening
from ..progress import Progress
from .kernel_text import KernelText
from .periods import periods_in
from .prior import Prior
from .searched_kernels import OwnKernel, Remarks, Scale, SearchedKernel, StartingPeriods, TextKernel, positive
from .trends import Trend

#: Limits in variances of y.
LEAST_NOISE, MOST_NOISE = 1e-6, 1e2
#: Fixed noise below this share of the variance of y is raised to it while searching: K alone may be singular.
NUGGET = 1e-8
#: A parameter this close to a bound, in logarithms, has ended on it.
ON_BOUND = 1e-3

STEPS = 500
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
    mean, ``noise`` is "learn" or one variance for each row.
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    kernel: KernelText | Kernel
    mean: Trend | float | Mean
    noise: str | Array


@dataclass(frozen=True)
class Fitted:
    """A prior for the fitted rows and what there is to say about it; alarms also become warnings."""

    prior: Prior
    method: str
    converged: bool = True
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    starts: int = 0


class GP(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: Any, mean: Mean, kernel: Kernel) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = mean
        self.covar_module = kernel

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


class LogDensity(torch.autograd.Function):
    """log N(y − Hβ; 0, C), β by generalised least squares (no β where there is no H), as a function of C and y.

    The gradient is written out, ½(ααᵀ − C⁻¹) with α = C⁻¹(y − Hβ), several times faster than through the factor. That
    β depends on C makes no difference to it: β is where the density is largest.
    """

    @staticmethod
    def forward(ctx: Any, covariance: torch.Tensor, y: torch.Tensor, basis: torch.Tensor | None = None) -> torch.Tensor:
        lower = psd_safe_cholesky(covariance)
        residual = y if basis is None else y - basis @ _least_squares(lower, y, basis)
        alpha = torch.cholesky_solve(residual[:, None], lower)[:, 0]
        ctx.save_for_backward(lower, alpha)
        log_determinant = 2.0 * lower.diagonal().log().sum()
        value: torch.Tensor = -0.5 * (residual @ alpha + log_determinant + len(y) * math.log(2.0 * math.pi))
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        lower, alpha = ctx.saved_tensors
        slope = torch.outer(alpha, alpha) - torch.cholesky_inverse(lower)
        return 0.5 * up[0] * slope, -up[0] * alpha, None


def _least_squares(lower: torch.Tensor, y: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    """β with the least (y − Hβ)ᵀC⁻¹(y − Hβ), C = LLᵀ."""
    both = torch.linalg.solve_triangular(lower, torch.cat([basis, y[:, None]], dim=1), upper=False)
    Q, R = torch.linalg.qr(both[:, :-1])
    found: torch.Tensor = torch.linalg.solve_triangular(R, Q.T @ both[:, -1:], upper=True)[:, 0]
    return found


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
        self.learns_noise = isinstance(question.noise, str)
        self.alarms: list[str] = []
        X, y, mean = question.X, question.y, question.mean
        own = isinstance(question.kernel, Kernel)
        spread = X.std(axis=0, ddof=1)
        still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        # A trend is near its least squares fit; numbers near that lose fewer digits.
        self.level: Array | float = mean.at(X, mean.least_squares(X, y)) if isinstance(mean, Trend) else 0.0
        if isinstance(mean, float):
            self.level = mean
        # With a known mean the process has to explain the distance from it, not only the spread.
        centre = float(y.mean()) if isinstance(mean, Mean) else self.level
        self.y_scale = float(np.sqrt(np.mean((y - centre) ** 2)))
        self.least_noise = max(LEAST_NOISE * float(np.var(y - self.level)) / self.y_scale**2, 1e-2 * NUGGET)
        self.scale = Scale(
            names=question.names,
            offset=np.zeros(X.shape[1]) if own else X.mean(axis=0),
            spread=np.ones(X.shape[1]) if own else np.where(still, 1.0, spread),
            still=still,
            y_scale=self.y_scale,
        )
        #: The periods that the rows show along a column, found when they are first asked for.
        self.periods = StartingPeriods(X, question.names, self._scan, self.alarms.append)
        self._build()

    def _build(self) -> None:
        X = torch.from_numpy((self.question.X - self.scale.offset) / self.scale.spread)
        y = torch.from_numpy((self.question.y - self.level) / self.y_scale)
        self.searched, self.mean, self.likelihood = self._searched(X), self._mean(), self._likelihood()
        trend = self.question.mean
        self.basis: torch.Tensor | None = None
        if isinstance(trend, Trend) and isinstance(self.mean, ZeroMean):
            self.basis = torch.from_numpy(trend.directions(self.question.X))
        model = GP(X, y, self.likelihood, self.mean, self.searched.kernel).double()
        self.mll = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, model).double()
        self.mll.train()
        self.given = copy.deepcopy(self.mll.state_dict())
        #: The bounds of the free parameters, by name, for the start that was last.
        self.bounds: dict[str, tuple[float, float]] = {}

    def _searched(self, X: torch.Tensor) -> SearchedKernel:
        kernel = self.question.kernel
        if isinstance(kernel, Kernel):
            return OwnKernel(kernel, X, self.y_scale, self.logarithmic)
        return TextKernel(kernel, self.scale, self.periods, self.logarithmic)

    def _scan(self, column: int) -> tuple[float, ...]:
        known = None if self.learns_noise or np.any(self.question.noise == 0.0) else self.question.noise
        return periods_in(self.question.X[:, column], self.question.y - self.level, known)

    def _mean(self) -> Mean:
        mean = self.question.mean
        if isinstance(mean, Mean):
            offset, scale = torch.from_numpy(self.scale.offset), torch.from_numpy(self.scale.spread)
            return OwnMean(copy.deepcopy(mean).double().cpu(), offset, scale, self.y_scale)
        # Adam, as in the paper, takes steps in the constant too; elsewhere a trend follows from the kernel.
        stepped = isinstance(mean, Trend) and mean.degree == 0 and not self.logarithmic
        return ConstantMean().double() if stepped else ZeroMean()

    def _likelihood(self) -> Any:
        self.raised_noise = False
        if isinstance(self.question.noise, str):
            constraint = positive(True) if self.logarithmic else GreaterThan(ADAM_LEAST_NOISE)
            return gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint)
        noise = self.question.noise / self.y_scale**2
        self.raised_noise = bool(np.any(noise < NUGGET))
        with gpytorch.settings.min_fixed_noise(double_value=0.0):
            return gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.from_numpy(np.maximum(noise, NUGGET)))

    # ------------------------------------------------------------ what is free

    def free(self) -> dict[str, torch.nn.Parameter]:
        return {name: p for name, p in self.mll.named_parameters() if p.requires_grad}

    def start(self, turn: int) -> None:
        """Put the free parameters on the start values number ``turn``."""
        self.mll.load_state_dict(self.given)
        stretch = START_LENGTHSCALES[turn % len(START_LENGTHSCALES)] if self.logarithmic else ADAM_LENGTHSCALE
        noise = START_NOISES[turn % len(START_NOISES)] if self.logarithmic else ADAM_NOISE
        if self.learns_noise:
            self.likelihood.noise = max(noise, 2 * self.least_noise)
        self.searched.start(turn, stretch)
        if self.logarithmic:
            known = self.searched.bounds()
            if self.learns_noise:
                known[id(self.likelihood.raw_noise)] = math.log(self.least_noise), math.log(MOST_NOISE)
            self.bounds = {name: known[id(free)] for name, free in self.free().items() if id(free) in known}

    def loss(self) -> torch.Tensor:
        """Minus the log likelihood (and the log priors on a kernel of the user's, if it has any), for each row."""
        model = self.mll.model
        (X,), y = model.train_inputs, model.train_targets
        noise = self.likelihood.noise.expand(len(y))
        covariance = self.searched.covariance(X) + torch.diag(noise)
        value: torch.Tensor = LogDensity.apply(covariance, y - self.mean(X), self.basis)
        for _, module, prior, closure, _ in self.mll.named_priors():
            value = value + prior.log_prob(closure(module)).sum()
        return -value / len(y)

    def slope(self) -> float:
        """The largest slope that a further step could follow."""
        self.mll.train()
        self.mll.zero_grad()
        self.loss().backward()
        steepest = 0.0
        for name, parameter in self.free().items():
            if parameter.grad is None:
                continue
            grad, value = parameter.grad.detach(), parameter.detach()
            low, high = self.bounds.get(name, (-math.inf, math.inf))
            blocked = ((value <= low + ON_BOUND) & (grad > 0)) | ((value >= high - ON_BOUND) & (grad < 0))
            steepest = max(steepest, float(torch.where(blocked, 0.0, grad).abs().max()))
        return steepest

    # ------------------------------------------------------------ ways to look

    def run(self, adam: Adam | None, restarts: int, bar: Progress) -> Fitted:
        """The prior that is found: by Adam, or else by the best of several starts."""
        if not self.free():
            known = ("every value was given.",) if self.basis is None else ("kernel and noise were given.",)
            return self._fitted("nothing to fit" if self.basis is None else "least squares", True, 0, known)
        return self._by_lbfgs(restarts, bar) if adam is None else self._by_adam(adam, bar)

    def _by_lbfgs(self, restarts: int, bar: Progress) -> Fitted:
        """The best of several deterministic starts, each followed by L-BFGS-B to a maximum."""
        best, best_state, best_bounds, lost = math.inf, None, self.bounds, 0
        with _exact():
            for turn in range(restarts):
                bar.stage(f"fitting the prior, start {turn + 1} of {restarts}")
                self.start(turn)
                loss = self._descend()
                if not math.isfinite(loss):
                    lost += 1
                elif loss < best:
                    best, best_state, best_bounds = loss, copy.deepcopy(self.mll.state_dict()), self.bounds
            if best_state is None:
                raise InputError(
                    "no start gave a finite likelihood: the covariance of the data is not positive definite. Give "
                    'noise="learn" or a larger noise, or check the kernel.'
                )
            self.mll.load_state_dict(best_state)
            self.bounds = best_bounds
            slope = self.slope()
        if lost:
            self.alarms.append(f"{lost} of {restarts} starts gave no finite likelihood and were left out.")
        if slope > FLAT:
            self.alarms.append(
                f"the search stopped before a maximum (largest slope {slope:.2g} a row); try more restarts or "
                "another kernel."
            )
        remarks = self._remarks()
        self.alarms += remarks.alarms
        return self._fitted("L-BFGS", slope <= FLAT, restarts, remarks.notes)

    def _descend(self) -> float:
        # BoTorch takes seconds to import; only fits need it.
        from botorch.fit import fit_gpytorch_mll
        from botorch.optim.fit import fit_gpytorch_mll_scipy

        outcome: list[float] = []
        parameters = self.free()

        def descend(mll: Any, **options: Any) -> Any:
            result = fit_gpytorch_mll_scipy(mll, **options)
            outcome.append(float(result.fval))
            return result

        def loss_and_slopes() -> tuple[torch.Tensor, list[torch.Tensor | None]]:
            self.mll.zero_grad()
            loss = self.loss()
            loss.backward()
            return loss, [parameter.grad for parameter in parameters.values()]

        # Whether a maximum was reached is judged by its slope, not by warnings of the line search.
        fit_gpytorch_mll(
            self.mll,
            closure=loss_and_slopes,
            optimizer=descend,
            optimizer_kwargs={"bounds": self.bounds, "options": {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-6}},
            max_attempts=1,
            warning_handler=lambda _: True,
        )
        self.mll.train()
        return outcome[0] if outcome else math.nan

    def _by_adam(self, adam: Adam, bar: Progress) -> Fitted:
        """A fixed number of Adam steps from the paper's start values."""
        self.start(0)
        optimiser = torch.optim.Adam(list(self.free().values()), lr=adam.learning_rate, weight_decay=adam.weight_decay)
        schedule = None if adam.decay is None else torch.optim.lr_scheduler.StepLR(optimiser, *adam.decay)
        bar.stage(f"fitting the prior, {adam.epochs} epochs")
        with _exact():
            for epoch in range(adam.epochs):
                optimiser.zero_grad()
                try:
                    loss = self.loss()
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
            slope = self.slope()
        converged = slope <= 10 * FLAT
        if not converged:
            self.alarms.append(
                f"Adam stopped after {adam.epochs} epochs while the likelihood was still rising (largest slope "
                f'{slope:.2g} a row); give more epochs, or use optimizer="lbfgs" for the maximum.'
            )
        return self._fitted(f"Adam, {adam.epochs} epochs", converged, 1)

    # ------------------------------------------------------------ the way back

    def _fitted(self, method: str, converged: bool, starts: int, notes: tuple[str, ...] = ()) -> Fitted:
        """What was found, in the user's units."""
        question = self.question
        self.mll.eval()
        if self.raised_noise:
            notes += (
                f"while searching, noise below {NUGGET:g} of the variance of y was raised to that; the prior has the "
                "noise that was given.",
            )
        with torch.no_grad():
            noise: Any = question.noise
            if self.learns_noise:
                noise = float(self.likelihood.noise) * self.y_scale**2
            kernel = self.searched.found()
            found = self._found_mean(kernel, noise)
        return Fitted(Prior(kernel, found, noise), method, converged, tuple(self.alarms), notes, starts)

    def _found_mean(self, kernel: Kernel, noise: Any) -> float | Mean:
        question, trend = self.question, self.question.mean
        if not isinstance(trend, Trend):
            return self.mean.own if isinstance(trend, Mean) else trend
        if self.basis is None:
            return float(self.level[0]) + self.y_scale * float(self.mean.constant)  # type: ignore[index]
        searched = np.maximum(np.broadcast_to(noise, len(question.y)), NUGGET * self.y_scale**2)
        covariance = Prior(kernel).covariance(question.X) + np.diag(searched)
        return trend.mean(trend.generalised_least_squares(question.X, question.y, Whitening.of(covariance)))

    def _remarks(self) -> Remarks:
        """What it means where parameters ended on a bound."""
        ended, free = {}, self.free()
        for name, bounds in self.bounds.items():
            values = free[name].detach().reshape(-1)
            low, high = ([bool(gap <= ON_BOUND) for gap in (values - bound).abs()] for bound in bounds)
            ended[id(free[name])] = low, high
        noise = ended.pop(id(self.likelihood.raw_noise)) if self.learns_noise else ([False], [False])
        remarks = self.searched.remarks(ended)
        value = float(self.likelihood.noise.detach().mean()) * self.y_scale**2
        (at_least,), (at_most,) = noise
        alarms = remarks.alarms
        if at_least:
            alarms = (
                f"the noise ended at its lower limit ({value:.3g}): the data look free of noise. Give noise=0.0 or "
                "the noise that you know.",
                *alarms,
            )
        if at_most:
            alarms = (f"the noise ended at its upper limit ({value:.3g}); check y.", *alarms)
        return Remarks(alarms, remarks.notes)


@contextmanager
def _exact() -> Iterator[None]:
    """Plain matrices with gradients, and no remarks about jitter while searching."""
    with (
        torch.enable_grad(),
        gpytorch.settings.lazily_evaluate_kernels(False),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", NumericalWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield
