"""The problem that a design solves: data, a region, what may be learnt there and by whom, and which kind of noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import Array, Mask
from ..data import Inputs
from ..errors import InputError
from ..linalg import (
    Matrix,
    as_array,
    as_tensor,
    cholesky_in_place,
    squared_norms,
)
from ..models import Prior
from ..noise import CorrelatedNoise, IndependentNoise, Noise
from ..programs import Demand, correlated_noise, diagonal_noise, needed_everywhere, promised_root
from ..promise import Cover, Design, Guarantee, Structure, Tolerance
from ..proof import Covariances, add_noise, objective
from ..regions import Region
from .closed_form import ClosedForm, Method

# Readers who hold one prior: what they could learn from data with a given noise, as fast as a search needs it.

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7


@dataclass(frozen=True, eq=False)
class Watch:
    """Inputs that one audience is watched at, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then ``own``:
    what is explained without any noise); it stays on the device of A. ``budget`` is what may be explained.
    """

    block: Matrix
    own: Array | None
    budget: Array

    def usage(self, explained: Array) -> Array:
        """What a release explains, as a share of what it may: the floor is kept where this is at most 1."""
        return explained / self.budget

    def where(self, keep: Mask) -> Watch:
        block = as_tensor(self.block)
        kept = block[:, torch.tensor(keep, device=block.device)]
        return Watch(kept, None if self.own is None else self.own[keep], self.budget[keep])

    def joined(self, other: Watch) -> Watch:
        return Watch(
            torch.cat([as_tensor(self.block), as_tensor(other.block)], dim=1),
            None if self.own is None or other.own is None else np.concatenate([self.own, other.own]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Audience:
    """All readers who hold ``prior``, and what they may learn: ``joint``, all values together, or each by itself.

    n × n matrices live on ``device`` (None: the CPU), what comes back is small and NumPy's. Where A is well-conditioned
    one of them stays, its Cholesky factor, and A is made only if it is asked for; else A stays, and ``usage`` has a
    copy of it while it runs.
    """

    prior: Prior
    inputs: Inputs
    tolerance: Tolerance
    device: str | None = None
    joint: bool = True

    @property
    def size(self) -> int:
        """How many rows A has."""
        return len(self.inputs)

    @cached_property
    def covariances(self) -> Covariances:
        return Covariances(self.prior, self.device or "cpu")

    @cached_property
    def data_covariance(self) -> Matrix:
        """A = K_XX + V."""
        return self.covariances.of_data(self.inputs)

    @cached_property
    def data_root(self) -> Matrix | None:
        """The lower Cholesky factor of A where A is well-conditioned."""
        noise = self.prior.noise_variance(len(self.inputs))
        if float(np.min(noise)) <= WELL_CONDITIONED * float(np.max(self.prior.variance(self.inputs) + noise)):
            return None
        return cholesky_in_place(self.covariances.of_data(self.inputs))

    @cached_property
    def largest(self) -> float:
        """The largest variance of the data: the largest entry of A."""
        if self.data_root is None:
            return float(self._there(self.data_covariance).diagonal().max())
        return float(torch.linalg.vector_norm(self._there(self.data_root), dim=1).max()) ** 2

    def data_trace(self, block: Array) -> float:
        """Tr ``block``ᵀ A ``block``."""
        right = self._there(block)
        if self.data_root is None:
            return float((right * (self._there(self.data_covariance) @ right)).sum())
        return float((self._there(self.data_root).T @ right).square_().sum())

    def concerned(self, points: Array) -> Mask:
        """Where something was promised to this audience."""
        return np.ones(len(points), dtype=np.bool_)

    def root(self, sensitive: Array) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX`` (joint), or the columns ``k_s/√δ_s`` (each value by itself)."""
        sensitive = sensitive[self.concerned(sensitive)]
        if not len(sensitive):
            return np.zeros((self.size, 0))
        cross = as_array(self.covariances.between(self.inputs.values, sensitive))
        return promised_root(cross, self.tolerance, self.prior, sensitive, self.joint)

    def watch(self, points: Array) -> Watch:
        block, own = self.covariances.between(self.inputs.values, points), None
        if self.data_root is not None:
            block = _solve(self._there(self.data_root), block)
            own = squared_norms(block)
        budget = self.tolerance.budget(self.prior, points)
        if np.any(budget <= 0):
            # a floor that varies may pass the prior's own spread between the inputs that were looked at first
            self.tolerance.check(self.prior, points, self.inputs)
        return Watch(block, own, budget)

    def usage(self, noise: Noise, watch: Watch) -> Array:
        """What is explained at the watched inputs by data with this noise, as a share of what may be."""
        block = self._there(watch.block)
        if watch.own is None or self.data_root is None:
            total = add_noise(self._there(self.data_covariance).clone(), noise)
            return watch.usage(squared_norms(_solve(cholesky_in_place(total), block)))
        H = _solve(self._there(self.data_root), self._there(noise.factor))
        if 2 * H.shape[1] > H.shape[0]:
            return watch.usage(squared_norms(_solve(_raised_root(H @ H.T), block)))
        # Woodbury: kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|² for e = L⁻¹k and H = L⁻¹F
        return watch.usage(watch.own - squared_norms(_solve(_raised_root(H.T @ H), H.T @ block)))

    def rough_usage(self, root: Array, watch: Watch) -> Array:
        """Nearly the ``usage`` of the least noise, without an n × n eigenproblem; for a well-conditioned A.

        The noise ``L (Ũ Ũᵀ − I)⁺ Lᵀ``, ``Ũ = L⁻¹U``, keeps the joint promise too: it is the one with the least Tr A⁻¹Σ.
        """
        assert watch.own is not None
        assert self.data_root is not None
        whitened = _solve(self._there(self.data_root), self._there(root))
        values, vectors = scipy.linalg.eigh(as_array(whitened.T @ whitened), check_finite=False)
        keep = values > 1.0
        directions = whitened @ self._there(vectors[:, keep] / np.sqrt(values[keep]))
        seen = as_array(directions.T @ self._there(watch.block))
        return watch.usage(watch.own - (1.0 - 1.0 / values[keep]) @ seen**2)

    def positive_without(self, level: float) -> bool:
        """Whether A stays positive definite when ``level`` is taken from its diagonal."""
        if float(np.min(self.prior.noise_variance(len(self.inputs)))) > 2 * level:
            return True
        reduced = self._there(self.data_covariance).clone()
        reduced.diagonal().sub_(level)
        try:
            cholesky_in_place(reduced)
        except np.linalg.LinAlgError:
            return False
        return True

    def _there(self, block: Matrix) -> torch.Tensor:
        return as_tensor(block, self.device)


def _solve(lower: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    solved: torch.Tensor = torch.linalg.solve_triangular(lower, block, upper=False)
    return solved


def _raised_root(gram: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor of I + ``gram``, whose memory is used for it."""
    gram.diagonal().add_(1.0)
    return cholesky_in_place(gram)


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
        return self.region.promised_at_rows(self.inputs.values)

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
