"""The closed form of the joint program for one reader, by the method of a plan, for many U."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from ..arrays import Array
from ..linalg import (
    FeasibleSubspace,
    Matrix,
    Weighting,
    Whitening,
    as_array,
    as_tensor,
    positive_part_by_sign,
    positive_part_there,
)
from ..noise import CorrelatedNoise
from ..programs import joint_noise_factor
from ..progress import alive
from ..promise import Design, Protects, Reader, Tolerance
from .plan import Plan

#: Of more sensitive inputs than this evenly spaced ones stand for a design that is compared with the least noise.
MOST_SENSITIVE = 300


class DataCovariance(Protocol):
    """A, the covariance of the data for one reader, on ``device`` (None: the CPU)."""

    @property
    def device(self) -> str | None: ...

    @property
    def size(self) -> int:
        """How many rows A has."""

    @property
    def data_covariance(self) -> Matrix:
        """A."""

    @property
    def data_root(self) -> Matrix | None:
        """The lower Cholesky factor of A where A is well-conditioned."""


class ClosedForm:
    """The least Σ ⪰ U Uᵀ − A for any U (programs/joint.py).

    Guarantee: every method covers all positive directions of ``U Uᵀ − A``; "subspace" (linalg/subspace.py) has a trace
    that may be larger than the least by the share ``plan.accuracy``. Its basis serves all U of a search. Where it gives
    up, an eigensolver takes over, for all U with as many columns or more. The subspace method needs the Cholesky factor
    of the data and no other n × n matrix, or one more where there are weights; eigensolvers need A and about three more
    while they run.
    """

    def __init__(self, data: DataCovariance, weights: Array | None, plan: Plan) -> None:
        self.data, self.weights, self.plan = data, weights, plan
        #: the subspace method is used for at most this many columns; fewer once it has given up
        self.most_columns = plan.most_sensitive

    def noise(self, root: Array, level: float, shift: float) -> CorrelatedNoise:
        """Σ for ``root`` = U. ``level`` is the round-off in B and ``shift`` a noise that is added where it matters."""
        alive()
        if self.plan.method == "sign":
            return self._by_sign(root, shift)
        factor = self._by_subspace(root) if shift == 0 else None
        if factor is None:
            factor = self._by_eigenvalues(root)
        if shift > 0:
            # directions below the round-off of B come from nowhere, and the shift covers them
            factor = factor[:, np.sum(factor**2, axis=0) > level]
        return CorrelatedNoise(factor, shift)

    @cached_property
    def weighting(self) -> Weighting:
        return Weighting(self.weights)

    @cached_property
    def _subspace(self) -> FeasibleSubspace | None:
        """None where A is not well-conditioned."""
        if self.data.data_root is None:
            return None
        lower = self._there(self.data.data_root)
        if self.weights is None:
            return FeasibleSubspace(None, lower)
        if self.weights.ndim == 2:
            return FeasibleSubspace.of(self._weighted(self._there(self.data.data_covariance)))
        return FeasibleSubspace(None, lower * self._there(np.sqrt(self.weights))[:, None])

    def _by_subspace(self, root: Array) -> Array | None:
        if root.shape[1] > self.most_columns or self._subspace is None:
            return None
        result = self._subspace.positive_part(self._there(self.weighting.forward(root)), self.plan.accuracy)
        if result is None:
            self.most_columns = root.shape[1] - 1
            return None
        return self.weighting.backward(as_array(result.factor))

    def _by_eigenvalues(self, root: Array) -> Array:
        A = self.data.data_covariance
        if self.data.device is None:
            return joint_noise_factor(as_array(A), root @ root.T, self.weights, root.shape[1])
        U = self._there(root)
        B = torch.addmm(self._there(A), U, U.T, beta=-1.0)
        return self.weighting.backward(as_array(positive_part_there(self._weighted(B))))

    def _by_sign(self, root: Array, shift: float) -> CorrelatedNoise:
        part = positive_part_by_sign(self.weighting.both(root @ root.T - as_array(self.data.data_covariance)))
        raised = part.shift
        if self.weights is not None:
            # C^{-1/2}(F Fᵀ + s I)C^{-1/2} ⪯ C^{-1/2} F Fᵀ C^{-1/2} + s λ_max(C⁻¹) I
            raised *= float(np.linalg.norm(self.weighting.backward(np.eye(len(root))), ord=2)) ** 2
        return CorrelatedNoise(self.weighting.backward(part.factor), max(shift, raised))

    def _weighted(self, matrix: torch.Tensor) -> torch.Tensor:
        """C^{1/2} ``matrix`` C^{1/2}; a C that is a matrix is taken apart on the CPU."""
        if self.weights is None:
            return matrix
        if self.weights.ndim == 2:
            return self._there(self.weighting.both(as_array(matrix)))
        scale = self._there(np.sqrt(self.weights))
        return (matrix * scale).mul_(scale[:, None])

    def _there(self, block: Array | torch.Tensor) -> torch.Tensor:
        return as_tensor(block, self.data.device)


def has_closed_form(design: Design) -> bool:
    """Whether the least noise has one: not for each value by itself, insiders or several outputs."""
    return design.guarantee == "joint" and design.insiders is None and not design.inputs.outputs.numbered


def least_noise(design: Design, tolerance: Tolerance, protects: Protects, data: Array) -> Array:
    """The least noise that keeps a promise at the sensitive inputs of ``design``: (U Δ⁻¹ Uᵀ − A)⁺."""
    inputs = design.inputs
    inside = np.flatnonzero(design.region.contains(inputs.values) & (design.prior.noise_variance(len(inputs)) > 0))
    records = inside if protects != "function" else inside[:0]
    sensitive = design.sensitive if len(design.sensitive) else np.unique(inputs.values[inside], axis=0)
    sensitive = sensitive[:: -(-len(sensitive) // MOST_SENSITIVE)] if protects != "records" else sensitive[:0]
    values = Reader(design.prior).values(inputs, records)
    places = values.places(sensitive)
    root = Whitening.of(tolerance.matrix(values, places)).apply(values.with_data(inputs, places).numpy().T)
    factor = joint_noise_factor(data, root.T @ root)
    return factor @ factor.T
