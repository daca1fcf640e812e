"""What it costs to promise to a family of priors: cells, time and noise, beside the same promise to one prior.

    python -m benchmarks.families [--rows 300] [--repeat 1]

Rows are uniform on a line and in the unit square, the region has a third or 15 % of them, Matérn 5/2, α = 0.3,
lengthscales × 0.6 to 1.6 and V × 0.5 to 1. ``cells`` is in how many parts the lengthscales are cut, ``plain bound`` how
many the bound (ℓ/ℓ′)^d alone would need (models/below.py); ``times`` and ``noise`` are ratios to the design for the
prior alone, measured in turn in one run; ``worst`` is the least std over floor of 200 random members, at least 1.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.design.families import SHRINKS

from .harness import Options, in_turn, medians, run, table
from .problems import ALPHA, box, prior

LENGTHSCALE, NOISE = (0.6, 1.6), (0.5, 1.0)


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    rng, found, lines = np.random.default_rng(1), {}, []
    for dimension in (1, 2):
        X = rng.random((options.rows, dimension))
        one = prior("matern52", 0.2 if dimension == 1 else 0.3)
        region = sf.Box(1 / 3, 2 / 3) if dimension == 1 else box()
        for protects in ("function", "both"):

            def design(of: Any, protects: Any = protects, X: Any = X, region: Any = region) -> sf.Mechanism:
                return sf.protect(of, X, region, alpha=ALPHA, protects=protects, progress=False)

            family = one.family(lengthscale=LENGTHSCALE, noise=NOISE)
            actions = {"prior": lambda of=one: design(of), "family": lambda of=family: design(of)}
            times, made = in_turn(actions, options.repeat, warm_up=False)
            seconds, design_ = medians(times), made["family"].design
            learnt = ALPHA * (1 - SHRINKS)
            plain = dimension * math.log(LENGTHSCALE[1] / LENGTHSCALE[0]) / math.log((1 - learnt) / (1 - ALPHA))
            found[f"{dimension}, {protects}"] = line = {
                "cells": design_.families[0].cells,
                "plain": math.ceil(plain),
                "binding": len(design_.binding),
                "times": seconds["family"] / seconds["prior"],
                "seconds": seconds,
                "noise": made["family"].noise.trace / made["prior"].noise.trace,
                "worst": _worst(made["family"], family, rng),
                "evidence": made["family"].certificate.evidence,
            }
            lines.append([f"{dimension} column(s), {protects}", line["cells"], line["plain"], line["binding"]])
            lines[-1] += [f"{line['times']:.1f}", f"{line['noise']:.2f}", f"{line['worst']:.4f}", line["evidence"]]
    table(["problem", "cells", "plain bound", "binding", "times", "noise", "worst", "evidence"], lines)
    return {"problems": found}


def _worst(mechanism: sf.Mechanism, family: sf.PriorFamily, rng: np.random.Generator) -> float:
    X, least = mechanism.inputs, np.inf
    lower, upper = mechanism.region.bounding_box(X.shape[1])
    for _ in range(200):
        member = family.member(float(rng.uniform(*LENGTHSCALE)), noise=float(rng.uniform(*NOISE)))
        S = rng.uniform(lower, upper, size=(50, X.shape[1]))
        cross = member.covariance(X, S)
        M = member.covariance(X) + mechanism.noise.covariance() + np.diag(member.noise_variance(len(X)))
        left = member.variance(S) - np.sum(cross * np.linalg.solve(M, cross), axis=0)
        least = min(least, float(np.min(np.sqrt(left / ((1 - ALPHA) * member.variance(S))))))
    return least


if __name__ == "__main__":
    run(__doc__, measure, "families", rows=300, repeat=1)
