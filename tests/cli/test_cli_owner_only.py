"""What was made with the truth is for its owner: nobody else can read the file, and it says so where one begins."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

import sfumato as sf
from command_line import answer, done, run
from kernels import matern
from sfumato.cli.options import save_figure
from sfumato.data import write_table
from sfumato.files import OWNER_ONLY

T = np.linspace(0.0, 3.0, 13)
HOW = ("--inputs", "t", "--output", "r", "--region", "1 <= t <= 2", "--lengthscale", "0.4", "--noise", "0.01")
EXISTING = ("mine.html", "mine.png", "mine.svg", "mine.pdf", "mine.csv", "mine.parquet")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A release, its truth, and files that anyone can read where the owner's will be; the umask hides nothing."""
    frame = pd.DataFrame({"t": T, "r": np.sin(3.0 * T)})
    frame.to_csv(tmp_path / "truth.csv", index=False)
    mechanism = sf.protect(sf.Prior(matern(0.4), noise=0.01), frame[["t"]], sf.Box({"t": (1.0, 2.0)}), alpha=0.3)
    mechanism.release(frame["r"], output_name="r").save(tmp_path / "a.sfumato")
    before = os.umask(0)
    try:
        for name in EXISTING:
            (tmp_path / name).write_text("<!doctype html>" if name.endswith("html") else "old")
            assert mode(tmp_path / name) == 0o666
        yield tmp_path
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_owners_files_are_private_and_say_so_and_others_stay_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, release, drawn = folder / "truth.csv", folder / "a.sfumato", list[Figure]()
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *to, **how: (drawn.append(figure), save(figure, *to, **how)))

    run("report", release, "--out", folder / "mine.html", "--truth", truth, "--replace")
    page = (folder / "mine.html").read_text(encoding="utf-8")
    assert page.splitlines()[0] == f"<!doctype html><!-- {OWNER_ONLY} -->"
    drawn.clear()
    pictures = ("--json", "--replace", "--figure")
    audited = run("audit", release, "--truth", truth, "--draws", 2, *pictures, folder / "mine.png")
    rehearsed = run("rehearse", truth, *HOW, "--alpha", 0.3, *pictures, folder / "mine.svg")
    save_figure(Figure(), folder / "mine.pdf", private=True)
    for result in (audited, rehearsed):
        assert result.stdout.startswith('{\n  "owner_only": true')
    with Image.open(folder / "mine.png") as picture:
        assert picture.info["Title"] == OWNER_ONLY
    assert f"<dc:title>{OWNER_ONLY}</dc:title>" in (folder / "mine.svg").read_text(encoding="utf-8")
    assert OWNER_ONLY.encode() in (folder / "mine.pdf").read_bytes()
    texts = [[text.get_text() for text in figure.findobj(Text)] for figure in drawn]
    assert [sum(OWNER_ONLY in text for text in shown) for shown in texts] == [1, 1, 1]  # on the picture, once
    compared = ("tradeoff", truth, *HOW, "--alphas", 0.5, "--ways", "joint", "--replace", "--json", "--csv")
    assert next(iter(answer(run(*compared, folder / "mine.csv", "--measured")))) == "owner_only"
    table = pd.read_csv(folder / "mine.csv")
    write_table(table[["way"]], folder / "mine.parquet", private=True)
    assert table.columns[0] == pd.read_parquet(folder / "mine.parquet").columns[0] == "owner_only"
    assert {name: oct(mode(folder / name)) for name in EXISTING} == dict.fromkeys(EXISTING, "0o600")

    # what readers get, and what uses no truth, is as the umask says
    done(run(*compared, folder / "all.csv", "--figure", folder / "all.png"))
    assert "owner_only" not in pd.read_csv(folder / "all.csv")
    sf.load(release).save(folder / "all.sfumato")
    sf.report(release, folder / "all.html", progress=False)
    assert OWNER_ONLY not in (folder / "all.html").read_text(encoding="utf-8")
    assert {mode(folder / f"all.{ending}") for ending in ("csv", "png", "sfumato", "html")} == {0o666}


def test_a_private_file_is_never_open_to_others_not_even_while_it_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def to_csv(table: pd.DataFrame, file: object, **how: object) -> None:
        seen.extend(mode(path) for path in folder.glob(".sfumato-*.tmp"))

    monkeypatch.setattr(pd.DataFrame, "to_csv", to_csv)
    for umask in (0, 0o777):
        os.umask(umask)
        write_table(pd.DataFrame({"a": [1]}), folder / "mine.csv", private=True)
    assert seen == [0o600, 0o600]
