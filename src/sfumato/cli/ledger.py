"""The commands ``sfumato ledger show`` and ``sfumato ledger verify``: what was published of one secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..text import counted
from .command import DO_NOT_PUBLISH, add_command
from .options import FIGURES, Figure, Json, Replace, Written, check_written, option, save_figure
from .outputs import is_named, read_regions
from .printing import as_json, new_table, say, say_lines, say_what_is_left, say_written, show_table

if TYPE_CHECKING:
    from ..ledger import Chain, Ledger, Remaining


SHOW_EXAMPLES = (
    "sfumato ledger show orbit.ledger",
    'sfumato ledger show orbit.ledger --region "1 <= t <= 2" --figure left.png',
)
VERIFY_EXAMPLES = (
    "sfumato ledger verify orbit.ledger",
    "sfumato ledger verify orbit.ledger --head 3f0c…  (64 digits that you kept)",
)

#: The columns of the table.
HEADER = ("release", "time", "outputs", "rows", "noise a row", "promise")

ledger_app = typer.Typer(
    name="ledger",
    help="What was published of one secret, and what is left of its promises.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

LedgerFile = Annotated[Path, typer.Argument(metavar="FILE", help="A ledger, as made by protect --ledger.")]


def show(
    file: LedgerFile,
    region: Annotated[
        list[str] | None,
        option("TEXT", 'Only promises about this region, as it was promised: "1 <= t <= 2", "v: 1 <= t <= 2".'),
    ] = None,
    figure: Figure = None,
    replace: Replace = False,
    json: Json = False,
) -> None:
    """List the releases, and say what they have left of each promise; exit code 1 if one is broken."""
    check_written(Written("--figure", figure, FIGURES), read=[file], replace=replace)
    ledger = _open(file)
    chain = ledger.verify()
    releases = _releases(ledger, chain)
    left = ledger.remaining(_region(ledger, region) if region else None) if releases else None
    if figure is not None:
        if left is None:
            raise InputError(f"--figure {figure}: the ledger has no releases yet, so that there is nothing to draw.")
        save_figure(left.plot().figure, figure)
    if json:
        as_json(
            {
                "ledger": file,
                "head": chain.head,
                "torn": chain.torn is not None,
                "remarks": list(chain.remarks),
                "releases": releases,
                "remaining": None if left is None else left.as_dict(),
                "figure": figure,
            }
        )
    else:
        _show(file, chain, releases, left)
        say_written(figure)
    if left is not None and not left.holds:
        raise typer.Exit(DO_NOT_PUBLISH)


def verify(
    file: LedgerFile,
    head: Annotated[str | None, option("DIGITS", "A head that you kept: its line must still be there.")] = None,
    json: Json = False,
) -> None:
    """Check every line of a ledger; a changed, cut or foreign file is refused."""
    chain = _open(file).verify(head)
    if json:
        as_json(
            {
                "ledger": file,
                "releases": len(chain.entries),
                "head": chain.head,
                "torn": None if chain.torn is None else chain.torn.to_tree(),
                "remarks": list(chain.remarks),
                "interrupted_before": len(chain.repaired),
                "has_head": None if head is None else True,
            }
        )
        return
    say_lines(
        f"{file}: {counted(len(chain.entries), 'release')}, every entry as it was written.", f"head  {chain.head}"
    )
    if head is None:
        say("Keep the head elsewhere: without one nobody can tell whether lines at the end were taken away.")
    else:
        say_lines("The head that you kept is there: nothing that was before it was taken away.")
    _say_remarks(chain)


add_command(ledger_app, show, SHOW_EXAMPLES)
add_command(ledger_app, verify, VERIFY_EXAMPLES)


def _open(file: Path) -> Ledger:
    from ..ledger import Ledger

    if not file.is_file():
        raise InputError(
            f"{file} {'is not a file' if file.exists() else 'does not exist'}; give a ledger, as made by "
            "sfumato protect --ledger."
        )
    return Ledger(file)


def _releases(ledger: Ledger, chain: Chain) -> list[dict[str, Any]]:
    """What the table says of each release; its noise is the change of its rows, where some of it is suppressed."""
    import numpy as np

    from ..ledger import promises_of
    from ..proof import changes_of

    found = []
    for entry, one in zip(chain.entries, ledger.releases, strict=True):
        rows, promised = one.design.inputs, promises_of(one, 0)[0].design
        found.append(
            {
                "number": entry.number,
                "time": entry.body["record"]["when"],
                "outputs": rows.published_as(one.name).present,
                "rows": len(rows),
                "noise_a_row": float(np.sqrt(np.mean(changes_of(one.design)))),
                "region": promised.region.in_words(rows.names),
                "promise": one.design.tolerance.in_words(rows.outputs.names),
                "protects": one.design.protects,
                "remeasured": one.remeasured,
                "hash": entry.hash,
            }
        )
    return found


def _region(ledger: Ledger, texts: list[str]) -> Any:
    """The region with the columns of the last release: for all outputs alike, or for each that is named."""
    from ..models import OutputsKernel
    from ..regions import Points

    last = ledger.releases[-1]
    kernel, rows = last.design.prior.kernel, last.design.inputs
    related = isinstance(kernel, OutputsKernel)
    takes_input = {name: not related or kernel.takes_input(number) for number, name in enumerate(last.outputs)}
    regions = read_regions(texts, takes_input, rows.sources)
    if not rows.outputs.numbered or not any(is_named(text, takes_input) for text in texts):
        return next(iter(regions.values()))
    # a quantity without inputs stands at a place of its own in the ledger
    own = {name: kernel.place(number)[None] for number, name in enumerate(last.outputs) if not takes_input[name]}
    return {name: Points(own[name]) if part is None else part for name, part in regions.items()}


def _show(file: Path, chain: Chain, releases: list[dict[str, Any]], left: Remaining | None) -> None:
    from rich.console import Group

    table = new_table(f"{file}: {counted(len(releases), 'release')}, head {chain.head[:16]}…")
    for name in HEADER:
        right = name in ("release", "rows", "noise a row")
        # a long name takes more lines, and no room from the other columns
        whole = name not in ("outputs", "promise")
        table.add_column(name, justify="right" if right else "left", no_wrap=whole, overflow="fold")
    for one in releases:
        table.add_row(
            str(one["number"]),
            one["time"],
            ", ".join(one["outputs"]) + (" (measured anew)" if one["remeasured"] else ""),
            str(one["rows"]),
            f"{one['noise_a_row']:.4g}",
            Group(one["region"], f"{one['promise']} (protects {one['protects']})"),
        )
    show_table(table)
    if left is None:
        say_lines("Nothing was published yet.")
    else:
        say_what_is_left(left)
    _say_remarks(chain)


def _say_remarks(chain: Chain) -> None:
    for remark in chain.remarks:
        say(remark)
