"""The paper's Table 2: errors of privacy-aware releases of the satellite and of their rivals, with certificates."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ..certificate import Certificate
from ..errors import InputError
from ..inputs import Array, Mask
from ..mechanism import Mechanism
from ..progress import Progress
from ..rivals.averaged_draws import average_as_the_scripts_did
from ..rivals.baselines import dropout, unsecured
from ..rivals.standard_dp import standard_dp
from .satellite import STATES, simulate, training_grid
from .satellite_models import MeanChoice, Models, Settings, hidden, models
from .satellite_releases import DELTA, Cell, Cover, cloaked, design, draws, naive_fit, released
from .study_table import Errors, Line, promise_kept

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

    ``settings`` are those of the paper's text or those of its authors' scripts (satellite_models.py), the latter with
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
            each = [average_as_the_scripts_did(noise, y, AVERAGED, unsafe_seed=seed) for seed in own]
            misses.append(np.array([one.prediction.mean for one in each]) - y)
            kept = f"NO, {AVERAGED} draws spend ε = {each[0].effective_epsilon:.3g}"
        book.write("DP-Cloaking", f"ε = {epsilon:g}", misses, seconds, holds=kept)
    for epsilon in EPSILONS:
        misses, seconds = [], []
        for state, y in book.outputs.items():
            start, model = time.perf_counter(), book.models[state]
            made = standard_dp(
                model.cloaking,
                book.times,
                book.times,
                hidden(book.times),
                epsilon=epsilon,
                delta=DELTA,
                sensitivity=model.unit,
            )
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
