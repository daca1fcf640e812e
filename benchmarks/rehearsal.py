"""How often a rehearsal calls a prior beaten or doubtful that the data come from, and how long it takes.

    python -m benchmarks.rehearsal [--draws 200] [--rows 44]

Data are drawn from each prior and rehearsed with the same prior. Alarms must be rarer than one in twenty. The time of a
rehearsal stands beside that of one float64 fit of the prior to the same rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import gpytorch
import numpy as np

import sfumato as sf

from .harness import Options, run, table, timed

KERNELS = {"rbf": gpytorch.kernels.RBFKernel, "matern52": lambda: gpytorch.kernels.MaternKernel(nu=2.5)}

#: Kernel, lengthscale on [0, 3], noise variance, inputs.
PRIORS: tuple[tuple[str, float, float, int], ...] = (
    ("rbf", 0.3, 0.01, 1),
    ("rbf", 0.2, 0.0, 1),
    ("rbf", 1.5, 0.01, 1),
    ("matern52", 0.1, 0.3, 1),
    ("matern52", 0.3, 0.1, 1),
    ("matern52", 2.0, 0.05, 1),
    ("rbf", 1.0, 0.01, 2),
    ("matern52", 1.0, 0.1, 2),
)
MOST_ALARMS = 0.05


def drawn(prior: sf.Prior, columns: int, rows: int, seed: int) -> tuple[Any, Any, sf.Region]:
    """Inputs, a draw of y at them, and a region in their middle."""
    rng = np.random.default_rng(seed)
    X = np.linspace(0, 3, rows)[:, None] if columns == 1 else rng.uniform(0, 3, size=(rows, 2))
    values, vectors = np.linalg.eigh(prior.covariance(X) + float(prior.noise) * np.eye(rows))
    y = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(rows))
    return X, y, sf.Box(1.3, 1.8) if columns == 1 else sf.Box([1, 1], [2, 2])


def measure(options: Options) -> dict[str, Any]:
    lines, shares = [], {}
    for name, lengthscale, noise, columns in PRIORS:
        kernel = KERNELS[name]()
        kernel.lengthscale = lengthscale
        prior, alarms, spent, fit = sf.Prior(kernel, noise=noise), 0, 0.0, 0.0
        for seed in range(options.draws):
            X, y, region = drawn(prior, columns, options.rows, seed)
            seconds, found = timed(lambda: sf.rehearse(prior, X, y, region, alpha=0.3, advise=False, progress=False))  # noqa: B023
            alarms, spent = alarms + (not found.passes), spent + seconds
            if seed < 5:
                fit += timed(lambda: sf.fit_prior(X, y, exclude=region))[0] / min(5, options.draws)  # noqa: B023
        words = f"{name}, lengthscale {lengthscale:g}, V = {noise:g}, {columns} input{'s' * (columns > 1)}"
        shares[words] = alarms / options.draws
        lines.append(
            [words, f"{alarms} of {options.draws}", f"{shares[words]:.1%}", f"{spent / options.draws / fit:.1f}"]
        )
    table(["prior that the data come from", "alarms", "share", "time / fit"], lines)
    return {"alarms": shares, "worst": max(shares.values()), "bar": MOST_ALARMS}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(__doc__, measure, "rehearsal", draws=200, rows=44)
