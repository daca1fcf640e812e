"""What a person sees while they wait: the step that is under way, on stderr, and only if it takes a while."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .text import shown

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Seconds after which a person starts to wonder; anything faster shows nothing.
PATIENCE = 1.0

#: Work that takes longer than this many seconds is announced with what it will take.
WORTH_A_LINE = 5.0


class Progress:
    """Announces named steps; does nothing where nobody is looking.

    >>> with progress(show=False) as step:
    ...     step.stage("choosing the cover")
    ...     step.update(0.5)
    """

    def __init__(self, bar: Bar | None = None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("working", total=None, speed="")
        self._since = time.monotonic()

    def stage(self, text: str) -> None:
        """A new step begins; how long it takes is not known yet."""
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, total=None, description=shown(text), speed="")
        self._since = time.monotonic()

    def announce(self, text: str, seconds: float) -> None:
        """Say what is about to be done, and stay on the screen, where it will take long enough to be worth a line."""
        if self._bar is not None and seconds >= WORTH_A_LINE:
            self._bar.console.print(shown(text))

    def update(self, done: float) -> None:
        """The current step is at the fraction ``done`` (0 to 1)."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=1.0, completed=min(max(done, 0.0), 1.0))

    def rows(self, done: int, total: int) -> None:
        """The current step has gone through ``done`` of ``total`` rows; how many a second is shown."""
        if self._bar is not None and self._task is not None:
            speed = rows_a_second(done, time.monotonic() - self._since)
            self._bar.update(self._task, total=float(max(total, 1)), completed=float(done), speed=speed)

    def counter(self, total: int) -> Callable[[int], None]:
        """To be told how many more of ``total`` rows are done."""
        done = 0

        def more(rows: int) -> None:
            nonlocal done
            done += rows
            self.rows(done, total)

        return more


def rows_a_second(rows: int, seconds: float) -> str:
    """A speed in few words.

    >>> rows_a_second(2_500_000, 2.0)
    '1.25 M rows/s'
    """
    speed = rows / max(seconds, 1e-9)
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if speed >= size:
            return f"{speed / size:.3g}{unit} rows/s"
    return f"{speed:.3g} rows/s"


_open = threading.Lock()


@contextmanager
def progress(show: bool) -> Iterator[Progress]:
    """A ``Progress`` that appears after a second, if ``show`` is set, and goes away when the work is done."""
    # A second display inside the first would fight for the same line of the terminal.
    if not show or not sys.stderr.isatty() or not _open.acquire(blocking=False):
        yield Progress()
        return
    import rich.console
    import rich.progress as parts

    bar = parts.Progress(
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(bar_width=30),
        parts.TextColumn("{task.fields[speed]}", markup=False),
        parts.TimeElapsedColumn(),
        console=rich.console.Console(stderr=True, markup=False, emoji=False, highlight=False),
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
