"""Ledgers on the command line: several releases of one secret, what they leave, and files that were changed."""

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
DERIVATIVE = ["--output", "r", "--output", "v", "--relation", "v = d(r)/d(t)", "--output-noise", "v=0.01"]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return tmp_path / "orbit.ledger"


@pytest.fixture
def protect(tmp_path: Path, book: Path) -> Run:
    """``protect --ledger`` of a small table into a file of its own, with ``--output r`` if nothing else is said."""
    t = np.linspace(0.0, 3.0, 21)
    data = tmp_path / "orbit.csv"
    pd.DataFrame({"t": t, "r": np.sin(2 * t), "v": 2 * np.cos(2 * t)}).to_csv(data, index=False)

    def call(name: str, *words: object, output: tuple[object, ...] = ("--output", "r"), alpha: float = 0.5) -> Any:
        common = ["--inputs", "t", "--lengthscale", 0.6, "--noise", 0.01, "--region", "1 <= t <= 2", "--alpha", alpha]
        return run(
            "protect", data, "--no-rehearsal", *common, *output, "--ledger", book, "--out", tmp_path / name, *words
        )

    return call


def test_three_releases_keep_one_promise_and_show_says_what_is_left(protect: Run, book: Path, tmp_path: Path) -> None:
    for number, counted in enumerate(("1 release", "2 releases", "3 releases"), 1):
        result = done(protect(f"{number}.sfumato", "--share", 0.4))
        assert f"{counted}\nhead  {sf.Ledger(book).head}" in result.stdout
        assert "of the tolerance is left" in result.stdout
    ledger = sf.Ledger(book)
    assert len(ledger) == 3
    assert ledger.certificate(sf.parse_region("1 <= t <= 2", ["t"])).holds
    assert ledger.remaining().left == pytest.approx(0.6**3, abs=0.02)
    assert {one.name for one in ledger.releases} == {"r"}

    shown = done(run("ledger", "show", book)).stdout
    assert "orbit.ledger: 3 releases" in shown
    assert shown.count("readers keep at least 0.5 of the prior variance") == 3
    assert f"{ledger.remaining().left:.1%} of the tolerance is left after 3 releases" in shown

    figure = tmp_path / "left.png"
    made = answer(run("ledger", "show", book, "--json", "--figure", figure))
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [one["number"] for one in made["releases"]] == [1, 2, 3]
    assert made["releases"][0]["outputs"] == ["r"]
    assert made["releases"][0]["rows"] == 21
    assert made["releases"][0]["noise_a_row"] > 0
    assert made["remaining"]["promises"][0]["history"] == sorted(made["remaining"]["promises"][0]["history"])
    assert (made["torn"], made["head"]) == (False, ledger.head)


def test_show_about_one_region(protect: Run, book: Path) -> None:
    done(protect("1.sfumato"))
    done(run("ledger", "show", book, "--region", "1 <= t <= 2"))
    done(run("ledger", "show", book, "--region", "r: 1 <= t <= 2"))
    refused(run("ledger", "show", book, "--region", "t <= 1"), "the ledger has no promise", "1 ≤ t ≤ 2")
    refused(run("ledger", "show", book, "--region", "u <= 1"), "unknown column 'u'")
    refused(run("ledger", "show", book, "--figure", "left.gif"), "--figure left.gif", ".png")
    refused(run("ledger", "show", book, "--figure", book.parent / "away" / "x.png"), "does not exist")


def test_json_of_protect_has_the_ledger(protect: Run, book: Path) -> None:
    made = answer(protect("1.sfumato", "--json", "--remeasured"))["ledger"]
    assert (made["file"], made["releases"], made["head"]) == (str(book), 1, sf.Ledger(book).head)
    assert made["left"] == pytest.approx(0.5, abs=0.02)
    assert sf.Ledger(book).releases[0].remeasured


def test_a_used_up_budget_is_exit_code_1_and_nothing_is_written(protect: Run, book: Path, tmp_path: Path) -> None:
    done(protect("1.sfumato", "--share", 0.9))
    before = book.read_bytes()
    # a stronger promise than the first release has left room for
    refused(protect("2.sfumato", "--csv", tmp_path / "2.csv", alpha=0.1), "nothing is left", code=1)
    assert book.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.sfumato", "orbit.csv", "orbit.ledger"]


def test_several_outputs_in_a_ledger(protect: Run, book: Path) -> None:
    for number in (1, 2):
        done(protect(f"{number}.sfumato", output=(*DERIVATIVE,)))
    made = answer(run("ledger", "show", book, "--json"))
    assert [one["outputs"] for one in made["releases"]] == [["r", "v"], ["r", "v"]]
    assert made["remaining"]["holds"] is True
    done(run("ledger", "show", book, "--region", "1 <= t <= 2"))
    done(run("ledger", "show", book, "--region", "r: 1 <= t <= 2", "--region", "v: 1 <= t <= 2"))
    refused(run("ledger", "show", book, "--region", "v: 1 <= t <= 2"), "the ledger has no promise")


def test_show_about_a_quantity_without_inputs(protect: Run, book: Path) -> None:
    relation = ("--relation", "m = mean(r where 1 <= t <= 2)", "--region", "m")
    done(protect("1.sfumato", output=("--output", "r", *relation)))
    done(run("ledger", "show", book, "--region", "1 <= t <= 2", "--region", "m"))
    refused(run("ledger", "show", book, "--region", "m"), "the ledger has no promise")


def test_verify_says_the_head_and_finds_lines_that_were_taken_away(protect: Run, book: Path) -> None:
    done(protect("1.sfumato"))
    early = book.read_bytes()
    done(protect("2.sfumato"))
    head = sf.Ledger(book).head
    result = done(run("ledger", "verify", book))
    assert "2 releases, every entry as it was written." in result.stdout
    assert f"head  {head}" in result.stdout
    assert "TORN" not in result.stdout
    assert "nothing that was before it was taken away" in done(run("ledger", "verify", book, "--head", head)).stdout
    book.write_bytes(early)
    done(run("ledger", "verify", book))
    refused(run("ledger", "verify", book, "--head", head), "lines at its end were taken away")
    refused(run("ledger", "verify", book, "--head", "abc"), "head is 'abc'", "64 hexadecimal digits")


def test_a_torn_line_is_said_loudly_and_is_no_error(protect: Run, book: Path) -> None:
    done(protect("1.sfumato"))
    whole = book.read_bytes()
    book.write_bytes(whole + whole[100:200].replace(b"\n", b""))
    for command in ("verify", "show"):
        assert "TORN: 100 bytes" in done(run("ledger", command, book)).stdout
    made = answer(run("ledger", "verify", book, "--json"))
    assert made["torn"]["bytes"] == 100
    assert made["releases"] == 1
    assert "TORN: 100 bytes" in done(protect("2.sfumato")).stderr
    made = answer(run("ledger", "verify", book, "--json"))
    assert (made["torn"], made["interrupted_before"], made["releases"]) == (None, 1, 2)


def test_a_changed_or_foreign_file_is_refused_as_a_damaged_release_is(protect: Run, book: Path, tmp_path: Path) -> None:
    done(protect("1.sfumato"))
    honest = book.read_bytes()
    book.write_bytes(honest.replace(b'"alpha":0.5', b'"alpha":0.9'))
    assert book.read_bytes() != honest
    for command in ("verify", "show"):
        refused(run("ledger", command, book), "does not match its hash")
    refused(protect("2.sfumato"), "does not match its hash")
    assert not (tmp_path / "2.sfumato").exists()
    book.write_text("no ledger\n")
    refused(run("ledger", "verify", book), "does not start like a sfumato ledger")
    refused(run("ledger", "verify", tmp_path / "none.ledger"), "does not exist")
    refused(run("ledger", "show", tmp_path), "is not a file")


def test_a_release_that_cannot_be_written_counts_as_published(
    protect: Run, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "1.sfumato")

    monkeypatch.setattr("sfumato.release.release.write_release", fail)
    result = protect("1.sfumato")
    assert result.exit_code == 2
    assert f"note: the ledger {book} counts this release as published" in result.stderr
    assert "error: 1.sfumato: No space left on device" in result.stderr
    assert len(sf.Ledger(book)) == 1


def test_the_ledger_is_never_written_over(protect: Run, book: Path, tmp_path: Path) -> None:
    refused(protect("orbit.ledger"), "--out and --ledger are both")
    refused(protect("1.sfumato", "--csv", book), "--csv and --ledger are both")
    refused(protect("1.sfumato", "--ledger", tmp_path / "orbit.csv"), "is what the command reads")
    refused(protect("1.sfumato", "--share", 2), "share is 2")
    refused(protect("1.sfumato", "--device", "cpu"), "device is given")
    assert not book.exists()
    assert not (tmp_path / "1.sfumato").exists()
    assert "no promise" not in run("ledger", "--help").stdout
    assert "Examples" in run("ledger", "show", "--help").stdout
