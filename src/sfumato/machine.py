"""What the machine can do: memory that is free, and how fast it multiplies matrices."""

from __future__ import annotations

import contextlib
import time
import warnings
from functools import lru_cache
from pathlib import Path

from .errors import InputError, LongWorkWarning

GIB = float(1 << 30)

#: Work that is expected to take longer than this many seconds is told beforehand, also where no progress is shown.
LONG = 600.0


def free_memory(device: str | None = None) -> float:
    """Bytes that can still be taken on ``device`` (None: this computer); infinite where nobody can tell."""
    if device is not None and device != "cpu":
        import torch  # takes seconds; tables are read without it

        free, _ = torch.cuda.mem_get_info(torch.device(device))
        return float(free)
    return min(_of_computer(), _of_group(), _of_process())


def require_memory(needed: float, work: str, remedy: str, device: str | None = None) -> None:
    """Raise before ``work`` starts where it needs more bytes than are free; ``remedy`` ends the message."""
    free = free_memory(device)
    if needed > free:
        place = f" on {device}" if device else ""
        raise InputError(
            f"{work} needs about {in_bytes(needed)} of memory, but {in_bytes(free)} are free{place}; {remedy}"
        )


def warn_of_time(seconds: float, work: str, remedy: str) -> None:
    """Warn before ``work`` starts where it takes longer than anybody waits without a word."""
    if seconds > LONG:
        warnings.warn(
            f"{work} takes about {in_hours(seconds)} on this machine, and can be interrupted; {remedy}",
            LongWorkWarning,
            stacklevel=3,
        )


def in_bytes(count: float) -> str:
    """
    >>> in_bytes(3e6), in_bytes(1.288e11)
    ('2.9 MiB', '120 GiB')
    """
    size, unit = (count / GIB, "GiB") if count >= GIB / 10.0 else (count * 1024.0 / GIB, "MiB")
    return f"{size:.0f} {unit}" if size >= 10.0 else f"{size:.2g} {unit}"


def in_hours(seconds: float) -> str:
    """
    >>> in_hours(0.1), in_hours(90), in_hours(600), in_hours(1e4), in_hours(1e6)
    ('a second', '90 s', '10 min', '2.8 h', '12 days')
    """
    if seconds < 2.0:
        return "a second"
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    if seconds < 7200.0:
        return f"{seconds / 60.0:.0f} min"
    return f"{seconds / 3600.0:.1f} h" if seconds < 2e5 else f"{seconds / 86400.0:,.0f} days"


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


def _of_process() -> float:
    """What the limit of this process (``ulimit -v``) leaves of its addresses."""
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource  # not on every system

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
            return max(0.0, float(limit - taken))
    return float("inf")


@lru_cache
def product_rate(device: str | None = None) -> float:
    """Floating-point operations a second in products of float64 matrices, measured once, in some milliseconds."""
    import torch

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
