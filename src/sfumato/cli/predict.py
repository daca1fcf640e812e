"""The command ``sfumato predict``: what a reader of a release concludes at new inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InputError
from ..text import shown
from .options import TABLES, Json, Reading, ReleaseFile, Replace, Written, check_written, option
from .printing import as_json, console, new_table, say_lines, say_note, show_table
from .releases import open_release

if TYPE_CHECKING:
    import pandas as pd

    from ..release import Release

PREDICT_EXAMPLES = (
    "sfumato predict orbit.sfumato new.csv",
    "sfumato predict orbit.sfumato new.csv --out predicted.csv",
    "sfumato predict orbit.sfumato new.csv --of v",
)


def predict(
    release_file: ReleaseFile,
    reading: Reading,
    new: Annotated[
        Path | None,
        typer.Argument(
            metavar="NEW", help="A table, .csv or .parquet, with the input columns; none for a quantity without inputs."
        ),
    ] = None,
    of: Annotated[str | None, option("NAME", "Of several outputs, released or not, the one that is asked for.")] = None,
    out: Annotated[
        Path | None,
        option("FILE", "Write the predictions here, .csv or .parquet, not to the screen."),
    ] = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """What a reader concludes at new inputs: mean and standard deviation."""
    check_written(Written("--out", out, TABLES), read=[release_file, new], replace=replace)
    import pandas as pd

    from ..data import for_spreadsheets, write_table

    release = open_release(release_file)
    X = _new_inputs(release, of, new, reading)
    seen = release.predict(X, output=of)
    output = of or release.output_name
    # inputs may be called anything, also mean or std
    prefix = f"{output}_" if X is not None and {"mean", "std"} & set(X.columns) else ""
    found = {f"{prefix}mean": seen.mean, f"{prefix}std": seen.std}
    table = pd.DataFrame(found) if X is None else X.assign(**found)
    if out is not None:
        write_table(table, out)
    about = release.certificate.about
    if json:
        records = table.to_dict(orient="records") if out is None else None
        said = {"protects": release.design.protects, "promise_about": about or None}
        as_json({"output": output, "rows": len(table), "out": out, **said, "predictions": records})
        return
    if about:
        say_note(f"mean and std are about the typical value at given inputs; what was promised is about {about}.")
    if out is not None:
        say_lines(f"{len(table)} predictions written to {out}")
    elif console().is_terminal:
        _show(table, output)
    else:  # for other programs
        _say_csv(for_spreadsheets(table, "predictions"))


def _say_csv(table: pd.DataFrame) -> None:
    """A table on stdout, which may be a screen after all: what cannot be seen is told."""
    from ..data import with_texts

    seen = with_texts(table, shown).rename(columns=shown)
    if not seen.equals(table):
        say_note("characters that cannot be seen are written as in \\x1b; --out FILE keeps them.")
    say_lines(*seen.to_csv(index=False, float_format="%.10g", lineterminator="\n").rstrip("\n").split("\n"))


def _show(predicted: pd.DataFrame, output: str) -> None:
    table = new_table(f"What a reader concludes of {output}")
    for name in predicted:
        table.add_column(str(name), justify="right", overflow="fold")
    for row in predicted.itertuples(index=False):
        table.add_row(*(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row))
    show_table(table)


def _new_inputs(release: Release, of: str | None, new: Path | None, reading: Reading) -> pd.DataFrame | None:
    """The table of new inputs; None for a quantity that has none."""
    from ..models import OutputsKernel

    rows = release.design.inputs
    number = rows.outputs.number(of, "--of")
    kernel = release.prior.kernel
    if isinstance(kernel, OutputsKernel) and not kernel.takes_input(number):
        if new is not None:
            raise InputError(f"{of!r} is one quantity and has no inputs; leave {new} out.")
        return None
    names = list(rows.sources)
    if new is None:
        raise InputError(
            f"NEW is missing; give a table with the column(s) {', '.join(names)}, where {of or release.output_name!r} "
            "is asked for."
        )
    return reading.table(new, names)
