"""What a certificate says about records: against dense formulas, with equal inputs, and in ε."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import oracles
import sfumato as sf
from kernels import matern, rbf
from sfumato.noise.noise import CorrelatedNoise, IndependentNoise
from sfumato.proof.records import record_sensitivity

ALPHA = 0.1
#: Three rows inside the region have equal inputs.
X = np.sort(np.r_[np.random.default_rng(4).uniform(0.0, 3.0, 37), [1.5] * 3])
V = np.random.default_rng(5).uniform(0.3, 0.7, len(X))
INSIDE = np.flatnonzero((X >= 1.0) & (X <= 2.0))
EQUAL = np.flatnonzero(X == 1.5)
K = oracles.matern32(X[:, None], X[:, None], 0.4, 1.0)
A = K + np.diag(V)


def left(mechanism: sf.Mechanism) -> np.ndarray:
    """Cov(y|W)."""
    return A - A @ np.linalg.solve(A + mechanism.noise.covariance(), A)


@pytest.fixture(scope="module")
def mechanisms() -> dict[str, sf.Mechanism]:
    prior, region = sf.Prior(matern(0.4), noise=V), sf.Box(1.0, 2.0)
    return {
        protects: sf.protect(prior, X, region, alpha=ALPHA, protects=protects, progress=False)
        for protects in ("function", "both", "records")
    }


def test_the_certificate_says_how_well_records_are_known(mechanisms: dict[str, sf.Mechanism]) -> None:
    for protects, mechanism in mechanisms.items():
        found, kept = mechanism.certificate, np.diag(left(mechanism))[INSIDE]
        assert (found.holds, found.evidence) == (True, "proved")
        assert (found.records, found.raw_records) == (len(INSIDE), 0)
        assert found.record_noise == pytest.approx(np.sqrt(mechanism.noise.variance()[INSIDE].min()), rel=1e-12)
        assert found.record_learnt == pytest.approx(1.0 - np.min(kept / np.diag(A)[INSIDE]), rel=1e-6)
        floors = {"both": (1 - ALPHA) * np.diag(A)[INSIDE], "records": (1 - ALPHA) * V[INSIDE], "function": np.nan}
        least = np.sqrt(np.min(kept / floors[protects]))
        assert found.record_ratio == pytest.approx(least, rel=1e-6, nan_ok=True)


def test_rows_with_equal_inputs_are_told_apart_only_under_a_promise_about_the_function(
    mechanisms: dict[str, sf.Mechanism],
) -> None:
    difference = np.zeros(len(X))
    difference[EQUAL[:2]] = 1.0, -1.0
    before = V[EQUAL[:2]].sum()
    kept = {name: float(difference @ left(one) @ difference) / before for name, one in mechanisms.items()}
    assert kept["function"] == pytest.approx(0.0, abs=1e-6)
    assert min(kept["both"], kept["records"]) >= (1 - ALPHA) * (1 - 1e-9)


def test_records_cost_others_little_and_a_function_much(mechanisms: dict[str, sf.Mechanism]) -> None:
    outside = np.setdiff1d(np.arange(len(X)), INSIDE)
    noise = {name: one.noise.variance()[outside].sum() for name, one in mechanisms.items()}
    assert noise["records"] < 0.01 * noise["function"]
    assert mechanisms["records"].noise.trace < mechanisms["function"].noise.trace < mechanisms["both"].noise.trace


def test_the_sensitivity_of_a_release_to_a_record_is_that_of_the_pseudo_inverse() -> None:
    rng = np.random.default_rng(6)
    low, rows = rng.normal(size=(12, 5)), np.array([2, 7])
    own = np.zeros((12, 7))
    own[:, :5], own[rows, [5, 6]] = low, 0.3  # e_i lies in the range of Σ for these rows, and for no others
    inverse = np.linalg.pinv(own @ own.T, rcond=1e-12)
    assert record_sensitivity(CorrelatedNoise(own), rows) == pytest.approx(np.sqrt(np.diag(inverse)[rows].max()))
    assert record_sensitivity(CorrelatedNoise(own), np.array([2, 3])) == np.inf
    assert record_sensitivity(CorrelatedNoise(low), rows) == np.inf
    raised = np.linalg.inv(low @ low.T + 0.01 * np.eye(12))
    shifted = record_sensitivity(CorrelatedNoise(low, 0.01), rows)
    assert shifted == pytest.approx(np.sqrt(np.diag(raised)[rows].max()))
    variances = np.r_[0.0, np.linspace(0.2, 3.0, 11)]
    assert record_sensitivity(IndependentNoise(variances), rows) == pytest.approx(1 / np.sqrt(variances[2]))
    assert record_sensitivity(IndependentNoise(variances), np.array([0, 7])) == np.inf


def test_epsilon_is_that_of_a_gaussian_mechanism(mechanisms: dict[str, sf.Mechanism]) -> None:
    assert mechanisms["both"].certificate.dp(range=1.0) == np.inf
    prior, region = sf.Prior(matern(0.4), noise=V), sf.Box(1.0, 2.0)
    how = {"protects": "records", "structure": "diagonal", "progress": False}
    found = sf.protect(prior, X, region, alpha=ALPHA, **how).certificate.dp(range=0.5, delta=1e-6)
    assert found.mu == pytest.approx(0.5 * 1 / np.sqrt((1 / ALPHA - 1) * V[INSIDE].min()), rel=0.2)
    with mpmath.workdps(40):
        mu, epsilon = mpmath.mpf(found.mu), mpmath.mpf(float(found))
        inside = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.e**epsilon * mpmath.ncdf(-mu / 2 - epsilon / mu)
    assert float(inside) == pytest.approx(1e-6, rel=1e-6)
    assert "differentially private" in str(found)


def test_records_that_one_prior_takes_for_f_are_said_not_to_be_promised():
    t = np.linspace(0.0, 3.0, 31)
    noisy, exact = sf.Prior(rbf(0.5), noise=0.5), sf.Prior(rbf(0.4))
    with pytest.warns(sf.GuaranteeWarning, match="11 of the 11 records in the region are not promised"):
        found = sf.protect(noisy, t, sf.Box(1.0, 2.0), alpha=0.3, priors=[exact], progress=False).certificate
    assert "records-not-promised" in {one.code for one in found.findings}
