"""Predictions from compressed releases: the exact error bar lies between the two that are given."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")


def released(prior, X, region, seed=1, **options):
    """A release of values drawn from the prior."""
    promise = {} if "floor" in options else {"alpha": 0.3}
    mechanism = sf.protect(
        prior, X, region, protects="function", method="compressed", progress=False, **(promise | options)
    )
    A = prior.covariance(X) + np.diag(prior.noise_variance(len(X)))
    normals = np.random.default_rng(seed).standard_normal(len(X))
    return mechanism.release(prior.mean_at(X) + np.linalg.cholesky(A) @ normals, unsafe_seed=seed)


def exact_posterior(release):
    """f given the published outputs, by dense formulas; rounding counts as noise."""
    rows = len(release.inputs)
    V = release.prior.noise_variance(rows) + release.resolution**2 / 12
    return release.prior.condition(release.inputs, release.outputs, release.noise.covariance() + np.diag(V))


def check(release, new, widest):
    """The claims about a prediction at ``new``; ``std`` may be this much wider than the exact one, as a share."""
    prediction, posterior = release.predict(new), exact_posterior(release)
    std = np.sqrt(posterior.variance(new))
    assert np.all(prediction.std_lower <= std * (1 + 1e-9))
    assert np.all(std <= prediction.std * (1 + 1e-9))
    assert np.all(prediction.std <= std * (1 + widest))
    # what two estimates differ by has the variance by which one is worse than the other
    room = np.sqrt(np.maximum(prediction.std**2 - prediction.std_lower**2, 0.0))
    assert np.all(np.abs(prediction.mean - posterior.mean_at(new)) <= 5.0 * room + 1e-5 * std)
    covariance = prediction.covariance()
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12 * covariance.max())
    np.testing.assert_allclose(np.diag(covariance), prediction.std**2, rtol=1e-9)
    assert np.linalg.eigvalsh(covariance)[0] >= -1e-10 * covariance.max()
    np.testing.assert_allclose(covariance, posterior.covariance(new), atol=3 * widest * std.max() ** 2)


LINE = np.sort(np.random.default_rng(0).random(300))[:, None]
PLANE = np.random.default_rng(1).random((400, 2))
LINE_NEW = np.linspace(-0.3, 1.5, 60)[:, None]
PLANE_NEW = np.random.default_rng(2).uniform(-0.2, 1.2, (60, 2))
KERNELS = {
    "rbf": rbf(0.25, 2.0),
    "matern32": matern(0.4, 2.0),
    "matern52": matern(0.4, 2.0, 2.5),
    "sum": rbf(0.3, 0.5) + matern(0.6, 1.0, 2.5),
}


@pytest.mark.parametrize("noise", [0.5, 1e-2, 1e-3])
@pytest.mark.parametrize("name", list(KERNELS))
def test_the_exact_error_bar_lies_between_the_two(name, noise):
    check(released(sf.Prior(kernel=KERNELS[name], noise=noise, mean=3.0), LINE, sf.Box(0.4, 0.6)), LINE_NEW, 0.08)


@pytest.mark.parametrize("kernel", [rbf([0.3, 0.5]), matern([0.8, 0.8], 1.0, 2.5)])
def test_the_exact_error_bar_lies_between_the_two_in_the_plane(kernel):
    region = sf.Points([[0.5, 0.5], [0.7, 0.5]])
    check(released(sf.Prior(kernel=kernel, noise=0.02), PLANE, region), PLANE_NEW, 0.08)


OPTIONS = {
    "pointwise": {"guarantee": "pointwise"},
    "weighted": {"weights": np.linspace(0.2, 4.0, 300)},
    "floor": {"floor": 0.8},
    "little noise": {"alpha": 0.9},
    "much noise": {"alpha": 0.02},
}


@pytest.mark.parametrize("option", list(OPTIONS))
def test_whatever_was_promised_the_exact_error_bar_lies_between_the_two(option):
    check(released(sf.Prior(kernel=rbf(0.25), noise=0.02), LINE, sf.Box(0.4, 0.6), **OPTIONS[option]), LINE_NEW, 0.05)


def test_each_row_may_have_its_own_noise_variance():
    prior = sf.Prior(kernel=rbf(0.25), noise=np.linspace(0.01, 0.1, 300))
    check(released(prior, LINE, sf.Box(0.4, 0.6)), LINE_NEW, 0.05)


def test_rounding_counts_as_noise():
    prior = sf.Prior(kernel=rbf(0.25), noise=0.02)
    mechanism = sf.protect(
        prior, LINE, sf.Box(0.4, 0.6), alpha=0.3, protects="function", method="compressed", progress=False
    )
    y = np.sin(6 * LINE[:, 0])
    fine, coarse = (mechanism.release(y, unsafe_seed=1, resolution=step) for step in (1e-6, 0.5))
    check(coarse, LINE_NEW, 0.05)
    assert np.all(coarse.predict(LINE_NEW).std_lower > fine.predict(LINE_NEW).std_lower)


def test_under_a_smooth_prior_the_two_error_bars_are_almost_one():
    release = released(sf.Prior(kernel=rbf(0.25), noise=0.05), LINE, sf.Box(0.4, 0.6))
    new = LINE[::7]
    prediction = release.predict(new)
    assert np.max(prediction.std / prediction.std_lower) < 1.02
    np.testing.assert_allclose(prediction.mean, exact_posterior(release).mean_at(new), atol=0.05 * prediction.std.max())


def test_far_away_nothing_is_known():
    prediction = released(sf.Prior(kernel=rbf(0.25, 2.0), noise=0.05, mean=-4.0), LINE, sf.Box(0.4, 0.6)).predict(
        [50.0]
    )
    assert prediction.mean == pytest.approx([-4.0], abs=1e-12)
    assert prediction.std == pytest.approx([np.sqrt(2.0)], rel=1e-9)
    assert prediction.std_lower <= prediction.std


def test_in_the_region_error_bars_stay_above_the_floor():
    prior = sf.Prior(kernel=rbf(0.25, 2.0), noise=0.02)
    prediction = released(prior, LINE, sf.Box(0.4, 0.6), alpha=0.2).predict(np.linspace(0.4, 0.6, 101))
    assert np.all(prediction.std_lower >= np.sqrt(0.8 * 2.0) * (1 - 1e-9))


def test_one_input_gives_the_same_answer_alone_and_among_others():
    release = released(sf.Prior(kernel=rbf(0.25), noise=0.05), LINE, sf.Box(0.4, 0.6))
    together, alone = release.predict(LINE_NEW), release.predict(LINE_NEW[7:8])
    for name in ("mean", "std", "std_lower"):
        assert getattr(alone, name)[0] == pytest.approx(getattr(together, name)[7], rel=1e-9)
    np.testing.assert_allclose(together.covariance()[7, 7], alone.std[0] ** 2, rtol=1e-9)


def error_bars_short_by(release, new):
    std = np.sqrt(exact_posterior(release).variance(new))
    return float(np.max(1 - release.predict(new).std / std))


SHORT = "an upper bound is made from information that is raised for round-off, which makes it a lower one"


def test_error_bars_are_never_too_short_where_data_are_almost_exact():
    for noise in (1e-6, 1e-8):
        for kernel in (rbf(0.1), rbf(0.5), matern(0.5, 1.0, 2.5)):
            release = released(sf.Prior(kernel=kernel, noise=noise), LINE, sf.Box(0.4, 0.6))
            assert error_bars_short_by(release, LINE_NEW) <= 1e-8


def test_error_bars_are_never_too_short_with_a_noise_variance_for_each_row():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, noise = rng.random((40, 2)), 10 ** rng.uniform(-2, 0, 40)
        prior = sf.Prior(kernel=matern([0.8, 0.8], 1.0, 2.5), noise=noise)
        release = released(prior, X, sf.Points(rng.random((3, 2))), weights=rng.uniform(0.2, 5.0, 40))
        assert error_bars_short_by(release, PLANE_NEW) <= 1e-9


def test_error_bars_are_never_too_short_around_points_that_tell_almost_the_same():
    points = np.array([-0.046, 0.019, 0.068, 0.081, 0.092, 0.177, 0.208])[:, None]
    prior = sf.Prior(kernel=rbf(0.342, 0.01), noise=0.0043)
    release = released(prior, LINE, sf.Points(points), guarantee="pointwise", alpha=0.6)
    assert error_bars_short_by(release, LINE_NEW) <= 1e-9


def test_the_exact_error_bar_lies_between_the_two_with_several_priors():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        prior, other = (sf.Prior(kernel=matern([scale] * 2, 1.0, 2.5), noise=0.07) for scale in (0.8, 1.2))
        check(released(prior, rng.random((50, 2)), sf.Points(rng.random((2, 2))), priors=[other]), PLANE_NEW, 0.08)
