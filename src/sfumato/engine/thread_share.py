"""A fair share of a machine's cores for work that runs beside other work on it.

Two processes that each start a thread for every core of the machine are slower together than one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


class _Process:
    """What all threads of this process have in common: who comes first sets it, who leaves last puts it back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: tuple[int, Any] = (0, None)

    def enter(self, libraries: ThreadpoolController, threads: int, before: int) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = before, libraries.limit(limits=threads, user_api="blas")
                torch.set_num_threads(threads)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                before, blas = self._before
                torch.set_num_threads(before)
                blas.restore_original_limits()


_process = _Process()


@contextmanager
def thread_share(threads: int) -> Iterator[None]:
    """BLAS, OpenMP and torch use ``threads`` threads inside, and as many as before afterwards.

    It may be entered by several threads of a process at once, which must then ask for the same number.
    """
    before = torch.get_num_threads()
    libraries = ThreadpoolController()
    # OpenMP counts for each thread, BLAS and torch for the whole process
    with libraries.limit(limits=threads, user_api="openmp"):
        _process.enter(libraries, threads, before)
        try:
            yield
        finally:
            _process.leave()
