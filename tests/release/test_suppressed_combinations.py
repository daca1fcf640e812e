"""Combinations of the rows that are suppressed: nothing of them is published, and readers count with that."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import torch

import sfumato as sf
from kernels import matern
from oracles import exact
from sfumato.noise import CorrelatedNoise
from sfumato.release.container import container, read_container

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")

X = np.linspace(0.0, 1.0, 24)
T = np.linspace(-0.1, 1.1, 13)


def drawn(prior: Any, X: Any) -> Any:
    """Data that the prior believes."""
    variance = prior.covariance(X) + np.diag(prior.noise_variance(len(X)))
    return prior.mean_at(X) + np.linalg.cholesky(variance) @ np.random.default_rng(3).normal(size=len(X))


@functools.cache
def protected(noise: float = 0.01, protects: Any = "function") -> sf.Mechanism:
    prior, region = sf.Prior(matern(0.15, 4.0, nu=2.5), mean=7.0, noise=noise), sf.Box(0.4, 0.6)
    found = sf.protect(prior, X, region, alpha=0.2, protects=protects, objective="predictions", progress=False)
    assert found.noise.suppressed_count > 0
    return found


def in_other_units() -> tuple[sf.Mechanism, dict[str, Any]]:
    """Two outputs of which one has numbers a million times larger."""
    base = sf.Prior(matern(0.15, nu=2.5), noise=0.01)
    prior = sf.JointPrior.coregionalised(base, [[1.0, 0.8e6], [0.8e6, 1e12]], ("a", "b"), noise={"a": 0.01, "b": 1e10})
    rows = {"a": X[::2], "b": X[::2]}
    found = sf.protect(
        prior, rows, {"a": sf.Box(0.4, 0.6)}, alpha=0.2, protects="function", objective="predictions", progress=False
    )
    assert found.noise.suppressed_count > 0
    values = drawn(found.design.prior, found.design.inputs)
    return found, {name: values[found.design.inputs.rows_about(name)] for name in rows}


def kept50(design: sf.Design, rounding: Any = 0.0) -> tuple[mpmath.matrix, mpmath.matrix]:
    """M, the covariance of what is drawn, and P of the combinations that are kept, in 50 digits."""
    noise, rows = design.noise, len(design.inputs)
    diagonal = design.prior.noise_variance(rows) + noise.shift + rounding
    M = exact(design.prior.covariance(design.inputs)) + exact(noise.factor) * exact(noise.factor).T
    M += mpmath.diag([mpmath.mpf(float(one)) for one in diagonal])
    inverse, N = mpmath.inverse(M), exact(noise.suppressed)
    return M, inverse - inverse * N * mpmath.inverse(N.T * inverse * N) * N.T * inverse


@pytest.mark.parametrize("protects", ["function", "both"])
def test_what_is_suppressed_has_no_part_in_what_is_published(protects: str) -> None:
    mechanism = protected(protects=protects)
    y, suppressed = drawn(mechanism.design.prior, X), mechanism.noise.suppressed
    first, rng = mechanism.release(y, unsafe_seed=1), np.random.default_rng(4)
    for size in (1e-3, 1.0, 10.0):
        other = y + size * np.linalg.qr(suppressed)[0] @ rng.normal(size=suppressed.shape[1])
        again = mechanism.release(other, unsafe_seed=1)
        assert np.max(np.abs(again.outputs - first.outputs)) <= first.resolution
    moved = mechanism.release(y + np.sin(9 * X), unsafe_seed=1)
    assert np.max(np.abs(moved.outputs - first.outputs)) > 0.1


def test_nor_where_outputs_have_very_different_units() -> None:
    mechanism, y = in_other_units()
    design, first = mechanism.design, mechanism.release(y, unsafe_seed=1)
    more = design.noise.suppressed @ np.random.default_rng(4).normal(size=design.noise.suppressed_count) / 1e3
    other = {name: y[name] + more[design.inputs.rows_about(name)] for name in y}
    again = mechanism.release(other, unsafe_seed=1)
    assert np.all(np.abs(again.outputs - first.outputs) <= first.steps)
    std = np.sqrt(np.diag(design.prior.covariance(design.inputs)))
    assert np.max(np.abs(first.outputs / std)) < 6.0
    assert "shows-what-is-suppressed" not in {one.code for one in first.certify(progress=False).findings}
    new = first.predict(T, output="b")
    _, P = kept50(design, first.steps**2 / 12)
    places = np.column_stack([T, np.ones(len(T))])
    K = exact(design.prior.covariance(places, design.inputs))
    left = [float(mpmath.mpf(10) ** 12 - (K[i, :] * P * K[i, :].T)[0]) for i in range(len(T))]
    np.testing.assert_allclose(new.std, np.sqrt(left), rtol=1e-6)


def test_in_its_place_is_what_the_others_predict() -> None:
    design = protected().design
    y = drawn(design.prior, X)
    released = protected().release(y, unsafe_seed=2)
    M, P = kept50(design)
    rest = released.outputs - 7.0
    expected = np.array([float(one) for one in M * (P * exact(rest[:, None]))])
    np.testing.assert_allclose(rest, expected, atol=1e3 * released.resolution)


@pytest.mark.parametrize("believed", [True, False])
def test_published_values_stay_in_a_sensible_range(believed: bool) -> None:
    """Also where the prior expects a smooth function, nearly without noise, and the data are anything but."""
    mechanism = protected(1e-8)
    y = drawn(mechanism.design.prior, X) if believed else 7.0 + 2.0 * np.random.default_rng(4).normal(size=len(X))
    published = mechanism.release(y, unsafe_seed=1)
    assert np.max(np.abs(published.outputs - 7.0)) < 2.0 * (6.0 if believed else 12.0)
    assert "shows-what-is-suppressed" not in {one.code for one in published.certify(progress=False).findings}


@pytest.mark.parametrize("noise", [0.01, 1e-8])
def test_readers_predict_what_50_digits_say(noise: float) -> None:
    mechanism = protected(noise)
    release = mechanism.release(drawn(mechanism.design.prior, X), unsafe_seed=1)
    _, P = kept50(mechanism.design, release.resolution**2 / 12)
    K = exact(mechanism.design.prior.covariance(T, X))
    weights = P * exact((release.outputs - 7.0)[:, None])
    mean = 7.0 + np.array([float(one) for one in K * weights])
    std = np.sqrt([float(4 - (K[i, :] * P * K[i, :].T)[0]) for i in range(len(T))])
    own, model = release.predict(T), release.to_gpytorch()
    asked = torch.from_numpy(T[:, None])
    seen, batch = model(asked), model.posterior(asked.expand(2, -1, -1))
    theirs = release.to_sklearn().predict(T[:, None], return_std=True)
    found = {
        "release": (own.mean, own.std, 1e-8),
        "covariance": (own.mean, np.sqrt(np.diag(own.covariance())), 1e-8),
        "GPyTorch": (seen.mean.numpy(), seen.variance.sqrt().numpy(), 1e-8),
        "BoTorch": (batch.mean[1, :, 0].numpy(), batch.variance[1, :, 0].sqrt().numpy(), 1e-8),
        "scikit-learn": (*theirs, 1e-7),
    }
    for name, (its_mean, its_std, wrong) in found.items():
        np.testing.assert_allclose(its_mean, mean, rtol=0, atol=10 * wrong, err_msg=name)
        np.testing.assert_allclose(its_std**2, std**2, rtol=1e-6, atol=wrong if name == "scikit-learn" else 0)
    later = model.condition_on_observations(asked[:1], torch.tensor([[7.0]]).double())
    assert float(later(asked).variance[0]) < float(seen.variance[0])


def test_rounding_hides_the_last_bits_of_what_is_suppressed() -> None:
    """Also where there is no noise at all."""
    noise = CorrelatedNoise(np.zeros((len(X), 0)), 0.0, protected().noise.suppressed)
    design = dataclasses.replace(protected().design, noise=noise)
    silent = dataclasses.replace(protected(), design=design)
    y = drawn(design.prior, X)
    release = silent.release(y, unsafe_seed=1)
    assert 1e-10 < release.resolution < 1e-7
    assert np.all(release.outputs == np.round(release.outputs, 9))
    with pytest.raises(sf.InputError, match="finer than doubles can hold"):
        silent.release(y, unsafe_seed=1, resolution=1e-12)
    for far, resolution, said in ((1e5, 1e-8, "doubles are"), (1e9, None, "no data are that far")):
        y[12] = far
        with pytest.raises(sf.InputError, match=said):
            silent.release(y, unsafe_seed=1, resolution=resolution)


def test_a_release_says_how_much_it_leaves_out(tmp_path: Path) -> None:
    mechanism = protected()
    release = mechanism.release(drawn(mechanism.design.prior, X), unsafe_seed=1)
    assert f"{mechanism.noise.suppressed_count} combinations of the rows are not published" in str(release)
    release.to_csv(tmp_path / "table.csv")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "table.csv", delimiter=",", skiprows=1)[:, 1], release.outputs)


def test_values_that_show_what_they_say_is_left_out_are_found_out(tmp_path: Path) -> None:
    mechanism = protected(protects="both")
    y = drawn(mechanism.design.prior, X)
    honest = mechanism.release(y, unsafe_seed=1)
    honest.save(tmp_path / "honest")

    def shows(outputs: Any, resolution: float) -> bool:
        edited = dataclasses.replace(honest, outputs=outputs, resolution=resolution)
        found = edited.certify(progress=False)
        assert found.explained_upper == pytest.approx(mechanism.certificate.explained_upper, abs=1e-9)
        return "shows-what-is-suppressed" in {one.code for one in found.findings if one.severity == "high"}

    N = np.linalg.qr(mechanism.noise.suppressed)[0]
    assert not shows(sf.load(tmp_path / "honest").outputs, honest.resolution)
    assert not shows(mechanism.release(y, unsafe_seed=1, resolution=0.01).outputs, 0.01)
    assert shows(np.round(y, 6), 1e-6)
    assert shows(honest.outputs + np.round(0.01 * N[:, 0], 9), honest.resolution)
    # a coarse step is no excuse for values that are none of its multiples
    assert shows(y, 1e3)


@pytest.mark.parametrize("step", [0.05, 0.2, 2.0])
def test_a_coarse_step_hides_no_more_than_half_of_it_and_where_that_is_much_it_is_said(step: float) -> None:
    mechanism = protected()
    y = drawn(mechanism.design.prior, X)
    honest = mechanism.release(y, unsafe_seed=1, resolution=step)
    raw = dataclasses.replace(honest, outputs=np.round(np.round(y / step) * step, 9))
    found, of_raw = codes(honest.certify(progress=False)), codes(raw.certify(progress=False))
    assert "shows-what-is-suppressed" not in found
    assert ("suppressed-not-seen" in found) == (step > 0.05)
    # whoever publishes rounded truth under such a certificate is found out, or it is said that nobody could
    assert ("shows-what-is-suppressed" in of_raw) or ("suppressed-not-seen" in of_raw)
    assert step > 0.05 or "shows-what-is-suppressed" in of_raw


def test_so_are_those_of_compressed_releases(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = np.sort(rng.random(300))
    prior = sf.Prior(matern(0.3, nu=2.5), noise=0.01)
    how: dict[str, Any] = {"method": "compressed", "protects": "function", "objective": "predictions"}
    mechanism = sf.protect(prior, rows, sf.Box(0.4, 0.6), alpha=0.3, progress=False, **how)
    y = np.sin(9 * rows) + 0.1 * rng.normal(size=300)
    release = mechanism.release(y, unsafe_seed=1)
    assert f"{mechanism.noise.suppressed_count} combinations of the rows are not published" in str(release)
    release.save(tmp_path / "honest")
    manifest, tensors = read_container(tmp_path / "honest", lambda version, manifest, shapes: manifest)
    suppressed = tensors["noise_suppressed"]

    def found(**arrays: Any) -> sf.Certificate:
        (tmp_path / "edited").write_bytes(container(manifest, tensors | arrays))
        return sf.load(tmp_path / "edited").certify(progress=False)

    told = found()
    assert told.holds
    assert "shows-what-is-suppressed" not in codes(told)
    assert "shows-what-is-suppressed" in codes(found(outputs=np.round(y, 6)))
    # the same function twice is one function, and one that is nothing is none
    again = found(noise_suppressed=np.hstack([suppressed, suppressed[:, :1]]))
    assert again.joint_ratio == pytest.approx(told.joint_ratio, abs=1e-6)
    with pytest.raises(sf.FormatError):
        found(noise_suppressed=np.hstack([suppressed, 0.0 * suppressed[:, :1]]))
    assert not found(noise_suppressed=suppressed[:, 1:]).holds


def test_claims_of_better_predictions_are_found_out() -> None:
    mechanism = protected(protects="both")
    honest = mechanism.release(drawn(mechanism.design.prior, X), unsafe_seed=1)
    assert not codes(honest.certify(progress=False)) & {"claims-better-predictions"}
    told = honest.certificate
    for claim in (
        {"explained": told.explained + 1e-3},
        {"explained_upper": told.explained_upper - 1e-3},
        {"gap": -1.0},
        # no ledger says that
        {"explained": 5.0, "explained_upper": np.nan, "gap": np.nan},
        {"explained": np.nan, "explained_upper": np.nan, "gap": np.nan},
        {"explained_upper": np.nan},
    ):
        edited = dataclasses.replace(honest, certificate=dataclasses.replace(told, **claim))
        assert "claims-better-predictions" in codes(edited.certify(progress=False))
    # what a ledger's release may say cannot be checked without the others, and that is said
    of_several = {"explained": told.explained + 1e-3, "explained_upper": np.nan, "gap": np.nan}
    edited = dataclasses.replace(honest, certificate=dataclasses.replace(told, **of_several))
    assert "counts-other-releases" in codes(edited.certify(progress=False))


def codes(certificate: sf.Certificate) -> set[str]:
    return {one.code for one in certificate.findings}
