"""What the person who signs reads first: whether the promise holds, what it is, for whom, and four numbers."""

from __future__ import annotations

from dataclasses import dataclass

from .report_facts import Facts, Floor
from .report_html import Html, counted, listed, multiple, number, tag
from .report_pitfalls import Pitfall


@dataclass(frozen=True)
class Verdict:
    """What the one who signs reads first."""

    state: str
    title: str
    why: str


def verdict_of(facts: Facts, pitfalls: list[Pitfall]) -> Verdict:
    """ "yes": the promise holds; "with": it does, but something weakens it; "no": do not publish."""
    broken = [one for one in pitfalls if one.severity == "breaks"]
    weak = [one for one in pitfalls if one.severity == "weakens"]
    open_ = [one for one in pitfalls if one.severity == "ask"]
    if not facts.certificate.holds:
        return Verdict("no", "Do not publish: the promise does not hold", broken[0].why)
    if broken:
        return Verdict("no", "Do not publish: the promise is void", f"{broken[0].title}. {broken[0].why}")
    said = [f"{counted(len(weak), 'point')} that {'weakens' if len(weak) == 1 else 'weaken'} it"] if weak else []
    if open_:
        said.append(f"{counted(len(open_), 'question')} that only you can answer")
    return Verdict("with" if weak else "yes", "The promise holds", f"Below: {' and '.join(said)}." if said else "")


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
