"""Chances of weighted sums of squares, against exact ones and draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.linalg import chance_below


@pytest.mark.parametrize("total", [1e-9, 1e-3, 0.5, 3.999, 4.0, 4.001, 20.0])
def test_equal_weights_are_chi_squared(total):
    nearly = np.array([1.0, 1.0, 1.0, 1.0 + 1e-6])
    for weights in (np.ones(4), nearly):
        assert chance_below(3.0 * weights, 3.0 * total) == pytest.approx(chi2(4).cdf(total), rel=0.04)


@pytest.mark.parametrize("weights", [[1.0, 1e-3, 1e-6], np.geomspace(1, 1e-8, 30), [1.0, 0.5, 0.1, 0.1, 0.0]])
def test_the_chance_is_that_of_draws(weights):
    weights = np.asarray(weights)
    sums = np.random.default_rng(0).standard_normal((100_000, len(weights))) ** 2 @ weights
    for share in (0.003, 0.05, 0.3, 0.6, 0.95):
        assert chance_below(weights, float(np.quantile(sums, share))) == pytest.approx(share, rel=0.15)


def test_nothing_is_below_zero_all_is_below_much_and_no_weights_say_nothing():
    assert chance_below(np.ones(3), 0.0) == 0.0
    assert chance_below(np.array([1e-20, 1e-24]), 1.0) == 1.0
    assert chance_below(np.zeros(3), 1.0) == chance_below(np.empty(0), 1.0) == 1.0
