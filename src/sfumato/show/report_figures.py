"""The pictures of a report, as SVG to be put into the page: deterministic, without dates, names of files or addresses.

The pictures of a public report are made from ``Facts``, that is from a release and a ledger. ``truth_pictures`` and
``audit_picture`` are for the owner's eyes.
"""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..arrays import Array
from ..evaluate import Audit
from ..promise import NOT_ANY_RECORD
from ..text import counted
from .comparisons import plot_audit
from .curves import plot_both, plot_floor_along
from .maps import plot_std_map
from .report_facts import Account, Facts, shortened
from .view import NARROW, View, legend_of_figure, set_to

#: Of how many outputs pictures are shown, along how many columns, and of how many rows single points.
MOST_OUTPUTS, MOST_COLUMNS, MOST_POINTS = 6, 3, 1500

#: Longer texts are cut in pictures; the page has them in full.
LONGEST_TEXT, LONGEST_REGION = 90, 32

_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "sfumato",
    # a name with dollar signs is a name, not a formula
    "text.parse_math": False,
    "font.size": 10.0,
}
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<defs>\s*</defs>|<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Picture:
    """The inside of an SVG, with what it shows for those who cannot see it (``alt``), and a line under it."""

    svg: Markup
    view_box: str
    alt: str
    caption: str


def picture(draw: Callable[[], Figure], name: str, alt: str, caption: str) -> Picture:
    """What ``draw`` makes; ``name`` is its own within the page.

    Matplotlib's warnings about letters that its font lacks are not shown.
    """
    with set_to(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure = draw()
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            said = shortened(text.get_text())
            text.set_text(said if len(said) <= LONGEST_TEXT else said[: LONGEST_TEXT - 1] + "…")
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Picture(*_for_page(written.getvalue(), name), alt, caption)


def _for_page(svg: str, name: str) -> tuple[Markup, str]:
    """An SVG file as a part of a page: without its head and its addresses, and with names of its own; its view box."""
    opening, _, rest = _DROPPED.sub("", svg[svg.index("<svg") :]).partition(">")
    box = re.search(r'viewBox="([0-9. ]+)"', opening)
    assert box is not None
    rest = re.sub(r'(?<=[\s"])xlink:href="', 'href="', rest)
    rest = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', rest)
    rest = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', rest)
    rest = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", rest)
    rest = re.sub(r"[ \t]*\n\s*", "\n", rest)
    # Matplotlib has escaped the texts in it, and the picture shows what cannot be seen
    return Markup(rest.strip().removesuffix("</svg>")), box.group(1)


def public_pictures(facts: Facts) -> list[Picture]:
    """What readers can and cannot learn of each output; drawn from the release alone."""
    names = [name for name in facts.design.inputs.outputs if name not in facts.quantities]
    keyed = enumerate(names[:MOST_OUTPUTS], start=1)
    return [made for place, name in keyed for made in _pictures_of(facts, name, f"f{place}")]


def _pictures_of(facts: Facts, name: str, key: str) -> list[Picture]:
    columns, said, region = facts.columns, _what_is_seen(facts, name), _region_label(facts, name)
    if len(columns) == 1 and facts.rows <= MOST_POINTS:
        return [
            picture(
                lambda: plot_both(facts.release, of=name, region_label=region),
                key,
                f"Two panels over {columns[0]}. Above, the published values of {name} and what readers conclude from "
                f"them, with a 95 % band. Below, how well readers know {name} and the promised floor. {said}",
                f"Above: what is published of {name}, and what the best reader with this model concludes. Below: how "
                f"well that reader can know it. {said}",
            )
        ]
    made, scales = [], View(facts.design, name).scales
    if len(scales) == len(columns) == 2:
        made.append(
            picture(
                lambda: _map(facts, name, region),
                f"{key}m",
                f"A map over {columns[0]} and {columns[1]}: how well readers know {name}, with the rows and the border "
                f"of the region. {said}",
                f"How well the best reader with this model can know {name}, over both inputs; light: they know little.",
            )
        )
    made.append(
        picture(
            lambda: _along(facts, name),
            key,
            f"How well readers know {name} along {' and '.join(scales[:MOST_COLUMNS])}, through the worst place, with "
            f"the promised floor. {said}",
            f"How well the best reader with this model can know {name} on lines through the worst place "
            f"({facts.certificate.worst_place}), one input at a time. {said}",
        )
    )
    return made


def _along(facts: Facts, of: str) -> Figure:
    """The floor along each column, one panel below the other; the region is described in the page."""
    columns = View(facts.design, of).scales[:MOST_COLUMNS]
    figure = Figure(figsize=(NARROW, 0.6 + 2.5 * len(columns)), layout="constrained")
    panels = figure.subplots(len(columns), 1, squeeze=False).ravel()
    outputs, worst = facts.design.inputs.outputs, facts.certificate.worst_input
    # the worst place may be one of another output: then it is no mark here
    at = None if outputs.number(of) == outputs.numbers(worst[None])[0] else worst[: len(facts.columns)]
    for column, panel in zip(columns, panels, strict=True):
        plot_floor_along(facts.release, column, at, ax=panel, of=of, region_label="region")
        panel.get_legend().remove()
    legend_of_figure(figure, list(panels), "upper left", columns=3)
    return figure


def _map(facts: Facts, of: str, region_label: str) -> Figure:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    plot_std_map(facts.release, ax=figure.subplots(), of=of, region_label=region_label)
    return figure


def _region_label(facts: Facts, of: str) -> str:
    """What pictures call the region: its description, if that is short; the page has it in full."""
    words = View(facts.design, of).region_in_words
    return words if len(shortened(words)) <= LONGEST_REGION else "region"


def _what_is_seen(facts: Facts, name: str) -> str:
    floor = facts.floor_of(name)
    if floor is None:
        return f"Nothing is promised about {name} itself."
    if facts.release.unsafe:
        return "The noise came from a known seed: anyone can take it off, and then knows the values themselves."
    if not facts.certificate.holds:
        return "The promise does not hold: readers get below the floor."
    if not facts.design.protects_function:
        return f"The curve is the typical value of {name}, of which nothing is promised: the promise is about records."
    between = " at the rows" if facts.design.cover == "rows" else ""
    typical = f" This is about {NOT_ANY_RECORD}." if facts.has_errors else ""
    return f"In the region ({floor.where}) readers stay above the floor of {floor.words}{between}.{typical}"


def account_picture(account: Account) -> Picture:
    """What releases have used of each promise of a ledger."""

    def draw() -> Figure:
        figure = account.remaining.plot().figure
        assert isinstance(figure, Figure)
        return figure

    alt = f"Bars: the share of each promise that is used after each of {counted(account.releases, 'release')}."
    return picture(draw, "ledger", alt, "How much of each promise was used after each release; 100 % is all of it.")


def truth_pictures(facts: Facts, y: Array) -> list[Picture]:
    """For the owner: the picture of each output with its true values; for one input, and not too many rows."""
    if len(facts.columns) != 1 or facts.rows > MOST_POINTS:
        return []
    rows, found = facts.design.inputs, []
    for place, name in enumerate(facts.released[:MOST_OUTPUTS]):
        own = rows.rows_about(name)
        order = own[rows.values[own, 0].argsort(kind="stable")]
        truth = (rows.values[order, 0], y[order])
        found.append(
            picture(
                functools.partial(plot_both, facts.release, truth, of=name, region_label=_region_label(facts, name)),
                f"t{place + 1}",
                f"The published values of {name}, what readers conclude, and the truth as a dashed line.",
                f"As above, with the true values of {name} as a dashed black line.",
            )
        )
    return found


def audit_picture(found: Audit) -> Picture:
    """For the owner: what adversaries achieved."""
    alt = f"One line for each adversary, in multiples of the promised floor. {found.sentence}"
    caption = "What each adversary achieves; left of 1 is below the floor."
    return picture(lambda: plot_audit(found), "audit", alt, caption)
