"""Whatever else the demands allow is let through too, until hardly more can be (predictions.py).

Where nothing that counts is gained by it, the path of the best predictions stays half way to 1, and short of every
demand. With ``D = 1 − Q`` and the slack ``S = 1 − ŨᵀQŨ`` of a demand, ``Q + D^½ T D^½`` meets it for ``MᵀTM ⪯ 1`` with
``M = D^½ Ũ S^-½``, and is at most 1 for ``T ⪯ 1``. ``T = min(1, 1/(M Mᵀ))`` does both, and no T above it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .demand import symmetric
from .predictions_demand import SPARE

#: Several demands are taken as one, which leaves something for the next round; rounds end when little is gained.
MOST_ROUNDS, LITTLE_GAINED = 20, 1e-4

#: Less slack than this is none: a hundredth of what demands have to spare anyway.
LEAST_SLACK = 1e-2 * SPARE

#: A direction of which less than this share is held back goes out as it is.
NOTHING_HELD = 1e-13


def still_held(
    directions: torch.Tensor,
    held: torch.Tensor,
    suppressed: torch.Tensor,
    demands: Sequence[tuple[torch.Tensor, bool]],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Orthonormal directions and what is held back of each, once all is let through that ``demands`` allow.

    Before that ``1 − Q`` is ``Σ heldᵢ dᵢdᵢᵀ``, and 1 on the ``suppressed`` directions, where it stays. ``demands`` are
    the Ũ, each with whether it is joint.

    Guarantee: the new Q is above the old one, and meets the demands as well.
    """
    rounds = 1 if len(demands) == 1 and demands[0][1] else MOST_ROUNDS
    for _ in range(rounds):
        before = float(held.sum())
        if before == 0.0:
            break
        blocks = [_beside_slack(directions, held, suppressed, root, joint) for root, joint in demands]
        turn, sizes, _ = torch.linalg.svd(torch.hstack([*blocks, held.new_zeros(len(held), 0)]), full_matrices=False)
        factor = held.sqrt()[:, None] * turn * (1.0 - 1.0 / sizes.clamp(min=1.0) ** 2).sqrt()
        held, turn = torch.linalg.eigh(factor @ factor.mT)
        some = held > NOTHING_HELD
        directions, held = directions @ turn[:, some], held[some]
        if before - float(held.sum()) <= LITTLE_GAINED * before:
            break
    return directions, held


def _beside_slack(
    directions: torch.Tensor, held: torch.Tensor, suppressed: torch.Tensor, root: torch.Tensor, joint: bool
) -> torch.Tensor:
    """M, seen from ``directions``."""
    seen = held.sqrt()[:, None] * (directions.mT @ root)
    lost = torch.vstack([seen, suppressed.mT @ root])
    if joint:
        told = symmetric(root.mT @ root - lost.mT @ lost)
        slack, turn = torch.linalg.eigh((1.0 - SPARE) * torch.eye(len(told)).to(told) - told)
        seen = seen @ turn
    else:
        slack = 1.0 - SPARE - torch.sum(root * root, dim=0) + torch.sum(lost * lost, dim=0)
    beside: torch.Tensor = seen / slack.clamp(min=LEAST_SLACK).sqrt()
    return beside
