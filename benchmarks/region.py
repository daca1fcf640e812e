"""How long it takes to protect a whole region, with its proof and its certificate, beside the linear algebra it needs.

    python -m benchmarks.region [--device cuda] [--repeat 3] [--only NAME]

On a CPU each time is compared with one float64 ``eigh`` of the same size, measured in turn in the same run; on a GPU
the rows are as many as there is room for, and times are compared with one Cholesky factorisation, or stand by
themselves. ``certify`` is the proof again from the design alone. ``nodes`` are the inputs that were solved for. Bars
are about ``protects="function"``; one plane is measured with the default, "both", as well.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import gpytorch
import numpy as np
import torch

import sfumato as sf
from sfumato.arrays import Array
from sfumato.proof import certify

from .harness import Options, in_turn, medians, run, table
from .problems import ALPHA, box, census, prior, rows


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, and the bar for its time: in units of ``unit``."""

    name: str
    prior: sf.Prior
    X: Array
    region: sf.Region
    alpha: float
    unit: str
    bar: float | None
    method: str = "auto"
    protects: str = "function"


def satellite() -> Case:
    """The grid of the demo."""
    kernel = gpytorch.kernels.RBFKernel().double()
    kernel.lengthscale = 0.05
    return Case("satellite", sf.Prior(kernel=kernel), np.linspace(0, 3, 61)[:, None], sf.Box(1, 2), 0.1, "s", 0.3)


def five_inputs(count: int, lengthscale: float) -> Case:
    """Five inputs, all of them bounded, by the compressed method."""
    how = (prior("rbf", lengthscale), rows(count, 5), box(5), ALPHA)
    return Case(f"five inputs, {count:,}", *how, "s", 20.0, "compressed")


def plane(count: int, unit: str, bar: float, method: str = "auto") -> Case:
    return Case(f"plane, {count:,}", prior(), rows(count), box(), ALPHA, unit, bar, method)


def cases(device: str) -> list[Case]:
    if device == "cpu":
        of, X, region = census(1325)
        return [
            satellite(),
            plane(1500, "eigh", 5.0),
            replace(plane(1500, "eigh", 5.0), name="plane, 1,500, both", bar=None, protects="both"),
            Case("five inputs, two bounded, 1,325", of, X, region, 0.5, "eigh", 30.0),
        ]
    return [
        plane(4096, "s", 1.0),
        plane(65_536, "Cholesky", 2.0),
        plane(10_000_000, "s", 8.0, "compressed"),
        five_inputs(200_000, 0.5),
    ]


def linear_algebra(case: Case, device: str) -> Any:
    """What a time is compared with."""
    count = len(case.X)
    if case.unit == "eigh":
        matrix = np.asarray(case.prior.covariance(case.X))
        return lambda: np.linalg.eigh(matrix)
    if case.unit == "Cholesky":
        matrix = torch.eye(count, dtype=torch.float64, device=device).mul_(2.0).add_(1.0 / count)
        return lambda: torch.linalg.cholesky(matrix)
    return lambda: None


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    device = None if options.device == "cpu" else options.device
    found, lines = {}, []
    for case in cases(options.device):
        if options.only and options.only not in case.name:
            continue

        def protect(case: Case = case) -> sf.Mechanism:
            how: dict[str, Any] = {"method": case.method, "device": device, "progress": False}
            return sf.protect(case.prior, case.X, case.region, alpha=case.alpha, protects=case.protects, **how)

        actions = {"unit": linear_algebra(case, options.device), "protect": protect}
        times, made = in_turn(actions, options.repeat, device=options.device)
        certificate = made["protect"].certificate
        again, _ = in_turn({"certify": lambda made=made: certify(made["protect"].design, device=device)}, 1)
        seconds = medians(times | again)
        scale = 1.0 if case.unit == "s" else seconds["unit"]
        found[case.name] = {
            "unit": case.unit,
            "unit_seconds": seconds["unit"],
            "protect": seconds["protect"] / scale,
            "certify": seconds["certify"] / scale,
            "evidence": certificate.evidence,
            "trace": certificate.trace,
            "nodes": certificate.checked,
            "bar": case.bar,
        }
        one = found[case.name]
        times_of = [f"{one['protect']:.2f}", f"{one['certify']:.2f}", case.bar or ""]
        what = [certificate.evidence, certificate.checked, certificate.sensitive, f"{certificate.trace:.5g}"]
        lines.append([case.name, case.unit, *times_of, *what])
        print(*lines[-1], flush=True)
    table(["region", "in", "protect", "certify", "bar", "evidence", "nodes", "sensitive", "trace"], lines)
    return {"cases": found}


if __name__ == "__main__":
    run(__doc__, measure, "region-{device}", device="cpu", repeat=3, only="")
