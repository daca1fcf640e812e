"""Noise that is a random function: one thing in many forms, and a release of it that anyone can read and check."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.noise.entropy import SecretKey
from sfumato.noise.noise import ROWS_AT_ONCE, FunctionalNoise
from sfumato.release.release import make_release

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

X = np.random.default_rng(0).random((80, 2))
PRIORS = (sf.Prior(kernel=rbf([0.4, 0.3], 1.5), noise=0.1), sf.Prior(kernel=matern([0.5, 0.5]), noise=0.2))


def made(priors=1, sources=4, rows=X, seed=1):
    rng = np.random.default_rng(seed)
    centres = tuple(rng.random((5 + place, 2)) for place in range(priors))
    mixing = rng.standard_normal((sum(map(len, centres)), sources))
    return FunctionalNoise(PRIORS[:priors], centres, mixing, as_inputs(rows))


@pytest.fixture(params=[1, 2])
def noise(request):
    return made(request.param)


def dense_factor(noise, rows):
    """K_XZ C."""
    blocks = [prior.covariance(rows, z) for prior, z in zip(noise.priors, noise.centres, strict=True)]
    return np.hstack(blocks) @ noise.mixing


def test_all_forms_of_the_covariance_agree(noise):
    F = dense_factor(noise, X)
    np.testing.assert_allclose(noise.factor, F, atol=1e-12)
    np.testing.assert_allclose(noise.covariance(), F @ F.T, atol=1e-11)
    np.testing.assert_allclose(noise.variance(), np.diag(F @ F.T), atol=1e-11)
    np.testing.assert_allclose(noise.variance_at(X[:7]), np.diag(F @ F.T)[:7], atol=1e-11)
    np.testing.assert_allclose(noise.factor_at(X[:7]), F[:7], atol=1e-12)
    assert noise.trace == pytest.approx(np.trace(F @ F.T), rel=1e-12)
    assert (noise.rows, noise.rank, noise.normals_needed) == (80, 4, 4)
    assert noise.shift == noise.least == 0.0


def test_a_draw_is_the_factor_times_the_normals(noise):
    normals = np.random.default_rng(2).standard_normal(4)
    drawn = noise.draw(normals)
    np.testing.assert_allclose(drawn, noise.factor @ normals, atol=1e-12)
    np.testing.assert_allclose(noise.function(normals).at(X), drawn, atol=1e-12)


def test_a_draw_is_linear_in_the_normals(noise):
    one, two = np.random.default_rng(3).standard_normal((2, 4))
    together = noise.draw(2.0 * one - 3.0 * two)
    np.testing.assert_allclose(together, 2.0 * noise.draw(one) - 3.0 * noise.draw(two), atol=1e-11)
    assert not np.any(noise.draw(np.zeros(4)))


def test_a_draw_is_one_function_whatever_rows_are_asked_for(noise):
    function = noise.function(np.random.default_rng(4).standard_normal(4))
    many = np.random.default_rng(5).random((ROWS_AT_ONCE + 5, 2))
    values = function.at(many)
    np.testing.assert_allclose(function.at(many[-3:]), values[-3:], atol=1e-12)
    np.testing.assert_allclose(function.at(many[::500]), values[::500], atol=1e-12)


def test_draws_have_the_covariance_that_is_promised():
    noise = made(rows=X[:6])
    normals = np.random.default_rng(6).standard_normal((20_000, 4))
    drawn = normals @ noise.factor.T
    assert np.array_equal(noise.draw(normals[0]), noise.function(normals[0]).at(X[:6]))
    np.testing.assert_allclose(np.cov(drawn.T), noise.covariance(), atol=0.05 * noise.variance().max())


@pytest.mark.parametrize("sources", [1, 3])
def test_the_rank_is_that_of_the_mixing_and_not_its_width(sources):
    thin = made(sources=sources)
    wide = dataclasses.replace(thin, mixing=thin.mixing @ np.random.default_rng(7).standard_normal((sources, 9)))
    assert wide.normals_needed == 9
    assert wide.rank == sources
    assert dataclasses.replace(thin, mixing=0.0 * thin.mixing).rank == 0


def test_the_mixing_cannot_be_changed_afterwards(noise):
    with pytest.raises(ValueError, match="read-only"):
        noise.mixing[0, 0] = 1.0


def test_a_drawn_function_shows_nothing_of_itself(noise):
    function = noise.function(np.full(4, 1.25))
    assert repr(function) == str(function) == f"{function}"
    assert not any(character.isdigit() for character in repr(function))
    assert "secret" in repr(function)


# releases of it ------------------------------------------------------------------------------------------------------

LINE = np.sort(np.random.default_rng(8).random(150))[:, None]
PRIOR = sf.Prior(kernel=rbf(0.25), noise=0.02, mean=1.5)
CASES = {
    "box": (sf.Box(0.4, 0.6), {"alpha": 0.3}),
    "points": (sf.Points([[0.3], [0.6]]), {"alpha": 0.3}),
    "pointwise": (sf.Points([[0.3], [0.6]]), {"alpha": 0.3, "guarantee": "pointwise"}),
    "weighted": (sf.Box(0.4, 0.6), {"alpha": 0.3, "weights": np.linspace(0.2, 4.0, 150)}),
    "robust": (sf.Points([[0.3], [0.6]]), {"alpha": 0.3, "priors": [sf.Prior(kernel=matern(0.4), noise=0.02)]}),
    "floor": (sf.Box(0.4, 0.6), {"floor": 0.7}),
    "varying floor": (sf.Box(0.4, 0.6), {"floor": lambda s: 0.6 + 0.1 * np.sin(9 * s[:, 0]), "protects": "function"}),
}
MECHANISMS = {}


@pytest.fixture(params=list(CASES))
def mechanism(request):
    if request.param not in MECHANISMS:
        region, options = CASES[request.param]
        MECHANISMS[request.param] = sf.protect(PRIOR, LINE, region, method="compressed", progress=False, **options)
    return MECHANISMS[request.param]


def test_a_release_comes_back_from_its_file_as_it_was(mechanism, tmp_path):
    release = mechanism.release(1.5 + np.sin(6 * LINE[:, 0]), unsafe_seed=1)
    release.save(tmp_path / "a.sfumato")
    loaded = sf.load(tmp_path / "a.sfumato")
    loaded.save(tmp_path / "b.sfumato")
    assert (tmp_path / "a.sfumato").read_bytes() == (tmp_path / "b.sfumato").read_bytes()
    assert isinstance(loaded.noise, FunctionalNoise)
    np.testing.assert_array_equal(loaded.noise.mixing, release.noise.mixing)
    new = np.linspace(-0.2, 1.2, 9)
    for name in ("mean", "std", "std_lower"):
        np.testing.assert_allclose(getattr(loaded.predict(new), name), getattr(release.predict(new), name), rtol=1e-12)
    assert loaded.certificate.as_dict() == release.certificate.as_dict()


def test_a_reader_of_the_file_finds_the_same_certificate(mechanism, tmp_path):
    mechanism.release(np.ones(150), unsafe_seed=1).save(tmp_path / "a.sfumato")
    found, claimed = sf.load(tmp_path / "a.sfumato").certify().as_dict(), mechanism.certificate.as_dict()
    assert found["holds"] is claimed["holds"] is True
    for name in ("joint_ratio", "trace", "trace_lower", "spill"):
        assert found[name] == pytest.approx(claimed[name], rel=1e-9)
    # a floor that varies is in the file only where it was looked at, so nobody can walk from there
    assert found["floor_ratio"] == pytest.approx(claimed["floor_ratio"], rel=1e-4)


def test_a_file_is_as_small_as_its_centres(mechanism, tmp_path):
    release = mechanism.release(np.ones(150), unsafe_seed=1)
    release.save(tmp_path / "a.sfumato")
    size = (tmp_path / "a.sfumato").stat().st_size
    numbers = 4 * mechanism.noise.mixing.size + 10 * 150
    table = 3 * 8 * 4001 * 2 if callable(getattr(mechanism.tolerance, "value", None)) else 0
    assert size <= 8 * numbers + 20_000 + table


def test_the_same_key_gives_the_same_noise_and_another_key_another():
    mechanism = sf.protect(PRIOR, LINE, sf.Box(0.4, 0.6), alpha=0.3, method="compressed", progress=False)
    y = np.cos(5 * LINE[:, 0])
    assert np.array_equal(mechanism.release(y).outputs, mechanism.release(y).outputs)
    design, certificate = mechanism.design, mechanism.certificate
    keys = [SecretKey.from_unsafe_seed(1), SecretKey.from_unsafe_seed(1), SecretKey.from_unsafe_seed(2)]
    one, same, other = (make_release(design, certificate, key, y).outputs for key in keys)
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_release_is_what_was_drawn_rounded():
    mechanism = sf.protect(PRIOR, LINE, sf.Box(0.4, 0.6), alpha=0.3, method="compressed", progress=False)
    release = mechanism.release(np.zeros(150), unsafe_seed=3, resolution=1e-3)
    key = SecretKey.from_unsafe_seed(3)
    normals = key.normals(b"sfumato unsafe release 1", mechanism.noise.normals_needed)
    assert np.abs(release.outputs - mechanism.noise.draw(normals)).max() <= 0.5e-3 * (1 + 1e-9)
    assert np.abs(release.outputs).max() > 0.1


def test_nothing_is_released_under_a_failed_certificate():
    mechanism = sf.protect(PRIOR, LINE, sf.Box(0.4, 0.6), alpha=0.3, method="compressed", progress=False)
    failed = dataclasses.replace(mechanism.certificate, holds=False)
    with pytest.raises(sf.GuaranteeError, match="nothing was released"):
        dataclasses.replace(mechanism, certificate=failed).release(np.zeros(150))
