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
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning

from ..arrays import Array
from ..errors import InputError
from ..progress import Progress
from .kernel_kinds import KINDS
from .prior import Prior
from .trees import build_kernel

#: The kernels that have a name of their own, as trees without their lengthscales.
KERNELS: dict[str, dict[str, Any]] = {
    "rbf": {"kind": "rbf"},
    "matern12": {"kind": "matern", "nu": 0.5},
    "matern32": {"kind": "matern", "nu": 1.5},
    "matern52": {"kind": "matern", "nu": 2.5},
}

#: Limits in standard deviations of a column, and in variances of y.
LENGTHSCALES = (1e-3, 1e4)
VARIANCES = (1e-6, 1e6)
LEAST_NOISE, MOST_NOISE = 1e-6, 1e2
#: Fixed noise below this share of the variance of y is raised to it while searching: K alone may be singular.
NUGGET = 1e-8
#: How far, in logarithms, a parameter of the user's own kernel may move.
FREEDOM = math.log(1e10)
#: A parameter this close to a bound, in logarithms, has ended on it.
ON_BOUND = 1e-3

STEPS = 500
#: A largest slope (of the log likelihood a row) that counts as a maximum; Adam is judged ten times as mildly.
FLAT = 1e-4

#: Start values, as multiples of the spread of a column and of the variance of y; combined in turn.
START_LENGTHSCALES = (1.0, 0.2, 3.0, 0.06, 10.0)
START_NOISES = (0.1, 0.01, 0.5, 0.001)
MOST_STARTS = len(START_LENGTHSCALES) * len(START_NOISES)
#: The paper's start values for Adam, and its least noise.
ADAM_LENGTHSCALE, ADAM_NOISE, ADAM_LEAST_NOISE = 1.2, 0.1, 1e-4

#: What GPyTorch calls parameters that are variances.
AMPLITUDES = ("raw_outputscale", "raw_variance", "raw_constant")


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

    ``kernel`` is a name or a GPyTorch kernel, ``mean`` is "constant", a number or a GPyTorch mean, ``noise`` is
    "learn" or one variance for each row.
    """

    X: Array
    y: Array
    names: tuple[str, ...]
    kernel: str | Kernel
    mean: str | float | Mean
    noise: str | Array
    lengthscale: Array | None


@dataclass(frozen=True)
class Fitted:
    """A prior for the fitted rows and what there is to say about it; alarms also become warnings."""

    prior: Prior
    method: str
    converged: bool = True
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    starts: int = 0


def named_kernel(name: str, lengthscales: Array, variance: float) -> Kernel:
    base = {**KERNELS[name], "lengthscale": [float(v) for v in lengthscales]}
    return build_kernel({"kind": "scale", "variance": variance, "kernel": base})


class GP(gpytorch.models.ExactGP):
    def __init__(self, X: torch.Tensor, y: torch.Tensor, likelihood: Any, mean: Mean, kernel: Kernel) -> None:
        super().__init__(X, y, likelihood)
        self.mean_module = mean
        self.covar_module = kernel

    def forward(self, X: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


class LogDensity(torch.autograd.Function):
    """log N(r; 0, C) with its gradient written out, ½(ααᵀ − C⁻¹): several times faster than through the factor."""

    @staticmethod
    def forward(ctx: Any, covariance: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        lower = psd_safe_cholesky(covariance)
        alpha = torch.cholesky_solve(residual[:, None], lower)[:, 0]
        ctx.save_for_backward(lower, alpha)
        log_determinant = 2.0 * lower.diagonal().log().sum()
        value: torch.Tensor = -0.5 * (residual @ alpha + log_determinant + len(residual) * math.log(2.0 * math.pi))
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        lower, alpha = ctx.saved_tensors
        slope = torch.outer(alpha, alpha) - torch.cholesky_inverse(lower)
        return 0.5 * up[0] * slope, -up[0] * alpha


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
        self.own_kernel = isinstance(question.kernel, Kernel)
        self.learns_noise = isinstance(question.noise, str)
        self.alarms: list[str] = []
        X, y = question.X, question.y
        spread = X.std(axis=0, ddof=1)
        self.still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        # The user's own kernel means what it says only on the inputs as they are.
        self.x_offset = np.zeros(X.shape[1]) if self.own_kernel else X.mean(axis=0)
        self.x_scale = np.ones(X.shape[1]) if self.own_kernel else np.where(self.still, 1.0, spread)
        self.y_offset = question.mean if isinstance(question.mean, float) else 0.0
        if question.mean == "constant":
            self.y_offset = float(y.mean())
        # With a known mean the process has to explain the distance from it, not only the spread.
        centre = float(y.mean()) if isinstance(question.mean, Mean) else self.y_offset
        self.y_scale = float(np.sqrt(np.mean((y - centre) ** 2)))
        self.least_noise = max(LEAST_NOISE * float(np.var(y)) / self.y_scale**2, 1e-2 * NUGGET)
        self._build()

    def _build(self) -> None:
        X = torch.from_numpy((self.question.X - self.x_offset) / self.x_scale)
        y = torch.from_numpy((self.question.y - self.y_offset) / self.y_scale)
        self.kernel, self.mean, self.likelihood = self._kernel(), self._mean(), self._likelihood()
        model = GP(X, y, self.likelihood, self.mean, self.kernel).double()
        self.mll = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, model).double()
        self.mll.train()
        self.given = self.origin = copy.deepcopy(self.mll.state_dict())
        #: The parameters whose limits are known, and these.
        self.limits: dict[str, tuple[float, float]] = {}
        names = {id(parameter): name for name, parameter in self.mll.named_parameters()}
        if self.learns_noise:
            self.noise_name = names[id(self.likelihood.raw_noise)]
            self.limits[self.noise_name] = (self.least_noise, MOST_NOISE)
        if not self.own_kernel:
            self.lengthscale_name = names[id(self.kernel.base_kernel.raw_lengthscale)]
            self.variance_name = names[id(self.kernel.raw_outputscale)]
            self.limits |= {self.lengthscale_name: LENGTHSCALES, self.variance_name: VARIANCES}

    def _positive(self) -> Positive:
        return Positive(transform=torch.exp, inv_transform=torch.log) if self.logarithmic else Positive()

    def _kernel(self) -> Kernel:
        question = self.question
        if isinstance(question.kernel, Kernel):
            own = copy.deepcopy(question.kernel).double().cpu()
            if self.logarithmic:
                _search_on_log_scale(own)
            kernel = ScaleKernel(own, outputscale_constraint=Positive(transform=None, inv_transform=None)).double()
            kernel.outputscale = torch.tensor(1.0 / self.y_scale**2, dtype=torch.float64)
            kernel.raw_outputscale.requires_grad_(False)
            return kernel
        kind, *settings = KERNELS[question.kernel].items()
        options = {"ard_num_dims": question.X.shape[1], "lengthscale_constraint": self._positive(), **dict(settings)}
        base = KINDS[kind[1]].kernel(**options)
        kernel = ScaleKernel(base, outputscale_constraint=self._positive()).double()
        if question.lengthscale is not None:
            base.lengthscale = torch.from_numpy(question.lengthscale / self.x_scale)
            base.raw_lengthscale.requires_grad_(False)
        return kernel

    def _mean(self) -> Mean:
        mean = self.question.mean
        if isinstance(mean, Mean):
            offset, scale = torch.from_numpy(self.x_offset), torch.from_numpy(self.x_scale)
            return OwnMean(copy.deepcopy(mean).double().cpu(), offset, scale, self.y_scale)
        return ConstantMean().double() if mean == "constant" else ZeroMean()

    def _likelihood(self) -> Any:
        self.raised_noise = False
        if isinstance(self.question.noise, str):
            constraint = self._positive() if self.logarithmic else GreaterThan(ADAM_LEAST_NOISE)
            return gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint)
        noise = self.question.noise / self.y_scale**2
        self.raised_noise = bool(np.any(noise < NUGGET))
        with gpytorch.settings.min_fixed_noise(double_value=0.0):
            return gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.from_numpy(np.maximum(noise, NUGGET)))

    # ------------------------------------------------------------ what is free

    def free(self) -> dict[str, torch.nn.Parameter]:
        return {name: p for name, p in self.mll.named_parameters() if p.requires_grad}

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Bounds of the free parameters on the scale they are searched on."""
        found = {}
        for name in self.free():
            if name in self.limits:
                low, high = self.limits[name]
                found[name] = (math.log(low), math.log(high))
            elif self.own_kernel and _is_logarithmic(self.mll, name):
                start = self.origin[name]
                found[name] = (float(start.min()) - FREEDOM, float(start.max()) + FREEDOM)
        return found

    def start(self, turn: int) -> None:
        """Put the free parameters on the start values number ``turn``."""
        self.mll.load_state_dict(self.given)
        stretch = START_LENGTHSCALES[turn % len(START_LENGTHSCALES)] if self.logarithmic else ADAM_LENGTHSCALE
        noise = START_NOISES[turn % len(START_NOISES)] if self.logarithmic else ADAM_NOISE
        if self.learns_noise:
            self.likelihood.noise = max(noise, 2 * self.least_noise)
        if self.own_kernel:
            if turn > 0:
                self._restart_own_kernel(stretch)
            self.origin = copy.deepcopy(self.mll.state_dict())
            return
        self.kernel.outputscale = 1.0
        if self.question.lengthscale is None:
            width = self.question.X.shape[1] if self.logarithmic else 1
            self.kernel.base_kernel.lengthscale = stretch * math.sqrt(width)

    def _restart_own_kernel(self, stretch: float) -> None:
        """The user's values come first; other starts stretch its lengthscales and bring its variance to that of y."""
        with torch.no_grad(), gpytorch.settings.lazily_evaluate_kernels(False):
            size = float(self.kernel(self.mll.model.train_inputs[0], diag=True).mean())
        shrink = -math.log(size) if math.isfinite(size) and size > 0.0 else 0.0
        moves = {"raw_lengthscale": math.log(stretch)} | dict.fromkeys(AMPLITUDES, shrink)
        for name, parameter in self.free().items():
            if _is_logarithmic(self.mll, name):
                parameter.data.add_(moves.get(name.split(".")[-1], 0.0))

    def loss(self) -> torch.Tensor:
        """Minus the log likelihood (and the log priors on a kernel of the user's, if it has any), for each row."""
        model = self.mll.model
        (X,), y = model.train_inputs, model.train_targets
        noise = self.likelihood.noise.expand(len(y))
        covariance = self.kernel(X).to_dense() + torch.diag(noise)
        value: torch.Tensor = LogDensity.apply(covariance, y - self.mean(X))
        for _, module, prior, closure, _ in self.mll.named_priors():
            value = value + prior.log_prob(closure(module)).sum()
        return -value / len(y)

    def slope(self) -> float:
        """The largest slope that a further step could follow."""
        self.mll.train()
        self.mll.zero_grad()
        self.loss().backward()
        bounds, steepest = self.bounds() if self.logarithmic else {}, 0.0
        for name, parameter in self.free().items():
            if parameter.grad is None:
                continue
            grad, value = parameter.grad.detach(), parameter.detach()
            low, high = bounds.get(name, (-math.inf, math.inf))
            blocked = ((value <= low + ON_BOUND) & (grad > 0)) | ((value >= high - ON_BOUND) & (grad < 0))
            steepest = max(steepest, float(torch.where(blocked, 0.0, grad).abs().max()))
        return steepest

    # ------------------------------------------------------------ ways to look

    def run(self, adam: Adam | None, restarts: int, bar: Progress) -> Fitted:
        """The prior that is found: by Adam, or else by the best of several starts."""
        if not self.free():
            return self._fitted("nothing to fit", True, 0, ("every value was given.",))
        return self._by_lbfgs(restarts, bar) if adam is None else self._by_adam(adam, bar)

    def _by_lbfgs(self, restarts: int, bar: Progress) -> Fitted:
        """The best of several deterministic starts, each followed by L-BFGS-B to a maximum."""
        best, best_state, best_origin, lost = math.inf, None, self.origin, 0
        with _exact():
            for turn in range(restarts):
                bar.stage(f"fitting the prior, start {turn + 1} of {restarts}")
                self.start(turn)
                loss = self._descend()
                if not math.isfinite(loss):
                    lost += 1
                elif loss < best:
                    best, best_state, best_origin = loss, copy.deepcopy(self.mll.state_dict()), self.origin
            if best_state is None:
                raise InputError(
                    "no start gave a finite likelihood: the covariance of the data is not positive definite. Give "
                    'noise="learn" or a larger noise, or check the kernel.'
                )
            self.mll.load_state_dict(best_state)
            self.origin = best_origin
            slope = self.slope()
        if lost:
            self.alarms.append(f"{lost} of {restarts} starts gave no finite likelihood and were left out.")
        if slope > FLAT:
            self.alarms.append(
                f"the search stopped before a maximum (largest slope {slope:.2g} a row); try more restarts or "
                "another kernel."
            )
        self._note_bounds()
        return self._fitted("L-BFGS", slope <= FLAT, restarts)

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
            optimizer_kwargs={"bounds": self.bounds(), "options": {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-6}},
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
            mean: float | Mean = self.y_offset
            if isinstance(question.mean, Mean):
                mean = self.mean.own
            elif question.mean == "constant":
                mean = self.y_offset + self.y_scale * float(self.mean.constant)
            noise: Any = question.noise
            if self.learns_noise:
                noise = float(self.likelihood.noise) * self.y_scale**2
            kernel = self.kernel.base_kernel
            if isinstance(question.kernel, str):
                kernel = named_kernel(question.kernel, self._lengthscales(), self._variance())
        return Fitted(Prior(kernel, mean, noise), method, converged, tuple(self.alarms), notes, starts)

    def _lengthscales(self) -> Array:
        return np.asarray(self.kernel.base_kernel.lengthscale.detach().numpy().reshape(-1) * self.x_scale)

    def _variance(self) -> float:
        return float(self.kernel.outputscale.detach()) * self.y_scale**2

    def _ended(self) -> dict[str, tuple[list[bool], list[bool]]]:
        """Which entries of each free parameter ended on their lower and on their upper bound."""
        ended = {}
        for name, bounds in self.bounds().items():
            values = self.free()[name].detach().reshape(-1)
            low, high = ([bool(gap <= ON_BOUND) for gap in (values - bound).abs()] for bound in bounds)
            ended[name] = low, high
        return ended

    def _note_bounds(self) -> None:
        ended, say = self._ended(), self.alarms.append
        if self.learns_noise:
            (low,), (high,) = ended.pop(self.noise_name)
            value = float(self.likelihood.noise.detach()) * self.y_scale**2
            if low:
                say(
                    f"the noise ended at its lower limit ({value:.3g}): the data look free of noise. Give noise=0.0 or "
                    "the noise that you know."
                )
            if high:
                say(f"the noise ended at its upper limit ({value:.3g}); check y.")
        if self.own_kernel:
            for name in [name for name, (low, high) in ended.items() if any(low) or any(high)]:
                say(
                    f"{name.split('.')[-1].removeprefix('raw_')} of the kernel moved by a factor of 1e10 and was "
                    "stopped; start it closer to what fits the data, or fix it."
                )
            return
        if self.lengthscale_name in ended:
            self._note_lengthscales(*ended[self.lengthscale_name])
        for word, (at_end,) in zip(("lower", "upper"), ended[self.variance_name], strict=True):
            if at_end:
                say(
                    f"the variance ended at its {word} limit ({self._variance():.3g}); the data do not determine it. "
                    "Give lengthscale, or use sf.Prior with values that you know."
                )

    def _note_lengthscales(self, low: list[bool], high: list[bool]) -> None:
        for column, (name, value) in enumerate(zip(self.question.names, self._lengthscales(), strict=True)):
            if self.still[column]:
                self.alarms.append(
                    f"column {name} is constant, so its lengthscale ({value:.3g}) says nothing; leave the column out, "
                    "or give lengthscale."
                )
            elif low[column]:
                self.alarms.append(
                    f"the lengthscale of {name} ended at its lower limit ({value:.3g}): neighbouring rows look "
                    "unrelated. Give lengthscale, or a larger noise."
                )
            elif high[column]:
                self.alarms.append(
                    f"the lengthscale of {name} ended at its upper limit ({value:.3g}): {name} shows no bend that the "
                    "kernel could use. Leave the column out, or give lengthscale."
                )


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


def _search_on_log_scale(kernel: Kernel) -> None:
    """Replace softplus by exp for all positive parameters: the same values, but steps that suit any unit."""
    for part in kernel.modules():
        for name, constraint in list(getattr(part, "_constraints", {}).items()):
            if type(constraint) not in (Positive, GreaterThan) or not constraint.enforced:
                continue
            parameter = getattr(part, name.removesuffix("_constraint"))
            low = constraint.lower_bound
            value = constraint.transform(parameter.detach())
            fresh = GreaterThan(0.0, transform=torch.exp, inv_transform=torch.log).double()
            fresh.lower_bound = low
            part.register_constraint(name.removesuffix("_constraint"), fresh, replace=True)
            parameter.data = fresh.inverse_transform(value)


def _is_logarithmic(module: Any, name: str) -> bool:
    constraint = module.constraint_for_parameter_name(name)
    return constraint is not None and getattr(constraint, "_transform", None) is torch.exp
