"""The command ``sfumato protect``: from a table to a release, of one output or several, alone or in a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .outputs import asked_outputs, check_use, joint_prior, numbers, read_regions
from .speech import Json, as_json, show_certificate, show_warnings_as_notes
from .stream import StreamOptions, is_folder, is_stream, protect_stream

if TYPE_CHECKING:
    from ..ledger import Remaining


PROTECT_EXAMPLES = (
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --out orbit.sfumato',
    'sfumato protect people.parquet --inputs AGEP,PUMA --output PINCP --region "AGEP >= 75 and PUMA <= 2000" '
    "--floor 20000 --fit-outside --out people.sfumato --csv people_public.csv",
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --guarantee pointwise '
    "--out orbit.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --output v --relation "v = d(r)/d(t)" --region "v: 1 <= t <= 2" '
    "--alpha 0.1 --out orbit.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --relation "m = mean(r where 1 <= t <= 2)" '
    '--region "1 <= t <= 2" --region m --alpha r=0.5 --alpha m=0.1 --out orbit.sfumato',
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.5 --ledger orbit.ledger '
    "--share 0.4 --out first.sfumato",
    'sfumato protect big.parquet --inputs a,b --output y --region "a <= 1" --alpha 0.3 --out big-release/',
)

DropMissing = Annotated[bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")]


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
    output: Annotated[
        list[str],
        typer.Option(help="The output column; it is published with noise. Repeat it for several.", show_default=False),
    ],
    region: Annotated[
        list[str],
        typer.Option(
            help='Where outputs are sensitive, e.g. "1 <= t <= 2"; of one of several outputs "v: 1 <= t <= 2", of a '
            'quantity without inputs "m". Repeat it for more.',
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            help="The release file to write; or a folder (end it with /) for Parquet data of any size. A run that was "
            "interrupted goes on when it is started again.",
            show_default=False,
        ),
    ],
    relation: Annotated[
        list[str] | None,
        typer.Option(
            help='How an output, or a quantity that is never released, follows from another: "v = d(r)/d(t)", '
            '"m = mean(r where 1 <= t <= 2)", "q = integral(r from 0 to 1)". Repeat it for more.'
        ),
    ] = None,
    alpha: Annotated[
        list[str] | None,
        typer.Option(
            help="Fraction of the prior variance that readers may learn (small = strong); v=0.1 for one output."
        ),
    ] = None,
    floor: Annotated[
        list[str] | None,
        typer.Option(
            help="Or: the standard deviation that every reader keeps, in units of the output; v=0.1 for one output."
        ),
    ] = None,
    kernel: Annotated[str, typer.Option(help="rbf, matern12, matern32 or matern52.")] = "rbf",
    lengthscale: Annotated[float | None, typer.Option(help="Fix the lengthscale instead of learning it.")] = None,
    mean: Annotated[str, typer.Option(help="constant, zero or a number.")] = "constant",
    noise: Annotated[str, typer.Option(help="Noise variance in your data: learn, or a number.")] = "learn",
    output_noise: Annotated[
        list[str] | None,
        typer.Option(help="Noise variance of one of several outputs, e.g. v=0.01; a derivative has none if not said."),
    ] = None,
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
    ledger: Annotated[
        Path | None,
        typer.Option(help="Keep the promise for all releases in this ledger together, and write this one into it."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(help="With --ledger: how much of what is left this release may use (0.5 if not said)."),
    ] = None,
    remeasured: Annotated[
        bool, typer.Option("--remeasured", help="With --ledger: these values were measured anew, with new errors.")
    ] = False,
    resolution: Annotated[float | None, typer.Option(help="Round published outputs to multiples of this.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Also write the published data as a table.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page for the person who signs off the publication, .html.")
    ] = None,
    drop_missing: DropMissing = False,
    json: Json = False,
) -> None:
    """Add the least noise that keeps a promise, and write a release file with its certificate."""
    from ..errors import InputError

    columns = [name.strip() for entry in inputs for name in entry.split(",") if name.strip()]
    if not columns:
        raise InputError("--inputs names no column; give at least one, for example --inputs t.")
    outputs = asked_outputs(output, relation or [], columns)
    if bool(alpha) == bool(floor):
        given = "both" if alpha else "neither"
        raise InputError(f"--alpha and --floor: {given} given; choose one, for example --alpha 0.1 (strong privacy).")
    promise: dict[str, Any] = {"alpha": numbers("--alpha", alpha or [], outputs)}
    promise["floor"] = numbers("--floor", floor or [], outputs)
    if weights in outputs.columns:
        raise InputError(f"--weights {weights!r} is also an --output; weights are published, so they cannot be secret.")
    _check_ledger_options(ledger, share, remeasured)
    fit: dict[str, Any] = {"kernel": kernel, "mean": number_or_word(mean), "lengthscale": lengthscale}
    how: dict[str, Any] = {"guarantee": guarantee, "structure": structure, "cover": cover, "accuracy": accuracy}
    if is_stream(data, out):
        asked: dict[str, Any] = {"--csv": csv, "--weights": weights, "--drop-missing": drop_missing or None}
        asked["--ledger"], asked["--report"] = ledger, report
        asked["--relation"], asked["--output-noise"] = relation or None, output_noise or None
        asked["--output more than once"] = len(output) > 1 or None
        asked["--region more than once"] = len(region) > 1 or None
        asked["--method"] = None if method in ("auto", "compressed") else method
        for option, value in asked.items():
            if value is not None:
                raise InputError(
                    f"{option} is for tables that fit in memory; leave it out, or give one table and a file for --out."
                )
        options = StreamOptions(
            inputs=columns,
            output=output[0],
            region=region[0],
            noise=number_or_word(noise),
            fit_outside=fit_outside,
            fit_rows=fit_rows,
            resolution=resolution,
            **fit,
            **how,
            **promise,
        )
        protect_stream(data, Path(out), options, dask, device or "cpu", json)
        return
    if dask is not None:
        raise InputError("--dask is for Parquet data that are written to a folder: end --out with /.")
    if is_folder(out):
        raise InputError(f"--out {out} is a folder, which is for Parquet data; give the name of a file.")
    if output_noise and not outputs.several:
        raise InputError("--output-noise is for several outputs; give --noise, the noise variance of the only one.")
    source, target = data[0], Path(out)
    _check_places(source, target, csv, ledger, report)
    replaced, book = target.exists(), None
    if ledger is not None:
        from ..ledger import SHARE, Ledger

        book = Ledger(ledger)
        how |= {"share": SHARE if share is None else share, "remeasured": remeasured}
    from ..data import read_table, select_numbers, write_table

    more = [] if weights is None or weights in columns else [weights]
    table = select_numbers(read_table(source), [*columns, *outputs.columns, *more], source, drop_missing)
    regions = read_regions(region, outputs, columns)
    check_use(outputs, regions)
    own_noise = numbers("--output-noise", output_noise or [], outputs)
    if isinstance(own_noise, float):
        raise InputError(f"--output-noise is {own_noise:g}; say of which output, as in {outputs.names[-1]}=0.01.")
    fit |= {"noise": number_or_word(noise), "progress": not json}
    how |= {"method": method, "device": device, "progress": not json}
    X = table[columns]
    with show_warnings_as_notes():
        if outputs.several:
            prior: Any = joint_prior(outputs, table, columns, regions, own_noise or {}, fit_outside, **fit)
            where: Any = regions
            y: Any = {name: table[name] for name in outputs.released}
            how["released"] = outputs.released
        else:
            from ..models import fit_prior

            where, y = regions[output[0]], table[output[0]]
            prior = fit_prior(X, y, exclude=where if fit_outside else None, **fit)
        if weights is not None:
            # the rows of several outputs are one below the other
            how["weights"] = table[weights].tolist() * len(outputs.released)
        name = None if outputs.several else output[0]
        if book is None:
            from ..design import protect as design_noise

            mechanism = design_noise(prior, X, where, **promise, **how)
        else:
            mechanism = book.protect(prior, X, where, output_name=name or "y", **promise, **how)
        release = mechanism.release(y, output_name=name, resolution=resolution)
        with _counted_by(ledger):
            release.save(target)
            if csv is not None:
                write_table(release.to_frame(), csv)
            left = None if book is None else book.remaining()
            if report is not None:
                from ..show import report as write_report

                write_report(release, report, ledger=book, file=target, progress=not json)
    certificate = mechanism.certificate
    if json:
        made = {
            "release": str(out),
            "holds": certificate.holds,
            "outputs": list(outputs.released),
            "csv": None if csv is None else str(csv),
            "report": None if report is None else str(report),
            "rows": len(table),
            "rows_inside": len(mechanism.design.rows_inside()),
            "resolution": release.resolution,
            "certificate": certificate.as_dict(),
        }
        if book is not None and left is not None:
            made["ledger"] = {"file": str(ledger), "releases": len(book), "head": book.head, **left.as_dict()}
        as_json(made)
        return
    places = mechanism.region.in_words(mechanism.design.inputs.names)
    show_certificate(certificate, f"{', '.join(outputs.released)}, protected where {places}")
    more_files = [str(path) for path in (csv, report) if path is not None]
    typer.echo(f"\nWritten: {' and '.join([out, *more_files])}")
    if book is not None and left is not None:
        typer.echo(f"\nLedger {ledger}: {len(book)} release(s), head {book.head}")
        say_what_is_left(left)
        if replaced:
            typer.echo("The old release was replaced. If it is out and not in the ledger, the promise is void.")
    elif replaced:
        typer.echo("The old release was replaced. Publish one of them only: two of one secret can be averaged.")


def say_what_is_left(left: Remaining) -> None:
    """A paragraph for each promise, with the outputs that it is about."""
    for one in left.promises:
        typer.echo(f"{', '.join(one.promise.speech.outputs)}: {one}")


def may_write(path: Path, *sources: Path) -> None:
    """Refuse, before any work is done, what must not or cannot be written."""
    from ..errors import InputError

    if any(path.resolve() == source.resolve() for source in sources):
        raise InputError(f"{path} is what the command reads; write to another file.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise InputError(f"the folder {path.parent} does not exist; make it first.")


def number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _check_ledger_options(ledger: Path | None, share: float | None, remeasured: bool) -> None:
    from ..errors import InputError

    if ledger is None and (share is not None or remeasured):
        option = "--share" if share is not None else "--remeasured"
        raise InputError(f"{option} is about the releases of a ledger; name it with --ledger FILE, or leave it out.")


def _check_places(
    source: Path, target: Path, csv: Path | None, ledger: Path | None, report: Path | None = None
) -> None:
    """Every file that is written has its own place."""
    from ..errors import InputError
    from ..show import check_page

    if report is not None:
        check_page(report, source, argument="--report")
    for path in (target, csv, ledger):
        if path is not None:
            may_write(path, source)
    named = [("--out", target), ("--csv", csv), ("--ledger", ledger), ("--report", report)]
    given = [(option, path) for option, path in named if path is not None]
    for place, (option, path) in enumerate(given):
        for other, same in given[:place]:
            if path.resolve() == same.resolve():
                raise InputError(f"{other} and {option} are both {path}; give them different names.")


@contextmanager
def _counted_by(ledger: Path | None) -> Iterator[None]:
    """What goes wrong now comes after the ledger was written: say so."""
    try:
        yield
    except BaseException:
        if ledger is not None:
            typer.echo(
                f"note: the ledger {ledger} counts this release as published, whatever was written of it.", err=True
            )
        raise
