"""The parts of a report that only the owner may see: they are made with the truth."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..arrays import Array
from ..data import stacked_outputs, without_labels
from ..errors import InputError
from ..evaluate import AUDIT_HEADER, Audit
from ..ledger import Ledger, Remaining
from ..promise import SEVERITIES, Finding, verdict, verdict_in_words
from ..release import Release, digest_outputs
from .comparisons import plot_audit
from .curves import plot_both
from .report_facts import Facts, Floor
from .report_figures import MOST_OUTPUTS, MOST_POINTS, Picture, picture, public_pictures, quantities_table, shown
from .report_html import Child, Html, counted, joined, listed, multiple, number, share, table, tag

# What the person who signs reads first: whether the promise holds, what it is, for whom, and four numbers.


@dataclass(frozen=True)
class Verdict:
    """What the one who signs reads first."""

    state: str
    title: str
    why: str


def verdict_of(facts: Facts, findings: list[Finding]) -> Verdict:
    """What the box says; ``findings`` are those of the certificate and of a ledger."""
    holds = facts.certificate.holds
    state = {"publish": "yes", "publish with care": "with", "do not publish": "no"}[verdict(holds, findings)]
    weak, open_ = ([one for one in findings if one.severity == severity] for severity in ("medium", "low"))
    if state == "no":
        return Verdict(state, verdict_in_words(holds, findings), findings[0].text)
    said = [f"{counted(len(weak), 'point')} to take care of"] if weak else []
    if open_:
        said.append(f"{counted(len(open_), 'question')} that only you can answer")
    return Verdict(state, verdict_in_words(holds, findings), f"Below: {' and '.join(said)}." if said else "")


def verdict_box(facts: Facts, verdict: Verdict) -> list[Html]:
    """The box, and the numbers that matter most."""
    box = tag(
        "section",
        tag("h2", _mark(verdict.state), verdict.title, id="verdict"),
        tag("p", _not_kept(verdict), promise(facts), class_="promise"),
        tag("p", _for_whom(facts)),
        *([tag("p", tag("strong", verdict.why))] if verdict.why else []),
        class_=f"verdict {verdict.state}",
        aria_labelledby="verdict",
    )
    return [box, tag("dl", *_tiles(facts), class_="tiles")]


def _not_kept(verdict: Verdict) -> Html:
    return tag("strong", "What was to be promised, and is not kept: ") if verdict.state == "no" else Html("")


def promise(facts: Facts) -> str:
    """The promise in one sentence."""
    parts = [_known(facts, floor) for floor in facts.floors]
    sentence = f"No reader can know {'; nor '.join(parts)}"
    if facts.design.guarantee == "joint":
        sentence += ", nor any total, average or difference of these values better than allowed"
    return f"{sentence}."


def _known(facts: Facts, floor: Floor) -> str:
    how = f"{floor.output} better than {floor.words}"
    if floor.output in facts.quantities:
        return how
    cover = facts.design.cover
    if cover == "everywhere":
        return f"{how}, anywhere"
    if facts.design.region.points is not None:
        return f"{how} at {floor.where}"
    return f"{how} {'at any row of the data' if cover == 'rows' else 'anywhere'} where {floor.where}"


def _for_whom(facts: Facts) -> str:
    priors = len(facts.design.priors)
    model = "the model named below" if priors == 1 else f"any of the {priors} models named below"
    return (
        f"For whom: every reader who holds {model} and knows everything else: the inputs, how the noise was made and "
        "all published values. Only the true values and the noise that was drawn are unknown to them."
    )


def _mark(state: str) -> str:
    return {"yes": "✓ ", "with": "✓ ", "no": "✗ "}[state]


def _tiles(facts: Facts) -> list[Html]:
    certificate = facts.certificate
    floor = facts.floors[0]
    floors = floor.words.split(",")[0] if len(facts.floors) == 1 else counted(len(facts.floors), "floor")
    inside, outside = (_typical(facts, where) for where in ("inside", "outside"))
    return [
        _tile("the promised floor", floors, f"units of {listed([one.output for one in facts.floors], 3)}"),
        _tile("rows inside the region", f"{facts.rows_inside:,}", f"of {facts.rows:,} published"),
        _tile("closest any reader gets", multiple(certificate.floor_ratio), f"at {facts.worst_place}"),
        _tile(
            "typical noise on a row inside",
            inside,
            f"outside: {outside}",
        ),
    ]


def _typical(facts: Facts, where: str) -> str:
    """The typical noise on the first output."""
    found = next((blur for blur in facts.blurs if where in blur.label), None)
    return "no rows" if found is None else f"± {number(found.typical)}"


def _tile(label: str, value: str, more: str) -> Html:
    return tag("div", tag("dt", label), tag("dd", value, tag("small", more)))


# The certificate as a table in which every field is explained in a sentence.

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


# The parts of a report that everybody may read. They are made from ``Facts``, which never saw y.


def protected_section(facts: Facts) -> list[Html]:
    """The region in words, the rows in it, and the floor."""
    rows = []
    for floor in facts.floors:
        where = floor.where or "one quantity, without inputs"
        state = "published with noise" if floor.output in facts.released else "never published"
        rows.append([floor.output, where, floor.words, state])
    allowed = facts.design.tolerance.in_words(facts.design.inputs.outputs.names)
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
    sample = (
        ""
        if len(facts.design.representatives) >= facts.rows
        else f", from a sample of {len(facts.design.representatives):,} rows"
    )
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
    rounding = ", ".join(
        f"{name} to multiples of {number(step)}"
        for name, step in zip(design.inputs.outputs, steps, strict=False)
        if name in facts.released
    )
    never = [name for name in design.inputs.outputs if name not in facts.released]
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


def pitfalls_section(findings: list[Finding]) -> list[Html]:
    """Points to settle, each with its severity and its remedy."""
    points = [
        tag(
            "li",
            tag("h3", tag("span", SEVERITIES[one.severity][0], class_=f"chip {one.severity}"), tag("span", one.title)),
            tag("p", one.text),
            *([tag("p", tag("strong", "What to do: "), one.remedy)] if one.remedy else []),
            class_=f"is-{one.severity}",
        )
        for one in findings
    ]
    used = [severity for severity in SEVERITIES if any(one.severity == severity for one in findings)]
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


# What a ledger says about all releases together, for a report. A ledger holds no y.


@dataclass(frozen=True, eq=False)
class Account:
    """A ledger as the report sees it; ``recorded``: the release of the report is in it."""

    name: str
    head: str
    releases: int
    recorded: bool
    torn: bool
    remaining: Remaining

    @classmethod
    def of(cls, ledger: Any, release: Release) -> Account:
        book = ledger
        if isinstance(ledger, (str, os.PathLike)):
            if not os.path.isfile(ledger):
                raise InputError(f"ledger is {str(ledger)!r}, which is not a file; give one that sf.Ledger has made.")
            book = Ledger(ledger)
        if not isinstance(book, Ledger):
            raise InputError(f"ledger is {str(ledger)[:60]!r}; give a sf.Ledger, or the name of its file.")
        chain = book.verify()
        if not chain.entries:
            raise InputError(f"ledger {os.path.basename(book.path)!r} has no releases yet; leave it out.")
        digest = digest_outputs(np.asarray(release.outputs))
        recorded = any(entry.body["record"]["outputs_digest"] == digest for entry in chain.entries)
        name = os.path.basename(os.fspath(book.path))
        return cls(name, chain.head, len(chain.entries), recorded, chain.torn is not None, book.remaining())

    def findings(self) -> list[Finding]:
        """What is wrong with the accounting."""
        found = []
        if not self.remaining.holds:
            found.append(
                Finding(
                    "broken-together",
                    "high",
                    f"All releases together break a promise: the ledger {self.name} has "
                    f"{counted(self.releases, 'release')}; put together, readers know more than was promised.",
                    "Publish nothing more about these values; the promise cannot be mended.",
                )
            )
        if not self.recorded:
            found.append(
                Finding(
                    "not-in-the-ledger",
                    "high",
                    "This release is not in the ledger. A ledger accounts only for what it was told. One release "
                    "beside it, and its promises are void.",
                    "Write it down with ledger.record(release), and read what is left; or do not publish it.",
                )
            )
        return found


def ledger_section(account: Account) -> list[Html]:
    """What all releases have used, in a table and a picture."""
    rows = []
    for one in account.remaining.promises:
        found = one.certificate
        rows.append(
            [
                f"{listed(one.promise.layout.outputs, 4)}: {one.promise.design.region.in_words(found.columns)}",
                "yes" if found.holds else "NO",
                share(max(one.left, 0.0)),
                f"± {number(found.worst_std)} at {found.worst_place}; floor ± {number(found.worst_floor)}",
            ]
        )

    def draw() -> Figure:
        figure = account.remaining.plot().figure
        assert isinstance(figure, Figure)
        return figure

    alt = f"Bars: the share of each promise that is used after each of {counted(account.releases, 'release')}."
    drawn = picture(draw, "ledger", alt, "How much of each promise was used after each release; 100 % is all of it.")
    return [
        tag("h2", "All releases together"),
        tag(
            "p",
            f"The ledger {account.name} accounts for {counted(account.releases, 'release')} of these values; this one "
            f"is {'among them' if account.recorded else 'NOT among them'}. "
            + (
                "The promise is kept for all of them together, as long as nothing is published beside the ledger."
                if account.remaining.holds and account.recorded
                else "NOT everything that was promised is kept by all that is published."
            ),
        ),
        table("Promises of the ledger", ["Promise about", "Kept", "Left", "Closest to the floor"], rows, numbers=(2,)),
        *shown(drawn),
        tag("p", "Head of the ledger: ", tag("code", account.head)),
        *([tag("p", "An interrupted write is at its end; it counts for nothing.")] if account.torn else []),
    ]


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
    header = [name.capitalize() for name in AUDIT_HEADER]
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
    published, inside = np.asarray(release.outputs), design.region.contains_for_any_output(rows)
    found = []
    for name in facts.released:
        own = design.inputs.rows_about(name)
        plain = rows[own][:, : len(facts.columns)]
        off = release.predict(plain, name).mean - y[own]
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
        own = rows.rows_about(name)
        order = own[np.argsort(rows.values[own, 0], kind="stable")]
        truth = (rows.values[order, 0], y[order])
        found.append(
            picture(
                lambda truth=truth, of=name: plot_both(facts.release, truth, of=of),  # type: ignore[misc]
                f"t{place + 1}",
                f"The published values of {name}, what readers conclude, and the truth as a dashed line.",
                f"As above, with the true values of {name} as a dashed black line.",
            )
        )
    return found
