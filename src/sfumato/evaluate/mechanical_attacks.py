"""Attacks on how a release was made: the grid of y, the last digits of W, the seed of the noise, noise drawn again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg

from ..arrays import Array, Index, Mask
from ..errors import InputError
from ..linalg import Whitening
from ..noise import Noise, SecretKey, round_outputs
from ..progress import alive
from ..release import UNSAFE_MESSAGE, Release, filled_in, rounded
from .statistical_attacks import bayes
from .target import MOST_ROWS, Estimate, Evidence, NotTriedError, Target

#: A row is decoded where one grid value is this probable.
SURE = 0.99

#: Decoded rows sharpen the others: at most this often, and fewer times where rows² of all rounds exceed the second.
_ROUNDS, _MOST_WORK = 20, 10_000_000

#: Grid values around the nearest one that it has to outdo.
_NEIGHBOURS = np.arange(-10, 11)

#: A grid finer than this share of the spread of y tells nothing that is worth a try.
_FINEST_SHARE = 1e-5

#: Bits of noise that was drawn in single and in double precision.
PRECISIONS = (24, 53)

#: For the last digits, grid values within this many standard deviations are tried, at most so many for a row.
_REACH, _MOST_TRIED = 6.0, 200_000

#: Seeds that are guessed, from 0 on.
GUESSES = 10_000

#: A seed is believed if it makes W this much more likely (in logarithms) than noise that nobody can guess.
BELIEVED = 5.0

#: Rows that seeds are told apart by, the most blurred ones, and how many seeds are tried at once.
_SEED_ROWS, _SEEDS_AT_ONCE = 200, 500


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
    return next((step for step in steps if step >= _FINEST_SHARE * spread and _on_grid(y, step)), None)


def knows_grid(target: Target, grid: float | None) -> Estimate:
    """Rounds the Bayes estimate of y to the grid in rows where one grid value is sure, and goes on from these.

    Not covered: knowing the grid (whole dollars) is a better prior than the Gaussian one. It wins where the noise is
    far below the step, which are mostly rows that were not to be protected, and gains nothing where it is larger.
    """
    if grid is None:
        raise NotTriedError("y lies on no coarse grid")
    return _from_decoded(target, *_decode_grid(target, grid), f"A reader who knows that y is a multiple of {grid:g}")


def _from_decoded(target: Target, decoded: Mask, values: Array, did: str) -> Estimate:
    """Predict from the release and decoded values as if they were exact.

    It is judged as if it knew the values that are right: the wrong ones only add to its error.
    """
    right = decoded & np.isclose(values, target.y, rtol=1e-12, atol=0.0)
    inside = target.rows_inside
    did = f"{did} decodes {int((right & inside).sum())} of {int(inside.sum())} rows inside the region"
    held, known = target.evidence_with(decoded, values[decoded]), target.evidence_with(right, target.y[right])
    return Estimate.by(target, held, target.prior, did, known)


def beliefs(target: Target, evidence: Evidence, known: Mask) -> tuple[Array, Array]:
    """Mean and standard deviation of y at the rows, given the release and y at the ``known`` rows."""
    A = target.prior.covariance(target.rows) + np.diag(target.own_noise)
    mean = target.prior.mean_at(target.rows)
    total = np.block([[A + target.noise, A[:, known]], [A[known], A[np.ix_(known, known)]]])
    total[np.diag_indices(len(A))] += target.rounding
    whiten = Whitening.of(total).apply
    white = whiten(np.vstack([A, A[known]]))
    residual = whiten(evidence.values - np.concatenate([mean, mean[known]]))
    # never surer than the arithmetic
    left = np.maximum(np.diag(A) - np.einsum("ij,ij->j", white, white), 1e-12 * np.diag(A))
    return mean + white.T @ residual, np.sqrt(left)


def _decode_grid(target: Target, grid: float) -> tuple[Mask, Array]:
    """Which rows are decoded, and to what."""
    decoded, values = np.zeros(len(target.rows), dtype=np.bool_), np.array(target.published)
    for _ in range(min(_ROUNDS, 1 + _MOST_WORK // len(values) ** 2)):
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


def low_bits(target: Target, grid: float | None) -> Estimate:
    """Decodes y from the digits of W below its resolution, if there are any. Covered: releases are rounded.

    A floating-point number has a limited number of bits, 24 (single precision, as ``torch.randn`` gives) or 53. Noise Z
    is therefore a multiple of a step that follows from its size; y is not. Where y lies on a decimal grid, the grid
    values v for which W − v is a possible noise value are few: cents, for example, are then known up to quarters of a
    dollar. Rounding W to a step that is far larger hides it all.
    """
    W = target.published
    finer = int(np.sum(rounded(W, target.release.resolution, target.design) != W))
    if not finer:
        did = f"W has no digits below its resolution of {np.max(target.steps):g}; from them a reader"
        return _from_decoded(target, np.zeros(len(W), dtype=np.bool_), W, did)
    if grid is None:
        return bayes(target, f"W is not rounded in {finer} rows, but y lies on no coarse grid, so nothing is decoded")
    did = f"W is not rounded in {finer} rows; from its last digits a reader"
    return _from_decoded(target, *_decode_bits(target, grid), did)


def _decode_bits(target: Target, grid: float) -> tuple[Mask, Array]:
    """The rows in which one grid value is sure, among those that leave a possible noise value."""
    nothing = np.zeros(len(target.rows), dtype=np.bool_)
    mean, std = beliefs(target, target.evidence, nothing)
    found, values = nothing.copy(), np.array(target.published)
    for row, w in enumerate(target.published):
        count = _REACH * std[row] / grid
        if count > _MOST_TRIED / 2:
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


def reads_suppressed(target: Target) -> Estimate:
    """Reads combinations that the release says it suppresses, if its values show them. Covered: releases fill them in.

    What stands in their place is what the other combinations predict, and tells nothing. Values in which it is anything
    else are taken for the true ones with noise, all of them.
    """
    if not target.release.shown_of_suppressed:
        return bayes(target, "What stands in place of suppressed combinations is what the others predict")
    blur = target.design.noise.drawn_covariance() + np.diag(target.own_noise)
    shown = target.released(target.published, blur)
    return Estimate.by(target, shown, target.prior, "The values show combinations that the release says it suppresses")


def guesses_seed(target: Target, guesses: int = GUESSES) -> Estimate:
    """Draws the noise of ``unsafe_seed`` = 0 … guesses − 1 again, and subtracts the one that explains W.

    A seed is believed where W − Z under N(m, K + V) is e⁵ · guesses times as likely as W under N(m, K + V + Σ); by
    Markov's inequality W with other noise is mistaken for a seed's with probability below e⁻⁵ < 0.01, and the owner,
    who knows y, sees through that. The right seed gains ½ log det(K + V + Σ)/det(K + V): noise that looks just like
    the prior hides its seed for a while. Covered, unless the release itself says that its noise came from a seed.
    """
    seed = find_seed(target, guesses)
    if seed is None:
        return bayes(target, f"{guesses} seeds were tried, and none explains the noise")
    values = target.published - target.design.noise.draw(_normals(target, seed))
    suppressed = target.design.noise.suppressed
    evidence = target.released(values, suppressed @ suppressed.T + np.diag(target.own_noise + target.rounding))
    basis, wrong, close = np.linalg.qr(suppressed)[0], values - target.y, 2 * target.steps
    if suppressed.shape[1]:  # rounding in one row is seen in all of them
        close = close + np.sqrt(len(wrong)) * np.max(target.steps)
    if np.any(np.abs(wrong - basis @ (basis.T @ wrong)) > close):
        # what is taken off is not what was added
        did = f"unsafe_seed = {seed} seems to explain the noise, and does not"
        return Estimate.by(target, evidence, target.prior, did, target.evidence)
    did = f"unsafe_seed = {seed} explains the noise, which is taken off"
    return Estimate.by(target, evidence, target.prior, did)


def find_seed(target: Target, guesses: int = GUESSES) -> int | None:
    """The seed that the noise came from, if it is below ``guesses`` and there is noise to tell by."""
    noise = target.design.noise
    if not noise.normals_needed:
        return None
    if noise.suppressed_count:
        # the combinations of rows with the most noise that are published as they are
        basis = np.linalg.qr(noise.suppressed)[0]
        seen = np.linalg.svd(noise.factor - basis @ (basis.T @ noise.factor), full_matrices=False)[0][:, :_SEED_ROWS]
        residual = seen.T @ (target.published - target.prior.mean_at(target.rows))
        plain = seen.T @ (target.prior.covariance(target.rows) + np.diag(target.own_noise + target.rounding)) @ seen
        hidden, draw = seen.T @ noise.drawn_covariance() @ seen, _drawer(noise, seen)
    else:
        rows: Index = np.argsort(-noise.variance(), kind="stable")[:_SEED_ROWS]
        X, residual = target.rows[rows], target.published[rows] - target.prior.mean_at(target.rows[rows])
        plain = target.prior.covariance(X) + np.diag(target.own_noise[rows] + target.rounding[rows])
        hidden, draw = target.noise[np.ix_(rows, rows)], _drawer(noise, rows)
    threshold, best, seed = _log_density(plain + hidden, residual[:, None])[0], -np.inf, 0
    for start in range(0, guesses, _SEEDS_AT_ONCE):
        alive()
        tried = range(start, min(start + _SEEDS_AT_ONCE, guesses))
        drawn = np.column_stack([draw(_normals(target, number)) for number in tried])
        densities = _log_density(plain, residual[:, None] - drawn)
        if np.max(densities) > best:
            best, seed = float(np.max(densities)), start + int(np.argmax(densities))
    return seed if best - threshold > BELIEVED + np.log(max(guesses, 1)) else None


def _normals(target: Target, seed: int) -> Array:
    return SecretKey.from_unsafe_seed(seed).normals(UNSAFE_MESSAGE, target.design.noise.normals_needed)


def _drawer(noise: Noise, rows: Index | Array) -> Callable[[Array], Array]:
    """From normals to the noise of these rows, or of the combinations of rows in these columns."""
    if rows.ndim == 2:
        return lambda normals: np.asarray(rows.T @ noise.draw(normals))
    if noise.compressed:
        # thousands of draws: the kernel is evaluated once
        factor = noise.factor[rows]
        return lambda normals: np.asarray(factor @ normals)
    return lambda normals: noise.draw(normals)[rows]


def _log_density(covariance: Array, columns: Array) -> Array:
    """log N(column; 0, covariance) of every column, up to a constant that is the same for all."""
    values, vectors = scipy.linalg.eigh(covariance)
    # directions that are singular to working precision get the width that round-off has
    values = np.maximum(values, len(values) * np.finfo(float).eps * values[-1])
    white = (vectors.T @ columns) / np.sqrt(values)[:, None]
    return np.asarray(-0.5 * (np.sum(white**2, axis=0) + np.sum(np.log(values))))


def averaging(target: Target, draws: int) -> Estimate:
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
    return _from_releases(target, target.released(mean, blur), int(draws))


def joins(target: Target, others: Sequence[Release]) -> Estimate:
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
        evidence = evidence.and_also(target.released(values, blur), np.tile(errors, (number, 1)))
    return _from_releases(target, evidence, count)


def _from_releases(target: Target, evidence: Evidence, count: int) -> Estimate:
    did = f"The posterior given {count} releases of the same values, each with noise of its own"
    return Estimate.by(target, evidence, target.prior, did)


def _more_releases(target: Target, count: int) -> list[Array]:
    key, noise = SecretKey.fresh(), target.design.noise
    drawn = (noise.draw(key.normals(b"sfumato audit %d" % i, noise.normals_needed)) for i in range(count))
    design, steps = target.design, target.release.resolution
    return [rounded(filled_in(design, target.y + values), steps, design) for values in drawn]


def _same_rows(target: Target, number: int, other: Any) -> Release:
    if not isinstance(other, Release):
        raise InputError(f"others has {str(other)[:60]!r} at place {number}; give releases, for example from sf.load.")
    if other.inputs.shape != target.rows.shape or not np.array_equal(other.inputs, target.rows):
        raise InputError(
            f"others has a release at place {number} that is not of the same rows ({len(other.inputs)} against "
            f"{len(target.rows)}); give releases of the same values at the same inputs, in the same order."
        )
    return other
