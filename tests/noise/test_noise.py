"""Every noise keeps one contract: in whatever form, it is the matrix it stands for."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch

import sfumato as sf
from kernels import matern, rbf
from sfumato.data.inputs import as_inputs
from sfumato.noise.noise import CorrelatedNoise, FunctionalNoise, IndependentNoise, no_noise

RNG = np.random.default_rng(0)
X = np.linspace(0.0, 3.0, 6)[:, None]
FACTOR = RNG.standard_normal((6, 2))
VARIANCES = np.array([0.5, 0.0, 2.0, 1.0, 0.1, 3.0])
PRIORS = (sf.Prior(rbf(0.7), noise=0.1), sf.Prior(matern(0.5), noise=0.2))
CENTRES = (np.array([[0.2], [1.4]]), np.array([[0.9], [2.0], [2.8]]))
MIXING = RNG.standard_normal((5, 3))


def functional_covariance():
    blocks = [prior.covariance(X, centres) for prior, centres in zip(PRIORS, CENTRES, strict=True)]
    factor = np.hstack(blocks) @ MIXING
    return factor @ factor.T


#: A noise, Σ as a matrix, and how many normals a draw takes.
CASES = {
    "correlated": lambda: (CorrelatedNoise(FACTOR), FACTOR @ FACTOR.T, 2),
    "shifted": lambda: (CorrelatedNoise(FACTOR, 0.3), FACTOR @ FACTOR.T + 0.3 * np.eye(6), 8),
    "independent": lambda: (IndependentNoise(VARIANCES), np.diag(VARIANCES), 6),
    "none": lambda: (no_noise(6), np.zeros((6, 6)), 0),
    "functional": lambda: (FunctionalNoise(PRIORS, CENTRES, MIXING, as_inputs(X)), functional_covariance(), 3),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]()


def close(found, expected):
    return np.allclose(found, expected, rtol=1e-12, atol=1e-12)


class TestContract:
    def test_all_views_are_those_of_the_matrix(self, case):
        noise, sigma, _ = case
        assert noise.rows == 6
        assert close(noise.covariance(), sigma)
        assert close(noise.factor @ noise.factor.T + noise.shift * np.eye(6), sigma)
        assert close(noise.variance(), np.diag(sigma))
        assert close(noise.variance_at(X), np.diag(sigma))
        assert close([noise.trace, noise.rms**2 * 6], np.trace(sigma))
        assert noise.rank == (np.linalg.matrix_rank(noise.factor) if noise.factor.size else 0)
        assert noise.least <= np.linalg.eigvalsh(sigma)[0] + 1e-12

    def test_it_is_added_to_a_matrix_in_place(self, case):
        noise, sigma, _ = case
        matrix = torch.ones(6, 6, dtype=torch.float64)
        assert noise.add_to(matrix) is matrix
        assert close(matrix.numpy(), 1.0 + sigma)

    def test_draws_are_linear_in_the_normals_and_have_exactly_the_covariance(self, case):
        noise, sigma, normals = case
        assert noise.normals_needed == normals
        root = np.array([noise.draw(unit) for unit in np.eye(normals)]).reshape(normals, 6).T
        assert close(root @ root.T, sigma)
        assert close(noise.draw(np.arange(1.0, normals + 1)), root @ np.arange(1.0, normals + 1))

    def test_some_rows_of_it_and_other_units(self, case):
        noise, sigma, _ = case
        rows, scale = np.array([4, 0, 1]), np.array([1.0, 2.0, 0.5, 4.0, 1.0, 8.0])
        assert close(noise.restricted(rows).covariance(), sigma[np.ix_(rows, rows)])
        assert noise.restricted(np.arange(6)) is noise
        assert close(noise.in_units(scale).covariance(), sigma / np.outer(scale, scale))
        assert close(noise.in_units(np.full(6, 2.0)).covariance(), sigma / 4.0)

    def test_none_of_it_is_of_the_same_kind(self, case):
        nothing = case[0].none_at(as_inputs(X[:4]))
        assert nothing.compressed == case[0].compressed
        assert close(nothing.covariance(), np.zeros((4, 4)))

    def test_nobody_can_change_it(self, case):
        for array in case[0].arrays().values():
            if array.base is None and array.size and not any(array is centres for centres in CENTRES):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0.0

    def test_only_a_function_is_compressed(self, case):
        noise = case[0]
        if noise.compressed:
            assert noise.as_function() is noise
        else:
            with pytest.raises(sf.InputError, match='design it with method="compressed"'):
                noise.as_function()


def digest(noise, inputs=X, sensitive=X[:2], prior=PRIORS[0]):
    return hashlib.sha256(b"".join(noise.digest_parts(as_inputs(inputs), sensitive, prior))).digest()


def test_digests_tell_noises_data_and_promises_apart():
    noises = [CASES[name]()[0] for name in CASES]
    found = [digest(noise) for noise in noises]
    found += [digest(noise, X + 0.1) for noise in noises]
    found += [digest(noise, sensitive=X[:3]) for noise in noises]
    found += [digest(noise, prior=PRIORS[1]) for noise in noises]
    assert len(set(found)) == len(found)
    assert digest(CorrelatedNoise(FACTOR.copy())) == found[0]


def test_the_callers_array_is_left_alone():
    mine = FACTOR.astype(np.float64)
    noise = CorrelatedNoise(mine)
    mine[0, 0] += 1.0
    assert np.array_equal(noise.factor, FACTOR)
