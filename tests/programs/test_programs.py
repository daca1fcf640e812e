"""One contract for all noise programs: the promise in 50 digits, the least noise, a bound, and words that say which."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest

import sfumato as sf
from kernels import matern, rbf
from oracles import DIGITS, exact, explained_variances50, joint_ratio50, least_noise, matern32
from oracles import rbf as rbf_dense
from sfumato.noise.noise import CorrelatedNoise, IndependentNoise
from sfumato.proof.examination import certify

RNG = np.random.default_rng(11)
X = np.sort(RNG.uniform(0, 1, 14))[:, None]
#: Two of the sensitive inputs have a row of the data, whose records are sensitive too.
RECORDS = [5, 9]
S = np.vstack([[[0.31], [0.58]], X[RECORDS]])
LENGTHSCALE, VARIANCE, NOISE, ALPHA = 0.25, 1.7, 0.02, 0.35
PRIOR = sf.Prior(kernel=matern(LENGTHSCALE, VARIANCE), noise=NOISE)


def dense(a, b, prior=PRIOR):
    """The kernel of ``prior``, by textbook formulas."""
    base = prior.kernel.base_kernel
    kernel = rbf_dense if "RBF" in type(base).__name__ else matern32
    return kernel(a, b, base.lengthscale.numpy().ravel(), float(prior.kernel.outputscale))


class ProgramContract:
    """A program supplies ``options``; what must hold for every noise program follows."""

    options: ClassVar[dict[str, Any]] = {}
    region: ClassVar[sf.Region] = sf.Points(S)
    alpha = ALPHA
    #: how close the certified lower bound and Clarabel have to be
    gap = 1e-6

    @pytest.fixture(scope="class")
    def mechanism(self):
        return self.protect()

    def protect(self, prior=PRIOR, **changed):
        options = self.options | {"alpha": self.alpha} | changed
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.GuaranteeWarning)
            return sf.protect(prior, X, self.region, progress=False, **options)

    def sensitive(self, prior):
        """Cov(y, values) and Δ of the values that must stay uncertain: f(S), records, or both."""
        protects, V = self.options.get("protects", "both"), np.diag(prior.noise_variance(len(X)))
        data = dense(X, X, prior) + V
        if protects == "records":
            return data[:, RECORDS], (dense(X, X, prior) + self.alpha * V)[np.ix_(RECORDS, RECORDS)]
        rows = RECORDS if protects == "both" else []
        cross = dense(S, X[rows], prior)
        own = np.block([[dense(S, S, prior), cross], [cross.T, data[np.ix_(rows, rows)]]])
        return np.hstack([dense(X, S, prior), data[:, rows]]), self.alpha * own

    def needed(self, prior):
        """The matrices that Σ + A must cover for one prior."""
        cross, tolerance = self.sensitive(prior)
        if self.options.get("guarantee") == "pointwise":
            return [np.outer(k, k) / v for k, v in zip(cross.T, np.diag(tolerance), strict=True)]
        return [cross @ np.linalg.solve(tolerance, cross.T)]

    def priors(self):
        return [PRIOR, *self.options.get("priors", [])]

    def test_the_certificate_holds_and_names_the_program(self, mechanism):
        certificate = mechanism.certificate
        assert certificate.holds
        assert certificate.guarantee == self.options.get("guarantee", "joint")
        assert certificate.structure == self.options.get("structure", "full")
        assert certificate.protects == self.options.get("protects", "both")
        assert np.isnan(certificate.record_ratio) == (certificate.protects == "function")
        words = str(mechanism)
        assert ("can know f(s) better than ±" in words) == (certificate.protects != "records")
        assert ("any weighted average of them" in words) == (certificate.guarantee == "joint")
        assert "in the region" in certificate.promise

    def test_the_promise_holds_in_fifty_digits_for_every_prior(self, mechanism):
        sigma = mechanism.noise.covariance()
        for prior in self.priors():
            with mpmath.workdps(DIGITS):
                M = exact(dense(X, X, prior) + np.diag(prior.noise_variance(len(X)))) + exact(sigma)
                cross, tolerance = self.sensitive(prior)
                K = exact(cross)
                assert np.all(explained_variances50(M, K) <= np.diag(tolerance) * (1 + 1e-8))
                if self.options.get("guarantee", "joint") == "joint":
                    assert joint_ratio50(M, K.T, exact(tolerance)) <= 1 + 1e-8

    def test_the_noise_is_the_least(self, mechanism):
        weights = self.options.get("weights")
        diagonal = self.options.get("structure") == "diagonal"
        demands = [(dense(X, X, p) + np.diag(p.noise_variance(len(X))), self.needed(p)) for p in self.priors()]
        least = least_noise(demands, weights, diagonal)
        C = np.eye(len(X)) if weights is None else np.diag(weights) if weights.ndim == 1 else weights
        objective = float(np.trace(C @ mechanism.noise.covariance()))
        assert objective == pytest.approx(least, rel=max(2 * self.gap, 1e-6))
        assert objective >= least * (1 - 1e-6)
        assert mechanism.certificate.gap <= self.gap
        assert mechanism.certificate.trace_lower <= mechanism.certificate.trace

    def test_the_structure_is_what_was_asked_for(self, mechanism):
        sigma = mechanism.noise.covariance()
        if self.options.get("structure") == "diagonal":
            assert np.array_equal(sigma, np.diag(np.diag(sigma)))
        assert np.linalg.eigvalsh(sigma)[0] >= -1e-12 * np.trace(sigma)
        assert mechanism.noise.trace == pytest.approx(np.trace(sigma), rel=1e-12)

    def test_a_reader_of_the_file_finds_the_same_certificate(self, mechanism, tmp_path):
        release = mechanism.release(np.sin(X[:, 0]))
        release.save(tmp_path / "a.sfumato")
        again = sf.load(tmp_path / "a.sfumato").certify()
        claimed, found = mechanism.certificate.as_dict(), again.as_dict()
        assert claimed.keys() == found.keys()
        for name, value in claimed.items():
            assert found[name] == pytest.approx(value, rel=1e-9) if isinstance(value, float) else found[name] == value

    def test_a_weaker_promise_needs_less_noise(self, mechanism):
        assert self.protect(alpha=0.6).noise.trace < mechanism.noise.trace

    def test_units_do_not_matter(self, mechanism):
        scale = 1e6
        small = [sf.Prior(kernel=scaled(p.kernel, scale), noise=p.noise * scale) for p in self.priors()]
        options = {"priors": small[1:]} if "priors" in self.options else {}
        other = self.protect(small[0], **options)
        assert other.certificate.holds
        assert other.noise.trace == pytest.approx(scale * mechanism.noise.trace, rel=max(2 * self.gap, 1e-6))

    def test_less_noise_than_designed_is_found(self, mechanism):
        noise = mechanism.noise
        if isinstance(noise, IndependentNoise):
            less = IndependentNoise(0.99 * noise.variances)
        else:
            less = CorrelatedNoise(np.sqrt(0.99) * noise.factor, noise.shift)
        assert not certify(dataclasses.replace(mechanism.design, noise=less)).holds


def scaled(kernel, scale):
    base = kernel.base_kernel
    made = rbf if "RBF" in type(base).__name__ else matern
    return made(base.lengthscale.numpy().ravel(), float(kernel.outputscale) * scale)


WEIGHTS = RNG.uniform(0.2, 5.0, len(X))
ROOT = RNG.standard_normal((len(X), len(X)))
MATRIX = ROOT @ ROOT.T / len(X) + 0.3 * np.eye(len(X))
OTHERS = [
    sf.Prior(kernel=matern(0.4, 1.2), noise=NOISE),
    sf.Prior(kernel=rbf(0.2, VARIANCE), noise=2 * NOISE),
]


class TestJoint(ProgramContract):
    pass


class TestFunction(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"protects": "function"}


class TestRecords(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"protects": "records"}


class TestRecordsOneByOne(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"protects": "records", "guarantee": "pointwise"}
    gap = 1e-4


class TestJointBySign(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"method": "sign"}


class TestWeighted(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"weights": WEIGHTS}


class TestWeightedByAMatrix(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"weights": MATRIX}


class TestWeightedBySign(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"weights": WEIGHTS, "method": "sign"}


class TestDiagonal(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"structure": "diagonal"}


class TestWeightedDiagonal(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"structure": "diagonal", "weights": WEIGHTS}


class TestPointwise(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"guarantee": "pointwise"}
    gap = 1e-4


class TestWeightedPointwise(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"guarantee": "pointwise", "weights": MATRIX}
    gap = 1e-4


class TestPointwiseDiagonal(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"guarantee": "pointwise", "structure": "diagonal"}


class TestRobust(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"priors": OTHERS}
    gap = 1e-4


class TestRobustPointwise(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"priors": OTHERS, "guarantee": "pointwise"}
    gap = 1e-4


class TestRobustDiagonal(ProgramContract):
    options: ClassVar[dict[str, Any]] = {"priors": OTHERS, "structure": "diagonal"}


class TestRobustPointwiseDiagonal(ProgramContract):
    options: ClassVar[dict[str, Any]] = {
        "priors": OTHERS,
        "guarantee": "pointwise",
        "structure": "diagonal",
        "weights": WEIGHTS,
    }


class TestEverywhere(ProgramContract):
    region = sf.Everywhere()

    def needed(self, prior):
        # f everywhere, and all records: who knows f everywhere knows what is their own
        return [(dense(X, X, prior) + np.diag(prior.noise_variance(len(X)))) / self.alpha]


class TestEverywhereDiagonal(TestEverywhere):
    options: ClassVar[dict[str, Any]] = {"structure": "diagonal"}


class TestEverywhereRobust(TestEverywhere):
    options: ClassVar[dict[str, Any]] = {"priors": OTHERS}
    gap = 1e-4
