"""A run that writes a release part after part, and what is kept of it on the disk so that a kill costs little."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .entropy import SecretKey
from .errors import InputError
from .parts import Part
from .release_folder import DESIGN, KEY, MANIFEST, ROWS, RUN, STAMP, TASK, WRITTEN, prepare_folder, remove_run
from .row_files import RowFile, file_name, sha256_of, sync_folder
from .run_key import find_key, make_key

#: Is told what a person should know.
Note = Callable[[str], None]


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
        return self.folder / RUN / ROWS

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
                (run / ROWS).mkdir(exist_ok=True)
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
    (run / ROWS).mkdir()
    sync_folder(run)
    return FolderRun(folder, key)


def start_over(folder: Path, why: str, note: Note) -> None:
    """Remove what a run has written, because it cannot be taken up."""
    note(f"an interrupted run in {folder} cannot be continued ({why}); it starts over with new noise.")
    remove_run(folder)


def _write(path: Path, text: str) -> None:
    """Write a small file, complete or not at all."""
    temporary = path.with_name(f".sfumato-{os.getpid():x}.tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
