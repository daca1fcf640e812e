"""How little noise is possible: lower bounds from the published objects, and the gap to what was taken.

Nothing here bears on whether a promise is kept; it tells the owner what is given away. A bound is proved by its witness
(programs/demand.py), so it is valid whoever found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from .design import Design
from .inputs import Array
from .linalg.weighting import Weighting
from .noise import Noise
from .programs.demand import Demand, lower_bound
from .programs.everywhere import needed_everywhere
from .programs.joint import explaining_root
from .reader import Reader


@dataclass(frozen=True)
class Optimality:
    """``trace`` is Tr Σ, ``lower`` a bound for any Σ that keeps the promise, ``gap`` a share of what was minimised."""

    trace: float
    lower: float
    gap: float


def optimality(design: Design, readers: Sequence[Reader]) -> Optimality:
    """The noise of ``design`` beside the least that its promise needs at the sensitive inputs."""
    trace = design.noise.trace
    if trace == 0:
        return Optimality(0.0, 0.0, 0.0)
    weights = design.weights
    if weights is not None and weights.ndim == 2 and design.structure == "diagonal":
        # only the diagonal of C meets that of Σ
        weights = np.diag(weights)
    demands = _demands(design, readers)
    lower = _bound(design, demands, None) if demands else 0.0
    if weights is None:
        return Optimality(trace, lower, _gap(lower, trace))
    of_weights = _bound(design, demands, weights) if demands else 0.0
    return Optimality(trace, lower, _gap(of_weights, objective(design.noise, weights)))


def _gap(lower: float, objective: float) -> float:
    gap = 1.0 - lower / objective
    # less noise than is possible: the promise is not kept, and there is no gap to speak of
    return float("nan") if gap < -1e-6 else min(1.0, max(0.0, gap))


def objective(noise: Noise, weights: Array | None) -> float:
    """What is minimised: Tr CΣ."""
    if weights is None:
        return noise.trace
    if weights.ndim == 1:
        return float(weights @ noise.variance())
    return float(np.sum(noise.factor * (weights @ noise.factor)) + noise.shift * np.trace(weights))


def _demands(design: Design, readers: Sequence[Reader]) -> list[Demand]:
    """What every reader may learn; nothing where it cannot be told."""
    sensitive, inputs = design.sensitive, design.inputs
    joint = design.guarantee == "joint"
    if design.cover != "everywhere" and (len(sensitive) == 0 or not np.all(design.region.contains(sensitive))):
        return []
    demands = []
    for reader in readers:
        prior = reader.prior
        try:
            if design.cover == "everywhere":
                values, vectors = scipy.linalg.eigh(needed_everywhere(prior, design.tolerance, inputs))
                root = vectors * np.sqrt(np.maximum(values, 0.0))
            elif joint:
                delta = design.tolerance.matrix(prior, sensitive)
                root = explaining_root(prior.covariance(inputs, sensitive), delta)
            else:
                root = prior.covariance(inputs, sensitive) / np.sqrt(design.tolerance.budget(prior, sensitive))
        except np.linalg.LinAlgError:
            return []
        demands.append(Demand(reader.data_covariance, root, joint))
    return demands


def _bound(design: Design, demands: Sequence[Demand], weights: Array | None) -> float:
    """A lower bound for Tr CΣ."""
    weighting = Weighting(weights)
    scaled = [Demand(weighting.both(d.covariance), weighting.forward(d.root), d.joint) for d in demands]
    if design.witness is not None:
        return lower_bound(
            scaled, [weighting.backward(part) for part in design.witness], design.structure == "diagonal"
        )
    if design.guarantee == "pointwise" or len(demands) > 1 or design.structure == "diagonal":
        return 0.0
    # ``Tr Σ ≥ Tr PᵀΣP ≥ Tr (PᵀBP)⁺`` for any P with orthonormal columns; the range of Σ is the best one
    basis, _ = scipy.linalg.qr(weighting.forward(design.noise.factor), mode="economic", check_finite=False)
    seen = scaled[0].root.T @ basis
    reduced = seen.T @ seen - basis.T @ (scaled[0].covariance @ basis)
    return float(np.sum(np.maximum(scipy.linalg.eigvalsh((reduced + reduced.T) / 2), 0.0)))
