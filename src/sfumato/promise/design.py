"""A design: everything about a protected data set that is public before any value is.

It is what the reader is assumed to know (the prior, the inputs, V and Σ) together with what was promised.
Certificates are computed from it alone, and a release is a design with outputs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ..arrays import Array, Index, Mask
from ..data import Inputs, among
from ..models import FamilyMember, Prior, PriorFamily
from ..noise import Noise
from ..regions import Region
from .families import members_of
from .insiders import Insiders
from .served import Objective, Served
from .tolerance import Tolerance

Cover = Literal["rows", "points", "greedy", "exchange", "everywhere"]
Guarantee = Literal["joint", "pointwise"]
Structure = Literal["full", "diagonal"]
Protects = Literal["both", "function", "records"]

#: V below this share of the variance of f is nothing that could be kept apart from f in float64.
LEAST_OWN = 1e-9

#: Of more places than this, rows in the region aside, evenly spaced ones are taken.
MOST_ROWS_IN_REACH = 4096


def rows_in_reach(region: Region, inputs: Inputs) -> Array:
    """For each row of the data the nearest input of the region, where most is learnt; each place once."""
    moved = region.project_into_parts(inputs.values, inputs) + 0.0
    places = np.unique(moved[region.contains(moved)], axis=0)
    inside = region.contains(inputs.values)
    if len(places) > MOST_ROWS_IN_REACH:
        every = -(-len(places) // MOST_ROWS_IN_REACH)
        places = np.unique(np.vstack([places[::every], inputs.values[inside] + 0.0]), axis=0)
    return places


def promised_records(protects: Protects, priors: Sequence[Prior], region: Region, inputs: Inputs) -> Index:
    """The rows whose records are promised: those in the region with V > 0, for readers with any of ``priors``.

    Where V is below ``LEAST_OWN`` of the variance of f a record counts as f there, which is promised too.
    """
    if protects == "function":
        return np.zeros(0, dtype=np.intp)
    found = []
    for part in inputs.parts():
        rows = part.inputs()
        inside = region.contains(rows)
        for prior in priors:
            inside = inside & (prior.noise_variance(len(inputs))[part.places] > LEAST_OWN * prior.variance(rows))
        found.append(part.start + np.flatnonzero(inside))
    return np.concatenate(found)


class Insider(NamedTuple):
    """An insider whom the noise was designed for: with which prior, who holds which group."""

    prior: int
    group: int


@dataclass(frozen=True, eq=False)
class Design:
    """The public side of a mechanism.

    ``guarantee`` says what is promised: "joint", that nothing about f at the sensitive inputs (``sensitive``: S₀,
    γ × d) is learnt beyond Δ, averages included, or "pointwise", each value by itself. ``cover`` says how the sensitive
    inputs were chosen: with "greedy", "exchange" and "everywhere" the floor is promised at every input
    of the region, with "rows" at the rows of the data inside it, with "points" at the points of the region.
    The promise is made to readers with ``prior``, to those with any of the ``others``, and to all readers of the
    ``families``, for whom finitely many ``members`` stand. The noise was designed for those that are ``binding``.

    ``protects`` says what is sensitive: "function", f in the region; "records", the rows of the data that lie in it;
    "both", f and the records, and all combinations of them. The promise is made to ``insiders`` too; those that the
    noise was ``designed_for`` have a witness, after those of the priors.

    ``weights`` is C where the least ``Tr CΣ`` was asked for instead of the least ``Tr Σ``: a diagonal or a matrix.
    ``structure`` says among which noises Σ is the least, all of them or the diagonal ones. ``witness`` proves
    how little noise is possible (programs/demand.py), one matrix for each prior; the joint program needs none.
    Where the best predictions at some inputs were asked for instead, these are ``serves``, and the witness proves how
    good predictions can be (programs/predictions.py).
    ``promised`` is for how many sensitive inputs the joint promise was made (left out: those that are given).
    """

    prior: Prior
    inputs: Inputs
    region: Region
    tolerance: Tolerance
    cover: Cover
    sensitive: Array
    noise: Noise
    weights: Array | None = None
    guarantee: Guarantee = "joint"
    structure: Structure = "full"
    others: tuple[Prior, ...] = ()
    witness: tuple[Array, ...] | None = None
    promised: int | None = None
    protects: Protects = "function"
    insiders: Insiders | None = None
    designed_for: tuple[Insider, ...] = ()
    families: tuple[PriorFamily, ...] = ()
    binding: tuple[int, ...] = ()
    serves: Served | None = None

    def __post_init__(self) -> None:
        if self.promised is None:
            object.__setattr__(self, "promised", len(self.sensitive))

    @property
    def objective(self) -> Objective:
        """What the noise is the best for."""
        return "noise" if self.serves is None else "predictions"

    @property
    def lists_all_it_promised(self) -> bool:
        """Whether all inputs that a joint promise was made for are among the sensitive ones."""
        named = self.region.points
        if self.cover == "points" and named is not None and not np.all(among(named, self.sensitive)):
            return False
        return self.promised == len(self.sensitive)

    @property
    def promises_at_sensitive(self) -> bool:
        """Whether the promise speaks of all sensitive inputs: others are no reason for noise."""
        if not np.all(self.region.contains(self.sensitive)):
            return False
        return self.cover != "rows" or bool(np.all(among(self.sensitive, self.rows_inside())))

    @property
    def priors(self) -> tuple[Prior, ...]:
        """All priors that the noise was designed for."""
        return (self.prior, *self.others, *(self.members[number] for number in self.binding))

    @cached_property
    def members(self) -> tuple[FamilyMember, ...]:
        """Processes that stand for all readers of the families."""
        return members_of(self.families, self.tolerance, self.protects, self.inputs.features)

    @cached_property
    def examined(self) -> tuple[Prior, ...]:
        """All priors for which the promise must be kept: first those that the noise was designed for."""
        rest = (one for number, one in enumerate(self.members) if number not in self.binding)
        return (*self.priors, *rest)

    @property
    def representatives(self) -> Inputs:
        """The rows that stand for all of them where inputs of the region are looked for."""
        return self.inputs.sample if self.noise.compressed else self.inputs

    @property
    def free_columns(self) -> Mask:
        """The columns that the region leaves to the combinations that rows of the data have."""
        lower, upper = self.region.bounding_box(self.inputs.dimension)
        free = np.isinf(lower) & np.isinf(upper) & ~self.region.varying_columns(self.inputs.dimension)
        return np.asarray(free, dtype=np.bool_)

    @property
    def protects_function(self) -> bool:
        """Whether anything is promised about f itself."""
        return self.protects != "records"

    @cached_property
    def records(self) -> Index:
        """The rows whose records are promised: those in the region that have a part of their own."""
        return promised_records(self.protects, self.priors, self.region, self.inputs)

    def rows_inside(self) -> Array:
        """The rows of the data that lie in the region."""
        inside = (part.inputs() for part in self.inputs.parts())
        return np.vstack([self.region.promised_at_rows(rows) for rows in inside])

    def rows_in_reach(self) -> Array:
        """The inputs of the region next to the rows of the data."""
        return rows_in_reach(self.region, self.representatives)

    def digest(self) -> bytes:
        """A fingerprint of all that decides how outputs are blurred."""
        return self._digest

    @cached_property
    def _digest(self) -> bytes:
        state = hashlib.sha256()
        for part in self.noise.digest_parts(self.inputs, self.sensitive, self.prior):
            state.update(part)
        return state.digest()


class WithDesign:
    """What can be asked of a value that has a design: the parts of the design themselves."""

    design: Design

    @property
    def prior(self) -> Prior:
        """What readers are assumed to believe beforehand."""
        return self.design.prior

    @property
    def inputs(self) -> Array:
        """X, one row for each output; with several outputs the last column is the number of the output."""
        return self.design.inputs.values

    @property
    def region(self) -> Region:
        """Where f is sensitive."""
        return self.design.region

    @property
    def tolerance(self) -> Tolerance:
        """How much may be learnt there."""
        return self.design.tolerance

    @property
    def sensitive(self) -> Array:
        """S₀: the sensitive inputs for which the joint promise is made."""
        return self.design.sensitive

    @property
    def noise(self) -> Noise:
        """Σ, as ``.factor``, ``.covariance()``, ``.variance()`` and ``.trace``."""
        return self.design.noise
