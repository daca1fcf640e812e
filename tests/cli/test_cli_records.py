"""``sfumato protect`` for people's rows: what it promises about records, and what it refuses to write."""

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


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Wages that differ by ± 1 between people with the same age: the function is smooth, the records are not."""
    age = np.repeat(np.arange(20.0, 80.0, 3.0), 2)
    wage = 15.0 + 6.0 * np.sin(age / 12.0) + np.random.default_rng(0).normal(0.0, 1.0, len(age))
    path = tmp_path / "people.csv"
    house = [f"house {number // 4}" if number % 7 else "" for number in range(len(age))]
    pd.DataFrame({"age": age, "wage": wage, "house": house}).to_csv(path, index=False)
    return path


@pytest.fixture
def protect(people: Path) -> Run:
    def call(*words: object) -> Any:
        asked = ["--inputs", "age", "--output", "wage", "--region", "age >= 60", "--kernel", "matern52"]
        fixed = ["--lengthscale", 12, "--noise", 1, "--replace", "--out", people.parent / "people.sfumato"]
        return run("protect", people, "--no-rehearsal", *asked, *fixed, *words)

    return call


def test_no_private_record_goes_out_as_it_is_by_default(protect: Run, people: Path) -> None:
    public = people.parent / "public.csv"
    shown = done(protect("--floor", 0.3, "--csv", public)).stdout
    assert "nor any of the 12 records there better than ±0.3" in " ".join(shown.split()).replace("│ │ ", "")
    truth, published = pd.read_csv(people), pd.read_csv(public)
    private = truth["age"] >= 60
    off = (truth["wage"] - published["wage"])[private].to_numpy()
    assert np.min(np.abs(off)) > 1e-6
    # two people with the same inputs have noise of their own: their difference is not published
    assert np.min(np.abs(off[::2] - off[1::2])) > 1e-6


def test_records_that_go_out_bare_are_not_written_unless_that_is_allowed(protect: Run, people: Path) -> None:
    asked = ["--floor", 0.05, "--protects", "function"]
    others = ["--csv", people.parent / "p.csv", "--report", people.parent / "p.html"]
    others += ["--ledger", people.parent / "p.ledger", "--share", 1]
    refused(protect(*asked, *others), "12 of the 12 records", "--accept raw-records", "Nothing was written.", code=1)
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]
    for allowed in (["--allow-raw-rows"], ["--accept", "raw-records"]):
        made = answer(protect(*asked, *allowed, "--json"))["certificate"]
        assert (made["protects"], made["records"], made["raw_records"]) == ("function", 12, 12)
        assert [one["code"] for one in made["findings"] if one["accepted"]] == ["raw-records"]
        assert made["verdict"] == "publish with care"
        shown = done(run("certify", people.parent / "people.sfumato")).stdout
        assert " ".join(shown.split()).endswith("Publish with care: accepted raw-records.")
    refused(protect("--floor", 0.3, "--accept", "raw-records"), "raw-records", "not found here", code=2)
    refused(protect(*asked, "--accept", "does-not-hold"), "does-not-hold", "can never be accepted", code=2)


@pytest.mark.parametrize(
    ("protects", "said"),
    [
        ("function", "It is about the typical value at given inputs, not any single record."),
        ("records", "It is about single records, not the typical value at given inputs."),
        ("both", ""),
    ],
)
def test_what_the_promise_is_about_is_said_by_every_command(
    protect: Run, people: Path, protects: str, said: str
) -> None:
    made = done(protect("--alpha", 0.1, "--protects", protects))
    file, new = people.parent / "people.sfumato", people.parent / "new.csv"
    again = done(run("certify", file))
    page = done(run("report", file, "--out", people.parent / "p.html"))
    verdict = f"The promise holds. It is proved. {said}".strip()
    assert made.stdout.splitlines().count(verdict) == again.stdout.splitlines().count(verdict) == 1
    assert page.stdout.splitlines()[1].startswith(verdict)
    new.write_text("age\n70\n")
    seen = done(run("predict", file, new))
    assert seen.stdout.startswith("age,mean,std\n")
    assert seen.stderr == "" if protects == "both" else said[12:-1] in seen.stderr
    assert answer(run("predict", file, new, "--json"))["protects"] == protects


def test_certify_tells_epsilon(protect: Run, people: Path) -> None:
    done(protect("--alpha", 0.5, "--protects", "records", "--structure", "diagonal"))
    file = people.parent / "people.sfumato"
    found = answer(run("certify", file, "--dp-range", 2, "--delta", 1e-5, "--json"))["differential_privacy"]
    expected = sf.load(file).certify(progress=False).dp(2.0, 1e-5)
    assert found["epsilon"] == pytest.approx(expected)
    assert np.isfinite(found["epsilon"])
    assert f"(ε = {expected:.3g}" in done(run("certify", file, "--dp-range", 2, "--delta", 1e-5)).stdout
    refused(run("certify", file, "--delta", 1e-5), "--delta belongs to --dp-range")
    refused(run("certify", file, "--dp-range", -1), "range is -1")


def test_insiders_are_the_labels_of_a_column(protect: Run, people: Path) -> None:
    asked, page = ["--alpha", 0.3, "--protects", "records"], people.parent / "p.html"
    found = answer(protect(*asked, "--insiders", "house", "--report", page, "--json"))["certificate"]
    assert found["insider_ratio"] <= 1 + 1e-9
    insiders, labels = sf.load(people.parent / "people.sfumato").design.insiders, pd.read_csv(people)["house"]
    assert insiders is not None
    assert len(insiders) == labels.nunique()
    assert all(labels[rows].nunique(dropna=False) == 1 for rows in insiders.groups)  # no label, no group
    assert "house" not in page.read_text(encoding="utf-8")  # labels are published nowhere
    shown = done(run("certify", people.parent / "people.sfumato")).stdout
    assert f"group {found['insider_group']}" in shown
    refused(protect(*asked, "--insiders", "wage"), "--insiders 'wage' is also an --output")
    refused(protect(*asked, "--insiders", "family"), "no column 'family'")


def test_whoever_holds_a_row_of_several_outputs_holds_all_of_them(people: Path) -> None:
    table = pd.read_csv(people).iloc[::4]
    table.assign(tax=table["wage"] / 3 + np.cos(table["age"])).to_csv(people, index=False)
    out = people.parent / "two.sfumato"
    asked = ["--inputs", "age", "--output", "wage", "--output", "tax", "--region", "age >= 60", "--alpha", 0.5]
    fixed = ["--lengthscale", 12, "--noise", 1, "--kernel", "matern52", "--protects", "records", "--insiders", "rows"]
    run("protect", people, "--no-rehearsal", *asked, *fixed, "--fit-outside", "--out", out)
    insiders = sf.load(out).design.insiders
    assert insiders is not None
    assert [rows.tolist() for rows in insiders.groups] == [[row, row + len(table)] for row in range(len(table))]
