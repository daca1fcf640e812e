"""The low-bit attack: the digits of y + Z below the size of Z's own last digit are those of y.

A floating-point number has a limited number of bits, 24 (single precision, as ``torch.randn`` gives) or 53. Noise Z is
therefore a multiple of a step that follows from its size; y is not. Where y lies on a decimal grid, the grid values v
for which W − v is a possible noise value are few: cents, for example, are then known up to quarters of a dollar.
Rounding W to a step that is far larger hides it all.
"""

from __future__ import annotations

import numpy as np

from ..entropy import round_outputs
from ..inputs import Array, Mask
from ..resolution import rounded
from .bayes import bayes
from .grid import SURE, attempt_with, beliefs
from .outcome import Attempt
from .target import Target

#: Bits of noise that was drawn in single and in double precision.
PRECISIONS = (24, 53)

#: Grid values within this many standard deviations are tried, and at most this many of them for a row.
_REACH, _MOST = 6.0, 200_000


def low_bits(target: Target, grid: float | None) -> Attempt:
    """Decodes y from the digits of W below its resolution, if there are any. Covered: releases are rounded."""
    name, W = "low bits", target.published
    finer = rounded(W, target.release.resolution, target.design) != W
    if not np.any(finer):
        known, values = np.zeros(len(W), dtype=np.bool_), W
        did = f"W has no digits below its resolution of {np.max(target.steps):g}; from them a reader"
    elif grid is None:
        plain = bayes(target)
        did = f"W is not rounded in {int(finer.sum())} rows, but y lies on no coarse grid, so nothing is decoded"
        return Attempt(name, plain.mean, plain.std, plain.evidence, True, "critical", did, plain.remedy)
    else:
        known, values = _decode(target, grid)
        did = f"W is not rounded in {int(finer.sum())} rows; from its last digits a reader"
    return attempt_with(target, name, known, values, True, did)


def _decode(target: Target, grid: float) -> tuple[Mask, Array]:
    """The rows in which one grid value is sure, among those that leave a possible noise value."""
    nothing = np.zeros(len(target.rows), dtype=np.bool_)
    mean, std = beliefs(target, target.evidence, nothing)
    found, values = nothing.copy(), np.array(target.published)
    for row, w in enumerate(target.published):
        count = _REACH * std[row] / grid
        if count > _MOST / 2:
            continue
        steps = np.arange(np.floor(mean[row] / grid - count), np.ceil(mean[row] / grid + count) + 1)
        tried = round_outputs(steps * grid, grid)
        for bits in PRECISIONS:
            fits = tried[possible_noise(float(w), tried, bits)]
            if len(fits) > 0:
                chances = np.exp(-0.5 * np.square((fits - mean[row]) / std[row]))
                best = int(np.argmax(chances))
                found[row], values[row] = chances[best] >= SURE * np.sum(chances), fits[best]
                break
    return found, values


def possible_noise(w: float, tried: Array, bits: int) -> Mask:
    """For which v in ``tried`` there is a number z of so many bits with fl(v + z) = w."""
    z = w - tried
    # the exact difference is z + lost (Knuth's TwoSum)
    back = w - z
    lost = (w - (back + z)) + (back - tried)
    step = np.exp2(np.frexp(z)[1] - float(bits))
    off = np.abs((z - np.rint(z / step) * step) + lost)
    return np.asarray(off <= np.spacing(np.abs(w)) / 2, dtype=np.bool_)
