"""Which method to use, and what it will take: said before long work begins, refused before memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError
from ..machine import GIB, free_memory, product_rate
from .closed_form import Method
from .compression import check_compressible
from .problem import Problem

#: Up to this many rows everything is done exactly, without a second thought.
FEW = 4000

#: Compression is taken by itself where centres are at most this share of the rows.
WORTH = 0.2

#: n × n matrices that an exact design has at a time, those of its certificate included.
MATRICES = {"subspace": 3.0, "eigh": 6.0, "sign": 7.0}

#: How many inputs are watched at a time: exact designs keep a column of n numbers for each.
WATCHED = 8192

#: What a design costs beside its first factorisation: a search solves, looks and certifies several times.
SEARCH = 30.0


@dataclass(frozen=True)
class Plan:
    """``method``, and about how long (``seconds``) and how much memory (``bytes``) it takes."""

    method: Method
    seconds: float
    bytes: float
    rows: int
    centres: int | None = None

    def __str__(self) -> str:
        size = f", {self.centres} centres" if self.centres else ""
        return (
            f'{self.rows:,} rows: method="{self.method}"{size}, about {_time(self.seconds)} and '
            f"{self.bytes / GIB:.2g} GiB of memory"
        )


def choose_method(problem: Problem, device: str | None, streamed: bool, centres: Callable[[], int]) -> Method:
    """What ``method="auto"`` does. ``centres`` says how many compression would take."""
    rows = len(problem.inputs)
    if not streamed and rows <= FEW:
        return "auto"
    try:
        check_compressible(problem)
    except InputError:
        return "auto"
    if streamed or centres() <= WORTH * rows or exact_plan(problem, device).bytes > free_memory(device):
        return "compressed"
    return "auto"


def exact_plan(problem: Problem, device: str | None) -> Plan:
    """What the exact methods take."""
    rows = float(len(problem.inputs))
    closed = problem.joint and problem.structure == "full" and not problem.others
    method: Method = problem.method
    if method == "auto":
        method = "subspace" if closed and rows >= 1000 else "eigh"
    matrices = MATRICES[method] + (2.0 if problem.weights is not None else 0.0) + 2.0 * len(problem.others)
    if not closed:
        matrices += 4.0
    work = rows**3 * (SEARCH / 3.0 if method == "subspace" else SEARCH)
    taken = 8.0 * (matrices * rows**2 + 2.0 * WATCHED * rows)
    return Plan(method, work / product_rate(device), taken, len(problem.inputs))


def compressed_plan(problem: Problem, centres: int, device: str | None) -> Plan:
    """What compression takes: O(n p²) time, O(p²) memory besides the rows."""
    rows, size = float(len(problem.inputs)), float(centres * (1 + len(problem.others)))
    grams = 1 + 2 * (problem.weights is not None) + 2 * (not isinstance(problem.prior.noise, float))
    work = rows * size * ((1.0 + 1.25 * grams) * size + 100.0) + 3.0 * SEARCH * size**3
    taken = 8.0 * (20.0 * size**2 + 2.0 * WATCHED * size + 4.0 * 4096 * size)
    return Plan("compressed", 2.0 * work / product_rate(device), taken, len(problem.inputs), int(size))


def check_memory(plan: Plan, device: str | None) -> None:
    """Raise before the work starts where it would run out of memory."""
    free = free_memory(device)
    if plan.bytes <= free:
        return
    remedy = "" if plan.method == "compressed" else ' method="compressed" needs far less;'
    raise InputError(
        f'method is "{plan.method}", which needs about {plan.bytes / GIB:.2g} GiB of memory for {plan.rows:,} rows, '
        f"but {free / GIB:.2g} GiB are free{f' on {device}' if device else ''};{remedy} otherwise give fewer rows, or "
        "use a machine with more memory."
    )


def _time(seconds: float) -> str:
    if seconds < 2.0:
        return "a second"
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
