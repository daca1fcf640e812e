"""About the least eigenvalue of a symmetric matrix, by a few products (Lanczos)."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..arrays import GOLDEN

#: Up to this size all eigenvalues are as quick as the least.
DENSE_ROWS = 64

#: How many products there are.
PRODUCTS = 20

#: What a product has beside all earlier ones is round-off below this share of it.
ROUNDOFF = 1e-12


def least_eigenvalue(matrix: torch.Tensor) -> float:
    """The least eigenvalue of a symmetric matrix; of a large one nearly that, rather less than more.

    >>> import torch
    >>> least_eigenvalue(torch.diag(torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64)))
    -2.0
    """
    if len(matrix) <= DENSE_ROWS:
        return float(torch.linalg.eigvalsh(matrix)[0])
    return least_by_products(lambda vector: matrix @ vector, matrix[0])


def least_by_products(
    product: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor, products: int = PRODUCTS
) -> float:
    """About the least eigenvalue of the matrix of ``product``, rather less than more; it maps vectors ``like`` one."""
    # the same each time, and in no special direction
    vector = torch.cos(GOLDEN * torch.arange(1.0, len(like) + 1.0) ** 2).to(like)
    frame = [vector / torch.linalg.norm(vector)]
    diagonal, beside = [], []
    for _ in range(min(products, len(like))):
        image = product(frame[-1])
        size = torch.linalg.norm(image)
        diagonal.append(frame[-1] @ image)
        known = torch.stack(frame, dim=1)
        for _ in range(2):
            image = image - known @ (known.mT @ image)
        beside.append(torch.linalg.norm(image))
        if float(beside[-1]) <= ROUNDOFF * float(size):
            break
        frame.append(image / beside[-1])
    small = torch.diag(torch.stack(diagonal))
    if len(diagonal) > 1:
        small = small + torch.diag(torch.stack(beside[:-1]), 1) + torch.diag(torch.stack(beside[:-1]), -1)
    values, vectors = torch.linalg.eigh(small.cpu())
    return float(values[0] - beside[-1].cpu() * vectors[-1, 0].abs())
