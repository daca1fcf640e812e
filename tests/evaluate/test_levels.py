"""Levels: a look at one promise at any level tells what ``protect`` makes there, or says that it was only a look."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.release import CompressedPosterior

REGION = sf.Box(1.0, 2.0)


def matern(lengthscale: float = 0.5, noise: Any = 0.05) -> sf.Prior:
    kernel = gpytorch.kernels.MaternKernel(2.5)
    kernel.lengthscale = lengthscale
    return sf.Prior(kernel, noise=noise)


def rows(count: int, columns: int = 1) -> Any:
    return np.random.default_rng(columns).uniform(0.0, 3.0, (count, columns))


@pytest.mark.parametrize("protects", ["both", "function"])
@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_are_those_of_protect_within_one_per_cent(columns: int, protects: Any) -> None:
    X, region = rows(90, columns), sf.Box([1.0] * columns, [2.0] * columns)
    levels = sf.Levels(matern(0.6), X, region, protects=protects)
    for level in ({"alpha": 0.3}, {"floor": 0.9}):
        effect, made = levels.at(**level), levels.protect(**level, progress=False)
        as_made = levels.effect_of(made)
        assert effect.holds
        assert effect.evidence == "searched"
        assert as_made.evidence == made.certificate.evidence
        assert as_made.noise == pytest.approx(np.sqrt(made.noise.trace / len(X)), rel=1e-12)
        for name in ("floor", "noise", "least_std", "record_std", "rmse_inside", "rmse_outside", "unprotected_rmse"):
            assert getattr(effect, name) == pytest.approx(getattr(as_made, name), rel=0.01), name
        assert effect.loss == pytest.approx(as_made.loss, rel=0.02, abs=1e-3)
        # a look keeps the floor that it says it keeps
        assert effect.least_std >= effect.floor * (1.0 - 1e-9)


@pytest.mark.parametrize(
    ("protects", "columns"), [("both", 1), ("records", 1), pytest.param("function", 2, marks=pytest.mark.slow)]
)
def test_a_look_at_the_best_predictions_is_that_of_protect(protects: Any, columns: int) -> None:
    X, region = rows(50, columns), sf.Box([1.0] * columns, [2.0] * columns)
    asked: dict[str, Any] = {"protects": protects, "serve": sf.Box([2.0] + [0.0] * (columns - 1), [3.0] * columns)}
    levels = sf.Levels(matern(0.6), X, region, objective="predictions", **asked)
    effect, made = levels.at(0.3), levels.protect(0.3, progress=False)
    assert made.design.objective == "predictions"
    assert effect.holds
    as_made = levels.effect_of(made)
    for name in ("least_std", "rmse_outside", "unprotected_rmse"):
        assert getattr(effect, name) == pytest.approx(getattr(as_made, name), rel=0.01), name
    assert effect.least_std >= effect.floor * (1.0 - 1e-9) or protects == "records"
    assert effect.loss < sf.Levels(matern(0.6), X, region, **asked).at(0.3).loss
    assert levels.curve([0.3]).rows[0].loss == pytest.approx(effect.loss)


def test_order_of_levels_does_not_matter() -> None:
    X = rows(100)
    asked = [0.1, 0.5, 0.12, 0.9, 0.3]
    one = sf.Levels(matern(), X, REGION)
    forward = {alpha: one.at(alpha).noise for alpha in asked}
    for alpha in asked:
        assert sf.Levels(matern(), X, REGION).at(alpha).noise == pytest.approx(forward[alpha], rel=0.01)


@pytest.mark.parametrize(
    ("region", "protects"), [(sf.Points([[1.2], [1.7]]), "both"), (sf.Points([[1.5]]), "function"), (REGION, "records")]
)
def test_finite_regions_and_records_are_those_of_protect(region: sf.Region, protects: Any) -> None:
    X = rows(60)
    levels = sf.Levels(matern(), X, region, protects=protects)
    effect, made = levels.at(alpha=0.3), levels.protect(alpha=0.3, progress=False)
    assert effect.evidence == "proved"
    assert effect.holds
    assert effect.noise == pytest.approx(np.sqrt(made.noise.trace / len(X)), rel=1e-9)
    at = np.linspace(0.0, 3.0, 7)
    np.testing.assert_allclose(effect.std_at(at), levels.effect_of(made).std_at(at), rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_protect_is_protect() -> None:
    frame = pd.DataFrame({"hours": rows(50)[:, 0]})
    region, labels = sf.parse_region("1 <= hours <= 2", ["hours"]), np.arange(50) // 10
    made = sf.Levels(matern(), frame, region, protects="function", insiders=labels).protect(
        floor=0.8, evidence="best", progress=False
    )
    same = sf.protect(
        matern(), frame, region, floor=0.8, protects="function", insiders=labels, evidence="best", progress=False
    )
    np.testing.assert_array_equal(made.noise.covariance(), same.noise.covariance())


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_promises_to_insiders_are_made_by_protect() -> None:
    X, labels = rows(24), np.arange(24) // 8
    levels = sf.Levels(matern(), X, REGION, insiders=labels)
    effect, made = levels.at(alpha=0.5), levels.protect(alpha=0.5, progress=False)
    assert effect.evidence == made.certificate.evidence
    assert effect.noise == pytest.approx(np.sqrt(made.noise.trace / len(X)), rel=1e-9)
    assert effect.noise > sf.Levels(matern(), X, REGION).at(alpha=0.5).noise


def test_readers_know_what_a_posterior_says() -> None:
    X, prior = rows(80), matern()
    levels = sf.Levels(prior, X, REGION)
    made, at = levels.protect(alpha=0.4, progress=False), np.linspace(0.0, 3.0, 31)[:, None]
    blur = made.noise.covariance() + 0.05 * np.eye(len(X))
    told = prior.condition(X, np.zeros(len(X)), blur).variance(at)
    np.testing.assert_allclose(levels.effect_of(made).std_at(at), np.sqrt(told), rtol=1e-7)
    bare = prior.condition(X, np.zeros(len(X)), 0.05 * np.eye(len(X))).variance(at)
    np.testing.assert_allclose(levels.unprotected_std_at(at), np.sqrt(bare), rtol=1e-7)
    floors, inside = levels.floor_at(at, alpha=0.4), (at[:, 0] >= 1.0) & (at[:, 0] <= 2.0)
    np.testing.assert_allclose(floors[inside], np.sqrt(0.6))
    assert np.all(np.isnan(floors[~inside]))
    assert np.all(levels.at(0.4).std_at(at)[inside] >= floors[inside] * (1.0 - 1e-6))
    assert np.all(np.isnan(sf.Levels(prior, X, REGION, protects="records").floor_at(at, alpha=0.4)))


def test_the_curve_goes_through_the_levels() -> None:
    levels = sf.Levels(matern(), rows(80), REGION, serve=np.linspace(2.05, 3.0, 20))
    curve = levels.curve([0.2, 0.6])
    assert curve.ways == ("joint",)
    for line in curve.rows:
        effect = levels.at(line.alpha)
        assert (line.floor, line.evidence) == (effect.floor, effect.evidence)
        assert line.loss == pytest.approx(effect.loss, rel=0.02)
        assert curve.everything.rmse_outside == effect.unprotected_rmse
    assert [line.floor for line in levels.curve(floors=[0.7, 0.9]).rows] == [0.7, 0.9]


def test_noise_free_data_share_nothing_that_is_not_there() -> None:
    levels = sf.Levels(matern(noise=0.0), np.linspace(0.0, 3.0, 25), REGION, protects="function")
    effect, made = levels.at(alpha=0.5), levels.effect_of(levels.protect(alpha=0.5, progress=False))
    # without errors of their own rows tell so much between them that a proof costs more than a look
    assert effect.noise == pytest.approx(made.noise, rel=0.02)


def test_wrong_levels_are_refused_in_words() -> None:
    levels = sf.Levels(matern(), rows(20), REGION)
    with pytest.raises(sf.InputError, match="alpha is None and floor is None; give one of them"):
        levels.at()
    with pytest.raises(sf.InputError, match="give one of them"):
        levels.at(0.1, floor=0.2)
    with pytest.raises(sf.InputError, match="alpha"):
        levels.at(1.5)
    with pytest.raises(sf.InputError, match="floor"):
        levels.at(floor=2.0)
    with pytest.raises(sf.InputError, match="give one of them"):
        levels.curve([0.1], floors=[0.2])
    with pytest.raises(sf.InputError, match="protects"):
        sf.Levels(matern(), rows(20), REGION, protects="people")  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="for 30 rows, and these levels for 20"):
        levels.effect_of(sf.protect(matern(), rows(30), REGION, alpha=0.5, progress=False))


def test_many_rows_are_read_once_for_a_level(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    made = CompressedPosterior.of.__func__  # type: ignore[attr-defined]

    def counted(cls: Any, design: Any, *more: Any) -> Any:
        passes.append(len(design.inputs))
        return made(cls, design, *more)

    monkeypatch.setattr(CompressedPosterior, "of", classmethod(counted))
    levels = sf.Levels(matern(0.7), rows(4200), REGION, protects="function")
    effect, at = levels.at(alpha=0.3), np.linspace(0.0, 3.0, 50)
    assert effect.evidence == "proved"
    assert len(passes) == 2  # of this level, and of all data without noise
    assert np.all(effect.std_at(at) >= levels.unprotected_std_at(at) * (1.0 - 1e-9))
    assert len(passes) == 2
    made_so = levels.effect_of(levels.protect(alpha=0.3, progress=False))
    np.testing.assert_allclose(effect.std_at(at), made_so.std_at(at), rtol=1e-9)
