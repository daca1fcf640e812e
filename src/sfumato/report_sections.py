"""The parts of a report that everybody may read. They are made from ``Facts``, which never saw y."""

from __future__ import annotations

import shlex

from .report_facts import Facts
from .report_figures import public_pictures, quantities_table, shown
from .report_html import Child, Html, counted, joined, listed, number, share, table, tag
from .report_pitfalls import SEVERITIES, Pitfall


def protected_section(facts: Facts) -> list[Html]:
    """The region in words, the rows in it, and the floor."""
    rows = []
    for floor in facts.floors:
        where = floor.where or "one quantity, without inputs"
        state = "published with noise" if floor.output in facts.released else "never published"
        rows.append([floor.output, where, floor.words, state])
    allowed = facts.design.tolerance.in_words(facts.design.inputs.outputs)
    outside = facts.rows - facts.rows_inside
    return [
        tag("h2", "What is protected"),
        table("Protected outputs", ["Output", "Sensitive where", "Floor (one standard deviation)", "Itself"], rows),
        tag(
            "p",
            f"{counted(facts.rows_inside, 'row')} of {facts.rows:,} have inputs in the region, {outside:,} do not. "
            + _free(facts)
            + f"What was asked for: {allowed}.",
        ),
        tag("p", *_floor_explained(facts)),
    ]


def _free(facts: Facts) -> str:
    if not facts.free_columns:
        return ""
    return f"The region says nothing of {listed(facts.free_columns)}: combinations as in the data are covered. "


def _floor_explained(facts: Facts) -> list[Child]:
    floor = facts.floors[0]
    if not floor.low > 0:
        return ["The floor follows from the tolerance that was given."]
    return [
        f"A floor of ± {number(floor.low)} means: a reader’s best guess of {floor.output} misses the true value by "
        f"more than {number(floor.low)} about one time in three, however clever the reader is. Floors are in the units "
        "of the data."
    ]


def learn_section(facts: Facts) -> list[Html]:
    """Pictures of what readers see and of what they cannot."""
    quantities = quantities_table(facts)
    header = ["Quantity", "Known before to", "Known now to", "Floor"]
    return [
        tag("h2", "What readers can and cannot learn"),
        *shown(*public_pictures(facts)),
        *([table("Quantities without inputs", header, quantities, numbers=(1, 2))] if quantities else []),
    ]


def worst_section(facts: Facts) -> list[Html]:
    """The worst place in a paragraph."""
    found = facts.certificate
    kept = found.worst_std / facts.worst_prior if facts.worst_prior > 0 else float("nan")
    return [
        tag("h2", "The worst place"),
        tag(
            "p",
            joined(
                "Readers come closest to the floor at ",
                tag("strong", facts.worst_place),
                f". There they know the true value to within ± {number(found.worst_std)}; the floor is "
                f"± {number(found.worst_floor)}. Before the release, from the model alone, it was "
                f"± {number(facts.worst_prior)}: {share(kept)} of that uncertainty stays. The search looked at "
                f"{found.checked:,} inputs of the region.",
            ),
        ),
    ]


def cost_section(facts: Facts) -> list[Html]:
    """How much noise was needed, where, and how far it is from the least."""
    found = facts.certificate
    rows = [
        [
            blur.label,
            f"{blur.rows:,}",
            f"± {number(blur.typical)}",
            f"± {number(blur.largest)}",
            f"{number(blur.typical / blur.prior, 3)} ×" if blur.prior > 0 else "–",
        ]
        for blur in facts.blurs
    ]
    sample = "" if len(facts.design.lookout) >= facts.rows else f", from a sample of {len(facts.design.lookout):,} rows"
    saved = "How far that is from the least possible is not known"
    if found.gap == found.gap:
        saved = f"At most {share(max(found.gap, 0.0))} of it could be saved if this were the only promise to keep"
    header = ["Rows", "Number", "Typical noise", "Largest", "Of the natural spread"]
    return [
        tag("h2", "What it costs"),
        table(
            f"Noise that was added{sample}; the natural spread is the model’s standard deviation",
            header,
            rows,
            numbers=(1, 2, 3, 4),
        ),
        tag(
            "p",
            f"{saved}; {share(found.spill)} of the noise falls on rows outside the region, because values next to it "
            "tell about those inside.",
        ),
    ]


def published_section(facts: Facts) -> list[Html]:
    """What is in the release, and what is not."""
    design, release = facts.design, facts.release
    steps = release.resolution if isinstance(release.resolution, tuple) else (release.resolution,)
    names = design.inputs.outputs or facts.released
    rounding = ", ".join(
        f"{name} to multiples of {number(step)}"
        for name, step in zip(names, steps, strict=False)
        if name in facts.released
    )
    never = [name for name in design.inputs.outputs or () if name not in facts.released]
    hidden = [
        tag("li", f"the true values of {listed(facts.released)}"),
        tag("li", "the noise that was drawn, and the key that it came from"),
        *([tag("li", f"{listed(never)}: only what it is, never its value")] if never else []),
    ]
    return [
        tag("h2", "What is published, and what is not"),
        tag(
            "div",
            tag(
                "div",
                tag("h3", "In the release"),
                tag(
                    "ul",
                    tag("li", f"{counted(facts.rows, 'row')}"),
                    tag("li", f"inputs as they are: {listed(facts.columns)}"),
                    tag("li", f"with noise, and rounded: {rounding}"),
                    tag("li", f"the model: {facts.certificate.prior}"),
                    tag("li", "how the noise was made (its covariance), the region, the promise and the certificate"),
                ),
            ),
            tag("div", tag("h3", "Not in the release"), tag("ul", *hidden)),
            class_="columns",
        ),
    ]


def pitfalls_section(pitfalls: list[Pitfall]) -> list[Html]:
    """Points to settle, each with its severity and its remedy."""
    points = [
        tag(
            "li",
            tag("h3", tag("span", SEVERITIES[one.severity][0], class_=f"chip {one.severity}"), tag("span", one.title)),
            tag("p", one.why),
            tag("p", tag("strong", "What to do: "), one.remedy),
            class_=f"is-{one.severity}",
        )
        for one in pitfalls
    ]
    used = [severity for severity in SEVERITIES if any(one.severity == severity for one in pitfalls)]
    key = "; ".join(f"“{SEVERITIES[severity][0]}”: {SEVERITIES[severity][1]}" for severity in used)
    return [
        tag("h2", "Before you publish"),
        tag("p", f"These points apply to this release. {key[:1].upper() + key[1:]}."),
        tag("ul", *points, class_="points"),
    ]


def verify_section(file: str | None, sha256: str | None, ledger: str | None) -> list[Html]:
    """Exact commands; ``file`` and ``ledger`` are names without folders."""
    name = shlex.quote(file or "RELEASE.sfumato")
    lines = [f"sfumato certify {name}"]
    if sha256 is not None:
        lines.insert(0, f"sha256sum {name}")
    if ledger is not None:
        lines.append(f"sfumato ledger verify {shlex.quote(ledger)}")
    told = (
        [tag("p", "SHA-256 of the release: ", tag("code", sha256))]
        if sha256 is not None
        else [tag("p", "The release was not yet saved when this report was made, so it has no checksum here.")]
    )
    expected = "The first must show the checksum below, the next" if sha256 is not None else "The first"
    return [
        tag("h2", "How to check this report"),
        tag(
            "p",
            "Anyone who has the release can do it, without trusting its owner. "
            f"{expected} must end in “The promise holds.”",
        ),
        tag("pre", tag("code", "\n".join(lines))),
        *told,
    ]
