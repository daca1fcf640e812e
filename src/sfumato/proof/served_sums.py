"""How good predictions are at the served inputs, and how good they could be, from sums over any number of rows.

``f = φᵀu + g`` (sums.py), ``A = A′ + G`` with A′ that of φᵀu and V, and G that of g, whose trace is λ. Let v be the
least V, ``c_t`` how much a served input counts, and ρ the sum of ``c_t`` times what the features leave out of f(t).

*At least* this much is explained: who takes g for 0 predicts f(t) with some weights a, and is wrong by L(t), the
variance of φᵀu that virtual rows leave, and by ``E(g(t) − aᵀg(X))² ≤ (√left_out(t) + √(λ aᵀVa/v))²``.

*At most*: the information P that any noise lets through has ``P ⪯ A⁻¹ ⪯ A′⁻¹``, so what it tells of φᵀu is at most the
best e of the program on virtual rows; a witness proves it (programs/predictions.py). With ``k_t = k⁰_t + r_t``, where
``r_t = Cov(g(X), g(t))``, it explains ``e + 2 Σ c_t r_tᵀPk⁰_t + Σ c_t r_tᵀPr_t``. The last term is at most ρ. The one
in between is at most ``2 √(e ρ)``, and also ``2 √(ρ (1 − ρ − e) λ/v)``: Pk⁰_t are weights for φᵀu, so that
``v |Pk⁰_t|²`` is at most what they leave of it. What is demanded at sensitive inputs that are no centres is relaxed by
what the features leave out there, as ``|P^{1/2}k⁰_s| ≤ |P^{1/2}k_s| + √left_out(s)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from ..arrays import UNIT, Array
from ..linalg import solve_lower
from ..programs import WhiteDemand, most_explained, promised_root
from ..promise import Design
from .roundoff import FACTORED_SUMS
from .sums import Summary, VirtualRows, noise_coefficients, sources_of, without_functions


class ServedFromSums(NamedTuple):
    """``explained`` is a lower bound of the share that readers explain, ``upper`` one that no noise exceeds.

    ``cost`` is how much of ``upper`` the features may cost.
    """

    explained: float
    upper: float
    cost: float


def served_from_sums(design: Design, summary: Summary, published: Summary) -> ServedFromSums:
    """``published`` has the sums in which noise that records carry by themselves is a part of V."""
    served, features = design.serves, summary.features[0]
    assert served is not None
    counts = served.coefficients(design.prior, design.inputs.outputs)
    values = features.at(served.places)
    left_out, known = features.left_out(served.places, values), (values**2) @ features.shares
    ratio = summary.residual(0, weighted=False) / float(np.min(design.prior.noise))
    unknown, weights = _left(design, published, values)
    lost = (np.sqrt(left_out) + np.sqrt(ratio * weights)) ** 2
    told = float(counts @ (known - unknown))
    explained = float(counts @ np.maximum(known + left_out - unknown - lost, 0.0))
    try:
        virtual = _most_told(design, summary, values * np.sqrt(counts)[:, None])
    except np.linalg.LinAlgError:
        virtual = 1.0
    at_most = _with_left_out(virtual, float(counts @ left_out), ratio)
    cost = (at_most - virtual) + (told - explained)
    return ServedFromSums(explained, at_most, min(1.0, max(0.0, cost / at_most)))


def _left(design: Design, summary: Summary, values: Array) -> tuple[Array, Array]:
    """L(t), and aᵀVa for the weights a of who predicts so; ``values`` has φ(t) in its rows.

    With the ``sources_of`` u and the noise as T, ``1 + TᵀΠT`` is the inverse of what is left of them.
    """
    noise, features = design.noise.as_function(), summary.features
    coefficients = noise_coefficients(noise, features)
    sources = sources_of(summary, coefficients)
    suppressed = noise_coefficients(noise, features, noise.suppressing)
    told, _ = without_functions(summary.precision(0), suppressed, np.zeros(len(summary)))
    total = sources.T @ told @ sources
    total[np.diag_indices_from(total)] += 1.0
    block = np.zeros((len(total), len(values)))
    block[: len(features[0])] = (values * np.sqrt(features[0].shares)).T
    lower = scipy.linalg.cholesky(total, lower=True, check_finite=False)
    half = solve_lower(lower, block)
    whole = scipy.linalg.solve_triangular(lower, half, lower=True, trans="T", check_finite=False)
    left, own = (np.einsum("ij,ij->j", one, one) for one in (half, whole))
    return np.asarray(left), np.maximum(left - own, 0.0)


def _with_left_out(told: float, left_out: float, ratio: float) -> float:
    """How much is explained at most where ``told`` is the most that virtual rows tell."""
    bounds, rest = [1.0, (np.sqrt(told) + np.sqrt(left_out)) ** 2], max(1.0 - left_out - told, 0.0)
    # beyond, the bound falls as more is told
    if ratio * left_out <= rest:
        bounds.append(told + 2.0 * np.sqrt(ratio * left_out * rest) + left_out)
    return float(min(bounds))


def _most_told(design: Design, summary: Summary, values: Array) -> float:
    """The most that any noise lets through of φᵀu at the served inputs; ``values`` has √c_t φ(t) in its rows."""
    virtual = VirtualRows(summary)
    data = virtual.process(0) + virtual.noise(0)
    # less of it lets more through: round-off in factoring it is on the safe side
    data[np.diag_indices_from(data)] *= 1.0 - FACTORED_SUMS * UNIT
    lower = scipy.linalg.cholesky(data, lower=True, check_finite=False)
    benefit = solve_lower(lower, virtual.cross(0, values))
    sensitive, witness = design.sensitive, design.witness
    if witness is None or not len(sensitive) or not design.promises_at_sensitive:
        return most_explained(benefit, [], [])
    root = _relaxed_root(design, summary, virtual)
    return most_explained(benefit, [WhiteDemand(solve_lower(lower, root), design.guarantee == "joint")], witness)


def _relaxed_root(design: Design, summary: Summary, virtual: VirtualRows) -> Array:
    """What every noise that keeps the promise at the sensitive inputs meets on virtual rows."""
    features, sensitive, joint = summary.features[0], design.sensitive, design.guarantee == "joint"
    values, prior = features.at(sensitive), design.prior
    root = promised_root(virtual.cross(0, values), design.tolerance, prior, sensitive, joint)
    left_out = features.left_out(sensitive, values)
    if not joint:
        share = left_out / np.maximum(design.tolerance.budget(prior, sensitive), np.finfo(float).tiny)
        return np.asarray(root / (1.0 + np.sqrt(share)))
    least = float(scipy.linalg.eigvalsh(design.tolerance.matrix(prior, sensitive))[0])
    return np.asarray(root / (1.0 + np.sqrt(float(np.sum(left_out)) / max(least, np.finfo(float).tiny))))
