"""``protect``: the right noise for every kind of question, and a mechanism that gives nothing away."""

from __future__ import annotations

import copy
import inspect
import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

import oracles
import sfumato as sf
from kernels import matern, rbf

T = np.linspace(0.0, 3.0, 31)
COLUMN = T[:, None]
LENGTHSCALE, VARIANCE, NOISE = 0.4, 1.5, 0.05
PRIOR = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)
Y = np.sin(2 * T)


def kernel(a, b):
    return oracles.matern32(a, b, LENGTHSCALE, VARIANCE)


A = kernel(COLUMN, COLUMN) + NOISE * np.eye(31)


def least_noise(delta, S, data=A, x=COLUMN):
    """(K_XS Δ⁻¹ K_SX − A)⁺ by dense formulas."""
    B = kernel(x, S) @ np.linalg.solve(delta, kernel(S, x)) - data
    values, vectors = np.linalg.eigh((B + B.T) / 2)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def deviations(mechanism, points, data=A, x=COLUMN):
    cross = kernel(x, points)
    explained = np.einsum("ij,ij->j", cross, np.linalg.solve(data + mechanism.noise.covariance(), cross))
    return np.sqrt(VARIANCE - explained)


@pytest.fixture(scope="module")
def mechanism():
    return sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3)


# --- what it depends on, and what it gives away ---


def test_no_output_can_reach_the_noise():
    assert list(inspect.signature(sf.protect).parameters)[:4] == ["prior", "X", "region", "alpha"]
    assert not {"y", "Y", "outputs", "data"} & set(inspect.signature(sf.protect).parameters)


def test_the_noise_is_a_function_of_public_things(mechanism):
    torch.manual_seed(1)
    again = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3)
    assert np.array_equal(again.noise.factor, mechanism.noise.factor)
    assert again.noise.shift == mechanism.noise.shift
    assert again.certificate.as_dict() == mechanism.certificate.as_dict()
    # but what is drawn is not
    assert not np.array_equal(again.release(Y).outputs, mechanism.release(Y).outputs)


def test_releasing_changes_nothing_in_the_mechanism(mechanism):
    before = mechanism.noise.factor.copy(), mechanism.design.digest()
    mechanism.release(Y)
    mechanism.release(1e6 * Y)
    assert np.array_equal(mechanism.noise.factor, before[0])
    assert mechanism.design.digest() == before[1]


def test_the_same_outputs_get_the_same_release(mechanism):
    first, again = mechanism.release(Y), mechanism.release(list(Y))
    assert np.array_equal(first.outputs, again.outputs)
    assert not np.allclose(mechanism.release(Y + 1e-9).outputs, first.outputs)


def test_a_mechanism_cannot_be_pickled(mechanism):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(
            TypeError, match="Mechanism holds a secret key and cannot be pickled; save what it releases"
        ):
            pickle.dumps(mechanism, protocol)


def test_copies_are_the_same_mechanism_and_draw_the_same_noise(mechanism):
    for twin in (copy.copy(mechanism), copy.deepcopy(mechanism), copy.deepcopy([mechanism])[0]):
        assert np.array_equal(twin.release(Y).outputs, mechanism.release(Y).outputs)


def test_neither_text_form_shows_the_key(mechanism):
    key = mechanism._key
    raw = next(getattr(key, slot) for slot in dir(key) if slot.endswith("__raw"))
    assert isinstance(raw, bytes)
    for text in (repr(mechanism), str(mechanism), repr(key), f"{mechanism.__dict__}"):
        assert raw.hex() not in text
        assert repr(raw) not in text
    assert "31 rows" in repr(mechanism)
    assert "holds" in str(mechanism)


def test_a_mechanism_is_frozen(mechanism):
    with pytest.raises(AttributeError):
        mechanism.design = None
    with pytest.raises(ValueError, match="read-only"):
        mechanism.noise.factor[0, 0] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        mechanism.inputs[0, 0] = 0.0


def test_progress_does_not_go_to_stdout(capsys):
    sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3, progress=True)
    assert capsys.readouterr().out == ""


# --- names ---


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    return pd.DataFrame({"age": rng.uniform(20, 90, 40), "area": rng.integers(0, 4, 40)})


@pytest.fixture(scope="module")
def census(people):
    prior = sf.Prior(kernel=matern([15.0, 2.0], 2.0), noise=0.1)
    return sf.protect(prior, people, sf.Box({"age": (70, 90)}), alpha=0.4)


def test_names_carry_to_promise_and_certificate(census):
    assert census.certificate.holds
    assert census.certificate.columns == ("age", "area")
    assert "70 ≤ age ≤ 90" in census.certificate.promise
    assert "area as observed together in the data" in census.certificate.promise
    assert "age = " in dict(census.certificate.rows())["worst input"]


def test_names_carry_to_predictions(census, people):
    release = census.release(np.zeros(40))
    assert release.columns == ("age", "area")
    shuffled = people[["area", "age"]].assign(extra="text").iloc[:5]
    expected = release.predict(people.to_numpy(dtype=float)[:5])
    assert np.array_equal(release.predict(shuffled).mean, expected.mean)
    assert np.array_equal(release.predict(shuffled).std, expected.std)


def test_frames_arrays_and_tensors_give_the_same_noise(census, people):
    values = people.to_numpy(dtype=float)
    for X in (values, values.tolist(), torch.tensor(values)):
        same = sf.protect(census.prior, X, sf.Box([70, None], [90, None]), alpha=0.4)
        assert np.array_equal(same.noise.factor, census.noise.factor)


def test_other_values_from_the_same_mechanism_are_warned_about():
    mechanism = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3)
    mechanism.release(Y)
    mechanism.release(list(Y))
    with pytest.warns(sf.GuaranteeWarning, match="2 different sets of values"):
        mechanism.release(Y + 1e-9)


def test_masked_values_are_never_published():
    mechanism = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3)
    with pytest.raises(sf.InputError, match="y has masked values"):
        mechanism.release(np.ma.masked_greater(Y, np.median(Y)))


def test_a_tolerance_smoother_than_the_prior_is_kept_or_refused():
    tolerance = sf.KernelTolerance(rbf(0.3, 0.3))
    prior = sf.Prior(kernel=rbf(0.1), noise=1e-4)
    assert sf.protect(prior, np.linspace(0, 3, 31), sf.Box(1, 2), tolerance=tolerance).certificate.holds


def test_one_value_of_a_column_can_be_protected(census, people):
    mechanism = sf.protect(census.prior, people, sf.Box({"area": (2, 2)}), alpha=0.4)
    assert mechanism.certificate.holds
    ages = np.column_stack([people["age"], np.full(40, 2.0)])
    assert np.all(mechanism.release(np.zeros(40)).predict(ages).std ** 2 >= 0.6 * 2.0 * (1 - 1e-6))


# --- every kind of noise and tolerance, against dense formulas ---

POINTS = np.array([[0.6], [1.15], [1.9]])


def test_different_noise_on_every_row_is_taken_into_account():
    V = np.linspace(0.01, 0.5, 31)
    data = kernel(COLUMN, COLUMN) + np.diag(V)
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=V)
    at_points = sf.protect(prior, T, sf.Points(POINTS), alpha=0.3)
    expected = least_noise(0.3 * kernel(POINTS, POINTS), POINTS, data)
    assert at_points.noise.covariance() == pytest.approx(expected, abs=1e-6)
    box = sf.protect(prior, T, sf.Box(1.0, 2.0), alpha=0.3)
    grid = np.linspace(1.0, 2.0, 3001)[:, None]
    assert deviations(box, grid, data).min() >= np.sqrt(0.7 * VARIANCE) * (1 - 1e-9)


def test_a_floor_in_the_owners_units_is_kept():
    mechanism = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), floor=0.9)
    grid = np.linspace(1.0, 2.0, 3001)[:, None]
    kept = deviations(mechanism, grid).min()
    assert 0.9 * (1 - 1e-9) <= kept <= 0.9 * 1.01
    assert "0.9" in mechanism.certificate.promise


def test_a_constant_floor_is_the_same_as_its_fraction():
    by_floor = sf.protect(PRIOR, T, sf.Points(POINTS), floor=np.sqrt(0.7 * VARIANCE))
    by_fraction = sf.protect(PRIOR, T, sf.Points(POINTS), alpha=0.3)
    assert by_floor.noise.trace == pytest.approx(by_fraction.noise.trace, rel=1e-9)


def test_a_floor_that_varies_is_kept_everywhere():
    def floor(inputs):
        return 0.6 + 0.3 * np.sin(3 * inputs[:, 0])

    at_points = sf.protect(PRIOR, T, sf.Points(POINTS), floor=floor)
    share = np.sqrt(1 - floor(POINTS) ** 2 / VARIANCE)
    expected = least_noise(np.outer(share, share) * kernel(POINTS, POINTS), POINTS)
    assert at_points.noise.covariance() == pytest.approx(expected, abs=1e-6)
    box = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), floor=floor)
    grid = np.linspace(1.0, 2.0, 3001)[:, None]
    assert box.certificate.holds
    assert np.min(deviations(box, grid) / floor(grid)) >= 1 - 1e-9


def test_a_tolerance_kernel_is_kept():
    tolerance = sf.KernelTolerance(matern(0.3, 0.4))
    at_points = sf.protect(PRIOR, T, sf.Points(POINTS), tolerance=tolerance)
    delta = oracles.matern32(POINTS, POINTS, 0.3, 0.4)
    assert at_points.noise.covariance() == pytest.approx(least_noise(delta, POINTS), abs=1e-6)
    box = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), tolerance=tolerance)
    grid = np.linspace(1.0, 2.0, 3001)[:, None]
    assert deviations(box, grid).min() >= np.sqrt(VARIANCE - 0.4) * (1 - 1e-9)


def test_a_tolerance_matrix_is_kept_in_the_order_of_its_points():
    delta = np.diag([0.2, 0.9, 0.4])
    mechanism = sf.protect(PRIOR, T, sf.Points(POINTS), tolerance=sf.MatrixTolerance(delta))
    assert mechanism.noise.covariance() == pytest.approx(least_noise(delta, POINTS), abs=1e-6)
    order = [2, 0, 1]
    other = sf.protect(PRIOR, T, sf.Points(POINTS[order]), tolerance=sf.MatrixTolerance(delta[np.ix_(order, order)]))
    assert other.noise.trace == pytest.approx(mechanism.noise.trace, rel=1e-9)


def test_a_union_is_protected_in_each_of_its_parts():
    mechanism = sf.protect(PRIOR, T, sf.Box(0.2, 0.8) | sf.Ball([2.2], 0.3) | sf.Points([[1.5]]), alpha=0.3)
    grid = np.concatenate([np.linspace(0.2, 0.8, 1501), np.linspace(1.9, 2.5, 1501), [1.5]])[:, None]
    assert mechanism.certificate.holds
    assert deviations(mechanism, grid).min() >= np.sqrt(0.7 * VARIANCE) * (1 - 1e-9)
    # it is the union that is protected and not what lies between
    assert deviations(mechanism, np.array([[1.15]]))[0] < np.sqrt(0.7 * VARIANCE)


def test_an_intersection_is_no_more_than_its_parts():
    both = sf.protect(PRIOR, T, sf.Box(0.0, 2.0) & sf.Box(1.0, 3.0), alpha=0.3)
    assert both.noise.trace == pytest.approx(sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3).noise.trace)


# --- how the noise grows ---


@pytest.mark.parametrize("cover", ["auto", "rows"])
@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_stronger_privacy_needs_more_noise(cover):
    alphas = [0.05, 0.2, 0.5, 0.8, 0.95]
    traces = [sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=a, cover=cover).noise.trace for a in alphas]
    assert all(more > less for more, less in pairwise(traces))


@pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")
def test_a_larger_region_needs_more_noise():
    """Theorem 2: G(S) grows with S."""
    boxes = [(1.4, 1.6), (1.2, 1.8), (1.0, 2.0), (0.5, 2.0), (0.0, 3.0)]
    noises = [sf.protect(PRIOR, T, sf.Box(*b), alpha=0.3, cover="rows").noise for b in boxes]
    for smaller, larger in pairwise(noises):
        assert larger.trace > smaller.trace


def test_the_units_of_the_inputs_do_not_matter():
    here = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), alpha=0.3)
    prior = sf.Prior(kernel=matern(1000 * LENGTHSCALE, VARIANCE), noise=NOISE)
    there = sf.protect(prior, 1000 * T, sf.Box(1000.0, 2000.0), alpha=0.3)
    assert there.noise.trace == pytest.approx(here.noise.trace, rel=1e-6)
    assert there.certificate.floor_ratio == pytest.approx(here.certificate.floor_ratio, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-5, 1e5])
def test_the_units_of_the_outputs_scale_the_noise(unit):
    here = sf.protect(PRIOR, T, sf.Box(1.0, 2.0), floor=0.9)
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE * unit**2), noise=NOISE * unit**2)
    there = sf.protect(prior, T, sf.Box(1.0, 2.0), floor=0.9 * unit)
    assert there.noise.trace == pytest.approx(here.noise.trace * unit**2, rel=1e-6)
    assert there.certificate.worst_floor == pytest.approx(0.9 * unit, rel=1e-9)


# --- odd data ---


def test_points_given_twice_count_once():
    once = sf.protect(PRIOR, T, sf.Points([[0.6], [1.15]]), alpha=0.3)
    twice = sf.protect(PRIOR, T, sf.Points([[0.6], [1.15], [0.6], [0.6]]), alpha=0.3)
    assert twice.certificate.holds
    assert twice.noise.trace == pytest.approx(once.noise.trace, rel=1e-6)


def test_duplicated_rows_get_noise_that_cannot_be_averaged_away():
    x = np.concatenate([COLUMN, COLUMN[10:21], COLUMN[10:21]])
    data = kernel(x, x) + NOISE * np.eye(len(x))
    at_points = sf.protect(PRIOR, x, sf.Points(POINTS), alpha=0.3)
    expected = least_noise(0.3 * kernel(POINTS, POINTS), POINTS, data, x)
    assert at_points.noise.covariance() == pytest.approx(expected, abs=1e-6)
    box = sf.protect(PRIOR, x, sf.Box(1.0, 2.0), alpha=0.3)
    grid = np.linspace(1.0, 2.0, 3001)[:, None]
    assert deviations(box, grid, data, x).min() >= np.sqrt(0.7 * VARIANCE) * (1 - 1e-9)


def test_duplicated_rows_without_noise_in_the_data_hold():
    mechanism = sf.protect(sf.Prior(kernel=matern(0.4)), np.repeat(T, 2), sf.Box(1.0, 2.0), alpha=0.3)
    assert mechanism.certificate.holds
    release = mechanism.release(np.repeat(Y, 2))
    assert np.all(release.predict(np.linspace(1, 2, 201)).std >= np.sqrt(0.7) * (1 - 1e-6))


@pytest.mark.parametrize(
    "region",
    [
        sf.Points([[1.5]]),
        sf.Box(1.0, 2.0),
        sf.Box(1.5, 1.5),
        sf.Everywhere(),
    ],
)
@pytest.mark.parametrize("protects", ["function", "both", "records"])
def test_one_row_is_enough(region, protects):
    mechanism = sf.protect(PRIOR, [1.5], region, alpha=0.3, protects=protects)
    # what may be learnt of what is sensitive: K²/(K + V + Σ) = αK, or (K + V)²/(K + V + Σ) = α(K + V), or K + αV
    whole = VARIANCE + NOISE
    needed = {"function": VARIANCE / 0.3, "both": whole / 0.3, "records": whole**2 / (VARIANCE + 0.3 * NOISE)}
    exact = needed[protects] - whole
    assert mechanism.certificate.holds
    assert mechanism.noise.trace == pytest.approx(exact, rel=1e-3)
    assert mechanism.noise.trace >= exact * (1 - 1e-9)


@pytest.mark.parametrize("cover", ["auto", "greedy", "exchange"])
def test_where_nobody_learns_too_much_there_is_no_noise(cover):
    mechanism = sf.protect(PRIOR, [0.0, 0.1, 9.0], sf.Box(4.0, 5.0), alpha=0.3, cover=cover)
    assert mechanism.noise.trace == 0.0
    assert mechanism.certificate.holds
    assert (mechanism.certificate.gap, mechanism.certificate.spill) == (0.0, 0.0)
    release = mechanism.release([1.0, 2.0, 3.0])
    assert release.outputs == pytest.approx([1.0, 2.0, 3.0], abs=1e-6)


def test_noisy_data_may_need_no_noise_at_all():
    prior, region = sf.Prior(kernel=rbf(0.3), noise=50.0), sf.Box(1.0, 2.0)
    with pytest.warns(sf.GuaranteeWarning, match="11 of the 11 records in the region go out"):
        mechanism = sf.protect(prior, T, region, alpha=0.9, protects="function")
    assert mechanism.noise.trace == 0.0
    assert mechanism.certificate.holds
    assert (mechanism.certificate.raw_records, mechanism.certificate.verdict) == (11, "do not publish")


def test_a_kernel_that_is_a_multiple_of_the_identity_blurs_every_sensitive_row():
    """The published code's satellite kernel: rank 1 there, 21 here."""
    grid = np.linspace(0.0, 3.0, 61)
    mechanism = sf.protect(sf.Prior(kernel=rbf(0.0025)), grid, sf.Points(grid[20:41]), alpha=0.1)
    assert mechanism.noise.rank == 21
    assert mechanism.noise.variance()[20:41] == pytest.approx(np.full(21, 9.0), rel=1e-6)
    assert mechanism.certificate.holds


def test_rows_warn_where_the_rest_of_the_region_is_open():
    with pytest.warns(sf.GuaranteeWarning, match="Only the rows are protected"):
        mechanism = sf.protect(PRIOR, T[::2], sf.Box(0.9, 2.1), alpha=0.1, cover="rows")
    assert mechanism.certificate.holds
    assert mechanism.certificate.floor_ratio < 1 - 1e-6


def test_weights_move_noise_away_from_what_matters():
    weights = np.where(T > 2.0, 100.0, 1.0)
    plain = sf.protect(PRIOR, T, sf.Points(POINTS), alpha=0.3)
    weighted = sf.protect(PRIOR, T, sf.Points(POINTS), alpha=0.3, weights=weights)
    assert weights @ weighted.noise.variance() < weights @ plain.noise.variance()
    assert weighted.noise.trace > plain.noise.trace
    assert weighted.certificate.holds
    same = sf.protect(PRIOR, T, sf.Points(POINTS), alpha=0.3, weights=np.diag(weights))
    assert same.noise.covariance() == pytest.approx(weighted.noise.covariance(), abs=1e-8)
