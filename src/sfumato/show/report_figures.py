"""The pictures of a report, as SVG to be put into the page: deterministic, without dates, names of files or addresses.

The pictures of the public report are made from a ``Facts``, that is from a release; those of the owner are made in
report_owner.py. Nothing here receives y.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from .curves import plot_both, plot_floor_along
from .maps import plot_std_map
from .report_facts import Facts
from .report_html import Html, clean, escaped, number, shortened, tag

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
    """A figure, with what it shows for those who cannot see it, and a line under it."""

    svg: Html
    caption: str


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib's settings for pictures in a page; its complaints about odd letters are of no use to anybody."""
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def picture(draw: Callable[[], Figure], name: str, alt: str, caption: str) -> Picture:
    """What ``draw`` makes; ``name`` is its own within the page."""
    with drawing():
        figure = draw()
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            said = shortened(text.get_text())
            if said.startswith("region: ") and len(said) > LONGEST_REGION:
                said = "region"
            text.set_text(said if len(said) <= LONGEST_TEXT else said[: LONGEST_TEXT - 1] + "…")
        written = io.StringIO()
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Picture(_for_page(written.getvalue(), name, alt), caption)


def _for_page(svg: str, name: str, alt: str) -> Html:
    """An SVG file as a part of a page: without its head and its addresses, and with names of its own."""
    body = svg[svg.index("<svg") :]
    body = _DROPPED.sub("", body)
    opening, _, rest = body.partition(">")
    box = re.search(r'viewBox="([0-9. ]+)"', opening)
    assert box is not None
    rest = re.sub(r'(?<=[\s"])xlink:href="', 'href="', rest)
    rest = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', rest)
    rest = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', rest)
    rest = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", rest)
    rest = re.sub(r"[ \t]*\n\s*", "\n", rest)
    head = f'<svg viewBox="{box.group(1)}" role="img" aria-label="{escaped(alt)}" focusable="false">'
    return Html(head + clean(rest.strip()))


def shown(*pictures: Picture) -> list[Html]:
    return [tag("figure", one.svg, tag("figcaption", one.caption)) for one in pictures]


def public_pictures(facts: Facts) -> list[Picture]:
    """What readers can and cannot learn of each output; drawn from the release alone."""
    found = []
    names = [name for name in facts.design.inputs.outputs if name not in facts.quantities]
    for place, name in enumerate(names[:MOST_OUTPUTS]):
        found += _pictures_of(facts, name, f"f{place + 1}")
    return found


def _pictures_of(facts: Facts, name: str, key: str) -> list[Picture]:
    release, columns = facts.release, facts.columns
    said = _what_is_seen(facts, name)
    if len(columns) == 1 and facts.rows <= MOST_POINTS:
        return [
            picture(
                lambda: plot_both(release, of=name),
                key,
                f"Two panels over {columns[0]}. Above, the published values of {name} and what readers conclude from "
                f"them, with a 95 % band. Below, how well readers know {name} and the promised floor. {said}",
                f"Above: what is published of {name}, and what the best possible reader concludes. Below: how well "
                f"that reader can know it. {said}",
            )
        ]
    made = []
    if len(columns) == 2:
        made.append(
            picture(
                lambda: _map(facts, name),
                f"{key}m",
                f"A map over {columns[0]} and {columns[1]}: how well readers know {name}, with the rows and the border "
                f"of the region. {said}",
                f"How well the best possible reader can know {name}, over both inputs; light: they know little.",
            )
        )
    made.append(
        picture(
            lambda: _along(facts, name),
            key,
            f"How well readers know {name} along {' and '.join(columns[:MOST_COLUMNS])}, through the worst place, with "
            f"the promised floor. {said}",
            f"How well the best possible reader can know {name} on lines through the worst place "
            f"({facts.worst_place}), one input at a time. {said}",
        )
    )
    return made


def _along(facts: Facts, of: str) -> Figure:
    """The floor along each column, one panel below the other."""
    columns = facts.columns[:MOST_COLUMNS]
    figure = Figure(figsize=(7.2, 0.6 + 2.5 * len(columns)), layout="constrained")
    panels = figure.subplots(len(columns), 1, squeeze=False).ravel()
    outputs, worst = facts.design.inputs.outputs, facts.certificate.worst_input
    # the worst place may be one of another output: then it is no mark here
    at = None if outputs.number(of) == outputs.numbers(worst[None])[0] else worst[: len(facts.columns)]
    for place, panel in enumerate(panels):
        plot_floor_along(facts.release, place, at, ax=panel, of=of)
    _one_legend(figure, list(panels))
    return figure


def _map(facts: Facts, of: str) -> Figure:
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    plot_std_map(facts.release, ax=figure.subplots(), of=of)
    return figure


def _one_legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend for all panels, above them; the region is described in the page."""
    entries: dict[str, Artist] = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        short = ["region" if label.startswith("region:") else label for label in labels]
        entries |= dict(zip(short, handles, strict=True))
        own = panel.get_legend()
        if own is not None:
            own.remove()
    how: Any = {"loc": "outside upper left", "ncol": 3, "frameon": False, "fontsize": 8.5}
    figure.legend(list(entries.values()), list(entries), **how)


def _what_is_seen(facts: Facts, name: str) -> str:
    floor = next((one for one in facts.floors if one.output == name), None)
    if floor is None:
        return f"Nothing is promised about {name} itself."
    certificate = facts.certificate
    if facts.release.unsafe:
        return "The noise came from a known seed: anyone can take it off, and then knows the values themselves."
    if not certificate.holds:
        return "The promise does not hold: readers get below the floor."
    between = " at the rows" if facts.design.cover == "rows" else ""
    return f"In the region ({floor.where}) readers stay above the floor of {floor.words}{between}."


def quantities_table(facts: Facts) -> list[tuple[str, str, str, str]]:
    """Of each quantity without inputs: how well it was known, how well it is known now, and the floor."""
    release, found = facts.release, []
    outputs = facts.design.inputs.outputs
    for name in facts.quantities:
        seen = release.predict(None, output=name)
        kernel = release.prior.kernel
        number_of = outputs.number(name)
        before = release.prior.variance(outputs.rows(kernel.place(number_of)[None], number_of))
        floor = next((one.words for one in facts.floors if one.output == name), "nothing is promised")
        found.append((name, f"± {number(float(before[0]) ** 0.5)}", f"± {number(float(seen.std[0]))}", floor))
    return found
