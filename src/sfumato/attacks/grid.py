"""A reader who knows that y lies on a coarse grid (whole dollars) and rounds to it wherever the noise allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..inputs import Array, Mask
from .outcome import Attempt, Skipped
from .target import Evidence, Target

#: A row is decoded where one grid value is this probable.
SURE = 0.99

#: Decoded rows sharpen the others; this many times at most, and fewer where a round takes long.
_ROUNDS, _WORK = 20, 10_000_000

#: Grid values around the nearest one that it has to outdo.
_NEIGHBOURS = np.arange(-10, 11)

#: A grid finer than this share of the spread of y tells nothing that is worth a try.
_FINEST = 1e-5


def grid_of(y: Array, asked: Any = None) -> float | None:
    """The step of the grid that ``y`` lies on: ``asked``, or the coarsest of 1, 2, 5 times powers of ten; or None."""
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, (int, float, np.number)) or not 0 < asked < np.inf:
            raise InputError(f"grid is {asked!r}; give the positive step that y is a multiple of, such as 1.")
        if not _on_grid(y, float(asked)):
            off = int(np.argmax(np.abs(y / asked - np.rint(y / asked))))
            raise InputError(
                f"grid is {asked:g}, but y has {y[off]:.10g} in row {off}, which is no multiple of it; give the step "
                "that y is rounded to, or leave it out."
            )
        return float(asked)
    spread = float(np.std(y))
    if spread == 0.0:
        return None
    top = int(np.ceil(np.log10(max(spread, np.max(np.abs(y))))))
    steps = (float(f"{digit}e{power}") for power in range(top, top - 20, -1) for digit in (5, 2, 1))
    return next((step for step in steps if step >= _FINEST * spread and _on_grid(y, step)), None)


def knows_grid(target: Target, grid: float | None) -> Attempt | Skipped:
    """Rounds the Bayes estimate of y to the grid in rows where one grid value is sure, and goes on from these.

    Not covered: knowing the grid is a better prior than the Gaussian one. It wins where the noise is far below the
    step, which are mostly rows that were not to be protected, and gains nothing where the noise is larger.
    """
    name = "knows the grid of y"
    if grid is None:
        return Skipped(name, "y lies on no coarse grid")
    decoded, values = _decode(target, grid)
    return attempt_with(target, name, decoded, values, False, f"A reader who knows that y is a multiple of {grid:g}")


def attempt_with(target: Target, name: str, decoded: Mask, values: Array, covered: bool, did: str) -> Attempt:
    """Predict from the release and decoded values as if they were exact.

    It is judged as if it knew the values that are right: the wrong ones only add to its error.
    """
    right = decoded & np.isclose(values, target.y, rtol=1e-12, atol=0.0)
    seen = target.evidence_with(decoded, values[decoded]).seen_by(target.prior)
    inside = target.rows_inside
    share = f"{int((right & inside).sum())} of {int(inside.sum())} rows inside the region"
    remedy = "release without rounding y first, name the priors that you fear, or choose a floor of several steps"
    if covered:
        remedy = "publish what release(y) gives, which is rounded; never y plus noise as it comes"
    return Attempt(
        name,
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence_with(right, target.y[right]),
        covered,
        "medium",
        f"{did} decodes {share}",
        remedy,
        own_prior=not covered,
    )


def beliefs(target: Target, evidence: Evidence, known: Mask) -> tuple[Array, Array]:
    """Mean and standard deviation of y at the rows, given the release and y at the ``known`` rows."""
    A = target.prior.covariance(target.rows) + np.diag(target.own_noise)
    mean = target.prior.mean_at(target.rows)
    total = np.block([[A + target.noise, A[:, known]], [A[known], A[np.ix_(known, known)]]])
    total[np.diag_indices(len(A))] += target.rounding
    cross = np.hstack([A, A[:, known]])
    values, vectors = np.linalg.eigh(total)
    keep = values > len(values) * np.finfo(float).eps * values[-1]
    white = (cross @ vectors[:, keep]) / np.sqrt(values[keep])
    residual = (vectors[:, keep].T @ (evidence.values - np.concatenate([mean, mean[known]]))) / np.sqrt(values[keep])
    # never surer than the arithmetic
    left = np.maximum(np.diag(A) - np.einsum("ij,ij->i", white, white), 1e-12 * np.diag(A))
    return mean + white @ residual, np.sqrt(left)


def _decode(target: Target, grid: float) -> tuple[Mask, Array]:
    """Which rows are decoded, and to what."""
    decoded, values = np.zeros(len(target.rows), dtype=np.bool_), np.array(target.published)
    for _ in range(min(_ROUNDS, 1 + _WORK // len(values) ** 2)):
        mean, std = beliefs(target, target.evidence_with(decoded, values[decoded]), decoded)
        nearest = np.rint(mean / grid) * grid
        likely = np.exp(-0.5 * ((nearest[:, None] + grid * _NEIGHBOURS - mean[:, None]) / std[:, None]) ** 2)
        new = (np.max(likely, axis=1) >= SURE * np.sum(likely, axis=1)) & (np.max(likely, axis=1) > 0) & ~decoded
        if not np.any(new):
            break
        values[new], decoded = nearest[new], decoded | new
    return decoded, values


def _on_grid(y: Array, step: float) -> bool:
    multiples = y / step
    return bool(np.all(np.abs(multiples - np.rint(multiples)) <= 1e-9 * np.maximum(np.abs(multiples), 1.0)))
