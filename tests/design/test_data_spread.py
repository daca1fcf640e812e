"""A floor that is larger than the data's own spread is said to their owner; the oracle is the guess by an average."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from kernels import rbf

T = np.linspace(0.0, 4.0, 25)
INSIDE = (T >= 1.0) & (T <= 2.0)
MECHANISM = sf.protect(sf.Prior(rbf(0.4, 4.0), noise=0.1), T, sf.Box(1.0, 2.0), floor=1.5, progress=False)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 4.0), st.floats(-4.0, 4.0), st.floats(0.1, 4.0))
def test_it_is_found_where_the_average_outside_is_nearer_than_the_floor(
    seed: int, inner: float, shift: float, outer: float
) -> None:
    random = np.random.default_rng(seed)
    y = np.where(INSIDE, inner * random.normal(size=25) + shift, outer * random.normal(size=25))
    guessed = np.sqrt(np.mean((y[INSIDE] - y[~INSIDE].mean()) ** 2))
    found = [one.code for one in MECHANISM.findings_on(y)]
    assert found == (["floor-above-spread"] if guessed < 1.5 else [])


def test_the_owner_is_warned_and_readers_are_not_told() -> None:
    with pytest.warns(sf.GuaranteeWarning, match="who takes that average is nearer"):
        release = MECHANISM.release(0.01 * np.sin(T))
    assert "floor-above-spread" not in [one.code for one in release.certificate.findings]
