"""Several releases of one secret keep one promise together, exactly (MATH.md 8)."""

from __future__ import annotations

import warnings
from pathlib import Path

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from oracles import DIGITS, exact, explained_variances50, joint_ratio50, rbf50

GRID = np.linspace(0.0, 3.0, 31)
REGION = sf.Box(1.0, 2.0)
DENSE = np.linspace(1.0, 2.0, 201)


@pytest.fixture
def ledger(tmp_path):
    return sf.Ledger(tmp_path / "orbit.ledger")


def outputs(x, turn=0):
    return np.sin(3 * np.asarray(x) + turn)


def together50(releases, lengthscale, variance, noise, shared=True):
    """M of all releases in 50 digits: each has its own Σ; rows at the same input share the error of variance ``noise``.

    Written from the formula, not from the code: ``M_ij = K(X_i, X_j) + noise [same row] + [i = j] Σ_i``.
    """
    rows = np.concatenate([release.inputs[:, 0] for release in releases])
    with mpmath.workdps(DIGITS):
        M = rbf50(rows, rows, lengthscale, variance)
        start = 0
        for release in releases:
            factor, n = exact(release.noise.factor), len(release.inputs)
            blur = factor * factor.T if release.noise.factor.shape[1] else mpmath.zeros(n, n)
            for i in range(n):
                M[start + i, start + i] += mpmath.mpf(release.noise.shift)
                for j in range(n):
                    M[start + i, start + j] += blur[i, j]
            start += n
        for i in range(len(rows)):
            for j in range(len(rows)):
                if i == j or (shared and rows[i] == rows[j]):
                    M[i, j] += mpmath.mpf(noise)
    return rows, M


def promise50(releases, sensitive, alpha, lengthscale, variance, noise, shared=True, points=DENSE[::20]):
    """The joint ratio at ``sensitive`` and the least floor ratio over ``points``, in 50 digits."""
    rows, M = together50(releases, lengthscale, variance, noise, shared)
    with mpmath.workdps(DIGITS):
        delta = mpmath.mpf(alpha) * rbf50(sensitive, sensitive, lengthscale, variance)
        joint = joint_ratio50(M, rbf50(sensitive, rows, lengthscale, variance), delta)
        explained = explained_variances50(M, rbf50(rows, points, lengthscale, variance))
        floors = np.sqrt((variance - explained) / ((1 - alpha) * variance))
    return joint, float(np.min(floors))


@pytest.mark.parametrize("noise", [0.0, 0.01])
@pytest.mark.parametrize("lengthscale", [0.1, 0.4])
def test_two_releases_of_the_same_rows_keep_the_promise_in_50_digits(ledger, noise, lengthscale):
    prior = sf.Prior(rbf(lengthscale), noise=noise)
    releases = []
    for share in (0.5, 1.0):
        mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5, share=share)
        releases.append(mechanism.release(outputs(GRID)))
    joint, floor = promise50(releases, mechanism.sensitive, 0.5, lengthscale, 1.0, noise)
    assert joint <= 1 + 1e-9
    assert floor >= 1 - 1e-9
    certificate = ledger.certificate(REGION)
    assert certificate.holds
    assert certificate.joint_ratio >= joint - 1e-9
    assert certificate.floor_ratio <= floor + 1e-9
    # and nothing is wasted: the last release used all that was left
    assert min(1 - joint, floor - 1) < 2e-2


def test_new_rows_keep_the_promise_in_50_digits(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.02)
    first = ledger.protect(prior, GRID[::2], REGION, alpha=0.3, share=0.5).release(outputs(GRID[::2]))
    mechanism = ledger.protect(prior, GRID[1::2], REGION, alpha=0.3, share=1.0)
    second = mechanism.release(outputs(GRID[1::2]))
    joint, floor = promise50([first, second], mechanism.sensitive, 0.3, 0.3, 1.0, 0.02)
    assert joint <= 1 + 1e-9
    assert floor >= 1 - 1e-9


def test_rows_that_are_measured_again_have_errors_of_their_own(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.3)
    asked = {"alpha": 0.5, "protects": "function"}
    first = ledger.protect(prior, GRID, REGION, share=0.5, **asked).release(outputs(GRID))
    mechanism = ledger.protect(prior, GRID, REGION, share=0.9, remeasured=True, **asked)
    second = mechanism.release(outputs(GRID, 0.1))
    joint, floor = promise50([first, second], mechanism.sensitive, 0.5, 0.3, 1.0, 0.3, shared=False)
    assert joint <= 1 + 1e-9
    assert floor >= 1 - 1e-9
    assert ledger.certificate(REGION).joint_ratio == pytest.approx(joint, abs=1e-6)
    # a third release shows the last measurement again
    third = ledger.protect(prior, GRID, REGION, share=0.9, **asked).release(outputs(GRID, 0.1))
    assert ledger.certificate(REGION).holds
    assert len(third.outputs) == len(GRID)
    assert len(ledger) == 3


def test_six_releases_stay_within_the_promise_where_independent_ones_do_not(ledger, tmp_path):
    prior = sf.Prior(rbf(0.1), noise=1e-3)
    x = np.linspace(0.5, 2.5, 21)
    for k in range(6):
        ledger.protect(prior, x, REGION, alpha=0.5, share=1 / (6 - k)).release(outputs(x))
    certificate = ledger.certificate(REGION)
    assert len(ledger) == 6
    assert certificate.holds
    assert 1.0 <= certificate.floor_ratio < 1.01
    naive = sf.Ledger(tmp_path / "naive.ledger")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        for _ in range(6):
            naive.record(sf.protect(prior, x, REGION, alpha=0.5).release(outputs(x)))
    broken = naive.certificate(REGION)
    assert not broken.holds
    assert broken.worst_std**2 < 0.2
    with pytest.raises(sf.BudgetError, match="nothing is left"):
        naive.protect(prior, x, REGION, alpha=0.5)


@pytest.mark.slow
def test_twenty_independent_releases_on_the_satellite_grid_fall_to_what_math_md_says(tmp_path):
    # MATH.md 8: α = 0.5, 2 / 5 / 20 independent draws leave 0.333 / 0.167 / 0.048 of the variance
    prior = sf.Prior(rbf(0.05))
    x = np.linspace(0.0, 3.0, 61)
    naive = sf.Ledger(tmp_path / "naive.ledger")
    left = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        for k in range(1, 21):
            naive.record(sf.protect(prior, x, REGION, alpha=0.5, cover="rows").release(outputs(x)))
            left[k] = naive.certificate().worst_std ** 2
    assert [left[k] for k in (2, 5, 20)] == pytest.approx([0.333, 0.167, 0.048], abs=2e-3)
    kept = sf.Ledger(tmp_path / "kept.ledger")
    for k in range(20):
        kept.protect(prior, x, REGION, alpha=0.5, share=1 / (20 - k)).release(outputs(x))
    assert kept.certificate(REGION).holds
    assert kept.certificate(REGION).worst_std ** 2 >= 0.5


def test_nothing_is_left_when_everything_was_used(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.5, share=1.0).release(outputs(GRID))
    assert ledger.remaining(REGION).left < 0.02
    with pytest.raises(sf.BudgetError, match=r"too little is left|nothing is left"):
        use_up(ledger, prior)


@pytest.mark.parametrize("ending", [b"", b"\x0b", b" (torn)\n"])
def test_a_ledger_whose_last_line_ends_strangely_gives_no_second_full_share(ledger, ending):
    prior = sf.Prior(rbf(0.4), noise=0.05)
    first = ledger.protect(prior, GRID, REGION, alpha=0.5, share=1.0).release(outputs(GRID))
    used, raw = ledger.remaining(REGION).used, Path(ledger.path).read_bytes()
    Path(ledger.path).write_bytes(raw[:-1] + ending)
    again = sf.Ledger(ledger.path)
    assert (len(again), again.head, again.remaining(REGION).used) == (1, ledger.head, used)
    assert len(again.verify(ledger.head).remarks) == 1
    with pytest.warns(sf.GuaranteeWarning, match="the ledger .* counts?"), pytest.raises(sf.BudgetError):
        again.protect(prior, GRID, REGION, alpha=0.5, share=1.0)
    with pytest.warns(sf.GuaranteeWarning, match="the ledger"):
        assert again.record(first).holds  # it is there already
    assert len(again) == 1


def test_what_is_torn_is_told_by_protect_and_record(ledger):
    prior = sf.Prior(rbf(0.4), noise=0.05)
    ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.3).release(outputs(GRID))
    with open(ledger.path, "ab") as file:
        file.write(b'{"body":{"rec')
    with pytest.warns(sf.GuaranteeWarning, match="TORN: 13 bytes"):
        mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.3)
    release = sf.protect(prior, GRID + 0.01, REGION, alpha=0.1).release(outputs(GRID))
    with pytest.warns(sf.GuaranteeWarning) as told:
        ledger.record(release)
    assert "TORN: 13 bytes" in str(told[0].message)
    assert not ledger.torn
    with pytest.raises(sf.BudgetError, match="other releases"):
        mechanism.release(outputs(GRID))


def use_up(ledger, prior):
    for _ in range(20):
        ledger.protect(prior, GRID, REGION, alpha=0.5, share=1.0).release(outputs(GRID))


def test_a_stricter_alpha_is_refused_when_too_much_is_out(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.9).release(outputs(GRID))
    with pytest.raises(sf.BudgetError, match=r"tells 0\.4.* of the variance there.*allows 0\.1"):
        ledger.protect(prior, GRID, REGION, alpha=0.1)


def test_a_larger_alpha_does_not_loosen_an_earlier_promise(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.2, share=0.5).release(outputs(GRID))
    mechanism = ledger.protect(prior, GRID, REGION, alpha=0.8, share=0.9)
    mechanism.release(outputs(GRID))
    assert len(ledger.promises(REGION)) == 2
    assert all(promise.kept_by(ledger.releases).holds for promise in ledger.promises())


def test_another_region_keeps_the_first_one_too(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    first, second, other = GRID[:17], GRID[17:], sf.Box(2.2, 2.8)
    ledger.protect(prior, first, REGION, alpha=0.3, share=0.5).release(outputs(first))
    ledger.protect(prior, second, other, alpha=0.5, share=0.9).release(outputs(second))
    assert ledger.certificate(REGION).holds
    assert ledger.certificate(other).holds
    alone = sf.protect(prior, second, other, alpha=0.45)
    assert not ledger_with(ledger, alone, REGION).holds


def ledger_with(ledger, mechanism, region):
    """The promise about ``region`` if ``mechanism`` released beside the ledger."""
    from sfumato.promise.composition import Revealed

    releases = (*ledger.releases, Revealed(mechanism.design))
    return ledger.promises(region)[0].kept_by(releases).certificate()


def test_a_release_far_away_is_not_held_up_by_a_promise_that_is_used_up(ledger):
    prior = sf.Prior(rbf(0.05), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.5, share=1.0).release(outputs(GRID))
    far = np.linspace(50.0, 53.0, 21)
    mechanism = ledger.protect(prior, far, sf.Box(51.0, 52.0), alpha=0.5, share=1.0)
    assert mechanism.certificate.holds
    mechanism.release(outputs(far))
    assert ledger.certificate(REGION).holds


def test_a_changed_prior_keeps_the_old_promise_and_the_new_one(ledger):
    first, second = sf.Prior(rbf(0.3), noise=0.01), sf.Prior(matern(0.5), noise=0.02)
    for prior in (first, second):
        ledger.protect(prior, GRID, REGION, alpha=0.4, share=0.4, protects="function").release(outputs(GRID))
    promises = ledger.promises(REGION)
    assert len(promises) == 2
    assert all(promise.kept_by(ledger.releases).holds for promise in promises)


@pytest.mark.parametrize(
    "how",
    [
        {"guarantee": "pointwise"},
        {"structure": "diagonal"},
        {"cover": "rows"},
        {"cover": "exchange"},
        {"floor": 0.9},
        {"weights": np.linspace(1.0, 2.0, len(GRID))},
        {"priors": [sf.Prior(rbf(0.4), noise=0.01)]},
    ],
    ids=lambda how: next(iter(how)) + str(next(iter(how.values())))[:9],
)
def test_every_kind_of_promise_is_composed(ledger, how):
    prior = sf.Prior(rbf(0.25), noise=0.01)
    asked = {"alpha": 0.4, **how}
    if "floor" in how:
        del asked["alpha"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.GuaranteeWarning)
        for share in (0.4, 0.6):
            mechanism = ledger.protect(prior, GRID, REGION, share=share, **asked)
            assert mechanism.certificate.holds
            mechanism.release(outputs(GRID))
    assert ledger.certificate().holds
    assert 0.0 < ledger.remaining().left < 0.5


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_rows_that_others_determine_are_promised_with_them(ledger):
    x = np.sort(np.append(np.linspace(0.0, 3.0, 16), 1.2 + 1e-7))
    prior = sf.Prior(rbf(1.0), noise=0.01)
    for left in (0.6, 0.36):
        mechanism = ledger.protect(prior, x, REGION, alpha=0.3, cover="rows", share=0.4, progress=False)
        assert mechanism.certificate.evidence == "proved"
        mechanism.release(outputs(x))
        assert ledger.remaining().left == pytest.approx(left, rel=1e-6)
    assert (
        len(mechanism.sensitive) < len(mechanism.design.rows_inside()) == len(ledger.promises()[0].design.region.points)
    )
    assert ledger.certificate().holds


def test_points_are_composed_with_a_matrix_of_tolerances(ledger):
    prior = sf.Prior(rbf(0.25), noise=0.01)
    points = sf.Points([[1.2], [1.6]])
    delta = sf.MatrixTolerance([[0.4, 0.0], [0.0, 0.3]])
    for share in (0.5, 1.0):
        ledger.protect(prior, GRID, points, tolerance=delta, share=share).release(outputs(GRID))
    assert ledger.certificate(points).holds


def test_two_inputs_are_composed(ledger):
    prior = sf.Prior(rbf([0.5, 0.7]), noise=0.05)
    axis = np.linspace(0.0, 2.0, 6)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    region = sf.Box([0.5, 0.5], [1.2, 1.2])
    for share in (0.4, 0.5):
        ledger.protect(prior, X, region, alpha=0.4, share=share).release(np.sin(X.sum(axis=1)))
    assert ledger.certificate(region).holds


def test_the_same_release_is_recorded_once(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.4)
    first, again = mechanism.release(outputs(GRID)), mechanism.release(outputs(GRID))
    assert np.array_equal(first.outputs, again.outputs)
    ledger.record(first)
    assert len(ledger) == 1


def test_a_mechanism_cannot_release_other_values_beyond_the_promise(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.9)
    mechanism.release(outputs(GRID))
    with pytest.raises(sf.BudgetError, match="protect again"):
        mechanism.release(outputs(GRID, 1e-3))
    assert len(ledger) == 1


def test_a_design_that_the_ledger_has_overtaken_is_refused(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    one = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.8)
    other = sf.Ledger(ledger.path).protect(prior, GRID, REGION, alpha=0.5, share=0.8)
    one.release(outputs(GRID))
    with pytest.raises(sf.BudgetError, match="other releases than when"):
        other.release(outputs(GRID))
    assert len(ledger) == 1


def test_small_designs_that_overtake_each_other_both_pass(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    one = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.3)
    other = ledger.protect(prior, GRID, REGION, alpha=0.5, share=0.3)
    one.release(outputs(GRID))
    other.release(outputs(GRID))
    assert len(ledger) == 2
    assert ledger.certificate(REGION).holds


def test_a_release_is_in_the_ledger_before_anybody_has_it(ledger, monkeypatch):
    from sfumato.ledger import chained_file

    prior = sf.Prior(rbf(0.3), noise=0.01)
    mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5)

    def no_disk(*_):
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(chained_file.os, "fsync", no_disk)
        with pytest.raises(OSError, match="no space left"):
            mechanism.release(outputs(GRID))
    # whatever was written of it: a release that nobody has is never free, and the ledger can be written again
    mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5)
    mechanism.release(outputs(GRID))
    assert len(ledger) >= 1


def test_the_file_holds_neither_outputs_nor_noise(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    y = outputs(GRID)
    release = ledger.protect(prior, GRID, REGION, alpha=0.5).release(y)
    designs = [one.design for one in ledger.releases]
    for secret in (y, np.asarray(release.outputs), np.asarray(release.outputs) - y):
        for value in secret[np.abs(secret) > 1e-3]:
            for design in designs:
                arrays = [design.inputs.values, design.noise.factor, design.sensitive]
                assert not any(np.any(np.isclose(array, value, rtol=1e-12, atol=0)) for array in arrays)
            assert repr(float(value)).encode() not in ledger_bytes(ledger)


def ledger_bytes(ledger):
    with open(ledger.path, "rb") as file:
        return file.read()


@pytest.mark.parametrize("how", [{}, {"guarantee": "pointwise"}])
@pytest.mark.parametrize("noise", [0.01, 3.0])
def test_a_release_uses_its_share_and_no_more(ledger, noise, how):
    """Also where the promise would be kept by the rows as they are, so noisy that they tell half of what they may."""
    prior = sf.Prior(rbf(0.3), noise=noise)
    used = 0.0
    for _ in range(2):
        ledger.protect(prior, GRID, REGION, alpha=0.8, share=0.25, progress=False, **how).release(outputs(GRID))
        may = used + 0.25 * (1.0 - used)
        used = 1.0 - ledger.remaining(REGION).left
        assert may - 0.005 <= used <= may + 1e-5


def test_what_is_left_is_said_in_words_numbers_and_a_picture(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    for share in (0.25, 0.25):
        ledger.protect(prior, GRID, REGION, alpha=0.5, share=share).release(outputs(GRID))
    remaining = ledger.remaining(REGION)
    assert remaining.left == pytest.approx(0.75**2, abs=0.02)
    assert "of the tolerance is left after 2 releases" in str(remaining)
    assert remaining.as_dict()["promises"][0]["history"] == list(remaining.promises[0].history)
    assert remaining.promises[0].history[0] == pytest.approx(0.25, abs=0.02)
    axes = remaining.plot()
    assert axes.get_xlabel()
    assert axes.get_legend() is not None


def test_broken_promises_are_reported_loudly(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.record(sf.protect(prior, GRID, REGION, alpha=0.5).release(outputs(GRID)))
    second = sf.protect(prior, GRID, REGION, alpha=0.5).release(outputs(GRID))
    with pytest.warns(sf.GuaranteeWarning, match="a promise is broken"):
        certificate = ledger.record(second)
    assert not certificate.holds
    assert "THE PROMISE IS BROKEN" in str(ledger.remaining(REGION))


def test_an_empty_ledger_and_unknown_regions_are_refused_in_words(ledger):
    with pytest.raises(sf.InputError, match="no releases yet"):
        ledger.certificate(REGION)
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.5).release(outputs(GRID))
    with pytest.raises(sf.InputError, match=r"no promise.*1 ≤ x ≤ 2"):
        ledger.remaining(sf.Box(0.0, 0.5))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"share": 0.0}, "share is 0"),
        ({"share": 1.5}, "share is 1.5"),
        ({"share": True}, "share is True"),
        ({"method": "compressed"}, "releases of a ledger are exact"),
        ({"device": "cuda"}, "device is given"),
        ({"output_name": ""}, "output_name is ''"),
        ({"floor": lambda x: 0.5 + 0 * x[:, 0], "alpha": None}, "floor is a function"),
    ],
)
def test_wrong_use_is_refused_in_words(ledger, how, message):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    with pytest.raises(sf.InputError, match=message):
        ledger.protect(prior, GRID, REGION, **{"alpha": 0.5, **how})


def test_everywhere_cannot_be_divided(ledger):
    with pytest.raises(sf.InputError, match=r"bound it, for example with sf\.Box"):
        ledger.protect(sf.Prior(rbf(0.3)), GRID, sf.Everywhere(), alpha=0.5)


def test_a_ledger_is_about_one_secret(ledger):
    ledger.protect(sf.Prior(rbf(0.3), noise=0.01), GRID, REGION, alpha=0.5).release(outputs(GRID))
    X = np.column_stack([GRID, GRID])
    with pytest.raises(sf.InputError, match="a ledger is about one secret"):
        ledger.protect(sf.Prior(rbf(0.3), noise=0.01), X, sf.Box([1, 1], [2, 2]), alpha=0.5)


def test_another_name_than_the_ledgers_is_refused(ledger):
    mechanism = ledger.protect(sf.Prior(rbf(0.3), noise=0.01), GRID, REGION, alpha=0.5, output_name="r")
    with pytest.raises(sf.InputError, match="the ledger was told"):
        mechanism.release(outputs(GRID), output_name="v")
    assert mechanism.release(outputs(GRID)).output_name == "r"


def test_other_outputs_that_the_prior_does_not_know_are_warned_of(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    ledger.protect(prior, GRID, REGION, alpha=0.5, output_name="r").release(outputs(GRID))
    with pytest.warns(sf.GuaranteeWarning, match=r"protected one by one: the ledger has .* 'r'.*share a prior"):
        mechanism = ledger.protect(prior, GRID, REGION, alpha=0.5, output_name="v")
    assert mechanism.certificate.findings[0].code == "protected-one-by-one"
    assert mechanism.certificate.verdict == "do not publish"
    with pytest.raises(sf.GuaranteeError, match="protected one by one"):
        mechanism.release(outputs(GRID))
    assert len(ledger) == 1
    accept = {"accept": ["protected-one-by-one"]}
    ledger.protect(prior, GRID, REGION, alpha=0.5, output_name="v", **accept).release(outputs(GRID))
    assert len(ledger) == 2


def test_a_velocity_after_a_position_keeps_the_position_hidden(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    asked = {"alpha": 0.5, "protects": "function"}
    ledger.protect(prior, GRID, REGION, share=0.5, output_name="r", **asked).release(outputs(GRID))
    joint = sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 0.01})
    mechanism = ledger.protect(joint, GRID, {"v": REGION}, released=["v"], share=0.9, **asked)
    mechanism.release({"v": 3 * np.cos(3 * GRID)})
    assert all(promise.kept_by(ledger.releases).holds for promise in ledger.promises())
    # the promise about r, to readers who know that v is its derivative
    from sfumato.ledger.problem import translated

    first, second = ledger.promises()
    carried = translated(first, second.prior, second.layout)
    assert carried.kept_by(ledger.releases).holds
    alone = sf.protect(joint, GRID, {"v": REGION}, released=["v"], **asked)
    from sfumato.promise.composition import Revealed

    leaked = carried.kept_by((ledger.releases[0], Revealed(alone.design))).certificate()
    assert not leaked.holds


def test_regions_are_found_however_their_columns_were_named(tmp_path):
    import pandas as pd

    ledger = sf.Ledger(tmp_path / "named.ledger")
    prior = sf.Prior(rbf(0.3), noise=0.01)
    frame = pd.DataFrame({"t": GRID})
    ledger.protect(prior, frame, sf.Box({"t": (1.0, 2.0)}), alpha=0.5, share=0.3).release(outputs(GRID))
    ledger.protect(prior, frame, REGION, alpha=0.5, share=0.3).release(outputs(GRID))
    assert len(ledger.promises()) == 1
    assert ledger.certificate(REGION).holds
    assert ledger.certificate(sf.Box({"t": (1.0, 2.0)})).holds


def test_several_outputs_go_through_the_ledger(ledger):
    prior = sf.Prior(rbf(0.4), noise=0.01)
    places = np.linspace(1.0, 2.0, 6)[:, None]
    joint = sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative(), "m": sf.Average(places)})
    for share in (0.5, 0.5, 0.5):
        mechanism = ledger.protect(joint, GRID, {"v": REGION, "m": None}, alpha={"v": 0.1, "m": 0.5}, share=share)
        mechanism.release({"r": np.sin(GRID), "v": np.cos(GRID)})
    assert ledger.certificate({"v": REGION, "m": None}).holds
    assert ledger.remaining({"v": REGION, "m": None}).left > 0.05
    with pytest.raises(sf.InputError, match="no promise"):
        ledger.certificate({"m": None})


def test_outputs_in_very_different_units_go_through_the_ledger(ledger):
    joint = sf.JointPrior.independent({"a": sf.Prior(rbf(0.3, 1e-9), noise=1e-11), "b": sf.Prior(matern(0.5, 1e8))})
    for share in (0.4, 0.6):
        mechanism = ledger.protect(joint, GRID, REGION, alpha=0.4, share=share)
        assert mechanism.certificate.holds
        mechanism.release({"a": 3e-5 * np.sin(GRID), "b": 1e4 * np.cos(7 * GRID)})
    assert ledger.certificate(REGION).holds
    assert 0.05 < ledger.remaining(REGION).left < 0.4


def test_an_unsafe_release_counts_as_if_it_had_no_noise(ledger):
    prior = sf.Prior(rbf(0.3), noise=0.01)
    release = sf.protect(prior, GRID, REGION, alpha=0.5).release(outputs(GRID), unsafe_seed=1)
    with pytest.warns(sf.GuaranteeWarning, match="a promise is broken"):
        ledger.record(release)
    assert not ledger.certificate().holds
    mechanism = sf.Ledger(str(ledger.path) + "2").protect(prior, GRID, REGION, alpha=0.5)
    with pytest.raises(sf.InputError, match="unsafe_seed"):
        mechanism.release(outputs(GRID), unsafe_seed=1)


# What an adversary found, one test each.


def kept_by_the_same_measurements(releases, noise, lengthscale, points):
    """The share of the variance that is left if all releases show the same measurements; unit variance."""
    n = len(releases[0].inputs)
    rows = releases[0].inputs[:, 0]
    with mpmath.workdps(DIGITS):
        K = rbf50(rows, rows, lengthscale, 1.0)
        for i in range(n):
            K[i, i] += mpmath.mpf(noise)
        M = mpmath.zeros(n * len(releases), n * len(releases))
        for first, one in enumerate(releases):
            for second in range(len(releases)):
                M[first * n : (first + 1) * n, second * n : (second + 1) * n] = K
            factor = exact(one.noise.factor)
            own = slice(first * n, (first + 1) * n)
            M[own, own] = M[own, own] + factor * factor.T + mpmath.mpf(one.noise.shift) * mpmath.eye(n)
        for i in range(len(M)):
            M[i, i] += mpmath.mpf(10) ** -35
        stacked = np.tile(rows, len(releases))
        return 1 - explained_variances50(M, rbf50(stacked, points, lengthscale, 1.0))


@pytest.mark.parametrize("how", ["linspace", "digits", "float32"])
def test_inputs_that_differ_in_the_last_digits_show_the_same_measurements(ledger, how):
    t = np.cumsum(np.full(13, 0.25)) - 0.25
    again = {
        "linspace": np.linspace(0.0, 3.0, 13) + 1e-15,
        "digits": np.array([float(f"{x:.11g}") for x in t]) + 1e-12,
        "float32": t.astype(np.float32).astype(float) + 1e-8,
    }[how]
    prior = sf.Prior(rbf(1.0), noise=0.1)
    releases = [ledger.protect(prior, x, REGION, alpha=0.3, share=0.6).release(outputs(t)) for x in (t, again)]
    assert np.min(kept_by_the_same_measurements(releases, 0.1, 1.0, DENSE[::40])) >= 0.7 * (1 - 1e-5)


def test_saying_wrongly_that_rows_were_measured_anew_breaks_nothing(ledger):
    prior = sf.Prior(rbf(1.0), noise=0.1)
    t = np.linspace(0.0, 3.0, 13)
    first = ledger.protect(prior, t, REGION, alpha=0.3, share=0.6).release(outputs(t))
    second = ledger.protect(prior, t, REGION, alpha=0.3, share=0.6, remeasured=True).release(outputs(t))
    assert np.min(kept_by_the_same_measurements([first, second], 0.1, 1.0, DENSE[::40])) >= 0.7 * (1 - 1e-9)
    joint, floor = promise50([first, second], ledger.promises()[0].design.sensitive, 0.3, 1.0, 1.0, 0.1, shared=False)
    assert joint <= 1 + 1e-9
    assert floor >= 1 - 1e-9


def test_columns_in_another_order_are_the_same_columns(ledger):
    import pandas as pd

    axis = np.linspace(0.0, 3.0, 5)
    table = pd.DataFrame(np.stack(np.meshgrid(axis, 2 * axis), axis=-1).reshape(-1, 2), columns=["lon", "lat"])
    prior = sf.Prior(rbf(1.0), noise=0.01)
    region = sf.Box({"lon": (1.0, 2.0), "lat": (2.0, 3.0)})
    y = np.sin(table["lon"].to_numpy())
    first = ledger.protect(prior, table, region, alpha=0.3, share=0.8).release(y)
    second = ledger.protect(prior, table[["lat", "lon"]], region, alpha=0.3, share=0.8).release(y)
    X = table.to_numpy()
    gap = X[:, None, :] - X[None, :, :]
    K = np.exp(-0.5 * np.sum(gap**2, axis=2)) + 0.01 * np.eye(len(X))
    M = np.block([[K + first.noise.covariance(), K], [K, K + second.noise.covariance()]])
    at = np.array([[1.0, 2.0], [1.5, 2.5], [2.0, 3.0], [1.5, 3.0]])
    cross = np.exp(-0.5 * np.sum((X[:, None, :] - at[None, :, :]) ** 2, axis=2))
    cross = np.vstack([cross, cross])
    assert np.min(1 - np.sum(cross * np.linalg.solve(M, cross), axis=0)) >= 0.7 * (1 - 1e-6)
    with pytest.raises(sf.InputError, match="by the same names"):
        ledger.protect(prior, table.to_numpy(), sf.Box([1.0, 2.0], [2.0, 3.0]), alpha=0.3)


@pytest.mark.parametrize("kind", ["joint", "array"])
def test_larger_errors_in_a_later_release_do_not_hide_an_earlier_one(ledger, kind):
    def prior(noise):
        if kind == "array":
            return sf.Prior(rbf(1.0), noise=np.full(len(GRID), noise))
        return sf.JointPrior.of(sf.Prior(rbf(1.0), noise=noise), {"y": sf.Value()})

    ledger.protect(prior(1e-4), GRID, REGION, alpha=0.3, share=0.5).release(outputs(GRID))
    mechanism = ledger.protect(prior(100.0), GRID + 0.05, REGION, alpha=0.3, share=0.9)
    assert mechanism.noise.trace > 1.0
    mechanism.release(outputs(GRID))
    assert all(promise.kept_by(ledger.releases).holds for promise in ledger.promises())


def test_each_of_several_priors_has_its_own_errors(ledger):
    first, second = sf.Prior(rbf(1.0), noise=4.0), sf.Prior(rbf(1.0), noise=np.full(len(GRID), 1e-4))
    alone = sf.protect(first, GRID, REGION, alpha=0.3, priors=[second])
    mechanism = ledger.protect(first, GRID, REGION, alpha=0.3, priors=[second], share=1.0)
    assert mechanism.noise.trace == pytest.approx(alone.noise.trace, rel=1e-2)


def test_a_promise_is_not_forgotten_because_a_look_misses_it(ledger):
    prior = sf.Prior(rbf(1.0), noise=0.01)
    x = np.linspace(0.0, 20_000.0, 40)
    ledger.protect(prior, x, sf.Box(0.0, 20_000.0), alpha=0.3, share=0.5).release(outputs(x))
    between = x[:-1] + 251.3
    mechanism = ledger.protect(prior, between, sf.Points([[between[3]]]), alpha=0.3, share=0.5)
    assert mechanism.certificate.holds
    mechanism.release(outputs(between))
    assert all(promise.kept_by(ledger.releases).holds for promise in ledger.promises())


def test_readers_who_know_more_outputs_are_not_forgotten(ledger):
    prior = sf.Prior(rbf(1.0), noise=0.01)
    both = sf.JointPrior.of(prior, {"r": sf.Value(), "v": sf.Derivative()}, noise={"v": 0.01})
    one = sf.JointPrior.of(prior, {"r": sf.Value()})
    ledger.protect(both, GRID, {"r": REGION}, alpha=0.3, released=["v"], share=1.0).release({"v": np.cos(GRID)})
    with pytest.raises(sf.BudgetError):
        ledger.protect(one, GRID, {"r": REGION}, alpha=0.3, share=1.0, cover="rows")
    plain = sf.Ledger(str(ledger.path) + "2")
    plain.protect(both, GRID, {"r": REGION}, alpha=0.5, share=0.3).release({"r": np.sin(GRID), "v": np.cos(GRID)})
    alone = {"output_name": "r", "accept": ["protected-one-by-one"]}
    plain.protect(prior, GRID, REGION, alpha=0.5, share=0.3, **alone).release(np.sin(GRID))
    assert all(promise.kept_by(plain.releases).holds for promise in plain.promises())


def test_a_ledger_stays_where_it_is_and_does_not_lose_lines(ledger, monkeypatch, tmp_path):
    import os
    import shutil

    monkeypatch.chdir(tmp_path)
    here = sf.Ledger("relative.ledger")
    prior = sf.Prior(rbf(0.3), noise=0.01)
    here.protect(prior, GRID, REGION, alpha=0.5, share=0.3).release(outputs(GRID))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert len(here) == 1
    old = tmp_path / "old.ledger"
    shutil.copy(here.path, old)
    mechanism = here.protect(prior, GRID, REGION, alpha=0.5, share=0.3)
    mechanism.release(outputs(GRID))
    shutil.copy(old, here.path)
    with pytest.raises(sf.FormatError, match="has lost lines"):
        len(here)
    fresh = sf.Ledger(old)
    designed = fresh.protect(prior, GRID, REGION, alpha=0.5, share=0.3)
    os.remove(old)
    with pytest.raises(sf.FormatError, match="has lost lines"):
        designed.release(outputs(GRID))


def test_a_broken_promise_does_not_hold_up_what_has_nothing_to_do_with_it(ledger):
    prior = sf.Prior(rbf(0.05), noise=0.01)
    release = sf.protect(prior, GRID, REGION, alpha=0.5).release(outputs(GRID), unsafe_seed=3)
    with pytest.warns(sf.GuaranteeWarning, match="a promise is broken"):
        ledger.record(release)
    with pytest.raises(sf.BudgetError):
        ledger.protect(prior, GRID, REGION, alpha=0.5)
    far = GRID + 100.0
    mechanism = ledger.protect(prior, far, sf.Box(101.0, 102.0), alpha=0.5)
    assert mechanism.certificate.holds
