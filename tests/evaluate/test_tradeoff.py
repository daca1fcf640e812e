"""A comparison of levels says what a direct computation says, in numbers, words and a picture."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import sfumato as sf
from kernels import matern
from sfumato.data import as_inputs
from sfumato.design import SharedWork, asked_problem
from sfumato.evaluate.comparison import Comparison
from sfumato.evaluate.rivals import Budget, cloak
from sfumato.evaluate.tradeoff_readers import DELTA, measured_error, places_to_look
from sfumato.evaluate.tradeoffs import COUNTS_ON_THE_PRIOR, WAYS, notes, quick_ways, share
from sfumato.proof import changes_of

T = np.linspace(0.0, 3.0, 31)
FRAME = pd.DataFrame({"t": T})
PRIOR = sf.Prior(matern(0.3), noise=0.1)
REGION = sf.Box({"t": (1.0, 2.0)})
X_TEST = np.linspace(0.05, 2.95, 30)
INSIDE = (X_TEST >= 1) & (X_TEST <= 2)


@pytest.fixture(scope="module")
def found() -> sf.Tradeoff:
    return sf.tradeoff(PRIOR, FRAME, REGION, [0.2, 0.6, 0.9], X_test=X_TEST, y=np.sin(2 * T), progress=False)


def _root_mean(variance: np.ndarray) -> float:
    return float(np.sqrt(np.mean(variance)))


@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("joint", {}),
        ("predictions", {"objective": "predictions"}),
        ("function", {"protects": "function"}),
        ("records", {"protects": "records"}),
        ("pointwise", {"guarantee": "pointwise"}),
        ("diagonal", {"structure": "diagonal"}),
    ],
)
def test_promised_ways_agree_with_protect(found: sf.Tradeoff, way: str, how: dict[str, str]) -> None:
    line = found.of(way)[1]
    made = sf.protect(PRIOR, FRAME, REGION, 0.6, progress=False, **how)  # type: ignore[arg-type]
    left = PRIOR.condition(T, np.zeros(31), made.noise.covariance() + 0.1 * np.eye(31)).variance(X_TEST)
    bare = PRIOR.condition(T, np.zeros(31)).variance(X_TEST)
    assert line.alpha == 0.6
    assert line.holds is True
    # what is only looked at keeps another margin than what is proved
    close = 5e-3 if way in ("joint", "predictions", "function") else 1e-6
    assert line.rmse_outside == pytest.approx(_root_mean(left[~INSIDE]), rel=close)
    assert line.rmse_inside == pytest.approx(_root_mean(left[INSIDE]), rel=close)
    assert line.least_std == pytest.approx(np.sqrt(left[INSIDE].min()), rel=close)
    assert line.least_std >= np.sqrt(0.4) or way == "records"
    assert line.learnt == pytest.approx(1 - left[INSIDE].min(), rel=close)
    if way != "predictions":  # many noises predict nearly as well as the best one
        assert line.noise == pytest.approx(np.sqrt(made.noise.trace / 31), rel=close)
        assert line.spill == pytest.approx(made.certificate.spill, rel=close)
    assert line.floor == pytest.approx(np.sqrt(0.04 if way == "records" else 0.4))
    private = np.flatnonzero((T >= 1) & (T <= 2))
    A = PRIOR.covariance(T) + 0.1 * np.eye(31)
    records = np.diag(A - A @ np.linalg.solve(A + made.noise.covariance(), A))[private]
    assert line.record_std == pytest.approx(np.sqrt(records.min()), rel=close)
    explained, whole = 1 - np.mean(left[~INSIDE]), 1 - np.mean(bare[~INSIDE])
    assert line.loss == pytest.approx(1 - explained / whole, rel=10 * close)
    assert found.everything.rmse_outside == pytest.approx(_root_mean(bare[~INSIDE]))
    assert found.everything.loss == 0.0


def test_less_privacy_costs_less_and_independent_noise_costs_more(found: sf.Tradeoff) -> None:
    for way in ("joint", "pointwise", "diagonal"):
        losses = [line.loss for line in found.of(way)]
        assert losses == sorted(losses, reverse=True)
    for joint, diagonal in zip(found.of("joint"), found.of("diagonal"), strict=True):
        assert diagonal.noise > joint.noise
        assert diagonal.loss > joint.loss


def test_records_cost_others_least_and_all_three_are_said_in_units(found: sf.Tradeoff) -> None:
    for records, function, both in zip(found.of("records"), found.of("function"), found.of("joint"), strict=True):
        assert records.loss < 0.2 * function.loss
        assert both.record_std > records.record_std > 0.9 * records.floor
        assert function.record_std < both.record_std
    assert found.everything.record_std == pytest.approx(0.0, abs=1e-7)
    assert all(len(line) <= 80 for line in str(found).splitlines())
    said = notes(found)
    assert said[-2].startswith("At α = 0.6 readers' error outside is 0.24 without protection, 0.24 if it protects rec")
    assert said[-2].endswith(" if it protects both.")
    assert said[-1].startswith("The weakest promise always predicts best")


def test_the_best_predictions_cost_less_at_the_same_promise_and_it_is_said(found: sf.Tradeoff) -> None:
    for joint, best in zip(found.of("joint"), found.of("predictions"), strict=True):
        assert best.holds is True
        assert best.floor == joint.floor <= best.least_std
        assert best.loss < 0.9 * joint.loss
    joint, best = (found.of(way)[1] for way in ("joint", "predictions"))
    said = [one for one in notes(found) if one.startswith("With the best predictions")]
    assert said == [
        f"With the best predictions {share(best.loss)} is lost instead of {share(joint.loss)}. {COUNTS_ON_THE_PRIOR}"
    ]


def test_a_row_changes_by_its_noise_and_by_what_stands_in_for_suppressed_combinations() -> None:
    made = sf.protect(PRIOR, T, sf.Points([[1.2], [1.7]]), 0.2, objective="predictions", progress=False)
    noise, A = made.noise, PRIOR.covariance(T) + 0.1 * np.eye(31)
    N = np.linalg.qr(noise.suppressed)[0]
    assert N.shape[1] > 0
    # W = y + z across N, and what the rest predicts along it
    P, across, z = np.linalg.inv(A + noise.covariance()), np.eye(31) - N @ N.T, noise.factor
    of_y, of_z = N @ N.T @ (A @ P - np.eye(31)), (across + N @ N.T @ A @ P) @ across @ z
    expected = np.diag(of_y @ A @ of_y.T + of_z @ of_z.T)
    told = SharedWork(asked_problem(PRIOR, T, sf.Points([[1.2], [1.7]]), 0.2), "auto").told(noise)
    assert told is not None
    np.testing.assert_allclose(told.changes(noise), expected, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(changes_of(made.design), expected, rtol=1e-3, atol=1e-6)


def test_dropout_promises_nothing_and_says_what_readers_reach(found: sf.Tradeoff) -> None:
    (line,) = found.of("dropout")
    outside = (T < 1) | (T > 2)
    left = PRIOR.condition(T[outside], np.zeros(outside.sum())).variance(X_TEST)
    assert line.holds is None
    assert math.isnan(line.alpha)
    assert line.least_std == pytest.approx(np.sqrt(left[INSIDE].min()))
    assert "nothing is promised" in found.sentence(way="dropout")


def test_cloaking_is_matched_to_the_floor_and_has_its_epsilon(found: sf.Tradeoff) -> None:
    line = found.of("cloaking")[-1]
    assert line.alpha == 0.9
    assert line.least_std == pytest.approx(np.sqrt(0.1), rel=1e-6)
    order = np.concatenate([X_TEST[~INSIDE], X_TEST[INSIDE]])
    size = float(np.ptp(np.sin(2 * T)))
    made = cloak(PRIOR, T, order, (T >= 1) & (T <= 2), Budget(line.epsilon, DELTA, size, "analytic"))
    # a reader of the cloaked predictions, computed directly
    told = made.prediction.matrix @ PRIOR.covariance(T, order)
    left = 1 - np.einsum("ij,jk,ik->i", told, np.linalg.pinv(told + made.noise.covariance(), rcond=1e-12), told)
    np.testing.assert_allclose(np.sqrt(left[-INSIDE.sum() :].min()), line.least_std, rtol=1e-4)
    assert _root_mean(left[: -INSIDE.sum()]) == pytest.approx(line.rmse_outside, rel=1e-4)
    assert line.noise == pytest.approx(np.sqrt(np.mean(np.diag(made.noise.covariance()))), rel=1e-4)
    assert found.skipped == (
        ("cloaking", "no ε keeps α = 0.2 (δ = 0.01): what it leaves of the predictions tells more"),
    )


def test_measured_errors_are_held_out(found: sf.Tradeoff) -> None:
    made = sf.protect(PRIOR, FRAME, REGION, 0.6, protects="records", progress=False)
    rng = np.random.default_rng(0)
    y, outside = np.sin(2 * T), np.flatnonzero((T < 1) | (T > 2))
    total = PRIOR.covariance(T) + made.noise.covariance() + 0.1 * np.eye(31)
    draws = y + rng.multivariate_normal(np.zeros(31), made.noise.covariance(), size=4000)
    squares = []
    for fold in range(10):
        out = outside[fold::10]
        rest = np.setdiff1d(np.arange(31), out)
        means = draws[:, rest] @ np.linalg.solve(total[np.ix_(rest, rest)], PRIOR.covariance(T[rest], T[out]))
        squares.append((means - y[out]).ravel() ** 2)
    assert found.of("records")[1].measured == pytest.approx(np.sqrt(np.mean(np.concatenate(squares))), rel=0.03)
    assert measured_error(made.design, y, outside) == pytest.approx(found.of("records")[1].measured)


def test_floors_are_in_the_units_of_the_owner() -> None:
    prior = sf.Prior(matern(0.3, variance=1e8), noise=1e7)
    income = pd.Series(np.zeros(31), name="income [$]")
    levels = [8000.0, 4000.0, 12_000.0]
    found = sf.tradeoff(prior, FRAME, REGION, floors=levels, ways=["function"], y=income, progress=False)
    assert [line.floor for line in found.rows] == [8000.0, 4000.0]
    assert all(math.isnan(line.alpha) for line in found.rows)
    assert found.output == "income [$]"
    ((way, why),) = found.skipped  # the prior itself knows more than the third one
    assert (way, why[:29]) == ("function", "floor = 12000 is left out: fl")
    assert "function: floor = 12000 is left out: floor is 12000 at t = 1" in " ".join(str(found).split())
    same = sf.tradeoff(prior, FRAME, REGION, [0.36], ways=["function"], progress=False)
    assert same.rows[0].loss == pytest.approx(found.rows[0].loss, rel=1e-6)
    said = found.sentence(floor=8000)
    before, after = (f"{line.rmse_outside:.0f}" for line in (found.everything, found.rows[0]))
    assert said.startswith(f"At ±8000 $ inside 1 ≤ t ≤ 2: error outside {before} → {after} $, ")
    assert "floor: the std of income" in found.plot().get_xlabel()


def test_sentence_table_and_dictionary(found: sf.Tradeoff) -> None:
    assert found.sentence(0.6).startswith("At ±0.6325 inside 1 ≤ t ≤ 2 (α = 0.6): error outside 0.24 → ")
    table = found.table()
    assert len(table) == 1 + len(found.rows) == 22
    assert list(table["way"].unique()) == ["everything", *found.ways]
    text = " ".join(str(found).split())
    for words in ("dropout: the rows inside are left out", "no ε keeps", "cloaking, ε = ", found.sentence(0.6)):
        assert words in text
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["rows"][0]["holds"] is True
    assert next(row for row in plain["rows"] if row["way"] == "dropout")["alpha"] is None
    with pytest.raises(sf.InputError, match=r"alpha is 0.25, which was not computed for 'joint'; choose one of 0.2"):
        found.sentence(0.25)
    with pytest.raises(sf.InputError, match="exactly one of alpha and floor"):
        found.sentence()
    with pytest.raises(sf.InputError, match="way is 'robust'"):
        found.sentence(0.2, way="robust")


def test_picture_has_a_curve_for_each_way(found: sf.Tradeoff) -> None:
    given = Figure().subplots()
    ax = found.plot(ax=given)
    assert ax is given
    shown = {str(line.get_label()): line for line in ax.get_lines()}
    np.testing.assert_allclose(shown["records only"].get_ydata(), [line.loss for line in found.of("records")])
    texts = [" ".join(text.get_text().split()) for text in ax.get_legend().get_texts()]
    assert {
        "function and records",
        "function and records, best predictions",
        "function only",
        "records only",
        "DP cloaking, to the same floor",
    } <= set(texts)
    assert any(text.startswith("rows left out: no promise, readers learn ") for text in texts)
    assert ax.get_ylabel() == "loss of accuracy outside"
    (beside,) = [one for one in ax.child_axes if one.get_ylabel() == "error outside"]
    ax.figure.draw_without_rendering()
    low, high = beside.get_ylim()  # the errors of no loss, and of the most
    assert low == pytest.approx(found.everything.rmse_outside)
    shown, line = ax.get_ylim()[1], found.of("joint")[0]
    assert high**2 == pytest.approx(low**2 + (line.rmse_outside**2 - low**2) * shown / line.loss, rel=1e-6)
    assert "1 ≤ t ≤ 2" in " ".join(ax.get_xlabel().split())


def test_several_inputs_are_looked_at_where_the_data_are() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.uniform(0, 1, 60), "b": rng.uniform(0, 1, 60)})
    prior = sf.Prior(matern([0.5, 0.5]), noise=0.1)
    region = sf.Box({"a": (0.7, 1.0)})
    found = sf.tradeoff(prior, X, region, 0.4, ways=("joint", "dropout"), progress=False)
    assert found.of("joint")[0].learnt <= 0.4 + 1e-6
    from sfumato.data.inputs import as_inputs

    inputs = as_inputs(X)
    places = places_to_look(inputs, region.bind(inputs))
    assert np.all(places.outside[:, 0] < 0.7)
    assert np.all(places.inside[:, 0] >= 0.7)


def test_many_rows_are_compressed() -> None:
    t = np.linspace(0.0, 3.0, 4500)
    prior = sf.Prior(matern(0.5, nu=2.5), noise=5.0)
    found = sf.tradeoff(
        prior, t, sf.Box(1, 2), [0.5], ways=("function", "diagonal", "dropout", "cloaking"), progress=False
    )
    (line,) = found.of("function")
    assert line.holds
    assert 0 < line.loss < 0.2
    assert found.everything.rmse_outside < line.rmse_outside
    assert [way for way, why in found.skipped if "up to 4,000 rows only" in why] == ["diagonal", "cloaking"]
    # every tenth row with a tenth of the errors' variance tells about the same
    few = sf.tradeoff(
        sf.Prior(matern(0.5, nu=2.5), noise=0.5), t[::10], sf.Box(1, 2), [0.5], ways="function", progress=False
    )
    assert line.rmse_outside == pytest.approx(few.rows[0].rmse_outside, rel=0.05)
    assert line.loss == pytest.approx(few.rows[0].loss, rel=0.1)


def test_everywhere_has_no_elsewhere() -> None:
    found = sf.tradeoff(PRIOR, FRAME, sf.Everywhere(), [0.5], progress=False)
    assert found.ways[0] == "joint"
    assert math.isnan(found.rows[0].loss)
    assert "no elsewhere" in found.sentence(0.5)
    assert any(way == "pointwise" for way, _ in found.skipped)
    assert found.of("dropout")[0].learnt == pytest.approx(0.0)
    found.plot()


def test_data_without_errors_on_a_smooth_prior() -> None:
    """K is singular to working precision there; no warning about that reaches the user."""
    from kernels import rbf

    found = sf.tradeoff(sf.Prior(rbf(0.5)), FRAME, REGION, [0.3], ways=("joint", "dropout"), progress=False)
    assert found.of("dropout")[0].learnt > 0.99
    assert 0 <= found.of("joint")[0].loss <= 1


def test_wrong_use_is_told() -> None:
    def refused(words: str, *args: object, **how: object) -> None:
        with pytest.raises(sf.InputError, match=words):
            sf.tradeoff(*args, **{"progress": False, **how})  # type: ignore[arg-type]

    refused("alpha is 1.5", PRIOR, FRAME, REGION, [1.5])
    refused("alphas is 'a'", PRIOR, FRAME, REGION, "a")
    refused(r"floors is \[\]", PRIOR, FRAME, REGION, floors=[])
    refused("floor is 3 at t", PRIOR, FRAME, REGION, floors=[3.0])
    refused("ways is 'robust'; choose one of 'joint'", PRIOR, FRAME, REGION, ways=["robust"])
    refused("name each way once", PRIOR, FRAME, REGION, ways=["joint", "joint"])
    refused("none of them in the region", PRIOR, FRAME, REGION, X_test=[0.1])
    refused("y has 3 values", PRIOR, FRAME, REGION, y=[1, 2, 3])
    refused("give a region such as", PRIOR, FRAME, "t > 1")
    refused("prior is 'rbf'", "rbf", FRAME, REGION)
    joint = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative("t")})
    refused("prior is a JointPrior of r, v", joint, FRAME, REGION)


@pytest.mark.parametrize(
    ("rows", "left_out"), [(300, ["pointwise"]), (700, ["pointwise", "predictions"]), (4500, ["pointwise", "diagonal"])]
)
def test_ways_that_take_minutes_are_left_out_and_said(rows: int, left_out: list[str]) -> None:
    inputs = as_inputs(np.linspace(0.0, 3.0, rows))
    region = sf.Box(1.0, 2.0).bind(inputs)
    comparison = Comparison(PRIOR, inputs, region, places_to_look(inputs, region))
    ways, slow = quick_ways(comparison)
    assert [way for way, why in slow if why.startswith("it takes minutes")] == left_out
    assert set(ways) == set(WAYS) - set(left_out)
