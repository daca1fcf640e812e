"""How long the best predictions for a promise take, beside a general-purpose SDP solver and beside ``eigh``.

    python -m benchmarks.predictions [--rows 1500 5000] [--exact 1000] [--compressed 100000] [--insiders 40 60]
                                     [--device cuda] [--no-sdp]

Rows and sensitive inputs lie evenly on a line, the sensitive ones in [0.4, 0.6]; the rows beside are served. The kernel
is Matérn 5/2 with lengthscale 0.05 (0.1 for the small problem), noise variance 0.01, and 0.3 of the variance may be
learnt. The small problem, 36 rows and 6 sensitive inputs, is given to CVXPY with Clarabel too, and the answers are
compared. For the large ones (15 sensitive inputs, and the records inside) the time to a certified gap is given in
units of one float64 ``eigh`` with as many rows, and the number of decompositions, which are of smaller matrices.
``warm`` starts from the witness of a program whose demands are 1 % less. ``raised`` says of how many combinations
something is still held back once whatever else the demands allow is let through too, which ``sf.protect`` does last.

Last, whole calls of ``sf.protect`` for both objectives, the proof over the box and the search for sensitive inputs
included (``protects="function"``, lengthscale 0.1, 0.2 of the variance may be learnt): what they take, and what readers
explain at the rows outside. The same with the records, 0.3 and promised to whoever holds any one row (``--insiders``:
so many rows).
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

import sfumato as sf
from sfumato.programs.predictions import LetThrough, WhiteDemand, best_predictions, raised

from .harness import Options, in_turn, medians, run, table, timed
from .problems import prior

#: Times faster than the SDP solver; decompositions and the time of one eigh at most, at a gap of 1e-4 with 15 inputs.
BARS = {"times_faster_than_sdp": 20.0, "decompositions": 10, "ratio_to_eigh": 2.0}

ACCURACY, ALPHA, NOISE = 1e-4, 0.3, 0.01


def kernel(left: np.ndarray, right: np.ndarray, lengthscale: float) -> np.ndarray:
    gaps = np.sqrt(5.0) * np.abs(left[:, None] - right[None]) / lengthscale
    return np.asarray((1.0 + gaps + gaps**2 / 3.0) * np.exp(-gaps))


def problem(rows: int, points: int, lengthscale: float) -> tuple[np.ndarray, WhiteDemand, np.ndarray]:
    """B, the demand and A; no sensitive inputs stand for the records inside."""
    X = (np.arange(rows) + 0.5) / rows
    inside = (X >= 0.4) & (X <= 0.6)
    A = kernel(X, X, lengthscale) + NOISE * np.eye(rows)
    if points:
        S = np.linspace(0.4, 0.6, points)
        cross, allowed = kernel(X, S, lengthscale), kernel(S, S, lengthscale) + 1e-10 * np.eye(points)
    else:
        cross, allowed = A[:, inside], A[np.ix_(inside, inside)]
    lower = np.linalg.cholesky(A)
    served = kernel(X, X[~inside], lengthscale) / np.sqrt(np.sum(~inside))
    told = scipy.linalg.solve_triangular(np.linalg.cholesky(ALPHA * allowed), cross.T, lower=True).T
    whiten = partial(scipy.linalg.solve_triangular, lower, lower=True)
    return np.ascontiguousarray(whiten(served)), WhiteDemand(np.ascontiguousarray(whiten(told)), joint=True), A


def sdp(B: np.ndarray, demand: WhiteDemand) -> float:
    """The same program, by CVXPY with Clarabel as it comes."""
    import cvxpy

    Q = cvxpy.Variable((len(B), len(B)), PSD=True)
    told = np.asarray(demand.root).T @ Q @ np.asarray(demand.root)
    constraints = [np.eye(len(B)) - Q >> 0, np.eye(demand.root.shape[1]) - told >> 0]
    task = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(cvxpy.multiply(B @ B.T, Q))), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task.solve(solver="CLARABEL")
    return float(task.value)


def said(found: LetThrough) -> dict[str, Any]:
    return {
        "explained": found.explained,
        "gap": found.gap,
        "decompositions": found.decompositions,
        "held_back": len(found.shares),
        "suppressed": int(np.sum(found.shares == 0.0)),
    }


def measure_small(repeat: int, with_sdp: bool) -> dict[str, Any]:
    B, demand, _ = problem(36, 6, 0.1)
    times, made = in_turn({"ours": lambda: best_predictions(B, [demand], ACCURACY)}, repeat)
    ours = {**said(made["ours"]), "seconds": medians(times)["ours"]}
    print(f"n = 36, 6 sensitive inputs: {1000 * ours['seconds']:.0f} ms to a certified gap of {ours['gap']:.1e}")
    result: dict[str, Any] = {"ours": ours}
    if with_sdp:
        seconds, value = timed(lambda: sdp(B, demand))
        result["sdp"] = {"seconds": seconds, "explained": value}
        result["times_faster"] = seconds / ours["seconds"]
        result["difference"] = abs(ours["explained"] - value) / value
        print(
            f"    CVXPY with Clarabel {seconds:.2f} s: {result['times_faster']:.0f} times as long "
            f"(bar {BARS['times_faster_than_sdp']:.0f}), values differ by {result['difference']:.1e}"
        )
    return result


def measure_large(rows: int, repeat: int) -> list[dict[str, Any]]:
    found = []
    for name, points in (("15 inputs", 15), ("records", 0)):
        B, demand, A = problem(rows, points, 0.05)
        looser = WhiteDemand(np.asarray(demand.root) / 1.01, joint=True)
        start = best_predictions(B, [looser], ACCURACY).witness
        actions: dict[str, Any] = {
            "eigh": partial(np.linalg.eigh, A),
            "cold": partial(best_predictions, B, [demand], ACCURACY),
            "warm": partial(best_predictions, B, [demand], ACCURACY, start),
        }
        times, made = in_turn(actions, repeat, warm_up=False)
        seconds = medians(times)
        for how in ("cold", "warm"):
            ratio = seconds[how] / seconds["eigh"]
            took, more = timed(partial(raised, made[how], B, [demand]))
            found.append(
                {"rows": rows, "sensitive": name, "columns": int(demand.root.shape[1]), "start": how}
                | said(made[how])
                | {"seconds": seconds[how], "ratio_to_eigh": ratio, "raised": len(more.shares), "raised_seconds": took}
            )
    return found


def measure_protect(rows: int, method: str, device: str, insiders: bool = False) -> dict[str, Any]:
    """Both objectives, as users ask for them."""
    X, of = ((np.arange(rows) + 0.5) / rows)[:, None], prior("matern52", 0.1)
    alpha, protects = (ALPHA, "both") if insiders else (0.2, "function")
    served = X[(X[:, 0] < 0.4) | (X[:, 0] > 0.6)]
    served = served[:: -(-len(served) // 4096)]
    result: dict[str, Any] = {"rows": rows, "method": "insiders" if insiders else method}
    for objective, how in (("noise", {}), ("predictions", {"serve": served})):

        def design(inputs: np.ndarray, objective: str = objective, how: dict[str, Any] = how) -> sf.Mechanism:
            asked = {"method": method, "device": device, "objective": objective, "progress": False, **how}
            held = [[row] for row in range(len(inputs))] if insiders else None
            return sf.protect(of, inputs, sf.Box(0.4, 0.6), alpha, protects=protects, insiders=held, **asked)

        design(X[:: -(-rows // 500)] if not insiders else X[::4])  # to warm up
        seconds, made = timed(partial(design, X), device)
        released, release = timed(partial(made.release, np.zeros(rows), unsafe_seed=1), device)
        kept = release.predict(served[:: -(-len(served) // 500)]).std ** 2
        result[objective] = {
            "seconds": seconds,
            "release_seconds": released,
            "explained": 1.0 - float(np.mean(kept)),
            "evidence": made.certificate.evidence,
            "gap": made.certificate.gap,
            "suppressed": made.noise.suppressed_count,
        }
    return result


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    small = measure_small(options.repeat, not options.no_sdp)
    large = [one for rows in options.rows for one in measure_large(rows, options.repeat if rows < 3000 else 1)]
    print(f"bars with 15 inputs: {BARS['decompositions']} decompositions, {BARS['ratio_to_eigh']:.0f} eigh")
    table(
        [
            "rows",
            "sensitive",
            "start",
            "gap",
            "decompositions",
            "held back",
            "raised",
            "suppressed",
            "seconds",
            "/ eigh",
        ],
        [
            [
                one["rows"],
                f"{one['sensitive']} ({one['columns']})",
                one["start"],
                f"{one['gap']:.1e}",
                one["decompositions"],
                one["held_back"],
                one["raised"],
                one["suppressed"],
                f"{one['seconds']:.2f}",
                f"{one['ratio_to_eigh']:.2f}",
            ]
            for one in large
        ],
    )
    whole = [measure_protect(rows, "eigh", options.device) for rows in options.exact]
    whole += [measure_protect(rows, "compressed", options.device) for rows in options.compressed]
    whole += [measure_protect(rows, "auto", "cpu", insiders=True) for rows in options.insiders]
    print("sf.protect: the least noise → the best predictions")
    table(
        ["rows", "method", "seconds", "release", "explained", "gap", "suppressed", "evidence"],
        [
            [one["rows"], one["method"]]
            + [f"{one['noise'][key]:.3g} → {one['predictions'][key]:.3g}" for key in ("seconds", "release_seconds")]
            + [f"{one['noise']['explained']:.6f} → {one['predictions']['explained']:.6f}"]
            + [f"{one['predictions']['gap']:.1e}", one["predictions"]["suppressed"], one["predictions"]["evidence"]]
            for one in whole
        ],
    )
    return {"small": small, "large": large, "protect": whole, "bars": BARS}


if __name__ == "__main__":
    defaults: dict[str, Any] = {"rows": [1500, 5000], "exact": [1000], "compressed": [100_000], "insiders": [40, 60]}
    run(__doc__, measure, "predictions_{device}", **defaults, device="cpu", repeat=3, no_sdp=False)
