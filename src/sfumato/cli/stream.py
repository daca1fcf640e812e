"""``sfumato protect`` for Parquet files of any size: read, protected and written part after part."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..version import __version__
from .command import exit_by
from .options import Asked, Files, Fit, Large, NoiseOptions
from .printing import as_json, findings_are_shown_later, say_note, say_replaced, say_written, show_certificate

if TYPE_CHECKING:
    from ..arrays import Index
    from ..data import StoredInputs
    from ..promise import Design
    from ..proof import Certificate
    from ..regions import Region


def is_stream(data: list[Path], out: str) -> bool:
    """Whether the data are to be read part after part: several files, or a Parquet file with a folder to write to."""
    from ..data import PARQUET

    several = len(data) > 1 or data[0].is_dir() or (not data[0].exists() and set("*?[") & set(str(data[0])))
    return bool(several) or (is_folder(out) and data[0].suffix.lower() in PARQUET)


def is_folder(out: str) -> bool:
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def protect_stream(data: list[Path], asked: Asked, fit: Fit, noise: NoiseOptions, large: Large, files: Files) -> None:
    """Protect all rows of ``data`` and write a release to the folder ``files.out``."""
    from ..data import as_engine, fingerprint, parquet_files, rows_of_parquet
    from ..design import protect
    from ..models import fit_prior
    from ..progress import progress, rows_a_second
    from ..regions import parse_region
    from ..release import FolderWriter, check_folder, has_release

    out, output, where = Path(files.out), asked.output[0], parse_region(asked.region[0], asked.columns)
    check_folder(out)
    _check_places(data, parquet_files(data), out)
    replaced, began = has_release(out), time.monotonic()
    engine, device, show = as_engine(large.dask), noise.device or "cpu", not files.json
    options = _deciding_options(asked, fit, noise, large)

    def task() -> dict[str, Any]:
        return {"sfumato": __version__, "options": options, "data": fingerprint(parquet_files(data))}

    begun = task()
    with progress(show) as step:
        rows = rows_of_parquet(data, asked.columns, output, step, engine=engine)

    def design() -> tuple[Design, Certificate]:
        how = {**asked.promise, **noise.settings(), "engine": engine, "device": device, "progress": show}
        few = rows_to_fit(rows, where, large.fit_rows, fit.fit_outside)
        given = {**fit.settings(), "exclude": where if fit.fit_outside else None, "progress": show}
        prior = fit_prior(rows.select(few), rows.column(output).select(few), **given)
        with findings_are_shown_later():
            mechanism = protect(prior, rows, where, **how, method="compressed")
        return mechanism.design, mechanism.certificate

    writer = FolderWriter(out, rows, rows.column(output), engine, say_note, output, noise.resolution, device, show)
    contents = writer.write(design, begun, lambda: task() == begun)
    certificate, seconds = contents.certificate, time.monotonic() - began
    if files.json:
        made = {"release": out, "holds": certificate.holds, "rows": len(rows), "resolution": contents.resolution}
        as_json({**made, "seconds": seconds, "certificate": certificate.as_dict()})
    else:
        show_certificate(certificate, f"{output}, protected where {where.in_words(tuple(asked.columns))}")
        speed = rows_a_second(len(rows), seconds)
        say_written(f"{out}{os.sep}, {len(rows)} rows in {seconds:.1f} s ({speed})")
        if replaced:
            say_replaced()
    exit_by(certificate.verdict)


def _deciding_options(asked: Asked, fit: Fit, noise: NoiseOptions, large: Large) -> dict[str, Any]:
    """What decides on a release, besides the data: a run is taken up again only with the same options."""
    return {
        "inputs": asked.columns,
        "output": asked.output[0],
        "region": asked.region[0],
        **asked.promise,
        **fit.settings(),
        **noise.settings(),
        "fit_outside": fit.fit_outside,
        "fit_rows": large.fit_rows,
        "resolution": noise.resolution,
    }


def _check_places(data: list[Path], files: list[Path], out: Path) -> None:
    """What is written must not be read, now or the next time."""
    target = out.resolve()
    for file in files:
        if target in file.parents:
            raise InputError(f"{file} is in the folder {out} that the release is written to; give another folder.")
    for path in data:
        if path.is_dir() and (path.resolve() == target or path.resolve() in target.parents):
            raise InputError(f"{out} is inside {path}, where the data are read from; give another folder.")


def rows_to_fit(rows: StoredInputs, where: Region, count: int, outside: bool) -> Index:
    """The places of ``count`` rows that are spread evenly over all of them.

    ``outside`` the region, they are spread over the rows there, and rows inside are beside them: ``fit_prior`` leaves
    these out, and knows then how many there were.
    """
    import numpy as np

    from ..arrays import evenly
    from ..data import SAMPLE

    if count < 2:
        raise InputError(f"--fit-rows is {count}; give at least 2.")
    places = evenly(len(rows), max(SAMPLE, count))
    if not outside:
        return places[evenly(len(places), count)]
    inside = where.bind(rows).contains(rows.select(places).values)
    if inside.all():
        raise InputError("--fit-outside: no rows are outside the region; leave it out, or choose a smaller region.")
    kept = places[~inside]
    return np.sort(np.concatenate([kept[evenly(len(kept), count)], places[inside]]))
