"""``sfumato audit``: what it prints, draws and refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import done, refused, run
from kernels import matern
from sfumato.cli.options import Reading
from sfumato.noise.noise import CorrelatedNoise

T = np.linspace(0.0, 3.0, 31)
PRIOR = sf.Prior(matern(0.4), noise=0.01)
Y = np.linalg.cholesky(PRIOR.covariance(T) + 0.01 * np.eye(31)) @ np.random.default_rng(1).standard_normal(31)


def released(values: np.ndarray) -> sf.Release:
    """Always the same one, though it does not say so: chance has no part in what rivals make of it."""
    mechanism = sf.protect(PRIOR, pd.DataFrame({"t": T}), sf.Box({"t": (1.0, 2.0)}), alpha=0.3, progress=False)
    made = mechanism.release(values, output_name="r", unsafe_seed=1)
    return replace(made, unsafe=False, certificate=mechanism.certificate)


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return released(Y)


@pytest.fixture
def folder(tmp_path: Path, release: sf.Release) -> Path:
    release.save(tmp_path / "orbit.sfumato")
    pd.DataFrame({"r": Y, "t": T, "name": "a"}).to_csv(tmp_path / "orbit.csv", index=False)
    return tmp_path


def test_table_and_figure(folder: Path) -> None:
    release, truth = folder / "orbit.sfumato", folder / "orbit.csv"
    result = done(run("audit", release, "--truth", truth, "--figure", folder / "audit.png"))
    assert result.stdout.startswith("OWNER ONLY: this uses the truth; do not publish this output.")
    for words in ("Bayes reader", "averages 20 releases", "high", "not tried", "The promise is kept"):
        assert words in result.stdout
    assert result.stdout.strip().splitlines()[-3] == "The promise holds. It is proved."
    assert "severity" in result.stdout  # no column is cut on 80 letters
    assert "…" not in result.stdout
    assert (folder / "audit.png").read_bytes().startswith(b"\x89PNG")


def test_json(folder: Path, release: sf.Release) -> None:
    again = sf.protect(release.prior, pd.DataFrame({"t": T}), release.region, alpha=0.3, progress=False).release(Y)
    again.save(folder / "again.sfumato")
    common = ("audit", folder / "orbit.sfumato", "--truth", folder / "orbit.csv", "--draws", 5, "--json")
    result = run(*common, "--with", folder / "again.sfumato")
    found = json.loads(result.stdout)
    assert "OWNER ONLY" in result.stderr
    assert found["holds"] is True
    codes = {one["code"] for one in found["findings"]}
    assert codes & {"audit-below-floor", "audit-far-below-floor"}  # two releases that are out are known to be
    assert result.exit_code == (1 if found["verdict"] == "do not publish" else 0)
    assert found["owner_only"] is True
    assert {"averages 5 releases", "joins 2 releases"} <= {outcome["name"] for outcome in found["outcomes"]}


def test_a_covered_adversary_below_the_floor_is_exit_code_1(folder: Path, release: sf.Release) -> None:
    weak = replace(release.design, noise=CorrelatedNoise(release.noise.factor / 3))
    replace(release, design=weak).save(folder / "weak.sfumato")
    result = run("audit", folder / "weak.sfumato", "--truth", folder / "orbit.csv")
    assert result.exit_code == 1, result.output
    assert "THE PROMISE IS BROKEN" in result.stdout


def test_a_prior_that_a_rival_beats_is_exit_code_1_until_that_is_accepted(folder: Path) -> None:
    smooth = 5 + 3 * T - T**2
    released(smooth).save(folder / "smooth.sfumato")
    pd.DataFrame({"r": smooth, "t": T}).to_csv(folder / "smooth.csv", index=False)
    asked = ("audit", folder / "smooth.sfumato", "--truth", folder / "smooth.csv", "--draws", 2)
    result = run(*asked)
    assert result.exit_code == 1
    assert "Do not publish: other models come much closer" in result.stdout
    result = done(run(*asked, "--accept", "prior-beaten"))
    assert "- accepted: The prior does not fit" in result.stdout
    assert "Publish with care: accepted prior-beaten." in result.stdout
    refused(run(*asked, "--accept", "does-not-hold"), "can never be accepted")


def test_rows_are_matched_by_their_inputs(folder: Path, release: sf.Release) -> None:
    from sfumato.cli.releases import true_values

    table = pd.read_csv(folder / "orbit.csv", float_precision="round_trip").sample(frac=1.0, random_state=1)
    table.to_csv(folder / "mixed.csv", index=False)
    np.testing.assert_array_equal(true_values(release, folder / "mixed.csv", None, Reading()), Y)
    table.rename(columns={"r": "radius"}).to_csv(folder / "renamed.csv", index=False)
    np.testing.assert_array_equal(true_values(release, folder / "renamed.csv", "radius", Reading()), Y)


def test_repeated_inputs_are_taken_in_the_order_of_the_file(folder: Path) -> None:
    from sfumato.cli.releases import true_values

    t = np.array([0.0, 1.0, 1.0, 2.0])
    made = sf.protect(sf.Prior(matern(0.4), noise=0.1), t, sf.Points([[1.0]]), alpha=0.5, progress=False).release(t)
    pd.DataFrame({"x": [1.0, -0.0, 2.0, 1.0], "y": [7.0, 6.0, 9.0, 8.0]}).to_csv(folder / "four.csv", index=False)
    np.testing.assert_array_equal(true_values(made, folder / "four.csv", None, Reading()), [6.0, 7.0, 8.0, 9.0])


def test_wrong_use_is_told(folder: Path) -> None:
    release, truth = folder / "orbit.sfumato", folder / "orbit.csv"
    refused(run("audit", folder / "none.sfumato", "--truth", truth), "none.sfumato does not exist")
    refused(run("audit", release, "--truth", folder / "none.csv"), "does not exist")
    refused(run("audit", release, "--truth", truth, "--output", "q"), "no column 'q'")
    refused(run("audit", release, "--truth", truth, "--grid", 0.3), "grid is 0.3", "no multiple")
    refused(run("audit", release, "--truth", truth, "--draws", 0), "draws is 0")
    refused(run("audit", release, "--truth", truth, "--figure", folder / "audit.txt"), "ends in '.txt'", ".png")
    refused(run("audit", release, "--truth", truth, "--figure", folder / "no" / "audit.png"), "cannot be written")
    table = pd.read_csv(truth)
    table.iloc[:-1].to_csv(folder / "short.csv", index=False)
    refused(run("audit", release, "--truth", folder / "short.csv"), "has 30 rows, but the release has 31")
    table.assign(t=table["t"] + 1e-9).to_csv(folder / "moved.csv", index=False)
    refused(
        run("audit", release, "--truth", folder / "moved.csv"),
        "has no row for t = 0 (row 1 of the release)",
        "exactly",
    )
