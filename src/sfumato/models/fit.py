"""Fitting a prior: the mean, the kernel and the noise that make the data most likely."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..arrays import Array, Mask, is_number
from ..data import Inputs, as_inputs, as_outputs
from ..errors import FitWarning, InputError
from ..linalg import Whitening
from ..progress import progress as progress_bar
from .fit_search import KERNELS, MOST_STARTS, Adam, Fitted, Question, Search, named_kernel
from .prior import Prior
from .trees import build_kernel

OPTIMIZERS = ("auto", "lbfgs", "adam")

#: Below this share of y the closed form counts what the kernel cannot follow as round-off.
UNEXPLAINED = 1e-6


@dataclass(frozen=True)
class FitReport:
    """How a prior was fitted and how far its values can be trusted."""

    method: str
    log_likelihood: float
    converged: bool
    messages: tuple[str, ...]
    restarts: int
    rows_used: int
    rows_excluded: int

    def __str__(self) -> str:
        rows = f"{self.rows_used} rows"
        if self.rows_excluded:
            rows += f" ({self.rows_excluded} excluded)"
        state = "converged" if self.converged else "not converged"
        starts = f", {self.restarts} starts" if self.restarts > 1 else ""
        head = f"fitted by {self.method} to {rows}{starts}: {state}, log likelihood {self.log_likelihood:.6g}"
        return "\n".join([head, *(f"  - {message}" for message in self.messages)])


def fit_prior(
    X: Any,
    y: Any,
    kernel: str | Kernel = "rbf",
    mean: str | float | Mean = "constant",
    noise: Any = "learn",
    *,
    lengthscale: Any = None,
    exclude: Any = None,
    optimizer: str = "auto",
    epochs: int | None = None,
    learning_rate: float = 0.1,
    decay: tuple[int, float] | None = None,
    weight_decay: float = 0.0,
    restarts: int = 3,
    progress: bool = False,
) -> Prior:
    """The prior under which ``y`` at ``X`` is most likely, in the user's units.

    ``kernel``: "rbf", "matern12", "matern32", "matern52" (one lengthscale for each column, and a variance), or a
    GPyTorch kernel, whose parameters with ``requires_grad`` are fitted from where they are, on a copy.
    ``mean``: "constant" (learnt), "zero", a number, or a GPyTorch mean. ``noise``: "learn", one variance, or one for
    each row. ``lengthscale`` fixes the lengthscales. It is plain maximum likelihood: no hidden priors.

    How: where only the mean and the variance are open (a named kernel, ``lengthscale`` given, ``noise=0.0``) there is
    a closed form. Otherwise L-BFGS-B from ``restarts`` fixed starts; X and y are standardised for the search, except
    that a kernel of your own sees X as it is. ``optimizer="adam"`` takes ``epochs`` plain steps, as in the paper's
    census study (``decay=(10, 0.1)`` and ``weight_decay=1e-4`` are its schedule).
    ``prior.fit_report`` tells how it went; a fit that ends on a bound or short of a maximum is a ``FitWarning``.

    What becomes public: the fitted values are published with every release, and they were learnt from ``y``.
    With ``exclude=region`` the rows inside the region have no part in the fit, so that the values tell nothing of them.

    >>> import numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 61)
    >>> prior = sf.fit_prior(t, np.sin(2 * np.pi * t), lengthscale=0.05, noise=0.0)
    >>> print(prior.fit_report)
    fitted by closed form to 61 rows: converged, log likelihood ...
    >>> prior = sf.fit_prior(t, np.sin(2 * np.pi * t), lengthscale=0.05, noise=0.0, exclude=sf.Box(1.0, 2.0))
    >>> prior.fit_report.rows_excluded
    21
    """
    inputs = as_inputs(X)
    outputs = as_outputs(y, inputs)
    kernel, mean = checked_kernel(kernel, inputs), _checked_mean(mean, inputs)
    noise = _checked_noise(noise, inputs)
    lengthscales = checked_lengthscale(lengthscale, kernel, inputs)
    adam = _checked_adam(optimizer, epochs, learning_rate, decay, weight_decay)
    _require(
        _is_whole(restarts) and 1 <= restarts <= MOST_STARTS,
        f"restarts is {restarts!r}; give a whole number from 1 to {MOST_STARTS}.",
    )
    keep = rows_outside(exclude, inputs)
    question = Question(
        X=inputs.values[keep],
        y=outputs[keep],
        names=inputs.names,
        kernel=kernel,
        mean=mean,
        noise=noise if isinstance(noise, str) else np.broadcast_to(noise, len(inputs))[keep],
        lengthscale=lengthscales,
    )
    _check_outputs(question)
    noiseless = not isinstance(noise, str) and noise.ndim == 0 and float(noise) == 0.0
    named = isinstance(kernel, str) and not isinstance(mean, Mean)
    if optimizer == "auto" and named and lengthscales is not None and noiseless:
        fitted = _by_closed_form(question)
    else:
        with progress_bar(progress) as bar:
            fitted = Search(question, logarithmic=adam is None).run(adam, int(restarts), bar)
    prior = fitted.prior
    likelihood, note = _log_likelihood(prior, question)
    report = FitReport(
        method=fitted.method,
        log_likelihood=likelihood,
        converged=fitted.converged,
        messages=(*fitted.alarms, *fitted.notes, *note),
        restarts=fitted.starts,
        rows_used=int(keep.sum()),
        rows_excluded=int((~keep).sum()),
    )
    for alarm in fitted.alarms:
        warnings.warn(alarm, FitWarning, stacklevel=2)
    return Prior(prior.kernel, prior.mean, prior.noise if isinstance(noise, str) else noise, fit_report=report)


def _by_closed_form(question: Question) -> Fitted:
    """β = 1ᵀC⁻¹y / 1ᵀC⁻¹1 and σ² = (y−β)ᵀC⁻¹(y−β) / rank C, with C the correlations of the data.

    Where C is singular to working precision, C⁻¹ is taken on the directions above the cutoff; for a regular C
    the rank is the number of rows.
    """
    assert isinstance(question.kernel, str)
    assert question.lengthscale is not None
    _check_repeated_rows(question)
    y, n = question.y, len(question.y)
    correlation = Prior(named_kernel(question.kernel, question.lengthscale, 1.0)).covariance(question.X)
    whiten = Whitening.of(correlation)
    # Numbers near their mean lose fewer digits.
    centre = float(y.mean()) if question.mean == "constant" else float(question.mean)
    residual = y - centre
    if question.mean == "constant":
        ones, values = whiten.apply(np.ones(n)), whiten.apply(residual)
        shift = float(ones @ values) / float(ones @ ones)
        centre, residual = centre + shift, residual - shift
    white = whiten.apply(residual)
    variance = float(white @ white) / whiten.rank
    if not variance > 0.0 or not math.isfinite(variance):
        raise InputError(
            f"y equals the mean {centre:g} in all {n} rows, so its variance cannot be fitted; give the variance "
            "yourself with sf.Prior(kernel=..., mean=...)."
        )
    notes, alarms = [], []
    if whiten.rank < n:
        notes.append(
            f"the correlation matrix of the {n} rows is singular to working precision: {whiten.rank} directions with "
            "eigenvalues above n · 2.2e-16 of the largest were used."
        )
        unexplained = float(np.linalg.norm(whiten.leftover(residual)) / np.linalg.norm(residual))
        if unexplained > UNEXPLAINED:
            alarms.append(
                f"the kernel cannot follow the data: a share {unexplained:.2g} of y lies in directions that it leaves "
                'no room for. Give a shorter lengthscale, or noise="learn".'
            )
    kernel = named_kernel(question.kernel, question.lengthscale, variance)
    return Fitted(Prior(kernel, centre, 0.0), "closed form", not alarms, tuple(alarms), tuple(notes))


def _log_likelihood(prior: Prior, question: Question) -> tuple[float, tuple[str, ...]]:
    """The log density of y under ``prior``, whose noise belongs to the fitted rows."""
    n = len(question.y)
    whiten = Whitening.of(prior.covariance(question.X) + np.diag(prior.noise_variance(n)))
    white = whiten.apply(question.y - prior.mean_at(question.X))
    density = -0.5 * (float(white @ white) + whiten.log_determinant + whiten.rank * math.log(2.0 * math.pi))
    note = (f"the log likelihood counts {whiten.rank} of {n} directions.",) if whiten.rank < n else ()
    return density, note


# ---------------------------------------------------------------- the arguments, checked before any work is done


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise InputError(message)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _tried(what: str, evaluate: Callable[[Array], Array], inputs: Inputs, remedy: str) -> Array:
    """A kernel or a mean of the user's at two rows, before any long work."""
    try:
        return evaluate(inputs.values[:2])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise InputError(
            f"{what} cannot be evaluated on the {inputs.dimension} column(s) of X ({str(error).splitlines()[0]}); "
            f"{remedy}"
        ) from error


def checked_kernel(kernel: Any, inputs: Inputs) -> str | Kernel:
    if isinstance(kernel, str) and kernel in KERNELS:
        return kernel
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}; give one of {', '.join(map(repr, KERNELS))} or a GPyTorch kernel.")
    _tried("kernel", Prior(kernel).covariance, inputs, "check its active_dims and ard_num_dims.")
    return kernel


def _checked_mean(mean: Any, inputs: Inputs) -> str | float | Mean:
    if isinstance(mean, str) and mean in ("constant", "zero"):
        return mean if mean == "constant" else 0.0
    if is_number(mean):
        return float(mean)
    if not isinstance(mean, Mean):
        raise InputError(f'mean is {mean!r}; give "constant", "zero", a finite number or a GPyTorch mean.')
    prior = Prior(build_kernel({"kind": "constant", "constant": 1.0}), mean)
    values = _tried("mean", prior.mean_at, inputs, "give it the size of X.")
    _require(values.shape == (min(2, len(inputs)),), "mean is a batch of means; give one.")
    return mean


def _checked_noise(noise: Any, rows: Inputs) -> str | Array:
    if isinstance(noise, str):
        _require(noise == "learn", f'noise is {noise!r}; give "learn", a variance ≥ 0, or one for each row of X.')
        return noise
    if isinstance(noise, bool) or noise is None:
        raise InputError(f'noise is {noise!r}; give "learn", a variance ≥ 0, or one for each row of X.')
    values = np.array(float(noise)) if is_number(noise) else None
    if values is None:
        if np.ndim(noise) == 0:
            raise InputError(f'noise is {noise!r}; give "learn", a finite variance ≥ 0, or one for each row of X.')
        values = as_outputs(noise, rows, "noise")
    if np.any(values < 0):
        raise InputError(f"noise has the negative variance {float(values.min()):g}; variances are ≥ 0.")
    return values


def checked_lengthscale(lengthscale: Any, kernel: str | Kernel, inputs: Inputs) -> Array | None:
    if lengthscale is None:
        return None
    if isinstance(kernel, Kernel):
        raise InputError(
            "lengthscale goes with kernels given by name; set it on your kernel and fix it there with "
            "raw_lengthscale.requires_grad_(False)."
        )
    try:
        values = np.array(lengthscale, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        values = np.array([math.nan])
    if isinstance(lengthscale, (bool, str)) or not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise InputError(
            f"lengthscale is {lengthscale!r}; give a positive number, or one for each column of X, in the units of X."
        )
    if values.size == 1:
        values = np.full(inputs.dimension, values[0])
    if values.size != inputs.dimension:
        raise InputError(
            f"lengthscale has {values.size} values, but X has {inputs.dimension} column(s) "
            f"({', '.join(inputs.names)}); give one number, or one for each column."
        )
    return values


def _checked_adam(optimizer: Any, epochs: Any, learning_rate: Any, decay: Any, weight_decay: Any) -> Adam | None:
    _require(
        isinstance(optimizer, str) and optimizer in OPTIMIZERS,
        f"optimizer is {optimizer!r}; give one of {', '.join(map(repr, OPTIMIZERS))}.",
    )
    if optimizer != "adam":
        given = {"epochs": epochs, "decay": decay, "weight_decay": weight_decay or None}
        extra = next((name for name, value in given.items() if value is not None), None)
        if extra is not None:
            raise InputError(
                f'{extra} is {given[extra]!r}, but only optimizer="adam" uses it; give that or leave it out.'
            )
        return None
    _require(
        _is_whole(epochs) and epochs >= 1,
        f'epochs is {epochs!r}; optimizer="adam" needs a number of epochs ≥ 1, for example epochs=100.',
    )
    _require(
        is_number(learning_rate) and learning_rate > 0,
        f"learning_rate is {learning_rate!r}; give a positive number, for example 0.1.",
    )
    _require(
        is_number(weight_decay) and weight_decay >= 0,
        f"weight_decay is {weight_decay!r}; give a number ≥ 0, for example 1e-4.",
    )
    if decay is not None:
        fine = isinstance(decay, (tuple, list)) and len(decay) == 2 and _is_whole(decay[0]) and decay[0] >= 1
        _require(
            fine and is_number(decay[1]) and 0 < decay[1] <= 1,
            f"decay is {decay!r}; give (step, gamma) with a step ≥ 1 and 0 < gamma ≤ 1, for example (10, 0.1).",
        )
        decay = (int(decay[0]), float(decay[1]))
    return Adam(int(epochs), float(learning_rate), decay, float(weight_decay))


def rows_outside(exclude: Any, inputs: Inputs) -> Mask:
    if exclude is None:
        _require(len(inputs) >= 2, f"X has {len(inputs)} row; a prior needs at least 2 to be fitted.")
        return np.ones(len(inputs), dtype=np.bool_)
    if not hasattr(exclude, "bind") or not hasattr(exclude, "contains"):
        raise InputError(f"exclude is {exclude!r}; give a region, for example sf.Box(1.0, 2.0).")
    keep = ~np.asarray(exclude.bind(inputs).contains(inputs.values), dtype=np.bool_)
    left = int(keep.sum())
    if left < 3:
        raise InputError(
            f"exclude leaves {left} of {len(inputs)} rows, too few to fit a prior; give a smaller region, or use "
            "sf.Prior with values that are known without the data."
        )
    return np.asarray(keep)


def _check_outputs(question: Question) -> None:
    y = question.y
    if np.ptp(y) <= 4 * np.finfo(float).eps * np.abs(y).max():
        raise InputError(
            f"y is constant ({y[0]:g} in all {len(y)} rows), so no variance can be fitted; give the values yourself, "
            f"for example sf.Prior(kernel=..., mean={y[0]:g})."
        )


def _check_repeated_rows(question: Question) -> None:
    _, first, group = np.unique(question.X, axis=0, return_index=True, return_inverse=True)
    twin = first[group.reshape(-1)]
    gap = np.abs(question.y - question.y[twin])
    if gap.max() > 1e-9 * np.ptp(question.y):
        row = int(np.argmax(gap))
        raise InputError(
            f"two rows have the same X ({', '.join(f'{v:g}' for v in question.X[row])}) but different y "
            f'({question.y[twin[row]]:g} and {question.y[row]:g}), which noise=0.0 rules out; give noise="learn".'
        )
