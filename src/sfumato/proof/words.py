"""The promise of a design as a sentence."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..promise import Design, OutputTolerance

#: A floor that varies by less than this share over the region is told as one number.
SAME_FLOOR = 1e-6


def promise_in_words(design: Design, points: Array) -> str:
    """The promise as a sentence; ``points`` are inputs of the region, to say how large its floor is."""
    where = design.region.in_words(design.inputs.names)
    free = free_columns(design)
    if free:
        where += f"; {', '.join(free)} as observed together in the data"
    place = f"at any {'row of the data' if design.cover == 'rows' else 's'} in the region ({where})"
    who = "no reader" if len(design.priors) == 1 else f"no reader, with any of the {len(design.priors)} priors,"
    promise = f"{who} can know f(s) better than {_floor_in_words(design, points)} {place}"
    if design.guarantee == "joint":
        count = len(design.sensitive)
        inputs = "at the sensitive input" if count == 1 else f"at the {count} sensitive inputs"
        several = "" if design.cover == "everywhere" else f" ({inputs})"
        promise += f", nor any weighted average of them{several} better than allowed"
    else:
        promise += "; a weighted average of several of them may be known better"
    allowed = design.tolerance.in_words(design.inputs.outputs.names)
    if not isinstance(design.tolerance, OutputTolerance):  # that begins with the name of an output
        allowed = allowed[:1].upper() + allowed[1:]
    return f"{promise}. {allowed}"


def _floor_in_words(design: Design, points: Array) -> str:
    outputs = design.inputs.outputs
    if not outputs.numbered:  # its name need not be said
        return _range_in_words(design, points)
    about = [(name, points[outputs.numbers(points) == number]) for number, name in enumerate(outputs)]
    return ", ".join(f"{_range_in_words(design, own)} ({name})" for name, own in about if len(own))


def floor_range(design: Design, points: Array) -> tuple[float, float]:
    """The least and the largest floor at ``points``, for readers with any of the priors."""
    floors = np.concatenate([design.tolerance.floor(prior, points) for prior in design.priors])
    return float(np.min(floors)), float(np.max(floors))


def _range_in_words(design: Design, points: Array) -> str:
    low, high = floor_range(design, points)
    if not np.isfinite(low + high) or low <= 0:
        return "the tolerance allows"
    if high - low <= SAME_FLOOR * high:
        return f"±{low:.6g}"
    return f"±{low:.4g} (up to ±{high:.4g}, depending on s{' and the prior' if design.others else ''})"


def free_columns(design: Design) -> list[str]:
    """The columns that the region leaves to the combinations that rows of the data have."""
    if design.region.points is not None or design.cover in ("rows", "everywhere"):
        return []
    return [name for name, free in zip(design.inputs.names, design.free_columns, strict=True) if free]
