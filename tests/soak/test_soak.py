"""The soak: what it counts, what it keeps, and that it finds what is broken on purpose."""

from __future__ import annotations

import json
from itertools import islice

import pytest

import sfumato as sf
from soak.__main__ import main
from soak.broken import BREAKS
from soak.outcome import KINDS, Kind, Task, reason, tasks
from soak.workers import perform, performed


def test_kinds_come_by_their_shares_and_every_trial_can_be_named():
    kinds = [Kind("often", 3, 1.0), Kind("seldom", 1, 1.0)]
    first = list(islice(tasks(kinds, 7), 8))
    assert [task.kind.name for task in first].count("seldom") == 2
    assert [task.number for task in first if task.kind.name == "often"] == list(range(6))
    assert Task(kinds[0], 5, 7).random().random() == Task(kinds[0], 5, 7).random().random()
    assert len({Task(kind, number, 7).random().random() for kind in kinds for number in range(9)}) == 18


def test_the_reason_of_a_refusal_has_no_names_and_no_numbers():
    one, other = (sf.InputError(f"column 'x{v}' has {v:,.1f} values; give more.") for v in (3, 4e9))
    assert reason(one) == reason(other) == "refused: column … has # values"


@pytest.mark.processes
def test_workers_that_die_or_hang_are_told_replaced_and_kept_with_their_seed(tmp_path):
    kind = Kind("lost", 1, 2.0, module="lost_trials")
    # with this seed each of the six things happens once
    found = list(performed(islice(tasks([kind], 225), 6), tmp_path, workers=2, seconds=120.0))
    assert sorted(task.number for task, _ in found) == list(range(6))
    broken = {task.number: outcome for task, outcome in found if outcome.broken}
    told = " ".join(outcome.broken for outcome in broken.values())
    for words in ("code -9", "more than 2 s", "IndexError: not ours", "it says so"):
        assert words in told
    assert any("refused: alpha is #" in outcome.counts for _, outcome in found)
    assert {path.name for path in tmp_path.iterdir()} == {f"lost-{number}" for number in broken}
    for number, outcome in broken.items():
        case = json.loads((tmp_path / f"lost-{number}" / "case.json").read_text())
        assert case["broken"] == outcome.broken
        assert case["again"].endswith(f"--seed 225 --trial lost:{number}")


def test_problems_are_not_broken_and_are_where_noise_is_scaled_by_099(tmp_path, monkeypatch, capsys):
    """Quick trials of seed 1: joint, pointwise, everywhere, several outputs."""
    tasks = [Task(KINDS["problems"], number, 1) for number in (3, 9, 24, 26)]
    whole = [perform(task, tmp_path) for task in tasks]
    assert not [outcome.broken for outcome in whole if outcome.broken]
    assert [outcome.counts["certificates"] for outcome in whole] == [1] * len(tasks)
    monkeypatch.setattr(sf, "protect", sf.protect)  # put back afterwards
    BREAKS["noise"]()
    less = [perform(task, tmp_path) for task in tasks]
    assert all(outcome.broken and "ratio" in outcome.broken for outcome in less)
    assert main(["--seed", "1", "--trial", "problems:3", "--keep", str(tmp_path)]) == 1
    assert "joint ratio 1.0" in capsys.readouterr().out


def test_the_table_names_kinds_that_were_not_tried(tmp_path, capsys):
    assert main(["--trials", "0", "--only", "problems,names", "--keep", str(tmp_path), "--workers", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "problems trials 0" in shown
    assert "names trials 0" in shown
