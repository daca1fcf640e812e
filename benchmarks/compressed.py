"""How long the compressed method takes, beside its floating-point operations at the machine's matrix-product rate.

    python -m benchmarks.compressed [--rows 100000 1000000 10000000] [--device cuda] [--generated 1000000000]

Each size runs in a process of its own, which first measures the rate of float64 matrix products. ``design`` is
``sf.protect`` for given sensitive inputs (a greedy cover of the region), certificate included; ``noise`` is the second
pass, which makes the noise of every row. Operations: n p² for the features, 1.25 n p² for their Gram matrix, and 2 n p
in the second pass. ``region`` is ``sf.protect`` for the whole region, with its search. Peak memory is beside the data.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sfumato as sf
from sfumato.data.inputs import Inputs
from sfumato.data.parts import StoredInputs

from .sizes import ALPHA, GeneratedPart, box, machine, peak_memory, prior, rows, sensitive

RESULTS = Path(__file__).parent / "results"
#: Rough kernels and more inputs, at 100,000 rows: the rank and the gap that they reach.
HONESTY = (("matern52", 2, 0.1), ("matern32", 2, 0.1), ("rbf", 5, 1.0), ("rbf", 5, 0.4))
BARS = {"ratio": 2.5, "exponent": 1.05, "gap": 1e-6, "peak_gib": 4.0}


def product_rate(device: str) -> float:
    size = 4096 if device == "cpu" else 16384
    matrix = torch.ones(size, size, dtype=torch.float64, device=device)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        float((matrix @ matrix)[0, 0])
        times.append(time.perf_counter() - start)
    return 2 * size**3 / sorted(times)[1]


def generated(count: int, dimension: int, step: int = 1 << 22) -> StoredInputs:
    """Rows that are made part after part, ``step`` at a time."""
    parts = [GeneratedPart(start, min(step, count - start), dimension) for start in range(0, count, step)]
    few = np.vstack([parts[0].inputs()[:8192], np.zeros(dimension), np.ones(dimension)])
    return StoredInputs(parts, Inputs(few), np.zeros(dimension), np.ones(dimension))


def measure(count: int, device: str, kernel: str, dimension: int, lengthscale: float, options: Any) -> dict[str, Any]:
    rate, of = product_rate(device), prior(kernel, lengthscale)
    X: Any = generated(count, dimension) if options.generated_rows else rows(count, dimension)
    before = peak_memory()
    points = sf.Points(sensitive(of, dimension))
    warm = rows(5000, dimension)
    sf.protect(of, warm, points, alpha=ALPHA, method="compressed", device=device, progress=False)
    start = time.perf_counter()
    made = sf.protect(of, X, points, alpha=ALPHA, method="compressed", device=device, progress=False)
    design = time.perf_counter() - start
    noise = made.noise
    start = time.perf_counter()
    function = noise.function(np.ones(noise.normals_needed), device)
    for part in noise.parts():
        function.at(part.inputs())
    second = time.perf_counter() - start
    size = len(noise.mixing)
    operations = count * (2.25 * size**2 + 2.0 * size)
    result: dict[str, Any] = {
        "rows": count,
        "kernel": kernel,
        "dimension": dimension,
        "lengthscale": lengthscale,
        "centres": size,
        "sensitive": made.certificate.sensitive,
        "holds": made.certificate.holds,
        "gap": made.certificate.gap,
        "rate_gflops": rate / 1e9,
        "design_seconds": design,
        "noise_seconds": second,
        "ratio": (design + second) / (operations / rate),
        "peak_gib": (peak_memory() - before) / 2**30,
    }
    if options.region:
        start = time.perf_counter()
        whole = sf.protect(of, X, box(dimension), alpha=ALPHA, method="compressed", device=device, progress=False)
        result |= {"region_seconds": time.perf_counter() - start, "region_holds": whole.certificate.holds}
    return result


def in_a_process(count: int, device: str, case: tuple[str, int, float], region: bool, made: bool) -> dict[str, Any]:
    kernel, dimension, lengthscale = case
    command = [sys.executable, "-m", "benchmarks.compressed", "--one", str(count), "--device", device]
    command += ["--case", kernel, str(dimension), str(lengthscale)]
    command += ["--region"] * region + ["--generated-rows"] * made
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def line(result: dict[str, Any]) -> str:
    name = f"{result['kernel']}, {result['dimension']}-D, ℓ = {result['lengthscale']:g}"
    region = f"{result['region_seconds']:>10.1f}" if "region_seconds" in result else f"{'':>10}"
    return (
        f"{name:<24}{result['rows']:>15,}{result['centres']:>9}{result['gap']:>10.1e}{result['design_seconds']:>10.2f}"
        f"{result['noise_seconds']:>9.2f}{region}{result['ratio']:>8.2f}{result['peak_gib']:>10.2f}{result['holds']!s:>7}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--generated", type=int, nargs="*", default=[])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-honesty", action="store_true", help="Leave out rough kernels and five inputs.")
    parser.add_argument("--region", action="store_true", help="Also the whole region, with its search.")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--case", nargs=3, default=["rbf", "2", "0.1"], help=argparse.SUPPRESS)
    parser.add_argument("--generated-rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        # a gap above the asked one is what is measured here
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        kernel, dimension, lengthscale = options.case
        print(json.dumps(measure(options.one, options.device, kernel, int(dimension), float(lengthscale), options)))
        return
    head = f"{'prior':<24}{'rows':>15}{'centres':>9}{'gap':>10}{'design s':>10}{'noise s':>9}{'region s':>10}"
    print(f"{head}{'ratio':>8}{'peak GiB':>10}{'holds':>7}")
    main_case, results = ("rbf", 2, 0.1), []
    jobs = [(count, main_case, False) for count in options.rows]
    jobs += [(count, main_case, True) for count in options.generated]
    if not options.no_honesty:
        jobs += [(100_000, case, False) for case in HONESTY]
    for count, case, made in jobs:
        results.append(in_a_process(count, options.device, case, options.region and not made, made))
        print(line(results[-1]), flush=True)
    sizes = [result for result in results if (result["kernel"], result["dimension"]) == main_case[:2]]
    exponent = None
    if len(sizes) > 1:
        took = [result["design_seconds"] + result["noise_seconds"] for result in sizes]
        exponent = float(np.polyfit(np.log([result["rows"] for result in sizes]), np.log(took), 1)[0])
        print(f"time grows like n^{exponent:.3f} (bar {BARS['exponent']})")
    RESULTS.mkdir(exist_ok=True)
    report = {"results": results, "exponent": exponent, "bars": BARS, "machine": machine()}
    (RESULTS / f"compressed-{options.device}.json").write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
