"""Relations between outputs as text: what they mean, and what is said where they mean nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.models.relations import DerivativeOf, IntegralOf, MeanOf, parse_relation

T = pd.DataFrame({"t": np.linspace(0.0, 3.0, 31)})
GRID = pd.DataFrame([(a, b) for a in range(4) for b in range(3)], columns=["a", "b"], dtype=float)


def test_a_derivative_names_its_output_and_its_input() -> None:
    relation = parse_relation("v = d(r)/d(t)")
    assert isinstance(relation, DerivativeOf)
    assert (relation.name, relation.of, relation.takes_input) == ("v", "r", True)
    assert relation.functional(T) == sf.Derivative("t")


def test_a_mean_is_over_the_rows_in_its_region() -> None:
    relation = parse_relation("m = mean(r where (1 <= t <= 2) or t == 3)")
    assert isinstance(relation, MeanOf)
    assert not relation.takes_input
    points = relation.functional(T).points
    inside = T["t"].to_numpy()
    np.testing.assert_array_equal(points[:, 0], inside[((inside >= 1) & (inside <= 2)) | (inside == 3)])


def test_a_mean_without_a_region_is_over_all_rows() -> None:
    relation = parse_relation("m=mean( r )")
    assert len(relation.functional(T).points) == len(T)
    assert relation.where(T) is None


def test_an_integral_has_a_number_or_a_corner_for_each_input() -> None:
    one = parse_relation("q = integral(r from -1 to 2.5e0)")
    assert isinstance(one, IntegralOf)
    whole = one.functional(T)
    assert (whole.lower.tolist(), whole.upper.tolist()) == ([-1.0], [2.5])
    two = parse_relation("q = integral(r from b=0, a=−1 to a=1, b=2)").functional(GRID)
    assert (two.lower.tolist(), two.upper.tolist()) == ([-1.0, 0.0], [1.0, 2.0])


def test_names_that_are_no_words_go_in_quotes_and_words_of_the_language_are_names_where_one_is_expected() -> None:
    relation = parse_relation('`my v` = d("a ""b""")/d(d)')
    assert (relation.name, relation.of, relation.column) == ("my v", 'a "b"', "d")
    assert parse_relation("mean = mean(where where t <= 1)").of == "where"
    assert parse_relation("m = mean(r where `odd)name` <= 1)").region == "`odd)name` <= 1"


@pytest.mark.parametrize(
    ("text", "expected", "found"),
    [
        ("", "empty", ""),
        ("v", "expected `=`", "the text ends"),
        ("= d(r)/d(t)", "the name of the new quantity", "found '='"),
        ("v = dr/dt", "`d(…)/d(…)`, `mean(…)` or `integral(…)`", "found 'dr'"),
        ("v = `d`(r)/d(t)", "`mean(…)`", "found 'd'"),
        ("v = d(r)", "expected `/`", "the text ends"),
        ("v = d(r)/t", "`d(…)` with the name of an input", "found 't'"),
        ("v = d(r)/d(1)", "the name of an input", "found '1'"),
        ("v = d(r)/d(t) + 1", "expected the end", "found '+'"),
        ("v = d(r/d(t)", "expected `)`", "found '/'"),
        ("m = mean(r over t)", "`where` with a region", "found 'over'"),
        ("m = mean(r where )", "a region after `where`", "found ')'"),
        ("m = mean(r where (t <= 1)", "a closing parenthesis", "the text ends"),
        ("q = integral(r to 1)", "expected `from`", "found 'to'"),
        ("q = integral(r from 0 1)", "expected `to`", "found '1'"),
        ("q = integral(r from 0 to)", "a number, or the name of an input", "found ')'"),
        ("q = integral(r from a=0,a=1 to a=2)", "each input once", "found 'a'"),
        ("q = integral(r from a=x to a=2)", "a number", "found 'x'"),
        ("q = integral(r from 1__0 to 2)", "a number", "found '1__0'"),
        ("q = integral(r from 1e999 to 2)", "a number", "found '1e999'"),
        ("q = integral(r from a=0 to b=1)", "different inputs", ""),
        ("v = " + "d" * 30_000, "at most 20000", ""),
    ],
)
def test_a_mistake_is_shown_with_its_place_and_what_was_expected(text: str, expected: str, found: str) -> None:
    with pytest.raises(sf.InputError) as error:
        parse_relation(text)
    assert expected in str(error.value)
    assert found in str(error.value)


@pytest.mark.parametrize(
    ("text", "table", "part"),
    [
        ("v = d(r)/d(s)", T, "'s' is not an input; the inputs are t"),
        ("m = mean(r where s <= 1)", T, "unknown column 's'"),
        ("m = mean(r where 1.02 <= t <= 1.03)", T, "no row of the data is in the region"),
        ("q = integral(r from 2 to 1)", T, "lower must be below upper"),
        ("q = integral(r from 0 to 1)", GRID, "there are 2 inputs"),
        ("q = integral(r from a=0 to a=1)", GRID, "no bound for the input 'b'"),
        ("q = integral(r from a=0,c=0 to a=1,c=1)", GRID, "'c' is not an input"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_with_the_relation(text: str, table: pd.DataFrame, part: str) -> None:
    with pytest.raises(sf.InputError) as error:
        parse_relation(text).functional(table)
    assert part in str(error.value)
    assert repr(text) in str(error.value)
    assert str(error.value).count("the relation") == 1
