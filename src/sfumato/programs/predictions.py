"""Best predictions at the same promise: a linear program over positive semidefinite matrices (MATH.md, section 16).

Whitened by the covariance of the data, ``A = L Lᵀ``, the information that is let through is ``0 ⪯ Q ⪯ I``: 1 where
the data go out as they are, 0 where nothing is published, between them noise. With ``C = B Bᵀ``, what readers gain by
it, the program is

    maximise Tr(C Q)  with  ŨᵀQŨ ⪯ I for each joint demand, ũᵀQũ ≤ 1 for each column of a pointwise one,

and its dual is to minimise ``Σ Tr Λ + Tr(C − Σ Ũ Λ Ũᵀ)⁺`` over Λ ⪰ 0, diagonal where a demand is pointwise. Every such
Λ, a *witness*, proves an upper bound.

Solved small: outside a space that has the Ũ and what C makes of them, Q = I. In it an interior point method follows
the minimisers with a barrier μ as μ falls: ``Q Z = μ``, ``(1 − Q) Y = μ`` and ``Λ S = μ`` with ``S = I − ŨᵀQŨ`` and
``Y − Z = X = C − Σ Ũ Λ Ũᵀ``, by Mehrotra's steps in the scaling of Nesterov and Todd. On the path Q, Z and Y have the
eigenvectors of X; so they are kept as diagonals there as long as S does not get lost, and a step takes one ``eigh``;
where it does, four. The equations of a step (predictions_equations.py) are solved by conjugate gradients where they are
many. Every Q is shrunk until it meets all demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..arrays import UNIT, Array
from ..linalg import Matrix, as_array, as_tensor, numpys_errors, squared_norms
from .predictions_demand import DemandOnPath
from .predictions_path import MOST_NEGLECTED, Path
from .predictions_raised import still_held
from .predictions_space import Space, space_for


@dataclass(frozen=True, eq=False)
class WhiteDemand:
    """``ŨᵀQŨ ⪯ I`` (joint), or ``ũᵀQũ ≤ 1`` for each column ũ (pointwise); ``root`` is Ũ = L⁻¹U, n × γ."""

    root: Matrix
    joint: bool


@dataclass(frozen=True, eq=False)
class LetThrough:
    """``Q = I − Σ (1 − sharesᵢ) dᵢdᵢᵀ``, with orthonormal dᵢ in ``directions`` (n × k) and shares in [0, 1).

    A direction with share 0 is suppressed. ``explained`` is Tr(C Q) of exactly this Q. ``witness`` has R for each
    demand, ``Λ = R Rᵀ``, or ``λ = R²`` as a column where the demand is pointwise, and ``upper`` is what it proves.
    ``decompositions`` counts the ``eigh`` that were made of matrices larger than a demand.
    """

    directions: Array
    shares: Array
    witness: tuple[Array, ...]
    explained: float
    upper: float
    decompositions: int

    def worth(self, benefit: torch.Tensor) -> Array:
        """How much of Tr BᵀB is explained by all of each direction, for any B."""
        return squared_norms(benefit.mT @ as_tensor(self.directions, benefit.device))

    def valued(self, benefit: torch.Tensor) -> LetThrough:
        """The same Q, with what it explains of any B."""
        lost = float((1.0 - self.shares) @ self.worth(benefit))
        return replace(self, explained=max(0.0, float(torch.sum(benefit * benefit)) - lost))

    @property
    def gap(self) -> float:
        """How much more might be explained, as a share of ``upper``."""
        return 1.0 - self.explained / self.upper if self.upper > 0.0 else 0.0


#: Shares below this, or below a finer accuracy, are suppressed.
SURELY_SUPPRESSED = 1e-4

#: The program is solved at most this many times: again where its space or its accuracy did not do.
MOST_ROUNDS = 6

#: Of the largest eigenvalue of C: what is added to it where a small space is made by solving with C. Finer, then none.
SHIFTS: tuple[tuple[float, ...], ...] = (
    (0.3, 0.03, 3e-3, 3e-4),
    (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4),
    (),
)


def most_explained(benefit: Matrix, demands: Sequence[WhiteDemand], witness: Sequence[Array]) -> float:
    """An upper bound of Tr(C Q) over all Q that meet ``demands``, proved by any ``witness``.

    Guarantee: true whatever the witness is; the round-off of its own work is counted against the bound. A witness that
    does not have one matrix R for each demand, a column where that is pointwise, proves nothing of them.

    >>> import numpy as np
    >>> demand = WhiteDemand(np.array([[2.0], [0.0]]), joint=True)
    >>> round(most_explained(np.eye(2), [demand], [np.array([[0.5]])]), 9)
    1.25
    """
    B = as_tensor(benefit)
    fits = len(witness) == len(demands) and all(
        len(R) == demand.root.shape[1] and (demand.joint or R.shape[1] == 1)
        for R, demand in zip(witness, demands, strict=True)
    )
    if not fits:
        demands, witness = [], []
    parts, price = [B], 0.0
    for demand, factor in zip(demands, witness, strict=True):
        root, R = as_tensor(demand.root, B.device), as_tensor(np.asarray(factor), B.device)
        parts.append(root @ R if demand.joint else root * R.reshape(1, -1))
        price += float(torch.sum(R * R))
    together = torch.hstack(parts)
    rows, columns = together.shape
    size = float(torch.sum(together * together))
    if not np.isfinite(size + price):  # a witness that is none, or far too large, proves nothing
        return float("inf")
    roundoff: float = 4.0 * float(max(rows, columns)) ** 1.5 * UNIT * size + 64.0 * UNIT * price
    nobody = float(torch.sum(B * B)) + roundoff  # what is explained without any demand
    if not demands:
        return nobody
    if 2 * columns < rows:
        # the same positive part, in the range of all
        together = torch.linalg.qr(together, mode="r")[1]
    gain, loss = together[:, : B.shape[1]], together[:, B.shape[1] :]
    values = torch.linalg.eigvalsh(gain @ gain.mT - loss @ loss.mT) if len(together) else together.new_zeros(0)
    return min(nobody, price + float(values.clamp(min=0.0).sum()) + roundoff)


@numpys_errors()
def best_predictions(
    benefit: Matrix,
    demands: Sequence[WhiteDemand],
    accuracy: float = 1e-4,
    start: Sequence[Array] | None = None,
) -> LetThrough:
    """The Q of the largest Tr(C Q) that meets all ``demands``, and a witness that nothing explains more.

    ``benefit`` is B, n × t, with ``C = B Bᵀ``. ``accuracy`` is the gap that is aimed at, ``1 − explained/upper``.
    ``start`` is the witness of a similar program and saves most of the steps; one of another shape is ignored. Tensors
    on a device are worked on there.

    Guarantee: Q meets every demand to round-off, whatever the gap. ``LinAlgError`` where numbers overflow, or round-off
    leaves no way.

    >>> import numpy as np
    >>> demand = WhiteDemand(np.array([[2.0], [0.0]]), joint=True)
    >>> found = best_predictions(np.eye(2), [demand])
    >>> found.shares.round(4).tolist(), round(found.explained, 4), found.gap < 1e-4
    ([0.25], 1.25, True)
    """
    B = as_tensor(benefit)
    roots = [as_tensor(demand.root, B.device) for demand in demands]
    if not all(bool(torch.isfinite(torch.sum(block * block) ** 2)) for block in (B, *roots)):
        raise np.linalg.LinAlgError("what is promised overflows beside the covariance of the data")
    given = None
    if start is not None and len(start) == len(roots):
        shapes = [
            (root.shape[1], root.shape[1] if demand.joint else 1) for root, demand in zip(roots, demands, strict=True)
        ]
        if all(len(R) == rows and R.shape[1] <= columns for R, (rows, columns) in zip(start, shapes, strict=True)):
            given = [as_tensor(np.asarray(R), B.device) for R in start]
    aim, neglected, made = 0.7 * accuracy, 0.05 * accuracy, 0
    fineness = 0 if accuracy > 2e-5 else 1
    for attempt in range(MOST_ROUNDS):
        space = space_for(B, roots, neglected, SHIFTS[fineness])
        along = [
            DemandOnPath(space.seen(root), demand.joint, 0.01 * accuracy, float(torch.sum(root**2)))
            for root, demand in zip(roots, demands, strict=True)
        ]
        path = Path(space, along)
        path.follow(aim, given)
        made += path.decompositions
        if path.best is None:
            raise np.linalg.LinAlgError("round-off leaves no way to the best predictions")
        last = attempt == MOST_ROUNDS - 1
        if space.neglected > MOST_NEGLECTED * aim * path.upper and not last:
            # little is explained: what was neglected is no longer small beside it
            neglected, given = 0.1 * aim * path.upper / path.total, None
            continue
        if path.gap > aim and given is not None and not last:
            given = None
            continue
        path.sharpen(0.1 * accuracy * path.upper)
        witness = tuple(as_array(R) for R in path.witness())
        upper = most_explained(B, demands, witness)
        made += 1
        found = _let_through(B, space, path, witness, upper, accuracy, made)
        if found.gap <= accuracy or path.gap > aim or last:
            break
        given = path.witness()
        if space.guessed and upper - path.upper > 0.1 * accuracy * upper:
            fineness += 1
        else:
            # what suppressing small shares costs falls with the gap, as far as they are the barrier's
            aim /= 4.0
    return found


def raised(found: LetThrough, benefit: Matrix, demands: Sequence[WhiteDemand]) -> LetThrough:
    """The same where whatever else the demands allow is let through too, but for what is suppressed.

    Guarantee: the new Q is above the old one, and meets the demands as well: more is explained, anywhere.

    >>> import numpy as np
    >>> demand = WhiteDemand(np.array([[2.0], [0.0]]), joint=True)
    >>> half = LetThrough(np.eye(2), np.array([0.25, 0.5]), (), 0.75, 1.25, 0)
    >>> more = raised(half, np.eye(2), [demand])
    >>> more.shares.round(4).tolist(), round(more.explained, 4)
    ([0.25], 1.25)
    """
    B = as_tensor(benefit)
    directions, held = as_tensor(found.directions, B.device), as_tensor(1.0 - found.shares, B.device)
    none = as_tensor(found.shares, B.device) == 0.0
    roots = [(as_tensor(one.root, B.device), one.joint) for one in demands]
    beside, left = still_held(directions[:, ~none], held[~none], directions[:, none], roots)
    directions, held = torch.hstack([directions[:, none], beside]), torch.cat([held[none], left])
    return replace(found, directions=as_array(directions), shares=1.0 - as_array(held)).valued(B)


def _let_through(
    B: torch.Tensor,
    space: Space,
    path: Path,
    witness: tuple[Array, ...],
    upper: float,
    accuracy: float,
    made: int,
) -> LetThrough:
    """The best Q of ``path`` with very small shares suppressed, and what it explains."""
    kept, directions = path.held_back()
    if space.frame is not None:
        directions = space.frame @ directions
    shares = 1.0 - as_array(kept)
    # as noise, they would fill a column with numbers far from the data
    shares[shares < min(SURELY_SUPPRESSED, accuracy)] = 0.0
    return LetThrough(as_array(directions), shares, witness, 0.0, upper, made).valued(B)
