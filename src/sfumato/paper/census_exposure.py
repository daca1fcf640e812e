"""How much of the sensitive region readers know better than a floor allows: asked at random people who could exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..inputs import Array
from ..prior import GaussianProcess, Posterior, Prior
from .census_data import SPLIT_SEED, CensusSplit

PEOPLE = 4000
SLACK = 1e-9


@dataclass(frozen=True)
class Exposure:
    """At random inputs of the region: the least reader's std over the floor, and the share of inputs where it is < 1.

    ``cover`` is empty for methods that have none; the floor is √(1 − alpha) of the prior's std.
    """

    method: str
    cover: str
    alpha: float
    least_ratio: float
    share_below: float


def people_of_the_region(data: CensusSplit, count: int = PEOPLE, seed: int = SPLIT_SEED) -> pd.DataFrame:
    """Random inputs of S: uniform in the bounded columns, with the other columns of a random training row."""
    random = np.random.default_rng(seed)
    people = data.train.iloc[random.integers(len(data.train), size=count)].reset_index(drop=True)
    for column, (low, high) in data.bounds.items():
        people[column] = random.uniform(low, high, count)
    return people


def reader(prior: Prior, data: CensusSplit, noise: Array) -> Posterior:
    """A reader of values that carry ``noise`` (a covariance) besides the noise of the data; std only, no values."""
    rows = len(data.train)
    return prior.condition(data.train, np.zeros(rows), noise + np.diag(prior.noise_variance(rows)))


def floor_ratios(who: GaussianProcess, prior: Prior, alpha: float, at: pd.DataFrame) -> Array:
    """The std of ``who`` over the floor at the rows of ``at``."""
    return np.asarray(np.sqrt(who.variance(at) / ((1.0 - alpha) * prior.variance(at))))


def exposure(
    method: str, cover: str, alpha: float, who: GaussianProcess, prior: Prior, people: pd.DataFrame
) -> Exposure:
    """What ``who`` knows of ``people``, against the floor that ``alpha`` asks for under ``prior``."""
    ratios = floor_ratios(who, prior, alpha, people)
    return Exposure(method, cover, alpha, float(np.min(ratios)), float(np.mean(ratios < 1.0 - SLACK)))
