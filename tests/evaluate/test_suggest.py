"""A suggestion is the strongest promise that others can afford, and says for whom each promise is."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.evaluate.promises_compared import compare_promises
from sfumato.evaluate.suggestions import LEVELS

T = np.linspace(0.0, 3.0, 31)
REGION = sf.Box(1.0, 2.0)
PRIOR = sf.Prior(matern(0.4), noise=0.2)


SERVE = np.array([0.2, 0.6, 2.3, 2.9])


@pytest.fixture(scope="module")
def found() -> sf.Suggestion:
    return sf.suggest(PRIOR, T, REGION, 0.02, serve=SERVE, progress=False)


@pytest.mark.parametrize("protects", ["both", "function", "records"])
def test_the_next_stronger_level_costs_too_much(found: sf.Suggestion, protects: str) -> None:
    (option,) = [one for one in found.options if one.protects == protects]
    prior_variance, bare = 1.0, PRIOR.condition(T, np.zeros(31)).variance(SERVE).mean()

    def loss(alpha: float) -> float:
        """Directly: of what all data explain at ``SERVE``, the share that is lost."""
        made = sf.protect(PRIOR, T, REGION, alpha, protects=protects, progress=False)  # type: ignore[arg-type]
        left = PRIOR.condition(T, np.zeros(31), made.noise.covariance() + 0.2 * np.eye(31)).variance(SERVE).mean()
        return float(1 - (prior_variance - left) / (prior_variance - bare))

    assert loss(option.alpha) == pytest.approx(option.loss, rel=1e-4)
    assert option.loss <= 0.02
    place = LEVELS.index(option.alpha)
    assert place == 0 or loss(LEVELS[place - 1]) > 0.02
    assert option.call == f'sf.protect(prior, X, region, alpha={option.alpha:g}, protects="{protects}")'


def test_the_widest_promise_comes_first_if_it_is_a_strong_one(found: sf.Suggestion) -> None:
    generous = sf.suggest(PRIOR, T, REGION, 0.6, progress=False)
    assert generous.best is not None
    assert generous.best.protects == "both"
    assert found.best is not None
    assert found.best.protects == "records"
    assert found.call in str(found)
    assert all(words in str(found) for words in ("for people", "for a surrogate, an orbit or a map", "when in doubt"))
    assert max(map(len, str(found).splitlines()[:5])) <= 80
    plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert plain["best"] == "records"
    assert [one["protects"] for one in plain["options"]] == ["both", "records", "function"]


def test_what_cannot_be_promised_is_said() -> None:
    """Without errors a record is f itself; and some losses are too small for any promise."""
    found = sf.suggest(sf.Prior(matern(0.4)), T, REGION, 1e-6, progress=False)
    assert found.best is None
    assert found.call == ""
    assert "None costs as little as less than 0.01 %." in str(found)
    both, records, function = found.options
    assert math.isnan(both.alpha)
    assert both.loss > 1e-6
    assert "nothing of their own" in records.why
    assert "noise is 0" in function.why
    for wrong in (0.0, 1.0, True, "a tenth"):
        with pytest.raises(sf.InputError, match=r"max_loss is .* share between 0 and 1"):
            sf.suggest(PRIOR, T, REGION, wrong)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="no inputs outside"):
        sf.suggest(PRIOR, T, sf.Everywhere(), progress=False)


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
