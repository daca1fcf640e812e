"""The paper's census study: errors, certificates and exposure for every method and level (its Table 3, and more).

Errors are those of predicted incomes of the test rows against their real ones, in 100 000 dollars. They are averaged
over draws of the noise: the predictions are linear in the published values, so all draws are predicted at once.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ..certificate import Certificate
from ..errors import GuaranteeWarning, InputError
from ..inputs import Array
from ..mechanism import Mechanism, protect
from ..noise import Noise
from ..prior import Posterior
from ..progress import Progress
from ..rivals.averaged_draws import average_as_the_scripts_did
from ..rivals.baselines import dropout, unsecured
from ..rivals.cloaking import CloakingMatrix, cloak
from ..rivals.prediction_map import solve_positive
from ..rivals.standard_dp import standard_dp
from .census_data import CensusSplit, thinned
from .census_exposure import Exposure, exposure, people_of_the_region, reader
from .census_models import CensusModels, Settings, census_models, naive_prediction
from .study_table import Errors, Line, promise_kept

Cover = Literal["rows", "auto"]
ALPHAS = (0.1, 0.5, 0.9)
EPSILONS = (0.3, 0.5, 1.0)
DELTA = 0.01
AVERAGED = 100

AWARE, NAIVE, DROPOUT, UNSECURED = "privacy-aware", "Stationary", "Dropout", "Unsecured"
DP_ALL = "DP-Cloaking, all rows, one draw"
DP_PRIVATE = "DP-Cloaking, private columns, one draw"
DP_AVERAGED = f"DP-Cloaking, private columns, mean of {AVERAGED}"
DP_STANDARD = "standard DP, one draw"


@dataclass(frozen=True, eq=False)
class Protection:
    """The noise for one level and one cover, and its certificate."""

    cover: Cover
    alpha: float
    noise: Noise
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class CensusResult:
    """Everything the study found: ``lines`` for the table, ``exposures`` of the region, and what figures need."""

    data: CensusSplit
    settings: Settings
    models: CensusModels
    lines: list[Line]
    protections: list[Protection]
    exposures: list[Exposure]

    @property
    def title(self) -> str:
        """What the table is about: the data, the training, and how many draws there are."""
        how = {"paper": "maximum likelihood", "authors": "the scripts' training"}[self.settings]
        draws = {line.method: line.seeds for line in self.lines}
        return (
            f"{self.data}; {how}, minus log likelihood a row {self.models.nll:.3f}; "
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
    DP-Cloaking             all-rows matrix, one draw                    also the scripts' private columns, one
                                                                         draw and 100 averaged
    Stationary              maximum likelihood for W                     Adam for W
    ======================= ============================================ =========================================

    ``seeds`` draws of noise a cell; Stationary fits a model to each, so it has ``naive_seeds``, with the first cover.
    (At the maximum PUMA tells nothing and the private rows almost determine each other: K_PP⁻¹ of the scripts' matrix
    is round-off there, so it is left out.)
    """
    _check(seeds, naive_seeds, covers)
    step = progress if progress is not None else Progress()
    step.stage("census: fitting the models")
    study = _Study(data, settings, census_models(data, settings), seeds)
    jobs = [(cover, alpha) for cover in covers for alpha in ALPHAS]
    for number, (cover, alpha) in enumerate(jobs):
        step.stage(f"census: privacy-aware, {cover} cover, α = {alpha:g}")
        step.update(number / len(jobs))
        study.privacy_aware(cover, alpha)
    for number, alpha in enumerate(ALPHAS):
        step.stage(f"census: a naive reader at α = {alpha:g}, {naive_seeds} fits")
        step.update(number / len(ALPHAS))
        study.stationary(covers[0], alpha, naive_seeds)
    step.stage("census: differential privacy")
    study.cloaking()
    study.standard()
    study.without_noise()
    return CensusResult(data, settings, study.models, study.lines, study.protections, study.exposures)


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
    lines: list[Line] = field(default_factory=list)
    protections: list[Protection] = field(default_factory=list)
    exposures: list[Exposure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.people = people_of_the_region(self.data)
        self.mechanisms: dict[tuple[Cover, float], Mechanism] = {}

    def privacy_aware(self, cover: Cover, alpha: float) -> None:
        data, prior = self.data, self.models.owner
        start = time.perf_counter()
        with warnings.catch_warnings():
            # what the rows leave open goes into the table
            warnings.simplefilter("ignore", GuaranteeWarning)
            made = protect(prior, data.train, data.region, alpha, cover=cover, progress=False)
        noise = made.noise.covariance()
        total = prior.covariance(data.train) + np.diag(prior.noise_variance(len(data.train))) + noise
        gain = solve_positive(total, prior.covariance(data.train, data.test))
        seconds = time.perf_counter() - start
        published = np.array([self._published(made, seed) for seed in range(self.seeds)])
        means = prior.mean_at(data.test) + (published - prior.mean_at(data.train)) @ gain
        certificate = made.certificate
        holds = promise_kept([certificate])
        ratios = (certificate.joint_ratio, certificate.floor_ratio)
        self._add(AWARE, f"α = {alpha:g}", cover, means, holds, ratios, seconds)
        self.mechanisms[cover, alpha] = made
        self.protections.append(Protection(cover, alpha, made.noise, certificate))
        self._expose(AWARE, cover, alpha, reader(prior, data, noise))

    def stationary(self, cover: Cover, alpha: float, fits: int) -> None:
        start = time.perf_counter()
        published = [self._published(self.mechanisms[cover, alpha], seed) for seed in range(fits)]
        means = [naive_prediction(self.data, self.settings, self.models.owner, values) for values in published]
        seconds = (time.perf_counter() - start) / fits
        self._add(NAIVE, f"α = {alpha:g}", cover, np.array(means), seconds=seconds)

    def cloaking(self) -> None:
        self._cloaks("all")
        if self.settings == "authors":
            self._cloaks("private")

    def without_noise(self) -> None:
        data, models = self.data, self.models
        start = time.perf_counter()
        kept = dropout(models.dropout, data.train, data.train_y, data.region)
        means = kept.mean_at(data.test)[None]
        self._add(DROPOUT, "", "", means, seconds=time.perf_counter() - start)
        start = time.perf_counter()
        bare = unsecured(models.owner, data.train, data.train_y)
        means = bare.mean_at(data.test)[None]
        self._add(UNSECURED, "", "", means, seconds=time.perf_counter() - start)
        for alpha in ALPHAS:
            # the owner's prior says what readers of the kept rows know, too
            self._expose(DROPOUT, "", alpha, dropout(models.owner, data.train, data.train_y, data.region))
            self._expose(UNSECURED, "", alpha, bare)

    def _cloaks(self, matrix: CloakingMatrix) -> None:
        data, models = self.data, self.models
        averages: list[tuple[str, Array, float]] = []
        for epsilon in EPSILONS:
            start = time.perf_counter()
            with warnings.catch_warnings():
                # that the scripts' matrix covers too little goes into the table
                warnings.simplefilter("ignore", GuaranteeWarning)
                made = cloak(
                    models.owner,
                    data.train,
                    data.test,
                    data.region,
                    epsilon=epsilon,
                    delta=DELTA,
                    sensitivity=models.unit,
                    matrix=matrix,
                    calibration="hall",
                )
            seconds = time.perf_counter() - start
            level, holds = f"ε = {epsilon:g}", "yes" if made.holds else "NO"
            means = np.array([made.draw(data.train_y, unsafe_seed=seed).mean for seed in range(self.seeds)])
            self._add(DP_ALL if matrix == "all" else DP_PRIVATE, level, "", means, holds, seconds=seconds)
            if matrix == "private":
                batches = [
                    average_as_the_scripts_did(made, data.train_y, AVERAGED, unsafe_seed=seed).prediction.mean
                    for seed in range(self.seeds)
                ]
                averages.append((level, np.array(batches), seconds))
        for level, means, seconds in averages:
            self._add(DP_AVERAGED, level, "", means, "NO", seconds=seconds)

    def standard(self) -> None:
        """Standard differential privacy for functions, one draw."""
        data, models = self.data, self.models
        for epsilon in EPSILONS:
            start = time.perf_counter()
            made = standard_dp(
                models.owner,
                data.train,
                data.test,
                data.region,
                epsilon=epsilon,
                delta=DELTA,
                sensitivity=models.unit,
            )
            seconds = time.perf_counter() - start
            means = np.array([made.draw(data.train_y, unsafe_seed=seed).mean for seed in range(self.seeds)])
            self._add(DP_STANDARD, f"ε = {epsilon:g}", "", means, "yes", seconds=seconds)

    def _published(self, made: Mechanism, seed: int) -> Array:
        return made.release(self.data.train_y, unsafe_seed=seed).outputs

    def _expose(self, method: str, cover: str, alpha: float, who: Posterior) -> None:
        self.exposures.append(exposure(method, cover, alpha, who, self.models.owner, self.people))

    def _add(
        self,
        method: str,
        level: str,
        cover: str,
        means: Array,
        holds: str = "",
        ratios: tuple[float, float] = (math.nan, math.nan),
        seconds: float = math.nan,
    ) -> None:
        errors = Errors.of(means - self.data.test_y, self.data.test_inside)
        self.lines.append(
            Line.of(
                errors,
                study=self.data.study,
                settings=self.settings,
                method=method,
                level=level,
                cover=cover,
                seeds=len(means),
                holds=holds,
                joint_ratio=ratios[0],
                floor_ratio=ratios[1],
                seconds=seconds,
            )
        )


def _check(seeds: int, naive_seeds: int, covers: Sequence[Cover]) -> None:
    for name, value in (("seeds", seeds), ("naive_seeds", naive_seeds)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} is {value!r}; give a whole number of draws, at least 1.")
    if not covers or isinstance(covers, str) or not set(covers) <= {"rows", "auto"}:
        raise InputError(f'covers is {covers!r}; give ("rows",), ("auto",) or ("rows", "auto").')
