"""Every attack wins against data that are not protected, and is held to the floor on data that are."""

from __future__ import annotations

import dataclasses
from typing import Any

import gpytorch
import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.evaluate.audits import adversaries
from sfumato.evaluate.mechanical_attacks import averaging, find_seed, grid_of, joins, possible_noise
from sfumato.evaluate.statistical_attacks import bayes, bayes_with, holds_rows, knows_physics
from sfumato.evaluate.target import (
    Adversary,
    NotTriedError,
    Outcome,
    Target,
    judge,
    judged_inputs,
    root_mean_square,
    target_for,
)
from sfumato.noise.entropy import round_outputs
from sfumato.noise.noise import no_noise

T = np.linspace(0.0, 3.0, 41)
REGION = sf.Box(1.0, 2.0)
PRIOR = sf.Prior(matern(0.5), mean=2.0, noise=0.01)


def from_prior(prior: sf.Prior = PRIOR, X: Any = T, seed: int = 3) -> np.ndarray:
    """Values that the prior is right about."""
    rng = np.random.default_rng(seed)
    total = prior.covariance(X) + np.diag(prior.noise_variance(len(X)))
    return prior.mean_at(X) + np.linalg.cholesky(total + 1e-12 * np.eye(len(X))) @ rng.standard_normal(len(X))


Y = from_prior()


@pytest.fixture(scope="module")
def mechanism() -> sf.Mechanism:
    return sf.protect(PRIOR, T, REGION, alpha=0.3, progress=False)


@pytest.fixture(scope="module")
def protected(mechanism: sf.Mechanism) -> Target:
    return target_for(mechanism.release(Y), Y)


def naive(release: sf.Release, outputs: Any = None, **changed: Any) -> sf.Release:
    """A release that this library would not make."""
    design = dataclasses.replace(release.design, **changed)
    return dataclasses.replace(release, design=design, outputs=release.outputs if outputs is None else outputs)


@pytest.fixture(scope="module")
def bare(protected: Target) -> Target:
    """The same with no noise at all: y as it is, rounded."""
    release = naive(protected.release, round_outputs(Y, 1e-6), noise=no_noise(len(T)))
    return target_for(release, Y)


def adversary(target: Target, name: str, **how: Any) -> Adversary:
    (found,) = [one for one in adversaries(target, **how) if one.name == name]
    return found


def judged(target: Target, name: str, **how: Any) -> Outcome:
    who = adversary(target, name, **how)
    return judge(who, who.attack())


# ---------------------------------------------------------------- readers of the release alone

FROM_THE_RELEASE = [
    "Bayes reader",
    "fits matern52",
    "fits rbf, ignores Σ",
    "polynomial, knows Σ",
    "gradient boosting",
    "low bits",
    "guesses the seed",
]


@pytest.mark.parametrize("name", FROM_THE_RELEASE)
def test_who_knows_only_the_release_stays_above_the_floor(name: str, protected: Target) -> None:
    outcome = judged(protected, name, guesses=300)
    assert outcome.covered
    assert outcome.ratio >= 1 - 1e-9
    assert not outcome.beaten
    assert outcome.actual >= outcome.floor * (1 - 1e-9)


@pytest.mark.parametrize("name", FROM_THE_RELEASE[:3])
def test_who_knows_only_the_release_wins_without_noise(name: str, bare: Target) -> None:
    outcome = judged(bare, name)
    assert outcome.beaten
    assert outcome.severity == "critical"
    assert outcome.ratio < 0.5
    assert outcome.rmse < 0.2 * outcome.floor
    assert "Remedy" in outcome.words


def test_any_estimate_from_the_release_is_bounded_whatever_it_is(protected: Target) -> None:
    """The guarantee of ``Outcome``: also for nonsense, and for the truth itself if it were guessed from W."""
    reader, who = bayes(protected), adversary(protected, "Bayes reader")
    for mean in (
        protected.truth,
        np.zeros(len(protected.inputs)),
        reader.mean + np.random.default_rng(5).standard_normal(len(reader.mean)),
    ):
        assert judge(who, dataclasses.replace(reader, mean=mean)).ratio >= 1 - 1e-9


def test_expected_errors_are_those_of_the_linear_estimate(protected: Target) -> None:
    """E over W of ``actual``² is diag(K_SS − L K_XS − K_SX Lᵀ + L M Lᵀ) + bias² for fixed weights L: by Monte Carlo.

    The mean of 4000 squares is within 6 of its standard errors: fails by chance with probability < 1e-7.
    """
    s, prior = protected.inputs[50:51], protected.prior
    weights = np.exp(-((T - s[0, 0]) ** 2) / 0.02) / 5
    M = prior.covariance(T) + protected.noise + 0.01 * np.eye(len(T))
    cross = prior.covariance(T, s)[:, 0]
    bias = 2.0 * weights.sum() - 2.0
    exact = prior.variance(s)[0] - 2 * weights @ cross + weights @ M @ weights + bias**2
    rng = np.random.default_rng(0)
    W = 2.0 + np.linalg.cholesky(M) @ rng.standard_normal((len(T), 4000))
    known = cross @ np.linalg.solve(M, W - 2.0) + 2.0
    left = prior.variance(s)[0] - cross @ np.linalg.solve(M, cross)
    squares = left + (weights @ W - known) ** 2
    assert abs(squares.mean() - exact) < 6 * squares.std() / np.sqrt(4000)
    one = dataclasses.replace(protected, inputs=s)
    release = dataclasses.replace(protected.release, outputs=W[:, 0])
    one = dataclasses.replace(one, release=release)
    estimate = dataclasses.replace(bayes(one), mean=np.array([weights @ W[:, 0]]))
    assert judge(adversary(one, "Bayes reader"), estimate).actual == pytest.approx(np.sqrt(squares[0]), rel=1e-6)


def test_the_bayes_reader_is_the_one_of_the_certificate(protected: Target) -> None:
    seen = protected.release.predict(protected.inputs)
    np.testing.assert_allclose(bayes(protected).mean, seen.mean, rtol=1e-9)
    np.testing.assert_allclose(bayes(protected).std, seen.std, rtol=1e-9)
    outcome = judged(protected, "Bayes reader")
    assert outcome.actual == pytest.approx(outcome.claimed, rel=1e-6)
    assert outcome.ratio == pytest.approx(protected.release.certificate.floor_ratio, abs=0.02)
    assert outcome.severity == "none"


def test_readers_with_other_protected_priors_are_covered_and_judged_under_their_own() -> None:
    other = sf.Prior(matern(1.0), mean=2.0, noise=0.01)
    both = sf.protect(PRIOR, T, sf.Points([[1.3], [1.7]]), alpha=0.3, priors=[other], progress=False).release(Y)
    one = sf.protect(PRIOR, T, sf.Points([[1.3], [1.7]]), alpha=0.3, progress=False).release(Y)
    target = target_for(both, Y)
    assert judged(target, "Bayes reader, prior 2").ratio >= 1 - 1e-9
    alone = bayes_with(target_for(one, Y), 2, other)
    assert judge(adversary(target, "Bayes reader, prior 2"), alone).beaten


def test_rows_cover_is_below_the_floor_between_rows() -> None:
    X = np.linspace(0.0, 3.0, 61)
    prior = sf.Prior(rbf(0.06), mean=2.0, noise=1e-6)
    y = from_prior(prior, X)
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows"):
        rows = sf.protect(prior, X, REGION, 0.1, cover="rows", protects="function", progress=False).release(y)
    target = target_for(rows, y)
    assert judged(target, "Bayes reader").ratio >= 1 - 1e-9
    between = judged(target, "looks between the rows")
    assert between.beaten
    assert not between.covered
    whole = target_for(sf.protect(prior, X, REGION, alpha=0.1, progress=False).release(y), y)
    with pytest.raises(NotTriedError, match="promised in the whole region"):
        judged(whole, "looks between the rows")


def test_a_refit_shows_that_a_prior_does_not_fit() -> None:
    """y is far smoother than the owner believes: the promise is kept under the prior, and worth little."""
    y = 2.0 + np.sin(2 * T)
    wrong = sf.Prior(rbf(0.1), mean=2.0, noise=1e-6)
    closer = []
    for _ in range(3):
        release = sf.protect(wrong, T, REGION, alpha=0.1, progress=False).release(y)
        target = target_for(release, y)
        outcome = judged(target, "fits rbf")
        assert outcome.ratio >= 1 - 1e-6
        assert not outcome.beaten
        closer.append(outcome)
    # one draw may hide it by chance
    best = min(closer, key=lambda outcome: outcome.rmse)
    assert best.closer
    assert best.severity == ("high" if best.rmse < 0.5 * best.floor else "medium")
    assert "sf.rehearse" in best.words


# ---------------------------------------------------------------- several releases


def test_averaging_wins_and_one_release_does_not(protected: Target) -> None:
    many, one = judged(protected, "averages 20 releases", draws=20), judged(protected, "averages 1 releases", draws=1)
    assert one.ratio >= 1 - 1e-9
    assert one.covered
    assert many.beaten
    assert many.severity == ("high" if many.ratio < 0.5 else "medium")
    assert not many.covered
    assert many.ratio < 0.6
    assert "ledger" in many.words


def test_twenty_draws_leave_what_the_mathematics_says() -> None:
    """MATH.md, section 8: α = 0.5 on the satellite grid leaves 0.048 of the variance after 20 draws."""
    X = np.linspace(0.0, 3.0, 61)
    prior = sf.Prior(rbf(0.05))
    y = from_prior(prior, X)
    with pytest.warns(sf.GuaranteeWarning):
        release = sf.protect(prior, X, REGION, alpha=0.5, cover="rows", progress=False).release(y)
    target = target_for(release, y)
    middle = dataclasses.replace(target, inputs=X[30:31, None])
    outcome = judged(middle, "averages 20 releases", draws=20)
    assert outcome.actual**2 == pytest.approx(0.048, abs=0.003)


def test_the_owners_measurement_errors_do_not_average(protected: Target) -> None:
    outcome = judged(protected, "averages 3000 releases", draws=3000)
    owner = np.sqrt(protected.owner.variance(protected.inputs))
    assert outcome.actual >= np.sqrt(np.mean(owner**2)) * (1 - 1e-6)


def test_releases_that_are_out_already_are_joined(mechanism: sf.Mechanism, protected: Target) -> None:
    again = [sf.protect(PRIOR, T, REGION, alpha=0.3, progress=False).release(Y) for _ in range(3)]
    assert judged(protected, "joins 4 releases", others=again).ratio == pytest.approx(
        judged(protected, "averages 4 releases", draws=4).ratio, rel=1e-3
    )
    weaker = sf.protect(PRIOR, T, REGION, alpha=0.8, progress=False).release(Y)
    assert judged(protected, "joins 2 releases", others=[weaker]).beaten
    with pytest.raises(sf.InputError, match="others has a release at place 1 that is not of the same rows"):
        joins(protected, [sf.protect(PRIOR, T[1:], REGION, alpha=0.3, progress=False).release(Y[1:])])
    with pytest.raises(sf.InputError, match="others has 'orbit' at place 1"):
        joins(protected, ["orbit"])  # type: ignore[list-item]


# ---------------------------------------------------------------- better priors


def test_a_reader_who_knows_the_physics_wins_where_the_owner_does_not() -> None:
    y = 2.0 + np.sin(2 * np.pi * T)
    owner = sf.Prior(rbf(0.15), mean=2.0, noise=1e-4)
    release = sf.protect(owner, T, REGION, alpha=0.1, progress=False).release(y)
    target = target_for(release, y)
    outcome = judged(target, "knows the physics", physics=lambda X: 2.0 + np.sin(2 * np.pi * X[:, 0]))
    assert outcome.closer
    assert outcome.severity == "high"
    assert outcome.rmse < 0.3 * outcome.floor
    assert outcome.ratio >= 1 - 1e-9


OTHER_PRIORS = [
    "knows of smaller errors V",
    "lengthscale × 0.5",
    "lengthscale × 2",
    "lengthscale × 3",
    "knows the physics",
]


def options(name: str) -> dict[str, Any]:
    return {"physics": lambda X: np.zeros(len(X))} if name == "knows the physics" else {}


@pytest.mark.parametrize("name", OTHER_PRIORS)
def test_other_priors_gain_nothing_where_the_owners_is_right(name: str, mechanism: sf.Mechanism) -> None:
    """Expected errors are bounded always; on 40 data sets from the prior the mean square is, too.

    With the right prior E(f̂ − E[f|y])² ≥ Var(f|W) − Var(f|y) at each s. The mean over the sets may be 6 of its standard
    errors lower: by chance that has a probability below 1e-8. Data and noise are seeded.
    """
    squares = []
    for seed in range(40):
        y = from_prior(seed=100 + seed)
        release = mechanism.release(y, unsafe_seed=seed)
        target = target_for(release, y, [[1.25], [1.5], [1.75]])
        outcome = judged(target, name, **options(name))
        assert outcome.ratio >= 1 - 1e-9
        assert not outcome.beaten
        squares.append(outcome.rmse**2)
    left = target.evidence.seen_by(PRIOR).variance(target.inputs) - target.owner.variance(target.inputs)
    assert np.mean(squares) >= left.mean() - 6 * np.std(squares) / np.sqrt(len(squares))


@pytest.mark.parametrize("name", OTHER_PRIORS[:4])
def test_other_priors_win_without_noise(name: str, bare: Target) -> None:
    outcome = judged(bare, name)
    assert outcome.below
    assert outcome.rmse < 0.3 * outcome.floor


def test_longer_lengthscales_win_where_they_are_right() -> None:
    """Ten smooth functions under a rough prior: a reader who knows better is closer on average."""
    smooth, rough = sf.Prior(rbf(0.8), mean=2.0, noise=1e-6), sf.Prior(rbf(0.27), mean=2.0, noise=1e-6)
    mechanism = sf.protect(rough, T, REGION, alpha=0.1, progress=False)
    errors, floors = [], []
    for seed in range(10):
        y = from_prior(smooth, T, seed)
        target = target_for(mechanism.release(y, unsafe_seed=seed), y)
        outcome = judged(target, "lengthscale × 3")
        errors.append(outcome.rmse**2)
        floors.append(outcome.floor**2)
    assert np.mean(errors) < 0.3 * np.mean(floors)


def test_kernels_without_known_lengthscales_are_skipped_with_a_sentence(protected: Target) -> None:
    class Own(gpytorch.kernels.RBFKernel):  # type: ignore[misc]
        pass

    own = dataclasses.replace(protected, prior=sf.Prior(Own().double(), mean=2.0, noise=0.01))
    with pytest.raises(NotTriedError, match="not known"):
        judged(own, "lengthscale × 2")
    linear = dataclasses.replace(protected, prior=sf.Prior(gpytorch.kernels.LinearKernel().double(), noise=0.01))
    with pytest.raises(NotTriedError, match="the kernel has no lengthscale"):
        judged(linear, "lengthscale × 2")
    exact = dataclasses.replace(protected, prior=sf.Prior(matern(0.5)))
    with pytest.raises(NotTriedError, match="no measurement errors"):
        judged(exact, "knows of smaller errors V")


# ---------------------------------------------------------------- side information


def test_values_known_next_to_the_region_tell_more_than_was_promised(protected: Target) -> None:
    outcome = judged(protected, "knows nearby values")
    assert outcome.beaten
    assert not outcome.covered
    assert outcome.severity == "high"
    far = sf.protect(sf.Prior(matern(0.02), mean=2.0, noise=0.01), T, sf.Box(1.02, 1.98), alpha=0.3, progress=False)
    unrelated = target_for(far.release(Y), Y)
    assert judged(unrelated, "knows nearby values").ratio >= 0.995
    everywhere = target_for(sf.protect(PRIOR, T, sf.Everywhere(), alpha=0.3, progress=False).release(Y), Y)
    with pytest.raises(NotTriedError, match="no rows outside"):
        judged(everywhere, "knows nearby values")


def test_held_rows_tell_about_their_neighbours(protected: Target) -> None:
    outcomes = [judged(protected, name) for name in ("holds 1 row", "holds 2 rows", "holds 5 rows")]
    assert all(outcome.beaten for outcome in outcomes)
    assert outcomes[0].ratio > outcomes[2].ratio
    assert [outcome.severity for outcome in outcomes[1:]] == [
        "high" if o.ratio < 0.5 else "medium" for o in outcomes[1:]
    ]
    held = np.array([15, 20])
    assert not set(holds_rows(protected, held).target.inputs[:, 0]) & set(T[held])
    points = sf.protect(PRIOR, T, sf.Points([[T[20]]]), alpha=0.3, progress=False).release(Y)
    with pytest.raises(NotTriedError, match="all sensitive values are rows"):
        holds_rows(target_for(points, Y), np.array([20]))


def test_who_holds_as_many_rows_as_the_noise_has_sources_takes_all_of_it_off() -> None:
    """W − y at those rows determines the few sources of correlated noise; independent noise has one for each row."""
    X = np.linspace(0.0, 3.0, 91)
    prior = sf.Prior(rbf(0.5), mean=2.0, noise=0.01)
    y = from_prior(prior, X)
    outcomes = {}
    for structure in ("full", "diagonal"):
        how: Any = {"alpha": 0.3, "structure": structure, "protects": "function", "progress": False}
        release = sf.protect(prior, X, REGION, **how).release(y)
        target = target_for(release, y)
        who = adversary(target, "holds 5 rows")
        outcomes[structure] = judge(who, holds_rows(target, np.flatnonzero(target.rows_inside)[::2]))
        if structure == "full":
            assert release.noise.rank < target.rows_inside.sum() / 2
            assert outcomes["full"].rmse < 1e-3 * root_mean_square(target.floor)
    assert outcomes["full"].actual < 0.7 * outcomes["diagonal"].actual


# ---------------------------------------------------------------- digits

MONEY = sf.Prior(matern(0.5, 400.0), mean=50.0, noise=0.0)
DOLLARS = np.round(from_prior(MONEY, T, 8))


@pytest.fixture(scope="module")
def dollars() -> sf.Release:
    return sf.protect(MONEY, T, REGION, alpha=0.3, progress=False).release(DOLLARS)


def test_grids_are_found() -> None:
    assert grid_of(DOLLARS) == 1.0
    assert grid_of(DOLLARS * 0.05) == pytest.approx(0.05)
    assert grid_of(DOLLARS * 1000) == 1000.0
    assert grid_of(Y) is None
    assert grid_of(np.full(5, 3.0)) is None
    assert grid_of(DOLLARS, 0.5) == 0.5
    with pytest.raises(sf.InputError, match=r"grid is 7, but y has .* which is no multiple"):
        grid_of(DOLLARS, 7.0)
    with pytest.raises(sf.InputError, match="grid is 0"):
        grid_of(DOLLARS, 0.0)


def test_rounding_to_the_grid_gains_nothing_where_the_noise_is_larger(dollars: sf.Release) -> None:
    target = target_for(dollars, DOLLARS)
    outcome = judged(target, "knows the grid of y", grid=1.0)
    plain = judged(target, "Bayes reader")
    assert outcome.rmse > 0.8 * plain.rmse
    assert outcome.ratio > 0.9
    assert not outcome.covered


def test_rounding_to_the_grid_wins_where_the_noise_is_smaller() -> None:
    """A step of 20 and noise of about 3: it is rounded off, and a floor of 3 is gone."""
    prior = sf.Prior(matern(0.02, 100.0**2), mean=50.0)
    y = 20.0 * np.round(from_prior(prior, T, 8) / 20)
    release = sf.protect(prior, T, sf.Points(T[15:25, None]), floor=3.0, progress=False).release(y, unsafe_seed=1)
    target = target_for(release, y)
    assert judged(target, "Bayes reader").ratio >= 1 - 1e-9
    outcome = judged(target, "knows the grid of y", grid=grid_of(y))
    assert outcome.beaten
    assert outcome.severity == "high"
    assert outcome.rmse < 0.5 * outcome.floor
    assert "decodes" in outcome.words
    with pytest.raises(NotTriedError, match="no coarse grid"):
        judged(target_for(dataclasses.replace(release, outputs=y + np.pi), y + np.pi), "knows the grid of y")


def test_low_bits_of_a_naive_sum_give_y_away(dollars: sf.Release) -> None:
    """Noise in single precision, as torch.randn draws it, added to prices in cents: they are then known to quarters.

    The floor is ± 5 cents, so that a quarter is five of them; without the low bits the grid of cents tells nothing.
    """
    prior = sf.Prior(matern(0.5, 0.06**2), mean=50.0, noise=1e-5)
    cents = np.round(from_prior(prior, T, 8), 2)
    release = sf.protect(prior, T, REGION, alpha=0.3, progress=False).release(cents)
    noise = (
        (release.noise.factor @ np.random.default_rng(5).standard_normal(release.noise.rank))
        .astype(np.float32)
        .astype(float)
    )
    target = target_for(naive(release, cents + noise), cents)
    outcome = judged(target, "low bits", grid=0.01)
    assert outcome.beaten
    assert outcome.severity == "critical"
    assert outcome.rmse < 0.1 * outcome.floor
    assert judged(target, "knows the grid of y", grid=0.01).rmse > 3 * outcome.rmse
    rounded = target_for(naive(release, round_outputs(cents + noise, release.resolution)), cents)
    kept = judged(rounded, "low bits", grid=0.01)
    assert kept.ratio >= 1 - 1e-9
    assert "no digits below" in kept.words


def test_low_bits_without_a_grid_are_reported(dollars: sf.Release) -> None:
    y = DOLLARS + np.pi / 100
    target = target_for(naive(dollars, y + np.random.default_rng(5).standard_normal(41)), y)
    outcome = judged(target, "low bits", grid=grid_of(y))
    assert outcome.ratio >= 1 - 1e-9
    assert "not rounded in 41 rows" in outcome.words


def test_noise_has_no_more_bits_than_it_was_drawn_with() -> None:
    z, v = float(np.float32(0.3)), 12.34
    tried = np.round(np.arange(1000.0, 1500.0)) / 100
    fits = tried[possible_noise(v + z, tried, 24)]
    assert 12.34 in fits
    # those that are quarters away, and some next to W itself, where small noise has a fine step
    assert np.mean(np.abs(np.rint(4 * (fits - 12.34)) - 4 * (fits - 12.34)) < 1e-9) > 0.8
    assert len(fits) < 20
    assert possible_noise(v + 0.3217, tried, 24).sum() <= 1
    assert possible_noise(v + 0.3, tried, 53).sum() > 1


# ---------------------------------------------------------------- seeds


ROUGH = sf.Prior(matern(0.1), mean=2.0, noise=1e-4)


def test_a_small_seed_is_found_and_the_noise_taken_off() -> None:
    release = sf.protect(ROUGH, T, REGION, alpha=0.3, progress=False).release(Y, unsafe_seed=271)
    target = target_for(release, Y)
    assert find_seed(target, 300) == 271
    outcome = judged(target, "guesses the seed", guesses=300)
    assert outcome.beaten
    assert outcome.severity == "high"
    assert not outcome.covered
    assert outcome.rmse < 1e-5 * outcome.floor


def test_seeds_are_found_for_independent_noise_and_compressed_designs() -> None:
    smooth = sf.Prior(rbf(0.1), mean=2.0, noise=1e-4)
    for how in ({"structure": "diagonal"}, {"method": "compressed", "protects": "function"}):
        release = sf.protect(smooth, T, REGION, alpha=0.3, progress=False, **how).release(Y, unsafe_seed=7)
        assert find_seed(target_for(release, Y), 20) == 7


def test_a_seed_beyond_the_guesses_and_a_real_key_are_not_found(mechanism: sf.Mechanism, protected: Target) -> None:
    """A wrong seed is believed with probability below e⁻⁵ in each of 20 data sets; nine such are below 1e-13."""
    rough = sf.protect(ROUGH, T, REGION, alpha=0.3, progress=False)
    found = 0
    for seed in range(300, 320):
        y = from_prior(ROUGH, T, seed)
        found += find_seed(target_for(rough.release(y, unsafe_seed=seed), y), 200) is not None
    assert found < 9
    outcome = judged(protected, "guesses the seed", guesses=2000)
    assert outcome.covered
    assert outcome.ratio >= 1 - 1e-9


def test_a_seed_that_only_seems_right_takes_nothing_off(protected: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.evaluate.mechanical_attacks.find_seed", lambda target, guesses: 5)
    outcome = judged(protected, "guesses the seed", guesses=10)
    assert outcome.ratio >= 1 - 1e-9
    assert "does not" in outcome.words


# ---------------------------------------------------------------- where it is judged


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        (sf.Box(1.0, 2.0), {"alpha": 0.3}),
        (sf.Box(1.0, None), {"floor": 0.5}),
        (sf.Points([[0.5], [1.7]]), {"tolerance": sf.MatrixTolerance([[0.3, 0.1], [0.1, 0.3]])}),
        (sf.Everywhere(), {"alpha": 0.5}),
        (sf.Ball([1.5], 0.3) | sf.Box(2.5, 2.8), {"alpha": 0.3}),
        (sf.Box(1.0, 2.0), {"floor": lambda s: 0.5 + 0.1 * s[:, 0]}),
    ],
)
def test_default_inputs_are_in_the_region_and_have_a_floor(region: Any, asked: Any, tmp_path: Any) -> None:
    release = sf.protect(PRIOR, T, region, progress=False, **asked).release(Y)
    release.save(tmp_path / "r.sfumato")
    for each in (release, sf.load(tmp_path / "r.sfumato")):
        inputs = judged_inputs(each.design)
        assert 1 <= len(inputs) <= 220
        assert np.all(each.region.contains(inputs))
        target = target_for(each, Y)
        assert judged(target, "Bayes reader").ratio >= 1 - 1e-9


def test_a_varying_floor_from_a_file_is_judged_where_the_rows_are_promised(tmp_path: Any) -> None:
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows"):
        mechanism = sf.protect(PRIOR, T, REGION, floor=lambda s: 0.5 + 0.1 * s[:, 0], cover="rows", progress=False)
    mechanism.release(Y).save(tmp_path / "r.sfumato")
    target = target_for(sf.load(tmp_path / "r.sfumato"), Y)
    assert judged(target, "Bayes reader").ratio >= 1 - 1e-9
    assert not judged(target, "looks between the rows").covered


def test_the_truth_is_y_itself_where_it_has_no_errors() -> None:
    prior = sf.Prior(matern(0.5), mean=2.0)
    target = target_for(sf.protect(prior, T, REGION, alpha=0.3, progress=False).release(Y), Y, T[15:20, None])
    np.testing.assert_allclose(target.truth, Y[15:20], atol=1e-9)


def test_wrong_use_is_refused_by_name(mechanism: sf.Mechanism, protected: Target) -> None:
    release = protected.release
    with pytest.raises(sf.InputError, match=r"release is 'orbit\.sfumato'"):
        target_for("orbit.sfumato", Y)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="y has 3 values"):
        target_for(release, [1.0, 2.0, 3.0])
    with pytest.raises(sf.InputError, match=r"sensitive has 1 input\(s\) outside the region \(1 ≤ x ≤ 2\)"):
        target_for(release, Y, [0.5, 1.5])
    with pytest.raises(sf.InputError, match=r"draws is 2\.5"):
        averaging(protected, 2.5)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="physics is 3"):
        knows_physics(protected, 3)  # type: ignore[arg-type]
    with pytest.raises(sf.InputError, match="what physics returned has shape"):
        knows_physics(protected, lambda X: np.zeros((2, 2)))
