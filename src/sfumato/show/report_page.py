"""The report: one page that the person who signs off a publication can read, print and keep."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FormatError, InputError
from ..files import replacing
from ..progress import progress as show_progress
from ..promise import Finding, in_order
from ..release import Release, load
from ..version import __version__
from .report_facts import Facts
from .report_html import POLICY, STYLE, Html, clean, counted, joined, listed, tag
from .report_sections import (
    BANNER,
    Account,
    Verdict,
    audit_section,
    certificate_section,
    check_audit,
    cost_section,
    learn_section,
    ledger_section,
    pitfalls_section,
    protected_section,
    published_section,
    true_outputs,
    truth_section,
    verdict_box,
    verdict_of,
    verify_section,
    worst_section,
)

# Where a report goes: a page of its own, never over anything else, complete or not at all.

ENDINGS = (".html", ".htm")
_START = b"<!doctype html"


def check_page(path: Any, *sources: str | os.PathLike[str] | None, argument: str = "path") -> Path:
    """``path``, if a report may be written there; nothing but an earlier page is ever replaced."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(path, bytes):
        raise InputError(f"{argument} is {str(path)[:60]!r}; give the name of a file, such as report.html.")
    page = Path(path)
    real = page.resolve()
    for source in sources:
        if source is not None and Path(source).resolve() == real:
            raise InputError(f"{argument} is {str(page)!r}, which the report is made from; write to another file.")
    if page.is_dir():
        raise InputError(f"{argument} is {str(page)!r}, a folder; give the name of a file in it, such as report.html.")
    if page.suffix.lower() not in ENDINGS:
        raise InputError(f"{argument} is {str(page)!r}; a report is a web page: let its name end in .html.")
    if not page.parent.is_dir():
        raise InputError(f"{argument} is {str(page)!r}, but the folder {page.parent} does not exist; make it first.")
    if page.exists() and not _is_page(page):
        raise InputError(f"{argument} is {str(page)!r}, which exists and is no web page; give another name.")
    return page


def write_page(text: str, path: Path) -> Path:
    """Guarantee: written under another name, read back and moved into place; a failure leaves the old page."""
    content = text.encode("utf-8")

    def check(written: str) -> None:
        if Path(written).read_bytes() != content:
            raise FormatError("what was written to the disk is not what was to be written.")

    with replacing(path, check) as file:
        file.write(content)
    return path


def fingerprint(file: Path) -> str:
    """The SHA-256 of a release file, as ``sha256sum`` prints it; of a folder, that of its ``release.sfumato``."""
    state = hashlib.sha256()
    with open(main_file(file), "rb") as opened:
        while block := opened.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def main_file(file: Path) -> Path:
    """The file that says what a release is."""
    return file / "release.sfumato" if file.is_dir() else file


def _is_page(page: Path) -> bool:
    if not page.is_file():
        return False
    with open(page, "rb") as opened:
        start = opened.read(len(_START))
    return not start or start.lower() == _START


LONGEST_TITLE = 200


def report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    truth: Any = None,
    audit: Any = None,
    ledger: Any = None,
    title: str | None = None,
    file: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Path:
    """Write one self-contained web page about a release to ``path``, for the person who signs off a publication.

    ``release`` is a release or the name of its file; ``file`` names the file of a release that is given itself, for its
    checksum. ``ledger`` (a ``sf.Ledger`` or its file) adds what all releases tell together. The certificate is computed
    again. With ``truth``, the true values as ``mechanism.release`` takes them, or ``audit``, what ``sf.audit`` gave,
    the page is for the owner only, and says so in red.

    Guarantee: without ``truth`` and ``audit`` the page is made from the release and the ledger alone, which hold no y.
    It fetches nothing and runs nothing. It is written complete or not at all, and never over anything but a page.

    >>> import os, tempfile, numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 16)
    >>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01)
    >>> release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.5).release(np.sin(t))
    >>> page = sf.report(release, os.path.join(tempfile.mkdtemp(), "report.html"))
    >>> "The promise holds" in page.read_text(encoding="utf-8")
    True
    """
    return write_report(release, path, truth, audit, ledger, title, file, progress)[0]


def write_report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    truth: Any = None,
    audit: Any = None,
    ledger: Any = None,
    title: str | None = None,
    file: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> tuple[Path, Verdict]:
    """``report``, and the verdict that is on the page."""
    if isinstance(release, (str, os.PathLike)):
        source, release = release, load(release)
        named: Path | None = Path(source)
    elif isinstance(release, Release):
        named = _checked_file(file, release)
    else:
        raise InputError(f"release is {str(release)[:60]!r}; give a sf.Release, or the name of its file.")
    book = getattr(ledger, "path", ledger)
    page = check_page(path, named, book if isinstance(book, (str, os.PathLike)) else None)
    if title is not None and (not isinstance(title, str) or not 0 < len(title.strip()) <= LONGEST_TITLE):
        raise InputError(f"title is {str(title)[:60]!r}; give a text of 1 to {LONGEST_TITLE} characters.")
    with show_progress(progress) as step:
        step.stage("checking the promise")
        facts = Facts.of(release)
        account = None if ledger is None else Account.of(ledger, release)
        step.stage("drawing the report")
        owner = _owner_parts(facts, truth, audit)
        pitfalls = list(facts.certificate.findings)
        if account is not None:
            others = [one for one in pitfalls if one.code != "only-release"]
            pitfalls = list(in_order([*account.findings(), *others]))
        verdict = verdict_of(facts, pitfalls)
        text = _page(facts, verdict, pitfalls, account, title, named, owner)
    return write_page(text, page), verdict


def _owner_parts(facts: Facts, truth: Any, audit: Any) -> list[Html]:
    """All that is made with the truth; nothing of it where none is given."""
    parts: list[Html] = []
    if truth is not None:
        parts += truth_section(facts, true_outputs(facts, truth))
    if audit is not None:
        parts += audit_section(check_audit(audit, facts))
    return parts


def _page(
    facts: Facts,
    verdict: Verdict,
    pitfalls: list[Finding],
    account: Account | None,
    title: str | None,
    file: Path | None,
    owner: list[Html],
) -> str:
    """The whole page; ``owner`` are parts that were made elsewhere, with the truth."""
    name = title or f"{listed(facts.released, 4)}: what readers can learn"
    now = datetime.datetime.now(datetime.timezone.utc)
    banner = [tag("p", BANNER, class_="owner", role="alert")] if owner else []
    header = tag(
        "header",
        tag("p", "Privacy report · for the owner" if owner else "Privacy report", class_="kind"),
        tag("h1", name),
        tag("p", _about(facts, now), class_="meta"),
    )
    main = tag(
        "main",
        *verdict_box(facts, verdict),
        *protected_section(facts),
        *certificate_section(facts),
        *learn_section(facts),
        *worst_section(facts),
        *cost_section(facts),
        *published_section(facts),
        *([] if account is None else ledger_section(account)),
        *pitfalls_section(pitfalls),
        *owner,
        *verify_section(
            None if file is None else file.name,
            None if file is None else fingerprint(file),
            None if account is None else account.name,
        ),
        *_end(now, bool(owner)),
    )
    head = joined(
        Html('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="referrer", content="no-referrer"),
        tag("title", f"{'OWNER ONLY: ' if owner else ''}{name}"),
        Html(f"<style>\n{STYLE}\n</style>"),
    )
    body = tag("body", *banner, header, main)
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n{body}\n</html>\n'


def _about(facts: Facts, now: datetime.datetime) -> str:
    rows = counted(facts.rows, "row")
    return f"{rows} of {listed(facts.released, 4)} over {listed(facts.columns, 6)} · {now:%d %B %Y}"


def _end(now: datetime.datetime, owner: bool) -> list[Html]:
    used = ("torch", "gpytorch", "numpy", "scipy", "matplotlib")
    versions = ", ".join(f"{name} {_version(name)}" for name in used)
    sign = [tag("div", "Approved for publication by"), tag("div", "Date"), tag("div", "Signature")]
    return [
        *([] if owner else [tag("h2", "Sign-off"), tag("div", *sign, class_="sign")]),
        tag(
            "footer",
            f"Made by sfumato {__version__} on {now:%Y-%m-%d %H:%M} UTC, with Python {platform.python_version()}, "
            f"{versions}. "
            + ("It contains the truth." if owner else "Made from the release alone; it contains no true value.")
            + " This page loads nothing and runs nothing.",
        ),
    ]


def _version(name: str) -> str:
    try:
        return clean(metadata.version(name))
    except metadata.PackageNotFoundError:
        return "unknown"


def _checked_file(file: str | os.PathLike[str] | None, release: Release) -> Path | None:
    """``file``, if it holds this release: a checksum of anything else would be worse than none."""
    if file is None:
        return None
    stored = load(file)
    same = np.array_equal(np.asarray(stored.outputs), np.asarray(release.outputs))
    if not same or stored.design.digest() != release.design.digest():
        raise InputError(f"file is {str(file)!r}, which holds another release; save this one there first.")
    return Path(file)
