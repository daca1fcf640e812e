"""Fitting outputs that are merely correlated: one kernel, a covariance between the outputs, and a noise for each.

All outputs are known at the same rows, so that the covariance of the data is ``B ⊗ K + D ⊗ I``: one eigendecomposition
of K and one of B̃ = D^{-1/2} B D^{-1/2} give the likelihood and its slopes, and p outputs cost no more than one.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import scipy.optimize
import torch
from gpytorch.kernels import Kernel

from ..arrays import Array, is_number
from ..data import as_inputs, as_outputs
from ..errors import FitWarning, InputError
from ..progress import Progress
from ..progress import progress as progress_bar
from .fit import checked_kernel, rows_outside
from .fit_search import (
    FLAT,
    LEAST_NOISE,
    MOST_NOISE,
    NUGGET,
    START_LENGTHSCALES,
    START_NOISES,
    STEPS,
)
from .joint_prior import JointPrior
from .kernel_kinds import KINDS
from .kernel_text import NAMES, KernelText, Named
from .prior import Prior
from .searched_kernels import LENGTHSCALES, VARIANCES
from .trees import build_kernel

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


@dataclass(frozen=True)
class _Asked:
    """Rows to fit and what is known: for each output a mean and a noise variance, None where they are learnt."""

    X: Array
    Y: Array
    names: tuple[str, ...]
    columns: tuple[str, ...]
    kernel: str | Kernel
    means: tuple[float | None, ...]
    noises: tuple[float | None, ...]
    lengthscale: Array | None


def fit_correlated(
    X: Any,
    outputs: Mapping[str, Any],
    kernel: str | Kernel = "rbf",
    mean: Any = "constant",
    noise: Any = "learn",
    *,
    lengthscale: Any = None,
    exclude: Any = None,
    restarts: int = 3,
    progress: bool = False,
) -> JointPrior:
    """The most likely prior of outputs that go together, as in ``sf.JointPrior.coregionalised``, in the user's units.

    ``outputs`` maps names to values at the rows of X. They share one kernel k and any covariance B between them,
    ``Cov(f_i(x), f_j(x′)) = B[i, j] k(x, x′)``, and each has a mean and a noise of its own. ``kernel``, ``mean``,
    ``noise``, ``lengthscale`` and ``exclude`` are those of ``sf.fit_prior``; ``mean`` and ``noise`` may also map names
    to theirs. It is plain maximum likelihood, by L-BFGS-B from ``restarts`` fixed starts.

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
    own, lengthscales = _one_kernel(kernel, checked_kernel(kernel, lengthscale, inputs), inputs.dimension)
    if isinstance(restarts, bool) or not isinstance(restarts, int) or not 1 <= restarts <= len(START_LENGTHSCALES):
        raise InputError(f"restarts is {restarts!r}; give a whole number from 1 to {len(START_LENGTHSCALES)}.")
    keep = rows_outside(exclude, inputs)
    asked = _Asked(
        X=inputs.values[keep],
        Y=Y[keep],
        names=names,
        columns=inputs.names,
        kernel=own,
        means=tuple(_checked_mean(name, value) for name, value in _by_name(mean, names, "mean").items()),
        noises=tuple(_checked_noise(name, value) for name, value in _by_name(noise, names, "noise").items()),
        lengthscale=lengthscales,
    )
    for name, column in zip(names, asked.Y.T, strict=True):
        if np.ptp(column) <= 4 * np.finfo(float).eps * np.abs(column).max():
            raise InputError(f"outputs[{name!r}] is constant ({column[0]:g} in all rows); leave it out.")
    with progress_bar(progress) as bar:
        joint, alarms = _Search(asked).run(restarts, bar)
    for alarm in alarms:
        warnings.warn(alarm, FitWarning, stacklevel=2)
    return joint


class _Search:
    """One question on a common scale: outputs with variance 1, and columns too unless the kernel is the user's."""

    def __init__(self, asked: _Asked) -> None:
        self.asked = asked
        X, Y = asked.X, asked.Y
        own, spread = isinstance(asked.kernel, Kernel), X.std(axis=0, ddof=1)
        self.x_scale = np.ones(X.shape[1]) if own else np.where(spread > 0.0, spread, 1.0)
        self.offsets = np.array([y.mean() if m is None else m for y, m in zip(Y.T, asked.means, strict=True)])
        self.scales = np.sqrt(np.mean((Y - self.offsets) ** 2, axis=0))
        self.X = torch.from_numpy((X - (0.0 if own else X.mean(axis=0))) / self.x_scale)
        self.Y = torch.from_numpy((Y - self.offsets) / self.scales)
        self.kernel = self._kernel()
        self.given = copy.deepcopy(self.kernel.state_dict())
        count = len(asked.names)
        self.below = torch.tril_indices(count, count, -1)
        learns = [value is None for value in asked.noises]
        known = [max(NUGGET, (value or 0.0) / scale**2) for value, scale in zip(asked.noises, self.scales, strict=True)]
        self.known_noise, self.learns_noise = torch.tensor(known, dtype=torch.float64), torch.tensor(learns)
        self.learns_mean = torch.tensor([value is None for value in asked.means])
        #: What is searched, in the order of the vector: W is lower triangular, with the logarithms of its diagonal.
        self.diagonal = torch.zeros(count, dtype=torch.float64, requires_grad=True)
        self.lower = torch.zeros(self.below.shape[1], dtype=torch.float64, requires_grad=True)
        self.log_noise = torch.zeros(count, dtype=torch.float64, requires_grad=True)
        self.shift = torch.zeros(count, dtype=torch.float64, requires_grad=True)

    def _kernel(self) -> Kernel:
        """The kernel between inputs, with variance 1 where it has a name: B has the variances."""
        asked = self.asked
        if isinstance(asked.kernel, Kernel):
            return copy.deepcopy(asked.kernel).double().cpu()
        kind, *settings = NAMES[asked.kernel].tree.items()
        positive = gpytorch.constraints.Positive(transform=torch.exp, inv_transform=torch.log)
        options = {"ard_num_dims": asked.X.shape[1], "lengthscale_constraint": positive, **dict(settings)}
        kernel: Kernel = KINDS[kind[1]].kernel(**options).double()
        if asked.lengthscale is not None:
            kernel.lengthscale = torch.from_numpy(asked.lengthscale / self.x_scale)
            kernel.raw_lengthscale.requires_grad_(False)
        return kernel

    # ------------------------------------------------------------ what is free

    def _free(self) -> list[tuple[torch.Tensor, tuple[float, float]]]:
        """The free tensors with their bounds on the scale that they are searched on."""
        named = isinstance(self.asked.kernel, str)
        bounds = (math.log(LENGTHSCALES[0]), math.log(LENGTHSCALES[1])) if named else (-math.inf, math.inf)
        found = [(one, bounds) for one in self.kernel.parameters() if one.requires_grad]
        sides = (0.5 * math.log(VARIANCES[0]), 0.5 * math.log(VARIANCES[1]))
        noises = (math.log(LEAST_NOISE), math.log(MOST_NOISE))
        free = (-math.inf, math.inf)
        return [*found, (self.diagonal, sides), (self.lower, free), (self.log_noise, noises), (self.shift, free)]

    def _start(self, turn: int) -> None:
        """Correlations between outputs as in the rows; lengthscales and noise of start ``turn``."""
        self.kernel.load_state_dict(self.given)
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
            self.shift.zero_()
            if isinstance(self.asked.kernel, str) and self.asked.lengthscale is None:
                stretch = START_LENGTHSCALES[turn % len(START_LENGTHSCALES)]
                self.kernel.lengthscale = stretch * math.sqrt(self.asked.X.shape[1])

    def _factor(self) -> torch.Tensor:
        factor = torch.diag(self.diagonal.exp())
        return factor.index_put((self.below[0], self.below[1]), self.lower)

    def _noise(self) -> torch.Tensor:
        return torch.where(self.learns_noise, self.log_noise.exp(), self.known_noise)

    def loss(self) -> torch.Tensor:
        """Minus the log likelihood for each number of the data."""
        factor = self._factor()
        residuals = self.Y - torch.where(self.learns_mean, self.shift, 0.0)
        K = self.kernel(self.X).to_dense()
        value: torch.Tensor = OutputsLogDensity.apply(factor @ factor.T, K, self._noise(), residuals)
        return -value / self.Y.numel()

    # ------------------------------------------------------------ the search

    def run(self, restarts: int, bar: Progress) -> tuple[JointPrior, list[str]]:
        free = self._free()
        bounds = [pair for one, pair in free for _ in range(one.numel())]
        best, at = math.inf, None
        exact = gpytorch.settings.lazily_evaluate_kernels(False)
        with exact, torch.enable_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            for turn in range(restarts):
                bar.stage(f"fitting {len(self.asked.names)} outputs together, start {turn + 1} of {restarts}")
                self._start(turn)
                start = np.concatenate([one.detach().reshape(-1).numpy() for one, _ in free])
                options = {"maxiter": STEPS, "ftol": 1e-12, "gtol": 1e-6}
                found = scipy.optimize.minimize(
                    self._value_and_slopes, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
                )
                if math.isfinite(found.fun) and found.fun < best:
                    best, at = float(found.fun), found.x
            if at is None:
                raise InputError("no start gave a finite likelihood; check the kernel, or give a larger noise.")
            _, slopes = self._value_and_slopes(at)
        return self._joint(), self._alarms(at, slopes, bounds)

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

    def _alarms(self, at: Array, slopes: Array, bounds: Sequence[tuple[float, float]]) -> list[str]:
        lows, highs = np.array(bounds).T
        blocked = ((at <= lows + 1e-3) & (slopes > 0)) | ((at >= highs - 1e-3) & (slopes < 0))
        steepest = float(np.abs(np.where(blocked, 0.0, slopes)).max())
        alarms = []
        if steepest > FLAT:
            alarms.append(
                f"the search for outputs that go together stopped before a maximum (largest slope {steepest:.2g} a "
                "row); try more restarts or another kernel."
            )
        if isinstance(self.asked.kernel, str) and self.asked.lengthscale is None:
            ends = np.array([LENGTHSCALES]) * self.x_scale[:, None]
            for name, value, (low, high) in zip(self.asked.columns, self._lengthscales(), ends, strict=True):
                if not 1.01 * low < value < 0.99 * high:
                    alarms.append(
                        f"the lengthscale of {name} ended at a limit ({value:.3g}): the data do not determine it. Give "
                        "lengthscale."
                    )
        return alarms

    # ------------------------------------------------------------ the way back

    def _lengthscales(self) -> Array:
        scaled: Any = self.kernel.lengthscale
        return np.asarray(scaled.detach().numpy().reshape(-1) * self.x_scale)

    def _joint(self) -> JointPrior:
        asked = self.asked
        with torch.no_grad():
            factor, noise, shift = self._factor().numpy(), self._noise().numpy(), self.shift.numpy()
        mixing = self.scales[:, None] * factor
        own: Kernel = self.kernel
        if isinstance(asked.kernel, str):
            own = build_kernel({**NAMES[asked.kernel].tree, "lengthscale": [float(v) for v in self._lengthscales()]})
        found = zip(asked.names, asked.means, asked.noises, range(len(asked.names)), strict=True)
        means, noises = {}, {}
        for name, mean, given, i in found:
            means[name] = float(self.offsets[i] + self.scales[i] * shift[i]) if mean is None else mean
            noises[name] = float(noise[i] * self.scales[i] ** 2) if given is None else given
        return JointPrior.coregionalised(Prior(own), mixing @ mixing.T, asked.names, means, noises)


def _one_kernel(given: Any, kernel: KernelText | Kernel, columns: int) -> tuple[str | Kernel, Array | None]:
    """A kernel of the user's, or the name of one on all columns and its lengthscales where they are given."""
    if isinstance(kernel, Kernel):
        return kernel, None
    if not isinstance(kernel, Named) or kernel.kind not in ("rbf", "matern") or kernel.columns != tuple(range(columns)):
        raise InputError(
            f"kernel is {given!r}; outputs that go together share one of rbf, matern12, matern32, matern52 on all "
            "columns, or a GPyTorch kernel."
        )
    return kernel.name, kernel.given.get("lengthscale")


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


def _checked_mean(name: str, mean: Any) -> float | None:
    if mean == "constant":
        return None
    if mean == "zero":
        return 0.0
    if is_number(mean):
        return float(mean)
    raise InputError(f'mean of {name!r} is {str(mean)[:60]!r}; give "constant", "zero" or a number.')


def _checked_noise(name: str, noise: Any) -> float | None:
    if noise == "learn":
        return None
    if is_number(noise) and noise >= 0:
        return float(noise)
    raise InputError(f'noise of {name!r} is {str(noise)[:60]!r}; give "learn" or a variance ≥ 0.')
