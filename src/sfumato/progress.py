"""What a person sees while they wait: the step that is under way, on stderr, and only if it takes a while.

Whatever takes ``progress`` takes True (show it on a terminal), False (do not), or a listener: a function that is called
with what is done now and the share of it that is done (None: not known), about once a second or more often. It is
called by the thread that does the work, which waits for it.

Guarantee: an exception that a listener raises ends the work and reaches the caller unchanged, whatever the work itself
would do with an exception of this kind. Results are the same with and without a listener.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from .text import shown

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

#: Seconds after which a person starts to wonder; anything faster shows nothing.
PATIENCE = 1.0

#: Work that takes longer than this many seconds is announced with what it will take.
WORTH_A_LINE = 5.0

#: Hears what is done now, and which share of it is done (0 to 1; None: not known). It may raise, to end the work.
Listener: TypeAlias = Callable[[str, float | None], None]

#: What ``progress`` may be: show it, do not, or tell a listener.
AskedProgress: TypeAlias = bool | Listener


class _Stopped(BaseException):
    """``by`` was told by its listener to stop, with ``error``; nothing that handles errors on the way may keep it."""

    def __init__(self, by: Progress, error: BaseException) -> None:
        super().__init__(error)
        self.by, self.error = by, error


class Progress:
    """Announces named steps; does nothing where nobody is looking.

    >>> with progress(show=False) as step:
    ...     step.stage("choosing the cover")
    ...     step.update(0.5)
    """

    def __init__(self, bar: Bar | None = None, listener: Listener | None = None) -> None:
        self._bar, self._listener = bar, listener
        self._text = "working"
        self._share: float | None = None
        self._task = None if bar is None else bar.add_task("working", total=None, speed="")
        self._since = time.monotonic()

    def stage(self, text: str) -> None:
        """A new step begins; how long it takes is not known yet."""
        if self._bar is not None and self._task is not None:
            self._bar.reset(self._task, total=None, description=shown(text), speed="")
        self._since = time.monotonic()
        self._text, self._share = text, None
        self.alive()

    def heard(self, text: str, share: float | None) -> None:
        """Work inside of the current step goes on."""
        self.alive()

    def alive(self) -> None:
        """The current step goes on: a listener hears of it again, and may end the work."""
        if self._listener is None:
            return
        try:
            self._listener(shown(self._text), self._share)
        except _Stopped:
            raise
        except BaseException as error:
            raise _Stopped(self, error) from error

    def announce(self, text: str, seconds: float) -> None:
        """Say what is about to be done, and stay on the screen, where it will take long enough to be worth a line."""
        if self._bar is not None and seconds >= WORTH_A_LINE:
            self._bar.console.print(shown(text))

    def update(self, done: float) -> None:
        """The current step is at the fraction ``done`` (0 to 1)."""
        self._share = min(max(done, 0.0), 1.0)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=1.0, completed=self._share)
        self.alive()

    def rows(self, done: int, total: int) -> None:
        """The current step has gone through ``done`` of ``total`` rows; how many a second is shown."""
        if self._bar is not None and self._task is not None:
            speed = rows_a_second(done, time.monotonic() - self._since)
            self._bar.update(self._task, total=float(max(total, 1)), completed=float(done), speed=speed)
        self._share = min(done / max(total, 1), 1.0)
        self.alive()

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

#: The work that is under way, in which other work may be done.
_around: ContextVar[Progress | None] = ContextVar("around", default=None)


def alive() -> None:
    """The work under way goes on, somewhere deep inside: its listener hears of it again, and may end it."""
    around = _around.get()
    if around is not None:
        around.alive()


@contextmanager
def progress(show: AskedProgress) -> Iterator[Progress]:
    """A ``Progress`` for one piece of work: on the terminal after a second, told to a listener, or neither.

    The steps of work inside of other work are not told; the listener of that hears that it goes on, and may end both.
    """
    around = _around.get()
    listener = show if callable(show) else None if around is None else around.heard
    with _display(not callable(show) and show) as bar:
        step = Progress(bar, listener)
        before = _around.set(step)
        try:
            yield step
        except _Stopped as stopped:
            if stopped.by is not step:
                raise
            raise stopped.error from stopped.error.__cause__
        finally:
            _around.reset(before)


@contextmanager
def _display(show: bool) -> Iterator[Bar | None]:
    """A line on the terminal that appears after a second, if ``show`` is set, and goes away when the work is done."""
    # A second display inside the first would fight for the same line of the terminal.
    if not show or not sys.stderr.isatty() or not _open.acquire(blocking=False):
        yield None
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
        yield bar
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
        _open.release()
