"""A rehearsal flags priors that a textbook beats, and passes those that the data come from."""

from __future__ import annotations

import json
import warnings
from functools import cache

import gpytorch
import numpy as np
import pytest

import sfumato as sf
from sfumato import plots
from sfumato.data.orbit import simulate
from sfumato.evaluate.claims import Claims, HiddenRows, unexpected_period

PROMISE = 0.3


def co2_like():
    """A trend that bends, a season with a harmonic, and weather that stays for some months."""
    rng = np.random.default_rng(1)
    t = np.arange(12 * 9) / 12 + 1974
    weather = np.convolve(rng.standard_normal(len(t) + 6), np.ones(6) / 6, "same")[: len(t)]
    u = t - 1974
    return t, 330 + 1.4 * u + 0.012 * u**2 + 2.8 * np.sin(2 * np.pi * t) + 0.8 * np.cos(4 * np.pi * t) + 0.3 * weather


def sunspots_like():
    """Cycles of about eleven years whose height and phase drift."""
    rng = np.random.default_rng(2)
    t = np.arange(1700.0, 1840.0)
    drift = np.cumsum(rng.standard_normal(len(t))) * 0.06
    height = 45 + 15 * np.sin(2 * np.pi * t / 90)
    return t, 50 + height * np.sin(2 * np.pi * t / 11 + drift) + 8 * rng.standard_normal(len(t))


def orbit():
    found = simulate(np.arange(61) / 20)
    return found["t"].to_numpy(), found["r"].to_numpy()


def line():
    t = np.linspace(0, 10, 91)
    return t, 1 + 2 * t + np.random.default_rng(0).standard_normal(len(t))


#: Data, the region, how the prior is fitted, and the worst that must be found at least.
BAD = {
    "co2": (co2_like, sf.Box(1978, 1979), {"kernel": "matern52"}, "prior-beaten"),
    "sunspots": (sunspots_like, sf.Box(1770, 1780), {"kernel": "matern52"}, "prior-doubtful"),
    "orbit": (orbit, sf.Box(1, 2), {"lengthscale": 0.05, "noise": 0.0}, "prior-beaten"),
    "line, rbf": (line, sf.Box(4, 6), {}, "prior-beaten"),
    "line, matern52": (line, sf.Box(4, 6), {"kernel": "matern52"}, "prior-beaten"),
}


@cache
def rehearsed(name):
    make, region, how, _ = BAD[name]
    t, y = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.FitWarning)
        prior = sf.fit_prior(t, y, exclude=region, **how)
    advise = name in ("co2", "line, rbf")
    return sf.rehearse(prior, t, y, region, alpha=PROMISE, advise=advise, progress=False)


#: The notebook of docs/tutorials, which is run by tests/test_docs.py, goes the same way.
SLOW_CO2 = pytest.param("co2", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [SLOW_CO2, *(name for name in BAD if name != "co2")])
def test_a_prior_that_a_textbook_beats_is_flagged(name):
    found = rehearsed(name)
    assert not found.passes
    assert found.findings[0].code in ("prior-beaten", BAD[name][3])
    assert found.verdict == {"high": "do not publish", "medium": "publish with care"}[found.findings[0].severity]


@pytest.mark.parametrize("name", [SLOW_CO2, "line, rbf"])
def test_the_advice_can_be_copied_and_passes(name):
    make, region, _, _ = BAD[name]
    X, y = make()
    found = rehearsed(name)
    assert found.advised.passes
    scope = {"sf": sf, "X": X, "y": y, "region": region}
    copied = found.advice.split("passes:\n")[1].split("\nor ")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.FitWarning)
        exec("\n".join(line[2:] for line in copied.splitlines()), scope)
    again = sf.rehearse(scope["prior"], X, y, region, alpha=PROMISE, progress=False)
    assert again.passes
    assert again.advice == ""
    assert again.floor == pytest.approx(found.advised.floor, rel=0.05)
    assert again.floor < 0.5 * found.floor  # the honest promise is smaller
    if name == "co2":
        assert "periodic(period=1" in found.advised.kernel


def prior_of(kernel, lengthscale, noise):
    kernel.lengthscale = lengthscale
    return sf.Prior(kernel, noise=noise)


#: Priors and inputs: smooth and rough, with and without errors, short and long lengthscales, one and two inputs.
GOOD = {
    "rbf": (prior_of(gpytorch.kernels.RBFKernel(), 0.3, 0.01), 1),
    "rbf, no errors": (prior_of(gpytorch.kernels.RBFKernel(), 0.2, 0.0), 1),
    "matern52, long": (prior_of(gpytorch.kernels.MaternKernel(nu=2.5), 2.0, 0.05), 1),
    "matern52, short": (prior_of(gpytorch.kernels.MaternKernel(nu=2.5), 0.1, 0.3), 1),
    "two inputs": (prior_of(gpytorch.kernels.MaternKernel(nu=2.5), 1.0, 0.01), 2),
}


def false_alarms(name, draws, rows=44):
    prior, columns = GOOD[name]
    alarms = 0
    for number in range(draws):
        rng = np.random.default_rng(number)
        X = np.linspace(0, 3, rows)[:, None] if columns == 1 else rng.uniform(0, 3, size=(rows, 2))
        region = sf.Box(1.3, 1.8) if columns == 1 else sf.Box([1, 1], [2, 2])
        values, vectors = np.linalg.eigh(prior.covariance(X) + float(prior.noise) * np.eye(rows))
        y = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(rows))
        found = sf.rehearse(prior, X, y, region, alpha=PROMISE, progress=False)
        assert len(found.look_alikes) >= 2
        alarms += not found.passes
    return alarms


def test_data_from_the_prior_pass():
    assert sum(false_alarms(name, 1) for name in GOOD) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_less_than_one_in_twenty_draws_is_a_false_alarm(name):
    assert false_alarms(name, 100) <= 4


def test_no_value_inside_the_region_and_no_hidden_value_has_a_part_in_predictions():
    t, y = co2_like()
    t, y = t[:60], y[:60]
    region = sf.Box(1976.5, 1977.2)
    prior = prior_of(gpytorch.kernels.RBFKernel(), 0.5, 0.1)
    inside = (t >= 1976.5) & (t <= 1977.2)
    first = sf.rehearse(prior, t, y, region, advise=False, progress=False)
    other = sf.rehearse(prior, t, np.where(inside, -99.0, y), region, advise=False, progress=False)
    assert first.as_dict() == other.as_dict()
    rows, start = first.stage.rows, 0
    outside = np.flatnonzero(~inside)
    changed = y.copy()
    changed[outside[rows.hidden[1]]] += np.linspace(0, 5, len(rows.hidden[1]))
    again = sf.rehearse(prior, t, changed, region, advise=False, progress=False)
    start = len(rows.hidden[0])
    own = slice(start, start + len(rows.hidden[1]))
    for name, predicted in first.stage.predictions.items():
        if name in again.stage.predictions:
            assert np.array_equal(predicted[own], again.stage.predictions[name][own]), name
    assert np.allclose(first.stage.claims.means[own], again.stage.claims.means[own], rtol=0, atol=1e-6)


def test_claims_are_those_of_the_posterior_and_chances_those_of_draws():
    prior = prior_of(gpytorch.kernels.MaternKernel(nu=2.5), 0.5, 0.2)
    X = np.linspace(0, 3, 40)[:, None]
    rng = np.random.default_rng(0)
    hidden = (np.arange(5, 12), np.arange(25, 31))
    root = np.linalg.cholesky(prior.covariance(X) + 0.2 * np.eye(40))
    chances, levels, waves = [], [], []
    for _ in range(300):
        rows = HiddenRows(X, root @ rng.standard_normal(40), np.full(40, 0.2), hidden)
        claims = Claims.of(prior, rows)
        chances.append(claims.chance(rows.y[rows.every] - claims.means))
        levels.append(claims.level.chance)
        waves.append(unexpected_period(prior, X, rows.y, rows.V).chance)
    for turn, own in enumerate((slice(0, 7), slice(7, 13))):
        seen = rows.seen(turn)
        posterior = prior.condition(X[seen], rows.y[seen])
        assert claims.means[own] == pytest.approx(posterior.mean_at(X[hidden[turn]]))
        assert claims.covariance[own, own] == pytest.approx(
            posterior.covariance(X[hidden[turn]]) + 0.2 * np.eye(own.stop - own.start)
        )
    for found in (chances, levels):
        assert np.mean(np.array(found) <= 0.1) == pytest.approx(0.1, abs=0.05)
        assert np.mean(np.array(found) <= 0.5) == pytest.approx(0.5, abs=0.09)
    assert np.mean(np.array(waves) <= 0.05) <= 0.09  # a bound


def test_a_shape_that_cannot_be_moved_is_said_and_is_no_alarm():
    t = np.linspace(0, 1, 30)
    found = sf.rehearse(prior_of(gpytorch.kernels.RBFKernel(), 0.3, 0.1), t, np.sin(t), sf.Everywhere(), alpha=0.1)
    assert [one.code for one in found.findings] == ["no-look-alike"]
    assert found.passes
    assert found.verdict == "publish"
    assert found.best is None
    assert "cannot be moved" in str(found)
    assert json.loads(json.dumps(found.as_dict()))["claimed"] is None


def test_a_rehearsal_can_be_read_shown_and_drawn():
    found = rehearsed("line, rbf")
    lines = str(found).splitlines()
    code = [line for line in lines if "kernel=" in line]
    assert max(len(line) for line in lines if line not in code) <= 80
    assert found.best.name in str(found)
    assert str(found.as_dict()["results"][0]["floors"]) == str(found.best.floors)
    assert found.best.floors == pytest.approx(found.best.error / found.floor)
    assert "do not publish" in found._repr_html_()
    assert "prior-beaten" in json.dumps(found.as_dict())
    axes = plots.plot_rehearsal(found)
    assert axes.get_legend() is not None
    assert len(axes.lines) >= 2 * len(found.look_alikes)
    prior, region = GOOD["two inputs"][0], sf.Box([1, 1], [2, 2])
    X = np.random.default_rng(0).uniform(0, 3, size=(60, 2))
    flat = sf.rehearse(prior, X, X[:, 0], region, floor=0.5, advise=False, progress=False)
    assert flat.floor == 0.5
    assert "floor" in plots.plot_rehearsal(flat).get_xlabel()


def test_a_family_passes_where_one_of_its_members_does():
    """The promise is made to all of them: also to the one that is right."""
    prior = GOOD["matern52, long"][0]
    X = np.linspace(0, 3, 44)
    short = prior_of(gpytorch.kernels.MaternKernel(nu=2.5), 0.1, 0.05)
    y = np.linalg.cholesky(prior.covariance(X) + 0.05 * np.eye(44)) @ np.random.default_rng(1).standard_normal(44)
    alone = sf.rehearse(short, X, y, sf.Box(1.3, 1.8), alpha=PROMISE, advise=False, progress=False)
    assert alone.findings[0].code == "prior-beaten"
    family = short.family(lengthscale=(1.0, 20.0))
    found = sf.rehearse(family, X, y, sf.Box(1.3, 1.8), alpha=PROMISE, advise=False, progress=False)
    assert found.passes
    assert found.claimed < alone.claimed


def test_wrong_use_is_named():
    t, prior = np.linspace(0, 3, 31), GOOD["rbf"][0]
    for how, said in (
        ({"alpha": 1.5}, "alpha is 1.5"),
        ({"alpha": 0.1, "floor": 1.0}, "give one of them"),
        ({"floor": -1.0}, "floor is -1.0"),
    ):
        with pytest.raises(sf.InputError, match=said):
            sf.rehearse(prior, t, t, sf.Box(1, 2), **how)
    with pytest.raises(sf.InputError, match="y has"):
        sf.rehearse(prior, t, t[:3], sf.Box(1, 2))
