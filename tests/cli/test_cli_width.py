"""Everything that commands print fits a screen of 80 columns, whatever the columns of the data are called."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_line import run

TIME, PLACE = "time_since_the_first_measurement [days]", "height_above_the_ground [metres]"
WAGE = "gross_hourly_wage_before_all_taxes [euros]"
WHERE = f"3 <= `{TIME}` <= 4.5 and `{PLACE}` <= 2"
ASKED = ["--inputs", f"{TIME},{PLACE}", "--output", WAGE]
FIT = ["--lengthscale", 0.7, "--noise", 0.01]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("width")
    random = np.random.default_rng(0)
    t, h = random.uniform(0, 8, 60).round(2), random.integers(0, 4, 60)
    y = 1000 * (np.sin(2.1 * t) + np.cos(3 * t + h) + 0.1 * random.normal(size=60))
    pd.DataFrame({TIME: t, PLACE: h, WAGE: y / 1000}).to_csv(folder / "data.csv", index=False)
    return folder


@pytest.mark.slow
def test_no_line_is_longer_than_the_screen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    promise = ["--region", WHERE, "--alpha", 0.3]
    commands: list[list[object]] = [
        ["protect", "data.csv", *ASKED, *promise, *FIT, "--ledger", "l", "--out", "r"],
        ["certify", "r"],
        ["audit", "r", "--truth", "data.csv", "--draws", 2],
        ["report", "r", "--out", "r.html"],
        ["ledger", "show", "l"],
        ["rehearse", "data.csv", *ASKED, *promise, *FIT],
        ["tradeoff", "data.csv", *ASKED, "--region", WHERE, *FIT, "--alphas", "0.3", "--ways", "joint,dropout"],
        ["suggest", "data.csv", *ASKED, "--region", WHERE, *FIT],
    ]
    for command in commands:
        result = run(*command)
        assert result.exit_code in (0, 1), result.output
        assert [line for line in result.stdout.splitlines() if len(line) > 80] == [], command
        if command[:2] == ["ledger", "show"]:  # a long name leaves the other columns whole
            assert result.stdout.splitlines()[1].split()[::3] == ["release", "rows", "row"]
            assert re.search(r"^ +1 20\d\d-\d\d-\d\dT\S{14} gross\S+ +60 ", result.stdout, re.MULTILINE)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    shown = re.sub(r"\x1b\[[\d;]*m", "", run("predict", "r", "data.csv").stdout)
    assert len(shown.splitlines()) > 60
    assert max(map(len, shown.splitlines())) <= 80
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("COLUMNS", "40")
    words = run("certify", "r").stdout.replace("│", " ").split()
    assert {"sensitive", "lengthscales", "guarantee,", "correlated"} <= set(words)  # no word is cut
