"""The folder of a release that is too large for one file, and the run that writes it, which a kill cannot spoil.

::

    big-release/release.sfumato            manifest, prior, noise: all but the rows
    big-release/rows/part-00000.parquet …  inputs and published outputs
    big-release/.run/                      while a run is under way: its key, and the release that it makes

A release is made inside ``.run``, which only its owner can enter, and moved into place when it is complete. Whoever has
the key can take the noise off the release: it is kept while the run is under way, so that the run can be taken up again
after a kill, and only its owner can read it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data import Part
from ..errors import InputError
from ..files import TEMPORARY_NAME, create_private, replacing, sync_folder
from ..noise import SecretKey
from .container import is_folder_manifest
from .row_files import MANIFEST, ROW_FOLDER, RowFile, file_name, sha256_of

#: Is told what a person should know.
Note = Callable[[str], None]

#: Only its owner can read or write a key.
_MODE = 0o600

#: Where a run works, and what it keeps there besides the release that it makes.
RUN = ".run"
KEY, TASK, DESIGN, STAMP, WRITTEN = "key", "task", "design.sfumato", "stamp", "written"

#: Older versions named what a kill left after the file that it was to be.
_ROW_FILE = re.compile(rf"part-\d{{5,}}\.parquet|\.part-\d{{5,}}\.parquet\.[0-9a-f]+\.tmp|{TEMPORARY_NAME}")
_IN_RUN = re.compile(rf"{KEY}|{TASK}|{STAMP}|{WRITTEN}|{ROW_FOLDER}|.*\.sfumato|{TEMPORARY_NAME}")


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
    ours = is_folder_manifest(folder / MANIFEST) if MANIFEST in names else RUN in names
    fit = _only(folder / ROW_FOLDER, _ROW_FILE) and _only(folder / RUN, _IN_RUN)
    if names and not (ours and fit):
        raise InputError(f"{folder} has things in it that are not a release of sfumato; give a new or an empty folder.")


def _only(folder: Path, names: re.Pattern[str]) -> bool:
    """Whether ``folder`` is not there, or is a real folder with nothing but such names in it."""
    if not os.path.lexists(folder):
        return True
    return folder.is_dir() and not folder.is_symlink() and all(names.fullmatch(name) for name in os.listdir(folder))


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
    if (run / ROW_FOLDER).is_dir():
        (folder / MANIFEST).unlink(missing_ok=True)
        remove_rows(folder / ROW_FOLDER)
        os.rename(run / ROW_FOLDER, folder / ROW_FOLDER)
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


def make_key(path: Path, purpose: str) -> SecretKey:
    """A fresh key, kept in a new file at ``path`` with a note of its ``purpose`` (see ``create_private``)."""
    raw = secrets.token_bytes(32)
    create_private(path, json.dumps({"key": raw.hex(), "for": purpose}).encode())
    return SecretKey(raw)


def find_key(path: Path, purpose: str) -> SecretKey | None:
    """The key in ``path``; None if there is none, or if it was made for another purpose.

    Raises ``InputError`` if others may have read or written it.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{path}, the key file of an interrupted run, cannot be opened: {error.strerror}.") from error
    with os.fdopen(handle, "rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        text = file.read(4096)
    # a file that a crash left half written is as good as none
    with contextlib.suppress(ValueError, TypeError, KeyError):
        tree = json.loads(text)
        if tree["for"] == purpose:
            return SecretKey(bytes.fromhex(tree["key"]))
    return None


def _check_private(path: Path, about: os.stat_result) -> None:
    if os.name != "posix":
        return
    if not stat.S_ISREG(about.st_mode) or stat.S_IMODE(about.st_mode) != _MODE or about.st_uid != os.getuid():
        raise InputError(
            f"{path}, the key file of an interrupted run, is not a file that only you can read (mode 0600): others may "
            f"know the noise. Remove the folder {path.parent} and start again."
        )


@dataclass(frozen=True)
class FolderRun:
    """A run under way in ``folder``; ``key`` is None once the release is complete and the key is not needed.

    Guarantee: a run is only taken up again with the key it began with, for the same task and the same values.
    """

    folder: Path
    key: SecretKey | None

    @property
    def design(self) -> Path:
        """Where the design is: to compute it again could change its last bits, and with them the noise."""
        return self.folder / RUN / DESIGN

    @property
    def manifest(self) -> Path:
        """Where the release's manifest is written; with it the release is complete."""
        return self.folder / RUN / MANIFEST

    @property
    def rows(self) -> Path:
        return self.folder / RUN / ROW_FOLDER

    @property
    def complete(self) -> bool:
        return self.manifest.is_file()

    def agrees(self, message: bytes) -> bool:
        """Whether rows may be written with the noise for ``message``: the first time, or the same as before."""
        assert self.key is not None
        path = self.folder / RUN / STAMP
        # normals tell nothing of the key, nor of those for other messages
        stamp = self.key.normals(b"sfumato run 1\x00" + message, 4).tobytes().hex()
        if path.is_file():
            return path.read_text(encoding="utf-8") == stamp
        _write(path, stamp)
        return True

    def record(self, file: RowFile) -> None:
        """Remember that ``file`` is written."""
        with open(self.folder / RUN / WRITTEN, "a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(file)) + "\n")

    def written(self, parts: Sequence[Part]) -> dict[int, RowFile]:
        """The row files that are there as they were recorded, by the places of their parts; others are removed."""
        recorded = {file.name: file for file in self._recorded()}
        kept: dict[int, RowFile] = {}
        for number, part in enumerate(parts):
            file = recorded.get(file_name(number))
            if file is not None and file.rows == part.rows and self._intact(file):
                kept[number] = file
        names = {file.name for file in kept.values()}
        for name in os.listdir(self.rows):
            if name not in names:
                (self.rows / name).unlink()
        return kept

    def _recorded(self) -> list[RowFile]:
        files = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.folder / RUN / WRITTEN).read_text(encoding="utf-8").splitlines():
                # a kill may have cut the last line
                with contextlib.suppress(ValueError, TypeError):
                    files.append(RowFile(**json.loads(line)))
        return files

    def _intact(self, file: RowFile) -> bool:
        with contextlib.suppress(OSError), open(self.rows / file.name, "rb") as opened:
            return sha256_of(opened) == file.sha256
        return False


def open_run(folder: Path, task: dict[str, Any], note: Note) -> FolderRun:
    """Take up the run that ``task`` left in ``folder``, or start a new one."""
    prepare_folder(folder)
    purpose = hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()
    run = folder / RUN
    if run.is_dir():
        with contextlib.suppress(FileNotFoundError):
            known = (run / TASK).read_text(encoding="utf-8") == purpose
            if known and (run / MANIFEST).is_file():
                return FolderRun(folder, None)
            key = find_key(run / KEY, purpose)
            if key is not None and known:
                (run / ROW_FOLDER).mkdir(exist_ok=True)
                return FolderRun(folder, key)
        if (run / MANIFEST).is_file():
            raise InputError(
                f"{folder} holds a complete release of other data, or with other options, that was interrupted while "
                "it was moved into place; give the same command or call as then to finish it, or use another folder."
            )
        start_over(folder, "its key file is gone, or the data or the options are not the same any more", note)
    run.mkdir(mode=0o700)
    key = make_key(run / KEY, purpose)
    _write(run / TASK, purpose)
    (run / ROW_FOLDER).mkdir()
    sync_folder(run)
    return FolderRun(folder, key)


def start_over(folder: Path, why: str, note: Note) -> None:
    """Remove what a run has written, because it cannot be taken up."""
    note(f"an interrupted run in {folder} cannot be continued ({why}); it starts over with new noise.")
    remove_run(folder)


def _write(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())
