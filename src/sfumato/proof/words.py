"""What is promised, and what a reader of a certificate should know besides, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import Array
from ..promise import Design, FloorTolerance, OutputTolerance, TabulatedFloor
from .reader import TOLERANCE, Reader
from .related_outputs import notes_on_outputs
from .sums import Summary


def promise_in_words(design: Design, points: Array) -> str:
    """The promise as a sentence; ``points`` are inputs of the region, to say how large its floor is."""
    where = design.region.in_words(design.inputs.names)
    free = _free_columns(design)
    if free:
        where += f"; {', '.join(free)} as observed together in the data"
    place = f"at any {'row of the data' if design.cover == 'rows' else 's'} in the region ({where})"
    who = "no reader" if len(design.priors) == 1 else f"no reader, with any of the {len(design.priors)} priors,"
    promise = f"{who} can know f(s) better than {_floor_in_words(design, points)} {place}"
    if design.guarantee == "joint":
        several = "" if design.cover == "everywhere" else f" ({_counted(len(design.sensitive))})"
        promise += f", nor any weighted average of them{several} better than allowed"
    else:
        promise += "; a weighted average of several of them may be known better"
    allowed = design.tolerance.in_words(design.inputs.outputs.names)
    return f"{promise}. {allowed if isinstance(design.tolerance, OutputTolerance) else _capital(allowed)}"


def _counted(sensitive: int) -> str:
    return "at the sensitive input" if sensitive == 1 else f"at the {sensitive} sensitive inputs"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _floor_in_words(design: Design, points: Array) -> str:
    outputs = design.inputs.outputs
    if not outputs.numbered:  # its name need not be said
        return _floor_range(design, points)
    about = [(name, points[outputs.numbers(points) == number]) for number, name in enumerate(outputs)]
    return ", ".join(f"{_floor_range(design, own)} ({name})" for name, own in about if len(own))


def _floor_range(design: Design, points: Array) -> str:
    floors = np.concatenate([design.tolerance.floor(prior, points) for prior in design.priors])
    low, high = float(np.min(floors)), float(np.max(floors))
    if not np.isfinite(low + high) or low <= 0:
        return "the tolerance allows"
    if high - low <= 1e-6 * high:
        return f"±{low:.6g}"
    return f"±{low:.4g} (up to ±{high:.4g}, depending on s{' and the prior' if design.others else ''})"


def _free_columns(design: Design) -> list[str]:
    """The columns that the region leaves to the combinations that rows of the data have."""
    if design.region.points is not None or design.cover in ("rows", "everywhere"):
        return []
    return [name for name, free in zip(design.inputs.names, design.free_columns, strict=True) if free]


def notes_on(design: Design, readers: Sequence[Reader], worst: Array, floor_ratio: float, bare: int) -> tuple[str, ...]:
    """What else must be said; the most important first. ``bare`` inputs of those checked have no floor."""
    notes = []
    place = design.inputs.in_words(worst)
    if design.cover == "rows" and floor_ratio < 1 - TOLERANCE:
        notes.append(
            f"ONLY THE ROWS ARE PROTECTED: between them, at {place}, readers get {100 * (1 - floor_ratio):.2g} % "
            'below the floor; use cover="auto" to protect the whole region'
        )
    if bare:
        notes.append(
            f"NO FLOOR AT {bare} OF THE CHECKED INPUTS: there the tolerance is as large as the prior variance, so a "
            "release may tell everything"
        )
    notes += notes_on_outputs(design)
    if any(reader.lower is None for reader in readers):
        notes.append(
            "the covariance of the published values is singular to working precision, so nothing can be certified"
        )
    if design.noise.shift > 0:
        notes.append(
            f"every row also carries independent noise of standard deviation {np.sqrt(design.noise.shift):.1e}, which "
            "keeps the promise safe from round-off"
        )
    if design.weights is not None and design.inputs.outputs.numbered and design.weights.ndim == 1:
        notes.append(
            "noise was counted relative to the weights of the rows (if none were given: to the prior variance of their "
            "output), and so are the gap and the spill"
        )
    elif design.weights is not None:
        notes.append("rows were weighted: the gap is that of the weighted sum of variances, not of the trace")
    promised = _promised_rows(design) if design.cover == "rows" else design.region.points
    if design.guarantee == "joint" and promised is not None and 0 < len(design.sensitive) < len(promised):
        undetermined = max(reader.undetermined(promised) for reader in readers)
        notes.append(
            f"the joint promise is made for {len(design.sensitive)} of the {len(promised)} inputs; they determine the "
            f"others to within {undetermined:.1e} of their standard deviation"
        )
    if isinstance(design.tolerance, FloorTolerance) and callable(design.tolerance.value):
        notes.append("the floor varies over the region and was looked at only where it was checked")
    if isinstance(design.tolerance, TabulatedFloor):
        notes.append("the floor varies over the region and was checked at the inputs listed in the file")
    return tuple(notes)


def _promised_rows(design: Design) -> Array:
    return design.region.promised_at_rows(design.lookout.values)


def notes_on_compression(design: Design, summary: Summary, cost: float) -> tuple[str, ...]:
    """What a reader of the certificate of functional noise should know."""
    left_out = max(
        summary.residual(place, weighted=False) / float(np.mean(prior.variance(design.lookout.values)))
        for place, prior in enumerate(design.priors)
    )
    note = (
        f"compressed: the noise is a random function around {len(summary)} centres. Readers are given all that these "
        f"leave out of f ({left_out / summary.rows:.1e} of the variance of a row), so standard deviations are lower "
        f"bounds. That costs at most {cost:.1e} of the noise"
    )
    if len(design.lookout) < summary.rows:
        note += f"; inputs were looked for around {len(design.lookout):,} of the {summary.rows:,} rows"
    return (note,)
