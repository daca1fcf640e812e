"""``sfumato protect`` for Parquet files of any size: read, protected and written part after part."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from ..version import __version__
from .speech import as_json, show_certificate, show_warnings_as_notes

if TYPE_CHECKING:
    from ..arrays import Index
    from ..data import StoredInputs
    from ..design import AskedCover
    from ..promise import Design, Guarantee, Structure
    from ..proof import Certificate
    from ..regions import Region


@dataclass(frozen=True)
class StreamOptions:
    """What decides on a release, besides the data: a run is taken up again only with the same options."""

    inputs: list[str]
    output: str
    region: str
    alpha: float | None
    floor: float | None
    kernel: str
    lengthscale: float | None
    mean: float | str
    noise: float | str
    guarantee: str
    structure: str
    cover: str
    fit_outside: bool
    fit_rows: int
    resolution: float | None
    accuracy: float | None


def is_stream(data: list[Path], out: str) -> bool:
    """Whether the data are to be read part after part: several files, or a Parquet file with a folder to write to."""
    from ..data import ENDINGS

    several = len(data) > 1 or data[0].is_dir() or (not data[0].exists() and set("*?[") & set(str(data[0])))
    return bool(several) or (is_folder(out) and data[0].suffix.lower() in ENDINGS)


def is_folder(out: str) -> bool:
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def protect_stream(data: list[Path], out: Path, options: StreamOptions, engine: Any, device: str, json: bool) -> None:
    """Protect all rows of ``data`` and write a release to the folder ``out``."""
    from ..data import as_engine, fingerprint, parquet_files, rows_of_parquet
    from ..progress import progress, rows_a_second
    from ..regions import parse_region
    from ..release import FolderWriter, check_folder, has_release

    where = parse_region(options.region, options.inputs)
    check_folder(out)
    _check_places(data, parquet_files(data), out)
    replaced, began = has_release(out), time.monotonic()
    chosen = as_engine(engine)

    def task() -> dict[str, Any]:
        return {"sfumato": __version__, "options": asdict(options), "data": fingerprint(parquet_files(data))}

    asked = task()
    with show_warnings_as_notes():
        with progress(not json) as step:
            rows = rows_of_parquet(data, options.inputs, options.output, step, engine=chosen)
        writer = FolderWriter(
            out,
            rows,
            rows.column(options.output),
            chosen,
            lambda text: typer.echo(f"note: {text}", err=True),
            options.output,
            options.resolution,
            device,
            not json,
        )
        contents = writer.write(
            lambda: _design(rows, where, options, chosen, device, not json), asked, lambda: task() == asked
        )
    certificate, seconds = contents.certificate, time.monotonic() - began
    if json:
        as_json(
            {
                "release": str(out),
                "holds": certificate.holds,
                "rows": len(rows),
                "resolution": contents.resolution,
                "seconds": seconds,
                "certificate": certificate.as_dict(),
            }
        )
        return
    show_certificate(certificate, f"{options.output}, protected where {where.in_words(tuple(options.inputs))}")
    typer.echo(f"\nWritten: {out}{os.sep}, {len(rows)} rows in {seconds:.1f} s ({rows_a_second(len(rows), seconds)})")
    if replaced:
        typer.echo("The old release was replaced. Publish one of them only: two of one secret can be averaged.")


def _check_places(data: list[Path], files: list[Path], out: Path) -> None:
    """What is written must not be read, now or the next time."""
    from ..errors import InputError

    target = out.resolve()
    for file in files:
        if target in file.parents:
            raise InputError(f"{file} is in the folder {out} that the release is written to; give another folder.")
    for path in data:
        if path.is_dir() and (path.resolve() == target or path.resolve() in target.parents):
            raise InputError(f"{out} is inside {path}, where the data are read from; give another folder.")


def _design(
    rows: StoredInputs, where: Region, options: StreamOptions, engine: Any, device: str, progress: bool
) -> tuple[Design, Certificate]:
    """Fit a prior to some of the rows, and find the noise for all of them."""
    from ..design import protect
    from ..models import fit_prior

    few = rows_to_fit(rows, where, options.fit_rows, options.fit_outside)
    prior = fit_prior(
        rows.select(few),
        rows.column(options.output).select(few),
        kernel=options.kernel,
        mean=options.mean,
        noise=options.noise,
        lengthscale=options.lengthscale,
        progress=progress,
    )
    mechanism = protect(
        prior,
        rows,
        where,
        alpha=options.alpha,
        floor=options.floor,
        guarantee=cast("Guarantee", options.guarantee),
        structure=cast("Structure", options.structure),
        cover=cast("AskedCover", options.cover),
        method="compressed",
        accuracy=options.accuracy,
        engine=engine,
        device=device,
        progress=progress,
    )
    return mechanism.design, mechanism.certificate


def rows_to_fit(rows: StoredInputs, where: Region, count: int, outside: bool) -> Index:
    """The places of ``count`` rows that are spread evenly over all of them, or over those outside the region."""
    import numpy as np

    from ..data import SAMPLE
    from ..errors import InputError

    if count < 2:
        raise InputError(f"--fit-rows is {count}; give at least 2.")
    places = _spread(len(rows), max(SAMPLE, count))
    if outside:
        places = places[~where.bind(rows).contains(rows.select(places).values)]
        if len(places) == 0:
            raise InputError("--fit-outside: no rows are outside the region; leave it out, or choose a smaller region.")
    return np.asarray(places[_spread(len(places), count)])


def _spread(available: int, count: int) -> Index:
    import numpy as np

    return np.unique(np.linspace(0, available - 1, min(available, count)).round().astype(np.intp))
