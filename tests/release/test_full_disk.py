"""A full disk while a release, a table, a page or a ledger is written: told, nothing half done, nothing forgotten."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import sfumato as sf
from kernels import rbf
from sfumato.cli.options import save_figure

X = np.linspace(0.0, 3.0, 8)
PRIOR = sf.Prior(rbf(0.4), noise=0.05)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on nothing reaches the disk."""

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return lambda: monkeypatch.setattr(os, "fsync", fsync)


def test_files_stay_as_they_were(tmp_path: Path, full: Callable[[], None]) -> None:
    release = sf.protect(PRIOR, X, sf.Box(1.0, 2.0), alpha=0.3, progress=False).release(np.sin(X))
    writes: dict[str, Callable[[Path], object]] = {
        "a.sfumato": release.save,
        "a.csv": release.to_csv,
        "a.parquet": release.to_parquet,
        "a.html": lambda path: sf.report(release, path, progress=False),
        "a.png": lambda path: save_figure(Figure(), path, private=True),
    }
    for name in writes:
        (tmp_path / name).write_text("<!doctype html>")
    full()
    for name, write in writes.items():
        with pytest.raises(sf.ResourceError, match=f"{name}' cannot be written: the disk is full .* Make room"):
            write(tmp_path / name)
        assert (tmp_path / name).read_text() == "<!doctype html>"
    assert sorted(os.listdir(tmp_path)) == sorted(writes)


def test_a_ledger_gives_no_release_out_and_can_be_read(tmp_path: Path, full: Callable[[], None]) -> None:
    ledger = sf.Ledger(tmp_path / "a.ledger")
    first, second = (ledger.protect(PRIOR, X, sf.Box(1.0, 2.0), alpha=0.5, share=0.3, progress=False) for _ in range(2))
    first.release(np.sin(X))
    full()
    with pytest.raises(sf.ResourceError, match=r"a\.ledger' cannot be written: the disk is full"):
        second.release(np.sin(X))
    assert len(ledger) >= 1
    assert ledger.certificate(sf.Box(1.0, 2.0)).holds
