"""Compressed rows promise records too: exact readers of all rows confirm it, and edited releases are found."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from kernels import matern, rbf
from sfumato.noise.noise import RecordNoise
from sfumato.proof.examination import certify

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

LINE = np.sort(np.random.default_rng(3).random(240))[:, None]
BOX = sf.Box(0.35, 0.5)
#: Why a problem may be refused; any other refusal is a bug.
REFUSALS = re.compile("no row of the data|leave out|too close together|wholly outside the data|floor is more than")


def compress(prior, X, region, **options):
    return sf.protect(prior, X, region, method="compressed", progress=False, **options)


def in_box(X):
    return (X[:, 0] >= 0.35) & (X[:, 0] <= 0.5)


def told(design, prior):
    """Cov((f(S), y_R)) and what readers with ``prior`` learn of it, by dense formulas, with V and K of the records."""
    X, S = design.inputs.values, design.sensitive
    inside = np.flatnonzero(design.region.contains(X))
    V = prior.noise_variance(len(X))
    A = prior.covariance(X) + np.diag(V)
    cross = np.hstack([prior.covariance(X, S) if len(S) else np.zeros((len(X), 0)), A[:, inside]])
    places = np.vstack([S, X[inside]])
    before = prior.covariance(places) + np.diag(np.concatenate([np.zeros(len(S)), V[inside]]))
    learnt = cross.T @ np.linalg.solve(A + design.noise.covariance(), cross)
    return before, learnt, V[inside]


def confirm(mechanism):
    """The promise about f and records by readers of all rows, and the certificate's numbers."""
    design, certificate = mechanism.design, mechanism.certificate
    assert certificate.holds
    for prior in design.priors:
        before, learnt, V = told(design, prior)
        count = len(design.sensitive)
        places = np.vstack([design.sensitive, design.inputs.values[design.region.contains(design.inputs.values)]])
        function = before - np.diag(np.concatenate([np.zeros(count), V]))
        tolerance = design.tolerance
        if design.protects == "records":
            of_own = tolerance.part.alpha if hasattr(tolerance.part, "alpha") else 1 - tolerance.part.value**2 / V
            allowed = function + np.diag(of_own * V)
        elif hasattr(tolerance, "alpha"):
            allowed = tolerance.alpha * before
        else:
            variance = prior.variance(places)
            of_own = 1 - tolerance.value**2 / (variance[count:] + V)
            of_records = np.append(np.zeros(count), of_own * V)
            allowed = (1 - tolerance.value**2 / variance[0]) * function + np.diag(of_records)
        if design.guarantee == "joint":
            spare = scipy.linalg.eigvalsh(allowed - learnt)[0]
            assert spare >= -1e-9 * np.max(before)
        assert np.all(np.diag(learnt) <= np.diag(allowed) * (1 + 1e-9))
        of_records = np.diag(learnt)[count:] / np.diag(before)[count:]
        assert certificate.record_learnt >= np.max(of_records, initial=0.0) - 1e-9
        left = np.sqrt(np.diag(before - learnt)[count:])
        asked = np.sqrt(np.diag(before - allowed)[count:])
        if hasattr(tolerance, "value"):
            asked = np.full(len(asked), tolerance.value)
        assert certificate.record_ratio <= np.min(left / asked, initial=np.inf) + 1e-9
    noise = design.noise
    assert certificate.trace == pytest.approx(noise.variance().sum(), rel=1e-9)
    assert noise.trace == pytest.approx(np.trace(noise.covariance()), rel=1e-9)
    blurred = np.sqrt(noise.variance()[design.region.contains(design.inputs.values)])
    assert certificate.records == len(blurred)
    if len(blurred):
        assert certificate.record_noise == pytest.approx(blurred.min(), rel=1e-9)
        assert 0 <= certificate.trace_lower <= certificate.trace
        assert 0 <= certificate.gap <= 1


@st.composite
def problems(draw):
    """Priors, rows, regions and tolerances of every kind; equal inputs; V one a row."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    d, n = draw(st.integers(1, 2)), draw(st.sampled_from([20, 60, 200]))
    X = rng.random((n, d))
    if draw(st.booleans()):
        X = np.round(8 * X) / 8
    variance = draw(st.sampled_from([1e-4, 1.0, 30.0]))
    lengthscale = rng.uniform(0.4, 1.0, d) * d
    kernel = draw(st.sampled_from([rbf, matern]))(lengthscale, variance)
    noise = variance * 10.0 ** draw(st.sampled_from([-3, -2, -1, 0, 1]))
    V = noise * 10 ** rng.uniform(-0.5, 0.5, n) if draw(st.booleans()) else noise
    prior = sf.Prior(kernel=kernel, noise=V)
    centre = rng.uniform(0.3, 0.7, d)
    points = draw(st.booleans())
    region = sf.Points(np.vstack([X[0], centre])) if points else sf.Box(centre - 0.15, centre + 0.15)
    alpha = draw(st.sampled_from([0.05, 0.3, 0.6, 0.9]))
    options = {"protects": draw(st.sampled_from(["both", "both", "records"]))}
    of = variance if options["protects"] == "both" else float(np.min(V))
    options |= {"alpha": alpha} if draw(st.booleans()) else {"floor": float(np.sqrt(0.9 * (1 - alpha) * of))}
    options |= draw(st.sampled_from([{}, {"guarantee": "pointwise"}, {"cover": "rows"}]))
    if draw(st.integers(0, 4)) == 0:
        options["weights"] = rng.uniform(0.2, 5.0, n)
    if draw(st.integers(0, 4)) == 0:
        options["priors"] = [sf.Prior(kernel=matern(1.5 * lengthscale, variance, 2.5), noise=0.7 * noise)]
    return prior, X, region, options


def try_to_break(prior, X, region, options):
    try:
        mechanism = compress(prior, X, region, accuracy=1e-4, **options)
    except (sf.InputError, sf.GuaranteeError) as refusal:
        if not REFUSALS.search(str(refusal)):
            raise
        return
    confirm(mechanism)


@settings(max_examples=4)
@given(problems())
def test_either_a_clear_refusal_or_a_promise_that_exact_readers_confirm(problem):
    try_to_break(*problem)


@pytest.mark.slow
@settings(max_examples=100)
@given(problems())
def test_many_more_are_either_refused_or_confirmed(problem):
    try_to_break(*problem)


# what it costs, and what goes out ------------------------------------------------------------------------------------

PRIOR = sf.Prior(kernel=rbf(0.25, 1.4), noise=0.1)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_it_costs_little_more_than_the_exact_design(alpha):
    exact = sf.protect(PRIOR, LINE, BOX, alpha, progress=False)
    mechanism = compress(PRIOR, LINE, BOX, alpha=alpha)
    assert mechanism.certificate.trace_lower <= exact.certificate.trace <= mechanism.certificate.trace
    assert mechanism.certificate.trace < 1.15 * exact.certificate.trace
    # what compression costs at most, and at least
    assert mechanism.certificate.compression >= 1 - exact.certificate.trace / mechanism.certificate.trace


def test_records_alone_are_blurred_by_themselves_and_nothing_else_is():
    mechanism = compress(PRIOR, LINE, BOX, alpha=0.2, protects="records")
    inside = in_box(LINE)
    np.testing.assert_allclose(mechanism.noise.variance(), np.where(inside, 4 * 0.1, 0.0), rtol=1e-12)
    certificate = mechanism.certificate
    assert certificate.holds
    assert certificate.evidence == "proved"
    assert certificate.record_ratio == pytest.approx(1.0, abs=1e-12)
    assert certificate.record_sensitivity == pytest.approx(1 / np.sqrt(0.4))
    assert certificate.dp(range=1.0).epsilon < np.inf
    assert certificate.spill == 0
    exact = sf.protect(PRIOR, LINE, BOX, 0.2, protects="records", progress=False).certificate
    assert certificate.trace_lower <= exact.trace


def test_function_designs_say_what_goes_out_of_records():
    for floor in (0.05, 0.7):
        mechanism = compress(PRIOR, LINE, BOX, floor=floor, protects="function")
        found, (before, learnt, V) = mechanism.certificate, told(mechanism.design, PRIOR)
        most = np.max((np.diag(learnt) / np.diag(before))[-len(V) :])
        assert most - 1e-9 <= found.record_learnt <= most + 1e-3
        exact = sf.protect(PRIOR, LINE, BOX, floor=floor, protects="function", progress=False).certificate
        assert found.records == exact.records
        assert found.raw_records == exact.raw_records
        assert found.record_noise == pytest.approx(exact.record_noise, rel=1e-3)
        assert {one.code for one in found.findings} >= {one.code for one in exact.findings if "record" in one.code}


def test_a_region_without_rows_has_no_records():
    mechanism = compress(PRIOR, LINE[np.abs(LINE[:, 0] - 0.42) > 0.1], BOX, alpha=0.3)
    assert mechanism.certificate.holds
    assert mechanism.certificate.records == 0
    function = compress(PRIOR, LINE[np.abs(LINE[:, 0] - 0.42) > 0.1], BOX, alpha=0.3, protects="function")
    assert mechanism.noise.trace == pytest.approx(function.noise.trace, rel=1e-3)
    with pytest.raises(sf.InputError, match="no row of the data"):
        compress(PRIOR, LINE[np.abs(LINE[:, 0] - 0.42) > 0.1], BOX, alpha=0.3, protects="records")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"floor": lambda s: 0.3 + 0.1 * s[:, 0]}, "one floor for all inputs"),
        ({"tolerance": sf.KernelTolerance(rbf(0.25, 0.5))}, "one floor for all inputs"),
        ({"floor": 0.5, "protects": "records"}, "floor is more than what is each record's own"),
    ],
)
def test_what_cannot_be_promised_of_records_is_refused_with_a_remedy(options, words):
    with pytest.raises(sf.InputError, match=words):
        compress(PRIOR, LINE, BOX, **options)


# files ---------------------------------------------------------------------------------------------------------------


def lessened(design, multiple):
    records = None if multiple == 0 else RecordNoise(design.region, multiple * design.noise.records.multiple)
    return dataclasses.replace(design, noise=dataclasses.replace(design.noise, records=records, known_trace=None))


@pytest.mark.parametrize(
    "options",
    [
        {"protects": "both"},
        {"protects": "records"},
        {"protects": "both", "guarantee": "pointwise"},
        {"protects": "both", "cover": "rows"},
    ],
)
def test_a_file_keeps_the_promise_and_one_with_less_noise_on_records_does_not(options, tmp_path):
    mechanism = compress(PRIOR, LINE, BOX, alpha=0.3, **options)
    release = mechanism.release(np.sin(6 * LINE[:, 0]))
    release.save(tmp_path / "a.sfumato")
    loaded = sf.load(tmp_path / "a.sfumato")
    again = loaded.certify(progress=False)
    assert again.holds
    for name in ("records", "record_noise", "record_ratio", "record_learnt", "record_sensitivity", "trace", "spill"):
        assert getattr(again, name) == pytest.approx(getattr(mechanism.certificate, name), rel=1e-9), name
    # pointwise there is nothing to spare, jointly a fifth less leaves nothing for averages
    for multiple in (0.0, 0.5, 0.79):
        assert not certify(lessened(loaded.design, multiple)).holds
    if not mechanism.design.protects_function:
        return
    fewer = dataclasses.replace(mechanism.design.noise, mixing=0.9 * mechanism.noise.mixing, known_trace=None)
    assert not certify(dataclasses.replace(loaded.design, noise=fewer)).holds


@pytest.mark.parametrize("noise", ["one", "each"])
@pytest.mark.parametrize("protects", ["both", "records"])
def test_the_exact_error_bar_lies_between_the_two(noise, protects):
    V = 0.1 if noise == "one" else np.random.default_rng(0).uniform(0.03, 0.3, len(LINE))
    prior = sf.Prior(kernel=rbf(0.25, 1.4), noise=V)
    release = compress(prior, LINE, BOX, alpha=0.2, protects=protects).release(np.sin(6 * LINE[:, 0]))
    new = np.linspace(-0.1, 1.1, 60)[:, None]
    found = release.predict(new)
    blur = release.noise.covariance() + np.diag(prior.noise_variance(len(LINE)) + release.resolution**2 / 12)
    exact = prior.condition(LINE, release.outputs, blur)
    deviation = np.sqrt(exact.variance(new))
    assert np.all(found.std_lower <= deviation * (1 + 1e-9))
    assert np.all(deviation <= found.std * (1 + 1e-9))
    assert np.all(found.std <= found.std_lower * 1.1)
    np.testing.assert_allclose(found.mean, exact.mean_at(new), atol=0.1 * np.min(deviation))


def test_a_folder_is_certified_with_its_records(tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(4)
    X = np.repeat(rng.random((120, 1)), 3, axis=0)
    table = pd.DataFrame({"x": X[:, 0], "y": np.sin(6 * X[:, 0]) + 0.3 * rng.standard_normal(360)})
    for number in range(3):
        table[number::3].to_parquet(tmp_path / f"{number}.parquet")
    rows = sf.rows_of_parquet([tmp_path / f"{number}.parquet" for number in range(3)], ["x"], "y")
    mechanism = sf.protect(PRIOR, rows, BOX, 0.2, method="compressed", progress=False)
    release = mechanism.release_to(tmp_path / "out", "y", progress=False)
    certificate = release.certify(progress=False)
    assert certificate.holds
    assert certificate.records == int(np.sum(in_box(X)))
    # equal inputs: differences are blurred as well, and each by itself
    drawn = np.asarray(release.outputs) - np.concatenate([table["y"][number::3] for number in range(3)])
    inside = in_box(X[::3])
    apart = (drawn[:120] - drawn[120:240])[inside]
    assert np.std(apart) == pytest.approx(np.sqrt(2 * 1.25 / 0.2 * 0.1), rel=0.5)
    assert np.max(np.abs((drawn[:120] - drawn[120:240])[~inside])) <= 2 * release.resolution


def test_a_floor_for_f_and_records_needs_no_row_inside():
    """A part of a larger table may have none either."""
    X = LINE[~in_box(LINE)]
    certificate = compress(sf.Prior(rbf(0.2), noise=0.05), X, BOX, floor=0.5, protects="both").certificate
    assert certificate.holds
    assert certificate.records == 0
