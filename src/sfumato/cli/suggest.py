"""The command ``sfumato suggest``: which promise, and how strong, readers elsewhere can afford."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from .fitted import fitted_table
from .options import DropMissing, Fit, Inputs, Json, OneOutput, SensitiveWhere, Table, columns_beside, option
from .printing import as_json, console

SUGGEST_EXAMPLES = (
    'sfumato suggest people.csv --inputs age,place --output income --region "age >= 75" --fit-outside',
    'sfumato suggest orbit.csv --inputs t --output r --region "1 <= t <= 2" --max-loss 0.05 --json',
)


def suggest(
    data: Table,
    inputs: Inputs,
    output: OneOutput,
    region: SensitiveWhere,
    fit: Fit,
    max_loss: Annotated[
        float, option("NUMBER", "The share of accuracy that readers outside the region may lose.")
    ] = 0.1,
    serve: Annotated[
        Path | None, option("FILE", "A table, .csv or .parquet, of inputs that are to stay useful.")
    ] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """Suggest a promise: what each can be had for, when each is right, and the call to copy."""
    columns = columns_beside(inputs, output)
    from ..data import read_table, select_numbers
    from ..evaluate import suggest as look

    served = None if serve is None else select_numbers(read_table(serve), columns, serve, drop_missing)
    X, _, where, prior = fitted_table(data, columns, output, region, fit, drop_missing, progress=not json)
    found = replace(look(prior, X, where, max_loss, serve=served, progress=not json), output=output)
    if json:
        as_json({"data": data, **found.as_dict()})
        return
    screen = console()
    screen.print(str(found), highlight=False)
    if found.best is not None:
        screen.print(f"or:                        sfumato protect … {found.best.options}", highlight=False)
