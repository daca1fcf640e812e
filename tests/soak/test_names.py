"""The soak's hostile names: nothing is broken by them, and names that are shown as they are are found."""

from __future__ import annotations

import sys

import numpy as np

import sfumato.__main__
from sfumato import text
from soak import names
from soak.broken import BREAKS


def outcomes(folder, count):
    found = []
    for number in range(count):
        (folder / str(number)).mkdir(parents=True)
        found.append(names.trial(np.random.default_rng(number), folder / str(number)))
    return found


def test_names_that_are_shown_as_they_are_are_found_and_none_is_without(tmp_path, monkeypatch):
    whole = outcomes(tmp_path / "whole", 1)
    assert not [outcome.broken for outcome in whole if outcome.broken]
    assert sum(outcome.counts["commands"] for outcome in whole) >= 6
    for module in [one for one in sys.modules.values() if getattr(one, "shown", None) is text.shown]:
        monkeypatch.setattr(module, "shown", module.shown)  # put back afterwards
    BREAKS["name"]()
    assert sfumato.text.shown("\n") == "\n"
    raw = outcomes(tmp_path / "raw", 1)
    assert any("shows" in (outcome.broken or "") for outcome in raw)
