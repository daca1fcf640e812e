"""What the system does to a command (full disks, closed pipes, interrupts) ends in a sentence and an exit code."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import gpytorch
import numpy as np
import pytest

import sfumato
from command_line import refused, run
from sfumato.__main__ import main

PROGRAM = """
import os, signal, sys, typer
signal.signal(signal.SIGINT, signal.default_int_handler)  # as on a terminal: tests may run where it is ignored
from sfumato.cli.command import add_command, exit_by
from sfumato.files import replacing

def say(text: str = "x" * 10_000, times: int = 30, verdict: str = "publish") -> None:
    for _ in range(times):
        typer.echo(text)
    exit_by(verdict)

def interrupted() -> None:
    with replacing("a.txt") as file:
        file.write(b"half")
        os.kill(os.getpid(), signal.SIGINT)

def fills() -> None:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
    with replacing("a.txt") as file:
        file.write(bytes(1_000_000))

def reads() -> None:
    open("nowhere").read()

app = typer.Typer(pretty_exceptions_enable=False)
for command in (say, interrupted, fills, reads):
    add_command(app, command, [])
app(prog_name="sfumato")
"""

pytestmark = [pytest.mark.processes, pytest.mark.skipif(os.name != "posix", reason="signals and /dev/full")]


def called(folder: Path, *words: str, shell: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    source = {"PYTHONPATH": str(Path(sfumato.__file__).parents[1])}
    if shell:
        command = ["bash", "-o", "pipefail", "-c", f'"$@" {shell}', "bash", *command]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, env=os.environ | source)


@pytest.mark.parametrize(
    ("words", "shell", "code", "said"),
    [
        (["say", "--times", "1"], "> /dev/full", 2, "what is printed, or a file: No space left"),
        (["say", "--times", "1", "--verdict", "do not publish"], "> /dev/full", 2, "No space left on device"),
        (["say"], "> /dev/full", 2, "No space left on device"),
        (["say", "--verdict", "do not publish"], "| head -c 10", 141, ""),
        (["say", "--verdict", "do not publish"], ">&-", 1, ""),
        (["reads"], "", 2, "nowhere: No such file or directory. See that it can be read"),
        (["interrupted"], "", 130, "interrupted; no file was left half written."),
        (["fills"], "", 2, "'a.txt' cannot be written: the file is larger than is allowed here (File too large)"),
    ],
)
def test_the_system_fails_and_the_command_says_so_in_a_line(
    tmp_path: Path, words: list[str], shell: str, code: int, said: str
) -> None:
    (tmp_path / "a.txt").write_text("old")
    result = called(tmp_path, *words, shell=shell)
    assert (result.returncode, len(result.stderr.splitlines())) == (code, bool(said)), result.stderr
    assert said in result.stderr
    assert (tmp_path / "a.txt").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    table, loop, pipe = tmp_path / "a.csv", tmp_path / "loop.csv", tmp_path / "pipe.csv"
    table.write_text("t,r\n1,2\n")
    loop.symlink_to("loop.csv")
    os.mkfifo(pipe)
    how = ("--inputs", "t", "--output", "r", "--region", "t > 1", "--alpha", 0.5, "--replace", "--out")
    for wrong in (loop, pipe):
        for words in (
            ("certify", wrong),
            ("predict", wrong, table),
            ("report", wrong, "--out", tmp_path / "a.html"),
            ("ledger", "verify", wrong),
            ("protect", wrong, *how, tmp_path / "a.sfumato"),
            ("protect", table, *how, wrong),
            ("protect", table, *how, tmp_path / "a.sfumato", "--csv", wrong),
        ):
            refused(run(*words), str(wrong))
    assert pipe.is_fifo()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_screen_without_our_letters_shows_their_numbers(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.linspace(0, 1, 5)[:, None]
    prior = sfumato.Prior(gpytorch.kernels.RBFKernel().double(), noise=0.1)
    design = sfumato.protect(prior, X, sfumato.Box(0, 0.5), alpha=0.5, progress=False)
    design.release(3 * np.cos(9 * X[:, 0]), output_name="größe ≤ 速度").save(tmp_path / "a.sfumato")
    for words, part in [(["certify", "a.sfumato"], "\\u2264"), (["protect", "--help"], "\\u2026")]:
        written = io.BytesIO()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["sfumato", *words])
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
        with pytest.raises(SystemExit) as end:
            main()
        sys.stdout.flush()
        assert end.value.code == 0
        assert part in written.getvalue().decode(encoding) or (encoding, part) == ("cp1252", "\\u2026")
