"""Noise for records and for readers who hold rows: the least, or safe and near it, by oracles that share no code."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import sfumato as sf
from insider_oracles import Secret
from kernels import matern, rbf

#: Two rows inside have equal inputs, which are a sensitive input too.
X = np.array([0.0, 0.3, 0.55, 0.9, 1.1, 1.5, 1.5, 1.7, 1.95, 2.2, 2.45, 2.6, 2.8, 3.0])
POINTS = np.array([1.1, 1.5, 1.62])
PAIRS = [[0, 1], [3, 4], [5, 7], [2, 9, 11], [8]]
RECORDS = np.flatnonzero(np.isin(X, POINTS))


def kernel32(lengthscale: float, variance: float = 1.0) -> Any:
    return lambda a, b: oracles.matern32(a[:, None], b[:, None], lengthscale, variance)


def secret(protects: str, alpha: float = 0.4, V: float | np.ndarray = 0.05) -> Secret:
    return Secret(kernel32(0.6), X, np.broadcast_to(V, len(X)), POINTS, RECORDS, alpha, protects)


def groups_of(insiders: Any) -> list[list[int]]:
    return [[i] for i in range(len(X))] if insiders == "rows" else insiders


def least_trace(one: Secret, groups: list[list[int]]) -> float:
    """min Tr Σ with Σ ⪰ B_0 and Σ ⪰ B_H for all groups."""
    return oracles.least_noise([(one.data, [one.demand(rows) + one.data for rows in ([], *groups)])])


def protected(kernel: gpytorch.kernels.Kernel, x: np.ndarray, region: sf.Region, V: Any, **how: Any) -> sf.Mechanism:
    return sf.protect(sf.Prior(kernel, noise=V), x, region, progress=False, **how)


@pytest.mark.parametrize("protects", ["function", "both", "records"])
@pytest.mark.parametrize("insiders", [None, "rows", PAIRS], ids=["nobody", "rows", "groups"])
def test_the_noise_for_records_and_insiders_is_the_least(protects: str, insiders: Any) -> None:
    """CVXPY + Clarabel on matrices B_0, B_H that are built from scratch: min Tr Σ, Σ ⪰ B_H for all groups."""
    one = secret(protects)
    made = protected(matern(0.6), X, sf.Points(POINTS), 0.05, alpha=0.4, protects=protects, insiders=insiders)
    least = least_trace(one, groups_of(insiders) if insiders else [])
    assert made.certificate.holds
    assert made.noise.trace == pytest.approx(least, rel=1e-4)
    # what the design says of how little is possible is true
    assert (1 - made.certificate.gap) * made.noise.trace <= least * (1 + 1e-6)
    if insiders:
        worst = max(one.ratio(rows, made.noise.covariance()) for rows in groups_of(insiders))
        assert made.certificate.insider_ratio == pytest.approx(worst, abs=2e-4)
        # one row takes noise off that was made for outsiders
        free = protected(matern(0.6), X, sf.Points(POINTS), 0.05, alpha=0.4, protects=protects).noise
        assert max(one.ratio(rows, free.covariance()) for rows in groups_of(insiders)) > 1.0 + 1e-3
        assert made.noise.trace > free.trace


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
@pytest.mark.parametrize("protects", ["both", "records"])
def test_a_region_costs_no_less_than_its_sensitive_inputs(protects: str) -> None:
    inside = np.flatnonzero((X >= 1.0) & (X <= 2.0))
    made = protected(matern(0.6), X, sf.Box(1, 2), 0.05, alpha=0.4, protects=protects, insiders="rows")
    sensitive = np.ravel(made.sensitive)
    one = Secret(kernel32(0.6), X, np.full(len(X), 0.05), sensitive, inside, 0.4, protects)
    assert made.certificate.holds
    assert made.noise.trace >= least_trace(one, groups_of("rows")) * (1 - 1e-6)
    assert max(one.ratio([row], made.noise.covariance()) for row in range(len(X))) <= 1 + 1e-7


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
@pytest.mark.parametrize("protects", ["function", "both", "records"])
@pytest.mark.parametrize("insiders", ["rows", PAIRS], ids=["rows", "groups"])
def test_what_is_found_for_many_rows_is_close_to_the_least(
    monkeypatch: pytest.MonkeyPatch, protects: str, insiders: Any
) -> None:
    monkeypatch.setattr("sfumato.design.insiders.ROWS_FOR_THE_LEAST", 0)
    made = protected(matern(0.6), X, sf.Points(POINTS), 0.05, alpha=0.4, protects=protects, insiders=insiders)
    least = least_trace(secret(protects), groups_of(insiders))
    assert made.certificate.holds
    assert (1 - 1e-6) * least <= made.noise.trace <= 1.1 * least


@pytest.mark.parametrize("protects", ["function", "both", "records"])
def test_many_rows_are_safe_for_every_group_and_cost_less_than_noise_for_everybody(protects: str) -> None:
    x = np.sort(np.r_[np.random.default_rng(7).uniform(0.0, 3.0, 57), [1.5] * 3])
    V = np.full(len(x), 0.3)
    points = x[(x > 1.2) & (x < 1.8)]
    labels = np.arange(len(x)) // 2
    made = protected(matern(0.5), x, sf.Points(points), 0.3, alpha=0.3, protects=protects, insiders=labels)
    one = Secret(kernel32(0.5), x, V, np.unique(points), np.flatnonzero(np.isin(x, points)), 0.3, protects)
    ratios = [one.ratio([], made.noise.covariance())]
    ratios += [one.ratio(np.flatnonzero(labels == label), made.noise.covariance()) for label in range(30)]
    assert made.certificate.holds
    assert max(ratios) <= 1 + 1e-7
    assert made.certificate.insider_ratio == pytest.approx(max(ratios[1:]), abs=2e-4)
    assert made.noise.trace < (1 / 0.3 - 1) * np.trace(one.data)
    free = protected(matern(0.5), x, sf.Points(points), 0.3, alpha=0.3, protects=protects)
    assert free.noise.trace < made.noise.trace < 1.6 * free.noise.trace


# ---------------------------------------------------------------- the numbers of MATH.md 13


def test_what_is_promised_of_records_with_equal_inputs() -> None:
    """n = 60, V = 0.5, α = 0.1, three equal inputs; the kernel is not given there, the shares do not depend on it."""
    x = np.sort(np.r_[np.random.default_rng(0).uniform(0.0, 3.0, 57), [1.5] * 3])
    inside, equal = np.flatnonzero((x >= 1) & (x <= 2)), np.flatnonzero(x == 1.5)
    one = Secret(kernel32(0.4), x, np.full(60, 0.5), np.unique(x[inside]), inside, 0.1, "both")
    traces = {}
    for protects, difference, whole in (("function", 0.000, None), ("both", 0.900, 0.900), ("records", 0.900, None)):
        made = protected(matern(0.4), x, sf.Points(x[inside]), 0.5, alpha=0.1, protects=protects)
        left = one.data - one.data @ np.linalg.solve(one.data + made.noise.covariance(), one.data)
        pair = left[np.ix_(equal[:2], equal[:2])]
        assert (pair[0, 0] + pair[1, 1] - 2 * pair[0, 1]) / 1.0 == pytest.approx(difference, abs=5e-4)
        if protects == "function":
            # 0.626 in MATH.md
            assert np.min(np.diag(left)[inside]) / 1.5 == pytest.approx(0.626, abs=0.02)
        if whole is not None:
            own = np.linalg.eigvals(
                np.linalg.solve(one.data[np.ix_(inside, inside)], left[np.ix_(inside, inside)])
            ).real
            assert own.min() == pytest.approx(whole, abs=5e-4)
        joint = one.ratio([], made.noise.covariance())
        assert joint == pytest.approx({"function": 10.0, "both": 1.0, "records": joint}[protects], abs=5e-3)
        traces[protects] = made.noise.trace
    # 519/428 in MATH.md
    assert 1.1 < traces["both"] / traces["function"] < 1.4
    assert traces["records"] < 0.25 * traces["both"]


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("protects", ["function", "both"])
def test_a_group_with_equal_inputs_the_whole_region_and_all_rows(protects: str) -> None:
    """Rows with equal inputs have the same noise under "function": no more than one of them tells."""
    one = secret(protects, V=0.1)
    groups = [np.flatnonzero(X == 1.5), np.flatnonzero((X >= 1) & (X <= 2)), np.arange(len(X))]
    for rows in groups:
        how = {"alpha": 0.4, "protects": protects, "insiders": [rows.tolist()]}
        made = protected(matern(0.6), X, sf.Points(POINTS), 0.1, **how)
        assert made.certificate.holds
        worst = one.ratio(rows, made.noise.covariance())
        assert made.certificate.insider_ratio == pytest.approx(worst, abs=2e-4)
        assert worst <= 1 + 1e-7
    # who holds all rows is told nothing
    assert worst == pytest.approx(0.0, abs=1e-5)
    assert made.noise.trace == pytest.approx(least_trace(one, []), rel=1e-4)


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_what_a_group_knows_beforehand_is_not_promised_to_it_and_said() -> None:
    x = np.delete(X, 5)
    made = protected(matern(0.6), x, sf.Points([1.1, 1.62]), 0.0, alpha=0.4, insiders=[[4], [0, 12]])
    one = Secret(kernel32(0.6), x, np.zeros(len(x)), np.array([1.1, 1.62]), np.zeros(0, int), 0.4, "function")
    assert list(one.unknown_to([4])) == [1]
    assert made.certificate.holds
    worst = max(one.ratio(rows, made.noise.covariance()) for rows in ([4], [0, 12]))
    assert made.certificate.insider_ratio == pytest.approx(worst, abs=2e-4)
    assert "known-to-insiders" in {one.code for one in made.certificate.findings}
    # nobody can be promised anything about what they know: with nothing else sensitive they bind nothing
    alone = protected(matern(0.6), x, sf.Points([1.1]), 0.0, alpha=0.4, insiders=[[4]])
    free = protected(matern(0.6), x, sf.Points([1.1]), 0.0, alpha=0.4)
    assert (alone.certificate.holds, alone.certificate.insider_ratio) == (True, 0.0)
    assert alone.noise.trace == pytest.approx(free.noise.trace, rel=1e-9)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"insiders": [[5, 6]], "noise": 0.0}, "2 rows in group 0 of which some determine others"),
        ({"protects": "records", "noise": 0.0}, "nothing of their own"),
        ({"insiders": [[0, 14]]}, "give row numbers from 0 to 13"),
        ({"insiders": [[0], []]}, "at place 1"),
        ({"insiders": [[1, 1]]}, "each once"),
        ({"insiders": [[True, 2]]}, "give row numbers"),
        ({"insiders": ["a"] * 13}, "13 labels, but X has 14 rows"),
        ({"insiders": [None] * 14}, "no label"),
        ({"insiders": "households"}, "households"),
        ({"insiders": "rows", "tolerance": sf.MatrixTolerance(0.1 * np.eye(3)), "alpha": None}, "MatrixTolerance"),
        ({"insiders": "rows", "region": sf.Everywhere()}, "bound it"),
    ],
)
def test_what_cannot_be_promised_is_refused_in_words(how: dict[str, Any], message: str) -> None:
    how = {"alpha": 0.4, "region": sf.Points(POINTS), "noise": 0.05} | how
    prior, region = sf.Prior(matern(0.6), noise=how.pop("noise")), how.pop("region")
    with pytest.raises(sf.InputError, match=message):
        sf.protect(prior, X, region, progress=False, **how)


# ---------------------------------------------------------------- anything


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.integers(4, 11))
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(0.0, 2.0, n), 1)  # equal inputs are common
    protects = draw(st.sampled_from(["both", "function", "records"]))
    chosen = rng.choice(n, draw(st.integers(1, min(n, 4))), replace=False)
    groups = [sorted(rng.choice(n, size, replace=False).tolist()) for size in rng.integers(1, min(n, 4), 3)]
    return {
        "x": x,
        "points": np.unique(np.r_[x[chosen], 0.77] if draw(st.booleans()) else x[chosen]),
        "V": rng.uniform(0.02, 1.0, n) if draw(st.booleans()) else np.full(n, 0.1),
        "smooth": draw(st.booleans()),
        "lengthscale": draw(st.sampled_from([0.2, 0.5, 1.0])),
        "alpha": draw(st.sampled_from([0.1, 0.4, 0.8])),
        "protects": protects,
        "guarantee": draw(st.sampled_from(["joint", "pointwise"])),
        "structure": draw(st.sampled_from(["full", "full", "diagonal"])),
        "insiders": draw(st.sampled_from([None, "rows", groups])),
    }


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
@settings(max_examples=20)
@given(problems())
def test_whatever_holds_is_confirmed_from_scratch(asked: dict[str, Any]) -> None:
    x, points, ell = asked["x"], asked["points"], asked["lengthscale"]
    kernel = rbf(ell, 2.0) if asked["smooth"] else matern(ell, 2.0)
    formula = oracles.rbf if asked["smooth"] else oracles.matern32
    how = {name: asked[name] for name in ("alpha", "protects", "guarantee", "structure", "insiders")}
    made = protected(kernel, x, sf.Points(points), asked["V"], **how)
    assert made.certificate.holds
    one = Secret(
        lambda a, b: formula(a[:, None], b[:, None], ell, 2.0),
        *(x, asked["V"], points, np.flatnonzero(np.isin(x, points)), asked["alpha"], asked["protects"]),
    )
    joint, sigma = asked["guarantee"] == "joint", made.noise.covariance()
    assert one.ratio([], sigma, joint) <= 1 + 1e-6
    insiders = [[row] for row in range(len(x))] if asked["insiders"] == "rows" else asked["insiders"] or []
    told = [one.ratio(rows, sigma, joint) for rows in insiders]
    assert max(told, default=0.0) <= 1 + 1e-6
    if told:
        assert made.certificate.insider_ratio >= max(told) - 1e-7
        assert made.certificate.insider_ratio == pytest.approx(max(told), abs=2e-4)
