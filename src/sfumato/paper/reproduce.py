"""Every table and figure of the paper, into one folder: what to run, with which settings, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ..data import write_table
from ..errors import InputError
from ..progress import Progress
from .census_data import WHERE, CensusSplit, paper_split, read_pums, wooldridge_census
from .census_figures import draw_all as draw_census
from .census_study import CensusResult, census_study, quick_census_study
from .example import draw_figure_1, example
from .insiders import Kept, as_table, insiders_study, readable
from .satellite_figures import draw_all as draw_satellite
from .satellite_figures import draw_privacy_aware, draw_zero_mean
from .satellite_joint import Both, draw_joint, joint_table, satellite_joint
from .satellite_study import StudyResult, satellite_study
from .study import ALPHAS, Line, Settings, write_forms, write_tables

STUDIES = ("example", "satellite", "zero-mean", "joint", "census", "insiders")
SEEDS, QUICK_SEEDS = 200, 20
QUICK_ALPHAS, QUICK_ROWS = (0.5,), 50

#: About how many minutes each study takes on two cores, for one kind of settings.
MINUTES = {"example": 0.05, "satellite": 0.8, "zero-mean": 0.8, "joint": 0.2, "census": 2.5, "insiders": 0.4}
QUICK_MINUTES = {"example": 0.05, "satellite": 0.4, "zero-mean": 0.4, "joint": 0.1, "census": 0.3, "insiders": 0.1}

#: These do not depend on the settings: what the paper leaves out has none.
ONCE = ("example", "joint", "insiders")


@dataclass(frozen=True)
class Reproduction:
    """What was written into ``folder``, the lines of all tables, and what has to be said about them."""

    folder: Path
    dpi: int
    files: list[Path] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tables(self, stem: str, title: str, lines: Sequence[Line]) -> None:
        """Write a table in three forms."""
        self.files.extend(write_tables(lines, self.folder, stem, title))
        self.lines.extend(lines)

    def pictures(self, stem: str, figures: dict[str, Figure]) -> None:
        """Write each figure as a PNG."""
        for name, figure in figures.items():
            self.files.append(self.folder / f"{stem}-{name}.png")
            figure.savefig(self.files[-1], dpi=self.dpi)


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
    made, step = Reproduction(folder, dpi=70 if quick else 150), step or Progress()
    seeds = QUICK_SEEDS if quick else SEEDS
    if "example" in studies:
        step.stage("example 1")
        _example(made)
    if "joint" in studies:
        _joint(made, satellite_joint(QUICK_ALPHAS if quick else ALPHAS, step))
    for kind in settings:
        if "satellite" in studies:
            _satellite(made, satellite_study(kind, seeds, progress=step))
        if "zero-mean" in studies:
            _satellite(made, satellite_study(kind, seeds, progress=step, mean="zero"))
    if "census" in studies or "insiders" in studies:
        data, note = census_rows(census)
        made.notes.extend([note] if note else [])
    if "insiders" in studies:
        few: dict[str, Any] = {"alphas": QUICK_ALPHAS, "rows": QUICK_ROWS} if quick else {}
        _insiders(made, data, insiders_study(data, **few, step=step))
    if "census" in studies:
        for kind in settings:
            found = quick_census_study(data, kind, step) if quick else census_study(data, kind, seeds, progress=step)
            step.stage("census: figures")
            _census(made, found)
    return made


def _example(made: Reproduction) -> None:
    designed = example()
    made.pictures("example", {"figure1": draw_figure_1(designed)})
    made.notes.append(
        f"Example 1: the least noise has a total variance of {designed.correlated.noise.trace:.6f}, "
        f"independent noise {designed.independent.noise.trace:.4f}"
    )


def _joint(made: Reproduction, both: Sequence[Both]) -> None:
    made.files.append(made.folder / "joint.csv")
    write_table(joint_table(both), made.files[-1])
    made.pictures("joint", {"left": draw_joint(both)})
    made.notes.extend(
        f"Satellite, α = {one.alpha:g}: {one.promised:g} of the variance of r was promised; protected one by one "
        f"{one.least(one.one_by_one)['r']:.3g} is left, together {one.least(one.together)['r']:.3g}"
        for one in both
    )


def _satellite(made: Reproduction, result: StudyResult) -> None:
    about = f"settings of the {result.settings}: means over {result.seeds} draws"
    if result.mean == "constant":
        stem = f"satellite-{result.settings}"
        made.tables(stem, f"Satellite, {about}", result.lines)
        made.pictures(stem, draw_satellite(result))
        return
    stem = f"zero-mean-{result.settings}"
    made.tables(stem, f"Satellite without a mean, {about}", result.lines)
    made.pictures(stem, {f"privacy-aware-alpha-{alpha:g}": draw_privacy_aware(result, alpha) for alpha in ALPHAS})
    drawn = draw_zero_mean(result)
    made.pictures(stem, {name.removeprefix("zero-mean-"): figure for name, figure in drawn.items()})


def _census(made: Reproduction, found: CensusResult) -> None:
    stem = f"census-{found.settings}"
    made.tables(stem, found.title, found.lines)
    made.notes.extend(
        f"Census, settings of the {found.settings}, {one.method} {one.cover}, α = {one.alpha:g}: {one.share_below:.1%} "
        f"of the people who could live in the region are below the floor (least ratio {one.least_ratio:.3f})"
        for one in found.exposures
        if one.cover
    )
    made.pictures(stem, draw_census(found))


def _insiders(made: Reproduction, data: CensusSplit, found: Sequence[Kept]) -> None:
    title = (
        "The share of the variance that is left of the value of each kind that is known best: to readers without rows, "
        "to the owner of the other row that tells most, of what that owner did not know. Settings of the paper's text. "
        f"All rows of the satellite; a few rows of {data.source}, because noise for insiders takes longer at all"
    )
    made.files.extend(write_forms(as_table(found), readable(found), made.folder, "insiders", title))


def census_rows(path: Path | None) -> tuple[CensusSplit, str]:
    """The paper's rows from the Bureau's file, or others if there is none, and then a note that says so."""
    if path is not None:
        return paper_split(read_pums(path)), ""
    data = wooldridge_census()
    return data, f"NOT the paper's census data, but {data.source}. {WHERE} Then give it with --census FILE."
