"""Products of a tall matrix of which only half is wanted: block columns leave out most of the other half."""

from __future__ import annotations

import torch

#: With so many block columns 5/8 of a product are computed.
BLOCKS = 4

#: A GPU sums up so many rows at a time, many of such pieces at once: one long sum would leave most of it idle.
ROWS_IN_A_PIECE = 8192


def add_gram(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add the lower half of ``leftᵀ right`` to ``total``, whose rows follow each other in memory."""
    if left is right and not left.is_cuda:
        # NumPy sees that this is symmetric, and lets other threads work meanwhile: SciPy's dsyrk does not
        rows = left.numpy()
        total += torch.from_numpy(rows.T @ rows)
        return
    step = -(-total.shape[0] // BLOCKS)
    whole = len(left) // ROWS_IN_A_PIECE * ROWS_IN_A_PIECE if left.is_cuda else 0
    for start in range(0, total.shape[0], step):
        below, some, here = left[:, start:], right[:, start : start + step], total[start:, start : start + step]
        if whole:
            pieces = [side[:whole].unflatten(0, (-1, ROWS_IN_A_PIECE)) for side in (below, some)]
            here += torch.bmm(pieces[0].mT, pieces[1]).sum(dim=0)
        if whole < len(left):
            here.addmm_(below[whole:].T, some[whole:])


def times_upper(block: torch.Tensor, upper: torch.Tensor) -> torch.Tensor:
    """``block · upper`` for an upper triangular matrix."""
    product, step = torch.empty_like(block), -(-len(upper) // BLOCKS)
    for start in range(0, len(upper), step):
        stop = start + step
        torch.mm(block[:, :stop], upper[:stop, start:stop], out=product[:, start:stop])
    return product
