"""Text that a spreadsheet would run: a cell that begins like a formula gets a ' before it, which such programs hide."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import pandas as pd

from ..text import listed
from .columns import is_text

#: What begins a formula, alone or after marks that were put before it.
_FORMULA = re.compile(r"'*(?:[=@\t\r\n]|[+-](?![\d.,]+(?:[eE][+-]?\d+)?\Z))")


def quoted(text: str) -> str:
    """``text`` as a cell that no spreadsheet runs.

    >>> [quoted(text) for text in ("=1+1", "-x", "-1.5e3", "age", "'=1")]
    ["'=1+1", "'-x", '-1.5e3', 'age', "''=1"]
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unquoted(text: str) -> str:
    """What was ``quoted``.

    >>> [unquoted(text) for text in ("'=1+1", "''=1", "'quoted'")]
    ['=1+1', "'=1", "'quoted'"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def for_spreadsheets(table: pd.DataFrame, where: object) -> pd.DataFrame:
    """``table`` as it may be opened with a spreadsheet, with a warning that names ``where`` what was changed."""
    changed: dict[str, None] = {}

    def safe(text: str) -> str:
        if (cell := quoted(text)) != text:
            changed[text] = None
        return cell

    table = with_texts(table, safe).rename(columns=lambda name: safe(str(name)))
    if changed:
        warnings.warn(
            f"{where}: a spreadsheet would run {listed([repr(text) for text in changed], 4)} as a formula, so each of "
            "these texts has a ' before it there. sfumato takes it away again when it reads the table; other programs "
            "may not.",
            RuntimeWarning,
            stacklevel=4,
        )
    return table


def with_texts(table: pd.DataFrame, instead: Callable[[str], str]) -> pd.DataFrame:
    """``table`` with other texts in the cells that hold text."""
    table = table.copy(deep=False)
    for name in table:
        if is_text(table[name].dtype) or isinstance(table[name].dtype, pd.CategoricalDtype):
            texts = {text: instead(text) for text in table[name].unique() if isinstance(text, str)}
            if any(new != old for old, new in texts.items()):
                table[name] = [texts.get(cell, cell) for cell in table[name]]
    return table
