"""A certificate holds exactly when the promise does, whoever made the design."""

from __future__ import annotations

import ast
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import oracles
import sfumato
import sfumato as sf
from kernels import matern, rbf
from sfumato.design.mechanism import Mechanism
from sfumato.noise.entropy import SecretKey
from sfumato.noise.noise import CorrelatedNoise
from sfumato.proof.examination import certify
from sfumato.proof.search import inputs_to_look_at, worse_inputs

# cover="rows" says loudly what it does not protect, which is what some of these tests are about
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

T = np.linspace(0.0, 3.0, 41)
LENGTHSCALE, VARIANCE, NOISE, ALPHA = 0.4, 1.5, 0.03, 0.3


def kernel(a, b):
    return oracles.matern32(np.reshape(a, (-1, 1)), np.reshape(b, (-1, 1)), LENGTHSCALE, VARIANCE)


def protect(region, x=T, cover="auto", alpha=ALPHA, **options):
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)
    return sf.protect(prior, x, region, alpha=alpha, cover=cover, **options)


REGIONS = {
    "points": (sf.Points([[0.5], [0.9], [1.7]]), "auto"),
    "rows": (sf.Box(1.0, 2.0), "rows"),
    "greedy": (sf.Box(1.0, 2.0), "greedy"),
    "exchange": (sf.Box(1.0, 2.0), "exchange"),
    "everywhere": (sf.Everywhere(), "auto"),
}
MECHANISMS = {}


@pytest.fixture(params=list(REGIONS))
def mechanism(request):
    if request.param not in MECHANISMS:
        region, cover = REGIONS[request.param]
        MECHANISMS[request.param] = protect(region, cover=cover)
    return MECHANISMS[request.param]


def codes(certificate):
    return {one.code: one.text for one in certificate.findings}


def with_noise(mechanism, factor, shift=None):
    shift = mechanism.noise.shift if shift is None else shift
    return dataclasses.replace(mechanism.design, noise=CorrelatedNoise(np.array(factor), shift))


def reader_covariance(mechanism):
    return kernel(T, T) + NOISE * np.eye(len(T)) + mechanism.noise.covariance()


def ratios(mechanism, points, alpha=ALPHA):
    """std(f(s)|W)/floor(s) by dense float64 formulas."""
    cross = kernel(T, points)
    explained = np.einsum("ij,ij->j", cross, np.linalg.solve(reader_covariance(mechanism), cross))
    return np.sqrt((VARIANCE - explained) / ((1 - alpha) * VARIANCE))


def refuses(design, folder):
    """The certificate of the design fails, and so does every way to publish under it."""
    certificate = certify(design)
    assert not certificate.holds
    forged = Mechanism(design, certificate, SecretKey.fresh())
    with pytest.raises(sf.GuaranteeError, match="nothing was released"):
        forged.release(np.zeros(len(design.inputs))).save(folder / "forged.sfumato")
    with pytest.raises(sf.GuaranteeError):
        forged.release(np.zeros(len(design.inputs)), unsafe_seed=1)
    assert list(folder.iterdir()) == []
    assert "FAILS" in repr(forged)
    assert dict(certificate.rows())["holds"] == "NO"


def test_an_honest_design_holds(mechanism):
    assert certify(mechanism.design).holds


def test_scaling_the_noise_down_by_a_thousandth_is_found(mechanism, tmp_path):
    # greedy and exchange keep a hair of spare; everything is found beyond it
    scale = 0.999 if mechanism.certificate.cover not in ("greedy", "exchange") else 0.97
    refuses(with_noise(mechanism, scale * mechanism.noise.factor), tmp_path)


def test_a_missing_source_of_noise_is_found(mechanism, tmp_path):
    strongest = int(np.argmax(np.sum(mechanism.noise.factor**2, axis=0)))
    refuses(with_noise(mechanism, np.delete(mechanism.noise.factor, strongest, axis=1)), tmp_path)


def test_no_noise_at_all_is_found(mechanism, tmp_path):
    refuses(with_noise(mechanism, np.zeros((len(T), 0))), tmp_path)


def test_a_factor_of_zeros_is_found(mechanism, tmp_path):
    refuses(with_noise(mechanism, 0.0 * mechanism.noise.factor), tmp_path)


def test_noise_on_the_wrong_rows_is_found(mechanism, tmp_path):
    refuses(with_noise(mechanism, np.roll(mechanism.noise.factor, 9, axis=0)), tmp_path)


@pytest.mark.parametrize("change", ["longer", "larger"])
def test_a_reader_with_a_better_prior_is_found(mechanism, change, tmp_path):
    better = matern(2 * LENGTHSCALE, VARIANCE) if change == "longer" else matern(LENGTHSCALE, 4 * VARIANCE)
    prior = sf.Prior(kernel=better, noise=NOISE)
    refuses(dataclasses.replace(mechanism.design, prior=prior), tmp_path)


def test_data_more_exact_than_assumed_are_found(mechanism, tmp_path):
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE / 4)
    design = dataclasses.replace(mechanism.design, prior=prior)
    if mechanism.certificate.cover == "everywhere":
        # every row carries noise for what is its own, which is then more than it needs
        assert certify(design).holds
    else:
        refuses(design, tmp_path)


def test_a_removed_shift_in_a_singular_case_is_found(tmp_path):
    singular = sf.protect(sf.Prior(kernel=rbf(0.5)), T, sf.Box(1.0, 2.0), alpha=0.3)
    assert singular.noise.shift > 0
    assert singular.certificate.holds
    assert "safety-noise" in codes(singular.certificate)
    refuses(with_noise(singular, singular.noise.factor, shift=0.0), tmp_path)


def test_a_larger_region_or_a_stronger_promise_than_designed_for_is_found(tmp_path):
    mechanism = protect(sf.Box(1.0, 2.0))
    wider = sf.Box(0.5, 2.5).bind(mechanism.design.inputs)
    refuses(dataclasses.replace(mechanism.design, region=wider), tmp_path)
    stronger = dataclasses.replace(mechanism.tolerance, alpha=0.25)
    refuses(dataclasses.replace(mechanism.design, tolerance=stronger), tmp_path)


def test_values_that_are_hidden_while_their_difference_is_not_are_found(tmp_path):
    """One common noise on two rows: each value keeps its floor, but what one exceeds the other by is published."""
    pair = np.array([1.0, 1.1])
    mechanism = protect(sf.Points(pair[:, None]), x=pair)
    design = dataclasses.replace(mechanism.design, noise=CorrelatedNoise(np.full((2, 1), 50.0)))
    certificate = certify(design)
    assert certificate.promised_ratio > 1.1
    assert certificate.joint_ratio > 1.1
    refuses(design, tmp_path)


def test_noise_for_the_rows_does_not_pass_for_the_region(tmp_path):
    mechanism = protect(sf.Box(1.0, 2.0), cover="rows", alpha=0.1)
    claimed = dataclasses.replace(mechanism.design, cover="greedy")
    certificate = certify(claimed)
    assert certificate.joint_ratio <= 1 + 1e-9
    assert 0.98 < certificate.promised_ratio < 1
    refuses(claimed, tmp_path)


def test_a_floor_missed_by_a_millionth_is_found(tmp_path):
    mechanism = protect(sf.Points([[1.5]]))
    spare = mechanism.certificate.promised_ratio * (1 + 1e-6)
    stronger = sf.protect(mechanism.prior, T, sf.Points([[1.5]]), floor=spare * mechanism.certificate.worst_floor)
    refuses(dataclasses.replace(mechanism.design, tolerance=stronger.tolerance), tmp_path)


def test_more_noise_than_needed_still_holds_with_a_gap(mechanism):
    more = certify(with_noise(mechanism, 1.2 * mechanism.noise.factor))
    assert more.holds
    assert more.gap > max(0.1, mechanism.certificate.gap)
    assert "noise-above-least" in codes(more)
    assert ("noise-above-least" in codes(mechanism.certificate)) == (mechanism.certificate.gap > 0.1)
    assert more.joint_ratio < mechanism.certificate.joint_ratio
    independent = certify(with_noise(mechanism, mechanism.noise.factor, shift=0.1))
    assert independent.holds
    assert independent.gap > 0


def test_the_joint_ratio_is_the_dense_one(mechanism):
    if mechanism.certificate.cover == "everywhere":
        excess = reader_covariance(mechanism) - kernel(T, T) / ALPHA
        assert np.linalg.eigvalsh(excess)[0] >= -1e-9
        assert mechanism.certificate.joint_ratio == pytest.approx(1.0, abs=1e-6)
        return
    S = mechanism.sensitive[:, 0]
    cross, root = kernel(T, S), np.linalg.inv(np.linalg.cholesky(ALPHA * kernel(S, S)))
    seen = root @ cross.T @ np.linalg.solve(reader_covariance(mechanism), cross) @ root.T
    top = np.linalg.eigvalsh((seen + seen.T) / 2)[-1]
    assert mechanism.certificate.joint_ratio == pytest.approx(top, abs=1e-9)


def test_the_floor_ratio_is_the_dense_one_where_it_says(mechanism):
    certificate = mechanism.certificate
    there = ratios(mechanism, certificate.worst_input)[0]
    assert certificate.floor_ratio == pytest.approx(there, abs=1e-9)
    assert certificate.worst_floor == pytest.approx(np.sqrt((1 - ALPHA) * VARIANCE), rel=1e-9)
    assert certificate.worst_std == pytest.approx(there * certificate.worst_floor, rel=1e-8)


def test_the_worst_input_is_the_worst_on_a_finer_grid(mechanism):
    grid = {"points": np.array([0.5, 0.9, 1.7]), "everywhere": np.linspace(-0.3, 3.3, 20011)}
    grid = grid.get(mechanism.certificate.cover, np.linspace(1.0, 2.0, 20011))
    least = ratios(mechanism, grid).min()
    assert mechanism.certificate.floor_ratio <= least + 1e-6
    assert mechanism.certificate.floor_ratio == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("lowest", [[0.637], [0.447, 0.741], [0.447, 0.95]])
def test_the_walk_ends_in_the_lowest_place_of_the_region_between_its_starts(lowest):
    dimension = len(lowest)
    X = np.random.default_rng(6).random((30, dimension))
    prior = sf.Prior(kernel=matern([0.3] * dimension), noise=0.01)
    design = sf.protect(prior, X, sf.Points([[0.5] * dimension]), alpha=0.5).design
    box = sf.Box([0.2] * dimension, [0.8] * dimension).bind(design.inputs)
    coarse = np.column_stack([axis.ravel() for axis in np.meshgrid(*[np.linspace(0.2, 0.8, 7)] * dimension)])

    def bowl(points):
        return 1.0 + np.sum(np.square(points - lowest), axis=1)

    found = worse_inputs(dataclasses.replace(design, region=box), coarse, bowl(coarse), bowl)
    assert np.all(box.contains(found))
    best = np.clip(lowest, 0.2, 0.8)
    assert bowl(coarse).min() > bowl(best[None])[0] + 1e-3
    assert bowl(found).min() == pytest.approx(bowl(best[None])[0], abs=1e-7)


def test_the_promise_of_rows_is_checked_at_the_rows():
    mechanism = protect(sf.Box(1.0, 2.0), cover="rows", alpha=0.1)
    inside = T[(T >= 1.0) & (T <= 2.0)]
    assert mechanism.certificate.promised_ratio == pytest.approx(ratios(mechanism, inside, 0.1).min(), abs=1e-9)


def test_spill_is_the_share_of_noise_outside(mechanism):
    inside = mechanism.region.contains(T[:, None])
    variance = np.diag(mechanism.noise.covariance())
    expected = variance[~inside].sum() / variance.sum()
    assert mechanism.certificate.spill == pytest.approx(expected, abs=1e-12)
    if mechanism.certificate.cover == "everywhere":
        assert mechanism.certificate.spill == 0.0


def test_the_optimum_lies_between_the_lower_bound_and_the_trace(mechanism):
    certificate = mechanism.certificate
    A = kernel(T, T) + NOISE * np.eye(len(T))
    if certificate.cover == "everywhere":
        G = A / ALPHA
    else:
        S, records = mechanism.sensitive[:, 0], mechanism.design.records
        cross = np.hstack([kernel(T, S), A[:, records]])
        own = np.block([[kernel(S, S), cross[records, : len(S)].T], [cross[records]]])
        G = cross @ np.linalg.solve(ALPHA * own, cross.T)
    B = G - A
    optimum = np.sum(np.maximum(np.linalg.eigvalsh((B + B.T) / 2), 0.0))
    assert certificate.trace_lower <= optimum * (1 + 1e-9)
    assert optimum <= certificate.trace * (1 + 1e-9)
    assert certificate.trace == mechanism.noise.trace
    assert certificate.gap == pytest.approx(1 - certificate.trace_lower / certificate.trace, abs=1e-12)
    if certificate.cover in ("points", "rows", "everywhere"):
        assert certificate.gap < 1e-6


def test_everywhere_holds_far_outside_the_data():
    mechanism = protect(sf.Everywhere())
    far = np.concatenate([np.linspace(-40.0, 40.0, 4001), np.linspace(-1.0, 4.0, 4001)])
    assert ratios(mechanism, far).min() >= 1 - 1e-9


def test_the_certificate_can_be_read(mechanism):
    certificate = mechanism.certificate
    lines = str(certificate).splitlines()
    labels = [label for label, _ in certificate.rows()]
    assert len(lines) == len(labels)
    assert all(line.startswith(label) for line, label in zip(lines, labels, strict=True))
    assert labels[:3] == ["promise", "to readers with the", "holds"]
    table = dict(certificate.rows())
    assert table["holds"] == "yes"
    assert table["worst input"].startswith("x = ")
    assert "alpha = 0.3" in table["promise"]
    assert f"{certificate.trace:.6g}" in table["trace of the noise"]
    assert str(mechanism).endswith(str(certificate))


def test_the_certificate_is_ready_for_json(mechanism):
    plain = mechanism.certificate.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    fields = {field.name for field in dataclasses.fields(mechanism.certificate)} - {"encoding"}
    assert plain.keys() == fields | {"verdict"}


def test_a_certificate_without_floors_is_ready_for_json():
    mechanism = sf.protect(
        sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE),
        T,
        sf.Points([[1.0], [1.5]]),
        tolerance=sf.KernelTolerance(matern(LENGTHSCALE, 2 * VARIANCE)),
    )
    json.dumps(mechanism.certificate.as_dict(), allow_nan=False)


def test_the_file_gives_the_same_certificate_as_memory(mechanism, tmp_path):
    release = mechanism.release(np.sin(T))
    release.save(tmp_path / "t.sfumato")
    loaded = sf.load(tmp_path / "t.sfumato")
    # a design need not prove again what it has proved without noise
    told = mechanism.certificate.as_dict() | {"checked": None}
    assert loaded.certify().as_dict() | {"checked": None} == told
    assert release.certify().as_dict() | {"checked": None} == told


def test_round_off_is_counted_against_the_promise(mechanism):
    certificate = mechanism.certificate
    assert 0 < certificate.allowance < 1e-10
    assert certificate.floor_ratio <= ratios(mechanism, certificate.worst_input)[0] + 1e-12


@pytest.mark.parametrize(("region", "words"), [(sf.Box(1.0, None), "1 ≤ x ≤ 3"), (sf.Box(None, 2.0), "0 ≤ x ≤ 2")])
def test_an_open_side_is_promised_as_far_as_the_data_go_and_says_so(region, words):
    prior = sf.Prior(kernel=rbf(0.3), noise=1e-6)
    mechanism = sf.protect(prior, np.linspace(0.0, 3.0, 61), region, alpha=0.1)
    assert mechanism.certificate.holds
    assert words in mechanism.certificate.promise
    assert not mechanism.region.contains(np.array([[3.1]]))[0]


def test_a_union_with_everywhere_is_everywhere():
    x = np.linspace(0.0, 3.0, 61)
    mechanism = sf.protect(sf.Prior(kernel=rbf(1.0), noise=1e-6), x, sf.Box(1, 2) | sf.Everywhere(), alpha=0.1)
    far = np.linspace(-3.0, 6.0, 901)[:, None]
    cross = oracles.rbf(x[:, None], far, 1.0)
    M = oracles.rbf(x[:, None], x[:, None], 1.0) + 1e-6 * np.eye(61) + mechanism.noise.covariance()
    left = 1.0 - np.einsum("ij,ij->j", cross, np.linalg.solve(M, cross))
    assert mechanism.certificate.holds
    assert np.sqrt(left / 0.9).min() >= 1 - 1e-6


def test_a_design_without_sensitive_inputs_promises_nothing(mechanism, tmp_path):
    if mechanism.certificate.cover == "everywhere":
        assert mechanism.design.sensitive.shape[0] == 0
    else:
        refuses(dataclasses.replace(mechanism.design, sensitive=mechanism.design.sensitive[:0]), tmp_path)


def test_sensitive_inputs_outside_the_region_carry_no_promise(mechanism, tmp_path):
    if mechanism.certificate.cover != "everywhere":
        refuses(dataclasses.replace(mechanism.design, sensitive=np.array([[100.0]])), tmp_path)


def test_where_nothing_is_promised_it_says_so():
    tolerance = sf.KernelTolerance(matern(LENGTHSCALE, 2 * VARIANCE))
    prior = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)
    certificate = sf.protect(prior, T, sf.Box(1.0, 2.0), tolerance=tolerance).certificate
    assert certificate.holds
    assert certificate.findings[0].code == "no-floor-somewhere"
    assert certificate.verdict == "do not publish"


def test_the_certificate_names_the_prior_it_is_for(mechanism):
    assert "lengthscale 0." in mechanism.certificate.prior
    assert mechanism.certificate.prior in str(mechanism)


def test_rows_that_the_others_determine_are_not_promised_jointly_and_that_is_mentioned():
    x = np.sort(np.append(np.linspace(0, 3, 31), 1.5 + 1e-7))
    certificate = sf.protect(sf.Prior(kernel=rbf(0.5)), x, sf.Box(1.0, 2.0), alpha=0.2, cover="rows").certificate
    assert certificate.holds
    assert certificate.sensitive < 12
    assert f"{certificate.sensitive} of the 12 inputs" in codes(certificate)["fewer-sensitive-inputs"]


def test_a_varying_floor_that_a_file_gives_at_harmless_inputs_only_is_found():
    prior = sf.Prior(kernel=rbf(0.3), noise=0.01)
    mechanism = sf.protect(prior, T, sf.Box(1.0, 2.0), floor=lambda s: 0.5 + 0.3 * np.sin(s[:, 0]))
    tolerance = mechanism.tolerance
    honest = tolerance.tabulated(lambda: np.vstack([mechanism.sensitive, inputs_to_look_at(mechanism.design)]))
    assert certify(dataclasses.replace(mechanism.design, tolerance=honest)).holds
    harmless = tolerance.tabulated(lambda: np.vstack([mechanism.sensitive, [[1.5]]]))
    forged = certify(dataclasses.replace(mechanism.design, tolerance=harmless))
    assert not forged.holds
    assert {"floor-not-listed", "does-not-hold"} <= set(codes(forged))


def test_a_listed_floor_is_judged_by_how_densely_it_is_listed_not_by_which_inputs_are_listed():
    prior = sf.Prior(kernel=rbf([0.4, 0.4]), noise=0.05)
    X = np.random.default_rng(3).random((40, 2))
    mechanism = sf.protect(prior, X, sf.Box([0.2, 0.2], [0.8, 0.8]), floor=lambda s: 0.4 + 0.2 * s[:, 0])

    def holds_with(listed):
        table = mechanism.tolerance.tabulated(lambda: np.vstack([mechanism.sensitive, listed]))
        return certify(dataclasses.replace(mechanism.design, tolerance=table)).holds

    inside = X[np.all((X >= 0.2) & (X <= 0.8), axis=1)]
    a, b = np.meshgrid(np.linspace(0.2, 0.8, 45), np.linspace(0.2, 0.8, 45))
    grid = np.column_stack([a.ravel(), b.ravel()])
    assert holds_with(np.vstack([grid, inside]))
    assert not holds_with(grid)  # the rows, where most is learnt, are left out
    hole = np.max(np.abs(grid - 0.5), axis=1) < 0.12
    assert not holds_with(np.vstack([grid[~hole], inside[np.max(np.abs(inside - 0.5), axis=1) >= 0.12]]))
    assert not holds_with(np.vstack([grid[::5], inside]))


#: The files of its room that a certificate stands on, and what it takes from other rooms. Of these ``Demand``,
#: ``lower_bound`` and ``promised_root`` (how little noise is possible) serve designs as well.
STANDS_ON = {
    "cells",
    "certificate",
    "changes",
    "cost",
    "examination",
    "features",
    "findings",
    "grids",
    "insiders",
    "knowledge",
    "optimality",
    "privacy_loss",
    "promise_words",
    "records",
    "region",
    "related_outputs",
    "roundoff",
    "search",
    "served_sums",
    "sums",
}
ROOMS_BELOW = {"programs", "promise", "noise", "models", "regions", "data", "linalg"}
OF_PROGRAMS = {
    "Demand",
    "WhiteDemand",
    "insider_root",
    "lower_bound",
    "most_explained",
    "needed_everywhere",
    "promised_root",
}


def test_what_the_certificate_stands_on_is_listed():
    room = Path(sfumato.__file__).parent / "proof"
    files, rooms, programs, waiting = set(), set(), set(), ["examination"]
    while waiting:
        files.add(name := waiting.pop())
        for node in ast.walk(ast.parse((room / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 1:
                waiting += {node.module} - files
            elif isinstance(node, ast.ImportFrom) and node.level == 2 and (room.parent / node.module).is_dir():
                rooms.add(node.module)
                programs |= {alias.name for alias in node.names if node.module == "programs"}
    assert files == STANDS_ON
    assert rooms <= ROOMS_BELOW
    assert programs == OF_PROGRAMS


def test_everywhere_the_joint_ratio_is_not_below_what_readers_learn():
    """Also where the data tell so little that no noise is needed."""
    x, alpha, noise = np.linspace(0.0, 1.0, 8), 0.63, 42.0
    mechanism = sf.protect(
        sf.Prior(rbf(0.28, 3.5), noise=noise), x, sf.Everywhere(), alpha=alpha, protects="function", progress=False
    )
    K = 3.5 * np.exp(-0.5 * ((x[:, None] - x) / 0.28) ** 2)
    M = K + noise * np.eye(len(x)) + mechanism.noise.covariance()
    learnt = np.max(np.real(np.linalg.eigvals(np.linalg.solve(M, K)))) / alpha
    assert learnt <= mechanism.certificate.joint_ratio <= 1
