"""``sfumato protect --objective predictions``: what is served, with which weights, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, done, refused, run

Run = Callable[..., Any]
BEST = ["--objective", "predictions"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    t = np.linspace(0.0, 3.0, 31)
    pd.DataFrame({"t": t, "r": np.sin(2 * t), "w": 1.0 + t}).to_csv(tmp_path / "orbit.csv", index=False)
    return tmp_path / "orbit.csv"


@pytest.fixture
def protect(data: Path) -> Run:
    def call(*words: object) -> Any:
        fixed = [
            "--lengthscale",
            0.5,
            "--noise",
            0.01,
            "--no-rehearsal",
            "--replace",
            "--json",
            "--allow-raw-rows",
            "--region",
        ]
        said = ["protect", data, "--inputs", "t", "--output", "r", *fixed, "1 <= t <= 1.5", "--alpha", 0.3]
        return run(*said, "--out", data.parent / "orbit.sfumato", *words)

    return call


def served(data: Path) -> Any:
    design = sf.load(data.parent / "orbit.sfumato").design
    assert design.objective == "predictions"
    return design.serves


def test_the_rows_outside_are_served_unless_inputs_or_a_region_are_named(protect: Run, data: Path) -> None:
    found = answer(protect(*BEST))["certificate"]
    assert (found["objective"], found["holds"]) == ("predictions", True)
    assert 0.0 < found["explained"] <= found["explained_upper"] <= 1.0
    t = np.linspace(0.0, 3.0, 31)
    outside = t[(t < 1.0) | (t > 1.5)]
    np.testing.assert_allclose(served(data).places[:, 0], outside)

    done(protect(*BEST, "--serve", "t >= 2", "--weights", "w"))
    np.testing.assert_allclose(served(data).places[:, 0], t[t >= 2.0])
    np.testing.assert_allclose(served(data).weights, 1.0 + t[t >= 2.0])

    useful = data.parent / "useful.csv"
    pd.DataFrame({"t": [2.0, 2.5, 9.0], "count": [1.0, 2.0, 0.5]}).to_csv(useful, index=False)
    done(protect(*BEST, "--serve", useful, "--weights", "count"))
    np.testing.assert_allclose(served(data).places[:, 0], [2.0, 2.5, 9.0])
    np.testing.assert_allclose(served(data).weights, [1.0, 2.0, 0.5])


def test_a_prior_in_doubt_and_what_is_not_published_are_said(data: Path) -> None:
    said = ["--inputs", "t", "--output", "r", "--lengthscale", 0.5, "--noise", 0.01, "--region", "1 <= t <= 1.5"]
    result = done(run("protect", data, *said, "--alpha", 0.3, *BEST, "--out", data.parent / "o", "--no-rehearsal"))
    suppressed = sf.load(data.parent / "o").design.noise.suppressed_count
    assert suppressed > 0
    told = " ".join(result.stdout.split())
    assert f"Not published: {suppressed} combinations of the 31 rows." in told
    assert "What readers cannot explain at the inputs that stay useful:" in told
    assert "the prior was not rehearsed" in result.stderr


def test_weights_of_a_table_count_for_each_of_several_outputs(data: Path) -> None:
    t = np.linspace(0.0, 3.0, 17)
    pd.DataFrame({"t": t, "r": np.sin(2 * t), "v": 2 * np.cos(2 * t)}).to_csv(data, index=False)
    useful, out = data.parent / "useful.csv", data.parent / "orbit.sfumato"
    pd.DataFrame({"t": [2.0, 2.5], "count": [1.0, 2.0]}).to_csv(useful, index=False)
    both = ["--output", "r", "--output", "v", "--relation", "v = d(r)/d(t)", "--region", "1 <= t <= 1.5"]
    fixed = ["--lengthscale", 0.5, "--noise", 0.01, "--no-rehearsal", "--alpha", 0.5, "--out", out]
    done(run("protect", data, "--inputs", "t", *both, *fixed, *BEST, "--serve", useful, "--weights", "count"))
    np.testing.assert_allclose(served(data).places, [[2.0, 0], [2.5, 0], [2.0, 1], [2.5, 1]])
    np.testing.assert_allclose(served(data).weights, [1.0, 2.0, 1.0, 2.0])
    # a region may be about one of them
    asked = ["protect", data, "--inputs", "t", *both, *fixed, *BEST, "--replace", "--serve"]
    done(run(*asked, "v: t >= 2"))
    np.testing.assert_allclose(served(data).places, [[place, 1.0] for place in t[t >= 2.0]])
    refused(run(*asked, "w: t >= 2"), "--serve names the output 'w'; choose one of 'r', 'v'.")
    refused(run(*asked, "v:"), "--serve 'v:' does not say where 'v' is meant")


def test_what_does_not_go_together_is_refused_in_the_words_of_the_command(protect: Run, data: Path) -> None:
    refused(protect("--objective", "both"), "--objective is 'both'", "'predictions'")
    refused(protect("--serve", "t >= 2"), "--serve is given", "--objective predictions")
    refused(protect(*BEST, "--structure", "diagonal"), "--objective is", "--structure full")
    refused(protect(*BEST, "--serve", "t >> 2"), "--serve 't >> 2' is no table", "as a region")
    refused(protect(*BEST, "--serve", "t >= 99"), "--serve is a region", "lies wholly outside the data")
    refused(protect(*BEST, "--serve", "new.csv"), "new.csv does not exist")
    refused(protect(*BEST, "--serve", data, "--weights", "mass"), "'mass'")
    assert not (data.parent / "orbit.sfumato").exists()


def test_what_the_rows_outside_tell_is_said_once(data: Path) -> None:
    said = ["protect", data, "--inputs", "t", "--output", "r", "--region", "1 <= t <= 1.5", "--alpha", 0.3]
    said += ["--noise", 0.01, "--no-rehearsal", "--replace", "--allow-raw-rows", *BEST]
    for lengthscale, serve, code in (0.5, "t >= 1.9", False), (2.0, "t <= 0.9", True):
        asked = ["--lengthscale", lengthscale, "--serve", serve, "--out", data.parent / "orbit.sfumato"]
        text = " ".join(done(run(*said, *asked)).stdout.split())
        assert text.count("outside the region tell, without a look inside") == 1
        assert ("predictions-not-better" in text) == code
