"""Averaging: noise that is drawn again for the same values goes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..entropy import SecretKey
from ..errors import InputError
from ..inputs import Array
from ..release import Release
from ..resolution import rounded
from .outcome import Attempt
from .target import MOST_ROWS, Evidence, Target

_REMEDY = "publish one release of one secret, ever, or account for all of them in a ledger"


def averaging(target: Target, draws: int = 20) -> Attempt:
    """``draws`` releases of the same y by the same design: this one, and others drawn now with a fresh key.

    Their mean is a release with the noise Σ/draws; the measurement errors V are the same in all and do not average.
    Not covered: a certificate is about one release.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise InputError(f"draws is {draws!r}; give a whole number of releases, at least 1.")
    mean = target.published / draws
    for drawn in _more_releases(target, int(draws) - 1):
        mean = mean + drawn / draws
    blur = target.noise / draws + np.diag(target.own_noise)
    return _attempt(target, f"averages {draws} releases", Evidence(target.rows, mean, blur), int(draws))


def joins(target: Target, others: Sequence[Release]) -> Attempt:
    """The posterior given this release and ``others`` of the same values, whatever noise each of them has."""
    checked = [_same_rows(target, number, other) for number, other in enumerate(others, start=1)]
    count, rows = len(checked) + 1, len(target.rows)
    if count * rows > MOST_ROWS:
        raise InputError(
            f"others holds {len(checked)} releases of {rows} rows; this needs a matrix of {count * rows} rows, and at "
            f"most {MOST_ROWS} are worked with. Give fewer of them."
        )
    errors, evidence = np.diag(target.own_noise), target.evidence
    for number, other in enumerate(checked, start=1):
        values = np.asarray(other.outputs, dtype=np.float64)
        blur = other.noise.covariance() + errors
        evidence = evidence.and_also(target.rows, values, blur, np.tile(errors, (number, 1)))
    return _attempt(target, f"joins {count} releases", evidence, count)


def _attempt(target: Target, name: str, evidence: Evidence, count: int) -> Attempt:
    seen = evidence.seen_by(target.prior)
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        evidence,
        count == 1,
        "critical",
        f"The posterior given {count} releases of the same values, each with noise of its own",
        _REMEDY,
    )


def _more_releases(target: Target, count: int) -> list[Array]:
    key, noise = SecretKey.fresh(), target.design.noise
    drawn = (noise.draw(key.normals(b"sfumato audit %d" % i, noise.normals_needed)) for i in range(count))
    return [rounded(target.y + values, target.release.resolution, target.design) for values in drawn]


def _same_rows(target: Target, number: int, other: Any) -> Release:
    if not isinstance(other, Release):
        raise InputError(f"others has {str(other)[:60]!r} at place {number}; give releases, for example from sf.load.")
    if other.inputs.shape != target.rows.shape or not np.array_equal(other.inputs, target.rows):
        raise InputError(
            f"others has a release at place {number} that is not of the same rows ({len(other.inputs)} against "
            f"{len(target.rows)}); give releases of the same values at the same inputs, in the same order."
        )
    return other
