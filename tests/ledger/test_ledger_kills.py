"""A process is killed at every write of the ledger: no earlier line is lost, and nothing that is out was free."""

from __future__ import annotations

import os
import shutil
import signal

import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from sfumato.ledger.chained_file import ROOT

pytestmark = pytest.mark.processes

X = np.linspace(0.0, 3.0, 8)
REGION = sf.Box(1.0, 2.0)
PRIOR = sf.Prior(rbf(0.4), noise=0.05)

#: How many places in the line a process is killed at, besides its ends.
PLACES = 160


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """A ledger with two releases, and a mechanism for the third."""
    folder = tmp_path_factory.mktemp("kills")
    ledger = sf.Ledger(folder / "orbit.ledger")
    for share in (0.2, 0.2):
        ledger.protect(PRIOR, X, REGION, alpha=0.5, share=share).release(np.sin(X))
    mechanism = ledger.protect(PRIOR, X, REGION, alpha=0.5, share=0.2)
    base = folder / "base.ledger"
    shutil.copy(ledger.path, base)
    mechanism.release(np.sin(X))
    line = os.path.getsize(ledger.path) - os.path.getsize(base)
    return ledger, mechanism, base, folder / "published", line


def put_back(base, ledger):
    """The ledger as it was, as if it had never been read since."""
    shutil.copy(base, ledger.path)
    ledger._records._head = ROOT


def dies_after(budget, syncs, mechanism, published):
    """In a child: release, and be killed after ``budget`` bytes or at the ``syncs``-th fsync; else publish."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    write, fsync, count = os.write, os.fsync, [0, 0]

    def dying_write(handle, data):
        room = budget - count[0]
        written = write(handle, bytes(data)[: max(room, 0)]) if room > 0 else 0
        count[0] += written
        if count[0] >= budget:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def dying_fsync(handle):
        count[1] += 1
        if count[1] == syncs:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(handle)

    try:
        os.write, os.fsync = dying_write, dying_fsync
        mechanism.release(np.sin(X))
        os.write = write
        with open(published, "w") as file:
            file.write("out")
    finally:
        os._exit(1)


def places(line):
    ends = [*range(1, 24), *range(line - 24, line + 1)]
    inner = np.linspace(24, line - 24, PLACES).astype(int).tolist()
    return [(place, 0) for place in sorted({*ends, *inner})] + [(1 << 40, sync) for sync in range(1, 6)]


@pytest.mark.slow
def test_two_hundred_kills_lose_no_line_and_make_no_release_free(setting):
    ledger, mechanism, base, published, line = setting
    before = sf.Ledger(base).chain().entries
    kills, seen = 0, set()
    for turn, (budget, syncs) in enumerate(places(line)):
        put_back(base, ledger)
        published.unlink(missing_ok=True)
        status = dies_after(budget, syncs, mechanism, published)
        kills += os.WIFSIGNALED(status)
        chain = ledger.chain()
        assert chain.entries[: len(before)] == before
        counted = len(chain.entries) > len(before)
        # what is out is counted; what is torn is reported and is not
        assert counted or not published.exists()
        grown = os.path.getsize(ledger.path) - os.path.getsize(base)
        assert counted == (grown >= line - 1)
        assert (chain.torn is None) == (counted or grown == 0)
        seen.add((counted, chain.torn is not None, published.exists()))
        if turn % 8 == 0 or not 24 < budget < line - 24:
            # and the ledger goes on: the same release can still be made, once
            mechanism.release(np.sin(X))
            mechanism.release(np.sin(X))
            assert len(ledger) == len(before) + 1
            ledger.verify()
    assert kills >= 200
    assert (False, True, False) in seen
    assert (True, False, False) in seen
    put_back(base, ledger)
    mechanism.release(np.sin(X))
    assert ledger.certificate(REGION).holds


def test_an_interrupted_release_counts_when_its_line_is_whole(setting):
    ledger, mechanism, base, published, line = setting
    put_back(base, ledger)
    published.unlink(missing_ok=True)
    dies_after(line, 0, mechanism, published)
    assert not published.exists()
    assert len(ledger) == 3
    assert ledger.remaining(REGION).left < sf.Ledger(base).remaining(REGION).left
