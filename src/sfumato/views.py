"""Pictures that values can be asked for, and how values look in a notebook.

How pictures look is up to ``show``, a room above all values. The package itself, the one place that knows every room,
says where pictures come from; so no value imports its own picture, and imports between rooms go one way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape as in_html
from types import ModuleType

from .text import shown

_source: list[Callable[[], ModuleType]] = []


def pictures_come_from(source: Callable[[], ModuleType]) -> None:
    """Say which module draws; it is asked for when the first picture is."""
    _source[:] = [source]


def pictures() -> ModuleType:
    """The module that draws."""
    return _source[0]()


#: Paper, ink and edge of a box by the verdict in it, as in the report; without one those of the notebook itself.
_COLOURS = {
    "publish": ("#e7f5ec", "#0b6b3a", "#0b6b3a"),
    "publish with care": ("#fff3dc", "#7a4b00", "#7a4b00"),
    "do not publish": ("#fdecec", "#a3121f", "#a3121f"),
    "": ("rgba(128,128,128,0.13)", "inherit", "#8a7260"),
}
_WIDE = "max-width:60em"
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"
_LABEL = f"{_CELL};min-width:11em"
_NUMBER = "text-align:right;vertical-align:top;padding:2px 12px 2px 0;white-space:nowrap"


def boxed_table(
    verdict: str,
    title: str,
    heading: str,
    rows: Sequence[Sequence[str]],
    header: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> str:
    """HTML for a notebook: a box with a title and a heading, coloured by the verdict, a table and notes below.

    Without a ``header`` each row is a label and a text; with one, the cells after the first stand to the right, as
    numbers do. ``verdict`` is "" where there is none.

    Guarantee: all texts stay texts, whatever is in them.
    """
    paper, ink, edge = _COLOURS[verdict]
    box = f"background:{paper};color:{ink};border-left:6px solid {edge};padding:8px 12px;{_WIDE}"
    above = _tag("div", "", _text(title)) if title else ""
    label, cell = (_CELL, _NUMBER) if header else (_LABEL, _CELL)
    head = _tag("tr", "", _cells("th", header[:1], label) + _cells("th", header[1:], cell)) if header else ""
    lines = [_tag("tr", "", _cells("th", row[:1], label) + _cells("td", row[1:], cell)) for row in rows]
    wide = f"{_WIDE};overflow-x:auto"
    parts = [
        _tag("div", box, above + _tag("strong", "", _text(heading))),
        _tag("div", wide, _tag("table", _WIDE, head + "".join(lines))) if rows else "",
        *(_tag("p", f"{_WIDE};margin:4px 0;font-size:90%", _text(note)) for note in notes),
    ]
    return "".join(parts)


def _text(text: str) -> str:
    """HTML that shows ``text``."""
    return in_html(shown(text))


def _cells(tag: str, texts: Sequence[str], style: str) -> str:
    return "".join(_tag(tag, style, _text(text)) for text in texts)


def _tag(tag: str, style: str, inside: str) -> str:
    """An element; ``inside`` is HTML."""
    return f'<{tag} style="{style}">{inside}</{tag}>' if style else f"<{tag}>{inside}</{tag}>"
