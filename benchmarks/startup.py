"""How long it takes to start: ``sfumato --help``, ``import sfumato``, and its public names beside ``import torch``.

    python -m benchmarks.startup [--repeat 7]

Every start is a fresh process, with all kinds in turn in one run, and medians are compared. ``import sfumato`` alone
must import neither PyTorch nor NumPy; the first public name that is touched brings them. The unit for those is
``import torch``, without which nothing can be protected, and for ``sfumato --help`` it is ``python -c pass``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from typing import Any

from .harness import Options, in_turn, medians, run, table

HEAVY = ("torch", "gpytorch", "numpy", "scipy", "pandas", "matplotlib", "rich.progress", "sklearn", "pyarrow", "dask")
STARTS = {
    "python -c pass": "pass",
    "sfumato --help": "import sys; sys.argv = ['sfumato', '--help']; from sfumato.__main__ import main; main()",
    "import sfumato": "import sfumato",
    "import torch": "import torch",
    "import gpytorch, pandas": "import gpytorch, pandas, scipy.linalg, scipy.special",
    "fit_prior, protect, load": "import sfumato as sf; sf.fit_prior, sf.protect, sf.load",
    "a first protect": (
        "import sfumato as sf, gpytorch; K = gpytorch.kernels.RBFKernel().double(); K.lengthscale = 0.2;"
        "sf.protect(sf.Prior(kernel=K, noise=0.01), range(20), sf.Box([5], [9]), alpha=0.5, progress=False)"
    ),
    "all public names": "import sfumato as sf; [getattr(sf, name) for name in sf.__all__]",
}
UNITS = {
    "sfumato --help": "python -c pass",
    "import sfumato": "import torch",
    "import gpytorch, pandas": "import torch",
    "fit_prior, protect, load": "import torch",
    "a first protect": "import torch",
    "all public names": "import torch",
}
BARS = {"import_over_torch": 1.3, "help_seconds": 0.5}


def start(code: str) -> None:
    # bytecode is kept between starts, as it is for users
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, stdout=subprocess.DEVNULL, env=kept)


def heavy_modules(code: str) -> list[str]:
    """Which large packages are in a process that has run this."""
    asked = (
        f"import atexit, sys; atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr))"
    )
    done = subprocess.run([sys.executable, "-c", f"{asked}\n{code}"], check=True, capture_output=True, text=True)
    return [name for name in HEAVY if f"'{name}'" in done.stderr.splitlines()[-1]]


def measure(options: Options) -> dict[str, Any]:
    # the first start of each writes bytecode and fills the disk's cache
    times, _ = in_turn({name: partial(start, code) for name, code in STARTS.items()}, options.repeat)
    seconds = medians(times)
    ratios = {name: seconds[name] / seconds[unit] for name, unit in UNITS.items()}
    heavy = {name: heavy_modules(STARTS[name]) for name in ("import sfumato", "sfumato --help")}
    table(
        ["start", "seconds", "ratio", "to"],
        [
            [name, f"{taken:.3f}", f"{ratios[name]:.2f}" if name in ratios else "", UNITS.get(name, "")]
            for name, taken in seconds.items()
        ],
    )
    for name, modules in heavy.items():
        print(f"{name} imports {', '.join(modules) or 'none'} of: {', '.join(HEAVY)}")
    print(f"bars: import sfumato {BARS['import_over_torch']} times import torch, --help {BARS['help_seconds']} s")
    least = {name: min(taken) for name, taken in times.items()}
    return {"seconds": seconds, "least_seconds": least, "ratios": ratios, "heavy_modules": heavy, "bars": BARS}


if __name__ == "__main__":
    run(__doc__, measure, "startup", repeat=7)
