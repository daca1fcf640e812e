"""Regions read back from plain trees, which may come from an untrusted file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..data import MemoryInputs
from ..errors import FormatError, InputError
from ..tree_checks import items, matrix, node, number, positive, text, texts, whole
from .by_output import MOST_OUTPUTS, OutputRegion
from .region import MOST_DEPTH, MOST_NODES, Intersection, Points, Region, Union
from .shapes import Ball, Box, Everywhere

#: The entries that each kind of region has in a tree.
_ENTRIES = {
    "box": ("columns", "lower", "upper", "free"),
    "ball": ("centre", "radius"),
    "points": ("columns", "points"),
    "everywhere": (),
    "union": ("members",),
    "intersection": ("members",),
    "outputs": ("parts",),
}

#: A file may name columns of this many characters, and points of this many rows and columns.
_LONGEST_NAME, _MOST_POINTS, _MOST_COLUMNS = 1000, 1_000_000, 10_000


def region_from_tree(tree: object) -> Region:
    """The region that ``Region.to_tree`` wrote; anything else raises ``FormatError``, and no other exception."""
    try:
        return _Reader().region(tree, 1)
    except InputError as error:  # what our own classes refuse is, in a file, damage
        raise FormatError(f"the region is wrong: {error}") from None


@dataclass
class _Reader:
    """Reads one tree and counts its nodes."""

    nodes: int = field(default=0, init=False)

    def region(self, tree: object, depth: int) -> Region:
        self.nodes += 1
        if depth > MOST_DEPTH or self.nodes > MOST_NODES:
            raise FormatError(f"the region is nested more than {MOST_DEPTH} deep or has more than {MOST_NODES} parts.")
        kind, entries = node(tree, "region", _ENTRIES)
        if kind in ("union", "intersection"):
            members = [self.region(member, depth + 1) for member in items(entries["members"], "members", least=1)]
            return Union(members) if kind == "union" else Intersection(members)
        if kind == "outputs":
            return self._by_output(entries["parts"], depth)
        return _SHAPES[kind](entries)

    def _by_output(self, listed: object, depth: int) -> Region:
        parts: dict[int, Region] = {}
        for pair in items(listed, "parts", least=1, most=MOST_OUTPUTS):
            given, part = items(pair, "an output and its region", 2, 2)
            output = whole(given, "the number of an output", 0, MOST_OUTPUTS - 1)
            if output in parts:
                raise FormatError(f"the region names output {output} twice.")
            parts[output] = self.region(part, depth + 1)
        return OutputRegion(parts)


def _box(entries: dict[str, Any]) -> Region:
    lower, upper = (_bounds(entries[side], f"{side} bounds") for side in ("lower", "upper"))
    columns, free = _columns(entries), text(entries["free"], "free", longest=20)
    if columns is None:
        return Box(lower, upper, free=free)
    if len(columns) != len(lower) or len(columns) != len(upper):
        raise FormatError(f"the box has {len(columns)} columns, {len(lower)} lower and {len(upper)} upper bounds.")
    return Box(dict(zip(columns, zip(lower, upper, strict=True), strict=True)), free=free)


def _bounds(values: object, what: str) -> list[float | None]:
    return [None if value is None else number(value, what) for value in items(values, what, least=1)]


def _ball(entries: dict[str, Any]) -> Region:
    centre = [number(value, "centre") for value in items(entries["centre"], "centre", least=1)]
    return Ball(centre, positive(entries["radius"], "radius"))


def _points(entries: dict[str, Any]) -> Region:
    values = Points(matrix(entries["points"], "points", _MOST_POINTS, _MOST_COLUMNS)).values
    columns = _columns(entries)
    if columns is not None and len(columns) != values.shape[1]:
        raise FormatError(f"the points have {values.shape[1]} numbers each, but {len(columns)} columns.")
    return Points(MemoryInputs(values, columns))


def _columns(entries: dict[str, Any]) -> tuple[str, ...] | None:
    columns = entries["columns"]
    return None if columns is None else texts(columns, "columns", _LONGEST_NAME, distinct=True)


_SHAPES = {"box": _box, "ball": _ball, "points": _points, "everywhere": lambda _: Everywhere()}
