"""Regions read back from plain JSON values, which may come from an untrusted file: everything is checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..data import Inputs, as_inputs
from ..errors import InputError
from .by_output import OutputRegion
from .checks import shown
from .region import MOST_DEPTH, MOST_NODES, Intersection, Points, Region, Union
from .shapes import Ball, Box, Everywhere

_FIELDS = {
    "box": {"columns", "lower", "upper", "free"},
    "ball": {"centre", "radius"},
    "points": {"columns", "points"},
    "everywhere": set(),
    "union": {"members"},
    "intersection": {"members"},
    "outputs": {"parts"},
}


def region_from_tree(tree: object) -> Region:
    """The region that ``Region.to_tree`` wrote; anything else raises ``InputError``, and no other exception."""
    budget = [MOST_NODES]
    return _region(tree, 1, budget)


def _region(tree: object, depth: int, budget: list[int]) -> Region:
    budget[0] -= 1
    if depth > MOST_DEPTH or budget[0] < 0:
        raise InputError(f"the region is nested more than {MOST_DEPTH} deep or has more than {MOST_NODES} parts.")
    if not isinstance(tree, dict) or not isinstance(tree.get("kind"), str) or tree["kind"] not in _FIELDS:
        raise InputError(f"{shown(tree)} is not a region; it needs a kind: {', '.join(_FIELDS)}.")
    kind = tree["kind"]
    fields = {key for key in tree if key != "kind"}
    if fields != _FIELDS[kind]:
        raise InputError(f"a {kind} needs the fields {sorted(_FIELDS[kind])}, but this one has {shown(tree)}.")
    return _READERS[kind](tree, depth, budget)


def _box(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    lower, upper = _list(tree, "lower"), _list(tree, "upper")
    columns, free = _columns(tree), tree["free"]
    for value in (*lower, *upper):
        if value is not None:
            _number(value, "a bound")
    if not isinstance(free, str):
        raise InputError(f"free is {shown(free)}; it must be text.")
    if columns is None:
        return Box(lower, upper, free=free)
    if len(columns) != len(lower) or len(columns) != len(upper):
        raise InputError(f"the box has {len(columns)} columns, {len(lower)} lower and {len(upper)} upper bounds.")
    return Box(dict(zip(columns, zip(lower, upper, strict=True), strict=True)), free=free)


def _ball(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    return Ball([_number(v, "centre") for v in _list(tree, "centre")], _number(tree["radius"], "radius"))


def _points(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    rows, columns = _list(tree, "points"), _columns(tree)
    if not all(isinstance(row, list) and row for row in rows) or len({len(row) for row in rows}) > 1:
        raise InputError(f"points are {shown(rows)}; they must be lists of numbers, all of one length.")
    values = as_inputs([[_number(v, "a point") for v in row] for row in rows], "points").values
    if columns is not None and len(columns) != values.shape[1]:
        raise InputError(f"the points have {values.shape[1]} numbers each, but {len(columns)} columns.")
    return Points(Inputs(values, columns))


def _everywhere(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    return Everywhere()


def _union(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    return Union([_region(member, depth + 1, budget) for member in _list(tree, "members")])


def _intersection(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    return Intersection([_region(member, depth + 1, budget) for member in _list(tree, "members")])


def _outputs(tree: dict[str, Any], depth: int, budget: list[int]) -> Region:
    listed = _list(tree, "parts")
    if not all(isinstance(part, list) and len(part) == 2 and type(part[0]) is int for part in listed):
        raise InputError(f"parts are {shown(listed)}; each must be the number of an output and a region.")
    parts = {part[0]: _region(part[1], depth + 1, budget) for part in listed}
    if len(parts) < len(listed):
        raise InputError("parts name an output twice.")
    return OutputRegion(parts)


_READERS: dict[str, Callable[[dict[str, Any], int, list[int]], Region]] = {
    "box": _box,
    "ball": _ball,
    "points": _points,
    "everywhere": _everywhere,
    "union": _union,
    "intersection": _intersection,
    "outputs": _outputs,
}


def _list(tree: dict[str, Any], name: str) -> list[Any]:
    value = tree[name]
    if not isinstance(value, list) or not value:
        raise InputError(f"{name} is {shown(value)}; it must be a list that is not empty.")
    return value


def _columns(tree: dict[str, Any]) -> tuple[str, ...] | None:
    columns = tree["columns"]
    if columns is None:
        return None
    if (
        not isinstance(columns, list)
        or not all(isinstance(c, str) for c in columns)
        or len(set(columns)) < len(columns)
    ):
        raise InputError(f"columns are {shown(columns)}; they must be null or a list of different names.")
    return tuple(columns)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{name} is {shown(value)}; it must be a number.")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(f"{name} is too large for a number.") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise InputError(f"{name} is {number}; it must be finite.")
    return number
