"""How long the feasible subspace method takes, beside one Cholesky factorisation and one full ``eigh`` of that size.

    python -m benchmarks.subspace [--device cuda] [--rows 1000 2000 4000 8000] [--repeat 5] [--eigh-up-to 4000]

Inputs are uniform in the unit square, with an RBF kernel (ℓ = 0.1), a noise variance of 0.01 and 15 % of the square
protected (α = 0.3) by a greedy cover. All that is compared is measured in turn in one run, and the least of several
times is shown. The method's time includes the Cholesky factorisation that it needs; "given" is without, for callers who
have it already. A is made in place by blocks of rows, so that little more than two n × n matrices are ever live. The
last lines have the shape of the paper's census data (five inputs), where subspaces grow large: there it may give up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import sfumato as sf
from sfumato.data.inputs import as_inputs
from sfumato.design.sensitive import greedy_order
from sfumato.linalg.subspace import FeasibleSubspace, SubspaceResult
from sfumato.linalg.tensors import as_array, as_tensor
from sfumato.programs.joint import explaining_root
from sfumato.promise.readers import Reader

from . import problems
from .harness import Options, in_turn, run

EPSILON, ACCURACY = 0.05, 1e-8

#: (method with its Cholesky) / Cholesky at 8000 rows, and eigh / method at 4000.
BARS = {"to_cholesky": 2.5, "eigh_to_method": 6.0}

#: Heads of the printed table, with their widths.
HEADS = {"problem": 8, "n": 7, "γ": 5, "Cholesky": 10, "method": 9, "/ Chol.": 9, "given": 8, "eigh /": 8}
HEADS |= {"rounds": 10, "basis": 7, "gap": 10}


def plane(rows: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and U for uniform inputs in the square."""
    rng = np.random.default_rng(0)
    prior = problems.prior()
    X, candidates = rng.uniform(size=(rows, 2)), rng.uniform(size=(2000, 2)) * np.sqrt(problems.SHARE)
    S = candidates[greedy_order(prior, candidates, EPSILON, 500).order]
    return matrices(prior, X, S, problems.ALPHA, device)


def census(columns: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and U in five dimensions, with as many rows as the paper's census data and the sensitive ones among them."""
    prior, X, _ = problems.census(1325)
    S = X[np.argsort(np.maximum(X[:, 0] + 0.9, 1.3 - X[:, 2]))[:columns]]
    return matrices(prior, X, S, 0.5, device)


def matrices(
    prior: sf.Prior, X: np.ndarray, S: np.ndarray, alpha: float, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    reader, inputs = Reader(prior), as_inputs(X)
    cross = as_array(reader.function.with_data(inputs, S, device))
    U = explaining_root(cross, alpha * prior.covariance(S))
    return reader.data_covariance(inputs, device), as_tensor(np.ascontiguousarray(U), device)


def measure_one(name: str, size: int, repeat: int, device: str, eigh_up_to: int) -> dict[str, Any]:
    A, U = plane(size, device) if name == "plane" else census(size, device)

    def method(lower: torch.Tensor | None = None) -> SubspaceResult | None:
        subspace = FeasibleSubspace.of(A) if lower is None else FeasibleSubspace(A, lower)
        return None if subspace is None else subspace.positive_part(U, ACCURACY)

    factor: list[torch.Tensor] = []
    # the factor goes away with the turn: no more than A and one factor are ever held
    actions = {
        "cholesky": lambda: factor.append(torch.linalg.cholesky(A)),
        "given": lambda: method(factor.pop()),
        "method": method,
    }
    times, made = in_turn(actions, repeat, device=device)
    result: SubspaceResult | None = made["method"]
    least: dict[str, Any] = {key: min(taken) for key, taken in times.items()} | {"eigh": None}
    answer: dict[str, Any] = {"problem": name, "rows": len(A), "columns": U.shape[1], "seconds": least}
    answer["to_cholesky"] = least["method"] / least["cholesky"]
    answer["eigh_to_method"] = answer["above_eigh"] = None
    if result is not None:
        answer |= {"rounds": result.rounds, "basis": result.size, "rank": result.factor.shape[1]}
        answer |= {"trace": result.trace, "gap": 1.0 - result.lower_bound / result.trace}
    if len(A) <= eigh_up_to:
        B = torch.addmm(A, U, U.T, beta=-1.0)
        times, made = in_turn({"eigh": lambda: torch.linalg.eigh(B)}, min(2, repeat), warm_up=False, device=device)
        least["eigh"] = min(times["eigh"])
        answer["eigh_to_method"] = least["eigh"] / least["method"]
        if result is not None:
            answer["above_eigh"] = result.trace / float(made["eigh"][0].clamp_min(0.0).sum()) - 1.0
    return answer


def line(found: dict[str, Any]) -> str:
    seconds, eigh = found["seconds"], found["eigh_to_method"]
    cells = [found["problem"], found["rows"], found["columns"], f"{seconds['cholesky']:.3f}s"]
    cells += [f"{seconds['method']:.3f}s", f"{found['to_cholesky']:.2f}", f"{seconds['given']:.3f}s"]
    cells += ["–" if eigh is None else f"{eigh:.1f}"]
    cells += [found["rounds"], found["basis"], f"{found['gap']:.1e}"] if "basis" in found else ["gives up", "", ""]
    return "".join(str(cell).rjust(width) for cell, width in zip(cells, HEADS.values(), strict=True))


def measure(options: Options) -> dict[str, Any]:
    print("".join(head.rjust(width) for head, width in HEADS.items()))
    found = []
    for name, size in [("plane", rows) for rows in options.rows] + [("census", 20), ("census", 60)]:
        found.append(measure_one(name, size, options.repeat, options.device, options.eigh_up_to))
        print(line(found[-1]), flush=True)
    least, most = BARS["to_cholesky"], BARS["eigh_to_method"]
    print(f"bars: at most {least} Cholesky at n = 8000, eigh / method {most} at n = 4000")
    return {"accuracy": ACCURACY, "bars": BARS, "table": found}


if __name__ == "__main__":
    rows = [1000, 2000, 4000, 8000]
    run(__doc__, measure, "subspace-{device}", device="cpu", rows=rows, repeat=5, eigh_up_to=4000)
