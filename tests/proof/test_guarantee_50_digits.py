"""The promise, checked in 50-digit arithmetic from the published numbers."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from oracles import DIGITS, explained_variances50, joint_ratio50, rbf50, reader_covariance50

GRID = np.linspace(0.0, 3.0, 61)
DENSE = np.linspace(1.0, 2.0, 1001)


def protect(lengthscale, alpha, cover="auto", x=GRID, variance=1.0):
    prior = sf.Prior(kernel=rbf(lengthscale, variance))
    return sf.protect(prior, x, sf.Box(1.0, 2.0), alpha=alpha, cover=cover)


def parameters(mechanism):
    kernel = mechanism.prior.kernel
    return float(kernel.base_kernel.lengthscale), float(kernel.outputscale)


def reader(mechanism):
    """M in 50 digits, with the kernel parameters as published."""
    noise = mechanism.noise
    return reader_covariance50(mechanism.inputs, *parameters(mechanism), noise.factor, noise.shift)


def floor_ratio50(mechanism, M, alpha, points):
    with mpmath.workdps(DIGITS):
        lengthscale, variance = parameters(mechanism)
        explained = explained_variances50(M, rbf50(mechanism.inputs, points, lengthscale, variance))
        return np.sqrt((variance - explained) / ((1 - alpha) * variance))


def joint50(mechanism, M, alpha):
    with mpmath.workdps(DIGITS):
        S, (lengthscale, variance) = mechanism.sensitive, parameters(mechanism)
        delta = mpmath.mpf(alpha) * rbf50(S, S, lengthscale, variance)
        return joint_ratio50(M, rbf50(S, mechanism.inputs, lengthscale, variance), delta)


@pytest.mark.parametrize("alpha", [0.1, *(pytest.param(alpha, marks=pytest.mark.slow) for alpha in (0.5, 0.9))])
def test_the_greedy_cover_keeps_the_floor_everywhere_on_the_satellite_grid(alpha):
    mechanism = protect(0.05, alpha, "greedy")
    M = reader(mechanism)
    ratios = floor_ratio50(mechanism, M, alpha, DENSE)
    assert ratios.min() >= 1 - 1e-9
    assert joint50(mechanism, M, alpha) <= 1 + 1e-9
    certificate = mechanism.certificate
    assert certificate.holds
    assert certificate.joint_ratio <= 1
    assert 1 <= certificate.floor_ratio <= ratios.min() * (1 + 1e-9)


@pytest.mark.parametrize(("alpha", "gap"), [(0.1, 0.9958), (0.5, 0.9987), (0.9, 1.0)])
def test_the_rows_cover_keeps_the_rows_and_reports_the_gap_between_them(alpha, gap):
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows are protected"):
        mechanism = protect(0.05, alpha, "rows")
    certificate, M = mechanism.certificate, reader(mechanism)
    assert certificate.holds
    assert certificate.floor_ratio == pytest.approx(gap, abs=1e-4)
    assert floor_ratio50(mechanism, M, alpha, GRID[20:41]).min() >= 1 - 1e-9
    assert joint50(mechanism, M, alpha) <= 1 + 1e-9
    worst = floor_ratio50(mechanism, M, alpha, np.array([certificate.worst_input[0]]))[0]
    assert certificate.floor_ratio == pytest.approx(worst, abs=1e-9)
    assert certificate.floor_ratio <= worst
    assert [one.code for one in certificate.findings if one.severity == "medium"] == ["rows-only"]
    assert certificate.verdict == "publish with care"
    assert 1 < certificate.worst_input[0] < 2


@pytest.mark.parametrize("cover", ["auto", "rows"])
@pytest.mark.parametrize("lengthscale", [0.2, 0.5])
def test_nearly_singular_kernels_keep_the_promise_without_noise_in_the_data(lengthscale, cover):
    mechanism = protect(lengthscale, 0.1, cover)
    M = reader(mechanism)
    assert mechanism.certificate.holds
    points = DENSE[::5] if cover == "auto" else GRID[20:41]
    assert floor_ratio50(mechanism, M, 0.1, points).min() >= 1 - 1e-9
    assert joint50(mechanism, M, 0.1) <= 1 + 1e-9
    # the shift is real noise, but far below anything visible
    assert np.sqrt(mechanism.noise.shift) < 1e-4


def test_named_points_that_hardly_differ_are_all_promised_jointly():
    """What readers learn about their difference counts too, however small it is."""
    points, prior = sf.Points([[1.51], [1.51001], [1.7]]), sf.Prior(kernel=rbf(0.5), noise=0.01)
    mechanism = sf.protect(prior, GRID, points, alpha=0.2)
    assert mechanism.certificate.holds
    assert np.array_equal(mechanism.sensitive, points.values)
    noise = mechanism.noise.covariance() + 0.01 * np.eye(len(GRID))
    M = reader_covariance50(mechanism.inputs, *parameters(mechanism), np.linalg.cholesky(noise), 0.0)
    assert joint50(mechanism, M, 0.2) <= 1 + 1e-9


def test_duplicated_rows_without_noise_keep_the_promise():
    x = np.sort(np.concatenate([GRID, GRID[::3], GRID[30:33]]))
    mechanism = protect(0.05, 0.3, x=x)
    assert mechanism.certificate.holds
    assert floor_ratio50(mechanism, reader(mechanism), 0.3, DENSE[::10]).min() >= 1 - 1e-9


def test_units_of_the_output_do_not_matter():
    tiny, large = protect(0.05, 0.5, variance=1e-14), protect(0.05, 0.5, variance=1e14)
    assert tiny.certificate.holds
    assert large.certificate.holds
    assert tiny.noise.trace * 1e28 == pytest.approx(large.noise.trace, rel=1e-6)
