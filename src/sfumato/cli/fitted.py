"""The table of a command that tries things out: its rows, the region, and the prior that is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .options import Fit

if TYPE_CHECKING:
    import pandas as pd

    from ..models import Prior
    from ..regions import Region


def fitted_table(
    data: Path, columns: Sequence[str], output: str, region: str, fit: Fit, drop_missing: bool, progress: bool
) -> tuple[pd.DataFrame, pd.Series, Region, Prior]:
    """X, y, where they are sensitive, and the prior."""
    from ..data import read_table, select_numbers
    from ..models import fit_prior
    from ..regions import parse_region

    table = select_numbers(read_table(data), [*columns, output], data, drop_missing)
    where = parse_region(region, columns)
    X, y = table[list(columns)], table[output]
    prior = fit_prior(X, y, exclude=where if fit.fit_outside else None, **fit.settings(), progress=progress)
    return X, y, where, prior
