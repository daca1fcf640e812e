"""The commands about a release that is there: ``predict``, ``certify``, ``report`` and ``audit``."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import FormatError, InputError
from .command import DO_NOT_PUBLISH, exit_by
from .options import (
    FIGURES,
    TABLES,
    DropMissing,
    Figure,
    Json,
    LedgerFile,
    ReleaseFile,
    TruthColumn,
    Written,
    check_written,
    flag,
    option,
    save_figure,
)
from .printing import as_json, console, new_table, say_written, show_certificate

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import Array
    from ..evaluate import Audit
    from ..release import Release


PREDICT_EXAMPLES = (
    "sfumato predict orbit.sfumato new.csv",
    "sfumato predict orbit.sfumato new.csv --out predicted.csv",
    "sfumato predict orbit.sfumato new.csv --of v",
)


def predict(
    release_file: ReleaseFile,
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
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """What a reader concludes at new inputs: mean and standard deviation."""
    check_written(Written("--out", out, TABLES), read=[release_file, new])
    import pandas as pd

    from ..data import write_table

    release = open_release(release_file)
    X = _new_inputs(release, of, new, drop_missing)
    seen = release.predict(X, output=of)
    output = of or release.output_name
    # inputs may be called anything, also mean or std
    prefix = f"{output}_" if X is not None and {"mean", "std"} & set(X.columns) else ""
    found = {f"{prefix}mean": seen.mean, f"{prefix}std": seen.std}
    table = pd.DataFrame(found) if X is None else X.assign(**found)
    if out is not None:
        write_table(table, out)
    if json:
        records = table.to_dict(orient="records") if out is None else None
        as_json({"output": output, "rows": len(table), "out": out, "predictions": records})
    elif out is not None:
        typer.echo(f"{len(table)} predictions written to {out}")
    else:
        typer.echo(table.to_csv(index=False, float_format="%.10g"), nl=False)


def _new_inputs(release: Release, of: str | None, new: Path | None, drop_missing: bool) -> pd.DataFrame | None:
    """The table of new inputs; None for a quantity that has none."""
    from ..data import read_table, select_numbers
    from ..models import OutputsKernel

    rows = release.design.inputs
    number = rows.outputs.number(of, "--of")
    kernel = release.prior.kernel
    if isinstance(kernel, OutputsKernel) and not kernel.takes_input(number):
        if new is not None:
            raise InputError(f"{of!r} is one quantity and has no inputs; leave {new} out.")
        return None
    names = list(rows.plain.names)
    if new is None:
        raise InputError(
            f"NEW is missing; give a table with the column(s) {', '.join(names)}, where {of or release.output_name!r} "
            "is asked for."
        )
    return select_numbers(read_table(new), names, new, drop_missing)


CERTIFY_EXAMPLES = ("sfumato certify orbit.sfumato", "sfumato certify orbit.sfumato --json")


def certify(release_file: ReleaseFile, json: Json = False) -> None:
    """Compute the certificate again from the file alone; exit code 1 if it says: do not publish."""
    release = open_release(release_file)
    certificate = release.certify(progress=not json)
    if json:
        found = {"release": release_file, "holds": certificate.holds, "unsafe": release.unsafe}
        as_json({**found, "certificate": certificate.as_dict()})
    else:
        show_certificate(certificate, f"{release_file}, computed again")
    exit_by(certificate.verdict)


REPORT_EXAMPLES = (
    "sfumato report orbit.sfumato --out report.html",
    "sfumato report orbit.sfumato --out report.html --ledger orbit.ledger",
    "sfumato report orbit.sfumato --out mine.html --truth orbit.csv --audit",
)


def report(
    release_file: ReleaseFile,
    out: Annotated[Path, option("FILE", "The page to write, .html.")],
    truth: Annotated[
        Path | None,
        option("FILE", "Your table, .csv or .parquet, with the secret values: the page is then for the owner only."),
    ] = None,
    output: TruthColumn = None,
    audit: Annotated[bool, flag("--audit", "With --truth: let adversaries try, and show what they achieve.")] = False,
    ledger: LedgerFile = None,
    title: Annotated[str | None, option("TEXT", "The title of the page.")] = None,
    json: Json = False,
) -> None:
    """Write a page about a release that can be read, printed and signed; exit code 1 if it must not be published."""
    if truth is None and (audit or output is not None):
        option = "--audit" if audit else "--output"
        raise InputError(f"{option} needs the secret values; give the table with --truth, or leave it out.")
    from ..evaluate import audit as attack
    from ..show import check_page, write_report

    check_page(out, release_file, truth, ledger, argument="--out")
    release = open_release(release_file)
    given: dict[str, Any] = {"ledger": ledger, "title": title, "file": release_file}
    if truth is not None:
        given["truth"] = true_values(release, truth, output)
    if audit:
        given["audit"] = attack(release, given["truth"], progress=not json)
    _, facts = write_report(release, out, **given, progress=not json)
    verdict = facts.certificate.verdict
    if json:
        said = {
            "publish": verdict != "do not publish",
            "verdict": verdict,
            "why": facts.why,
            "owner_only": truth is not None,
        }
        as_json({"release": release_file, "report": out, **said})
    else:
        typer.echo(f"Written: {out}")
        if truth is not None:
            typer.echo("OWNER ONLY: it contains the truth; do not publish it.")
        typer.echo(f"{facts.verdict_in_words}. {facts.why}".strip())
    exit_by(verdict)


AUDIT_EXAMPLES = (
    "sfumato audit orbit.sfumato --truth orbit.csv",
    "sfumato audit people.sfumato --truth people.parquet --grid 100 --figure audit.png",
    "sfumato audit orbit.sfumato --truth orbit.csv --with older.sfumato --json",
)


def audit(
    release_file: ReleaseFile,
    truth: Annotated[
        Path,
        option("FILE", "Your table, .csv or .parquet, with the release's inputs and the secret values."),
    ],
    output: TruthColumn = None,
    grid: Annotated[float | None, option("NUMBER", "The step that the secret values are multiples of.")] = None,
    draws: Annotated[int, option("NUMBER", "How many releases of the same values are averaged.")] = 20,
    others: Annotated[
        list[Path] | None,
        option("RELEASE", "Another release of the same values that was published; repeat it for more.", "--with"),
    ] = None,
    figure: Figure = None,
    json: Json = False,
) -> None:
    """Attack a release with all that is known and compare with the truth; exit code 1 if the promise is broken."""
    check_written(Written("--figure", figure, FIGURES), read=[release_file, truth])
    from ..evaluate import OWNER_ONLY
    from ..evaluate import audit as attack
    from ..show import plot_audit

    release = open_release(release_file)
    y = true_values(release, truth, output)
    more = [open_release(path) for path in others or []]
    found = attack(release, y, draws=draws, grid=grid, others=more, progress=not json)
    if figure is not None:
        save_figure(plot_audit(found), figure)
    if json:
        typer.echo(OWNER_ONLY, err=True)
        as_json({"release": release_file, "truth": truth, **found.as_dict()})
    else:
        _show_audit(found, f"{release_file}, attacked: errors in multiples of the floor")
        say_written(figure)
    if not found.holds:
        raise typer.Exit(DO_NOT_PUBLISH)


def _show_audit(found: Audit, title: str) -> None:
    from ..evaluate import AUDIT_HEADER, OWNER_ONLY

    screen, table = console(), new_table(title)
    screen.print(OWNER_ONLY, style="bold red")
    for number, name in enumerate(AUDIT_HEADER):
        table.add_column(name, justify="right" if 2 <= number <= 5 else "left", no_wrap=True)
    for outcome, row in zip(found.outcomes, found.rows(), strict=True):
        style = "red" if outcome.covered and outcome.beaten else "yellow" if outcome.below else None
        table.add_row(*row, style=style)
    screen.print(table)
    for outcome in found.outcomes:
        if outcome.below:
            screen.print(f"- {outcome.name}: {outcome.words}")
    for skipped in found.skipped:
        screen.print(f"- not tried: {skipped.name}, because {skipped.why}")
    screen.print(found.verdict, style=f"bold {'green' if found.holds else 'red'}")


def open_release(path: Path) -> Release:
    """The release in a file or a folder."""
    from ..release import load

    if not (path.is_file() or (path / "release.sfumato").is_file()):
        raise InputError(
            f"{path} {'is not a release' if path.exists() else 'does not exist'}; give a release file, or the "
            "folder of a release that is complete."
        )
    try:
        return load(path)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error


def true_values(release: Release, truth: Path, output: str | None) -> Array:
    """The secret values from a table, in the order of the release's rows, matched by their inputs.

    Where inputs are repeated, their values are taken in the order of the file.
    """
    import numpy as np

    from ..data import read_table, select_numbers

    rows = release.design.inputs
    if rows.outputs.numbered and output is not None:
        raise InputError(
            f"--output is {output!r}, but the release is about {', '.join(rows.present)}; give a table with a "
            "column for each of them, and leave --output out."
        )
    asked = {output or name: rows.rows_about(name) for name in rows.present}
    names = list(rows.plain.names)
    table = select_numbers(read_table(truth), [*names, *asked], truth)
    if not rows.outputs.numbered and len(table) != len(rows):
        raise InputError(
            f"--truth {truth} has {len(table)} rows, but the release has {len(rows)}; give the table that was "
            "protected."
        )
    found = np.empty(len(rows))
    for column, own in asked.items():
        values: dict[bytes, list[float]] = defaultdict(list)
        # + 0.0 turns −0 into 0: they are the same input
        for row, value in zip(table[names].to_numpy() + 0.0, table[column], strict=True):
            values[row.tobytes()].append(float(value))
        for number, row in zip(own, np.ascontiguousarray(rows.plain.values[own]) + 0.0, strict=True):
            left = values[row.tobytes()]
            if not left:
                place = ", ".join(f"{name} = {value!r}" for name, value in zip(names, row.tolist(), strict=True))
                raise InputError(
                    f"--truth {truth} has no row for {place} (row {number + 1} of the release); inputs must be exactly "
                    "those that were released: give the table that was protected."
                )
            found[number] = left.pop(0)
    return found
