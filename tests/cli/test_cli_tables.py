"""The command line on tables with dates and categories: what is written for readers is a table like the owner's."""

from __future__ import annotations

import numpy as np
import pandas as pd

import sfumato as sf
from command_line import answer, done, refused, run

RNG = np.random.default_rng(3)
BIRDS = pd.DataFrame(
    {
        "when": pd.date_range("2008-01-01", periods=40, freq="36h"),
        "species": RNG.choice(["Adelie", "Gentoo penguin"], 40),
        "mass": RNG.normal(4.0, 0.3, 40).round(2),
    }
)


def test_dates_and_levels_go_through_all_commands(tmp_path):
    table, out, csv = tmp_path / "birds.csv", tmp_path / "birds.sfumato", tmp_path / "released.csv"
    BIRDS.to_csv(table, index=False)
    region = "mass: 2008-01-10T12:00 <= when < 2008-01-20 and species = 'Gentoo penguin'"
    asked = ["protect", table, "--inputs", "when,species", "--output", "mass", "--alpha", 0.4, "--out", out]
    kernel = ["--kernel", "matern52(lengthscale=[9, 1.5])", "--noise", 0.09, "--no-rehearsal"]
    done(run(*asked, *kernel, "--csv", csv, "--region", region))
    words = '2008-01-10T12:00 ≤ when ≤ 2008-01-20 and species = "Gentoo penguin"'
    assert words in answer(run("certify", out, "--json"))["certificate"]["promise"]
    # readers get dates and levels back, and give them
    released = pd.read_csv(csv, parse_dates=["when"])
    assert list(released.columns) == ["when", "species", "mass"]
    assert released[["when", "species"]].equals(BIRDS[["when", "species"]].astype(released[["when", "species"]].dtypes))
    BIRDS[["when", "species"]].iloc[:3].to_csv(tmp_path / "new.csv", index=False)
    found = answer(run("predict", out, tmp_path / "new.csv", "--json"))["predictions"]
    assert np.allclose([row["mean"] for row in found], sf.load(out).predict(BIRDS.iloc[:3]).mean)
    assert [row["species"] for row in found] == list(BIRDS["species"].iloc[:3])
    refused(run(*asked, *kernel, "--region", "species = Gentu", "--replace"), "'species' has the levels", "Adelie")
    refused(run(*asked, *kernel, "--region", "mass >= 4", "--replace"), "regions are about inputs")
