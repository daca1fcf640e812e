"""Suppressed functions of rows in a folder: no part of the release shows them, also after an interruption."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from kernels import matern
from sfumato.data.parts import Here
from sfumato.data.stored import rows_of_parquet
from sfumato.errors import InputError
from sfumato.progress import Progress
from sfumato.release.file import ROW_FOLDER
from sfumato.release.folder import Blur, FolderWriter, Unchanged

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 400


class Stopping(Here):
    """Stops after a row file."""

    def each(self, work, parts, done):
        for result in super().each(work, parts, done):
            yield result
            if isinstance(work, Blur):
                raise KeyboardInterrupt


def stored(path, y):
    pd.DataFrame({"x": np.sort(np.random.default_rng(0).random(ROWS)), "y": y}).to_parquet(path)
    return rows_of_parquet([path], ["x"], "y", Progress(), rows=100)


def values():
    return np.sin(9 * np.linspace(0, 1, ROWS)) + 0.1 * np.random.default_rng(1).standard_normal(ROWS)


@pytest.fixture(scope="module", params=[pytest.param("function", marks=pytest.mark.slow), "both"])
def made(tmp_path_factory, request):
    rows = stored(tmp_path_factory.mktemp("data") / "t.parquet", values())
    mechanism = sf.protect(
        sf.Prior(matern(0.3, 1.0, 2.5), noise=0.01),
        rows,
        sf.Box(0.4, 0.6),
        0.3,
        protects=request.param,
        objective="predictions",
        progress=False,
    )
    assert mechanism.noise.suppressing.shape[1] > 0
    return mechanism.design, mechanism.certificate


def write(tmp_path, made, engine, y=None):
    rows = stored(tmp_path / "t.parquet", values() if y is None else y)
    FolderWriter(tmp_path / "out", rows, rows.column("y"), engine, lambda text: None).write(lambda: made, {"task": 1})
    release = sf.load(tmp_path / "out")
    files = sorted((tmp_path / "out" / ROW_FOLDER).iterdir())
    return release, pd.concat([pd.read_parquet(file) for file in files]).to_numpy()[:, 1]


def shown(design, published):
    """How far suppressed combinations are from what the others predict, by dense formulas."""
    noise, rows = design.noise, np.vstack([part.inputs() for part in design.inputs.parts()])
    total = design.prior.covariance(rows) + np.diag(0.01 + noise.independent_at(rows, np.full(ROWS, 0.01)))
    total += noise.factor @ noise.factor.T
    basis = np.linalg.qr(noise.suppressed)[0]
    through = np.linalg.solve(total, basis)
    return np.linalg.solve(basis.T @ through, through.T @ published)


def test_no_part_shows_what_is_suppressed(tmp_path, made):
    release, published = write(tmp_path, made, Here())
    assert np.max(np.abs(shown(made[0], published))) < 2e-3
    assert np.max(np.abs(shown(made[0], values()))) > 0.1
    assert np.max(np.abs(published)) < 4.0
    assert release.certify(progress=False).holds
    new = np.linspace(0, 1, 30)[:, None]
    prediction = release.predict(new)
    outside = np.abs(new[:, 0] - 0.5) > 0.25
    assert np.all(np.abs(prediction.mean - np.sin(9 * new[:, 0]))[outside] < 4 * prediction.std[outside] + 0.1)


def test_a_step_that_values_are_no_multiples_of_hides_nothing(tmp_path, made):
    """The truth under the same certificate, whatever resolution is claimed."""
    design, certificate = made
    honest, _ = write(tmp_path, made, Here())
    truth = sf.Release(design, certificate, design.inputs.column("y"), 1e3)
    found = [{one.code for one in release.certify(progress=False).findings} for release in (honest, truth)]
    assert not found[0] & {"shows-what-is-suppressed", "suppressed-not-seen"}
    assert "shows-what-is-suppressed" in found[1]


def test_a_run_that_is_taken_up_shows_nothing_either(tmp_path, made):
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, made, Stopping())
    _, published = write(tmp_path, made, Here())
    assert np.max(np.abs(shown(made[0], published))) < 2e-3


def test_values_that_change_before_they_are_summed_up_are_not_released(tmp_path, made, monkeypatch):
    monkeypatch.setattr(Unchanged, "__call__", lambda self, part: np.full(part.rows, np.nan))
    with pytest.raises(InputError, match="have changed while they were read"):
        write(tmp_path, made, Here())
    assert not (tmp_path / "out").exists()
