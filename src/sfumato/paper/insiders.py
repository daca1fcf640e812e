"""What the paper does not look at: what somebody learns who holds one row, and what is learnt about single records.

The paper's satellite and its census, protected as in the paper (the function, at the rows of the region) and as we do
by default (function and records), without insiders and with every row's owner as one. All of them are asked the same:
what is left of f, of each record in the region and of their differences, and what is left of f and of others' records
to the owner of whichever row tells most.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ..data import simulate
from ..design import Mechanism, protect
from ..errors import GuaranteeWarning
from ..evaluate import solve_positive
from ..models import Prior
from ..progress import Progress
from ..promise import Design, Insiders, Protects
from ..proof import groups_told
from ..regions import Region
from .census_data import CensusSplit, thinned
from .census_study import census_models
from .satellite_study import REGION, TIMES, models
from .study import ALPHAS, timed

#: The mechanisms: what is promised, and to whom.
MECHANISMS: dict[str, dict[str, Any]] = {
    "the paper's": {"protects": "function", "cover": "rows"},
    "both": {"protects": "both"},
    "both, insiders": {"protects": "both", "insiders": "rows"},
}

#: Of the census so many rows are taken, so that all designs take seconds: the sensitive ones, and others.
CENSUS_ROWS = 250


@dataclass(frozen=True)
class Kept:
    """What one mechanism leaves to readers, of the best-known value each time, as shares of what they did not know.

    ``promised`` is 1 − α. ``function`` is about f at any input of the region, ``record`` and ``difference`` about the
    records in it and about differences of two of them, for readers without rows. ``insider_function`` is about f at the
    rows of the region, and ``insider`` about f there and others' records, for the owner of the row that tells most.
    ``noise`` is its root mean square a row, in the unit of the study.
    """

    study: str
    rows: int
    mechanism: str
    alpha: float
    promised: float
    function: float
    record: float
    difference: float
    insider_function: float
    insider: float
    noise: float
    seconds: float


def insiders_study(
    data: CensusSplit, alphas: Sequence[float] = ALPHAS, rows: int = CENSUS_ROWS, step: Progress | None = None
) -> list[Kept]:
    """All mechanisms on the satellite's r and on ``rows`` of the census, with the settings of the paper's text.

    The other states of the satellite have the same kernel without errors, in other units, so that the same is left.
    """
    few, step = thinned(data, rows), step or Progress()
    step.stage("insiders: fitting the models")
    orbit = models("paper", simulate(TIMES)["r"].to_numpy()).owner
    people = census_models(few, "paper").owner
    studies: dict[str, tuple[Prior, Any, Region]] = {
        "satellite, r": (orbit, TIMES, REGION),
        data.study: (people, few.train, few.region),
    }
    found = []
    for study, problem in studies.items():
        for alpha in alphas:
            for name, how in MECHANISMS.items():
                step.stage(f"insiders: {study}, {name}, α = {alpha:g}")
                with warnings.catch_warnings():
                    # what each leaves open is what the table says
                    warnings.simplefilter("ignore", GuaranteeWarning)
                    seconds, made = timed(protect, *problem, alpha, progress=False, **how)
                found.append(kept(study, name, alpha, made, seconds))
    return found


def kept(study: str, name: str, alpha: float, made: Mechanism, seconds: float) -> Kept:
    """The line of one mechanism."""
    design, certificate = made.design, made.certificate
    return Kept(
        study=study,
        rows=len(design.inputs),
        mechanism=name,
        alpha=alpha,
        promised=1.0 - alpha,
        function=(1.0 - alpha) * certificate.floor_ratio**2,
        record=1.0 - certificate.record_learnt,
        difference=left_of_differences(design),
        insider_function=left_to_an_insider(design, alpha, "function"),
        insider=left_to_an_insider(design, alpha, "both"),
        noise=design.noise.rms,
        seconds=seconds,
    )


def left_to_an_insider(design: Design, alpha: float, of: Protects) -> float:
    """What is left of f at some row of the region (and of a record there) to the worst owner of one other row."""
    every = Insiders(len(design.inputs))
    asked = replace(
        design, sensitive=design.rows_inside(), protects=of, guarantee="pointwise", insiders=every, designed_for=()
    )
    # what round-off hides counts as learnt
    return float(max(1.0 - alpha * np.max(groups_told(asked)), 0.0))


def left_of_differences(design: Design) -> float:
    """The least share of the variance of a difference of two records in the region that readers do not learn."""
    prior, X = design.prior, design.inputs.values
    before = prior.covariance(X)
    before[np.diag_indices_from(before)] += prior.noise_variance(len(X))
    rows = np.flatnonzero(design.region.contains(X))
    cross = before[:, rows]
    after = cross[rows] - cross.T @ solve_positive(before + design.noise.covariance(), cross)
    first, second = np.triu_indices(len(rows), 1)

    def variances(covariance: Any) -> Any:
        own = np.diag(covariance)
        return own[first] + own[second] - 2.0 * covariance[first, second]

    return float(max(np.min(variances(after) / variances(cross[rows])), 0.0))


def as_table(found: Sequence[Kept]) -> pd.DataFrame:
    """A line for each mechanism."""
    return pd.DataFrame([asdict(one) for one in found])


def readable(found: Sequence[Kept]) -> list[list[str]]:
    """The table for people, heads first."""
    heads = ["study", "mechanism", "α", "promised", "of f", "of a record", "of a difference"]
    rows = [[*heads, "of f, to an insider", "of f or a record, to an insider", "noise a row", "time (s)"]]
    for one in found:
        left = (one.promised, one.function, one.record, one.difference, one.insider_function, one.insider)
        shares = [f"{share:.3g}" for share in left]
        label = f"{one.study}, {one.rows} rows"
        rows.append([label, one.mechanism, f"{one.alpha:g}", *shares, f"{one.noise:.3g}", f"{one.seconds:.2g}"])
    return rows
