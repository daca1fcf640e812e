"""How many threads matrices are worked on with: one for small ones, a fair share of the cores beside other work.

A product of 50 × 50 matrices is over before a second thread has woken up. Thousands of them in a row, on a machine that
has other work too, are then a hundred times slower than on one thread. Two processes that each start a thread for every
core of the machine are slower together than one after the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _libraries() -> Any:
    # made late: it finds the libraries that are loaded when it is made
    return ThreadpoolController()


@contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """BLAS and OpenMP use a single thread inside, ``when`` that is faster, and as many as before afterwards."""
    with _libraries().limit(limits=1) if when else nullcontext():
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


@dataclass
class _Level:
    """``inside`` blocks of code that asked for the same number of threads, and what puts back the number before."""

    threads: int
    inside: int
    before: ExitStack


#: BLAS and PyTorch count for the whole process: who comes first sets them, who leaves last puts them back.
_lock = threading.Lock()
_levels: list[_Level] = []


@contextmanager
def thread_share(threads: int) -> Iterator[None]:
    """BLAS, OpenMP and PyTorch use ``threads`` threads inside, and as many as before afterwards.

    It may be entered by several threads of a process at once, which must then ask for the same number, and again inside
    of itself with any.
    """
    libraries, of_torch = ThreadpoolController(), torch.get_num_threads()
    # OpenMP counts for each thread
    with libraries.limit(limits=threads, user_api="openmp"):
        with _lock:
            if not _levels or _levels[-1].threads != threads:
                _levels.append(_Level(threads, 0, ExitStack()))
                _levels[-1].before.enter_context(libraries.limit(limits=threads, user_api="blas"))
                _levels[-1].before.callback(torch.set_num_threads, of_torch)
                torch.set_num_threads(threads)
            level = _levels[-1]
            level.inside += 1
        try:
            yield
        finally:
            with _lock:
                level.inside -= 1
                if level.inside == 0:
                    level.before.close()
                    _levels.remove(level)


Result = TypeVar("Result")


def side_by_side(work: Callable[[slice], Result], pieces: int) -> list[Result]:
    """``work`` on all of ``pieces``, shared out between the cores: each has every so-many-th piece and one thread.

    Threads that meet after each product of small matrices wait for the slowest of them every time.
    """
    share = max(1, min(torch.get_num_threads(), pieces))
    if share == 1:
        return [work(slice(None))]
    with thread_share(1), ThreadPoolExecutor(share) as pool:
        return list(pool.map(work, [slice(first, None, share) for first in range(share)]))


def few_threads(most: int = SMALL_MATRICES) -> AbstractContextManager[None]:
    """At most so many threads, and no more than there were."""
    return thread_share(min(most, torch.get_num_threads()))
