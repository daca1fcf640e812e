"""Whom a promise to a family of priors is shown to be kept for: finitely many processes that stand for all readers.

models/below.py shows it for lengthscales. For the other two ranges, what readers do not know, Cov(f(S), y_R|W), is a
concave function of the variance and of V together and grows with both:

- A *floor* is the same for all: it is kept if it is kept where both are least.
- A *share of f*, ``Var(f|W) ≥ (1 − α) v K``: after a division by v the noise on the data is (V + Σ)/v, so the largest
  variance with the least V is the worst.
- A *share of f and of records*, ``(1 − α)(v K + V)``: at a given V/v the same division shows that larger is worse, so
  that one of them is at its largest. Along these two sides the difference is concave: their three corners stand for
  all.
- A *share of records*, ``(1 − α) V``: it grows with v, so the least v counts, and both ends of V.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..models import FamilyMember, PriorFamily
from .tolerance import FloorTolerance, FractionTolerance, RecordTolerance, TabulatedFloor, Tolerance


def can_be_promised_to_families(tolerance: Tolerance) -> bool:
    """Whether it is a share or a floor."""
    return isinstance(tolerance.alone, (FractionTolerance, FloorTolerance, TabulatedFloor))


def corners(family: PriorFamily, tolerance: Tolerance, protects: str) -> list[tuple[float, float]]:
    """Factors for the variance and for V that stand for all of the family."""
    (low, high), (quiet, loud) = family.variance, family.noise
    if not np.any(np.asarray(family.prior.noise) > 0.0):
        quiet = loud = 1.0
    if not isinstance(tolerance.alone, FractionTolerance):
        found = [(low, quiet)]
    elif isinstance(tolerance, RecordTolerance):
        found = [(low, quiet), (low, loud)]
    elif protects == "function":
        found = [(high, quiet)]
    else:
        found = [(high, quiet), (high, loud), (low, loud)]
    return list(dict.fromkeys(found))


def size_of_members(
    families: Sequence[PriorFamily], tolerance: Tolerance, protects: str, columns: int
) -> tuple[int, int]:
    """How many processes stand for all readers of ``families``, and of how many parts all of them together are made."""
    count = parts = 0
    for family in families:
        each, made_of = family.parts_of_members(columns)
        own = each * len(corners(family, tolerance, protects))
        count, parts = count + own, parts + own * made_of
    return count, parts


@lru_cache(maxsize=8)
def members_of(
    families: tuple[PriorFamily, ...], tolerance: Tolerance, protects: str, columns: int
) -> tuple[FamilyMember, ...]:
    """Processes that stand for all readers of ``families``, over so many ``columns``."""
    return tuple(
        member for family in families for member in family.members(columns, corners(family, tolerance, protects))
    )
