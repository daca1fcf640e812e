"""Claims about what a reader gets, and that it is saved whole or not at all."""

from __future__ import annotations

import dataclasses
import os
import pickle
import stat
import warnings
from pathlib import Path
from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import torch

from claims import claim
from sfumato.data.inputs import as_inputs
from sfumato.design.mechanism import protect
from sfumato.errors import FormatError, GuaranteeError, InputError
from sfumato.models.prior import Prior
from sfumato.noise.entropy import SecretKey
from sfumato.noise.noise import CorrelatedNoise
from sfumato.promise.design import Design
from sfumato.promise.tolerance import FractionTolerance
from sfumato.proof.examination import certify
from sfumato.regions import Box
from sfumato.release.predictions import Prediction
from sfumato.release.release import Release, load, make_release

KEY = SecretKey.from_unsafe_seed(11)
T = np.linspace(0.0, 3.0, 31)
Y = np.sin(2 * T) + 2.0


def design_for(X: Any = T, alpha: float = 0.3, region: Any = None, scale: float = 1.0) -> Design:
    """A rows cover with Σ = B⁺, made by hand."""
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    kernel.outputscale, kernel.base_kernel.lengthscale = 1.5, 0.4
    prior, inputs = Prior(kernel=kernel, mean=2.0, noise=0.05), as_inputs(X)
    bound = (region or Box(1.0, 2.0)).bind(inputs)
    S = inputs.values[bound.contains(inputs.values)]
    tolerance = FractionTolerance(alpha)
    cross = prior.covariance(inputs, S)
    B = cross @ scipy.linalg.solve(tolerance.matrix(prior, S) + 1e-12 * np.eye(len(S)), cross.T, assume_a="pos")
    B -= prior.covariance(inputs) + 0.05 * np.eye(len(inputs))
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    factor = vectors[:, values > 0] * np.sqrt(values[values > 0]) * scale
    return Design(prior, inputs, bound, tolerance, "rows", S, CorrelatedNoise(factor, 1e-6))


DESIGN = design_for()
CLAIM = claim(DESIGN)
RELEASE = make_release(DESIGN, CLAIM, KEY, Y)


def test_a_release_has_what_readers_need() -> None:
    np.testing.assert_array_equal(RELEASE.inputs, T[:, None])
    assert RELEASE.outputs.shape == (31,)
    assert RELEASE.columns == ("x",)
    assert (RELEASE.prior, RELEASE.noise) == (DESIGN.prior, DESIGN.noise)
    assert (RELEASE.region, RELEASE.tolerance) == (DESIGN.region, DESIGN.tolerance)
    assert not RELEASE.unsafe
    with pytest.raises(ValueError, match="read-only"):
        RELEASE.outputs[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        RELEASE.unsafe = True  # type: ignore[misc]


def test_asking_again_gives_the_same_noise_however_it_is_asked() -> None:
    again = [
        make_release(DESIGN, CLAIM, KEY, Y, output_name="other"),
        make_release(DESIGN, CLAIM, KEY, Y, resolution=RELEASE.resolution / 10),
        make_release(DESIGN, CLAIM, KEY, list(Y)),
        make_release(DESIGN, CLAIM, KEY, torch.from_numpy(Y)),
        make_release(design_for(), CLAIM, KEY, pd.Series(Y)),
    ]
    for other in again:
        # Were the noises independent, averages over names or roundings would take them off.
        assert np.max(np.abs(other.outputs - RELEASE.outputs)) <= RELEASE.resolution


def test_minus_zero_is_zero() -> None:
    first, second = np.zeros(31), np.zeros(31)
    second[4] = -0.0
    a, b = make_release(DESIGN, CLAIM, KEY, first), make_release(DESIGN, CLAIM, KEY, second)
    np.testing.assert_array_equal(a.outputs, b.outputs)


def test_other_data_another_design_or_another_key_get_unrelated_noise() -> None:
    base = RELEASE.outputs - Y
    moved = Y.copy()
    moved[0] += 1e-9
    for other in (
        make_release(DESIGN, CLAIM, KEY, moved).outputs - moved,
        make_release(DESIGN, CLAIM, SecretKey.fresh(), Y).outputs - Y,
        make_release(design_for(alpha=0.31), CLAIM, KEY, Y).outputs - Y,
    ):
        assert np.max(np.abs(other - base)) > 1e-3
    size = 4000
    wide = Design(
        DESIGN.prior, as_inputs(np.linspace(0, 1, size)), DESIGN.region, DESIGN.tolerance, "rows", DESIGN.sensitive,
        CorrelatedNoise(np.zeros((size, 0)), 1.0),
    )  # fmt: skip
    draws = []
    for k in range(3):
        y = np.full(size, float(k))
        draws.append(make_release(wide, CLAIM, KEY, y).outputs - y)
    # Correlations of independent normals exceed 5.5/√n with a probability below 1e-7.
    assert np.max(np.abs(np.corrcoef(draws) - np.eye(3))) < 5.5 / np.sqrt(size)


def test_the_noise_has_the_published_covariance() -> None:
    normals = np.array([make_release(DESIGN, CLAIM, KEY, np.full(31, float(k))).outputs - k for k in range(1500)])
    whitened = scipy.linalg.solve_triangular(
        np.linalg.cholesky(DESIGN.noise.covariance() + 1e-9 * np.eye(31)), normals.T, lower=True
    )
    found = whitened @ whitened.T / 1500
    # Off-diagonal entries have standard error 1/√1500, diagonal ones √2/√1500; 6 of them is p < 1e-5 over all.
    assert np.max(np.abs(found - np.eye(31))) < 6 * np.sqrt(2 / 1500)


def test_global_seeds_have_no_influence_and_are_not_disturbed() -> None:
    outputs = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002  the global generator is what is tested
        torch.manual_seed(seed)
        state, torch_state = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
        outputs.append(make_release(DESIGN, CLAIM, KEY, Y).outputs)
        assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
        assert torch.equal(torch_state, torch.random.get_rng_state())
    np.testing.assert_array_equal(outputs[0], outputs[1])


def test_an_unsafe_seed_is_marked_and_repeats_the_noise(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = make_release(DESIGN, CLAIM, KEY, Y, unsafe_seed=5)
        second = make_release(DESIGN, CLAIM, SecretKey.fresh(), Y + 1.0, unsafe_seed=5)
        other = make_release(DESIGN, CLAIM, KEY, Y, unsafe_seed=6)
    np.testing.assert_allclose(first.outputs + 1.0, second.outputs, rtol=0, atol=2 * first.resolution)
    assert np.max(np.abs(first.outputs - other.outputs)) > 1e-3
    assert first.unsafe
    assert "UNSAFE" in str(first)
    assert "unsafe" in repr(first)
    first.save(tmp_path / "u.sfumato")
    assert load(tmp_path / "u.sfumato").unsafe


def test_nothing_is_released_under_a_failed_certificate(tmp_path: Path) -> None:
    with pytest.raises(GuaranteeError) as raised:
        make_release(DESIGN, claim(DESIGN, holds=False), KEY, Y).save(tmp_path / "never.sfumato")
    for word in ("1.7", "0.8", "x = 0", "smaller alpha"):
        assert word in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_outputs_are_multiples_of_a_public_resolution() -> None:
    far = make_release(DESIGN, CLAIM, KEY, 1e4 * Y)
    assert far.resolution == RELEASE.resolution
    np.testing.assert_array_equal(np.round(RELEASE.outputs, 12), RELEASE.outputs)
    coarse = make_release(DESIGN, CLAIM, KEY, Y, resolution=0.25)
    np.testing.assert_array_equal(coarse.outputs / 0.25, np.rint(coarse.outputs / 0.25))


@pytest.mark.parametrize("resolution", [0.0, -0.1, np.nan, np.inf, "fine", 1e-20])
def test_an_impossible_resolution_is_refused(resolution: Any) -> None:
    with pytest.raises(InputError, match="resolution"):
        make_release(DESIGN, CLAIM, KEY, Y, resolution=resolution)


@pytest.mark.parametrize("y", [Y[:-1], np.where(T == 0, np.nan, Y), "text", Y[:, None] * [1.0, 2.0]])
def test_wrong_outputs_are_refused(y: Any) -> None:
    with pytest.raises(InputError, match="y "):
        make_release(DESIGN, CLAIM, KEY, y)


@pytest.mark.parametrize("name", ["", "n" * 2000, 7, None])
def test_a_wrong_output_name_is_refused(name: Any) -> None:
    with pytest.raises(InputError, match="output_name"):
        make_release(DESIGN, CLAIM, KEY, Y, output_name=name)


def test_predictions_are_the_exact_posterior_given_noise_and_rounding() -> None:
    release = make_release(DESIGN, CLAIM, KEY, Y, resolution=0.5)
    new = np.linspace(-0.5, 3.5, 9)
    seen = release.predict(new)
    A = DESIGN.prior.covariance(DESIGN.inputs) + np.diag(DESIGN.prior.noise_variance(31))
    M = A + DESIGN.noise.covariance() + 0.5**2 / 12 * np.eye(31)
    cross = DESIGN.prior.covariance(new, DESIGN.inputs)
    np.testing.assert_allclose(seen.mean, 2.0 + cross @ np.linalg.solve(M, release.outputs - 2.0), rtol=1e-9)
    expected = DESIGN.prior.covariance(new) - cross @ np.linalg.solve(M, cross.T)
    np.testing.assert_allclose(seen.covariance(), expected, atol=1e-9)
    np.testing.assert_allclose(seen.std, np.sqrt(np.diag(expected)), rtol=1e-7)
    assert isinstance(seen, Prediction)
    assert len(seen) == 9


def test_rounding_widens_error_bars_and_never_narrows_them() -> None:
    coarse = make_release(DESIGN, CLAIM, KEY, Y, resolution=1.0)
    assert np.all(coarse.predict(T).std >= RELEASE.predict(T).std - 1e-12)


def test_readers_keep_the_promised_uncertainty_at_the_rows() -> None:
    inside = DESIGN.rows_inside()
    floor = DESIGN.tolerance.floor(DESIGN.prior, inside)
    assert np.all(RELEASE.predict(inside).std >= floor * (1 - 1e-6))
    assert RELEASE.predict([10.0]).std[0] == pytest.approx(np.sqrt(1.5))


def test_many_new_inputs_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    new = np.linspace(0, 3, 1000)
    whole = RELEASE.predict(new)
    monkeypatch.setattr("sfumato.release.predictions._BLOCK", 31 * 130)
    parts = RELEASE.predict(new)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.std, whole.std, rtol=1e-9)


def test_columns_are_found_by_name_and_wrong_features_are_refused() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"age": rng.uniform(0, 3, 20), "y": rng.uniform(0, 3, 20)})
    design = design_for(X, region=Box({"age": (1.0, 2.0)}))
    release = make_release(design, claim(design), KEY, np.zeros(20))
    straight, swapped = release.predict(X), release.predict(X[["y", "age"]])
    np.testing.assert_array_equal(straight.mean, swapped.mean)
    with pytest.raises(InputError, match="X_new"):
        release.predict(np.zeros((3, 5)))
    with pytest.raises(InputError, match="age"):
        release.predict(X[["y"]])
    assert list(release.to_frame()) == ["age", "y", "y (released)"]


def test_a_frame_has_inputs_and_outputs() -> None:
    frame = make_release(DESIGN, CLAIM, KEY, Y, output_name="r").to_frame()
    assert list(frame) == ["x", "r"]
    np.testing.assert_array_equal(frame["r"], RELEASE.outputs)


def test_the_certificate_is_recomputed_from_the_design_alone() -> None:
    design = design_for(scale=1.001)
    release = make_release(design, claim(design), KEY, Y)
    found, expected = release.certify(), certify(design)
    assert found.joint_ratio == expected.joint_ratio
    assert found.holds == expected.holds
    # A claim is not believed: a tenth of the noise does not keep the promise, whatever the owner says.
    weak = design_for(scale=0.1)
    assert not make_release(weak, claim(weak), KEY, Y).certify().holds


def test_text_is_short_and_has_no_data() -> None:
    for text in (str(RELEASE), repr(RELEASE)):
        assert len(text) < 700
        assert not any(f"{value:.4f}"[:6] in text for value in Y)
    assert "31 rows" in repr(RELEASE)


def test_nothing_secret_is_inside_a_release() -> None:
    release = make_release(DESIGN, CLAIM, SecretKey.fresh(), Y)
    raw = pickle.dumps(release)
    assert Y.tobytes() not in raw
    release.predict(T[:3])
    again = pickle.loads(pickle.dumps(release))
    assert isinstance(again, Release)
    np.testing.assert_array_equal(again.predict(T).mean, release.predict(T).mean)


@pytest.mark.parametrize("step", ["fsync", "replace", "fdopen"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_interrupted_write_leaves_the_old_file(
    step: str, failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orbit.sfumato"
    path.write_bytes(b"the old file")

    def fail(*_: Any, **__: Any) -> None:
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(type(failure)):
            RELEASE.save(path)
    assert path.read_bytes() == b"the old file"
    assert os.listdir(path.parent) == [path.name]
    RELEASE.save(path)
    np.testing.assert_array_equal(load(path).outputs, RELEASE.outputs)


def test_a_release_that_could_not_be_read_back_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise FormatError("no")

    monkeypatch.setattr("sfumato.release.file._build", refuse)
    with pytest.raises(InputError, match="cannot be written"):
        RELEASE.save(tmp_path / "orbit.sfumato")
    assert os.listdir(tmp_path) == []


def test_the_mode_follows_the_umask(tmp_path: Path) -> None:
    path, old = tmp_path / "orbit.sfumato", os.umask(0o027)
    try:
        RELEASE.save(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "real")
    RELEASE.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    np.testing.assert_array_equal(load(str(tmp_path / "deep" / "real")).outputs, RELEASE.outputs)


@pytest.mark.parametrize("where", ["missing/orbit.sfumato", ".", "file/orbit.sfumato", "n" * 300])
def test_a_path_that_cannot_be_written_is_named(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=where[:20]):
        RELEASE.save(tmp_path / where)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("where", ["missing", ".", "file/x"])
def test_a_path_without_a_file_is_an_input_error(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=where):
        load(tmp_path / where)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a file"):
        load(tmp_path / "pipe")


def test_the_same_data_give_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_release(design_for(), claim(DESIGN), KEY, Y).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_independent_noise_that_is_none_can_be_saved(tmp_path):
    """Where the floor is kept without noise, structure="diagonal" is still what the file says."""
    prior = Prior(kernel=gpytorch.kernels.RBFKernel(), noise=10.0)
    t = np.array([0.0, 0.5, 2.5, 3.0])
    release = protect(prior, t, Box(1, 2), alpha=0.9, protects="function", structure="diagonal").release(0.0 * t)
    assert release.noise.trace == 0
    release.save(tmp_path / "quiet.sfumato")
    assert load(tmp_path / "quiet.sfumato").certify().holds
