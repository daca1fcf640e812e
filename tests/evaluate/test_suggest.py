"""A suggestion is the strongest promise that others can afford, and says for whom each promise is."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.design import SharedWork, asked_problem
from sfumato.evaluate.promises_compared import compare_promises
from sfumato.evaluate.suggestions import FIRST
from sfumato.evaluate.tradeoffs import COUNTS_ON_THE_PRIOR, share

T = np.linspace(0.0, 3.0, 31)
REGION = sf.Box(1.0, 2.0)
PRIOR = sf.Prior(matern(0.4), noise=0.2)


SERVE = np.array([0.2, 0.6, 2.3, 2.9])
PROMISES: tuple[Any, ...] = ("both", "records", "function")


@pytest.fixture(scope="module")
def found() -> sf.Suggestion:
    return sf.suggest(PRIOR, T, REGION, 0.02, serve=SERVE, progress=False)


def loss(alpha: float, protects: Any) -> float:
    """Directly: of what all data explain at ``SERVE``, the share that is lost."""
    bare = PRIOR.condition(T, np.zeros(31)).variance(SERVE).mean()
    made = sf.protect(PRIOR, T, REGION, alpha, protects=protects, progress=False)
    left = PRIOR.condition(T, np.zeros(31), made.noise.covariance() + 0.2 * np.eye(31)).variance(SERVE).mean()
    return float(1 - (1 - left) / (1 - bare))


@pytest.mark.parametrize("protects", PROMISES)
def test_it_costs_what_protect_costs_and_a_little_stronger_costs_too_much(found: sf.Suggestion, protects: str) -> None:
    (option,) = [one for one in found.options if one.protects == protects]
    assert loss(option.alpha, protects) == pytest.approx(option.loss, rel=1e-6)
    assert option.loss <= 0.02
    assert option.evidence == "proved"
    assert option.alpha == FIRST[0] or loss(0.94 * option.alpha, protects) > 0.02
    kept = math.sqrt((1 - option.alpha) * (0.2 if protects == "records" else 1.0))
    assert option.floor == pytest.approx(kept)
    assert (option.record_std if protects == "records" else option.function_std) >= kept * (1 - 1e-9)
    assert option.call == f'sf.protect(prior, X, region, alpha={option.alpha:g}, protects="{protects}")'


def test_the_best_predictions_buy_a_stronger_floor_and_both_objectives_are_said(found: sf.Suggestion) -> None:
    served = sf.suggest(PRIOR, T, REGION, 0.02, objective="predictions", serve=SERVE, progress=False)
    for least, best in zip(found.options, served.options, strict=True):
        assert best.alpha <= least.alpha
        assert best.loss <= 0.02
        assert least.other is not None
        assert best.other is not None
        assert least.other.loss < least.loss
        assert best.loss < best.other.loss
    one = served.options[0]
    made = sf.protect(PRIOR, T, REGION, one.alpha, objective="predictions", serve=SERVE, progress=False)
    left = PRIOR.condition(T, np.zeros(31), made.noise.covariance() + 0.2 * np.eye(31)).variance(SERVE).mean()
    bare = PRIOR.condition(T, np.zeros(31)).variance(SERVE).mean()
    assert one.loss == pytest.approx(1 - (1 - left) / (1 - bare), rel=1e-6)
    assert one.call.endswith(', protects="both", objective="predictions", serve=serve)')
    assert one.options.endswith("--protects both --objective predictions")
    assert f"{share(found.options[0].other.loss)} with the best predictions;" in found.sentence(found.options[0])
    assert f"{share(one.other.loss)} with the least noise;" in served.sentence(one)
    assert COUNTS_ON_THE_PRIOR in " ".join(str(found).split())
    with pytest.raises(sf.InputError, match='max_noise is given, but objective is "predictions"'):
        sf.suggest(PRIOR, T, REGION, max_noise=0.1, objective="predictions", progress=False)
    with pytest.raises(sf.InputError, match="objective is 'trace'"):
        sf.suggest(PRIOR, T, REGION, objective="trace", progress=False)  # type: ignore[arg-type]


def test_more_noise_buys_a_stronger_floor_and_the_other_way_round_agrees() -> None:
    points = sf.Points(T[[12, 15, 19], None])
    asked: dict[str, Any] = {"serve": SERVE, "progress": False}
    little, more = (sf.suggest(PRIOR, T, points, max_noise=noise, **asked) for noise in (0.1, 0.2))
    for weak, strong in zip(little.options, more.options, strict=True):
        assert weak.floor < strong.floor
        assert 0.09 < weak.noise <= 0.1 < strong.noise <= 0.2
        lines = sorted(strong.curve, key=lambda line: line.alpha)
        assert all(weaker.noise < 1.01 * line.noise for line, weaker in pairwise(lines))
    one = more.options[2]
    back = sf.suggest(PRIOR, T, points, floor=one.floor, serve=SERVE, progress=False).options[2]
    assert back.noise == pytest.approx(one.noise, rel=1e-3)
    assert back.error == pytest.approx(one.error, rel=1e-3)
    assert back.alpha == pytest.approx(one.alpha, rel=1e-3)
    assert back.call == f'sf.protect(prior, X, region, floor={back.floor:.12g}, protects="function")'
    by_error = sf.suggest(PRIOR, T, points, max_error=one.error, **asked).options[2]
    assert by_error.floor == pytest.approx(one.floor, rel=0.01)
    assert 0.99 * one.error < by_error.error <= one.error * (1 + 1e-9)
    with pytest.raises(sf.InputError, match=r"max_error is 0\.01, but without protection the error is 0\.2"):
        sf.suggest(PRIOR, T, points, max_error=0.01, **asked)
    made = sf.protect(PRIOR, T, points, one.alpha, protects="function", progress=False)
    assert one.noise == pytest.approx(math.sqrt(made.noise.trace / 31), rel=1e-6)


def test_the_widest_promise_comes_first_if_it_is_a_strong_one(found: sf.Suggestion) -> None:
    generous = sf.suggest(PRIOR, T, REGION, 0.6, output="height [m]", progress=False)
    assert generous.best is not None
    assert generous.best.protects == "both"
    assert found.best is not None
    assert found.best.protects == "records"
    assert f'If "records" is right for you:\n  {found.call}' in str(found)
    assert ("α below 0.01 was not tried" in found.sentence(found.best)) is (found.best.alpha == 0.01)
    assert all(words in str(found) for words in ("for people", "for a surrogate", "when in doubt"))
    assert max(map(len, str(generous).splitlines())) <= 80
    one = generous.options[0]
    said = f"both: the strongest floor is ±{one.floor:.4g} m (α = {one.alpha:g}): error outside "
    assert said in " ".join(str(generous).split())
    assert " m, " in generous.sentence(one)
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["best"] == "records"
    assert plain["max_loss"] == 0.02
    assert [one["protects"] for one in plain["options"]] == ["both", "records", "function"]


def test_the_picture_marks_what_is_suggested(found: sf.Suggestion) -> None:
    ax = found.plot()
    stars = [line for line in ax.get_lines() if line.get_marker() == "*"]
    suggested, other = (
        [one for one in stars if (one.get_markerfacecolor() == "white") is kind] for kind in (False, True)
    )
    affordable = [one for one in found.options if one.affordable]
    assert [float(line.get_xdata()[0]) for line in suggested] == [one.floor for one in affordable]  # type: ignore[index]
    assert [float(line.get_ydata()[0]) for line in other] == [one.other.loss for one in affordable if one.other]  # type: ignore[index]
    assert "the same with the best predictions" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert "at most 2 %" in [text.get_text() for text in ax.texts]
    assert "floor: the std of f" in ax.get_xlabel()


def test_what_cannot_be_promised_is_said() -> None:
    """Without errors a record is f itself; and some losses are too small for any promise."""
    found = sf.suggest(sf.Prior(matern(0.4)), T, REGION, 1e-6, progress=False)
    assert found.best is None
    assert found.call == ""
    assert "None costs as little as less than 0.01 %." in str(found)
    both, records, function = found.options
    assert not both.affordable
    assert both.loss > 1e-6
    assert "nothing of their own" in records.why
    assert "noise is 0" in function.why
    for wrong in (0.0, 1.0, True, "a tenth"):
        with pytest.raises(sf.InputError, match=r"max_loss is .* share between 0 and 1"):
            sf.suggest(PRIOR, T, REGION, wrong)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="max_noise is -1; give a positive"):
        sf.suggest(PRIOR, T, REGION, max_noise=-1)
    with pytest.raises(sf.InputError, match="max_loss is given, and floor too; give one of"):
        sf.suggest(PRIOR, T, REGION, 0.1, floor=0.5)
    with pytest.raises(sf.InputError, match="no inputs outside"):
        sf.suggest(PRIOR, T, sf.Everywhere(), progress=False)


@pytest.mark.parametrize("protects", PROMISES)
def test_designs_that_share_their_factorisation_are_those_of_protect(protects: Any) -> None:
    points = sf.Points([[1.2], [1.5], [1.9]])
    where = asked_problem(PRIOR, T, points, 0.5)
    work = SharedWork(where, "auto")
    for how in ({"alpha": 0.1}, {"alpha": 0.6}, {"floor": 0.3}):
        looked = work.looked_at(asked_problem(PRIOR, T, points, protects=protects, **how), lambda words: None)
        made = sf.protect(PRIOR, T, points, protects=protects, progress=False, **how)  # type: ignore[arg-type]
        assert looked.seen.holds
        np.testing.assert_allclose(looked.design.noise.covariance(), made.noise.covariance(), rtol=0, atol=1e-9)
        left = PRIOR.condition(T, np.zeros(31), made.noise.covariance() + 0.2 * np.eye(31)).variance(SERVE)
        told = work.told(looked.design.noise)
        assert told is not None
        np.testing.assert_allclose(told.left_at(SERVE[:, None]), left, rtol=1e-9)


def test_a_design_that_is_looked_at_is_the_closed_form_and_keeps_the_floor_between() -> None:
    work = SharedWork(asked_problem(PRIOR, T, REGION, 0.5), "auto")
    between = np.linspace(1, 2, 5001)[:, None]
    for alpha in (0.05, 0.7):
        made = work.looked_at(asked_problem(PRIOR, T, REGION, alpha, protects="function"), lambda words: None)
        A, S = PRIOR.covariance(T) + 0.2 * np.eye(31), made.sensitive
        U = PRIOR.covariance(T, S)
        B = U @ np.linalg.solve(alpha * made.tightening * PRIOR.covariance(S), U.T) - A
        values, vectors = np.linalg.eigh(B)
        least = (vectors * np.maximum(values, 0)) @ vectors.T
        np.testing.assert_allclose(made.design.noise.covariance(), least, rtol=0, atol=1e-7)
        K = PRIOR.covariance(T, between)
        left = 1 - np.einsum("ij,ij->j", K, np.linalg.solve(A + least, K))
        assert left.min() >= 1 - alpha
        assert left.min() == pytest.approx(1 - alpha, rel=5e-3)
        with pytest.raises(sf.GuaranteeError, match="no certificate"):
            made.seen.certificate()


@pytest.mark.parametrize("how", [{"alpha": 0.3}, {"floor": 0.5}])
def test_a_comparison_without_designs_is_near_one_with_designs(how: dict[str, Any]) -> None:
    outside = (T < 1.0) | (T > 2.0)
    promises: tuple[Any, ...] = ("both", "function", "records")
    made = {one: sf.protect(PRIOR, T, REGION, protects=one, progress=False, **how) for one in promises}

    def error(noise: np.ndarray) -> float:
        left = PRIOR.condition(T, np.zeros(31), noise + 0.2 * np.eye(31)).variance(T[outside])
        return float(np.sqrt(np.mean(left)))

    found = compare_promises(made["both"].design)
    assert found is not None
    assert found.nothing == pytest.approx(error(np.zeros((31, 31))))
    assert found.both == pytest.approx(error(made["both"].noise.covariance()), rel=1e-6)
    assert found.function == pytest.approx(error(made["function"].noise.covariance()), rel=0.1)
    assert found.records == pytest.approx(error(made["records"].noise.covariance()), rel=1e-3)
    assert "without protection" in str(found)
    assert "with both protected (as here)" in str(found)
    other = sf.protect(PRIOR, T, REGION, structure="diagonal", progress=False, **how)
    assert compare_promises(other.design) is None


def test_a_long_name_is_no_start_of_a_paragraph(found: sf.Suggestion) -> None:
    for letters in range(1, 90):
        named = replace(found, output=f"{'x' * letters} The promise holds.")
        assert not [line for line in str(named).split("\n") if line.startswith(("The promise", "promise"))]
