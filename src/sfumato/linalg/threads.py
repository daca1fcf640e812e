"""How many threads matrices are worked on with: one for small ones, a fair share of the cores beside other work.

A product of 50 × 50 matrices is over before a second thread has woken up. Thousands of them in a row, on a machine that
has other work too, are then a hundred times slower than on one thread. Two processes that each start a thread for every
core of the machine are slower together than one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _libraries() -> Any:
    # made late: it finds the libraries that are loaded when it is made
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP use a single thread inside, and as many as before afterwards."""
    with _libraries().limit(limits=1):
        yield


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """PyTorch uses ``count`` threads inside, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


#: Small matrices are worked on by no more threads than this: 16 take five times as long as 4 (and for the 2,000 virtual
#: rows of a compressed design, whose other matrices are small, twice as long).
SMALL_MATRICES = 4

#: Matrices of so many rows are worked on by one: a second one takes longer to wake up.
VERY_SMALL = 200

#: BLAS and PyTorch count for the whole process: who comes first sets them, who leaves last puts them back.
_lock = threading.Lock()
_inside = 0
_before = ExitStack()


@contextmanager
def thread_share(threads: int) -> Iterator[None]:
    """BLAS, OpenMP and PyTorch use ``threads`` threads inside, and as many as before afterwards.

    It may be entered by several threads of a process at once, which must then ask for the same number.
    """
    global _inside
    libraries, of_torch = ThreadpoolController(), torch.get_num_threads()
    # OpenMP counts for each thread
    with libraries.limit(limits=threads, user_api="openmp"):
        with _lock:
            if _inside == 0:
                _before.enter_context(libraries.limit(limits=threads, user_api="blas"))
                _before.callback(torch.set_num_threads, of_torch)
                torch.set_num_threads(threads)
            _inside += 1
        try:
            yield
        finally:
            with _lock:
                _inside -= 1
                if _inside == 0:
                    _before.close()


def few_threads(most: int = SMALL_MATRICES) -> AbstractContextManager[None]:
    """At most so many threads, and no more than there were."""
    return thread_share(min(most, torch.get_num_threads()))
