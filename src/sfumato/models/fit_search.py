"""The search for the most likely hyper-parameters, on data brought to a common scale.

Positive parameters are searched on a log scale between wide but finite bounds. All likelihoods come from Cholesky
factors in float64, so nothing here is left to chance: the same data give the same prior.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
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
from ..linalg import Whitening
from ..progress import Progress
from .kernel_kinds import KINDS
from .kernel_terms import RADIAL
from .kernel_text import NAMES, Joined, KernelText, Named, assemble, in_text, named_parts
from .kernel_values import DifferentiableKernel
from .periods import periods_in
from .prior import Prior
from .trees import COMPOSITES, Tree, build_kernel
from .trends import Trend

#: Limits in standard deviations of a column, and in variances of y.
LENGTHSCALES = (1e-3, 1e4)
VARIANCES = (1e-6, 1e6)
#: Limits of what has no unit: the shape of a season, and that of a rational quadratic kernel.
SHAPES = {"lengthscale": (1e-2, 10.0), "alpha": (1e-2, 1e3)}
#: A period that is fitted stays this close, as a factor, to the one that the data show.
NEAR_PERIOD = 1.25
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
#: Terms of a sum start with lengthscales that differ by this factor, and take turns in who has the longest.
APART = 10.0
#: What a season is multiplied by changes slowly: it starts with this many times a column's spread.
SLOW = 3.0
#: Where no period stands out, seasons start with these shares of the range.
GUESSED_PERIODS = (0.2, 0.1, 0.05)
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


def kernel_tree(
    text: KernelText, columns: int, values: Callable[[Named, str], Any], variance: Callable[[KernelText, bool], float]
) -> Tree:
    """The tree of ``text`` with these values of what is free in it, on inputs with so many ``columns``."""

    def leaf(part: Named) -> Tree:
        tree = dict(NAMES[part.name].tree)
        for parameter in KINDS[part.kind].parameters:
            value = part.fixed[parameter.name] if parameter.name in part.fixed else values(part, parameter.name)
            tree[parameter.name] = float(np.ravel(value)[0]) if not parameter.axes else np.asarray(value).tolist()
        return tree if part.columns == tuple(range(columns)) else {**tree, "active_dims": list(part.columns)}

    def scale(tree: Tree, part: KernelText, relative: bool) -> Tree:
        return {"kind": "scale", "variance": variance(part, relative), "kernel": tree}

    return assemble(text, leaf, scale, lambda kind, parts: {"kind": kind, "kernels": parts})


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
        self.own_kernel = isinstance(question.kernel, Kernel)
        self.learns_noise = isinstance(question.noise, str)
        self.alarms: list[str] = []
        self.notes: tuple[str, ...] = ()
        X, y, mean = question.X, question.y, question.mean
        spread = X.std(axis=0, ddof=1)
        self.still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        # The user's own kernel means what it says only on the inputs as they are.
        self.x_offset = np.zeros(X.shape[1]) if self.own_kernel else X.mean(axis=0)
        self.x_scale = np.ones(X.shape[1]) if self.own_kernel else np.where(self.still, 1.0, spread)
        # A trend is near its least squares fit; numbers near that lose fewer digits.
        self.level: Array | float = mean.at(X, mean.least_squares(X, y)) if isinstance(mean, Trend) else 0.0
        if isinstance(mean, float):
            self.level = mean
        # With a known mean the process has to explain the distance from it, not only the spread.
        centre = float(y.mean()) if isinstance(mean, Mean) else self.level
        self.y_scale = float(np.sqrt(np.mean((y - centre) ** 2)))
        self.least_noise = max(LEAST_NOISE * float(np.var(y - self.level)) / self.y_scale**2, 1e-2 * NUGGET)
        self._build()

    def _build(self) -> None:
        X = torch.from_numpy((self.question.X - self.x_offset) / self.x_scale)
        y = torch.from_numpy((self.question.y - self.level) / self.y_scale)
        #: The modules of the kernels with names, and of the parts that have a variance.
        self.parts: dict[Named, Any] = {}
        self.scales: dict[KernelText, Any] = {}
        self.kernel, self.mean, self.likelihood = self._kernel(), self._mean(), self._likelihood()
        trend = self.question.mean
        profiled = isinstance(trend, Trend) and isinstance(self.mean, ZeroMean)
        self.basis = torch.from_numpy(trend.directions(self.question.X)) if profiled else None  # type: ignore[union-attr]
        model = GP(X, y, self.likelihood, self.mean, self.kernel).double()
        self.mll = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, model).double()
        self.mll.train()
        self.given = self.origin = copy.deepcopy(self.mll.state_dict())
        #: The periods that the rows show along a column, found when they are first asked for.
        self.shown: dict[int, tuple[float, ...]] = {}
        #: The parameters whose limits are known, and these.
        self.limits: dict[str, tuple[float, float]] = {}
        self.names = {id(parameter): name for name, parameter in self.mll.named_parameters()}
        if self.learns_noise:
            self.noise_name = self.names[id(self.likelihood.raw_noise)]
            self.limits[self.noise_name] = (self.least_noise, MOST_NOISE)
        for part, module in self.parts.items():
            for parameter in part.free:
                fitting = LENGTHSCALES if part.kind in RADIAL else SHAPES["lengthscale"]
                limits = fitting if parameter == "lengthscale" else SHAPES.get(parameter, LENGTHSCALES)
                self.limits[self._name_of(module, parameter)] = limits
        self.limits |= {self._name_of(module, "outputscale"): VARIANCES for module in self.scales.values()}

    def _name_of(self, module: Any, parameter: str) -> str:
        name: str = self.names[id(getattr(module, f"raw_{parameter}"))]
        return name

    def _positive(self) -> Positive:
        return Positive(transform=torch.exp, inv_transform=torch.log) if self.logarithmic else Positive()

    def _kernel(self) -> Kernel:
        kernel = self.question.kernel
        if isinstance(kernel, Kernel):
            own = copy.deepcopy(kernel).double().cpu()
            if self.logarithmic:
                _search_on_log_scale(own)
            scaled = ScaleKernel(own, outputscale_constraint=Positive(transform=None, inv_transform=None)).double()
            scaled.outputscale = torch.tensor(1.0 / self.y_scale**2, dtype=torch.float64)
            scaled.raw_outputscale.requires_grad_(False)
            return scaled

        def scale(found: Kernel, part: KernelText, relative: bool) -> Kernel:
            scaled = ScaleKernel(found, outputscale_constraint=self._positive()).double()
            self.scales[part] = scaled
            return scaled

        return assemble(kernel, self._part, scale, lambda kind, parts: COMPOSITES[kind](*parts))

    def _part(self, part: Named) -> Kernel:
        """A kernel with a name, on the common scale."""
        kind, columns = KINDS[part.kind], list(part.columns)
        options = {name: value for name, value in NAMES[part.name].tree.items() if name != "kind"}
        for parameter in kind.parameters if kind.constrained else ():
            # without a transform a parameter is the value itself
            fixed = Positive(transform=None, inv_transform=None)
            options[f"{parameter.name}_constraint"] = fixed if parameter.name in part.fixed else self._positive()
        module = kind.kernel(ard_num_dims=len(columns), **options).double()
        for parameter in kind.parameters:
            if parameter.name not in part.fixed:
                continue
            value = part.fixed[parameter.name]
            if parameter.unit:
                offset = self.x_offset[columns] if parameter.place else 0.0
                value = (value - offset) / self.x_scale[columns] ** parameter.unit
            shape = getattr(module, parameter.name).shape
            setattr(module, parameter.name, torch.from_numpy(np.atleast_1d(value)).reshape(shape))
            getattr(module, f"raw_{parameter.name}" if kind.constrained else parameter.name).requires_grad_(False)
        if part.columns != tuple(range(self.question.X.shape[1])):
            module.active_dims = torch.tensor(columns)
        self.parts[part] = module
        return module

    def _mean(self) -> Mean:
        mean = self.question.mean
        if isinstance(mean, Mean):
            offset, scale = torch.from_numpy(self.x_offset), torch.from_numpy(self.x_scale)
            return OwnMean(copy.deepcopy(mean).double().cpu(), offset, scale, self.y_scale)
        # Adam, as in the paper, takes steps in the constant too; elsewhere a trend follows from the kernel.
        stepped = isinstance(mean, Trend) and mean.degree == 0 and not self.logarithmic
        return ConstantMean().double() if stepped else ZeroMean()

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
        for part, module in self.scales.items():
            module.outputscale = 1.0 / len(self._terms()) if part in self._terms() else 1.0
        self._start_lengthscales(turn, stretch)
        self._start_periods(turn)

    def _terms(self) -> tuple[KernelText, ...]:
        """The terms that have a variance of their own, in the units of y."""
        kernel = self.question.kernel
        assert not isinstance(kernel, Kernel)
        return kernel.parts if isinstance(kernel, Joined) and kernel.kind == "sum" else (kernel,)

    def _slow(self) -> list[Named]:
        """What seasons are multiplied by."""
        return [part for term in self._terms() for part in _beside_a_season(term)]

    def _start_lengthscales(self, turn: int, stretch: float) -> None:
        """Terms of a sum start apart, and take turns; what a season is multiplied by starts slow."""
        slow = self._slow()
        free = [(part, module) for part, module in self.parts.items() if "lengthscale" in part.free]
        ladder = [part for part, _ in free if part.kind in RADIAL and part not in slow]
        for part, module in free:
            if part.kind not in RADIAL:
                module.lengthscale = 1.0
                continue
            width = math.sqrt(len(part.columns)) if self.logarithmic else 1.0
            if part in slow:
                module.lengthscale = SLOW * width
                continue
            rung = (len(ladder) - 1) / 2.0 - (ladder.index(part) + turn) % len(ladder)
            module.lengthscale = stretch * width * APART**rung
        for part, module in self.parts.items():
            if "alpha" in part.free:
                module.alpha = 1.0

    def _start_periods(self, turn: int) -> None:
        """Periods that are free start where the data show one, each at another, and stay near it."""
        seen: dict[int, int] = {}
        for part, module in self.parts.items():
            if "period_length" not in part.free:
                continue
            (column,) = part.columns
            shown = self._periods(column)
            place = seen.get(column, 0)
            seen[column] = place + 1
            period = shown[(place + turn) % len(shown)] / self.x_scale[column]
            module.period_length = period
            self.limits[self._name_of(module, "period_length")] = (period / NEAR_PERIOD, period * NEAR_PERIOD)

    def _periods(self, column: int) -> tuple[float, ...]:
        """The periods that the rows show along ``column``, in the units of X; guesses where they show none."""
        if column not in self.shown:
            X, y = self.question.X, self.question.y
            known = None if self.learns_noise or np.any(self.question.noise == 0.0) else self.question.noise
            self.shown[column] = periods_in(X[:, column], y - self.level, known)
            if not self.shown[column]:
                self.alarms.append(
                    f"no period stands out along {self.question.names[column]}, so that the fitted one may be chance; "
                    "give it, as in periodic(period=1)."
                )
                self.shown[column] = tuple(share * float(np.ptp(X[:, column])) for share in GUESSED_PERIODS)
        return self.shown[column]

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
        kernel = self.kernel if self.own_kernel else DifferentiableKernel(self.kernel)
        covariance = kernel(X).to_dense() + torch.diag(noise)
        value: torch.Tensor = LogDensity.apply(covariance, y - self.mean(X), self.basis)
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
            known = ("every value was given.",) if self.basis is None else ("kernel and noise were given.",)
            return self._fitted("nothing to fit" if self.basis is None else "least squares", True, 0, known)
        return self._by_lbfgs(restarts, bar) if adam is None else self._by_adam(adam, bar)

    def _by_lbfgs(self, restarts: int, bar: Progress) -> Fitted:
        """The best of several deterministic starts, each followed by L-BFGS-B to a maximum."""
        best, best_state, best_origin, best_limits, lost = math.inf, None, self.origin, self.limits, 0
        with _exact():
            for turn in range(restarts):
                bar.stage(f"fitting the prior, start {turn + 1} of {restarts}")
                self.start(turn)
                loss = self._descend()
                if not math.isfinite(loss):
                    lost += 1
                elif loss < best:
                    best, best_state, best_origin = loss, copy.deepcopy(self.mll.state_dict()), self.origin
                    best_limits = dict(self.limits)
            if best_state is None:
                raise InputError(
                    "no start gave a finite likelihood: the covariance of the data is not positive definite. Give "
                    'noise="learn" or a larger noise, or check the kernel.'
                )
            self.mll.load_state_dict(best_state)
            self.origin, self.limits = best_origin, best_limits
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
        notes += self.notes
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
            kernel = self.kernel.base_kernel if self.own_kernel else build_kernel(self._tree(), question.X.shape[1])
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

    def _tree(self) -> Tree:
        """The kernel that was found, in the user's units; what was given is as it was given."""
        kernel = self.question.kernel
        assert not isinstance(kernel, Kernel)

        def variance(part: KernelText, relative: bool) -> float:
            value = float(self.scales[part].outputscale.detach())
            return value if relative else value * self.y_scale**2

        def value(part: Named, parameter: str) -> Array:
            return self._value(part, self.parts[part], parameter)

        return kernel_tree(kernel, self.question.X.shape[1], value, variance)

    def _value(self, part: Named, module: Any, parameter: str) -> Array:
        """A parameter in the user's units."""
        value = getattr(module, parameter).detach().numpy().reshape(-1)
        unit = next(known.unit for known in KINDS[part.kind].parameters if known.name == parameter)
        return np.asarray(value * self.x_scale[list(part.columns)] ** unit if unit else value)

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
            (at_least,), (at_most,) = ended.pop(self.noise_name)
            value = float(self.likelihood.noise.detach()) * self.y_scale**2
            if at_least:
                say(
                    f"the noise ended at its lower limit ({value:.3g}): the data look free of noise. Give noise=0.0 or "
                    "the noise that you know."
                )
            if at_most:
                say(f"the noise ended at its upper limit ({value:.3g}); check y.")
        if self.own_kernel:
            for name in [name for name, (low, high) in ended.items() if any(low) or any(high)]:
                say(
                    f"{name.split('.')[-1].removeprefix('raw_')} of the kernel moved by a factor of 1e10 and was "
                    "stopped; start it closer to what fits the data, or fix it."
                )
            return
        for part, module in self.parts.items():
            for parameter in part.free:
                low, high = ended[self._name_of(module, parameter)]
                self._note_part(part, parameter, self._value(part, module, parameter), low, high)
        for term, module in self.scales.items():
            (at_least,), (at_most,) = ended[self._name_of(module, "outputscale")]
            if at_least or at_most:
                self._note_variance(term, float(module.outputscale.detach()) * self.y_scale**2, at_least)

    def _in(self, part: KernelText) -> str:
        """Which part of the kernel is spoken of; nothing where there is one only."""
        return "" if part is self.question.kernel else f" in {self._text(part)}"

    def _text(self, part: KernelText) -> str:
        return in_text(part, self.question.names)

    def _note_variance(self, part: KernelText, value: float, low: bool) -> None:
        of = f" of the term {self._text(part)}" if self._in(part) else ""
        lengthscales = any("lengthscale" in one.free for one in named_parts(part))
        remedy = "Give lengthscale, or use" if lengthscales else "Use"
        remedy = "Leave it out of the kernel" if low and of else f"{remedy} sf.Prior with values that you know"
        self.alarms.append(
            f"the variance{of} ended at its {'lower' if low else 'upper'} limit ({value:.3g}); the data do not "
            f"determine it. {remedy}."
        )

    def _note_part(self, part: Named, parameter: str, values: Array, low: list[bool], high: list[bool]) -> None:
        say, where = self.alarms.append, self._in(part)
        if parameter == "lengthscale" and part.kind in RADIAL:
            if part in self._slow() and all(high):
                self.notes += (f"the season does not change over the rows: leave {self._text(part)} beside it out.",)
                return
            for place, column in enumerate(part.columns):
                self._note_lengthscale(column, float(values[place]), low[place], high[place], where)
            return
        value = float(values[0])
        if parameter == "period_length" and (low[0] or high[0]):
            say(
                f"the period{where} ended at its limit ({value:.4g}), a factor of {NEAR_PERIOD:g} from the one that "
                "the data show; give it, as in periodic(period=1)."
            )
        elif parameter == "alpha" and high[0]:
            self.notes += (f"alpha{where} ended at its upper limit ({value:.3g}): rbf says the same in fewer words.",)
        elif parameter == "lengthscale" and high[0]:
            self.notes += (f"the season{where} is close to a plain sine wave (lengthscale {value:.3g}, its limit).",)
        elif low[0] or high[0]:
            say(f"{parameter}{where} ended at its {'lower' if low[0] else 'upper'} limit ({value:.3g}); give it.")

    def _note_lengthscale(self, column: int, value: float, low: bool, high: bool, where: str) -> None:
        name = self.question.names[column]
        if self.still[column]:
            self.alarms.append(
                f"column {name} is constant, so its lengthscale{where} ({value:.3g}) says nothing; leave the column "
                "out, or give lengthscale."
            )
        elif low:
            self.alarms.append(
                f"the lengthscale of {name}{where} ended at its lower limit ({value:.3g}): neighbouring rows look "
                "unrelated. Give lengthscale, or a larger noise."
            )
        elif high:
            instead = "Write linear there" if where else "Leave the column out"
            self.alarms.append(
                f"the lengthscale of {name}{where} ended at its upper limit ({value:.3g}): {name} shows no bend that "
                f"the kernel could use. {instead}, or give lengthscale."
            )


def _beside_a_season(term: KernelText) -> list[Named]:
    """The factors of a product that has a periodic kernel among them."""
    parts = named_parts(term)
    return parts if isinstance(term, Joined) and any(part.kind == "periodic" for part in parts) else []


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
