"""Fitting a prior: the mean, the kernel and the noise that make the data most likely."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from .errors import FitWarning, InputError
from .fit_arguments import (
    KERNELS,
    check_outputs,
    check_repeated_rows,
    checked_adam,
    checked_kernel,
    checked_lengthscale,
    checked_mean,
    checked_noise,
    is_whole,
    require,
    rows_outside,
)
from .fit_model import Adam, Question
from .fit_search import MOST_STARTS, NUGGET, Search
from .inputs import Array, as_inputs, as_outputs
from .model_tree import build_kernel
from .prior import Prior
from .progress import progress as progress_bar


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
    kernel, mean = checked_kernel(kernel, inputs), checked_mean(mean, inputs)
    noise = checked_noise(noise, inputs)
    lengthscales = checked_lengthscale(lengthscale, kernel, inputs)
    adam = checked_adam(optimizer, epochs, learning_rate, decay, weight_decay)
    require(
        is_whole(restarts) and 1 <= restarts <= MOST_STARTS,
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
    check_outputs(question)
    noiseless = not isinstance(noise, str) and noise.ndim == 0 and float(noise) == 0.0
    named = isinstance(kernel, str) and not isinstance(mean, Mean)
    if optimizer == "auto" and named and lengthscales is not None and noiseless:
        fitted = _by_closed_form(question)
    else:
        fitted = _by_search(question, adam, int(restarts), progress)
    likelihood, note = _log_likelihood(fitted.prior, question)
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
    prior = fitted.prior
    return Prior(prior.kernel, prior.mean, prior.noise if isinstance(noise, str) else noise, fit_report=report)


@dataclass(frozen=True)
class _Fitted:
    """A prior for the fitted rows and what there is to say about it; alarms also become warnings."""

    prior: Prior
    method: str
    converged: bool
    alarms: tuple[str, ...]
    notes: tuple[str, ...]
    starts: int


# ---------------------------------------------------------------- the two ways


def _by_closed_form(question: Question) -> _Fitted:
    """β = 1ᵀC⁻¹y / 1ᵀC⁻¹1 and σ² = (y−β)ᵀC⁻¹(y−β) / rank C, with C the correlations of the data.

    Where C is singular to working precision, C⁻¹ is taken on the directions above the cutoff; for a regular C
    the rank is the number of rows.
    """
    assert isinstance(question.kernel, str)
    assert question.lengthscale is not None
    check_repeated_rows(question)
    y, n = question.y, len(question.y)
    correlation = Prior(_named_kernel(question.kernel, question.lengthscale, 1.0)).covariance(question.X)
    whiten = _whitener(correlation)
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
    notes: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    if whiten.rank < n:
        notes = (_rank_note("the correlation matrix", n, whiten.rank),)
        unexplained = float(np.linalg.norm(whiten.leftover(residual)) / np.linalg.norm(residual))
        if unexplained > 1e-6:
            alarms = (
                f"the kernel cannot follow the data: a share {unexplained:.2g} of y lies in directions that it leaves "
                'no room for. Give a shorter lengthscale, or noise="learn".',
            )
    kernel = _named_kernel(question.kernel, question.lengthscale, variance)
    return _Fitted(Prior(kernel, centre, 0.0), "closed form", not alarms, alarms, notes, 0)


def _by_search(question: Question, adam: Adam | None, restarts: int, show: bool) -> _Fitted:
    search = Search(question, logarithmic=adam is None)
    notes: tuple[str, ...] = ()
    with progress_bar(show) as bar:
        if not search.free():
            method, answer, notes = "nothing to fit", search.as_given(), ("every value was given.",)
        elif adam is not None:
            method, answer = f"Adam, {adam.epochs} epochs", search.by_adam(adam, bar)
        else:
            method, answer = "L-BFGS", search.by_lbfgs(restarts, bar)
    if search.raised_noise:
        notes += (
            f"while searching, noise below {NUGGET:g} of the variance of y was raised to that; the prior has the "
            "noise that was given.",
        )
    kernel = answer.kernel
    if kernel is None:
        assert isinstance(question.kernel, str)
        kernel = _named_kernel(question.kernel, answer.lengthscales, answer.variance)
    prior = Prior(kernel, answer.mean, question.noise if answer.noise is None else answer.noise)
    return _Fitted(prior, method, answer.converged, answer.messages, notes, answer.starts)


def _named_kernel(name: str, lengthscales: Array, variance: float) -> Kernel:
    base = {**KERNELS[name], "lengthscale": [float(v) for v in lengthscales]}
    return build_kernel({"kind": "scale", "variance": variance, "kernel": base})


# ---------------------------------------------------------------- likelihood


@dataclass(frozen=True)
class _Whitener:
    """``apply`` is ``b ↦ R b`` with ``RᵀR = M⁻¹`` on the directions where M is more than rounding."""

    apply: Callable[[Array], Array]
    leftover: Callable[[Array], Array]
    log_determinant: float
    rank: int


def _whitener(matrix: Array) -> _Whitener:
    n = matrix.shape[0]
    cutoff = n * np.finfo(float).eps
    try:
        lower = scipy.linalg.cholesky(matrix, lower=True, check_finite=False)
        pivots = np.diag(lower)
        if pivots.min() ** 2 > cutoff * np.max(np.diag(matrix)):
            return _Whitener(
                apply=lambda b: np.asarray(scipy.linalg.solve_triangular(lower, b, lower=True, check_finite=False)),
                leftover=np.zeros_like,
                log_determinant=2.0 * float(np.log(pivots).sum()),
                rank=n,
            )
    except np.linalg.LinAlgError:
        pass
    values, vectors = scipy.linalg.eigh(matrix, check_finite=False)
    keep = values > cutoff * values[-1]
    root, kept = (vectors[:, keep] / np.sqrt(values[keep])).T, vectors[:, keep]
    return _Whitener(
        apply=lambda b: np.asarray(root @ b),
        leftover=lambda b: np.asarray(b - kept @ (kept.T @ b)),
        log_determinant=float(np.log(values[keep]).sum()),
        rank=int(keep.sum()),
    )


def _log_likelihood(prior: Prior, question: Question) -> tuple[float, tuple[str, ...]]:
    """The log density of y under ``prior``, whose noise belongs to the fitted rows."""
    n = len(question.y)
    whiten = _whitener(prior.covariance(question.X) + np.diag(prior.noise_variance(n)))
    white = whiten.apply(question.y - prior.mean_at(question.X))
    density = -0.5 * (float(white @ white) + whiten.log_determinant + whiten.rank * math.log(2.0 * math.pi))
    note = (f"the log likelihood counts {whiten.rank} of {n} directions.",) if whiten.rank < n else ()
    return density, note


def _rank_note(what: str, n: int, rank: int) -> str:
    return (
        f"{what} of the {n} rows is singular to working precision: {rank} directions with eigenvalues above "
        f"n · 2.2e-16 of the largest were used."
    )
