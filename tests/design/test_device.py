"""The same design and certificate wherever the n × n matrices live, and by whichever method they are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.design.problem import Audience, Problem
from sfumato.linalg.tensors import as_array, as_tensor, cholesky_in_place, inverse_norm
from sfumato.noise.noise import CorrelatedNoise, IndependentNoise
from sfumato.promise.tolerance import FractionTolerance
from sfumato.proof.certificate import certify
from sfumato.proof.optimality import optimality
from sfumato.proof.reader import Covariances, Reader, add_noise

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
    return Problem(
        prior,
        inputs,
        region.bind(inputs),
        FractionTolerance(0.3),
        weights,
        method=method,
        device=device,
        accuracy=accuracy,
    )


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
    roots = plain.roots(sensitive())
    assert np.allclose(other.roots(sensitive())[0], roots[0], rtol=0, atol=1e-10 * np.abs(roots[0]).max())
    best, found = plain.solve(roots, 0.9).noise, other.solve(roots, 0.9).noise
    least = plain.objective(best)
    assert least * (1 - 1e-10) <= other.objective(found) <= least * (1 + 1e-7)
    A = as_array(plain.audiences[0].data_covariance)
    explained = np.linalg.solve(np.linalg.cholesky(A + found.covariance()), roots[0] / 0.9**0.5)
    assert np.linalg.norm(explained, 2) ** 2 <= 1 + 1e-10
    assert other.trace_by_tightening(found) == pytest.approx(plain.trace_by_tightening(best), rel=1e-4)


@pytest.mark.parametrize("kind", ["none", "diagonal", "matrix"])
def test_tightening_costs_what_it_is_said_to(kind):
    task = problem(weights=chosen_weights(kind), method="eigh")
    roots = task.roots(sensitive())
    at = task.solve(roots, 1.0).noise
    value, ahead = task.objective(at), task.objective(task.solve(roots, 1.0 - 1e-5).noise)
    assert (ahead - value) / value == pytest.approx(1e-5 / task.trace_by_tightening(at), rel=1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("noise", [0.01, 0.0])
def test_what_readers_use_is_the_same_on_every_device(device, noise):
    """With V = 0 A is singular, and nothing is solved with it alone."""
    here, there = problem(noise=noise), problem(device, noise=noise)
    roots = here.roots(sensitive())
    found = here.solve(roots, 1.0).noise
    points = 0.4 * np.random.default_rng(6).random((50, 2))
    looks = [task.look(points).joined(task.look(points[:9])).where(np.arange(59) % 2 == 0) for task in (here, there)]
    assert there.usage(found, looks[1]) == pytest.approx(here.usage(found, looks[0]), rel=1e-6 if noise == 0 else 1e-9)
    assert (here.rough_usage(roots, looks[0]) is None) == (there.rough_usage(roots, looks[1]) is None) == (noise == 0)
    if noise:
        assert there.rough_usage(roots, looks[1]) == pytest.approx(here.rough_usage(roots, looks[0]), rel=1e-9)
    much = CorrelatedNoise(np.eye(300))
    assert there.usage(much, looks[1]) == pytest.approx(here.usage(much, looks[0]), rel=1e-9)
    assert [task.audiences[0].positive_without(1e-12) for task in (here, there)] == [noise > 0] * 2


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_readers_and_bounds_are_the_same_on_every_device(device, weighted, structure):
    prior, X = data(80)
    weights = np.linspace(0.5, 2.0, 80) if weighted else None
    design = sf.protect(
        prior, X, sf.Points(sensitive(4)), alpha=0.3, weights=weights, structure=structure, progress=False
    ).design
    here, there = Reader(design, prior), Reader(design, prior, device)
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
    assert task.solve_everywhere(0.9).noise.trace == pytest.approx(plain.solve_everywhere(0.9).noise.trace, rel=1e-9)
    here, there = Reader(design, prior), Reader(design, prior, device)
    assert there.joint_ratio() == pytest.approx(here.joint_ratio(), rel=1e-9)
    assert optimality(design, [there]).lower == pytest.approx(optimality(design, [here]).lower, rel=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("block", [1 << 25, 5000, 1])
def test_covariances_made_by_blocks_of_rows(monkeypatch, device, block):
    monkeypatch.setattr("sfumato.proof.reader.BLOCK", block)
    V = np.linspace(0.1, 0.2, 70)
    prior, X = data(70, V, matern([0.3, 0.2], 2.0))
    inputs, made = as_inputs(X), Covariances(prior, device)
    A = as_array(made.of_data(inputs))
    assert np.array_equal(A, A.T)
    assert np.allclose(A, prior.covariance(X) + np.diag(V), rtol=0, atol=1e-14)
    vectors = np.random.default_rng(7).standard_normal((70, 3))
    assert as_array(made.data_times(inputs, as_tensor(vectors, device))) == pytest.approx(A @ vectors, abs=1e-11)
    assert as_array(made.between(X, X[:5])) == pytest.approx(prior.covariance(X, X[:5]), abs=1e-14)
    for noise in (CorrelatedNoise(vectors, 0.5), IndependentNoise(V)):
        total = add_noise(made.of_data(inputs), noise)
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
    roots = task.roots(sensitive())
    by_itself = task.solve(roots, 1.0).noise
    basis = task.closed_form._subspace
    assert basis is not None
    size = basis.size
    assert size > 0
    assert by_itself.trace == pytest.approx(problem(rows=1100, method="eigh").solve(roots, 1.0).noise.trace, rel=1e-7)
    task.solve(roots, 0.9)
    assert basis.size <= 1.3 * size


def test_the_accuracy_can_be_asked_for():
    rough, fine = problem(method="subspace", accuracy=1e-2), problem(method="subspace")
    roots = fine.roots(sensitive())
    some, least = rough.solve(roots, 1.0).noise.trace, fine.solve(roots, 1.0).noise.trace
    assert least * (1 + 1e-7) < some <= least * 1.01
    assert rough.closed_form._subspace.size < fine.closed_form._subspace.size


def test_a_subspace_that_gave_up_is_not_tried_again(monkeypatch):
    from sfumato.linalg.subspace import FeasibleSubspace

    tried = []
    monkeypatch.setattr(FeasibleSubspace, "positive_part", lambda self, U, accuracy: tried.append(U.shape[1]))
    task, plain = problem(method="subspace"), problem(method="eigh")
    for count in (16, 16, 25, 9, 9):
        roots = task.roots(sensitive(count))
        assert task.solve(roots, 1.0).noise.trace == pytest.approx(plain.solve(roots, 1.0).noise.trace, rel=1e-10)
    assert tried == [16, 9]


def test_few_rows_or_a_singular_covariance_take_an_eigensolver():
    for task in (problem(rows=300), problem(rows=1100, noise=0.0)):
        task.solve(task.roots(sensitive()), 1.0)
        assert "_subspace" not in task.closed_form.__dict__ or task.closed_form._subspace is None


def test_rows_are_not_solved_as_if_they_were_compressed():
    task = problem(method="compressed")
    with pytest.raises(sf.InputError, match="compress"):
        task.solve(task.roots(sensitive()), 1.0)


def test_an_audience_says_how_many_rows_it_has():
    prior, X = data(30)
    assert Audience(prior, as_inputs(X), FractionTolerance(0.3)).size == 30


@pytest.mark.parametrize("device", DEVICES)
def test_a_compressed_design_is_the_same_on_every_device(device):
    prior, X = data(rows=1500)
    y, made = np.sin(5.0 * X[:, 0]), []
    for where in ("cpu", device):
        mechanism = sf.protect(prior, X, REGION, alpha=0.3, method="compressed", device=where)
        release = mechanism.release(y, unsafe_seed=3, resolution=1e-12)
        assert release.certify(device=where).holds
        made.append((mechanism, release))
    (here, known), (there, found) = made
    assert there.noise.trace == pytest.approx(here.noise.trace, rel=1e-8)
    assert there.certificate.floor_ratio == pytest.approx(here.certificate.floor_ratio, abs=1e-8)
    assert found.outputs == pytest.approx(known.outputs, abs=1e-8)
