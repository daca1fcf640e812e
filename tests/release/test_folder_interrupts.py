"""A folder that is being written, stopped at every moment: the next run completes it with the same noise."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data.parts import Here
from sfumato.data.stored import rows_of_parquet
from sfumato.promise.design import Design
from sfumato.proof.certificate import Certificate
from sfumato.release.file import MANIFEST, ROW_FOLDER
from sfumato.release.folder import RUN, FolderWriter

#: What changes files; Path and shutil go through these too.
CHANGES = ("open", "replace", "rename", "unlink", "mkdir", "rmdir", "fsync")
TASK = {"the": "same"}

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="before 3.11 pathlib keeps functions of os for itself"
)


class Stopped(BaseException):
    """The process is told to stop (SIGINT, SIGTERM), or is gone (SIGKILL)."""


class Clock:
    """Stops before change number ``at`` of all that are made to files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, killed: bool) -> None:
        self.changes, self.at, self.killed = 0, at, killed
        for name in CHANGES:
            monkeypatch.setattr(os, name, self.counted(getattr(os, name)))

    def counted(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.changes += 1
            # who is killed cleans nothing up
            if self.changes == self.at or (self.killed and self.changes > self.at > 0):
                raise Stopped
            return change(*arguments, **options)

        return call


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    X = np.random.default_rng(0).random((60, 2))
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.sin(4 * X[:, 0])}).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


@pytest.fixture(scope="module")
def made(data: Path) -> tuple[Design, Certificate]:
    kernel = gpytorch.kernels.RBFKernel()
    kernel.lengthscale = 0.5
    rows = rows_of_parquet(data, ["a", "b"], "y")
    region = sf.Box([0.0, 0.0], [0.4, 0.4])
    mechanism = sf.protect(sf.Prior(kernel, noise=0.01), rows, region, 0.3, method="compressed", progress=False)
    return mechanism.design, mechanism.certificate


class Writing:
    """Two parts, again and again, with keys that are counted."""

    def __init__(self, data: Path, made: tuple[Design, Certificate], monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows, self.made, self.keys = rows_of_parquet(data, ["a", "b"], "y", rows=30), made, 0

        def key(size: int) -> bytes:
            self.keys += size == 32
            return os.urandom(size)

        monkeypatch.setattr(secrets, "token_bytes", key)

    def write(self, out: Path) -> None:
        writer = FolderWriter(out, self.rows, self.rows.column("y"), Here(), lambda text: None)
        writer.write(lambda: self.made, TASK)


def row_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("part-*.parquet")}


EVERY_WAY = [(killed, replaces) for killed in (True, False) for replaces in (True, False)]


@pytest.mark.parametrize(
    ("killed", "replaces", "stride"),
    [(True, True, 4), (False, False, 5), *(pytest.param(*way, 1, marks=pytest.mark.slow) for way in EVERY_WAY)],
)
def test_stopped_before_any_change_it_is_completed_with_the_same_noise(
    data: Path,
    made: tuple[Design, Certificate],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    killed: bool,
    replaces: bool,
    stride: int,
) -> None:
    writing, old = Writing(data, made, monkeypatch), tmp_path / "old"
    if replaces:
        writing.write(old)
    before = row_files(old / ROW_FOLDER)
    for moment in range(1, 1000, stride):
        out = tmp_path / f"out{moment}"
        if replaces:
            shutil.copytree(old, out)
        writing.keys = 0
        with monkeypatch.context() as patch:
            clock = Clock(patch, moment, killed)
            with contextlib.suppress(Stopped):
                writing.write(out)
        if clock.changes < moment:
            assert moment > 40
            return
        assert not (out / RUN).exists() or (out / RUN).stat().st_mode & 0o777 == 0o700
        # readers see the old release, none, or the new one
        seen = row_files(out / ROW_FOLDER) if (out / MANIFEST).is_file() else {}
        assert not seen or len(np.asarray(sf.load(out).outputs)) == 60
        early = row_files(out / RUN / ROW_FOLDER) or (row_files(out / ROW_FOLDER) if seen != before else {})
        keys = writing.keys
        if (out / RUN).exists() or not seen or seen == before:
            writing.write(out)
        # what was ever written is what comes out, and no other noise was drawn
        final = row_files(out / ROW_FOLDER)
        assert [name for name in sorted(os.listdir(out)) if not name.endswith(".tmp")] == [MANIFEST, ROW_FOLDER]
        assert len(final) == 2
        assert early.items() <= final.items()
        assert writing.keys == keys or not early
    raise AssertionError("it never came to its end")
