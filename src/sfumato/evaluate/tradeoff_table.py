"""What a comparison of levels found: a line for each way and level, as a table, as sentences and as a picture."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..errors import InputError
from ..text import plain
from ..views import pictures
from .tradeoff_readers import DELTA

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
TRADEOFF_HEADER = ("way", "α", "floor", "holds", "learnt", "std in", "rmse in", "rmse out", "loss", "noise", "spill")
WIDE_ONLY = ("std in", "spill")


@dataclass(frozen=True)
class Line:
    """One way at one level. Numbers that do not apply are NaN.

    ================ =======================================================================================
    ``way``          how the data are published; ``alpha`` or ``floor`` is the level that was asked for
    ``floor``        the least standard deviation that readers must keep in the region, in the owner's units
    ``holds``        whether the certificate holds; None where nothing is promised
    ``learnt``       the largest share of the prior variance that a reader learns at any input inside
    ``least_std``    the least standard deviation that a reader reaches inside
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
            if value is not None and math.isclose(getattr(line, word), value, rel_tol=1e-9):
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


def sentence_of(found: Tradeoff, line: Line) -> str:
    """What ``line`` means for those who decide."""
    if line.way == "dropout":
        start = (
            f"With the rows inside {found.region} left out nothing is promised: readers still know {found.output} "
            f"there to within ±{number(line.least_std)}"
        )
    else:
        level = "" if math.isnan(line.alpha) else f" (α = {line.alpha:g})"
        start = f"At ±{number(line.floor)} inside {found.region}{level}"
    if math.isnan(line.loss):
        return f"{start}; there is no elsewhere to compare."
    joined = ", and they lose" if line.way == "dropout" else ", readers lose"
    errors = f"{short(line.rmse_outside)} instead of {short(found.everything.rmse_outside)}"
    end = "" if line.holds is not False else " THE CERTIFICATE DOES NOT HOLD."
    return f"{start}{joined} {share(line.loss)} of accuracy elsewhere: their error there is {errors}.{end}"


def cells(line: Line) -> tuple[str, ...]:
    """One line of the table."""
    way = line.way if math.isnan(line.epsilon) else f"{line.way}, ε = {short(line.epsilon)}"
    holds = "" if line.holds is None else "yes" if line.holds else "NO"
    level = "" if math.isnan(line.alpha) else f"{line.alpha:g}"
    floor = "" if math.isnan(line.floor) else number(line.floor)
    values = (number(value) for value in (line.least_std, line.rmse_inside, line.rmse_outside))
    last = (share(line.loss).replace("less than ", "<"), number(line.noise), share(line.spill))
    return (way, level, floor, holds, share(line.learnt), *values, *last)


def table_in_words(found: Tradeoff) -> str:
    """The table, what was left out, and the sentence of the middle level."""
    rows = [TRADEOFF_HEADER, *(cells(line) for line in (found.everything, *found.rows))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"What readers of {found.output} lose where {found.region} is protected"]
    for first, *others in rows:
        padded = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *padded]).rstrip())
    return "\n".join([*lines, "", *notes(found)])


def notes(found: Tradeoff) -> list[str]:
    """What the numbers mean, what was left out and why, and one line of the table as a sentence."""
    said = [
        "learnt: at most, of the prior variance, at any input inside; in, out: inside and outside the region;",
        "loss: of the variance that all data without noise would explain outside, the share that is not explained.",
        *(["dropout: the rows inside are left out, which promises nothing."] if found.of("dropout") else []),
        *(f"{way}: {why.rstrip('.')}." for way, why in found.skipped),
    ]
    if any(line.way == "cloaking" for line in found.rows):
        said.append(f"ε is for a change of one value by {number(found.sensitivity)}, with δ = {DELTA:g}.")
    promised = [line for line in found.rows if line.holds is not None]
    first = [line for line in promised if line.way == promised[0].way]
    return [*said, *(sentence_of(found, line) for line in first[len(first) // 2 :][:1])]
