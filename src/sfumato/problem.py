"""The problem that a design solves: data, a region, what may be learnt there and by whom, and which kind of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from .audience import Audience, Watch
from .closed_form import ClosedForm
from .closed_form import Method as Method
from .design import Cover, Design, Guarantee, Structure
from .errors import InputError
from .inputs import Array, Inputs, Mask
from .noise import CorrelatedNoise, IndependentNoise, Noise
from .optimality import objective
from .prior import Prior
from .programs.correlated import correlated_noise
from .programs.demand import Demand
from .programs.diagonal import diagonal_noise
from .programs.everywhere import needed_everywhere
from .regions import Region
from .tensors import as_array, as_tensor
from .tolerance import Tolerance

#: Programs without a closed form are solved until their certified gap is at most this.
ACCURACY = {"full": 2e-5, "diagonal": 1e-7}


@dataclass(frozen=True, eq=False)
class Look:
    """Inputs that are watched during a search, as each audience sees them."""

    points: Array
    watches: tuple[Watch, ...]

    def where(self, keep: Mask) -> Look:
        return Look(self.points[keep], tuple(watch.where(keep) for watch in self.watches))

    def joined(self, other: Look) -> Look:
        watches = tuple(mine.joined(theirs) for mine, theirs in zip(self.watches, other.watches, strict=True))
        return Look(np.vstack([self.points, other.points]), watches)


@dataclass(frozen=True, eq=False)
class Solution:
    """A noise, and what proves that it could hardly be less (programs/demand.py); a closed form needs no proof."""

    noise: Noise
    witness: tuple[Array, ...] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """Solves for the least noise at given sensitive inputs, and says what a reader of it would know.

    ``method`` and ``accuracy`` say how the joint program is solved (closed_form.py), ``device`` where n × n matrices
    live: None is the CPU. Other programs are always solved on the CPU.
    """

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    weights: Array | None = None
    guarantee: Guarantee = "joint"
    structure: Structure = "full"
    others: tuple[Prior, ...] = ()
    method: Method = "auto"
    device: str | None = None
    accuracy: float | None = None

    @cached_property
    def audiences(self) -> tuple[Audience, ...]:
        priors = (self.prior, *self.others)
        return tuple(Audience(prior, self.inputs, self.tolerance, self.device, self.joint) for prior in priors)

    @property
    def joint(self) -> bool:
        return self.guarantee == "joint"

    @cached_property
    def rows_inside(self) -> Array:
        return self.region.rows_of(self.inputs.values)

    def jointly(self) -> Problem | None:
        """The same problem with the joint promise; None where it cannot be compared with."""
        return replace(self, guarantee="joint")

    @property
    def least_spare(self) -> float:
        """How much of the round-off in B must stay positive in A for no shift to be needed."""
        return 64.0

    @property
    def given(self) -> Array:
        """Inputs that must be among the sensitive ones."""
        return np.asarray(self.inputs.values[:0])

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        """The design that has this solution's noise."""
        return Design(
            self.prior,
            self.inputs,
            self.region,
            self.tolerance,
            cover,
            sensitive,
            solution.noise,
            self.weights,
            self.guarantee,
            self.structure,
            self.others,
            solution.witness,
        )

    def admissible(self, points: Array) -> Array:
        """Inputs that may be sensitive ones and stand for ``points``: here these themselves."""
        return points

    def roots(self, sensitive: Array) -> tuple[Array, ...]:
        """U for each audience (Audience.root)."""
        return tuple(audience.root(sensitive) for audience in self.audiences)

    def solve(
        self,
        roots: Sequence[Array],
        tightening: float,
        start: Solution | None = None,
        accuracy: float = 0.0,
        say: Callable[[str], None] | None = None,
    ) -> Solution:
        """The least noise for Δ′ = ``tightening`` · Δ, to within ``accuracy`` where there is no closed form.

        Where some A is singular to working precision, round-off decides the smallest directions of M; a shift that is
        far above it and far below anything visible is then drawn and published with the rest.
        """
        if self.method == "compressed":
            raise InputError('method is "compressed", but these are the rows themselves; compress them first.')
        roots = [root / np.sqrt(tightening) for root in roots]
        largest = max(audience.largest for audience in self.audiences)
        for audience, root in zip(self.audiences, roots, strict=True):
            squares = root**2
            largest = max(largest, float(np.max(np.sum(squares, axis=1) if audience.joint else squares, initial=0.0)))
        level = self.audiences[0].size * float(np.finfo(float).eps) * largest
        safe = all(audience.positive_without(self.least_spare * level) for audience in self.audiences)
        shift = 0.0 if safe else 4 * self.least_spare * level
        if self.joint and self.structure == "full" and len(roots) == 1:
            return Solution(self.closed_form.noise(roots[0], level, shift))
        accuracy = max(accuracy, ACCURACY[self.structure])
        demands = []
        for audience, root in zip(self.audiences, roots, strict=True):
            raised = np.array(as_array(audience.data_covariance))
            raised[np.diag_indices_from(raised)] += shift
            demands.append(Demand(raised, root, audience.joint))
        if self.structure == "diagonal":
            weights = np.diag(self.weights) if self.weights is not None and self.weights.ndim == 2 else self.weights
            independent = diagonal_noise(demands, weights, accuracy, say)
            return Solution(IndependentNoise(independent.variances + shift), independent.witness)
        factor = None if start is None or start.noise.rank == 0 else start.noise.factor
        correlated = correlated_noise(demands, self.weights, accuracy, factor, say)
        return Solution(CorrelatedNoise(correlated.factor, shift), correlated.witness)

    @cached_property
    def closed_form(self) -> ClosedForm:
        """Solves the joint program for the first audience; it remembers what a search may need again."""
        return ClosedForm(self.audiences[0], self.weights, self.method, self.accuracy)

    def solve_everywhere(self, tightening: float) -> Solution:
        """The least noise that keeps the promise at every input there is."""
        roots = []
        for audience in self.audiences:
            needed = needed_everywhere(audience.prior, self.tolerance, self.inputs)
            if self.device is None:
                values, vectors = scipy.linalg.eigh(needed)
            else:
                values, vectors = map(as_array, torch.linalg.eigh(as_tensor(needed, self.device)))
            roots.append(vectors * np.sqrt(np.maximum(values, 0.0)))
        return self.solve(roots, tightening)

    def objective(self, noise: Noise) -> float:
        """What is minimised: Tr Σ, or Tr CΣ where there are weights."""
        return objective(noise, self.weights)

    def look(self, points: Array) -> Look:
        """Watch ``points``."""
        return Look(points, tuple(audience.watch(points) for audience in self.audiences))

    def look_where_needed(self, points: Array, limit: float) -> Look:
        """Watch those of ``points`` where data without noise would use more than ``limit``; noise only lowers that."""
        look = self.look(points)
        needed = np.zeros(len(points), dtype=np.bool_)
        for watch in look.watches:
            if watch.own is None:
                return look
            needed |= watch.usage(watch.own) > limit
        # leaving out a few would cost more than it saves
        return look if 2 * np.sum(needed) > len(needed) else look.where(needed)

    def usage(self, noise: Noise, look: Look) -> Array:
        """The share of what may be learnt that the best informed audience learns from data with this noise."""
        each = [audience.usage(noise, watch) for audience, watch in zip(self.audiences, look.watches, strict=True)]
        return np.asarray(np.max(each, axis=0))

    def rough_usage(self, roots: Sequence[Array], look: Look) -> Array | None:
        """Nearly the ``usage`` of the least noise, and quicker to have; None where some A is not well-conditioned."""
        each = []
        for audience, root, watch in zip(self.audiences, roots, look.watches, strict=True):
            if audience.data_root is None:
                return None
            each.append(audience.rough_usage(root, watch))
        return np.asarray(np.max(each, axis=0))

    def trace_by_tightening(self, noise: Noise) -> float:
        """By how much (a share) the tolerance can be tightened while the objective grows by the same share of itself.

        With ``G̃ = C^{1/2} G C^{1/2}`` and Ã alike, ``d Tr (G̃/t − Ã)⁺ = −Tr(P G̃) dt`` where P projects on the range of
        ``C^{1/2} Σ C^{1/2}``, and ``Tr P G̃ = Tr CΣ + Tr P Ã``.
        """
        if noise.rank == 0:
            return 0.0
        weighting = self.closed_form.weighting
        directions, _ = scipy.linalg.qr(weighting.forward(noise.factor), mode="economic", check_finite=False)
        total = self.objective(noise)
        return total / (total + self.audiences[0].data_trace(weighting.forward(directions)))
