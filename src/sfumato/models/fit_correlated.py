"""Fitting outputs that are merely correlated: one kernel, a covariance between the outputs, and a noise for each.

All outputs are known at the same rows, so that the covariance of the data is ``B ⊗ K + D ⊗ I``: one eigendecomposition
of K and one of B̃ = D^{-1/2} B D^{-1/2} give the likelihood and its slopes, and p outputs cost no more than one.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import numpy as np
import scipy
import torch
from gpytorch.kernels import Kernel, ScaleKernel

from ..arrays import Array, is_number
from ..data import as_inputs, as_outputs, sample_places
from ..errors import FitWarning, InputError
from ..progress import AskedProgress, Progress
from ..progress import progress as progress_bar
from .fit import EXACT_ROWS, FEW_ROWS, FEW_STARTS, MORE_STARTS, checked_kernel, rows_outside, rows_to_fit
from .fit_search import (
    FLAT,
    LEAST_NOISE,
    MOST_NOISE,
    MOST_STARTS,
    NUGGET,
    ON_BOUND,
    START_LENGTHSCALES,
    START_NOISES,
    STEPS,
)
from .joint_prior import JointPrior
from .kernel_text import Joined, KernelText, with_trend_places
from .periods import periods_in
from .prior import Prior
from .searched_kernels import VARIANCES, OwnKernel, Scale, SearchedKernel, StartingPeriods, TextKernel
from .trends import DEGREES, Trend

#: Correlations between outputs start no closer to ±1 than this.
MOST_CORRELATED = 0.95


class OutputsLogDensity(torch.autograd.Function):
    """log N(vec R; 0, B ⊗ K + diag(d) ⊗ I) for residuals R, a column for each output, with its slopes written out."""

    @staticmethod
    def forward(ctx: Any, B: torch.Tensor, K: torch.Tensor, d: torch.Tensor, residuals: torch.Tensor) -> torch.Tensor:
        n, p = residuals.shape
        scale = d.rsqrt()
        shares, turn = torch.linalg.eigh(scale[:, None] * B * scale)
        sizes, Q = torch.linalg.eigh(K)
        # T and Q bring both parts to diagonal form: C⁻¹ = (T ⊗ Q) diag(G) (T ⊗ Q)ᵀ; below 0 there is round-off only
        T, shares, sizes = scale[:, None] * turn, shares.clamp_min(0.0), sizes.clamp_min(0.0)
        G = 1.0 / (sizes[:, None] * shares + 1.0)
        turned = Q.T @ residuals @ T
        ctx.save_for_backward(B, K, T, Q, shares, sizes, G, Q @ (G * turned) @ T.T)
        log_determinant = n * d.log().sum() - G.log().sum()
        value: torch.Tensor = -0.5 * ((G * turned * turned).sum() + log_determinant + n * p * math.log(2.0 * math.pi))
        return value

    @staticmethod
    def backward(ctx: Any, *up: torch.Tensor) -> tuple[torch.Tensor, ...]:
        B, K, T, Q, shares, sizes, G, weights = ctx.saved_tensors
        half = 0.5 * up[0]
        of_B = weights.T @ K @ weights - (T * (sizes @ G)) @ T.T
        of_K = weights @ B @ weights.T - (Q * (G @ shares)) @ Q.T
        of_d = (weights * weights).sum(0) - (T * T) @ G.sum(0)
        return half * of_B, half * of_K, half * of_d, -up[0] * weights


@dataclass(frozen=True, eq=False)
class _Asked:
    """Rows to fit and what is known: for each output a mean or a trend that is learnt, and a noise variance or None."""

    X: Array
    Y: Array
    names: tuple[str, ...]
    columns: tuple[str, ...]
    kernel: KernelText | Kernel
    means: tuple[float | Trend, ...]
    noises: tuple[float | None, ...]


def fit_correlated(
    X: Any,
    outputs: Mapping[str, Any],
    kernel: str | Kernel = "matern52",
    mean: Any = "constant",
    noise: Any = "learn",
    *,
    lengthscale: Any = None,
    exclude: Any = None,
    restarts: int | None = None,
    rows: int | None = None,
    progress: AskedProgress = True,
) -> JointPrior:
    """The most likely prior of outputs that go together, as in ``sf.JointPrior.coregionalised``, in the user's units.

    ``outputs`` maps names to values at the rows of X. They share one kernel k and any covariance B between them,
    ``Cov(f_i(x), f_j(x′)) = B[i, j] k(x, x′)``, and each has a mean and a noise of its own. ``kernel``, ``mean``,
    ``noise``, ``lengthscale``, ``exclude`` and ``rows`` are those of ``sf.fit_prior``, texts and published trends too;
    ``mean`` and ``noise`` may also map names to theirs. It is plain maximum likelihood, by L-BFGS-B from ``restarts``
    fixed starts.

    What it assumes: outputs are correlated at the same x, and equally smooth. The derivative of another output is
    neither; say that with ``sf.JointPrior.of`` or ``with_related``.

    What becomes public: all fitted values, B among them. With ``exclude=region`` no output has a part in the fit inside
    the region: what is known of one there tells of the others.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 61)
    >>> prices, wages = np.sin(2 * t), 3.0 + 2.0 * np.sin(2 * t) + 0.4 * np.cos(3 * t)
    >>> both = sf.fit_correlated(t, {"prices": prices, "wages": wages}, noise=0.01, exclude=sf.Box(1.0, 2.0))
    >>> both.outputs, both.noise
    (('prices', 'wages'), (0.01, 0.01))
    """
    inputs = as_inputs(X)
    if not isinstance(outputs, Mapping) or len(outputs) < 2:
        raise InputError(
            f"outputs is {str(outputs)[:60]!r}; give at least two outputs by name, as in "
            '{"infl": infl, "unemp": unemp}. For one output use sf.fit_prior.'
        )
    names = tuple(outputs)
    Y = np.stack([as_outputs(values, inputs, f"outputs[{name!r}]") for name, values in outputs.items()], axis=1)
    asked_kernel = checked_kernel(kernel, lengthscale, inputs)
    starts = (MORE_STARTS if isinstance(asked_kernel, Joined) else FEW_STARTS) if restarts is None else restarts
    if isinstance(starts, bool) or not isinstance(starts, int) or not 1 <= starts <= MOST_STARTS:
        raise InputError(f"restarts is {restarts!r}; give a whole number from 1 to {MOST_STARTS}.")
    used = rows_to_fit(rows_outside(exclude, inputs), rows)
    if rows is None and len(used) > EXACT_ROWS:
        said = f"outputs were fitted together to {FEW_ROWS} of {len(used)} rows, spread evenly; give rows= for others."
        warnings.warn(said, FitWarning, stacklevel=2)
        used = used[sample_places(len(used), FEW_ROWS)]
    fitted = inputs.values[used]
    asked = _Asked(
        X=fitted,
        Y=Y[used],
        names=names,
        columns=inputs.names,
        kernel=asked_kernel if isinstance(asked_kernel, Kernel) else with_trend_places(asked_kernel, fitted),
        means=tuple(_checked_mean(name, value, fitted) for name, value in _by_name(mean, names, "mean").items()),
        noises=tuple(_checked_noise(name, value) for name, value in _by_name(noise, names, "noise").items()),
    )
    for name, column in zip(names, asked.Y.T, strict=True):
        if np.ptp(column) <= 4 * np.finfo(float).eps * np.abs(column).max():
            raise InputError(f"outputs[{name!r}] is constant ({column[0]:g} in all rows); leave it out.")
    with progress_bar(progress) as bar:
        joint, alarms = _Search(asked).run(starts, bar)
    for alarm in alarms:
        warnings.warn(alarm, FitWarning, stacklevel=2)
    return replace(joint, encoding=inputs.encoding)


class _Search:
    """One question on a common scale: outputs with variance 1, and columns too unless the kernel is the user's."""

    def __init__(self, asked: _Asked) -> None:
        self.asked, self.alarms = asked, list[str]()
        X, Y = asked.X, asked.Y
        own, spread = isinstance(asked.kernel, Kernel), X.std(axis=0, ddof=1)
        still = spread <= 1e-12 * np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        self.scale = Scale(
            names=asked.columns,
            offset=np.zeros(X.shape[1]) if own else X.mean(axis=0),
            spread=np.ones(X.shape[1]) if own else np.where(still, 1.0, spread),
            still=still,
            y_scale=1.0,  # B has the variances of the outputs
        )
        #: Coefficients of the trends near which they are searched.
        self.near = [
            mean.least_squares(X, y) if isinstance(mean, Trend) else None
            for mean, y in zip(asked.means, Y.T, strict=True)
        ]
        self.levels = np.stack([self._level(i) for i in range(len(asked.names))], axis=1)
        self.scales = np.sqrt(np.mean((Y - self.levels) ** 2, axis=0))
        self.X = torch.from_numpy((X - self.scale.offset) / self.scale.spread)
        self.Y = torch.from_numpy((Y - self.levels) / self.scales)
        self.searched = self._searched()
        self.given = copy.deepcopy(self.searched.kernel.state_dict())
        count = len(asked.names)
        self.below = torch.tril_indices(count, count, -1)
        learns = [value is None for value in asked.noises]
        known = [max(NUGGET, (value or 0.0) / scale**2) for value, scale in zip(asked.noises, self.scales, strict=True)]
        self.known_noise, self.learns_noise = torch.tensor(known, dtype=torch.float64), torch.tensor(learns)
        #: What is searched besides the kernel: W, which is lower triangular, with the logarithms of its diagonal; the
        #: noise; and what is added to the trends.
        self.diagonal = torch.zeros(count, dtype=torch.float64, requires_grad=True)
        self.lower = torch.zeros(self.below.shape[1], dtype=torch.float64, requires_grad=True)
        self.log_noise = torch.zeros(count, dtype=torch.float64, requires_grad=True)
        self.features = [mean.features(X) if isinstance(mean, Trend) else np.zeros((len(X), 0)) for mean in asked.means]
        self.shifts = [torch.zeros(part.shape[1], dtype=torch.float64, requires_grad=True) for part in self.features]

    def _level(self, output: int) -> Array:
        """The mean of an output at the rows, or a trend near it."""
        mean, near = self.asked.means[output], self.near[output]
        if isinstance(mean, Trend) and near is not None:
            return mean.at(self.asked.X, near)
        return np.full(len(self.asked.X), mean)

    def _searched(self) -> SearchedKernel:
        """The kernel between inputs; one of its variances is fixed, because B has them."""
        kernel = self.asked.kernel
        if isinstance(kernel, Kernel):
            return OwnKernel(kernel, self.X, 1.0, True)
        periods = StartingPeriods(self.asked.X, self.asked.columns, self._scan, self.alarms.append)
        found = TextKernel(kernel, self.scale, periods, True)
        terms = kernel.parts if isinstance(kernel, Joined) and kernel.kind == "sum" else (kernel,)
        found.scales[terms[0]].raw_outputscale.requires_grad_(False)
        return found

    def _scan(self, column: int) -> list[float]:
        """The periods that any output shows along ``column``."""
        x = self.asked.X[:, column]
        return [period for y in self.Y.numpy().T for period in periods_in(x, y, None)]

    # ------------------------------------------------------------ what is free

    def _free(self) -> list[tuple[torch.Tensor, tuple[float, float]]]:
        """The free tensors with their bounds on the scale that they are searched on."""
        known, free = self.searched.bounds(), (-math.inf, math.inf)
        parameters = [one for one in self.searched.kernel.parameters() if one.requires_grad]
        found: list[tuple[torch.Tensor, tuple[float, float]]] = [(one, known.get(id(one), free)) for one in parameters]
        sides = (0.5 * math.log(VARIANCES[0]), 0.5 * math.log(VARIANCES[1]))
        noises = (math.log(LEAST_NOISE), math.log(MOST_NOISE))
        found += [(self.diagonal, sides), (self.lower, free), (self.log_noise, noises)]
        return [*found, *((one, free) for one in self.shifts)]

    def _start(self, turn: int) -> None:
        """Correlations between outputs as in the rows; the kernel and the noise of start ``turn``."""
        self.searched.kernel.load_state_dict(self.given)
        self.searched.start(turn, START_LENGTHSCALES[turn % len(START_LENGTHSCALES)])
        noise = START_NOISES[turn % len(START_NOISES)]
        correlations = np.clip(np.corrcoef(self.Y.numpy().T), -MOST_CORRELATED, MOST_CORRELATED)
        np.fill_diagonal(correlations, 1.0)
        values, vectors = np.linalg.eigh(correlations)
        # clipped correlations need not be a covariance
        repaired = (vectors * np.maximum(values, 1.0 - MOST_CORRELATED)) @ vectors.T
        root = torch.from_numpy(np.linalg.cholesky(repaired))
        with torch.no_grad():
            self.diagonal.copy_(root.diagonal().log())
            self.lower.copy_(root[self.below[0], self.below[1]])
            self.log_noise.fill_(math.log(max(noise, 2 * LEAST_NOISE)))
            for shift in self.shifts:
                shift.zero_()

    def _factor(self) -> torch.Tensor:
        factor = torch.diag(self.diagonal.exp())
        return factor.index_put((self.below[0], self.below[1]), self.lower)

    def _noise(self) -> torch.Tensor:
        return torch.where(self.learns_noise, self.log_noise.exp(), self.known_noise)

    def loss(self) -> torch.Tensor:
        """Minus the log likelihood for each number of the data."""
        factor = self._factor()
        shifts = [torch.from_numpy(part) @ shift for part, shift in zip(self.features, self.shifts, strict=True)]
        residuals = self.Y - torch.stack(shifts, dim=1)
        K = self.searched.covariance(self.X, self.X)
        value: torch.Tensor = OutputsLogDensity.apply(factor @ factor.T, K, self._noise(), residuals)
        return -value / self.Y.numel()

    # ------------------------------------------------------------ the search

    def run(self, starts: int, bar: Progress) -> tuple[JointPrior, list[str]]:
        best, at, bounds = math.inf, None, list[tuple[float, float]]()
        exact = gpytorch.settings.lazily_evaluate_kernels(False)
        with exact, torch.enable_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for turn in range(starts):
                bar.stage(f"fitting {len(self.asked.names)} outputs together, start {turn + 1} of {starts}")
                self._start(turn)
                free = self._free()
                start = np.concatenate([one.detach().reshape(-1).numpy() for one, _ in free])
                limits = [pair for one, pair in free for _ in range(one.numel())]
                options = {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-6}
                found = scipy.optimize.minimize(
                    self._value_and_slopes, start, jac=True, method="L-BFGS-B", bounds=limits, options=options
                )
                if math.isfinite(found.fun) and found.fun < best:
                    best, at, bounds = float(found.fun), found.x, limits
            if at is None:
                raise InputError("no start gave a finite likelihood; check the kernel, or give a larger noise.")
            _, slopes = self._value_and_slopes(at)
        return self._joint(), self._remarks(at, slopes, bounds)

    def _value_and_slopes(self, vector: Array) -> tuple[float, Array]:
        free, place = [one for one, _ in self._free()], 0
        with torch.no_grad():
            for one in free:
                one.copy_(torch.from_numpy(vector[place : place + one.numel()]).reshape(one.shape))
                one.grad = None
                place += one.numel()
        try:
            loss = self.loss()
            loss.backward()
        except (RuntimeError, ValueError):  # an eigendecomposition that does not converge
            return math.inf, np.zeros(len(vector))
        slopes = [torch.zeros_like(one) if one.grad is None else one.grad for one in free]
        return float(loss.detach()), np.concatenate([slope.reshape(-1).numpy() for slope in slopes])

    def _remarks(self, at: Array, slopes: Array, bounds: Sequence[tuple[float, float]]) -> list[str]:
        lows, highs = np.array(bounds).T
        low, high = at <= lows + ON_BOUND, at >= highs - ON_BOUND
        blocked = (low & (slopes > 0)) | (high & (slopes < 0))
        steepest = float(np.abs(np.where(blocked, 0.0, slopes)).max())
        if steepest > FLAT:
            self.alarms.append(
                f"the search for outputs that go together stopped before a maximum (largest slope {steepest:.2g} a "
                "row); try more restarts or another kernel."
            )
        ended, place = {}, 0
        for one in self.searched.kernel.parameters():
            if one.requires_grad:
                span = slice(place, place + one.numel())
                ended[id(one)] = (low[span].tolist(), high[span].tolist())
                place += one.numel()
            else:
                ended[id(one)] = ([False] * one.numel(), [False] * one.numel())
        return [*self.alarms, *self.searched.remarks(ended).alarms]

    # ------------------------------------------------------------ the way back

    def _joint(self) -> JointPrior:
        asked = self.asked
        with torch.no_grad():
            factor, noise = self._factor().numpy(), self._noise().numpy()
            kernel = self.searched.found()
        mixing = self.scales[:, None] * factor
        if isinstance(kernel, ScaleKernel):  # B has the variance
            mixing, kernel = mixing * math.sqrt(float(kernel.outputscale)), kernel.base_kernel
        means: dict[str, Any] = {}
        noises = {}
        for i, (name, mean, given) in enumerate(zip(asked.names, asked.means, asked.noises, strict=True)):
            near = self.near[i]
            if isinstance(mean, Trend) and near is not None:
                means[name] = mean.mean(near + self.scales[i] * self.shifts[i].detach().numpy())
            else:
                means[name] = mean
            noises[name] = float(noise[i] * self.scales[i] ** 2) if given is None else given
        return JointPrior.coregionalised(Prior(kernel), mixing @ mixing.T, asked.names, means, noises)


# ---------------------------------------------------------------- one value for all outputs, or one for each


def _by_name(given: Any, names: tuple[str, ...], what: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if missing or unknown:
        raise InputError(
            f"{what} names {', '.join(map(str, given))}, but the outputs are {', '.join(names)}; give one for each."
        )
    return {name: given[name] for name in names}


def _checked_mean(name: str, mean: Any, rows: Array) -> float | Trend:
    degrees = {"constant": 0, **DEGREES}
    if isinstance(mean, str) and mean in degrees:
        return Trend.of(degrees[mean], rows)
    if isinstance(mean, str) and mean == "zero":
        return 0.0
    if is_number(mean):
        return float(mean)
    known = ", ".join(f'"{word}"' for word in ("zero", *degrees))
    raise InputError(f"mean of {name!r} is {str(mean)[:60]!r}; give {known} or a number.")


def _checked_noise(name: str, noise: Any) -> float | None:
    if noise == "learn":
        return None
    if is_number(noise) and noise >= 0:
        return float(noise)
    raise InputError(f'noise of {name!r} is {str(noise)[:60]!r}; give "learn" or a variance ≥ 0.')
