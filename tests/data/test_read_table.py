"""Tables from files and from bytes that somebody sent: as the command reads them, with the same checks."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data import tables
from sfumato.data.column_facts import ColumnFacts, column_facts
from sfumato.data.csv_files import TableAsRead
from sfumato.data.encoding import Encoding
from sfumato.data.tables import open_table

TEXT = "t [s];day;place;house;y\n0,5;31.12.2005;north;7;1,5\n1,5;01.01.2006;south;7;\n2,5;02.01.2006;north;8;2,5\n"


def parquet(frame: pd.DataFrame) -> bytes:
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def test_named_columns_come_back_with_labels_and_without_rows_that_miss_something(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text(TEXT)
    found = sf.read_table(file, ["t [s]", "day", "place"], "y", drop_missing=True, labels=["house"])
    assert list(found) == ["t [s]", "day", "place", "y", "house"]
    assert found["t [s]"].tolist() == [0.5, 2.5]
    assert found["day"].dt.day.tolist() == [31, 2]
    assert found["house"].tolist() == [7, 8]
    with pytest.raises(sf.InputError, match=r"drop_missing=True"):
        sf.read_table(str(file), ["t [s]"], "y")
    assert list(sf.read_table(file, ["t [s]"])) == ["t [s]"]


def test_what_is_not_plain_to_see_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text('t,y\n0.5,"1,500.5"\n1.5,2.5\n')
    with pytest.warns(RuntimeWarning, match=r"'1,500.5' is read as 1500.5"):
        assert sf.read_table(file, ["t"], "y")["y"].tolist() == [1500.5, 2.5]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_bytes_are_read_as_the_file_is(tmp_path: Path, pack: object) -> None:
    content = pack(TEXT.encode())  # type: ignore[operator]
    (tmp_path / "table.csv").write_bytes(content)
    sent, stored = open_table(Path("table.csv"), content=content), open_table(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(sent.frame, stored.frame)
    assert (sent.form, sent.notes, sent.doubts) == (stored.form, stored.notes, stored.doubts)


def test_parquet_bytes_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [0.5, 1.5], "place": ["a", "b"]})
    pd.testing.assert_frame_equal(open_table(Path("x.parquet"), content=parquet(frame)).frame, frame)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.exe", b"t,y\n1,2\n", "tables are"),
        ("../../x", b"t,y\n1,2\n", "tables are"),
        ("x.csv", b"", "empty"),
        ("x.csv", b"PK\x03\x04", "Excel"),
        ("x.csv.gz", gzip.compress(b"t,y\n1,2\n", mtime=0)[:-6], "damaged gzip"),
        ("x.parquet", b"PAR1", "cannot be read as a table"),
        ("x.csv", b"a," * 20_000 + b"\n1,2\n", "20,001 columns"),
    ],
)
def test_what_is_no_table_gets_a_sentence(name: str, content: bytes, said: str) -> None:
    with pytest.raises(sf.InputError, match=said):
        open_table(Path(name), content=content)


@pytest.mark.parametrize("word", ["zlib", "bz2", "hex", "base64", "rot13", "uu", "x\0y", "../x", ""])
def test_what_is_no_encoding_of_text_is_refused(word: str) -> None:
    """Python calls it an encoding too, and would unpack a bomb with it."""
    with pytest.raises(sf.InputError, match="encoding"):
        open_table(Path("x.csv"), encoding=word, content=zlib.compress(b"t,y\n1,2\n"))


def test_a_small_file_that_holds_more_than_there_is_room_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_SENT", 1e6)
    with pytest.raises(sf.InputError, match="more than"):
        open_table(Path("x.csv.gz"), content=gzip.compress(b"t,y\n" + b"1,2\n" * 500_000))
    many = parquet(pd.DataFrame({"t": np.zeros(200_000)}))
    assert len(many) < 20_000
    with pytest.raises(sf.InputError, match="needs about"):
        open_table(Path("x.parquet"), content=many)


def test_a_file_larger_than_the_memory_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "free_memory", lambda: 1000.0)
    (tmp_path / "x.csv").write_text("t,y\n" + "1,2\n" * 1000)
    with pytest.raises(sf.InputError, match="part after part"):
        sf.read_table(tmp_path / "x.csv", ["t"], "y")


def facts_of(text: str) -> dict[str, ColumnFacts]:
    return {one.name: one for one in column_facts(open_table(Path("x.csv"), content=text.encode()))}


def test_facts_say_what_each_column_holds() -> None:
    facts = facts_of(TEXT)
    assert [one.kind for one in facts.values()] == ["numbers", "dates", "text", "numbers", "numbers"]
    assert facts["t [s]"].unit == "s"
    assert facts["t [s]"].values_in_words == ("0.5", "2.5")
    assert facts["day"].values_in_words == ("2005-12-31", "2006-01-02")
    assert facts["place"].values_in_words == ("2 texts: north, south",)
    assert (facts["y"].missing, facts["y"].distinct, facts["y"].least, facts["y"].largest) == (1, 2, 1.5, 2.5)
    assert not any(one.doubt for one in facts.values())


def test_facts_say_what_is_in_doubt() -> None:
    facts = facts_of("a;b;c\n1,234;;x\n2,345;;x\n")
    assert "--decimal" in facts["a"].doubt
    assert facts["b"].doubt == "it has no value"
    named = facts_of("t,name\n" + "".join(f"{row},n{row}\n" for row in range(20)))
    assert "names the rows" in named["name"].doubt
    assert named["name"].distinct == 20
    twice = TableAsRead(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]))
    assert all("same name" in one.doubt for one in column_facts(twice))


def test_facts_are_those_of_the_inputs_that_columns_become() -> None:
    """A kind is decided in one place: what facts call dates and text becomes dates and categories in X."""
    frame = pd.DataFrame(
        {
            "number": ["1", "2"],
            "flag": [True, False],
            "day": pd.date_range("2000-01-01", periods=2, tz="UTC"),
            "word": pd.Categorical(["b", "a"]),
            "list": [[1.0], [2.0]],
        }
    )
    table = open_table(Path("x.parquet"), content=parquet(frame))
    facts = {one.name: one for one in column_facts(table)}
    assert facts["list"].doubt
    wanted = ["number", "flag", "day", "word"]
    encoding = Encoding.of(tables.select_columns(table, wanted, [], Path("x")), "X")
    assert encoding is not None
    words = {"number": "numbers", "date": "dates", "category": "text"}
    assert [facts[name].kind for name in wanted] == [words[column.kind] for column in encoding.columns]
    assert facts["day"].least == "2000-01-01 UTC"
    with pytest.raises(sf.InputError, match="list"):
        sf.fit_prior(tables.select_columns(table, ["list"], [], Path("x")), [1.0, 2.0])


@pytest.mark.parametrize(
    ("content", "told"),
    [("1.5,-2\n3,4\n", True), ("0,1\n3,4\n", False), ("t,1\n3,4\n", False)],
)
def test_a_first_line_of_numbers_may_be_no_names(tmp_path, content, told):
    path = tmp_path / "x.csv"
    path.write_text(content)
    assert bool(open_table(path).names_in_doubt) == told
