"""Tables of a study: a line for each method and level, with errors, certificates and time; CSV, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Mask
from ..data import write_table
from ..files import replacing
from ..proof import TOLERANCE, Certificate


@dataclass(frozen=True)
class Errors:
    """Root mean squared errors over all points, inside the region and outside it: mean and spread over seeds."""

    all: float
    all_spread: float
    inside: float
    inside_spread: float
    outside: float
    outside_spread: float

    @classmethod
    def of(cls, misses: Array, inside: Mask) -> Errors:
        """From ``misses``, predictions less truth, a row for each seed; ``inside`` marks the columns in the region."""
        found: list[float] = []
        for chosen in (np.ones_like(inside), inside, ~inside):
            each = np.sqrt(np.mean(misses[:, chosen] ** 2, axis=1)) if np.any(chosen) else np.full(len(misses), np.nan)
            found += [float(np.mean(each)), float(np.std(each))]
        return cls(*found)


@dataclass(frozen=True)
class Line:
    """One line of a table.

    ``floor_ratio`` and ``joint_ratio`` are the certificate's, the worst over outputs; NaN where nothing is promised.
    ``seconds`` is the time of one design and prediction, without drawing figures.
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

    @classmethod
    def of(cls, errors: Errors, **others: Any) -> Line:
        """A line with these errors; ``others`` are its other fields."""
        return cls(
            rmse=errors.all,
            rmse_spread=errors.all_spread,
            rmse_inside=errors.inside,
            rmse_inside_spread=errors.inside_spread,
            rmse_outside=errors.outside,
            rmse_outside_spread=errors.outside_spread,
            **others,
        )


def promise_kept(certificates: Sequence[Certificate]) -> str:
    """Whether the promise is kept, for the table: wherever the region is, or at the rows only, or not."""
    if not all(one.holds for one in certificates):
        return "NO"
    return "yes" if all(one.floor_ratio >= 1.0 - TOLERANCE for one in certificates) else "at rows only"


def write_tables(lines: Sequence[Line], folder: Path, stem: str, title: str) -> list[Path]:
    """Write ``stem``.csv, .md and .tex; nobody ever sees half a file."""
    table = pd.DataFrame([astuple(line) for line in lines], columns=[field.name for field in fields(Line)])
    paths = [folder / f"{stem}.{ending}" for ending in ("csv", "md", "tex")]
    write_table(table, paths[0])
    heads, rows = _readable(lines)
    _write(paths[1], _markdown(heads, rows, title))
    _write(paths[2], _latex(heads, rows, title))
    return paths


def _readable(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    heads = ["method", "level", "cover", "RMSE", "inside S", "outside S"]
    heads += ["promise", "floor ratio", "joint ratio", "time (s)"]
    rows = []
    for line in lines:
        rows.append(
            [
                line.method,
                line.level,
                line.cover,
                _spread(line.rmse, line.rmse_spread),
                _spread(line.rmse_inside, line.rmse_inside_spread),
                _spread(line.rmse_outside, line.rmse_outside_spread),
                line.holds,
                _number(line.floor_ratio),
                _number(line.joint_ratio),
                f"{line.seconds:.3g}",
            ]
        )
    return heads, rows


def _spread(mean: float, spread: float) -> str:
    return "" if math.isnan(mean) else f"{mean:.4g} ± {spread:.2g}"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.5g}"


def _markdown(heads: list[str], rows: list[list[str]], title: str) -> str:
    table = [heads, ["---"] * len(heads), *rows]
    return "\n".join([f"**{title}**", "", *("| " + " | ".join(row) + " |" for row in table), ""])


def _latex(heads: list[str], rows: list[list[str]], title: str) -> str:
    body = [" & ".join(_escaped(cell) for cell in row) + r" \\" for row in [heads, *rows]]
    body.insert(1, r"\midrule")
    lines = [r"\begin{table}", r"\centering", r"\begin{tabular}{lll" + "c" * (len(heads) - 3) + "}", r"\toprule"]
    lines += [*body, r"\bottomrule", r"\end{tabular}", rf"\caption{{{_escaped(title)}}}", r"\end{table}", ""]
    return "\n".join(lines)


def _escaped(cell: str) -> str:
    marks = {"&": r"\&", "%": r"\%", "_": r"\_", "±": r"$\pm$", "α": r"$\alpha$", "ε": r"$\epsilon$"}
    for plain, tex in marks.items():
        cell = cell.replace(plain, tex)
    return cell


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
