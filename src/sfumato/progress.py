"""What a person sees while they wait: the step that is under way, on stderr, and only if it takes a while."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

PATIENCE = 1.0
"""Seconds after which a person starts to wonder; anything faster shows nothing."""


class Progress:
    """Announces named steps; does nothing where nobody is looking.

    >>> with progress(show=False) as step:
    ...     step.stage("choosing the cover")
    ...     step.update(0.5)
    """

    def __init__(self, bar: Bar | None = None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("working", total=None)

    def stage(self, text: str) -> None:
        """A new step begins; how long it takes is not known yet."""
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, total=None, description=text)

    def update(self, done: float) -> None:
        """The current step is at the fraction ``done`` (0 to 1)."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=1.0, completed=min(max(done, 0.0), 1.0))


_open = threading.Lock()


@contextmanager
def progress(show: bool) -> Iterator[Progress]:
    """A ``Progress`` that appears after a second, if ``show`` is set, and goes away when the work is done."""
    # A second display inside the first would fight for the same line of the terminal.
    if not show or not sys.stderr.isatty() or not _open.acquire(blocking=False):
        yield Progress()
        return
    bar = Bar(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    try:
        timer.start()
        yield Progress(bar)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
        _open.release()
