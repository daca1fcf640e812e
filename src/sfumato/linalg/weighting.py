"""Utility weights C: least ``Tr CΣ`` is least ``Tr Σ′`` for ``Σ′ = C^{1/2} Σ C^{1/2}``."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ..arrays import Array


class Weighting:
    """C^{1/2} and C^{-1/2} of positive weights: a diagonal, a positive definite matrix, or None for the identity."""

    def __init__(self, weights: Array | None) -> None:
        self._root: Array | None = None
        self._inverse: Array | None = None
        if weights is None:
            return
        if weights.ndim == 1:
            self._root = np.sqrt(weights)
            self._inverse = 1.0 / self._root
        else:
            values, vectors = scipy.linalg.eigh(weights)
            self._root = (vectors * np.sqrt(values)) @ vectors.T
            self._inverse = (vectors / np.sqrt(values)) @ vectors.T

    def forward(self, block: Array) -> Array:
        """C^{1/2} block."""
        return _times(self._root, block)

    def backward(self, block: Array) -> Array:
        """C^{-1/2} block."""
        return _times(self._inverse, block)

    def both(self, matrix: Array) -> Array:
        """C^{1/2} matrix C^{1/2}, for a symmetric matrix."""
        return matrix if self._root is None else _times(self._root, _times(self._root, matrix).T)


def _times(root: Array | None, block: Array) -> Array:
    if root is None:
        return block
    return np.asarray(root[:, None] * block if root.ndim == 1 else root @ block)
