"""Privacy against accuracy: what readers lose elsewhere at each level of protection, by which promise and which way.

What was found is a line for each way and level: as a table, as sentences and as a picture.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

from ..arrays import Array
from ..data import Inputs, StoredInputs, as_inputs, as_outputs
from ..design import FEW_ROWS, AskedCover, Mechanism, check_choice, check_prior, protect
from ..errors import FindingWarning, GuaranteeWarning, InputError
from ..models import JointPrior, Prior
from ..progress import Progress
from ..progress import progress as show_progress
from ..promise import Design, FloorTolerance, FractionTolerance, Tolerance
from ..proof import record_floors
from ..regions import Region
from ..text import aligned, listed, plain
from ..views import boxed_table, pictures
from .tradeoff_readers import (
    DELTA,
    Places,
    cloaked,
    everything,
    measured_error,
    places_to_look,
    plain_design,
    record_variances,
    variances,
    without_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Way = Literal["joint", "function", "records", "pointwise", "diagonal", "dropout", "cloaking"]
WAYS: tuple[Way, ...] = get_args(Way)

#: How ``protect`` is asked for each way that makes a promise.
PROMISES: dict[str, dict[str, Any]] = {
    "joint": {},
    "function": {"protects": "function"},
    "records": {"protects": "records"},
    "pointwise": {"guarantee": "pointwise"},
    "diagonal": {"structure": "diagonal"},
}

#: The ways that promise something about different things, and how they are called in sentences.
ABOUT = {"records": "records", "function": "the function", "joint": "both"}

#: The levels that are compared if none are named.
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def number(value: float) -> str:
    """A number as people write it, with no more digits than anyone reads.

    >>> [number(value) for value in (20000.0, 0.031416, 12.345678, float("nan"))]
    ['20,000', '0.03142', '12.35', '–']
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def share(value: float) -> str:
    """A share in per cent, with no more digits than anyone reads.

    >>> [share(value) for value in (0.0312, 0.00004, 0.5, 0.0, 0.0042)]
    ['3 %', 'less than 0.01 %', '50 %', '0 %', '0.4 %']
    """
    if math.isnan(value):
        return "–"
    if 0.0 < value < 1e-4:
        return "less than 0.01 %"
    digits = 0 if value >= 0.01 or value == 0.0 else 1 if value >= 0.001 else 2
    return f"{100 * value:.{digits}f} %"


def short(value: float) -> str:
    """Two digits, for sentences."""
    if not math.isfinite(value):
        return number(value)
    return number(float(round(value))) if abs(value) >= 100 else f"{value:.2g}"


#: Column heads of the table, and those of them that a narrow screen leaves out.
TRADEOFF_HEADER = (
    "way",
    "α",
    "floor",
    "holds",
    "f in",
    "y in",
    "rmse out",
    "loss",
    "learnt",
    "rmse in",
    "noise",
    "spill",
)
WIDE_ONLY = ("learnt", "rmse in", "noise", "spill")


@dataclass(frozen=True)
class Line:
    """One way at one level. Numbers that do not apply are NaN.

    ================ =======================================================================================
    ``way``          how the data are published; ``alpha`` or ``floor`` is the level that was asked for
    ``floor``        the least standard deviation that readers must keep in the region, in the owner's units: of f, or
                     of records where only these are promised
    ``holds``        whether the certificate holds; None where nothing is promised
    ``evidence``     what it rests on, "proved" or "searched"; "" where it does not hold, or nothing is promised
    ``learnt``       the largest share of the prior variance that a reader learns at any input inside
    ``least_std``    the least standard deviation of f that a reader reaches inside, ``record_std`` that of a record
    ``rmse_inside``  a reader's expected error inside, ``rmse_outside`` outside
    ``loss``         what readers lose outside: of the variance that they could explain from all data, the share
    ``noise``        root mean square noise a row (of cloaking: a prediction)
    ``spill``        the share of the noise that falls outside the region
    ``measured``     with y: the held-out error outside (for the owner only)
    ``epsilon``      of cloaking: the ε of this much noise, for a change of one value by ``sensitivity``, δ = 0.01
    ================ =======================================================================================
    """

    way: str
    alpha: float
    floor: float
    holds: bool | None
    learnt: float
    least_std: float
    rmse_inside: float
    rmse_outside: float
    loss: float
    noise: float
    spill: float
    measured: float = math.nan
    epsilon: float = math.nan
    seconds: float = 0.0
    evidence: str = ""
    record_std: float = math.nan


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """What each level of protection costs readers outside the region, by several ways.

    ``rows`` has a ``Line`` for each; ``everything`` is the one without protection, which losses are relative to, and
    ``prior_rmse`` what readers know outside without any data. ``skipped`` says what could not be compared, and why.
    """

    rows: tuple[Line, ...]
    everything: Line
    prior_rmse: float
    region: str
    by_floor: bool
    sensitivity: float
    skipped: tuple[tuple[str, str], ...] = ()
    output: str = "f"

    def of(self, way: str) -> tuple[Line, ...]:
        """The lines of one way, by level."""
        return tuple(line for line in self.rows if line.way == way)

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.way for line in self.rows))

    def table(self) -> pd.DataFrame:
        """All lines, that of publishing everything first."""
        return pd.DataFrame([asdict(line) for line in (self.everything, *self.rows)])

    def sentence(self, alpha: float | None = None, *, floor: float | None = None, way: str | None = None) -> str:
        """One level in a manager's words; ``way`` is "joint" if it was asked for, else the first one."""
        return sentence_of(self, self._line(alpha, floor, way))

    def _line(self, alpha: float | None, floor: float | None, way: str | None) -> Line:
        chosen = way or ("joint" if self.of("joint") else self.ways[0])
        if chosen not in self.ways:
            raise InputError(
                f"way is {way!r}, which was not compared; choose one of {', '.join(map(repr, self.ways))}."
            )
        lines = self.of(chosen)
        if chosen == "dropout":
            return lines[0]
        if (alpha is None) == (floor is None):
            raise InputError("give sentence exactly one of alpha and floor; it is about one level.")
        word, value = ("floor", floor) if alpha is None else ("alpha", alpha)
        for line in lines:
            if value is not None and _same(getattr(line, word), value):
                return line
        known = ", ".join(f"{getattr(line, word):g}" for line in lines)
        raise InputError(f"{word} is {value}, which was not computed for {chosen!r}; choose one of {known}.")

    def as_dict(self) -> dict[str, Any]:
        """Numbers in plain Python types; what is not finite becomes None, as JSON has it."""
        found: dict[str, Any] = plain(
            {
                "region": self.region,
                "output": self.output,
                "prior_rmse": self.prior_rmse,
                "sensitivity": self.sensitivity,
                "everything": asdict(self.everything),
                "rows": [asdict(line) for line in self.rows],
                "skipped": [{"way": way, "why": why} for way, why in self.skipped],
            }
        )
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """The loss of accuracy outside against the level, a curve for each way."""
        axes: Axes = pictures().plot_tradeoff(self, ax=ax)
        return axes

    def __str__(self) -> str:
        return table_in_words(self)

    def _repr_html_(self) -> str:
        rows = [cells(line) for line in (self.everything, *self.rows)]
        heading = f"What readers of {self.output} lose where {self.region} is protected"
        return boxed_table("", "", heading, rows, TRADEOFF_HEADER, notes(self))


def sentence_of(found: Tradeoff, line: Line) -> str:
    """What ``line`` means for those who decide."""
    if line.way == "dropout":
        start = (
            f"With the rows inside {found.region} left out nothing is promised: readers still know {found.output} "
            f"there to within ±{number(line.least_std)}"
        )
    else:
        level = "" if math.isnan(line.alpha) else f" (α = {line.alpha:g})"
        start = f"At ±{number(line.floor)}{' for each record' * (line.way == 'records')} inside {found.region}{level}"
    if math.isnan(line.loss):
        return f"{start}; there is no elsewhere to compare."
    joined = ", and they lose" if line.way == "dropout" else ", readers lose"
    errors = f"{short(line.rmse_outside)} instead of {short(found.everything.rmse_outside)}"
    end = "" if line.holds is not False else " THE CERTIFICATE DOES NOT HOLD."
    return f"{start}{joined} {share(line.loss)} of accuracy elsewhere: their error there is {errors}.{end}"


def cells(line: Line) -> tuple[str, ...]:
    """One line of the table."""
    way = line.way if math.isnan(line.epsilon) else f"{line.way}, ε = {short(line.epsilon)}"
    holds = "NO" if line.holds is False else line.evidence
    level = "" if math.isnan(line.alpha) else f"{line.alpha:g}"
    floor = "" if math.isnan(line.floor) else number(line.floor)
    values = (number(value) for value in (line.least_std, line.record_std, line.rmse_outside))
    learnt, loss, spill = (share(value).replace("less than ", "<") for value in (line.learnt, line.loss, line.spill))
    return (way, level, floor, holds, *values, loss, learnt, number(line.rmse_inside), number(line.noise), spill)


def table_in_words(found: Tradeoff) -> str:
    """The table as a narrow screen has it, what was left out, and sentences about the middle level."""
    shown = [place for place, name in enumerate(TRADEOFF_HEADER) if name not in WIDE_ONLY]
    whole = [TRADEOFF_HEADER, *(cells(line) for line in (found.everything, *found.rows))]
    rows = [[line[place] for place in shown] for line in whole]
    title = f"What readers of {found.output} lose where {found.region} is protected"
    return "\n".join([title, *aligned(rows), "", *notes(found)])


def notes(found: Tradeoff) -> list[str]:
    """What the numbers mean, what was left out and why, and one line of the table as a sentence."""
    searched = any(line.evidence == "searched" for line in found.rows)
    said = [
        "f in, y in: how well a reader knows f and a record inside, at best; out: outside the region;",
        "loss: of the variance that all data without noise would explain outside, the share that is not explained.",
        *(["searched: a part of the region could not be proved."] if searched else []),
        *(["dropout: the rows inside are left out, which promises nothing."] if found.of("dropout") else []),
        *(f"{way}: {why.rstrip('.')}." for way, why in found.skipped),
    ]
    if any(line.way == "cloaking" for line in found.rows):
        said.append(f"ε is for a change of one value by {number(found.sensitivity)}, with δ = {DELTA:g}.")
    promised = [line for line in found.rows if line.holds is not None]
    first = [line for line in promised if line.way == promised[0].way]
    middle = first[len(first) // 2 :][:1]
    return [*said, *(sentence_of(found, line) for line in middle), *promises_in_words(found, *middle)]


def promises_in_words(found: Tradeoff, level: Line | None = None) -> list[str]:
    """The promises that were compared at one level, a sentence in units; none where there is only one."""
    if level is None:
        return []
    word = "floor" if found.by_floor else "alpha"
    lines = [line for way in ABOUT for line in found.of(way) if _same(getattr(line, word), getattr(level, word))]
    if len(lines) < 2 or any(math.isnan(line.rmse_outside) for line in lines):
        return []
    value = f"a floor of ±{number(level.floor)}" if found.by_floor else f"α = {level.alpha:g}"
    errors = (f"{short(line.rmse_outside)} if it protects {ABOUT[line.way]}" for line in lines)
    bare = f"{short(found.everything.rmse_outside)} without protection"
    return [f"At {value} readers' error elsewhere is {bare}, {listed(list(errors))}."]


def _same(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-9)


@dataclass(frozen=True, eq=False)
class Level:
    """A level that was asked for, as α or as a floor; ``words`` is the number, ``alpha`` of a floor is NaN."""

    tolerance: Tolerance
    words: str
    alpha: float = math.nan

    def floor(self, prior: Prior, points: Array) -> Array:
        """The least standard deviation that readers must keep at ``points``."""
        return self.tolerance.floor(prior, points)


def checked_problem(prior: Any, X: Any, region: Any) -> tuple[Inputs, Region]:
    """The inputs, and the region bound to them."""
    if isinstance(prior, JointPrior):
        raise InputError(
            f"prior is a JointPrior of {', '.join(prior.outputs)}, whose errors have units of their own, so that there "
            "is no one error to compare; give the sf.Prior of one output, or call sf.protect at each level and read "
            "the certificates."
        )
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}; give a sf.Prior, for example from sf.fit_prior(X, y).")
    if isinstance(X, StoredInputs):
        raise InputError("X is read part after part; give a sample of its rows in memory to compare levels on.")
    if not isinstance(region, Region):
        raise InputError(f"region is {region!r}; give a region such as sf.Box(1, 2).")
    inputs = as_inputs(X)
    check_prior(prior, inputs)
    return inputs, region.bind(inputs)


def asked_levels(alphas: Any, floors: Any) -> list[Level]:
    """Each level that was asked for, checked."""
    word, given = ("alphas", alphas) if floors is None else ("floors", floors)
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = [given]
    listed = list(given) if hasattr(given, "__iter__") and not isinstance(given, str) else []
    if not listed:
        raise InputError(f"{word} is {given!r}; give one or more numbers, such as {word}=[0.1, 0.3].")
    if any(callable(one) for one in listed):
        raise InputError(f"{word} has a function in it; give numbers{', in the units of y' if floors else ''}.")
    if floors is None:
        return [Level(FractionTolerance(alpha), f"{alpha:g}", alpha) for alpha in listed]
    return [Level(FloorTolerance(floor), f"{floor:g}") for floor in listed]


def asked_ways(ways: Any) -> list[str]:
    """The ways, each known and named once."""
    listed = [ways] if isinstance(ways, str) else list(ways)
    for way in listed:
        check_choice("ways", way, WAYS)
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"ways is {ways!r}; name each way once: {', '.join(map(repr, WAYS))}.")
    return listed


def called(*levels: Level) -> str:
    """Levels in words."""
    return f"{'floor' if math.isnan(levels[0].alpha) else 'α'} = {', '.join(level.words for level in levels)}"


def tradeoff(
    prior: Prior,
    X: Any,
    region: Region,
    alphas: Sequence[float] = ALPHAS,
    *,
    floors: Sequence[float] | None = None,
    y: Any = None,
    ways: Sequence[str] = WAYS,
    X_test: Any = None,
    cover: AskedCover = "auto",
    progress: bool = True,
) -> Tradeoff:
    """What readers lose outside ``region`` at each of ``alphas`` (or ``floors``, in the units of y), by several ways.

    Errors are expected ones: the root of the mean posterior variance under the prior, at ``X_test`` or at a spread of
    inputs that follows the data. No values are needed. With ``y`` held-out errors are measured too: those are for the
    owner only. Each level is one call of ``protect`` for each of the first five ways.

    =========== =======================================================================================
    way         what is published
    =========== =======================================================================================
    "joint"     correlated noise; f, records and all their averages are protected: ``protect(…)``
    "function"  the same for f alone, the typical value at given inputs: ``protects="function"``
    "records"   the same for what is each record's own, while f may be known: ``protects="records"``
    "pointwise" correlated noise, each value by itself: ``guarantee="pointwise"``
    "diagonal"  every row blurred by itself: ``structure="diagonal"``
    "dropout"   the rows outside as they are, those inside not at all. It promises nothing: ``learnt`` and
                ``least_std`` say what readers reach inside, at no level but its own
    "cloaking"  predictions with differentially private noise, of the size with which readers stay above the
                same floor at the inputs that are looked at; ``epsilon`` says which ε that is
    =========== =======================================================================================

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.1
    >>> prior = sf.Prior(kernel, noise=0.05)
    >>> found = sf.tradeoff(prior, np.linspace(0, 3, 31), sf.Box(1, 2), [0.1, 0.5], ways=["joint"])
    >>> print(found.sentence(0.5))
    At ±0.7071 inside 1 ≤ x ≤ 2 (α = 0.5), readers lose 4 % of accuracy elsewhere: their error there is 0.28 instead
    of 0.21.
    """
    inputs, bound = checked_problem(prior, X, region)
    levels = asked_levels(alphas, floors)
    asked = asked_ways(ways)
    values = None if y is None else as_outputs(y, inputs)
    name = getattr(y, "name", None)
    comparison = Comparison(prior, inputs, bound, places_to_look(inputs, bound, X_test), values, cover)
    with warnings.catch_warnings(record=True) as caught, show_progress(progress) as step:
        warnings.simplefilter("always")
        # findings of designs that are compared, not published
        warnings.simplefilter("ignore", FindingWarning)
        unprotected, rows = comparison.lines(levels, asked, step)
    for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, GuaranteeWarning)):
        warnings.warn(text, GuaranteeWarning, stacklevel=2)
    return Tradeoff(
        rows=tuple(rows),
        everything=unprotected,
        prior_rmse=comparison.prior_rmse,
        region=bound.in_words(inputs.names),
        by_floor=floors is not None,
        sensitivity=comparison.sensitivity,
        skipped=tuple(dict.fromkeys(comparison.skipped)),
        output=name if isinstance(name, str) else "f",
    )


class Comparison:
    """The comparison while it is made: readers of each design, at the same places."""

    def __init__(
        self, prior: Prior, inputs: Inputs, region: Region, places: Places, y: Array | None, cover: AskedCover
    ) -> None:
        self.prior, self.inputs, self.region, self.places, self.y, self.cover = prior, inputs, region, places, y, cover
        self.private = region.contains(inputs.values)
        prior_variance = prior.variance(places.all)
        outside, self.prior_inside = places.split(prior_variance)
        self.prior_rmse = _root_mean(outside)
        self.unprotected_rmse = math.nan
        self.skipped: list[tuple[str, str]] = []
        # the most that one value can change: from one end of the data to the other, or four prior deviations
        wide = 4.0 * float(np.sqrt(np.max(prior_variance)))
        self.sensitivity = (wide if y is None else float(np.ptp(y))) or wide

    def lines(self, levels: Sequence[Level], ways: Sequence[str], step: Progress) -> tuple[Line, list[Line]]:
        """The line without protection, and those of each way and level."""
        designs = self._designs(levels, [way for way in ways if way in PROMISES], step)
        if not designs and set(ways) <= set(PROMISES):
            raise InputError(self.skipped[-1][1])
        step.stage("comparing what readers know")
        # readers of large data are computed as those of the designs are
        bare = (
            everything(designs[0].mechanism.design) if designs else plain_design(self.prior, self.inputs, self.region)
        )
        unprotected = self._line("everything", bare)
        rows = [self._promised_line(made) for made in designs]
        if "dropout" in ways:
            rows.append(self._line("dropout", without_rows(bare, ~self.private)))
        if "cloaking" in ways:
            rows.extend(self._cloaking_lines(levels))
        rows = [replace(line, loss=self._loss(line, unprotected)) for line in rows]
        unprotected = replace(unprotected, loss=self._loss(unprotected, unprotected))
        self.unprotected_rmse = unprotected.rmse_outside
        return unprotected, sorted(rows, key=lambda line: list(ways).index(line.way))

    def _designs(self, levels: Sequence[Level], ways: Sequence[str], step: Progress) -> list[_Made]:
        made: list[_Made] = []
        jobs = [(way, level) for way in ways for level in levels]
        for done, (way, level) in enumerate(jobs):
            if any(way == skipped for skipped, _ in self.skipped):
                continue
            step.stage(f"{way}, {called(level)}")
            step.update(done / len(jobs))
            start = time.perf_counter()
            mechanism = self._protect(way, level)
            if mechanism is not None:
                made.append(_Made(way, level, mechanism, time.perf_counter() - start))
                if done == 0:
                    each = made[0].seconds
                    step.announce(f"{len(jobs)} designs, about {each:.0f} s each", len(jobs) * each)
        return made

    def _protect(self, way: str, level: Level) -> Mechanism | None:
        if way == "diagonal" and len(self.inputs) > FEW_ROWS:
            self.skipped.append((way, f"it cannot be compressed, so it is compared up to {FEW_ROWS:,} rows only"))
            return None
        if way == "function" and not np.any(self.prior.noise_variance(len(self.inputs))[self.private] > 0):
            self.skipped.append((way, "no record inside has anything of its own (noise is 0), so this is joint"))
            return None
        how: dict[str, Any] = {"tolerance": level.tolerance, "cover": self.cover, "progress": False, **PROMISES[way]}
        try:
            return protect(self.prior, self.inputs, self.region, **how)
        except InputError as error:
            if way == "joint":
                raise
            self.skipped.append((way, str(error)))
            return None

    def _line(self, way: str, design: Design, level: Level | None = None, **more: Any) -> Line:
        """What readers of ``design`` know."""
        variance = variances(design, self.places.all)
        more |= {"measured": self._measured(design), "record_std": self._record_std(design)}
        return self._line_of(way, variance, level, **more)

    def _record_std(self, design: Design) -> float:
        """The least standard deviation of a record inside that a reader of ``design`` keeps."""
        if not self.private.any() or design.noise.compressed:
            return math.nan
        if len(design.inputs) == len(self.inputs):
            variance = record_variances(design, np.flatnonzero(self.private))
        else:  # they were left out
            own = self.prior.noise_variance(len(self.inputs))[self.private]
            variance = variances(design, self.inputs.values[self.private]) + own
        return float(np.sqrt(np.min(variance)))

    def _line_of(self, way: str, variance: Array, level: Level | None, **more: Any) -> Line:
        """What readers with this ``variance`` know; ``level`` is None where nothing is promised."""
        outside, inside = self.places.split(variance)
        nothing: dict[str, Any] = {"holds": None, "noise": 0.0, "spill": math.nan}
        return Line(
            way=way,
            alpha=math.nan if level is None else level.alpha,
            floor=math.nan if level is None else float(np.min(level.floor(self.prior, self.places.inside))),
            learnt=float(np.max(1.0 - inside / self.prior_inside)),
            least_std=float(np.sqrt(np.min(inside))),
            rmse_inside=_root_mean(inside),
            rmse_outside=_root_mean(outside),
            loss=math.nan,
            **(nothing | more),
        )

    def _loss(self, line: Line, unprotected: Line) -> float:
        """Of the variance that readers of all data explain outside, the share that readers of ``line`` do not."""
        explained, most = (1.0 - (one.rmse_outside / self.prior_rmse) ** 2 for one in (line, unprotected))
        return max(0.0, 1.0 - explained / most) if most > 0 else math.nan

    def _promised_line(self, made: _Made) -> Line:
        certificate = made.mechanism.certificate
        noise = float(np.sqrt(made.mechanism.noise.trace / len(self.inputs)))
        evidence = certificate.evidence if certificate.holds else ""
        more = {"holds": certificate.holds, "noise": noise, "spill": certificate.spill, "seconds": made.seconds}
        design = made.mechanism.design
        line = self._line(made.way, design, made.level, **more, evidence=evidence)
        return line if design.protects_function else replace(line, floor=float(np.min(record_floors(design))))

    def _cloaking_lines(self, levels: Sequence[Level]) -> list[Line]:
        if not self.private.any():
            self.skipped.append(("cloaking", "no row lies in the region, so there is nothing that it would protect"))
            return []
        if len(self.inputs) > FEW_ROWS:
            self.skipped.append(("cloaking", f"it is compared up to {FEW_ROWS:,} rows only"))
            return []
        start = time.perf_counter()
        points, outside = self.places.all, len(self.places.outside)
        readers = cloaked(self.prior, self.inputs, self.private, points, self.sensitivity)
        inside = np.arange(len(points)) >= outside
        lines, missed = [], []
        for level in levels:
            size = readers.least_noise(level.floor(self.prior, self.places.inside), inside)
            if size is None:
                missed.append(level)
                continue
            noise = size * readers.shape
            more: dict[str, Any] = {
                "noise": float(np.sqrt(np.mean(noise))),
                "spill": float(np.sum(noise[:outside]) / np.sum(noise)) if size else 0.0,
                "epsilon": readers.epsilon(size),
                "seconds": time.perf_counter() - start,
            }
            lines.append(self._line_of("cloaking", readers.variance(size), level, **more))
        if missed:
            # its noise covers what the private rows change, and nothing of what the others tell about the region
            why = f"no ε keeps {called(*missed)} (δ = {DELTA:g}): what it leaves of the predictions tells more"
            self.skipped.append(("cloaking", why))
        return lines

    def _measured(self, design: Design) -> float:
        if self.y is None:
            return math.nan
        if len(design.inputs) == len(self.inputs):
            return measured_error(design, self.y, np.flatnonzero(~self.private))
        return measured_error(design, self.y[~self.private], np.arange(len(design.inputs)))


@dataclass(frozen=True, eq=False)
class _Made:
    """A mechanism of one way and level, and how long it took."""

    way: str
    level: Level
    mechanism: Mechanism
    seconds: float


def _root_mean(variance: Array) -> float:
    return float(np.sqrt(np.mean(variance))) if len(variance) else math.nan
