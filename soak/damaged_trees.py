"""Trees (objects, lists, numbers, texts) as a clever forger could damage them."""

from __future__ import annotations

import copy
import random
from typing import Any

JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2.5, 1e308, -1e308, 1e-320, 2**63, "", "nan", "inf", "x" * 100_000, "\x00", "\ud800",
    [], [[]], [1], [None] * 3, {}, {"kind": "rbf"}, {"kind": "box"}, {"kind": []}, {"a": {"a": {"a": 1}}},
    ["age", "age"], [1e308, 1e308], [-1, 0], "zero", "table", "matrix", "kernel", "points", "everywhere", "diagonal",
]  # fmt: skip


def every_place(tree: Any) -> list[tuple[Any, Any]]:
    """Each container of a tree with each of its keys."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else []
    return [(tree, key) for key in keys] + [place for key in keys for place in every_place(tree[key])]


def damaged(tree: Any, chance: random.Random) -> Any:
    """A copy with one or a few entries removed, exchanged for others of the tree, or replaced by junk."""
    forged = copy.deepcopy(tree)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        places = every_place(forged)
        part, key = chance.choice(places)
        action = chance.randrange(4)
        if action == 0:
            del part[key]
        elif action == 1:
            source, other = chance.choice(places)
            part[key] = copy.deepcopy(source[other])
        else:
            part[key] = copy.deepcopy(chance.choice(JUNK))
    return forged
