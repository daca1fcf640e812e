"""The soak's mutated files: nothing is broken by them, and certificates that are believed instead of computed are."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from soak import mutations, stock


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Some kinds of files that are made fast."""
    kinds = {name: stock.KINDS[name] for name in ("joint", "records", "rows", "independent")}
    monkeypatch.setattr(stock, "KINDS", kinds)


def outcomes(folder, numbers):
    found = []
    for number in numbers:
        (folder / str(number)).mkdir(parents=True)
        found.append(mutations.trial(np.random.default_rng(number), folder / str(number)))
    return found


def test_mutated_files_are_refused_or_true(tmp_path):
    found = outcomes(tmp_path, range(3))
    assert not [outcome.broken for outcome in found if outcome.broken]
    assert sum(outcome.counts["mutations"] for outcome in found) == 3 * mutations.BATCH


def test_a_certificate_that_believes_the_file_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sf.Release, "certify", lambda self, progress: self.certificate)
    monkeypatch.setattr(mutations, "EDITS", {"noise": mutations.EDITS["noise"]})
    found = outcomes(tmp_path, range(3))
    assert any("a proved certificate, and readers get to 0" in (outcome.broken or "") for outcome in found)


@pytest.mark.slow
def test_a_thousand_mutations_break_nothing(tmp_path):
    found = outcomes(tmp_path, range(100, 200))
    assert not [outcome.broken for outcome in found if outcome.broken]
