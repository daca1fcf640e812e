"""Rows in Parquet files: the same numbers as if they were read at once, whatever the files look like."""

from __future__ import annotations

import datetime
import decimal
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data.inputs import SAMPLE, Inputs, MemoryInputs, as_inputs
from sfumato.data.stored import StoredInputs, fingerprint, parquet_files, rows_of_parquet
from sfumato.progress import Progress

QUIET = Progress()


def numbers(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, 3))


def write(path: Path, values: np.ndarray, group: int = 100) -> Path:
    pq.write_table(pa.table({"a": values[:, 0], "b": values[:, 1], "y": values[:, 2]}), path, row_group_size=group)
    return path


def stored(*paths: Path, rows: int = 64) -> StoredInputs:
    return rows_of_parquet(paths, ["a", "b"], "y", QUIET, rows=rows)


@pytest.mark.parametrize("group", [1, 7, 63, 64, 65, 128, 500, 10_000])
def test_parts_equal_one_shot_reading_whatever_the_row_groups(tmp_path: Path, group: int) -> None:
    values = numbers(1003)
    rows = stored(write(tmp_path / "t.parquet", values, group))
    np.testing.assert_array_equal(rows.values, values[:, :2])
    np.testing.assert_array_equal(np.asarray(rows.column("y")), values[:, 2])
    parts = rows.parts()
    assert max(part.rows for part in parts) <= 64
    assert [part.start for part in parts] == list(np.cumsum([0, *(part.rows for part in parts)])[:-1])
    for part in parts:
        np.testing.assert_array_equal(part.inputs(), values[part.start : part.start + part.rows, :2])
        np.testing.assert_array_equal(part.column("y"), values[part.start : part.start + part.rows, 2])


def test_small_row_groups_are_read_together_and_large_ones_in_slices(tmp_path: Path) -> None:
    small = stored(write(tmp_path / "small.parquet", numbers(640), 10)).parts()
    assert [part.rows for part in small] == [60] * 10 + [40]
    large = stored(write(tmp_path / "large.parquet", numbers(200_000), 200_000), rows=70_000).parts()
    assert [part.rows for part in large] == [70_000, 70_000, 60_000]


def test_parts_can_be_sent_and_read_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("t.parquet"), values := numbers(100))
    rows = stored(Path("t.parquet"))
    sent = pickle.dumps(rows)
    monkeypatch.chdir(os.sep)
    again = pickle.loads(sent)
    np.testing.assert_array_equal(again.values, values[:, :2])
    # what has been read is not sent again
    assert len(pickle.dumps(again)) == len(sent)


def test_many_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    values = numbers(90)
    for place, name in enumerate(["c.parquet", "a.pq", "deep/b.parquet"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, values[30 * place : 30 * place + 30])
    (tmp_path / "notes.txt").write_text("not a table")
    write(tmp_path / "_summary.parquet", values)
    (tmp_path / ".unfinished").mkdir()
    write(tmp_path / ".unfinished" / "d.parquet", values)
    expected = values[[*range(30, 60), *range(30), *range(60, 90)], :2]
    np.testing.assert_array_equal(stored(tmp_path).values, expected)
    named = [tmp_path / "deep/b.parquet", tmp_path / "c.parquet", tmp_path / "a.pq"]
    np.testing.assert_array_equal(stored(*named).values, expected)
    pattern = tmp_path / "[ac].p*"
    np.testing.assert_array_equal(stored(pattern).values, expected[:60])


def test_empty_files_among_others_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", numbers(0))
    write(tmp_path / "b.parquet", values := numbers(5))
    write(tmp_path / "c.parquet", numbers(0))
    np.testing.assert_array_equal(stored(tmp_path).values, values[:, :2])
    with pytest.raises(sf.InputError, match="no rows"):
        stored(tmp_path / "a.parquet")


def test_stored_inputs_are_inputs(tmp_path: Path) -> None:
    values = numbers(300)
    rows = stored(write(tmp_path / "t.parquet", values))
    assert isinstance(rows, Inputs)
    assert as_inputs(rows) is rows
    assert (len(rows), rows.dimension, rows.columns, rows.names) == (300, 2, ("a", "b"), ("a", "b"))
    np.testing.assert_array_equal(rows.sample.values, values[:, :2])
    chosen = np.array([299, 0, 64, 63, 64])
    np.testing.assert_array_equal(rows.select(chosen).values, values[chosen, :2])
    np.testing.assert_array_equal(rows.select(values[:, 0] > 0).values, values[values[:, 0] > 0, :2])
    y = rows.column("y")
    np.testing.assert_array_equal(y.select(chosen), values[chosen, 2])
    np.testing.assert_array_equal(y[10:200:3], values[10:200:3, 2])
    np.testing.assert_array_equal(y[chosen], values[chosen, 2])
    np.testing.assert_array_equal(2.0 * y - y, values[:, 2])
    assert (y.shape, repr(y)) == ((300,), "<300 stored values of y>")
    with pytest.raises(IndexError):
        rows.select(np.array([300]))
    assert repr(rows) == "<300 stored rows of a, b in 6 parts>"


def test_combinations_are_found_part_after_part(tmp_path: Path) -> None:
    values = np.round(numbers(300))
    rows, second = stored(write(tmp_path / "t.parquet", values)), np.array([False, True])
    for columns in (second, ~second, second | True):
        wanted = sorted({tuple(row) for row in values[:, :2][:, columns].tolist()})
        for inputs in (rows, as_inputs(values[:, :2])):
            np.testing.assert_array_equal(inputs.combinations(columns, len(wanted)), wanted)
            assert inputs.combinations(columns, len(wanted) - 1) is None
    assert "values" not in vars(rows)


def test_the_sample_is_spread_evenly_and_has_the_extremes(tmp_path: Path) -> None:
    values = numbers(3 * SAMPLE + 5)
    values[1000, 0], values[2003, 1] = -50.0, 70.0
    rows = stored(write(tmp_path / "t.parquet", values, 50_000), rows=30_000)
    memory = MemoryInputs(values[:, :2]).sample
    np.testing.assert_array_equal(rows.sample.values, memory.values)
    np.testing.assert_array_equal(rows.sample.values.min(axis=0), values[:, :2].min(axis=0))
    np.testing.assert_array_equal(rows.sample.values.max(axis=0), values[:, :2].max(axis=0))


def test_more_can_be_known_of_each_row(tmp_path: Path) -> None:
    values, more = numbers(200), np.arange(200.0)
    rows = stored(write(tmp_path / "t.parquet", values))
    for part in rows.parts({"noise_0": more, "outputs": rows.column("y")}):
        here = slice(part.start, part.start + part.rows)
        np.testing.assert_array_equal(part.column("noise_0"), more[here])
        np.testing.assert_array_equal(part.column("outputs"), values[here, 2])
        np.testing.assert_array_equal(part.inputs(), values[here, :2])
    with pytest.raises(sf.InputError, match="199 values"):
        rows.parts({"noise_0": more[1:]})
    others = stored(tmp_path / "t.parquet", rows=150)
    with pytest.raises(sf.InputError, match="other parts"):
        rows.parts({"outputs": others.column("y")})


def test_all_kinds_of_numbers_become_float64(tmp_path: Path) -> None:
    columns = {
        "int": pa.array([1, 2, 3], pa.int8()),
        "unsigned": pa.array([1, 2, 2**60], pa.uint64()),
        "single": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "yes.no": pa.array([True, False, True]),
        "money": pa.array([decimal.Decimal("1.25"), decimal.Decimal(2), decimal.Decimal(3)]),
        "category": pa.array([5.0, 5.0, 7.0]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    rows = rows_of_parquet([tmp_path / "t.parquet"], list(columns), None, QUIET)
    expected = [[1, 1, 0.5, 1, 1.25, 5], [2, 2, 1.5, 0, 2, 5], [3, 2**60, 2.5, 1, 3, 7]]
    np.testing.assert_array_equal(rows.values, expected)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([1.0, float("nan"), 3.0]), "a missing value in row 2"),
        (pa.array([1.0, 2.0, None]), "a missing value in row 3"),
        (pa.array([None, 2, 3]), "a missing value in row 1"),
        (pa.array([None, None, None]), "a missing value in row 1"),
        (pa.array([1.0, 2.0, float("inf")]), "inf, which is infinite or too large, in row 3"),
        (pa.array([1.0, 1e200, 0.0]), "too large, in row 2"),
        (pa.array(["1", "2", "three"]), "it holds string, not numbers"),
        (pa.array([datetime.timedelta(days=1)] * 3), "not numbers"),
        (pa.array([{"x": 1}] * 3), "not numbers"),
    ],
)
@pytest.mark.parametrize("place", ["a", "y"])
def test_what_is_not_a_number_is_refused_with_its_place(
    tmp_path: Path, column: pa.Array, said: str, place: str
) -> None:
    columns = {"a": pa.array([0.0, 0.0, 0.0]), "y": pa.array([0.0, 0.0, 0.0])} | {place: column}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=2)
    with pytest.raises(sf.InputError, match=r"t\.parquet") as caught:
        rows_of_parquet([tmp_path / "t.parquet"], ["a"], "y", QUIET, rows=2)
    assert said in str(caught.value)
    assert f"column {place!r}" in str(caught.value)


def test_rows_are_counted_in_the_file(tmp_path: Path) -> None:
    values = numbers(1000)
    values[777, 2] = np.nan
    write(tmp_path / "b.parquet", values, 300)
    write(tmp_path / "a.parquet", numbers(1000))
    with pytest.raises(sf.InputError, match=r"b.parquet, column 'y': a missing value in row 778 .*--drop-missing"):
        stored(tmp_path)


def test_wrong_columns_and_files_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", numbers(10))
    with pytest.raises(sf.InputError, match=r"no column 'aa'; it has a, b, y. Did you mean 'a'\?"):
        rows_of_parquet([path], ["aa"], "y", QUIET)
    with pytest.raises(sf.InputError, match="more than once"):
        rows_of_parquet([path], ["a", "a"], "y", QUIET)
    with pytest.raises(sf.InputError, match="given more than once"):
        stored(path, tmp_path)
    with pytest.raises(sf.InputError, match="does not exist"):
        stored(tmp_path / "other.parquet")
    (tmp_path / "t.csv").write_text("a,b,y\n1,2,3\n")
    with pytest.raises(sf.InputError, match="does not end in"):
        stored(tmp_path / "t.csv")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(sf.InputError, match="cannot be read as a Parquet file"):
        stored(tmp_path / "bad.parquet")
    (tmp_path / "none").mkdir()
    with pytest.raises(sf.InputError, match="no Parquet files"):
        stored(tmp_path / "none")
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(sf.InputError, match="more than once"):
        rows_of_parquet([tmp_path / "twice.parquet"], ["a"], None, QUIET)


def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", numbers(300))
    rows, before = stored(path), fingerprint(parquet_files([path]))
    assert fingerprint(parquet_files([path])) == before
    write(path, numbers(150))
    assert fingerprint(parquet_files([path])) != before
    with pytest.raises(sf.InputError, match="has changed"):
        _ = rows.values
    path.unlink()
    with pytest.raises(sf.InputError, match="cannot be read"):
        _ = rows.values


@pytest.mark.parametrize("how", ["gone", "a folder", "cut", "no Parquet", "times", "words", "missing", "renamed"])
def test_whatever_becomes_of_a_file_is_told_in_a_sentence(tmp_path: Path, how: str) -> None:
    path, numbers = tmp_path / "t.parquet", pa.array(np.arange(50.0))
    pq.write_table(pa.table({"a": numbers, "y": numbers}), path, row_group_size=20)
    rows, whole = rows_of_parquet(path, ["a"], "y", rows=20), path.read_bytes()
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how in ("cut", "no Parquet"):
        path.write_bytes(whole[: len(whole) // 2] if how == "cut" else b"hello" * 100)
    elif how != "gone":
        words = pa.array(["one"] * 50)
        other = {"times": pa.array([1] * 50, pa.time32("s")), "words": words, "missing": pa.nulls(50)}
        table = pa.table({"a": numbers, "y" if how != "renamed" else "z": other.get(how, numbers)})
        pq.write_table(table, path, row_group_size=20)
    for read in (lambda: np.asarray(rows.column("y")), lambda: rows.column("y").select(np.array([30]))):
        with pytest.raises(sf.InputError, match=r"t\.parquet.*(cannot be read|missing value)"):
            read()
    if how == "gone":
        with pytest.raises(sf.InputError, match=r"t\.parquet cannot be read any more: No such file"):
            fingerprint([path])


def test_progress_shows_rows_a_second() -> None:
    told: list[tuple[int, int]] = []

    class Told(Progress):
        def rows(self, done: int, total: int) -> None:
            told.append((done, total))

    count = Told().counter(10)
    count(4)
    count(6)
    assert told == [(4, 10), (10, 10)]


def test_moments_before_1970_are_rounded_as_in_memory(tmp_path):
    """A row on the border of a region stays inside, whichever way it was read."""
    frame = pd.DataFrame({"date": pd.to_datetime([-1_500, -999, -1, 0, 999, 10**18, 1 - 10**18], unit="ns")})
    frame.to_parquet(tmp_path / "rows.parquet")
    stored = rows_of_parquet(tmp_path / "rows.parquet", ["date"])
    np.testing.assert_array_equal(stored.parts()[0].inputs(), as_inputs(frame).values)
    for moment in frame["date"]:
        assert sf.Box({"date": (moment, moment)}).bind(stored).contains(stored.parts()[0].inputs()).any()
