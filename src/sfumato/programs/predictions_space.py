"""A small space in which the program of the best predictions is solved (predictions.py): outside it, Q = I."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ..arrays import GOLDEN
from ..linalg import least_eigenvalue

#: A space with less than this share of all dimensions is worth it.
WORTH_IT = 0.7


@dataclass(frozen=True, eq=False)
class Space:
    """A space with orthonormal columns Z in ``frame`` (None: the whole space) outside which Q = I; ``gain`` is B there.

    ``neglected`` is the most that what is missing of C may explain; ``outside`` is what is explained there anyway.
    ``guessed``: whether what C does between Z and the rest is missing, which only the last bound tells.
    """

    frame: torch.Tensor | None
    gain: torch.Tensor
    neglected: float = 0.0
    outside: float = 0.0
    guessed: bool = False

    def seen(self, block: torch.Tensor) -> torch.Tensor:
        return block if self.frame is None else self.frame.mT @ block


def space_for(B: torch.Tensor, roots: Sequence[torch.Tensor], share: float, shifts: Sequence[float]) -> Space:
    """A small space for the program: from the dominant part of B, or from solutions with C; else the whole.

    The dominant part is ``B₀ = B W`` for orthonormal columns W, all but ``share`` of B, so that C − B₀B₀ᵀ ⪰ 0: its
    trace is all that it can add to any bound. Where C decays slowly: Q differs from I in eigenvectors of X for
    eigenvalues −s ≤ 0, and those are ``(C + s)⁻¹ Ũ w``; a few s are enough for all of them.
    """
    n, t = B.shape
    total = float(torch.sum(B * B))
    together = torch.hstack(list(roots)) if roots else B[:, :0]
    spanned = together
    if together.shape[1]:
        values, vectors = torch.linalg.eigh(together.mT @ together)
        spanned = together @ vectors[:, values > 1e-14 * max(1.0, float(values[-1]))]
    demanded = spanned.shape[1]
    if total == 0.0 and demanded < n:
        frame = torch.linalg.qr(spanned)[0]
        return Space(frame, frame.mT @ B)
    shifted = (1 + len(shifts)) * demanded
    useful = bool(shifts) and shifted < WORTH_IT * n
    most = min(t, int((shifted if useful else WORTH_IT * n) - demanded))
    count = min(64, t)
    while count <= max(most, 64) and demanded + count < n:
        if count == t:
            kept = B
        else:
            index = torch.arange(1.0, t + 1.0).to(B)
            sketch = torch.cos(GOLDEN * torch.outer(index**2, index[:count]))
            for _ in range(2):
                sketch = torch.linalg.qr(B.mT @ (B @ sketch))[0]
            kept = B @ sketch
        left, size, _ = torch.linalg.svd(kept, full_matrices=False)
        missed = total - torch.cumsum(size**2, dim=0)
        enough = torch.nonzero(missed <= share * total)
        if len(enough):
            rank = int(enough[0]) + 1
            kept = left[:, :rank] * size[:rank]
            frame = torch.linalg.qr(torch.hstack([spanned, kept]))[0]
            return Space(frame, frame.mT @ kept, neglected=max(0.0, float(missed[rank - 1])))
        if count >= most:
            break
        count = min(2 * count, most)
    if not useful:
        return Space(None, B)
    C = B @ B.mT
    largest = -least_eigenvalue(-C)
    blocks = [spanned]
    for shift in shifts:
        moved = C.clone()
        moved.diagonal().add_(shift * largest)
        blocks.append(torch.cholesky_solve(spanned, torch.linalg.cholesky(moved)))
    frame = torch.linalg.qr(torch.hstack([block / torch.linalg.vector_norm(block, dim=0) for block in blocks]))[0]
    gain = frame.mT @ B
    return Space(frame, gain, outside=max(0.0, total - float(torch.sum(gain * gain))), guessed=True)
