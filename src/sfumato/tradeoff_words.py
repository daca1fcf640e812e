"""How numbers of a comparison are written: as people write them, with no more digits than anyone reads."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """A number as people write it.

    >>> [number(value) for value in (20000.0, 0.031416, 12.345678, float("nan"))]
    ['20,000', '0.03142', '12.35', '–']
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def share(value: float) -> str:
    """A share in per cent, with no more digits than anyone reads.

    >>> [share(value) for value in (0.0312, 0.00004, 0.5, 0.0, 0.0042)]
    ['3 %', 'less than 0.01 %', '50 %', '0 %', '0.4 %']
    """
    if math.isnan(value):
        return "–"
    if 0.0 < value < 1e-4:
        return "less than 0.01 %"
    for digits, least in ((0, 0.01), (1, 0.001)):
        if value >= least:
            return f"{100 * value:.{digits}f} %"
    return f"{100 * value:.2f} %" if value else "0 %"


def short(value: float) -> str:
    """Two digits, for sentences."""
    if not math.isfinite(value) or abs(value) >= 100:
        return number(value if not math.isfinite(value) else float(round(value)))
    return f"{value:.2g}"
