"""How little noise is possible: lower bounds from the published objects, and the gap to the noise that was taken.

Nothing here bears on whether a promise is kept; it tells the owner what is given away. A bound is proved by its witness
(programs/demand.py), so it is valid however it was found.

For any number of rows bounds follow from sums over them. Let Λ be a witness on virtual rows, ``Σ Λ ⪯ I``. Carried over
to the rows it is ``CΦE⁻ᵀ Λ E⁻¹ΦᵀC ⪯ C``, so it proves a bound for the rows too; in it V stands as ``E⁻¹ΦᵀC V CΦE⁻ᵀ``,
and what the features leave out costs at most its trace: ``⟨K − ΦΦᵀ, Λ⟩ ≤ Tr C(K − ΦΦᵀ)``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import torch

from ..arrays import UNIT, Array
from ..data import among
from ..linalg import Weighting, as_array, as_tensor, cholesky_in_place, solve_lower
from ..noise import Noise
from ..programs import (
    Demand,
    WhiteDemand,
    insider_root,
    lower_bound,
    most_explained,
    needed_everywhere,
    promised_root,
)
from ..promise import Design, Insider, Reader, RowsHeld
from .knowledge import ExactKnowledge
from .records import RecordsFromSums
from .roundoff import FACTORED
from .served_sums import served_from_sums
from .sums import Summary, VirtualRows, noise_coefficients

#: A gap below −1e-6 (a share) is no round-off: more than the best is not possible, and the promise is not kept.
BEYOND_BEST = 1e-6

#: Directions of the noise below this share of the largest are left out of a bound, which is then a little lower.
SMALLEST_DIRECTION = 1e-12


@dataclass(frozen=True)
class Optimality:
    """``trace`` is Tr Σ, ``lower`` a bound for any Σ that keeps the promise, ``gap`` a share of what was optimised.

    Where that are predictions, ``explained`` is the share of the variance that readers explain at the served inputs,
    and ``upper`` a bound for it under any noise that keeps the promise.
    """

    trace: float
    lower: float
    gap: float
    explained: float = float("nan")
    upper: float = float("nan")


def optimality(design: Design, knowledge: Sequence[ExactKnowledge]) -> Optimality:
    """The noise of ``design`` beside the best that its promise allows at the sensitive inputs."""
    if design.serves is not None:
        return _of_predictions(design, knowledge)
    trace = design.noise.trace
    if trace == 0:
        return Optimality(0.0, 0.0, 0.0)
    weights = design.weights
    if weights is not None and weights.ndim == 2 and design.structure == "diagonal":
        # only the diagonal of C meets that of Σ
        weights = np.diag(weights)
    lower = _bound(design, knowledge, None)
    if weights is None:
        return Optimality(trace, lower, gap_between(lower, trace))
    of_weights = _bound(design, knowledge, weights)
    return Optimality(trace, lower, gap_between(of_weights, weighted_trace(design.noise, weights)))


def _of_predictions(design: Design, knowledge: Sequence[ExactKnowledge]) -> Optimality:
    """What readers explain at the served inputs, beside the most that any noise could leave them."""
    known, trace, lower = knowledge[0], design.noise.trace, _bound(replace(design, witness=None), knowledge, None)
    explained, upper = served_share(known), 1.0
    with contextlib.suppress(np.linalg.LinAlgError):
        upper = min(upper, _most_explained(design, known, _served(known)))
    return Optimality(trace, lower, gap_between(explained, upper), explained, upper)


def served_share(known: ExactKnowledge) -> float:
    """The share of the variance at the served inputs that a reader explains at least; NaN where none are served."""
    if known.design.serves is None or known.is_singular:
        return float("nan")
    return known.surely_told(_served(known))


def _served(known: ExactKnowledge) -> torch.Tensor:
    """Cov(y, f(T)) diag(√c) at the served inputs T."""
    design, serves = known.design, known.design.serves
    assert serves is not None
    cross = known.unknown.with_data(design.inputs, serves.places, known.device)
    counts = serves.coefficients(known.reader.prior, design.inputs.outputs)
    return cross * as_tensor(np.sqrt(counts), known.device)


def _most_explained(design: Design, known: ExactKnowledge, cross: torch.Tensor) -> float:
    """A bound by the witness; where nothing is hidden, what data without noise explain.

    Where every row carries a shift against round-off, all noises do that are compared with this one.
    """
    raised, scale = known.reader.data_covariance(design.inputs, known.device), as_tensor(known.scale, known.device)
    raised.diagonal().add_(design.noise.shift)
    # in units in which rows are about 1: several outputs may be in very different ones
    raised.div_(scale).div_(scale[:, None])
    # a smaller A lets more through: round-off in factoring it is on the safe side
    raised.diagonal().sub_(FACTORED * len(raised) * UNIT * float(raised.diagonal().max()))
    lower = as_tensor(cholesky_in_place(raised), known.device)

    def whitened(block: torch.Tensor) -> torch.Tensor:
        solved: torch.Tensor = torch.linalg.solve_triangular(lower, block / scale[:, None], upper=False)
        return solved

    roots: list[tuple[Array, bool]] = []
    if design.witness is not None and design.promises_at_sensitive:
        roots = [(_explaining_root(design, known), _is_joint(design, known))]
        roots += [(_insider_root(design, known, one), True) for one in _bounding(design)]
    witness = design.witness[: len(roots)] if design.witness is not None else ()
    demands = [WhiteDemand(whitened(as_tensor(root, known.device)), joint) for root, joint in roots]
    return most_explained(whitened(cross), demands, witness)


def _bounding(design: Design) -> tuple[Insider, ...]:
    """The insiders whose demands bound what any noise can do: none where each value is promised by itself.

    Noise is made for all combinations of what they do not know, which is more than they are then promised.
    """
    return design.designed_for if design.guarantee == "joint" else ()


def gap_between(low: float, high: float) -> float:
    """How far ``low`` is below ``high``, as a share of it, where one is a bound for the other; NaN where it is not."""
    gap = 1.0 - low / high if high > 0.0 else 0.0
    return float("nan") if np.isnan(gap) or gap < -BEYOND_BEST else min(1.0, max(0.0, gap))


def weighted_trace(noise: Noise, weights: Array | None) -> float:
    """Tr CΣ, which the least noise minimises."""
    if weights is None:
        return noise.trace
    if weights.ndim == 1:
        return float(weights @ noise.variance())
    return float(np.sum(noise.factor * (weights @ noise.factor)) + noise.shift * np.trace(weights))


def _bound(design: Design, knowledge: Sequence[ExactKnowledge], weights: Array | None) -> float:
    """A lower bound for Tr CΣ; 0 where none is known."""
    nothing = len(design.sensitive) + len(design.records) == 0
    if design.cover != "everywhere" and (nothing or not design.promises_at_sensitive):
        return 0.0
    try:
        if design.witness is not None:
            return _bound_by_witness(design, knowledge, design.witness, weights)
        if design.guarantee == "pointwise" or len(knowledge) > 1 or design.structure == "diagonal":
            return 0.0
        return _bound_by_range(design, knowledge[0], weights)
    except np.linalg.LinAlgError:
        return 0.0


def _bound_by_witness(
    design: Design, knowledge: Sequence[ExactKnowledge], witness: Sequence[Array], weights: Array | None
) -> float:
    weighting, demands = Weighting(weights), []
    for known in knowledge:
        A = as_array(known.reader.data_covariance(design.inputs, known.device))
        if design.cover == "everywhere":
            values, vectors = scipy.linalg.eigh(_everywhere(design, known))
            root = vectors * np.sqrt(np.maximum(values, 0.0))
        else:
            root = _explaining_root(design, known)
        demands.append(Demand(weighting.both(A), weighting.forward(root), _is_joint(design, known)))
    for binding in _bounding(design):
        root = _insider_root(design, knowledge[binding.prior], binding)
        demands.append(Demand(demands[binding.prior].covariance, weighting.forward(root), True))
    parts = [weighting.backward(part) for part in witness[: len(demands)]]
    return lower_bound(demands, parts, design.structure == "diagonal")


def _bound_by_range(design: Design, known: ExactKnowledge, weights: Array | None) -> float:
    """``Tr Σ ≥ Tr PᵀΣP ≥ Tr (PᵀBP)⁺`` for any P with orthonormal columns; the range of Σ is the best one.

    With ``C = R Rᵀ`` the same holds for ``RᵀΣR``. No n × n matrix is live but C, and that of the promise everywhere.
    """
    factor = as_tensor(design.noise.blurring, known.device)
    if weights is None:
        basis = torch.linalg.qr(factor)[0]
    elif weights.ndim == 1:
        scale = as_tensor(np.sqrt(weights), known.device)[:, None]
        basis = scale * torch.linalg.qr(scale * factor)[0]
    else:
        lower = cholesky_in_place(as_tensor(np.array(weights), known.device))
        basis = lower @ torch.linalg.qr(lower.T @ factor)[0]
    if design.cover == "everywhere":
        needed = _everywhere(design, known)
        covered = basis.T @ (as_tensor(needed, known.device) @ basis)
    else:
        seen = as_tensor(_explaining_root(design, known), known.device).T @ basis
        covered = seen.T @ seen
    reduced = covered - basis.T @ known.reader.data_times(design.inputs, basis)
    return float(torch.linalg.eigvalsh((reduced + reduced.T) / 2).clamp_min(0.0).sum())


def _everywhere(design: Design, known: ExactKnowledge) -> Array:
    return needed_everywhere(known.reader.prior, design.tolerance, design.inputs, design.records)


def _explaining_root(design: Design, known: ExactKnowledge) -> Array:
    """U (programs/demand.py), a little less where that is round-off: no bound then asks for more than is promised."""
    values, joint = known.reader.values(design.inputs, design.records), _is_joint(design, known)
    places = values.places(design.sensitive)
    cross = as_array(values.with_data(design.inputs, places, known.device))
    root = promised_root(cross, design.tolerance, values, places, joint)
    return root / np.sqrt(known.promise_roundoff) if joint else root


def _insider_root(design: Design, known: ExactKnowledge, insider: Insider) -> Array:
    """U of one group of insiders, as if they were outsiders."""
    assert design.insiders is not None
    held = RowsHeld(known.reader.prior, design.inputs, design.insiders.groups[insider.group])
    reader = Reader(known.reader.prior, held)
    return insider_root(reader, design.inputs, design.tolerance, design.sensitive, design.records)


def _is_joint(design: Design, known: ExactKnowledge) -> bool:
    """Whether this reader is promised combinations of sensitive values too; those of a family are not."""
    return design.guarantee == "joint" and known.reader.is_promised_averages


def compressed_optimality(
    design: Design,
    summary: Summary,
    joint_ratio: float,
    records: RecordsFromSums,
    published: Callable[[], Summary],
) -> tuple[Optimality, float]:
    """The noise of ``design`` beside the least that its promise needs, and how much of it compression costs at most.

    Where records carry noise of their own, the gap bounds the cost: exact designs blur them together with f.
    Where predictions were optimised, they are what is compared; ``published`` has the sums in which that noise is a
    part of V.
    """
    if design.serves is not None:
        return _of_compressed_predictions(design, summary, records, published())
    found, least, weighted_total, cost = _of_random_function(design, summary, joint_ratio)
    if records.variance == 0:
        return found, cost
    least, weighted_total = max(least, records.needed), weighted_total + records.cost
    lower, trace = max(found.lower, records.needed_variance), found.trace + records.variance
    gap, cost = gap_between(least, weighted_total), min(1.0, max(0.0, 1.0 - least / weighted_total))
    return Optimality(trace, lower, gap), cost


def _of_compressed_predictions(
    design: Design, summary: Summary, records: RecordsFromSums, published: Summary
) -> tuple[Optimality, float]:
    noise = design.noise.as_function()
    coefficients = noise_coefficients(noise, summary.features)
    hidden = np.hstack([coefficients, noise_coefficients(noise, summary.features, noise.suppressing)])
    # each direction by itself: those that are suppressed are far larger
    hidden = hidden / np.maximum(np.linalg.norm(hidden, axis=0), np.finfo(float).tiny)
    lower = _Bound(replace(design, witness=None), summary, hidden).at(1.0) if hidden.size else 0.0
    trace = _total(summary.gram, coefficients) + records.variance
    served = served_from_sums(design, summary, published)
    gap = gap_between(served.explained, served.upper)
    least = max(lower, records.needed_variance)
    return Optimality(trace, least, gap, served.explained, served.upper), served.cost


def _of_random_function(design: Design, summary: Summary, joint_ratio: float) -> tuple[Optimality, float, float, float]:
    """The same for the random function alone; in between are the least Tr CΣ that is possible, and what it is.

    A search holds the sensitive inputs tighter than it promises, which is no fault of the features. So for the cost of
    compression the joint promise is taken as tight as it is kept (``joint_ratio``). Where there is no closed form, what
    the features leave out bounds what they cost.
    """
    coefficients = noise_coefficients(design.noise.as_function(), summary.features)
    trace, weighted_total = _total(summary.gram, coefficients), _total(summary.weighted_gram, coefficients)
    if trace == 0:
        return Optimality(0.0, 0.0, 0.0), 0.0, 0.0, 0.0
    weighted = design.weights is not None
    bound = _Bound(design, summary, coefficients)
    least = bound.at(1.0)
    lower = least
    if weighted:
        known = all(noise is not None for noise in summary.noises)
        lower = _Bound(design, _without_weights(summary), coefficients).at(1.0) if known else 0.0
    if design.witness is not None and not weighted and None not in summary.noises:
        cost = min(1.0, bound.residual / weighted_total)
    elif design.witness is not None or not np.isfinite(joint_ratio):
        # with weights, or a V for each row, the least noise is not a sum of features: the gap bounds that too
        cost = min(1.0, max(0.0, 1.0 - least / weighted_total))
    else:
        cost = max(0.0, 1.0 - bound.at(joint_ratio) / weighted_total)
    return Optimality(trace, lower, gap_between(least, weighted_total)), least, weighted_total, cost


def _total(gram: Array, coefficients: Array) -> float:
    return float(np.sum(coefficients * (gram @ coefficients)))


def _without_weights(summary: Summary) -> Summary:
    left_out = ("weighted_gram", "squared_weights_gram")
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
        if len(sensitive) == 0 or not self.design.promises_at_sensitive:
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
        return np.asarray(vectors[:, values > SMALLEST_DIRECTION * values[0]])

    @cached_property
    def demands(self) -> list[Demand]:
        design, virtual, joint = self.design, self.virtual, self.design.guarantee == "joint"
        # nearly Eᵀ: E Eᵀ has a little more than ΦᵀCΦ, for round-off
        across = solve_lower(virtual.basis, self.summary.weighted_gram)
        demands = []
        for number, (prior, own) in enumerate(zip(design.priors, self.summary.slices)):
            features, part = self.summary.features[number], across[:, own]
            covariance = (part / features.shares) @ part.T + virtual.noise_bound(number)
            cross = part @ features.at(design.sensitive).T
            root = promised_root(cross, design.tolerance, prior, design.sensitive, joint)
            demands.append(Demand(np.asarray((covariance + covariance.T) / 2), root, joint))
        return demands

    @cached_property
    def residual(self) -> float:
        """What the features leave out, which may all stand against the bound."""
        numbers = range(len(self.design.priors))
        left_out = max(self.summary.residual(number, "weighted_gram" in self.summary.totals) for number in numbers)
        return left_out + sum(self._beside_centres(number) for number in numbers)

    def _beside_centres(self, number: int) -> float:
        """How much ``⟨UUᵀ, Λ⟩`` may be less than the features say where sensitive inputs are no centres.

        With ``U = U₀ + r`` it is at least ``(‖U₀ᵀY‖ − ‖rᵀY‖)²``, and ``‖r_s‖²`` is at most what is left out of f at s
        times what is left out at all rows.
        """
        design, features, prior = self.design, self.summary.features[number], self.design.priors[number]
        others = design.sensitive[~among(design.sensitive, features.centres)]
        if len(others) == 0:
            return 0.0
        least: Array | float = design.tolerance.budget(prior, others)
        if design.guarantee == "joint":
            least = float(scipy.linalg.eigvalsh(design.tolerance.matrix(prior, design.sensitive))[0])
        heaviest = 1.0 if design.weights is None else float(np.max(design.weights))
        beside = np.sum(features.left_out(others) / np.maximum(least, 1e-300)) * self.summary.residual(number, False)
        root = float(np.linalg.norm(self.demands[number].root))
        return float(2.0 * root * np.sqrt(heaviest * beside))
