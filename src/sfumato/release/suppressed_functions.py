"""What is published in place of suppressed functions of the inputs, at any number of rows: what the rest predicts.

The noise is ``Z = Φ c ω`` and ``Φ s`` are the suppressed functions at the rows (proof/sums.py). With ``Π = ΦᵀV⁻¹Φ`` and
``p = ΦᵀV⁻¹(W − m)`` for ``W = y + Z``, published is ``W + Φ s d``, where d follows from p alone:

1. ``e = (sᵀΠs)⁻¹sᵀp`` is how much of them W shows. ``W − Φ s e`` and ``p − Π s e`` are the same for W and for
   ``W + Φ s η`` with any η: functions of what is kept.
2. With ``M = Π⁻¹ + D + c cᵀ`` the covariance of u as the rows show it, what is kept predicts ``−(sᵀM⁻¹s)⁻¹ sᵀM⁻¹Π⁻¹``
   times the second of these for η. So much is put in place, or less where that is far from all that the prior expects.

So a release is a function of ``y + Z + Φ s η``, with η ~ N(0, τ²) and any τ: whatever a certificate proves for values
with that noise is true of it, and no published number shows a suppressed one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..data import Engine, Here, Part
from ..noise import round_outputs
from ..promise import Design
from ..proof import Features, Summary, noise_coefficients, seen_functions, sources_of, summarise
from .rounding import typical_std
from .suppression import FURTHEST, HALF_A_STEP, Shown

#: Where less than this share of a standard deviation is shown of suppressed functions, it is round-off.
NO_FUNCTION_SHOWN = 1e-5


def filled(design: Design, outputs: Array, device: str) -> Array:
    """``outputs`` y + Z in memory, with what the rest predicts in place of what is suppressed."""
    noise = design.noise.as_function()
    instead = put_in_place(design, sums_over(design, outputs, Here(device), device)).instead
    function = noise.function(np.zeros(noise.sources), device, instead)
    return np.asarray(outputs + np.concatenate([function.at(part.inputs()) for part in design.inputs.parts()]))


def sums_over(
    design: Design, outputs: Any, engine: Engine, device: str, added: Callable[[Part], Array] | None = None
) -> Summary:
    """What ``put_in_place`` needs, by one pass over the rows: of ``outputs``, with what is ``added`` to those of a
    part."""
    noise = design.noise.as_function()
    features = [Features.around(prior, centres) for prior, centres in zip(noise.priors, noise.centres, strict=True)]
    rows, on = design.inputs, None if device == "cpu" else device
    return summarise(
        [design.prior],
        features,
        rows,
        None,
        engine,
        on,
        lambda done: None,
        outputs,
        blurred=noise.records,
        added=added,
    )


class InPlace(NamedTuple):
    """``instead`` is d: how much of each suppressed function is added to values. ``deviations`` says how far they are
    from what the rest predicts, in standard deviations that readers have who are not shown them; ``share`` of what it
    predicts is put in place."""

    instead: Array
    deviations: float
    share: float = 1.0


@dataclass(frozen=True)
class AreRounded:
    """The work on a part: whether all values of its column ``name`` are multiples of ``step``."""

    name: str
    step: float

    def __call__(self, part: Part) -> bool:
        values = part.column(self.name)
        return bool(np.array_equal(round_outputs(values, self.step), values))


def shown_by(design: Design, outputs: Any, step: float, engine: Engine, device: str) -> Shown:
    """How much published ``outputs``, multiples of ``step``, show of what is suppressed.

    What rounding explains: the combination that is looked at has a variance of 1, so its weights a have
    ``aᵀVa ≤ 1``, and rounding moves it by at most ``√(n/v) step/2``, with v the least V.
    """
    _, found, share = put_in_place(design, sums_over(design, outputs, engine, device))
    rounding = HALF_A_STEP * step * float(np.sqrt(len(design.inputs) / float(np.min(design.prior.noise))))
    if share < 1.0:  # the share depends on all rows
        rounding *= 1.0 + float(np.sqrt(len(design.inputs)))
    return Shown(found if not found <= rounding + NO_FUNCTION_SHOWN else 0.0, rounding)


def put_in_place(design: Design, summary: Summary) -> InPlace:
    """What is added to the values that ``summary`` has sums over: to ``y + Z``, and nothing to what is published."""
    noise = design.noise.as_function()
    s = noise_coefficients(noise, summary.features, noise.suppressing)
    told, seen = summary.precision(0), summary.projection
    turned = seen_functions(told, s)
    if not turned.shape[1]:
        return InPlace(np.zeros(noise.suppressed_count), 0.0)
    s = s @ turned
    shown = s.T @ seen
    for _ in range(2):  # once more for what rounding leaves
        seen = seen - told @ (s @ (s.T @ seen))
    root = sources_of(summary, noise_coefficients(noise, summary.features))
    inner = root.T @ told @ root
    inner[np.diag_indices_from(inner)] += 1.0
    factor = scipy.linalg.cho_factor(inner, lower=True, check_finite=False)

    def without_u(block: Array) -> Array:
        """``(1 + Π T Tᵀ)⁻¹``, which is ``M⁻¹Π⁻¹``, times ``block``."""
        return np.asarray(block - told @ (root @ scipy.linalg.cho_solve(factor, root.T @ block, check_finite=False)))

    precision = s.T @ without_u(told @ s)
    expected = -scipy.linalg.lstsq(precision, s.T @ without_u(seen), check_finite=False)[0]
    share = _share(design, noise.function(np.zeros(noise.sources), instead=turned @ expected).at)
    off = share * expected - shown
    return InPlace(turned @ off, float(np.sqrt(np.maximum(off @ precision @ off, 0.0))), share)


def _share(design: Design, function: Callable[[Array], Array]) -> float:
    """Which share of ``function`` is not too far from 0 at rows that stand for all."""
    furthest = float(np.max(np.abs(function(design.representatives.values)), initial=0.0))
    most = FURTHEST * float(typical_std(design)[0])
    return most / furthest if furthest > most else 1.0
