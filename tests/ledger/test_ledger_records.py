"""A record is a measurement: what all releases tell of it together stays within what was promised."""

from __future__ import annotations

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernels import rbf
from oracles import DIGITS, exact, joint_ratio50, rbf50
from sfumato.ledger import promises_of
from sfumato.promise.composition import Revealed

#: Three rows have equal inputs inside the region.
X = np.sort(np.concatenate([np.linspace(0.0, 3.0, 11), [1.5, 1.5]]))
INSIDE = np.flatnonzero((X >= 1.0) & (X <= 2.0))
REGION, LENGTH, V, ALPHA = sf.Box(1.0, 2.0), 0.4, 0.3, 0.4
PRIOR = sf.Prior(rbf(LENGTH), noise=V)
Y = np.sin(3 * X)
SAME = np.arange(len(X))


@pytest.fixture
def ledger(tmp_path):
    return sf.Ledger(tmp_path / "wages.ledger")


def used50(releases, shows, sensitive, records, protects="both", forget=False):
    """The most that was told of a combination of f(S) and records, as a share of what may be, in 50 digits.

    Written from the formulas: ``shows`` has, for each release, the measurements that its rows show; Cov of two rows is
    K, and V where they show the same measurement (``forget``: only where they are the same row), and Σ of a release.
    Next to nothing is added where two releases show the same without noise.
    """
    rows, numbers = np.concatenate([one.inputs[:, 0] for one in releases]), np.concatenate(shows)
    owners = np.repeat(np.arange(len(releases)), [len(one) for one in shows])
    first = [int(np.flatnonzero(numbers == record)[0]) for record in records]
    places, count = np.concatenate([np.reshape(sensitive, -1), rows[first]]), np.size(sensitive)
    with mpmath.workdps(DIGITS):
        v, alpha = mpmath.mpf(V), mpmath.mpf(ALPHA)
        M, cross = rbf50(rows, rows, LENGTH, 1.0), rbf50(places, rows, LENGTH, 1.0)
        noises = []
        for one in releases:
            factor = exact(one.noise.factor)
            noises.append(factor * factor.T + mpmath.mpf(one.noise.shift) * mpmath.eye(len(one.inputs)))
        starts = np.cumsum([0, *(len(one) for one in shows)])
        for i in range(len(rows)):
            M[i, i] += mpmath.mpf(10) ** -30
            for j in range(len(rows)):
                if numbers[i] == numbers[j] and (i == j or not forget):
                    M[i, j] += v
                if owners[i] == owners[j]:
                    start = int(starts[owners[i]])
                    M[i, j] += noises[owners[i]][i - start, j - start]
            for place, record in enumerate(records):
                if numbers[i] == record:
                    cross[count + place, i] += v
        delta = rbf50(places, places, LENGTH, 1.0) * (alpha if protects == "both" else 1)
        for place in range(len(records)):
            delta[count + place, count + place] += alpha * v
        return joint_ratio50(M, cross, delta)


@pytest.mark.parametrize("protects", ["both", "records"])
def test_releases_of_the_same_rows_keep_function_and_records_in_50_digits(ledger, protects):
    releases = []
    for share, left in ((0.5, 0.5), (1.0, 0.0)):
        mechanism = ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=share, protects=protects, progress=False)
        releases.append(mechanism.release(Y))
        used = used50(releases, [SAME] * len(releases), mechanism.sensitive, INSIDE, protects)
        assert used <= 1 + 1e-9
        assert used == pytest.approx(1 - left, abs=2e-3)
        certificate = ledger.certificate(REGION)
        assert certificate.holds
        assert certificate.joint_ratio == pytest.approx(used, abs=1e-7)
        assert (certificate.protects, certificate.records) == (protects, len(INSIDE))
        assert ledger.remaining(REGION).left == pytest.approx(1 - used, abs=1e-6)
    assert "records" in str(ledger.remaining(REGION))
    # counting errors as independent in both releases, of one record or of two, gives something else
    for shows, forget in (([SAME, SAME], True), ([SAME, SAME + len(X)], False)):
        assert abs(used50(releases, shows, mechanism.sensitive, INSIDE, protects, forget) - used) > 0.03
    with pytest.raises(sf.BudgetError):
        ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=1.0, protects=protects, progress=False)


@pytest.mark.filterwarnings("ignore::sfumato.errors.FindingWarning")
def test_a_later_release_of_the_same_measurements_is_made_safe_whatever_it_promises_itself(ledger):
    first = ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=0.5, protects="records", progress=False).release(Y)
    far = sf.Box(2.6, 2.9)
    function = {"alpha": 0.9, "protects": "function", "accept": ["raw-records"], "progress": False}
    second = ledger.protect(PRIOR, X, far, share=1.0, **function).release(Y)
    assert used50([first, second], [SAME, SAME], [], INSIDE, "records") <= 1 + 1e-9
    # by itself it would have had none on the private records
    alone = sf.protect(PRIOR, X, far, **function)
    assert used50([first, alone], [SAME, SAME], [], INSIDE, "records") > 1.2
    leaked = ledger.promises(REGION)[0].kept_by((ledger.releases[0], Revealed(alone.design))).certificate()
    assert not leaked.holds
    assert leaked.record_ratio < 1
    # recorded after the fact, it is said loudly
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ledger.record(alone.release(Y))
    assert any("a promise is broken" in str(one.message) for one in said)


def test_new_rows_tell_of_old_records_through_the_function_and_have_records_of_their_own(ledger):
    first = ledger.protect(PRIOR, X[::2], REGION, alpha=ALPHA, share=0.5, progress=False).release(Y[::2])
    mechanism = ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=1.0, progress=False)
    second = mechanism.release(Y)
    # of the three equal inputs, rows 5, 6 and 7, the first release shows one: it is taken for the first of the three
    shows = np.array([0, 2, 4, 5, 8, 10, 12])
    assert np.array_equal(X[shows], X[::2])
    used = used50([first, second], [shows, SAME], mechanism.sensitive, INSIDE)
    assert used <= 1 + 1e-9
    assert ledger.certificate(REGION).joint_ratio == pytest.approx(used, abs=1e-7)
    assert ledger.certificate(REGION).records == len(INSIDE)


def test_rows_that_are_measured_anew_are_new_records_whether_or_not_that_is_true(ledger):
    first = ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=0.5, progress=False).release(Y)
    mechanism = ledger.protect(PRIOR, X, REGION, alpha=ALPHA, share=1.0, remeasured=True, progress=False)
    releases, sensitive = [first, mechanism.release(Y + 0.1)], mechanism.sensitive
    anew = SAME + len(X)
    said = used50(releases, [SAME, anew], sensitive, np.concatenate([INSIDE, INSIDE + len(X)]))
    wrongly = used50(releases, [SAME, SAME], sensitive, INSIDE)
    assert max(said, wrongly) <= 1 + 1e-9
    assert ledger.certificate(REGION).joint_ratio == pytest.approx(max(said, wrongly), abs=1e-7)


def test_single_values_and_floors_are_composed(ledger):
    for share in (0.5, 0.9):
        mechanism = ledger.protect(
            PRIOR, X, REGION, floor=0.9, guarantee="pointwise", protects="records", share=share, progress=False
        )
        mechanism.release(Y)
        assert mechanism.certificate.holds
    assert 1.0 <= ledger.certificate(REGION).record_ratio < 1.2
    assert 0.0 < ledger.remaining(REGION).left < 0.1


def test_outputs_keep_their_records_together(ledger):
    prior = sf.JointPrior.of(PRIOR, {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 2.0})
    regions, y = {"r": REGION, "v": sf.Box(0.5, 1.5)}, {"r": Y, "v": 3 * np.cos(3 * X)}
    for share in (0.5, 0.9):
        mechanism = ledger.protect(prior, X, regions, alpha={"r": 0.3, "v": 0.6}, share=share, progress=False)
        mechanism.release(y)
    certificate = ledger.certificate(regions)
    assert certificate.holds
    assert certificate.records == len(INSIDE) + np.sum((X >= 0.5) & (X <= 1.5))
    # both releases as one, whose noise is their parallel sum: the same to readers
    one, two = (one.design.noise.covariance() for one in ledger.releases)
    together = one @ np.linalg.solve(one + two + 1e-12 * np.eye(len(one)), two)
    from sfumato.noise import CorrelatedNoise

    values, vectors = np.linalg.eigh((together + together.T) / 2)
    noise = CorrelatedNoise(vectors * np.sqrt(np.maximum(values, 0.0)))
    from sfumato.proof import certify

    same = certify(replace(mechanism.design, noise=noise, witness=None))
    assert certificate.joint_ratio == pytest.approx(same.joint_ratio, abs=1e-4)
    assert certificate.record_ratio == pytest.approx(same.record_ratio, abs=1e-4)


def test_insiders_are_not_composed_and_that_is_said(ledger):
    with pytest.raises(sf.InputError, match="insiders is given"):
        ledger.protect(PRIOR, X, REGION, alpha=ALPHA, insiders="rows", progress=False)
    from sfumato.promise import Insiders

    mechanism = sf.protect(PRIOR, X, REGION, alpha=0.2, progress=False)
    held = replace(mechanism.design, insiders=Insiders(len(X)))
    promise = promises_of(Revealed(held), 0)[0]
    other = sf.protect(PRIOR, X + 9.0, sf.Box(10.0, 11.0), alpha=0.2, progress=False)
    for releases, said in (([held], False), ([held, other.design], True)):
        found = promise.kept_by([Revealed(one) for one in releases]).certificate()
        assert found.holds
        assert ("insiders-not-composed" in [one.code for one in found.findings]) is said
