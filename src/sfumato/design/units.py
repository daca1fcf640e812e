"""Outputs in very different units, designed for as if each had a prior variance of about 1.

The least noise in the owner's units would go where the numbers are largest, and round-off of large outputs would drown
small ones. So a design counts noise relative to the prior of each output, and is made in units that are powers of
two: going there and back rounds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from ..data import Inputs
from ..linalg import units
from ..models import OutputsKernel, Prior, multiplied_kernel
from ..promise import Cover, Design
from .problem import BackEnd, DenseRows, Exposure, Problem, Solution

#: At how many inputs the variance of each output is looked at.
LOOKS = 64


def output_units(prior: Prior, inputs: Inputs) -> dict[str, float]:
    """A power of two near the standard deviation of each output; nothing where there is one output."""
    outputs = inputs.outputs
    if not outputs.numbered:
        return {}
    plain = inputs.plain.values[:: -(-len(inputs) // LOOKS)]
    variances = [float(np.mean(prior.variance(outputs.rows(plain, number)))) for number in range(len(outputs))]
    return dict(zip(inputs.outputs, units(np.array(variances)).tolist(), strict=True))


def of_rows(unit: Mapping[str, float], inputs: Inputs, name: str = "y") -> Array:
    """The unit of each row; rows of one output that is known by another ``name`` have that one's."""
    return _by_number(unit, inputs, name)[inputs.outputs.numbers(inputs.values)]


def _by_number(unit: Mapping[str, float], inputs: Inputs, name: str = "y") -> Array:
    """The unit of each output."""
    return np.array([unit.get(output, 1.0) for output in inputs.outputs.called(name)])


def prior_in(unit: Mapping[str, float], prior: Prior, inputs: Inputs, rows: Array) -> Prior:
    """``prior`` in other units; its mean, which designs do not need, is left behind."""
    noise = prior.noise_variance(len(inputs)) / rows**2
    several = isinstance(prior.kernel, OutputsKernel)
    kernel = multiplied_kernel(prior.kernel, 1.0 / (_by_number(unit, inputs) if several else rows[:1]))
    return Prior(kernel, "zero", float(noise[0]) if np.ptp(noise) == 0 else noise)


def design_in(unit: Mapping[str, float], design: Design, name: str) -> Design | None:
    """``design`` in other units; None where its tolerance has none that is known."""
    rows = of_rows(unit, design.inputs, name)
    tolerance = design.tolerance.in_units(_by_number(unit, design.inputs, name), design.inputs.outputs)
    if tolerance is None:
        return None
    return replace(
        design,
        prior=prior_in(unit, design.prior, design.inputs, rows),
        others=tuple(prior_in(unit, prior, design.inputs, rows) for prior in design.others),
        tolerance=tolerance,
        noise=design.noise.in_units(rows),
        weights=None,
        witness=None,
        serves=None,
    )


@dataclass(frozen=True, eq=False)
class InUnits:
    """A problem that is worked out in other units: ``inner`` is in those, ``owner`` in the owner's.

    ``rows`` is the unit of each row.
    """

    inner: BackEnd
    owner: BackEnd
    rows: Array

    @property
    def problem(self) -> Problem:
        return self.inner.problem

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        return self.inner.exposures

    @property
    def given(self) -> Array:
        return self.inner.given

    def admissible(self, points: Array) -> Array:
        return self.inner.admissible(points)

    def published(self, cover: Cover, sensitive: Array, solution: Solution) -> Design:
        """The design in the owner's units."""
        witness = solution.witness
        if witness is not None and solution.explained is None:
            witness = tuple(part / self.rows[:, None] for part in witness)
        noise = solution.noise.in_units(1.0 / self.rows)
        return self.owner.published(cover, sensitive, Solution(noise, witness, solution.explained))

    def jointly(self) -> InUnits | None:
        inner, owner = self.inner.jointly(), self.owner.jointly()
        return None if inner is None or owner is None else InUnits(inner, owner, self.rows)


@dataclass(frozen=True, eq=False)
class Rescaled:
    """A problem in units in which every output has a prior variance of about 1.

    ``owner`` is the same in the owner's units; where no weights were given it has those that say how noise is counted,
    relative to the prior of each output. ``unit`` is that of each output, ``rows`` that of each row.
    """

    problem: Problem
    owner: Problem
    unit: Mapping[str, float]
    rows: Array


def rescaled(problem: Problem) -> Rescaled | None:
    """The same problem in units that suit its outputs; None where they have the same ones, or Δ has none."""
    unit = output_units(problem.prior, problem.inputs)
    if len(set(unit.values())) < 2:
        return None
    rows = of_rows(unit, problem.inputs)
    tolerance = problem.tolerance.in_units(_by_number(unit, problem.inputs), problem.inputs.outputs)
    if tolerance is None:
        return None
    weights = problem.weights
    owner = problem if weights is not None or problem.serves is not None else replace(problem, weights=1.0 / rows**2)
    if weights is not None:
        weights = weights * rows**2 if weights.ndim == 1 else weights * np.outer(rows, rows)
    inner = replace(
        problem,
        prior=prior_in(unit, problem.prior, problem.inputs, rows),
        others=tuple(prior_in(unit, prior, problem.inputs, rows) for prior in problem.others),
        tolerance=tolerance,
        weights=weights,
    )
    return Rescaled(inner, owner, unit, rows)


def dense_rows(problem: Problem) -> BackEnd:
    """The rows of ``problem``, in units that suit its outputs."""
    found = rescaled(problem)
    if found is None:
        return DenseRows(problem)
    return InUnits(DenseRows(found.problem), DenseRows(found.owner), found.rows)
