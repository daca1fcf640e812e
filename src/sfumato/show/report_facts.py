"""What a report says, as numbers: computed from a release alone. Nothing here ever sees y."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..arrays import Array, Mask
from ..data import parts_of
from ..models import OutputsKernel
from ..promise import Design, TabulatedFloor
from ..proof import Certificate
from ..regions import OutputRegion
from ..release import Release
from .report_html import number, shortened

#: At how many inputs of a region its floor is looked at, to say how large it is.
LOOKS = 512


@dataclass(frozen=True)
class Floor:
    """How well an output may be known: ``low`` to ``high`` over its region, which is ``where``."""

    output: str
    where: str
    low: float
    high: float

    @property
    def words(self) -> str:
        if not np.isfinite(self.low + self.high) or self.low <= 0:
            return "what the tolerance allows"
        if self.high - self.low <= 1e-6 * self.high:
            return f"± {number(self.low)}"
        return f"± {number(self.low)} to ± {number(self.high)}, depending on the place"


@dataclass(frozen=True)
class Blur:
    """The noise on some rows: how many there are, the root mean square and the largest standard deviation."""

    label: str
    rows: int
    typical: float
    largest: float
    prior: float


@dataclass(frozen=True, eq=False)
class Facts:
    """A release whose certificate was computed again; all that a public report is made from.

    Guarantee: it is made from a ``Release``, which holds no y, and from nothing else.
    """

    release: Release

    @classmethod
    def of(cls, release: Release) -> Facts:
        """Compute the certificate again."""
        return cls(replace(release, certificate=release.certify(progress=False)))

    @property
    def certificate(self) -> Certificate:
        return self.release.certificate

    @property
    def design(self) -> Design:
        return self.release.design

    @property
    def compressed(self) -> bool:
        return self.design.noise.compressed

    @cached_property
    def released(self) -> tuple[str, ...]:
        """The outputs that are published."""
        return self.design.inputs.present

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the inputs, without the column that says which output a row is about."""
        return self.design.inputs.names[: self.design.inputs.features]

    @cached_property
    def quantities(self) -> tuple[str, ...]:
        """Outputs without inputs, such as an average."""
        kernel, outputs = self.design.prior.kernel, self.design.inputs.outputs
        if not isinstance(kernel, OutputsKernel):
            return ()
        return tuple(name for place, name in enumerate(outputs) if not kernel.takes_input(place))

    @cached_property
    def rows(self) -> int:
        return len(self.design.inputs)

    @cached_property
    def rows_inside(self) -> int:
        """How many rows have inputs in the region."""
        region = self.design.region
        return sum(int(np.sum(region.contains_for_any_output(part.inputs()))) for part in parts_of(self.design.inputs))

    @cached_property
    def promised(self) -> Array:
        """Some inputs for which the promise is made."""
        design = self.design
        if isinstance(design.tolerance, TabulatedFloor):
            return design.tolerance.inputs
        if design.region.points is not None:
            return design.region.points
        if design.cover == "rows":
            return design.rows_inside()
        found = np.vstack([design.region.probes(LOOKS, design.representatives), design.sensitive])
        return np.asarray(found[design.region.contains(found)])

    @cached_property
    def floors(self) -> tuple[Floor, ...]:
        """One for each output that is protected."""
        names, region, design = self.design.inputs.outputs.names, self.design.region, self.design
        if not isinstance(region, OutputRegion):
            return (self._floor(self.release.output_name, self.region_in_words, self.promised),)
        found = []
        for place, part in region.parts:
            own = self.promised[self.promised[:, -1] == place]
            where = "" if names[place] in self.quantities else shortened(part.in_words(design.inputs.plain.names))
            found.append(self._floor(names[place], where, own))
        return tuple(found)

    def _floor(self, name: str, where: str, points: Array) -> Floor:
        if not len(points):
            return Floor(name, where, np.nan, np.nan)
        floors = np.concatenate([self.design.tolerance.floor(prior, points) for prior in self.design.priors])
        return Floor(name, where, float(np.min(floors)), float(np.max(floors)))

    @property
    def region_in_words(self) -> str:
        return shortened(self.design.region.in_words(self.design.inputs.names))

    @property
    def worst_place(self) -> str:
        return self.certificate.worst_place

    @cached_property
    def worst_prior(self) -> float:
        """How well readers knew the worst input before the release: the prior's standard deviation there."""
        return float(np.sqrt(self.design.prior.variance(self.certificate.worst_input[None, :])[0]))

    @cached_property
    def free_columns(self) -> tuple[str, ...]:
        """Columns that the region leaves to the combinations that rows of the data have."""
        design = self.design
        if design.region.points is not None or design.cover in ("rows", "everywhere"):
            return ()
        return tuple(name for name, free in zip(design.inputs.names, design.free_columns, strict=True) if free)

    @cached_property
    def blurs(self) -> tuple[Blur, ...]:
        """The noise on the rows inside and outside the region, of each output; of many rows, a sample."""
        design = self.design
        rows, noise = design.representatives.values, design.noise
        variances = noise.variance_at(rows)
        inside = design.region.contains_for_any_output(rows)
        found = []
        for name in self.released:
            own = self._about(rows, name)
            label = f"{name}, " if len(self.released) > 1 else "rows "
            for where, mask in (("inside the region", inside & own), ("outside", ~inside & own)):
                if np.any(mask):
                    prior = float(np.sqrt(np.mean(design.prior.variance(rows[mask]))))
                    own_noise = variances[mask]
                    sizes = float(np.sqrt(np.mean(own_noise))), float(np.sqrt(np.max(own_noise)))
                    found.append(Blur(f"{label}{where}", int(np.sum(mask)), *sizes, prior))
        return tuple(found)

    def _about(self, rows: Array, name: str) -> Mask:
        outputs = self.design.inputs.outputs
        return np.asarray(outputs.numbers(rows) == outputs.number(name), dtype=np.bool_)
