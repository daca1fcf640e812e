"""Promises that several releases keep together, and the certificate that they do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import Array
from ..data import MemoryInputs, among
from ..errors import InputError
from ..models import OutputsKernel, Prior
from ..promise import (
    Design,
    Finding,
    Revealed,
    RowLayout,
    compose,
    interpretations,
)
from ..proof import Certificate, Effort, Examination, examine_together
from ..regions import Box, Everywhere, Intersection, OutputRegion, Points, Region, Union
from ..release import describe_prior, describe_tolerance


def about_all(releases: int) -> Finding:
    """What a certificate says that is about more than one release."""
    return Finding("about-all-releases", "note", f"This is about all {releases} releases of the ledger together.")


#: What a certificate says of a release that was made for insiders too.
INSIDERS_ALONE = Finding(
    "insiders-not-composed",
    "medium",
    "What was promised to insiders is kept by that release alone: what they learn of several releases is not composed.",
    "Publish no other release of these rows.",
)


@dataclass(frozen=True, eq=False)
class Promise:
    """What was promised to readers with ``prior``: the region, tolerance and sensitive inputs of ``design``.

    ``by`` are the numbers of the releases that it was made by, the first one of a ledger being 0: their records are
    promised. ``earlier`` are other sensitive inputs that the same promise was made for before, ``asked`` is the region
    that was asked for, where only rows or points of it are promised.
    """

    design: Design
    prior: Prior
    layout: RowLayout
    by: tuple[int, ...]
    earlier: tuple[Array, ...] = ()
    asked: Region | None = None

    @cached_property
    def key(self) -> str:
        """The same for promises that are the same but for what stands for their region: sensitive inputs, records."""
        design = self.design
        tolerance, arrays = describe_tolerance(design)
        region = region_key(design.region, design.inputs.dimension)
        kind = [design.guarantee, design.protects]
        parts = [describe_prior(self.prior), region, tolerance, kind, self.layout.outputs]
        listed = {name: array.tolist() for name, array in arrays.items()}
        noise = None if isinstance(self.prior.noise, float) else self.prior.noise.tolist()
        return json.dumps([parts, listed, noise], sort_keys=True)

    @property
    def region_in_words(self) -> str:
        return self.design.region.in_words(self.design.inputs.names)

    def is_about(self, region: Any) -> bool:
        """Whether it is about ``region``, or about the regions of outputs that a mapping gives by their names."""
        rows, asked = self.design.inputs, self._region(region)
        if asked is None:
            return False
        try:
            bound = asked.bind(rows)
        except InputError:
            return False
        known = [region_key(one, rows.dimension) for one in (self.design.region, self.asked) if one is not None]
        return region_key(bound, rows.dimension) in known

    def _region(self, region: Any) -> Region | None:
        """``region`` in the terms of this promise; None where it has no such outputs."""
        kernel = self.prior.kernel
        if isinstance(region, Mapping):
            if not isinstance(kernel, OutputsKernel):
                return None
            numbers = {self.design.inputs.outputs.number(name, "region"): part for name, part in region.items()}
            places = {
                n: part if kernel.takes_input(n) else Points(kernel.place(n)[None]) for n, part in numbers.items()
            }
            return OutputRegion(places)
        if not isinstance(region, Region):
            raise InputError(f"region is {region!r}; give a region such as sf.Box(1, 2).")
        if not isinstance(self.asked, OutputRegion) or isinstance(region, OutputRegion):
            return region
        # a region of the inputs stands for that region of every sensitive output
        takes = [number for number, part in self.asked.parts if part.points is None or region.points is not None]
        return OutputRegion(dict.fromkeys(takes or [0], region))

    def kept_by(self, releases: Sequence[Revealed], effort: Effort | None = None) -> Examination:
        """Whether all of ``releases`` together keep it, and the inputs where they do not.

        Guarantee: the certificate is that of proof/examination.py, for all published values as one set of data, and the
        worst one where it matters whether rows were measured anew (``interpretations``).
        """
        results = [self._read_as(reading, effort) for reading in interpretations(releases)]
        return worst_of(results)

    def _read_as(self, releases: Sequence[Revealed], effort: Effort | None) -> Examination:
        for merge in (True, False):
            composed = compose(self.prior, self.layout, releases, merge)
            if not len(composed):
                raise InputError("the ledger has no release that this promise is about.")
            promised = composed.promised(releases, self.by)
            found = examine_together(self.design, composed, promised, self.earlier, effort)
            if found.holds or np.isfinite(found.joint_ratio):
                break
        if self.design.insiders is None or len(releases) == 1:
            return found
        made = found.make
        return replace(found, make=lambda: made().with_findings(INSIDERS_ALONE))


def worst_of(results: Sequence[Examination]) -> Examination:
    """The worst of several examinations, with what falls short in any of them.

    Inputs that are laid out otherwise than those of the first are left out: no noise can be designed for them.
    """
    worst = min(results, key=lambda one: (one.holds, one.promised_ratio))
    alike = [one for one in results if one.short.shape[1] == results[0].short.shape[1]]
    joint = max(one.joint_ratio for one in results)

    def make() -> Certificate:
        each, found = [one.certificate() for one in results], worst.certificate()
        ratio = float(np.fmin.reduce([one.record_ratio for one in each]))
        learnt = float(np.fmax.reduce([one.record_learnt for one in each]))
        return as_proved_as(replace(found, joint_ratio=joint, record_ratio=ratio, record_learnt=learnt), each)

    return replace(
        worst,
        joint_ratio=joint,
        short=np.vstack([one.short for one in alike]),
        learnt=np.concatenate([one.learnt for one in alike]),
        most=max(one.most for one in results),
        open=None,
        is_searched=any(one.is_searched for one in results),
        make=make,
    )


def as_proved_as(certificate: Certificate, others: Sequence[Certificate]) -> Certificate:
    """``certificate`` with the evidence of all: it is proved only where the ``others`` are."""
    least = min((certificate, *others), key=lambda one: (one.evidence == "proved", one.proved_share))
    if not certificate.holds or least.evidence == "proved":
        return certificate
    found = replace(certificate, evidence=least.evidence, proved_share=least.proved_share)
    return found.with_findings(*(one for one in least.findings if one.code == "searched"))


def promises_of(release: Revealed, number: int) -> list[Promise]:
    """The promises that a release came with, the one with this ``number``: one for each prior that readers may hold."""
    design, asked = release.design, release.design.region
    check_composable(design)
    if design.cover == "rows" and design.protects_function:
        # between the rows nothing was promised
        rows = design.region.promised_at_rows(design.inputs.values)
        points = Points(MemoryInputs(rows, design.inputs.columns))
        design = replace(design, region=points.on_columns_of(design.inputs))
    return [Promise(design, prior, RowLayout.of(release), (number,), (), asked) for prior in design.priors]


def promises_of_all(releases: Sequence[Revealed]) -> list[Promise]:
    """Every promise that ``releases`` came with, once."""
    return distinct_promises([promise for number, one in enumerate(releases) for promise in promises_of(one, number)])


def check_composable(design: Design) -> None:
    """Refuse promises that cannot be composed exactly."""
    if isinstance(design.region, Everywhere):
        raise InputError(
            "region is sf.Everywhere(), which a ledger cannot divide among releases; bound it, for example with sf.Box."
        )
    if design.families:
        raise InputError(
            "the release is promised to a family of priors, and what several releases tell them is not composed; "
            "protect with a sf.Prior and priors=[family.member(...), …]."
        )
    if design.tolerance.varies:
        raise InputError("floor is a function, which a ledger cannot hold; give a number, or alpha.")


def region_key(region: Region, dimension: int) -> Any:
    """The same for bound regions that are the same, in whichever way their columns were named."""
    if isinstance(region, Box):
        lower, upper = region.bounding_box(dimension)
        return ["box", lower.tolist(), upper.tolist(), region.free]
    if isinstance(region, OutputRegion):
        return ["outputs", [[number, region_key(part, dimension - 1)] for number, part in region.parts]]
    if isinstance(region, (Union, Intersection)):
        return [type(region).__name__, [region_key(member, dimension) for member in region.members]]
    if isinstance(region, Points):
        return ["points", region.values.tolist()]
    return region.to_tree()


def distinct_promises(promises: Sequence[Promise]) -> list[Promise]:
    """Each promise once, as it was made last, with the releases and sensitive inputs that it was made for before."""
    found: dict[str, Promise] = {}
    for promise in promises:
        key, sensitive = promise.key, promise.design.sensitive
        if key in found:
            before = found.pop(key)
            sets = (*before.earlier, before.design.sensitive)
            earlier = tuple(one for one in sets if not np.all(among(one, sensitive)))
            promise = replace(promise, earlier=earlier, by=tuple(sorted({*before.by, *promise.by})))
        found[key] = promise
    return list(found.values())
