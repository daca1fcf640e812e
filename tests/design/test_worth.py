"""Whether the best predictions are worth it, as the rows outside the region tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.design.worth import LEAST_SAVED, Worth, not_worth_it
from sfumato.evaluate import compare_objectives

X = np.linspace(0.0, 1.0, 40)[:, None]
INSIDE = (X[:, 0] >= 0.4) & (X[:, 0] <= 0.6)
PRIOR = sf.Prior(kernel=matern(0.15, nu=2.5), noise=0.01)


def made(**how: Any) -> sf.Mechanism:
    how = {"objective": "predictions", "protects": "function"} | how
    return sf.protect(PRIOR, X, sf.Box(0.4, 0.6), alpha=0.2, progress=False, **how)


def by_leaving_out(mechanism: sf.Mechanism, y: np.ndarray, counts: np.ndarray | None = None) -> float:
    """Each row outside is taken out of the release by itself; the rows inside follow from those outside."""
    K, noise = PRIOR.covariance(X), mechanism.noise.drawn_covariance()
    A = K + 0.01 * np.eye(len(X))
    known = np.linalg.solve(A[np.ix_(~INSIDE, ~INSIDE)], A[np.ix_(~INSIDE, INSIDE)])
    filled = y.copy()
    filled[INSIDE] = known.T @ y[~INSIDE]
    left = np.zeros_like(A)
    left[np.ix_(INSIDE, INSIDE)] = A[np.ix_(INSIDE, INSIDE)] - known.T @ A[np.ix_(~INSIDE, INSIDE)]
    squares = []
    for i in np.flatnonzero(~INSIDE):
        others = np.arange(len(X)) != i
        hidden = mechanism.noise.suppressed[others]
        kept = np.linalg.svd(hidden)[0][:, hidden.shape[1] :]
        w = kept @ np.linalg.solve(kept.T @ (A + noise)[np.ix_(others, others)] @ kept, kept.T @ K[others, i])
        spread = (noise + left)[np.ix_(others, others)]
        squares.append((y[i] - w @ filled[others]) ** 2 + w @ spread @ w)
    return float(np.sqrt(np.average(squares, weights=counts)))


def test_errors_are_those_of_leaving_out_each_row_by_itself() -> None:
    best, least = made(), made(objective="noise")
    y = np.sin(7 * X[:, 0])
    worth = best.worth(y)
    assert worth is not None
    assert worth.here == pytest.approx(by_leaving_out(best, y), rel=1e-9)
    # the least noise for the same sensitive inputs, which a proof of its own adds a little to
    assert worth.least == pytest.approx(by_leaving_out(least, y), rel=0.05)
    assert least.worth(y) is None
    # nothing is learnt about what is inside
    assert best.worth(np.where(INSIDE, 99.0, y)) == worth


def test_functions_of_the_prior_are_served_better_and_others_need_not_be() -> None:
    best, rng = made(), np.random.default_rng(0)
    root = np.linalg.cholesky(PRIOR.covariance(X) + 0.01 * np.eye(len(X)))
    ratios = [best.worth(root @ rng.normal(size=len(X))).ratio for _ in range(40)]  # type: ignore[union-attr]
    assert np.mean(ratios) < 0.95
    for y in [root @ rng.normal(size=len(X)) for _ in range(20)]:
        codes = {one.code for one in best.findings_on(y)}
        assert ("predictions-not-better" in codes) == (best.worth(y).ratio > 1.0 - LEAST_SAVED)  # type: ignore[union-attr]
    assert not np.all(np.array(ratios) < 1.0 - LEAST_SAVED)


@pytest.mark.parametrize(
    ("here", "said", "pays"),
    [
        (1.27, "make errors 27 % larger", False),
        (0.987, "make errors only 1.3 % smaller", False),
        (0.8, "20 % sm", True),
    ],
)
def test_it_is_said_which_way_the_errors_go(here: float, said: str, pays: bool) -> None:
    worth = Worth(here, 1.0)
    assert worth.pays == pays
    assert said in worth.in_words
    assert [said in one.text for one in not_worth_it(worth)] == [True] * (not pays)


def test_errors_count_where_readers_are_served_and_as_much_as_weights_say() -> None:
    y, late = np.sin(7 * X[:, 0]), sf.Box(0.6001, 1.0)
    weights = np.linspace(1.0, 3.0, len(X))
    half = made(serve=late, weights=weights)
    worth = half.worth(y)
    assert worth is not None
    counts = np.where(X[:, 0] > 0.6, weights, 0.0)[~INSIDE]
    assert worth.here == pytest.approx(by_leaving_out(half, y, counts), rel=1e-9)
    assert "As the served rows outside the region tell" in str(worth)
    # served inputs that are no rows: all rows outside tell
    between = made(serve=[0.7012, 0.8013])
    all_rows = between.worth(y)
    assert all_rows is not None
    assert all_rows.here == pytest.approx(by_leaving_out(between, y), rel=1e-9)
    assert "As your rows outside the region tell" in str(all_rows)
    # inside nothing is compared
    assert made(serve=X[INSIDE]).worth(y) is None


def test_what_cannot_be_served_is_named() -> None:
    with pytest.raises(
        sf.InputError, match=r"serve is a region that does not fit: .* outside the data.*give serve inputs"
    ):
        made(serve=sf.Box(7.0, 8.0))
    with pytest.raises(sf.InputError, match=r"serve is 'x >= 0.7'; give inputs, or a region such as .*parse_region"):
        made(serve="x >= 0.7")


def test_a_release_of_a_ledger_is_not_compared_with_noise_for_the_whole_promise(tmp_path: Path) -> None:
    made = sf.Ledger(tmp_path / "of.ledger").protect(
        PRIOR, X, sf.Box(0.4, 0.6), alpha=0.2, objective="predictions", progress=False
    )
    y = np.sin(7 * X[:, 0])
    assert made.worth(y) is None
    assert "predictions-not-better" not in {one.code for one in made.findings_on(y)}
    assert np.isnan(made.certificate.explained_upper)
    assert "nan" not in str(made.certificate)
    # and whoever checks it finds no claim that is false, nor in the next one
    ledger, asked = sf.Ledger(tmp_path / "two.ledger"), {"alpha": 0.2, "share": 0.5, "objective": "predictions"}
    for _ in range(2):
        release = ledger.protect(PRIOR, X, sf.Box(0.4, 0.6), **asked, progress=False).release(y)
        ledger.record(release)
        checked = release.certify(progress=False)
        assert "claims-better-predictions" not in {one.code for one in checked.findings}
        assert compare_objectives(release.design, release.certificate) is None


def test_rows_that_are_not_served_get_what_costs_the_others_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    late, early = X[:, 0] > 0.6, X[:, 0] < 0.4
    data = PRIOR.covariance(X) + 0.01 * np.eye(len(X))

    def lost(mechanism: sf.Mechanism, rows: np.ndarray) -> float:
        cross = PRIOR.covariance(X)[:, rows]
        return 1.0 - float(np.mean(np.sum(cross * np.linalg.solve(data + mechanism.noise.covariance(), cross), axis=0)))

    narrow = made(serve=X[late])
    monkeypatch.setattr("sfumato.design.best_predictions.BESIDE", (0.0,))
    without = made(serve=X[late])
    assert lost(narrow, early) < 0.6 * lost(without, early)
    assert narrow.certificate.explained > without.certificate.explained - 1e-4
