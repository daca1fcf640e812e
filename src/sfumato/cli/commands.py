"""The command ``sfumato``: demo, protect, predict, certify, report, audit, tradeoff, ledger, reproduce, data.

Exit codes: 0 done; 1 the guarantee does not hold, or a ledger has nothing left; 2 wrong use. PyTorch is imported
inside the commands, so that ``sfumato --help`` answers at once.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..version import __version__
from .audit import AUDIT_EXAMPLES, audit, open_release
from .ledger import ledger_app
from .protect import PROTECT_EXAMPLES, DropMissing, may_write, protect
from .report import REPORT_EXAMPLES, report
from .speech import Json, as_json, examples, show_certificate, show_warnings_as_notes, speaking
from .tradeoff import TRADEOFF_EXAMPLES, tradeoff

if TYPE_CHECKING:
    import pandas as pd

    from ..release import Release


app = typer.Typer(
    name="sfumato",
    help="Publish data with exactly the noise that a privacy promise needs, and a proof that it is kept.",
    epilog="Try first:  sfumato demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"sfumato {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog=examples("sfumato demo", "sfumato demo --out orbit"))
@speaking
def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo"),
    json: Json = False,
) -> None:
    """Hide a satellite's second orbit: simulate, protect, prove, draw."""
    from .demo import run_demo

    with show_warnings_as_notes():
        made = run_demo(out, show_progress=not json)
    certificate = made.release.certificate
    if json:
        as_json({"files": [str(path) for path in made.files], "certificate": certificate.as_dict()})
        return
    show_certificate(
        certificate, f"The radius of a satellite, hidden where {made.release.region.in_words(made.release.columns)}"
    )
    typer.echo(f"\nWritten to {out}/:")
    for path, what in zip(
        made.files,
        (
            "the owner's data, secret",
            "the release: all that readers need",
            "published data",
            "the picture",
            "new times",
            "the report, to be read and signed",
        ),
        strict=True,
    ):
        typer.echo(f"  {path.name:<14} {what}")
    name = _own_name()
    typer.echo("\nTry next:")
    typer.echo(f"  {name} certify {out}/orbit.sfumato")
    typer.echo("      checks the promise again, from the file alone")
    typer.echo(f"  {name} predict {out}/orbit.sfumato {out}/new.csv")
    typer.echo("      says what a reader concludes at new times")
    typer.echo(f'  {name} protect {out}/truth.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 \\')
    typer.echo(f"      --lengthscale 0.05 --noise 0 --fit-outside --out {out}/mine.sfumato")
    typer.echo("      does the same from a table; put your own in its place")


app.command(epilog=examples(*PROTECT_EXAMPLES))(speaking(protect))


@app.command(
    epilog=examples(
        "sfumato predict orbit.sfumato new.csv",
        "sfumato predict orbit.sfumato new.csv --out predicted.csv",
        "sfumato predict orbit.sfumato new.csv --of v",
    )
)
@speaking
def predict(
    release_file: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release file or folder.", show_default=False)
    ],
    new: Annotated[
        Path | None,
        typer.Argument(
            help="A table, .csv or .parquet, with the input columns; none for a quantity without inputs.",
            show_default=False,
        ),
    ] = None,
    of: Annotated[str | None, typer.Option(help="Of several outputs, released or not, the one that is asked for.")] = (
        None
    ),
    out: Annotated[
        Path | None, typer.Option(help="Write the predictions here (.csv or .parquet), not to the screen.")
    ] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """What a reader concludes at new inputs: mean and standard deviation."""
    if out is not None:
        may_write(out, release_file, *([] if new is None else [new]))
    from ..data import write_table

    release = open_release(release_file)
    X = _new_inputs(release, of, new, drop_missing)
    with show_warnings_as_notes():
        seen = release.predict(X, output=of)
    output = of or release.output_name
    # inputs may be called anything, also mean or std
    prefix = f"{output}_" if X is not None and {"mean", "std"} & set(X.columns) else ""
    found = {f"{prefix}mean": seen.mean, f"{prefix}std": seen.std}
    import pandas as pd

    table = pd.DataFrame(found) if X is None else X.assign(**found)
    if out is not None:
        write_table(table, out)
    if json:
        as_json(
            {
                "output": output,
                "rows": len(table),
                "out": None if out is None else str(out),
                "predictions": table.to_dict(orient="records") if out is None else None,
            }
        )
    elif out is not None:
        typer.echo(f"{len(table)} predictions written to {out}")
    else:
        typer.echo(table.to_csv(index=False, float_format="%.10g"), nl=False)


def _new_inputs(release: Release, of: str | None, new: Path | None, drop_missing: bool) -> pd.DataFrame | None:
    """The table of new inputs; None for a quantity that has none."""
    from ..data import read_table, select_numbers
    from ..errors import InputError
    from ..models import OutputsKernel

    rows = release.design.inputs
    outputs = rows.outputs
    if of is None and len(outputs) > 1:
        raise InputError(
            f"the release is about {', '.join(outputs)}; say which with --of, as in --of {outputs.names[0]}."
        )
    if of is not None and of not in outputs:
        raise InputError(f"--of is {of!r}, but the release is about {', '.join(outputs)}; choose one of them.")
    kernel = release.prior.kernel
    if of is not None and isinstance(kernel, OutputsKernel) and not kernel.takes_input(outputs.number(of)):
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


@app.command(epilog=examples("sfumato certify orbit.sfumato", "sfumato certify orbit.sfumato --json"))
@speaking
def certify(
    release_file: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release file or folder.", show_default=False)
    ],
    json: Json = False,
) -> None:
    """Compute the certificate again from the file alone; exit code 1 if it does not hold."""
    release = open_release(release_file)
    with show_warnings_as_notes():
        certificate = release.certify(progress=not json)
    if json:
        as_json(
            {
                "release": str(release_file),
                "holds": certificate.holds,
                "unsafe": release.unsafe,
                "certificate": certificate.as_dict(),
            }
        )
    else:
        show_certificate(certificate, f"{release_file}, computed again")
        if release.unsafe:
            typer.echo("UNSAFE: the noise came from a known seed, so anyone can take it off.")
    if not certificate.holds:
        raise typer.Exit(1)


def _own_name() -> str:
    """What to type to run this program again, also where the virtual environment is not active."""
    if shutil.which("sfumato"):
        return "sfumato"
    here = Path(sys.argv[0])
    if here.name != "sfumato":
        return f"{os.path.relpath(sys.executable)} -m sfumato"
    return os.path.relpath(here)


app.command(epilog=examples(*REPORT_EXAMPLES))(speaking(report))
app.command(epilog=examples(*AUDIT_EXAMPLES))(speaking(audit))
app.command(epilog=examples(*TRADEOFF_EXAMPLES))(speaking(tradeoff))
app.add_typer(ledger_app)


def main() -> None:
    app(prog_name="sfumato")
