"""How little noise is possible: lower bounds from the published objects, and the gap to what was taken.

Nothing here bears on whether a promise is kept; it tells the owner what is given away. A bound is proved by its witness
(programs/demand.py), so it is valid whoever found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import torch

from .design import Design
from .inputs import Array
from .linalg.weighting import Weighting
from .noise import Noise
from .programs.demand import Demand, lower_bound
from .programs.everywhere import needed_everywhere
from .programs.roots import promised_root
from .reader import Reader
from .tensors import as_array, as_tensor, cholesky_in_place


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
    lower = _bound(design, readers, None)
    if weights is None:
        return Optimality(trace, lower, gap_between(lower, trace))
    of_weights = _bound(design, readers, weights)
    return Optimality(trace, lower, gap_between(of_weights, objective(design.noise, weights)))


def gap_between(lower: float, objective: float) -> float:
    """How far at most ``objective`` is above its least value, as a share, given a lower bound."""
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


def _bound(design: Design, readers: Sequence[Reader], weights: Array | None) -> float:
    """A lower bound for Tr CΣ; 0 where none is known."""
    sensitive = design.sensitive
    if design.cover != "everywhere" and (len(sensitive) == 0 or not np.all(design.region.contains(sensitive))):
        return 0.0
    try:
        if design.witness is not None:
            return _bound_by_witness(design, readers, design.witness, weights)
        if design.guarantee == "pointwise" or len(readers) > 1 or design.structure == "diagonal":
            return 0.0
        return _bound_by_range(design, readers[0], weights)
    except np.linalg.LinAlgError:
        return 0.0


def _bound_by_witness(
    design: Design, readers: Sequence[Reader], witness: Sequence[Array], weights: Array | None
) -> float:
    weighting, joint, demands = Weighting(weights), design.guarantee == "joint", []
    for reader in readers:
        A = as_array(reader.covariances.of_data(design.inputs))
        if design.cover == "everywhere":
            values, vectors = scipy.linalg.eigh(needed_everywhere(reader.prior, design.tolerance, design.inputs))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        else:
            root = _explaining_root(design, reader)
        demands.append(Demand(weighting.both(A), weighting.forward(root), joint))
    return lower_bound(demands, [weighting.backward(part) for part in witness], design.structure == "diagonal")


def _bound_by_range(design: Design, reader: Reader, weights: Array | None) -> float:
    """``Tr Σ ≥ Tr PᵀΣP ≥ Tr (PᵀBP)⁺`` for any P with orthonormal columns; the range of Σ is the best one.

    With ``C = R Rᵀ`` the same holds for ``RᵀΣR``. No n × n matrix is live but C, and that of the promise everywhere.
    """
    factor = as_tensor(design.noise.factor, reader.device)
    if weights is None:
        basis = torch.linalg.qr(factor)[0]
    elif weights.ndim == 1:
        scale = as_tensor(np.sqrt(weights), reader.device)[:, None]
        basis = scale * torch.linalg.qr(scale * factor)[0]
    else:
        lower = cholesky_in_place(as_tensor(np.array(weights), reader.device))
        basis = lower @ torch.linalg.qr(lower.T @ factor)[0]
    if design.cover == "everywhere":
        needed = needed_everywhere(reader.prior, design.tolerance, design.inputs)
        covered = basis.T @ (as_tensor(needed, reader.device) @ basis)
    else:
        seen = as_tensor(_explaining_root(design, reader), reader.device).T @ basis
        covered = seen.T @ seen
    reduced = covered - basis.T @ reader.covariances.data_times(design.inputs, basis)
    return float(torch.linalg.eigvalsh((reduced + reduced.T) / 2).clamp_min(0.0).sum())


def _explaining_root(design: Design, reader: Reader) -> Array:
    """U (programs/demand.py)."""
    cross = as_array(reader.covariances.between(design.inputs.values, design.sensitive))
    return promised_root(cross, design.tolerance, reader.prior, design.sensitive, design.guarantee == "joint")
