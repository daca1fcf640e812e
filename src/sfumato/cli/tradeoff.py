"""The command ``sfumato tradeoff``: what each level of protection would cost, before anything is published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from ..files import OWNER_ONLY
from .fitted import fitted_table
from .options import (
    FIGURES,
    TABLES,
    Cover,
    Figure,
    Fit,
    Json,
    Reading,
    Replace,
    Sensitive,
    Table,
    Written,
    check_written,
    flag,
    option,
    save_figure,
)
from .printing import WIDE, as_json, console, new_table, say, say_written, show_table

if TYPE_CHECKING:
    from ..evaluate import Tradeoff


TRADEOFF_EXAMPLES = (
    'sfumato tradeoff orbit.csv --inputs t --output r --region "1 <= t <= 2" --figure tradeoff.png',
    'sfumato tradeoff people.csv --inputs age,place --output income --region "age >= 75" --floors 1000,2000,5000 '
    "--ways joint,dropout --csv levels.csv",
    'sfumato tradeoff orbit.csv --inputs t --output r --region "1 <= t <= 2" --alphas 0.1,0.3,0.5 --json',
)


def tradeoff(
    data: Table,
    sensitive: Sensitive,
    fit: Fit,
    reading: Reading,
    alphas: Annotated[
        str | None,
        option("NUMBERS", "Levels: shares of the prior variance that readers may learn (0.05 to 0.9)."),
    ] = None,
    floors: Annotated[
        str | None,
        option("NUMBERS", "Or: standard deviations that readers keep, in units of the output."),
    ] = None,
    ways: Annotated[
        str | None,
        option(
            "WORDS",
            "Of joint, predictions, function, records, pointwise, diagonal, dropout, cloaking, those to compare (all "
            "that do not take minutes).",
        ),
    ] = None,
    cover: Cover = "auto",
    measured: Annotated[
        bool,
        flag("--measured", "Measure held-out errors on your values too (for the owner only)."),
    ] = False,
    figure: Figure = None,
    csv: Annotated[Path | None, option("FILE", "Write all numbers to this table, .csv or .parquet.")] = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Compare levels of protection: what readers would lose outside the region at each, by several ways."""
    sensitive.check()
    levels = _levels(alphas, floors)
    check_written(Written("--figure", figure, FIGURES), Written("--csv", csv, TABLES), read=[data], replace=replace)
    from ..data import write_table
    from ..evaluate import tradeoff as compare
    from ..show import plot_tradeoff

    X, y, where, prior, fitted = fitted_table(data, sensitive, fit, reading, progress=not json)
    chosen = None if ways is None else [way.strip() for way in ways.split(",") if way.strip()]
    told: dict[str, Any] = {"ways": chosen, "y": y if measured else None, "cover": cover, "progress": not json}
    found = compare(prior, X, where, **levels, **told, output=sensitive.output)
    if figure is not None:
        save_figure(plot_tradeoff(found).figure, figure)
    if csv is not None:
        write_table(found.table(), csv, private=measured)
    if json:
        about = {"owner_only": True} if measured else {}
        as_json({**about, "data": data, "figure": figure, "csv": csv, **found.as_dict()})
        return
    _show(found, measured)
    say(fitted)
    say_written(figure, csv)


def _levels(alphas: str | None, floors: str | None) -> dict[str, Any]:
    """What ``--alphas`` or ``--floors`` says; nothing where neither is given."""
    if alphas is not None and floors is not None:
        raise InputError("--alphas and --floors: both given; choose one, for example --alphas 0.1,0.3,0.5.")
    found: dict[str, Any] = {}
    for name, text in (("alphas", alphas), ("floors", floors)):
        if text is not None:
            try:
                found[name] = [float(part) for part in text.split(",") if part.strip()]
            except ValueError:
                found[name] = []
            if not found[name]:
                raise InputError(
                    f"--{name} is {text!r}; give numbers with commas between them, as in --{name} 0.1,0.3,0.5."
                )
    return found


def _show(found: Tradeoff, measured: bool) -> None:
    from ..evaluate import TRADEOFF_HEADER, WIDE_ONLY, cells, notes, number, title_of

    if measured:
        say(OWNER_ONLY, "bold red")
    table = new_table(title_of(found))
    shown = [place for place, name in enumerate(TRADEOFF_HEADER) if console().width >= WIDE or name not in WIDE_ONLY]
    for place in shown:
        table.add_column(TRADEOFF_HEADER[place], justify="right" if place else "left", overflow="fold")
    if measured:
        table.add_column("measured", justify="right", overflow="fold")
    before = found.everything.way
    for line in (found.everything, *found.rows):
        if line.way != before:
            table.add_section()
            before = line.way
        texts = cells(line)
        extra = [number(line.measured)] if measured else []
        table.add_row(*(texts[place] for place in shown), *extra, style="red" if line.holds is False else None)
    show_table(table)
    for note in notes(found):
        say(note)
