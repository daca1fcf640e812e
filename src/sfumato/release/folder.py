"""Writing a release of any number of rows to a folder, part after part, and again from where it was killed.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from ..arrays import Array, Index
from ..data import Engine, Part, StoredColumn, StoredInputs
from ..errors import GuaranteeError, InputError
from ..files import TEMPORARY_NAME, create_private, replacing, sync_folder, told_of_failures
from ..models import Prior
from ..noise import FunctionalNoise, RandomFunction, RecordNoise, SecretKey, round_outputs
from ..progress import AskedProgress
from ..progress import progress as show_progress
from ..promise import Design
from ..proof import Certificate, Summary
from .container import is_folder_manifest
from .file import (
    MANIFEST,
    ROW_FOLDER,
    Contents,
    RowFile,
    file_name,
    read_release,
    released_name,
    sha256_of,
    write_release,
    write_rows,
)
from .release import why_not
from .rounding import FAR, Expected, check_rows, far_in_words, resolution_for, typical_std
from .suppressed_functions import put_in_place, sums_over

#: Is told what a person should know.
Note = Callable[[str], None]

#: Under which names the parts have what is released, and V where it differs from row to row.
_OUTPUTS, _ERRORS = "outputs", "noise_0"

#: Only its owner can read or write a key.
_MODE = 0o600

#: Where a run works, and what it keeps there besides the release that it makes.
RUN = ".run"
KEY, TASK, DESIGN, STAMP, WRITTEN, DONE = "key", "task", "design.sfumato", "stamp", "written", "done"

#: Older versions named what a kill left after the file that it was to be.
_ROW_FILE = re.compile(rf"part-\d{{5,}}\.parquet|\.part-\d{{5,}}\.parquet\.[0-9a-f]+\.tmp|{TEMPORARY_NAME}")
_IN_RUN = re.compile(rf"{KEY}|{TASK}|{STAMP}|{WRITTEN}|{DONE}|{ROW_FOLDER}|.*\.sfumato|{TEMPORARY_NAME}")


def has_release(folder: Path) -> bool:
    """Whether there is a complete release in ``folder``."""
    return (folder / MANIFEST).is_file()


def has_run(folder: Path) -> bool:
    """Whether there is something of a run in ``folder`` that can be taken up, or of a release."""
    return has_release(folder) or (folder / RUN).exists()


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


def prepare_folder(folder: Path) -> None:
    """Make ``folder``, if a release may be written to it."""
    check_folder(folder)
    folder.mkdir(exist_ok=True)


@contextlib.contextmanager
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
    progress: AskedProgress = False

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
        is written under a certificate that fails, or that says "do not publish", nor of values that noise cannot hide
        (``check_rows``), nor of values that change while they are read. The noise is a function of a new key and of
        (design, rows, y); the key is in ``.run``, where only its owner can read it, until the release is complete or
        the run fails.
        """
        prepare_folder(self.folder)
        with locked(self.folder):
            if is_published(self.folder, task):
                _tidy_up(self.folder)
                return read_release(self.folder / MANIFEST, self.rows)
            run, contents, read = self._begin(design, task)
            if contents is not None:
                files = self._write_rows(run, contents, read)
                if not unchanged():
                    self._start_again()
                write_release(contents, run.place / MANIFEST, files, self.rows)
            contents = read_release(run.place / MANIFEST, self.rows)
            publish(self.folder)
        return contents

    def _begin(
        self, design: Callable[[], tuple[Design, Certificate]], task: dict[str, Any]
    ) -> tuple[FolderRun, Contents | None, AllRead]:
        """A run, new or taken up, with its design as written down, and what was read; None where only the last step is
        left."""
        run = open_run(self.folder, task, self.note)
        if run.complete:
            return run, None, AllRead(b"", {})
        # a design that was computed again could differ in its last bits, and with them the noise
        written = run.place / DESIGN
        if not written.is_file():
            try:
                # the digests of the row files are not known yet
                files = [RowFile(file_name(number), part.rows, "") for number, part in enumerate(self._parts())]
                write_release(self._contents(*design()), written, files, self.rows)
            except BaseException:
                abandon(self.folder)
                raise
        # always from the file: what was written down is what a run that is taken up will find
        contents = read_release(written, self.rows)
        read = self._read(written.read_bytes(), contents)
        if run.agrees(read.message):
            return run, contents, read
        start_over(self.folder, "the values are not the same any more", self.note)
        return self._begin(design, task)

    def _contents(self, design: Design, certificate: Certificate) -> Contents:
        if certificate.verdict == "do not publish":
            raise GuaranteeError(why_not(certificate))
        design.noise.as_function()
        step = resolution_for(design, self.resolution)
        return Contents(design, certificate, cast(Array, self.y), step, False, self.output_name)

    def _start_again(self) -> NoReturn:
        abandon(self.folder)
        raise InputError("the data have changed while they were read; nothing was released, start again.")

    def _read(self, design: bytes, contents: Contents) -> AllRead:
        """Read and look at all values before anything is written."""
        state = hashlib.sha256(b"sfumato folder release 1\x00" + hashlib.sha256(design).digest())
        assert isinstance(contents.resolution, float)
        parts, digests, furthest = self._parts(contents.design), dict[int, bytes](), (0.0, 0)
        work = Reading.of(contents.design, contents.resolution)
        with show_progress(self.progress) as step:
            step.stage("reading the outputs")
            found = self.engine.each(work, parts, step.counter(len(self.rows)))
            for part, read in zip(parts, found, strict=True):
                if read.refused is not None:
                    abandon(self.folder)
                    raise InputError(f"{read.refused} Nothing was released.")
                state.update(read.digest)
                digests[part.start] = read.digest
                furthest = max(furthest, (read.distance, read.row))
        if furthest[0] > FAR:
            self.note(far_in_words(furthest[0], f"row {furthest[1]} (counted from 0)"))
        return AllRead(state.digest(), digests)

    def _parts(self, design: Design | None = None) -> Sequence[Part]:
        """The rows with what is released; with V too where it differs from row to row."""
        errors = 0.0 if design is None else design.prior.noise
        return self.rows.parts({_OUTPUTS: self.y} | ({} if isinstance(errors, float) else {_ERRORS: errors}))

    def _write_rows(self, run: FolderRun, contents: Contents, read: AllRead) -> list[RowFile]:
        """Write the row files that are not there yet."""
        noise, errors, message = contents.design.noise.as_function(), contents.design.prior.noise, read.message
        parts = self._parts(contents.design)
        written = run.written(parts)
        if written:
            self.note(f"continuing an interrupted run: {len(written)} of {len(parts)} parts are written already.")
        missing = [number for number in range(len(parts)) if number not in written]
        to_do = [parts[number] for number in missing]
        assert run.key is not None
        assert isinstance(contents.resolution, float)
        seeds = {part.start: run.key.seed_for(message + part.start.to_bytes(8, "little")) for part in parts}
        normals = run.key.normals(message, noise.sources)
        drawn = Drawn(
            noise.function(normals, self.device),
            noise.records,
            errors if isinstance(errors, float) else None,
            seeds if noise.records is not None else {},
        )
        if noise.suppressed_count and to_do:
            instead = put_in_place(
                contents.design, self._summed(contents.design, Unchanged(drawn, read.digests))
            ).instead
            drawn = replace(drawn, function=noise.function(normals, self.device, instead))
        work = Blur(
            drawn,
            contents.resolution,
            (*self.rows.names, released_name(self.output_name, self.rows.names)),
            (run.place / ROW_FOLDER).absolute(),
            {parts[number].start: file_name(number) for number in missing},
            {part.start: read.digests[part.start] for part in to_do},
        )
        with show_progress(self.progress) as step:
            step.stage("adding the noise")
            made = self.engine.each(work, to_do, step.counter(sum(part.rows for part in to_do)))
            for number, file in zip(missing, made, strict=True):
                if file is None:
                    self._start_again()
                run.record(file)
                written[number] = file
        return [written[number] for number in range(len(parts))]

    def _summed(self, design: Design, noise: Unchanged) -> Summary:
        """The sums over all values with noise that say what stands in place of what is suppressed."""
        with show_progress(self.progress) as step:
            step.stage("predicting what is suppressed")
            found = sums_over(design, self.y, self.engine, self.device, noise)
        if not np.all(np.isfinite(found.projection)):
            self._start_again()
        return found


class AllRead(NamedTuple):
    """The message that the noise is made for, besides the key: design and values; and a fingerprint of each part by its
    first row."""

    message: bytes
    digests: Mapping[int, bytes]


class Read(NamedTuple):
    """What was found in a part: a fingerprint of its inputs and outputs; how far the value furthest from the prior is,
    in standard deviations, and in which row; and why these values cannot be released, if they cannot."""

    digest: bytes
    distance: float
    row: int
    refused: str | None


@dataclass(frozen=True, eq=False)
class Reading:
    """The work on a part before anything is written: its values are looked at; ``errors`` as for ``Blur``."""

    prior: Prior
    noise: FunctionalNoise
    resolution: float
    typical: float
    errors: float | None

    @classmethod
    def of(cls, design: Design, resolution: float) -> Reading:
        noise, errors = design.noise.as_function(), design.prior.noise
        without_rows = replace(noise, inputs=design.representatives)
        known = errors if isinstance(errors, float) else None
        return cls(design.prior, without_rows, resolution, float(typical_std(design)[0]), known)

    def __call__(self, part: Part) -> Read:
        X, y = part.inputs(), part.column(_OUTPUTS)
        errors = np.full(len(y), self.errors) if self.errors is not None else part.column(_ERRORS)
        std = np.maximum(np.sqrt(self.prior.variance(X) + errors), self.typical)
        about, refused, furthest = Expected(self.prior.mean_at(X), std), None, (np.inf, 0)

        def noise_of(few: Index) -> Array:
            return np.sqrt(self.noise.function_variance_at(X[few]) + self.noise.independent_at(X[few], errors[few]))

        def place(row: int) -> str:
            return f"row {part.start + row} (counted from 0)"

        try:
            furthest = check_rows(y, about, np.full(len(y), self.resolution), noise_of, place)
        except InputError as error:
            refused = str(error)
        return Read(_digest(X, y), furthest[0], part.start + furthest[1], refused)


def _digest(X: Array, y: Array) -> bytes:
    """A fingerprint of the inputs and outputs of a part."""
    # + 0.0 turns −0 into 0: equal data must get equal noise
    return hashlib.sha256(b"".join(np.ascontiguousarray(own + 0.0, "<f8").tobytes() for own in (X, y))).digest()


@dataclass(frozen=True, eq=False)
class Drawn:
    """The noise on the rows of a part, as secret as their values; not the key.

    ``records`` is noise on each record by itself, which each part draws from its own of the ``seeds``; ``errors`` is V,
    None where the part has it for each row.
    """

    function: RandomFunction
    records: RecordNoise | None
    errors: float | None
    seeds: Mapping[int, bytes]

    def __call__(self, part: Part) -> Array:
        X = part.inputs()
        drawn = self.function.at(X)
        if self.records is not None:
            errors = part.column(_ERRORS) if self.errors is None else np.asarray(self.errors)
            own = SecretKey(self.seeds[part.start]).normals(b"records", len(X))
            drawn = drawn + np.sqrt(self.records.at(X, errors)) * own
        return drawn

    def __repr__(self) -> str:
        return "<noise for rows, secret>"


@dataclass(frozen=True, eq=False)
class Unchanged:
    """The noise on the rows of a part; NaN where it is not what its one of the ``digests`` was made of."""

    drawn: Drawn
    digests: Mapping[int, bytes]

    def __call__(self, part: Part) -> Array:
        unchanged = _digest(part.inputs(), part.column(_OUTPUTS)) == self.digests[part.start]
        return self.drawn(part) if unchanged else np.full(part.rows, np.nan)


@dataclass(frozen=True, eq=False)
class Blur:
    """The work on a part: its outputs with noise, rounded, in a row file; ``files`` are their names by first row.

    None comes back, and nothing is written, where the part is not what its one of the ``digests`` was made of.
    """

    drawn: Drawn
    resolution: float
    names: tuple[str, ...]
    folder: Path
    files: Mapping[int, str]
    digests: Mapping[int, bytes]

    def __call__(self, part: Part) -> RowFile | None:
        X, y = part.inputs(), part.column(_OUTPUTS)
        if _digest(X, y) != self.digests[part.start]:
            return None
        released = round_outputs(y + self.drawn(part), self.resolution)
        return write_rows(self.folder / self.files[part.start], self.names, np.column_stack([X, released]))

    def __repr__(self) -> str:
        return "<noise for the rows of a release, secret>"


@dataclass(frozen=True)
class FolderRun:
    """A run under way in ``place``; ``key`` is None once the release is complete and the key is not needed.

    Guarantee: a run is only taken up again with the key it began with, for the same task and the same values.
    """

    place: Path
    key: SecretKey | None

    @property
    def complete(self) -> bool:
        return (self.place / MANIFEST).is_file()

    def agrees(self, message: bytes) -> bool:
        """Whether rows may be written with the noise for ``message``: the first time, or the same as before."""
        assert self.key is not None
        path = self.place / STAMP
        # normals tell nothing of the key, nor of those for other messages
        stamp = self.key.normals(b"sfumato run 1\x00" + message, 4).tobytes().hex()
        if path.is_file():
            return path.read_text(encoding="utf-8") == stamp
        with replacing(path) as file:
            file.write(stamp.encode())
        return True

    def record(self, file: RowFile) -> None:
        """Remember that ``file`` is written."""
        path = self.place / WRITTEN
        with told_of_failures(path, "the same call goes on where it was"), open(path, "a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(file)) + "\n")

    def written(self, parts: Sequence[Part]) -> dict[int, RowFile]:
        """The row files that are there as they were recorded, by the places of their parts; others are removed."""
        rows, recorded, kept = self.place / ROW_FOLDER, set[RowFile](), dict[int, RowFile]()
        with contextlib.suppress(FileNotFoundError):
            for line in (self.place / WRITTEN).read_text(encoding="utf-8").splitlines():
                # a kill may have cut the last line
                with contextlib.suppress(ValueError, TypeError):
                    recorded.add(RowFile(**json.loads(line)))
        for number, part in enumerate(parts):
            with contextlib.suppress(OSError), open(rows / file_name(number), "rb") as opened:
                found = RowFile(file_name(number), part.rows, sha256_of(opened))
                if found in recorded:
                    kept[number] = found
        for name in set(os.listdir(rows)) - {file.name for file in kept.values()}:
            (rows / name).unlink()
        return kept


def open_run(folder: Path, task: dict[str, Any], note: Note) -> FolderRun:
    """Take up the run that ``task`` left in ``folder``, or start a new one."""
    prepare_folder(folder)
    purpose, run = _purpose(task), folder / RUN
    if run.is_dir():
        with contextlib.suppress(FileNotFoundError):
            known = (run / TASK).read_text(encoding="utf-8") == purpose
            if known and (run / MANIFEST).is_file():
                return FolderRun(run, None)
            key = find_key(run / KEY, purpose)
            if key is not None and known:
                (run / ROW_FOLDER).mkdir(exist_ok=True)
                return FolderRun(run, key)
        if (run / MANIFEST).is_file():
            raise InputError(
                f"{folder} holds a complete release of other data, or with other options, that was interrupted while "
                "it was moved into place; give the same command or call as then to finish it, or use another folder."
            )
        start_over(folder, "its key file is gone, or the data or the options are not the same any more", note)
    run.mkdir(mode=0o700)
    key = make_key(run / KEY, purpose)
    with replacing(run / TASK) as file:
        file.write(purpose.encode())
    (run / ROW_FOLDER).mkdir()
    sync_folder(run)
    return FolderRun(run, key)


def _purpose(task: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()


def is_published(folder: Path, task: dict[str, Any]) -> bool:
    """Whether the release in ``folder`` is that of ``task``, whose run was killed when all but tidying up was done."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        done = (folder / RUN / DONE).read_text(encoding="utf-8")
        return done == f"{_purpose(task)} {hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()}"
    return False


def publish(folder: Path) -> None:
    """Move the complete release in ``.run`` into place and forget its key.

    Guarantee: readers see the old release, none, or the new one. If it is interrupted, it can be done again.
    """
    run, rows = folder / RUN, folder / ROW_FOLDER
    if (run / ROW_FOLDER).is_dir():
        (folder / MANIFEST).unlink(missing_ok=True)
        if rows.is_dir():
            for name in filter(_ROW_FILE.fullmatch, os.listdir(rows)):
                (rows / name).unlink()
            rows.rmdir()
        os.rename(run / ROW_FOLDER, rows)
        sync_folder(folder)
    manifest = hashlib.sha256((run / MANIFEST).read_bytes()).hexdigest()
    with replacing(run / DONE) as file:
        file.write(f"{(run / TASK).read_text(encoding='utf-8')} {manifest}".encode())
    (run / KEY).unlink(missing_ok=True)
    os.replace(run / MANIFEST, folder / MANIFEST)
    sync_folder(folder)
    _tidy_up(folder)


def _tidy_up(folder: Path) -> None:
    """Remove what is left of a run whose release is in its place: it is there, with the note that all is done, or not
    at all. A kill may leave a folder with a temporary name and no secret in it, which the next run removes."""
    os.rename(folder / RUN, folder / f".sfumato-{secrets.token_hex(8)}.tmp")
    for name in os.listdir(folder):
        if re.fullmatch(TEMPORARY_NAME, name):
            shutil.rmtree(folder / name)


def start_over(folder: Path, why: str, note: Note) -> None:
    """Remove what a run has written, because it cannot be taken up."""
    note(f"an interrupted run in {folder} cannot be continued ({why}); it starts over with new noise.")
    _remove_run(folder)


def abandon(folder: Path) -> None:
    """Remove an unfinished run, and ``folder`` too if nothing else is in it."""
    _remove_run(folder)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _remove_run(folder: Path) -> None:
    """Remove what an unfinished run has left, its key first."""
    (folder / RUN / KEY).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder / RUN)


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
        about, text = os.fstat(handle), file.read(4096)
    private = stat.S_ISREG(about.st_mode) and stat.S_IMODE(about.st_mode) == _MODE
    if os.name == "posix" and not (private and about.st_uid == os.getuid()):
        raise InputError(
            f"{path}, the key file of an interrupted run, is not a file that only you can read (mode 0600): others may "
            f"know the noise. Remove the folder {path.parent} and start again."
        )
    # a file that a crash left half written is as good as none
    with contextlib.suppress(ValueError, TypeError, KeyError):
        tree = json.loads(text)
        if tree["for"] == purpose:
            return SecretKey(bytes.fromhex(tree["key"]))
    return None
