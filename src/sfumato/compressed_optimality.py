"""How little noise is possible, for any number of rows, from sums over them.

Let Λ be a witness (programs/demand.py) on virtual rows, ``Σ Λ ⪯ I``. Carried over to the rows it is
``CΦE⁻ᵀ Λ E⁻¹ΦᵀC ⪯ C``, so it proves a bound for the rows too; in it V stands as ``E⁻¹ΦᵀC V CΦE⁻ᵀ``, and what the
features leave out costs at most its trace: ``⟨K − ΦΦᵀ, Λ⟩ ≤ Tr C(K − ΦΦᵀ)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from .compressed_reader import noise_coefficients
from .design import Design
from .functional_noise import FunctionalNoise
from .inputs import Array, among
from .linalg.triangular import solve_lower
from .optimality import Optimality, gap_between
from .programs.demand import Demand, lower_bound
from .programs.roots import promised_root
from .summary import Summary
from .virtual_rows import VirtualRows


def compressed_optimality(design: Design, summary: Summary, joint_ratio: float) -> tuple[Optimality, float]:
    """The noise of ``design`` beside the least that its promise needs, and how much of it compression costs at most.

    A search holds the sensitive inputs tighter than it promises, which is no fault of the features. So for the cost of
    compression the joint promise is taken as tight as it is kept (``joint_ratio``). Where there is no closed form, what
    the features leave out bounds what they cost.
    """
    assert isinstance(design.noise, FunctionalNoise)
    coefficients = noise_coefficients(design.noise, summary.features)
    trace, objective = _total(summary.plain, coefficients), _total(summary.cost, coefficients)
    if trace == 0:
        return Optimality(0.0, 0.0, 0.0), 0.0
    weighted = design.weights is not None
    bound = _Bound(design, summary, coefficients)
    least = bound.at(1.0)
    lower = least
    if weighted:
        known = all(noise is not None for noise in summary.noises)
        lower = _Bound(design, _without_weights(summary), coefficients).at(1.0) if known else 0.0
    if design.witness is not None and not weighted and None not in summary.noises:
        cost = min(1.0, bound.residual / objective)
    elif design.witness is not None or not np.isfinite(joint_ratio):
        # with weights, or a V for each row, the least noise is not a sum of features: the gap bounds that too
        cost = min(1.0, max(0.0, 1.0 - least / objective))
    else:
        cost = max(0.0, 1.0 - bound.at(joint_ratio) / objective)
    return Optimality(trace, lower, gap_between(least, objective)), cost


def _total(gram: Array, coefficients: Array) -> float:
    return float(np.sum(coefficients * (gram @ coefficients)))


def _without_weights(summary: Summary) -> Summary:
    left_out = ("cost", "squared_cost")
    return replace(summary, totals={name: total for name, total in summary.totals.items() if name not in left_out})


@dataclass(frozen=True, eq=False)
class _Bound:
    """Lower bounds for Tr CΣ over all noise that promises a multiple of Δ at the sensitive inputs."""

    design: Design
    summary: Summary
    coefficients: Array

    def at(self, tightening: float) -> float:
        """The bound for ``tightening`` · Δ."""
        sensitive = self.design.sensitive
        if len(self.summary.features) > len(self.design.priors):
            # the noise is made of functions that no reader's prior has
            return 0.0
        if len(sensitive) == 0 or not np.all(self.design.region.contains(sensitive)):
            return 0.0
        try:
            demands = [Demand(d.covariance, d.root / np.sqrt(tightening), d.joint) for d in self.demands]
        except np.linalg.LinAlgError:
            return 0.0
        witness = self.design.witness
        if witness is not None:
            basis = self.virtual.basis
            parts = [solve_lower(basis, part) for part in witness]
            return max(0.0, lower_bound(demands, parts) - self.residual)
        if self.design.guarantee == "pointwise" or len(demands) > 1:
            return 0.0
        # ``Tr Σ ≥ Tr (PᵀBP)⁺`` for any P with orthonormal columns; the range of Σ is the best one
        seen = demands[0].root.T @ self.range
        reduced = seen.T @ seen - self.range.T @ (demands[0].covariance @ self.range)
        found = float(np.sum(np.maximum(scipy.linalg.eigvalsh((reduced + reduced.T) / 2), 0.0)))
        return max(0.0, found - self.residual)

    @cached_property
    def virtual(self) -> VirtualRows:
        return VirtualRows(self.summary)

    @cached_property
    def range(self) -> Array:
        """An orthonormal basis of the range of the noise on virtual rows."""
        vectors, values, _ = scipy.linalg.svd(self.virtual.basis.T @ self.coefficients, full_matrices=False)
        return np.asarray(vectors[:, values > 1e-12 * values[0]])

    @cached_property
    def demands(self) -> list[Demand]:
        design, virtual, joint = self.design, self.virtual, self.design.guarantee == "joint"
        # nearly Eᵀ: E Eᵀ has a little more than ΦᵀCΦ, for round-off
        across = solve_lower(virtual.basis, self.summary.cost)
        demands = []
        for place, (prior, own) in enumerate(zip(design.priors, self.summary.slices)):
            features, part = self.summary.features[place], across[:, own]
            covariance = (part / features.shares) @ part.T + virtual.spread(place)
            cross = part @ features.at(design.sensitive).T
            root = promised_root(cross, design.tolerance, prior, design.sensitive, joint)
            demands.append(Demand(np.asarray((covariance + covariance.T) / 2), root, joint))
        return demands

    @cached_property
    def residual(self) -> float:
        """What the features leave out, which may all stand against the bound."""
        places = range(len(self.design.priors))
        left_out = max(self.summary.residual(place, "cost" in self.summary.totals) for place in places)
        return left_out + sum(self._beside_centres(place) for place in places)

    def _beside_centres(self, place: int) -> float:
        """How much ``⟨UUᵀ, Λ⟩`` may be less than the features say where sensitive inputs are no centres.

        With ``U = U₀ + r`` it is at least ``(‖U₀ᵀY‖ − ‖rᵀY‖)²``, and ``‖r_s‖²`` is at most what is left out of f at s
        times what is left out at all rows.
        """
        design, features, prior = self.design, self.summary.features[place], self.design.priors[place]
        others = design.sensitive[~among(design.sensitive, features.centres)]
        if len(others) == 0:
            return 0.0
        least: Array | float = design.tolerance.budget(prior, others)
        if design.guarantee == "joint":
            least = float(scipy.linalg.eigvalsh(design.tolerance.matrix(prior, design.sensitive))[0])
        heaviest = 1.0 if design.weights is None else float(np.max(design.weights))
        beside = np.sum(features.left_out(others) / np.maximum(least, 1e-300)) * self.summary.residual(place, False)
        root = float(np.linalg.norm(self.demands[place].root))
        return float(2.0 * root * np.sqrt(heaviest * beside))
