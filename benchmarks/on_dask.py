"""How long the compressed method takes on a Dask cluster of this machine's cores, beside the same work without Dask.

    python -m benchmarks.on_dask [--rows 2000000] [--workers 2] [--repeat 2]

Rows are generated where they are needed, so no data travel either way. ``design`` is ``sf.protect`` for given sensitive
inputs, certificate included: one pass over the rows. Both are measured in turn in one run, after a warm-up in which
the workers import what they need; the designs are compared as well.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.noise import FunctionalNoise

from .harness import Options, in_turn, medians, run
from .problems import ALPHA, generated, prior, sensitive

BAR = 1.2


def measure(options: Options) -> dict[str, Any]:
    from dask.distributed import Client, LocalCluster

    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    of = prior()
    points, X = sf.Points(sensitive(of)), generated(options.rows, 2, 1 << 17)

    def mixing(engine: Any) -> np.ndarray:
        how: dict[str, Any] = {"protects": "function", "method": "compressed", "progress": False}
        made = sf.protect(of, X, points, alpha=ALPHA, engine=engine, **how)
        assert isinstance(made.noise, FunctionalNoise)
        return made.noise.mixing

    how: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(n_workers=options.workers, **how) as cluster, Client(cluster) as client:
        times, made = in_turn({"here": lambda: mixing(None), "dask": lambda: mixing(client)}, options.repeat)
    seconds = medians(times)
    apart = float(np.max(np.abs(made["here"] - made["dask"])) / np.max(np.abs(made["here"])))
    ratio = seconds["dask"] / seconds["here"]
    print(f"{options.rows:,} rows, {len(made['here'])} centres, {options.workers} workers")
    print(f"here {seconds['here']:.2f} s, Dask {seconds['dask']:.2f} s")
    print(f"ratio {ratio:.2f} (bar {BAR}), the two designs differ by {apart:.1e}")
    return {"seconds": times, "ratio": ratio, "bar": BAR, "centres": len(made["here"]), "apart": apart}


if __name__ == "__main__":
    run(__doc__, measure, "on_dask", rows=2_000_000, workers=2, repeat=2)
