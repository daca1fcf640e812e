"""The command ``sfumato report``: a page about a release, for the person who signs off its publication."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .audit import open_release, true_values
from .speech import NOT_GUARANTEED, Json, as_json, show_warnings_as_notes

REPORT_EXAMPLES = (
    "sfumato report orbit.sfumato --out report.html",
    "sfumato report orbit.sfumato --out report.html --ledger orbit.ledger",
    "sfumato report orbit.sfumato --out mine.html --truth orbit.csv --audit",
)


def report(
    release_file: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release file or folder.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The page to write, .html.", show_default=False)],
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Your table, .csv or .parquet, with the secret values: the page is then for the owner only.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[str | None, typer.Option(help="The column with the secret values (else as released).")] = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="With --truth: let adversaries try, and show what they achieve.")
    ] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that accounts for all releases.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    json: Json = False,
) -> None:
    """Write a page about a release that can be read, printed and signed; exit code 1 if it must not be published."""
    from ..errors import InputError
    from ..show import check_page

    if truth is None and (audit or output is not None):
        option = "--audit" if audit else "--output"
        raise InputError(f"{option} needs the secret values; give the table with --truth, or leave it out.")
    check_page(out, release_file, truth, ledger, argument="--out")
    release = open_release(release_file)
    given: dict[str, Any] = {"ledger": ledger, "title": title, "file": release_file}
    from ..show import write_report

    with show_warnings_as_notes():
        if truth is not None:
            given["truth"] = true_values(release, truth, output)
        if audit:
            from ..evaluate import audit as attack

            given["audit"] = attack(release, given["truth"], progress=not json)
        _, verdict = write_report(release, out, **given, progress=not json)
    void = verdict.state == "no"
    if json:
        said = {"publish": not void, "verdict": verdict.title, "why": verdict.why, "owner_only": truth is not None}
        as_json({"release": str(release_file), "report": str(out), **said})
    else:
        typer.echo(f"Written: {out}")
        if truth is not None:
            typer.echo("OWNER ONLY: it contains the truth; do not publish it.")
        typer.echo(f"{verdict.title}. {verdict.why}".strip())
    if void:
        raise typer.Exit(NOT_GUARANTEED)
