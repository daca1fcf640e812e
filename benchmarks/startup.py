"""How long it takes to start: ``sfumato --help``, ``import sfumato``, and its public names beside ``import torch``.

    python -m benchmarks.startup [--repeat 7]

Every start is a fresh process, with all kinds in turn in one run, and medians are compared. ``import sfumato`` alone
must import neither PyTorch nor NumPy; the first public name that is touched brings them. The unit for those is
``import torch``, without which nothing can be protected, and for ``sfumato --help`` it is ``python -c pass``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

HEAVY = ("torch", "gpytorch", "numpy", "scipy", "pandas", "matplotlib", "rich.progress", "sklearn", "pyarrow", "dask")
STARTS = {
    "python -c pass": "pass",
    "sfumato --help": "import sys; sys.argv = ['sfumato', '--help']; from sfumato.__main__ import main; main()",
    "import sfumato": "import sfumato",
    "import torch": "import torch",
    "import gpytorch, pandas": "import gpytorch, pandas, scipy.linalg, scipy.special",
    "fit_prior, protect, load": "import sfumato as sf; sf.fit_prior, sf.protect, sf.load",
    "all public names": "import sfumato as sf; [getattr(sf, name) for name in sf.__all__]",
}
UNITS = {
    "import torch": ("import sfumato", "import gpytorch, pandas", "fit_prior, protect, load", "all public names"),
    "python -c pass": ("sfumato --help",),
}
BARS = {"import_over_torch": 1.3, "help_seconds": 0.5}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def heavy_modules(code: str) -> list[str]:
    """Which large packages are in a process that has run this."""
    asked = (
        f"import atexit, sys; atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr))"
    )
    done = subprocess.run([sys.executable, "-c", f"{asked}\n{code}"], check=True, capture_output=True, text=True)
    return [name for name in HEAVY if f"'{name}'" in done.stderr.splitlines()[-1]]


def measured(repeat: int) -> dict[str, Any]:
    for code in STARTS.values():  # the first start of each writes bytecode and fills the disk's cache
        seconds(code)
    taken: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(repeat):
        for name, code in STARTS.items():
            taken[name].append(seconds(code))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "seconds": medians,
        "least_seconds": {name: min(values) for name, values in taken.items()},
        "ratios": {unit: {name: medians[name] / medians[unit] for name in names} for unit, names in UNITS.items()},
        "heavy_modules": {name: heavy_modules(STARTS[name]) for name in ("import sfumato", "sfumato --help")},
    }


def report(found: dict[str, Any]) -> None:
    unit_of = {name: unit for unit, names in UNITS.items() for name in names}
    for name, taken in found["seconds"].items():
        unit = unit_of.get(name)
        beside = "" if unit is None else f"   {found['ratios'][unit][name]:>6.2f} times {unit}"
        print(f"{name:<26}{taken:>8.3f} s{beside}")
    for name, modules in found["heavy_modules"].items():
        print(f"{name} imports {', '.join(modules) or 'none'} of: {', '.join(HEAVY)}")
    print(f"bars: import sfumato {BARS['import_over_torch']} times import torch, --help {BARS['help_seconds']} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    result = {
        **measured(options.repeat),
        "repeat": options.repeat,
        "bar": BARS,
        "machine": {"processor": platform.processor() or platform.machine()},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in ("torch", "typer", "gpytorch")}},
    }
    report(result)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "startup.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
