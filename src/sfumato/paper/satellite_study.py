"""The paper's Table 2: errors of privacy-aware releases of the satellite and of their rivals, with certificates.

The noise of a mechanism has one covariance and predictions are linear in what is published, so that the releases of
all seeds are predicted at once. Published values are not rounded here. Naive readers, who fit a stationary process to
what is published, are fitted to the releases of all seeds together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.linalg
import torch
from torch.nn.functional import softplus

from ..arrays import Array, Mask
from ..data import LENGTHSCALE, SENSITIVE, STATES, simulate, training_grid
from ..design import Mechanism, protect
from ..errors import GuaranteeWarning, InputError
from ..evaluate import Budget, PrivatePredictions, cloak, dropout, solve_positive, standard_dp, unsafe_normals
from ..models import Prior, build_kernel, fit_prior
from ..noise import Noise
from ..progress import Progress
from ..promise import Objective
from ..regions import Box
from .study import (
    ALPHAS,
    AVERAGED,
    DELTA,
    DROPOUT,
    EPSILONS,
    METHODS,
    NAIVE,
    UNSECURED,
    Cover,
    Line,
    Settings,
    Table,
    check_asked,
    timed,
)

MeanChoice = Literal["constant", "zero"]

TIMES = training_grid()
REGION = Box(*SENSITIVE)

#: The scripts gave l = 1/400 to a kernel that squares it: neighbours 0.05 apart are unrelated under it.
AUTHORS_LENGTHSCALE = 1 / 400

#: They multiplied variances below the second number by the first, and gave rivals this noise in variances of y.
AUTHORS_FACTOR, AUTHORS_SMALL, AUTHORS_NOISE = 15.0, 1e-4, 1e-8


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


def models(settings: Settings, y: Array, mean: MeanChoice = "constant") -> Models:
    """The priors for outputs ``y`` at the times of the study, their mean and variance by maximum likelihood.

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
    keep = ~hidden(TIMES)
    unit = float(np.std(y, ddof=1))
    if settings == "paper":
        owner = fit_prior(TIMES, y, "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        kept = fit_prior(TIMES[keep], y[keep], "rbf", mean, 0.0, lengthscale=LENGTHSCALE)
        return Models(owner, owner, kept, unit)
    owner = fit_prior(TIMES, y, "rbf", mean, 0.0, lengthscale=AUTHORS_LENGTHSCALE)
    return Models(_enlarged(owner), _normalised(TIMES, y), _normalised(TIMES[keep], y[keep]), unit)


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
        return np.asarray(np.sqrt(prior.condition(TIMES, self.published[0], total).variance(at)))


def released(
    prior: Prior, y: Array, alpha: float, cover: Cover, state: str, seeds: int, objective: Objective = "noise"
) -> Cell:
    """Design the noise for outputs ``y`` and release them with the seeds 0, 1, …, ``seeds`` − 1."""

    def once() -> Mechanism:
        made = design(prior, alpha, cover, objective)
        predict_all(prior, made.noise, y + draws(made.noise, state, 1), TIMES)
        return made

    seconds, mechanism = timed(once)
    return Cell(state, alpha, cover, mechanism, y + draws(mechanism.noise, state, seeds), seconds)


def design(prior: Prior, alpha: float, cover: Cover, objective: Objective = "noise") -> Mechanism:
    """The privacy-aware mechanism; the certificate, not a warning, tells what the rows alone leave open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        asked: Any = {"protects": "function", "cover": cover, "objective": objective}
        return protect(prior, TIMES, REGION, alpha, **asked, progress=False)


def predict_all(prior: Prior, noise: Noise, published: Array, at: Array) -> Array:
    """The posterior means at ``at`` from each row of ``published``, data at the times of the study with ``noise``."""
    blur = np.diag(prior.noise_variance(len(TIMES))) + noise.covariance()
    matrix = solve_positive(prior.covariance(TIMES) + blur, prior.covariance(TIMES, at))
    return np.asarray(prior.mean_at(at) + (published - prior.mean_at(TIMES)) @ matrix)


def draws(noise: Noise, state: str, seeds: int) -> Array:
    """One draw of ``noise`` a row, for each seed; the outputs have different noise, the levels the same normals."""
    normals = [unsafe_normals(seed, noise.normals_needed) for seed in _seeds(state, seeds)]
    return np.asarray(noise.draw(np.array(normals).T).T)


def _seeds(state: str, seeds: int) -> range:
    """Seeds of a state that no other state has."""
    return range(STATES.index(state), len(STATES) * seeds, len(STATES))


def naive_fit(settings: Settings) -> Callable[[Array, Array], NaiveReaders]:
    """How the naive reader of Stationary fits times and published values."""
    return most_likely if settings == "paper" else by_adam


def cloaked(settings: Settings, model: Models, at: Array, epsilon: float) -> PrivatePredictions:
    """The rival's noise for predictions at ``at``, with the multiplier of Hall et al. that both texts use."""
    budget = Budget(epsilon, DELTA, model.unit)
    return cloak(model.cloaking, TIMES, at, hidden(TIMES), budget, "all" if settings == "paper" else "private")


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

    ``settings`` are those of the paper's text or those of its authors' scripts (``models``), the latter with exact
    algebra:

    ============== ========================================= =======================================================
    method         "paper"                                   "authors"
    ============== ========================================= =======================================================
    privacy-aware  the covers asked for                      the same
    predictions    the first cover, rows outside are served  left out: no row tells anything of another
    Stationary     at the maximum of the likelihood          50 steps of Adam
    DP-Cloaking    one draw, columns of the real prediction  100 draws averaged, columns of the private rows alone
    Dropout        fitted without the private rows           the same, normalised
    ============== ========================================= =======================================================

    The naive reader of Stationary sees the releases of the last cover. ``mean="zero"`` estimates no mean.
    """
    check_asked(settings, covers, seeds=seeds)
    if mean not in ("constant", "zero"):
        raise InputError(f"mean is {mean!r}; choose 'constant' or 'zero'.")
    truth = simulate(TIMES)
    outputs = {state: truth[state].to_numpy() for state in STATES}
    made = {state: models(settings, y, mean) for state, y in outputs.items()}
    stages = len(ALPHAS) * (len(covers) + 2 + (settings == "paper")) + 2
    study = _Study(settings, seeds, outputs, made, progress or Progress(), stages)
    for alpha in ALPHAS:
        for cover in covers:
            study.privacy_aware(alpha, cover)
    for alpha in ALPHAS if settings == "paper" else ():
        study.privacy_aware(alpha, covers[0], "predictions")
    for alpha in ALPHAS:
        study.stationary(alpha, covers[-1])
    for epsilon in EPSILONS:
        study.cloaking(epsilon)
    for epsilon in EPSILONS:
        study.standard(epsilon)
    study.without_noise()
    study.stage("with and without a mean")
    ablation = study.ablation(mean, covers[0])
    table, names = study.table, ("method", "level", "cover")
    by_output = pd.DataFrame(
        {**{name: getattr(line, name) for name in names}, **dict(zip(STATES, each, strict=True))}
        for line, each in zip(table.lines, table.by_output, strict=True)
    )
    return StudyResult(settings, mean, seeds, truth, table.lines, by_output, made, study.cells, ablation)


@dataclass
class _Study:
    """One run: what is studied, and what has been found so far."""

    settings: Settings
    seeds: int
    outputs: dict[str, Array]
    models: dict[str, Models]
    step: Progress
    stages: int
    cells: dict[tuple[str, float, Cover], Cell] = field(default_factory=dict)
    passed: int = 0

    def __post_init__(self) -> None:
        self.table = Table("satellite", self.settings, hidden(TIMES))

    def stage(self, text: str) -> None:
        self.step.stage(f"satellite: {text}")
        self.step.update(self.passed / self.stages)
        self.passed += 1

    def privacy_aware(self, alpha: float, cover: Cover, objective: Objective = "noise") -> None:
        method = METHODS[objective]
        self.stage(f"{method}, α = {alpha:g}, {cover} cover")
        cells = {
            state: released(self.models[state].owner, y, alpha, cover, state, self.seeds, objective)
            for state, y in self.outputs.items()
        }
        if objective == "noise":
            self.cells |= {(state, alpha, cover): cell for state, cell in cells.items()}
        certificates = [cell.mechanism.certificate for cell in cells.values()]
        found = {state: (cell.means_at(TIMES), cell.seconds) for state, cell in cells.items()}
        self._add(method, f"α = {alpha:g}", found, cover=cover, certificates=certificates)

    def stationary(self, alpha: float, cover: Cover) -> None:
        self.stage(f"{NAIVE}, α = {alpha:g}")

        def naive(published: Array) -> Array:
            return naive_fit(self.settings)(TIMES, published).means_at(TIMES)

        found = {}
        for state in STATES:
            published = self.cells[state, alpha, cover].published
            seconds, _ = timed(naive, published[:1])
            found[state] = naive(published), seconds
        self._add(NAIVE, f"α = {alpha:g}", found, cover=cover)

    def cloaking(self, epsilon: float) -> None:
        self.stage(f"DP-Cloaking, ε = {epsilon:g}")
        found, kept = {}, "yes"
        for state, y in self.outputs.items():
            seconds, made = timed(cloaked, self.settings, self.models[state], TIMES, epsilon)
            many = 1 if self.settings == "paper" else AVERAGED
            each = [made.draw(y, unsafe_seed=seed, draws=many) for seed in _seeds(state, self.seeds)]
            found[state] = np.array(each), seconds
            if many > 1:
                kept = f"NO, {many} draws spend ε = {made.epsilon_spent(many):.3g}"
        self._add("DP-Cloaking", f"ε = {epsilon:g}", found, holds=kept)

    def standard(self, epsilon: float) -> None:
        found = {}
        for state, y in self.outputs.items():
            model = self.models[state]
            budget = Budget(epsilon, DELTA, model.unit)
            seconds, made = timed(standard_dp, model.cloaking, TIMES, TIMES, hidden(TIMES), budget)
            found[state] = np.array([made.draw(y, unsafe_seed=seed) for seed in _seeds(state, self.seeds)]), seconds
        self._add("standard DP", f"ε = {epsilon:g}", found, holds="yes")

    def without_noise(self) -> None:
        """The model without the private rows, and the one with every row as it is."""
        self.stage(f"{DROPOUT} and {UNSECURED}")
        kept, whole = {}, {}
        for state, y in self.outputs.items():
            model = self.models[state]
            seconds, seen = timed(dropout, model.dropout, TIMES, y, hidden(TIMES))
            kept[state] = seen.mean_at(TIMES)[None], seconds
            seconds, seen = timed(model.owner.condition, TIMES, y)
            whole[state] = seen.mean_at(TIMES)[None], seconds
        self._add(DROPOUT, "", kept)
        self._add(UNSECURED, "", whole)

    def ablation(self, mean: MeanChoice, cover: Cover) -> dict[tuple[MeanChoice, str, float], Mechanism]:
        other: MeanChoice = "zero" if mean == "constant" else "constant"
        found = {}
        for state, y in self.outputs.items():
            prior = models(self.settings, y, other).owner
            for alpha in ALPHAS:
                found[mean, state, alpha] = self.cells[state, alpha, cover].mechanism
                found[other, state, alpha] = design(prior, alpha, cover)
        return found

    def _add(self, method: str, level: str, found: dict[str, tuple[Array, float]], **more: Any) -> None:
        """A line from the means (a row for each seed) and the seconds of each output."""
        misses = [means - self.outputs[state] for state, (means, _) in found.items()]
        self.table.add(method, level, misses, float(np.mean([seconds for _, seconds in found.values()])), **more)


#: The grid of the likelihood: lengthscales in orbits, and noise as a share of noise and variance together.
LENGTHSCALES = np.geomspace(0.02, 40.0, 161)
SHARES = np.geomspace(1e-9, 1.0, 121)

#: Adam as in the paper's scripts, on standardised data; 0 is where a GPyTorch model starts its mean and its raw scale.
EPOCHS, LEARNING_RATE, WEIGHT_DECAY, DECAY = 50, 0.1, 1e-4, (10, 0.1)
START_LENGTHSCALE, START_NOISE, LEAST_NOISE = 0.7, 0.01, 1e-4


@dataclass(frozen=True, eq=False)
class NaiveReaders:
    """Many naive readers at once: a constant mean, an RBF kernel and independent noise for each row of ``outputs``.

    These are values at ``times``. A study refits this model to thousands of releases; on one set of times that is
    linear algebra on whole tables.
    """

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
    squares = torch.from_numpy(((times[:, None] - times) / t_scale) ** 2)
    w = torch.from_numpy((outputs - centre[:, None]) / scale[:, None])
    start = (_inverse_softplus(START_LENGTHSCALE), 0.0, _inverse_softplus(START_NOISE - LEAST_NOISE), 0.0)
    raw = [torch.full((len(outputs),), value, dtype=torch.float64, requires_grad=True) for value in start]
    optimiser = torch.optim.Adam(raw, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, *DECAY)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        # the readers are fitted independently, so the slope of the sum is that of each
        _misfits(raw, squares, w).sum().backward()
        optimiser.step()
        schedule.step()
    lengthscale, variance, noise, mean = (value.detach().numpy() for value in _parameters(raw))
    return NaiveReaders(
        times, outputs, t_scale * lengthscale, scale**2 * variance, scale**2 * noise, centre + scale * mean
    )


def _misfits(raw: list[torch.Tensor], squares: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """−log N(w; β, C)/n of each reader, up to a constant."""
    lengthscale, variance, noise, mean = _parameters(raw)
    correlation = torch.exp(squares * (-0.5 / lengthscale**2)[:, None, None])
    covariance = correlation * variance[:, None, None] + torch.diag_embed(noise[:, None].expand_as(w))
    lower = torch.linalg.cholesky(covariance)
    white = torch.linalg.solve_triangular(lower, (w - mean[:, None])[:, :, None], upper=False)
    log_root = torch.log(torch.diagonal(lower, dim1=1, dim2=2)).sum(dim=1)
    misfits: torch.Tensor = (0.5 * (white**2).sum(dim=(1, 2)) + log_root) / w.shape[1]
    return misfits


def _parameters(raw: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    lengthscale, variance, noise, mean = raw
    return softplus(lengthscale), softplus(variance), LEAST_NOISE + softplus(noise), mean


def _inverse_softplus(value: float) -> float:
    return float(np.log(np.expm1(value)))
