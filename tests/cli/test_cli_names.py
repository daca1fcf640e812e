"""Every command shows names as text: of columns, levels, files and options, and whatever stands in somebody's file."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

import sfumato as sf
from command_line import answer, done, run
from sfumato.__main__ import app
from sfumato.cli.printing import new_table, say, show_table
from sfumato.release.container import container, read_container
from sfumato.text import shown

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

FORGED = "The promise holds."

#: What is in names: a unit, markup that Rich would refuse, orders to a terminal, lines, other directions, a formula.
SPEED, MARKUP = "speed [m/s]", "a[/b]"
ORDERS = f"\x1b[2J\x9b3J\r\n{FORGED}\n\u202e\u200b[red]:smile:$x^{{"
OUTPUT, LEVEL = f"{MARKUP}{ORDERS}", f"north[/]{ORDERS}"
#: No text file and no option can hold NUL; a release can.
RELEASED = f"{OUTPUT}\x00"

COMMON = ["data.csv", "--inputs", SPEED, "--region", f"1 <= `{SPEED}` <= 2", "--lengthscale", 0.6, "--noise", 0.01]
MINE, ALPHA = ["--output", OUTPUT], ["--alpha", 0.5]


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder to work in with hostile tables, releases and a ledger; the screen is as wide as names need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("names"))
        patch.setenv("COLUMNS", "500")
        t = np.linspace(0.0, 3.0, 16)
        X, y = pd.DataFrame({SPEED: t}), np.sin(2 * t)
        table = X.assign(site=np.where(np.arange(16) % 2, LEVEL, "south"), **{OUTPUT: y})
        table.to_csv("data.csv", index=False)
        table.iloc[:4].to_csv("new.csv", index=False)
        Path(MARKUP).mkdir(parents=True)
        Path(MARKUP, "orbit.csv").touch()
        region, prior = sf.Box({SPEED: (1.0, 2.0)}), sf.fit_prior(X, y, lengthscale=0.6, noise=0.01)
        book = sf.Ledger("book")
        made = book.protect(prior, X, region, alpha=0.5, output_name=RELEASED, progress=False)
        made.release(y, output_name=RELEASED).save("good")
        # whoever has the file can take off the noise, and write what they like into it
        manifest, tensors = read_container("good", lambda version, manifest, shapes: manifest)
        finding = {"code": ORDERS, "severity": "high", "text": ORDERS, "remedy": ORDERS}
        claims = manifest["certificate"] | {"promise": ORDERS, "prior": ORDERS}
        claims["findings"] = [finding, *claims["findings"]]
        bare = tensors | {"noise_factor": 0.0 * tensors["noise_factor"]}
        Path("bare").write_bytes(container(manifest | {"certificate": claims}, bare))
        yield


slow = pytest.mark.slow

#: For each command: words, the exit code, what is to be seen whole; and whether it takes seconds.
CASES: list[Any] = [
    ("demo", ["--out", MARKUP], 2, [f"{MARKUP}/orbit.csv"]),
    ("rehearse", [*COMMON, *MINE], 2, []),
    pytest.param("rehearse", [*COMMON, *MINE, *ALPHA, "--figure", "rehearsed.png"], 0, [SPEED, MARKUP], marks=slow),
    (
        "protect",
        [*COMMON, *MINE, *ALPHA, "--no-rehearsal", "--ledger", "mine", "--out", "o[red]", "--csv", "o.csv"],
        0,
        [SPEED, MARKUP, "o[red]"],
    ),
    ("protect", [*COMMON, *MINE, *ALPHA, "--out", f"{ORDERS}/o"], 2, ["[red]"]),
    ("protect", [*COMMON, "--output", f"{OUTPUT}2", *ALPHA, "--out", "o"], 2, [SPEED, MARKUP]),
    ("protect", [*COMMON, *MINE, "--region", ORDERS, *ALPHA, "--out", "o"], 2, ["[red]"]),
    ("predict", ["good", "new.csv"], 0, [SPEED]),
    ("predict", ["good", OUTPUT], 2, [MARKUP]),
    ("certify", ["good"], 0, [SPEED]),
    ("certify", ["bare"], 1, [SPEED, "[red]"]),
    ("certify", [OUTPUT], 2, [MARKUP]),
    ("report", ["good", "--out", "a[-b].html", "--title", OUTPUT], 0, ["a[-b]"]),
    ("report", ["bare", "--out", "bare.html"], 1, []),
    ("audit", ["good", "--truth", "data.csv", "--output", "[/b]"], 2, [MARKUP, "[/b]", SPEED]),
    pytest.param("audit", ["good", "--truth", "data.csv", *MINE, "--figure", "a.png"], 0, [], marks=slow),
    (
        "tradeoff",
        [*COMMON, *MINE, "--alphas", 0.5, "--ways", "joint", "--figure", "t.png", "--csv", "t.csv"],
        0,
        [SPEED, MARKUP],
    ),
    ("suggest", [*COMMON, *MINE, *ALPHA, "--floor", 1], 2, []),
    pytest.param("suggest", [*COMMON, *MINE, *ALPHA, "--figure", "s.png"], 0, [SPEED, MARKUP], marks=slow),
    ("ledger show", ["book"], 0, [SPEED, MARKUP]),
    ("ledger show", ["book", "--region", ORDERS], 2, ["[red]"]),
    ("ledger verify", ["book"], 0, []),
    ("ledger verify", ["good"], 2, []),
    ("ledger verify", [OUTPUT], 2, [MARKUP]),
    ("studio", [OUTPUT], 2, [MARKUP]),
    ("studio", ["data.csv", "--choices", OUTPUT], 2, [MARKUP]),
    ("reproduce", [OUTPUT], 2, [MARKUP]),
    ("data", [OUTPUT, "x"], 2, [MARKUP]),
    ("data", ["census", OUTPUT], 2, [MARKUP]),
]
COMMANDS = sorted({getattr(case, "values", case)[0] for case in CASES})


def leaves(command: Any, *words: str) -> list[str]:
    """The commands below ``command``, as they are typed."""
    below = getattr(command, "commands", None)
    if below is None:
        return [" ".join(words)]
    return [leaf for name, one in below.items() for leaf in leaves(one, *words, name)]


def check(said: str) -> None:
    """No order to the terminal, and no line that somebody else wrote."""
    assert {letter for letter in said if not letter.isprintable()} <= {"\n"}
    assert "bug" not in said
    starts = [line.strip(" │") for line in said.splitlines()]
    assert FORGED not in starts
    assert not any(line.startswith(shown(f"{FORGED}\n")) for line in starts)


def test_nothing_but_one_file_writes_to_the_screen() -> None:
    source = Path(sf.__file__).parent
    for path in [*source.glob("cli/*.py"), *source.glob("paper/*.py")]:
        text = path.read_text(encoding="utf-8")
        assert path.name == "printing.py" or not re.search(r"\becho\(|\bprint\(|std(?:out|err)\.write", text), path


def test_there_is_a_case_for_every_command() -> None:
    assert sorted(leaves(typer.main.get_command(app))) == COMMANDS


@pytest.mark.parametrize(("command", "words", "code", "whole"), CASES)
def test_names_are_shown_as_text(command: str, words: list[object], code: int, whole: list[str]) -> None:
    result = run(*command.split(), *words)
    assert result.exit_code == code, result.output
    check(result.stdout)
    check(result.stderr)
    for name in whole:
        assert name in result.output


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wrong", [[f"--{OUTPUT}"], [f"--json={OUTPUT}"], [OUTPUT] * 9])
def test_what_is_typed_wrong_is_shown_as_text(command: str, wrong: list[str]) -> None:
    result = run(*command.split(), *wrong)
    assert result.exit_code == 2
    check(result.output)


def test_json_keeps_names_and_no_controls() -> None:
    result = run("ledger", "show", "book", "--json")
    assert answer(result)["releases"][0]["outputs"] == [RELEASED]
    check(result.stdout)


def test_a_long_name_begins_no_paragraph(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long, table = f"{'x' * 76} {FORGED} {'y' * 70} z", new_table("")
    say(long)
    table.title = long
    show_table(table)
    assert capsys.readouterr().out.strip() == "\n".join([f"{'x' * 76}\n  {FORGED}\n  {'y' * 70} z"] * 2)


def test_options_stay_as_they_are_in_names_of_files() -> None:
    assert "error: a--max_loss.csv does not exist" in run("ledger", "show", "a--max_loss.csv").stderr


def test_cells_that_a_spreadsheet_would_run_are_quoted_and_read_again() -> None:
    t = np.linspace(0.0, 3.0, 12)
    names = {"=1+1": t, "@site": np.where(np.arange(12) % 2, "=cmd", "-x"), "+y": np.sin(t)}
    pd.DataFrame(names).to_csv("run.csv", index=False)
    where = ["--region", "1 <= `=1+1` <= 2 and `@site` = '=cmd'", "--noise", 0.01, "--lengthscale", 0.6]
    words = ["--inputs", "=1+1,@site", "--output", "+y", *where, *ALPHA, "--no-rehearsal", "--out", "run"]
    result = done(run("protect", "run.csv", *words, "--csv", "public.csv"))
    assert "note: public.csv: a spreadsheet would run '-x', '=cmd', '=1+1', '@site' and 1 more" in result.stderr
    written = Path("public.csv").read_text(encoding="utf-8").splitlines()
    assert written[0] == "'=1+1,'@site,'+y"
    assert [line.split(",")[1] for line in written[1:3]] == ["'-x", "'=cmd"]
    table = done(run("predict", "run", "public.csv")).stdout.splitlines()
    assert table[0] == "'=1+1,'@site,mean,std"
    assert len(table) == 13


#: What Rich may order: colours and weights; its cursor, while a bar is shown.
OWN_ORDERS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)")


def test_names_give_no_orders_to_a_real_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sfumato.progress.PATIENCE", 0.0)
    ours, theirs = pty.openpty()
    said: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # Linux says so when the other side is closed
            while part := os.read(ours, 65536):
                said.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    with open(theirs, "w", encoding="utf-8") as screen:
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setattr(sys, "stderr", screen)
        with pytest.raises(SystemExit, match="1"):
            app(["certify", "bare"], prog_name="sfumato")
    reader.join(timeout=30)
    os.close(ours)
    whole = b"".join(said).decode()
    assert "\x1b[1" in whole  # the verdict, in bold
    check(OWN_ORDERS.sub("", whole).replace("\r", ""))
