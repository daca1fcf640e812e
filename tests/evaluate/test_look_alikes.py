"""Look-alikes are the region's shape elsewhere: outside it, where rows are, and between rows where the region is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.data import as_inputs
from sfumato.evaluate.look_alikes import look_alikes

rng = np.random.default_rng(3)
LINE = np.linspace(0.0, 10.0, 201)
PLANE = rng.uniform(size=(400, 2))
TABLE = pd.DataFrame(
    {"AGEP": rng.integers(17, 95, 900), "PUMA": rng.integers(100, 120, 900), "SEX": rng.integers(1, 3, 900)}
).astype(float)

#: Data, a region, how many look-alikes there are at least, and whether they lie at an end of the data.
CASES = {
    "box": (LINE, sf.Box(4, 5), 5, False),
    "tail": (LINE, sf.Box(8, None), 2, True),
    "wide box": (LINE, sf.Box(3.3, 6.6), 2, False),
    "union": (LINE, sf.Box(2, 2.5) | sf.Box(4, 4.5), 3, False),
    "points": (LINE, sf.Points([3.0, 3.1, 3.5]), 5, False),
    "between rows": (LINE, sf.Box(4.01, 4.04), 5, False),
    "ball": (PLANE, sf.Ball([0.5, 0.5], 0.15), 4, False),
    "plane": (PLANE, sf.Box([0.4, 0.3], [0.6, 0.6]), 4, False),
    "one of two columns": (PLANE, sf.Box({"x0": (0.8, None)}), 2, True),
    "rows of a table": (TABLE, sf.parse_region("75 <= AGEP and PUMA <= 104", TABLE.columns), 2, True),
    "a value of a column": (TABLE, sf.parse_region("PUMA = 110", TABLE.columns), 5, False),
}


@pytest.mark.parametrize("name", CASES)
def test_look_alikes_are_the_shape_elsewhere(name):
    X, region, least, at_an_end = CASES[name]
    inputs = as_inputs(X)
    bound = region.bind(inputs)
    inside = bound.contains(inputs.values)
    found = look_alikes(bound, inputs)
    assert least <= len(found) <= 10
    outside, taken = int(np.sum(~inside)), np.zeros(len(inputs))
    for one in found:
        assert not inside[one.hidden].any()
        assert 0 < len(one.hidden) <= outside / 2
        assert max(int(inside.sum()), 1) / 3 <= len(one.hidden) / one.size**2 + 1
        assert len(one.hidden) <= 3 * max(int(inside.sum()), 1)
        if one.size == 1.0 and bound.points is None:
            moved = bound.contains(inputs.values - one.shift) & ~inside
            assert np.array_equal(np.flatnonzero(moved), one.hidden)
        seen = np.setdiff1d(np.flatnonzero(~inside), one.hidden)
        along = np.flatnonzero(one.shift)[0]
        own, others = inputs.values[one.hidden, along], inputs.values[seen, along]
        assert (others.min() < own.min() and own.max() < others.max()) or at_an_end
        taken[one.hidden] += 1
    sizes = [len(one.hidden) for one in found]
    assert np.sum(taken > 1) <= 0.2 * sum(sizes)  # they hardly overlap
    assert len({one.where for one in found}) == len(found)


@pytest.mark.parametrize(
    ("X", "region"),
    [
        (LINE, sf.Everywhere()),
        (LINE, sf.Box(0.5, 9.5)),
        (TABLE, sf.parse_region("SEX = 1", TABLE.columns)),
        (TABLE[["SEX"]], sf.parse_region("SEX = 1", ["SEX"])),
    ],
    ids=["everywhere", "nearly all", "half of a table", "a column of two values"],
)
def test_a_shape_that_cannot_be_moved_has_none(X, region):
    inputs = as_inputs(X)
    assert look_alikes(region.bind(inputs), inputs) == ()
