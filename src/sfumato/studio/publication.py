"""Publish: under which names files are written, and what is read back of them afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from ..data import table_stem
from ..errors import InputError
from ..files import where_it_leads
from ..ledger import Ledger
from ..proof import Certificate
from ..release import Release, load
from ..show import check_page, write_publication
from ..text import shown

#: The files that are written beside each other, and how their names end.
ENDINGS = {"release file": ".sfumato", "table": ".csv", "report": ".html"}

#: No name of a file is longer.
LONGEST = 120

#: Characters that some system gives another meaning, and names that are devices there.
_FORBIDDEN = '<>:"/\\|?*'
_DEVICES = {"CON", "PRN", "AUX", "NUL", *(f"{port}{number}" for port in ("COM", "LPT") for number in range(10))}


def plain_name(name: str, what: str) -> str:
    """``name``, if it is one that every system takes for a file in this folder and for nothing else.

    >>> plain_name("orbit.sfumato", "release file")
    'orbit.sfumato'
    >>> plain_name("../orbit.sfumato", "release file")
    Traceback (most recent call last):
        ...
    sfumato.errors.InputError: the name of the release file is '../orbit.sfumato'; it must not have a '/': files are \
written to the folder that the studio was started in. Give a plain name, such as 'orbit.sfumato'.
    """
    ending = ENDINGS.get(what, ".ledger")
    wrong = next((one for one in name if one in _FORBIDDEN), None)
    why = ""
    if not name.strip():
        why = "it is empty"
    elif shown(name) != name:
        why = "it has a character that cannot be seen"
    elif wrong is not None:
        folder = ": files are written to the folder that the studio was started in" * (wrong in "/\\")
        why = f"it must not have a {wrong!r}{folder}"
    elif name[0] in ".-~ " or name[-1] in ". ":
        why = "it must not begin with a dot, a dash, a tilde or a space, nor end with a dot or a space"
    elif name.split(".")[0].strip().upper() in _DEVICES:
        why = "some systems take it for a device"
    elif len(name.encode()) > LONGEST:
        why = f"it takes more than {LONGEST} bytes"
    elif what in ENDINGS and Path(name).suffix.lower() != ending:
        why = f"it must end in {ending}"
    if why:
        raise InputError(
            f"the name of the {what} is {shown(name)[:80]!r}; {why}. Give a plain name, such as 'orbit{ending}'."
        )
    return name


def stem_of(data: str) -> str:
    """The name of the data without its ending, if files can be called so; else "release".

    >>> stem_of("data/orbit.csv.gz"), stem_of("")
    ('orbit', 'release')
    """
    stem = table_stem(PurePath(data.replace("\\", "/")))
    try:
        return plain_name(f"{stem}.sfumato", "release file").removesuffix(".sfumato")
    except InputError:
        return "release"


@dataclass(frozen=True)
class Places:
    """Where the files of a publication go: into one folder, under plain names; None: that one is not written."""

    out: Path
    csv: Path | None = None
    report: Path | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """Those that are written."""
        return tuple(path for path in (self.out, self.csv, self.report) if path is not None)

    @classmethod
    def checked(
        cls,
        folder: Path,
        name: str,
        csv: str | None = None,
        report: str | None = None,
        *,
        replace: bool = False,
        reads: tuple[Path, ...] = (),
    ) -> Places:
        """The places of files with these names; an ``InputError`` where one must not be written.

        ``reads`` are the files that this is made from: the data and the ledger. With ``replace`` files that are there
        already are written over.
        """
        given = dict(zip(ENDINGS, (name, csv, report), strict=True))
        named = {what: folder / plain_name(one, what) for what, one in given.items() if one is not None}
        sources = {where_it_leads(path) for path in reads}
        folded = [path.name.casefold() for path in named.values()]
        for what, path in named.items():
            if where_it_leads(path) in sources:
                raise InputError(f"the {what} {path.name!r} is what this is made from; give another name.")
            if folded.count(path.name.casefold()) > 1:
                raise InputError(f"two of the files are called {path.name!r}; give them different names.")
            if os.path.islink(path) or (path.exists() and not path.is_file()):
                raise InputError(f"{path.name!r} is there already and is no plain file; give another name.")
            if path.exists() and not replace:
                raise InputError(
                    f"the {what} {path.name!r} is there already; give another name, or tick that it may be replaced."
                )
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(f"the folder {str(folder)!r} cannot be written to; start the studio in another one.")
        places = cls(named["release file"], named.get("table"), named.get("report"))
        if places.report is not None:
            check_page(places.report, argument="the report")  # nothing but an earlier page is replaced by one
        return places


@dataclass(frozen=True, eq=False)
class Written:
    """What was published: the files, the same in memory by their names, and the certificate of the file itself.

    ``certificate`` was computed again from the file that was written, as a reader does it. ``replaced``: there was
    another release of that name.
    """

    paths: tuple[Path, ...]
    contents: Mapping[str, bytes]
    certificate: Certificate
    replaced: bool = False
    ledger: Path | None = None


def publish_files(release: Release, places: Places, ledger: Ledger | None = None) -> Written:
    """Write the files of ``release`` to ``places``, read the release file back and certify it as readers do.

    With a ``ledger``, which must have been told of the release already, the report accounts for all of its releases.
    Nothing here can be cancelled: a publication that has begun is finished.
    """
    replaced = places.out.exists()
    paths = write_publication(release, places.out, csv=places.csv, report=places.report, ledger=ledger, progress=False)
    contents = {path.name: path.read_bytes() for path in paths}
    certificate = load(places.out).certify(progress=False)
    return Written(paths, contents, certificate, replaced, None if ledger is None else Path(ledger.path))
