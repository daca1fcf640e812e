"""Work behind the page: it runs in a thread, says how far it is, can be cancelled, and the newest request wins."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Generic, Literal, TypeVar

from ..errors import SfumatoError
from ..progress import Listener
from ..text import one_line

T = TypeVar("T")

State = Literal["idle", "running", "done", "failed", "cancelled"]

#: Seconds between two signs of progress, so that a page is not flooded.
BETWEEN_SIGNS = 0.15


class Cancelled(Exception):  # noqa: N818
    """The work was cancelled, or newer work took its place."""


class Job(Generic[T]):
    """One kind of work, of which at most one piece runs; ``changed`` is called, from any thread, after each change.

    ``value`` is what was made last. ``key`` says for what it was made, or is being made.
    """

    def __init__(self, name: str, changed: Callable[[], None]) -> None:
        self.name = name
        self.state: State = "idle"
        self.value: T | None = None
        self.error = ""
        self.stage = ""
        self.share: float | None = None
        self.key: object = None
        self._changed = changed
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)
        self._number = 0
        self._kept = 0  # older work than this is dropped
        self._is_busy = False
        self._is_over = False
        self._next: tuple[int, Callable[[Listener], T]] | None = None
        self._last_sign = 0.0

    @property
    def is_running(self) -> bool:
        return self.state == "running"

    def start(self, work: Callable[[Listener], T], key: object = None, *, lets_finish: bool = False) -> None:
        """Do ``work`` behind. Work that is under way ends at its next sign of progress, and nothing is kept of it.

        With ``lets_finish`` it comes to its end, and is the ``value`` until the new one is there: what a slider passes
        by is dropped, and yet something is seen while it moves.
        """
        with self._lock:
            if self._is_over:
                return
            self._number += 1
            if not (lets_finish and self._is_busy):
                self._kept = self._number
            self.key, self.state, self.error, self.stage, self.share = key, "running", "", "", None
            if not lets_finish:
                self.value = None
            self._next = (self._number, work)
            begins = not self._is_busy
            self._is_busy = True
        if begins:
            threading.Thread(target=self._run, name=f"sfumato-studio-{self.name}", daemon=True).start()
        self._changed()

    def cancel(self) -> None:
        """End the work that is under way, if there is some."""
        self._drop("cancelled")

    def reset(self) -> None:
        """Forget what was made, and end what is under way."""
        self._drop("idle")

    def wait(self, timeout: float | None = None) -> bool:
        """Whether nothing is under way any more, after at most ``timeout`` seconds; for tests and programs."""
        with self._ended:
            return self._ended.wait_for(lambda: not self.is_running, timeout)

    def end(self, timeout: float) -> bool:
        """Cancel, start nothing more, and wait for the thread: one that is left when Python ends may abort it."""
        self._is_over = True
        self.cancel()
        with self._ended:
            return self._ended.wait_for(lambda: not self._is_busy, timeout)

    def _drop(self, state: State) -> None:
        with self._ended:
            if state == "cancelled" and self.state != "running":
                return
            if state == "idle":
                if self.state == "idle":
                    return
                self.key = None
            self.value = None  # it was made for an older request, which newer work let finish
            self._number += 1
            self._kept = self._number
            self._next = None
            self.state, self.error, self.stage, self.share = state, "", "", None
            self._ended.notify_all()
        self._changed()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._next is None:
                    self._is_busy = False
                    self._ended.notify_all()
                    return
                (number, work), self._next = self._next, None
            self._do(number, work)

    def _do(self, number: int, work: Callable[[Listener], T]) -> None:
        value: T | None = None
        error = ""
        try:
            value = work(partial(self._heard, number))
        except Cancelled:
            return
        except SfumatoError as problem:
            error = str(problem)
        except MemoryError:
            error = "The memory of this machine does not suffice; close other programs, or use fewer rows."
        except Exception as bug:
            traceback.print_exc()
            error = f"This is a bug in sfumato, please report it: {type(bug).__name__}: {one_line(bug)}"
        with self._ended:
            if number < self._kept:
                return
            if number == self._number:
                self.value, self.error, self.stage, self.share = value, error, "", None
                self.state = "failed" if error else "done"
                self._ended.notify_all()
            elif not error:
                self.value = value
        self._changed()

    def _heard(self, number: int, stage: str, share: float | None) -> None:
        if number < self._kept:
            raise Cancelled
        now = time.monotonic()
        with self._lock:
            if number == self._number:
                self.stage, self.share = stage, share
            quiet = now - self._last_sign < BETWEEN_SIGNS
            if not quiet:
                self._last_sign = now
        if not quiet:
            self._changed()
