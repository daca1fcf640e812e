"""The commands ``sfumato ledger show`` and ``sfumato ledger verify``: what was published of one secret."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .audit import FIGURES
from .outputs import is_named, read_regions
from .protect import may_write, say_what_is_left
from .speech import Json, as_json, examples, show_warnings_as_notes, speaking

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

LedgerFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A ledger, as made by protect --ledger.", show_default=False)
]


def show(
    file: LedgerFile,
    region: Annotated[
        list[str] | None,
        typer.Option(help='Only promises about this region, as it was promised: "1 <= t <= 2", "v: 1 <= t <= 2".'),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw what each release has used to this file (.png, .pdf, .svg).")
    ] = None,
    json: Json = False,
) -> None:
    """List the releases, and say what they have left of each promise; exit code 1 if one is broken."""
    if figure is not None:
        _check_figure(figure, file)
    ledger = _open(file)
    chain = ledger.verify()
    releases = _releases(ledger, chain)
    left: Remaining | None = None
    with show_warnings_as_notes():
        if releases:
            left = ledger.remaining(_region(ledger, region) if region else None)
    if figure is not None:
        _draw(left, figure)
    if json:
        as_json(
            {
                "ledger": str(file),
                "head": chain.head,
                "torn": chain.torn is not None,
                "releases": releases,
                "remaining": None if left is None else left.as_dict(),
                "figure": None if figure is None else str(figure),
            }
        )
    else:
        _show(file, chain, releases, left)
        if figure is not None:
            typer.echo(f"\nWritten: {figure}")
    if left is not None and not left.holds:
        raise typer.Exit(1)


def verify(
    file: LedgerFile,
    head: Annotated[
        str | None, typer.Option(help="A head that you kept: its line must still be there.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Check every line of a ledger; a changed, cut or foreign file is refused."""
    chain = _open(file).verify(head)
    if json:
        as_json(
            {
                "ledger": str(file),
                "releases": len(chain.entries),
                "head": chain.head,
                "torn": None if chain.torn is None else chain.torn.to_tree(),
                "interrupted_before": len(chain.repaired),
                "has_head": None if head is None else True,
            }
        )
        return
    typer.echo(f"{file}: {len(chain.entries)} release(s), every line as it was written.")
    typer.echo(f"head  {chain.head}")
    if head is None:
        typer.echo("Keep the head elsewhere: without one nobody can tell whether lines at the end were taken away.")
    else:
        typer.echo("The head that you kept is there: nothing that was before it was taken away.")
    _say_torn(chain)


ledger_app.command(epilog=examples(*SHOW_EXAMPLES))(speaking(show))
ledger_app.command(epilog=examples(*VERIFY_EXAMPLES))(speaking(verify))


def _open(file: Path) -> Ledger:
    from ..errors import InputError
    from ..ledger import Ledger

    if not file.is_file():
        raise InputError(
            f"{file} {'is not a file' if file.exists() else 'does not exist'}; give a ledger, as made by "
            "sfumato protect --ledger."
        )
    return Ledger(file)


def _releases(ledger: Ledger, chain: Chain) -> list[dict[str, Any]]:
    """What the table says of each release."""
    from ..ledger import promises_of

    found = []
    for entry, one in zip(chain.entries, ledger.releases, strict=True):
        rows, promised = one.design.inputs, promises_of(one)[0].design
        found.append(
            {
                "number": entry.number,
                "time": entry.body["record"]["when"],
                "outputs": list(rows.published_as(one.name).present),
                "rows": len(rows),
                "noise_a_row": one.design.noise.rms,
                "region": promised.region.in_words(rows.names),
                "promise": one.design.tolerance.in_words(rows.outputs.names),
                "remeasured": one.remeasured,
                "hash": entry.hash,
            }
        )
    return found


@dataclass(frozen=True)
class _Recorded:
    """The outputs that a release in a ledger knows of."""

    names: tuple[str, ...]
    kernel: Any

    def takes_input(self, name: str) -> bool:
        return self.place(name) is None

    def place(self, name: str) -> Any:
        """Where the ledger says that a quantity without inputs is."""
        from ..models import OutputsKernel

        number = self.names.index(name)
        if not isinstance(self.kernel, OutputsKernel) or self.kernel.takes_input(number):
            return None
        return self.kernel.place(number)[None]


def _region(ledger: Ledger, texts: list[str]) -> Any:
    """The region, as the last release speaks of it: for all outputs alike, or for each that is named."""
    from ..regions import Points

    last = ledger.releases[-1]
    outputs = _Recorded(last.outputs, last.design.prior.kernel)
    regions = read_regions(texts, outputs, last.design.inputs.plain.names)
    if not last.design.inputs.outputs.numbered or not any(is_named(text, outputs.names) for text in texts):
        return next(iter(regions.values()))
    return {name: Points(outputs.place(name)) if part is None else part for name, part in regions.items()}


def _show(file: Path, chain: Chain, releases: list[dict[str, Any]], left: Remaining | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    title = f"{file}: {len(releases)} release(s), head {chain.head[:16]}…"
    table = Table(title=title, title_justify="left", title_style="bold", pad_edge=False, box=SIMPLE_HEAD)
    for name in HEADER:
        right = name in ("release", "rows", "noise a row")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "promise")
    for one in releases:
        table.add_row(
            str(one["number"]),
            one["time"],
            ", ".join(one["outputs"]) + (" (measured anew)" if one["remeasured"] else ""),
            str(one["rows"]),
            f"{one['noise_a_row']:.4g}",
            f"{one['region']}\n{one['promise']}",
        )
    console.print(table)
    if left is None:
        typer.echo("Nothing was published yet.")
    else:
        say_what_is_left(left)
    _say_torn(chain)


def _say_torn(chain: Chain) -> None:
    if chain.torn is not None:
        typer.echo(
            f"TORN: {chain.torn.size} bytes of an interrupted write are at the end. They count for nothing: that "
            "release was never given out by sfumato. The next one that is written marks them."
        )


def _draw(left: Remaining | None, figure: Path) -> None:
    from matplotlib.figure import Figure

    from ..errors import InputError

    if left is None:
        raise InputError(f"--figure {figure}: the ledger has no releases yet, so that there is nothing to draw.")
    drawn = left.plot().figure
    assert isinstance(drawn, Figure)
    drawn.savefig(figure, dpi=200)


def _check_figure(figure: Path, ledger: Path) -> None:
    """Refuse, before any work is done, what cannot be written."""
    from ..errors import InputError

    if figure.suffix.lower() not in FIGURES:
        raise InputError(f"--figure {figure} ends in {figure.suffix or 'nothing'!r}; choose {', '.join(FIGURES)}.")
    may_write(figure, ledger)
