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
from dataclasses import dataclass, field
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning

from ..arrays import Array
from ..errors import InputError
from ..progress import Progress

# What is asked of a fit, what comes back, and the model whose likelihood is searched.


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
class Answer:
    """The most likely values that were found, in the user's units."""

    kernel: Kernel | None
    lengthscales: Array
    variance: float
    mean: float | Mean
    noise: float | None
    converged: bool
    messages: tuple[str, ...]
    starts: int


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


# In standard deviations of a column, and in variances of y.
LENGTHSCALES = (1e-3, 1e4)
VARIANCES = (1e-6, 1e6)
MOST_NOISE = 1e2
LEAST_NOISE = 1e-6
NUGGET = 1e-8
"""Fixed noise below this share of the variance of y is raised to it while searching: K alone may be singular."""
FREEDOM = math.log(1e10)
"""How far, in logarithms, a parameter of the user's own kernel may move."""

STEPS = 500
FLAT = 1e-4
"""A largest slope (of the log likelihood a row) that counts as a maximum."""

AMPLITUDES = ("raw_outputscale", "raw_variance", "raw_constant")
START_LENGTHSCALES = (1.0, 0.2, 3.0, 0.06, 10.0)
START_NOISES = (0.1, 0.01, 0.5, 0.001)
MOST_STARTS = len(START_LENGTHSCALES) * len(START_NOISES)
ADAM_LENGTHSCALE, ADAM_NOISE, ADAM_LEAST_NOISE = 1.2, 0.1, 1e-4


@dataclass
class Search:
    """One question on a common scale, and the parameters that are free in it."""

    question: Question
    logarithmic: bool = True
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        question = self.question
        X, y = question.X, question.y
        self.own_kernel = isinstance(question.kernel, Kernel)
        width = X.shape[1]
        # The user's own kernel means what it says only on the inputs as they are.
        self.x_offset = np.zeros(width) if self.own_kernel else X.mean(axis=0)
        spread = X.std(axis=0, ddof=1)
        self.still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        self.x_scale = np.ones(width) if self.own_kernel else np.where(self.still, 1.0, spread)
        self.y_offset = float(y.mean()) if question.mean == "constant" else 0.0
        if isinstance(question.mean, float):
            self.y_offset = question.mean
        # With a known mean the process has to explain the distance from it, not only the spread.
        centre = float(y.mean()) if isinstance(question.mean, Mean) else self.y_offset
        self.y_scale = float(np.sqrt(np.mean((y - centre) ** 2)))
        self.least_noise = max(LEAST_NOISE * float(np.var(y)) / self.y_scale**2, 1e-2 * NUGGET)
        self._build()

    def _build(self) -> None:
        question = self.question
        X = torch.from_numpy((question.X - self.x_offset) / self.x_scale)
        y = torch.from_numpy((question.y - self.y_offset) / self.y_scale)
        self.raised_noise = False
        self.kernel = self._kernel(X.shape[1])
        self.mean = self._mean()
        if isinstance(question.noise, str):
            constraint = self._positive() if self.logarithmic else GreaterThan(ADAM_LEAST_NOISE)
            likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=constraint)
        else:
            noise = np.maximum(question.noise / self.y_scale**2, NUGGET)
            self.raised_noise = bool(np.any(question.noise / self.y_scale**2 < NUGGET))
            with gpytorch.settings.min_fixed_noise(double_value=0.0):
                likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.from_numpy(noise))
        self.likelihood = likelihood
        model = GP(X, y, likelihood, self.mean, self.kernel).double()
        self.mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model).double()
        self.mll.train()
        self.given = copy.deepcopy(self.mll.state_dict())
        self.origin = self.given

    def _positive(self) -> Positive:
        return Positive(transform=torch.exp, inv_transform=torch.log) if self.logarithmic else Positive()

    def _kernel(self, width: int) -> Kernel:
        question = self.question
        if isinstance(question.kernel, Kernel):
            own = copy.deepcopy(question.kernel).double().cpu()
            if self.logarithmic:
                _search_on_log_scale(own)
            kernel = ScaleKernel(own, outputscale_constraint=Positive(transform=None, inv_transform=None)).double()
            kernel.outputscale = torch.tensor(1.0 / self.y_scale**2, dtype=torch.float64)
            kernel.raw_outputscale.requires_grad_(False)
            return kernel
        options = {"ard_num_dims": width, "lengthscale_constraint": self._positive()}
        nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}.get(question.kernel)
        base = RBFKernel(**options) if nu is None else MaternKernel(nu=nu, **options)
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

    # ------------------------------------------------------------ what is free

    def free(self) -> dict[str, torch.nn.Parameter]:
        return {name: p for name, p in self.mll.named_parameters() if p.requires_grad}

    def bounds(self) -> dict[str, tuple[float, float]]:
        """Bounds of the free parameters on the scale they are searched on."""
        limits: dict[int, tuple[float, float]] = {}
        if isinstance(self.question.noise, str):
            limits[id(self.likelihood.raw_noise)] = (self.least_noise, MOST_NOISE)
        if not self.own_kernel:
            limits[id(self.kernel.raw_outputscale)] = VARIANCES
            limits[id(self.kernel.base_kernel.raw_lengthscale)] = LENGTHSCALES
        found = {}
        for name, parameter in self.free().items():
            if id(parameter) in limits:
                low, high = limits[id(parameter)]
                found[name] = (math.log(low), math.log(high))
            elif self.own_kernel and _is_logarithmic(self.mll, name):
                start = self.origin[name]
                found[name] = (float(start.min()) - FREEDOM, float(start.max()) + FREEDOM)
        return found

    def start(self, turn: int) -> None:
        """Put the free parameters on the start values number ``turn``."""
        self.mll.load_state_dict(self.given)
        stretch, noise = START_LENGTHSCALES[turn % 5], START_NOISES[turn % 4]
        if not self.logarithmic:
            stretch, noise = ADAM_LENGTHSCALE, ADAM_NOISE
        if isinstance(self.question.noise, str):
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
            blocked = ((value <= low + 1e-3) & (grad > 0)) | ((value >= high - 1e-3) & (grad < 0))
            steepest = max(steepest, float(torch.where(blocked, 0.0, grad).abs().max()))
        return steepest

    # ------------------------------------------------------------ two ways to look

    def by_lbfgs(self, restarts: int, bar: Progress) -> Answer:
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
            self.messages.append(f"{lost} of {restarts} starts gave no finite likelihood and were left out.")
        converged = slope <= FLAT
        if not converged:
            self.messages.append(
                f"the search stopped before a maximum (largest slope {slope:.2g} a row); try more restarts or "
                "another kernel."
            )
        self._note_bounds()
        return self._answer(converged, restarts)

    def _descend(self) -> float:
        # BoTorch takes seconds to import; only fits need it.
        from botorch.fit import fit_gpytorch_mll
        from botorch.optim.fit import fit_gpytorch_mll_scipy

        outcome: list[float] = []

        def descend(mll: Any, **options: Any) -> Any:
            result = fit_gpytorch_mll_scipy(mll, **options)
            outcome.append(float(result.fval))
            return result

        parameters = self.free()

        def loss_and_slopes() -> tuple[torch.Tensor, list[torch.Tensor | None]]:
            self.mll.zero_grad()
            loss = self.loss()
            loss.backward()
            return loss, [parameter.grad for parameter in parameters.values()]

        options = {"bounds": self.bounds(), "options": {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-6}}
        # Whether a maximum was reached is judged by its slope, not by the complaints of the line search.
        fit_gpytorch_mll(
            self.mll,
            closure=loss_and_slopes,
            optimizer=descend,
            optimizer_kwargs=options,
            max_attempts=1,
            warning_handler=lambda _: True,
        )
        self.mll.train()
        return outcome[0] if outcome else math.nan

    def by_adam(self, adam: Adam, bar: Progress) -> Answer:
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
            self.messages.append(
                f"Adam stopped after {adam.epochs} epochs while the likelihood was still rising (largest slope "
                f'{slope:.2g} a row); give more epochs, or use optimizer="lbfgs" for the maximum.'
            )
        return self._answer(converged, 1)

    def as_given(self) -> Answer:
        """Nothing is free: what was given is the answer."""
        return self._answer(True, 0)

    # ------------------------------------------------------------ the way back

    def _answer(self, converged: bool, starts: int) -> Answer:
        question = self.question
        self.mll.eval()
        with torch.no_grad():
            mean: float | Mean = self.y_offset
            if isinstance(question.mean, Mean):
                mean = self.mean.own
            elif question.mean == "constant":
                mean = self.y_offset + self.y_scale * float(self.mean.constant)
            noise = None
            if isinstance(question.noise, str):
                noise = float(self.likelihood.noise) * self.y_scale**2
            if self.own_kernel:
                kernel, lengthscales, variance = self.kernel.base_kernel, np.ones(0), math.nan
            else:
                kernel, variance = None, float(self.kernel.outputscale) * self.y_scale**2
                lengthscales = self.kernel.base_kernel.lengthscale.numpy().reshape(-1) * self.x_scale
        return Answer(kernel, lengthscales, variance, mean, noise, converged, tuple(self.messages), starts)

    def _note_bounds(self) -> None:
        bounds = self.bounds()
        names = {id(parameter): name for name, parameter in self.free().items()}

        def at(parameter: torch.nn.Parameter, end: int) -> list[bool]:
            name = names.get(id(parameter))
            if name is None or name not in bounds:
                return [False] * parameter.numel()
            return [bool(gap <= 1e-3) for gap in (parameter.detach().reshape(-1) - bounds[name][end]).abs()]

        if isinstance(self.question.noise, str):
            noise, value = self.likelihood.raw_noise, float(self.likelihood.noise.detach()) * self.y_scale**2
            if at(noise, 0)[0]:
                self.messages.append(
                    f"the noise ended at its lower limit ({value:.3g}): the data look free of noise. Give noise=0.0 or "
                    "the noise that you know."
                )
            if at(noise, 1)[0]:
                self.messages.append(f"the noise ended at its upper limit ({value:.3g}); check y.")
        if self.own_kernel:
            for name in bounds:
                if any(at(self.free()[name], 0)) or any(at(self.free()[name], 1)):
                    if name.endswith("raw_noise"):
                        continue
                    self.messages.append(
                        f"{name.split('.')[-1].removeprefix('raw_')} of the kernel moved by a factor of 1e10 and was "
                        "stopped; start it closer to what fits the data, or fix it."
                    )
            return
        base = self.kernel.base_kernel
        scaled = base.lengthscale.detach().numpy().reshape(-1)
        low, high = at(base.raw_lengthscale, 0), at(base.raw_lengthscale, 1)
        for column, name in enumerate(self.question.names):
            value = scaled[column] * self.x_scale[column]
            if self.still[column] and self.question.lengthscale is None:
                self.messages.append(
                    f"column {name} is constant, so its lengthscale ({value:.3g}) says nothing; leave the column out, "
                    "or give lengthscale."
                )
            elif low[column]:
                self.messages.append(
                    f"the lengthscale of {name} ended at its lower limit ({value:.3g}): neighbouring rows look "
                    "unrelated. Give lengthscale, or a larger noise."
                )
            elif high[column]:
                self.messages.append(
                    f"the lengthscale of {name} ended at its upper limit ({value:.3g}): {name} shows no bend that the "
                    "kernel could use. Leave the column out, or give lengthscale."
                )
        for end, word in ((0, "lower"), (1, "upper")):
            if at(self.kernel.raw_outputscale, end)[0]:
                value = float(self.kernel.outputscale.detach()) * self.y_scale**2
                self.messages.append(
                    f"the variance ended at its {word} limit ({value:.3g}); the data do not determine it. Give "
                    "lengthscale, or use sf.Prior with values that you know."
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
