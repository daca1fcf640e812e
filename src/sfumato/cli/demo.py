"""The command ``sfumato demo``: a satellite hides where it was during its second orbit, and can prove it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import Json, OutFolder, check_folder_name, save_figure
from .printing import as_json, show_certificate

if TYPE_CHECKING:
    from ..release import Release

DEMO_EXAMPLES = ("sfumato demo", "sfumato demo --out orbit")

#: The fraction of the prior variance that readers may learn.
ALPHA = 0.1

#: What the demo writes, and what each file is.
FILES = {
    "truth.csv": "the owner's data, secret",
    "orbit.sfumato": "the release: all that readers need",
    "orbit.csv": "published data",
    "orbit.png": "the picture",
    "new.csv": "new times",
    "report.html": "the report, to be read and signed",
}

NEXT = """
Try next:
  {sfumato} certify {out}/orbit.sfumato
      checks the promise again, from the file alone
  {sfumato} predict {out}/orbit.sfumato {out}/new.csv
      says what a reader concludes at new times
  {sfumato} protect {out}/truth.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 \\
      --lengthscale 0.05 --noise 0 --fit-outside --out {out}/mine.sfumato
      does the same from a table; put your own in its place"""


def demo(out: OutFolder = Path("demo"), json: Json = False) -> None:
    """Hide a satellite's second orbit: simulate, protect, prove, draw."""
    check_folder_name(out)
    release = _make(out, not json)
    if json:
        as_json({"files": [out / name for name in FILES], "certificate": release.certificate.as_dict()})
        return
    where = release.region.in_words(release.columns)
    show_certificate(release.certificate, f"The radius of a satellite, hidden where {where}")
    typer.echo(f"\nWritten to {out}/:")
    for name, what in FILES.items():
        typer.echo(f"  {name:<14} {what}")
    typer.echo(NEXT.format(sfumato=_own_name(), out=out))


def _make(folder: Path, show_progress: bool) -> Release:
    """Protect the satellite's radius during its second orbit and write everything into ``folder``."""
    import numpy as np
    import pandas as pd

    from ..data import LENGTHSCALE, SENSITIVE, simulate, training_grid, write_table
    from ..design import protect
    from ..models import fit_prior
    from ..progress import progress
    from ..regions import Box
    from ..show import report

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
        title = "The radius of a satellite, hidden during its second orbit"
        report(release, folder / "report.html", title=title, file=folder / "orbit.sfumato", progress=False)
    return release


def _draw(release: Release, path: Path) -> None:
    import numpy as np

    from ..data import simulate
    from ..show import plot_both

    orbit = simulate(np.linspace(0.0, 3.0, 601))
    figure = plot_both(
        release,
        truth=(orbit["t"], orbit["r"]),
        output="r (Earth radii)",
        over="t (orbits)",
        title="A satellite hides its second orbit",
    )
    save_figure(figure, path)


def _own_name() -> str:
    """What to type to run this program again, also where the virtual environment is not active."""
    if shutil.which("sfumato"):
        return "sfumato"
    here = Path(sys.argv[0])
    if here.name != "sfumato":
        return f"{os.path.relpath(sys.executable)} -m sfumato"
    return os.path.relpath(here)
