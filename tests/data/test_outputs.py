"""One output is 1 of 1: what goes over the outputs of rows works for one, for one of a joint prior, and for several."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.data.inputs import MemoryInputs, Outputs, stacked_inputs, stacked_outputs
from sfumato.errors import InputError

ONE, ONLY, BOTH = Outputs(("r",)), Outputs.several(["r"]), Outputs.several(["r", "v"])
X = np.array([[0.0, 5.0], [1.0, 6.0], [2.0, 7.0]])


@pytest.mark.parametrize("outputs", [ONE, ONLY, BOTH], ids=["one", "one of a joint prior", "several"])
class TestEveryKindOfOutputs:
    def test_rows_give_back_their_inputs_and_numbers(self, outputs: Outputs) -> None:
        for number, name in enumerate(outputs):
            rows = outputs.rows(X, number)
            assert np.array_equal(outputs.plain(rows), X)
            assert outputs.numbers(rows).tolist() == [number] * 3
            assert outputs.number(name) == number
            assert len(outputs.columns(("a", "b"))) == rows.shape[1]

    def test_inputs_know_which_rows_are_about_what(self, outputs: Outputs) -> None:
        numbers = np.array([len(outputs) - 1, 0, 0])
        inputs = MemoryInputs(outputs.rows(X, numbers), outputs=outputs)
        about = [place for name in inputs.present for place in inputs.rows_about(name)]
        assert sorted(about) == [0, 1, 2]
        assert inputs.present[0] == outputs.names[-1]
        assert np.array_equal(inputs.plain.values, X)
        assert (inputs.features, inputs.plain.dimension) == (2, 2)
        assert inputs.select(np.array([0])).outputs == outputs

    def test_only_an_output_without_a_number_takes_another_name(self, outputs: Outputs) -> None:
        named = MemoryInputs(outputs.rows(X, 0), outputs=outputs).published_as("speed")
        assert named.outputs.names == (outputs.names if outputs.numbered else ("speed",))

    def test_an_output_that_is_not_there_is_refused_by_name(self, outputs: Outputs) -> None:
        with pytest.raises(InputError, match=r"of is 'w'(, but this release is about 'r' alone|; choose one of 'r')"):
            outputs.number("w", "of")


def test_none_stands_for_the_only_output() -> None:
    assert ONE.number(None) == ONLY.number(None) == 0
    with pytest.raises(InputError, match="output is missing, and there are 2 outputs; choose one of 'r', 'v'"):
        BOTH.number(None)


def test_places_are_said_with_the_name_of_the_output() -> None:
    assert BOTH.place_in_words(("t", "output"), np.array([1.5, 1.0])) == "t = 1.5, v"
    assert BOTH.place_in_words(("t", "output"), np.array([1.5, 9.0])) == "t = 1.5, output 9"
    assert ONE.place_in_words(("t",), np.array([1.5])) == "t = 1.5"


def test_the_column_of_numbers_has_a_name_of_its_own() -> None:
    assert BOTH.columns(("output", "output_")) == ("output", "output_", "output__")


def test_values_find_their_rows_whatever_form_they_come_in() -> None:
    rows = {"v": MemoryInputs(X), "r": MemoryInputs(X[:2])}
    inputs = stacked_inputs(rows, BOTH)
    assert inputs.present == ("v", "r")
    expected = [1.0, 2.0, 3.0, 10.0, 20.0]
    assert stacked_outputs(inputs, {"r": [10.0, 20.0], "v": [1.0, 2.0, 3.0]}).tolist() == expected
    assert stacked_outputs(inputs, expected).tolist() == expected
    with pytest.raises(InputError, match="y has no values of 'r'"):
        stacked_outputs(inputs, {"v": [1.0, 2.0, 3.0]})
