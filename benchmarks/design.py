"""How long a design and its certificate take, beside one float64 ``eigh`` of the same size.

    python -m benchmarks.design [--rows 1325] [--repeat 5]

Both are measured in turn in one run, and the medians are compared. The problem has the size and shape of the paper's
census experiment: five inputs, a region that bounds two of them, about 2 % of the rows inside. ``rows`` is the paper's
cover; ``auto`` protects the whole region, which takes a search and so several designs.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import torch

import sfumato as sf

RESULTS = Path(__file__).parent / "results"
BAR = 2.5


def problem(rows: int) -> tuple[sf.Prior, np.ndarray, sf.Box]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((rows, 5))
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=5)).double()
    kernel.outputscale = 1.69
    kernel.base_kernel.lengthscale = torch.tensor([[0.63, 0.61, 0.60, 0.57, 0.63]], dtype=torch.float64)
    region = sf.Box([-np.inf, -np.inf, 1.3, -np.inf, -np.inf], [-0.9, np.inf, np.inf, np.inf, np.inf])
    return sf.Prior(kernel=kernel, noise=0.2528), X, region


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def measure(rows: int, repeat: int) -> dict[str, Any]:
    prior, X, region = problem(rows)
    B = prior.covariance(X) - 0.5
    eigh: list[float] = []
    covers: dict[str, list[float]] = {"rows": [], "auto": []}
    certificates: dict[str, sf.Certificate] = {}
    for turn in range(repeat + 1):
        seconds, _ = timed(lambda: np.linalg.eigh(B))
        # the first turn only warms up, and the search is measured once
        for cover in ("rows", "auto") if turn == repeat else ("rows",):
            taken, mechanism = timed(lambda c=cover: sf.protect(prior, X, region, alpha=0.5, cover=c, progress=False))
            certificates[cover] = mechanism.certificate
            if turn > 0:
                covers[cover].append(taken)
        if turn > 0:
            eigh.append(seconds)
    return {
        "rows": rows,
        "repeat": repeat,
        "eigh_seconds": statistics.median(eigh),
        "ratio_to_eigh": {cover: statistics.median(times) / statistics.median(eigh) for cover, times in covers.items()},
        "sensitive": {cover: c.sensitive for cover, c in certificates.items()},
        "holds": {cover: c.holds for cover, c in certificates.items()},
        "checked": {cover: c.checked for cover, c in certificates.items()},
        "bar": {"rows": BAR},
        "machine": {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1325)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    # that only rows are protected is the point of this cover
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    result = measure(options.rows, options.repeat)
    print(f"n = {result['rows']}: one float64 eigh takes {result['eigh_seconds']:.3f} s")
    print(f"{'cover':<8}{'design + certificate / eigh':>30}{'sensitive':>12}{'checked':>10}{'holds':>8}")
    for cover, ratio in result["ratio_to_eigh"].items():
        bar = f"  (bar {result['bar'][cover]})" if cover in result["bar"] else ""
        row = f"{cover:<8}{ratio:>30.2f}{result['sensitive'][cover]:>12}{result['checked'][cover]:>10}"
        print(f"{row}{result['holds'][cover]!s:>8}{bar}")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "design.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
