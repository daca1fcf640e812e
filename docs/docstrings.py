"""For `make docs`: docstrings are written for `help()`, so their tables and examples are turned into Markdown here."""

from __future__ import annotations

import re

import griffe

RULE = re.compile(r"^=+( +=+)+$")


def as_markdown(text: str) -> str:
    """The same docstring, with ``===`` tables as Markdown tables and ``>>>`` examples in fences."""
    made: list[str] = []
    lines = text.splitlines()
    while lines:
        if RULE.match(lines[0]):
            made += _table(lines)
        elif lines[0].startswith(">>>"):
            example = _until_blank(lines)
            made += ["```pycon", *example, "```"]
        else:
            made.append(lines.pop(0))
    return re.sub(r"``(?!`)(.+?)(?<!`)``(?!`)", r"`\1`", "\n".join(made))


def _until_blank(lines: list[str]) -> list[str]:
    taken = []
    while lines and lines[0].strip():
        taken.append(lines.pop(0))
    return taken


def _table(lines: list[str]) -> list[str]:
    """Takes a table off the front of ``lines``: rules above, below and, if it has a head, between."""
    found = _until_blank(lines)
    starts = [match.start() for match in re.finditer(r"=+", found[0])]
    rules = [number for number, line in enumerate(found) if RULE.match(line)]
    rows: list[list[str]] = []
    for number, line in enumerate(found):
        if number in rules:
            continue
        cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])]
        if cells[0] or not rows:
            rows.append(cells)
        else:  # a row that goes on
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells)]
    head = rows.pop(0) if len(rules) > 2 else [""] * len(starts)
    shown = [head, ["---"] * len(starts), *rows]
    return ["", *("| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in shown), ""]


def _escaped(cell: str) -> str:
    """Bars of a cell would end it; those in code do not, and would show a backslash."""
    return cell if "`" in cell else cell.replace("|", "\\|")


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring that is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
