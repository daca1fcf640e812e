"""The command ``sfumato tradeoff``: what each level of protection would cost, before anything is published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .audit import FIGURES
from .protect import DropMissing, may_write, number_or_word
from .speech import Json, as_json, show_warnings_as_notes

if TYPE_CHECKING:
    from ..evaluate import Tradeoff


TRADEOFF_EXAMPLES = (
    'sfumato tradeoff orbit.csv --inputs t --output r --region "1 <= t <= 2" --fit-outside --figure tradeoff.png',
    'sfumato tradeoff people.csv --inputs age,place --output income --region "age >= 75" --floors 1000,2000,5000 '
    "--ways joint,dropout --csv levels.csv",
    'sfumato tradeoff orbit.csv --inputs t --output r --region "1 <= t <= 2" --alphas 0.1,0.3,0.5 --json',
)

#: Letters that a screen must have for all columns of the table.
WIDE = 100


def tradeoff(
    data: Annotated[
        Path, typer.Argument(help="Your table, .csv or .parquet, with the secret values.", show_default=False)
    ],
    inputs: Annotated[list[str], typer.Option(help="Input columns, comma separated or repeated.", show_default=False)],
    output: Annotated[str, typer.Option(help="The output column.", show_default=False)],
    region: Annotated[str, typer.Option(help='Where it is sensitive, e.g. "1 <= t <= 2".', show_default=False)],
    alphas: Annotated[
        str | None, typer.Option(help="Levels: fractions of the prior variance that readers may learn (0.05 to 0.9).")
    ] = None,
    floors: Annotated[
        str | None, typer.Option(help="Or: standard deviations that readers keep, in units of the output.")
    ] = None,
    ways: Annotated[
        str, typer.Option(help="Of joint, pointwise, diagonal, dropout, cloaking, those to compare.")
    ] = "joint,pointwise,diagonal,dropout,cloaking",
    kernel: Annotated[str, typer.Option(help="rbf, matern12, matern32 or matern52.")] = "rbf",
    lengthscale: Annotated[float | None, typer.Option(help="Fix the lengthscale instead of learning it.")] = None,
    mean: Annotated[str, typer.Option(help="constant, zero or a number.")] = "constant",
    noise: Annotated[str, typer.Option(help="Noise variance in your data: learn, or a number.")] = "learn",
    fit_outside: Annotated[
        bool, typer.Option("--fit-outside", help="Fit the prior on rows outside the region only.")
    ] = False,
    cover: Annotated[str, typer.Option(help="auto, greedy, exchange or rows.")] = "auto",
    measured: Annotated[
        bool, typer.Option("--measured", help="Measure held-out errors on your values too (for the owner only).")
    ] = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the result to this file (.png, .pdf, .svg).")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all numbers to this table (.csv or .parquet).")] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """Compare levels of protection: what readers would lose outside the region at each, by several ways."""
    from ..errors import InputError

    columns = [name.strip() for entry in inputs for name in entry.split(",") if name.strip()]
    if not columns:
        raise InputError("--inputs names no column; give at least one, for example --inputs t.")
    if output in columns:
        raise InputError(f"--output {output!r} is also one of --inputs; inputs are published as they are.")
    if alphas is not None and floors is not None:
        raise InputError("--alphas and --floors: both given; choose one, for example --alphas 0.1,0.3,0.5.")
    levels: dict[str, Any] = {}
    if floors is not None:
        levels["floors"] = _numbers("--floors", floors)
    elif alphas is not None:
        levels["alphas"] = _numbers("--alphas", alphas)
    chosen = [way.strip() for way in ways.split(",") if way.strip()]
    _check_places(data, figure, csv)
    from dataclasses import replace

    from ..data import read_table, select_numbers, write_table
    from ..evaluate import tradeoff as compare
    from ..models import fit_prior
    from ..regions import parse_region

    table = select_numbers(read_table(data), [*columns, output], data, drop_missing)
    where = parse_region(region, columns)
    X, y = table[columns], table[output]
    with show_warnings_as_notes():
        prior = fit_prior(
            X,
            y,
            exclude=where if fit_outside else None,
            kernel=kernel,
            mean=number_or_word(mean),
            lengthscale=lengthscale,
            noise=number_or_word(noise),
            progress=not json,
        )
        told: dict[str, Any] = {"ways": chosen, "y": y if measured else None, "cover": cover, "progress": not json}
        found = replace(compare(prior, X, where, **levels, **told), output=output)
    if figure is not None:
        from ..show import plot_tradeoff

        drawn: Any = plot_tradeoff(found).figure
        drawn.savefig(figure, dpi=200)
    if csv is not None:
        write_table(found.table(), csv)
    if json:
        as_json({"data": str(data), "figure": _said(figure), "csv": _said(csv), **found.as_dict()})
        return
    _show(found, measured)
    written = [str(path) for path in (figure, csv) if path is not None]
    if written:
        typer.echo(f"\nWritten: {' and '.join(written)}")


def _show(found: Tradeoff, measured: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from ..evaluate import TRADEOFF_HEADER, WIDE_ONLY, cells, notes, number

    console = Console(highlight=False)
    if measured:
        console.print("[bold red]OWNER ONLY: the measured errors use the secret values; do not publish them.[/]")
    title = f"What readers of {found.output} lose where {found.region} is protected"
    table = Table(
        title=title, title_justify="left", title_style="bold", pad_edge=False, box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    shown = [place for place, name in enumerate(TRADEOFF_HEADER) if console.width >= WIDE or name not in WIDE_ONLY]
    for place in shown:
        table.add_column(TRADEOFF_HEADER[place], justify="right" if place else "left", no_wrap=True)
    if measured:
        table.add_column("measured", justify="right", no_wrap=True)
    before = found.everything.way
    for line in (found.everything, *found.rows):
        if line.way != before:
            table.add_section()
            before = line.way
        texts = cells(line)
        extra = [number(line.measured)] if measured else []
        table.add_row(*(texts[place] for place in shown), *extra, style="red" if line.holds is False else None)
    console.print(table)
    for note in notes(found):
        console.print(note, markup=False)


def _numbers(option: str, text: str) -> list[float]:
    from ..errors import InputError

    try:
        found = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise InputError(f"{option} is {text!r}; give numbers with commas between them, as in {option} 0.1,0.3,0.5.")
    return found


def _check_places(data: Path, figure: Path | None, csv: Path | None) -> None:
    """Refuse, before any work is done, what cannot be written."""
    from ..errors import InputError

    if figure is not None and figure.suffix.lower() not in FIGURES:
        raise InputError(f"--figure {figure} ends in {figure.suffix or 'nothing'!r}; choose {', '.join(FIGURES)}.")
    for path in (figure, csv):
        if path is not None:
            may_write(path, data)
    if csv is not None:
        from ..data import CSV, PARQUET

        if csv.suffix.lower() not in CSV + PARQUET:
            raise InputError(f"--csv {csv} ends in {csv.suffix or 'nothing'!r}; tables are .csv or .parquet files.")


def _said(path: Path | None) -> str | None:
    return None if path is None else str(path)
