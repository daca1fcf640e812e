"""How long the least noise for a pointwise promise takes, beside a general-purpose SDP solver and beside ``eigh``.

    python -m benchmarks.pointwise [--rows 1000] [--points 200] [--repeat 3] [--no-sdp]

Inputs are uniform in the unit square, the sensitive points uniform in the box [0.3, 0.7]², half of the variance at each
of them has to stay, lengthscale 0.2 and noise variance 0.01 (0.3 and 0.05 for the small problem). The small problem, 40
rows and 12 points, is given to CVXPY with Clarabel too, which takes a minute or more, and the answers are compared. For
the large one the time to a certified gap is given in units of one float64 ``eigh`` of the same size, for a smooth
kernel (RBF) and for a rough one (Matérn 3/2), which has many more points that bind.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import warnings
from typing import Any

import numpy as np
import torch

from benchmarks.design import RESULTS, timed
from sfumato.programs.correlated import correlated_noise
from sfumato.programs.demand import Demand

BAR_SDP = 10.0
BAR_EIGH = 200.0


def rbf(gaps: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * gaps**2))


def matern(gaps: np.ndarray) -> np.ndarray:
    return np.asarray((1 + np.sqrt(3) * gaps) * np.exp(-np.sqrt(3) * gaps))


def problem(rows: int, points: int, kernel: Any, lengthscale: float, noise: float) -> Demand:
    rng = np.random.default_rng(0)
    X, S = rng.random((rows, 2)), 0.3 + 0.4 * rng.random((points, 2))
    K_XX = kernel(np.linalg.norm(X[:, None] - X[None], axis=2) / lengthscale)
    K_XS = kernel(np.linalg.norm(X[:, None] - S[None], axis=2) / lengthscale)
    return Demand(K_XX + noise * np.eye(rows), K_XS / np.sqrt(0.5), joint=False)


def sdp(demand: Demand) -> float:
    """The same program, by CVXPY with Clarabel as it comes."""
    import cvxpy

    n = len(demand.covariance)
    sigma = cvxpy.Variable((n, n), PSD=True)
    constraints = [sigma + demand.covariance - np.outer(u, u) >> 0 for u in demand.root.T]
    task = cvxpy.Problem(cvxpy.Minimize(cvxpy.trace(sigma)), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task.solve(solver="CLARABEL")
    return float(task.value)


def solve(demand: Demand, accuracy: float) -> dict[str, Any]:
    rounds: list[str] = []
    seconds, solution = timed(lambda: correlated_noise([demand], accuracy=accuracy, say=rounds.append))
    trace = float(np.sum(solution.factor**2))
    return {
        "asked": accuracy,
        "seconds": seconds,
        "trace": trace,
        "gap": 1.0 - solution.lower / trace,
        "ratio": demand.ratio(solution.factor @ solution.factor.T),
        "rank": int(solution.factor.shape[1]),
        "rounds": len(rounds),
    }


def median_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {**runs[0], "seconds": statistics.median(run["seconds"] for run in runs)}


def measure_small(repeat: int, with_sdp: bool) -> dict[str, Any]:
    demand = problem(40, 12, rbf, 0.3, 0.05)
    solve(demand, 1e-6)
    ours = median_of([solve(demand, 1e-6) for _ in range(repeat)])
    result: dict[str, Any] = {"rows": 40, "points": 12, "ours": ours, "bar": BAR_SDP}
    if with_sdp:
        seconds, value = timed(lambda: sdp(demand))
        result["sdp"] = {"seconds": seconds, "trace": value}
        result["times_faster"] = seconds / ours["seconds"]
        result["difference"] = abs(ours["trace"] - value) / value
    return result


def measure_large(rows: int, points: int, repeat: int) -> dict[str, Any]:
    result: dict[str, Any] = {"rows": rows, "points": points, "bar": BAR_EIGH, "kernels": {}}
    eigh: list[float] = []
    for name, kernel in (("RBF", rbf), ("Matérn 3/2", matern)):
        demand = problem(rows, points, kernel, 0.2, 0.01)
        runs: dict[float, list[dict[str, Any]]] = {1e-3: [], 1e-4: []}
        for _ in range(repeat):
            eigh.append(timed(lambda A=demand.covariance: np.linalg.eigh(A))[0])
            for accuracy, found in runs.items():
                found.append(solve(demand, accuracy))
        result["kernels"][name] = [median_of(found) for found in runs.values()]
    result["eigh_seconds"] = statistics.median(eigh)
    for found in result["kernels"].values():
        for run in found:
            run["ratio_to_eigh"] = run["seconds"] / result["eigh_seconds"]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-sdp", action="store_true", help="leave out CVXPY with Clarabel")
    options = parser.parse_args()
    small = measure_small(options.repeat, not options.no_sdp)
    print(f"n = 40, 12 points: {small['ours']['seconds']:.3f} s to a certified gap of {small['ours']['gap']:.1e}")
    if "sdp" in small:
        print(
            f"    CVXPY with Clarabel {small['sdp']['seconds']:.1f} s: {small['times_faster']:.0f} times as long "
            f"(bar {BAR_SDP:.0f}), traces differ by {small['difference']:.1e}"
        )
    large = measure_large(options.rows, options.points, options.repeat)
    print(f"n = {large['rows']}, {large['points']} points: one float64 eigh takes {large['eigh_seconds']:.3f} s")
    print(f"{'kernel':<12}{'gap asked':>10}{'gap':>10}{'seconds':>10}{'/ eigh':>10}{'rounds':>8}{'rank':>6}")
    for name, found in large["kernels"].items():
        for run in found:
            row = f"{name:<12}{run['asked']:>10.0e}{run['gap']:>10.1e}{run['seconds']:>10.2f}"
            print(f"{row}{run['ratio_to_eigh']:>10.1f}{run['rounds']:>8}{run['rank']:>6}  (bar {BAR_EIGH:.0f} at 1e-3)")
    machine = {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads()}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    result = {"small": small, "large": large, "repeat": options.repeat, "machine": machine, "versions": versions}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pointwise.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
