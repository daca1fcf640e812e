"""Rows that are known by labels: the values of y belong to the rows of X with the same labels, in whatever order.

A table that was sorted or shuffled beside values that were not is a classic silent error: every value lands on
another row, and what is protected is not what is sensitive.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from .errors import InputError


def in_row_order(y: Any, index: pd.Index[Any] | None, name: str) -> Any:
    """``y`` in the order of rows with the labels ``index``; whatever has no labels is taken as it stands.

    ========================== ==================================================================
    the labels of X and y      y is
    ========================== ==================================================================
    are equal, in one order    taken as it stands
    are equal, in other orders brought into the order of X; refused where one is just 0, 1, 2, …,
                               which may mean "the rows I labelled so" or "not labelled"
    overlap, or differ         refused; taken as it stands where one is just 0, 1, 2, … and the
                               other has none of these
    ========================== ==================================================================
    """
    if index is None or not isinstance(y, (pd.Series, pd.DataFrame)):
        return y
    own = y.index
    if len(own) != len(index) or own.equals(index):
        return y
    same = own.is_unique and index.is_unique and bool(own.isin(index).all())
    if is_plain(own) or is_plain(index):
        if same:
            raise InputError(
                f"{name} and X have the same row labels in different orders, and those of "
                f"{name if is_plain(own) else 'X'} are just 0, 1, 2, …, so it is not clear which values belong "
                f"together; give {name}.loc[X.index] to go by labels, or {name}.to_numpy() to go by position."
            )
        if bool(own.isin(index).any()):
            raise InputError(
                f"{name} and X have some row labels in common and others not, so that values may be on other rows than "
                f"their own; give {name}.loc[X.index] to go by labels, or {name}.to_numpy() to go by position."
            )
        return y
    if same:
        return y.reindex(index)
    if not (own.is_unique and index.is_unique):
        raise InputError(
            f"{name} and X have different row labels, some of them more than once; give both the same index, or "
            f"{name}.to_numpy() to go by position."
        )
    alone = own[~own.isin(index)]
    raise InputError(
        f"{name} has {len(alone)} row label(s) that X does not have, the first {str(alone[0])[:60]!r}; give both the "
        f"same index, or {name}.to_numpy() to go by position."
    )


def without_labels(y: Any, name: str) -> Any:
    """``y`` for rows whose labels are not known (a release has none): refused where it has labels of its own."""
    tables = [y] if isinstance(y, (pd.Series, pd.DataFrame)) else list(y.values()) if isinstance(y, dict) else []
    if any(isinstance(one, (pd.Series, pd.DataFrame)) and not is_plain(one.index) for one in tables):
        raise InputError(
            f"{name} has row labels, and a release does not (they may be names); give {name}.to_numpy(), in the order "
            "of the rows that were released."
        )
    return y


def is_plain(index: pd.Index[Any]) -> bool:
    """Whether these are the labels 0, 1, 2, … that pandas gives to rows without labels."""
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
