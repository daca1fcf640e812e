"""Whether the data's own spread is that of the prior, which their owner can see and readers cannot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..promise import Design, Finding
from ..release import FAR, expected, far_in_words, place_of


def floor_above_spread(design: Design, y: Array) -> Iterator[Finding]:
    """A finding for each output of which the average of its values outside the region is nearer than the floor.

    That average is no secret. A reader who takes it for the values inside is off by their spread about it; a floor
    above that is promised by the prior, and is not in the data. (The spread of the values inside about their own
    average is no measure: that average is hidden too. That of all values is none either: it may come from outside.)
    """
    rows = design.inputs
    inside = np.asarray(design.region.contains(rows.values), dtype=np.bool_)
    for name in rows.present if design.protects_function else ():
        own = np.zeros(len(rows), dtype=np.bool_)
        own[rows.rows_about(name)] = True
        within, outside = own & inside, own & ~inside
        if within.sum() < 2 or not outside.any():
            continue
        floors = design.tolerance.floor(design.prior, rows.values[within])
        off = float(np.sqrt(np.mean((y[within] - np.mean(y[outside])) ** 2)))
        floor = float(np.sqrt(np.mean(floors**2)))
        if off < floor:
            about = f" of {name!r}" if rows.outputs.numbered else ""
            yield Finding(
                "floor-above-spread",
                "low",
                f"Does the prior expect more than the data show? The floor{about} is {floor:.3g}, but the values in "
                f"the region lie within {off:.3g} of the average of those outside, which is no secret: who takes that "
                "average is nearer than the promise says anybody can be.",
                "Promise less (a smaller floor, a larger alpha), or give the prior the variance that the data have.",
            )


def far_from_prior(design: Design, y: Array) -> Iterator[Finding]:
    """A finding if some value is far from what the prior expects of it."""
    distance, row = expected(design).furthest(y)
    if distance > FAR:
        yield Finding(
            "values-far-from-prior",
            "low",
            far_in_words(distance, place_of(design.inputs, row)),
            "Look at that row; fit the prior to data like these, or transform them (logarithms, other units).",
        )
