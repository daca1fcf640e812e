"""The best noise for a problem: the least, or the one with the best predictions.

The ``Program`` for some sensitive inputs finds Σ with Σ ⪰ B_j = U_j U_jᵀ − A_j for every reader j, and ``learnt`` says
how much readers then learn elsewhere, as a share of what they may.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array
from ..data import among, sample_places
from ..linalg import as_array, as_tensor
from ..noise import CorrelatedNoise, IndependentNoise, Noise
from ..programs import Demand, correlated_noise, diagonal_noise, needed_everywhere
from ..promise import Served
from ..proof import weighted_trace
from .best_predictions import BestPredictions
from .closed_form import ClosedForm
from .probes import Explained, Probes, View, solve
from .problem import BackEnd, Exposure, Problem, Solution, budget_at

#: Programs without a closed form are solved until their certified gap is at most this.
ACCURACY = {"full": 2e-5, "diagonal": 1e-7}

#: A joint promise about more values than this is met first, and others on top of it, to this share of the least.
MOST_TOGETHER, LAYERED = 40, 1e-3

#: Of more rows outside the region than this evenly spread ones stand for what is not served.
MOST_BESIDE = 512

#: Directions in which data without noise tell less than this share of the most need no noise.
SMALLEST = 1e-9


@dataclass(frozen=True, eq=False)
class Solver:
    """Solves a problem for given sensitive inputs, and says what readers of the solution would learn elsewhere.

    ``like`` solves another problem on the same data: what was worked out of these alone is taken. It solves for the
    least noise, or, where it is ``serving``, for the best predictions.
    """

    back_end: BackEnd
    like: Solver | None = None
    serving: bool = False

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

    def best_predictions(self, shift: float) -> BestPredictions:
        """Solves for the best predictions of the first reader, who is the only one."""
        exposure, problem = self.exposures[0], self.problem
        assert problem.serves is not None
        served, outputs = problem.serves, problem.inputs.outputs
        key = shift, served.places.tobytes(), served.weights.tobytes()
        if key not in self._best_by_inputs:
            cross = as_tensor(exposure.cross(served.places), exposure.device)
            counts = served.coefficients(exposure.reader.prior, outputs)
            rows = problem.inputs.sample.values
            rows = rows[~problem.region.contains(rows) & ~among(rows, served.places)]
            rows = rows[sample_places(len(rows), MOST_BESIDE)]
            beside = cross[:, :0]
            if len(rows):
                others = Served(rows, np.ones(len(rows))).coefficients(exposure.reader.prior, outputs)
                beside = as_tensor(exposure.cross(rows), exposure.device) * as_tensor(np.sqrt(others), exposure.device)
            before = 1.0 - float(counts @ exposure.unknown.variance(served.places))
            self._best_by_inputs[key] = BestPredictions(exposure, cross, counts, shift, beside, max(0.0, before))
        return self._best_by_inputs[key]

    def explained(self, noise: Noise) -> float:
        """The share of the variance at the served inputs that readers explain under any ``noise``."""
        return self.best_predictions(noise.shift).explained(noise)

    @cached_property
    def _best_by_inputs(self) -> dict[tuple[float, bytes, bytes], BestPredictions]:
        return {} if self.like is None else self.like._best_by_inputs

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

    def weighted_trace(self, noise: Noise) -> float:
        """What is minimised: Tr Σ, or Tr CΣ where there are weights."""
        return weighted_trace(noise, self.problem.weights)

    def probes(self, points: Array) -> Probes:
        """``points`` as each reader sees them."""
        return Probes(points, tuple(View.of(exposure, points) for exposure in self.exposures))

    def allowing(self, probes: Probes) -> Probes:
        """Probes of a problem on the same data, with what may be learnt here."""
        points, inputs = probes.points, self.problem.inputs
        seen = zip(self.exposures, probes.views, strict=True)
        return Probes(points, tuple(view.allowing(budget_at(exposure, inputs, points)) for exposure, view in seen))

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

    def price_of_tightening(self, solution: Solution) -> float:
        """By how much (a share) the tolerance can be tightened while the objective grows by the same share of itself.

        For the least noise: with ``G̃ = C^{1/2} G C^{1/2}`` and Ã alike, ``d Tr (G̃/t − Ã)⁺ = −Tr(P G̃) dt`` where P
        projects on the range of ``C^{1/2} Σ C^{1/2}``, and ``Tr P G̃ = Tr CΣ + Tr P Ã``. The objective of the best
        predictions is the share that readers do not explain, and ``−Tr Λ dt`` is how it changes.
        """
        noise = solution.noise
        if solution.explained is not None and solution.witness is not None:
            pull = sum(float(np.sum(part**2)) for part in solution.witness)
            return (1.0 - solution.explained) / max(pull, np.finfo(float).tiny)
        if noise.rank == 0:
            return 0.0
        weighting = self.closed_form.weighting
        directions, _ = scipy.linalg.qr(weighting.forward(noise.factor), mode="economic", check_finite=False)
        total = self.weighted_trace(noise)
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
        """The least noise for Δ′ = ``tightening`` · Δ, or that with the best predictions, where the solver is serving.

        It is that to within ``accuracy`` where there is no closed form.

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
        if self.solver.serving:
            return self._best_predictions(tightening, shift, start, accuracy, [root for _, root in also])
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

    def _best_predictions(
        self, tightening: float, shift: float, start: Solution | None, accuracy: float, also: Sequence[Array]
    ) -> Solution:
        """The noise with the best predictions; a witness is that of Δ itself (nearly, for rows that insiders hold)."""
        exposures = self.solver.exposures
        roots = [(root / np.sqrt(tightening), one.joint) for root, one in zip(self.roots, exposures, strict=True)]
        roots += [(root, True) for root in also]
        scale, before = np.sqrt(tightening), None
        if start is not None and start.explained is not None and start.witness is not None:
            before = [scale * part for part in start.witness]
        solver = self.solver.best_predictions(shift)
        found = solver.solved(roots, max(accuracy, self.solver.problem.plan.gap), before, tightening)
        assert found.witness is not None
        return replace(found, witness=tuple(part / scale for part in found.witness))

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
            whitened = solve(as_tensor(exposure.data_root, exposure.device), as_tensor(root, exposure.device))
            values, vectors = scipy.linalg.eigh(as_array(whitened.T @ whitened), check_finite=False)
            keep = values > SMALLEST * np.max(values, initial=0.0)
            values, vectors = values[keep], vectors[:, keep]
            found.append((values, vectors, whitened @ as_tensor(vectors / np.sqrt(values), exposure.device)))
        return found


def _data_trace(exposure: Exposure, block: Array) -> float:
    """Tr ``block``ᵀ A ``block``."""
    right = as_tensor(block, exposure.device)
    if exposure.data_root is None:
        return float((right * (as_tensor(exposure.data_covariance, exposure.device) @ right)).sum())
    return float((as_tensor(exposure.data_root, exposure.device).T @ right).square_().sum())
