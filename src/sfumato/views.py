"""Pictures that values can be asked for, and how values look in a notebook.

How pictures look is up to ``show``, a room above all values. The package itself, the one place that knows every room,
says where pictures come from; so no value imports its own picture, and imports between rooms go one way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from types import ModuleType

_source: list[Callable[[], ModuleType]] = []


def pictures_come_from(source: Callable[[], ModuleType]) -> None:
    """Say which module draws; it is asked for when the first picture is."""
    _source[:] = [source]


def pictures() -> ModuleType:
    """The module that draws."""
    return _source[0]()


#: Paper and ink of a box, by the verdict in it: as in the report.
_COLOURS = {
    "publish": ("#e7f5ec", "#0b6b3a"),
    "publish with care": ("#fff3dc", "#7a4b00"),
    "do not publish": ("#fdecec", "#a3121f"),
}
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def boxed_table(verdict: str, title: str, heading: str, rows: Sequence[tuple[str, str]]) -> str:
    """HTML for a notebook: a box with a title and a heading, coloured by the verdict, and a table of labels below.

    Guarantee: all texts stay texts, whatever is in them.
    """
    paper, ink = _COLOURS[verdict]
    above = f"<div>{escape(title)}</div>" if title else ""
    box = f"background:{paper};color:{ink};border-left:6px solid {ink};padding:8px 12px;max-width:60em"
    cells = (f'<th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(value)}</td>' for name, value in rows)
    lines = "".join(f"<tr>{line}</tr>" for line in cells)
    return (
        f'<div style="{box}">{above}<strong>{escape(heading)}</strong></div>'
        f'<table style="max-width:60em">{lines}</table>'
    )
