"""Privacy against accuracy: what readers lose elsewhere at each level of protection, by which promise and which way.

What was found is a line for each way and level: as a table, as sentences and as a picture.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

from ..data import as_outputs
from ..design import FEW_ROWS, AskedCover, check_choice
from ..errors import FindingWarning, GuaranteeWarning, InputError
from ..models import Prior
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..regions import Region
from ..text import aligned, listed, name_and_unit, plain, shown_lines, wrapped
from ..views import boxed_table, pictures
from .comparison import Comparison, Line, asked_levels, called, checked_problem
from .tradeoff_readers import DELTA, places_to_look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Way = Literal["joint", "predictions", "function", "records", "pointwise", "diagonal", "dropout", "cloaking"]
WAYS: tuple[Way, ...] = get_args(Way)

#: The ways that promise something about different things, and how they are called in sentences.
ABOUT = {"records": "records", "function": "the function", "joint": "both"}

#: Ways that are compared only if they are named where there are more rows, or more records inside: they take minutes.
SLOW_ROWS, SLOW_RECORDS, SLOW_TOGETHER = 1000, 50, 200

#: The levels that are compared if none are named.
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


#: What nobody should read out of a trade-off.
WEAKEST_IS_BEST = (
    "The weakest promise always predicts best: choose the level by what must stay unknown, not by accuracy alone."
)


#: What whoever chooses the best predictions has to know.
COUNTS_ON_THE_PRIOR = (
    'The best predictions (objective="predictions") count on the prior more than the least noise does, inside and '
    "outside: rehearse it first."
)


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

    @property
    def unit(self) -> str:
        """The unit of the output, from brackets at the end of its name, with a space before it; else nothing."""
        return name_and_unit(self.output)[1]

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
        return boxed_table("", "", title_of(self), rows, TRADEOFF_HEADER, notes(self))


def sentence_of(found: Tradeoff, line: Line) -> str:
    """What ``line`` means for those who decide."""
    if line.way == "dropout":
        start = (
            f"With the rows inside {found.region} left out nothing is promised: readers still know {found.output} "
            f"there to within ±{number(line.least_std)}{found.unit}"
        )
    else:
        level = "" if math.isnan(line.alpha) else f" (α = {line.alpha:g})"
        each = " for each record" * (line.way == "records")
        start = f"At ±{number(line.floor)}{found.unit}{each} inside {found.region}{level}"
    if math.isnan(line.loss):
        return f"{start}; there is no elsewhere to compare."
    end = "" if line.holds is not False else " THE PROMISE DOES NOT HOLD."
    costs = errors_outside(found.everything.rmse_outside, line.rmse_outside, line.loss, found.unit)
    return f"{start}: {costs}.{end}"


def errors_outside(before: float, after: float, loss: float, unit: str) -> str:
    """What readers outside lose, in units and as a share.

    >>> errors_outside(67.04, 74.2, 0.121, " g")
    'error outside 67 → 74 g, 12 % of the accuracy there is lost'
    """
    errors = f"error outside {short(before)} → {short(after)}{unit}"
    return f"{errors}, {share(loss)} of the accuracy there is lost"


def cells(line: Line) -> tuple[str, ...]:
    """One line of the table."""
    way = line.way if math.isnan(line.epsilon) else f"{line.way}, ε = {short(line.epsilon)}"
    holds = "" if line.holds is None else "yes" if line.holds else "NO"
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
    lines = [line for note in notes(found) for line in wrapped(note)]
    return shown_lines([*wrapped(title_of(found)), *aligned(rows), "", *lines])


def title_of(found: Tradeoff) -> str:
    """What a table of it is about, and in which units."""
    units = f"; floors, errors and noise in{found.unit}" if found.unit else ""
    return f"What readers of {name_and_unit(found.output)[0]} lose where {found.region} is protected{units}"


def notes(found: Tradeoff) -> list[str]:
    """What the numbers mean, what was left out and why, and one line of the table as a sentence."""
    searched = [way for way in found.ways if any(line.evidence == "searched" for line in found.of(way))]
    reasons = dict.fromkeys(why for _, why in found.skipped)
    said = [
        "f in, y in: how well a reader knows f and a record inside, at best; out: outside the region; "
        "loss: of the variance that all data without noise would explain outside, the share that is not explained.",
        *(f"{', '.join(way for way, own in found.skipped if own == why)}: {why.rstrip('.')}." for why in reasons),
    ]
    if searched:
        said.append(f"Of {listed(searched)} the floor was looked for at thousands of inputs: sf.protect proves it.")
    if found.of("dropout"):
        said.append("dropout: the rows inside are left out, which promises nothing.")
    if any(line.way == "cloaking" for line in found.rows):
        said.append(f"ε is for a change of one value by {number(found.sensitivity)}{found.unit}, with δ = {DELTA:g}.")
    promised = [line for line in found.rows if line.holds is not None]
    first = [line for line in promised if line.way == promised[0].way]
    middle = first[len(first) // 2 :][:1]
    said += [*(sentence_of(found, line) for line in middle), *predictions_in_words(found, *middle)]
    said += promises_in_words(found, *middle)
    return [*said, WEAKEST_IS_BEST] if len(first) > 1 else said


def predictions_in_words(found: Tradeoff, level: Line | None = None) -> list[str]:
    """What the best predictions save at one level of the same promise; nothing where they were not compared."""
    word = "floor" if found.by_floor else "alpha"
    if level is None or level.way != "joint":
        return []
    lines = [line for line in found.of("predictions") if _same(getattr(line, word), getattr(level, word))]
    saved = (f"With the best predictions {share(one.loss)} is lost instead of {share(level.loss)}." for one in lines)
    return [f"{one} {COUNTS_ON_THE_PRIOR}" for one in saved]


def promises_in_words(found: Tradeoff, level: Line | None = None) -> list[str]:
    """The promises that were compared at one level, a sentence in units; none where there is only one."""
    if level is None:
        return []
    word = "floor" if found.by_floor else "alpha"
    lines = [line for way in ABOUT for line in found.of(way) if _same(getattr(line, word), getattr(level, word))]
    if len(lines) < 2 or any(math.isnan(line.rmse_outside) for line in lines):
        return []
    value = f"a floor of ±{number(level.floor)}{found.unit}" if found.by_floor else f"α = {level.alpha:g}"
    errors = (f"{short(line.rmse_outside)}{found.unit} if it protects {ABOUT[line.way]}" for line in lines)
    bare = f"{short(found.everything.rmse_outside)}{found.unit} without protection"
    return [f"At {value} readers' error outside is {bare}, {listed(list(errors))}."]


def _same(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-9)


def asked_ways(ways: Any) -> list[str]:
    """The ways, each known and named once."""
    listed = [ways] if isinstance(ways, str) else list(ways)
    for way in listed:
        check_choice("ways", way, WAYS)
    if not listed or len(set(listed)) < len(listed):
        raise InputError(f"ways is {ways!r}; name each way once: {', '.join(map(repr, WAYS))}.")
    return listed


def tradeoff(
    prior: Prior,
    X: Any,
    region: Region,
    alphas: Sequence[float] = ALPHAS,
    *,
    floors: Sequence[float] | None = None,
    y: Any = None,
    ways: Sequence[str] | None = None,
    X_test: Any = None,
    cover: AskedCover = "auto",
    output: str | None = None,
    progress: AskedProgress = True,
) -> Tradeoff:
    """What readers lose outside ``region`` at each of ``alphas`` (or ``floors``, in the units of y), by several ways.

    Errors are expected ones: the root of the mean posterior variance under the prior, at ``X_test`` or at a spread of
    inputs that follows the data. No values are needed. With ``y`` held-out errors are measured too: those are for the
    owner only. ``output`` is the name of what y is, with its unit in brackets at the end ("mass [g]"), as in a table.

    Designs of the first four ways share their factorisations, and nothing is proved of a region: every ``holds`` says
    that the joint promise was checked at the sensitive inputs and for the records, and the floor at thousands of inputs
    of the region (``evidence`` is "searched" then). ``protect`` proves it at the level that you choose, with noise that
    differs by less than a hundredth as a rule. "pointwise" and "diagonal" are calls of ``protect``; where these take
    minutes they are left out unless ``ways`` names them. A level that cannot be promised is left out and said.
    Accuracy alone always picks the weakest promise.

    ============= =====================================================================================
    way           what is published
    ============= =====================================================================================
    "joint"       correlated noise; f, records and all their averages are protected: ``protect(…)``
    "predictions" the same promise, and what it leaves of the data serves readers outside best:
                  ``objective="predictions"``. It counts on the prior more, so rehearse it first
    "function"    the same for f alone, the typical value at given inputs: ``protects="function"``
    "records"     the same for what is each record's own, while f may be known: ``protects="records"``
    "pointwise"   correlated noise, each value by itself: ``guarantee="pointwise"``
    "diagonal"    every row blurred by itself: ``structure="diagonal"``
    "dropout"     the rows outside as they are, those inside not at all. It promises nothing: ``learnt`` and
                  ``least_std`` say what readers reach inside, at no level but its own
    "cloaking"    predictions with differentially private noise, of the size with which readers stay above the
                  same floor at the inputs that are looked at; ``epsilon`` says which ε that is
    ============= =====================================================================================

    >>> import gpytorch, numpy as np, sfumato as sf
    >>> kernel = gpytorch.kernels.RBFKernel()
    >>> kernel.lengthscale = 0.1
    >>> prior = sf.Prior(kernel, noise=0.05)
    >>> found = sf.tradeoff(prior, np.linspace(0, 3, 31), sf.Box(1, 2), [0.1, 0.5], ways=["joint"])
    >>> print(found.sentence(0.5))
    At ±0.7071 inside 1 ≤ x ≤ 2 (α = 0.5): error outside 0.21 → 0.28, 4 % of the accuracy there is lost.
    """
    inputs, bound = checked_problem(prior, X, region)
    levels = asked_levels(alphas, floors)
    values = None if y is None else as_outputs(y, inputs)
    name = getattr(y, "name", None) if output is None else output
    comparison = Comparison(prior, inputs, bound, places_to_look(inputs, bound, X_test), values, cover)
    asked, slow = (asked_ways(ways), []) if ways is not None else quick_ways(comparison)
    with warnings.catch_warnings(record=True) as caught, show_progress(progress) as step:
        warnings.simplefilter("always")
        # findings of designs that are compared, not published
        warnings.simplefilter("ignore", FindingWarning)
        rows = comparison.lines(levels, asked, step)
    for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, GuaranteeWarning)):
        warnings.warn(text, GuaranteeWarning, stacklevel=2)
    return compared(comparison, rows, floors is not None, slow, name)


def compared(
    comparison: Comparison, rows: Sequence[Line], by_floor: bool, slow: Sequence[tuple[str, str]], name: Any
) -> Tradeoff:
    """What was found as a table; ``slow`` ways were not tried, and why."""
    left_out = [
        (way, why if at is None else f"{called(at)} is left out: {why}") for way, at, why in comparison.left_out
    ]
    return Tradeoff(
        rows=tuple(rows),
        everything=comparison.unprotected,
        prior_rmse=comparison.prior_rmse,
        region=comparison.region.in_words(comparison.inputs.names),
        by_floor=by_floor,
        sensitivity=comparison.sensitivity,
        skipped=tuple(dict.fromkeys([*left_out, *slow])),
        output=name if isinstance(name, str) else "f",
    )


def quick_ways(comparison: Comparison) -> tuple[list[str], list[tuple[str, str]]]:
    """The ways that are compared if none are named, and why others are not."""
    slow = []
    rows, records = len(comparison.inputs), int(comparison.private.sum())
    if records > SLOW_RECORDS and np.any(comparison.prior.noise_variance(rows) > 0):
        slow.append(("pointwise", f"it takes minutes with more than {SLOW_RECORDS} records inside; name it in ways"))
    if records > SLOW_TOGETHER and rows <= FEW_ROWS:  # more rows are compressed
        why = f"it takes minutes with more than {SLOW_TOGETHER} records inside; name it in ways"
        slow.append(("predictions", why))
    if rows > SLOW_ROWS:
        slow.append(("diagonal", f"it takes minutes with more than {SLOW_ROWS:,} rows; name it in ways"))
    return [way for way in WAYS if way not in dict(slow)], slow
