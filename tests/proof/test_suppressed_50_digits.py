"""Suppressed functions: what a certificate says of readers, against 50-digit arithmetic from the published numbers."""

from __future__ import annotations

from pathlib import Path

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from oracles import DIGITS, exact, explained_variances50, rbf50
from sfumato.proof import knowledge_of

ROWS = np.sort(np.random.default_rng(0).random(36))[:, None]
POINTS = np.linspace(0.4, 0.6, 21)[:, None]
#: A column of this variance, in 50 digits, is as good as suppressed.
WITHOUT_END = mpmath.mpf(10) ** 24


def explained50(design):
    """What the published values explain at the points."""
    noise, prior = design.noise, design.prior
    lengthscale, variance = float(prior.kernel.base_kernel.lengthscale), float(prior.kernel.outputscale)
    with mpmath.workdps(DIGITS):
        centres = rbf50(ROWS, noise.centres[0], lengthscale, variance)
        factor, suppressed = centres * exact(noise.mixing), centres * exact(noise.suppressing)
        M = rbf50(ROWS, ROWS, lengthscale, variance) + factor * factor.T + WITHOUT_END * (suppressed * suppressed.T)
        for row in range(len(ROWS)):
            M[row, row] += mpmath.mpf(float(prior.noise))
        return explained_variances50(M, rbf50(ROWS, POINTS, lengthscale, variance)), variance


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
@pytest.mark.parametrize(
    ("lengthscale", "noise"), [pytest.param(0.1, 0.01, marks=pytest.mark.slow), (0.3, 1e-4), (0.2, 1e-7)]
)
def test_bounds_from_sums_hold_in_50_digits(lengthscale, noise):
    mechanism = sf.protect(
        sf.Prior(rbf(lengthscale), noise=noise),
        ROWS,
        sf.Box(0.4, 0.6),
        alpha=0.3,
        protects="function",
        objective="predictions",
        method="compressed",
        progress=False,
    )
    design, certificate = mechanism.design, mechanism.certificate
    assert design.noise.suppressed_count > 0
    assert certificate.holds
    explained, variance = explained50(design)
    left = np.array([float(variance - one) for one in explained])
    (known,) = knowledge_of(design)
    assert np.all(known.deviations(POINTS) ** 2 <= left * (1 + 1e-15))
    assert left.min() >= 0.7 * (1 - 1e-9)
    assert certificate.floor_ratio <= np.sqrt(left.min() / 0.7) * (1 + 1e-9)


def test_what_two_releases_together_explain_is_at_least_what_is_said(tmp_path: Path) -> None:
    """The noise of both together is known up to round-off, which counts against what readers are told."""
    rows, places, errors, lengthscale = np.linspace(0.0, 3.0, 9)[:, None], [[1.5], [0.4]], 3e-4, 0.4
    ledger, made = sf.Ledger(tmp_path / "two.ledger"), []
    for share, serve in ((0.3, None), (1.0, places)):
        one = ledger.protect(
            sf.Prior(rbf(lengthscale), noise=errors),
            rows,
            sf.Box(1.0, 2.0),
            alpha=0.3,
            share=share,
            protects="records",
            objective="predictions",
            serve=serve,
            progress=False,
        )
        one.release(np.sin(3.0 * rows[:, 0]))
        made.append(one)
    with mpmath.workdps(DIGITS):
        own = float(made[0].prior.kernel.base_kernel.lengthscale)
        K = rbf50(np.vstack([rows, rows]), np.vstack([rows, rows]), own)
        for first in range(len(K)):
            for second in range(len(K)):
                K[first, second] += mpmath.mpf(errors) * (first % len(rows) == second % len(rows))
        for number, one in enumerate(made):
            hidden = exact(one.noise.factor) if one.noise.rank else mpmath.zeros(len(rows), 1)
            parts = [hidden * hidden.T]
            if one.noise.suppressed_count:
                suppressed = exact(one.noise.suppressed)
                parts.append(WITHOUT_END * (suppressed * suppressed.T))
            for i in range(len(rows)):
                for j in range(len(rows)):
                    place = number * len(rows)
                    K[place + i, place + j] += sum(part[i, j] for part in parts)
                K[number * len(rows) + i, number * len(rows) + i] += mpmath.mpf(one.noise.shift)
        told = explained_variances50(K, rbf50(np.vstack([rows, rows]), np.array(places), own))
        most = float(sum(told) / len(places))
    assert sum(one.noise.suppressed_count for one in made) > 0
    assert most - 1e-4 <= made[1].certificate.explained <= most
