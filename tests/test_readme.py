"""The examples on the README and in docs/ run as they are printed."""

from __future__ import annotations

import functools
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_line import answer, done, refused, run
from sfumato.cli.demo import _make as make_demo

ROOT = Path(__file__).resolve().parents[1]
# The tutorials are run as programs: tests/test_docs.py.
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The blocks of a page build on each other, as a reader would type them.
    names: dict[str, Any] = {"__name__": "example"}
    for number, block in enumerate(blocks(page, "python")):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)
    if page.name == "README.md":  # what should be is blurred, and little else
        outside, inside = names["reader"].predict([0.2, 1.5]).std
        assert inside > 1.5 * outside


def test_readme_has_a_python_example_of_under_twenty_lines() -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    assert 8 <= sum(bool(line.strip()) for line in example.splitlines()) < 20


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """The folder that ``sfumato demo`` wrote as the README has it, and what it said. It takes long, so once for all."""
    folder, once = tmp_path_factory.mktemp("readme"), functools.cache(make_demo)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("sfumato.cli.demo._make", lambda out, _: once(Path(out).resolve(), False))
        yield folder, done(run("demo"))


def test_readme_commands_run_in_order(demo: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo[0])
    text = "\n".join(blocks(ROOT / "README.md", "sh")).replace("\\\n", " ")
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("sfumato ")]
    assert len(commands) >= 4
    assert commands.pop(0) == ["sfumato", "demo"]
    for command in commands:
        done(run(*command[1:]))


def test_demo_writes_all_its_files_and_its_commands_work(demo: tuple[Path, Any]) -> None:
    folder, said = demo[0] / "demo", demo[1].stdout
    assert "The promise holds." in said
    assert "An orbit is predictable." in said
    names = ["coasting.csv", "coasting.sfumato", "new.csv", "orbit.csv", "orbit.png", "orbit.sfumato", "report.html"]
    names += ["truth.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / "orbit.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    private = {path.name for path in folder.iterdir() if stat.S_IMODE(path.stat().st_mode) == 0o600}
    assert private == {"coasting.csv", "orbit.png", "truth.csv"}  # the truth is in them
    assert len(pd.read_csv(folder / "orbit.csv")) == 61
    assert "sfumato certify demo/orbit.sfumato" in said
    done(run("certify", folder / "orbit.sfumato"))
    done(run("predict", folder / "orbit.sfumato", folder / "new.csv"))
    steers, paper, repeating = answer(run("demo", "--out", folder, "--json", "--replace"))["priors"]
    # what the demo says: the paper's prior hides nothing of an orbit that repeats, and the others keep their floors
    assert paper["rival_inside"] < 0.1
    assert min(steers["rival_inside"], repeating["rival_inside"]) > 0.9
    assert repeating["error_outside"] > 4 * paper["error_outside"]
    refused(run("demo", "--out", folder / "new.csv"), "is a file")
    refused(run("demo", "--out", folder), "truth.csv is there already", "--replace")


def test_commands_for_several_outputs_and_releases_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    t = np.linspace(0.0, 3.0, 31)
    # a function that nobody can foresee, from the prior of the commands, and its derivative
    random, turns = np.random.default_rng(0), np.random.default_rng(1).normal(size=(200, 1)) / 0.5
    cosines, sines = random.normal(size=(2, 200)) / np.sqrt(200)
    r = cosines @ np.cos(turns * t) + sines @ np.sin(turns * t)
    v = (turns[:, 0] * sines) @ np.cos(turns * t) - (turns[:, 0] * cosines) @ np.sin(turns * t)
    errors = 0.1 * random.normal(size=(2, 31))
    pd.DataFrame({"t": t, "r": r + errors[0], "v": v + errors[1]}).to_csv("orbit.csv", index=False)
    pd.DataFrame({"t": [0.5, 1.5]}).to_csv("new.csv", index=False)
    year = np.arange(1960.0, 2020.0)
    first, second = random.normal(size=(2, 60)).cumsum(axis=1) / 2
    pd.DataFrame({"year": year, "infl": 4 + first, "unemp": 6 - first + second}).to_csv("economy.csv", index=False)
    text = "\n".join(blocks(ROOT / "docs" / "several.md", "sh")).replace("\\\n", " ")
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("sfumato ")]
    assert len(commands) >= 8
    for command in commands:
        done(run(*command[1:]))
