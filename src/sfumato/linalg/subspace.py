"""The positive part of ``U Uᵀ − A`` for a U of few columns, without any n × n eigenproblem (MATH.md 6.2).

Let P have orthonormal columns whose range holds that of U, and ``U = P R``. Among all ``Σ = P T Pᵀ`` those with
``Σ ⪰ U Uᵀ − A`` are exactly the ones with ``T ⪰ R Rᵀ − N``, ``N = (Pᵀ A⁻¹ P)⁻¹`` (a Schur complement), so the best is
``T = (R Rᵀ − N)⁺``. Whatever P is, this Σ covers ``U Uᵀ − A``: its trace bounds that of the positive part from above,
and ``Tr (Pᵀ(U Uᵀ − A)P)⁺`` bounds it from below. They meet where A maps the range of T into that of P, so in every
round P grows by what A adds to the range of T. (T has as many dimensions as the answer, whatever P is; the lower bound
may miss some. Growing by A⁻¹ instead of A, or by both at once, took more operations for the same gap.)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import torch

from ..arrays import UNIT
from .threads import torch_threads

#: Round-off that counts against us (docs/roundoff.md), in units of 2.2e-16: that of U = P R and of W as A⁻¹ sees it,
#: that of the small eigensolver, and of U itself, below which a direction of U is left out.
WHITENED, SMALL_EIGENVALUES, COLUMNS = 16.0, 8.0, 4.0

#: A basis of more than this share of all directions is no quicker than an eigensolver, unless it is tiny.
LARGEST_SHARE, TINY_BASIS = 0.35, 32

#: All small eigenproblems together may be as large as one of this share of n.
SMALL_SHARE = 0.6

#: A direction with less than this share of the gap that each of them may leave needs no further work.
SETTLED = 0.3

#: The sharper of two lower bounds costs more; it is asked for when the gap is at most this many times too large.
GAP_FOR_SHARP_BOUND = 100.0

#: With fewer rows than these, one thread does everything, or all but the work with n × n matrices: more threads gain
#: little with small matrices, and on a busy machine they wait for each other.
FEW_ROWS, SOME_ROWS = 3000, 8000


@dataclass(frozen=True, eq=False)
class SubspaceResult:
    """F with ``F Fᵀ ⪰ U Uᵀ − A``, its ``trace``, and a lower bound for the trace of any such PSD matrix.

    ``rounds`` and ``size`` tell the work: how often the basis grew, and how many columns it has.
    """

    factor: torch.Tensor
    trace: float
    lower_bound: float
    rounds: int
    size: int


class FeasibleSubspace:
    """P, and what A and A⁻¹ make of it. It grows, and nothing that is known of its columns is computed again.

    Always ``Pᵀ P = I``, ``image = A P``, ``inner = Pᵀ A P``, and ``L⁻¹ P = Z W`` with ``Zᵀ Z = I`` and a triangular W;
    ``inner`` and W are small and live on the CPU. A column costs 3n² operations once, or 5n² where A is None and its
    Cholesky factor L stands for it: one n × n matrix is live then, and two with A. The basis serves every multiple of
    a U for nothing more, and a U with some other columns for little more.
    """

    P: torch.Tensor
    image: torch.Tensor
    inner: torch.Tensor
    Z: torch.Tensor
    W: torch.Tensor

    def __init__(self, A: torch.Tensor | None, lower: torch.Tensor) -> None:
        self.A, self.lower = A, lower
        #: an estimate of ‖L⁻¹‖, from below
        self.sharpest = 1.0 / float(lower.diagonal().min())
        self.threads = torch.get_num_threads() if len(lower) >= FEW_ROWS else 1
        self._forget()

    @classmethod
    def of(cls, A: torch.Tensor) -> FeasibleSubspace | None:
        """The empty basis; None where A is not positive definite to working precision."""
        lower, failed = torch.linalg.cholesky_ex(A)
        return cls(A, lower) if int(failed) == 0 else None

    @property
    def size(self) -> int:
        """How many columns P has."""
        return self.P.shape[1]

    def positive_part(self, U: torch.Tensor, accuracy: float = 1e-8) -> SubspaceResult | None:
        """F with ``F Fᵀ ⪰ U Uᵀ − A`` and a trace within the share ``accuracy`` of the least; None where that is slow.

        Guarantee: ``Uᵀ(A + F Fᵀ)⁻¹U ⪯ I`` however far it got, except for the round-off that A and U have themselves.
        None (too many columns, or too slow a convergence) takes less work than the eigendecomposition that is then
        needed. Everything is float64 and stays on the device of A.

        >>> A, U = torch.eye(3, dtype=torch.float64), torch.tensor([[2.0], [0.0], [0.0]], dtype=torch.float64)
        >>> result = FeasibleSubspace.of(A).positive_part(U)
        >>> (result.factor @ result.factor.T).round(decimals=9).tolist()
        [[3.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
        """
        with torch_threads(1) if len(self.lower) < SOME_ROWS else nullcontext():
            for result in self.iterates(U, accuracy):
                if result.trace - result.lower_bound <= accuracy * result.trace:
                    return result
        return None

    def iterates(self, U: torch.Tensor, accuracy: float = 1e-8) -> Iterator[SubspaceResult]:
        """Ever better F, each of which keeps the promise; ends where an eigensolver would be quicker."""
        n = len(self.lower)
        most = min(n, max(TINY_BASIS, int(LARGEST_SHARE * n)))
        if not self._absorb(U, most):
            return
        first, rounds, small = math.nan, 0, 0.0
        while True:
            seen = self.P.T @ U
            needed = (seen @ seen.T).cpu()
            with torch_threads(1):
                values, vectors, below = self._cover(needed)
                upper, lower = float(values.sum()), float(below.sum())
                allowed = accuracy * upper
                if allowed < upper - lower <= GAP_FOR_SHARP_BOUND * allowed:
                    lower = max(lower, float(torch.linalg.eigvalsh(needed - self.inner).clamp_min(0.0).sum()))
            factor = self.P @ (vectors * values.sqrt()).to(self.P)
            yield SubspaceResult(factor, upper, max(lower, 0.0), rounds, self.size)
            gap, room = upper - lower, most - self.size
            gaps, order = torch.sort(values - below, descending=True)
            apart = order[gaps > SETTLED * allowed / max(1, len(values))]
            if gap <= allowed or len(apart) == 0 or room == 0:
                return
            small += (self.size / n) ** 3
            first = gap if rounds == 0 else first
            # the gap shrinks by about the same factor every round, by rather more in later ones
            speed = math.log(first / gap) / rounds if rounds else math.inf
            ahead = 0.7 * math.log(gap / max(allowed, UNIT * gap)) / max(speed, UNIT)
            if n > TINY_BASIS and (ahead * len(apart) > room or small + ahead * (self.size / n) ** 3 > SMALL_SHARE**3):
                return
            self._grow(self.image @ vectors[:, apart[:room]].to(self.P))
            rounds += 1

    def _cover(self, needed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The eigenpairs of ``T = (R Rᵀ − N)⁺`` and the squares ``vᵀ(R Rᵀ − PᵀAP)v``, which add up to a lower bound."""
        half = torch.linalg.solve_triangular(self.W, torch.eye(self.size).to(self.W), upper=True)
        target = needed - half @ half.T
        size = float(needed.trace())
        target += WHITENED * UNIT * math.sqrt(size) * max(self.sharpest, float(torch.linalg.norm(self.W))) * needed
        target.diagonal().add_(SMALL_EIGENVALUES * UNIT * size)
        values, vectors = torch.linalg.eigh(target)
        positive = values > 0
        values, vectors = values[positive], vectors[:, positive]
        return values, vectors, ((needed - self.inner) @ vectors * vectors).sum(dim=0)

    def _absorb(self, U: torch.Tensor, most: int) -> bool:
        """Make the range of P hold that of U; False where that takes more than ``most`` columns.

        Left out are only directions at the round-off of U itself, which the slack of ``_cover`` is there for.
        """
        outside = U - self.P @ (self.P.T @ U)
        outside -= self.P @ (self.P.T @ outside)
        Q, triangle = _orthonormal(outside)
        left, sizes, _ = torch.linalg.svd(triangle.cpu())
        new = left[:, sizes > COLUMNS * UNIT * float(torch.linalg.norm(U))]
        if self.size + new.shape[1] > most:
            if self.size == 0:
                return False
            self._forget()
            return self._absorb(U, most)
        if new.shape[1]:
            self._grow(Q @ new.to(Q))
        return True

    def _grow(self, directions: torch.Tensor) -> None:
        """Append what ``directions`` add to the range of P; there must be room for all of them."""
        new = directions
        for _ in range(2):
            new = _orthonormal(new - self.P @ (self.P.T @ new))[0]
        with torch_threads(self.threads):
            whitened = torch.linalg.solve_triangular(self.lower, new, upper=False)
            image = self.lower @ (self.lower.T @ new) if self.A is None else self.A @ new
        shared = self.Z.T @ whitened
        whitened -= self.Z @ shared
        again = self.Z.T @ whitened
        Z, corner = _orthonormal(whitened - self.Z @ again)
        cross, own = (self.P.T @ image).cpu(), (new.T @ image).cpu()
        zero = torch.zeros(new.shape[1], self.size).to(self.W)
        self.W = torch.cat([torch.cat([self.W, (shared + again).cpu()], 1), torch.cat([zero, corner.cpu()], 1)])
        self.inner = torch.cat([torch.cat([self.inner, cross], 1), torch.cat([cross.T, (own + own.T) / 2], 1)])
        self.P = torch.cat([self.P, new], dim=1)
        self.Z = torch.cat([self.Z, Z], dim=1)
        self.image = torch.cat([self.image, image], dim=1)

    def _forget(self) -> None:
        self.P = self.Z = self.image = self.lower.new_zeros(len(self.lower), 0)
        self.W = self.inner = torch.zeros(0, 0, dtype=torch.float64)


def _orthonormal(block: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch_threads(1):
        Q, R = torch.linalg.qr(block)
    return Q, R
