"""The problem that a design solves, on virtual rows instead of the rows of the data: any number of rows, one size.

What the features leave out of f is given to every reader. That can only help readers, so whatever is promised here
holds for the data themselves (MATH.md, section 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.linalg

from .audience import Audience, Watch
from .design import Cover, Design
from .features import Features
from .functional_noise import FunctionalNoise
from .inputs import Array, among
from .linalg.triangular import solve_lower
from .problem import Problem, Solution
from .programs.joint import explaining_root
from .tensors import as_array
from .virtual_rows import VirtualRows


@dataclass(frozen=True, eq=False)
class CompressedAudience(Audience):
    """All readers who hold one prior, and know what the features leave out."""

    virtual: VirtualRows = field(kw_only=True)
    place: int = field(kw_only=True)

    @property
    def size(self) -> int:
        return len(self.virtual)

    @cached_property
    def data_covariance(self) -> Array:
        """A as the virtual rows have it."""
        return np.asarray(self.virtual.process(self.place) + self.virtual.noise(self.place))

    @cached_property
    def data_root(self) -> Array | None:
        return np.asarray(scipy.linalg.cholesky(self.data_covariance, lower=True, check_finite=False))

    @property
    def features(self) -> Features:
        return self.virtual.summary.features[self.place]

    def root(self, sensitive: Array) -> Array:
        values = self.features.at(sensitive)
        cross = self.virtual.cross(self.place, values)
        if self.joint:
            return explaining_root(cross, self.tolerance.matrix(self.prior, sensitive) - self._rest(sensitive, values))
        return cross / np.sqrt(self._budget(sensitive, values))

    def _rest(self, points: Array, values: Array) -> Array:
        """The covariance that the features leave out; nothing at a centre."""
        beside = np.flatnonzero(~among(points, self.features.centres))
        rest, known = np.zeros((len(points), len(points))), values[beside]
        if beside.size:
            left_out = self.prior.covariance(points[beside]) - (known * self.features.shares) @ known.T
            rest[np.ix_(beside, beside)] = left_out
        return rest

    def _budget(self, points: Array, values: Array) -> Array:
        """How much the virtual rows may explain, once what the features leave out is known."""
        budget = self.tolerance.budget(self.prior, points) - self.features.left_out(points, values)
        # where the features leave out more than may be learnt nothing can be promised
        return np.asarray(np.maximum(budget, np.finfo(float).tiny))

    def watch(self, points: Array) -> Watch:
        if np.any(self.tolerance.budget(self.prior, points) <= 0):
            self.tolerance.check(self.prior, points, self.inputs)
        values = self.features.at(points)
        assert self.data_root is not None
        block = solve_lower(as_array(self.data_root), self.virtual.cross(self.place, values))
        return Watch(block, np.einsum("ij,ij->j", block, block), self._budget(points, values))

    def positive_without(self, level: float) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class CompressedProblem(Problem):
    """``inputs`` are rows that stand for all of them where the region is looked at; ``virtual`` stands for their data.

    ``whole`` is the problem as it was asked, with all rows. Its weights are a part of the virtual rows.
    """

    virtual: VirtualRows = field(kw_only=True)
    whole: Problem = field(kw_only=True)

    @cached_property
    def audiences(self) -> tuple[Audience, ...]:
        return tuple(
            CompressedAudience(prior, self.inputs, self.tolerance, None, self.joint, virtual=self.virtual, place=place)
            for place, prior in enumerate((self.prior, *self.others))
        )

    def admissible(self, points: Array) -> Array:
        """The centres in the region that tell most of ``points``; each once.

        At a centre the features have all of f, so Δ need not be lessened by what they leave out; it could not be where
        sensitive values almost determine each other. Where each value is promised by itself that does not matter.
        """
        if not self.joint:
            return points
        inside = self._centres_inside
        if len(points) == 0 or len(inside) == 0 or np.all(among(points, inside)):
            return points
        scale = np.sqrt(self.prior.variance(inside))
        correlation = np.abs(self.prior.covariance(points, inside)) / scale
        return np.asarray(inside[np.unique(np.argmax(correlation, axis=1))])

    @cached_property
    def _centres_inside(self) -> Array:
        """The inputs of the region that are centres for every prior."""
        first, *others = (features.centres for features in self.virtual.summary.features)
        common = np.all([self.region.contains(first), *(among(first, centres) for centres in others)], axis=0)
        return np.asarray(first[common])

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        virtual, summary = self.virtual, self.virtual.summary
        coefficients = virtual.coefficients(solution.noise.factor)
        noise = FunctionalNoise(
            (self.whole.prior, *self.whole.others),
            tuple(features.centres for features in summary.features),
            virtual.mixing(coefficients),
            self.whole.inputs,
            known_trace=float(np.sum(coefficients * (summary.plain @ coefficients))),
        )
        witness = None if solution.witness is None else tuple(virtual.basis @ part for part in solution.witness)
        return self.whole.published(cover, sensitive, Solution(noise, witness))
