"""The noise with the best predictions at the served inputs, by the program of programs/predictions.py.

In terms of the information that is let through, ``P = (A + Σ)⁻¹ = L⁻ᵀ Q L⁻¹`` with A = L Lᵀ, the program finds Q. Where
Q has an eigenvalue q between 0 and 1, the noise has the variance 1/q − 1 in whitened coordinates; where it is 0 nothing
is let through, and that combination of the rows is suppressed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from ..arrays import Array
from ..linalg import as_array, as_tensor, cholesky_in_place, squared_norms
from ..noise import CorrelatedNoise, Noise
from ..programs import LetThrough, WhiteDemand, best_predictions, most_explained, raised
from .closed_form import DataCovariance
from .problem import Solution

#: Combinations of which less than this share is let through are suppressed, as far as the accuracy allows: their noise
#: would be ten times as large as the data. (Below 1e-4 the program suppresses them anyway.)
LITTLE = 1e-2

#: Where a proof holds the sensitive inputs tighter than promised, suppressing these may cost this share of what that
#: costs, too: it is hardly seen beside it, and with much noise a column looks like nothing that was measured.
BESIDE_THE_PROOF = 0.2

#: As noise, what is suppressed has this many times the variance that the data have there: with much more, solving with
#: A + Σ in double precision loses more than this leaves. The promise is kept by that noise as well, as far as what it
#: leaves is less than half of the accuracy.
NOTHING_LEFT = 2.0**24

#: What is not served counts as so many times the accuracy, where what is served counts 1. The first of these is taken
#: at which the served inputs lose no more than the accuracy.
BESIDE = (5.0, 0.5, 0.0)


@dataclass(frozen=True, eq=False)
class BestPredictions:
    """What solves for the best predictions on one reader's data, for many U.

    ``cross`` is Cov(y, f(T)|past) at the served inputs T, ``coefficients`` say how much each of them counts, and
    ``shift`` is an independent noise on every row that round-off needs. ``beside`` is the same as ``cross`` at rows
    outside the region that are not served, with their coefficients in it: they count for so little that the served
    inputs lose less than the accuracy, but what costs these nothing is let through. ``before`` is what earlier
    releases explain there.
    """

    data: DataCovariance
    cross: torch.Tensor
    coefficients: Array
    shift: float
    beside: torch.Tensor
    before: float = 0.0

    @cached_property
    def lower(self) -> torch.Tensor:
        """L, with A + shift · I = L Lᵀ; where that is not positive, with what is ``filled`` in besides."""
        return self._root_and_filled[0]

    @property
    def filled(self) -> torch.Tensor:
        """Columns of noise on combinations of rows of which round-off leaves less than nothing.

        Those were published before, without noise: nobody learns less by this, and M is positive again.
        """
        return self._root_and_filled[1]

    @cached_property
    def _root_and_filled(self) -> tuple[torch.Tensor, torch.Tensor]:
        none = as_tensor(np.zeros((self.data.size, 0)), self.data.device)
        if self.data.data_root is not None and self.shift == 0.0:
            return as_tensor(self.data.data_root, self.data.device), none
        with contextlib.suppress(np.linalg.LinAlgError):
            return as_tensor(cholesky_in_place(self._shifted()), self.data.device), none
        values, vectors = torch.linalg.eigh(self._shifted())
        least = -float(values[0])
        if not least > 0.0:
            raise np.linalg.LinAlgError("the covariance of the data is singular")
        low = values < least
        root = torch.linalg.qr((vectors * values.clamp(min=least).sqrt()).mT, mode="r")[1].mT
        return root.contiguous(), vectors[:, low] * (least - values[low]).sqrt()

    def _shifted(self) -> torch.Tensor:
        matrix = as_tensor(self.data.data_covariance, self.data.device).clone()
        matrix.diagonal().add_(self.shift)
        return matrix

    @cached_property
    def benefit(self) -> torch.Tensor:
        """B = L⁻¹ K_XT diag(√c), so that readers explain Tr BᵀQB of what they could; only B Bᵀ counts."""
        return _narrow(self._whitened(self.cross * as_tensor(np.sqrt(self.coefficients), self.data.device)))

    def solved(
        self,
        roots: Sequence[tuple[Array, bool]],
        accuracy: float,
        start: Sequence[Array] | None,
        tightening: float = 1.0,
    ) -> Solution:
        """The noise that explains nearly the most; ``roots`` has the U of all demands, and whether each is joint.

        They are held tighter than promised by ``tightening``, for the sake of a proof.
        """
        demands = [WhiteDemand(self._with_room(root, joint, accuracy / 2), joint) for root, joint in roots]
        for count in BESIDE if self.beside.shape[1] else (0.0,):
            found = best_predictions(self._counting(count * accuracy), demands, accuracy, start).valued(self.benefit)
            start, most = found.witness, most_explained(self.benefit, demands, found.witness)
            if count == 0.0 or found.explained >= (1.0 - accuracy) * most:
                break
        short = most - found.explained
        # by this much the witness bounds what the promise itself allows less closely
        for_proof = (1.0 / tightening - 1.0) * sum(float(np.sum(part**2)) for part in found.witness)
        spare = max(0.0, accuracy * (self.before + most) - short) + BESIDE_THE_PROOF * for_proof
        found = self._without_little(found, spare)

        def more() -> tuple[Noise, float]:
            other = raised(found, self.benefit, demands)
            return self._noise(other), other.explained

        left = np.any(found.shares > 0.0)
        return Solution(self._noise(found), found.witness, found.explained, most, more if left else None)

    def _noise(self, found: LetThrough) -> CorrelatedNoise:
        """The noise that lets so much through."""
        kept = found.shares > 0.0
        factor = self._unwhitened(found.directions[:, kept] * np.sqrt(1.0 / found.shares[kept] - 1.0))
        factor = np.hstack([factor, as_array(self.filled)])
        suppressed = self._unwhitened(found.directions[:, ~kept])
        if suppressed.shape[1]:
            basis = np.linalg.qr(suppressed)[0]
            factor = factor - basis @ (basis.T @ factor)
            seen = as_array(self.lower.T @ as_tensor(basis, self.data.device))
            suppressed = basis * np.sqrt(NOTHING_LEFT * float(np.linalg.eigvalsh(seen.T @ seen)[-1]))
        return CorrelatedNoise(factor, self.shift, suppressed)

    def _counting(self, count: float) -> torch.Tensor:
        """B where what is not served counts ``count`` times what is."""
        if count == 0.0:
            return self.benefit
        return _narrow(torch.hstack([self.benefit, np.sqrt(count) * self._whitened(self.beside)]))

    def _without_little(self, found: LetThrough, spare: float) -> LetThrough:
        """What is let through without shares that are little, as far as that costs readers no more than ``spare``."""
        order = np.argsort(found.shares)
        costs = np.cumsum((found.shares * found.worth(self.benefit))[order])
        little = order[(found.shares[order] < LITTLE) & (costs <= spare)]
        shares = found.shares.copy()
        shares[little] = 0.0
        return replace(found, shares=shares).valued(self.benefit)

    def explained(self, noise: Noise) -> float:
        """The share that readers explain at the served inputs under any ``noise``.

        What is filled in may count twice there: it is on what is known already, and tells nothing.
        """
        hidden = self._whitened(as_tensor(noise.blurring, self.data.device))
        gram = hidden.T @ hidden
        gram.diagonal().add_(1.0)
        told = hidden.T @ self.benefit
        lost = torch.linalg.solve_triangular(as_tensor(cholesky_in_place(gram)), told, upper=False)
        return float(np.sum(squared_norms(self.benefit)) - np.sum(squared_norms(lost)))

    def _with_room(self, root: Array, joint: bool, most: float) -> torch.Tensor:
        """Ũ, a little larger: what noise of ``NOTHING_LEFT`` leaves of suppressed combinations counts as learnt.

        That is at most the share ``most`` of what may be learnt.
        """
        white = self._whitened(as_tensor(root, self.data.device))
        if not white.shape[1]:
            return white
        sizes = torch.linalg.eigvalsh(white.mT @ white)[-1:] if joint else torch.sum(white * white, dim=0)
        return white / torch.sqrt(1.0 - torch.clamp(sizes / NOTHING_LEFT, max=most))

    def _whitened(self, block: torch.Tensor) -> torch.Tensor:
        whitened: torch.Tensor = torch.linalg.solve_triangular(self.lower, block, upper=False)
        return whitened

    def _unwhitened(self, block: Array) -> Array:
        return as_array(self.lower @ as_tensor(block, self.data.device))


def _narrow(block: torch.Tensor) -> torch.Tensor:
    """A block with the same ``B Bᵀ`` and no more columns than rows."""
    if block.shape[1] <= len(block):
        return block
    narrow: torch.Tensor = torch.linalg.qr(block.T, mode="r")[1].T
    return narrow
