"""What checking a promise takes, in memory and time, from the sizes of a design alone: known before any of it is done.

A file of a megabyte can promise something about 60,000 rows, to 500 readers, or with a kernel of many parts. What does
not fit in memory is refused; what takes long is told, and can be interrupted. Memory is counted from above: all
matrices that may be there at the same time, as examination.py goes along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..machine import product_rate, require_memory, warn_of_time
from ..models import Prior, seconds_a_value
from ..promise import Design
from ..text import counted
from .knowledge import SOLVED_AT_ONCE, SPREAD_FOR_AN_ESTIMATE
from .search import inputs_looked_at

#: n × n matrices that there are besides one Cholesky factor a reader: the covariance that is being factored, a copy.
MATRICES = 2.0
#: The same for insiders (noise, whitened noise, data, and those of a group from scratch), for promises about every
#: input, and for weights that are a matrix.
OF_INSIDERS, EVERYWHERE, OF_WEIGHTS = 9.0, 5.0, 4.0

#: The same where predictions at served inputs were optimised.
OF_SERVED = 4.0

#: Matrices of the promised values with themselves, and with the rows, that a joint promise has at a time.
OF_PROMISED, WITH_ROWS = 7.0, 4.0

#: p × p matrices of virtual rows that there are at a time, besides the sums themselves.
OF_SUMS = 14.0

#: Blocks of so many numbers as are solved for at once: covariances, what is solved, and their squares.
BLOCKS = 4.0

#: What all of it takes in a small file: libraries that are loaded when they are first used.
LEAST_BYTES = 64.0 * 2.0**20

#: A check factors, solves for a proof and looks for the worst inputs: as much work as so many products of n × n
#: matrices, for each reader.
PRODUCTS = 20.0

#: An eigendecomposition takes as long as so many products of the same size.
EIGENVALUES = 10.0

#: Of many kernels so many are timed, the largest.
MOST_TIMED = 8

#: Up to this much work in products, and so many values of kernels, nothing is timed: it is a matter of seconds.
LITTLE_WORK, FEW_VALUES = 1e11, 1e6


@dataclass(frozen=True)
class Cost:
    """What a check is expected to take; ``sizes`` are its sizes in words."""

    bytes: float
    seconds: float
    sizes: str

    def require(self, device: str | None) -> None:
        """Raise where it does not fit in memory; warn where it takes long."""
        work = f"checking {self.sizes}"
        require_memory(self.bytes, work, "use a machine with more memory; nothing is certified until then.", device)
        warn_of_time(self.seconds, work, "what is not checked is not certified.")


def cost_of_check(design: Design, device: str | None = None, records: int | None = None) -> Cost:
    """What a certificate of ``design`` takes; ``records`` are promised (left out: the design says how many)."""
    return _of_sums(design, device) if design.noise.compressed else _of_rows(design, device, records)


def _of_rows(design: Design, device: str | None, records: int | None) -> Cost:
    rows, readers = float(len(design.inputs)), float(len(design.examined))
    promised = float(_promised(design) + (len(design.records) if records is None else records))
    probes = float(inputs_looked_at(design))
    everywhere, insiders = design.cover == "everywhere", design.insiders is not None
    matrix_weights = design.weights is not None and design.weights.ndim == 2
    matrices = readers + OF_INSIDERS * insiders + EVERYWHERE * everywhere + OF_WEIGHTS * matrix_weights
    if not everywhere:
        # the same factor in single precision, for proofs
        matrices += readers / 2.0
    roots = WITH_ROWS
    if design.witness is not None:
        # a lower bound has A of each prior, and a root of what each reader and insider may learn
        matrices += 2.0 * len(design.priors)
        roots += len(design.priors) + len(design.designed_for)
    served = 0.0 if design.serves is None else float(len(design.serves))
    if served:
        # the covariance of all rows without noise, its factor and what is optimised
        matrices += OF_SERVED
    # covariances are factored before anything is solved for
    at_work = max(MATRICES * rows**2, BLOCKS * min(float(SOLVED_AT_ONCE), rows * probes))
    taken = matrices * rows**2 + rows * (roots * promised + WITH_ROWS * served) + OF_PROMISED * promised**2 + at_work
    work = readers * (PRODUCTS * rows**3 + 2.0 * rows**2 * (probes + promised) + EIGENVALUES * promised**3)
    values = readers * (3.0 * rows**2 + rows * (probes + 3.0 * promised) + 2.0 * promised**2) + rows * served
    if served:
        work += 4.0 * rows**2 * (served + promised) + EIGENVALUES * rows**3
    if insiders:
        work += readers * _work_for_insiders(design, promised)
    sizes = f"{len(design.inputs):,} rows and {len(design.sensitive):,} sensitive inputs"
    if promised > 2.0 * len(design.sensitive):
        sizes += f" ({promised:,.0f} promised values)"
    if readers > 1:
        sizes += f" for {readers:.0f} readers"
    if design.insiders is not None:
        sizes += f" and {len(design.insiders):,} groups of insiders"
    return Cost(LEAST_BYTES + 8.0 * taken, _seconds(design.examined, design, work, values, device), sizes)


def _of_sums(design: Design, device: str | None) -> Cost:
    """One pass over any number of rows; what is held are matrices of all centres."""
    noise, priors = design.noise.as_function(), design.priors
    twice = any(mine is not its for mine, its in zip(priors, noise.priors, strict=True))
    size = float(sum(map(len, noise.centres))) * (1.0 + twice)
    noisy = sum(not isinstance(prior.noise, float) for prior in priors)
    grams = 1.0 + 2.0 * (design.weights is not None) + 2.0 * noisy + len(priors)
    threads = torch.get_num_threads() if device is None else 1
    promised, rows = float(_promised(design)), float(len(design.inputs))
    matrices = grams * (1.0 + threads) + OF_SUMS + 2.0 * len(priors)
    taken = matrices * size**2 + (WITH_ROWS * size + OF_PROMISED * promised) * promised + 2.0 * threads * 4096.0 * size
    work = rows * size * (2.0 + 2.0 * grams) * size + len(priors) * EIGENVALUES * (size**3 + promised**3)
    values = rows * size + len(priors) * (size**2 + promised**2)
    sizes = f"{len(design.inputs):,} rows and {size:,.0f} centres for {counted(len(priors), 'reader')}"
    return Cost(LEAST_BYTES + 8.0 * taken, _seconds(priors, design, work, values, device), sizes)


def _promised(design: Design) -> int:
    """At how many inputs together something is computed about f."""
    if design.cover == "everywhere":
        return 0
    spread = 0
    if design.guarantee == "pointwise" and design.protects_function:
        spread = SPREAD_FOR_AN_ESTIMATE if design.region.points is None else len(design.region.points)
    return len(design.sensitive) + spread


def _work_for_insiders(design: Design, promised: float) -> float:
    """Each group is a problem of its own; where rows are the same, or noise has few sources, one of all rows."""
    assert design.insiders is not None
    rows = float(len(design.inputs))
    held = np.array([len(group) for group in design.insiders.groups], dtype=np.float64)
    each = EIGENVALUES * held**3 + held**2 * (rows + promised) + 2.0 * held * promised**2 + promised**3
    sources = design.noise.rank + design.noise.suppressed_count
    few_sources = design.noise.shift == 0.0 and sources < np.max(held, initial=0.0)
    if few_sources or len(np.unique(design.inputs.values, axis=0)) < rows:
        each += 2.0 * EIGENVALUES * rows**3
    # a call takes some ten microseconds, however small
    return 2.0 * float(np.sum(each + 1e6))


def _seconds(priors: Sequence[Prior], design: Design, work: float, values: float, device: str | None) -> float:
    """So much ``work`` in matrix products, and so many ``values`` of kernels."""
    seconds = work / product_rate(device) if work > LITTLE_WORK else 0.0
    return seconds + (values * _seconds_a_value(priors, design) if values > FEW_VALUES else 0.0)


def _seconds_a_value(priors: Sequence[Prior], design: Design) -> float:
    """How long one value of a kernel takes: the mean of the largest kernels, measured in milliseconds."""
    largest = sorted(priors, key=lambda one: sum(1 for _ in one.kernel.modules()), reverse=True)[:MOST_TIMED]
    return float(np.mean([seconds_a_value(one.kernel, design.inputs.sample.values) for one in largest]))
