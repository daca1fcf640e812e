"""The problem that a design solves: what is asked, the data as each reader sees it, and the least noise for it.

``Problem`` is what is asked. A ``BackEnd`` says on which rows it is worked out: those of the data, virtual ones, or
rows that follow earlier releases. For each reader it has an ``Exposure``: A = Cov(y|past) and
U = Cov(y, sensitive|past) Δ^{-1/2}. ``Solver`` puts them together: the ``Program`` for some sensitive inputs finds the
least Σ with Σ ⪰ B_j = U_j U_jᵀ − A_j for every reader j, and ``learnt`` says how much readers then learn elsewhere, as
a share of what they may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array, Index, Mask
from ..data import Inputs
from ..errors import InputError
from ..linalg import Matrix, as_array, as_tensor, cholesky_in_place, squared_norms
from ..models import Prior, PriorFamily
from ..noise import CorrelatedNoise, IndependentNoise, Noise
from ..programs import Demand, correlated_noise, diagonal_noise, needed_everywhere, promised_root
from ..promise import (
    Cover,
    Design,
    FunctionAndRecords,
    Guarantee,
    Insiders,
    Protects,
    Reader,
    Records,
    SensitiveValues,
    Structure,
    Tolerance,
    promised_records,
)
from ..proof import objective
from ..regions import Region
from .closed_form import ClosedForm, DataCovariance
from .plan import Plan, Size

#: Solving with A loses nothing that matters when its noise is above this share of its largest entry.
WELL_CONDITIONED = 1e-7

#: Programs without a closed form are solved until their certified gap is at most this.
ACCURACY = {"full": 2e-5, "diagonal": 1e-7}

#: A joint promise about more values than this is met first, and others on top of it, to this share of the least.
MOST_TOGETHER, LAYERED = 40, 1e-3

#: A stays positive definite without this many times the round-off in B, or a shift of four times as much is added.
#: There is more to spare after earlier releases: later ones, whose noise is larger, must not hide this one's.
SPARE, SPARE_AFTER_RELEASES = 64.0, 1024.0

#: Directions in which data without noise tell less than this share of the most need no noise.
SMALLEST = 1e-9


@dataclass(frozen=True, eq=False)
class Solution:
    """A noise, and what proves that it could hardly be less (programs/demand.py); a closed form needs no proof."""

    noise: Noise
    witness: tuple[Array, ...] | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked: the least noise on rows such that readers learn no more about a region than a tolerance allows.

    ``plan`` says how it is worked out (plan.py).
    """

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    weights: Array | None = None
    guarantee: Guarantee = "joint"
    structure: Structure = "full"
    others: tuple[Prior, ...] = ()
    plan: Plan = field(default_factory=Plan)
    protects: Protects = "function"
    insiders: Insiders | None = None
    families: tuple[PriorFamily, ...] = ()

    @property
    def priors(self) -> tuple[Prior, ...]:
        """All priors that it is designed for; families are left to families.py."""
        return (self.prior, *self.others)

    @property
    def joint(self) -> bool:
        return self.guarantee == "joint"

    @property
    def protects_function(self) -> bool:
        """Whether anything is promised about f itself."""
        return self.protects != "records"

    @property
    def size(self) -> Size:
        """What decides how it is worked out."""
        named = self.region.points
        return Size(
            len(self.inputs),
            len(self.priors),
            self.joint and self.structure == "full" and not self.others and not self.families,
            self.weights is not None,
            not isinstance(self.prior.noise, float),
            named=0 if named is None else len(named),
        )

    @cached_property
    def rows_inside(self) -> Array:
        return self.region.promised_at_rows(self.inputs.values)

    @cached_property
    def records(self) -> Index:
        """The rows whose records are sensitive."""
        return promised_records(self.protects, self.priors, self.region, self.inputs)

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
            protects=self.protects,
        )


def no_rows_inside(problem: Problem) -> InputError:
    """What is said where records are to be protected and there is none in the region."""
    return InputError(
        f'protects is "records", but no row of the data has {problem.region.in_words(problem.inputs.names)}; give a '
        'region with rows in it, or protects="function".'
    )


class Exposure(DataCovariance, Protocol):
    """What the rows of a release tell one reader as long as no noise is on them: A, and U for any sensitive inputs.

    n × n matrices live on ``device`` (None: the CPU), what comes back is small and NumPy's.
    """

    @property
    def reader(self) -> Reader: ...

    @property
    def unknown(self) -> SensitiveValues:
        """What is sensitive, as this reader sees it."""

    @property
    def tolerance(self) -> Tolerance:
        """How much of it this reader may still learn."""

    @property
    def joint(self) -> bool:
        """Whether they may learn no more of all values together, or of each by itself."""

    @property
    def largest(self) -> float:
        """The largest variance of the data before anything was known."""

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        """U with ``U Uᵀ = G = K_XS Δ⁻¹ K_SX`` (joint), or the columns ``k_s/√δ_s`` (each value by itself).

        The sensitive values are f at the ``sensitive`` inputs and, unless they are left out, the sensitive records.
        """

    def at(self, points: Array) -> tuple[Matrix, Array]:
        """Cov(y, f(points)|past), and how much of the variance of f may be explained at each of ``points``."""

    def shift(self, level: float) -> float:
        """The independent noise to add so that round-off of size ``level`` in B cannot decide; 0 where there is none.

        Where A is singular to working precision round-off decides the smallest directions of M. A shift that is far
        above it and far below anything visible is then drawn and published with the rest.
        """


class BackEnd(Protocol):
    """On which rows a problem is worked out, and how what is found is published."""

    @property
    def problem(self) -> Problem: ...

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """The data as each reader sees it."""

    @property
    def given(self) -> Array:
        """Inputs that must be among the sensitive ones."""

    def admissible(self, points: Array) -> Array:
        """Inputs that may be sensitive ones and stand for ``points``."""

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        """The design that has this solution's noise, as it was asked for."""

    def jointly(self) -> BackEnd | None:
        """The same with the joint promise; None where it cannot be compared with."""


@dataclass(frozen=True, eq=False)
class RowsExposure:
    """The rows of the data themselves.

    Where A is well-conditioned one n × n matrix stays, its Cholesky factor, and A is made only when needed; else
    A stays, and ``learnt`` has a copy of it while it runs. ``like`` shows the same rows to the same reader under
    another tolerance: its matrices are taken.
    """

    reader: Reader
    inputs: Inputs
    tolerance: Tolerance
    joint: bool = True
    device: str | None = None
    records: Records | None = None
    like: Exposure | None = None

    @property
    def unknown(self) -> SensitiveValues:
        return self.reader.function

    @property
    def size(self) -> int:
        return len(self.inputs)

    @cached_property
    def data_covariance(self) -> Matrix:
        if self.like is not None:
            return self.like.data_covariance
        return self.reader.data_covariance(self.inputs, self.device)

    @cached_property
    def data_root(self) -> Matrix | None:
        if self.like is not None:
            return self.like.data_root
        if self.reader.past.may_show_rows or self._least_noise <= WELL_CONDITIONED * self.largest:
            return None
        return cholesky_in_place(self.reader.data_covariance(self.inputs, self.device))

    @cached_property
    def largest(self) -> float:
        prior = self.reader.prior
        return float(np.max(prior.variance(self.inputs) + prior.noise_variance(self.size)))

    @property
    def _least_noise(self) -> float:
        return float(np.min(self.reader.prior.noise_variance(self.size)))

    def root(self, sensitive: Array, with_records: bool = True) -> Array:
        values = self.reader.values(self.inputs, np.zeros(0, dtype=np.intp))
        if self.records is not None and with_records:
            values = FunctionAndRecords(self.reader, self.records)
        places = values.places(sensitive[self.tolerance.applies_to(sensitive)])
        if not len(places):
            return np.zeros((self.size, 0))
        cross = as_array(values.with_data(self.inputs, places, self.device))
        return promised_root(cross, self.tolerance, values, places, self.joint)

    def at(self, points: Array) -> tuple[Matrix, Array]:
        budget = _budget(self, self.inputs, points)
        return self.unknown.with_data(self.inputs, points, self.device), budget

    def shift(self, level: float) -> float:
        past = self.reader.past.may_show_rows
        spare = (SPARE_AFTER_RELEASES if past else SPARE) * level
        if not past and self._least_noise > 2 * spare:
            return 0.0
        reduced = as_tensor(self.data_covariance, self.device).clone()
        reduced.diagonal().sub_(spare)
        try:
            cholesky_in_place(reduced)
        except np.linalg.LinAlgError:
            return 4 * spare
        return 0.0


@dataclass(frozen=True, eq=False)
class DenseRows:
    """The rows of the data, for readers who have seen nothing yet.

    ``like`` are the same rows for the same readers, under another promise: what does not depend on it is taken.
    """

    problem: Problem
    like: DenseRows | None = None

    @cached_property
    def exposures(self) -> tuple[Exposure, ...]:
        asked, readers = self.problem, [Reader(prior) for prior in self.problem.priors]
        same = (None,) * len(readers) if self.like is None else self.like.exposures
        return tuple(
            RowsExposure(
                reader,
                asked.inputs,
                asked.tolerance,
                asked.joint and reader.is_promised_averages,
                asked.plan.device,
                reader.records(asked.inputs, asked.records),
                like,
            )
            for reader, like in zip(readers, same, strict=True)
        )

    @property
    def given(self) -> Array:
        return np.asarray(self.problem.inputs.values[:0])

    def admissible(self, points: Array) -> Array:
        return points

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        return self.problem.published(cover, sensitive, solution)

    def jointly(self) -> DenseRows:
        return DenseRows(replace(self.problem, guarantee="joint"))


@dataclass(frozen=True, eq=False)
class View:
    """Probes as one reader sees them, with all that does not depend on the noise.

    ``block`` is K_XP, or L⁻¹ K_XP with A = L Lᵀ where A is well-conditioned (its squared column norms are then
    ``bare``: what is explained without any noise); it stays on the device of A. ``budget`` is what may be explained.
    """

    block: Matrix
    bare: Array | None
    budget: Array

    @classmethod
    def of(cls, exposure: Exposure, points: Array) -> View:
        block, budget = exposure.at(points)
        if exposure.data_root is None:
            return cls(block, None, budget)
        block = _solve(as_tensor(exposure.data_root, exposure.device), as_tensor(block, exposure.device))
        return cls(block, squared_norms(block), budget)

    def allowing(self, budget: Array) -> View:
        """The same probes where another ``budget`` may be explained."""
        return replace(self, budget=budget)

    def where(self, keep: Mask) -> View:
        block = as_tensor(self.block)
        kept = block[:, torch.tensor(keep, device=block.device)]
        return View(kept, None if self.bare is None else self.bare[keep], self.budget[keep])

    def joined(self, other: View) -> View:
        return View(
            torch.cat([as_tensor(self.block), as_tensor(other.block)], dim=1),
            None if self.bare is None or other.bare is None else np.concatenate([self.bare, other.bare]),
            np.concatenate([self.budget, other.budget]),
        )


@dataclass(frozen=True, eq=False)
class Probes:
    """Inputs that are looked at during a search, as each reader sees them."""

    points: Array
    views: tuple[View, ...]

    def __len__(self) -> int:
        return len(self.points)

    def where(self, keep: Mask) -> Probes:
        return Probes(self.points[keep], tuple(view.where(keep) for view in self.views))

    def joined(self, other: Probes) -> Probes:
        views = tuple(mine.joined(theirs) for mine, theirs in zip(self.views, other.views, strict=True))
        return Probes(np.vstack([self.points, other.points]), views)


@dataclass(frozen=True, eq=False)
class Solver:
    """Solves a problem for given sensitive inputs, and says what readers of the solution would learn elsewhere.

    ``like`` solves another problem on the same data: what was worked out of these alone is taken.
    """

    back_end: BackEnd
    like: Solver | None = None

    @property
    def problem(self) -> Problem:
        return self.back_end.problem

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        return self.back_end.exposures

    @cached_property
    def closed_form(self) -> ClosedForm:
        """Solves the joint program for the first reader; it remembers what a search may need again."""
        if self.like is not None:
            return self.like.closed_form
        return ClosedForm(self.exposures[0], self.problem.weights, self.problem.plan)

    def program(self, sensitive: Array, with_records: bool = True) -> Program:
        """The program that keeps the promise at ``sensitive``, and that about records unless they are left out."""
        return Program(self, tuple(exposure.root(sensitive, with_records) for exposure in self.exposures))

    def program_everywhere(self) -> Program:
        """The program that keeps the promise at every input there is."""
        problem, roots = self.problem, []
        for prior in problem.priors:
            needed = needed_everywhere(prior, problem.tolerance, problem.inputs, problem.records)
            if problem.plan.device is None:
                values, vectors = scipy.linalg.eigh(needed)
            else:
                values, vectors = map(as_array, torch.linalg.eigh(as_tensor(needed, problem.plan.device)))
            roots.append(vectors * np.sqrt(np.maximum(values, 0.0)))
        return Program(self, tuple(roots))

    @property
    def is_well_conditioned(self) -> bool:
        """Whether ``Program.roughly_learnt`` can be had: solving with every A loses nothing that matters."""
        return all(exposure.data_root is not None for exposure in self.exposures)

    def objective(self, noise: Noise) -> float:
        """What is minimised: Tr Σ, or Tr CΣ where there are weights."""
        return objective(noise, self.problem.weights)

    def probes(self, points: Array) -> Probes:
        """``points`` as each reader sees them."""
        return Probes(points, tuple(View.of(exposure, points) for exposure in self.exposures))

    def allowing(self, probes: Probes) -> Probes:
        """Probes of a problem on the same data, with what may be learnt here."""
        points, inputs = probes.points, self.problem.inputs
        seen = zip(self.exposures, probes.views, strict=True)
        return Probes(points, tuple(view.allowing(_budget(exposure, inputs, points)) for exposure, view in seen))

    def in_need(self, probes: Probes, limit: float) -> Probes:
        """Those of ``probes`` where data without noise would tell more than ``limit``; noise only lowers that."""
        needed = np.zeros(len(probes), dtype=np.bool_)
        for view in probes.views:
            if view.bare is None:
                return probes
            needed |= view.bare / view.budget > limit
        # leaving out a few would cost more than it saves
        return probes if 2 * np.sum(needed) > len(needed) else probes.where(needed)

    def learnt(self, noise: Noise, probes: Probes) -> Array:
        """The share of what may be learnt that the best informed reader learns at each probe: at most 1 is allowed."""
        views = zip(self.exposures, probes.views, strict=True)
        shares = [Explained.by(exposure, noise).at(view) / view.budget for exposure, view in views]
        return np.asarray(np.max(shares, axis=0))

    def price_of_tightening(self, noise: Noise) -> float:
        """By how much (a share) the tolerance can be tightened while the objective grows by the same share of itself.

        With ``G̃ = C^{1/2} G C^{1/2}`` and Ã alike, ``d Tr (G̃/t − Ã)⁺ = −Tr(P G̃) dt`` where P projects on the range of
        ``C^{1/2} Σ C^{1/2}``, and ``Tr P G̃ = Tr CΣ + Tr P Ã``.
        """
        if noise.rank == 0:
            return 0.0
        weighting = self.closed_form.weighting
        directions, _ = scipy.linalg.qr(weighting.forward(noise.factor), mode="economic", check_finite=False)
        total = self.objective(noise)
        return total / (total + _data_trace(self.exposures[0], weighting.forward(directions)))


@dataclass(frozen=True, eq=False)
class Program:
    """Σ ⪰ U_j U_jᵀ − A_j for every reader j: the promise at some sensitive inputs. ``roots`` are the U_j."""

    solver: Solver
    roots: tuple[Array, ...]

    def solve(
        self,
        tightening: float,
        start: Solution | None = None,
        accuracy: float = 0.0,
        say: Callable[[str], None] | None = None,
        also: Sequence[tuple[int, Array]] = (),
    ) -> Solution:
        """The least noise for Δ′ = ``tightening`` · Δ, to within ``accuracy`` where there is no closed form.

        ``also`` are the U of other joint demands, each with the number of the exposure whose A it goes with.
        """
        problem, exposures = self.solver.problem, self.solver.exposures
        roots = [root / np.sqrt(tightening) for root in self.roots]
        largest = max(exposure.largest for exposure in exposures)
        for exposure, root in zip(exposures, roots, strict=True):
            squares = root**2
            largest = max(largest, float(np.max(np.sum(squares, axis=1) if exposure.joint else squares, initial=0.0)))
        level = exposures[0].size * UNIT * largest
        shift = max(exposure.shift(level) for exposure in exposures)
        if problem.joint and problem.structure == "full" and len(roots) == 1 and not also:
            return Solution(self.solver.closed_form.noise(roots[0], level, shift))
        accuracy = max(accuracy, ACCURACY[problem.structure])
        first = None
        if self._is_layered and not also:
            first = self.solver.closed_form.noise(roots[0], level, shift)
        demands = []
        for exposure, root in zip(exposures, roots, strict=True):
            raised = np.array(as_array(exposure.data_covariance))
            raised[np.diag_indices_from(raised)] += shift
            demands.append(Demand(raised if first is None else raised + first.covariance(), root, exposure.joint))
        if first is not None:
            more = correlated_noise(demands[1:], problem.weights, max(accuracy, LAYERED), say=say)
            return Solution(CorrelatedNoise(np.hstack([first.factor, more.factor]), first.shift))
        demands += [Demand(demands[number].covariance, root, True) for number, root in also]
        weights = problem.weights
        if problem.structure == "diagonal":
            # only the diagonal of C meets that of Σ
            weights = np.diag(weights) if weights is not None and weights.ndim == 2 else weights
            independent = diagonal_noise(demands, weights, accuracy, say)
            return Solution(IndependentNoise(independent.variances + shift), independent.witness)
        factor = None if start is None or start.noise.rank == 0 else start.noise.factor
        correlated = correlated_noise(demands, weights, accuracy, factor, say)
        return Solution(CorrelatedNoise(correlated.factor, shift), correlated.witness)

    @property
    def _is_layered(self) -> bool:
        """Whether noise for readers who are promised single values is laid on that of the one joint promise.

        It is a few percent more than the least, which takes minutes where combinations of many records are promised.
        """
        problem, (first, *others) = self.solver.problem, self.solver.exposures
        alone = bool(others) and first.joint and not any(one.joint for one in others)
        return alone and problem.structure == "full" and self.roots[0].shape[1] > MOST_TOGETHER

    def roughly_learnt(self, probes: Probes) -> Callable[[float], Array]:
        """Nearly what readers learn under the least noise, without an n × n eigenproblem, for any tightening.

        The noise ``L (Ũ Ũᵀ − I)⁺ Lᵀ``, ``Ũ = L⁻¹U``, keeps the joint promise too: it is the one with the least Tr A⁻¹Σ.
        """
        seen = [
            (values, as_array(directions.T @ as_tensor(view.block, exposure.device)) ** 2, view)
            for exposure, (values, _, directions), view in zip(
                self.solver.exposures, self._spectra, probes.views, strict=True
            )
        ]

        def learnt(tightening: float) -> Array:
            found = []
            for values, squares, view in seen:
                assert view.bare is not None
                found.append((view.bare - np.maximum(1.0 - tightening / values, 0.0) @ squares) / view.budget)
            return np.asarray(np.max(found, axis=0))

        return learnt

    def rough_cost(self, tightening: float) -> float:
        """About what is minimised, for the same noise; the most of all readers'."""
        costs = []
        for root, (values, vectors, _) in zip(self.roots, self._spectra, strict=True):
            own = np.sum(self.solver.closed_form.weighting.forward(root @ vectors) ** 2, axis=0) / tightening
            costs.append(float(np.sum(own * np.maximum(1.0 - tightening / values, 0.0))))
        return max(costs)

    @cached_property
    def _spectra(self) -> list[tuple[Array, Array, torch.Tensor]]:
        """For each reader the positive eigenvalues λ and the eigenvectors V of UᵀA⁻¹U, and L⁻¹U V/√λ."""
        found = []
        for exposure, root in zip(self.solver.exposures, self.roots, strict=True):
            assert exposure.data_root is not None
            whitened = _solve(as_tensor(exposure.data_root, exposure.device), as_tensor(root, exposure.device))
            values, vectors = scipy.linalg.eigh(as_array(whitened.T @ whitened), check_finite=False)
            keep = values > SMALLEST * np.max(values, initial=0.0)
            values, vectors = values[keep], vectors[:, keep]
            found.append((values, vectors, whitened @ as_tensor(vectors / np.sqrt(values), exposure.device)))
        return found


@dataclass(frozen=True, eq=False)
class Explained:
    """What data with some noise Σ = F Fᵀ explain of anything, kᵀM⁻¹k with M = A + Σ.

    Where A = L Lᵀ is well-conditioned ``noisy`` is H = L⁻¹F, ``root`` is that of I + HᵀH, and Woodbury's formula gives
    ``kᵀM⁻¹k = |e|² − |(I + HᵀH)^{-1/2} Hᵀe|²`` with ``e = L⁻¹k``. Else ``noisy`` is None, and ``root`` is that of M, or
    of I + HHᵀ where that is smaller.
    """

    exposure: Exposure
    noise: Noise
    root: torch.Tensor
    noisy: torch.Tensor | None

    @classmethod
    def by(cls, exposure: Exposure, noise: Noise) -> Explained:
        device = exposure.device
        if exposure.data_root is None:
            total = noise.add_to(as_tensor(exposure.data_covariance, device).clone())
            return cls(exposure, noise, cholesky_in_place(total), None)
        H = _solve(as_tensor(exposure.data_root, device), as_tensor(noise.factor, device))
        if 2 * H.shape[1] > H.shape[0]:
            return cls(exposure, noise, _raised_root(H @ H.T), None)
        return cls(exposure, noise, _raised_root(H.T @ H), H)

    def at(self, view: View) -> Array:
        """The variance that is explained at the probes of ``view``."""
        block = as_tensor(view.block, self.exposure.device)
        if self.noisy is None:
            return squared_norms(_solve(self.root, block))
        assert view.bare is not None
        return np.asarray(view.bare - squared_norms(_solve(self.root, self.noisy.T @ block)))

    def left_at(self, view: View) -> Array:
        """The variance that is left of what may be explained at the probes."""
        return np.asarray(np.maximum(view.budget - self.at(view), 0.0))

    def left_of_records(self, factor: Array) -> Array:
        """Var(y_i|W) of the rows of ``factor``, which are some of F, where A is well-conditioned.

        It is the diagonal of A − A M⁻¹ A = F (I + HᵀH)⁻¹ Fᵀ.
        """
        exposure, device, root = self.exposure, self.exposure.device, self.root
        assert exposure.data_root is not None
        if self.noisy is None:
            H = _solve(as_tensor(exposure.data_root, device), as_tensor(self.noise.factor, device))
            root = _raised_root(H.T @ H)
        return squared_norms(_solve(root, as_tensor(np.ascontiguousarray(factor.T), device)))

    def most_of(self, root: Array) -> float:
        """λ_max(UᵀM⁻¹U) for ``root`` = U: the joint promise holds where it is at most 1."""
        device = self.exposure.device
        block = as_tensor(root, device)
        if self.exposure.data_root is not None:
            block = _solve(as_tensor(self.exposure.data_root, device), block)
        if self.noisy is None:
            block = _solve(self.root, block)
            gram = block.T @ block
        else:
            hidden = _solve(self.root, self.noisy.T @ block)
            gram = block.T @ block - hidden.T @ hidden
        return float(torch.linalg.eigvalsh(gram)[-1]) if len(gram) else 0.0


def _budget(exposure: Exposure, inputs: Inputs, points: Array) -> Array:
    """How much of the variance of f may be explained at each of ``points``."""
    budget = exposure.tolerance.budget(exposure.unknown, points)
    if np.any(budget <= 0):
        # a floor that varies may pass the prior's own spread between the inputs that were probed first
        exposure.tolerance.check(exposure.unknown, points, inputs)
    return budget


def _data_trace(exposure: Exposure, block: Array) -> float:
    """Tr ``block``ᵀ A ``block``."""
    right = as_tensor(block, exposure.device)
    if exposure.data_root is None:
        return float((right * (as_tensor(exposure.data_covariance, exposure.device) @ right)).sum())
    return float((as_tensor(exposure.data_root, exposure.device).T @ right).square_().sum())


def _solve(lower: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    solved: torch.Tensor = torch.linalg.solve_triangular(lower, block, upper=False)
    return solved


def _raised_root(gram: torch.Tensor) -> torch.Tensor:
    """The Cholesky factor of I + ``gram``, whose memory is used for it."""
    gram.diagonal().add_(1.0)
    return cholesky_in_place(gram)
