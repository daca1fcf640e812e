"""The command ``sfumato protect``: from a table to a release, of one output or several, alone or in a ledger.

Parquet files of any size are read, protected and written part after part (``protect_stream``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import GuaranteeError, InputError
from ..files import where_it_leads
from ..text import counted
from ..version import __version__
from .command import exit_by
from .fitted import fit_in_words
from .options import (
    TABLES,
    Account,
    Asked,
    Files,
    Fit,
    Large,
    NoiseOptions,
    Reading,
    Written,
    check_new,
    check_written,
    served_by,
    served_table,
)
from .outputs import Regions, check_use, fitted_prior, read_regions
from .printing import (
    as_json,
    findings_are_shown_later,
    say,
    say_lines,
    say_note,
    say_replaced,
    say_what_is_left,
    say_written,
    show_certificate,
)
from .rehearse import FEW_ROWS, refusal, rehearsals

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import Index
    from ..data import StoredInputs
    from ..design import Mechanism
    from ..evaluate import Rehearsal
    from ..promise import Design
    from ..proof import Certificate
    from ..regions import Region
    from .rehearse import Readers

PROTECT_EXAMPLES = (
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --out orbit.sfumato',
    'sfumato protect people.parquet --inputs AGEP,PUMA --output PINCP --region "AGEP >= 75 and PUMA <= 2000" '
    "--floor 20000 --out people.sfumato --csv people_public.csv",
    'sfumato protect people.csv --inputs age,place --output wage --region "age >= 75" --alpha 0.1 --protects records '
    "--insiders household --out people.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --guarantee pointwise '
    "--out orbit.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --output v --relation "v = d(r)/d(t)" --region "v: 1 <= t <= 2" '
    "--alpha 0.1 --out orbit.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --relation "m = mean(r where 1 <= t <= 2)" '
    '--region "1 <= t <= 2" --region m --alpha r=0.5 --alpha m=0.1 --out orbit.sfumato',
    "sfumato protect economy.csv --inputs year --output infl --output unemp --correlated infl,unemp "
    '--region "infl: 1979 <= year <= 1983" --floor infl=2 --out economy.sfumato',
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.5 --ledger orbit.ledger '
    "--share 0.4 --out first.sfumato",
    'sfumato protect orbit.csv --inputs t --output r --region "1 <= t <= 2" --alpha 0.1 --objective predictions '
    '--serve "t >= 2" --out orbit.sfumato',
    'sfumato protect big.parquet --inputs a,b --output y --region "a <= 1" --alpha 0.3 --out big-release/',
)


#: Of Parquet data of any size the prior is fitted to so many rows, if nothing else is said.
ROWS_TO_FIT = 2000


def protect(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA",
            help="Your table, .csv (also .gz) or .parquet, with the secret values; or Parquet files of any size, or a "
            "folder of them, to be read part after part.",
        ),
    ],
    asked: Asked,
    fit: Fit,
    noise: NoiseOptions,
    account: Account,
    large: Large,
    files: Files,
    reading: Reading,
) -> None:
    """Add noise that keeps a promise, the least or the most useful, and write a release file with its certificate."""
    asked.check()
    account.check()
    fit.check()
    noise.check(asked)
    if account.ledger is not None and (asked.ranges or asked.spread is not None):
        raise InputError(
            "--family and --spread are for one release; a --ledger does not count families; leave one out."
        )
    if noise.weights in asked.outputs.columns:
        raise InputError(
            f"--weights {noise.weights!r} is also an --output; weights are published, so they cannot be secret."
        )
    if is_stream(data, files.out):
        _check_for_stream(asked, fit, noise, account, files, reading)
        protect_stream(data, asked, fit, noise, large, files)
        return
    if large.dask is not None:
        raise InputError("--dask is for Parquet data that are written to a folder: end --out with /.")
    if is_folder(files.out):
        raise InputError(f"--out {files.out} is a folder, which is for Parquet data; give the name of a file.")
    _protect_table(data[0], asked, fit, noise, account, files, reading)


def _check_for_stream(
    asked: Asked, fit: Fit, noise: NoiseOptions, account: Account, files: Files, reading: Reading
) -> None:
    """Refuse options that need all rows in memory at once."""
    given = {
        "--csv": files.csv is not None,
        "--weights": noise.weights is not None,
        "--insiders": asked.insiders is not None,
        f"--noise {fit.noise!r}": bool(fit.noise_column),
        **{name: True for name in reading.options() if name.startswith("--")},
        "--ledger": account.ledger is not None,
        "--report": files.report is not None,
        "--relation": bool(asked.relation),
        "--correlated": bool(asked.correlated),
        "--output-noise": bool(asked.output_noise),
        "--output more than once": len(asked.output) > 1,
        "--region more than once": len(asked.region) > 1,
        "--method": noise.method not in ("auto", "compressed"),
    }
    for option, wrong in given.items():
        if wrong:
            raise InputError(
                f"{option} is for tables that fit in memory; leave it out, or give one table and a file for --out."
            )


def _protect_table(
    source: Path, asked: Asked, fit: Fit, noise: NoiseOptions, account: Account, files: Files, reading: Reading
) -> None:
    """Protect a table that fits in memory; every file that is written has its own place."""
    from ..data import as_inputs
    from ..design import bound_served
    from ..evaluate import compare_objectives, compare_promises
    from ..regions import Region
    from ..show import check_page, write_publication

    target = Path(files.out)
    if files.report is not None:
        check_page(files.report, source, argument="--report")
    written = [Written("--out", target), Written("--csv", files.csv, TABLES)]
    written += [Written("--ledger", account.ledger, grows=True), Written("--report", files.report)]
    check_written(*written, read=[source, served_table(noise.serve)], replace=files.replace)
    replaced, book, outputs = target.exists(), account.book, asked.outputs
    several = outputs.takes_input if outputs.several else None
    served, counts = served_by(noise.serve, asked.columns, asked.output, reading, noise.weights, several)
    numbers = [*outputs.columns, *(noise.weights_beside(asked.columns) if counts is None else [])]
    known = ("rows", *asked.columns, *numbers)
    labels = [name for name in [asked.insiders] if name is not None and name not in known]
    table = reading.table(source, asked.columns, numbers, as_they_are=labels)
    regions = read_regions(asked.region, outputs.takes_input, asked.columns)
    check_use(outputs, regions, {level: asked.promise[level] for level in ("alpha", "floor")})
    rows = as_inputs(table[asked.columns])
    for where in regions.values():
        if where is not None:
            where.bind(rows)  # what is wrong with it is said before the fit
    if isinstance(served, Region) and not outputs.several:
        bound_served(served, rows)
    prior, outside = _prior(table, asked, fit, regions, not files.json)
    tried = _rehearsed(prior, table, asked, regions, not files.json)
    _say_if_in_doubt(noise, tried)
    if noise.weights is not None and counts is None:
        counts = table[noise.weights].tolist()
    useful = {"serve": served, "weights": None if counts is None else counts * len(outputs.released)}
    mechanism = _design(prior, table, asked, outside, noise, account, regions, tried, useful, not files.json)
    mechanism = _with_raw_rows(mechanism, asked)
    values: Any = {name: table[name] for name in outputs.released}
    name = None if outputs.several else outputs.released[0]
    y = values if name is None else values[name]
    with findings_are_shown_later(), _nothing_written():
        release = mechanism.release(y, output_name=name, resolution=noise.resolution)
    with _counted_by(account.ledger):
        write_publication(release, target, csv=files.csv, report=files.report, ledger=book, progress=not files.json)
        left = None if book is None else book.remaining()
    # what only the owner may know is shown here, and is not in the file
    own = mechanism.findings_on(y)
    certificate = release.certificate.with_findings(*own)
    design, worth = mechanism.design, mechanism.worth(y)
    promises = None if book is not None else compare_promises(design, outputs.released[0])
    compared = compare_objectives(design, certificate) or promises
    if files.json:
        made: dict[str, Any] = {
            "release": files.out,
            "holds": certificate.holds,
            "outputs": outputs.released,
            "csv": files.csv,
            "report": files.report,
            "rows": len(table),
            "rows_inside": len(mechanism.design.rows_inside()),
            "resolution": release.resolution,
            "certificate": certificate.as_dict(),
            "rehearsal": {name: one.as_dict() for name, one in tried.items()},
        }
        if compared is not None:
            made["promises" if mechanism.design.serves is None else "objectives"] = asdict(compared)
        if worth is not None:
            made["worth"] = asdict(worth)
        if book is not None and left is not None:
            made["ledger"] = {"file": account.ledger, "releases": len(book), "head": book.head, **left.as_dict()}
        as_json(made)
    else:
        places = mechanism.region.in_words(mechanism.design.inputs.names)
        show_certificate(certificate, f"{', '.join(outputs.released)}, protected where {places}")
        say(fit_in_words(prior, fit.fit_outside, outside))
        for name, one in tried.items():
            say(one.sentence(f" of {name}" if outputs.several else ""))
        if compared is not None:
            say(str(compared))
        if worth is not None and "predictions-not-better" not in {one.code for one in own}:
            say(str(worth))
        if suppressed := mechanism.noise.suppressed_count:
            many = f"{counted(suppressed, 'combination')} of the {len(mechanism.design.inputs):,} rows"
            say(f"Not published: {many}. There the values show what the rest predicts.")
        for finding in own:
            if finding.severity == "low":  # others are in the table
                say(f"{finding} ({finding.code}; only you see this)")
        say_written(files.out, files.csv, files.report)
        if book is not None and left is not None:
            say_lines("", f"Ledger {account.ledger}: {counted(len(book), 'release')}", f"head  {book.head}")
            say_what_is_left(left)
        if replaced:
            say_replaced(in_ledger=book is not None)
    exit_by(certificate.verdict)


def _prior(table: pd.DataFrame, asked: Asked, fit: Fit, regions: Regions, progress: bool) -> tuple[Readers, bool]:
    """What readers are taken to believe, a prior, that of several outputs or a family; and whether it was fitted
    outside the region only."""
    settings = {**fit.settings(), "progress": progress}
    if asked.spread is not None:
        settings["spread"] = asked.spread
    prior, outside = fitted_prior(
        asked.outputs, table, asked.columns, regions, asked.own_noise, fit.excluded, **settings
    )
    return asked.readers(prior), outside


def _rehearsed(
    prior: Readers, table: pd.DataFrame, asked: Asked, regions: Regions, progress: bool, rows: int | None = None
) -> dict[str, Rehearsal]:
    """Rehearsals of the sensitive outputs; one that fails, and was not accepted, is the end.

    ``table`` may be some of so many ``rows``.
    """
    from ..promise import PRIOR_BEATEN

    if asked.no_rehearsal:
        return {}
    accepted = PRIOR_BEATEN in (asked.accept or ())
    found = rehearsals(prior, table, asked.columns, regions, asked.promise, progress, not accepted, rows)
    for name, one in found.items():
        if any(finding.stops and finding.code not in (asked.accept or ()) for finding in one.findings):
            about = f" where {name!r} is sensitive" if asked.outputs.several else ""
            raise GuaranteeError(f"{refusal(one, about)} Nothing was written.")
    return found


def _say_if_in_doubt(noise: NoiseOptions, tried: dict[str, Rehearsal]) -> None:
    """Say that the best predictions count on a prior of which a rehearsal does not speak well."""
    if noise.objective == "noise" or (tried and not any(one.findings for one in tried.values())):
        return
    state = "is in doubt after its rehearsal" if tried else "was not rehearsed"
    say_note(f"the prior {state}, and --objective predictions counts on it; when in doubt give --objective noise.")


def _design(
    prior: Readers,
    table: pd.DataFrame,
    asked: Asked,
    fitted_outside: bool,
    noise: NoiseOptions,
    account: Account,
    regions: Regions,
    tried: dict[str, Rehearsal],
    useful: dict[str, Any],
    progress: bool,
) -> Mechanism:
    """Find the best noise; with a ledger, the best beside all earlier releases. ``useful`` says for whom it is."""
    from ..design import protect as find_noise
    from ..proof import learnt_inside

    outputs, columns = asked.outputs, asked.columns
    how: dict[str, Any] = {**asked.promise, **noise.settings(), "method": noise.method, "device": noise.device}
    findings = [finding for one in tried.values() for finding in one.findings]
    how |= {"accept": asked.accept or (), "findings": findings, **useful}
    where: Any = regions if outputs.several else regions[outputs.released[0]]
    if outputs.several:
        how["released"] = outputs.released
    # the rows of several outputs are one below the other
    copies = len(outputs.released)
    if asked.insiders is not None:
        how["insiders"] = _insiders(table, asked.insiders, copies)
    with findings_are_shown_later():
        if account.book is None:
            mechanism = find_noise(prior, table[columns], where, **how, progress=progress)
        else:
            how |= {"remeasured": account.remeasured} | ({} if account.share is None else {"share": account.share})
            name = "y" if outputs.several else outputs.released[0]
            alone: Any = prior  # no family: they are refused before anything is read
            mechanism = account.book.protect(alone, table[columns], where, output_name=name, **how, progress=progress)
    if outputs.several and not fitted_outside:  # a prior of several outputs does not say what its parts were fitted to
        found = learnt_inside(len(table))
        mechanism = replace(mechanism, certificate=mechanism.certificate.with_findings(found))
    return mechanism


def _insiders(table: pd.DataFrame, asked: str, copies: int) -> Any:
    """Who holds which rows; whoever holds a row of the table holds all of its outputs."""
    if asked == "rows" and copies == 1:
        return asked
    return (list(range(len(table))) if asked == "rows" else table[asked].tolist()) * copies


def _with_raw_rows(mechanism: Mechanism, asked: Asked) -> Mechanism:
    """The mechanism; records that go out almost as they are, if there are any, are accepted where that is allowed."""
    from ..promise import RAW_RECORDS

    if not asked.allow_raw_rows:
        return mechanism
    if any(one.code == RAW_RECORDS for one in mechanism.certificate.findings):
        say_note("records in the region go out almost as they are, as --allow-raw-rows allows.")
    return replace(mechanism, certificate=mechanism.certificate.accepting([RAW_RECORDS]))


@contextmanager
def _nothing_written() -> Iterator[None]:
    """What is refused now is refused before anything is written, into a ledger either: say so."""
    try:
        yield
    except GuaranteeError as error:
        raise GuaranteeError(f"{error} Nothing was written.") from error


@contextmanager
def _counted_by(ledger: Path | None) -> Iterator[None]:
    """What goes wrong now comes after the ledger was written: say so."""
    try:
        yield
    except BaseException:
        if ledger is not None:
            say_note(f"the ledger {ledger} counts this release as published, whatever was written of it.")
        raise


def is_stream(data: list[Path], out: str) -> bool:
    """Whether the data are to be read part after part: several files, or a Parquet file with a folder to write to."""
    from ..data import PARQUET

    several = len(data) > 1 or data[0].is_dir() or (not data[0].exists() and set("*?[") & set(str(data[0])))
    return bool(several) or (is_folder(out) and data[0].suffix.lower() in PARQUET)


def is_folder(out: str) -> bool:
    return out.endswith(("/", os.sep)) or Path(out).is_dir()


def protect_stream(data: list[Path], asked: Asked, fit: Fit, noise: NoiseOptions, large: Large, files: Files) -> None:
    """Protect all rows of ``data`` and write a release to the folder ``files.out``."""
    import pandas as pd

    from ..arrays import evenly
    from ..data import as_engine, fingerprint, parquet_files, rows_of_parquet
    from ..design import protect
    from ..models import fit_prior
    from ..progress import progress, rows_a_second
    from ..regions import parse_region
    from ..release import FolderWriter, check_folder, has_release, is_published

    out, output = Path(files.out), asked.output[0]
    where = parse_region(asked.region[0], asked.columns, outputs=asked.output)
    served, _ = served_by(noise.serve, asked.columns, asked.output, Reading())
    check_folder(out)
    _check_places(data, parquet_files(data), out)
    began = time.monotonic()
    device, show = noise.device or "cpu", not files.json
    options = _deciding_options(asked, fit, noise)
    tried: dict[str, Rehearsal] = {}

    def task() -> dict[str, Any]:
        read = [*parquet_files(data), *filter(None, [served_table(noise.serve)])]
        return {"sfumato": __version__, "options": options, "data": fingerprint(read)}

    begun = task()
    replaced = has_release(out) and not is_published(out, begun)
    check_new(f"the release in --out {files.out}", replaced, files.replace)
    engine = as_engine(large.dask, device)
    with progress(show) as step:
        rows = rows_of_parquet(data, asked.columns, output, step, engine=engine)

    def design() -> tuple[Design, Certificate]:
        how = {**asked.promise, **noise.settings(), "engine": engine, "device": device, "progress": show}
        how["serve"] = served
        few, outside = rows_to_fit(rows, where, fit.fit_rows or ROWS_TO_FIT, fit.fit_outside)
        given = {**fit.settings(), "exclude": where if outside else None, "progress": show}
        if asked.spread is not None:
            given["spread"] = asked.spread
        prior = asked.readers(fit_prior(rows.select(few), rows.column(output).select(few), **given))
        # rows to fit are not as dense inside as outside, and look-alikes would not look alike
        some = evenly(len(rows), FEW_ROWS)
        sample = pd.DataFrame(rows.select(some).values, columns=asked.columns)
        sample[output] = rows.column(output).select(some)
        tried.update(_rehearsed(prior, sample, asked, {output: where}, show, len(rows)))
        _say_if_in_doubt(noise, tried)
        found = [finding for one in tried.values() for finding in one.findings]
        with findings_are_shown_later():
            mechanism = protect(
                prior, rows, where, **how, accept=asked.accept or (), findings=found, method="compressed"
            )
        mechanism = _with_raw_rows(mechanism, asked)
        return mechanism.design, mechanism.certificate

    writer = FolderWriter(out, rows, rows.column(output), engine, say_note, output, noise.resolution, device, show)
    with _nothing_written():
        contents = writer.write(design, begun, lambda: task() == begun)
    certificate, seconds = contents.certificate, time.monotonic() - began
    if files.json:
        made = {"release": out, "holds": certificate.holds, "rows": len(rows), "resolution": contents.resolution}
        as_json({**made, "seconds": seconds, "certificate": certificate.as_dict()})
    else:
        show_certificate(certificate, f"{output}, protected where {where.in_words(tuple(asked.columns))}")
        for one in tried.values():
            say(one.sentence())
        speed = rows_a_second(len(rows), seconds)
        say_written(f"{out}{os.sep}, {len(rows)} rows in {seconds:.1f} s ({speed})")
        if replaced:
            say_replaced()
    exit_by(certificate.verdict)


def _deciding_options(asked: Asked, fit: Fit, noise: NoiseOptions) -> dict[str, Any]:
    """What decides on a release, besides the data: a run is taken up again only with the same options."""
    return {
        "inputs": asked.columns,
        "output": asked.output[0],
        "region": asked.region[0],
        **asked.promise,
        "family": asked.ranges,
        "spread": asked.spread,
        "accept": [*(asked.accept or ()), *(["raw-records"] if asked.allow_raw_rows else [])],
        **fit.settings(),
        **noise.settings(),
        "serve": noise.serve,
        "fit_outside": fit.fit_outside,
        "rehearsal": not asked.no_rehearsal,
        "fit_rows": fit.fit_rows or ROWS_TO_FIT,
        "resolution": noise.resolution,
    }


def _check_places(data: list[Path], files: list[Path], out: Path) -> None:
    """What is written must not be read, now or the next time."""
    target = where_it_leads(out)
    for file in files:
        if target in file.parents:
            raise InputError(f"{file} is in the folder {out} that the release is written to; give another folder.")
    for path in data:
        if path.is_dir() and (where_it_leads(path) == target or where_it_leads(path) in target.parents):
            raise InputError(f"{out} is inside {path}, where the data are read from; give another folder.")


def rows_to_fit(rows: StoredInputs, where: Region, count: int, outside: bool) -> tuple[Index, bool]:
    """The places of ``count`` rows that are spread evenly over all of them, and whether those inside are left out.

    ``outside`` the region, they are spread over the rows there, and rows inside are beside them: ``fit_prior`` leaves
    these out, and knows then how many there were. Where too few are outside, all count.
    """
    import numpy as np

    from ..arrays import evenly
    from ..data import SAMPLE
    from ..models import least_outside

    places = evenly(len(rows), max(SAMPLE, count))
    inside = where.bind(rows).contains(rows.select(places).values)
    kept = places[~inside]
    if not outside or len(kept) < least_outside(rows.features):
        return places[evenly(len(places), count)], False
    return np.sort(np.concatenate([kept[evenly(len(kept), count)], places[inside]])), True
