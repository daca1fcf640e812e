"""Choices: what is saved is what is opened, and nothing else is."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import FormatError, InputError
from sfumato.studio.choices import MARK, Choices

names = st.text(min_size=1, max_size=20)
above_zero = st.floats(1e-300, 1e300)
choices = st.builds(
    Choices,
    data=st.text(max_size=30),
    source=st.sampled_from(["file", "upload", "demo", "notebook"]),
    sep=st.none() | names,
    drop_missing=st.booleans(),
    inputs=st.lists(names, max_size=4).map(tuple),
    output=st.text(max_size=20),
    lengthscale=st.none() | above_zero,
    fit_rows=st.none() | st.integers(2, 10**12),
    regions=st.lists(names, max_size=3).map(tuple),
    protects=st.sampled_from(["both", "function", "records"]),
    insiders=st.none() | names,
    level=st.sampled_from(["alpha", "floor"]),
    value=above_zero,
    objective=st.sampled_from(["noise", "predictions"]),
    accept=st.lists(names, max_size=2).map(tuple),
    share=st.none() | st.floats(1e-9, 1.0),
)


@given(choices)
@settings(max_examples=60, deadline=None)
def test_saved_choices_are_those_that_are_opened(chosen):
    assert Choices.from_json(chosen.to_json()) == chosen


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([field.name for field in fields(Choices)]), anything)
@settings(max_examples=150, deadline=None)
def test_a_strange_value_is_refused_or_is_one_that_could_have_been_saved(name, value):
    text = json.dumps({MARK: 1, name: value})
    try:
        opened = Choices.from_json(text)
    except FormatError:
        with pytest.raises(InputError):
            Choices().changed(**{name: tuple(value) if isinstance(value, list) else value})
    else:
        assert Choices.from_json(opened.to_json()) == opened


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"sfumato-studio": 2}',
        '{"sfumato-studio": true}',
        '{"sfumato-studio": 1, "more": 1}',
        "[" * 200_000,
        " " * 2_000_000,
    ],
)
def test_what_is_no_file_of_choices_is_refused_with_a_sentence(text):
    with pytest.raises(FormatError, match="choices"):
        Choices.from_json(text)


@pytest.mark.parametrize("name", ["data", "output", "inputs", "regions", "accept", "encoding"])
def test_half_a_character_is_refused(name):
    """JSON can hold it; no file, page or program can."""
    value = ["\ud800"] if name in ("inputs", "regions", "accept") else "\ud800"
    with pytest.raises(FormatError, match=name):
        Choices.from_json(json.dumps({MARK: 1, name: value}))


@pytest.mark.parametrize("place", ["../x.ledger", "/etc/x.ledger", "a\\x.ledger", ".ledger", "", "x\n.ledger"])
def test_a_file_of_choices_names_no_ledger_elsewhere(place):
    with pytest.raises(FormatError, match="ledger"):
        Choices.from_json(json.dumps({MARK: 1, "ledger": place}))
    assert Choices().changed(ledger="orbit.ledger").ledger == "orbit.ledger"


def test_the_page_on_formats_lists_every_choice_and_its_example_opens():
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    section = page.split("## Choices of the studio")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(listed) == sorted(field.name for field in fields(Choices))
    example = re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0]
    assert Choices.from_json(example).asked == {"floor": 0.0015}
