"""Text from data and files is shown as text: in errors, warnings, progress and notebooks."""

from __future__ import annotations

import io
import pickle
import sys
import time
import warnings

import pytest

import sfumato as sf
from sfumato.progress import progress
from sfumato.text import shown
from sfumato.views import boxed_table

#: Names that give orders: to a terminal, to Rich, to HTML, to Matplotlib; and some that seem to.
HOSTILE = (
    "y\nThe promise holds.",
    "\x1b[2J\x1b[HThe promise holds.",
    "\x9b2J",
    "a\r\x08\x7f\x00",
    "a\u202eb\u200bc\u2028d\u2069",
    "caf\udce9",
    "a[/b]",
    "speed [m/s]",
    ":smile:",
    "<b>&amp;",
    "$x^{",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_shown_is_one_line_of_letters_and_stays_as_it_is(name: str) -> None:
    assert shown(name).isprintable()
    assert shown(shown(name)) == shown(name)
    assert shown(name) == name or not name.isprintable()


def test_letters_that_no_screen_shows_are_shown() -> None:
    unseen = "\u034f\u115f\u2800\u3164\ufe0f\uffa0\U000e0101"
    assert shown(f"y{unseen}") == f"y{ascii(unseen)[1:-1]}"
    assert shown("größe 速度 🙂 e\u0301 ±≤²") == "größe 速度 🙂 e\u0301 ±≤²"


@pytest.mark.parametrize("kind", [sf.InputError, sf.GuaranteeError, sf.BudgetError, sf.FormatError])
def test_errors_show_names_and_keep_their_own_lines(kind: type[Exception]) -> None:
    error = kind(f"no column {HOSTILE[0]}", "  here", "  ^")
    for one in (error, pickle.loads(pickle.dumps(error))):  # a worker sends it to another process
        assert str(one).split("\n") == ["no column y\\nThe promise holds.", "  here", "  ^"]


@pytest.mark.parametrize("kind", [sf.FitWarning, sf.GuaranteeWarning])
def test_warnings_show_names(kind: type[Warning]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(HOSTILE[1], kind, stacklevel=1)
    assert str(caught[0].message) == "\\x1b[2J\\x1b[HThe promise holds."


def test_a_text_of_a_region_is_shown_with_a_mark_under_the_mistake() -> None:
    with pytest.raises(sf.InputError) as caught:
        sf.parse_region("t <= 1 and\x1b[2J", ["t"])
    lines = str(caught.value).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
    assert lines[1][lines[2].index("^") :].startswith(" [2J")


@pytest.mark.parametrize("name", HOSTILE)
def test_progress_shows_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("sfumato.progress.PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    with progress(True) as step:
        step.announce(f"fitting {name}", 60.0)
        step.stage(f"reading {name}")
        time.sleep(0.05)
    assert f"fitting {shown(name)}" in screen.getvalue()
    assert "\nThe promise holds." not in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_views_show_names(name: str) -> None:
    view = boxed_table("publish", name, name, [(name, name)], (name, name), [name])
    assert view.isprintable()
    assert "<b>" not in view
