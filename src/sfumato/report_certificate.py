"""The certificate as a table in which every field is explained in a sentence."""

from __future__ import annotations

import numpy as np

from .report_facts import Facts
from .report_html import Child, Html, multiple, number, share, table, tag

_STRUCTURES = {"full": "correlated between rows", "diagonal": "independent on every row"}

_GUARANTEES = {
    "joint": "Each sensitive value is protected, and every total, average and difference of them as well.",
    "pointwise": "Each sensitive value is protected by itself; totals and averages may be known better.",
}

_COVERS = {
    "rows": "The promise is made at the rows of the data inside the region, and nowhere else.",
    "points": "The promise is made at the single inputs that were named.",
    "greedy": "These inputs, for which the noise was designed, stand for the whole region, and all of it is promised.",
    "exchange": "The noise was designed for these inputs, added where the floor was not yet kept; the promise is for "
    "the whole region.",
    "everywhere": "A formula protects every input there is; nothing had to be searched.",
}


def certificate_section(facts: Facts) -> list[Html]:
    """The table, with what the certificate notes under it."""
    return [
        tag("h2", "The certificate", class_="page"),
        tag(
            "p",
            "Computed again for this report, from the published objects alone: no claim of the owner is trusted, and "
            "anyone who has the release can repeat it. Rounding errors are counted against the promise.",
        ),
        table(
            "The fields of the certificate and what they mean",
            ["Field", "Value", "What it means"],
            _rows(facts),
            kind="fields",
        ),
        *_notes(facts),
    ]


def _rows(facts: Facts) -> list[list[Child]]:
    found = facts.certificate
    least = facts.worst_place
    rows: list[list[Child]] = [
        ["Holds", _yes(found.holds), "The promise is kept wherever it was made. Without this nothing is released."],
        ["Promise", found.promise, "The exact wording; f is the true function, s a sensitive input."],
        ["Model", found.prior, "What readers are assumed to believe beforehand. It is published."],
        ["Guarantee", found.guarantee, _GUARANTEES[found.guarantee]],
        [
            "Closest to the floor",
            multiple(found.floor_ratio),
            "The least error of any reader over the floor, in the whole region. At least 1 is needed"
            + (", but here only the rows are promised." if facts.design.cover == "rows" else "."),
        ],
    ]
    if facts.design.cover == "rows":
        kept = multiple(found.promised_ratio)
        rows.append(["Closest where promised", kept, "The same at the rows inside the region, where it was promised."])
    allowed = "at most 100 %" if found.guarantee == "joint" else "not promised here"
    rows += [
        [
            "Tolerance used",
            share(found.joint_ratio),
            f"How much of what may be learnt is learnt, of any weighted combination of sensitive values ({allowed}).",
        ],
        ["Worst input", least, "Where readers come closest to the floor, after a search for it."],
        [
            "Error there",
            f"± {number(found.worst_std, 6)}; floor ± {number(found.worst_floor, 6)}",
            "How well the best reader knows the true value at the worst input, and how well they may.",
        ],
        [
            "Kind of noise",
            _STRUCTURES.get(found.structure, found.structure),
            "Correlated noise hides the same with less of it; independent noise is easier to explain.",
        ],
        ["Total noise", number(found.trace), "The sum of the noise variances of all rows, in squared units."],
        [
            "Least possible",
            number(found.trace_lower),
            "What any noise with this promise needs at least. It is proved, not estimated."
            if found.trace_lower > 0
            else "Not known here: earlier releases have a part in it.",
        ],
        [
            "Gap",
            "not known" if np.isnan(found.gap) else share(max(found.gap, 0.0)),
            "The share of the noise that could be saved at most.",
        ],
        ["Spill", share(found.spill), "The share of the noise that falls on rows outside the region."],
        ["Designed for", f"{found.sensitive:,} inputs ({found.cover})", _COVERS.get(found.cover, "")],
        [
            "Checked at",
            f"{found.checked:,} inputs",
            "Inputs at which the floor was checked, most unseen by the design.",
        ],
        [
            "Round-off",
            number(found.allowance, 2),
            "Rounding error that was given to the reader, to be on the safe side.",
        ],
    ]
    if found.compression > 0:
        cost = share(found.compression)
        rows.append(["Compression", cost, "How much of the noise is there only because the design was compressed."])
    return rows


def _yes(holds: bool) -> Html:
    return tag("strong", "yes" if holds else "NO")


def _notes(facts: Facts) -> list[Html]:
    notes = facts.certificate.notes
    if not notes:
        return []
    said = [tag("li", note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".")) for note in notes]
    return [tag("h3", "Notes on the certificate"), tag("ul", *said)]
