"""The arrays that numbers come in, float64 and how exact it is, truth values, places; and places spread evenly."""

from __future__ import annotations

import math
import numbers
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Index: TypeAlias = npt.NDArray[np.intp]

#: u = 2⁻⁵²: twice the largest relative error of one operation in float64 (docs/roundoff.md).
UNIT = float(np.finfo(np.float64).eps)

#: The golden ratio: multiples of it, modulo 1, fill an interval evenly.
GOLDEN = (5.0**0.5 - 1.0) / 2.0


def is_number(value: Any) -> bool:
    """Whether ``value`` is one finite real number, of Python or NumPy; truth values are none."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def frozen(values: Array) -> Array:
    """``values`` in one block that can no longer be written to."""
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values


def evenly(count: int, most: int) -> Index:
    """At most ``most`` of ``count`` places, evenly spread, with both ends.

    >>> evenly(101, 5).tolist(), evenly(3, 5).tolist()
    ([0, 25, 50, 75, 100], [0, 1, 2])
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))
