"""The same design and certificate wherever the n × n matrices live, and by whichever method they are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.design.plan import Asked, exact_plan
from sfumato.design.problem import DenseRows, Problem, Solution
from sfumato.design.solver import Solver
from sfumato.linalg.tensors import as_array, as_tensor, cholesky_in_place, inverse_norm
from sfumato.noise.noise import CorrelatedNoise, IndependentNoise
from sfumato.promise.readers import Reader
from sfumato.promise.tolerance import FractionTolerance
from sfumato.proof.examination import certify
from sfumato.proof.knowledge import ExactKnowledge
from sfumato.proof.optimality import optimality

CUDA = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA device on this machine"),
)
DEVICES = ["cpu", CUDA]

REGION = sf.Box([0.0, 0.0], [0.4, 0.4])


def data(rows=300, noise=0.01, kernel=None):
    X = np.random.default_rng(4).random((rows, 2))
    return sf.Prior(kernel=kernel or rbf([0.25, 0.25]), noise=noise), X


def problem(device=None, method="auto", weights=None, rows=300, noise=0.01, accuracy=None, region=REGION):
    prior, X = data(rows, noise)
    inputs = as_inputs(X)
    asked = Problem(
        prior,
        inputs,
        region.bind(inputs),
        FractionTolerance(0.3),
        weights,
    )
    return Solver(DenseRows(replace(asked, plan=exact_plan(asked.size, Asked(method, accuracy, device)))))


def sensitive(count=9):
    return 0.4 * np.stack(np.meshgrid(*[np.linspace(0.1, 0.9, int(count**0.5))] * 2), axis=-1).reshape(-1, 2)


def chosen_weights(kind, rows=300):
    rng = np.random.default_rng(5)
    if kind == "none":
        return None
    if kind == "diagonal":
        return rng.uniform(0.2, 5.0, rows)
    root = rng.standard_normal((rows, rows)) / rows**0.5
    return root @ root.T + np.eye(rows)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cover", ["rows", "auto"])
def test_a_protected_data_set_is_the_same_on_every_device(device, cover):
    prior, X = data()
    here = sf.protect(prior, X, REGION, alpha=0.3, cover=cover, progress=False)
    there = sf.protect(prior, X, REGION, alpha=0.3, cover=cover, device=device, progress=False)
    assert there.certificate.holds
    assert there.noise.covariance() == pytest.approx(here.noise.covariance(), abs=1e-8 * here.noise.trace)
    for name in ("joint_ratio", "floor_ratio", "promised_ratio", "trace", "trace_lower", "spill"):
        assert getattr(there.certificate, name) == pytest.approx(getattr(here.certificate, name), rel=1e-8), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["none", "diagonal", "matrix"])
@pytest.mark.parametrize("method", ["eigh", "subspace"])
def test_every_method_finds_the_least_noise(device, method, kind):
    weights = chosen_weights(kind)
    plain, other = problem(weights=weights, method="eigh"), problem(device, method, weights)
    program, root = plain.program(sensitive()), plain.program(sensitive()).roots[0]
    assert np.allclose(other.program(sensitive()).roots[0], root, rtol=0, atol=1e-10 * np.abs(root).max())
    best, found = program.solve(0.9).noise, other.program(sensitive()).solve(0.9).noise
    least = plain.weighted_trace(best)
    assert least * (1 - 1e-10) <= other.weighted_trace(found) <= least * (1 + 1e-7)
    A = as_array(plain.exposures[0].data_covariance)
    explained = np.linalg.solve(np.linalg.cholesky(A + found.covariance()), root / 0.9**0.5)
    assert np.linalg.norm(explained, 2) ** 2 <= 1 + 1e-10
    assert other.price_of_tightening(Solution(found)) == pytest.approx(
        plain.price_of_tightening(Solution(best)), rel=1e-4
    )


@pytest.mark.parametrize("kind", ["none", "diagonal", "matrix"])
def test_tightening_costs_what_it_is_said_to(kind):
    task = problem(weights=chosen_weights(kind), method="eigh")
    program = task.program(sensitive())
    at = program.solve(1.0).noise
    value, ahead = task.weighted_trace(at), task.weighted_trace(program.solve(1.0 - 1e-5).noise)
    assert (ahead - value) / value == pytest.approx(1e-5 / task.price_of_tightening(Solution(at)), rel=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("noise", [0.01, 0.0])
def test_what_readers_use_is_the_same_on_every_device(device, noise):
    """With V = 0 A is singular, and nothing is solved with it alone."""
    here, there = problem(noise=noise), problem(device, noise=noise)
    programs = [task.program(sensitive()) for task in (here, there)]
    found = programs[0].solve(1.0).noise
    points = 0.4 * np.random.default_rng(6).random((50, 2))
    keep = np.arange(59) % 2 == 0
    probes = [task.probes(points).joined(task.probes(points[:9])).where(keep) for task in (here, there)]
    learnt = here.learnt(found, probes[0])
    assert there.learnt(found, probes[1]) == pytest.approx(learnt, rel=1e-6 if noise == 0 else 1e-9)
    assert [program.solver.is_well_conditioned for program in programs] == [noise > 0] * 2
    if noise:
        roughly = [program.roughly_learnt(seen)(1.0) for program, seen in zip(programs, probes, strict=True)]
        assert roughly[1] == pytest.approx(roughly[0], rel=1e-9)
    much = CorrelatedNoise(np.eye(300))
    assert there.learnt(much, probes[1]) == pytest.approx(here.learnt(much, probes[0]), rel=1e-9)
    assert [task.exposures[0].shift(1e-14) == 0 for task in (here, there)] == [noise > 0] * 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_readers_and_bounds_are_the_same_on_every_device(device, weighted, structure):
    prior, X = data(80)
    weights = np.linspace(0.5, 2.0, 80) if weighted else None
    design = sf.protect(
        prior, X, sf.Points(sensitive(4)), alpha=0.3, weights=weights, structure=structure, progress=False
    ).design
    here, there = (
        ExactKnowledge(design, Reader(prior), design.noise),
        ExactKnowledge(design, Reader(prior), design.noise, device),
    )
    points = sensitive(25)
    assert there.deviations(points) == pytest.approx(here.deviations(points), rel=1e-9)
    assert there.joint_ratio() == pytest.approx(here.joint_ratio(), rel=1e-9)
    assert there.least == pytest.approx(here.least, rel=1e-6)
    first, second = optimality(design, [here]), optimality(design, [there])
    assert (second.trace, second.lower) == pytest.approx((first.trace, first.lower), rel=1e-9)
    assert second.gap == pytest.approx(first.gap, abs=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_the_promise_everywhere_is_the_same_on_every_device(device):
    prior, X = data(60)
    design = sf.protect(prior, X, sf.Everywhere(), alpha=0.5, progress=False).design
    task = problem(device, rows=60, region=sf.Everywhere())
    plain = problem(rows=60, region=sf.Everywhere())
    traces = [one.program_everywhere().solve(0.9).noise.trace for one in (task, plain)]
    assert traces[0] == pytest.approx(traces[1], rel=1e-9)
    here, there = (
        ExactKnowledge(design, Reader(prior), design.noise),
        ExactKnowledge(design, Reader(prior), design.noise, device),
    )
    assert there.joint_ratio() == pytest.approx(here.joint_ratio(), rel=1e-9)
    assert optimality(design, [there]).lower == pytest.approx(optimality(design, [here]).lower, rel=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("block", [1 << 25, 5000, 1])
def test_covariances_made_by_blocks_of_rows(monkeypatch, device, block):
    monkeypatch.setattr("sfumato.promise.readers.BLOCK", block)
    V = np.linspace(0.1, 0.2, 70)
    prior, X = data(70, V, matern([0.3, 0.2], 2.0))
    inputs, reader = as_inputs(X), Reader(prior)
    A = as_array(reader.data_covariance(inputs, device))
    assert np.array_equal(A, A.T)
    assert np.allclose(A, prior.covariance(X) + np.diag(V), rtol=0, atol=1e-14)
    vectors = np.random.default_rng(7).standard_normal((70, 3))
    assert as_array(reader.data_times(inputs, as_tensor(vectors, device))) == pytest.approx(A @ vectors, abs=1e-11)
    assert as_array(reader.function.with_data(inputs, X[:5], device)) == pytest.approx(
        prior.covariance(X, X[:5]), abs=1e-14
    )
    for noise in (CorrelatedNoise(vectors, 0.5), IndependentNoise(V)):
        total = noise.add_to(reader.data_covariance(inputs, device))
        assert as_array(total) == pytest.approx(A + noise.covariance(), abs=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_cholesky_factors_are_made_in_place(device):
    root = np.random.default_rng(8).standard_normal((50, 60))
    matrix = as_tensor(root @ root.T, device).clone()
    expected, place = np.linalg.cholesky(root @ root.T), matrix.data_ptr()
    lower = cholesky_in_place(matrix)
    assert lower.data_ptr() == place
    assert as_array(lower) == pytest.approx(expected, abs=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        cholesky_in_place(as_tensor(np.diag([1.0, -1.0]), device).clone())
    with pytest.raises(np.linalg.LinAlgError):
        cholesky_in_place(as_tensor(np.full((2, 2), np.nan), device).clone())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [1, 2, 7, 120])
def test_the_norm_of_an_inverse_is_that_of_lapack(device, n):
    from scipy.linalg.lapack import dpocon

    rng = np.random.default_rng(n)
    x = np.sort(rng.random(n))
    for A in (np.exp(-((x[:, None] - x) ** 2) / 0.02) + 1e-6 * np.eye(n), np.diag(rng.random(n) + 1e-3)):
        lower, norm = np.linalg.cholesky(A), float(np.abs(A).sum(axis=0).max())
        estimate = inverse_norm(as_tensor(lower, device))
        assert estimate == pytest.approx(1.0 / (dpocon(lower, norm, uplo="L")[0] * norm), rel=1e-6)
        assert estimate <= np.abs(np.linalg.inv(A)).sum(axis=0).max() * (1 + 1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_certificate_can_be_checked_again_on_a_device(device):
    prior, X = data(100)
    mechanism = sf.protect(prior, X, REGION, alpha=0.3, progress=False)
    again = certify(mechanism.design, device=device)
    assert again.holds
    assert again.floor_ratio == pytest.approx(mechanism.certificate.floor_ratio, rel=1e-8)


def test_many_rows_take_the_subspace_method_by_themselves():
    task = problem(rows=1100)
    by_itself = task.program(sensitive()).solve(1.0).noise
    basis = task.closed_form._subspace
    assert basis is not None
    size = basis.size
    assert size > 0
    least = problem(rows=1100, method="eigh").program(sensitive()).solve(1.0).noise.trace
    assert by_itself.trace == pytest.approx(least, rel=1e-7)
    task.program(sensitive()).solve(0.9)
    assert basis.size <= 1.3 * size


def test_the_accuracy_can_be_asked_for():
    rough, fine = problem(method="subspace", accuracy=1e-2), problem(method="subspace")
    some, least = (task.program(sensitive()).solve(1.0).noise.trace for task in (rough, fine))
    assert least * (1 + 1e-7) < some <= least * 1.01
    assert rough.closed_form._subspace.size < fine.closed_form._subspace.size


def test_a_subspace_that_gave_up_is_not_tried_again(monkeypatch):
    from sfumato.linalg.subspace import FeasibleSubspace

    tried = []
    monkeypatch.setattr(FeasibleSubspace, "positive_part", lambda self, U, accuracy: tried.append(U.shape[1]))
    task, plain = problem(method="subspace"), problem(method="eigh")
    for count in (16, 16, 25, 9, 9):
        traces = [one.program(sensitive(count)).solve(1.0).noise.trace for one in (task, plain)]
        assert traces[0] == pytest.approx(traces[1], rel=1e-10)
    assert tried == [16, 9]


def test_few_rows_or_a_singular_covariance_take_an_eigensolver():
    for task in (problem(rows=300), problem(rows=1100, noise=0.0)):
        task.program(sensitive()).solve(1.0)
        assert "_subspace" not in task.closed_form.__dict__ or task.closed_form._subspace is None


@pytest.mark.parametrize("device", DEVICES)
def test_a_compressed_design_is_the_same_on_every_device(device):
    prior, X = data(rows=1500)
    y, made = np.sin(5.0 * X[:, 0]), []
    for where in ("cpu", device):
        mechanism = sf.protect(prior, X, REGION, alpha=0.3, method="compressed", device=where)
        release = mechanism.release(y, unsafe_seed=3, resolution=1e-8)
        assert release.certify(device=where).holds
        made.append((mechanism, release))
    (here, known), (there, found) = made
    assert there.noise.trace == pytest.approx(here.noise.trace, rel=1e-8)
    assert there.certificate.floor_ratio == pytest.approx(here.certificate.floor_ratio, abs=1e-8)
    assert found.outputs == pytest.approx(known.outputs, abs=2e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_the_best_predictions_are_the_same_on_every_device(device):
    prior, X = data(150)
    options = {"alpha": 0.3, "protects": "function", "objective": "predictions", "progress": False}
    found = [sf.protect(prior, X, REGION, device=where, **options) for where in (None, device)]
    here, there = (mechanism.certificate for mechanism in found)
    assert there.holds
    assert there.explained == pytest.approx(here.explained, rel=1e-6)
    assert there.explained_upper == pytest.approx(here.explained_upper, rel=1e-6)
