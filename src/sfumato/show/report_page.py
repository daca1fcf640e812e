"""The report: one page that the person who signs off a publication can read, print and keep."""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from ..arrays import Array
from ..data import stacked_outputs, without_labels
from ..errors import FormatError, InputError
from ..evaluate import AUDIT_HEADER, REHEARSAL_HEADER, Audit, Rehearsal
from ..files import OWNER_ONLY, replacing, where_it_leads
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Finding
from ..proof import Certificate
from ..release import Release, digest_outputs, load
from ..text import counted, listed, shown
from ..version import __version__
from .report_facts import Account, Facts, multiple, number, plus_minus, share
from .report_figures import Picture, account_picture, audit_picture, public_pictures, truth_pictures
from .report_records import RecordFacts

ENDINGS = (".html", ".htm")
_START = b"<!doctype html"

#: A title that takes more characters is no title.
LONGEST_TITLE = 200

#: The libraries that a report names with their versions.
_LIBRARIES = ("torch", "gpytorch", "numpy", "scipy", "matplotlib")


def report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    truth: Any = None,
    audit: Any = None,
    rehearsal: Any = None,
    ledger: Any = None,
    accept: Sequence[str] = (),
    title: str | None = None,
    file: str | os.PathLike[str] | None = None,
    progress: AskedProgress = True,
) -> Path:
    """Write one self-contained web page about a release to ``path``, for the person who signs off a publication.

    ``release`` is a release or the name of its file; ``file`` names the file of a release that is given itself, for its
    checksum. ``ledger`` (a ``sf.Ledger`` or its file) adds what all releases tell together. The certificate is computed
    again. With ``truth``, the true values as ``mechanism.release`` takes them, ``audit``, what ``sf.audit`` gave,
    or ``rehearsal``, what ``sf.rehearse`` gave, the page is for the owner only, and says so in red. What these found
    joins the findings and counts in the verdict; ``accept`` names the codes of high findings in spite of which you
    publish.

    Guarantee: without ``truth``, ``audit`` and ``rehearsal`` the page is made from the release and the ledger alone,
    which hold no y. It fetches nothing and runs nothing. It is written complete or not at all, and never over anything
    but a page.

    >>> import os, tempfile, numpy as np, sfumato as sf
    >>> t = np.linspace(0.0, 3.0, 16)
    >>> prior = sf.fit_prior(t, np.sin(t), lengthscale=0.5, noise=0.01, exclude=sf.Box(1.0, 2.0))
    >>> release = sf.protect(prior, t, sf.Box(1.0, 2.0), alpha=0.5).release(np.sin(t))
    >>> page = sf.report(release, os.path.join(tempfile.mkdtemp(), "report.html"))
    >>> "The promise holds" in page.read_text(encoding="utf-8")
    True
    """
    return write_report(release, path, truth, audit, rehearsal, ledger, accept, title, file, progress)[0]


def write_report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    truth: Any = None,
    audit: Any = None,
    rehearsal: Any = None,
    ledger: Any = None,
    accept: Sequence[str] = (),
    title: str | None = None,
    file: str | os.PathLike[str] | None = None,
    progress: AskedProgress = True,
) -> tuple[Path, Facts]:
    """``report``, and the facts that are on the page."""
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
    owners = any(one is not None for one in (truth, audit, rehearsal))
    if accept and not owners:
        raise InputError(
            "accept is given, but this page is for everyone and shows what the release itself says; accept findings in "
            "protect(…, accept=…), or give the audit or the rehearsal that found them."
        )
    with show_progress(progress) as step:
        step.stage("checking the promise")
        account = None if ledger is None else Account.of(ledger, release)
        public = Facts.of(release, account)
        expected = _expected(public.certificate, account)
        owner = OwnersEyes.of(public, truth, audit, rehearsal) if owners else None
        facts = public if owner is None else public.for_owner(owner.findings, accept)
        step.stage("drawing the report")
        text = _page(facts, account, title, named, owner, expected)
    return write_page(text, page, private=owner is not None), facts


@dataclass(frozen=True, eq=False)
class OwnersEyes:
    """What only the owner may see: it is made with the truth, or was by an audit or a rehearsal."""

    errors: list[tuple[str, str, str, str]]
    pictures: list[Picture]
    audit: Audit | None
    audit_picture: Picture | None
    rehearsal: Rehearsal | None

    audit_header = tuple(name.capitalize() for name in AUDIT_HEADER)
    rehearsal_header = tuple(name.capitalize() for name in REHEARSAL_HEADER)

    @classmethod
    def of(cls, facts: Facts, truth: Any, audit: Any, rehearsal: Any) -> OwnersEyes:
        found = None if audit is None else check_audit(audit, facts)
        drawn = None if found is None else audit_picture(found)
        if rehearsal is not None and not isinstance(rehearsal, Rehearsal):
            raise InputError(f"rehearsal is {str(rehearsal)[:60]!r}; give what sf.rehearse(prior, X, y, region) gave.")
        if truth is None:
            return cls([], [], found, drawn, rehearsal)
        y = true_outputs(facts, truth)
        return cls(errors_on(facts, y), truth_pictures(facts, y), found, drawn, rehearsal)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found with the truth."""
        return tuple(one for each in (self.rehearsal, self.audit) if each is not None for one in each.findings)

    @property
    def below(self) -> list[int]:
        """The rows of the audit's table that are below the floor."""
        outcomes = () if self.audit is None else self.audit.outcomes
        return [place for place, outcome in enumerate(outcomes) if outcome.below]


def true_outputs(facts: Facts, truth: Any) -> Array:
    """One true value for each row of the release."""
    try:
        return stacked_outputs(facts.design.inputs, without_labels(truth, "truth"))
    except InputError as error:
        raise InputError(f"truth does not fit the release: {error}") from error


def check_audit(audit: Any, facts: Facts) -> Audit:
    if not isinstance(audit, Audit):
        raise InputError(f"audit is {str(audit)[:60]!r}; give what sf.audit(release, y) gave.")
    if audit.output != facts.release.output_name:
        raise InputError(f"audit is about {audit.output!r}, but the release is about {facts.release.output_name!r}.")
    if audit.digest != digest_outputs(np.asarray(facts.release.outputs)):
        raise InputError("audit is about another release; give what sf.audit made of this one.")
    return audit


def errors_on(facts: Facts, y: Array) -> list[tuple[str, str, str, str]]:
    """How far published values are from the true ones, and how far the best reader is off, in root mean square."""
    design, release = facts.design, facts.release
    rows = np.asarray(design.inputs.values)
    published, inside = np.asarray(release.outputs), design.region.contains_for_any_output(rows)
    found = []
    for name in facts.released:
        own = design.inputs.rows_about(name)
        off = release.predict(design.inputs.outputs.plain(rows[own]), name).mean - y[own]
        for within in (True, False):
            mask = inside[own] == within
            if np.any(mask):
                sizes = [np.sqrt(np.mean(values[mask] ** 2)) for values in (published[own] - y[own], off)]
                label, count = facts.rows_label(name, within), f"{int(np.sum(mask)):,}"
                found.append((label, count, plus_minus(float(sizes[0])), plus_minus(float(sizes[1]))))
    return found


def _page(
    facts: Facts,
    account: Account | None,
    title: str | None,
    file: Path | None,
    owner: OwnersEyes | None,
    expected: str,
) -> str:
    """The whole page; ``owner`` is the one part that was made with the truth."""
    checksum = None if file is None else fingerprint(file)
    name = shlex.quote("RELEASE.sfumato" if file is None else file.name)
    commands = [f"sha256sum {name}"] if checksum else []
    commands.append(f"sfumato certify {name}")
    if account is not None:
        commands.append(f"sfumato ledger verify {shlex.quote(account.name)}")
    return _environment().get_template("report.html").render(
        facts=facts,
        records=RecordFacts(facts),
        owner=owner,
        owner_only=OWNER_ONLY,
        account=account,
        account_picture=None if account is None else account_picture(account),
        pictures=public_pictures(facts),
        title=title or f"{listed(facts.released, 4)}: what readers can learn",
        commands=commands,
        checksum=checksum,
        expected=expected,
        now=datetime.datetime.now(datetime.timezone.utc),
        version=__version__,
        python=platform.python_version(),
        libraries=", ".join(f"{library} {_version(library)}" for library in _LIBRARIES),
    )  # fmt: skip


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return "of an unknown version"


def _expected(certificate: Certificate, account: Account | None) -> str:
    """What ``sfumato certify`` says at its end; it does not know of a ledger."""
    of_ledger = [] if account is None else account.findings
    own = [one for one in certificate.findings if one not in of_ledger]
    return replace(certificate, findings=tuple(own)).verdict_in_words


@cache
def _environment() -> jinja2.Environment:
    """The templates. Every value is escaped; what is missing is an error, not a gap in the page."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_readable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"counted": counted, "listed": listed, "multiple": multiple, "number": number, "share": share}
    made.filters |= {"pm": plus_minus, "count": "{:,}".format}
    return made


def _readable(value: Any) -> Any:
    """A value as it is to be read, whatever is in it: nothing unseen, and numbers keep their signs on their line."""
    if isinstance(value, Markup):
        return value
    return shown(value).replace("± ", "±\u00a0").replace(" %", "\u00a0%").replace(" × 10", "\u00a0×\u00a010")


def check_page(path: Any, *sources: str | os.PathLike[str] | None, argument: str = "path") -> Path:
    """``path``, if a report may be written there; nothing but an earlier page is ever replaced."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(path, bytes):
        raise InputError(f"{argument} is {str(path)[:60]!r}; give the name of a file, such as report.html.")
    page = Path(path)
    real = where_it_leads(page)
    for source in sources:
        if source is not None and where_it_leads(source) == real:
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


def _is_page(page: Path) -> bool:
    if not page.is_file():
        return False
    with open(page, "rb") as opened:
        start = opened.read(len(_START))
    return not start or start.lower() == _START


def write_page(text: str, path: Path, *, private: bool = False) -> Path:
    """Guarantee: written under another name, read back and moved into place; a failure leaves the old page."""
    content = text.encode("utf-8")

    def check(written: str) -> None:
        if Path(written).read_bytes() != content:
            raise FormatError("what was written to the disk is not what was to be written.")

    with replacing(path, check, private=private) as file:
        file.write(content)
    return path


def fingerprint(file: Path) -> str:
    """The SHA-256 of a release file, as ``sha256sum`` prints it; of a folder, that of its ``release.sfumato``."""
    state = hashlib.sha256()
    with open(file / "release.sfumato" if file.is_dir() else file, "rb") as opened:
        while block := opened.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _checked_file(file: str | os.PathLike[str] | None, release: Release) -> Path | None:
    """``file``, if it holds this release: a checksum of anything else would be worse than none."""
    if file is None:
        return None
    stored = load(file)
    same = np.array_equal(np.asarray(stored.outputs), np.asarray(release.outputs))
    if not same or stored.design.digest() != release.design.digest():
        raise InputError(f"file is {str(file)!r}, which holds another release; save this one there first.")
    return Path(file)
