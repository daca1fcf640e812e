"""The folder of a release that is too large for one file.

::

    big-release/release.sfumato            manifest, prior, noise: all but the rows
    big-release/rows/part-00000.parquet …  inputs and published outputs
    big-release/.run/                      while a run is under way: its key, and the release that it makes

A release is made inside ``.run``, which only its owner can enter, and moved into place when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .container import FORMAT, LARGEST_HEADER
from .errors import InputError
from .row_files import sync_folder

MANIFEST, ROWS, RUN = "release.sfumato", "rows", ".run"
KEY, TASK, DESIGN, STAMP, WRITTEN = "key", "task", "design.sfumato", "stamp", "written"

_ROW_FILE = re.compile(r"part-\d{5,}\.parquet|\.part-\d{5,}\.parquet\.[0-9a-f]+\.tmp")
_IN_RUN = re.compile(rf"{KEY}|{TASK}|{STAMP}|{WRITTEN}|{ROWS}|.*\.sfumato|\.sfumato-[0-9a-f]+\.tmp")


def has_release(folder: Path) -> bool:
    """Whether there is a complete release in ``folder``."""
    return (folder / MANIFEST).is_file()


def prepare_folder(folder: Path) -> None:
    """Make ``folder``, if a release may be written to it."""
    check_folder(folder)
    folder.mkdir(exist_ok=True)


def check_folder(folder: Path) -> None:
    """Raise ``InputError`` if ``folder`` holds anything but what sfumato has written."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder to write the release to.")
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent} does not exist; make it first.")
    names = set(os.listdir(folder)) if folder.exists() else set()
    ours = _is_manifest(folder / MANIFEST) if MANIFEST in names else RUN in names
    fit = _only(folder / ROWS, _ROW_FILE) and _only(folder / RUN, _IN_RUN)
    if names and not (ours and fit):
        raise InputError(f"{folder} has things in it that are not a release of sfumato; give a new or an empty folder.")


def _only(folder: Path, names: re.Pattern[str]) -> bool:
    """Whether ``folder`` is not there, or is a real folder with nothing but such names in it."""
    if not os.path.lexists(folder):
        return True
    return folder.is_dir() and not folder.is_symlink() and all(names.fullmatch(name) for name in os.listdir(folder))


def _is_manifest(path: Path) -> bool:
    """Whether ``path`` begins like the manifest of a release in a folder, of any version."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        about = json.loads(file.read(min(length, LARGEST_HEADER)))["__metadata__"]
        return about["format"] == FORMAT and json.loads(about["manifest"])["row_files"] is not None
    return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else writes to ``folder`` in the meantime; ``InputError`` if somebody does. A kill ends it."""
    try:
        import fcntl
    except ImportError:  # there is no such lock on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {folder}; wait for it, or give another folder.") from None
        yield
    finally:
        os.close(handle)


def publish(folder: Path) -> None:
    """Move the complete release in ``.run`` into place and forget its key.

    Guarantee: readers see the old release, none, or the new one. If it is interrupted, it can be done again.
    """
    run = folder / RUN
    if (run / ROWS).is_dir():
        (folder / MANIFEST).unlink(missing_ok=True)
        remove_rows(folder / ROWS)
        os.rename(run / ROWS, folder / ROWS)
        sync_folder(folder)
    (run / KEY).unlink(missing_ok=True)
    os.replace(run / MANIFEST, folder / MANIFEST)
    sync_folder(folder)
    shutil.rmtree(run)


def remove_rows(folder: Path) -> None:
    """Remove row files, and nothing else."""
    if folder.is_dir():
        for name in os.listdir(folder):
            if _ROW_FILE.fullmatch(name):
                (folder / name).unlink()
        folder.rmdir()


def remove_run(folder: Path) -> None:
    """Remove what an unfinished run has left, its key first."""
    (folder / RUN / KEY).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder / RUN)


def abandon(folder: Path) -> None:
    """Remove an unfinished run, and ``folder`` too if nothing else is in it."""
    remove_run(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()
