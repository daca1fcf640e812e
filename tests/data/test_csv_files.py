"""Text tables come back as they were written, whatever they were written with; what is not clear is refused."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato import InputError
from sfumato.data.tables import open_table, select_columns

NUMBERS = st.floats(-1e9, 1e9).map(lambda value: round(value, 6) + 0.0)
WORDS = st.text("abcäöüé xyz,;|", min_size=1, max_size=8).map(lambda text: f"w{text.strip()}w")
MOMENTS = st.datetimes(pd.Timestamp("1900-01-01"), pd.Timestamp("2100-01-01"))
SHAPES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%d.%m.%Y %H:%M",
    "%Y/%m/%d",
    "%d %B %Y",
    "%b %d, %Y",
    "%d-%b-%Y",
)


NUMBERED = "".join(f"{number}.5;1\n" for number in range(12))


def grouped(value: float, decimal: str) -> str:
    """The oracle for thousands: Python's own, with the marks exchanged."""
    return f"{value:,.6f}".translate(str.maketrans({",": "." if decimal == "," else ",", ".": decimal}))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_was_written_is_what_is_read(data: st.DataObject, tmp_path: Path) -> None:
    rows = data.draw(st.integers(2, 6), "rows")
    sep = data.draw(st.sampled_from([",", ";", "\t", "|", " "]), "sep")
    decimal = data.draw(st.sampled_from([".", ","]), "decimal")
    shape = data.draw(st.sampled_from(SHAPES), "dates")
    listed = {
        "t": st.lists(NUMBERS.filter(lambda value: not (value * 1000).is_integer()), min_size=rows, max_size=rows),
        "n": st.lists(st.integers(-999, 999), min_size=rows, max_size=rows),
        "größe [cm]": st.lists(NUMBERS, min_size=rows, max_size=rows),
        "ort": st.lists(WORDS, min_size=rows, max_size=rows),
        "tag": st.lists(MOMENTS, min_size=rows, max_size=rows),
    }
    frame = pd.DataFrame({name: data.draw(values, name) for name, values in listed.items()})
    frame["tag"] = pd.to_datetime(frame["tag"].dt.strftime(shape), format=shape)
    written = frame.assign(tag=frame["tag"].dt.strftime(shape))
    if data.draw(st.booleans(), "thousands"):
        written["größe [cm]"] = [grouped(value, decimal) for value in frame["größe [cm]"]]
    text = written.to_csv(
        sep=sep, decimal=decimal, index=False, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"]))
    )
    encoding = data.draw(
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]), "encoding"
    )
    raw = text.encode(encoding)
    if data.draw(st.booleans(), "gzip"):
        raw = gzip.compress(raw)
    file = tmp_path / "table.csv"
    file.write_bytes(raw)
    try:
        found = open_table(file)
    except InputError as error:
        # the words may hold so many separators that two of them fit: then it is said
        if "can be read with" not in str(error):
            raise
        found = open_table(file, sep="space" if sep == " " else sep)
    assert not found.doubts
    back = found.frame
    assert list(back) == list(frame)
    for name in ("t", "größe [cm]", "n"):
        np.testing.assert_array_equal(back[name], frame[name])  # to the last digit
    assert back["ort"].tolist() == frame["ort"].tolist()
    assert back["tag"].tolist() == frame["tag"].tolist()


def read_table(file: Path) -> pd.DataFrame:
    return open_table(file).frame


def written(tmp_path: Path, text: str | bytes, name: str = "table.csv") -> Path:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('t;r\n1;"1,234"\n2;"2,345"\n', "'1,234' may be 1234 or 1.234; give --decimal"),
        ("t;r\n1;32.000\n2;28.500\n", "'32.000' may be 32 or 32000; give --decimal"),
        ("t;r\n03/04/2005;1\n05/06/2005;2\n", "no value says which is the month"),
        ("t;r\n13/04/2005;1\n05/26/2005;2\n", "days and months change places"),
        ("t;r\n13.04.05;1\n14.04.05;2\n", "a year of two digits"),
        ("t;r\n2005-02-28;1\n2005-02-30;2\n", "there is no 2005-02-30"),
        ("t;r\n2005-02-28;1\n2005-03-01;2\n2005-03-02;1\nlater;3\n", "'later' is no date, though others are"),
        (f"t;r\n{NUMBERED}n.a.;3\n", "'n.a.' is no number, though others are, such as '0.5'"),
        ("t;r\n1,5;1.5\n2,5;2.5\n", "'1.5' looks like decimal points, but the table has decimal commas"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_remedy(tmp_path: Path, text: str, why: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError, match=r"column '[tr]'") as caught:
        select_columns(open_table(file), ["t"], ["r"], file)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("decimal", "values"), [(".", [1234.0, 2345.0]), (",", [1.234, 2.345])], ids=["thousands", "decimals"]
)
def test_the_decimal_mark_that_is_given_settles_it(tmp_path: Path, decimal: str, values: list[float]) -> None:
    table = open_table(written(tmp_path, 't;r\n1;"1,234"\n2;"2,345"\n'), decimal=decimal)
    assert table.frame["r"].tolist() == values
    assert not table.doubts
    assert bool(table.notes) == (decimal == ".")  # that commas were dropped is said


def test_a_column_says_itself_which_is_the_month(tmp_path: Path) -> None:
    for text, month in (("03/04/2005,1\n03/25/2005,2\n", 3), ("03/04/2005,1\n25/04/2005,2\n", 4)):
        assert set(read_table(written(tmp_path, "d,y\n" + text))["d"].dt.month) == {month}


def test_times_with_zones_are_in_utc(tmp_path: Path) -> None:
    table = open_table(written(tmp_path, "t,y\n2005-01-01T01:00:00+02:00,1\n2005-01-01 3:30 PM Z,2\n"))
    assert table.frame["t"].tolist() == [pd.Timestamp("2004-12-31 23:00"), pd.Timestamp("2005-01-01 15:30")]
    assert "UTC" in table.notes["t"]


def test_a_wrong_option_says_what_the_file_looks_like(tmp_path: Path) -> None:
    file = written(tmp_path, "t;r\n1,5;2,5\n3,5;4,5\n")
    with pytest.raises(InputError, match="It looks like semicolon between columns"):
        select_columns(open_table(file, sep=","), ["t"], ["r"], file)
    with pytest.raises(InputError, match=r"but it looks like semicolon.*give --sep ';' --decimal , --encoding utf-8"):
        select_columns(open_table(file, sep="|"), ["t"], ["r"], file)
    with pytest.raises(InputError, match=r"looks like decimal commas.*give --decimal ','"):
        select_columns(open_table(file, decimal="."), ["t"], ["r"], file)
    with pytest.raises(InputError, match="--encoding"):
        open_table(file, encoding="utf-16")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,b\n1,5,2,5\n", "decimal commas between commas"),
        ("a,b\n1,2,3\nx,5,6\n", "3 fields, but the header has 2"),
        ("name;city, state\nx;Boston, MA\n", "comma and semicolon between columns; say which with --sep"),
        (b"PK\x03\x04rest", "Excel workbook"),
        (b"\x1f\x8b\x08broken", "damaged gzip"),
        (b"a,b\n1,\x00\n", "zero bytes"),
        (b"\xef\xbb\xbf\r\n", "it is empty"),
        ("t,r,t\n1,2,3\n", "'t' more than once"),
    ],
)
def test_files_that_are_no_tables_say_what_they_are(tmp_path: Path, text: str | bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        open_table(written(tmp_path, text))


def test_days_in_one_number_are_dates_if_all_of_them_are(tmp_path: Path) -> None:
    table = open_table(written(tmp_path, "d,y,n\n20051231,1,20051231\n20060101,2,20060101\n20060102,3,20060199\n"))
    assert table.frame["d"].tolist() == [pd.Timestamp(day) for day in ("2005-12-31", "2006-01-01", "2006-01-02")]
    assert table.notes["d"] == "20051231 is read as the date 2005-12-31."
    assert table.frame["n"].tolist() == [20051231, 20060101, 20060199]


def test_small_oddities_are_read(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, "x\n1,5\n2,5\n"))["x"].tolist() == [1.5, 2.5]  # one column
    assert set(read_table(written(tmp_path, "a,b\n1,2\n2,2\ncrew,3\n"))["a"]) == {"1", "2", "crew"}
    assert read_table(written(tmp_path, "sep=;\na;b\n1,5;2\n"))["a"].tolist() == [1.5]  # as Excel writes it
    assert read_table(written(tmp_path, "height, cm;w\n1,5;2,5\n"))["height, cm"].tolist() == [1.5]
    assert read_table(written(tmp_path, "  a   b\n 1  2\n", "t.txt")).iloc[0].tolist() == [1, 2]
    assert read_table(written(tmp_path, "a;b\n1 234,5;1.234\n")).iloc[0].tolist() == [1234.5, 1234.0]
    assert read_table(written(tmp_path, gzip.compress(b"a\tb\n1\t2\n"), "t.tsv.gz")).iloc[0].tolist() == [1, 2]
