"""Checks of trees from files: what they let through, and one short line for everything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import FormatError
from sfumato.tree_checks import choice, fields, items, matrix, node, number, positive, short, text, texts, whole

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)

CHECKS: dict[str, Any] = {
    "fields": lambda value: fields(value, "thing", ("a",), ("b",)),
    "node": lambda value: node(value, "thing", {"box": ("a",)}),
    "items": lambda value: items(value, "things", 1, 2),
    "number": lambda value: number(value, "size", least=0.0, below=10.0),
    "positive": lambda value: positive(value, "size"),
    "whole": lambda value: whole(value, "count", 0, 3),
    "choice": lambda value: choice(value, "nu", (0.5, 1.5)),
    "matrix": lambda value: matrix(value, "points", 2, 2),
    "text": lambda value: text(value, "name", 3),
    "texts": lambda value: texts(value, "names", 3, distinct=True),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_any_value_comes_back_or_is_refused_in_one_short_line(check, value):
    message = ""
    try:
        check(value)
    except FormatError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        ("fields", {}, "the thing lacks 'a'"),
        ("fields", {"a": 1, "c": 2}, "unknown entry 'c'"),
        ("node", {"kind": "ball"}, "unknown kind 'ball'; known are box"),
        ("node", {"kind": "box", "a": 1, "b": 2}, "the box node has the unknown entry"),
        ("items", [], "from 1 to 2"),
        ("number", True, "must be a number"),
        ("number", 10.0, "from 0 to below 10"),
        ("number", float("nan"), "finite"),
        ("positive", 0, "must be positive"),
        ("whole", 1.0, "a whole number from 0 to 3"),
        ("choice", 1, r"one of 0\.5, 1\.5"),
        ("matrix", [[1.0], [1.0, 2.0]], "different lengths"),
        ("text", "long", "a text of 0 to 3 characters"),
        ("texts", ["a", "a"], "names 'a' twice"),
    ],
)
def test_the_message_names_the_value_and_what_it_must_be(check, value, message):
    with pytest.raises(FormatError, match=message):
        CHECKS[check](value)


def test_what_is_as_expected_comes_back():
    assert node({"kind": "box", "a": 1}, "thing", {"box": ("a",)}) == ("box", {"kind": "box", "a": 1})
    assert number(3, "size") == 3.0
    assert matrix([[1, 2]], "points", 2, 2) == [[1.0, 2.0]]
    assert texts(["b", "a"], "names", 3) == ("b", "a")


def test_enormous_values_are_not_written_out():
    assert short(10**5000) == "an integer of enormous size"
    assert len(short("x" * 10_000)) <= 60
