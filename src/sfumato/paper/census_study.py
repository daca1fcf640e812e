"""The paper's census study: errors, certificates and exposure for every method and level (its Table 3, and more).

Errors are those of predicted incomes of the test rows against their real ones, in 100 000 dollars. They are averaged
over draws of the noise: the predictions are linear in the published values, so all draws are predicted at once.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import torch

from ..arrays import Array
from ..design import Mechanism, protect
from ..errors import FitWarning, GuaranteeWarning
from ..evaluate import Budget, PrivatePredictions, cloak, dropout, solve_positive, standard_dp, stationary
from ..models import GaussianProcess, Posterior, Prior, fit_prior
from ..progress import Progress
from ..promise import Objective
from .census_data import SPLIT_SEED, CensusSplit, thinned
from .study import (
    ALPHAS,
    AVERAGED,
    AWARE,
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

#: Adam as in the scripts: the rate is 1e-3 after 20 epochs and 1e-10 in the last ten.
SCHEDULE: dict[str, Any] = {"optimizer": "adam", "learning_rate": 0.1, "decay": (10, 0.1), "weight_decay": 1e-4}
EPOCHS = 100

#: How ``settings`` are called.
TRAINING = {"paper": "maximum likelihood", "authors": "the scripts' training"}

#: Epochs of a naive reader that matter: the 60 after them have rates of 1e-5 and less. And where it starts.
NAIVE_EPOCHS, NAIVE_LENGTHSCALE = 40, 1.3

#: Random people who could exist, at whom exposure is looked for, and the round-off that ratios may have.
PEOPLE, SLACK = 4000, 1e-9

DP_ALL = "DP-Cloaking, all rows, one draw"
DP_PRIVATE = "DP-Cloaking, private columns, one draw"
DP_AVERAGED = f"DP-Cloaking, private columns, mean of {AVERAGED}"
DP_STANDARD = "standard DP, one draw"


@dataclass(frozen=True, eq=False)
class CensusModels:
    """The owner's prior, the one that Dropout fits without the sensitive rows, and how well the first explains y.

    ``nll`` is minus the log likelihood for each row, with y in its standard deviations; ``unit`` is that standard
    deviation, which differential privacy takes for the most that one income can change.
    """

    owner: Prior
    dropout: Prior
    nll: float
    unit: float


def census_models(data: CensusSplit, settings: Settings) -> CensusModels:
    """Fit an RBF kernel with one lengthscale a column, its variance, the noise and a constant mean.

    "paper" is maximum likelihood. "authors" is Adam from noise 0.1, lengthscales 1.2 and variance 1 (in standard
    deviations), 100 epochs with their schedule, which stops long before the maximum. Inputs and y are standardised for
    the search in both; the priors are in the units of the data.
    """
    # several starts end in the same maximum here, so one is enough
    how: dict[str, Any] = {"restarts": 1} if settings == "paper" else {**SCHEDULE, "epochs": EPOCHS}
    unit = float(np.std(data.train_y, ddof=1))
    with warnings.catch_warnings():
        # that Adam stops early, and that some column tells nothing, is what the study is about
        warnings.simplefilter("ignore", FitWarning)
        owner = fit_prior(data.train, data.train_y, "rbf", **how)
        kept = fit_prior(data.train, data.train_y, "rbf", exclude=data.region, **how)
    nll = -owner.fit_report.log_likelihood / len(data.train) - math.log(unit)
    return CensusModels(owner, kept, nll, unit)


def naive_prediction(data: CensusSplit, settings: Settings, owner: Prior, published: Array) -> Array:
    """What a reader predicts for the test rows who takes ``published`` for plain data and fits a model of their own.

    "authors" starts where the scripts did (noise 0.1, lengthscales 1.3); "paper" starts from the published prior and
    goes to the maximum of the likelihood of the published values.
    """
    centre, spread = data.train.mean(), data.train.std(ddof=1)
    level, unit = float(np.mean(published)), float(np.std(published, ddof=1))
    if settings == "paper":
        scale = owner.kernel
        lengthscales = scale.base_kernel.lengthscale.reshape(-1) / torch.tensor(list(spread), dtype=torch.float64)
        kernel, how = _kernel(lengthscales, float(scale.outputscale) / unit**2), {"restarts": 1}
    else:
        lengthscales = torch.full((data.train.shape[1],), NAIVE_LENGTHSCALE, dtype=torch.float64)
        kernel, how = _kernel(lengthscales, 1.0), {**SCHEDULE, "epochs": NAIVE_EPOCHS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        naive = stationary((data.train - centre) / spread, (published - level) / unit, kernel=kernel, **how)
    return np.asarray(level + unit * naive.mean_at((data.test - centre) / spread))


def _kernel(lengthscales: torch.Tensor, variance: float) -> gpytorch.kernels.Kernel:
    base = gpytorch.kernels.RBFKernel(ard_num_dims=lengthscales.numel())
    kernel = gpytorch.kernels.ScaleKernel(base).double()
    base.lengthscale, kernel.outputscale = lengthscales, variance
    return kernel


@dataclass(frozen=True)
class Exposure:
    """At random inputs of the region: the least reader's std over the floor, and the share of inputs where it is < 1.

    ``cover`` is empty for methods that have none; the floor is √(1 − alpha) of the prior's std.
    """

    method: str
    cover: str
    alpha: float
    least_ratio: float
    share_below: float


def people_of_the_region(data: CensusSplit, count: int = PEOPLE, seed: int = SPLIT_SEED) -> pd.DataFrame:
    """Random inputs of S: uniform in the bounded columns, with the other columns of a random training row."""
    random = np.random.default_rng(seed)
    people = data.train.iloc[random.integers(len(data.train), size=count)].reset_index(drop=True)
    for column, (low, high) in data.bounds.items():
        people[column] = random.uniform(low, high, count)
    return people


def reader(prior: Prior, data: CensusSplit, noise: Array) -> Posterior:
    """A reader of values that carry ``noise`` (a covariance) besides the noise of the data; std only, no values."""
    rows = len(data.train)
    return prior.condition(data.train, np.zeros(rows), noise + np.diag(prior.noise_variance(rows)))


def floor_ratios(who: GaussianProcess, prior: Prior, alpha: float, at: pd.DataFrame) -> Array:
    """The std of ``who`` over the floor at the rows of ``at``."""
    return np.asarray(np.sqrt(who.variance(at) / ((1.0 - alpha) * prior.variance(at))))


def exposure(
    method: str, cover: str, alpha: float, who: GaussianProcess, prior: Prior, people: pd.DataFrame
) -> Exposure:
    """What ``who`` knows of ``people``, against the floor that ``alpha`` asks for under ``prior``."""
    ratios = floor_ratios(who, prior, alpha, people)
    return Exposure(method, cover, alpha, float(np.min(ratios)), float(np.mean(ratios < 1.0 - SLACK)))


@dataclass(frozen=True, eq=False)
class CensusResult:
    """What the study found: lines for the table, a mechanism for each cover and α, and exposures of the region."""

    data: CensusSplit
    settings: Settings
    models: CensusModels
    lines: list[Line]
    mechanisms: dict[tuple[Cover, float], Mechanism]
    exposures: list[Exposure]

    @property
    def title(self) -> str:
        """What the table is about: the data, the training, and how many draws there are."""
        draws = {line.method: line.seeds for line in self.lines}
        return (
            f"{self.data}; {TRAINING[self.settings]}, minus log likelihood a row {self.models.nll:.3f}; "
            f"means over {draws[AWARE]} draws, {draws[NAIVE]} for {NAIVE}"
        )


def census_study(
    data: CensusSplit,
    settings: Settings,
    seeds: int = 200,
    covers: Sequence[Cover] = ("rows", "auto"),
    naive_seeds: int = 5,
    progress: Progress | None = None,
) -> CensusResult:
    """Compare the privacy-aware release with its rivals on ``data``.

    ======================= ============================================ =========================================
    method                  "paper"                                      "authors"
    ======================= ============================================ =========================================
    model                   at the maximum of the likelihood             Adam, 100 epochs, the scripts' schedule
    best predictions        the last cover; rows outside are served      the same
    DP-Cloaking             all-rows matrix, one draw                    also the scripts' private columns, one
                                                                         draw and 100 averaged
    Stationary              maximum likelihood for W                     Adam for W
    ======================= ============================================ =========================================

    ``seeds`` draws of noise a cell; Stationary fits a model to each, so it has ``naive_seeds``, with the first cover.
    (At the maximum PUMA tells nothing and the private rows almost determine each other: K_PP⁻¹ of the scripts' matrix
    is round-off there, so it is left out.)
    """
    check_asked(settings, covers, seeds=seeds, naive_seeds=naive_seeds)
    step = progress if progress is not None else Progress()
    step.stage("census: fitting the models")
    study = _Study(data, settings, census_models(data, settings), seeds)
    jobs: list[tuple[Cover, float, Objective]] = [(cover, alpha, "noise") for cover in covers for alpha in ALPHAS]
    jobs += [(covers[-1], alpha, "predictions") for alpha in ALPHAS]
    for number, (cover, alpha, objective) in enumerate(jobs):
        step.stage(f"census: {METHODS[objective]}, {cover} cover, α = {alpha:g}")
        step.update(number / len(jobs))
        study.privacy_aware(cover, alpha, objective)
    for number, alpha in enumerate(ALPHAS):
        step.stage(f"census: a naive reader at α = {alpha:g}, {naive_seeds} fits")
        step.update(number / len(ALPHAS))
        study.stationary(covers[0], alpha, naive_seeds)
    step.stage("census: differential privacy")
    study.cloaking(DP_ALL)
    if settings == "authors":
        study.cloaking(DP_PRIVATE)
    study.standard()
    study.without_noise()
    return CensusResult(data, settings, study.models, study.table.lines, study.mechanisms, study.exposures)


def quick_census_study(data: CensusSplit, settings: Settings, progress: Progress | None = None) -> CensusResult:
    """The same on 400 training rows with few draws and the rows as cover: seconds instead of minutes."""
    return census_study(thinned(data), settings, seeds=20, covers=("rows",), naive_seeds=1, progress=progress)


@dataclass
class _Study:
    """One run: the data, the models, and what has been found so far."""

    data: CensusSplit
    settings: Settings
    models: CensusModels
    seeds: int
    exposures: list[Exposure] = field(default_factory=list)
    mechanisms: dict[tuple[Cover, float], Mechanism] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.people = people_of_the_region(self.data)
        self.table = Table(self.data.study, self.settings, self.data.test_inside)

    def privacy_aware(self, cover: Cover, alpha: float, objective: Objective) -> None:
        data, prior = self.data, self.models.owner
        asked: Any = {"protects": "function", "cover": cover, "objective": objective}

        def once() -> tuple[Mechanism, Array, Array]:
            with warnings.catch_warnings():
                # what the rows leave open goes into the table
                warnings.simplefilter("ignore", GuaranteeWarning)
                made = protect(prior, data.train, data.region, alpha, **asked, progress=False)
            noise = made.noise.covariance()
            total = prior.covariance(data.train) + np.diag(prior.noise_variance(len(data.train))) + noise
            return made, noise, solve_positive(total, prior.covariance(data.train, data.test))

        seconds, (made, noise, gain) = timed(once)
        published = np.array([self._published(made, seed) for seed in range(self.seeds)])
        means = prior.mean_at(data.test) + (published - prior.mean_at(data.train)) @ gain
        self._add(METHODS[objective], f"α = {alpha:g}", means, seconds, cover=cover, certificates=[made.certificate])
        if objective == "noise":
            self.mechanisms[cover, alpha] = made
            self._expose(AWARE, cover, alpha, reader(prior, data, noise))

    def stationary(self, cover: Cover, alpha: float, fits: int) -> None:
        published = [self._published(self.mechanisms[cover, alpha], seed) for seed in range(fits)]
        seconds, means = timed(
            lambda: [naive_prediction(self.data, self.settings, self.models.owner, values) for values in published]
        )
        self._add(NAIVE, f"α = {alpha:g}", np.array(means), seconds / fits, cover=cover)

    def cloaking(self, method: str) -> None:
        """DP-Cloaking, one draw; of the scripts' private columns also the mean of many draws, which they scored."""
        data, models = self.data, self.models
        averages: list[tuple[str, Array, float]] = []
        for epsilon in EPSILONS:
            budget = Budget(epsilon, DELTA, models.unit)
            with warnings.catch_warnings():
                # that the scripts' matrix covers too little goes into the table
                warnings.simplefilter("ignore", GuaranteeWarning)
                matrix: Any = "all" if method == DP_ALL else "private"
                seconds, made = timed(cloak, models.owner, data.train, data.test, data.region, budget, matrix)
            level = f"ε = {epsilon:g}"
            self._add(method, level, self._drawn(made), seconds, holds="yes" if made.holds else "NO")
            if method == DP_PRIVATE:
                averages.append((level, self._drawn(made, AVERAGED), seconds))
        for level, means, seconds in averages:
            self._add(DP_AVERAGED, level, means, seconds, holds="NO")

    def standard(self) -> None:
        """Standard differential privacy for functions, one draw."""
        data, models = self.data, self.models
        for epsilon in EPSILONS:
            budget = Budget(epsilon, DELTA, models.unit)
            seconds, made = timed(standard_dp, models.owner, data.train, data.test, data.region, budget)
            self._add(DP_STANDARD, f"ε = {epsilon:g}", self._drawn(made), seconds, holds="yes")

    def without_noise(self) -> None:
        """The model without the sensitive rows, and the one with every row as it is."""
        data, models = self.data, self.models
        rows = (data.train, data.train_y)
        seconds, kept = timed(dropout, models.dropout, *rows, data.region)
        self._add(DROPOUT, "", kept.mean_at(data.test)[None], seconds)
        seconds, whole = timed(models.owner.condition, *rows)
        self._add(UNSECURED, "", whole.mean_at(data.test)[None], seconds)
        for alpha in ALPHAS:
            # the owner's prior says what readers of the kept rows know, too
            self._expose(DROPOUT, "", alpha, dropout(models.owner, *rows, data.region))
            self._expose(UNSECURED, "", alpha, whole)

    def _drawn(self, made: PrivatePredictions, draws: int = 1) -> Array:
        return np.array([made.draw(self.data.train_y, unsafe_seed=seed, draws=draws) for seed in range(self.seeds)])

    def _published(self, made: Mechanism, seed: int) -> Array:
        return made.release(self.data.train_y, unsafe_seed=seed).outputs

    def _expose(self, method: str, cover: str, alpha: float, who: Posterior) -> None:
        self.exposures.append(exposure(method, cover, alpha, who, self.models.owner, self.people))

    def _add(self, method: str, level: str, means: Array, seconds: float, **more: Any) -> None:
        self.table.add(method, level, [means - self.data.test_y], seconds, **more)
