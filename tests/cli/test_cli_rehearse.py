"""``sfumato rehearse``, the line in ``sfumato protect``, and families on the command line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, done, refused, run
from sfumato.evaluate.advice import advice

WHERE = ["--region", "3 <= t <= 4", "--alpha", 0.3, "--fit-outside"]
ROUGH = ["--lengthscale", 0.05, "--noise", 0.0001]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wave, which any textbook foresees, and a random walk, which none does."""
    random, t = np.random.default_rng(0), np.arange(81) / 10.0
    wave = np.sin(2 * np.pi * t) + 0.01 * random.normal(size=81)
    path = tmp_path_factory.mktemp("rehearse") / "data.csv"
    pd.DataFrame({"t": t, "wave": wave, "walk": random.normal(size=81).cumsum()}).to_csv(path, index=False)
    return path


def words(command: str, data: Path, output: str, *more: object) -> list[object]:
    return [command, data, "--inputs", "t", "--output", output, *WHERE, *more]


def copied(result: Any) -> list[str]:
    """The words of the command that a rehearsal ends with, over several lines as a shell reads them."""
    _, _, command = result.stdout.partition("\nsfumato protect ")
    return ["protect", *shlex.split(command.partition("\n\n")[0].replace("\\\n", ""))]


@pytest.fixture(scope="module")
def advised() -> list[Any]:
    """What better priors were found, if they were looked for; that takes long."""
    return []


@pytest.fixture(scope="module")
def failed(data: Path, advised: list[Any]) -> Any:
    def kept(*asked: Any, **how: Any) -> Any:
        advised.append(advice(*asked, **how))
        return advised[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sfumato.evaluate.rehearsal.advice", kept)
        return run(*words("rehearse", data, "wave", *ROUGH, "--figure", data.with_name("wave.png")))


def test_a_prior_that_textbooks_beat_fails_with_exit_code_1(failed: Any) -> None:
    assert failed.exit_code == 1
    assert failed.stdout.startswith("OWNER ONLY")
    assert "of floor" in failed.stdout
    assert "Do not publish with this prior." in failed.stdout


def test_the_advice_is_a_command_that_can_be_copied(failed: Any, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    made = done(run(*copied(failed)))
    assert "Rehearsal: passed" in made.stdout
    assert "periodic" in str(sf.load(data.with_suffix(".sfumato")).prior)


@pytest.mark.slow
def test_a_floor_that_the_advised_prior_cannot_promise_is_lowered(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And rows that were left out are left out again."""
    table = pd.read_csv(data)
    table.loc[len(table)] = [9.0, np.nan, 0.0]
    high = data.with_name("high.csv")
    table.to_csv(high, index=False)
    asked = ["--inputs", "t", "--output", "wave", "--region", "3 <= t <= 4", "--floor", 30, "--fit-outside"]
    failed = run("rehearse", high, *asked, *ROUGH, "--drop-missing")
    assert "cannot be promised" in " ".join(failed.stdout.split())
    monkeypatch.chdir(data.parent)
    assert "Rehearsal: passed" in done(run(*copied(failed))).stdout


def test_the_picture_is_drawn(failed: Any, data: Path) -> None:
    assert data.with_name("wave.png").read_bytes().startswith(b"\x89PNG")
    assert "wave.png" in failed.stdout


def test_a_prior_that_fits_passes(data: Path) -> None:
    result = run(*words("rehearse", data, "walk", "--kernel", "matern12", "--noise", 0, "--json"))
    found = answer(result)
    assert (found["passes"], found["verdict"], found["command"]) == (True, "publish", None)
    assert result.stderr.startswith("OWNER ONLY")


@pytest.fixture
def without_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a better prior takes long, and is not the point."""
    monkeypatch.setattr("sfumato.evaluate.rehearsal.advice", lambda *_, **__: None)


@pytest.mark.usefixtures("failed")
def test_protect_writes_nothing_after_a_rehearsal_that_failed(
    data: Path, advised: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.evaluate.rehearsal.advice", lambda *_, **__: advised[0])
    out = data.with_name("wave.sfumato")
    asked = words("protect", data, "wave", *ROUGH, "--out", out)
    refused(run(*asked), "failed its rehearsal", "--kernel", "--accept prior-beaten", "Nothing was written.", code=1)
    assert not out.exists()


@pytest.mark.usefixtures("without_advice")
def test_what_was_accepted_is_written_and_told_without_numbers(data: Path) -> None:
    out = data.with_name("accepted.sfumato")
    asked = words("protect", data, "wave", *ROUGH, "--out", out)
    refused(run(*asked, "--accept", "raw-records"), "failed its rehearsal", "--accept prior-beaten", code=1)
    accepted = answer(run(*asked, "--accept", "prior-beaten", "--json"))
    assert accepted["certificate"]["verdict"] == "publish with care"
    assert accepted["rehearsal"]["wave"]["verdict"] == "do not publish"
    # readers are told what was accepted, and no number that was made with the data
    (told,) = [one for one in sf.load(out).certificate.findings if one.code == "prior-beaten"]
    assert told.accepted
    assert not any(character.isdigit() for character in told.text)


def test_protect_says_in_a_line_that_the_prior_passed(data: Path) -> None:
    out = data.with_name("walk.sfumato")
    asked = words("protect", data, "walk", "--kernel", "matern12", "--noise", 0, "--out", out)
    shown = " ".join(done(run(*asked)).stdout.split())
    assert re.search(r"Rehearsal: passed; at \d+ look-alikes.* floors, where the prior claims", shown)
    assert "Rehearsal" not in done(run(*asked, "--no-rehearsal", "--replace")).stdout


def test_records_by_a_share_need_no_rehearsal(data: Path) -> None:
    # readers may know the function then
    asked = words("protect", data, "wave", *ROUGH, "--protects", "records", "--out", data.with_name("records.sfumato"))
    assert answer(run(*asked, "--json"))["rehearsal"] == {}


@pytest.mark.usefixtures("without_advice")
def test_each_sensitive_output_is_rehearsed_by_itself(data: Path) -> None:
    both = ["--inputs", "t", "--output", "wave", "--output", "walk", "--region", "wave: 3 <= t <= 4", "--alpha", 0.3]
    asked = ["protect", data, *both, "--fit-outside", *ROUGH, "--out", data.with_name("both.sfumato")]
    refused(run(*asked), "failed its rehearsal where 'wave' is sensitive", code=1)


def test_a_large_table_is_rehearsed_on_some_of_its_rows(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.cli.rehearse.FEW_ROWS", 50)
    asked = words("protect", data, "walk", "--kernel", "matern12", "--noise", 0, "--out", data.with_name("few.sfumato"))
    assert "took 50 of 81 rows" in done(run(*asked)).stderr


@pytest.mark.usefixtures("without_advice")
def test_parquet_that_is_read_part_after_part_is_rehearsed_too(data: Path) -> None:
    pytest.importorskip("pyarrow")
    parquet = data.with_suffix(".parquet")
    pd.read_csv(data).to_parquet(parquet)
    folder = data.with_name("folder")
    asked = [*words("protect", parquet, "wave", *ROUGH), "--out", f"{folder}/"]
    refused(run(*asked), "failed its rehearsal", "Nothing was written.", code=1)
    assert not folder.exists() or not any(folder.iterdir())


def test_a_family_of_priors_on_the_command_line(data: Path) -> None:
    pd.read_csv(data)[20:60:2].to_csv(data := data.with_name("few.csv"), index=False)
    out = data.with_name("family.sfumato")
    kept = ["--lengthscale", 0.5, "--noise", 0.1, "--no-rehearsal", "--out", out]
    ranges = ["--family", "lengthscale=0.7:1.4,noise=0.5:1"]
    done(run(*words("protect", data, "walk", *kept, *ranges)))
    (family,) = sf.load(out).design.families
    assert (family.lengthscale, family.noise) == ((0.7, 1.4), (0.5, 1.0))
    wrong = {"length=1:2": "choose lengthscale", "lengthscale=2": "write a range", "noise=a:b": "write a range"}
    for text, part in wrong.items():
        refused(run(*words("protect", data, "walk", *kept, "--family", text)), "--family", part)
    refused(run(*words("protect", data, "walk", *kept, *ranges, "--spread", 2)), "--family and --spread: both given")
    ledger = ["--ledger", data.with_name("a.ledger")]
    refused(run(*words("protect", data, "walk", *kept, *ranges, *ledger)), "does not count families")
    both = words("protect", data, "walk", "--output", "wave", *kept, *ranges)
    refused(run(*both), "--family is for one output")


@pytest.mark.slow
def test_all_priors_that_are_nearly_as_likely_on_the_command_line(data: Path) -> None:
    out = data.with_name("spread.sfumato")
    kept = ["--kernel", "matern32", "--noise", 0.1, "--no-rehearsal", "--out", out]
    done(run(*words("protect", data, "walk", *kept, "--spread", 2)))
    (family,) = sf.load(out).design.families
    assert family.lengthscale[0] < 1.0 < family.lengthscale[1]


@pytest.mark.parametrize(
    ("more", "parts"),
    [
        (["--floor", 0.1], ["--alpha and --floor: both given"]),
        (["--kernel", "rbf + tree"], ["tree"]),
        (["--figure", "wave.txt"], ["--figure", ".txt"]),
    ],
)
def test_what_cannot_be_meant_is_refused(data: Path, more: list[object], parts: list[str]) -> None:
    refused(run(*words("rehearse", data, "walk", *more)), *parts)
