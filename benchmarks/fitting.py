"""How long a fit takes beside scikit-learn's of the same model, and what it finds; and a fit to many rows.

    python -m benchmarks.fitting [--rows 1500] [--many 1000000 --device cuda]

Both fits maximise the same likelihood: Matérn 5/2 with a lengthscale for each of four inputs, a variance, a constant
mean (of scikit-learn: that of y) and noise. scikit-learn takes one start, sfumato three. The times are those of the
processor, not of the clock, and the likelihoods are those of y in its own units. A fit to ``--many`` rows is timed by
the clock, with the memory that it took, and says what the collapsed bound was worth; 0 leaves it, or scikit-learn, out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import sfumato as sf

from .harness import Options, peak_memory, run, table, timed

#: Of scikit-learn's time, at a log likelihood that is at most this much lower.
BAR, SAME = 0.5, 1e-3


def problem(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows with four inputs, a smooth function of them with an interaction, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, 4)) * [1.0, 10.0, 100.0, 0.1]
    U = X / [1.0, 10.0, 100.0, 0.1]
    f = np.sin(6 * U[:, 0]) + np.cos(4 * U[:, 1] * U[:, 2]) + U[:, 3] ** 2
    return X, 10.0 + 3.0 * f + 0.5 * rng.standard_normal(rows)


def by_sklearn(X: Any, y: Any) -> float:
    """The log likelihood that scikit-learn finds; its inputs are standardised, as its users do."""
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), nu=2.5) + WhiteKernel()
    fitted = GaussianProcessRegressor(kernel, normalize_y=True).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    return float(fitted.log_marginal_likelihood_value_) - len(y) * float(np.log(y.std()))


def by_sfumato(X: Any, y: Any) -> float:
    report = sf.fit_prior(X, y).fit_report
    assert report is not None
    return float(report.log_likelihood)


def processor(action: Callable[[], float]) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        found = action()
    return time.process_time() - began, found


def beside_sklearn(rows: int = 1500) -> dict[str, float]:
    """Seconds and log likelihoods of both fits; a small fit before them pays for what is imported."""
    X, y = problem(rows)
    for fit in (by_sklearn, by_sfumato):
        processor(lambda: fit(X[:60], y[:60]))  # noqa: B023
    theirs, their_likelihood = processor(lambda: by_sklearn(X, y))
    ours, our_likelihood = processor(lambda: by_sfumato(X, y))
    return {
        "sfumato": ours,
        "sklearn": theirs,
        "ratio": ours / theirs,
        "sfumato_log_likelihood": our_likelihood,
        "sklearn_log_likelihood": their_likelihood,
    }


def to_many(rows: int, device: str) -> dict[str, Any]:
    """Seconds and memory of a fit to so many rows, and what its report says."""
    X, y = problem(rows)
    sf.fit_prior(X[:60], y[:60])
    before = peak_memory()
    seconds, prior = timed(lambda: sf.fit_prior(X, y, device=device), device)
    report = prior.fit_report
    assert report is not None
    return {"seconds": seconds, "gib": (peak_memory() - before) / 2**30, "report": str(report), "noise": prior.noise}


def measure(options: Options) -> dict[str, Any]:
    many = {}
    if options.many:
        many = to_many(options.many, options.device)
        print(f"{options.many:,} rows × 4 on {options.device}: {many['seconds']:.1f} s, {many['gib']:.2f} GiB more")
        print(many["report"])
    return {"many": many} | (_beside(options) if options.rows else {})


def _beside(options: Options) -> dict[str, Any]:
    found = beside_sklearn(options.rows)
    table(
        [f"fit to {options.rows} rows × 4", "seconds", "log likelihood"],
        [[who, f"{found[who]:.2f}", f"{found[f'{who}_log_likelihood']:.4f}"] for who in ("sfumato", "sklearn")],
    )
    holds = found["ratio"] <= BAR and found["sfumato_log_likelihood"] >= found["sklearn_log_likelihood"] - SAME
    print(f"ratio {found['ratio']:.2f}, at most {BAR:g} at an equal likelihood: {'holds' if holds else 'FAILS'}")
    return {**found, "holds": holds}


if __name__ == "__main__":
    run(__doc__, measure, "fitting-{device}", rows=1500, many=0, device="cpu")
