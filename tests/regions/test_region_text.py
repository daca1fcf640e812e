"""Regions as text: what is read, what is refused and how the mistake is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.data.inputs import as_inputs
from sfumato.errors import InputError
from sfumato.linalg.low_discrepancy import halton
from sfumato.regions import Box, Region, Union, parse_region, region_text

COLUMNS = ("t", "AGEP", "PUMA", "two words", "and", 'odd`"name')


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("75 <= AGEP <= 100 and PUMA <= 2000", Box({"AGEP": (75, 100), "PUMA": (None, 2000)})),
        ("PUMA<=2000", Box({"PUMA": (None, 2000)})),
        ("1 < t", Box({"t": (1, None)})),
        ("t > 1", Box({"t": (1, None)})),
        ("t == 3", Box({"t": (3, 3)})),
        ("t = 3", Box({"t": (3, 3)})),
        ("3 == t", Box({"t": (3, 3)})),
        ("2 ≥ t ≥ 1", Box({"t": (1, 2)})),
        ("-1.5e1 <= t <= +1_000.5", Box({"t": (-15, 1000.5)})),
        ("t ≥ −.5", Box({"t": (-0.5, None)})),
        ("`two words` <= 1", Box({"two words": (None, 1)})),
        ('"two words" <= 1', Box({"two words": (None, 1)})),
        ("`and` <= 1 AND t >= 2", Box({"and": (None, 1), "t": (2, None)})),
        ('`odd``"name` <= 1', Box({'odd`"name': (None, 1)})),
        ("t >= 1 and t <= 2 and t <= 1.5", Box({"t": (1, 1.5)})),
        ("((t >= 1)) and (t <= 2)", Box({"t": (1, 2)})),
        ("1 <= t <= 3 <= AGEP", Box({"t": (1, 3), "AGEP": (3, None)})),
        ("t <= 1 or t >= 2", Union([Box({"t": (None, 1)}), Box({"t": (2, None)})])),
        ("t <= 1 or t <= 1", Box({"t": (None, 1)})),
        (
            "(t <= 1 or t >= 2) and AGEP >= 5",
            Union([Box({"t": (None, 1), "AGEP": (5, None)}), Box({"t": (2, None), "AGEP": (5, None)})]),
        ),
        ("(t <= 1 or t >= 2) and (t >= 1.5 or t >= 3)", Union([Box({"t": (2, None)}), Box({"t": (3, None)})])),
        (
            "t <= 1 and AGEP <= 2 or PUMA <= 3",
            Union([Box({"t": (None, 1), "AGEP": (None, 2)}), Box({"PUMA": (None, 3)})]),
        ),
    ],
)
def test_text_becomes_the_region_it_describes(text: str, region: Region) -> None:
    assert parse_region(text, COLUMNS) == region


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", None, "empty"),
        ("   ", None, "empty"),
        ("75 <= AGEPP <= 100", 6, "unknown column 'AGEPP'.*Did you mean 'AGEP'"),
        ("agep <= 1", 0, "Did you mean 'AGEP'"),
        ("t <= 1 and t >= 2", 11, "empty"),
        ("2 <= t <= 1", 0, "empty"),
        ("(t <= 1 or t <= 2) and t >= 3", 23, "empty"),
        ("1 <= 2", 5, "two numbers"),
        ("t <= AGEP", 5, "two columns"),
        ("t != 3", 2, "leave out"),
        ("t <> 3", 2, "leave out"),
        ("t ≠ 3", 2, "leave out"),
        ("t =< 3", 2, "write <="),
        ("not t <= 3", 0, "`not`"),
        ("!t", 0, "`!`"),
        ("(t <= 3", 0, "never closed"),
        ("t <= 3)", 6, "closes nothing"),
        ("(t <= 3 t", 8, "closing parenthesis"),
        ("()", 1, "expected a number or a column"),
        ("t <= 3 4", 7, "expected `and`, `or` or the end"),
        ("t", 1, "compared with nothing"),
        ("3", 1, "compared with nothing"),
        ("t <= 1 and AGEP", 15, "compared with nothing"),
        ("t <=", 4, "the text ends"),
        ("t <= and", 5, "expected a number or a column"),
        ("t <= 1 and", 10, "the text ends"),
        ("<= 3", 0, "expected a number or a column"),
        ("t <= - AGEP", 5, "number after the sign"),
        ("t <= --3", 5, "number after the sign"),
        ("t <= 2,000", 6, "without commas"),
        ("t <= 1 & AGEP <= 2", 7, "write `and`"),
        ("t <= 1 | AGEP <= 2", 7, "write `or`"),
        ("`two words <= 2", 0, "backtick is never closed"),
        ('"two words <= 2', 0, "quotation mark is never closed"),
        ("'t' <= 2", 0, "backticks or double quotes"),
        ("t <= 1e999", 5, "too large"),
        ("t <= 1_", 5, "not a number"),
        ("t <= 3t", 6, "neither a number nor a name"),
        ("t <= inf", 5, "leave this side"),
        ("t <= $", 5, "not part of the language"),
        ("(" * 60 + "t <= 1" + ")" * 60, 40, "nested more than 40"),
        (" or ".join(f"t == {value}" for value in range(201)), None, "more than 200 boxes"),
        (" and ".join(f"(t <= {i} or AGEP <= {i} or PUMA <= {-i})" for i in range(1, 20)), None, "more than 200 boxes"),
        ("t <= 1 or " * 10_000 + "t <= 1", None, "characters"),
    ],
)
def test_mistakes_are_shown_where_they_are(text: str, place: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_region(text, COLUMNS)
    if place is not None:
        first, shown, caret = str(caught.value).split("\n")
        assert f"character {place + 1}:" in first
        if len(text) <= 60:
            assert shown == "  " + text
            assert caret == "  " + " " * place + "^"
        else:
            assert len(shown) < 130


def test_the_caret_stays_under_the_mistake_in_a_long_text() -> None:
    text = "t <= 1 or " * 20 + "u <= 1" + " or t <= 1" * 20
    with pytest.raises(InputError) as caught:
        parse_region(text, COLUMNS)
    _, shown, caret = str(caught.value).split("\n")
    assert shown[caret.index("^")] == "u"


@pytest.mark.parametrize("columns", ["t", [1, 2]])
def test_columns_have_to_be_names(columns: object) -> None:
    with pytest.raises(InputError, match="columns is"):
        parse_region("t <= 1", columns)  # type: ignore[arg-type]


def test_the_text_has_to_be_text() -> None:
    with pytest.raises(InputError, match="region text is 3"):
        parse_region(3, COLUMNS)  # type: ignore[arg-type]


def test_free_goes_to_the_boxes() -> None:
    assert parse_region("t <= 1", COLUMNS, free="ranges") == Box({"t": (None, 1)}, free="ranges")
    with pytest.raises(InputError, match="free is"):
        parse_region("t <= 1", COLUMNS, free="no")


def test_distribution_means_what_the_text_says() -> None:
    inputs = as_inputs(pd.DataFrame(halton(500, 3), columns=["a", "b", "c"]))
    text = "(a <= 0.3 or (b >= 0.7 and c <= 0.5)) and (c >= 0.2 or a >= 0.1 and b <= 0.9)"
    a, b, c = inputs.values.T
    expected = ((a <= 0.3) | ((b >= 0.7) & (c <= 0.5))) & ((c >= 0.2) | ((a >= 0.1) & (b <= 0.9)))
    np.testing.assert_array_equal(parse_region(text, inputs.names).bind(inputs).contains(inputs.values), expected)


finite = st.floats(allow_nan=False, allow_infinity=False)
sides = st.one_of(
    st.tuples(finite, finite).map(lambda pair: (min(pair), max(pair))),
    finite.map(lambda value: (value, None)),
    finite.map(lambda value: (None, value)),
)
names = st.one_of(st.text(min_size=0, max_size=6), st.sampled_from(["t", "and", "Or", "`", '"', "a b", "ſ", "x.1"]))
rendered = st.dictionaries(names, sides, min_size=1, max_size=4)


@settings(deadline=None)
@given(rendered)
def test_boxes_survive_being_written_and_read(bounds: dict[str, tuple[float | None, float | None]]) -> None:
    box = Box(bounds)
    assert parse_region(box.in_words(), list(bounds)) == box


@settings(deadline=None)
@given(st.lists(rendered, min_size=2, max_size=4))
def test_unions_survive_being_written_and_read(parts: list[dict[str, tuple[float | None, float | None]]]) -> None:
    members = list(dict.fromkeys(Box(bounds) for bounds in parts))
    columns = [name for bounds in parts for name in bounds]
    # {a, b} and {b, a} are one box to the parser.
    distinct = {frozenset(zip(box.columns or (), box.lower, box.upper, strict=True)): box for box in reversed(members)}
    kept = [box for box in members if box in distinct.values()]
    again = parse_region(Union(members).in_words(), columns)
    assert again == (Union(kept) if len(kept) > 1 else kept[0])


PIECES = [
    "t",
    "AGEP",
    "`two words`",
    *["<=", ">=", "<", "==", "=", "!=", "and", "or", "not", "(", ")", "1", "2.5", "-", "1e9", "`"],
    " ",
    "\n",
]
pieces = st.sampled_from(PIECES)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.text(max_size=40), st.lists(pieces, max_size=25).map(" ".join), st.lists(pieces, max_size=25).map("".join)
    )
)
@example("(" * 5000)
@example("1" * 5000 + " <= t")
@example("t <= ٣")
@example("²t <= 1")
@example("\ud800 <= 1")
def test_any_text_is_a_region_or_an_input_error(text: str) -> None:
    try:
        region = parse_region(text, COLUMNS)
    except InputError:
        return
    assert isinstance(region, Region)
    assert region.in_words()


any_name = st.text(min_size=1, max_size=12)
moments = st.integers(-5 * 10**16, 5 * 10**16).map(lambda value: np.datetime64(value, "us"))


@settings(deadline=None)
@given(
    st.lists(any_name, min_size=3, max_size=3, unique=True),
    st.lists(any_name, min_size=1, max_size=4, unique=True),
    st.tuples(finite, finite),
    st.tuples(moments, moments),
    st.booleans(),
)
def test_every_box_has_a_text_whatever_its_columns_and_levels_are_called(columns, levels, sides, dates, shared) -> None:
    date, number, category = columns
    levels = [*levels, *(one for one in columns if shared and one not in levels)]
    bounds = {date: tuple(sorted(dates)), number: tuple(sorted(sides)), category: levels}
    again = parse_region(region_text(bounds, columns), columns)
    assert dict(again.meant)[category].names == tuple(levels)
    assert (again.lower, again.upper) == tuple((side,) for side in bounds[number])
    first, last = bounds[date]
    assert dict(again.meant)[date].lower == first
    assert dict(again.meant)[date].upper >= last
