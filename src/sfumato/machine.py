"""What the machine can do: memory that is free, and how fast it multiplies matrices."""

from __future__ import annotations

import contextlib
import time
from functools import lru_cache
from pathlib import Path

import torch

from .errors import InputError

GIB = float(1 << 30)


def free_memory(device: str | None = None) -> float:
    """Bytes that can still be taken on ``device`` (None: this computer); infinite where nobody can tell."""
    if device is not None and device != "cpu":
        free, _ = torch.cuda.mem_get_info(torch.device(device))
        return float(free)
    return min(_of_computer(), _of_group())


def require_memory(needed: float, work: str, remedy: str, device: str | None = None) -> None:
    """Raise before ``work`` starts where it needs more bytes than are free; ``remedy`` ends the message."""
    free = free_memory(device)
    if needed > free:
        place = f" on {device}" if device else ""
        raise InputError(
            f"{work} needs about {needed / GIB:.2g} GiB of memory, but {free / GIB:.2g} GiB are free{place}; {remedy}"
        )


def _of_computer() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024.0
    return float("inf")


def _of_group() -> float:
    """What the control group of this process, a container for example, leaves."""
    folder = Path("/sys/fs/cgroup")
    with contextlib.suppress(OSError, ValueError):
        limit = (folder / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            return float(limit) - float((folder / "memory.current").read_text(encoding="ascii"))
    return float("inf")


@lru_cache
def product_rate(device: str | None = None) -> float:
    """Floating-point operations a second in products of float64 matrices, measured once, in some milliseconds."""
    size = 1024 if device is None or device == "cpu" else 8192
    matrix = torch.ones(size, size, dtype=torch.float64, device=device or "cpu")
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        product = matrix @ matrix
        # reading one number waits for the device
        float(product[0, 0])
        best = min(best, time.perf_counter() - start)
    return 2.0 * size**3 / best
