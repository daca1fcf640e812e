"""Readers: what they see before a release follows from their prior and their past, whatever kind of past that is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import oracles
import sfumato as sf
from kernels import rbf
from sfumato.data.inputs import as_inputs
from sfumato.design.problem import RowsExposure
from sfumato.ledger.past import EarlierReleases
from sfumato.linalg.tensors import as_array
from sfumato.promise.composition import Revealed, RowLayout
from sfumato.promise.readers import Past, Reader
from sfumato.promise.tolerance import FractionTolerance

V = 0.1
X, S = np.linspace(0.0, 3.0, 9)[:, None], np.array([[0.7], [1.2], [1.9]])
PRIOR, INPUTS = sf.Prior(kernel=rbf(0.6), noise=V), as_inputs(X)
K = oracles.rbf(np.vstack([X, S]), np.vstack([X, S]), 0.6)
#: Cov((y, f(S))) before anything was seen
JOINT = K + V * np.diag([1.0] * 9 + [0.0] * 3)


@dataclass(frozen=True, eq=False)
class HeldRows(Past):
    """Rows of the release whose y a reader holds without noise: a past that the package does not have yet."""

    rows: list[int]

    @property
    def may_show_rows(self):
        return True

    def _whitened(self, block):
        return np.linalg.solve(np.linalg.cholesky(JOINT[np.ix_(self.rows, self.rows)]), block)

    def about(self, points):
        return self._whitened(oracles.rbf(X[self.rows], points, 0.6))

    def about_data(self):
        return self._whitened(JOINT[self.rows, :9])


def given(seen, error):
    """Cov((y, f(S))|W) where W has the covariance ``seen`` with (y, f(S)), and ``error`` is its own."""
    return JOINT - seen.T @ np.linalg.solve(error, seen)


def sees(reader, expected):
    assert as_array(reader.data_covariance(INPUTS)) == pytest.approx(expected[:9, :9], abs=1e-9)
    assert as_array(reader.function.with_data(INPUTS, S)) == pytest.approx(expected[:9, 9:], abs=1e-9)
    assert reader.function.covariance(S) == pytest.approx(expected[9:, 9:], abs=1e-9)
    assert reader.function.variance(S) == pytest.approx(np.diag(expected)[9:], abs=1e-9)
    vectors = np.random.default_rng(1).standard_normal((9, 2))
    times = reader.data_times(INPUTS, torch.from_numpy(vectors))
    assert as_array(times) == pytest.approx(expected[:9, :9] @ vectors, abs=1e-9)


def test_an_outsider_sees_the_prior():
    sees(Reader(PRIOR), JOINT)


def test_who_holds_rows_sees_the_prior_given_them():
    held = [2, 5]
    sees(Reader(PRIOR, HeldRows(held)), given(JOINT[held], JOINT[np.ix_(held, held)]))


def test_who_has_seen_a_release_sees_the_prior_given_it():
    mechanism = sf.protect(PRIOR, X, sf.Box(1.0, 2.0), alpha=0.5, progress=False)
    release = Revealed(mechanism.design)
    past = EarlierReleases.of(PRIOR, RowLayout.of(release), [release], release)
    # the same measurements are to be released again, with the same errors
    sees(Reader(PRIOR, past), given(JOINT[:9], JOINT[:9, :9] + mechanism.noise.covariance()))


def test_the_demand_on_noise_follows_from_the_reader_alone():
    held, alpha = [2, 5], 0.4
    left = given(JOINT[held], JOINT[np.ix_(held, held)])
    exposure = RowsExposure(Reader(PRIOR, HeldRows(held)), INPUTS, FractionTolerance(alpha))
    root = exposure.root(S)
    needed = left[:9, 9:] @ np.linalg.solve(alpha * left[9:, 9:], left[9:, :9])
    assert root @ root.T == pytest.approx(needed, abs=1e-9)
    assert as_array(exposure.data_covariance) == pytest.approx(left[:9, :9], abs=1e-9)
    assert exposure.at(S)[1] == pytest.approx(alpha * np.diag(left)[9:], abs=1e-9)
    # their own rows are known to them, so that A is singular and a shift is needed
    assert exposure.data_root is None
    assert exposure.shift(1e-14) > 0
