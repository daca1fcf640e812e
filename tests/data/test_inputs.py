"""Whatever form inputs and outputs come in, they become the same checked float64 arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from sfumato.data.inputs import Inputs, among, as_inputs, as_outputs, default_names
from sfumato.errors import InputError

VALUES = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])


@pytest.mark.parametrize(
    "X",
    [
        VALUES,
        VALUES.tolist(),
        VALUES.astype(int),
        VALUES.astype(np.float32),
        np.asfortranarray(VALUES),
        torch.tensor(VALUES, dtype=torch.float32, requires_grad=True),
        pd.DataFrame(VALUES, columns=["a", "b"]),
        pd.DataFrame(VALUES, columns=["a", "b"]).astype("Int64"),
        VALUES.astype(object),
    ],
    ids=["array", "list", "integers", "float32", "fortran", "tensor", "frame", "nullable frame", "objects"],
)
def test_every_form_of_the_same_numbers_is_the_same_array(X):
    inputs = as_inputs(X)
    assert inputs.values.dtype == np.float64
    assert inputs.values.flags.c_contiguous
    assert np.array_equal(inputs.values, VALUES)
    assert (len(inputs), inputs.dimension) == (3, 2)


@pytest.mark.parametrize("X", [[1, 2, 3], np.arange(1, 4), torch.arange(1, 4), pd.Series([1, 2, 3], name="t")])
def test_one_dimension_is_one_feature(X):
    assert np.array_equal(as_inputs(X).values, [[1.0], [2.0], [3.0]])


def test_a_number_is_one_input():
    assert as_inputs(2.5).values.tolist() == [[2.5]]


def test_names_come_from_frames_and_are_made_up_otherwise():
    assert as_inputs(pd.DataFrame(VALUES, columns=["age", "area"])).names == ("age", "area")
    assert as_inputs(pd.Series([1.0], name="t")).names == ("t",)
    assert as_inputs(VALUES).columns is None
    assert as_inputs(VALUES).names == ("x0", "x1") == default_names(2)
    assert as_inputs([1.0]).names == ("x",)


def test_inputs_are_frozen_copies_and_the_callers_array_is_left_alone():
    mine = VALUES.copy()
    inputs = as_inputs(mine)
    mine[0, 0] = 99.0
    assert inputs.values[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        inputs.values[0, 0] = 0.0


def test_columns_are_matched_by_name_and_extra_ones_are_left_out():
    like = as_inputs(pd.DataFrame(VALUES, columns=["a", "b"]))
    other = pd.DataFrame({"b": [5.0], "text": ["ignored"], "a": [2.0]})
    matched = as_inputs(other, "X_new", like=like)
    assert matched.values.tolist() == [[2.0, 5.0]]
    assert matched.columns == ("a", "b")


def test_a_flat_list_is_one_row_where_the_model_has_as_many_features():
    like = as_inputs(VALUES)
    assert as_inputs([1.0, 2.0], like=like).values.tolist() == [[1.0, 2.0]]
    assert as_inputs([1.0, 2.0], like=as_inputs([1.0])).values.tolist() == [[1.0], [2.0]]


def test_selecting_rows_keeps_names_and_freezes():
    inputs = as_inputs(pd.DataFrame(VALUES, columns=["a", "b"]))
    some = inputs.select(np.array([True, False, True]))
    assert isinstance(some, Inputs)
    assert np.array_equal(some.values, VALUES[[0, 2]])
    assert some.columns == ("a", "b")
    assert not some.values.flags.writeable


@pytest.mark.parametrize(
    ("X", "fragments"),
    [
        (np.array([[1.0, 2.0], [3.0, np.nan]]), ("X has 1 value", "row 1, column 1")),
        (pd.DataFrame({"a": [1.0, np.inf, np.inf], "b": 0.0}), ("X has 2 value", "row 1, column a")),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), ("X has 1 value", "row 1")),
        (np.zeros((0, 2)), ("X has no rows",)),
        (np.zeros((2, 0)), ("X has shape (2, 0)",)),
        (np.zeros((2, 2, 2)), ("X has shape (2, 2, 2)",)),
        (["a", "b"], ("X holds values of type", "float")),
        (np.array([1], dtype="timedelta64[D]"), ("X holds values of type timedelta64",)),
        (np.array([1 + 2j]), ("X holds values of type complex128",)),
        ([[1.0], [1.0, 2.0]], ("X cannot be read as an array of numbers",)),
        (pd.DataFrame({"city": ["Rome", 3.0]}), ("X column 'city' mixes", "astype(str)")),
        (pd.DataFrame(VALUES, columns=["a", "a"]), ("X has the column 'a' more than once",)),
    ],
)
def test_what_is_no_table_of_finite_numbers_is_refused_by_place(X, fragments):
    with pytest.raises(InputError) as caught:
        as_inputs(X)
    assert all(fragment in str(caught.value) for fragment in fragments), str(caught.value)


@pytest.mark.parametrize(
    "y", [[1, 2, 3], np.array([[1.0], [2.0], [3.0]]), torch.tensor([1.0, 2.0, 3.0]), pd.DataFrame({"y": [1, 2, 3]})]
)
def test_every_form_of_outputs_is_the_same_vector(y):
    values = as_outputs(y, 3)
    assert values.dtype == np.float64
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert not values.flags.writeable


@pytest.mark.parametrize(
    ("y", "fragments"),
    [
        ([1.0, 2.0], ("y has 2 values", "X has 3 rows")),
        ([1.0, np.nan, -np.inf], ("y has 2 value(s)", "row 1")),
        (np.ones((3, 2)), ("y has shape (3, 2)",)),
        (pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]}), ("y has 2 columns",)),
        (5.0, ("y has shape ()",)),
        (["1", "2", "3"], ("y holds values of type",)),
        (pd.Series([1, None, 3], dtype="Int64"), ("y ",)),
    ],
)
def test_outputs_that_do_not_fit_are_refused(y, fragments):
    with pytest.raises(InputError) as caught:
        as_outputs(y, 3)
    assert all(fragment in str(caught.value) for fragment in fragments), str(caught.value)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_rows_are_found_among_others(columns):
    draw = np.random.default_rng(4)
    points, places = (draw.integers(-2, 2, (rows, columns)) * np.array(-0.5) for rows in (300, 12))
    known = [tuple(row) for row in places]
    assert among(points, places).tolist() == [tuple(row) in known for row in points]
    assert not among(points, places[:0]).any()
