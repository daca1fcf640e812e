"""Small matrices on one thread.

A product of 50 × 50 matrices is over before a second thread has woken up. Thousands of them in a row, on a machine that
has other work too, are then a hundred times slower than on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@cache
def _controller() -> Any:
    # made late: it finds the libraries that are loaded when it is made
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS and OpenMP use a single thread inside, and as many as before afterwards."""
    with _controller().limit(limits=1):
        yield
