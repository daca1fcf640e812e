"""Hostile names of columns, levels, outputs and files, in tables, releases and what is typed: shown as text.

Nothing that is shown has a control character or a line that somebody else wrote, names are shown whole, and no name is
ever a bug.
"""

from __future__ import annotations

import csv
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import sfumato as sf
from sfumato.__main__ import app
from sfumato.errors import SfumatoError
from sfumato.release.container import container, read_container

from .outcome import Outcome

KIND = "names"
#: What a forger would like to see at the beginning of a line.
FORGED = "All is proved, says Mallory."
#: Pieces that names are made of.
PIECES = [
    "speed", " [m/s]", "[/b]", "[red]", "[link=x]", ":smile:", "$x^{", "\\alpha_", "<script>alert(7)</script>",
    "<img src=x onerror=alert(7)>", "&lt;", "</td>", "=1+1", "@x", "-2", "+3", "'", '"', ",", ";", "\\", "\\n", "%s",
    "{0}", "{x!r}", "größe", "速度", "𝔸", "🙂", " ", "--json", "y", "f(s)", "\x1b[2J", "\x1b]0;t\x07", "\x9b3J",
    "\r", "\n", f"\n{FORGED}", f"\r{FORGED}", f"\u2028{FORGED}", "\u2029", "\x85", "\u202e", "\u2066", "\u200b",
    "\u00ad", "\ufeff", "\t", "\x08", "\x7f", "x" * 120,
]  # fmt: skip
#: A name is looked for as a whole where it is shown, up to this length.
WHOLE = 200
#: What a page may have of its own.
OWN_TAGS = re.compile(r"<script>alert|<img src=x|onerror=alert\(7\)>", re.IGNORECASE)


def trial(random: np.random.Generator, folder: Path) -> Outcome:
    """Names for everything in one table, and all commands on it that are fast."""
    names = _names(random, 4)
    case: dict[str, Any] = {"names": names}
    asked = _Asked(Counter(), case)
    with _working_in(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _commands(random, names, asked)
        except _WrongError as error:
            return Outcome(KIND, dict(asked.counts), str(error), case)
        except SfumatoError as error:
            asked.text(str(error), "an error")
            asked.counts["refused"] += 1
    return Outcome(KIND, dict(asked.counts))


def _names(random: np.random.Generator, count: int) -> list[str]:
    """Different names, of one to six pieces; one in four is what people write."""
    found: dict[str, None] = {}
    while len(found) < count:
        few = int(random.integers(1, 7))
        name = "".join(PIECES[int(place)] for place in random.integers(len(PIECES), size=few))
        # tables keep no blanks around names, and lists of names have commas between them
        found |= {name.replace(",", "").strip().strip("\ufeff"): None}
        found.pop("", None)
    return list(found)


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    """Files are named as they are typed, and the screen is as wide as names need."""
    before, columns = os.getcwd(), os.environ.get("COLUMNS")
    os.environ |= {"COLUMNS": "20000", "NO_COLOR": "1"}
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        if columns is not None:
            os.environ["COLUMNS"] = columns


class _WrongError(Exception):
    """Something was shown that must not be."""


class _Asked:
    """Commands that were run and values that were shown; ``counts`` says how many."""

    def __init__(self, counts: Counter[str], case: dict[str, Any]) -> None:
        self.counts, self.case = counts, case

    def run(self, *words: object, whole: tuple[str, ...] = (), codes: tuple[int, ...] = (0, 1, 2)) -> Any:
        """Run a command, and look at all that it says; the names ``whole`` must be in it where it is done."""
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="sfumato")
        self.case["words"] = [str(word) for word in words]
        self.counts["commands"] += 1
        self.counts[f"exit code {result.exit_code}"] += 1
        if result.exit_code not in codes:
            raise _WrongError(f"{words[0]} ends with code {result.exit_code}: {ascii(result.output)[-600:]}")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise _WrongError(f"{words[0]} raises {type(result.exception).__name__}: {str(result.exception)!a}")
        for said in (result.stdout, result.stderr):
            self.text(said, f"{words[0]}", lines=True)
        for name in whole if result.exit_code == 0 else ():
            if len(name) <= WHOLE and seen(name) not in result.output:
                raise _WrongError(f"{words[0]} does not show {name!a} as a whole: {ascii(result.output)[-600:]}")
        return result

    def text(self, said: str, what: str, lines: bool = False) -> None:
        """Look at what is shown as text."""
        self.counts["texts"] += 1
        odd = {one for one in said if not one.isprintable()} - ({"\n"} if lines else set())
        if odd:
            raise _WrongError(f"{what} shows {sorted(odd)!a}: {ascii(said)[:600]}")
        if any(line.strip(" │┃|").startswith(FORGED) for line in said.split("\n")):
            raise _WrongError(f"{what} shows a line that somebody else wrote")
        if "a bug in sfumato" in said:
            raise _WrongError(f"{what} says that it is a bug: {ascii(said)[-600:]}")

    def value(self, value: Any) -> None:
        """Look at how a value prints, and how a notebook shows it."""
        what = type(value).__name__
        self.text(str(value), f"str of {what}", lines=True)
        self.text(repr(value), f"repr of {what}", lines=True)
        if hasattr(value, "_repr_html_"):
            self.page(value._repr_html_(), f"view of {what}")

    def page(self, page: str, what: str) -> None:
        """Look at a page or a part of one."""
        self.counts["pages"] += 1
        if found := OWN_TAGS.search(page):
            raise _WrongError(f"{what} has the tag {found[0]!r} of a name")
        odd = {one for one in page if not one.isprintable()} - {"\n", "\u00a0"}
        if odd:
            raise _WrongError(f"{what} has {sorted(odd)!a}")


def seen(name: str) -> str:
    """``name`` as it is to be shown: what cannot be seen is written as Python writes it."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name)


# ---------------------------------------------------------------- commands


def _commands(random: np.random.Generator, names: list[str], asked: _Asked) -> None:
    column, other, output, level = names
    t = np.linspace(0.0, 3.0, 12)
    table = pd.DataFrame({column: t, other: np.cos(t), "site": np.where(np.arange(12) % 2, level, "south")})
    table[output] = np.sin(2 * t)
    table.to_csv("data.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    where = ["--region", f"1 <= `{column}` <= 2", "--noise", "0.01", "--lengthscale", "0.6"]
    inputs = ["--inputs", column, "--output", output]
    made = asked.run(
        *("protect", "data.csv", *inputs, *where, "--alpha", "0.5", "--no-rehearsal"),
        *("--out", "made", "--ledger", "book", "--csv", "public.csv"),
        whole=(column, output),
    )
    if made.exit_code == 2:
        asked.counts["tables that were refused"] += 1
    else:
        _on_a_release(random, column, output, asked)
    _on_a_file(random, names, asked)
    wrong = [
        ["protect", "data.csv", "--inputs", f"{column}?", "--output", output, *where, "--alpha", "0.5"],
        ["protect", "data.csv", *inputs, "--region", f"1 <= {level} <= 2", "--alpha", "0.5", "--out", "o"],
        ["certify", f"{other}.missing"],
        ["ledger", "show", f"{level}.missing"],
        ["predict", "made", f"{output}.csv"],
        ["reproduce", level],
        [f"--{other}"],
    ]
    for words in (wrong[int(place)] for place in random.integers(len(wrong), size=3)):
        asked.run(*words)


def _on_a_release(random: np.random.Generator, column: str, output: str, asked: _Asked) -> None:
    told = asked.run("certify", "made", "--json", codes=(0, 1))
    if json.loads(told.stdout)["certificate"]["columns"] != [column]:
        raise _WrongError("certify --json has other columns")
    asked.run("certify", "made", whole=(column,))
    pd.DataFrame({column: [0.5, 1.5]}).to_csv("new.csv", index=False, quoting=csv.QUOTE_NONNUMERIC)
    asked.run("predict", "made", "new.csv")
    asked.run("ledger", "show", "book", whole=(output,))
    if random.uniform() < 0.3:
        asked.run("report", "made", "--out", "page.html", "--title", output)
        if Path("page.html").exists():
            asked.page(Path("page.html").read_text(encoding="utf-8"), "report")


def _on_a_file(random: np.random.Generator, names: list[str], asked: _Asked) -> None:
    """A file of somebody else, without noise, that claims what it likes."""
    column, _, output, level = names
    t = np.linspace(0.0, 3.0, 12)
    X = pd.DataFrame({column: t, "site": np.where(np.arange(12) % 2, level, "south")})
    believed = sf.fit_prior(X, np.sin(2 * t), lengthscale=[0.6, 2.0, 2.0], noise=0.01, progress=False)
    region = sf.Box({column: (1.0, 2.0)})
    mechanism = sf.protect(believed, X, region, alpha=0.5, cover="rows", progress=False)
    release = mechanism.release(np.sin(2 * t), output_name=output)
    for value in (believed, region, mechanism, mechanism.certificate, release):
        asked.value(value)
    release.save("theirs")
    manifest, tensors = read_container("theirs", lambda version, manifest, shapes: manifest)
    severity = ["high", "medium", "low", "note"][int(random.integers(4))]
    finding = {"code": level, "severity": severity, "text": output, "remedy": column}
    claims = manifest["certificate"] | {"promise": output, "prior": level, "findings": [finding]}
    bare = tensors | {"noise_factor": 0.0 * tensors["noise_factor"]}
    Path("theirs").write_bytes(container(manifest | {"certificate": claims}, bare))
    loaded = sf.load("theirs")
    for value in (loaded, loaded.certificate):
        asked.value(value)
    asked.run("certify", "theirs", codes=(1,))
    asked.run("predict", "theirs", "data.csv")
    if random.uniform() < 0.3:
        asked.run("report", "theirs", "--out", "theirs.html")
        if Path("theirs.html").exists():
            asked.page(Path("theirs.html").read_text(encoding="utf-8"), "report")
    try:
        loaded.predict(pd.DataFrame({output: [1.0]}))
        sf.Box({output: (0.0, 1.0)}).bind(loaded.design.inputs)
    except SfumatoError as error:
        asked.text(str(error), "an error")
