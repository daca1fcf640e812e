"""The promise of designs with the best predictions: in 50 digits, over random problems, and by simulation."""

from __future__ import annotations

import warnings

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

import oracles
import sfumato as sf
from kernels import rbf
from oracles import DIGITS, exact, rbf50

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

#: All tests of one simulation together fail by chance with at most this probability.
ERROR = 1e-6


def told50(made: sf.Mechanism, at: np.ndarray, suppressed: bool = True) -> mpmath.matrix:
    """``K_PX P K_XP`` at inputs, P = M⁻¹ − M⁻¹N(NᵀM⁻¹N)⁻¹NᵀM⁻¹, from the published numbers in 50 digits.

    Not ``suppressed``: N is noise that was drawn, as in ``noise.covariance()``.
    """
    lengthscale, variance = parameters(made)
    noise = made.noise
    with mpmath.workdps(DIGITS):
        V = float(np.asarray(made.prior.noise))
        drawn = noise.factor if suppressed else noise.blurring
        M = oracles.reader_covariance50(made.inputs, lengthscale, variance, drawn, noise.shift, V)
        lower = mpmath.cholesky(M)
        seen = oracles.forward50(lower, rbf50(made.inputs, at, lengthscale, variance))
        told = seen.T.dot(seen)
        if suppressed and noise.suppressed.shape[1]:
            N = oracles.forward50(lower, exact(noise.suppressed))
            root = mpmath.cholesky(mpmath.matrix(N.T.dot(N).tolist()))
            hidden = oracles.forward50(root, mpmath.matrix(N.T.dot(seen).tolist()))
            told = told - hidden.T.dot(hidden)
        return mpmath.matrix(told.tolist())


def parameters(made: sf.Mechanism) -> tuple[float, float]:
    kernel = made.prior.kernel
    return float(kernel.base_kernel.lengthscale.detach()), float(kernel.outputscale.detach())


def explained50(made: sf.Mechanism, served: np.ndarray) -> float:
    """The share of the variance at ``served`` that readers explain."""
    with mpmath.workdps(DIGITS):
        told = told50(made, served)
        return float(sum(told[i, i] for i in range(len(served))) / (len(served) * mpmath.mpf(parameters(made)[1])))


def test_a_region_keeps_its_promise_in_50_digits_with_suppressed_combinations_and_noise() -> None:
    X, alpha = np.linspace(0.0, 3.0, 24), 0.5
    prior, region = sf.Prior(rbf(0.4, 2.0), noise=0.03), sf.Box(1.1, 1.9)
    made = sf.protect(prior, X, region, alpha=alpha, protects="function", objective="predictions", progress=False)
    found, (lengthscale, variance) = made.certificate, parameters(made)
    assert (found.holds, found.evidence) == (True, "proved")
    assert made.noise.suppressed.shape[1] > 0
    assert made.noise.rank > 0
    dense = np.linspace(1.1, 1.9, 41)
    with mpmath.workdps(DIGITS):
        told = told50(made, dense)
        left = np.array([float(1 - told[i, i] / mpmath.mpf(variance)) for i in range(len(dense))])
        S = made.sensitive
        lower = mpmath.cholesky(mpmath.mpf(alpha) * rbf50(S, S, lengthscale, variance))
        half = oracles.forward50(lower, told50(made, S))
        white = mpmath.matrix(oracles.forward50(lower, mpmath.matrix(half.T.tolist())).tolist())
        joint = float(max(mpmath.eigsy(white, eigvals_only=True)))
    assert left.min() >= 1 - alpha
    assert found.floor_ratio <= np.sqrt(left.min() / (1 - alpha)) * (1 + 1e-9)
    assert joint <= found.joint_ratio <= min(1.0, joint * (1 + 1e-6))
    assert found.explained == pytest.approx(explained50(made, made.design.serves.places), rel=1e-9)
    assert found.explained <= found.explained_upper


@st.composite
def problems(draw: st.DrawFn) -> tuple[sf.Prior, np.ndarray, np.ndarray, dict]:
    """A prior, rows, sensitive inputs and what is asked."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows = draw(st.integers(4, 9))
    prior = sf.Prior(rbf(draw(st.floats(0.15, 1.5)), draw(st.floats(0.2, 5.0))), noise=draw(st.floats(1e-6, 1.0)))
    X = np.concatenate([[0.0], np.sort(rng.uniform(0.0, 2.0, rows - 2)), [2.0]])
    S = np.linspace(0.9, 1.2, draw(st.integers(1, 2)))
    how = {"alpha": draw(st.floats(0.05, 0.9)), "guarantee": draw(st.sampled_from(["joint", "pointwise"]))}
    return prior, X, S, how


@settings(max_examples=8)
@given(problems())
def test_a_certificate_that_holds_is_true_and_the_best_predictions_are_the_better_ones(problem) -> None:
    holds_and_is_better(*problem)


@pytest.mark.slow
@settings(max_examples=300)
@given(problems())
def test_many_certificates_that_hold_are_true(problem) -> None:
    holds_and_is_better(*problem)


def holds_and_is_better(prior: sf.Prior, X: np.ndarray, S: np.ndarray, how: dict) -> None:
    served, alpha = np.array([0.0, 0.5, 1.6, 2.0]), how["alpha"]
    how |= {"protects": "function", "progress": False}
    made = sf.protect(prior, X, sf.Points(S[:, None]), objective="predictions", serve=served, **how)
    least = sf.protect(prior, X, sf.Points(S[:, None]), **how)
    lengthscale, variance = parameters(made)
    assert made.certificate.holds
    with mpmath.workdps(DIGITS):
        allowed = mpmath.mpf(alpha) * rbf50(S, S, lengthscale, variance)
        for told in (told50(made, S), told50(made, S, suppressed=False)):
            for place in range(len(S)):
                assert told[place, place] <= allowed[place, place]
            if how["guarantee"] == "joint":
                assert min(mpmath.eigsy(allowed - told, eigvals_only=True)) >= -mpmath.mpf(1e-12) * variance
    assert made.certificate.explained == pytest.approx(explained50(made, served), rel=1e-6, abs=1e-9)
    assert made.certificate.explained <= explained50(made, served) + 1e-13
    assert explained50(made, served) >= explained50(least, served) - 1e-9
    assert made.certificate.explained <= made.certificate.explained_upper + 1e-12


# ---------------------------------------------------------------------------------------------------- simulation

X = np.linspace(0.0, 2.0, 21)
INSIDE = np.linspace(0.8, 1.2, 3)
PRIOR = sf.Prior(rbf(0.35, 4.0), mean=10.0, noise=0.05)
ALPHA, DRAWS = 0.3, 400


@pytest.fixture(scope="module")
def mechanism() -> sf.Mechanism:
    made = sf.protect(
        PRIOR, X, sf.Box(0.8, 1.2), alpha=ALPHA, protects="function", objective="predictions", progress=False
    )
    assert made.noise.suppressed.shape[1] > 0
    return made


def drawn(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f at ``places`` and y, for functions from the prior."""
    rng, everywhere = np.random.default_rng(1), np.concatenate([X, places])
    K = PRIOR.covariance(everywhere) + 1e-10 * np.eye(len(everywhere))
    f = 10.0 + rng.standard_normal((DRAWS, len(everywhere))) @ np.linalg.cholesky(K).T
    return f[:, len(X) :], f[:, : len(X)] + np.sqrt(0.05) * rng.standard_normal((DRAWS, len(X)))


def released(mechanism: sf.Mechanism, y: np.ndarray) -> list[sf.Release]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        return [mechanism.release(values) for values in y]


def learnt_by_regression(f: np.ndarray, published: np.ndarray) -> float:
    """The share of f that whoever has seen half of all secrets with their releases explains of the other half."""
    half, design = DRAWS // 2, np.column_stack([published, np.ones(DRAWS)])
    weights = np.linalg.lstsq(design[:half], f[:half], rcond=1e-6)[0]
    return float(np.max(1.0 - np.mean((f[half:] - design[half:] @ weights) ** 2, axis=0) / np.var(f[half:], axis=0)))


def test_readers_lose_what_was_promised_at_the_served_inputs_and_error_bars_hold(mechanism: sf.Mechanism) -> None:
    served = mechanism.design.serves.places[:, 0]
    f, y = (values[:100] for values in drawn(served))
    seen = [release.predict(served[:, None]) for release in released(mechanism, y)]
    errors = np.array([one.mean for one in seen]) - f
    lost = np.mean(errors**2, axis=1) / 4.0
    error = np.std(lost) / np.sqrt(len(lost))
    assert abs(np.mean(lost) - (1 - mechanism.certificate.explained)) < norm.isf(ERROR / 4) * error
    for level in (0.5, 0.9):
        # one input a replication: errors at several are not independent
        place = np.arange(len(seen)) % len(served)
        within = np.abs(errors) <= norm.isf((1 - level) / 2) * seen[0].std
        held = int(np.sum(within[np.arange(len(seen)), place]))
        assert binom.ppf(ERROR / 8, len(seen), level) <= held <= binom.isf(ERROR / 8, len(seen), level)


def test_who_learns_to_read_releases_from_many_learns_no_more_than_promised(mechanism: sf.Mechanism) -> None:
    """Nothing of the mathematics is used: only secrets, and what was published of them.

    A mechanism that publishes suppressed combinations with their own values is found out.
    """
    noise, (f, y) = mechanism.noise, drawn(INSIDE)
    published = np.array([release.outputs for release in released(mechanism, y)])
    assert learnt_by_regression(f, published) < ALPHA + 0.1
    not_filled_in = y + np.random.default_rng(2).standard_normal((DRAWS, noise.rank)) @ noise.factor.T
    assert learnt_by_regression(f, not_filled_in) > ALPHA + 0.4


@pytest.mark.parametrize(("apart", "alpha"), [(1.794282596036868e-08, 0.9), (6e-8, 0.3)])
def test_a_bound_for_points_that_round_off_can_hardly_tell_apart_is_one(apart: float, alpha: float) -> None:
    """Δ has an eigenvalue near its own round-off there; the promise is written out in 50 digits."""
    X = np.array([[0.4198044657764174], [0.4269902901674043], [0.892606376179367]])
    region = sf.Points([[0.5], [0.5 + apart]])
    how = {"protects": "function", "objective": "predictions", "progress": False}
    made = sf.protect(sf.Prior(rbf(0.2), noise=0.01), X, region, alpha=alpha, **how)
    (lengthscale, variance), served = parameters(made), made.design.serves.places
    with mpmath.workdps(DIGITS):
        lower = mpmath.cholesky(rbf50(X, X, lengthscale, variance) + mpmath.mpf(0.01) * mpmath.eye(3))
        delta = mpmath.mpf(alpha) * rbf50(made.sensitive, made.sensitive, lengthscale, variance)
        told = oracles.forward50(mpmath.cholesky(delta), rbf50(made.sensitive, X, lengthscale, variance))
        U = oracles.forward50(lower, mpmath.matrix(told.T.tolist()))
        B = oracles.forward50(lower, rbf50(X, served, lengthscale, variance)) / mpmath.sqrt(len(served) * variance)
    B, U = (np.array(one.tolist(), dtype=float) for one in (B, U))
    best = oracles.most_explained_by_sdp(B, [(U, True)])
    assert made.certificate.holds
    assert made.certificate.explained_upper >= best * (1 - 1e-7)
