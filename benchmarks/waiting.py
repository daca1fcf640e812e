"""What users wait for: each step beside what it cannot do without, all of them in one run.

    python -m benchmarks.waiting [--only "fit diagonal"] [--fit-rows 1500] [--many-rows 1000000] [--gpu-rows 1000000000]

``measured`` is a ratio of two times of this run, where a unit is named, and seconds where none is. "today" is what it
was when the goal was set. A step that needs what is not here (a GPU, Dask) says so. Other work on the machine counts
where times are those of the clock: the steps compressed, gpu, dask, start and audit want a quiet machine.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import sfumato as sf

from . import choosing, diagonal, fitting, on_dask, startup
from .compressed import MAIN_CASE, in_a_process
from .harness import Options, in_turn, medians, run, table, timed

#: Rows of the step whose independent noise has as many sensitive inputs as rows, and those of the audit.
SQUARE, AUDITED = 1000, 61


@dataclass(frozen=True)
class Step:
    """A step that users wait for; ``measure`` gives the number that is to be at most ``goal``."""

    words: str
    today: str
    goal: float
    unit: str
    measure: Callable[[Options], float]

    def line(self, name: str, found: float | str) -> list[str]:
        if isinstance(found, str):
            return [name, self.words, self.today, f"{self.goal:g}", found, self.unit, ""]
        met = "yes" if found <= self.goal else "NO"
        return [name, self.words, self.today, f"{self.goal:g}", f"{found:.2f}", self.unit, met]


class NotHereError(Exception):
    """What a step needs is not on this machine."""


def fit(options: Options) -> float:
    return fitting.beside_sklearn(options.fit_rows)["ratio"]


def fit_many(options: Options) -> float:
    X, y = fitting.problem(options.many_rows)
    seconds, _ = timed(lambda: sf.fit_prior(X, y, progress=False))
    return seconds


def tradeoff(options: Options) -> float:
    return float(choosing.measure(Options(rows=options.fit_rows, columns=2, levels=8))["ratio"])


def audit(options: Options) -> float:
    t = np.linspace(0.0, 3.0, AUDITED)
    y = np.sin(2.0 * t) + 0.1 * np.cos(9.0 * t)
    prior = sf.fit_prior(t, y, progress=False)
    release = sf.protect(prior, t, sf.Box([1.0], [1.4]), alpha=0.2, progress=False).release(y)
    return timed(lambda: sf.audit(release, y, progress=False))[0]


def compressed(options: Options) -> float:
    return float(in_a_process(options.many_rows, "cpu", MAIN_CASE, region=False, made=False)["ratio"])


def on_gpu(options: Options) -> float:
    if not torch.cuda.is_available():
        raise NotHereError("no GPU")
    found = in_a_process(options.gpu_rows, "cuda", MAIN_CASE, region=False, made=True)
    return float(found["design_seconds"] + found["noise_seconds"])


def dask(options: Options) -> float:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise NotHereError("no Dask") from None
    return float(on_dask.measure(Options(rows=2 * options.many_rows, workers=2, repeat=1))["ratio"])


def square(options: Options) -> float:
    return float(diagonal.against_eigh(SQUARE, 1.0, 3)["ratio_to_eigh"])


def start(options: Options) -> float:
    names = ("import torch", "a first protect")
    times, _ = in_turn({name: lambda name=name: startup.start(startup.STARTS[name]) for name in names}, 3)
    return medians(times)["a first protect"] / medians(times)["import torch"]


STEPS = {
    "fit": Step("fit_prior, 1,500 rows × 4", "1.1", 0.5, "× scikit-learn", fit),
    "fit-many": Step("fit_prior, 10⁶ rows × 4", "not possible", 600.0, "s", fit_many),
    "tradeoff": Step("tradeoff, 1,500 rows, 8 levels × 4 ways", "97 s", 8.0, "× protect", tradeoff),
    "audit": Step("audit, 61 rows", "40 s", 5.0, "s", audit),
    "compressed": Step("compressed, 10⁶ rows", "2.2 to 3.1", 1.7, "× its products", compressed),
    "gpu": Step("compressed with noise, 10⁹ generated rows, H200", "87 s", 30.0, "s", on_gpu),
    "dask": Step("the same with 2 Dask workers", "1.35", 1.2, "× here", dask),
    "diagonal": Step("diagonal, 1,000 sensitive rows of 1,000", "50", 20.0, "× eigh", square),
    "start": Step("import sfumato and a first protect", "1.9", 1.6, "× import torch", start),
}


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    chosen = options.only.split() or list(STEPS)
    unknown = [name for name in chosen if name not in STEPS]
    if unknown:
        raise SystemExit(f"--only is {unknown[0]!r}; choose from {', '.join(STEPS)}.")
    found: dict[str, float | str] = {}
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                found[name] = STEPS[name].measure(options)
        except NotHereError as missing:
            found[name] = str(missing)
    table(
        ["step", "", "today", "goal", "measured", "", "met"],
        [STEPS[name].line(name, value) for name, value in found.items()],
    )
    return {"measured": found, "goals": {name: STEPS[name].goal for name in found}}


if __name__ == "__main__":
    run(__doc__, measure, "waiting", only="", fit_rows=1500, many_rows=1_000_000, gpu_rows=1_000_000_000)
