"""``sfumato tradeoff``: what it prints, draws, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, done, refused, run
from sfumato.cli.fitted import fitted_table
from sfumato.cli.options import Fit, Reading, Sensitive

T = np.linspace(0.0, 3.0, 31)
HOW = ("--inputs", "t", "--output", "r", "--region", "1 <= t <= 2", "--lengthscale", 0.3, "--noise", 0.05)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "orbit.csv"
    pd.DataFrame({"t": T, "r": np.sin(2 * T)}).to_csv(path, index=False)
    return path


def test_no_number_is_cut_on_a_small_screen(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.read_csv(table)
    frame.assign(r=1e-5 * frame["r"]).to_csv(table, index=False)
    monkeypatch.setenv("COLUMNS", "80")
    how = (*HOW[:-1], 1e-12, "--alphas", "0.05", "--ways", "joint,cloaking", "--measured")
    shown = done(run("tradeoff", table, *how)).stdout
    assert "…" not in shown
    assert "measured" in shown
    assert [line.split()[0] for line in shown.splitlines() if " yes " in line] == ["joint"]


def test_table_figure_and_csv(table: Path) -> None:
    figure, csv = table.with_name("tradeoff.png"), table.with_name("levels.csv")
    levels = ("--alphas", "0.3,0.6", "--ways", "joint,diagonal,dropout", "--fit-outside")
    result = done(run("tradeoff", table, *HOW, *levels, "--figure", figure, "--csv", csv))
    for words in ("What readers of r lose where 1 ≤ t ≤ 2 is protected", "rmse out", "dropout", "error outside "):
        assert words in result.stdout
    assert f"Written: {figure} and {csv}" in result.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")
    written = pd.read_csv(csv)
    assert written["way"].tolist() == ["everything", "joint", "joint", "diagonal", "diagonal", "dropout"]
    frame = pd.read_csv(table)
    prior = sf.fit_prior(frame[["t"]], frame["r"], lengthscale=0.3, noise=0.05, exclude=sf.Box({"t": (1, 2)}))
    found = sf.tradeoff(prior, frame[["t"]], sf.Box({"t": (1, 2)}), [0.3, 0.6], ways=["joint"], progress=False)
    np.testing.assert_allclose(written["loss"][1:3], [line.loss for line in found.rows], rtol=1e-6)


def test_a_region_without_rows_is_not_said_to_have_been_fitted_to(table: Path) -> None:
    where = Sensitive(inputs=["t"], output="r", region="1.01 <= t <= 1.09")
    how = Fit(lengthscale=0.3, noise="0.05")
    assert "31 rows outside the region" in fitted_table(table, where, how, Reading(), progress=False).fitted


def test_json(table: Path) -> None:
    found = answer(run("tradeoff", table, *HOW, "--floors", "0.2", "--ways", "joint", "--json"))
    assert found["output"] == "r"
    assert [row["way"] for row in found["rows"]] == ["joint"]
    assert found["rows"][0]["floor"] == pytest.approx(0.2)
    assert found["rows"][0]["alpha"] is None
    assert found["rows"][0]["measured"] is None


def test_measured_errors_are_for_the_owner(table: Path) -> None:
    result = done(run("tradeoff", table, *HOW, "--alphas", "0.5", "--ways", "joint", "--measured"))
    assert result.stdout.startswith("OWNER ONLY")
    assert "measured" in result.stdout


def test_wrong_use_is_told(table: Path) -> None:
    refused(run("tradeoff", table, *HOW, "--alphas", "0.1,x"), "--alphas is '0.1,x'")
    refused(run("tradeoff", table, *HOW, "--alphas", "1.5"), "alpha is 1.5")
    refused(run("tradeoff", table, *HOW, "--alphas", "0.1", "--floors", "1"), "both given")
    refused(run("tradeoff", table, *HOW, "--ways", "robust"), "ways is 'robust'")
    refused(run("tradeoff", table, *HOW, "--figure", table.with_name("a.txt")), "ends in '.txt'", ".png")
    refused(run("tradeoff", table, *HOW, "--csv", table.with_name("a.txt")), "ends in '.txt'")
    refused(run("tradeoff", table, *HOW, "--csv", table), "is what the command reads")
    refused(run("tradeoff", table, *HOW[:2], "--output", "t", *HOW[4:]), "also one of --inputs")
    refused(run("tradeoff", table.with_name("none.csv"), *HOW), "does not exist")


def test_a_suggestion_has_the_options_to_copy(table: Path) -> None:
    figure = table.with_name("costs.png")
    shown = done(run("suggest", table, *HOW, "--max-loss", "0.02", "--figure", figure)).stdout
    assert "sfumato protect … --alpha 0.01 --protects records" in shown
    assert figure.stat().st_size > 10_000
    found = answer(run("suggest", table, *HOW, "--floor", "0.05", "--json"))
    assert found["output"] == "r"
    assert found["floor"] == 0.05
    assert found["options"][0]["options"] == "--floor 0.05 --protects both"
    refused(run("suggest", table, *HOW, "--max-loss", "2"), "--max-loss is 2")
    refused(run("suggest", table, *HOW, "--max-noise", "1", "--alpha", "0.1"), "--max-noise is given, and alpha too")


def test_a_suggestion_for_the_best_predictions_says_where_they_are(table: Path) -> None:
    asked = ("--alpha", 0.3, "--objective", "predictions")
    shown = done(run("suggest", table, *HOW, *asked, "--serve", "t >= 2.5")).stdout
    assert "--objective predictions --serve 't >= 2.5'" in shown
    assert "with the least noise" in shown
    refused(run("suggest", table, *HOW, "--serve", "place >= 2"), "is no table, and as a region")
    refused(run("suggest", table, *HOW, "--objective", "trace"), "--objective is 'trace'")


@pytest.mark.parametrize("command", [("tradeoff", "--alphas", 0.3, "--ways", "joint"), ("suggest", "--alpha", 0.3)])
def test_a_prior_that_had_to_be_fitted_inside_is_told(table: Path, command: tuple[str, ...]) -> None:
    name, *level = command
    where = [*HOW[:5], "0.3 <= t", *HOW[6:]]
    assert "those inside the region too, because too few" in done(run(name, table, *where, *level)).stdout
