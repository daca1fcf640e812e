"""Promises that several releases keep together, and the certificate that they do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .certificate import Certificate, examine
from .composition import Disclosure, Speech, compose
from .design import Design
from .design_parts import describe_prior, describe_tolerance
from .errors import InputError
from .inputs import Array, among
from .prior import Prior
from .reader import TOLERANCE, Reader
from .regions import Everywhere, Points
from .tolerance import FloorTolerance, TabulatedFloor


@dataclass(frozen=True, eq=False)
class Promise:
    """What was promised to readers with ``prior``: the region, tolerance and sensitive inputs of ``design``.

    ``earlier`` are other sensitive inputs that the same promise was made for before.
    """

    design: Design
    prior: Prior
    speech: Speech
    earlier: tuple[Array, ...] = ()

    @property
    def key(self) -> str:
        """The same for promises that are the same but for the sensitive inputs that stand for their region."""
        design = self.design
        tolerance, arrays = describe_tolerance(design)
        parts = [describe_prior(self.prior), design.region.to_tree(), tolerance, design.guarantee, self.speech.outputs]
        listed = {name: array.tolist() for name, array in arrays.items()}
        noise = None if isinstance(self.prior.noise, float) else self.prior.noise.tolist()
        return json.dumps([parts, listed, noise], sort_keys=True)

    def kept_by(self, disclosures: Sequence[Disclosure]) -> tuple[Certificate, Array]:
        """Whether all of ``disclosures`` together keep it, and the inputs where they do not.

        Guarantee: the certificate is that of certificate.py, for all published values as one set of data.
        """
        composed = compose(self.prior, self.speech, disclosures)
        if not len(composed):
            raise InputError("the ledger has no release that this promise is about.")
        whole = replace(
            self.design,
            prior=composed.prior,
            inputs=composed.inputs,
            noise=composed.noise,
            weights=None,
            structure="full",
            others=(),
            witness=None,
        )
        certificate, short = examine(whole)
        if self.earlier and whole.guarantee == "joint":
            ratios = [
                Reader(replace(whole, sensitive=sensitive), composed.prior).joint_ratio() for sensitive in self.earlier
            ]
            worst = max(certificate.joint_ratio, *ratios)
            holds = certificate.holds and worst <= 1 + TOLERANCE
            certificate = replace(certificate, joint_ratio=worst, holds=holds)
        return certificate, short


def promises_of(disclosure: Disclosure) -> list[Promise]:
    """The promises that a release came with: one for each prior that readers may hold."""
    design = disclosure.design
    check_composable(design)
    if design.cover == "rows":
        # between the rows nothing was promised
        points = Points(design.inputs.select(design.region.contains(design.inputs.values)))
        design = replace(design, region=points.resolve(design.inputs), cover="points")
    return [Promise(design, prior, Speech.of(disclosure)) for prior in design.priors]


def check_composable(design: Design) -> None:
    """Refuse promises that cannot be composed exactly."""
    if isinstance(design.region, Everywhere):
        raise InputError(
            "region is sf.Everywhere(), which a ledger cannot divide among releases; bound it, for example with sf.Box."
        )
    if isinstance(design.tolerance, TabulatedFloor) or (
        isinstance(design.tolerance, FloorTolerance) and callable(design.tolerance.value)
    ):
        raise InputError("floor is a function, which a ledger cannot hold; give a number, or alpha.")


def distinct_promises(promises: Sequence[Promise]) -> list[Promise]:
    """Each promise once, as it was made last, with the sensitive inputs that it was made for before."""
    found: dict[str, Promise] = {}
    for promise in promises:
        key, sensitive = promise.key, promise.design.sensitive
        if key in found:
            before = found.pop(key)
            sets = (*before.earlier, before.design.sensitive)
            earlier = tuple(one for one in sets if not np.all(among(one, sensitive)))
            promise = replace(promise, earlier=earlier)
        found[key] = promise
    return list(found.values())
