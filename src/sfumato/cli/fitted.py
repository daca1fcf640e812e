"""The table of a command that tries things out: its rows, the region, and the prior that is fitted to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..text import counted
from .options import Fit, Reading, Sensitive

if TYPE_CHECKING:
    import pandas as pd

    from ..models import Prior
    from ..regions import Region


class FittedTable(NamedTuple):
    """A table's rows, where they are sensitive, the prior, and to which rows it was ``fitted``, in words."""

    X: pd.DataFrame
    y: pd.Series
    where: Region
    prior: Prior
    fitted: str


def fitted_table(data: Path, sensitive: Sensitive, fit: Fit, reading: Reading, progress: bool) -> FittedTable:
    """The table in ``data``; what is wrong with it, or with the region, is said before the fit."""
    from ..data import as_inputs
    from ..models import fit_prior
    from ..regions import parse_region

    fit.check()
    columns, output = sensitive.columns, sensitive.output
    table = reading.table(data, columns, [output])
    where = parse_region(sensitive.region, columns, outputs=[output])
    X, y = table[columns], table[output]
    rows = as_inputs(X)
    where.bind(rows)
    exclude = fit.excluded(where, rows)
    prior = fit_prior(X, y, exclude=exclude, **fit.settings(), progress=progress)
    return FittedTable(X, y, where, prior, fit_in_words(prior, fit.fit_outside, exclude is not None))


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
