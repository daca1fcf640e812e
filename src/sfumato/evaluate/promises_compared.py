"""What the three promises cost readers elsewhere, for a design at hand: an estimate that takes no design.

Each noise is the least one for the sensitive inputs of the design itself (MATH.md 2 and 13), without the search and the
proof that a design takes. It is shown beside a certificate, and promises nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from ..arrays import Array
from ..design import least_noise
from ..linalg import Whitening
from ..promise import Design, FloorTolerance, FractionTolerance, Protects, RecordTolerance
from ..text import name_and_unit, shown
from .tradeoffs import short

#: Comparing takes a few factorisations of matrices of this size at most: about a second.
MOST_ROWS = 1000


@dataclass(frozen=True)
class PromisesCompared:
    """Readers' expected errors at the rows outside the region, root mean squares in the units of y.

    ``protects`` is what the design at hand protects, whose error is no estimate; ``unit`` is that of y, with a space
    before it, or nothing.
    """

    nothing: float
    records: float
    function: float
    both: float
    protects: Protects
    unit: str = ""

    def __str__(self) -> str:
        errors = {"records": self.records, "function": self.function, "both": self.both}
        told = [
            f"{'' if protects == self.protects else 'about '}{short(error)}{self.unit} with {protects} protected"
            f"{' (as here)' * (protects == self.protects)}"
            for protects, error in errors.items()
        ]
        return shown(
            f"Readers' error at rows outside: {short(self.nothing)}{self.unit} without protection, {', '.join(told)}."
        )


def compare_promises(design: Design, output: str = "") -> PromisesCompared | None:
    """The three promises at the level of ``design``; None where that would take long, or is another kind of promise.

    ``output`` is the name of y, with its unit in brackets.
    """
    tolerance = design.tolerance.alone
    plain = design.guarantee == "joint" and design.structure == "full" and design.objective == "noise"
    plain = plain and design.weights is None
    rows, inside = len(design.inputs), design.region.contains(design.inputs.values)
    own = design.prior.noise_variance(rows)
    if (
        not plain
        or design.noise.compressed
        or design.others
        or design.families
        or design.insiders is not None
        or design.inputs.outputs.numbered
        or not isinstance(tolerance, (FractionTolerance, FloorTolerance))
        or rows > MOST_ROWS
        or not np.any(inside & (own > 0))
        or np.all(inside)
    ):
        return None
    prior = design.prior
    covariance = prior.covariance(design.inputs)
    data = covariance + np.diag(own)
    outside = covariance[:, ~inside]

    def error(noise: Array) -> float:
        explained = Whitening.of(data + noise).apply(outside)
        left = np.diag(covariance)[~inside] - np.sum(explained**2, axis=0)
        return float(np.sqrt(np.mean(np.maximum(left, 0.0))))

    errors = {}
    for protects in get_args(Protects):
        chosen = RecordTolerance(tolerance) if protects == "records" else tolerance
        own_design = protects == design.protects
        errors[protects] = error(
            design.noise.covariance() if own_design else least_noise(design, chosen, protects, data)
        )
    bare, unit = error(np.zeros_like(data)), name_and_unit(output)[1]
    return PromisesCompared(nothing=bare, protects=design.protects, unit=unit, **errors)
