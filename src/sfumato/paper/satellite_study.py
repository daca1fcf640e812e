"""The paper's Table 2: errors of privacy-aware releases of the satellite and of their rivals, with certificates."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd
import scipy.linalg
import torch
from torch.nn.functional import softplus

from ..arrays import Array, Mask
from ..data import LENGTHSCALE, SENSITIVE, STATES, simulate, training_grid
from ..design import Mechanism, protect
from ..errors import GuaranteeWarning, InputError
from ..evaluate import (
    Budget,
    PrivatePredictions,
    cloak,
    dropout,
    solve_positive,
    standard_dp,
    unsafe_normals,
    unsecured,
)
from ..models import Prior, build_kernel, fit_prior
from ..noise import Noise
from ..progress import Progress
from ..proof import Certificate
from ..regions import Box
from .study_table import Errors, Line, promise_kept

# The Gaussian processes of the satellite study: as the paper's text has them, and as its scripts had them.

Settings = Literal["paper", "authors"]
MeanChoice = Literal["constant", "zero"]

REGION = Box(*SENSITIVE)

# The scripts gave l = 1/400 to a kernel that squares it: neighbours 0.05 apart are unrelated under it.
AUTHORS_LENGTHSCALE = 1 / 400
AUTHORS_FACTOR = 15.0
AUTHORS_SMALL = 1e-4
AUTHORS_NOISE = 1e-8


@dataclass(frozen=True, eq=False)
class Models:
    """Priors for one output, all in the units of the data: the owner's, and those that two rivals start from.

    ``unit`` is what differential privacy takes for the most that one output can change: a standard deviation of y.
    """

    owner: Prior
    cloaking: Prior
    dropout: Prior
    unit: float


def hidden(times: Array) -> Mask:
    """Which of the times lie in the private orbit, both ends included."""
    return np.asarray((times >= SENSITIVE[0]) & (times <= SENSITIVE[1]))


def models(settings: Settings, times: Array, y: Array, mean: MeanChoice = "constant") -> Models:
    """The priors for outputs ``y`` at ``times``, their mean and variance by maximum likelihood.

    =========== =============================== ==============================================================
    model       "paper"                         "authors"
    =========== =============================== ==============================================================
    owner       lengthscale 0.05                0.0025; variances below 1e-4 are multiplied by 15
    cloaking    the owner's                     0.0025 standard deviations of t, noise 1e-8 (normalised)
    dropout     the owner's, fitted to the      the same as for cloaking, normalised and fitted on the kept rows
                rows that are kept
    =========== =============================== ==============================================================

    With ``mean="zero"`` no mean is estimated; the scripts did so in the owner's model alone.
    """
    keep = ~hidden(times)
    unit = float(np.std(y, ddof=1))
    if settings == "paper":
        owner = fit_prior(times, y, "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        kept = fit_prior(times[keep], y[keep], "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        return Models(owner, owner, kept, unit)
    owner = fit_prior(times, y, "rbf", mean, 0.0, lengthscale=AUTHORS_LENGTHSCALE)
    return Models(_enlarged(owner), _normalised(times, y), _normalised(times[keep], y[keep]), unit)


def _enlarged(prior: Prior) -> Prior:
    """``prior`` with 15 times the variance where it was below 1e-4, whatever the unit of y is."""
    here = np.zeros((1, 1))
    variance = float(prior.variance(here)[0])
    if variance >= AUTHORS_SMALL:
        return prior
    base = {"kind": "rbf", "lengthscale": [AUTHORS_LENGTHSCALE]}
    kernel = build_kernel({"kind": "scale", "variance": AUTHORS_FACTOR * variance, "kernel": base})
    return Prior(kernel, float(prior.mean_at(here)[0]), 0.0)


def _normalised(times: Array, y: Array) -> Prior:
    """What a fit to standardised times and outputs means in the units of the data."""
    lengthscale = AUTHORS_LENGTHSCALE * float(np.std(times, ddof=1))
    fitted = fit_prior(times, y, "rbf", "constant", 0.0, lengthscale=lengthscale)
    return Prior(fitted.kernel, fitted.mean, AUTHORS_NOISE * float(np.var(y, ddof=1)))


# Many naive readers at once: stationary processes fitted to published values, one for each release of a study.
#
# A study refits this model to thousands of releases. On one set of times that is linear algebra on whole tables: the
# likelihood is maximised over a fine grid of lengthscales and noise shares, or Adam follows it for all releases
# together.

LENGTHSCALES = np.geomspace(0.02, 40.0, 161)
SHARES = np.geomspace(1e-9, 1.0, 121)
"""Noise as a share of noise and variance together."""

EPOCHS = 50
LEARNING_RATE = 0.1
WEIGHT_DECAY = 1e-4
DECAY = (10, 0.1)
START_LENGTHSCALE = 0.7
START_NOISE = 0.01
LEAST_NOISE = 1e-4


@dataclass(frozen=True, eq=False)
class NaiveReaders:
    """A constant mean, an RBF kernel and independent noise for each row of ``outputs``, values at ``times``."""

    times: Array
    outputs: Array
    lengthscale: Array
    variance: Array
    noise: Array
    mean: Array

    def means_at(self, at: Array) -> Array:
        """The posterior means, a row for each reader and a column for each time of ``at``."""
        own = self._correlation(self.times) * self.variance[:, None, None]
        own[:, np.arange(len(self.times)), np.arange(len(self.times))] += self.noise[:, None]
        weights = np.linalg.solve(own, (self.outputs - self.mean[:, None])[:, :, None])
        across = self._correlation(at) * self.variance[:, None, None]
        return np.asarray(self.mean[:, None] + (across @ weights)[:, :, 0])

    def _correlation(self, at: Array) -> Array:
        apart = (at[:, None] - self.times[None, :]) ** 2
        return np.asarray(np.exp(-0.5 * apart / self.lengthscale[:, None, None] ** 2))


def most_likely(times: Array, outputs: Array) -> NaiveReaders:
    """The maximum of the likelihood for each row of ``outputs``, over a grid of lengthscales and noise shares.

    Mean and scale have closed forms for each of them: with C = (1 − ρ) K + ρ I, β = 1ᵀC⁻¹w / 1ᵀC⁻¹1 and
    s² = (w − β)ᵀC⁻¹(w − β)/n. One spectral decomposition a lengthscale serves all shares ρ and all rows.
    """
    n = len(times)
    # numbers near zero lose fewer digits
    centre = outputs.mean(axis=1, keepdims=True)
    residual = (outputs - centre).T
    best = np.full(outputs.shape[0], -np.inf)
    found = np.zeros((4, outputs.shape[0]))
    for lengthscale in LENGTHSCALES:
        values, vectors = scipy.linalg.eigh(np.exp(-0.5 * ((times[:, None] - times) / lengthscale) ** 2))
        spectrum = (1.0 - SHARES[:, None]) * np.maximum(values, 0.0) + SHARES[:, None]
        ones, turned = vectors.sum(axis=0), vectors.T @ residual
        shift = (1.0 / spectrum) @ (ones[:, None] * turned) / ((1.0 / spectrum) @ ones**2)[:, None]
        square = (1.0 / spectrum) @ turned**2 - shift**2 * ((1.0 / spectrum) @ ones**2)[:, None]
        scale = np.maximum(square / n, np.finfo(float).tiny)
        likelihood = -0.5 * (n * np.log(scale) + np.log(spectrum).sum(axis=1)[:, None])
        row, column = np.argmax(likelihood, axis=0), np.arange(outputs.shape[0])
        better = likelihood[row, column] > best
        best = np.where(better, likelihood[row, column], best)
        here = np.array(
            [
                np.full_like(best, lengthscale),
                (1.0 - SHARES[row]) * scale[row, column],
                SHARES[row] * scale[row, column],
                shift[row, column],
            ]
        )
        found = np.where(better, here, found)
    return NaiveReaders(times, outputs, found[0], found[1], found[2], found[3] + centre[:, 0])


def by_adam(times: Array, outputs: Array) -> NaiveReaders:
    """Fifty steps of Adam on standardised data with the schedule of the paper's scripts, short of a maximum or not."""
    t_scale = float(np.std(times, ddof=1))
    centre, scale = outputs.mean(axis=1), outputs.std(axis=1, ddof=1)
    apart = torch.from_numpy(((times[:, None] - times) / t_scale) ** 2)
    w = torch.from_numpy((outputs - centre[:, None]) / scale[:, None])
    # 0 is where a GPyTorch model starts its mean and its raw scale
    start = (_inverse_softplus(START_LENGTHSCALE), 0.0, _inverse_softplus(START_NOISE - LEAST_NOISE), 0.0)
    raw = [torch.full((len(outputs),), value, dtype=torch.float64) for value in start]
    optimiser = torch.optim.Adam(raw, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, *DECAY)
    for _ in range(EPOCHS):
        for parameter, slope in zip(raw, _slopes(raw, apart, w), strict=True):
            parameter.grad = slope
        optimiser.step()
        schedule.step()
    lengthscale, variance, noise, mean = (value.numpy() for value in _parameters(raw))
    return NaiveReaders(
        times, outputs, t_scale * lengthscale, scale**2 * variance, scale**2 * noise, centre + scale * mean
    )


def _slopes(raw: list[torch.Tensor], apart: torch.Tensor, w: torch.Tensor) -> list[torch.Tensor]:
    """The slopes of −log N(w; β, C)/n, all readers at once: along D it is ½ (Tr C⁻¹D − aᵀDa)/n with a = C⁻¹(w − β)."""
    n = len(apart)
    lengthscale, variance, noise, mean = _parameters(raw)
    correlation = torch.exp(apart * (-0.5 / lengthscale**2)[:, None, None])
    covariance = correlation * variance[:, None, None]
    covariance.diagonal(dim1=1, dim2=2).add_(noise[:, None])
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(covariance))
    a = torch.einsum("bij,bj->bi", inverse, w - mean[:, None])

    def along(direction: torch.Tensor) -> torch.Tensor:
        bent = torch.einsum("bi,bij,bj->b", a, direction, a)
        return 0.5 * (torch.einsum("bij,bij->b", inverse, direction) - bent) / n

    slopes = (
        variance / lengthscale**3 * along(correlation * apart),
        along(correlation),
        0.5 * (inverse.diagonal(dim1=1, dim2=2).sum(dim=1) - (a**2).sum(dim=1)) / n,
    )
    # the slope of softplus is the logistic function
    inner = [slope * torch.sigmoid(parameter) for slope, parameter in zip(slopes, raw[:3], strict=True)]
    return [*inner, -a.sum(dim=1) / n]


def _parameters(raw: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    lengthscale, variance, noise, mean = raw
    return softplus(lengthscale), softplus(variance), LEAST_NOISE + softplus(noise), mean


def _inverse_softplus(value: float) -> float:
    return float(np.log(np.expm1(value)))


# Releases of the satellite: one mechanism, many seeds, and what readers make of each of them.
#
# The noise of a mechanism has one covariance and predictions are linear in what is published, so that the releases of
# all seeds are predicted at once. Published values are not rounded here.

Cover = Literal["auto", "rows"]

DELTA = 0.01


@dataclass(frozen=True, eq=False)
class Cell:
    """One output at one level: the mechanism, and what it published for each seed (a row of ``published``)."""

    state: str
    alpha: float
    cover: Cover
    mechanism: Mechanism
    published: Array
    seconds: float

    def means_at(self, at: Array) -> Array:
        """What readers expect, a row for each seed and a column for each time of ``at``."""
        return predict_all(self.mechanism.prior, self.mechanism.noise, self.published, at)

    def std_at(self, at: Array) -> Array:
        """How well readers know f at ``at``: the same for every seed."""
        prior, noise = self.mechanism.prior, self.mechanism.noise
        total = np.diag(prior.noise_variance(noise.rows)) + noise.covariance()
        return np.asarray(np.sqrt(prior.condition(training_grid(), self.published[0], total).variance(at)))


def released(prior: Prior, times: Array, y: Array, alpha: float, cover: Cover, state: str, seeds: int) -> Cell:
    """Design the noise for outputs ``y`` and release them with the seeds 0, 1, …, ``seeds`` − 1."""
    start = time.perf_counter()
    mechanism = design(prior, times, alpha, cover)
    first = y + draws(mechanism.noise, state, 1)
    predict_all(prior, mechanism.noise, first, times)
    seconds = time.perf_counter() - start
    return Cell(state, alpha, cover, mechanism, y + draws(mechanism.noise, state, seeds), seconds)


def naive_fit(settings: Settings) -> Callable[[Array, Array], NaiveReaders]:
    """How the naive reader of Stationary fits times and published values."""
    return most_likely if settings == "paper" else by_adam


def predict_all(prior: Prior, noise: Noise, published: Array, at: Array) -> Array:
    """The posterior means at ``at`` from each row of ``published``, data at the times of the study with ``noise``."""
    times = training_grid()
    blur = np.diag(prior.noise_variance(len(times))) + noise.covariance()
    matrix = solve_positive(prior.covariance(times) + blur, prior.covariance(times, at))
    return np.asarray(prior.mean_at(at) + (published - prior.mean_at(times)) @ matrix)


def draws(noise: Noise, state: str, seeds: int) -> Array:
    """One draw of ``noise`` a row, for each seed; the outputs have different noise, the levels the same normals."""
    count, shift = noise.normals_needed, STATES.index(state)
    normals = [unsafe_normals(len(STATES) * seed + shift, count) for seed in range(seeds)]
    return np.asarray(noise.draw(np.array(normals).T).T)


def design(prior: Prior, times: Array, alpha: float, cover: Cover) -> Mechanism:
    """The privacy-aware mechanism; the certificate, not a warning, tells what the rows alone leave open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        return protect(prior, times, REGION, alpha, cover=cover, progress=False)


def cloaked(settings: Settings, model: Models, times: Array, at: Array, epsilon: float) -> PrivatePredictions:
    """The rival's noise for predictions at ``at``, with the multiplier of Hall et al. that both texts use."""
    budget = Budget(epsilon, DELTA, model.unit)
    return cloak(model.cloaking, times, at, hidden(times), budget, "all" if settings == "paper" else "private")


ALPHAS = (0.1, 0.5, 0.9)
EPSILONS = (0.3, 0.5, 1.0)
AVERAGED = 100
"""How many differentially private draws the authors' scripts average and score as one."""

QUICK_SEEDS = 20


@dataclass(frozen=True, eq=False)
class StudyResult:
    """The lines of the table, the errors of each output, and everything the figures need.

    ``by_output`` has the mean RMSE of each output in its own unit: the angle is thousands of times the others, and the
    means over outputs in the table are a quarter of its error. ``ablation`` has the mechanisms of the first cover for
    (mean, output, α), with the mean estimated and with zero in its place.
    """

    settings: Settings
    mean: MeanChoice
    seeds: int
    truth: pd.DataFrame
    lines: list[Line]
    by_output: pd.DataFrame
    models: dict[str, Models]
    cells: dict[tuple[str, float, Cover], Cell]
    ablation: dict[tuple[MeanChoice, str, float], Mechanism]

    @property
    def covers(self) -> tuple[Cover, ...]:
        return tuple(dict.fromkeys(cover for _, _, cover in self.cells))


def satellite_study(
    settings: Settings = "paper",
    seeds: int = 200,
    covers: Sequence[Cover] = ("auto", "rows"),
    progress: Progress | None = None,
    mean: MeanChoice = "constant",
) -> StudyResult:
    """Run every method with the seeds 0, 1, …, ``seeds`` − 1; the same seeds give the same numbers.

    ``settings`` are those of the paper's text or those of its authors' scripts, the latter with
    exact algebra:

    ============== ========================================= =======================================================
    method         "paper"                                   "authors"
    ============== ========================================= =======================================================
    privacy-aware  the covers asked for                      the same
    Stationary     at the maximum of the likelihood          50 steps of Adam
    DP-Cloaking    one draw, columns of the real prediction  100 draws averaged, columns of the private rows alone
    Dropout        fitted without the private rows           the same, normalised
    ============== ========================================= =======================================================

    The naive reader of Stationary sees the releases of the last cover. ``mean="zero"`` estimates no mean.
    """
    _check(settings, seeds, covers, mean)
    truth = simulate(training_grid())
    times = truth["t"].to_numpy()
    outputs = {state: truth[state].to_numpy() for state in STATES}
    made = {state: models(settings, times, y, mean) for state, y in outputs.items()}
    book = _Book(settings, seeds, times, outputs, made, progress or Progress(), len(ALPHAS) * (len(covers) + 2) + 2)
    cells = _privacy_aware(book, tuple(covers))
    _stationary(book, cells, covers[-1])
    _cloaking(book)
    _rows_or_no_rows(book)
    book.stage("with and without a mean")
    ablation = _ablation(book, mean, cells, covers[0])
    return StudyResult(settings, mean, seeds, truth, book.lines, pd.DataFrame(book.rows), made, cells, ablation)


def _check(settings: str, seeds: int, covers: Sequence[str], mean: str) -> None:
    if settings not in ("paper", "authors"):
        raise InputError(f"settings is {settings!r}; choose 'paper' or 'authors'.")
    if mean not in ("constant", "zero"):
        raise InputError(f"mean is {mean!r}; choose 'constant' or 'zero'.")
    if isinstance(covers, str) or not covers or not set(covers) <= {"auto", "rows"}:
        raise InputError(f"covers is {covers!r}; give one or both of 'auto' and 'rows', in a list.")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"seeds is {seeds!r}; give a whole number of seeds, at least 1.")


@dataclass
class _Book:
    """What is studied, and the lines of the table as they come in."""

    settings: Settings
    seeds: int
    times: Array
    outputs: dict[str, Array]
    models: dict[str, Models]
    step: Progress
    stages: int
    lines: list[Line] = field(default_factory=list)
    rows: list[dict[str, str | float]] = field(default_factory=list)
    passed: int = 0

    def stage(self, text: str) -> None:
        self.step.stage(f"satellite: {text}")
        self.step.update(self.passed / self.stages)
        self.passed += 1

    def write(
        self,
        method: str,
        level: str,
        misses: list[Array],
        seconds: list[float],
        cover: str = "",
        certificates: Sequence[Certificate] = (),
        holds: str = "",
    ) -> None:
        """``misses`` has predictions less truth, with a row for each seed; one of it and of ``seconds`` an output."""
        if certificates:
            holds = promise_kept(certificates)
        errors = _errors(misses, hidden(self.times))
        self.lines.append(
            Line.of(
                errors,
                study="satellite",
                settings=self.settings,
                method=method,
                level=level,
                cover=cover,
                seeds=misses[0].shape[0],
                holds=holds,
                joint_ratio=max((one.joint_ratio for one in certificates), default=float("nan")),
                floor_ratio=min((one.floor_ratio for one in certificates), default=float("nan")),
                seconds=float(np.mean(seconds)),
            )
        )
        each = {state: float(np.mean(_rmse(miss))) for state, miss in zip(STATES, misses, strict=True)}
        self.rows.append({"method": method, "level": level, "cover": cover, **each})


def _privacy_aware(book: _Book, covers: tuple[Cover, ...]) -> dict[tuple[str, float, Cover], Cell]:
    cells: dict[tuple[str, float, Cover], Cell] = {}
    for alpha in ALPHAS:
        for cover in covers:
            book.stage(f"privacy-aware, α = {alpha:g}, {cover} cover")
            misses, certificates, seconds = [], [], []
            for state, y in book.outputs.items():
                cell = released(book.models[state].owner, book.times, y, alpha, cover, state, book.seeds)
                misses.append(cell.means_at(book.times) - y)
                certificates.append(cell.mechanism.certificate)
                seconds.append(cell.seconds)
                cells[state, alpha, cover] = cell
            book.write("privacy-aware", f"α = {alpha:g}", misses, seconds, cover, certificates)
    return cells


def _stationary(book: _Book, cells: dict[tuple[str, float, Cover], Cell], cover: Cover) -> None:
    fit = naive_fit(book.settings)
    for alpha in ALPHAS:
        book.stage(f"Stationary, α = {alpha:g}")
        misses, seconds = [], []
        for state, y in book.outputs.items():
            published = cells[state, alpha, cover].published
            misses.append(fit(book.times, published).means_at(book.times) - y)
            start = time.perf_counter()
            fit(book.times, published[:1]).means_at(book.times)
            seconds.append(time.perf_counter() - start)
        book.write("Stationary", f"α = {alpha:g}", misses, seconds, cover)


def _cloaking(book: _Book) -> None:
    for epsilon in EPSILONS:
        book.stage(f"DP-Cloaking, ε = {epsilon:g}")
        misses, seconds, kept = [], [], "yes"
        for number, (state, y) in enumerate(book.outputs.items()):
            start = time.perf_counter()
            noise = cloaked(book.settings, book.models[state], book.times, book.times, epsilon)
            seconds.append(time.perf_counter() - start)
            if book.settings == "paper":
                misses.append(noise.prediction.predict(y) + draws(noise.noise, state, book.seeds) - y)
                continue
            own = range(number, len(STATES) * book.seeds, len(STATES))
            misses.append(np.array([noise.draw(y, unsafe_seed=seed, draws=AVERAGED) for seed in own]) - y)
            kept = f"NO, {AVERAGED} draws spend ε = {noise.epsilon_spent(AVERAGED):.3g}"
        book.write("DP-Cloaking", f"ε = {epsilon:g}", misses, seconds, holds=kept)
    for epsilon in EPSILONS:
        misses, seconds = [], []
        for state, y in book.outputs.items():
            start, model = time.perf_counter(), book.models[state]
            budget = Budget(epsilon, DELTA, model.unit)
            made = standard_dp(model.cloaking, book.times, book.times, hidden(book.times), budget)
            seconds.append(time.perf_counter() - start)
            misses.append(made.prediction.predict(y) + draws(made.noise, state, book.seeds) - y)
        book.write("standard DP", f"ε = {epsilon:g}", misses, seconds, holds="yes")


def _rows_or_no_rows(book: _Book) -> None:
    """The model without the private rows, and the one with every row as it is."""
    book.stage("Dropout and Unsecured")
    for method in ("Dropout", "Unsecured"):
        misses, seconds = [], []
        for state, y in book.outputs.items():
            model, start = book.models[state], time.perf_counter()
            if method == "Dropout":
                known = dropout(model.dropout, book.times, y, hidden(book.times))
            else:
                known = unsecured(model.owner, book.times, y)
            misses.append((known.mean_at(book.times) - y)[None, :])
            seconds.append(time.perf_counter() - start)
        book.write(method, "", misses, seconds)


def _ablation(
    book: _Book, mean: MeanChoice, cells: dict[tuple[str, float, Cover], Cell], cover: Cover
) -> dict[tuple[MeanChoice, str, float], Mechanism]:
    found = {(mean, state, alpha): cells[state, alpha, cover].mechanism for state in STATES for alpha in ALPHAS}
    other: MeanChoice = "zero" if mean == "constant" else "constant"
    for state, y in book.outputs.items():
        prior = models(book.settings, book.times, y, other).owner
        found |= {(other, state, alpha): design(prior, book.times, alpha, cover) for alpha in ALPHAS}
    return found


def _errors(misses: list[Array], inside: Mask) -> Errors:
    """The mean over the outputs of their RMSE, for each seed; its mean and spread over the seeds."""
    found: list[float] = []
    for chosen in (np.ones_like(inside), inside, ~inside):
        each = np.mean([_rmse(miss[:, chosen]) for miss in misses], axis=0)
        found += [float(np.mean(each)), float(np.std(each))]
    return Errors(*found)


def _rmse(misses: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(misses**2, axis=1)))
