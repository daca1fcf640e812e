"""The command ``sfumato report``: a page about a release, for the person who signs off its publication."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from ..errors import InputError
from ..files import OWNER_ONLY
from .command import exit_by
from .options import Accept, Json, LedgerFile, Reading, ReleaseFile, Replace, TruthColumn, check_new, flag, option
from .printing import as_json, say, say_lines
from .releases import open_release, true_values

REPORT_EXAMPLES = (
    "sfumato report orbit.sfumato --out report.html",
    "sfumato report orbit.sfumato --out report.html --ledger orbit.ledger",
    "sfumato report orbit.sfumato --out mine.html --truth orbit.csv --audit --accept prior-beaten",
)


def report(
    release_file: ReleaseFile,
    out: Annotated[Path, option("FILE", "The page to write, .html.")],
    reading: Reading,
    truth: Annotated[
        Path | None,
        option("FILE", "Your table, .csv or .parquet, with the secret values: the page is then for the owner only."),
    ] = None,
    output: TruthColumn = None,
    audit: Annotated[bool, flag("--audit", "With --truth: let adversaries try, and show what they achieve.")] = False,
    ledger: LedgerFile = None,
    accept: Accept = None,
    title: Annotated[str | None, option("TEXT", "The title of the page.")] = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Write a page about a release that can be read, printed and signed; exit code 1 if it must not be published."""
    if truth is None and (audit or output is not None):
        option = "--audit" if audit else "--output"
        raise InputError(f"{option} needs the secret values; give the table with --truth, or leave it out.")
    from ..evaluate import audit as attack
    from ..show import check_page, write_report

    check_page(out, release_file, truth, ledger, argument="--out")
    check_new(f"--out {out}", out.exists(), replace)
    release = open_release(release_file)
    given: dict[str, Any] = {"ledger": ledger, "title": title, "file": release_file, "accept": accept or ()}
    if truth is not None:
        given["truth"] = true_values(release, truth, output, reading)
    if audit:
        given["audit"] = attack(release, given["truth"], progress=not json)
    _, facts = write_report(release, out, **given, progress=not json)
    verdict = facts.certificate.verdict
    if json:
        said = {
            "owner_only": truth is not None,
            "publish": verdict != "do not publish",
            "verdict": verdict,
            "why": facts.why,
        }
        as_json({**said, "release": release_file, "report": out})
    else:
        say_lines(f"Written: {out}")
        if truth is not None:
            say_lines(OWNER_ONLY)
        say(f"{facts.verdict_in_words}. {facts.why}".strip())
    exit_by(verdict)
