"""Guessing seeds: whoever can draw the noise again can take it off."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from ..entropy import SecretKey
from ..functional_noise import FunctionalNoise
from ..inputs import Array, Index
from ..noise import Noise
from ..release import UNSAFE_MESSAGE
from .bayes import bayes
from .outcome import Attempt
from .target import Evidence, Target

GUESSES = 10_000

#: A seed is believed if it makes W this much more likely (in logarithms) than noise that nobody can guess.
EVIDENCE = 5.0

#: Rows that are looked at: the most blurred ones tell a right seed from a wrong one.
_ROWS, _BATCH = 200, 500


def guesses_seed(target: Target, guesses: int = GUESSES) -> Attempt:
    """Draws the noise of ``unsafe_seed`` = 0 … guesses − 1 again, and subtracts the one that explains W.

    A seed is believed where W − Z under N(m, K + V) is e⁵ · guesses times as likely as W under N(m, K + V + Σ); by
    Markov's inequality W with other noise is mistaken for a seed's with probability below e⁻⁵ < 0.01, and the owner,
    who knows y, sees through that. The right seed gains ½ log det(K + V + Σ)/det(K + V): noise that looks just like
    the prior hides its seed for a while. Covered, unless the release itself says that its noise came from a seed.
    """
    seed = find_seed(target, guesses)
    did = f"{guesses} seeds were tried, and none explains the noise"
    remedy = "release without unsafe_seed, which is for experiments only"
    if seed is None:
        seen = bayes(target)
        mean, std, evidence = seen.mean, seen.std, seen.evidence
    else:
        values = target.published - _noise(target, seed)
        evidence = Evidence(target.rows, values, np.diag(target.own_noise + target.rounding))
        known = evidence.seen_by(target.prior)
        mean, std = known.mean_at(target.inputs), np.sqrt(known.variance(target.inputs))
        did = f"unsafe_seed = {seed} explains the noise, which is taken off"
        if np.any(np.abs(values - target.y) > 2 * target.steps):
            # it only seems so: what is taken off is not what was added
            evidence, did = target.evidence, f"unsafe_seed = {seed} seems to explain the noise, and does not"
    return Attempt("guesses the seed", mean, std, evidence, not target.release.unsafe, "critical", did, remedy)


def find_seed(target: Target, guesses: int = GUESSES) -> int | None:
    """The seed that the noise came from, if it is below ``guesses`` and there is noise to tell by."""
    rows: Index = np.argsort(-target.design.noise.variance(), kind="stable")[:_ROWS]
    X, residual = target.rows[rows], target.published[rows] - target.prior.mean_at(target.rows[rows])
    plain = target.prior.covariance(X) + np.diag(target.own_noise[rows] + target.rounding[rows])
    threshold = _log_density(plain + target.noise[np.ix_(rows, rows)], residual[:, None])[0]
    draw, best, seed = _drawer(target.design.noise, rows), -np.inf, 0
    for start in range(0, guesses, _BATCH):
        tried = range(start, min(start + _BATCH, guesses))
        drawn = np.column_stack([draw(_normals(target, number)) for number in tried])
        densities = _log_density(plain, residual[:, None] - drawn)
        if np.max(densities) > best:
            best, seed = float(np.max(densities)), start + int(np.argmax(densities))
    return seed if best - threshold > EVIDENCE + np.log(max(guesses, 1)) else None


def _noise(target: Target, seed: int) -> Array:
    return target.design.noise.draw(_normals(target, seed))


def _normals(target: Target, seed: int) -> Array:
    return SecretKey.from_unsafe_seed(seed).normals(UNSAFE_MESSAGE, target.design.noise.normals_needed)


def _drawer(noise: Noise, rows: Index) -> Callable[[Array], Array]:
    """From normals to the noise of these rows."""
    if isinstance(noise, FunctionalNoise):
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
