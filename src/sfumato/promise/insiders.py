"""Insiders: readers who hold some of the rows, each of them those of one group (MATH.md 11).

A group is a row by itself, the rows of one household, firm or ship, or any set of rows. Who holds the true values of a
group knows the noise on them, and with it something of the noise on other rows. The promise to them is that the release
tells at most the share that it may tell an outsider, of what that group did not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..arrays import Array, Index
from ..errors import InputError

#: Of a value that an insider's own rows determine to this share of its variance nothing can be promised to them.
DETERMINED = 1e-8


@dataclass(frozen=True, eq=False)
class Insiders:
    """Groups of rows. ``members`` has a line for each row of a group: the number of the group, and that of the row.

    None: every one of the ``rows`` is a group by itself.
    """

    rows: int
    members: Array | None = None

    @cached_property
    def groups(self) -> tuple[Index, ...]:
        """The rows of each group."""
        if self.members is None:
            return tuple(np.arange(self.rows)[:, None])
        numbers, rows = self.members.astype(np.intp).T
        order = np.argsort(numbers, kind="stable")
        counts = np.bincount(numbers) if len(numbers) else np.zeros(0, dtype=np.intp)
        return tuple(np.split(rows[order], np.cumsum(counts)[:-1])) if len(counts) else ()

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def in_words(self) -> str:
        if self.members is None:
            return "whoever holds any one row"
        return f"whoever holds the rows of any one of {len(self):,} groups"


def as_insiders(asked: Any, rows: int) -> Insiders | None:
    """The groups that ``asked`` stands for: None, "rows", one label a row, or lists of row numbers.

    A label that is missing (None, NaN) belongs to no group. Which group has which number follows from where it comes
    first, so that labels themselves are published nowhere.
    """
    if asked is None:
        return None
    if isinstance(asked, str):
        if asked != "rows":
            raise InputError(f'insiders is {asked!r}; give "rows", one label a row, or a list of sets of row numbers.')
        return Insiders(rows)
    listed = _listed(asked)
    if listed is not None:
        return Insiders(rows, _checked(listed, rows))
    labels = pd.Series(np.asarray(asked, dtype=object).reshape(-1))
    if len(labels) != rows:
        raise InputError(f"insiders has {len(labels)} labels, but X has {rows} rows; give one label a row.")
    codes, _ = pd.factorize(labels)
    held = np.flatnonzero(codes >= 0)
    if not held.size:
        raise InputError("insiders has no label; give one for each row that somebody holds, or leave it out.")
    return Insiders(rows, np.stack([codes[held], held], axis=1).astype(np.float64))


def _listed(asked: Any) -> Sequence[Iterable[Any]] | None:
    """``asked`` as sets of rows; None where it is one label a row."""
    if isinstance(asked, (list, tuple)) and asked and all(isinstance(one, (list, tuple, set, range)) for one in asked):
        return list(asked)
    if isinstance(asked, (list, tuple)) and asked and all(isinstance(one, np.ndarray) and one.ndim for one in asked):
        return list(asked)
    return None


def _checked(groups: Sequence[Iterable[Any]], rows: int) -> Array:
    members = []
    for number, group in enumerate(groups):
        held = sorted(group)
        whole = all(isinstance(row, (int, np.integer)) and not isinstance(row, bool) for row in held)
        if not held or not whole or held[0] < 0 or held[-1] >= rows or len(set(held)) < len(held):
            raise InputError(
                f"insiders has the set {str(held)[:60]} at place {number}; give row numbers from 0 to {rows - 1}, each "
                "once, and at least one in a set."
            )
        members += [(number, row) for row in held]
    return np.array(members, dtype=np.float64)
