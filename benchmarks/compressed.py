"""How long the compressed method takes, beside its floating-point operations at the machine's matrix-product rate.

    python -m benchmarks.compressed [--rows 100000 1000000 10000000] [--device cuda] [--generated 1000000000]

Each size runs in a process of its own, which first measures the rate of float64 matrix products. ``design`` is
``sf.protect`` for given sensitive inputs (a greedy cover of the region), certificate included; ``noise`` is the second
pass, which makes the noise of every row. Operations: n p² for the features, 1.25 n p² for their Gram matrix, and 2 n p
in the second pass. ``region`` is ``sf.protect`` for the whole region, with its search. Peak memory is beside the data.
"""

from __future__ import annotations

import collections
import json
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import torch

import sfumato as sf
from sfumato.data import Here

from .harness import Options, in_turn, parsed, peak_memory, run, timed
from .problems import ALPHA, box, generated, prior, rows, sensitive

#: Rough kernels and more inputs, at 100,000 rows: the rank and the gap that they reach.
HONESTY = (("matern52", 2, 0.1), ("matern32", 2, 0.1), ("rbf", 5, 1.0), ("rbf", 5, 0.4))

#: Time over operations at the product rate, growth with the rows, gap of the design, memory beside the data.
BARS = {"ratio": 1.7, "exponent": 1.05, "gap": 1e-6, "peak_gib": 4.0}


#: Kernel, number of inputs and lengthscale that sizes are compared for.
MAIN_CASE = ("rbf", 2, 0.1)

#: Heads of the printed table, with their widths.
HEADS = {"prior": 24, "rows": 15, "centres": 9, "gap": 10, "design s": 10, "noise s": 9, "region s": 10}
HEADS |= {"ratio": 8, "peak GiB": 10, "holds": 7}


def product_rate(device: str) -> float:
    """Float64 operations a second of a large matrix product."""
    size = 4096 if device == "cpu" else 16384
    matrix = torch.ones(size, size, dtype=torch.float64, device=device)
    times, _ = in_turn({"product": lambda: float((matrix @ matrix)[0, 0])}, 4, warm_up=False)
    return 2 * size**3 / sorted(times["product"])[1]


def measure_one(options: Options) -> dict[str, Any]:
    """One size, in a process of its own: see ``in_a_process``."""
    # a gap above the asked one is what is measured here
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    count, dimension, lengthscale = options.one, options.dimension, options.lengthscale
    rate, of = product_rate(options.device), prior(options.kernel, lengthscale)
    X: Any = generated(count, dimension) if options.generated_rows else rows(count, dimension)
    before = peak_memory()
    points = sf.Points(sensitive(of, dimension))

    def design(inputs: Any, region: sf.Region) -> sf.Mechanism:
        how: dict[str, Any] = {"method": "compressed", "device": options.device, "progress": False}
        return sf.protect(of, inputs, region, alpha=ALPHA, protects="function", **how)

    design(rows(5000, dimension), points)  # to warm up
    seconds, made = timed(lambda: design(X, points))
    noise = made.noise
    function = noise.function(np.ones(noise.normals_needed), options.device)

    def at_all_rows() -> None:
        draws = Here(options.device).each(lambda part: function.at(part.inputs()), noise.inputs.parts(), lambda _: None)
        collections.deque(draws, maxlen=0)

    second, _ = timed(at_all_rows)
    size = len(noise.mixing)
    operations = count * (2.25 * size**2 + 2.0 * size)
    result: dict[str, Any] = {
        "rows": count,
        "kernel": options.kernel,
        "dimension": dimension,
        "lengthscale": lengthscale,
        "centres": size,
        "sensitive": made.certificate.sensitive,
        "holds": made.certificate.holds,
        "gap": made.certificate.gap,
        "rate_gflops": rate / 1e9,
        "design_seconds": seconds,
        "noise_seconds": second,
        "ratio": (seconds + second) / (operations / rate),
        "peak_gib": (peak_memory() - before) / 2**30,
    }
    if options.region:
        seconds, whole = timed(lambda: design(X, box(dimension)))
        result |= {"region_seconds": seconds, "region_holds": whole.certificate.holds}
    return result


def in_a_process(count: int, device: str, case: tuple[str, int, float], region: bool, made: bool) -> dict[str, Any]:
    kernel, dimension, lengthscale = case
    command = [sys.executable, "-m", "benchmarks.compressed", "--one", str(count), "--device", device]
    command += ["--kernel", kernel, "--dimension", str(dimension), "--lengthscale", str(lengthscale)]
    command += ["--region"] * region + ["--generated-rows"] * made
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def line(found: dict[str, Any]) -> str:
    name = f"{found['kernel']}, {found['dimension']}-D, ℓ = {found['lengthscale']:g}"
    region = f"{found['region_seconds']:.1f}" if "region_seconds" in found else ""
    cells = [name, f"{found['rows']:,}", found["centres"], f"{found['gap']:.1e}", f"{found['design_seconds']:.2f}"]
    cells += [f"{found['noise_seconds']:.2f}", region, f"{found['ratio']:.2f}", f"{found['peak_gib']:.2f}"]
    cells += [found["holds"]]
    return "".join(str(cell).rjust(width) for cell, width in zip(cells, HEADS.values(), strict=True))


def measure(options: Options) -> dict[str, Any]:
    print("".join(head.rjust(width) for head, width in HEADS.items()))
    jobs = [(count, MAIN_CASE, False) for count in options.rows]
    jobs += [(count, MAIN_CASE, True) for count in options.generated]
    if not options.no_honesty:
        jobs += [(100_000, case, False) for case in HONESTY]
    results = []
    for count, case, made in jobs:
        results.append(in_a_process(count, options.device, case, options.region and not made, made))
        print(line(results[-1]), flush=True)
    sizes = [found for found in results if (found["kernel"], found["dimension"]) == MAIN_CASE[:2]]
    exponent = None
    if len(sizes) > 1:
        took = [found["design_seconds"] + found["noise_seconds"] for found in sizes]
        exponent = float(np.polyfit(np.log([found["rows"] for found in sizes]), np.log(took), 1)[0])
        print(f"time grows like n^{exponent:.3f} (bar {BARS['exponent']})")
    return {"results": results, "exponent": exponent, "bars": BARS}


#: ``no_honesty`` leaves out rough kernels and five inputs; ``region`` adds the whole region, with its search.
OPTIONS: dict[str, Any] = {"rows": [100_000, 1_000_000, 10_000_000], "generated": [], "device": "cpu"}
OPTIONS |= {"no_honesty": False, "region": False}

#: What a process of its own is asked for.
ONE: dict[str, Any] = {"one": 0, "kernel": "rbf", "dimension": 2, "lengthscale": 0.1, "generated_rows": False}

if __name__ == "__main__":
    if "--one" in sys.argv:
        print(json.dumps(measure_one(parsed(__doc__, **OPTIONS, **ONE))))
    else:
        run(__doc__, measure, "compressed-{device}", **OPTIONS)
