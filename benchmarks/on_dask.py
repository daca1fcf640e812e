"""How long the compressed method takes on a Dask cluster of this machine's cores, beside the same work without Dask.

    python -m benchmarks.on_dask [--rows 2000000] [--workers 2] [--repeat 2]

Rows are generated where they are needed, so no data travel either way. ``design`` is ``sf.protect`` for given sensitive
inputs, certificate included: one pass over the rows. Both are measured in turn in one run, after a warm-up in which
the workers import what they need; the designs are compared as well.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.noise import FunctionalNoise

from .compressed import generated
from .sizes import ALPHA, machine, prior, sensitive

RESULTS = Path(__file__).parent / "results"
BAR = 1.3


def main() -> None:
    from dask.distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    of = prior()
    points, X = sf.Points(sensitive(of)), generated(options.rows, 2, 1 << 17)
    times: dict[str, list[float]] = {"here": [], "dask": []}
    made: dict[str, FunctionalNoise] = {}
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        for turn in range(options.repeat + 1):
            for name, engine in (("here", None), ("dask", client)):
                start = time.perf_counter()
                mechanism = sf.protect(of, X, points, alpha=ALPHA, method="compressed", engine=engine, progress=False)
                if turn:
                    times[name].append(time.perf_counter() - start)
                assert isinstance(mechanism.noise, FunctionalNoise)
                made[name] = mechanism.noise
    here, there = made["here"].mixing, made["dask"].mixing
    apart = float(np.max(np.abs(here - there)) / np.max(np.abs(here)))
    ratio = statistics.median(times["dask"]) / statistics.median(times["here"])
    print(f"{options.rows:,} rows, {len(here)} centres, {options.workers} workers")
    print(f"here {statistics.median(times['here']):.2f} s, Dask {statistics.median(times['dask']):.2f} s")
    print(f"ratio {ratio:.2f} (bar {BAR}), the two designs differ by {apart:.1e}")
    RESULTS.mkdir(exist_ok=True)
    result = {"rows": options.rows, "workers": options.workers, "seconds": times, "ratio": ratio, "bar": BAR}
    result |= {"centres": len(here), "apart": apart, "machine": machine()}
    (RESULTS / "on_dask.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
