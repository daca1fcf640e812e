"""How long the feasible subspace method takes, beside one Cholesky factorisation and one full ``eigh`` of that size.

    python -m benchmarks.subspace [--device cuda] [--rows 1000 2000 4000 8000] [--repeat 5] [--eigh-up-to 4000]

Inputs are uniform in the unit square, with an RBF kernel (ℓ = 0.1), a noise variance of 0.01 and 15 % of the square
protected (α = 0.3) by a greedy cover. All that is compared is measured in turn in one run, and the least of several
times is shown. The method's time includes the Cholesky factorisation that it needs; "given" is without, for callers who
have it already. A is made in place by blocks of rows, so that little more than two n × n matrices are ever live. The
last lines have the shape of the paper's census data (five inputs), where subspaces grow large: there it may give up.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import torch

import sfumato as sf
from sfumato.data.inputs import as_inputs
from sfumato.design.search import greedy_order
from sfumato.linalg.subspace import SubspaceResult, subspace_positive_part
from sfumato.linalg.tensors import as_array, as_tensor
from sfumato.programs.joint import explaining_root
from sfumato.promise.readers import Reader

RESULTS = Path(__file__).parent / "results"
ALPHA, EPSILON, ACCURACY = 0.3, 0.05, 1e-8
#: (method with its Cholesky) / Cholesky at 8000 rows, and eigh / method at 4000
BARS = {"to_cholesky": 2.5, "eigh_to_method": 6.0}


def plane(rows: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and U for uniform inputs in the square."""
    rng = np.random.default_rng(0)
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 0.1
    prior = sf.Prior(kernel=kernel, noise=0.01)
    X, candidates = rng.uniform(size=(rows, 2)), rng.uniform(size=(2000, 2)) * np.sqrt(0.15)
    return matrices(prior, X, candidates[greedy_order(prior, candidates, EPSILON, 500).order], ALPHA, device)


def census(columns: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and U in five dimensions, with as many rows as the paper's census data and the sensitive ones among them."""
    X = np.random.default_rng(1).standard_normal((1325, 5))
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=5)).double()
    kernel.outputscale = 1.69
    kernel.base_kernel.lengthscale = torch.tensor([[0.63, 0.61, 0.60, 0.57, 0.63]], dtype=torch.float64)
    S = X[np.argsort(np.maximum(X[:, 0] + 0.9, 1.3 - X[:, 2]))[:columns]]
    return matrices(sf.Prior(kernel=kernel, noise=0.2528), X, S, 0.5, device)


def matrices(
    prior: sf.Prior, X: np.ndarray, S: np.ndarray, alpha: float, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    reader, inputs = Reader(prior), as_inputs(X)
    cross = as_array(reader.function.with_data(inputs, S, device))
    U = explaining_root(cross, alpha * prior.covariance(S))
    return reader.data_covariance(inputs, device), as_tensor(np.ascontiguousarray(U), device)


def timed(device: str, action: Callable[[], Any]) -> tuple[float, Any]:
    if device != "cpu":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    result = action()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start, result


def measure(name: str, A: torch.Tensor, U: torch.Tensor, repeat: int, device: str, with_eigh: bool) -> dict[str, Any]:
    times: dict[str, list[float]] = {"cholesky": [], "method": [], "given": [], "eigh": []}
    result: SubspaceResult | None = None
    for turn in range(repeat + 1):
        # the first turn only warms up; no turn holds more than A and one factor
        cholesky, lower = timed(device, lambda: torch.linalg.cholesky(A))
        given, _ = timed(device, lambda L=lower: subspace_positive_part(A, U, ACCURACY, L))
        del lower
        method, result = timed(device, lambda: subspace_positive_part(A, U, ACCURACY))
        if turn > 0:
            times["cholesky"].append(cholesky)
            times["given"].append(given)
            times["method"].append(method)
    for _ in range(min(2, repeat) if with_eigh else 0):
        B = torch.addmm(A, U, U.T, beta=-1.0)
        seconds, (values, _) = timed(device, lambda b=B: torch.linalg.eigh(b))
        times["eigh"].append(seconds)
        exact = float(values.clamp_min(0.0).sum())
        del B
    least = {key: min(value) if value else None for key, value in times.items()}
    answer: dict[str, Any] = {"problem": name, "rows": len(A), "columns": U.shape[1], "repeat": repeat}
    answer["seconds"] = least
    answer["to_cholesky"] = least["method"] / least["cholesky"]
    answer["eigh_to_method"] = least["eigh"] / least["method"] if least["eigh"] else None
    if result is not None:
        answer |= {"rounds": result.rounds, "basis": result.size, "rank": result.factor.shape[1]}
        answer |= {"trace": result.trace, "gap": 1.0 - result.lower_bound / result.trace}
        answer["above_eigh"] = result.trace / exact - 1.0 if with_eigh else None
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 4000, 8000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--eigh-up-to", type=int, default=4000)
    options = parser.parse_args()
    device = options.device
    table = []
    print(f"{'problem':<8}{'n':>7}{'γ':>5}{'Cholesky':>10}{'method':>9}{'/ Chol.':>9}{'given':>8}", end="")
    print(f"{'eigh /':>8}{'rounds':>8}{'basis':>7}{'gap':>10}")
    jobs: list[tuple[str, int]] = [("plane", rows) for rows in options.rows] + [("census", 20), ("census", 60)]
    for name, size in jobs:
        A, U = plane(size, device) if name == "plane" else census(size, device)
        row = measure(name, A, U, options.repeat, device, len(A) <= options.eigh_up_to)
        del A, U
        table.append(row)
        seconds, eigh = row["seconds"], row["eigh_to_method"]
        print(
            f"{name:<8}{row['rows']:>7}{row['columns']:>5}{seconds['cholesky']:>9.3f}s{seconds['method']:>8.3f}s",
            end="",
        )
        print(f"{row['to_cholesky']:>9.2f}{seconds['given']:>7.3f}s{'–' if eigh is None else f'{eigh:.1f}':>8}", end="")
        found = f"{row['rounds']:>8}{row['basis']:>7}{row['gap']:>10.1e}" if "basis" in row else "  gives up"
        print(found, flush=True)
    print(
        f"bars: at most {BARS['to_cholesky']} Cholesky at n = 8000, eigh / method {BARS['eigh_to_method']} at n = 4000"
    )
    machine = {"device": device, "processor": platform.processor() or platform.machine()}
    machine |= {"threads": torch.get_num_threads()}
    if device != "cpu":
        machine["accelerator"] = torch.cuda.get_device_name(device)
        machine["peak_gib"] = torch.cuda.max_memory_allocated(device) / 2**30
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    RESULTS.mkdir(exist_ok=True)
    name = "subspace.json" if device == "cpu" else f"subspace_{device.split(':')[0]}.json"
    answer = {"accuracy": ACCURACY, "bars": BARS, "table": table, "machine": machine, "versions": versions}
    (RESULTS / name).write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()
