"""The command line: what it writes, what it prints, and what it says to those who use it wrongly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from command_line import answer, as_words, done, refused, run
from sfumato.noise.noise import CorrelatedNoise

COMMANDS = (
    "demo, rehearse, protect, predict, certify, report, audit, tradeoff, suggest, ledger show, ledger verify, "
    "studio, reproduce, data"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    t = np.linspace(0.0, 3.0, 31)
    path = tmp_path / "orbit.csv"
    pd.DataFrame({"t": t, "r": np.sin(2 * t), "name": ["a"] * 31}).to_csv(path, index=False)
    return path


def options(data: Path, **changed: object) -> list[object]:
    """A protect command that works, with options changed; None takes one away."""
    chosen: dict[str, object] = {
        "inputs": "t",
        "output": "r",
        "region": "1 <= t <= 2",
        "alpha": 0.5,
        "lengthscale": 0.4,
        "noise": 0.01,
        "no_rehearsal": True,
        "out": data.parent / "orbit.sfumato",
        "replace": True,
        **changed,
    }
    return ["protect", data, *as_words(chosen)]


@pytest.fixture
def released(data: Path) -> Path:
    done(run(*options(data)))
    return data.parent / "orbit.sfumato"


@pytest.mark.parametrize("command", COMMANDS.split(", "))
def test_help_has_examples_and_fits_on_a_small_screen(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = done(run(*command.split(), "--help")).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    shown = " ".join(lines).partition("Examples")[2]
    assert f"sfumato {command} " in shown
    # what an option takes is said in a word, not as a type of Python
    assert not re.search("--[a-z-]+ +<(list|str|float|int|path)", "\n".join(lines))


def test_version() -> None:
    assert run("--version").stdout == f"sfumato {sf.__version__}\n"


@pytest.mark.processes
def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, sfumato.__main__; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_protect_certify_predict(data: Path) -> None:
    out, public = data.parent / "orbit.sfumato", data.parent / "public.csv"
    result = done(run(*options(data, csv=public)))
    assert "The promise holds." in result.stdout
    assert "1 ≤ t ≤ 2" in result.stdout
    published = pd.read_csv(public)
    assert list(published.columns) == ["t", "r"]
    np.testing.assert_array_equal(published["r"], sf.load(out).outputs)
    assert not np.allclose(published["r"], pd.read_csv(data)["r"])

    result = done(run("certify", out))
    assert "The promise holds." in result.stdout

    new = data.parent / "new.csv"
    pd.DataFrame({"t": [0.5, 1.5], "other": ["x", "y"]}).to_csv(new, index=False)
    predicted = data.parent / "predicted.csv"
    done(run("predict", out, new, "--out", predicted))
    table = pd.read_csv(predicted)
    assert list(table.columns) == ["t", "mean", "std"]
    seen = sf.load(out).predict([0.5, 1.5])
    np.testing.assert_allclose(table["mean"], seen.mean)
    np.testing.assert_allclose(table["std"], seen.std)
    assert run("predict", out, new).stdout.splitlines()[0] == "t,mean,std"


def test_json_is_one_object_on_stdout(data: Path) -> None:
    out = data.parent / "orbit.sfumato"
    made = answer(run(*options(data, json=True)))
    assert made["release"] == str(out)
    assert made["rows"] == 31
    assert made["rows_inside"] == 11
    assert made["certificate"]["holds"] is True
    assert made["certificate"]["floor_ratio"] >= 1 - 1e-9
    checked = answer(run("certify", out, "--json"))
    assert checked["holds"] is True
    assert checked["unsafe"] is False
    assert checked["certificate"]["joint_ratio"] == pytest.approx(made["certificate"]["joint_ratio"])
    new = data.parent / "new.csv"
    new.write_text("t\n1.5\n")
    seen = answer(run("predict", out, new, "--json"))
    assert seen["rows"] == 1
    assert seen["predictions"][0]["t"] == 1.5


def test_floor_in_units_of_the_output(data: Path) -> None:
    made = answer(run(*options(data, alpha=None, floor=0.3, fit_outside=True, json=True)))
    assert made["certificate"]["worst_std"] >= 0.3 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("changed", "said", "unsaid"),
    [
        (
            {"guarantee": "pointwise"},
            ["guarantee, noise", "pointwise", "may be known better"],
            "any weighted average of them",
        ),
        ({"guarantee": "joint"}, ["% of the variance of any weighted average of them"], "may be known better"),
        (
            {"structure": "diagonal"},
            ["independent noise on every row", "any weighted average of them"],
            "correlated noise",
        ),
    ],
)
def test_the_program_is_said_in_words(data: Path, changed: dict[str, object], said: list[str], unsaid: str) -> None:
    result = done(run(*options(data, **changed)))
    shown = " ".join(result.output.replace("│", " ").split())
    assert "no reader with this prior can know f(s) better than ±" in shown
    assert "at any s in the region" in shown
    assert all(words in shown for words in said)
    assert unsaid not in shown
    again = run("certify", data.parent / "orbit.sfumato", "--json")
    assert json.loads(again.stdout)["certificate"]["guarantee"] == changed.get("guarantee", "joint")


def test_a_column_of_weights_spares_its_rows(data: Path) -> None:
    table = pd.read_csv(data)
    table["weight"] = np.where(table["t"] > 2.05, 100.0, 1.0)
    table.to_csv(data, index=False)
    blur = []
    for changed in ({}, {"weights": "weight"}):
        done(run(*options(data, guarantee="pointwise", **changed)))
        blur.append(sf.load(data.parent / "orbit.sfumato").noise.variance())
    heavy = table["weight"].to_numpy() > 1
    assert blur[1][heavy].sum() < 0.9 * blur[0][heavy].sum()
    assert blur[1].sum() > blur[0].sum()
    refused(run(*options(data, weights="r")), "--weights 'r'", "published")


def test_rows_cover_is_announced_as_rows_only(data: Path) -> None:
    result = done(run(*options(data, cover="rows", alpha=0.1, lengthscale=0.1, noise=0)))
    assert "Only the rows are protected" in result.stdout


def test_parquet_in_and_out(data: Path) -> None:
    pytest.importorskip("pyarrow")
    table = data.with_suffix(".parquet")
    pd.read_csv(data).to_parquet(table)
    done(run(*options(table, csv=data.parent / "public.parquet")))
    assert len(pd.read_parquet(data.parent / "public.parquet")) == 31


def test_units_in_brackets_are_shown(data: Path) -> None:
    pd.read_csv(data).rename(columns={"t": "time [orbits]"}).to_csv(data, index=False)
    where = {"inputs": "time [orbits]", "region": "1 <= `time [orbits]` <= 2"}
    assert "protected where 1 ≤ `time [orbits]` ≤ 2" in done(run(*options(data, **where))).stdout


def test_inputs_repeated_or_comma_separated(data: Path) -> None:
    x = np.linspace(0, 1, 6)
    grid = pd.DataFrame([(a, b, a + b) for a in x for b in x], columns=["a", "b", "c"])
    grid.to_csv(data, index=False)
    common = options(data, inputs=None, output="c", region="a <= 0.4 and b <= 0.4", out=data.parent / "one.sfumato")
    done(run(*common, "--inputs", "a,b"))
    done(run(*common, "--inputs", "a", "--inputs", "b"))
    assert sf.load(data.parent / "one.sfumato").columns == ("a", "b")


def test_missing_values_are_counted_and_located(data: Path) -> None:
    table = pd.read_csv(data)
    table.loc[[2, 6], "r"] = np.nan
    table.to_csv(data, index=False)
    refused(run(*options(data)), "2 of 31 rows", "rows 3, 7", "--drop-missing")
    made = answer(run(*options(data, drop_missing=True, json=True)))
    assert made["rows"] == 29


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({"alpha": None}, ["--alpha and --floor", "neither"]),
        ({"floor": 0.2}, ["--alpha and --floor", "both"]),
        ({"alpha": 1.5}, ["alpha is 1.5", "between 0 and 1"]),
        ({"alpha": None, "floor": 1e9}, ["floor is 1e+09", "prior itself"]),
        ({"alpha": None, "floor": -1}, ["floor is -1"]),
        ({"inputs": "time"}, ["no column 'time'", "it has t, r, name"]),
        ({"inputs": ","}, ["--inputs names no column"]),
        ({"inputs": "t,t"}, ["'t'", "more than once"]),
        ({"output": "rr"}, ["no column 'rr'"]),
        ({"output": "t"}, ["also one of --inputs"]),
        ({"region": "1 <= u <= 2"}, ["u"]),
        ({"region": "1 <= t <="}, []),
        ({"region": "7 <= t <= 8"}, ["outside the data"]),
        ({"kernel": "cubic"}, ["kernel", "cubic"]),
        ({"mean": "median"}, ["mean", "median"]),
        ({"noise": "much"}, ["noise", "much"]),
        ({"noise": -1}, ["noise"]),
        ({"lengthscale": -1}, ["lengthscale"]),
        ({"cover": "blanket"}, ["cover is 'blanket'", "greedy"]),
        ({"resolution": -1}, ["resolution"]),
    ],
)
def test_wrong_options_are_refused(data: Path, changed: dict[str, object], parts: list[str]) -> None:
    refused(run(*options(data, **changed)), *parts)
    assert not (data.parent / "orbit.sfumato").exists()


def test_unsuitable_files_are_refused(data: Path, tmp_path: Path) -> None:
    refused(run(*options(tmp_path / "none.csv")), "none.csv does not exist")
    refused(run(*options(tmp_path / "none.xlsx")), "'.xlsx'", ".csv, .tsv", "or .parquet")
    refused(run(*options(data, out=tmp_path / "away" / "x.sfumato")), "does not exist; make it first")
    refused(run(*options(data, out=tmp_path)), "is a folder")
    refused(run(*options(data, out=data)), "is what the command reads")
    refused(run(*options(data, csv=tmp_path / "orbit.sfumato")), "--out and --csv are both")
    for name, text, part in [
        ("empty.csv", "", "cannot be read as a table"),
        ("header.csv", "t,r\n", "has no rows"),
        ("twice.csv", "t,t,r\n1,2,3\n", "'t' more than once"),
        ("ragged.csv", "t,r\n1,2\n1,2,3,4\n", "row 2 (counted from 1 below the header): 4 fields"),
        ("dates.csv", "t,r\n1,2020-01-01\n", "dates are not numbers"),
        ("inf.csv", "t,r\n1,inf\n2,1\n", "infinite"),
    ]:
        (tmp_path / name).write_text(text)
        refused(run(*options(tmp_path / name)), part)
    (tmp_path / "binary.parquet").write_bytes(b"no table")
    refused(run(*options(tmp_path / "binary.parquet")), "cannot be read as a table")


def test_a_replaced_release_is_mentioned_because_two_of_one_secret_can_be_averaged(data: Path, released: Path) -> None:
    before = released.read_bytes()
    refused(run(*options(data, alpha=2)), "alpha is 2")
    refused(run(*options(data, replace=None)), f"--out {released} is there already; give --replace")
    assert released.read_bytes() == before
    result = done(run(*options(data)))
    assert "Publish one of them only" in result.stdout
    assert released.read_bytes() != before


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 18.6 GiB"),
        RuntimeError("DefaultCPUAllocator: tried 19971597926 bytes"),
    ],
)
def test_want_of_memory_is_a_sentence_with_a_remedy(
    data: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("sfumato.models.fit_prior", fit)
    refused(run(*options(data)), "not enough memory for so many rows (18.6 GiB at once)", "--fit-rows 2000")


def test_wrong_settings_are_refused_before_the_fit(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.models.fit_prior", lambda *_, **__: pytest.fail("it was fitted"))
    wrong = {"alpha": 3, "protects": "rows", "guarantee": "x", "method": "x", "evidence": "x", "resolution": -1}
    for name, value in {**wrong, "cover": "x", "structure": "x", "accept": "x", "region": "t > 9"}.items():
        refused(run(*options(data, **{name: value})))
    refused(run(*options(data, region="r >= 0.5")), "regions are about inputs")
    refused(run(*options(data, fit_rows=1)), "--fit-rows is 1")


def test_a_floor_above_the_spread_of_the_data_is_said_to_the_owner_alone(data: Path) -> None:
    pd.DataFrame({"t": (t := np.linspace(0.0, 3.0, 31)), "r": np.sin(9 * t) * (t < 0.8)}).to_csv(data, index=False)
    result = done(run(*options(data, kernel="rbf")))
    assert "only you see this" in " ".join(result.stdout.split())
    assert "floor-above-spread" not in (data.parent / "orbit.sfumato").read_text(errors="ignore")


def test_noise_is_learnt_by_a_column(data: Path) -> None:
    random, t = np.random.default_rng(0), np.linspace(0.0, 3.0, 60)
    place = np.where(np.arange(60) % 2, "town", "sea")
    errors = np.where(place == "town", 0.5, 0.05) * random.normal(size=60)
    pd.DataFrame({"t": t, "place": place, "r": np.sin(3 * t) + errors}).to_csv(data, index=False)
    asked = {"inputs": "t,place", "region": "1 <= t <= 2", "lengthscale": None, "noise": "learn by place"}
    done(run(*options(data, **asked, no_rehearsal=None, protects="records")))
    noise = sf.load(data.parent / "orbit.sfumato").prior.noise_variance(60)
    assert noise[place == "town"].min() > 10 * noise[place == "sea"].max()


def test_missing_option_is_wrong_use(data: Path) -> None:
    result = run("protect", data)
    assert result.exit_code == 2
    assert "--inputs" in result.stderr


def test_damaged_release_is_wrong_use(released: Path) -> None:
    whole = released.read_bytes()
    new = released.parent / "new.csv"
    new.write_text("t\n1.5\n")
    middle = len(whole) - 100
    for damaged in (b"", b"no release", whole[:-8], whole[:middle] + b"\x00\xff" + whole[middle + 2 :]):
        released.write_bytes(damaged)
        refused(run("certify", released), str(released))
        refused(run("predict", released, new))
    refused(run("certify", released.parent / "none.sfumato"), "does not exist")


def test_predict_needs_the_columns_of_the_release(released: Path) -> None:
    new = released.parent / "new.csv"
    new.write_text("time\n1.5\n")
    refused(run("predict", released, new), "no column 't'")
    new.write_text("t\n1.5\n\nNA\n")
    refused(run("predict", released, new), "1 of 2 rows", "--drop-missing")
    done(run("predict", released, new, "--drop-missing"))
    refused(run("predict", released, new, "--out", new), "is what the command reads")


def test_certify_exits_1_when_the_promise_is_broken(released: Path) -> None:
    honest = sf.load(released)
    weak = replace(honest.design, noise=CorrelatedNoise(honest.noise.factor / 2, honest.noise.shift))
    replace(honest, design=weak).save(released)
    result = run("certify", released)
    assert result.exit_code == 1, result.output
    assert "Do not publish: the promise does not hold." in result.stdout
    result = run("certify", released, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["holds"] is False


def test_protect_writes_nothing_when_the_promise_cannot_be_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise sf.GuaranteeError("the certificate does not hold")

    monkeypatch.setattr("sfumato.design.mechanism.make_release", fail)
    result = run(*options(data, csv=data.parent / "public.csv"))
    assert result.exit_code == 1
    assert result.stderr == "error: the certificate does not hold Nothing was written.\n"
    assert sorted(path.name for path in data.parent.iterdir()) == ["orbit.csv"]


@pytest.mark.processes
def test_as_a_real_program(data: Path) -> None:
    command = [sys.executable, "-m", "sfumato", *map(str, options(data))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    refused(run(*options(data), "--share", 0.5), "--share is about the releases of a ledger")
