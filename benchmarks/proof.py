"""What it costs to prove the floor over a region, for kernels of any smoothness and for more or fewer columns.

    python -m benchmarks.proof [--rows 400] [--only NAME]

Rows are uniform in a cube of side 5 lengthscales (of 2 in four and five columns); the region is the cube of side 5/3
(2/3) in its middle, protected at α = 0.3. ``nodes`` are the inputs that the last proof solved for, ``patches`` those on
which it proved the floor. ``proof`` is its time in units of one ``eigh`` of the same size, ``share`` the share that all
proofs have of the time that ``protect`` takes. A combination is what a row has in columns without bounds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from unittest import mock

import gpytorch
import numpy as np

import sfumato as sf
from sfumato.arrays import Array
from sfumato.proof import Pieces, Proof, Prover, certify

from .harness import Options, run, table, timed
from .problems import ALPHA, census

#: Lengthscales on a side of the cube of rows, of the region, and the noise variance for a variance of 1.
SIDE, FEW_SIDE, PART, NOISE = 5.0, 2.0, 1.0 / 3.0, 0.05


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    prior: sf.Prior
    X: Array
    region: sf.Region
    alpha: float = ALPHA


def cube(name: str, kernel: gpytorch.kernels.Kernel, columns: int, rows: int) -> Case:
    side = SIDE if columns < 4 else FEW_SIDE
    X = side * np.random.default_rng(columns).random((rows, columns))
    ends = [[side * (1 + sign * PART) / 2] * columns for sign in (-1, 1)]
    return Case(f"{name}, {columns}-D", sf.Prior(kernel.double(), noise=NOISE), X, sf.Box(*ends))


def unit(kernel: gpytorch.kernels.Kernel) -> gpytorch.kernels.Kernel:
    kernel.lengthscale = 1.0
    return kernel


def cases(rows: int) -> list[Case]:
    def matern(nu: float) -> gpytorch.kernels.Kernel:
        return unit(gpytorch.kernels.MaternKernel(nu=nu))

    rbf = gpytorch.kernels.RBFKernel
    periodic = gpytorch.kernels.PeriodicKernel()
    periodic.period_length, periodic.lengthscale = 2.0, 1.0
    people, X, region = census(1325)
    return [
        cube("RBF", unit(rbf()), 1, rows),
        cube("periodic × RBF", periodic * unit(rbf()), 1, rows),
        cube("Matérn 5/2", matern(2.5), 1, rows),
        cube("Matérn 3/2", matern(1.5), 1, rows),
        cube("Matérn 1/2", matern(0.5), 1, rows),
        cube("RBF", unit(rbf()), 2, rows),
        cube("Matérn 5/2", matern(2.5), 2, rows),
        cube("Matérn 3/2", matern(1.5), 2, rows),
        cube("RBF", unit(rbf()), 3, rows),
        cube("Matérn 5/2", matern(2.5), 3, rows),
        cube("RBF", unit(rbf()), 5, rows),
        Case("2 of 5 columns, 1,325 combinations", people, X, region, 0.5),
    ]


@dataclass
class Watched:
    """Proofs as they are made, and the seconds that they take."""

    seconds: float = 0.0
    proofs: list[Proof] = field(default_factory=list)

    def prove(self, original: Any) -> Any:
        def watched(prover: Prover, pieces: Pieces) -> Proof:
            start = perf_counter()
            self.proofs.append(original(prover, pieces))
            self.seconds += perf_counter() - start
            return self.proofs[-1]

        return watched


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    found, lines = {}, []
    for case in cases(options.rows):
        if options.only and options.only not in case.name:
            continue
        designing, last = Watched(), Watched()
        with mock.patch.object(Prover, "prove", designing.prove(Prover.prove)):
            how = (case.prior, case.X, case.region, case.alpha)
            taken, mechanism = timed(lambda how=how: sf.protect(*how, protects="function", progress=False))
        with mock.patch.object(Prover, "prove", last.prove(Prover.prove)):
            certify(mechanism.design)
        matrix = np.asarray(case.prior.covariance(case.X))
        one, _ = timed(lambda matrix=matrix: np.linalg.eigh(matrix))
        (proof,) = last.proofs
        found[case.name] = {
            "evidence": mechanism.certificate.evidence,
            "nodes": proof.nodes,
            "patches": sum(int(np.sum(looked.proved)) for looked in proof.looked),
            "proof": last.seconds / one,
            "proofs": len(designing.proofs),
            "share": designing.seconds / taken,
        }
        seen = found[case.name]
        numbers = [f"{seen['nodes']:,}", f"{seen['patches']:,}", f"{seen['proof']:.2g}", seen["proofs"]]
        lines.append([case.name, seen["evidence"], *numbers, f"{seen['share']:.0%}"])
        print(*lines[-1], flush=True)
    table(["kernel, columns", "evidence", "nodes", "patches", "proof (eigh)", "proofs", "share of protect"], lines)
    return {"cases": found}


if __name__ == "__main__":
    run(__doc__, measure, "proof", rows=400, only="")
