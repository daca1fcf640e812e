"""Writing a release of any number of rows to a folder, part after part, and again from where it was killed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..arrays import Array
from ..data import Engine, Part, StoredColumn, StoredInputs
from ..errors import GuaranteeError, InputError
from ..noise import RandomFunction, round_outputs
from ..progress import progress as show_progress
from ..promise import Design
from ..proof import Certificate
from .file import Contents, read_release, write_release
from .folder_run import FolderRun, Note, abandon, locked, open_run, prepare_folder, publish, start_over
from .making import resolution_for, why_not
from .row_files import RowFile, file_name, released_name, write_rows

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
                write_release(contents, run.manifest, files, self.rows)
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
                write_release(self._contents(*design()), run.design, files, self.rows)
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
