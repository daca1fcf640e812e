"""Progress: on a terminal, for work that takes a while, and once; or told to a listener, who may end the work."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
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


class Cancelled(Exception):  # noqa: N818
    """What a listener raises in these tests; the work itself handles errors of kinds that it derives from."""


class CancelledInput(Cancelled, sf.InputError):
    """One that many places take for wrong input."""


class CancelledMatrix(Cancelled, np.linalg.LinAlgError):
    """One that many places take for a singular matrix."""


class Listening:
    """Counts what it hears, and raises ``error`` at the call ``at`` (from 0)."""

    def __init__(self, at: int | None = None, error: Exception | None = None) -> None:
        self.heard: list[tuple[str, float | None]] = []
        self.at, self.error = at, error

    def __call__(self, text: str, share: float | None) -> None:
        self.heard.append((text, share))
        if self.error is not None and len(self.heard) > (self.at or 0):
            raise self.error


t = np.linspace(0.0, 3.0, 40)
y = np.sin(3.0 * t) + 0.1 * np.cos(17.0 * t)
region = sf.Box(1.0, 2.0)


@pytest.fixture(scope="module")
def prior() -> sf.Prior:
    return sf.fit_prior(t, y, lengthscale=0.4, noise=0.01, exclude=region, progress=False)


@pytest.fixture(scope="module")
def release(prior: sf.Prior) -> sf.Release:
    return sf.protect(prior, t, region, alpha=0.3, progress=False).release(y, unsafe_seed=1)


def _ledger(prior: sf.Prior, folder: Path, listener: Any) -> Any:
    ledger = sf.Ledger(folder / f"{id(listener)}.ledger")
    return ledger.protect(prior, t, region, alpha=0.3, share=0.5, progress=listener).noise.covariance()


#: What takes a listener, as a function of it that gives something comparable.
WORK: dict[str, Callable[[sf.Prior, sf.Release, Path, Any], Any]] = {
    "fit_prior": lambda *given: sf.fit_prior(t, y, exclude=region, progress=given[3]).covariance(t),
    "fit_prior (Adam)": lambda *given: sf.fit_prior(
        t, y, optimizer="adam", epochs=3, exclude=region, progress=given[3]
    ).covariance(t),
    "rehearse": lambda *given: str(sf.rehearse(given[0], t, y, region, alpha=0.3, advise=False, progress=given[3])),
    "protect": lambda *given: sf.protect(given[0], t, region, alpha=0.3, progress=given[3]).noise.covariance(),
    "protect (points, alone)": lambda *given: sf.protect(
        given[0], t, sf.Points([[1.2], [1.5]]), alpha=0.3, guarantee="pointwise", progress=given[3]
    ).noise.covariance(),
    "protect (compressed)": lambda *given: sf.protect(
        given[0], t, region, alpha=0.3, method="compressed", progress=given[3]
    ).noise.covariance(),
    "audit": lambda *given: sf.audit(given[1], y, draws=1, progress=given[3]).outcomes[0].rmse,
    "certify": lambda *given: str(given[1].certify(progress=given[3])),
    "tradeoff": lambda *given: (
        sf.tradeoff(given[0], t, region, [0.3], ways=["pointwise"], progress=given[3]).rows[0].noise
    ),
    "suggest": lambda *given: str(sf.suggest(given[0], t, region, max_loss=0.3, progress=given[3])),
    "report": lambda *given: (
        sf.report(given[1], given[2] / f"{id(given[3])}.html", progress=given[3]).stat().st_size > 0
    ),
    "Ledger.protect": lambda *given: _ledger(given[0], given[2], given[3]),
}

#: What takes seconds; it is made of the others.
SLOW = ("suggest", "report", "fit_prior (Adam)")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in WORK])
def test_a_listener_hears_of_the_work_changes_nothing_and_may_end_it_anywhere(
    name: str, prior: sf.Prior, release: sf.Release, tmp_path: Path
) -> None:
    def work(listener: Any) -> Any:
        return WORK[name](prior, release, tmp_path, listener)

    listening = Listening()
    with_listener, without = work(listening), work(False)
    np.testing.assert_equal(with_listener, without)
    count = len(listening.heard)
    assert count > 0
    assert all(share is None or 0.0 <= share <= 1.0 for _, share in listening.heard)
    for at, kind in ((0, Cancelled), (count // 3, CancelledInput), (count // 2, CancelledMatrix)):
        error = kind("enough")
        stopping = Listening(at, error)
        with pytest.raises(Cancelled) as raised:
            work(stopping)
        assert raised.value is error
        assert len(stopping.heard) == at + 1


def test_the_exception_of_a_listener_keeps_its_own_cause() -> None:
    cause = OSError("the reason")
    error = Cancelled("enough")
    error.__cause__ = cause

    def listener(text: str, share: float | None) -> None:
        raise error

    with pytest.raises(Cancelled) as raised, progress(listener) as step:
        step.stage("anything")
    assert raised.value.__cause__ is cause
