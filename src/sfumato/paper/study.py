"""What both studies share: settings, levels, covers, and tables with a line for each method and level."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, get_args

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..data import write_table
from ..errors import InputError
from ..files import replacing
from ..promise import Objective
from ..proof import TOLERANCE, Certificate

#: "paper": what the paper's text says. "authors": what its scripts did.
Settings = Literal["paper", "authors"]

#: "rows": the sensitive rows, as in the paper. "auto": the whole region.
Cover = Literal["auto", "rows"]

ALPHAS = (0.1, 0.5, 0.9)
EPSILONS = (0.3, 0.5, 1.0)
DELTA = 0.01

#: How many differentially private draws the authors' scripts average and score as one.
AVERAGED = 100

AWARE, NAIVE, DROPOUT, UNSECURED = "privacy-aware", "Stationary", "Dropout", "Unsecured"

#: The same promise with the best predictions outside in place of the least noise is not in the paper.
SERVING = "best predictions"
METHODS: dict[Objective, str] = {"noise": AWARE, "predictions": SERVING}

#: How LaTeX writes what it would misunderstand.
_ESCAPED = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "±": r"$\pm$", "α": r"$\alpha$", "ε": r"$\epsilon$"})

P = ParamSpec("P")
T = TypeVar("T")


def timed(action: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> tuple[float, T]:
    """How many seconds ``action`` takes, and what it returns."""
    start = time.perf_counter()
    result = action(*arguments, **options)
    return time.perf_counter() - start, result


def check_asked(settings: Any, covers: Any, **counts: Any) -> None:
    """Refuse settings, covers and numbers of seeds that a study cannot be run with."""
    if settings not in get_args(Settings):
        raise InputError(f"settings is {settings!r}; choose 'paper' or 'authors'.")
    if isinstance(covers, str) or not covers or not set(covers) <= set(get_args(Cover)):
        raise InputError(f"covers is {covers!r}; give one or both of 'auto' and 'rows', in a list.")
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"{name} is {count!r}; give a whole number of draws, at least 1.")


@dataclass(frozen=True)
class Line:
    """One line of a table; errors are root mean squares, with their spread over seeds.

    ``rmse`` is over all points, ``rmse_inside`` over those of the region. ``floor_ratio`` and ``joint_ratio`` are the
    certificate's, the worst over outputs; NaN where nothing is promised. ``seconds`` is the time of one design and
    prediction, without drawing figures.
    """

    study: str
    settings: str
    method: str
    level: str
    cover: str
    seeds: int
    rmse: float
    rmse_spread: float
    rmse_inside: float
    rmse_inside_spread: float
    rmse_outside: float
    rmse_outside_spread: float
    holds: str
    joint_ratio: float
    floor_ratio: float
    seconds: float


@dataclass(frozen=True)
class Table:
    """The lines of a study as they come in; ``inside`` marks the points that are in the region.

    ``by_output`` has the mean error of each output, in its own unit, for each line.
    """

    study: str
    settings: Settings
    inside: Mask
    lines: list[Line] = field(default_factory=list)
    by_output: list[list[float]] = field(default_factory=list)

    def add(
        self,
        method: str,
        level: str,
        misses: Sequence[Array],
        seconds: float,
        cover: str = "",
        certificates: Sequence[Certificate] = (),
        holds: str = "",
    ) -> None:
        """``misses`` has predictions less truth for each output: a row for each seed, a column for each point."""
        points = {"rmse": np.ones_like(self.inside), "rmse_inside": self.inside, "rmse_outside": ~self.inside}
        errors: dict[str, float] = {}
        for name, chosen in points.items():
            each = np.mean([_rmse(miss[:, chosen]) for miss in misses], axis=0)
            errors |= {name: float(np.mean(each)), f"{name}_spread": float(np.std(each))}
        self.lines.append(
            Line(
                study=self.study,
                settings=self.settings,
                method=method,
                level=level,
                cover=cover,
                seeds=len(misses[0]),
                holds=promise_kept(certificates) if certificates else holds,
                joint_ratio=max((one.joint_ratio for one in certificates), default=math.nan),
                floor_ratio=min((one.floor_ratio for one in certificates), default=math.nan),
                seconds=seconds,
                **errors,
            )
        )
        self.by_output.append([float(np.mean(_rmse(miss))) for miss in misses])


def _rmse(misses: Array) -> Array:
    """The error of each seed; NaN where there are no points."""
    if not misses.shape[1]:
        return np.full(len(misses), math.nan)
    return np.asarray(np.sqrt(np.mean(misses**2, axis=1)))


def promise_kept(certificates: Sequence[Certificate]) -> str:
    """Whether the promise is kept, for the table: wherever the region is, or at the rows only, or not."""
    if not all(one.holds for one in certificates):
        return "NO"
    return "yes" if all(one.floor_ratio >= 1.0 - TOLERANCE for one in certificates) else "at rows only"


def write_tables(lines: Sequence[Line], folder: Path, stem: str, title: str) -> list[Path]:
    """Write the lines as ``stem``.csv, .md and .tex."""
    table = pd.DataFrame([astuple(line) for line in lines], columns=[field.name for field in fields(Line)])
    heads = ["method", "level", "cover", "RMSE", "inside S", "outside S"]
    heads += ["promise", "floor ratio", "joint ratio", "time (s)"]
    return write_forms(table, [heads, *(_readable(line) for line in lines)], folder, stem, title)


def write_forms(table: pd.DataFrame, readable: list[list[str]], folder: Path, stem: str, title: str) -> list[Path]:
    """Write ``table`` as ``stem``.csv and what people read, heads first, as .md and .tex; nobody sees half a file."""
    paths = [folder / f"{stem}.{ending}" for ending in ("csv", "md", "tex")]
    write_table(table, paths[0])
    for path, text in zip(paths[1:], (_markdown(readable, title), _latex(readable, title)), strict=True):
        with replacing(path) as file:
            file.write(text.encode())
    return paths


def _readable(line: Line) -> list[str]:
    errors = (
        (line.rmse, line.rmse_spread),
        (line.rmse_inside, line.rmse_inside_spread),
        (line.rmse_outside, line.rmse_outside_spread),
    )
    spreads = ["" if math.isnan(mean) else f"{mean:.4g} ± {spread:.2g}" for mean, spread in errors]
    ratios = ["" if math.isnan(value) else f"{value:.5g}" for value in (line.floor_ratio, line.joint_ratio)]
    return [line.method, line.level, line.cover, *spreads, line.holds, *ratios, f"{line.seconds:.3g}"]


def _markdown(rows: list[list[str]], title: str) -> str:
    table = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join([f"**{title}**", "", *("| " + " | ".join(row) + " |" for row in table), ""])


def _latex(rows: list[list[str]], title: str) -> str:
    body = [" & ".join(cell.translate(_ESCAPED) for cell in row) + r" \\" for row in rows]
    body.insert(1, r"\midrule")
    lines = [r"\begin{table}", r"\centering", r"\begin{tabular}{lll" + "c" * (len(rows[0]) - 3) + "}", r"\toprule"]
    lines += [*body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{title.translate(_ESCAPED)}}}", r"\end{table}", ""]
    return "\n".join(lines)
