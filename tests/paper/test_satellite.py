"""The simulated orbit is the paper's orbit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sfumato import InputError
from sfumato.data.orbit import MU, PERIOD, SENSITIVE, START, STATES, J, simulate, training_grid

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


def test_constants_are_computed_not_rounded() -> None:
    assert pytest.approx(5480.0459, abs=1e-4) == PERIOD
    assert pytest.approx(46.13439, abs=1e-5) == MU
    assert pytest.approx(0.04994595, abs=1e-8) == J
    assert START[0] == pytest.approx(1.05330711, abs=1e-8)


def test_grid_has_61_times_of_which_21_are_sensitive() -> None:
    times = training_grid()
    assert times.shape == (61,)
    assert times[0] == 0.0
    assert times[-1] == 3.0
    assert np.sum((times >= SENSITIVE[0]) & (times <= SENSITIVE[1])) == 21


@pytest.mark.parametrize(
    ("state", "error"), [("r", 5.3e-6), ("r_dot", 6.4e-6), ("theta", 5.8e-5), ("theta_dot", 3.6e-5)]
)
def test_orbit_agrees_with_the_paper_data_to_the_error_of_its_solver(
    paper_data: Path, state: str, error: float
) -> None:
    theirs = pd.read_csv(paper_data / "satellite_data.csv")
    ours = simulate(np.arange(301) / 100)
    np.testing.assert_allclose(ours["t"], theirs["time"], atol=1e-6)
    assert np.abs(ours[state].to_numpy() - theirs[state].to_numpy()).max() <= error


def test_orbit_agrees_with_thirty_digits() -> None:
    exact = pd.read_csv(FIXTURES / "orbit.csv")
    ours = simulate(exact["t"])
    for state in STATES:
        np.testing.assert_allclose(ours[state], exact[state], rtol=0, atol=1e-11)


def test_an_implicit_solver_finds_the_same_orbit() -> None:
    grid = training_grid()
    ours, theirs = simulate(grid), simulate(grid, rtol=1e-9, atol=1e-10, method="Radau")
    for state in STATES:
        np.testing.assert_allclose(ours[state], theirs[state], atol=1e-8)


def test_states_at_a_time_do_not_depend_on_the_other_times() -> None:
    alone, among = simulate([1.5]), simulate(training_grid())
    np.testing.assert_allclose(alone.to_numpy()[0], among[among["t"] == 1.5].to_numpy()[0], rtol=0, atol=1e-9)
    assert simulate([0.0]).to_numpy()[0].tolist() == [0.0, *START]


@pytest.mark.parametrize("times", [[], [1.0, 1.0], [2.0, 1.0], [-1.0], [np.nan]])
def test_wrong_times_are_refused(times: list[float]) -> None:
    with pytest.raises(InputError, match="increasing numbers of orbits"):
        simulate(times)
