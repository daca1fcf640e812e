"""The best predictions at any number of rows: what is suppressed, what is promised, and what is published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from sfumato.proof import certify, changes_of, knowledge_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning"),
]

RNG = np.random.default_rng(3)
X = np.sort(RNG.random(250))[:, None]
REGION = sf.Box(0.4, 0.6)
PRIOR = sf.Prior(matern(0.12, 1.0, 2.5), noise=0.02, mean=5.0)
Y = 5.0 + np.sin(9 * X[:, 0]) + np.sqrt(0.02) * RNG.standard_normal(len(X))
ASKED = {
    "function": {"protects": "function"},
    "both": {"protects": "both"},
    "pointwise": {"protects": "function", "guarantee": "pointwise"},
}


def protected(prior=PRIOR, rows=X, region=REGION, **options):
    asked = {"alpha": 0.2, "objective": "predictions", "method": "compressed", "progress": False}
    return sf.protect(prior, rows, region, **(asked | options))


@pytest.fixture(scope="module")
def mechanisms():
    """One for each of what may be asked."""
    return {name: protected(**options) for name, options in ASKED.items()}


def dense(design):
    """A, and the inverse of the covariance of published values, where suppressed combinations say nothing at all."""
    rows = design.inputs
    A = design.prior.covariance(rows) + np.diag(design.prior.noise_variance(len(rows)))
    noise = design.noise
    published = A + noise.factor @ noise.factor.T
    if noise.records is not None:
        published += np.diag(noise.independent_at(rows.values, design.prior.noise_variance(len(rows))))
    inverse, suppressed = np.linalg.inv(published), np.linalg.qr(noise.suppressed)[0]
    through = inverse @ suppressed
    return A, inverse - through @ np.linalg.solve(suppressed.T @ through, through.T)


def explained(design):
    """The share that readers explain at the served inputs, by dense formulas."""
    cross = design.prior.covariance(design.inputs.values, design.serves.places)
    counts = design.serves.coefficients(design.prior, design.inputs.outputs)
    return float(counts @ np.einsum("ij,ij->j", cross, dense(design)[1] @ cross))


@pytest.mark.parametrize("name", ASKED)
def test_the_promise_is_proved_and_dense_formulas_agree(mechanisms, name):
    mechanism = mechanisms[name]
    design, certificate = mechanism.design, mechanism.certificate
    assert certificate.holds
    assert certificate.evidence == "proved"
    assert design.noise.suppressing.shape[1] > 0
    places = np.linspace(0.4, 0.6, 41)[:, None]
    prior, (_, through) = design.prior, dense(design)
    cross = prior.covariance(X, places)
    left = prior.variance(places) - np.einsum("ij,ij->j", cross, through @ cross)
    assert np.all(left >= 0.8 * prior.variance(places) * (1 - 1e-9))
    (known,) = knowledge_of(design)
    bound = known.deviations(places) ** 2
    assert np.all(bound <= left * (1 + 1e-9))
    if name != "both":  # there readers are given more than they see
        np.testing.assert_allclose(bound, left, rtol=2e-4)


@pytest.mark.parametrize("name", ASKED)
def test_what_readers_explain_lies_between_the_bounds(mechanisms, name):
    mechanism = mechanisms[name]
    certificate, share = mechanism.certificate, explained(mechanism.design)
    assert certificate.objective == "predictions"
    assert certificate.explained <= share * (1 + 1e-6)
    assert certificate.explained >= share * (1 - 1e-3)
    assert certificate.explained_upper >= share
    assert certificate.gap == pytest.approx(1 - certificate.explained / certificate.explained_upper)
    assert certificate.gap < {"function": 5e-3, "both": 0.2, "pointwise": 5e-3}[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["function", "pointwise"])
def test_no_exact_design_explains_more_than_the_bound(mechanisms, name):
    exact = protected(method="auto", **ASKED[name])
    assert exact.certificate.explained <= mechanisms[name].certificate.explained_upper * (1 + 1e-9)
    least = protected(objective="noise", **ASKED[name])
    cross = PRIOR.covariance(X, mechanisms[name].design.serves.places)
    seen = np.linalg.solve(PRIOR.covariance(X) + 0.02 * np.eye(len(X)) + least.noise.covariance(), cross)
    served = mechanisms[name].design.serves.coefficients(PRIOR, least.design.inputs.outputs)
    assert float(served @ np.einsum("ij,ij->j", cross, seen)) < mechanisms[name].certificate.explained


@pytest.mark.parametrize("name", ASKED)
def test_suppressed_functions_say_nothing(mechanisms, name):
    mechanism = mechanisms[name]
    suppressed = np.linalg.qr(mechanism.noise.suppressed)[0]
    more = suppressed @ np.random.default_rng(1).standard_normal(suppressed.shape[1])
    first, second = (mechanism.release(y, unsafe_seed=4).outputs for y in (Y, Y + 3.0 * more))
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert np.max(np.abs(3.0 * more)) > 0.05
    # and the column is in a sensible range: what stands there is what the rest predicts
    assert np.all(np.abs(first - 5.0) < 6.0)


@pytest.mark.parametrize("name", ["function", "both"])
def test_what_stands_in_place_is_what_the_rest_predicts(mechanisms, name):
    mechanism = mechanisms[name]
    design, outputs = mechanism.design, np.asarray(mechanism.release(Y, unsafe_seed=4).outputs)
    A, through = dense(design)
    noise = design.noise
    published = A + noise.factor @ noise.factor.T
    if noise.records is not None:
        published += np.diag(noise.independent_at(X, np.full(len(X), 0.02)))
    expected = 5.0 + published @ through @ (outputs - 5.0)
    basis = np.linalg.qr(noise.suppressed)[0]
    np.testing.assert_allclose(basis.T @ outputs, basis.T @ expected, atol=2e-3)


@pytest.mark.parametrize("name", ASKED)
def test_predictions_are_those_of_dense_formulas(mechanisms, name):
    release = mechanisms[name].release(Y, unsafe_seed=2)
    new = np.linspace(-0.1, 1.1, 50)[:, None]
    prediction, (_, through) = release.predict(new), dense(release.design)
    cross = PRIOR.covariance(X, new)
    std = np.sqrt(PRIOR.variance(new) - np.einsum("ij,ij->j", cross, through @ cross))
    assert np.all(prediction.std_lower <= std * (1 + 1e-6))
    assert np.all(std <= prediction.std * (1 + 1e-6))
    np.testing.assert_allclose(prediction.std, std, rtol=0.05)
    room = np.sqrt(np.maximum(prediction.std**2 - prediction.std_lower**2, 0.0))
    mean = 5.0 + cross.T @ through @ (np.asarray(release.outputs) - 5.0)
    assert np.all(np.abs(prediction.mean - mean) <= 5.0 * room + 1e-4 * std)


def test_what_readers_learn_of_a_record_is_never_more_than_the_certificate_says(mechanisms):
    mechanism = mechanisms["function"]
    inside = np.flatnonzero((X[:, 0] >= 0.4) & (X[:, 0] <= 0.6))
    A, through = dense(mechanism.design)
    left = np.diag(A - A @ through @ A)[inside]
    (reader,) = knowledge_of(mechanism.design)
    changed, bound = reader.noise_told(X[inside])
    assert np.all(bound <= left * (1 + 1e-6))
    np.testing.assert_allclose(bound, left, rtol=1e-2)
    # what a release changes: W − y = (M P − 1) y + M P Z
    noise = mechanism.noise.factor @ mechanism.noise.factor.T
    kept = (A + noise) @ through
    change = (kept - np.eye(len(X))) @ A @ (kept - np.eye(len(X))).T + kept @ noise @ kept.T
    np.testing.assert_allclose(changed, np.diag(change)[inside], rtol=1e-2)
    np.testing.assert_allclose(changes_of(mechanism.design), np.diag(change), rtol=1e-2, atol=1e-6)
    assert mechanism.certificate.raw_records == 0
    outside = np.setdiff1d(np.arange(len(X)), inside)
    spill = np.diag(change)[outside].sum() / np.trace(change)
    assert mechanism.certificate.spill == pytest.approx(spill, rel=0.02)


def test_files_hold_what_is_suppressed(mechanisms, tmp_path):
    release = mechanisms["function"].release(Y)
    release.save(tmp_path / "r.sfumato")
    read = sf.load(tmp_path / "r.sfumato")
    np.testing.assert_array_equal(read.noise.suppressing, release.noise.suppressing)
    found = read.certify(progress=False)
    assert found.holds
    assert found.explained == pytest.approx(release.certificate.explained, rel=1e-6)
    assert found.explained_upper == pytest.approx(release.certificate.explained_upper, rel=1e-6)
    assert not [one for one in found.findings if one.severity == "high"]


def with_functions(release, functions):
    return replace(release, design=replace(release.design, noise=replace(release.noise, suppressing=functions)))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("twice", [False, True])
def test_suppressed_functions_of_any_size_promise_the_same(mechanisms, scale, twice):
    release = mechanisms["function"].release(Y, unsafe_seed=3)
    functions = release.noise.suppressing
    functions = scale * np.hstack([functions, functions[:, :2] @ np.ones((2, 2))] if twice else [functions])
    found = with_functions(release, functions).certify(progress=False)
    assert found.explained == pytest.approx(release.certificate.explained, rel=1e-6)
    assert found.floor_ratio == pytest.approx(release.certificate.floor_ratio, rel=1e-6)


def test_what_is_suppressed_is_taken_out_of_values_whatever_its_size(mechanisms):
    mechanism = mechanisms["function"]
    functions = mechanism.noise.suppressing.copy()
    functions[:, 0] *= 1e-9
    small = replace(mechanism, design=with_functions(mechanism, functions).design)
    assert small.certificate.holds
    shown = mechanism.noise.suppressed[:, 0] / np.max(np.abs(mechanism.noise.suppressed[:, 0]))
    first, second = (small.release(one, unsafe_seed=4).outputs for one in (Y, Y + shown))
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.parametrize("wrong", [0.0, 1e-200, 1e80, "many"])
def test_files_with_unusual_suppressed_functions_are_refused(mechanisms, tmp_path, wrong):
    release = mechanisms["function"].release(Y, unsafe_seed=3)
    functions = release.noise.suppressing
    functions = np.tile(functions, 100) if wrong == "many" else wrong * functions
    with pytest.raises(sf.InputError, match="suppressed functions are too many"):
        with_functions(release, functions).save(tmp_path / "r.sfumato")


@pytest.mark.parametrize("name", ASKED)
def test_values_that_show_what_is_suppressed_are_found_out(mechanisms, name):
    release = mechanisms[name].release(Y, unsafe_seed=3)
    codes = {one.code for one in release.certify(progress=False).findings}
    assert "shows-what-is-suppressed" not in codes
    suppressed = np.linalg.qr(release.noise.suppressed)[0]
    more = 1e-2 * suppressed @ np.ones(suppressed.shape[1])
    edited = replace(release, outputs=release.resolution * np.round((release.outputs + more) / release.resolution))
    (found,) = (one for one in edited.certify(progress=False).findings if one.code == "shows-what-is-suppressed")
    assert found.severity == "high"


def test_a_witness_is_not_trusted(mechanisms):
    design = mechanisms["function"].design
    other = (np.ones((len(design.sensitive) + 2, 2)),)
    scaled = [tuple(scale * part for part in design.witness) for scale in (0.3, 5.0)]
    for witness in (None, other, *scaled):
        found = certify(replace(design, witness=witness))
        assert found.explained_upper >= mechanisms["function"].certificate.explained
        assert found.holds


@pytest.mark.slow
def test_noise_of_each_row_and_two_inputs():
    rows = np.random.default_rng(8).random((500, 2))
    noise = np.random.default_rng(9).uniform(0.02, 0.2, 500)
    mechanism = protected(sf.Prior(rbf([0.5, 0.6]), noise=noise), rows, sf.Box([0.4, 0.4], [0.6, 0.6]), alpha=0.3)
    assert mechanism.certificate.holds
    assert mechanism.certificate.explained <= explained(mechanism.design) * (1 + 1e-6)
    y = np.sin(4 * rows[:, 0]) + rows[:, 1]
    suppressed = np.linalg.qr(mechanism.noise.suppressed)[0]
    first, second = (mechanism.release(one, unsafe_seed=4).outputs for one in (y, y + 2.0 * suppressed[:, 0]))
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.slow
def test_exact_and_compressed_designs_agree():
    rows = np.sort(np.random.default_rng(5).random(3000))[:, None]
    options = {"protects": "function", "alpha": 0.3}
    found = [protected(rows=rows, method=method, **options).certificate for method in ("auto", "compressed")]
    assert all(one.holds and one.evidence == "proved" for one in found)
    assert found[0].explained == pytest.approx(found[1].explained, abs=1e-3)


@pytest.mark.parametrize(("noise", "serve"), [(1.0, [0.2, 0.22]), (0.02, [0.2, 0.22])])
def test_beside_the_noise_of_records_readers_are_told_no_less_than_by_the_least_noise(noise, serve):
    """Records that carry noise by themselves tell less of what lies next to them than the program counts on."""
    prior, rows = sf.Prior(matern(0.17, 1.0, 1.5), noise=noise), np.linspace(0.0, 1.0, 60)[:, None]
    asked = {"region": sf.Box(-0.04, 0.196), "alpha": 0.3, "protects": "both"}
    best = protected(prior, rows, serve=serve, **asked)
    least = protected(prior, rows, objective="noise", **asked)
    assert best.certificate.holds
    assert explained(best.design) >= explained(replace(least.design, serves=best.design.serves)) * (1 - 1e-4)


def test_how_much_rows_change_is_said_where_functions_are_suppressed():
    levels = sf.Levels(PRIOR, np.linspace(0.0, 1.0, 4500), REGION, objective="predictions", protects="function")
    seen = levels.at(alpha=0.2)
    design = levels.protect(alpha=0.2).design
    assert design.noise.compressed
    assert design.noise.suppressed_count > 0
    assert seen.noise == pytest.approx(np.sqrt(np.mean(changes_of(design))), rel=1e-2)
    assert 0.0 < seen.spill < 1.0
