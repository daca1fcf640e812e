"""The files of a publication: the release, its values as a table and its report, in the order that is safe."""

from __future__ import annotations

from pathlib import Path

from ..data import write_table
from ..ledger import Ledger
from ..release import Release
from .report_page import report as write_page_about


def write_publication(
    release: Release,
    out: Path,
    *,
    csv: Path | None = None,
    report: Path | None = None,
    ledger: Ledger | None = None,
    progress: bool = True,
) -> tuple[Path, ...]:
    """The paths that were written: the release file, then its table and its report, where they are named.

    A mechanism of a ledger has written into the ledger before it gave ``release`` away, so that the ledger never knows
    less than there is to read. The report comes last: it has the checksum of the release file. Each file is written
    complete or not at all, over one that is there already; whether that is wanted has to be asked before.
    """
    release.save(out)
    if csv is not None:
        write_table(release.to_frame(), csv)
    if report is not None:
        write_page_about(release, report, ledger=ledger, file=out, progress=progress)
    return tuple(path for path in (out, csv, report) if path is not None)
