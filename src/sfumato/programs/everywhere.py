"""The promise at every input there is: which M is needed for it.

For all finite S at once, ``K_SX M⁻¹ K_XS ⪯ Δ(S, S)`` is ``M ⪰ G(ℝᵈ)``: K_XX / α for a fraction α of the prior, and
the uniform solution of programs/uniform.py for a tolerance kernel.
"""

from __future__ import annotations

import numpy as np

from ..inputs import Array, Inputs
from ..prior import Prior
from ..tolerance import KernelTolerance, Tolerance
from .uniform import uniform_gram


def needed_everywhere(prior: Prior, tolerance: Tolerance, inputs: Inputs) -> Array:
    """G(ℝᵈ), with the error of a numerical one added: where M is at least this, the promise holds at every input."""
    if isinstance(tolerance, KernelTolerance):
        gram = uniform_gram(prior.kernel, tolerance.kernel, inputs)
        return np.asarray(gram.matrix + gram.error * np.eye(len(inputs)))
    kernel = prior.covariance(inputs)
    return kernel / float(np.min(tolerance.budget(prior, inputs.values) / np.diag(kernel)))
