"""Rows in few directions: noise for a look at a design, in which all that a region can tell lies.

Let P have orthonormal columns: one for each row inside whose record is sensitive, and a basis Q of what rows elsewhere
tell of the region, K(elsewhere, region), to round-off that no reader sees. Sensitive values have ``U = P R``. Noise
``Σ = P T Pᵀ`` keeps the promise where ``T ⪰ R Rᵀ − N`` with ``N = (Pᵀ A⁻¹ P)⁻¹`` (linalg/subspace.py), and readers know

    kᵀ(A + Σ)⁻¹k = (kᵀA⁻¹k − k̃ᵀN⁻¹k̃) + k̃ᵀ(N + T)⁻¹k̃,   k̃ = N PᵀA⁻¹k,   k̃ = Pᵀk for inputs of the region.

So p virtual rows with the covariance N stand for all of them. P and N serve all levels, and T has a little more trace
than the least Σ: noise outside P would do no better by more than a fraction of a per cent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import GOLDEN, Array, Index
from ..data import Inputs
from ..linalg import as_array, as_tensor, squared_norms
from ..noise import CorrelatedNoise, Noise
from ..programs import promised_root
from ..promise import Cover, Design, FunctionAndRecords, Reader, Records, SensitiveValues, Tolerance
from .plan import exact_plan
from .probes import View
from .problem import DenseRows, Exposure, Problem, Solution

#: What P leaves out of what rows tell of an input of the region, as a share of its prior variance, at most.
LEFT_OUT = 1e-8

#: So many inputs of the region, and all rows in it, say what rows elsewhere can tell.
DENSE = 400

#: P must have at most this share of all directions, or it saves too little.
LARGEST_SHARE = 0.6

#: Columns that a basis starts with and grows by.
FIRST_COLUMNS = 32

#: So often P grows by what A makes of it, and by which columns: those that are this share of the largest.
STEPS, WORTH = 2, 1e-3

#: Noise is in P where no more than this share of it is elsewhere.
IN_RANGE = 1e-20


@dataclass(frozen=True, eq=False)
class Reduction:
    """P: the rows ``own``, each a direction by itself, and ``basis`` = Q over the rows ``others``.

    ``whitened`` is L⁻¹P with A = L Lᵀ, ``root`` the lower Cholesky factor of N.
    """

    data: Exposure
    inputs: Inputs
    own: Index
    others: Index
    basis: Array
    whitened: torch.Tensor
    root: Array

    @classmethod
    def of(cls, rows: DenseRows) -> Reduction | None:
        """The reduction of well-conditioned ``rows``; None where it would save too little."""
        (data,), problem, inputs = rows.exposures, rows.problem, rows.problem.inputs
        if data.data_root is None:
            return None
        own = problem.records
        others = np.setdiff1d(np.arange(len(inputs)), own)
        dense = np.vstack([problem.region.probes(DENSE, inputs), problem.rows_inside])
        told = as_array(data.unknown.with_data(inputs, dense))[others]
        least = float(np.min(problem.prior.noise_variance(len(inputs))))
        most = int(LARGEST_SHARE * len(inputs)) - len(own)
        found = _basis(told, LEFT_OUT * least * problem.prior.variance(dense), most)
        if found is None or not len(found[1]):
            return None
        lower = as_tensor(data.data_root)

        def spread(block: Array) -> Array:
            """A ``block``, over the other rows."""
            whole = torch.zeros(len(inputs), block.shape[1], dtype=torch.float64)
            whole[torch.from_numpy(others)] = torch.from_numpy(block)
            return as_array(lower @ (lower.T @ whole))[others]

        basis = _grown(*found, spread, most)
        if basis is None:
            return None
        P = torch.zeros(len(inputs), len(own) + basis.shape[1], dtype=torch.float64)
        P[torch.from_numpy(own), torch.arange(len(own))] = 1.0
        P[torch.from_numpy(others), len(own) :] = torch.from_numpy(basis)
        whitened = torch.linalg.solve_triangular(lower, P, upper=False)
        covariance = torch.cholesky_inverse(torch.linalg.cholesky(whitened.T @ whitened))
        root = np.asarray(scipy.linalg.cholesky(as_array(covariance), lower=True, check_finite=False))
        return cls(data, inputs, own, others, basis, whitened, root)

    @cached_property
    def of_records(self) -> Array:
        """Cov of the virtual rows with the records of ``own``."""
        values = self.data.reader.values(self.inputs, self.own)
        return self.seen(as_array(values.with_data(self.inputs, self.inputs.values[self.own])))

    @property
    def size(self) -> int:
        return len(self.root)

    @cached_property
    def covariance(self) -> Array:
        """N."""
        return np.asarray(self.root @ self.root.T)

    def seen(self, block: Array) -> Array:
        """Pᵀ ``block``."""
        return np.vstack([block[self.own], self.basis.T @ block[self.others]])

    def back(self, block: Array) -> Array:
        """P ``block``."""
        found = np.empty((len(self.own) + len(self.others), block.shape[1]))
        found[self.own], found[self.others] = block[: len(self.own)], self.basis @ block[len(self.own) :]
        return found

    def reduced(self, noise: Noise) -> Noise | None:
        """The same noise on the virtual rows; None where it does not lie in P."""
        if not isinstance(noise, CorrelatedNoise) or noise.shift > 0:
            return None
        factor = noise.blurring
        block = self.seen(factor)
        beside = factor[self.others] - self.basis @ block[len(self.own) :]
        return self.on_virtual_rows(noise) if np.sum(beside**2) <= IN_RANGE * np.sum(factor**2) else None

    def on_virtual_rows(self, noise: Noise) -> Noise:
        """Noise that lies in P, on the virtual rows."""
        return CorrelatedNoise(self.seen(noise.factor), suppressed=self.seen(noise.suppressed))

    def view(self, points: Array) -> View:
        """Any ``points``, with all of their variance to be learnt but what the rest of the rows tell anyway."""
        data = self.data
        assert data.data_root is not None
        cross = as_tensor(data.unknown.with_data(self.inputs, points))
        white = torch.linalg.solve_triangular(as_tensor(data.data_root), cross, upper=False)
        block = torch.from_numpy(self.root).T @ (self.whitened.T @ white)
        bare = squared_norms(block)
        rest = np.maximum(squared_norms(white) - bare, 0.0)
        return View(block, bare, data.unknown.variance(points) - rest)


def _basis(told: Array, most_left: Array, most: int) -> tuple[Array, Array] | None:
    """Orthonormal columns, the most telling first, that leave no more than ``most_left`` of the square of each column
    of ``told``, and how much each tells; None where that takes more than ``most``.

    They are found by products with columns that look random, and are the same each time.
    """
    columns = min(FIRST_COLUMNS, most)
    while columns > 0:
        basis = np.linalg.qr(told @ _mixed(told.shape[1], columns))[0]
        part = basis.T @ told
        left = np.sum((told - basis @ part) ** 2, axis=0)
        if np.all(left <= most_left):
            turn, sizes, right = np.linalg.svd(part, full_matrices=False)
            # what all but the first few leave of each column
            lost = left + np.cumsum(((sizes[:, None] * right) ** 2)[::-1], axis=0)[::-1]
            count = int(np.sum(np.any(lost > most_left, axis=1)))
            return basis @ turn[:, :count], sizes[:count]
        if columns == most:
            break
        columns = min(max(columns + FIRST_COLUMNS, int(1.5 * columns)), most)
    return None


def _mixed(rows: int, columns: int) -> Array:
    """Numbers between −½ and ½ that look random: multiples of squares, modulo 1 (Weyl)."""
    squares = np.arange(1.0, rows * columns + 1.0) ** 2
    return np.asarray(np.modf((1.0 + GOLDEN) * squares)[0].reshape(rows, columns) - 0.5)


def _grown(basis: Array, sizes: Array, spread: Callable[[Array], Array], most: int) -> Array | None:
    """``basis`` with what A makes of its most telling columns, a few times over; None where there are too many."""
    last = basis * sizes
    for _ in range(STEPS):
        new = spread(last[:, np.linalg.norm(last, axis=0) > WORTH * np.linalg.norm(last[:, 0])])
        new -= basis @ (basis.T @ new)
        new -= basis @ (basis.T @ new)
        directions, sizes, _ = scipy.linalg.svd(new, full_matrices=False, check_finite=False)
        keep = sizes > WORTH * sizes[0]
        if not np.any(keep):
            break
        if basis.shape[1] + np.sum(keep) > most:
            return None
        basis, last = np.hstack([basis, directions[:, keep]]), directions[:, keep] * sizes[keep]
    return basis


@dataclass(frozen=True, eq=False)
class ReducedExposure:
    """Virtual rows in place of those of the data, for a reader under some tolerance."""

    reader: Reader
    inputs: Inputs
    tolerance: Tolerance
    records: Records
    reduction: Reduction
    joint: bool = True

    @property
    def unknown(self) -> SensitiveValues:
        return self.reader.function

    @property
    def device(self) -> None:
        return None

    @property
    def size(self) -> int:
        return self.reduction.size

    @property
    def data_covariance(self) -> Array:
        return self.reduction.covariance

    @property
    def data_root(self) -> Array:
        return self.reduction.root

    @property
    def largest(self) -> float:
        return self.reduction.data.largest

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        places = sensitive[self.tolerance.applies_to(sensitive)]
        cross, values = self._inside(places), self.reader.values(self.inputs, np.zeros(0, dtype=np.intp))
        if with_records and len(self.records):
            values = FunctionAndRecords(self.reader, self.records)
            cross = np.hstack([cross, self.reduction.of_records])
        if not cross.shape[1]:
            return cross
        return promised_root(cross, self.tolerance, values, values.places(places), True)

    def at(self, points: Array) -> tuple[Array, Array]:
        return self._inside(points), self.tolerance.budget(self.unknown, points)

    def shift(self, level: float) -> float:
        """None: rows without noise are not reduced."""
        return 0.0

    def cross(self, points: Array) -> Array:
        return np.asarray(self.reduction.root @ as_array(self.reduction.view(points).block))

    def _inside(self, points: Array) -> Array:
        """Cov of the virtual rows with f at inputs of the region."""
        if not len(points):
            return np.zeros((self.size, 0))
        return self.reduction.seen(as_array(self.unknown.with_data(self.inputs, points)))


@dataclass(frozen=True, eq=False)
class ReducedRows:
    """Virtual rows for ``problem``, whose noise is published for the rows of the data."""

    problem: Problem
    reduction: Reduction

    @classmethod
    def of(cls, problem: Problem, reduction: Reduction) -> ReducedRows:
        plan = exact_plan(replace(problem.size, rows=reduction.size))
        return cls(replace(problem, plan=plan), reduction)

    def under(self, problem: Problem) -> ReducedRows:
        """The same rows under another promise."""
        return ReducedRows(replace(problem, plan=self.problem.plan), self.reduction)

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        asked, reader = self.problem, Reader(self.problem.prior)
        records = reader.records(asked.inputs, asked.records)
        return (ReducedExposure(reader, asked.inputs, asked.tolerance, records, self.reduction),)

    @property
    def given(self) -> Array:
        return np.asarray(self.problem.inputs.values[:0])

    def admissible(self, points: Array) -> Array:
        return points

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        back, noise = self.reduction.back, solution.noise
        made = CorrelatedNoise(back(noise.factor), suppressed=back(noise.suppressed))
        return self.problem.published(cover, sensitive, Solution(made))

    def jointly(self) -> None:
        """It is the joint promise."""
