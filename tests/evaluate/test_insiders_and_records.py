"""What an audit says of insiders and of records is what regression on simulated data finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.evaluate.audits import adversaries
from sfumato.evaluate.insiders import worst_group, worst_rows
from sfumato.evaluate.records_told import RecordsTold, exact_differences, rows_that_unmask
from sfumato.evaluate.statistical_attacks import bayes, holds_rows
from sfumato.evaluate.target import Target, judge, target_for

#: Three people with equal inputs, and nine others.
X = np.array([0.0, 0.3, 0.7, 1.0, 1.2, 1.5, 1.5, 1.5, 1.8, 2.2, 2.6, 3.0])
PRIOR = sf.Prior(matern(0.6), mean=1.0, noise=0.5)
REGION = sf.Box(0.9, 2.0)


def target_of(protects: Any, seed: int = 0, **how: Any) -> Target:
    rng = np.random.default_rng(seed)
    y = 1.0 + np.linalg.cholesky(PRIOR.covariance(X) + 0.5 * np.eye(12)) @ rng.standard_normal(12)
    return target_for(sf.protect(PRIOR, X, REGION, 0.3, protects=protects, progress=False, **how).release(y), y)


def records_of(target: Target) -> Target:
    found = target.of_records()
    assert found is not None
    return found


@pytest.mark.parametrize("protects", ["function", "both", "records"])
@pytest.mark.parametrize("held", [(), (4,), (5, 9)])
def test_an_insider_predicts_a_neighbours_record_as_well_as_is_claimed(protects: str, held: tuple[int, ...]) -> None:
    """The oracle is ordinary least squares of true records on (W, y_H) over 40,000 simulated releases.

    A residual variance is off by 0.7 %, one standard error; the bound of 4 % fails by chance with probability < 1e-7.
    """
    target = records_of(target_of(protects))
    rows = np.array(held, dtype=np.intp)
    estimate = holds_rows(target, rows) if held else bayes(target)
    judged = estimate.target.records
    assert judged is not None
    assert list(judged) == [row for row in range(3, 9) if row not in held]
    rng = np.random.default_rng(1)
    y = np.linalg.cholesky(PRIOR.covariance(X) + 0.5 * np.eye(12)) @ rng.standard_normal((12, 40_000))
    W = y + target.release.noise.factor @ rng.standard_normal((target.release.noise.factor.shape[1], 40_000))
    seen = np.vstack([W, y[rows]])
    weights, *_ = np.linalg.lstsq(seen.T, y[judged].T, rcond=1e-10)
    left = np.mean((y[judged] - weights.T @ seen) ** 2, axis=1)
    np.testing.assert_allclose(estimate.std, np.sqrt(left), rtol=0.02, atol=1e-3)
    alone, *_ = np.linalg.lstsq(y[rows].T, y[judged].T, rcond=1e-10)
    before = np.mean((y[judged] - alone.T @ y[rows]) ** 2, axis=1)
    np.testing.assert_allclose(estimate.target.before, np.sqrt(before), rtol=0.02)


@pytest.mark.parametrize("about", ["f", "records"])
def test_the_worst_insider_is_found(about: str) -> None:
    """Every row and every pair with the worst row, each conditioned on from scratch."""
    target = target_of("both")
    target = records_of(target) if about == "records" else target
    data = PRIOR.covariance(X) + 0.5 * np.eye(12)
    noise = target.noise
    if target.records is None:
        cross, variance = PRIOR.covariance(X, target.inputs), np.ones(len(target.inputs))
    else:
        cross, variance = data[:, target.records], np.full(len(target.records), 1.5)

    def kept(rows: list[int]) -> float:
        """The least Var(v|y_H, W) / Var(v|y_H), of values that are not known to them."""
        both = np.block([[data + noise, data[:, rows]], [data[rows], data[np.ix_(rows, rows)]]])
        seen = np.vstack([cross, cross[rows]])
        after = variance - np.sum(seen * np.linalg.solve(both, seen), axis=0)
        before = variance - np.sum(cross[rows] * np.linalg.solve(data[np.ix_(rows, rows)], cross[rows]), axis=0)
        unknown = before > 1e-6
        return float(np.min(after[unknown] / before[unknown]))

    one, two, *_ = worst_rows(target, 5)
    assert kept([one]) == pytest.approx(min(kept([row]) for row in range(12)), rel=1e-9)
    assert kept([one, two]) == pytest.approx(min(kept([one, row]) for row in range(12) if row != one), rel=1e-9)
    groups = [np.array(rows) for rows in ([0, 1], [3, 4, 5], [6, 9], [10, 11])]
    shares = [kept(list(rows)) for rows in groups]
    assert worst_group(target, groups) == int(np.argmin(shares))


def test_exact_differences_and_few_sources_are_found_under_function_and_not_under_both() -> None:
    function, both = records_of(target_of("function")), records_of(target_of("both"))
    assert function.records is not None
    assert exact_differences(function, function.records) == (3, 3)
    assert exact_differences(both, function.records) == (3, 0)
    unmasked = rows_that_unmask(function, function.records)
    assert unmasked is not None
    # three of the six rows have equal noise: one of these and the others tell it
    assert unmasked <= 4
    assert rows_that_unmask(both, function.records) is None


def test_an_audit_says_what_is_told_about_records() -> None:
    target = target_of("function")
    made = sf.audit(target.release, target.y, draws=2, progress=False)
    assert isinstance(made.records, RecordsTold)
    assert (made.records.count, made.records.pairs, made.records.exact) == (6, 3, 3)
    assert made.records.severity == "high"
    assert made.holds
    (reader,) = [one for one in made.outcomes if one.name == "records: reader"]
    assert not reader.covered
    assert reader.floor == pytest.approx(np.sqrt(0.5))
    assert reader.rmse == pytest.approx(made.records.error)
    text = str(made)
    assert "3 pairs of private records with equal inputs: differences of 3 are published exactly." in text
    assert all(len(line) <= 80 for line in text.splitlines()[2 : 2 + len(made.outcomes)])
    only = target_of("records")
    made = sf.audit(only.release, only.y, draws=2, progress=False)
    assert made.holds
    assert {one.about for one in made.outcomes} == {"records"}
    assert "averages 2 releases" in {one.name for one in made.below}
    assert made.records is not None
    assert made.records.severity == "none"
    assert "no difference is exact" in str(made)
    with pytest.raises(sf.InputError, match="promises records, not f"):
        sf.audit(only.release, only.y, sensitive=[1.5])


@pytest.mark.parametrize(("insiders", "name"), [("rows", "holds 1 row"), ([[3, 4], [5, 9]], "holds the worst group")])
def test_insiders_whom_the_promise_is_made_to_are_covered_and_learn_no_more(insiders: Any, name: str) -> None:
    target = target_of("records", insiders=insiders)
    outcomes = {one.name: judge(one, one.attack()) for one in adversaries(target) if one.name.startswith("holds")}
    assert [each for each, outcome in outcomes.items() if outcome.covered] == [name]
    assert 1 - 1e-6 <= outcomes[name].ratio < 1.1
    assert outcomes[name].severity == "none"
    outsiders = target_of("records")
    (same,) = [one for one in adversaries(outsiders) if one.name == "holds 1 row"]
    assert judge(same, same.attack()).ratio < 0.9
