"""The soak's kills: nothing is broken by them, and a ledger that loses a line is found."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.ledger.chained_file import ChainedFile
from soak import kills
from soak.broken import BREAKS

pytestmark = pytest.mark.processes


def outcomes(folder, numbers):
    found = []
    for number in numbers:
        (folder / str(number)).mkdir(parents=True)
        found.append(kills.trial(np.random.default_rng(number), folder / str(number)))
    return found


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_a_line_that_a_ledger_drops_is_found_and_none_is_without(tmp_path, monkeypatch):
    monkeypatch.setattr(kills, "LEDGERS", 2)
    of_ledgers = [number for number in range(20) if np.random.default_rng(number).uniform() < 0.5][:4]
    whole = outcomes(tmp_path / "whole", of_ledgers)
    assert not [outcome.broken for outcome in whole if outcome.broken]
    assert sum(outcome.counts["kills"] for outcome in whole) >= 3
    monkeypatch.setattr(ChainedFile, "update", ChainedFile.update)  # put back afterwards
    BREAKS["ledger"]()
    less = outcomes(tmp_path / "less", of_ledgers[:2])
    assert any("not in the ledger" in (outcome.broken or "") for outcome in less)


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
@pytest.mark.slow
def test_two_hundred_kills_break_nothing(tmp_path):
    found = outcomes(tmp_path, range(160))
    assert not [outcome.broken for outcome in found if outcome.broken]
    assert sum(outcome.counts.get("kills", 0) for outcome in found) >= 200
