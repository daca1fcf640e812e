"""Fitting a prior: the mean, the kernel and the noise that make the data most likely."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from gpytorch.kernels import Kernel
from gpytorch.means import Mean

from ..arrays import Array, Index, Mask, is_number
from ..data import Inputs, StoredColumn, StoredInputs, as_inputs, as_outputs, sample_places
from ..errors import FitWarning, InputError
from ..linalg import Whitening
from ..machine import require_memory
from ..progress import AskedProgress
from ..progress import progress as progress_bar
from ..text import listed, shown_lines
from .fit_many import fitted_to_many, why_not_bounded
from .fit_rows import FitRows
from .fit_search import MOST_STARTS, Adam, Fitted, Question, Search
from .kernel_terms import RADIAL
from .kernel_text import ALLOWED, Joined, KernelText, Named, named_parts, parse_kernel, with_trend_places
from .learnt_noise import LEARN_BY, LearntNoise, NoiseColumn, noise_column
from .prior import Prior, PriorFamily
from .searched_kernels import kernel_tree
from .spread import Spread, spread_of
from .trees import build_kernel, describe_kernel
from .trends import DEGREES, Trend

OPTIMIZERS = ("auto", "lbfgs", "adam")
#: How many starts a search has: with one kernel, and with several.
FEW_STARTS, MORE_STARTS = 3, 6
COEFFICIENTS = ("published", "integrated")
#: Up to so many rows the likelihood is exact; of more, so many are fitted exactly before the bound takes all.
EXACT_ROWS, FEW_ROWS = 3000, 2000
#: How many matrices of all pairs of rows a fit has in memory at once.
MATRICES_TO_FIT = 8

#: Below this share of y the closed form counts what the kernel cannot follow as round-off.
UNEXPLAINED = 1e-6

#: Variances of values that differ by less are no floats of full precision.
SMALLEST_SPREAD = 1e-140


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
    columns: tuple[str, ...] = ()
    is_bound: bool = False

    def __str__(self) -> str:
        rows = f"{self.rows_used} rows"
        if self.rows_excluded:
            rows += f" ({self.rows_excluded} excluded)"
        state = "converged" if self.converged else "not converged"
        starts = f", {self.restarts} starts" if self.restarts > 1 else ""
        least = "at least " if self.is_bound else ""
        head = f"fitted by {self.method} to {rows}{starts}: {state}, log likelihood {least}{self.log_likelihood:.6g}"
        return shown_lines([head, *(f"  - {message}" for message in self.messages)])


@overload
def fit_prior(
    X: Any,
    y: Any,
    kernel: str | Kernel = ...,
    mean: str | float | Mean = ...,
    noise: Any = ...,
    *,
    coefficients: str = ...,
    spread: None = ...,
    lengthscale: Any = ...,
    exclude: Any = ...,
    optimizer: str = ...,
    epochs: int | None = ...,
    learning_rate: float = ...,
    decay: tuple[int, float] | None = ...,
    weight_decay: float = ...,
    restarts: int | None = ...,
    rows: int | None = ...,
    device: str | None = ...,
    progress: AskedProgress = ...,
) -> Prior: ...


@overload
def fit_prior(
    X: Any,
    y: Any,
    kernel: str | Kernel = ...,
    mean: str | float | Mean = ...,
    noise: Any = ...,
    *,
    coefficients: str = ...,
    spread: float,
    lengthscale: Any = ...,
    exclude: Any = ...,
    optimizer: str = ...,
    epochs: int | None = ...,
    learning_rate: float = ...,
    decay: tuple[int, float] | None = ...,
    weight_decay: float = ...,
    restarts: int | None = ...,
    rows: int | None = ...,
    device: str | None = ...,
    progress: AskedProgress = ...,
) -> PriorFamily: ...


def fit_prior(
    X: Any,
    y: Any,
    kernel: str | Kernel = "matern52",
    mean: str | float | Mean = "constant",
    noise: Any = "learn",
    *,
    coefficients: str = "published",
    spread: float | None = None,
    lengthscale: Any = None,
    exclude: Any = None,
    optimizer: str = "auto",
    epochs: int | None = None,
    learning_rate: float = 0.1,
    decay: tuple[int, float] | None = None,
    weight_decay: float = 0.0,
    restarts: int | None = None,
    rows: int | None = None,
    device: str | None = None,
    progress: AskedProgress = True,
) -> Prior | PriorFamily:
    """The prior under which ``y`` at ``X`` is most likely, in the user's units.

    ``kernel``: "rbf", "matern12", "matern32", "matern52", "rq" (one lengthscale for each column), "periodic" (one
    column), "linear", "quadratic", "cubic" (a polynomial of each column with unknown coefficients), or sums and
    products of them as text: ``"rbf + periodic(period=1) * rbf"``. What stands in brackets is not fitted:
    ``lengthscale``, ``period`` and ``centre`` in the units of X, ``alpha``; ``column=month`` picks columns by name or
    number. Each term of a sum has a variance, a product has one. A period that is not given starts where the rows show
    one. Or a GPyTorch kernel, whose parameters with ``requires_grad`` are fitted from where they are, on a copy.

    ``mean``: "constant" (learnt), "zero", a number, a GPyTorch mean, or a polynomial of each column, without products
    of columns: "linear", "quadratic", "cubic". Its coefficients are found by generalised least squares together with
    the kernel. ``coefficients="published"``: the polynomial becomes the public mean, which assumes that the trend may
    be known, and protects what deviates from it. ``"integrated"``: they stay unknown, with a prior as wide as the data
    suggest, which assumes that readers do not know the trend; the prior variance is then large, and a floor in units
    is the promise that makes sense.

    ``noise``: "learn", one variance, or one for each row; or ``("learn by", column)``, a variance for each value of an
    input column (or of a label for each row) that at least five fitted rows have, and a smooth function of a column
    with more than 20 numbers: the prior then has one for each row. ``lengthscale`` fixes the lengthscales of a kernel
    with one name. It is plain maximum likelihood: no hidden priors.

    How: where only the mean and the variance are open (all values of the kernel given, ``noise=0.0``) there is a
    closed form. Otherwise L-BFGS-B from ``restarts`` fixed starts (3, or 6 for sums and products); X and y are
    standardised for the search, except that a kernel of your own sees X as it is. ``optimizer="adam"`` takes
    ``epochs`` plain steps, as in the paper's census study (``decay=(10, 0.1)`` and ``weight_decay=1e-4`` are
    its schedule).
    ``rows=2000`` fits to that many of the rows, spread evenly over those that are not excluded. More than 3,000 rows
    are fitted with a lower bound of the likelihood (Titsias' collapsed bound, whose memory does not grow with the
    rows; ``device="cuda"`` takes the sums there), after an exact fit to 2,000 of them; other rows decide which of the
    two is kept. X and y may be stored (``sfumato.data``): they are read part after part.
    ``prior.fit_report`` tells how it went; a fit that ends on a bound or short of a maximum is a ``FitWarning``.

    ``spread=2.0`` gives back all priors that are nearly as likely, as a ``sf.PriorFamily``: one factor for all
    lengthscales, one for the variance and one for the noise, each as far as the log likelihood of the rows falls by
    less than that with the others fitted again. What was given has no range.

    What becomes public: the fitted values are published with every release, and they were learnt from ``y``.
    With ``exclude=region`` the rows inside the region have no part in the fit, so that the values tell nothing of them
    (or a mask of the rows that have none). Rows inside with a value of a ``"learn by"`` column that no row outside has
    get the geometric mean of the others' noise.

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
    outputs = y if isinstance(y, StoredColumn) and isinstance(inputs, StoredInputs) else as_outputs(y, inputs)
    kernel, mean = checked_kernel(kernel, lengthscale, inputs), _checked_mean(mean, inputs)
    given, by = _checked_noise(noise, inputs)
    device = _checked_device(device)
    adam = _checked_adam(optimizer, epochs, learning_rate, decay, weight_decay)
    _require(
        restarts is None or (_is_whole(restarts) and 1 <= restarts <= MOST_STARTS),
        f"restarts is {restarts!r}; give a whole number from 1 to {MOST_STARTS}.",
    )
    _require(
        spread is None or (is_number(spread) and spread > 0),
        f"spread is {spread!r}; give units of log likelihood > 0, for example 2.0.",
    )
    integrated = _checked_coefficients(coefficients, kernel, mean) == "integrated"
    outside = rows_outside(exclude, inputs)
    asked = FitRows(
        inputs,
        outputs,
        noise=np.zeros(()) if given is None else given,
        by=np.zeros(()) if by is None else by.values,
        used=rows_to_fit(outside, rows),
    )
    few = asked.some(FEW_ROWS) if len(asked) > EXACT_ROWS and adam is None else asked
    require_memory(
        8.0 * MATRICES_TO_FIT * float(len(few)) ** 2,
        f"a fit to {len(few):,} rows",
        "give fewer, for example rows=2000, which are spread evenly.",
    )
    block = few.read()
    learnt = None if given is not None else LearntNoise() if by is None else by.learnt(by.values[asked.used])
    question = Question(
        rows=block,
        names=inputs.names,
        owners=inputs.owners,
        kernel=kernel if isinstance(kernel, Kernel) else with_trend_places(kernel, block.X),
        mean=Trend.of(_DEGREES[mean], block.X) if isinstance(mean, str) else mean,
        noise=learnt,
    )
    _check_outputs(question)
    with progress_bar(progress) as bar:
        if optimizer == "auto" and given is not None and not np.any(given) and _leaves_one_variance(question):
            fitted, why = _by_closed_form(question), "there is no bound without noise"
        else:
            starts = restarts or (MORE_STARTS if isinstance(kernel, Joined) else FEW_STARTS)
            search = Search(question, logarithmic=adam is None)
            fitted, why = search.run(adam, int(starts), bar), why_not_bounded(search)
            if few is not asked and not why:
                fitted = fitted_to_many(search, fitted, asked, few, device, bar)
    prior = _with_unknown_trend(fitted.prior, question) if integrated else fitted.prior
    likelihood, note = (fitted.bound, ()) if fitted.bound is not None else _log_likelihood(prior, question)
    ranges = None if spread is None else _spread(prior, question, integrated, float(spread))
    if ranges is not None:
        note = (*note, ranges.in_words(float(spread or 0.0)))
    levels = fitted.noise_levels
    if learnt is not None and by is not None and levels is not None:
        note = (*note, *learnt.notes(by.values, levels))
    report = FitReport(
        method=fitted.method,
        log_likelihood=likelihood,
        converged=fitted.converged,
        messages=(
            *fitted.alarms,
            *_about_rows(len(few if fitted.bound is None else asked), int(outside.sum()), why),
            *_about_trend(question, integrated),
            *fitted.notes,
            *note,
        ),
        restarts=fitted.starts,
        rows_used=len(few if fitted.bound is None else asked),
        rows_excluded=int((~outside).sum()),
        columns=inputs.names,
        is_bound=fitted.bound is not None,
    )
    for alarm in fitted.alarms:
        warnings.warn(alarm, FitWarning, stacklevel=2)
    values: float | Array | None = given
    if learnt is not None and levels is not None:
        values = learnt.of(learnt.basis(by.values if by is not None else np.zeros(1)), levels)
    found = Prior(prior.kernel, prior.mean, values, fit_report=report, encoding=inputs.encoding)
    return found if ranges is None else ranges.of(found)


def _spread(prior: Prior, question: Question, integrated: bool, drop: float) -> Spread:
    """How far the values that were learnt can be off."""
    trend, kernel = question.mean, question.kernel
    X, y = question.rows.X, question.rows.y
    features = np.zeros((len(y), 0))
    if isinstance(trend, Trend):
        features = Trend.of(0, X).features(X) if integrated else trend.directions(X)
    if isinstance(kernel, Kernel):
        learnt = any(name.endswith("raw_lengthscale") and p.requires_grad for name, p in kernel.named_parameters())
    else:
        learnt = any(part.kind in RADIAL and "lengthscale" in part.free for part in named_parts(kernel))
    return spread_of(prior, X, y, features, drop, learnt, question.noise is not None)


def _leaves_one_variance(question: Question) -> bool:
    """Whether one variance and a trend are all that is open in kernel and mean."""
    kernel = question.kernel
    if isinstance(kernel, Kernel) or isinstance(question.mean, Mean):
        return False
    parts = [kernel] if isinstance(kernel, Named) else kernel.parts
    product = isinstance(kernel, Named) or (kernel.kind == "product" and all(isinstance(p, Named) for p in parts))
    return product and not any(part.free for part in named_parts(kernel))


def _by_closed_form(question: Question) -> Fitted:
    """β by generalised least squares and σ² = (y−Hβ)ᵀC⁻¹(y−Hβ) / rank C, with C the correlations of the data.

    Where C is singular to working precision, C⁻¹ is taken on the directions above the cutoff; for a regular C
    the rank is the number of rows.
    """
    assert not isinstance(question.kernel, Kernel)
    _check_repeated_rows(question)
    y, n, trend = question.rows.y, len(question.rows.y), question.mean
    tree = kernel_tree(question.kernel, question.rows.X.shape[1], lambda *_: None, lambda *_: 1.0)
    whiten = Whitening.of(Prior(build_kernel(tree)).covariance(question.rows.X))
    centre: Any = trend
    if isinstance(trend, Trend):
        found = trend.generalised_least_squares(question.rows.X, y, whiten)
        centre, residual = trend.mean(found), y - trend.at(question.rows.X, found)
    else:
        residual = y - float(trend)
    white = whiten.apply(residual)
    variance = float(white @ white) / whiten.rank
    if not variance > 0.0 or not math.isfinite(variance):
        raise InputError(
            f"y equals its mean in all {n} rows, so its variance cannot be fitted; give the variance "
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
    kernel = build_kernel({**tree, "variance": variance}, question.rows.X.shape[1])
    return Fitted(Prior(kernel, centre, 0.0), "closed form", not alarms, tuple(alarms), tuple(notes))


def _with_unknown_trend(prior: Prior, question: Question) -> Prior:
    """``prior`` with the coefficients of its polynomial mean unknown, each with the variance that they suggest.

    That is, for each column, the largest square of a coefficient and of its standard error, added up.
    """
    trend, mean = question.mean, prior.mean
    assert isinstance(trend, Trend)
    covariance = prior.covariance(question.rows.X) + np.diag(prior.noise_variance(len(question.rows.y)))
    errors = trend.by_column(trend.errors(question.rows.X, covariance))
    sizes = (mean.coefficients.numpy() ** 2 + errors**2).max(axis=1)
    own = describe_kernel(prior.kernel)
    parts = own["kernels"] if own["kind"] == "sum" else [own]
    for column, (degree, size) in enumerate(zip(trend.degrees, sizes.tolist(), strict=True)):
        if degree and size > 0.0:
            places = {"centre": [float(trend.centre[column])], "width": [float(trend.width[column])]}
            unknown = {"kind": "trend", "power": degree, **places, "active_dims": [column]}
            parts = [*parts, {"kind": "scale", "variance": size, "kernel": unknown}]
    return Prior(build_kernel({"kind": "sum", "kernels": parts}), float(mean.constant), prior.noise)


def _about_rows(used: int, outside: int, why: str) -> tuple[str, ...]:
    """How many rows have a part in what was found, and ``why`` not more of them."""
    because = f": {why}" if why and used == FEW_ROWS else ""
    return () if used == outside else (f"{used} of {outside} rows were used, spread evenly over them{because}.",)


def _about_trend(question: Question, integrated: bool) -> tuple[str, ...]:
    trend = question.mean
    if not isinstance(trend, Trend) or trend.degree == 0:
        return ()
    name = next(word for word, degree in DEGREES.items() if degree == trend.degree)
    fewer = [column for column, told in zip(question.names, trend.degrees, strict=True) if told < trend.degree]
    lower = f" Of {listed(fewer, 8)} it has fewer powers: as many as different values can tell." if fewer else ""
    said = (
        f"the {name} trend is unknown to readers, with a prior as wide as the data suggest: its coefficients are "
        "integrated out. A floor in units is the promise that makes sense."
        if integrated
        else f"the {name} trend is the public mean: what deviates from it is protected, the trend is not."
    )
    return (f"{said} It has no products of columns.{lower}" if len(question.names) > 1 else f"{said}{lower}",)


def _log_likelihood(prior: Prior, question: Question) -> tuple[float, tuple[str, ...]]:
    """The log density of y under ``prior``, whose noise belongs to the fitted rows."""
    n = len(question.rows.y)
    whiten = Whitening.of(prior.covariance(question.rows.X) + np.diag(prior.noise_variance(n)))
    white = whiten.apply(question.rows.y - prior.mean_at(question.rows.X))
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
        return evaluate(inputs.sample.values[:2])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise InputError(
            f"{what} cannot be evaluated on the {inputs.dimension} column(s) of X ({str(error).splitlines()[0]}); "
            f"{remedy}"
        ) from error


def checked_kernel(kernel: Any, lengthscale: Any, inputs: Inputs) -> KernelText | Kernel:
    if isinstance(kernel, str):
        text = parse_kernel(kernel, inputs.names, inputs.owners)
        return text if lengthscale is None else _with_lengthscale(text, kernel, lengthscale, inputs)
    if not isinstance(kernel, Kernel):
        raise InputError(f"kernel is {kernel!r}; give {ALLOWED}, or a GPyTorch kernel.")
    if lengthscale is not None:
        raise InputError(
            "lengthscale goes with kernels given by name; set it on your kernel and fix it there with "
            "raw_lengthscale.requires_grad_(False)."
        )
    _tried("kernel", Prior(kernel).covariance, inputs, "check its active_dims and ard_num_dims.")
    return kernel


_DEGREES = {"constant": 0, **DEGREES}


def _checked_coefficients(coefficients: Any, kernel: Any, mean: Any) -> str:
    if not isinstance(coefficients, str) or coefficients not in COEFFICIENTS:
        raise InputError(f"coefficients is {coefficients!r}; give one of {', '.join(map(repr, COEFFICIENTS))}.")
    if coefficients == "integrated" and mean not in DEGREES:
        raise InputError(
            f'coefficients is "integrated", but mean is {mean!r}, which has none; give mean="linear", "quadratic" or '
            '"cubic", or leave coefficients out.'
        )
    return coefficients


def _checked_mean(mean: Any, inputs: Inputs) -> str | float | Mean:
    if isinstance(mean, str) and mean == "zero":
        return 0.0
    if isinstance(mean, str) and mean in _DEGREES:
        return mean
    if is_number(mean):
        return float(mean)
    if not isinstance(mean, Mean):
        known = ", ".join(f'"{name}"' for name in ("constant", "zero", *DEGREES))
        raise InputError(f"mean is {mean!r}; give {known}, a finite number or a GPyTorch mean.")
    prior = Prior(build_kernel({"kind": "constant", "constant": 1.0}), mean)
    values = _tried("mean", prior.mean_at, inputs, "give it the size of X.")
    _require(values.shape == (min(2, len(inputs)),), "mean is a batch of means; give one.")
    return mean


def _checked_noise(noise: Any, rows: Inputs) -> tuple[Array | None, NoiseColumn | None]:
    """The noise that is given, or the column that it is learnt by; neither where it is learnt for all rows."""
    if isinstance(noise, (tuple, list)) and len(noise) > 0 and isinstance(noise[0], str) and noise[0] == LEARN_BY:
        return None, noise_column(noise, rows)
    if isinstance(noise, str):
        _require(
            noise == "learn",
            f'noise is {noise!r}; give "learn", ("{LEARN_BY}", column), a variance ≥ 0, or one for each row of X.',
        )
        return None, None
    if isinstance(noise, bool) or noise is None:
        raise InputError(f'noise is {noise!r}; give "learn", a variance ≥ 0, or one for each row of X.')
    values = np.array(float(noise)) if is_number(noise) else None
    if values is None:
        if np.ndim(noise) == 0:
            raise InputError(f'noise is {noise!r}; give "learn", a finite variance ≥ 0, or one for each row of X.')
        values = as_outputs(noise, rows, "noise")
    if np.any(values < 0):
        raise InputError(f"noise has the negative variance {float(values.min()):g}; variances are ≥ 0.")
    return values, None


def _with_lengthscale(text: KernelText, written: str, lengthscale: Any, inputs: Inputs) -> KernelText:
    if not isinstance(text, Named) or text.kind not in RADIAL or "lengthscale" in text.given:
        raise InputError(
            f"lengthscale is given beside kernel={written!r}; write it into the text, as in "
            '"rbf(lengthscale=2) + matern32".'
        )
    values = _checked_lengthscale(lengthscale, inputs)[list(text.columns)]
    return Named(text.name, text.columns, {**text.given, "lengthscale": values})


def _checked_lengthscale(lengthscale: Any, inputs: Inputs) -> Array:
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
    if values.size == len(inputs.sources):
        values = values[[inputs.sources.index(owner) for owner in inputs.owners]]  # one for all levels of a category
    if values.size != inputs.dimension:
        raise InputError(
            f"lengthscale has {values.size} values, but X has {len(inputs.sources)} column(s) "
            f"({', '.join(inputs.sources)}); give one number, or one for each column."
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


def _checked_device(device: Any) -> str:
    if device is None or device == "cpu":
        return "cpu"
    _require(
        isinstance(device, str) and device.split(":")[0] == "cuda",
        f'device is {device!r}; give "cpu" or "cuda", or leave it out.',
    )
    _require(torch.cuda.is_available(), f'device is {device!r}, but PyTorch finds no GPU on this machine; give "cpu".')
    return str(device)


def rows_outside(exclude: Any, inputs: Inputs) -> Mask:
    if exclude is None:
        _require(len(inputs) >= 2, f"X has {len(inputs)} row; a prior needs at least 2 to be fitted.")
        return np.ones(len(inputs), dtype=np.bool_)
    mask = np.ndim(exclude) == 1 and np.asarray(exclude).dtype == np.bool_ and len(exclude) == len(inputs)
    if not mask and (not hasattr(exclude, "bind") or not hasattr(exclude, "contains")):
        raise InputError(f"exclude is {exclude!r}; give a region, for example sf.Box(1.0, 2.0), or a mask of the rows.")
    bound = None if mask else exclude.bind(inputs)
    keep = (
        ~np.asarray(exclude)
        if bound is None
        else ~np.concatenate([np.asarray(bound.contains(part.inputs()), dtype=np.bool_) for part in inputs.parts()])
    )
    left = int(keep.sum())
    if left < 3:
        raise InputError(
            f"exclude leaves {left} of {len(inputs)} rows, too few to fit a prior; give a smaller region, or use "
            "sf.Prior with values that are known without the data."
        )
    return np.asarray(keep)


def rows_to_fit(outside: Mask, rows: Any) -> Index:
    """The places of ``rows`` rows, spread evenly over those that are not excluded; None: all of them."""
    places = np.flatnonzero(outside)
    if rows is None:
        return places
    _require(_is_whole(rows) and rows >= 3, f"rows is {rows!r}; give how many rows to fit to, at least 3.")
    return places[sample_places(len(places), int(rows))]


def _check_outputs(question: Question) -> None:
    y, trend = question.rows.y, question.mean
    if np.ptp(y) <= 4 * np.finfo(float).eps * np.abs(y).max():
        raise InputError(
            f"y is constant ({y[0]:g} in all {len(y)} rows), so no variance can be fitted; give the values yourself, "
            f"for example sf.Prior(kernel=..., mean={y[0]:g})."
        )
    if np.ptp(y) < SMALLEST_SPREAD:
        raise InputError(
            f"y differs by {np.ptp(y):g} at the most, too little for the square of it; give y in smaller units."
        )
    if not isinstance(trend, Trend) or trend.degree == 0:
        return
    if trend.size >= len(y) - 1:
        raise InputError(
            f"mean has {trend.size} coefficients over {len(question.names)} column(s), too many for {len(y)} rows; "
            "give fewer columns or a lower degree."
        )
    left = y - trend.at(question.rows.X, trend.least_squares(question.rows.X, y))
    if np.abs(left).max() <= 1e-12 * np.abs(y).max():
        raise InputError(
            "y equals a polynomial of that degree in all rows, so that nothing deviates from the mean; give "
            'coefficients that you know, or mean="constant" and the kernel "cubic".'
        )


def _check_repeated_rows(question: Question) -> None:
    X, y = question.rows.X, question.rows.y
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    twin = first[group.reshape(-1)]
    gap = np.abs(y - y[twin])
    if gap.max() > 1e-9 * np.ptp(y):
        row = int(np.argmax(gap))
        raise InputError(
            f"two rows have the same X ({', '.join(f'{v:g}' for v in X[row])}) but different y "
            f'({y[twin[row]]:g} and {y[row]:g}), which noise=0.0 rules out; give noise="learn".'
        )
