"""Progress: on a terminal, for work that takes a while, and once."""

from __future__ import annotations

import io
import sys
import time

import pytest

from sfumato.progress import progress


@pytest.mark.parametrize(
    ("patience", "terminal", "shown"), [(0.0, True, True), (60.0, True, False), (0.0, False, False)]
)
def test_progress_appears_for_slow_work_on_a_terminal_only(
    patience: float, terminal: bool, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("sfumato.progress.PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    with progress(True) as step:
        step.stage("choosing the cover")
        step.update(0.5)
        time.sleep(0.3)
        with progress(True) as inner:
            inner.stage("inside")
    assert ("choosing the cover" in screen.getvalue()) == shown
    assert "inside" not in screen.getvalue()
