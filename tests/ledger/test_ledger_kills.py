"""A process is killed at every write of the ledger: no earlier line is lost, and nothing that is out was free."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from sfumato.ledger.chained_file import ROOT
from soak.deaths import Death, lived

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


def dies(death, mechanism, published):
    """In a child: release, and die; else publish."""

    def publish(say):
        mechanism.release(np.sin(X))
        published.write_text("out")

    return lived(publish, death).killed


def places(line):
    ends = [*range(1, 24), *range(line - 24, line + 1)]
    inner = np.linspace(24, line - 24, PLACES).astype(int).tolist()
    return [place for place in sorted({*ends, *inner}) if place < line]


@pytest.mark.slow
def test_two_hundred_kills_lose_no_line_and_make_no_release_free(setting):
    ledger, mechanism, base, published, line = setting
    before = sf.Ledger(base).chain().entries
    kills, seen = 0, set()
    size = os.path.getsize(base)
    deaths = [Death("at a byte", size + place) for place in places(line)]
    deaths += [Death("at a flush", number) for number in range(1, 6)] * 3
    for turn, death in enumerate(deaths):
        put_back(base, ledger)
        published.unlink(missing_ok=True)
        kills += dies(death, mechanism, published)
        chain = ledger.chain()
        assert chain.entries[: len(before)] == before
        counted = len(chain.entries) > len(before)
        # what is out is counted; what is torn is reported and is not
        assert counted or not published.exists()
        grown = os.path.getsize(ledger.path) - os.path.getsize(base)
        assert counted == (grown >= line - 1)
        assert (chain.torn is None) == (counted or grown == 0)
        seen.add((counted, chain.torn is not None, published.exists()))
        if turn % 8 == 0 or not 24 < death.at - size < line - 24:
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
    ledger, mechanism, base, published, _ = setting
    put_back(base, ledger)
    published.unlink(missing_ok=True)
    assert dies(Death("at a flush", 2), mechanism, published)
    assert not published.exists()
    assert len(ledger) == 3
    assert ledger.remaining(REGION).left < sf.Ledger(base).remaining(REGION).left
