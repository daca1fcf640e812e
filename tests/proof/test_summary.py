"""The sums over the rows: equal to dense ones however the rows are dealt out, and never less than the rows tell."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.linalg

import sfumato as sf
from kernels import matern, rbf
from oracles import DIGITS, exact, forward50, rbf50
from sfumato.data.inputs import as_inputs
from sfumato.data.parts import ArrayPart, Here
from sfumato.proof.features import Features, choose_centres
from sfumato.proof.sums import Gram, inverse, summarise


def summary_of(priors, features, X, weights=None, outputs=None):
    return summarise(priors, features, as_inputs(X), weights, Here(), None, lambda rows: None, outputs)


def problem(rows=300, noise="number"):
    rng = np.random.default_rng(rows)
    X = rng.random((rows, 2))
    V = rng.uniform(0.5, 2.0, rows) if noise == "array" else 0.3
    priors = [
        sf.Prior(kernel=rbf([0.4, 0.5], 1.3), noise=V, mean=0.7),
        sf.Prior(kernel=matern([0.6, 0.4], 0.8), noise=0.2),
    ]
    features = [Features.around(priors[0], rng.random((15, 2))), Features.around(priors[1], rng.random((9, 2)))]
    return priors, features, X, rng.uniform(0.1, 4.0, rows), rng.standard_normal(rows)


def dense(priors, features, X, weights, outputs):
    values = np.hstack([own.at(X) for own in features])
    V = [prior.noise_variance(len(X)) for prior in priors]
    left = [p.variance(X) - np.sum(own.at(X) ** 2, axis=1) for p, own in zip(priors, features, strict=True)]
    residual = values.T @ ((outputs - priors[0].mean_at(X)) / V[0])

    def gram(scale):
        return values.T @ (scale[:, None] * values)

    return gram, V, left, residual


@pytest.mark.parametrize("noise", ["number", "array"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_totals_are_those_of_dense_matrices(noise, weighted):
    priors, features, X, weights, outputs = problem(noise=noise)
    summary = summary_of(priors, features, X, weights if weighted else None, outputs)
    gram, V, left, projection = dense(priors, features, X, weights, outputs)
    C = weights if weighted else np.ones(len(X))
    assert (len(summary), summary.rows) == (24, 300)
    assert summary.slices == (slice(0, 15), slice(15, 24))
    close = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(summary.gram, gram(np.ones(len(X))), **close)
    np.testing.assert_allclose(summary.weighted_gram, gram(C), **close)
    np.testing.assert_allclose(summary.projection, projection, **close)
    for number in (0, 1):
        np.testing.assert_allclose(summary.noise_gram(number), gram(C**2 * V[number]), **close)
        assert summary.residual(number, weighted=False) == pytest.approx(left[number].sum(), rel=1e-9)
        assert summary.residual(number, weighted=True) == pytest.approx(C @ left[number], rel=1e-9)
        information = summary.information(number)
        np.testing.assert_allclose(information, gram(1 / V[number]), rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(information, information.T)


@pytest.mark.parametrize("rows", [1, 7, 64, 299, 300])
def test_parts_of_any_size_give_the_same_totals(rows):
    priors, features, X, weights, outputs = problem(noise="array")
    columns = {"noise_0": priors[0].noise, "weights": weights, "outputs": outputs}
    work = Gram(tuple(features), (0,), True, True)
    done = []
    split = Here().total(work, ArrayPart.of(X, columns, rows), done.append)
    whole = Here().total(work, ArrayPart.of(X, columns), lambda rows: None)
    assert sum(done) == 300
    assert split.keys() == whole.keys()
    for name, total in whole.items():
        np.testing.assert_allclose(split[name], total, rtol=1e-12, atol=1e-12 * np.abs(total).max())
        np.testing.assert_array_equal(split[name], split[name].T)


def test_many_blocks_of_rows_are_summed_up():
    priors, features, X, _, _ = problem(rows=9001)
    summary = summary_of(priors, features, X)
    values = np.hstack([own.at(X) for own in features])
    assert summary.rows == 9001
    np.testing.assert_allclose(summary.gram, values.T @ values, rtol=1e-11, atol=1e-9)


def long_kernel(kind, a, b, prior):
    """The kernel in extended precision, with the parameters as they are published."""
    base, L = prior.kernel.base_kernel, np.longdouble
    squares = np.zeros((len(a), len(b)), dtype=L)
    for column, lengthscale in enumerate(base.lengthscale.numpy().ravel()):
        squares += ((a[:, column, None].astype(L) - b[:, column].astype(L)) / L(lengthscale)) ** 2
    if kind is rbf:
        return L(float(prior.kernel.outputscale)) * np.exp(-squares / 2)
    distance = np.sqrt(3 * squares)
    return L(float(prior.kernel.outputscale)) * (1 + distance) * np.exp(-distance)


def long_information(kind, features, X):
    """ΦᵀV⁻¹Φ for the float64 L as it is."""
    prior, values = features.prior, long_kernel(kind, features.centres, X, features.prior)
    lower = features.lower.astype(np.longdouble)
    for row in range(len(lower)):
        values[row] = (values[row] - lower[row, :row] @ values[:row]) / lower[row, row]
    return (values / prior.noise_variance(len(X)).astype(np.longdouble)) @ values.T


def spare(summary, truth):
    """How much of the allowance is left, at worst, in any direction: 1 is all of it, below 0 it was too small."""
    information = summary.information(0)
    known = summary.noises[0]
    bare = summary.totals["precision_0"] if known is None else summary.gram / known
    allowance = np.diag(information) - np.diag(bare)
    scale = 1 / np.sqrt(allowance)
    over = np.asarray(information - truth, dtype=np.float64) * scale[:, None] * scale
    return float(scipy.linalg.eigvalsh((over + over.T) / 2)[0]), float(allowance.sum() / np.trace(bare))


ROWS = np.random.default_rng(1).random((5000, 2))
CASES = {
    "smooth": (rbf, 0.02, 1, 0.5),
    "smooth, two inputs": (rbf, [0.35, 0.35], 2, 0.5),
    "rough": (matern, 0.5, 1, 0.5),
    "rows of very different precision": (rbf, 0.05, 1, 10 ** np.random.default_rng(2).uniform(-6, 0, 5000)),
    "a few precise rows": (rbf, 0.05, 1, np.where(ROWS[:, 0] < 0.02, 1e-6, 1.0)),
    "one almost exact row": (rbf, 0.1, 1, np.where(np.arange(5000) == 7, 1e-8, 1.0)),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_information_is_never_less_than_the_rows_tell_and_hardly_more(case):
    kind, lengthscale, dimension, noise = CASES[case]
    X, prior = ROWS[:, :dimension], sf.Prior(kernel=kind(lengthscale), noise=noise)
    inputs = as_inputs(X)
    region = sf.Box([0.3] * dimension, [0.6] * dimension).bind(inputs)
    places = choose_centres(prior, inputs, region, 1e-9 if kind is rbf else 1e-5).places
    features = Features.around(prior, places)
    summary = summary_of([prior], [features], X)
    least, share = spare(summary, long_information(kind, features, X))
    assert least > 0.5
    assert share < 1e-6


@pytest.mark.parametrize("spacing", [0.5, 0.4])
def test_the_allowance_covers_ill_conditioned_centres_in_fifty_digits(spacing):
    prior = sf.Prior(kernel=rbf(1.0), noise=0.1)
    features = Features.around(prior, spacing * np.arange(25.0)[:, None])
    X = np.random.default_rng(3).uniform(0, 25 * spacing, (30, 1))
    summary = summary_of([prior], [features], X)
    with mpmath.workdps(DIGITS):
        values = forward50(exact(features.lower), rbf50(features.centres, X, 1.0))
        truth = values.dot(values.T) / mpmath.mpf(0.1)
        mpmath.cholesky(exact(summary.information(0)) - mpmath.matrix(truth.tolist()))


def test_the_allowance_does_not_depend_on_units():
    X = ROWS[:200, :1]
    totals = []
    for scale in (1e-8, 1.0, 1e8):
        prior = sf.Prior(kernel=rbf(0.2, scale), noise=0.1 * scale)
        summary = summary_of([prior], [Features.around(prior, np.linspace(0, 1, 12)[:, None])], X)
        totals.append(summary.information(0) - summary.gram / summary.noises[0])
    np.testing.assert_allclose(totals[0], totals[1], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(totals[2], totals[1], rtol=1e-6, atol=1e-30)


def test_the_inverse_is_one():
    root = np.random.default_rng(4).standard_normal((20, 20))
    matrix = root @ root.T + np.eye(20)
    np.testing.assert_allclose(inverse(matrix) @ matrix, np.eye(20), atol=1e-10)
