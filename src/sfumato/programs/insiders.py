"""Little noise for a joint promise that is also made to many insiders, one group of rows each (MATH.md 11).

``M = A + Σ ⪰ G₀`` keeps the promise to outsiders, and ``M ⪰ G_H`` that to whoever holds the rows H. Both are about the
same values, so ``G_H − G₀`` has a rank of at most twice the rows held: with ``N = M − G₀`` the promise to H is
``N ⪰ P_H P_Hᵀ − Q_H Q_Hᵀ`` with as many columns as rows are held (``HeldRows``), that is
``φ_H = P_Hᵀ(N + Q_H Q_Hᵀ)⁻¹P_H ⪯ I``. Nearly every row binds, because the least noise for outsiders has a low rank and
gives itself away: what is needed is noise on all rows. An interior point method for hundreds of such demands takes
hours. Here multipliers Z_H are raised where φ_H is too large and lowered where it is small, as in optimal design:
without ``Σ ⪰ B₀⁺`` the least ``Tr N + Σ ⟨Z_H, φ_H⟩`` has ``N² = Σ U_H Z_H U_Hᵀ``, ``U_H = P_H − Q_H(I + Q_HᵀN⁻¹Q_H)⁻¹
Q_HᵀN⁻¹P_H``. What comes out is a few per cent above the least, and nearly safe; noise is added for each demand that is
not met. With ``C = (I − φ_H⁻¹)⁺`` the noise ``P_H C P_Hᵀ`` makes φ_H just small enough, and that for others only helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ..arrays import Array
from ..linalg import Weighting
from .joint import joint_noise_factor

#: The promise to outsiders is held by this much tighter, so that N can be factored.
TIGHTER = 2e-3

#: How often the multipliers are changed at most, at first and where a similar search ended; and the change of the noise
#: (a share) that is small enough to stop.
ROUNDS, WARM_ROUNDS, ENOUGH = 20, 6, 1e-3

#: Safe noise that is no more than this share above what outsiders need is taken as it is.
NEARLY = 0.1

#: The search starts from this much more than the safe noise, so that N can be factored.
SAFER = 1.01

#: What demands lack at the end is added in two steps, a share of it and the rest: noise for one group helps others.
STEPS = (0.3, 1.0)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """What groups of one size ask of N: ``plus`` and ``minus`` are P_H and Q_H, n × groups × rows held."""

    plus: Array
    minus: Array

    @classmethod
    def of(cls, data: Array, told: Array, held: Array, explained: Array, kept: float) -> HeldRows:
        """From ``data`` = A_·H, ``told`` = UΔ⁻¹Cov(z, y_H), ``held`` = A_HH, ``explained`` = Cov(y_H, z)Δ⁻¹Cov(z, y_H).

        All have a group a layer. ``kept`` is c where an insider must keep ``F₀ − c Cov(z, y_H) A_HH⁻¹ Cov(y_H, z)`` and
        an outsider F₀. With ``S = A_HH/(1−c) − explained`` the difference ``G_H − G₀`` is
        ``[a, p] K [a, p]ᵀ``, a = ``data`` and p = ``told``; K is split into its positive and its negative part.
        """
        inverse = np.linalg.inv(held)
        left = np.linalg.inv(held / (1.0 - kept) - explained)
        through = explained @ left
        aa = inverse + inverse @ (explained + through @ explained) @ inverse
        ap = -inverse - inverse @ through
        core = np.concatenate(
            [np.concatenate([aa, ap], axis=2), np.concatenate([ap.swapaxes(1, 2), left], axis=2)], axis=1
        )
        size = held.shape[1]
        values, vectors = np.linalg.eigh((core + core.swapaxes(1, 2)) / 2.0)
        root = vectors * np.sqrt(np.abs(values))[:, None, :]
        columns = np.concatenate([data, told], axis=2)
        sided = np.einsum("ngi,gij->ngj", columns, root)
        # half of the eigenvalues are positive, and they come last
        plus = np.where(values[:, size:] > 0, 1.0, 0.0)
        minus = np.where(values[:, :size] < 0, 1.0, 0.0)
        return cls(sided[:, :, size:] * plus, sided[:, :, :size] * minus)

    def turned(self, turn: Callable[[Array], Array]) -> HeldRows:
        """With each column turned."""
        shape = self.plus.shape
        plus, minus = (turn(part.reshape(shape[0], -1)).reshape(shape) for part in (self.plus, self.minus))
        return HeldRows(plus, minus)

    def at(self, lower: Array) -> tuple[Array, Array]:
        """φ for each group, and U_H, where N = L Lᵀ with L = ``lower``."""
        white = [
            scipy.linalg.solve_triangular(lower, part.reshape(len(lower), -1), lower=True, check_finite=False)
            for part in (self.plus, self.minus)
        ]
        x, y = (one.reshape(self.plus.shape) for one in white)
        met, other = _products(x, y), _products(y, y)
        share = np.linalg.solve(np.eye(other.shape[1]) + other, met.swapaxes(1, 2))
        learnt = _products(x, x) - met @ share
        return learnt, self.plus - (self.minus[:, :, None, :] @ share)[:, :, 0]


def _products(left: Array, right: Array) -> Array:
    """``leftᵀ right`` for each group."""
    if left.shape[2] == 1:
        return np.asarray(np.einsum("ng,ng->g", left[:, :, 0], right[:, :, 0])[:, None, None])
    return np.asarray(left.transpose(1, 2, 0) @ right.transpose(1, 0, 2))


@dataclass(frozen=True, eq=False)
class InsiderNoise:
    """``factor`` is F with Σ = F Fᵀ; ``multipliers`` are what it was found with, to start a similar search from."""

    factor: Array
    multipliers: tuple[Array, ...] = ()


def noise_for_insiders(
    A: Array,
    root: Array,
    held: Sequence[HeldRows],
    safe: Array,
    weights: Array | None = None,
    start: InsiderNoise | None = None,
    say: Callable[[str], None] | None = None,
) -> InsiderNoise:
    """Noise that keeps the promise to outsiders (``root`` Rᵀ = G₀) and to all that ``held`` stands for.

    ``safe`` is a noise that keeps it to everyone; it is taken as it is where outsiders need nearly as much, and the
    search starts from it. ``weights`` is C where Tr CΣ is to be small.
    """
    weighting = Weighting(weights)
    A, safe, root = weighting.both(A), weighting.both(safe), weighting.forward(root)
    needed = root @ root.T
    held = [one.turned(weighting.forward) for one in held]
    hidden = joint_noise_factor(A, (1.0 + TIGHTER) * needed)
    least = hidden @ hidden.T
    if np.trace(safe) <= (1.0 + NEARLY) * np.trace(least) or not held:
        return InsiderNoise(weighting.backward(_factor(safe) if held else hidden))
    safe, bare = SAFER * safe, A - needed + least
    multipliers = () if start is None else start.multipliers
    if [len(z) for z in multipliers] != [one.plus.shape[1] for one in held]:
        multipliers = ()
    warm, total = bool(multipliers), float(np.trace(safe))
    found = best = safe
    for number in range(WARM_ROUNDS if warm else ROUNDS):
        try:
            lower = _lower(bare + (found - least))
        except np.linalg.LinAlgError:
            # single precision goes no further
            found = best
            break
        best = found
        sides = [one.at(lower) for one in held]
        if not multipliers:
            lengths = sum(float(np.sum(part**2)) for _, part in sides)
            level = 0.5 * float(np.sum((bare + safe - least) ** 2)) / lengths
            multipliers = tuple(np.tile(level * np.eye(part.shape[2]), (part.shape[1], 1, 1)) for _, part in sides)
        if number or not warm:
            multipliers = tuple(_raised(z, learnt) for z, (learnt, _) in zip(multipliers, sides, strict=True))
        square = sum((_outer(part, z) for z, (_, part) in zip(multipliers, sides, strict=True)), np.zeros_like(A))
        found = least + _roughly_positive(_rough_root(square) - bare)
        before, total = total, float(np.trace(found))
        if say is not None:
            say(f"noise for insiders, round {number + 1}: {total:.4g}")
        if abs(before - total) <= ENOUGH * total:
            break
    return InsiderNoise(weighting.backward(_factor(_meeting(A - needed, found, best, held))), multipliers)


def _meeting(bare: Array, found: Array, best: Array, held: Sequence[HeldRows]) -> Array:
    """``found``, or ``best`` where that cannot be factored, with what meets every demand."""
    for share in STEPS:
        try:
            lower = _lower(bare + found)
        except np.linalg.LinAlgError:
            found = best
            lower = _lower(bare + found)
        found = found + sum(_outer(one.plus, share * _lacking(one.at(lower)[0])) for one in held)
    return found


def _lacking(learnt: Array) -> Array:
    """(I − φ⁻¹)⁺ of each group."""
    values, vectors = np.linalg.eigh(learnt)
    return np.asarray((vectors * (1.0 - 1.0 / np.maximum(values, 1.0))[:, None, :]) @ vectors.swapaxes(1, 2))


def _raised(multiplier: Array, learnt: Array) -> Array:
    """Each multiplier with φ^{1/2} on either side."""
    values, vectors = np.linalg.eigh(learnt)
    half = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.swapaxes(1, 2)
    return np.asarray(half @ multiplier @ half)


def _outer(part: Array, multiplier: Array) -> Array:
    """The sum of U_H Z_H U_Hᵀ."""
    rows = len(part)
    scaled = (part[:, :, None, :] @ multiplier)[:, :, 0]
    return np.asarray(scaled.reshape(rows, -1) @ part.reshape(rows, -1).T, dtype=np.float64)


def _lower(matrix: Array) -> Array:
    return np.asarray(scipy.linalg.cholesky(matrix, lower=True, check_finite=False))


def _rough_eigh(matrix: Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """In single precision, which is twice as fast: what is found is made safe in double precision."""
    values, vectors = scipy.linalg.eigh(matrix.astype(np.float32), driver="evd", check_finite=False)
    return np.maximum(values, 0.0), vectors


def _roughly_positive(matrix: Array) -> Array:
    values, vectors = _rough_eigh(matrix)
    return np.asarray((vectors * values) @ vectors.T, dtype=np.float64)


def _rough_root(matrix: Array) -> Array:
    values, vectors = _rough_eigh(matrix)
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T, dtype=np.float64)


def _factor(matrix: Array) -> Array:
    """F with F Fᵀ = ``matrix``, without directions that round-off made."""
    values, vectors = scipy.linalg.eigh((matrix + matrix.T) / 2.0, driver="evd", check_finite=False)
    keep = values > 1e-15 * values[-1]
    return np.asarray(vectors[:, keep] * np.sqrt(values[keep]))
