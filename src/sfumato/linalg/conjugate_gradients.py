"""Conjugate gradients for a linear map of matrices that is known by its products only."""

from __future__ import annotations

from collections.abc import Callable

from .tensors import Block


def conjugate_gradients(
    product: Callable[[Block], Block],
    inverse: Callable[[Block], Block],
    right: Block,
    accuracy: float,
    limit: int,
    start: Block | None = None,
) -> Block:
    """X with ``product(X) ≈ right``; ``inverse`` is an approximate inverse of ``product``, both positive definite.

    Stops when the residual, measured by ``inverse``, has shrunk to ``accuracy``, or after ``limit`` products. It begins
    at ``start``, at 0 where that is left out.
    """
    solution, residual = 0.0 * right, 1.0 * right
    step = inverse(residual)
    size = first = float((residual * step).sum())
    if start is not None:
        solution, residual = 1.0 * start, right - product(start)
        step = inverse(residual)
        size = float((residual * step).sum())
    for _ in range(limit):
        if size <= accuracy**2 * first:
            break
        image = product(step)
        curvature = float((step * image).sum())
        if curvature <= 0:
            break
        solution += (size / curvature) * step
        residual -= (size / curvature) * image
        improved = inverse(residual)
        before, size = size, float((residual * improved).sum())
        step = improved + (size / before) * step
    return solution
