"""The command ``sfumato``: demo, protect, predict, certify, audit, reproduce, data.

Exit codes: 0 done; 1 the guarantee does not hold; 2 wrong use. PyTorch is imported inside the commands, so that
``sfumato --help`` answers at once.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from . import __version__
from .cli_audit import AUDIT_EXAMPLES, audit, open_release
from .cli_paper import DATA_EXAMPLES, REPRODUCE_EXAMPLES, prepare_data, reproduce
from .cli_stream import StreamOptions, is_folder, is_stream, protect_stream
from .speech import Json, as_json, examples, show_certificate, show_warnings_as_notes, speaking

if TYPE_CHECKING:
    from .design import Guarantee, Structure
    from .problem import Method
    from .search import AskedCover

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

DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")]


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


@app.command(
    epilog=examples(
        'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --out orbit.sfumato',
        'sfumato protect people.parquet --inputs AGEP,PUMA --output PINCP --region "AGEP >= 75 and PUMA <= 2000" '
        "--floor 20000 --fit-outside --out people.sfumato --csv people_public.csv",
        'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --guarantee pointwise '
        "--out orbit.sfumato",
        'sfumato protect big.parquet --inputs a,b --output y --region "a <= 1" --alpha 0.3 --out big-release/',
    )
)
@speaking
def protect(
    data: Annotated[
        list[Path],
        typer.Argument(
            help="Your table, .csv or .parquet, with the secret values; or Parquet files of any size, or a folder of "
            "them, to be read part after part.",
            show_default=False,
        ),
    ],
    inputs: Annotated[
        list[str],
        typer.Option(help="Input columns, comma separated or repeated; they are published.", show_default=False),
    ],
    output: Annotated[str, typer.Option(help="The output column; it is published with noise.", show_default=False)],
    region: Annotated[str, typer.Option(help='Where outputs are sensitive, e.g. "1 <= t <= 2".', show_default=False)],
    out: Annotated[
        str,
        typer.Option(
            help="The release file to write; or a folder (end it with /) for Parquet data of any size. A run that was "
            "interrupted goes on when it is started again.",
            show_default=False,
        ),
    ],
    alpha: Annotated[
        float | None, typer.Option(help="Fraction of the prior variance that readers may learn (small = strong).")
    ] = None,
    floor: Annotated[
        float | None, typer.Option(help="Or: the standard deviation that every reader keeps, in units of the output.")
    ] = None,
    kernel: Annotated[str, typer.Option(help="rbf, matern12, matern32 or matern52.")] = "rbf",
    lengthscale: Annotated[float | None, typer.Option(help="Fix the lengthscale instead of learning it.")] = None,
    mean: Annotated[str, typer.Option(help="constant, zero or a number.")] = "constant",
    noise: Annotated[str, typer.Option(help="Noise variance in your data: learn, or a number.")] = "learn",
    guarantee: Annotated[
        str,
        typer.Option(help="joint: averages of sensitive values are protected too; pointwise: each value by itself."),
    ] = "joint",
    structure: Annotated[
        str, typer.Option(help="full: correlated noise, the least there is; diagonal: every row by itself.")
    ] = "full",
    weights: Annotated[
        str | None, typer.Option(help="A column with positive weights: rows with large ones are blurred less.")
    ] = None,
    cover: Annotated[str, typer.Option(help="auto, greedy, exchange or rows.")] = "auto",
    method: Annotated[
        str, typer.Option(help="auto chooses by size; eigh, subspace (exact), compressed (any number of rows) or sign.")
    ] = "auto",
    accuracy: Annotated[
        float | None, typer.Option(help="How far above the least the noise may be, as a share (subspace, compressed).")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cuda works on a GPU.")] = None,
    fit_outside: Annotated[
        bool, typer.Option("--fit-outside", help="Fit the prior on rows outside the region only (it is published).")
    ] = False,
    fit_rows: Annotated[
        int, typer.Option(help="To a folder: fit the prior on this many rows, spread evenly over all of them.")
    ] = 2000,
    dask: Annotated[
        str | None, typer.Option(help="To a folder: the address of a Dask scheduler whose workers do the work.")
    ] = None,
    resolution: Annotated[float | None, typer.Option(help="Round published outputs to multiples of this.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the published data as a table.")] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """Add the least noise that keeps a promise, and write a release file with its certificate."""
    from .errors import InputError

    if (alpha is None) == (floor is None):
        given = "both" if alpha is not None else "neither"
        raise InputError(f"--alpha and --floor: {given} given; choose one, for example --alpha 0.1 (strong privacy).")
    columns = [name.strip() for entry in inputs for name in entry.split(",") if name.strip()]
    if not columns:
        raise InputError("--inputs names no column; give at least one, for example --inputs t.")
    if output in columns:
        raise InputError(f"--output {output!r} is also one of --inputs; inputs are published as they are.")
    if weights == output:
        raise InputError(
            f"--weights {weights!r} is also the --output; weights are published, so they cannot be secret."
        )
    if is_stream(data, out):
        asked = {"--csv": csv, "--weights": weights, "--drop-missing": drop_missing or None}
        asked["--method"] = None if method in ("auto", "compressed") else method
        for option, value in asked.items():
            if value is not None:
                raise InputError(
                    f"{option} is for tables that fit in memory; leave it out, or give one table and a file for --out."
                )
        options = StreamOptions(
            inputs=columns,
            output=output,
            region=region,
            alpha=alpha,
            floor=floor,
            kernel=kernel,
            lengthscale=lengthscale,
            mean=_number_or_word(mean),
            noise=_number_or_word(noise),
            guarantee=guarantee,
            structure=structure,
            cover=cover,
            fit_outside=fit_outside,
            fit_rows=fit_rows,
            resolution=resolution,
            accuracy=accuracy,
        )
        protect_stream(data, Path(out), options, dask, device or "cpu", json)
        return
    if dask is not None:
        raise InputError("--dask is for Parquet data that are written to a folder: end --out with /.")
    if is_folder(out):
        raise InputError(f"--out {out} is a folder, which is for Parquet data; give the name of a file.")
    source, target = data[0], Path(out)
    for path in (target, csv):
        if path is not None:
            _may_write(path, source)
    if csv is not None and csv.resolve() == target.resolve():
        raise InputError(f"--out and --csv are both {out}; give them different names.")
    replaced = target.exists()

    from .fit import fit_prior
    from .mechanism import protect as design_noise
    from .region_text import parse_region
    from .tables import read_table, select_numbers, write_table

    more = [] if weights is None or weights in columns else [weights]
    table = select_numbers(read_table(source), [*columns, output, *more], source, drop_missing)
    X, y = table[columns], table[output]
    where = parse_region(region, columns)
    with show_warnings_as_notes():
        prior = fit_prior(
            X,
            y,
            kernel=kernel,
            mean=_number_or_word(mean),
            noise=_number_or_word(noise),
            lengthscale=lengthscale,
            exclude=where if fit_outside else None,
            progress=not json,
        )
        mechanism = design_noise(
            prior,
            X,
            where,
            alpha=alpha,
            floor=floor,
            guarantee=cast("Guarantee", guarantee),
            structure=cast("Structure", structure),
            cover=cast("AskedCover", cover),
            weights=None if weights is None else table[weights].to_numpy(),
            method=cast("Method", method),
            accuracy=accuracy,
            device=device,
            progress=not json,
        )
        release = mechanism.release(y, output_name=output, resolution=resolution)
    release.save(target)
    if csv is not None:
        write_table(release.to_frame(), csv)
    certificate = mechanism.certificate
    if json:
        as_json(
            {
                "release": str(out),
                "holds": certificate.holds,
                "csv": None if csv is None else str(csv),
                "rows": len(table),
                "rows_inside": len(mechanism.design.rows_inside()),
                "resolution": release.resolution,
                "certificate": certificate.as_dict(),
            }
        )
        return
    show_certificate(certificate, f"{output}, protected where {mechanism.region.in_words(tuple(columns))}")
    typer.echo(f"\nWritten: {out}" + (f" and {csv}" if csv is not None else ""))
    if replaced:
        typer.echo("The old release was replaced. Publish one of them only: two of one secret can be averaged.")


@app.command(
    epilog=examples(
        "sfumato predict orbit.sfumato new.csv", "sfumato predict orbit.sfumato new.csv --out predicted.csv"
    )
)
@speaking
def predict(
    release_file: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release file or folder.", show_default=False)
    ],
    new: Annotated[Path, typer.Argument(help="A table, .csv or .parquet, with the input columns.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Write the predictions here (.csv or .parquet), not to the screen.")
    ] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """What a reader concludes at new inputs: mean and standard deviation."""
    if out is not None:
        _may_write(out, release_file, new)
    from .tables import read_table, select_numbers, write_table

    release = open_release(release_file)
    X = select_numbers(read_table(new), list(release.columns), new, drop_missing)
    with show_warnings_as_notes():
        seen = release.predict(X)
    # inputs may be called anything, also mean or std
    prefix = f"{release.output_name}_" if {"mean", "std"} & set(X.columns) else ""
    table = X.assign(**{f"{prefix}mean": seen.mean, f"{prefix}std": seen.std})
    if out is not None:
        write_table(table, out)
    if json:
        as_json(
            {
                "output": release.output_name,
                "rows": len(table),
                "out": None if out is None else str(out),
                "predictions": table.to_dict(orient="records") if out is None else None,
            }
        )
    elif out is not None:
        typer.echo(f"{len(table)} predictions written to {out}")
    else:
        typer.echo(table.to_csv(index=False, float_format="%.10g"), nl=False)


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


def _may_write(path: Path, *sources: Path) -> None:
    """Refuse, before any work is done, what must not or cannot be written."""
    from .errors import InputError

    if any(path.resolve() == source.resolve() for source in sources):
        raise InputError(f"{path} is what the command reads; write to another file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first.")


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


app.command(epilog=examples(*AUDIT_EXAMPLES))(speaking(audit))
app.command(epilog=examples(*REPRODUCE_EXAMPLES))(speaking(reproduce))
app.command(name="data", epilog=examples(*DATA_EXAMPLES))(speaking(prepare_data))


def main() -> None:
    app(prog_name="sfumato")
