"""A reader of any number of rows with functional noise, who is also given what the features leave out of f.

What such a reader knows is an upper bound for what any reader knows: ``f = φᵀu + g``, and with g known the published
values tell of u what p virtual rows tell (summary.py). So every variance here is a lower bound of the true one, with no
n × n matrix anywhere. Round-off counts against the promise: the information that the rows have is raised by what
round-off may have taken from it, and the prior variance of u is lowered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import scipy.linalg

from .design import Design
from .engine.engine import Done, Engine
from .features import Features
from .functional_noise import FunctionalNoise
from .inputs import Array, among
from .linalg.triangular import solve_lower
from .prior import Prior
from .reader import Reader
from .summary import Summary, inverse, summarise

_UNIT = float(np.finfo(np.float64).eps)

#: Every reader is taken to know everything to this extent, in units of the prior's own information. It costs nothing
#: that one could see, and keeps what follows from singular sums (fewer rows than centres) well-conditioned.
LEAST_INFORMATION = {"one prior": 1e-6, "several": 1e-4}


def summary_of(design: Design, engine: Engine, device: str | None, done: Done) -> Summary:
    """The sums that a certificate needs, from the published objects alone: one pass over the rows."""
    noise = design.noise
    assert isinstance(noise, FunctionalNoise)
    features = [Features.around(prior, centres) for prior, centres in zip(design.priors, noise.centres, strict=True)]
    if any(mine is not its for mine, its in zip(design.priors, noise.priors, strict=True)):
        # the noise is made of other functions than those that readers think f is made of
        features += [Features.around(prior, centres) for prior, centres in zip(noise.priors, noise.centres)]
    return summarise(design.priors, features, design.inputs, design.weights, engine, device, done)


def noise_coefficients(noise: FunctionalNoise, features: Sequence[Features]) -> Array:
    """c with ``k(x, Z) C = φ(x)ᵀ c``, over all ``features``; the last of them are those of the noise."""
    parts, own = noise.by_prior(noise.mixing), features[-len(noise.centres) :]
    others = [np.zeros((len(f), noise.mixing.shape[1])) for f in features[: -len(noise.centres)]]
    return np.vstack([*others, *(f.lower.T @ part for f, part in zip(own, parts, strict=True))])


def _magnitudes(noise: FunctionalNoise, features: Sequence[Features]) -> Array:
    """|Lᵀ||C|: round-off in c is a share of this."""
    parts, own = noise.by_prior(noise.mixing), features[-len(noise.centres) :]
    return np.vstack([np.abs(f.lower.T) @ np.abs(part) for f, part in zip(own, parts, strict=True)])


class CompressedReader(Reader):
    """What the worst reader who holds one prior learns, from the safe side. ``place`` says which prior."""

    def __init__(self, design: Design, prior: Prior, summary: Summary, place: int) -> None:
        assert isinstance(design.noise, FunctionalNoise)
        self.design, self.prior, self.summary, self.place = design, prior, summary, place
        self.features, self.own = summary.features[place], summary.slices[place]
        self.allowance = float(np.max(summary.allowance))
        self.lower = None
        coefficients = noise_coefficients(design.noise, summary.features)
        # what round-off may have added to the noise: c cᵀ ⪰ (1 − t) ĉ ĉᵀ − e eᵀ/t for c = ĉ − e
        wrong = 2 * _UNIT * float(np.linalg.norm(_magnitudes(design.noise, summary.features)))
        share = min(0.5, wrong / max(float(np.linalg.norm(coefficients)), wrong, np.finfo(float).tiny))
        least = LEAST_INFORMATION["one prior" if len(summary.features) == 1 else "several"]
        known = summary.information(place) + least * np.eye(len(summary))
        total = inverse(known) + (1.0 - share) * (coefficients @ coefficients.T)
        total[self.own, self.own] += np.diag(self.features.shares)
        # subtracted, never added: what round-off may hide when this is factored
        lost = 16 * _UNIT * np.diag(total) + (wrong**2 / share if share > 0 else 0.0)
        total[np.diag_indices_from(total)] -= lost
        with contextlib.suppress(np.linalg.LinAlgError):
            self.lower = np.asarray(scipy.linalg.cholesky(total, lower=True, check_finite=False))

    def deviations(self, points: Array) -> Array:
        if self.lower is None:
            return np.zeros(len(points))
        variance = self.prior.variance(points)
        known, explained = self._seen(points)
        learnt = np.einsum("ij,ij->j", explained, explained)
        slack = 8 * _UNIT * len(self.summary) * np.sqrt(variance)
        left = np.einsum("ij,ij->j", known, known) * (1 - 8 * _UNIT) - (np.sqrt(learnt) + slack) ** 2
        return np.asarray(np.sqrt(np.maximum(left, 0.0)))

    def _seen(self, points: Array) -> tuple[Array, Array]:
        """Blocks with the prior variance of φᵀu and what is explained of it as their squared column norms."""
        features = self.features.at(points).T
        block = np.zeros((len(self.summary), len(points)))
        block[self.own] = self.features.shares[:, None] * features
        assert self.lower is not None
        return np.sqrt(self.features.shares)[:, None] * features, solve_lower(self.lower, block)

    def joint_ratio(self) -> float:
        promised = None if self.lower is None else self.promised()
        if promised is None:
            return float("inf")
        sensitive, root, largest, least, uncertain = promised
        known, explained = self._seen(sensitive)
        learnt = explained.T @ explained + self._left_out(sensitive, known)
        top = float(scipy.linalg.eigvalsh(root.T @ learnt @ root)[-1])
        slack = 8 * _UNIT * len(self.summary) * largest / least
        return float(max(top, 0.0) * (1 + uncertain) + slack)

    def _left_out(self, points: Array, known: Array) -> Array:
        """The covariance that the features do not have; at a centre only what round-off may take."""
        if np.all(among(points, self.features.centres)):
            lost = self.features.at(points) * np.sqrt(1.0 - self.features.shares)
            return np.asarray(lost @ lost.T)
        return self.prior.covariance(points) - known.T @ known
