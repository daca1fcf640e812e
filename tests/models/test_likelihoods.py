"""Likelihoods and their slopes are those of an independent computation, and few rows lead to the same maximum."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from sfumato.models.fit import fit_prior
from sfumato.models.likelihoods import LogDensity
from sfumato.models.radial import RadialCorrelation

RNG = np.random.default_rng(5)
A, B = (torch.tensor(RNG.standard_normal((rows, 3)), requires_grad=True) for rows in (6, 4))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_radial_correlations_are_bessel_s_and_have_the_slopes_of_finite_differences(nu):
    values = RadialCorrelation.apply(A, B, nu).detach()
    r = float(torch.linalg.vector_norm((A[2] - B[1]).detach()))
    z = mpmath.sqrt(2 * nu) * r if math.isfinite(nu) else mpmath.mpf(0)
    bessel = 2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z) if math.isfinite(nu) else None
    assert float(values[2, 1]) == pytest.approx(float(bessel or mpmath.exp(-(r**2) / 2)), rel=1e-13)
    assert torch.autograd.gradcheck(lambda a, b: RadialCorrelation.apply(a, b, nu), (A, B))
    assert torch.autograd.gradcheck(lambda a: RadialCorrelation.apply(a, a, nu), (A,))


def test_the_log_density_is_scipy_s_and_has_the_slopes_of_finite_differences():
    root = RNG.standard_normal((7, 7))
    C, y, noise = root @ root.T + np.eye(7), RNG.standard_normal(7), RNG.uniform(0.1, 1.0, 7)
    basis = np.column_stack([np.ones(7), np.arange(7.0)])
    full = C + np.diag(noise)
    weighted = np.linalg.solve(full, basis)
    beta = np.linalg.solve(basis.T @ weighted, weighted.T @ y)
    tensors = [torch.tensor(value, requires_grad=True) for value in (C, y, noise)]

    def density(c, y, noise):
        return LogDensity.apply((c + c.T) / 2, y, torch.tensor(basis), noise)

    expected = multivariate_normal(basis @ beta, full).logpdf(y)
    assert float(density(*tensors).detach()) == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(density, tensors)


@pytest.mark.parametrize("signal", [0.3, 0.02])
def test_some_of_the_rows_lead_to_the_maximum_of_all(monkeypatch, signal):
    """A signal that is much shorter than the gaps between rows spread evenly is found too."""
    rng = np.random.default_rng(1)
    t = np.sort(rng.uniform(0.0, 3.0, 260))
    y = np.sin(t / signal) + 0.1 * rng.standard_normal(260)
    alone = fit_prior(t, y)
    monkeypatch.setattr("sfumato.models.fit_search.TELLING", 60)
    staged = fit_prior(t, y)
    assert staged.fit_report.log_likelihood == pytest.approx(alone.fit_report.log_likelihood, abs=1e-3)
