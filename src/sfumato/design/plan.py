"""How a design is worked out, decided once: by which method, where, and with how much memory.

``decide`` looks at the size of a problem and at what was asked for, before any long work. The plan that comes back is
carried out as it stands (closed_form.py, compression.py) and can be printed; nobody else decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError
from ..machine import free_memory, in_bytes, in_hours, product_rate, require_memory
from .evidence import AskedEvidence

Method = Literal["auto", "eigh", "subspace", "compressed", "sign"]

#: Up to this many rows designs are exact; nothing else is considered.
FEW_ROWS = 4000

#: The same on a GPU, where n × n matrices of this size cost less than the steps of a compression.
FEW_ROWS_ON_DEVICE = 16_384

#: ``method="auto"`` compresses where centres are at most this share of the rows.
WORTH_COMPRESSING = 0.2

#: ``method="auto"`` takes the subspace method from this many rows on, with at least this many rows for each sensitive
#: input.
SUBSPACE_ROWS, ROWS_A_SENSITIVE_INPUT = 1000, 10

#: How far the noise of a design may be above the least, as a share, unless ``accuracy`` says otherwise.
SUBSPACE_ACCURACY, COMPRESSED_ACCURACY = 1e-8, 1e-6

#: How far predictions may be from the best, as a share of what readers explain, unless ``accuracy`` says otherwise.
PREDICTIONS_ACCURACY = 1e-4

#: n × n matrices that an exact design has at a time, those of its certificate included.
MATRICES = {"subspace": 3.0, "eigh": 6.0, "sign": 7.0}

#: How many probes there are at a time: exact designs keep a column of n numbers for each.
PROBES = 8192

#: What a design costs in factorisations: a search solves, probes and certifies several times.
FACTORISATIONS = 30.0


@dataclass(frozen=True)
class Size:
    """What decides how a problem is worked out. ``closed_form``: a joint promise to one reader, with correlated noise.

    ``own_noise``: rows have noise variances of their own. ``in_memory``: all rows are in the memory of this machine.
    ``named``: how many sensitive inputs the region names, 0 where it is left to the design. ``serves``: the best
    predictions are asked for, which are looked for from the least noise on.
    """

    rows: int
    readers: int = 1
    closed_form: bool = True
    weighted: bool = False
    own_noise: bool = False
    in_memory: bool = True
    named: int = 0
    serves: bool = False


@dataclass(frozen=True)
class Asked:
    """What a user says about the work; None and "auto" leave it to the plan."""

    method: Method = "auto"
    accuracy: float | None = None
    device: str | None = None
    evidence: AskedEvidence = "best"


@dataclass(frozen=True)
class Plan:
    """``method`` on ``device`` (None: the CPU), to within ``accuracy`` of the least noise, or ``gap`` of the best
    predictions.

    The subspace method is used for at most ``most_sensitive`` sensitive inputs, and an eigensolver beyond.
    ``seconds`` and ``bytes`` are estimates, ``centres`` is how many compression is expected to take.
    """

    method: Literal["eigh", "subspace", "compressed", "sign"] = "eigh"
    rows: int = 0
    device: str | None = None
    accuracy: float = SUBSPACE_ACCURACY
    most_sensitive: int = -1
    seconds: float = 0.0
    bytes: float = 0.0
    centres: int | None = None
    gap: float = PREDICTIONS_ACCURACY

    def __str__(self) -> str:
        size = f", {self.centres} centres" if self.centres else ""
        place = f" on {self.device}" if self.device else ""
        beyond = f" (eigh beyond {self.most_sensitive:,} sensitive inputs)" if self.method == "subspace" else ""
        return (
            f'{self.rows:,} rows: method="{self.method}"{beyond}{size}{place}, about {in_hours(self.seconds)} and '
            f"{in_bytes(self.bytes)} of memory"
        )


def decide(size: Size, asked: Asked, check_compressible: Callable[[], None], centres: Callable[[], int]) -> Plan:
    """The plan for a problem of this size.

    ``check_compressible`` raises ``InputError`` where compression cannot do what is asked, ``centres`` says how many it
    would take; both are called only where it matters. Raises ``InputError`` where the memory would not suffice.
    """
    if asked.method not in ("auto", "compressed") and not size.closed_form:
        raise InputError(
            f"method is {asked.method!r}, which computes the positive part of the joint program; leave it out with "
            'guarantee="pointwise", structure="diagonal" or priors=[…].'
        )
    by_itself = asked.method == "auto" and _compresses(size, asked, check_compressible, centres)
    if by_itself or asked.method == "compressed":
        check_compressible()
        plan = compressed_plan(size, centres(), asked)
    elif not size.in_memory:
        raise InputError(
            f'method is {asked.method!r}, which needs all rows in the memory of one machine; use method="compressed" '
            "with engine, files and Dask."
        )
    else:
        plan = exact_plan(size, asked)
    check_memory(plan)
    return plan


def _compresses(size: Size, asked: Asked, check_compressible: Callable[[], None], centres: Callable[[], int]) -> bool:
    """Whether ``method="auto"`` compresses."""
    if size.in_memory and size.rows <= (FEW_ROWS if asked.device is None else FEW_ROWS_ON_DEVICE):
        return False
    try:
        check_compressible()
    except InputError:
        return False
    if not size.in_memory or centres() <= WORTH_COMPRESSING * size.rows:
        return True
    return exact_plan(size, asked).bytes > free_memory(asked.device)


def exact_plan(size: Size, asked: Asked | None = None) -> Plan:
    """The plan of an exact design. Programs without a closed form have solvers of their own, in "eigh"'s memory."""
    asked = asked or Asked()
    rows = float(size.rows)
    by_itself = size.closed_form and size.rows >= SUBSPACE_ROWS
    method: Literal["eigh", "subspace", "sign"] = "eigh"
    most = -1
    if asked.method == "subspace" or (asked.method == "auto" and by_itself):
        method = "subspace"
        most = size.rows if asked.method == "subspace" else size.rows // ROWS_A_SENSITIVE_INPUT
    elif asked.method == "sign":
        method = "sign"
    matrices = (
        MATRICES[method] + 2.0 * size.weighted + 2.0 * (size.readers - 1) + 4.0 * (not size.closed_form or size.serves)
    )
    work = rows**3 * (FACTORISATIONS / 3.0 if method == "subspace" else FACTORISATIONS)
    named = float(size.named)
    taken = 8.0 * (matrices * rows**2 + 2.0 * PROBES * rows + 8.0 * rows * named + 16.0 * named**2)
    seconds = work / product_rate(asked.device) if size.rows > FEW_ROWS // 4 else 0.0
    accuracy, gap = asked.accuracy or SUBSPACE_ACCURACY, asked.accuracy or PREDICTIONS_ACCURACY
    return Plan(method, size.rows, asked.device, accuracy, most, seconds, taken, gap=gap)


def compressed_plan(size: Size, centres: int, asked: Asked) -> Plan:
    """The plan of a compressed design: O(n p²) time, O(p²) memory besides the rows."""
    total = float(centres * size.readers)
    grams = 1 + 2 * size.weighted + 2 * size.own_noise
    work = float(size.rows) * total * ((1.0 + 1.25 * grams) * total + 100.0) + 3.0 * FACTORISATIONS * total**3
    taken = 8.0 * (20.0 * total**2 + 2.0 * PROBES * total + 4.0 * 4096 * total)
    seconds = 2.0 * work / product_rate(asked.device)
    accuracy = asked.accuracy or COMPRESSED_ACCURACY
    return Plan("compressed", size.rows, asked.device, accuracy, -1, seconds, taken, int(total))


def check_memory(plan: Plan) -> None:
    """Raise before the work starts where it would run out of memory."""
    remedy = "" if plan.method == "compressed" else 'method="compressed" needs far less; otherwise '
    require_memory(
        plan.bytes,
        f'method="{plan.method}" for {plan.rows:,} rows',
        f"{remedy}give fewer rows, or use a machine with more memory.",
        plan.device,
    )
