"""Where a report goes: a page of its own, never over anything else, complete or not at all."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from .container import write_atomically
from .errors import FormatError, InputError

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

    write_atomically([content], path, check)
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
