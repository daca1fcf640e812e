"""How long independent noise takes, beside general-purpose SDP solvers and beside one float64 ``eigh``.

    python -m benchmarks.diagonal [--rows 2000] [--repeat 3] [--quick]

The problem is that of ``benchmarks.design``: five inputs, Gaussian kernel, the sensitive rows at one end of two inputs.
At 150 rows CVXPY hands the same program to SCS, with the loosest tolerance that brings its objective within 10⁻⁶ of the
certified optimum, and to Clarabel, whose one run takes minutes (``--quick`` leaves it out); only the time that they
report themselves counts. At ``--rows`` the unit is one ``eigh``, and so it is for the positive part by the matrix sign
at 1000 rows. All are measured in turn in one run, and medians are compared.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from sfumato.linalg.positive_part import positive_part_by_sign, positive_part_factor
from sfumato.programs.demand import Demand, lower_bound
from sfumato.programs.diagonal import DiagonalSolution, diagonal_noise
from sfumato.programs.joint import explaining_root

from .harness import Options, in_turn, medians, run, table
from .problems import census

ACCURACY = 1e-6

#: Rows of the problem that SDP solvers can solve, and of the one for the matrix sign.
SMALL, MIDDLE = 150, 1000

BARS = {"times_faster_than_sdp": 50.0, "ratio_to_eigh": 20.0}


def problem(rows: int, share: float, alpha: float = 0.5) -> Demand:
    """A joint demand about ``share`` of the rows."""
    prior, X, _ = census(rows)
    inside = np.argsort(X[:, 0] - X[:, 2])[: max(1, round(share * rows))]
    K = prior.covariance(X)
    root = explaining_root(K[:, inside], alpha * K[np.ix_(inside, inside)])
    return Demand(K + float(prior.noise) * np.eye(rows), np.ascontiguousarray(root), joint=True)


def lower(demand: Demand, solution: DiagonalSolution) -> float:
    return lower_bound([demand], solution.witness, diagonal=True)


def gap(demand: Demand, solution: DiagonalSolution) -> float:
    return 1.0 - lower(demand, solution) / float(np.sum(solution.variances))


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
    optimum = (float(np.sum(solution.variances)) + lower(demand, solution)) / 2
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        options = {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": 200_000}
        if abs(by_cvxpy(demand, "SCS", **options)[1] / optimum - 1.0) <= ACCURACY:
            break
    ours = partial(diagonal_noise, [demand], accuracy=ACCURACY)
    # a few milliseconds are not measured well by one run
    times, made = in_turn({"sfumato": ours}, 9 * repeat)
    runs = [by_cvxpy(demand, "SCS", **options) for _ in range(repeat)]
    seconds = medians(times | {"SCS": [taken for taken, _ in runs]})
    solution = made["sfumato"]
    error = {"sfumato": float(np.sum(solution.variances)) / optimum - 1.0, "SCS": runs[-1][1] / optimum - 1.0}
    if not quick:
        tight = {"tol_gap_abs": ACCURACY, "tol_gap_rel": ACCURACY, "tol_feas": ACCURACY}
        seconds["Clarabel"], value = by_cvxpy(demand, "CLARABEL", **tight)
        error["Clarabel"] = value / optimum - 1.0
    faster = {name: taken / seconds["sfumato"] for name, taken in seconds.items() if name != "sfumato"}
    print(f"n = {SMALL}, {demand.root.shape[1]} sensitive (bar {BARS['times_faster_than_sdp']:.0f} times)")
    table(
        ["solver", "seconds", "error of the objective", "times ours"],
        [
            [name, f"{taken:.4f}", f"{error[name]:.1e}", f"{faster[name]:.0f}" if name in faster else ""]
            for name, taken in seconds.items()
        ],
    )
    return {
        "rows": SMALL,
        "sensitive": demand.root.shape[1],
        "seconds": seconds,
        "relative_error_of_the_objective": error,
        "certified_gap": gap(demand, solution),
        "scs_tolerance": tolerance,
        "times_faster": faster,
    }


def against_eigh(rows: int, share: float, repeat: int) -> dict[str, Any]:
    demand = problem(rows, share)
    actions = {
        "eigh": partial(np.linalg.eigh, demand.covariance),
        "ours": partial(diagonal_noise, [demand], accuracy=ACCURACY),
    }
    times, made = in_turn(actions, repeat, warm_up=False)
    seconds, solution = medians(times), made["ours"]
    bare, ratio = int(np.sum(solution.variances == 0.0)), seconds["ours"] / seconds["eigh"]
    print(f"n = {rows}, {demand.root.shape[1]} sensitive, {bare} rows without noise:")
    print(f"  {ratio:.2f} eigh (bar {BARS['ratio_to_eigh']:.0f}), gap {gap(demand, solution):.0e}")
    return {
        "rows": rows,
        "sensitive": demand.root.shape[1],
        "rows_without_noise": bare,
        "eigh_seconds": seconds["eigh"],
        "ratio_to_eigh": ratio,
        "certified_gap": gap(demand, solution),
        "learnt": demand.ratio(np.diag(solution.variances)),
    }


def by_sign(rows: int, repeat: int) -> dict[str, Any]:
    demand = problem(rows, 0.02)
    B = demand.root @ demand.root.T - demand.covariance
    B = (B + B.T) / 2
    actions = {"eigh": partial(positive_part_factor, B), "sign": partial(positive_part_by_sign, B)}
    times, made = in_turn(actions, repeat, warm_up=False)
    seconds, part = medians(times), made["sign"]
    error = float(np.sum(part.factor**2) / np.sum(made["eigh"] ** 2)) - 1.0
    ratio = seconds["sign"] / seconds["eigh"]
    print(f"n = {rows}, positive part by the matrix sign: {ratio:.2f} eigh positive parts")
    print(f"  {part.steps} inverses, error of the trace {error:.0e}")
    return {
        "rows": rows,
        "steps": part.steps,
        "ratio_to_eigh": ratio,
        "relative_error_of_the_trace": error,
        "shift_in_units_of_round_off": part.shift / (rows * 2.0**-53 * scipy.linalg.norm(B, 2)),
    }


def measure(options: Options) -> dict[str, Any]:
    return {
        "solvers": against_solvers(options.repeat, options.quick),
        "eigh": [against_eigh(options.rows, share, options.repeat) for share in (0.02, 0.1)],
        "sign": by_sign(MIDDLE, options.repeat),
        "bars": BARS,
    }


if __name__ == "__main__":
    run(__doc__, measure, "diagonal", rows=2000, repeat=3, quick=False)
