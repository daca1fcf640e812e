"""How far published values are from the true ones, where combinations of rows are suppressed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from kernels import matern
from sfumato.noise import CorrelatedNoise
from sfumato.promise import Reader
from sfumato.proof import ExactKnowledge, certify, record_sensitivity
from sfumato.proof.changes import change_variance

ROWS = 7


def suppressing(shift: float = 0.0) -> sf.Design:
    """Two suppressed combinations that leave out the last row, and noise on some of the others."""
    rng = np.random.default_rng(4)
    prior = sf.Prior(matern(0.3), noise=0.04)
    design = sf.protect(prior, np.linspace(0, 1, ROWS), sf.Box(0.4, 0.7), alpha=0.5, progress=False).design
    N, F = rng.normal(size=(ROWS, 2)), 0.3 * rng.normal(size=(ROWS, 2))
    N[-1] = F[-1] = 0.0
    basis = np.linalg.qr(N)[0]
    return replace(design, noise=CorrelatedNoise(F - basis @ (basis.T @ F), shift, 1e3 * N), witness=None)


@pytest.mark.parametrize("shift", [0.0, 0.01])
def test_the_change_of_a_row_is_that_of_what_is_published(shift: float) -> None:
    design = suppressing(shift)
    reader, noise = Reader(design.prior), design.noise
    A = np.array(reader.data_covariance(design.inputs))
    basis = np.linalg.qr(noise.suppressed)[0]
    across = np.eye(ROWS) - basis @ basis.T
    drawn = noise.factor @ noise.factor.T + shift * np.eye(ROWS)
    # any basis of the kept combinations says what P is
    kept = np.linalg.svd(across)[0][:, : ROWS - 2]
    P = kept @ np.linalg.inv(kept.T @ (A + drawn) @ kept) @ kept.T
    of_data = basis @ basis.T @ (A @ P - np.eye(ROWS))
    of_noise = across + basis @ basis.T @ A @ P
    expected = np.diag(of_data @ A @ of_data.T + of_noise @ drawn @ of_noise.T)
    found = change_variance(ExactKnowledge(design, reader, noise))
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found[-1] == pytest.approx(shift, abs=1e-12)


def test_a_row_of_which_nothing_is_left_out_goes_out_raw_and_the_others_do_not() -> None:
    design = replace(suppressing(), region=sf.Box(0.4, 1.0).bind(suppressing().inputs))
    certificate = certify(design)
    assert certificate.records == 4
    assert certificate.raw_records == 1
    assert certificate.record_noise == pytest.approx(0.0, abs=1e-9)


def test_what_is_suppressed_hides_a_record_from_who_knows_all_others() -> None:
    noise = suppressing().noise
    rows, basis = np.arange(ROWS), np.linalg.qr(noise.suppressed)[0]
    assert record_sensitivity(noise, rows) == np.inf
    whole = CorrelatedNoise(noise.factor, 0.25, noise.suppressed)
    across = np.eye(ROWS) - basis @ basis.T
    kept = across @ np.linalg.pinv(across @ (noise.factor @ noise.factor.T + 0.25 * np.eye(ROWS)) @ across) @ across
    assert record_sensitivity(whole, rows) == pytest.approx(np.sqrt(np.max(np.diag(kept))), rel=1e-5)
    nothing_but_left_out = CorrelatedNoise(np.zeros((3, 0)), 0.0, 1e3 * np.eye(3))
    assert record_sensitivity(nothing_but_left_out, np.arange(3)) == pytest.approx(1e-3)
