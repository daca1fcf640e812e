"""The table of a command that tries things out: its rows, the region, and the prior that is fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text import counted
from .options import Fit, Reading

if TYPE_CHECKING:
    import pandas as pd

    from ..models import Prior
    from ..regions import Region


def fitted_table(
    data: Path, columns: Sequence[str], output: str, region: str, fit: Fit, reading: Reading, progress: bool
) -> tuple[pd.DataFrame, pd.Series, Region, Prior]:
    """X, y, where they are sensitive, and the prior."""
    from ..data import as_inputs
    from ..models import fit_prior
    from ..regions import parse_region

    fit.check()
    table = reading.table(data, columns, [output])
    where = parse_region(region, columns, outputs=[output])
    X, y = table[list(columns)], table[output]
    where.bind(as_inputs(X))  # what is wrong with it is said before the fit
    prior = fit_prior(X, y, exclude=fit.excluded(where, X), **fit.settings(), progress=progress)
    return X, y, where, prior


def fit_in_words(prior: Any, asked: bool, outside: bool) -> str:
    """To which rows a prior was fitted, and why: only those outside may have been ``asked`` for, and taken or not."""
    report = getattr(prior, "fit_report", None)
    rows = "rows" if report is None else counted(report.rows_used, "row")
    if not asked:
        return f"The prior was fitted to {rows}, those inside the region too, as --fit-all says."
    if not outside:
        return f"The prior was fitted to {rows}, those inside the region too, because too few are outside."
    return (
        f"The prior was fitted to {rows} outside the region: it is published, and so it tells nothing of the others "
        "(--fit-all takes all rows)."
    )
