"""The factors of proof/roundoff.py beside errors measured with longer numbers, and the page that derives them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import torch

import sfumato as sf
from kernels import matern, rbf
from sfumato.arrays import UNIT
from sfumato.data.inputs import as_inputs
from sfumato.data.parts import Here
from sfumato.linalg.tensors import cholesky_in_place, inverse_norm
from sfumato.proof import roundoff
from sfumato.proof.features import Features, choose_centres
from sfumato.proof.knowledge import LEAST_INFORMATION
from sfumato.proof.sums import inverse, summarise

PAGE = Path(__file__).resolve().parents[2] / "docs" / "roundoff.md"
LONG = np.longdouble
KERNELS = {"rbf": rbf(0.3), "matern": matern(0.3)}

long_numbers = pytest.mark.skipif(np.finfo(LONG).eps > 2e-19, reason="this machine has no longer numbers than float64")


def test_the_page_names_every_factor_with_its_value():
    text = PAGE.read_text(encoding="utf-8")
    factors = {name: value for name, value in vars(roundoff).items() if name.isupper()}
    assert len(factors) >= 11
    assert re.search(r"`UNIT` `u = 2ε ≈ 2\.2e-16`", text)
    for name, value in factors.items():
        assert re.search(rf"^\| `{name}` \| {value:g}".replace("e-09", "e-9"), text, re.MULTILINE), name


def kernel(A, B, name):
    """The kernel in long numbers, from its definition and its parameters as they are."""
    variance = LONG(KERNELS[name].outputscale.item())
    lengthscale = LONG(KERNELS[name].base_kernel.lengthscale.item())
    squares = ((A[:, None].astype(LONG) - B[None].astype(LONG)) ** 2).sum(axis=-1) / lengthscale**2
    scaled = np.sqrt(3 * squares)
    return variance * (np.exp(-squares / 2) if name == "rbf" else (1 + scaled) * np.exp(-scaled))


def cholesky(M):
    M, lower = M.astype(LONG), np.zeros(M.shape, LONG)
    for j in range(len(M)):
        column = M[j:, j] - lower[j:, :j] @ lower[j, :j]
        lower[j:, j] = column / np.sqrt(column[0])
    return lower


def forward(lower, block):
    lower, solved = lower.astype(LONG), np.zeros(block.shape, LONG)
    for i in range(len(lower)):
        solved[i] = (block[i] - lower[i, :i] @ solved[:i]) / lower[i, i]
    return solved


def largest(E, scale=None):
    """The largest eigenvalue of E in units in which a diagonal is 1."""
    E = E.astype(np.float64) if scale is None else (E / np.sqrt(np.outer(scale, scale))).astype(np.float64)
    return np.linalg.eigvalsh((E + E.T) / 2)[-1]


@long_numbers
@pytest.mark.parametrize("noise", [1e-6, 1e-2])
@pytest.mark.parametrize("name", list(KERNELS))
def test_factors_for_the_rows_themselves_are_far_above_what_round_off_does(name, noise):
    rng = np.random.default_rng(0)
    X, S, n = rng.random((300, 2)), rng.random((30, 2)), 300
    prior = sf.Prior(kernel=KERNELS[name], noise=noise)
    M, k = prior.covariance(X) + noise * np.eye(n), prior.covariance(X, S)
    unit = n * UNIT * M.diagonal().max()
    lower = np.tril(cholesky_in_place(torch.from_numpy(M.copy())).numpy())
    formed = largest(M - kernel(X, X, name) - LONG(noise) * np.eye(n)) / unit
    factored = largest(lower.astype(LONG) @ lower.T.astype(LONG) - M) / unit
    assert formed + factored <= roundoff.FACTORED / 4
    assert np.abs(np.linalg.inv(M)).sum(axis=0).max() <= roundoff.ESTIMATED_INVERSE / 2 * inverse_norm(
        torch.from_numpy(lower)
    )
    solved = scipy.linalg.solve_triangular(lower, k, lower=True)
    error = np.abs(np.linalg.norm(solved, axis=0) - np.sqrt((forward(lower, kernel(X, S, name)) ** 2).sum(axis=0)))
    spare = UNIT * np.sqrt(n * M.diagonal().max() / np.linalg.eigvalsh(M)[0])
    assert float(error.max()) <= roundoff.SOLVED / 20 * spare


@long_numbers
@pytest.mark.parametrize(("name", "mean", "noise"), [("rbf", 1e-6, 0.3), ("rbf", 1e-9, 1e-4), ("matern", 1e-2, 0.3)])
def test_factors_for_sums_keep_bounds_on_the_safe_side(name, mean, noise):
    rng = np.random.default_rng(1)
    X, prior, unit = rng.random((3000, 2)), sf.Prior(kernel=KERNELS[name], noise=noise), UNIT
    inputs = as_inputs(X)
    centres = choose_centres(prior, inputs, sf.Box([0.2, 0.2], [0.5, 0.5]).bind(inputs), mean, 300).places
    features = Features.around(prior, centres)
    p, lower = len(features), features.lower
    summary = summarise([prior], [features], inputs, None, Here(), None, lambda rows: None)
    wrong = forward(lower, forward(lower, kernel(centres, centres, name)).T) - np.eye(p)
    size = np.sqrt(p) * unit * np.linalg.norm(lower, ord=2) ** 2
    assert largest(wrong, features.amplification) <= roundoff.FEATURE / 10 * size
    values = forward(lower, kernel(centres, X, name))
    assert largest(values @ values.T - summary.gram, summary.allowance) <= 0.1

    # noise that hides what is near some sensitive inputs, and what a reader then knows there: as sums.py has it
    S = 0.2 + 0.3 * rng.random((30, 2))
    mixing = scipy.linalg.solve_triangular(lower, features.at(S[:6]).T, lower=True, trans="T")
    c, sizes = lower.T @ mixing, np.linalg.norm(np.abs(lower.T) @ np.abs(mixing))
    of_c = np.linalg.norm((c - lower.T.astype(LONG) @ mixing.astype(LONG)).astype(np.float64))
    assert of_c <= roundoff.COEFFICIENTS / 4 * unit * sizes
    total = inverse(summary.information(0) + LEAST_INFORMATION["one prior"] * np.eye(p)) + c @ c.T
    total += np.diag(features.shares)
    total -= roundoff.FACTORED_SUMS * unit * np.diag(np.diag(total))
    factor = scipy.linalg.cholesky(total, lower=True)
    assert largest(factor.astype(LONG) @ factor.T.astype(LONG) - total, np.diag(total)) <= roundoff.FACTORED_SUMS * unit
    known = features.at(S).T
    explained = scipy.linalg.solve_triangular(factor, features.shares[:, None] * known, lower=True)
    slack = roundoff.SOLVED_SUMS * unit * p
    learnt = (np.linalg.norm(explained, axis=0) + slack) ** 2
    left = features.shares @ known**2 * (1 - roundoff.SOLVED_SUMS * unit) - learnt

    # the same in long numbers, without any factor: W = G(G + V)⁻¹ is what the rows tell, less the noise by Woodbury
    exact = cholesky(kernel(centres, centres, name))
    rows, there = forward(exact, kernel(centres, X, name)), forward(exact, kernel(centres, S, name))
    half = forward(cholesky(rows @ rows.T + LONG(noise) * np.eye(p)), np.eye(p))
    W, c = np.eye(p) - LONG(noise) * (half.T @ half), exact.T @ mixing.astype(LONG)
    hidden = forward(cholesky(np.eye(6) + c.T @ W @ c), c.T @ W)
    variance = (there**2).sum(axis=0) - (there * ((W - hidden.T @ hidden) @ there)).sum(axis=0)
    assert np.all(left <= variance)
    assert np.all(left >= variance * (1 - 1e-6))
