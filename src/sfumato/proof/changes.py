"""How far published values are from the true ones: by the noise, and by what stands for suppressed combinations."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..data import Here
from ..linalg import as_array, as_tensor
from ..promise import Design, Reader
from .knowledge import ExactKnowledge, KnowledgeFromSums
from .sums import summary_of


def change_variance(known: ExactKnowledge) -> Array:
    """Var(W_i − y_i) of each row under the prior: that of the noise, where nothing is suppressed.

    In place of what is suppressed, what the rest predicts is published: ``W − y = Z − ÑTᵀ(y + Z − m)`` with Ñ and
    ``T = M⁻¹Ñ`` (``ExactKnowledge.suppressed``), where y + Z has the covariance M and ``TᵀMT = I``. Where M is singular
    nothing can be said of readers, and the noise alone counts.
    """
    noise = known.design.noise
    if not noise.suppressed_count or known.is_singular:
        return noise.variance()
    spanning, solved = known.suppressed
    factor = as_tensor(noise.factor, known.device)
    with_noise = factor @ (factor.T @ solved) + noise.shift * solved
    return np.maximum(noise.variance() + as_array((spanning * (spanning - 2.0 * with_noise)).sum(dim=1)), 0.0)


def change_from_sums(known: KnowledgeFromSums) -> Array:
    """The same for each representative row of noise that is a random function."""
    noise, rows = known.design.noise.as_function(), known.design.representatives.values
    drawn = noise.variance_at(rows)
    if not noise.suppressed_count or known.is_singular:
        return drawn
    return np.asarray(known.noise_told(rows)[0] + drawn - noise.function_variance_at(rows))


def changes_of(design: Design) -> Array:
    """Var(W_i − y_i) under the prior for each representative row of ``design``; of any number, by a pass over them."""
    if not design.noise.suppressed_count:
        return design.noise.variance_at(design.representatives.values)
    if design.noise.compressed:
        summary = summary_of(design, Here(), None, lambda rows: None)
        return change_from_sums(KnowledgeFromSums(design, Reader(design.prior), summary, 0))
    return change_variance(ExactKnowledge(design, Reader(design.prior), design.noise))
