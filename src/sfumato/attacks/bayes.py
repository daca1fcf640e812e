"""The reader of the promise: knows everything but y and the noise that was drawn, and computes without mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..prior import Prior
from .outcome import Attempt, Skipped
from .target import Evidence, Target, between_rows

BROKEN = "the promise is not kept, or the file was changed; protect again and look at the certificate"


def bayes(target: Target) -> Attempt:
    """The exact posterior of f given the release, as ``release.predict`` has it. Covered: certificates are about it."""
    blur = target.evidence.blur + np.diag(target.rounding)
    seen = Evidence(target.rows, target.published, blur).seen_by(target.prior)
    return Attempt(
        "Bayes reader",
        seen.mean_at(target.inputs),
        np.sqrt(seen.variance(target.inputs)),
        target.evidence,
        True,
        "critical",
        "The exact posterior given everything that is published",
        BROKEN,
    )


def bayes_with(target: Target, number: int, prior: Prior) -> tuple[Target, Attempt]:
    """The same with another of the priors for which the promise was made, and judged under that one. Covered."""
    other = replace(target, prior=prior)
    did = f"The exact posterior of a reader with prior {number} of those that are protected against"
    return other, replace(bayes(other), name=f"Bayes reader, prior {number}", did=did)


def looks_between_rows(target: Target) -> tuple[Target, Attempt] | Skipped:
    """The Bayes reader at inputs of the region that are no rows. Not covered where only the rows were promised."""
    name = "looks between the rows"
    if target.design.cover != "rows":
        return Skipped(name, "the floor is promised in the whole region, so this is the Bayes reader")
    between = replace(target, inputs=between_rows(target.design))
    return between, replace(
        bayes(between),
        name=name,
        covered=False,
        harm="medium",
        did="The Bayes reader asks at inputs between the rows, for which nothing was promised",
        remedy='protect the whole region with cover="auto"',
    )
