"""Solving with a triangular matrix for many right-hand sides at once."""

from __future__ import annotations

import numpy as np
import torch

from ..inputs import Array


def solve_lower(lower: Array, block: Array) -> Array:
    """``lower⁻¹ block``; PyTorch's solver is about twice as fast as SciPy's for wide blocks."""
    # PyTorch has no read-only tensors
    block = block if block.flags.writeable else block.copy()
    solved = torch.linalg.solve_triangular(torch.from_numpy(lower), torch.from_numpy(block), upper=False)
    return np.asarray(solved.numpy())
