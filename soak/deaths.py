"""Processes that die on purpose: at a byte of a file, at a flush, at any call that touches files, or after a time.

A child is a fork, so a death costs a few milliseconds. What a power cut would lose of flushed data cannot be seen here.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

#: What the audit of Python calls that which changes files or opens them.
_TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree")

How = Literal["at a byte", "at a flush", "at a call", "after a time", "by Ctrl-C", "not"]


@dataclass(frozen=True)
class Death:
    """How a child ends, and when: ``at`` is a size of a file in bytes, a number of a flush or call, or seconds."""

    how: How
    at: float

    def prepare(self) -> None:
        """To be called by the child."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.how == "at a byte":
            # a file that would grow beyond its limit is written up to it, and the next write ends the process
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(self.at), int(self.at)))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        elif self.how in ("after a time", "by Ctrl-C"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL if self.how == "after a time" else _interrupt)
            signal.setitimer(signal.ITIMER_REAL, max(self.at, 1e-6))
        elif self.how in ("at a flush", "at a call"):
            self._count()

    def _count(self) -> None:
        left = [int(self.at)]

        def one_less() -> None:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        if self.how == "at a call":
            sys.addaudithook(lambda event, arguments: one_less() if event in _TOUCHES else None)
            return
        flush = os.fsync

        def dying(handle: Any) -> None:
            one_less()
            flush(handle)

        os.fsync = dying


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


@dataclass(frozen=True)
class Life:
    """What came of a child: whether it was killed, what it said before, and how it failed otherwise (None: not)."""

    killed: bool
    said: tuple[str, ...]
    failed: str | None


def lived(work: Callable[[Callable[[str], None]], None], death: Death) -> Life:
    """Do ``work`` in a child that dies as told; what it says, in single lines, is heard as soon as it is said."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        _live(work, death, theirs)
    os.close(theirs)
    with os.fdopen(ours, "rb") as heard:
        lines = heard.read().decode().splitlines()
    status = os.waitpid(child, 0)[1]
    said = tuple(line[1:] for line in lines if line.startswith("+"))
    failed = next((line[1:] for line in lines if line.startswith("-")), None)
    return Life(os.WIFSIGNALED(status), said, failed)


def _live(work: Callable[[Callable[[str], None]], None], death: Death, theirs: int) -> None:
    def say(line: str) -> None:
        os.write(theirs, f"+{line}\n".encode())

    try:
        death.prepare()
        work(say)
    except BaseException as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())
        os.write(theirs, f"-{told}\n".encode(errors="backslashreplace"))
    finally:
        os._exit(0)


def drawn_death(random: np.random.Generator, sizes: tuple[int, int], flushes: int, calls: int, seconds: float) -> Death:
    """A death at a file's size between ``sizes``, or at one of so many flushes or calls, or within ``seconds``."""
    ways: list[How] = ["at a byte", "at a byte", "at a flush", "at a call", "after a time"]
    how = ways[int(random.integers(len(ways)))]
    if how == "at a byte":
        return Death(how, int(random.integers(*sizes)))
    if how == "after a time":
        return Death(how, float(random.uniform(0.0, seconds)))
    return Death(how, int(random.integers(1, 1 + (flushes if how == "at a flush" else calls))))
