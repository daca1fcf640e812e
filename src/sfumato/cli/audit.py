"""The command ``sfumato audit``: what adversaries would achieve against a release, for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .speech import NOT_GUARANTEED, Json, as_json, show_warnings_as_notes

if TYPE_CHECKING:
    from ..arrays import Array
    from ..evaluate import Audit
    from ..release import Release


AUDIT_EXAMPLES = (
    "sfumato audit orbit.sfumato --truth orbit.csv",
    "sfumato audit people.sfumato --truth people.parquet --grid 100 --figure audit.png",
    "sfumato audit orbit.sfumato --truth orbit.csv --with older.sfumato --json",
)

FIGURES = (".png", ".pdf", ".svg")


def audit(
    release_file: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release file or folder.", show_default=False)
    ],
    truth: Annotated[
        Path,
        typer.Option(
            help="Your table, .csv or .parquet, with the release's inputs and the secret values.", show_default=False
        ),
    ],
    output: Annotated[str | None, typer.Option(help="The column with the secret values (else as released).")] = None,
    grid: Annotated[float | None, typer.Option(help="The step that the secret values are multiples of.")] = None,
    draws: Annotated[int, typer.Option(help="How many releases of the same values are averaged.")] = 20,
    others: Annotated[
        list[Path] | None,
        typer.Option("--with", help="Another release of the same values that is out; repeat it for more."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the result to this file (.png, .pdf, .svg).")] = None,
    json: Json = False,
) -> None:
    """Attack a release with all that is known and compare with the truth; exit code 1 if the promise is broken."""
    _check_figure(figure)
    from ..evaluate import OWNER_ONLY
    from ..evaluate import audit as attack

    release = open_release(release_file)
    y = true_values(release, truth, output)
    more = [open_release(path) for path in others or []]
    with show_warnings_as_notes():
        found = attack(release, y, draws=draws, grid=grid, others=more, progress=not json)
    if figure is not None:
        from ..show import plot_audit

        plot_audit(found).savefig(figure, dpi=200)
    if json:
        typer.echo(OWNER_ONLY, err=True)
        as_json({"release": str(release_file), "truth": str(truth), **found.as_dict()})
    else:
        _show(
            found,
            f"{release_file}, attacked: errors in multiples of the floor",
            figure,
        )
    if not found.holds:
        raise typer.Exit(NOT_GUARANTEED)


def true_values(release: Release, truth: Path, output: str | None) -> Array:
    """The secret values from a table, each put to the row of the release that has the same inputs.

    Where inputs are repeated, their values are taken in the order of the file.
    """
    from collections import defaultdict

    import numpy as np

    from ..data import read_table, select_numbers
    from ..errors import InputError

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


def _show(found: Audit, title: str, figure: Path | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from ..evaluate import AUDIT_HEADER, OWNER_ONLY

    console = Console(highlight=False)
    console.print(f"[bold red]{OWNER_ONLY}[/]")
    table = Table(
        title=title, title_justify="left", title_style="bold", pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for number, name in enumerate(AUDIT_HEADER):
        table.add_column(name, justify="right" if 2 <= number <= 5 else "left", no_wrap=True)
    for outcome, row in zip(found.outcomes, found.rows(), strict=True):
        style = "red" if outcome.covered and outcome.beaten else "yellow" if outcome.below else None
        table.add_row(*row, style=style)
    console.print(table)
    for outcome in found.outcomes:
        if outcome.below:
            console.print(f"- [bold]{outcome.name}[/]: {outcome.words}", markup=True)
    for skipped in found.skipped:
        console.print(f"- not tried: {skipped.name}, because {skipped.why}")
    console.print(f"[bold {'green' if found.holds else 'red'}]{found.verdict}[/]")
    if figure is not None:
        typer.echo(f"\nWritten: {figure}")


def _check_figure(figure: Path | None) -> None:
    """Refuse, before any work is done, what cannot be written."""
    from ..errors import InputError

    if figure is None:
        return
    if figure.suffix.lower() not in FIGURES:
        raise InputError(f"--figure {figure} ends in {figure.suffix or 'nothing'!r}; choose {', '.join(FIGURES)}.")
    if figure.is_dir() or not figure.parent.is_dir():
        raise InputError(
            f"--figure {figure} cannot be written: its folder does not exist, or it is one; make it first."
        )


def open_release(path: Path) -> Release:
    """The release in a file or a folder."""
    from ..errors import InputError
    from ..release import load

    if not (path.is_file() or (path / "release.sfumato").is_file()):
        raise InputError(
            f"{path} {'is not a release' if path.exists() else 'does not exist'}; give a release file, or the "
            "folder of a release that is complete."
        )
    return load(path)
