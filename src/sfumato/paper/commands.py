"""The commands ``sfumato reproduce`` and ``sfumato data``: the paper's studies and the data they need."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ..cli import Json, OutFolder, Replace, add_command, as_json, check_folder_name, check_new, flag, option, say_lines
from ..errors import InputError

if TYPE_CHECKING:
    from .study import Settings


REPRODUCE_EXAMPLES = (
    "sfumato reproduce example --out figures",
    "sfumato reproduce satellite --settings paper --out figures",
    "sfumato reproduce joint --out figures",
    "sfumato reproduce insiders --out figures",
    "sfumato reproduce all --census csv_ptx.zip --out figures",
)
DATA_EXAMPLES = ("sfumato data census csv_ptx.zip --out census",)


def reproduce(
    what: Annotated[
        str,
        typer.Argument(metavar="WHAT", help="example, satellite, zero-mean, joint, census, insiders, or all of them."),
    ],
    out: OutFolder = Path("reproduced"),
    settings: Annotated[
        str, option("WORD", "paper: what its text says; authors: what its scripts did; both: side by side.")
    ] = "both",
    census: Annotated[
        Path | None, option("FILE", "The Bureau's person file of Texas 2023, .csv or .zip; else other census rows.")
    ] = None,
    quick: Annotated[bool, flag("--quick", "Few draws and rows: a minute, to see that everything runs.")] = False,
    json: Json = False,
) -> None:
    """Compute and draw what the paper shows: its tables, with certificates, and its figures."""
    kinds = {"paper": ("paper",), "authors": ("authors",), "both": ("paper", "authors")}
    if settings not in kinds:
        raise InputError(f"--settings is {settings!r}; choose paper, authors or both.")
    check_folder_name(out)
    from ..progress import progress
    from .reproduce import STUDIES, minutes
    from .reproduce import reproduce as run

    studies = STUDIES if what == "all" else (what,)
    if what != "all" and what not in STUDIES:
        raise InputError(f"{what!r} cannot be reproduced; choose {', '.join(STUDIES)} or all.")
    chosen = cast("tuple[Settings, ...]", kinds[settings])
    if not json:
        about = minutes(studies, chosen, quick)
        say_lines(
            f"This takes about {about:.0f} minutes on two cores." if about > 1 else "This takes a minute.", err=True
        )
    with progress(not json) as step:
        made = run(studies, out, chosen, quick, census, step)
    if json:
        as_json(
            {
                "files": made.files,
                "lines": [asdict(line) for line in made.lines],
                "notes": made.notes,
            }
        )
        return
    for path in made.files:
        if path.suffix == ".md":
            say_lines(*path.read_text(encoding="utf-8").split("\n"))
    say_lines(*made.notes)
    say_lines(f"Written to {out}/: {len(made.files)} files.")


def prepare_data(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="census: the rows of the paper's study.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Bureau's person file, .csv or .zip.")],
    out: Annotated[Path, option("FOLDER", "The folder to write train.csv and test.csv to.")] = Path("census"),
    replace: Replace = False,
    json: Json = False,
) -> None:
    """Read a public data set and write the rows that the paper used."""
    if what != "census":
        raise InputError(f"{what!r} is no data set that sfumato knows; choose census.")
    check_folder_name(out)
    for name in ("train.csv", "test.csv"):
        check_new(str(out / name), (out / name).exists(), replace)
    from ..data import write_table
    from .census_data import inside, paper_split, read_pums

    rows = paper_split(read_pums(file))
    out.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name, table, incomes in (("train", rows.train, rows.train_y), ("test", rows.test, rows.test_y)):
        write_table(table.assign(PINCP=incomes), out / f"{name}.csv")
        counts[name] = {"rows": len(table), "sensitive": int(inside(table, rows.bounds).sum())}
    if json:
        as_json({"source": rows.source, **counts, "out": out})
        return
    for name, count in counts.items():
        say_lines(f"{out}/{name}.csv: {count['rows']} rows, {count['sensitive']} of them sensitive; PINCP in 100 000 $")


def add_commands(app: typer.Typer) -> None:
    """Give ``app`` the commands ``reproduce`` and ``data``."""
    add_command(app, reproduce, REPRODUCE_EXAMPLES)
    add_command(app, prepare_data, DATA_EXAMPLES, name="data")
