"""Cells that a spreadsheet would run are written as text, and read as they were."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.spreadsheets import quoted, unquoted
from sfumato.data.tables import open_table, write_table


@given(st.text("'=+-@\t\r\n.,eE19a ", max_size=8))
def test_no_text_begins_a_formula_and_all_come_back(text: str) -> None:
    cell = quoted(text)
    assert unquoted(cell) == text
    assert not cell.startswith(("=", "@", "\t", "\r", "\n"))
    assert not cell.startswith(("+", "-")) or not set(cell) & set("=@'a")


def test_names_and_levels_are_quoted_with_a_warning(tmp_path: Path) -> None:
    table = pd.DataFrame({"=HYPERLINK(1)": [1.0, -2.0], "-5": [3.0, 4.0], "level": ["=cmd", "'=cmd"]})
    path = tmp_path / "a.csv"
    with pytest.warns(RuntimeWarning, match=r"a\.csv: a spreadsheet would run '=cmd', \"'=cmd\", '=HYPERLINK\(1\)' as"):
        write_table(table, path)
    assert path.read_text(encoding="utf-8").split() == ["'=HYPERLINK(1),-5,level", "1.0,3.0,'=cmd", "-2.0,4.0,''=cmd"]
    pd.testing.assert_frame_equal(open_table(path).frame, table, check_dtype=False)
