"""Records of several outputs: each inside the region of its own output, with an error and a floor of its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import sfumato as sf
from kernels import rbf

T = np.linspace(0.0, 3.0, 16)
LENGTH, V = 0.5, {"r": 0.2, "v": 1.5}
REGIONS = {"r": (1.0, 2.0), "v": (0.5, 1.5)}
BOXES = {name: sf.Box(*ends) for name, ends in REGIONS.items()}
NAMES = ("r", "v")


def joint():
    """A position and its velocity."""
    prior = sf.Prior(rbf(LENGTH), noise=V["r"])
    return sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": V["v"]})


def k(a, b, first, second):
    """The joint covariance, written from the formulas."""
    gap, square = np.reshape(a, (-1, 1)) - np.reshape(b, (1, -1)), LENGTH**2
    value = np.exp(-(gap**2) / (2 * square))
    if first == second:
        return value if first == "r" else (1 / square - gap**2 / square**2) * value
    return (-1.0 if first == "v" else 1.0) * gap / square * value


def covariance(first, second):
    """Cov of f at pairs of an input and an output's number."""
    result = np.zeros((len(first), len(second)))
    for i, one in enumerate(NAMES):
        for j, other in enumerate(NAMES):
            mine, theirs = first[:, 1] == i, second[:, 1] == j
            result[np.ix_(mine, theirs)] = k(first[mine, 0], second[theirs, 0], one, other)
    return result


ROWS = np.vstack([np.column_stack([T, np.full(len(T), i)]) for i in range(2)])
OWN = np.repeat([V["r"], V["v"]], len(T))
INSIDE = np.flatnonzero([REGIONS[NAMES[int(n)]][0] <= t <= REGIONS[NAMES[int(n)]][1] for t, n in ROWS])
ABOUT = ROWS[INSIDE, 1].astype(int)


def told(noise, sensitive=ROWS[:0]):
    """Cov before the release, and what it tells, of f(S) and then of the records inside."""
    places = np.vstack([sensitive, ROWS[INSIDE]])
    count = len(sensitive)
    before, cross = covariance(places, places), covariance(ROWS, places)
    cross[INSIDE, count + np.arange(len(INSIDE))] += OWN[INSIDE]
    before[count + np.arange(len(INSIDE)), count + np.arange(len(INSIDE))] += OWN[INSIDE]
    M = covariance(ROWS, ROWS) + np.diag(OWN) + noise
    return before, cross.T @ np.linalg.solve(M, cross)


def test_function_and_records_of_both_outputs_keep_their_share_and_all_combinations():
    mechanism = sf.protect(joint(), T, BOXES, alpha=0.3, progress=False)
    before, learnt = told(mechanism.noise.covariance(), mechanism.sensitive)
    worst = scipy.linalg.eigh(learnt, 0.3 * before, eigvals_only=True)[-1]
    assert worst <= 1 + 1e-9
    assert mechanism.certificate.joint_ratio == pytest.approx(worst, abs=1e-7)
    left = np.diag(before - learnt)[len(mechanism.sensitive) :] / (0.7 * np.diag(before)[len(mechanism.sensitive) :])
    assert mechanism.certificate.record_ratio == pytest.approx(np.sqrt(np.min(left)), abs=1e-7)
    assert (mechanism.certificate.records, mechanism.certificate.raw_records) == (len(INSIDE), 0)
    # a promise about f alone lets records out
    before, learnt = told(
        sf.protect(joint(), T, BOXES, alpha=0.3, protects="function", progress=False).noise.covariance()
    )
    assert scipy.linalg.eigh(learnt, 0.3 * before, eigvals_only=True)[-1] > 1.5


@pytest.mark.parametrize("alpha", [0.4, {"r": 0.1, "v": 0.6}], ids=["one", "each"])
def test_of_each_record_its_own_part_is_kept(alpha):
    mechanism = sf.protect(joint(), T, BOXES, alpha=alpha, protects="records", progress=False)
    _, learnt = told(mechanism.noise.covariance())
    shares = (
        np.array([alpha[name] for name in NAMES])[ABOUT] if isinstance(alpha, dict) else np.full(len(INSIDE), alpha)
    )
    allowed = covariance(ROWS[INSIDE], ROWS[INSIDE]) + np.diag(shares * OWN[INSIDE])
    assert scipy.linalg.eigh(learnt, allowed, eigvals_only=True)[-1] == pytest.approx(1.0, abs=1e-6)
    assert mechanism.certificate.joint_ratio == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("protects", ["both", "records"])
def test_each_output_has_a_floor_of_its_own(protects):
    floors = {"r": 0.8, "v": 1.6}
    mechanism = sf.protect(joint(), T, BOXES, floor=floors, protects=protects, progress=False)
    before, learnt = told(mechanism.noise.covariance())
    left = np.sqrt(np.diag(before - learnt)) / np.array([floors[name] for name in NAMES])[ABOUT]
    assert np.min(left) >= 1 - 1e-9
    assert mechanism.certificate.record_ratio == pytest.approx(np.min(left), abs=1e-7)
    # a floor between what f and what a record spreads can be promised of records alone
    between = {"r": 1.05, "v": 1.6}
    if protects == "both":
        with pytest.raises(sf.InputError, match=r"floor is 1\.05"):
            sf.protect(joint(), T, BOXES, floor=between, protects=protects, progress=False)
        return
    mechanism = sf.protect(joint(), T, BOXES, floor=between, protects=protects, progress=False)
    before, learnt = told(mechanism.noise.covariance())
    assert np.min(np.sqrt(np.diag(before - learnt)) / np.array([between[name] for name in NAMES])[ABOUT]) >= 1 - 1e-9


@pytest.mark.parametrize("protects", ["both", "records"])
def test_units_of_one_output_change_nothing_but_its_own_noise(protects):
    def noise(unit):
        B = [[1.0, 0.6 * unit], [0.6 * unit, unit**2]]
        prior = sf.JointPrior.coregionalised(sf.Prior(rbf(LENGTH)), B, NAMES, noise={"r": 0.1, "v": 0.3 * unit**2})
        mechanism = sf.protect(prior, T, BOXES, alpha=0.3, protects=protects, progress=False)
        assert mechanism.certificate.holds
        return mechanism

    unit = 2.0**20
    small, large = noise(1.0), noise(unit)
    scale = np.repeat([1.0, unit], len(T))
    assert large.noise.covariance() / np.outer(scale, scale) == pytest.approx(small.noise.covariance(), abs=1e-8)
    assert large.certificate.joint_ratio == pytest.approx(small.certificate.joint_ratio, abs=1e-6)
    assert large.certificate.record_ratio == pytest.approx(small.certificate.record_ratio, abs=1e-6)


def test_an_output_without_rows_or_without_errors_has_no_records():
    prior = sf.JointPrior.of(
        sf.Prior(rbf(LENGTH), noise=0.2), {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 0.0}
    )
    mechanism = sf.protect(prior, T, BOXES, alpha=0.3, protects="records", progress=False)
    assert len(mechanism.design.records) == np.sum(ABOUT == 0)
    alone = sf.protect(prior, T, BOXES, floor={"r": 0.5, "v": 1.0}, released=["r"], progress=False)
    assert len(alone.design.records) == np.sum(ABOUT == 0)
    assert alone.certificate.holds
    with pytest.raises(sf.InputError, match="nothing of their own"):
        sf.protect(prior, T, BOXES, alpha=0.3, protects="records", released=["v"], progress=False)
