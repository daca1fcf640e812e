"""Noise that is learnt by a column: the truth is found, and rows inside a region have no part in it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.errors import InputError

N = 240
RNG = np.random.default_rng(8)
T = RNG.uniform(0.0, 6.0, N)
STATION = np.array(["north", "south"])[np.arange(N) % 2]
TRUTH = {"north": 0.04, "south": 0.64}
Y = np.sin(T) + np.sqrt([TRUTH[name] for name in STATION]) * RNG.standard_normal(N)
FRAME = pd.DataFrame({"t": T, "station": STATION})


def within_sampling_error(found: float, truth: float, rows: int) -> bool:
    return abs(found / truth - 1.0) < 4.0 * np.sqrt(2.0 / rows)


def test_two_stations_have_the_noise_that_they_had():
    prior = sf.fit_prior(FRAME, Y, noise=("learn by", "station"))
    for name, truth in TRUTH.items():
        (found,) = np.unique(prior.noise[name == STATION])
        assert within_sampling_error(found, truth, N // 2)
    # the same by labels, or by a column of numbers
    labels = sf.fit_prior(T, Y, noise=("learn by", pd.Series(STATION, name="station")))
    numbers = np.column_stack([T, STATION == "south"])
    assert within_sampling_error(labels.noise[0], TRUTH[STATION[0]], N // 2)
    assert sf.fit_prior(numbers, Y, noise=("learn by", 1)).noise == pytest.approx(prior.noise, rel=0.05)
    assert "learnt by station: station = north" in str(prior.fit_report)
    assert prior.fit_report.log_likelihood > sf.fit_prior(FRAME, Y).fit_report.log_likelihood + 20


def test_noise_that_grows_with_an_input_is_a_smooth_function_of_it():
    truth = np.exp(-4.0 + 0.6 * T)
    y = np.sin(T) + np.sqrt(truth) * np.random.default_rng(1).standard_normal(N)
    prior = sf.fit_prior(pd.DataFrame({"t": T}), y, noise=("learn by", "t"))
    ratio = np.log(prior.noise / truth)
    assert np.sqrt(np.mean(ratio**2)) < 0.3
    order = np.argsort(T)
    assert np.abs(np.diff(np.log(prior.noise[order]))).max() < 0.2


def test_rows_inside_have_no_part_and_a_level_that_is_only_there_has_the_mean_of_the_others():
    station = np.where((T > 2) & (T < 3), "inside", STATION)
    region = sf.Box({"t": (2.0, 3.0)})
    frame, hidden = pd.DataFrame({"t": T}), (T >= 2) & (T <= 3)
    noise = ("learn by", pd.Series(station, name="station"))
    one, two = (sf.fit_prior(frame, y, noise=noise, exclude=region) for y in (Y, np.where(hidden, 50.0, Y)))
    np.testing.assert_array_equal(one.noise, two.noise)
    (inside,) = np.unique(one.noise[station == "inside"])
    shares = [np.mean(station[~hidden] == name) for name in TRUTH]
    levels = [one.noise[station == name][0] for name in TRUTH]
    assert inside == pytest.approx(np.exp(shares @ np.log(levels)))
    assert "rows have other values of station" in str(one.fit_report)
    # a prior with one noise for each row protects
    assert sf.protect(one, frame, region, floor=0.2, progress=False).certificate.holds


def test_the_estimator_and_the_command_line_learn_it_too():
    from sfumato.cli.options import Fit

    noise = Fit(noise="learn by  station").settings()["noise"]
    assert noise == ("learn by", "station")
    frame, y, region = FRAME[:120], Y[:120], sf.Box({"t": (2.0, 3.0)})
    model = sf.PrivateGPRegressor(region=region, floor=0.2, noise=noise).fit(frame, y)
    expected = sf.fit_prior(frame, y, noise=noise, exclude=region).noise
    np.testing.assert_allclose(model.release_.design.prior.noise, expected, rtol=1e-4)


def test_wrong_columns_are_refused():
    wrong = {"where": "X has the columns t, station", 7: "X has 3 column"}
    for column, message in wrong.items():
        with pytest.raises(InputError, match=message):
            sf.fit_prior(FRAME, Y, noise=("learn by", column))
    with pytest.raises(InputError, match="has 240 levels"):
        sf.fit_prior(FRAME, Y, noise=("learn by", pd.Series([f"row {i}" for i in range(N)], name="name")))
    with pytest.raises(InputError, match="one label for each of its 240 rows"):
        sf.fit_prior(FRAME, Y, noise=("learn by", ["a", "b"]))
