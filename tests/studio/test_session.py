"""The session: what was wrong changes nothing, what was changed forgets what depended on it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.studio.choices import MARK, Choices
from sfumato.studio.decisions import decided
from sfumato.studio.session import Session

TABLE = "t,place,house,y\n" + "".join(f"{i / 8},{'ab'[i % 2]},h{i // 2},{(i * 7) % 5}.5\n" for i in range(16))


def opened(**choices: Any) -> Session:
    session = Session()
    session.open_upload("x.csv.gz", gzip.compress(TABLE.encode()))
    session.choose(inputs=["t"], output="y", **choices)
    return session


def finished(job: Any) -> Any:
    assert job.wait(60.0)
    return job


@pytest.mark.parametrize(
    "entries",
    [
        {"regions": ["t <="]},
        {"regions": ["z >= 1"]},
        {"encoding": "zlib"},
        {"sep": "::"},
        {"decimal": "x"},
        {"value": 1.5},
        {"source": "demo", "data": "moon"},
        {"source": "file", "data": "moon.exe", "regions": ["z >= 1"]},
        {"source": "file", "data": "x" * 9000, "value": 7.0},
        {"data": "a\0b", "value": 7.0},
        {"ledger": "../x.ledger"},
    ],
)
def test_choices_that_cannot_be_leave_all_as_it_was(entries: dict[str, Any]) -> None:
    session = opened(regions=["1 <= t <= 1.5"])
    before, table, region = session.choices, session.table, session.region
    with pytest.raises((sf.InputError, sf.FormatError)):
        session.open_choices(Choices.from_json(json.dumps({MARK: 1, "inputs": ["t"], "output": "y", **entries})))
    assert session.choices == before
    assert session.table is table
    assert session.region is region
    assert session.rows == 16


def test_saved_choices_go_with_the_table_that_is_open() -> None:
    saved = opened(regions=["1 <= t <= 1.5"], insiders="house").choices.to_json()
    with pytest.raises(sf.InputError, match="open that table first"):
        Session().open_choices(Choices.from_json(saved))
    session = opened()
    session.open_choices(Choices.from_json(saved))
    assert session.choices.to_json() == saved
    assert session.insiders[:3] == ["h0", "h0", "h1"]
    assert session.inside.sum() == 5


def test_a_file_that_choices_name_is_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(TABLE)
    first, second = Session(), Session()
    first.open_path(file)
    first.choose(inputs=["t", "place"], output="y", regions=["place = a"], sep=",")
    second.open_choices(first.choices)
    assert second.choices == first.choices
    assert second.X.equals(first.X)


def test_columns_that_do_not_go_together_are_no_error_but_trouble() -> None:
    session = opened()
    assert session.trouble == ""
    for changes, said in (
        ({"output": "t"}, "an input too"),
        ({"output": "place"}, "not a number"),
        ({"output": "house", "inputs": ["t"]}, "not a number"),
        ({"inputs": [], "output": "y"}, "Choose inputs"),
        ({"inputs": ["t", "t"]}, "more than once"),
        ({"inputs": ["t"], "insiders": "nobody"}, "no column"),
    ):
        session.choose(**changes)
        assert said in session.trouble
        assert session.rows == 0
        with pytest.raises(sf.InputError):
            _ = session.X
    session.choose(insiders=None)
    assert session.trouble == ""


def test_a_ledger_and_insiders_are_refused_as_the_command_refuses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that forgot the insiders would keep another promise than was asked for."""
    monkeypatch.chdir(tmp_path)
    session = opened(regions=["1 <= t <= 1.5"], insiders="house", ledger="x.ledger", protects="records", noise="0.1")
    session.start_fit()
    finished(session.fit)
    session.start_check()
    assert finished(session.check).state == "failed"
    assert "insiders" in session.check.error
    assert list(tmp_path.iterdir()) == []


def test_arrays_and_tables_of_a_notebook_have_names() -> None:
    session, t = Session(), np.linspace(0.0, 1.0, 9)
    session.open_arrays(t, t**2)
    assert (session.choices.inputs, session.choices.output, session.choices.source) == (("x",), "y", "notebook")
    session.open_arrays(
        pd.DataFrame({"a": t, 3: t}, index=list("abcdefghi")), pd.Series(t, list("ihgfedcba"), name="b")
    )
    assert session.choices.inputs == ("a", "3")
    assert session.y.tolist() == t[::-1].tolist()  # by their labels
    with pytest.raises(sf.InputError, match="another name"):
        session.open_arrays(pd.DataFrame({"y": t}), t)


def test_another_table_of_the_same_name_gets_nothing_that_was_made_of_the_first(tmp_path: Path) -> None:
    def table(scale: float) -> bytes:
        t = np.arange(16) / 8
        return pd.DataFrame({"t": t, "y": scale * np.sin(3 * t)}).to_csv(index=False).encode()

    session = Session()
    floors = []
    for scale in (1.0, 100.0):
        session.open_upload("x.csv", table(scale))
        session.choose(inputs=["t"], output="y", regions=["1 <= t <= 1.5"], noise="0.01")
        session.start_fit()
        finished(session.fit)
        session.start_effect()
        floors.append(finished(session.effect).value.floor)
    assert floors[1] > 10.0 * floors[0]

    path = tmp_path / "x.csv"
    path.write_bytes(table(1.0))
    session.open_path(path)
    session.choose(inputs=["t"], output="y")
    session.start_fit()
    assert finished(session.fit).state == "done"
    path.write_bytes(table(100.0))
    session.open_choices(session.choices)
    assert session.fit.state == "idle"


def test_findings_are_accepted_of_one_problem_and_not_of_the_next() -> None:
    session = opened(regions=["1 <= t <= 1.5"], accept=["prior-beaten"])
    session.choose(regions=["1 <= t <= 1.5"])
    assert session.choices.accept == ("prior-beaten",)
    session.choose(regions=["0.5 <= t <= 1.5"])
    assert session.choices.accept == ()


def test_the_region_stays_the_same_object_while_the_slider_moves_and_no_longer() -> None:
    session = opened(regions=["1 <= t <= 1.5"])
    region = session.region
    session.choose(value=0.5)
    session.choose(regions=["1 <= t <= 1.5"], protects="records")
    assert session.region is region
    session.choose(regions=["1 <= t <= 1.25"])
    assert session.inside.sum() == 3
    smaller = session.region
    session.choose(inputs=["place", "t"])
    assert session.region is not smaller
    assert session.inside.sum() == 3
    session.choose(regions=[])
    assert session.region is None


def test_another_objective_is_another_design_at_the_same_level() -> None:
    session = opened(regions=["1 <= t <= 1.5"], noise="20", lengthscale=0.4, value=0.2, protects="records")
    session.start_fit()
    finished(session.fit)
    session.start_effect()
    least = finished(session.effect).value
    session.choose(objective="predictions")
    assert session.effect.value is None
    session.start_effect()
    best = finished(session.effect).value
    assert best.floor == least.floor <= best.record_std * (1.0 + 1e-9)
    assert best.loss < least.loss
    session.start_check()
    checked = finished(session.check).value
    assert checked.mechanism.design.objective == "predictions"
    assert checked.effect.loss == pytest.approx(best.loss, rel=0.02)
    assert decided(session, "how_much")[1:] == ["The noise leaves readers the best predictions outside."]


def test_a_level_that_the_slider_has_passed_is_drawn_with_its_own_floor() -> None:
    """Readers of one level over the floor of another would look safer, or worse, than either is."""
    pytest.importorskip("nicegui")
    from sfumato.studio.steps.how_much import _HowMuch

    session = opened(regions=["1 <= t <= 1.5"], noise="0.1", lengthscale=0.4, value=0.1)
    session.start_fit()
    finished(session.fit)
    session.start_effect()
    floor = finished(session.effect).value.floor
    session.choose(value=0.9)
    step = object.__new__(_HowMuch)
    step.session, step.around, step.inputs = session, None, SimpleNamespace(names=["t"])
    drawn = step._known_chart()
    assert drawn is not None
    (line,) = [trace for trace in drawn.figure["data"] if trace.get("name") == "floor"]
    assert min(value for value in line["y"] if value is not None) == pytest.approx(floor, rel=1e-3)
