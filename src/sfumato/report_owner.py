"""The parts of a report that only the owner may see: they are made with the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

from .attacks.audit import HEADER, Audit
from .audit_figure import plot_audit
from .errors import InputError
from .inputs import Array
from .plots import plot_both
from .release_record import digest_outputs
from .report_facts import Facts
from .report_figures import MOST_OUTPUTS, MOST_POINTS, Picture, picture, shown
from .report_html import Html, number, table, tag
from .row_labels import without_labels
from .stacking import rows_about, stacked_outputs

BANNER = "OWNER ONLY: this report contains the truth. Do not publish it."


def true_outputs(facts: Facts, truth: Any) -> Array:
    """One true value for each row of the release."""
    try:
        return stacked_outputs(facts.design.inputs, without_labels(truth, "truth"))
    except InputError as error:
        raise InputError(f"truth does not fit the release: {error}") from error


def check_audit(audit: Any, facts: Facts) -> Audit:
    if not isinstance(audit, Audit):
        raise InputError(f"audit is {str(audit)[:60]!r}; give what sf.audit(release, y) gave.")
    if audit.output != facts.release.output_name:
        raise InputError(f"audit is about {audit.output!r}, but the release is about {facts.release.output_name!r}.")
    if audit.digest != digest_outputs(np.asarray(facts.release.outputs)):
        raise InputError("audit is about another release; give what sf.audit made of this one.")
    return audit


def truth_section(facts: Facts, y: Array) -> list[Html]:
    """The pictures again, with the truth in them, and how far readers are off on these data."""
    header = ["Rows", "Number", "Noise that was drawn", "Best reader is off by"]
    return [
        tag("h2", "Compared with the truth (owner only)"),
        table("Root mean square on these data", header, _errors(facts, y), numbers=(1, 2, 3)),
        *shown(*_pictures(facts, y)),
    ]


def audit_section(found: Audit) -> list[Html]:
    """What adversaries achieved on these data."""
    classes = ["bad" if outcome.below else "" for outcome in found.outcomes]
    alt = f"One line for each adversary, in multiples of the promised floor. {found.verdict}"
    drawn = picture(
        lambda: plot_audit(found), "audit", alt, "What each adversary achieves; left of 1 is below the floor."
    )
    below = [
        tag("li", tag("strong", outcome.name), f": {outcome.words}") for outcome in found.outcomes if outcome.below
    ]
    skipped = [tag("li", f"not tried: {one.name}, because {one.why}") for one in found.skipped]
    header = [name.capitalize() for name in HEADER]
    return [
        tag("h2", "What adversaries achieve (owner only)"),
        tag("p", tag("strong", found.verdict)),
        table(
            f"Errors at {found.judged} sensitive inputs, in multiples of the floor; below 1 is below the floor",
            header,
            found.rows(),
            numbers=(2, 3, 4, 5),
            classes=classes,
        ),
        *shown(drawn),
        *([tag("ul", *below, *skipped)] if below or skipped else []),
    ]


def _errors(facts: Facts, y: Array) -> list[list[str]]:
    design, release = facts.design, facts.release
    rows = np.asarray(design.inputs.values)
    published, inside = np.asarray(release.outputs), design.region.surrounds(rows)
    found = []
    for name in facts.released:
        own = np.arange(len(rows)) if design.inputs.outputs is None else rows_about(design.inputs, name)
        plain = rows[own][:, : len(facts.columns)]
        off = release.predict(plain, None if design.inputs.outputs is None else name).mean - y[own]
        label = f"{name}, " if len(facts.released) > 1 else "rows "
        for where, mask in (("inside the region", inside[own]), ("outside", ~inside[own])):
            if np.any(mask):
                noise, missed = (_size(values[mask]) for values in (published[own] - y[own], off))
                found.append([f"{label}{where}", f"{int(np.sum(mask)):,}", f"± {noise}", f"± {missed}"])
    return found


def _size(values: Array) -> str:
    return number(float(np.sqrt(np.mean(values**2))))


def _pictures(facts: Facts, y: Array) -> list[Picture]:
    """The picture of each output with its true values; for one input, and not too many rows."""
    if len(facts.columns) != 1 or facts.rows > MOST_POINTS:
        return []
    rows, found = facts.design.inputs, []
    for place, name in enumerate(facts.released[:MOST_OUTPUTS]):
        own = np.arange(len(rows)) if rows.outputs is None else rows_about(rows, name)
        order = own[np.argsort(rows.values[own, 0], kind="stable")]
        truth = (rows.values[order, 0], y[order])
        of = None if rows.outputs is None else name
        found.append(
            picture(
                lambda truth=truth, of=of: plot_both(facts.release, truth, of=of),  # type: ignore[misc]
                f"t{place + 1}",
                f"The published values of {name}, what readers conclude, and the truth as a dashed line.",
                f"As above, with the true values of {name} as a dashed black line.",
            )
        )
    return found
