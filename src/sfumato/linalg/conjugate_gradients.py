"""Conjugate gradients for a linear map of matrices that is known by its products only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import Array


def conjugate_gradients(
    product: Callable[[Array], Array], inverse: Callable[[Array], Array], right: Array, accuracy: float, limit: int
) -> Array:
    """X with ``product(X) ≈ right``; ``inverse`` is an approximate inverse of ``product``, both positive definite.

    Stops when the residual, measured by ``inverse``, has shrunk to ``accuracy``, or after ``limit`` products.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    step = inverse(residual)
    size = first = float(np.sum(residual * step))
    for _ in range(limit):
        image = product(step)
        curvature = float(np.sum(step * image))
        if curvature <= 0 or size <= 0:
            break
        solution += (size / curvature) * step
        residual -= (size / curvature) * image
        improved = inverse(residual)
        before, size = size, float(np.sum(residual * improved))
        if size <= accuracy**2 * first:
            break
        step = improved + (size / before) * step
    return solution
