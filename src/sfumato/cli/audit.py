"""The command ``sfumato audit``: what adversaries achieve against a release, for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..files import OWNER_ONLY
from .command import exit_by
from .options import (
    FIGURES,
    Accept,
    Figure,
    Json,
    Reading,
    ReleaseFile,
    Replace,
    TruthColumn,
    Written,
    check_written,
    option,
    save_figure,
)
from .printing import as_json, new_table, say, say_lines, say_written, show_table, show_verdict
from .releases import open_release, true_values

if TYPE_CHECKING:
    from ..evaluate import Audit

AUDIT_EXAMPLES = (
    "sfumato audit orbit.sfumato --truth orbit.csv",
    "sfumato audit people.sfumato --truth people.parquet --grid 100 --figure audit.png",
    "sfumato audit orbit.sfumato --truth orbit.csv --with older.sfumato --json",
    "sfumato audit orbit.sfumato --truth orbit.csv --accept prior-beaten",
)


def audit(
    release_file: ReleaseFile,
    truth: Annotated[
        Path,
        option("FILE", "Your table, .csv or .parquet, with the release's inputs and the secret values."),
    ],
    reading: Reading,
    output: TruthColumn = None,
    grid: Annotated[float | None, option("NUMBER", "The step that the secret values are multiples of.")] = None,
    draws: Annotated[int, option("NUMBER", "How many releases of the same values are averaged.")] = 20,
    others: Annotated[
        list[Path] | None,
        option("RELEASE", "Another release of the same values that was published; repeat it for more.", "--with"),
    ] = None,
    accept: Accept = None,
    figure: Figure = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Attack a release with all that is known and compare with the truth; exit code 1 if it must not be published."""
    check_written(Written("--figure", figure, FIGURES), read=[release_file, truth], replace=replace)
    from ..evaluate import audit as attack
    from ..show import plot_audit

    release = open_release(release_file)
    y = true_values(release, truth, output, reading)
    more = [open_release(path) for path in others or []]
    found = attack(release, y, draws=draws, grid=grid, others=more, accept=accept or (), progress=not json)
    if figure is not None:
        save_figure(plot_audit(found), figure, private=True)
    if json:
        say_lines(OWNER_ONLY, err=True)
        as_json({"owner_only": True, "release": release_file, "truth": truth, **found.as_dict()})
    else:
        _show_audit(found, f"{release_file}, attacked: errors in multiples of the floor")
        say_written(figure)
    exit_by(found.verdict)


def _show_audit(found: Audit, title: str) -> None:
    from ..evaluate import AUDIT_HEADER

    table = new_table(title)
    say(OWNER_ONLY, "bold red")
    for number, name in enumerate(AUDIT_HEADER):
        table.add_column(name, justify="right" if 2 <= number <= 5 else "left", no_wrap=True)
    for outcome, row in zip(found.outcomes, found.rows(), strict=True):
        style = "red" if outcome.covered and outcome.beaten else "yellow" if outcome.below else None
        table.add_row(*row, style=style)
    show_table(table)
    for outcome in found.outcomes:
        if outcome.below:
            say(f"- {outcome.name}: {outcome.words}")
    for words in () if found.records is None else found.records.words:
        say(f"- {words}")
    for skipped in found.skipped:
        say(f"- not tried: {skipped.name}, because {skipped.why}")
    say(found.sentence, "bold" if found.holds else "bold red")
    for one in found.findings:
        say(f"- {one.label}: {one} ({one.code})")
    show_verdict(found.certificate)
