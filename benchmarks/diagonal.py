"""How long independent noise takes, beside general-purpose SDP solvers and beside one float64 ``eigh``.

    python -m benchmarks.diagonal [--rows 2000] [--repeat 3] [--quick]

The problem is that of ``benchmarks.design``: five inputs, Gaussian kernel, the sensitive rows at one end of two inputs.
At 150 rows CVXPY hands the same program to SCS, with the loosest tolerance that brings its objective within 10⁻⁶ of the
certified optimum, and to Clarabel, whose one run takes minutes (``--quick`` leaves it out); only the time that they
report themselves counts. At ``--rows`` the unit is one ``eigh``, and so it is for the positive part by the matrix sign
at 1000 rows. All are measured in turn in one run, and medians are compared.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import warnings
from typing import Any

import numpy as np
import scipy.linalg
import torch

from sfumato.linalg.positive_part import positive_part_by_sign, positive_part_factor
from sfumato.programs.demand import Demand
from sfumato.programs.diagonal import DiagonalSolution, diagonal_noise
from sfumato.programs.joint import explaining_root

from .design import RESULTS, timed

ACCURACY = 1e-6
SMALL = 150
MIDDLE = 1000
BARS = {"times_faster_than_sdp": 50.0, "ratio_to_eigh": 20.0}


def problem(rows: int, share: float, alpha: float = 0.5) -> Demand:
    """A joint demand about ``share`` of the rows."""
    X = np.random.default_rng(1).standard_normal((rows, 5))
    scaled = X / np.array([0.63, 0.61, 0.60, 0.57, 0.63])
    squares = np.sum(scaled**2, axis=1)
    K = 1.69 * np.exp(-0.5 * np.maximum(squares[:, None] + squares - 2.0 * scaled @ scaled.T, 0.0))
    inside = np.argsort(X[:, 0] - X[:, 2])[: max(1, round(share * rows))]
    root = explaining_root(K[:, inside], alpha * K[np.ix_(inside, inside)])
    return Demand(K + 0.2528 * np.eye(rows), np.ascontiguousarray(root), joint=True)


def gap(solution: DiagonalSolution) -> float:
    objective = float(np.sum(solution.variances))
    return (objective - solution.lower) / objective


def by_cvxpy(demand: Demand, solver: str, **options: Any) -> tuple[float, float]:
    """The seconds that the solver reports, and the objective that it finds."""
    import cvxpy

    B = demand.root @ demand.root.T - demand.covariance
    d = cvxpy.Variable(B.shape[0])
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(d)), [cvxpy.diag(d) - (B + B.T) / 2 >> 0, d >= 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program.solve(solver=solver, **options)
    return float(program.solver_stats.solve_time), float(program.value)


def against_solvers(repeat: int, quick: bool) -> dict[str, Any]:
    demand = problem(SMALL, 0.1)
    solution = diagonal_noise([demand], accuracy=1e-9)
    # halfway between the two bounds, which differ by less than 1e-9
    optimum = (float(np.sum(solution.variances)) + solution.lower) / 2
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        options = {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": 200_000}
        if abs(by_cvxpy(demand, "SCS", **options)[1] / optimum - 1.0) <= ACCURACY:
            break
    ours, scs = [], []
    for _ in range(repeat):
        # a few milliseconds are not measured well by one run
        for _ in range(9):
            taken, solution = timed(lambda: diagonal_noise([demand], accuracy=ACCURACY))
            ours.append(taken)
        seconds, value = by_cvxpy(demand, "SCS", **options)
        scs.append(seconds)
    times = {"sfumato": statistics.median(ours), "SCS": statistics.median(scs)}
    error = {"sfumato": float(np.sum(solution.variances)) / optimum - 1.0, "SCS": value / optimum - 1.0}
    if not quick:
        tight = {"tol_gap_abs": ACCURACY, "tol_gap_rel": ACCURACY, "tol_feas": ACCURACY}
        times["Clarabel"], value = by_cvxpy(demand, "CLARABEL", **tight)
        error["Clarabel"] = value / optimum - 1.0
    return {
        "rows": SMALL,
        "sensitive": demand.root.shape[1],
        "seconds": times,
        "relative_error_of_the_objective": error,
        "certified_gap": gap(solution),
        "scs_tolerance": tolerance,
        "times_faster": {name: taken / times["sfumato"] for name, taken in times.items() if name != "sfumato"},
    }


def against_eigh(rows: int, share: float, repeat: int) -> dict[str, Any]:
    demand = problem(rows, share)
    eigh, ours = [], []
    for _ in range(repeat):
        eigh.append(timed(lambda: np.linalg.eigh(demand.covariance))[0])
        taken, solution = timed(lambda: diagonal_noise([demand], accuracy=ACCURACY))
        ours.append(taken)
    return {
        "rows": rows,
        "sensitive": demand.root.shape[1],
        "rows_without_noise": int(np.sum(solution.variances == 0.0)),
        "eigh_seconds": statistics.median(eigh),
        "ratio_to_eigh": statistics.median(ours) / statistics.median(eigh),
        "certified_gap": gap(solution),
        "learnt": demand.ratio(np.diag(solution.variances)),
    }


def by_sign(rows: int, repeat: int) -> dict[str, Any]:
    demand = problem(rows, 0.02)
    B = demand.root @ demand.root.T - demand.covariance
    B = (B + B.T) / 2
    eigh, ours = [], []
    for _ in range(repeat):
        taken, factor = timed(lambda: positive_part_factor(B))
        eigh.append(taken)
        taken, part = timed(lambda: positive_part_by_sign(B))
        ours.append(taken)
    return {
        "rows": rows,
        "steps": part.steps,
        "ratio_to_eigh": statistics.median(ours) / statistics.median(eigh),
        "relative_error_of_the_trace": float(np.sum(part.factor**2) / np.sum(factor**2)) - 1.0,
        "shift_in_units_of_round_off": part.shift / (rows * 2.0**-53 * scipy.linalg.norm(B, 2)),
    }


def report(solvers: dict[str, Any], eigh: list[dict[str, Any]], sign: dict[str, Any]) -> None:
    print(f"n = {solvers['rows']}, {solvers['sensitive']} sensitive (bar {BARS['times_faster_than_sdp']:.0f} times)")
    for name, seconds in solvers["seconds"].items():
        times = f"{solvers['times_faster'][name]:>10.0f} times ours" if name in solvers["times_faster"] else ""
        error = solvers["relative_error_of_the_objective"][name]
        print(f"  {name:<10}{seconds:>10.4f} s   error of the objective {error:>9.1e}{times}")
    for row in eigh:
        print(f"n = {row['rows']}, {row['sensitive']} sensitive, {row['rows_without_noise']} rows without noise:")
        print(f"  {row['ratio_to_eigh']:.2f} eigh (bar {BARS['ratio_to_eigh']:.0f}), gap {row['certified_gap']:.0e}")
    print(f"n = {sign['rows']}, positive part by the matrix sign: {sign['ratio_to_eigh']:.2f} eigh positive parts")
    print(f"  {sign['steps']} inverses, error of the trace {sign['relative_error_of_the_trace']:.0e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="leave Clarabel out")
    options = parser.parse_args()
    result = {
        "solvers": against_solvers(options.repeat, options.quick),
        "eigh": [against_eigh(options.rows, share, options.repeat) for share in (0.02, 0.1)],
        "sign": by_sign(MIDDLE, options.repeat),
        "bar": BARS,
        "machine": {"processor": platform.processor() or platform.machine(), "threads": torch.get_num_threads()},
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    report(result["solvers"], result["eigh"], result["sign"])
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "diagonal.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
