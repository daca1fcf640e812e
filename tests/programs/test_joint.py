"""The joint program's root and closed form, against dense inverses and the dual."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.programs.joint import explaining_root, joint_noise_factor


def random_psd(size, rank, seed=0):
    root = np.random.default_rng(seed).standard_normal((size, rank))
    return root @ root.T


def test_the_explaining_root_squares_to_what_the_sensitive_values_explain():
    cross, delta = np.random.default_rng(6).standard_normal((9, 4)), random_psd(4, 8, seed=6)
    U = explaining_root(cross, delta)
    assert np.matmul(U, U.T) == pytest.approx(cross @ np.linalg.inv(delta) @ cross.T, abs=1e-9)


@pytest.mark.parametrize("kind", ["none", "diagonal", "matrix"])
def test_joint_noise_covers_b_and_is_optimal_by_its_dual(kind):
    A, G = random_psd(8, 12, seed=7) / 4, random_psd(8, 3, seed=8)
    weights = {"none": None, "diagonal": np.linspace(0.5, 3, 8), "matrix": random_psd(8, 12, seed=9) / 8 + np.eye(8)}
    weight = weights[kind]
    F = joint_noise_factor(A, G, weight)
    C = np.eye(8) if weight is None else np.diag(weight) if weight.ndim == 1 else weight
    assert np.linalg.eigvalsh(F @ F.T - (G - A))[0] >= -1e-9
    values, vectors = np.linalg.eigh(C)
    root = (vectors * np.sqrt(values)) @ vectors.T
    least = np.sum(np.maximum(np.linalg.eigvalsh(root @ (G - A) @ root), 0.0))
    assert np.trace(C @ F @ F.T) == pytest.approx(least, rel=1e-9)
