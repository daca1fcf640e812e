"""The command ``sfumato demo``: a satellite that steers hides its second orbit; one that coasts cannot, and why.

An orbit that repeats can be read off the other orbits, whatever noise is on it. The demo shows what that means.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import Json, OutFolder, Replace, check_folder_name, check_new, save_figure
from .printing import as_json, new_table, say, say_lines, show_certificate, show_table

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import Array
    from ..design import Mechanism
    from ..evaluate import Rehearsal, Rival
    from ..models import Prior
    from ..release import Release

DEMO_EXAMPLES = ("sfumato demo", "sfumato demo --out orbit")

#: What readers must not know the hidden orbit better than, in Earth radii: 9.6 km, and 2 km where nobody steers.
FLOOR, COASTING_FLOOR = 1.5e-3, 3.18e-4

#: The variance of the errors in what the satellite that steers says of its radius: 64 m.
ERRORS = 1e-10

#: What the demo writes, and what each file is.
FILES = {
    "truth.csv": "the owner's data, secret",
    "orbit.sfumato": "the release: all that readers need",
    "orbit.csv": "published data",
    "orbit.png": "the picture, with the truth in it: the owner's",
    "new.csv": "new times",
    "report.html": "the report, to be read and signed",
    "coasting.csv": "a satellite that does not steer, secret",
    "coasting.sfumato": "its release under the paper's prior, which hides nothing",
}

LESSON = """An orbit is predictable. A satellite that coasts comes round as before: who looks
for a season reads the second orbit off the others, whatever noise is on it. A
prior that knows it keeps the floor, and then all three orbits are blurred. The
satellite above steers, which its past does not tell; who knows how it steers
knows more than this promise says. A promise is as good as its prior."""

NEXT = """
Try next:
  {sfumato} certify {out}/orbit.sfumato
      checks the promise again, from the file alone
  {sfumato} predict {out}/orbit.sfumato {out}/new.csv
      says what a reader concludes at new times
  {sfumato} protect {out}/truth.csv --inputs t --output r --region "1 <= t <= 2" --floor 0.0015 \\
      --noise 1e-10 --kernel rbf --out {out}/mine.sfumato
      does the same from a table; put your own in its place
  {sfumato} audit {out}/coasting.sfumato --truth {out}/coasting.csv
      reads the orbit of the satellite that coasts"""

#: How many releases a rival reads: one alone may be lucky.
DRAWS = 8


@dataclass(frozen=True)
class Told:
    """What a floor costs outside the region, in the units of r; and how well a rival knows the inside, in floors."""

    satellite: str
    prior: str
    noise_outside: float
    error_outside: float
    rival_inside: float


def demo(out: OutFolder = Path("demo"), replace: Replace = False, json: Json = False) -> None:
    """Hide a satellite's second orbit: simulate, protect, prove, draw; and see when that cannot be done."""
    check_folder_name(out)
    for name in FILES:
        check_new(str(out / name), (out / name).exists(), replace)
    release, told, tried = _make(out, not json)
    if json:
        files, found = [out / name for name in FILES], [asdict(one) for one in told]
        verdicts = {name: one.verdict for name, one in tried.items()}
        as_json({"files": files, "priors": found, "rehearsals": verdicts, "certificate": release.certificate.as_dict()})
        return
    where = release.region.in_words(release.columns)
    show_certificate(release.certificate, f"The radius of a satellite, hidden where {where}")
    say(tried["steers"].sentence())
    _show_told(told)
    say(tried["coasts"].sentence(" where it coasts, under the prior of the paper"))
    say_lines("", *LESSON.splitlines(), "", f"Written to {out}/:")
    say_lines(*(f"  {name:<17} {what}" for name, what in FILES.items()))
    say_lines(*(line.format(sfumato=_own_name(), out=out) for line in NEXT.splitlines()))


def _show_told(told: list[Told]) -> None:
    table = new_table("What it takes to hide one orbit, and what the best of the textbooks knows of it")
    for name in ("satellite", "prior", "noise outside", "error outside", "textbook, inside"):
        table.add_column(name, justify="left" if name in ("satellite", "prior") else "right")
    for one in told:
        outside = (f"±{value:.5f}" for value in (one.noise_outside, one.error_outside))
        style = "red" if one.rival_inside < 0.5 else None
        table.add_row(one.satellite, one.prior, *outside, f"{one.rival_inside:.2g} floors", style=style)
    say_lines("")
    show_table(table)


def _make(folder: Path, show_progress: bool) -> tuple[Release, list[Told], dict[str, Rehearsal]]:
    """Protect the satellite's radius during its second orbit and write everything into ``folder``."""
    import numpy as np
    import pandas as pd

    from ..data import SENSITIVE, simulate, training_grid, write_table
    from ..design import protect
    from ..evaluate import rehearse
    from ..models import fit_prior
    from ..progress import progress
    from ..regions import Box
    from ..show import report

    folder.mkdir(parents=True, exist_ok=True)
    truth, coasting = steering_orbit(), simulate(training_grid())[["t", "r"]]
    region, t = Box({"t": SENSITIVE}), truth[["t"]]
    with progress(show_progress) as step:
        step.stage("trying the prior")
        # Hyper-parameters are published, so they are learnt from the orbits that are no secret.
        prior = fit_prior(t, truth["r"], kernel="rbf", noise=ERRORS, exclude=region)
        tried = rehearse(prior, t, truth["r"], region, floor=FLOOR, progress=False)
        step.stage("finding the least noise")
        mechanism = protect(prior, t, region, floor=FLOOR, findings=tried.findings, progress=False)
        release = mechanism.release(truth["r"], output_name="r")
        step.stage("reading a satellite that coasts")
        alone = _coasting_priors(coasting, region)
        others = [protect(one, t, region, floor=COASTING_FLOOR, progress=False) for one in alone.values()]
        how: dict[str, Any] = {"floor": COASTING_FLOOR, "progress": False}
        failed = rehearse(others[0].prior, t, coasting["r"], region, advise=False, **how)
        # it is published here all the same, so that it can be attacked
        accepted = [one.code for one in failed.findings if one.stops]
        unhidden = protect(others[0].prior, t, region, findings=failed.findings, accept=accepted, **how).release(
            coasting["r"], output_name="r"
        )
        reader = _best_rival(release.outputs, mechanism, truth)
        spoiler = _best_rival(unhidden.outputs, others[0], coasting)
        told = [_told("steers", "RBF", mechanism, truth, FLOOR, reader)]
        for words, one in zip(alone, others, strict=True):
            told.append(_told("coasts", words, one, coasting, COASTING_FLOOR, spoiler))
        step.stage("drawing the picture")
        write_table(truth, folder / "truth.csv", private=True)
        release.save(folder / "orbit.sfumato")
        write_table(release.to_frame(), folder / "orbit.csv")
        write_table(pd.DataFrame({"t": np.arange(1, 12) / 4 + 0.025}), folder / "new.csv")
        write_table(coasting, folder / "coasting.csv", private=True)
        unhidden.save(folder / "coasting.sfumato")
        fine = np.linspace(0.0, 3.0, 601)
        steered = simulate(fine, push=_push())
        shown = {
            "A satellite that steers hides its second orbit": (release, reader, steered["r"].to_numpy()),
            "One that coasts, under the paper's prior, does not": (unhidden, spoiler, simulate(fine)["r"].to_numpy()),
        }
        save_figure(_picture(shown, fine), folder / "orbit.png", private=True)
        step.stage("writing the report")
        title = "The radius of a satellite, hidden during its second orbit"
        report(release, folder / "report.html", title=title, file=folder / "orbit.sfumato", progress=False)
    return release, told, {"steers": tried, "coasts": failed}


def steering_orbit() -> pd.DataFrame:
    """Three orbits of the satellite that steers: the times t, and the radius r with its errors, in Earth radii."""
    from ..data import simulate, training_grid
    from ..evaluate import unsafe_normals

    orbit = simulate(training_grid(), push=_push())[["t", "r"]]
    return orbit.assign(r=orbit["r"] + math.sqrt(ERRORS) * unsafe_normals(1, len(orbit)))


def _push() -> Callable[[float], float]:
    """A push outwards that nobody can foresee: of 0.1 Earth radii/orbit² (2 cm/s²), another one every 0.1 orbits."""
    import numpy as np

    from ..evaluate import unsafe_normals

    speeds, cosines, sines = unsafe_normals(5, 180).reshape(3, 60)

    def push(t: float) -> float:
        turns = speeds / 0.1 * t
        return 0.1 * float(cosines @ np.cos(turns) + sines @ np.sin(turns)) / math.sqrt(60.0)

    return push


def _coasting_priors(coasting: pd.DataFrame, region: Any) -> dict[str, Prior]:
    """The paper's prior, and one that knows that each orbit is like the last; both are learnt outside the region."""
    from ..data import LENGTHSCALE
    from ..models import fit_prior

    t, r = coasting[["t"]], coasting["r"]
    paper = fit_prior(t, r, kernel="rbf", lengthscale=LENGTHSCALE, noise=0.0, exclude=region)
    repeating = fit_prior(t, r, kernel="periodic(period=1) * rbf(lengthscale=100)", noise=0.0, exclude=region)
    return {"RBF, as in the paper": paper, "knows that orbits repeat": repeating}


def _error(rival: Rival, released: Array, mechanism: Mechanism, truth: pd.DataFrame) -> float:
    """How far ``rival`` is off in the region, from the values that were released."""
    import numpy as np

    t, r = truth[["t"]].to_numpy(), truth["r"].to_numpy()
    inside = mechanism.region.contains(t)
    seen = rival.predict(t, released, mechanism.noise.covariance(), t[inside])
    return float(np.sqrt(np.mean((seen - r[inside]) ** 2)))


def _best_rival(released: Array, mechanism: Mechanism, truth: pd.DataFrame) -> Rival:
    """Who of the textbooks knows most of the region from the values that were released."""
    from ..evaluate import rivals

    tried = rivals(truth[["t"]].to_numpy(), released, mechanism.noise.covariance())
    return min(tried, key=lambda rival: _error(rival, released, mechanism, truth))


def _told(satellite: str, prior: str, mechanism: Mechanism, truth: pd.DataFrame, floor: float, rival: Rival) -> Told:
    """What the floor costs, and what ``rival`` knows."""
    import numpy as np

    t, r = truth[["t"]].to_numpy(), truth["r"].to_numpy()
    outside = ~mechanism.region.contains(t)
    noise = mechanism.noise.variance()[outside]
    draws = [mechanism.release(r, unsafe_seed=seed) for seed in range(DRAWS)]
    reader = draws[0].predict(t[outside]).std
    errors = np.array([_error(rival, one.outputs, mechanism, truth) for one in draws])
    numbers = (float(np.sqrt(np.mean(values))) for values in (noise, reader**2, (errors / floor) ** 2))
    return Told(satellite, prior, *numbers)


def _picture(shown: dict[str, tuple[Release, Rival, Array]], fine: Array) -> Any:
    """What is published and concluded, by readers and by a rival, above what the promise says; a column for each."""
    from matplotlib.figure import Figure

    from ..show import plot_floor, plot_release

    figure = Figure(figsize=(11.0, 6.6), layout="constrained")
    above, below = figure.subplots(2, 2, sharex=True, height_ratios=(3, 2))
    for (title, (release, rival, truth)), top, bottom in zip(shown.items(), above, below, strict=True):
        region = release.region.contains(fine[:, None])
        seen = rival.predict(release.inputs, release.outputs, release.design.noise.covariance(), fine[:, None])
        top.plot(fine[region], seen[region], color="#CC79A7", linewidth=2.4, label="the best textbook", zorder=5)
        plot_release(release, (fine, truth), ax=top, label="r (Earth radii)", region_label="second orbit")
        plot_floor(release, ax=bottom, label="std of r", region_label="second orbit")
        plate = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        low, high = top.get_ylim()
        top.set_ylim(low, high + 0.14 * (high - low))
        top.annotate(title, (0.5, 0.94), xycoords="axes fraction", ha="center", fontsize=10, bbox=plate, zorder=6)
        top.set_xlabel("")
        bottom.set_xlabel("t (orbits)")
    return figure


def _own_name() -> str:
    """What to type to run this program again, also where the virtual environment is not active."""
    if shutil.which("sfumato"):
        return "sfumato"
    here = Path(sys.argv[0])
    if here.name != "sfumato":
        return f"{os.path.relpath(sys.executable)} -m sfumato"
    return os.path.relpath(here)
