"""Writing a release of any number of rows to a folder, part after part, and again from where it was killed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..arrays import Array
from ..data import Engine, Part, StoredColumn, StoredInputs
from ..errors import GuaranteeError, InputError
from ..files import create_private, replacing, sync_folder
from ..noise import RandomFunction, SecretKey, round_outputs
from ..progress import progress as show_progress
from ..promise import Design
from ..proof import Certificate
from .file import Contents, read_release, write_release
from .release import resolution_for, why_not
from .row_files import (
    DESIGN,
    KEY,
    MANIFEST,
    ROW_FOLDER,
    RUN,
    STAMP,
    TASK,
    WRITTEN,
    RowFile,
    abandon,
    file_name,
    locked,
    prepare_folder,
    publish,
    released_name,
    remove_run,
    sha256_of,
    write_rows,
)

# The key file of a run that writes a release part after part, so that the run can be taken up again after a kill.
#
# Whoever has the key can take the noise off the release. The file exists while the run is under way, and only its owner
# can read it.

_MODE = 0o600
_BYTES = 32


def make_key(path: Path, purpose: str) -> SecretKey:
    """A fresh key, kept in a new file at ``path`` with a note of its ``purpose`` (see ``create_private``)."""
    raw = secrets.token_bytes(_BYTES)
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


# A run that writes a release part after part, and what is kept of it on the disk so that a kill costs little.

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


#: Under which name the parts have what is released.
_OUTPUTS = "outputs"


@dataclass(frozen=True, eq=False)
class Digest:
    """The work on a part: a fingerprint of its inputs and outputs."""

    def __call__(self, part: Part) -> bytes:
        state = hashlib.sha256(np.ascontiguousarray(part.inputs() + 0.0, dtype="<f8").tobytes())
        # + 0.0 turns −0 into 0: equal data must get equal noise
        state.update(np.ascontiguousarray(part.column(_OUTPUTS) + 0.0, dtype="<f8").tobytes())
        return state.digest()


@dataclass(frozen=True, eq=False)
class Blur:
    """The work on a part: its outputs with noise, rounded, in a row file; ``files`` are their names by first row.

    It holds the noise, as secret as the values; not the key.
    """

    function: RandomFunction
    resolution: float
    names: tuple[str, ...]
    folder: Path
    files: Mapping[int, str]

    def __call__(self, part: Part) -> RowFile:
        X = part.inputs()
        released = round_outputs(part.column(_OUTPUTS) + self.function.at(X), self.resolution)
        return write_rows(self.folder / self.files[part.start], self.names, np.column_stack([X, released]))

    def __repr__(self) -> str:
        return "<noise for the rows of a release, secret>"


@dataclass(frozen=True, eq=False)
class FolderWriter:
    """Releases ``y`` at ``rows`` to ``folder``. ``note`` is told what a person should know of an interrupted run."""

    folder: Path
    rows: StoredInputs
    y: StoredColumn
    engine: Engine
    note: Note
    output_name: str = "y"
    resolution: float | None = None
    device: str = "cpu"
    progress: bool = False

    def write(
        self,
        design: Callable[[], tuple[Design, Certificate]],
        task: dict[str, Any],
        unchanged: Callable[[], bool] = lambda: True,
    ) -> Contents:
        """Write a release with the noise of ``design()``.

        ``task`` describes the data and the options: if a run of the same task was interrupted it is taken up with the
        same design and the same noise, and ``design`` is not called. ``unchanged`` says whether the data are still
        those of the task, and is asked before anything is published.

        Guarantee: a release appears in the folder complete or not at all, and replaces an older one only then. Nothing
        is written under a failed certificate. The noise is a function of a new key and of (design, rows, y); the key
        is in ``.run``, where only its owner can read it, until the release is complete or the run fails.
        """
        prepare_folder(self.folder)
        with locked(self.folder):
            run, message = self._begin(design, task)
            if not run.complete:
                # always from the file: what was written down is what a run that is taken up will find
                contents = read_release(run.design, self.rows)
                files = self._write_rows(run, contents, message)
                if not unchanged():
                    abandon(self.folder)
                    raise InputError("the data have changed while they were read; nothing was released, start again.")
                self._write_manifest(contents, files, run.manifest)
            contents = read_release(run.manifest, self.rows)
            publish(self.folder)
        return contents

    def _begin(self, design: Callable[[], tuple[Design, Certificate]], task: dict[str, Any]) -> tuple[FolderRun, bytes]:
        """A run, new or taken up, with its design written down, and the message that its noise is made for."""
        run = open_run(self.folder, task, self.note)
        if run.complete:
            return run, b""
        if not run.design.is_file():
            try:
                # the digests of the row files are not known yet
                files = [RowFile(file_name(number), part.rows, "") for number, part in enumerate(self._parts())]
                self._write_manifest(self._contents(*design()), files, run.design)
            except BaseException:
                abandon(self.folder)
                raise
        message = self._message(run.design.read_bytes())
        if run.agrees(message):
            return run, message
        start_over(self.folder, "the values are not the same any more", self.note)
        return self._begin(design, task)

    def _contents(self, design: Design, certificate: Certificate) -> Contents:
        if not certificate.holds:
            raise GuaranteeError(why_not(certificate))
        design.noise.as_function()
        step = resolution_for(design, self.resolution)
        assert isinstance(step, float)
        return Contents(design, certificate, cast(Array, self.y), step, False, self.output_name)

    def _message(self, design: bytes) -> bytes:
        """What the noise depends on besides the key: the design and the values."""
        state = hashlib.sha256(b"sfumato folder release 1\x00" + hashlib.sha256(design).digest())
        with show_progress(self.progress) as step:
            step.stage("reading the outputs")
            for digest in self.engine.each(Digest(), self._parts(), step.counter(len(self.rows))):
                state.update(digest)
        return state.digest()

    def _parts(self) -> Sequence[Part]:
        return self.rows.parts({_OUTPUTS: self.y})

    def _write_rows(self, run: FolderRun, contents: Contents, message: bytes) -> list[RowFile]:
        """Write the row files that are not there yet."""
        parts, noise = self._parts(), contents.design.noise.as_function()
        assert run.key is not None
        written = run.written(parts)
        if written:
            self.note(f"continuing an interrupted run: {len(written)} of {len(parts)} parts are written already.")
        missing = [number for number in range(len(parts)) if number not in written]
        to_do = [parts[number] for number in missing]
        assert isinstance(contents.resolution, float)
        work = Blur(
            noise.function(run.key.normals(message, noise.normals_needed), self.device),
            contents.resolution,
            (*self.rows.names, released_name(self.output_name, self.rows.names)),
            run.rows.absolute(),
            {parts[number].start: file_name(number) for number in missing},
        )
        with show_progress(self.progress) as step:
            step.stage("adding the noise")
            made = self.engine.each(work, to_do, step.counter(sum(part.rows for part in to_do)))
            for number, file in zip(missing, made, strict=True):
                run.record(file)
                written[number] = file
        return [written[number] for number in range(len(parts))]

    def _write_manifest(self, contents: Contents, files: list[RowFile], path: Path) -> None:
        write_release(contents, path, files, self.rows)
