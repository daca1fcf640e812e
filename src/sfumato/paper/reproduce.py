"""Every table and figure of the paper, into one folder: what to run, with which settings, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from ..errors import InputError
from ..progress import Progress
from .census_data import WHERE, CensusSplit, paper_split, read_pums, wooldridge_census
from .census_figures import draw_all as draw_census
from .census_study import census_study, quick_census_study
from .example import draw_figure_1, example
from .satellite_figures import draw_all as draw_satellite
from .satellite_joint import ALPHAS, draw_joint, satellite_joint, write_joint_table
from .satellite_study import satellite_study
from .study_table import Line, write_tables

Settings = Literal["paper", "authors"]

STUDIES = ("example", "satellite", "zero-mean", "joint", "census")
SEEDS, QUICK_SEEDS = 200, 20
QUICK_ALPHAS = (0.5,)

#: About how many minutes each study takes on two cores, for one kind of settings.
MINUTES = {"example": 0.05, "satellite": 0.8, "zero-mean": 0.8, "joint": 0.2, "census": 2.5}
QUICK_MINUTES = {"example": 0.05, "satellite": 0.4, "zero-mean": 0.4, "joint": 0.1, "census": 0.3}

#: These do not depend on the settings: what the paper leaves out has none.
ONCE = ("example", "joint")


@dataclass(frozen=True)
class Reproduction:
    """What was written, the lines of all tables, and what has to be said about them."""

    dpi: int
    files: list[Path] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def minutes(studies: Sequence[str], settings: Sequence[Settings], quick: bool) -> float:
    """About how long it will take, on two cores."""
    each = QUICK_MINUTES if quick else MINUTES
    return sum(each[study] * (1 if study in ONCE else len(settings)) for study in studies)


def reproduce(
    studies: Sequence[str],
    folder: Path,
    settings: Sequence[Settings] = ("paper", "authors"),
    quick: bool = False,
    census: Path | None = None,
    step: Progress | None = None,
) -> Reproduction:
    """Run ``studies`` and write their tables (CSV, Markdown, LaTeX) and figures (PNG) into ``folder``.

    ``quick`` takes fewer draws, and fewer rows of the census: it shows that all runs, not what the numbers are.
    """
    unknown = [study for study in studies if study not in STUDIES]
    if unknown:
        raise InputError(f"{unknown[0]!r} cannot be reproduced; choose from {', '.join(STUDIES)} or all.")
    folder.mkdir(parents=True, exist_ok=True)
    made, step = Reproduction(dpi=70 if quick else 150), step or Progress()
    seeds = QUICK_SEEDS if quick else SEEDS
    if "example" in studies:
        step.stage("example 1")
        designed = example()
        _pictures(made, folder, "example", {"figure1": draw_figure_1(designed)})
        made.notes.append(
            f"Example 1: the least noise has a total variance of {designed.correlated.noise.trace:.6f}, "
            f"independent noise {designed.independent.noise.trace:.4f}"
        )
    if "joint" in studies:
        both = satellite_joint(QUICK_ALPHAS if quick else ALPHAS, step)
        made.files.append(folder / "joint.csv")
        write_joint_table(both, made.files[-1])
        _pictures(made, folder, "joint", {"left": draw_joint(both)})
        made.notes.extend(
            f"Satellite, α = {one.alpha:g}: {one.promised:g} of the variance of r was promised; protected one by one "
            f"{one.least(one.one_by_one)['r']:.3g} is left, together {one.least(one.together)['r']:.3g}"
            for one in both
        )
    for kind in settings:
        if "satellite" in studies:
            result = satellite_study(kind, seeds, progress=step)
            title = f"Satellite, settings of the {kind}: means over {seeds} draws"
            _tables(made, folder, f"satellite-{kind}", title, result.lines)
            _pictures(made, folder, f"satellite-{kind}", draw_satellite(result))
        if "zero-mean" in studies:
            result = satellite_study(kind, seeds, progress=step, mean="zero")
            title = f"Satellite without a mean, settings of the {kind}: means over {seeds} draws"
            _tables(made, folder, f"zero-mean-{kind}", title, result.lines)
            drawn = {name.removeprefix("zero-mean-"): figure for name, figure in draw_satellite(result).items()}
            shown = {
                name: drawn[name] for name in drawn if name in ("noise", "predictions") or name.startswith("privacy")
            }
            _pictures(made, folder, f"zero-mean-{kind}", shown)
    if "census" in studies:
        data, note = census_rows(census)
        made.notes.extend([note] if note else [])
        for kind in settings:
            found = quick_census_study(data, kind, step) if quick else census_study(data, kind, seeds, progress=step)
            _tables(made, folder, f"census-{kind}", found.title, found.lines)
            made.notes.extend(
                f"Census, settings of the {kind}, {one.method} {one.cover}, α = {one.alpha:g}: {one.share_below:.1%} "
                f"of the people who could live in the region are below the floor (least ratio {one.least_ratio:.3f})"
                for one in found.exposures
                if one.cover
            )
            step.stage("census: figures")
            _pictures(made, folder, f"census-{kind}", draw_census(found))
    return made


def census_rows(path: Path | None) -> tuple[CensusSplit, str]:
    """The paper's rows from the Bureau's file, or others if there is none, and then a note that says so."""
    if path is not None:
        return paper_split(read_pums(path)), ""
    data = wooldridge_census()
    return data, f"NOT the paper's census data, but {data.source}. {WHERE} Then give it with --census FILE."


def _tables(made: Reproduction, folder: Path, stem: str, title: str, lines: Sequence[Line]) -> None:
    made.files.extend(write_tables(lines, folder, stem, title))
    made.lines.extend(lines)


def _pictures(made: Reproduction, folder: Path, stem: str, figures: dict[str, Figure]) -> None:
    for name, figure in figures.items():
        path = folder / f"{stem}-{name.removeprefix('census-')}.png"
        figure.savefig(path, dpi=made.dpi)
        made.files.append(path)
