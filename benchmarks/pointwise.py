"""How long the least noise for a pointwise promise takes, beside a general-purpose SDP solver and beside ``eigh``.

    python -m benchmarks.pointwise [--rows 1000] [--points 200] [--repeat 3] [--no-sdp]

Inputs are uniform in the unit square, the sensitive points uniform in the box [0.3, 0.7]², half of the variance at each
of them has to stay, lengthscale 0.2 and noise variance 0.01 (0.3 and 0.05 for the small problem). The small problem, 40
rows and 12 points, is given to CVXPY with Clarabel too, which takes a minute or more, and the answers are compared. For
the large one the time to a certified gap is given in units of one float64 ``eigh`` of the same size, for a smooth
kernel (RBF) and for a rough one (Matérn 3/2), which has many more points that bind.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from sfumato.programs.correlated import correlated_noise
from sfumato.programs.demand import Demand, lower_bound

from .harness import Options, in_turn, medians, run, table, timed

#: Times faster than the SDP solver, and in units of one eigh at a gap of 1e-3.
BARS = {"times_faster_than_sdp": 10.0, "ratio_to_eigh": 200.0}

#: Certified gaps that are asked for.
GAPS = (1e-3, 1e-4)


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
    solution = correlated_noise([demand], accuracy=accuracy, say=rounds.append)
    trace = float(np.sum(solution.factor**2))
    return {
        "asked": accuracy,
        "trace": trace,
        "gap": 1.0 - lower_bound([demand], solution.witness) / trace,
        "ratio": demand.ratio(solution.factor @ solution.factor.T),
        "rank": int(solution.factor.shape[1]),
        "rounds": len(rounds),
    }


def measure_small(repeat: int, with_sdp: bool) -> dict[str, Any]:
    demand = problem(40, 12, rbf, 0.3, 0.05)
    times, made = in_turn({"ours": lambda: solve(demand, 1e-6)}, repeat)
    ours = {**made["ours"], "seconds": medians(times)["ours"]}
    print(f"n = 40, 12 points: {ours['seconds']:.3f} s to a certified gap of {ours['gap']:.1e}")
    result: dict[str, Any] = {"rows": 40, "points": 12, "ours": ours}
    if with_sdp:
        seconds, value = timed(lambda: sdp(demand))
        result["sdp"] = {"seconds": seconds, "trace": value}
        result["times_faster"] = seconds / ours["seconds"]
        result["difference"] = abs(ours["trace"] - value) / value
        print(
            f"    CVXPY with Clarabel {seconds:.1f} s: {result['times_faster']:.0f} times as long "
            f"(bar {BARS['times_faster_than_sdp']:.0f}), traces differ by {result['difference']:.1e}"
        )
    return result


def measure_large(rows: int, points: int, repeat: int) -> list[dict[str, Any]]:
    found = []
    for name, kernel in (("RBF", rbf), ("Matérn 3/2", matern)):
        demand = problem(rows, points, kernel, 0.2, 0.01)
        actions: dict[str, Any] = {"eigh": partial(np.linalg.eigh, demand.covariance)}
        actions |= {f"{gap:.0e}": partial(solve, demand, gap) for gap in GAPS}
        times, made = in_turn(actions, repeat, warm_up=False)
        seconds = medians(times)
        for gap in list(actions)[1:]:
            ratio = seconds[gap] / seconds["eigh"]
            found.append({"kernel": name, **made[gap], "seconds": seconds[gap], "ratio_to_eigh": ratio})
    print(f"n = {rows}, {points} points (bar {BARS['ratio_to_eigh']:.0f} eigh at a gap of 1e-3)")
    table(
        ["kernel", "gap asked", "gap", "seconds", "/ eigh", "rounds", "rank"],
        [
            [
                one["kernel"],
                f"{one['asked']:.0e}",
                f"{one['gap']:.1e}",
                f"{one['seconds']:.2f}",
                f"{one['ratio_to_eigh']:.1f}",
                one["rounds"],
                one["rank"],
            ]
            for one in found
        ],
    )
    return found


def measure(options: Options) -> dict[str, Any]:
    small = measure_small(options.repeat, not options.no_sdp)
    return {"small": small, "large": measure_large(options.rows, options.points, options.repeat), "bars": BARS}


if __name__ == "__main__":
    run(__doc__, measure, "pointwise", rows=1000, points=200, repeat=3, no_sdp=False)
