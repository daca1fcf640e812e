"""Ranges of hyper-parameters end where the likelihood, all else fitted again, has fallen by what was asked for."""

from __future__ import annotations

import gpytorch
import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import sfumato as sf
from sfumato.errors import InputError

FACTORS = ("lengthscale", "variance", "noise")


def drawn(n=50, seed=0, lengthscale=0.4, noise=0.1, trend=0.0):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0.0, 3.0, n))
    K = np.exp(-0.5 * ((t[:, None] - t) / lengthscale) ** 2)
    return t, 5.0 + trend * t**2 + np.linalg.cholesky(K + noise * np.eye(n)) @ rng.standard_normal(n)


def profile(prior, t, y, features, **pinned):
    """The largest log likelihood with some factors pinned, by brute force."""
    names = [name for name in FACTORS if name not in pinned]
    gaps, ell = (t[:, None] - t) ** 2, float(prior.kernel.base_kernel.lengthscale)

    def loss(z):
        at = {**pinned, **dict(zip(names, np.exp(z), strict=True))}
        C = at["variance"] * float(prior.kernel.outputscale) * np.exp(-0.5 * gaps / (at["lengthscale"] * ell) ** 2)
        C += at["noise"] * prior.noise * np.eye(len(t))
        beta = np.linalg.solve(features.T @ np.linalg.solve(C, features), features.T @ np.linalg.solve(C, y))
        return -scipy.stats.multivariate_normal(features @ beta, C).logpdf(y)

    found = scipy.optimize.minimize(loss, np.zeros(len(names)), method="Nelder-Mead", options={"fatol": 1e-6})
    return -found.fun


@pytest.mark.parametrize("mean", ["constant", "quadratic"])
def test_the_ends_are_where_the_profile_likelihood_has_fallen_by_the_spread(mean):
    t, y = drawn(trend=2.0 if mean == "quadratic" else 0.0)
    family = sf.fit_prior(t, y, "rbf", mean=mean, spread=2.0)
    prior = family.prior
    features = np.column_stack([t**p for p in range(3 if mean == "quadratic" else 1)])
    top = prior.fit_report.log_likelihood
    for name in FACTORS:
        low, high = getattr(family, name)
        assert low < 1.0 < high
        for end, inwards in ((low, 1.08), (high, 1 / 1.08)):
            # ends are rounded outwards, to two digits
            assert top - profile(prior, t, y, features, **{name: end}) >= 1.95
            assert top - profile(prior, t, y, features, **{name: end * inwards}) <= 2.05


def test_a_wider_spread_has_wider_ranges_and_more_rows_have_narrower_ones():
    few, many = drawn(40), drawn(160)
    ranges = [sf.fit_prior(*few, spread=drop).lengthscale for drop in (0.5, 2.0, 4.0)]
    assert ranges[2][0] < ranges[1][0] < ranges[0][0] < 1.0 < ranges[0][1] < ranges[1][1] < ranges[2][1]
    narrow = sf.fit_prior(*many, spread=2.0).lengthscale
    assert narrow[1] / narrow[0] < ranges[1][1] / ranges[1][0]


def test_what_was_given_has_no_range():
    t, y = drawn()
    assert sf.fit_prior(t, y, lengthscale=0.4, spread=2.0).lengthscale == (1.0, 1.0)
    assert sf.fit_prior(t, y, noise=0.1, spread=2.0).noise == (1.0, 1.0)
    assert sf.fit_prior(t, y, "periodic(period=1)", noise=0.1, restarts=1, spread=2.0).lengthscale == (1.0, 1.0)
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    assert sf.fit_prior(t, y, kernel, spread=2.0).lengthscale != (1.0, 1.0)
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    assert sf.fit_prior(t, y, kernel, spread=2.0).lengthscale == (1.0, 1.0)


def test_the_report_says_the_ranges_and_rows_that_do_not_end_one():
    t, y = drawn()
    family = sf.fit_prior(t, y, spread=2.0)
    (said,) = [message for message in family.fit_report.messages if message.startswith("spread")]
    low, high = family.lengthscale
    assert f"all lengthscales × {low:g} to {high:g}, the variance ×" in said
    with pytest.warns(sf.FitWarning, match="lower limit"):
        family = sf.fit_prior(t, np.sin(3 * t), "matern52", lengthscale=1.0, spread=2.0)
    assert family.noise[0] == pytest.approx(0.01)
    assert any("The rows do not end the range of the noise" in message for message in family.fit_report.messages)


def test_rows_inside_the_region_have_no_part_in_it():
    t, y = drawn()
    secret = np.where((t > 1) & (t < 2), 100 * y, y)
    a, b = (sf.fit_prior(t, values, exclude=sf.Box(1.0, 2.0), spread=2.0) for values in (y, secret))
    assert [getattr(a, name) for name in FACTORS] == [getattr(b, name) for name in FACTORS]


@pytest.mark.slow
def test_a_family_that_was_found_so_can_be_promised_to():
    t, y = drawn(30)
    family = sf.fit_prior(t, y, exclude=sf.Box(1.0, 1.5), spread=1.0)
    certificate = sf.protect(family, t, sf.Box(1.0, 1.5), alpha=0.5, progress=False).certificate
    assert certificate.holds
    assert certificate.evidence == "proved"


@pytest.mark.parametrize("spread", [0.0, -1.0, "2", True, np.nan])
def test_a_spread_that_is_no_number_of_units_is_refused(spread):
    with pytest.raises(InputError, match=r"spread is .*; give units of log likelihood > 0"):
        sf.fit_prior([0.0, 1.0, 2.0], [1.0, 0.0, 3.0], spread=spread)
