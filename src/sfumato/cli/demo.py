"""The demo: a satellite hides where it was during its second orbit, and can prove it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ..data import LENGTHSCALE, SENSITIVE, simulate, training_grid, write_table
from ..design import protect
from ..errors import InputError
from ..models import fit_prior
from ..progress import progress
from ..regions import Box
from ..release import Release
from ..show import plot_both, report

ALPHA = 0.1
FILES = ("truth.csv", "orbit.sfumato", "orbit.csv", "orbit.png", "new.csv", "report.html")


@dataclass(frozen=True)
class Demo:
    """What the demo made."""

    folder: Path
    release: Release

    @property
    def files(self) -> list[Path]:
        return [self.folder / name for name in FILES]


def run_demo(folder: Path, show_progress: bool = False) -> Demo:
    """Protect the satellite's radius during its second orbit and write everything into ``folder``."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give --out the name of a folder.")
    folder.mkdir(parents=True, exist_ok=True)
    truth = simulate(training_grid())[["t", "r"]]
    region = Box({"t": SENSITIVE})
    # Hyper-parameters are published, so they are learnt from the orbits that are no secret.
    prior = fit_prior(truth[["t"]], truth["r"], kernel="rbf", lengthscale=LENGTHSCALE, noise=0.0, exclude=region)
    mechanism = protect(prior, truth[["t"]], region, alpha=ALPHA, progress=show_progress)
    release = mechanism.release(truth["r"], output_name="r")
    with progress(show_progress) as step:
        step.stage("drawing the picture")
        write_table(truth, folder / "truth.csv")
        release.save(folder / "orbit.sfumato")
        write_table(release.to_frame(), folder / "orbit.csv")
        write_table(pd.DataFrame({"t": np.arange(1, 12) / 4 + 0.025}), folder / "new.csv")
        _draw(release, folder / "orbit.png")
        step.stage("writing the report")
        report(
            release,
            folder / "report.html",
            title="The radius of a satellite, hidden during its second orbit",
            file=folder / "orbit.sfumato",
            progress=False,
        )
    return Demo(folder, release)


def _draw(release: Release, path: Path) -> None:
    orbit = simulate(np.linspace(0.0, 3.0, 601))
    figure = plot_both(
        release,
        truth=(orbit["t"], orbit["r"]),
        output="r (Earth radii)",
        over="t (orbits)",
        title="A satellite hides its second orbit",
    )
    figure.savefig(path, dpi=200)
